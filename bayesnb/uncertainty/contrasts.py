"""Contrasts of two classes: differences, ratios and log odds ratios of the same parameter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import compress, product
from typing import ClassVar, Literal, Self

import jax
import numpy as np
import pandas as pd
from scipy import special

from bayesnb._util.arguments import bad_argument, find_class, require_choice, require_probability, shown
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding, Levels
from bayesnb.encoding.structure import Conditional
from bayesnb.families.arrays import Tree, kernel, pytree
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.uncertainty.draws import feature_masks, require_proper, site_names
from bayesnb.uncertainty.given_draws import read_parameters
from bayesnb.uncertainty.score_moments import find_zeros
from bayesnb.uncertainty.tables import Component, Summary, locate, summarize_family

Contrast = Literal["difference", "ratio", "log_odds"]
CONTRASTS: tuple[Contrast, ...] = ("difference", "ratio", "log_odds")
_COLUMNS = ["class", "against", "feature", "level", "kind", "estimate", "sd", "lower", "upper", "prob_greater"]

# == Table of contrasts ============================================================================


def contrast(
    nb: Classifier,
    feature: object,
    level: object = None,
    classes: Sequence[object] | None = None,
    kind: Contrast = "difference",
    prob: float = 0.9,
    draws: object = None,
) -> pd.DataFrame:
    """Compare the parameters of a feature between two classes: posterior of their difference, ratio or log odds ratio.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose parameters are compared.
    feature : str or int
        Column of X, by name or index.
    level : object, optional
        Level whose probability is compared ("absent" or "present" for Bernoulli features), or name of a parameter of
        numbers ("mu", "sigma2", "rate"), as in the column `level` of `parameter_table`. In a structure, a level stands
        for its rows under all values of the parents. Default: all levels or parameters that have such a contrast.
    classes : pair of labels, optional
        Classes (a, b): a is compared against b. Default: every other class against the first of `nb.classes_`.
    kind : {"difference", "ratio", "log_odds"}, default "difference"
        Contrast of the parameters θ_a and θ_b: θ_a - θ_b; θ_a / θ_b, for positive parameters; logit θ_a - logit θ_b,
        the log odds ratio, for probabilities.
    prob : float, default 0.9
        Posterior probability of the interval from `lower` to `upper`, in (0, 1).
    draws : result of `posterior_draws`, `run_nuts`, `to_arviz` or `sample_latent`, optional
        Draws that are described in place of the exact posterior.

    Returns
    -------
    DataFrame
        One row for each pair of classes and each level or parameter.

        class, against
            Labels of a and b.
        feature, level
            Name of the column, and level or parameter, as in `parameter_table`.
        kind : str
            The argument `kind`.
        estimate, sd : float
            Posterior mean and standard deviation of the contrast; NaN or inf where these do not exist.
        lower, upper : float
            Quantiles (1 ∓ prob)/2 of the posterior of the contrast.
        prob_greater : float
            Posterior probability that θ_a is greater than θ_b, so that the difference or the log odds ratio is
            positive, and the ratio above 1.

    Raises
    ------
    ImproperPosteriorError
        If a level with concentration 0 has no count.
    NotImplementedError
        If the classes share parameters, or the marginal posteriors of the parameters have no closed form, and `draws`
        are not given; the message gives the reason.
    ValueError
        If there is no such column, level or class, or the parameter has no such contrast.

    Notes
    -----
    Given the data, the parameters of two classes are independent. Each has a Beta, gamma, inverse gamma or Student t
    distribution, or a mixture of these; quadrature gives the quantiles and probabilities to an accuracy of 1e-8 in
    probability (docs/derivations/prediction_and_uncertainty.md, "Contrasts of two classes"). The mean of a ratio of
    probabilities or rates is infinite if the posterior concentration of θ_b is at most 1, and the sd if it is at most
    2. The interval always exists.

    The table describes the uncertainty about parameters *if naive Bayes holds*. Of many contrasts, some are far from
    zero by chance.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, contrast
    >>> X = [["sun"]] * 8 + [["rain"]] * 2 + [["sun"]] * 3 + [["rain"]] * 7
    >>> nb = CategoricalNB().fit(X, ["out"] * 10 + ["in"] * 10)
    >>> contrast(nb, 0, "sun")[["class", "against", "estimate", "lower", "upper", "prob_greater"]].round(3)
      class against  estimate  lower  upper  prob_greater
    0   out      in     0.417  0.107   0.69         0.985
    """
    fitted = require_posterior(nb, "contrast", draws)
    require_choice("kind", kind, CONTRASTS)
    require_probability("prob", prob)
    encoding, labels = fitted.encoding, fitted.encoding.classes.values
    (column,) = encoding.positions([feature], "feature")
    compared, against = _read_classes(classes, labels)
    pairs = np.stack([compared, np.full_like(compared, against)])

    def select(parameter: Tree) -> Tree:
        """Return arrays (…, 2, P, K) of both classes of P pairs from arrays that broadcast to (…, C, K)."""
        shape = np.broadcast_shapes((len(labels), 1), *map(np.shape, jax.tree.leaves(parameter)))
        return jax.tree.map(lambda values: np.broadcast_to(values, shape)[..., pairs, :], parameter)

    blocks = _summarize(fitted, column, kind) if draws is None else _select_draws(fitted, column, draws)
    known = _name_parameters(encoding, column, blocks)
    if not known:
        raise ValueError(f"kind={kind!r} is not defined for the parameters of column {shown(feature)}. {_DEFINED}")
    if level is not None and not any(level in names for names in map(_level_names, known)):
        raise ValueError(
            f"level={shown(level)}: column {shown(feature)} has no such level or parameter with a {kind}; it has "
            f"{shown(list(dict.fromkeys(name for names in map(_level_names, known) for name in names)))}. {_DEFINED}"
        )
    parameters = [{name: select(values) for name, values in block.items()} for block in blocks]
    describe = _describe_posteriors if draws is None else _describe_draws
    table = locate(
        replace(encoding, classes=Levels(tuple(labels[c] for c in compared))),
        [column],
        [{}, *parameters],
        lambda values: describe(values, kind, prob),
        lambda name: level is None or level in _level_names(name),
    )
    table = table.rename(columns={"mean": "estimate"}).assign(kind=kind)
    table["against"] = pd.Series([labels[against]] * len(table), dtype=table["class"].dtype)
    return table[_COLUMNS]


def _read_classes(classes: Sequence[object] | None, labels: Sequence[object]) -> tuple[np.ndarray, int]:
    """Return the indices (P,) of the compared classes, and that of the class that they are compared against."""
    if len(labels) < 2:
        raise ValueError(f"contrast compares two classes, and the classifier has one, {shown(labels[0])}.")
    if classes is None:
        return np.arange(1, len(labels)), 0
    if isinstance(classes, str | bytes) or not hasattr(classes, "__len__") or len(classes) != 2:
        raise bad_argument("classes", classes, f"two of the classes {shown(list(labels))}")
    first, second = (find_class("classes", label, labels) for label in classes)
    if first == second:
        raise bad_argument("classes", classes, "two different classes")
    return np.array([first]), second


def _name_parameters(encoding: Encoding, column: int, blocks: Sequence[Mapping[str, object]]) -> list[object]:
    """Return the levels of a column, or the names of its parameters if it has no levels, in blocks with parameters."""
    names: list[object] = []
    for columns, of_block, mask in zip(encoding.blocks, blocks, feature_masks(encoding, [column]), strict=True):
        levels = columns.axis()[1]
        if levels is None or not of_block:
            names += of_block
        else:
            names += compress(levels, mask)
    return names


def _level_names(level: object) -> list[object]:
    """Return the names by which a level can be chosen; given parents also the level of the column alone."""
    return [level, level.level, str(level)] if isinstance(level, Conditional) else [level]


def _summarize(fitted: Fitted, column: int, kind: Contrast) -> list[dict[str, Summary]]:
    """Return for each block {parameter: summary} of the posterior, of parameters that have such a contrast.

    Raises NotImplementedError if these have no independent marginals in closed form.
    """
    require_proper(fitted.encoding, fitted.posterior)
    advice = "Pass draws=posterior_draws(nb)."
    summaries = []
    for columns, prior, counted in zip(
        fitted.encoding.blocks, fitted.prior.blocks, fitted.statistics.blocks, strict=True
    ):
        of_block: dict[str, Summary] = {}
        if column in columns.index:
            if prior.classes_share_parameters:
                raise NotImplementedError(f"contrast: the classes of {fitted.name} share parameters. {advice}")
            try:
                of_block = _summarize_block(prior, counted)
                shifts = {name: _read_variate(summary["marginal"][0]).shift for name, summary in of_block.items()}
            except NotImplementedError as error:
                raise NotImplementedError(f"contrast: {error} {advice}") from None
            of_block = {name: summary for name, summary in of_block.items() if kind in shifts[name]}
        summaries.append(of_block)
    return summaries


_summarize_block = float64(kernel(summarize_family))


def _select_draws(fitted: Fitted, column: int, draws: object) -> list[dict[str, np.ndarray]]:
    """Return for each block {parameter: draws (S, C, K)}, empty for blocks without the column."""
    values = read_parameters(fitted, draws).values
    pairs = zip(fitted.encoding.blocks, site_names(fitted.encoding, fitted.prior), strict=True)
    return [{n: values[site] for n, site in sites.items() if column in columns.index} for columns, sites in pairs]


def _describe_draws(drawn: np.ndarray, kind: Contrast, prob: float) -> dict[str, np.ndarray]:
    """Mean, sd, interval and probability of a positive contrast (P, K) over draws (S, 2, P, K) of both classes."""
    if kind == "log_odds" and not ((drawn >= 0) & (drawn <= 1)).all():
        raise ValueError(f"kind='log_odds' is not defined for parameters outside [0, 1]. {_DEFINED}")
    first, second = drawn[:, 0], drawn[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        values = _subtract(first, second, kind)
    lower, upper = np.quantile(values, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
    return {
        "mean": values.mean(axis=0),
        "sd": values.std(axis=0, ddof=1),
        "lower": lower,
        "upper": upper,
        "prob_greater": (first > second).mean(axis=0),
    }


# == Contrasts of independent variates, by quadrature ===============================================

# A contrast is the difference of two variates on a scale: that of their values, logarithms or logits. In between, Beta
# variates are represented by their logits, and gamma and inverse gamma variates by their logarithms: no rounding at the
# ends of the support, and smooth densities with exponential tails.

_DEFINED = "Probabilities have all contrasts, rates and variances differences and ratios, means differences."
_TAIL = np.array([1e-12, 1e-8, 1e-5, 1e-3, 0.03, 0.2])
_LEVELS = np.concatenate([_TAIL, [0.5], 1.0 - _TAIL[::-1]])
_BENDS = np.array([-25.0, -9.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 9.0, 25.0])
_STEPS = np.log(8.0) * np.arange(-7, 3)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_UNDERFLOW, _ACCURACY = -600.0, 1e-11
_LARGE = 1e5
_MOST_ROWS = 2**9


class _Variate(ABC):
    """Independent variates with parameters (M, 1), represented by coordinates r (M, n)."""

    shift: ClassVar[Mapping[Contrast, Callable[[np.ndarray, np.ndarray], np.ndarray]]]
    """By contrast: coordinate of the variate that is greater by t than that at r, on the scale of the contrast."""
    position: ClassVar[Mapping[Contrast, Callable[[np.ndarray], np.ndarray]]]
    """By contrast: value on the scale of the contrast."""

    @abstractmethod
    def quantile(self, u: np.ndarray) -> np.ndarray:
        """(M, n) quantiles u (n,) or (M, n), to some digits."""

    @abstractmethod
    def cdf(self, r: np.ndarray) -> np.ndarray:
        """(M, n) probabilities of coordinates up to r."""

    @abstractmethod
    def log_density(self, v: np.ndarray) -> np.ndarray:
        """(M, n) log density of stretched coordinates, up to a constant: 0 at the mode, without cancellation."""

    @abstractmethod
    def bends(self) -> np.ndarray:
        """(M, n) coordinates between which the log density is nearly linear or quadratic."""

    def kinks(self, other: Self, kind: Contrast, t: np.ndarray) -> np.ndarray:
        """(M, n) coordinates that approach the values whose `shift` by t (M, 1) is an end or the middle of `other`."""
        return np.empty((len(t), 0))

    def stretch(self, r: np.ndarray) -> np.ndarray:
        """(M, n) coordinates in which the density has exponential tails; default: r."""
        return r

    def unstretch(self, v: np.ndarray) -> np.ndarray:
        """(M, n) coordinates r from stretched ones; default: v."""
        return v

    def moments(self, kind: Contrast) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (M, 1) of the logit, for a log odds ratio, or of the reciprocal, for a ratio."""
        raise NotImplementedError


