"""Held-out rows and the fits to all other rows, of tables in memory and of files that are read in pieces."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from bayesnb._util.terminal import progress
from bayesnb.cli.column_types import Label
from bayesnb.cli.terminal import InputError
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.streaming import fit_stream

Batch = tuple[pd.DataFrame, np.ndarray]

_SHARE = 0.3
_NONE_HELD_OUT = "No row can be held out: its class must have another row. Use a larger --test-size, or add rows."
_FOLDS = 5
_FEW_ROWS = 1000
_MOST_ROWS = 100_000
_MOST_FITTED_CELLS = 10_000_000


@dataclass(frozen=True)
class Settings:
    """Options of the model and of its test.

    Parameters
    ----------
    test_size : float or None
        Share of the rows to hold out; None: fewer than 1,000 rows are cross-validated, of more 0.3 are held out.
    seed : int
        Seed of the choice of rows.
    alpha, class_alpha : float
        Dirichlet concentration of levels, and of classes.
    prob : float
        Posterior probability of intervals.
    estimator : str
        "mixed" to fit `MixedNB` also where all columns are of one kind.
    weights : str
        Argument `weights` of `WeightedNB`, or "none".
    numbers : str
        Argument `numbers` of `MixedNB`.
    loss : Path or None
        CSV file of the losses of actions.
    """

    test_size: float | None = None
    seed: int = 0
    alpha: float = 1.0
    class_alpha: float = 1.0
    prob: float = 0.9
    estimator: str = "auto"
    weights: str = "auto"
    numbers: str = "gaussian"
    loss: Path | None = None

    @property
    def share(self) -> float:
        """Share of the rows to hold out, if they are held out once: `test_size`, or 0.3 if that is None."""
        return _SHARE if self.test_size is None else self.test_size


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows held out, their positions in the data set, and the classifier that was fitted to all others."""

    nb: NaiveBayesClassifier
    rows: np.ndarray
    X: pd.DataFrame
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class Fits:
    """Classifiers fitted to all rows, and to the rows that are not held out.

    Parameters
    ----------
    nb : classifier
        Fitted to all rows.
    folds : list of Fold
    description : str
        How rows were held out, in words.
    X, y
        Rows that are in memory: all rows, or those held out.
    """

    nb: NaiveBayesClassifier
    folds: list[Fold]
    description: str
    X: pd.DataFrame
    y: np.ndarray

    @property
    def unweighted(self) -> Fits:
        """Fits without weights of terms."""
        folds = [replace(fold, nb=fold.nb.unweighted) for fold in self.folds]
        return replace(self, nb=self.nb.unweighted, folds=folds)


@dataclass(frozen=True, eq=False)
class InMemory:
    """Features X (N, F) and labels y (N,) of all rows."""

    X: pd.DataFrame
    y: np.ndarray

    def fit(self, nb: NaiveBayesClassifier, settings: Settings, title: str) -> Fits:
        """Fit `nb` to all rows in place, and a clone to the training rows of each fold.

        Raises
        ------
        InputError
            If no row can be held out.
        """
        parts, description = split(self.y, settings)
        with progress(f"{title}: fitting", len(parts) + 1) as advance:
            nb.fit(self.X, self.y)
            folds = []
            for train, test in parts:
                advance()
                fitted = clone(nb).fit(self.X.iloc[train], self.y[train])
                folds.append(Fold(fitted, test, self.X.iloc[test], self.y[test]))
        return Fits(nb, folds, description, self.X, self.y)


