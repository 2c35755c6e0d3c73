"""A corpus is what `tokenize` gives, made once: nothing stale, nothing lost, nothing half written."""

import os
import time
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rtbrain.errors import ConfigError, SourceError
from rtbrain.microstates.templates import Templates
from rtbrain.sources.recording import open_recording
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from rtbrain.tokenizing import tokenize
from rtbrain.training import corpus_cache
from rtbrain.training.corpus import tokenise_corpus
from rtbrain.training.dataset_config import Crop
from rtbrain.training.datasets import crop_trial
from rtbrain.training.trials import Trial
from tests.recording_writers import write_edf
from tests.unit.training.corpus_trials import SECONDS, files_of, make_templates, make_trials, same, trial_of


@pytest.fixture(scope="module")
def templates() -> Templates:
    return make_templates()


@pytest.fixture
def trials(tmp_path: Path) -> list[Trial]:
    return make_trials(tmp_path / "set")


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_corpus_is_what_tokenize_gives(trials, templates, tmp_path, workers):
    seen = []
    corpus = tokenise_corpus(trials, templates, tmp_path / "c", workers, lambda what, share: seen.append((what, share)))
    assert list(corpus) == list(corpus.made) == ["s0", "s1", "s2"]
    for trial in trials:
        assert same(corpus[trial.name], tokenize(trial.open(), templates))
    assert seen[-1] == ("tokens of 3 recordings", 1.0)
    assert all(0 <= share <= 1 for _, share in seen)


def test_a_health_report_survives_the_cache(templates, tmp_path):
    source = Synthetic(SyntheticSettings(duration_s=SECONDS))
    data = np.concatenate([chunk.data for chunk in source.chunks()]).T
    data[2, 1000:2000] = 0.0  # a dead electrode, and one that is not there at all
    trial = trial_of(write_edf(tmp_path / "x.edf", data[1:], source.info.channels[1:]))
    found = tokenise_corpus([trial], templates, tmp_path / "c")["x"]
    assert found.missing_channels == source.info.channels[:1]
    assert found.bad_share
    assert same(found, tokenize(trial.open(), templates))


def test_the_second_run_makes_nothing(trials, templates, tmp_path):
    tokenise_corpus(trials, templates, tmp_path / "c", 1)
    before = files_of(tmp_path / "c")
    again = tokenise_corpus(trials, templates, tmp_path / "c", 1)
    assert again.made == ()
    assert files_of(tmp_path / "c") == before
    moved = tmp_path / "set" / "s0.edf"
    (tmp_path / "elsewhere").mkdir()
    there = moved.rename(tmp_path / "elsewhere" / "s0.edf")  # where a file lies is no part of what is in it
    assert tokenise_corpus([trial_of(there)], templates, tmp_path / "c", 1).made == ()


def test_a_change_in_place_with_the_same_size_and_time_is_noticed(trials, templates, tmp_path):
    old = tokenise_corpus(trials, templates, tmp_path / "c", 1)
    path = trials[1].files[0]
    status, content = path.stat(), bytearray(path.read_bytes())
    content[-20_000:] = content[-40_000:-20_000]
    with path.open("r+b") as file:  # the same inode
        file.write(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    new = tokenise_corpus(trials, templates, tmp_path / "c", 1)
    assert new.made == ("s1",)
    assert not same(new["s1"], old["s1"])
    assert same(new["s1"], tokenize(trials[1].open(), templates))


def other_recipe(templates: Templates) -> Templates:
    return replace(templates, recipe=templates.recipe | {"min_duration_ms": 20.0})


def other_maps(templates: Templates) -> Templates:
    return replace(templates, maps=(templates.maps[0][::-1].copy(),))


@pytest.mark.parametrize("change", [other_recipe, other_maps])
def test_other_templates_or_recipes_never_reuse(trials, templates, tmp_path, change):
    tokenise_corpus(trials[:1], templates, tmp_path / "c", 1)
    changed = change(templates)
    corpus = tokenise_corpus(trials[:1], changed, tmp_path / "c", 1)
    assert corpus.made == ("s0",)
    assert same(corpus["s0"], tokenize(trials[0].open(), changed))
    assert tokenise_corpus(trials[:1], templates, tmp_path / "c", 1).made == ()  # the first are still there


def test_other_seconds_never_reuse(trials, templates, tmp_path):
    first, second = (crop_trial(trials[0], Crop(6, start_s)) for start_s in (0.0, 3.0))
    tokenise_corpus([first], templates, tmp_path / "c", 1)
    assert tokenise_corpus([second], templates, tmp_path / "c", 1).made == ("s0",)
    assert tokenise_corpus([first], templates, tmp_path / "c", 1).made == ()


def test_another_program_never_reuses(trials, templates, tmp_path, monkeypatch):
    tokenise_corpus(trials[:1], templates, tmp_path / "c", 1)
    monkeypatch.setattr(corpus_cache, "program", lambda: {"rtbrain": "of another day"})
    assert tokenise_corpus(trials[:1], templates, tmp_path / "c", 1).made == ("s0",)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "swapped"])
