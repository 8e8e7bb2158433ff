"""Arrays of JAX or NumPy, frozen dataclasses of them that are JAX pytrees, and JAX's maps with types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np

from bayesnb.families._display import as_html, as_text

Array = jax.Array | np.ndarray
Tree = TypeVar("Tree")
Result = TypeVar("Result")
T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def pytree(cls: type[T]) -> type[T]:
    """Class decorator: make `cls` a frozen dataclass and a JAX pytree; `static` fields go into the tree's structure.

    Not by `jax.tree_util.register_dataclass`: structures of two of its classes, with fields of the same names, compare
    equal (jax 0.10 and 0.12), and where their hashes meet, `jit` takes one class for the other.
    """
    defined = vars(cls)
    made: Any = dataclass(frozen=True, eq=False, repr=False)(cls)
    for name, shown in (("__repr__", as_text), ("_repr_html_", as_html)):
        if name not in defined:
            setattr(made, name, shown)
    static_names = tuple(f.name for f in fields(made) if f.metadata.get("static"))
    data = tuple(f.name for f in fields(made) if f.name not in static_names)
    keys = tuple(map(jax.tree_util.GetAttrKey, data))

    def flatten(tree: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Values of the data fields (children), and values of the static fields (auxiliary data)."""
        return tuple(getattr(tree, name) for name in data), tuple(getattr(tree, name) for name in static_names)

    def flatten_with_keys(tree: Any) -> tuple[tuple[tuple[Any, Any], ...], tuple[Any, ...]]:
        """Pairs (attribute key, value) of the data fields, and values of the static fields."""
        children, aux = flatten(tree)
        return tuple(zip(keys, children, strict=True)), aux

    def unflatten(aux: tuple[Any, ...], children: Iterable[Any]) -> Any:
        """Rebuild the dataclass from its static and its data values: the inverse of `flatten`."""
        return made(**dict(zip(data + static_names, (*children, *aux), strict=True)))

    jax.tree_util.register_pytree_with_keys(made, flatten_with_keys, unflatten, flatten)
    return made


def static() -> Any:
    """Dataclass field of a `pytree` class that belongs to the tree's structure, so that `jit` compiles per value."""
    return field(metadata={"static": True})


def map_leaves(function: Callable[..., object], tree: Tree, *others: Tree) -> Tree:
    """Apply a function to the corresponding arrays of pytrees of one type; return a pytree of that type."""
    return jax.tree.map(function, tree, *others)
