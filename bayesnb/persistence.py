"""Files of fitted classifiers (safetensors) and of bags of words (JSON), read without executing anything.

The arrays of a classifier are the file's tensors. Everything else (labels, levels, names, hyperparameters) is JSON in
the metadata: a tree of plain values, lists, and objects with the name of one of the few types that `collect_types`
lists. Some values are longer than the text that declares them: ranges, names that are positions, arrays without
elements. The lengths of all these together are limited to the number of bytes of the file, and so are the number of
classifiers in one file and the number of values with the same hash, so that reading takes time and memory proportional
to the file.

Trees of older files are converted to the current version, one version at a time. A field that was added with a default
needs no function, as the default stands for the field in older files. In statistics every field is an array, so that no
field has a default. A field or a type that was renamed, removed or given another meaning needs a function in
`MIGRATIONS`, which increases the version by one. `tests/fixtures` has files of all earlier versions.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from types import NoneType
from typing import Any, BinaryIO, Literal, TypeVar

import jax
import numpy as np

from bayesnb import encoding, estimators, families
from bayesnb._util.arguments import bad_argument, is_key, require_path, shown
from bayesnb._util.atomic_files import open_regular, write_atomically
from bayesnb._util.precision import ForkedError
from bayesnb._util.scikit_learn import BaseEstimator
from bayesnb.encoding import Levels
from bayesnb.encoding.levels import require_distinct_hashes
from bayesnb.encoding.table import Positions, is_labelled
from bayesnb.estimators import NaiveBayesMixture, classifier_state
from bayesnb.estimators.predictions import FittedClassifier
from bayesnb.fitted.number_cells import NumberCells
from bayesnb.fitted.state import require_fitted
from bayesnb.model import NaiveBayes, Statistics, TermWeights
from bayesnb.weights.terms import WeightPath, Weights

# == Check that values are of the types of annotations =============================================


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


def all_conform(values: Iterable[object], hint: object) -> bool:
    """Return whether all values conform; a plain class needs one look at each type of the values."""
    if isinstance(hint, type) and hint is not float and not _is_open(hint):
        kinds = set(map(type, values))
        return all(issubclass(kind, hint) for kind in kinds) and not (hint is int and bool in kinds)
    return all(conforms(value, hint) for value in values)


def _is_open(hint: object) -> bool:
    """Return whether an annotation is Any or a protocol, which accept every value."""
    return hint is Any or getattr(hint, "_is_protocol", False)


# == Types, labels, keys and time zones that a file can have =======================================

FORMAT = "bayesnb"
TAG = "type"
#: Classifiers that were removed from bayesnb: versions that read their files, and the classifier to use instead.
REMOVED = {
    "PolyaNB": "Development versions of bayesnb 0.1.0 from before the removal read the file. Fit "
    "WeightedNB(MultinomialNB()) instead: its class probabilities predict better."
}


_EXPORTED = (cls for module in (encoding, families) for cls in vars(module).values() if is_dataclass(cls))
_DATA = (Positions, Statistics, NumberCells, NaiveBayes, TermWeights, Weights, WeightPath, *_EXPORTED)
_ESTIMATORS = (getattr(estimators, name) for name in estimators.__all__)
#: Types that a file can name: classifiers, and data, whose constructors only store and derive fields.
_KNOWN: Mapping[str, type] = {cls.__name__: cls for cls in (*_DATA, *_ESTIMATORS)}


def collect_types(user_estimators: Iterable[object] = ()) -> Mapping[str, type]:
    """Return {name: type} of what a file can name: types of bayesnb, the user's estimators and their families.

    Raises
    ------
    TypeError
        If `user_estimators` has an item that is not a subclass of a classifier of bayesnb; if two have the same name.
    """
    if isinstance(user_estimators, type):
        name = user_estimators.__name__
        raise TypeError(f"estimators={name} must be a list of classifier classes. Pass [{name}].")
    known = dict(_KNOWN)
    for estimator in user_estimators:
        if not (isinstance(estimator, type) and hasattr(estimator, "no_posterior")):
            raise TypeError(f"estimators: {shown(estimator)} is not a subclass of a classifier of bayesnb.")
        family = getattr(estimator, "family", None)
        parts = () if family is None else (family, family.statistics, *map(type, family.empirical.values()))
        for cls in (estimator, *parts):
            if known.setdefault(cls.__name__, cls) is not cls:
                name, other = cls.__name__, known[cls.__name__].__module__
                twin = f"{cls.__module__}.{name} has the name of {other}.{name}"
                raise TypeError(f"estimators: {twin}. Rename one of the two.")
    return known


def user_classes(nb: object) -> list[type]:
    """Return the user's own classes among those of a classifier and of the estimator that it wraps."""
    classes = (type(nb), type(getattr(nb, "estimator", None)))
    return [cls for cls in classes if hasattr(cls, "no_posterior") and cls not in _KNOWN.values()]


