"""The soak test in short: a quarter of an hour of signal with every fault of its script, and every sample counted."""

import json
import subprocess
import sys

import pytest

from tests import lsl  # noqa: F401  (LSL stays within this test run)
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.live]


def test_every_sample_is_accounted_for_over_faults_in_accelerated_time() -> None:
    command = [sys.executable, "tools/soak", "--hours", "0.27", "--speed", "40", "--every", "60"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["unaccounted"], found["messages_missed"], found["exit_code"]) == (0, 0, 0)
    assert (found["reconnects"], found["faults"]) == (1, 12)
    assert found["skipped"] or found["rounding_per_fault"] <= 3  # faults in what was skipped are not seen
    assert found["received"] > 0.5 * found["sent"]
    assert found["decisions"] > 500
