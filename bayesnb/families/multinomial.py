"""Levels of one simplex or several: their counts, and their likelihood, plugged in or integrated out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import jax
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families._namespace import xp
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
        """Copy with `extra` levels of count 0 appended."""
        return LevelCounts(np.pad(self.count, ((0, 0), (0, extra))))

    def level_counts(self, sizes: np.ndarray) -> LevelCounts:
        """Counts of the first `sizes.sum()` levels, without the unused levels that pad the table."""
        return LevelCounts(self.count[:, : sizes.sum()])

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "N"]) -> LevelCounts:
        """Counts with a block of rows added, given class indices (N,) and weights (N,)."""
        return LevelCounts(as_rows(x).weighted_counts(self.count, label, weight))

    @staticmethod
    def log_base(x: object) -> jax.Array:
        """(N,) log multinomial coefficient of each row, 0 for categorical rows."""
        return as_rows(x).log_base()


@pytree
class Multinomial:
    """Likelihood of counts of levels with level probabilities plugged in: `log_theta` (C, L), or draws (n, C, L)."""

    log_theta: Array

    @classmethod
    def from_parameters(cls, theta: Any) -> Self:
        """Likelihood with level probabilities `theta` (…, C, L)."""
        return cls(xp.log(theta))

    @property
    def theta(self) -> jax.Array:
        """Level probabilities (…, C, L)."""
        return xp.exp(self.log_theta)

    def parameters(self) -> dict[str, jax.Array]:
        """Level probabilities by name, {"theta": (…, C, L)}."""
        return {"theta": self.theta}

    def prepare(self, x: object) -> Tabulated:
        """Likelihood with the table rearranged for rows encoded like `x`, to score many blocks of such rows."""
        return Tabulated(as_rows(x).layout(self.log_theta), None, None)

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ x_l log θ_l, without the multinomial coefficient."""
        return self.prepare(x).log_prob(x)

    def terms(self, x: object) -> Float[jax.Array, "N C G"]:
        """(N, C, G) Σ x_l log θ_l over the levels of each group, without the multinomial coefficient."""
        return as_rows(x).dot_terms(self.log_theta)

    def raised(self, x: object, weight: jax.Array) -> Tabulated | None:
        """Likelihood Π_g p(group g | class)^(w_g), `weight` w (G,), if rows have one draw per group; else None."""
        return _raise_groups(as_rows(x), lambda: self.log_theta, weight)

    def cells(self, x: jax.Array) -> jax.Array:
        """(…, L) x_l log θ_l of each level, for counts x (…, L) and the parameters of one class."""
        return linear(x, self.log_theta)

    def log_likelihood(self, statistics: LevelCounts) -> Float[jax.Array, "*C L"]:
        """(C, L) Σ n log θ of all counted rows, by class and level."""
        return linear(statistics.count, self.log_theta)


@pytree
class Tabulated(ReadyLikelihood):
    """Likelihood whose tables are rearranged for one kind of rows: Σ x_l log θ_l, or a `Ratio` if it has a `term`."""

    tables: Any
    multiplicity: Any
    term: Callable[[Any], Term] | None = static()

    def log_prob(self, x: object) -> jax.Array:
        """(N, C) log p(row | class) of rows of the kind of the tables, without the multinomial coefficient."""
        rows = as_rows(x)
        return rows.dot(self.tables) if self.term is None else rows.contrast(self.term(self.multiplicity), self.tables)


@pytree
class Ratio:
    """Dirichlet-multinomial likelihood Σ_l f(x_l, α_l) - Σ_g f(t_g, α₀_g): integrated out, or plugged in for each row.

    `multiplicity` (C,) is the number of times that the row stands among the data already, and `term` makes f of it;
    then `concentration` and `total` have α of the prior in the first C rows, and counts in the C rows below. None: f of
    the posterior as it is.
    """

    concentration: Array
    total: Array
    group: Array
    multiplicity: Any
    term: Callable[[Any], Term] = static()

    def prepare(self, x: object) -> Tabulated:
        """Likelihood with the tables rearranged for rows encoded like `x`, to score many blocks of such rows."""
        return Tabulated(self._rows(x).contrast_layout(self._contrast()), self.multiplicity, self.term)

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class), integrated out or plugged in by `term`, without multinomial coefficient."""
        return self.prepare(x).log_prob(self._rows(x))

    def terms(self, x: object) -> Float[jax.Array, "N C G"]:
        """(N, C, G) log p(levels of each group | class), without the multinomial coefficient."""
        return self._rows(x).contrast_terms(self._contrast())

    def raised(self, x: object, weight: jax.Array) -> Tabulated | None:
        """Likelihood Π_g p(group g | class)^(w_g), `weight` w (G,), if rows have one draw per group; else None."""
        return _raise_groups(self._rows(x), self._contrast().single, weight)

    def _rows(self, x: object) -> CountRows:
        """Rows x as `CountRows`; an (N, L) array is read as counts of the levels."""
        return as_rows(x, self.group, self.total.shape[1])

    def _contrast(self) -> Contrast:
        """Return f, α, totals α₀ and groups of this ratio, for the rows' `contrast_layout` and `contrast_terms`."""
        return Contrast(self.term(self.multiplicity), self.concentration, self.total, self.group)


def _raise_groups(x: Any, table: Callable[[], Any], weight: jax.Array) -> Tabulated | None:
    """Likelihood with each group's log probabilities times `weight` (G,) if rows have one draw per group, else None."""
    return Tabulated(x.layout(x.weigh(xp.asarray(table()), weight)), None, None) if hasattr(x, "weigh") else None