@pytree
class _Beta(_Variate):
    """Beta(a, b) variates, by their logits."""

    a: np.ndarray
    b: np.ndarray

    shift: ClassVar = {
        "log_odds": lambda z, t: z + t,
        "difference": lambda z, t: _log(special.expit(z) + t) - _log(special.expit(-z) - t),
        "ratio": lambda z, t: _log_to_logit(special.log_expit(z) + t),
    }
    position: ClassVar = {"log_odds": lambda z: z, "difference": special.expit, "ratio": special.log_expit}

    def quantile(self, u: np.ndarray) -> np.ndarray:
        return _log_beta_quantile(self.a, self.b, u) - _log_beta_quantile(self.b, self.a, 1.0 - u)

    def cdf(self, r: np.ndarray) -> np.ndarray:
        below = r <= 0
        a, b, z = np.where(below, self.a, self.b), np.where(below, self.b, self.a), -abs(r)
        power = np.exp(np.minimum(a * z - np.log(a) - special.betaln(a, b), 0.0))
        tail = np.where(z < _UNDERFLOW, power, special.betainc(a, b, special.expit(z)))
        return np.where(below, tail, 1.0 - tail)

    def log_density(self, v: np.ndarray) -> np.ndarray:
        mean, distance = self.a / (self.a + self.b), v - np.log(self.a / self.b)
        return -self.a * _log_mean_exp(1.0 - mean, -distance) - self.b * _log_mean_exp(mean, distance)

    def bends(self) -> np.ndarray:
        return np.broadcast_to(_BENDS, (len(self.a), len(_BENDS)))

    def kinks(self, other: Self, kind: Contrast, t: np.ndarray) -> np.ndarray:
        if kind == "log_odds":
            return super().kinks(other, kind, t)
        end = _log(np.minimum(abs(t), 1.0 - abs(t) if kind == "difference" else 1.0)) + _STEPS
        return np.concatenate([end, -end], axis=1)

    def moments(self, kind: Contrast) -> tuple[np.ndarray, np.ndarray]:
        a, b = self.a, self.b
        if kind == "log_odds":
            return special.digamma(a) - special.digamma(b), special.polygamma(1, a) + special.polygamma(1, b)
        mean = np.where(a > 1, (a + b - 1) / (a - 1), np.inf)
        return mean, np.where(a > 2, mean**2 * b / ((a + b - 1) * (a - 2)), np.inf)


