"""Empirical Bayes: priors that are functions of the statistics, and leave-one-out readings that derive them again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, final

from bayesnb.families._namespace import xp
from bayesnb.families._pytree import pytree
from bayesnb.families.independent_cells import OfEachRow, with_axis_of_rows
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
    def with_hyperparameters(self: Any, values: Mapping[str, Any]) -> Any:
        """Copy with the hyperparameters in `values` that `tunable` names replaced."""
        fields = {field: values[name] for name, field in self.tunable.items() if name in values}
        return replace(self, **fields)

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

    def mean(self, multiplicity: Any) -> OfEachRow:
        """Likelihood at the posterior means, each row added `multiplicity` (C,) <= 0 times to data and prior."""
        return OfEachRow(self, multiplicity, "mean")

    def predictive(self, multiplicity: Any) -> OfEachRow:
        """Likelihood, parameters integrated out, each row added `multiplicity` (C,) <= 0 times to data and prior."""
        return OfEachRow(self, multiplicity, "predictive")

    def with_row(self, cells: Any, multiplicity: Any) -> Any:
        """Posteriors (C, N, F), one per row of `cells` (N, F), under the prior derived again with that row added."""
        statistics = with_axis_of_rows(self.statistics)
        others = statistics.without(cells, -multiplicity)
        together = pooled(statistics).without(cells, xp.sum(-multiplicity))
        return self.prior(others, together).update(others)
