"""Families of levels whose structure is unknown: averages over cuts, contexts or trees, given the counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import jax
import numpy as np

from bayesnb.families._namespace import xp
from bayesnb.families._pytree import Array
from bayesnb.families.count_rows import CountRows
from bayesnb.families.dirichlet import Dirichlet, n_free_levels, simulate_levels
from bayesnb.families.multinomial import LevelCounts, Multinomial
from bayesnb.families.one_hot import rows_of_levels
from bayesnb.families.protocol import Family


class AveragedStructures(Family):
    """Bayesian average over structures (cuts, contexts or trees), stored as prior concentrations and counts alone.

    Fields are `concentration` (C, L), of the prior, `count` (C, L), 0 for a prior, and `group` (L,) of each level.
    """

    statistics: ClassVar[type] = LevelCounts
    likelihood: ClassVar[type] = Multinomial
    least: ClassVar[dict[str, float]] = {"concentration": 0.0}

    concentration: Array
    count: Array
    group: Array
    num_groups: Any

    def update(self, statistics: LevelCounts) -> Self:
        """Posterior with the counts of the rows added; probabilities of structures are functions of the counts."""
        return self.with_fields(self.concentration, self.count + statistics.count)

    def scale(self, factor: float | Array) -> Self:
        """Prior with α and n multiplied by `factor`; prior odds of structures stay."""
        return self.with_fields(self.concentration * factor, self.count * factor)

    def log_base(self, x: object) -> jax.Array:
        """(N,) log multinomial coefficient of each row."""
        return self.rows(x).log_base()

    def with_fields(self: Any, concentration: Any, count: Any) -> Any:
        """Copy with other concentrations and counts, (C, L) each."""
        return replace(self, concentration=concentration, count=count)

    def posterior_concentration(self) -> jax.Array:
        """(C, L) α + n of each level."""
        return xp.asarray(self.concentration) + self.count

    def rows(self, x: object) -> CountRows:
        """Rows x as `CountRows`; an (N, G) array is read as codes of levels, an (N, L) array as counts."""
        return rows_of_levels(x, self.group, self.num_groups)


class AveragedTables(AveragedStructures):
    """Average over structures whose predictive is one table of levels: a row has one level in each group."""

    def predictive(self, multiplicity: Array | None = None) -> Multinomial:
        """Likelihood with parameters integrated out, equal to `mean` because a row has one level per feature.

        With `multiplicity` (C,) each row is first added to each class's data that many times.
        """
        return self.mean(multiplicity)

    def improper(self) -> Dirichlet:
        """Improper Dirichlet prior with α = 0 of the finest structure, full tables."""
        return Dirichlet(xp.zeros(xp.shape(self.concentration)), self.group, self.num_groups)

    def n_free(self) -> int:
        """Number of free parameters of the finest structure, with a probability for every level in full tables."""
        return n_free_levels(self)

    def pseudo_count(self) -> dict[str, Any]:
        """NaN for each level, {"theta": (C, L)}: the posterior mean is not linear in the counts."""
        return {"theta": xp.full(xp.shape(self.concentration), xp.nan)}

    def simulate(self, likelihood: Multinomial, rng: np.random.Generator, total: int | np.ndarray = 1) -> np.ndarray:
        """(S, L) of 0 and 1: one level drawn from each group, for each of S rows of level probabilities.

        `total` is not used.
        """
        return simulate_levels(np.asarray(likelihood.log_theta), np.asarray(self.group), rng)
