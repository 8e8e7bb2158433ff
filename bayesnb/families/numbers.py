"""Families of numbers that are independent given the class, their rows, and priors derived from data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families.arrays import (
    Array,
    Tree,
    cond,
    gather,
    is_host,
    map_leading_axis,
    map_leaves,
    pytree,
    static,
    sum_rows,
    sum_weightings,
    values_by_field,
    xp,
)
from bayesnb.families.protocol import (
    Cumulants,
    Expression,
    Family,
    Hyperparameter,
    HyperpriorKind,
    IndependentClasses,
    Likelihood,
    ReadyLikelihood,
    Site,
    TermDraws,
    Variates,
    Words,
    overridable,
    pooled,
)

# == Rows of numbers, of which some may be missing =================================================

_IN_CACHE = 2**14


@pytree
class Complete:
    """Rows of numbers (N, F) known to have no missing cell, so that kernels need not look for NaN."""

    values: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """(number of rows, number of features)."""
        return self.values.shape


@pytree
class Exposed:
    """Rows of counts (N, F), an array or `Complete`, and the exposure (N, 1) of each row, by which rates multiply."""

    counts: Array
    exposure: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """(number of rows, number of features)."""
        return self.counts.shape

    def __getitem__(self, index: object) -> Self:
        """Counts and exposures at an index of rows, or with further axes."""
        return map_leaves(itemgetter(index), self)


def numbers(x: object) -> jax.Array:
    """Return the array (N, F) of rows that may be `Complete` or `Exposed`."""
    if isinstance(x, Exposed):
        return numbers(x.counts)
    return xp.asarray(x.values if isinstance(x, Complete) else x)


def observed(x: object) -> tuple[jax.Array, jax.Array]:
    """Return a mask of the observed cells of real-valued rows, and the rows with 0 in place of NaN.

    Rows that are `Exposed` stay so. A NaN must not enter a formula even where its result is not used: its gradient
    would be NaN.
    """
    if isinstance(x, Exposed):
        seen, counts = observed(x.counts)
        cells: Any = replace(x, counts=counts)
        return seen, cells
    values = numbers(x) * xp.ones(())
    if isinstance(x, Complete):
        return xp.ones(values.shape, bool), values  # a constant, which the compiler takes out again
    seen = ~xp.isnan(values)
    return seen, xp.where(seen, values, 0.0)


def sum_cells(seen: Array, terms: Array) -> jax.Array:
    """Sum `terms` (…, F) over the features where the mask `seen` is true."""
    return xp.sum(only(seen, terms), axis=-1)


def only(seen: Array, terms: Array) -> jax.Array:
    """Copy of `terms` with 0 where the mask `seen` is false."""
    return xp.where(seen, terms, 0.0)


def map_each_row(of_row: Callable[[jax.Array], jax.Array], x: object) -> Float[jax.Array, "N ..."]:
    """(N, …) results of `of_row` for each row of x (N, F), one row at a time on a CPU, all at once elsewhere.

    Intermediate results of a row then never leave the cache: a quarter of the time for all rows at once, measured with
    sums of squares of 30 features in 4 classes. Logarithms take longer one row at a time. Rows that are cut over
    devices would be gathered: let each device read its own rows (docs/scaling.md).
    """
    values = numbers(x)
    if is_host(values):
        return of_row(values[:, None])
    return jax.lax.platform_dependent(values, cpu=partial(jax.lax.map, of_row), default=jax.vmap(of_row))


def sum_by_class(
    x: object, label: Int[Array, "N"], weight: Float[Array, "*S N"], centre: Float[Array, "C F"]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Sums (C, F) over the rows of each class of the cells' weight, weighted deviation and weighted squared deviation.

    Under S weightings (S, N) the sums are (S, C, F).

    Deviations of rows x (N, F) are taken from the `centre` of the row's class. NaN is a missing cell.

    Rows are added one after the other, which takes hardly longer for 50 classes than for two, and gives the same bits
    on any number of threads. Products with indicators of the classes take as long for five classes, and four times as
    long for 50.
    """
    seen, cells = observed(x)
    deviation = only(seen, cells - gather(centre, label))
    if xp.ndim(weight) == 2:
        powers = xp.concatenate([seen, deviation, deviation**2], axis=-1)
        count, total, square = xp.split(sum_weightings(powers, label, xp.asarray(weight), len(centre)), 3, axis=-1)
        return count, total, square
    weight = xp.asarray(weight)[:, None]
    weighted = weight * deviation
    # Side by side, both sums are one scatter.
    sums = sum_rows(xp.stack([weighted, weighted * deviation], axis=-1), label, len(centre))
    count = cond(
        xp.isnan(xp.sum(numbers(x))),
        lambda: sum_rows(weight * observed(x)[0], label, len(centre)),
        lambda: xp.zeros_like(centre) + sum_rows(weight, label, len(centre)),
    )
    return count, sums[..., 0], sums[..., 1]


