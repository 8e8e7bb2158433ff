"""Conversion of a model to a tree of JSON with arrays, and back, in memory and time proportional to the file's size.

A tree has plain values, lists, and objects with the name of a type. Some values are longer than the text that declares
them: ranges, names that are positions, arrays without elements. The lengths of all these together are limited to the
number of bytes of the file. The number of classifiers in one file, and the number of values with the same hash, are
limited too, as both could make reading slow.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator

from bayesnb._util.arguments import shown
from bayesnb.encoding import Levels
from bayesnb.encoding.levels import require_distinct_hashes
from bayesnb.encoding.table import Positions
from bayesnb.estimators import classifier_state
from bayesnb.persistence.known_types import REMOVED, TAG, require_keys, require_labels, require_zone
from bayesnb.persistence.type_hints import all_conform, conforms
from bayesnb.persistence.untrusted_files import CorruptModelError

Tree = Any
"""Value of JSON."""

_MOST_ESTIMATORS = 8
_DTYPES: Mapping[str, Any] = {"O": object, "U": str, "M": "M8"}
_type_hints = cache(typing.get_type_hints)


class Encoder:
    """Encoder of values as trees.

    Parameters
    ----------
    known : dict {name: type}
        Types that a file can name.

    Attributes
    ----------
    arrays : dict {name: array}
        Numeric arrays of all trees, which stand in the trees by name.
    """

    def __init__(self, known: Mapping[str, type]) -> None:
        self.known = known
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value: Any, where: str) -> Tree:
        """Return the tree of a value and add its arrays to `arrays`; `where` names the value in error messages.

        Raises
        ------
        TypeError
            If the value is of a type that a file cannot have.
        ValueError
            If more than 64 keys or values have the same hash, or a dictionary has keys that `require_keys` refuses.
        """
        kind = type(value)
        if value is None or kind in (bool, str, int) or (kind is float and math.isfinite(value)):
            return value
        if kind is float:
            return {TAG: "float", "value": repr(value)}
        if kind is list:
            return self._items(value, where)
        if kind is tuple:
            return {TAG: "tuple", "values": self._items(value, where)}
        if isinstance(value, Mapping):
            require_keys(value)
            values = [self.encode(v, f"{where}[{shown(k)}]") for k, v in value.items()]
            return {TAG: "dict", "keys": self._items(value, where), "values": values}
        if hasattr(value, "iloc") and hasattr(value, "to_frame"):  # a pandas Series; an index has no `iloc`
            labels = self._items(value.index.tolist(), f"{where}.index")
            return {TAG: "series", "labels": labels, "values": self._items(value.tolist(), where)}
        if kind is range:
            return {TAG: "range", "value": [value.start, value.stop, value.step]}
        if isinstance(value, np.datetime64) or kind.__name__ == "Timestamp":
            return _encode_time(value, where)
        if isinstance(value, np.generic):
            return {TAG: "scalar", "value": self._array(np.asarray(value), where)}
        if isinstance(value, np.ndarray | jax.Array):
            return self._array(np.asarray(value), where)
        if isinstance(value, type) and self.known.get(value.__name__) is value:
            return {TAG: "class", "value": value.__name__}
        if self.known.get(kind.__name__) is not kind:
            allowed = "Labels and levels may be str, int, float, bool, datetime64 or None"
            raise TypeError(f"{where} is {shown(value)}, a {kind.__name__}, which a file cannot hold. {allowed}.")
        tagged = {TAG: kind.__name__}
        if isinstance(value, BaseEstimator):
            parameters, state = value.get_params(deep=False), classifier_state.collect_state(value)
            return tagged | {"parameters": self._named(parameters, where), "fitted": self._named(state, where)}
        if isinstance(value, Levels):
            require_labels(value, where)
        return tagged | self._named({f.name: getattr(value, f.name) for f in fields(value) if f.init}, where)

    def _named(self, values: Mapping[str, object], where: str) -> dict[str, Tree]:
        """Return {name: tree} of named values, such as fields; `where` names their owner in error messages."""
        return {name: self.encode(value, f"{where}.{name}") for name, value in values.items()}

    def _items(self, values: Iterable[object], where: str) -> list[Tree]:
        """Return the trees of some values; raise ValueError if more than 64 of them have the same hash."""
        items = list(values)
        require_distinct_hashes(items)
        return [self.encode(item, f"{where}[{i}]") for i, item in enumerate(items)]

    def _array(self, value: np.ndarray, where: str) -> dict[str, Tree]:
        """Return the tree of an array: the name under which numbers are added to `arrays`; other entries one by one."""
        kind = value.dtype.kind
        if kind in "biuf" and value.dtype.itemsize <= 8:
            name = str(len(self.arrays))
            self.arrays[name] = np.asarray(value, value.dtype.newbyteorder("="), order="C")
            return {TAG: "tensor", "name": name}
        if kind not in _DTYPES:
            raise TypeError(f"{where} is an array of {value.dtype}; convert it to numbers, strings or dates.")
        items = list(value.ravel()) if kind == "M" else value.ravel().tolist()
        values = [self.encode(item, f"{where}[{i}]") for i, item in enumerate(items)]
        return {TAG: "array", "kind": kind, "shape": list(value.shape), "values": values}


def _encode_time(value: Any, where: str) -> dict[str, Tree]:
    """Return the tree of a datetime64 or a pandas Timestamp; raise TypeError if a file cannot have its time zone."""
    if isinstance(value, np.datetime64):
        unit, step = np.datetime_data(value.dtype)
        return {TAG: "datetime64", "value": int(value.astype(np.int64)), "unit": unit, "step": step}
    zone = None if value.tz is None else str(value.tz)
    require_zone(zone, where)
    return {TAG: "Timestamp", "value": value.as_unit("ns").value, "unit": value.unit, "zone": zone}


class Decoder:
    """Decoder of the tree of one file.

    Parameters
    ----------
    arrays : dict {name: array}
        Arrays of the file.
    size : int
        Number of bytes of the file.
    known : dict {name: type}
        Types that the file can name.

    Attributes
    ----------
    budget : int
        Number of entries that the file may still declare without writing them out.
    n_estimators : int
        Number of classifiers that were decoded.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], size: int, known: Mapping[str, type]) -> None:
        self.arrays = arrays
        self.known = known
        self.budget = size
        self.n_estimators = 0

    def decode(self, tree: Tree) -> Any:
        """Return the object that a tree stands for; raise CorruptModelError, or another error, if there is none."""
        if isinstance(tree, list):
            return self._items(tree)
        if not isinstance(tree, dict):
            return tree
        match tree.get(TAG):
            case "float":
                return float(tree["value"])
            case "tuple":
                return tuple(self._items(tree["values"]))
            case "dict":
                keys = self._items(tree["keys"])
                require_keys(keys)
                return dict(zip(keys, self._items(tree["values"]), strict=True))
            case "series":
                return _make_series(self._items(tree["labels"]), self._items(tree["values"]))
            case "range":
                positions = range(*tree["value"])
                self._spend(len(positions))
                return positions
            case "scalar":
                return self.decode(tree["value"])[()]
            case "class":
                return self.known[tree["value"]]
            case "tensor":
                array = self.arrays[tree["name"]]
                self._spend_if_empty(array.size, array.shape)
                return array
            case "array":
                return self._array(tree)
            case "datetime64":
                return np.datetime64(int(tree["value"]), (tree["unit"], tree["step"]))
            case "Timestamp":
                return _decode_time(tree)
            case str(name) if name in self.known:
                cls = self.known[name]
                return self._estimator(cls, tree) if issubclass(cls, BaseEstimator) else self._dataclass(cls, tree)
            case str(name) if name in REMOVED:
                raise CorruptModelError(f"the file holds a {name}, a classifier that was removed. {REMOVED[name]}")
            case name:
                unknown = f"the file names the type {shown(name)}, which is not a type of bayesnb"
                raise CorruptModelError(f"{unknown}. Pass a class of your own: load(path, estimators=[...]).")

    def _spend(self, length: int) -> None:
        """Subtract a length from `budget`; raise CorruptModelError if it is negative or greater than `budget`."""
        if not 0 <= length <= self.budget:
            raise CorruptModelError(f"the file declares {length:,} entries, more than the file has bytes.")
        self.budget -= length

    def _spend_if_empty(self, n_entries: int, shape: Sequence[int]) -> None:
        """Subtract the product of the positive lengths in `shape` from `budget`, if the array has no entries.

        The file need not write out such lengths.
        """
        self._spend(0 if n_entries else math.prod(max(1, n) for n in shape))

    def _items(self, trees: Tree) -> list[Any]:
        """Return the values of a list of trees, which is written out in the file and so no longer than the file."""
        if not isinstance(trees, list):
            raise CorruptModelError(f"the file has a {type(trees).__name__} where it should have a list.")
        items = [self.decode(tree) for tree in trees]
        require_distinct_hashes(items)
        return items

    def _array(self, tree: dict[str, Tree]) -> np.ndarray:
        """Return the array of strings, dates or objects whose entries a tree writes out."""
        values, shape = self._items(tree["values"]), tree["shape"]
        self._spend_if_empty(len(values), shape)
        if tree["kind"] == "U":  # Each entry of an array of strings takes as much memory as the longest one.
            self._spend(len(values) * max((len(v) for v in values), default=0) if all_conform(values, str) else -1)
        return _objects(values).reshape(shape).astype(_DTYPES[tree["kind"]])

    def _dataclass(self, cls: type, tree: dict[str, Tree]) -> Any:
        """Return an instance of `cls`; raise CorruptModelError if a field is missing or not of the annotated type."""
        values = {name: self.decode(value) for name, value in tree.items() if name != TAG}
        accepted, hints = [f for f in fields(cls) if f.init], _type_hints(cls)
        required = {f.name for f in accepted if f.default is MISSING and f.default_factory is MISSING}
        # Older files lack fields that were added later, with a default.
        if not required <= set(values) <= {f.name for f in accepted}:
            raise CorruptModelError(f"the {cls.__name__} in the file has the wrong fields: {shown(sorted(values))}.")
        for name, value in values.items():
            if not conforms(value, hints[name]):
                wrong = f"a {type(value).__name__} in the field {shown(name)}; that type, or its items', is wrong"
                raise CorruptModelError(f"the {cls.__name__} in the file has {wrong}.")
        instance = cls(**values)
        if isinstance(instance, Positions):
            self._spend(instance.n)
        if isinstance(instance, Levels):
            require_labels(instance, "the file")
        return instance

    def _estimator(self, cls: type, tree: dict[str, Tree]) -> Any:
        """Return the classifier of a tree; raise CorruptModelError or ValueError if fitted attributes are wrong."""
        self.n_estimators += 1
        if self.n_estimators > _MOST_ESTIMATORS:  # Each classifier within another one doubles the time of `repr`.
            raise CorruptModelError(f"the file holds more than {_MOST_ESTIMATORS} classifiers.")
        nb = cls(**{name: self.decode(value) for name, value in tree["parameters"].items()})
        for name in tree["fitted"]:
            if not is_fitted_name(cls, name):
                raise CorruptModelError(f"the file has an attribute {shown(name)} that a {cls.__name__} has not.")
        if tree["fitted"]:
            classifier_state.restore(nb, {name: self.decode(value) for name, value in tree["fitted"].items()})
        return nb


def is_fitted_name(cls: type, name: str) -> bool:
    """Return whether `name` is that of an attribute that `fit` sets: it ends in _, and `cls` does not define it."""
    is_state = name in ("encoding_", "statistics_")  # Classes have properties of these names, and of no other ones.
    return name.endswith("_") and not name.startswith("_") and hasattr(cls, name) == is_state


def _objects(values: list[Any]) -> np.ndarray:
    """Return a vector of objects, also if these are sequences."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _make_series(labels: list[Any], values: list[Any]) -> Any:
    """Return a pandas Series; raise ValueError if the numbers of labels and values differ."""
    import pandas as pd

    index = pd.Index(labels, tupleize_cols=False, dtype=None if labels else object)
    return pd.Series(_objects(values), index).infer_objects()


def _decode_time(tree: dict[str, Tree]) -> Any:
    """Return the pandas Timestamp of a tree; raise TypeError if a file cannot have its time zone."""
    import pandas as pd

    require_zone(tree["zone"], "the file")
    return pd.Timestamp(int(tree["value"]), unit="ns", tz=tree["zone"]).as_unit(tree["unit"])
