"""Other people's programs at both ends: MNE-LSL as an amplifier, and standard clients that read the decisions."""

import json
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pylsl
import pytest

from rtbrain.sinks.lsl_out import LslStateOutlet
from rtbrain.sources.lsl import LslSource
from rtbrain.sources.recording import open_recording
from tests import lsl
from tests.bundles import make_bundle
from tests.decoding import Amplifier, Decoding, is_state
from tests.system.test_cli import write_eeg
from tests.system.test_live_io import running
from tests.unit.sinks.examples import META, STATE

pytestmark = [pytest.mark.live, pytest.mark.slow]

PLAYER = """
import sys, time, mne
from mne_lsl.player import PlayerLSL
player = PlayerLSL(mne.io.read_raw(sys.argv[1], preload=True, verbose="ERROR"), chunk_size=50, name=sys.argv[2])
with player:
    time.sleep(60)
"""


def test_mne_lsls_player_as_an_amplifier(tmp_path: Path) -> None:
    """It stamps ahead of time: the age is negative, and is not hidden."""
    name, recording = lsl.name(), write_eeg(tmp_path / "rest.edf", seconds=20.0)
    with running(sys.executable, "-c", PLAYER, recording, name), LslSource(lsl.seen(name)) as live:
        assert live.info == replace(open_recording(recording).info, unit="V")
        ages: list[float] = []
        items = []
        while not ages or live.counts.received < 500:
            assert live.state != "lost"
            for item in live.pull(0.1):
                items.append(item)
                age_s = live.age_s(float(item.times[-1]))
                ages += [] if age_s is None else [age_s]
        x = np.concatenate([chunk.data for chunk in open_recording(recording).chunks()])
        got = lsl.samples_of(items)
        row = int(np.abs(x - got[0]).sum(axis=1).argmin())
        assert np.allclose(np.concatenate([x, x])[row : row + len(got)], got, atol=1e-9)
        assert min(ages) < 0


def test_mne_lsls_player_feeds_the_decoder(tmp_path: Path) -> None:
    """As it stamps ahead, decisions say a negative age."""
    bundle, name = make_bundle(tmp_path / "small"), lsl.name()
    recording = write_eeg(tmp_path / "rest.edf", seconds=20.0)
    with Decoding(bundle.folder, name) as decoding, running(sys.executable, "-c", PLAYER, recording, name):
        ahead = decoding.until(lambda each: is_state(each) and (each["age"]["total_s"] or 0.0) < 0)
        assert ahead["age"]["transport_s"] < 0
        trusted = decoding.until(lambda each: is_state(each) and each["trusted"])  # ahead by less than a second
        assert trusted["context"]["seconds"] >= bundle.trust.min_context_s
        assert decoding.ended()[0] == 0
    assert decoding.of("status")[-1]["samples"]["lost"] == 0


READERS = {
    "pylsl": """
import json, sys, pylsl
(found,) = pylsl.resolve_byprop("name", sys.argv[1], timeout=60)
inlet = pylsl.StreamInlet(found)
labels = inlet.info().get_channel_labels()
sample, stamp = inlet.pull_sample(timeout=60)
print(json.dumps([labels, sample, stamp]))
""",
    "mne-lsl": """
import json, sys, time
from mne_lsl.stream import StreamLSL
stream = StreamLSL(bufsize=5, name=sys.argv[1]).connect(acquisition_delay=0.01, timeout=60)
while not stream.n_new_samples:
    time.sleep(0.05)
data, stamps = stream.get_data()
print(json.dumps([stream.ch_names, data[:, -1].tolist(), float(stamps[-1])]))
stream.disconnect()
""",
}


def test_standard_clients_read_the_decoders_own_stream(tmp_path: Path) -> None:
    """Both at once, each in its own process: what they read is what was published over ZeroMQ."""
    bundle, name = make_bundle(tmp_path / "small"), lsl.name()
    amplifier, out = Amplifier(name, 120.0), f"{name}-out"
    with Decoding(bundle.folder, name, "--lsl-out", out) as decoding, ExitStack() as stack:
        clients = [stack.enter_context(running(sys.executable, "-c", each, out)) for each in READERS.values()]
        amplifier.heard()
        amplifier.send(5.0)
        deadline = time.monotonic() + 90
        while any(client.poll() is None for client in clients):
            assert time.monotonic() < deadline, "a client does not end"
            amplifier.send(0.1)
            decoding.until(is_state)
            time.sleep(0.05)
        said = [client.communicate() for client in clients]
        while decoding.receive(0.5) is not None:
            pass
    amplifier.close()
    published = [list(each["probabilities"].values()) for each in decoding.of("state")]
    for out_text, err in said:
        assert out_text, err
        labels, values, _ = json.loads(out_text.splitlines()[-1])
        assert labels == ["p(rest)", "p(task)", "class", "trusted", "context_s", "age_s"]
        assert np.abs(np.array(published) - values[:2]).max(axis=1).min() < 1e-6


@pytest.mark.parametrize("client", READERS)
def test_decisions_are_read_by_standard_clients(client: str) -> None:
    name = lsl.name()
    outlet = LslStateOutlet(name, META.classes)
    with running(sys.executable, "-c", READERS[client], name) as process:
        deadline = time.monotonic() + 60
        while process.poll() is None:
            assert time.monotonic() < deadline, "the client does not end"
            outlet.send(replace(STATE, time_s=pylsl.local_clock()))
            time.sleep(0.05)
        out, err = process.communicate()
    outlet.close()
    assert process.returncode == 0, err
    labels, values, stamp = json.loads(out.splitlines()[-1])
    assert labels == ["p(rest)", "p(arithmetic)", "class", "trusted", "context_s", "age_s"]
    assert values == pytest.approx([0.7, 0.3, 0.0, 0.0, 2.0, 0.05])
    assert abs(stamp - pylsl.local_clock()) < 60
