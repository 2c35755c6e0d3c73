"""Every stage with a stream that puts it to the test. A stage that is missing here fails test_completeness."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rtbrain.conditioning.channels import ChannelSettings, PickChannels
from rtbrain.conditioning.continuity import Continuity, ContinuitySettings
from rtbrain.conditioning.filters import Band, BandFilter, NotchSettings, WarmUp
from rtbrain.conditioning.lines import LineCanceller, LineSettings
from rtbrain.conditioning.quality import Quality, QualitySettings
from rtbrain.conditioning.reference import AverageReference
from rtbrain.conditioning.units import ToMicrovolts, UnitSettings
from rtbrain.messages import Chunk, Labels, StreamInfo, own_value
from rtbrain.microstates.assign import AssignSettings, LabelPeaks, LabelSamples
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import Recipe, build
from rtbrain.stage import Chain
from rtbrain.tokens.interleave import Interleave
from rtbrain.tokens.runs import MergeRuns, MinDuration
from tests.streams import NAMES, eeg, faulty

RATE = 250.0
INFO = StreamInfo(RATE, NAMES)


def templates(bands: int = 1) -> Templates:
    rng = np.random.default_rng(7)
    return Templates(NAMES, tuple(referenced(rng.standard_normal((4, len(NAMES)))) for _ in range(bands)))


def plain(n: int, rng: np.random.Generator) -> list[Any]:
    return [Chunk(eeg(n, rng))]


def stamped(n: int, rng: np.random.Generator) -> list[Any]:
    return [faulty(n, rng)]


def untimed_faults(n: int, rng: np.random.Generator) -> list[Any]:
    return [Chunk(faulty(n, rng).data)]


def masked(n: int, rng: np.random.Generator) -> list[Any]:
    """Referenced-like data in homogeneous pieces: other masks, filled samples, channels that come back."""
    data = eeg(n, rng)
    edges = [0, *np.sort(rng.integers(1, n, 3)).tolist(), n]
    pieces = []
    for start, stop in itertools.pairwise(edges):
        good = None if rng.random() < 0.5 else rng.random(len(NAMES)) < 0.85
        fresh = None if rng.random() < 0.7 else rng.random(len(NAMES)) < 0.3
        pieces.append(Chunk(data[start:stop], start, None, good, bool(rng.random() < 0.1), fresh))
    return pieces


def late(n: int, rng: np.random.Generator) -> list[Any]:
    """As masked, but far along on the grid, as after a break; long enough for tokens of slow bands."""
    return [replace(piece, start=piece.start + 50_003) for piece in masked(5 * n, rng)]


def comb(n: int) -> np.ndarray:
    """Return (n, 1) a line and its multiples, which jump from 4.5 to 5.8 Hz halfway."""
    phase = 2 * np.pi * np.cumsum(np.where(np.arange(n) < n // 2, 4.5, 5.8)) / RATE
    return 40 * sum(np.sin(multiple * phase) for multiple in (1, 2, 3, 4))[:, None]


def with_lines(n: int, rng: np.random.Generator) -> list[Any]:
    """As masked, long enough for some looks at lines that move."""
    lines = comb(3 * n)
    return [replace(piece, data=piece.data + lines[piece.start :][: len(piece)]) for piece in masked(3 * n, rng)]


def with_silence(n: int, rng: np.random.Generator) -> list[Any]:
    """Masked data whose field power rises without a peak for 400 ms, so that the longest wait is reached."""
    pieces = masked(n, rng)
    start = pieces[-1].start + len(pieces[-1])
    ramp = np.linspace(1, 50, 100)[:, None] * rng.standard_normal(len(NAMES))
    return [*pieces, Chunk(ramp, start), Chunk(eeg(50, rng), start + 100)]


def labels(n: int, rng: np.random.Generator) -> list[Any]:
    state = np.repeat(rng.integers(-1, 3, n), rng.integers(1, 9, n))[:n]
    gfp, level = rng.uniform(1, 9, n), rng.uniform(3, 5, n)
    along = gfp[:, None] * rng.random((n, 3))
    return [Labels(40, state, own_value(along, state), along, gfp, level, rng.random(n))]


@dataclass(frozen=True)
class Case:
    """One stage (or one setting of it) and its stream."""

    stage: type
    make: Callable[[], Any]
    stream: Callable[[int, np.random.Generator], list[Any]]
    info: StreamInfo = field(default=INFO)
    name: str = ""
    waits: bool = True
    """The stream drives the stage to its declared wait (not where samples are dropped or added on purpose)."""

    def __str__(self) -> str:
        return self.name or self.stage.__name__


def label_settings(rule: str) -> tuple[Any, ...]:
    return templates(), 0, AssignSettings(rule=rule), 0.7


RECIPES = {
    "peaks": Recipe(),
    "samples, minimum duration": Recipe(assign=AssignSettings(rule="samples"), min_duration_ms=24),
    "three bands": Recipe(
        notch=NotchSettings(),
        bands=(Band("theta", 3, 8), Band("alpha", 8, 13), Band("beta", 13, 30, order=3)),
        min_duration_ms=12,
    ),
    "a slow band beside a quick one": Recipe(bands=(Band("slow", 0.5, 2), Band("alpha", 8, 13))),
}

CASES = [
    Case(PickChannels, lambda: PickChannels(ChannelSettings(("O2", "C3", "fp1", "EEG Fz-LE"))), plain),
    Case(PickChannels, lambda: PickChannels(ChannelSettings()), plain, name="PickChannels, all"),
    Case(ToMicrovolts, lambda: ToMicrovolts(UnitSettings()), plain),
    Case(Continuity, lambda: Continuity(ContinuitySettings()), stamped, waits=False),
    Case(Continuity, lambda: Continuity(ContinuitySettings()), plain, name="Continuity, no stamps"),
    Case(Quality, lambda: Quality(QualitySettings()), untimed_faults),
    Case(BandFilter, lambda: BandFilter(Band()), masked),
    Case(
        BandFilter,
        lambda: BandFilter(Band("alpha", 8, 13, 3), NotchSettings()),
        masked,
        StreamInfo(1000.0, NAMES),
        "BandFilter, decimating",
    ),
    Case(LineCanceller, lambda: LineCanceller(LineSettings(every_s=0.5, window_s=4.0)), with_lines),
    Case(WarmUp, lambda: WarmUp(400), masked, waits=False),
    Case(AverageReference, AverageReference, masked),
    Case(LabelSamples, lambda: LabelSamples(*label_settings("samples")), masked),
    Case(LabelPeaks, lambda: LabelPeaks(*label_settings("peaks")), with_silence),
    Case(MinDuration, lambda: MinDuration(24), labels),
    Case(MinDuration, lambda: MinDuration(0), labels, name="MinDuration, off"),
    Case(MergeRuns, lambda: MergeRuns(2), labels),
    Case(
        Interleave,
        lambda: build(RECIPES["three bands"], templates(3)).stages[-1],
        masked,
        waits=False,
    ),
    Case(
        Interleave,
        lambda: build(RECIPES["a slow band beside a quick one"], templates(2)).stages[-1],
        late,
        StreamInfo(1000.0, NAMES),
        "Interleave, decimating after a break",
        waits=False,
    ),
    *(
        Case(
            Chain,
            lambda recipe=recipe: build(recipe, templates(len(recipe.bands))),
            stamped,
            name=f"Chain, {name}",
            waits=False,
        )
        for name, recipe in RECIPES.items()
    ),
]