def map_in_pieces(of_rows: Callable[[Tree], jax.Array], x: Tree, n_classes: int) -> Float[jax.Array, "N C ..."]:
    """(N, C, …) results of `of_rows` for the rows of x (N, F), some rows at a time so that they fit the cache."""
    if is_host(x):
        return of_rows(x)
    n, features = numbers(x).shape
    most = max(1, min(n, _IN_CACHE // max(1, n_classes * features)))
    size = 2 ** (most.bit_length() - 1)  # as blocks have, which then need no padding
    pieces = -(-n // size)

    def cut(cells: Array) -> jax.Array:
        """(pieces, size, F) cells padded with zeros and split into pieces of rows."""
        return jnp.pad(cells, ((0, pieces * size - n), (0, 0))).reshape(pieces, size, cells.shape[1])

    results = map_leading_axis(of_rows, jax.tree.map(cut, x))
    return results.reshape(pieces * size, *results.shape[2:])[:n]


# == Families of numbers that are independent given the class, each with a posterior that one cell changes


class IndependentCells(IndependentClasses):
    """Family of numbers that are independent given the class: one posterior for each class and feature, (C, F)."""

    kind: ClassVar[str]
    """Name of such columns for users, as in `MixedNB(gaussian=...)`."""
    words: ClassVar[Words] = Words()
    location: ClassVar[str] = ""
    """Parameter that says where cells lie, by whose sd parameters are ranked."""
    empirical: ClassVar[Mapping[str, EmpiricalPrior]] = {}
    """Priors that are derived from the data (`EmpiricalPrior`), by the names that estimators take for them."""

    @abstractmethod
    def with_cell(self, x: jax.Array, multiplicity: float | Array) -> Self:
        """Posterior of one class, one per cell of x (N, F), after adding the cell `multiplicity` times; -1 removes."""

    @abstractmethod
    def log_evidence_of_cell(self, x: jax.Array, weight: float | Array) -> Float[jax.Array, "N F"]:
        """(N, F) log predictive probability, for one class, of each cell of x counted `weight` times; without base."""

    @abstractmethod
    def log_partition(self) -> Float[jax.Array, "*C F"]:
        """(C, F) log normaliser of the density of the parameters; +inf where the density is improper."""

    @abstractmethod
    def plug_in_mean(self) -> Cellwise:
        """Likelihood with parameters plugged in at their posterior means."""

    @abstractmethod
    def predictive_of_cell(self) -> Likelihood:
        """Posterior predictive likelihood, with parameters integrated out."""

    @abstractmethod
    def cumulants_of_terms(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C, F) cumulants of log p(cell | class, θ), θ given `multiplicity` more copies of the cell."""

    @abstractmethod
    def draw_terms(self, variates: Variates, n: int, x: object, multiplicity: float) -> TermDraws:
        """Variates of n draws, and the function of one draw's to log p(cell | class, θ), (N, C, F).

        θ is drawn given the data and `multiplicity` more copies of each cell. Rows share variates; missing cells have
        0.
        """

    def draw_with_multiplicity(self, variates: Variates, n: int, x: object, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ) - log base, θ given `multiplicity` more copies of the row."""
        drawn, terms = self.draw_terms(variates, n, x, multiplicity)
        return map_leading_axis(lambda draw: xp.sum(terms(*draw), axis=-1), drawn)

    def mean(self, multiplicity: Array | None = None) -> Likelihood:
        """Likelihood at the posterior means, each row added `multiplicity` (C,) times to each class's data."""
        return self.plug_in_mean() if multiplicity is None else OfEachRow(self, multiplicity, "mean")

    def predictive(self, multiplicity: Array | None = None) -> Likelihood:
        """Likelihood with parameters integrated out, each row added `multiplicity` (C,) times to the data."""
        return self.predictive_of_cell() if multiplicity is None else OfEachRow(self, multiplicity, "predictive")

    def with_row(self, cells: jax.Array, multiplicity: Array) -> Self:
        """Posteriors (C, N, F), one per row of `cells` (N, F), after adding the row `multiplicity` (C, 1, 1) times."""
        return with_axis_of_rows(self).with_cell(cells, multiplicity)

    def log_evidence(self, statistics: object) -> Float[jax.Array, "*C F"]:
        """(C, F) log marginal likelihood log Z(posterior) - log Z(prior); -inf under an improper prior."""
        prior, posterior = self.log_partition(), self.update(statistics).log_partition()
        proper = xp.isfinite(prior)
        return xp.where(proper, posterior - xp.where(proper, prior, 0.0), -xp.inf)

    @overridable
    def n_free(self) -> int:
        """Number of parameters of all classes and features: all are free."""
        return sum(np.size(v) for v in self.variance().values())

    def restrict(self, keep: np.ndarray) -> Self:
        """Distribution of the parameters of the features `keep` (F,) of bool."""
        return map_leaves(lambda field: np.asarray(field)[:, keep], self)

    def log_likelihood_cumulants(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C) cumulants of log p(row | class, θ), θ given `multiplicity` more copies of the row; base included."""
        cumulants = self.cumulants_of_terms(x, multiplicity).sum()
        return replace(cumulants, mean=cumulants.mean + self.log_base(x)[:, None])

    @overridable
    def simulate(self, likelihood: Any, rng: np.random.Generator, total: int | np.ndarray = 1) -> np.ndarray:
        """(S, F) simulated cells of one row for each of S parameters of one class; `total` is not used."""
        return likelihood.simulate(rng)

    @overridable
    def log_bayes_factor_of_levels(self, by_level: Any, by_class: Any) -> np.ndarray:
        """(C, G, K) log Bayes factor: a parameter for each level of each of G features, against one for the class.

        `by_level` are statistics (C, G, L, K) of the K numbers at each level, `by_class` (C, G, K) those of all levels
        together. By default each level has the part of the prior's rows that it has of the data's:
        Σ_l log p(D_l | s_l of the prior's rows) - log p(D | prior).
        """
        prior = jax.tree.map(lambda field: xp.asarray(field)[:, None], self)
        share = by_level.count / xp.maximum(by_class.count, 1.0)[:, :, None]
        # A level without rows has no evidence either.
        of_level = jax.tree.map(lambda field: field[:, None], prior).scale(xp.where(share > 0, share, 1.0))
        return of_level.log_evidence(by_level).sum(axis=2) - prior.log_evidence(by_class)


def sites_of_numbers(family: IndependentCells, **distributions: str) -> list[Site]:
    """Sample sites of the parameters of all features, one for each name in `distributions`.

    Each distribution is an expression of the fields of `family` and of earlier parameters: see `Expression`.
    """
    arguments = {name: xp.asarray(value) for name, value in values_by_field(family).items()}
    n_features = next(iter(arguments.values())).shape[-1]
    return [Site(name, "", n_features, Expression(text, arguments)) for name, text in distributions.items()]


def hyperparameters_of_numbers(
    family: IndependentCells, kind: HyperpriorKind, **priors: tuple[str, str]
) -> dict[str, Hyperparameter]:
    """Hyperparameters of the shape of the fields: for each the parameter that it is about, and its prior.

    A prior is an expression of the fields (F,) of the first class, as all classes share the hyperparameters, or under
    "grouped" of the fields (C, F) of all: see `Expression`.
    """
    arguments = {
        name: xp.asarray(v) if kind == "grouped" else xp.asarray(v)[0] for name, v in values_by_field(family).items()
    }
    shape = next(iter(arguments.values())).shape
    return {
        name: Hyperparameter(parameter, shape, Expression(text, arguments))
        for name, (parameter, text) in priors.items()
    }


class Cellwise(ReadyLikelihood, ABC):
    """Likelihood of independent cells, defined by the log probability of each cell."""

    @abstractmethod
    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log p(x_f | class) of each cell for one class, without the base measure."""

    @abstractmethod
    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class), without the base measure; missing cells contribute nothing."""

    @final
    @classmethod
    def from_parameters(cls, **parameters: Array) -> Self:
        """Likelihood with the given parameter arrays, by name."""
        return cls(**parameters)

    @final
    def parameters(self) -> dict[str, jax.Array]:
        """Parameter arrays (…, C, F) by name."""
        return values_by_field(self)

    @final
    def terms(self, x: object) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log p(x_f | class), without the base measure; 0 for missing cells."""
        return reduce_cells(self, only, x)


class SumOfCells(Cellwise):
    """Likelihood of independent cells whose `log_prob` is the plain sum of `cells`."""

    @final
    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log p(x_f | class), without the base measure; missing cells contribute nothing."""
        return reduce_cells(self, sum_cells, x)


def reduce_cells(likelihood: Cellwise, reduce: Callable[[Array, Array], jax.Array], x: object) -> jax.Array:
    """(N, C, …) `reduce` of mask and cell log probabilities by class: `sum_cells` gives (N, C), `only` (N, C, F)."""
    seen, x = observed(x)
    # (C, N, F) or (C, 1, F)
    of_rows = map_leaves(lambda v: v if xp.ndim(v) == 3 else xp.asarray(v)[:, None], likelihood)
    return xp.moveaxis(reduce(seen, of_rows.cells(x)), 0, 1)


def sum_with_points(terms: Float[jax.Array, "N C F"]) -> Float[jax.Array, "N C"]:
    """(N, C) Σ over the cells of log probabilities `terms` (N, C, F); -inf of one cell outweighs +inf of another.

    NaN in any cell gives NaN.
    """
    outweighed = xp.any(xp.isneginf(terms), axis=-1) & ~xp.any(xp.isnan(terms), axis=-1)
    return xp.where(outweighed, -xp.inf, xp.sum(terms, axis=-1))


@pytree
class OfEachRow(ReadyLikelihood):
    """Likelihood in which each row has its own parameters, as the row is first added `multiplicity` (C,) times.

    `posterior` is an `IndependentCells` family, or an `Empirical` posterior; `reading` is "mean" or "predictive".
    """

    posterior: IndependentCells | Empirical
    multiplicity: Array
    reading: str = static()

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log p(x_f | class), each row under its own posterior."""
        return map_in_pieces(lambda rows: self._read(rows).log_prob(rows), x, len(self.multiplicity))

    def terms(self, x: object) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log p(x_f | class), each row under its own posterior."""
        return map_in_pieces(lambda rows: self._read(rows).terms(rows), x, len(self.multiplicity))

    def _read(self, x: object) -> Likelihood:
        """Likelihood with parameters (C, N, F): for each row of x, those of the posterior with that row added."""
        (seen, cells), multiplicity = observed(x), self.multiplicity[:, None, None]
        # Priors that columns share depend on which cells the row has.
        posterior = self.posterior.with_row(cells, multiplicity if isinstance(x, Complete) else multiplicity * seen)
        return getattr(posterior, self.reading)()


def with_axis_of_rows(parameters: Tree) -> Tree:
    """Copy of parameters or statistics (C, F) with an axis of length one for rows: (C, 1, F)."""
    return map_leaves(lambda field: xp.asarray(field)[:, None], parameters)


# == Empirical Bayes: priors that are functions of the statistics, and leave-one-out readings that derive them again


class EmpiricalPrior(ABC):
    """Empirical-Bayes prior: function from the statistics of each class, and of all classes together, to a family.

    It computes in the module of its arrays only: NumPy on the host, JAX in a kernel.
    """

    statistics: ClassVar[type]
    """Type of the sufficient statistics."""
    least: ClassVar[dict[str, float]] = {}
    """Smallest value of each field that users may give."""
    tunable: ClassVar[dict[str, str]] = {}
    """Hyperparameters for the strength of the prior, and the field that each one is about."""
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Values of fields that are words."""

    @abstractmethod
    def __call__(self, statistics: Any, together: Any) -> Family:
        """Prior derived from the statistics of each class (C, F), and of all classes together (1, F)."""

    def with_hyperparameters(self: Any, values: Mapping[str, float | Array]) -> Any:
        """Copy with the hyperparameters in `values` that `tunable` names replaced."""
        fields = {field: values[name] for name, field in self.tunable.items() if name in values}
        return replace(self, **fields)

    @final
    def update_keeping_prior(self, statistics: object) -> Empirical:
        """Posterior whose readings leave rows out of the data and of the prior that is derived from the data."""
        return Empirical(self, statistics)


@pytree
class PriorByColumn(EmpiricalPrior):
    """Prior of columns of which some have given parameters, and the others parameters that are derived from the data.

    Parameters
    ----------
    given : family
        Family with parameters (C, F); those of the other columns are not used.
    derived : tuple of EmpiricalPrior
        Priors of the other columns.
    source : (F,) int array
        For each column the position in `derived`, -1 for given parameters.
    """

    given: Any
    derived: tuple[EmpiricalPrior, ...]
    source: np.ndarray = static()

    @property
    def tunable(self) -> Mapping[str, str]:  # type: ignore[override]
        """Hyperparameters for the strength of the prior, and the field that each one is about."""
        return self.given.tunable

    def __call__(self, statistics: object, together: object) -> Family:
        """Prior of all columns, of which some are derived from the statistics, of each class and of all together."""
        family = self.given
        for k, prior in enumerate(self.derived):
            derived, values = prior(statistics, together), {}
            for name in (name for name in family.least if getattr(family, name) is not None):
                behind = len(family.axes.get(name, "CF").partition("F")[2])
                values[name] = _replace_columns(self.source == k, getattr(family, name), getattr(derived, name), behind)
            family = replace(family, **values)
        return family

    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> PriorByColumn:
        """Copy with the hyperparameters in `values` replaced, in given and in derived priors."""
        derived = tuple(prior.with_hyperparameters(values) for prior in self.derived)
        return replace(self, given=self.given.with_hyperparameters(values), derived=derived)

    def of_unknown_classes(self) -> PriorByColumn:
        """Copy of this prior that can be derived without class labels."""
        derived = (getattr(prior, "of_unknown_classes", lambda prior=prior: prior)() for prior in self.derived)
        return replace(self, derived=tuple(derived))


def _replace_columns(replaced: Array, old: Array, new: Array, behind: int) -> Array:
    """(C, F, …) array `old` with the columns of `new` where `replaced` (F,); `behind` axes follow that of features.

    Under leave-one-out there is an axis of rows before that of features.
    """
    every = old if xp.ndim(old) == xp.ndim(new) else xp.expand_dims(old, -2 - behind)
    return xp.where(replaced.reshape(-1, *(1,) * behind), new, every)


@pytree
class Empirical:
    """Posterior under an empirical prior, whose leave-one-out readings also derive the prior without the row."""

    classes_share_parameters: ClassVar[bool] = True

    prior: EmpiricalPrior
    statistics: Any

    def mean(self, multiplicity: Array) -> OfEachRow:
        """Likelihood at the posterior means, each row added `multiplicity` (C,) <= 0 times to data and prior."""
        return OfEachRow(self, multiplicity, "mean")

    def predictive(self, multiplicity: Array) -> OfEachRow:
        """Likelihood, parameters integrated out, each row added `multiplicity` (C,) <= 0 times to data and prior."""
        return OfEachRow(self, multiplicity, "predictive")

    def with_row(self, cells: Array, multiplicity: Array) -> Family:
        """Posteriors (C, N, F), one per row of `cells` (N, F), under the prior derived again with that row added."""
        statistics = with_axis_of_rows(self.statistics)
        others = statistics.without(cells, -multiplicity)
        together = pooled(statistics).without(cells, xp.sum(-multiplicity, axis=0))
        return self.prior(others, together).update(others)
