"""The estimates side by side, scored on held-out rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from bayesnb._util.arguments import shown
from bayesnb._util.progress import progress as progress_bar
from bayesnb._util.rows import take_rows
from bayesnb.evaluation import estimates
from bayesnb.evaluation.resampling import corrected_error, standard_error, stratified_splits
from bayesnb.evaluation.scores import RowScores, average, pool, summarize
from bayesnb.fitted import Classifier

if TYPE_CHECKING:
    import pandas as pd

DIFFERENCES = {"brier": "brier", "log_loss": "log_loss_clipped"}
MLE = "mle"


def compare_estimates(
    nb: Classifier,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    priors: Mapping[str, Any] | None = None,
    baselines: Mapping[str, Any] | Iterable[Any] = (),
    *,
    against: str = MLE,
    repeats: int | None = None,
    test_size: float = 0.3,
    seed: int = 0,
    progress: str | None = "estimates",
) -> pd.DataFrame:
    """Maximum likelihood beside the Bayesian estimates, scored on held-out rows.

    Parameters
    ----------
    nb : classifier of bayesnb
        Its hyperparameters are used; it is neither changed nor has it to be fitted. Of a `WeightedNB` the estimates
        are those of its estimator, and its own predictions one row more.
    X, y
        Rows to fit; with `repeats` all rows.
    X_test, y_test : optional
        Rows to score.
    priors : dict of str to alpha, optional
        Further rows with the predictive of the same classifier under other concentrations, such as
        {"Laplace": 1, "Jeffreys": 0.5, "Perks": "1/L"}; "1/L" is one over the number of levels of each
        feature, over the number of words for counts of words. Where levels are not declared, those of the
        rows fitted count. Not for classifiers without `alpha`.
    baselines : dict of str to classifier, or iterable of classifiers, optional
        Further rows, of any classifiers of scikit-learn: {"logistic": LogisticRegression()}. Without names they are
        named by their `repr`.
    against : str, default "mle"
        The row from which differences are taken, such as "predictive", to see what weights add to it.
    repeats : int, optional
        In place of `X_test`: that many random splits of (X, y), stratified, see
        `bayesnb.evaluation.stratified_splits`; 2 or more.
    test_size : float, default 0.3
        Share of each class that `repeats` test.
    seed : int, default 0
        Of `repeats`.
    progress : str, optional
        Title of a progress bar on a terminal or in a notebook, shown after a second; None: no bar.

    Returns
    -------
    DataFrame
        One row an estimate, under its name: "mle", "map", "mean", "predictive", of a `WeightedNB` "weighted", then
        `priors`, whose terms have no weights, and `baselines`. Columns:

        `scores`
            with `repeats` their means over the splits, also of the numbers of rows. Confidence is
            the accuracy that the probabilities state; beside it stands the observed one. In rows where an estimate has
            no probabilities (`undefined_rows`) its label is the most probable one a priori, as `predict` has it.
        brier_difference, log_loss_difference
            mean score less that of the row `against`, paired by row; negative is
            better than it. Of the clipped log loss, as the strict one may be infinite.
        brier_difference_se, log_loss_difference_se
            their standard errors, see Notes.
        log_evidence
            that of (X, y) under the prior of the row, with `repeats` the mean over the rows
            fitted in each split; NaN for "mle", "weighted" and baselines, which have none.
        same_as
            the first row before this one whose probabilities of every class agree with those of this row to 1e-12 (in
            every split); "" if there is none.

    Raises
    ------
    ValueError
        If the data or a hyperparameter cannot be used; if both or neither of test rows and `repeats` are
        given; if `against` is no row of the table.

    Notes
    -----
    With one set of test rows the standard error is sd/√n over the differences of these rows. It speaks of
    these fits on other rows, and says nothing of how fits to other training rows would differ. With `repeats` it is the
    corrected resampled t of Nadeau and Bengio (2003), √((1/K + n_test/n_train) s²), with s² the variance of
    the difference over the K splits, to be held against t of K - 1 degrees of freedom: it speaks of fits to
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
    priors, others = estimates.named(priors, baselines)
    names = estimates.row_names(nb, priors, others)
    against = _row(against, names)
    if (X_test is None) != (y_test is None) or (X_test is None) == (repeats is None):
        raise ValueError("Pass either X_test and y_test, or repeats=K for K random splits of X and y into both.")
    classes, y = estimates.labels(X, y, type(nb).__name__)
    if repeats is None:
        _, y_test = estimates.labels(X_test, y_test, type(nb).__name__, "_test")
        once = ((clone(nb).fit(X, y), estimates.fit_baselines(others, X, y), X_test, y_test) for _ in range(1))
        (rows,), same, (evidence,) = _over_splits(once, 1, priors, names, classes, progress)
        return Scored(rows, same, evidence).table(against)
    splits = stratified_splits(y, repeats, test_size, seed)
    fitted = _fits(nb, X, y, splits, others)
    parts, same, evidences = _over_splits(fitted, len(splits), priors, names, classes, progress)
    return _of_splits(parts, same, evidences, len(splits[0][0]), len(splits[0][1]), against)