@pytree
class _Gamma(_Variate):
    """Gamma variates with shape a and a scale, to the power `sign` of 1 or -1, by their logarithms."""

    a: np.ndarray
    log_scale: np.ndarray
    sign: np.ndarray

    shift: ClassVar = {"ratio": lambda w, t: w + t, "difference": lambda w, t: _log(np.exp(w) + t)}
    position: ClassVar = {"ratio": lambda w: w, "difference": np.exp}

    def quantile(self, u: np.ndarray) -> np.ndarray:
        u = np.where(self.sign > 0, u, 1.0 - u)
        power = (np.log(u) + special.gammaln(self.a + 1.0)) / self.a
        w = np.where(power < _UNDERFLOW, power, _log(special.gammaincinv(self.a, u)))
        return self.log_scale + self.sign * w

    def cdf(self, r: np.ndarray) -> np.ndarray:
        w = self.sign * (r - self.log_scale)
        below = _gamma_cdf(self.a, w)
        return np.where(self.sign > 0, below, 1.0 - below)

    def log_density(self, v: np.ndarray) -> np.ndarray:
        distance = self.sign * (v - self.log_scale) - np.log(self.a)
        return -self.a * (np.expm1(distance) - distance)

    def bends(self) -> np.ndarray:
        return self.log_scale + _BENDS

    def kinks(self, other: Self, kind: Contrast, t: np.ndarray) -> np.ndarray:
        return super().kinks(other, kind, t) if kind == "ratio" else _log(abs(t)) + _STEPS

    def moments(self, kind: Contrast) -> tuple[np.ndarray, np.ndarray]:
        a, of_inverse = self.a, self.sign < 0
        mean = np.where(of_inverse, a, np.where(a > 1, 1.0 / (a - 1), np.inf))
        spread = np.where(of_inverse, 1.0 / a, np.where(a > 2, 1.0 / (a - 2), np.inf))
        mean = mean * np.exp(-self.log_scale)
        return mean, mean**2 * spread


