"""Fits of a classifier to parts of rows that are encoded once, such as random halves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding, LevelColumns, Levels, MarginColumns, RootColumns, Rows, Table, ignore_unknown
from bayesnb.encoding.priors import class_distribution
from bayesnb.encoding.structure import DEPENDENCE
from bayesnb.estimators import classifier_state
from bayesnb.estimators.classifier_state import Batch, LabelledRows
from bayesnb.families import LevelCounts
from bayesnb.fitted import scoring
from bayesnb.fitted.state import Fitted
from bayesnb.model import NaiveBayes
from bayesnb.weights.cross_fitting import TermColumns


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

    nb: Any
    known: Any
    batch: LabelledRows
    position: np.ndarray

    @classmethod
    def from_rows(cls, nb: Any, known: Any, every: Batch, encoded: LabelledRows | None = None) -> Parts:
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

    def __call__(self, weight: np.ndarray) -> Any:
        """Return a copy of the classifier fitted to the rows under these weights (N,)."""
        batch = self.nb._with_arcs(self.batch._replace(weight=weight[self.position]))
        return self.fit(self.nb._with_margins(batch))

    def fit(self, batch: LabelledRows) -> Any:
        """Return a copy of the classifier with the counts of these encoded rows."""
        return classifier_state.fit_to_counts(self.nb, self.known, batch.count_rows())

    @cached_property
    def encodings(self) -> list[Encoding]:
        """Encoding of each candidate for a model of all rows, from the simplest on."""
        return self.nb._candidates(self.batch, self.known)

    def fit_candidate(self, k: int) -> Any:
        """Return the k-th candidate, with arcs, fitted to all rows."""
        return self.fit(self.nb._with_margins(self.batch.with_nodes(self.encodings[k].blocks[0].network.nodes)))

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


def _rows_under(columns: Any, rows: Any, table: Table) -> Rows:
    """Return rows under these columns, which are those that encoded them, but for arcs and levels without rows."""
    base = rows if columns.network is None else rows.base
    if not np.array_equal(getattr(base, "sizes", columns.base.sizes()), columns.base.sizes()):
        return columns.rows(table, ignore_unknown)
    return base if columns.network is None else columns.rows_of_base(base)


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
        network: Any = encoding.blocks[0]
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
        priors = tuple(nb._margin_prior(columns, n_classes) for columns in alone.encoding.blocks)
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


def _log_class(prior: Any, classes: Levels, class_count: np.ndarray) -> np.ndarray:
    """Return (C,) log posterior mean class probabilities; a fixed class prior is replaced by Dirichlet(1).

    Biases that were fitted under another class prior than the rows have would undo it.
    """
    prior = class_distribution(None, 1.0, classes) if prior.fixed else prior
    return np.asarray(scoring.plug_in(float64(prior.update)(LevelCounts(class_count[None]))).log_theta[0])
