"""Interface of conjugate families, of their statistics, and of the standard variates that draws are made of.

Every family is a `Family`. What only some families do is an optional method, `@optional`, which raises
NotImplementedError with a reason in families that do not define it. A family states a reason of its own by
`program = lacking("The set of cuts is discrete …")`. Analyses call the method; `offers` tells whether a family has it.

Shapes: C classes, K positions of parameters (features or levels), N rows, T terms, n draws.
"""

# mypy: disable-error-code="empty-body"
# ruff: noqa: B027

from __future__ import annotations

import inspect
import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import reduce, wraps
from operator import itemgetter
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, Protocol, Self, TypeVar, cast, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families.arrays import Array, Tree, log_ndtr, map_leaves, pytree, xp

# == Sources of standard random variates, of which every draw of parameters is a function ==========

TermDraws = tuple[tuple[jax.Array, ...], Callable[..., jax.Array]]
"""Variates of n draws, and the function of those of one draw to the terms log p(x_t | class, θ) of rows, (N, C, T)."""


Increments = Callable[[Any], Array]
"""Function of the sufficient statistics of rows, linear in the rows, to what the rows have added to a quantity."""


class Variates(ABC):
    """Source of standard random variates: gamma and normal; independent, but for what rows have added.

    A request may say what rows have added to its distribution. Draws that vary together as rows do
    (`uncertainty.row_variates`) are made of this part; sources of independent variates do not use it.
    """

    @abstractmethod
    def log_gamma(self, a: Array, n: int, added: Increments | None = None) -> jax.Array:
        """(n, *shape of a) logarithms of Gamma(a, 1) variates; -inf where a is 0.

        Of `a`, `added(statistics)` comes from rows; for the rate λ = g/b of numbers less b's increment times a/b.
        """

    @abstractmethod
    def normal(self, like: Array, n: int, added: Increments | None = None) -> jax.Array:
        """(n, *shape of like) standard normal variates, to each of which rows have added `added(statistics)`."""

    def log_gamma_ratio(self, a: Array, b: Array, n: int, index: Array, added: Increments | None = None) -> jax.Array:
        """(n, *shape of a) logarithms of ratios of Gamma(a) to Gamma(b_k) variates, k the `index`.

        b is (…, R), and `index` (n, …); of `a`, `added(statistics)` comes from rows as for `log_gamma`.
        """
        denominators = self.log_gamma(b, n)
        return self.log_gamma(a, n, added) - xp.take_along_axis(denominators, index[..., None], axis=-1)[..., 0]

    def log_uniform(self, like: Array, n: int) -> jax.Array:
        """(n, *shape of like) logarithms of uniform variates on (0, 1), computed from normal variates."""
        return log_ndtr(self.normal(like, n))

    def log_beta(self, a: Array, b: Array, n: int) -> jax.Array:
        """(n, *shape of a) logarithms of Beta(a, b) variates, computed from gamma variates."""
        log_a, log_b = self.log_gamma(a, n), self.log_gamma(b, n)
        return log_a - xp.logaddexp(log_a, log_b)


class Replayer(Variates):
    """Variates that were recorded as (gammas, normals), returned call by call in their order."""

    def __init__(self, drawn: tuple[Sequence[jax.Array], Sequence[jax.Array]]) -> None:
        """Keep the recorded (gammas, normals), to be returned in this order."""
        self._gammas, self._normals = map(iter, drawn)

    def log_gamma(self, a: Array, n: int, added: Increments | None = None) -> jax.Array:
        """Next recorded array of log gamma variates; the arguments are not used."""
        return next(self._gammas)

    def normal(self, like: Array, n: int, added: Increments | None = None) -> jax.Array:
        """Next recorded array of normal variates; the arguments are not used."""
        return next(self._normals)


