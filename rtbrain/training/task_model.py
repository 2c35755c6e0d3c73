"""The shape of a Brain-Token model for a task, and how it is trained there: the same for a bundle and an evaluation."""

from collections.abc import Sequence
from typing import Any

from rtbrain.training.batches import TokenSequence, seen_s
from rtbrain.training.dataset_config import PaperSettings
from rtbrain.training.model_settings import ModelSettings, preset


def task_model(name: str, states: Sequence[int], n_classes: int, paper: PaperSettings, **changes: Any) -> ModelSettings:
    """Return a preset for a task; those of the paper take the task's own window, or as many segments.

    The paper's number may mean either: `paper-text` reads it as tokens, `paper-table` as segments.
    """
    if name == "paper-text":
        changes = {"window": paper.window, **changes}
    elif name == "paper-table":
        changes = {"window": None, "segments": paper.window, **changes}
    return preset(name, states, n_classes, **changes)


def context_within(asked_s: float, train: Sequence[TokenSequence]) -> float:
    """Return the context: never longer than what at least half of the training trials show in one piece."""
    lengths = sorted(seen_s(sequence) for sequence in train)
    return round(min(asked_s, lengths[len(lengths) // 2]), 3)
