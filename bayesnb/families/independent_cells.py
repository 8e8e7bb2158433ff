"""Families of numbers that are independent given the class, each with a posterior that one cell changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesnb.families._pytree import Array, Tree, map_leading_axis, map_leaves, pytree, static
from bayesnb.families.number_rows import map_in_pieces, observed, only, sum_cells
from bayesnb.families.protocol import (
    CellSite,
    Cumulants,
    IndependentClasses,
    LevelDependence,
    Likelihood,
    ReadyLikelihood,
    Words,
    supports,
)
from bayesnb.families.variates import TermDraws, Variates

CellReduction = Callable[[jax.Array, jax.Array], jax.Array]
"""Function of a mask of observed cells and of their log probabilities: `sum_cells`, or `only`."""


class IndependentCells(IndependentClasses):
    """Family of numbers whose fields are (C, F): one posterior for each class and feature."""

    kind: ClassVar[str]
    """Name of such columns for users, as in `MixedNB(gaussian=...)`."""
    words: ClassVar[Words] = Words()
    location: ClassVar[str] = ""
    """Parameter that says where cells lie, by whose sd parameters are ranked."""
    empirical: ClassVar[Mapping[str, Any]] = {}
    """Priors that are derived from the data (`EmpiricalPrior`), by the names that estimators take for them."""

    @abstractmethod
    def with_cell(self, x: jax.Array, multiplicity: Any) -> Self:
        """Posterior after each cell of x (N, F) was seen `multiplicity` more times, for one class; -1 leaves it out."""

    @abstractmethod
    def log_evidence_of_cell(self, x: jax.Array, weight: Any) -> Float[jax.Array, "N F"]:
        """(N, F) log p of each cell of x counted `weight` times, for one class, without its base measure."""

    @abstractmethod
    def log_partition(self) -> Float[jax.Array, "*C F"]:
        """(C, F) log normaliser of the density of the parameters; +inf where that is improper."""

    @abstractmethod
    def plug_in_mean(self) -> Cellwise:
        """Likelihood at the posterior means of the parameters."""

    @abstractmethod
    def predictive_of_cell(self) -> Cellwise:
        """Likelihood with the parameters integrated out."""

    @abstractmethod
    def variance(self) -> dict[str, jax.Array]:
        """Posterior variance of each parameter, (C, F)."""

    @abstractmethod
    def cumulants_of_terms(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C, F) cumulants of log p(cell | class, θ), each cell `multiplicity` times among the data."""

    @abstractmethod
    def draw_terms(self, variates: Variates, n: int, x: object, multiplicity: float) -> TermDraws:
        """Draws of log p(cell | class, θ), (N, C, F), each cell `multiplicity` times among the data.

        Rows share variates; missing cells have 0.
        """

    def draw_with_multiplicity(self, variates: Variates, n: int, x: object, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ) - log base, the row `multiplicity` times among the data."""
        drawn, terms = self.draw_terms(variates, n, x, multiplicity)
        return map_leading_axis(lambda draw: jnp.sum(terms(*draw), axis=-1), drawn)

    def mean(self, multiplicity: Array | None = None) -> Likelihood:
        """Likelihood at the posterior means, of each row's own posterior with a `multiplicity` (C,)."""
        return self.plug_in_mean() if multiplicity is None else WithRow(self, multiplicity, "plug_in_mean")

    def predictive(self, multiplicity: Array | None = None) -> Likelihood:
        """Likelihood with parameters integrated out, over each row's own posterior with a `multiplicity` (C,)."""
        return self.predictive_of_cell() if multiplicity is None else WithRow(self, multiplicity, "predictive_of_cell")

    def log_evidence(self, statistics: Any) -> Float[jax.Array, "*C F"]:
        """(C, F) log p(D) = log Z(posterior) - log Z(prior); -inf under an improper prior."""
        prior, posterior = self.log_partition(), self.update(statistics).log_partition()
        proper = jnp.isfinite(prior)
        return jnp.where(proper, posterior - jnp.where(proper, prior, 0.0), -jnp.inf)

    def log_base(self, x: object) -> Float[jax.Array, "N"]:
        """(N,) log base measure of each row."""
        log_base: jax.Array = self.statistics.log_base(x)
        return log_base

    def n_free(self) -> int:
        """Number of parameters: all of them are free."""
        return sum(np.size(v) for v in self.variance().values())

    def restrict(self, keep: np.ndarray) -> Self:
        """Distribution of the parameters of some features, `keep` (F,)."""
        return map_leaves(lambda field: np.asarray(field)[:, keep], self)

    def log_likelihood_cumulants(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C) cumulants of log p(row | class, θ), the row `multiplicity` times among the data."""
        cumulants = self.cumulants_of_terms(x, multiplicity).sum()
        return replace(cumulants, mean=cumulants.mean + self.log_base(x)[:, None])

    def to_sites(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the parameters at the sites of the program: each parameter is a site."""
        return dict(parameters)

    def from_sites(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Inverse of `to_sites`."""
        return dict(values)

    def cells(self, likelihood: Any, cells: Any, total: Any) -> Iterator[CellSite]:
        """One site for all cells, with the distribution of the likelihood."""
        seen = True if cells is None else cells.count > 0
        yield CellSite("", likelihood.distribution(), None if cells is None else cells.values(), seen)

    def simulate(self, likelihood: Any, rng: np.random.Generator, total: int = 1) -> np.ndarray:
        """(S, F) cells of one row for each of S parameters of one class."""
        cells: np.ndarray = likelihood.simulate(rng)
        return cells


def log_bayes_factor_of_levels(family: Any, by_level: Any, by_class: Any) -> np.ndarray:
    """(C, G, K) log Bayes factor of a parameter for each level of G other features against one of the class.

    Families without a formula of their own give each level the part of the prior's rows that it has of the data's:
    Σ_l log p(D_l | s_l of the prior's rows) - log p(D | prior).

    Parameters
    ----------
    family : family of numbers
        The prior.
    by_level, by_class : statistics
        Statistics for each level, (C, G, L, K), and for all levels together, (C, G, K).
    """
    log_bayes_factor: np.ndarray
    if supports(family, LevelDependence):
        log_bayes_factor = family.log_bayes_factor_of_levels(by_level, by_class)
        return log_bayes_factor
    prior = jax.tree.map(lambda field: jnp.asarray(field)[:, None], family)
    share = by_level.count / jnp.maximum(by_class.count, 1.0)[:, :, None]
    # A level without rows has no evidence either.
    of_level = jax.tree.map(lambda field: field[:, None], prior).scale(jnp.where(share > 0, share, 1.0))
    log_bayes_factor = of_level.log_evidence(by_level).sum(axis=2) - prior.log_evidence(by_class)
    return log_bayes_factor


class Cellwise(ReadyLikelihood, ABC):
    """Likelihood of independent cells, given by the log probability of each cell."""

    @abstractmethod
    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log p(x_f | class) for one class, without the base measure."""

    @abstractmethod
    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class), without the base measure."""

    @final
    @classmethod
    def from_parameters(cls, **parameters: Any) -> Self:
        """Likelihood with these parameters."""
        return cls(**parameters)

    @final
    def parameters(self) -> dict[str, jax.Array]:
        """Parameters by name, (…, C, F) each."""
        likelihood: Any = self
        return {field.name: getattr(self, field.name) for field in fields(likelihood)}

    @final
    def terms(self, x: object) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log p(x_f | class), without the base measure; 0 for missing cells."""
        return reduce_cells(self, only, x)


class SumOfCells(Cellwise):
    """Likelihood of independent cells, without a faster way to their sum."""

    @final
    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log p(x_f | class), without the base measure."""
        return reduce_cells(self, sum_cells, x)


def reduce_cells(likelihood: Any, reduce: CellReduction, x: object) -> jax.Array:
    """(N, C, …) log probabilities of the cells of each row under each class, summed or as they are."""
    seen, x = observed(x)
    return jax.vmap(lambda of_class: reduce(seen, of_class.cells(x)), out_axes=1)(jax.tree.map(jnp.asarray, likelihood))


def sum_with_points(terms: Float[jax.Array, "N C F"]) -> Float[jax.Array, "N C"]:
    """(N, C) sums of log probabilities of cells; probability 0 of a cell outweighs the infinite density of another."""
    outweighed = jnp.any(jnp.isneginf(terms), axis=-1) & ~jnp.any(jnp.isnan(terms), axis=-1)
    return jnp.where(outweighed, -jnp.inf, jnp.sum(terms, axis=-1))


class OfEachRow(ReadyLikelihood, ABC):
    """Likelihood whose parameters differ from row to row; `multiplicity` (C,) is how often a row is counted more."""

    multiplicity: Array

    @abstractmethod
    def read(self, x: object) -> Likelihood:
        """Likelihood of the rows x, with parameters (C, N, F) for each class, row and feature."""

    @final
    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log p(x_f | class)."""
        return map_in_pieces(lambda rows: self.read(rows).log_prob(rows), x, len(self.multiplicity))

    @final
    def terms(self, x: object) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log p(x_f | class)."""
        return map_in_pieces(lambda rows: self.read(rows).terms(rows), x, len(self.multiplicity))


@pytree
class WithRow(OfEachRow):
    """Reading, "plug_in_mean" or "predictive_of_cell", of the posterior after each cell was seen more times."""

    posterior: IndependentCells
    multiplicity: Array
    reading: str = static()

    def read(self, x: object) -> Likelihood:
        """Likelihood of the rows x, with parameters (C, N, F) for each class, row and feature."""
        posterior = with_axis_of_rows(self.posterior).with_cell(observed(x)[1], self.multiplicity[:, None, None])
        likelihood: Likelihood = getattr(posterior, self.reading)()
        return likelihood


def with_axis_of_rows(parameters: Tree) -> Tree:
    """Arrays (C, 1, F) of parameters or statistics (C, F), with an axis of length one for rows."""
    return map_leaves(lambda field: jnp.asarray(field)[:, None], parameters)
