"""Classifiers that benchmarks.quality compares: bayesnb's, and common alternatives."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sklearn.naive_bayes as sk
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, OneHotEncoder, StandardScaler

import bayesnb as bnb
from benchmarks import khiops
from benchmarks.tables import MISSING, Fold, Table

STRUCTURES: dict[str, Callable[[], Any]] = {
    "TAN": lambda: bnb.TAN("evidence", missing_values=MISSING, numbers="binned"),
    "AODE": lambda: bnb.AODE(missing_values=MISSING, numbers="binned"),
    "KDB": lambda: bnb.KDB(missing_values=MISSING),
    "trees": lambda: bnb.TreeAveragedNB(missing_values=MISSING),
}


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


def of_numbers(numbers: str) -> Callable[[Table], Any]:
    """Return naive Bayes with other densities of numbers, by the names of `MixedNB`."""

    def make(table: Table) -> Any:
        if table.kind not in ("numbers", "mixed"):
            raise Left("the table has no numeric columns")
        return bnb.MixedNB(numbers=numbers, missing_values=MISSING)

    return make


def default(table: Table) -> Any:
    """Return `WeightedNB()`, with cells marked "?" as missing."""
    if table.kind == "words":
        return bnb.WeightedNB(bnb.MultinomialNB(alpha=table.alpha))
    return bnb.WeightedNB(bnb.KDB(gaussian="dtype", max_features=None, missing_values=MISSING))


def structure(name: str, table: Table) -> Any:
    if table.kind == "words":
        raise Left("structures take no sparse counts")
    return STRUCTURES[name]()


def sklearn_naive(table: Table) -> Any:
    """Return scikit-learn's naive Bayes for the kind of table; "?" is a level."""
    if table.kind == "mixed":
        raise Left("scikit-learn has no naive Bayes for mixed columns")
    if table.kind == "words":
        return sk.MultinomialNB(alpha=table.alpha)
    if table.kind == "numbers":
        return sk.GaussianNB()
    levels = [len(dtype.categories) for dtype in table.X.dtypes]
    return make_pipeline(FunctionTransformer(_codes), sk.CategoricalNB(min_categories=levels))


def calibrated(table: Table) -> Any:
    return CalibratedClassifierCV(sklearn_naive(table))


def logistic(table: Table) -> Any:
    """One-hot levels, of which "?" is one, and standardised numbers; of words whether they occur.

    Of counts, scaled or not, their logarithms, two kinds of tf-idf and presence, presence had the least held-out log
    loss on both tables of words.
    """
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    return make_pipeline(Binarizer() if table.kind == "words" else columns, LogisticRegression(max_iter=1000))


def boosting(table: Table) -> Any:
    """Select categorical columns by their dtype; "?" is a level."""
    if table.kind == "words":
        raise Left("gradient boosting takes no sparse counts")
    return HistGradientBoostingClassifier(random_state=0)


def ebm(table: Table) -> Any:
    """Return the explainable boosting machine (Nori et al. 2019) with its defaults; "?" is a level."""
    if table.kind == "words":
        raise Left("the explainable boosting machine takes no sparse counts")
    kinds = ["nominal" if isinstance(dtype, pd.CategoricalDtype) else "continuous" for dtype in table.X.dtypes]
    return _installed("interpret.glassbox", "interpret-core").ExplainableBoostingClassifier(
        feature_types=kinds, random_state=0, n_jobs=1
    )


def lightgbm(table: Table) -> Any:
    """Return LightGBM with its defaults; columns are categorical by their dtype, and "?" is a level."""
    if table.kind == "words":
        raise Left("LightGBM is given no sparse counts")
    return _installed("lightgbm", "lightgbm").LGBMClassifier(random_state=0, verbose=-1)


def _installed(module: str, distribution: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise Left(f"{distribution} is not installed") from None


def _codes(X: pd.DataFrame) -> pd.DataFrame:
    return X.apply(lambda column: column.cat.codes)


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


def _weighted(make: Callable[[Table], Any]) -> Method:
    def weighted(table: Table) -> Any:
        inner = make(table)
        if not hasattr(bnb, "WeightedNB"):
            raise Left("this bayesnb has no WeightedNB")
        return bnb.WeightedNB(inner)

    return _estimator(weighted)


def _structured(name: str) -> Callable[[Table], Any]:
    return lambda table: structure(name, table)


def _khiops(table: Table, fold: Fold) -> Prediction:
    if reason := khiops.absence():
        raise Left(reason)
    if table.kind == "words":
        raise Left("Khiops takes no sparse counts")
    return Prediction(*khiops.predict(fold.X, fold.y, fold.X_test))


METHODS: dict[str, Method] = {
    "default": _estimator(default),
    "naive": _estimator(naive),
    "naive+w": _weighted(naive),
    "binned": _estimator(of_numbers("binned")),
    "binned+w": _weighted(of_numbers("binned")),
    "auto": _estimator(of_numbers("auto")),
    "auto+w": _weighted(of_numbers("auto")),
    **{
        key: make(_structured(name))
        for name in STRUCTURES
        for key, make in ((name, _estimator), (f"{name}+w", _weighted))
    },
    "sklearn": _estimator(sklearn_naive),
    "calibrated": _estimator(calibrated),
    "logistic": _estimator(logistic),
    "boosting": _estimator(boosting),
    "lightgbm": _estimator(lightgbm),
    "ebm": _estimator(ebm),
    "khiops": _khiops,
}
"""Methods by their short names; +w has weights."""

OF_SAMPLES = ("default", "naive", "auto", "auto+w", "KDB", "logistic", "boosting", "lightgbm", "ebm", "khiops")
"""Methods that are also fitted to small samples."""
