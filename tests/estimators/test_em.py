"""EM against an implementation in NumPy, and against laws."""

import copy
import warnings
from typing import Any

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.families import (
    Dirichlet,
    Durations,
    EmpiricalNormal,
    GammaExponential,
    GammaPoisson,
    Known,
    LevelCounts,
    Moments,
    NormalInverseGamma,
    Totals,
)
from tests.data import newsgroups
from tests.raises import refused
from tests.strategies import CLASSES, KINDS, Problem, problems, thorough, variants
from tests.tables import LEVELS, declared

each_kind = pytest.mark.parametrize(
    "kind", thorough([k for k in KINDS if k != "binned"], ("categorical", "sparse bernoulli", "gaussian", "poisson"))
)
NORMAL = NormalInverseGamma(0.5, 0.3, 1.5, 2.0)
RATES = GammaPoisson(1.5, 0.5)


def unlabel(problem: Problem, known: np.ndarray) -> np.ndarray:
    y = problem.y.astype(object)
    y[~known] = -1
    return y


def fit_quietly(*args: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "EM has not converged")
        return bnb.fit_em(*args, **options)


# -- the objective never falls ------------------------------------------------------------------------


@st.composite
def partly_labelled(draw: Any, kind: str) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Rows of all classes with labels, and some without; any alpha, any weights."""
    problem = declared(draw(problems(kind, min_rows=5, max_rows=8)))
    y = problem.y.copy()
    y[:3] = CLASSES
    known = np.array([True] * 3 + [False] + draw(st.lists(st.booleans(), min_size=len(y) - 4, max_size=len(y) - 4)))
    nb = problem.nb
    alpha = st.sampled_from([0.01, 0.1, 1.0, 10.0])
    if hasattr(nb, "alpha"):
        nb.set_params(alpha=draw(alpha))
    if nb.class_prior is None:
        nb.set_params(class_alpha=draw(alpha))
    weight = problem.weight * draw(st.sampled_from([0.3, 1.0, 2.5]))
    return Problem(kind, nb, problem.X, y, weight), known, unlabel(Problem(kind, nb, problem.X, y, weight), known)


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@each_kind
@given(data=st.data())
def test_the_objective_never_falls(kind, data):
    problem, known, y = data.draw(partly_labelled(kind))
    more = problem.take(data.draw(st.lists(st.integers(0, len(y) - 1), min_size=1, max_size=3)))
    weight = data.draw(st.sampled_from([0.05, 1.0, 3.0]))
    em = fit_quietly(
        problem.nb, problem.X, y, more.X, weight, sample_weight=problem.weight, max_iter=15, tol=0.0, restarts=1
    )
    rounding = 1e-9 * np.maximum(1.0, abs(em.objective[1:]))
    assert (np.diff(em.objective) >= -rounding).all()
    assert em.objective[-1] == em.starts.max()
    # A prior derived from the data is that of all rows, and shares add up to the rows.
    total = problem.weight[known].sum() + weight * (problem.weight[~known].sum() + len(more))
    np.testing.assert_allclose(em.estimator.class_count_.sum(), total, rtol=1e-12)
    rows = pd.concat if hasattr(problem.X, "iloc") else (sp.vstack if sp.issparse(problem.X) else np.concatenate)
    every = np.append(np.where(known, 1.0, weight) * problem.weight, np.full(len(more), weight))
    everything = clone(em.estimator).fit(rows([problem.X, more.X]), np.append(problem.y, more.y), every)
    same(em.estimator.prior_, everything.prior_, rtol=1e-9, atol=1e-9)


def same(a: Any, b: Any, **tolerance: Any) -> None:
    for mine, theirs in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(mine, theirs, **tolerance)


# -- EM written out -----------------------------------------------------------------------------------


def written_out(kind: str, X: np.ndarray, label: np.ndarray, weight: np.ndarray, n: int, alpha: float) -> Any:
    """(objective of n iterations, P(class | row) of the last) with three classes, label -1 where unknown."""
    seen = ~np.isnan(X)
    x = np.where(seen, X, 0.0)
    share = np.eye(3)[label] * (label >= 0)[:, None]
    objective = []
    for _ in range(n):
        r = share * weight[:, None]
        log_pi = np.log((1.0 + r.sum(axis=0)) / (3.0 + r.sum()))
        joint, penalty = np.tile(log_pi, (len(x), 1)), log_pi.sum()
        if kind == "bernoulli":
            one, cells = r.T @ x, r.T @ seen
            p = (alpha + one) / (2 * alpha + cells)
            penalty += alpha * (np.log(p) + np.log1p(-p)).sum()
            joint += x @ np.log(p).T + (seen - x) @ np.log1p(-p).T
        elif kind == "multinomial":
            p = alpha + r.T @ x
            p /= p.sum(axis=1, keepdims=True)
            penalty += alpha * np.log(p).sum()
            joint += x @ np.log(p).T + (gammaln(x.sum(axis=1) + 1) - gammaln(x + 1).sum(axis=1))[:, None]
        elif kind == "exponential":
            rate = (RATES.concentration + r.T @ seen) / (RATES.rate + r.T @ x)
            penalty += (RATES.concentration * np.log(rate) - RATES.rate * rate).sum()
            joint += seen @ np.log(rate).T - x @ rate.T
        elif kind == "poisson":
            rate = (RATES.concentration + r.T @ x) / (RATES.rate + r.T @ seen)
            penalty += (RATES.concentration * np.log(rate) - RATES.rate * rate).sum()
            joint += x @ np.log(rate).T - seen @ rate.T - (gammaln(x + 1) * seen).sum(axis=1)[:, None]
        else:
            count = r.T @ seen
            kappa = NORMAL.kappa + count
            mu = (NORMAL.kappa * NORMAL.loc + r.T @ x) / kappa
            # b' from the definition: squares about the new mean, of rows and of the prior's κ rows at loc.
            square = np.stack([(r[:, c, None] * seen * (x - mu[c]) ** 2).sum(axis=0) for c in range(3)])
            spread = NORMAL.rate + 0.5 * square + 0.5 * NORMAL.kappa * (mu - NORMAL.loc) ** 2
            var = spread / (NORMAL.concentration + count / 2 + 1.5)
            prior = NORMAL.rate + 0.5 * NORMAL.kappa * (mu - NORMAL.loc) ** 2
            penalty += (-(NORMAL.concentration + 1.5) * np.log(var) - prior / var).sum()
            for c in range(3):
                joint[:, c] -= (0.5 * seen * (np.log(2 * np.pi * var[c]) + (x - mu[c]) ** 2 / var[c])).sum(axis=1)
        log_row = logsumexp(joint, axis=1)
        own = np.where(label >= 0, joint[np.arange(len(x)), label], log_row)
        objective.append(weight @ own + penalty)
        share = np.where((label >= 0)[:, None], share, np.exp(joint - log_row[:, None]))
    return np.array(objective), share


MADE = {
    "multinomial": lambda alpha: bnb.MultinomialNB(alpha=alpha),
    "bernoulli": lambda alpha: bnb.BernoulliNB(alpha=alpha),
    "gaussian": lambda alpha: bnb.GaussianNB(prior=NORMAL),
    "poisson": lambda alpha: bnb.PoissonNB(prior=RATES),
    "exponential": lambda alpha: bnb.ExponentialNB(prior=bnb.GammaExponential(RATES.concentration, RATES.rate)),
}


def counted() -> tuple[np.ndarray, np.ndarray]:
    """Counts of four words in 16 rows of three classes, nine of which are labelled."""
    truth = np.arange(16) % 3
    rate = np.array([[1.0, 4, 2, 1], [3, 1, 2, 1], [0.5, 0.5, 5, 1]])
    return np.random.default_rng(3).poisson(rate[truth]).astype(float), np.where(np.arange(16) < 9, truth, -1)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("alpha", [0.05, 2.0])
@pytest.mark.parametrize("kind", MADE)
def test_each_iteration_is_that_of_em_written_out(kind, alpha):
    rng, X, label = np.random.default_rng(3), *counted()
    X = (X > 1).astype(float) if kind == "bernoulli" else X + 0.25 * (kind == "gaussian") * rng.normal(size=X.shape)
    if kind != "multinomial":
        X[rng.random(X.shape) < 0.1] = np.nan
    replicated = rng.integers(1, 4, 16).astype(float)
    em = fit_quietly(MADE[kind](alpha), X, label, weight=0.6, sample_weight=replicated, max_iter=6, tol=0.0)
    weight = replicated * np.where(label < 0, 0.6, 1.0)
    objective, share = written_out(kind, X, label, weight, 6, alpha)
    np.testing.assert_allclose(em.objective, objective, rtol=1e-11)
    np.testing.assert_allclose(em.estimator.class_count_, weight @ share, rtol=1e-9)
    statistics = em.estimator.statistics_.blocks[0]
    some = (share * weight[:, None]).T @ np.nan_to_num(X)
    mine = {
        "bernoulli": lambda: statistics.count[:, 1::2],
        "multinomial": lambda: statistics.count,
        "gaussian": lambda: statistics.mean * statistics.count,
        "poisson": lambda: statistics.total,
        "exponential": lambda: statistics.total,
    }[kind]()
    np.testing.assert_allclose(mine, some, rtol=1e-8, atol=1e-12)


# -- penalty and peak ---------------------------------------------------------------------------------

FAMILIES = [
    (Dirichlet(np.array([[0.2, 1.5, 3.0, 0.7]]), np.array([0, 0, 1, 1]), 2), LevelCounts(np.array([[3.0, 0, 2.5, 1]]))),
    (
        NormalInverseGamma(*(np.array([[v]]) for v in (0.5, 0.3, 1.5, 2.0))),
        Moments(*np.array([[[4.0]], [[2.0]], [[3.0]]])),
    ),
    (GammaPoisson(np.array([[1.5]]), np.array([[0.5]])), Totals(np.array([[4.0]]), np.array([[7.0]]))),
    (GammaExponential(np.array([[1.5]]), np.array([[0.5]])), Durations(np.array([[4.0]]), np.array([[7.0]]))),
    (Known(np.log([[0.2, 0.8]])), LevelCounts(np.array([[3.0, 1.0]]))),
]


@jax.jit
def peaks(prior, statistics):
    """The posterior, and the peaks of both."""
    posterior = prior.update(statistics)
    return posterior, prior.penalized_mle(), posterior.penalized_mle()


log_penalty = jax.jit(lambda of, at: of.log_penalty(at).sum())
log_likelihood = jax.jit(lambda at, statistics: at.log_likelihood(statistics).sum())
mean = jax.jit(lambda family: family.mean())


@variants(("prior", "statistics"), FAMILIES, ids=lambda v: type(v).__name__)
def test_a_posteriors_penalty_is_the_priors_and_the_likelihood(prior, statistics, x64):
    """Penalties agree up to a constant, and the peak is the maximum."""
    posterior, before, after = peaks(prior, statistics)

    def gain(of):
        return float(log_penalty(of, after) - log_penalty(of, before))

    likelihood = float(log_likelihood(after, statistics) - log_likelihood(before, statistics))
    if not isinstance(prior, Known):
        np.testing.assert_allclose(gain(posterior), gain(prior) + likelihood, rtol=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = jax.tree.map(lambda v: np.asarray(v) * np.exp(0.05 * rng.normal(size=v.shape)), after)
        if isinstance(prior, Dirichlet):
            other = mean(Dirichlet(other.theta, prior.group, 2))
        assert float(log_penalty(posterior, other) - log_penalty(posterior, after)) <= 1e-12


# -- what must be the same ----------------------------------------------------------------------------


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@each_kind
@settings(max_examples=4)
@given(data=st.data())
def test_with_all_labels_known_it_is_fit(kind, data):
    problem, *_ = data.draw(partly_labelled(kind))
    fitted = copy.deepcopy(problem.nb).fit(problem.X, problem.y, problem.weight)
    unlabeled = data.draw(st.sampled_from([None, problem.X]))
    em = bnb.fit_em(problem.nb, problem.X, problem.y, unlabeled, weight=0.0, sample_weight=problem.weight)
    assert em.converged
    same(em.estimator.statistics_, fitted.statistics_, rtol=0)
    np.testing.assert_array_equal(em.estimator.predict_proba(problem.X), fitted.predict_proba(problem.X))
    assert em.estimator.log_evidence_ == fitted.log_evidence_


def simulated(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    return rng.poisson(np.where(label[:, None] == 1, [2.0, 1, 3, 0.5], [0.5, 3, 1, 2])), label


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize(
    "nb", [bnb.MultinomialNB(), bnb.BernoulliNB(), bnb.GaussianNB(), bnb.PoissonNB()], ids=lambda nb: type(nb).__name__
)
def test_ways_to_say_the_same(nb):
    X, label = simulated()
    y = np.where(np.arange(60) < 8, label, -1)
    first = bnb.fit_em(nb, X, y, weight=2.0)
    apart = bnb.fit_em(nb, X[:8], y[:8], X[8:], weight=2.0)
    twice = bnb.fit_em(nb, np.concatenate([X, X[8:]]), np.append(y, y[8:]))
    weighted = bnb.fit_em(nb, X, y, sample_weight=np.where(y < 0, 2.0, 1.0))
    named = bnb.fit_em(nb, X, np.array([{0: "a", 1: "b", -1: -1}[v] for v in y], dtype=object), weight=2.0)
    for other in (apart, twice, weighted, named):
        np.testing.assert_allclose(other.objective, first.objective, rtol=1e-11)
        np.testing.assert_allclose(other.estimator.predict_proba(X), first.estimator.predict_proba(X), rtol=1e-8)
    assert list(named.estimator.classes_) == ["a", "b"]


def without_labels(kind: str, label: np.ndarray, known: np.ndarray) -> Any:
    """Labels "a" and "b", or 0 and 1, with a missing one where a row is not known, in a container that users have."""
    names = np.where(known, np.array(["a", "b"], object)[label], None)
    match kind:
        case "None" | "NA" | "NaT" | "nan":
            return np.where(known, names, {"None": None, "NA": pd.NA, "NaT": pd.NaT, "nan": np.nan}[kind])
        case "list":
            return [name if own else float("nan") for name, own in zip(names, known, strict=True)]
        case "floats":
            return np.where(known, label, np.nan)
        case "Int64":
            return pd.Series(label, dtype="Int64").mask(~known)
        case "polars":
            return pl.Series(names.tolist())
        case "dates":
            return pd.Series(pd.Timestamp("2026-01-01") + pd.to_timedelta(label, "D")).mask(~known)
    return pd.Series(names, dtype=kind)


@pytest.mark.parametrize(
    "kind", ["None", "nan", "NA", "NaT", "list", "floats", "Int64", "polars", "dates", "string", "category", "object"]
)
def test_a_missing_label_is_an_unlabelled_row(kind):
    """The rows without labels, passed by themselves, are the oracle."""
    X, label = simulated(20)
    known = np.arange(20) < 8
    expected = bnb.fit_em(bnb.PoissonNB(), X[known], label[known], X[~known], weight=0.5)
    found = bnb.fit_em(bnb.PoissonNB(), X, without_labels(kind, label, known), weight=0.5)
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-11)
    np.testing.assert_allclose(found.estimator.predict_proba(X), expected.estimator.predict_proba(X), rtol=1e-8)
    assert len(found.estimator.classes_) == 2


def test_levels_are_learned_from_all_rows_that_count():
    X = np.array([[v, "k", "k"] for v in "abcfgd"])
    y = ["x", "y", "z", -1, -1, -1]
    em = bnb.fit_em(bnb.CategoricalNB(), X, np.array(y, object), [["e", "k", "k"]], sample_weight=[1, 1, 1, 1, 1, 0])
    assert em.estimator.categories_[0].tolist() == ["a", "b", "c", "e", "f", "g"]
    labelled = bnb.fit_em(bnb.CategoricalNB(), X[:3], y[:3], [["e", "k", "k"]], weight=0)
    assert labelled.estimator.categories_[0].tolist() == ["a", "b", "c"]


# -- starts and ends ----------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_restarts_are_further_climbs_of_which_the_best_wins():
    X, _ = simulated(40, seed=4)
    y = np.where(np.arange(40) < 4, [0, 1, 0, 1] * 10, -1)  # labels that the rows contradict
    nb = bnb.BernoulliNB(alpha=0.1)
    alone, more = bnb.fit_em(nb, X, y), bnb.fit_em(nb, X, y, restarts=5, seed=1)
    assert alone.starts.shape == (1,)
    assert more.starts.shape == (6,)
    assert more.starts[0] == alone.objective[-1]
    assert more.objective[-1] == more.starts.max() >= alone.objective[-1]
    again = bnb.fit_em(nb, X, y, restarts=5, seed=1)
    np.testing.assert_array_equal(again.starts, more.starts)
    assert not np.array_equal(bnb.fit_em(nb, X, y, restarts=5, seed=2).starts, more.starts)


def test_too_few_iterations_are_reported():
    X, y = counted()
    with pytest.warns(UserWarning, match="not converged after max_iter=2"):
        em = bnb.fit_em(bnb.MultinomialNB(), X, y, max_iter=2, tol=0.0)
    assert not em.converged
    assert len(em.objective) == 2
    assert "not converged after 2 iterations" in repr(em)
    assert repr(bnb.fit_em(bnb.MultinomialNB(), X, y)).startswith("EM(MultinomialNB, objective -")


@variants("alpha", [0.0, 1e-12])
def test_without_a_prior_what_was_not_counted_is_impossible(alpha):
    X, y = np.eye(4), [0, 1, 2, -1]
    if alpha:
        assert np.isfinite(bnb.fit_em(bnb.MultinomialNB(alpha=alpha), X, y).objective).all()
    else:
        refused(r"row 3 of X has log p\(row\) = -inf", bnb.fit_em, bnb.MultinomialNB(alpha=0), X, y)
        both = bnb.fit_em(bnb.MultinomialNB(alpha=0), [[2.0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 0, 1], [1, 1, 0, 0]], y)
        assert np.isfinite(both.objective).all()


@pytest.mark.slow("compiles kernels of its own")
def test_a_variance_of_zero_is_refused():
    flat = bnb.NormalInverseGamma(0.0, 0.0, -1.5, 0.0)
    with pytest.raises(ValueError, match="objective is"):
        bnb.fit_em(bnb.GaussianNB(prior=flat), [[1.0], [1.0], [2.0], [3.0], [2.5]], [0, 0, 1, 1, -1])


# -- after it -----------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_it_predicts_and_has_no_posterior():
    X, label = simulated()
    y = np.where(np.arange(60) < 8, label, -1)
    nb = bnb.fit_em(bnb.BernoulliNB(), X, y, weight=0.5).estimator
    assert nb.unlabeled_weight_ == 0.5
    for estimate in ("map", "mean", "predictive"):
        assert np.isfinite(nb.predict_proba(X, estimate=estimate)).all()
    refused("Rows without a label were counted by EM", bnb.posterior_draws, nb, error=NotImplementedError)
    decided = bnb.decide(nb, X, bnb.decision.zero_one(nb.classes_))
    assert np.isnan(decided.p_optimal).all()
    assert np.isnan(decided.regret).all()
    assert np.isfinite(decided.risk).all()
    nb.partial_fit(X[:3], label[:3])
    with pytest.raises(NotImplementedError):
        bnb.posterior_draws(nb)
    assert np.isfinite(nb.fit(X, label).log_evidence_)


# -- what is refused ----------------------------------------------------------------------------------

X8, Y8 = LEVELS[:8], np.array([0, 1, 2, 0, -1, -1, -1, -1])


@variants(
    ("nb", "y", "options", "error", "message"),
    [
        (bnb.FeatureAveragedNB(), Y8, {}, NotImplementedError, "two models with different numbers"),
        (bnb.AODE(), Y8, {}, NotImplementedError, "needs a classifier with an exact posterior"),
        (bnb.CategoricalNB(), np.where(Y8 == 1, 1, -1), {}, ValueError, "the only label is 1"),
        (bnb.CategoricalNB(), Y8, {"sample_weight": (Y8 < 0) * 1.0}, ValueError, "no row has a label and positive"),
        (bnb.CategoricalNB(), np.array(["a", "b", *[-1] * 6]), {}, ValueError, "row 2 .* Pass y with dtype=object"),
        (bnb.CategoricalNB(), np.array(["a", "b", *[np.nan] * 6]), {}, ValueError, "row 2 has the string 'nan'"),
        (bnb.CategoricalNB(), np.full(8, None), {}, ValueError, "no row has a label and positive"),
        (bnb.CategoricalNB(), np.full(8, np.nan), {}, ValueError, "no row has a label and positive"),
        (bnb.CategoricalNB(), np.array([0, 1, np.inf, *[np.nan] * 5]), {}, ValueError, "infinity: the label of row 2"),
        (bnb.CategoricalNB(), np.array([0, 1, 0.5, *[np.nan] * 5]), {}, ValueError, "continuous"),
        (bnb.CategoricalNB(), Y8, {"weight": -1}, ValueError, "weight=-1 must be"),
        (bnb.CategoricalNB(), Y8, {"tol": -1.0}, ValueError, "tol=-1.0 must be"),
        (bnb.CategoricalNB(), Y8, {"max_iter": 0}, ValueError, "max_iter=0 must be"),
        (bnb.CategoricalNB(), Y8, {"restarts": -1}, ValueError, "restarts=-1 must be"),
        (
            bnb.CategoricalNB(),
            Y8,
            {"X_unlabeled": X8[:, :1]},
            ValueError,
            "1 features, but CategoricalNB is expecting 4",
        ),
    ],
)
def test_refused(nb, y, options, error, message):
    refused(message, bnb.fit_em, nb, X8, y, error=error, **options)


# -- text ---------------------------------------------------------------------------------------------


@pytest.mark.slow("folds of real tables")
def test_unlabelled_texts_help_where_labels_are_few():
    (X, y), (X_test, y_test) = newsgroups("train"), newsgroups("test")
    rng = np.random.default_rng(0)
    known = np.concatenate([rng.permutation(np.flatnonzero(y == topic))[:20] for topic in np.unique(y)])
    labels = np.where(np.isin(np.arange(len(y)), known), y, None).astype(object)
    labels[labels == None] = -1  # noqa: E711
    nb = bnb.MultinomialNB(alpha=0.03)
    alone = nb.fit(X[known], y[known]).score(X_test, y_test)
    em = bnb.fit_em(nb, X, labels, weight=0.1)
    assert em.converged
    assert em.estimator.score(X_test, y_test) > alone + 0.05


@pytest.mark.slow("compiles kernels of its own")
def test_the_variance_of_all_rows_stands_for_that_within_unknown_classes():
    """The prior is one, whatever the shares; with a label in every row there is nothing unknown."""
    X, y = np.array([[0.0], [1.0], [5.0], [7.0]]), np.array([0, 0, 1, -1])
    em = bnb.fit_em(bnb.GaussianNB(), X, y)
    assert em.estimator.prior == "pooled"
    np.testing.assert_allclose(em.estimator.prior_.blocks[0].rate, X.var())
    mixture = bnb.NaiveBayesMixture(2, estimator=bnb.GaussianNB(prior=EmpiricalNormal("within", 2.0)), n_init=1).fit(X)
    np.testing.assert_allclose(mixture.estimator_.prior_.blocks[0].rate, X.var())
    np.testing.assert_array_equal(mixture.estimator_.prior_.blocks[0].kappa, 2.0)
    labelled = bnb.fit_em(bnb.GaussianNB(), X, [0, 0, 1, 1]).estimator
    np.testing.assert_allclose(labelled.prior_.blocks[0].rate, (0.5 + 2.0) / 4)
