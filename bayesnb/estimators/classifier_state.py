"""State of classifiers: rows are counted on a copy, and the original takes the new state when nothing can fail.

Parts of the rows, such as the halves of cross-fitting, are fitted with one encoding.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb._util.precision import float64
from bayesnb._util.scikit_learn import BaseEstimator
from bayesnb._util.warnings import are_fits_internal, warn
from bayesnb.encoding import (
    Columns,
    Encoding,
    LevelColumns,
    Levels,
    MarginColumns,
    Node,
    RootColumns,
    Rows,
    Table,
    check_labels,
    check_weights,
    ignore_unknown,
    index_of_labels,
    number_columns,
    numeric_columns,
)
from bayesnb.encoding.encoded_rows import NodeRows
from bayesnb.encoding.levels import UNITS
from bayesnb.encoding.priors import class_distribution
from bayesnb.encoding.structure import DEPENDENCE
from bayesnb.encoding.units import check_groups, find_copies, warn_of_copies
from bayesnb.families import Dirichlet, Known, LevelCounts
from bayesnb.fitted import counting, scoring
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.number_cells import NumberCells
from bayesnb.fitted.state import Fitted, NotOfferedError, read_columns
from bayesnb.model import NaiveBayes
from bayesnb.weights.cross_fitting import NumberTerms, TermColumns

if TYPE_CHECKING:
    from bayesnb.estimators.base import NaiveBayesClassifier
    from bayesnb.estimators.weighted import WeightedNB

# == Defaults of hyperparameters ====================================================================

ALPHA = 1.0
"""Dirichlet concentration of a level; 1 is Laplace smoothing."""
CLASS_ALPHA = 1.0
"""Dirichlet concentration of a class."""
CELLS = 64
"""Largest number of cells of a column of numbers."""
DEPENDENCE_CELLS = 6
"""Largest number of cells of a column of numbers that takes part in a structure."""
INCLUSION = 0.5
"""Prior probability that a feature depends on the class."""

# == Counting on a copy =============================================================================

_commit_lock = Lock()
ANY_STATE = object()
"""Argument of `replace_state` for a classifier in whatever state it is."""
NB = TypeVar("NB", bound=BaseEstimator)
Model = TypeVar("Model", bound="NaiveBayesClassifier")


class Batch(NamedTuple):
    """Checked rows of one batch: known classes, table, class indices (N,) and weights (N,).

    `unit` is the (N,) index of the group of each row; None if no groups are given.
    """

    classes: Levels
    table: Table
    label: np.ndarray
    weight: np.ndarray
    unit: np.ndarray | None = None

    def counted(self) -> Batch:
        """Return the batch without rows of weight zero."""
        if (keep := self.weight > 0).all():
            return self
        unit = None if self.unit is None else np.unique(self.unit[keep], return_inverse=True)[1]
        return Batch(self.classes, self.table.take(keep), self.label[keep], self.weight[keep], unit)


class LabelledRows(NamedTuple):
    """Rows with their encoding, their encoded form by block, class indices (N,) and weights (N,).

    `unit` is the (N,) index of the unit of each row, of which random halves are drawn; None before a choice by halves.
    `number_terms` are the terms of columns of numbers by fits to halves, where their densities were compared.
    """

    encoding: Encoding
    rows: tuple[Any, ...]
    table: Table
    label: np.ndarray
    weight: np.ndarray
    unit: np.ndarray | None = None
    number_terms: NumberTerms | None = None

    def add(self, columns: Columns, rows: Rows) -> LabelledRows:
        """Return these rows with one more block of columns."""
        encoding = replace(self.encoding, blocks=(*self.encoding.blocks, columns))
        return self._replace(encoding=encoding, rows=(*self.rows, rows))

    def with_units(self) -> LabelledRows:
        """Return these rows with their units: groups that were given, or else rows of which copies are one unit.

        Warns
        -----
        CopiedRowsWarning
            If rows are copies of others, unless the fit is internal.
        """
        if self.unit is not None:
            return self
        unit = find_copies(self.table)
        if not are_fits_internal():
            warn_of_copies(unit, self.label)
        return self._replace(unit=unit)

    def with_nodes(self, nodes: tuple[Node, ...]) -> LabelledRows:
        """Return these rows with other nodes (child, *parents) in the network, which is the first block."""
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

    def count_levels(self, known: NumberCells | None = None) -> Counted:
        """Return the statistics without undeclared levels that no row has, with cells of numbers as in `known`."""
        return counting.prune(self.count_rows()._replace(cells=self.count_cells(known)))

    def count_cells(self, known: NumberCells | None = None) -> NumberCells | None:
        """Return counts of a sample of the rows in the `known` cells of numbers, or in new cells.

        Without columns of numbers, or without rows and known cells, return None.
        """
        if not (index := number_columns(self.encoding.blocks)):
            return None
        if not self.table.n_rows:
            return known and known.scale(0.0)
        return NumberCells.from_rows(self.table, index, self.encoding.classes, self.label, self.weight, known)

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


def collect_state(nb: BaseEstimator) -> dict[str, object]:
    """Return by name what a file stores beside hyperparameters: fitted attributes, "encoding_" and "statistics_"."""
    state = {name: value for name, value in vars(nb).items() if name.endswith("_")}
    fitted = state.pop("fitted_", None)
    if (model := state.pop("model_", None)) is not None:
        return collect_state(model) | state
    if fitted is None:
        return state
    cells = {} if fitted.cells is None else {"number_cells_": fitted.cells}
    return state | {"encoding_": fitted.encoding, "statistics_": fitted.statistics} | cells


def restore(nb: Any, values: dict[str, object]) -> None:
    """Set the fitted attributes of a classifier from values of a file; ValueError if these contradict each other."""
    nb._restore(values)
    nb._check()


def check(nb: Any) -> None:
    """Raise ValueError if the fitted state of a classifier contradicts itself or the hyperparameters."""
    nb._check()


def copy_unfitted(nb: NB) -> NB:
    """Return a shallow copy without fitted attributes, whose names end in an underscore."""
    unfitted = object.__new__(type(nb))
    vars(unfitted).update({name: v for name, v in vars(nb).items() if name[-1] != "_" or name[0] == "_"})
    return unfitted


def copy_features(nb: NB, source: BaseEstimator) -> NB:
    """Set number, names, units and reading of the columns of `nb` to those of `source`, if it has any; return `nb`."""
    for name in ("n_features_in_", "feature_names_in_", "time_units_", "reading_"):
        if name in vars(source):
            setattr(nb, name, vars(source)[name])
    return nb


def copy_owner(nb: NB, source: BaseEstimator) -> NB:
    """Return the copy of `nb` that its fitted state keeps: hyperparameters, and the columns of `source`."""
    owner = copy_features(copy_unfitted(nb), source)
    # A pipeline of scikit-learn 1.9 lends its steps the context of its callbacks while they fit.
    vars(owner).pop("_parent_callback_ctx", None)
    return owner


def fit_to_counts(nb: Model, source: BaseEstimator, counted: Counted) -> Model:
    """Return a fitted copy of `nb` with the given counts, and with number and names of columns from `source`."""
    fitted = copy_features(copy_unfitted(nb), source)
    fitted.fitted_ = fitted._state(counted)
    return fitted


def without_margins(nb: Model) -> Model:
    """Return `nb`, or a fitted copy, without the tables of levels given the class alone beside its network."""
    plain = copy.copy(nb)
    if not plain._counts_margins:
        return nb
    encoding, statistics, cells = plain.fitted_.counted
    plain._counts_margins = False
    keep = [columns.role is None or columns.are_cells().any() for columns in encoding.blocks]
    blocks, counts = tuple(compress(encoding.blocks, keep)), tuple(compress(statistics.blocks, keep))
    plain.fitted_ = plain._state(Counted(replace(encoding, blocks=blocks), replace(statistics, blocks=counts), cells))
    return plain


def count_batch(
    nb: NaiveBayesClassifier, X: object, y: object, sample_weight: object, classes: Levels | None = None
) -> Counted:
    """Encode one batch of rows and count its sufficient statistics; see `read_batch`.

    An unfitted classifier chooses its columns by these rows, and stores their number and names. The batch may have no
    rows.
    """
    known = nb.fitted_.cells if is_fitted(nb) else None
    return nb._encode(read_batch(nb, X, y, sample_weight, classes, least_rows=0)).count_levels(known)


def read_batch(
    nb: BaseEstimator,
    X: object,
    y: object,
    sample_weight: object,
    classes: Levels | None = None,
    groups: object = None,
    *,
    least_rows: int = 1,
) -> Batch:
    """Check one batch of rows; an unfitted classifier stores number and names of the columns.

    `classes` are the known classes, by default the labels. Raises ValueError if the rows, the labels, the weights or
    the groups cannot be used, or if there are fewer than `least_rows` rows.
    """
    table = read_columns(nb, X, reset=not is_fitted(nb), least_rows=0)
    if table.n_rows < least_rows:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={(0, len(table.names))}) while a minimum of 1 is required by "
            f"{type(nb).__name__}. For the prior alone, call partial_fit(X, [], classes=[...]) with declared levels."
        )
    labels, label = check_labels(y, table.n_rows, type(nb).__name__)
    classes = labels if classes is None else classes
    weight = check_weights(sample_weight, table.n_rows)
    unit = None if groups is None else check_groups(groups, table.n_rows)
    return Batch(classes, table, index_of_labels(classes, labels, label), weight, unit)


def warn_of_dates(nb: BaseEstimator) -> None:
    """Warn if a classifier counts dates as numbers."""
    dates = [name for name, unit in vars(nb).get("time_units_", {}).items() if unit == UNITS["date"]]
    if dates:
        warn(
            f"{type(nb).__name__}: the dates of column {shown(dates[0])}{' and others' * (len(dates) > 1)} count as "
            "numbers, in days since 1970. Make columns of hours, weekdays or months if classes may depend on them."
        )


def read_known_columns(
    known: NaiveBayesClassifier, X: object, y: object, sample_weight: object, groups: object = None
) -> Batch:
    """Check rows whose columns are those of `known`, a fitted classifier; the classes are the labels."""
    batch = read_batch(known, X, y, sample_weight, groups=groups)
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


def unfitted_model(nb: NaiveBayesClassifier | WeightedNB, X: object) -> NaiveBayesClassifier:
    """Return an unfitted copy for counting rows; for a `WeightedNB` a copy of its estimator, which counts margins too.

    X matters only for the default estimator of a `WeightedNB`: `MultinomialNB` if X is sparse, else `KDB`.
    """
    return nb._unfitted_model(X)


def commit_counts(nb: NB, updated: Any, model: NaiveBayesClassifier) -> NB:
    """Give `nb` the counts of `model`, which `unfitted_model` has made of `updated`, a copy of `nb`; return `nb`."""
    model.fitted_.require_usable()
    model.fitted_.encoding.warn_of_types()
    model.fitted_.encoding.warn_of_uncut_numbers(None)
    fitted: NB = updated._with_counts_of(model)
    return replace_state(nb, fitted)


# == Fits of a classifier to parts of rows that are encoded once, such as random halves ============


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows that are encoded once, and fits of a classifier to parts of them, such as random halves.

    The fits have the levels, cells and densities of a classifier that was fitted to all rows, and learn their own arcs.

    Parameters
    ----------
    nb : classifier
        Unfitted copy of the classifier.
    known : classifier
        Classifier that was fitted to all rows.
    batch : LabelledRows
        Rows of positive weight, without arcs.
    position : (N',) int array
        Position of each of these rows among the N rows.
    """

    nb: NaiveBayesClassifier
    known: NaiveBayesClassifier
    batch: LabelledRows
    position: np.ndarray

    @classmethod
    def from_rows(cls, nb: Model, known: Model, every: Batch, encoded: LabelledRows | None = None) -> Parts:
        """Encode rows for fits of `nb`, with the columns of `known`; values that are not levels become missing.

        `encoded` are the rows of positive weight by which `known` was fitted; default: `every` is other rows.
        """
        batch = encoded or LabelledRows(known.encoding_, (), *every.counted()[1:])
        table = batch.table
        encoding = replace(known._without_arcs(known.encoding_, table), classes=every.classes)
        if len(batch.rows) < len(encoding.blocks):
            rows, terms = encoding.rows(table, ignore_unknown), None
        else:
            pairs = zip(encoding.blocks, batch.rows, strict=False)
            rows, terms = tuple(_rows_under(*pair, table) for pair in pairs), batch.number_terms
        encoded = batch._replace(encoding=encoding, rows=rows, number_terms=terms)
        return cls(nb, known, nb._add_densities(encoded), np.flatnonzero(every.weight > 0))

    def __call__(self, weight: np.ndarray) -> NaiveBayesClassifier:
        """Return a copy of the classifier fitted to the rows under these weights (N,)."""
        batch = self.nb._with_arcs(self.batch._replace(weight=weight[self.position]))
        return self.fit(self.nb._with_margins(batch))

    def fit(self, batch: LabelledRows) -> NaiveBayesClassifier:
        """Return a copy of the classifier with the counts of these encoded rows."""
        return fit_to_counts(self.nb, self.known, batch.count_rows())

    @cached_property
    def unit(self) -> np.ndarray:
        """(N',) index of the unit of each row, of which random halves are drawn; see `LabelledRows.with_units`."""
        return np.asarray(self.batch.with_units().unit)

    @cached_property
    def encodings(self) -> list[Encoding]:
        """Encoding of each candidate for a model of all rows, from the simplest on."""
        return self.nb._candidates(self.batch, self.known)

    def fit_candidate(self, k: int) -> NaiveBayesClassifier:
        """Return the k-th candidate, with arcs, fitted to all rows."""
        return self.fit(self.nb._with_margins(self.batch.with_nodes(self.encodings[k].blocks[0].network.nodes)))

    @property
    def log_class(self) -> np.ndarray:
        """(C,) log posterior mean class probabilities of all rows, as `FittedHalf.log_class` of a half."""
        (classes, label, weight), nb = (self.batch.encoding.classes, *self.batch[3:5]), self.nb
        prior = class_distribution(nb.class_prior, nb.class_alpha, classes)
        return _log_class(prior, classes, np.bincount(label, weight, len(classes)))

    def half(self, weight: np.ndarray, rows: np.ndarray) -> FittedHalf | ContextHalf:
        """Fit all candidates to the rows under these weights (N',), for the terms of the rows at `rows` (n,).

        Context trees are computed from the rows, without their tables.
        """
        batch = self.nb._with_arcs(self.batch._replace(weight=weight))
        if self.nb._has_context_trees and batch.encoding.blocks[0].network is not None:
            nodes = [encoding.blocks[0].network.nodes for encoding in self.encodings]
            return ContextHalf(self.nb, batch, [max(map(len, of_one), default=1) - 1 for of_one in nodes], rows)
        batch = self.nb._with_margins(batch)
        return FittedHalf(self.fit(batch).fitted_, batch)


