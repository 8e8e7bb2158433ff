"""Digests of the first rows of a stream, by which it is known when it comes again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp

from bayesnb.encoding import check_labels, check_table
from bayesnb.encoding.levels import to_python

_MOST_CELLS = 2**14


class FirstRows:
    """What the first rows of a stream are, in batches of any size; of a stream without a checkpoint nothing.

    Parameters
    ----------
    checkpoint : path or None
    known : sequence of str
        Digests that are in the checkpoint; `digests` are these and those of the rows after them, about 16,000 cells.
    """

    def __init__(self, checkpoint: str | os.PathLike[str] | None, known: Sequence[str]) -> None:
        self.checkpoint = checkpoint
        self.digests = list(known)
        self.seen = 0

    @property
    def other(self) -> str:
        """How a message about other rows begins."""
        return f"checkpoint={os.fspath(self.checkpoint or '')!r} is of other rows (remove the file to begin anew)"

    def compare(self, X: Any, y: Any, weight: Any) -> None:
        """Take in the rows that come next.

        Raises
        ------
        ValueError
            If others stood at their place before, naming the first.
        """
        if self.checkpoint is None or not n_rows(y):
            return
        width = X.shape[-1] if hasattr(X, "shape") else len(X[0])
        rest = max(1, _MOST_CELLS // max(1, width)) - self.seen
        if rest <= 0:
            return
        for digest in _digests(*(take(part, slice(rest)) for part in (X, y, weight))):
            if self.seen == len(self.digests):
                self.digests.append(digest)
            elif digest != self.digests[self.seen]:
                raise ValueError(f"{self.other}: row {self.seen} has other cells, or another label or weight.")
            self.seen += 1


def _digests(X: Any, y: Any, weight: Any) -> Iterator[str]:
    """Of each row; the same whatever holds it, and whether its numbers are integers or floats."""
    classes, label = check_labels(y, None, "fit_stream")
    weights = np.broadcast_to(np.asarray(1.0 if weight is None else weight, dtype=np.float64), len(label))
    for cells, own, times in zip(_rows_of_cells(X), label, weights, strict=True):
        row = [classes.values[own], times, *(part for cell in cells for part in cell)]
        yield hashlib.sha256("\n".join(map(_canonical, row)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _rows_of_cells(X: Any) -> Iterator[Iterable[tuple[int, Any]]]:
    """Column and value of the cells of each row that are not zero."""
    if sp.issparse(X):
        matrix = sp.csr_array(X, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        for start, stop in zip(matrix.indptr, matrix.indptr[1:], strict=False):
            cells = zip(matrix.indices[start:stop], matrix.data[start:stop], strict=True)
            yield [(j, v) for j, v in cells if v != 0]
        return
    table = check_table(X, "fit_stream")
    columns = [np.asarray(table.column(j), dtype=object).tolist() for j in range(len(table.names))]
    for row in zip(*columns, strict=True):
        yield [(j, v) for j, v in enumerate(row) if not (isinstance(v, int | float) and v == 0)]


def _canonical(value: Any) -> str:
    value = to_python(value)
    if value is None or type(value).__name__ == "NAType" or value != value:
        return "missing"
    if isinstance(value, int | float):
        return repr(int(value)) if isinstance(value, int) or value.is_integer() else repr(value)
    return f"{type(value).__name__} {value}"


def take(part: Any, rows: slice) -> Any:
    """Some rows of X, y or weights."""
    if part is None or isinstance(part, Number):
        return part
    if sp.issparse(part):
        return part.tocsr()[rows]
    return part.iloc[rows] if hasattr(part, "iloc") else part[rows]


def n_rows(part: Any) -> int:
    """Of X or y."""
    return part.shape[0] if getattr(part, "shape", None) else len(part)


__all__ = ["FirstRows", "n_rows", "take"]
