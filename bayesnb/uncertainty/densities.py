"""What was learned of densities of any shape: where they are cut, and how high they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from bayesnb._util.arguments import require_integer, require_probability, require_seed
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding
from bayesnb.fitted import Classifier, require_posterior
from bayesnb.uncertainty.draws import draw_parameters, kept, site_names
from bayesnb.uncertainty.proper import require_proper

if TYPE_CHECKING:
    import pandas as pd


def cut_table(nb: Classifier, features: Iterable[Any] | None = None) -> pd.DataFrame:
    """Where the densities of binned columns are cut: the posterior probability of each cut.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        With binned columns: `BinnedNB`, or `MixedNB`.
    features : column names or indices, optional
        Default: all binned columns.

    Returns
    -------
    DataFrame
        One row an edge between two cells.

        feature
            str
        edge
            float
        probability : float
            That there is a cut, all binnings averaged. It is spread over edges that are near each other where the rows
            do not tell which: their sum is the expected number of cuts there.
        most_probable : bool
            Whether it is a cut of the one most probable binning.

    Raises
    ------
    ValueError
        If there is no binned column, or `features` names another.

    Examples
    --------
    >>> from bayesnb import BinnedNB, cut_table
    >>> X = [[i] for i in range(20)]
    >>> nb = BinnedNB().fit(X, ["low"] * 10 + ["high"] * 10)
    >>> cut_table(nb).round(2).loc[8:10]
       feature  edge  probability  most_probable
    8        0   8.5         0.13          False
    9        0   9.5         0.66           True
    10       0  10.5         0.13          False
    """
    import pandas as pd

    fitted = require_posterior(nb, "cut_table")
    blocks = list(_binned(fitted.encoding, features, "cut_table"))
    require_proper(fitted.encoding, fitted.posterior)
    parts = []
    for block in blocks:
        probability, best = (np.asarray(v) for v in _cuts(fitted.posterior.blocks[block.number]))
        for name, own, edges in block.columns:
            inner = slice(own.start + 1, own.stop)
            parts.append(
                pd.DataFrame(
                    {
                        "feature": name,
                        "edge": edges,
                        "probability": np.minimum(probability[inner], 1.0),
                        "most_probable": best[inner],
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def density_table(
    nb: Classifier,
    features: Iterable[Any] | None = None,
    prob: float = 0.9,
    draws: int = 1000,
    seed: int = 0,
    bars: int | None = None,
) -> pd.DataFrame:
    """How high the densities of binned columns are in each cell, all binnings averaged, with intervals.

    Parameters
    ----------
    nb, features
        As for `cut_table`.
    prob : float, default 0.9
        Posterior probability of the interval of each cell.
    draws : int
        Of cuts and heights together, which the intervals are quantiles of.
    seed : int
    bars : int, optional
        Join neighbouring cells until each is at least so small a part of the range between the outermost edges wide.

    Returns
    -------
    DataFrame
        One row a class, feature and cell.

        class
            label
        feature
            str
        low, high : float
            Ends of the cell, in (low, high]; infinite of the outer ones.
        count : float
            Weight of the rows in it.
        probability : float
            Posterior mean of P(cell | class).
        density, lower, upper : float
            Posterior mean of the density, per unit of the feature, and its interval, where the cell is finite: else
            NaN.

    Raises
    ------
    ImproperPosteriorError
        If the prior's concentration is zero.
    ValueError
        As `cut_table`; if `prob` is not in (0, 1).

    Notes
    -----
    Intervals are of one cell each, not of the whole curve. They say what the rows leave unknown of a density that is
    piecewise constant on the cells.

    Examples
    --------
    >>> from bayesnb import BinnedNB, density_table
    >>> nb = BinnedNB(edges=[[0, 1, 2, 3]]).fit([[0.1], [0.5], [0.7], [2.5]], ["a", "a", "a", "b"])
    >>> columns = ["class", "low", "high", "count", "density", "lower", "upper"]
    >>> density_table(nb)[columns].round(2)
      class  low  high  count  density  lower  upper
    0     a -inf   0.0    0.0      NaN    NaN    NaN
    1     a  0.0   1.0    3.0     0.29   0.18   0.52
    2     a  1.0   2.0    0.0     0.19   0.04   0.31
    3     a  2.0   3.0    0.0     0.16   0.03   0.25
    4     a  3.0   inf    0.0      NaN    NaN    NaN
    5     b -inf   0.0    0.0      NaN    NaN    NaN
    6     b  0.0   1.0    0.0     0.18   0.03   0.30
    7     b  1.0   2.0    0.0     0.20   0.06   0.31
    8     b  2.0   3.0    1.0     0.23   0.12   0.39
    9     b  3.0   inf    0.0      NaN    NaN    NaN
    """
    import pandas as pd

    require_probability("prob", prob)
    require_integer("draws", draws)
    require_seed(seed)
    if bars is not None:
        require_integer("bars", bars)
    fitted = require_posterior(nb, "density_table")
    encoding, posterior = fitted.encoding, fitted.posterior
    blocks = list(_binned(encoding, features, "density_table"))
    require_proper(encoding, posterior)
    names = [name for block in blocks for name, _, _ in block.columns]
    at = encoding.positions(names)
    drawn, sites, masks = (
        draw_parameters(encoding, posterior, draws, seed, at),
        site_names(encoding, posterior),
        kept(encoding, at),
    )
    tails, parts = ((1 - prob) / 2, (1 + prob) / 2), []
    for block in blocks:
        (theta,) = (drawn[site] for site in sites[block.number].values())
        keep = np.flatnonzero(masks[block.number])
        mean, counts = np.exp(_log_mean(posterior.blocks[block.number])), fitted.statistics.blocks[block.number].count
        for name, own, edges in block.columns:
            first = _joined(edges, bars)
            ends = np.concatenate([[-np.inf], edges[first[1:] - 1], [np.inf]])
            width = np.where(np.isfinite(np.diff(ends)), np.diff(ends), np.nan)
            cells = np.searchsorted(keep, np.arange(own.start, own.stop))
            lower, upper = np.quantile(np.add.reduceat(theta[..., cells], first, axis=2), tails, axis=0)
            own_mean, own_count = (np.add.reduceat(v[:, own], first, axis=1) for v in (mean, counts))
            for c, label in enumerate(encoding.classes.values):
                parts.append(
                    pd.DataFrame(
                        {
                            "class": label,
                            "feature": name,
                            "low": ends[:-1],
                            "high": ends[1:],
                            "count": own_count[c],
                            "probability": own_mean[c],
                            "density": own_mean[c] / width,
                            "lower": lower[c] / width,
                            "upper": upper[c] / width,
                        }
                    )
                )
    return pd.concat(parts, ignore_index=True)


class _Block(NamedTuple):
    """A block of binned columns: its number, and of each column its name, its cells among all, and their edges."""

    number: int
    columns: list[tuple[str, slice, np.ndarray]]


def _binned(encoding: Encoding, features: Iterable[Any] | None, who: str) -> Iterator[_Block]:
    there = {j for block in encoding.blocks if block.kind == "binned" for j in block.index}
    if not there:
        raise ValueError(f"{who}: there is no binned column; BinnedNB has them, and MixedNB(numbers='binned').")
    wanted = there if features is None else encoding.positions(features)
    if others := sorted(wanted - there):
        raise ValueError(f"{who}: features names column {encoding.feature_names[others[0]]!r}, which is not binned.")
    for b, block in enumerate(encoding.blocks):
        if block.kind != "binned":
            continue
        of: Any = block
        stop = np.cumsum(of.sizes())
        each = zip(of.index, of.names, stop - of.sizes(), stop, of.edges, strict=True)
        own = [
            (name, slice(int(a), int(z)), np.zeros(0) if edges is None else edges)
            for j, name, a, z, edges in each
            if j in wanted
        ]
        if own:
            yield _Block(b, own)


def _joined(edges: np.ndarray, bars: int | None) -> np.ndarray:
    """The first cells of those that stay, or are joined."""
    if bars is None or len(edges) < 2:
        return np.arange(len(edges) + 1)
    least, first = (edges[-1] - edges[0]) / bars, [0, 1]
    for i in range(1, len(edges) - 1):
        enough = edges[i] - edges[first[-1] - 1] >= least and edges[-1] - edges[i] >= least
        if enough:
            first.append(i + 1)
    return np.array([*first, len(edges)])


@float64
def _cuts(family: Any) -> Any:
    return _cuts_of(family)


@jax.jit
def _cuts_of(family: Any) -> Any:
    return family.cut_probability(), family.best_cuts()


@float64
def _log_mean(family: Any) -> np.ndarray:
    return np.asarray(jax.jit(lambda own: own.mean().log_theta)(family))


__all__ = ["cut_table", "density_table"]
