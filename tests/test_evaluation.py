"""Scores against scikit-learn and hand calculation; comparisons against fits made by hand."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.naive_bayes as sklearn_nb
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from bayesnb import CategoricalNB, GaussianNB, MixedNB, MultinomialNB, PoissonNB
from bayesnb.datasets import load_watermelon
from bayesnb.evaluation import compare_estimates, compare_folds, scores
from tests.data import arff

COLUMNS = ["brier", "log_loss", "log_loss_clipped", "accuracy", "ece", "impossible_rows", "undefined_rows"]


def random_predictions(seed, n_classes, n_rows, sharpness):
    rng = np.random.default_rng(seed)
    log_proba = sharpness * rng.normal(size=(n_rows, n_classes))
    log_proba -= np.log(np.exp(log_proba).sum(axis=1, keepdims=True))
    return log_proba, rng.integers(n_classes, size=n_rows)


def calibration_error(proba, correct):
    """Row by row, as the definition reads."""
    bins = [[] for _ in range(15)]
    for p, right in zip(proba.max(axis=1), correct, strict=True):
        bins[next(k for k in range(15) if p <= (k + 1) / 15 or k == 14)].append((p, right))
    gaps = [len(b) * abs(np.mean([r for _, r in b]) - np.mean([p for p, _ in b])) for b in bins if b]
    return sum(gaps) / len(proba)


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 60), st.floats(0.1, 8))
def test_scores_are_those_of_scikit_learn(seed, n_classes, n_rows, sharpness):
    log_proba, y = random_predictions(seed, n_classes, n_rows, sharpness)
    classes = np.arange(n_classes)
    ours = scores(log_proba, y, classes)
    proba, predicted = np.exp(log_proba), log_proba.argmax(axis=1)
    assert list(ours) == COLUMNS
    loss = metrics.log_loss(y, proba, labels=classes)
    assert ours["log_loss"] == pytest.approx(loss, rel=1e-9)
    assert ours["log_loss_clipped"] == pytest.approx(loss, rel=1e-9)
    assert ours["accuracy"] == pytest.approx(metrics.accuracy_score(y, predicted))
    assert ours["brier"] == pytest.approx(np.mean(np.sum((proba - np.eye(n_classes)[y]) ** 2, axis=1)))
    if n_classes == 2:
        # scikit-learn's score of two classes counts one of the two terms, which are equal.
        assert ours["brier"] == pytest.approx(2 * np.mean((proba[:, 1] - y) ** 2))
    assert ours["ece"] == pytest.approx(calibration_error(proba, predicted == y), abs=1e-12)
    assert (ours["impossible_rows"], ours["undefined_rows"]) == (0, 0)


def test_scores_by_hand():
    classes = ["a", "b", "c"]
    proba = [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [math.nan] * 3]
    with np.errstate(divide="ignore"):
        log_proba = np.log(proba)
    ours = scores(log_proba, ["b", "b", "c", "c"], classes, ["a", "b", "a", "c"])
    brier = [0.5**2 + 0.75**2 + 0.25**2, 0, 2, 2 / 9 + (2 / 3) ** 2]
    assert ours["brier"] == pytest.approx(np.mean(brier))
    assert ours["log_loss"] == math.inf
    assert ours["log_loss_clipped"] == pytest.approx((math.log(4) + 0 + 15 * math.log(10) + math.log(3)) / 4)
    assert ours["accuracy"] == 0.5
    # Bins: .5 wrong; 1 right and 1 wrong; 1/3 right.
    assert ours["ece"] == pytest.approx((0.5 + 1 + 2 / 3) / 4)
    assert (ours["impossible_rows"], ours["undefined_rows"]) == (1, 1)


def test_strict_log_loss_where_rows_are_undefined():
    log_proba = np.log([[0.5, 0.5], [math.nan, math.nan]])
    assert math.isnan(scores(log_proba, [0, 1], [0, 1])["log_loss"])
    assert scores(log_proba, [0, 1], [0, 1])["log_loss_clipped"] == pytest.approx(math.log(2))
    assert scores(log_proba[:1], [0], [0, 1])["log_loss"] == pytest.approx(math.log(2))


def test_undefined_rows_take_the_label_that_was_passed_or_none():
    log_proba = np.full((2, 2), np.nan)
    assert scores(log_proba, ["x", "y"], ["x", "y"])["accuracy"] == 0
    assert scores(log_proba, ["x", "y"], ["x", "y"], ["x", "x"])["accuracy"] == 0.5


def test_improbable_is_not_impossible():
    """exp(-1000) underflows, but its logarithm is known."""
    ours = scores([[-1000.0, 0.0]], [0], [0, 1])
    assert ours["log_loss"] == 1000
    assert ours["log_loss_clipped"] == pytest.approx(15 * math.log(10))
    assert ours["impossible_rows"] == 0


def test_labels_that_the_model_does_not_know_are_impossible():
    ours = scores(np.log([[0.6, 0.4]]), ["new"], ["a", "b"])
    assert ours["log_loss"] == math.inf
    assert ours["impossible_rows"] == 1
    assert ours["brier"] == pytest.approx(0.6**2 + 0.4**2 + 1)
    assert ours["accuracy"] == 0


@pytest.mark.parametrize("y", [[], [0], [0, 1, 1]])
def test_shapes_must_agree(y):
    with pytest.raises(ValueError, match="log_proba has shape"):
        scores(np.zeros((2, 2)), y, [0, 1])


def test_bins_are_fifteenths():
    """A right and a wrong row cancel in the same bin, and add up in two bins."""

    def ece(*confidence):
        return scores(np.log([[p, 1 - p] for p in confidence]), [0, 1], [0, 1], [0, 0])["ece"]

    low, high = 8 / 15, 9 / 15
    assert ece(low + 1e-9, high - 1e-9) == pytest.approx(abs(0.5 - (low + high) / 2), abs=1e-8)
    assert ece(low - 1e-9, low + 1e-9) == pytest.approx((1 - low + low) / 2, abs=1e-8)


def levels(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["p", "q"], size=n, p=[0.4, 0.6])
    X = np.where(rng.random((n, 3)) < np.where(y == "p", 0.8, 0.3)[:, None], "on", "off")
    return X, y


def test_rows_are_the_four_readings():
    X, y = levels(80)
    train, test = slice(0, 50), slice(50, None)
    table = compare_estimates(CategoricalNB(alpha=2.0), X[train], y[train], X[test], y[test])
    assert list(table.columns) == [*COLUMNS, "log_evidence"]
    assert table.index.tolist() == ["mle", "map", "mean = predictive"]
    codes = (X == "on").astype(int)
    # Laplace smoothing with λ is the mean under Dirichlet(λ), and the mode under Dirichlet(λ + 1).
    for name, alpha, class_counts in (("mle", 1e-10, 0), ("map", 1.0, 0), ("mean = predictive", 2.0, 1)):
        prior = [(np.sum(y[train] == c) + class_counts) / (50 + 2 * class_counts) for c in "pq"]
        reference = sklearn_nb.CategoricalNB(alpha=alpha, class_prior=prior).fit(codes[train], y[train])
        proba = reference.predict_proba(codes[test])
        assert table.loc[name, "log_loss"] == pytest.approx(metrics.log_loss(y[test], proba), rel=1e-6)
        brier = 2 * metrics.brier_score_loss(y[test] == "q", proba[:, 1])
        assert table.loc[name, "brier"] == pytest.approx(brier, rel=1e-6)
        assert table.loc[name, "accuracy"] == reference.score(codes[test], y[test])


def test_map_is_mle_at_one_and_says_so():
    X, y = levels(60)
    table = compare_estimates(CategoricalNB(), X[:40], y[:40], X[40:], y[40:], {"Laplace": 1, "Jeffreys": 0.5})
    assert table.index.tolist() == ["mle = map", "mean = predictive = Laplace", "Jeffreys"]


def test_log_evidence_is_published():
    car = arff("car")
    X, y = car.X, car.y
    nb = CategoricalNB(categories=car.levels)
    table = compare_estimates(nb, X, y, X[:200], y[:200], priors={"Perks": 0.25})
    assert table.loc["mle = map", "log_evidence"] == pytest.approx(-13677.211567516, abs=1e-8)
    assert table.loc["mean = predictive", "log_evidence"] == pytest.approx(-13677.211567516, abs=1e-8)
    perks = CategoricalNB(alpha=0.25, categories=car.levels).fit(X, y)
    assert table.loc["Perks", "log_evidence"] == perks.log_evidence_


def test_the_mle_has_no_evidence():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    table = compare_estimates(GaussianNB(), X[:30], y[:30], X[30:], y[30:])
    assert table.index.tolist() == ["mle", "map", "mean", "predictive"]
    assert table["log_evidence"].isna().tolist() == [True, False, False, False]
    reference = sklearn_nb.GaussianNB(var_smoothing=0).fit(X[:30], y[:30])
    loss = metrics.log_loss(y[30:], reference.predict_proba(X[30:]))
    assert table.loc["mle", "log_loss"] == pytest.approx(loss, rel=1e-9)


def test_one_fit_a_prior(monkeypatch):
    calls = []
    original = MultinomialNB.fit
    monkeypatch.setattr(MultinomialNB, "fit", lambda self, *args: calls.append(self.alpha) or original(self, *args))
    X, y = np.random.default_rng(0).poisson(2, size=(30, 4)), np.arange(30) % 3
    nb = MultinomialNB(alpha=0.3)
    compare_estimates(nb, X[:20], y[:20], X[20:], y[20:], {"Laplace": 1, "Jeffreys": 0.5})
    assert calls == [0.3, 1, 0.5]
    assert not hasattr(nb, "statistics_")
    assert nb.alpha == 0.3


class Stump(ClassifierMixin, BaseEstimator):
    """A baseline without predict_log_proba that knows its classes in another order."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)[::-1]
        return self

    def predict_proba(self, X):
        return np.tile([0.9, 0.1], (len(X), 1))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_baselines_are_rows():
    rng = np.random.default_rng(1)
    y = np.array(["no", "yes"])[np.arange(60) % 2]
    X = rng.normal(size=(60, 2)) + (y == "yes")[:, None]
    baselines = [LogisticRegression(C=0.5), Stump()]
    table = compare_estimates(GaussianNB(), X[:40], y[:40], X[40:], y[40:], baselines=baselines)
    assert table.index.tolist()[-2:] == ["LogisticRegression(C=0.5)", "Stump()"]
    logistic = LogisticRegression(C=0.5).fit(X[:40], y[:40])
    assert table.loc["LogisticRegression(C=0.5)", "log_loss"] == pytest.approx(
        metrics.log_loss(y[40:], logistic.predict_proba(X[40:]))
    )
    assert table.loc["Stump()", "accuracy"] == 0.5
    assert table.loc["Stump()", "brier"] == pytest.approx((2 * 0.1**2 + 2 * 0.9**2) / 2)
    assert table["log_evidence"].isna().tolist()[-2:] == [True, True]
    assert not hasattr(baselines[0], "coef_")


