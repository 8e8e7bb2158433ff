"""Files that are written as a whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_SUFFIX = ".bayesnb.tmp"


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file beside `path`; at the end the file that was written there replaces `path`.

    After an error, or an interrupt, an existing file is unchanged.

    Raises
    ------
    OSError
        If the file cannot be written, or `path` is not a regular file; the old file is unchanged.
    """
    path = Path(path)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}{_SUFFIX}"
    try:
        _require_regular(path)
        old = path.stat().st_mode if path.exists() else None
        # A new file has the usual mode, which the system masks. A file that replaces another one is private until
        # it has the mode of that file.
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if old is None else 0o600))
        yield temporary
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        if old is not None:
            os.chmod(temporary, old)
        os.replace(temporary, path)
        _sync(path.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(error.errno, f"{path} was not written, and an existing file is unchanged: {reason}") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to a temporary file beside `path`, and rename that file to `path` once it is on the disk.

    Raises
    ------
    OSError
        If the file cannot be written, or `path` is not a regular file; the old file is unchanged.
    """
    with replaced(path) as temporary:
        temporary.write_bytes(content)


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError unless a file can be written at `path`; a temporary file beside `path` is made and removed.

    Raises
    ------
    OSError
        If the folder does not exist or is not writable; if `path` is not a regular file.
    """
    path = Path(path)
    try:
        _require_regular(path)
        with tempfile.NamedTemporaryFile(prefix=f".{path.name}.", suffix=_SUFFIX, dir=path.parent):
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
        If `path` is not a regular file.
    """
    # Without O_NONBLOCK opening a pipe waits for a writer.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError("the path is not a regular file, but a pipe, a socket or a device. Pass a regular file.")
    return file


def _require_regular(path: Path) -> None:
    """Raise OSError if `path` exists and is not a regular file, which a written file must not replace."""
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.EINVAL, "the path is a symbolic link. Pass the file that the link points to")
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "the path is a folder, a pipe or a device. Pass the path of a file")


def _sync(folder: Path) -> None:
    """Flush the entries of a folder to the disk; do nothing if the system cannot open folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
