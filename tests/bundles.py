"""A bundle of random weights for tests of the live decoder."""

from pathlib import Path
from typing import Any

import torch

from rtbrain.decoder.bundle import Bundle, Card, Trust, save_bundle
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import Recipe
from rtbrain.sources.synthetic import SyntheticSettings, dipole_maps
from rtbrain.training.export import export
from rtbrain.training.model import BrainToken
from rtbrain.training.model_settings import preset

TRUST = Trust(min_quality=0.8, min_gev=0.3, min_context_s=5.0, max_age_s=1.0)


def make_bundle(
    folder: Path,
    templates: Templates | None = None,
    t_max: int = 400,
    **card: Any,
) -> Bundle:
    """Write a bundle whose answer moves a lot with every token; without templates, it is for synthetic EEG."""
    if templates is None:
        channels = SyntheticSettings().channels
        templates = Templates(channels, (referenced(dipole_maps(channels, 4)),), Recipe().to_dict())
    torch.manual_seed(0)
    states = tuple(map(len, templates.maps))
    model = BrainToken(preset("rtbrain", states, 2, width=8, heads=2, head_width=4, hidden=8, window=4)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4.0)
    model.embedding.standardise(torch.tensor([-2.5, 0.0, 0.7]), torch.tensor([0.5, 0.3, 0.1]))
    graphs = folder.with_name(f"{folder.name}-graphs")
    export(model, graphs, t_max)
    values = {"context_s": 12.0, "temperature": 1.7, "trust": TRUST} | card
    return save_bundle(folder, Card(name=folder.name, classes=("rest", "task"), **values), templates, graphs)
