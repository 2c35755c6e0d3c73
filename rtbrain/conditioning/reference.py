"""Average reference over the good channels."""

from rtbrain.messages import BoolArray, Chunk, FloatArray, StreamInfo


def average_reference(data: FloatArray, good: BoolArray | None = None) -> FloatArray:
    """Subtract from each row of (n, channels) data the mean of its good channels; bad channels become 0.

    Rows are summed along contiguous memory, so the result does not depend on how many rows come at once.
    """
    if good is None:
        referenced: FloatArray = data - data.sum(axis=1, keepdims=True) / data.shape[1]
        return referenced
    kept = data * good
    referenced = (kept - kept.sum(axis=1, keepdims=True) / max(1, int(good.sum()))) * good
    return referenced


class AverageReference:
    """As `average_reference`, over chunks.

    It comes after the filters: a change of mask would otherwise be a step in all channels for them to ring on.
    An online reference electrode that the amplifier does not record is left out of the mean.
    """

    def open(self, info: StreamInfo) -> StreamInfo:
        """Nothing to allocate."""
        return info

    def process(self, x: Chunk) -> Chunk:
        """Subtract the mean of the good channels."""
        return x.having(average_reference(x.data, x.good), x.start)

    def flush(self) -> list[Chunk]:
        """Nothing is held back."""
        return []
