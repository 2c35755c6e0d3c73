"""Decoding from Python: push chunks, get decisions. The live program runs on this too; there is no other way through.

Decisions are due on a grid of the signal's own time, whatever chunks the signal comes in. So the chain is cut in two
behind the gap rule, which places samples on the grid, and the second half is fed up to each due sample in turn.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from rtbrain.conditioning.channels import PickChannels
from rtbrain.conditioning.continuity import Continuity, ContinuityCounts
from rtbrain.conditioning.quality import Quality
from rtbrain.decoder.bundle import Bundle, calibrated, load_bundle
from rtbrain.decoder.find import find_bundle
from rtbrain.decoder.session import Device, StepModel, load_step
from rtbrain.errors import ConfigError, StreamError
from rtbrain.messages import Break, Chunk, StreamInfo, Tokens
from rtbrain.pipeline import build
from rtbrain.published import ContextMeta
from rtbrain.stage import Chain
from rtbrain.tokens.context import RollingContext
from rtbrain.tokens.inputs import TokenInputs, Vocabulary
from rtbrain.trust import RecentFit, age_doubts, doubts

AHEAD_S: Final = 0.005
"""A decision that is due so soon is computed ahead even where chunks are shorter: an inference takes some ms."""

REMEMBERED: Final = 1000
"""Tokens that are kept so that a marker which comes late still begins its context at its own time."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the model says at one sample of the signal."""

    signal_s: float
    """Of the newest sample, in seconds after the stream's first one."""
    stamp_s: float | None
    """The same on the source's clock; None if chunks come without time stamps."""
    label: str
    """The most probable class."""
    probabilities: dict[str, float]
    """Calibrated, by class."""
    context: ContextMeta
    token_wait_s: float
    """From the newest token's end to the newest sample."""
    reasons: tuple[str, ...]
    """Why it is not to be trusted, as far as the signal tells; empty if it is."""

    @property
    def trusted(self) -> bool:
        """Tell whether nothing speaks against it."""
        return not self.reasons


Event = Tokens | Break | Decision


