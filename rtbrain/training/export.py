"""A trained model as ONNX files, checked against the model itself before anybody may use them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import helper

from rtbrain.decoder.bundle import DECODER, STEP
from rtbrain.decoder.schema import KEY, GraphSchema, running_state
from rtbrain.decoder.session import load_step
from rtbrain.decoder.whole import WholeModel
from rtbrain.errors import BundleError, ConfigError
from rtbrain.training.model import BrainToken
from rtbrain.training.step_graph import decoder_graph, step_graph
from rtbrain.writing import replacing

TOLERANCE = 1e-4
"""Largest difference in probability between the model and its graphs."""
_LENGTHS = (1, 2, 3, 10, 60, 200, 500, 1000, 2000, 5000, 10_000)


@dataclass(frozen=True)
class Agreement:
    """How far the graphs are from the model, in probability, on random tokens."""

    lengths: tuple[int, ...]
    """Numbers of tokens at which all three were compared."""
    decoder: float
    step: float


def export(model: BrainToken, folder: Path, t_max: int, seed: int = 0) -> Agreement:
    """Write `decoder.onnx` and `step.onnx` into a folder, for sequences of up to `t_max` tokens.

    A model with a number of segments gets a fixed window of ceil(t_max / segments) instead: borders that move with
    every token cannot be streamed. Nothing is written unless model = decoder = step, token by token.
    """
    if t_max < 1:
        raise ConfigError(f"t_max is {t_max}; give the largest number of tokens that the model will see")
    model = fixed_window(model, t_max)
    settings = model.settings
    assert settings.window is not None
    schema = GraphSchema(
        graph="decoder",
        states=settings.states,
        attributes=settings.attributes,
        n_classes=settings.n_classes,
        window=settings.window,
        t_max=t_max,
    )
    state = running_state(settings.window, t_max, settings.layers, settings.heads, settings.width)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / DECODER) as decoder, replacing(folder / STEP) as step:
        _save(decoder_graph(model), schema, decoder)
        _save(step_graph(model, schema.capacity), replace(schema, graph="step", state=state), step)
        return verify(model, decoder, step, np.random.default_rng(seed))


def fixed_window(model: BrainToken, t_max: int) -> BrainToken:
    """Return the model as it can be streamed: itself, or with a window in place of segments (the same weights)."""
    settings = model.settings
    if not settings.aggregation:
        raise ConfigError("a model without aggregation (an ablation) has no CLS and cannot be streamed; export another")
    if settings.segments is not None:
        settings = replace(settings, window=-(-t_max // settings.segments), segments=None)
    # A copy in any case, so that the caller's model stays in training mode if it was.
    streamed = BrainToken(settings)
    streamed.load_state_dict(model.state_dict())
    return streamed.eval()


def verify(
    model: BrainToken, decoder: Path, step: Path, rng: np.random.Generator, lengths: Sequence[int] = _LENGTHS
) -> Agreement:
    """Compare the model, the whole graph and the step graph on random tokens; refuse graphs that differ."""
    stepper = load_step(step, "cpu")
    whole = WholeModel(decoder)
    schema = stepper.schema
    window, t_max = schema.window, schema.t_max
    ends = {*lengths, window - 1, window, window + 1, 2 * window, 2 * window + 1, t_max}
    checked = tuple(sorted(n for n in ends if 1 <= n <= t_max))
    ids, attributes = random_tokens(model, checked[-1], rng)
    stream = stepper.stream()
    worst = {"decoder": 0.0, "step": 0.0}
    for n in range(1, checked[-1] + 1):
        stream.push(int(ids[n - 1]), attributes[n - 1])
        if n not in checked:
            continue
        with torch.no_grad():
            logits = model(torch.from_numpy(ids[None, :n]), torch.from_numpy(attributes[None, :n]))[0]
        truth = logits.double().softmax(-1).numpy()
        answers = {"decoder": whole.probabilities(ids[:n], attributes[:n]), "step": stream.probabilities()}
        for name, answer in answers.items():
            difference = float(np.abs(answer - truth).max())
            if not difference <= TOLERANCE:
                raise BundleError(
                    f"after {n} tokens {name}.onnx differs from the model by {difference:.2g} in probability, more "
                    f"than {TOLERANCE:g}; nothing was written; look for weights that are not finite or very large"
                )
            worst[name] = max(worst[name], difference)
    return Agreement(checked, worst["decoder"], worst["step"])


def random_tokens(model: BrainToken, n: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return ids (n,) and attributes (n, a) from the range that the model was trained on."""
    embedding = model.embedding
    ids = rng.integers(1, embedding.cls_id, n)
    spread = rng.standard_normal((n, len(embedding.centre)))
    attributes = embedding.centre.numpy() + embedding.spread.numpy() * spread
    return ids, attributes.astype(np.float32)


def _save(graph: onnx.ModelProto, schema: GraphSchema, path: Path) -> None:
    helper.set_model_props(graph, {KEY: schema.to_json()})
    onnx.save(graph, str(path))
