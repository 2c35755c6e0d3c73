"""model = decoder.onnx = step.onnx, and what is refused."""

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtbrain.decoder.session import load_step, session_on
from rtbrain.errors import BundleError, ConfigError
from rtbrain.training.export import TOLERANCE, export, fixed_window
from rtbrain.training.model_settings import PRESETS
from tests.unit.training.model_cases import probabilities, random_model, tokens_for


def softmax(logits: np.ndarray) -> np.ndarray:
    odds = np.exp(logits.astype(np.float64) - logits.max())
    return odds / odds.sum()


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_every_token_of_a_short_sequence_agrees(name: str, scale: float, tmp_path: Path) -> None:
    changes = {} if name == "rtbrain" else {"window": 20, "segments": None}
    model = random_model(name, scale=scale, **changes)
    export(model, tmp_path, t_max=70)
    stream = load_step(tmp_path / "step.onnx", "cpu").stream()
    whole = session_on((tmp_path / "decoder.onnx").read_bytes(), tmp_path, ["CPUExecutionProvider"])
    ids, attributes = tokens_for(model, 70)
    for n in range(1, 71):
        feed = {"ids": ids[:n]} | ({"attributes": attributes[:n]} if attributes.size else {})
        truth = probabilities(model, ids[:n], attributes[:n])
        np.testing.assert_allclose(stream.step(ids[n - 1], attributes[n - 1]), truth, rtol=0, atol=1e-5)
        np.testing.assert_allclose(softmax(whole.run(["logits"], feed)[0]), truth, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("scale", [1.0, 4.0, 10.0])
def test_long_sequences_agree_for_small_and_large_weights(name: str, scale: float, tmp_path: Path) -> None:
    model = random_model(name, scale=scale)
    agreement = export(model, tmp_path, t_max=3000)
    assert agreement.lengths[0] == 1
    assert agreement.lengths[-1] == 3000
    assert max(agreement.decoder, agreement.step) < 2e-5
    streamed = fixed_window(model, 3000)
    stream = load_step(tmp_path / "step.onnx", "cpu").stream()
    ids, attributes = tokens_for(model, 3000, seed=5)
    for n in range(1, 3001):
        stream.push(ids[n - 1], attributes[n - 1])
        if n % 157 == 0 or n == 3000:
            truth = probabilities(streamed, ids[:n], attributes[:n])
            np.testing.assert_allclose(stream.probabilities(), truth, rtol=0, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper-text", "rtbrain"])
def test_fifteen_thousand_tokens_agree(name: str, tmp_path: Path) -> None:
    agreement = export(random_model(name, scale=3.0), tmp_path, t_max=15_000)
    assert {10_000, 15_000} <= set(agreement.lengths)
    assert max(agreement.decoder, agreement.step) < 1e-5


@pytest.mark.slow
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3)),
    window=st.integers(1, 7),
    n=st.integers(1, 30),
    seed=st.integers(0, 1000),
)
@example(shape=(1, 2, 2, 2), window=1, n=25, seed=378)
@settings(max_examples=25, deadline=None)
def test_any_shape_agrees(
    shape: tuple[int, int, int, int], window: int, n: int, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    width, heads, head_width, layers = shape
    model = random_model(
        "rtbrain",
        seed,
        3.0,
        width=4 * width,
        heads=heads,
        head_width=head_width,
        layers=layers,
        hidden=8,
        window=window,
    )
    folder = tmp_path_factory.mktemp("any")
    export(model, folder, t_max=n, seed=seed)
    stream = load_step(folder / "step.onnx", "cpu").stream()
    ids, attributes = tokens_for(model, n, seed)
    exact = deepcopy(model).double()
    answers = [stream.step(ids[i], attributes[i]) for i in range(n)]
    # A norm over so few numbers can be ill-conditioned: then torch strays from double precision, and so may the step.
    wanted, single = (
        [probabilities(each, ids[: i + 1], attributes[: i + 1]) for i in range(n)] for each in (exact, model)
    )
    assert np.abs(np.subtract(answers, wanted)).max() < max(1e-5, 2 * np.abs(np.subtract(single, wanted)).max())


def test_segments_become_a_window_of_t_max_over_segments(tmp_path: Path) -> None:
    model = random_model("paper-table", segments=7)
    export(model, tmp_path, t_max=100)
    step = load_step(tmp_path / "step.onnx", "cpu")
    assert (step.schema.window, step.schema.t_max, step.schema.capacity) == (15, 100, 105)
    ids, attributes = tokens_for(model, 100)
    stream = step.stream()
    for i in range(100):
        stream.push(ids[i], attributes[i])
    # At t_max tokens the segments are as long as the window, so the trained model itself agrees.
    np.testing.assert_allclose(stream.probabilities(), probabilities(model, ids, attributes), rtol=0, atol=1e-6)


def test_a_window_stays_as_it_is() -> None:
    assert fixed_window(random_model("paper-text"), 100).settings.window == 60


def test_what_cannot_be_streamed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no CLS"):
        export(random_model("paper-text", aggregation=False), tmp_path, t_max=100)
    with pytest.raises(ConfigError, match="t_max is 0"):
        export(random_model("paper-text"), tmp_path, t_max=0)
    assert not list(tmp_path.iterdir())


def test_a_model_without_transitions_can_be_exported(tmp_path: Path) -> None:
    agreement = export(random_model("rtbrain", transitions=False, scale=3.0), tmp_path, t_max=50)
    assert max(agreement.decoder, agreement.step) < 1e-5


def test_a_model_that_is_not_finite_leaves_no_files(tmp_path: Path) -> None:
    model = random_model("paper-text")
    with torch.no_grad():
        model.classifier.bias[0] = torch.nan
    with pytest.raises(BundleError, match="differs from the model by nan"):
        export(model, tmp_path, t_max=100)
    assert not list(tmp_path.iterdir())


def test_graphs_that_compute_something_else_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rtbrain.training import export as module

    other = random_model("paper-text", seed=1)
    real = module.step_graph
    monkeypatch.setattr(module, "step_graph", lambda model, capacity: real(other, capacity))
    with pytest.raises(BundleError, match=r"step\.onnx differs from the model"):
        export(random_model("paper-text"), tmp_path, t_max=100)
    assert not list(tmp_path.iterdir())


def test_exporting_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    model = random_model("rtbrain").train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    export(model, tmp_path, t_max=40)
    assert model.training
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


def test_the_files_describe_themselves(tmp_path: Path) -> None:
    export(random_model("rtbrain"), tmp_path, t_max=40)
    for name in ("decoder", "step"):
        graph = onnx.load(str(tmp_path / f"{name}.onnx"))
        said = json.loads({entry.key: entry.value for entry in graph.metadata_props}["rtbrain"])
        assert said["graph"] == name
        assert said["attributes"] == ["log_duration", "level", "corr"]
        assert (said["states"], said["window"], said["t_max"], said["format"]) == ([5, 3, 4], 16, 40, 1)
    assert [tensor["name"] for tensor in said["state"]] == ["peak", "mass", "sums", "cache_1"]
    dims = [d for value in graph.graph.input for d in value.type.tensor_type.shape.dim]
    assert all(d.HasField("dim_value") for d in dims)


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        export(random_model("rtbrain"), tmp_path / folder, t_max=40)
    for name in ("decoder.onnx", "step.onnx"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_tolerance_is_the_law_of_exact_streaming() -> None:
    assert TOLERANCE == 1e-4
