"""A family whose classes share parameters: normal columns with means of each class, and one variance of all classes."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy import stats
from scipy.special import logsumexp

import bayesnb as bnb
from bayesnb.estimators.plain import NumbersNB
from bayesnb.families import EmpiricalPrior
from bayesnb.families.arrays import pytree, xp
from bayesnb.families.normal import Moments, Normal
from bayesnb.families.numbers import IndependentCells
from tests.raises import refused


@pytree
class WithinVariance(EmpiricalPrior):
    """Variances of about the mean square of all rows."""

    def __call__(self, statistics: Moments, together: Moments) -> SharedVariance:
        one = xp.ones_like(statistics.count)
        square = (together.m2 / together.count + together.mean**2)[0]
        return SharedVariance(0.0 * one, 0.1 * one, 0.0 * square + 1.0, square)


@pytree
class SharedVariance(IndependentCells):
    """σ² ~ InverseGamma(a, b) of a column (F,), and μ_c ~ N(loc, σ²/κ) of each class (C, F)."""

    kind: ClassVar[str] = "shared variance"
    classes_share_parameters: ClassVar[bool] = True
    statistics: ClassVar[type] = Moments
    likelihood: ClassVar[type] = Normal
    least: ClassVar[dict[str, float]] = {"loc": -np.inf, "kappa": 0.0, "concentration": 0.0, "rate": 0.0}
    axes: ClassVar[dict[str, str]] = {"concentration": "F", "rate": "F"}
    empirical: ClassVar[dict[str, EmpiricalPrior]] = {"within": WithinVariance()}

    loc: Any
    kappa: Any
    concentration: Any
    rate: Any

    def update(self, statistics: Moments) -> Self:
        n, kappa = statistics.count, self.kappa + statistics.count
        loc = (self.kappa * self.loc + n * statistics.mean) / kappa
        spread = statistics.m2 + self.kappa * n * (statistics.mean - self.loc) ** 2 / kappa
        return type(self)(loc, kappa, self.concentration + n.sum(axis=-2) / 2, self.rate + spread.sum(axis=-2) / 2)

    def log_partition(self) -> jax.Array:
        a, b = self.concentration, self.rate
        return gammaln(a) - a * jnp.log(2.0 * jnp.pi * b) - 0.5 * jnp.log(self.kappa).sum(axis=-2)

    def proper(self) -> Any:
        return (xp.asarray(self.kappa) > 0).all(axis=-2) & (self.concentration > 0) & (self.rate > 0)

    def plug_in_mean(self) -> Any:
        return self._of_each_class().mean()

    def predictive_of_cell(self) -> Any:
        return self._of_each_class().predictive()

    def _of_each_class(self) -> bnb.NormalInverseGamma:
        zero = 0.0 * self.loc
        return bnb.NormalInverseGamma(self.loc, self.kappa, self.concentration + zero, self.rate + zero)

    def variance(self) -> dict[str, jax.Array]:
        return {"mu": self.rate / (self.concentration - 1.0) / self.kappa}

    def _not_needed(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    scale = improper = with_cell = log_evidence_of_cell = cumulants_of_terms = draw_terms = draw = _not_needed
    with_hyperparameters = mode = penalized_mle = log_penalty = marginals = program = _not_needed


class SharedVarianceNB(NumbersNB):
    """Bayesian linear discriminant analysis of independent columns."""

    family = SharedVariance


RNG = np.random.default_rng(3)
Y = np.array(["ash", "elm", "oak"])[RNG.integers(0, 3, 40)]
X = RNG.normal(1.0, 2.0, (40, 2)) + (Y == "oak")[:, None]
PRIOR = {"loc": 0.5, "kappa": 0.3, "concentration": np.array([2.0, 3.5]), "rate": 4.0}


def log_density(x: np.ndarray, y: np.ndarray, j: int) -> float:
    """Log density of the cells x (N,) of column j in classes y: a multivariate Student t, by SciPy."""
    a = PRIOR["concentration"][j]
    covariance = np.eye(len(x)) + (y[:, None] == y) / PRIOR["kappa"]
    t = stats.multivariate_t(np.full(len(x), PRIOR["loc"]), PRIOR["rate"] / a * covariance, df=2 * a)
    return float(t.logpdf(x))


def test_the_evidence_is_that_of_one_variance_of_all_classes():
    """A prior (F,) was broadcast to (C, F), and counted once for each class: -234.53 in place of -97.17."""
    nb = SharedVarianceNB(prior=SharedVariance(**PRIOR), class_prior=[0.2, 0.3, 0.5]).fit(X, Y)
    assert nb.prior_.blocks[0].rate.shape == (2,)
    counts = np.array([(label == Y).sum() for label in nb.classes_])
    expected = counts @ np.log([0.2, 0.3, 0.5]) + sum(log_density(X[:, j], Y, j) for j in (0, 1))
    np.testing.assert_allclose(nb.log_evidence_, expected, rtol=1e-12)


def test_predictions_are_ratios_of_evidences():
    nb = SharedVarianceNB(prior=SharedVariance(**PRIOR), class_prior=[0.2, 0.3, 0.5]).fit(X, Y)
    new = np.array([0.3, 4.0])
    joint = [
        np.log(prob) + sum(log_density(np.append(X[:, j], new[j]), np.append(Y, label), j) for j in (0, 1))
        for prob, label in zip([0.2, 0.3, 0.5], nb.classes_, strict=True)
    ]
    np.testing.assert_allclose(nb.predict_proba(new[None])[0], np.exp(joint - logsumexp(joint)), rtol=1e-12)


def test_fields_have_the_axes_that_the_family_declares():
    """By column names, too; and one number a class is refused where classes have it in common."""
    by_name = SharedVariance(0.5, 0.3, {1: 3.5, 0: 2.0}, 4.0)
    given = SharedVarianceNB(prior=SharedVariance(**PRIOR)).fit(X, Y).prior_.blocks[0]
    for prior in (by_name, {0: SharedVariance(0.5, 0.3, 2.0, 4.0), 1: SharedVariance(0.5, 0.3, 3.5, 4.0)}):
        family = SharedVarianceNB(prior=prior).fit(X, Y).prior_.blocks[0]
        jax.tree.map(np.testing.assert_array_equal, family, given)
    wrong = SharedVariance(0.5, 0.3, np.ones((3, 1)), 4.0)
    refused(r"prior\.concentration has shape \(3, 1\).*", SharedVarianceNB(prior=wrong).fit, X, Y)
    assert SharedVarianceNB(prior="within").fit(X, Y).prior_.blocks[0].rate.shape == (2,)
