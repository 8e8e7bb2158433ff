"""The evidence as a function of symmetric concentrations, at a cost that depends on the distinct counts alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb.families import Dirichlet, LevelCounts
from bayesnb.families._pytree import pytree
from bayesnb.families.special import log_rising
from bayesnb.model import NaiveBayes, Statistics


@pytree
class Histogram:
    """What the evidence of a symmetric Dirichlet needs of the counts (C, L): how often each number occurs.

    `count` (U,) and `times` (U,): distinct counts; `size` (V,), `total` (V,) and `groups` (V,): the distinct pairs
    of a group's number of levels and its total, and how many groups of all classes have them.
    """

    count: Any
    times: Any
    size: Any
    total: Any
    groups: Any

    @classmethod
    def of(cls, statistics: LevelCounts, group: np.ndarray, num_groups: int) -> Histogram:
        observed = np.asarray(statistics.count)
        count, times = np.unique(observed[observed > 0], return_counts=True)
        sizes = np.bincount(group, minlength=num_groups)
        sums = np.stack([np.bincount(group, weights=row, minlength=num_groups) for row in observed])
        pairs = np.stack([np.broadcast_to(sizes, sums.shape), sums], axis=-1).reshape(-1, 2)
        distinct, groups = np.unique(pairs[pairs[:, 1] > 0], axis=0, return_counts=True)
        return cls(count, times.astype(float), distinct[:, 0], distinct[:, 1], groups.astype(float))

    def log_evidence(self, alpha: Any) -> Any:
        """Σ_u m_u log α^(u) - Σ_v m_v log (L α)^(t), rising factorials: O(distinct counts), whatever the levels."""
        # In one call: two would compile the gamma functions twice.
        size = jnp.concatenate([jnp.ones_like(self.count), self.size])
        times = jnp.concatenate([self.times, -self.groups])
        return jnp.sum(times * log_rising(alpha * size, jnp.concatenate([self.count, self.total])))


def condense(model: NaiveBayes, statistics: Statistics) -> Statistics:
    """The statistics with a histogram in place of the counts of levels."""
    blocks = tuple(
        Histogram.of(counted, np.asarray(f.group), f.num_groups) if isinstance(f, Dirichlet) else counted
        for f, counted in zip(model.blocks, statistics.blocks, strict=True)
    )
    return replace(statistics, blocks=blocks)


def one_level(prior: NaiveBayes) -> NaiveBayes:
    """Of each Dirichlet block one level, all that `log_evidence` needs to know of a symmetric prior."""
    blocks = tuple(
        Dirichlet(np.ones((1, 1)), np.zeros(1, np.int32), 1) if isinstance(family, Dirichlet) else family
        for family in prior.blocks
    )
    return replace(prior, blocks=blocks)


@jax.jit
def log_evidence(prior: NaiveBayes, condensed: Statistics) -> jax.Array:
    """log p(X, y) under a prior that is symmetric wherever there is a histogram."""
    terms = [condensed.log_base, prior.class_prior.log_evidence(LevelCounts(condensed.class_count[None]))]
    for family, counted in zip(prior.blocks, condensed.blocks, strict=True):
        if isinstance(counted, Histogram):
            terms.append(counted.log_evidence(family.concentration[0, 0]))
        else:
            terms.append(family.log_evidence(counted))
    return jnp.asarray(sum(map(jnp.sum, terms)))
