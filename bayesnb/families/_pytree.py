"""Frozen dataclasses that are JAX pytrees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

import jax

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def pytree(cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass and a pytree; `static` fields go into the tree's structure."""
    return jax.tree_util.register_dataclass(dataclass(frozen=True, eq=False)(cls))


def static() -> Any:
    """Declare a field of a pytree that is part of its structure, not of its data."""
    return field(metadata={"static": True})
