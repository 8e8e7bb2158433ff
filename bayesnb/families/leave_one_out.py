"""Leave-one-out predictives of numbers, independent given the class, from what one cell does to a posterior."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import jax
import jax.numpy as jnp
from jaxtyping import Float

from bayesnb.families._pytree import pytree, static
from bayesnb.families.cells import in_pieces, observed, only, sum_cells
from bayesnb.families.protocol import Cumulants

OfCells = Callable[[jax.Array, jax.Array], jax.Array]
"""What is made of which cells are observed, and of their log probabilities: `sum_cells`, or `only` theirs."""


class CellByCell:
    """A family of independent cells, from `with_cell`; its readings have `cells`."""

    def with_cell(self, x: jax.Array, multiplicity: Any) -> Self:
        """The posterior after each cell of x (N, F) was seen `multiplicity` more times, for one class."""
        raise NotImplementedError

    def log_evidence_of_cell(self, x: jax.Array, weight: Any) -> Float[jax.Array, "N F"]:
        """(N, F) log p of each cell of x counted `weight` times, of one class, without its base measure."""
        return self.with_cell(x, weight).log_partition() - self.log_partition()

    def cumulants_of_terms(self, x: Any, multiplicity: float = 0.0) -> Cumulants:
        """(N, C, F) those of each cell, as `log_likelihood_cumulants` sums them."""
        raise NotImplementedError

    def log_likelihood_cumulants(self, x: Any, multiplicity: float = 0.0) -> Cumulants:
        return self.cumulants_of_terms(x, multiplicity).sum()

    def mean_with_row(self, multiplicity: Any) -> WithRow:
        return WithRow(self, multiplicity, "mean")

    def predictive_with_row(self, multiplicity: Any) -> WithRow:
        return WithRow(self, multiplicity, "predictive")

    # Supplied by each family.
    def log_partition(self) -> jax.Array:
        raise NotImplementedError


class SumOfCells:
    """A likelihood of independent cells, from `cells`."""

    @classmethod
    def from_parameters(cls, **parameters: Any) -> Self:
        return cls(**parameters)

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log p(x_f | class) of one class, without the base measure."""
        raise NotImplementedError

    def prepare(self, x: Any) -> Self:
        return self

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log p(x_f | class), without the base measure."""
        return self._of_cells(sum_cells, x)

    def terms(self, x: Any) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log p(x_f | class), without the base measure."""
        return self._of_cells(only, x)

    def _of_cells(self, of: OfCells, x: Any) -> jax.Array:
        seen, x = observed(x)
        return jax.vmap(lambda one: of(seen, one.cells(x)), out_axes=1)(jax.tree.map(jnp.asarray, self))


@pytree
class WithRow:
    """A `reading` of the posterior after each cell was seen `multiplicity` (C,) more times."""

    posterior: Any
    multiplicity: Any
    reading: str = static()

    def prepare(self, x: Any) -> WithRow:
        return self

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log p(x_f | class), the parameters of each cell its own."""
        return in_pieces(partial(self._of_rows, sum_cells), x, self.multiplicity.shape[0])

    def terms(self, x: Any) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log p(x_f | class)."""
        return in_pieces(partial(self._of_rows, only), x, self.multiplicity.shape[0])

    def _of_rows(self, of: OfCells, x: Any) -> jax.Array:
        seen, x = observed(x)

        def one_class(posterior: Any, multiplicity: jax.Array) -> jax.Array:
            likelihood = getattr(posterior.with_cell(x, multiplicity), self.reading)()
            return of(seen, likelihood.cells(x))

        return jax.vmap(one_class, out_axes=1)(jax.tree.map(jnp.asarray, self.posterior), self.multiplicity)