_LABELS = ("str", "int", "float", "bool", "Timestamp", "NoneType")
_MOST_ODD_KEYS = 2**12
_FEW_COLUMNS = 2**16

# "UTC", "UTC+01:00", "Europe/Berlin" and the like; pandas takes other strings for paths of files.
_ZONE = re.compile(r"tzlocal\(\)|UTC[+-]\d\d:\d\d|[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*){0,2}")


def require_labels(levels: encoding.Levels, where: str) -> None:
    """Raise TypeError naming the first level whose type is none that a file can have."""
    for value in levels.values:
        if type(value).__name__ not in _LABELS:
            label = f"{where} has the label {shown(value)}, a {type(value).__name__}"
            raise TypeError(f"{label}; a file can hold str, int, float, bool, datetime64 and None.")


def require_keys(keys: Collection[object]) -> None:
    """Raise ValueError if over 4,096 keys are neither strings nor integers between -65,536 and 65,536, ends excluded.

    Hashes of numbers are predictable in Python: a file could choose many numbers that make a dictionary slow.
    """
    odd = sum(not (type(k) is str or (type(k) is int and abs(k) < _FEW_COLUMNS)) for k in keys)
    if odd > _MOST_ODD_KEYS:
        keys = f"{odd:,} keys that are not names or positions of columns; at most {_MOST_ODD_KEYS:,} are allowed"
        raise ValueError(f"A dictionary of the classifier, such as `categories`, has {keys}. Use strings as keys.")


def require_zone(zone: object, where: str) -> None:
    """Raise TypeError unless a time zone is None, a fixed offset from UTC, the local zone, or a name."""
    if zone is not None and not (isinstance(zone, str) and _ZONE.fullmatch(zone)):
        raise TypeError(f"{where} has the time zone {shown(zone)}; use offsets from UTC or names: 'Europe/Berlin'.")


# == Conversion of a model to a tree of JSON with arrays, and back, in memory and time proportional to the file's size

Tree = Any
"""Value of JSON."""

_MOST_ESTIMATORS = 8
_DTYPES: Mapping[str, type | str] = {"O": object, "U": str, "M": "M8"}
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
        if hasattr(value, "iloc"):  # a Series or DataFrame of pandas; an index has no `iloc`
            labels = self._items(value.index.tolist(), f"{where}.index")
            if hasattr(value, "to_frame"):
                return {TAG: "series", "labels": labels, "values": self._items(value.tolist(), where)}
            columns = self._items(value.columns.tolist(), f"{where}.columns")
            return {TAG: "frame", "labels": labels, "columns": columns, "values": self._array(value.to_numpy(), where)}
        if kind is range:
            return {TAG: "range", "value": [value.start, value.stop, value.step]}
        if isinstance(value, np.datetime64) or kind.__name__ == "Timestamp":
            return _encode_time(value, where)
        if isinstance(value, np.generic):
            return {TAG: "scalar", "value": self._array(np.asarray(value), where)}
        if isinstance(value, np.ndarray | jax.Array):
            return self._array(np.asarray(jax.random.key_data(value) if is_key(value) else value), where)
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
            case "frame":
                axes = self._items(tree["labels"]), self._items(tree["columns"])
                return _make_frame(self.decode(tree["values"]), *axes)
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

    def _dataclass(self, cls: type, tree: dict[str, Tree]) -> object:
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

    def _estimator(self, cls: type, tree: dict[str, Tree]) -> object:
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


