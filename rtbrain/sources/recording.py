"""Recordings as sources: EDF, BDF, BrainVision, EEGLAB, FIF, GDF, CNT and XDF files.

A file is a source like a live stream: it gives chunks with time stamps, and where the recording was interrupted
the stamps jump, so that the continuity stage applies one gap rule to both.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rtbrain.errors import ConfigError, SourceError
from rtbrain.messages import Chunk, StreamInfo
from rtbrain.sources.chunking import Source
from rtbrain.sources.labels import chosen_unit
from rtbrain.sources.markers import Marker

FORMATS = {
    ".edf": "EDF",
    ".bdf": "BDF",
    ".vhdr": "BrainVision",
    ".set": "EEGLAB",
    ".fif": "FIF",
    ".fif.gz": "FIF",
    ".gdf": "GDF",
    ".cnt": "CNT",
    ".xdf": "XDF",
    ".xdfz": "XDF",
    ".xdf.gz": "XDF",
}
"""File name endings that are read, and what they are."""

_SIDECARS = {".eeg": ".vhdr", ".vmrk": ".vhdr", ".fdt": ".set"}


class SeekableSource(Source):
    """A source that can begin anywhere without reading what comes before."""

    @abstractmethod
    def rows(self, first: int, stop: int) -> Iterator[Chunk]:
        """Give samples `first` to `stop` only; chunks count from 0, time stamps are those of the whole source."""

    def _produce(self) -> Iterator[Chunk]:
        return self.rows(0, self.n_samples)


@dataclass(frozen=True)
class Recording(SeekableSource):
    """A file on disk, opened and checked; the samples are read while `chunks` runs."""

    path: Path
    format: str
    """One of the values of FORMATS."""
    info: StreamInfo
    n_samples: int
    reader: Callable[[], Iterator[Chunk]] = field(repr=False)
    """Starts a pass over the file: chunks of some seconds each."""
    notes: tuple[str, ...] = ()
    """What is odd about the file but no reason to refuse it; for the log."""
    seek: Callable[[int, int], Iterator[Chunk]] | None = field(default=None, repr=False)
    """As `rows`; None where the format cannot be read from its middle."""
    markers: Callable[[], list[Marker]] = field(default=list, repr=False)
    """Reads what the recording says to have happened when, on the clock of its time stamps."""

    def rows(self, first: int, stop: int) -> Iterator[Chunk]:
        """Give samples `first` to `stop` only."""
        if self.seek is None:
            return trim(self.reader(), first, stop)
        return self.seek(first, stop)

    def _produce(self) -> Iterator[Chunk]:
        return self.reader()


@dataclass(frozen=True)
class Excerpt(SeekableSource):
    """Some consecutive samples of another source, as a source."""

    source: Source
    first: int
    info: StreamInfo
    n_samples: int

    def rows(self, first: int, stop: int) -> Iterator[Chunk]:
        """Give samples `first` to `stop` of the excerpt."""
        first, stop = self.first + first, self.first + stop
        if isinstance(self.source, SeekableSource):
            return self.source.rows(first, stop)
        return trim(self.source.chunks(), first, stop)


def excerpt(source: Source, start_s: float, seconds: float) -> Excerpt:
    """Return so many seconds of a source from `start_s` on; time lost in interruptions does not count.

    Raises
    ------
    SourceError
        The source does not last so long.
    """
    first, n = round(start_s * source.info.rate_hz), round(seconds * source.info.rate_hz)
    if first + n == source.n_samples + 1:  # both ends rounded up
        n -= 1
    if first < 0 or n < 1 or first + n > source.n_samples:
        raise SourceError(
            f"seconds {start_s:g} to {start_s + seconds:g} are not in a recording of {source.duration_s:g} s"
        )
    return Excerpt(source, first, source.info, n)


def between(source: Source, start_s: float, stop_s: float | None) -> Source:
    """Return a source from one second to another; to its end without one, and itself if that is all of it."""
    if stop_s is not None and stop_s <= start_s:
        raise ConfigError(f"the second to stop at, {stop_s:g}, is not after the first one, {start_s:g}")
    if start_s == 0 and stop_s is None:
        return source
    return excerpt(source, start_s, (source.duration_s if stop_s is None else stop_s) - start_s)


def trim(chunks: Iterable[Chunk], first: int, stop: int) -> Iterator[Chunk]:
    """Yield rows `first` to `stop` of a source that is read from its beginning, counted from 0."""
    for chunk in chunks:
        if chunk.start >= stop:
            return
        a, b = max(first - chunk.start, 0), min(stop - chunk.start, len(chunk))
        if a < b:
            times = None if chunk.times is None else chunk.times[a:b]
            yield Chunk(chunk.data[a:b], chunk.start + a - first, times)


def ending(path: Path) -> str | None:
    """Return the known ending of a file's name, in lower case, or None."""
    name = path.name.lower()
    return max((known for known in FORMATS if name.endswith(known)), key=len, default=None)


