"""Edges between the cells of numbers: from quantiles, from users, and in names."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from bayesnb._util.arguments import bad_argument, shown, to_numbers
from bayesnb.encoding.table import Table, is_labelled, match_columns, match_index


def quantile_edges(values: np.ndarray, cells: int) -> np.ndarray | None:
    """Edges of at most `cells` cells of about equally many values, halfway between neighbouring distinct values.

    Each distinct value has a cell if there are at most `cells` of these. None if no value is finite.
    """
    distinct, count = np.unique(values[np.isfinite(values)].astype(np.float64), return_counts=True)
    if not len(distinct):
        return None
    n_below = np.cumsum(count)[:-1]
    if len(n_below) >= cells:
        target = (n_below[-1] + count[-1]) * np.arange(1, cells) / cells
        above = np.minimum(np.searchsorted(n_below, target), len(n_below) - 1)
        below = np.maximum(above - 1, 0)
        nearest = np.where(abs(n_below[above] - target) <= abs(n_below[below] - target), above, below)
        chosen = np.unique(nearest)
    else:
        chosen = np.arange(len(n_below))
    lower, upper = distinct[chosen], distinct[chosen + 1]
    # Halves are added, as sums of large numbers overflow. A number on an edge is in the cell below it, so that the
    # lower value serves as the edge if the mean rounds to a value outside.
    edges = lower / 2 + upper / 2
    return np.asarray(np.where((edges < lower) | (edges >= upper), lower, edges))


def are_edges(edges: object) -> bool:
    """Return whether `edges` is a float64 array (K,) of finite numbers that increase."""
    if not isinstance(edges, np.ndarray) or edges.ndim != 1 or edges.dtype != np.float64:
        return False
    return bool(np.isfinite(edges).all() and (np.diff(edges) > 0).all())


def check_edges(
    edges: object, table: Table, index: Iterable[int], others: Iterable[int] = ()
) -> tuple[np.ndarray | None, ...]:
    """Return the edges that a user gives for each column of `index`, float64 arrays; None for a column without.

    Parameters
    ----------
    edges : dict, Series, sequence or None
        Value of the user's argument: {column: edges}, or an entry for each column of `index`.
    table : Table
    index : iterable of int
        Positions of the binned columns in the table.
    others : iterable of int, optional
        Positions of further columns that a dict or Series may name.

    Raises
    ------
    ValueError
        If edges do not increase, or are for other columns than the binned ones.
    """
    index = list(index)
    if edges is None:
        return (None,) * len(index)
    if is_labelled(edges):
        unbinned = match_columns("edges", edges, table.names).keys() - {*index, *others}
        if unbinned:
            name = shown(table.names[min(unbinned)])
            raise ValueError(f"edges are given for column {name}, which is not binned. Remove the entry.")
    wanted = f"a dict {{column: edges}}, or a list with an entry for each of the {len(index)} binned columns"
    checked = []
    for j, entry in zip(index, match_index("edges", edges, table.names, index, wanted), strict=True):
        numbers = None if entry is None else to_numbers(f"edges of column {table.names[j]!r}", entry)
        if numbers is not None and not are_edges(numbers):
            raise bad_argument(f"edges of column {shown(table.names[j])}", entry, "finite numbers that increase")
        checked.append(numbers)
    return tuple(checked)


def cell_names(edges: np.ndarray | None) -> list[str]:
    """Names of the cells between edges, such as "(1.5, 2]"; without edges "(-inf, inf)" alone.

    Edges have three significant digits, or as many more, up to 17, as make all of them differ.
    """
    if edges is None or not len(edges):
        return ["(-inf, inf)"]
    digits = next((d for d in range(3, 18) if len({f"{e:.{d}g}" for e in edges}) == len(edges)), 17)
    ends = [f"{e:.{digits}g}" for e in edges]
    inner = [f"({low}, {high}]" for low, high in pairwise(ends)]
    return [f"(-inf, {ends[0]}]", *inner, f"({ends[-1]}, inf)"]


def merge_edges(name: str, first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    """Return the edges of a column from two parts of the rows: those of a part that has some, or the same of both.

    Raises
    ------
    ValueError
        If the edges differ.
    """
    if first is None or second is None:
        return second if first is None else first
    if not np.array_equal(first, second):
        raise ValueError(
            f"Column {shown(name)} was cut at different edges in two batches of rows. Give all batches the edges of a "
            "first fit: nb.set_params(edges=nb.fit(some_X, some_y).edges_)."
        )
    return first
