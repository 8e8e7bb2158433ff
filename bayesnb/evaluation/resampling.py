"""Random splits of labelled rows, and standard errors of differences over them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bayesnb._util.arguments import require_integer, require_number, require_seed
from bayesnb.encoding import check_labels


def stratified_splits(
    y: object, repeats: int, test_size: float = 0.3, seed: int = 0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw `repeats` random splits into rows to fit and rows to test, stratified by class.

    Parameters
    ----------
    y : (N,) array-like
        Labels.
    repeats : int
        Number of splits, independent of each other.
    test_size : float in (0, 1)
        Share of each class that is tested, rounded; at least one row, and at most all but one.
    seed : int
        The same seed gives the same splits.

    Returns
    -------
    list of (train, test)
        Indices of rows; their numbers are the same in each split.

    Raises
    ------
    ValueError
        If `test_size` or `repeats` is out of range, or a class has fewer than two rows.

    Examples
    --------
    >>> from bayesnb.evaluation import stratified_splits
    >>> train, test = stratified_splits(["a"] * 6 + ["b"] * 4, repeats=2, test_size=0.5)[0]
    >>> len(train), len(test), sum(test < 6)  # half of the rows, and of the rows of "a"
    (5, 5, np.int64(3))
    """
    wanted = "between 0 and 1: the share of each class to test, such as 0.3"
    test_size = require_number("test_size", test_size, wanted, lambda share: 0 < share < 1)
    splits = []
    for orders in _shuffled_classes(y, repeats, seed, 2, "one to fit and one to test. Leave out classes with few rows"):
        parts = [np.split(g, [min(max(round(test_size * len(g)), 1), len(g) - 1)]) for g in orders]
        test, train = (np.sort(np.concatenate(rows)) for rows in zip(*parts, strict=True))
        splits.append((train, test))
    return splits


def nested_splits(y: object, largest: int, repeats: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw random splits with `largest` rows of each class to fit, in nested training sets, and the rest to test.

    Parameters
    ----------
    y : (N,) array-like
        Labels, of C classes.
    largest : int
        Largest number of rows of each class to fit.
    repeats : int
        Number of splits, independent of each other.
    seed : int
        The same seed gives the same splits.

    Returns
    -------
    list of (order, test)
        Indices of rows. The first C·n of the C·`largest` rows in `order` are n rows of each class, for every n:
        training sets that contain each other. `test` has the other N - C·`largest` rows.

    Raises
    ------
    ValueError
        If a class has no more than `largest` rows, or `repeats` is out of range.

    Examples
    --------
    >>> from bayesnb.evaluation import nested_splits
    >>> order, test = nested_splits(["a"] * 3 + ["b"] * 3, largest=2, repeats=2)[0]
    >>> order < 3, len(test)  # rows of "a" and of "b" in turn
    (array([ True, False,  True, False]), 2)
    """
    splits = []
    meaning = (
        f"{largest} to fit and one to test. Choose fewer rows of each class to fit (`sizes` of learning_curve, "
        "`largest` of nested_splits), or leave out classes with few rows"
    )
    for orders in _shuffled_classes(y, repeats, seed, largest + 1, meaning):
        order = np.stack([g[:largest] for g in orders], axis=1).ravel()
        splits.append((order, np.sort(np.concatenate([g[largest:] for g in orders]))))
    return splits


def standard_error(values: np.ndarray) -> float:
    """Standard error sd/√n of the mean of n independent values; NaN if n is 1."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def corrected_error(differences: np.ndarray, n_train: int, n_test: int) -> float:
    """Standard error of a mean difference over K random splits of the same rows, by the corrected resampled t.

    Parameters
    ----------
    differences : (K,) array
        Mean difference of two scores in each split.
    n_train, n_test : int
        Numbers of rows that are fitted and tested in each split.

    Returns
    -------
    float
        Standard error of the mean of the differences.

    Notes
    -----
    √((1/K + n_test/n_train) s²), with s² the variance of the differences over splits: Nadeau and Bengio,
    "Inference for the generalization error", Machine Learning 52 (2003), section 4. Splits share rows, so
    that s²/K is too small. Compare with t of K - 1 degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb.evaluation import corrected_error
    >>> differences = np.array([-0.02, 0.01, -0.03, -0.01])  # of four splits of the same rows
    >>> round(corrected_error(differences, n_train=70, n_test=30), 4)
    0.0141
    >>> round(differences.std(ddof=1) / 4**0.5, 4)  # as if splits shared no rows
    np.float64(0.0085)
    """
    return float(np.sqrt((1 / len(differences) + n_test / n_train) * np.var(differences, ddof=1)))


def _shuffled_classes(y: object, repeats: int, seed: int, least: int, meaning: str) -> Iterator[list[np.ndarray]]:
    """Yield `repeats` times the row indices of each class, shuffled; ValueError if a class has fewer than `least`.

    `meaning` explains `least` in the message, and what to do.
    """
    require_integer("repeats", repeats, least=2)
    require_seed(seed)
    classes, label = check_labels(y, None, "A stratified split")
    count = np.bincount(label, minlength=len(classes))
    if (count < least).any():
        c, n = int(count.argmin()), int(count.min())
        rows = "1 row" if n == 1 else f"{n} rows"
        raise ValueError(f"y: class {classes.values[c]!r} has {rows}; it needs {least}, {meaning}.")
    groups = [np.flatnonzero(label == c) for c in range(len(classes))]
    rng = np.random.default_rng(seed)
    for _ in range(repeats):
        yield [rng.permutation(g) for g in groups]
