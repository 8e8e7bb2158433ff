"""Estimates that are compared: how they are fitted, their predictions, and which of them coincide."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from bayesnb._util.arguments import require_iterable, require_mapping, shown
from bayesnb.encoding import Encoding, Levels, check_labels
from bayesnb.evaluation.scores import RowScores, score_rows
from bayesnb.fitted import Classifier
from bayesnb.model import NaiveBayes

READINGS = ("mle", "map", "mean", "predictive")
WEIGHTED = "weighted"
_SAME = 1e-12
_PERKS = "1/L"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of rows by one estimate: log probabilities (N, C) and predicted labels (N,)."""

    log_proba: np.ndarray
    labels: np.ndarray

    def score(self, y: object, classes: np.ndarray) -> RowScores:
        """Score each row by its true label."""
        return score_rows(self.log_proba, y, classes, self.labels)


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a table that compares estimates, before anything is fitted.

    Parameters
    ----------
    names : tuple of str
        Names of all estimates, in the order of the table.
    priors : dict {name: concentration}
    baselines : list of (name, classifier)
    """

    names: tuple[str, ...]
    priors: dict[str, Any]
    baselines: list[tuple[str, Any]]

    @classmethod
    def read(cls, nb: Classifier, priors: Any, baselines: Any) -> TableRows:
        """Read the arguments of `compare_estimates`.

        Raises
        ------
        NotImplementedError
            If `nb` has no estimates.
        TypeError
            If a baseline is no classifier.
        ValueError
            If `nb` does not use `priors`, or two estimates have one name.
        """
        priors = {} if priors is None else priors
        require_mapping("priors", priors, "{'alpha = 0.1': 0.1}")
        if isinstance(baselines, Mapping):
            named = [(str(name), baseline) for name, baseline in baselines.items()]
        else:
            require_iterable("baselines", baselines, "a list of classifiers, such as [LogisticRegression()]")
            named = [(" ".join(repr(baseline).split()), baseline) for baseline in baselines]
        for _, baseline in named:
            if not hasattr(baseline, "fit") or not hasattr(baseline, "predict_proba") or isinstance(baseline, type):
                raise TypeError(
                    f"baselines holds {shown(baseline)}, which is no classifier with fit and predict_proba."
                )
        if not hasattr(type(nb), "no_evidence"):
            raise NotImplementedError(
                f"{type(nb).__name__} has no estimates to compare, as it reads no posterior: pass it in baselines=, "
                "beside a classifier of bayesnb that does."
            )
        plain = nb.unweighted
        if priors:
            _require_alpha(plain, *next(iter(priors.items())))
        names = (*READINGS, *(() if plain is nb else (WEIGHTED,)), *priors, *(name for name, _ in named))
        twice = [name for i, name in enumerate(names) if name in names[:i]]
        if twice:
            raise ValueError(
                f"Two rows would be named {shown(twice[0])}; rename it in `priors`, or pass baselines as a dict of "
                "names to classifiers."
            )
        return cls(names, dict(priors), named)

    def require(self, against: str) -> None:
        """Raise ValueError unless `against` is the name of an estimate."""
        if not isinstance(against, str) or against not in self.names:
            choices = ", ".join(map(shown, self.names))
            raise ValueError(f"against={shown(against)} is no row of the table; choose from {choices}.")

    def alternatives(self, fitted: Any) -> dict[str, Any]:
        """Classifiers with the counts of `fitted`: "" is `fitted` without weights of terms.

        Under "weighted" it is `fitted` itself, if its terms have weights; then follow the concentrations of `priors`.

        Raises
        ------
        ValueError
            If a concentration cannot be used.
        """
        plain = fitted.unweighted
        weighted = {} if plain is fitted else {WEIGHTED: fitted}
        return {"": plain, **weighted, **{name: _with_alpha(plain, name, alpha) for name, alpha in self.priors.items()}}

    def fit_baselines(self, X: object, y: object) -> list[Any]:
        """Fit clones of the baselines."""
        return [clone(baseline).fit(X, y) for _, baseline in self.baselines]


def _require_alpha(nb: Classifier, name: str, alpha: object) -> None:
    """Raise ValueError unless the prior of `nb` has a concentration `alpha`."""
    owner = type(nb).__name__
    if "alpha" not in nb.get_params(deep=False):
        raise ValueError(
            f"priors={{{shown(name)}: {shown(alpha)}}}: {owner} has no concentration `alpha` to set. Leave "
            f"`priors` out; for other priors of {owner} pass classifiers as baselines, such as "
            f"baselines=[{owner}(prior=...)]."
        )
    if isinstance(getattr(nb, "prior", None), NaiveBayes):
        raise ValueError(f"priors set `alpha`, which {owner}(prior=...) does not use; pass prior=None.")


def predict(
    fits: Mapping[str, Any],
    baselines: Sequence[Any],
    names: Sequence[str],
    X: object,
    classes: np.ndarray,
    tick: Callable[[], object],
) -> dict[str, Predictions]:
    """Predictions of rows by every estimate.

    Parameters
    ----------
    fits : dict of classifiers
        Return value of `TableRows.alternatives`.
    baselines : list of fitted classifiers
        Further classifiers, one estimate each.
    names : list of str
        Names of all estimates.
    X : array, sparse matrix or DataFrame of shape (N, F)
        Rows to predict.
    classes : (C,) array
        Labels of all classes.
    tick : callable () -> object
        Function to call after each estimate.
    """
    readers: list[tuple[Any, dict[str, Any]]] = [(fits[""], {"estimate": estimate}) for estimate in READINGS]
    readers += [(nb, {"estimate": None if name == WEIGHTED else "predictive"}) for name, nb in fits.items() if name]
    readers += [(b, {}) for b in baselines]
    predictions = {}
    for name, (classifier, reading) in zip(names, readers, strict=True):
        predictions[name] = _predict(classifier, X, reading, classes)
        tick()
    return predictions


def log_evidence(fits: Mapping[str, Any]) -> dict[str, float]:
    """Log evidence of each estimate that has a prior; NaN if it has no closed form."""
    values = {n: float("nan") if nb.no_posterior or nb.no_evidence else nb.log_evidence_ for n, nb in fits.items()}
    value = values.pop("")
    return {"map": value, "mean": value, "predictive": value, **values}


def coincidences(predictions: Mapping[str, Predictions]) -> np.ndarray:
    """(E, E) bool: which estimates coincide, to 1e-12 in the probability of each class of each row."""
    given = list(predictions.values())
    return np.array([[i >= j or _same(a, b) for j, b in enumerate(given)] for i, a in enumerate(given)])


def same_as(names: Sequence[str], same: np.ndarray) -> list[str]:
    """Return for each estimate the name of the first estimate before it that coincides with it, or "".

    Of `same`, the return value of `coincidences`, only the part above the diagonal is read.
    """
    first: list[str] = []
    for j in range(len(names)):
        first.append(next((names[i] for i in range(j) if same[i, j] and not first[i]), ""))
    return first


def joined_names(names: Iterable[str], first: Iterable[str]) -> dict[str, str]:
    """Names of all estimates that coincide, such as "mle = map", by the name of the first of them.

    `first` is the return value of `same_as`.
    """
    groups: dict[str, list[str]] = {}
    for name, same in zip(names, first, strict=True):
        groups.setdefault(same or name, []).append(name)
    return {name: " = ".join(group) for name, group in groups.items()}


def labels(X: Any, y: object, owner: str, which: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Check the labels of the rows of X; return the classes, and the labels as an array.

    `owner` and `which`, the ending of the arguments' names, are for messages.
    """
    if not (X.shape if hasattr(X, "shape") else hasattr(X, "__len__")):
        raise ValueError(
            f"X{which}={shown(X)} must be a table: an array, a sparse matrix, a DataFrame or a list of rows."
        )
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    classes, index = check_labels(y, n_rows, owner, f"y{which}")
    return classes.array(), classes.array()[index]


