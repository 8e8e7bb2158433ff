"""Feature averaging against an enumeration of all subsets of features."""

import copy
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

import bayesnb as bnb
from bayesnb.encoding import Levels
from bayesnb.fitted import counting
from tests.data import arff
from tests.raises import refused
from tests.strategies import CLASSES, KINDS, Problem, counted, problems, thorough, variants
from tests.tables import CODE, LABEL, LEVELS

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
    if problem.kind in ("overdispersed", "dispersed"):
        nb.set_params(prior=bnb.BetaNegativeBinomial(1.5, 0.5))
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
    nb = nb.with_counts(counting.declare(counted(nb), Levels(())))  # Levels stay without the row that is left out.
    found = bnb.loo(nb, problem.X, problem.y, problem.weight)
    for i in range(len(problem)):
        row = problem.take([i])
        others = copy.deepcopy(nb).forget(row.X, row.y, row.weight)
        expected = others.predict_log_proba(row.X)[0]
        np.testing.assert_allclose(found.log_proba[i], expected, rtol=1e-10, atol=1e-10)
        before = others.log_evidence_
        gain = others.partial_fit(row.X, row.y).log_evidence_ - before
        np.testing.assert_allclose(found.row_pointwise[i], gain, rtol=1e-10, atol=1e-10)


@variants(("name", "feature", "published"), [("car", 2, 2.62947e-05), ("vote", 1, 0.115662)])
def test_published_inclusion(name, feature, published):
    data = arff(name)
    X = np.where(data.X == "?", None, data.X)
    nb = bnb.FeatureAveragedNB(bnb.CategoricalNB(categories=data.levels)).fit(X, data.y)
    assert nb.inclusion_probability_[feature] == pytest.approx(published, rel=1e-5)
    assert nb.inclusion_probability_.argmin() == feature


def test_inclusion_follows_kappa():
    X = np.random.default_rng(2).normal(CODE[:, None] * [0.0, 0.2, 3.0, 3.0], 1.0)
    nb = bnb.FeatureAveragedNB(bnb.GaussianNB()).fit(X, LABEL)
    table = nb.inclusion_by_kappa()
    assert list(table.columns) == [0.01, 0.1, 1.0]
    np.testing.assert_allclose(table[0.1], nb.inclusion_probability_, rtol=1e-12)
    # The factor of three classes' means against one falls as κ when κ goes to zero.
    assert (np.diff(table.to_numpy()[:2], axis=1) > 0).all()
    said = "needs Gaussian features, and this classifier has none"
    refused(said, bnb.FeatureAveragedNB().fit(LEVELS, LABEL).inclusion_by_kappa)


@variants(
    ("nb", "error", "message"),
    [
        (
            bnb.FeatureAveragedNB(inclusion=1.0),
            ValueError,
            r"inclusion=1\.0 must be a probability strictly between 0 and 1",
        ),
        (bnb.FeatureAveragedNB(inclusion=[0.5] * 3), ValueError, r"inclusion=.* must be .* for each of the 4 features"),
        (
            bnb.FeatureAveragedNB(expected_features=4),
            ValueError,
            r"expected_features=4 must be strictly between",
        ),
        (
            bnb.FeatureAveragedNB(estimate="map"),
            ValueError,
            r"estimate='map' is not available for an average of models",
        ),
        (bnb.FeatureAveragedNB("naive"), ValueError, r"estimator='naive' must be a classifier of bayesnb"),
        (
            bnb.FeatureAveragedNB(bnb.MultinomialNB()),
            NotImplementedError,
            r"the estimator has multinomial columns",
        ),
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
