"""Interfaces of conjugate families: a small core, and capabilities that a family has or lacks.

Every family is a `Family`. What only some families can do is a capability: a protocol of one to four methods, which a
family has if it defines all of them. Analyses ask by `supports(family, capability)`; a family that lacks a capability
may say why in `reasons`.

Shapes: C classes, K positions of parameters (features or levels), N rows, T terms, n draws.
"""

from __future__ import annotations

import inspect
import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families._pytree import Array, map_leaves, pytree
from bayesnb.families.variates import KeyVariates, Variates

Distribution = tuple[str, dict[str, Any]]
"""Name and arguments of a distribution of `numpyro.distributions`, or of `scipy.stats` where a method says so."""


class Hyperparameter(NamedTuple):
    """Prior distribution of a hyperparameter of the prior of `parameter`."""

    parameter: str
    shape: tuple[int, ...] = ()
    """() or (K,)."""
    distribution: Distribution | None = None
    """Distribution of each entry, independently; None: the distribution that users give for concentrations."""
    of_weights: Callable[[jax.Array], jax.Array] | None = None
    """Function that turns weights with this distribution into the hyperparameter; None: the variates themselves."""


class Words(NamedTuple):
    """Texts about a family of numbers, for messages and reports."""

    columns: str = "columns of numbers"
    """Description of columns with such numbers."""
    parameters: Mapping[str, str] = {}
    """Names of parameters in prose; parameters that are not listed go by their own names."""
    spread: str = "the feature's sd"
    """Description of `FeatureUnits.spread`."""


class Unit(NamedTuple):
    """Unit in which a parameter is shown, so that features stand side by side: (value - origin) / size."""

    label: str
    origin: Any
    """(F,)."""
    size: Array
    """(F,)."""


class Site(NamedTuple):
    """Site of a generative program: in each class `size` independent variates, which are a part of `parameter`."""

    parameter: str
    suffix: str
    size: int
    distribution: Callable[[Mapping[str, Any]], Distribution]
    """Distribution of the (C, size) variates, given values of earlier sites by parameter and suffix."""


class CellSite(NamedTuple):
    """Site of the cells of rows: their distribution (…, K), the observed values, and a mask of observed cells."""

    suffix: str
    distribution: Distribution
    value: Any
    seen: Any = True


@pytree
class Cumulants:
    """Mean, variance and third central moment; cumulants of a sum of independent variates are sums of cumulants."""

    mean: Array
    variance: Any
    third: Any

    def __add__(self, other: Cumulants) -> Cumulants:
        return map_leaves(operator.add, self, other)

    def __mul__(self, factor: float | Array) -> Cumulants:
        """Cumulants of the variate times a factor."""
        return Cumulants(self.mean * factor, self.variance * factor**2, self.third * factor**3)

    def sum(self) -> Cumulants:
        """Cumulants of the sum over the last axis."""
        return map_leaves(lambda cumulant: cumulant.sum(axis=-1), self)


# -- likelihoods -------------------------------------------------------------------------------------


