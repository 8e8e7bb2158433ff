"""EM: rows whose class is not known have a share in every class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from bayesnb import counting, em
from bayesnb._util.arguments import require_integer, require_number, shown
from bayesnb._util.html import card, table
from bayesnb._util.warnings import warn
from bayesnb.counting import Counted
from bayesnb.encoding import Levels, Table, check_labels, check_weights
from bayesnb.estimators import drafts
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.families import OF_NUMBERS
from bayesnb.fitted import require_classifier

UNLABELED = -1
_MEANING = (
    "A local maximum. Rows without a label are counted in shares by the model itself: if it is wrong they may make it "
    "worse, and `estimator` predicts without intervals, evidence or leave-one-out. Score it on labelled rows."
)


@dataclass(frozen=True, eq=False)
class EM:
    """What EM came to.

    Attributes
    ----------
    estimator : classifier
        As the one that was given, fitted to the labelled rows, and to the others in shares. It predicts; it has no
        exact posterior.
    objective : (n,) array
        The penalised log likelihood, at the parameters that each iteration started from; it never falls.
    converged : bool
        Whether the last iteration raised it by less than `tol` a row.
    starts : (1 + restarts,) array
        What each start came to; the best was taken.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, fit_em
    >>> found = fit_em(CategoricalNB(), [["red"], ["green"]], ["ripe", "raw"], [["red"], ["green"]])
    >>> found.converged, found.objective.round(3), found.starts.round(3)
    (True, array([-7.978, -7.978]), array([-7.978]))
    """

    estimator: Any
    objective: np.ndarray
    converged: bool
    starts: np.ndarray

    def __repr__(self) -> str:
        end = "converged" if self.converged else "not converged"
        name, n = type(self.estimator).__name__, len(self.objective)
        return f"EM({name}, objective {self.objective[-1]:.3f}, {end} after {n} iteration{'s' * (n > 1)})"

    def _repr_html_(self) -> str:
        rows = [
            ("objective, nats", self.objective[-1]),
            ("at its start", self.objective[0]),
            ("iterations", len(self.objective)),
            ("converged", "yes" if self.converged else "no"),
            ("starts", len(self.starts)),
            ("of which reached the best", int(np.isclose(self.starts, self.starts.max(), rtol=1e-6).sum())),
        ]
        return card("EM", type(self.estimator).__name__, table(rows), notes=[_MEANING])


def fit_em(
    nb: NaiveBayesClassifier,
    X: Any,
    y: Any,
    X_unlabeled: Any = None,
    weight: Any = 1.0,
    *,
    sample_weight: Any = None,
    max_iter: int = 100,
    tol: Any = 1e-5,
    restarts: int = 0,
    seed: int = 0,
) -> EM:
    """Learn from labelled rows, and from rows without a label too.

    Parameters
    ----------
    nb : classifier of bayesnb
        Its columns, options and priors; it is not changed.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
    y : array-like of shape (N,)
        Labels. Rows labelled -1 are unlabelled. An array of strings and -1 must have dtype object.
    X_unlabeled : as X, optional
        More rows without a label.
    weight : float, default 1
        What an unlabelled row counts for, against 1 of a labelled one. Where the classes that would describe the
        unlabelled rows best are not those of the labels, less is more.
    sample_weight : array-like of shape (N,), optional
        Replication counts of the rows of X.
    max_iter : int
        Most iterations of a start.
    tol : float
        A start has converged when an iteration raises the objective by no more than this for each row, in nats.
    restarts : int, default 0
        Further starts, from unlabelled rows drawn at random in place of the labelled ones alone.
    seed : int

    Returns
    -------
    EM

    Raises
    ------
    ValueError
        If no row is labelled, or but one class; if under a prior of no weight the likelihood has no maximum, or a row
        is impossible.
    NotImplementedError
        If `nb` is an average of models, or has no conjugate prior.

    Warns
    -----
    UserWarning
        If `max_iter` iterations were not enough.

    Notes
    -----
    With L the labelled rows and U the others, EM climbs to a local maximum over the parameters θ of

        Σ_L log p(x, y | θ) + weight · Σ_U log Σ_c p(x, c | θ) + log penalty(θ).

    The penalty is the log density of the prior up to a constant: of class probabilities and levels in the softmax
    basis, Σ α log θ, of a Poisson rate that of its logarithm, a log λ - b λ, of a Gaussian feature that of (μ, σ²). So
    θ is the posterior mean of the counts in shares for the first two, for every prior of positive weight, and the
    joint mode for the third. Shares are P(class | row, θ). The estimator that is returned predicts from its counts as
    `nb.estimate` says. Of a network a row enters with those cells of which all parents are observed, as cells count;
    its predictions sum missing ones out.

    A prior derived from the data is that of all rows, labelled or not, from the first iteration to the last. As classes
    are not known, "pooled", the variance over all rows, stands for "within", also in the estimator that is returned.
    Counts in shares are no data: the posterior
    would be too sure, and draws, intervals, evidence and leave-one-out are refused. If every row is labelled, or
    `weight` is 0, this is `nb.fit`, and they are not.

    References
    ----------
    Nigam, McCallum, Thrun & Mitchell, *Text classification from labeled and unlabeled documents using EM*, Machine
    Learning 39 (2000). Dempster, Laird & Rubin, *Maximum likelihood from incomplete data via the EM algorithm*, JRSS B
    39 (1977).

    Examples
    --------
    Two labelled rows, and eight without a label that tell which values go together.

    >>> from bayesnb import CategoricalNB, fit_em
    >>> X, y = [["red", "?"], ["green", "?"]], ["ripe", "raw"]
    >>> unlabeled = [["red", "sweet"]] * 4 + [["green", "sour"]] * 4
    >>> found = fit_em(CategoricalNB(missing_values="?"), X, y, unlabeled)
    >>> found
    EM(CategoricalNB, objective -19.148, converged after 10 iterations)
    >>> found.estimator.classes_, found.estimator.predict_proba([["?", "sweet"]]).round(2)
    (array(['raw', 'ripe'], dtype='<U4'), array([[0.2, 0.8]]))
    """
    em.check_options(max_iter, tol, seed)
    require_integer("restarts", restarts, 0)
    weight = require_number(
        "weight", weight, "a number of at least 0: what an unlabelled row counts for", lambda w: w >= 0
    )
    draft = template(nb, "fit_em")
    table = draft._table(X, reset=True)
    classes, label = _split(y, table.n_rows, type(nb).__name__)
    weights = check_weights(sample_weight, table.n_rows)
    known = (label >= 0) & (weights > 0)
    given = [("X", table, np.where(label < 0, weight * weights, 0.0))]
    if X_unlabeled is not None:
        more = draft._table(X_unlabeled)
        given.append(("X_unlabeled", more, np.full(more.n_rows, weight)))
    some_unlabeled = any(w.any() for _, _, w in given)
    _require_classes(classes, known, some_unlabeled)
    draft = of_unknown_classes(draft) if some_unlabeled else draft

    labeled = table.take(known)
    columns = draft._columns(table)
    counted = drafts.count_table(draft, classes, labeled, label[known], weights[known], columns)
    drafts.commit(
        draft, draft, counted
    )  # from here on its columns, and a structure that labelled rows gave them, are known
    for _, part, w in given:
        if w.any():
            counted = counting.merge(counted, in_first_class(draft, classes, draft.fitted_.encoding.blocks, part, w))
    encoding, prior = counted.encoding, drafts.derived_prior(draft, counted)
    unlabeled = [em.Unlabeled.of(encoding, *part) for part in given if part[2].any()]
    statistics = counting.count_rows(encoding, encoding.rows(labeled, em.told_already), label[known], weights[known])

    starts = [statistics]
    if unlabeled:
        rng = np.random.default_rng(seed)
        starts += [statistics.merge(em.random_start(encoding, unlabeled, rng)) for _ in range(restarts)]
        draft.unlabeled_weight_ = weight
    runs = em.runs(encoding, prior, statistics, unlabeled, starts, len(starts), max_iter, tol)
    best = max(runs, key=lambda found: found.objective[-1])
    if not best.converged:
        warn(f"EM has not converged after max_iter={max_iter} iterations; let it have more, or raise tol={tol}.")
    drafts.commit(draft, draft, Counted(encoding, best.statistics))
    return EM(draft, best.objective, best.converged, np.array([found.objective[-1] for found in runs]))


def template(nb: NaiveBayesClassifier, who: str) -> NaiveBayesClassifier:
    """A copy of `nb` that is not fitted.

    Raises
    ------
    NotImplementedError
        If its parameters are not functions of counts, and EM is of no use.
    """
    require_classifier(nb, who)
    draft = clone(nb)
    if getattr(draft, "numbers", None) == "auto":
        draft.set_params(numbers="gaussian")  # the choice takes labels
    if draft.no_posterior is not None:
        raise NotImplementedError(f"{who} counts rows in shares, and cannot: {draft.no_posterior}")
    if draft.no_em is not None:
        raise NotImplementedError(f"{who}: {draft.no_em}")
    return draft


def in_first_class(
    nb: NaiveBayesClassifier, classes: Levels, columns: Any, table: Table, weight: np.ndarray
) -> Counted:
    """Rows without a label counted in the first class: what a prior derived from all rows asks for is the same."""
    return drafts.count_table(nb, classes, table, np.zeros(table.n_rows, np.int32), weight, columns)


def of_unknown_classes(nb: NaiveBayesClassifier) -> NaiveBayesClassifier:
    """The same, with the variance over all rows where a prior would have that within classes.

    EM is looking for the classes still: of theirs, each iteration would have another prior.
    """
    for name in ("prior", *(f"{family.kind}_prior" for family in OF_NUMBERS)):
        value: Any = getattr(nb, name, None)
        if hasattr(value, "of_unknown_classes"):
            nb.set_params(**{name: value.of_unknown_classes()})
        elif isinstance(value, str) and value == "within":
            nb.set_params(**{name: "pooled"})
    return nb


def _split(y: Any, n_rows: int, owner: str) -> tuple[Levels, np.ndarray]:
    """Classes, and the index of each row's class, -1 where it has no label."""
    try:
        found, index = check_labels(y, n_rows, owner)
    except ValueError as error:
        if "NaN" in str(error):
            raise ValueError(f"{error} The mark of a row without a label is -1.") from None
        raise
    if str(UNLABELED) in found.values and len(found) > 1:
        raise ValueError(
            f"y has labels {str(UNLABELED)!r}, a string. An array of strings made it of the number -1, the mark "
            "of a row without a label: give y dtype=object. A class of that name needs another one."
        )
    classes = Levels(tuple(v for v in found.values if v != UNLABELED))
    return classes, classes.index(found.values).clip(min=-1).astype(np.int32)[index]


def _require_classes(classes: Levels, known: np.ndarray, some_unlabeled: bool) -> None:
    if not known.any():
        raise ValueError(
            "y: no row has a label and positive weight; -1 means that there is none. NaiveBayesMixture is for rows "
            "without any."
        )
    if some_unlabeled and len(classes) < 2:
        raise ValueError(
            f"y: the only label is {shown(classes.values[0])}, so that every unlabelled row is of that class; -1 "
            "means that there is no label. If it is the name of a class, give that another name."
        )
