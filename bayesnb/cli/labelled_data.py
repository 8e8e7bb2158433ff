"""Labelled tables of `compare` and `fit`: kinds of columns, and fits to rows in memory and in batches."""

from __future__ import annotations

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from bayesnb import datasets, families
from bayesnb._util.terminal import progress
from bayesnb.cli.document import BUILT_IN, InputError, enumerate_names
from bayesnb.cli.reading import MOST_CLASSES, Reading, Scan, is_number, read_frames, scan
from bayesnb.cli.tables import TableFile, blamed_on, open_csv, title
from bayesnb.decision import loss_table
from bayesnb.encoding import Levels, check_table
from bayesnb.encoding.suspicious_columns import NUMBERS_AS_TEXT
from bayesnb.encoding.table import to_table
from bayesnb.encoding.units import describe_copies, find_copies
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.weighted import WeightedNB

# == Labels, and columns: which are left out, and what is noted about others ======================

Label = str | int | bool
"""Label of a class."""
CHANGED = "changed while it was read. Run the command again."
_STEPS_APART, _FEW_ZEROS, _FEW_LEVELS = 5, 5, 10
_IDENTIFIER = "every value is different; is this an identifier?"
_CONSTANT = "all cells that are not missing are equal"
_ROW_NUMBERS = "consecutive integers; are these row numbers?"
_CODES = "some numbers begin with 0, as codes do, so that each is a level; to read numbers, add --numeric COLUMNS"
_ZEROS = "some cells are 0 and no other value is near 0; if 0 means “not measured”, add --missing-in 0 COLUMNS"
_NO_NAMES = "read as the names of the columns; if it is a row of data, add a line of names above it"
_COPIES = "random halves of the rows keep copies together; if folds do not, the loss is too low"
_WHOLE = re.compile(r"[-+]?(0|[1-9]\d*)(\.0*)?")
_MANY_CLASSES = f"Classes need two rows or more on average, and at most {MOST_CLASSES:,} are allowed. Merge classes."


def to_labels(texts: Iterable[str]) -> dict[str, Label]:
    """Map each text to its label: integers or Booleans if all texts are, else the text itself."""
    texts = list(texts)
    if all(map(_WHOLE.fullmatch, texts)):
        return {text: int(float(text)) if "." in text else int(text) for text in texts}
    if all(text.lower() in ("true", "false") for text in texts):
        return {text: text.lower() == "true" for text in texts}
    return {text: text for text in texts}


def match_labels(table: TableFile, texts: pd.Series, classes: Mapping[str, Label]) -> np.ndarray:
    """Return the labels of texts (N,) as an array of integers, Booleans or texts; raise InputError for a new text."""
    code, distinct = pd.factorize(texts, use_na_sentinel=False)
    if not classes.keys() >= {*distinct}:
        raise InputError(f"{table.path.name} {CHANGED}")
    return np.array([classes[text] for text in distinct])[code]


def require_classes(scan: Scan, target: str) -> dict[str, Label]:
    """Return the label of each text, see `to_labels`; raise InputError if the texts are no labels of classes.

    Each row needs a label, of 2 to 1,000 classes that have two rows or more on average.
    """
    texts, n, file = list(scan.labels), scan.n_rows, scan.table.path.name
    classes, place = to_labels(texts), f"{file}: the target {target!r}"
    if scan.first_unlabelled is not None:
        row, cell = scan.first_unlabelled
        advice = f", or add --not-missing {cell!r} if {cell!r} is a label" if cell else ""
        problem = f"row {row + 2}, column {target!r}: the label is missing ({scan.unlabelled} of {n} rows)"
        raise InputError(f"{file}, {problem}. Remove these rows{advice}.")
    if len({*classes.values()}) == 1:
        raise InputError(f"{place} has only one class, {texts[0]!r}. Choose a target with two or more classes.")
    if len(texts) > min(n / 2, MOST_CLASSES):
        many = f"more than {MOST_CLASSES:,}" if len(texts) > MOST_CLASSES else len(texts)
        raise InputError(f"{place} has {many} distinct values in {n} rows. {_MANY_CLASSES}")
    return classes


