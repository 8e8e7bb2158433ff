"""Alternating timings of two calls, so that a drift of the machine's speed affects both."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One comparison: median seconds of both calls, their ratio, and its target."""

    name: str
    ours: float
    theirs: float
    target: float
    unit: str = "s"

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    def __str__(self) -> str:
        met = "ok" if self.ratio <= self.target else "MISSED"
        scale, unit = (1e3, "ms") if self.unit == "s" else (1.0, self.unit)
        return f"{self.name:<46} {self.ours * scale:>9.1f} {self.theirs * scale:>9.1f} {unit:<3} " + (
            f"{self.ratio:>7.3f}  <= {self.target:<5g} {met}" if self.target < math.inf else f"{self.ratio:>7.1f}"
        )


def in_turn(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], target: float, repeats: int = 7) -> Row:
    """Return medians of alternating runs, after a warm-up of both calls."""
    ours()
    theirs()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for call, seconds in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    return Row(name, statistics.median(times[0]), statistics.median(times[1]), target)


def processes(name: str, ours: str, theirs: str, target: float, repeats: int = 5) -> Row:
    """Return medians of alternating runs of two programs, each in a new process."""

    def run(program: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    return in_turn(name, run(ours), run(theirs), target, repeats)


def printed(program: str, repeats: int = 3) -> float:
    """Return the median of the number that a program prints, over new processes."""
    outputs = [
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
        for _ in range(repeats)
    ]
    return statistics.median(float(output.split()[-1]) for output in outputs)
