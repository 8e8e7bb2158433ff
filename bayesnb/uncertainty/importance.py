"""Draws of parameters or hyperparameters as weighted by a row: p(row | draw)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb._util.warnings import warn
from bayesnb.model import JointLikelihood, NaiveBayes, log_normalize

_LEAST_SIZE = 100  # beyond each end of a 90% interval are five draws


@jax.jit
def joint_of_draws(draws: JointLikelihood, x: tuple[Any, ...]) -> jax.Array:
    """(S, N, C) log p(class, row | draw): class probabilities (S, C), and likelihoods of so many more classes."""
    joint = JointLikelihood(jnp.ravel(draws.log_class), draws.likelihoods).prepare(x).log_joint(x)
    return jnp.reshape(joint, (-1, *draws.log_class.shape)).swapaxes(0, 1)


@jax.jit
def joint_given(model: NaiveBayes, x: tuple[Any, ...]) -> jax.Array:
    """(S, N, C) log p(class, row | D, φ_s), parameters integrated out, of S posteriors as one over S · C classes."""
    predictives = [family.predictive() for family in model.blocks]
    return joint_of_draws(model.weighted(jnp.asarray(model.class_prior.mean().log_theta), predictives), x)


@jax.jit
def log_row(joint: jax.Array) -> jax.Array:
    """(S, N) log p(row | draw), the weights of the draws, from log p(class, row | draw) (S, N, C)."""
    return jax.nn.logsumexp(joint, axis=2)


@jax.jit
def log_proba(joint: jax.Array) -> jax.Array:
    """(S, N, C) log P(class | row, draw)."""
    return log_normalize(joint)


@jax.jit(static_argnames="output")
def of_average(joint: jax.Array, output: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Apply `output` to log of the average (N, C) of p(class, row | draw)."""
    return output(jax.nn.logsumexp(joint, axis=0) - jnp.log(joint.shape[0]))


def effective_size(log_weight: np.ndarray) -> np.ndarray:
    """(N,) effective sample size (Σw)²/Σw² of S draws with weights (S, N) (Kish 1965)."""
    weight = _relative(log_weight)
    return weight.sum(axis=0) ** 2 / (weight**2).sum(axis=0)


def resampled(log_weight: np.ndarray) -> np.ndarray:
    """(S, N) indices of S draws, systematically, with probabilities in proportion to the weights of each row."""
    n_draws, weight = len(log_weight), _relative(log_weight)
    below = np.cumsum(weight, axis=0) / weight.sum(axis=0)
    at = (np.arange(n_draws) + 0.5) / n_draws
    return np.stack([np.searchsorted(column, at) for column in below.T], axis=1).clip(0, n_draws - 1)


def warn_of_collapse(size: np.ndarray, n_draws: int) -> None:
    """Warn of rows whose effective sample size (N,) is low."""
    low = size < min(_LEAST_SIZE, n_draws / 2)
    if low.any():
        row = int(np.nanargmin(size))
        warn(
            f"{int(low.sum())} of {len(size)} rows rest on few of the {n_draws} draws, which count by p(row | draw): "
            f"the least effective sample size is {size[row]:.1f} (row {row}), and what is said of these rows is Monte "
            "Carlo error for the most part; more draws help in few dimensions only. Pass what posterior_draws, "
            "to_arviz or run_nuts returned for this very model, as it is, or leave draws= out."
        )


def _relative(log_weight: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.exp(log_weight - log_weight.max(axis=0))
