"""What the prior says by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, xlogy

from bayesnb.arguments import require_integer, require_seed
from bayesnb.encoding import NodeColumns
from bayesnb.families import Dirichlet, Known, LevelCounts, NormalInverseGamma
from bayesnb.fitted import Classifier, require_posterior
from bayesnb.uncertainty import ImproperPosteriorError, require_proper
from bayesnb.uncertainty.variates import log_gamma

_CELLS = 2**21


def prior_predictive(nb: Classifier, draws: int = 1000, seed: int = 0) -> np.ndarray:
    """How sure the prior believes that naive Bayes will be: draws of P(class | row) before any data.

    Each draw takes all parameters θ from the prior, a class from its probabilities, a row of all features from
    p(x | class, θ), and returns P(that class | row, θ), by Bayes' rule with these parameters.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Its prior is used, its levels, and of multinomial features the mean total of the rows, rounded.
    draws : int
    seed : int
        The same seed gives the same draws.

    Returns
    -------
    (draws,) array
        Probabilities of the true class. Their mean is the accuracy, in the long run, of drawing a label from
        P(class | row, θ).

    Raises
    ------
    ImproperPosteriorError
        If the prior is improper: there is nothing to draw from.
    ValueError
        If `draws` is not positive, or the prior is so wide that its draws overflow.

    Notes
    -----
    With many features nearly all draws are close to 1, whatever the prior: independent features add up. "Pooled"
    priors are derived from the data, so under them this is not quite before any.

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> from bayesnb.checking import prior_predictive
    >>> nb = CategoricalNB().fit([["sun"], ["rain"]], ["out", "in"])
    >>> prior_predictive(nb, draws=5).shape
    (5,)
    """
    fitted = require_posterior(nb, "prior_predictive")
    require_integer("draws", draws)
    require_seed(seed)
    encoding, model, statistics = fitted.encoding, fitted.prior, fitted.statistics
    try:
        require_proper(encoding, model)
    except ImproperPosteriorError as error:
        raise ImproperPosteriorError(f"prior_predictive draws from the prior, before any data. {error}") from None
    rng = np.random.default_rng(seed)
    width = len(encoding.classes) * max(np.shape(block.concentration)[1] for block in model.blocks)
    step = max(1, _CELLS // max(1, width))
    parts = [_draw(encoding, model, statistics, min(step, draws - s), rng) for s in range(0, draws, step)]
    found = np.concatenate(parts)
    if np.isnan(found).any():
        raise ValueError(
            "The prior is so wide that its draws overflow float64; raise the concentration of its variances."
        )
    return found


def _draw(encoding: Any, model: Any, statistics: Any, draws: int, rng: np.random.Generator) -> np.ndarray:
    log_class = _log_class(model.class_prior, draws, rng)
    score = log_class
    label = np.argmax(log_class + rng.gumbel(size=log_class.shape), axis=1)
    for columns, family, counted in zip(encoding.blocks, model.blocks, statistics.blocks, strict=True):
        if not isinstance(counted, LevelCounts):
            likelihood = _gaussian if isinstance(family, NormalInverseGamma) else _poisson
            score = score + likelihood(family, label, rng)
        elif columns.kind == "multinomial":
            n_rows = statistics.class_count.sum()
            total = round(float(counted.count.sum() / n_rows)) if n_rows else 0
            score = score + _words(family, total, label, rng)
        else:
            score = score + _levels(columns, family, label, rng)
    with np.errstate(invalid="ignore"):
        return np.exp(score[np.arange(draws), label] - logsumexp(score, axis=1))


def _log_class(class_prior: Dirichlet | Known, draws: int, rng: np.random.Generator) -> np.ndarray:
    """(S, C) log probabilities of the classes."""
    if isinstance(class_prior, Known):
        return np.repeat(np.asarray(class_prior.log_prob), draws, axis=0)
    return _log_theta(class_prior, draws, rng)[:, 0]


def _levels(columns: Any, family: Dirichlet, label: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One level of each group by the Gumbel trick, and its log probability in each class."""
    log_theta = _log_theta(family, len(label), rng)
    if not log_theta.shape[2]:
        return np.zeros(log_theta.shape[:2])
    start, group = _starts(family)
    noisy = log_theta[np.arange(len(label)), label]
    noisy = noisy + rng.gumbel(size=noisy.shape)
    best = np.maximum.reduceat(noisy, start, axis=1)[:, group]
    chosen = noisy == best
    if isinstance(columns, NodeColumns):
        chosen = columns.realized(chosen)
    return np.where(chosen[:, None], log_theta, 0.0).sum(axis=2)


def _words(family: Dirichlet, total: int, label: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    log_theta = _log_theta(family, len(label), rng)
    count = rng.multinomial(total, np.exp(log_theta[np.arange(len(label)), label]))
    return np.where(count[:, None] > 0, count[:, None] * log_theta, 0.0).sum(axis=2)


def _gaussian(family: NormalInverseGamma, label: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    loc, kappa, a, b = (np.asarray(v) for v in (family.loc, family.kappa, family.concentration, family.rate))
    shape = (len(label), *loc.shape)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sigma2 = b * np.exp(-log_gamma(rng, a, shape))
        mu = loc + np.sqrt(sigma2 / kappa) * rng.standard_normal(shape)
        at = (np.arange(len(label)), label)
        x = mu[at] + np.sqrt(sigma2[at]) * rng.standard_normal(mu[at].shape)
        return -0.5 * (np.log(2 * np.pi * sigma2) + (x[:, None] - mu) ** 2 / sigma2).sum(axis=2)


def _poisson(family: Any, label: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    a, b = np.asarray(family.concentration), np.asarray(family.rate)
    rate = np.exp(log_gamma(rng, a, (len(label), *a.shape))) / b
    x = rng.poisson(rate[np.arange(len(label)), label])[:, None]
    return (xlogy(x, rate) - rate).sum(axis=2)


def _log_theta(family: Dirichlet, draws: int, rng: np.random.Generator) -> np.ndarray:
    """(S, C, L) log of normalised gamma variates."""
    alpha = np.asarray(family.concentration)
    drawn = log_gamma(rng, alpha, (draws, *alpha.shape))
    if not alpha.shape[1]:
        return drawn
    start, group = _starts(family)
    top = np.maximum.reduceat(drawn, start, axis=2)[..., group]
    return drawn - top - np.log(np.add.reduceat(np.exp(drawn - top), start, axis=2))[..., group]


def _starts(family: Dirichlet) -> tuple[np.ndarray, np.ndarray]:
    """Where the groups that have levels begin, and which of them each level is in."""
    first = np.diff(np.asarray(family.group), prepend=-1) != 0
    return np.flatnonzero(first), np.cumsum(first) - 1
