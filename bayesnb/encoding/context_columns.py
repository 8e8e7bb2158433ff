"""Features under an average over the number of their parents that matter (context trees)."""

from __future__ import annotations

from dataclasses import dataclass

from bayesnb.encoding.node_columns import NodeColumns
from bayesnb.encoding.node_rows import ContextRows
from bayesnb.encoding.priors import prior_of_contexts
from bayesnb.families import ContextTree


@dataclass(frozen=True, eq=False)
class ContextColumns(NodeColumns):
    """Categorical features, each given its first parents, averaged over how many of them matter in each context.

    A missing parent is one more value of the parent, so that a cell counts whenever the feature is observed.
    """

    family = ContextTree
    missing_is_value = True
    counted_as = ContextRows
    scored_as = ContextRows

    def prior(self, given: object, argument: str, n_classes: int) -> ContextTree:
        """Return the prior over context trees; `given`, scalar or (F,), is the total concentration of a feature."""
        return prior_of_contexts(given, self, n_classes)
