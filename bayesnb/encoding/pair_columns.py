"""Features and all pairs of them, for the average over all trees."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bayesnb.encoding.columns import Columns
from bayesnb.encoding.level_columns import LevelColumns
from bayesnb.encoding.node_columns import NodeColumns
from bayesnb.encoding.priors import prior_of_trees
from bayesnb.families import Dirichlet, LevelCounts, TreeAveraged


@dataclass(frozen=True, eq=False)
class PairColumns(NodeColumns):
    """Categorical features that a tree joins: each by itself, and all pairs of them.

    The nodes are the features, then the pairs: the second feature given the first. A pair counts where both are
    observed.
    """

    family = TreeAveraged
    sums_missing = False

    def __post_init__(self) -> None:
        self._set_columns(range(len(self.base.index)))

    @classmethod
    def from_base(cls, base: LevelColumns) -> Self:
        """Return columns of these features and of all pairs of them."""
        pairs = zip(*np.triu_indices(len(base.index), 1), strict=True)
        alone = tuple((j,) for j in range(len(base.index)))
        return cls(base, alone + tuple((int(second), int(first)) for first, second in pairs))

    def check(self) -> None:
        """Raise ValueError unless the nodes are the features and all pairs of them."""
        super().check()
        if self.nodes != self.from_base(self.base).nodes:
            raise ValueError("The nodes of TreeAveragedNB must be all columns and all pairs of columns. Fit again.")

    @property
    def term_names(self) -> list[str]:
        """Names of the features, each of whose cells is a term, and "(arcs)" for the term of all arcs of the trees."""
        return [*self.base.names, "(arcs)"]

    def prior(self, given: object, argument: str, n_classes: int) -> TreeAveraged:
        """Return the prior over trees whose total concentration of a class, one number, is `given`."""
        return prior_of_trees(given, self, n_classes)

    def groups(self) -> np.ndarray:
        """(L,) number of the feature or pair, the node, of each position."""
        return Columns.groups(self)

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        """Return the feature (L,) of each position, of a pair the second, and the level, a `Conditional` for a pair."""
        return np.repeat([node[0] for node in self.nodes], self.sizes()), super().axis()[1]

    def counts_without_parents(self, statistics: LevelCounts) -> LevelCounts:
        """Return counts of the features given the class alone."""
        return LevelCounts(statistics.count[:, : self.base.sizes().sum()])

    def prior_without_parents(self, prior: Any, *, divided: bool = False) -> Dirichlet:
        """Return the prior of the features given the class alone: concentrations in `prior` before those of pairs."""
        group = self.base.groups()
        return Dirichlet(prior.concentration[:, : len(group)], group, len(self.index))

    def features_missing_on_arcs(self, statistics: LevelCounts, class_count: np.ndarray) -> list[str]:
        """Return the names of the features that are missing in some rows; none if there is a single feature."""
        if len(self.index) < 2:
            return []
        weight = self._node_weight(statistics)[:, : len(self.index)]
        missing = (weight < class_count[:, None] * (1 - 1e-9)).any(axis=0)
        return [self.names[int(j)] for j in np.flatnonzero(missing)]
