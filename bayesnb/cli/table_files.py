"""CSV and Parquet files of any size, read in batches of rows for the commands `fit`, `score` and `drift`."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bayesnb._util.warnings import require
from bayesnb.cli.csv_cells import read_header, require_columns
from bayesnb.cli.terminal import InputError

_BATCH_ROWS = 2**14
_ERRORS = (ValueError, TypeError, NotImplementedError, OSError, ImportError)
_CONVERSION = re.compile(r"column (['\"])(.*)\1: Row #(\d+): CSV conversion error .*?: invalid value '(.*)' Give", re.S)
_ADVICE = "Correct the cell, mark it with --missing, or fit with --numeric, --categorical or --drop for the column."


@dataclass(frozen=True)
class TableFile:
    """CSV file, or Parquet file or folder, whose columns have names.

    Parameters
    ----------
    path : Path
    columns : sequence of str
        Names of the columns.
    format : {"csv", "parquet"}
    missing, not_missing : sequence of str
        Marks of missing cells of a CSV file besides the usual ones, and usual ones that are values in this file.
    form : dict
        Arguments of `bayesnb.streaming.read_batches` that say how a CSV file is written.
    """

    path: Path
    columns: Sequence[str]
    format: str
    missing: Sequence[str] = ()
    not_missing: Sequence[str] = ()
    form: Mapping[str, Any] = field(default_factory=dict)

    def batches(self, columns: Sequence[str], types: Mapping[str, str], total: int | None = None) -> Iterator[Any]:
        """Yield record batches of Arrow with these columns, without blanks around the texts of a CSV file.

        A progress bar shows the number of rows.

        Parameters
        ----------
        columns : sequence of str
            Names of columns.
        types : dict
            Types of columns by name; the file determines those of all others.
        total : int or None
            Number of rows, if it is known.

        Raises
        ------
        InputError
            If the file cannot be read or has no rows, or a cell does not have the type of its column.
        """
        from bayesnb._util.terminal import progress
        from bayesnb.streaming import MISSING, read_batches

        marks = MISSING.difference(self.not_missing).union(self.missing)
        marks |= {f" {mark}" for mark in marks}
        used = {name: kind for name, kind in types.items() if name in columns}
        options: dict[str, Any] = {"batch_rows": _BATCH_ROWS, "dictionaries": False, **self.form}
        batch = None
        try:
            with progress(self.path.name, total, "rows") as advance:
                for batch in read_batches(self.path, columns, (), self.format, used, marks, **options):
                    yield _strip(batch) if self.form else batch
                    advance(batch.num_rows)
        except _ERRORS as error:
            message = str(error)
            if conversion := _CONVERSION.search(message):
                _, column, row, cell = conversion.groups()
                problem = f"{cell!r} is not of the type of the cells before, or of the type in the model"
                message = f"{self.path.name}, row {row}, column {column!r}: {problem}. {_ADVICE}"
            raise InputError(" ".join(message.split())) from None
        if batch is None:
            raise InputError(f"{self.path.name} has no rows. Add rows of data.")


def open_table(args: Namespace, named: Iterable[str], other: Path | None = None) -> TableFile:
    """Return the file of --csv or --parquet, or another file in the same format, which has the columns `named`.

    Raises
    ------
    InputError
        If there is no such file or column, the beginning of a CSV file is no table, or there are marks for a Parquet
        file.
    """
    path = other or args.csv or args.parquet
    if args.csv is not None:
        names, delimiter, decimal = read_header(path)
        form = {"names": names, "delimiter": delimiter, "decimal": decimal}
        table = TableFile(path, names, "csv", args.missing, args.not_missing, form)
    elif args.missing or args.not_missing:
        raise InputError("--missing and --not-missing need --csv: a Parquet file itself marks missing cells.")
    else:
        with blamed_on(f"{path} cannot be read"):
            os.stat(path)
            require("Reading a Parquet file", "files", "pyarrow")
            from pyarrow import dataset

            files = dataset.dataset(path, format="parquet")
            if not files.files:
                raise FileNotFoundError("the folder has no files. Pass a Parquet file, or a folder of these.")
            table = TableFile(path, files.schema.names, "parquet")
    require_columns(path, table.columns, named)
    return table


def _strip(batch: Any) -> Any:
    """Return a record batch of Arrow without blanks around its texts."""
    from pyarrow import compute, record_batch, string

    columns = [compute.utf8_trim_whitespace(c) if c.type == string() else c for c in batch.columns]
    return record_batch(columns, batch.schema)


@contextmanager
def blamed_on(place: str, errors: Any = _ERRORS) -> Iterator[None]:
    """Raise InputError that begins with the place in place of `errors` inside the block."""
    try:
        yield
    except errors as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{place}: {' '.join(reason.split())}") from None
