"""Estimates that are compared: how they are fitted, their predictions, and which of them coincide."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone

from bayesnb._util.arguments import bad_argument, require_iterable, require_mapping, shown
from bayesnb._util.terminal import progress as progress_bar
from bayesnb._util.warnings import UndefinedProbabilityWarning, UnknownLevelWarning
from bayesnb.encoding import Encoding, Levels, check_labels
from bayesnb.evaluation.scores import RowScores, score_rows
from bayesnb.fitted.state import Classifier
from bayesnb.model import NaiveBayes

READINGS = ("mle", "map", "mean", "predictive")
WEIGHTED = "weighted"
_SAME = 1e-12
_PERKS = "1/L"

Readings = dict[str, tuple[Classifier, str | None]]
"""Classifier and estimate by the name of a row; None: the estimate of the classifier."""
Fit = tuple[Classifier, Sequence[Any], object, object]
"""A classifier and the baselines fitted to the same rows, and other rows to score with their labels."""


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a table that compares estimates, before anything is fitted.

    Parameters
    ----------
    names : tuple of str
        Names of all estimates, in the order of the table.
    priors : dict {name: concentration}
    baselines : list of (name, classifier)
    same : (E, E) bool
        Whether each estimate has coincided with each later one in all fits that were scored.
    """

    names: tuple[str, ...]
    priors: dict[str, Any]
    baselines: list[tuple[str, Any]]
    same: np.ndarray

    @classmethod
    def read(cls, nb: Classifier, priors: Any, baselines: Any) -> TableRows:
        """Check the classifier, priors and baselines for `compare_estimates`, and name the rows of its table.

        Raises
        ------
        NotImplementedError
            If `nb` has no estimates.
        TypeError
            If a baseline is not a classifier.
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
                wanted = "a classifier with fit and predict_proba, such as LogisticRegression()"
                raise bad_argument("an entry of baselines", baseline, wanted, TypeError)
        if not hasattr(type(nb), "no_evidence"):
            name = type(nb).__name__
            raise NotImplementedError(f"{name} has no posterior, and so no estimates; pass a {name} in baselines=.")
        plain = nb.unweighted
        owner = type(plain).__name__
        if priors and "alpha" not in plain.get_params(deep=False):
            raise ValueError(
                f"priors={shown(priors)}: {owner} has no concentration `alpha` to set. Leave `priors` out, or pass "
                f"classifiers with other priors as baselines, such as baselines=[{owner}(prior=...)]."
            )
        if priors and isinstance(getattr(plain, "prior", None), NaiveBayes):
            raise ValueError(f"priors= sets `alpha`, which {owner} ignores beside prior=; pass one with prior=None.")
        names = (*READINGS, *(() if plain is nb else (WEIGHTED,)), *priors, *(name for name, _ in named))
        if twice := [name for i, name in enumerate(names) if name in names[:i]]:
            raise ValueError(
                f"Two classifiers have the same name in the table, {shown(twice[0])}. Rename a key of `priors`, or "
                "pass baselines as a dict of names to classifiers."
            )
        return cls(names, dict(priors), named, np.ones((len(names), len(names)), bool))

    def require(self, against: str) -> None:
        """Raise ValueError unless `against` is the name of an estimate."""
        if not isinstance(against, str) or against not in self.names:
            raise ValueError(f"against={shown(against)} is not a name in the table; choose from {self.names}.")

    def readings(self, fitted: Classifier) -> Readings:
        """Return {row: (classifier, estimate to read)} for all rows but baselines, with the counts of `fitted`.

        Raises
        ------
        ValueError
            If a concentration cannot be used.
        """
        plain = fitted.unweighted
        readings: Readings = {estimate: (plain, estimate) for estimate in READINGS}
        if plain is not fitted:
            readings[WEIGHTED] = fitted, None
        return readings | {name: (_with_alpha(plain, name, alpha), "predictive") for name, alpha in self.priors.items()}

    def fit_baselines(self, X: object, y: object) -> list[Any]:
        """Return clones of the baselines, fitted to these rows, in order."""
        return [clone(baseline).fit(X, y) for _, baseline in self.baselines]

    def score(
        self, fits: Iterable[Fit], n_fits: int, classes: np.ndarray, progress: str | None
    ) -> Iterator[tuple[dict[str, RowScores], Readings]]:
        """Yield row scores by estimate, and `readings`, for each fit; record in `same` which estimates coincide.

        Parameters
        ----------
        fits : iterable of Fit
            Fitted classifiers, and the rows to score.
        n_fits : int
            Number of fits.
        classes : (C,) array
            Labels of all classes.
        progress : str or None
            Title of the progress bar.
        """
        with progress_bar(progress, n_fits * (len(self.names) + 1)) as tick, warn_once():
            for classifier, baselines, X, y in fits:
                tick()
                readings = self.readings(classifier)
                readers: list[tuple[Any, dict[str, Any]]] = [(nb, {"estimate": e}) for nb, e in readings.values()]
                readers += [(baseline, {}) for baseline in baselines]
                log_probas, scores = [], {}
                for name, (nb, reading) in zip(self.names, readers, strict=True):
                    log_proba, labels = _predict(nb, X, reading, classes)
                    log_probas.append(log_proba)
                    scores[name] = score_rows(log_proba, y, classes, labels)
                    tick()
                for i, j in combinations(range(len(log_probas)), 2):
                    self.same[i, j] &= _coincide(log_probas[i], log_probas[j])
                yield scores, readings

    def same_as(self) -> list[str]:
        """Return for each estimate the name of the first one before it that coincides with it, or ""."""
        first: list[str] = []
        for same in self.same.T:
            first.append(next((self.names[i] for i, equal in enumerate(first) if same[i] and not equal), ""))
        return first


def log_evidence(readings: Readings) -> dict[str, float]:
    """Return {estimate: log evidence} of all estimates but "mle"; NaN where it has no closed form."""
    classifiers = {name: nb for name, (nb, _) in readings.items() if name != "mle"}
    return {n: np.nan if nb.no_posterior or nb.no_evidence else nb.log_evidence_ for n, nb in classifiers.items()}


def _coincide(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether log probabilities agree: probabilities to 1e-12, and logarithms to 1e-9, as many are far below 1e-12."""
    same = np.allclose(np.exp(a), np.exp(b), rtol=0, atol=_SAME, equal_nan=True)
    return bool(same and np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))