def compare_folds(
    nb: Classifier,
    X: Any,
    y: Any,
    folds: Iterable[tuple[np.ndarray, np.ndarray]],
    priors: Mapping[str, Any] | None = None,
    baselines: Mapping[str, Any] | Iterable[Any] = (),
    progress: str | None = "estimates",
    *,
    against: str = MLE,
) -> pd.DataFrame:
    """As `compare_estimates`, the held-out rows of several splits pooled before they are scored.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (N, F)
    y : (N,) array-like
    folds : iterable of (train, test)
        Indices of the rows, such as `StratifiedKFold().split(X, y)` gives.
    nb, priors, baselines, progress, against
        As for `compare_estimates`.

    Returns
    -------
    DataFrame
        As `compare_estimates`; log_evidence is that of all rows. The standard errors are sd/√n over the
        pooled rows, as if these were independent: what rows share by being scored by the same fit, or by
        fits to much the same rows, is not in them.

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
    (priors, others), folds = estimates.named(priors, baselines), list(folds)
    names = estimates.row_names(nb, priors, others)
    against = _row(against, names)
    classes, y = estimates.labels(X, y, type(nb).__name__)
    whole = estimates.alternatives(clone(nb).unweighted.fit(X, y), priors)
    fits = _fits(nb, X, y, folds, others)
    parts, same, _ = _over_splits(fits, len(folds), priors, names, classes, progress)
    return _pooled(parts, same, whole).table(against)


def compare_fitted(
    nb: Classifier,
    parts: Iterable[tuple[Any, Any, Any]],
    priors: Mapping[str, Any] | None = None,
    progress: str | None = "estimates",
) -> pd.DataFrame:
    """As `compare_folds`, with classifiers that are fitted already.

    Parameters
    ----------
    nb : classifier of bayesnb
        Fitted to all rows: its classes and its log evidence stand in the table.
    parts : iterable of (classifier, X, y)
        Rows held out, and a classifier of bayesnb as `nb` that is fitted to others.
    priors, progress
        As for `compare_estimates`.

    Returns
    -------
    DataFrame
        As `compare_folds`.

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
    parts: Iterable[tuple[Any, Any, Any]],
    priors: Mapping[str, Any] | None = None,
    progress: str | None = "estimates",
) -> Scored:
    """What `compare_fitted` makes its table of."""
    priors, parts = dict(priors or {}), list(parts)
    names = estimates.row_names(nb, priors, [])
    whole = estimates.alternatives(nb, priors)
    fitted: list[tuple[Any, list[Any], Any, Any]] = [(one, [], X, y) for one, X, y in parts]
    found, same, _ = _over_splits(fitted, len(parts), priors, names, nb.classes_, progress)
    return _pooled(found, same, whole)


@dataclass(frozen=True, eq=False)
class Scored:
    """The same rows scored by each estimate.

    Parameters
    ----------
    rows : dict {estimate: RowScores}
    same : (E, E) bool
        Which estimates coincide.
    evidence : dict {estimate: float}
        Log evidence of those that have one.
    """

    rows: Mapping[str, RowScores]
    same: np.ndarray
    evidence: Mapping[str, float]

    @property
    def joined_names(self) -> dict[str, str]:
        """Names of all estimates that say the same, by that of the first of them."""
        names = list(self.rows)
        return estimates.joined_names(names, estimates.same_as(names, self.same))

    def difference(self, name: str, against: str, score: str = "brier") -> tuple[float, float]:
        """Mean over the rows of one estimate's score less another's, and its standard error."""
        difference = getattr(self.rows[name], score) - getattr(self.rows[against], score)
        return float(np.mean(difference)), standard_error(difference)

    def table(self, against: str = MLE) -> pd.DataFrame:
        """See `compare_estimates`."""
        table = {}
        for name, mine in self.rows.items():
            table[name] = dict(summarize(mine))
            for title, score in DIFFERENCES.items():
                mean, se = self.difference(name, against, score)
                table[name] |= {f"{title}_difference": mean, f"{title}_difference_se": se}
            table[name]["log_evidence"] = self.evidence.get(name, np.nan)
        return _frame(table, self.same)


