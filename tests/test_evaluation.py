"""Scores against scikit-learn and hand calculation; comparisons against fits made by hand."""

import math
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.naive_bayes as sklearn_nb
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from bayesnb import BernoulliNB, CategoricalNB, GaussianNB, MixedNB, MultinomialNB, PoissonNB, WeightedNB
from bayesnb.evaluation import compare_estimates, compare_fitted, compare_folds, reliability, scores, stratified_splits
from tests.raises import refused

COLUMNS = [
    *("brier", "log_loss", "log_loss_clipped", "accuracy", "confidence", "ece"),
    *("impossible_rows", "undefined_rows"),
]
DIFFERENCES = ["brier_difference", "brier_difference_se", "log_loss_difference", "log_loss_difference_se"]


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
    assert ours["confidence"] == pytest.approx(proba.max(axis=1).mean())
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


def test_labels_that_the_model_does_not_know_are_impossible():
    ours = scores(np.log([[0.6, 0.4]]), ["new"], ["a", "b"])
    assert ours["log_loss"] == math.inf
    assert ours["impossible_rows"] == 1
    assert ours["brier"] == pytest.approx(0.6**2 + 0.4**2 + 1)
    assert ours["accuracy"] == 0


@pytest.mark.parametrize("y", [[], [0], [0, 1, 1]])
def test_shapes_must_agree(y):
    refused("log_proba has shape", scores, np.zeros((2, 2)), y, [0, 1])


def levels(n):
    """Features with 2, 3 and 4 levels."""
    rng = np.random.default_rng(2)
    y = rng.choice(["p", "q"], size=n, p=[0.4, 0.6])
    return rng.integers([2, 3, 4], size=(n, 3)) * (rng.random((n, 3)) < np.where(y == "p", 0.9, 0.5)[:, None]), y


def log_dirichlet(counts, alpha):
    """log p of labelled draws in some order, with the probabilities integrated out."""
    alpha = np.broadcast_to(alpha, np.shape(counts))
    return betaln(alpha + counts) - betaln(alpha)


def betaln(a):
    return gammaln(a).sum() - gammaln(a.sum())


def test_rows_are_the_four_readings():
    X, y = levels(80)
    train, test = slice(0, 50), slice(50, None)
    table = compare_estimates(CategoricalNB(alpha=2.0), X[train], y[train], X[test], y[test], priors={"Perks": 0.25})
    assert list(table.columns) == [*COLUMNS, *DIFFERENCES, "log_evidence", "same_as"]
    assert table["same_as"].to_dict() == {"mle": "", "map": "", "mean": "", "predictive": "mean", "Perks": ""}
    # Laplace smoothing with λ is the mean under Dirichlet(λ), and the mode under Dirichlet(λ + 1).
    for name, alpha, class_counts in (("mle", 1e-10, 0), ("map", 1.0, 0), ("mean", 2.0, 1), ("predictive", 2.0, 1)):
        prior = [(np.sum(y[train] == c) + class_counts) / (50 + 2 * class_counts) for c in "pq"]
        reference = sklearn_nb.CategoricalNB(alpha=alpha, class_prior=prior).fit(X[train], y[train])
        proba = reference.predict_proba(X[test])
        assert table.loc[name, "log_loss"] == pytest.approx(metrics.log_loss(y[test], proba), rel=1e-6)
        brier = 2 * metrics.brier_score_loss(y[test] == "q", proba[:, 1])
        assert table.loc[name, "brier"] == pytest.approx(brier, rel=1e-6)
        assert table.loc[name, "accuracy"] == reference.score(X[test], y[test])
    counts = [[np.bincount(X[train][y[train] == c, j], minlength=j + 2) for c in "pq"] for j in range(3)]
    of_classes = log_dirichlet([np.sum(y[train] == c) for c in "pq"], 1.0)
    for name, alpha in (("map", 2.0), ("mean", 2.0), ("predictive", 2.0), ("Perks", 0.25)):
        evidence = of_classes + sum(log_dirichlet(n, alpha) for feature in counts for n in feature)
        assert table.loc[name, "log_evidence"] == pytest.approx(evidence, rel=1e-12)


