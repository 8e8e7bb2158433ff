"""Structures on real data against numbers of independent calculations (the table of oracles)."""

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import bayesnb as bnb
from bayesnb import networks as structure
from tests.data import arff
from tests.strategies import variants

MAKE = {"TAN": bnb.TAN, "AODE": bnb.AODE}


def make(name, data, **options):
    return MAKE[name](categories=data.levels, missing_values="?", **options)


def test_mutual_information_of_car():
    data = arff("car")
    nb = make("AODE", data).fit(data.X, data.y)
    columns, rows = nb.encoding_.blocks[0].base, nb.fitted_.encode(data.X)[0][0].base
    label = np.searchsorted(nb.classes_, data.y).astype(np.int32)
    counts = structure.count_level_pairs(columns, rows, label, np.ones(len(data.y)), len(nb.classes_))
    found = structure.mutual_information(counts, columns.sizes())
    at = [data.names.index(name) for name in ("buying", "maint")]
    assert found[at[0], at[1]] == pytest.approx(0.07199921, abs=5e-9)


@variants(("class_alpha", "expected"), [(1.0, 0.793434), ("levels", 0.79259)])
def test_aode_of_a_row_of_car(class_alpha, expected):
    data = arff("car")
    nb = make("AODE", data, class_alpha=class_alpha).fit(data.X, data.y)
    found = nb.predict_proba(data.X[11:12])[0, list(nb.classes_).index("unacc")]
    assert found == pytest.approx(expected, abs=5e-6)


@pytest.mark.slow("folds of real tables")
@pytest.mark.parametrize(
    ("name", "data", "repeats", "accuracy", "loss"),
    [
        ("TAN", "car", 10, 0.9421, 0.207),
        ("TAN", "vote", 4, 0.9467, 0.147),  # each fold has a tree of its own, and kernels for its missing cells
        ("TAN", "mushroom", 1, 0.9996, None),
        ("TAN", "breast.cancer", 10, 0.7027, None),
        ("AODE", "car", 10, 0.9153, 0.297),
        ("AODE", "vote", 10, 0.9430, 0.146),
        ("AODE", "mushroom", 1, 0.9995, None),
        ("AODE", "breast.cancer", 10, 0.7303, None),
    ],
)
def test_ten_fold_cross_validation(name, data, repeats, accuracy, loss):
    table = arff(data)
    accuracies, losses = [], []
    for seed in range(repeats):
        proba = np.zeros((len(table.y), len(table.classes)))
        for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(table.X, table.y):
            proba[test] = make(name, table).fit(table.X[train], table.y[train]).predict_proba(table.X[test])
        classes = np.unique(table.y)
        accuracies.append(np.mean(classes[proba.argmax(axis=1)] == table.y))
        losses.append(log_loss(table.y, proba, labels=classes))
    print(f"{name} {data}: accuracy {np.mean(accuracies):.4f}, log loss {np.mean(losses):.4f}")
    assert np.mean(accuracies) == pytest.approx(accuracy, abs=0.006)
    if loss is not None:
        assert np.mean(losses) == pytest.approx(loss, abs=0.02)