def _rows_under(columns: Columns, rows: Rows, table: Table) -> Rows:
    """Return rows under these columns, which are those that encoded them, but for arcs and levels without rows."""
    base = rows.base if isinstance(rows, NodeRows) else rows
    if not np.array_equal(getattr(base, "sizes", columns.base.sizes()), columns.base.sizes()):
        return columns.rows(table, ignore_unknown)
    return base if columns.network is None else columns.network.rows_of_base(base)


class FittedHalf(NamedTuple):
    """State of the only candidate, and all rows under its encoding."""

    fitted: Fitted
    batch: LabelledRows

    @property
    def log_class(self) -> np.ndarray:
        """(C,) log posterior mean class probabilities; a fixed class prior is replaced by Dirichlet(1)."""
        fitted = self.fitted
        return _log_class(fitted.prior.class_prior, fitted.encoding.classes, fitted.statistics.class_count)

    def terms(self, candidates: Sequence[TermColumns], index: np.ndarray) -> list[np.ndarray]:
        """(n, C, T') terms of the rows at `index` (n,), in ascending order."""
        rows = tuple(r.take(index) for r in self.batch.rows)
        return [columns.compute(self.fitted, rows, len(index)) for columns in candidates]


class ContextHalf:
    """Fit of nested candidates with context trees to the rows of positive weight of a batch with arcs.

    Parameters
    ----------
    nb : StructuredNB
        Classifier whose hyperparameters are used.
    batch : LabelledRows
        All rows.
    limits : sequence of int
        Largest number of parents of a column in each candidate.
    rows : (n,) int array
        Positions of the rows that have terms, in ascending order.
    """

    def __init__(self, nb: Any, batch: LabelledRows, limits: Sequence[int], rows: np.ndarray) -> None:
        batch = nb._keep_used(batch)
        encoding, classes = batch.encoding, batch.encoding.classes
        network = encoding.blocks[0].network
        cells = batch.rows[0]
        names, n_classes = network.base.names, len(classes)
        alone = batch._replace(encoding=replace(encoding, blocks=encoding.blocks[1:]), rows=batch.rows[1:])
        self.numbers: np.ndarray | None = None
        known, known_names = batch.number_terms, list[str]()
        if known and (numbers := known.of_half(batch.weight > 0, rows)) is not None:
            used = [f for f, name in enumerate(known.names) if name in network.names]
            self.numbers, known_names = numbers[..., used], [known.names[f] for f in used]
            alone = alone._replace(encoding=replace(encoding, blocks=()), rows=())
        if levels := sorted({child for child, *_ in network.nodes} - {*number_positions(network.base)}):
            kind = MarginColumns if nb._counts_margins else RootColumns
            alone = alone.add(network.base.select(levels, kind), cells.base.select(levels))
        class_prior = class_distribution(nb.class_prior, nb.class_alpha, classes)
        priors = tuple(nb._margin_prior(columns, classes) for columns in alone.encoding.blocks)
        nested = network.sorted_by_parents()
        self.alone, self.rows, self.limits = alone, rows, limits
        self.margins = alone.posterior(NaiveBayes(class_prior, priors))
        self.names = (*known_names, *alone.encoding.term_names)
        self.contexts = nested.contexts_of_rows(cells.base, nb.alpha, batch.label, batch.weight, n_classes, rows)
        self.order, self.children = ([names[child] for child, *_ in of.nodes] for of in (network, nested))
        self.log_class = _log_class(class_prior, classes, np.bincount(batch.label, batch.weight, n_classes))

    def terms(self, candidates: Sequence[TermColumns], index: np.ndarray) -> list[np.ndarray]:
        """(n, C, T') terms of the rows at `index` (n,) by each candidate."""
        margins, dependences = self._terms(index)
        arranged = []
        for columns, most in zip(candidates, self.limits, strict=True):
            has_dependences = most and dependences
            values = np.concatenate([margins, dependences[most - 1]], axis=-1) if has_dependences else margins
            names = [*self.names, *(DEPENDENCE.format(child) for child in self.children if has_dependences)]
            is_dependence = np.arange(len(names)) >= len(self.names)
            arranged.append(columns.arrange(names, values, np.array([np.zeros_like(is_dependence), is_dependence])))
        return arranged

    def nested_joints(self, index: np.ndarray) -> Iterator[np.ndarray]:
        """Yield for each candidate log p(class, cells) (n, C, 1 + F) of the rows at `index`.

        The first entry is for the columns outside the network, and the others are for these and the first 1, 2, … F
        columns of the network.
        """
        margins, dependences = self._terms(index)
        names, log_class = self.names, scoring.log_class(self.margins, "predictive")
        outside = margins[..., [t for t, name in enumerate(names) if name not in self.order]].sum(axis=-1)
        position = [names.index(name) for name in self.order]
        children = [self.order.index(name) for name in self.children]
        for most in self.limits:
            nodes = margins[..., position]
            if most and dependences:
                nodes[..., children] += dependences[most - 1]
            yield np.cumsum(np.concatenate([(outside + log_class)[..., None], nodes], axis=-1), axis=-1)

    def _terms(self, index: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """(n, C, T) margins of rows, and their dependences (n, C, H) for up to 1, 2, … parents."""
        encoding, rows = self.alone.encoding, tuple(r.take(index) for r in self.alone.rows)
        kept, most = np.searchsorted(self.rows, index), max(self.limits)
        margins = [] if self.numbers is None else [self.numbers[kept]]
        if encoding.blocks:
            reading = scoring.read(encoding, self.margins, "predictive")
            margins.append(scoring.terms(encoding, reading, rows, len(index)))
        dependences = zip(*(contexts.log_dependences(kept, most) for contexts in self.contexts), strict=True)
        return np.concatenate(margins, axis=-1), [np.concatenate(of_depth, axis=-1) for of_depth in dependences]


def number_positions(base: LevelColumns) -> list[int]:
    """Return the positions of the columns whose levels are cells of numbers."""
    return [j for j, cuts in enumerate(base.cuts) if cuts is not None]


def _log_class(prior: Dirichlet | Known, classes: Levels, class_count: np.ndarray) -> np.ndarray:
    """Return (C,) log posterior mean class probabilities; a fixed class prior is replaced by Dirichlet(1).

    Biases that were fitted under another class prior than the rows have would undo it.
    """
    prior = class_distribution(None, 1.0, classes) if prior.fixed else prior
    return np.asarray(scoring.plug_in(float64(prior.update)(LevelCounts(class_count[None]))).log_theta[0])
