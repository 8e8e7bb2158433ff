"""Likelihoods to powers: each term, or all of a row, counts for more or for less than once."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from bayesnb.families._pytree import pytree
from bayesnb.families.count_matrix import as_rows
from bayesnb.families.protocol import Prepared
from bayesnb.families.terms import weighted


@pytree
class Raised:
    """Π_t p(x_t | class)^(w_t): `weight` (T,)."""

    likelihood: Any
    weight: Any

    def prepare(self, x: Any) -> Prepared:
        """Where terms are looked up in a table, that of their powers."""
        raised = getattr(self.likelihood, "raised", None)
        return self if raised is None else raised(x, self.weight) or self

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_t w_t log p(x_t | class); an impossible term outweighs a point mass."""
        terms = self.terms(x)
        return jnp.where(jnp.any(jnp.isneginf(terms), axis=-1), -jnp.inf, jnp.sum(terms, axis=-1))

    def terms(self, x: Any) -> Float[jax.Array, "N C T"]:
        """(N, C, T) w_t log p(x_t | class)."""
        return weighted(jnp.asarray(self.weight), self.likelihood.terms(x))


@pytree
class Tempered:
    """p(row | class)^w, w = `power` · (t + 1)^(-`exponent`) of a row of t draws; None: it does not change with them."""

    likelihood: Any
    power: Any
    exponent: Any = None

    def prepare(self, x: Any) -> Tempered:
        return Tempered(self.likelihood.prepare(x), self.power, self.exponent)

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) w log p(row | class)."""
        return weighted(self._of_rows(x), self.likelihood.log_prob(x))

    def terms(self, x: Any) -> Float[jax.Array, "N C T"]:
        """(N, C, T) w log p(x_t | class)."""
        return weighted(self._of_rows(x)[..., None], self.likelihood.terms(x))

    def _of_rows(self, x: Any) -> Float[jax.Array, "#N 1"]:
        return length_power(x, self.power, self.exponent)[:, None]


def length_power(x: Any, power: Any, exponent: Any) -> Float[jax.Array, "#N"]:
    """(N,) or (1,) power · (t + 1)^(-exponent), t the number of draws that each row is."""
    if exponent is None:
        return jnp.reshape(power, (1,))
    return of_length(as_rows(x).length(), power, exponent)


def of_length(length: Any, power: Any, exponent: Any) -> Any:
    """(N,) the same, of numbers of draws t."""
    return power + 0.0 * length if exponent is None else power * (length + 1.0) ** -exponent
