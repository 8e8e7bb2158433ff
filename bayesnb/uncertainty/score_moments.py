"""Moments of a row's scores under the posterior of the parameters, and distributions with these moments.

The score of a class is log π_c + log p(row | c, θ). Its first three cumulants are closed forms. A variate with these
cumulants is a cubic of a normal one (Wilson & Hilferty, *The distribution of chi-square*, PNAS 17 (1931)): with z
standard normal, y = (2/γ) [(1 - γ²/36 + γ z/6)³ - 1] has mean 0, variance 1 and skewness γ to within .0001, .0003 and
.01 at |γ| = 1, and .002, .004 and .07 at 2, since the cube root of a gamma variate is nearly normal. At γ = 0 it is z.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any, Literal

import jax
import numpy as np

from bayesnb.families.arrays import Array, kernel, pytree, xp
from bayesnb.families.averaged import length_power
from bayesnb.families.protocol import Cumulants, Family
from bayesnb.families.special import polygammas
from bayesnb.model import NaiveBayes, TermWeights, log_normalize

_LARGEST_SKEWNESS = 3.0  # The cubic of a larger one has not the stated mean and variance.
_NODES = 40
_LARGEST_LOGIT = 1e100  # stands for an infinite logit
_SMALLEST_SD = 1e-40  # stands for an sd of 0


# -- cumulants of scores -------------------------------------------------------------------------


@pytree
class RowCumulants:
    """Cumulants (N, C) of log p(row | class, θ) given the data, and given the data and the row in that class.

    Parameters
    ----------
    log_proba : (N, C) array
        log P(class | row), parameters integrated out.
    without_row, with_row : Cumulants
        Cumulants under θ | D, and under θ | D, (row, class).
    """

    log_proba: jax.Array
    without_row: Cumulants
    with_row: Cumulants


@kernel
def row_cumulants(model: NaiveBayes, x: tuple[object, ...]) -> RowCumulants:
    """Compute log P(class | row) and the first three cumulants of log p(row | class, θ), (n, C), of a piece of rows.

    Features are independent given the class, so that their cumulants add. Weighted terms are not a distribution of rows
    that could be added to the data: their cumulants with the row are those without it.
    """
    log_proba = log_normalize(model.log_joint(x))
    if model.weights is not None:
        total = weighted_cumulants(model.blocks, x, model.weights)
        return RowCumulants(log_proba, total, total)
    pairs = list(zip(model.blocks, x, strict=True))
    without_row, with_row = (
        reduce(operator.add, (family.log_likelihood_cumulants(rows, multiplicity) for family, rows in pairs))
        for multiplicity in (0.0, 1.0)
    )
    return RowCumulants(log_proba, without_row, with_row)


@kernel
def weighted_cumulants(blocks: tuple[Family, ...], x: tuple[object, ...], weights: TermWeights) -> Cumulants:
    """Compute cumulants (n, C), or (S, n, C) under S draws of the weights, of the weighted log-likelihood of rows.

    They are κ_k = Σ_t w_tᵏ κ_k,t over the terms t. A single weight w of a block multiplies the whole row by
    w (t + 1)^(-exponent), where t is the number of draws of the row.
    """

    def of_block(b: int, family: Family, rows: object) -> Cumulants:
        """Cumulants of the weighted log-likelihood of block b."""
        weight = weights.blocks[b]
        if weights.by_term(b):
            of_terms = family.cumulants_of_terms(rows)
            each = enumerate((of_terms.mean, of_terms.variance, of_terms.third), 1)
            return Cumulants(*(xp.einsum("nct,...t->...nc", cumulant, weight**k) for k, cumulant in each))
        return family.log_likelihood_cumulants(rows) * length_power(rows, weight, weights.exponents[b]).T[..., None]

    return reduce(operator.add, (of_block(b, *block) for b, block in enumerate(zip(blocks, x, strict=True))))


def class_cumulants(class_prior: Any, multiplicity: jax.Array) -> Cumulants:
    """Cumulants of log π_c up to a variate that all classes share, with `multiplicity` (…, C) more rows of each class.

    For a Dirichlet ψ(α_c), ψ₁(α_c) and ψ₂(α_c): differences between classes have exactly the moments that follow. For
    known class probabilities log π_c, 0 and 0, whatever `multiplicity` is.
    """
    if class_prior.fixed:
        log_prob = xp.broadcast_to(xp.asarray(class_prior.log_prob)[0], multiplicity.shape)
        return Cumulants(log_prob, xp.zeros_like(log_prob), xp.zeros_like(log_prob))
    return Cumulants(*polygammas(xp.asarray(class_prior.concentration)[0] + multiplicity))


def score_cumulants(model: NaiveBayes, row: RowCumulants, given: Literal["row", "data"]) -> tuple[jax.Array, Cumulants]:
    """Weights (N, K) and cumulants (N, K, C) of the scores of the classes, a mixture of K components.

    Given the data, K = 1. Given the row too, the class k of the row is unknown, and K = C: the weights are
    P(k | row, D), and the components the scores under θ | D, (row, k).
    """
    n, n_classes = row.log_proba.shape
    if given == "row":
        of_row = xp.eye(n_classes, dtype=bool)
        rows = jax.tree.map(lambda a, b: xp.where(of_row, a[:, None], b[:, None]), row.with_row, row.without_row)
        return xp.exp(row.log_proba), rows + class_cumulants(model.class_prior, of_row.astype(row.log_proba.dtype))
    scores = row.without_row + class_cumulants(model.class_prior, xp.zeros(n_classes))
    if model.weights is not None:
        scores = replace(scores, mean=scores.mean + model.weights.class_bias)
    return xp.ones((n, 1)), jax.tree.map(lambda m: m[:, None], scores)


# -- variates of given skewness ------------------------------------------------------------------


def skewness(variance: Array, third: Array) -> Array:
    """Skewness from variance and third central moment, limited to ±3; 0 where the variance is 0."""
    known = variance > 0
    return (known * third / (variance * variance**0.5 + ~known)).clip(-_LARGEST_SKEWNESS, _LARGEST_SKEWNESS)


def skewed(z: Array, skew: Array) -> Array:
    """Map a standard normal variate to one of mean 0, variance 1 and skewness `skew`, without cancellation."""
    excess = z / 6.0 - skew / 36.0
    c = 1.0 + skew * excess
    return 2.0 * excess * (c * c + c + 1.0)


def unskewed(y: Array, skew: Array) -> Array:
    """Map a variate of mean 0, variance 1 and skewness `skew` to a standard normal one, the inverse of `skewed`."""
    c = np.cbrt(1.0 + 0.5 * skew * y)
    return 3.0 * y / (c * c + c + 1.0) + skew / 6.0


# -- two classes: the logit is a mixture of skewed variates --------------------------------------


def probability_interval(weight: np.ndarray, scores: Cumulants, tails: np.ndarray) -> np.ndarray:
    """Return (N, 2, 2) quantiles `tails` of P(class | row, θ), (row, end, class), for two classes by mixture moments.

    `weight` and `scores` are those of `score_cumulants`, `tails` the probabilities of the ends.
    """
    from scipy.special import expit, ndtr, ndtri

    n = len(weight)
    weight, mean, sd, skew = (np.tile(v.T, len(tails)) for v in (weight, *_logit(scores)))  # (K, Q · N)
    q = np.repeat(tails, n)

    def cdf(logit: np.ndarray, at: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.asarray(ndtr(unskewed((logit - mean[:, at]) / sd[:, at], skew[:, at])))

    low, high = mixture_quantiles(weight, mean + sd * skewed(ndtri(q), skew), cdf, q).reshape(len(tails), n)
    return np.asarray(expit(np.stack([-high, low, -low, high], axis=1)).reshape(-1, 2, 2))


def split_entropy(weight: np.ndarray, scores: Cumulants, log_proba: np.ndarray) -> np.ndarray:
    """(N, 4) total, aleatoric and epistemic entropy in nats, and p_top, for two classes, see `decompose_uncertainty`.

    They are computed by Gauss–Hermite quadrature over the mixture. `weight` and `scores` are those of
    `score_cumulants`, `log_proba` (N, C) is log P(class | row).
    """
    from scipy.special import expit, ndtr, xlogy

    nodes, node_weight = np.polynomial.hermite_e.hermegauss(_NODES)
    logit, sd, skew = _logit(scores)
    z = logit[..., None] + sd[..., None] * skewed(nodes, skew[..., None])
    probability = weight[..., None] * (node_weight / node_weight.sum())
    p, q = (np.sum(probability * expit(side), axis=(1, 2)) for side in (z, -z))
    total = 0.0 - xlogy(p, p) - xlogy(q, q)
    # The entropy of Bernoulli(expit(z)) is log(1 + e^-|z|) + |z| expit(-|z|).
    z = abs(z)
    aleatoric = np.sum(probability * (np.log1p(np.exp(-z)) + z * expit(-z)), axis=(1, 2))
    below = ndtr(unskewed(-logit / sd, skew))
    p_top = np.where((log_proba[:, 1] <= log_proba[:, 0])[:, None], below, 1.0 - below)
    known_tie = (logit == 0) & (sd == _SMALLEST_SD)
    p_top = np.sum(weight * np.where(known_tie, 1.0, p_top), axis=1)
    return np.stack([total, aleatoric, total - aleatoric, p_top], axis=1)


def _logit(scores: Cumulants) -> tuple[Array, Array, Array]:
    """Mean, sd and skewness (N, K) of log odds of the second of two classes, for each component of the mixture."""
    logit = (scores.mean[..., 1] - scores.mean[..., 0]).clip(-_LARGEST_LOGIT, _LARGEST_LOGIT)
    variance = scores.variance[..., 0] + scores.variance[..., 1]
    skew = skewness(variance, scores.third[..., 1] - scores.third[..., 0])
    return logit, np.maximum(variance**0.5, _SMALLEST_SD), skew


def mixture_quantiles(
    weight: np.ndarray, ends: np.ndarray, cdf: Callable[[np.ndarray, np.ndarray], np.ndarray], q: np.ndarray
) -> np.ndarray:
    """(M,) quantiles of mixtures of K components; each lies between the same quantiles of the components.

    Parameters
    ----------
    weight : (K, M) array
        Weights of the components.
    ends : (K, M) array
        Quantiles q of the components.
    cdf : function of values (m,) and of their positions (m,) among the M mixtures
        Cumulative probabilities (K, m) of the values under each component.
    q : (M,) array
        Probabilities.
    """

    def excess(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return np.asarray(np.sum(weight[:, at] * (cdf(x, at) - q[at]), axis=0))

    return find_zeros(excess, ends.min(axis=0), ends.max(axis=0))


def find_zeros(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    accuracy: float = 0.0,
) -> np.ndarray:
    """(M,) zeros of M increasing functions, each between `low` and `high` (M,), or at the end that is nearer to 0.

    `function` takes values (m,), and positions (m,) of the functions that the values are for. The search ends where a
    function is at most `accuracy` from 0.
    """
    from scipy.optimize.elementwise import find_root

    every = np.arange(len(low))
    above = function(high, every) <= 0  # such as by rounding
    between = np.flatnonzero((low < high) & ~above & (function(low, every) < 0))
    zero: np.ndarray = np.where(above, high, low)
    if between.size:
        options = {"args": (between,), "tolerances": {"fatol": accuracy or None}}
        zero[between] = find_root(function, (low[between], high[between]), **options).x
    return zero
