"""Features and all pairs of them, for the average over all trees."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bayesnb._util.level_pair_counts import require_memory
from bayesnb.encoding.level_columns import LevelColumns
from bayesnb.encoding.node_columns import AveragedColumns
from bayesnb.encoding.node_rows import NodeRows, PairRows
from bayesnb.encoding.priors import prior_of_trees
from bayesnb.encoding.row_blocks import CodedRows
from bayesnb.families import Dirichlet, LevelCounts, TreeAveraged


@dataclass(frozen=True, eq=False)
class PairColumns(AveragedColumns):
    """Categorical features that a tree joins: each by itself, and all pairs of them.

    The nodes are the features, then the pairs: the second feature given the first. A pair counts where both are
    observed.
    """

    family: ClassVar[type] = TreeAveraged

    @classmethod
    def from_base(cls, base: LevelColumns) -> Self:
        """Return columns of these features and of all pairs of them."""
        pairs = zip(*np.triu_indices(len(base.index), 1), strict=True)
        alone = tuple((j,) for j in range(len(base.index)))
        return cls(base, alone + tuple((int(second), int(first)) for first, second in pairs))

    def check(self) -> None:
        super().check()
        if self.nodes != self.from_base(self.base).nodes:
            raise ValueError("its network is not that of all pairs of columns.")

    @property
    def index(self) -> Sequence[int]:
        return self.base.index

    @property
    def names(self) -> Sequence[str]:
        return self.base.names

    @property
    def term_names(self) -> list[str]:
        return [*self.base.names, "(arcs)"]

    def require_memory(self, n_classes: int) -> None:
        """Raise ValueError if counts of all pairs of levels would not fit into memory."""
        widest = int(np.argmax(self.base.sizes())) if self.index else 0
        require_memory(
            n_classes * int(self.sizes().sum()),
            f"Counts of {int(self.sizes().sum()):,} pairs of levels in {n_classes} classes",
            f"Column {self.names[widest]!r} alone has {self.base.sizes()[widest]:,} levels: leave such columns out, or "
            "group their levels.",
        )

    def prior(self, given: object, argument: str, n_classes: int) -> Any:
        return prior_of_trees(given, self, n_classes)

    def counting_rows(self, base: CodedRows) -> NodeRows:
        return PairRows(base, self.nodes, self.capacity)

    def groups(self) -> np.ndarray:
        """Feature or pair of each level."""
        return np.repeat(np.arange(len(self.nodes), dtype=np.int32), self.sizes())

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        return np.repeat([node[0] for node in self.nodes], self.sizes()), super().axis()[1]

    def counts_without_parents(self, statistics: LevelCounts) -> LevelCounts:
        """Counts of the features given the class alone."""
        return LevelCounts(statistics.count[:, : self.base.sizes().sum()])

    def prior_without_parents(self, prior: Any) -> Dirichlet:
        """Prior of the features given the class alone."""
        group = self.base.groups()
        return Dirichlet(prior.concentration[:, : len(group)], group, len(self.index))

    def features_missing_on_arcs(self, statistics: LevelCounts, class_count: np.ndarray) -> list[str]:
        """Names of the features that are missing in some rows."""
        if len(self.index) < 2:
            return []
        weight = self._node_weight(statistics)[:, : len(self.index)]
        missing = (weight < class_count[:, None] * (1 - 1e-9)).any(axis=0)
        return [self.names[int(j)] for j in np.flatnonzero(missing)]


__all__ = ["PairColumns"]
