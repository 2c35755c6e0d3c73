"""The live loop where its limits must be set: overload, an error of the program, and parity certificates."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtbrain.decoder.bundle import Bundle
from rtbrain.decoder.session import load_step
from rtbrain.errors import SinkError
from rtbrain.live import Live, LiveSettings
from rtbrain.live_outputs import Outputs, open_outputs
from rtbrain.live_state import has_parity
from rtbrain.sinks.session_check import read_session
from rtbrain.sources.lsl import LslSettings
from tests import lsl
from tests.bundles import make_bundle
from tests.decoding import RATE, Amplifier

HERE = "tcp://127.0.0.1:0"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(tmp_path_factory.mktemp("models") / "small")


def logged(folder: Path, topic: str) -> list[dict[str, Any]]:
    messages = [record["message"] for record in read_session(folder) if "message" in record]
    return [message for message in messages if message["topic"] == topic]


def live_on(amplifier: Amplifier, bundle: Bundle, outputs: Outputs, stop: Any, **more: Any) -> Live:
    settings = LiveSettings(amplifier.name, lsl=more.pop("lsl", LslSettings()))
    return Live(bundle, load_step(bundle.step, "cpu"), outputs, settings, stop, lambda text: None, **more)


@pytest.mark.slow
def test_an_overloaded_decoder_skips_to_the_present_and_says_how_much(bundle: Bundle, tmp_path: Path) -> None:
    amplifier = Amplifier(lsl.name(), 100.0)
    # A little at a time, which is never too much, then far more than can be decoded in time, then a little at a time
    # again: what is skipped before the first or after the last decoded sample would be missing from no grid.
    parts = iter([0.4] * 5 + [60.0] + [0.4] * 20)

    def stop() -> bool:
        """Send the next part once all before it was decoded or skipped; stop when there is none left."""
        counts = None if live.source is None else live.source.counts
        if counts is None or not amplifier.outlet.have_consumers() or counts.received + counts.skipped < amplifier.at:
            return False
        part = next(parts, None)
        if part is not None:
            amplifier.send(part)
        return part is None

    with open_outputs(HERE, bundle.classes, log=tmp_path) as outputs:
        live = live_on(amplifier, bundle, outputs, stop, lsl=LslSettings(max_behind_s=0.5, patience_s=0.01))
        live.run()
    amplifier.close()
    samples = logged(tmp_path, "status")[-1]["samples"]
    assert samples["skipped"] > 30 * RATE
    assert samples["received"] + samples["skipped"] == 70 * RATE
    assert samples["lost"] == samples["skipped"]
    states = logged(tmp_path, "state")
    assert states[-1]["context"]["number"] == 2
    assert "s without samples" in states[-1]["context"]["began"]
    assert states[-1]["signal_s"] > 67  # that is the present


@pytest.mark.parametrize(("waiting", "times"), [(0, 3), (10, 0)])
def test_decisions_are_computed_ahead_while_no_samples_wait(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, waiting: int, times: int
) -> None:
    left, done = iter([False] * 3 + [True]), []
    with open_outputs(HERE, bundle.classes) as outputs:
        live = Live(bundle, load_step(bundle.step, "cpu"), outputs, LiveSettings("any"), lambda: next(left), print)
        live.source = SimpleNamespace(pull=lambda timeout_s: [], waiting=waiting)  # type: ignore[assignment]
        context = SimpleNamespace(keep_warm=lambda: None)
        live._decoder = SimpleNamespace(anticipate=lambda: done.append(None), context=context)  # type: ignore[assignment]
        monkeypatch.setattr(live, "_tick", lambda: None)
        live._loop()
    assert len(done) == times


@pytest.mark.slow
def test_an_error_of_the_program_is_published_and_raised(bundle: Bundle, tmp_path: Path) -> None:
    amplifier = Amplifier(lsl.name(), 1.0)

    def broken(decoder: object) -> None:
        raise ZeroDivisionError

    with open_outputs(HERE, bundle.classes, log=tmp_path) as outputs, pytest.raises(ZeroDivisionError):
        live_on(amplifier, bundle, outputs, lambda: False, prepare=broken).run()
    amplifier.close()
    assert logged(tmp_path, "status")[-1]["trouble"] == "ended by an error of the program"


def test_the_status_says_how_many_markers_were_dropped(bundle: Bundle, tmp_path: Path) -> None:
    settings = LiveSettings(lsl.name(), markers="Markers")
    with open_outputs(HERE, bundle.classes, log=tmp_path) as outputs:
        for watch in (None, SimpleNamespace(dropped=7, close=lambda: None)):
            step = load_step(bundle.step, "cpu")
            live = Live(bundle, step, outputs, settings, lambda: True, lambda text: None)
            live._markers = watch  # type: ignore[assignment]
            live.run()
    assert [each["markers_dropped"] for each in logged(tmp_path, "status")] == [None, 7]


def test_a_certificate_counts_for_its_own_bundle_only(bundle: Bundle) -> None:
    card = bundle.folder / "parity.json"
    assert not has_parity(bundle)
    for content, counts in (
        ({"bundle_sha256": bundle.sha256, "passed": True}, True),
        ({"bundle_sha256": bundle.sha256, "passed": False}, False),
        ({"bundle_sha256": "0" * 64, "passed": True}, False),
        ([], False),
    ):
        card.write_text(json.dumps(content))
        assert has_parity(bundle) is counts
    card.unlink()


def test_outputs_are_opened_all_or_none(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with open_outputs(HERE, bundle.classes) as free:
        endpoint = free.zmq.endpoint
    with pytest.raises(SinkError, match="no session log"):
        open_outputs(endpoint, bundle.classes, log=tmp_path / "file")
    open_outputs(endpoint, bundle.classes).close()  # the port is free again


def test_only_the_decoder_is_loaded_lazily() -> None:
    import rtbrain

    with pytest.raises(AttributeError, match="no attribute 'Encoder'"):
        rtbrain.Encoder  # noqa: B018
