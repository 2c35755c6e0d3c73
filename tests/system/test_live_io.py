"""Input and output of the live decoder, each side in a process of its own, over real LSL."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtbrain.conditioning.continuity import Continuity
from rtbrain.messages import Break
from rtbrain.microstates.templates import Templates
from rtbrain.pipeline import Recipe, build
from rtbrain.protocol import Encoder
from rtbrain.sinks.session_log import SessionLog
from rtbrain.sources.chunking import Source
from rtbrain.sources.lsl import LslSettings, LslSource
from rtbrain.sources.lsl_markers import LslMarkers
from rtbrain.sources.recording import excerpt, open_recording
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from tests import lsl
from tests.parity.test_recordings_cuts import default_recipe, some_maps, tokens
from tests.streams import assert_same
from tests.system.test_cli import invoke, refused, write_eeg
from tests.unit.sinks.examples import STATE
from tests.xdf_writer import XdfStream, write_xdf

pytestmark = pytest.mark.slow

SECONDS = 20.0


@contextmanager
def running(*command: object) -> Iterator[subprocess.Popen[str]]:
    """Run a process for as long as the block lasts."""
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def replaying(file: Path, name: str, *options: object) -> Any:
    return running(sys.executable, "-m", "rtbrain", "replay", file, "--name", name, *options)


def decode(source: LslSource, recipe: Recipe, templates: Templates, n: int) -> tuple[list[Any], Continuity]:
    """Run the first n samples of a live stream through the chain."""
    chain = build(recipe, templates)
    chain.open(source.info)
    out: list[Any] = []
    deadline = time.monotonic() + 60
    while source.counts.received < n:
        assert time.monotonic() < deadline, f"{source.counts}, {source.trouble}"
        for item in source.pull(0.1):
            out += chain.process(item)
    return out + chain.flush(), chain.find(Continuity)


def live_tokens(file: Path, source: Source, recipe: Recipe, templates: Templates, *options: object) -> list[Any]:
    name = lsl.name()
    with replaying(file, name, "--wait", "--speed", 40, *options) as process:
        # The stream may be slower than this machine, but nothing is skipped: all samples must come out.
        with LslSource(lsl.seen(name), LslSettings(max_behind_s=None)) as live:
            assert live.info == source.info
            out, _ = decode(live, recipe, templates, source.n_samples)
        assert process.wait(60) == 0, process.stderr.read()
    return out


@pytest.mark.parametrize(
    ("path", "chunk_ms"), [("mdd/H S1 EC.edf", 10), ("formats/*/test.edf", 37), ("formats/*/S001R01.edf", 200)]
)
def test_a_recording_over_lsl_gives_the_tokens_of_the_file(data: Path, path: str, chunk_ms: int) -> None:
    file = next(iter(data.glob(path)), None)
    if file is None:
        pytest.skip(f"{path} is not in {data}")
    source = excerpt(open_recording(file), 5.0, SECONDS)
    recipe = default_recipe(source)
    templates = some_maps(source, recipe)
    live = live_tokens(file, source, recipe, templates, "--chunk-ms", chunk_ms, "--start", 5, "--stop", 5 + SECONDS)
    assert_same(live, tokens(source, recipe, templates, None))
    assert len(live) > 1


def test_gaps_of_a_recording_are_the_same_live(tmp_path: Path) -> None:
    """A single lost sample, some filled ones, a break and a new context: the stamps bring all of them across."""
    made = Synthetic(SyntheticSettings(duration_s=SECONDS))
    x = np.concatenate([chunk.data for chunk in made.chunks()])
    keep = np.ones(len(x), bool)
    for at_s, lost in ((4.0, 1), (6.0, 8), (8.0, 100), (12.0, 700)):
        keep[round(at_s * 250) : round(at_s * 250) + lost] = False
    labels = list(made.info.channels)
    stream = XdfStream(
        "EEG",
        x[keep],
        70 + np.flatnonzero(keep) / 250,
        250.0,
        format="double64",
        labels=labels,
        units=["uV"] * len(labels),
    )
    file = write_xdf(tmp_path / "gaps.xdf", stream)
    source = open_recording(file)
    recipe, templates = default_recipe(source), Templates(made.info.channels, (made.maps,))
    wanted = tokens(source, recipe, templates, None)
    assert [item.kind for item in wanted if isinstance(item, Break)] == ["gap", "context"]
    assert_same(live_tokens(file, source, recipe, templates), wanted)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_eeg(tmp_path_factory.mktemp("live") / "sub-01_task-rest_eeg.edf", seconds=20.0)


def test_faults_of_a_script_are_counted(recording: Path, tmp_path: Path) -> None:
    script = tmp_path / "faults.yaml"
    script.write_text(
        "loss: [{at_s: 5, for_s: 0.3}, {at_s: 8, for_s: 0.02}]\nduplicate: [{at_s: 10, for_s: 0.5}]\n"
        "clock_step: [{at_s: 15, step_s: -60}]\n"
    )
    source = open_recording(recording)
    recipe = Recipe()
    templates = Templates(source.info.channels, (Synthetic(SyntheticSettings()).maps,))
    name = lsl.name()
    with (
        replaying(recording, name, "--wait", "--speed", 10, "--faults", script),
        LslSource(lsl.seen(name), LslSettings(max_behind_s=None)) as live,
    ):
        _, continuity = decode(live, recipe, templates, source.n_samples - 75 - 5 + 125)
    counts = continuity.counts
    assert (counts.lost, counts.filled) == (75, 5)
    # Of samples that come twice, the last few make the grid slip instead, or are within its jitter.
    assert 120 <= counts.repeated + counts.slipped_out <= 125
    assert (counts.breaks, counts.clock_steps) == (2, 1)


def test_listed_with_markers_and_stopped_by_ctrl_c(recording: Path, tmp_path: Path) -> None:
    file = tmp_path / recording.name
    file.write_bytes(recording.read_bytes())
    (tmp_path / "sub-01_task-rest_events.tsv").write_text("onset\ttrial_type\n1.0\tgo\n2.0\tstop\n")
    name = lsl.name()
    with replaying(file, name, "--loop", "--speed", 10, "--wait", "--stop", 10) as process:
        markers = LslMarkers(lsl.seen(f"{name}-markers"))
        listed = {each["name"]: each for each in json.loads(invoke("streams", "--json").stdout)}
        assert (listed[name]["type"], listed[name]["channels"], listed[name]["rate_hz"]) == ("EEG", 19, 250.0)
        assert f"{name}-markers" in listed
        found = []
        with LslSource(lsl.seen(name)) as live:
            lsl.pull_until(live, lambda: bool(found.extend(markers.pull())) or len(found) >= 4)  # into the second pass
        markers.close()
        assert [marker.text for marker in found[:4]] == ["go", "stop", "go", "stop"]
        steps = np.diff([marker.time_s for marker in found[:4]])
        assert np.allclose(steps, [1.0, 9.0, 1.0], atol=0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "2 markers" in out.splitlines()[0]
    assert "stopped after" in out.splitlines()[1]


AMPLIFIER = """
import sys, time, pylsl
info = pylsl.StreamInfo(sys.argv[1], "EEG", 2, 250, "float32", "amplifier-1")
channels = info.desc().append_child("channels")
for label in ("Fz", "Cz"):
    channel = channels.append_child("channel")
    channel.append_child_value("label", label)
    channel.append_child_value("unit", "microvolts")
