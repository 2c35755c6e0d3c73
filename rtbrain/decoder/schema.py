"""What an exported graph says about itself: the JSON under `rtbrain` in its metadata.

A caller of `step.onnx` in any language keeps the tensors of `state` between runs. Tokens are appended to the open
block (`ids`, `attributes`, their `count`, after `done` earlier ones). When the block holds `window` tokens, each
"replace" tensor takes the value of its output, the rows of each "append" tensor's output go to its rows `done` and
following, `done` grows by `window`, and the block is empty again.
"""

import json
from dataclasses import asdict, dataclass
from typing import Literal

from rtbrain.config import Count, parse
from rtbrain.errors import BundleError, ConfigError

KEY = "rtbrain"
FORMAT = 1


@dataclass(frozen=True)
class StateTensor:
    """One input that carries what earlier blocks left behind."""

    name: str
    output: str
    dtype: Literal["float32", "float64"]
    shape: tuple[int, ...]
    start: float
    """Its value, everywhere, before the first token."""
    rule: Literal["replace", "append"]


@dataclass(frozen=True)
class GraphSchema:
    """A graph's description."""

    graph: Literal["decoder", "step"]
    states: tuple[int, ...]
    """States of each band; ids count through them from 1 on."""
    attributes: tuple[str, ...]
    n_classes: Count
    window: Count
    """Tokens in a block."""
    t_max: Count
    """Tokens that the model takes at the most."""
    state: tuple[StateTensor, ...] = ()
    format: int = FORMAT

    @property
    def capacity(self) -> int:
        """Return the rows of a cache: whole blocks for `t_max` tokens."""
        return -(-self.t_max // self.window) * self.window

    def inputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Return data type and shape of the step graph's inputs by name."""
        block: dict[str, tuple[str, tuple[int, ...]]] = {"ids": ("int64", (self.window,))}
        if self.attributes:
            block["attributes"] = ("float32", (self.window, len(self.attributes)))
        block |= {"count": ("int64", (1,)), "done": ("int64", (1,))}
        return block | {tensor.name: (tensor.dtype, tensor.shape) for tensor in self.state}

    def outputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Return data type and shape of the step graph's outputs by name."""
        shapes: dict[str, tuple[str, tuple[int, ...]]] = {"logits": ("float32", (self.n_classes,))}
        for tensor in self.state:
            first = tensor.shape[0] if tensor.rule == "replace" else self.window
            shapes[tensor.output] = (tensor.dtype, (first, *tensor.shape[1:]))
        return shapes

    def to_json(self) -> str:
        """Return the metadata's text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str | None, where: str) -> "GraphSchema":
        """Read and check the metadata's text."""
        try:
            values = json.loads(text or "null")
            if not isinstance(values, dict) or values.get("format") != FORMAT:
                raise BundleError(
                    f"{where} is no graph of format {FORMAT} of rtbrain; export the model again with this version"
                )
            return parse(cls, values, where)
        except (json.JSONDecodeError, ConfigError) as error:
            raise BundleError(f"the description in {where} is damaged: {error}; export the model again") from error


def running_state(window: int, t_max: int, layers: int, heads: int, width: int) -> tuple[StateTensor, ...]:
    """Return the state of a step graph: running sums of the first layer, a cache for each later one."""
    capacity = -(-t_max // window) * window
    least = -1e300  # stands for minus infinity, which JSON cannot write
    sums = (
        StateTensor("peak", "peak_next", "float64", (heads, 1), least, "replace"),
        StateTensor("mass", "mass_next", "float64", (heads, 1), 0.0, "replace"),
        StateTensor("sums", "sums_next", "float64", (heads, width), 0.0, "replace"),
    )
    caches = (
        StateTensor(f"cache_{i}", f"rows_{i}", "float32", (capacity, width), 0.0, "append") for i in range(1, layers)
    )
    return (*sums, *caches)
