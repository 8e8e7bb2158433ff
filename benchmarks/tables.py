"""Tables on which benchmarks.quality compares methods: from scikit-learn, from bayesnb, and from files.

`BAYESNB_DATA` names the folder of the files (default ../shared/data). The tables of `FAMILIAR` have been looked at
while bayesnb was written: the ARFF files vote, breast.cancer, car and mushroom, pima.csv, adult-train.csv and
sms_spam.tsv, all from the UCI Machine Learning Repository, and 20ng/, word counts of 20 newsgroups. The ARFF files of
`UNTUNED` were fetched to compare methods, from the public repository renatopp/arff-datasets on GitHub, which has the
tables of the same UCI repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn import datasets
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

import bayesnb as bnb

FOLDER = Path(__file__).parents[1] / os.environ.get("BAYESNB_DATA", "../shared/data")
MISSING = "?"
FOLDS, SEEDS, FEW_ROWS, MORE_SEEDS = 3, 3, 200, 10
"""Folds of each seed (0, 1, 2; and 0 to 9 for tables of fewer rows than `FEW_ROWS`)."""
ADULT_ROWS = 6_000
SMALL_SAMPLES, DRAWS, TEST_ROWS = (50, 100, 200), 5, 2_000


class Fold(NamedTuple):
    """Training rows, test rows, and the positions of the test rows in the table."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    test: np.ndarray


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and labels.

    Parameters
    ----------
    X : DataFrame, list of str, or (N, V) csr_matrix
        Columns of numbers, and categorical ones whose dtype declares the levels, "?" among them where cells are
        missing; messages; or counts of words.
    y : (N,) array of str
    test : (N,) array of bool, optional
        Rows of the table's own test set. Without them there are three stratified folds for each of three seeds, or of
        ten seeds where the table has fewer than 200 rows.
    alpha : float
        Concentration of naive Bayes, ours and scikit-learn's.
    sample : int, optional
        Number of rows to learn from, of which five stratified samples are drawn; up to 2,000 other rows are predicted.
    """

    X: Any
    y: np.ndarray
    test: np.ndarray | None = None
    alpha: float = 1.0
    sample: int | None = None

    @property
    def kind(self) -> str:
        """Return the kind of the columns: "categories", "numbers", "mixed" or "words"."""
        if not isinstance(self.X, pd.DataFrame):
            return "words"
        categorical = {isinstance(dtype, pd.CategoricalDtype) for dtype in self.X.dtypes}
        return "mixed" if len(categorical) == 2 else "categories" if categorical == {True} else "numbers"

    def folds(self) -> Iterator[Fold]:
        for train, test in self._splits():
            X, X_test = self._rows(train), self._rows(test)
            if isinstance(X, list):
                words = CountVectorizer()
                X, X_test = words.fit_transform(X), words.transform(X_test)
            yield Fold(X, self.y[train], X_test, self.y[test], test)

    def _splits(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if self.test is not None:
            yield np.flatnonzero(~self.test), np.flatnonzero(self.test)
        elif self.sample is not None:
            test_rows = min(TEST_ROWS, len(self.y) - self.sample)
            yield from StratifiedShuffleSplit(DRAWS, train_size=self.sample, test_size=test_rows, random_state=0).split(
                self.y, self.y
            )
        else:
            for seed in range(MORE_SEEDS if len(self.y) < FEW_ROWS else SEEDS):
                yield from StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(self.y, self.y)

    def _rows(self, index: np.ndarray) -> Any:
        if isinstance(self.X, list):
            return [self.X[i] for i in index]
        return self.X.iloc[index].reset_index(drop=True) if isinstance(self.X, pd.DataFrame) else self.X[index]


def arff(path: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Read features and class of an ARFF file of nominal and numeric attributes, the last of which is the class."""
    declared: dict[str, list[str]] = {}
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"@attribute\s+('[^']*'|\S+)\s*(?:\{(.*)\}|\w+)", line.strip(), re.IGNORECASE):
            declared[match[1].strip("'")] = [level.strip(" '") for level in (match[2] or "").split(",")]
        elif line.strip() and line.strip()[0] not in "%@":
            rows.append([cell.strip(" '") for cell in line.split(",")])
    *names, label = declared
    X = pd.DataFrame(rows, columns=list(declared), dtype=object)
    return X[names].apply(lambda column: _declare(column, declared[column.name])), X[label].to_numpy(str)


def _declare(column: pd.Series, levels: list[str]) -> pd.Series:
    if levels == [""]:
        return pd.to_numeric(column.mask(column == MISSING)).astype(float)
    missing = [MISSING] if MISSING not in levels and (column == MISSING).any() else []
    return column.astype(pd.CategoricalDtype([*levels, *missing]))


def _declare_seen(X: pd.DataFrame) -> pd.DataFrame:
    """Make text columns categorical, with all levels of the table, and numbers floats, so that they are not codes."""

    def declared(c: pd.Series) -> pd.Series:
        return c.astype(float) if pd.api.types.is_numeric_dtype(c) else _declare(c, sorted(set(c) - {MISSING}))

    return X.apply(declared)


