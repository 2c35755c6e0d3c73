"""`rtbrain dashboard` in a real browser, fed by a real replay through LSL, `rtbrain stream` and ZeroMQ."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from rtbrain.dashboard.palette import STATES
from rtbrain.protocol import Encoder
from rtbrain.published import Message, StateStatistics
from rtbrain.security import load_server_keys, new_keys
from rtbrain.sinks.zmq_pub import ZmqPublisher
from tests import lsl
from tests.browser import PATIENCE_S, Tab, browsing
from tests.bundles import make_bundle
from tests.decoding import Decoding
from tests.system.test_cli import write_eeg
from tests.system.test_live_io import replaying, running
from tests.unit.sinks.examples import META, STATE, STATUS, TOKEN

pytestmark = [pytest.mark.slow, pytest.mark.live]

USUAL = StateStatistics(
    coverage=(0.1, 0.2, 0.3, 0.4), duration_s=(0.05, 0.06, 0.07, 0.08), transitions=((0.25,) * 4,) * 4
)
SHOWN = """({
    seq: Number(document.body.dataset.seq),
    label: document.getElementById("label").textContent,
    confidence: document.getElementById("confidence").textContent,
    trusted: document.getElementById("trust").dataset.trusted === "true",
    reasons: [...document.querySelectorAll("#reasons li")].map((each) => each.textContent),
    probabilities: Object.fromEntries([...document.querySelectorAll(".bar")].map((row) => [row.dataset.name, row.lastChild.textContent])),
})"""  # noqa: E501
COLUMNS = (
    "Object.fromEntries(Object.entries(Bokeh.documents[0].get_model_by_name('{}').data).map(([k, v]) => [k, [...v]]))"
)


@contextmanager
def serving(endpoint: str, *options: object) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Serve the page for as long as the block lasts; give its address."""
    command = (sys.executable, "-m", "rtbrain", "dashboard", "--zmq", endpoint, "--port", 0, *options)
    with running(*command) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        if found is None:
            process.kill()
            raise AssertionError(f"{line}{process.communicate()}")
        yield found.group(), process


def condition_is(name: str) -> str:
    return f"document.body?.dataset.condition === '{name}'"


def test_the_page_shows_what_is_published(tmp_path: Path) -> None:
    """From waiting over live to stalled and back: each value on the page is that of the message with its number."""
    name, bundle = lsl.name(), make_bundle(tmp_path / "small", statistics=(USUAL,))
    file = write_eeg(tmp_path / "session.edf", seconds=60.0)
    with Decoding(bundle.folder, name) as decoding, serving(decoding.endpoint) as (url, server), browsing() as tab:
        tab.look(1360, 1000)
        tab.open(url)
        tab.until(condition_is("waiting"))
        tab.until("document.getElementById('headline').textContent === 'Waiting for the EEG stream'")
        with replaying(file, name, "--loop") as replay:
            tab.until(condition_is("live"))
            assert_decisions_are_the_messages(tab, decoding)
            assert_drawings_are_the_messages(tab, decoding)
            tab.until("document.querySelectorAll('.state.active').length === 1")
            assert tab.evaluate("[...document.querySelectorAll('.state image')].length") == 4
            assert "(40 %)" in tab.evaluate("document.querySelectorAll('.state .coverage')[3].textContent")
            assert tab.evaluate("document.querySelectorAll('.electrode:not(.bad)').length") == 19
            pictures(tab, Path(os.environ.get("RTBRAIN_SCREENSHOTS", tmp_path)))
            replay.send_signal(signal.SIGSTOP)
            tab.until("['stalled', 'lost'].includes(document.body.dataset.condition)")
            tab.until("/^since \\d\\d:\\d\\d:\\d\\d \\(\\d+ s\\)$/.test(document.getElementById('since').textContent)")
            assert tab.evaluate("document.querySelectorAll('.state.active').length") == 0
            replay.send_signal(signal.SIGCONT)
            tab.until(condition_is("live"))
        decoding.ended()
        tab.until(condition_is("silent"))
        assert "its last word: stopped" in tab.text()
        assert tab.errors == []
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE_S) == 0
        tab.until("document.getElementById('headline').textContent === 'This page has lost its server'")


def assert_decisions_are_the_messages(tab: Tab, decoding: Decoding) -> None:
    """Look at the page again and again until both classes, and both kinds of trust, have been on it."""
    deadline, labels, trusts, compared = time.monotonic() + PATIENCE_S, set(), set(), 0
    while len(labels) < 2 or len(trusts) < 2 or compared < 10:
        assert time.monotonic() < deadline, f"the page showed only {labels}, {trusts}, {compared} decisions"
        shown = tab.evaluate(SHOWN)
        state = message_of_number(decoding, shown["seq"])
        assert shown["label"] == state["label"]
        assert shown["confidence"] == f"{int(100 * state['probabilities'][state['label']] + 0.5)} %"
        assert shown["trusted"] == state["trusted"]
        assert shown["reasons"] == state["reasons"]
        for each, share in state["probabilities"].items():
            assert float(shown["probabilities"][each]) == pytest.approx(share, abs=6e-4)
        labels.add(shown["label"])
        trusts.add(shown["trusted"])
        compared += 1


