"""Maximum likelihood and the Bayesian estimates compared over the number of training rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pandas as pd
from sklearn.base import clone

from bayesnb._util.arguments import bad_argument
from bayesnb._util.arrays import take_rows
from bayesnb._util.warnings import internal_fits
from bayesnb.evaluation.compare import MLE, paired_differences
from bayesnb.evaluation.estimates import Fit, TableRows, labels
from bayesnb.evaluation.resampling import nested_splits, standard_error
from bayesnb.evaluation.scores import average, summarize
from bayesnb.fitted.state import Classifier

_WITH_ERROR = ("brier", "log_loss_clipped")


def learning_curve(
    nb: Classifier,
    X: object,
    y: object,
    sizes: Iterable[int],
    repeats: int = 30,
    seed: int = 0,
    *,
    priors: Mapping[str, object] | None = None,
    baselines: Mapping[str, object] | Iterable[object] = (),
    progress: str | None = "learning curve",
) -> pd.DataFrame:
    """Compare maximum likelihood and the Bayesian estimates over the number of training rows.

    Parameters
    ----------
    nb : classifier of bayesnb
        A classifier, fitted or not, whose hyperparameters are used; it is not changed.
    X : array, sparse matrix or DataFrame of shape (N, F)
        Rows to fit and to test.
    y : (N,) array-like
        Labels of the rows.
    sizes : increasing integers
        Numbers of rows of *each class* to fit: 3 is three rows of every class.
    repeats : int, default 30
        Number of random draws of training rows, 2 or more.
    seed : int, default 0
        Seed of these draws.
    priors : dict of str to alpha, optional
        Further rows with the predictive of the same classifier under other concentrations, by name, such as
        {"Jeffreys": 0.5, "Perks": "1/L"}; "1/L" is one over the number of levels of each feature.
    baselines : dict of str to classifier, or iterable of classifiers, optional
        Further rows for any classifiers of scikit-learn: {"logistic": LogisticRegression()}. Without names, their names
        are their `repr`.
    progress : str or None
        Title of a progress bar on a terminal or in a notebook, shown after a second.

    Returns
    -------
    DataFrame
        One row for each size and estimate. Columns:

        size, estimate, repeats
            training rows of each class, name of the estimate, and number of repeats.
        scores
            means over repeats of the scores of `bayesnb.evaluation.scores`, of the numbers of rows too; inf stays inf.
        brier_difference
            Brier score minus that of "mle" on the same split.
        brier_se, log_loss_clipped_se, brier_difference_se
            standard errors, sd/√repeats.
        same_as
            the first estimate before this one that agrees with it to 1e-12 at every size in every repeat; "" if there
            is none.

    Raises
    ------
    ValueError
        If a class has no more rows than the largest size, which would leave none to test; if `sizes` do not
        increase or `repeats` is less than 2; if the data or a hyperparameter cannot be used.

    Notes
    -----
    In each repeat the training sets are nested (rows are added to the counts of a smaller set), and all sizes are
    tested on the rows outside the largest set: along the curve only the training rows change. See
    `bayesnb.evaluation.nested_splits`. Every class has the same number of training rows, but the test rows have the
    classes' own frequencies: where these differ, all estimates learn class probabilities that are not those of the
    test.

    Standard errors describe the draw of rows from these N. As errors for other data sets they are right if repeats
    share few rows, and too small otherwise. In 120 simulated data sets of three classes with 50 rows each, the standard
    error of brier_difference over 20 repeats was .98, .94, .74 and .51 of the standard deviation over data sets, at 3,
    10, 20 and 40 rows per class. (The correction of Nadeau and Bengio in `compare_estimates` is for splits that fit
    most rows; here the same ratios would be 8.0, 4.3, 2.5 and 1.2.)

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
    rows = TableRows.read(nb, priors, baselines)
    sizes = _increasing(sizes)
    classes, y = labels(X, y, type(nb).__name__)
    splits = nested_splits(y, sizes[-1], repeats, seed)
    # More than counts is learned, such as a tree or weights: from all rows at once.
    refits = not hasattr(clone(nb), "partial_fit") or nb.unweighted is not nb

    def fits() -> Iterator[Fit]:
        """Yield the fit to each number of rows of each split, with its rows to test; counts are added if possible."""
        for order, test in splits:
            X_test, y_test = take_rows(X, test), y[test]
            fitted, counted = clone(nb), 0
            for size in sizes:
                train = order[: len(classes) * size]
                X_train, y_train = take_rows(X, train), y[train]
                with internal_fits():
                    if refits:
                        fitted.fit(X_train, y_train)
                    else:
                        fitted.partial_fit(take_rows(X, train[counted:]), y_train[counted:], classes=classes)
                    baselines = rows.fit_baselines(X_train, y_train)
                counted = len(train)
                yield fitted, baselines, X_test, y_test

    parts = []
    for scored, _ in rows.score(fits(), len(splits) * len(sizes), classes, progress):
        parts.append({name: summarize(scores) for name, scores in scored.items()})
    table = []
    for i, size in enumerate(sizes):
        of_size = parts[i :: len(sizes)]
        for name, same in zip(rows.names, rows.same_as(), strict=True):
            scores = [part[name] for part in of_size]
            difference = paired_differences(scores, [part[MLE] for part in of_size], "brier")
            errors = {f"{s}_se": standard_error(np.array([part[s] for part in scores])) for s in _WITH_ERROR}
            errors |= {"brier_difference": difference.mean(), "brier_difference_se": standard_error(difference)}
            row = {"size": size, "estimate": name, "repeats": len(scores), **average(scores), **errors, "same_as": same}
            table.append(row)
    return pd.DataFrame(table)


def _increasing(sizes: Iterable[int]) -> list[int]:
    """Return the sizes as a list; raise ValueError unless they are positive integers that increase."""
    values = np.array(list(sizes) if isinstance(sizes, Iterable) else [])
    if values.dtype.kind not in "iu" or values.ndim != 1 or (np.diff(values, prepend=0) <= 0).any():
        wanted = "increasing positive integers, the numbers of rows of each class, such as [3, 10]"
        raise bad_argument("sizes", sizes, wanted)
    return [int(n) for n in values]
