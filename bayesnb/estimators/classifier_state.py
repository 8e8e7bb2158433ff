"""State of classifiers: rows are counted on a copy, and the original takes the new state when nothing can fail."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import compress
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from bayesnb import counting
from bayesnb._util.arguments import shown
from bayesnb._util.precision import float64
from bayesnb._util.warnings import are_fits_internal, warn
from bayesnb.counting import Counted
from bayesnb.encoding import (
    Columns,
    Encoding,
    Levels,
    Node,
    Rows,
    Table,
    check_labels,
    check_weights,
    declare_levels,
    ignore_unknown,
    index_of_labels,
    numeric_columns,
)
from bayesnb.encoding.column_kinds import UNITS
from bayesnb.fitted import NotOfferedError
from bayesnb.model import NaiveBayes
from bayesnb.selection.density_gains import NumberTerms

if TYPE_CHECKING:
    from bayesnb.estimators.base import NaiveBayesClassifier

_commit_lock = Lock()
_ANY = object()
NB = TypeVar("NB", bound="NaiveBayesClassifier")
Any_NB = TypeVar("Any_NB", bound=BaseEstimator)


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
        return Batch(self.classes, self.table.take(keep), self.label[keep], self.weight[keep])


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
        (network, *blocks), (cells, *rows) = self.encoding.blocks, self.rows
        columns = replace(network.network, nodes=nodes)
        cells = replace(cells, nodes=nodes, sizes=columns.sizes())
        return self._replace(encoding=replace(self.encoding, blocks=(columns, *blocks)), rows=(cells, *rows))

    def count_rows(self) -> Counted:
        """Return the sufficient statistics of the rows of positive weight."""
        rows, label, weight = self.rows, self.label, self.weight
        if not (counted := weight > 0).all():
            rows, label, weight = tuple(r.take(counted) for r in rows), label[counted], weight[counted]
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


def copy_unfitted(nb: Any_NB) -> Any_NB:
    """Return a shallow copy without fitted attributes, whose names end in an underscore."""
    unfitted = copy.copy(nb)
    for name in [name for name in vars(nb) if name.endswith("_") and not name.startswith("_")]:
        delattr(unfitted, name)
    return unfitted


def copy_without_state(nb: Any_NB) -> Any_NB:
    """Return a shallow copy without counts (`fitted_`, `model_`), with number and names of the columns of `fit`."""
    unfitted = copy.copy(nb)
    for name in ("fitted_", "model_"):
        vars(unfitted).pop(name, None)
    return unfitted


def copy_features(nb: BaseEstimator, source: BaseEstimator) -> None:
    """Set number, names and time units of the columns of `nb` to those of `source`, where `source` has them."""
    for name in ("n_features_in_", "feature_names_in_", "time_units_"):
        if name in vars(source):
            setattr(nb, name, vars(source)[name])


def fit_to_counts(nb: NB, source: NaiveBayesClassifier, counted: Counted) -> NB:
    """Return a fitted copy of `nb` with the given counts, and with number and names of columns from `source`."""
    fitted = copy_unfitted(nb)
    copy_features(fitted, source)
    fitted.fitted_ = fitted._state(counted)
    return fitted


def without_margins(nb: NB) -> NB:
    """Return `nb`, or a fitted copy, without the tables of levels given the class alone beside its network."""
    if not nb._counts_margins:
        return nb
    plain, (encoding, statistics) = copy.copy(nb), nb.fitted_.counted
    plain._counts_margins = False
    keep = [columns.role is None or bool(getattr(columns, "cuts", ())) for columns in encoding.blocks]
    blocks, counts = tuple(compress(encoding.blocks, keep)), tuple(compress(statistics.blocks, keep))
    plain.fitted_ = plain._state(Counted(replace(encoding, blocks=blocks), replace(statistics, blocks=counts)))
    return plain


def count_batch(
    nb: NaiveBayesClassifier, X: object, y: object, sample_weight: object, classes: Levels | None = None
) -> Counted:
    """Encode one batch of rows and count its sufficient statistics; see `read_batch`.

    An unfitted classifier chooses its columns by these rows, and stores their number and names.

    Parameters
    ----------
    nb : classifier
        Classifier.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows of features.
    y : array-like of shape (N,)
        Labels of the rows.
    sample_weight : array-like of shape (N,), optional
        Weights of the rows; default: 1.
    classes : Levels, optional
        Known classes; default: the labels.
    """
    return encode_batch(nb, *read_batch(nb, X, y, sample_weight, classes)).count_levels()


def read_batch(
    nb: NaiveBayesClassifier, X: object, y: object, sample_weight: object, classes: Levels | None = None
) -> Batch:
    """Check one batch of rows; only an unfitted classifier is changed, which stores number and names of the columns.

    Raises
    ------
    ValueError
        If the rows, the labels or the weights cannot be used.
    """
    table = nb._table(X, reset=not is_fitted(nb))
    labels, label = check_labels(y, table.n_rows, type(nb).__name__)
    classes = labels if classes is None else classes
    weight = check_weights(sample_weight, table.n_rows)
    return Batch(classes, table, index_of_labels(classes, labels, label), weight)


def warn_of_dates(nb: NaiveBayesClassifier) -> None:
    """Warn if a classifier counts dates as numbers."""
    dates = [name for name, unit in vars(nb).get("time_units_", {}).items() if unit == UNITS["date"]]
    if dates:
        warn(
            f"{type(nb).__name__}: the dates of column {shown(dates[0])}{' and others' * (len(dates) > 1)} count "
            "as numbers, in days since 1970. Hours of the day, weekdays and months are columns of their own: make "
            "them of the dates if classes may depend on them."
        )


def warn_of_suspicious_columns(nb: NaiveBayesClassifier, batch: Batch) -> None:
    """Warn of the suspicious columns of the rows to which a classifier was fitted, unless the fit is internal."""
    if not are_fits_internal():
        nb.encoding_.warn_of_suspicious_columns(batch.table, batch.label)


def encode_batch(
    nb: NaiveBayesClassifier,
    classes: Levels,
    table: Table,
    label: np.ndarray,
    weight: np.ndarray,
    columns: tuple[Columns, ...] | None = None,
) -> LabelledRows:
    """Encode the rows of positive weight of a checked table, with arcs and densities if the classifier learns any.

    Parameters
    ----------
    nb : classifier
        Classifier that makes the columns.
    classes : Levels
        Classes.
    table : Table
        Rows.
    label : (N,) int array
        Index of the class of each row.
    weight : (N,) array
        Weight of each row; rows of weight zero are left out.
    columns : tuple of Columns, optional
        Columns to learn from, where more rows than those of `table` choose them. Default: the columns of the fitted
        classifier, or those that an unfitted one makes of `table`.
    """
    classes, table, label, weight = Batch(classes, table, label, weight).counted()
    if columns is None:
        columns = nb.fitted_.encoding.blocks if is_fitted(nb) else nb._columns(table)
    table = replace(table, numeric=(numeric := numeric_columns(columns)))
    if not is_fitted(nb) and (time_units := table.find_time_units(compress(range(len(numeric)), numeric))):
        nb.time_units_ = time_units
    learned, rows = Encoding(classes, columns).keep_levels(nb._concentrations).learn(table)
    return nb._structured(LabelledRows(learned, rows, table, label, weight))


def refit(nb: NB, known: NB, every: Batch) -> tuple[NB, LabelledRows]:
    """Fit a copy of a classifier to rows that `read_known_columns` has checked, with the levels of `known`.

    Structure, cells and densities are learned from these rows. The copy is returned with its encoded rows.
    """
    nb, batch = copy_unfitted(nb), every.counted()
    learned = [block.learn(batch.table, ignore_unknown)[0] for block in nb._columns(batch.table)]
    columns = declare_levels(learned, known.fitted_.encoding.blocks)
    encoded = encode_batch(nb, *batch, columns)
    return fit_to_counts(nb, known, encoded.count_levels()), encoded


def read_known_columns(
    nb: NaiveBayesClassifier, known: NaiveBayesClassifier, X: object, y: object, sample_weight: object
) -> Batch:
    """Check rows whose columns are those of `known`, a fitted classifier."""
    table = replace(known._table(X), numeric=numeric_columns(known.fitted_.encoding.blocks))
    classes, label = check_labels(y, table.n_rows, type(nb).__name__)
    return Batch(classes, table, label, check_weights(sample_weight, table.n_rows))


def commit(nb: NB, updated: NB, counted: Counted, before: object = _ANY) -> NB:
    """Fit `updated`, a copy of `nb`, to these counts, and return `nb` with the copy's attributes; see `replace_state`.

    Raises
    ------
    ValueError
        If the numbers of a column are too large or too small, or the prior cannot be used; `nb` is left as it was.
    """
    fitted = updated._state(counted)
    fitted.require_usable()
    updated.fitted_ = fitted
    return replace_state(nb, updated, before)


def replace_state(nb: Any_NB, updated: Any_NB, before: object = _ANY) -> Any_NB:
    """Replace all attributes of `nb` by those of its updated copy, and return `nb`.

    Raises
    ------
    RuntimeError
        If `before` is given and `nb.fitted_` is another object now: another thread has changed the classifier.
    """
    with _commit_lock:
        if before is not _ANY and vars(nb).get("fitted_") is not before:
            raise RuntimeError(
                f"This {type(nb).__name__} was changed by another thread during the call. To keep the counts of that "
                "thread, this call changed nothing. Use a lock around the calls, or let each thread "
                "fit a separate estimator (bayesnb.distributed.fit merges such counts)."
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


def commit_counter(nb: Any_NB, updated: Any, model: NaiveBayesClassifier) -> Any_NB:
    """Give `nb` the counts of `model`, which `make_counter` has made of `updated`, a copy of `nb`; return `nb`."""
    model.fitted_.require_usable()
    fitted: Any_NB = updated._with_counter(model)
    return replace_state(nb, fitted)
