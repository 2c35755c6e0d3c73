"""Running quality of every channel: flat, railed, not a number or too large, with hysteresis.

The channel mask changes at known samples only: at once when a sample is not finite, otherwise at the end of a
block of `block_ms` of sample time. Chunks are cut there, so each has one mask. The filters after this stage never
see a value that is not finite: a bad channel's last finite value is held instead.
"""

from dataclasses import dataclass

import numpy as np

from rtbrain.config import NotNegative, Positive, Share
from rtbrain.messages import BoolArray, Chunk, FloatArray, IntArray, StreamInfo

LIMIT_UV = 1e6
"""No amplifier measures a volt on the scalp: such a value is as lost as one that is not a number."""


@dataclass(frozen=True)
class QualitySettings:
    """When a channel is bad, and when it is good again."""

    block_ms: Positive = 100.0
    """Length of the blocks that are judged."""
    flat_uv: NotNegative = 0.5
    """Peak-to-peak amplitude below which a block is flat; twice that is alive again."""
    flat_ms: Positive = 500.0
    """A channel is bad once it has been flat for so long."""
    amplitude_uv: Positive = 1500.0
    """Peak-to-peak amplitude within a block above which the channel is bad at once; 0.8 of it is calm again."""
    railed_share: Share = 0.3
    """Share of a block's samples that sit exactly on its maximum or minimum when the amplifier is at its rail."""
    railed_uv: NotNegative = 20.0
    """A block that spans less is not at a rail: in coarsely quantised quiet EEG many samples share the extremes."""
    recover_ms: Positive = 1000.0
    """A bad channel is good again after so long without fault; its filters restart at the first calm block's end."""


class Quality:
    """As judging each block of a recording in turn, over chunks; adds the mask of good channels."""

    def __init__(self, settings: QualitySettings) -> None:
        self.settings = settings
        self.bad_samples: IntArray = np.zeros(0, np.int64)
        """(channels,) samples during which each channel was bad, breaks and reopening notwithstanding."""
        self.samples = 0
        self._channels: tuple[str, ...] = ()

    def open(self, info: StreamInfo) -> StreamInfo:
        """Start with all channels good."""
        n = len(info.channels)
        self._channels = info.channels
        size = max(4, info.samples(self.settings.block_ms))
        block_ms = size * 1000 / info.rate_hz
        self._flat_blocks = max(1, round(self.settings.flat_ms / block_ms))
        self._calm_blocks = max(2, round(self.settings.recover_ms / block_ms))
        self._block = np.empty((size, n))  # what has been seen of the current block
        self._seen = 0
        self._lost = np.zeros(n, bool)  # channels with a value in this block that is not finite
        self._good = np.ones(n, bool)
        self._mask: BoolArray | None = None  # as _good, but None while all are good
        self._fresh: BoolArray | None = None
        self._flat = np.zeros(n, np.int64)  # flat blocks in a row
        self._calm = np.zeros(n, np.int64)  # blocks without fault in a row, of bad channels
        self._held = np.zeros(n)
        if len(self.bad_samples) != n:
            self.bad_samples = np.zeros(n, np.int64)
        return info

    def process(self, x: Chunk) -> list[Chunk]:
        """Cut the chunk where the mask changes."""
        out: list[Chunk] = []
        if not len(x):
            return out
        data, lost = self._hold(x.data)
        row = begin = 0  # rows from `begin` on have the same mask
        while row < len(x):
            stop = min(len(x), row + len(self._block) - self._seen)
            if lost is not None:
                newly = lost[row:stop] & self._good
                hit = np.flatnonzero(newly.any(axis=1))
                if len(hit) and hit[0] == 0:
                    begin = self._emit(out, x, data, begin, row)
                    self._set_good(self._good & ~newly[0])
                    self._calm = np.where(newly[0], 0, self._calm)
                    continue  # the same row again, with the new mask
                stop = row + int(hit[0]) if len(hit) else stop
                self._lost |= lost[row:stop].any(axis=0)
            self._block[self._seen : self._seen + stop - row] = data[row:stop]
            self._seen += stop - row
            row = stop
            if self._seen == len(self._block):
                good, fresh = self._judge()
                if good is not None or fresh is not None:
                    begin = self._emit(out, x, data, begin, row)
                    self._set_good(self._good if good is None else good)
                    self._fresh = fresh
        self._emit(out, x, data, begin, row)
        self._held = data[-1].copy()
        return out

    def flush(self) -> list[Chunk]:
        """Nothing is held back."""
        return []

    def _hold(self, data: FloatArray) -> tuple[FloatArray, BoolArray | None]:
        """Replace what is lost by the channel's last true value; also return where that was, None if nowhere."""
        if np.vdot(data, data) < LIMIT_UV**2:  # the quickest way to see that every value is finite, and no nonsense
            return data, None
        lost: BoolArray = ~(np.abs(data) < LIMIT_UV)
        if not lost.any():
            return data, None
        rows = np.where(lost, 0, np.arange(1, len(data) + 1)[:, None])
        newest = np.maximum.accumulate(rows, axis=0)  # 0: nothing finite yet in this chunk
        return np.take_along_axis(np.vstack([self._held, data]), newest, axis=0), lost

    def _emit(self, out: list[Chunk], x: Chunk, data: FloatArray, begin: int, stop: int) -> int:
        if stop > begin:
            out.append(Chunk(data[begin:stop], x.start + begin, None, self._mask, x.filled, self._fresh))
            self._fresh = None
            self.samples += stop - begin
            if self._mask is not None:
                self.bad_samples += (stop - begin) * ~self._mask
        return stop

    @property
    def bad_now(self) -> tuple[str, ...]:
        """Channels that are bad at the moment."""
        return tuple(name for name, good in zip(self._channels, self._good.tolist(), strict=True) if not good)

    @property
    def good_share_now(self) -> float:
        """Share of the channels that are good at the moment; 1 before the stage was opened."""
        return float(self._good.mean()) if len(self._channels) else 1.0

    def bad_share(self) -> dict[str, float]:
        """Return the share of time during which channels were bad, worst first; those always good are left out."""
        shares = dict(zip(self._channels, (self.bad_samples / max(1, self.samples)).tolist(), strict=True))
        return {name: share for name, share in sorted(shares.items(), key=lambda item: -item[1]) if share}

    def _set_good(self, good: BoolArray) -> None:
        self._good = good
        self._mask = None if good.all() else good

    def _judge(self) -> tuple[BoolArray | None, BoolArray | None]:
        """Decide at a block's end who is good from the next sample on, and who comes back; None: no change."""
        settings, block = self.settings, self._block
        self._seen = 0
        low, high = block.min(axis=0), block.max(axis=0)
        span = high - low
        flat = span < settings.flat_uv
        self._flat = np.where(flat, self._flat + 1, 0)
        at_rail = np.maximum((block == low).sum(axis=0), (block == high).sum(axis=0))
        railed = (at_rail >= settings.railed_share * len(block)) & (span >= settings.railed_uv)
        fault = self._lost | railed | (span > settings.amplitude_uv) | (self._flat >= self._flat_blocks)
        if self._mask is None and not fault.any():
            return None, None
        calm = ~fault & (span > 2 * settings.flat_uv) & (span < 0.8 * settings.amplitude_uv)
        was_bad = ~self._good
        self._calm = np.where(calm & was_bad, self._calm + 1, 0)
        self._lost[:] = False
        good = np.where(was_bad, self._calm >= self._calm_blocks, ~fault)
        back: BoolArray = was_bad & (self._calm == 1)
        return (None if (good == self._good).all() else good), (back if back.any() else None)
