"""The estimates side by side, as training rows come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from bayesnb._util.arguments import shown
from bayesnb._util.progress import progress as progress_bar
from bayesnb._util.rows import take_rows
from bayesnb.evaluation import estimates
from bayesnb.evaluation.compare import paired
from bayesnb.evaluation.resampling import nested_splits, standard_error
from bayesnb.evaluation.scores import average, summarize
from bayesnb.fitted import Classifier

if TYPE_CHECKING:
    import pandas as pd


def learning_curve(
    nb: Classifier,
    X: Any,
    y: Any,
    sizes: Iterable[int],
    repeats: int = 30,
    seed: int = 0,
    *,
    priors: Mapping[str, Any] | None = None,
    baselines: Mapping[str, Any] | Iterable[Any] = (),
    progress: str | None = "learning curve",
) -> pd.DataFrame:
    """Maximum likelihood beside the Bayesian estimates, over the number of training rows.

    Parameters
    ----------
    nb : classifier of bayesnb
        Its hyperparameters are used; it is neither changed nor has it to be fitted.
    X : array, sparse matrix or DataFrame of shape (N, F)
    y : (N,) array-like
    sizes : increasing integers
        Rows of *each class* to fit: 3 is three rows of every class.
    repeats : int, default 30
        Random draws of training rows, 2 or more.
    seed : int, default 0
    priors, baselines
        As for `compare_estimates`.
    progress : str or None
        Title of a progress bar on a terminal or in a notebook, shown after a second.

    Returns
    -------
    DataFrame
        One row a size and estimate. size and estimate; repeats; the means of `scores` over repeats (of the
        numbers of rows too; inf stays inf); brier_difference, less that of "mle" on the same split; brier_se,
        log_loss_clipped_se and brier_difference_se, sd/√repeats; same_as, the first estimate that agrees with this one
        to 1e-12 at every size in every repeat, "" if there is none before it.

    Raises
    ------
    ValueError
        If a class has no more rows than the largest size, which would leave none to test; if `sizes` do not
        increase or `repeats` is less than 2; if the data or a hyperparameter cannot be used.

    Notes
    -----
    In each repeat the training sets contain each other (the counts of a smaller one are added to, not made
    anew), and the rows that the largest leaves over test every size: along the curve only the training rows
    change. See `bayesnb.evaluation.nested_splits`. Every class has as many training rows as any other, while
    the rows tested are as they come: where classes are not equally frequent, all estimates learn class
    probabilities that are not those of the test.

    Standard errors are of the draw of rows from these N. For other data sets they are right as long as repeats share
    few rows, and too small beyond: of 120 data sets of three simulated classes, 50 rows each, that of brier_difference
    in 20 repeats was .98, .94, .74 and .51 of the standard deviation over data sets, at 3, 10, 20 and 40 rows a class.
    (The correction of Nadeau and Bengio that `compare_estimates` has is for splits of which most rows are fitted; here
    it came to 8.0, 4.3, 2.5 and 1.2.)

    Examples
    --------
    >>> from bayesnb import GaussianNB, learning_curve
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = learning_curve(GaussianNB(), X, y, sizes=[3, 20], repeats=5)
    >>> found.pivot(index="size", columns="estimate", values="log_loss").round(2)
    estimate   map  mean   mle  predictive
    size
    3         0.19  0.11  0.54        0.11
    20        0.13  0.11  0.12        0.11
    """
    priors, named = estimates.named(priors, baselines)
    names = estimates.row_names(nb, priors, named)
    sizes = _increasing(sizes)
    classes, y = estimates.labels(X, y, type(nb).__name__)
    splits = nested_splits(y, sizes[-1], repeats, seed)
    found: dict[int, dict[str, list[dict[str, float]]]] = {size: {name: [] for name in names} for size in sizes}
    same = np.ones((len(names), len(names)), bool)
    learns_more = not hasattr(clone(nb), "partial_fit") or nb.unweighted is not nb
    steps = len(splits) * len(sizes) * (len(names) + 1)
    with progress_bar(progress, steps) as tick, estimates.warn_once():
        for order, test in splits:
            X_test, y_test = take_rows(X, test), y[test]
            fitted, counted = clone(nb), 0
            for size in sizes:
                train = order[: len(classes) * size]
                if not learns_more:
                    fitted.partial_fit(take_rows(X, train[counted:]), y[train[counted:]], classes=classes)
                else:  # more than counts is learned, such as a tree or weights: from all rows at once
                    fitted.fit(take_rows(X, train), y[train])
                counted = len(train)
                others = estimates.fit_baselines(named, take_rows(X, train), y[train])
                tick()
                fits = estimates.alternatives(fitted, priors)
                predictions = estimates.predict(fits, others, names, X_test, classes, tick)
                for name, p in predictions.items():
                    found[size][name].append(summarize(p.score(y_test, classes)))
                same &= estimates.coincidences(predictions)
    return _tidy(found, estimates.same_as(names, same))


def _tidy(found: Mapping[int, Mapping[str, Sequence[dict[str, float]]]], same_as: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for size, of_size in found.items():
        for (name, mine), same in zip(of_size.items(), same_as, strict=True):
            difference = paired(mine, of_size["mle"], "brier")
            rows.append(
                {
                    "size": size,
                    "estimate": name,
                    "repeats": len(mine),
                    **average(mine),
                    "brier_se": standard_error(np.array([part["brier"] for part in mine])),
                    "log_loss_clipped_se": standard_error(np.array([part["log_loss_clipped"] for part in mine])),
                    "brier_difference": float(np.mean(difference)),
                    "brier_difference_se": standard_error(difference),
                    "same_as": same,
                }
            )
    return pd.DataFrame(rows)


def _increasing(sizes: Iterable[int]) -> list[int]:
    given: list[Any] = list(sizes) if isinstance(sizes, Iterable) else []
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0 for n in given)
    if not given or not whole or any(a >= b for a, b in pairwise(given)):
        raise ValueError(
            f"sizes={shown(sizes)} must be positive integers that increase: rows of each class, such as [3, 10]."
        )
    return [int(n) for n in given]
