"""Closed-form moments of a row's log-likelihood under the posterior of the parameters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import digamma

from bayesnb.families import Known
from bayesnb.families._pytree import pytree
from bayesnb.families.special import trigamma
from bayesnb.model import NaiveBayes, log_normalize


@pytree
class RowMoments:
    """Mean and variance (N, C) of log p(row | class, θ); `own_…` where (row, class) is among the data.

    `log_proba` (N, C) is log P(class | row), parameters integrated out: the probability that it is this
    class whose parameters the row informs.
    """

    log_proba: Any
    mean: Any
    variance: Any
    own_mean: Any
    own_variance: Any


@jax.jit
def row_moments(model: NaiveBayes, x: tuple[Any, ...]) -> RowMoments:
    """Of each row of a block; features are independent given the class, so that moments add."""
    log_proba = log_normalize(model.log_joint(x))
    moments = [
        sum_moments([f.log_likelihood_moments(rows, added) for f, rows in zip(model.blocks, x, strict=True)])
        for added in (0.0, 1.0)
    ]
    return RowMoments(log_proba, *moments[0], *moments[1])


def sum_moments(parts: list[tuple[jax.Array, jax.Array]]) -> tuple[jax.Array, jax.Array]:
    return sum((p[0] for p in parts), jnp.zeros(())), sum((p[1] for p in parts), jnp.zeros(()))


def class_moments(class_prior: Any, added: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of log π_c up to what all classes share, with `added` (…, C) more rows of each class.

    Of a Dirichlet ψ(α_c) and ψ₁(α_c): of differences between classes these are the exact moments.
    """
    if isinstance(class_prior, Known):
        log_prob = jnp.broadcast_to(jnp.asarray(class_prior.log_prob)[0], added.shape)
        return log_prob, jnp.zeros_like(log_prob)
    alpha = jnp.asarray(class_prior.concentration)[0] + added
    return digamma(alpha), trigamma(alpha)


def given_data(model: NaiveBayes, moments: RowMoments) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Weight (N, 1), mean and variance (N, 1, C) of the scores log π_c + log p(row | c, θ), θ | D."""
    mean, variance = class_moments(model.class_prior, jnp.zeros(moments.mean.shape[-1]))
    weight = jnp.ones((moments.mean.shape[0], 1))
    return weight, (moments.mean + mean)[:, None], (moments.variance + variance)[:, None]


def given_row(model: NaiveBayes, moments: RowMoments) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The same for θ | D, row: a mixture over the class k of the row.

    Weight P(k | row, D) (N, K), mean and variance (N, K, C) of the scores given θ | D, (row, k).
    """
    own = jnp.eye(moments.mean.shape[-1], dtype=bool)
    mean, variance = class_moments(model.class_prior, own.astype(moments.mean.dtype))
    mean = mean + jnp.where(own, moments.own_mean[:, None], moments.mean[:, None])
    variance = variance + jnp.where(own, moments.own_variance[:, None], moments.variance[:, None])
    return jnp.exp(moments.log_proba), mean, variance
