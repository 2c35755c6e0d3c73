"""`step.onnx` under ONNX Runtime: where it runs, and the state between its runs. Nothing here needs torch."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtbrain.decoder.schema import KEY, GraphSchema
from rtbrain.errors import BundleError, ConfigError
from rtbrain.messages import FloatArray

Device = Literal["auto", "cpu", "cuda"]
_CUDA = "CUDAExecutionProvider"
_CPU = "CPUExecutionProvider"
_ONNX_TYPES = {"int64": "tensor(int64)", "float32": "tensor(float)", "float64": "tensor(double)"}
_WARM_UP, _MEASURED = 10, 30


@dataclass(frozen=True)
class StepModel:
    """A loaded step graph, ready for any number of streams."""

    session: Any
    """The onnxruntime.InferenceSession."""
    schema: GraphSchema
    device: Literal["cpu", "cuda"]
    """Where it really runs."""
    step_ms: dict[str, float]
    """Median time of a step on each device that was tried, after warming up."""

    def stream(self) -> "Stream":
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
    models = []
    if device != "cuda":
        models.append(_open(graph, path, "cpu"))
    if device != "cpu":
        session = _cuda_session(graph, path)
        if session is not None:
            models.append(_open(graph, path, "cuda", session))
        elif device == "cuda":
            import onnxruntime

            raise ConfigError(
                f"device cuda was asked for, but ONNX Runtime {onnxruntime.__version__} cannot use a GPU here; install "
                "the CUDA and cuDNN libraries that it names in its documentation, or set device to auto or cpu"
            )
    timed: dict[str, float] = {model.device: _measure(model) for model in models}
    best = min(models, key=lambda model: timed[model.device])
    return StepModel(best.session, best.schema, best.device, timed)


class Stream:
    """As the whole model on all tokens since the last reset, token by token.

    Tokens go into the open block; the graph runs when the block is full, and when an answer is asked for. The state
    lies in buffers that the graph reads and writes directly: a full block's rows are already where they belong.
    """

    def __init__(self, model: StepModel) -> None:
        schema = model.schema
        self.t_max = schema.t_max
        """Tokens that fit between two resets."""
        self.n_tokens = 0
        """Tokens since the last reset."""
        self._schema, self._session, self._device = schema, model.session, model.device
        self._n_ids = sum(schema.states)
        self._block = {
            name: np.zeros(shape, dtype) for name, (dtype, shape) in schema.inputs().items() if name in _BLOCK
        }
        self._ids, self._count, self._done = (self._block[name] for name in ("ids", "count", "done"))
        self._logits = np.zeros(schema.n_classes, np.float32)
        self._binding = model.session.io_binding()
        self._values = {tensor.name: self._buffer(tensor.dtype, tensor.shape) for tensor in schema.state}
        # The other half of each pair that is read and written in turn.
        self._next = {t.output: self._buffer(t.dtype, t.shape) for t in schema.state if t.rule == "replace"}
        self._bind("logits", self._logits)
        self.reset()

    def reset(self) -> None:
        """Forget all tokens."""
        self.n_tokens = 0
        self._stale = False
        for array in self._block.values():
            array[...] = 0
        for tensor in self._schema.state:
            self._values[tensor.name].update_inplace(np.full(tensor.shape, tensor.start, tensor.dtype))
        self._bind_state()

    def push(self, token_id: int, attributes: ArrayLike = ()) -> None:
        """Append a token, without asking for an answer."""
        values = np.asarray(attributes, np.float32)
        if not 1 <= token_id <= self._n_ids:
            raise ConfigError(f"token id {token_id} is not one of this model's, 1 to {self._n_ids}")
        if values.shape != (len(self._schema.attributes),) or not np.isfinite(values).all():
            raise ConfigError(
                f"attributes {np.asarray(attributes).tolist()} are not one number each for "
                f"{', '.join(self._schema.attributes) or 'a model without any'}"
            )
        if self.n_tokens == self.t_max:
            raise ConfigError(f"{self.t_max} tokens are all that this model takes; reset the stream before the next")
        at = int(self._count[0])
        self._ids[at] = token_id
        if values.size:
            self._block["attributes"][at] = values
        self._count += 1
        self.n_tokens += 1
        self._stale = True
        if at + 1 == self._schema.window:
            self._run()
            self._close_block()

    def probabilities(self) -> FloatArray:
        """Return the probability of each class, given all tokens so far."""
        return softmax(self.logits())

    def logits(self) -> NDArray[np.float32]:
        """Return the logits, given all tokens so far."""
        if not self.n_tokens:
            raise ConfigError("there is no answer before the first token")
        if self._stale:
            self._run()
        return self._logits.copy()

    def step(self, token_id: int, attributes: ArrayLike = ()) -> FloatArray:
        """Append a token and return the probability of each class."""
        self.push(token_id, attributes)
        return self.probabilities()

    def _run(self) -> None:
        for name, array in self._block.items():  # inputs are copied to a GPU when they are bound
            self._binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        self._session.run_with_iobinding(self._binding)
        self._stale = False

    def _close_block(self) -> None:
        for tensor in self._schema.state:
            if tensor.rule == "replace":
                values, following = self._values, self._next
                values[tensor.name], following[tensor.output] = following[tensor.output], values[tensor.name]
        self._done += self._schema.window
        self._count[:] = 0
        if self._done[0] < self._schema.capacity:
            self._bind_state()

    def _bind_state(self) -> None:
        """Tell the graph where to read the state, and where to write what follows from the open block."""
        for tensor in self._schema.state:
            value = self._values[tensor.name]
            self._binding.bind_ortvalue_input(tensor.name, value)
            if tensor.rule == "replace":
                self._binding.bind_ortvalue_output(tensor.output, self._next[tensor.output])
            else:
                # The block's place in the cache itself: the graph does not look at rows from `done` on.
                row = np.dtype(tensor.dtype).itemsize * int(np.prod(tensor.shape[1:]))
                at = value.data_ptr() + int(self._done[0]) * row
                shape = (self._schema.window, *tensor.shape[1:])
                self._binding.bind_output(tensor.output, self._device, 0, np.dtype(tensor.dtype), shape, at)

    def _bind(self, name: str, array: NDArray[Any]) -> None:
        self._binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

    def _buffer(self, dtype: str, shape: tuple[int, ...]) -> Any:
        from onnxruntime import OrtValue

        return OrtValue.ortvalue_from_numpy(np.zeros(shape, dtype), self._device, 0)


_BLOCK = ("ids", "attributes", "count", "done")


def softmax(logits: NDArray[np.float32]) -> FloatArray:
    """Return probabilities in double precision."""
    odds = np.exp(logits.astype(np.float64) - float(logits.max()))
    probabilities: FloatArray = odds / odds.sum()
    return probabilities


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
