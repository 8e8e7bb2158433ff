"""Closed-form cumulants of a row's log-likelihood under the posterior of the parameters."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp

from bayesnb.capabilities import require_capability
from bayesnb.families._pytree import pytree
from bayesnb.families.protocol import Cumulants, LogLikelihoodCumulants
from bayesnb.families.special import polygammas
from bayesnb.families.weighted_likelihoods import length_power
from bayesnb.model import NaiveBayes, TermWeights, log_normalize


@pytree
class RowCumulants:
    """Cumulants (N, C) of log p(row | class, θ), and `own` where (row, class) is among the data.

    `log_proba` (N, C) is log P(class | row), parameters integrated out: the probability that it is this
    class whose parameters the row informs.
    """

    log_proba: Any
    other: Cumulants
    own: Cumulants


@jax.jit
def predictive(model: NaiveBayes, x: tuple[Any, ...]) -> jax.Array:
    """(N, C) log P(class | row), parameters integrated out."""
    return log_normalize(model.log_joint(x))


@jax.jit
def row_cumulants(model: NaiveBayes, x: tuple[Any, ...]) -> RowCumulants:
    """Of each row of a block; features are independent given the class, so that cumulants add.

    Of weighted terms those of scores, and none that know the row: what they say is no distribution of rows.
    """
    if model.weights is not None:
        parts = [_weighted(model.weights, b, family, rows) for b, (family, rows) in enumerate(_pairs(model, x))]
        every = reduce(operator.add, parts)
        return RowCumulants(predictive(model, x), every, every)
    other, own = (
        reduce(operator.add, (family.log_likelihood_cumulants(rows, multiplicity) for family, rows in _pairs(model, x)))
        for multiplicity in (0.0, 1.0)
    )
    return RowCumulants(predictive(model, x), other, own)


def _weighted(weights: TermWeights, b: int, family: Any, rows: Any) -> Cumulants:
    """κ_k = Σ_t w_tᵏ κ_k,t of the terms of block b."""
    weight = weights.blocks[b]
    if jnp.ndim(weight):
        return (family.cumulants_of_terms(rows) * weight).sum()
    return family.log_likelihood_cumulants(rows) * length_power(rows, weight, weights.exponents[b])[:, None]


def _pairs(model: NaiveBayes, x: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    families = (require_capability(family, LogLikelihoodCumulants) for family in model.blocks)
    return zip(families, x, strict=True)


def class_cumulants(class_prior: Any, multiplicity: jax.Array) -> Cumulants:
    """Of log π_c up to what all classes share, with `multiplicity` (…, C) more rows of each class.

    Of a Dirichlet ψ(α_c), ψ₁(α_c) and ψ₂(α_c): of differences between classes these give the exact moments.
    """
    if class_prior.fixed:
        log_prob = jnp.broadcast_to(jnp.asarray(class_prior.log_prob)[0], multiplicity.shape)
        return Cumulants(log_prob, jnp.zeros_like(log_prob), jnp.zeros_like(log_prob))
    alpha = jnp.asarray(class_prior.concentration)[0] + multiplicity
    return Cumulants(*polygammas(alpha))


def given_data(model: NaiveBayes, row: RowCumulants) -> tuple[jax.Array, Cumulants]:
    """Weight (N, 1) and cumulants (N, 1, C) of the scores log π_c + log p(row | c, θ), θ | D."""
    n, n_classes = row.log_proba.shape
    scores = row.other + class_cumulants(model.class_prior, jnp.zeros(n_classes))
    if model.weights is not None:
        scores = replace(scores, mean=scores.mean + model.weights.class_bias)
    return jnp.ones((n, 1)), jax.tree.map(lambda m: m[:, None], scores)


def given_row(model: NaiveBayes, row: RowCumulants) -> tuple[jax.Array, Cumulants]:
    """The same for θ | D, row: a mixture over the class k of the row.

    Weight P(k | row, D) (N, K) and cumulants (N, K, C) of the scores given θ | D, (row, k).
    """
    own = jnp.eye(row.log_proba.shape[1], dtype=bool)
    rows = jax.tree.map(lambda a, b: jnp.where(own, a[:, None], b[:, None]), row.own, row.other)
    return jnp.exp(row.log_proba), rows + class_cumulants(model.class_prior, own.astype(row.log_proba.dtype))
