"""The prior predictive against integrals and enumeration."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from bayesnb import (
    BernoulliNB,
    CategoricalNB,
    FeatureAveragedNB,
    GammaPoisson,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    PoissonNB,
)
from bayesnb.analysis.predictive import prior_predictive
from bayesnb.uncertainty import ImproperPosteriorError
from tests.estimators.cases import CASES, each, mixed_frame
from tests.raises import refused
from tests.strategies import variants

Y = [0, 1]
SURE = 1e9  # a concentration that leaves nothing to draw
EVEN = [0.5, 0.5]


def mean_and_error(nb, draws=20_000):
    found = prior_predictive(nb, draws=draws)
    assert found.shape == (draws,)
    assert ((found >= 0) & (found <= 1)).all()
    return found.mean(), 5 * found.std() / np.sqrt(draws) + 1e-6


def expected_of(outcomes):
    """E P(c | x) from the probability of each outcome in each class, (K, 2)."""
    outcomes = np.asarray(outcomes)
    return np.sum(outcomes**2 / outcomes.sum(axis=1, keepdims=True)) / 2


def test_one_coin_by_integration():
    nb = BernoulliNB(class_prior=EVEN).fit([[0], [1]], Y)
    mean, error = mean_and_error(nb)
    # By symmetry E 2 θ₁²/(θ₁ + θ₂) over the unit square.
    expected = integrate.dblquad(lambda a, b: 2 * a * a / (a + b), 0, 1, 0, 1)[0]
    assert mean == pytest.approx(expected, abs=error)


def test_means_of_a_gaussian_by_quadrature():
    kappa = 0.2
    nb = GaussianNB(prior=NormalInverseGamma(3.0, kappa, SURE, SURE), class_prior=EVEN).fit([[0.0], [1.0]], Y)
    mean, error = mean_and_error(nb)
    # With variance 1: logit P = d²/2 + d z, d ~ Normal(0, 2/κ), z ~ Normal(0, 1).
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    weights = weights / weights.sum()
    d = nodes[:, None] * np.sqrt(2 / kappa)
    expected = weights @ expit(d**2 / 2 + d * nodes) @ weights
    assert mean == pytest.approx(expected, abs=error)


def test_rates_that_are_known():
    nb = PoissonNB(prior=GammaPoisson(SURE, SURE / np.array([[2.0], [5.0]])), class_prior=EVEN).fit([[1], [2]], Y)
    mean, error = mean_and_error(nb)
    expected = expected_of(stats.poisson.pmf(np.arange(60)[:, None], [2.0, 5.0]))
    assert mean == pytest.approx(expected, abs=error)


def test_words_with_the_mean_total():
    theta = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    # Totals 2 and 5, so rows of round(3.5) = 4 words.
    nb = MultinomialNB(alpha=SURE * theta, class_prior=EVEN).fit([[1, 1, 0], [0, 2, 3]], Y)
    mean, error = mean_and_error(nb)
    rows = [r for r in itertools.product(range(5), repeat=3) if sum(r) == 4]
    expected = expected_of([[stats.multinomial.pmf(r, 4, t / t.sum()) for t in theta] for r in rows])
    assert mean == pytest.approx(expected, abs=error)


def test_features_of_several_levels_add_up():
    theta = [np.array([[0.2, 0.8], [0.7, 0.3]]), np.array([[0.1, 0.2, 0.7], [0.3, 0.6, 0.1]])]
    alpha = SURE * np.hstack(theta)
    nb = CategoricalNB(alpha=alpha, class_prior=EVEN).fit([["a", "u"], ["b", "v"], ["b", "w"]], [0, 1, 1])
    mean, error = mean_and_error(nb)
    expected = expected_of([theta[0][:, i] * theta[1][:, j] for i in range(2) for j in range(3)])
    assert mean == pytest.approx(expected, abs=error)


def test_one_draw_of_the_class():
    """If no feature is informative, P(class | row) is the class probability: E π² / π = E Σ π²."""
    nb = BernoulliNB(alpha=SURE, class_alpha=[1.0, 3.0]).fit([[0], [1]], Y)
    mean, error = mean_and_error(nb)
    assert mean == pytest.approx(stats.beta.moment(2, 1, 3) + stats.beta.moment(2, 3, 1), abs=error)


@each
def test_the_seed_and_blocks_of_draws(case):
    nb = case.fit()
    np.testing.assert_array_equal(prior_predictive(nb, 50, seed=3), prior_predictive(nb, 50, seed=3))
    assert (prior_predictive(nb, 50, seed=3) != prior_predictive(nb, 50, seed=4)).any()


@pytest.mark.slow("compiles kernels of its own")
def test_small_concentrations_do_not_underflow():
    nb = MixedNB(numbers="gaussian", poisson="age", alpha=1e-4).fit(mixed_frame(), CASES["MixedNB"].y)
    assert np.isfinite(prior_predictive(nb, 2000)).all()


def test_known_impossible_class():
    nb = BernoulliNB(class_prior=[1.0, 0.0]).fit([[0], [1]], Y)
    np.testing.assert_array_equal(prior_predictive(nb, 20), 1.0)


def test_bad_input():
    nb = BernoulliNB().fit([[0], [1]], Y)
    for draws in (0, 2.5, None):
        refused("draws", prior_predictive, nb, draws)
    with pytest.raises(ImproperPosteriorError, match="needs a proper prior, because without data"):
        prior_predictive(BernoulliNB(alpha=0.0).fit([[0], [1]], Y))
    with pytest.raises(ImproperPosteriorError, match="needs a proper prior, because without data"):
        prior_predictive(BernoulliNB(class_alpha=0.0).fit([[0], [1]], Y))
    refused("not fitted", prior_predictive, BernoulliNB(), error=Exception)


@variants("base", [GaussianNB(prior=NormalInverseGamma(0.0, 0.1, 1.0, 1.0)), CategoricalNB()])
def test_features_that_may_not_depend_on_the_class(base):
    """Never included they leave the class probabilities, always included they are those of the plain classifier."""
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    y = [0, 1, 1, 0]
    mean, error = mean_and_error(FeatureAveragedNB(base.set_params(class_prior=[0.3, 0.7]), inclusion=1e-12).fit(X, y))
    assert mean == pytest.approx(0.3**2 + 0.7**2, abs=error)
    plain, error = mean_and_error(base.fit(X, y))
    mean, other = mean_and_error(FeatureAveragedNB(base, inclusion=1 - 1e-12).fit(X, y))
    assert mean == pytest.approx(plain, abs=1.5 * max(error, other))