class KeyVariates(Variates):
    """Variates from a JAX key that is split at each call."""

    def __init__(self, key: jax.Array) -> None:
        """Keep the key, to be split at each call."""
        self._key = key

    def log_gamma(self, a: Array, n: int, added: Increments | None = None) -> jax.Array:
        """(n, *shape of a) logarithms of Gamma(a, 1) variates; -inf where a is 0."""
        return jax.random.loggamma(self._next(), jnp.asarray(a), (n, *jnp.shape(a)))

    def normal(self, like: Array, n: int, added: Increments | None = None) -> jax.Array:
        """(n, *shape of like) standard normal variates."""
        return jax.random.normal(self._next(), (n, *jnp.shape(like)), jnp.asarray(like).dtype)

    def _next(self) -> jax.Array:
        """Split the key; store one half and return the other."""
        self._key, part = jax.random.split(self._key)
        return part


# == Interface of conjugate families: what every family does, and what only some families do =======

Method = TypeVar("Method", bound=Callable[..., object])
OfPredictive = Mapping[str, Callable[..., float]]
"""Parameters as functions of a frozen distribution of `scipy.stats`."""
Distribution = tuple[str, Mapping[str, float | Array]]
"""Name and arguments of a distribution of `scipy.stats`."""


HyperpriorKind = Literal["symmetric", "pooled", "grouped"]
"""Kind of a hyperprior: of concentrations only; also of what classes share; or for each class, of what groups share."""


class Expression(NamedTuple):
    """Distribution of `numpyro.distributions` as Python text, such as "Normal(loc, jnp.sqrt(sigma2 / kappa))".

    Names in it are those of `arguments`, and of parameters that were sampled before.
    """

    text: str
    arguments: Mapping[str, Array]


class Hyperparameter(NamedTuple):
    """Name, shape and prior distribution of one hyperparameter of the prior of `parameter`."""

    parameter: str
    shape: tuple[int, ...] = ()
    """(), (K,), (C, K) if each class has its own, or (G,) for G groups of levels."""
    distribution: Expression | None = None
    """Distribution of the entries, independently; None: the distribution that users give for concentrations."""
    of_weights: Callable[[jax.Array], jax.Array] | None = None
    """Function that turns weights with this distribution into the hyperparameter; None: the variates themselves."""


class Words(NamedTuple):
    """Texts about a family of numbers for messages and reports."""

    parameters: Mapping[str, str] = {}
    """Names of parameters in prose; parameters that are not listed go by their own names."""
    spread: str = "the feature's sd"
    """Description of the `spread` of statistics."""
    if_overdispersed: str = ""
    """Classifier to try if cells vary more than the family says; "" if there is none."""


class Unit(NamedTuple):
    """Origin and size in which a parameter is displayed: (value - origin) / size, comparable between features."""

    label: str
    origin: Array
    """(F,)."""
    size: Array
    """(F,)."""


class Site(NamedTuple):
    """Sample site of a NumPyro program: `size` independent variates per class that make up part of `parameter`."""

    parameter: str
    suffix: str
    size: int
    distribution: Expression
    """Distribution of the (C, size) variates, given values of earlier sites by parameter and suffix."""


@pytree
class Cumulants:
    """First three cumulants (mean, variance, third central moment) of random variables, arrays of one shape."""

    mean: Array
    variance: Array
    third: Array

    def __add__(self, other: Cumulants) -> Cumulants:
        """Cumulants of the sum of two independent variables."""
        return map_leaves(operator.add, self, other)

    def __mul__(self, factor: float | Array) -> Cumulants:
        """Cumulants of the variable times a constant: mean · f, variance · f², third · f³."""
        return Cumulants(self.mean * factor, self.variance * factor**2, self.third * factor**3)

    def sum(self) -> Cumulants:
        """Cumulants of the sum of the independent variables on the last axis, which is removed."""
        return map_leaves(lambda cumulant: cumulant.sum(axis=-1), self)


# -- likelihoods and statistics ----------------------------------------------------------------------


