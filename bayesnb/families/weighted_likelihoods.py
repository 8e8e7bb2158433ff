"""Weighted likelihoods: each term, or the whole of a row, to a power."""

from __future__ import annotations

from typing import Any

import jax
from jaxtyping import Float

from bayesnb.families._namespace import xp
from bayesnb.families._pytree import Array, pytree
from bayesnb.families.count_functions import weighted
from bayesnb.families.count_rows import as_rows


@pytree
class Raised:
    """Likelihood Π_t p(x_t | class)^(w_t) with a weight per term, `weight` (T,)."""

    likelihood: Any
    weight: Array

    def prepare(self, x: object) -> Any:
        """Return an equal likelihood as one table if rows encoded like `x` allow it; else itself, unchanged."""
        raised = getattr(self.likelihood, "raised", None)
        return self if raised is None else raised(x, self.weight) or self

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_t w_t log p(x_t | class); -inf if any term is -inf, even beside +inf or NaN."""
        terms = self.terms(x)
        return xp.where(xp.any(xp.isneginf(terms), axis=-1), -xp.inf, xp.sum(terms, axis=-1))

    def terms(self, x: object) -> Float[jax.Array, "N C T"]:
        """(N, C, T) w_t log p(x_t | class); 0 where w_t = 0, and -inf where log p is -inf, also for w_t < 0."""
        return weighted(xp.asarray(self.weight), self.likelihood.terms(x))


@pytree
class Tempered:
    """Likelihood p(row | class)^w with w = `power` · (t + 1)^(-`exponent`) for a row of t draws; None: w = `power`."""

    likelihood: Any
    power: Any
    exponent: Any = None

    def prepare(self, x: object) -> Tempered:
        """Return an equal likelihood with tables rearranged for rows encoded like `x`."""
        return Tempered(self.likelihood.prepare(x), self.power, self.exponent)

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) w log p(row | class)."""
        return weighted(self._row_weight(x), self.likelihood.log_prob(x))

    def terms(self, x: object) -> Float[jax.Array, "N C T"]:
        """(N, C, T) w log p(x_t | class), w the weight of the row by its number of draws; 0 where w = 0."""
        return weighted(self._row_weight(x)[..., None], self.likelihood.terms(x))

    def _row_weight(self, x: object) -> Float[jax.Array, "#N 1"]:
        """(N, 1) exponent w of each row, or (1, 1) if the exponent does not depend on the row's length."""
        return length_power(x, self.power, self.exponent)[:, None]


def length_power(x: object, power: Any, exponent: Any) -> Float[jax.Array, "#N"]:
    """(N,) weight power · (t + 1)^(-exponent) of each row x, t its number of draws; (1,) power without exponent."""
    if exponent is None:
        return xp.asarray(power)[None]
    rows: Any = as_rows(x)
    return power_of_length(rows.length(), power, exponent)


def power_of_length(length: Any, power: Any, exponent: Any) -> Any:
    """(N,) weight power · (t + 1)^(-exponent), given the numbers of draws t `length` (N,); exponent None: power."""
    return power + 0.0 * length if exponent is None else power * (length + 1.0) ** -exponent