@pytree
class _StudentT(_Variate):
    """Student t variates with `df` degrees of freedom, by their values; a stretched one is asinh(z/√df)."""

    df: np.ndarray
    loc: np.ndarray
    width: np.ndarray

    shift: ClassVar = {"difference": lambda x, t: x + t}
    position: ClassVar = {"difference": lambda x: x}

    def quantile(self, u: np.ndarray) -> np.ndarray:
        tail = np.minimum(2.0 * np.minimum(u, 1.0 - u), 1.0 - 1e-16)
        log_sinh = -0.5 * _Beta(self.df / 2, np.full_like(self.df, 0.5)).quantile(tail)
        v = np.logaddexp(log_sinh, 0.5 * np.logaddexp(0.0, 2.0 * log_sinh))
        return self.unstretch(np.where(u < 0.5, -v, v))

    def cdf(self, r: np.ndarray) -> np.ndarray:
        z = (r - self.loc) / self.width
        tail = 0.5 * _Beta(self.df / 2, np.full_like(self.df, 0.5)).cdf(-2.0 * np.log(abs(z)))
        return np.where(z < 0, tail, 1.0 - tail)

    def log_density(self, v: np.ndarray) -> np.ndarray:
        return -self.df * (_log_mean_exp(0.5, 2.0 * v) - v)  # -ν log cosh v

    def bends(self) -> np.ndarray:
        return self.unstretch(_BENDS)

    def kinks(self, other: Self, kind: Contrast, t: np.ndarray) -> np.ndarray:
        distance = abs(t + self.loc - other.loc) * np.exp(_STEPS)
        return np.concatenate([self.loc - distance, self.loc + distance], axis=1)

    def stretch(self, r: np.ndarray) -> np.ndarray:
        return np.arcsinh((r - self.loc) / self.width)

    def unstretch(self, v: np.ndarray) -> np.ndarray:
        return self.loc + self.width * np.sinh(v)


