"""Save and load fitted classifiers: one safetensors file, which is read without executing anything.

The arrays are the file's tensors. Everything else (labels, levels, names, hyperparameters) is JSON in its metadata: a
tree of plain values and of the few types in `_TYPES`, which is all that a file can name.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesnb import encoding, estimators, families
from bayesnb.arguments import require_path, shown
from bayesnb.encoding.columns import FixedColumns
from bayesnb.encoding.table import Positions
from bayesnb.files import write_atomically
from bayesnb.model import NaiveBayes, Statistics

_FORMAT, _VERSION = "bayesnb", 1
_DATA = (
    encoding.Encoding,
    encoding.Levels,
    encoding.LevelColumns,
    encoding.NodeColumns,
    encoding.RealColumns,
    encoding.CountColumns,
    encoding.BinaryColumns,
    Positions,
    Statistics,
    NaiveBayes,
    families.AveragedCells,
    families.AveragedLevels,
    families.Dirichlet,
    families.GammaPoisson,
    families.Known,
    families.NormalInverseGamma,
    families.LevelCounts,
    families.Moments,
    families.Totals,
)
_TYPES: dict[str, type] = {cls.__name__: cls for cls in _DATA}
_ESTIMATORS: dict[str, type] = {name: getattr(estimators, name) for name in estimators.__all__}
_TAG = "type"


class CorruptModelError(ValueError):
    """A file that is no whole model of bayesnb."""


def save(nb: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to one file.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    path : path
        What is there is replaced once all is written and on the disk.

    Raises
    ------
    TypeError
        If a label, a level or a hyperparameter is of a type that a file cannot have, naming it: they may be str, int,
        float, bool, datetime64 or None, and lists, dicts, arrays and priors of these. Nothing is written.
    OSError
        If the file cannot be written; the old one is as it was.

    Notes
    -----
    A safetensors file: arrays are its tensors, to the bit; the rest is JSON in its metadata, under "bayesnb", with a
    SHA-256 of everything. No pickle. The same model makes the same file.
    """
    from safetensors.numpy import save as to_bytes

    if _ESTIMATORS.get(type(nb).__name__) is not type(nb):
        raise TypeError(f"save takes a fitted classifier of bayesnb, and got {shown(nb)}.")
    check_is_fitted(nb)
    require_path("path", path)
    arrays: dict[str, np.ndarray] = {}
    model = _encode(nb, type(nb).__name__, arrays)
    content = {"version": _VERSION, "sha256": _digest(model, arrays), "model": model}
    write_atomically(path, to_bytes(arrays, {_FORMAT: json.dumps(content, allow_nan=False)}))


def load(path: str | os.PathLike[str]) -> Any:
    """The classifier that `save` wrote.

    Raises
    ------
    CorruptModelError
        If the file is damaged, or is no model of bayesnb, saying what is wrong.
    OSError
        If there is no such file, or it cannot be read.

    Notes
    -----
    Nothing in the file is executed, and no more memory is taken than a few times its size.
    """
    require_path("path", path)
    content = Path(path).read_bytes()
    try:
        return _read(content)
    except CorruptModelError as error:
        raise CorruptModelError(f"{path}: {error}") from None
    except Exception as error:  # whatever else a hostile file may lead to
        raise CorruptModelError(f"{path} is damaged: {type(error).__name__}: {str(error)[:200]}") from None


def hyperparameters(nb: Any) -> str:
    """A digest of the hyperparameters, as `save` would write them."""
    arrays: dict[str, np.ndarray] = {}
    return _digest(_encode(nb.get_params(deep=False), type(nb).__name__, arrays), arrays)