def test_sparse_rows_are_compared_as_dense_ones():
    rng = np.random.default_rng(0)
    X, y = rng.poisson(0.7, (60, 5)), rng.integers(0, 2, 60)
    dense = compare_estimates(MultinomialNB(), X[:40], y[:40], X[40:], y[40:])
    sparse = compare_estimates(MultinomialNB(), sp.csr_array(X[:40]), y[:40], sp.csr_array(X[40:]), y[40:])
    pd.testing.assert_frame_equal(sparse, dense, rtol=1e-10)


def test_map_is_mle_at_one_and_says_so():
    X, y = levels(60)
    table = compare_estimates(CategoricalNB(), X[:40], y[:40], X[40:], y[40:], {"Laplace": 1, "Jeffreys": 0.5})
    names = ["mle", "map", "mean", "predictive", "Laplace", "Jeffreys"]
    assert table.index.tolist() == names
    assert table["same_as"].tolist() == ["", "mle", "", "mean", "mean", ""]
    for name, first in table["same_as"].items():
        if first:
            scored = table.columns.drop(["same_as", "log_evidence"])
            np.testing.assert_allclose(*(table.loc[[name, first], scored].astype(float).to_numpy()), atol=1e-11)


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
    named = compare_estimates(
        GaussianNB(), X[:40], y[:40], X[40:], y[40:], baselines={"logistic": baselines[0], "a stump": Stump()}
    )
    assert named.index.tolist()[-2:] == ["logistic", "a stump"]
    pd.testing.assert_frame_equal(named.reset_index(drop=True), table.reset_index(drop=True))


