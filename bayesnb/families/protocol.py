"""What a conjugate family offers: a prior that data turn into a posterior of the same type."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import jax
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families._pytree import pytree
from bayesnb.families._types import Array
from bayesnb.families.variates import Variates

Distribution = tuple[str, dict[str, Any]]
"""The name of a distribution of `numpyro.distributions`, and its arguments: families know of it by name only."""


class Hyperparameter(NamedTuple):
    """How a hyperparameter of the prior of `parameter` is distributed."""

    parameter: str
    shape: tuple[int, ...] = ()
    """() or (K,)."""
    distribution: Distribution | None = None
    """Of each of them, independent; None: as users say that a concentration is distributed."""
    of_weights: Callable[[jax.Array], jax.Array] | None = None
    """What has this distribution are weights, and this makes the hyperparameter of them."""


class Words(NamedTuple):
    """How texts call what a family of numbers is about."""

    columns: str = "columns of numbers"
    """Columns of such numbers."""
    parameters: Mapping[str, str] = {}
    """Its parameters; by their own names where nothing is said."""
    spread: str = "the feature's sd"
    """What `SufficientStatistics.spread` is."""


class Unit(NamedTuple):
    """In what unit a parameter is shown, so that features stand side by side: (value - origin) / size."""

    label: str
    origin: Any
    """(F,)."""
    size: Any
    """(F,)."""


class Site(NamedTuple):
    """A site of the generative program: in each class `size` independent variates, a part of `parameter`."""

    parameter: str
    suffix: str
    size: int
    distribution: Callable[[Mapping[str, Any]], Distribution]
    """(C, size), given what the sites before it have, by parameter and suffix."""


class Cells(NamedTuple):
    """A site of the cells of rows: their distribution, (…, K), what was observed, and which of them were."""

    suffix: str
    distribution: Distribution
    value: Any
    seen: Any = True


class Prepared(Protocol):
    """A likelihood whose tables may be laid out for one kind of rows."""

    def prepare(self, x: Any) -> Prepared:
        """The same likelihood with its tables laid out for rows of the kind of `x`."""
        ...

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class), without the base measure that no class changes."""
        ...


class Likelihood(Prepared, Protocol):
    """p(x | c), one reading of a posterior: with parameters plugged in, or with them integrated out."""

    def terms(self, x: Any) -> Float[jax.Array, "N C T"]:
        """(N, C, T) the terms that it is the sum of: one a feature, or one of all draws from a simplex."""
        ...


class PlugIn(Likelihood, Protocol):
    """A likelihood with parameters plugged in: estimates, or draws with a leading axis."""

    @classmethod
    def from_parameters(cls, **parameters: Any) -> Self:
        """From what `parameters` gives."""
        ...

    def parameters(self) -> dict[str, jax.Array]:
        """The parameters by name, (…, C, K) each."""
        ...

    def log_likelihood(self, statistics: Any) -> Float[jax.Array, "*C K"]:
        """(C, K) log p(rows | parameters) of all rows that were counted, without their base measure."""
        ...

    def cells(self, x: Any) -> Float[jax.Array, "... K"]:
        """(…, K) log p(cell | parameters), without the base measure."""
        ...

    def distribution(self) -> Distribution:
        """How a cell is distributed; of levels the family says it, `Family.cells`."""
        ...

    def simulate(self, rng: Any) -> np.ndarray:
        """A cell for each of the parameters, by a NumPy generator; not of levels, whose groups the family knows."""
        ...


@pytree
class Cumulants:
    """Mean, variance and third central moment: those of a sum of independent variates are the sums of theirs."""

    mean: Any
    variance: Any
    third: Any

    def __add__(self, other: Cumulants) -> Cumulants:
        return jax.tree.map(operator.add, self, other)

    def __mul__(self, factor: Any) -> Cumulants:
        """Of the variate times a factor."""
        return Cumulants(self.mean * factor, self.variance * factor**2, self.third * factor**3)

    def sum(self) -> Cumulants:
        """Of the sum over the last axis."""
        return jax.tree.map(lambda cumulant: cumulant.sum(axis=-1), self)


