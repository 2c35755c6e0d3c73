"""`step.onnx` under ONNX Runtime: loaded, measured, and where it runs. Nothing here needs torch."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rtbrain.decoder.schema import KEY, GraphSchema
from rtbrain.decoder.stream import Stream
from rtbrain.errors import BundleError, ConfigError

Device = Literal["auto", "cpu", "cuda"]
_CUDA = "CUDAExecutionProvider"
_CPU = "CPUExecutionProvider"
_ONNX_TYPES = {"int64": "tensor(int64)", "float32": "tensor(float)", "float64": "tensor(double)"}
_WARM_UP, _MEASURED = 10, 30


@dataclass
class StepModel:
    """A loaded step graph, ready for any number of streams."""

    session: Any
    """The onnxruntime.InferenceSession."""
    schema: GraphSchema
    device: Literal["cpu", "cuda"]
    """Where it really runs."""
    step_ms: dict[str, float]
    """Median time of a step on each device that was tried, after warming up."""
    spare: "StepModel | None" = None
    """The same on the CPU, for a GPU that fails; None if this is on the CPU."""
    no_gpu: str = ""
    """Why a GPU that might have been used is not."""
    failed: str = ""
    """What the GPU said when it failed; from then on the spare computes."""

    def stream(self) -> Stream:
        """Return a new, empty token stream."""
        return Stream(self)


def load_step(path: Path, device: Device = "auto") -> StepModel:
    """Load and warm up a step graph.

    Parameters
    ----------
    path : Path
        The file `step.onnx`.
    device : {"auto", "cpu", "cuda"}
        With "auto" both are measured if there is a GPU, and the faster one is taken: small models are often faster on
        the CPU. With "cuda" a GPU that cannot be used is an error.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"there is no device {device!r}; choose auto, cpu or cuda")
    graph = read_graph(path)
    cpu = _open(graph, path, "cpu")
    if device == "cpu":
        return replace(cpu, step_ms={"cpu": _measure(cpu)})
    session = _cuda_session(graph, path)
    if session is None:
        import onnxruntime

        why = f"ONNX Runtime {onnxruntime.__version__} cannot use a GPU here"
        if device == "cuda":
            raise ConfigError(
                f"device cuda was asked for, but {why}; install the CUDA and cuDNN libraries that it names in its "
                "documentation, or set device to auto or cpu"
            )
        return replace(cpu, step_ms={"cpu": _measure(cpu)}, no_gpu=why)
    gpu = replace(_open(graph, path, "cuda", session), spare=cpu)
    if device == "auto":
        return faster(gpu, cpu)
    cost_ms = _measure(gpu)
    if gpu.failed:
        raise ConfigError(f"device cuda was asked for, but {gpu.failed}; set device to auto or cpu")
    return replace(gpu, step_ms={"cuda": cost_ms})


def faster(gpu: StepModel, cpu: StepModel) -> StepModel:
    """Measure both and return the faster one; a GPU that fails at once is not."""
    timed = {"cpu": _measure(cpu), "cuda": _measure(gpu)}
    if gpu.failed:
        return replace(cpu, step_ms={"cpu": timed["cpu"]}, no_gpu=gpu.failed)
    best = min((gpu, cpu), key=lambda model: timed["cpu" if model is cpu else "cuda"])
    return replace(best, step_ms=timed)


def read_graph(path: Path) -> bytes:
    """Return the bytes of a graph's file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(
            f"{path} cannot be read ({error.strerror}); a trained model has it beside bundle.json"
        ) from error


def session_on(graph: bytes, where: Path, providers: list[str]) -> Any:
    """Return an ONNX Runtime session that computes in one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # A step is too short to be shared, and the other cores belong to acquisition.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(graph, options, providers=providers)
    except Exception as error:  # ONNX Runtime's errors have no common base but this
        raise BundleError(f"{where} is no graph that ONNX Runtime can load: {error}") from error


def _cuda_session(graph: bytes, where: Path) -> Any | None:
    """Return a session that really runs on a GPU, or None: CUDA is listed as available where there is none."""
    import onnxruntime

    if _CUDA not in onnxruntime.get_available_providers():
        return None
    onnxruntime.set_default_logger_severity(4)  # without a GPU it prints errors about libraries; we say it ourselves
    try:
        session = session_on(graph, where, [_CUDA, _CPU])
    finally:
        onnxruntime.set_default_logger_severity(2)
    return session if _CUDA in session.get_providers() else None


def _open(graph: bytes, where: Path, device: Literal["cpu", "cuda"], session: Any = None) -> StepModel:
    session = session or session_on(graph, where, [_CPU])
    schema = GraphSchema.from_json(session.get_modelmeta().custom_metadata_map.get(KEY), str(where))
    if schema.graph != "step":
        raise BundleError(f"{where} is a graph of kind {schema.graph!r}; the live path needs step.onnx")
    for said, found in ((schema.inputs(), session.get_inputs()), (schema.outputs(), session.get_outputs())):
        expected = {name: (_ONNX_TYPES[dtype], list(shape)) for name, (dtype, shape) in said.items()}
        actual = {node.name: (node.type, node.shape) for node in found}
        if expected != actual:
            wrong = sorted(name for name in expected | actual if expected.get(name) != actual.get(name))
            raise BundleError(
                f"{where} does not fit its own description in {', '.join(wrong)}: "
                f"{[expected.get(name) for name in wrong]} said, {[actual.get(name) for name in wrong]} found; "
                "export the model again"
            )
    return StepModel(session, schema, device, {})


def _measure(model: StepModel) -> float:
    """Run a stream for a while, which also warms the device up; return the median of a step in milliseconds."""
    stream, attributes, costs = model.stream(), np.zeros(len(model.schema.attributes)), []
    for i in range(_WARM_UP + _MEASURED):
        if stream.n_tokens == stream.t_max:
            stream.reset()
        began = time.perf_counter()
        stream.step(1, attributes)
        if i >= _WARM_UP:
            costs.append(time.perf_counter() - began)
    return 1e3 * float(np.median(costs))