def inspect_columns(
    scan: Scan, sample: pd.DataFrame, y: np.ndarray, named: Collection[str]
) -> tuple[pd.DataFrame, dict[str, str], dict[str, list[str]]]:
    """Return the table of `check_table`, {column to leave out: reason}, and {note: columns} about the others.

    Left out are columns without a cell, texts that are all different, and whole numbers that number the rows, unless
    they are `named` by the user.

    Parameters
    ----------
    scan : Scan
        Result of a pass over the table.
    sample : DataFrame
        Columns of features of the sample.
    y : (n,) array
        Labels of the sample.
    named : collection of str
        Columns that the user decided about.

    Raises
    ------
    InputError
        If no column is left.
    """
    left_out, notes = dict[str, str](), defaultdict[str, list[str]](list)
    described = check_table(sample, y) if len(sample.columns) else pd.DataFrame(columns=["kind", "remarks"])
    if all(map(is_number, scan.reading.types)) and {*map(str, range(len(scan.reading.types)))} != {*scan.reading.types}:
        notes[_NO_NAMES].append("the first line")
    for name, kind, n_values, _, remark in described.itertuples():
        present, is_level = sample[name].dropna(), kind == "levels"
        n, is_unique, is_named = len(present), n_values == len(present) > 1, name in named
        if not (is_named or n):
            left_out[name] = "no cell has a value"
        elif is_level and is_unique and not is_named:
            left_out[name] = remark if remark == NUMBERS_AS_TEXT else _IDENTIFIER
        elif kind == "numbers" and is_unique and not is_named and _are_row_numbers(present, scan, len(sample)):
            left_out[name] = _ROW_NUMBERS
        else:
            for note in filter(None, [remark, *_describe_cells(scan, name, present, n_values, is_level, is_named)]):
                notes[note].append(name)
    kept = [name for name in sample if str(name) not in left_out]
    if kept and (copies := describe_copies(find_copies(to_table(sample[kept], "fit")), pd.factorize(y)[0])):
        notes[_COPIES].append(copies)
    if len(left_out) == len(described):
        reasons = ", ".join(f"{name} ({reason})" for name, reason in list(left_out.items())[:3])
        keep = f"Left out: {reasons}. To keep a column, name it in --categorical or another flag."
        advice = keep if reasons else "Add columns of features, or drop fewer."
        raise InputError(f"{scan.table.path.name}: no column is left to learn from. {advice}")
    return described, left_out, notes


def _are_row_numbers(present: pd.Series, scan: Scan, n_sampled: int) -> bool:
    """Return whether different numbers are whole, and lie as close to each other as those of rows do."""
    rows = scan.n_rows * len(present) / n_sampled
    return bool((present % 1 == 0).all() and present.max() - present.min() < rows)


def _describe_cells(
    scan: Scan, name: str, present: pd.Series, n_values: int, is_level: bool, is_named: bool
) -> Iterator[str]:
    """Yield notes about the present cells of a column."""
    if n_values == 1 < len(present):
        yield _CONSTANT
    if name in scan.codes:
        yield _CODES
    elif is_level and scan.reading.types[name] == "level":
        numbers = pd.to_numeric(present, errors="coerce")
        if n_values > _FEW_LEVELS and 0.5 <= numbers.notna().mean() < 1 and not is_named:
            odd = present[numbers.isna()].iloc[0]
            yield f"numbers except {odd!r}; if {odd!r} marks a missing cell, add --missing {odd!r}"
        elif (present == "?").any():
            yield "has the level '?'; if '?' marks a missing cell, add --missing '?'"
    elif not is_level and scan.reading.types[name] == "number":
        if not is_named and _zeros_stand_apart(present.to_numpy(float)):
            yield _ZEROS
        if n_values == len(present) and (present % 1 == 0).all():
            yield _IDENTIFIER


def _zeros_stand_apart(numbers: np.ndarray) -> bool:
    """Return whether five numbers or more are 0 and no other is near, as where 0 stands for "not measured".

    Near is within five times the least step between two positive numbers, so that counts 0, 1, 2 … are not meant. False
    if a number is negative.
    """
    above = np.unique(numbers[numbers > 0])
    often = (numbers == 0).sum() >= _FEW_ZEROS and numbers.min() == 0
    return bool(often and len(above) > 1 and above[0] > _STEPS_APART * np.diff(above).min())


