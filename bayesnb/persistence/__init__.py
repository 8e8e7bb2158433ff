"""Save and load fitted classifiers: one safetensors file, which is read without executing anything.

The arrays are the file's tensors. Everything else (labels, levels, names, hyperparameters) is JSON in its metadata: a
tree of plain values and of the few types in `vocabulary.TYPES`, which is all that a file can name.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import require_path, shown
from bayesnb._util.atomic_files import write_atomically
from bayesnb.estimators import drafts
from bayesnb.estimators.display import Displayed
from bayesnb.persistence.files import CorruptModelError, read_file, require_few_parts
from bayesnb.persistence.migrations import migrated, version
from bayesnb.persistence.reading import Decoder
from bayesnb.persistence.vocabulary import FORMAT, Vocabulary, own_classes, vocabulary
from bayesnb.persistence.writing import encode

_LONGEST_HEADER = 100_000_000  # that safetensors reads


def save(nb: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to one file.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    path : path
        What is there is replaced once all is written and on the disk.

    Raises
    ------
    TypeError
        If a label, a level or a hyperparameter is of a type that a file cannot have, naming it: they may be str, int,
        float, bool, datetime64 or None, and lists, dicts, arrays and priors of these. Nothing is written.
    ValueError
        If what was fitted, or a hyperparameter, was changed so that it no longer fits the rest: such a file would not
        be loaded. If names, labels and levels take more than 100 MB, or more than 64 numbers have the same hash.
        Nothing is written.
    OSError
        If the file cannot be written, or what is there is a symbolic link or no regular file; the old one is as it was.

    Notes
    -----
    A safetensors file: arrays are its tensors, to the bit; the rest is JSON in its metadata, under "bayesnb", with a
    SHA-256 of everything. No pickle. The same model makes the same file. Every later release of bayesnb reads it, with
    the hyperparameters that it was written with, whatever their defaults are then.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayesnb import CategoricalNB, load, save
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> with TemporaryDirectory() as folder:
    ...     save(nb, Path(folder) / "model.bnb")
    ...     again = load(Path(folder) / "model.bnb")
    >>> again.partial_fit([["rain"]], ["in"]).class_count_  # it counts on
    array([2., 2.])
    """
    from safetensors.numpy import save as to_bytes

    if not isinstance(nb, Displayed):
        raise TypeError(f"save takes a fitted classifier of bayesnb, and got {shown(nb)}.")
    check_is_fitted(nb)
    require_path("path", path)
    fitted: Any = nb
    arrays: dict[str, np.ndarray] = {}
    model = encode(nb, type(nb).__name__, arrays, vocabulary(own_classes(nb)))
    try:
        drafts.check(fitted)
    except ValueError as error:
        raise ValueError(f"save: {type(nb).__name__} is not as fit left it: {error} Nothing was written.") from None
    digest = _digest(json.dumps(model), arrays, version())
    content = {"version": version(), "sha256": digest, "model": model}
    written = to_bytes(arrays, {FORMAT: json.dumps(content, allow_nan=False)})
    if (size := _header_size(written)) > _LONGEST_HEADER:
        raise ValueError(
            f"save: the names, labels and levels of {type(nb).__name__} take {size:,} bytes, and a file can have "
            f"{_LONGEST_HEADER:,}. Nothing was written."
        )
    write_atomically(path, written)


def load(path: str | os.PathLike[str], estimators: Iterable[type] = ()) -> Any:
    """The classifier that `save` wrote.

    Parameters
    ----------
    path : path
    estimators : classes, optional
        Of classifiers of your own that the file may hold, such as subclasses of `NumbersNB` with a family of their own.

    Raises
    ------
    CorruptModelError
        If the file is damaged, is no model of bayesnb, or is no regular file; if its parts contradict each other,
        whatever its checksum; if it would take long out of proportion to its size; if it holds a classifier that was
        removed from bayesnb. The message says what is wrong.
    OSError
        If there is no such file, or it cannot be read.

    Notes
    -----
    Nothing in the file is executed, and no more memory is taken than a few times its size, which is held against what
    its first bytes say before the rest is read. That a model is consistent does not make it true: who can write the
    file can write any counts.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayesnb import GaussianNB, load, save
    >>> nb = GaussianNB().fit([[1.0], [1.2], [3.0], [3.1]], ["low", "low", "high", "high"])
    >>> with TemporaryDirectory() as folder:
    ...     save(nb, Path(folder) / "model.bnb")
    ...     again = load(Path(folder) / "model.bnb")
    >>> again, again.log_evidence_ == nb.log_evidence_
    (GaussianNB(), True)
    """
    return read_file(path, _read, partial(_decode, known=vocabulary(estimators)))


def hyperparameters(nb: BaseEstimator) -> str:
    """A digest of the hyperparameters, as `save` would write them."""
    arrays: dict[str, np.ndarray] = {}
    model = encode(nb.get_params(deep=False), type(nb).__name__, arrays, vocabulary(own_classes(nb)))
    return _digest(json.dumps(model), arrays, version())


def _read(file: BinaryIO, size: int) -> tuple[str, list[bytes]]:
    """JSON of the model, and the whole file, as the only entry of a list from which the decoder takes it."""
    content = file.read(8)
    if not 0 < _header_size(content) <= min(size - 8, _LONGEST_HEADER):
        raise CorruptModelError("it is no safetensors file, or only a part of one.")
    content += file.read(_header_size(content))
    text = _metadata(content[8:], size - len(content))
    content += file.read(size - len(content))
    return text, [content]


def _decode(read: tuple[str, list[bytes]], known: Vocabulary) -> Any:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    text, content = read
    size = len(content[0])
    try:
        arrays = from_bytes(content.pop())
    except SafetensorError as error:
        raise CorruptModelError(f"it is no safetensors file, or only a part of one: {error}.") from None
    model = _model(text, arrays)
    nb = Decoder(arrays, size, known).decode(model)
    if type(nb).__name__ not in known.estimators:
        raise CorruptModelError(f"it holds no classifier, but {type(nb).__name__}.")
    if not model["fitted"]:
        raise CorruptModelError(f"its {type(nb).__name__} was never fitted.")
    return nb


def _header_size(content: bytes) -> int:
    return int.from_bytes(content[:8], "little")


def _metadata(header: bytes, rest: int) -> str:
    """What is said of the model, in a file that has `rest` bytes of arrays."""
    require_few_parts(header)
    tensors = json.loads(header)
    metadata = tensors.pop("__metadata__", {})
    if max((tensor["data_offsets"][1] for tensor in tensors.values()), default=0) != rest:
        raise CorruptModelError("it is only a part of a safetensors file, or more than one.")
    if FORMAT not in metadata:
        raise CorruptModelError("it is a safetensors file, but no model of bayesnb.")
    return metadata[FORMAT]


def _model(text: str, arrays: Mapping[str, np.ndarray]) -> Any:
    """The tree of the model, of which the checksum is right."""
    require_few_parts(text.encode())
    file = json.loads(text)
    written = file["version"]
    if type(written) is not int or not 1 <= written <= version():
        raise CorruptModelError(f"it has version {written!r}; this bayesnb reads versions 1 to {version()}.")
    if file["sha256"] != _digest(json.dumps(file["model"]), arrays, written):
        raise CorruptModelError("its content does not have the checksum that was written with it.")
    return migrated(file["model"], written)


def _digest(model: str, arrays: Mapping[str, np.ndarray], version: int) -> str:
    digest = hashlib.sha256(f"{FORMAT} {version}\n{model}".encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


__all__ = ["CorruptModelError", "hyperparameters", "load", "save"]
