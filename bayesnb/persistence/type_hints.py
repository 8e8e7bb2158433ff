"""Check that values are of the types of annotations."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np

from bayesnb.encoding.table import Positions, is_labelled


def conforms(value: object, hint: Any) -> bool:
    """Return whether a value is of the type of an annotation; Any and protocols accept every value."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if _is_open(hint):
        return True
    if origin is typing.Literal:
        return isinstance(value, str) and value in arguments
    if origin in (types.UnionType, typing.Union):
        return any(conforms(value, option) for option in arguments)
    if origin is Sequence:
        if isinstance(value, range | Positions):
            return isinstance(value, range) == (arguments[0] is int)
        return isinstance(value, tuple | list) and all_conform(value, arguments[0])
    if origin in (tuple, list):
        return isinstance(value, origin) and all_conform(value, arguments[0])
    if hint is jax.Array:  # Type of families' fields, which users may also give as numbers, lists, dicts or Series.
        if isinstance(value, tuple | list) or is_labelled(value):
            items: Any = value.values() if isinstance(value, dict) else value
            return all(conforms(item, hint) for item in items)
        return isinstance(value, np.ndarray | jax.Array) or conforms(value, float)
    if hint is float:
        return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return isinstance(value, hint) and (hint is not int or type(value) is int)


def all_conform(values: Iterable[object], hint: Any) -> bool:
    """Return whether all values conform; a plain class needs one look at each type of the values."""
    if isinstance(hint, type) and hint is not float and not _is_open(hint):
        kinds = set(map(type, values))
        return all(issubclass(kind, hint) for kind in kinds) and not (hint is int and bool in kinds)
    return all(conforms(value, hint) for value in values)


def _is_open(hint: Any) -> bool:
    """Return whether an annotation is Any or a protocol, which accept every value."""
    return hint is Any or getattr(hint, "_is_protocol", False)
