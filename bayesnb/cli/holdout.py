"""Which rows are held out, and the fits to the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from bayesnb._util.progress import progress
from bayesnb.cli.reading import InputError
from bayesnb.estimators.base import NaiveBayesClassifier

if TYPE_CHECKING:
    import pandas as pd

SHARE = 0.3
NONE_HELD_OUT = "No row can be held out: every class needs two rows or more, or a larger --test-size."
_FOLDS = 5
_FEW_ROWS = 200


@dataclass(frozen=True)
class Settings:
    """What the flags say; `test_size` None lets the number of rows decide how rows are held out."""

    test_size: float | None = None
    seed: int = 0
    alpha: float = 1.0
    class_alpha: float = 1.0
    prob: float = 0.9
    mixed: bool = False


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows held out, their numbers in the data set, and the classifier fitted to the others."""

    nb: NaiveBayesClassifier
    rows: np.ndarray
    X: pd.DataFrame
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class Fits:
    """What was fitted.

    Parameters
    ----------
    nb : classifier
        Fitted to all rows.
    folds : list of Fold
    said : str
        How rows were held out.
    X, y
        The rows that are in memory: all, or those held out.
    """

    nb: NaiveBayesClassifier
    folds: list[Fold]
    said: str
    X: pd.DataFrame
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class InMemory:
    """Rows that are all in memory, X (N, F) and y (N,)."""

    X: pd.DataFrame
    y: np.ndarray

    def fit(self, nb: NaiveBayesClassifier, settings: Settings, title: str) -> Fits:
        """Fit to all rows, and to the rows of each fold.

        Raises
        ------
        InputError
            If no row can be held out.
        """
        parts, said = split(self.y, settings)
        with progress(f"{title}: fitting", len(parts) + 1) as tick:
            nb.fit(self.X, self.y)
            folds = []
            for train, test in parts:
                tick()
                fitted = clone(nb).fit(self.X.iloc[train], self.y[train])
                folds.append(Fold(fitted, test, self.X.iloc[test], self.y[test]))
        return Fits(nb, folds, said, self.X, self.y)


def split(y: np.ndarray, settings: Settings) -> tuple[list[tuple[np.ndarray, np.ndarray]], str]:
    """Stratified (train, test) indices, and how to say what was done.

    Few rows are cross-validated; of many a share is held out once. A class keeps at least one row to learn
    from, so the only row of a class is never held out.
    """
    rng = np.random.default_rng(settings.seed)
    groups = [rng.permutation(np.flatnonzero(y == c)) for c in dict.fromkeys(y.tolist())]
    if settings.test_size is None and len(y) < _FEW_ROWS:
        order = np.concatenate([g for g in groups if len(g) > 1] or [np.zeros(0, np.intp)])
        parts = [order[i::_FOLDS] for i in range(min(_FOLDS, len(order)))]
        said = f"stratified {len(parts)}-fold cross-validation, each row scored once by a fit without it"
    else:
        share = SHARE if settings.test_size is None else settings.test_size
        sizes = held_out(dict(enumerate(map(len, groups))), share)
        parts = [np.concatenate([g[: sizes[i]] for i, g in enumerate(groups)])]
        said = f"{len(parts[0]):,} rows held out, stratified; fitted to the other {len(y) - len(parts[0]):,}"
    if not sum(map(len, parts)):
        raise InputError(NONE_HELD_OUT)
    return [(np.setdiff1d(np.arange(len(y)), test), np.sort(test)) for test in parts], said


def held_out(class_count: Mapping[Any, int], share: float) -> dict[Any, int]:
    """How many rows of each class are held out: a share, and never all."""
    return {label: min(round(share * n), n - 1) for label, n in class_count.items()}
