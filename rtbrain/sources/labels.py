"""Names and units as files and streams write them."""

import re
from collections import Counter
from collections.abc import Sequence

from rtbrain.errors import ChannelError, ConfigError

VOLTS = {"V": 1.0, "mV": 1e-3, "uV": 1e-6, "nV": 1e-9}
"""Volts in one of each unit that a StreamInfo may declare."""

_UNIT = re.compile(r"(v|mv|uv|nv|(?:milli|micro|nano|)volts?)", re.IGNORECASE)
_SHORT = {"": "V", "milli": "mV", "micro": "uV", "nano": "nV", "m": "mV", "u": "uV", "n": "nV"}
_MU = str.maketrans({"\u03bc": "u", "\u00b5": "u"})

# Only what clearly is no electrode on the head. Names like `A1` or `EEG A2-A1` stay: the recipe picks by name.
_NO_EEG = re.compile(
    r"(?:eeg[ _:]+)?(?:"
    r"status|trig|sti(?:m|[ _]?\d)|event|marker|annot|edf annot|bdf annot|counter|photic|battery|"
    r"e[ck]g|[a-z]{0,2}eog|emg|exg|aux|gsr|eda|erg|resp|plet|temp|acc|gyro|sp?[ao]+2|dc[ _]?\d)",
    re.IGNORECASE,
)


def is_eeg_name(name: str) -> bool:
    """Tell whether a channel may be EEG by its name: `ECG1`, `HEOGL`, `Status` or `EXG3` are not."""
    return _NO_EEG.match(name.strip()) is None


def unit_name(written: str | None) -> str:
    """Return "V", "mV", "uV" or "nV" for the ways in which these are written, else "unknown".

    `microvolts`, `uV`, `µV` (either mu) and `UV` all give `uV`.
    """
    text = (written or "").strip().replace("\x83\xca", "u").translate(_MU)
    if _UNIT.fullmatch(text) is None:
        return "unknown"
    return _SHORT[re.sub(r"(volts?|v)$", "", text.lower())]


def chosen_unit(unit: str | None) -> str | None:
    """Check the unit that the caller states; None means that the source's own is taken."""
    if unit is None or unit_name(unit) != "unknown":
        return unit and unit_name(unit)
    raise ConfigError(f"unit {unit!r} is not known; give one of {', '.join(VOLTS)}")


def refuse_doubled(origin: object, names: Sequence[str]) -> None:
    """Raise a ChannelError that says which channel names occur more than once."""
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise ChannelError(
            f"{origin}: channel names are doubled: {', '.join(doubled)}; nobody can tell which is which: "
            "rename them in the recording"
        )