def _objects(values: list[object]) -> np.ndarray:
    """Return a vector of objects, also if these are sequences."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _make_series(labels: list[object], values: list[object]) -> object:
    """Return a pandas Series; raise ValueError if the numbers of labels and values differ."""
    import pandas as pd

    return pd.Series(_objects(values), _make_index(labels)).infer_objects()


def _make_frame(values: np.ndarray, labels: list[object], columns: list[object]) -> object:
    """Return a pandas DataFrame; raise ValueError if the shape of the values is not that of the labels."""
    import pandas as pd

    if np.shape(values) != (len(labels), len(columns)):  # pandas would repeat a number
        raise ValueError(f"A DataFrame has values of shape {np.shape(values)}, not {(len(labels), len(columns))}.")
    return pd.DataFrame(values, _make_index(labels), _make_index(columns))


def _make_index(labels: list[object]) -> Any:
    """Return a pandas index, in which a tuple is one label."""
    import pandas as pd

    return pd.Index(labels, tupleize_cols=False, dtype=None if labels else object)


def _decode_time(tree: dict[str, Tree]) -> object:
    """Return the pandas Timestamp of a tree; raise TypeError if a file cannot have its time zone."""
    import pandas as pd

    require_zone(tree["zone"], "the file")
    return pd.Timestamp(int(tree["value"]), unit="ns", tz=tree["zone"]).as_unit(tree["unit"])


# == Convert the trees of older files to the current version, one version at a time ================

_FAMILIES = {"Moments": "NormalInverseGamma", "Totals": "GammaPoisson"}


def _change_type(tree: Tree, kind: str, change: Callable[[dict[str, Tree]], object]) -> Tree:
    """Return a copy of a tree in which `change` was applied, in place, to each dictionary whose "type" is `kind`."""
    if isinstance(tree, list):
        return [_change_type(value, kind, change) for value in tree]
    if not isinstance(tree, dict):
        return tree
    changed = {name: _change_type(value, kind, change) for name, value in tree.items()}
    if changed.get("type") == kind:
        change(changed)
    return changed


def _replace_statistics_by_family(tree: Tree) -> Tree:
    """Convert version 1 to 2: columns of numbers name their family, in place of the type of statistics and the sign."""

    def change(columns: dict[str, Tree]) -> None:
        columns.pop("nonnegative", None)
        columns["family"] = {"type": "class", "value": _FAMILIES[columns.pop("statistics")["value"]]}

    return _change_type(tree, "RealColumns", change)


def _remove_precision(tree: Tree) -> Tree:
    """Convert version 2 to 3: weights of terms no longer have a precision, which was that of one τ."""
    return _change_type(tree, "Weights", lambda weights: weights.pop("precision", None))


#: Functions that convert the tree of a file of version v to version v + 1, in order from v = 1.
MIGRATIONS: tuple[Callable[[Tree], Tree], ...] = (_replace_statistics_by_family, _remove_precision)


def current_version() -> int:
    """Return the version that `save` writes."""
    return 1 + len(MIGRATIONS)


def migrate(tree: Tree, written: int) -> Tree:
    """Return the tree of a file of version `written`, converted to the current version."""
    for migration in MIGRATIONS[written - 1 :]:
        tree = migration(tree)
    return tree


# == Read files whose writer is unknown; whatever is wrong with the content raises `CorruptModelError`

_FEW_BRACKETS = 2**18
_LONGEST_MESSAGE, _LONGEST_QUOTE = 1000, 200
Decoded = TypeVar("Decoded")


class CorruptModelError(ValueError):
    """Raised if a file is not a complete model of bayesnb.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.bnb"
    ...     _ = path.write_bytes(b"no model")
    ...     try:
    ...         bnb.load(path)
    ...     except bnb.CorruptModelError as error:
    ...         print(str(error).removeprefix(f"{path}: "))
    the file is not a safetensors file, or only a part of one. Pass one of bayesnb.save.
    """


def read_file(path: str | os.PathLike[str], decode: Callable[[BinaryIO, int], Decoded]) -> Decoded:
    """Open a regular file and return the object that `decode` makes of its content.

    Parameters
    ----------
    path : path
        File to read.
    decode : callable (file, size in bytes) -> object
        Function that reads the open file and makes an object of the content.

    Raises
    ------
    CorruptModelError
        If anything is wrong with the content; the message names the file.
    OSError
        If the file cannot be opened or read.
    """
    require_path("path", path)
    file = None
    try:
        with open_regular(path) as file:
            return decode(file, os.fstat(file.fileno()).st_size)
    except (MemoryError, ForkedError):
        raise
    except CorruptModelError as error:
        raise CorruptModelError(f"{path}: {_printable(error, _LONGEST_MESSAGE)}") from None
    except Exception as error:  # A hostile file may lead to any error, also to those of data that it names.
        # An error of reading names no file; one of opening data, such as those of a time zone, does.
        if isinstance(error, OSError) and (file is None or error.filename is None):
            error.filename = os.fspath(path)
            raise
        if file is None:
            raise CorruptModelError(f"{path} cannot be read: {_printable(error, _LONGEST_MESSAGE)}") from None
        raised = f"Reading the file raised {type(error).__name__}: {_printable(error, _LONGEST_QUOTE)}"
        raise CorruptModelError(f"{path} is damaged. Copy the file again, or save the model again. {raised}") from None


def _printable(error: Exception, longest: int) -> str:
    """Return the message of an error on one line, with escapes for what cannot be printed, without the end if long.

    Messages quote the content of the file, whose writer could send control characters to the reader's terminal.
    """
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(str(error)[: 2 * longest].split()))
    return text if len(text) <= longest else f"{text[:longest]} …"


def require_checksum(computed: str, written: object) -> None:
    """Raise CorruptModelError unless the checksum of a file's content is the one that was written with the content."""
    if computed != written:
        raise CorruptModelError("the file is damaged: its content and its checksum differ. Copy or save it again.")


