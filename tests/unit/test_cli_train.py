"""What `rtbrain train` says of a bundle that it made."""

from dataclasses import replace

import pytest

from rtbrain.cli_train import show_trained
from rtbrain.decoder.bundle import load_bundle
from rtbrain.training.calibrate import HOTTEST
from tests.conftest import ROOT


def test_a_bundle_that_knows_nothing_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    bundle = load_bundle(ROOT / "models" / "mdd-ec")
    for temperature, said in ((HOTTEST, True), (1.5, False)):
        show_trained(replace(bundle, temperature=temperature))
        assert ("probabilities will stay near even" in " ".join(capsys.readouterr().out.split())) is said
