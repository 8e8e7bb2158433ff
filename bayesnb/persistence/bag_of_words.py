"""Read and write the file of a `BagOfWords`: one JSON object of options and words, with a checksum."""

from __future__ import annotations

import hashlib
import json
import os
from functools import partial
from types import NoneType
from typing import Any, BinaryIO, Literal

import numpy as np

from bayesnb._util.arguments import bad_argument, shown
from bayesnb._util.atomic_files import write_atomically
from bayesnb.persistence.type_hints import conforms
from bayesnb.persistence.untrusted_files import CorruptModelError, read_file, require_checksum, require_few_brackets

_FORMAT = "bayesnb.text.BagOfWords"
_FOREIGN = f"the file was not written by {_FORMAT}.save"
_VERSION = 1
_LARGEST = 10**9
_FIELDS: dict[str, Any] = {"options": dict, "words": list, "too_frequent": list, "unknown_count": int, "sha256": str}
_MATRIX_DTYPES = tuple(np.dtype(code).name for code in "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"])
_OPTIONS: dict[str, Any] = {
    "unknown": str | None,
    "binary": bool | int,
    "min_df": int | float,
    "max_df": int | float,
    "max_features": int | None,
    "vocabulary": Literal["given"] | None,
    "strip_accents": Literal["ascii", "unicode"] | None,
    "lowercase": bool | int,
    "preprocessor": NoneType,
    "tokenizer": NoneType,
    "stop_words": list[str] | Literal["english"] | None,
    "token_pattern": str | None,
    "ngram_range": list[int],
    "analyzer": Literal["word", "char", "char_wb"],
    "dtype": Literal[_MATRIX_DTYPES],
}

#: Regular expressions that a file may choose: matching never backtracks, so that it takes linear time.
_WORDS = (r"\b\w\w+\b", r"\b\w+\b", r"\b\w\w\w+\b", r"\w\w+", r"\w+", r"\w\w\w+", r"\S+", r"\S\S+")
PATTERNS = tuple(flag + pattern for flag in ("", "(?u)") for pattern in _WORDS)


def write_words(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write `content` (options, words, too_frequent, unknown_count) as one JSON file with a checksum.

    Raises
    ------
    ValueError
        If `read_words` would not read the file. Nothing is written.
    OSError
        If the file cannot be written; an existing file stays as it was.
    """
    _check(content)
    file = {"format": _FORMAT, "version": _VERSION, **content, "sha256": _checksum(content)}
    written = json.dumps(file, indent=1).encode("ascii")
    if len(written) > _LARGEST:
        most = f"a file can have at most {_LARGEST:,}. Raise min_df, or set max_features"
        raise ValueError(f"save: the words take {len(written):,} bytes; {most}.")
    write_atomically(path, written)


def read_words(path: str | os.PathLike[str], token_pattern: str | None) -> dict[str, Any]:
    """Return the content (options, words, too_frequent, unknown_count) of a file that `write_words` has written.

    Parameters
    ----------
    path : path
        File to read.
    token_pattern : str, optional
        Regular expression of a word that the file must have. Required if the file has none of `PATTERNS`.

    Raises
    ------
    CorruptModelError
        If the file is none of `write_words`, is damaged, has another pattern, or is not a regular file.
    OSError
        If the file cannot be read.
    """
    return read_file(path, partial(_decode_words, token_pattern=token_pattern))


def _decode_words(file: BinaryIO, size: int, token_pattern: str | None) -> dict[str, Any]:
    """Return the checked content of an open file of `size` bytes; raise CorruptModelError if it is wrong."""
    if size > _LARGEST:
        raise CorruptModelError(f"the file has {size:,} bytes; files of {_FORMAT} have at most {_LARGEST:,}.")
    content = file.read(1)
    content += file.read(size - 1) if content > b"\0" else b""
    require_few_brackets(content)
    try:
        words = json.loads(content.decode("ascii"))
    except UnicodeDecodeError as error:
        raise CorruptModelError(f"{_FOREIGN}: byte {error.start} is not ASCII.") from None
    if not isinstance(words, dict) or words.get("format") != _FORMAT:
        raise CorruptModelError(f"{_FOREIGN}.")
    if words.get("version") != _VERSION:
        readable = f"this bayesnb reads version {_VERSION}. Update bayesnb to read newer files"
        raise CorruptModelError(f"the file has version {shown(words.get('version'))}; {readable}.")
    for name, kind in _FIELDS.items():
        if not conforms(words.get(name), kind):
            problem = "of the wrong type" if name in words else "missing"
            raise CorruptModelError(f"the file is damaged: {name!r} is {problem}.")
    content_read = {name: words[name] for name in _FIELDS if name != "sha256"}
    require_checksum(_checksum(content_read), words["sha256"])
    try:
        _check(content_read)
    except ValueError as error:
        raise CorruptModelError(str(error)) from None
    pattern = content_read["options"]["token_pattern"]
    if token_pattern not in (None, pattern):
        problem = f"the token_pattern of the file is {shown(pattern)}; the argument is {shown(token_pattern)}"
        raise CorruptModelError(f"{problem}. Pass the same pattern.")
    if pattern not in (None, token_pattern, *PATTERNS):
        problem = f"the file has token_pattern={shown(pattern)}, a pattern that may run endlessly on some texts"
        raise CorruptModelError(f"{problem}. If you trust it, call BagOfWords.load(path, token_pattern=...).")
    return content_read


def _check(content: dict[str, Any]) -> None:
    """Raise ValueError unless `fit` could have left these options and words."""
    options, words, too_frequent = content["options"], content["words"], content["too_frequent"]
    if odd := sorted(set(options) ^ set(_OPTIONS)):
        raise ValueError(f"options: {shown(odd)} are missing or unknown. Save the words again with this version.")
    for name, kind in _OPTIONS.items():
        if not conforms(options[name], kind):
            value = f"{name}={shown(options[name])}"
            raise ValueError(f"{value} cannot be written to a file. Use a type that BagOfWords documents.")
    least, most = (*options["ngram_range"], 0, 0)[:2]
    if len(options["ngram_range"]) != 2 or not 1 <= least <= most <= 100:
        raise bad_argument("ngram_range", options["ngram_range"], "two integers, 1 <= least <= most <= 100")
    for word in (*words, *too_frequent):
        if type(word) is not str:
            raise ValueError(f"vocabulary: {shown(word)} is not a word; words in a file must be strings.")
    unknown = options["unknown"]
    if not words or len({*words, *too_frequent}) < len(words) + len(too_frequent):
        raise ValueError("vocabulary is empty, or has a word twice. Fit again.")
    if unknown is not None and words[-1] != unknown:
        expected = f"it must be the reserved word {shown(unknown)}. Fit again"
        raise ValueError(f"vocabulary: the last word is {shown(words[-1])}; {expected}.")
    if content["unknown_count"] < 0:
        raise ValueError(f"unknown_count_={shown(content['unknown_count'])} is negative.")


def _checksum(content: dict[str, Any]) -> str:
    """SHA-256 digest, in hexadecimal, of the content as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
