"""Folder of `--out`: names of its files, and their replacement when all of them are written."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bayesnb.cli.document import SUFFIXES
from bayesnb.cli.terminal import InputError, enumerate_names

BUILT_IN = ("breast_cancer", "watermelon")
"""Names of the data sets that are analysed without a file."""
_ANALYSES = ("comparison", "reliability", "weights", "prior", "parameters", "sensitivity", "rows", "pairs")
"""Analyses that may have files: a table, a figure, or both."""


def file_names(data_sets: Iterable[str]) -> list[str]:
    """List the names of all files that a run on these data sets may write."""
    reports = [f"report{suffix}" for suffix in reversed(SUFFIXES.values())]
    parts = [("posterior", "nc"), *((name, suffix) for name in _ANALYSES for suffix in ("csv", "png"))]
    return [*reports, *(f"{file_stem(title, name)}.{suffix}" for title in data_sets for name, suffix in parts)]


def file_stem(data_set: str, analysis: str) -> str:
    """Return the name of an analysis's files without suffix, "<data set>-<analysis>", with safe characters.

    Each run of characters in the data set's name that are not letters, digits, `_`, `.` or `-` becomes one `_`; an
    empty name becomes "table".
    """
    stem = re.sub(r"[^\w.-]+", "_", data_set) or "table"
    return f"{stem}-{analysis}"


def require_free(folder: Path, names: Sequence[str], overwrite: bool) -> None:
    """Raise InputError if the folder has files of these names that may not be replaced, or folders of these names."""
    present = [folder / name for name in names if os.path.lexists(folder / name)]
    kept = [path.name for path in present if not overwrite or path.is_dir()]
    if kept:
        advice = "; --overwrite does not replace folders" if overwrite else ", or replace the files with --overwrite"
        raise InputError(f"--out {folder} already has {enumerate_names(kept, 12)}. Choose another folder{advice}.")


@contextmanager
def filled(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield a temporary folder to write into; at the end its files replace those of these names in `folder`.

    After an error, or an interrupt, `folder` is as it was.

    Raises
    ------
    InputError
        At the beginning, if the folder cannot be written; at the end, if a file could not be written.
    """
    try:
        new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".bayesnb-", dir=folder) as temporary:
                yield Path(temporary)
                for name in names:  # An earlier run may have written files that this run has not.
                    (folder / name).unlink(missing_ok=True)
                for path in Path(temporary).iterdir():
                    path.replace(folder / path.name)
        finally:
            with suppress(OSError):  # The folder has files: everything went well.
                for path in new_folders:
                    path.rmdir()
    except OSError as error:
        raise InputError(f"--out {folder} cannot be written: {error.strerror or error}.") from None