_Mixture = Sequence[tuple[np.ndarray, _Variate]]
"""Weight and variates of each part of a mixture."""

_VARIATES: Mapping[str, Callable[..., _Variate]] = {
    "beta": _Beta,
    "gamma": lambda a, scale: _Gamma(a, np.log(scale), np.ones_like(a)),
    "invgamma": lambda a, scale: _Gamma(a, np.log(scale), -np.ones_like(a)),
    "t": lambda df, loc, scale: _StudentT(df, loc, scale * np.sqrt(df)),
}
"""Functions from the arguments of distributions of `scipy.stats`, by name."""


def _read_variate(part: Component) -> _Variate:
    """Return the variates of one part of a mixture; raise NotImplementedError for another distribution."""
    if part.distribution not in _VARIATES:
        raise NotImplementedError(
            f"parameters with the distribution {part.distribution!r} have no contrasts by quadrature."
        )
    return _VARIATES[part.distribution](**part.arguments)


@pytree
class _Pair:
    """Independent variates x and y, whose contrast has a probability by quadrature over the one that is more spread.

    The other one, `inner`, contributes its distribution function. `points` are coordinates (M, n) between which
    densities and distribution functions are smooth.
    """

    inner: _Variate
    outer: _Variate
    inner_points: np.ndarray
    outer_points: np.ndarray
    is_reversed: np.ndarray

    @classmethod
    def from_variates(cls, x: _Variate, y: _Variate) -> Self:
        """Return the pair of variates with parameters (M,)."""
        x, y = (jax.tree.map(lambda v: v[:, None], variate) for variate in (x, y))
        spread = [np.diff(v.stretch(v.quantile(np.array([0.2, 0.8])))) for v in (x, y)]
        is_reversed = spread[0] > spread[1]
        inner, outer = (
            jax.tree.map(lambda a, b: np.where(is_reversed, a, b), *variates) for variates in ((y, x), (x, y))
        )
        inner_points, outer_points = (np.concatenate([v.quantile(_LEVELS), v.bends()], axis=1) for v in (inner, outer))
        return cls(inner, outer, inner_points, outer_points, is_reversed[:, 0])

    def cdf(self, kind: Contrast, t: np.ndarray) -> np.ndarray:
        """(M,) probability that the contrast is at most t (M,), on the scale on which it is a difference."""
        # P(x - y <= t) = E F_x(y + t) = 1 - E F_y(x - t)
        t = np.where(self.is_reversed, -t, t)[:, None]
        inner, outer, shift = self.inner, self.outer, self.outer.shift[kind]
        inner_points = np.concatenate([self.inner_points, inner.kinks(outer, kind, -t)], axis=1)
        points = np.concatenate([self.outer_points, outer.kinks(inner, kind, t), shift(inner_points, -t)], axis=1)
        low, high = self.outer_points[:, :1], self.outer_points[:, [len(_LEVELS) - 1]]
        ends = np.sort(outer.stretch(np.clip(np.where(np.isnan(points), low, points), low, high)), axis=1)
        row, piece = np.nonzero(np.diff(ends))
        inner, outer = jax.tree.map(lambda parameter: parameter[row], (inner, outer))
        start, half = ends[row, piece, None], np.diff(ends)[row, piece, None] / 2
        v = start + half * (1.0 + _NODES)
        weight = half * _WEIGHTS * np.exp(outer.log_density(v))
        below = weight * inner.cdf(shift(outer.unstretch(v), t[row]))
        probability = np.divide(*(np.bincount(row, of.sum(axis=1), len(t)) for of in (below, weight)))
        return np.where(self.is_reversed, 1.0 - probability, probability)


