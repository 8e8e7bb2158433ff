"""Formulas of small tables that run in NumPy on NumPy arrays, without compilation, and in JAX on JAX's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Float, Int


def is_host(*arrays: Any) -> bool:
    """Whether no argument is a JAX array, so that NumPy can compute with them."""
    return not any(isinstance(array, jax.Array) for array in arrays)


def namespace(*arrays: Any) -> Any:
    """Return the module numpy if no argument is a JAX array, else jax.numpy."""
    return np if is_host(*arrays) else jnp


def gammaln(x: Any) -> Any:
    """Compute log |Γ(x)| elementwise, by SciPy unless x is a JAX array."""
    return scipy.special.gammaln(x) if is_host(x) else jax.scipy.special.gammaln(x)


def log_sigmoid(x: Any) -> Any:
    """Compute the log sigmoid -log(1 + e^-x) elementwise, by NumPy unless x is a JAX array."""
    return -np.logaddexp(0.0, -np.asarray(x)) if is_host(x) else jax.nn.log_sigmoid(x)


def logsumexp(x: Any, axis: int) -> Any:
    """Compute log Σ exp(x) over an axis, by NumPy unless x is a JAX array; -inf where all entries are."""
    if not is_host(x):
        return jax.nn.logsumexp(x, axis=axis)
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(x - top), axis=axis)) + np.squeeze(top, axis)


def segment_sum(values: Float[Any, "C E"], index: Int[Any, "E"], n: int) -> Float[Any, "C n"]:
    """(C, n) sums, for each class, of the entries of `values` with each index 0 … n - 1; larger indices are dropped."""
    if is_host(values, index):
        return np.stack([np.bincount(index, counts_of_class, n)[:n] for counts_of_class in values])
    return jax.ops.segment_sum(values.T, index, n).T


def log_segment_sum(values: Float[Any, "*C E"], index: Int[Any, "E"], n: int) -> Float[jax.Array, "*C n"]:
    """(…, C, n) log Σ exp(values) over the entries (…, C, E) with each index 0 … n - 1, by JAX without overflow."""
    top = jax.ops.segment_max(values.T, index, n).T
    return top + jnp.log(jax.ops.segment_sum(jnp.exp(values - top[..., index]).T, index, n).T)
