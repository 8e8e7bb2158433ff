"""PolyaNB against SciPy's Dirichlet-multinomial, SciPy's optimiser, closed forms, and what it refuses."""

from __future__ import annotations

import pickle

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.special import gammaln
from scipy.stats import dirichlet_multinomial
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split

import bayesnb as bnb
from bayesnb import polya
from bayesnb.evaluation import scores
from tests.data import newsgroups
from tests.refusals import refused

pytestmark = pytest.mark.slow("compiles kernels of its own")

ALPHA = np.array([1.0, 0.5, 2.0, 0.1, 1.5])
SCALE = 0.7 * 5


def simulated(concentration: np.ndarray, n: int, length: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(concentration, n)
    return np.array([rng.multinomial(rng.poisson(length), t) for t in theta])


@pytest.fixture(scope="module")
def documents() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bursts of five words in three classes, of which the third has no document of positive weight."""
    a = np.array([[0.3, 0.8, 0.2, 0.5, 0.1], [2.0, 0.1, 0.4, 1e-3, 0.2]])
    X = np.concatenate([simulated(a[0], 25, 9, 0), simulated(a[1], 15, 6, 1), [[1, 0, 0, 2, 0]]])
    weight = np.append(np.random.default_rng(2).integers(1, 4, 40), 0).astype(float)
    return X, np.repeat(["first", "second", "third"], [25, 15, 1]), weight


@pytest.fixture(scope="module")
def nb(documents) -> bnb.PolyaNB:
    X, y, weight = documents
    return bnb.PolyaNB(alpha=ALPHA, mean_concentration=0.7, tol=1e-9).fit(X, y, weight)


def log_coefficient(X: np.ndarray) -> np.ndarray:
    return gammaln(X.sum(axis=1) + 1) - gammaln(X + 1).sum(axis=1)


def objective(a: np.ndarray, X: np.ndarray, weight: np.ndarray) -> float:
    """By SciPy's distribution and the prior as the docstring states it."""
    logpmf = np.array([dirichlet_multinomial.logpmf(x, a, x.sum()) for x in X]) if len(X) else np.zeros(0)
    log_prior = ALPHA @ np.log(a / a.sum()) + np.log(a.sum()) - a.sum() / SCALE
    return float(weight @ (logpmf - log_coefficient(X)) + log_prior)


def of_class(documents, name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y, weight = documents
    return X[(y == name) & (weight > 0)], weight[(y == name) & (weight > 0)]


# -- the distribution --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_rows_have_scipys_probability(nb, form):
    rows = simulated(np.array([0.5, 0.1, 1.0, 0.2, 0.3]), 60, 12, 5)
    rows[3] = [0, 900, 1, 0, 40]
    expected = (
        np.array([[dirichlet_multinomial.logpmf(x, a, x.sum()) for a in nb.concentration_] for x in rows])
        - log_coefficient(rows)[:, None]
    )
    found = nb.predict_joint_log_proba(form(rows)) - nb.class_log_prior_
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_probabilities_are_bayes_theorem(nb, documents):
    X, _, weight = documents
    joint = np.exp(nb.predict_joint_log_proba(X))
    np.testing.assert_allclose(nb.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), rtol=1e-10)
    np.testing.assert_array_equal(nb.predict(X), nb.classes_[joint.argmax(axis=1)])
    count = np.array([weight[:25].sum(), weight[25:40].sum(), 0])
    np.testing.assert_array_equal(nb.class_count_, count)
    np.testing.assert_allclose(np.exp(nb.class_log_prior_), (count + 1) / (count.sum() + 3), rtol=1e-14)


def test_a_document_without_words_has_the_class_probabilities(nb):
    np.testing.assert_allclose(nb.predict_proba(np.zeros((2, 5))), np.exp([nb.class_log_prior_] * 2), rtol=1e-14)
    shifted = nb.predict_proba(np.zeros((1, 5)), class_prior=[0.2, 0.3, 0.5])
    np.testing.assert_allclose(shifted, [[0.2, 0.3, 0.5]], rtol=1e-14)


# -- the maximum -------------------------------------------------------------------------------------


def test_objective_is_the_posterior_density_by_scipy(nb, documents):
    for c, name in enumerate(nb.classes_):
        X, weight = of_class(documents, name)
        assert nb.objective_[c] == pytest.approx(objective(nb.concentration_[c], X, weight), rel=1e-11)


@pytest.mark.parametrize("where", ["maximum", "elsewhere"])
def test_slope_is_that_of_scipys_objective(nb, documents, where):
    """Finite differences in log a against JAX's gradient, and its size against the slope of `step`."""
    X, y, weight = documents
    rng = np.random.default_rng(3)
    a = nb.concentration_ if where == "maximum" else nb.concentration_ * rng.lognormal(0, 1, (3, 5))
    index = np.unique(y, return_inverse=True)[1].astype(np.int32)
    seen = weight > 0
    counted = polya.collect(sp.csr_array(X[seen]), index[seen], weight[seen], 3)
    prior = polya.Prior(np.broadcast_to(ALPHA, (3, 5)), SCALE)
    with jax.enable_x64(True):
        total = jax.jit(lambda log_a: polya.log_posterior(jax.numpy.exp(log_a), counted, prior).sum())
        gradient = np.asarray(jax.jit(jax.grad(total))(np.log(a)))
        slope = np.asarray(jax.jit(polya.step)(a, counted, prior)[1])
    for c, name in enumerate(nb.classes_):
        rows, w = of_class(documents, name)
        numeric = approx_fprime(np.log(a[c]), lambda log_a, r=rows, w=w: objective(np.exp(log_a), r, w), 1e-6)
        np.testing.assert_allclose(gradient[c], numeric, atol=2e-3)
        assert slope[c] == pytest.approx(max(abs(gradient[c]).max(), abs(gradient[c].sum())), rel=1e-8, abs=1e-10)
    if where == "maximum":
        assert (slope <= 1e-9 * np.maximum(nb.class_count_, 1)).all()


@pytest.mark.parametrize("name", ["first", "second"])
def test_maximum_is_that_of_scipys_optimiser(nb, documents, name):
    X, weight = of_class(documents, name)
    found = nb.concentration_[list(nb.classes_).index(name)]
    best = minimize(
        lambda log_a: -objective(np.exp(log_a), X, weight), np.zeros(5), method="BFGS", options={"gtol": 1e-4}
    )
    np.testing.assert_allclose(np.log(found), best.x, atol=1e-3)
    assert objective(found, X, weight) >= -best.fun - 1e-9


def test_documents_of_one_word_give_laplace_smoothing():
    """They say nothing of A, which stays at its prior's mode; a/A is the smoothed share of each word."""
    n = np.array([[7, 0, 3, 1], [2, 5, 0, 0]])
    X = np.concatenate([np.repeat(np.eye(4), row, axis=0) for row in n])
    y = np.repeat([0, 1], n.sum(axis=1))
    nb = bnb.PolyaNB(alpha=0.5, mean_concentration=3.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(nb.concentration_.sum(axis=1), 12.0, rtol=1e-8)
    expected = (n + 0.5) / (n.sum(axis=1, keepdims=True) + 2)
    np.testing.assert_allclose(nb.concentration_ / 12.0, expected, rtol=1e-8)
    laplace = bnb.MultinomialNB(alpha=0.5, estimate="mean").fit(X, y)
    np.testing.assert_allclose(nb.predict_proba(np.eye(4)), laplace.predict_proba(np.eye(4)), rtol=1e-8)


def test_a_class_without_documents_is_the_prior(nb):
    np.testing.assert_allclose(nb.concentration_[2], SCALE * ALPHA / ALPHA.sum(), rtol=1e-9)


def test_words_that_a_class_never_had_are_possible():
    nb = bnb.PolyaNB().fit([[3, 0, 0], [2, 1, 0], [0, 0, 4]], [0, 0, 1])
    assert (nb.concentration_ > 0).all()
    assert np.isfinite(nb.predict_log_proba([[0, 0, 9], [9, 9, 9]])).all()


def test_concentrations_of_simulated_documents_are_found():
    truth = np.array([[0.2, 1.0, 3.0, 0.05], [5.0, 5.0, 0.5, 0.5]])
    X = np.concatenate([simulated(a, 6000, 40, seed) for seed, a in enumerate(truth)])
    nb = bnb.PolyaNB().fit(X, np.repeat([0, 1], 6000))
    assert nb.converged_
    np.testing.assert_allclose(nb.concentration_, truth, rtol=0.06)


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.3, 5.0]), st.sampled_from([1e-2, 1.0, 100.0]))
def test_objective_does_not_fall(seed, alpha, scale):
    rng = np.random.default_rng(seed)
    X = simulated(rng.lognormal(-1, 1.5, 6), 30, 8, seed) * rng.integers(1, 3, 6)
    counted = polya.collect(sp.csr_array(X), rng.integers(0, 2, 30).astype(np.int32), np.ones(30), 2)
    prior = polya.Prior(np.full((2, 6), alpha), 6 * scale)
    path = np.array([polya.maximize(counted, prior, n, 0.0).objective for n in range(1, 15)])
    assert (np.diff(path, axis=0) >= -1e-11 * abs(path[:-1])).all()
    assert (polya.maximize(counted, prior, 200, 1e-6).slope <= 1e-6).all()


