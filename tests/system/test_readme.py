"""The README tells the truth: its commands run in order as they are typed, over real streams."""

import re
from pathlib import Path

import pytest

from tests import lsl  # noqa: F401  # keeps streams to this test run, also those of processes
from tests.conftest import ROOT
from tests.pages import README, blocks, fill, run_commands, write_recording

pytestmark = [pytest.mark.patient, pytest.mark.slow]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the README supposes it: recordings, a BIDS set with its description, and the shipped models."""
    folder = fill(tmp_path_factory.mktemp("lab"))
    for person in range(1, 7):
        for number, task in enumerate(("rest", "arith")):
            name = f"sub-{person:02d}_task-{task}_eeg.edf"
            path = folder / "my-bids" / f"sub-{person:02d}" / "eeg" / name
            write_recording(path, 10 * person + number, 65, mean_duration_ms=60 + 30 * number)
    (folder / "my-bids" / "dataset_description.json").write_text('{"Name": "lab", "BIDSVersion": "1.8.0"}')
    (described,) = blocks(README, "yaml")
    (folder / "my-set.yaml").write_text(described)
    (folder / "models").mkdir()
    (folder / "models" / "mdd-ec").symlink_to(ROOT / "models" / "mdd-ec")
    return folder


@pytest.mark.timeout(900)
def test_the_readme(lab: Path) -> None:
    told = run_commands(lab, README)
    assert re.search(r"(healthy|MDD|depressed).* tokens; age", told), told  # what `watch` shows of the shipped decoder
    assert re.search(r"(rest|arithmetic) \(rest [01]\.\d+, arithmetic [01]\.\d+\)", told), told
    assert "all lines are sound" in told
    assert (lab / "models" / "mine" / "parity.json").is_file()


def test_the_subscribers_are_the_examples() -> None:
    """The examples themselves are run against a decoder by their own tests."""
    examples = ROOT / "docs" / "examples"
    assert blocks(README, "python") == [(examples / "subscribe.py").read_text()]
    assert blocks(README, "javascript") == [(examples / "listen.mjs").read_text()]
