"""The parts of the live benchmarks, each a process of its own: senders, a plain LSL reader, our decoder, the usual one.

python tools/bench/live_parts.py send NAME [--streams N] [--seconds S]
python tools/bench/live_parts.py read|decode|usual NAME --bundle FOLDER
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

RATE, CHUNK, STATES = 1000, 10, 6
PREFILLED, T_MAX = 15_000, 21_000
WINDOW_S = 1.0
"""What the usual pipeline labels for each answer."""


def stream_name(name: str, i: int) -> str:
    """Return the name of the i-th of several streams."""
    return f"{name}-{i}"


def send(name: str, streams: int, seconds: float) -> None:
    """Be amplifiers: each sample is stamped with the time it is due, each chunk sent when its last one is."""
    import pylsl

    from rtbrain.sources.electrodes import TEN_TEN_64
    from rtbrain.sources.synthetic import Synthetic, SyntheticSettings

    source = Synthetic(SyntheticSettings(rate_hz=RATE, channels=TEN_TEN_64, n_states=STATES, duration_s=20))
    data = np.concatenate([chunk.data for chunk in source.chunks()]).astype(np.float32)
    outlets = []
    for i in range(streams):
        info = pylsl.StreamInfo(stream_name(name, i), "EEG", len(TEN_TEN_64), RATE, "float32", stream_name(name, i))
        channels = info.desc().append_child("channels")
        for label in TEN_TEN_64:
            channel = channels.append_child("channel")
            channel.append_child_value("label", label)
            channel.append_child_value("unit", "microvolts")
        outlets.append(pylsl.StreamOutlet(info, chunk_size=CHUNK))
    print("announced", flush=True)
    sys.stdin.readline()
    start_s = pylsl.local_clock() + 0.5
    for first in range(0, round(seconds * RATE), CHUNK):
        stamps_s = start_s + np.arange(first, first + CHUNK) / RATE
        wait_s = stamps_s[-1] - pylsl.local_clock()
        if wait_s > 0:
            time.sleep(wait_s)
        at = first % (len(data) - CHUNK)
        for outlet in outlets:
            outlet.push_chunk(data[at : at + CHUNK], stamps_s.tolist())
    time.sleep(2)
    print(json.dumps({"sent": round(seconds * RATE), "start_s": start_s}), flush=True)


def read(name: str) -> None:
    """Be the plain reader: print the age of each chunk's first sample on receipt."""
    import pylsl
    from pylsl.util import LostError

    (found,) = pylsl.resolve_byprop("name", name, timeout=30)
    inlet = pylsl.StreamInlet(found, recover=False)
    inlet.open_stream(30)
    print("reading", flush=True)
    ages_s, seen = [], 0
    while True:
        try:
            _, first = inlet.pull_sample(timeout=60.0)
            _, rest = inlet.pull_chunk(timeout=0.0)
        except LostError:  # the sender ended
            break
        now_s = pylsl.local_clock()
        for stamp_s in (first, *rest):
            if seen % CHUNK == 0:
                ages_s.append(now_s - stamp_s)
            seen += 1
    print(json.dumps(ages_s), flush=True)


def random_token(rng: np.random.Generator) -> tuple[int, np.ndarray]:
    """Return an id and attributes."""
    return int(rng.integers(1, STATES + 1)), rng.normal(0, 0.3, 3)


def decode(name: str, folder: Path) -> None:
    """Be `rtbrain stream`, with tokens in the context before the first sample."""
    from rtbrain.decoder.bundle import load_bundle
    from rtbrain.decoder.session import load_step
    from rtbrain.decoder_api import Decoder
    from rtbrain.live import Live, LiveSettings
    from rtbrain.live_outputs import open_outputs

    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))

    def prefill(decoder: Decoder) -> None:
        rng = np.random.default_rng(0)
        for i in range(PREFILLED):
            end_s = (i - PREFILLED) * 0.07
            decoder.context.push(*random_token(rng), end_s - 0.07, end_s)
        print("prefilled", flush=True)

    bundle = load_bundle(folder / "bundle")
    with open_outputs("tcp://127.0.0.1:0", bundle.classes) as outputs:
        print(outputs.zmq.endpoint, flush=True)
        model = load_step(bundle.step, "cpu")
        Live(bundle, model, outputs, LiveSettings(name), lambda: bool(stopped), lambda text: None, prefill).run()


