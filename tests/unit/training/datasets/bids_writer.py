"""Small BIDS folders with BrainVision recordings."""

from pathlib import Path

from tests.recording_writers import INDEX, NAMES, samples, write_vhdr


def write_recording(root: Path, name: str, n: int = 1000, seed: int = 0, names=NAMES) -> Path:
    """Write `sub-01_task-x` and so on; the channel INDEX counts samples in microvolts."""
    folder = root / name.split("_")[0] / "eeg"
    folder.mkdir(parents=True, exist_ok=True)
    x = samples(n, len(names)) * (1 + seed / 10)
    x[INDEX] = samples(n, len(names))[INDEX]
    return write_vhdr(folder / f"{name}_eeg.vhdr", x, names)


def write_table(path: Path, *lines: str) -> Path:
    """Columns are separated by blanks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join("\t".join(line.split()) for line in lines) + "\n")
    return path
