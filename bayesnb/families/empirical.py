"""Empirical Bayes: priors that are functions of the statistics, and leave-one-out readings that derive them again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, cast, final

from bayesnb.families._namespace import xp
from bayesnb.families._pytree import Array, pytree, static
from bayesnb.families.independent_cells import OfEachRow, with_axis_of_rows
from bayesnb.families.number_rows import observed
from bayesnb.families.protocol import Likelihood
from bayesnb.families.statistics import pooled


class EmpiricalPrior(ABC):
    """Empirical-Bayes prior: function from the statistics of each class, and of all classes together, to a family.

    It computes in the module of its arrays only: NumPy on the host, JAX in a kernel.
    """

    statistics: ClassVar[Any]
    """Type of the sufficient statistics."""
    least: ClassVar[dict[str, float]] = {}
    """Smallest value of each field that users may give."""
    tunable: ClassVar[dict[str, str]] = {}
    """Hyperparameters for the strength of the prior, and the field that each one is about."""
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Values of fields that are words."""

    @abstractmethod
    def __call__(self, statistics: Any, together: Any) -> Any:
        """Prior derived from the statistics of each class (C, F), and of all classes together (1, F)."""

    @final
    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Copy with the hyperparameters in `values` that `tunable` names replaced."""
        fields = {field: values[name] for name, field in self.tunable.items() if name in values}
        changed: Self = replace(cast(Any, self), **fields)
        return changed

    @final
    def update_keeping_prior(self, statistics: Any) -> Empirical:
        """Posterior whose readings leave rows out of the data and of the prior that is derived from the data."""
        return Empirical(self, statistics)


@pytree
class Empirical:
    """Posterior under an empirical prior, whose leave-one-out readings also derive the prior without the row."""

    classes_share_parameters: ClassVar[bool] = True

    prior: Any
    statistics: Any

    def mean(self, multiplicity: Any) -> Likelihood:
        """Likelihood at the posterior means, each row added `multiplicity` (C,) <= 0 times to data and prior."""
        return Refitted(self.prior, self.statistics, multiplicity, "mean")

    def predictive(self, multiplicity: Any) -> Likelihood:
        """Likelihood, parameters integrated out, each row added `multiplicity` (C,) <= 0 times to data and prior."""
        return Refitted(self.prior, self.statistics, multiplicity, "predictive")


@pytree
class Refitted(OfEachRow):
    """Leave-one-out likelihood ("mean" or "predictive") that derives the prior again without each scored row."""

    prior: EmpiricalPrior
    statistics: Any
    multiplicity: Array
    reading: str = static()

    def read(self, x: object) -> Likelihood:
        """Likelihood with parameters (C, N, F): for each row of x the posterior and its prior without that row."""
        statistics, weight, cells = (
            with_axis_of_rows(self.statistics),
            -self.multiplicity[:, None, None],
            observed(x)[1],
        )
        others = statistics.without(cells, weight)
        prior = self.prior(others, pooled(statistics).without(cells, xp.sum(weight)))
        likelihood: Likelihood = getattr(prior.update(others), self.reading)()
        return likelihood
