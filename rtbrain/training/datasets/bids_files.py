"""Where things are in a BIDS folder: recordings, the files beside them, and the tables that hold for several."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from rtbrain.errors import SourceError
from rtbrain.training.datasets.edf_facts import edf_facts
from rtbrain.training.datasets.tables import read_table
from rtbrain.training.trials import Value

_ENDINGS = (".edf", ".bdf", ".vhdr", ".set")
"""The formats that BIDS allows for EEG."""

_BESIDE = {".vhdr": (".eeg", ".vhdr", ".vmrk"), ".set": (".fdt", ".set")}
_FACTS = {
    "PowerLineFrequency": "power_line_hz",
    "EEGReference": "reference",
    "SoftwareFilters": "software_filters",
    "HardwareFilters": "hardware_filters",
    "ManufacturersModelName": "amplifier",
}


@dataclass(frozen=True)
class BidsFile:
    """A recording in a BIDS folder."""

    path: Path
    """What is opened: for BrainVision the header."""
    entities: dict[str, str]
    """Such as {sub: 01, task: rest, run: 2}."""

    @property
    def subject(self) -> str:
        """As in participants.tsv."""
        return f"sub-{self.entities['sub']}"

    @property
    def stem(self) -> str:
        """The name without `_eeg` and its ending."""
        return self.path.stem.removesuffix("_eeg")

    @property
    def all_files(self) -> tuple[Path, ...]:
        """The files of the recording that exist, the one with the samples first."""
        beside = [self.path.with_suffix(ending) for ending in _BESIDE.get(self.path.suffix.lower(), ())]
        return tuple(path for path in beside if path.is_file()) or (self.path,)


def entities_of(path: Path) -> dict[str, str]:
    """Return the `key-value` pairs of a BIDS file's name."""
    return dict(re.findall(r"(?:^|_)([a-zA-Z]+)-([a-zA-Z0-9+]+)", path.name.split(".")[0]))


def bids_recordings(root: Path) -> list[BidsFile]:
    """List the EEG recordings of a BIDS folder, sorted by path; `derivatives` and `sourcedata` are not looked at."""
    found = []
    for path in sorted(root.glob("sub-*/**/eeg/sub-*_eeg.*")):
        if path.suffix.lower() in _ENDINGS:
            entities = entities_of(path)
            folder = path.relative_to(root).parts[0]
            if folder != f"sub-{entities.get('sub')}":
                raise SourceError(f"{path}: the name does not belong to the folder {folder}; move or rename the file")
            found.append(BidsFile(path, entities))
    return found


def sidecar(root: Path, file: BidsFile, suffix: str) -> Path | None:
    """Return the table or JSON that holds for a recording: the nearest above it whose entities are all among its own.

    Parameters
    ----------
    root : Path
        The BIDS folder.
    file : BidsFile
        The recording.
    suffix : str
        Such as `events.tsv`.
    """
    folder = file.path.parent
    while True:
        fitting = []
        for path in sorted(folder.glob(f"*{suffix}")):
            if not (path.name == suffix or path.name.endswith(f"_{suffix}")):
                continue
            entities = entities_of(path)
            if all(file.entities.get(name) == value for name, value in entities.items()):
                fitting.append((len(entities), path))
        if fitting:
            return max(fitting)[1]
        if folder in (root, folder.parent):
            return None
        folder = folder.parent


def eeg_channels(root: Path, file: BidsFile, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of a recording's channels that channels.tsv does not say to be something else than EEG."""
    path = sidecar(root, file, "channels.tsv")
    if path is None:
        return names
    table = read_table(path)
    table.need("name", "type")
    other = {row["name"] for row in table.rows if row["type"].upper() != "EEG"}
    unlisted = sorted(set(names) - {row["name"] for row in table.rows})
    if unlisted:
        raise SourceError(f"{path}: channels {', '.join(unlisted)} of the recording are not listed; add them")
    kept = tuple(name for name in names if name not in other)
    if not kept:
        raise SourceError(f"{path}: no channel is of type EEG; correct the types")
    return kept


def file_facts(root: Path, file: BidsFile) -> dict[str, Value]:
    """Return what header and eeg.json tell that is not brain."""
    facts: dict[str, Value] = edf_facts(file.path) if file.path.suffix.lower() in (".edf", ".bdf") else {}
    path = sidecar(root, file, "eeg.json")
    if path is None:
        return facts
    try:
        said = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: not readable as JSON ({error}); correct it") from error
    for key, name in _FACTS.items():
        value = said.get(key) if isinstance(said, dict) else None
        if value is not None and value != "n/a":
            facts[name] = float(value) if isinstance(value, int | float) else str(value)
    return facts
