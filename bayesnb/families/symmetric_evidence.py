"""Evidence of symmetric Dirichlet priors as a function of α alone, at the cost of the distinct counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import jax
import numpy as np

from bayesnb.families._namespace import xp
from bayesnb.families._pytree import Array, pytree
from bayesnb.families.special import log_rising


@pytree
class Histogram:
    """Histogram of counts (C, L): sufficient for the Dirichlet evidence as a function of α alone.

    A level has the concentration α times its `share`, mostly 1. `share`, `count` and `times` (U,): the distinct pairs
    of a level's share and its count, and how many levels of all classes have them; `size`, `total` and `groups` (V,):
    those of a group's sum of shares, its number of levels, and its total.
    """

    share: Any
    count: Array
    times: Any
    size: Array
    total: Array
    groups: Any

    @classmethod
    def from_counts(cls, count: Any, group: np.ndarray, num_groups: int, share: Any = 1.0) -> Histogram:
        """Histogram of counts (C, L) of levels in groups, with concentrations α times `share`."""
        count, share = np.asarray(count), np.broadcast_to(share, np.shape(count))
        of_groups = (np.stack([np.bincount(group, row, num_groups) for row in values]) for values in (share, count))
        return cls(*_distinct_pairs(share, count), *_distinct_pairs(*of_groups))


def _distinct_pairs(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct pairs (share, positive count) as two arrays (U,), and the number of times each occurs, (U,)."""
    # Complex numbers are sorted by both parts, and far faster than rows of two numbers.
    pairs, times = np.unique((share + 1j * count)[count > 0], return_counts=True)
    return pairs.real, pairs.imag, times.astype(float)


@pytree
class Symmetric:
    """Dirichlet prior reduced to the scalar α that multiplies the shares of the levels, for the evidence alone."""

    tunable: ClassVar[dict[str, str]] = {"alpha": "alpha"}

    alpha: Array

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Copy with α multiplied by values["alpha"], 1 by default."""
        return type(self)(self.alpha * values.get("alpha", 1.0))

    def log_evidence(self, counted: Histogram) -> jax.Array:
        """Scalar log marginal likelihood of the counts in a histogram, at a cost of the number of distinct counts.

        The value is Σ_u m_u log α^(u) - Σ_v m_v log (L α)^(t), with rising factorials.
        """
        # In one call: two would compile the gamma functions twice.
        size = xp.concatenate([counted.share, counted.size])
        times = xp.concatenate([counted.times, -counted.groups])
        return xp.sum(times * log_rising(self.alpha * size, xp.concatenate([counted.count, counted.total])))