def labels(X: Any, y: object, owner: str, which: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Check the labels y of the rows of X; return the classes (C,), and the labels (N,) as an array.

    `owner` and `which`, the ending of the arguments' names, are for messages.
    """
    shape = X.shape if hasattr(X, "shape") else (len(X),) if hasattr(X, "__len__") else ()
    if not shape:
        raise bad_argument(f"X{which}", X, "a table: an array, a sparse matrix, a DataFrame or a list of rows")
    classes, index = check_labels(y, shape[0], owner, f"y{which}")
    return classes.array(), classes.array()[index]


@contextmanager
def warn_once() -> Iterator[None]:
    """Record the warnings inside the block, and issue each distinct text once at its end.

    Of the warnings of unknown levels only the first is issued, and those of rows without class probabilities are not.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            first: dict[object, warnings.WarningMessage] = {}
            for w in caught:
                first.setdefault(w.category if w.category is UnknownLevelWarning else str(w.message), w)
    for w in first.values():
        if w.category is not UndefinedProbabilityWarning:
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)


def _with_alpha(fitted: Classifier, name: str, alpha: object) -> Classifier:
    """Return a copy with the same counts and another `alpha` ("1/L": Perks's prior); ValueError if alpha is bad."""
    if isinstance(alpha, str):
        if alpha != _PERKS:
            wanted = f"a value that `alpha` accepts, such as a positive number, or {_PERKS!r}"
            raise bad_argument(f"priors[{shown(name)}]", alpha, wanted)
        alpha = _perks(fitted.fitted_.encoding)
    other: Classifier = fitted.with_priors({"alpha": alpha})
    _ = other.fitted_.prior  # A bad concentration is refused before anything is scored.
    return other


def _perks(encoding: Encoding) -> np.ndarray:
    """Return (F,) concentrations 1/L, L the number of levels in a feature's group; 1 for columns without levels."""
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


def _predict(classifier: Any, X: object, reading: dict[str, Any], classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Predict log probabilities (N, C) and labels (N,); classes unknown to the classifier have log probability -inf."""
    with np.errstate(divide="ignore"):
        if hasattr(classifier, "predict_log_proba"):
            known = classifier.predict_log_proba(X, **reading)
        else:
            known = np.log(classifier.predict_proba(X))
    log_proba = np.full((len(known), len(classes)), -np.inf)
    log_proba[:, Levels(tuple(classes)).index(classifier.classes_)] = known
    log_proba[np.isnan(known).any(axis=1)] = np.nan
    if not reading or np.isnan(log_proba).any():
        return log_proba, classifier.predict(X, **reading)
    return log_proba, classes[np.argmax(log_proba, axis=1)]