class SufficientStatistics(Protocol):
    """What the data say of a family's parameters; a commutative monoid."""

    def merge(self, other: Self) -> Self: ...

    def remove(self, other: Self) -> Self: ...

    def scale(self, factor: float) -> Self:
        """The statistics of the same rows, each weighing `factor` times as much."""
        ...

    def rounding(self) -> Self:
        """How far below zero rounding may leave each field of `remove` (None: a field of any sign)."""
        ...

    def possible(self) -> Any:
        """(C, K) whether rows could have left this."""
        ...

    def observe(self, x: Any, label: Int[Array, "N"], weight: Float[Array, "N"]) -> Self:
        """Add a block of rows: `label` (N,) class indices, `weight` (N,) replication counts."""
        ...

    def values(self) -> Any:
        """(N, F) cells, of the statistics of N rows that were counted as a class each; not of levels."""
        ...

    def units(self) -> dict[str, Unit]:
        """For each parameter the unit in which features are shown side by side; none: as it is."""
        ...

    def spread(self) -> Any:
        """(F,) what the sd of the location parameter is compared with, by `Words.spread`; None for levels."""
        ...

    @staticmethod
    def log_base(x: Any) -> Float[jax.Array, "N"]:
        """(N,) log base measure of each row: what neither class nor parameter changes."""
        ...


