"""CSV and Parquet files of any size, read in batches of rows for the commands `fit`, `score` and `drift`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bayesnb._util.atomic_files import replaced, require_writable
from bayesnb._util.extras import require
from bayesnb.cli.csv_cells import InputError, read_header
from bayesnb.cli.terminal import enumerate_names

_ROWS = 2**14
_ERRORS = (ValueError, TypeError, NotImplementedError, OSError, ImportError)
_CONVERSION = re.compile(
    r"column (['\"])(.*)\1: Row #(\d+): CSV conversion error to .*?: invalid value '(.*)' Give", re.S
)


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

    @classmethod
    def from_csv(cls, path: Path, missing: Sequence[str], not_missing: Sequence[str]) -> TableFile:
        """Return a CSV file, of which the beginning is read; raise InputError if the file is no table."""
        names, delimiter, decimal = read_header(path)
        form = {"names": names, "delimiter": delimiter, "decimal": decimal}
        return cls(path, names, "csv", missing, not_missing, form)

    @classmethod
    def from_parquet(cls, path: Path) -> TableFile:
        """Return a Parquet file, or a folder of such files; raise InputError if there is none."""
        with blamed_on(f"{path} cannot be read"):
            os.stat(path)
            require("Reading a Parquet file", "files", "pyarrow")
            from pyarrow import dataset

            files = dataset.dataset(path, format="parquet")
            if not files.files:
                raise FileNotFoundError("the folder has no files. Pass a Parquet file, or a folder of these.")
            return cls(path, files.schema.names, "parquet")

    def require(self, names: Iterable[str]) -> None:
        """Raise InputError that names the columns which the file does not have."""
        if absent := [name for name in names if name not in self.columns]:
            raise InputError(
                f"{self.path.name} has no column {enumerate_names([*map(repr, absent)], 8)}. Its columns are "
                f"{enumerate_names(self.columns, 12)}. Quote a name that contains a comma: '\"width, cm\",height'."
            )

    def batches(self, columns: Sequence[str], types: Mapping[str, str]) -> Iterator[Any]:
        """Yield record batches of Arrow with these columns, without blanks around the texts of a CSV file.

        Parameters
        ----------
        columns : sequence of str
            Names of columns.
        types : dict
            Types of columns by name; the file determines those of all others.

        Raises
        ------
        InputError
            If the file cannot be read or has no rows, or a cell does not have the type of its column.
        """
        from bayesnb.streaming import MISSING, read_batches

        marks = MISSING.difference(self.not_missing).union(self.missing)
        marks |= {f" {mark}" for mark in marks}
        used = {name: of_column for name, of_column in types.items() if name in columns}
        batch = None
        try:
            batches = read_batches(
                self.path,
                columns,
                format=self.format,
                types=used,
                missing=marks,
                batch_rows=_ROWS,
                dictionaries=False,
                **self.form,
            )
            for batch in batches:
                yield _strip(batch) if self.form else batch
        except _ERRORS as error:
            message = str(error)
            if conversion := _CONVERSION.search(message):
                _, column, row, cell = conversion.groups()
                message = (
                    f"{self.path.name}, row {row}, column {column!r}: {cell!r} is not of the type of the cells before, "
                    "or of the type in the model. Correct the cell, mark it with --missing, or fit with --numeric (for "
                    "numbers), --categorical or --drop for the column."
                )
            raise InputError(" ".join(message.split())) from None
        if batch is None:
            raise InputError(f"{self.path.name} has no rows. Add rows of data.")


def _strip(batch: Any) -> Any:
    """Return a record batch of Arrow without blanks around its texts."""
    import pyarrow as pa
    from pyarrow import compute

    columns = [compute.utf8_trim_whitespace(c) if c.type == pa.string() else c for c in batch.columns]
    return pa.record_batch(columns, batch.schema)


@contextmanager
def blamed_on(place: str) -> Iterator[None]:
    """Raise InputError that begins with the place in place of errors of the input inside the block."""
    try:
        yield
    except _ERRORS as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{place}: {' '.join(reason.split())}") from None


@contextmanager
def whole_file(flag: str, path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, whose file replaces `path` at the end; raise InputError if this fails."""
    try:
        with replaced(path) as temporary:
            yield temporary
    except OSError as error:
        raise InputError(f"{flag}: {error.strerror or error}.") from None


def require_new(flag: str, path: Path, overwrite: bool, *inputs: Path | None) -> None:
    """Raise InputError if a file cannot be written, exists and may not be overwritten, or is among the `inputs`.

    `flag` names the path.
    """
    for read in inputs:
        if read is not None and path.exists() and read.exists() and path.samefile(read):
            raise InputError(f"{flag} {path} is a file that the command reads. Choose another file.")
    if os.path.lexists(path) and not overwrite:
        raise InputError(f"{flag} {path} already exists. Choose another file, or replace it with --overwrite.")
    with blamed_on(flag):
        require_writable(path)