def _row(against: str, names: Sequence[str]) -> str:
    """The estimate of that name, if there is one."""
    if isinstance(against, str) and against in names:
        return against
    raise ValueError(f"against={shown(against)} is no row of the table; choose from {', '.join(map(shown, names))}.")


def _pooled(parts: Sequence[Mapping[str, RowScores]], same: np.ndarray, whole: Mapping[str, Any]) -> Scored:
    rows = {name: pool([part[name] for part in parts]) for name in parts[0]}
    return Scored(rows, same, estimates.log_evidence(whole))


def _fits(
    nb: Classifier,
    X: Any,
    y: np.ndarray,
    splits: Iterable[tuple[np.ndarray, np.ndarray]],
    baselines: Sequence[tuple[str, Any]],
) -> Iterator[tuple[Any, list[Any], Any, np.ndarray]]:
    """For each split the classifier and the baselines fitted to one part, and the rows of the other."""
    for train, test in splits:
        X_train, y_train = take_rows(X, train), y[train]
        fitted = clone(nb).fit(X_train, y_train)
        yield fitted, estimates.fit_baselines(baselines, X_train, y_train), take_rows(X, test), y[test]


def _over_splits(
    fits: Iterable[tuple[Any, Sequence[Any], Any, Any]],
    n_splits: int,
    priors: Mapping[str, Any],
    names: Sequence[str],
    classes: np.ndarray,
    progress: str | None,
) -> tuple[list[dict[str, RowScores]], np.ndarray, list[dict[str, float]]]:
    """For each split the scores of rows and the log evidence; which estimates coincide in all of them."""
    parts, evidence = [], []
    same = np.ones((len(names), len(names)), bool)
    with progress_bar(progress, n_splits * (len(names) + 1)) as tick, estimates.warn_once():
        for nb, baselines, X, y in fits:
            tick()
            alternatives = estimates.alternatives(nb, priors)
            predictions = estimates.predict(alternatives, baselines, names, X, classes, tick)
            parts.append({name: p.score(y, classes) for name, p in predictions.items()})
            evidence.append(estimates.log_evidence(alternatives))
            same &= estimates.coincidences(predictions)
    return parts, same, evidence


def _of_splits(
    parts: Sequence[Mapping[str, RowScores]],
    same: np.ndarray,
    evidence: Sequence[Mapping[str, float]],
    n_train: int,
    n_test: int,
    against: str,
) -> pd.DataFrame:
    """The table of means over splits of the same sizes."""
    found = {name: [summarize(part[name]) for part in parts] for name in parts[0]}
    table = {}
    for name, mine in found.items():
        table[name] = average(mine)
        for title, score in DIFFERENCES.items():
            difference = paired(mine, found[against], score)
            table[name] |= {
                f"{title}_difference": float(np.mean(difference)),
                f"{title}_difference_se": corrected_error(difference, n_train, n_test),
            }
        table[name]["log_evidence"] = float(np.mean([e.get(name, np.nan) for e in evidence]))
    return _frame(table, same)


def paired(mine: Sequence[Mapping[str, float]], other: Sequence[Mapping[str, float]], score: str) -> np.ndarray:
    """(K,) differences of a score over splits."""
    return np.array([a[score] - b[score] for a, b in zip(mine, other, strict=True)])


def _frame(table: Mapping[str, dict[str, float]], same: np.ndarray) -> pd.DataFrame:
    """One row an estimate, and which of those before it says the same."""
    import pandas as pd

    names = list(table)
    index = pd.Index(names, name="estimate")
    return pd.DataFrame(list(table.values()), index).assign(same_as=estimates.same_as(names, same))
