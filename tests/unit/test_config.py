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


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "!!python/object:os.system {}"])
def test_invalid_yaml_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="no valid YAML"):
        load_yaml(path)


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
