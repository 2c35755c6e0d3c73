"""What an EDF or BDF header tells that is not brain: the date and the filters of the recording."""

from pathlib import Path

from rtbrain.training.trials import Value


def edf_facts(path: Path) -> dict[str, Value]:
    """Return `header_date` (dd.mm.yy hh.mm.ss) and `prefilter` of the first signal, as far as they are given."""
    with path.open("rb") as file:
        head = file.read(256)
        n_signals = int(head[252:256])
        # Fields are stored for all signals in a row; 136 bytes of each signal's 256 come before the prefilter.
        file.seek(256 + 136 * n_signals)
        prefilter = file.read(80)
    date = f"{_text(head[168:176])} {_text(head[176:184])}"
    facts: dict[str, Value] = {"header_date": date.strip(), "prefilter": _text(prefilter)}
    return {name: value for name, value in facts.items() if value}


def _text(field: bytes) -> str:
    return field.decode("latin-1").strip("\x00 ")
