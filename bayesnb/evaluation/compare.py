"""Maximum likelihood and the Bayesian estimates compared by their scores on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from bayesnb._util.arrays import take_rows
from bayesnb._util.warnings import internal_fits
from bayesnb.evaluation import estimates
from bayesnb.evaluation.estimates import Fit, TableRows
from bayesnb.evaluation.resampling import corrected_error, standard_error, stratified_splits
from bayesnb.evaluation.scores import RowScores, average, pool, summarize
from bayesnb.fitted.state import Classifier

Split = tuple[object, object, object, object]
"""Rows to fit and their labels, rows to test and their labels."""
DIFFERENCES = {"brier": "brier", "log_loss": "log_loss_clipped"}
MLE = "mle"


def compare_estimates(
    nb: Classifier,
    X: object,
    y: object,
    X_test: object = None,
    y_test: object = None,
    priors: Mapping[str, object] | None = None,
    baselines: Mapping[str, object] | Iterable[object] = (),
    *,
    against: str = MLE,
    repeats: int | None = None,
    test_size: float = 0.3,
    seed: int = 0,
    progress: str | None = "estimates",
) -> pd.DataFrame:
    """Compare maximum likelihood and the Bayesian estimates by their scores on held-out rows.

    Parameters
    ----------
    nb : classifier of bayesnb
        A classifier, fitted or not, whose hyperparameters are used; it is not changed. For a `WeightedNB` the
        estimates are those of its estimator, and one more row has the predictions with weights.
    X, y : array-likes
        Rows to fit, and their labels; with `repeats` all rows.
    X_test, y_test : array-likes, optional
        Rows to score, and their labels.
    priors : dict of str to alpha, optional
        Further rows with the predictive of the same classifier under other concentrations, such as
        {"Laplace": 1, "Jeffreys": 0.5, "Perks": "1/L"}; "1/L" is one over the number of levels of each
        feature, or over the number of words for counts of words. Levels are those declared, or else those of the
        rows fitted. Not for classifiers without `alpha`.
    baselines : dict of str to classifier, or iterable of classifiers, optional
        Further rows for any classifiers of scikit-learn: {"logistic": LogisticRegression()}. Without names, their
        names are their `repr`.
    against : str, default "mle"
        Row that is subtracted in the differences; "predictive" shows the effect of weights.
    repeats : int, optional
        Number of random splits of (X, y), 2 or more, in place of `X_test`; they are stratified, see
        `bayesnb.evaluation.stratified_splits`.
    test_size : float, default 0.3
        Share of each class that is tested in each split.
    seed : int, default 0
        Seed of the splits.
    progress : str, optional
        Title of a progress bar on a terminal or in a notebook, shown after a second; None: no bar.

    Returns
    -------
    DataFrame
        One row for each estimate, indexed by its name: "mle", "map", "mean", "predictive"; for a `WeightedNB`
        "weighted"; then `priors`, whose terms have no weights, and `baselines`. Columns:

        `scores`
            the scores of `bayesnb.evaluation.scores`; with `repeats` their means over the splits, also of the numbers
            of rows. Confidence is the accuracy that the probabilities state; the observed accuracy stands beside it.
            In rows where an estimate has no probabilities (`undefined_rows`) the predicted label is the most probable
            one a priori, as in `predict`.
        brier_difference, log_loss_difference
            mean score minus that of the row `against`, paired by row; a negative difference is an improvement. The log
            loss is the clipped one, as the strict log loss may be infinite.
        brier_difference_se, log_loss_difference_se
            standard errors of these differences, see Notes.
        log_evidence
            log evidence of (X, y) under the prior of the row, with `repeats` the mean over the rows
            fitted in each split; NaN for "mle", "weighted" and baselines, which have none.
        same_as
            the first row before this one whose probabilities of every class agree with those of this row to 1e-12 (in
            every split); "" if there is none.

    Raises
    ------
    ValueError
        If the data or a hyperparameter cannot be used; if both or neither of test rows and `repeats` are
        given; if `against` is not a row of the table.

    Notes
    -----
    With one set of test rows the standard error is sd/√n over the differences of these rows. It describes
    these fits on other test rows, and not how fits to other training rows would differ. With `repeats` it is the
    corrected resampled t of Nadeau and Bengio (2003), √((1/K + n_test/n_train) s²), with s² the variance of
    the difference over the K splits, to be compared with t of K - 1 degrees of freedom: it describes fits to
    other training rows too.

    Examples
    --------
    Three rows of each class to learn from, the others to test: maximum likelihood is certain, and wrong.

    >>> from bayesnb import GaussianNB, compare_estimates
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = compare_estimates(GaussianNB(), X[::17], y[::17], X[1::17], y[1::17])
    >>> found[["log_loss", "accuracy", "confidence"]].round(3)
                log_loss  accuracy  confidence
    estimate
    mle              inf     0.667       1.000
    map            0.771     0.889       0.961
    mean           0.179     0.889       0.944
    predictive     0.135     0.889       0.925
    """
    rows = TableRows.read(nb, priors, baselines)
    rows.require(against)
    if (X_test is None) != (y_test is None) or (X_test is None) == (repeats is None):
        raise ValueError("Pass either both X_test and y_test, or repeats=K for K random splits of X and y.")
    classes, y = estimates.labels(X, y, type(nb).__name__)
    if repeats is None:
        _, y_test = estimates.labels(X_test, y_test, type(nb).__name__, "_test")
        ((scored, readings),) = rows.score(_fit_each(nb, rows, [(X, y, X_test, y_test)]), 1, classes, progress)
        return Scored(scored, rows, estimates.log_evidence(readings)).table(against)
    splits = stratified_splits(y, repeats, test_size, seed)
    fits = _fit_each(nb, rows, _split_rows(X, y, splits))
    summaries: dict[str, list[dict[str, float]]] = {name: [] for name in rows.names}
    evidences: list[dict[str, float]] = []
    for scored, readings in rows.score(fits, len(splits), classes, progress):
        evidences.append(estimates.log_evidence(readings))
        for name, scores in scored.items():
            summaries[name].append(summarize(scores))
    evidence = {name: float(np.mean([e.get(name, np.nan) for e in evidences])) for name in rows.names}

    def difference(name: str, score: str) -> tuple[float, float]:
        values = paired_differences(summaries[name], summaries[against], score)
        return float(np.mean(values)), corrected_error(values, *map(len, splits[0]))

    return _table({name: average(scores) for name, scores in summaries.items()}, difference, evidence, rows)


def compare_folds(
    nb: Classifier,
    X: object,
    y: object,
    folds: Iterable[tuple[np.ndarray, np.ndarray]],
    priors: Mapping[str, object] | None = None,
    baselines: Mapping[str, object] | Iterable[object] = (),
    progress: str | None = "estimates",
    *,
    against: str = MLE,
) -> pd.DataFrame:
    """Compare maximum likelihood and the Bayesian estimates on the pooled held-out rows of several splits.

    Parameters
    ----------
    nb : classifier of bayesnb
        Classifier, fitted or not, whose hyperparameters are used; it is not changed.
    X : array, sparse matrix or DataFrame of shape (N, F)
        Rows to fit and to test.
    y : (N,) array-like
        Labels of the rows.
    folds : iterable of (train, test)
        Indices of the rows, such as `StratifiedKFold().split(X, y)` yields.
    priors : dict of str to alpha, optional
        Further rows with the predictive of the same classifier under other concentrations, by name; "1/L" is one over
        the number of levels of each feature.
    baselines : dict of str to classifier, or iterable of classifiers, optional
        Further rows for any classifiers of scikit-learn.
    progress : str, optional
        Title of a progress bar on a terminal or in a notebook, shown after a second; None: no bar.
    against : str, default "mle"
        Row of the table that is subtracted in the differences.

    Returns
    -------
    DataFrame
        The table of `compare_estimates`, with the log evidence of all rows. The standard errors are sd/√n over the
        pooled rows, as if these were independent: they ignore that rows are scored by the same fit, or by fits to
        nearly the same rows.

    Examples
    --------
    >>> from bayesnb import GaussianNB
    >>> from bayesnb.evaluation import compare_folds
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import StratifiedKFold
    >>> X, y = load_iris(return_X_y=True)
    >>> found = compare_folds(GaussianNB(), X, y, StratifiedKFold(5).split(X, y))  # each row held out once
    >>> found[["brier", "log_loss", "log_loss_difference", "log_loss_difference_se"]].round(3)
                brier  log_loss  log_loss_difference  log_loss_difference_se
    estimate
    mle         0.079     0.135                0.000                   0.000
    map         0.080     0.141                0.006                   0.003
    mean        0.078     0.132               -0.004                   0.002
    predictive  0.078     0.130               -0.005                   0.003
    """
    rows, folds = TableRows.read(nb, priors, baselines), list(folds)
    rows.require(against)
    classes, y = estimates.labels(X, y, type(nb).__name__)
    with internal_fits():
        evidence = estimates.log_evidence(rows.readings(clone(nb).unweighted.fit(X, y)))
    fits = _fit_each(nb, rows, _split_rows(X, y, folds))
    return Scored.pool(rows.score(fits, len(folds), classes, progress), rows, evidence).table(against)


def compare_fitted(
    nb: Classifier,
    parts: Iterable[tuple[Classifier, object, object]],
    priors: Mapping[str, object] | None = None,
    progress: str | None = "estimates",
) -> pd.DataFrame:
    """Compare maximum likelihood and the Bayesian estimates by classifiers that are already fitted.

    Parameters
    ----------
    nb : classifier of bayesnb
        A classifier fitted to all rows; the table has its log evidence.
    parts : iterable of (classifier, X, y)
        Held-out rows, and a classifier of the type of `nb` that is fitted to other rows.
    priors : dict of str to alpha, optional
        Further rows with the predictive of the same classifier under other concentrations, by name; "1/L" is one over
        the number of levels of each feature.
    progress : str, optional
        Title of a progress bar on a terminal or in a notebook, shown after a second; None: no bar.

    Returns
    -------
    DataFrame
        The table of `compare_folds`.

    Examples
    --------
    >>> from bayesnb import GaussianNB
    >>> from bayesnb.evaluation import compare_fitted
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> part = GaussianNB().fit(X[::2], y[::2])
    >>> found = compare_fitted(GaussianNB().fit(X, y), [(part, X[1::2], y[1::2])])
    >>> found[["log_loss", "accuracy"]].round(3)
                log_loss  accuracy
    estimate
    mle            0.114      0.96
    map            0.120      0.96
    mean           0.109      0.96
    predictive     0.108      0.96
    """
    return score_fitted(nb, parts, priors, progress).table()


def score_fitted(
    nb: Classifier,
    parts: Iterable[tuple[Classifier, object, object]],
    priors: Mapping[str, object] | None = None,
    progress: str | None = "estimates",
    baselines: Mapping[str, Sequence[Any]] | None = None,
) -> Scored:
    """Score the rows in `parts`, (classifier, X, y), by each estimate of their fitted classifiers, and pool the scores.

    `nb` is fitted to all rows and has the log evidence. `priors` names further concentrations, see `compare_estimates`;
    `progress` is the title of a progress bar, or None. `baselines` has by name the fitted classifiers of scikit-learn
    to score beside them, one for each part.
    """
    baselines, parts = baselines or {}, list(parts)
    rows = TableRows.read(nb, priors, {name: fitted[0] for name, fitted in baselines.items()})
    evidence = estimates.log_evidence(rows.readings(nb))
    each_baselines = zip(*baselines.values(), strict=True) if baselines else [()] * len(parts)
    fits = ((nb, fitted, X, y) for (nb, X, y), fitted in zip(parts, each_baselines, strict=True))
    return Scored.pool(rows.score(fits, len(parts), nb.classes_, progress), rows, evidence)


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of the same rows by each estimate.

    Parameters
    ----------
    rows : dict {estimate: RowScores}
    estimates : TableRows
        Estimates, with those that coincide.
    evidence : dict {estimate: float}
        Log evidence of the estimates that have one.
    """

    rows: Mapping[str, RowScores]
    estimates: TableRows
    evidence: Mapping[str, float]

    @classmethod
    def pool(cls, parts: Iterable[Any], estimates: TableRows, evidence: Mapping[str, float]) -> Scored:
        """Pool the scores of the rows of several splits, which `TableRows.score` yields, by estimate."""
        scored = [scores for scores, _ in parts]
        return cls({name: pool([scores[name] for scores in scored]) for name in estimates.names}, estimates, evidence)

    @property
    def joined_names(self) -> dict[str, str]:
        """Names of all estimates that coincide, such as "mle = map", by the name of the first of them."""
        groups: dict[str, list[str]] = {}
        for name, same in zip(self.rows, self.estimates.same_as(), strict=True):
            groups.setdefault(same or name, []).append(name)
        return {name: " = ".join(group) for name, group in groups.items()}

    def difference(self, name: str, against: str, score: str = "brier") -> tuple[float, float]:
        """Mean over the rows of one estimate's `score` minus another's, and the standard error of that mean."""
        difference = getattr(self.rows[name], score) - getattr(self.rows[against], score)
        return float(np.mean(difference)), standard_error(difference)

    def table(self, against: str = MLE) -> pd.DataFrame:
        """Return the table of `compare_estimates`, with differences from the estimate `against`."""
        scores = {name: summarize(rows) for name, rows in self.rows.items()}
        return _table(scores, lambda name, score: self.difference(name, against, score), self.evidence, self.estimates)