def test_weights_are_replication_counts(documents, nb):
    X, y, weight = documents
    seen = weight > 0
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    repeated = clone(nb).fit(X[copies], y[copies])
    np.testing.assert_allclose(repeated.concentration_, nb.concentration_[:2], rtol=1e-7)
    np.testing.assert_allclose(repeated.objective_, nb.objective_[:2], rtol=1e-12)
    np.testing.assert_array_equal(clone(nb).fit(X[seen], y[seen], weight[seen]).concentration_, repeated.concentration_)


def test_not_converged_is_said(documents):
    X, y, weight = documents
    with pytest.warns(UserWarning, match="did not converge in max_iter=2 steps: in class '(first|second)'"):
        nb = bnb.PolyaNB(max_iter=2).fit(X, y, weight)
    assert not nb.converged_
    assert nb.n_iter_ == 2


# -- what it is for ----------------------------------------------------------------------------------


def held_out(nb, X, y, X_test, y_test) -> float:
    nb.fit(X, y)
    return scores(nb.predict_log_proba(X_test), y_test, nb.classes_)["log_loss"]


def test_log_loss_of_digits_is_below_the_multinomials():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    assert held_out(bnb.PolyaNB(), X, y, X_test, y_test) < 0.6 * held_out(bnb.MultinomialNB(), X, y, X_test, y_test)


