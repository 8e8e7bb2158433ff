"""Readers of the real data that the project must not need: tests that use them skip where they are absent."""

import csv
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

FOLDER = Path(__file__).parents[1] / os.environ.get("BAYESNB_DATA", "../shared/data")


def path_of(name: str) -> Path:
    """A file of the data folder; skips the test where it is absent."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not in the data folder; BAYESNB_DATA names it (default ../shared/data)")
    return path


@dataclass(frozen=True)
class CategoricalData:
    """Strings as they stand in the file; `levels` are those declared, in that order, "?" is missing."""

    X: np.ndarray
    y: np.ndarray
    names: list[str]
    levels: list[list[str]]
    classes: list[str]


@cache
def arff(name: str) -> CategoricalData:
    """An ARFF file of nominal attributes, the last of which is the class."""
    lines = [line.strip() for line in path_of(f"{name}.arff").read_text().splitlines()]
    names, levels, rows = [], [], []
    for line in lines:
        if match := re.match(r"@attribute\s+('[^']*'|\S+)\s*\{(.*)\}", line, re.IGNORECASE):
            names.append(match[1].strip("'"))
            levels.append([level.strip(" '") for level in match[2].split(",")])
        elif line and line[0] not in "%@":
            rows.append([cell.strip(" '") for cell in line.split(",")])
    table = np.array(rows, dtype=object)
    assert table.shape[1] == len(names)
    return CategoricalData(table[:, :-1], table[:, -1].astype(str), names[:-1], levels[:-1], levels[-1])


@cache
def newsgroups(part: str) -> tuple[sp.csr_matrix, np.ndarray]:
    """Word counts and topics of the four-category split of 20 newsgroups; `part` is "train" or "test"."""
    n_words = len(path_of("20ng/4cat_vocab.txt").read_text().splitlines())
    data, indices, indptr, labels = [], [], [0], []
    for line in path_of(f"20ng/4cat_{part}.counts.tsv").read_text().splitlines():
        label, _, words = line.partition("\t")
        pairs = [word.partition(":") for word in words.split()]
        indices += [int(word) for word, _, _ in pairs]
        data += [int(count or 1) for _, _, count in pairs]
        indptr.append(len(indices))
        labels.append(label)
    return sp.csr_matrix((data, indices, indptr), shape=(len(labels), n_words)), np.array(labels)


@cache
def sms() -> tuple[list[str], np.ndarray]:
    """Messages and their labels, "ham" or "spam"."""
    lines = path_of("sms_spam.tsv").read_text(encoding="utf-8").splitlines()
    labels, messages = zip(*(line.split("\t", 1) for line in lines), strict=True)
    return list(messages), np.array(labels)


@cache
def watermelon() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The 17 melons: an object array of six categorical and two real columns, labels and column names."""
    with path_of("watermelon3.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    X = np.array([[*row[1:7], float(row[7]), float(row[8])] for row in rows], dtype=object)
    return X, np.array([row[9] for row in rows]), header[1:9]
