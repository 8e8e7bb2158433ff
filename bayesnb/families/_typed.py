"""JAX's maps with types: the result of a map is of the type of its argument, or of what the function returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

Tree = TypeVar("Tree")
Result = TypeVar("Result")


def map_leaves(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """Apply a function to the corresponding leaves of pytrees of one type."""
    mapped: Tree = jax.tree.map(function, tree, *others)
    return mapped


def map_leading_axis(function: Callable[[Any], Result], arrays: Any, batch_size: int | None = None) -> Result:
    """Apply a function to each entry of the leading axis of arrays, `batch_size` entries at a time; stack results."""
    results: Result = jax.lax.map(function, arrays, batch_size=batch_size)
    return results
