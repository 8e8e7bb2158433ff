"""Files that are there whole, or as they were."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside the old one, and let it take that one's name once it is on the disk.

    Raises
    ------
    OSError
        If it cannot be written, saying that the old file is as it was.
    """
    path = Path(path)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, path.stat().st_mode if path.exists() else 0o666 & ~_umask())
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
        If its folder is not there, or lets no file be made.
    """
    path = Path(path)
    try:
        with tempfile.NamedTemporaryFile(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent):
            pass
    except OSError as error:
        raise type(error)(error.errno, f"{path} cannot be written: {error.strerror or error}") from None


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _sync(folder: Path) -> None:
    """That the new name is on the disk too; not every system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