@pytest.mark.slow("compiles kernels of its own")
def test_undefined_and_impossible_rows_are_counted_without_a_warning():
    X, y = [["a"], ["a"], ["b"]], ["no", "no", "yes"]
    X_test, y_test = [["c"], ["b"], ["b"]], ["no", "no", "yes"]
    nb = CategoricalNB(categories=[["a", "b", "c"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = compare_estimates(nb, X, y, X_test, y_test)
    mle = table.loc["mle"]
    assert (mle["impossible_rows"], mle["undefined_rows"]) == (1, 1)
    assert mle["log_loss"] == math.inf
    # "c" is undefined, and gets the most frequent class, "no"; "b" gets "yes".
    assert mle["accuracy"] == pytest.approx(2 / 3)
    assert mle["brier"] == pytest.approx((0.5 + 2 + 0) / 3)
    bayes = table.loc["predictive"]
    assert (bayes["impossible_rows"], bayes["undefined_rows"]) == (0, 0)
    assert math.isfinite(bayes["log_loss"])


def test_estimates_far_apart_below_1e_12_are_not_the_same():
    """Two well separated classes: all probabilities are 0 or 1 to 1e-12, the log losses differ."""
    X, y = np.tile([[0.0], [0.1], [0.2], [100.0], [100.3], [100.1]], (4, 2)), [0, 0, 0, 1, 1, 1] * 4
    table = compare_estimates(GaussianNB(), X, y, np.tile([[0.1], [0.2]], (10, 2)), [1, 0] * 10)
    assert (table["same_as"] == "").all()
    assert table.loc["mle", "log_loss"] != pytest.approx(table.loc["map", "log_loss"], rel=0.01)


def test_priors_need_alpha():
    with pytest.raises(ValueError, match=r"PoissonNB has no concentration `alpha`.*baselines=\[PoissonNB\(prior="):
        compare_estimates(PoissonNB(), [[1], [2]], [0, 1], [[1]], [0], priors={"Laplace": 1})
    X, y = levels(20)
    complete = CategoricalNB(prior=CategoricalNB().fit(X, y).prior_)
    refused("prior=None", compare_estimates, complete, X, y, X, y, priors={"Laplace": 1})


@pytest.mark.parametrize("alpha", ["1/V", "Perks", -1.0, [1.0, 2.0]])
def test_a_bad_concentration_is_refused(alpha):
    X, y = levels(20)
    refused(r"alpha|1/V|1/L", compare_estimates, CategoricalNB(), X, y, X, y, priors={"mine": alpha})


def test_two_rows_of_one_name_are_refused():
    X, y = levels(20)
    said = r"same name in the table, 'Stump\(\)'"
    refused(said, compare_estimates, CategoricalNB(), X, y, X, y, baselines=[Stump(), Stump()])
    refused("same name in the table, 'map'", compare_estimates, CategoricalNB(), X, y, X, y, priors={"map": 1})


def table_of(kind, n=60):
    """Rows of features with 2, 3 and 4 levels, counts of 5 words, or some of both; the model, and α = 1/L."""
    rng = np.random.default_rng(2)
    y = np.arange(n) % 2
    coded = levels(n)[0]
    counts = rng.poisson(1 + y[:, None] * [0, 1, 0, 2, 0])
    if kind == "categorical":
        return CategoricalNB(), coded, y, [[1 / 2] * 2, [1 / 3] * 3, [1 / 4] * 4]
    if kind == "bernoulli":
        return BernoulliNB(), coded, y, [1 / 2] * 3
    if kind == "multinomial":
        return MultinomialNB(), counts, y, [1 / 5] * 5
    X = np.column_stack([counts[:, :2], coded, counts[:, 2:]])
    nb = MixedNB(poisson=[0], multinomial=[1, 5, 6, 7], categorical=[2, 3, 4])
    return nb, X, y, [1, 1 / 4, 1 / 2, 1 / 3, 1 / 4, 1 / 4, 1 / 4, 1 / 4]


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", ["categorical", "bernoulli", "multinomial", "mixed"])
def test_perks_is_one_over_the_number_of_levels(kind):
    nb, X, y, alpha = table_of(kind)
    table = compare_estimates(nb, X[:40], y[:40], X[40:], y[40:], {"Perks": "1/L"})
    by_hand = nb.set_params(alpha=alpha).fit(X[:40], y[:40])
    perks = table.loc["Perks"]
    assert perks["log_evidence"] == pytest.approx(by_hand.log_evidence_, rel=1e-12)
    assert perks["log_loss"] == pytest.approx(metrics.log_loss(y[40:], by_hand.predict_proba(X[40:])), rel=1e-12)


# -- weights -------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_weighted_folds_are_pooled_and_fitted_ones_are_taken_as_they_are():
    X, y = levels(80)
    folds = [(np.arange(40), np.arange(40, 80)), (np.arange(40, 80), np.arange(40))]
    nb = WeightedNB(CategoricalNB())
    fits = [(clone(nb).fit(X[train], y[train]), X[test], y[test]) for train, test in folds]
    log_proba = np.concatenate([fit.predict_log_proba(test) for fit, test, _ in fits])
    expected = scores(log_proba, np.concatenate([truth for _, _, truth in fits]), ["p", "q"])
    table = compare_folds(nb, X, y, folds)
    assert table.loc["weighted", "log_loss"] == pytest.approx(expected["log_loss"], rel=1e-12)
    assert table.loc["predictive", "log_evidence"] == CategoricalNB().fit(X, y).log_evidence_
    pd.testing.assert_frame_equal(compare_fitted(clone(nb).fit(X, y), fits), table)


def test_priors_of_weighted_terms_need_alpha_of_the_estimator():
    X, y = levels(20)
    message = r"PoissonNB has no concentration `alpha`.*baselines=\[PoissonNB\(prior="
    refused(message, compare_estimates, WeightedNB(PoissonNB()), [[1], [2]], [0, 1], [[1]], [0], priors={"L": 1})
    refused("same name in the table, 'weighted'", compare_estimates, WeightedNB(), X, y, X, y, priors={"weighted": 1})
    assert "weighted" in compare_estimates(CategoricalNB(), X, y, X, y, priors={"weighted": 3}).index


def clipped(proba, y):
    return -np.log(np.maximum(proba[np.arange(len(y)), y], 1e-15))


def brier(proba, y):
    return np.sum((proba - np.eye(proba.shape[1])[y]) ** 2, axis=1)


def two_normals(n=90, seed=4):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3 // 2
    return rng.normal(size=(n, 2)) + 0.8 * y[:, None], y


@pytest.mark.parametrize("against", ["mle", "predictive", "logistic"])
def test_differences_are_paired_by_row(against):
    X, y = two_normals()
    train, test = slice(0, 20), slice(20, 84)
    rows = X[train], y[train], X[test], y[test]
    table = compare_estimates(GaussianNB(), *rows, baselines={"logistic": LogisticRegression()}, against=against)
    assert table.loc[against, DIFFERENCES].tolist() == [0, 0, 0, 0]
    nb = GaussianNB().fit(X[train], y[train])
    other = {name: nb.predict_proba(X[test], estimate=name) for name in ("mle", "map", "mean", "predictive")}
    other["logistic"] = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])
    for name, proba in other.items():
        for title, score in (("brier", brier), ("log_loss", clipped)):
            difference = score(proba, y[test]) - score(other[against], y[test])
            assert table.loc[name, f"{title}_difference"] == pytest.approx(difference.mean(), rel=1e-9)
            error = np.sqrt(np.sum((difference - difference.mean()) ** 2) / (64 * 63))
            assert table.loc[name, f"{title}_difference_se"] == pytest.approx(error, rel=1e-9)


def test_differences_are_from_a_row_that_there_is():
    X, y = two_normals()
    for compare in (partial(compare_estimates, repeats=2), partial(compare_folds, folds=[])):
        said = r"against='weighted' is not a name in the table; choose from \('mle',"
        refused(said, compare, GaussianNB(), X, y, against="weighted")


@pytest.mark.parametrize("against", ["mle", "predictive"])
def test_repeats_are_the_corrected_resampled_t(against):
    X, y = two_normals()
    baselines, settings = [LogisticRegression()], {"repeats": 3, "test_size": 0.3, "seed": 5}
    table = compare_estimates(GaussianNB(), X, y, baselines=baselines, **settings, against=against)
    splits = stratified_splits(y, 3, 0.3, 5)
    found = {name: [] for name in ("mle", "predictive", "LogisticRegression()")}
    evidence = []
    for train, test in splits:
        nb = GaussianNB().fit(X[train], y[train])
        proba = {name: nb.predict_proba(X[test], estimate=name) for name in ("mle", "predictive")}
        proba["LogisticRegression()"] = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])
        evidence.append(nb.log_evidence_)
        for name, p in proba.items():
            found[name].append((brier(p, y[test]).mean(), clipped(p, y[test]).mean(), np.mean(p.argmax(1) == y[test])))
    assert table.loc["predictive", "log_evidence"] == pytest.approx(np.mean(evidence))
    for name, rows in found.items():
        mean = np.mean(rows, axis=0)
        assert table.loc[name, ["brier", "log_loss_clipped", "accuracy"]].tolist() == pytest.approx(mean, rel=1e-9)
        for k, title in enumerate(("brier", "log_loss")):
            d = np.array([a[k] - b[k] for a, b in zip(rows, found[against], strict=True)])
            assert table.loc[name, f"{title}_difference"] == pytest.approx(d.mean(), rel=1e-9, abs=1e-15)
            # Of 60 and 30 rows three tenths are tested: 27 of 90.
            error = np.sqrt((1 / 3 + 27 / 63) * np.sum((d - d.mean()) ** 2) / 2)
            assert table.loc[name, f"{title}_difference_se"] == pytest.approx(error, rel=1e-9, abs=1e-15)


