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
from bayesnb.estimators import drafts
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.streaming import batch_parts, blank

_FAN_IN = 8

Blocks = list[Any]
"""For each block what gives an iterable of batches (X, y) or (X, y, sample_weight), when computed."""


@dataclass(frozen=True)
class _Decided:
    """State of a classifier whose columns are decided, and which has no counts."""

    encoding: Encoding


class _Part(NamedTuple):
    """What some blocks hold: classes, those of rows without weight too, and counts, if any row has weight.

    `columns` is a classifier without counts that knows the columns, those of the first of these rows; `alike` says that
    the others would have decided likewise, and so are in the counts.
    """

    classes: Levels
    columns: Any = None
    counted: Counted | None = None
    alike: bool = True


def fit(nb: NaiveBayesClassifier, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> Any:
    """Fit a classifier to more rows than one machine holds, in one pass, on the active dask scheduler or client.

    Parameters
    ----------
    nb : classifier of bayesnb with `partial_fit`
        Is fitted anew.
    X : dask array or DataFrame, dask bag, or iterable of delayed objects
        The blocks of an array may be NumPy arrays or SciPy's sparse ones. A bag of batches, or delayed batches, each
        (X, y) or (X, y, sample_weight), come without `y`.
    y, sample_weight : dask arrays or Series
        Of as many blocks as X; where chunks are known they may be others than those of X.
    classes : array-like, optional
        Labels that belong to the model whether or not they occur. Others are found on the way.

    Returns
    -------
    nb
        The posterior is that of `fit` on all rows at once, also if levels and classes came late: to the bit for counts,
        and the same bits for the same blocks, on however many workers, and whichever of them were lost on the way.

    Raises
    ------
    ImportError
        Without dask: it is an extra, `pip install 'bayesnb[dask]'`.
    TypeError
        If `nb` has no `partial_fit`: its statistics do not add up, or a structure would have to be known first. If X, y
        or the weights are of no kind that is known here.
    ValueError
        If a block cannot be used, naming it; row numbers are those within it. If X, y and weights have not as many
        blocks; if no row has a positive weight. `nb` is left as it was.

    Notes
    -----
    Which columns are of which kind is decided by the first block, as `partial_fit` does. Only where that has no row of
    positive weight, each block decides by itself, and if they differ, all are counted once more, as the first of them
    says. Dataframes need known categories, `X.categorize()`. Warnings come where blocks are counted.

    Hyperparameters are held against all rows, as some depend on what these have, and so at the end.

    Examples
    --------
    >>> import dask.array as da
    >>> from bayesnb import GaussianNB, distributed
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(100, 3))
    >>> distributed.fit(GaussianNB(), X, (X[:, 0] > 0).astype(int)).class_count_.sum()
    np.float64(1000.0)
    """
    require("distributed.fit", "dask", "dask")
    draft: Any = blank(nb, "distributed.fit")
    declared = Levels(()) if classes is None else check_labels(classes, None, type(nb).__name__, "classes")[0]
    if y is None and sample_weight is not None:
        raise ValueError("sample_weight is given without y; of batches it is their third part.")
    blocks = _batches(X) if y is None else _labelled_blocks(X, y, sample_weight)
    if not blocks:
        raise ValueError("X is empty: there was no row to fit to.")
    part = _reduced(draft, blocks)
    found, columns, counted, _ = part if part.alike else _reduced(part.columns, blocks)
    if counted is None:
        raise ValueError(
            "sample_weight is zero for every row; at least one row must count."
            if len(found)
            else "X is empty: there was no row to fit to."
        )
    model = columns.with_counts(counting.declare(counted, found.union(declared)))
    return drafts.commit_counter(nb, draft, model)


def _reduced(start: Any, blocks: Blocks) -> _Part:
    """What all blocks hold; the merges are the same ones in the same order whoever does them."""
    from dask.base import compute
    from dask.delayed import delayed

    count, merge = delayed(_count, pure=False), delayed(_merged, pure=False)
    start = delayed(start, traverse=False)
    first = count(start, blocks[0], 0)
    columns = delayed(_columns, pure=False)(first, start)
    parts = [first, *(count(columns, block, number) for number, block in enumerate(blocks[1:], 1))]
    while len(parts) > 1:
        parts = [merge(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    (part,) = compute(parts[0])
    return part


# -- what workers do -----------------------------------------------------------------------------


def _count(start: Any, batches: Iterable[Any], number: int) -> _Part:
    """What a block holds; its first rows decide the columns if `start` does not know them."""
    part = _Part(Levels(()))
    try:
        for i, batch in enumerate(batches):
            own = start if part.columns is None else part.columns
            part = _merge(part, _count_batch(own, *batch_parts(batch, i)))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Block {number}: {error}") from error
    return part


def _count_batch(start: Any, X: Any, y: Any, weight: Any) -> _Part:
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if not n_rows:
        return _Part(Levels(()))
    if np.shape(weight) in ((), (n_rows,)) and weight is not None and not np.any(weight):
        return _Part(check_labels(y, n_rows, type(start).__name__)[0])
    columns = start if drafts.is_fitted(start) else drafts.counter(start, X)
    counted = drafts.count_batch(columns, X, y, weight, Levels(()), grow=True)
    if not drafts.is_fitted(columns):
        columns.fitted_ = _Decided(counted.encoding)
    return _Part(counted.encoding.classes, columns, counted)


def _columns(first: _Part, start: Any) -> Any:
    return start if first.columns is None else first.columns


def _merged(parts: list[_Part]) -> _Part:
    return reduce(_merge, parts)


def _merge(a: _Part, b: _Part) -> _Part:
    classes = a.classes.union(b.classes)
    if a.counted is None or b.counted is None:
        return (b if a.counted is None else a)._replace(classes=classes)
    alike = a.alike and b.alike and _decided(a.columns) == _decided(b.columns)
    counted = counting.merge(a.counted, b.counted) if alike else a.counted
    return _Part(classes, a.columns, counted, alike)


def _decided(nb: NaiveBayesClassifier) -> list[tuple[Any, ...]]:
    """What was decided on the columns of each block of the model."""
    fields = ("index", "names", "nodes", "declared")
    return [
        (type(block), block.kind, _ends(block), *(getattr(block, field, None) for field in fields))
        for block in nb.fitted_.encoding.blocks
    ]


def _ends(block: Any) -> list[Any]:
    """Where cells of numbers end, or their intervals in a structure."""
    found: Any = getattr(block, "edges", None) or getattr(block.base, "cuts", ())
    return [None if edges is None else edges.tolist() for edges in found]


# -- what the user gives -------------------------------------------------------------------------


def _batches(X: Any) -> Blocks:
    """Blocks of delayed batches, or of a bag of batches."""
    from dask.bag import Bag
    from dask.delayed import Delayed

    if isinstance(X, Bag):
        return X.to_delayed()
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


def _labelled_blocks(X: Any, y: Any, sample_weight: Any) -> Blocks:
    """Blocks of X with those of labels and weights."""
    parts = {"X": X, "y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
    kinds = {name: _kind(name, part) for name, part in parts.items()}
    parts = _aligned(parts, kinds)
    for kind in ("array", "frame"):
        if set(kinds.values()) == {kind}:
            # As one graph, so that what they come from is read once.
            joint = _joint_array if kind == "array" else _joint_frame
            return [[batch] for batch in joint(*parts.values())]
    columns = [np.ravel(part.to_delayed()).tolist() for part in parts.values()]
    return [[batch] for batch in zip(*columns, strict=True)]


def _kind(name: str, part: Any) -> str:
    """ "array" or "frame", of the right dimensions."""
    kind, wanted = collection_kind(part), 2 if name == "X" else 1
    if kind is None:
        raise TypeError(
            f"{name} is a {type(part).__module__}.{type(part).__name__}; beside the other arguments it must be a dask "
            "array, DataFrame or Series (dask.array.from_array, dask.dataframe.from_pandas)."
        )
    if part.ndim != wanted:
        raise ValueError(f"{name} must have {wanted} dimension{'s'[: wanted - 1]}, got {part!r}.")
    return kind


def _aligned(parts: dict[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    """The same with X in one block of columns, and labels and weights in the blocks of X, where chunks are known."""
    aligned, X = dict(parts), parts["X"]
    if kinds["X"] == "frame":
        _require_categories(X)
    elif X.numblocks[1] > 1:
        aligned["X"] = X.rechunk({1: -1})
    blocks = _n_blocks(X, kinds["X"])
    for name in set(parts) - {"X"}:
        part = parts[name]
        rows = [_n_rows(p, kinds[n]) for n, p in (("X", X), (name, part))]
        if None not in rows:
            if rows[0] != rows[1]:
                raise ValueError(
                    f"Found input variables with inconsistent numbers of samples: X has {rows[0]} rows, {name} has "
                    f"{rows[1]}."
                )
            aligned[name] = part.rechunk((X.chunks[0],))
        elif _n_blocks(part, kinds[name]) != blocks:
            raise ValueError(
                f"X has {blocks} blocks of rows, and {name} has {_n_blocks(part, kinds[name])}: where their lengths "
                "are not known, blocks must correspond. Take both from one collection, or compute_chunk_sizes()."
            )
    return aligned


def _n_rows(part: Any, kind: str) -> int | None:
    """Number of rows of an array, None where it is not known."""
    return None if kind == "frame" or np.isnan(part.shape[0]) else int(part.shape[0])


def _n_blocks(part: Any, kind: str) -> int:
    return part.npartitions if kind == "frame" else part.numblocks[0]


def _require_categories(X: Any) -> None:
    for name, dtype in X.dtypes.items():
        if hasattr(dtype, "categories") and not X[name].cat.known:
            raise ValueError(
                f"The categories of column {name!r} are not known before it is computed, and may be others in each "
                "partition; use X.categorize(), or X.astype(object) to take the values that occur."
            )


def _joint_array(X: Any, *others: Any) -> Blocks:
    import dask.array as da

    pairs = [argument for part in others for argument in (part, "i")]
    options: dict[str, Any] = {"dtype": object, "meta": np.empty((0, 0), object), "align_arrays": False}
    return da.blockwise(_batch, "ij", X, "ij", *pairs, **options).to_delayed().ravel().tolist()


def _joint_frame(X: Any, *others: Any) -> Blocks:
    options = {"meta": (None, object), "enforce_metadata": False}
    return X.map_partitions(_batch, *others, **options).to_delayed()


def _batch(*parts: Any) -> tuple[Any, ...]:
    return parts


__all__ = ["fit"]
