"""The state of `step.onnx` between its runs: one row of tokens, on the model's device."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtbrain.errors import BundleError, ConfigError
from rtbrain.messages import FloatArray

if TYPE_CHECKING:
    from rtbrain.decoder.session import StepModel

_WARM_S: Final = 0.03
"""A GPU that computes nothing for longer lowers its clock, and the next answer takes many times as long."""

_BLOCK = ("ids", "attributes", "count", "done")


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
        self._schema = schema
        self._n_ids = sum(schema.states)
        # All tokens, for the spare: a GPU that failed does not give its state back.
        self._ids_so_far = np.zeros(0 if model.spare is None else schema.t_max, np.int64)
        self._attributes_so_far = np.zeros((len(self._ids_so_far), len(schema.attributes)), np.float32)
        self._attach(model)

    def _attach(self, model: StepModel) -> None:
        """Take buffers on a model's device, empty ones."""
        schema = self._schema
        self._model, self._session, self._device = model, model.session, model.device
        self._ran_s = 0.0
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
        try:
            for tensor in self._schema.state:
                self._values[tensor.name].update_inplace(np.full(tensor.shape, tensor.start, tensor.dtype))
            self._bind_state()
        except Exception as error:  # see _failed
            self._attach(self._failed(error))

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
        if self._model.spare is not None:
            self._ids_so_far[self.n_tokens], self._attributes_so_far[self.n_tokens] = token_id, values
        at = int(self._count[0])
        self._ids[at] = token_id
        if values.size:
            self._block["attributes"][at] = values
        self._count += 1
        self.n_tokens += 1
        self._stale = True
        if at + 1 == self._schema.window and self._run():
            self._close_block()

    def probabilities(self) -> FloatArray:
        """Return the probability of each class, given all tokens so far."""
        return softmax(self.logits())

    def logits(self) -> NDArray[np.float32]:
        """Return the logits, given all tokens so far."""
        if not self.n_tokens:
            raise ConfigError("there is no answer before the first token")
        while self._stale:  # a second time where the first one failed
            self._run()
        return self._logits.copy()

    def step(self, token_id: int, attributes: ArrayLike = ()) -> FloatArray:
        """Append a token and return the probability of each class."""
        self.push(token_id, attributes)
        return self.probabilities()

    def keep_warm(self) -> None:
        """Compute the last answer again if that is long ago, so that a GPU stays awake; to be called now and then."""
        idle = time.perf_counter() - self._ran_s >= _WARM_S
        if self._model.spare is not None and idle and self._count[0] and not self._stale:
            self._run()

    def _run(self) -> bool:
        """Compute; if the device fails, begin anew on the spare with all tokens, and return False."""
        spare = self._model.spare if self._model.failed else None
        if spare is None:
            try:
                self._compute()
                return True
            except Exception as error:  # see _failed
                spare = self._failed(error)
        n = self.n_tokens
        self._attach(spare)
        for token_id, values in zip(self._ids_so_far[:n].tolist(), self._attributes_so_far[:n], strict=True):
            self.push(token_id, values)
        return False

    def _failed(self, error: Exception) -> StepModel:
        """Note that the device failed, and return the spare; ONNX Runtime's errors have no common base."""
        model, reason = self._model, str(error).partition("\n")[0]
        if model.spare is None:
            raise BundleError(f"ONNX Runtime failed in mid-session on the {model.device}: {reason}") from error
        model.failed = f"the GPU failed, and the CPU computes from here on: {reason}"
        return model.spare

    def _compute(self) -> None:
        for name, array in self._block.items():  # inputs are copied to a GPU when they are bound
            self._binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        self._session.run_with_iobinding(self._binding)
        self._stale, self._ran_s = False, time.perf_counter()

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


def softmax(logits: NDArray[np.float32]) -> FloatArray:
    """Return probabilities in double precision."""
    odds = np.exp(logits.astype(np.float64) - float(logits.max()))
    probabilities: FloatArray = odds / odds.sum()
    return probabilities
