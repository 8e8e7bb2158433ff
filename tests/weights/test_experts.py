"""Experts of `WeightedNB` against fits to the halves by hand, SciPy's optimiser, and loops."""

import pickle
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB as Foreign
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import bayesnb as bnb
from bayesnb.encoding.experts import class_probabilities
from bayesnb.weights import cross_fitting, experts, optimum
from bayesnb.weights.halves import random_halves
from tests.raises import refused
from tests.tables import ASKED, CLASSES, CODE, COUNTS, LABEL, LEVELS, NUMBERS, N
from tests.weights.test_weighted import SPLITS, crossed

TREE, LOGISTIC = DecisionTreeClassifier(max_depth=3, random_state=0), LogisticRegression()
BOTH = [("tree", TREE), ("logistic", LOGISTIC)]
ONE_HOT = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LOGISTIC)


def fitted(experts: Any = BOTH, estimator: Any = None, X: Any = NUMBERS, y: Any = LABEL, **options: Any) -> Any:
    return bnb.WeightedNB(estimator or bnb.GaussianNB(), experts=experts, **options).fit(X, y)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads of OpenMP wait for each other where other workers take the cores."""
    with threadpool_limits(1):
        yield


@cache
def shared() -> Any:
    """A fitted classifier with both experts that no test may change."""
    return fitted()


def terms_by_hand(expert: Any, X: np.ndarray = NUMBERS) -> np.ndarray:
    """log q(class | row) of each row in each split, q by a fit to the half without the row, (S N, C)."""
    found = []
    for half in random_halves(CODE, SPLITS, 0):
        of_split = np.empty((N, 3))
        for fit in (half, ~half):
            of_split[~fit] = clone(expert).fit(X[fit], CODE[fit]).predict_proba(X[~fit])
        found.append(of_split)
    proba = np.clip(np.concatenate(found), 1e-4, 1)
    return np.log(proba / proba.sum(axis=1, keepdims=True))


# -- the fit --------------------------------------------------------------------------------------


def test_weights_are_those_of_another_optimiser():
    """Of margins and experts together, from terms by fits to the halves by hand: v ~ N(½, 1), without τ."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum, "GRID", ((0.3,),))
        together = fitted().weights_.together
    scores = crossed(bnb.GaussianNB(), NUMBERS)
    of_experts = [terms_by_hand(e) - scores.log_class_prior for e in (TREE, LOGISTIC)]
    own = np.tile(np.eye(3)[CODE], (SPLITS, 1))

    def loss(theta: np.ndarray) -> float:
        bias, temperature, deviation, v = np.split(theta, [3, 4, 8])
        score = scores.log_class_prior + bias + scores.values @ (temperature + 0.3 * deviation)
        score = score + sum(weight * term for weight, term in zip(v, of_experts, strict=True))
        penalty = bias @ bias + deviation @ deviation + (temperature - 1) @ (temperature - 1) + (v - 0.5) @ (v - 0.5)
        return float(penalty / 2 - (own * log_softmax(score, axis=1)).sum() / SPLITS)

    found = minimize(loss, np.r_[np.zeros(3), 1, np.zeros(4), 0.5, 0.5], method="BFGS", options={"gtol": 1e-6}).x
    bias, temperature, deviation, v = np.split(found, [3, 4, 8])
    np.testing.assert_allclose(together.class_bias, bias, atol=1e-4)
    np.testing.assert_allclose(together.weight, np.r_[temperature + 0.3 * deviation, v], atol=1e-4)
    assert together.names == ("0", "1", "2", "3", "tree", "logistic")


def test_score_is_the_sum_of_all_terms():
    """log P(c | x) ∝ b + log π + Σ w log p(x_j | c) + Σ v [log q(c | x) - log π], q fitted to all rows."""
    nb = shared()
    plain, weights = bnb.terms(nb.estimator_, NUMBERS[ASKED]), nb.weights_
    log_class = np.log((np.bincount(CODE) + 1) / (N + 3))
    score = weights.class_bias + log_class + plain.values @ weights.weight[:4]
    for v, expert in zip(weights.weight[4:], (TREE, LOGISTIC), strict=True):
        proba = clone(expert).fit(NUMBERS, CODE).predict_proba(NUMBERS[ASKED])
        proba = np.clip(proba, 1e-4, 1)
        score += v * (np.log(proba / proba.sum(axis=1, keepdims=True)) - log_class)
    np.testing.assert_allclose(nb.predict_log_proba(NUMBERS[ASKED]), log_softmax(score, axis=1), atol=1e-9)
    np.testing.assert_array_equal(nb.predict(NUMBERS[ASKED]), np.array(CLASSES)[score.argmax(axis=1)])


