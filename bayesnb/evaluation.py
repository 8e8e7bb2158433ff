"""How good: scores of predicted probabilities on held-out rows, and the estimates side by side."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone

from bayesnb.encoding import Levels
from bayesnb.progress import progress as progress_bar

if TYPE_CHECKING:
    import pandas as pd

_ESTIMATES = ("mle", "map", "mean", "predictive")
_CLIP = 1e-15
_BINS = 15
_SAME = 1e-12


def scores(log_proba: Any, y: Any, classes: Any, predicted: Any = None) -> dict[str, float]:
    """Scores of predicted class probabilities.

    Parameters
    ----------
    log_proba : (N, C) array
        Log probabilities of the classes; NaN in rows where they are undefined.
    y : (N,) array-like
        True labels. A label that is not in `classes` has probability zero.
    classes : (C,) array-like
        Label of each column.
    predicted : (N,) array-like, optional
        Predicted labels. Default: the most probable class, and no prediction (an error) in undefined rows.

    Returns
    -------
    dict
        With p_i the probabilities of row i, 1/C each where they are undefined, and t_i its true class:

        brier : mean of Σ_c (p_ic - [c = t_i])², from 0 to 2.
        log_loss : mean of -log p_i(t_i), in nats; inf if a row is impossible, else NaN if one is undefined.
        log_loss_clipped : the same with probabilities of at least 1e-15.
        accuracy : share of rows whose predicted label is the true one.
        ece : expected calibration error, Σ_b n_b/N · \\|accuracy - mean top probability\\| over 15 bins of
            equal width (k/15, (k+1)/15] of the top probability.
        impossible_rows : number of rows whose true class has probability zero.
        undefined_rows : number of rows without probabilities.

    Raises
    ------
    ValueError
        If the shapes do not agree or there is no row.
    """
    log_proba = np.asarray(log_proba, dtype=np.float64)
    levels = Levels(tuple(classes))
    true = levels.index(y)
    if log_proba.shape != (len(true), len(levels)) or not len(true):
        raise ValueError(
            f"log_proba has shape {log_proba.shape}; {len(true)} labels and {len(levels)} classes need "
            f"{(len(true), len(levels))}, with at least one row."
        )
    undefined = np.isnan(log_proba).any(axis=1)
    log_proba = np.where(undefined[:, None], -np.log(len(levels)), log_proba)
    proba = np.exp(log_proba)
    known = true >= 0
    chosen = np.where(undefined, -1, np.argmax(proba, axis=1)) if predicted is None else levels.index(predicted)
    correct = (chosen == true) & known
    log_true = np.where(known, log_proba[np.arange(len(true)), np.maximum(true, 0)], -np.inf)
    hit = true[:, None] == np.arange(len(levels))
    impossible = np.isneginf(log_true)
    return {
        "brier": float(np.mean(np.sum((proba - hit) ** 2, axis=1) + ~known)),
        "log_loss": float(np.nan if undefined.any() and not impossible.any() else -np.mean(log_true)),
        "log_loss_clipped": float(-np.mean(np.maximum(log_true, np.log(_CLIP)))),
        "accuracy": float(np.mean(correct)),
        "ece": _calibration_error(proba.max(axis=1), correct),
        "impossible_rows": int(impossible.sum()),
        "undefined_rows": int(undefined.sum()),
    }


def compare_estimates(
    nb: Any,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    priors: Mapping[str, Any] | None = None,
    baselines: Iterable[Any] = (),
) -> pd.DataFrame:
    """Maximum likelihood beside the Bayesian estimates, scored on held-out rows.

    Parameters
    ----------
    nb : classifier of bayesnb
        Its hyperparameters are used; it is neither changed nor has it to be fitted.
    X, y
        Rows to fit.
    X_test, y_test
        Rows to score.
    priors : dict of str to alpha, optional
        Further rows with the predictive of the same classifier under other concentrations, such as
        {"Laplace": 1, "Jeffreys": 0.5}; not for classifiers without `alpha`.
    baselines : iterable of scikit-learn classifiers, optional
        Further rows, named by their `repr`.

    Returns
    -------
    DataFrame
        One row an estimate: "mle", "map", "mean", "predictive", then `priors` and `baselines`. Estimates
        whose probabilities of every class agree to 1e-12 are one row, named so: "mle = map". Columns:
        `scores`, and log_evidence, that of (X, y) under the prior of the row; NaN for "mle" and baselines,
        which have none.

    Raises
    ------
    ValueError
        If the data or a hyperparameter cannot be used.
    """
    fits = _fit(nb, X, y, priors)
    classes = fits[""].classes_
    predictions = _predict(fits, [clone(b).fit(X, y) for b in baselines], X_test, classes)
    return _tabulate(predictions, _log_evidence(fits), y_test, classes)


def compare_folds(
    nb: Any,
    X: Any,
    y: Any,
    folds: Iterable[tuple[np.ndarray, np.ndarray]],
    priors: Mapping[str, Any] | None = None,
    baselines: Sequence[Any] = (),
    progress: str | None = None,
) -> pd.DataFrame:
    """As `compare_estimates`, the held-out rows of several splits pooled before they are scored.

    Parameters
    ----------
    X : array or DataFrame of shape (N, F)
    y : (N,) array
    folds : iterable of (train, test)
        Indices of the rows, such as `StratifiedKFold().split(X, y)` gives.
    nb, priors, baselines
        As for `compare_estimates`.
    progress : str, optional
        Title of a progress bar on a terminal, shown after a second; default: none.

    Returns
    -------
    DataFrame
        As `compare_estimates`; log_evidence is that of all rows.
    """
    y, folds = np.asarray(y), list(folds)
    n_fits, n_baselines = 1 + len(priors or ()), len(baselines)
    steps = n_fits + len(folds) * (2 * n_fits + len(_ESTIMATES) - 1 + n_baselines)
    parts, truths = [], []
    with progress_bar(progress, steps) as tick:
        whole = _fit(nb, X, y, priors, tick)
        classes = whole[""].classes_
        for train, test in folds:
            fits = _fit(nb, _rows(X, train), y[train], priors, tick)
            fitted = [clone(b).fit(_rows(X, train), y[train]) for b in baselines]
            parts.append(_predict(fits, fitted, _rows(X, test), classes, tick))
            truths.append(y[test])
    pooled = {name: Predictions.concatenate([part[name] for part in parts]) for name in parts[0]}
    return _tabulate(pooled, _log_evidence(whole), np.concatenate(truths), classes)


@dataclass(frozen=True, eq=False)
class Predictions:
    """What an estimate says of rows: log probabilities (N, C) and predicted labels (N,)."""

    log_proba: np.ndarray
    labels: np.ndarray

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts."""
        return cls(np.concatenate([p.log_proba for p in parts]), np.concatenate([p.labels for p in parts]))