@pytest.mark.filterwarnings("ignore:.*levels that the model does not know")
def test_what_does_not_coincide_in_every_split_is_not_the_same():
    """If "rare" is not among the fitted rows there is one level, and all estimates agree."""
    X, y = np.array([["often"]] * 9 + [["rare"]]), np.arange(10) % 2
    splits = stratified_splits(y, 8, 0.3, 1)
    assert {9 in train for train, _ in splits} == {True, False}
    table = compare_estimates(CategoricalNB(categories="auto"), X, y, repeats=8, seed=1)
    assert table["same_as"].tolist() == ["", "mle", "", "mean"]


def test_unknown_levels_are_warned_of_once():
    X, y = np.array([[f"level {i}"] for i in range(20)]), np.arange(20) % 2
    with pytest.warns(UserWarning, match="levels") as caught:
        compare_estimates(CategoricalNB(), X, y, repeats=4)
    assert len(caught) == 1


def test_splits_are_stratified_and_reproducible():
    y = np.array(["a"] * 50 + ["b"] * 7 + ["c"] * 2)
    splits = stratified_splits(y, 20, 0.3, 9)
    for train, test in splits:
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(59))
        assert [np.sum(y[test] == c) for c in "abc"] == [15, 2, 1]
    assert len({tuple(test) for _, test in splits}) == 20
    again = stratified_splits(y.tolist(), 20, 0.3, 9)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(splits, again, strict=True))
    assert {tuple(test) for _, test in stratified_splits(y, 20, 0.3, 8)} != {tuple(test) for _, test in splits}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either both X_test and y_test, or repeats"),
        ({"X_test": [[0.0]], "y_test": [0], "repeats": 3}, "either both X_test and y_test, or repeats"),
        ({"X_test": [[0.0]]}, "either both X_test and y_test, or repeats"),
        ({"repeats": 1}, "repeats=1 must be"),
        ({"repeats": 2.5}, "repeats=2.5 must be"),
        ({"repeats": 3, "test_size": 30}, "test_size=30 must be between 0 and 1"),
    ],
)
def test_rows_to_test_are_given_in_one_way(arguments, message):
    refused(message, compare_estimates, GaussianNB(), [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], **arguments)


