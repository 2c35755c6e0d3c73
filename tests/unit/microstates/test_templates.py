"""The template folder: what is written comes back to the bit, and whatever is wrong with it is refused."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtbrain.errors import TemplateError
from rtbrain.microstates.templates import JSON, NPZ, Templates, load, referenced, save
from tests.streams import NAMES


@pytest.fixture
def templates(rng: np.random.Generator) -> Templates:
    maps = tuple(referenced(rng.standard_normal((k, len(NAMES)))) for k in (4, 6))
    return Templates(NAMES, maps, {"warmup_ms": 1000.0, "bands": [{"name": "a"}]}, {"gev": 0.7123456789012345})


@pytest.fixture
def folder(templates: Templates, tmp_path: Path) -> Path:
    save(templates, tmp_path / "a" / "b")
    return tmp_path / "a" / "b"


def edit_card(folder: Path, **values: Any) -> None:
    card = json.loads((folder / JSON).read_text())
    (folder / JSON).write_text(json.dumps({**card, **values}))


def replace_npz(folder: Path, content: bytes) -> None:
    """Put another npz in place, hash and all."""
    (folder / NPZ).write_bytes(content)
    edit_card(folder, sha256=hashlib.sha256(content).hexdigest())


def assert_same(a: Templates, b: Templates) -> None:
    assert (a.channels, a.recipe, a.report) == (b.channels, b.recipe, b.report)
    assert [maps.tobytes() for maps in a.maps] == [maps.tobytes() for maps in b.maps]
    assert [maps.shape for maps in a.maps] == [maps.shape for maps in b.maps]


def test_a_saved_folder_loads_to_the_bit(templates: Templates, folder: Path) -> None:
    assert_same(load(folder), templates)
    assert sorted(path.name for path in folder.iterdir()) == [JSON, NPZ]


def test_saving_again_replaces_both_files(templates: Templates, folder: Path) -> None:
    other = Templates(NAMES[:4], (referenced(templates.maps[0][:, :4]),), {}, {"gev": 0.1})
    save(other, folder)
    assert_same(load(folder), other)


@pytest.mark.parametrize("name", [NPZ, JSON])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(TemplateError, match=f"{name} is missing"):
        load(folder)


def test_a_folder_that_does_not_exist_is_no_template_folder(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="no template folder"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize("where", [0, 200, -1])
def test_a_changed_byte_is_noticed(folder: Path, where: int) -> None:
    content = bytearray((folder / NPZ).read_bytes())
    content[where] ^= 1
    (folder / NPZ).write_bytes(content)
    with pytest.raises(TemplateError, match="does not match the hash"):
        load(folder)


def test_an_npz_cut_short_is_noticed(folder: Path) -> None:
    (folder / NPZ).write_bytes((folder / NPZ).read_bytes()[:-100])
    with pytest.raises(TemplateError, match="does not match the hash"):
        load(folder)


@pytest.mark.parametrize("content", [b"", b"no zip at all", b"PK\x03\x04 a broken zip"])
def test_an_npz_that_is_none_is_refused_even_with_its_hash(folder: Path, content: bytes) -> None:
    replace_npz(folder, content)
    with pytest.raises(TemplateError, match="cannot be read as templates"):
        load(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "{}", "\x00"])
def test_a_card_that_is_none_is_refused(folder: Path, text: str) -> None:
    (folder / JSON).write_text(text)
    with pytest.raises(TemplateError, match="cannot be read as templates"):
        load(folder)


@pytest.mark.parametrize(
    "arrays",
    [
        {"band0": np.ones((4, len(NAMES) - 1))},
        {"band0": np.ones(len(NAMES))},
        {"band0": np.full((4, len(NAMES)), np.nan)},
        {"band0": np.ones((4, len(NAMES))), "band1": np.ones((4, 3))},
        {"band0": np.ones((0, len(NAMES)))},
        {"band1": np.ones((4, len(NAMES)))},
        {"band0": np.array([["a"] * len(NAMES)])},
        {"band0": np.array([[object()] * len(NAMES)])},
        {},
    ],
    ids=["channels", "one-dimensional", "nan", "second band", "no state", "name", "text", "pickle", "no band"],
)
def test_maps_that_do_not_fit_are_refused(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    path = folder / "new.npz"
    np.savez(path, channels=np.array(NAMES), **arrays)
    replace_npz(folder, path.read_bytes())
    with pytest.raises(TemplateError):
        load(folder)


def test_a_future_format_is_refused_with_its_number(folder: Path) -> None:
    edit_card(folder, format=2)
    with pytest.raises(TemplateError, match="has format 2, this rtbrain reads format 1"):
        load(folder)


def test_a_save_that_fails_midway_leaves_the_old_pair(templates: Templates, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    broken = Templates(NAMES, (templates.maps[0],), {}, {"figure": object()})
    with pytest.raises(TypeError, match="not JSON serializable"):
        save(broken, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert_same(load(folder), templates)


def test_a_save_that_fails_midway_leaves_no_new_files(templates: Templates, tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        save(Templates(NAMES, templates.maps, {"bad": object()}), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_stops_between_the_two_files_is_noticed_on_loading(
    templates: Templates, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def full_disk(self: Path, target: Path) -> Path:
        if target.name == NPZ:
            raise OSError("no space left")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(OSError, match="no space"):
        save(Templates(NAMES, (templates.maps[0],)), folder)
    assert sorted(path.name for path in folder.iterdir()) == [JSON, NPZ]
    with pytest.raises(TemplateError, match="does not match the hash"):
        load(folder)


def test_maps_on_other_channels_are_picked_referenced_and_of_unit_norm(templates: Templates) -> None:
    names = ("O1", "Fp2", "C3", "F4")
    (maps, _) = templates.on(names)
    columns = [NAMES.index(name) for name in names]
    np.testing.assert_array_equal(maps, referenced(templates.maps[0][:, columns]))
    np.testing.assert_allclose(maps.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(maps, axis=1), 1)
    assert maps.flags.c_contiguous


def test_another_montage_is_refused_by_name(templates: Templates) -> None:
    with pytest.raises(TemplateError, match="no value for Cz, Pz; they were fitted on Fp1, Fp2"):
        templates.on(("Pz", "Fp1", "Cz"))


def test_maps_under_a_mask_are_zero_where_bad_and_referenced_over_the_rest(rng: np.random.Generator) -> None:
    maps, good = rng.standard_normal((4, 8)), np.arange(8) % 3 > 0
    out = referenced(maps, good)
    np.testing.assert_array_equal(out[:, ~good], 0)
    np.testing.assert_allclose(out[:, good], referenced(maps[:, good]), rtol=1e-12)


def test_a_map_without_shape_stays_zero() -> None:
    np.testing.assert_array_equal(referenced(np.full((1, 4), 3.0)), np.zeros((1, 4)))
