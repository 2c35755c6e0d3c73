"""`rtbrain parity`: real recordings over real LSL, live against offline; what differs gets no certificate."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from rtbrain.decoder.bundle import Bundle
from rtbrain.errors import ParityError
from rtbrain.live_state import has_parity
from rtbrain.messages import Chunk, StreamInfo
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.parity import certify, compare
from rtbrain.parity_paths import LivePath, OfflinePath, live_path
from rtbrain.pipeline import Recipe
from rtbrain.sources.chunking import Source
from rtbrain.sources.recording import excerpt, open_recording
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings, dipole_maps
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.datasets import load
from tests import lsl  # noqa: F401  keeps LSL on this machine
from tests.bundles import make_bundle
from tests.parity.test_recordings_cuts import some_maps, two_bands
from tests.recording_writers import write_edf
from tests.system.test_cli import invoke, refused, write_eeg

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_eeg(tmp_path_factory.mktemp("eeg") / "rest.edf", seconds=20.0)


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return make_bundle(tmp_path / "small")


def test_the_command_writes_a_certificate_for_this_bundle(bundle: Bundle, recording: Path) -> None:
    assert not has_parity(bundle)
    said = invoke("parity", bundle.folder, recording, "--start", 2, "--seed", 3)
    assert said.exit_code == 0, said.output
    assert "tokens are identical" in said.stdout
    assert "in place of" not in said.stdout
    made = json.loads((bundle.folder / "parity.json").read_text())
    assert has_parity(bundle)
    assert (made["bundle_sha256"], made["file"], made["passed"]) == (bundle.sha256, "rest.edf", True)
    assert made["seconds"] == [2.0, 20.0]
    assert made["tokens"] > 200
    assert (made["decisions"] > 150, made["decisions_compared"]) == (True, 100)
    assert 0 <= made["largest_probability_difference"] <= 1e-4
    assert made["chunk_samples"][0] < 5
    assert made["versions"].keys() >= {"rtbrain", "numpy", "pylsl", "liblsl"}
    again = invoke("parity", bundle.folder, recording, "--stop", 10)
    assert "in place of the certificate that was there" in " ".join(again.stdout.split())
    (bundle.folder / "bundle.json").write_text((bundle.folder / "bundle.json").read_text() + "\n")
    assert not has_parity(replace(bundle, sha256="another"))


@pytest.mark.parametrize("path", ["mdd/H S1 EC.edf", "formats/*/test.edf", "formats/*/S001R01.edf"])
def test_real_recordings_pass_in_two_bands(data: Path, path: str, tmp_path: Path) -> None:
    """19 channels at 256 Hz, 30 at 250 Hz, 64 at 160 Hz."""
    file = next(iter(data.glob(path)), None)
    if file is None:
        pytest.skip(f"{path} is not in {data}")
    source = excerpt(open_recording(file), 5.0, 25.0)
    recipe = two_bands(source)
    maps = some_maps(source, recipe)
    made = make_bundle(tmp_path / "model", replace(maps, recipe=recipe.to_dict()), t_max=1000)
    certificate = certify(made, file, start_s=5.0, stop_s=30.0)
    assert certificate.tokens > 400
    assert certificate.largest_probability_difference <= 1e-4
    assert certificate.largest_attribute_difference <= 1e-6


def test_electrodes_in_another_order_and_one_more_than_the_templates_have(tmp_path: Path) -> None:
    """The recipe names no channels: those of the templates are meant, and the other one stays out of the reference."""
    source = open_recording(write_eeg(tmp_path / "rest.edf", seconds=30.0))
    data = np.concatenate([chunk.data for chunk in source.chunks()]).T[::-1] * 1e6
    extra = np.random.default_rng(0).normal(0, 300, data.shape[1])
    file = write_edf(tmp_path / "more.edf", np.vstack([extra, data]), names=("TP9", *source.info.channels[::-1]))
    made = make_bundle(tmp_path / "small")
    assert not made.templates.recipe["channels"]["names"]
    assert certify(made, file).tokens > 300


@dataclass(frozen=True)
class Interrupted(Source):
    """Synthetic EEG with some samples lost: a gap to fill, one within a context, one that ends it."""

    whole: Source
    lost: tuple[slice, ...] = (slice(1500, 1505), slice(3000, 3150), slice(5000, 6000))

    @property
    def info(self) -> StreamInfo:
        return self.whole.info

    @property
    def n_samples(self) -> int:
        return self.whole.n_samples - sum(each.stop - each.start for each in self.lost)

    def _produce(self) -> Iterator[Chunk]:
        (chunk,) = self.whole.chunks(self.whole.n_samples)
        kept = np.ones(len(chunk), bool)
        for each in self.lost:
            kept[each] = False
        yield Chunk(np.ascontiguousarray(chunk.data[kept]), times=chunk.times[kept])


def test_interruptions_are_the_same_on_both_paths(bundle: Bundle) -> None:
    source = Interrupted(Synthetic(SyntheticSettings(duration_s=40.0)))
    live, offline = live_path(bundle, source), OfflinePath.of(bundle, source)
    compare(bundle, live, offline)
    assert [(each.kind, each.missing) for each in live.breaks] == [("gap", 150), ("context", 1000)]
    with pytest.raises(ParityError, match="break 2 is not there live"):
        compare(bundle, replace(live, breaks=live.breaks[:1]), offline)


def corrupted(bundle: Bundle) -> Bundle:
    """Change one map a little, in memory only."""
    maps = bundle.templates.maps[0].copy()
    maps[0] = -0.5 * maps[0] + maps[1]
    return replace(bundle, templates=replace(bundle.templates, maps=(maps, *bundle.templates.maps[1:])))


def test_a_corrupted_template_gets_no_certificate_and_loses_the_old_one(bundle: Bundle, recording: Path) -> None:
    certify(bundle, recording, stop_s=10.0)
    with pytest.raises(ParityError, match=r"of \d+ tokens agree .* the first that differs is token") as error:
        certify(corrupted(bundle), recording, stop_s=10.0)
    assert "no certificate was written" in str(error.value)
    assert error.value.exit_code == 2
    assert not (bundle.folder / "parity.json").exists()


def test_a_template_that_was_corrupted_on_the_disk_is_refused(bundle: Bundle, recording: Path) -> None:
    path = bundle.folder / "templates.npz"
    content = bytearray(path.read_bytes())
    content[-200] ^= 1
    path.write_bytes(content)
    assert "templates.npz is not the file" in refused("parity", bundle.folder, recording)
    assert not (bundle.folder / "parity.json").exists()


def test_what_is_no_recording_or_too_short_changes_nothing(bundle: Bundle, recording: Path, tmp_path: Path) -> None:
    certify(bundle, recording, stop_s=10.0)
    before = (bundle.folder / "parity.json").read_bytes()
    assert "does not exist" in refused("parity", bundle.folder, tmp_path / "none.edf")
    assert "is not after" in refused("parity", bundle.folder, recording, "--start", 5, "--stop", 5)
    assert "too short for a decision" in refused("parity", bundle.folder, recording, "--stop", 0.5)
    few = write_eeg(tmp_path / "few.edf", seconds=5.0, channels=slice(0, 6))
    assert "only 6 of the recipe's 19 channels" in refused("parity", bundle.folder, few)
    assert (bundle.folder / "parity.json").read_bytes() == before


def test_every_kind_of_difference_is_named(bundle: Bundle, recording: Path) -> None:
    source = open_recording(recording)
    live = live_path(bundle, source)
    offline = OfflinePath.of(bundle, source)
    compare(bundle, live, offline)
    tokens = live.tokens

    def changed(**columns: np.ndarray) -> LivePath:
        return replace(live, parts=[replace(tokens, **columns)])

    with pytest.raises(ParityError, match="the first that differs is token 8: broad state"):
        compare(bundle, changed(duration=tokens.duration + (np.arange(len(tokens)) == 7)), offline)
    with pytest.raises(ParityError, match=r"token \d+: none live"):
        compare(bundle, replace(live, parts=[tokens.take(slice(0, -1))]), offline)
    with pytest.raises(ParityError, match="the corr of a token differs by"):
        compare(bundle, changed(corr=tokens.corr * (1 + 1e-5)), offline)
    decision, seen = live.decisions[-1]
    wrong = {name: value + 2e-4 for name, value in decision.probabilities.items()}
    with pytest.raises(ParityError, match=r"probabilities are .* apart, more than 0\.0001"):
        compare(bundle, replace(live, decisions=[(replace(decision, probabilities=wrong), seen)]), offline)


def test_a_trial_of_a_data_set_whose_files_only_its_reader_knows(tmp_path: Path) -> None:
    root = tmp_path / "nssi"
    made = invoke("simulate", "--dataset", "nssi", "--form", "mat", "--subjects", 2, "--minutes", 0.4, "--out", root)
    assert made.exit_code == 0, made.output
    found = load(load_dataset_config(str(root / "rtbrain.yaml")))
    trial = found.trials[1]
    channels = trial.open().info.channels
    templates = Templates(channels, (referenced(dipole_maps(channels, 4)),), Recipe().to_dict())
    bundle = make_bundle(tmp_path / "own", templates)
    asked = ("parity", bundle.folder, "--dataset", root / "rtbrain.yaml")
    assert "is not a recording that can be opened" in refused("parity", bundle.folder, trial.files[0])
    assert f"no trial 'x'; it has {len(found.trials)}" in refused(*asked, "--trial", "x")
    assert "one only" in refused(*asked[:2])
    assert "one only" in refused(*asked, trial.files[0])
    assert "leave them out" in refused(*asked[:2], trial.files[0], "--trial", trial.name)
    done = invoke(*asked, "--trial", trial.name, "--stop", 15)
    assert done.exit_code == 0, done.output
    made_of = json.loads((bundle.folder / "parity.json").read_text())
    assert (made_of["file"], made_of["seconds"]) == (trial.files[0].name, [0.0, 15.0])
    assert made_of["tokens"] > 50
