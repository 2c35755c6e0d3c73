"""The model as two ONNX graphs, written out operator by operator.

`decoder_graph` takes a whole sequence. `step_graph` takes the open block of at most w tokens, and what earlier blocks
left behind: the running sums of the first layer, whose CLS query is constant, and for each later layer a cache with
one row per token. It gives the logits, the sums with the open block in them, and the block's rows for the caches. The
caller appends tokens to the open block; once it is full, its rows and sums are final, and a new block is opened.

The attention of CLS is folded (see `model.py`): a query becomes one d-vector per head through A_i = Wq_i' Wk_i, and a
mean of tokens becomes its update through B_i = Wo_i Wv_i.
"""

import numpy as np
import onnx
from numpy.typing import NDArray
from torch import Tensor

from rtbrain.training.graph_builder import GraphBuilder
from rtbrain.training.model import Block, BrainToken, angular_steps

Array = NDArray[np.generic]


def decoder_graph(model: BrainToken) -> onnx.ModelProto:
    """Return the graph from `ids` (T,) and `attributes` (T, a) to `logits`, for any T from 1 on.

    `attention_i` (h, 1 + T and more) is what each head of layer i looks at: CLS itself, the tokens, and padding (0).
    """
    parts = _Parts(model)
    g, w = parts.g, parts.window
    ids = g.input("ids", np.int64, ["tokens"])
    n = g.op("Shape", ids)
    n_blocks = g.op("Div", g.op("Add", n, g.ints(w - 1)), g.ints(w))
    missing = g.op("Sub", g.op("Mul", n_blocks, g.ints(w)), n)
    before = g.ints(0)
    shape = g.op("Concat", n_blocks, g.ints(w), axis=0)
    blocks = g.op("Reshape", g.op("Pad", ids, g.op("Concat", before, missing, axis=0)), shape)
    attributes = None
    if parts.n_attributes:
        flat = g.input("attributes", np.float32, ["tokens", parts.n_attributes])
        after = g.op("Concat", before, before, missing, before, axis=0)
        attributes = g.op("Reshape", g.op("Pad", flat, after), g.ints(-1, w, parts.n_attributes))
    total = g.op("Squeeze", g.op("Mul", n_blocks, g.ints(w)))
    index = g.op("Range", g.const(np.int64(0)), total, g.const(np.int64(1)))  # of each token, padding included
    visible = g.op("Less", index, n)
    position = g.op("Reshape", g.op("Add", index, g.const(np.int64(1))), shape)
    tokens = parts.embed(blocks, attributes, position)  # (p, w, d)
    mask = parts.mask(g.op("Reshape", visible, shape))
    cls = g.const(parts.cls)
    for i, block in enumerate(parts.blocks):
        z = parts.norm(f"{i}.norm", block.norm_interaction, tokens)
        flat = g.op("Reshape", z, g.ints(-1, parts.width))
        own = parts.norm(f"{i}.norm", block.norm_interaction, cls)
        mean, weights = parts.attend(parts.fold(i, block, own), own, [(flat, visible)])
        g.output(f"attention_{i}", weights, np.float32, [parts.heads, "attended"])
        cls = parts.refine(i, block, cls, parts.unfold(i, block, mean))
        if i < len(parts.blocks) - 1:
            tokens = parts.refine(i, block, tokens, parts.transitions(i, block, z, mask))
    g.output("logits", parts.classify(cls), np.float32, [model.settings.n_classes])
    return g.model("decoder")


def step_graph(model: BrainToken, capacity: int) -> onnx.ModelProto:
    """Return the graph of one open block, with caches of `capacity` tokens; every shape is fixed."""
    parts = _Parts(model)
    g, w, d, heads = parts.g, parts.window, parts.width, model.settings.heads
    ids = g.input("ids", np.int64, [w])
    attributes = None
    if parts.n_attributes:
        flat = g.input("attributes", np.float32, [w, parts.n_attributes])
        attributes = g.op("Unsqueeze", flat, g.ints(0))
    count, done = g.input("count", np.int64, [1]), g.input("done", np.int64, [1])
    peak, mass, sums = (
        g.input("peak", np.float64, [heads, 1]),
        g.input("mass", np.float64, [heads, 1]),
        g.input("sums", np.float64, [heads, d]),
    )
    caches = [g.input(f"cache_{i}", np.float32, [capacity, d]) for i in range(1, len(parts.blocks))]
    within = g.const(np.arange(w))
    visible = g.op("Less", within, count)
    cached = g.op("Less", g.const(np.arange(capacity)), done)
    one = g.ints(0)
    position = g.op("Unsqueeze", g.op("Add", g.op("Add", within, done), g.const(np.int64(1))), one)
    tokens = parts.embed(g.op("Unsqueeze", ids, one), attributes, position)  # (1, w, d)
    mask = parts.mask(g.op("Unsqueeze", visible, one))
    cls = g.const(parts.cls)
    for i, block in enumerate(parts.blocks):
        z = parts.norm(f"{i}.norm", block.norm_interaction, tokens)
        flat = g.op("Squeeze", z, one)
        own = parts.norm(f"{i}.norm", block.norm_interaction, cls)
        query = parts.fold(i, block, own)
        if i == 0:
            mean = parts.running(query, own, flat, visible, (peak, mass, sums))
        else:
            g.output(f"rows_{i}", flat, np.float32, [w, d])
            mean, _ = parts.attend(query, own, [(caches[i - 1], cached), (flat, visible)])
        cls = parts.refine(i, block, cls, parts.unfold(i, block, mean))
        if i < len(parts.blocks) - 1:
            tokens = parts.refine(i, block, tokens, parts.transitions(i, block, z, mask))
    g.output("logits", parts.classify(cls), np.float32, [model.settings.n_classes])
    return g.model("step")


