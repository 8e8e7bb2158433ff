"""Labelled tables of `compare`: kinds of columns, settings of fits, and rows in memory or in pieces."""

from __future__ import annotations

import copy
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from bayesnb import datasets, families
from bayesnb._util.kinds import KINDS
from bayesnb._util.terminal import progress
from bayesnb.cli.document import BUILT_IN, InputError, enumerate_names
from bayesnb.cli.tables import blamed_on, larger_than_memory, read_cells, require_columns, title
from bayesnb.decision import loss_table
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.streaming import MISSING, fit_stream

# == Types of CSV columns: missing cells, numbers or levels, and columns to leave out ==============

Label = str | int
"""Label of a class, or level of a categorical column."""
_FEW_LEVELS = 10
_ROWS_A_LEVEL = 5
_STEPS_APART = 5
_FEW_ZEROS = 5
IDENTIFIER = "every value is different; is this an identifier?"
ROW_NUMBERS = "consecutive integers; are these row numbers?"
"""Reasons to leave out a column."""
_PLAIN_NUMBER = re.compile(r"[-+]?(0|[1-9]\d*)([.,]\d*)?([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Marks:
    """Marks of missing cells in a table; a mark that is a number stands for all its spellings, as 0 for 0.0.

    Parameters
    ----------
    everywhere : set of str
        Marks of all columns, besides `bayesnb.streaming.MISSING`.
    within : dict {column: set of str}
        Marks of one column only, as a 0 that stands for "not measured".
    values : set of str
        Marks of `MISSING` that are values in this file.

    Examples
    --------
    >>> from bayesnb.cli.labelled_data import Marks
    >>> marks = Marks(within={"bmi": frozenset(["0"])})
    >>> marks.are_missing("bmi", ["0.0", "1"]), marks.are_missing("age", ["0", "NA"])
    (array([ True, False]), array([False,  True]))
    """

    everywhere: frozenset[str] = frozenset()
    within: Mapping[str, Set[str]] = field(default_factory=dict)
    values: frozenset[str] = frozenset()

    def are_missing(self, column: str, texts: Iterable[str]) -> np.ndarray:
        """Return (T,) whether each text marks a missing cell of the column."""
        within = self.within.get(column, frozenset())
        named, values = self.everywhere | within, self.values - within
        marks, numbers = (MISSING | named) - values, {_plain_number(mark) for mark in named} - {None}

        def is_missing(text: str) -> bool:
            return text in marks or (bool(numbers) and text not in values and _plain_number(text) in numbers)

        return np.fromiter(map(is_missing, texts), bool)


def _plain_number(text: str) -> float | None:
    """Parse a number in the usual spelling, with decimal point or comma; None for 007 (a code) or 1_0."""
    return float(text.replace(",", ".")) if _PLAIN_NUMBER.fullmatch(text) else None


class ColumnCounts:
    """Counts of a column's cells, in constant memory.

    Parameters
    ----------
    name : str
        Name of the column.
    marks : Marks
        Marks of missing cells.
    limit : number
        Most distinct values that are remembered, about.

    Attributes
    ----------
    present, missing, numbers : int
        Number of cells that have a value, that are missing, and that are numbers.
    values : Counter
        Frequency of each distinct value, in order of appearance; of more than `limit` values, the first ones, counted
        up to there.
    whole : bool
        Whether all numbers are integers.
    low, high : float
        The least and the greatest number.
    first : dict {str: (str, int)}
        The first cell that is "missing", "odd" (no number), "infinite" or "negative", and its row, of which the line
        of names is 1.
    """

    def __init__(self, name: str = "", marks: Marks | None = None, limit: float = np.inf) -> None:
        self.name, self.marks, self.limit = name, marks or Marks(), limit
        self.present = self.missing = self.numbers = 0
        self.values: Counter[str] = Counter()
        self.whole = True
        self.low, self.high = np.inf, -np.inf
        self.first: dict[str, tuple[str, int]] = {}

    def add(self, cells: pd.Series) -> Self:
        """Count further cells, a Series of text whose index counts rows from 0; return self."""
        code, texts = pd.factorize(cells.to_numpy())
        _, at, count = np.unique(code, return_index=True, return_counts=True)
        missing = self.marks.are_missing(self.name, texts)
        number = np.where(missing, np.nan, to_numbers(texts))
        is_number = ~np.isnan(number)
        odd, infinite = ~(missing | is_number), np.isinf(number)
        masks = {"missing": missing, "odd": odd, "infinite": infinite, "negative": number < 0}
        for problem, mask in masks.items():
            if problem not in self.first and mask.any():
                self.first[problem] = texts[mask.argmax()], int(cells.index[at[mask.argmax()]]) + 2
        if not self.beyond:
            self.values.update(dict(zip(texts[~missing], count[~missing].tolist(), strict=True)))
        self.missing += int(count[missing].sum())
        self.present += int(count[~missing].sum())
        self.numbers += int(count[is_number].sum())
        with np.errstate(invalid="ignore"):  # Infinity is not an integer.
            self.whole &= bool((number[is_number] % 1 == 0).all())
        self.low = min(self.low, number[is_number].min(initial=np.inf))
        self.high = max(self.high, number[is_number].max(initial=-np.inf))
        return self

    @property
    def beyond(self) -> bool:
        """Whether there are more than `limit` distinct values."""
        return len(self.values) > self.limit

    @property
    def distinct(self) -> bool:
        """Whether several values are remembered, and all are different."""
        return self.values.total() == len(self.values) > 1

    @property
    def zeros_stand_apart(self) -> bool:
        """Whether five cells or more are 0 and no other number is near, as where 0 stands for "not measured".

        Near is within five times the least step between two positive values, so that counts 0, 1, 2 … are not meant.
        False if a number is negative, a cell is not a number, or more than `limit` values were met.
        """
        if self.beyond or self.low != 0 or self.numbers < self.present:
            return False
        number, count = to_numbers(self.values), np.array(list(self.values.values()))
        above = np.unique(number[number > 0])
        often = count[number == 0].sum() >= _FEW_ZEROS
        return bool(often and len(above) > 1 and above[0] > _STEPS_APART * np.diff(above).min())

    @property
    def too_many(self) -> str:
        """Reason why a column beyond the limit cannot be categorical."""
        return f"more than {self.limit:,} levels, too many for a file that does not fit into memory"


def guess(column: ColumnCounts) -> tuple[str | None, str]:
    """Guess the kind of a column, "categorical", "numbers" or None to leave it out; return it with a note.

    Numbers are "numbers", but integers of at most 10 distinct values, and numbers of at most two, with five rows a
    value or more are categorical, and consecutive integers without repetition number the rows: they are left out.
    Other strings are categorical, and left out if every one is different, or if there are too many to remember. A
    column of a single value without missing cells is left out.
    """
    n, levels, unique = column.present, len(column.values), column.distinct and not column.beyond
    if not n:
        return None, "no cell has a value"
    if levels == 1 < n and not column.missing:
        return None, f"every cell is {next(iter(column.values))!r}"
    if column.numbers < n:
        note = ""
        if unique:
            return None, IDENTIFIER
        if column.numbers >= 0.5 * n and levels > _FEW_LEVELS:
            odd = column.first["odd"][0]
            note = f"numbers except {odd!r}; if {odd!r} marks a missing cell, add --missing {odd!r}"
        elif "?" in column.values:
            note = "has the level '?'; if '?' marks a missing cell, add --missing '?'"
        return (None, f"{column.too_many}; {note}".rstrip("; ")) if column.beyond else ("categorical", note)
    if column.whole and column.distinct and column.high - column.low == n - 1:
        return None, ROW_NUMBERS
    if levels <= (_FEW_LEVELS if column.whole else 2) and levels * _ROWS_A_LEVEL <= n:
        return "categorical", ""
    return "numbers", IDENTIFIER if column.whole and unique else ""


def to_numbers(cells: Iterable[str]) -> np.ndarray:
    """Convert cells to floats (n,), NaN for a text that is not a number."""
    return pd.to_numeric(pd.Series(list(cells), dtype=object), errors="coerce").to_numpy(float, copy=True)


def to_levels(cells: Iterable[str]) -> dict[str, Label]:
    """Map each cell to its level: integers if all cells are integers in plain spelling, else the text itself."""
    texts: dict[str, Label] = {text: text for text in cells}
    try:
        numbers: dict[str, Label] = {text: int(text) for text in texts}
    except ValueError:
        return texts
    return numbers if all(str(number) == text for text, number in numbers.items()) else texts


def describe_columns(notes: Mapping[str, str] | pd.Series) -> list[str]:
    """Return a line for each note in {column: note} that is not empty, with the columns that have it."""
    about = pd.Series(notes, dtype=object)
    about = about[about != ""]
    groups = about.groupby(about, sort=False).groups
    return [f"{enumerate_names([*names], 8)}: {note}" for note, names in groups.items()]


# == Held-out rows and the fits to all other rows, of tables in memory and of files that are read in pieces

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


# == Labelled tables with a kind for each column, from a CSV file or of a run without a file, and tables of losses

NUMBERS = {family.kind: family for family in (*families.OF_NUMBERS, families.Binned)}
UNDECIDED = "numbers"
"""Kind of a column of numbers whose density is chosen when a classifier is fitted."""
_NONNEGATIVE = ("multinomial", *(kind for kind, family in NUMBERS.items() if family.nonnegative))
_MOST_LEVELS = 100_000
MOST_CLASSES = 1000
_NO_NAMES = "read as the names of the columns; if it is a row of data, add a line of names above it"
_MANY_CLASSES = f"Classes need two rows or more on average, and at most {MOST_CLASSES:,} are allowed. Merge classes."
_ZEROS = "some cells are 0 and no other value is near 0; if 0 means “not measured”, add --missing-in 0 COLUMNS"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled rows whose columns have a kind.

    Parameters
    ----------
    name : str
    rows : InMemory or Streamed
        The rows, which a classifier can be fitted to.
    kinds : dict
        Kind of each column; `UNDECIDED` for numbers before a classifier was fitted.
    levels : dict
        Values of each categorical column.
    class_count : dict
        Number of rows of each label.
    target : str
        Name of the column of labels.
    missing : dict
        Number of missing cells of each column that has missing cells.
    left_out : dict
        Columns that are not used, and why.
    notes : dict
        Notes for the user by column.
    about : str
        Origin of the rows, in words.
    guessed : bool
        Whether `kinds` are guesses.
    """

    name: str
    rows: InMemory | Streamed
    kinds: Mapping[str, str]
    levels: Mapping[str, Sequence[Label]]
    class_count: Mapping[Label, int]
    target: str
    missing: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    about: str = ""
    guessed: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.class_count.values())


def built_in_datasets() -> list[Dataset]:
    """Load the two data sets that are analysed without a file: breast cancer and watermelon."""
    from sklearn.datasets import load_breast_cancer

    cancer, melon = load_breast_cancer(as_frame=True), datasets.load_watermelon(language="en")
    first, second = BUILT_IN
    wisconsin = "scikit-learn's copy of the Wisconsin diagnostic data"
    zhou = "Zhou Zhihua, Machine Learning (2016), table 4.3"
    return [
        _from_frame(first, cancer.data, cancer.target_names[cancer.target], "diagnosis", wisconsin),
        _from_frame(second, melon.data, melon.target.to_numpy(), "ripe", zhou),
    ]


def _from_frame(name: str, X: pd.DataFrame, y: np.ndarray, target: str, about: str) -> Dataset:
    """Make a data set of a frame: columns of numbers with the density undecided, all others categorical."""
    levels = {str(column): X[column].unique().tolist() for column in X.select_dtypes(exclude="number")}
    kinds = {column: "categorical" if column in levels else UNDECIDED for column in map(str, X)}
    return Dataset(name, InMemory(X, y), kinds, levels, Counter(y.tolist()), target, about=about)


def load_csv(
    path: Path, target: str, marks: Marks, kinds: Mapping[str, str], default: str | None, drop: Sequence[str]
) -> Dataset:
    """Read a file and type its columns; a file larger than memory is read in pieces, now and whenever rows are needed.

    Parameters
    ----------
    path : Path
        File to read.
    target : str
        Column of labels.
    marks : Marks
        Marks of missing cells.
    kinds : dict
        Kinds that the user decided, by column.
    default : str or None
        Kind of all other columns; None: guess.
    drop : sequence of str
        Columns to leave out.

    Raises
    ------
    InputError
        If the file cannot be read or is not a table, a column does not exist, the labels are not classes, or a
        cell is not a number where one is needed.
    """
    streamed = larger_than_memory(path)
    pieces: Iterable[Any] = read_cells(path) if streamed else list(read_cells(path))
    counts: dict[str, ColumnCounts] = {}
    for cells in pieces:
        if not counts:
            require_columns(path, list(cells), (target, *kinds, *drop, *marks.within))
            limit = _MOST_LEVELS if streamed else np.inf
            counts = {name: ColumnCounts(name, marks, limit) for name in cells if name not in drop}
        for name, column in counts.items():
            column.add(cells[name])
    labels = counts.pop(target)
    require_classes(path, labels)
    chosen, left_out, notes = _choose_kinds(path, counts, kinds, default)
    names = [target, *counts]
    if np.isfinite(to_numbers(names)).all() and sorted(names) != sorted(map(str, range(len(names)))):
        notes["the first line"] = _NO_NAMES
    if not chosen:
        reasons = ", ".join(f"{name} ({reason})" for name, reason in list(left_out.items())[:3])
        keep = f"Left out: {reasons}. To keep a column, name it in --categorical or another flag."
        advice = keep if reasons else "Add columns of features, or drop fewer."
        raise InputError(f"{path.name}: no column is left besides the target {target!r}. {advice}")
    levels = {name: to_levels(counts[name].values) for name, kind in chosen.items() if kind == "categorical"}
    classes = to_levels(labels.values)
    class_count = {classes[cell]: n for cell, n in labels.values.items()}
    typed = partial(_type_cells, path, target, list(chosen), levels | {target: classes}, marks)
    rows: InMemory | Streamed
    if streamed:
        rows = Streamed(path, lambda: map(typed, read_cells(path)), class_count, len(chosen))
    else:
        rows = InMemory(*concatenate(list(map(typed, pieces))))
    return Dataset(
        title(path),
        rows,
        chosen,
        {name: list(cells.values()) for name, cells in levels.items()},
        class_count,
        target,
        {name: counts[name].missing for name in chosen if counts[name].missing},
        left_out | dict.fromkeys(drop, "by --drop"),
        notes,
        f"from {path.name}" + ", read in pieces because it does not fit into memory" * streamed,
        guessed=default is None,
    )


def read_losses(path: Path, classes: np.ndarray) -> pd.DataFrame:
    """Read a CSV file with the loss of each action (row, named in the first column) for each class (column)."""
    cells = pd.concat(read_cells(path))
    actions, names = cells.iloc[:, 0], {str(label): label for label in classes.tolist()}
    losses = cells.iloc[:, 1:].apply(to_numbers).set_axis(actions.tolist()).rename(columns=names)
    with blamed_on(f"--loss {path}"):
        return loss_table(losses, None, classes)


def _type_cells(
    path: Path, target: str, names: Sequence[str], levels: Mapping[str, Any], marks: Marks, cells: pd.DataFrame
) -> Batch:
    """Convert cells as text to features `names` and labels; columns in `levels` become levels, others floats."""
    columns = {}
    for name in (*names, target):
        code, texts = pd.factorize(cells[name].to_numpy())
        missing = marks.are_missing(name, texts)
        if name in levels:
            values = np.array([levels[name].get(text) for text in texts], object)
            values[missing] = None
        else:
            values = np.where(missing, np.nan, to_numbers(texts))
        if pd.isna(values)[~missing].any() or (name == target and missing.any()):
            raise InputError(f"{path.name} changed while it was read. Run the command again.")
        columns[name] = pd.Series(values[code], cells.index, values.dtype)
    y = np.array(columns.pop(target).tolist())
    return pd.DataFrame(columns), y


def require_classes(path: Path, labels: ColumnCounts) -> None:
    """Raise InputError unless each row has a label, of 2 to 1,000 classes that have two rows or more on average."""
    n, classes, target = labels.present + labels.missing, len(labels.values), repr(labels.name)
    if labels.missing:
        mark, row = labels.first["missing"]
        advice = f", or add --not-missing {mark!r} if {mark!r} is a label" if mark else ""
        problem = f"the label is missing ({labels.missing} of {n} rows)"
        raise InputError(f"{path.name}, row {row}, column {target}: {problem}. Remove these rows{advice}.")
    if classes == 1:
        problem, advice = f"only one class, {next(iter(labels.values))!r}", "Choose a target with two or more classes."
    elif labels.beyond or classes > min(n / 2, MOST_CLASSES):
        many = f"more than {labels.limit}" if labels.beyond else f"{classes:,}"
        problem, advice = f"{many} distinct values in {n} rows", _MANY_CLASSES
    else:
        return
    raise InputError(f"{path.name}: the target {target} has {problem}. {advice}")


def _choose_kinds(
    path: Path, counts: Mapping[str, ColumnCounts], kinds: Mapping[str, str], default: str | None
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return {column: kind} of the columns in use, {column: reason} of those left out, and {column: note}."""
    chosen, left_out, notes = {}, {}, {}
    for name, column in counts.items():
        guessed, note = guess(column)
        kind = kinds.get(name, guessed and (default or guessed))
        if kind == "categorical" and column.beyond:
            if name in kinds:
                raise InputError(f"{path.name}, column {name!r}: {column.too_many}. Leave the column out by --drop.")
            kind, note = None, column.too_many
        if kind is None:
            left_out[name] = note
            continue
        if kind != "categorical":
            _require_numbers(path, column, kind if kind in KINDS else "numeric")
        zeros = _ZEROS if kind != "categorical" and name not in kinds and column.zeros_stand_apart else ""
        if note or zeros:
            notes[name] = "; ".join(filter(None, [note, zeros]))
        chosen[name] = kind
    return chosen, left_out, notes


def _require_numbers(path: Path, column: ColumnCounts, kind: str) -> None:
    """Raise InputError unless all cells of a column are numbers that columns of this kind hold."""
    problems = {"odd": "is not a number", "infinite": "is infinity or too large"}
    if kind in _NONNEGATIVE:
        problems["negative"] = "is negative"
    if kind == "multinomial":
        problems["missing"] = "is missing"
    mark = "" if kind == "multinomial" else "mark it with --missing, "
    advice = f"Correct the cell, {mark}or use --categorical or --drop for the column."
    for problem, text in problems.items():
        if problem in column.first:
            cell, row = column.first[problem]
            what = f"{repr(cell) if cell else 'the cell'} {text}, which {kind} columns do not accept"
            raise InputError(f"{path.name}, row {row}, column {column.name!r}: {what}. {advice}")
