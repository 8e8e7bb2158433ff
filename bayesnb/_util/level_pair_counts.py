"""Counts of pairs of levels in each class, as products of indicator matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

_MOST_CELLS = 2**22
_MOST_ROWS = 2**16
MOST_COUNTS = 2**27

Indicators = Callable[[slice], np.ndarray]
"""Function of a slice of rows to their (n, L) indicators of levels, zero where a cell is missing."""


def count_pairs(first: Indicators, second: Indicators, bounds: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """(C, L₁, L₂) weight of the rows of each class that have both levels; counts of batches may be added.

    Parameters
    ----------
    first, second : functions of a slice of the rows
        Indicators; one of them may be weighted.
    bounds : (C + 1,) int array
        Start of the rows of each class, which are sorted by class, and end of the last class.
    shape : (L₁, L₂)
        Numbers of levels.
    """
    counts = np.zeros((len(bounds) - 1, *shape))
    for c, rows in pieces(bounds, max(shape)):
        indicators = first(rows)
        counts[c] += indicators.T @ (indicators if second is first else second(rows))
    return counts


def pieces(bounds: np.ndarray, width: int, *, whole: bool = False) -> Iterator[tuple[int, slice]]:
    """Yield (class, slice of rows of that class) in pieces of some million cells at `width` cells a row.

    With `whole` each class is one piece.
    """
    size = int(bounds[-1]) if whole else int(np.clip(_MOST_CELLS // max(1, width), 256, _MOST_ROWS))
    for c in range(len(bounds) - 1):
        for start in range(bounds[c], bounds[c + 1], max(1, size)):
            yield c, slice(start, min(start + size, int(bounds[c + 1])))


def sort_by_class(label: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the (N,) order that sorts rows by class, and the (C + 1,) bounds of the classes in this order."""
    return np.argsort(label, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(label, minlength=n_classes))])


def require_memory(counts: int, what: str, advice: str) -> None:
    """Raise ValueError if there are more than `MOST_COUNTS` counts; `what` and `advice` are parts of the message."""
    if counts > MOST_COUNTS:
        needed, most = counts * 8 / 1e9, MOST_COUNTS * 8 / 1e9
        raise ValueError(f"{what} would take {needed:.1f} GB; the limit is {most:.1f} GB. {advice}")
