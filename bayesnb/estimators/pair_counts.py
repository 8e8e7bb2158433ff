"""Counts of all pairs of levels, from the state of a classifier that counts pairs of columns."""

from __future__ import annotations

import numpy as np

from bayesnb.encoding import NodeColumns
from bayesnb.estimators.network_base import NO_COLUMNS
from bayesnb.fitted import Fitted


def pair_counts(fitted: Fitted) -> tuple[NodeColumns, np.ndarray]:
    """Return the categorical columns, and (C, L, L) weights of the rows with both of two levels.

    L is the number of levels of all columns together. The network must join every pair of columns.
    """
    columns, statistics = fitted.encoding.blocks[0].network, fitted.statistics
    if columns is None:
        return NO_COLUMNS, np.zeros((len(statistics.class_count), 0, 0))
    levels = [slice(s, s + n) for s, n in zip(columns.base.start(), columns.base.sizes(), strict=True)]
    n_levels = int(columns.base.sizes().sum())
    counts = np.zeros((len(statistics.class_count), n_levels, n_levels))
    for (child, *parents), table in zip(columns.nodes, columns.tables(statistics.blocks[0].count), strict=True):
        if not parents:
            level = np.arange(n_levels)[levels[child]]
            counts[:, level, level] = table
        for p in parents:
            pair = table[:, : columns.base.sizes()[p]]
            counts[:, levels[p], levels[child]] = pair
            counts[:, levels[child], levels[p]] = pair.swapaxes(1, 2)
    return columns, counts
