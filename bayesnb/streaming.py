"""Fit to more rows than memory holds: batches from any iterator, from files, with checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from bayesnb.arguments import require_integer
from bayesnb.encoding import check_labels
from bayesnb.persistence import load, save
from bayesnb.progress import progress as progress_bar

if TYPE_CHECKING:
    import pandas as pd

_BATCH = 65_536

Batch = tuple[Any, ...]


def fit_stream(
    nb: Any,
    batches: Iterable[Batch],
    classes: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
    *,
    every: int = 1_000_000,
) -> Any:
    """Fit a classifier to batches of rows, in one pass and constant memory.

    Parameters
    ----------
    nb : classifier of bayesnb with `partial_fit`
        Is fitted anew.
    batches : iterable of (X, y) or (X, y, sample_weight)
        Asked for the next batch only when the last one has been counted, so that it may use its buffers again.
    classes : array-like, optional
        Labels that belong to the model whether or not they occur. Others are found on the way.
    checkpoint : path, optional
        A file that is written every so many rows, and at the end. If it is there at the beginning, its rows are not
        counted again: `batches` must yield the same rows in the same order, in batches of any size.
    progress : bool
        Show how many rows were counted.
    every : int
        Rows between two checkpoints.

    Returns
    -------
    nb
        The posterior is that of `fit` on all rows at once, also if levels and classes came late.

    Raises
    ------
    TypeError
        If `nb` has no `partial_fit`: its statistics do not add up, or a structure would have to be known first.
    ValueError
        If a batch cannot be used; if there is none; if the checkpoint is of another classifier, or of more rows than
        there are. `nb` and the checkpoint are left as they were.

    Notes
    -----
    A row is counted once: the checkpoint holds the counts and their number of rows, and is replaced as one. What a
    killed run had counted since is counted again by the next.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import GaussianNB
    >>> from bayesnb.streaming import fit_stream
    >>> rng = np.random.default_rng(0)
    >>> batches = ((rng.normal(y[:, None], 1, (100, 2)), y) for y in rng.integers(0, 3, (5, 100)))
    >>> fit_stream(GaussianNB(), batches).class_count_.sum()
    np.float64(500.0)
    """
    require_integer("every", every)
    draft, counted = _begin(nb, checkpoint)
    skip, saved = counted, counted
    declared = [] if classes is None else list(check_labels(classes, None, type(nb).__name__, "classes")[0].values)
    with progress_bar(f"{type(nb).__name__}: rows" if progress else None, None, "rows") as tick:
        for number, batch in enumerate(batches):
            X, y, weight = _parts(batch, number)
            n = len(y)
            if skip >= n:
                skip -= n
                continue
            if skip:
                X, y, weight = (_rest(part, skip) for part in (X, y, weight))
                n, skip = n - skip, 0
            found = check_labels(y, None, type(nb).__name__)[0].values
            draft.partial_fit(X, y, classes=_labels([*declared, *found]), sample_weight=weight)
            counted += n
            tick(n)
            if checkpoint is not None and counted - saved >= every:
                saved = _save(draft, checkpoint, counted)
    if skip:
        raise ValueError(
            f"checkpoint={str(checkpoint)!r} has {counted:,} rows, and batches had {counted - skip:,}: they are "
            "not the same rows. Remove the file to begin anew."
        )
    if not counted:
        raise ValueError("batches is empty: there was no row to fit to.")
    if checkpoint is not None and counted > saved:
        _save(draft, checkpoint, counted)
    vars(draft).pop("rows_counted_", None)
    return nb._commit(draft, draft._counted)


def read_table(
    source: Any,
    target: str,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    format: str | None = None,
    types: Mapping[str, Any] | None = None,
    batch_rows: int = _BATCH,
) -> Iterator[Batch]:
    """Batches (X, y[, sample_weight]) of CSV or Parquet files of any size, for `fit_stream`.

    Parameters
    ----------
    source : path, list of paths, or folder
    target : str
        The column of labels.
    columns : list of str, optional
        Features; default: all other columns.
    weight : str, optional
        The column of replication counts.
    format : {"csv", "parquet"}, optional
        Default: as the name of the (first) file ends.
    types : dict {column: pyarrow type}, optional
        Of CSV columns. Else pyarrow takes them from the first rows, and a later value that does not fit is an error.
    batch_rows : int
        Most rows of a batch.

    Yields
    ------
    X : DataFrame
    y, sample_weight : Series

    Raises
    ------
    ValueError
        If a column is not there; if a value does not fit its column's type, or a label is missing.
    """
    try:
        import pyarrow as pa
        from pyarrow import csv, dataset
    except ImportError as error:
        raise ImportError("Tables are read by pyarrow: pip install pyarrow, or this package with [files].") from error

    require_integer("batch_rows", batch_rows)
    first = source[0] if isinstance(source, list | tuple) else source
    kind = format or Path(first).suffix.lstrip(".").lower() or "parquet"
    if kind not in ("csv", "parquet"):
        raise ValueError(f"format={kind!r} of {os.fspath(first)!r} is unknown; pass format='csv' or 'parquet'.")
    options: Any = kind
    if kind == "csv":
        options = dataset.CsvFileFormat(
            convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=True)
        )
    table = dataset.dataset(source, format=options)
    names = [name for name in table.schema.names if name not in (target, weight)] if columns is None else list(columns)
    wanted = [*names, target, *([] if weight is None else [weight])]
    absent = [name for name in wanted if name not in table.schema.names]
    if absent:
        raise ValueError(f"{os.fspath(first)!r} has no column {absent[0]!r}, only {table.schema.names[:20]}.")
    try:
        for batch in table.to_batches(columns=wanted, batch_size=batch_rows):
            if batch.num_rows:
                frame: pd.DataFrame = batch.to_pandas()
                yield (frame[names], frame[target], *([] if weight is None else [frame[weight]]))
    except pa.ArrowInvalid as error:
        raise ValueError(f"{os.fspath(first)!r}: {error} Give the column's type in types=.") from None


def read_arrays(X: Any, y: Any, sample_weight: Any = None, *, batch_rows: int = _BATCH) -> Iterator[Batch]:
    """Batches of arrays that lie on the disk, such as `numpy.memmap`, read piece by piece."""
    require_integer("batch_rows", batch_rows)
    for start in range(0, len(y), batch_rows):
        piece = slice(start, start + batch_rows)
        yield tuple(np.asarray(part[piece]) for part in (X, y, sample_weight) if part is not None)


def _begin(nb: Any, checkpoint: Any) -> tuple[Any, int]:
    """A copy to fit, and how many rows it has counted already."""
    draft = nb._blank() if hasattr(nb, "_blank") else None
    if draft is None or not hasattr(draft, "partial_fit"):
        raise TypeError(
            f"fit_stream needs partial_fit, which {type(nb).__name__} does not have before fit: give a classifier "
            "whose statistics add up, of a known structure (NetworkNB in place of TAN)."
        )
    if checkpoint is None or not Path(checkpoint).exists():
        return draft, 0
    loaded = load(checkpoint)
    if type(loaded) is not type(nb) or repr(loaded.get_params()) != repr(nb.get_params()):
        raise ValueError(f"checkpoint={os.fspath(checkpoint)!r} is of {loaded!r}, and nb is {nb!r}.")
    if not hasattr(loaded, "rows_counted_"):
        raise ValueError(f"checkpoint={os.fspath(checkpoint)!r} is a model, but none that fit_stream has written.")
    return loaded, loaded.rows_counted_


def _save(draft: Any, checkpoint: str | os.PathLike[str], rows: int) -> int:
    draft.rows_counted_ = rows
    save(draft, checkpoint)
    return rows


def _parts(batch: Any, number: int) -> tuple[Any, Any, Any]:
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise ValueError(f"batch {number} is a {type(batch).__name__}; it must be (X, y) or (X, y, sample_weight).")
    X, y, *weight = batch
    return X, y, weight[0] if weight else None


def _rest(part: Any, start: int) -> Any:
    """The rows from `start` on."""
    if part is None or sp.issparse(part) or isinstance(part, np.ndarray | list | tuple):
        return None if part is None else part[start:]
    return part.iloc[start:] if hasattr(part, "iloc") else part[start:]


def _labels(values: list[Any]) -> np.ndarray:
    """Labels of any type as an array."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


__all__ = ["fit_stream", "read_arrays", "read_table"]