def _describe_posteriors(summary: Summary, kind: Contrast, prob: float) -> dict[str, np.ndarray]:
    """Mean, sd, interval and `prob_greater` (P, K) of contrasts, from summaries (2, P, K) of both classes."""
    mean, variance = summary["mean"], summary["variance"]
    parts = [(part.weight, _read_variate(part)) for part in summary["marginal"]]
    with np.errstate(all="ignore"):
        estimate, spread = _moments(mean, variance, parts, kind)
        is_known = (variance == 0).all(axis=0)
        known, ends = _subtract(mean[0], mean[1], kind), np.empty((3, *is_known.shape))
        rows = np.flatnonzero(~is_known)
        for start in range(0, len(rows), _MOST_ROWS):
            at = rows[start : start + _MOST_ROWS]
            chosen = jax.tree.map(lambda values, at=at: values.reshape(2, -1)[:, at], parts)
            ends.reshape(3, -1)[:, at] = _quantiles(chosen, kind, prob)
        values = {"mean": estimate, "sd": np.sqrt(spread), "lower": ends[0], "upper": ends[1], "prob_greater": ends[2]}
    of_known = {"sd": 0.0, "prob_greater": mean[0] > mean[1]}
    return {name: np.where(is_known, of_known.get(name, known), value) for name, value in values.items()}


def _subtract(first: np.ndarray, second: np.ndarray, kind: Contrast) -> np.ndarray:
    """Return the contrasts of two arrays of parameters."""
    if kind == "difference":
        return first - second
    return first / second if kind == "ratio" else special.logit(first) - special.logit(second)


