"""What state a live source is in, judged by when samples come: nothing else tells that an amplifier went silent."""

from dataclasses import dataclass
from typing import Final

from rtbrain.config import Positive
from rtbrain.published import SourceState

LEAST_S: Final = 0.1
"""Limits are scaled by a replay's speed, but not below this: an operating system may pause a program for so long."""


@dataclass(frozen=True)
class WatchSettings:
    """Limits in seconds of signal; a replay at ten times the speed has them at a tenth of the time."""

    stall_s: Positive = 0.7
    """Silence after which the source counts as stalled: below 1 s, so that a status each second cannot miss it."""
    recovered_s: Positive = 2.0
    """For so long after a stall or loss the state is `recovered`."""


class Watch:
    """The state of one source; all times are those of one monotonic clock, handed in."""

    def __init__(self, settings: WatchSettings, now_s: float) -> None:
        self._settings = settings
        self.speed = 1.0
        """Seconds of signal per second."""
        self._since_s = now_s
        self._newest_s = now_s
        self.state: SourceState = "waiting"
        self.stalls = 0
        """Number of times the source fell silent or was lost."""
        self._away_s = 0.0  # without samples in the stalls and losses that are over

    def silent_s(self, now_s: float) -> float:
        """Return how long ago the newest sample came, or the connection was made."""
        return now_s - self._newest_s

    def away_s(self, now_s: float) -> float:
        """Return how long all stalls and losses lasted together, from the last sample before each to the next."""
        return self._away_s + (self.silent_s(now_s) if self.state in ("stalled", "lost") else 0.0)

    def samples(self, now_s: float) -> None:
        """Take note that samples came."""
        if self.state in ("stalled", "lost"):
            self._away_s += self.silent_s(now_s)
            self._turn("recovered", now_s)
        elif self.state == "waiting" or (
            self.state == "recovered" and self._over(now_s - self._since_s, self._settings.recovered_s)
        ):
            self._turn("live", now_s)
        self._newest_s = now_s

    def silence(self, now_s: float) -> None:
        """Take note that no sample came."""
        if self.state in ("live", "recovered") and self._over(self.silent_s(now_s), self._settings.stall_s):
            self.stalls += 1
            self._turn("stalled", now_s)

    def lost(self, now_s: float) -> None:
        """Take note that the connection is gone."""
        if self.state not in ("stalled", "lost"):
            self.stalls += 1
        if self.state != "lost":
            self._turn("lost", now_s)

    def _over(self, took_s: float, limit_s: float) -> bool:
        return took_s >= max(LEAST_S, limit_s / self.speed)

    def _turn(self, state: SourceState, now_s: float) -> None:
        self.state, self._since_s = state, now_s