def message_of_number(decoding: Decoding, seq: int) -> dict[str, Any]:
    known = next((each for each in decoding.of("state") if each["seq"] == seq), None)
    return known or decoding.until(lambda each: each["topic"] == "state" and each["seq"] == seq)


def assert_drawings_are_the_messages(tab: Tab, decoding: Decoding) -> None:
    """The curve of the first class, and the ribbon, are rows of messages without a hole."""
    curve = [each for each in tab.evaluate(COLUMNS.format("recent-source"))["p0"] if each is not None]
    ribbon = tab.evaluate(COLUMNS.format("ribbon-source"))
    # What the page has shown may still wait to be received here.
    message_of_number(decoding, tab.evaluate(SHOWN)["seq"])
    decoding.until(lambda each: each["topic"] == "token" and end_s(each) > max(ribbon["right"]) - 1e-9, since=0)
    told = [next(iter(each["probabilities"].values())) for each in decoding.of("state")]
    assert len(curve) > 20
    assert is_part(curve, told)
    tokens = [(each["start_s"], end_s(each)) for each in decoding.of("token")]
    drawn = list(zip(ribbon["left"], ribbon["right"], strict=True))
    assert len(drawn) > 20
    assert is_part(drawn, tokens)
    colours = [STATES[each["state"]] for each in decoding.of("token") if each["state"] is not None]
    assert is_part([each for each in ribbon["colour"] if each in STATES], colours)


def end_s(token: dict[str, Any]) -> float:
    return float(token["start_s"] + token["duration_s"])


def is_part(part: list[Any], whole: list[Any]) -> bool:
    rows, n = np.array(whole), len(part)
    if rows.dtype.kind == "U":
        return any(list(whole[i : i + n]) == part for i in range(len(whole) - n + 1))
    return any(np.allclose(rows[i : i + n], part, atol=1e-9) for i in range(len(rows) - n + 1))


def pictures(tab: Tab, folder: Path) -> None:
    """Write the page in light, dark and on a phone; it shows the ribbon's and the topographies' colours, and fits."""
    for name, size, dark in (
        ("light", (1360, 1000), False),
        ("dark", (1360, 1000), True),
        ("phone", (400, 860), False),
    ):
        tab.look(*size, dark=dark)
        tab.until(f"innerWidth === {size[0]} && document.documentElement.scrollWidth <= innerWidth")
        tab.screenshot(folder / f"{name}.png")
        image = (255 * matplotlib.image.imread(folder / f"{name}.png")[..., :3]).round().astype(int)
        paper = np.array([0x0E, 0x11, 0x16] if dark else [0xF3, 0xF4, 0xF6])
        assert np.abs(image[-1, 0] - paper).max() <= 1
        for colour in (*STATES[:4], "#f7f7f7"):  # four states, and the middle of a field
            wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
            assert (np.abs(image - wanted).max(axis=-1) <= 12).sum() > 100, f"{name} lacks {colour}"
    tab.look(1360, 1000)


def published(publisher: ZmqPublisher, messages: list[Message]) -> Callable[[], None]:
    encoder = Encoder()

    def again() -> None:
        for each in messages:
            publisher.send(encoder.frame(each, time.monotonic()))

    return again


def test_keys_bad_electrodes_and_names_that_are_markup(tmp_path: Path) -> None:
    """An encrypted decoder is watched by who has a key; its words are shown, never run."""
    for name in ("decoder", "page", "stranger"):
        new_keys(tmp_path / name, name)
    (tmp_path / "clients").mkdir()
    (tmp_path / "clients" / "page.key").write_bytes((tmp_path / "page" / "page.key").read_bytes())
    server = load_server_keys(tmp_path / "decoder" / "decoder.key_secret", tmp_path / "clients")
    evil = "<img src=x onerror=alert(1)>"
    meta = replace(META, classes=(evil, "rest"), channels=("Fz", "Cz", "Pz"), bundle=evil)
    state = replace(STATE, label=evil, probabilities={evil: 0.7, "rest": 0.3}, reasons=(evil,))
    decoders = ("--server", tmp_path / "decoder" / "decoder.key")

    def keys(who: str) -> tuple[object, ...]:
        return ("--key", tmp_path / who / f"{who}.key_secret", *decoders)

    with (
        ZmqPublisher("tcp://127.0.0.1:0", server) as publisher,
        serving(publisher.endpoint, *keys("page")) as (url, _),
        serving(publisher.endpoint, *keys("stranger")) as (other, _),
        browsing() as tab,
    ):
        again = published(publisher, [meta, STATUS, TOKEN, state])
        tab.open(url)
        deadline = time.monotonic() + PATIENCE_S
        while tab.evaluate(condition_is("live")) is not True:
            assert time.monotonic() < deadline, tab.text()
            again()
            time.sleep(0.1)
        assert tab.evaluate("document.getElementById('label').textContent") == evil
        tab.until("document.querySelectorAll('.electrode').length === 3")
        again()
        tab.until("[...document.querySelectorAll('.electrode.bad')].map((each) => each.dataset.name).join() === 'Pz'")
        assert tab.evaluate("document.querySelectorAll('main img, header img').length") == 0
        assert tab.errors == []
        tab.open(other)
        tab.until("document.getElementById('headline')?.textContent === 'Waiting for the decoder'")
        again()
        assert publisher.refused > 0
        assert tab.evaluate(condition_is("waiting"))
