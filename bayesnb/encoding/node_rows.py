"""Rows of a structure: categorical cells together with those of their parents, as they count and as they score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any, Self

import jax
import numpy as np

from bayesnb.encoding.levels import MISSING
from bayesnb.encoding.row_blocks import CELLS, CodedRows, LevelRows, pad_rows, power_of_four
from bayesnb.families import OneHot
from bayesnb.families.rows import joint_code
from bayesnb.families.structures import BARREN, Network, NetworkCells


@dataclass(frozen=True, eq=False)
class NodeRows(LevelRows):
    """Rows of a structure: a cell counts where the feature and all its parents are observed.

    Parameters
    ----------
    base : CodedRows
        Cells of the features without structure.
    columns : NodeColumns
    sums_missing : bool
        Whether rows with a missing cell that has an observed descendant are `NetworkCells`, which sum this cell out.
    """

    base: CodedRows
    columns: Any
    sums_missing: bool
    complete = False

    def __len__(self) -> int:
        return len(self.base)

    @property
    def sizes(self) -> np.ndarray:
        """(G,) number of levels of each feature together with its parents."""
        return self.columns.sizes()

    def counting_rows(self) -> Self:
        """Return these rows for kernels that count them: a cell counts where it and all its parents are observed."""
        return replace(self, sums_missing=False)

    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""
        return replace(self, base=self.base.take(index))

    def replace_cells(self, rows: np.ndarray, j: int, code: np.ndarray) -> Self:
        """Return M rows: those at the positions `rows` (M,), with the level codes `code` (M,) in column j."""
        return replace(self, base=self.base.replace_cells(rows, j, code))

    @property
    def missing(self) -> np.ndarray:
        """(N, K) whether the cell of each of `columns.names` is missing, whatever its parents are."""
        return self.base.missing[:, [child for child, *_ in self.columns.nodes[: len(self.columns.names)]]]

    @cached_property
    def _joint_code_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Three (K, G) arrays: features of each node, their strides in the joint code, and codes of missing cells."""
        nodes, sizes, parent_sizes = self.columns.nodes, self.base.sizes, self.columns.parent_sizes()
        column = np.empty((max(map(len, nodes)), len(nodes)), np.int32)
        stride, missing = np.zeros(column.shape, np.int32), np.full(column.shape, MISSING, np.int32)
        for g, (child, *parents) in enumerate(nodes):
            inner_first = [child, *reversed(parents)]
            column[:, g] = child  # repeated with stride 0 where a node has fewer parents than others
            column[: len(inner_first), g] = inner_first
            inner = [sizes[child], *parent_sizes[inner_first[1:-1]]]
            stride[: len(inner_first), g] = np.cumprod([1, *inner])[: len(inner_first)]
        if self.columns.missing_is_value:
            missing[1:] = sizes[column[1:]]
        return column, stride, missing

    def code(self, start: int, stop: int, size: int) -> jax.Array:
        """(size, G) code of the combination of levels of each node; `MISSING` if one is missing, and for padding."""
        dtype = str(np.min_scalar_type(-max(1, int(self.sizes.max()))))
        code: jax.Array = joint_code(self.base.code(start, stop, size), *self._joint_code_arrays, dtype=dtype)
        return code

    @cached_property
    def _cells(self) -> np.ndarray:
        """(N, F) level codes; `MISSING` for a missing cell with an observed descendant, `BARREN` for one without."""
        code = self.base.codes.copy()
        below = np.zeros(code.shape, bool)
        for child, *parents in reversed(sort_parents_first(self.columns.nodes)):
            for parent in parents:
                below[:, parent] |= below[:, child] | (code[:, child] >= 0)
        code[(code < 0) & ~below] = BARREN
        return code

    @cached_property
    def summed(self) -> np.ndarray:
        """(N,) whether a row has a missing cell that is summed out."""
        has_none = not self.sums_missing or self.base.complete
        return np.zeros(len(self), bool) if has_none else (self._cells == MISSING).any(axis=1)

    @cached_property
    def _network(self) -> Network:
        """Network over which missing cells are summed; ValueError if that takes over 2^20 numbers per row and class."""
        network = Network.from_nodes(self.columns.nodes, self.base.sizes.tolist())
        if network.room() > CELLS:
            raise ValueError(
                f"Input X has missing cells with observed descendants (first: row {int(np.argmax(self.summed))}). The "
                f"sum over their values takes {network.room():,} numbers for each row and class; at most {CELLS:,} are "
                "allowed. Give missing cells a level of their own, leave out arcs, or group levels."
            )
        return network

    def block(self, start: int, stop: int, size: int) -> OneHot | NetworkCells:
        """Return rows start … stop - 1, padded to `size`, as `NetworkCells` if any row is summed, else as `OneHot`."""
        observed: OneHot = super().block(start, stop, size)
        if not np.any(self.summed):
            return observed
        which = np.flatnonzero(self.summed[start:stop])
        n = min(size, power_of_four(len(which)))
        code = self._cells[start:stop][which]
        return NetworkCells(observed, pad_rows(which, n, size), pad_rows(code, n), self._network)


def sort_parents_first(nodes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the nodes of a network, parents before children; raise CycleError if a feature depends on itself."""
    by_child = {node[0]: node for node in nodes}
    return [by_child[j] for j in TopologicalSorter({child: parents for child, *parents in nodes}).static_order()]
