"""Files that are written as a whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_SUFFIX = ".bayesnb.tmp"


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a temporary file beside the old one, and rename it to `path` once it is on the disk.

    Temporary files of earlier writers of the same file that were killed are removed.

    Raises
    ------
    OSError
        If the file cannot be written, or `path` is no regular file; the old file is unchanged.
    """
    path = Path(path)
    temporary = None
    try:
        _require_regular(path)
        with _locked_folder(path) as prefix:
            old = path.stat().st_mode if path.exists() else None
            # A new file has the usual mode, which the system masks. A file that replaces another one is private until
            # it has the mode of that file.
            mode = 0o666 if old is None else 0o600
            new_path = path.parent / f"{prefix}{secrets.token_hex(4)}{_SUFFIX}"
            with open(new_path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
                temporary = new_path
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            if old is not None:
                os.chmod(temporary, old)
            os.replace(temporary, path)
        _sync(path.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(error.errno, f"{path} was not written, and is as it was before: {reason}") from None
    finally:
        if temporary is not None:
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError unless a file can be written at `path`, before much work is done for it.

    Raises
    ------
    OSError
        If the folder does not exist or is not writable; if `path` is no regular file.
    """
    path = Path(path)
    try:
        _require_regular(path)
        with (
            _locked_folder(path) as prefix,
            tempfile.NamedTemporaryFile(prefix=prefix, suffix=_SUFFIX, dir=path.parent),
        ):
            pass
    except OSError as error:
        raise type(error)(error.errno, f"{path} cannot be written: {error.strerror or error}") from None


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading: no pipe, socket or device, whose content may not end.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If `path` is no regular file.
    """
    # Without O_NONBLOCK opening a pipe waits for a writer.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError("it is no regular file, but a pipe, socket or device.")
    return file


def _require_regular(path: Path) -> None:
    """Raise OSError if `path` is a link, pipe, device or folder, which a file must not replace."""
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.EINVAL, "it is a symbolic link; name the file that it points to")
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no regular file")


@contextmanager
def _locked_folder(path: Path) -> Iterator[str]:
    """Yield the prefix of temporary files of `path`, which no other process removes while the lock is held.

    Writers share a lock of the folder, which ends with their process. A writer that gets the lock exclusively removes
    abandoned temporary files, as all their writers have ended. Without locks of folders such files stay.
    """
    prefix = f".{path.name}."
    with _open_folder(path.parent) as folder:
        with suppress(ImportError, OSError):
            import fcntl

            if folder is not None:
                with suppress(OSError):
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove_abandoned(path.parent, prefix)
                fcntl.flock(folder, fcntl.LOCK_SH)
        yield prefix


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove temporary files with this prefix."""
    pattern = re.compile(rf"{re.escape(prefix)}[a-z0-9_]{{8}}{re.escape(_SUFFIX)}")
    for name in filter(pattern.fullmatch, os.listdir(folder)):
        os.unlink(folder / name)


@contextmanager
def _open_folder(path: Path) -> Iterator[int | None]:
    """Yield the file descriptor of a folder; None if the system cannot open folders."""
    handle = None
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _sync(path: Path) -> None:
    """Write the names in a folder to the disk."""
    with _open_folder(path) as folder, suppress(OSError):
        if folder is not None:
            os.fsync(folder)
