"""Figures of a report, by matplotlib."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rtbrain.messages import FloatArray
from rtbrain.topography import new_figure
from rtbrain.training.evaluate_table import Look
from rtbrain.training.exhibit import MEASURES, Exhibit
from rtbrain.training.metrics import Interval, Scores

COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a4fbf", "#8c6d31", "#444444", "#b2182b",
    "#1b7837", "#999999",
)  # fmt: skip
_SIZE = 9


def statistics_figure(shown: Exhibit, band: str) -> Any:
    """Return bars of each state's coverage, occurrence and duration by class, with 95 % intervals over people."""
    figure = new_figure(11.0, 2.9)
    for axis, (measure, title) in zip(figure.subplots(1, len(MEASURES)), MEASURES.items(), strict=True):
        own = shown.by_class[band][measure]
        width = 0.8 / len(own)
        for i, (name, spread) in enumerate(own.items()):
            at = np.arange(len(spread.mean)) + (i - (len(own) - 1) / 2) * width
            axis.bar(at, spread.mean, width, color=COLOURS[i % len(COLOURS)], label=name)
            if np.isfinite(spread.half).all():
                axis.errorbar(at, spread.mean, spread.half, fmt="none", ecolor="0.25", elinewidth=0.8)
        _plain(axis, title, "state")
        axis.set_xticks(range(len(spread.mean)))
    axis.legend(fontsize=_SIZE - 1)
    return figure


def over_time_figure(
    curves: Mapping[str, Mapping[str, tuple[float, Interval]]], chance: float, people: str = "unseen people"
) -> Any:
    """Return accuracy against the seconds of EEG seen; the last point is the whole trial."""
    figure = new_figure(9.0, 4.0)
    axis = figure.subplots()
    lengths = list(next(iter(curves.values())))
    for i, (name, own) in enumerate(curves.items()):
        shift = 0.06 * (i - (len(curves) - 1) / 2)
        means = np.array([own[each][0] for each in lengths])
        low, high = np.array([own[each][1] for each in lengths]).T
        at, colour = np.arange(len(lengths)) + shift, COLOURS[i % len(COLOURS)]
        axis.errorbar(at, means, [means - low, high - means], fmt="o-", ms=4, lw=1.4, elinewidth=0.6, color=colour)
        axis.plot([], [], "o-", ms=4, color=colour, label=name)
    axis.axhline(chance, color="0.5", lw=1, ls=":", label="chance")
    axis.set_xticks(range(len(lengths)), [each if each == "all" else f"{each} s" for each in lengths])
    axis.set_ylim(0, 1.02)
    _plain(axis, f"accuracy on {people}, 95 % intervals", "EEG seen after the warm-up")
    axis.legend(fontsize=_SIZE - 1, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def confusion_figure(scores: Mapping[str, Scores], classes: Sequence[str]) -> Any:
    """Return a matrix for each method: rows are true classes, columns what was said, in shares of the row."""
    columns = min(4, len(scores))
    rows = -(-len(scores) // columns)
    side = 1.3 + 0.55 * len(classes)
    figure = new_figure(columns * (side + 0.5), rows * (side + 0.2))
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(scores) :]:
        axis.set_axis_off()
    for axis, (name, own) in zip(axes, scores.items(), strict=False):
        counts = np.array(own.confusion)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)
        axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        for (i, j), share in np.ndenumerate(shares):
            colour = "white" if share > 0.6 else "0.15"
            axis.text(j, i, f"{share:.2f}\n{counts[i, j]:.4g}", ha="center", va="center", fontsize=8, color=colour)
        axis.set_xticks(range(len(classes)), classes, fontsize=8, rotation=30, ha="right")
        axis.set_yticks(range(len(classes)), classes, fontsize=8)
        axis.set_title(name, fontsize=_SIZE)
        axis.spines[:].set_visible(False)
    return figure


def reliability_figure(scores: Mapping[str, Scores]) -> Any:
    """Return, for each method, the share that is right against the confidence; points grow with their answers."""
    columns = min(4, len(scores))
    rows = -(-len(scores) // columns)
    figure = new_figure(2.6 * columns, 2.6 * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(scores) :]:
        axis.set_axis_off()
    for i, (axis, (name, own)) in enumerate(zip(axes, scores.items(), strict=False)):
        share, confidence, right = np.array(own.reliability).T
        axis.plot([0, 1], [0, 1], color="0.6", lw=1, ls=":")
        axis.plot(confidence, right, "-", lw=1, color=COLOURS[i % len(COLOURS)])
        axis.scatter(confidence, right, 12 + 140 * share, color=COLOURS[i % len(COLOURS)], alpha=0.8)
        axis.set(xlim=(0, 1.03), ylim=(-0.03, 1.03))
        _plain(axis, f"{name} (ECE {own.calibration_error:.2f})", "confidence")
    axes[0].set_ylabel("share right", fontsize=_SIZE)
    return figure


def attention_figure(look: Look) -> Any:
    """Return how CLS divides its attention over a context."""
    figure = new_figure(11.0, 2.6)
    axis = figure.subplots()
    shown = look.attention
    step = shown.seconds[1] - shown.seconds[0] if len(shown.seconds) > 1 else 1.0
    for i, own in enumerate(shown.layers):
        axis.step(shown.seconds, own, where="mid", lw=1.2, color=COLOURS[i], label=f"layer {i + 1}")
    axis.axhline(1 / len(shown.seconds), color="0.5", lw=1, ls=":", label="all tokens alike")
    _plain(axis, f"{look.method}, {shown.trial}: {look.said}", "seconds")
    axis.set_ylabel(f"share per {step:g} s", fontsize=_SIZE)
    axis.set_ylim(0, None)
    axis.legend(fontsize=_SIZE - 1, loc="upper right", ncols=4)
    return figure


def history_figure(history: Sequence[Mapping[str, float]], best: int) -> Any:
    """Return the losses and the validation accuracy by epoch."""
    figure = new_figure(9.0, 3.0)
    losses, accuracy = figure.subplots(1, 2)
    epochs = np.arange(1, len(history) + 1)
    for colour, (name, label) in zip(
        COLOURS, {"loss": "training", "validation_loss": "validation people"}.items(), strict=False
    ):
        losses.plot(epochs, _column(history, name), color=colour, label=label)
    accuracy.plot(epochs, _column(history, "accuracy"), color=COLOURS[1])
    accuracy.set_ylim(0, 1.02)
    for axis, title in ((losses, "loss"), (accuracy, "accuracy on validation people")):
        axis.axvline(best, color="0.6", lw=1, ls="--")
        _plain(axis, title, "epoch (dashed: the one that was kept)")
    losses.legend(fontsize=_SIZE - 1)
    return figure


def _column(history: Sequence[Mapping[str, float]], name: str) -> FloatArray:
    return np.array([each[name] for each in history])


def _plain(axis: Any, title: str, below: str) -> None:
    axis.set_title(title, fontsize=_SIZE + 0.5)
    axis.set_xlabel(below, fontsize=_SIZE)
    axis.tick_params(labelsize=_SIZE - 1)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="0.92", lw=0.8)
    axis.set_axisbelow(True)