class Prepared(Protocol):
    """Likelihood whose tables may be laid out for one kind of rows."""

    def prepare(self, x: object) -> Prepared:
        """Lay the tables out for rows of the kind of `x`, once for many blocks of rows."""

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class), without the base measure that no class changes."""


class Likelihood(Prepared, Protocol):
    """p(x | c) under one reading of a posterior: with parameters plugged in, or integrated out."""

    def terms(self, x: object) -> Float[jax.Array, "N C T"]:
        """(N, C, T) terms whose sum is `log_prob`: one a feature, or one for all draws from a simplex."""


class PlugIn(Likelihood, Protocol):
    """Likelihood with parameters plugged in: estimates (C, K), or draws with a leading axis."""

    @classmethod
    def from_parameters(cls, **parameters: Any) -> Self:
        """Inverse of `parameters`."""

    def parameters(self) -> dict[str, jax.Array]:
        """Parameters by name, (…, C, K) each."""

    def log_likelihood(self, statistics: Any) -> Float[jax.Array, "*C K"]:
        """(C, K) log p(rows | parameters) of all rows that were counted, without their base measure."""

    def cells(self, x: object) -> Float[jax.Array, "... K"]:
        """(…, K) log p(cell | parameters), without the base measure."""


class ReadyLikelihood:
    """Likelihood whose tables need no layout."""

    @final
    def prepare(self, x: object) -> Self:
        """Return the likelihood as it is."""
        return self


class CellDistribution(Protocol):
    """Plug-in likelihood of independent numbers, whose distribution has a name."""

    def distribution(self) -> Distribution:
        """Distribution of a cell in `numpyro.distributions`."""

    def simulate(self, rng: np.random.Generator) -> np.ndarray:
        """One cell for each of the parameters, drawn by a NumPy generator."""


# -- statistics --------------------------------------------------------------------------------------


class SufficientStatistics(Protocol):
    """Sufficient statistics of a family's parameters, for each class; a commutative monoid under `merge`."""

    def merge(self, other: Self) -> Self:
        """Statistics of both sets of rows."""

    def remove(self, other: Self) -> Self:
        """Inverse of `merge`."""

    def scale(self, factor: float) -> Self:
        """Statistics of the same rows, each weighing `factor` times as much."""

    def rounding(self) -> Self:
        """Bound on how far below zero rounding may leave each field of `remove`; None for a field of any sign."""

    def possible(self) -> Any:
        """(C, K) whether rows with non-negative weights can produce these statistics."""

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "N"]) -> Self:
        """Add a block of rows: `label` (N,) class indices, `weight` (N,) replication counts."""

    @staticmethod
    def log_base(x: object) -> Float[jax.Array, "N"]:
        """(N,) log base measure of each row: the part that neither class nor parameter changes."""


class NumberStatistics(SufficientStatistics, Protocol):
    """Statistics of numbers, a feature each."""

    def values(self) -> Any:
        """(N, F) cells, of statistics of N rows that were counted as a class each."""

    def without(self, cells: Any, weight: Any) -> Self:
        """Remove one row's `cells` (F,) of a `weight` (C, 1); what rounding leaves of nothing is 0."""


class FeatureUnits(Protocol):
    """Capability of statistics of numbers: units in which features can be compared."""

    def units(self) -> dict[str, Unit]:
        """Unit of each parameter in which features are shown side by side."""

    def spread(self) -> Any:
        """(F,) size with which the sd of the location parameter is compared, described by `Words.spread`."""


# -- the core ----------------------------------------------------------------------------------------


