"""The sender's clock, as far as LSL can tell from here."""

from typing import Any, Final

from pylsl.util import LostError
from pylsl.util import TimeoutError as LslTimeoutError

STEP_S: Final = 0.1
"""A change of the offset by more than this is a clock that was set, not a better measurement."""

_EVERY_S: Final = 1.0
_FIRST_EVERY_S: Final = 0.1


class SenderClock:
    """The offset between the sender's clock and this machine's, which liblsl measures in the background.

    Attributes
    ----------
    offset_s : float or None
        What is added to the sender's stamps to have the local LSL clock; None for about 0.6 s after each connection,
        since a device that was started again may have another clock.
    resets : int
        Number of times the clock was set, or began anew.
    """

    def __init__(self) -> None:
        self.offset_s: float | None = None
        self.resets = 0
        self._newest_s: float | None = None  # as offset_s, but kept over connections
        self._due_s = 0.0

    def forget(self) -> None:
        """Measure anew: this is another connection."""
        self.offset_s, self._due_s = None, 0.0

    def measure(self, inlet: Any, now_s: float) -> None:
        """Ask liblsl for its newest measurement, once in a while; never waits."""
        if now_s < self._due_s:
            return
        self._due_s = now_s + _FIRST_EVERY_S
        try:
            offset_s = float(inlet.time_correction(0.0))
        except (LslTimeoutError, LostError):  # the first measurement is under way; a loss shows with the samples
            return
        self._due_s = now_s + _EVERY_S
        stepped = self._newest_s is not None and abs(offset_s - self._newest_s) > STEP_S
        self.resets += inlet.was_clock_reset() or stepped
        self.offset_s = self._newest_s = offset_s
