"""A family that bayesnb does not have: numbers of failures before a success, with Beta probabilities.

This one file is all that a new family needs; `tests/laws/test_new_family.py` shows that everything works on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from bayesnb.families import EmpiricalPrior
from bayesnb.families.arrays import pytree
from bayesnb.families.numbers import (
    IndependentCells,
    SumOfCells,
    hyperparameters_of_numbers,
    observed,
    only,
    sites_of_numbers,
)
from bayesnb.families.protocol import Additive, Cumulants, Hyperparameter, Site, Variates
from bayesnb.families.rows import linear
from bayesnb.families.special import log_rising, polygammas


@pytree
class Failures(Additive):
    """Number of cells and the failures in them, (C, F) each."""

    count: Any
    total: Any

    def observe(self, x: Any, label: jax.Array, weight: jax.Array) -> Failures:
        seen, x = observed(x)
        one_hot = (label[:, None] == jnp.arange(self.count.shape[0])) * weight[:, None]
        return Failures(self.count + one_hot.T @ seen.astype(x.dtype), self.total + one_hot.T @ x)

    def without(self, cells: Any, weight: Any) -> Failures:
        return self.remove(Failures(weight, weight * cells))

    @classmethod
    def from_cells(cls, x: Any, weight: Any = 1.0) -> Failures:
        return cls(weight, weight * x)

    @classmethod
    def from_moments(cls, count: Any, mean: Any, m2: Any) -> Failures:
        return cls(count, count * mean)

    def values(self) -> Any:
        return self.total

    @staticmethod
    def log_base(x: Any) -> jax.Array:
        return jnp.zeros(x.shape[0])


@pytree
class EmpiricalFailures(EmpiricalPrior):
    """Beta(a, a · mean): a successes, and as many failures as all rows have for them."""

    tunable: ClassVar[dict[str, str]] = {"a": "concentration"}

    concentration: Any = 1.0

    def __call__(self, statistics: Failures, together: Failures) -> BetaGeometric:
        xp = together.total.__array_namespace__()
        mean = xp.where(together.total > 0, together.total, 1.0) / xp.where(together.count > 0, together.count, 1.0)
        a = self.concentration * xp.ones_like(statistics.count)
        return BetaGeometric(a, a * mean)


@pytree
class Geometric(SumOfCells):
    """Probabilities of success plugged in."""

    cell: ClassVar[str] = "GeometricProbs(prob)"

    prob: Any

    def simulate(self, rng: Any) -> np.ndarray:
        return rng.geometric(self.prob) - 1

    def cells(self, x: jax.Array) -> jax.Array:
        return jnp.log(self.prob) + linear(x, jnp.log1p(-self.prob))

    def log_likelihood(self, statistics: Failures) -> jax.Array:
        return linear(statistics.count, jnp.log(self.prob)) + linear(statistics.total, jnp.log1p(-self.prob))


@pytree
class BetaGeometric(IndependentCells):
    """Probabilities of success with Beta(successes a, failures b) priors."""

    kind: ClassVar[str] = "geometric"
    location: ClassVar[str] = "prob"
    statistics: ClassVar[type] = Failures
    likelihood: ClassVar[type] = Geometric
    nonnegative: ClassVar[bool] = True
    least: ClassVar[dict[str, float]] = {"successes": 0.0, "failures": 0.0}
    empirical: ClassVar[dict[str, EmpiricalPrior]] = {"pooled": EmpiricalFailures()}
    tunable: ClassVar[dict[str, str]] = {"a": "successes"}

    successes: Any
    failures: Any

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        one = 0.0 * self.successes + 1.0
        a = values.get("a", self.successes) * one
        return type(self)(a, values.get("failures", self.failures / self.successes * a) * one)

    def hyperprior(self, kind: Any) -> dict[str, Hyperparameter]:
        """log b ~ Normal(log b, 1), the same in all classes."""
        return hyperparameters_of_numbers(self, kind, failures=("prob", "LogNormal(jnp.log(failures), 1.0)"))

    def update(self, statistics: Failures) -> Self:
        return type(self)(self.successes + statistics.count, self.failures + statistics.total)

    def scale(self, factor: Any) -> Self:
        return type(self)(self.successes * factor, self.failures * factor)

    def improper(self) -> Self:
        return self.scale(0.0)

    def log_partition(self) -> jax.Array:
        proper = self.proper()
        a, b = jnp.where(proper, self.successes, 1.0), jnp.where(proper, self.failures, 1.0)
        return jnp.where(proper, _log_beta(a, b), jnp.inf)

    def proper(self) -> jax.Array:
        return (jnp.asarray(self.successes) > 0) & (jnp.asarray(self.failures) > 0)

    def with_cell(self, x: jax.Array, multiplicity: Any) -> Self:
        return self.update(Failures(multiplicity, multiplicity * x))

    def log_evidence_of_cell(self, x: jax.Array, weight: Any) -> jax.Array:
        return self.with_cell(x, weight).log_partition() - self.log_partition()

    def pseudo_count(self) -> dict[str, Any]:
        return {"prob": self.successes + self.failures}

    def plug_in_mean(self) -> Geometric:
        return Geometric(self.successes / (self.successes + self.failures))

    def mode(self) -> Geometric:
        inside = (self.successes >= 1) & (self.failures >= 1)
        return Geometric(jnp.where(inside, (self.successes - 1) / (self.successes + self.failures - 2), jnp.nan))

    def penalized_mle(self) -> Geometric:
        return self.mean()

    def log_penalty(self, parameters: Geometric) -> jax.Array:
        return linear(self.successes, jnp.log(parameters.prob)) + linear(self.failures, jnp.log1p(-parameters.prob))

    def predictive_of_cell(self) -> BetaMixedGeometric:
        return BetaMixedGeometric(jnp.asarray(self.successes), jnp.asarray(self.failures))

    def predictive_distribution(self) -> tuple[str, dict[str, Any]]:
        return "betanbinom", {"n": 1, "a": self.successes, "b": self.failures}

    def variance(self) -> dict[str, jax.Array]:
        a, b = self.successes, self.failures
        return {"prob": a * b / ((a + b) ** 2 * (a + b + 1.0))}

    def marginals(self) -> dict[str, tuple[str, dict[str, Any]]]:
        return {"prob": ("beta", {"a": self.successes, "b": self.failures})}

    def program(self) -> list[Site]:
        return sites_of_numbers(self, prob="Beta(successes, failures)")

    def draw(self, variates: Variates, n: int) -> Geometric:
        success, failure = (jnp.exp(variates.log_gamma(v, n)) for v in (self.successes, self.failures))
        return Geometric(success / (success + failure))

    def cumulants_of_terms(self, x: Any, multiplicity: float = 0.0) -> Cumulants:
        """Cumulants of log p + x log(1 - p)."""
        seen, x = (v[:, None] for v in observed(x))
        a, b = self.successes + multiplicity, self.failures + multiplicity * x

        powers = zip(polygammas(a), polygammas(b), polygammas(a + b), (1, 2, 3), strict=True)
        parts = (one + x**k * other - (1.0 + x) ** k * both for one, other, both, k in powers)
        return Cumulants(*(only(seen, part) for part in parts))

    def draw_terms(self, variates: Variates, n: int, x: Any, multiplicity: float) -> Any:
        """A Gamma(b + x) variate is a Gamma(b) one, which rows share, plus a row's own Gamma(x)."""
        seen, x = (v[:, None] for v in observed(x))
        rows = variates.log_gamma(multiplicity * x, n) if multiplicity else jnp.full((n, 1, 1, 1), -jnp.inf)
        shared = (variates.log_gamma(v, n) for v in (self.successes + multiplicity, self.failures))

        def terms(success: jax.Array, failure: jax.Array, row: jax.Array) -> jax.Array:
            failure = jnp.logaddexp(failure, row)
            total = jnp.logaddexp(success, failure)
            return only(seen, success - total + linear(x, failure - total))

        return (*shared, rows), terms


@pytree
class BetaMixedGeometric(SumOfCells):
    """Probabilities integrated out: B(a + 1, b + x)/B(a, b)."""

    successes: Any
    failures: Any

    def cells(self, x: jax.Array) -> jax.Array:
        total = self.successes + self.failures
        return jnp.log(self.successes) + log_rising(self.failures, x) - log_rising(total, x + 1.0)


def _log_beta(a: Any, b: Any) -> jax.Array:
    return gammaln(a) + gammaln(b) - gammaln(a + b)  # JAX's own betaln is good to eight digits only
