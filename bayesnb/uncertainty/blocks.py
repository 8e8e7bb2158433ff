"""Rows of X through a kernel, some at a time, so that memory does not grow with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesnb.encoding import Rows, blocks
from bayesnb.encoding.node_rows import NetworkRows
from bayesnb.model import NaiveBayes
from bayesnb.precision import float64
from bayesnb.scoring import pad
from bayesnb.uncertainty.proper import require_proper


@dataclass(frozen=True)
class PerBlock:
    """`answer(posterior, rows of a block, which of them are real)`, (n, …); a row takes `cells` numbers."""

    answer: Callable[[NaiveBayes, tuple[Any, ...], slice], np.ndarray]
    cells: float


@float64
def over_blocks(nb: Any, X: Any, closed: PerBlock, summed: PerBlock) -> np.ndarray:
    """(N, …): of each row the answer of `closed`, or of `summed` where missing cells on arcs are summed out.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    """
    require_proper(nb.encoding_, nb.posterior_)
    table = nb._table(X)
    rows = nb.encoding_.rows(table, nb._report_unknown)
    model = pad(nb.encoding_, nb.posterior_)
    sums = np.any([r.summed for r in rows if isinstance(r, NetworkRows)] or [np.zeros(table.n_rows, bool)], axis=0)
    if not sums.any():
        return _answered(model, rows, table.n_rows, closed)
    parts = []
    for mask, asked in ((~sums, closed), (sums, summed)):
        own = nb.encoding_.rows(table.take(mask), lambda columns, unknown: None) if mask.any() else ()
        parts += [_answered(model, own, int(mask.sum()), asked)] if mask.any() else []
    back = np.argsort(np.argsort(sums, kind="stable"), kind="stable")
    return np.concatenate(parts)[back]


def _answered(model: NaiveBayes, rows: tuple[Rows, ...], n: int, asked: PerBlock) -> np.ndarray:
    cut = blocks(rows, n, cells=asked.cells)
    return np.concatenate([asked.answer(model, x, slice(piece.stop - piece.start)) for piece, x, _ in cut])
