"""The estimates that are compared: how they are fitted, what they predict, which coincide."""

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
    """What an estimate says of rows: log probabilities (N, C) and predicted labels (N,)."""

    log_proba: np.ndarray
    labels: np.ndarray

    def score(self, y: Any, classes: np.ndarray) -> RowScores:
        """Scores of each row."""
        return score_rows(self.log_proba, y, classes, self.labels)


def named(priors: Any, baselines: Any) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """The arguments `priors` and `baselines` of comparisons, each with the names of its rows."""
    priors = {} if priors is None else priors
    require_mapping("priors", priors, "{'alpha = 0.1': 0.1}")
    if isinstance(baselines, Mapping):
        return dict(priors), [(str(name), baseline) for name, baseline in baselines.items()]
    require_iterable("baselines", baselines, "a list of classifiers, such as [LogisticRegression()]")
    return dict(priors), [(" ".join(repr(baseline).split()), baseline) for baseline in baselines]


def row_names(nb: Classifier, priors: Mapping[str, Any], baselines: Sequence[tuple[str, Any]]) -> list[str]:
    """Names of all estimates in the order of the table, before anything is fitted.

    Raises
    ------
    ValueError
        If `nb` has no use for `priors`, or two estimates have one name.
    """
    first = next(iter(priors.items()), None)
    for _, baseline in baselines:
        if not hasattr(baseline, "fit") or not hasattr(baseline, "predict_proba") or isinstance(baseline, type):
            raise TypeError(f"baselines holds {shown(baseline)}, which is no classifier with fit and predict_proba.")
    if not hasattr(type(nb), "no_evidence"):
        raise NotImplementedError(
            f"{type(nb).__name__} has no estimates to compare, as it reads no posterior: pass it in baselines=, beside "
            "a classifier of bayesnb that does."
        )
    plain = nb.unweighted
    owner = type(plain).__name__
    if first is not None and "alpha" not in plain.get_params(deep=False):
        raise ValueError(
            f"priors={{{shown(first[0])}: {shown(first[1])}}}: {owner} has no concentration `alpha` to set. Leave "
            f"`priors` out; for other priors of {owner} pass classifiers as baselines, such as "
            f"baselines=[{owner}(prior=...)]."
        )
    if first is not None and isinstance(getattr(plain, "prior", None), NaiveBayes):
        raise ValueError(f"priors set `alpha`, which {owner}(prior=...) does not use; pass prior=None.")
    names = [*READINGS, *([] if plain is nb else [WEIGHTED]), *priors, *(name for name, _ in baselines)]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise ValueError(
            f"Two rows would be named {shown(twice[0])}; rename it in `priors`, or pass baselines as a dict of names "
            "to classifiers."
        )
    return names


def alternatives(fitted: Any, priors: Mapping[str, Any]) -> dict[str, Any]:
    """`fitted` without weights, named "", itself, if it has some, and the same counts under each of `priors`.

    Raises
    ------
    ValueError
        If a concentration cannot be used.
    """
    plain = fitted.unweighted
    weighted = {} if plain is fitted else {WEIGHTED: fitted}
    return {"": plain, **weighted, **{name: _under(plain, name, alpha) for name, alpha in priors.items()}}


def fit_baselines(baselines: Iterable[tuple[str, Any]], X: Any, y: Any) -> list[Any]:
    """Clones of `baselines`, fitted."""
    return [clone(baseline).fit(X, y) for _, baseline in baselines]


def predict(
    fits: Mapping[str, Any],
    baselines: Sequence[Any],
    names: Sequence[str],
    X: Any,
    classes: np.ndarray,
    tick: Callable[[], object],
) -> dict[str, Predictions]:
    """Predictions of every estimate, under the names of `row_names`; `fits` are of `alternatives`."""
    readers: list[tuple[Any, dict[str, Any]]] = [(fits[""], {"estimate": estimate}) for estimate in READINGS]
    readers += [(nb, {"estimate": None if name == WEIGHTED else "predictive"}) for name, nb in fits.items() if name]
    readers += [(b, {}) for b in baselines]
    predictions = {}
    for name, (classifier, reading) in zip(names, readers, strict=True):
        predictions[name] = _predict_one(classifier, X, reading, classes)
        tick()
    return predictions


def log_evidence(fits: Mapping[str, Any]) -> dict[str, float]:
    """Log evidence of each estimate that has a prior; NaN where there is none in closed form."""
    found = {n: float("nan") if nb.no_posterior or nb.no_evidence else nb.log_evidence_ for n, nb in fits.items()}
    own, other = found[""], {name: value for name, value in found.items() if name}
    return {"map": own, "mean": own, "predictive": own, **other}


