"""Functions of rows on dask collections, a block at a time and only when asked: dask is imported if X is one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

Method = Callable[..., Any]


def lazily(prepare: Callable[[Any, Any], np.ndarray]) -> Callable[[Method], Method]:
    """Let a method of rows `method(self, X, ...)` take dask arrays and dataframes, of which it gives a dask array.

    Parameters
    ----------
    prepare : function of self and a table of no rows with the columns of X
        Refuses what can be refused without rows, and gives what the method would return: an array of no rows.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def call(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_collection(X):
                return method(self, X, *args, **kwargs)
            # A later fit is not to change what is computed then.
            snapshot = copy.copy(self)
            result = prepare(snapshot, _no_rows(X))

            def block(rows: Any, owner: Any) -> Any:
                return getattr(owner, method.__name__)(rows, *args, **kwargs) if rows.shape[0] else result

            mapped = _map_frame if kind_of(X) == "frame" else _map_array
            return mapped(block, X, snapshot, result)

        return call

    return decorate


def is_collection(X: Any) -> bool:
    """Whether X is of dask."""
    return hasattr(X, "__dask_graph__")


def computed(value: Any) -> Any:
    """The value of a dask collection, and anything else as it is."""
    return value.compute() if is_collection(value) else value


def kind_of(X: Any) -> str | None:
    """Whether a dask collection is an "array" or a "frame" (or series), whose columns are known; else None."""
    if not is_collection(X) or not hasattr(X, "_meta"):
        return None
    return "array" if hasattr(X, "chunks") else "frame"


def _no_rows(X: Any) -> Any:
    """An array or DataFrame of no rows with the columns of X.

    Raises
    ------
    TypeError, ValueError
        If X is no table.
    """
    kind = kind_of(X)
    if kind is None:
        raise TypeError(f"X is a {type(X).__module__}.{type(X).__name__}; give a dask array or a dask DataFrame.")
    if X.ndim != 2 or (kind == "array" and np.isnan(X.shape[1])):
        raise ValueError(f"Expected a two-dimensional dask collection with columns that are known, got {X!r}.")
    return X._meta if kind == "frame" else np.empty((0, X.shape[1]))


def _map_array(block: Callable, X: Any, owner: Any, result: np.ndarray) -> Any:
    import dask.array as da
    from dask.delayed import delayed

    def column(rows: Any, owner: Any) -> Any:
        found = block(rows, owner)
        return found if found.ndim == 2 else found[:, None]

    width = result.shape[1] if result.ndim == 2 else 1
    mapped = da.map_blocks(
        column,
        X if X.numblocks[1] == 1 else X.rechunk({1: -1}),
        owner=delayed(owner, traverse=False),
        dtype=result.dtype,
        chunks=(X.chunks[0], (width,)),
        meta=np.empty((0, 0), result.dtype),
    )
    return mapped if result.ndim == 2 else mapped[:, 0]


def _map_frame(block: Callable, X: Any, owner: Any, result: np.ndarray) -> Any:
    from dask.delayed import delayed

    return X.map_partitions(block, owner=delayed(owner, traverse=False), meta=result, enforce_metadata=False)


__all__ = ["computed", "is_collection", "kind_of", "lazily"]
