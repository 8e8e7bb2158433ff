"""Fit to dask arrays, dataframes and delayed batches, on whatever scheduler dask computes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from bayesnb import counting
from bayesnb._util.dask_rows import collection_kind
from bayesnb._util.extras import require
from bayesnb.counting import Counted
from bayesnb.encoding import Encoding, Levels, check_labels
from bayesnb.estimators import classifier_state
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.fingerprint import n_rows
from bayesnb.streaming import split_batch, unfitted_copy

_FAN_IN = 8

Blocks = list[Any]
"""Objects of dask, one a block: each is computed to an iterable of batches (X, y) or (X, y, sample_weight)."""


@dataclass(frozen=True)
class _UncountedState:
    """State of a classifier that knows its columns and has no counts."""

    encoding: Encoding


class _BlockCounts(NamedTuple):
    """Classes and counts of some blocks.

    `classes` includes the classes of rows without weight; `counted` is None if no row has weight. `columns` is a
    classifier without counts that has the columns of the first row with weight. `same_columns` says whether every block
    decided on the same columns. Only then does `counted` include all blocks.
    """

    classes: Levels
    columns: Any = None
    counted: Counted | None = None
    same_columns: bool = True


def fit(
    nb: NaiveBayesClassifier, X: object, y: object = None, sample_weight: object = None, classes: object = None
) -> Any:
    """Fit a classifier to more rows than one machine holds, in one pass, on the active dask scheduler or client.

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
        appeared late: to the bit for counts. The same blocks give the same bits for any number of workers, also if
        workers were lost.

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
    has a positive weight, each block decides the kinds by itself; if the blocks differ, all rows are counted once more
    with the kinds of the first block that has weight. Dataframes need known categories, `X.categorize()`. Workers raise
    warnings where they count the blocks.

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
    draft: Any = unfitted_copy(nb, "distributed.fit")
    declared = Levels(()) if classes is None else check_labels(classes, None, type(nb).__name__, "classes")[0]
    if y is None and sample_weight is not None:
        raise ValueError("sample_weight is given without y; of batches it is their third part.")
    blocks = _batches(X) if y is None else _labelled_blocks(X, y, sample_weight)
    if not blocks:
        raise ValueError("X is empty: there was no row to fit to.")
    total = _count_blocks(draft, blocks)
    if not total.same_columns:
        total = _count_blocks(total.columns, blocks)
    observed, columns, counted, _ = total
    if counted is None:
        raise ValueError(
            "sample_weight is zero for every row; at least one row must count."
            if len(observed)
            else "X is empty: there was no row to fit to."
        )
    model = columns.with_counts(counting.declare(counted, observed.union(declared)))
    return classifier_state.commit_counter(nb, draft, model)


def _count_blocks(start: Any, blocks: Blocks) -> _BlockCounts:
    """Count all blocks; the order of the merges does not depend on the workers."""
    from dask.delayed import delayed

    count, merge = delayed(_count_block, pure=False), delayed(_merge_all, pure=False)
    start = delayed(start, traverse=False)
    first = count(start, blocks[0], 0)
    columns = delayed(_choose_columns, pure=False)(first, start)
    counts = [first, *(count(columns, block, number) for number, block in enumerate(blocks[1:], 1))]
    while len(counts) > 1:
        counts = [merge(counts[i : i + _FAN_IN]) for i in range(0, len(counts), _FAN_IN)]
    total: _BlockCounts = counts[0].compute()
    return total


# -- counting on workers --------------------------------------------------------------------------


def _count_block(start: Any, batches: Iterable[Any], number: int) -> _BlockCounts:
    """Count one block; its first rows with weight decide the columns if the classifier `start` has none."""
    total = _BlockCounts(Levels(()))
    try:
        for i, batch in enumerate(batches):
            counter = start if total.columns is None else total.columns
            total = _merge(total, _count_batch(counter, *split_batch(batch, i)))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Block {number}: {error}") from error
    return total


def _count_batch(start: Any, X: object, y: object, weight: Any) -> _BlockCounts:
    """Count one batch; its rows decide the columns if the classifier `start` has none."""
    n = n_rows(X)
    if not n:
        return _BlockCounts(Levels(()))
    if np.shape(weight) in ((), (n,)) and weight is not None and not np.any(weight):
        return _BlockCounts(check_labels(y, n, type(start).__name__)[0])
    columns = start if classifier_state.is_fitted(start) else classifier_state.make_counter(start, X)
    counted = classifier_state.count_batch(columns, X, y, weight)
    if not classifier_state.is_fitted(columns):
        columns.fitted_ = _UncountedState(counted.encoding)
    return _BlockCounts(counted.encoding.classes, columns, counted)


def _choose_columns(first: _BlockCounts, start: Any) -> Any:
    """Return the classifier with the columns of the first block; `start` if no row of that block has weight."""
    return start if first.columns is None else first.columns


def _merge_all(counts: list[_BlockCounts]) -> _BlockCounts:
    return reduce(_merge, counts)


def _merge(a: _BlockCounts, b: _BlockCounts) -> _BlockCounts:
    """Merge counts of blocks; those of `b` are left out if its columns are not those of `a`."""
    classes = a.classes.union(b.classes)
    if a.counted is None or b.counted is None:
        return (b if a.counted is None else a)._replace(classes=classes)
    same_columns = a.same_columns and b.same_columns and _describe_columns(a.columns) == _describe_columns(b.columns)
    counted = counting.merge(a.counted, b.counted) if same_columns else a.counted
    return _BlockCounts(classes, a.columns, counted, same_columns)