class Scorer(Protocol):
    """Function of rows to p(row | class): a likelihood, or its tables for one kind of rows."""

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class) of rows x, without the base measure, which is the same in all classes."""


class Likelihood(Scorer, Protocol):
    """Likelihood p(row | class) under one reading of a posterior: parameters plugged in, or integrated out.

    With parameters plugged in, (C, K) or n draws (n, C, K), a likelihood also has

    - `parameters()`, the parameter arrays (…, C, K) by name, and its inverse, the class method
      `from_parameters(**parameters)`;
    - `log_likelihood(statistics)`, the (C, K) log likelihood of all counted rows, without base measure;
    - `cells(x)`, the (…, K) log probability of each cell at the parameters of one class, without base measure;
    - if cells are independent numbers, `cell`, their distribution in `numpyro.distributions` as an expression of the
      parameters (see `Expression`), and `simulate(rng)`, one random cell for each of the parameters.
    """

    def prepare(self, x: object) -> Scorer:
        """Return an equal likelihood with tables rearranged for rows encoded like `x`, to score many such blocks.

        The tables serve one kind of rows: dense, sparse or coded.
        """

    def terms(self, x: object) -> Float[jax.Array, "N C T"]:
        """(N, C, T) terms that add up to `log_prob`: one per feature, or a single one for a bag of words."""


class ReadyLikelihood:
    """Likelihood that needs no `prepare`: its tables serve every kind of rows."""

    @final
    def prepare(self, x: object) -> Self:
        """Return the likelihood unchanged."""
        return self


class SufficientStatistics(Protocol):
    """Sufficient statistics of the rows of each class; a commutative monoid under `merge`.

    Statistics of columns of numbers, with a position per feature, also have

    - `values()`, the (N, F) cells of rows, from statistics in which each of N rows was counted as its own class;
    - the class method `from_cells(x, weight)`, the statistics of single cells x (…, F) as arrays of the shape of x;
    - `without(cells, weight)`, the statistics without one row's `cells` (F,) of `weight` (C, 1) per class, with
      rounding errors set to 0;
    - optionally `units()`, the display `Unit` of each parameter, and `spread()`, an (F,) yardstick for the sd of each
      feature's location parameter, which `Words.spread` names.
    """

    def merge(self, other: Self) -> Self:
        """Statistics of the rows of `self` and `other` together."""

    def remove(self, other: Self) -> Self:
        """Statistics without the rows of `other`: the inverse of `merge`; rounding may leave values below 0."""

    def scale(self, factor: float) -> Self:
        """Statistics of the same rows with all weights multiplied by `factor`."""

    def rounding(self) -> Self:
        """Largest rounding error below zero to tolerate after `remove`, by field; None for a field of any sign."""

    def possible(self) -> Array:
        """(C, K) of bool: whether rows with non-negative weights can produce these statistics."""

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> Self:
        """Statistics with a block of encoded rows added: `label` (N,) class indices, `weight` (N,) counts of a row."""

    @staticmethod
    def log_base(x: object) -> Float[jax.Array, "N"]:
        """(N,) log base measure of each row: the factor of p(row | class, θ) that depends on neither class nor θ."""


# -- the core ----------------------------------------------------------------------------------------


def lacking(reason: str) -> Callable[..., NoReturn]:
    """Optional method that a family lacks: it raises NotImplementedError with a reason; "{}" is the family's name."""

    def refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError(reason.format(type(self).__name__))

    vars(refuse).update(reason=reason)
    return overridable(refuse)


def optional(method: Method) -> Method:
    """Decorate a method of a base class that only some families define; its body is not used."""
    return cast(Method, wraps(method)(lacking(f"{{}} does not define the method `{method.__name__}`.")))


def overridable(method: Method) -> Method:
    """Decorate a method of a base class that is a default, which families may replace."""
    vars(method).update(overridable=True)
    return method


def reason_for_lack(family: object, method: str) -> str | None:
    """Reason why a family does not offer the optional method of this name, in words for users; None if it does."""
    reason: str | None = getattr(getattr(family, method), "reason", None)
    return None if reason is None else reason.format(type(family).__name__)


def offers(family: object, method: str) -> bool:
    """Whether a family, or statistics, defines the optional method of this name."""
    return hasattr(family, method) and reason_for_lack(family, method) is None


def no_em(models: str, advice: str) -> Callable[..., NoReturn]:
    """`lacking` EM in a family that averages over `models`; `advice` is a further sentence."""
    return lacking(
        f"The model averages over {models} with different numbers of parameters, and EM cannot compare their "
        f"densities. {advice}"
    )


