"""Classifiers that benchmarks.quality compares: bayesnb's, and common alternatives."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, OneHotEncoder, StandardScaler

import bayesnb as bnb
from benchmarks.tables import MISSING, Fold, Table

STRUCTURES: dict[str, Callable[[], Any]] = {
    "TAN": lambda: bnb.TAN("evidence", gaussian="dtype", missing_values=MISSING, numbers="binned"),
    "AODE": lambda: bnb.AODE(gaussian="dtype", missing_values=MISSING, numbers="binned"),
    "trees": lambda: bnb.TreeAveragedNB(gaussian="dtype", missing_values=MISSING),
    "KDB": lambda: bnb.KDB(gaussian="dtype", missing_values=MISSING),
}
TREES = 500


class Left(Exception):
    """Reason why a method is not run on a table."""


class Prediction(NamedTuple):
    """Log probabilities of the rows to predict, (N, C), in the order of `classes`; seconds of fit and predict."""

    log_proba: np.ndarray
    classes: np.ndarray
    seconds: float


Method = Callable[[Table, Fold], Prediction]


def naive(table: Table) -> Any:
    """Return bayesnb's classifier for the kind of table, with normal densities of numbers."""
    return {
        "categories": lambda: bnb.CategoricalNB(missing_values=MISSING),
        "numbers": lambda: bnb.GaussianNB(),
        "mixed": lambda: bnb.MixedNB(numbers="gaussian", missing_values=MISSING),
        "words": lambda: bnb.MultinomialNB(alpha=table.alpha),
    }[table.kind]()


def default(table: Table) -> Any:
    """Return `WeightedNB()`, with cells marked "?" as missing."""
    return bnb.WeightedNB(_dependent(table))


def experts(table: Table) -> Any:
    """Return `WeightedNB(experts="auto")`, with cells marked "?" as missing."""
    if "experts" not in inspect.signature(bnb.WeightedNB).parameters:
        raise Left("WeightedNB of this version has no experts")
    _require_columns(table)
    return bnb.WeightedNB(_dependent(table), experts="auto")


def _dependent(table: Table) -> Any:
    """Return what `WeightedNB()` weights, with cells marked "?" as missing."""
    if table.kind == "words":
        return bnb.MultinomialNB(alpha=table.alpha)
    return bnb.KDB(gaussian="dtype", max_features=None, missing_values=MISSING)


def structure(name: str, table: Table) -> Any:
    _require_columns(table)
    return STRUCTURES[name]()


def weighted_structure(name: str, table: Table) -> Any:
    return bnb.WeightedNB(structure(name, table))


def logistic(table: Table) -> Any:
    """One-hot levels, of which "?" is one, and standardised numbers, of which missing ones are medians.

    Of words: whether they occur. Of counts, scaled or not, their logarithms, two kinds of tf-idf and presence, presence
    had the least held-out log loss on both tables of words.
    """
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer((_one_hot(), CATEGORICAL), (numbers, NUMERIC))
    return make_pipeline(Binarizer() if table.kind == "words" else columns, LogisticRegression(max_iter=1000))


CATEGORICAL = make_column_selector(dtype_include="category")
NUMERIC = make_column_selector(dtype_include="number")


def _one_hot() -> OneHotEncoder:
    return OneHotEncoder(handle_unknown="ignore")


def boosting(table: Table) -> Any:
    """Select categorical columns by their dtype; "?" is a level."""
    _require_columns(table)
    return HistGradientBoostingClassifier(random_state=0)


def slower(table: Table) -> Any:
    """Return boosting in up to 1,000 small steps, stopped by a tenth of the training rows."""
    _require_columns(table)
    return HistGradientBoostingClassifier(learning_rate=0.05, max_iter=1000, early_stopping=True, random_state=0)


def lightgbm(table: Table) -> Any:
    """Return LightGBM with its defaults; columns are categorical by their dtype, and "?" is a level."""
    _require_columns(table)
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        raise Left("lightgbm is not installed") from None
    return LGBMClassifier(random_state=0, verbose=-1)


def forest(table: Table) -> Any:
    """Return a random forest on one-hot levels, of which "?" is one, and numbers, of which some may be missing.

    Most forests give probability 0 to some labels that occur, which is an infinite log loss. The probabilities are
    therefore averaged with those of one more tree that gives all classes the same probability.
    """
    _require_columns(table)
    columns = make_column_transformer((_one_hot(), CATEGORICAL), ("passthrough", NUMERIC), sparse_threshold=0)
    return make_pipeline(columns, _SmoothedForest(TREES, random_state=0))


class _SmoothedForest(RandomForestClassifier):
    def predict_proba(self, X: Any) -> np.ndarray:
        return (self.n_estimators * super().predict_proba(X) + 1 / len(self.classes_)) / (self.n_estimators + 1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        return np.log(self.predict_proba(X))


def _require_columns(table: Table) -> None:
    if table.kind == "words":
        raise Left("not for sparse counts of words")


def _estimator(make: Callable[[Table], Any]) -> Method:
    def predict(table: Table, fold: Fold) -> Prediction:
        classifier = make(table)
        start = time.perf_counter()
        classifier.fit(fold.X, fold.y)
        if hasattr(classifier, "predict_log_proba"):  # may be finite where a probability is 0 in floating point
            log_proba = classifier.predict_log_proba(fold.X_test)
        else:
            with np.errstate(divide="ignore"):
                log_proba = np.log(classifier.predict_proba(fold.X_test))
        return Prediction(log_proba, classifier.classes_, time.perf_counter() - start)

    return predict


METHODS: dict[str, Method] = {
    make.__name__: _estimator(make) for make in (default, experts, naive, logistic, forest, boosting, slower, lightgbm)
}
"""Methods by their short names."""
OF_STRUCTURES: dict[str, Method] = {
    **{name: _estimator(partial(structure, name)) for name in STRUCTURES},
    **{f"{name}+w": _estimator(partial(weighted_structure, name)) for name in STRUCTURES if name != "KDB"},
}
"""Structures by their short names; +w has weights. `default` is a weighted KDB, with a chosen number of parents."""
OF_SMALL = ("default", "experts", "naive", "logistic", "forest", "boosting", "lightgbm")
"""Methods that are fitted to small samples; slower boosting sets aside rows."""
