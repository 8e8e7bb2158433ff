"""Fit to more rows than memory holds: batches of any iterator or of files, with checkpoints."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from numbers import Number
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from bayesnb._util.arguments import INT64, ZERO_WEIGHTS, require_flag, require_integer, require_iterable, require_path
from bayesnb._util.arrays import take_rows as take_rows_of_table
from bayesnb._util.arrays import to_pandas
from bayesnb._util.atomic_files import require_writable
from bayesnb._util.table_files import MISSING, read_batches
from bayesnb._util.terminal import progress as progress_bar
from bayesnb.encoding import Levels, check_labels, to_table
from bayesnb.encoding.levels import to_python
from bayesnb.estimators import classifier_state
from bayesnb.estimators.predictions import FittedClassifier
from bayesnb.fitted.counting import Counted, declare, merge
from bayesnb.fitted.state import require_classifier
from bayesnb.persistence import digest_hyperparameters, load, save, user_classes

# == Digests of the first rows of a stream, by which a checkpoint recognises the stream ============

_MOST_CELLS = 2**14


class FirstRows:
    """Digests of the first rows of a stream, some 16,000 cells, whose batches may have any size.

    Parameters
    ----------
    checkpoint : path or None
        File that error messages name. None: the stream has no checkpoint, and no digests are computed.
    known : sequence of str
        Digests in the checkpoint.

    Attributes
    ----------
    digests : list of str
        Digests in the checkpoint, and then those of the rows that followed.
    seen : int
        Number of rows of this stream that were compared or added.
    """

    def __init__(self, checkpoint: str | os.PathLike[str] | None, known: Sequence[str]) -> None:
        self.checkpoint = checkpoint
        self.digests = list(known)
        self.seen = 0

    @property
    def mismatch(self) -> str:
        """Beginning of an error message about rows that are not those of the checkpoint."""
        same = "pass the same rows in the same order, or remove the file to start again"
        return f"checkpoint={os.fspath(self.checkpoint or '')!r} has counted other rows ({same})"

    def compare(self, X: Any, y: object, weight: object) -> None:
        """Compare the next rows of the stream with the digests; add rows that have none.

        Raises
        ------
        ValueError
            If a row differs from that of the checkpoint at the same position; the message names the first one.
        """
        if self.checkpoint is None or not n_rows(y):
            return
        width = X.shape[-1] if hasattr(X, "shape") else len(X[0])
        rest = max(1, _MOST_CELLS // max(1, width)) - self.seen
        if rest <= 0:
            return
        for digest in _digest_rows(*(take_rows(part, slice(rest)) for part in (X, y, weight))):
            if self.seen == len(self.digests):
                self.digests.append(digest)
            elif digest != self.digests[self.seen]:
                raise ValueError(f"{self.mismatch}: row {self.seen} of batches differs in cells, label or weight.")
            self.seen += 1


def _digest_rows(X: object, y: object, weight: object) -> Iterator[str]:
    """Yield a digest of the label, weight and non-zero cells of each row; types of X and numbers do not matter."""
    classes, label = check_labels(y, None, "fit_stream")
    weights = np.broadcast_to(np.asarray(1.0 if weight is None else weight, dtype=np.float64), len(label))
    for cells, code, times in zip(_rows_of_cells(X), label, weights, strict=True):
        row = [classes.values[code], times, *(part for cell in cells for part in cell)]
        yield hashlib.sha256("\n".join(map(_canonical, row)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _rows_of_cells(X: object) -> Iterator[Iterable[tuple[int, object]]]:
    """Yield for each row the pairs (column, value) of the cells that are not zero."""
    if sp.issparse(X):
        matrix = sp.csr_array(X, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        for start, stop in zip(matrix.indptr, matrix.indptr[1:], strict=False):
            cells = zip(matrix.indices[start:stop], matrix.data[start:stop], strict=True)
            yield [(j, v) for j, v in cells if v != 0]
        return
    table = to_table(X, "fit_stream")
    columns = [np.asarray(table.column(j), dtype=object).tolist() for j in range(len(table.names))]
    for row in zip(*columns, strict=True):
        yield [(j, v) for j, v in enumerate(row) if not (isinstance(v, int | float) and v == 0)]


def _canonical(value: object) -> str:
    """Return the text of a value, the same for equal numbers of any type; "missing" for None, NaN and pd.NA."""
    value = to_python(value)
    if value is None or type(value).__name__ == "NAType" or value != value:
        return "missing"
    if isinstance(value, int | float):
        return repr(int(value)) if isinstance(value, int) or value.is_integer() else repr(value)
    return f"{type(value).__name__} {value}"


def take_rows(part: object, rows: slice) -> Any:
    """Return the rows in a slice of X, y or weights; None and a number (weight of every row) stay as they are."""
    return part if part is None or isinstance(part, Number) else take_rows_of_table(part, rows)


def n_rows(part: Any) -> int:
    """Return the number of rows of X or y."""
    return int(part.shape[0]) if getattr(part, "shape", None) else len(part)


# == Fit to more rows than memory holds: batches of any iterator or of files, with checkpoints =====

_BATCH = 65_536
_ROWS_COUNTED, _FIRST_ROWS = "rows_counted_", "first_rows_"  # Checkpoints have these two attributes, models do not.

Batch = tuple[object, ...]
NB = TypeVar("NB", bound=FittedClassifier)


def fit_stream(
    nb: NB,
    batches: Iterable[Batch],
    classes: object = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
    *,
    every: int = 1_000_000,
) -> NB:
    """Fit a classifier to batches of rows, in one pass and constant memory.

    Parameters
    ----------
    nb : classifier of bayesnb with `partial_fit`
        Classifier to fit. An earlier fit is discarded.
    batches : iterable of (X, y) or (X, y, sample_weight)
        Rows. The next batch is requested after the last one was counted, so that the iterable may reuse its buffers.
    classes : array-like, optional
        Labels that belong to the model whether or not they occur. Labels in the data are added.
    checkpoint : path, optional
        File that is written after every `every` rows, and at the end. If the file exists at the beginning, fitting
        continues after the rows that the file has counted: `batches` must yield the same rows in the same order, in
        batches of any size. Columns and labels of all skipped rows, and cells of the first ones, are compared with the
        checkpoint.
    progress : bool
        Whether to show the number of rows that were counted.
    every : int
        Number of rows between two checkpoints.

    Returns
    -------
    nb
        The argument, fitted. The posterior equals that of `fit` on all rows at once, also if levels and classes
        appeared late.

    Raises
    ------
    TypeError
        If `nb` has no `partial_fit`: its statistics do not add up, or a structure would have to be known first.
    ValueError
        If a batch cannot be used; if there is no batch; if the checkpoint belongs to another classifier or to other
        rows, or has counted more rows than `batches` yields. `nb` and the checkpoint stay as they were.
    OSError
        If the checkpoint cannot be written; a folder in which no file can be made is refused at the beginning. The last
        checkpoint stays as it was.

    Notes
    -----
    Every row is counted once: the checkpoint has the counts and the number of rows, and is replaced as a whole. The
    next run counts the rows again that an interrupted run had counted after its last checkpoint.

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
    draft, counted = _start_or_resume(nb, checkpoint)
    skip, saved, first_rows = counted, counted, FirstRows(checkpoint, getattr(draft, _FIRST_ROWS, ()))
    with progress_bar(f"{type(nb).__name__}: rows" if progress else None, None, "rows") as tick:
        for number, batch in enumerate(batches):
            X, y, weight = split_batch(batch, number)
            n, is_counted = n_rows(y), skip > 0
            if is_counted:
                _require_known(draft, X, take_rows(y, slice(skip)), f"{first_rows.mismatch}: batch {number}")
                first_rows.compare(X, y, weight)
            if skip >= n:
                skip -= n
                continue
            if skip:
                X, y, weight = (take_rows(part, slice(skip, None)) for part in (X, y, weight))
                n, skip = n - skip, 0
            labels, _ = check_labels(y, n, type(nb).__name__)
            if weight is None or np.any(weight):
                draft.partial_fit(X, y, Levels.from_values([*declared.values, *labels.values]).array(), weight)
            else:  # Rows of weight zero leave their classes, as in `fit`.
                declared = declared.union(labels)
            if not is_counted:
                first_rows.compare(X, y, weight)
            counted += n
            tick(n)
            if checkpoint is not None and counted - saved >= every and classifier_state.is_fitted(draft):
                saved = _save_checkpoint(draft, declared, checkpoint, counted, first_rows.digests)
    if skip:
        ended = f"has counted {counted:,} rows, but batches ended after {counted - skip:,}"
        raise ValueError(f"checkpoint={str(checkpoint)!r} {ended}. Pass the same rows, or remove the file.")
    if not counted:
        raise ValueError("batches has no rows. Pass at least one row.")
    if not classifier_state.is_fitted(draft):
        raise ValueError(ZERO_WEIGHTS)
    if checkpoint is not None and counted > saved:
        _save_checkpoint(draft, declared, checkpoint, counted, first_rows.digests)
    for name in (_ROWS_COUNTED, _FIRST_ROWS):
        vars(draft).pop(name, None)
    return classifier_state.replace_state(nb, draft.with_counts(declare(draft.fitted_.counted, declared)))


