"""A tree of JSON and arrays to the model that it stands for, and nothing else.

No length in a file is believed beyond the file's own: all that is longer than its place in the file (ranges, names that
are positions, arrays without elements) is paid for from a budget of as many entries as the file has bytes. Nor
does a file decide how long reading takes: the classifiers in a file, and values that have the same hash, are few.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import Any

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb.encoding import Levels
from bayesnb.encoding.levels import require_distinct_hashes
from bayesnb.encoding.table import Positions
from bayesnb.estimators import classifier_state
from bayesnb.persistence.files import CorruptModelError
from bayesnb.persistence.vocabulary import (
    REMOVED,
    TAG,
    Vocabulary,
    is_fitted_name,
    is_zone,
    require_keys,
    strange_label,
)

_MOST_ESTIMATORS = 8


class Decoder:
    """Reads one file of `size` bytes."""

    def __init__(self, arrays: Mapping[str, np.ndarray], size: int, known: Vocabulary) -> None:
        self.arrays = arrays
        self.known = known
        self.budget = size
        self.estimators = 0

    def decode(self, tree: Any) -> Any:
        if isinstance(tree, list):
            values = [self.decode(v) for v in tree]
            require_distinct_hashes(values)
            return values
        if not isinstance(tree, dict):
            return tree
        tag: Any = tree.get(TAG)
        read: Callable[[dict[str, Any]], Any] | None = getattr(self, f"_{tag}", None) if tag in _PLAIN else None
        if read is not None:
            return read(tree)
        if tag in self.known.types:
            return self._dataclass(self.known.types[tag], tree)
        if tag in self.known.estimators:
            return self._estimator(self.known.estimators[tag], tree)
        if tag in REMOVED:
            raise CorruptModelError(f"it holds a {tag}, a classifier that was removed. {REMOVED[tag]}")
        raise CorruptModelError(
            f"it names a type {tag!r} that no model has; a classifier of your own is read by its class, "
            "load(path, estimators=[...])."
        )

    def _spend(self, length: int) -> None:
        if not 0 <= length <= self.budget:
            raise CorruptModelError(f"it declares {length:,} entries, more than it has bytes.")
        self.budget -= length

    def _list(self, tree: dict[str, Any], name: str) -> list[Any]:
        """Written out in the file, so that it is no longer than that."""
        if not isinstance(tree[name], list):
            raise CorruptModelError(f"its {tree[TAG]} has {name} that are no list.")
        return self.decode(tree[name])

    def _float(self, tree: dict[str, Any]) -> float:
        if tree["value"] not in ("nan", "inf", "-inf"):
            raise CorruptModelError(f"it has {tree['value']!r} for a float that is not finite.")
        return float(tree["value"])

    def _tuple(self, tree: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self._list(tree, "values"))

    def _dict(self, tree: dict[str, Any]) -> dict[Any, Any]:
        keys = self._list(tree, "keys")
        require_keys(keys)
        return dict(zip(keys, self._list(tree, "values"), strict=True))

    def _range(self, tree: dict[str, Any]) -> range:
        found = range(*tree["value"])
        self._spend(max(0, -(-(found.stop - found.start) // found.step)))
        return found

    def _scalar(self, tree: dict[str, Any]) -> Any:
        array = self.decode(tree["value"])
        if not isinstance(array, np.ndarray) or array.ndim:
            raise CorruptModelError("it has a scalar that is none.")
        return array[()]

    def _class(self, tree: dict[str, Any]) -> type:
        return self.known.types[tree["value"]]

    def _tensor(self, tree: dict[str, Any]) -> np.ndarray:
        array = self.arrays[tree["name"]]
        self._spend(_axes(array.shape) if array.size == 0 else 0)
        return array

    def _array(self, tree: dict[str, Any]) -> np.ndarray:
        values = self._list(tree, "values")
        array = np.empty(len(values), object)
        array[:] = values
        if not values:
            self._spend(_axes(tree["shape"]))
        array = array.reshape(tree["shape"])
        dtype: Any = {"O": object, "U": str, "M": "M8"}[tree["kind"]]
        if tree["kind"] == "U":  # each entry is as wide as the widest
            self._spend(len(values) * max((len(v) for v in values), default=0) if _all(str, values) else -1)
        return array.astype(dtype)

    def _datetime64(self, tree: dict[str, Any]) -> np.datetime64:
        return np.datetime64(int(tree["value"]), (tree["unit"], tree["step"]))

    def _Timestamp(self, tree: dict[str, Any]) -> Any:
        import pandas as pd

        if not is_zone(tree["zone"]):
            raise CorruptModelError(f"it has the time zone {shown(tree['zone'])}.")
        time = pd.Timestamp(int(tree["value"]), unit="ns", tz=tree["zone"])
        return time.as_unit(tree["unit"])

    def _dataclass(self, cls: type, tree: dict[str, Any]) -> Any:
        found = {name: self.decode(value) for name, value in tree.items() if name != TAG}
        every = {f.name for f in fields(cls)}
        needed = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
        if not needed <= set(found) <= every:  # older files lack what was added since, with a default
            raise CorruptModelError(f"its {cls.__name__} has fields {sorted(found)}.")
        hints = _hints(cls)
        for name, value in found.items():
            if not conforms(value, hints[name]):
                raise CorruptModelError(f"its {cls.__name__} has a {type(value).__name__} for {name}, or in it.")
        made = cls(**found)
        if isinstance(made, Positions):
            self._spend(made.n)
        if isinstance(made, Levels) and (strange := strange_label(made)) is not None:
            raise CorruptModelError(f"it has the level {strange[0]!r}, a {type(strange[0]).__name__}.")
        return made

    def _estimator(self, cls: type, tree: dict[str, Any]) -> Any:
        """A classifier; a fitted one only if all that was fitted fits together."""
        self.estimators += 1
        if self.estimators > _MOST_ESTIMATORS:  # repr takes twice as long with each that stands in another
            raise CorruptModelError(f"it holds more than {_MOST_ESTIMATORS} classifiers.")
        nb = cls(**{name: self.decode(value) for name, value in tree["parameters"].items()})
        for name in tree["fitted"]:
            if not is_fitted_name(cls, name):
                raise CorruptModelError(f"it sets {cls.__name__}.{name}, which fit does not.")
        if tree["fitted"]:
            classifier_state.restore(nb, {name: self.decode(value) for name, value in tree["fitted"].items()})
        return nb


_PLAIN = ("float", "tuple", "dict", "range", "scalar", "class", "tensor", "array", "datetime64", "Timestamp")


_hints = cache(typing.get_type_hints)


def conforms(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that a field is annotated with; of a protocol any is."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or getattr(hint, "_is_protocol", False):
        return True
    if hint is Hashable:
        return type(value).__hash__ is not None
    if origin is typing.Literal:
        return isinstance(value, str) and value in arguments
    if origin in (types.UnionType, typing.Union):
        return any(conforms(value, option) for option in arguments)
    if origin is Sequence:
        lazy = range if arguments[0] is int else Positions
        return isinstance(value, lazy) or (isinstance(value, tuple | list) and _all(arguments[0], value))
    if origin is tuple:
        return isinstance(value, tuple) and _all(arguments[0], value)
    if hint is float:
        return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return type(value) is hint if hint in (int, bool, str, types.NoneType) else isinstance(value, hint)


def _all(hint: Any, values: Sequence[Any]) -> bool:
    kinds = set(map(type, values))
    if hint in (int, bool, str):
        return kinds <= {hint}
    if hint is Hashable:
        return all(kind.__hash__ is not None for kind in kinds)
    if hint is Levels:
        return kinds <= {Levels}
    return all(conforms(value, hint) for value in values)


def _axes(shape: Sequence[int]) -> int:
    """Entries of an array that has none, its empty axes taken for one."""
    return math.prod(max(1, n) for n in shape)


__all__ = ["Decoder", "conforms"]
