"""Save and load fitted classifiers: one safetensors file, which is read without executing anything.

The arrays are the file's tensors. Everything else (labels, levels, names, hyperparameters) is JSON in the metadata: a
tree of plain values and of the few types that `known_types` lists. A file can name no other type.
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

from bayesnb._util.arguments import require_path, shown
from bayesnb._util.atomic_files import write_atomically
from bayesnb.estimators import classifier_state
from bayesnb.fitted.state import require_fitted
from bayesnb.persistence.known_types import FORMAT, collect_types, user_classes
from bayesnb.persistence.migrations import current_version, migrate
from bayesnb.persistence.trees import Decoder, Encoder, Tree
from bayesnb.persistence.untrusted_files import CorruptModelError, read_file, require_checksum, require_few_brackets

_LONGEST_HEADER = 100_000_000  # The safetensors library reads no longer header.


def save(nb: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to one file.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier to write; `load` takes classes of your own as an argument.
    path : path
        File to write. An existing file is replaced once all content is on the disk.

    Raises
    ------
    TypeError
        If a label, a level or a hyperparameter is of a type that a file cannot have; the message names the value.
        Files can have str, int, float, bool, datetime64 and None, and lists, dicts, Series, arrays and priors of these.
        Nothing is written.
    ValueError
        If a fitted attribute or a hyperparameter was changed after `fit` and contradicts the others: such a file could
        not be loaded. If names, labels and levels take more than 100 MB, or more than 64 numbers have the same hash.
        Nothing is written.
    OSError
        If the file cannot be written, or `path` is a symbolic link or no regular file; an existing file stays as it
        was.

    Notes
    -----
    The file is in the safetensors format. Arrays are tensors, equal to the bit; the rest is JSON in the metadata, under
    "bayesnb", with a SHA-256 checksum of everything. There is no pickle. The same model makes the same file. Every
    later release of bayesnb reads the file, with the hyperparameters that were written, even if defaults have changed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayesnb import CategoricalNB, load, save
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> with TemporaryDirectory() as folder:
    ...     save(nb, Path(folder) / "model.bnb")
    ...     again = load(Path(folder) / "model.bnb")
    >>> again.partial_fit([["rain"]], ["in"]).class_count_  # counting continues
    array([2., 2.])
    """
    from safetensors.numpy import save as to_bytes

    require_fitted(nb, "save")
    require_path("path", path)
    encoder = Encoder(collect_types(user_classes(nb)))
    model = encoder.encode(nb, type(nb).__name__)
    try:
        classifier_state.check(nb)
    except ValueError as error:
        raise ValueError(f"save: {type(nb).__name__} was changed after fit: {error} Nothing was written.") from None
    digest = _digest(model, encoder.arrays, current_version())
    content = {"version": current_version(), "sha256": digest, "model": model}
    written = to_bytes(encoder.arrays, {FORMAT: json.dumps(content, allow_nan=False)})
    if (size := _header_size(written)) > _LONGEST_HEADER:
        raise ValueError(
            f"save: names, labels and levels of {type(nb).__name__} take {size:,} bytes; at most {_LONGEST_HEADER:,} "
            "can be written. Shorten names, or merge labels or levels. Nothing was written."
        )
    write_atomically(path, written)


def load(path: str | os.PathLike[str], estimators: Iterable[type] = ()) -> Any:
    """Return the classifier that `save` wrote.

    Parameters
    ----------
    path : path
        File to read.
    estimators : classes, optional
        Classes of your own that the file may name, such as subclasses of `NumbersNB` with their own family.

    Returns
    -------
    fitted classifier of bayesnb, or of one of `estimators`
        Classifier that predicts as the saved one does.

    Raises
    ------
    CorruptModelError
        If the file is damaged, is not a model of bayesnb, or is not a regular file; if the content contradicts itself,
        even with a right checksum; if loading would take too long for the size of the file; if the classifier was
        removed from bayesnb. The message says what is wrong.
    OSError
        If the file does not exist or cannot be read.

    Notes
    -----
    Nothing in the file is executed. Loading takes at most a few times the size of the file in memory: the sizes that
    the header states are compared with the size of the file before the rest is read. These checks do not make the model
    trustworthy: whoever can write the file can write any counts.

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
    return read_file(path, partial(_decode, known=collect_types(estimators)))


def digest_hyperparameters(nb: BaseEstimator) -> str:
    """Return the SHA-256 digest of the hyperparameters in the form that `save` writes."""
    encoder = Encoder(collect_types(user_classes(nb)))
    tree = encoder.encode(nb.get_params(deep=False), type(nb).__name__)
    return _digest(tree, encoder.arrays, current_version())


def _decode(file: BinaryIO, size: int, known: Mapping[str, type]) -> Any:
    """Return the classifier of an open file; the rest is read once the header is found to fit `size`, in bytes.

    Its types are taken from `known` {name: type}. Raises CorruptModelError if the file holds no fitted classifier.
    """
    from safetensors.numpy import load as from_bytes

    content = file.read(8)
    if not 0 < _header_size(content) <= min(size - 8, _LONGEST_HEADER):
        raise CorruptModelError("the file is not a safetensors file, or only a part of one. Pass one of bayesnb.save.")
    content += file.read(_header_size(content))
    text = _read_metadata(content[8:], size - len(content))
    arrays = from_bytes(content + file.read(size - len(content)))
    model = _read_tree(text, arrays)
    nb = Decoder(arrays, size, known).decode(model)
    if not isinstance(nb, BaseEstimator):
        raise CorruptModelError(f"the file holds no classifier, but a {type(nb).__name__}. Pass one of bayesnb.save.")
    if not model["fitted"]:
        raise CorruptModelError(f"the {type(nb).__name__} in the file was never fitted. Fit it, and save it again.")
    return nb


def _header_size(content: bytes) -> int:
    """Length of a safetensors header: the first 8 bytes of the file as a little-endian integer."""
    return int.from_bytes(content[:8], "little")


def _read_metadata(header: bytes, rest: int) -> str:
    """Return the JSON text of the model from the header of a safetensors file; `rest` bytes follow the header."""
    require_few_brackets(header)
    tensors = json.loads(header)
    metadata = tensors.pop("__metadata__", {})
    if max((tensor["data_offsets"][1] for tensor in tensors.values()), default=0) != rest:
        raise CorruptModelError("the file is only a part of a model, or has bytes after its end. Copy it again.")
    if FORMAT not in metadata:
        raise CorruptModelError("the file holds no model of bayesnb. Pass a file that bayesnb.save wrote.")
    return metadata[FORMAT]


def _read_tree(text: str, arrays: Mapping[str, np.ndarray]) -> Tree:
    """Return the tree in a JSON text, in the current version; raise CorruptModelError if the checksum is wrong."""
    require_few_brackets(text.encode())
    file = json.loads(text)
    written = file["version"]
    if type(written) is not int or not 1 <= written <= current_version():
        readable = f"this bayesnb reads versions 1 to {current_version()}. Update bayesnb to read newer files"
        raise CorruptModelError(f"the file has version {shown(written)}; {readable}.")
    require_checksum(_digest(file["model"], arrays, written), file["sha256"])
    return migrate(file["model"], written)


def _digest(model: Tree, arrays: Mapping[str, np.ndarray], version: int) -> str:
    """SHA-256 digest, in hexadecimal, of the version, the tree and the arrays of a file."""
    digest = hashlib.sha256(f"{FORMAT} {version}\n{json.dumps(model)}".encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


__all__ = ["CorruptModelError", "digest_hyperparameters", "load", "save"]