outlet = pylsl.StreamOutlet(info)
while True:
    outlet.push_sample([1.0, 2.0])
    time.sleep(0.004)
"""


def test_an_amplifier_that_is_killed_and_started_again() -> None:
    name = lsl.name()
    with running(sys.executable, "-c", AMPLIFIER, name) as first:
        live = LslSource(lsl.seen(name), LslSettings(search_after_s=0.5))
        lsl.pull_until(live, lambda: live.counts.received > 50)
        first.kill()
    with live:
        lsl.pull_until(live, lambda: live.state == "lost")
        before = live.counts.received
        with running(sys.executable, "-c", AMPLIFIER, name):
            came_back, *_ = lsl.pull_until(live, lambda: live.state == "recovered")
        assert isinstance(came_back, Break)
        assert came_back.kind == "context"
        assert live.counts.received > before
        assert live.counts.reconnects == 1
    chain = build(Recipe(), upto="samples")
    chain.open(replace(live.info, channels=("Fz", "Cz", "Pz")))
    assert chain.process(came_back) == [came_back]  # a chain takes the break as it comes


def test_keys_and_session_commands(tmp_path: Path) -> None:
    assert invoke("keys", "new", tmp_path / "keys", "--name", "lab").exit_code == 0
    assert "exists" in refused("keys", "new", tmp_path / "keys", "--name", "lab")
    assert (tmp_path / "keys" / "lab.key_secret").is_file()
    encoder = Encoder()
    with SessionLog(tmp_path / "log") as log:
        for _ in range(10):
            log.write(encoder.frame(STATE, 1.0))
    done = invoke("session", "check", tmp_path / "log")
    assert (done.exit_code, "10 state" in done.stdout) == (0, True)
    (file,) = (tmp_path / "log").glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b'"seq":5', b'"seq":6'))
    damaged = invoke("session", "check", tmp_path / "log", "--salvage", tmp_path / "sound.jsonl")
    assert damaged.exit_code == 2
    assert "wrote 9 sound lines" in damaged.stdout
    assert "damaged" in damaged.stderr


def test_bad_commands_say_what_is_wrong(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("losss: []\n")
    assert "losss" in refused("replay", recording, "--faults", tmp_path / "bad.yaml")
    assert "not after" in refused("replay", recording, "--start", 5, "--stop", 4)
    assert "not in a recording" in refused("replay", recording, "--start", 500, "--stop", 600)


def test_the_live_path_loads_neither_torch_nor_mne() -> None:
    program = (
        "import sys, rtbrain.sources.lsl, rtbrain.sources.lsl_markers, rtbrain.sinks.zmq_pub, rtbrain.sinks.zmq_sub\n"
        "import rtbrain.sinks.lsl_out, rtbrain.sinks.session_log, rtbrain.telemetry, rtbrain.pipeline\n"
        "print([name for name in ('torch', 'mne', 'mne_lsl', 'matplotlib', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
