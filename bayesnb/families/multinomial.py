"""Levels of one simplex or several: their counts, and their likelihood, plugged in or integrated out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families._pytree import Array, pytree, static
from bayesnb.families.count_functions import Contrast, Term, linear
from bayesnb.families.count_rows import CountRows, as_rows
from bayesnb.families.protocol import ReadyLikelihood
from bayesnb.families.statistics import Additive


@pytree
class LevelCounts(Additive):
    """Number of times that each level occurred in each class: `count` (C, L)."""

    count: Any

    def pad(self, extra: int) -> LevelCounts:
        """Add `extra` levels, with counts of 0."""
        return LevelCounts(np.pad(self.count, ((0, 0), (0, extra))))

    def level_counts(self, sizes: np.ndarray) -> LevelCounts:
        """Counts of the levels of groups with these sizes, without the room behind them."""
        return LevelCounts(self.count[:, : sizes.sum()])

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "N"]) -> LevelCounts:
        """Add a block of rows with class indices and weights."""
        return LevelCounts(as_rows(x).weighted_counts(self.count, label, weight))

    @staticmethod
    def log_base(x: object) -> jax.Array:
        """(N,) log multinomial coefficient of each row."""
        return as_rows(x).log_base()


@pytree
class Multinomial:
    """Level probabilities plugged in: `log_theta` (C, L)."""

    log_theta: Array

    @classmethod
    def from_parameters(cls, theta: Any) -> Self:
        """Likelihood with level probabilities (C, L)."""
        return cls(jnp.log(theta))

    @property
    def theta(self) -> jax.Array:
        """Level probabilities (C, L)."""
        return jnp.exp(self.log_theta)

    def parameters(self) -> dict[str, jax.Array]:
        """Level probabilities by name."""
        return {"theta": self.theta}

    def prepare(self, x: object) -> Tabulated:
        """Lay the table out for rows of the kind of `x`."""
        return Tabulated(as_rows(x).layout(self.log_theta))

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ x_l log θ_l, without the multinomial coefficient."""
        return self.prepare(x).log_prob(x)

    def terms(self, x: object) -> Float[jax.Array, "N C G"]:
        """(N, C, G) Σ x_l log θ_l over the levels of each group."""
        return as_rows(x).dot_terms(self.log_theta)

    def raised(self, x: object, weight: jax.Array) -> Tabulated | None:
        """Likelihood with each group to a power, weight (G,), laid out for rows of one draw a group; else None."""
        return _raised(as_rows(x), lambda: self.log_theta, weight)

    def cells(self, x: jax.Array) -> jax.Array:
        """(…, L) x_l log θ_l of each level."""
        return linear(x, self.log_theta)

    def log_likelihood(self, statistics: LevelCounts) -> Float[jax.Array, "*C L"]:
        """(C, L) Σ n log θ."""
        return linear(statistics.count, self.log_theta)


@pytree
class Tabulated(ReadyLikelihood):
    """`Multinomial` likelihood laid out for one kind of rows."""

    tables: Any

    def log_prob(self, x: object) -> jax.Array:
        """(N, C) Σ x_l log θ_l, without the multinomial coefficient."""
        return as_rows(x).dot(self.tables)


@pytree
class Ratio:
    """Σ_l f(x_l, α_l) - Σ_g f(t_g, α₀_g): level probabilities integrated out, or plugged in for each row's posterior.

    `multiplicity` (C,) is the number of times that the row stands among the data already, and `term` makes f of it;
    then `concentration` and `total` have α of the prior in the first C rows, and counts in the C rows below. None: f of
    the posterior as it is.
    """

    concentration: Array
    total: Array
    group: Array
    multiplicity: Any
    term: Callable[[Any], Term] = static()

    def prepare(self, x: object) -> Contrasted:
        """Lay the tables out for rows of the kind of `x`."""
        return Contrasted(self._rows(x).contrast_layout(self._contrast()), self.multiplicity, self.term)

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class), without the multinomial coefficient."""
        return self.prepare(x).log_prob(self._rows(x))

    def terms(self, x: object) -> Float[jax.Array, "N C G"]:
        """(N, C, G) log p(levels of the group | class), without the multinomial coefficient."""
        return self._rows(x).contrast_terms(self._contrast())

    def raised(self, x: object, weight: jax.Array) -> Tabulated | None:
        """Likelihood with each group to a power, weight (G,), laid out for rows of one draw a group; else None."""
        return _raised(self._rows(x), self._contrast().single, weight)

    def _rows(self, x: object) -> CountRows:
        return as_rows(x, self.group, self.total.shape[1])

    def _contrast(self) -> Contrast:
        return Contrast(self.term(self.multiplicity), self.concentration, self.total, self.group)


def _raised(x: Any, table: Callable[[], Any], weight: jax.Array) -> Tabulated | None:
    return Tabulated(x.layout(x.weigh(jnp.asarray(table()), weight))) if hasattr(x, "weigh") else None


@pytree
class Contrasted(ReadyLikelihood):
    """`Ratio` likelihood laid out for one kind of rows."""

    tables: Any
    multiplicity: Any
    term: Callable[[Any], Term] = static()

    def log_prob(self, x: object) -> jax.Array:
        """(N, C) log p(row | class), without the multinomial coefficient."""
        return as_rows(x).contrast(self.term(self.multiplicity), self.tables)
