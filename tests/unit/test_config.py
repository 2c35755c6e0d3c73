"""Settings from YAML and plain values into dataclasses."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rtbrain.config import load_yaml, parse
from rtbrain.errors import ConfigError
from rtbrain.pipeline import Recipe


@dataclass(frozen=True)
class Inner:
    size: int
    name: str = "x"


@dataclass(frozen=True)
class Outer:
    inner: Inner
    many: tuple[Inner, ...] = ()
    maybe: Inner | None = None
    by_name: dict[str, Inner] = field(default_factory=dict)
    ratio: float = 0.5


def test_plain_values_become_dataclasses_at_every_depth() -> None:
    values = {
        "inner": {"size": 3},
        "many": [{"size": 1}, {"size": 2}],
        "maybe": {"size": 4},
        "by_name": {"a": {"size": 5}},
    }
    assert parse(Outer, values, "it") == Outer(Inner(3), (Inner(1), Inner(2)), Inner(4), {"a": Inner(5)})


def test_unknown_missing_and_wrong_settings_are_all_listed_with_their_paths() -> None:
    values = {
        "inner": {"title": "y"},
        "many": [{"size": 1}, {"size": "big"}],
        "by_name": {"a": {"size": 1, "extra": 2}},
        "ratio": [],
        "colour": 1,
    }
    with pytest.raises(ConfigError) as error:
        parse(Outer, values, "stream.yaml")
    lines = str(error.value).splitlines()
    assert lines[0] == "stream.yaml has 6 error(s):"
    paths = {line.split(":")[0].strip() for line in lines[1:]}
    assert paths == {"inner.size", "inner.title", "many.1.size", "by_name.a.extra", "ratio", "colour"}
    assert "  inner.size: Field required" in lines  # without the whole block that lacks it


def test_an_unknown_setting_is_told_which_there_are() -> None:
    values = {
        "inner": {"size": 1, "names": "y"},
        "many": [{"size": 1, "sizes": 2}],
        "maybe": {"size": 1, "zzz": 2},
        "by_name": {"a": {"size": 1, "name2": 2}},
        "ratoi": 1,
    }
    with pytest.raises(ConfigError) as error:
        parse(Outer, values, "it")
    assert set(str(error.value).splitlines()[1:]) == {
        "  inner.names: no such setting, perhaps 'name' is meant; there are size, name (got 'y')",
        "  many.0.sizes: no such setting, perhaps 'size' is meant; there are size, name (got 2)",
        "  maybe.zzz: no such setting; there are size, name (got 2)",
        "  by_name.a.name2: no such setting, perhaps 'name' is meant; there are size, name (got 2)",
        "  ratoi: no such setting, perhaps 'ratio' is meant; there are inner, many, maybe, by_name, ratio (got 1)",
    }


def test_types_have_the_names_that_they_have_in_yaml() -> None:
    with pytest.raises(ConfigError) as error:
        parse(Outer, {"inner": 3, "many": "x", "by_name": 4}, "it")
    assert str(error.value).splitlines()[1:] == [
        "  inner: Input should be settings by name (got 3)",
        "  many: Input should be a list (got 'x')",
        "  by_name: Input should be settings by name (got 4)",
    ]


def test_settings_that_contradict_each_other_are_told_with_their_file() -> None:
    with pytest.raises(ConfigError, match=r"^mine\.yaml: band broad: 30 to 20 Hz is no band$"):
        Recipe.from_dict({"bands": [{"name": "broad", "low_hz": 30, "high_hz": 20}]}, "mine.yaml")


def test_the_value_that_was_seen_is_in_the_message() -> None:
    with pytest.raises(ConfigError, match=r"ratio: .* \(got 'half'\)"):
        parse(Outer, {"inner": {"size": 1}, "ratio": "half"}, "it")


@pytest.mark.parametrize("values", [None, 3, [], "text"])
def test_values_that_are_no_settings_are_refused(values: object) -> None:
    with pytest.raises(ConfigError, match=r"\(top\)"):
        parse(Outer, values, "it")


def test_a_yaml_file_gives_its_mapping(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("inner:\n  size: 3\nratio: 0.25\n")
    assert load_yaml(path) == {"inner": {"size": 3}, "ratio": 0.25}


@pytest.mark.parametrize("text", ["", "- 1\n- 2\n", "word"])
def test_a_yaml_file_without_settings_by_name_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="must hold settings by name"):
        load_yaml(path)


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# nothing\n")
    with pytest.raises(ConfigError, match="it is empty"):
        load_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "!!python/object:os.system {}"])
def test_invalid_yaml_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="no valid YAML"):
        load_yaml(path)


def test_a_setting_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("states: 6\nbands:\n  - {name: a, low: 1}\n  - {name: b, low: 1}\nstates: 5\n")
    with pytest.raises(ConfigError, match=r"a\.yaml is no valid YAML: 'states' stands twice, in lines 1 and 5"):
        load_yaml(path)
    path.write_text("top: {inner: 1, inner: 1}\n")
    with pytest.raises(ConfigError, match="'inner' stands twice"):
        load_yaml(path)
    path.write_text("top:\n  inner: 1\n  inner: 1\n")
    with pytest.raises(ConfigError, match="'inner' stands twice, in lines 2 and 3"):
        load_yaml(path)
    path.write_text("first: &own {a: 1, b: 2}\nsecond: {<<: *own, b: 3}\n")
    assert load_yaml(path)["second"] == {"a": 1, "b": 3}, "what is taken over may be set otherwise"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_yaml(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "values",
    [
        {"warmup_ms": -5},
        {"continuity": {"smoothing_s": 0}},
        {"continuity": {"fill_ms": float("nan")}},
        {"bands": [{"name": "a", "order": 0}]},
        {"channels": {"min_coverage": 1.5}},
        {"quality": {"block_ms": float("inf")}},
    ],
)
def test_numbers_out_of_range_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        Recipe.from_dict(values)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: Müller".encode("latin-1"))
    with pytest.raises(ConfigError, match="UTF-8"):
        load_yaml(path)
