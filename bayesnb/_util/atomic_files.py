"""Files that are there whole, or as they were."""

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
    """Write a file beside the old one, and let it take that one's name once it is on the disk.

    What killed writers of the same file have left beside it is removed.

    Raises
    ------
    OSError
        If it cannot be written, or what is there is no regular file, saying that the old file is as it was.
    """
    path = Path(path)
    temporary = None
    try:
        _require_regular(path)
        with _writing(path) as prefix:
            old = path.stat().st_mode if path.exists() else None
            # As any new file, of a mode that the system masks; what takes the place of a file is nobody else's until it
            # has that one's.
            mode = 0o666 if old is None else 0o600
            beside = path.parent / f"{prefix}{secrets.token_hex(4)}{_SUFFIX}"
            with open(beside, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
                temporary = beside
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
    """That a file can be written there, before much work is done for it.

    Raises
    ------
    OSError
        If its folder is not there, or lets no file be made; if what is there is no regular file.
    """
    path = Path(path)
    try:
        _require_regular(path)
        with _writing(path) as prefix, tempfile.NamedTemporaryFile(prefix=prefix, suffix=_SUFFIX, dir=path.parent):
            pass
    except OSError as error:
        raise type(error)(error.errno, f"{path} cannot be written: {error.strerror or error}") from None


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file to be read, which ends: no pipe, socket or device.

    Raises
    ------
    OSError
        If it cannot be opened.
    ValueError
        If it is no regular file.
    """
    # Without O_NONBLOCK a pipe that nobody writes to would be waited for.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError("it is no regular file, but a pipe, socket or device.")
    return file


def _require_regular(path: Path) -> None:
    """Refuse to put a file in the place of a link, pipe, device or folder."""
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.EINVAL, "it is a symbolic link; name the file that it points to")
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no regular file")


@contextmanager
def _writing(path: Path) -> Iterator[str]:
    """The beginning of the names of temporary files, which nobody removes meanwhile.

    Who writes shares a lock of the folder, which ends with the process. Who gets it alone knows that the writers of the
    temporary files there are dead. Where folders cannot be locked, such files stay.
    """
    prefix = f".{path.name}."
    with _folder(path.parent) as folder:
        with suppress(ImportError, OSError):
            import fcntl

            if folder is not None:
                with suppress(OSError):
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove_abandoned(path.parent, prefix)
                fcntl.flock(folder, fcntl.LOCK_SH)
        yield prefix


def _remove_abandoned(folder: Path, prefix: str) -> None:
    ours = re.compile(rf"{re.escape(prefix)}[a-z0-9_]{{8}}{re.escape(_SUFFIX)}")
    for name in filter(ours.fullmatch, os.listdir(folder)):
        os.unlink(folder / name)


@contextmanager
def _folder(path: Path) -> Iterator[int | None]:
    """A folder, opened; None where the system does not let it be."""
    handle = None
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _sync(path: Path) -> None:
    """That the new name is on the disk too."""
    with _folder(path) as folder, suppress(OSError):
        if folder is not None:
            os.fsync(folder)
