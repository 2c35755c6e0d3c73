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


def test_what_no_epoch_made_better_or_what_tells_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    bundle = load_bundle(ROOT / "models" / "neurolong-demo")
    figures = bundle.metrics["validation"]
    for best, log_loss, start, nothing in ((0, 0.3, True, False), (3, 0.6931, False, True), (3, 0.3, False, False)):
        about = bundle.provenance | {"best_epoch": best}
        metrics = bundle.metrics | {"validation": figures | {"log_loss": log_loss}}
        show_trained(replace(bundle, temperature=1.5, provenance=about, metrics=metrics))
        said = " ".join(capsys.readouterr().out.split())
        assert ("the start is kept" in said) is start
        assert ("tells next to nothing" in said) is nothing
