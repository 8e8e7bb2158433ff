"""Weighted classifiers on real tables: mean held-out log loss over three stratified folds."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import StratifiedKFold

import bayesnb as bnb
from tests import data

pytestmark = pytest.mark.slow("folds of real tables")


def log_loss(nb: Any, X: Any, y: np.ndarray) -> float:
    """Mean of -log P(label | row) over the held-out rows of three folds."""
    losses = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        log_proba = nb.fit(X[train], y[train]).predict_log_proba(X[test])
        losses.append(-log_proba[np.arange(len(test)), np.searchsorted(nb.classes_, y[test])])
    return float(np.concatenate(losses).mean())


@pytest.mark.parametrize(
    ("name", "plain", "weighted"), [("vote", 0.624, 0.115), ("breast.cancer", 0.616, 0.56), ("car", 0.339, 0.27)]
)
def test_tables_of_levels(name, plain, weighted):
    table = data.arff(name)
    nb = bnb.CategoricalNB(categories=table.levels, missing_values="?")
    assert log_loss(nb, table.X, table.y) == pytest.approx(plain, abs=0.002)
    assert log_loss(bnb.WeightedNB(nb), table.X, table.y) <= weighted


def test_tables_of_numbers():
    X, y = load_breast_cancer(return_X_y=True)
    assert log_loss(bnb.WeightedNB(bnb.GaussianNB()), X, y) <= log_loss(bnb.GaussianNB(), X, y) / 2
    X, y = load_wine(return_X_y=True)
    assert log_loss(bnb.WeightedNB(bnb.GaussianNB()), X, y) <= log_loss(bnb.GaussianNB(), X, y) + 0.01


def test_newsgroups_by_date():
    """Two numbers, a temperature and how it falls with the length."""
    X, y = data.newsgroups("train")
    X_test, y_test = data.newsgroups("test")
    nb = bnb.WeightedNB(bnb.MultinomialNB(alpha=0.12)).fit(X, y)
    right = np.arange(len(y_test)), np.searchsorted(nb.classes_, y_test)
    assert -nb.estimator_.predict_log_proba(X_test)[right].mean() == pytest.approx(1.858, abs=0.001)
    assert -nb.predict_log_proba(X_test)[right].mean() <= 0.19
    assert nb.score(X_test, y_test) >= 0.945
