"""Methods of rows on dask collections, computed lazily block by block; dask is imported only if X is a collection."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

Method = Callable[..., Any]


def accept_dask(prepare: Callable[[Any, Any], np.ndarray]) -> Callable[[Method], Method]:
    """Return a decorator by which a method `method(self, X, ...)` also takes a dask X, and returns a lazy dask array.

    Parameters
    ----------
    prepare : function of self and a table without rows, with the columns of X
        Raises the errors that need no rows, and returns the method's result for no rows.
    """

    def decorate(method: Method) -> Method:
        """Return the method, extended to dask arrays and dataframes."""

        @wraps(method)
        def call(self: Any, X: object, *args: Any, **kwargs: Any) -> Any:
            """Call the method on X, or on each block of rows of a dask X once the returned dask array is computed."""
            if not hasattr(X, "__dask_graph__"):
                return method(self, X, *args, **kwargs)
            # The result is computed later; a fit in between must not change it.
            snapshot = copy.copy(self)
            result = prepare(snapshot, _no_rows(X))

            def block(rows: Any, owner: Any) -> Any:
                return getattr(owner, method.__name__)(rows, *args, **kwargs) if rows.shape[0] else result

            mapped = _map_frame if collection_kind(X) == "frame" else _map_array
            return mapped(block, X, snapshot, result)

        return call

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


def _map_array(block: Method, X: Any, owner: Any, result: np.ndarray) -> Any:
    """Return the lazy dask array of `block(rows, owner)` for each block of rows of a dask array X.

    `result` is what `block` returns for no rows: an array of the type and the width of all results.
    """
    import dask.array as da
    from dask.delayed import delayed

    def two_dimensional(rows: Any, owner: Any) -> Any:
        values = block(rows, owner)
        return values if values.ndim == 2 else values[:, None]

    width = result.shape[1] if result.ndim == 2 else 1
    X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    shape = {"dtype": result.dtype, "chunks": (X.chunks[0], (width,)), "meta": np.empty((0, 0), result.dtype)}
    map_blocks: Any = da.map_blocks
    mapped = map_blocks(two_dimensional, X, owner=delayed(owner, traverse=False), **shape)
    return mapped if result.ndim == 2 else mapped[:, 0]


def _map_frame(block: Method, X: Any, owner: Any, result: np.ndarray) -> Any:
    """Return the lazy dask array of `block(rows, owner)` for each partition of a dask dataframe X.

    `result` is what `block` returns for no rows: an array of the type and the width of all results.
    """
    from dask.delayed import delayed

    return X.map_partitions(block, owner=delayed(owner, traverse=False), meta=result, enforce_metadata=False)
