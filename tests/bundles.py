"""A bundle of random weights for tests of the live decoder, and what its whole model says about a row of tokens."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rtbrain.decoder.bundle import Bundle, Card, Trust, calibrated, load_bundle, save_bundle
from rtbrain.decoder.session import session_on
from rtbrain.messages import Break, FloatArray, Tokens
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import Recipe
from rtbrain.sources.synthetic import SyntheticSettings, dipole_maps
from rtbrain.tokens.inputs import TokenInputs, Vocabulary
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


class Whole:
    """`decoder.onnx` of a bundle on what its chain made of a recording, tokens and breaks."""

    def __init__(self, folder: Path, items: Iterable[Tokens | Break], rate_hz: float) -> None:
        self.bundle = load_bundle(folder)
        self._session = session_on(self.bundle.decoder.read_bytes(), folder, ["CPUExecutionProvider"])
        states = tuple(map(len, self.bundle.templates.maps))
        describe = TokenInputs(Vocabulary(states), ("log_duration", "level", "corr"), rate_hz)
        parts = []
        for item in items:
            if isinstance(item, Break):
                describe.reset()
            else:
                parts.append(describe(item))
        self._ids = np.concatenate([part.ids for part in parts])
        self._attributes = np.concatenate([part.attributes for part in parts])

    def probabilities(self, last: int, n: int) -> FloatArray:
        """Return what it says about the n tokens up to, but without, this one; those without a state do not count."""
        rows = slice(last - n, last)
        feed = {"ids": self._ids[rows], "attributes": self._attributes[rows]}
        logits = self._session.run(["logits"], feed)[0].astype(np.float64)
        odds = np.exp(logits - logits.max())
        return calibrated(odds / odds.sum(), self.bundle.temperature)
