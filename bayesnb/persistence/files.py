"""Read files that anybody may have written, and raise one kind of error for all that may be wrong with them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import BinaryIO, TypeVar

from bayesnb._util.arguments import require_path
from bayesnb._util.atomic_files import open_regular
from bayesnb._util.precision import ForkedError

_FEW_PARTS = 2**18
Content = TypeVar("Content")
Decoded = TypeVar("Decoded")


class CorruptModelError(ValueError):
    """A file that is no whole model of bayesnb.

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
    """Decode what `read` takes from a regular file, which it is given with its size.

    Raises
    ------
    CorruptModelError
        Whatever is wrong with the content, naming the file.
    OSError
        If the file cannot be opened or read.
    """
    require_path("path", path)
    try:
        with open_regular(path) as file:
            content = read(file, os.fstat(file.fileno()).st_size)
        try:
            return decode(content)
        except OSError as error:  # what the content names cannot be read, such as the data of a time zone
            raise CorruptModelError(f"it leads to {type(error).__name__}: {str(error)[:200]}.") from None
    except (OSError, MemoryError, ForkedError):
        raise
    except CorruptModelError as error:
        raise CorruptModelError(f"{path}: {error}") from None
    except Exception as error:  # whatever else a hostile file may lead to
        raise CorruptModelError(f"{path} is damaged: {type(error).__name__}: {str(error)[:200]}") from None


def require_few_parts(text: bytes) -> None:
    """Refuse JSON of nothing but brackets, which takes fifty times its size."""
    parts = text.count(b"[") + text.count(b"{")
    if parts > max(_FEW_PARTS, len(text) // 8):
        raise CorruptModelError(f"it has {parts:,} parts in {len(text):,} bytes.")


__all__ = ["CorruptModelError", "read_file", "require_few_parts"]
