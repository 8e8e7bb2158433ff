"""Figure of the strength of a prior: what others than the chosen one would cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import require_result
from bayesnb.plots.style import COLOURS, MARKS, axes, dot, header, light_grid
from bayesnb.plots.text import labels
from bayesnb.selection import Tuned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OF = {"loo": "Leave-one-out log probability of the labels", "evidence": "Log evidence"}


def alpha_path(tuned: Tuned | Mapping[str, Tuned], ax: Axes | None = None) -> Axes:
    """How much worse other strengths of the prior are than the one that was chosen.

    Read how steeply a line falls from its star: within a nat or two of the best, the data hardly tell one strength from
    another. Two criteria that have their stars far apart disagree about what the prior is for.

    Parameters
    ----------
    tuned : Tuned, or dict of str to Tuned
        As `tune_alpha` returns it; a dict shows several by name, such as those by "loo" and by "evidence".
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If no evaluation is finite.

    Notes
    -----
    Every evaluation has a mark at its value. Lines only join the marks; of several hyperparameters there are none, as
    in each evaluation the others have values of their own. The vertical scale is linear down to 1 nat below the best,
    and logarithmic beyond. The best one is a star, or, at the end of the interval that was searched, a triangle that
    points beyond (a diamond, if that is all that was tried).

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X = X > X.mean(axis=0)
    >>> tuned = bnb.tune_alpha(bnb.BernoulliNB().fit(X, y), X, y, by="evidence")
    >>> ax = bnb.plots.alpha_path(tuned)
    >>> ax.get_xlabel(), ax.get_xscale()
    ('alpha (log scale)', 'log')
    >>> figure = bnb.plots.detach(ax)
    """
    several = isinstance(tuned, Mapping)
    results: dict[Any, Tuned] = dict(tuned) if isinstance(tuned, Mapping) else {"": tuned}
    if not results:
        raise ValueError("tuned holds nothing; pass what bayesnb.tune_alpha returns, or a dict of it by name.")
    paths = [_finite(one, f"tuned[{name!r}]" if several else "tuned") for name, one in results.items()]
    shown = labels(results, 26)
    ax = axes(ax, 6.4, 4.4)
    marks, lines, strengths, worst, i = [], [], [], 0.0, 0
    for (key, one), path in zip(results.items(), paths, strict=True):
        short = path["objective"].max() - path["objective"].to_numpy()
        worst = max(worst, float(short.max()))
        said = f"{shown[key]}: " if several else ""
        for name, best in one.values.items():
            colour, mark, value = COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)], path[name].to_numpy()
            ax.plot(value, short, mark, color=colour, markersize=4.5, alpha=0.7)
            if len(one.values) == 1:
                way = np.argsort(value, kind="stable")
                ax.plot(value[way], short[way], color=colour, linewidth=1.1, alpha=0.6)
            end = name in one.boundary
            style: dict[str, Any] = {"color": colour, "markeredgecolor": "black", "markeredgewidth": 0.7}
            style |= {"marker": _beyond(best, value), "markersize": 9} if end else {"marker": "*", "markersize": 13}
            ax.plot(best, 0.0, zorder=4, **style)
            if len(one.values) > 1:
                marks.append(dot(f"{said}{name}", color=colour, marker=mark, markersize=4.5))
            marks.append(dot(f"{said}{name} = {best:.4g}{', at the end of the interval' if end else ''}", **style))
            strengths.append(value)
            i += 1
        lines.append(f"{said}{_OF[one.by]}: {path['objective'].max():.3f} nats at best")
        if one.boundary:
            lines.append(f"{said}The data do not bound what lies at the end of the interval")
        if len(path) < len(one.path):
            lines.append(f"{said}Without a mark, since not finite: {len(one.path) - len(path)}")
    _strengths(ax, np.concatenate(strengths))
    ax.set_yscale("symlog", linthresh=1.0)
    ax.set_ylim(max(1.0, worst) * 1.5, -0.15)
    ax.yaxis.set_major_formatter("{x:,.12g}")
    names = list(dict.fromkeys(name for one in results.values() for name in one.values))
    ax.set_xlabel("hyperparameter (log scale)" if len(names) > 1 else f"{names[0]} (log scale)")
    ax.set_ylabel("nats below the best")
    light_grid(ax, "both")
    header(ax, lines, marks)
    return ax


def _finite(tuned: Tuned, argument: str) -> Any:
    """Its evaluations that have a finite objective."""
    require_result(argument, tuned, Tuned, "bayesnb.tune_alpha")
    path = tuned.path[np.isfinite(tuned.path["objective"].to_numpy())]
    if not len(path):
        raise ValueError(f"{argument}: the objective is not finite at any strength of the prior.")
    return path


def _beyond(best: float, values: np.ndarray) -> str:
    """A triangle that points beyond the end of the interval; a diamond if nothing else was evaluated."""
    side = np.log(best) - np.log([values.min(), values.max()]).mean()
    return "D" if abs(side) < 1e-6 else "<" if side < 0 else ">"


def _strengths(ax: Axes, values: np.ndarray) -> None:
    """A logarithmic axis with room around the values, and names of powers of ten or else of both ends."""
    from matplotlib.ticker import NullFormatter

    low, high = np.log10(values.min()), np.log10(values.max())
    margin = max(0.06 * (high - low), 0.01)
    ax.set_xlim(10 ** (low - margin), 10 ** (high + margin))
    ax.set_xscale("log")
    ax.xaxis.set_minor_formatter(NullFormatter())
    if high - low < 1:
        ends = [f"{end:.4g}" for end in (values.min(), values.max())]
        ax.set_xticks([float(end) for end in dict.fromkeys(ends)], labels=list(dict.fromkeys(ends)))


__all__ = ["alpha_path"]