@dataclass(frozen=True, eq=False)
class Streamed:
    """Rows of a file that does not fit into memory.

    Parameters
    ----------
    path : Path
    batches : callable
        Reads the file once more: features, with positions of the rows as index, and labels.
    class_count : dict
        Number of rows of each label.
    n_columns : int
        Number of features, by which the number of rows that are kept in memory is bounded.
    """

    path: Path
    batches: Callable[[], Iterator[Batch]]
    class_count: Mapping[Label, int]
    n_columns: int

    def fit(self, nb: NaiveBayesClassifier, settings: Settings, title: str) -> Fits:
        """Count all rows in one pass but for a stratified sample that is held out, then add that sample to a copy.

        The sample is `settings.share` of the rows, at most 100,000 rows and 10 million cells. Weights are fitted to
        halves of a sample of the rows that were counted, under the same limits.

        Raises
        ------
        InputError
            If no row can be held out; if the file has changed since its columns were typed.
        """
        n, most = sum(self.class_count.values()), most_rows(self.n_columns)
        held_out = Sample(self.class_count, min(settings.share, most / n), settings.seed)
        size = len(held_out)
        if not size:
            raise InputError(_NONE_HELD_OUT)
        weighted = nb.unweighted is not nb
        of_counted = Sample(held_out.others, min(1.0, most / (n - size)) if weighted else 0.0, settings.seed)
        test: list[Batch] = []
        to_weigh: list[Batch] = []

        def counted_rows() -> Iterator[Batch]:
            """Yield batches without held-out rows; append those to `test`, and a sample of the others to `to_weigh`."""
            for X, y in self.batches():
                drawn = held_out.draw(y)
                test.append((X[drawn], y[drawn]))
                X, y = X[~drawn], y[~drawn]
                drawn = of_counted.draw(y)
                to_weigh.append((X[drawn], y[drawn]))
                if len(y):
                    yield X, y

        fitted = fit_stream(nb, counted_rows(), classes=list(self.class_count), progress=False)
        if any(held_out.left.values()):
            raise InputError(f"{self.path.name} changed while it was read. Run the command again.")
        if weighted:
            fitted.weigh(*concatenate(to_weigh))
        X, y = concatenate(test)
        fold = Fold(fitted, X.index.to_numpy(), X.reset_index(drop=True), y)
        whole = copy.copy(fitted).partial_fit(fold.X, y)
        reason = " (a sample that fits into memory)" if settings.share > most / n else ""
        return Fits(whole, [fold], f"{_describe_split(size, n)}{reason}", fold.X, y)


def most_rows(n_columns: int) -> int:
    """Return the number of rows of a large file that are kept in memory: at most 100,000 rows, and 10 million cells."""
    return max(1, min(_MOST_ROWS, _MOST_FITTED_CELLS // n_columns))


def concatenate(batches: Sequence[Batch]) -> Batch:
    """Join batches (X, y) of the same columns into one batch."""
    X, y = zip(*batches, strict=True)
    return pd.concat(X), np.concatenate(y)


def split(y: np.ndarray, settings: Settings) -> tuple[list[tuple[np.ndarray, np.ndarray]], str]:
    """Return stratified (train, test) positions, and a description of them.

    Without `settings.test_size` fewer than 1,000 rows are cross-validated, in five folds, or fewer if no class has five
    rows; else `settings.share` is held out once. A class keeps at least one row to learn from, so the only row of a
    class is never held out.
    """
    n, class_count = len(y), Counter(y.tolist())
    if settings.test_size is None and n < _FEW_ROWS:
        several = np.flatnonzero([class_count[label] > 1 for label in y.tolist()])
        n_folds = min(_FOLDS, max(class_count.values()))
        seed = np.random.RandomState(np.random.MT19937(settings.seed))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class")  # is in fewer folds
            folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(several, y[several])
            tests = [several[test] for _, test in folds] if len(several) else []
        which = "each row" if len(several) == n else f"{len(several):,} rows each"
        description = f"stratified {n_folds}-fold cross-validation, {which} scored by a fit without it"
    else:
        tests = [np.flatnonzero(Sample(class_count, settings.share, settings.seed).draw(y))]
        description = _describe_split(len(tests[0]), n)
    if not sum(map(len, tests)):
        raise InputError(_NONE_HELD_OUT)
    return [(np.setdiff1d(np.arange(n), test), test) for test in tests], description


def _describe_split(held_out: int, n: int) -> str:
    """Say how many rows are held out of n, such as "30 rows held out, stratified; fitted to the other 70"."""
    return f"{held_out:,} rows held out, stratified; fitted to the other {n - held_out:,}"


class Sample:
    """Random sample of a share of the rows of each class, without replacement, and never of a whole class.

    Of a class of n rows min(round(`share` · n), n - 1) are drawn, and every set of that many is equally probable.

    Parameters
    ----------
    class_count : dict
        Number of rows of each class that will come.
    share : float
        Share of the rows to draw.
    seed : int

    Attributes
    ----------
    left : dict
        Number of rows of each class that are still to come; below 0 if more came than were announced.
    others : dict
        Number of rows of each class that are not drawn.
    """

    def __init__(self, class_count: Mapping[Label, int], share: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.left = Counter(class_count)
        self._drawn = {c: rng.choice(n, min(round(share * n), n - 1), replace=False) for c, n in class_count.items()}
        self.others = {c: n - len(self._drawn[c]) for c, n in class_count.items()}

    def __len__(self) -> int:
        return sum(map(len, self._drawn.values()))

    def draw(self, y: np.ndarray) -> np.ndarray:
        """Return a mask of the next rows that are in the sample, given their labels; `left` falls by these rows."""
        chosen = np.zeros(len(y), bool)
        for label in np.unique(y).tolist():
            rows = np.flatnonzero(y == label)
            self.left[label] -= len(rows)
            chosen[rows] = np.isin(self.left[label] + np.arange(len(rows))[::-1], self._drawn.get(label, ()))
        return chosen