class Decoder:
    """A trained bundle on one stream.

    Parameters
    ----------
    bundle : str, Path or Bundle
        The bundle's folder, or its name in ./models or among the shipped ones; its files are verified.
    rate_hz : float
        Samples per second of the stream.
    channels : sequence of str
        Electrodes in the order of the columns.
    unit : {"V", "mV", "uV", "nV"}
        What the numbers are.
    device : {"auto", "cpu", "cuda"}
        Where the model runs.
    model : StepModel, optional
        The bundle's step graph, if it was loaded already.

    Raises
    ------
    RtbrainError
        The bundle is damaged, or the stream's rate, channels or unit do not fit it.
    """

    def __init__(
        self,
        bundle: str | Path | Bundle,
        *,
        rate_hz: float,
        channels: Sequence[str],
        unit: str = "uV",
        device: Device = "auto",
        model: StepModel | None = None,
    ) -> None:
        self.bundle = bundle if isinstance(bundle, Bundle) else load_bundle(find_bundle(bundle))
        self.model = model or load_step(self.bundle.step, device)
        self.source_info = StreamInfo(rate_hz, tuple(channels), unit)
        chain = build(self.bundle.recipe, self.bundle.templates)
        self.info = chain.open(self.source_info)
        """What the tokenizer puts out: rate, channels, delays."""
        self.bundle.check_rate(self.info.rate_hz)
        self._picked, self._grid = chain.find(PickChannels), chain.find(Continuity)
        self._quality = chain.find(Quality)
        behind = chain.stages.index(self._grid) + 1
        self._front, self._back = Chain(chain.stages[:behind]), Chain(chain.stages[behind:])
        self._back.open(self._front.open(self.source_info))
        self._coverage = 1 - len(self.missing) / max(1, len(self.missing) + len(self.info.channels))
        schema = self.model.schema
        self._inputs = TokenInputs(Vocabulary(schema.states), schema.attributes, self.info.rate_hz)
        self.context = RollingContext(self.model.stream(), self.model.stream(), self.bundle.context_s)
        self._fit = RecentFit(self.info.rate_hz)
        self._remembered: deque[tuple[int, Any, float, float]] = deque(maxlen=REMEMBERED)
        self._ordered: list[tuple[float, str]] = []  # contexts that are to begin at a time still to come
        self._step = Fraction(str(self.bundle.every_s)) * Fraction(str(rate_hz))  # samples, exact over any session
        # Grid sample that follows the newest; samples of the newest chunk; contexts so far.
        self._next = self._chunk = self._number = 0
        self._earlier = ContinuityCounts()
        self._begin("start")

    @property
    def missing(self) -> tuple[str, ...]:
        """Channels of the bundle that the stream does not have."""
        return self._picked.missing

    @property
    def bad_channels(self) -> tuple[str, ...]:
        """Channels that cannot be used at the moment, those that are missing among them."""
        return self._quality.bad_now + self.missing

    @property
    def context_number(self) -> int:
        """Contexts since the beginning, the present one among them."""
        return self._number

    @property
    def counts(self) -> ContinuityCounts:
        """Return what happened to the samples since the beginning, reconnections notwithstanding."""
        now = asdict(self._grid.counts)
        return ContinuityCounts(**{name: value + now[name] for name, value in asdict(self._earlier).items()})

    @property
    def origin_s(self) -> float | None:
        """Time stamp of the signal's second 0 on the source's clock; None before the first stamp."""
        return self._grid.origin_s

    def push(self, data: ArrayLike, times: ArrayLike | None = None, now_s: float | None = None) -> list[Decision]:
        """Take the next samples and return the decisions that fell due.

        Parameters
        ----------
        data : array_like
            (samples, channels), or one sample (channels,).
        times : array_like, optional
            (samples,) time stamps in seconds on any clock; gaps are found by them. All chunks have them, or none.
        now_s : float, optional
            The present on that clock: decisions on old samples are then not trusted.
        """
        rows = np.atleast_2d(np.array(data, np.float64, order="C"))
        if rows.ndim != 2 or (rows.size and rows.shape[1] != len(self.source_info.channels)):
            raise StreamError(f"samples of shape {rows.shape} do not fit {len(self.source_info.channels)} channels")
        stamps = None if times is None else np.atleast_1d(np.array(times, np.float64))
        if stamps is not None and stamps.shape != (len(rows),):
            raise StreamError(f"{len(rows)} samples came with time stamps of shape {stamps.shape}; give one for each")
        found = self._decisions(self.feed(Chunk(rows, times=stamps)) if rows.size else ())
        return found if now_s is None else [self._aged(each, now_s) for each in found]

    def flush(self) -> list[Decision]:
        """End the stream: close the last tokens, and return the decision that rests on them."""
        return self._decisions(self.end())

    def new_context(self, reason: str, at_s: float | None = None) -> None:
        """Forget earlier tokens, as at the start of a trial: at this second of the signal, or at once.

        The second may lie some way back or ahead. A token that began before it does not count.
        """
        if at_s is None:
            at_s = self._next / self.source_info.rate_hz
        self._ordered.append((at_s, reason))

    def feed(self, item: Chunk | Break) -> Iterator[Event]:
        """Take a chunk or break of the source, and give all that follows from it, in order and as it is computed."""
        if isinstance(item, Break):  # the grid begins anew
            self._earlier, self._grid.counts = self.counts, ContinuityCounts()
            self._ordered.clear()
            self._next = 0
        else:
            self._chunk = len(item)
        for message in self._front.process(item):
            if isinstance(message, Break):
                yield from self._take(self._back.process(message))
            else:
                yield from self._up_to_each_due(message)

    def anticipate(self) -> None:
        """Compute what a decision that is due soon will say unless another token closes, so that it need not wait.

        To be called when there is time, between chunks; soon is within a chunk as long as the last one. Decisions are
        the same with it and without it: the model computes again where a token came since.
        """
        due = self._due(self._next)
        soon = due - self._next < max(self._chunk, AHEAD_S * self.source_info.rate_hz)
        if soon and not any(at_s <= due / self.source_info.rate_hz for at_s, _ in self._ordered):
            self.context.answer()

    def end(self) -> Iterator[Event]:
        """As flush, tokens included."""
        for held in self._front.flush():
            yield from self._up_to_each_due(held)
        yield from self._take(self._back.flush())
        decision = self._decide(max(0, self._next - 1))
        if decision is not None:
            yield decision

    def _up_to_each_due(self, x: Chunk) -> Iterator[Event]:
        row = 0
        while row < len(x):
            due = self._due(x.start + row)
            stop = min(len(x), max(row, due - x.start) + 1)
            yield from self._take(self._back.process(Chunk(x.data[row:stop], x.start + row, filled=x.filled)))
            row, self._next = stop, x.start + stop
            decision = self._decide(due) if self._next == due + 1 else None
            if decision is not None:
                yield decision

    def _due(self, sample: int) -> int:
        """Return this sample, or the next one at which a decision is due."""
        return ceil(((sample - 1) // self._step + 1) * self._step)

    def _take(self, messages: Iterable[Any]) -> Iterator[Event]:
        for message in messages:
            if isinstance(message, Break):
                self._inputs.reset()
                if message.kind == "gap":
                    self.context.mark_gap()
                else:
                    self._fit.clear()
                    self._remembered.clear()
                    self._begin(message.reason)
            else:
                self._fit.add(message)
                inputs = self._inputs(message)
                for row in zip(
                    inputs.ids.tolist(), inputs.attributes, inputs.start_s.tolist(), inputs.end_s.tolist(), strict=True
                ):
                    self._remembered.append(row)
                    self._append(row)
            yield message

    def _append(self, row: tuple[int, Any, float, float]) -> None:
        if row[2] >= self._from_s:
            self.context.push(*row)

    def _begin(self, reason: str, at_s: float = float("-inf")) -> None:
        self._number += 1
        self._began, self._from_s = reason, at_s
        self.context.reset()
        for row in self._remembered:
            self._append(row)

    def _decide(self, sample: int) -> Decision | None:
        """Return what the model says once this sample of the grid is in; None while there is no token."""
        rate_hz = self.source_info.rate_hz
        signal_s = sample / rate_hz
        for at_s, reason in sorted(each for each in self._ordered if each[0] <= signal_s):
            self._begin(reason, at_s)
        self._ordered = [each for each in self._ordered if each[0] > signal_s]
        answer = self.context.answer()
        if answer is None:
            return None
        bundle, origin_s = self.bundle, self._grid.origin_s
        values = calibrated(answer.probabilities, bundle.temperature)
        context_s, wait_s = answer.end_s - answer.start_s, signal_s - answer.end_s
        # Tokens tell of channels that were bad a moment ago; those that are bad now may not be in any token yet.
        quality = self._coverage * min(self._fit.quality(), self._quality.good_share_now)
        return Decision(
            signal_s=signal_s,
            stamp_s=None if origin_s is None else origin_s + signal_s,
            label=bundle.classes[int(values.argmax())],
            probabilities=dict(zip(bundle.classes, values.tolist(), strict=True)),
            context=ContextMeta(self._number, answer.n_tokens, context_s, self._began),
            token_wait_s=wait_s,
            reasons=tuple(doubts(bundle.trust, quality, self._fit.gev(), context_s, wait_s, self.info.wait_s)),
        )

    def _decisions(self, events: Iterable[Event]) -> list[Decision]:
        return [event for event in events if isinstance(event, Decision)]

    def _aged(self, decision: Decision, now_s: float) -> Decision:
        if decision.stamp_s is None:
            raise ConfigError("now_s needs the samples' own times: push them with `times`")
        more = age_doubts(self.bundle.trust, now_s - decision.stamp_s)
        return replace(decision, reasons=(*decision.reasons, *more))