def require_few_brackets(text: bytes) -> None:
    """Raise CorruptModelError if JSON has over 2^18 opening brackets, and they are more than an eighth of the text.

    Lists and objects take fifty times their size in memory.
    """
    brackets = text.count(b"[") + text.count(b"{")
    most = max(_FEW_BRACKETS, len(text) // 8)
    if brackets > most:
        raise CorruptModelError(f"the file has {brackets:,} lists and objects in {len(text):,} bytes, above {most:,}.")


# == Read and write the file of a `BagOfWords`: one JSON object of options and words, with a checksum

_WORDS_FORMAT = "bayesnb.text.BagOfWords"
_FOREIGN = f"the file was not written by {_WORDS_FORMAT}.save"
_VERSION = 1
_LARGEST = 10**9
_FIELDS: dict[str, type] = {"options": dict, "words": list, "too_frequent": list, "unknown_count": int, "sha256": str}
_MATRIX_DTYPES = tuple(np.dtype(code).name for code in "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"])
_OPTIONS: dict[str, object] = {
    "unknown": str | None,
    "binary": bool | int,
    "min_df": int | float,
    "max_df": int | float,
    "max_features": int | None,
    "vocabulary": Literal["given"] | None,
    "strip_accents": Literal["ascii", "unicode"] | None,
    "lowercase": bool | int,
    "preprocessor": NoneType,
    "tokenizer": NoneType,
    "stop_words": list[str] | Literal["english"] | None,
    "token_pattern": str | None,
    "ngram_range": list[int],
    "analyzer": Literal["word", "char", "char_wb"],
    "dtype": Literal[_MATRIX_DTYPES],
}

#: Regular expressions that a file may choose: matching never backtracks, so that it takes linear time.
_WORDS = (r"\b\w\w+\b", r"\b\w+\b", r"\b\w\w\w+\b", r"\w\w+", r"\w+", r"\w\w\w+", r"\S+", r"\S\S+")
PATTERNS = tuple(flag + pattern for flag in ("", "(?u)") for pattern in _WORDS)


