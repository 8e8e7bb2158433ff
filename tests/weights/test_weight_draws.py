"""Draws of biases and weights against an independent Hessian, NUTS, and loops over the draws."""

import warnings
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import log_softmax

import bayesnb as bnb
from bayesnb.model import TermWeights
from bayesnb.uncertainty.class_probabilities import evaluate_rows, map_blocks
from bayesnb.uncertainty.given_draws import read_parameters
from bayesnb.weights import cross_fitting, optimum
from tests import tables
from tests.persistence.models import FIXTURES
from tests.persistence.models import NUMBERS as ROWS_OF_FILE
from tests.raises import refused
from tests.tables import CODE, COUNTS, LABEL, LEVELS, NUMBERS, holed
from tests.weights.test_weight_table import TEXTS, covariance
from tests.weights.test_weighted import crossed, objective, solved


def fitted(estimator: Any, X: Any, kind: str = "auto", tau: float | None = None) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        if tau is not None:
            patch.setattr(optimum, "GRID", ((tau,),))
        return bnb.WeightedNB(estimator, kind).fit(X, LABEL)


def without_posterior(nb: Any) -> Any:
    """A copy whose weights are known exactly."""
    fixed = copy(nb)
    fixed.fitted_ = replace(nb.fitted_, weight_posterior=None)
    return fixed


# -- the posterior ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.0, 0.3])
def test_draws_are_joint(tau):
    """Mean and covariance of biases and weights are those of Laplace's approximation, by another Hessian."""
    nb, n = fitted(bnb.CategoricalNB(), LEVELS, tau=tau), 40_000
    scores = crossed(nb.estimator, LEVELS)
    value, _ = objective(scores, CODE, tau)
    at = solved(scores, CODE, tau).x
    into = np.zeros((7, 8))
    into[:3, :3], into[3:, 3], into[3:, 4:] = np.eye(3), 1.0, tau * np.eye(4)
    exact = into @ covariance(value, at) @ into.T
    np.testing.assert_allclose(nb.weights_.path.covariance[0], exact, rtol=1e-4, atol=1e-7)
    drawn = nb.weights_.draw(n, seed=1)
    excess = np.hstack([drawn.class_bias, drawn.weight]) - into @ at
    sd = np.sqrt(np.diag(exact))
    np.testing.assert_allclose(excess.mean(axis=0) / sd, 0.0, atol=5 / np.sqrt(n))
    found = (excess.T @ excess / n) / np.outer(sd, sd)
    np.testing.assert_allclose(found, exact / np.outer(sd, sd), atol=7 / np.sqrt(n))
    np.testing.assert_array_equal(nb.weights_.draw(n, seed=1).weight, drawn.weight)