def _moments(mean: np.ndarray, variance: np.ndarray, parts: _Mixture, kind: Contrast) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance (P, K) of contrasts, from those of the variates, and from the parts of their mixtures."""
    if kind != "difference":
        moments = [(weight, *variate.moments(kind)) for weight, variate in parts]
        m = sum(weight * own for weight, own, _ in moments)
        v = sum(weight * (spread + (own - m) ** 2) for weight, own, spread in moments)
        v = np.where(np.isfinite(m), v, np.inf)
        if kind == "ratio":
            return mean[0] * m[1], variance[0] * (v[1] + m[1] ** 2) + v[1] * mean[0] ** 2
        mean, variance = m, v
    return mean[0] - mean[1], variance[0] + variance[1]


def _quantiles(parts: _Mixture, kind: Contrast, prob: float) -> np.ndarray:
    """(3, M) quantiles (1 ∓ prob)/2 of contrasts, and probabilities that the first variate is greater.

    `parts` are weights (2, M) and variates with parameters (2, M) of the mixtures in both classes.
    """
    first, second = ([jax.tree.map(lambda v, c=c: v[c], part) for part in parts] for c in (0, 1))
    pairs = [(w * u, _Pair.from_variates(x, y)) for (w, x), (u, y) in product(first, second)]
    position, itself = parts[0][1].position[kind], next(iter(parts[0][1].shift))

    def cdf(kind: Contrast, t: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Return (m,) probabilities that the contrasts of the rows `at` (m,) are at most t (m,)."""
        rows = jax.tree.map(lambda v: v[at], pairs)
        return sum(weight * pair.cdf(kind, t) for weight, pair in rows)

    def end(part: _Mixture, u: float) -> np.ndarray:
        """Return (K, M) quantiles u of the K parts of a mixture, on the scale of the contrast."""
        variates = [jax.tree.map(lambda v: v[:, None], variate) for _, variate in part]
        return np.stack([position(variate.quantile(np.array([u])))[:, 0] for variate in variates])

    ends = []
    for q in ((1 - prob) / 2, (1 + prob) / 2):
        # Each of two variates is beyond these ends with half of the probability of the tail.
        low = end(first, q / 2).min(axis=0) - end(second, 1 - q / 2).max(axis=0)
        high = end(first, (1 + q) / 2).max(axis=0) - end(second, (1 - q) / 2).min(axis=0)

        def excess(t: np.ndarray, at: np.ndarray, q: float = q) -> np.ndarray:
            return np.asarray(cdf(kind, t, at) - q)

        ends.append(find_zeros(excess, low, high, _ACCURACY))
    zero, every = np.zeros(len(ends[0])), np.arange(len(ends[0]))
    return np.stack([*(np.exp(ends) if kind == "ratio" else ends), 1.0 - cdf(itself, zero, every)])


# == Special functions that keep digits at both ends of the support ================================


def _log(x: np.ndarray) -> np.ndarray:
    """Logarithm of the positive part of x."""
    return np.log(np.maximum(x, 0.0))


def _log_to_logit(log: np.ndarray) -> np.ndarray:
    """Logit of the number with a logarithm of at most 0; infinite above."""
    log = np.minimum(log, 0.0)
    return log - np.log(-np.expm1(log))


def _log_mean_exp(share: np.ndarray | float, d: np.ndarray | float) -> np.ndarray:
    """Compute log(1 - share + share e^d), without cancellation for small d."""
    return np.log1p(share * np.expm1(np.minimum(d, -_UNDERFLOW))) + np.maximum(d + _UNDERFLOW, 0.0)


def _log_beta_quantile(a: np.ndarray, b: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Logarithms of the quantiles u of Beta(a, b), also below the least number."""
    power = (np.log(u) + np.log(a) + special.betaln(a, b)) / a
    return np.where(power < _UNDERFLOW, power, _log(special.betaincinv(a, b, u)))


def _gamma_cdf(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Probability that the logarithm of a Gamma(a) variate is at most w.

    SciPy's `gammainc` loses digits beyond 4.5 standard deviations for large a, where its series ends early. There the
    expansion of Temme (1979) is used, whose error is below 1e-10 from a = 1e5 on.
    """
    distance = np.clip(w - np.log(a), -5.0, 5.0)
    eta = np.sign(distance) * np.sqrt(2.0 * np.maximum(np.expm1(distance) - distance, 0.0))
    correction = np.exp(-a * eta**2 / 2) / np.sqrt(2 * np.pi * a) * (1 / 3 - eta / 12 + 2 * eta**2 / 135)
    power = np.exp(np.minimum(a * w - special.gammaln(a + 1.0), 0.0))
    small = np.where(w < _UNDERFLOW, power, special.gammainc(a, np.exp(w)))
    return np.where(a > _LARGE, special.ndtr(eta * np.sqrt(a)) + correction, small)