def write_words(path: str | os.PathLike[str], content: dict[str, object]) -> None:
    """Write `content` (options, words, too_frequent, unknown_count) as one JSON file with a checksum.

    Raises
    ------
    ValueError
        If `read_words` would not read the file. Nothing is written.
    OSError
        If the file cannot be written; an existing file stays as it was.
    """
    _check(content)
    file = {"format": _WORDS_FORMAT, "version": _VERSION, **content, "sha256": _checksum(content)}
    written = json.dumps(file, indent=1).encode("ascii")
    if len(written) > _LARGEST:
        most = f"a file can have at most {_LARGEST:,}. Raise min_df, or set max_features"
        raise ValueError(f"save: the words take {len(written):,} bytes; {most}.")
    write_atomically(path, written)


def read_words(path: str | os.PathLike[str], token_pattern: str | None) -> dict[str, Tree]:
    """Return the content (options, words, too_frequent, unknown_count) of a file that `write_words` has written.

    Parameters
    ----------
    path : path
        File to read.
    token_pattern : str, optional
        Regular expression of a word that the file must have. Required if the file has none of `PATTERNS`.

    Raises
    ------
    CorruptModelError
        If the file is none of `write_words`, is damaged, has another pattern, or is not a regular file.
    OSError
        If the file cannot be read.
    """
    return read_file(path, partial(_decode_words, token_pattern=token_pattern))


def _decode_words(file: BinaryIO, size: int, token_pattern: str | None) -> dict[str, Tree]:
    """Return the checked content of an open file of `size` bytes; raise CorruptModelError if it is wrong."""
    if size > _LARGEST:
        raise CorruptModelError(f"the file has {size:,} bytes; files of {_WORDS_FORMAT} have at most {_LARGEST:,}.")
    content = file.read(1)
    content += file.read(size - 1) if content > b"\0" else b""
    require_few_brackets(content)
    try:
        words = json.loads(content.decode("ascii"))
    except UnicodeDecodeError as error:
        raise CorruptModelError(f"{_FOREIGN}: byte {error.start} is not ASCII.") from None
    if not isinstance(words, dict) or words.get("format") != _WORDS_FORMAT:
        raise CorruptModelError(f"{_FOREIGN}.")
    if words.get("version") != _VERSION:
        readable = f"this bayesnb reads version {_VERSION}. Update bayesnb to read newer files"
        raise CorruptModelError(f"the file has version {shown(words.get('version'))}; {readable}.")
    for name, kind in _FIELDS.items():
        if not conforms(words.get(name), kind):
            problem = "of the wrong type" if name in words else "missing"
            raise CorruptModelError(f"the file is damaged: {name!r} is {problem}.")
    content_read = {name: words[name] for name in _FIELDS if name != "sha256"}
    require_checksum(_checksum(content_read), words["sha256"])
    try:
        _check(content_read)
    except ValueError as error:
        raise CorruptModelError(str(error)) from None
    pattern = content_read["options"]["token_pattern"]
    if token_pattern not in (None, pattern):
        problem = f"the token_pattern of the file is {shown(pattern)}; the argument is {shown(token_pattern)}"
        raise CorruptModelError(f"{problem}. Pass the same pattern.")
    if pattern not in (None, token_pattern, *PATTERNS):
        problem = f"the file has token_pattern={shown(pattern)}, a pattern that may run endlessly on some texts"
        raise CorruptModelError(f"{problem}. If you trust it, call BagOfWords.load(path, token_pattern=...).")
    return content_read


def _check(content: dict[str, Tree]) -> None:
    """Raise ValueError unless `fit` could have left these options and words."""
    options, words, too_frequent = content["options"], content["words"], content["too_frequent"]
    if odd := sorted(set(options) ^ set(_OPTIONS)):
        raise ValueError(f"options: {shown(odd)} are missing or unknown. Save the words again with this version.")
    for name, kind in _OPTIONS.items():
        if not conforms(options[name], kind):
            value = f"{name}={shown(options[name])}"
            raise ValueError(f"{value} cannot be written to a file. Use a type that BagOfWords documents.")
    least, most = (*options["ngram_range"], 0, 0)[:2]
    if len(options["ngram_range"]) != 2 or not 1 <= least <= most <= 100:
        raise bad_argument("ngram_range", options["ngram_range"], "two integers, 1 <= least <= most <= 100")
    for word in (*words, *too_frequent):
        if type(word) is not str:
            raise ValueError(f"vocabulary: {shown(word)} is not a word; words in a file must be strings.")
    unknown = options["unknown"]
    if not words or len({*words, *too_frequent}) < len(words) + len(too_frequent):
        raise ValueError("vocabulary is empty, or has a word twice. Fit again.")
    if unknown is not None and words[-1] != unknown:
        expected = f"it must be the reserved word {shown(unknown)}. Fit again"
        raise ValueError(f"vocabulary: the last word is {shown(words[-1])}; {expected}.")
    if content["unknown_count"] < 0:
        raise ValueError(f"unknown_count_={shown(content['unknown_count'])} is negative.")


