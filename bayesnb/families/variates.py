"""Sources of standard random variates, of which every draw of parameters is a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from bayesnb.families._namespace import log_ndtr

TermDraws = tuple[Any, Callable[..., jax.Array]]
"""Variates of n draws, and the function of those of one draw to the terms log p(x_t | class, θ) of rows, (N, C, T)."""


class Variates(Protocol):
    """Source of independent standard random variates: gamma and normal."""

    def log_gamma(self, a: Any, n: int) -> jax.Array:
        """(n, *shape of a) logarithms of Gamma(a, 1) variates; -inf where a is 0."""
        ...

    def normal(self, like: Any, n: int) -> jax.Array:
        """(n, *shape of like) standard normal variates."""
        ...


def draw_log_uniform(variates: Variates, like: Any, n: int) -> jax.Array:
    """(n, *shape of like) logarithms of uniform variates on (0, 1), computed from normal variates."""
    return log_ndtr(variates.normal(like, n))


class Replayer:
    """Variates that were recorded as (gammas, normals), returned call by call in their order."""

    def __init__(self, drawn: tuple[list[jax.Array], list[jax.Array]]) -> None:
        """Keep the recorded (gammas, normals), to be returned in this order."""
        self._gammas, self._normals = map(iter, drawn)

    def log_gamma(self, a: Any, n: int) -> jax.Array:
        """Next recorded array of log gamma variates; the arguments are not used."""
        return next(self._gammas)

    def normal(self, like: Any, n: int) -> jax.Array:
        """Next recorded array of normal variates; the arguments are not used."""
        return next(self._normals)


class KeyVariates:
    """Variates from a JAX key that is split at each call."""

    def __init__(self, key: jax.Array) -> None:
        """Keep the key, to be split at each call."""
        self._key = key

    def log_gamma(self, a: Any, n: int) -> jax.Array:
        """(n, *shape of a) logarithms of Gamma(a, 1) variates; -inf where a is 0."""
        return jax.random.loggamma(self._next(), jnp.asarray(a), (n, *jnp.shape(a)))

    def normal(self, like: Any, n: int) -> jax.Array:
        """(n, *shape of like) standard normal variates."""
        return jax.random.normal(self._next(), (n, *jnp.shape(like)), jnp.asarray(like).dtype)

    def _next(self) -> jax.Array:
        """Split the key; store one half and return the other."""
        self._key, part = jax.random.split(self._key)
        return part