def read_table(
    source: object,
    target: str | None,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    format: str | None = None,
    types: Mapping[str, object] | None = None,
    missing: Iterable[str] = MISSING,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    decimal: str = ".",
    batch_rows: int = _BATCH,
    dictionaries: bool = True,
) -> Iterator[Batch]:
    r"""Yield batches (X, y[, sample_weight]) of CSV or Parquet files of any size, for `fit_stream`.

    Parameters
    ----------
    source : path, list of paths, or folder
        Files to read.
    target : str or None
        Name of the column of labels. None: there are no labels, and batches for predictions are (X,).
    columns : list of str, optional
        Names of the features; default: all other columns.
    weight : str, optional
        Name of the column of replication counts.
    format : {"csv", "parquet"}, optional
        Format of the files; default: the ending of the name of the (first) file. A CSV file whose name ends in .gz is
        decompressed while it is read.
    types : dict {column: pyarrow type}, optional
        Types to which columns are converted. Other columns of a Parquet file keep their type. pyarrow infers the type
        of other columns of a CSV file from the first rows, and a later value of another type is an error.
    missing : iterable of str
        Cells of a CSV file that are missing; default: the strings that pandas reads as missing, such as "", "NA" and
        "nan".
    names : list of str, optional
        Names of the columns of a CSV file, in place of its first line.
    delimiter : str
        Character between the cells of a CSV file.
    decimal : str
        Character before the decimals of the numbers of a CSV file.
    batch_rows : int
        Greatest number of rows of a batch.
    dictionaries : bool
        Whether features of text stay dictionary-encoded, as a Parquet file stores them, in pandas' ArrowDtype: codes
        are counted several times as fast as text. False: columns of text, for functions such as `Series.str`.

    Yields
    ------
    X : DataFrame
    y, sample_weight : Series

    Raises
    ------
    ValueError
        If a column is missing in a file; if a value does not fit the type of the column, or a label is missing; if a
        row has more or fewer cells than the first. Messages count the rows of a file from 1; row 1 is the line of the
        names.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayesnb import CategoricalNB, fit_stream
    >>> from bayesnb.streaming import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "melons.csv"
    ...     _ = path.write_text("\n".join(["colour,ripe", "green,no", "red,yes", ",yes"]))
    ...     nb = fit_stream(CategoricalNB(), read_table(path, "ripe"), classes=["no", "yes"])
    >>> nb.class_count_, nb.category_count_[0]  # the last row has no colour
    (array([1., 2.]), array([[1., 0.],
           [0., 1.]]))
    """
    require_integer("batch_rows", batch_rows, most=INT64)
    others = [name for name in (target, weight) if name is not None]
    for batch in read_batches(
        source, columns, others, format, types, missing, names, delimiter, decimal, batch_rows, dictionaries
    ):
        # Columns share arrow's memory; DataFrame[chosen] would copy them.
        frame = to_pandas(batch.select(batch.column_names[: batch.num_columns - len(others)]), "source")
        yield (frame, *(batch.column(name).to_pandas() for name in others))