def test_each_shrinkage_has_draws_by_its_evidence():
    weights, n = tables.weighted().weights_, 20_000
    path, drawn = weights.path, weights.draw(n, seed=0)
    probability = path.probability()[path.probable]
    assert len(probability) > 1
    probability /= probability.sum()
    mean, sd = path.weight[path.probable], path.sd[path.probable]
    average = probability @ mean
    spread = np.sqrt(probability @ (sd**2 + (mean - average) ** 2))
    np.testing.assert_allclose((drawn.weight.mean(axis=0) - average) / spread, 0.0, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(drawn.weight.std(axis=0), spread, rtol=0.03)


@pytest.mark.slow("compiles kernels of its own")
def test_deviations_of_thousands_of_terms_are_independent(monkeypatch):
    """Biases and temperatures have a covariance; a weight has the sd that `weight_table` states."""
    monkeypatch.setattr(cross_fitting, "MOST_TERMS", 3)
    weights, n = fitted(bnb.BernoulliNB(), (COUNTS > 1).astype(float), tau=0.3).weights_, 20_000
    path, drawn = weights.path, weights.draw(n, seed=2)
    assert path.covariance.shape == (1, 4, 4)
    np.testing.assert_allclose(drawn.weight.std(axis=0), path.sd[0], rtol=0.03)
    correlation = np.corrcoef(drawn.weight.T)[~np.eye(4, dtype=bool)].reshape(4, 3)
    expected = path.covariance[0, 3, 3] / np.outer(path.sd[0], path.sd[0])[~np.eye(4, dtype=bool)].reshape(4, 3)
    np.testing.assert_allclose(correlation, expected, atol=0.04)


@pytest.mark.parametrize("gap", [5.0, 12.0])
def test_draws_stay_where_labels_are_told(gap):
    """Of labels that are told without error: the posterior of the temperature by an integral, where Laplace fails.

    The expected log score is close to the best one. So it is by the draws, which are no wider than the posterior.
    """
    rng, label = np.random.default_rng(0), np.arange(60) % 2
    X = rng.normal(size=(60, 4)) + gap * label[:, None]
    nb = bnb.WeightedNB(bnb.GaussianNB(), "temperature").fit(X, label)
    parts = nb.model_.fit_parts(X, label, None)
    terms = cross_fitting.cross_fit(parts, "temperature", nb.max_rows, nb.seed)[0].terms

    def log_score(temperature: float) -> float:
        return terms.log_score(np.zeros(2), np.array([temperature]))[0]

    def integral(f: Any) -> float:
        return quad(lambda t: f(t) * np.exp(log_score(t) - (t - 1) ** 2 / 2), 0, 6, limit=200)[0]

    mean = integral(lambda t: t) / integral(lambda t: 1.0)
    sd = np.sqrt(integral(lambda t: (t - mean) ** 2) / integral(lambda t: 1.0))
    drawn = nb.weights_.draw(4000, seed=0).weight[:, 0]
    assert 0.4 * sd < drawn.std() < sd
    assert np.mean([log_score(t) for t in drawn]) > -4
    laplace = rng.normal(nb.temperature_, nb.weights_.path.temperature_sd[0, 0], 4000)
    assert np.mean([log_score(t) for t in laplace]) < -50


@pytest.mark.slow("NumPyro compiles for seconds")
def test_log_odds_vary_as_under_nuts():
    """Sds of the log odds of rows over the weights: right for joint draws, wrong for independent ones."""
    from tests.sampling.monte_carlo import quiet

    nb = fitted(bnb.CategoricalNB(), LEVELS, tau=0.3)
    data = quiet(nb, X=LEVELS, y=LABEL, draws=2000, seed=3)["posterior"]
    chains = {name: data[name].to_numpy().reshape(-1, *data[name].shape[2:]) for name in ("class_bias", "weight")}
    drawn, terms = nb.weights_.draw(8000, seed=0), bnb.terms(nb.estimator_, LEVELS)
    rng = np.random.default_rng(0)

    def sds(bias: np.ndarray, weight: np.ndarray) -> np.ndarray:
        scores = bias[:, None] + np.einsum("nct,st->snc", terms.values, weight)
        return (scores[..., 1:] - scores[..., :1]).std(axis=0)

    ratio = sds(drawn.class_bias, drawn.weight) / sds(chains["class_bias"], chains["weight"])
    assert ratio.min() > 0.85
    assert ratio.max() < 1.15
    apart = sds(drawn.class_bias, rng.permuted(drawn.weight, axis=0))
    assert abs(apart / sds(chains["class_bias"], chains["weight"]) - 1).max() > 0.2


# -- what the draws make of rows ------------------------------------------------------------------------

CASES: dict[str, tuple[Any, Any]] = {
    "numbers": (bnb.GaussianNB(), NUMBERS),
    "a temperature": (bnb.WeightedNB(bnb.CategoricalNB(), "temperature"), LEVELS),
    "a tree, with missing cells": (bnb.TAN(), holed(LEVELS, 0.1)),
    "words": (bnb.MultinomialNB(), TEXTS),
}


def case(name: str) -> tuple[Any, Any]:
    nb, X = CASES[name]
    return (nb if isinstance(nb, bnb.WeightedNB) else bnb.WeightedNB(nb)).fit(X, LABEL), X


def one_draw(weights: TermWeights, s: int) -> TermWeights:
    return TermWeights(weights.class_bias[s], tuple(w[s] for w in weights.blocks), weights.exponents)


def scores_of_draws(fitted: Any, X: Any, drawn: Any) -> np.ndarray:
    """(N, S, C) log p(class, row | draw)."""

    def score(x: Any, _: int) -> np.ndarray:
        return np.concatenate([np.asarray(joint) for joint in drawn.joints(fitted, x)]).swapaxes(0, 1)

    return evaluate_rows(fitted, X, lambda rows, n: map_blocks(rows, n, score, 20))


@pytest.mark.slow("compiles kernels of its own", but="numbers")
@pytest.mark.parametrize("name", CASES)
def test_each_draw_of_parameters_has_its_weights(name):
    nb, X = case(name)
    fitted, values = nb.fitted_, bnb.posterior_draws(nb, 5)
    together = read_parameters(fitted, values).with_weights(fitted, seed=4)
    assert together.weights is not None
    found = scores_of_draws(fitted, X, together)
    for s in range(5):
        prior = replace(fitted.empirical_prior, weights=one_draw(together.weights, s))
        alone = read_parameters(fitted, {site: v[s : s + 1] for site, v in values.items()})
        expected = scores_of_draws(replace(fitted, empirical_prior=prior), X, alone)[:, 0]
        np.testing.assert_allclose(found[:, s], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow("compiles kernels of its own", but="numbers")
@pytest.mark.parametrize("name", CASES)
def test_intervals_are_quantiles_over_weights_and_parameters(name):
    """Both methods, against draws of θ and of the weights without the library's samplers."""
    nb, X = case(name)
    rows, n = X[:8], 4000
    drawn = read_parameters(nb.fitted_, bnb.posterior_draws(nb, n, seed=8)).with_weights(nb.fitted_, seed=9)
    proba = np.exp(log_softmax(scores_of_draws(nb.fitted_, rows, drawn), axis=2))
    expected = np.quantile(proba, [0.05, 0.95], axis=1)
    for method in ("moments", "draws"):
        found = bnb.predict_interval(nb, rows, method=method, draws=n)
        assert abs(np.asarray(found) - expected).mean() < 0.01  # Quantiles of 4,000 draws differ by .003 or so.
        split = bnb.decompose_uncertainty(nb, rows, method=method, draws=n)
        np.testing.assert_allclose(split["aleatoric"], -(proba * np.log(proba)).sum(axis=2).mean(axis=1), atol=0.02)
        average = proba.mean(axis=1)
        np.testing.assert_allclose(split["total"], -(average * np.log(average)).sum(axis=1), atol=0.02)
    lower, upper = bnb.predict_interval(without_posterior(nb), rows)
    assert (expected[1] - expected[0]).mean() > 1.02 * (upper - lower).mean()


@pytest.mark.parametrize("kind", ["feature", "temperature"])
def test_members_of_averages_have_drawn_weights(kind):
    nb = bnb.WeightedNB(bnb.AODE(), kind).fit(LEVELS, LABEL)
    drawn, weights = nb.weights_.draw(6, seed=1), nb.fitted_.draw_weights(6, seed=1)
    np.testing.assert_array_equal(weights.class_bias, drawn.class_bias)
    expected = drawn.weight if kind == "feature" else drawn.weight[:, 0]
    np.testing.assert_array_equal(weights.blocks[0], expected)


def test_given_weights_are_drawn_too():
    nb = tables.weighted_numbers()
    given = bnb.WeightedNB(bnb.GaussianNB(), weights=nb.weights_).fit(NUMBERS, LABEL)
    np.testing.assert_array_equal(bnb.predict_interval(given, NUMBERS), bnb.predict_interval(nb, NUMBERS))


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("n_columns", [5, 40])
def test_noise_and_many_classes_with_few_rows(n_columns):
    rng = np.random.default_rng(n_columns)
    X, y = rng.normal(size=(60, n_columns)), np.arange(60) % (2 if n_columns == 40 else 20)
    nb = bnb.WeightedNB().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lower, upper = bnb.predict_interval(nb, X)
    inside = (lower <= nb.predict_proba(X)) & (nb.predict_proba(X) <= upper)
    assert inside.mean() > 0.95
    assert ((lower >= 0) & (upper <= 1)).all()


# -- files ------------------------------------------------------------------------------------------------


def test_files_keep_the_posterior(tmp_path):
    nb = tables.weighted()
    bnb.save(nb, tmp_path / "model")
    loaded = bnb.load(tmp_path / "model")
    np.testing.assert_array_equal(bnb.predict_interval(loaded, LEVELS), bnb.predict_interval(nb, LEVELS))


def test_weights_of_older_files_are_taken_as_known():
    nb = bnb.load(FIXTURES / "model-2-weighted.safetensors")
    with pytest.warns(UserWarning, match=r"given the weights of terms.*Fit them again by nb\.weigh\(X, y\)") as said:
        found = bnb.predict_interval(nb, ROWS_OF_FILE)
    assert len(said) == 1
    np.testing.assert_array_equal(found, bnb.predict_interval(without_posterior(nb), ROWS_OF_FILE))
    refused("are from a file of an older version", nb.weights_.draw, 10, 0)


@pytest.mark.parametrize("change", [{"covariance": np.ones((1, 2, 2))}, {"bias": np.zeros((1, 3))}])
def test_covariances_that_contradict_the_weights_are_refused(change):
    weights = tables.weighted().weights_
    forged = replace(weights, path=replace(weights.path, **change))
    refused("weights_.path.(covariance|bias) should be float64 of shape", forged.check)


# -- shares of classes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most_terms", [500, 3])
def test_shares_that_weights_imply(most_terms, monkeypatch):
    """Slopes of log shares by differences, and their covariance by the bootstrap, of dense and of sparse terms."""
    monkeypatch.setattr(cross_fitting, "MOST_TERMS", most_terms)
    parts = bnb.WeightedNB(bnb.BernoulliNB()).fit((COUNTS > 1) * 1.0, LABEL).model_.fit_parts((COUNTS > 1) * 1.0, LABEL)
    terms, unit = cross_fitting.cross_fit(parts, "feature", 1000, 0)[0].terms, np.arange(60) // 2
    assert terms.is_sparse == (most_terms == 3)
    at, rng = np.random.default_rng(0).normal(0.5, 0.3, 7), np.random.default_rng(1)

    def log_shares(at: np.ndarray, weight: np.ndarray = terms.weight) -> np.ndarray:
        return np.log(weight @ np.exp(terms.log_proba(at[:3], at[3:])) / weight.sum())

    slope, spread = terms.log_shares(at[:3], at[3:], unit)
    steps = 1e-5 * np.eye(7)
    expected = np.stack([(log_shares(at + h) - log_shares(at - h)) / 2e-5 for h in steps], axis=1)
    np.testing.assert_allclose(slope, expected, atol=1e-7)
    e = rng.exponential(size=(4000, 30))[:, unit][:, terms.row]
    drawn = np.array([log_shares(at, terms.weight * row) for row in e])
    np.testing.assert_allclose(np.cov(drawn.T), spread, rtol=0.15, atol=0.1 * np.diag(spread).min())


def test_draws_of_the_likelihood_keep_the_shares_of_the_rows():
    """Biases less log shares: what a draw adds to all rows of a class in training is not evidence about other rows."""
    nb, n = tables.weighted(), 2000
    drawn = nb.weights_.draw(n, seed=0)
    scores, likelihood = (nb.fitted_.draw_weights(n, seed=0, of_likelihood=k) for k in (False, True))
    np.testing.assert_allclose(scores.class_bias - likelihood.class_bias, drawn.log_share)
    odds = [weights.class_bias[:, 1] - weights.class_bias[:, 0] for weights in (scores, likelihood)]
    assert odds[1].std() < odds[0].std()
    sds = [bnb.estimate_prevalence(each, LEVELS).sd for each in (nb, without_posterior(nb))]
    assert (sds[0] > 1.02 * sds[1]).all()


@pytest.mark.slow("sixty fits and prevalences")
@pytest.mark.parametrize("n_rows", [300, 3000])
def test_intervals_of_prevalence_cover(n_rows):
    """Columns that copy each other, 500 labelled rows: 90% intervals cover .93 of the shares in 60 draws of everything.

    With the weights taken as known .85 and .77.
    """

    def table(rng: np.random.Generator, label: np.ndarray) -> pd.DataFrame:
        code = rng.random((len(label), 3)) < np.where(label[:, None] == 1, [0.65, 0.6, 0.55], [0.35, 0.4, 0.45])
        levels = np.repeat(code, 2, axis=1) ^ (rng.random((len(label), 6)) < 0.1)
        numbers = np.repeat(rng.normal(size=(len(label), 2)) + label[:, None] * [0.6, 0.4], 2, axis=1)
        columns = {f"level {j}": np.array(["a", "b"])[column * 1] for j, column in enumerate(levels.T)}
        return pd.DataFrame(columns | dict(enumerate((numbers + 0.4 * rng.normal(size=numbers.shape)).T))).rename(
            columns=str
        )

    covered = []
    for seed in range(60):
        rng = np.random.default_rng([63, seed])
        label, share = rng.random(500) < rng.uniform(0.3, 0.7), rng.uniform(0.05, 0.95)
        nb = bnb.WeightedNB().fit(table(rng, label), label)
        found = bnb.estimate_prevalence(nb, table(rng, rng.random(n_rows) < share))
        covered.append(found.lower[1] <= share <= found.upper[1])
    assert np.mean(covered) >= 0.85
