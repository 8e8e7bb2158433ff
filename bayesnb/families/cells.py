"""Rows of numbers, of which some may be missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from bayesnb.families._pytree import pytree

_IN_CACHE = 2**14


@pytree
class Complete:
    """Real-valued rows (N, F) of which no cell is missing: kernels need not look."""

    values: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __jax_array__(self) -> jax.Array:
        return jnp.asarray(self.values)


def observed(x: Any) -> tuple[jax.Array, jax.Array]:
    """Which cells of real-valued rows are observed, and the rows with 0 in the others.

    A NaN must not enter a formula even where its result is not used: its gradient would be NaN.
    """
    complete, x = isinstance(x, Complete), jnp.asarray(x) * jnp.ones(())
    if complete:
        return jnp.ones(x.shape, bool), x  # a constant, which the compiler takes out again
    seen = ~jnp.isnan(x)
    return seen, jnp.where(seen, x, 0.0)


def sum_cells(seen: jax.Array, terms: jax.Array) -> jax.Array:
    """Sum over the features of real-valued rows; a missing cell contributes nothing."""
    return jnp.sum(only(seen, terms), axis=-1)


def only(seen: jax.Array, terms: jax.Array) -> jax.Array:
    """The terms of observed cells; those of missing ones are 0."""
    return jnp.where(seen, terms, 0.0)


def in_pieces(of_rows: Callable[[Any], jax.Array], x: Any, n_classes: int) -> Float[jax.Array, "N C ..."]:
    """(N, C, …) `of_rows` of some rows at a time: where each cell of each class has parameters of its own, they fit
    the cache.
    """
    x = x if isinstance(x, Complete) else jnp.asarray(x)
    n, features = x.shape
    most = max(1, min(n, _IN_CACHE // max(1, n_classes * features)))
    size = 2 ** (most.bit_length() - 1)  # as blocks have, which then need no padding
    pieces = -(-n // size)

    def cut(cells: Any) -> jax.Array:
        return jnp.pad(cells, ((0, pieces * size - n), (0, 0))).reshape(pieces, size, features)

    found = jax.lax.map(of_rows, jax.tree.map(cut, x))
    return found.reshape(pieces * size, *found.shape[2:])[:n]
