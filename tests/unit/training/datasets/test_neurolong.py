import numpy as np
import pytest

from rtbrain.errors import SourceError
from rtbrain.training.dataset_config import Crop, load_dataset_config
from rtbrain.training.datasets import choose, load
from tests.recording_writers import INDEX, read
from tests.unit.training.datasets.bids_writer import write_recording, write_table

RATINGS = {"1": -10, "2": 0, "3": 5}
EVENTS = "sub-01/eeg/sub-01_task-neurolong_run-01_events.tsv"
BEHAVIOUR = "sub-01/beh/sub-01_task-neurolong_beh.tsv"


@pytest.fixture
def config():
    return load_dataset_config("neurolong")


@pytest.fixture
def root(tmp_path):
    """One recording with three videos, ratings in beh.tsv."""
    write_recording(tmp_path, "sub-01_task-neurolong_run-01")
    write_table(
        tmp_path / EVENTS,
        "onset duration trial_type value video_id stim_valence",
        "0.0 0.1 rest 1 n/a n/a",
        "0.5 1.0 video 2 1 neg",
        "1.5 0.2 rating 3 1 n/a",
        "1.7 1.0 video 2 2 neg",
        "2.8 1.0 video 2 3 pos",
    )
    write_table(
        tmp_path / BEHAVIOUR, "video_id valence_rating", *(f"0{video} {rating}" for video, rating in RATINGS.items())
    )
    return tmp_path


def labels(found, config, task):
    return [trial.label for trial in choose(found, config.tasks[task], Crop(seconds=0.8)).trials]


def test_ratings_of_beh_are_joined_on_the_video(root, config):
    found = load(config, root)
    assert found.problems == ()
    assert labels(found, config, "subjective-2") == [0, 0, 1]
    assert labels(found, config, "subjective-3") == [0, 1, 2]
    assert labels(found, config, "subjective-5") == [0, 2, 3]
    assert labels(found, config, "stimulus-2") == [0, 0, 1]
    assert [trial.stimulus for trial in found.trials] == ["1", "2", "3"]
    assert np.rint(read(found.trials[0].open())[0][:, INDEX] * 1e6).tolist() == list(range(125, 375))


def test_ratings_of_events_do_as_well(root, config):
    (root / BEHAVIOUR).unlink()
    lines = (root / EVENTS).read_text().splitlines()
    marks = ["valence_rating", "n/a", "-10", "n/a", "0", "5"]
    (root / EVENTS).write_text("\n".join(f"{line}\t{mark}" for line, mark in zip(lines, marks, strict=True)))
    assert labels(load(config, root), config, "subjective-5") == [0, 2, 3]


def test_ratings_in_both_that_agree_are_taken_and_that_disagree_refused(root, config):
    lines = (root / EVENTS).read_text().splitlines()
    for second in ("0", "10"):
        marks = ["valence_rating", "n/a", "n/a", "n/a", second, "5"]
        (root / EVENTS).write_text("\n".join(f"{line}\t{mark}" for line, mark in zip(lines, marks, strict=True)))
        if second == "0":
            assert labels(load(config, root), config, "subjective-5") == [0, 2, 3]
            continue
        with pytest.raises(
            SourceError, match=r"video 2: valence_rating is 10 in events.tsv, 0 in .*_beh\.tsv"
        ) as caught:
            load(config, root)
        assert "correct one of the two" in str(caught.value)


def test_a_rated_video_that_no_event_shows_is_reported(root, config):
    with (root / BEHAVIOUR).open("a") as file:
        file.write("9\t5\n")
    (problem,) = load(config, root).problems
    assert problem.where == str(root / BEHAVIOUR)
    assert "rates video 9, which no usable event of sub-" in problem.what


def test_tables_of_another_experiment_are_left_alone(root, config):
    write_table((root / BEHAVIOUR).parent / "sub-01_task-quiz_beh.tsv", "answer", "42")
    assert load(config, root).problems == ()


def test_two_ratings_of_one_video_are_refused(root, config):
    with (root / BEHAVIOUR).open("a") as file:
        file.write("1\t5\n")
    with pytest.raises(SourceError, match=r"_beh\.tsv: valence_rating of video 1 is 5 here and -10 in another row"):
        load(config, root)


def test_a_video_without_a_rating_is_reported(root, config):
    write_table(root / BEHAVIOUR, "video_id valence_rating", "1 -10", "2 n/a", "3 5")
    found = choose(load(config, root), config.tasks["subjective-3"], Crop(seconds=0.8))
    assert [trial.label for trial in found.trials] == [0, 2]
    assert "has no valence_rating" in found.problems[0].what


def test_ratings_that_cannot_be_joined_are_refused(root, config):
    write_table(root / BEHAVIOUR, "clip valence_rating", "1 -10")
    with pytest.raises(SourceError, match=r"_beh\.tsv: no column video_id"):
        load(config, root)


def test_without_any_rating_the_other_task_remains(root, config):
    (root / BEHAVIOUR).unlink()
    found = load(config, root)
    assert len(found.problems) == 3
    assert labels(found, config, "stimulus-2") == [0, 0, 1]
    with pytest.raises(SourceError, match="no trial has the field 'valence_rating'"):
        labels(found, config, "subjective-2")
