"""Whether an answer may be trusted, and why not: what it rests on is compared with what training saw."""

from collections import deque
from math import floor
from typing import Final

from rtbrain.decoder.bundle import Trust
from rtbrain.messages import Tokens

WINDOW_S: Final = 5.0
"""Quality and fit are judged over the tokens of so many newest seconds: long enough to be steady, short enough to
notice an electrode that dies."""


class RecentFit:
    """As the mean quality and the explained variance of the tokens in the newest seconds, batch by batch."""

    def __init__(self, rate_hz: float, window_s: float = WINDOW_S) -> None:
        self._rate_hz, self._window_s = rate_hz, window_s
        self._rows: deque[tuple[float, float, float, float, float]] = deque()  # end_s, duration, three weighted sums

    def clear(self) -> None:
        """Forget all tokens."""
        self._rows.clear()

    def add(self, tokens: Tokens) -> None:
        """Take the next tokens, also those without a state: they tell of the signal all the same."""
        for token in tokens:
            weight = float(token.duration)
            end_s = (token.start + token.duration) / self._rate_hz
            self._rows.append(
                (end_s, weight, weight * token.quality, weight * token.power, weight * token.explained),
            )
        while self._rows and self._rows[0][0] < self._rows[-1][0] - self._window_s:
            self._rows.popleft()

    def quality(self) -> float:
        """Return the mean share of good channels, 0 without any token."""
        return self._ratio(2, 1)

    def gev(self) -> float:
        """Return the share of the field's variance that the templates explain, 0 without any field."""
        return self._ratio(4, 3)

    def _ratio(self, over: int, under: int) -> float:
        total = sum(row[under] for row in self._rows)
        return sum(row[over] for row in self._rows) / total if total > 0 else 0.0


def doubts(trust: Trust, quality: float, gev: float, context_s: float, wait_s: float, usual_s: float) -> list[str]:
    """Return what speaks against an answer, but for the age of its samples.

    Parameters
    ----------
    trust : Trust
        The bundle's limits.
    quality, gev : float
        Of the newest tokens.
    context_s : float
        Seconds of signal that the answer rests on.
    wait_s : float
        From the end of the newest token to the newest sample.
    usual_s : float
        What the chain itself may hold back.
    """
    found = []
    if quality < trust.min_quality:
        found.append(f"signal quality {quality:.2f} is below {trust.min_quality:.2f}")
    if gev < trust.min_gev:
        found.append(f"the templates explain {gev:.0%} of the field, in training at least {trust.min_gev:.0%}")
    if context_s < trust.min_context_s:
        found.append(f"the context of {floor(10 * context_s) / 10:.1f} s is shorter than {trust.min_context_s:g} s")
    if wait_s > usual_s + trust.max_age_s:
        found.append(f"the newest token ended {wait_s:.1f} s before the newest sample")
    return found


def age_doubts(trust: Trust, age_s: float | None) -> list[str]:
    """Return what the age of the newest sample speaks against an answer; None is an age that nobody knows."""
    if age_s is None:
        return ["the age of the data is not known yet"]
    if age_s > trust.max_age_s:
        return [f"the newest sample is {age_s:.1f} s old, more than {trust.max_age_s:g} s"]
    if age_s < -trust.max_age_s:
        return [f"the newest sample is stamped {-age_s:.1f} s ahead of time: the clocks disagree"]
    return []
