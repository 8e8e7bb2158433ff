"""Convert a tree of JSON and arrays to a model, in memory and time proportional to the size of the file.

Some values are longer than the text that declares them: ranges, names that are positions, arrays without elements. The
lengths of all these together are limited to the number of bytes of the file. The number of classifiers in one file, and
the number of values with the same hash, are limited too, as both could make reading slow.
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
from bayesnb.persistence.known_types import (
    REMOVED,
    TAG,
    KnownTypes,
    find_unsupported_label,
    is_fitted_name,
    is_storable_zone,
    require_keys,
)
from bayesnb.persistence.untrusted_files import CorruptModelError

_MOST_ESTIMATORS = 8


class Decoder:
    """Decoder of the tree of one file.

    Parameters
    ----------
    arrays : dict {name: array}
        Arrays of the file.
    size : int
        Number of bytes of the file.
    known : KnownTypes
        Types that the file can name.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], size: int, known: KnownTypes) -> None:
        self.arrays = arrays
        self.known = known
        self.budget = size
        self.estimators = 0

    def decode(self, tree: Any) -> Any:
        """Return the object that a tree stands for; raise CorruptModelError, or another error, if there is none."""
        if isinstance(tree, list):
            values = [self.decode(v) for v in tree]
            require_distinct_hashes(values)
            return values
        if not isinstance(tree, dict):
            return tree
        tag: Any = tree.get(TAG)
        if tag in _PLAIN:
            return _PLAIN[tag](self, tree)
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
        """Subtract a length from what the file may still declare; raise CorruptModelError if it is longer."""
        if not 0 <= length <= self.budget:
            raise CorruptModelError(f"it declares {length:,} entries, more than it has bytes.")
        self.budget -= length

    def _list(self, tree: dict[str, Any], name: str) -> list[Any]:
        """Decode a list of a tree, which is written out in the file and so no longer than the file."""
        if not isinstance(tree[name], list):
            raise CorruptModelError(f"its {tree[TAG]} has {name} that are no list.")
        values: list[Any] = self.decode(tree[name])
        return values

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
        positions = range(*tree["value"])
        # `len` raises OverflowError for ranges of 2**63 positions or more.
        self._spend(max(0, -(-(positions.stop - positions.start) // positions.step)))
        return positions

    def _scalar(self, tree: dict[str, Any]) -> Any:
        array = self.decode(tree["value"])
        if not isinstance(array, np.ndarray) or array.ndim:
            raise CorruptModelError("it has a scalar that is none.")
        return array[()]

    def _class(self, tree: dict[str, Any]) -> type:
        return self.known.types[tree["value"]]

    def _tensor(self, tree: dict[str, Any]) -> np.ndarray:
        array = self.arrays[tree["name"]]
        self._spend(_entries_without_empty_axes(array.shape) if array.size == 0 else 0)
        return array

    def _array(self, tree: dict[str, Any]) -> np.ndarray:
        values = self._list(tree, "values")
        array = np.empty(len(values), object)
        array[:] = values
        if not values:
            self._spend(_entries_without_empty_axes(tree["shape"]))
        array = array.reshape(tree["shape"])
        dtype: Any = {"O": object, "U": str, "M": "M8"}[tree["kind"]]
        if tree["kind"] == "U":  # Each entry of an array of strings takes as much memory as the longest one.
            self._spend(len(values) * max((len(v) for v in values), default=0) if _all_conform(str, values) else -1)
        return array.astype(dtype)

    def _datetime64(self, tree: dict[str, Any]) -> np.datetime64:
        return np.datetime64(int(tree["value"]), (tree["unit"], tree["step"]))

    def _timestamp(self, tree: dict[str, Any]) -> Any:
        import pandas as pd

        if not is_storable_zone(tree["zone"]):
            raise CorruptModelError(f"it has the time zone {shown(tree['zone'])}.")
        time = pd.Timestamp(int(tree["value"]), unit="ns", tz=tree["zone"])
        return time.as_unit(tree["unit"])

    def _dataclass(self, cls: type, tree: dict[str, Any]) -> Any:
        values = {name: self.decode(value) for name, value in tree.items() if name != TAG}
        allowed = {f.name for f in fields(cls)}
        required = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
        if not required <= set(values) <= allowed:  # Older files lack fields that were added later, with a default.
            raise CorruptModelError(f"its {cls.__name__} has fields {sorted(values)}.")
        hints = _type_hints(cls)
        for name, value in values.items():
            if not conforms(value, hints[name]):
                raise CorruptModelError(f"its {cls.__name__} has a {type(value).__name__} for {name}, or in it.")
        instance = cls(**values)
        if isinstance(instance, Positions):
            self._spend(instance.n)
        if isinstance(instance, Levels) and (unsupported := find_unsupported_label(instance)) is not None:
            (level,) = unsupported
            raise CorruptModelError(f"it has the level {level!r}, a {type(level).__name__}.")
        return instance

    def _estimator(self, cls: type, tree: dict[str, Any]) -> Any:
        """Decode a classifier; raise CorruptModelError or ValueError if its fitted attributes contradict each other."""
        self.estimators += 1
        if self.estimators > _MOST_ESTIMATORS:  # Each classifier within another one doubles the time of `repr`.
            raise CorruptModelError(f"it holds more than {_MOST_ESTIMATORS} classifiers.")
        nb = cls(**{name: self.decode(value) for name, value in tree["parameters"].items()})
        for name in tree["fitted"]:
            if not is_fitted_name(cls, name):
                raise CorruptModelError(f"it sets {cls.__name__}.{name}, which fit does not.")
        if tree["fitted"]:
            classifier_state.restore(nb, {name: self.decode(value) for name, value in tree["fitted"].items()})
        return nb


_PLAIN: dict[str, Callable[[Decoder, dict[str, Any]], Any]] = {
    "float": Decoder._float,
    "tuple": Decoder._tuple,
    "dict": Decoder._dict,
    "range": Decoder._range,
    "scalar": Decoder._scalar,
    "class": Decoder._class,
    "tensor": Decoder._tensor,
    "array": Decoder._array,
    "datetime64": Decoder._datetime64,
    "Timestamp": Decoder._timestamp,
}
_type_hints = cache(typing.get_type_hints)


def conforms(value: object, hint: Any) -> bool:
    """Return whether a value is of the type of an annotation; a protocol accepts every value."""
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
        return isinstance(value, lazy) or (isinstance(value, tuple | list) and _all_conform(arguments[0], value))
    if origin is tuple:
        return isinstance(value, tuple) and _all_conform(arguments[0], value)
    if hint is float:
        return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return type(value) is hint if hint in (int, bool, str, types.NoneType) else isinstance(value, hint)


def _all_conform(hint: Any, values: Sequence[Any]) -> bool:
    """Return whether all values conform; hints of many values need their types only."""
    kinds = set(map(type, values))
    if hint in (int, bool, str):
        return kinds <= {hint}
    if hint is Hashable:
        return all(kind.__hash__ is not None for kind in kinds)
    if hint is Levels:
        return kinds <= {Levels}
    return all(conforms(value, hint) for value in values)


def _entries_without_empty_axes(shape: Sequence[int]) -> int:
    """Return the product of the lengths of the axes that are not empty."""
    return math.prod(max(1, n) for n in shape)


__all__ = ["Decoder", "conforms"]
