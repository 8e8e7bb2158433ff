"""Structures that need all pairs of columns."""

from __future__ import annotations

import numpy as np

from bayesnb.encoding import CellColumns, Encoding, NodeColumns, Rows
from bayesnb.estimators.binned import most_probable_cuts
from bayesnb.estimators.network_base import NO_COLUMNS, StructuredNB


class PairCounted(StructuredNB):
    """Base of the classifiers whose nodes have one parent or none, all pairs of columns being among them."""

    _has_margins = False

    def _cuts(
        self, encoding: Encoding, numbers: CellColumns, rows: Rows, label: np.ndarray, weight: np.ndarray
    ) -> list[np.ndarray]:
        """Return the cuts of the most probable binning of each column of numbers."""
        return most_probable_cuts(encoding.classes, numbers, rows, label, weight)

    def pair_counts(self) -> tuple[NodeColumns, np.ndarray]:
        """The categorical columns, and (C, L, L) weight of the rows of each class with both of two levels.

        Examples
        --------
        >>> from bayesnb import AODE
        >>> X = [["sun", "dry"], ["sun", "wet"], ["rain", "wet"]]
        >>> columns, counts = AODE().fit(X, ["out", "out", "out"]).pair_counts()
        >>> [levels.values for levels in columns.base.levels]
        [('rain', 'sun'), ('dry', 'wet')]
        >>> counts[0]  # rows and columns are these levels
        array([[1., 0., 0., 1.],
               [0., 2., 1., 1.],
               [0., 1., 1., 0.],
               [1., 1., 0., 2.]])
        """
        self._require_fitted("pair_counts")
        columns, statistics = self._nodes, self.statistics_
        if columns is None:
            return NO_COLUMNS, np.zeros((len(statistics.class_count), 0, 0))
        own = [slice(s, s + n) for s, n in zip(columns.base.start(), columns.base.sizes(), strict=True)]
        n_levels = int(columns.base.sizes().sum())
        counts = np.zeros((len(statistics.class_count), n_levels, n_levels))
        for (child, *parents), table in zip(columns.nodes, columns.tables(statistics.blocks[0].count), strict=True):
            if not parents:
                level = np.arange(n_levels)[own[child]]
                counts[:, level, level] = table
            for p in parents:
                pair = table[:, : columns.base.sizes()[p]]
                counts[:, own[p], own[child]] = pair
                counts[:, own[child], own[p]] = pair.swapaxes(1, 2)
        return columns, counts

    def _require_order(self, columns: NodeColumns) -> None:
        """Nothing: pairs in both orders are counted, and none of them is a network."""
