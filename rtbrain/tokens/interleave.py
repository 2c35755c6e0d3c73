"""Several bands, one token sequence: a branch of stages per band, merged in one order of sample time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rtbrain.messages import NO_TOKENS, Chunk, StreamInfo, Tokens
from rtbrain.stage import Chain
from rtbrain.tokens.runs import MergeRuns


class Interleave:
    """As sorting the tokens of all bands by (end, band), over chunks.

    A token waits until no band can still close an earlier one, so the order never depends on the chunks.
    """

    def __init__(self, branches: Sequence[Chain]) -> None:
        self._branches = tuple(branches)
        self._merges: list[MergeRuns] = []
        for branch in branches:
            assert isinstance(branch.stages[-1], MergeRuns)
            self._merges.append(branch.stages[-1])
        self._waiting = NO_TOKENS

    def open(self, info: StreamInfo) -> StreamInfo:
        """Open all branches; the slowest one decides the delay."""
        infos = [branch.open(info) for branch in self._branches]
        self._waiting = NO_TOKENS
        return replace(
            infos[0],
            wait_s=max(each.wait_s for each in infos),
            filter_delay_s=max(each.filter_delay_s for each in infos),
        )

    def process(self, x: Chunk) -> Tokens:
        """Run all branches and let go of the tokens whose order is certain."""
        parts = [tokens for branch in self._branches for tokens in branch.process(x)]
        if len(self._branches) == 1:
            return Tokens.concat(parts)
        return self._release([self._waiting, *parts], min(merge.until for merge in self._merges))

    def flush(self) -> Tokens:
        """Close the last run of every band."""
        parts = [tokens for branch in self._branches for tokens in branch.flush()]
        return self._release([self._waiting, *parts], np.iinfo(np.int64).max)

    def _release(self, parts: list[Tokens], certain: int) -> Tokens:
        tokens = Tokens.concat(parts)
        end = tokens.start + tokens.duration
        order = np.lexsort((tokens.band, end))
        done = end[order] < certain
        self._waiting = tokens.take(order[~done])
        return tokens.take(order[done])
