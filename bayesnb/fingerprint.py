"""Digests of the first rows of a stream, by which a checkpoint recognises the stream."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp

from bayesnb._util import arrays as rows_of
from bayesnb.encoding import check_labels, to_table
from bayesnb.encoding.levels import to_python

_MOST_CELLS = 2**14


class FirstRows:
    """Digests of the first rows of a stream, some 16,000 cells, whose batches may have any size.

    Parameters
    ----------
    checkpoint : path or None
        File that error messages name. None: the stream has no checkpoint, and no digests are computed.
    known : sequence of str
        Digests in the checkpoint.

    Attributes
    ----------
    digests : list of str
        Digests in the checkpoint, and then those of the rows that followed.
    seen : int
        Number of rows of this stream that were compared or added.
    """

    def __init__(self, checkpoint: str | os.PathLike[str] | None, known: Sequence[str]) -> None:
        self.checkpoint = checkpoint
        self.digests = list(known)
        self.seen = 0

    @property
    def mismatch(self) -> str:
        """Beginning of an error message about rows that are not those of the checkpoint."""
        same = "pass the same rows in the same order, or remove the file to start again"
        return f"checkpoint={os.fspath(self.checkpoint or '')!r} has counted other rows ({same})"

    def compare(self, X: Any, y: object, weight: Any) -> None:
        """Compare the next rows of the stream with the digests; add rows that have none.

        Raises
        ------
        ValueError
            If a row differs from that of the checkpoint at the same position; the message names the first one.
        """
        if self.checkpoint is None or not n_rows(y):
            return
        width = X.shape[-1] if hasattr(X, "shape") else len(X[0])
        rest = max(1, _MOST_CELLS // max(1, width)) - self.seen
        if rest <= 0:
            return
        for digest in _digest_rows(*(take_rows(part, slice(rest)) for part in (X, y, weight))):
            if self.seen == len(self.digests):
                self.digests.append(digest)
            elif digest != self.digests[self.seen]:
                raise ValueError(f"{self.mismatch}: row {self.seen} of batches differs in cells, label or weight.")
            self.seen += 1


def _digest_rows(X: object, y: object, weight: Any) -> Iterator[str]:
    """Yield a digest of the label, weight and non-zero cells of each row; types of X and numbers do not matter."""
    classes, label = check_labels(y, None, "fit_stream")
    weights = np.broadcast_to(np.asarray(1.0 if weight is None else weight, dtype=np.float64), len(label))
    for cells, code, times in zip(_rows_of_cells(X), label, weights, strict=True):
        row = [classes.values[code], times, *(part for cell in cells for part in cell)]
        yield hashlib.sha256("\n".join(map(_canonical, row)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _rows_of_cells(X: object) -> Iterator[Iterable[tuple[int, Any]]]:
    """Yield for each row the pairs (column, value) of the cells that are not zero."""
    if sp.issparse(X):
        matrix = sp.csr_array(X, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        for start, stop in zip(matrix.indptr, matrix.indptr[1:], strict=False):
            cells = zip(matrix.indices[start:stop], matrix.data[start:stop], strict=True)
            yield [(j, v) for j, v in cells if v != 0]
        return
    table = to_table(X, "fit_stream")
    columns = [np.asarray(table.column(j), dtype=object).tolist() for j in range(len(table.names))]
    for row in zip(*columns, strict=True):
        yield [(j, v) for j, v in enumerate(row) if not (isinstance(v, int | float) and v == 0)]


def _canonical(value: object) -> str:
    """Return the text of a value, the same for equal numbers of any type; "missing" for None, NaN and pd.NA."""
    value = to_python(value)
    if value is None or type(value).__name__ == "NAType" or value != value:
        return "missing"
    if isinstance(value, int | float):
        return repr(int(value)) if isinstance(value, int) or value.is_integer() else repr(value)
    return f"{type(value).__name__} {value}"


def take_rows(part: Any, rows: slice) -> Any:
    """Return the rows in a slice of X, y or weights; None and a number (weight of every row) stay as they are."""
    return part if part is None or isinstance(part, Number) else rows_of.take_rows(part, rows)


def n_rows(part: Any) -> int:
    """Return the number of rows of X or y."""
    return int(part.shape[0]) if getattr(part, "shape", None) else len(part)
