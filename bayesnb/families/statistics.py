"""Sufficient statistics that are sums over rows."""

from __future__ import annotations

import operator
from dataclasses import fields
from functools import reduce
from operator import itemgetter
from typing import Any, Self, final

import jax
import numpy as np

from bayesnb.families._pytree import Array, map_leaves

ROUNDING = 64 * 2.2e-16
"""Bound on the rounding error of a difference from a sum, as a fraction of that sum."""


def pooled(statistics: Any) -> Any:
    """Merge statistics (C, …) over the classes into statistics (1, …) of all rows."""
    n_classes = jax.tree.leaves(statistics)[0].shape[0]
    classes = [jax.tree.map(itemgetter(slice(c, c + 1)), statistics) for c in range(n_classes)]
    return reduce(lambda a, b: a.merge(b), classes)


def no_rows(kind: Any, shape: tuple[int, ...]) -> Any:
    """Sufficient statistics of a type, all of whose fields are zeros of one shape."""
    return kind(*(np.zeros(shape) for _ in fields(kind)))


class Additive:
    """Statistics whose fields are sums over rows of non-negative numbers; one field is `count`."""

    count: Array

    @final
    def merge(self, other: Self) -> Self:
        """Statistics of the rows of `self` and `other` together: fields are added."""
        return map_leaves(operator.add, self, other)

    @final
    def remove(self, other: Self) -> Self:
        """Statistics without the rows of `other`: fields are subtracted."""
        return map_leaves(operator.sub, self, other)

    @final
    def scale(self, factor: float) -> Self:
        """Statistics of the same rows with all weights multiplied by `factor`."""
        return map_leaves(lambda field: field * factor, self)

    @final
    def possible(self) -> Any:
        """(C, K) of bool: no field is negative, and none exceeds 1e-100 (residue of decay) where `count` is 0."""
        fields = jax.tree.leaves(self)
        nonnegative = reduce(operator.and_, (field >= 0 for field in fields))
        return reduce(operator.and_, ((self.count > 0) | (field < 1e-100) for field in fields), nonnegative)

    @final
    def rounding(self) -> Self:
        """Tolerated rounding error below zero after `remove`, field by field: 1e-9 of each sum."""
        return map_leaves(lambda field: field * 1e-9, self)
