"""Random numbers by name: every part of the simulation has a stream of its own, whatever else is drawn."""

import zlib

import numpy as np

from rtbrain.errors import ConfigError


def generator(seed: int, what: str, *numbers: int) -> np.random.Generator:
    """Return the generator of one part, such as ("head", subject); the same at every call."""
    wrong = [number for number in (seed, *numbers) if number < 0]
    if wrong:
        raise ConfigError(f"seed, subject and trial are counted from 0; got {wrong[0]}")
    key = (zlib.crc32(what.encode()), *numbers)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
