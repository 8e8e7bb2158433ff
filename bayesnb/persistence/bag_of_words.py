"""Read and write the file of a `BagOfWords`: one JSON object of options and words, with a checksum."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb._util.atomic_files import write_atomically
from bayesnb.persistence.untrusted_files import CorruptModelError, read_file, require_few_brackets

_FORMAT = "bayesnb.text.BagOfWords"
_VERSION = 1
_LARGEST = 10**9
_LONGEST_NGRAM = 100
_FIELDS: dict[str, type] = {"options": dict, "words": list, "too_frequent": list, "unknown_count": int, "sha256": str}
_DTYPES = {np.dtype(code).name for code in "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"]}

#: Regular expressions that a file may choose: matching never backtracks, so that it takes linear time.
PATTERNS = tuple(
    f"{flag}{pattern}"
    for flag in ("", "(?u)")
    for pattern in (r"\b\w\w+\b", r"\b\w+\b", r"\b\w\w\w+\b", r"\w\w+", r"\w+", r"\w\w\w+", r"\S+", r"\S\S+")
)


def write_words(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write options and words as one JSON file.

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
        raise ValueError(f"save: the words take {len(written):,} bytes, and a file can have {_LARGEST:,}.")
    write_atomically(path, written)


def read_words(path: str | os.PathLike[str], token_pattern: str | None) -> dict[str, Any]:
    """Read options and words from a file that `write_words` has written.

    Parameters
    ----------
    path : path
        File to read.
    token_pattern : str, optional
        Regular expression of a word that the file must have. Required if the file has none of `PATTERNS`.

    Raises
    ------
    CorruptModelError
        If the file is none of `write_words`, is damaged, has another pattern, or is no regular file.
    OSError
        If the file cannot be read.
    """
    return read_file(path, _read, partial(_decode, token_pattern=token_pattern))


def _read(file: BinaryIO, size: int) -> bytes:
    if size > _LARGEST:
        raise CorruptModelError(f"it has {size:,} bytes; files of {_FORMAT} have at most {_LARGEST:,}.")
    start = file.read(1)
    return start + file.read(size - 1) if start and start != b"\0" else start


def _decode(content: bytes, token_pattern: str | None) -> dict[str, Any]:
    require_few_brackets(content)
    try:
        file = json.loads(content.decode("ascii"))
    except UnicodeDecodeError as error:
        raise CorruptModelError(f"it is not a file of {_FORMAT}: byte {error.start} is not ASCII.") from None
    if not isinstance(file, dict) or file.get("format") != _FORMAT:
        raise CorruptModelError(f"it is not a file of {_FORMAT}.")
    if file.get("version") != _VERSION:
        raise CorruptModelError(f"it has version {shown(file.get('version'))}; this bayesnb reads version {_VERSION}.")
    for name, kind in _FIELDS.items():
        if type(file.get(name)) is not kind:
            raise CorruptModelError(f"it is damaged: {name!r} is {'of another type' if name in file else 'missing'}.")
    content_read = {name: file[name] for name in _FIELDS if name != "sha256"}
    if _checksum(content_read) != file["sha256"]:
        raise CorruptModelError("it is damaged: its content does not have the checksum that was written with it.")
    try:
        _check(content_read)
    except ValueError as error:
        raise CorruptModelError(str(error)) from None
    pattern = content_read["options"]["token_pattern"]
    if token_pattern not in (None, pattern):
        raise CorruptModelError(f"its token_pattern is {shown(pattern)}, and not {shown(token_pattern)}.")
    if pattern not in (None, token_pattern, *PATTERNS):
        raise CorruptModelError(
            f"its token_pattern {shown(pattern)} may take any time on a text, so that a file does not decide it. If "
            "you know the pattern, pass it: BagOfWords.load(path, token_pattern=...)."
        )
    return content_read


def _check(content: dict[str, Any]) -> None:
    """Raise ValueError if `fit` could not have left these options and words."""
    options, words, too_frequent = content["options"], content["words"], content["too_frequent"]
    if set(options) != set(_OPTIONS):
        raise ValueError(f"options: {sorted(set(options) ^ set(_OPTIONS))} are not those of this version.")
    for name, is_valid in _OPTIONS.items():
        if not is_valid(options[name]):
            raise ValueError(f"{name}={shown(options[name])} is none that a file can have.")
    for word in (*words, *too_frequent):
        if type(word) is not str:
            raise ValueError(f"vocabulary: {shown(word)} is no word; a file can have strings.")
    unknown = options["unknown"]
    if not words or len({*words, *too_frequent}) < len(words) + len(too_frequent):
        raise ValueError("vocabulary is empty, or has a word twice.")
    if unknown is not None and words[-1] != unknown:
        raise ValueError(f"vocabulary: its last word is {shown(words[-1])}, and not the reserved {shown(unknown)}.")
    if content["unknown_count"] < 0:
        raise ValueError(f"unknown_count_={shown(content['unknown_count'])} is negative.")


def _is_among(*values: Any) -> Callable[[Any], bool]:
    return lambda value: any(type(value) is type(v) and bool(value == v) for v in values)


def _has_type(*types: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in types


def _are_strings(values: Any) -> bool:
    return type(values) is list and all(type(v) is str for v in values)


def _is_range(value: object) -> bool:
    if type(value) is not list or len(value) != 2 or not all(type(n) is int for n in value):
        return False
    least, most = value
    return bool(1 <= least <= most <= _LONGEST_NGRAM)


_OPTIONS: dict[str, Callable[[Any], bool]] = {
    "unknown": _has_type(str, type(None)),
    "binary": _has_type(bool, int),
    "min_df": _has_type(int, float),
    "max_df": _has_type(int, float),
    "max_features": _has_type(int, type(None)),
    "vocabulary": _is_among(None, "given"),
    "strip_accents": _is_among(None, "ascii", "unicode"),
    "lowercase": _has_type(bool, int),
    "preprocessor": _is_among(None),
    "tokenizer": _is_among(None),
    "stop_words": lambda value: _is_among(None, "english")(value) or _are_strings(value),
    "token_pattern": _has_type(str, type(None)),
    "ngram_range": _is_range,
    "analyzer": _is_among("word", "char", "char_wb"),
    "dtype": lambda value: type(value) is str and value in _DTYPES,
}


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


__all__ = ["PATTERNS", "read_words", "write_words"]