def _silent() -> None:
    """Tell nobody of progress."""


def _fit(
    nb: Any, X: Any, y: Any, priors: Mapping[str, Any] | None, tick: Callable[[], object] = _silent
) -> dict[str, Any]:
    """`nb` under its own prior, named "", and under each of `priors`."""
    fits = {}
    for name, alpha in {"": None, **(priors or {})}.items():
        fits[name] = clone(nb).set_params(**({} if alpha is None else {"alpha": alpha})).fit(X, y)
        tick()
    return fits


def _predict(
    fits: Mapping[str, Any],
    baselines: Sequence[Any],
    X: Any,
    classes: np.ndarray,
    tick: Callable[[], object] = _silent,
) -> dict[str, Predictions]:
    named = {estimate: (fits[""], {"estimate": estimate}) for estimate in _ESTIMATES}
    named |= {name: (nb, {"estimate": "predictive"}) for name, nb in fits.items() if name}
    named |= {" ".join(repr(b).split()): (b, {}) for b in baselines}
    predictions = {}
    with warnings.catch_warnings():
        # The table counts these rows.
        warnings.filterwarnings("ignore", ".* rows have no class probabilities", UserWarning)
        for name, (classifier, reading) in named.items():
            predictions[name] = _predict_one(classifier, X, reading, classes)
            tick()
    return predictions


def _predict_one(classifier: Any, X: Any, reading: Mapping[str, str], classes: np.ndarray) -> Predictions:
    log_proba = _log_proba(classifier, X, reading, classes)
    if not reading or np.isnan(log_proba).any():
        return Predictions(log_proba, classifier.predict(X, **reading))
    return Predictions(log_proba, classes[np.argmax(log_proba, axis=1)])


def _log_proba(classifier: Any, X: Any, reading: Mapping[str, str], classes: np.ndarray) -> np.ndarray:
    """Log probabilities of `classes`, -inf for those that the classifier does not know."""
    if hasattr(classifier, "predict_log_proba"):
        found = classifier.predict_log_proba(X, **reading)
    else:
        with np.errstate(divide="ignore"):
            found = np.log(classifier.predict_proba(X))
    position = Levels(tuple(classes)).index(classifier.classes_)
    log_proba = np.full((len(found), len(classes)), -np.inf)
    log_proba[:, position] = found
    return np.where(np.isnan(found).any(axis=1)[:, None], np.nan, log_proba)


def _log_evidence(fits: Mapping[str, Any]) -> dict[str, float]:
    own = fits[""].log_evidence_
    other = {name: nb.log_evidence_ for name, nb in fits.items() if name}
    return {"map": own, "mean": own, "predictive": own, **other}


def _tabulate(
    predictions: Mapping[str, Predictions], log_evidence: Mapping[str, float], y: Any, classes: np.ndarray
) -> pd.DataFrame:
    import pandas as pd

    rows, names = [], []
    for group in _merge(predictions):
        first = predictions[group[0]]
        evidence = next((log_evidence[name] for name in group if name in log_evidence), np.nan)
        rows.append({**scores(first.log_proba, y, classes, first.labels), "log_evidence": evidence})
        names.append(" = ".join(group))
    return pd.DataFrame(rows, index=pd.Index(names, name="estimate"))


def _merge(predictions: Mapping[str, Predictions]) -> list[list[str]]:
    """Names of the same predictions together."""
    groups: list[list[str]] = []
    for name, mine in predictions.items():
        for group in groups:
            if _same(mine, predictions[group[0]]):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def _same(a: Predictions, b: Predictions) -> bool:
    """To 1e-12 in the probabilities; their logarithms tell apart what is far below that."""
    return bool(
        np.allclose(np.exp(a.log_proba), np.exp(b.log_proba), rtol=0, atol=_SAME, equal_nan=True)
        and np.allclose(a.log_proba, b.log_proba, rtol=1e-9, atol=1e-9, equal_nan=True)
    )


def _calibration_error(top: np.ndarray, correct: np.ndarray) -> float:
    bins = np.searchsorted(np.linspace(0, 1, _BINS + 1)[1:-1], top)
    gap = np.bincount(bins, weights=correct - top, minlength=_BINS)
    return float(np.abs(gap).sum() / len(top))


def _rows(X: Any, index: np.ndarray) -> Any:
    return X.iloc[index] if hasattr(X, "iloc") else X[index]
