"""Small sets of synthetic recordings, with or without a nuisance that tells the class."""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.signal import butter, sosfiltfilt

from rtbrain.messages import FloatArray
from rtbrain.sources.chunking import Source
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from rtbrain.training.dataset_config import ClassRule, DatasetConfig, Protocol, Task
from rtbrain.training.nuisance.probes import altered
from rtbrain.training.trials import Found, Trial, Value

RATE_HZ, SECONDS = 128.0, 40.0
CHANNELS = ("Fz", "Cz", "Pz", "O1", "O2")
Change = Callable[[FloatArray], FloatArray]
CONFIG = DatasetConfig(
    name="planted",
    reader="bids",
    tasks={"group": Task("group", (ClassRule("well", ("H",)), ClassRule("ill", ("P",))))},
    protocol=Protocol("k-fold", folds=6),
)


def narrow(data: FloatArray) -> FloatArray:
    """Filter as some exports do: 1.5 to 33 Hz."""
    sos = np.concatenate(
        [
            butter(3, 1.5, "highpass", fs=RATE_HZ, output="sos"),
            butter(5, 33, "lowpass", fs=RATE_HZ, output="sos"),
        ]
    )
    shaped: FloatArray = sosfiltfilt(sos, data, axis=0)
    return shaped


def humming(hz: float, uv: float = 12.0) -> Change:
    """Return what adds a line and its first multiples."""

    def change(data: FloatArray) -> FloatArray:
        t = np.arange(len(data)) / RATE_HZ
        hum = sum(uv / k * np.sin(2 * np.pi * k * hz * t + k) for k in (1, 2, 3))
        return data + np.asarray(hum)[:, None]

    return change


def opened(seed: int, change: Change | None) -> Source:
    rng = np.random.default_rng(seed)
    source = Synthetic(
        SyntheticSettings(
            rate_hz=RATE_HZ,
            channels=CHANNELS,
            duration_s=SECONDS,
            seed=seed,
            amplitude_uv=float(rng.uniform(8, 14)),
            snr=float(rng.uniform(1, 4)),
            alpha_hz=float(rng.uniform(8.5, 11.5)),
        )
    )
    return source if change is None else altered(source, change)


def people(
    n: int = 24, plant: Callable[[int], Change | None] = lambda label: None, facts: dict[str, Value] | None = None
) -> Found:
    """Return a recording of each of n people; every ninth person has the plant of the other class."""
    trials = []
    for i in range(n):
        label = i % 2
        change = plant(1 - label if i % 9 == 4 else label)
        trials.append(
            Trial(
                subject=f"s{i:02d}",
                name=f"s{i:02d}_rest",
                files=(),
                length_s=SECONDS,
                open=partial(opened, i, change),
                fields={"group": "HP"[label]},
                facts=facts or {},
            )
        )
    return Found(tuple(trials))
