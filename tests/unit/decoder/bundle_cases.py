"""A small bundle with random weights, as training writes it."""

from pathlib import Path
from typing import Any

import numpy as np

from rtbrain.conditioning.channels import ChannelSettings
from rtbrain.conditioning.filters import Band
from rtbrain.decoder.bundle import Bundle, Card, Trust, save_bundle
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import Recipe
from rtbrain.training.export import export
from tests.unit.training.model_cases import STATES, random_model

CHANNELS = ("Fp1", "Fp2", "C3", "Cz", "C4", "O1", "O2")
TRUST = Trust(min_quality=0.7, min_gev=0.4, min_context_s=10.0, max_age_s=1.0)


def templates_for(states: tuple[int, ...]) -> Templates:
    rng = np.random.default_rng(3)
    maps = tuple(referenced(rng.standard_normal((n, len(CHANNELS)))) for n in states)
    bands = tuple(Band(f"b{i}", 3.0 + 5 * i, 8.0 + 5 * i) for i in range(len(states)))
    recipe = Recipe(channels=ChannelSettings(names=CHANNELS), bands=bands)
    return Templates(CHANNELS, maps, recipe.to_dict())


def card(**changes: Any) -> Card:
    values: dict[str, Any] = {
        "name": "small",
        "classes": ("calm", "tense", "other"),
        "context_s": 60.0,
        "temperature": 1.5,
        "trust": TRUST,
        "rates_hz": (250.0,),
        "licence": "CC BY 4.0",
        "provenance": {"dataset": "none", "subjects": ["a", "b"], "seed": 3},
        "metrics": {"validation": {"accuracy": 0.5}},
    }
    return Card(**(values | changes))


def make_bundle(folder: Path, name: str = "rtbrain", t_max: int = 60, **changes: Any) -> Bundle:
    graphs = folder.with_name(folder.name + "-graphs")
    export(random_model(name), graphs, t_max)
    return save_bundle(folder, card(**changes), templates_for(STATES[name]), graphs)
