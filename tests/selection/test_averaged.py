"""Feature averaging against the enumeration of all subsets of features, each with ordinary models of its own."""

from __future__ import annotations

import copy
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, gammaln, logsumexp, xlogy

import bayesnb as bnb
from bayesnb.uncertainty.class_probabilities import choose_sampler
from tests.data import arff
from tests.prediction.tables import CODE, LABEL, LEVELS
from tests.refusals import refused
from tests.strategies import CLASSES, KINDS, Problem, problems, thorough

OFFERED = [kind for kind in KINDS if "multinomial" not in kind and kind != "binned"]
INCLUSION = np.array([0.2, 0.5, 0.7, 0.4, 0.9, 0.3])
NORMAL, POISSON = bnb.NormalInverseGamma(0.5, 0.3, 1.5, 2.0), bnb.GammaPoisson(1.5, 0.5)


def with_fixed_priors(problem: Problem) -> Problem:
    """Priors that do not depend on the rows, and no words."""
    nb, X = copy.deepcopy(problem.nb), problem.X
    if problem.kind == "gaussian":
        nb.set_params(prior=NORMAL)
    if problem.kind == "poisson":
        nb.set_params(prior=POISSON)
    if problem.kind == "exponential":
        nb.set_params(prior=bnb.GammaExponential(1.5, 0.5))
    if problem.kind == "mixed":
        X = X[["colour", "size", "heads", "visits"]]
        nb = bnb.MixedNB(bernoulli="heads", poisson="visits", alpha=0.8, gaussian_prior=NORMAL, poisson_prior=POISSON)
    return Problem(problem.kind, nb, X, problem.y, problem.weight)


def columns(nb: Any, X: Any, index: list[int]) -> tuple[Any, Any]:
    """The estimator and the rows of some columns."""
    if not isinstance(X, pd.DataFrame):
        return nb, X[:, index]
    names = X.columns[index]
    kept = {kind: [c for c in [getattr(nb, kind)] if c in names] for kind in ("bernoulli", "poisson")}
    return copy.deepcopy(nb).set_params(**kept), X[names]


def enumerated(problem: Problem, X: Any) -> tuple[np.ndarray, float, np.ndarray]:
    """Inclusion (F,), log p(D), and log P(class | rows of X) (N, C), averaged over 2^F subsets one by one."""
    n_features = problem.X.shape[1]
    count = np.array([problem.weight[problem.y == c].sum() for c in CLASSES])
    alpha = getattr(problem.nb, "class_alpha", 1.0) * np.ones(3)
    known = problem.nb.class_prior
    if known is None:
        log_class = np.log((alpha + count) / (alpha + count).sum())
        log_labels = (
            (gammaln(alpha + count) - gammaln(alpha)).sum() - gammaln((alpha + count).sum()) + gammaln(alpha.sum())
        )
    else:
        log_class, log_labels = np.log(known), count @ np.log(known)
    log_weight, joint, one_class = [], [], np.zeros(len(problem))
    subsets = np.array(list(product([False, True], repeat=n_features)))
    for subset in subsets:
        log_prior = np.where(subset, np.log(INCLUSION[:n_features]), np.log1p(-INCLUSION[:n_features])).sum()
        evidence, score = log_prior + log_labels, np.tile(log_class, (X.shape[0], 1))
        inside, outside = np.flatnonzero(subset).tolist(), np.flatnonzero(~subset).tolist()
        if inside:
            nb, own = columns(problem.nb, problem.X, inside)
            nb = copy.deepcopy(nb).set_params(class_prior=np.full(3, 1 / 3))
            nb.partial_fit(own, problem.y, CLASSES, problem.weight)
            evidence += nb.log_evidence_ + count.sum() * np.log(3)
            score += nb.predict_joint_log_proba(columns(problem.nb, X, inside)[1])
        if outside:
            nb, own = columns(problem.nb, problem.X, outside)
            nb = copy.deepcopy(nb).set_params(class_prior=[1.0]).fit(own, one_class, problem.weight)
            evidence += nb.log_evidence_
            score += nb.predict_joint_log_proba(columns(problem.nb, X, outside)[1])
        # Of the uniform class prior of the models with columns inside nothing is to be left.
        score += np.log(3) * bool(inside)
        log_weight.append(evidence)
        joint.append(score)
    log_evidence = logsumexp(log_weight)
    weight = np.exp(np.array(log_weight) - log_evidence)
    total = logsumexp(np.array(joint), b=weight[:, None, None], axis=0)
    return weight @ subsets, log_evidence, total - logsumexp(total, axis=1, keepdims=True)