def read_arrays(X: object, y: object, sample_weight: object = None, *, batch_rows: int = _BATCH) -> Iterator[Batch]:
    """Yield batches of arrays on the disk, such as `numpy.memmap`, for `fit_stream`.

    Parameters
    ----------
    X : (N, F) array or DataFrame
        Features of all rows.
    y : (N,) array or Series
        Labels of all rows.
    sample_weight : (N,) array or Series, optional
        Replication counts of all rows.
    batch_rows : int
        Greatest number of rows of a batch.

    Yields
    ------
    X, y[, sample_weight]
        Consecutive rows.

    Raises
    ------
    ValueError
        If the arrays differ in the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb.streaming import read_arrays
    >>> [len(y) for X, y in read_arrays(np.zeros((5, 2)), np.zeros(5), batch_rows=2)]
    [2, 2, 1]
    """
    require_integer("batch_rows", batch_rows, most=INT64)
    arrays: dict[str, object] = {"X": X, "y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
    rows = {name: n_rows(part) for name, part in arrays.items()}
    if len(set(rows.values())) > 1:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {rows}.")
    for start in range(0, rows["y"], batch_rows):
        piece = slice(start, start + batch_rows)
        yield tuple(take_rows(part, piece) for part in arrays.values())


def unfitted_copy(nb: NB, who: str) -> NB:
    """Return a copy of a classifier without fitted attributes.

    Parameters
    ----------
    nb : classifier of bayesnb
        Classifier to copy.
    who : str
        Name of the calling function, for error messages.

    Raises
    ------
    TypeError
        If statistics of several batches cannot be added, as the classifier has no `partial_fit`.
    """
    require_classifier(nb, who)
    draft = classifier_state.copy_unfitted(nb)
    if not hasattr(draft, "partial_fit"):
        raise TypeError(
            f"{who} needs partial_fit, which an unfitted {type(nb).__name__} does not have. Pass a classifier that "
            "counts batches one by one, such as NetworkNB with a known structure."
        )
    return draft


def _start_or_resume(nb: FittedClassifier, checkpoint: str | os.PathLike[str] | None) -> tuple[Any, int]:
    """Return (copy to fit, number of rows that it has counted): an unfitted copy, or the checkpoint if there is one."""
    draft = unfitted_copy(nb, "fit_stream")
    if checkpoint is None or not Path(checkpoint).exists():
        return draft, 0
    name = f"checkpoint={os.fspath(checkpoint)!r}"
    loaded: object = load(checkpoint, user_classes(nb))
    if type(loaded) is not type(nb) or digest_hyperparameters(loaded) != digest_hyperparameters(nb):
        raise ValueError(f"{name} holds {loaded!r}, and nb is {nb!r}. Pass the same nb, or another path.")
    if not hasattr(loaded, _ROWS_COUNTED):
        raise ValueError(f"{name} holds a model that fit_stream did not write. Pass another path.")
    return loaded, getattr(loaded, _ROWS_COUNTED)


def _save_checkpoint(
    draft: Any, declared: Levels, checkpoint: str | os.PathLike[str], rows: int, first_rows: Sequence[str]
) -> int:
    """Write a checkpoint of `draft`, to which the other arguments are added as attributes; return `rows`."""
    classifier_state.replace_state(draft, draft.with_counts(declare(draft.fitted_.counted, declared)))
    draft.rows_counted_, draft.first_rows_ = rows, tuple(first_rows)
    save(draft, checkpoint)
    return rows


def _require_known(draft: FittedClassifier, X: object, y: object, where: str) -> None:
    """Raise ValueError if rows have other columns than `draft`, or labels that it has not counted."""
    try:
        draft.fitted_.table(X)
        labels, _ = check_labels(y, None, type(draft).__name__)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    known = draft.encoding_.classes
    new = [label for label, code in zip(labels.values, known.index(labels.values), strict=True) if code < 0]
    if new:
        labels_known = f"which is none of the checkpoint, {list(known.values)[:12]}"
        raise ValueError(
            f"{where} has the label {new[0]!r}, {labels_known}. Correct it, or start without the checkpoint."
        )


def split_batch(batch: object, number: int) -> tuple[object, object, Any]:
    """Return (X, y, weights) of a batch, None for no weights; raise ValueError if it is not (X, y[, sample_weight])."""
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise ValueError(f"batch {number} is a {type(batch).__name__}; it must be (X, y) or (X, y, sample_weight).")
    X, y, *weight = map(to_pandas, batch, ("X", "y", "sample_weight"))
    for name, part in (("X", X), ("y", y)):
        if not (getattr(part, "shape", None) or hasattr(part, "__len__")):
            raise ValueError(f"batch {number}: {name} is a {type(part).__name__}; it must be an array or a list.")
    if n_rows(X) != n_rows(y):
        raise ValueError(f"batch {number} has {n_rows(X):,} rows in X and {n_rows(y):,} labels in y.")
    return X, y, weight[0] if weight else None


# == Counts of blocks of batches, which workers make and a fit merges ===============================


class BlockCounts(NamedTuple):
    """Classes and counts of some blocks.

    `classes` includes the classes of rows without weight; `counted` is None if no row was counted. `model` is a
    classifier without counts that has the columns of the counted rows. `weighted` is the number of the first block that
    has weight.
    """

    classes: Levels
    model: Any = None
    counted: Counted | None = None
    weighted: int | None = None


def count_block(model: Any, batches: Iterable[object], number: int, decides: bool) -> BlockCounts:
    """Return the counts of block `number` with the columns of `model`.

    If `model` is unfitted, the first rows with weight decide the columns, provided that the block `decides`.
    """
    total = BlockCounts(Levels(()))
    try:
        for i, batch in enumerate(batches):
            X, y, weight = split_batch(batch, i)
            if not (n := n_rows(X)):
                continue
            if weight is not None and np.shape(weight) in ((), (n,)) and not np.any(weight):
                counts = BlockCounts(check_labels(y, n, type(model).__name__)[0])
            elif decides or classifier_state.is_fitted(model):
                model = model if classifier_state.is_fitted(model) else classifier_state.unfitted_model(model, X)
                counted = classifier_state.count_batch(model, X, y, weight)
                if not classifier_state.is_fitted(model):
                    # The classifier knows its columns, and has no counts.
                    model.fitted_ = SimpleNamespace(encoding=counted.encoding, cells=counted.cells)
                counts = BlockCounts(counted.encoding.classes, model, counted, number)
            else:
                counts = BlockCounts(Levels(()), weighted=number)
            total = merge_all([total, counts])
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Block {number}: {error}") from error
    return total


def choose_model(counts: BlockCounts, draft: object) -> Any:
    """Return the classifier with the columns of counted rows, or `draft` if no row was counted."""
    return draft if counts.model is None else counts.model


def merge_all(counts: list[BlockCounts]) -> BlockCounts:
    """Merge the counts of some blocks, in their order, with the columns of the first one that has any."""
    counted = [block.counted for block in counts if block.counted is not None]
    model = next((block.model for block in counts if block.model is not None), None)
    weighted = min((block.weighted for block in counts if block.weighted is not None), default=None)
    classes = reduce(Levels.union, (block.classes for block in counts))
    return BlockCounts(classes, model, reduce(merge, counted) if counted else None, weighted)


__all__ = ["MISSING", "fit_stream", "read_arrays", "read_table", "split_batch", "unfitted_copy"]
