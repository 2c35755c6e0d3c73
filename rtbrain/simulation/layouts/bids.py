"""The files of a BIDS folder beside the recordings themselves."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rtbrain.simulation.layouts.brainvision import Marker, write_brainvision
from rtbrain.simulation.layouts.plan import Blocks, Take
from rtbrain.training.dataset_config import load_dataset_config

LINE_HZ = 50
REFERENCE = "linked mastoids (TP9, TP10)"
"""What simulated heads are recorded against; the real sets used FCz."""


def acticap() -> tuple[str, ...]:
    """Return the 63 electrodes of the actiCAP, as the configuration of NSSI lists them."""
    return tuple(load_dataset_config("nssi").options["channels"])


def write_tsv(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Write a table; what a row does not have becomes `n/a`."""
    lines = ["\t".join(columns)]
    lines += ["\t".join(_cell(row.get(name)) for name in columns) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_json(path: Path, content: object) -> None:
    """Write readable JSON."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_recording(stem: Path, take: Take, blocks: Blocks, task: str) -> None:
    """Write a recording, its channels.tsv and its eeg.json; `stem` is the path without `_eeg` and an ending."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    markers = [Marker(round(at * take.rate_hz), each.code) for at, each in take.starts() if each.code is not None]
    write_brainvision(_beside(stem, "eeg.vhdr"), take.channels, take.rate_hz, blocks(take), markers)
    write_tsv(
        _beside(stem, "channels.tsv"),
        ("name", "type", "units", "sampling_frequency", "status"),
        [
            {"name": name, "type": "EEG", "units": "\u00b5V", "sampling_frequency": take.rate_hz, "status": "good"}
            for name in take.channels
        ],
    )
    write_json(
        _beside(stem, "eeg.json"),
        {
            "TaskName": task,
            "SamplingFrequency": take.rate_hz,
            "PowerLineFrequency": LINE_HZ,
            "EEGReference": REFERENCE,
            "SoftwareFilters": "n/a",
            "EEGChannelCount": len(take.channels),
            "RecordingType": "continuous",
            "RecordingDuration": take.seconds,
        },
    )


def write_events(stem: Path, take: Take, columns: Sequence[str]) -> None:
    """Write events.tsv: one row for each stretch that has a `trial_type` among its fields."""
    rows = [
        {"onset": f"{at:.3f}", "duration": f"{each.seconds:.3f}", "value": each.code, **each.fields}
        for at, each in take.starts()
        if "trial_type" in each.fields
    ]
    write_tsv(_beside(stem, "events.tsv"), ("onset", "duration", "trial_type", "value", *columns), rows)


def write_description(folder: Path, name: str, people: Sequence[Mapping[str, object]]) -> None:
    """Write what the top of a BIDS folder needs; `people` have a participant_id, and perhaps a group."""
    write_json(
        folder / "dataset_description.json",
        {
            "Name": f"{name} (simulated)",
            "BIDSVersion": "1.8.0",
            "DatasetType": "raw",
            "GeneratedBy": [{"Name": "rtbrain simulate"}],
        },
    )
    write_tsv(folder / "participants.tsv", ("participant_id", "age", "sex", "group"), people)
    write_json(
        folder / "participants.json", {"group": {"Description": "Group of the person, where the set has groups"}}
    )
    (folder / "README").write_text(f"Simulated EEG in the layout of {name}; no person was recorded.\n", "utf-8")
    (folder / ".bidsignore").write_text("rtbrain.yaml\nsimulation.json\nrtbrain-audit\n", encoding="utf-8")


def _beside(stem: Path, ending: str) -> Path:
    return stem.with_name(f"{stem.name}_{ending}")


def _cell(value: object) -> str:
    if value is None:
        return "n/a"
    return f"{value:g}" if isinstance(value, float) else str(value)
