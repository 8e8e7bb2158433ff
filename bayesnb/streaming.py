"""Fit to more rows than memory holds: batches from any iterator, from files, with checkpoints."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import INT64, require_flag, require_integer, require_iterable, require_path
from bayesnb._util.atomic_files import require_writable
from bayesnb._util.extras import require
from bayesnb._util.progress import progress as progress_bar
from bayesnb.counting import declare
from bayesnb.encoding import Levels, check_labels
from bayesnb.estimators import drafts
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.fingerprint import FirstRows, n_rows, take
from bayesnb.fitted import require_classifier
from bayesnb.persistence import hyperparameters, load, save
from bayesnb.persistence.vocabulary import own_classes

if TYPE_CHECKING:
    import pandas as pd

#: Cells of a text file that are missing by default, as pandas takes them.
MISSING = frozenset(["", "#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "n/a", "NA", "NULL", "null", "None"]) | {
    *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN")
}
_BATCH = 65_536
_CSV_BLOCK = 2**23
_READ_AHEAD = 4
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_NO_VALUE = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?(CSV conversion error to .*)", re.DOTALL)
_ROWS_COUNTED, _FIRST_ROWS = "rows_counted_", "first_rows_"  # of a checkpoint, beside what fit stores

Batch = tuple[Any, ...]


def fit_stream(
    nb: NaiveBayesClassifier,
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
        counted again: `batches` must yield the same rows in the same order, in batches of any size. Columns and labels
        of the rows that are passed over, and the cells of the first ones, are held against the checkpoint's.
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
        If a batch cannot be used; if there is none; if the checkpoint is of another classifier, of other rows, or of
        more than there are. `nb` and the checkpoint are left as they were.
    OSError
        If the checkpoint cannot be written, at the beginning already if its folder does not let files be made; the
        last one is as it was.

    Notes
    -----
    A row is counted once: the checkpoint holds the counts and their number of rows, and is replaced as one. What a
    killed run had counted since is counted again by the next.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import GaussianNB, fit_stream
    >>> rng = np.random.default_rng(0)
    >>> batches = ((rng.normal(y[:, None], 1, (100, 2)), y) for y in rng.integers(0, 3, (5, 100)))
    >>> fit_stream(GaussianNB(), batches).class_count_.sum()
    np.float64(500.0)
    """
    require_iterable("batches", batches, "an iterable of (X, y) or (X, y, sample_weight)")
    require_integer("every", every, most=INT64)
    require_flag("progress", progress)
    declared = Levels(()) if classes is None else check_labels(classes, None, type(nb).__name__, "classes")[0]
    if checkpoint is not None:
        require_path("checkpoint", checkpoint)
        require_writable(checkpoint)
    draft, counted = _begin(nb, checkpoint)
    skip, saved, first_rows = counted, counted, FirstRows(checkpoint, getattr(draft, _FIRST_ROWS, ()))
    with progress_bar(f"{type(nb).__name__}: rows" if progress else None, None, "rows") as tick:
        for number, batch in enumerate(batches):
            X, y, weight = batch_parts(batch, number)
            n, passed_over = n_rows(y), skip > 0
            if passed_over:
                _require_known(draft, X, take(y, slice(skip)), f"{first_rows.other}: batch {number}")
                first_rows.compare(X, y, weight)
            if skip >= n:
                skip -= n
                continue
            if skip:
                X, y, weight = (take(part, slice(skip, None)) for part in (X, y, weight))
                n, skip = n - skip, 0
            if weight is None or np.any(weight):
                drafts.count_on(draft, X, y, weight, declared)
            else:  # such rows leave their classes, as in `fit`
                declared = declared.union(check_labels(y, n, type(nb).__name__)[0])
            if not passed_over:
                first_rows.compare(X, y, weight)
            counted += n
            tick(n)
            if checkpoint is not None and counted - saved >= every and drafts.is_fitted(draft):
                saved = _save(draft, declared, checkpoint, counted, first_rows.digests)
    if skip:
        raise ValueError(
            f"checkpoint={str(checkpoint)!r} has {counted:,} rows, and batches had {counted - skip:,}: they are "
            "not the same rows. Remove the file to begin anew."
        )
    if not counted:
        raise ValueError("batches is empty: there was no row to fit to.")
    if not drafts.is_fitted(draft):
        raise ValueError("sample_weight is zero for every row; at least one row must count.")
    if checkpoint is not None and counted > saved:
        _save(draft, declared, checkpoint, counted, first_rows.digests)
    for name in (_ROWS_COUNTED, _FIRST_ROWS):
        vars(draft).pop(name, None)
    return drafts.take_over(nb, draft.with_counts(declare(draft.fitted_.counted, declared)))


