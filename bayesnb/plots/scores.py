"""Figures of scores: stated against observed, and how scores fall as rows come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesnb.plots.style import GREY, SMALL, axes, dot, extent, header, look, require
from bayesnb.plots.text import columns, font, labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_SMALLEST, _LARGEST = 20.0, 120.0
_UNITS = {
    "brier": "Brier score (0 best, 2 worst)",
    "log_loss": "log loss (nats a row)",
    "log_loss_clipped": "log loss, clipped at 1e-15 (nats a row)",
    "accuracy": "accuracy (share of rows)",
    "ece": "expected calibration error (share of rows)",
    "impossible_rows": "impossible rows (number)",
    "undefined_rows": "undefined rows (number)",
}


def reliability(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Stated confidence against observed accuracy.

    Parameters
    ----------
    table : DataFrame
        One row a bin of the top probability, with columns lower, upper, count, confidence (mean of the stated
        probabilities) and accuracy, as `bayesnb.evaluation.reliability` returns it. Empty bins are not drawn.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If a column is missing, or no bin has a row.

    Notes
    -----
    Areas of the dots grow with the number of rows. Error bars are 95% intervals of Wilson for the accuracy in a bin,
    E. B. Wilson, J. Am. Stat. Assoc. 22 (1927). Dots below the diagonal are overconfident.
    """
    from scipy.stats import binomtest

    require(table, ("lower", "upper", "count", "confidence", "accuracy"), "bayesnb.evaluation.reliability")
    filled = table[table["count"] > 0]
    if not len(filled):
        raise ValueError("table: no bin has a row; score at least one row.")
    ax = axes(ax, 5.0, 5.4)
    count = filled["count"].to_numpy(dtype=float)
    confidence, accuracy = filled["confidence"].to_numpy(dtype=float), filled["accuracy"].to_numpy(dtype=float)
    wilson = [
        binomtest(round(a * n), max(1, round(n))).proportion_ci(0.95, method="wilson")
        for a, n in zip(accuracy, count, strict=True)
    ]
    area = _SMALLEST + (_LARGEST - _SMALLEST) * count / count.max()
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    ax.vlines(confidence, [w.low for w in wilson], [w.high for w in wilson], color=look(0)["color"], linewidth=1.0)
    ax.scatter(confidence, accuracy, s=area, color=look(0)["color"], edgecolors="white", linewidths=0.6, zorder=3)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    ax.set_box_aspect(1)
    ax.set_xlabel("stated confidence: mean top probability")
    ax.set_ylabel("observed accuracy (share of rows)")
    ends = sorted({count.min(), count.max()})
    sizes = [np.sqrt(_SMALLEST + (_LARGEST - _SMALLEST) * n / count.max()) for n in ends]
    marks = [
        dot(f"{n:g} row{'' if n == 1 else 's'}", marker="o", color=look(0)["color"], markersize=s)
        for n, s in zip(ends, sizes, strict=True)
    ]
    header(ax, [f"{count.sum():g} rows; bars: 95% Wilson intervals"], marks)
    return ax


def learning_curve(frame: pd.DataFrame, score: str = "brier", ax: Axes | None = None) -> Axes:
    """A score against the number of training rows, a line an estimate.

    Parameters
    ----------
    frame : DataFrame
        Tidy, as `bayesnb.learning_curve` returns it: columns size (training rows a class), estimate, the score and,
        if there is one, its standard error, such as brier and brier_se; repeats is told if it is there.
    score : str, default "brier"
        Column to draw.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If a column is missing.

    Notes
    -----
    Bars are one standard error up and down. Scores that are not finite, such as the log loss of an impossible row,
    have no point; the header says how many.
    """
    require(frame, ("size", "estimate", score), "bayesnb.learning_curve")
    ax = axes(ax, 7.0, 4.6)
    names = labels(frame["estimate"], 26)
    marks, ends = [], []
    for i, (estimate, name) in enumerate(names.items()):
        own = frame[frame["estimate"] == estimate].sort_values("size")
        size, value = own["size"].to_numpy(dtype=float), own[score].to_numpy(dtype=float)
        value = np.where(np.isfinite(value), value, np.nan)
        error = own[f"{score}_se"].to_numpy(dtype=float) if f"{score}_se" in own else None
        ax.errorbar(size, value, yerr=error, linewidth=1.4, elinewidth=0.8, markersize=4, label=name, **look(i))
        marks.append(dot(name, linewidth=1.4, linestyle="-", **look(i)))
        last = np.flatnonzero(np.isfinite(value))
        ends.append((size[last[-1]], value[last[-1]]) if last.size else (np.nan, np.nan))
    _sizes(ax, frame["size"].to_numpy(dtype=float))
    ax.set_ylabel(_UNITS.get(score, score.replace("_", " ")))
    ax.grid(axis="y", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    infinite = int((~np.isfinite(frame[score].to_numpy(dtype=float))).sum())
    lines = [_repeats(frame, score), f"Without a point, since not finite: {infinite}" if infinite else ""]
    direct = _apart(ax, ends, frame["size"].max())
    if direct:
        for i, (name, end) in enumerate(zip(names.values(), ends, strict=True)):
            ax.annotate(
                name,
                (1, end[1]),
                xycoords=ax.get_yaxis_transform(),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL + 1,
                color=look(i)["color"],
                annotation_clip=False,
                **font([name]),
            )
    header(ax, lines, [] if direct else marks)
    return ax


def _sizes(ax: Axes, sizes: np.ndarray) -> None:
    """A logarithmic axis whose ticks are the sizes themselves, as many as have room."""
    from matplotlib.ticker import NullLocator

    low, high = sizes.min() / 1.08, sizes.max() * 1.08
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    shown: list[float] = []
    width = extent(ax)[0] / np.log(high / low)
    for size in np.unique(sizes)[::-1]:
        needed = 0.75 * 10 * (columns(f"{size:g}") + 1)
        if not shown or np.log(shown[-1] / size) * width > needed:
            shown.append(size)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(shown, labels=[f"{int(size)}" if size == int(size) else f"{size:g}" for size in shown])
    ax.set_xlabel("training rows a class (log scale)")


def _apart(ax: Axes, ends: list[tuple[float, float]], last: float) -> bool:
    """Whether all lines reach the last size, so far from each other that labels there do not overlap."""
    if any(size != last for size, _ in ends):
        return False
    heights = np.sort(ax.transData.transform(np.array(ends))[:, 1]) / ax.figure.dpi * 72
    return bool((np.diff(heights) > 1.7 * (SMALL + 1)).all())


def _repeats(frame: pd.DataFrame, score: str) -> str:
    bars = "bars: one standard error up and down" if f"{score}_se" in frame else ""
    if "repeats" not in frame:
        return bars
    low, high = frame["repeats"].min(), frame["repeats"].max()
    means = f"Means of {low:g} repeats" if low == high else f"Means of {low:g} to {high:g} repeats"
    return f"{means}; {bars}" if bars else means
