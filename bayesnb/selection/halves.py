"""Random halves of the rows, by which choices are scored on rows that have not made them."""

from __future__ import annotations

import numpy as np

N_SPLITS, _MOST_SPLITS, _MANY_ROWS = 3, 6, 3_000


def number_of_splits(n_rows: int) -> int:
    """Return the number of splits into halves: 3,000 divided by the number of rows, at least 3 and at most 6."""
    return max(N_SPLITS, min(_MOST_SPLITS, _MANY_ROWS // max(1, n_rows)))


def random_halves(label: np.ndarray, n_splits: int, seed: int) -> np.ndarray:
    """Draw random splits of N rows into halves, stratified by class.

    Parameters
    ----------
    label : (N,) int array
        Index of the class of each row.
    n_splits, seed : int
        Number of splits S, and seed of the random numbers.

    Returns
    -------
    (S, N) array of bool
        Whether each row is in the first half of each split.

    Examples
    --------
    >>> import numpy as np
    >>> halves = random_halves(np.array([0, 0, 0, 0, 1, 1]), n_splits=2, seed=0)
    >>> halves[:, :4].sum(axis=1), halves[:, 4:].sum(axis=1)
    (array([2, 2]), array([1, 1]))
    """
    rng, first_halves = np.random.default_rng(seed), np.zeros((n_splits, len(label)), bool)
    for half in first_halves:
        order = rng.permutation(len(label))
        half[order[np.argsort(label[order], kind="stable")][::2]] = True
    return first_halves


def sample_rows(label: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Return positions, in ascending order, of the rows of classes of several rows: all, or a stratified sample.

    Parameters
    ----------
    label : (N,) int array
        Index of the class of each row.
    most, seed : int
        Most rows to choose, and seed of the sample.
    """
    position = np.flatnonzero(np.bincount(label)[label] > 1)
    if len(position) <= most:
        return position
    order = np.random.default_rng(seed).permutation(position)
    order = order[np.argsort(label[order], kind="stable")]
    return np.sort(order[np.linspace(0, len(order) - 1, most).astype(int)])
