"""The commands as a person would call them, good input and bad, in processes of their own where it matters."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from rtbrain.cli import main
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from tests.conftest import ROOT
from tests.recording_writers import write_edf

SECONDS = 40


def invoke(*args: object) -> Result:
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(*args: object) -> str:
    """Run a command that must fail with rtbrain's own exit code and one clear message; return it."""
    result = invoke(*args)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr


def write_eeg(path: Path, seed: int = 0, seconds: float = SECONDS, channels: slice = slice(None)) -> Path:
    source = Synthetic(SyntheticSettings(duration_s=seconds, seed=seed))
    data = np.concatenate([chunk.data for chunk in source.chunks()]).T
    return write_edf(path, data[channels], names=source.info.channels[channels])


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rest")
    for seed in range(2):
        write_eeg(folder / f"rest{seed}.edf", seed)
    return folder


@pytest.fixture(scope="module")
def fitted(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("templates") / "rest"
    assert invoke("templates", "fit", recordings, "-k", 4, "--starts", 10, "--out", folder).exit_code == 0
    return folder


class TestFit:
    def test_same_seed_same_files(self, recordings: Path, fitted: Path, tmp_path: Path) -> None:
        files = sorted(recordings.glob("*.edf"))
        assert invoke("templates", "fit", *files, "-k", 4, "--starts", 10, "--out", tmp_path / "again").exit_code == 0
        first, second = (json.loads((folder / "templates.json").read_text()) for folder in (fitted, tmp_path / "again"))
        assert first == second

    def test_scan_and_pictures(self, recordings: Path, tmp_path: Path) -> None:
        out = tmp_path / "scan"
        result = invoke("templates", "fit", recordings, "--scan", "2:6", "--starts", 5, "--out", out)
        assert result.exit_code == 0
        assert "recommended: 4 states" in result.output  # four states were simulated
        assert invoke("templates", "show", out, "--png").exit_code == 0
        for name in ("templates.png", "scan.png"):
            assert (out / name).read_bytes().startswith(b"\x89PNG")

    def test_either_k_or_scan(self, recordings: Path, tmp_path: Path) -> None:
        assert "either -k N or --scan" in refused("templates", "fit", recordings, "--out", tmp_path)
        assert "either -k N or --scan" in refused(
            "templates", "fit", recordings, "-k", 4, "--scan", "3:5", "--out", tmp_path
        )
        assert "no rising range" in refused("templates", "fit", recordings, "--scan", "5:3", "--out", tmp_path)

    def test_a_bundle_is_never_broken_by_other_templates(self, recordings: Path, tmp_path: Path) -> None:
        (tmp_path / "bundle.json").write_text("{}")
        assert "is a trained bundle" in refused("templates", "fit", recordings, "-k", 4, "--out", tmp_path)

    def test_too_many_states(self, recordings: Path, tmp_path: Path) -> None:
        message = refused("templates", "fit", recordings, "-k", 40, "--out", tmp_path / "x")
        assert "40" in message
        assert not (tmp_path / "x").exists()

    def test_k_larger_than_the_peaks(self, recordings: Path, tmp_path: Path) -> None:
        message = refused("templates", "fit", recordings, "-k", 12, "--peaks", 3, "--out", tmp_path / "x")
        assert "12" in message
        assert "6" in message

    def test_recipe_with_errors_lists_them_all(self, recordings: Path, tmp_path: Path) -> None:
        recipe = tmp_path / "recipe.yaml"
        recipe.write_text("quality: {flat_uv: much}\nbandz: []\n")
        message = refused("templates", "fit", recordings, "-k", 4, "--recipe", recipe, "--out", tmp_path / "x")
        assert "quality.flat_uv" in message
        assert "bandz" in message

    def test_a_flat_recording_is_named(self, recordings: Path, tmp_path: Path) -> None:
        flat = write_edf(tmp_path / "flat.edf", np.zeros((4, 10_000)), names=["F3", "F4", "C3", "C4"])
        message = refused("templates", "fit", *recordings.glob("*.edf"), flat, "-k", 2, "--out", tmp_path / "x")
        assert "flat.edf" in message
        assert "peaks" in message

    def test_a_dead_channel_is_named(self, recordings: Path, tmp_path: Path) -> None:
        # EDF stores integers, so the channel without any signal comes as one stuck at its smallest value.
        source = Synthetic(SyntheticSettings(duration_s=SECONDS))
        data = np.concatenate([chunk.data for chunk in source.chunks()]).T
        data[3] = -6553.6
        dead = write_edf(tmp_path / "dead.edf", data, names=source.info.channels)
        message = refused("templates", "fit", dead, "-k", 4, "--out", tmp_path / "x")
        assert "dead.edf" in message
        assert source.info.channels[3] in message

    def test_doubled_names(self, tmp_path: Path) -> None:
        path = write_edf(tmp_path / "twice.edf", np.random.default_rng(0).normal(0, 9, (3, 10_000)), ["T3", "T7", "Cz"])
        assert "same electrode" in refused("templates", "fit", path, "-k", 2, "--out", tmp_path / "x")

    def test_too_few_channels(self, tmp_path: Path) -> None:
        path = write_edf(tmp_path / "two.edf", np.random.default_rng(0).normal(0, 9, (2, 10_000)), ["Fz", "Cz"])
        assert "two.edf" in refused("templates", "fit", path, "-k", 2, "--out", tmp_path / "x")


class TestTokenize:
    def test_chunks_do_not_matter(self, recordings: Path, fitted: Path, tmp_path: Path) -> None:
        tables = []
        for i, chunk in enumerate([[], ["--chunk", 7], ["--chunk", "random", "--seed", 3]]):
            out = tmp_path / f"{i}.tsv"
            file = recordings / "rest1.edf"
            assert invoke("tokenize", file, "--templates", fitted, "--out", out, *chunk).exit_code == 0
            tables.append([line.split("\t")[:6] for line in out.read_text().splitlines()])
        assert tables[0] == tables[1] == tables[2]
        assert tables[0][0] == ["onset", "duration", "band", "state", "start", "samples"]
        assert len(tables[0]) > 10 * SECONDS
        card = json.loads((tmp_path / "0.json").read_text())
        assert card["statistics"]["broad"]["labelled_s"] + card["statistics"]["broad"]["unlabelled_s"] == pytest.approx(
            SECONDS - 1
        )  # all but the warm-up

    def test_other_montage(self, fitted: Path, tmp_path: Path) -> None:
        path = write_eeg(tmp_path / "few.edf", channels=slice(0, 5))
        message = refused("tokenize", path, "--templates", fitted, "--out", tmp_path / "x.tsv")
        assert "5 of the recipe's 19 channels" in message
        assert list(tmp_path.iterdir()) == [path]  # nothing half written

    def test_missing_channels_are_said(self, fitted: Path, tmp_path: Path) -> None:
        path = write_eeg(tmp_path / "most.edf", channels=slice(0, 17))
        result = invoke("tokenize", path, "--templates", fitted, "--out", tmp_path / "x.tsv")
        assert result.exit_code == 0
        assert "missing channels: O1, O2" in result.output

    def test_wrong_unit(self, recordings: Path, fitted: Path, tmp_path: Path) -> None:
        file = recordings / "rest0.edf"
        message = refused("tokenize", file, "--templates", fitted, "--unit", "V", "--out", tmp_path / "x.tsv")
        assert "would fit uV" in message

    def test_wrong_rate(self, fitted: Path, tmp_path: Path) -> None:
        source = Synthetic(SyntheticSettings(duration_s=SECONDS))
        data = np.concatenate([chunk.data for chunk in source.chunks()]).T
        slow = write_edf(tmp_path / "slow.edf", data[:, ::5], source.info.channels, rates=[50] * len(data))
        message = refused("tokenize", slow, "--templates", fitted, "--out", tmp_path / "x.tsv")
        assert "50 Hz" in message
        assert "100 Hz" in message

    @pytest.mark.parametrize(("name", "keep"), [("empty.edf", 0), ("header.edf", 200), ("cut.edf", 60_000)])
    def test_damaged_files(self, recordings: Path, fitted: Path, tmp_path: Path, name: str, keep: int) -> None:
        path = tmp_path / name
        path.write_bytes((recordings / "rest0.edf").read_bytes()[:keep])
        message = refused("tokenize", path, "--templates", fitted, "--out", tmp_path / "x.tsv")
        assert name in message
        assert not (tmp_path / "x.tsv").exists()

    def test_damaged_templates(self, recordings: Path, fitted: Path, tmp_path: Path) -> None:
        folder = tmp_path / "damaged"
        folder.mkdir()
        for file in fitted.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        content = bytearray((folder / "templates.npz").read_bytes())
        content[200] ^= 1
        (folder / "templates.npz").write_bytes(content)
        args = ("tokenize", recordings / "rest0.edf", "--templates", folder, "--out", tmp_path / "x.tsv")
        assert "hash" in refused(*args)

    def test_bad_chunk(self, recordings: Path, fitted: Path, tmp_path: Path) -> None:
        args = ("tokenize", recordings / "rest0.edf", "--templates", fitted, "--out", tmp_path / "x.tsv", "--chunk")
        assert "neither a number of samples from 1 on nor 'random'" in refused(*args, "0")

    def test_a_dead_recording_is_refused(self, fitted: Path, tmp_path: Path) -> None:
        channels = Synthetic(SyntheticSettings()).info.channels
        path = write_edf(tmp_path / "flat.edf", np.zeros((19, 5000)), names=channels)
        message = refused("tokenize", path, "--templates", fitted, "--out", tmp_path / "x.tsv")
        assert "flat.edf" in message
        assert "Fp1" in message

    def test_four_bands_are_interleaved(self, recordings: Path, tmp_path: Path) -> None:
        out, table = tmp_path / "bands", tmp_path / "tokens.tsv"
        recipe = ROOT / "configs" / "four-bands.yaml"
        fit = ("templates", "fit", recordings, "-k", 3, "--starts", 5, "--recipe", recipe, "--out", out)
        assert invoke(*fit).exit_code == 0
        assert invoke("tokenize", recordings / "rest1.edf", "--templates", out, "--out", table).exit_code == 0
        rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
        ends = [int(row[4]) + int(row[5]) for row in rows]
        assert ends == sorted(ends)
        for band in ("theta", "alpha", "low-beta", "high-beta"):
            samples = [int(row[5]) for row in rows if row[2] == band]
            assert sum(samples) == 250 * (SECONDS - 1)  # each band tiles all but the warm-up

    def test_nothing_foreign_is_overwritten(self, recordings: Path, fitted: Path, tmp_path: Path) -> None:
        recording = tmp_path / "my.edf"
        recording.write_bytes((recordings / "rest0.edf").read_bytes())
        sidecar = tmp_path / "sub-01_eeg.json"
        sidecar.write_text("{}")
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        args = ("tokenize", recording, "--templates", fitted, "--out")
        assert "no token table" in refused(*args, recording)
        assert "would overwrite" in refused(*args, tmp_path / "sub-01_eeg.tsv")
        assert "another ending" in refused(*args, tmp_path / "tokens.json")
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

    def test_own_output_may_be_written_again(self, recordings: Path, fitted: Path, tmp_path: Path) -> None:
        args = ("tokenize", recordings / "rest0.edf", "--templates", fitted, "--out", tmp_path / "t.tsv")
        assert [invoke(*args).exit_code for _ in range(2)] == [0, 0]

    def test_shorter_than_the_warm_up(self, fitted: Path, tmp_path: Path) -> None:
        path = write_eeg(tmp_path / "short.edf", seconds=1)
        assert "warm-up" in refused("tokenize", path, "--templates", fitted, "--out", tmp_path / "x.tsv")

    def test_templates_without_a_recipe(self, recordings: Path, fitted: Path, tmp_path: Path) -> None:
        folder = tmp_path / "odd"
        folder.mkdir()
        (folder / "templates.npz").write_bytes((fitted / "templates.npz").read_bytes())
        card = json.loads((fitted / "templates.json").read_text())
        (folder / "templates.json").write_text(json.dumps(card | {"recipe": {"bandz": 1}}))
        for args in (("inspect", folder), ("templates", "show", folder)):
            assert "bandz" in refused(*args)


class TestInspect:
    def test_recording(self, recordings: Path) -> None:
        result = invoke("inspect", recordings / "rest0.edf", "--json")
        (found,) = json.loads(result.output)
        assert found["rate_hz"] == 250
        assert found["duration_s"] == SECONDS
        assert len(found["scalp"]) == 19
        assert found["fitting_units"][0] == "V"

    def test_folder_with_a_bad_file_says_so_and_fails(self, recordings: Path, tmp_path: Path) -> None:
        (tmp_path / "good.edf").write_bytes((recordings / "rest0.edf").read_bytes())
        (tmp_path / "bad.edf").write_bytes(b"")
        result = invoke("inspect", tmp_path)
        assert result.exit_code == 2
        assert "bad.edf" in result.stderr
        assert "good.edf" in result.output

    def test_templates(self, fitted: Path) -> None:
        assert "4 states" in invoke("inspect", fitted).output

    def test_nothing_there(self, tmp_path: Path) -> None:
        assert "does not exist" in refused("inspect", tmp_path / "none.edf")


def test_convert_overwrites_nothing_foreign(fitted: Path, tmp_path: Path) -> None:
    recording = tmp_path / "my_raw.fif"
    recording.write_bytes(b"a recording")
    assert "no pycrostates clustering" in refused("templates", "convert", fitted, recording)
    assert recording.read_bytes() == b"a recording"
    assert "does not exist" in refused("templates", "convert", fitted, tmp_path / "none" / "t.fif")
    assert invoke("templates", "convert", fitted, tmp_path / "t.fif").exit_code == 0
    assert "already" in refused("templates", "convert", tmp_path / "t.fif", fitted)


def test_fit_refuses_a_file_named_twice_and_a_folder_it_cannot_write(recordings: Path, tmp_path: Path) -> None:
    file = recordings / "rest0.edf"
    assert "named twice" in refused("templates", "fit", file, file, "-k", 4, "--out", tmp_path / "x")
    (tmp_path / "file").write_text("")
    assert "cannot be made" in refused("templates", "fit", file, "-k", 4, "--out", tmp_path / "file" / "x")


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch, recordings: Path) -> None:
    monkeypatch.setitem(sys.modules, "mne", None)
    assert "pip install 'rtbrain[files]'" in refused("inspect", recordings / "rest0.edf")


def test_fif_of_pycrostates_round_trip(fitted: Path, tmp_path: Path) -> None:
    from rtbrain.microstates.templates import load

    assert invoke("templates", "convert", fitted, tmp_path / "t.fif").exit_code == 0
    assert invoke("templates", "convert", tmp_path / "t.fif", tmp_path / "back").exit_code == 0
    before, after = load(fitted), load(tmp_path / "back")
    assert before.channels == after.channels
    np.testing.assert_allclose(before.maps[0], after.maps[0], atol=1e-12)
    import pycrostates.io

    cluster = pycrostates.io.read_cluster(str(tmp_path / "t.fif"))
    np.testing.assert_allclose(cluster.cluster_centers_, before.maps[0], atol=1e-12)


def test_help_is_light() -> None:
    """`rtbrain --help` loads nothing heavy, which keeps it under 0.3 s of CPU (the time itself is not asserted)."""
    code = "import sys, rtbrain.cli; print([m for m in ('numpy', 'mne', 'rich', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_unknown_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch, recordings: Path) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("rtbrain.inspection.inspect_recording", broken)
    with pytest.raises(ZeroDivisionError):
        invoke("inspect", recordings / "rest0.edf")
