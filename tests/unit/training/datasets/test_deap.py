import codecs
import os
import pickle
import struct
from dataclasses import replace

import edfio
import numpy as np
import pytest

from rtbrain.errors import SourceError
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.datasets import choose, load
from rtbrain.training.datasets.deap import CHANNELS
from tests.recording_writers import read

RATE = 64
COLUMNS = "Participant_id,Trial,Experiment_id,Start_time,Valence,Arousal,Dominance,Liking,Familiarity"
VIDEOS = (7, 3, 12)  # as they were played
VALENCE = (5.0, 5.01, 8.0)


@pytest.fixture
def config():
    return load_dataset_config("deap")


@pytest.fixture
def preprocessed(config):
    return replace(config, options={"form": "preprocessed"})


def write_bdf(path, onsets_s, *, labels=("Status",), high_bits=0, seed=0):
    """32 EEG channels in another order than the set's, one peripheral, the trigger channel last."""
    n = 210 * RATE
    names = [*CHANNELS[::-1], "EXG1"]
    x = np.random.default_rng(seed).normal(0, 20, (len(names), n))
    x[names.index("Cz")] = np.arange(n) / 10
    code = np.full(n, high_bits)
    for onset in onsets_s:
        code[round(onset * RATE) : round((onset + 0.5) * RATE)] |= 4
        code[round((onset - 3) * RATE) : round((onset - 2.5) * RATE)] |= 3
    signals = [
        edfio.BdfSignal(row, RATE, label=name, physical_dimension="uV") for row, name in zip(x, names, strict=True)
    ]
    limits = (-(2**23), 2**23 - 1)
    for label in labels:
        values = code if label is labels[-1] else np.zeros(n)
        signals.append(
            edfio.BdfSignal(
                values.astype(float), RATE, label=label, physical_dimension="Boolean", physical_range=limits
            )
        )
    path.parent.mkdir(exist_ok=True)
    edfio.Bdf(signals).write(path)
    return path


def write_ratings(root, subjects=(1,), videos=VIDEOS):
    folder = root / "metadata_csv"
    folder.mkdir(exist_ok=True)
    rows = [
        f"{subject},{trial},{video},0,{VALENCE[trial - 1]},2,3,4,{'' if subject == 2 else 1}"
        for subject in subjects
        for trial, video in enumerate(videos, 1)
    ]
    (folder / "participant_ratings.csv").write_text("\n".join([COLUMNS, *rows]))


@pytest.mark.parametrize(
    ("labels", "high_bits"), [(("Status",), 0), (("",), 1638144), (("", ""), 1703680)], ids=["s01", "s24", "s29"]
)
def test_original_recordings_with_their_trigger_traps(labels, high_bits, tmp_path, config):
    write_bdf(tmp_path / "data_original/s01.bdf", (10, 75.5, 140), labels=labels, high_bits=high_bits)
    write_ratings(tmp_path)
    found = load(config, tmp_path)
    assert found.problems == ()
    chosen = choose(found, config.tasks["valence-2"], config.crop)
    assert [(t.name, t.label) for t in chosen.trials] == [("s01_video-07", 0), ("s01_video-03", 1), ("s01_video-12", 1)]
    assert found.trials[0].fields == {"valence": 5, "arousal": 2, "dominance": 3, "liking": 4, "familiarity": 1}
    source = chosen.trials[1].open()
    assert source.info.channels == CHANNELS
    counted = np.rint(read(source)[0][:, CHANNELS.index("Cz")] * 1e7)
    assert np.array_equal(counted, np.arange(75.5 * RATE, 135.5 * RATE))


def test_missing_trials_must_be_declared(tmp_path, config):
    write_bdf(tmp_path / "data_original/s28.bdf", (10, 140))
    write_bdf(tmp_path / "data_original/s02.bdf", (10, 75, 140), seed=1)
    write_ratings(tmp_path, (2, 28))
    found = load(replace(config, options={}), tmp_path)
    assert {t.subject for t in found.trials} == {"s02"}
    assert "familiarity" not in found.trials[0].fields
    assert "2 videos begin (trigger 4), participant_ratings.csv has 3" in found.problems[0].what
    found = load(replace(config, options={"missing_trials": {"s28": [2]}}), tmp_path)
    assert [t.stimulus for t in found.trials if t.subject == "s28"] == ["video-07", "video-12"]


