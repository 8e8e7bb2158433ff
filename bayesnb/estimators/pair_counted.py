"""Structures that need all pairs of columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bayesnb.encoding import Encoding, NodeColumns, Rows
from bayesnb.estimators.network_base import StructuredNB
from bayesnb.families import LevelCounts
from bayesnb.model import Statistics
from bayesnb.networks import learning as structure


class PairCounted(StructuredNB):
    """Base of the classifiers whose nodes have one parent or none, most pairs of columns being among them."""

    def _weighted_counts(
        self, encoding: Encoding, rows: tuple[Rows, ...], label: np.ndarray, weight: np.ndarray
    ) -> Statistics:
        columns = encoding.blocks[0].network
        if columns is None:
            return super()._weighted_counts(encoding, rows, label, weight)
        cells: Any = rows[0]
        pairs = structure.count_level_pairs(columns.base, cells.base, label, weight, len(encoding.classes))
        rest = super()._weighted_counts(replace(encoding, blocks=encoding.blocks[1:]), rows[1:], label, weight)
        return replace(rest, blocks=(LevelCounts(_as_nodes(columns, pairs)), *rest.blocks))


def _as_nodes(columns: NodeColumns, pairs: np.ndarray) -> np.ndarray:
    """(C, L, L) counts of pairs of levels, laid out as the nodes of one parent or none."""
    own = [slice(s, s + n) for s, n in zip(columns.base.start(), columns.base.sizes(), strict=True)]
    alone, found = np.diagonal(pairs, axis1=1, axis2=2), []
    for child, *parents in columns.nodes:
        table = alone[:, None, own[child]]
        for p in parents:
            given = pairs[:, own[p], own[child]]
            missing = table - given.sum(axis=1, keepdims=True)
            table = np.concatenate([given, missing], axis=1)[:, : columns.given()[p]]
        found.append(table.reshape(len(pairs), -1))
    return np.concatenate(found, axis=1)