def test_log_loss_of_newsgroups_is_below_the_multinomials():
    X, y = newsgroups("train")
    X_test, y_test = newsgroups("test")
    for alpha in (0.1, 1.0):
        multinomial = held_out(bnb.MultinomialNB(alpha=alpha), X, y, X_test, y_test)
        assert held_out(bnb.PolyaNB(alpha=alpha), X, y, X_test, y_test) < 0.8 * multinomial


# -- conventions -------------------------------------------------------------------------------------


def test_only_numpy_is_stored(nb):
    stored = {name: type(value) for name, value in vars(nb).items() if name.endswith("_")}
    assert stored["concentration_"] is stored["objective_"] is stored["class_log_prior_"] is np.ndarray
    assert nb.concentration_.dtype == np.float64
    assert (stored["converged_"], stored["n_iter_"]) == (bool, int)
    copy = pickle.loads(pickle.dumps(nb))
    np.testing.assert_array_equal(copy.concentration_, nb.concentration_)


def test_decisions_have_actions_and_risks_only(nb, documents):
    X, *_ = documents
    decided = bnb.decide(nb, X, bnb.decision.zero_one(nb.classes_))
    np.testing.assert_array_equal(decided.action, nb.predict(X))
    np.testing.assert_allclose(decided.risk, 1 - nb.predict_proba(X).max(axis=1), atol=1e-12)
    assert np.isnan(decided.p_optimal).all()
    assert np.isnan(decided.regret).all()


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"alpha": 0}, None, "alpha of word '0' in class 'a' is 0; it must be positive"),
        ({"alpha": [1.0, 0.0]}, None, "alpha of word '1' in class 'a' is 0"),
        ({"alpha": -1}, None, "alpha is -1"),
        ({"alpha": [1.0, 1.0, 1.0]}, None, r"alpha has shape \(3,\)"),
        ({"mean_concentration": 0}, None, "mean_concentration=0 must be a positive number"),
        ({"mean_concentration": "1"}, None, "mean_concentration='1' must be a positive number"),
        ({"tol": np.nan}, None, "tol=nan must be a positive number"),
        ({"max_iter": 0}, None, "max_iter=0 must be a positive integer"),
        ({"class_prior": [0.2, 0.2]}, None, "sum of the priors should be 1"),
        ({}, [[1, 2], [-1, 0]], "Negative values in data passed to PolyaNB.*row 1, column '0'"),
        ({}, [[1, np.nan], [1, 0]], "Input X contains NaN.*row 0"),
        ({}, [[1, 0], [1, 1e300]], r"row 1 has 1e\+300 words"),
    ],
)
def test_errors_name_the_argument_and_change_nothing(options, X, message):
    nb = bnb.PolyaNB().fit([[2, 1], [0, 3]], ["a", "b"])
    before = nb.concentration_, nb.n_iter_
    nb.set_params(**options)
    refused(message, nb.fit, [[1, 2], [3, 0]] if X is None else X, ["a", "b"])
    assert (nb.concentration_, nb.n_iter_) == before


def test_unfitted_use(nb):
    with pytest.raises(NotFittedError):
        bnb.PolyaNB().predict([[1, 2]])
    assert not hasattr(bnb.PolyaNB(), "classes_")
    refused("row 0 has 1e", nb.predict, [[1e300, 0, 0, 0, 0]])