def no_nuts(parameter: str, advice: str = "") -> Any:
    """`lacking` a NumPyro program in a family with a discrete parameter, such as "The tree"."""
    reason = f"{parameter} is discrete, and NUTS does not sample discrete parameters."
    return lacking(f"{reason} Use posterior_draws for exact draws. {advice}".rstrip())


class Prior(ABC):
    """Distribution of the parameters of C classes: a prior, and after `update` a posterior of the same type.

    A method has one definition: methods of base classes are abstract, `optional`, `overridable`, or final.
    """

    tunable: ClassVar[Mapping[str, str]] = {}
    """Hyperparameters for the strength of the prior, and the field that each one is about."""
    fixed: ClassVar[bool] = False
    """Whether the parameters are known, so that data do not change the distribution."""
    unread: ClassVar[tuple[str, ...]] = ()
    """Data fields that `update` neither reads nor changes. Static fields, such as groups of levels, it never reads."""

    def __init_subclass__(cls) -> None:
        """Raise TypeError if the class defines a final method of a base class again.

        Raises
        ------
        TypeError
            If a method of a base class is neither abstract nor optional nor a default, nor a special method.
        """
        super().__init_subclass__()
        for base, name in itertools.product(cls.__mro__[1:], vars(cls)):
            method, marks = vars(base).get(name), ("__isabstractmethod__", "overridable")
            if inspect.isfunction(method) and not name.startswith("__") and not any(hasattr(method, m) for m in marks):
                raise TypeError(
                    f"{cls.__name__}.{name}: {base.__name__} defines this method, which is final. Rename the method."
                )

    @abstractmethod
    def update(self, statistics: Any) -> Self:
        """Posterior of the parameters, a distribution of the same type, given statistics of labelled rows.

        Where all arrays of the prior, but for `unread`, and of the statistics have one shape, each entry of the
        posterior depends on the same entries alone: `kernels.update` pads these arrays.
        """

    @abstractmethod
    def log_evidence(self, statistics: Any) -> Float[jax.Array, "*C K"]:
        """(C, K) log marginal likelihood of the counted rows, without base measures; -inf under an improper prior."""

    @abstractmethod
    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Copy of this prior with the hyperparameters in `values` replaced, named as in `tunable` or a hyperprior.

        "alpha" is a factor on the concentrations of levels.
        """

    @abstractmethod
    def proper(self) -> Array:
        """Array of bool: whether the distribution of the parameters is proper, at each position of the last axis."""

    @abstractmethod
    def n_free(self) -> int:
        """Number of free parameters of all classes together, as for BIC."""

    @abstractmethod
    def draw(self, variates: Variates, n: int) -> Any:
        """Plug-in likelihood with n independent draws (n, C, K) of the parameters, computed from standard variates."""

    def sample(self, key: jax.Array, n: int) -> Any:
        """Plug-in likelihood with n independent draws (n, C, K) of the parameters, with variates from a JAX key."""
        return self.draw(KeyVariates(key), n)

    @overridable
    def update_keeping_prior(self, statistics: Any) -> Any:
        """Posterior for readings that leave rows out (`multiplicity` < 0), which may store prior and counts separately.

        By default `update`, from which rows are left out with a loss by rounding.
        """
        return self.update(statistics)

    @overridable
    def hyperprior(self, kind: HyperpriorKind) -> dict[str, Hyperparameter]:
        """Hyperparameters, by name, that get a prior of their own; {} if all are fixed.

        "pooled" adds those that the classes share; under "grouped" each class has its own, which groups of rows share.
        A family whose classes share parameters has none: posteriors under several draws are side by side as classes.
        The arguments of their distributions are functions of this prior's fields, written with `xp`: NUTS traces them.
        `with_hyperparameters` and `update` broadcast: values may have leading axes, of draws and of groups of rows.
        """
        return {}

    @overridable
    def groups_refusal(self) -> str | None:
        """Reason why groups of rows have no parameters of their own with a common distribution; None: they have.

        By default they have if `hyperprior("grouped")` has hyperparameters.
        """
        if self.hyperprior("grouped"):
            return None
        return "these parameters have no distribution that groups share. Leave the columns out of the classifier."

    @overridable
    def for_groups(self) -> Prior:
        """Prior whose parameters may differ between groups of rows; by default the prior itself."""
        return self

    @overridable
    def unit(self) -> Self:
        """Prior with all concentrations 1, to be scaled by `with_hyperparameters`; by default the prior itself."""
        return self

    @overridable
    def components(self) -> Sequence[tuple[float | Array, Prior]]:
        """Pairs (mixture weight, family): the marginal posteriors are mixtures of the `marginals()` of the families."""
        return [(1.0, self)]

    @optional
    def mean(self, multiplicity: Array | None = None) -> Likelihood:
        """Likelihood with parameters plugged in at their posterior means.

        With `multiplicity` (C,) each scored row is first added to the data of each class that many times: -1 leaves it
        out.
        """

    @optional
    def mode(self) -> Likelihood:
        """Plug-in likelihood at the joint posterior mode (MAP); NaN where the density has no mode."""

    @optional
    def improper(self) -> Prior:
        """Improper prior under which the posterior mean is the maximum likelihood estimate."""

    @optional
    def variance(self) -> dict[str, jax.Array]:
        """Posterior variances (C, K) of the parameters, by parameter name."""

    @optional
    def pseudo_count(self) -> Mapping[str, Array]:
        """Weight (C, K) of the distribution by parameter: number of pseudo-observations, or pseudo sum of squares."""

    @optional
    def marginals(self) -> dict[str, Distribution]:
        """Marginal posterior of each parameter, by name: name and arguments (C, K) of a `scipy.stats` distribution."""

    @optional
    def penalized_mle(self) -> Likelihood:
        """Plug-in likelihood at the parameters that maximise `log_penalty`: the penalised MLE of a posterior's rows."""

    @optional
    def log_penalty(self, parameters: Any) -> Float[jax.Array, "*C K"]:
        """(C, K) log density at given parameters, up to a constant, in a basis in which it has a maximum."""


