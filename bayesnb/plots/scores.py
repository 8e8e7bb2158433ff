"""Figures of scores: stated against observed, and how scores fall as rows come."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb.evaluation.estimates import READINGS, joined_names
from bayesnb.plots.style import COLOURS, GREY, MARKS, SMALL, axes, dot, extent, header, light_grid, look, require
from bayesnb.plots.text import columns, font, labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_SMALLEST, _LARGEST = 20.0, 120.0
_ASIDE = 1.05
_UNITS = {
    "brier": "Brier score (0 best, 2 worst)",
    "log_loss": "log loss (nats a row)",
    "log_loss_clipped": "log loss, clipped at 1e-15 (nats a row)",
    "accuracy": "accuracy (share of rows)",
    "ece": "expected calibration error (share of rows)",
    "impossible_rows": "impossible rows (number)",
    "undefined_rows": "undefined rows (number)",
}


def reliability(table: pd.DataFrame | Mapping[str, pd.DataFrame], ax: Axes | None = None) -> Axes:
    """Stated confidence against observed accuracy.

    Read which side of the diagonal a dot is on: below it labels are right less often than was stated.

    Parameters
    ----------
    table : DataFrame, or dict of str to DataFrame
        One row a bin of the top probability, with columns lower, upper, count, confidence (mean of the stated
        probabilities) and accuracy, as `bayesnb.evaluation.reliability` returns it. Empty bins are not drawn. A dict
        shows several by name, such as {"plain": ..., "weighted": ...}.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If there is no table, a column is missing, or no bin has a row.

    Notes
    -----
    Areas of the dots grow with the number of rows. Error bars are 95% intervals of Wilson for the accuracy in a bin,
    E. B. Wilson, J. Am. Stat. Assoc. 22 (1927). Dots below the diagonal are overconfident.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from bayesnb.evaluation import reliability
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> nb = bnb.GaussianNB().fit(X[::2], y[::2])
    >>> ax = bnb.plots.reliability(reliability(nb.predict_log_proba(X[1::2]), y[1::2], nb.classes_))
    >>> ax.get_ylabel()
    'observed accuracy (share of rows)'
    >>> figure = bnb.plots.detach(ax)
    """
    several = isinstance(table, Mapping)
    tables = {name: _filled(one, f"table[{name!r}]" if several else "table") for name, one in _named(table).items()}
    names = labels(tables, 26)
    ax = axes(ax, 5.0, 5.4)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    counts = [float(n) for one in tables.values() for n in one["count"]]
    for i, one in enumerate(tables.values()):
        _bins(ax, one, _area(one["count"].to_numpy(dtype=float), max(counts)), look(i)["color"])
    # A top probability is never low: no half of the axes for what cannot be.
    least = min(float(one["confidence"].min()) for one in tables.values())
    ax.set(xlim=(max(-0.03, min(0.9, least) - 0.06), 1.03), ylim=(-0.03, 1.03))
    ax.set_box_aspect(1)
    light_grid(ax, "both")
    ax.set_xlabel("stated confidence: mean top probability")
    ax.set_ylabel("observed accuracy (share of rows)")
    marks = [dot(names[name], **look(i)) for i, name in enumerate(tables)] if several else []
    for n in sorted({min(counts), max(counts)}):
        said, size = f"{n:,.12g} row{'' if n == 1 else 's'}", np.sqrt(_area(n, max(counts)))
        marks.append(dot(said, marker="o", color=GREY if several else look(0)["color"], markersize=size))
    totals = dict.fromkeys(f"{one['count'].sum():,.12g}" for one in tables.values())
    header(ax, [f"{' and '.join(totals)} rows; bars: 95% Wilson intervals"], marks)
    return ax


def _named(table: Any) -> Mapping[Any, Any]:
    if not isinstance(table, Mapping):
        return {"": table}
    if not table:
        raise ValueError("table holds no table; pass what bayesnb.evaluation.reliability returns, or a dict of them.")
    return table


def _filled(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The bins that have rows."""
    require(table, ("lower", "upper", "count", "confidence", "accuracy"), "bayesnb.evaluation.reliability", name)
    filled = table[table["count"] > 0]
    if not len(filled):
        raise ValueError(f"{name}: no bin has a row; score at least one row.")
    return filled


def _area(count: Any, largest: float) -> Any:
    return _SMALLEST + (_LARGEST - _SMALLEST) * count / largest


