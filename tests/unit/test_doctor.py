"""What the doctor says about streams, good and bad, from numbers alone."""

import numpy as np
import pytest

from rtbrain.doctor_stream import Measured, judge
from rtbrain.messages import StreamInfo

RATE = 250.0
N = 1250


def measured(**changes: object) -> Measured:
    rng = np.random.default_rng(0)
    stamps = 1000 + np.arange(N) / RATE
    values = {
        "info": StreamInfo(RATE, ("Fz", "Cz"), "uV"),
        "speed": 1.0,
        "stamps_s": stamps,
        "arrived_s": 50 + np.ceil((np.arange(N) + 1) / 5) * 5 / RATE,
        "ages_s": np.full(250, 0.004),
        "block": rng.normal(0, 15, (N, 2)),
    }
    return Measured(**(values | changes))


def verdicts(found: Measured) -> dict[str, str]:
    return {each.what: each.verdict for each in judge(found)}


def said(found: Measured, what: str) -> str:
    return next(each.text for each in judge(found) if each.what == what)


def test_a_good_stream() -> None:
    found = measured()
    assert set(verdicts(found).values()) == {"ok"}
    assert "250 Hz declared, 250.00 Hz by the stamps" in said(found, "rate")
    assert "5 samples arrive at a time (20 ms)" in said(found, "bursts")
    assert "4 ms old" in said(found, "clock")


STAMPS = 1000 + np.arange(N) / RATE


@pytest.mark.parametrize(
    ("changes", "what", "verdict", "text"),
    [
        ({"stamps_s": 1000 + np.arange(N) / 256}, "rate", "bad", "the declared rate is wrong"),
        ({"arrived_s": 50 + np.arange(N) / 150}, "rate", "note", "150.0 Hz arrive"),
        ({"arrived_s": 50 + np.ceil((np.arange(N) + 1) / 50) / 5}, "bursts", "note", "smaller blocks"),
        ({"stamps_s": STAMPS + 0.2 * (np.arange(N) > 600)}, "jitter", "note", "1 gap(s) above 40 ms"),
        ({"stamps_s": STAMPS + 1.7e9}, "clock", "bad", "since 1970"),
        ({"ages_s": np.full(9, -0.05)}, "clock", "note", "stamps ahead of time"),
        ({"ages_s": np.full(9, 12.0)}, "clock", "bad", "far behind"),
        ({"ages_s": np.empty(0)}, "clock", "note", "listen longer"),
        ({"block": np.random.default_rng(0).normal(0, 15e-6, (N, 2))}, "unit", "bad", "V would fit: give --unit"),
        ({"info": StreamInfo(RATE, ("Fz", "Cz"), "unknown")}, "unit", "bad", "the stream declares none; uV"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, object], what: str, verdict: str, text: str) -> None:
    found = measured(**changes)
    assert verdicts(found)[what] == verdict
    assert text in said(found, what)


def test_a_silent_stream() -> None:
    empty = np.empty(0)
    found = measured(stamps_s=empty, arrived_s=empty, ages_s=empty, block=np.empty((0, 2)))
    assert verdicts(found) == {"samples": "bad"}