def test_weights_average_those_without_and_with_experts():
    """s = (1 - ω) s_without + ω s_with, ω by Bayesian bootstrap samples of held-out losses, in a loop."""
    nb, plain = shared(), bnb.WeightedNB(bnb.GaussianNB()).fit(NUMBERS, LABEL)
    weights, gain = nb.weights_, nb.gain_
    np.testing.assert_array_equal(weights.without.weight, plain.weights_.weight)
    parts = bnb.GaussianNB().fit(NUMBERS, LABEL).fit_parts(NUMBERS, LABEL)
    _, alone, without = cross_fitting.choose_weights(found := cross_fitting.cross_fit(parts, "auto", 10_000, 0))
    _, joint = experts.cross_fit_experts(dict(BOTH), parts, found[0], 0.0, None)
    _, together = cross_fitting.weigh_cross_fit(joint)
    fall = without - together
    assert gain.gain == pytest.approx(fall.mean(), rel=1e-9)
    half = norm.ppf(0.95) * fall.std() / np.sqrt(N)
    assert (gain.lower, gain.upper) == (pytest.approx(gain.gain - half), pytest.approx(gain.gain + half))
    shares = []
    for r in np.random.default_rng(1).dirichlet(np.ones(N), 20_000):
        shares.append(expit(N * (r @ fall) - np.log(experts.PRIOR_ODDS)))
    assert gain.share == pytest.approx(np.mean(shares), abs=5 * np.std(shares) / np.sqrt(400))
    share = gain.share
    assert weights.log_loss == pytest.approx((1 - share) * without.mean() + share * together.mean())
    mixed = (1 - share) * np.r_[alone.weight, 0, 0] + share * weights.together.weight
    np.testing.assert_allclose(weights.weight, mixed)


def test_without_experts_nothing_changes():
    plain, empty = bnb.WeightedNB(bnb.GaussianNB()), bnb.WeightedNB(bnb.GaussianNB(), experts=[])
    found, same = (nb.fit(NUMBERS, LABEL) for nb in (plain, empty))
    np.testing.assert_array_equal(found.predict_proba(NUMBERS), same.predict_proba(NUMBERS))
    assert not hasattr(same, "experts_")
    assert not hasattr(same, "gain_")
    refused("gain_: there are no experts", lambda: same.gain_, error=NotImplementedError)


