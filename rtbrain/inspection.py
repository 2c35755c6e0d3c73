"""What a recording holds, before anything is decided with it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rtbrain.conditioning.channels import canonical, canonical_channels, is_scalp
from rtbrain.conditioning.continuity import Continuity, ContinuitySettings
from rtbrain.conditioning.filters import decimation_factor
from rtbrain.conditioning.quality import Quality, QualitySettings
from rtbrain.conditioning.units import FACTORS, amplitude, plausible_units
from rtbrain.messages import Break, Chunk
from rtbrain.sources.recording import open_recording
from rtbrain.stage import Chain


@dataclass(frozen=True)
class Inspection:
    """The facts of one recording."""

    path: str
    format: str
    rate_hz: float
    token_rate_hz: float
    """Rate at which tokens are made of it, after decimation."""
    duration_s: float
    channels: tuple[str, ...]
    scalp: tuple[str, ...]
    """Canonical names of those that are electrodes of the 10-05 system."""
    unit: str
    fitting_units: tuple[str, ...]
    """Units in which the amplitude would be that of EEG, most likely first."""
    amplitude_uv: float | None
    """Typical standard deviation of a channel; None when the unit is unknown."""
    continuity: dict[str, Any]
    breaks: tuple[str, ...]
    bad_share: dict[str, float]
    """Share of the time during which channels were flat, railed, lost or too large."""
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def inspect_recording(
    path: Path,
    unit: str | None = None,
    stream: str | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Inspection:
    """Read a whole recording once and report on it; doubled channel names and damaged files raise."""
    source = open_recording(path, unit=unit, stream=stream)
    info = source.info
    canonical_channels(info.channels)
    factor = FACTORS.get(info.unit)
    continuity, quality = Continuity(ContinuitySettings()), Quality(QualitySettings())
    # Amplitudes of an unknown unit cannot be judged, but gaps can be found all the same.
    chain = Chain([continuity] if factor is None else [continuity, quality])
    chain.open(info)
    breaks: list[str] = []
    spreads: list[float] = []
    fitting: tuple[str, ...] = ()
    for chunk in source.chunks(size=max(2, round(info.rate_hz))):
        progress((chunk.start + len(chunk)) / max(1, source.n_samples))
        spreads.append(amplitude(chunk.data))
        fitting = fitting or tuple(plausible_units(chunk.data))
        for item in chain.process(Chunk(chunk.data * (factor or 1.0), chunk.start, chunk.times)):
            if isinstance(item, Break):
                breaks.append(f"{item.at_s:.3f} s: {item.reason}")
    return Inspection(
        path=str(path),
        format=source.format,
        rate_hz=info.rate_hz,
        token_rate_hz=info.rate_hz / decimation_factor(info.rate_hz),
        duration_s=source.duration_s,
        channels=info.channels,
        scalp=tuple(name for name in map(canonical, info.channels) if is_scalp(name)),
        unit=info.unit,
        fitting_units=fitting,
        amplitude_uv=None if factor is None else float(np.median(spreads)) * factor,
        continuity=continuity.report(),
        breaks=tuple(breaks),
        bad_share=quality.bad_share(),
        notes=source.notes,
    )
