"""Rows of arrays, tables and dask collections, and counts of pairs of levels."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from bayesnb._util.arguments import require_integer

# == Selection of rows from any table that users pass, and results of rows put in their order ======


def take_rows(X: Any, index: np.ndarray | slice) -> Any:
    """Return the rows `index` (positions, mask or slice) of an array, list, sparse matrix (as CSR) or DataFrame."""
    return X.tocsr()[index] if sp.issparse(X) else _safe_indexing(X, index)


def scatter_rows(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return (N, …) float64 values of all rows, from pairs of a mask (N,) and the values of the rows in the mask."""
    values = np.empty((len(parts[0][0]), *parts[0][1].shape[1:]))
    for mask, part in parts:
        values[mask] = part
    return values


# == Tables and columns of other libraries in pandas ================================================


def to_pandas(given: object, argument: str) -> Any:
    """Return a table or a column of any library that narwhals knows in pandas, and other values unchanged.

    Lazy tables are collected. Memory is shared where possible. Integers beside missing cells stay integers,
    dictionaries keep their codes, and an Enum is a categorical.

    Raises
    ------
    TypeError
        If the value of `argument` is a dask collection.
    """
    import narwhals.stable.v2 as nw
    import pandas as pd

    native = nw.to_native(given, pass_through=True)
    if is_collection(native):
        raise TypeError(
            f"{argument} is a dask collection ({type(native).__name__}), which is computed only on demand. Count its "
            f"blocks by bayesnb.distributed.fit(nb, X, y), or pass {argument}.compute() if all rows fit into memory."
        )
    if hasattr(native, "iloc"):
        return native
    table = nw.from_native(native, pass_through=True, allow_series=True)
    if isinstance(table, nw.Series):
        return to_pandas(table.to_frame(), argument).iloc[:, 0]
    if table is native and hasattr(native, "__arrow_c_stream__"):
        table = nw.from_arrow(native, backend="pyarrow")
    if not isinstance(table, nw.DataFrame | nw.LazyFrame):
        return native
    import pyarrow as pa

    def keep_type(arrow_type: object) -> Any:
        """Return the pandas type that keeps dictionaries and dates as they are; None for other types."""
        is_kept = pa.types.is_dictionary(arrow_type) or pa.types.is_date32(arrow_type)
        return pd.ArrowDtype(arrow_type) if is_kept else None

    schema = table.collect_schema()
    table = table.lazy().collect()
    arrow = table.to_arrow()
    frame = arrow.to_pandas(split_blocks=True, types_mapper=keep_type)
    for name, kind in schema.items():
        cells = arrow[name]
        if kind == nw.Object:
            frame[name] = table[name].to_list()
        elif kind == nw.Enum:
            # Old versions of pyarrow convert no unsigned keys.
            frame[name] = cells.cast(pa.dictionary(pa.int32(), cells.type.value_type)).to_pandas().array
        elif kind.is_integer() and cells.null_count and (nullable := getattr(pd, f"{kind}Dtype", None)):
            frame[name] = nullable().__from_arrow__(cells)
    return frame


# == Counts of pairs of levels in each class, as products of indicator matrices; limits of memory ===

_MOST_CELLS = 2**22
_MOST_ROWS = 2**16
MOST_COUNTS = 2**27
"""Most counts of a model, and numbers of an intermediate result."""
MOST_NUMBERS = 2**29
"""Most numbers of a result that a user has asked for."""

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


class TooManyNumbersError(ValueError):
    """Error of a call whose result, or tables, would have more numbers than fit into memory.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> nb = bnb.GaussianNB().fit([[0.0], [1.0]], ["no", "yes"])
    >>> try:
    ...     bnb.posterior_draws(nb, draws=10**9)
    ... except bnb.TooManyNumbersError:
    ...     print("too many")
    too many
    """


def require_memory(numbers: float, what: str, advice: str, most: int | None = None) -> None:
    """Raise TooManyNumbersError for more than `most` numbers, by default `MOST_COUNTS`.

    `what` and `advice` are parts of the message.
    """
    most = MOST_COUNTS if most is None else most
    if numbers > most:
        needed, limit = numbers * 8 / 1e9, most * 8 / 1e9
        raise TooManyNumbersError(f"{what} would take {needed:,.1f} GB; the limit is {limit:.1f} GB. {advice}")


