"""Readers of the real data that the project must not need: tests that use them skip where they are absent."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import tables


def path_of(name: str) -> Path:
    """A file of the data folder; skips the test where it is absent."""
    path = tables.FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not in the data folder; BAYESNB_DATA names it (default ../shared/data)")
    return path


@dataclass(frozen=True)
class CategoricalData:
    """Strings as they stand in the file; `levels` are those declared, "?" is missing."""

    X: np.ndarray
    y: np.ndarray
    names: list[str]
    levels: list[list[str]]


@cache
def arff(name: str) -> CategoricalData:
    """An ARFF file of nominal attributes, the last of which is the class."""
    X, y = tables.arff(path_of(f"{name}.arff"))
    levels = [[level for level in X[column].cat.categories if level != tables.MISSING] for column in X]
    return CategoricalData(X.to_numpy(object), y, list(X), levels)


@cache
def newsgroups(part: str) -> tuple[sp.csr_matrix, np.ndarray]:
    """Word counts and topics of the four-category split of 20 newsgroups; `part` is "train" or "test"."""
    path_of("20ng/4cat_train.counts.tsv")
    table = tables.FAMILIAR["20ng"].read()
    rows = table.test == (part == "test")
    return table.X[rows], table.y[rows]


@cache
def sms() -> tuple[list[str], np.ndarray]:
    """Messages and their labels, "ham" or "spam"."""
    path_of("sms_spam.tsv")
    table = tables.FAMILIAR["sms"].read()
    return table.X, table.y
