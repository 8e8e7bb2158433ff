"""Evidence of symmetric Dirichlet priors as a function of α alone, at the cost of the distinct counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb.families._pytree import Array, pytree
from bayesnb.families.special import log_rising


@pytree
class Histogram:
    """Histogram of counts (C, L): all that the evidence of a symmetric Dirichlet needs of them.

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
        """Histogram of the counts of levels, whose concentrations are α times their `share`."""
        observed = np.asarray(count)
        share = np.broadcast_to(share, observed.shape)
        # One share after the other: there are few, and numbers sort far faster than pairs.
        pairs = [np.zeros((3, 0))]
        for s in np.unique(share):
            values, n_levels = np.unique(observed[(share == s) & (observed > 0)], return_counts=True)
            pairs.append(np.stack([np.full(len(values), s), values, n_levels]))
        of_count, distinct_count, times = np.concatenate(pairs, axis=1)

        def by_group(values: np.ndarray) -> np.ndarray:
            return np.stack([np.bincount(group, weights=row, minlength=num_groups) for row in values])

        totals = np.stack([by_group(share), by_group(observed)], axis=-1).reshape(-1, 2)
        distinct, groups = np.unique(totals[totals[:, 1] > 0], axis=0, return_counts=True)
        return cls(of_count, distinct_count, times, distinct[:, 0], distinct[:, 1], groups.astype(float))


@pytree
class Symmetric:
    """Dirichlet priors of which only α is left, a factor on the shares of the levels."""

    tunable: ClassVar[dict[str, str]] = {"alpha": "alpha"}

    alpha: Array

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Return the prior with its α times `alpha`."""
        return type(self)(self.alpha * values.get("alpha", 1.0))

    def log_evidence(self, counted: Histogram) -> jax.Array:
        """Log evidence Σ_u m_u log α^(u) - Σ_v m_v log (L α)^(t), with rising factorials: O(distinct counts)."""
        # In one call: two would compile the gamma functions twice.
        size = jnp.concatenate([counted.share, counted.size])
        times = jnp.concatenate([counted.times, -counted.groups])
        return jnp.sum(times * log_rising(self.alpha * size, jnp.concatenate([counted.count, counted.total])))
