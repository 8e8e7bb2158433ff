"""Features under an average over the number of their parents that matter (context trees)."""

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
"""Value of a parent whose cell is missing."""


@dataclass(frozen=True, eq=False)
class ContextColumns(AveragedColumns):
    """Categorical features, each given its first parents, averaged over how many of them matter in each context.

    A missing parent is one more value of the parent, so that a cell counts whenever the feature is observed.
    """

    family: ClassVar[type] = ContextTree

    def prior(self, given: object, argument: str, n_classes: int) -> Any:
        return prior_of_contexts(given, self, n_classes)

    def counting_rows(self, base: CodedRows) -> NodeRows:
        return ContextRows(base, self.nodes, self.capacity)

    def _parent_codes(self, code: np.ndarray, n_levels: int) -> np.ndarray:
        return np.append(code, n_levels)

    def parent_sizes(self) -> np.ndarray:
        """Number of values of each feature as a parent, the missing one included."""
        return self.base.sizes() + 1

    def parent_values(self, j: int) -> list[Hashable]:
        """Values of feature j as a parent, the missing one last."""
        return [*self.base.level_names(j), NOT_OBSERVED]

    def features_missing_on_arcs(self, statistics: LevelCounts, class_count: np.ndarray) -> list[str]:
        """Return no names: a missing parent is a value."""
        return []

    def features_never_counted(self, statistics: LevelCounts, class_count: np.ndarray) -> list[tuple[int, str]]:
        """Return no classes and features: a missing parent is a value."""
        return []


__all__ = ["ContextColumns"]