def test_a_damaged_entry_is_noticed_and_made_again(trials, templates, tmp_path, damage):
    corpus = tokenise_corpus(trials[:2], templates, tmp_path / "c", 1)
    right, (path, _) = corpus["s0"], corpus.entries["s0"]
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        with zipfile.ZipFile(path) as archive:  # one bit of one token's GFP, where nothing but a checksum can tell
            at = archive.getinfo("gfp.npy").header_offset + 1000
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.write_bytes(corpus.entries["s1"][0].read_bytes())
    with pytest.raises(SourceError, match="tokenize the set again"):
        corpus["s0"]
    again = tokenise_corpus(trials[:2], templates, tmp_path / "c", 1)
    assert again.made == ("s0",)
    assert "'s0' is tokenized again" in again.notices[0]
    assert path.name in again.notices[0]
    assert same(again["s0"], right)


def test_an_entry_that_another_run_tidied_away_is_called_so(trials, templates, tmp_path):
    corpus = tokenise_corpus(trials[:1], templates, tmp_path / "c", 1)
    path, _ = corpus.entries["s0"]
    path.unlink()
    with pytest.raises(SourceError, match=rf"{path.name} is gone: another run .* run this again"):
        corpus["s0"]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_one_bad_recording_is_named_and_the_others_go_on(trials, templates, tmp_path, workers):
    (tmp_path / "set" / "s1.edf").write_bytes(b"no EDF" * 100)
    (tmp_path / "set" / "s0.edf").unlink()
    with pytest.raises(SourceError) as caught:
        tokenise_corpus(trials, templates, tmp_path / "c", workers)
    text = str(caught.value)
    assert "2 of 3 trials" in text
    assert "s0: " in text
    assert "put it back" in text
    assert "s1: " in text
    assert [path.name.split("-")[0] for path in (tmp_path / "c").iterdir()] == ["s2"]
    assert tokenise_corpus(trials[2:], templates, tmp_path / "c", workers).made == ()


def open_and_touch(path: Path) -> object:
    """Open a recording that somebody writes to at the same time."""
    with path.open("ab") as file:
        file.write(b" ")
    return Synthetic(SyntheticSettings(duration_s=SECONDS))


def open_nothing(path: Path) -> object:
    raise ValueError("what no reader should say")


@pytest.mark.parametrize(("opened", "said"), [(open_and_touch, "changed while"), (open_nothing, "ValueError: what no")])
def test_what_goes_wrong_on_the_way_is_said_and_leaves_no_entry(trials, templates, tmp_path, opened, said):
    trial = replace(trials[0], open=partial(opened, trials[0].files[0]))
    with pytest.raises(SourceError, match=said):
        tokenise_corpus([trial], templates, tmp_path / "c", 1)
    assert list((tmp_path / "c").iterdir()) == []


def test_wrong_calls_are_refused(trials, templates, tmp_path):
    cache = tmp_path / "c"
    for wrong, said in (
        ([], "at least one"),
        ([trials[0], trials[0]], "1 names"),
        ([replace(trials[0], open=lambda: open_recording(trials[0].files[0]))], "functools.partial"),
        ([replace(trials[0], files=trials[1].files)], "not among its files"),
    ):
        with pytest.raises(ConfigError, match=said):
            tokenise_corpus(wrong, templates, cache)
    with pytest.raises(ConfigError, match="0 workers"):
        tokenise_corpus(trials, templates, cache, 0)
    with pytest.raises(ConfigError, match="no trial 'x'"):
        tokenise_corpus(trials[:1], templates, cache, 1)["x"]


def test_what_a_killed_run_left_is_cleared_away(trials, templates, tmp_path):
    cache = tmp_path / "c"
    cache.mkdir()
    old, fresh = cache / ".7-s0-abc.npz", cache / ".8-s0-abc.npz"
    for path in (old, fresh):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 3600,) * 2)
    tokenise_corpus(trials[:1], templates, cache, 1)
    assert not old.exists()
    assert fresh.exists()  # another run may be writing it at this moment


def test_a_full_disk_leaves_nothing_half_written(trials, templates, tmp_path, monkeypatch):
    def write_half(file, **_):
        file.write(b"PK half an archive")
        raise OSError(28, "No space left on device")

    right = tokenise_corpus(trials[:1], templates, tmp_path / "c", 1)
    before = files_of(tmp_path / "c")
    monkeypatch.setattr(np, "savez", write_half)
    with pytest.raises(SourceError, match=r"1 of 2 trials[\s\S]*s1: .*No space left"):
        tokenise_corpus(trials[:2], templates, tmp_path / "c", 1)
    with pytest.raises(OSError, match="No space left"):
        corpus_cache.save_entry(*right.entries["s0"], right["s0"])
    assert files_of(tmp_path / "c") == before
