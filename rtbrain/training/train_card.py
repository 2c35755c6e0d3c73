"""What a bundle says about its own making: where it comes from, what was measured, when its answers may be trusted."""

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import rtbrain
from rtbrain.decoder.bundle import Trust
from rtbrain.microstates.stats import pooled
from rtbrain.published import StateStatistics
from rtbrain.tokenizing import Tokenized
from rtbrain.training.batches import TokenSequence
from rtbrain.training.calibrate import log_loss
from rtbrain.training.corpus_cache import program
from rtbrain.training.evaluate import Plan
from rtbrain.training.export import Agreement
from rtbrain.training.fit import Trained, calibration_answers
from rtbrain.training.fit_settings import TrainSettings
from rtbrain.training.folds import Fold
from rtbrain.training.metrics import Answered, Scores, numbered, score
from rtbrain.trust import WINDOW_S, RecentFit

ASKED_S = (10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Seconds of EEG after which accuracy is measured."""
LEAST_CONTEXT_S = 10.0
MOST_AGE_S = 1.0
USUAL_QUALITY = 0.8
"""An electrode or two may be lost: the templates are made for masks. Asked for unless training had worse."""
SPARE_TOKENS = 1.25


def tokens_at_most(sequences: Sequence[TokenSequence], context_s: float) -> int:
    """Return the tokens that a model must take: what any context of these trials holds, and a quarter more."""
    most = 1
    for piece in (piece for sequence in sequences for piece in sequence.pieces):
        ends = np.searchsorted(piece.end_s, piece.end_s + context_s, "right")
        most = max(most, int((ends - np.arange(len(piece))).max()))
    return int(np.ceil(SPARE_TOKENS * most))


def trust_of(results: Iterable[Tokenized], context_s: float, min_coverage: float) -> Trust:
    """Return what answers must rest on: 95 % of the training data's stretches of a few seconds would pass."""
    quality, gev = [], []
    for result in results:
        recent = RecentFit(result.info.rate_hz)
        window = WINDOW_S * result.info.rate_hz
        end = result.tokens.start + result.tokens.duration
        for start in np.arange(end[0] - result.tokens.duration[0], max(end[-1] - window / 2, 1), window):
            recent.clear()
            recent.add(result.tokens.take((end > start) & (end <= start + window)))
            quality.append(recent.quality())
            gev.append(recent.gev())
    low = float(np.quantile(quality, 0.05))
    return Trust(
        min_quality=round(max(min_coverage, min(low, USUAL_QUALITY)), 3),
        min_gev=round(float(np.quantile(gev, 0.05)), 3),
        min_context_s=min(LEAST_CONTEXT_S, context_s),
        max_age_s=MOST_AGE_S,
    )


def statistics_of(results: Iterable[Tokenized]) -> tuple[StateStatistics, ...]:
    """Return each band's microstates over these recordings."""
    return tuple(map(pooled, zip(*(result.statistics.values() for result in results), strict=True)))


def provenance_of(
    planned: Plan, fold: Fold, seed: int, preset: str, settings: TrainSettings, trained: Trained
) -> dict[str, Any]:
    """Return where a model comes from, as plain values."""
    subject = {trial.name: trial.subject for trial in planned.chosen.trials}
    sides = {"train": fold.train, "validation": fold.validation, "left_out": fold.test}
    content = {side: sorted({planned.content[name][0] for name in names}) for side, names in sides.items()}
    return {
        "dataset": planned.config.name,
        "title": planned.config.title,
        "task": planned.task,
        "subjects": {side: sorted({subject[name] for name in names}) for side, names in sides.items()},
        "recordings": content,
        "trials": {side: len(names) for side, names in sides.items()},
        "protocol": "templates and weights on the training people; stopping and calibration on the validation people",
        "preset": preset,
        "settings": asdict(settings),
        "epochs_run": len(trained.history),
        "best_epoch": trained.best_epoch,
        "history": list(trained.history),
        "seed": seed,
        "threads": torch.get_num_threads(),
        "rtbrain": rtbrain.__version__,
        "commit": _commit(),
        "program": program()["rtbrain"],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def metrics_of(
    trained: Trained, validation: Sequence[TokenSequence], nuisance: str, agreement: Agreement
) -> dict[str, Any]:
    """Return what was measured on validation people, with what is not brain beside it."""
    figures = validation_scores(trained, validation)
    asked = calibration_answers(trained.model, validation, trained.settings.context_s)
    losses = [log_loss(*asked, temperature) for temperature in (1.0, trained.temperature)]
    by_seconds = {
        f"{seconds:g}": validation_scores(trained, validation, seconds).accuracy
        for seconds in asked_seconds(validation)
    }
    return {
        "validation": {
            "note": "these people chose epoch and temperature; an honest accuracy comes from `rtbrain evaluate`",
            "people": len(figures.by_person),
            "trials": len(validation),
            "accuracy": figures.accuracy,
            "accuracy_interval": list(figures.accuracy_interval),
            "balanced_accuracy": figures.balanced,
            "auc": figures.auc if np.isfinite(figures.auc) else None,
            "calibration_error": figures.calibration_error,
            "confusion": [list(row) for row in figures.confusion],
            "log_loss_before_calibration": losses[0],
            "log_loss": losses[1],
            "accuracy_by_seconds": by_seconds,
        },
        "nuisance": nuisance,
        "export": {"decoder": agreement.decoder, "step": agreement.step, "lengths": list(agreement.lengths)},
    }


def validation_scores(trained: Trained, validation: Sequence[TokenSequence], seconds: float | None = None) -> Scores:
    """Return the figures of a model on people, after so many seconds of each trial or after all."""
    labels = np.array([each.label for each in validation])
    people, names = numbered([each.person for each in validation])
    told = trained.probabilities(validation, seconds)
    return score(Answered(tuple(each.name for each in validation), labels, people, names, told[None]))


def asked_seconds(sequences: Sequence[TokenSequence]) -> list[float]:
    """Return the lengths at which accuracy is measured, besides that of whole trials."""
    longest = max(float(piece.end_s[-1] - piece.start_s[0]) for each in sequences for piece in each.pieces)
    return [seconds for seconds in ASKED_S if seconds < longest]


def _commit() -> str:
    """Return the commit of the program where it runs from a repository."""
    where = Path(rtbrain.__file__).parent
    try:
        asked = ["git", "-C", str(where), "describe", "--always", "--dirty", "--abbrev=40"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
