"""Partial pooling: groups of rows, such as sites, whose parameters have a common distribution."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from bayesnb import counting
from bayesnb._util.arguments import shown
from bayesnb.encoding import check_weights
from bayesnb.encoding.levels import Levels
from bayesnb.fitted import Fitted
from bayesnb.model import Statistics
from bayesnb.uncertainty.given_draws import NEW_GROUP, read_groups


def count_groups(
    fitted: Fitted, X: object, y: object, sample_weight: object, groups: object
) -> tuple[list[str], Statistics]:
    """Count the sufficient statistics of each group of rows.

    Parameters
    ----------
    fitted : Fitted
        State of the classifier that was fitted to the same rows.
    X, y, sample_weight
        Rows, labels and weights that were counted.
    groups : (N,) array-like
        Group of each row.

    Returns
    -------
    names : list of str
        Names of the G groups, and `NEW_GROUP`.
    statistics : Statistics
        Arrays with a leading axis of G + 1 groups; the last group has no rows.

    Raises
    ------
    ValueError
        If `groups` does not have a name for each row, if names are equal as text, or if the rows are not those that
        were counted, as far as counts show it.
    """
    if X is None or y is None:
        raise ValueError("run_nuts: groups= needs rows. Pass X and y, the rows and labels of the fit, as well.")
    rows, n = fitted.encode(X)
    label = fitted.label_index(y, n)
    weight = check_weights(sample_weight, n)
    names, group = read_groups(groups, n, "run_nuts")
    if len(set(names)) < len(names) or NEW_GROUP in names:
        problem = f"two groups have the same name after str(), or one has the reserved name {NEW_GROUP!r}"
        raise ValueError(f"groups: {problem}. Rename groups; the names are {shown(names)}.")
    n_classes, n_groups = len(fitted.encoding.classes), len(names) + 1
    # Pairs of a group and a class are counted as classes.
    pairs = replace(fitted.encoding, classes=Levels(tuple(range(n_groups * n_classes))))
    counted = counting.count_rows(pairs, rows, group * n_classes + label, weight)
    class_count, blocks = jax.tree.map(
        lambda v: v.reshape(n_groups, n_classes, *v.shape[1:]), (counted.class_count, counted.blocks)
    )
    statistics = Statistics(class_count, blocks, np.zeros(n_groups))

    def counts(s: Statistics) -> list[np.ndarray]:
        """Counts of classes, and of each block."""
        return [s.class_count, *(block.count for block in s.blocks)]

    pairs_of_counts = zip(counts(statistics), counts(fitted.statistics), strict=True)
    if not all(np.allclose(v.sum(axis=0), expected) for v, expected in pairs_of_counts):
        raise ValueError(
            "run_nuts: counts of X and y do not add up to those of the classifier. Pass the rows of the fit."
        )
    return [*names, NEW_GROUP], statistics
