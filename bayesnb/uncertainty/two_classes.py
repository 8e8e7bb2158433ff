"""P(class | row, θ) of two classes: its logit is a mixture of skewed variates, by quantiles and by quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesnb.families.protocol import Cumulants
from bayesnb.uncertainty.skew import skewed, skewness, unskewed

_NODES = 40
_STEPS = 100
_TOLERANCE = 1e-10
_SQRT_2PI = (2.0 * np.pi) ** 0.5
_FARTHEST = 1e100  # stands for an infinite logit
_NARROWEST = 1e-40  # stands for an sd of 0


def interval(weight: np.ndarray, scores: Cumulants, tails: np.ndarray) -> np.ndarray:
    """(N, 2, 2): lower and upper ends for either class."""
    from scipy.special import expit

    low, high = _mixture_quantiles(weight, *_logit(scores), tails)
    return expit(np.stack([-high, low, -low, high], axis=1)).reshape(-1, 2, 2)


def quadrature(weight: np.ndarray, scores: Cumulants, log_proba: np.ndarray) -> np.ndarray:
    """Entropies of two classes by Gauss–Hermite quadrature over the components of the mixture."""
    from scipy.special import expit, ndtr, xlogy

    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    logit, sd, skew = _logit(scores)
    z = logit[..., None] + sd[..., None] * skewed(nodes, skew[..., None])
    share = weight[..., None] * (weights / weights.sum())
    p, q = (np.sum(share * expit(side), axis=(1, 2)) for side in (z, -z))
    total = 0.0 - xlogy(p, p) - xlogy(q, q)
    # Entropy of Bernoulli(expit(z)): log(1 + e^-|z|) + |z| expit(-|z|).
    z = abs(z)
    aleatoric = np.sum(share * (np.log1p(np.exp(-z)) + z * expit(-z)), axis=(1, 2))
    first = (log_proba[:, 1] <= log_proba[:, 0])[:, None]
    below = ndtr(unskewed(-logit / sd, skew)[0])
    p_top = np.where(first, below, 1.0 - below)
    known_tie = (logit == 0) & (sd == _NARROWEST)
    p_top = np.sum(weight * np.where(known_tie, 1.0, p_top), axis=1)
    return np.stack([total, aleatoric, total - aleatoric, p_top], axis=1)


def _logit(scores: Cumulants) -> tuple[Any, Any, Any]:
    """Mean, sd and skewness (N, K) of the logit of the second class."""
    logit = (scores.mean[..., 1] - scores.mean[..., 0]).clip(-_FARTHEST, _FARTHEST)
    variance = scores.variance[..., 0] + scores.variance[..., 1]
    skew = skewness(variance, scores.third[..., 1] - scores.third[..., 0])
    return logit, np.maximum(variance**0.5, _NARROWEST), skew


def _mixture_quantiles(
    weight: np.ndarray, mean: np.ndarray, sd: np.ndarray, skew: np.ndarray, q: np.ndarray
) -> np.ndarray:
    """(Q, N) quantiles of mixtures of K variates: Newton's method, and bisection where that leaves the bracket."""
    from scipy.special import ndtr, ndtri

    n = len(weight)
    weight, mean, sd, skew = (np.tile(v.T, len(q)) for v in (weight, mean, sd, skew))  # (K, Q · N)
    ends = mean + sd * skewed(np.repeat(ndtri(q), n), skew)
    q = np.repeat(q, n)
    low, high, at = ends.min(axis=0), ends.max(axis=0), np.sum(weight * ends, axis=0)
    todo = np.arange(len(q))
    for _ in range(_STEPS):
        w, s, x = weight[:, todo], sd[:, todo], at[todo]
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            z, slope = unskewed((x - mean[:, todo]) / s, skew[:, todo])
            excess = np.sum(w * ndtr(z), axis=0) - q[todo]
            newton = x - excess / np.sum(w / s * slope * np.exp(-0.5 * z * z), axis=0) * _SQRT_2PI
        below, above = np.where(excess < 0, x, low[todo]), np.where(excess > 0, x, high[todo])
        inside = (newton >= below) & (newton <= above)
        following = np.where(inside, newton, 0.5 * (below + above))
        low[todo], high[todo], at[todo] = below, above, following
        # The error of Newton's method is about the square of its step.
        error = np.where(inside, (following - x) ** 2 / s.min(axis=0), above - below)
        todo = todo[np.minimum(error, above - below) >= _TOLERANCE * (1.0 + abs(x))]
        if not todo.size:
            break
    return at.reshape(-1, n)