def read_table(
    source: Any,
    target: str,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    format: str | None = None,
    types: Mapping[str, Any] | None = None,
    missing: Iterable[str] = MISSING,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    batch_rows: int = _BATCH,
    dictionaries: bool = True,
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
        Default: as the name of the (first) file ends. A CSV file whose name ends in .gz is unpacked on the way.
    types : dict {column: pyarrow type}, optional
        Of CSV columns. Else pyarrow takes them from the first rows, and a later value that does not fit is an error.
    missing : iterable of str
        Cells of a CSV file that are missing; default: those that pandas takes for missing, such as "", "NA" and "nan".
    names : list of str, optional
        What the columns of a CSV file are called, in place of its first line.
    delimiter : str
        What stands between the cells of a CSV file.
    batch_rows : int
        Most rows of a batch.
    dictionaries : bool
        Leave features of text in the dictionary by which a Parquet file stores them, in pandas' ArrowDtype: they are
        counted by their codes, several times as fast. False: as text, for functions such as `Series.str`.

    Yields
    ------
    X : DataFrame
    y, sample_weight : Series

    Raises
    ------
    ImportError
        Without pyarrow: it is an extra, `pip install 'bayesnb[files]'`.
    ValueError
        If a column is not there, or not in every file; if a value does not fit its column's type, or a label is
        missing; if a row has more or fewer cells than the first. Rows of a file are counted from that of the names: 1.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayesnb import CategoricalNB, fit_stream
    >>> from bayesnb.streaming import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "melons.csv"
    ...     _ = path.write_text("\\n".join(["colour,ripe", "green,no", "red,yes", ",yes"]))
    ...     nb = fit_stream(CategoricalNB(), read_table(path, "ripe"), classes=["no", "yes"])
    >>> nb.class_count_, nb.category_count_[0]  # the last row has no colour
    (array([1., 2.]), array([[1., 0.],
           [0., 1.]]))
    """
    require("Reading a CSV or Parquet file", "files", "pyarrow")
    import pyarrow as pa
    from pyarrow import csv, dataset

    require_integer("batch_rows", batch_rows, most=INT64)
    first = source[0] if isinstance(source, list | tuple) else source
    kind = format or Path(os.fspath(first).lower().removesuffix(".gz")).suffix.lstrip(".") or "parquet"
    if kind not in ("csv", "parquet"):
        raise ValueError(f"format={kind!r} of {os.fspath(first)!r} is unknown; pass format='csv' or 'parquet'.")
    options: Any = kind
    if kind == "csv":
        options = dataset.CsvFileFormat(
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types, null_values=sorted(missing), strings_can_be_null=True
            ),
            read_options=csv.ReadOptions(
                block_size=_CSV_BLOCK, column_names=names, skip_rows_after_names=int(names is not None)
            ),
        )
    try:
        table = dataset.dataset(source, format=options)
        names = table.schema.names
        chosen = [name for name in names if name not in (target, weight)] if columns is None else list(columns)
        wanted = [*chosen, target, *([] if weight is None else [weight])]
        _require_columns(table, wanted, columns is None, os.fspath(first))
        if dictionaries and kind == "parquet":
            texts = (pa.string(), pa.large_string())
            of_text = [name for name in chosen if table.schema.field(name).type in texts]
            table = dataset.dataset(source, format=dataset.ParquetFileFormat(dictionary_columns=of_text))
        for batch in table.to_batches(columns=wanted, batch_size=batch_rows, batch_readahead=_READ_AHEAD):
            if batch.num_rows:
                # Columns share arrow's memory; DataFrame[chosen] would copy them.
                frame: pd.DataFrame = batch.select(chosen).to_pandas(split_blocks=True, types_mapper=_undecoded)
                for name in chosen:
                    cells = batch.column(name)
                    if cells.null_count and pa.types.is_integer(cells.type):
                        frame[name] = cells.to_pandas(types_mapper=_nullable)
                yield (frame, *(batch.column(name).to_pandas() for name in wanted[len(chosen) :]))
    except pa.ArrowInvalid as error:
        others = " or a file after it" if first is not source and len(source) > 1 else ""
        raise ValueError(f"{os.fspath(first)!r}{others}{_refusal(str(error), names)}") from None


def _refusal(error: str, names: Sequence[str] | None) -> str:
    """What arrow says of a file, after its name: the row, the column and why."""
    if ragged := _RAGGED.search(error):
        row, expected, found = ragged.groups()
        return f", row {row}: {found} cells, but the first line has {expected}."
    if not (no_value := _NO_VALUE.search(error)):
        return f": {error}"
    column, row, why = no_value.groups()
    where = f", row {row}" * bool(row) + f", column {repr(names[int(column)]) if names else int(column) + 1}"
    if "UTF8" in why:
        return f"{where}: the file is not in UTF-8; convert it first."
    return f"{where}: {why} Give the column's type in types=."


def _require_columns(table: Any, wanted: list[str], all_of_them: bool, source: str) -> None:
    """Refuse columns that a file does not have, or that could not be decoded, or that are asked for twice."""
    named = set(table.schema.names)
    absent = [name for name in wanted if name not in named]
    if absent:
        raise ValueError(f"{source!r} has no column {absent[0]!r}, only {table.schema.names[:20]}.")
    twice = next((name for name, times in Counter(wanted).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"column {twice!r} is asked for twice: features, target and weight are {wanted!r}.")
    if type(table.format).__name__ == "CsvFileFormat":
        undecoded = [name for name in wanted if str(table.schema.field(name).type) == "binary"]
        if undecoded:
            raise ValueError(f"{source!r}, column {undecoded[0]!r}: the file is not in UTF-8; convert it first.")
    if len(table.files) == 1:
        return
    for part in table.get_fragments():
        there = part.physical_schema.names
        absent = sorted(set(wanted) - set(there), key=wanted.index)
        more = [name for name in there if name not in named] if all_of_them else []
        if absent:
            raise ValueError(f"{part.path!r} has no column {absent[0]!r}, which the first file has.")
        if more:
            raise ValueError(f"{part.path!r} has a column {more[0]!r}, and the first file has not: pass columns=.")


def _undecoded(kind: Any) -> Any:
    """The type in which pandas leaves an arrow dictionary as it is."""
    import pandas as pd

    return pd.ArrowDtype(kind) if hasattr(kind, "index_type") else None


def _nullable(kind: Any) -> Any:
    """The type in which pandas keeps integers beside missing cells integers."""
    import pandas as pd

    return pd.api.types.pandas_dtype(str(kind).replace("int", "Int").replace("u", "U"))


def read_arrays(X: Any, y: Any, sample_weight: Any = None, *, batch_rows: int = _BATCH) -> Iterator[Batch]:
    """Batches of arrays that lie on the disk, such as `numpy.memmap`, read piece by piece.

    Raises
    ------
    ValueError
        If they have not as many rows.
    """
    require_integer("batch_rows", batch_rows, most=INT64)
    arrays = {"X": X, "y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
    rows = {name: n_rows(part) for name, part in arrays.items()}
    if len(set(rows.values())) > 1:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {rows}.")
    for start in range(0, rows["y"], batch_rows):
        piece = slice(start, start + batch_rows)
        yield tuple(part.iloc[piece] if hasattr(part, "iloc") else part[piece] for part in arrays.values())


def blank(nb: NaiveBayesClassifier, who: str) -> NaiveBayesClassifier:
    """A copy of a classifier without what was fitted.

    Raises
    ------
    TypeError
        If its statistics do not add up.
    """
    require_classifier(nb, who)
    draft = drafts.blank(nb)
    if not hasattr(draft, "partial_fit"):
        raise TypeError(
            f"{who} needs partial_fit, which {type(nb).__name__} does not have before fit: give a classifier "
            "whose statistics add up, of a known structure (NetworkNB in place of TAN)."
        )
    return draft


def _begin(nb: NaiveBayesClassifier, checkpoint: Any) -> tuple[Any, int]:
    """A copy to fit, and how many rows it has counted already."""
    draft = blank(nb, "fit_stream")
    if checkpoint is None or not Path(checkpoint).exists():
        return draft, 0
    loaded = load(checkpoint, own_classes(nb))
    if type(loaded) is not type(nb) or hyperparameters(loaded) != hyperparameters(nb):
        raise ValueError(f"checkpoint={os.fspath(checkpoint)!r} is of {loaded!r}, and nb is {nb!r}.")
    if not hasattr(loaded, _ROWS_COUNTED):
        raise ValueError(f"checkpoint={os.fspath(checkpoint)!r} is a model, but none that fit_stream has written.")
    return loaded, loaded.rows_counted_


def _save(
    draft: Any, declared: Levels, checkpoint: str | os.PathLike[str], rows: int, first_rows: Sequence[str]
) -> int:
    drafts.take_over(draft, draft.with_counts(declare(draft.fitted_.counted, declared)))
    draft.rows_counted_, draft.first_rows_ = rows, tuple(first_rows)
    save(draft, checkpoint)
    return rows


def _require_known(draft: Any, X: Any, y: Any, where: str) -> None:
    """Refuse rows that the checkpoint cannot have counted: of other columns, or with labels that it does not have."""
    try:
        draft.fitted_.table(X)
        found, _ = check_labels(y, None, type(draft).__name__)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    known = draft.encoding_.classes
    new = [label for label, at in zip(found.values, known.index(found.values), strict=True) if at < 0]
    if new:
        raise ValueError(f"{where} has the label {new[0]!r}, and the checkpoint's are {list(known.values)[:12]}.")


def batch_parts(batch: Any, number: int) -> tuple[Any, Any, Any]:
    """X, y and weights of a batch, None for no weights."""
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise ValueError(f"batch {number} is a {type(batch).__name__}; it must be (X, y) or (X, y, sample_weight).")
    X, y, *weight = batch
    for name, part in (("X", X), ("y", y)):
        if not (getattr(part, "shape", None) or hasattr(part, "__len__")):
            raise ValueError(f"batch {number}: {name} is a {type(part).__name__}, and must be an array or a list.")
    if n_rows(X) != n_rows(y):
        raise ValueError(f"batch {number} has {n_rows(X):,} rows in X and {n_rows(y):,} labels in y.")
    return X, y, weight[0] if weight else None


__all__ = ["MISSING", "batch_parts", "blank", "fit_stream", "read_arrays", "read_table"]