def open_recording(path: str | Path, *, unit: str | None = None, stream: str | None = None) -> Recording:
    """Open a recording, check that it is whole, and describe its EEG channels.

    EEG channels keep the names that the file gives them. Channels that the file or their names say to be
    something else (triggers, ECG, EOG, ...) are left out. Only blocks of some seconds are in memory at a time;
    XDF and EEGLAB files without .fdt cannot be read in parts and are held as a whole.

    Parameters
    ----------
    path : str or Path
        The file; for BrainVision the .vhdr, for EEGLAB the .set.
    unit : str, optional
        What the numbers in the file truly are ("V", "mV", "uV", "nV"), for files that do not say so or say
        something wrong. By default data come in volts (unit "V") where the file's unit is known, except that an
        XDF stream keeps its own unit; where it is not, as they are (unit "unknown").
    stream : str, optional
        Name of the stream to take from an XDF file with several of type EEG.

    Returns
    -------
    Recording
        Time stamps start at 0 and go on by 1 / rate (XDF: the stamps of the file, synchronised to one clock).
        An interruption makes them jump by the time lost, or by `files.UNKNOWN_LOSS_S` where the file tells only
        that there was one.

    Raises
    ------
    SourceError
        The file is missing, empty, cut short, of an unknown kind, or has no continuous EEG.
    ChannelError
        Two channels have one name.
    RateError
        Channels differ in rate, or an XDF stream's stamps contradict its rate.
    UnitError
        Channels differ in unit in a way that cannot be resolved.
    """
    path = Path(path)
    suffix = ending(path)
    if path.is_dir():
        raise SourceError(f"{path} is a folder; give a file in it (find_recordings lists them)")
    if not path.is_file():
        raise SourceError(f"{path} does not exist; check the path")
    if suffix is None:
        header = _SIDECARS.get(path.suffix.lower())
        hint = f"open its header, {path.with_suffix(header).name}" if header else f"known are {', '.join(FORMATS)}"
        raise SourceError(f"{path}: {path.suffix or 'no ending'} is not a recording that can be opened; {hint}")
    if path.stat().st_size == 0:
        raise SourceError(f"{path} is empty (0 bytes); copy it again from its origin")
    unit = chosen_unit(unit)
    # Here, not above: both modules need Recording, and mne and pyxdf are for those who read files.
    if FORMATS[suffix] == "XDF":
        from rtbrain.sources.xdf import open_xdf

        return open_xdf(path, unit=unit, stream=stream)
    if stream is not None:
        raise SourceError(f"{path}: a stream ({stream!r}) can be chosen in XDF files only; leave it out")
    from rtbrain.sources.files import open_file

    return open_file(path, FORMATS[suffix], unit=unit)


def find_recordings(folder: str | Path) -> list[Path]:
    """List the recordings below a folder.

    Parameters
    ----------
    folder : str or Path
        Where to look, at any depth; hidden files and folders are left out.

    Returns
    -------
    list of Path
        Sorted; one path per recording: headers without their data and marker files, the first part of a split
        .fif. None of them has been opened.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise SourceError(f"{folder} is not a folder; give one that holds recordings")
    found = []
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and ending(path) and path.is_file() and not _continues_another(path):
            found.append(path)
    return found


def _continues_another(path: Path) -> bool:
    """Tell whether this is a later part of a .fif that was split at 2 GB (`x_raw-1.fif`, `x_split-02_eeg.fif`)."""
    part = re.search(r"-(\d+)(?=\.fif(\.gz)?$)", path.name)
    if part and path.with_name(path.name[: part.start()] + path.name[part.end() :]).exists():
        return True
    split = re.search(r"_split-(\d+)_", path.name)
    return split is not None and int(split[1]) > 1
