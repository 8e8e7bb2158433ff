"""Read files whose writer is unknown; whatever is wrong with the content raises `CorruptModelError`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import BinaryIO, TypeVar

from bayesnb._util.arguments import require_path
from bayesnb._util.atomic_files import open_regular
from bayesnb._util.precision import ForkedError

_FEW_BRACKETS = 2**18
_LONGEST_MESSAGE, _LONGEST_QUOTE = 1000, 200
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
    the file is not a safetensors file, or only a part of one. Pass one of bayesnb.save.
    """


def read_file(path: str | os.PathLike[str], decode: Callable[[BinaryIO, int], Decoded]) -> Decoded:
    """Open a regular file and return the object that `decode` makes of its content.

    Parameters
    ----------
    path : path
        File to read.
    decode : callable (file, size in bytes) -> object
        Function that reads the open file and makes an object of the content.

    Raises
    ------
    CorruptModelError
        If anything is wrong with the content; the message names the file.
    OSError
        If the file cannot be opened or read.
    """
    require_path("path", path)
    file = None
    try:
        with open_regular(path) as file:
            return decode(file, os.fstat(file.fileno()).st_size)
    except (MemoryError, ForkedError):
        raise
    except CorruptModelError as error:
        raise CorruptModelError(f"{path}: {_printable(error, _LONGEST_MESSAGE)}") from None
    except Exception as error:  # A hostile file may lead to any error, also to those of data that it names.
        # An error of reading names no file; one of opening data, such as those of a time zone, does.
        if isinstance(error, OSError) and (file is None or error.filename is None):
            error.filename = os.fspath(path)
            raise
        if file is None:
            raise CorruptModelError(f"{path} cannot be read: {_printable(error, _LONGEST_MESSAGE)}") from None
        raised = f"Reading the file raised {type(error).__name__}: {_printable(error, _LONGEST_QUOTE)}"
        raise CorruptModelError(f"{path} is damaged. Copy the file again, or save the model again. {raised}") from None


def _printable(error: Exception, longest: int) -> str:
    """Return the message of an error on one line, with escapes for what cannot be printed, without the end if long.

    Messages quote the content of the file, whose writer could send control characters to the reader's terminal.
    """
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(str(error)[: 2 * longest].split()))
    return text if len(text) <= longest else f"{text[:longest]} …"


def require_checksum(computed: str, written: object) -> None:
    """Raise CorruptModelError unless the checksum of a file's content is the one that was written with the content."""
    if computed != written:
        raise CorruptModelError("the file is damaged: its content and its checksum differ. Copy or save it again.")


def require_few_brackets(text: bytes) -> None:
    """Raise CorruptModelError if JSON has over 2^18 opening brackets, and they are more than an eighth of the text.

    Lists and objects take fifty times their size in memory.
    """
    brackets = text.count(b"[") + text.count(b"{")
    most = max(_FEW_BRACKETS, len(text) // 8)
    if brackets > most:
        raise CorruptModelError(f"the file has {brackets:,} lists and objects in {len(text):,} bytes, above {most:,}.")
