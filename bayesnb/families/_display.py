"""Text and HTML of distributions and statistics: shapes and ranges of their arrays, which may be long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import numpy as np

from bayesnb._util.html import card, format_number, table

_NAMES = "A distribution, by class and feature; parameter_table(nb) has their names, and intervals."


def as_text(tree: Any) -> str:
    """Return a text such as `Dirichlet(concentration=(2, 3) from 0.5 to 4.5, …)`."""
    return f"{type(tree).__name__}({', '.join(f'{f.name}={_text(getattr(tree, f.name))}' for f in fields(tree))})"


def as_html(tree: Any) -> str:
    """Return a table with one row for each array and number: shape and range."""
    notes = [_NAMES] * hasattr(tree, "update")
    return card(type(tree).__name__, "", table(_rows(tree, ""), ("", "shape", "least", "greatest")), notes=notes)


def _rows(tree: Any, name: str) -> Iterator[tuple[str | float, ...]]:
    if is_dataclass(tree):
        for field in fields(tree):
            yield from _rows(getattr(tree, field.name), f"{name}.{field.name}" if name else field.name)
    elif isinstance(tree, tuple) and any(map(is_dataclass, tree)):
        for n, part in enumerate(tree):
            yield from _rows(part, f"{name}[{n}] {type(part).__name__}")
    elif (ends := _ends(tree)) is not None:
        yield name, str(np.shape(tree)) if np.ndim(tree) else "", *(ends or ("", ""))
    elif tree is not None and not callable(tree):
        yield name, "", format_number(tree), ""


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))}{',' * (len(value) == 1)})"
    if (ends := _ends(value)) is None:
        return repr(value)
    if not ends or not np.ndim(value):
        return format_number(ends[0]) if ends else f"{np.shape(value)}"
    least, greatest = map(format_number, ends)
    return f"{np.shape(value)} of {least}" if least == greatest else f"{np.shape(value)} from {least} to {greatest}"


def _ends(value: Any) -> tuple[float, ...] | None:
    """Return the least and the greatest number of an array, NaN aside; None for values that are no arrays."""
    if isinstance(value, jax.core.Tracer) or not isinstance(value, np.ndarray | np.generic | jax.Array):
        return None
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "biuf" or not numbers.size or np.isnan(numbers).all():
        return ()
    return float(np.nanmin(numbers)), float(np.nanmax(numbers))
