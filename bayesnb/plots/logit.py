"""Axes of probabilities on which .99 and .999 are as far apart as .9 and .99."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import expit, logit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FURTHEST = 15  # nines that a double can tell from 1
_END = 36.0  # log odds that a double can tell from 1
_AT_LEAST = 0.4, 0.6


def limits(*probabilities: np.ndarray, outside: float = 0.0) -> tuple[float, float]:
    """Ends of an axis around one half that holds all of these but a share of `outside` on each side."""
    every = np.concatenate([np.ravel(p) for p in probabilities])
    low, high = np.quantile(every, [outside, 1 - outside]) if every.size else _AT_LEAST
    least, most = 10.0**-_FURTHEST, 1 - 10.0**-_FURTHEST
    return max(least, min(low, _AT_LEAST[0])), min(most, max(high, _AT_LEAST[1]))


def scale(ax: Axes, which: Literal["x", "y"], low: float, high: float, room: int = 9) -> None:
    """Make one axis logarithmic in the odds, from `low` to `high` with a margin, at most about `room` names on it."""
    from matplotlib.ticker import NullLocator

    ends = logit(np.array([low, high]))
    margin = 0.04 * (ends[1] - ends[0])
    ends = expit(np.clip([ends[0] - margin, ends[1] + margin], -_END, _END))
    ticks = _ticks(float(ends[0]), float(ends[1]), room)
    (ax.set_xscale if which == "x" else ax.set_yscale)("logit", nonpositive="clip")
    ax.set(**{f"{which}lim": ends})
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_ticks([value for value, _ in ticks], labels=[name for _, name in ticks])
    axis.set_minor_locator(NullLocator())


def edges(ends: tuple[float, float], bins: int) -> np.ndarray:
    """(bins + 1,) ends of bins that are equally wide in log odds; the outer ones go on to 0 and 1."""
    low, high = logit(np.array(ends))
    inner = expit(np.linspace(low, high, bins + 1))
    return np.concatenate([[0.0], inner[1:-1], [1.0]])


def _ticks(low: float, high: float, room: int) -> list[tuple[float, str]]:
    """One half and, on both sides, tenths of what is left, as many as have room; their names."""
    narrow = low > 0.005 and high < 0.995
    for step in range(1 - narrow, _FURTHEST + 1):
        tails = [0.3, 0.2, 0.1, 0.05, 0.02, 0.01] if step == 0 else [10.0**-k for k in range(step, 16, step)]
        below = [(tail, _small(tail)) for tail in tails if tail > low]
        above = [(1 - tail, _large(tail)) for tail in tails if 1 - tail < high]
        if len(below) + len(above) < room:
            break
    return [*below[::-1], (0.5, ".5"), *above]


def _small(tail: float) -> str:
    return f"{tail:g}".removeprefix("0") if tail > 5e-4 else f"$10^{{{round(np.log10(tail))}}}$"


def _large(tail: float) -> str:
    return f"{1 - tail:g}".removeprefix("0") if tail > 5e-4 else f"$1-10^{{{round(np.log10(tail))}}}$"
