"""Fit to dask arrays, dataframes and delayed batches, on whatever scheduler dask computes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bayesnb._util.arguments import ZERO_WEIGHTS
from bayesnb._util.arrays import collection_kind
from bayesnb._util.warnings import require
from bayesnb.encoding import Levels, check_labels
from bayesnb.estimators import classifier_state
from bayesnb.fitted import counting
from bayesnb.streaming import NB, BlockCounts, choose_model, count_block, merge_all, unfitted_copy

_FAN_IN = 8
_NO_ROWS = "X has no rows. Pass at least one row."

Blocks = list[object]
"""Objects of dask, one a block: each is computed to an iterable of batches (X, y) or (X, y, sample_weight)."""


def fit(nb: NB, X: object, y: object = None, sample_weight: object = None, classes: object = None) -> NB:
    """Fit a classifier to a dask collection, in one pass, on the active dask scheduler or client.

    Parameters
    ----------
    nb : classifier of bayesnb with `partial_fit`
        Classifier to fit. An earlier fit is discarded.
    X : dask array or DataFrame, dask bag, or iterable of delayed objects
        Features of all rows. The blocks of an array may be NumPy arrays or SciPy's sparse arrays. A bag of batches, and
        delayed batches, each (X, y) or (X, y, sample_weight), are passed without `y`.
    y, sample_weight : dask arrays or Series
        Labels and replication counts, in as many blocks as X; where the chunks are known, they may differ from those
        of X.
    classes : array-like, optional
        Labels that belong to the model whether or not they occur. Labels in the data are added.

    Returns
    -------
    nb
        The argument, fitted. The posterior equals that of `fit` on all rows at once, also if levels and classes
        appeared late; for counts it is bit-identical. The result is bit-identical for any number of workers, also if
        workers were lost, as long as the blocks are the same.

    Raises
    ------
    ImportError
        If dask is not installed: `pip install 'bayesnb[dask]'`.
    TypeError
        If `nb` has no `partial_fit`: its statistics do not add up, or a structure would have to be known first. If X, y
        or the weights are neither dask collections nor delayed objects.
    ValueError
        If a block cannot be used; the message names the block, and the row within the block. If X, y and weights differ
        in the number of blocks; if no row has a positive weight. `nb` stays as it was.

    Notes
    -----
    The first block decides the kinds of the columns, as the first batch of `partial_fit` does. If no row of that block
    has a positive weight, all rows are read once more, and the first block that has weight decides. Dataframes need
    known categories, `X.categorize()`. Workers raise warnings where they count the blocks.

    Hyperparameters are checked after all rows are counted, as some depend on the levels and classes in the data.

    Examples
    --------
    >>> import dask.array as da
    >>> from bayesnb import GaussianNB, distributed
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(100, 3))
    >>> distributed.fit(GaussianNB(), X, (X[:, 0] > 0).astype(int)).class_count_.sum()
    np.float64(1000.0)
    """
    require("distributed.fit", "dask", "dask")
    draft: object = unfitted_copy(nb, "distributed.fit")
    declared = Levels(()) if classes is None else check_labels(classes, None, type(nb).__name__, "classes")[0]
    if y is None and sample_weight is not None:
        raise ValueError("sample_weight is given without y. Pass y, or yield batches (X, y, sample_weight).")
    blocks = _batch_blocks(X) if y is None else _labelled_blocks(X, y, sample_weight)
    if not blocks:
        raise ValueError(_NO_ROWS)
    total = _count_blocks(draft, blocks, 0)
    if total.counted is None and total.weighted is not None:
        total = _count_blocks(draft, blocks, total.weighted)
    if total.counted is None:
        raise ValueError(ZERO_WEIGHTS if len(total.classes) else _NO_ROWS)
    model = total.model.with_counts(counting.declare(total.counted, total.classes.union(declared)))
    return classifier_state.commit_counts(nb, draft, model)


def _count_blocks(draft: object, blocks: Blocks, first: int) -> BlockCounts:
    """Count all blocks on dask, with the columns that block `first` decides, and merge in a fixed order."""
    from dask.delayed import delayed

    count, merge = delayed(count_block, pure=False), delayed(merge_all, pure=False)
    deciding = count(delayed(draft, traverse=False), blocks[first], first, True)
    model = delayed(choose_model, pure=False)(deciding, delayed(draft, traverse=False))
    counts = [deciding if n == first else count(model, block, n, False) for n, block in enumerate(blocks)]
    while len(counts) > 1:
        counts = [merge(counts[i : i + _FAN_IN]) for i in range(0, len(counts), _FAN_IN)]
    return counts[0].compute()


# -- blocks of the arguments ----------------------------------------------------------------------


def _batch_blocks(X: Any) -> Blocks:
    """Return one block for each delayed batch, or for each partition of a bag."""
    from dask.bag import Bag
    from dask.delayed import Delayed

    if isinstance(X, Bag):
        return X.to_delayed()  # type: ignore[no-untyped-call]
    name = f"{type(X).__module__}.{type(X).__name__}"
    if collection_kind(X) is not None:
        raise ValueError(f"distributed.fit requires y to be passed when X is a {name}, but the target y is None.")
    iterable = isinstance(X, Iterable) and not isinstance(X, Delayed | np.ndarray | str | dict)
    items = list(X) if iterable else [X]
    if not all(isinstance(item, Delayed) for item in items):
        raise TypeError(
            f"X is a {name}; distributed.fit takes dask arrays, dataframes and bags, or delayed batches. Use nb.fit or "
            "fit_stream for rows in memory."
        )
    return [[item] for item in items]


def _labelled_blocks(X: object, y: object, sample_weight: object) -> Blocks:
    """Return for each block of X a list of one delayed batch (X, y) or (X, y, sample_weight)."""
    arguments: dict[str, Any] = {"X": X, "y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
    for name, argument in arguments.items():
        _require_collection(name, argument, 2 if name == "X" else 1)
    features = arguments["X"]
    if collection_kind(features) == "frame":
        _require_categories(features)
    elif features.numblocks[1] > 1:
        features = features.rechunk({1: -1})
    columns = [_align(name, argument, features) for name, argument in arguments.items() if name != "X"]
    parts = [features, *columns]
    kinds = [collection_kind(part) for part in parts]
    if set(kinds) == {"frame"}:
        # One graph reads a source that X, y and weights share only once, and of its columns only those in use.
        options = {"meta": (None, object), "enforce_metadata": False}
        return [[batch] for batch in features.map_partitions(_join, *columns, **options).to_delayed()]
    # Without optimization of each graph, blocks of arrays read a source that they share only once.
    delayed = [part.to_delayed(optimize_graph=kind == "frame") for part, kind in zip(parts, kinds, strict=True)]
    return [[batch] for batch in zip(*(np.ravel(blocks).tolist() for blocks in delayed), strict=True)]


def _join(*parts: object) -> tuple[object, ...]:
    """Return the partitions of X, labels and weights as one batch."""
    return parts


def _require_collection(name: str, part: Any, n_axes: int) -> None:
    """Raise TypeError unless an argument is a dask array or dataframe, ValueError unless it has `n_axes` dimensions."""
    if collection_kind(part) is None:
        kind = f"{type(part).__module__}.{type(part).__name__}"
        raise TypeError(f"{name} is a {kind}; it must be of dask (dask.array.from_array, dask.dataframe.from_pandas).")
    if part.ndim != n_axes:
        raise ValueError(f"{name} must have {n_axes} dimension{'s'[: n_axes - 1]}, got {part!r}.")


def _align(name: str, part: Any, X: Any) -> Any:
    """Return labels or weights, rechunked as X if chunks are known; raise ValueError unless they correspond."""
    if all(collection_kind(a) == "array" and not np.isnan(a.shape[0]) for a in (part, X)):
        if part.shape[0] != X.shape[0]:
            rows = f"X has {X.shape[0]} rows, {name} has {part.shape[0]}"
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {rows}.")
        return part.rechunk((X.chunks[0],))
    n_blocks, n_parts = (a.numblocks[0] if hasattr(a, "numblocks") else a.npartitions for a in (X, part))
    if n_blocks != n_parts:
        advice = "Make both from the same collection, or call compute_chunk_sizes() of both"
        raise ValueError(f"X has {n_blocks} blocks of rows, and {name} has {n_parts}. {advice}.")
    return part


def _require_categories(X: Any) -> None:
    """Raise ValueError if dask does not know the categories of a column."""
    for name, dtype in X.dtypes.items():
        if hasattr(dtype, "categories") and not X[name].cat.known:
            advice = "Use X.categorize(), or X.astype(object) for the values that occur as levels"
            raise ValueError(f"The categories of column {name!r} are not known before it is computed. {advice}.")


__all__ = ["fit"]
