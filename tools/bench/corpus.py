"""How fast a data set becomes tokens, and how much memory that takes.

Ten BrainVision recordings of ten minutes (63 channels, 1000 Hz, synthetic EEG) are written to a temporary folder, which
is not timed, and tokenized with the default recipe and six states: one recording alone, all by one process, all by two,
and all from the cache. Each of these is a program of its own, so that its peak memory is its own.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rtbrain.conditioning.channels import ChannelSettings
from rtbrain.microstates.templates import Templates, load, referenced, save
from rtbrain.pipeline import Recipe
from rtbrain.sources.electrodes import TEN_TEN_64
from rtbrain.sources.recording import open_recording
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from rtbrain.training.corpus import tokenise_corpus
from rtbrain.training.trials import Trial

CHANNELS = TEN_TEN_64[:63]
RATE = 1000
RESOLUTION_UV = 0.1
MOST_MEMORY = 1.1
"""Peak memory for all recordings over that for one, in the process that does the work."""
LEAST_SPEED = 200.0
"""Multiple of real time per core."""


def write_recording(folder: Path, seed: int, seconds: float) -> None:
    """Write one recording block by block."""
    stem = f"sub-{seed:02d}"
    source = Synthetic(SyntheticSettings(float(RATE), CHANNELS, 6, seconds, seed))
    with (folder / f"{stem}.eeg").open("wb") as file:
        for chunk in source.chunks():
            file.write(np.rint(chunk.data / RESOLUTION_UV).clip(-32768, 32767).astype("<i2").tobytes())
    common = f"Codepage=UTF-8\nDataFile={stem}.eeg\n"
    lines = "".join(f"Ch{i}={name},,{RESOLUTION_UV},µV\n" for i, name in enumerate(CHANNELS, 1))
    (folder / f"{stem}.vhdr").write_text(
        f"Brain Vision Data Exchange Header File Version 1.0\n\n[Common Infos]\n{common}MarkerFile={stem}.vmrk\n"
        f"DataFormat=BINARY\nDataOrientation=MULTIPLEXED\nNumberOfChannels={len(CHANNELS)}\n"
        f"SamplingInterval={1_000_000 // RATE}\n\n[Binary Infos]\nBinaryFormat=INT_16\n\n[Channel Infos]\n{lines}",
        encoding="utf-8",
    )
    (folder / f"{stem}.vmrk").write_text(
        f"Brain Vision Data Exchange Marker File, Version 1.0\n\n[Common Infos]\n{common}\n[Marker Infos]\n"
        "Mk1=New Segment,,1,1,0,20240101120000000000\n",
        encoding="utf-8",
    )


def trials_in(folder: Path, seconds: float) -> list[Trial]:
    """Return one trial per recording."""
    return [
        Trial(
            subject=path.stem,
            name=path.stem,
            files=tuple(path.with_suffix(ending) for ending in (".eeg", ".vhdr", ".vmrk")),
            length_s=seconds,
            open=partial(open_recording, path),
        )
        for path in sorted(folder.glob("*.vhdr"))
    ]


def work(folder: Path, cache: Path, n: int, workers: int, seconds: float) -> None:
    """Tokenize the first recordings in this program; print what it took and a hash of the tokens."""
    templates = load(folder / "templates")
    began, began_cpu = time.monotonic(), time.process_time()
    corpus = tokenise_corpus(trials_in(folder, seconds)[:n], templates, cache, workers)
    wall_s, cpu_s = time.monotonic() - began, time.process_time() - began_cpu
    digest = hashlib.sha256()
    n_tokens = 0
    for trial in corpus:
        tokens = corpus[trial].tokens
        n_tokens += len(tokens)
        for column in tokens.columns().values():
            digest.update(column.tobytes())
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(
        json.dumps(
            {
                "wall_s": wall_s,
                "cpu_s": cpu_s + children.ru_utime + children.ru_stime,  # of workers their start, too
                "peak_mb": (children if workers > 1 else own).ru_maxrss / 1024,
                "made": len(corpus.made),
                "tokens": n_tokens,
                "sha256": digest.hexdigest(),
            }
        )
    )


def measured(folder: Path, cache: str, n: int, workers: int, seconds: float) -> dict[str, float]:
    """Run `work` in a program of its own."""
    command = [sys.executable, __file__, "--work", folder, "--cache", folder / cache]
    command += ["--recordings", str(n), "--workers", str(workers), "--seconds", str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(folder: Path, n: int, seconds: float) -> tuple[dict[str, float], list[str]]:
    """Run all cases; return the figures and the targets that were missed."""
    cases = {
        "one recording": measured(folder, "one", 1, 1, seconds),
        "all, 1 process": measured(folder, "all", n, 1, seconds),
        "all, 2 processes": measured(folder, "two", n, 2, seconds),
        "all, from the cache": measured(folder, "all", n, 1, seconds),
    }
    print(f"{'':<20} {'wall s':>8} {'CPU s':>8} {'x real time':>12} {'per core':>9} {'peak MB':>8}")
    for name, case in cases.items():
        eeg_s = seconds * (1 if name == "one recording" else n)
        speed = f"{eeg_s / case['wall_s']:>12.0f} {eeg_s / case['cpu_s']:>9.0f}"
        print(f"{name:<20} {case['wall_s']:>8.2f} {case['cpu_s']:>8.2f} {speed} {case['peak_mb']:>8.1f}")
    one, single, double, cached = cases.values()
    figures = {
        "minutes": n * seconds / 60,
        "realtime_per_core": n * seconds / single["cpu_s"],
        "realtime_2_processes": n * seconds / double["wall_s"],
        "cached_s": cached["wall_s"],
        "peak_one_mb": one["peak_mb"],
        "peak_all_mb": single["peak_mb"],
        "peak_worker_mb": double["peak_mb"],
    }
    missed = []
    if figures["realtime_per_core"] < LEAST_SPEED:
        missed.append(f"realtime_per_core {figures['realtime_per_core']:.0f} < {LEAST_SPEED:g}")
    for name in ("peak_all_mb", "peak_worker_mb"):
        if figures[name] > MOST_MEMORY * one["peak_mb"]:
            missed.append(f"{name} {figures[name]:.0f} > {MOST_MEMORY} x {one['peak_mb']:.0f}")
    if not single["sha256"] == double["sha256"] == cached["sha256"] or cached["made"]:
        missed.append("the tokens differ between the ways, or were made twice")
    return figures, missed


def main() -> int:
    """Write the recordings and compare; with --check say by the exit code whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=600.0, help="length of each")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    for name in ("--work", "--cache"):
        parser.add_argument(name, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work is not None:
        work(args.work, args.cache, args.recordings, args.workers, args.seconds)
        return 0
    with TemporaryDirectory(prefix="rtbrain-bench-") as name:
        folder = Path(name)
        source = Synthetic(SyntheticSettings(float(RATE), CHANNELS, 6))
        recipe = Recipe(channels=ChannelSettings(names=CHANNELS))
        save(Templates(CHANNELS, (referenced(source.maps),), recipe.to_dict()), folder / "templates")
        for seed in range(args.recordings):
            write_recording(folder, seed, args.seconds)
        figures, missed = compare(folder, args.recordings, args.seconds)
    print("\n" + ("missed: " + "; ".join(missed) if missed else "all targets met"))
    print(json.dumps(figures | {"missed": missed}))
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
