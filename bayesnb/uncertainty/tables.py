"""Tables of what was learned: parameters, densities of binned columns, and contexts of context-tree tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import compress, product
from typing import Any

import jax
import numpy as np
import pandas as pd

from bayesnb._util.arguments import Seed, read_seed, require_integer, require_probability, shown
from bayesnb._util.arrays import MOST_NUMBERS, require_memory
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding
from bayesnb.families import Binned, ContextTree, LevelCounts
from bayesnb.families.arrays import Array, kernel, pytree, static, xp
from bayesnb.fitted.scoring import plug_in
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import PLUGGED_IN, NaiveBayes, Statistics
from bayesnb.uncertainty.draws import (
    CLASS,
    CLASS_PROB,
    draw_by_rows,
    draw_parameters,
    feature_masks,
    require_proper,
    site_names,
)
from bayesnb.uncertainty.given_draws import read_parameters
from bayesnb.uncertainty.row_variates import TrainingData
from bayesnb.uncertainty.score_moments import mixture_quantiles

PLACE = ["code", "block", "kind", "position"]
"""Index of the class, block (-1: the classes), name of the parameter in its family, position on the last axis."""
# Estimates of one parameter by name, each (C, K), and its "marginal", a tuple of components.
Summary = dict[str, Any]
_A_ROW = 40  # numbers in memory
_DRAWS_OF_ROWS = 4000

# -- parameters ----------------------------------------------------------------------------------


def parameter_table(
    nb: Classifier,
    prob: float = 0.9,
    features: Iterable[object] | None = None,
    *,
    draws: object = None,
    rows: TrainingData | None = None,
    groups: object = None,
) -> pd.DataFrame:
    """Estimates, posterior sd and equal-tailed interval of every parameter of a fitted classifier.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose parameters are described.
    prob : float, default 0.9
        Posterior probability of the interval from `lower` to `upper`, in (0, 1).
    features : iterable of column names or indices, optional
        Describe the parameters of these columns only; for a multinomial, the probabilities of these words. Default:
        all columns, and the class probabilities.
    draws : result of `sample_latent`, `run_nuts`, `to_arviz` or `posterior_draws`, optional
        Draws that are described in place of the exact posterior. The table then has the columns class, feature, level,
        mean, sd, lower and upper.
    rows : tuple (X, y) or (X, y, sample_weight), optional
        Rows that `nb` has counted, all of them: 4,000 draws are described that vary as the rows do, see
        `posterior_draws`. Probabilities of levels have the same intervals, up to noise; those of numbers and words are
        wider if tails are heavy, counts are overdispersed, or words come in bursts.
    groups : array-like, optional
        Group of each training row, such as a patient, whose rows vary together: intervals are wider.

    Returns
    -------
    DataFrame
        One row for each parameter; sorted by class, then by the column of X. The class probabilities come first, and
        are left out if `features` is given.

        class
            Label.
        feature : str
            Name of the column, or "(class)" in the rows of the class probabilities.
        level
            Level whose probability given the class is the parameter; "absent" or "present" for Bernoulli features; the
            class itself in the rows of the class probabilities. For a feature without levels the name of the parameter:
            "theta" (probability of a word of a multinomial), "mu", "sigma2", "rate".
        count : float
            Weight of the cells that were counted: n_l of a level, otherwise the number of observed cells.
        mle, map, mean : float
            Maximum likelihood, posterior mode on the parameter's own scale (on the simplex; jointly in μ and
            σ²), posterior mean. NaN where the estimate does not exist.
        sd : float
            Posterior standard deviation, in the unit of the parameter; inf if the variance is infinite.
        lower, upper : float
            Quantiles (1 ∓ prob)/2 of the parameter's marginal posterior.
        prior_weight : float
            Weight of the prior in the posterior, prior sample size / (prior sample size + n): α₀/(α₀ + n) with
            totals over the group of levels, κ/(κ + n) for μ, b/(b + n) for a Poisson rate. For these parameters the
            posterior mean is prior_weight · prior mean + (1 - prior_weight) · MLE. For σ² the prior's part of the
            posterior sum of squares, b/b': near 1 if the data vary much less than the prior expects. 1 for known
            class probabilities.

    Raises
    ------
    ImproperPosteriorError
        If a level with concentration 0 has no count; the message names class and feature.
    ValueError
        If `prob` is not in (0, 1), or `features` is empty or names a column that X does not have.

    Notes
    -----
    With the posteriors of `docs/derivations/conjugate.md` the marginals are θ_l ~ Beta(α'_l, α'₀ - α'_l), μ ~ Student-t
    with 2a' degrees of freedom at m' with scale² b'/(a'κ'), σ² ~ InverseGamma(a', b') and λ ~ Gamma(a', b'). An
    interval describes the uncertainty about a parameter *if naive Bayes holds*; it becomes narrower with more rows,
    whether or not the model is right.

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> from bayesnb import parameter_table
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> parameter_table(nb, features=[0])[["class", "level", "count", "mle", "mean"]]
      class level  count  mle      mean
    0    in  rain    1.0  1.0  0.666667
    1    in   sun    0.0  0.0  0.333333
    2   out  rain    0.0  0.0  0.250000
    3   out   sun    2.0  1.0  0.750000
    """
    fitted = require_posterior(nb, "parameter_table", draws)
    if rows is not None or groups is not None:
        draws = draw_by_rows(fitted, _DRAWS_OF_ROWS, 0, rows, groups)
    if features is not None:
        features = fitted.encoding.positions(features)
    masks, sites = feature_masks(fitted.encoding, features), site_names(fitted.encoding, fitted.prior)
    n_rows = len(fitted.encoding.classes) * sum(len(of) * mask.sum() for of, mask in zip(sites, masks, strict=True))
    advice = "Name fewer columns in features=, or group levels."
    require_memory(_A_ROW * n_rows, f"The table of {n_rows:,} parameters", advice, MOST_NUMBERS)
    table = locate_parameters(fitted, prob, features) if draws is None else locate_draws(fitted, draws, prob, features)
    return table.drop(columns=PLACE)


def locate_parameters(fitted: Fitted, prob: float, features: Iterable[object] | None = None) -> pd.DataFrame:
    """Return the table of `parameter_table` with the columns `PLACE`, the places of parameters in the posterior."""
    require_probability("prob", prob)
    require_proper(fitted.encoding, fitted.posterior)

    def describe(summary: Summary) -> Summary:
        """Estimates, sd, interval and prior weight (C, K) of a parameter."""
        columns = {name: summary[name] for name in ("count", *PLUGGED_IN)}
        columns |= {"sd": np.sqrt(summary["variance"]), **_interval(summary, prob)}
        return {**columns, "prior_weight": summary["prior_weight"]}

    return locate(fitted.encoding, features, summarize(fitted.prior, fitted.statistics), describe)


def locate_draws(fitted: Fitted, draws: object, prob: float, features: Iterable[object] | None = None) -> pd.DataFrame:
    """Return mean, sd and interval of each parameter over draws, with the columns `PLACE`."""
    require_probability("prob", prob)
    values = read_parameters(fitted, draws).values
    sites = site_names(fitted.encoding, fitted.prior)
    of_blocks = [{name: values[site] for name, site in names.items()} for names in sites]

    def describe(drawn: np.ndarray) -> Summary:
        """Mean, sd and quantiles over the draws (S, C, K) of a parameter."""
        lower, upper = np.quantile(drawn, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
        return {"mean": drawn.mean(axis=0), "sd": drawn.std(axis=0, ddof=1), "lower": lower, "upper": upper}

    return locate(fitted.encoding, features, [{"theta": values[CLASS_PROB][:, None]}, *of_blocks], describe)


def locate(
    encoding: Encoding,
    features: Iterable[object] | None,
    parameters: Sequence[Mapping[str, object]],
    describe: Callable[[Any], Summary],
    is_described: Callable[[Hashable], bool] = lambda level: True,
) -> pd.DataFrame:
    """Return a row for each parameter, with the columns (C, K) that `describe` makes of the arrays of `parameters`.

    `parameters` are {parameter: arrays (…, C, K)} of the class probabilities, (…, 1, C), then of each block. Levels,
    and names of parameters without levels, that are not `is_described` are left out.
    """
    chosen = None if features is None else encoding.positions(features)
    if chosen is not None and not chosen:
        raise ValueError("features names no column; pass one or more, by name or by index.")
    classes, parts = encoding.classes, []

    def add(arrays: Any, kept: Any, feature: Sequence[str], level: Sequence[Hashable], **columns: Any) -> None:
        """Add the rows of one parameter at the positions `kept` of the last axis, with their names and `columns`."""
        shape = np.broadcast_shapes(*map(np.shape, jax.tree.leaves(arrays)))
        values = columns | describe(jax.tree.map(lambda array: np.broadcast_to(array, shape)[..., kept], arrays))
        shape = values["mean"].shape
        rows = pd.DataFrame({name: np.broadcast_to(value, shape).ravel() for name, value in values.items()})
        times = len(rows) // len(feature)
        rows.insert(1, "feature", list(feature) * times)
        rows.insert(2, "level", pd.Series(list(level) * times, dtype=object))
        parts.append(rows)

    label = np.arange(len(classes))
    if chosen is None:
        place = {"class": label, "code": label, "block": -1, "kind": "theta", "position": label, "column": -1}
        add(parameters[0]["theta"], slice(None), [CLASS] * len(label), classes.values, **place, order=label)
    masks = feature_masks(encoding, chosen)
    for b, (columns, of_block, mask) in enumerate(zip(encoding.blocks, parameters[1:], masks, strict=True)):
        within, levels = columns.axis()
        positions = np.flatnonzero(mask)
        for p, (kind, arrays) in enumerate(of_block.items()):
            level = [kind] * len(positions) if levels is None else [levels[k] for k in positions.tolist()]
            described = np.fromiter(map(is_described, level), bool)
            if not described.any():
                continue
            kept, level = positions[described], list(compress(level, described))
            names = [columns.names[j] for j in within[kept]]
            place = {"class": label[:, None], "code": label[:, None], "block": b, "kind": kind, "position": kept}
            order = {"column": np.asarray(columns.index)[within[kept]], "order": len(of_block) * kept + p}
            add(arrays, kept, names, level, **place, **order)
    if not parts:
        column = shown(encoding.feature_names[min(chosen or {0})])
        raise ValueError(
            f"features: {column} has no parameters, as the structure has left it out, it holds exposures, or no row "
            "had a value of it. Choose other columns."
        )
    table = pd.concat(parts, ignore_index=True)
    # Class probabilities stand first, then parameters by class, column, and level or parameter.
    table = table.iloc[np.lexsort((table["order"], table["column"], table["code"], table["column"] >= 0))]
    table = table.drop(columns=["order", "column"]).reset_index(drop=True)
    return table.assign(**{"class": classes.array()[table["code"]]})


@pytree
class Component:
    """A component of a mixture: its weight, and a distribution of `scipy.stats`."""

    weight: float | Array
    arguments: Mapping[str, float | Array]
    distribution: str = static()


@float64
@kernel
def summarize(prior: NaiveBayes, statistics: Statistics) -> tuple[dict[str, Summary], ...]:
    """Return {parameter: summary} of the class probabilities, then of each block, under the posterior."""
    families = (prior.class_prior, *prior.blocks)
    counts = (LevelCounts(statistics.class_count[None]), *statistics.blocks)
    return tuple(map(summarize_family, families, counts))


def summarize_family(prior: Any, statistics: Any) -> dict[str, Summary]:
    """Return {parameter: summary} of one family: counts, estimates, variance, prior weight, posterior marginals."""
    posterior = prior.update(statistics)
    mle = prior.improper().update(statistics).mean().parameters()
    mode, mean, variance = posterior.mode().parameters(), posterior.mean().parameters(), posterior.variance()
    before, after = prior.pseudo_count(), posterior.pseudo_count()
    components = [(weight, family.marginals()) for weight, family in posterior.components()]
    return {
        name: {
            "count": statistics.count,
            "mle": mle[name],
            "map": mode[name],
            "mean": mean[name],
            "variance": variance[name],
            "prior_weight": xp.where(xp.isinf(after[name]), 1.0, before[name] / after[name]),
            "marginal": tuple(Component(weight, part[name][1], part[name][0]) for weight, part in components),
        }
        for name in variance
    }


def _interval(summary: Summary, prob: float) -> Summary:
    """Return lower and upper (C, K) quantiles (1 ∓ prob)/2 of the marginals; the mean where the variance is 0."""
    mean, marginal = summary["mean"], summary["marginal"]
    arguments = [v for part in marginal for v in (part.weight, *part.arguments.values())]
    table = pd.DataFrame({i: np.broadcast_to(v, mean.shape).ravel() for i, v in enumerate(arguments)})
    # Many words share few counts, and quantiles take long: each is computed once.
    index = table.groupby(list(table), sort=False, dropna=False).ngroup().to_numpy().reshape(mean.shape)
    distinct = iter(table.drop_duplicates().to_numpy().T)
    components = [(next(distinct), part, [next(distinct) for _ in part.arguments]) for part in marginal]
    ends = {"lower": (1 - prob) / 2, "upper": (1 + prob) / 2}
    is_known = summary["variance"] == 0
    return {name: np.where(is_known, mean, _quantiles(components, q)[index]) for name, q in ends.items()}


def _quantiles(components: list[tuple[np.ndarray, Component, list[np.ndarray]]], q: float) -> np.ndarray:
    """Compute (M,) quantiles q of mixtures of `scipy.stats` components with weights (M,) and arguments (M,)."""
    from scipy import stats

    def each(method: str, x: object, at: slice | np.ndarray) -> np.ndarray:
        """Return (K, m) values of `method` ("ppf" or "cdf") at x by each component, for the mixtures at index `at`."""
        values_of_parts = (
            getattr(getattr(stats, part.distribution), method)(
                x, **dict(zip(part.arguments, [v[at] for v in values], strict=True))
            )
            for _, part, values in components
        )
        return np.stack(list(values_of_parts))

    ends, weight = each("ppf", q, slice(None)), np.stack([weight for weight, _, _ in components])
    return mixture_quantiles(weight, ends, lambda x, at: each("cdf", x, at), np.full(len(weight[0]), q))


# -- densities of binned columns -----------------------------------------------------------------


def cut_table(nb: Classifier, features: Iterable[object] | None = None) -> pd.DataFrame:
    """Posterior probability of each cut of the densities of binned columns.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        A classifier with binned columns: `BinnedNB`, or `MixedNB`.
    features : column names or indices, optional
        Binned columns to describe. Default: all of them.

    Returns
    -------
    DataFrame
        One row for each edge between two cells.

        feature : str
            Name of the column.
        edge : float
            Boundary between the two cells.
        probability : float
            Probability of a cut at the edge, averaged over all binnings. If the rows do not determine which of several
            neighbouring edges has a cut, each has a part of the probability; the sum is the expected number of cuts at
            these edges.
        most_probable : bool
            Whether the most probable binning has a cut at the edge.

    Raises
    ------
    ValueError
        If no column is binned, or `features` names a column that is not.

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
    fitted = require_posterior(nb, "cut_table")
    columns = _binned(fitted, features, "cut_table")
    cuts = {b: _cut_probabilities(fitted.posterior.blocks[b]) for b in {b for b, *_ in columns}}
    parts = []
    for b, name, cells, edges in columns:
        probability, best = (values[cells][1:] for values in cuts[b])
        cut = {"feature": name, "edge": edges, "probability": np.minimum(probability, 1.0), "most_probable": best}
        parts.append(pd.DataFrame(cut))
    return pd.concat(parts, ignore_index=True)


def density_table(
    nb: Classifier,
    features: Iterable[object] | None = None,
    prob: float = 0.9,
    draws: int = 1000,
    seed: Seed = 0,
    bars: int | None = None,
) -> pd.DataFrame:
    """Posterior mean and interval of the densities of binned columns in each cell, averaged over all binnings.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        A classifier with binned columns: `BinnedNB`, or `MixedNB`.
    features : column names or indices, optional
        Binned columns to describe. Default: all of them.
    prob : float, default 0.9
        Posterior probability of the interval of each cell.
    draws : int
        Number of draws of cuts and heights together; the intervals are quantiles of them.
    seed : int, JAX key, RandomState or Generator
        The same seed gives the same draws.
    bars : int, optional
        Join neighbouring cells until each is at least 1/bars of the range between the outermost edges wide.

    Returns
    -------
    DataFrame
        One row for each class, feature and cell.

        class
            Label.
        feature : str
            Name of the column.
        low, high : float
            Ends of the cell (low, high]; the outer cells have infinite ends.
        count : float
            Weight of the rows in the cell.
        probability : float
            Posterior mean of P(cell | class).
        density, lower, upper : float
            Posterior mean of the density, per unit of the feature, and its interval; NaN where an end is infinite.

    Raises
    ------
    ImproperPosteriorError
        If the prior's concentration is zero.
    ValueError
        If no column is binned, or `features` names a column that is not; if `prob` is not in (0, 1).

    Notes
    -----
    Each interval is that of one cell, not of the whole curve. It describes the uncertainty about a density that is
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
    require_probability("prob", prob)
    require_integer("draws", draws)
    seed = read_seed(seed)
    if bars is not None:
        require_integer("bars", bars)
    fitted = require_posterior(nb, "density_table")
    encoding, posterior = fitted.encoding, fitted.posterior
    columns = _binned(fitted, features, "density_table")
    chosen = encoding.positions(name for _, name, _, _ in columns)
    drawn = draw_parameters(encoding, posterior, draws, seed, chosen)
    sites, masks = site_names(encoding, posterior), feature_masks(encoding, chosen)
    means = {b: np.exp(plug_in(posterior.blocks[b]).log_theta) for b in {b for b, *_ in columns}}
    tails, classes, parts = ((1 - prob) / 2, (1 + prob) / 2), encoding.classes.array(), []
    for b, name, cells, edges in columns:
        (site,) = sites[b].values()
        is_of_column = np.zeros(len(masks[b]), bool)
        is_of_column[cells] = True
        first = _first_cells(edges, bars)
        ends = np.concatenate([[-np.inf], edges[first[1:] - 1], [np.inf]])
        width = np.where(np.isfinite(np.diff(ends)), np.diff(ends), np.nan)
        theta = drawn[site][..., is_of_column[masks[b]]]
        tables = fitted.statistics.blocks[b].count[:, cells], means[b][:, cells], theta
        count, mean, theta = (np.add.reduceat(table, first, axis=-1) for table in tables)
        lower, upper = np.quantile(theta, tails, axis=0) / width
        values = {"low": ends[:-1], "high": ends[1:], "count": count, "probability": mean, "density": mean / width}
        values |= {"lower": lower, "upper": upper}
        place = {"class": np.repeat(classes, len(first)), "feature": name}
        parts.append(pd.DataFrame(place | {key: np.broadcast_to(v, mean.shape).ravel() for key, v in values.items()}))
    return pd.concat(parts, ignore_index=True)


def _binned(fitted: Fitted, features: Iterable[object] | None, who: str) -> list[tuple[int, str, slice, np.ndarray]]:
    """Return (block number, name, cells on the last axis, edges) of each binned column that `features` names.

    Raises ValueError, with the name `who` of the function, if a chosen feature is not binned.
    """
    encoding = fitted.encoding
    binned: dict[int, Any] = {b: block for b, block in enumerate(encoding.blocks) if block.kind == "binned"}
    if not binned:
        raise ValueError(f"{who}: the classifier has no binned column. Use BinnedNB or MixedNB(numbers='binned').")
    known = {j for block in binned.values() for j in block.index}
    wanted = known if features is None else encoding.positions(features)
    if others := sorted(wanted - known):
        raise ValueError(f"{who}: features names column {encoding.feature_names[others[0]]!r}, which is not binned.")
    require_proper(encoding, fitted.posterior)
    columns = []
    for b, block in binned.items():
        ends = np.cumsum(block.sizes()).tolist()
        for j, name, start, end, edges in zip(block.index, block.names, [0, *ends], ends, block.edges, strict=False):
            if j in wanted:
                columns.append((b, name, slice(start, end), np.zeros(0) if edges is None else edges))
    return columns


def _first_cells(edges: np.ndarray, bars: int | None) -> np.ndarray:
    """Return the first cell of each bar: every cell, or cells joined to 1/`bars` of the range, open end cells alone."""
    if bars is None or len(edges) < 2:
        return np.arange(len(edges) + 1)
    least, first = (edges[-1] - edges[0]) / bars, [0, 1]
    for i in range(1, len(edges) - 1):
        if edges[i] - edges[first[-1] - 1] >= least and edges[-1] - edges[i] >= least:
            first.append(i + 1)
    return np.array([*first, len(edges)])


@float64
@kernel
def _cut_probabilities(family: Binned) -> tuple[jax.Array, jax.Array]:
    """Return (cells,) probabilities of a cut before each cell, and whether the most probable binning has that cut."""
    return family.cut_probability(), family.best_cuts()


# -- contexts of context-tree tables -------------------------------------------------------------


def context_table(nb: Classifier, features: Iterable[object] | None = None) -> pd.DataFrame:
    """Posterior probability that a column depends on its first parents, for each context: values of these parents.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        A classifier with context-tree tables: `KDB`, or `TAN`, `SPODE` and `NetworkNB` with `tables="context"`.
    features : column names or indices, optional
        Columns with parents to describe. Default: all of them.

    Returns
    -------
    DataFrame
        One row for each class, feature and context that occurs in rows of the class.

        class
            Label.
        feature : str
            Name of the column.
        parents : int
            Number of parents whose values the context has: 0 is the class alone.
        context : str
            Values of these parents.
        rows : float
            Weight of the rows of the class in this context in which the feature is observed.
        reached : float
            Posterior probability that the feature's distribution in this context depends on all these parents.
        last : float
            Posterior probability that it depends on these parents and on no further one, so that these rows share one
            distribution.

    Raises
    ------
    ValueError
        If `nb` has no such tables, or `features` names a column without them.

    Notes
    -----
    The probabilities are averages over all prunings of the trees of contexts, given the network.

    Examples
    --------
    >>> from bayesnb import NetworkNB, context_table
    >>> X = [["sun", "hot"], ["rain", "cold"]] * 5
    >>> nb = NetworkNB({1: 0}, tables="context").fit(X, ["in"] * 10)
    >>> context_table(nb)[["context", "rows", "last"]].round(2)
      context  rows  last
    0          10.0   0.0
    1  0=rain   5.0   1.0
    2   0=sun   5.0   1.0
    """
    fitted = require_posterior(nb, "context_table")
    wanted = None if features is None else fitted.encoding.positions(features)
    classes = fitted.encoding.classes.array()
    parts = []
    blocks = zip(fitted.encoding.blocks, fitted.statistics.blocks, fitted.posterior.blocks, strict=True)
    for columns, statistics, family in blocks:
        if (network := columns.network) is None or not hasattr(family, "last_probability"):
            continue
        # Tables have an axis for each parent: rows, and for each number of parents P(these are the last that matter).
        tables, *last = map(network.tables, (statistics.count, *_last_probability(family)))
        for g, (child, *parents) in enumerate(network.nodes):
            column = network.base.index[child]
            if not parents or not tables[g].size or (wanted is not None and column not in wanted):
                continue
            names, values = [network.base.names[p] for p in parents], [network.parent_values(p) for p in parents]
            for depth in range(len(parents) + 1):
                # Axes are those of the class, the parents and the feature; `last` is the same along the further ones.
                further = tuple(range(1 + depth, tables[g].ndim))
                rows = tables[g].sum(axis=further).reshape(len(classes), -1)
                first: object = (..., *(0,) * len(further))
                probability = np.stack([table[g][first] for table in last]).reshape(len(last), len(classes), -1)
                label, context = np.nonzero(rows > 0)
                labels = [", ".join(map("{}={}".format, names, given)) for given in product(*values[:depth])]
                contexts = {
                    "class": classes[label],
                    "feature": network.names[g],
                    "parents": depth,
                    "context": np.array(labels, object)[context],
                    "rows": rows[label, context],
                    "reached": np.clip(probability[depth:].sum(axis=0), 0.0, 1.0)[label, context],
                    "last": probability[depth][label, context],
                }
                parts.append(pd.DataFrame(contexts))
    if not parts:
        raise ValueError(
            "context_table: these columns have no tables of contexts. Pass a KDB, or a TAN, SPODE or NetworkNB with "
            "tables='context', and in features= columns with parents."
        )
    table = pd.concat(parts, ignore_index=True)
    return table.sort_values(["feature", "class"], kind="stable", ignore_index=True)


@float64
@kernel
def _last_probability(family: ContextTree) -> jax.Array:
    """Return (D, C, L) probabilities that the context of each level has 0, 1, … D - 1 parents."""
    return family.last_probability()
