"""Read files whose writer is unknown; whatever is wrong with the content raises `CorruptModelError`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import BinaryIO, TypeVar

from bayesnb._util.arguments import require_path
from bayesnb._util.atomic_files import open_regular
from bayesnb._util.precision import ForkedError

_FEW_BRACKETS = 2**18
Content = TypeVar("Content")
Decoded = TypeVar("Decoded")


class CorruptModelError(ValueError):
    """Raised if a file is not a complete model of bayesnb.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.bnb"
    ...     _ = path.write_bytes(b"no model")
    ...     try:
    ...         bnb.load(path)
    ...     except bnb.CorruptModelError as error:
    ...         print(str(error).removeprefix(f"{path}: "))
    it is no safetensors file, or only a part of one.
    """


def read_file(
    path: str | os.PathLike[str], read: Callable[[BinaryIO, int], Content], decode: Callable[[Content], Decoded]
) -> Decoded:
    """Read a regular file and decode the content.

    Parameters
    ----------
    path : path
        File to read.
    read : callable (file, size in bytes) -> content
        Function that takes the content from the open file.
    decode : callable (content) -> object
        Function that makes an object of the content, after the file is closed.

    Raises
    ------
    CorruptModelError
        If anything is wrong with the content; the message names the file.
    OSError
        If the file cannot be opened or read.
    """
    require_path("path", path)
    try:
        with open_regular(path) as file:
            content = read(file, os.fstat(file.fileno()).st_size)
        try:
            return decode(content)
        except OSError as error:  # The content may name data that cannot be read, such as those of a time zone.
            raise CorruptModelError(f"it leads to {type(error).__name__}: {str(error)[:200]}.") from None
    except (OSError, MemoryError, ForkedError):
        raise
    except CorruptModelError as error:
        raise CorruptModelError(f"{path}: {error}") from None
    except Exception as error:  # A hostile file may lead to any other error.
        raise CorruptModelError(f"{path} is damaged: {type(error).__name__}: {str(error)[:200]}") from None


def require_few_brackets(text: bytes) -> None:
    """Raise CorruptModelError if JSON is mostly brackets, which take fifty times their size in memory."""
    brackets = text.count(b"[") + text.count(b"{")
    if brackets > max(_FEW_BRACKETS, len(text) // 8):
        raise CorruptModelError(f"it has {brackets:,} lists and objects in {len(text):,} bytes.")


__all__ = ["CorruptModelError", "read_file", "require_few_brackets"]
