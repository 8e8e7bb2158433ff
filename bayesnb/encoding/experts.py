"""Block of terms by other classifiers, log q(class | row) - log P(class), beside blocks of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayesnb.encoding.columns import Columns, PlainColumns, UnknownPolicy, ignore_unknown
from bayesnb.encoding.encoded_rows import Rows, pad_rows
from bayesnb.encoding.structure import find_level_columns
from bayesnb.encoding.table import Table
from bayesnb.families.given import GivenTerms, NoCounts

LEAST_PROBABILITY = 1e-4
"""Least probability of a class that an expert is believed."""


def rows_of_experts(columns: Sequence[Columns], table: Table) -> Any:
    """Return the rows of a table as experts read them.

    They are a DataFrame of float columns, NaN where missing, and of categorical columns, whose categories are the
    levels of `columns`; or the sparse matrix.
    """
    if table.is_sparse:
        return table.data
    series: dict[int, object] = {}
    for base in find_level_columns(columns):
        codes = base.rows(table, ignore_unknown).codes
        for f in np.flatnonzero(~base.are_cells()).tolist():
            values = base.levels[f].values
            # Values of several types, which encoders do not sort, go by their texts.
            labels = pd.Index(list(values if len(set(map(type, values))) < 2 else map(repr, values)))
            code = np.where(codes[:, f] < len(values), codes[:, f], -1)
            series[base.index[f]] = pd.Categorical.from_codes(code, labels)
    for j in set(range(len(table.names))) - set(series):
        series[j] = np.asarray(table.numbers([j]), float)[:, 0]
    names = list(map(str, table.names))
    rows = pd.DataFrame({j: series[j] for j in range(len(names))})
    return rows.set_axis(names if len(set(names)) == len(names) else list(map(str, rows)), axis=1)


def class_probabilities(expert: Any, X: Any, n_classes: int) -> Float[np.ndarray, "N C"]:
    """Compute probabilities (N, C) of all classes by a classifier that was fitted to indices of classes.

    They are at least .0001, up to rounding of their sum, also of classes that the classifier does not know.

    Raises
    ------
    ValueError
        If the classifier has no finite probabilities of its classes.
    """
    found, classes = np.asarray(expert.predict_proba(X), float), np.asarray(expert.classes_, int)
    if found.shape != (X.shape[0], len(classes)) or not np.isfinite(found).all():
        raise ValueError(f"predict_proba must return finite numbers of shape {(X.shape[0], len(classes))}.")
    proba = np.zeros((len(found), n_classes))
    proba[:, classes] = found
    proba = np.clip(proba, LEAST_PROBABILITY, 1.0)
    return np.asarray(proba / proba.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class ExpertRows(Rows):
    """Terms (N, C, E) of rows by experts."""

    values: np.ndarray

    def empty(self, n_classes: int) -> NoCounts:
        """Return statistics of no rows, which nothing is added to."""
        return NoCounts(np.zeros((n_classes, 0)))

    def count_on_host(self, label: np.ndarray, weight: np.ndarray, n_classes: int) -> tuple[NoCounts, float]:
        """Return the statistics, which count nothing, and Σ weight · log base measure, 0."""
        return self.empty(n_classes), 0.0

    def width(self) -> float:
        """Number of terms of all classes."""
        return float(np.prod(self.values.shape[1:]))

    def piece(self, start: int, stop: int, size: int) -> np.ndarray:
        """(size, C, E) terms of rows start … stop - 1, padded by 0."""
        return pad_rows(self.values[start:stop], size)

    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""
        return replace(self, values=self.values[index])


@dataclass(frozen=True, eq=False)
class ExpertColumns(PlainColumns):
    """Block without columns of its own, whose terms are those of E experts, classifiers that read all columns.

    Parameters
    ----------
    experts : dict {name: classifier}
        Classifiers that were fitted to the indices of the classes.
    columns : tuple of Columns
        Blocks of the columns that experts read, with the levels of these.
    log_class : (C,) array
        log P(class), which is subtracted from the experts' log q(class | row).
    """

    experts: dict[str, Any]
    columns: tuple[Columns, ...]
    log_class: np.ndarray
    kind = "expert"
    family = GivenTerms
    hyperparameter = "experts"
    may_be_suspicious = False

    @property
    def term_names(self) -> Sequence[str]:
        """Names of the experts."""
        return tuple(self.experts)

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> ExpertRows:
        """Return log q(class | row) - log P(class) of each expert; the other blocks report unknown levels."""
        X, n_classes = rows_of_experts(self.columns, table), len(self.log_class)
        if not table.n_rows:
            return ExpertRows(np.zeros((0, n_classes, len(self.experts))))
        log_proba = [np.log(class_probabilities(expert, X, n_classes)) for expert in self.experts.values()]
        return ExpertRows(np.stack(log_proba, axis=-1) - self.log_class[:, None])
