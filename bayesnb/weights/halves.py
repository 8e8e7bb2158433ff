"""Random halves of the rows, by which choices are scored on rows that have not made them.

Halves consist of units: groups of rows, sets of copies of a row, and rows that are alone. Weights are sizes of units: a
row of weight 2 is one unit.
"""

from __future__ import annotations

import numpy as np

N_SPLITS, _MOST_SPLITS, _MANY_ROWS = 3, 6, 3_000


def number_of_splits(unit: np.ndarray) -> int:
    """Return the number of splits into halves: 3,000 divided by the number of units, at least 3 and at most 6.

    `unit` is the (N,) index of the unit of each row.
    """
    return max(N_SPLITS, min(_MOST_SPLITS, _MANY_ROWS // max(1, len(np.unique(unit)))))


def count_events(label: np.ndarray, weight: np.ndarray, unit: np.ndarray) -> float:
    """Return the number of units outside the largest class; one of weight below 1 there counts as its weight.

    `label`, `weight` and `unit` (N,) are the class, the replication count and the unit of each row.
    """
    outside = label != np.argmax(np.bincount(label, weight, minlength=1))
    return float(np.minimum(np.bincount(unit[outside], weight[outside]), 1.0).sum())


def random_halves(label: np.ndarray, n_splits: int, seed: int, unit: np.ndarray | None = None) -> np.ndarray:
    """Draw random splits of N rows into halves of the units of the rows, stratified by class; see `class_of_units`.

    Parameters
    ----------
    label : (N,) int array
        Index of the class of each row.
    n_splits, seed : int
        Number of splits S, and seed of the random numbers.
    unit : (N,) int array, optional
        Index of the unit of each row, from 0 on. Default: each row is a unit.

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
    return random_places(label, n_splits, seed, unit) % 2 == 0


def random_places(label: np.ndarray, n_splits: int, seed: int, unit: np.ndarray | None = None) -> np.ndarray:
    """Return the places (S, N), from 0 on, of the units of N rows in S random orders that are sorted by class.

    The arguments are those of `random_halves`.
    """
    unit = np.arange(len(label)) if unit is None else unit
    stratum = class_of_units(label, unit)
    rng, place = np.random.default_rng(seed), np.empty((n_splits, len(stratum)), int)
    for places in place:
        order = rng.permutation(len(stratum))
        places[order[np.argsort(stratum[order], kind="stable")]] = np.arange(len(stratum))
    return place[:, unit]


def class_of_units(label: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return for each of U units (U,) the class among its rows that has the fewest rows in all, for stratification.

    A rare class is so divided between the halves, also where most rows of its units are of a frequent class.

    Parameters
    ----------
    label, unit : (N,) int arrays
        Index of the class and of the unit of each row. Each of the U units has a row.
    """
    rarest_first = np.argsort(np.bincount(label), kind="stable")
    first = np.full(unit.max() + 1, len(rarest_first))
    np.minimum.at(first, unit, np.argsort(rarest_first)[label])
    return np.asarray(rarest_first[first])


def have_several_units(label: np.ndarray, unit: np.ndarray, n_classes: int) -> np.ndarray:
    """Return (C,) whether the rows of each class, with `label` and `unit` (N,), are in two units or more."""
    least, greatest = np.full(n_classes, len(unit)), np.full(n_classes, -1)
    np.minimum.at(least, label, unit)
    np.maximum.at(greatest, label, unit)
    return np.asarray(greatest > least)


def sample_rows(label: np.ndarray, most: int, seed: int, unit: np.ndarray) -> np.ndarray:
    """Return positions, in ascending order, of the rows of classes of several units: all, or a stratified sample.

    Parameters
    ----------
    label : (N,) int array
        Index of the class of each row.
    most, seed : int
        Most rows to choose, and seed of the sample.
    unit : (N,) int array
        Index of the unit of each row.
    """
    position = np.flatnonzero(have_several_units(label, unit, int(label.max()) + 1)[label])
    if len(position) <= most:
        return position
    order = np.random.default_rng(seed).permutation(position)
    order = order[np.argsort(label[order], kind="stable")]
    return np.sort(order[np.linspace(0, len(order) - 1, most).astype(int)])


def mean_of_units(values: np.ndarray, weight: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted means (F,) of values (N, F), and their variances (F,) for independent units.

    `weight` and `unit` (N,) are the replication count and the unit of each row.
    """
    mean, (distinct, index) = weight @ values / weight.sum(), np.unique(unit, return_inverse=True)
    of_units = np.zeros((len(distinct), values.shape[1]))
    np.add.at(of_units, index, weight[:, None] * (values - mean))
    return mean, (of_units**2).sum(axis=0) / weight.sum() ** 2
