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
    rows = [(name, *cells) for name, cells in _rows(tree, "")]
    notes = [_NAMES] * hasattr(tree, "update")
    return card(type(tree).__name__, "", table(rows, ("", "shape", "least", "greatest")), notes=notes)


def _rows(tree: Any, name: str) -> Iterator[tuple[str, tuple[Any, Any, Any]]]:
    if is_dataclass(tree):
        for field in fields(tree):
            yield from _rows(getattr(tree, field.name), f"{name}.{field.name}" if name else field.name)
    elif isinstance(tree, tuple) and any(map(is_dataclass, tree)):
        for n, part in enumerate(tree):
            yield from _rows(part, f"{name}[{n}] {type(part).__name__}")
    elif _is_array(tree):
        ends = _ends(tree) or ("", "")
        yield name, (str(np.shape(tree)) if np.ndim(tree) else "", *ends)
    elif tree is not None and not callable(tree):
        yield name, ("", format_number(tree), "")


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))}{',' * (len(value) == 1)})"
    if not _is_array(value):
        return repr(value)
    ends = _ends(value)
    if not np.ndim(value) and ends is not None:
        return format_number(ends[0])
    if ends is None:
        return f"{np.shape(value)}"
    least, greatest = map(format_number, ends)
    return f"{np.shape(value)} of {least}" if least == greatest else f"{np.shape(value)} from {least} to {greatest}"


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic | jax.Array) and not isinstance(value, jax.core.Tracer)


def _ends(value: Any) -> tuple[float, float] | None:
    """Return the least and the greatest number, NaN aside; None if there are no numbers."""
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "biuf" or not numbers.size or np.isnan(numbers).all():
        return None
    return float(np.nanmin(numbers)), float(np.nanmax(numbers))
