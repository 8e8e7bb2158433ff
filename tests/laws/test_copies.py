"""Copies of a row are one row of more weight, and stated losses hold where rows are copies or come in groups."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import bayesnb as bnb

EACH = [
    bnb.MixedNB(),
    bnb.KDB(gaussian="dtype"),
    bnb.WeightedNB(bnb.GaussianNB()),
    pytest.param(bnb.WeightedNB(), marks=pytest.mark.slow("fits structures to halves")),
    pytest.param(bnb.WeightedNB(bnb.TAN(numbers="binned")), marks=pytest.mark.slow("fits structures to halves")),
]


def draw(rng: np.random.Generator, n: int, share: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Ten columns, three of them informative, one of them skewed, and one of four levels."""
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 10))
    X[:, :3] += 0.45 * y[:, None]
    X[:, 3], X[:, 4] = np.exp(X[:, 3]), rng.integers(0, 4, n)
    return X, y


def fitted(nb, *rows, **groups):
    with warnings.catch_warnings(action="ignore", category=bnb.CopiedRowsWarning):
        return clone(nb).fit(*rows, **groups)


def loss(nb, X: np.ndarray, y: np.ndarray) -> float:
    return -float(nb.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(nb.classes_, y)].mean())


@pytest.mark.parametrize("nb", EACH, ids=repr)
@pytest.mark.parametrize("k", [2, 5])
def test_copies_are_one_row_of_more_weight(nb, k):
    """Exactly, where distinct rows first occur in the same order.

    The number of copies may differ from row to row, but for cells of numbers, which are quantiles of the rows.
    """
    rng = np.random.default_rng(0)
    X, y = draw(rng, 200)
    asked, _ = draw(rng, 50)
    has_cells = nb.__class__ is not bnb.WeightedNB or not isinstance(nb.estimator, bnb.GaussianNB)
    for times in (np.full(200, k), 1 + rng.integers(0, k, 200))[: 1 if has_cells else 2]:
        by_weight = fitted(nb, X, y, times.astype(float))
        rows = [np.repeat(np.arange(200), times)]
        rows.append(np.concatenate([np.flatnonzero(times > i) for i in range(k)]))
        for copies in (fitted(nb, X[i], y[i]) for i in rows):
            np.testing.assert_allclose(copies.predict_proba(asked), by_weight.predict_proba(asked), rtol=1e-9)
            if isinstance(nb, bnb.WeightedNB):
                assert copies.expected_log_loss_ == pytest.approx(by_weight.expected_log_loss_, rel=1e-9)


@pytest.mark.slow("fits weights a dozen times")
def test_in_another_order_copies_state_the_same_within_noise():
    rng = np.random.default_rng(0)
    (X, y), nb = draw(rng, 200), bnb.WeightedNB(bnb.GaussianNB())
    stated = []
    for _ in range(8):
        once, twice = rng.permutation(200), rng.permutation(400) % 200
        nbs = fitted(nb, X[once], y[once], np.full(200, 2.0)), fitted(nb, X[twice], y[twice])
        stated.append([one.expected_log_loss_ for one in nbs])
    difference = np.subtract(*np.transpose(stated))
    assert abs(difference.mean()) < 3 * np.std(difference, ddof=1) / np.sqrt(8)


def oversampled(rng: np.random.Generator, nb) -> tuple[float, float]:
    """Stated and true loss where a tenth of 500 rows is oversampled to half of the rows."""
    X, y = draw(rng, 500, 0.1)
    rare = np.flatnonzero(y)
    rows = np.append(np.arange(500), rng.choice(rare, 500 - 2 * len(rare)))
    nb = fitted(nb, X[rows], y[rows])
    return nb.expected_log_loss_, loss(nb, *draw(rng, 4000))


def twice(rng: np.random.Generator, nb) -> tuple[float, float]:
    """Stated and true loss where each of 500 rows is there twice, in random order."""
    X, y = draw(rng, 500)
    rows = rng.permutation(1000) % 500
    nb = fitted(nb, X[rows], y[rows])
    return nb.expected_log_loss_, loss(nb, *draw(rng, 4000))


def grouped(rng: np.random.Generator, nb) -> tuple[float, float]:
    """Stated loss with 100 groups of 20 rows that resemble each other in rows and labels, and loss on new groups."""

    def patients(n: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        level = rng.normal(size=(n, 10))
        risk, group = level[:, 0] + 2 * rng.normal(size=n), np.repeat(np.arange(n), size)
        X = level[group] + 0.3 * rng.normal(size=(n * size, 10))
        return X, (rng.random(n * size) < 1 / (1 + np.exp(-risk[group]))).astype(int), group

    X, y, group = patients(100, 20)
    nb = fitted(nb, X, y, groups=group)
    return nb.expected_log_loss_, loss(nb, *patients(1000, 4)[:2])


def noise_in_groups(rng: np.random.Generator, nb) -> tuple[float, float]:
    """Stated and true loss where labels are those of the group, and columns tell the group but no label."""
    y, group = rng.integers(0, 2, 60), np.repeat(np.arange(60), 4)
    X = rng.normal(size=(60, 8))[group] + 0.1 * rng.normal(size=(240, 8))
    nb = fitted(nb, X, y[group], groups=group)
    return nb.expected_log_loss_, loss(nb, rng.normal(size=(4000, 8)), np.arange(4000) % 2)


@pytest.mark.slow("fits weights to a dozen data sets")
@pytest.mark.parametrize(("nb", "n_sets"), [(bnb.WeightedNB(), 5), (bnb.WeightedNB(bnb.MixedNB()), 12)], ids=repr)
@pytest.mark.parametrize("measure", [oversampled, twice, grouped, noise_in_groups], ids=lambda f: f.__name__)
def test_the_stated_loss_is_not_below_the_true_one(nb, n_sets, measure):
    """Law 10, on average over data sets, to two standard errors; a second law bounds the loss by that of no model."""
    losses = [measure(np.random.default_rng([7, seed]), nb) for seed in range(n_sets)]
    difference = np.subtract(*np.transpose(losses))
    assert difference.mean() >= -2 * np.std(difference, ddof=1) / np.sqrt(len(losses))
    assert np.mean([true for _, true in losses]) < np.log(2) + 0.05
