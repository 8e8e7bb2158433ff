"""How sure: every parameter with its estimates and its exact posterior interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb._util.arguments import require_probability
from bayesnb._util.precision import float64
from bayesnb.capabilities import require_capability
from bayesnb.encoding import Encoding
from bayesnb.families import LevelCounts, mixture_components
from bayesnb.families._pytree import pytree, static
from bayesnb.families.protocol import Parametric
from bayesnb.fitted import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.uncertainty.proper import CLASS, require_proper

if TYPE_CHECKING:
    import pandas as pd


def parameter_table(nb: Classifier, prob: float = 0.9) -> pd.DataFrame:
    """Every parameter of a fitted classifier: estimates, posterior sd and equal-tailed interval.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    prob : float, default 0.9
        Posterior probability of the interval from `lower` to `upper`, in (0, 1).

    Returns
    -------
    DataFrame
        One row a parameter, the class probabilities first; sorted by class, then by the column of X.

        class
            label
        feature : str
            Name of the column, or "(class)" in the rows of the class probabilities.
        level
            value
            The level whose probability given the class this is; "absent" or "present" for Bernoulli
            features; the class itself in the rows of the class probabilities. Where a feature has no levels
            the name of the parameter: "theta" (probability of a word of a multinomial), "mu", "sigma2",
            "rate".
        count : float
            Weight of the cells behind the row: n_l of a level, the number of observed cells elsewhere.
        mle, map, mean : float
            Maximum likelihood, posterior mode on the parameter's own scale (on the simplex; jointly in μ and
            σ²), posterior mean. NaN where the estimate does not exist.
        sd : float
            Posterior standard deviation, in the unit of the parameter; inf where it is not finite.
        lower, upper : float
            Quantiles (1 ∓ prob)/2 of the parameter's marginal posterior.
        prior_weight : float
            Share of the prior in what is known, prior sample size / (prior sample size + n): α₀/(α₀ + n) with
            totals over the group of levels, κ/(κ + n) for μ, b/(b + n) for a Poisson rate; for these the
            posterior mean is prior_weight · prior mean + (1 - prior_weight) · MLE. For σ² the prior's part in the
            sum of squares behind the cell, b/b': near 1 where the data spread much less than the prior has it. 1
            for known class probabilities.

    Raises
    ------
    ImproperPosteriorError
        If a zero concentration met a zero count, naming class and feature.
    ValueError
        If `prob` is not in (0, 1).

    Notes
    -----
    With the posteriors of `docs/derivations.md` the marginals are θ_l ~ Beta(α'_l, α'₀ - α'_l),
    μ ~ Student-t with 2a' degrees of freedom at m' with scale² b'/(a'κ'), σ² ~ InverseGamma(a', b') and
    λ ~ Gamma(a', b'). An interval says what the data leave unknown about a parameter *if naive Bayes
    holds*; it shrinks as rows come, whether or not the model is right.

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> from bayesnb import parameter_table
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> parameter_table(nb).query("feature == '0'")[["class", "level", "count", "mle", "mean"]]
      class level  count  mle      mean
    2    in  rain    1.0  1.0  0.666667
    3    in   sun    0.0  0.0  0.333333
    4   out  rain    0.0  0.0  0.250000
    5   out   sun    2.0  1.0  0.750000
    """
    return tabulate(require_posterior(nb, "parameter_table"), prob)


def tabulate(fitted: Fitted, prob: float) -> pd.DataFrame:
    """As `parameter_table`."""
    import pandas as pd

    require_probability("prob", prob)
    require_proper(fitted.encoding, fitted.posterior)
    parts = _summaries(fitted.prior, fitted.statistics)
    axis = _axis(fitted.encoding, parts)
    values = {name: _flat(parts, name) for name in ("count", "mle", "map", "mean", "prior_weight")}
    intervals = [_interval(summary, prob) for summary in _each(parts)]
    lower, upper = (np.concatenate(ends) for ends in zip(*intervals, strict=True))
    columns = {
        "class": fitted.encoding.classes.array()[axis.label],
        "feature": axis.feature,
        "level": axis.level,
        **{name: values[name] for name in ("count", "mle", "map", "mean")},
        "sd": np.sqrt(_flat(parts, "variance")),
        "lower": lower,
        "upper": upper,
        "prior_weight": values["prior_weight"],
    }
    order = np.lexsort((axis.place, axis.label, axis.place >= 0))
    table = pd.DataFrame({name: column[order] for name, column in columns.items()})
    return table.astype({"level": object})


@pytree
class _Component:
    """Of a mixture: its weight, and a distribution of `scipy.stats`."""

    weight: Any
    arguments: dict[str, Any]
    distribution: str = static()


@pytree
class _Summary:
    """One parameter of a family, every array (C, K), or (1, C) for the class probabilities."""

    count: Any
    mle: Any
    map: Any
    mean: Any
    variance: Any
    prior_weight: Any
    marginal: tuple[_Component, ...]


@dataclass(frozen=True, eq=False)
class _Axis:
    """Names of the parameters, in the order of the flattened summaries.

    `label` is the index of the class; `place` sorts by column of X, then level, and is negative for class
    probabilities.
    """

    label: np.ndarray
    place: np.ndarray
    feature: np.ndarray
    level: np.ndarray


@float64
def _summaries(prior: NaiveBayes, statistics: Statistics) -> tuple[dict[str, _Summary], ...]:
    return _summarize(prior, statistics)


@jax.jit
def _summarize(prior: NaiveBayes, statistics: Statistics) -> tuple[dict[str, _Summary], ...]:
    """Of the class probabilities, then of each block."""
    families = (prior.class_prior, *prior.blocks)
    counts = (LevelCounts(statistics.class_count[None]), *statistics.blocks)
    return tuple(map(_summarize_family, families, counts))


def _summarize_family(prior: Any, statistics: Any) -> dict[str, _Summary]:
    posterior = prior.update(statistics)
    mle = require_capability(prior, Parametric).improper().update(statistics).mean().parameters()
    mode, mean, variance = posterior.mode().parameters(), posterior.mean().parameters(), posterior.variance()
    before, after = prior.pseudo_count(), posterior.pseudo_count()
    components = [(weight, family.marginals()) for weight, family in mixture_components(posterior)]
    return {
        name: _Summary(
            count=statistics.count,
            mle=mle[name],
            map=mode[name],
            mean=mean[name],
            variance=variance[name],
            prior_weight=jnp.where(jnp.isinf(after[name]), 1.0, before[name] / after[name]),
            marginal=tuple(_Component(weight, own[name][1], own[name][0]) for weight, own in components),
        )
        for name in variance
    }


def _axis(encoding: Encoding, parts: tuple[dict[str, _Summary], ...]) -> _Axis:
    classes = encoding.classes.values
    n_classes = len(classes)
    label, place = [np.arange(n_classes)], [np.full(n_classes, -1)]
    feature, level = [_objects([CLASS] * n_classes)], [_objects(classes)]
    # Room for the parameters of a column, so that `place` sorts by column, then level or parameter.
    room = 1 + 2 * max(summary.count.shape[1] for summary in _each(parts))
    for columns, part in zip(encoding.blocks, parts[1:], strict=True):
        within, levels = columns.axis()
        first = np.asarray(columns.index)[within] * room + len(part) * np.arange(len(within))
        for p, parameter in enumerate(part):
            label.append(np.repeat(np.arange(n_classes), len(within)))
            place.append(np.tile(first + p, n_classes))
            feature.append(np.tile(_objects(columns.names)[within], n_classes))
            names = [parameter] * len(within) if levels is None else levels
            level.append(np.tile(_objects(names), n_classes))
    return _Axis(*(np.concatenate(arrays) for arrays in (label, place, feature, level)))


def _objects(values: Sequence[Hashable]) -> np.ndarray:
    """One entry a value, also where values are tuples."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _each(parts: tuple[dict[str, _Summary], ...]) -> list[_Summary]:
    return [summary for part in parts for summary in part.values()]


def _flat(parts: tuple[dict[str, _Summary], ...], name: str) -> np.ndarray:
    return np.concatenate([np.ravel(getattr(summary, name)) for summary in _each(parts)])


def _interval(summary: _Summary, prob: float) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles (1 ∓ prob)/2 of the marginals, raveled; both the mean where that is certain."""
    shape = np.shape(summary.mean)
    parts = [[part.weight, *part.arguments.values()] for part in summary.marginal]
    arguments = np.stack([np.broadcast_to(v, shape).ravel() for part in parts for v in part])
    distinct, index = _distinct(arguments)
    of_parts = np.split(distinct, np.cumsum([len(part) for part in parts])[:-1])
    mixture = [(part, own[0], own[1:]) for part, own in zip(summary.marginal, of_parts, strict=True)]
    ends = [_quantile(mixture, q)[index] for q in ((1 - prob) / 2, (1 + prob) / 2)]
    certain, mean = np.ravel(summary.variance) == 0, np.ravel(summary.mean)
    lower, upper = (np.where(certain, mean, end) for end in ends)
    return lower, upper


def _quantile(mixture: list[tuple[_Component, np.ndarray, np.ndarray]], q: float) -> np.ndarray:
    """Of mixtures with so many weights and arguments (arguments, M) a component: between those of the components."""
    from scipy import stats
    from scipy.optimize.elementwise import find_root

    def frozen(part: _Component, arguments: np.ndarray) -> Any:
        return getattr(stats, part.distribution)(**dict(zip(part.arguments, arguments, strict=True)))

    ends = np.stack([frozen(part, arguments).ppf(q) for part, _, arguments in mixture])
    low, high = ends.min(axis=0), ends.max(axis=0)

    def excess(x: np.ndarray, at: Any) -> np.ndarray:
        return sum(weight[at] * (frozen(part, arguments[:, at]).cdf(x) - q) for part, weight, arguments in mixture)

    every = slice(None)
    above = excess(high, every) <= 0  # where all but the weight of one component is lost in rounding
    apart = np.flatnonzero((low < high) & ~above & (excess(low, every) < 0))
    found = np.where(above, high, low)
    if apart.size:
        found[apart] = find_root(excess, (low[apart], high[apart]), args=(apart,)).x
    return found


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct columns, and which each is: many words share few counts, and quantiles are dear."""
    order = np.lexsort(rows)
    ordered = rows[:, order]
    first = np.ones(rows.shape[1], bool)
    first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    index = np.empty(rows.shape[1], np.intp)
    index[order] = np.cumsum(first) - 1
    return ordered[:, first], index
