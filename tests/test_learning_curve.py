"""The curve against a naive loop of fits on the same splits."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from bayesnb import GaussianNB, MultinomialNB
from bayesnb.evaluation import learning_curve, nested_splits, scores
from tests.raises import refused
from tests.test_evaluation import COLUMNS


def words(n=60):
    rng = np.random.default_rng(3)
    y = np.array(["ham", "spam"])[np.arange(n) % 2]
    return rng.poisson(0.4 + (y == "spam")[:, None] * [0, 0.5, 0, 1, 0.2]), y


def naive(make, X, y, sizes, repeats, seed):
    """Every fit made anew, every score by `scores`; `make` gives the classifier, its arguments and the name."""
    classes = np.unique(y)
    rows = {}
    for order, test in nested_splits(y, max(sizes), repeats, seed):
        for size in sizes:
            train = order[: len(classes) * size]
            for name, classifier, reading in make(X[train], y[train]):
                log_proba = classifier.predict_log_proba(X[test], **reading)
                predicted = classifier.predict(X[test], **reading)
                rows.setdefault((size, name), []).append(scores(log_proba, y[test], classes, predicted))
    return rows


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.filterwarnings("ignore:.*rows have no class probabilities")
def test_the_curve_is_that_of_a_naive_loop():
    X, y = load_iris(return_X_y=True)
    logistic = LogisticRegression(C=0.5)
    sizes, repeats = (2, 5), 5
    frame = learning_curve(GaussianNB(), X, y, sizes, repeats, seed=1, baselines=[logistic], progress=None)

    def make(X, y):
        nb = GaussianNB().fit(X, y)
        yield from ((name, nb, {"estimate": name}) for name in ("mle", "map", "mean", "predictive"))
        yield repr(logistic), LogisticRegression(C=0.5).fit(X, y), {}

    rows = naive(make, X, y, sizes, repeats, 1)
    assert list(zip(frame["size"], frame["estimate"], strict=True)) == list(rows)
    assert (frame["repeats"] == repeats).all()
    for (_, mine), (key, expected) in zip(frame.iterrows(), rows.items(), strict=True):
        for score in COLUMNS:
            mean = np.mean([s[score] for s in expected])
            mean = math.inf if any(s[score] == math.inf for s in expected) else mean
            assert mine[score] == pytest.approx(mean, rel=1e-9, nan_ok=True), (key, score)
        for score in ("brier", "log_loss_clipped"):
            values = np.array([s[score] for s in expected])
            assert mine[f"{score}_se"] == pytest.approx(values.std(ddof=1) / math.sqrt(repeats), rel=1e-7)
        size = key[0]
        d = np.array([a["brier"] - b["brier"] for a, b in zip(expected, rows[size, "mle"], strict=True)])
        error = d.std(ddof=1) / math.sqrt(repeats)
        assert mine["brier_difference"] == pytest.approx(d.mean(), rel=1e-9, abs=1e-12)
        assert mine["brier_difference_se"] == pytest.approx(error, rel=1e-7, abs=1e-12)


@pytest.mark.slow("a second view of what quick tests see")
def test_the_seed_alone_decides():
    X, y = words()
    frames = [learning_curve(MultinomialNB(), X, y, [2, 6], 3, seed, progress=None) for seed in (0, 0, 1)]
    pd.testing.assert_frame_equal(frames[0], frames[1])
    assert not frames[0].equals(frames[2])


def test_splits_are_nested_and_balanced():
    y = np.array(["a"] * 30 + ["b"] * 8 + ["c"] * 50)
    splits = nested_splits(y, 7, 10, 3)
    for order, test in splits:
        assert np.array_equal(np.sort(np.concatenate([order, test])), np.arange(88))
        for n in range(1, 8):
            assert sorted(y[order[: 3 * n]]) == sorted(["a", "b", "c"] * n)
    assert len({tuple(order) for order, _ in splits}) == 10
    # Each row of a class is as likely as any other: 10,000 draws of 7 of 30.
    drawn = np.bincount(np.concatenate([o[0::3] for o, _ in nested_splits(y, 7, 10_000)]), minlength=30)
    assert drawn.sum() == 70_000
    assert drawn / 10_000 == pytest.approx(7 / 30, abs=5 * math.sqrt(7 / 30 * 23 / 30 / 10_000))


@pytest.mark.parametrize("sizes", [[], [0, 3], [3, 3], [5, 3], [2.5], [True], 3.0])
def test_sizes_are_increasing_integers(sizes):
    refused("sizes=", learning_curve, GaussianNB(), *load_iris(return_X_y=True), sizes)


def test_every_class_keeps_a_row_to_test():
    X, y = load_iris(return_X_y=True)
    refused("class 0 has 50 rows; it needs 51, 50 to fit and one to test", learning_curve, GaussianNB(), X, y, [3, 50])
    refused("repeats=1", learning_curve, GaussianNB(), X, y, [3], repeats=1)
    refused("`alpha`", learning_curve, GaussianNB(), X, y, [3], priors={"Laplace": 1})


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            "a" * 30 + "b" * 8,
            "class 'b' has 8 rows; it needs 21, 20 to fit and one to test. Choose fewer rows of each class",
        ),
        ("abcd", "class 'a' has 1 row; it needs 21"),
    ],
)
def test_what_to_do_where_classes_have_too_few_rows(y, message):
    refused(message, nested_splits, list(y), 20, 3)


def test_rows_are_counted_once(monkeypatch):
    counted = []
    original = MultinomialNB.partial_fit
    monkeypatch.setattr(
        MultinomialNB, "partial_fit", lambda self, X, y, **k: counted.append(len(y)) or original(self, X, y, **k)
    )
    monkeypatch.setattr(MultinomialNB, "fit", None)
    X, y = words()
    nb = MultinomialNB(alpha=0.3)
    learning_curve(nb, X, y, [2, 6, 9], 2, priors={"Laplace": 1}, progress=None)
    assert counted == [4, 8, 6] * 2
    assert not hasattr(nb, "statistics_")
