"""`decoder.onnx` under ONNX Runtime: the whole model on a whole row of tokens, which the live path is judged by."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtbrain.decoder.schema import KEY, GraphSchema
from rtbrain.decoder.session import read_graph, session_on
from rtbrain.decoder.stream import softmax
from rtbrain.errors import BundleError
from rtbrain.messages import FloatArray, IntArray


class WholeModel:
    """A bundle's graph for whole sequences, on the CPU."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session = session_on(read_graph(path), path, ["CPUExecutionProvider"])
        self.schema = GraphSchema.from_json(self._session.get_modelmeta().custom_metadata_map.get(KEY), str(path))
        if self.schema.graph != "decoder":
            raise BundleError(f"{path} is a graph of kind {self.schema.graph!r}; whole sequences need decoder.onnx")

    def probabilities(self, ids: IntArray, attributes: NDArray[np.float32]) -> FloatArray:
        """Return the probability of each class, given these tokens; not calibrated."""
        (logits,) = self._session.run(["logits"], self._feed(ids, attributes))
        return softmax(logits)

    def attention(self, ids: IntArray, attributes: NDArray[np.float32]) -> FloatArray:
        """Return what CLS looks at, (layers, heads, 1 + tokens): itself first, then each token; rows sum to 1.

        Raises
        ------
        BundleError
            The graph was exported before it put this out.
        """
        names = [node.name for node in self._session.get_outputs() if node.name.startswith("attention_")]
        if not names:
            raise BundleError(f"{self._path} does not put out its attention; train the bundle again")
        weights = self._session.run(names, self._feed(ids, attributes))
        return np.array(weights, np.float64)[..., : 1 + len(ids)]

    def _feed(self, ids: IntArray, attributes: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        return {"ids": ids, "attributes": attributes} if self.schema.attributes else {"ids": ids}
