"""Logistic regression of scikit-learn, a baseline for the scores of naive Bayes on the same held-out rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bayesnb.cli.fitting import Fold, InMemory, Streamed

LOGISTIC = "logistic regression"
_MOST_CELLS = 20_000_000


def fit_logistic(
    rows: InMemory | Streamed, folds: Sequence[Fold], kinds: Mapping[str, str]
) -> tuple[dict[str, list[Pipeline]], str]:
    """Fit logistic regression to the training rows of each fold.

    Returns
    -------
    dict {LOGISTIC: list of Pipeline}
        One fitted classifier for each fold; empty if there is none.
    str
        Reason why there is none: the rows are not in memory, cells times classes are more than 20 million, or
        scikit-learn refuses the rows.
    """
    if isinstance(rows, Streamed):
        return {}, "No logistic regression. The rows do not fit into memory."
    X, y = rows.X, rows.y
    if (cells := X.size * len(np.unique(y))) > _MOST_CELLS:
        return {}, f"No logistic regression. Rows × features × classes are {cells:,}; the limit is {_MOST_CELLS:,}."
    trained = [np.setdiff1d(np.arange(len(y)), fold.rows) for fold in folds]
    try:
        return {LOGISTIC: [_pipeline(kinds).fit(X.iloc[train], y[train]) for train in trained]}, ""
    except ValueError as error:
        return {}, f"No logistic regression. {error}"


def _pipeline(kinds: Mapping[str, str]) -> Pipeline:
    """Make an unfitted logistic regression on standardized numbers and on indicators of levels, missing ones included.

    Missing numbers become the mean of their column.
    """
    levels = [name for name, kind in kinds.items() if kind == "categorical"]
    numbers = [name for name in kinds if name not in levels]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), levels),
        (make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()), numbers),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000))
