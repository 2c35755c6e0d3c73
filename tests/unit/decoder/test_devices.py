"""A GPU that fails, sleeps or is slower. There is none here: a session on the CPU stands in, and fails when told to.

What is not stood in for: I/O binding and the state in the device's buffers, which run on the CPU provider as well.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtbrain.decoder.session import StepModel, faster, load_step
from rtbrain.errors import BundleError
from rtbrain.training.export import export
from tests.unit.training.model_cases import probabilities, random_model, tokens_for

T_MAX, WINDOW = 50, 8
MODEL = random_model("rtbrain", scale=4.0, window=WINDOW, layers=3)


class Failing:
    """A real session that fails from its n-th run on, as a GPU that fell off the bus does."""

    def __init__(self, session: Any, runs: int) -> None:
        self._session, self.left, self.runs = session, runs, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run_with_iobinding(self, binding: Any) -> None:
        self.runs += 1
        if self.left == 0:
            raise RuntimeError("CUDA failure 719: unspecified launch failure\n at some file")
        self.left -= 1
        self._session.run_with_iobinding(binding)


@pytest.fixture(scope="module")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> StepModel:
    folder: Path = tmp_path_factory.mktemp("bundle")
    export(MODEL, folder, T_MAX)
    return load_step(folder / "step.onnx", "cpu")


def gpu_like(cpu: StepModel, runs: int) -> StepModel:
    return replace(cpu, session=Failing(cpu.session, runs), spare=cpu)


@pytest.mark.parametrize("runs", [0, 1, 7, 8, 9, 15])
@pytest.mark.parametrize("asked_every", [1, 3])
def test_answers_go_on_unchanged_when_the_gpu_fails(cpu: StepModel, runs: int, asked_every: int) -> None:
    model = gpu_like(cpu, runs)
    stream = model.stream()
    ids, attributes = tokens_for(MODEL, T_MAX)
    for n in range(1, T_MAX + 1):
        stream.push(ids[n - 1], attributes[n - 1])
        if n % asked_every == 0:
            truth = probabilities(MODEL, ids[:n], attributes[:n])
            np.testing.assert_allclose(stream.probabilities(), truth, rtol=0, atol=1e-5)
            assert stream.n_tokens == n
    assert model.failed.endswith("CUDA failure 719: unspecified launch failure")
    assert model.session.runs == runs + 1  # it is not asked again


def test_a_second_stream_leaves_a_failed_gpu_too(cpu: StepModel) -> None:
    model = gpu_like(cpu, 12)
    one, other = model.stream(), model.stream()
    ids, attributes = tokens_for(MODEL, 30)
    for i in range(30):
        one.push(ids[i], attributes[i])
        other.push(ids[29 - i], attributes[29 - i])
        one.probabilities()
    assert model.failed
    backwards = ids[::-1].copy(), attributes[::-1].copy()
    np.testing.assert_allclose(one.probabilities(), probabilities(MODEL, ids, attributes), atol=1e-5)
    np.testing.assert_allclose(other.probabilities(), probabilities(MODEL, *backwards), atol=1e-5)
    other.reset()
    other.push(ids[0], attributes[0])
    np.testing.assert_allclose(other.probabilities(), probabilities(MODEL, ids[:1], attributes[:1]), atol=1e-5)


def test_a_gpu_that_fails_when_a_new_context_begins_is_left(cpu: StepModel) -> None:
    class Dead:
        def update_inplace(self, value: Any) -> None:
            raise RuntimeError("CUDA failure 719")

    model = gpu_like(cpu, -1)
    stream = model.stream()
    stream.step(1, np.zeros(3))
    stream._values = dict.fromkeys(stream._values, Dead())
    stream.reset()
    assert "CUDA failure 719" in model.failed
    ids, attributes = tokens_for(MODEL, 20)
    for i in range(20):
        found = stream.step(ids[i], attributes[i])
    np.testing.assert_allclose(found, probabilities(MODEL, ids, attributes), rtol=0, atol=1e-5)


def test_a_cpu_that_fails_ends_with_an_error_that_says_so(cpu: StepModel) -> None:
    stream = replace(cpu, session=Failing(cpu.session, 0)).stream()
    stream.push(1, np.zeros(3))
    with pytest.raises(BundleError, match="failed in mid-session on the cpu: CUDA failure 719"):
        stream.probabilities()


def test_keeping_warm_changes_no_answer(cpu: StepModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtbrain.decoder.stream._WARM_S", 0.0)
    model = gpu_like(cpu, -1)
    stream = model.stream()
    ids, attributes = tokens_for(MODEL, T_MAX)
    asked = 0
    for n in range(1, T_MAX + 1):
        stream.keep_warm()  # also before the first token
        stream.push(ids[n - 1], attributes[n - 1])
        stream.keep_warm()
        found = stream.probabilities()
        before = model.session.runs
        stream.keep_warm()
        asked += model.session.runs - before
        np.testing.assert_array_equal(stream.probabilities(), found)
        np.testing.assert_allclose(found, probabilities(MODEL, ids[:n], attributes[:n]), rtol=0, atol=1e-5)
    assert asked == T_MAX - T_MAX // WINDOW  # all but the tokens that close a block


def test_the_cpu_does_nothing_to_keep_warm(cpu: StepModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtbrain.decoder.stream._WARM_S", 0.0)
    model = replace(cpu, session=Failing(cpu.session, -1))
    stream = model.stream()
    stream.step(1, np.zeros(3))
    stream.keep_warm()
    assert model.session.runs == 1


def test_the_faster_device_is_taken_and_one_that_fails_is_not(cpu: StepModel, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = replace(gpu_like(cpu, -1), device="cuda")
    for cpu_ms, gpu_ms, taken in ((1.0, 2.0, "cpu"), (2.0, 1.0, "cuda")):
        costs = {id(cpu): cpu_ms, id(gpu): gpu_ms}
        monkeypatch.setattr("rtbrain.decoder.session._measure", lambda model, costs=costs: costs[id(model)])
        best = faster(gpu, cpu)
        assert (best.device, best.step_ms) == (taken, {"cpu": cpu_ms, "cuda": gpu_ms})
    monkeypatch.undo()
    best = faster(gpu_like(cpu, 3), cpu)
    assert (best.session is cpu.session, list(best.step_ms), "CUDA failure 719" in best.no_gpu) == (True, ["cpu"], True)