def usual(name: str, folder: Path) -> None:
    """Be a pipeline of common parts: MNE-LSL's ring buffer and filter, pycrostates on a window, torch on all tokens."""
    os.environ["MNE_LSL_LOG_LEVEL"] = "ERROR"
    import mne
    import torch
    import zmq
    from mne_lsl.lsl import local_clock
    from mne_lsl.stream import StreamLSL
    from pycrostates.io import read_cluster

    torch.set_num_threads(1)
    mne.set_log_level("ERROR")
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    publisher: Any = zmq.Context().socket(zmq.PUB)
    publisher.bind("tcp://127.0.0.1:0")
    print(publisher.last_endpoint.decode(), flush=True)
    clustering = read_cluster(folder / "maps.fif")
    model = torch.load(folder / "model.pt", weights_only=False)
    rng = np.random.default_rng(0)
    tokens = [random_token(rng) for _ in range(PREFILLED)]
    stream = StreamLSL(5.0, name=name).connect(acquisition_delay=0.001, processing_flags=["clocksync"], timeout=30)
    stream.set_channel_types(dict.fromkeys(stream.ch_names, "eeg"))
    stream.filter(1.0, 40.0)
    stream.set_eeg_reference("average")
    print("prefilled", flush=True)
    due_s = None
    while not stopped:
        if stream.n_new_samples == 0 or (due_s is not None and local_clock() < due_s):
            time.sleep(0.001)
            continue
        due_s = (due_s or local_clock()) + 0.1
        x, stamps_s = stream.get_data(WINDOW_S)
        raw = mne.io.RawArray(x * 1e-6, mne.create_info(clustering.info["ch_names"], RATE, "eeg"))
        labels = clustering.predict(raw, reject_edges=False).labels
        for label in labels[-RATE // 10 :][np.flatnonzero(np.diff(labels[-RATE // 10 :]))]:
            tokens.append((max(0, int(label)) + 1, np.zeros(3)))
        ids, attributes = (np.array(each) for each in zip(*tokens[-T_MAX:], strict=True))
        with torch.inference_mode():
            logits = model(torch.tensor(ids)[None], torch.tensor(attributes, dtype=torch.float32)[None])
        p = logits[0].softmax(-1).tolist()
        body = {"topic": "state", "time_s": float(stamps_s[-1]), "p": p, "tokens": len(ids)}
        publisher.send(b"state " + json.dumps(body).encode())


def write_bundle(folder: Path) -> None:
    """Write a bundle of random weights and the default shape for 64 channels, and the same for the usual pipeline."""
    import torch

    from rtbrain.decoder.bundle import Card, Trust, save_bundle
    from rtbrain.interop import write_fif
    from rtbrain.microstates.templates import Templates, referenced
    from rtbrain.pipeline import Recipe
    from rtbrain.sources.electrodes import TEN_TEN_64
    from rtbrain.sources.synthetic import dipole_maps
    from rtbrain.training.export import export
    from rtbrain.training.model import BrainToken
    from rtbrain.training.model_settings import preset

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = BrainToken(preset("rtbrain", (STATES,), 2)).eval()
    export(model, folder / "graphs", T_MAX)
    torch.save(model, folder / "model.pt")
    templates = Templates(TEN_TEN_64, (referenced(dipole_maps(TEN_TEN_64, STATES)),), Recipe().to_dict())
    write_fif(templates, folder / "maps.fif")
    card = Card(name="bench", classes=("a", "b"), context_s=1e5, trust=Trust(0.5, 0.1, 1.0, 1.0))
    save_bundle(folder / "bundle", card, templates, folder / "graphs")


class Part:
    """One of the parts, running."""

    def __init__(self, role: str, name: str, *options: object) -> None:
        command = [sys.executable, __file__, role, name, *map(str, options)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def said(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line:
            raise SystemExit("a part ended early; see its error above")
        return line

    def go(self) -> None:
        """Let a sender begin."""
        assert self.process.stdin is not None
        print("go", file=self.process.stdin, flush=True)

    def cpu_s(self) -> float:
        """Return the processor time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self) -> float:
        """Return its physical memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self) -> None:
        """End it, by force if it must be."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def main() -> None:
    """Be one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["send", "read", "decode", "usual"])
    parser.add_argument("name")
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--bundle", type=Path)
    args = parser.parse_args()
    from rtbrain.lsl_scope import MACHINE_ONLY, keep_on_this_machine

    if args.role == "usual":  # MNE-LSL has a liblsl of its own
        from mne_lsl.lsl import set_config_content

        set_config_content(MACHINE_ONLY)
    else:
        keep_on_this_machine()
    if args.role == "send":
        send(args.name, args.streams, args.seconds)
    elif args.role == "read":
        read(args.name)
    else:
        {"decode": decode, "usual": usual}[args.role](args.name, args.bundle)


if __name__ == "__main__":
    main()