def require_draws(draws: Any, numbers: float, what: str, advice: str = "Set fewer draws.", *, chains: int = 1) -> None:
    """Raise ValueError unless `draws` is a positive integer, and so many draws in each of some chains fit into memory.

    A draw, of `what`, takes `numbers` numbers, and all draws at most `MOST_NUMBERS`.
    """
    require_integer("draws", draws)
    require_memory(chains * draws * numbers, f"{chains * draws:,} draws of {what}", advice, MOST_NUMBERS)


# == Methods of rows on dask collections, computed lazily block by block; dask is imported only if X is a collection

Method = TypeVar("Method", bound=Callable[..., Any])


def accept_dask(prepare: Callable[[Any, object], np.ndarray]) -> Callable[[Method], Method]:
    """Return a decorator by which a method `method(self, X, ...)` also takes a dask X, and returns a lazy dask array.

    Parameters
    ----------
    prepare : function of self and a table without rows, with the columns of X
        Raises the errors that need no rows, and returns the method's result for no rows.
    """

    def decorate(method: Method) -> Method:
        """Return the method, extended to dask arrays and dataframes."""

        @wraps(method)
        def call(self: object, X: object, *args: object, **kwargs: object) -> Any:
            """Call the method on X, or on each block of rows of a dask X once the returned dask array is computed."""
            if not hasattr(X, "__dask_graph__"):
                return method(self, X, *args, **kwargs)
            # The result is computed later; a fit in between must not change it.
            snapshot = copy.copy(self)
            result = prepare(snapshot, _no_rows(X))

            def block(rows: Any, owner: object) -> Any:
                return getattr(owner, method.__name__)(rows, *args, **kwargs) if rows.shape[0] else result

            mapped = _map_frame if collection_kind(X) == "frame" else _map_array
            return mapped(block, X, snapshot, result)

        return cast(Method, call)

    return decorate


def is_collection(X: object) -> bool:
    """Return whether X is a dask collection."""
    return hasattr(X, "__dask_graph__")


def compute_dask(value: Any) -> Any:
    """Return the computed value of a dask collection, and any other value unchanged."""
    return value.compute() if is_collection(value) else value


def collection_kind(X: object) -> str | None:
    """Return "array" or "frame" (also for series) for a dask collection with known columns; else None."""
    if not is_collection(X) or not hasattr(X, "_meta"):
        return None
    return "array" if hasattr(X, "chunks") else "frame"


def _no_rows(X: Any) -> Any:
    """Return an array or DataFrame without rows, with the columns of X.

    Raises
    ------
    TypeError, ValueError
        If X is not a table.
    """
    kind = collection_kind(X)
    if kind is None:
        raise TypeError(f"X is a {type(X).__module__}.{type(X).__name__}; it must be a dask array or a dask DataFrame.")
    if X.ndim != 2 or (kind == "array" and np.isnan(X.shape[1])):
        known = f"its shape is {X.shape}. Call X.compute_chunk_sizes() if it has a nan"
        raise ValueError(f"X must be two-dimensional, with a known number of columns; {known}.")
    return X._meta if kind == "frame" else np.empty((0, X.shape[1]))


def _map_array(block: Callable[..., Any], X: Any, owner: Any, result: np.ndarray) -> Any:
    """Return the lazy dask array of `block(rows, owner)` for each block of rows of a dask array X.

    `result` is what `block` returns for no rows: an array of the type and the width of all results.
    """
    import dask.array as da
    from dask.delayed import delayed

    def two_dimensional(rows: Any, owner: object) -> Any:
        values = block(rows, owner)
        return values if values.ndim == 2 else values[:, None]

    width = result.shape[1] if result.ndim == 2 else 1
    X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    shape = {"dtype": result.dtype, "chunks": (X.chunks[0], (width,)), "meta": np.empty((0, 0), result.dtype)}
    map_blocks: Any = da.map_blocks
    mapped = map_blocks(two_dimensional, X, owner=delayed(owner, traverse=False), **shape)
    return mapped if result.ndim == 2 else mapped[:, 0]


def _map_frame(block: Callable[..., object], X: Any, owner: object, result: np.ndarray) -> Any:
    """Return the lazy dask array of `block(rows, owner)` for each partition of a dask dataframe X.

    `result` is what `block` returns for no rows: an array of the type and the width of all results.
    """
    from dask.delayed import delayed

    return X.map_partitions(block, owner=delayed(owner, traverse=False), meta=result, enforce_metadata=False)
