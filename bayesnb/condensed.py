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

    A level has the concentration α times its `share`, mostly 1. `share`, `count` and `times` (U,): the distinct pairs
    of a level's share and its count, and how many levels of all classes have them; `size`, `total` and `groups` (V,):
    those of a group's sum of shares, its number of levels, and its total.
    """

    share: Any
    count: Any
    times: Any
    size: Any
    total: Any
    groups: Any

    @classmethod
    def of(cls, statistics: LevelCounts, group: np.ndarray, num_groups: int, share: Any = 1.0) -> Histogram:
        observed = np.asarray(statistics.count)
        share = np.broadcast_to(share, observed.shape)
        # One share after the other: there are few, and numbers sort far faster than pairs.
        levels = [(s, observed[(share == s) & (observed > 0)]) for s in np.unique(share)]
        counted = [(s, *np.unique(counts, return_counts=True)) for s, counts in levels]
        of_share, count, times = (
            np.concatenate([np.zeros(0), *parts])  # of no level, where none was observed
            for parts in (
                [np.full(len(c), s) for s, c, _ in counted],
                [c for _, c, _ in counted],
                [t for _, _, t in counted],
            )
        )

        def by_group(values: np.ndarray) -> np.ndarray:
            return np.stack([np.bincount(group, weights=row, minlength=num_groups) for row in values])

        pairs = np.stack([by_group(share), by_group(observed)], axis=-1).reshape(-1, 2)
        distinct, groups = np.unique(pairs[pairs[:, 1] > 0], axis=0, return_counts=True)
        return cls(of_share, count, times, distinct[:, 0], distinct[:, 1], groups.astype(float))

    def log_evidence(self, alpha: Any) -> Any:
        """Σ_u m_u log α^(u) - Σ_v m_v log (L α)^(t), rising factorials: O(distinct counts), whatever the levels."""
        # In one call: two would compile the gamma functions twice.
        size = jnp.concatenate([self.share, self.size])
        times = jnp.concatenate([self.times, -self.groups])
        return jnp.sum(times * log_rising(alpha * size, jnp.concatenate([self.count, self.total])))


def condense(unit: NaiveBayes, statistics: Statistics) -> Statistics:
    """The statistics with a histogram in place of the counts of levels; `unit` is the prior at α = 1."""
    blocks = tuple(
        Histogram.of(counted, np.asarray(f.group), f.num_groups, np.asarray(f.concentration))
        if isinstance(f, Dirichlet)
        else counted
        for f, counted in zip(unit.blocks, statistics.blocks, strict=True)
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
