"""What an answer costs: one step of the exported model against whole passes over the same tokens.

`paper-text`, four states, two classes, one thread, everything measured in one run. Anchors are the pass without any
savings, and torch's own nn.TransformerEncoder (4 heads, same width and depth) with its fast path off, so that it runs
on memory-efficient attention. Training is forward and backward over the same sequence.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

from rtbrain.decoder.session import load_step, session_on
from rtbrain.training.complexity import brain_token_flops
from rtbrain.training.export import DECODER, STEP, export, random_tokens
from rtbrain.training.model import BrainToken, positions
from rtbrain.training.model_settings import preset
from rtbrain.training.plain_model import plain_logits

N = 15_000
LENGTHS = (1000, 5000, 15_000, 30_000, 60_000)
ROUNDS = 10
LEAST = {"step_over_plain": 80.0, "step_over_encoder": 1000.0, "training_over_encoder": 20.0}
MOST_GFLOPS = 3.5


class Encoder(nn.Module):
    """The second anchor: the same embedding, full attention, and a linear head."""

    def __init__(self, model: BrainToken) -> None:
        super().__init__()
        self.embedding = nn.Embedding(model.settings.vocabulary.size, model.settings.width)
        layer = nn.TransformerEncoderLayer(model.settings.width, 4, model.settings.hidden, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, model.settings.layers, enable_nested_tensor=False)
        self.head = nn.Linear(model.settings.width, model.settings.n_classes)
        self.register_buffer("table", positions(N, model.settings.width))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the logits (B, classes)."""
        logits: torch.Tensor = self.head(self.encoder(self.embedding(ids) + self.table).mean(1))
        return logits


def seconds(run: Callable[[], object], repeats: int) -> list[float]:
    """Return the times of some runs."""
    costs = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        costs.append(time.perf_counter() - began)
    return costs


def show(what: str, costs: list[float]) -> float:
    """Print median, best and worst, and raw times; return the median."""
    median, best, worst = (1e3 * float(each) for each in (np.median(costs), min(costs), max(costs)))
    raw = " ".join(f"{cost:.4g}" for cost in costs[:9]) + (" ..." if len(costs) > 9 else "")
    print(f"{what:<44}{median:>10.3f}{best:>10.3f}{worst:>10.3f} ms   [s: {raw}]", flush=True)
    return median / 1e3


def in_turns(
    model: BrainToken, folder: Path, rng: np.random.Generator, passes: dict[str, Callable[[], object]]
) -> tuple[dict[int, float], dict[str, float]]:
    """Measure a step with nearly full caches of several lengths, over whole blocks, and whole passes.

    All take turns, block by block, so that a busy moment of the machine does not fall on one of them alone.
    """
    block = model.settings.window or 1
    streams, waiting = {}, {}
    for n in LENGTHS:
        agreement = export(model, folder / str(n), n)
        print(f"{n} tokens: step.onnx differs from the model by {agreement.step:.1g} in probability at the most")
        streams[n] = load_step(folder / str(n) / STEP, "cpu").stream()
        ids, _ = random_tokens(model, n, rng)
        for token_id in ids[: n - ROUNDS * block].tolist():
            streams[n].push(token_id)
        waiting[n] = ids[n - ROUNDS * block :].tolist()
    graph = session_on((folder / str(N) / DECODER).read_bytes(), folder, ["CPUExecutionProvider"])
    tokens = random_tokens(model, N, rng)[0]
    passes = {"decoder.onnx": lambda: graph.run(["logits"], {"ids": tokens})} | passes
    step_costs: dict[int, list[float]] = {n: [] for n in LENGTHS}
    pass_costs: dict[str, list[float]] = {name: [] for name in passes}
    for run in passes.values():  # once without counting
        run()
    for first in range(0, ROUNDS * block, block):
        for n, stream in streams.items():
            for token_id in waiting[n][first : first + block]:
                step_costs[n] += seconds(lambda: stream.step(token_id), 1)  # noqa: B023 (it runs at once)
        for name, run in passes.items():
            pass_costs[name] += seconds(run, 1)
    return (
        {n: show(f"step at {n} tokens", costs) for n, costs in step_costs.items()},
        {name: show(f"{name}, {N} tokens", costs) for name, costs in pass_costs.items()},
    )


def training(model: nn.Module, ids: torch.Tensor) -> Callable[[], None]:
    """Return a function that runs forward and backward once."""

    def run() -> None:
        model.zero_grad()
        model(ids).square().sum().backward()

    return run


def main() -> int:
    """Run everything; with --check say by the exit code whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)
    versions = {"python": platform.python_version(), "torch": torch.__version__, "onnx": onnx.__version__}
    versions |= {"onnxruntime": onnxruntime.__version__, "numpy": np.__version__, "machine": platform.machine()}
    print(json.dumps(versions))
    print(f"{'':<44}{'median':>10}{'best':>10}{'worst':>10}")
    rng = np.random.default_rng(0)
    model = BrainToken(preset("paper-text", (4,), 2)).eval()
    encoder = Encoder(model).eval()
    array, _ = random_tokens(model, N, rng)
    ids = torch.from_numpy(array)[None]
    passes = {
        "torch with savings": lambda: model(ids),
        "torch without savings": lambda: plain_logits(model, ids[0]),
    }
    with tempfile.TemporaryDirectory() as temporary, torch.no_grad():
        by_length, whole = in_turns(model, Path(temporary), rng, passes)
        full = show(f"nn.TransformerEncoder, {N} tokens", seconds(lambda: encoder(ids), 3))
    ours = show("forward and backward, ours", seconds(training(model.train(), ids), 6)[1:])
    theirs = show("forward and backward, nn.TransformerEncoder", seconds(training(encoder.train(), ids), 3)[1:])
    figures = {
        "step_ms": {n: 1e3 * cost for n, cost in by_length.items()},
        "pass_ms": {name: 1e3 * cost for name, cost in whole.items()},
        "step_over_plain": whole["torch without savings"] / by_length[N],
        "step_over_encoder": full / by_length[N],
        "training_over_encoder": theirs / ours,
        "gflops": brain_token_flops(model.settings, N) / 1e9,
    }
    missed = [f"{name} {figures[name]:.1f} < {least:g}" for name, least in LEAST.items() if figures[name] < least]
    if figures["gflops"] > MOST_GFLOPS:
        missed.append(f"gflops {figures['gflops']:.2f} > {MOST_GFLOPS}")
    for name in LEAST:
        print(f"{name:<24} {figures[name]:>8.1f} (target {LEAST[name]:g})")
    print("missed: " + "; ".join(missed) if missed else "all targets met")
    print(json.dumps(figures | {"missed": missed}))
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