def test_a_class_of_one_row_cannot_be_split():
    with pytest.raises(ValueError, match="class 'q' has 1 row; it needs 2"):
        compare_estimates(GaussianNB(), [[0.0], [1.0], [2.0]], ["p", "p", "q"], repeats=3)


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 60), st.integers(1, 20))
def test_reliability_is_the_table_of_bins(seed, n_classes, n_rows, bins):
    log_proba, y = random_predictions(seed, n_classes, n_rows, 2.0)
    table = reliability(log_proba, y, np.arange(n_classes), bins)
    assert list(table.columns) == ["lower", "upper", "count", "confidence", "accuracy"]
    top, correct = np.exp(log_proba).max(axis=1), log_proba.argmax(axis=1) == y
    expected = []
    for k in range(bins):
        inside = (top > k / bins) & (top <= (k + 1) / bins)
        if inside.any():
            expected.append((k / bins, (k + 1) / bins, inside.sum(), top[inside].mean(), correct[inside].mean()))
    assert table.to_numpy() == pytest.approx(np.array(expected))
    assert table["count"].sum() == n_rows
    if bins == 15:
        ece = scores(log_proba, y, np.arange(n_classes))["ece"]
        assert np.sum(table["count"] * abs(table["confidence"] - table["accuracy"])) / n_rows == pytest.approx(ece)


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 60), st.integers(1, 20), st.booleans())
def test_reliability_in_quantile_bins_is_scikit_learns_calibration_curve(seed, n_classes, n_rows, bins, tied):
    log_proba, y = random_predictions(seed, n_classes, n_rows, 2.0)
    if tied:
        log_proba = log_proba[np.arange(n_rows) // 3]
    table = reliability(log_proba, y, np.arange(n_classes), bins, strategy="quantile")
    top, correct = np.exp(log_proba).max(axis=1), log_proba.argmax(axis=1) == y
    accuracy, confidence = calibration_curve(correct, top, pos_label=True, n_bins=bins, strategy="quantile")
    assert table["accuracy"].to_numpy() == pytest.approx(accuracy)
    assert table["confidence"].to_numpy() == pytest.approx(confidence)
    inside = (top > table[["lower"]].to_numpy()) & (top <= table[["upper"]].to_numpy())
    inside[0] |= top == top.min()
    assert table["count"].to_list() == inside.sum(axis=1).tolist()
    assert table["count"].sum() == n_rows
    if not tied:
        assert table["count"].max() - table["count"].min() <= 2


def test_reliability_of_undefined_rows_and_bad_bins():
    log_proba = np.log([[0.9, 0.1], [math.nan, math.nan], [math.nan, math.nan]])
    table = reliability(log_proba, [0, 0, 1], [0, 1], 2, predicted=[0, 0, 0])
    assert table.to_numpy().tolist() == [[0, 0.5, 2, 0.5, 0.5], [0.5, 1, 1, pytest.approx(0.9), 1]]
    assert reliability(log_proba, [0, 0, 1], [0, 1], 2)["accuracy"].tolist() == [0, 1]
    for bins in (0, 2.5, True):
        refused("bins=", reliability, log_proba, [0, 0, 1], [0, 1], bins)
    refused("strategy='equal'", reliability, log_proba, [0, 0, 1], [0, 1], strategy="equal")


def test_folds_are_pooled():
    X, y = levels(64)
    X, categories = pd.DataFrame(X), [[0, 1], [0, 1, 2], [0, 1, 2, 3]]
    splitter = StratifiedKFold(2, shuffle=True, random_state=3)
    nb = CategoricalNB(categories=categories)
    table = compare_folds(nb, X, y, splitter.split(X, y), priors={"Jeffreys": 0.5})
    for name, alpha in (("predictive", 1.0), ("Jeffreys", 0.5)):
        mine = CategoricalNB(alpha=alpha, categories=categories)
        proba = cross_val_predict(mine, X, y, cv=splitter, method="predict_proba")
        assert table.loc[name, "log_loss"] == pytest.approx(metrics.log_loss(y, proba))
        assert table.loc[name, "accuracy"] == np.mean(np.array(["p", "q"])[proba.argmax(axis=1)] == y)
        assert table.loc[name, "log_evidence"] == mine.fit(X, y).log_evidence_


@pytest.mark.slow("compiles kernels of its own")
def test_a_class_that_a_fold_lacks_is_impossible():
    X = np.array([[0.0], [0.2], [0.1], [1.0], [1.2], [9.0]])
    y = np.array(["a", "a", "a", "b", "b", "c"])
    folds = [(np.array([0, 1, 3, 4]), np.array([2, 5])), (np.array([0, 2, 3, 5]), np.array([1, 4]))]
    table = compare_folds(PoissonNB(), X, y, folds)
    assert (table["impossible_rows"] == 1).all()
    frame = compare_folds(PoissonNB(), pd.DataFrame(X), y, folds)
    pd.testing.assert_frame_equal(table, frame)


def test_probabilities_in_place_of_their_logarithms_are_refused():
    proba = np.array([[0.9, 0.1], [0.4, 0.6]])
    for score in (scores, reliability):
        with pytest.raises(ValueError, match=r"log_proba of row 0 and class 'a' is 0.9.*Pass what predict_log_proba"):
            score(proba, ["a", "b"], ["a", "b"])
        score(np.log(proba), ["a", "b"], ["a", "b"])
        refused("the label of row 1 is missing", score, np.log(proba), ["a", None], ["a", "b"])


def test_a_missing_label_of_a_test_row_is_refused():
    X, y = load_iris(return_X_y=True)
    test = y[1::2].astype(float)
    test[3] = np.nan
    with pytest.raises(ValueError, match=r"y_test contains NaN: the label of row 3 is missing"):
        compare_estimates(GaussianNB(), X[::2], y[::2], X[1::2], test)


def test_labels_that_are_numbers_are_scored_as_they_are():
    found = scores(np.log([[0.9, 0.1], [0.4, 0.6]]), [0.5, 2.5], [0.5, 1.5])
    assert found["accuracy"] == 0.5
    assert found["impossible_rows"] == 1


def test_columns_of_a_data_frame_are_matched_by_name():
    log_proba, y = random_predictions(0, 3, 40, 1.0)
    names, order = np.array(["ash", "elm", "oak"]), [2, 0, 1]
    table = pd.DataFrame(log_proba[:, order], columns=names[order])
    found = scores(table, names[y], names)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(names[y], np.exp(log_proba), labels=names))
    assert found == scores(log_proba, names[y], names)
    pd.testing.assert_frame_equal(reliability(table, names[y], names), reliability(log_proba, names[y], names))
    assert found == scores(pd.DataFrame(log_proba), names[y], names)  # Columns without names have positions.
