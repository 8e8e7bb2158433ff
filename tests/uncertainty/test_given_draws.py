"""Predictions from given draws, against closed forms and importance weights."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_iris

import bayesnb as bnb
from bayesnb.uncertainty import decompose_uncertainty, log_odds_moments, posterior_draws, predict_interval
from tests.raises import refused
from tests.strategies import thorough
from tests.uncertainty.simulated import SIMULATED
from tests.uncertainty.test_rows import problem

DRAWS = 20_000
each_kind = pytest.mark.parametrize("kind", thorough(SIMULATED, ("multinomial", "gaussian")))


@cache
def drawn(kind: str) -> dict[str, np.ndarray]:
    """Draws of θ without a record of their origin."""
    return dict(posterior_draws(problem(kind, 3)[0], DRAWS, seed=3))


@pytest.mark.slow("simulates many data sets or draws")
@each_kind
def test_their_average_is_the_predictive_distribution(kind):
    """Within five Monte Carlo errors of ratios of means."""
    nb, X = problem(kind, 3)
    p = nb.predict_proba(X)
    log_weight = SIMULATED[kind].log_row(drawn(kind), X)
    weight = np.exp(log_weight - logsumexp(log_weight, axis=0))
    given = np.exp(SIMULATED[kind].log_proba(drawn(kind), X))
    error = np.sqrt((weight[..., None] ** 2 * (given - p) ** 2).sum(axis=0))
    # The spread of what is seldom is not known from the draws, but the variance of a probability is at most p (1 - p).
    error = np.where((p > 0.01) & (p < 0.99), error, np.sqrt(p * (1 - p) * (weight**2).sum(axis=0)[:, None]))
    found = nb.predict_proba(X, draws=drawn(kind))
    assert (abs(found - p) <= 5 * error).all()
    # And exactly the average of the same draws.
    np.testing.assert_allclose(found, (weight[..., None] * given).sum(axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(nb.predict(X, draws=drawn(kind)), nb.classes_[found.argmax(axis=1)])


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("given", ["row", "data"])
@each_kind
def test_analyses_of_draws_are_near_those_of_the_posterior(kind, given):
    nb, X = problem(kind, 3)
    exact = SIMULATED[kind].log_proba(drawn(kind), X)
    log_weight = SIMULATED[kind].log_row(drawn(kind), X) if given == "row" else np.zeros(exact.shape[:2])
    weight = np.exp(log_weight - logsumexp(log_weight, axis=0))[..., None]
    # Drawn again by weight: one in 20,000 more or less.
    mean, sd = log_odds_moments(nb, X, given=given, draws=drawn(kind))
    odds = exact - exact[..., :1]
    expected = (weight * odds).sum(axis=0)
    spread = np.sqrt((weight * (odds - expected) ** 2).sum(axis=0))
    np.testing.assert_allclose(mean, expected, rtol=0, atol=0.01 * spread.max() + 1e-9)
    np.testing.assert_allclose(sd, spread, rtol=0.05, atol=1e-9)
    lower, upper = predict_interval(nb, X, 0.8, given=given, draws=drawn(kind))
    for end, q in ((lower, 0.1), (upper, 0.9)):
        below = (weight * (np.exp(exact) <= end * (1 + 1e-9))).sum(axis=0)
        assert (abs(below - q) < 0.005).all()
    found = decompose_uncertainty(nb, X, given=given, draws=drawn(kind))
    p = np.exp(exact)
    entropy = -(weight[..., 0] * (p * exact).sum(axis=2)).sum(axis=0)
    np.testing.assert_allclose(found["aleatoric"], entropy, atol=0.003)
    assert (found["epistemic"] >= -1e-12).all()


@pytest.mark.slow("compiles kernels of its own")
def test_another_class_prior():
    """Reference: Bayes' rule for each draw of θ."""
    nb, X = problem("gaussian", 2)
    draws = dict(posterior_draws(nb, 50))
    flat = dict(draws, class_prob=np.full((50, 2), 0.5))
    joint = np.log(nb.predict_proba(X, draws=flat)) + np.log([0.9, 0.1])
    expected = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(nb.predict_proba(X, draws=draws, class_prior=[0.9, 0.1]), expected, rtol=1e-9)


@pytest.mark.slow("16,000 draws of two structures")
@pytest.mark.parametrize("make", [lambda: bnb.TAN(numbers="binned"), lambda: bnb.KDB(1)], ids=["TAN", "KDB"])
def test_tables_that_others_are_divided_by_have_their_mean_over_draws(make):
    """The mean of 1 / θ, θ the probability of a cell, need not exist; the quotient of the predictives does."""
    X, y = load_iris(return_X_y=True)
    nb = make().fit(X, y)
    assert any(columns.role == "root" for columns in nb.encoding_.blocks)
    exact = nb.predict_proba(X[::6])
    for n, bound in ((1_000, 0.05), (16_000, 0.0125)):
        averages = nb.predict_proba(X[::6], draws=dict(posterior_draws(nb, n, seed=0)))
        assert abs(averages - exact).max() < bound


def test_draws_that_cannot_be_used():
    nb, X = problem("gaussian", 2)
    draws = dict(posterior_draws(nb, 5))

    def refuses(message: str, draws: Any, **options: Any) -> None:
        refused(message, nb.predict_proba, X, draws=draws, **options)

    refuses("must be what posterior_draws", "many")
    refuses("must be what posterior_draws", {"prior": 1}.items())
    refuses("draws have no parameter named 'mu'", {k: v for k, v in draws.items() if k != "mu"})
    refuses(
        r"draws\['mu'\] has shape \(5, 2, 2\); it must have shape \(draws, 2, 3\)", dict(draws, mu=draws["mu"][..., :2])
    )
    refuses(r"draws\['mu'\] has shape \(0, 2, 3\)", dict(draws, mu=draws["mu"][:0]))
    refuses("Pass one of the two", draws, estimate="mean")
    refused("must be a positive integer", predict_interval, nb, X, draws=0)
