import time

import numpy as np
import pytest

from rtbrain.telemetry import CpuMeter, Recent, rss_mb


def test_percentiles_of_the_newest_values(rng):
    recent, values = Recent(100), rng.normal(0, 1, 1000)
    assert recent.summary() is None
    for value in values:
        recent.add(float(value))
    found = recent.summary()
    assert (found.n, recent.count) == (100, 1000)
    assert (found.p50, found.p95, found.p99) == pytest.approx(np.percentile(values[-100:], (50, 95, 99)))
    assert found.largest == values.max()


def test_negative_ages_are_kept():
    recent = Recent(4)
    recent.add(-0.02)
    assert recent.summary().largest == recent.summary().p50 == -0.02


def test_a_busy_process_uses_a_core_and_an_idle_one_does_not():
    meter = CpuMeter()
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    busy = meter.share()
    time.sleep(0.1)
    assert meter.share() < busy <= 1.5


def test_memory_grows_by_what_is_allocated():
    before = rss_mb()
    block = np.ones(10_000_000)
    assert 60 < rss_mb() - before < 120
    assert before > 5
    del block