def averaged(problem: Problem) -> Any:
    nb = bnb.FeatureAveragedNB(problem.nb, inclusion=INCLUSION[: problem.X.shape[1]])
    return nb.partial_fit(problem.X, problem.y, CLASSES, problem.weight)


SLOW = thorough(OFFERED, ("categorical",))


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("kind", SLOW)
@settings(max_examples=3)
@given(data=st.data())
def test_it_is_the_average_over_all_subsets(kind, data):
    problem = with_fixed_priors(data.draw(problems(kind, min_rows=2, max_rows=6)))
    nb = averaged(problem)
    inclusion, log_evidence, log_proba = enumerated(problem, problem.X)
    np.testing.assert_allclose(nb.inclusion_probability_, inclusion, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(nb.log_evidence_, log_evidence, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(nb.predict_log_proba(problem.X), log_proba, rtol=1e-10, atol=1e-10)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("kind", SLOW)
@settings(max_examples=4)
@given(data=st.data())
def test_leaving_a_row_out_changes_the_odds_of_inclusion_too(kind, data):
    problem = with_fixed_priors(data.draw(problems(kind, min_rows=2, max_rows=6)))
    nb = averaged(problem)
    found = bnb.loo(nb, problem.X, problem.y, problem.weight)
    for i in range(len(problem)):
        row = problem.take([i])
        others = copy.deepcopy(nb).forget(row.X, row.y, row.weight)
        expected = others.predict_log_proba(row.X)[0]
        np.testing.assert_allclose(found.log_proba[i], expected, rtol=1e-10, atol=1e-10)
        before = others.log_evidence_
        gain = others.partial_fit(row.X, row.y).log_evidence_ - before
        np.testing.assert_allclose(found.row_pointwise[i], gain, rtol=1e-10, atol=1e-10)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize(("name", "feature", "published"), [("car", 2, 2.62947e-05), ("vote", 1, 0.115662)])
def test_published_inclusion(name, feature, published):
    data = arff(name)
    X = np.where(data.X == "?", None, data.X)
    nb = bnb.FeatureAveragedNB(bnb.CategoricalNB(categories=data.levels)).fit(X, data.y)
    assert nb.inclusion_probability_[feature] == pytest.approx(published, rel=1e-5)
    assert nb.inclusion_probability_.argmin() == feature


@pytest.mark.slow("compiles kernels of its own")
def test_ten_features_and_the_ends_of_inclusion():
    """Almost surely in: naive Bayes. Almost surely out: the classes alone."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (40, 10)), rng.integers(0, 2, 40)
    base = bnb.CategoricalNB(categories=[[0, 1, 2]] * 10)
    naive = base.fit(X, y)
    surely = bnb.FeatureAveragedNB(base, inclusion=1 - 1e-15).fit(X, y)
    np.testing.assert_allclose(surely.predict_log_proba(X), naive.predict_log_proba(X), atol=1e-9)
    never = bnb.FeatureAveragedNB(base, inclusion=1e-300).fit(X, y)
    np.testing.assert_allclose(never.predict_log_proba(X), np.tile(never.class_log_prior_, (40, 1)), atol=1e-9)
    by_number = bnb.FeatureAveragedNB(base, expected_features=2.5).fit(X, y)
    np.testing.assert_array_equal(
        by_number.inclusion_probability_, bnb.FeatureAveragedNB(base, inclusion=0.25).fit(X, y).inclusion_probability_
    )


@pytest.mark.slow("compiles kernels of its own")
def test_sparse_presence_is_dense_presence():
    rng = np.random.default_rng(1)
    X, y = (rng.random((30, 50)) < 0.2).astype(float), rng.integers(0, 3, 30)
    dense, sparse = (bnb.FeatureAveragedNB(bnb.BernoulliNB()).fit(m, y) for m in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(sparse.inclusion_probability_, dense.inclusion_probability_, rtol=1e-12)
    np.testing.assert_allclose(sparse.predict_log_proba(sp.csr_matrix(X)), dense.predict_log_proba(X), atol=1e-10)
    np.testing.assert_allclose(
        bnb.loo(sparse, sp.csr_matrix(X), y).row_pointwise, bnb.loo(dense, X, y).row_pointwise, atol=1e-10
    )


def test_inclusion_follows_kappa():
    X = np.random.default_rng(2).normal(CODE[:, None] * [0.0, 0.2, 3.0, 3.0], 1.0)
    nb = bnb.FeatureAveragedNB(bnb.GaussianNB()).fit(X, LABEL)
    table = nb.inclusion_by_kappa()
    assert list(table.columns) == [0.01, 0.1, 1.0]
    np.testing.assert_allclose(table[0.1], nb.inclusion_probability_, rtol=1e-12)
    # The factor of three classes' means against one falls as κ when κ goes to zero.
    assert (np.diff(table.to_numpy()[:2], axis=1) > 0).all()
    refused("there are none", bnb.FeatureAveragedNB().fit(LEVELS, LABEL).inclusion_by_kappa)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize(
    ("nb", "error", "message"),
    [
        (
            bnb.FeatureAveragedNB(inclusion=1.0),
            ValueError,
            r"inclusion=1\.0 must be a probability between 0 and 1",
        ),
        (bnb.FeatureAveragedNB(inclusion=[0.5] * 3), ValueError, r"inclusion=.* must be .* 4, one a feature"),
        (bnb.FeatureAveragedNB(expected_features=4), ValueError, r"expected_features=4 must be between 0 and 4"),
        (bnb.FeatureAveragedNB(estimate="map"), ValueError, r"estimate='map' has no average over models"),
        (bnb.FeatureAveragedNB("naive"), ValueError, r"estimator='naive' must be a classifier of bayesnb"),
        (bnb.FeatureAveragedNB(bnb.MultinomialNB()), NotImplementedError, r"multinomial columns are not"),
        (
            bnb.FeatureAveragedNB(bnb.BernoulliNB(alpha=np.array([[1.0], [2.0], [1.0]]).repeat(8, axis=1))),
            ValueError,
            r"The prior differs between classes",
        ),
    ],
)
def test_what_is_refused(nb, error, message):
    refused(message, nb.fit, LEVELS, LABEL, error=error)
    assert not hasattr(nb, "classes_")


def small(kind: str) -> tuple[Any, Any, np.ndarray]:
    rng = np.random.default_rng(3)
    y = np.arange(40) % 2
    if kind == "categorical":
        return (
            bnb.CategoricalNB(),
            np.where(rng.random((40, 3)) < [0.5, 0.3, 0.0], y[:, None], rng.integers(0, 3, (40, 3))),
            y,
        )
    if kind == "gaussian":
        return bnb.GaussianNB(prior=NORMAL), rng.normal(y[:, None] * [1.0, 0.6, 0.0], 1.0), y
    return bnb.PoissonNB(prior=POISSON), rng.poisson(2.0 + y[:, None] * [2.0, 0.7, 0.0], (40, 3)).astype(float), y


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("kind", thorough(["categorical", "gaussian", "poisson"]))
def test_draws_take_inclusion_first_and_the_table_is_that_of_draws(kind):
    base, X, y = small(kind)
    nb = bnb.FeatureAveragedNB(base).fit(X, y)
    n = 20_000
    drawn = bnb.posterior_draws(nb, n, seed=1)
    del drawn["class_prob"]
    table = bnb.parameter_table(nb).query("feature != '(class)'").sort_values(["class", "feature"], kind="stable")
    for site, values in drawn.items():
        features = np.arange(3) if kind != "categorical" else np.asarray(nb.encoding_.blocks[0].axis()[0])
        apart = (values[:, 0] != values[:, 1]).mean(axis=0)
        rho = nb.inclusion_probability_[features]
        assert (abs(apart - rho) < 4.5 * np.sqrt(rho * (1 - rho) / n) + 1e-9).all()
        own = table if kind == "categorical" else table[table["level"] == site]
        flat = values.reshape(n, -1)
        # Draws are independent: the error of a mean is sd/√n, of a share √(p(1 - p)/n).
        assert (abs(flat.mean(axis=0) - own["mean"]) < 4.5 * own["sd"] / np.sqrt(n)).all()
        for end in ("lower", "upper"):
            below = (flat < own[end].to_numpy()).mean(axis=0)
            assert (abs(below - (0.05 if end == "lower" else 0.95)) < 4.5 * np.sqrt(0.05 * 0.95 / n)).all()
        squares = (flat - own["mean"].to_numpy()) ** 2
        assert (abs(squares.mean(axis=0) - own["sd"] ** 2) < 5 * squares.std(axis=0) / np.sqrt(n)).all()


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("kind", thorough(["categorical", "gaussian", "poisson"], ("gaussian",)))
def test_its_draws_average_to_its_predictive(kind):
    base, X, y = small(kind)
    nb = bnb.FeatureAveragedNB(base).fit(X, y)
    drawn = dict(bnb.posterior_draws(nb, 20_000, seed=2))
    averaged = nb.predict_proba(X[:6], draws=drawn)
    np.testing.assert_allclose(averaged, nb.predict_proba(X[:6]), atol=0.01)
    lower, upper = bnb.predict_interval(nb, X[:6], draws=4000)
    assert (lower <= averaged + 0.02).all()
    assert (averaged <= upper + 0.02).all()
    split = bnb.decompose_uncertainty(nb, X[:6], draws=drawn)
    p = nb.predict_proba(X[:6])
    np.testing.assert_allclose(split["total"], -(p * np.log(p)).sum(axis=1), atol=0.01)
    refused("share parameters", bnb.log_odds_moments, nb, X[:6], error=NotImplementedError)
    mean, sd = bnb.log_odds_moments(nb, X[:6], draws=drawn)
    assert np.isfinite(mean).all()
    assert (sd[:, 1] > 0).all()


def of_all_subsets(X: np.ndarray, y: np.ndarray, rows: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Inclusion (F,), and P(class | row), from levels 0, 1, 2 and three classes, by NumPy alone; class_alpha is 1."""
    n_features = X.shape[1]

    def log_evidence(count):
        """Of Dirichlet-multinomials over the last axis."""
        n = count.sum(axis=-1)
        return (gammaln(alpha + count) - gammaln(alpha)).sum(axis=-1) - gammaln(3 * alpha + n) + gammaln(3 * alpha)

    count = np.array([[np.bincount(x.astype(int), minlength=3) for x in X[y == c].T] for c in range(3)])
    apart, together = log_evidence(count).sum(axis=0), log_evidence(count.sum(axis=0))

    def theta(count):
        return (alpha + count) / (3 * alpha + count.sum(axis=-1, keepdims=True))

    own, shared = theta(count), theta(count.sum(axis=0))
    prob_class = (1 + np.bincount(y, minlength=3)) / (3 + len(y))
    subsets = np.array(list(product([False, True], repeat=n_features)))
    log_weight = np.where(subsets, apart + np.log(0.3), together + np.log(0.7)).sum(axis=1)
    weight = np.exp(log_weight - logsumexp(log_weight))
    joint = np.empty((len(rows), 3))
    for i, row in enumerate(rows):
        each = np.arange(n_features), row.astype(int)
        for c in range(3):
            score = np.where(subsets, np.log(own[c][each]), np.log(shared[each])).sum(axis=1)
            joint[i, c] = prob_class[c] * weight @ np.exp(score)
    return weight @ subsets, joint / joint.sum(axis=1, keepdims=True)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("n_features", [4, 10])
def test_it_is_the_average_over_16_or_1024_subsets(n_features):
    rng = np.random.default_rng(7)
    y = rng.permutation(np.arange(20) % 3)
    told = rng.random((20, n_features)) < np.linspace(0, 0.8, n_features)
    X = np.where(told, y[:, None], rng.integers(0, 3, (20, n_features)))
    base = bnb.CategoricalNB(categories=[[0, 1, 2]] * n_features, alpha=0.7)
    nb = bnb.FeatureAveragedNB(base, inclusion=0.3).fit(X, y)
    inclusion, proba = of_all_subsets(X, y, X, 0.7)
    np.testing.assert_allclose(nb.inclusion_probability_, inclusion, rtol=1e-10)
    np.testing.assert_allclose(nb.predict_proba(X), proba, rtol=1e-10)
    found = bnb.loo(nb, X, y)
    for i in range(20):
        others = np.arange(20) != i
        _, without = of_all_subsets(X[others], y[others], X[[i]], 0.7)
        np.testing.assert_allclose(np.exp(found.log_proba[i]), without[0], rtol=1e-10)


def log_evidence_of(kind: str, x: np.ndarray) -> float:
    """Of the cells of one feature, up to what is the same for all of them."""
    n = len(x)
    if kind == "categorical":
        count = np.bincount(x.astype(int), minlength=3)
        return float(gammaln(1 + count).sum() + gammaln(3) - gammaln(3 + n))
    if kind == "poisson":
        a, b = POISSON.concentration, POISSON.rate
        return float(gammaln(a + x.sum()) - gammaln(a) + a * np.log(b) - (a + x.sum()) * np.log(b + n))
    m, k, a, b = NORMAL.loc, NORMAL.kappa, NORMAL.concentration, NORMAL.rate
    b_n = b + n * x.var() / 2 + k * n * (x.mean() - m) ** 2 / (2 * (k + n))
    return float(gammaln(a + n / 2) - gammaln(a) + a * np.log(b) - (a + n / 2) * np.log(b_n) + np.log(k / (k + n)) / 2)


def log_density_draws(kind: str, x: np.ndarray, new: np.ndarray, rng: np.random.Generator, n: int) -> np.ndarray:
    """(n, N) log p(new | θ), up to what no class changes, of n draws of θ | x."""
    if kind == "categorical":
        theta = rng.dirichlet(1 + np.bincount(x.astype(int), minlength=3), n)
        return np.log(theta)[:, new.astype(int)]
    if kind == "poisson":
        rate = rng.gamma(POISSON.concentration + x.sum(), 1 / (POISSON.rate + len(x)), (n, 1))
        return new * np.log(rate) - rate
    m, k, a, b = NORMAL.loc, NORMAL.kappa, NORMAL.concentration, NORMAL.rate
    size = len(x)
    b_n = b + size * x.var() / 2 + k * size * (x.mean() - m) ** 2 / (2 * (k + size))
    sigma2 = b_n / rng.gamma(a + size / 2, size=(n, 1))
    mu = rng.normal((k * m + size * x.mean()) / (k + size), np.sqrt(sigma2 / (k + size)))
    return -0.5 * np.log(sigma2) - (new - mu) ** 2 / (2 * sigma2)


def log_likelihood_draws(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """(n, 6, 2) log p(row | class, θ) of rows of `small(kind)`: inclusion by the evidence, then θ of that model."""
    _, X, y = small(kind)
    groups = [np.flatnonzero(y == 0), np.flatnonzero(y == 1), np.arange(40)]
    total = np.zeros((n, 6, 2))
    for x in X.T.astype(float):
        apart, other, together = (log_evidence_of(kind, x[rows]) for rows in groups)
        included = rng.random((n, 1, 1)) < expit(apart + other - together)
        drawn = np.stack([log_density_draws(kind, x[rows], x[:6], rng, n) for rows in groups], axis=-1)
        total += np.where(included, drawn[..., :2], drawn[..., 2:])
    return total


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("given", ["row", "data"])
@pytest.mark.parametrize("kind", ["categorical", "gaussian", "poisson"])
def test_intervals_are_quantiles_of_the_mixture_of_models(kind, given):
    """Of three features weights p(row | θ) are good: by them quantiles have their probabilities, within 4.5 errors."""
    rng, size, n = np.random.default_rng(11), 40_000, 4000
    base, X, y = small(kind)
    nb = bnb.FeatureAveragedNB(base).fit(X, y)
    joint = log_likelihood_draws(kind, rng, size) + np.log(rng.dirichlet([21, 21], size))[:, None]
    proba = np.exp(joint - logsumexp(joint, axis=-1, keepdims=True))
    log_weight = logsumexp(joint, axis=-1) if given == "row" else np.zeros(proba.shape[:2])
    weight = np.exp(log_weight - logsumexp(log_weight, axis=0))
    lower, upper = bnb.predict_interval(nb, X[:6], 0.8, given=given, draws=n)
    for end, q in ((lower, 0.1), (upper, 0.9)):
        below = (weight[..., None] * (proba <= end)).sum(axis=0)
        assert (abs(below - q) < 4.5 * np.sqrt(q * (1 - q) * (1 / n + (weight**2).sum(axis=0)[:, None]))).all()


@pytest.mark.slow("simulates many data sets or draws")
def test_in_300_columns_draws_still_average_to_the_predictive():
    """Law 9, where weights p(row | θ) of draws of θ | D leave one of them."""
    rng = np.random.default_rng(12)
    present = np.repeat(rng.beta(0.5, 0.5, (1, 300)), 2, axis=0)
    present[1, :10] = rng.beta(0.5, 0.5, 10)
    y = np.arange(30) % 2
    X, new = ((rng.random((len(k), 300)) < present[k]).astype(float) for k in (y, y[:10]))
    nb = bnb.FeatureAveragedNB(bnb.BernoulliNB()).fit(X, y)
    mean = choose_sampler(nb.fitted_, "row", "draws", 2000, 0).map(
        nb.fitted_, new, lambda drawn, _: np.exp(drawn).mean(axis=0)
    )
    p = nb.predict_proba(new)
    assert (abs(mean - p) <= 5 * np.sqrt(p * (1 - p) / 2000)).all()
    split = bnb.decompose_uncertainty(nb, new, draws=2000)
    np.testing.assert_allclose(split["total"], -xlogy(p, p).sum(axis=1), atol=0.05)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("observed", [[0], [1], []], ids=["last missing", "first missing", "all missing"])
def test_features_without_a_cell_change_nothing(observed):
    """The oracle is the average without them; a feature of no cells keeps its prior inclusion."""
    y = np.array([0, 0, 0, 1, 1, 1])
    X = np.full((6, 2), np.nan)
    X[:, observed] = np.array([[1.0], [1.0], [2.0], [2.0], [2.0], [1.0]])
    nb = bnb.FeatureAveragedNB().fit(X, y)
    only = bnb.FeatureAveragedNB().fit(X[:, observed], y) if observed else bnb.CategoricalNB().fit(X, y)
    assert nb.log_evidence_ == pytest.approx(only.log_evidence_, rel=1e-12)
    np.testing.assert_allclose(nb.predict_proba(X), only.predict_proba(X[:, observed] if observed else X), rtol=1e-12)
    inclusion = np.full(2, 0.5)
    inclusion[observed] = only.inclusion_probability_ if observed else 0.5
    np.testing.assert_allclose(nb.inclusion_probability_, inclusion, rtol=1e-12)
