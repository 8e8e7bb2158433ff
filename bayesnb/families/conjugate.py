"""What conjugate families have for nothing, and their statistics."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import itemgetter
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families._types import Array
from bayesnb.families.protocol import Cells, Cumulants, Hyperparameter, Likelihood, Unit, Words
from bayesnb.families.variates import KeyVariates, Variates

ROUNDING = 64 * 2.2e-16
"""What share of a sum may be the rounding error of a difference from it."""


def pooled(statistics: Any) -> Any:
    """The statistics of all classes as of one."""
    n_classes = jax.tree.leaves(statistics)[0].shape[0]
    classes = [jax.tree.map(itemgetter(slice(c, c + 1)), statistics) for c in range(n_classes)]
    return reduce(lambda a, b: a.merge(b), classes)


class Additive:
    """Statistics whose fields are sums over rows."""

    def merge(self, other: Self) -> Self:
        return jax.tree.map(operator.add, self, other)

    def remove(self, other: Self) -> Self:
        return jax.tree.map(operator.sub, self, other)

    def scale(self, factor: float) -> Self:
        return jax.tree.map(lambda field: field * factor, self)

    def possible(self) -> Any:
        """No sum of weights and counts is negative."""
        return reduce(operator.and_, (field >= 0 for field in jax.tree.leaves(self)))

    def units(self) -> dict[str, Unit]:
        """None: parameters are shown as they are."""
        return {}

    def spread(self) -> Any:
        """None: not known."""
        return None

    def rounding(self) -> Self:
        # Sums of integers are exact; 1e-9 bounds the rounding of a sum of fractions.
        return jax.tree.map(lambda field: field * 1e-9, self)


class Conjugate:
    """What every conjugate family has for nothing."""

    kind: ClassVar[str] = "levels"
    words: ClassVar[Words] = Words()
    location: ClassVar[str] = ""
    nonnegative: ClassVar[bool] = False
    fixed: ClassVar[bool] = False
    classes_share_parameters: ClassVar[bool] = False
    has_tables: ClassVar[bool] = True
    read_on_host: ClassVar[bool] = False
    read_with_row_on_host: ClassVar[bool] = False
    least: ClassVar[dict[str, float]] = {}
    empirical: ClassVar[dict[str, Any]] = {}
    tunable: ClassVar[dict[str, str]] = {}

    def hyperprior(self, pooled: bool) -> dict[str, Hyperparameter]:
        """None."""
        return {}

    def unit(self) -> Self:
        """This one."""
        return self

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """This one."""
        return self

    def condensed(self) -> Any:
        """All of it."""
        return self

    def condense(self, statistics: Any) -> Any:
        """All of them."""
        return statistics

    correlates: ClassVar[bool] = False

    def require_pairs(self, names: Sequence[str]) -> None:
        """There is nothing to ask for."""

    def log_bayes_factor_of_pairs(self, other: Any, x: Any, y: Any, cross: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} has no closed form for pairs: it does not `correlate`.")

    def log_bayes_factor_of_levels(self, by_level: Any, by_class: Any) -> Any:
        """Σ_l log p(D_l | s_l of the prior's rows) - log p(D | prior), s_l the share of the rows that level l has."""
        prior = jax.tree.map(lambda field: jnp.asarray(field)[:, None], self)
        share = by_level.count / jnp.maximum(by_class.count, 1.0)[:, :, None]
        # A level without rows has no evidence either.
        of_level = jax.tree.map(lambda field: field[:, None], prior).scale(jnp.where(share > 0, share, 1.0))
        return of_level.log_evidence(by_level).sum(axis=2) - prior.log_evidence(by_class)

    def n_free(self) -> int:
        """All parameters."""
        return sum(np.size(v) for v in self.variance().values())

    def no_draws(self) -> str | None:
        """There are."""
        return None

    def components(self) -> list[tuple[Any, Any]]:
        return [(1.0, self)]

    def penalized_mle(self) -> Any:
        """The mode."""
        return self.mode()

    def update_apart(self, statistics: Any) -> Any:
        """`update`."""
        return self.update(statistics)

    def scale(self, factor: Any) -> Self:
        """A prior that counts for `factor` times as many rows: all fields are sums over rows."""
        return jax.tree.map(lambda field: field * factor, self)

    def restrict(self, keep: np.ndarray) -> Self:
        """The distribution of the parameters of some features."""
        return jax.tree.map(lambda field: np.asarray(field)[:, keep], self)

    def log_evidence(self, statistics: Any) -> Float[jax.Array, "*C K"]:
        """(C, K) log p(D) = log Z(posterior) - log Z(prior); -inf under an improper prior."""
        prior, posterior = self.log_partition(), self.update(statistics).log_partition()
        proper = jnp.isfinite(prior)
        return jnp.where(proper, posterior - jnp.where(proper, prior, 0.0), -jnp.inf)

    def log_predictive(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class, D), parameters integrated out, base measure included."""
        return self.predictive().log_prob(x) + self.log_base(x)[:, None]

    def predictive_distribution(self) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError(f"{type(self).__name__} does not say which distribution its predictive is.")

    def log_odds_of_terms(self, x: Any, of: Int[Array, "N"], against: Int[Array, "N"]) -> Cumulants:
        """(N, T) differences of independent variates: classes that share no parameters."""

        def pick(label: Any) -> Cumulants:
            at = jnp.asarray(label)[:, None, None]
            return jax.tree.map(lambda k: jnp.take_along_axis(k, at, axis=1)[:, 0], found)

        found = self.cumulants_of_terms(x)
        return pick(of) + pick(against) * -1.0

    def sample(self, key: jax.Array, n: int) -> Any:
        """n independent draws of the parameters: a likelihood with a leading axis."""
        return self.draw(KeyVariates(key), n)

    def at_sites(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return dict(parameters)

    def from_sites(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return dict(values)

    def cells(self, likelihood: Any, cells: Any, total: Any) -> Iterator[Cells]:
        """Independent cells, as the likelihood has them."""
        seen = True if cells is None else cells.count > 0
        yield Cells("", likelihood.distribution(), None if cells is None else cells.values(), seen)

    def simulate(self, likelihood: Any, rng: Any, total: int = 1) -> np.ndarray:
        """(S, K) cells of a row for each of S parameters of one class: what the likelihood simulates."""
        return likelihood.simulate(rng)

    def draw_log_likelihood_with_row(
        self, variates: Variates, n: int, x: Any, own: jax.Array
    ) -> Float[jax.Array, "n N C"]:
        """(n, N, C) draws in which the row informs its own class, and the others have parameters apart."""
        informed = self.draw_log_likelihood(variates, n, x, 1.0)
        return jnp.where(own, informed, self.draw_log_likelihood(variates, n, x))

    # Supplied by each family; declared for the methods above.
    def draw_log_likelihood(self, variates: Variates, n: int, x: Any, multiplicity: float = 0.0) -> jax.Array:
        raise NotImplementedError

    def cumulants_of_terms(self, x: Any) -> Cumulants:
        raise NotImplementedError

    def draw(self, variates: Variates, n: int) -> Any:
        raise NotImplementedError

    def log_base(self, x: Any) -> jax.Array:
        raise NotImplementedError

    def mode(self) -> Any:
        raise NotImplementedError

    def log_partition(self) -> jax.Array:
        raise NotImplementedError

    def update(self, statistics: Any) -> Self:
        raise NotImplementedError

    def variance(self) -> dict[str, jax.Array]:
        raise NotImplementedError

    def predictive(self) -> Likelihood:
        raise NotImplementedError
