"""Fits of a classifier to parts of rows that are encoded once, such as random halves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from bayesnb import scoring
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding, MarginColumns, RootColumns, Rows, Table, ignore_unknown, select_level_columns
from bayesnb.encoding.priors import class_distribution
from bayesnb.encoding.term_map import DEPENDENCE
from bayesnb.estimators import classifier_state
from bayesnb.estimators.classifier_state import LabelledRows
from bayesnb.families import ContextsOfRows, LevelCounts
from bayesnb.fitted import Fitted
from bayesnb.model import NaiveBayes
from bayesnb.prediction.cross_fitting import Half, TermColumns

if TYPE_CHECKING:
    from bayesnb.estimators.base import NaiveBayesClassifier
    from bayesnb.estimators.network_base import StructuredNB

NB = TypeVar("NB", bound="NaiveBayesClassifier")


@dataclass(frozen=True, eq=False)
class Parts(Generic[NB]):
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

    nb: NB
    known: NB
    batch: LabelledRows
    position: np.ndarray

    @classmethod
    def from_rows(
        cls,
        nb: NB,
        known: NB,
        X: object,
        y: object,
        sample_weight: object,
        encoded: LabelledRows | None = None,
    ) -> Parts[NB]:
        """Encode rows for fits of `nb`, with the columns of `known`; values that are not levels become missing.

        `encoded` are the rows as `known` has encoded them, if it was fitted to these.
        """
        every = classifier_state.read_known_columns(nb, known, X, y, sample_weight)
        batch = every.counted()
        encoding = replace(known._without_arcs(known.encoding_, batch.table), classes=every.classes)
        if encoded is None or len(encoded.rows) < len(encoding.blocks):
            rows, terms = encoding.rows(batch.table, ignore_unknown), None
        else:
            pairs = zip(encoding.blocks, encoded.rows, strict=False)
            rows, terms = tuple(_rows_under(*pair, batch.table) for pair in pairs), encoded.number_terms
        stored = tuple(r.stored() for r in rows)
        encoded = LabelledRows(encoding, stored, batch.table, batch.label, batch.weight, terms)
        return cls(nb, known, nb._add_densities(encoded), np.flatnonzero(every.weight > 0))

    def __call__(self, weight: np.ndarray) -> NB:
        """Return a copy of the classifier fitted to the rows under these weights (N,)."""
        batch = self.nb._with_arcs(self.batch._replace(weight=weight[self.position]))
        return self.fit(self.nb._with_margins(batch))

    def fit(self, batch: LabelledRows) -> NB:
        """Return a copy of the classifier with the counts of these encoded rows."""
        return classifier_state.fit_to_counts(self.nb, self.known, batch.count_rows())

    def fit_candidate(self, k: int) -> NB:
        """Return the k-th candidate, with arcs, fitted to all rows."""
        network: Any = self.encodings[k].blocks[0].network
        return self.fit(self.nb._with_margins(self.batch.with_nodes(network.nodes)))

    # -- for cross-fitting -----------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the type of the classifier, for messages."""
        return type(self.nb).__name__

    @property
    def members(self) -> Sequence[str] | None:
        """Names of the members of an average of models, or None."""
        average = self.known.fitted_.average
        return None if average is None else average.names

    @cached_property
    def encodings(self) -> list[Encoding]:
        """Encoding of each candidate for a model of all rows, from the simplest on."""
        return self.nb._candidates(self.batch, self.known)

    @property
    def cells_per_row(self) -> int:
        """Number of cells of a row, on average, that differ from what most rows have."""
        table = self.batch.table
        return 1 + int(table.data.nnz) // max(1, table.n_rows) if table.is_sparse else len(table.names)

    def half(self, weight: np.ndarray, rows: np.ndarray) -> Half:
        """Fit all candidates to the rows under these weights (N',), for the terms of the rows at `rows` (n,)."""
        return self.nb._half(self, self.nb._with_arcs(self.batch._replace(weight=weight)), rows)


def _rows_under(columns: Any, rows: Any, table: Table) -> Rows:
    """Return rows under these columns, which are those that encoded them, but for arcs and levels without rows."""
    base = rows if columns.network is None else rows.base
    if not np.array_equal(getattr(base, "sizes", columns.base.sizes()), columns.base.sizes()):
        found: Rows = columns.rows(table, ignore_unknown)
        return found
    found = base if columns.network is None else columns.rows_of_base(base)
    return found


class FittedHalf(NamedTuple):
    """State of the only candidate, and all rows under its encoding."""

    fitted: Fitted
    batch: LabelledRows

    @property
    def log_class(self) -> np.ndarray:
        """(C,) log posterior mean class probabilities; a fixed class prior is replaced by Dirichlet(1)."""
        return _log_class(self.fitted.prior.class_prior, self.fitted.encoding, self.fitted.statistics.class_count)

    def terms(self, candidates: Sequence[TermColumns], index: np.ndarray) -> list[np.ndarray]:
        """(n, C, T') terms of the rows at `index` (n,), in ascending order."""
        rows, taken = tuple(r.take(index) for r in self.batch.rows), np.zeros(len(self.batch.label), bool)
        taken[index] = True
        table = self.batch.table.take(taken)
        return [columns.compute(self.fitted, table, rows) for columns in candidates]


