"""An audit as a picture: spectra of classes and filter groups, and what nuisance alone reaches."""

from pathlib import Path
from typing import Any

import numpy as np

from rtbrain.topography import new_figure, write_figure
from rtbrain.training.nuisance.audit import Audit
from rtbrain.training.nuisance.lines import BAND_HZ
from rtbrain.training.nuisance.score import Score

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_FINDINGS = {"none": "0.6", "notice": "#e69f00", "alarm": "#d55e00"}


def draw_audit(audit: Audit, path: Path) -> None:
    """Write a PNG: median spectra on the left, accuracies with 95 % intervals against the majority on the right."""
    figure = new_figure(12.0, 4.2)
    parts = [[name for name in audit.curves if name in audit.classes]]
    if audit.filters.several:
        parts.append([name for name in audit.curves if name not in audit.classes])
    *spectra, bars = figure.subplots(1, len(parts) + 1, width_ratios=[3] * len(parts) + [4])
    for axis, names, title in zip(spectra, parts, ("by class", "by recording filter"), strict=False):
        for colour, name in zip(_COLOURS, names, strict=False):
            curve = np.array(audit.curves[name][2:])
            axis.plot((np.arange(len(curve)) + 2) * audit.step_hz, curve, color=colour, lw=1, label=name)
        if audit.lines.base_hz is not None:
            low, high = audit.lines.base_hz
            for k in (k for k in (1, 2, 3) if k * high <= BAND_HZ[1]):  # further up the ranges touch
                label = "lines and their multiples" if k == 1 else None
                axis.axvspan(k * low - 0.1, k * high + 0.1, color="0.88", lw=0, zorder=0, label=label)
        axis.set(xscale="log", xlabel="Hz", ylabel="dB over 1 uV\u00b2/Hz", title=f"median spectrum {title}")
        axis.set_xticks([0.5, 1, 2, 5, 10, 20, 45], ["0.5", "1", "2", "5", "10", "20", "45"])
        axis.set_xticks([], minor=True)
        axis.legend(fontsize=8, loc="lower left")
    _draw_scores(audit, bars)
    figure.suptitle(f"{audit.dataset}, task {audit.task}: nuisance audit ({audit.n_people} people)")
    write_figure(figure, path)


def _draw_scores(audit: Audit, axis: Any) -> None:
    for row, score in enumerate(audit.scores):
        low, high = score.accuracy_interval
        colour = _FINDINGS[score.finding if score in audit.counted else "none"]
        axis.barh(row, score.accuracy, color=colour, height=0.6)
        axis.plot([low, high], [row, row], color="black", lw=1.5)
    axis.axvline(audit.majority, color="black", lw=1, ls="--")
    label = f"accuracy on unseen people, 95 % interval\ndashed: most frequent class, {audit.majority:.2f}"
    axis.set(xlim=(0, 1), xlabel=label, title="what is not brain, alone")
    axis.set_yticks(range(len(audit.scores)), [_label(audit, score) for score in audit.scores])
    axis.invert_yaxis()


def _label(audit: Audit, score: Score) -> str:
    return score.group if score in audit.counted else f"{score.group}\n(cut off by the crop)"
