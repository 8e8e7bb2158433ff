"""How often each two levels occur together, class by class: products of indicator matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

_MOST_CELLS = 2**22
_MOST_ROWS = 2**16
MOST_COUNTS = 2**27

# (n, L) indicators of the levels of some rows; zero where a cell is missing.
Indicators = Callable[[slice], np.ndarray]


def count_pairs(first: Indicators, second: Indicators, bounds: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """(C, L₁, L₂) weight of the rows of each class that have both levels; what was counted in two batches adds up.

    Parameters
    ----------
    first, second : functions of a slice of the rows
        Indicators, of which either may be weighted.
    bounds : (C + 1,) int array
        Rows are sorted by class; where each begins, and where the last one ends.
    shape : (L₁, L₂)
    """
    counts = np.zeros((len(bounds) - 1, *shape))
    for c, rows in pieces(bounds, max(shape)):
        own = first(rows)
        counts[c] += own.T @ (own if second is first else second(rows))
    return counts


def pieces(bounds: np.ndarray, width: int, *, whole: bool = False) -> Iterator[tuple[int, slice]]:
    """Each class and its rows, no more at once than make some million cells of `width` a row."""
    size = int(bounds[-1]) if whole else int(np.clip(_MOST_CELLS // max(1, width), 256, _MOST_ROWS))
    for c in range(len(bounds) - 1):
        for start in range(bounds[c], bounds[c + 1], max(1, size)):
            yield c, slice(start, min(start + size, int(bounds[c + 1])))


def by_class(label: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The order that sorts rows by class, and where each class begins and ends in it."""
    return np.argsort(label, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(label, minlength=n_classes))])


def require_memory(counts: int, what: str, advice: str) -> None:
    """Refuse counts that would not fit into memory.

    Raises
    ------
    ValueError
        Saying how much they would take.
    """
    if counts > MOST_COUNTS:
        raise ValueError(
            f"{what} would take {counts * 8 / 1e9:.1f} GB, more than the {MOST_COUNTS * 8 / 1e9:.1f} GB that they may "
            f"take. {advice}"
        )
