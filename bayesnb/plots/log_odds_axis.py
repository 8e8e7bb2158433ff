"""Axes of probabilities that are linear in the log odds: .99 and .999 are as far apart as .9 and .99."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import expit, logit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST = 1e-15  # what a double can tell from 1
_END = 36.0  # log odds that a double can tell from 1
_AT_LEAST = 0.4, 0.6


def axis_limits(*probabilities: np.ndarray, outside: float = 0.0) -> tuple[float, float]:
    """Ends (low, high) of an axis that holds .4 to .6 and all probabilities but a fraction `outside` on each side."""
    pooled = np.concatenate([np.ravel(p) for p in probabilities])
    low, high = np.quantile(pooled, [outside, 1 - outside]) if pooled.size else _AT_LEAST
    return max(_LEAST, min(low, _AT_LEAST[0])), min(1 - _LEAST, max(high, _AT_LEAST[1]))


def scale_axis(ax: Axes, which: Literal["x", "y"], low: float, high: float, ticks: int = 9) -> None:
    """Make one axis linear in the log odds, from `low` to `high` with a margin and about `ticks` labelled ticks."""
    from matplotlib.ticker import LogitLocator, NullLocator

    ends = logit(np.array([low, high]))
    margin = 0.04 * (ends[1] - ends[0])
    low, high = expit(np.clip([ends[0] - margin, ends[1] + margin], -_END, _END))
    places = [place for place in LogitLocator(nbins=ticks).tick_values(low, high) if low <= place <= high]
    # What lies at 0 or 1 is drawn far beyond the ends, not left out.
    (ax.set_xscale if which == "x" else ax.set_yscale)("logit", nonpositive="clip")
    ax.set(**{f"{which}lim": (low, high)})
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_ticks(places, labels=map(_format_probability, places))
    axis.set_minor_locator(NullLocator())


def bin_edges(ends: tuple[float, float], bins: int) -> np.ndarray:
    """Edges (bins + 1,) of bins that are equally wide in log odds; the outer bins go on to 0 and 1."""
    low, high = logit(np.array(ends))
    inner = expit(np.linspace(low, high, bins + 1))
    return np.concatenate([[0.0], inner[1:-1], [1.0]])


def _format_probability(probability: float) -> str:
    """Return a tick label: decimals such as .9 or .999; within 5e-4 of 0 or 1 a power of ten, such as 1 - 10⁻⁹."""
    tail = min(probability, 1 - probability)
    if tail > 5e-4:
        return f"{probability:.6g}".removeprefix("0")
    power = f"10^{{{round(np.log10(tail))}}}"
    return f"${power}$" if probability < 0.5 else f"$1-{power}$"