class Family(Prior):
    """Conjugate family: prior or posterior of the parameters of some columns, with its predictive and draws of scores.

    `improper().update(statistics).mean()` is the maximum likelihood estimate, where a family has parameters to read.
    """

    statistics: ClassVar[Any]
    """Type of the sufficient statistics."""
    likelihood: ClassVar[Any]
    """Type of the likelihood with parameters plugged in."""
    nonnegative: ClassVar[bool] = False
    """Whether cells must be non-negative."""
    sparse: ClassVar[bool] = False
    """Whether numbers may be a sparse matrix, whose absent cells are 0."""
    classes_share_parameters: ClassVar[bool] = False
    """Whether a row of one class informs the parameters of the other classes."""
    draws_on_host: ClassVar[bool] = False
    """Whether NumPy draws log-likelihoods given the row's class sooner than JAX has compiled the function."""
    of_predictive: ClassVar[OfPredictive] = {}
    """Parameters as functions of `predictive_distribution`, frozen in `scipy.stats`, such as the mean for a rate."""
    least: ClassVar[Mapping[str, float]] = {}
    """Smallest value of each field that users may give for a prior."""
    axes: ClassVar[Mapping[str, str]] = {}
    """Axes of fields whose axes are not "CF", classes and features: "F", "", or "CFR" with an axis of its own.

    A field "F" or "" is the same for all classes. Users may leave out a field whose default is None.
    """

    @abstractmethod
    def predictive(self, multiplicity: Array | None = None) -> Likelihood:
        """Posterior predictive likelihood: parameters integrated out.

        With `multiplicity` (C,) each scored row is first added to the data of each class that many times: -1 leaves it
        out.
        """

    @abstractmethod
    def scale(self, factor: float | Array) -> Self:
        """Prior with the weight of `factor` times as many pseudo-observations, and the same location."""

    @overridable
    def log_base(self, x: object) -> Float[jax.Array, "N"]:
        """(N,) log base measure of each row: the factor of p(row | class, θ) that depends on neither class nor θ.

        By default that of the statistics.
        """
        return self.statistics.log_base(x)

    @abstractmethod
    def draw_log_likelihood(self, variates: Variates, n: int, x: object, counted_in: Array | None = None) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ) - log base, θ given the data and the row in class `counted_in`.

        `counted_in` (n, N, C) is true for the class in which a row is counted, at most one class for each draw; None:
        rows are counted in no class. For each row and class alone the draws are independent; rows share variates. Terms
        that all classes share may be left out.
        """

    def log_predictive(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log posterior predictive probability of each row given each class, base measure included."""
        return self.predictive().log_prob(x) + self.log_base(x)[:, None]

    @overridable
    def condensed(self) -> object:
        """Small prior with `log_evidence` and `with_hyperparameters`, valid while only `tunable` fields change."""
        return self

    @overridable
    def condense(self, statistics: Any) -> object:
        """Reduced statistics that `condensed().log_evidence` takes in place of the full ones."""
        return statistics

    @overridable
    def draws_refusal(self) -> str | None:
        """Reason why averages over parameter draws would differ from the predictive; None: they agree."""
        return None

    @overridable
    def pairs_refusal(self, names: Sequence[str]) -> str | None:
        """Reason why two of the features called `names` have no Bayes factor of dependence; None: all pairs have."""
        return None

    @optional
    def log_bayes_factor_of_pairs(self, other: Any, x: Any, y: Any, cross: np.ndarray) -> np.ndarray:
        """(C, K, J) log Bayes factor of dependence against independence of feature k of this family and j of `other`.

        x and y are their statistics in the rows in which both features are observed; `cross` is Σ (x - x̄)(y - ȳ).
        """

    @optional
    def predictive_distribution(self) -> Distribution:
        """Posterior predictive distribution of a cell of numbers: name and arguments (C, K) in `scipy.stats`."""

    @optional
    def restrict(self, keep: np.ndarray) -> Self:
        """Marginal distribution of the parameters at positions `keep` (K,) of bool; others may be appended."""

    @optional
    def restrict_with_counts(self, statistics: Any, keep: np.ndarray) -> tuple[Self, Any]:
        """Marginal prior and statistics of the levels `keep` (L,) of bool, valid while only `tunable` fields change.

        The levels come first on the last axis, and may be followed by one more, for all others.
        """

    @optional
    def pad(self, extra: int) -> Self:
        """Copy with `extra` unused levels in a group to which no row refers, so that models share compiled kernels."""

    @optional
    def rows(self, x: object) -> Any:
        """Rows in the form that likelihoods read, from an (N, G) array of codes or an (N, L) array of counts."""

    @optional
    def log_likelihood_cumulants(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C) cumulants of log p(row | class, θ) over θ given the data and `multiplicity` copies of the row.

        θ has, row by row, the posterior after `multiplicity` more rows like this one: 0 is the posterior itself. The
        cumulants are the first three derivatives of log E p(row | class, θ)ʷ at w = `multiplicity`, each the slope of
        the one before.
        """

    @optional
    def cumulants_of_terms(self, x: object) -> Cumulants:
        """(N, C, T) posterior cumulants of each term of log p(row | class, θ); base measures may be left out."""

    @optional
    def log_odds_of_terms(self, x: object, of: Int[Array, "N"], against: Int[Array, "N"]) -> Cumulants:
        """(N, T) posterior cumulants of log p(x_t | of, θ) - log p(x_t | against, θ), class indices (N,) per row."""

    @optional
    def simulate(self, likelihood: Any, rng: np.random.Generator, total: int | np.ndarray = 1) -> np.ndarray:
        """(S, K) cells of one row for each of S parameters of one class, drawn by a NumPy generator.

        `total`, one number or (S,), is the number of draws that a row has from one simplex, or the exposure of a row.
        """

    @optional
    def program(self) -> Sequence[Site]:
        """NumPyro program: sites of the parameters in order, whose distributions may depend on earlier sites."""

    @overridable
    def to_sites(self, parameters: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """Values of the sample sites, by parameter name and suffix, that correspond to parameters (…, C, K).

        By default each parameter is a site.
        """
        return dict(parameters)

    @overridable
    def from_sites(self, values: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """Parameters (C, K) by name from the values (C, …) of the sample sites: the inverse of `to_sites`."""
        return dict(values)


class IndependentClasses(Family):
    """Family whose classes have independent parameters: a row informs the parameters of its own class only."""

    @abstractmethod
    def draw_with_multiplicity(self, variates: Variates, n: int, x: object, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ) - log base, θ given the data and `multiplicity` copies of the row.

        Each row and class has independent draws; rows share variates.
        """

    @abstractmethod
    def cumulants_of_terms(self, x: object) -> Cumulants:
        """(N, C, T) posterior cumulants of each term of log p(row | class, θ); base measures may be left out."""

    def draw_log_likelihood(self, variates: Variates, n: int, x: object, counted_in: Array | None = None) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ) - log base, θ given the data and the row in class `counted_in`.

        `counted_in` (n, N, C) is true for the class in which the row is counted; None: the row is counted in no class.
        """
        if counted_in is None:
            return self.draw_with_multiplicity(variates, n, x, 0.0)
        informed = self.draw_with_multiplicity(variates, n, x, 1.0)
        return xp.where(counted_in, informed, self.draw_with_multiplicity(variates, n, x, 0.0))

    def log_odds_of_terms(self, x: object, of: Int[Array, "N"], against: Int[Array, "N"]) -> Cumulants:
        """(N, T) posterior cumulants of log p(x_t | of, θ) - log p(x_t | against, θ), class indices (N,) per row."""
        terms = self.cumulants_of_terms(x)

        def pick(label: Array) -> Cumulants:
            """(N, T) cumulants of the terms in one class per row, `label` (N,)."""
            index = xp.asarray(label)[:, None, None]
            return map_leaves(lambda cumulant: xp.take_along_axis(cumulant, index, axis=1)[:, 0], terms)

        return pick(of) + pick(against) * -1.0


# == Sufficient statistics that are sums over rows =================================================

ROUNDING = 64 * 2.2e-16
"""Bound on the rounding error of a difference from a sum, as a fraction of that sum."""


def pooled(statistics: Tree) -> Tree:
    """Merge statistics (C, …) over the classes into statistics (1, …) of all rows."""
    n_classes = jax.tree.leaves(statistics)[0].shape[0]
    classes = [jax.tree.map(itemgetter(slice(c, c + 1)), statistics) for c in range(n_classes)]
    return reduce(lambda a, b: a.merge(b), classes)


def no_rows(kind: Any, shape: tuple[int, ...]) -> Any:
    """Sufficient statistics of no rows: by `kind.no_rows`, or else with zeros of this shape in every field."""
    if hasattr(kind, "no_rows"):
        return kind.no_rows(shape)
    return kind(*(np.zeros(shape) for _ in fields(kind)))


class Additive:
    """Statistics whose fields are sums over rows of non-negative numbers; one field is `count`."""

    count: Array

    def aligned(self, other: Self) -> tuple[Self, Self]:
        """Both statistics with fields of the same shapes; default: unchanged."""
        return self, other

    @final
    def merge(self, other: Self) -> Self:
        """Statistics of the rows of `self` and `other` together: fields are added."""
        return map_leaves(operator.add, *self.aligned(other))

    @final
    def remove(self, other: Self) -> Self:
        """Statistics without the rows of `other`: fields are subtracted."""
        return map_leaves(operator.sub, *self.aligned(other))

    @final
    def scale(self, factor: float) -> Self:
        """Statistics of the same rows with all weights multiplied by `factor`."""
        return map_leaves(lambda field: field * factor, self)

    def possible(self) -> Array:
        """(C, K) of bool: no field is negative, and none exceeds 1e-100 (residue of decay) where `count` is 0."""
        fields = jax.tree.leaves(self)
        nonnegative = reduce(operator.and_, (field >= 0 for field in fields))
        return reduce(operator.and_, ((self.count > 0) | (field < 1e-100) for field in fields), nonnegative)

    @final
    def rounding(self) -> Self:
        """Tolerated rounding error below zero after `remove`, field by field: 1e-9 of each sum."""
        return map_leaves(lambda field: field * 1e-9, self)
