"""Inputs of the benchmarks, the same for both libraries."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def categorical(n: int, columns: int = 30, levels: int = 8, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """(n, columns) int64 levels, and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    return rng.integers(0, levels, (n, columns)), y


def witnesses(n: int, columns: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """(n, columns) levels of which each tenth tells the class, three columns the same at a time, and labels."""
    X, y = categorical(n, columns)
    told = np.random.default_rng(1).random((n, -(-columns // 3))) < 0.1
    return np.where(np.repeat(told, 3, axis=1)[:, :columns], y[:, None], X), y


def gaussian(n: int, columns: int = 30, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """(n, columns) float64, class means a tenth apart, and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    X = rng.normal(size=(n, columns))
    X += 0.1 * y[:, None]
    return X, y


def text(
    n: int, words: int = 50_000, classes: int = 20, *, exponent: float = 1.05, length: float = 60.2
) -> tuple[sp.csr_matrix, np.ndarray]:
    """(n, words) bag of words of a mean length, frequencies after Zipf's law: about 47 distinct words a row."""
    rng = np.random.default_rng(0)
    frequency = 1.0 / np.arange(1, words + 1) ** exponent
    tokens = int(length * n)
    row = np.sort(rng.integers(0, n, tokens))
    word = rng.choice(words, tokens, p=frequency / frequency.sum())
    X = sp.csr_matrix((np.ones(tokens), (row, word)), shape=(n, words))
    X.sum_duplicates()
    return X, rng.integers(0, classes, n)


def messages(n: int, words: int = 8_700) -> tuple[sp.csr_matrix, np.ndarray]:
    """(n, words) short messages of about 13 distinct words, of two classes that use half of the words differently."""
    rng = np.random.default_rng(0)
    frequency = 1.0 / np.arange(1, words + 1) ** 1.05
    y = rng.integers(0, 2, n)
    other = frequency.copy()
    other[1::2] = other[1::2][rng.permutation(len(other[1::2]))]
    row = np.repeat(np.arange(n), 15)
    draws = [rng.choice(words, len(row), p=p / p.sum()) for p in (frequency, other)]
    X = sp.csr_matrix((np.ones(len(row)), (row, np.where(y[row] == 0, *draws))), shape=(n, words))
    X.sum_duplicates()
    return X, y


def genotypes(n: int, columns: int, relevant: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """(n, columns) int8 numbers of copies, 0 to 2, of a rare variant; in two classes a few are unlike."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    frequency = rng.uniform(0.05, 0.5, columns)
    p = np.broadcast_to(frequency, (2, columns)).copy()
    p[1, :relevant] = np.clip(p[1, :relevant] + 0.2, 0.0, 1.0)
    X = np.empty((n, columns), np.int8)
    for i in range(n):
        X[i] = rng.binomial(2, p[y[i]])
    return X, y
