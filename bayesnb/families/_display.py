"""Text and HTML of distributions and statistics: shapes and ranges of their arrays, which may be long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import numpy as np

from bayesnb._util.terminal import card, format_number, table

_NAMES = "A distribution, by class and feature; parameter_table(nb) has their names, and intervals."


def as_text(tree: Any) -> str:
    """One-line text of a dataclass of arrays: class name, and shape and range of each field."""
    return f"{type(tree).__name__}({', '.join(f'{f.name}={_field_text(getattr(tree, f.name))}' for f in fields(tree))})"


def as_html(tree: Any) -> str:
    """HTML card of a dataclass of arrays: a table row per array or number with its shape, least and greatest value."""
    notes = [_NAMES] * hasattr(tree, "update")
    return card(type(tree).__name__, "", table(_table_rows(tree, ""), ("", "shape", "least", "greatest")), notes=notes)


def _table_rows(tree: Any, name: str) -> Iterator[tuple[str | float, ...]]:
    """Yield a table row (name, shape, least, greatest) per array or number in nested dataclasses at path `name`."""
    if is_dataclass(tree):
        for field in fields(tree):
            yield from _table_rows(getattr(tree, field.name), f"{name}.{field.name}" if name else field.name)
    elif isinstance(tree, tuple) and any(map(is_dataclass, tree)):
        for n, part in enumerate(tree):
            yield from _table_rows(part, f"{name}[{n}] {type(part).__name__}")
    elif (ends := _least_and_greatest(tree)) is not None:
        yield name, str(np.shape(tree)) if np.ndim(tree) else "", *(ends or ("", ""))
    elif tree is not None and not callable(tree):
        yield name, "", format_number(tree), ""


def _field_text(value: Any) -> str:
    """Text of one field: a number; shape and range of an array; a tuple by element; else `repr`.

    An array is "(2, 3) from 0 to 1", "(2, 3) of 1" if all entries are equal, and "(2, 3)" if it has no numbers.
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(_field_text, value))}{',' * (len(value) == 1)})"
    if (ends := _least_and_greatest(value)) is None:
        return repr(value)
    if not ends or not np.ndim(value):
        return format_number(ends[0]) if ends else f"{np.shape(value)}"
    least, greatest = map(format_number, ends)
    return f"{np.shape(value)} of {least}" if least == greatest else f"{np.shape(value)} from {least} to {greatest}"


def _least_and_greatest(value: Any) -> tuple[float, ...] | None:
    """Least and greatest number of an array, NaN skipped; () if there is none; None for other types and tracers."""
    if isinstance(value, jax.core.Tracer) or not isinstance(value, np.ndarray | np.generic | jax.Array):
        return None
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "biuf" or not numbers.size or np.isnan(numbers).all():
        return ()
    return float(np.nanmin(numbers)), float(np.nanmax(numbers))
