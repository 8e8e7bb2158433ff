"""Features under an average over the number of their parents that matter (context trees)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesnb.encoding.node_columns import NodeColumns
from bayesnb.encoding.priors import context_concentrations, prior_of_contexts
from bayesnb.encoding.row_blocks import CodedRows
from bayesnb.families import ContextsOfRows, ContextTree

_CELLS_AT_ONCE = 2**24


@dataclass(frozen=True, eq=False)
class ContextColumns(NodeColumns):
    """Categorical features, each given its first parents, averaged over how many of them matter in each context.

    A missing parent is one more value of the parent, so that a cell counts whenever the feature is observed.
    """

    family = ContextTree
    missing_is_value = True
    sums_missing = False

    def prior(self, given: object, argument: str, n_classes: int) -> ContextTree:
        """Return the prior over context trees; `given`, scalar or (F,), is the total concentration of a feature."""
        return prior_of_contexts(given, self, n_classes)

    def contexts_of_rows(
        self, base: CodedRows, alpha: object, label: np.ndarray, weight: np.ndarray, n_classes: int, rows: np.ndarray
    ) -> list[ContextsOfRows]:
        """Return the contexts of some rows, with the counts of others, of a few nodes at a time, most parents first.

        Parameters
        ----------
        base : CodedRows
            Coded cells of the features without parents.
        alpha : scalar, (F,) array, or mapping or Series by column
            Total concentration of a feature.
        label, weight : (N,) arrays
            Index of the class of each row, and its replication count; 0 for a row that is not counted.
        n_classes : int
            Number of classes.
        rows : (n,) int array
            Positions of the rows whose contexts are kept, in ascending order.
        """
        used = weight > 0
        used[rows] = True
        rows = (np.cumsum(used) - 1)[rows]
        base, label, weight = base.take(used), label[used], weight[used]
        code, values, sizes = base.codes, self.parent_sizes(), self.base.sizes()
        nodes, total = self.nodes, context_concentrations(alpha, self)
        size, found = max(1, _CELLS_AT_ONCE // max(1, len(base))), []
        for block in (slice(start, start + size) for start in range(0, len(nodes), size)):
            children, given, n_values = np.array([node[0] for node in nodes[block]]), [], []
            for d in range(1, max(map(len, nodes[block]))):
                parents = np.array([node[d] for node in nodes[block] if len(node) > d])
                given.append(np.where(code[:, parents] < 0, values[parents] - 1, code[:, parents]))
                n_values.append(values[parents])
            level, levels = code[:, children].astype(np.int64), np.maximum(sizes[children], 1)
            counted = total[block], label, weight, n_classes, rows
            found.append(ContextsOfRows.from_rows(level, given, levels, n_values, *counted))
        return found

    def sorted_by_parents(self) -> ContextColumns:
        """Return the columns with parents alone, sorted by their number of parents, most first."""
        nodes = [node for node in self.nodes if len(node) > 1]
        return type(self)(self.base, tuple(sorted(nodes, key=len, reverse=True)))
