"""Convert a model to a tree of JSON, and the arrays that the tree names."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from bayesnb.encoding import Levels
from bayesnb.encoding.levels import require_distinct_hashes
from bayesnb.estimators import classifier_state
from bayesnb.persistence.known_types import TAG, KnownTypes, find_unsupported_label, is_storable_zone, require_keys


def encode(value: Any, where: str, arrays: dict[str, np.ndarray], known: KnownTypes) -> Any:
    """Convert a value to JSON; numeric arrays are added to `arrays`, and stand in the JSON by name.

    Parameters
    ----------
    value : object
        Value to convert.
    where : str
        Name of the value in error messages, such as "GaussianNB.classes".
    arrays : dict {name: array}
        Arrays so far; the function adds to them.
    known : KnownTypes
        Types that a file can name.

    Raises
    ------
    TypeError
        If the value is of a type that a file cannot have.
    ValueError
        If too many keys or values have the same hash.
    """

    def encode_part(part: Any, name: str) -> Any:
        return encode(part, f"{where}{name}", arrays, known)

    def encode_items(items: Any) -> list[Any]:
        require_distinct_hashes(items)
        return [encode_part(item, f"[{i}]") for i, item in enumerate(items)]

    kind = type(value)
    if value is None or kind in (bool, str, int):
        return value
    if kind is float:
        return value if np.isfinite(value) else {TAG: "float", "value": repr(value)}
    if kind is list:
        return encode_items(value)
    if kind is tuple:
        return {TAG: "tuple", "values": encode_items(value)}
    if kind is dict:
        require_keys(value)
        values = [encode_part(v, f"[{k!r}]") for k, v in value.items()]
        return {TAG: "dict", "keys": encode_items(value), "values": values}
    if kind is range:
        return {TAG: "range", "value": [value.start, value.stop, value.step]}
    if isinstance(value, np.datetime64) or kind.__name__ == "Timestamp":
        return _encode_time(value, where)
    if isinstance(value, np.generic):
        return {TAG: "scalar", "value": encode_part(np.asarray(value), "")}
    if isinstance(value, type) and value.__name__ in known.types:
        return {TAG: "class", "value": value.__name__}
    if isinstance(value, np.ndarray) or hasattr(value, "__jax_array__") or kind.__module__.startswith("jax"):
        return _encode_array(np.asarray(value), where, arrays, known)
    if isinstance(value, Levels):
        _require_labels(value, where)
    if is_dataclass(value) and kind.__name__ in known.types:
        encoded = {f.name: encode_part(getattr(value, f.name), f".{f.name}") for f in fields(value)}
        return {TAG: kind.__name__, **encoded}
    if kind.__name__ in known.estimators:
        return {
            TAG: kind.__name__,
            "parameters": {k: encode_part(v, f".{k}") for k, v in value.get_params(deep=False).items()},
            "fitted": {k: encode_part(v, f".{k}") for k, v in classifier_state.collect_state(value).items()},
        }
    raise TypeError(
        f"save: {where} is {value!r}, a {kind.__name__}, which no file can have: labels and levels may be str, int, "
        "float, bool, datetime64 or None. Nothing was written."
    )


def _require_labels(levels: Levels, where: str) -> None:
    if (unsupported := find_unsupported_label(levels)) is not None:
        (label,) = unsupported
        raise TypeError(
            f"save: {where} has the label {label!r}, a {type(label).__name__}; a file can have str, int, "
            "float, bool, datetime64 and None. Nothing was written."
        )


def _encode_time(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, np.datetime64):
        unit, step = np.datetime_data(value.dtype)
        return {TAG: "datetime64", "value": int(value.astype(np.int64)), "unit": unit, "step": step}
    zone = None if value.tz is None else str(value.tz)
    if not is_storable_zone(zone):
        raise TypeError(
            f"save: {where} has the time zone {zone!r}; a file can have fixed offsets from UTC and names such as "
            "'Europe/Berlin'. Nothing was written."
        )
    return {TAG: "Timestamp", "value": value.as_unit("ns").value, "unit": value.unit, "zone": zone}


def _encode_array(value: np.ndarray, where: str, arrays: dict[str, np.ndarray], known: KnownTypes) -> dict[str, Any]:
    kind = value.dtype.kind
    if kind in "biuf" and value.dtype.itemsize <= 8:
        name = str(len(arrays))
        arrays[name] = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("="))).reshape(value.shape)
        return {TAG: "tensor", "name": name}
    if kind == "M":
        values = [_encode_time(v, where) for v in value.ravel()]
    elif kind in "UO":
        values = [encode(v, f"{where}[{i}]", arrays, known) for i, v in enumerate(value.ravel().tolist())]
    else:
        raise TypeError(f"save: {where} is an array of {value.dtype}, which no file can have. Nothing was written.")
    return {TAG: "array", "kind": kind, "shape": list(value.shape), "values": values}


__all__ = ["encode"]