class Prior(ABC):
    """Distribution of the parameters of C classes: a prior, and after `update` a posterior of the same type.

    A method has one definition: methods of base classes are abstract, or final.
    """

    tunable: ClassVar[Mapping[str, str]] = {}
    """Hyperparameters for the strength of the prior, and the field that each one is about."""
    fixed: ClassVar[bool] = False
    """Whether the parameters are known, so that data do not change the distribution."""
    reasons: ClassVar[Mapping[type, str]] = {}
    """Reasons why the family lacks a capability, by protocol, in words for users."""

    def __init_subclass__(cls) -> None:
        """Refuse a class that defines a method again.

        Raises
        ------
        TypeError
            If a method of a base class is neither abstract nor a special method.
        """
        super().__init_subclass__()
        for base, name in itertools.product(cls.__mro__[1:], vars(cls)):
            method = vars(base).get(name)
            if inspect.isfunction(method) and not name.startswith("__") and not hasattr(method, "__isabstractmethod__"):
                raise TypeError(f"{cls.__name__}.{name}: {base.__name__} defines this method, which is final.")

    @abstractmethod
    def update(self, statistics: Any) -> Any:
        """Posterior given the rows that were counted in `statistics`."""

    @abstractmethod
    def log_evidence(self, statistics: Any) -> Float[jax.Array, "*C K"]:
        """(C, K) log probability of the data, base measure left out; -inf under an improper prior."""

    @abstractmethod
    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Return this prior with some hyperparameters of `tunable` or of a hyperprior replaced.

        "alpha" is a factor on the concentrations of levels.
        """

    @abstractmethod
    def proper(self) -> Any:
        """Whether the distribution of the parameters is proper, for each position of their last axis."""

    @abstractmethod
    def n_free(self) -> int:
        """Number of free parameters."""

    @abstractmethod
    def draw(self, variates: Variates, n: int) -> Any:
        """n independent draws of the parameters: a plug-in likelihood with a leading axis."""

    def sample(self, key: jax.Array, n: int) -> Any:
        """n independent draws of the parameters, with variates from a JAX key."""
        return self.draw(KeyVariates(key), n)


class Family(Prior):
    """Conjugate family of the cells of some columns: what fitting, evidence and prediction need.

    `improper().update(statistics).mean()` is the maximum likelihood estimate, where a family has parameters to read.
    """

    statistics: ClassVar[Any]
    """Type of the sufficient statistics."""
    likelihood: ClassVar[Any]
    """Type of the likelihood with parameters plugged in, a `PlugIn`."""
    nonnegative: ClassVar[bool] = False
    """Whether cells must be non-negative."""
    classes_share_parameters: ClassVar[bool] = False
    """Whether a row of one class informs the parameters of the other classes."""
    read_on_host: ClassVar[bool] = False
    """Whether readings of a posterior in NumPy arrays are computed in NumPy, or in kernels that most models share."""
    least: ClassVar[Mapping[str, float]] = {}
    """Smallest value of each field that users may give for a prior."""

    @abstractmethod
    def predictive(self, multiplicity: Array | None = None) -> Likelihood:
        """Likelihood with the parameters integrated out.

        With `multiplicity` (C,) each row is read by the posterior in which the row itself stands so many more times
        among the data of each class: -1 leaves it out.
        """

    @abstractmethod
    def scale(self, factor: float | Array) -> Self:
        """Prior that is worth `factor` times as many rows."""

    @abstractmethod
    def log_base(self, x: object) -> Float[jax.Array, "N"]:
        """(N,) log base measure of each row: the part that neither class nor parameter changes."""

    @abstractmethod
    def draw_log_likelihood(self, variates: Variates, n: int, x: object, counted_in: Array | None = None) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ) - log base, θ from the posterior in which the row is counted too.

        `counted_in` (n, N, C) is true for the class in which a row is counted, at most one class for each draw; None:
        rows are counted in no class. For each row and class alone the draws are independent; rows share variates. Terms
        that all classes share may be left out.
        """

    def log_predictive(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class, D), parameters integrated out, base measure included."""
        return self.predictive().log_prob(x) + self.log_base(x)[:, None]


class IndependentClasses(Family):
    """Family in which a row informs the parameters of its own class only."""

    @abstractmethod
    def draw_with_multiplicity(self, variates: Variates, n: int, x: object, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ) - log base, the row `multiplicity` times among the data.

        Each row and class has independent draws; rows share variates.
        """

    @abstractmethod
    def cumulants_of_terms(self, x: object) -> Cumulants:
        """(N, C, T) cumulants of the terms of each row over the posterior; base measures may be left out."""

    def draw_log_likelihood(self, variates: Variates, n: int, x: object, counted_in: Array | None = None) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ) - log base, the row counted in class `counted_in`, (n, N, C)."""
        if counted_in is None:
            return self.draw_with_multiplicity(variates, n, x, 0.0)
        informed = self.draw_with_multiplicity(variates, n, x, 1.0)
        return jnp.where(counted_in, informed, self.draw_with_multiplicity(variates, n, x, 0.0))

    def log_odds_of_terms(self, x: object, of: Int[Array, "N"], against: Int[Array, "N"]) -> Cumulants:
        """(N, T) cumulants of the differences between the terms of two classes, which are independent."""
        terms = self.cumulants_of_terms(x)

        def pick(label: Any) -> Cumulants:
            index = jnp.asarray(label)[:, None, None]
            return map_leaves(lambda cumulant: jnp.take_along_axis(cumulant, index, axis=1)[:, 0], terms)

        return pick(of) + pick(against) * -1.0


# -- capabilities ------------------------------------------------------------------------------------


class MeanReading(Protocol):
    """Capability: parameters can be plugged in at their posterior means."""

    def mean(self, multiplicity: Array | None = None) -> Any:
        """Likelihood at the posterior means; `multiplicity` as for `Family.predictive`."""


class Parametric(Protocol):
    """Capability: parameters stand in tables (C, K), one by one."""

    def mode(self) -> Any:
        """Plug-in likelihood at the mode; NaN where there is none."""

    def improper(self) -> Any:
        """Improper prior under which the posterior mean is the maximum likelihood estimate."""

    def variance(self) -> dict[str, jax.Array]:
        """Posterior variance of each parameter."""

    def pseudo_count(self) -> dict[str, Any]:
        """Number to which data add, for each parameter: a number of cells, or the sum of squares of a variance."""


class Marginals(Protocol):
    """Capability: marginal distributions of the parameters have names."""

    def marginals(self) -> dict[str, Distribution]:
        """Marginal of each parameter: name and arguments in `scipy.stats`."""


class FiniteMixture(Protocol):
    """Capability of a family whose marginals are mixtures of named ones."""

    def components(self) -> list[tuple[Any, Any]]:
        """Weights, and distributions with the marginals of the components."""


class PredictiveDistribution(Protocol):
    """Capability of families of numbers: the predictive distribution of a cell has a name."""

    def predictive_distribution(self) -> Distribution:
        """Name and arguments (C, K) in `scipy.stats` of the predictive distribution of a cell."""


class PenalizedLikelihood(Protocol):
    """Capability: an estimate by penalised likelihood, which EM maximises."""

    def penalized_mle(self) -> Any:
        """Parameters that maximise `log_penalty`: of a posterior, log p(rows | θ) + the prior's log penalty."""

    def log_penalty(self, parameters: Any) -> Float[jax.Array, "*C K"]:
        """(C, K) log density of parameters up to a constant, in a basis in which it has a maximum."""