def test_damaged_recordings_are_reported(tmp_path, config):
    folder = tmp_path / "data_original"
    whole = write_bdf(folder / "s01.bdf", (10, 75, 140)).read_bytes()
    write_bdf(folder / "s02.bdf", (10, 75, 190), seed=1)
    (folder / "s03.bdf").write_bytes(whole[:-100])
    (folder / "s04.bdf").write_bytes(whole)
    write_bdf(folder / "s05.bdf", (10, 75, 140), seed=2)
    write_ratings(tmp_path, (1, 2, 3, 4))
    found = load(config, tmp_path)
    assert {t.subject for t in found.trials} == {"s01"}
    assert found.same_person == (("s01", "s04"),)
    said = {p.where.split("/")[-1]: p.what for p in found.problems}
    assert "beyond the end" in said["s02.bdf"]
    assert "cut short" in said["s03.bdf"]
    assert "same recording as s01.bdf" in said["s04.bdf"]
    assert "no rows of s05" in said["s05.bdf"]


def test_a_recording_with_the_ratings_of_two_people_is_not_used(tmp_path, config):
    folder = tmp_path / "data_original"
    whole = write_bdf(folder / "s01.bdf", (10, 75, 140)).read_bytes()
    write_bdf(folder / "s02.bdf", (10, 75, 140), seed=1)
    (folder / "s04.bdf").write_bytes(whole)
    write_ratings(tmp_path, (1, 2, 4))
    table = tmp_path / "metadata_csv/participant_ratings.csv"
    table.write_text(table.read_text().replace("\n4,2,3,0,5.01", "\n4,2,3,0,1.5"))
    found = load(config, tmp_path)
    assert {t.subject for t in found.trials} == {"s02"}
    assert [p.where[-7:] for p in found.problems] == ["s01.bdf", "s04.bdf"]
    assert all("nobody can tell which is right" in p.what for p in found.problems)


def test_two_files_of_one_subject_are_reported(tmp_path, config):
    write_bdf(tmp_path / "data_original/s01.bdf", (10, 75, 140))
    write_bdf(tmp_path / "data_original/s1.bdf", (10, 75, 140), seed=1)
    write_ratings(tmp_path)
    found = load(config, tmp_path)
    assert {t.files[0].name for t in found.trials} == {"s01.bdf"}
    (problem,) = found.problems
    assert problem.where.endswith("s1.bdf")
    assert "as s01.bdf does, but differs" in problem.what


def test_ratings_are_needed_and_must_be_sound(tmp_path, config):
    write_bdf(tmp_path / "data_original/s01.bdf", (10, 75, 140))
    with pytest.raises(SourceError, match=r"participant_ratings\.csv is missing"):
        load(config, tmp_path)
    write_ratings(tmp_path, videos=(7, 3, 7))
    with pytest.raises(SourceError, match=r"trial 3 or video 7 twice"):
        load(config, tmp_path)


def python2_pickle(arrays):
    """What Python 2's numpy wrote: protocol 2, byte strings as str, numpy.core.multiarray."""
    text = lambda s: b"U" + bytes([len(s)]) + s  # noqa: E731
    long = lambda b: b"T" + struct.pack("<i", len(b)) + b  # noqa: E731
    number = lambda n: b"J" + struct.pack("<i", n)  # noqa: E731
    out = b"\x80\x02}("
    for key, x in arrays.items():
        x = np.ascontiguousarray(x, "<f8")
        out += text(key.encode()) + b"cnumpy.core.multiarray\n_reconstruct\n"
        out += b"cnumpy\nndarray\n" + number(0) + b"\x85" + text(b"b") + b"\x87R"
        dtype = b"cnumpy\ndtype\n" + text(b"f8") + number(0) + number(1) + b"\x87R"
        dtype += b"(" + number(3) + text(b"<") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
        shape = b"(" + b"".join(map(number, x.shape)) + b"t"
        out += b"(" + number(1) + shape + dtype + b"\x89" + long(x.tobytes()) + b"tb"
    return out + b"u."


@pytest.fixture
def dat(tmp_path):
    folder = tmp_path / "data_preprocessed_python"
    folder.mkdir()
    x = np.random.default_rng(0).normal(0, 10, (2, 40, 8064))
    labels = np.array([[5.0, 1, 2, 3], [7.5, 4, 5, 6]])
    (folder / "s01.dat").write_bytes(python2_pickle({"labels": labels, "data": x}))
    return tmp_path, x