def describe_columns(notes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each note in {note: columns}, with the columns that have the note."""
    return [f"{enumerate_names(names, 8)}: {note}" for note, names in notes.items()]


# == Rows of a table, of which a sample is in memory, and fits to all rows but those held out ======

Batch = tuple[pd.DataFrame, np.ndarray]
NB = TypeVar("NB", NaiveBayesClassifier, WeightedNB)

_MOST_ROWS = 100_000
_MOST_FITTED_CELLS = 10_000_000


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled rows: all of them in memory, or a random sample of them, and all others in batches.

    Parameters
    ----------
    X : DataFrame
        Features of the rows in memory; the index is the numbers of the rows in the file, from 0 on.
    y : (N,) array
        Labels of the rows in memory.
    others : callable
        Reads the file once more: features and labels of the rows that are not in memory.
    file : str
        Name of the file, for messages.
    """

    X: pd.DataFrame
    y: np.ndarray
    others: Callable[[], Iterable[Batch]] = tuple
    file: str = ""

    def batches(self) -> Iterator[Batch]:
        """Yield the rows in memory, then all others."""
        yield self.X, self.y
        yield from self.others()

    def fit(self, nb: NB, parts: Sequence[np.ndarray], title: str) -> list[NB]:
        """Return a clone of `nb` for each part: fitted to these rows in memory, and then to the rows of all batches.

        Parameters
        ----------
        nb : classifier
        parts : sequence of int arrays
            Positions of rows in memory, which decide all that counts do not determine, such as weights and structure.
        title : str
            Title of the progress bar.

        Raises
        ------
        ValueError
            If the classifier cannot use the rows in memory.
        InputError
            If the classifier cannot use a batch, or the file has changed.
        """
        fitted = []
        with progress(f"{title}: fitting", len(parts)) as advance:
            for rows in parts:
                fitted.append(clone(nb).fit(self.X.iloc[rows], self.y[rows]))
                advance()
        for X, y in self.others():
            with blamed_on(f"{self.file}, rows {X.index[0] + 2:,} to {X.index[-1] + 2:,}"):
                for part in fitted:
                    part.partial_fit(X, y, np.unique(y))
        return fitted


def most_rows(n_columns: int) -> int:
    """Return the number of rows of a large file that are kept in memory: at most 100,000 rows, and 10 million cells."""
    return max(1, min(_MOST_ROWS, _MOST_FITTED_CELLS // n_columns))


# == Labelled tables with a kind for each column, from a file or of a run without a file, and tables of losses

NUMBERS = {family.kind: family for family in (*families.OF_NUMBERS, families.Binned)}
UNDECIDED = "numbers"
"""Kind of a column of numbers whose density is chosen when a classifier is fitted."""
_NONNEGATIVE = ("multinomial", *(kind for kind, family in NUMBERS.items() if family.nonnegative))
_MOST_LEVELS = 100_000


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled rows whose columns have a kind.

    Parameters
    ----------
    name : str
    rows : Rows
        The rows, which a classifier can be fitted to.
    kinds : dict
        Kind of each column; `UNDECIDED` for numbers before a classifier was fitted.
    class_count : dict
        Number of rows of each label.
    target : str
        Name of the column of labels.
    levels : dict
        Values of each categorical column, see `count_levels`.
    missing : dict
        Number of missing cells of each column that has missing cells.
    left_out : dict
        Columns that are not used, and why.
    notes : dict {note: columns}
        Notes for the user, with the columns that have them.
    about : str
        Origin of the rows, in words.
    guessed : bool
        Whether `kinds` are guesses.
    by_value : bool
        Whether the values of each column decide on numbers or levels as `kinds` do, without a density of numbers.
    reading : Reading
        Marks of missing cells, types of the columns and of the target, and remarks on suspicious columns.
    """

    name: str
    rows: Rows
    kinds: Mapping[str, str]
    class_count: Mapping[Label, int]
    target: str
    levels: Mapping[str, Sequence[Hashable]] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    about: str = ""
    guessed: bool = False
    by_value: bool = True
    reading: Reading = field(default_factory=Reading)

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
    levels = X.select_dtypes(exclude="number").columns
    kinds = {column: "categorical" if column in levels else UNDECIDED for column in map(str, X)}
    return count_levels(Dataset(name, Rows(X, y), kinds, Counter(y.tolist()), target, about=about), ())


def load(
    table: TableFile,
    target: str,
    reading: Reading,
    kinds: Mapping[str, str],
    default: str | None,
    drop: Collection[str],
    *,
    whole: bool,
) -> Dataset:
    """Read a table, choose kinds of columns, and leave out identifiers.

    Parameters
    ----------
    table : TableFile
    target : str
        Column of labels.
    reading : Reading
        Marks of missing cells, and types of columns that are known.
    kinds : dict
        Kinds that the user, or a model, decided, by column.
    default : str or None
        Kind of all other columns; None: numbers or levels, by their values.
    drop : collection of str
        Columns to leave out.
    whole : bool
        Whether to keep all rows in memory if they fit. Else a random sample of at most about 100,000 rows is kept, and
        the others are read again whenever they are needed.

    Raises
    ------
    InputError
        If the file cannot be read or is not a table, a column does not exist, the labels are not classes, or a
        cell is not a number where one is needed.
    """
    names = [name for name in table.columns if name not in (target, *drop)]
    unknown = {name: kind for name, kind in kinds.items() if name not in reading.types}
    reading = reading.with_types({name: "level" if k == "categorical" else "number" for name, k in unknown.items()})
    size = np.inf if whole and not table.is_larger_than_memory() else most_rows(len(names) + 1)
    scanned = scan(table, names, target, reading, size)
    classes = require_classes(scanned, target)
    sample = scanned.sample(scanned.reading)
    y = match_labels(table, sample[target], classes)
    described, left_out, notes = inspect_columns(scanned, sample[names], y, kinds)
    by_value = {name: "categorical" if kind == "levels" else UNDECIDED for name, kind in described["kind"].items()}
    chosen = {name: kinds.get(name, default or by_value[name]) for name in names if name not in left_out}
    numeric = [name for name, kind in chosen.items() if kind != "categorical" and by_value[name] == "categorical"]
    types = {name: scanned.reading.types[name] for name in [*chosen, target]} | dict.fromkeys(numeric, "number")
    remarks = {name: remark for name, remark in described["remarks"].items() if remark and name in chosen}
    reading = replace(scanned.reading, types=types, remarks=remarks)

    def others() -> Iterator[Batch]:
        """Read the rows once more that are not in the sample."""
        n = 0
        for rows in read_frames(table, reading, list(types), scanned.n_rows):
            n += len(rows)
            if len(rows := rows[~rows.index.isin(sample.index)]):
                yield rows[list(chosen)], match_labels(table, rows[target], classes)
        if n != scanned.n_rows:
            raise InputError(f"{table.path.name} {CHANGED}")

    is_whole = len(sample) == scanned.n_rows
    class_count = Counter[Label]()
    for text, n in scanned.labels.items():
        class_count[classes[text]] += n
    return Dataset(
        title(table.path),
        Rows(scanned.sample(reading)[list(chosen)], y, tuple if is_whole else others, table.path.name),
        chosen,
        class_count,
        target,
        left_out=left_out | dict.fromkeys(drop, "by --drop"),
        notes=notes,
        about=f"from {table.path.name}" + ", read in pieces because it does not fit into memory" * (not is_whole),
        guessed=default is None,
        by_value=all(kind == by_value[name] for name, kind in chosen.items()),
        reading=reading,
    )


def count_levels(data: Dataset, named: Collection[str]) -> Dataset:
    """Return the data set with the levels and missing cells of its columns, without columns of too many levels.

    Parameters
    ----------
    data : Dataset
    named : collection of str
        Columns that the user decided about.

    Raises
    ------
    InputError
        If a column cannot have its kind, or a column among `named` has more levels than are remembered.
    """
    rows, kinds, left_out, missing = data.rows, dict(data.kinds), dict(data.left_out), Counter[str]()
    most = np.inf if len(rows.y) == data.n_rows else _MOST_LEVELS
    levels = {name: set[Hashable]() for name, kind in kinds.items() if kind == "categorical"}
    for X, _ in rows.batches():
        missing.update({name: int(X[name].isna().sum()) for name in kinds if X[name].isna().any()})
        for name, values in levels.items():
            if len(values) <= most:
                values.update(X[name].dropna().unique().tolist())
        _require_numbers(rows.file, X, kinds)
    for name in [name for name, values in levels.items() if len(values) > most]:
        left_out[name] = f"more than {most:,} levels, too many for a file larger than memory"
        if name in named:
            raise InputError(f"{rows.file}, column {name!r}: {left_out[name]}. Leave the column out by --drop.")
        del kinds[name], levels[name]
    by_column = {name: list(Levels.from_values(values).values) for name, values in levels.items()}
    rows = replace(rows, X=rows.X[list(kinds)], others=lambda: ((X[list(kinds)], y) for X, y in data.rows.others()))
    return replace(data, rows=rows, kinds=kinds, levels=by_column, missing=missing, left_out=left_out)


def _require_numbers(file: str, X: pd.DataFrame, kinds: Mapping[str, str]) -> None:
    """Raise InputError unless the numbers of columns are such as columns of their kinds hold."""
    for name, kind in kinds.items():
        is_odd = X[name] < 0 if kind in _NONNEGATIVE else pd.Series(False, X.index)
        if kind == "multinomial":
            is_odd |= X[name].isna()
        if is_odd.any():
            at = int(is_odd.to_numpy().argmax())
            cell, row = X[name].iloc[at], X.index[at] + 2
            problem = "the cell is missing" if pd.isna(cell) else f"{cell} is negative"
            what = f"{problem}, which {kind} columns do not accept"
            advice = "Correct the cell, or use --categorical or --drop for the column"
            raise InputError(f"{file}, row {row}, column {name!r}: {what}. {advice}.")


def read_losses(path: Path, classes: np.ndarray) -> pd.DataFrame:
    """Read a CSV file with the loss of each action (row, named in the first column) for each class (column)."""
    table = open_csv(path)
    action, *others = table.columns
    reading = Reading(types={action: "level", **dict.fromkeys(others, "number")})
    losses = pd.concat(read_frames(table, reading, table.columns)).set_index(action)
    names = {str(label): label for label in classes.tolist()}
    with blamed_on(f"--loss {path}"):
        return loss_table(losses.rename(columns=names), None, classes)


# == Held-out rows, and fits to all other rows =====================================================

_SHARE = 0.3
_NONE_HELD_OUT = "No row can be held out: its class must have another row. Use a larger --test-size, or add rows."
_FOLDS = 5
_FEW_ROWS = 1000


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


@dataclass(frozen=True, eq=False)
class Fold(Generic[NB]):
    """Rows held out, their positions in the data set, and the classifier that was fitted to all others."""

    nb: NB
    rows: np.ndarray
    X: pd.DataFrame
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class Fits(Generic[NB]):
    """Classifiers fitted to all rows, and to the rows that are not held out.

    Parameters
    ----------
    nb : classifier
        Fitted to all rows.
    folds : list of Fold
    description : str
        How rows were held out, in words.
    """

    nb: NB
    folds: list[Fold[NB]]
    description: str


def fit_folds(nb: NB, data: Dataset, settings: Settings) -> Fits[NB]:
    """Fit clones of `nb` to all rows, and to all rows but those that each fold holds out of the rows in memory.

    Raises
    ------
    InputError
        If no row can be held out.
    """
    rows = data.rows
    parts: list[tuple[np.ndarray, np.ndarray]]
    parts, description = split(rows.y, settings, data.n_rows)
    fitted = rows.fit(nb, [np.arange(len(rows.y)), *(train for train, _ in parts)], data.name)
    folds = []
    for part, (_, test) in zip(fitted[1:], parts, strict=True):
        folds.append(Fold(part, rows.X.index.to_numpy()[test], rows.X.iloc[test], rows.y[test]))
    return Fits(fitted[0], folds, description)


def split(
    y: np.ndarray, settings: Settings, n_rows: int | None = None
) -> tuple[list[tuple[np.ndarray, np.ndarray]], str]:
    """Return stratified (train, test) positions of the rows in memory, and a description of them.

    Without `settings.test_size` fewer than 1,000 rows, if all are in memory, are cross-validated, in five folds, or
    fewer if no class has five rows; else that share, or 0.3, is held out once. A class keeps at least one row to learn
    from, so the only row of a class is never held out.

    Parameters
    ----------
    y : (N,) array
        Labels of the rows in memory.
    settings : Settings
    n_rows : int, optional
        Number of all rows, of which those in memory may be a sample. Default: N.
    """
    n, class_count = n_rows or len(y), Counter(y.tolist())
    if settings.test_size is None and len(y) == n < _FEW_ROWS:
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
        tests = [draw_rows(y, settings.test_size or _SHARE, settings.seed)]
        drawn = " of a random sample" * (len(y) < n)
        description = f"{len(tests[0]):,} rows{drawn} held out, stratified; fitted to the other {n - len(tests[0]):,}"
    if not sum(map(len, tests)):
        raise InputError(_NONE_HELD_OUT)
    return [(np.setdiff1d(np.arange(len(y)), test), test) for test in tests], description


def draw_rows(y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return the positions of a random share of the rows of each class, without replacement, and never a whole class.

    Of a class of n rows min(round(`share` · n), n - 1) are drawn, and every set of that many is equally probable.
    """
    rng, drawn = np.random.default_rng(seed), []
    for label, n in Counter(y.tolist()).items():
        last_first = np.flatnonzero(y == label)[::-1]
        drawn.append(last_first[rng.choice(n, min(round(share * n), n - 1), replace=False)])
    return np.sort(np.concatenate(drawn))
