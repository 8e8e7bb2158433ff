"""Standard random variates: what every draw of parameters is a function of."""

from __future__ import annotations

from typing import Any, Protocol

import jax
import jax.numpy as jnp


class Variates(Protocol):
    """A source of independent standard variates, n for each entry of an array."""

    def log_gamma(self, a: Any, n: int) -> jax.Array:
        """(n, *shape of a) logarithms of Gamma(a, 1) variates; -inf where a is 0."""
        ...

    def normal(self, like: Any, n: int) -> jax.Array:
        """(n, *shape of like) standard normal variates."""
        ...


class KeyVariates:
    """From a JAX key; each call takes a new part of it."""

    def __init__(self, key: jax.Array) -> None:
        self._key = key

    def log_gamma(self, a: Any, n: int) -> jax.Array:
        return jax.random.loggamma(self._next(), jnp.asarray(a), (n, *jnp.shape(a)))

    def normal(self, like: Any, n: int) -> jax.Array:
        return jax.random.normal(self._next(), (n, *jnp.shape(like)), jnp.asarray(like).dtype)

    def _next(self) -> jax.Array:
        self._key, part = jax.random.split(self._key)
        return part