def test_gain_tells_whether_naive_bayes_is_enough():
    """Where signs of two numbers decide together the gain is clear; where naive Bayes is true it is not."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    forest = [("forest", RandomForestClassifier(30, random_state=0))]
    decided = fitted(forest, X=X, y=(X[:, 0] * X[:, 1] > 0).astype(int))
    y = rng.integers(0, 2, 400)
    true = fitted(forest, X=X + y[:, None], y=y)
    assert decided.gain_.lower > 0.2
    assert decided.gain_.share > 0.99
    assert str(decided.gain_).startswith("Experts gain 0.")
    assert true.gain_.lower < 0
    assert not str(true.gain_).startswith("Experts gain 0")
    assert "of the score" in repr(true.weights_)
    assert "of the score" in true._repr_html_()


# -- what experts read --------------------------------------------------------------------------------


class Spy(ClassifierMixin, BaseEstimator):
    """Class shares, and a record of the rows it was fitted to."""

    seen: ClassVar[list[Any]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.seen.append((X, y, sample_weight))
        self.classes_, count = np.unique(y, return_counts=True)
        self.share_ = count / count.sum()
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        self.seen.append((X, None, None))
        return np.tile(self.share_, (len(X), 1))


def test_experts_read_the_same_levels_in_each_half():
    """Numbers are floats, NaN where missing; levels are categories, those of all rows also in each half."""
    Spy.seen.clear()
    X = pd.DataFrame({"size": NUMBERS[:, 0], "kind": LEVELS[:, 0].astype(int).astype(str), "sure": CODE > 0})
    X.loc[3, ["size", "kind"]] = None
    X.loc[5, "kind"] = "only here"
    weight = np.r_[np.zeros(2), np.full(N - 2, 2.0)]
    nb = bnb.WeightedNB(experts=[Spy()]).fit(X, LABEL, weight)
    assert len(Spy.seen) == 4 * SPLITS + 1
    for rows, label, weights in Spy.seen:
        assert list(rows) == ["size", "kind", "sure"]
        assert rows["size"].dtype == float
        assert list(rows["kind"].cat.categories) == ["0", "1", "2", "only here"]
        assert list(rows["sure"].cat.categories) == [False, True]
        if label is not None:
            assert set(label) == {0, 1, 2}
            assert (weights == 2).all()
            assert len(weights) == len(rows)
    rows, label, _ = Spy.seen[-1]
    assert len(rows) == N - 2
    assert rows.isna().loc[1].tolist() == [True, True, False]
    np.testing.assert_array_equal(label, CODE[2:])
    assert nb.predict_proba(X.assign(kind="new")).shape == (N, 3)


def test_words_are_a_sparse_matrix_to_experts():
    nb = fitted([("presence", Foreign())], bnb.MultinomialNB(), sp.csr_array(COUNTS))
    assert nb.term_names_ == ("multinomial", "presence")
    assert nb.length_exponent_ >= 0
    proba = nb.predict_proba(sp.csr_array(COUNTS[ASKED]))
    q = Foreign().fit(COUNTS, CODE).predict_proba(COUNTS[ASKED])
    q = np.clip(q, 1e-4, 1)
    log_class = np.log((np.bincount(CODE) + 1) / (N + 3))
    length = (COUNTS[ASKED].sum(axis=1) + 1) ** -nb.length_exponent_
    of_words = nb.weight_[0] * length[:, None] * bnb.terms(nb.estimator_, COUNTS[ASKED]).values[..., 0]
    of_expert = nb.weight_[1] * (np.log(q / q.sum(axis=1, keepdims=True)) - log_class)
    score = nb.class_bias_ + log_class + of_words + of_expert
    np.testing.assert_allclose(np.log(proba), log_softmax(score, axis=1), atol=1e-9)


def test_an_expert_that_lacks_a_class_has_little_probability_of_it():
    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 2])
    proba = class_probabilities(tree, np.array([[0.0], [1.0]]), 3)
    np.testing.assert_allclose(proba, np.array([[1, 1e-4, 1e-4], [1e-4, 1e-4, 1]]) / 1.0002)


def test_auto_takes_mixed_tables_with_missing_cells():
    """Also a column of more levels than boosting has bins, one without cells, and a class with a single row."""
    rng, n = np.random.default_rng(0), 600
    X = pd.DataFrame(
        {
            "number": rng.standard_normal(n),
            "empty": np.nan,
            "level": rng.choice(["a", "b"], n),
            "many": pd.Categorical.from_codes(np.arange(n) % 300, [f"m{k}" for k in range(300)]),
        }
    )
    X.loc[::7, ["number", "level"]] = None
    y = np.where((X["level"] == "a") ^ (rng.random(n) < 0.2), "yes", "no")
    y[0] = "rare"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        nb = bnb.WeightedNB(experts="auto", random_state=3).fit(X[:150], y[:150])
    assert list(nb.experts_) == ["boosting", "forest", "logistic"]
    assert nb.experts_["forest"][-1].random_state == 3
    assert np.isfinite(nb.predict_log_proba(X)).all()
    assert nb.score(X[150:], y[150:]) > 0.7


# -- analyses -----------------------------------------------------------------------------------------


def test_contributions_add_up_to_the_log_odds():
    for nb, X in ((shared(), NUMBERS), (fitted([ONE_HOT], bnb.TAN(gaussian=None), LEVELS), LEVELS)):
        frame, proba = bnb.explain(nb, X[:6], of="elm", against="ash"), nb.predict_proba(X[:6])
        odds = np.log(proba[:, 1] / proba[:, 0])
        np.testing.assert_allclose(frame.groupby("row")["contribution"].sum(), odds, atol=1e-9)
        own = frame[frame["feature"].isin(nb.experts_)]
        assert len(own) == 6 * len(nb.experts_)
        assert (own["sd"] == 0).all()
        joint = bnb.terms(nb, X[:6]).joint()
        np.testing.assert_allclose(log_softmax(joint, axis=1), np.log(proba), atol=1e-9)


def test_draws_average_those_without_and_with_experts():
    weights, n = shared().weights_, 20_000
    share, drawn = weights.gain.share, weights.draw(20_000, 0)
    parts = weights.without.draw(n, 1), weights.together.draw(n, 2)
    var = [np.pad(w.weight.var(axis=0), (0, 6 - w.weight.shape[1])) for w in parts]
    expected = ((1 - share) ** 2 * var[0] + share**2 * var[1]) / ((1 - share) ** 2 + share**2)
    np.testing.assert_allclose(drawn.weight.var(axis=0), expected, rtol=0.1)
    table = bnb.weight_table(shared())
    assert table["term"].tolist()[-2:] == ["tree", "logistic"]
    np.testing.assert_allclose(table["weight"], weights.weight)
    np.testing.assert_allclose(table["sd"], np.sqrt(expected), rtol=0.1)


@pytest.mark.parametrize("y", [LABEL, np.where(CODE > 0, "elm", "ash")], ids=["three classes", "two classes"])
def test_intervals_are_those_of_a_loop_over_draws(y):
    """Of parameters and weights, given the experts."""
    nb, n = fitted([LOGISTIC], y=y), 4_000
    lower, upper = bnb.predict_interval(nb, NUMBERS[:5], draws=bnb.posterior_draws(nb, n))
    drawn, theta = nb.weights_.draw(n, 1), bnb.posterior_draws(nb, n, seed=2)
    log_class = np.log((nb.class_count_ + 1) / (N + len(nb.class_count_)))
    q = np.clip(clone(LOGISTIC).fit(NUMBERS, np.unique(y, return_inverse=True)[1]).predict_proba(NUMBERS[:5]), 1e-4, 1)
    of_expert = np.log(q / q.sum(axis=1, keepdims=True)) - log_class
    density = norm.logpdf(NUMBERS[:5, None, None], theta["mu"], np.sqrt(theta["sigma2"]))  # (row, draw, class, column)
    score = drawn.class_bias + np.log(theta["class_prob"]) + np.einsum("nscf,sf->nsc", density, drawn.weight[:, :4])
    proba = np.exp(log_softmax(score + of_expert[:, None] * drawn.weight[:, 4, None], axis=2))
    expected = np.quantile(proba, [0.05, 0.95], axis=1)
    np.testing.assert_allclose(lower, expected[0], atol=0.04)
    np.testing.assert_allclose(upper, expected[1], atol=0.04)
    assert bnb.decide(nb, NUMBERS[:5], loss=1 - np.eye(len(nb.classes_))).action.shape == (5,)


def test_rows_and_prevalence_take_experts_as_given():
    nb = fitted([LOGISTIC])
    lower, upper = bnb.predict_interval(nb, NUMBERS[:4], rows=(NUMBERS, LABEL))
    assert (lower < upper).all()
    assert np.isfinite(bnb.estimate_prevalence(nb, NUMBERS).mean).all()
    assert bnb.parameter_table(nb).equals(bnb.parameter_table(nb.estimator_))


def test_copies_predict_the_same():
    nb = shared()
    again = pickle.loads(pickle.dumps(nb))
    np.testing.assert_array_equal(again.predict_proba(NUMBERS), nb.predict_proba(NUMBERS))
    np.testing.assert_array_equal(clone(nb).fit(NUMBERS, LABEL).predict_proba(NUMBERS), nb.predict_proba(NUMBERS))
    np.testing.assert_array_equal(nb.refit(NUMBERS, LABEL).predict_proba(NUMBERS), nb.predict_proba(NUMBERS))
    np.testing.assert_array_equal(again.weigh(NUMBERS, LABEL).predict_proba(NUMBERS), nb.predict_proba(NUMBERS))


@pytest.mark.slow("starts other processes")
def test_jobs_give_the_same():
    one, two = (fitted(n_jobs=n).predict_proba(NUMBERS) for n in (None, 2))
    np.testing.assert_array_equal(one, two)


# -- refusals and warnings ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("experts", "message"),
    [
        ("all", "'all' must be 'auto', or a list"),
        (LOGISTIC, "must be 'auto', or a list"),
        (RandomForestClassifier(), "must be 'auto', or a list"),
        ([LogisticRegression], "must be 'auto', or a list"),
        ([("scale", StandardScaler())], "must be 'auto', or a list"),
        ([LOGISTIC, LOGISTIC], "'logisticregression' is the name of two experts"),
    ],
)
def test_bad_experts_are_refused(experts, message):
    refused(f"experts.*{message}", fitted, experts)


def test_experts_need_weights_that_are_fitted():
    weights = bnb.WeightedNB(bnb.GaussianNB()).fit(NUMBERS, LABEL).weights_
    refused("experts: weights are given", fitted, weights=weights)
    refused("The classifier is an average of models", fitted, BOTH, bnb.AODE(), LEVELS)
    many = np.random.default_rng(0).integers(0, 2, (N, 501)).astype(float)
    refused("The classifier has 501 terms", fitted, BOTH, bnb.BernoulliNB(), many)


def test_failures_and_warnings_name_the_expert_and_the_half():
    neighbours = KNeighborsClassifier(40)
    half = "expert 'neighbours', in the fit to half 1 of 12: ValueError: Expected n_neighbors"
    refused(half, fitted, [("neighbours", neighbours)], error=RuntimeError)
    with pytest.warns(UserWarning, match="'neighbours', in the fit to half 1 of 12: takes no sample_weight") as caught:
        bnb.WeightedNB(bnb.GaussianNB(), experts=[("neighbours", KNeighborsClassifier())]).fit(
            NUMBERS, LABEL, np.full(N, 2.0)
        )
    assert len([w for w in caught if "neighbours" in str(w.message)]) == 1
    with pytest.warns(UserWarning, match="'mlp', in the fit to half 1 of 12: .*failed to converge"):
        fitted([("mlp", make_pipeline(StandardScaler(), LogisticRegression(max_iter=1)))])


CALLS: dict[str, Any] = {
    "partial_fit": lambda nb: nb.partial_fit,
    "forget": lambda nb: nb.forget(NUMBERS, LABEL),
    "decay": lambda nb: nb.decay(0.5),
    "with_counts": lambda nb: nb.with_counts(nb.fitted_.counted),
    "loo_terms": lambda nb: bnb.loo_terms(nb, NUMBERS, LABEL),
    "run_nuts": lambda nb: bnb.run_nuts(nb, X=NUMBERS, y=LABEL),
    "sql": lambda nb: bnb.sql.score(nb, "rows", columns=list("abcd")),
    "value_of_information": lambda nb: bnb.value_of_information(nb, NUMBERS),
    "prior_predictive": lambda nb: bnb.prior_predictive(nb),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_experts_cannot_do_is_refused(call):
    nb = shared()
    before = nb.predict_proba(NUMBERS)
    with pytest.raises((NotImplementedError, AttributeError)):
        CALLS[call](nb)
    np.testing.assert_array_equal(nb.predict_proba(NUMBERS), before)


def test_files_do_not_hold_experts(tmp_path):
    path = tmp_path / "model"
    refused("joblib.dump", bnb.save, shared(), path, error=NotImplementedError)
    assert not path.exists()


@pytest.mark.slow("fits experts to twenty tables")
def test_stated_loss_is_honest_on_noise():
    """Law 10: of noise the loss that is stated is not below the true one, ln 2 at least, by two standard errors."""
    stated, true = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 4, (500, 15)).astype(float), rng.integers(0, 2, 500)
        nb = bnb.WeightedNB(
            bnb.CategoricalNB(), experts=[("logistic", experts.read_experts("auto", 0)["logistic"])]
        ).fit(X[:80], y[:80])
        stated.append(nb.expected_log_loss_)
        true.append(-nb.predict_log_proba(X[80:])[np.arange(420), y[80:]].mean())
    difference = np.subtract(stated, true)
    assert difference.mean() > -2 * difference.std(ddof=1) / np.sqrt(20)