@contextmanager
def warn_once() -> Iterator[None]:
    """Warn once of each warning of many fits and predictions; leave out undefined rows, which the table counts."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        told: dict[Any, warnings.WarningMessage] = {}
        for w in caught:
            text = str(w.message)
            unknown = "levels that the model does not know" in text
            if "rows have no class probabilities" not in text:
                told.setdefault((w.category, "unknown levels" if unknown else text), w)
        for w in told.values():
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)


def _with_alpha(fitted: Any, name: str, alpha: object) -> Any:
    """Return a copy with another concentration; raise ValueError if it cannot be used."""
    if isinstance(alpha, str):
        if alpha != _PERKS:
            raise ValueError(
                f"priors[{shown(name)}]={shown(alpha)} is unknown; give a concentration as `alpha` takes it, or "
                f"{_PERKS!r}."
            )
        alpha = _perks(fitted.encoding_)
    other = fitted.with_priors({"alpha": alpha})
    # The property derives the prior, and so raises the error of a bad concentration before anything is scored.
    _ = other.prior_
    return other


def _perks(encoding: Encoding) -> np.ndarray:
    """(F,) concentrations: one over the number of levels in each feature's group; 1 where there are no levels."""
    alpha = np.ones(encoding.blocks[0].n_features)
    columns: Any
    for columns in encoding.blocks:
        if hasattr(columns, "groups"):
            # Groups are those of levels, in order: the group of a feature is that of its first level.
            groups, sizes = columns.groups(), columns.sizes()
            filled = sizes > 0
            group = groups[(np.cumsum(sizes) - sizes)[filled]]
            alpha[np.asarray(columns.index)[filled]] = 1 / np.bincount(groups)[group]
    return alpha


def _predict(classifier: Any, X: object, reading: Mapping[str, Any], classes: np.ndarray) -> Predictions:
    """Predictions of `classes`, of which those that the classifier does not know have log probability -inf."""
    with np.errstate(divide="ignore"):
        if hasattr(classifier, "predict_log_proba"):
            known = classifier.predict_log_proba(X, **reading)
        else:
            known = np.log(classifier.predict_proba(X))
    log_proba = np.full((len(known), len(classes)), -np.inf)
    log_proba[:, Levels(tuple(classes)).index(classifier.classes_)] = known
    log_proba[np.isnan(known).any(axis=1)] = np.nan
    if not reading or np.isnan(log_proba).any():
        return Predictions(log_proba, classifier.predict(X, **reading))
    return Predictions(log_proba, classes[np.argmax(log_proba, axis=1)])


def _same(a: Predictions, b: Predictions) -> bool:
    """Whether predictions agree: probabilities to 1e-12, and logarithms to 1e-9, as many are far below 1e-12."""
    return bool(
        np.allclose(np.exp(a.log_proba), np.exp(b.log_proba), rtol=0, atol=_SAME, equal_nan=True)
        and np.allclose(a.log_proba, b.log_proba, rtol=1e-9, atol=1e-9, equal_nan=True)
    )
