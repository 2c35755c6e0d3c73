"""NeuroLong on disk: BIDS, a run for each film with rest before and a rating after it, 63 channels at 1000 Hz.

The form `small` is the same with fewer electrodes and samples: an eighth of the data, for a first try.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rtbrain.simulation.layouts.bids import acticap, write_description, write_events, write_recording, write_tsv
from rtbrain.simulation.layouts.plan import Blocks, File, Layout, Scale, Stretch, Take

RATE_HZ: Final = {"bids": 1000, "small": 250}
N_SMALL: Final = 32
"""Electrodes of the form `small`: the first ones of the cap are those of smaller caps."""
TASK: Final = "neurolong"
REST_S: Final = 5.0
RATING_S: Final = 5.0
RATINGS: Final = (-10, -5, 0, 5, 10)
# What films of either polarity are rated, in turn: most as meant, so that polarity and rating are two questions,
# and about as many above 0 as not.
_RATED: Final = {"neg": (-10, -5, 0, 5, -10, -5, -10, -5), "pos": (10, 10, 5, 10)}
_COLUMNS: Final = ("video_id", "stim_valence", "valence_rating")


def _plan(scale: Scale) -> list[File]:
    channels = acticap()[:N_SMALL] if scale.form == "small" else acticap()
    files = []
    for subject in range(scale.subjects):
        person = f"sub-{subject + 1:02d}"
        for run, film in enumerate(_films(scale, subject), 1):
            name = f"{person}_task-{TASK}_run-{run:02d}"
            rating = int(film["valence_rating"])
            stretches = (
                Stretch(REST_S, code=1, fields={"trial_type": "rest"}),
                Stretch(scale.trial_s, RATINGS.index(rating), f"{name}_trial-01", 2, {"trial_type": "video", **film}),
                Stretch(RATING_S, code=3, fields={"trial_type": "rating"}),
            )
            take = Take(subject, run - 1, channels, RATE_HZ[scale.form], stretches)
            files.append(File(f"{person}/eeg/{name}_eeg.vhdr", person, (take,)))
    return files


def _films(scale: Scale, subject: int) -> list[dict[str, str | float]]:
    """Return the films in the order that the person sees them; two of three are negative, as in the set."""
    rng = scale.rng(subject)
    n_negative = scale.trials - scale.trials // 3
    polarity = ["neg"] * n_negative + ["pos"] * (scale.trials - n_negative)
    films: list[dict[str, str | float]] = []
    for valence in ("neg", "pos"):
        videos = [video for video, each in enumerate(polarity, 1) if each == valence]
        turns = _RATED[valence]
        ratings = rng.permutation([turns[i % len(turns)] for i in range(len(videos))])
        films += [
            {"video_id": f"v{video:02d}", "stim_valence": valence, "valence_rating": float(rating)}
            for video, rating in zip(videos, ratings, strict=True)
        ]
    return [films[i] for i in rng.permutation(len(films))]


def _write(folder: Path, file: File, blocks: Blocks) -> None:
    (take,) = file.takes
    stem = (folder / file.path).with_name(Path(file.path).name.removesuffix("_eeg.vhdr"))
    write_recording(stem, take, blocks, TASK)
    write_events(stem, take, _COLUMNS)


def _tables(folder: Path, files: Sequence[File], scale: Scale) -> None:
    people = sorted({file.person for file in files})
    write_description(folder, "NeuroLong", [{"participant_id": person} for person in people])
    for person in people:
        films = [
            each.fields for file in files if file.person == person for take in file.takes for each in take.stretches
        ]
        beh = folder / person / "beh"
        beh.mkdir(parents=True, exist_ok=True)
        rows = [film for film in films if "video_id" in film]
        write_tsv(beh / f"{person}_task-{TASK}_beh.tsv", ("video_id", "valence_rating"), rows)


LAYOUT: Final = Layout(
    plan=_plan,
    write=_write,
    tables=_tables,
    subjects=3,
    labels="trial",
    n_classes=5,
    forms=("bids", "small"),
    minutes=8.25,
    trials=6,
    most_trials=99,
)