class ContextHalf(NamedTuple):
    """Margins of all columns, and dependences of columns on contexts of several numbers of parents.

    Parameters
    ----------
    margins : NaiveBayes
        Posterior of the columns given the class alone.
    alone : LabelledRows
        All rows of these columns.
    numbers : (n, C, F) array or None
        Terms of columns of numbers that are known already, and are not in `margins`.
    names : tuple of str
        Names of all columns: of these, and of those in `margins`.
    rows : (n,) int array
        Positions of the rows that have terms, in ascending order.
    contexts : list of ContextsOfRows
        Contexts of these rows with the counts of the half, of some of the columns with parents each.
    order, children : tuples of str
        Names of the columns of the network, and of those with parents in the order of `contexts`.
    limits : sequence of int
        Largest number of parents of a column in each candidate.
    log_class : (C,) array
        Log posterior mean class probabilities.
    """

    margins: NaiveBayes
    alone: LabelledRows
    numbers: np.ndarray | None
    names: tuple[str, ...]
    rows: np.ndarray
    contexts: list[ContextsOfRows]
    order: tuple[str, ...]
    children: tuple[str, ...]
    limits: Sequence[int]
    log_class: np.ndarray

    @classmethod
    def from_rows(cls, nb: StructuredNB, batch: LabelledRows, limits: Sequence[int], rows: np.ndarray) -> ContextHalf:
        """Count the rows of positive weight of a batch with arcs, for the terms of the rows at `rows` (n,)."""
        network: Any
        cells: Any
        batch = nb._keep_used(batch)
        (network, *densities), (cells, *of_densities) = batch.encoding.blocks, batch.rows
        numbers, of_numbers = None, tuple[str, ...]()
        if batch.number_terms and (numbers := batch.number_terms.of_half(batch.weight > 0, rows)) is not None:
            used = [f for f, name in enumerate(batch.number_terms.names) if name in network.names]
            numbers, of_numbers = numbers[..., used], tuple(batch.number_terms.names[f] for f in used)
            densities, of_densities = [], []
        n_classes, names = len(batch.encoding.classes), network.base.names
        cuts = network.base.cuts or (None,) * len(network.base.index)
        if levels := sorted(child for child, *_ in network.nodes if cuts[child] is None):
            kind = MarginColumns if nb._counts_margins else RootColumns
            densities.append(select_level_columns(kind, network.base, levels))
            of_densities.append(cells.base.select(levels))
        encoding = replace(batch.encoding, blocks=tuple(densities))
        alone = batch._replace(encoding=encoding, rows=tuple(of_densities))
        class_prior = class_distribution(nb.class_prior, nb.class_alpha, encoding.classes)
        priors = tuple(nb._margin_prior_alone(columns, n_classes) for columns in densities)
        nested = network.sorted_by_parents()
        return cls(
            margins=alone.posterior(NaiveBayes(class_prior, priors)),
            alone=alone,
            numbers=numbers,
            names=(*of_numbers, *encoding.term_names),
            rows=rows,
            contexts=nested.contexts_of_rows(cells.base, nb.alpha, batch.label, batch.weight, n_classes, rows),
            order=tuple(names[child] for child, *_ in network.nodes),
            children=tuple(names[child] for child, *_ in nested.nodes),
            limits=limits,
            log_class=_log_class(class_prior, encoding, np.bincount(batch.label, batch.weight, n_classes)),
        )

    def terms(self, candidates: Sequence[TermColumns], index: np.ndarray) -> list[np.ndarray]:
        """(n, C, T') terms of the rows at `index` (n,) by each candidate."""
        margins, dependences = self._terms(index)
        names, found = self.names, []
        for columns, most in zip(candidates, self.limits, strict=True):
            values, every = margins, names
            if most and dependences:
                values = np.concatenate([margins, dependences[most - 1]], axis=-1)
                every = (*names, *map(DEPENDENCE.format, self.children))
            is_dependence = np.arange(len(every)) >= len(names)
            found.append(columns.arrange(every, values, np.array([np.zeros_like(is_dependence), is_dependence])))
        return found

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
            margins.append(scoring.terms_of_rows(encoding, self.margins, rows, len(index), "predictive"))
        dependences = zip(*(contexts.log_dependences(kept, most) for contexts in self.contexts), strict=True)
        return np.concatenate(margins, axis=-1), [np.concatenate(of_depth, axis=-1) for of_depth in dependences]


def _log_class(prior: Any, encoding: Encoding, class_count: np.ndarray) -> np.ndarray:
    """Return (C,) log posterior mean class probabilities; a fixed class prior is replaced by Dirichlet(1).

    Biases that were fitted under another class prior than the rows have would undo it.
    """
    prior = class_distribution(None, 1.0, encoding.classes) if prior.fixed else prior
    posterior = float64(prior.update)(LevelCounts(class_count[None]))
    return np.asarray(scoring.plug_in(posterior).log_theta[0])
