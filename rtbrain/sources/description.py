"""What a stream says about itself: LSL writes the same XML into its live streams and into XDF files."""

from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from rtbrain.errors import SourceError, UnitError
from rtbrain.messages import StreamInfo
from rtbrain.sources.labels import is_eeg_name, refuse_doubled, unit_name

_POWERS_OF_TEN = {"0": "V", "-3": "mV", "-6": "uV", "-9": "nV"}
"""How MNE-LSL writes units: as the power of ten of the SI unit."""


@dataclass(frozen=True)
class Description:
    """The parts of the XML that matter here; tuples have one entry per channel."""

    name: str
    type: str
    format: str
    rate_hz: float
    labels: tuple[str, ...]
    units: tuple[str, ...]
    types: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.name!r} (type {self.type!r}, {len(self.labels)} channels of {self.format}, "
            f"{f'{self.rate_hz:g} Hz' if self.rate_hz else 'no regular rate'})"
        )


def fields_of(root: ElementTree.Element) -> dict[str, Any]:
    """Return the fields of a Description as they stand in the XML; channels without a label are numbered."""
    n_channels = int(root.findtext("channel_count") or 0)
    described = root.findall("desc/channels/channel")
    if len(described) != n_channels:  # no description, or one of something else
        described = [ElementTree.Element("channel") for _ in range(n_channels)]

    def field(key: str) -> tuple[str, ...]:
        return tuple((channel.findtext(key) or "").strip() for channel in described)

    return {
        "name": root.findtext("name") or "",
        "type": root.findtext("type") or "",
        "format": root.findtext("channel_format") or "",
        "rate_hz": float(root.findtext("nominal_srate") or 0),
        "labels": tuple(label or f"ch{i + 1}" for i, label in enumerate(field("label"))),
        "units": tuple(_POWERS_OF_TEN.get(unit, unit) for unit in field("unit")),
        "types": tuple(kind.lower() for kind in field("type")),
    }


def eeg_channels(origin: object, stream: Description, unit: str | None) -> tuple[list[int], StreamInfo]:
    """Return the positions of a stream's EEG channels, and what stages may rely on.

    Parameters
    ----------
    origin : object
        What errors name: a path, or the stream.
    stream : Description
        The stream.
    unit : str or None
        The unit of the samples, whatever the stream says.
    """
    picks = [
        i
        for i, (name, kind) in enumerate(zip(stream.labels, stream.types, strict=True))
        if is_eeg_name(name) and (kind == "eeg" or "eeg" not in stream.types)
    ]
    names = tuple(stream.labels[i] for i in picks)
    if not names:
        raise SourceError(f"{origin}: no EEG channels in stream {stream}: {', '.join(stream.labels)}")
    refuse_doubled(origin, names)
    units = sorted({unit_name(stream.units[i]) for i in picks})
    if unit is None and len(units) > 1:
        raise UnitError(f"{origin}: the channels differ in unit: {', '.join(units)}; state one for all (option --unit)")
    return picks, StreamInfo(stream.rate_hz, names, unit or units[0])
