"""Terms of rows that are computed elsewhere, such as by other classifiers: a family without parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import jax
import numpy as np
from jaxtyping import Float

from bayesnb.families.arrays import Array, pytree, xp
from bayesnb.families.protocol import Additive, Cumulants, IndependentClasses, ReadyLikelihood, Variates, lacking


@pytree
class NoCounts(Additive):
    """Statistics of rows from which nothing is counted: `count` (C, 0)."""

    count: Array

    def observe(self, x: object, label: object, weight: object) -> Self:
        """Return the statistics unchanged."""
        return self

    @staticmethod
    def log_base(x: Array) -> Float[jax.Array, "N"]:
        """(N,) zeros."""
        return xp.zeros(x.shape[0])


@pytree
class GivenLikelihood(ReadyLikelihood):
    """Likelihood whose terms are the rows themselves, (N, C, T)."""

    @classmethod
    def from_parameters(cls) -> Self:
        """Likelihood of no parameters."""
        return cls()

    def parameters(self) -> dict[str, jax.Array]:
        """Return {}: there are no parameters."""
        return {}

    def log_likelihood(self, statistics: NoCounts) -> Array:
        """(C, 0) log likelihood of the counted rows, of which there are no counts."""
        return statistics.count

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) sums of the terms."""
        return xp.sum(self.terms(x), axis=-1)

    def terms(self, x: object) -> Float[jax.Array, "N C T"]:
        """(N, C, T) terms, the rows themselves."""
        return xp.asarray(x)


@pytree
class GivenTerms(IndependentClasses):
    """Family without parameters, whose rows are arrays (N, C, T) of terms log p(x_t | class) up to a factor per row.

    Parameters
    ----------
    parameters : (C, 0) array
        No parameters of each class.
    """

    statistics: ClassVar[type] = NoCounts
    likelihood: ClassVar[type] = GivenLikelihood

    parameters: Array

    @classmethod
    def of_classes(cls, n_classes: int) -> Self:
        """Family of `n_classes` classes."""
        return cls(np.zeros((n_classes, 0)))

    def update(self, statistics: NoCounts) -> Self:
        """Return the family unchanged, as there are no parameters to learn."""
        return self

    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Return the family unchanged, as there are no hyperparameters."""
        return self

    def scale(self, factor: float | Array) -> Self:
        """Return the family unchanged, as the prior has no pseudo-observations."""
        return self

    def improper(self) -> Self:
        """Return the family unchanged, as nothing is estimated."""
        return self

    def log_evidence(self, statistics: NoCounts) -> jax.Array:
        """(C, 0) log evidence of nothing."""
        return xp.asarray(self.parameters)

    def proper(self) -> jax.Array:
        """(C, 0) of bool."""
        return xp.ones_like(xp.asarray(self.parameters), bool)

    def n_free(self) -> int:
        """Number of free parameters: 0."""
        return 0

    def draw(self, variates: Variates, n: int) -> GivenLikelihood:
        """Return the likelihood, of which all draws are alike."""
        return GivenLikelihood()

    def predictive(self, multiplicity: Array | None = None) -> GivenLikelihood:
        """Return the likelihood, whatever rows are added to the data."""
        return GivenLikelihood()

    mean = mode = predictive

    def variance(self) -> dict[str, Any]:
        """Return {}: there are no parameters."""
        return {}

    marginals = pseudo_count = variance
    simulate = lacking("Terms of experts are no distribution from which rows can be drawn. Pass nb.estimator_ instead.")

    def draw_with_multiplicity(self, variates: Variates, n: int, x: object, multiplicity: float) -> jax.Array:
        """(n, N, C) copies of the sums of the terms."""
        total = GivenLikelihood().log_prob(x)
        return xp.broadcast_to(total, (n, *total.shape))

    def log_likelihood_cumulants(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C) means, which are the sums of the terms, and further cumulants, which are 0."""
        return self.cumulants_of_terms(x).sum()

    def cumulants_of_terms(self, x: object) -> Cumulants:
        """(N, C, T) means, which are the terms, and further cumulants, which are 0."""
        terms = xp.asarray(x)
        return Cumulants(terms, xp.zeros_like(terms), xp.zeros_like(terms))
