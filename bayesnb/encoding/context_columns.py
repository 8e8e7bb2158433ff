"""Features that have as many of their parents as the rows speak for."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bayesnb.encoding.node_columns import AveragedColumns
from bayesnb.encoding.node_rows import ContextRows, NodeRows
from bayesnb.encoding.priors import prior_of_contexts
from bayesnb.encoding.row_blocks import CodedRows
from bayesnb.families import ContextTree, LevelCounts

NOT_OBSERVED = "<missing>"
"""The value of a parent that is missing."""


@dataclass(frozen=True, eq=False)
class ContextColumns(AveragedColumns):
    """Categorical features, each given as many of its parents, in their order, as the rows speak for.

    A missing parent is one more of its values, so that a cell counts if the feature is observed.
    """

    family: ClassVar[type] = ContextTree

    def prior(self, given: Any, argument: str, n_classes: int) -> Any:
        return prior_of_contexts(given, self, n_classes)

    def coded(self, base: CodedRows) -> NodeRows:
        return ContextRows(base, self.nodes, self.capacity)

    def _as_parent(self, code: np.ndarray, n_levels: int) -> np.ndarray:
        return np.append(code, n_levels)

    def given(self) -> np.ndarray:
        return self.base.sizes() + 1

    def values_of(self, j: int) -> list[Hashable]:
        return [*self.base.level_names(j), NOT_OBSERVED]

    def missing_on_arcs(self, statistics: LevelCounts, class_count: np.ndarray) -> list[str]:
        """None: they are values."""
        return []

    def never_together(self, statistics: LevelCounts, class_count: np.ndarray) -> list[tuple[int, str]]:
        """None: a row that has the feature has its parents too, if as missing ones."""
        return []


__all__ = ["ContextColumns"]