def _read_arff(file: str) -> Table:
    """Read an ARFF file, without columns that name the rows and without classes of fewer rows than there are folds."""
    X, y = arff(FOLDER / file)
    kept = pd.Series(y).groupby(y).transform("size").to_numpy() >= FOLDS
    return Table(X.drop(columns=ROW_NAMES, errors="ignore")[kept].reset_index(drop=True), y[kept])


def _shipped(name: str) -> Table:
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return Table(pd.DataFrame(X).rename(columns=str), y.astype(str))


def _watermelon() -> Table:
    melon = bnb.datasets.load_watermelon()
    return Table(_declare_seen(melon.data), melon.target.to_numpy(str))


def _pima() -> Table:
    pima = pd.read_csv(FOLDER / "pima.csv", header=None).rename(columns=str).astype({str(j): float for j in range(8)})
    return Table(pima.iloc[:, :-1], pima.iloc[:, -1].to_numpy(str))


def adult(n_rows: int = ADULT_ROWS) -> Table:
    """Read some rows of the training file of adult."""
    frame = pd.read_csv(FOLDER / "adult-train.csv", header=None, skipinitialspace=True, keep_default_na=False)
    some = np.random.default_rng(0).permutation(len(frame))[:n_rows]
    frame = frame.rename(columns=str).iloc[some].reset_index(drop=True)
    return Table(_declare_seen(frame.iloc[:, :-1]), frame.iloc[:, -1].to_numpy(str))


def _sms() -> Table:
    lines = (FOLDER / "sms_spam.tsv").read_text(encoding="utf-8").splitlines()
    labels, messages = zip(*(line.split("\t", 1) for line in lines), strict=True)
    return Table(list(messages), np.array(labels))


def _newsgroups() -> Table:
    n_words = len((FOLDER / "20ng/4cat_vocab.txt").read_text(encoding="utf-8").splitlines())
    X, y, sizes = [], [], []
    for part in ("train", "test"):
        lines = (FOLDER / f"20ng/4cat_{part}.counts.tsv").read_text(encoding="utf-8").splitlines()
        rows = [line.split("\t") for line in lines]
        entries = [[entry.partition(":") for entry in words.split()] for _, words in rows]
        data = [int(count or 1) for row in entries for _, _, count in row]
        index = [int(word) for row in entries for word, _, _ in row]
        ends = np.cumsum([0, *map(len, entries)])
        X.append(sp.csr_matrix((data, index, ends), shape=(len(rows), n_words)))
        y.append(np.array([label for label, _ in rows]))
        sizes.append(len(rows))
    return Table(sp.vstack(X, format="csr"), np.concatenate(y), np.repeat([False, True], sizes), alpha=0.12)


class Source(NamedTuple):
    """Source of a table: the file it needs, if any, and its reader."""

    file: str | None
    read: Callable[[], Table]


def _arff_source(file: str) -> Source:
    return Source(file, partial(_read_arff, file))


FAMILIAR = {
    "watermelon": Source(None, _watermelon),
    **{name: _arff_source(f"{name}.arff") for name in ("vote", "breast.cancer", "car", "mushroom")},
    **{name: Source(None, partial(_shipped, name)) for name in ("iris", "wine")},
    "cancer": Source(None, partial(_shipped, "breast_cancer")),
    "digits": Source(None, partial(_shipped, "digits")),
    "pima": Source("pima.csv", _pima),
    "adult": Source("adult-train.csv", adult),
    "sms": Source("sms_spam.tsv", _sms),
    "20ng": Source("20ng/4cat_train.counts.tsv", _newsgroups),
}
"""Tables that defaults of bayesnb were chosen with, by name."""
ROW_NAMES = ["Instance_name", "animal"]
"""Columns of splice and zoo that name the rows."""
UNTUNED = {
    "kr-vs-kp": _arff_source("kr.vs.kp.arff"),
    "primary-tumor": _arff_source("primary.tumor.arff"),
    "credit-g": _arff_source("credit.g.arff"),
    "waveform": _arff_source("waveform5000.arff"),
    **{name: _arff_source(f"{name}.arff") for name in ("splice", "soybean", "nursery", "tic-tac-toe", "zoo", "lymph")},
    **{name: _arff_source(f"{name}.arff") for name in ("audiology", "vehicle", "segment", "glass", "hepatitis")},
    "letter": _arff_source("letter.arff"),
}
"""Tables that no default of bayesnb was chosen with, by name."""
SMALL = {
    f"{name}/{n}": Source(FAMILIAR[name].file, lambda read=FAMILIAR[name].read, n=n: replace(read(), sample=n))
    for name in ("adult", "mushroom", "pima", "digits")
    for n in SMALL_SAMPLES
}
"""Small samples of tables by name: "adult/50" has 50 training rows."""
SOURCES = FAMILIAR | UNTUNED | SMALL


def absent(name: str) -> bool:
    """Return whether the file of a table is absent from the folder."""
    file = SOURCES[name].file
    return file is not None and not (FOLDER / file).exists()
