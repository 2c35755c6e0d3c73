"""What the live decoder says about itself: the bundle and stream behind its answers, and how it is doing."""

import json
from datetime import UTC, datetime

import numpy as np

from rtbrain import __version__
from rtbrain.decoder.bundle import PARITY, Bundle
from rtbrain.decoder_api import Decoder
from rtbrain.live_outputs import Outputs
from rtbrain.messages import FloatArray
from rtbrain.microstates.templates import fingerprint
from rtbrain.published import BandMeta, LatencyMeta, Meta, SampleCounts, SourceMeta, StatusMessage
from rtbrain.sources.lsl import LslSource
from rtbrain.sources.lsl_find import LslStream
from rtbrain.telemetry import CpuMeter, Recent, rss_mb


def has_parity(bundle: Bundle) -> bool:
    """Tell whether beside the bundle lies a certificate for it that its live path equals the offline one."""
    try:
        card = json.loads((bundle.folder / PARITY).read_text(encoding="utf-8"))
        return bool(card["bundle_sha256"] == bundle.sha256 and card["passed"] is True)
    except (OSError, ValueError, KeyError, TypeError):
        return False


class Describer:
    """Makes `meta` messages."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle, self._parity = bundle, has_parity(bundle)
        self._templates_sha256 = fingerprint(bundle.templates)
        self._started = datetime.now(UTC).isoformat(timespec="milliseconds")

    def meta(self, decoder: Decoder, stream: LslStream) -> Meta:
        """Return what a late joiner must know."""
        bundle, info = self._bundle, decoder.info
        return Meta(
            rtbrain=__version__,
            bundle=bundle.name,
            bundle_sha256=bundle.sha256,
            parity=self._parity,
            classes=bundle.classes,
            channels=info.channels,
            bands=self._bands(info.channels),
            templates_sha256=self._templates_sha256,
            token_rate_hz=info.rate_hz,
            output_hz=1 / bundle.every_s,
            context_s=bundle.context_s,
            filter_s=info.filter_delay_s,
            wait_s=info.wait_s,
            source=SourceMeta(stream.name, stream.source_id, stream.host, stream.rate_hz, stream.speed),
            started=self._started,
            warmup_s=bundle.recipe.warmup_ms / 1000,
        )

    def _bands(self, channels: tuple[str, ...]) -> tuple[BandMeta, ...]:
        bundle = self._bundle
        told = bundle.statistics or (None,) * len(bundle.recipe.bands)
        described = zip(bundle.recipe.bands, bundle.templates.on(channels), told, strict=True)
        return tuple(
            BandMeta(band.name, band.low_hz, band.high_hz, len(maps), _drawable(maps), training)
            for band, maps, training in described
        )


def _drawable(maps: FloatArray) -> tuple[tuple[float, ...], ...]:
    """Return maps to be looked at: three digits are enough, and keep the message small."""
    scaled = maps / np.abs(maps).max(axis=1, keepdims=True)
    return tuple(tuple(row) for row in np.round(scaled, 3).tolist())


class Health:
    """Makes `status` messages."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self._cpu = CpuMeter()
        self.ages_ms = Recent()
        """Of decisions when they were published."""

    def status(
        self,
        source: LslSource | None,
        decoder: Decoder | None,
        trouble: str = "",
        markers_dropped: int | None = None,
    ) -> StatusMessage:
        """Return how everything is; without a source the decoder waits for one.

        Parameters
        ----------
        source : LslSource, optional
            The stream.
        decoder : Decoder, optional
            What decodes it.
        trouble : str
            What is wrong besides what the source says.
        markers_dropped : int, optional
            Markers that no decision echoes; None where none are listened for.
        """
        counts = None if decoder is None else decoder.counts
        live = None if source is None else source.counts
        log = self._outputs.log_meta()
        troubles = [trouble, "" if source is None else source.trouble, log.trouble]
        return StatusMessage(
            state="waiting" if source is None else source.state,
            trouble="; ".join(each for each in troubles if each),
            silent_s=0.0 if source is None else source.silent_s,
            samples=SampleCounts(
                received=live.received if live else 0,
                lost=counts.lost if counts else 0,
                filled=counts.filled + counts.slipped_in if counts else 0,
                repeated=counts.repeated + counts.slipped_out if counts else 0,
                skipped=live.skipped if live else 0,
                abandoned=live.abandoned if live else 0,
            ),
            gaps=counts.breaks if counts else 0,
            stalls=live.stalls if live else 0,
            reconnects=live.reconnects if live else 0,
            # The stamps and LSL's own probes may both show the same step.
            clock_steps=max(counts.clock_steps, live.clock_resets) if counts and live else 0,
            bad_channels=decoder.bad_channels if decoder else (),
            queue=source.waiting if source else 0,
            cpu_share=self._cpu.share(),
            rss_mb=rss_mb(),
            latency=self._latency(),
            refused_clients=self._outputs.zmq.refused,
            log=log,
            markers_dropped=markers_dropped,
            away_s=0.0 if source is None else source.away_s,
        )

    def _latency(self) -> LatencyMeta | None:
        ages = self.ages_ms.summary()
        return None if ages is None else LatencyMeta(ages.n, ages.p50, ages.p95, ages.p99, ages.largest)