class RowRemoval(Protocol):
    """Capability: a posterior that keeps prior and data separate, so that rows can be left out without loss."""

    def update_keeping_prior(self, statistics: Any) -> Any:
        """Posterior for readings with a negative `multiplicity`."""


class Restrictable(Protocol):
    """Capability: the distribution of the parameters at some positions."""

    def restrict(self, keep: np.ndarray) -> Any:
        """Distribution of the parameters at the positions `keep` (K,) of the last axis; others may follow them."""


class Padded(Protocol):
    """Capability of families of levels: room for more levels, so that models share compiled kernels."""

    def pad(self, extra: int) -> Any:
        """Add `extra` levels that no row refers to."""


class LogLikelihoodCumulants(Protocol):
    """Capability: cumulants of a row's log-likelihood in closed form."""

    def log_likelihood_cumulants(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C) cumulants of log p(row | class, θ) over θ, the row `multiplicity` times among the data.

        θ has, row by row, the posterior after `multiplicity` more rows like this one: 0 is the posterior itself. The
        cumulants are the first derivatives of log E p(row | class, θ)ʷ at w = `multiplicity`, each the slope of the
        one before.
        """

    def cumulants_of_terms(self, x: object) -> Cumulants:
        """(N, C, T) cumulants of the terms of each row over the posterior; base measures may be left out."""


class LogOddsCumulants(Protocol):
    """Capability: cumulants of differences between the terms of two classes in closed form."""

    def log_odds_of_terms(self, x: object, of: Int[Array, "N"], against: Int[Array, "N"]) -> Cumulants:
        """(N, T) cumulants of log p(x_t | of, θ) - log p(x_t | against, θ), for two classes a row."""


class Simulation(Protocol):
    """Capability: rows can be simulated."""

    def simulate(self, likelihood: Any, rng: np.random.Generator, total: int = 1) -> np.ndarray:
        """(S, K) cells of one row for each of S parameters of one class, drawn by a NumPy generator.

        `total` is the number of draws that a row has from one simplex.
        """


class Program(Protocol):
    """Capability: the prior and the likelihood are a generative program."""

    def program(self) -> Sequence[Site]:
        """Sites of the parameters, each distributed given those before it."""

    def to_sites(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the parameters, (…, C, K), at the sites of the program."""

    def from_sites(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Inverse of `to_sites`, for (C, …) values."""

    def cells(self, likelihood: Any, cells: Any, total: Any) -> Iterator[CellSite]:
        """Sites of the cells of rows, given parameters (…, K) and the rows as statistics of single rows.

        `cells` are None to simulate rows; then `total` is the number of draws that a row has from each simplex.
        """


class Hierarchical(Protocol):
    """Capability: a hyperprior."""

    def hyperprior(self, pooled: bool) -> dict[str, Hyperparameter]:
        """Hyperparameters that a hierarchical model does not fix; `pooled`: with those that classes share."""


class Condensable(Protocol):
    """Capability: the evidence as a function of the prior's strength alone, at a cost of the distinct counts."""

    def unit(self) -> Any:
        """Prior with concentrations 1, of which `with_hyperparameters` makes the prior with a given strength."""

    def condensed(self) -> Any:
        """Part of the prior that the evidence needs while nothing but `tunable` changes."""

    def condense(self, statistics: Any) -> Any:
        """Part of the statistics that the evidence under `condensed()` needs."""


class LevelDependence(Protocol):
    """Capability: a Bayes factor of its own for dependence of numbers on levels."""

    def log_bayes_factor_of_levels(self, by_level: Any, by_class: Any) -> np.ndarray:
        """(C, G, K) log Bayes factor of a parameter for each level of G other features against one of the class.

        `by_level` are statistics (C, G, L, K), `by_class` those of all levels.
        """


class PairDependence(Protocol):
    """Capability: a Bayes factor for dependence of two features of numbers."""

    def pairs_refusal(self, names: Sequence[str]) -> str | None:
        """Reason why two of the features called `names` have no Bayes factor; None: all have one."""

    def log_bayes_factor_of_pairs(self, other: Any, x: object, y: Any, cross: np.ndarray) -> np.ndarray:
        """(C, K, J) log Bayes factor of dependence of two features, by rows with both; `cross` is Σ (x - x̄)(y - ȳ)."""


class ConditionalDraws(Protocol):
    """Capability of families whose parameters can be drawn for some data only."""

    def draws_refusal(self) -> str | None:
        """Reason why draws of this posterior would not average to its predictive; None: they do."""


_LACKING: dict[type, str] = {
    PredictiveDistribution: "{} does not say which distribution its predictive is.",
    Program: "{} has no NumPyro program: it lacks `program`.",
}


def supports(family: Any, capability: type) -> bool:
    """Whether a family, or statistics, have a capability: all methods of that protocol."""
    methods = (name for name, value in vars(capability).items() if inspect.isfunction(value))
    return all(hasattr(family, name) for name in methods if not name.startswith("_"))


def reason_for_lack(family: Any, capability: type) -> str:
    """Reason, in words for users, why a family lacks a capability."""
    stated: str | None = getattr(family, "reasons", {}).get(capability)
    text = _LACKING.get(capability, f"{{}} lacks the capability {capability.__name__}.")
    return text.format(type(family).__name__) if stated is None else stated


def mixture_components(family: Any) -> list[tuple[Any, Any]]:
    """Weights, and distributions of whose marginals those of the family are mixtures."""
    return family.components() if supports(family, FiniteMixture) else [(1.0, family)]


def posterior_for_removal(prior: Any, statistics: Any) -> Any:
    """Posterior from which readings with a negative `multiplicity` leave rows out."""
    if supports(prior, RowRemoval):
        return prior.update_keeping_prior(statistics)
    return prior.update(statistics)


def hyperprior_of(family: Any, pooled: bool) -> dict[str, Hyperparameter]:
    """Hyperparameters of a family that a hierarchical model does not fix; empty if all are fixed."""
    return family.hyperprior(pooled) if supports(family, Hierarchical) else {}
