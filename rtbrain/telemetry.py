"""What the process measures about itself: latencies, processor time and memory, in bounded memory."""

import os
import sys
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

RECENT: Final = 1024


@dataclass(frozen=True, slots=True)
class Percentiles:
    """A summary of recent values, in their unit."""

    n: int
    """Values that the percentiles rest on."""
    p50: float
    p95: float
    p99: float
    largest: float
    """Of all values so far, not only of the recent ones."""


class Recent:
    """As `np.percentile` over the newest values, of which a fixed number is kept."""

    def __init__(self, size: int = RECENT) -> None:
        self._values = np.empty(size)
        self.count = 0
        """Values so far."""
        self.largest = -np.inf

    def add(self, value: float) -> None:
        """Take one value."""
        self._values[self.count % len(self._values)] = value
        self.count += 1
        self.largest = max(self.largest, value)

    def summary(self) -> Percentiles | None:
        """Return the percentiles; None before the first value."""
        n = min(self.count, len(self._values))
        if not n:
            return None
        p50, p95, p99 = np.percentile(self._values[:n], (50, 95, 99)).tolist()
        return Percentiles(n, p50, p95, p99, float(self.largest))


class CpuMeter:
    """Share of one core that this process used since it was last asked, all its threads together."""

    def __init__(self) -> None:
        self._wall_s, self._cpu_s = time.monotonic(), time.process_time()

    def share(self) -> float:
        """Return the share, above 1 if several threads were busy."""
        wall_s, cpu_s = time.monotonic(), time.process_time()
        passed_s, used_s = wall_s - self._wall_s, cpu_s - self._cpu_s
        self._wall_s, self._cpu_s = wall_s, cpu_s
        return used_s / passed_s if passed_s > 0 else 0.0


def rss_mb() -> float:
    """Return the physical memory of this process in MB: now on Linux and Windows, its peak on other systems."""
    system: str = sys.platform
    if system == "linux":
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    if system == "win32":
        return _windows_rss_mb()
    import resource

    unit = 1 if system == "darwin" else 1024  # macOS counts bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _windows_rss_mb() -> float:
    import ctypes

    size_fields = ("peak", "now", "qp_paged", "q_paged", "qp_other", "q_other", "pagefile", "peak_pagefile")

    class Counters(ctypes.Structure):
        _fields_ = [
            ("cb", ctypes.c_ulong),
            ("faults", ctypes.c_ulong),
            *((name, ctypes.c_size_t) for name in size_fields),
        ]

    counters = Counters()
    counters.cb = ctypes.sizeof(counters)
    kernel = ctypes.CDLL("kernel32")
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    process = ctypes.c_void_p(kernel.GetCurrentProcess())
    if not kernel.K32GetProcessMemoryInfo(process, ctypes.byref(counters), counters.cb):
        raise OSError("Windows does not say how much memory this process has")
    return float(counters.now) / 1e6
