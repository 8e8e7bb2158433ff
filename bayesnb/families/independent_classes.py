"""Families whose classes share no parameters."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Int

from bayesnb.families._typed import map_leaves
from bayesnb.families._types import Array
from bayesnb.families.protocol import Cumulants, Family
from bayesnb.families.variates import Variates


class IndependentClasses(Family):
    """Family in which a row informs the parameters of its own class only."""

    @abstractmethod
    def draw_with_multiplicity(self, variates: Variates, n: int, x: Any, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ) - log base, the row `multiplicity` times among the data.

        Each row and class has independent draws; rows share variates.
        """

    @abstractmethod
    def cumulants_of_terms(self, x: Any) -> Cumulants:
        """(N, C, T) cumulants of the terms of each row over the posterior; base measures may be left out."""

    def draw_log_likelihood(self, variates: Variates, n: int, x: Any, counted_in: Any = None) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ) - log base, the row counted in class `counted_in`, (n, N, C)."""
        if counted_in is None:
            return self.draw_with_multiplicity(variates, n, x, 0.0)
        informed = self.draw_with_multiplicity(variates, n, x, 1.0)
        return jnp.where(counted_in, informed, self.draw_with_multiplicity(variates, n, x, 0.0))

    def log_odds_of_terms(self, x: Any, of: Int[Array, "N"], against: Int[Array, "N"]) -> Cumulants:
        """(N, T) cumulants of the differences between the terms of two classes, which are independent."""
        terms = self.cumulants_of_terms(x)

        def pick(label: Any) -> Cumulants:
            index = jnp.asarray(label)[:, None, None]
            return map_leaves(lambda cumulant: jnp.take_along_axis(cumulant, index, axis=1)[:, 0], terms)

        return pick(of) + pick(against) * -1.0
