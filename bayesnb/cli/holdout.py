"""Which rows are held out, and the fits to the others."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from bayesnb._util.progress import progress
from bayesnb.cli.reading import InputError
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.defaults import ALPHA, CLASS_ALPHA

if TYPE_CHECKING:
    import pandas as pd

SHARE = 0.3
NONE_HELD_OUT = "No row can be held out: every class needs two rows or more, or a larger --test-size."
_FOLDS = 5
_FEW_ROWS = 1000


@dataclass(frozen=True)
class Settings:
    """What the flags say; `test_size` None lets the number of rows decide how rows are held out.

    `weights` are those of a `WeightedNB`, or "none", and `numbers` as in `MixedNB`.
    """

    test_size: float | None = None
    seed: int = 0
    alpha: float = ALPHA
    class_alpha: float = CLASS_ALPHA
    prob: float = 0.9
    mixed: bool = False
    weights: str = "auto"
    numbers: str = "gaussian"


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

    @property
    def unweighted(self) -> Fits:
        """The same counts, of terms without weights."""
        folds = [replace(fold, nb=fold.nb.unweighted) for fold in self.folds]
        return replace(self, nb=self.nb.unweighted, folds=folds)


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
    class_count = Counter(y.tolist())
    if settings.test_size is None and len(y) < _FEW_ROWS:
        several = np.flatnonzero([class_count[label] > 1 for label in y.tolist()])
        n_folds = min(_FOLDS, max(class_count.values()))
        tests = [several[test] for test in _folds(y[several], n_folds, settings.seed)] if len(several) else []
        which = "each row" if len(several) == len(y) else f"{len(several):,} rows each"
        said = f"stratified {n_folds}-fold cross-validation, {which} scored once by a fit without it"
    else:
        share = SHARE if settings.test_size is None else settings.test_size
        tests = [np.flatnonzero(Sample(class_count, share, settings.seed).draw(y))]
        said = f"{len(tests[0]):,} rows held out, stratified; fitted to the other {len(y) - len(tests[0]):,}"
    if not sum(map(len, tests)):
        raise InputError(NONE_HELD_OUT)
    return [(np.setdiff1d(np.arange(len(y)), test), test) for test in tests], said


def _folds(y: np.ndarray, n: int, seed: int) -> list[np.ndarray]:
    splitter = StratifiedKFold(n, shuffle=True, random_state=np.random.RandomState(np.random.MT19937(seed)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # is in fewer folds
        return [test for _, test in splitter.split(y, y)]


class Sample:
    """Draws a share of the rows of each class without replacement, as they come, and never all.

    Every set of that many rows is as probable as any other.

    Parameters
    ----------
    class_count : dict
        Rows of each class that will come.
    share : float

    Attributes
    ----------
    left : dict
        Rows of each class that are still to come; below 0 if more came than were to.
    others : dict
        Rows of each class that are not drawn.
    """

    def __init__(self, class_count: Mapping[Any, int], share: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.left = dict(class_count)
        self._drawn = {c: rng.choice(n, min(round(share * n), n - 1), replace=False) for c, n in class_count.items()}
        self.others = {c: n - len(self._drawn[c]) for c, n in class_count.items()}

    def __len__(self) -> int:
        return sum(map(len, self._drawn.values()))

    def draw(self, y: np.ndarray) -> np.ndarray:
        """Which of the next rows are drawn, given their labels."""
        chosen = np.zeros(len(y), bool)
        for label in np.unique(y).tolist():
            rows = np.flatnonzero(y == label)
            self.left[label] -= len(rows)
            chosen[rows] = np.isin(self.left[label] + np.arange(len(rows))[::-1], self._drawn[label])
        return chosen