def coincidences(predictions: Mapping[str, Predictions]) -> np.ndarray:
    """(E, E) bool: which estimates say the same, each class of each row to 1e-12 in the probabilities."""
    given = list(predictions.values())
    return np.array([[i >= j or _same(a, b) for j, b in enumerate(given)] for i, a in enumerate(given)])


def same_as(names: Sequence[str], same: np.ndarray) -> list[str]:
    """For each estimate the first one that says the same; "" for the first one itself.

    `same` is as `coincidences` has it above the diagonal.
    """
    first: list[str] = []
    for j in range(len(names)):
        first.append(next((names[i] for i in range(j) if same[i, j] and not first[i]), ""))
    return first


def joined_names(names: Iterable[str], first: Iterable[str]) -> dict[str, str]:
    """Names of all estimates that say the same, such as "mle = map", by that of the first; `first` as `same_as`."""
    groups: dict[str, list[str]] = {}
    for name, of in zip(names, first, strict=True):
        groups.setdefault(of or name, []).append(name)
    return {name: " = ".join(group) for name, group in groups.items()}


def labels(X: Any, y: Any, owner: str, which: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Classes, and the labels of the rows of X as an array; `which` is what the names of the arguments end in."""
    if not (X.shape if hasattr(X, "shape") else hasattr(X, "__len__")):
        raise ValueError(
            f"X{which}={shown(X)} must be a table: an array, a sparse matrix, a DataFrame or a list of rows."
        )
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    classes, index = check_labels(y, n_rows, owner, f"y{which}")
    return classes.array(), classes.array()[index]


@contextmanager
def warn_once() -> Iterator[None]:
    """Warn once of what many fits and predictions warn of, and not of undefined rows: the table counts them."""
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


def _under(fitted: Any, name: str, alpha: Any) -> Any:
    if isinstance(alpha, str):
        if alpha != _PERKS:
            raise ValueError(
                f"priors[{shown(name)}]={shown(alpha)} is unknown; give a concentration as `alpha` takes it, or "
                f"{_PERKS!r}."
            )
        alpha = _perks(fitted.encoding_)
    other = fitted.with_priors({"alpha": alpha})
    # The prior is derived when asked for; a bad concentration is to be refused here.
    _ = other.prior_
    return other


def _perks(encoding: Encoding) -> np.ndarray:
    """(F,) array: one over the number of levels in each feature's group; 1 where there are no levels."""
    alpha = np.ones(encoding.blocks[0].n_features)
    columns: Any
    for columns in encoding.blocks:
        if hasattr(columns, "groups"):
            # As long as `groups` in order: the group of a feature is that of its first level.
            groups, sizes = columns.groups(), columns.sizes()
            filled = sizes > 0
            group = groups[(np.cumsum(sizes) - sizes)[filled]]
            alpha[np.asarray(columns.index)[filled]] = 1 / np.bincount(groups)[group]
    return alpha


def _predict_one(classifier: Any, X: Any, reading: Mapping[str, Any], classes: np.ndarray) -> Predictions:
    log_proba = _log_proba(classifier, X, reading, classes)
    if not reading or np.isnan(log_proba).any():
        return Predictions(log_proba, classifier.predict(X, **reading))
    return Predictions(log_proba, classes[np.argmax(log_proba, axis=1)])


def _log_proba(classifier: Any, X: Any, reading: Mapping[str, Any], classes: np.ndarray) -> np.ndarray:
    """Log probabilities of `classes`, -inf for those that the classifier does not know."""
    if hasattr(classifier, "predict_log_proba"):
        with np.errstate(divide="ignore"):
            found = classifier.predict_log_proba(X, **reading)
    else:
        with np.errstate(divide="ignore"):
            found = np.log(classifier.predict_proba(X))
    position = Levels(tuple(classes)).index(classifier.classes_)
    log_proba = np.full((len(found), len(classes)), -np.inf)
    log_proba[:, position] = found
    return np.where(np.isnan(found).any(axis=1)[:, None], np.nan, log_proba)


def _same(a: Predictions, b: Predictions) -> bool:
    """To 1e-12 in the probabilities; their logarithms tell apart what is far below that."""
    return bool(
        np.allclose(np.exp(a.log_proba), np.exp(b.log_proba), rtol=0, atol=_SAME, equal_nan=True)
        and np.allclose(a.log_proba, b.log_proba, rtol=1e-9, atol=1e-9, equal_nan=True)
    )
