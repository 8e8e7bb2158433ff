"""Empirical Bayes: priors that are functions of the statistics, and leave-one-out readings that derive them again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, cast, final

import jax.numpy as jnp

from bayesnb.families._pytree import Array, pytree, static
from bayesnb.families.independent_cells import OfEachRow, with_axis_of_rows
from bayesnb.families.number_rows import observed
from bayesnb.families.protocol import Likelihood
from bayesnb.families.statistics import pooled


class EmpiricalPrior(ABC):
    """Prior as a function of the statistics of each class, and of all classes merged into one.

    It computes in the module of its arrays only: NumPy on the host, JAX in a kernel.
    """

    least: ClassVar[dict[str, float]] = {}
    """Smallest value of each field that users may give."""
    tunable: ClassVar[dict[str, str]] = {}
    """Hyperparameters for the strength of the prior, and the field that each one is about."""
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Values of fields that are words."""

    @abstractmethod
    def __call__(self, statistics: Any, together: Any) -> Any:
        """Prior, given the statistics of each class and of all classes together."""

    @final
    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Return this prior with some hyperparameters of `tunable` replaced."""
        fields = {field: values[name] for name, field in self.tunable.items() if name in values}
        changed: Self = replace(cast(Any, self), **fields)
        return changed

    @final
    def update_keeping_prior(self, statistics: Any) -> Empirical:
        """Posterior for readings that leave rows out of the data and of the prior."""
        return Empirical(self, statistics)


@pytree
class Empirical:
    """Posterior under an empirical prior, for readings that leave rows out of both."""

    classes_share_parameters: ClassVar[bool] = True
    read_on_host: ClassVar[bool] = True

    prior: Any
    statistics: Any

    def mean(self, multiplicity: Any) -> Likelihood:
        """Likelihood at the posterior means, of each row's own posterior with a `multiplicity` (C,)."""
        return Refitted(self.prior, self.statistics, multiplicity, "mean")

    def predictive(self, multiplicity: Any) -> Likelihood:
        """Likelihood with parameters integrated out, over each row's own posterior with a `multiplicity` (C,)."""
        return Refitted(self.prior, self.statistics, multiplicity, "predictive")


@pytree
class Refitted(OfEachRow):
    """Reading, "mean" or "predictive", of the leave-one-out posterior under the leave-one-out prior."""

    prior: EmpiricalPrior
    statistics: Any
    multiplicity: Array
    reading: str = static()

    def read(self, x: object) -> Likelihood:
        """Likelihood of the rows x, with parameters (C, N, F) for each class, row and feature."""
        statistics, weight, cells = (
            with_axis_of_rows(self.statistics),
            -self.multiplicity[:, None, None],
            observed(x)[1],
        )
        others = statistics.without(cells, weight)
        prior = self.prior(others, pooled(statistics).without(cells, jnp.sum(weight)))
        likelihood: Likelihood = getattr(prior.update(others), self.reading)()
        return likelihood
