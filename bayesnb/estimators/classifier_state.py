"""State of classifiers: rows are counted on a copy, and the original takes the new state when nothing can fail."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import compress
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from bayesnb._util.arguments import shown
from bayesnb._util.precision import float64
from bayesnb._util.warnings import are_fits_internal, warn
from bayesnb.encoding import (
    Columns,
    Encoding,
    Levels,
    Node,
    Rows,
    Table,
    check_labels,
    check_weights,
    index_of_labels,
    numeric_columns,
)
from bayesnb.encoding.levels import UNITS
from bayesnb.fitted import counting
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import NotOfferedError, read_columns
from bayesnb.model import NaiveBayes
from bayesnb.weights.cross_fitting import NumberTerms

_commit_lock = Lock()
ANY_STATE = object()
"""Argument of `replace_state` for a classifier in whatever state it is."""
NB = TypeVar("NB", bound=BaseEstimator)


class Batch(NamedTuple):
    """Checked rows of one batch: known classes, table, class indices (N,) and weights (N,)."""

    classes: Levels
    table: Table
    label: np.ndarray
    weight: np.ndarray

    def counted(self) -> Batch:
        """Return the batch without rows of weight zero."""
        if (keep := self.weight > 0).all():
            return self
        return self._replace(table=self.table.take(keep), label=self.label[keep], weight=self.weight[keep])


class LabelledRows(NamedTuple):
    """Rows with their encoding, their encoded form by block, class indices (N,) and weights (N,).

    `number_terms` are the terms of columns of numbers by fits to halves, where their densities were compared.
    """

    encoding: Encoding
    rows: tuple[Any, ...]
    table: Table
    label: np.ndarray
    weight: np.ndarray
    number_terms: NumberTerms | None = None

    def add(self, columns: Columns, rows: Rows) -> LabelledRows:
        """Return these rows with one more block of columns."""
        encoding = replace(self.encoding, blocks=(*self.encoding.blocks, columns))
        return self._replace(encoding=encoding, rows=(*self.rows, rows))

    def with_nodes(self, nodes: tuple[Node, ...]) -> LabelledRows:
        """Return these rows with other nodes (child, *parents) in the network, which is the first block."""
        cells: Any
        (network, *blocks), (cells, *rows) = self.encoding.blocks, self.rows
        columns = replace(network.network, nodes=nodes)
        encoding = replace(self.encoding, blocks=(columns, *blocks))
        return self._replace(encoding=encoding, rows=(columns.rows_of_base(cells.base), *rows))

    def count_rows(self) -> Counted:
        """Return the sufficient statistics of the rows of positive weight."""
        counted = self.weight > 0
        rows = self.rows if counted.all() else tuple(r.take(counted) for r in self.rows)
        label, weight = self.label[counted], self.weight[counted]
        return Counted(self.encoding, counting.count_rows(self.encoding, rows, label, weight))

    def count_levels(self) -> Counted:
        """Return the statistics without undeclared levels that no row has."""
        return counting.prune(self.count_rows())

    def posterior(self, prior: NaiveBayes) -> NaiveBayes:
        """Return the posterior given the rows of positive weight, computed by NumPy for use within a call."""
        statistics = self.count_rows().statistics
        return float64(lambda: prior.derive(statistics).update(statistics))()


def is_fitted(nb: object) -> bool:
    """Return whether a classifier has counted rows."""
    return "fitted_" in vars(nb)


def raise_missing(nb: object, name: str) -> Any:
    """Raise the AttributeError of an attribute that `nb` lacks; `__getattr__` of estimators.

    Python calls `__getattr__` also after a property has raised AttributeError. Before `fit` the error names the
    property, and not the attribute that the property reads; a NotOfferedError is raised as it is.
    """
    try:
        return object.__getattribute__(nb, name)
    except AttributeError as error:
        is_unfitted = vars(nb).keys().isdisjoint(("fitted_", "estimator_"))
        if isinstance(error, NotOfferedError) or not is_unfitted or name[0] == "_" or name[-1] != "_":
            raise
    raise AttributeError(f"{type(nb).__name__!r} object has no attribute {name!r} before fit. Call fit first.")


def collect_state(nb: BaseEstimator) -> dict[str, Any]:
    """Return by name what a file stores beside hyperparameters: fitted attributes, "encoding_" and "statistics_"."""
    state = {name: value for name, value in vars(nb).items() if name.endswith("_")}
    fitted = state.pop("fitted_", None)
    if (model := state.pop("model_", None)) is not None:
        return collect_state(model) | state
    return state if fitted is None else state | {"encoding_": fitted.encoding, "statistics_": fitted.statistics}


def restore(nb: Any, values: dict[str, Any]) -> None:
    """Set the fitted attributes of a classifier from values of a file; ValueError if these contradict each other."""
    nb._restore(values)
    nb._check()


def check(nb: Any) -> None:
    """Raise ValueError if the fitted state of a classifier contradicts itself or the hyperparameters."""
    nb._check()


def copy_unfitted(nb: NB) -> NB:
    """Return a shallow copy without fitted attributes, whose names end in an underscore."""
    unfitted = copy.copy(nb)
    for name in [name for name in vars(nb) if name.endswith("_") and not name.startswith("_")]:
        delattr(unfitted, name)
    return unfitted


def copy_features(nb: NB, source: BaseEstimator) -> NB:
    """Set number, names and time units of the columns of `nb` to those of `source`, where it has them; return `nb`."""
    for name in ("n_features_in_", "feature_names_in_", "time_units_"):
        if name in vars(source):
            setattr(nb, name, vars(source)[name])
    return nb


def fit_to_counts(nb: NB, source: Any, counted: Counted) -> NB:
    """Return a fitted copy of `nb` with the given counts, and with number and names of columns from `source`."""
    fitted = copy_features(copy_unfitted(nb), source)
    fitted.fitted_ = fitted._state(counted)
    return fitted


def without_margins(nb: NB) -> NB:
    """Return `nb`, or a fitted copy, without the tables of levels given the class alone beside its network."""
    if not nb._counts_margins:
        return nb
    plain, (encoding, statistics) = copy.copy(nb), nb.fitted_.counted
    plain._counts_margins = False
    keep = [columns.role is None or columns.are_cells().any() for columns in encoding.blocks]
    blocks, counts = tuple(compress(encoding.blocks, keep)), tuple(compress(statistics.blocks, keep))
    plain.fitted_ = plain._state(Counted(replace(encoding, blocks=blocks), replace(statistics, blocks=counts)))
    return plain


def count_batch(nb: Any, X: object, y: object, sample_weight: object, classes: Levels | None = None) -> Counted:
    """Encode one batch of rows and count its sufficient statistics; see `read_batch`.

    An unfitted classifier chooses its columns by these rows, and stores their number and names.
    """
    return nb._encode(read_batch(nb, X, y, sample_weight, classes)).count_levels()


def read_batch(nb: Any, X: object, y: object, sample_weight: object, classes: Levels | None = None) -> Batch:
    """Check one batch of rows; an unfitted classifier stores number and names of the columns.

    `classes` are the known classes, by default the labels. Raises ValueError if the rows, the labels or the weights
    cannot be used.
    """
    table = read_columns(nb, X, reset=not is_fitted(nb))
    labels, label = check_labels(y, table.n_rows, type(nb).__name__)
    classes = labels if classes is None else classes
    weight = check_weights(sample_weight, table.n_rows)
    return Batch(classes, table, index_of_labels(classes, labels, label), weight)


def warn_of_dates(nb: Any) -> None:
    """Warn if a classifier counts dates as numbers."""
    dates = [name for name, unit in vars(nb).get("time_units_", {}).items() if unit == UNITS["date"]]
    if dates:
        warn(
            f"{type(nb).__name__}: the dates of column {shown(dates[0])}{' and others' * (len(dates) > 1)} count as "
            "numbers, in days since 1970. Make columns of hours, weekdays or months if classes may depend on them."
        )


def warn_of_suspicious_columns(nb: Any, batch: Batch) -> None:
    """Warn of the suspicious columns of the rows to which a classifier was fitted, unless the fit is internal."""
    if not are_fits_internal():
        nb.encoding_.warn_of_suspicious_columns(batch.table, batch.label)


def read_known_columns(known: Any, X: object, y: object, sample_weight: object) -> Batch:
    """Check rows whose columns are those of `known`, a fitted classifier; the classes are the labels."""
    batch = read_batch(known, X, y, sample_weight)
    numeric = numeric_columns(known.fitted_.encoding.blocks)
    return batch._replace(table=replace(batch.table, numeric=numeric))


def replace_state(nb: NB, updated: NB, before: object = ANY_STATE) -> NB:
    """Replace all attributes of `nb` by those of its updated copy, and return `nb`.

    Raises
    ------
    RuntimeError
        If `before` is given and `nb.fitted_` is another object now: another thread has changed the classifier.
    """
    with _commit_lock:
        if before is not ANY_STATE and vars(nb).get("fitted_") is not before:
            raise RuntimeError(
                f"This {type(nb).__name__} was changed by another thread during the call, which therefore changed "
                "nothing. Use a lock, or a separate estimator for each thread (bayesnb.distributed.fit merges counts)."
            )
        for name in set(vars(nb)) - set(vars(updated)):
            delattr(nb, name)
        vars(nb).update(vars(updated))
    return nb


def make_counter(nb: Any, X: object) -> Any:
    """Return an unfitted copy for counting rows; for a `WeightedNB` a copy of its estimator, which counts margins too.

    X matters only for the default estimator of a `WeightedNB`: `MultinomialNB` if X is sparse, else `KDB`.
    """
    return nb._make_counter(X)


def commit_counter(nb: NB, updated: Any, model: Any) -> NB:
    """Give `nb` the counts of `model`, which `make_counter` has made of `updated`, a copy of `nb`; return `nb`."""
    model.fitted_.require_usable()
    fitted: NB = updated._with_counter(model)
    return replace_state(nb, fitted)