def _checksum(content: dict[str, object]) -> str:
    """SHA-256 digest, in hexadecimal, of the content as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# == Save and load fitted classifiers: one safetensors file, which is read without executing anything

_LONGEST_HEADER = 100_000_000  # The safetensors library reads no longer header.


def save(nb: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to one file.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier to write; `load` takes classes of your own as an argument.
    path : path
        File to write. An existing file is replaced once all content is on the disk.

    Raises
    ------
    TypeError
        If a label, a level or a hyperparameter is of a type that a file cannot have; the message names the value.
        Files can have str, int, float, bool, datetime64 and None, and lists, dicts, Series, arrays and priors of these.
        Nothing is written.
    ValueError
        If a fitted attribute or a hyperparameter was changed after `fit` and contradicts the others: such a file could
        not be loaded. If names, labels and levels take more than 100 MB, or more than 64 numbers have the same hash.
        Nothing is written.
    OSError
        If the file cannot be written, or `path` is a symbolic link or no regular file; an existing file stays as it
        was.

    Notes
    -----
    The file is in the safetensors format. Arrays are tensors, equal to the bit; the rest is JSON in the metadata, under
    "bayesnb", with a SHA-256 checksum of everything. There is no pickle. The same model makes the same file. Every
    later release of bayesnb reads the file, with the hyperparameters that were written, even if defaults have changed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayesnb import CategoricalNB, load, save
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> with TemporaryDirectory() as folder:
    ...     save(nb, Path(folder) / "model.bnb")
    ...     again = load(Path(folder) / "model.bnb")
    >>> again.partial_fit([["rain"]], ["in"]).class_count_  # counting continues
    array([2., 2.])
    """
    from safetensors.numpy import save as to_bytes

    require_fitted(nb, "save")
    require_path("path", path)
    if hasattr(nb, "fitted_"):
        reason = "which these files do not hold. Use joblib.dump, and joblib.load of files that you trust."
        nb.fitted_.require_no_experts("save", reason)
    encoder = Encoder(collect_types(user_classes(nb)))
    model = encoder.encode(nb, type(nb).__name__)
    try:
        classifier_state.check(nb)
    except ValueError as error:
        raise ValueError(f"save: {type(nb).__name__} was changed after fit: {error} Nothing was written.") from None
    digest = _digest(model, encoder.arrays, current_version())
    content = {"version": current_version(), "sha256": digest, "model": model}
    written = to_bytes(encoder.arrays, {FORMAT: json.dumps(content, allow_nan=False)})
    if (size := _header_size(written)) > _LONGEST_HEADER:
        raise ValueError(
            f"save: names, labels and levels of {type(nb).__name__} take {size:,} bytes; at most {_LONGEST_HEADER:,} "
            "can be written. Shorten names, or merge labels or levels. Nothing was written."
        )
    write_atomically(path, written)


