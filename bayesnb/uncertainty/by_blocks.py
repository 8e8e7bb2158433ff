"""Rows of X through a kernel, some at a time, so that memory does not grow with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from bayesnb._util.precision import float64
from bayesnb._util.progress import progress
from bayesnb.encoding import Rows, blocks
from bayesnb.fitted import Fitted
from bayesnb.model import NaiveBayes
from bayesnb.scoring import pad
from bayesnb.uncertainty.proper import require_proper


@dataclass(frozen=True)
class PerBlock:
    """`answer(rows of a block, which of them are real)`, (n, …); a row takes `cells` numbers."""

    answer: Callable[[tuple[Any, ...], slice], np.ndarray]
    cells: float


@float64
def over_blocks(fitted: Fitted, X: Any, asked: PerBlock, summed: PerBlock | None = None) -> np.ndarray:
    """(N, …): of each row the answer of `asked`, or `summed`, if given, where missing cells on arcs are summed out."""
    table = fitted.table(X)
    rows = fitted.rows(table)
    sums = reduce(np.logical_or, (r.summed for r in rows), np.zeros(table.n_rows, bool))
    if summed is None or not sums.any():
        return _answered(rows, table.n_rows, asked)
    parts = []
    for mask, part in ((~sums, asked), (sums, summed)):
        own = fitted.encoding.rows(table.take(mask), lambda columns, unknown: None) if mask.any() else ()
        parts += [_answered(own, int(mask.sum()), part)] if mask.any() else []
    back = np.argsort(np.argsort(sums, kind="stable"), kind="stable")
    return np.concatenate(parts)[back]


def proper_posterior(fitted: Fitted) -> NaiveBayes:
    """The posterior, laid out for the kernels.

    Raises
    ------
    ImproperPosteriorError
        If it is improper.
    """
    require_proper(fitted.encoding, fitted.posterior)
    return pad(fitted.encoding, fitted.posterior)


def _answered(rows: tuple[Rows, ...], n: int, asked: PerBlock) -> np.ndarray:
    found = []
    with progress("rows", n, "rows") as step:
        for piece, x, _ in blocks(rows, n, cells=asked.cells):
            found.append(asked.answer(x, slice(piece.stop - piece.start)))
            step(piece.stop - piece.start)
    return np.concatenate(found)
