"""A few lines around onnx.helper, so that a graph reads like the formula that it computes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import helper, numpy_helper
from torch import Tensor

OPSET = 18
IR_VERSION = 9
"""Old enough for every ONNX Runtime that rtbrain runs on."""


class GraphBuilder:
    """Collects operators; values are known by their names."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._weights: dict[str, onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, dtype: type[np.generic], shape: Sequence[int | str]) -> str:
        """Declare an input and return its name."""
        self._inputs.append(_value(name, dtype, shape))
        return name

    def output(self, name: str, value: str, dtype: type[np.generic], shape: Sequence[int | str]) -> None:
        """Declare `value` as an output under another name."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(_value(name, dtype, shape))

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Apply an operator and return the name of its result."""
        return self.op_many(kind, *inputs, n=1, **attributes)[0]

    def op_many(self, kind: str, *inputs: str, n: int, **attributes: Any) -> list[str]:
        """Apply an operator with n results."""
        names = [f"{kind.lower()}_{len(self._nodes)}_{i}" for i in range(n)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def const(self, value: ArrayLike) -> str:
        """Return the name of a constant, the same for equal ones."""
        array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = f"const_{len(self._constants)}"
            self._constants[key] = name
            self._weights[name] = numpy_helper.from_array(array, name)
        return self._constants[key]

    def ints(self, *values: int) -> str:
        """Return the name of a constant row of integers: axes, shapes, indices."""
        return self.const(np.array(values, np.int64))

    def weight(self, name: str, value: Tensor | NDArray[np.floating[Any]]) -> str:
        """Return the name of a weight in single precision."""
        if name not in self._weights:
            array = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
            self._weights[name] = numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name)
        return name

    def model(self, name: str) -> onnx.ModelProto:
        """Return the whole as a checked model."""
        graph = helper.make_graph(self._nodes, name, self._inputs, self._outputs, list(self._weights.values()))
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="rtbrain"
        )
        onnx.checker.check_model(model, full_check=True)
        return model


def _value(name: str, dtype: type[np.generic], shape: Sequence[int | str]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape))