def _describe_columns(nb: NaiveBayesClassifier) -> list[tuple[Any, ...]]:
    """Return kind, edges of cells, positions and names of the columns of each block of a model, to be compared."""
    fields = ("index", "names", "nodes", "declared")
    return [
        (type(block), block.kind, _cell_edges(block), *(getattr(block, field, None) for field in fields))
        for block in nb.fitted_.encoding.blocks
    ]


def _cell_edges(block: Any) -> list[Any]:
    """Return the edges of the cells of each column of numbers, or of its intervals in a structure."""
    columns: Any = getattr(block, "edges", None) or getattr(block.base, "cuts", ())
    return [None if edges is None else edges.tolist() for edges in columns]


# -- blocks of the arguments ----------------------------------------------------------------------


def _batches(X: Any) -> Blocks:
    """Return one block for each delayed batch, or for each partition of a bag."""
    from dask.bag import Bag
    from dask.delayed import Delayed

    collection: Any = X  # dask has no annotations.
    if isinstance(X, Bag):
        blocks: Blocks = collection.to_delayed()
        return blocks
    name = f"{type(X).__module__}.{type(X).__name__}"
    if collection_kind(X) is not None:
        raise ValueError(f"distributed.fit requires y to be passed with a {name}, but the target y is None.")
    iterable = isinstance(X, Iterable) and not isinstance(X, Delayed | np.ndarray | str | dict)
    items = list(X) if iterable else [X]
    if not all(isinstance(item, Delayed) for item in items):
        raise TypeError(
            f"X is a {name}; distributed.fit takes dask arrays, dataframes and bags, or delayed batches. To rows in "
            "memory fits nb.fit, to batches in memory fit_stream."
        )
    return [[item] for item in items]


def _labelled_blocks(X: object, y: object, sample_weight: object) -> Blocks:
    """Return one block for each block of X, with its labels and weights."""
    arguments: dict[str, Any] = {"X": X, "y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
    kinds = {name: _kind(name, argument) for name, argument in arguments.items()}
    arguments = _align(arguments, kinds)
    for kind in ("array", "frame"):
        if set(kinds.values()) == {kind}:
            # One graph reads the source that X, y and weights may share only once.
            join = _join_arrays if kind == "array" else _join_frames
            return [[batch] for batch in join(*arguments.values())]
    columns = [np.ravel(argument.to_delayed()).tolist() for argument in arguments.values()]
    return [[batch] for batch in zip(*columns, strict=True)]


def _kind(name: str, part: Any) -> str:
    """Return "array" or "frame"; raise unless the argument is one of these, with the right number of dimensions."""
    kind, wanted = collection_kind(part), 2 if name == "X" else 1
    if kind is None:
        raise TypeError(
            f"{name} is a {type(part).__module__}.{type(part).__name__}; beside the other arguments it must be a dask "
            "array, DataFrame or Series (dask.array.from_array, dask.dataframe.from_pandas)."
        )
    if part.ndim != wanted:
        raise ValueError(f"{name} must have {wanted} dimension{'s'[: wanted - 1]}, got {part!r}.")
    return kind


def _align(arguments: dict[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    """Return X in one block of columns, and labels and weights in the blocks of X, where chunks are known."""
    aligned, X = dict(arguments), arguments["X"]
    if kinds["X"] == "frame":
        _require_categories(X)
    elif X.numblocks[1] > 1:
        aligned["X"] = X.rechunk({1: -1})
    blocks = _n_blocks(X, kinds["X"])
    for name in set(arguments) - {"X"}:
        argument = arguments[name]
        rows = [_known_n_rows(array, kinds[n]) for n, array in (("X", X), (name, argument))]
        if None not in rows:
            if rows[0] != rows[1]:
                raise ValueError(
                    f"Found input variables with inconsistent numbers of samples: X has {rows[0]} rows, {name} has "
                    f"{rows[1]}."
                )
            aligned[name] = argument.rechunk((X.chunks[0],))
        elif (n_blocks := _n_blocks(argument, kinds[name])) != blocks:
            raise ValueError(
                f"X has {blocks} blocks of rows, and {name} has {n_blocks}: where their lengths "
                "are not known, blocks must correspond. Take both from one collection, or compute_chunk_sizes()."
            )
    return aligned


def _known_n_rows(part: Any, kind: str) -> int | None:
    """Return the number of rows of an array, None where it is unknown."""
    return None if kind == "frame" or np.isnan(part.shape[0]) else int(part.shape[0])


def _n_blocks(part: Any, kind: str) -> int:
    return int(part.npartitions if kind == "frame" else part.numblocks[0])


def _require_categories(X: Any) -> None:
    """Raise ValueError if dask does not know the categories of a column."""
    for name, dtype in X.dtypes.items():
        if hasattr(dtype, "categories") and not X[name].cat.known:
            raise ValueError(
                f"The categories of column {name!r} are not known before it is computed, and may be others in each "
                "partition; use X.categorize(), or X.astype(object) to take the values that occur."
            )


def _join_arrays(X: object, *others: Any) -> Blocks:
    import dask.array as da

    pairs = [argument for part in others for argument in (part, "i")]
    options: dict[str, Any] = {"dtype": object, "meta": np.empty((0, 0), object), "align_arrays": False}
    blockwise: Any = da.blockwise  # dask has no annotations.
    blocks: Blocks = blockwise(_batch, "ij", X, "ij", *pairs, **options).to_delayed().ravel().tolist()
    return blocks


def _join_frames(X: Any, *others: Any) -> Blocks:
    options = {"meta": (None, object), "enforce_metadata": False}
    blocks: Blocks = X.map_partitions(_batch, *others, **options).to_delayed()
    return blocks


def _batch(*parts: Any) -> tuple[Any, ...]:
    return parts


__all__ = ["fit"]