def test_preprocessed_files(dat, preprocessed):
    root, x = dat
    found = load(preprocessed, root)
    chosen = choose(found, preprocessed.tasks["valence-2"], preprocessed.crop)
    assert [(t.name, t.label) for t in chosen.trials] == [("s01_video-01", 0), ("s01_video-02", 1)]
    source = chosen.trials[1].open()
    assert (source.info.rate_hz, source.info.channels, source.duration_s) == (128, CHANNELS, 60)
    assert np.array_equal(read(source)[0], x[1, :32, 384:].T)
    (problem,) = found.problems
    assert "nothing below 4 Hz" in problem.what


def test_a_file_saved_again_by_python_3_is_read(dat, preprocessed):
    root, x = dat
    content = pickle.dumps({"data": x[:1], "labels": np.ones((1, 4))}, protocol=2)
    (root / "data_preprocessed_python/s02.dat").write_bytes(content)
    found = load(preprocessed, root)
    assert np.array_equal(read(found.trials[-1].open())[0], x[0, :32, 384:].T)


class Hostile:
    def __init__(self, call, *arguments):
        self.reduced = call, arguments

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize("where", ["top", "inside", "eval"])
def test_a_hostile_pickle_is_refused_and_nothing_runs(where, dat, preprocessed, tmp_path):
    root, x = dat
    flag = tmp_path / "ran"
    attack = Hostile(eval, f"open({str(flag)!r}, 'w')") if where == "eval" else Hostile(os.system, f"touch {flag}")
    content = attack if where == "top" else {"data": x[:1], "labels": attack}
    path = root / "data_preprocessed_python/s02.dat"
    path.write_bytes(pickle.dumps(content, protocol=2))
    found = load(preprocessed, root)
    assert {t.subject for t in found.trials} == {"s01"}
    problem = next(p for p in found.problems if p.where == str(path))
    assert "nothing of it was run" in problem.what
    assert "get the original file" in problem.what
    assert not flag.exists()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"data": np.ones((1, 40, 100)), "labels": np.ones((1, 4))}, "are not"),
        ({"data": np.ones((1, 40, 8064)), "labels": np.ones((2, 4))}, "are not"),
        ({"data": np.array([{}], object), "labels": np.ones((1, 4))}, "no plain number"),
        ({"data": np.ones((1, 40, 8064)), "labels": 3}, "no dict of arrays"),
        ({"data": Hostile(codecs.encode, "a", "rot13"), "labels": np.ones((1, 4))}, "text in 'rot13'"),
        ([1, 2], "no dict of arrays"),
    ],
)
def test_other_contents_are_reported(content, what, dat, preprocessed):
    root, _ = dat
    (root / "data_preprocessed_python/s02.dat").write_bytes(pickle.dumps(content, protocol=2))
    assert any(what in p.what for p in load(preprocessed, root).problems)


def test_a_file_cannot_spoil_those_read_after_it(dat, preprocessed):
    """A pickle may set attributes of classes that it can name, unless they refuse."""
    root, x = dat
    poison = b"\x80\x02}(X\x04\x00\x00\x00datac_codecs\nencode\nN}X\x07\x00\x00\x00__new__Ns\x86bu."
    (root / "data_preprocessed_python/s00.dat").write_bytes(poison)
    content = pickle.dumps({"data": x[:1], "labels": np.ones((1, 4))}, protocol=2)  # needs that class
    (root / "data_preprocessed_python/s02.dat").write_bytes(content)
    found = load(preprocessed, root)
    assert {t.subject for t in found.trials} == {"s01", "s02"}
    assert "refused as a pickle" in found.problems[0].what


def test_a_file_of_another_size_is_refused_unread(dat, preprocessed, monkeypatch):
    monkeypatch.setattr("rtbrain.training.datasets.safe_pickle.MAX_BYTES", 1000)
    with pytest.raises(SourceError, match="are too many"):
        load(preprocessed, dat[0])


def test_a_cut_file_is_reported(dat, preprocessed):
    root, _ = dat
    path = root / "data_preprocessed_python/s01.dat"
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(SourceError, match=r"s01\.dat(.|\n)*get the original file again(.|\n)*To be had from"):
        load(preprocessed, root)
