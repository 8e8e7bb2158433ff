"""Where cells of numbers end and the next begin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bayesnb._util.arguments import shown, to_numbers
from bayesnb.encoding.table import Table


def quantiles(values: np.ndarray, cells: int) -> np.ndarray | None:
    """Edges of as many cells at most, with about as many of the values each; between values that occur.

    None where no value is finite.
    """
    distinct, count = np.unique(values[np.isfinite(values)].astype(np.float64), return_counts=True)
    if not len(distinct):
        return None
    until = np.cumsum(count)[:-1]
    if len(until) >= cells:
        wanted = until[-1] + count[-1]
        after = np.searchsorted(until, wanted * np.arange(1, cells) / cells)
        above = np.minimum(after, len(until) - 1)
        below = np.maximum(above - 1, 0)
        target = wanted * np.arange(1, cells) / cells
        nearest = np.where(abs(until[above] - target) <= abs(until[below] - target), above, below)
        chosen = np.unique(nearest)
    else:
        chosen = np.arange(len(until))
    # Halves first: sums of large numbers overflow. A number on an edge is below it, so that the lower one may be it.
    edges = distinct[chosen] / 2 + distinct[chosen + 1] / 2
    return np.where((edges < distinct[chosen]) | (edges >= distinct[chosen + 1]), distinct[chosen], edges)


def are_edges(edges: Any) -> bool:
    """Whether these are finite numbers, (K,), that increase."""
    numbers = isinstance(edges, np.ndarray) and edges.ndim == 1 and edges.dtype == np.float64
    return numbers and bool(np.isfinite(edges).all()) and bool((np.diff(edges) > 0).all())


def given_edges(edges: Any, table: Table, index: Iterable[int]) -> tuple[np.ndarray | None, ...]:
    """For the columns of a table `edges` as a user gives them: {column: edges}, or an entry for each column of `index`.

    Raises
    ------
    ValueError
        If they do not increase, are for a column that there is not, or for more or fewer.
    """
    index = list(index)
    if edges is None:
        return (None,) * len(index)
    if isinstance(edges, Mapping):
        of = {table.position(column, "edges"): own for column, own in edges.items()}
        strange = [table.names[j] for j in of if j not in index]
        if strange:
            raise ValueError(f"edges are given for column {shown(strange[0])}, which is not binned.")
        own: list[Any] = [of.get(j) for j in index]
    elif isinstance(edges, Sequence | np.ndarray) and not isinstance(edges, str) and len(edges) == len(index):
        own = list(edges)
    else:
        raise ValueError(
            f"edges={shown(edges)} must be a dict {{column: edges}}, such as edges_ of another classifier, or have an "
            f"entry for each of the {len(index)} binned columns."
        )
    found = []
    for j, one in zip(index, own, strict=True):
        numbers = None if one is None else to_numbers(f"edges of column {table.names[j]!r}", one)
        if numbers is not None and not are_edges(numbers):
            raise ValueError(
                f"edges of column {shown(table.names[j])} are {shown(one)}; they must be finite numbers that increase."
            )
        found.append(numbers)
    return tuple(found)


def cell_names(edges: np.ndarray | None) -> list[str]:
    """What cells are called, such as "(1.5, 2]", with as many digits as tell the edges apart."""
    if edges is None or not len(edges):
        return ["(-inf, inf)"]
    digits = next((d for d in range(3, 18) if len({f"{e:.{d}g}" for e in edges}) == len(edges)), 17)
    ends = [f"{e:.{digits}g}" for e in edges]
    inner = [f"({low}, {high}]" for low, high in pairwise(ends)]
    return [f"(-inf, {ends[0]}]", *inner, f"({ends[-1]}, inf)"]


def same_edges(name: str, mine: np.ndarray | None, theirs: np.ndarray | None) -> np.ndarray | None:
    """Those of both, if they are the same, or of one none are known yet; raises ValueError if not."""
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    if not np.array_equal(mine, theirs):
        raise ValueError(
            f"Column {shown(name)} was cut into other cells in one part of the rows than in another, and such counts "
            "do not add up. Take the edges from a first pass, fit(some_rows).edges_, and give them to all parts: "
            "edges=..."
        )
    return mine


__all__ = ["are_edges", "cell_names", "given_edges", "quantiles", "same_edges"]
