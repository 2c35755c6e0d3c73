"""`step.onnx` under ONNX Runtime: streams against the whole model, devices, and damaged files."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtbrain.decoder.session import StepModel, load_step
from rtbrain.errors import BundleError, ConfigError
from rtbrain.training.export import export
from rtbrain.training.model import BrainToken
from tests.unit.training.model_cases import probabilities, random_model, tokens_for

T_MAX = 50


@pytest.fixture(scope="module")
def model() -> BrainToken:
    return random_model("rtbrain", scale=4.0, window=8, layers=3)


@pytest.fixture(scope="module")
def path(model: BrainToken, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    export(model, folder, T_MAX)
    return folder / "step.onnx"


@pytest.fixture(scope="module")
def step(path: Path) -> StepModel:
    return load_step(path, "cpu")


@given(asked=st.lists(st.booleans(), min_size=1, max_size=T_MAX), before=st.integers(0, T_MAX), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_answers_are_the_whole_models_whenever_they_are_asked_for(
    step: StepModel, model: BrainToken, asked: list[bool], before: int, seed: int
) -> None:
    stream = step.stream()
    for token_id in tokens_for(model, before, seed + 1)[0]:
        stream.push(token_id, [9.0, -9.0, 9.0])
    stream.reset()  # what came before leaves nothing behind
    ids, attributes = tokens_for(model, len(asked), seed)
    for n, answer in enumerate(asked, 1):
        stream.push(ids[n - 1], attributes[n - 1])
        if answer or n == len(asked):
            truth = probabilities(model, ids[:n], attributes[:n])
            np.testing.assert_allclose(stream.probabilities(), truth, rtol=0, atol=1e-5)
    assert stream.n_tokens == len(asked)


def test_answers_do_not_depend_on_when_others_were_asked_for(step: StepModel, model: BrainToken) -> None:
    ids, attributes = tokens_for(model, 37)
    always, once = step.stream(), step.stream()
    for token_id, values in zip(ids, attributes, strict=True):
        last = always.step(token_id, values)
        once.push(token_id, values)
    np.testing.assert_array_equal(last, once.probabilities())
    np.testing.assert_array_equal(last, once.probabilities())
    assert last.sum() == pytest.approx(1.0)


def test_streams_of_one_model_do_not_disturb_each_other(step: StepModel, model: BrainToken) -> None:
    one, other = step.stream(), step.stream()
    ids, attributes = tokens_for(model, 40)
    for i in range(40):
        one.push(ids[i], attributes[i])
        if i >= 13:
            other.push(ids[i], attributes[i])
    np.testing.assert_allclose(one.probabilities(), probabilities(model, ids, attributes), rtol=0, atol=1e-5)
    np.testing.assert_allclose(other.probabilities(), probabilities(model, ids[13:], attributes[13:]), atol=1e-5)


def test_a_stream_takes_t_max_tokens_and_not_one_more(step: StepModel, model: BrainToken) -> None:
    stream = step.stream()
    ids, attributes = tokens_for(model, T_MAX + 1)
    for i in range(T_MAX):
        stream.push(ids[i], attributes[i])
    with pytest.raises(ConfigError, match="50 tokens are all that this model takes"):
        stream.push(ids[T_MAX], attributes[T_MAX])
    truth = probabilities(model, ids[:T_MAX], attributes[:T_MAX])
    np.testing.assert_allclose(stream.probabilities(), truth, rtol=0, atol=1e-5)


def test_whole_blocks_can_be_filled_to_the_last_row(model: BrainToken, tmp_path: Path) -> None:
    export(model, tmp_path, t_max=24)  # three blocks of 8
    stream = load_step(tmp_path / "step.onnx", "cpu").stream()
    ids, attributes = tokens_for(model, 24)
    for i in range(24):
        answer = stream.step(ids[i], attributes[i])
        truth = probabilities(model, ids[: i + 1], attributes[: i + 1])
        np.testing.assert_allclose(answer, truth, rtol=0, atol=1e-5)


@pytest.mark.parametrize("token_id", [0, -1, 13, 14])
def test_padding_and_unknown_ids_are_refused(step: StepModel, token_id: int) -> None:
    with pytest.raises(ConfigError, match="not one of this model's, 1 to 12"):
        step.stream().push(token_id, np.zeros(3))


@pytest.mark.parametrize("attributes", [[], [0.0, 0.0], [0.0, np.nan, 0.0], [0.0, np.inf, 0.0], [[0.0, 0.0, 0.0]]])
def test_attributes_that_would_spoil_the_state_are_refused(step: StepModel, attributes: list[float]) -> None:
    stream = step.stream()
    with pytest.raises(ConfigError, match="one number each for log_duration, level, corr"):
        stream.push(1, attributes)
    assert stream.n_tokens == 0


def test_there_is_no_answer_before_the_first_token(step: StepModel) -> None:
    with pytest.raises(ConfigError, match="before the first token"):
        step.stream().probabilities()


def test_the_device_is_the_one_that_really_computes(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    step = load_step(path, "auto")
    really = "cuda" if "CUDAExecutionProvider" in step.session.get_providers() else "cpu"
    assert step.device == really
    assert step.device in step.step_ms
    assert "cpu" in step.step_ms
    assert all(cost > 0 for cost in step.step_ms.values())
    assert ("cannot use a GPU here" in step.no_gpu) == ("cuda" not in step.step_ms)  # one line that says so
    assert "onnxruntime" not in capfd.readouterr().err  # no noise about libraries that are not there


def test_one_thread_computes(step: StepModel) -> None:
    options = step.session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


def test_a_gpu_that_is_not_there_is_an_error_when_it_was_asked_for(path: Path) -> None:
    if "cuda" in load_step(path, "auto").step_ms:
        assert load_step(path, "cuda").device == "cuda"
    else:
        with pytest.raises(ConfigError, match=f"{re.escape(onnxruntime.__version__)}.*set device to auto or cpu"):
            load_step(path, "cuda")
    with pytest.raises(ConfigError, match="no device 'tpu'"):
        load_step(path, "tpu")  # type: ignore[arg-type]


def test_missing_and_damaged_files_are_named(path: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="cannot be read"):
        load_step(tmp_path / "step.onnx", "cpu")
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(BundleError, match="ONNX Runtime can load"):
        load_step(cut, "cpu")
    with pytest.raises(BundleError, match="kind 'decoder'"):
        load_step(path.with_name("decoder.onnx"), "cpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format 1"),
        ({"window": 9}, "does not fit its own description"),
        ({"n_classes": 4}, "does not fit its own description in logits"),
        ({"attributes": ["corr"]}, "does not fit its own description in attributes"),
        ({"state": []}, "does not fit its own description"),
        ({"window": "many"}, "is damaged"),
        ({"colour": "red"}, "is damaged"),
        (None, "format 1"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(
    path: Path, tmp_path: Path, change: dict[str, object] | None, message: str
) -> None:
    graph = onnx.load(str(path))
    (entry,) = graph.metadata_props
    if change is None:
        del graph.metadata_props[:]
    else:
        entry.value = json.dumps(json.loads(entry.value) | change)
    onnx.save(graph, str(tmp_path / "step.onnx"))
    with pytest.raises(BundleError, match=message):
        load_step(tmp_path / "step.onnx", "cpu")


def test_a_description_that_is_no_json_is_refused(path: Path, tmp_path: Path) -> None:
    graph = onnx.load(str(path))
    graph.metadata_props[0].value = "{"
    onnx.save(graph, str(tmp_path / "step.onnx"))
    with pytest.raises(BundleError, match="is damaged"):
        load_step(tmp_path / "step.onnx", "cpu")


def test_the_live_path_needs_no_torch(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rtbrain.decoder.session import load_step\n"
        f"print(load_step(Path({str(path)!r}), 'cpu').stream().step(1, [0, 0, 0]))\n"
        "assert not {'torch', 'onnx', 'mne'} & set(sys.modules), 'too much was loaded'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
