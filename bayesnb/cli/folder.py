"""The folder of `--out`: its files come all at once, or none does."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bayesnb._util.extras import require
from bayesnb.cli.reading import InputError
from bayesnb.cli.text import enumerate_names


def require_free(folder: Path, names: Sequence[str], overwrite: bool) -> None:
    """That files of these names can be written there, before anything is computed; nothing is made yet.

    Raises
    ------
    InputError
        If nothing can be written there; if some are there already, and are not to be overwritten; if figures
        cannot be drawn, or the posterior not be stored.
    """
    try:
        require("--out", "plots,arviz", "matplotlib", "arviz", "h5netcdf", "h5py")
    except ImportError as error:
        raise InputError(str(error)) from None
    with _complaint(folder):
        if folder.is_symlink() and not folder.exists():
            raise InputError(f"--out {folder} is a link to what is not there; choose another folder.")
        nearest = _nearest(folder)
        with tempfile.TemporaryFile(dir=nearest):
            pass
        for name in folder.absolute().relative_to(nearest).parts:  # the system refuses a name that is too long
            with suppress(FileNotFoundError):
                os.lstat(nearest / name)
    there = [name for name in names if os.path.lexists(folder / name)]
    if there and not overwrite:
        raise InputError(
            f"--out {folder} has {enumerate_names(there, 12)} already; choose another folder, or replace them by "
            "--overwrite."
        )
    folders = [name for name in there if (folder / name).is_dir()]
    if folders:
        raise InputError(f"--out {folder} has folders called {enumerate_names(folders, 12)}; choose another folder.")


@contextmanager
def filled(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """A folder to write into, whose files then take the place of those of these names in `folder`.

    After an error, or when interrupted, `folder` is as it was.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    with _complaint(folder):
        draft = Path(tempfile.mkdtemp(prefix=".bayesnb-", dir=_nearest(folder)))
        try:
            yield draft
            folder.mkdir(parents=True, exist_ok=True)
            _replace(folder, draft, names)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _replace(folder: Path, draft: Path, names: Sequence[str]) -> None:
    """Move what was written into the folder, in place of all of these names; if that fails, as it was before."""
    written = [file.name for file in draft.iterdir()]
    former = Path(tempfile.mkdtemp(dir=draft))
    try:
        for name in {*names, *written}:  # some are of an earlier run, and not of this one
            if os.path.lexists(folder / name):
                os.replace(folder / name, former / name)
        for name in written:
            os.replace(draft / name, folder / name)
    except BaseException:
        for name in written:
            if not (draft / name).exists():
                (folder / name).unlink(missing_ok=True)
        for old in former.iterdir():
            os.replace(old, folder / old.name)
        raise


@contextmanager
def _complaint(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"--out {folder}: {error.strerror or error}.") from None


def _nearest(folder: Path) -> Path:
    """The folder, or the one in which it will be made."""
    folder = folder.absolute()
    return next(path for path in (folder, *folder.parents) if path.exists())
