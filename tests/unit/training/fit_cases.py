"""Trials whose class shows in how often the states come, and settings that learn it within seconds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rtbrain.messages import StreamInfo, Tokens
from rtbrain.tokenizing import Tokenized
from rtbrain.tokens.inputs import Inputs
from rtbrain.training.batches import TokenSequence
from rtbrain.training.fit_settings import TrainSettings
from rtbrain.training.model_settings import preset

torch.set_num_threads(1)

RATE_HZ = 100.0


def piece(n: int, seed: int = 0, state: float = 0.5, start_s: float = 0.0, attributes: int = 3) -> Inputs:
    """Return n tokens of 0.1 s, of which a share of `state` has id 1 and the others id 2."""
    rng = np.random.default_rng(seed)
    ids = np.where(rng.random(n) < state, 1, 2).astype(np.int64)
    end_s = start_s + 0.1 * np.arange(1, n + 1)
    return Inputs(ids, rng.standard_normal((n, attributes)).astype(np.float32), end_s - 0.1, end_s)


def trials(people: Sequence[int], each: int = 2, tokens: int = 150, clarity: float = 0.25) -> list[TokenSequence]:
    """Return trials of both classes of some people."""
    made = []
    for person in people:
        for number in range(each):
            label = (person + number) % 2
            share = 0.5 + clarity * (1 if label else -1)
            own = piece(tokens, 1000 * person + number, share)
            made.append(TokenSequence(f"p{person}-{number}", f"p{person}", label, (own,)))
    return made


def small(**changes: Any) -> TrainSettings:
    model = preset("rtbrain", (2,), 2, width=8, heads=2, head_width=4, hidden=16, dropout=0.1, input_dropout=0.1)
    values = {"context_s": 10.0, "epochs": 6, "batch": 8, "learning_rate": 1e-2, "smoothing": 0.05}
    # All epochs are run: which one is the last to be better hangs on a processor's last bits.
    return TrainSettings(model, **({"patience": 1000} | values | changes))


def tokenized(starts: Sequence[int], durations: Sequence[int], states: Sequence[int], **more: Any) -> Tokenized:
    """Return tokens at 100 Hz; `bands` and `breaks` may be given."""
    n = len(starts)
    ones, band = np.ones(n), np.array(more.get("bands", [0] * n), np.int64)
    ints = (np.array(values, np.int64) for values in (states, starts, durations))
    level = np.array(more.get("gfp", ones), float)
    tokens = Tokens(*ints, level, 0 * ones, 0.8 * ones, ones, ones, 0.6 * ones, band)
    return Tokenized(tokens, tuple(more.get("breaks", ())), StreamInfo(RATE_HZ, ("Cz",)), {}, (), {}, {})