def load(path: str | os.PathLike[str], estimators: Iterable[type] = ()) -> FittedClassifier | NaiveBayesMixture:
    """Return the classifier that `save` wrote.

    Parameters
    ----------
    path : path
        File to read.
    estimators : classes, optional
        Classes of your own that the file may name, such as subclasses of `NumbersNB` with their own family.

    Returns
    -------
    fitted classifier of bayesnb, or of one of `estimators`
        Classifier that predicts as the saved one does.

    Raises
    ------
    CorruptModelError
        If the file is damaged, is not a model of bayesnb, or is not a regular file; if the content contradicts itself,
        even with a right checksum; if loading would take too long for the size of the file; if the classifier was
        removed from bayesnb. The message says what is wrong.
    OSError
        If the file does not exist or cannot be read.

    Notes
    -----
    Nothing in the file is executed. Loading takes at most a few times the size of the file in memory: the sizes that
    the header states are compared with the size of the file before the rest is read. These checks do not make the model
    trustworthy: whoever can write the file can write any counts.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayesnb import GaussianNB, load, save
    >>> nb = GaussianNB().fit([[1.0], [1.2], [3.0], [3.1]], ["low", "low", "high", "high"])
    >>> with TemporaryDirectory() as folder:
    ...     save(nb, Path(folder) / "model.bnb")
    ...     again = load(Path(folder) / "model.bnb")
    >>> again, again.log_evidence_ == nb.log_evidence_
    (GaussianNB(), True)
    """
    return read_file(path, partial(_decode, known=collect_types(estimators)))


def digest_hyperparameters(nb: BaseEstimator) -> str:
    """Return the SHA-256 digest of the hyperparameters in the form that `save` writes."""
    encoder = Encoder(collect_types(user_classes(nb)))
    tree = encoder.encode(nb.get_params(deep=False), type(nb).__name__)
    return _digest(tree, encoder.arrays, current_version())


def _decode(file: BinaryIO, size: int, known: Mapping[str, type]) -> Any:
    """Return the classifier of an open file; the rest is read once the header is found to fit `size`, in bytes.

    Its types are taken from `known` {name: type}. Raises CorruptModelError if the file holds no fitted classifier.
    """
    from safetensors.numpy import load as from_bytes

    content = file.read(8)
    if not 0 < _header_size(content) <= min(size - 8, _LONGEST_HEADER):
        raise CorruptModelError("the file is not a safetensors file, or only a part of one. Pass one of bayesnb.save.")
    content += file.read(_header_size(content))
    text = _read_metadata(content[8:], size - len(content))
    arrays = from_bytes(content + file.read(size - len(content)))
    model = _read_tree(text, arrays)
    nb = Decoder(arrays, size, known).decode(model)
    if not isinstance(nb, BaseEstimator):
        raise CorruptModelError(f"the file holds no classifier, but a {type(nb).__name__}. Pass one of bayesnb.save.")
    if not model["fitted"]:
        raise CorruptModelError(f"the {type(nb).__name__} in the file was never fitted. Fit it, and save it again.")
    return nb


def _header_size(content: bytes) -> int:
    """Length of a safetensors header: the first 8 bytes of the file as a little-endian integer."""
    return int.from_bytes(content[:8], "little")


def _read_metadata(header: bytes, rest: int) -> str:
    """Return the JSON text of the model from the header of a safetensors file; `rest` bytes follow the header."""
    require_few_brackets(header)
    tensors = json.loads(header)
    metadata = tensors.pop("__metadata__", {})
    if max((tensor["data_offsets"][1] for tensor in tensors.values()), default=0) != rest:
        raise CorruptModelError("the file is only a part of a model, or has bytes after its end. Copy it again.")
    if FORMAT not in metadata:
        raise CorruptModelError("the file holds no model of bayesnb. Pass a file that bayesnb.save wrote.")
    return metadata[FORMAT]


def _read_tree(text: str, arrays: Mapping[str, np.ndarray]) -> Tree:
    """Return the tree in a JSON text, in the current version; raise CorruptModelError if the checksum is wrong."""
    require_few_brackets(text.encode())
    file = json.loads(text)
    written = file["version"]
    if type(written) is not int or not 1 <= written <= current_version():
        readable = f"this bayesnb reads versions 1 to {current_version()}. Update bayesnb to read newer files"
        raise CorruptModelError(f"the file has version {shown(written)}; {readable}.")
    require_checksum(_digest(file["model"], arrays, written), file["sha256"])
    return migrate(file["model"], written)


def _digest(model: Tree, arrays: Mapping[str, np.ndarray], version: int) -> str:
    """SHA-256 digest, in hexadecimal, of the version, the tree and the arrays of a file."""
    digest = hashlib.sha256(f"{FORMAT} {version}\n{json.dumps(model)}".encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


__all__ = ["CorruptModelError", "digest_hyperparameters", "load", "save"]