class _Parts:
    """The pieces that both graphs are put together from; CLS is a row (1, d), tokens are (p, w, d)."""

    def __init__(self, model: BrainToken) -> None:
        self.g = GraphBuilder()
        self.model = model
        settings = model.settings
        assert settings.window is not None
        self.window, self.width = settings.window, settings.width
        self.heads, self.head_width = settings.heads, settings.head_width
        self.n_attributes = len(settings.attributes)
        self.blocks = [block for block in model.blocks if isinstance(block, Block)]
        self.cls = _array(model.embedding.cls())[None]

    def embed(self, ids: str, attributes: str | None, position: str) -> str:
        g, embedding = self.g, self.model.embedding
        frequency, phase = (_array(each) for each in angular_steps(self.width))
        place = g.op("Unsqueeze", g.op("Cast", position, to=onnx.TensorProto.DOUBLE), g.ints(-1))
        angle = g.op("Add", g.op("Mul", place, g.const(frequency)), g.const(phase))
        encoding = g.op("Cast", g.op("Sin", angle), to=onnx.TensorProto.FLOAT)
        encoding = g.op("Mul", encoding, g.const(np.float32(embedding.scale)))
        h = g.op("Add", g.op("Gather", g.weight("embedding.state", embedding.state.weight), ids), encoding)
        if embedding.attributes is not None and attributes is not None:
            centred = g.op("Sub", attributes, g.weight("embedding.centre", embedding.centre))
            values = g.op("Div", centred, g.weight("embedding.spread", embedding.spread))
            h = g.op("Add", h, g.op("MatMul", values, g.weight("embedding.map", embedding.attributes.weight.T)))
            for i, (term, column) in enumerate(zip(embedding.terms, embedding.term_columns, strict=True)):
                weight = g.weight(f"embedding.term_{i}", _weight(term))
                value = g.op("Gather", values, g.ints(column), axis=-1)
                h = g.op("Add", h, g.op("Mul", g.op("Gather", weight, ids), value))
        return h

    def norm(self, name: str, norm: object, x: str) -> str:
        weight, bias = _weight(norm), _weight(norm, "bias")
        return self.g.op(
            "LayerNormalization",
            x,
            self.g.weight(f"{name}.weight", weight),
            self.g.weight(f"{name}.bias", bias),
            axis=-1,
            epsilon=float(getattr(norm, "eps", 1e-5)),
        )

    def mask(self, visible: str) -> str:
        """Return what is added to the scores of State Transition Modeling, (p, 1, 1, w)."""
        added = self.g.op("Where", visible, self.g.const(np.float32(0)), self.g.const(np.float32(-np.inf)))
        return self.g.op("Unsqueeze", added, self.g.ints(1, 2))

    def transitions(self, i: int, block: Block, z: str, mask: str) -> str | None:
        """Return the update of tokens from those of their block; None for a model in which they do not meet."""
        if not self.model.settings.transitions:
            return None
        g, interaction = self.g, block.interaction
        shape = g.ints(0, 0, self.heads, self.head_width)

        def heads(name: str, weight: Tensor, order: list[int]) -> str:
            projected = g.op("MatMul", z, g.weight(f"{i}.{name}", weight.T))
            return g.op("Transpose", g.op("Reshape", projected, shape), perm=order)

        query = heads("query", interaction.query.weight * self.head_width**-0.5, [0, 2, 1, 3])
        key = heads("key", interaction.key.weight, [0, 2, 3, 1])
        value = heads("value", interaction.value.weight, [0, 2, 1, 3])
        weights = g.op("Softmax", g.op("Add", g.op("MatMul", query, key), mask), axis=-1)
        mixed = g.op("Transpose", g.op("MatMul", weights, value), perm=[0, 2, 1, 3])
        flat = g.op("Reshape", mixed, g.ints(0, 0, self.heads * self.head_width))
        return g.op("MatMul", flat, g.weight(f"{i}.output", interaction.output.weight.T))

    def fold(self, i: int, block: Block, own: str) -> str:
        """Return the folded queries of CLS, (h, d)."""
        interaction = block.interaction
        query, key = (self._per_head(each.weight) for each in (interaction.query, interaction.key))
        folded = np.einsum("hkd,hke->dhe", query, key) * self.head_width**-0.5
        matrix = self.g.weight(f"{i}.fold", folded.reshape(self.width, -1))
        return self.g.op("Reshape", self.g.op("MatMul", own, matrix), self.g.ints(self.heads, self.width))

    def unfold(self, i: int, block: Block, mean: str) -> str:
        """Return the update of CLS (1, d) from each head's mean of tokens (h, d)."""
        interaction = block.interaction
        value = self._per_head(interaction.value.weight)
        output = _array(interaction.output.weight).astype(np.float64).reshape(self.width, self.heads, self.head_width)
        matrix = self.g.weight(f"{i}.unfold", np.einsum("hkd,ehk->hde", value, output).reshape(-1, self.width))
        return self.g.op("MatMul", self.g.op("Reshape", mean, self.g.ints(1, -1)), matrix)

    def attend(self, query: str, own: str, parts: list[tuple[str, str]]) -> tuple[str, str]:
        """Return each head's mean (h, d) over `own` (1, d) and the rows (n, d) of each part that its mask shows.

        The second value are the weights of that mean (h, 1 + n of all parts).
        """
        g = self.g
        scores = [g.op("Gemm", query, own, transB=1)]
        for rows, visible in parts:
            scores.append(g.op("Where", visible, g.op("Gemm", query, rows, transB=1), g.const(np.float32(-np.inf))))
        weights = g.op("Softmax", g.op("Concat", *scores, axis=1), axis=-1)
        everything = [own, *(rows for rows, _ in parts)]
        sizes = g.op("Concat", *(g.op("Shape", rows, start=0, end=1) for rows in everything), axis=0)
        shares = g.op_many("Split", weights, sizes, n=len(everything), axis=1)
        mean = g.op("Sum", *(g.op("MatMul", share, rows) for share, rows in zip(shares, everything, strict=True)))
        return mean, weights

    def running(self, query: str, own: str, rows: str, visible: str, state: tuple[str, str, str]) -> str:
        """As `attend` over all tokens so far, from sums over earlier blocks; put out the sums with this block.

        Sums hold exp(score - peak). They are of double precision, as thousands of blocks are added one by one.
        """
        g = self.g
        peak, mass, sums = state
        infinite = g.const(np.float32(-np.inf))
        scores = g.op("Where", visible, g.op("Gemm", query, rows, transB=1), infinite)
        scores, score_own, rows, own = (
            g.op("Cast", each, to=onnx.TensorProto.DOUBLE)
            for each in (scores, g.op("Gemm", query, own, transB=1), rows, own)
        )
        highest = g.op("ReduceMax", scores, g.ints(1))
        top = g.op("Max", g.op("Max", peak, highest), score_own)
        kept = g.op("Exp", g.op("Sub", peak, top))
        added = g.op("Exp", g.op("Sub", scores, top))
        new_mass = g.op("Add", g.op("Mul", mass, kept), g.op("ReduceSum", added, g.ints(1)))
        new_sums = g.op("Add", g.op("Mul", sums, kept), g.op("MatMul", added, rows))
        g.output("peak_next", top, np.float64, [self.heads, 1])
        g.output("mass_next", new_mass, np.float64, [self.heads, 1])
        g.output("sums_next", new_sums, np.float64, [self.heads, self.width])
        weight_own = g.op("Exp", g.op("Sub", score_own, top))
        total = g.op("Add", new_sums, g.op("Mul", weight_own, own))
        return g.op("Cast", g.op("Div", total, g.op("Add", new_mass, weight_own)), to=onnx.TensorProto.FLOAT)

    def refine(self, i: int, block: Block, h: str, update: str | None) -> str:
        g = self.g
        if update is not None:
            h = g.op("Add", h, update)
        normed = self.norm(f"{i}.norm_ff", block.norm_feed_forward, h)
        inner = g.op("Relu", g.op("MatMul", normed, g.weight(f"{i}.expand", block.expand.weight.T)))
        return g.op("Add", h, g.op("MatMul", inner, g.weight(f"{i}.contract", block.contract.weight.T)))

    def classify(self, cls: str) -> str:
        g, head = self.g, self.model.classifier
        scores = g.op("MatMul", self.norm("final", self.model.norm, cls), g.weight("head.weight", head.weight.T))
        return g.op("Squeeze", g.op("Add", scores, g.weight("head.bias", head.bias)), g.ints(0))

    def _per_head(self, weight: Tensor) -> NDArray[np.float64]:
        return _array(weight).astype(np.float64).reshape(self.heads, self.head_width, self.width)


def _array(tensor: Tensor) -> NDArray[np.generic]:
    array: NDArray[np.generic] = tensor.detach().cpu().numpy()
    return array


def _weight(module: object, name: str = "weight") -> Tensor:
    tensor = getattr(module, name)
    assert isinstance(tensor, Tensor)
    return tensor