def test_undefined_and_impossible_rows_are_counted_without_a_warning():
    X, y = [["a"], ["a"], ["b"]], ["no", "no", "yes"]
    X_test, y_test = [["c"], ["b"], ["b"]], ["no", "no", "yes"]
    nb = CategoricalNB(categories=[["a", "b", "c"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = compare_estimates(nb, X, y, X_test, y_test)
    mle = table.loc["mle = map"]
    assert (mle["impossible_rows"], mle["undefined_rows"]) == (1, 1)
    assert mle["log_loss"] == math.inf
    # "c" is undefined, and gets the most frequent class, "no"; "b" gets "yes".
    assert mle["accuracy"] == pytest.approx(2 / 3)
    assert mle["brier"] == pytest.approx((0.5 + 2 + 0) / 3)
    bayes = table.loc["mean = predictive"]
    assert (bayes["impossible_rows"], bayes["undefined_rows"]) == (0, 0)
    assert math.isfinite(bayes["log_loss"])


def test_estimates_far_apart_below_1e_12_are_not_merged():
    """Two well separated classes: all probabilities are 0 or 1 to 1e-12, the log losses differ."""
    X = np.array([[0.0], [0.1], [0.2], [100.0], [100.3], [100.1]])
    y = np.array([0, 0, 0, 1, 1, 1])
    table = compare_estimates(GaussianNB(), X, y, np.array([[0.1], [0.2]]), [1, 0])
    assert "mle" in table.index
    assert "map" in table.index
    assert table.loc["mle", "log_loss"] != pytest.approx(table.loc["map", "log_loss"], rel=0.01)


def test_priors_need_alpha():
    with pytest.raises(ValueError, match="alpha"):
        compare_estimates(PoissonNB(), [[1], [2]], [0, 1], [[1]], [0], priors={"Laplace": 1})


def test_folds_are_pooled():
    melon = load_watermelon()
    X, y = melon.data, melon.target.to_numpy()
    categories = {name: melon.data[name].unique().tolist() for name in melon.feature_names[:6]}
    nb = MixedNB(alpha=1.0, categories=categories)
    splitter = StratifiedKFold(4, shuffle=True, random_state=3)
    table = compare_folds(nb, X, y, splitter.split(X, y), priors={"Jeffreys": 0.5})
    for name, alpha in (("predictive", 1.0), ("Jeffreys", 0.5)):
        mine = MixedNB(alpha=alpha, categories=categories)
        proba = cross_val_predict(mine, X, y, cv=splitter, method="predict_proba")
        classes = np.unique(y)
        assert table.loc[name, "log_loss"] == pytest.approx(metrics.log_loss(y, proba, labels=classes))
        assert table.loc[name, "accuracy"] == np.mean(classes[proba.argmax(axis=1)] == y)
        assert table.loc[name, "log_evidence"] == mine.fit(X, y).log_evidence_


def test_a_class_that_a_fold_lacks_is_impossible():
    X = np.array([[0.0], [0.2], [0.1], [1.0], [1.2], [9.0]])
    y = np.array(["a", "a", "a", "b", "b", "c"])
    folds = [(np.array([0, 1, 3, 4]), np.array([2, 5])), (np.array([0, 2, 3, 5]), np.array([1, 4]))]
    table = compare_folds(PoissonNB(), X, y, folds)
    assert (table["impossible_rows"] == 1).all()
    frame = compare_folds(PoissonNB(), pd.DataFrame(X), y, folds)
    pd.testing.assert_frame_equal(table, frame)