def paired_differences(
    scores: Sequence[Mapping[str, float]], others: Sequence[Mapping[str, float]], score: str
) -> np.ndarray:
    """(K,) differences of a score between two estimates, split by split."""
    return np.array([a[score] - b[score] for a, b in zip(scores, others, strict=True)])


def _split_rows(X: object, y: np.ndarray, splits: Iterable[tuple[np.ndarray, np.ndarray]]) -> Iterator[Split]:
    """Yield (rows to fit, labels, rows to test, labels) for each (train, test) of the splits."""
    for train, test in splits:
        yield take_rows(X, train), y[train], take_rows(X, test), y[test]


def _fit_each(nb: Classifier, rows: TableRows, splits: Iterable[Split]) -> Iterator[Fit]:
    """Fit the classifier and the baselines to the first rows of each split; yield the fits with the other rows."""
    for X, y, X_test, y_test in splits:
        with internal_fits():
            fitted, baselines = clone(nb).fit(X, y), rows.fit_baselines(X, y)
        yield fitted, baselines, X_test, y_test


def _table(
    scores: Mapping[str, Mapping[str, float]],
    difference: Callable[[str, str], tuple[float, float]],
    evidence: Mapping[str, float],
    rows: TableRows,
) -> pd.DataFrame:
    """Make the table of `compare_estimates`; `difference(estimate, score)` is a mean difference and its error."""
    table = []
    for name, values in scores.items():
        differences = {}
        for title, score in DIFFERENCES.items():
            differences[f"{title}_difference"], differences[f"{title}_difference_se"] = difference(name, score)
        table.append({**values, **differences, "log_evidence": evidence.get(name, np.nan)})
    return pd.DataFrame(table, pd.Index(list(scores), name="estimate")).assign(same_as=rows.same_as())