def _bins(ax: Axes, table: pd.DataFrame, area: np.ndarray, color: str) -> None:
    """A dot and an interval for each bin."""
    from scipy.stats import binomtest

    count, confidence, accuracy = (table[name].to_numpy(dtype=float) for name in ("count", "confidence", "accuracy"))
    wilson = [
        binomtest(round(a * n), max(1, round(n))).proportion_ci(0.95, method="wilson")
        for a, n in zip(accuracy, count, strict=True)
    ]
    ax.vlines(confidence, [w.low for w in wilson], [w.high for w in wilson], color=color, linewidth=1.0)
    ax.scatter(confidence, accuracy, s=area, color=color, edgecolors="white", linewidths=0.6, zorder=3)


def learning_curve(frame: pd.DataFrame, score: str = "brier", ax: Axes | None = None) -> Axes:
    """A score against the number of training rows, a line an estimate.

    Read where the lines part: estimates differ where rows are few, and come together as rows do.

    Parameters
    ----------
    frame : DataFrame
        Tidy, as `bayesnb.learning_curve` returns it: columns size (training rows a class), estimate, the score and,
        if there is one, its standard error, such as brier and brier_se; repeats is told if it is there. Estimates that
        say the same, by the column same_as if it is there, are one line, "mle = map".
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

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> curve = bnb.learning_curve(bnb.GaussianNB(), *load_iris(return_X_y=True), sizes=[3, 10], repeats=3)
    >>> ax = bnb.plots.learning_curve(curve)
    >>> ax.get_xlabel()
    'training rows a class (log scale)'
    >>> figure = bnb.plots.detach(ax)
    """
    require(frame, ("size", "estimate", score), "bayesnb.learning_curve")
    ax = axes(ax, 7.0, 4.6)
    frame = _one_line_each(frame)
    names = labels(frame["estimate"], 26)
    marks, ends, looks = [], [], _looks(list(names))
    for i, (estimate, name) in enumerate(names.items()):
        own = frame[frame["estimate"] == estimate].sort_values("size")
        size, value = own["size"].to_numpy(dtype=float), own[score].to_numpy(dtype=float)
        value = np.where(np.isfinite(value), value, np.nan)
        error = own[f"{score}_se"].to_numpy(dtype=float) if f"{score}_se" in own else None
        aside = _ASIDE ** ((i - (len(names) - 1) / 2) / len(names))  # or the bars would hide each other
        ax.plot(size, value, linewidth=1.4, markersize=4, label=name, **looks[estimate])
        if error is not None:
            ax.vlines(size * aside, value - error, value + error, color=looks[estimate]["color"], linewidth=0.8)
        if np.isfinite(value).any():
            marks.append(dot(name, linewidth=1.4, linestyle="-", **looks[estimate]))
        last = np.flatnonzero(np.isfinite(value))
        ends.append((size[last[-1]], value[last[-1]]) if last.size else (np.nan, np.nan))
    _sizes(ax, frame["size"].to_numpy(dtype=float))
    ax.set_ylabel(_UNITS.get(score, score.replace("_", " ")))
    light_grid(ax, "y")
    infinite = frame[~np.isfinite(frame[score].to_numpy(dtype=float))]["estimate"].value_counts(sort=False)
    points = ", ".join(f"{n} of {names[estimate]}" for estimate, n in infinite.items())
    lines = [_repeats(frame, score), f"Without a point, since not finite: {points}" if points else ""]
    direct = _apart(ax, ends, frame["size"].max())
    if direct:
        for (estimate, name), end in zip(names.items(), ends, strict=True):
            ax.annotate(
                name,
                (1, end[1]),
                xycoords=ax.get_yaxis_transform(),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL + 1,
                color=looks[estimate]["color"],
                annotation_clip=False,
                **font([name]),
            )
    header(ax, lines, [] if direct else marks)
    return ax


def _one_line_each(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the estimates that say the same as one before them, which has all their names."""
    if "same_as" not in frame:
        return frame
    once = frame.drop_duplicates("estimate")
    names = joined_names(once["estimate"], once["same_as"])
    first = frame[frame["same_as"] == ""]
    return first.assign(estimate=first["estimate"].map(names))


def _looks(estimates: list[Any]) -> dict[Any, dict[str, Any]]:
    """Colour and mark of each estimate: those of the four readings are the same whatever others there are."""
    taken = [next((i for i, own in enumerate(READINGS) if own in str(e).split(" = ")), None) for e in estimates]
    free = (i for i in count(len(READINGS)))
    places = [next(free) if i is None else i for i in taken]
    mark = [MARKS[(i + i // len(COLOURS)) % len(MARKS)] for i in places]
    return {e: {**look(i), "marker": m} for e, i, m in zip(estimates, places, mark, strict=True)}


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
