"""Empirical Bayes: priors that are functions of the statistics, and leave-one-out in which they are derived anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import jax
import jax.numpy as jnp
from jaxtyping import Float

from bayesnb.families._pytree import pytree, static
from bayesnb.families.cells import in_pieces, observed
from bayesnb.families.conjugate import pooled
from bayesnb.families.protocol import Likelihood


class EmpiricalPrior:
    """A prior as a function of the statistics, each class's and those of all classes as of one.

    It knows no other module than that of its arrays: NumPy's on the host, JAX's in a kernel.
    """

    least: ClassVar[dict[str, float]] = {}
    tunable: ClassVar[dict[str, str]] = {}
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Of fields that are words, those that there are."""

    def __call__(self, statistics: Any, together: Any) -> Any:
        raise NotImplementedError

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """With some of `tunable` in place of its own."""
        own = {field: values[name] for name, field in self.tunable.items() if name in values}
        return replace(cast(Any, self), **own)

    def of_unknown_classes(self) -> Self:
        """The same, as far as it can be told without the classes: itself, if it does not look at them."""
        return self

    def update_apart(self, statistics: Any) -> Empirical:
        """The posterior, for rows that are left out of the prior too."""
        return Empirical(self, statistics)


@pytree
class Empirical:
    """The posterior under an empirical prior, for rows that are left out of both."""

    classes_share_parameters: ClassVar[bool] = True
    read_on_host: ClassVar[bool] = True
    read_with_row_on_host: ClassVar[bool] = True

    prior: Any
    statistics: Any

    def mean_with_row(self, multiplicity: Any) -> Likelihood:
        return Refitted(self.prior, self.statistics, multiplicity, "mean")

    def predictive_with_row(self, multiplicity: Any) -> Likelihood:
        return Refitted(self.prior, self.statistics, multiplicity, "predictive")


@pytree
class Refitted:
    """A `reading` of the leave-one-out posterior under the leave-one-out prior; `multiplicity` (C,) as elsewhere."""

    prior: Any
    statistics: Any
    multiplicity: Any
    reading: str = static()

    def prepare(self, x: Any) -> Refitted:
        return self

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log p(x_f | class)."""
        return in_pieces(lambda rows: self._without(rows).log_prob(rows), x, self.multiplicity.shape[0])

    def terms(self, x: Any) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log p(x_f | class)."""
        return in_pieces(lambda rows: self._without(rows).terms(rows), x, self.multiplicity.shape[0])

    def _without(self, x: Any) -> Likelihood:
        """The likelihood in which each of these rows has a posterior of its own."""
        # Rows are an axis between classes and features, which what is the same for all rows does without.
        statistics = jax.tree.map(lambda field: jnp.asarray(field)[:, None], self.statistics)
        weight, cells = -self.multiplicity[:, None, None], observed(x)[1]
        others = statistics.without(cells, weight)
        prior = self.prior(others, pooled(statistics).without(cells, jnp.sum(weight)))
        return getattr(prior.update(others), self.reading)()
