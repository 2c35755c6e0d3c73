"""Colours that people with any usual form of colour blindness tell apart (Okabe and Ito), and a second sign beside."""

from typing import Final

STATES: Final = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#4477cc", "#d55e00", "#cc79a7", "#9a9a9a")
"""Microstates; from the ninth on they come again with a dark stripe, which grows with every round."""
STRIPE: Final = 0.2
UNLABELLED: Final = "#7f7f7f33"

_LINES: Final = ("#2f7fd6", "#e0681f", "#0a9d75", "#b765a5", "#b58900", "#3aa5c9", "#8a8a8a", "#a0522d")
_DASHES: Final = ("solid", "dashed", "dotted", "dotdash", "dashdot")


def look(state: int) -> tuple[str, float]:
    """Return a microstate's colour, and the share of its height that the dark stripe takes."""
    return STATES[state % len(STATES)], min(0.8, STRIPE * (state // len(STATES)))


def line(number: int) -> dict[str, str]:
    """Return colour and dash of a class; no two share both, as long as there are fewer than forty."""
    return {"colour": _LINES[number % len(_LINES)], "dash": _DASHES[number % len(_DASHES)]}