def _read(content: bytes) -> Any:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    try:
        arrays = from_bytes(content)
    except SafetensorError as error:
        raise CorruptModelError(f"it is no safetensors file, or only a part of one: {error}.") from None
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    metadata = header.get("__metadata__", {})
    if _FORMAT not in metadata:
        raise CorruptModelError("it is a safetensors file, but no model of bayesnb.")
    file = json.loads(metadata[_FORMAT])
    if file["version"] != _VERSION:
        raise CorruptModelError(f"it has version {file['version']!r}; this bayesnb reads version {_VERSION}.")
    if file["sha256"] != _digest(file["model"], arrays):
        raise CorruptModelError("its content does not have the checksum that was written with it.")
    nb = _Decoder(arrays, len(content)).decode(file["model"])
    if type(nb).__name__ not in _ESTIMATORS:
        raise CorruptModelError(f"it holds no classifier, but {type(nb).__name__}.")
    _require_consistent(getattr(nb, "estimator_", nb), len(content))
    return nb


def _digest(model: Any, arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(f"{_FORMAT} {_VERSION}\n{json.dumps(model)}".encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


# -- writing ---------------------------------------------------------------------------------------------------------


def _encode(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    """The value as JSON has it; numeric arrays go to `arrays`."""

    def inner(value: Any, name: str) -> Any:
        return _encode(value, f"{where}{name}", arrays)

    def listed(values: Any) -> list[Any]:
        return [inner(v, f"[{i}]") for i, v in enumerate(values)]

    kind = type(value)
    if value is None or kind in (bool, str, int):
        return value
    if kind is float:
        return value if np.isfinite(value) else {_TAG: "float", "value": repr(value)}
    if kind is list:
        return listed(value)
    if kind is tuple:
        return {_TAG: "tuple", "values": listed(value)}
    if kind is dict:
        return {_TAG: "dict", "keys": listed(value), "values": [inner(v, f"[{k!r}]") for k, v in value.items()]}
    if kind is range:
        return {_TAG: "range", "value": [value.start, value.stop, value.step]}
    if isinstance(value, np.datetime64) or kind.__name__ == "Timestamp":
        return _encode_time(value, where)
    if isinstance(value, np.generic):
        return {_TAG: "scalar", "value": inner(np.asarray(value), "")}
    if isinstance(value, type) and value.__name__ in _TYPES:
        return {_TAG: "class", "value": value.__name__}
    if isinstance(value, np.ndarray) or hasattr(value, "__jax_array__") or kind.__module__.startswith("jax"):
        return _encode_array(np.asarray(value), where, arrays)
    if isinstance(value, encoding.Levels):
        _require_labels(value, where)
    if is_dataclass(value) and kind.__name__ in _TYPES:
        return {_TAG: kind.__name__, **{f.name: inner(getattr(value, f.name), f".{f.name}") for f in fields(value)}}
    if kind.__name__ in _ESTIMATORS:
        return {
            _TAG: kind.__name__,
            "parameters": {k: inner(v, f".{k}") for k, v in value.get_params(deep=False).items()},
            "fitted": {k: inner(getattr(value, k), f".{k}") for k in vars(value) if _is_fitted_name(kind, k)},
        }
    raise TypeError(
        f"save: {where} is {value!r}, a {kind.__name__}, which no file can have: labels and levels may be str, int, "
        "float, bool, datetime64 or None. Nothing was written."
    )


def _require_labels(levels: encoding.Levels, where: str) -> None:
    for value in levels.values:
        if value is not None and type(value).__name__ not in ("str", "int", "float", "bool", "Timestamp"):
            raise TypeError(
                f"save: {where} has the label {value!r}, a {type(value).__name__}; a file can have str, int, float, "
                "bool, datetime64 and None. Nothing was written."
            )


def _encode_time(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, np.datetime64):
        unit, step = np.datetime_data(value.dtype)
        return {_TAG: "datetime64", "value": int(value.astype(np.int64)), "unit": unit, "step": step}
    zone = None if value.tz is None else str(value.tz)
    return {_TAG: "Timestamp", "value": value.as_unit("ns").value, "unit": value.unit, "zone": zone}


def _encode_array(value: np.ndarray, where: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    kind = value.dtype.kind
    if kind in "biuf" and value.dtype.itemsize <= 8:
        name = str(len(arrays))
        arrays[name] = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("="))).reshape(value.shape)
        return {_TAG: "tensor", "name": name}
    if kind == "M":
        values = [_encode_time(v, where) for v in value.ravel()]
    elif kind in "UO":
        values = [_encode(v, f"{where}[{i}]", arrays) for i, v in enumerate(value.ravel().tolist())]
    else:
        raise TypeError(f"save: {where} is an array of {value.dtype}, which no file can have. Nothing was written.")
    return {_TAG: "array", "kind": kind, "shape": list(value.shape), "values": values}


def _is_fitted_name(cls: type, name: str) -> bool:
    """Whether an attribute is something that `fit` stores."""
    return name.endswith("_") and not name.startswith("_") and not hasattr(cls, name)


# -- reading ---------------------------------------------------------------------------------------------------------


class _Decoder:
    """A tree of JSON to what it stands for, and nothing else; `size` bounds every length."""

    def __init__(self, arrays: Mapping[str, np.ndarray], size: int) -> None:
        self.arrays = arrays
        self.size = size

    def decode(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.decode(v) for v in tree]
        if not isinstance(tree, dict):
            return tree
        tag = tree.get(_TAG)
        read: Callable[[dict[str, Any]], Any] | None = getattr(self, f"_{tag}", None) if tag in _PLAIN else None
        if read is not None:
            return read(tree)
        if tag in _TYPES:
            return self._dataclass(_TYPES[tag], tree)
        if tag in _ESTIMATORS:
            return self._estimator(_ESTIMATORS[tag], tree)
        raise CorruptModelError(f"it names a type {tag!r} that no model has.")

    def _float(self, tree: dict[str, Any]) -> float:
        return float(tree["value"])

    def _tuple(self, tree: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self.decode(tree["values"]))

    def _dict(self, tree: dict[str, Any]) -> dict[Any, Any]:
        return dict(zip(self.decode(tree["keys"]), self.decode(tree["values"]), strict=True))

    def _range(self, tree: dict[str, Any]) -> range:
        found = range(*tree["value"])
        if len(found) > self.size:
            raise CorruptModelError(f"it declares {len(found):,} columns, more than it has bytes.")
        return found

    def _scalar(self, tree: dict[str, Any]) -> Any:
        return self.decode(tree["value"])[()]

    def _class(self, tree: dict[str, Any]) -> type:
        return _TYPES[tree["value"]]

    def _tensor(self, tree: dict[str, Any]) -> np.ndarray:
        return self.arrays[tree["name"]]

    def _array(self, tree: dict[str, Any]) -> np.ndarray:
        values = self.decode(tree["values"])
        array = np.empty(len(values), object)
        array[:] = values
        array = array.reshape(tree["shape"])
        dtype: Any = {"O": object, "U": str, "M": "M8"}[tree["kind"]]
        return array.astype(dtype)

    def _datetime64(self, tree: dict[str, Any]) -> np.datetime64:
        return np.datetime64(int(tree["value"]), (tree["unit"], tree["step"]))

    def _Timestamp(self, tree: dict[str, Any]) -> Any:
        import pandas as pd

        time = pd.Timestamp(int(tree["value"]), unit="ns", tz=tree["zone"])
        return time.as_unit(tree["unit"])

    def _dataclass(self, cls: type, tree: dict[str, Any]) -> Any:
        found = {name: self.decode(value) for name, value in tree.items() if name != _TAG}
        if set(found) != {f.name for f in fields(cls)}:
            raise CorruptModelError(f"its {cls.__name__} has fields {sorted(found)}.")
        if cls is Positions and not 0 <= found["n"] <= self.size:
            raise CorruptModelError(f"it declares {found['n']:,} columns, more than it has bytes.")
        return cls(**found)

    def _estimator(self, cls: type, tree: dict[str, Any]) -> Any:
        nb = cls(**{name: self.decode(value) for name, value in tree["parameters"].items()})
        for name, value in tree["fitted"].items():
            if not _is_fitted_name(cls, name):
                raise CorruptModelError(f"it sets {cls.__name__}.{name}, which fit does not.")
            setattr(nb, name, self.decode(value))
        return nb


_PLAIN = ("float", "tuple", "dict", "range", "scalar", "class", "tensor", "array", "datetime64", "Timestamp")


# -- what was read, checked before anything is computed from it ------------------------------------------------------


def _require_consistent(nb: Any, size: int) -> None:
    """Refuse a classifier whose parts do not fit together; `size` bounds every number of columns.

    Raises
    ------
    CorruptModelError
        Saying which parts.
    """
    encoded = getattr(nb, "encoding_", None)
    if not isinstance(encoded, encoding.Encoding):
        raise CorruptModelError(f"its {type(nb).__name__} was never fitted.")
    classes = encoded.classes.values
    if not isinstance(classes, tuple) or len(set(classes)) != len(classes) or not classes:
        raise CorruptModelError("its classes are no distinct labels.")
    for columns in encoded.blocks:
        _require_columns(columns, size)
    if hasattr(nb, "statistics_"):
        statistics = nb.statistics_
        _require_array("class_count", statistics.class_count, (len(classes),))
        _require_array("log_base", statistics.log_base, ())
        if len(statistics.blocks) != len(encoded.blocks):
            raise CorruptModelError("it has statistics of another number of blocks than columns.")
        for columns, block in zip(encoded.blocks, statistics.blocks, strict=True):
            for field in fields(block):
                _require_array(field.name, getattr(block, field.name), (len(classes), _width(columns)))
        nb._prior(nb._counted)


def _require_columns(columns: Any, size: int) -> None:
    """Refuse columns whose parts do not fit together, before anything as long as they say is made."""
    if not isinstance(columns, encoding.LevelColumns | encoding.NodeColumns | FixedColumns):
        raise CorruptModelError(f"it has {type(columns).__name__} for columns.")
    base: Any = columns.base if isinstance(columns, encoding.NodeColumns) else columns
    many = len(base.index)
    if len(base.names) != many or many > size or not many <= base.n_features <= size:
        raise CorruptModelError(f"it has {many} columns of {base.n_features}, and {len(base.names)} names.")
    # A range says of itself what is in it; other numbers are looked at.
    ends = (base.index[0], base.index[-1]) if isinstance(base.index, range) and many else base.index
    if not all(type(j) is int and 0 <= j < base.n_features for j in ends):
        raise CorruptModelError("it has columns that are not among those of the table.")
    if isinstance(base, encoding.LevelColumns):
        if not len(base.levels) == len(base.declared) == many:
            raise CorruptModelError(f"it has levels of {len(base.levels)} columns, and there are {many}.")
        if not all(isinstance(own.values, tuple) for own in base.levels):
            raise CorruptModelError("it has levels that are no list of values.")
    if isinstance(columns, encoding.NodeColumns):
        nodes = columns.nodes
        if not all(node and all(type(j) is int and 0 <= j < many for j in node) for node in nodes):
            raise CorruptModelError("its network has arcs of columns that there are not.")


def _width(columns: Any) -> int:
    """Positions of the last axis of the statistics."""
    if isinstance(columns, encoding.NodeColumns):
        return sum(math.prod(columns.shape(node)) for node in columns.nodes)
    if isinstance(columns, encoding.LevelColumns):
        return int(columns.sizes().sum())
    return len(columns.index) * (2 if isinstance(columns, encoding.BinaryColumns) else 1)


def _require_array(name: str, array: Any, shape: tuple[int, ...]) -> None:
    array = np.asarray(array) if isinstance(array, np.generic) else array
    if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != shape:
        found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise CorruptModelError(f"its {name} should be float64 of shape {shape}, and is {found}.")
    if not np.isfinite(array).all():
        raise CorruptModelError(f"its {name} is not finite.")


__all__ = ["CorruptModelError", "hyperparameters", "load", "save"]
