"""Bundles: what is written comes back, and nothing that was changed gets through."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from rtbrain.decoder.bundle import CARD, Bundle, Trust, calibrated, load_bundle, save_bundle
from rtbrain.decoder.session import load_step
from rtbrain.errors import BundleError, ConfigError
from rtbrain.microstates.templates import fingerprint
from rtbrain.training.export import export
from tests.unit.decoder.bundle_cases import card, make_bundle, templates_for
from tests.unit.training.model_cases import STATES, random_model


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture
def folder(made: Bundle, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.folder, tmp_path / "copy"))


def test_all_comes_back(made: Bundle) -> None:
    again = load_bundle(made.folder)
    assert (again.name, again.classes, again.context_s, again.every_s) == ("small", ("calm", "tense", "other"), 60, 0.1)
    assert (again.temperature, again.licence, again.rates_hz) == (1.5, "CC BY 4.0", (250.0,))
    assert again.trust == Trust(0.7, 0.4, 10.0, 1.0)
    assert again.provenance["subjects"] == ["a", "b"]
    assert again.metrics == {"validation": {"accuracy": 0.5}}
    assert fingerprint(again.templates) == fingerprint(templates_for(STATES["rtbrain"]))
    assert [band.name for band in again.recipe.bands] == ["b0", "b1", "b2"]
    assert again.sha256 == hashlib.sha256((made.folder / CARD).read_bytes()).hexdigest() == made.sha256
    assert load_step(again.step, "cpu").schema.states == STATES["rtbrain"]
    assert again.decoder.is_file()


def test_the_folder_holds_its_files_and_no_others(made: Bundle) -> None:
    names = {path.name for path in made.folder.iterdir()}
    assert names == {"bundle.json", "decoder.onnx", "step.onnx", "templates.npz", "templates.json"}
    assert not [path for path in made.folder.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", ["decoder.onnx", "step.onnx", "templates.npz", "templates.json"])
def test_a_changed_or_missing_file_is_named(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(BundleError, match=rf"{name} is not the file .* restore the folder"):
        load_bundle(folder)
    (folder / name).unlink()
    with pytest.raises(BundleError, match=rf"{name} cannot be read"):
        load_bundle(folder)


def test_model_files_that_do_not_belong_to_it_are_refused_and_others_are_not(folder: Path) -> None:
    (folder / "parity.json").write_text("{}")
    (folder / "README.md").write_text("mine")
    load_bundle(folder)
    (folder / "other.onnx").write_bytes(b"x")
    with pytest.raises(BundleError, match=r"other\.onnx is not listed"):
        load_bundle(folder)


def edited(folder: Path, **changes: object) -> Path:
    values = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps(values | changes))
    return folder


def test_a_damaged_card_is_named(folder: Path) -> None:
    whole = (folder / CARD).read_text()
    for change, message in (
        ({"temperature": -1}, "temperature"),
        ({"surprise": 1}, "surprise"),
        ({"format": 99}, "format 99"),
        ({"files": {"../step.onnx": "x"}}, "must list decoder.onnx"),
        ({"files": {"step.onnx": 3}}, "step.onnx"),
    ):
        with pytest.raises(BundleError, match=message):
            load_bundle(edited(folder, **change))
        (folder / CARD).write_text(whole)
    for text in ("", "[]", "{}", whole[:100]):
        (folder / CARD).write_text(text)
        with pytest.raises(BundleError, match="is damaged"):
            load_bundle(folder)
    (folder / CARD).unlink()
    with pytest.raises(BundleError, match=r"is no bundle: bundle\.json cannot be read .* restore the folder"):
        load_bundle(folder)
    for name in ("decoder.onnx", "step.onnx"):
        (folder / name).unlink()
    with pytest.raises(BundleError, match=r"is no bundle: .* holds templates alone"):
        load_bundle(folder)
    (folder / "one").mkdir()
    (folder / "one" / CARD).write_text(whole)
    with pytest.raises(BundleError, match="it holds the bundles one: name one of them"):
        load_bundle(folder)


def test_a_bundle_is_never_replaced(made: Bundle, folder: Path) -> None:
    before = made.sha256
    with pytest.raises(ConfigError, match="never replaced"):
        save_bundle(folder, card(), made.templates, made.folder)
    assert load_bundle(folder).sha256 == before


def test_graphs_of_another_model_leave_nothing_behind(made: Bundle, tmp_path: Path) -> None:
    export(random_model("paper-text", n_classes=2), tmp_path / "graphs", 60)
    for classes in (("a", "b"), ("a", "b", "c")):
        with pytest.raises(BundleError, match="export the model that belongs to them"):
            save_bundle(tmp_path / "new", card(classes=classes), made.templates, tmp_path / "graphs")
    assert [path.name for path in tmp_path.iterdir()] == ["graphs"]


def test_temperature_acts_on_the_logits() -> None:
    logits = np.array([[2.0, -1.0, 0.5], [0.0, 0.0, 0.0]])
    odds = np.exp(logits)
    found = calibrated(odds / odds.sum(-1, keepdims=True), 2.5)
    expected = np.exp(logits / 2.5)
    np.testing.assert_allclose(found, expected / expected.sum(-1, keepdims=True), rtol=1e-12)
    np.testing.assert_array_equal(calibrated([1.0, 0.0], 2.0), [1.0, 0.0])
