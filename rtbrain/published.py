"""What the decoder publishes, field by field; `rtbrain.protocol` says how it is written.

Times that end in `_s` are seconds; `time_s` is on the LSL clock of the decoder's machine. None, null in JSON, stands
for what is not known.
"""

from dataclasses import dataclass
from typing import Literal

from rtbrain.messages import UNLABELLED, Token

SourceState = Literal["waiting", "live", "stalled", "lost", "recovered"]
"""waiting: no sample yet; live; stalled: silent; lost: the connection is gone; recovered: back since a moment ago."""


@dataclass(frozen=True, slots=True)
class StateStatistics:
    """Microstates of one band over much data, with one entry per state."""

    coverage: tuple[float, ...]
    """Share of the labelled time."""
    duration_s: tuple[float, ...]
    """Mean duration of a token."""
    transitions: tuple[tuple[float, ...], ...]
    """By the state before, the probability of each state after."""


@dataclass(frozen=True, slots=True)
class BandMeta:
    """A frequency band and its templates."""

    name: str
    low_hz: float
    high_hz: float
    n_states: int
    maps: tuple[tuple[float, ...], ...] = ()
    """By state, the template on `channels`; its largest value is 1 or -1, and its sign means nothing."""
    training: StateStatistics | None = None
    """Of the data that the model was trained on; null where the bundle does not say."""


@dataclass(frozen=True, slots=True)
class SourceMeta:
    """The stream that is decoded."""

    name: str
    source_id: str
    host: str
    rate_hz: float
    speed: float
    """Seconds of signal per second; not 1 for a recording that is replayed faster."""


@dataclass(frozen=True, slots=True)
class Meta:
    """What a late joiner must know; published at the start and every few seconds."""

    rtbrain: str
    bundle: str
    bundle_sha256: str
    parity: bool
    """The bundle has a certificate that the live path equals the offline one."""
    classes: tuple[str, ...]
    channels: tuple[str, ...]
    bands: tuple[BandMeta, ...]
    templates_sha256: str
    token_rate_hz: float
    output_hz: float
    context_s: float
    """Longest context that a decision rests on."""
    filter_s: float
    """Declared delay of the filters."""
    wait_s: float
    """Longest time for which samples are held back before they are in a token."""
    source: SourceMeta | None
    started: str
    """Wall clock, ISO 8601 in UTC."""
    warmup_s: float | None = None
    """Seconds of signal without tokens, as filters settle: when a stream begins or comes back, and after each gap."""


@dataclass(frozen=True, slots=True)
class TokenMessage:
    """A closed token."""

    context: int
    """Counts the contexts since the start."""
    band: str
    state: int | None
    """Microstate, counted from 0; null where no template could be assigned."""
    start_s: float
    """After the first sample of the context's stream."""
    duration_s: float
    gfp_uv: float
    gfp_rel: float
    """Natural logarithm of the GFP over its running level."""
    corr: float
    quality: float
    gev: float | None

    @classmethod
    def of(cls, token: Token, band: str, rate_hz: float, context: int) -> "TokenMessage":
        """Return the message for a token of this band, at the tokenizer's rate."""
        return cls(
            context=context,
            band=band,
            state=None if token.state == UNLABELLED else token.state,
            start_s=token.start / rate_hz,
            duration_s=token.duration / rate_hz,
            gfp_uv=token.gfp,
            gfp_rel=token.gfp_rel,
            corr=token.corr,
            quality=token.quality,
            gev=token.explained / token.power if token.power else None,
        )


@dataclass(frozen=True, slots=True)
class Age:
    """How old the newest sample of a decision was when it was published, and what that is made of."""

    total_s: float | None
    """Negative where the source stamps ahead of time."""
    transport_s: float | None
    """From the sample's stamp to its arrival."""
    filter_s: float
    """Declared: what is in the sample happened earlier by so much."""
    token_wait_s: float
    """From the newest token's end to the newest sample."""
    inference_s: float
    publish_s: float


@dataclass(frozen=True, slots=True)
class ContextMeta:
    """What a decision rests on."""

    number: int
    """Counts the contexts since the start."""
    tokens: int
    seconds: float
    began: str
    """Why this context began: start, marker, gap, reconnect, ..."""


@dataclass(frozen=True, slots=True)
class MarkerEcho:
    """A marker that came since the last decision."""

    time_s: float
    text: str


@dataclass(frozen=True, slots=True)
class StateMessage:
    """A decision."""

    time_s: float | None
    """Of the newest sample in it."""
    signal_s: float
    """The same in seconds of signal since the stream began, or came back."""
    label: str
    """The most probable class."""
    probabilities: dict[str, float]
    """Calibrated, by class."""
    context: ContextMeta
    trusted: bool
    reasons: tuple[str, ...]
    """Why it is not to be trusted; empty if it is."""
    age: Age
    markers: tuple[MarkerEcho, ...]


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Samples since the start."""

    received: int
    lost: int
    """Missing in gaps that were too long to fill; those skipped are among them."""
    filled: int
    repeated: int
    skipped: int
    """Left out to catch up with the present."""
    abandoned: int
    """Arrived, but out of reach when the connection broke."""


@dataclass(frozen=True, slots=True)
class LatencyMeta:
    """Recent ages of decisions, in milliseconds."""

    n: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    largest_ms: float


@dataclass(frozen=True, slots=True)
class LogMeta:
    """The session log."""

    state: Literal["off", "writing", "failing"]
    written: int
    dropped: int
    trouble: str


@dataclass(frozen=True, slots=True)
class StatusMessage:
    """How the decoder is; once a second, also when nothing comes in."""

    state: SourceState
    trouble: str
    """Why, in words; empty if all is well."""
    silent_s: float
    """Since the newest sample came."""
    samples: SampleCounts
    gaps: int
    stalls: int
    reconnects: int
    clock_steps: int
    bad_channels: tuple[str, ...]
    queue: int
    """Samples that have arrived and wait to be decoded."""
    cpu_share: float
    """Of one core."""
    rss_mb: float
    latency: LatencyMeta | None
    refused_clients: int
    log: LogMeta
    markers_dropped: int | None = None
    """Markers that no decision echoes, as too many came before one; null where none are listened for."""
    away_s: float = 0.0
    """Without samples in all stalls and losses together: what was not sent, or not here, nobody can count."""


Message = Meta | TokenMessage | StateMessage | StatusMessage