class Family(Protocol):
    """A conjugate prior over C classes, and so also every posterior.

    It is updated with `statistics`; `improper().update(statistics).mean()` is the maximum likelihood estimate.
    """

    kind: ClassVar[str]
    """What users call columns of such numbers, as in `MixedNB(gaussian=...)`; of levels the columns say it."""
    words: ClassVar[Words]
    statistics: ClassVar[type]
    likelihood: ClassVar[type]
    """What has parameters plugged in, a `PlugIn`."""
    nonnegative: ClassVar[bool]
    """Whether the cells are non-negative numbers; else they are any."""
    fixed: ClassVar[bool]
    """Whether this is a fixed prior, which no data change."""
    classes_share_parameters: ClassVar[bool]
    """Whether a row of one class tells of the parameters of the others."""
    has_tables: ClassVar[bool]
    """Whether parameters have means that can be plugged in, one by one."""
    read_on_host: ClassVar[bool]
    """Whether readings of a posterior in NumPy arrays are computed in NumPy, or in kernels that most models share."""
    read_with_row_on_host: ClassVar[bool]
    """Whether this also holds for readings with rows added or left out."""
    least: ClassVar[dict[str, float]]
    """Of each field the smallest value that a prior may have."""
    empirical: ClassVar[dict[str, Any]]
    """Priors that are derived from the data, `EmpiricalPrior`s, by the names that estimators take for them."""
    tunable: ClassVar[dict[str, str]]
    """Hyperparameters that say how strong the prior is: of each the field that it is about."""

    def hyperprior(self, pooled: bool) -> dict[str, Hyperparameter]:
        """How the hyperparameters are distributed that a hierarchical model does not fix; none: all are fixed.

        `pooled` asks for a base measure of levels, which classes share. To be put into `unit()`.
        """
        ...

    def unit(self) -> Self:
        """The prior into which `with_hyperparameters` puts drawn ones: of levels that of concentrations 1."""
        ...

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """This prior with some of `tunable` and `hyperprior` in place of its own; α is a factor on concentrations."""
        ...

    def condensed(self) -> Any:
        """As much of the prior as the evidence needs while nothing but `tunable` changes."""
        ...

    def condense(self, statistics: Any) -> Any:
        """As much of the statistics as the evidence under `condensed()` needs."""
        ...

    def n_free(self) -> int:
        """Number of free parameters."""
        ...

    def log_bayes_factor_of_levels(self, by_level: Any, by_class: Any) -> np.ndarray:
        """(C, G, K) log Bayes factor of a parameter for each level of G other features against one of the class.

        `by_level` are statistics (C, G, L, K), `by_class` those of all levels. Levels share the rows of the prior.
        """
        ...

    location: ClassVar[str]
    """The parameter that says where cells lie, by whose sd parameters are ranked."""
    correlates: ClassVar[bool]
    """Whether the dependence of two such features on each other has a closed form too."""

    def require_pairs(self, names: Sequence[str]) -> None:
        """Raise NotImplementedError unless it has for each two of these features."""
        ...

    def log_bayes_factor_of_pairs(self, other: Any, x: Any, y: Any, cross: np.ndarray) -> np.ndarray:
        """(C, K, J) log Bayes factor of dependence of two features, by rows with both; `cross` is Σ (x - x̄)(y - ȳ)."""
        ...

    def update(self, statistics: Any) -> Self: ...

    def update_apart(self, statistics: Any) -> Self:
        """As `update`, prior and data kept apart if need be: for leave-one-out, a `multiplicity` below 0."""
        ...

    def improper(self) -> Self:
        """The improper prior under which the posterior mean is the maximum likelihood estimate."""
        ...

    def scale(self, factor: Any) -> Self:
        """A prior that counts for `factor` times as many rows."""
        ...

    def restrict(self, keep: np.ndarray) -> Self:
        """The distribution of the parameters at some positions of the last axis, `keep` (K,); others may follow."""
        ...

    def log_partition(self) -> Float[jax.Array, "*C K"]:
        """(C, K) log normaliser of each independent piece; +inf under an improper prior."""
        ...

    def log_evidence(self, statistics: Any) -> Float[jax.Array, "*C K"]:
        """(C, K) log probability of the data, base measure left out; -inf under an improper prior."""
        ...

    def mean(self) -> PlugIn: ...

    def mode(self) -> PlugIn: ...

    def penalized_mle(self) -> PlugIn:
        """The parameters that maximise `log_penalty`: of a posterior, log p(rows | θ) + the prior's log penalty."""
        ...

    def log_penalty(self, parameters: Any) -> Float[jax.Array, "*C K"]:
        """(C, K) log density of parameters, up to a constant, where it has a maximum; data add their log-likelihood."""
        ...

    def predictive(self) -> Likelihood: ...

    def predictive_distribution(self) -> tuple[str, dict[str, Any]]:
        """Name and arguments (C, K) in `scipy.stats` of the predictive of a cell; of levels `predictive` says it."""
        ...

    def mean_with_row(self, multiplicity: Any) -> Likelihood:
        """As `mean`, of the posterior with the row `multiplicity` (C,) more times among the data: -1 leaves it out."""
        ...

    def predictive_with_row(self, multiplicity: Any) -> Likelihood: ...

    def variance(self) -> dict[str, jax.Array]: ...

    def marginals(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """For each parameter the name and the arguments of its marginal in `scipy.stats`."""
        ...

    def components(self) -> list[tuple[Any, Any]]:
        """Weights, and families with the marginals of which this one is the mixture: [(1, self)] if it is none."""
        ...

    def pseudo_count(self) -> dict[str, Any]:
        """For each parameter what data add to: a number of cells, or the sum of squares behind a variance."""
        ...

    def proper(self) -> jax.Array:
        """For each position of the last axis whether the distribution of its parameters is proper."""
        ...

    def no_draws(self) -> str | None:
        """Why parameters are not drawn, where draws of this posterior would not average to its predictive."""
        ...

    def draw(self, variates: Variates, n: int) -> PlugIn:
        """n independent draws of the parameters: a likelihood with a leading axis."""
        ...

    def sample(self, key: jax.Array, n: int) -> PlugIn:
        """As `draw`, with variates from a JAX key."""
        ...

    def program(self) -> Sequence[Site]:
        """How each parameter is distributed given those before it: the prior as a generative program."""
        ...

    def at_sites(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the parameters, (…, C, K), at the sites of the program."""
        ...

    def from_sites(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The inverse, of (C, …) values."""
        ...

    def cells(self, likelihood: Any, cells: Any, total: Any) -> Iterator[Cells]:
        """How the cells of rows are distributed under parameters (…, K), given as statistics of single rows.

        `cells` are None to simulate rows, and then `total` is how many draws they have from each simplex.
        """
        ...

    def simulate(self, likelihood: Any, rng: Any, total: int = 1) -> np.ndarray:
        """(S, K) cells of a row for each of S parameters of one class, by a NumPy generator.

        `total` is how many draws a row has from one simplex.
        """
        ...

    def log_predictive(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class), parameters integrated out, base measure included."""
        ...

    def log_likelihood_cumulants(self, x: Any, multiplicity: float = 0.0) -> Cumulants:
        """(N, C) cumulants of log p(row | class, θ) over θ, the row `multiplicity` times among the data.

        θ has, row by row, the posterior after `multiplicity` more rows like this one: 0 is the posterior itself. They
        are the first derivatives of log E p(row | class, θ)ʷ at w = `multiplicity`, each the slope of the one before.
        """
        ...

    def cumulants_of_terms(self, x: Any) -> Cumulants:
        """(N, C, T) those of the terms of the row, over the posterior; they sum up, but for the base measure."""
        ...

    def log_odds_of_terms(self, x: Any, of: Int[Array, "N"], against: Int[Array, "N"]) -> Cumulants:
        """(N, T) those of log p(x_t | of, θ) - log p(x_t | against, θ), two classes for each row."""
        ...

    def draw_log_likelihood(
        self, variates: Variates, n: int, x: Any, multiplicity: float = 0.0
    ) -> Float[jax.Array, "n N C"]:
        """(n, N, C) draws of log p(row | class, θ) - log base, the row `multiplicity` times among the data.

        For each row and class alone these are independent draws; rows share variates, and so do classes what a
        row adds to its own class, which it has one of.
        """
        ...

    def draw_log_likelihood_with_row(
        self, variates: Variates, n: int, x: Any, own: jax.Array
    ) -> Float[jax.Array, "n N C"]:
        """(n, N, C) draws of log p(row | class, θ), θ from the posterior in which the row is counted in class `own`.

        `own` (n, N, C) is true in at most one class of each draw and row. What all classes share may be left out.
        """
        ...
