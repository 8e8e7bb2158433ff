"""Semi-supervised fits by EM: rows without a label count for every class by their responsibilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from bayesnb import em
from bayesnb._util.arguments import require_integer, require_number, shown
from bayesnb._util.terminal import card, table
from bayesnb._util.warnings import warn
from bayesnb.encoding import Columns, Encoding, Levels, Table, check_partial_labels, check_weights, ignore_unknown
from bayesnb.estimators import classifier_state
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.classifier_state import Batch
from bayesnb.families import OF_NUMBERS
from bayesnb.fitted import counting
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import read_columns, require_classifier

_MEANING = (
    "EM ends at a local maximum. The model itself estimates the classes of rows without a label: if the model is "
    "wrong, these rows may make it worse. `estimator` has no intervals, evidence or leave-one-out scores. Score it on "
    "labelled rows."
)


@dataclass(frozen=True, eq=False)
class EM:
    """Result of `fit_em`: the fitted classifier, and the objective of each iteration.

    Attributes
    ----------
    estimator : classifier
        Copy of the classifier, fitted to the labelled rows and to the expected counts of the unlabelled ones. It
        predicts, but has no exact posterior.
    objective : (n,) array
        Penalised log likelihood at the parameters at the start of each iteration; it never falls.
    converged : bool
        Whether the last iteration raised the objective by no more than `tol` per row.
    starts : (1 + restarts,) array
        Last objective of each start; `estimator` is that of the best start.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, fit_em
    >>> em = fit_em(CategoricalNB(), [["red"], ["green"]], ["ripe", "raw"], [["red"], ["green"]])
    >>> em.converged, em.objective.round(3), em.starts.round(3)
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
        """Return objective, iterations and starts as an HTML card for notebooks."""
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
    X: object,
    y: object,
    X_unlabeled: object = None,
    weight: float = 1.0,
    *,
    sample_weight: object = None,
    max_iter: int = 100,
    tol: float = 1e-5,
    restarts: int = 0,
    seed: int = 0,
) -> EM:
    """Fit a classifier to labelled rows and to rows without a label, by EM.

    Parameters
    ----------
    nb : classifier of bayesnb
        Classifier whose columns, options and priors are used; it is not changed.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows of features.
    y : array-like of shape (N,)
        Labels. Rows without a label have -1, None, NaN, NaT or pd.NA. An array of strings and such marks must have
        dtype object.
    X_unlabeled : array-like, sparse matrix or DataFrame of shape (M, F), optional
        More rows without a label.
    weight : float, default 1
        Weight of an unlabelled row, where a labelled one has weight 1. A smaller weight helps if the classes that
        describe the unlabelled rows best differ from those of the labels.
    sample_weight : array-like of shape (N,), optional
        Replication counts of the rows of X.
    max_iter : int, default 100
        Largest number of iterations of a start.
    tol : float, default 1e-5
        A start has converged if an iteration raises the objective per row by no more than `tol`, in nats.
    restarts : int, default 0
        Number of further starts, from unlabelled rows drawn at random in place of the labelled ones alone.
    seed : int, default 0
        Seed of these draws.

    Returns
    -------
    EM
        The fitted classifier, with the objective of each iteration.

    Raises
    ------
    ValueError
        If no row is labelled, or all labels are of one class; if under an improper prior the likelihood has no maximum,
        or a row is impossible.
    NotImplementedError
        If `nb` is an average of models, or has no conjugate prior.

    Warns
    -----
    UserWarning
        If `max_iter` iterations were not enough.

    Notes
    -----
    With L the labelled rows and U the others, EM finds a local maximum over the parameters θ of

        Σ_L log p(x, y | θ) + weight · Σ_U log Σ_c p(x, c | θ) + log penalty(θ).

    The penalty is the log density of the prior up to a constant: of class probabilities and levels in the softmax
    basis, Σ α log θ, of a Poisson rate that of its logarithm, a log λ - b λ, of a Gaussian feature that of (μ, σ²). So
    θ is the posterior mean given the expected counts for the first two, for every proper prior, and the joint mode for
    the third. The responsibilities are P(class | row, θ). The returned estimator predicts from its expected counts,
    with `nb.estimate`. In a network a row counts by those cells whose parents are all observed; predictions sum missing
    cells out.

    A prior derived from the data is that of all rows, labelled or not, in every iteration. As the classes of some rows
    are unknown, "pooled", the variance over all rows, replaces "within", also in the returned estimator. A posterior
    given expected counts would be too narrow, so that draws, intervals, evidence and leave-one-out scores are not
    offered. If every row is labelled, or `weight` is 0, the result is that of `nb.fit`, which offers them.

    References
    ----------
    Nigam, McCallum, Thrun & Mitchell, *Text classification from labeled and unlabeled documents using EM*, Machine
    Learning 39 (2000). Dempster, Laird & Rubin, *Maximum likelihood from incomplete data via the EM algorithm*, JRSS B
    39 (1977).

    Examples
    --------
    Eight rows without a label tell which values go together.

    >>> from bayesnb import CategoricalNB, fit_em
    >>> X, y = [["red", "?"], ["green", "?"]], ["ripe", "raw"]
    >>> unlabeled = [["red", "sweet"]] * 4 + [["green", "sour"]] * 4
    >>> em = fit_em(CategoricalNB(missing_values="?"), X, y, unlabeled)
    >>> em
    EM(CategoricalNB, objective -19.148, converged after 10 iterations)
    >>> em.estimator.classes_, em.estimator.predict_proba([["?", "sweet"]]).round(2)
    (array(['raw', 'ripe'], dtype='<U4'), array([[0.2, 0.8]]))
    """
    em.check_options(max_iter, tol, seed)
    require_integer("restarts", restarts, 0)
    weight = require_number(
        "weight", weight, "a number of at least 0, the weight of an unlabelled row", lambda w: w >= 0
    )
    model = clone_for_em(nb, "fit_em")
    table = read_columns(model, X, reset=True)
    classes, label = check_partial_labels(y, table.n_rows, type(nb).__name__)
    weights = check_weights(sample_weight, table.n_rows)
    known = (label >= 0) & (weights > 0)
    arguments = [("X", table, np.where(label < 0, weight * weights, 0.0))]
    if X_unlabeled is not None:
        more = replace(
            read_columns(model, X_unlabeled), time_units=None
        )  # X tells the units, once its rows are counted.
        arguments.append(("X_unlabeled", more, np.full(more.n_rows, weight)))
    arguments = [(name, rows, w) for name, rows, w in arguments if w.any()]
    if not known.any():
        raise ValueError(
            "y: no row has a label and positive weight; -1, None and NaN mark rows without a label. Without any "
            "labels use NaiveBayesMixture."
        )
    if arguments and len(classes) < 2:
        raise ValueError(
            f"y: the only label is {shown(classes.values[0])}. Pass labelled rows of two or more classes. -1 marks a "
            "row without a label; if -1 is the name of a class, rename that class."
        )
    if arguments:
        use_pooled_priors(model)

    labeled = table.take(known)
    columns = model._columns(table if (weights > 0).all() else table.take(weights > 0))
    batch = Batch(classes, labeled, label[known], weights[known])
    counted = model._encode(batch, columns).count_levels()
    # The rows without a label are read with the columns, and the structure, of the labelled ones.
    model._commit(model, counted)
    classifier_state.warn_of_dates(model)
    time_units = vars(model).get("time_units_", {})
    arguments = [(name, replace(rows, time_units=time_units), w) for name, rows, w in arguments]
    for _, rows, w in arguments:
        counted = counting.merge(counted, count_in_first_class(model, classes, model.fitted_.encoding.blocks, rows, w))
    encoding, prior = counted.encoding, model._empirical_prior(counted).derive(counted.statistics)
    unlabeled = [em.encode_unlabeled(encoding, *argument) for argument in arguments]
    encoded = encoding.rows(labeled, ignore_unknown)
    statistics = counting.count_rows(encoding, encoded, label[known], weights[known])

    starts = [statistics]
    if unlabeled:
        rng = np.random.default_rng(seed)
        starts += [statistics.merge(em.random_start(encoding, unlabeled, rng)) for _ in range(restarts)]
        model.unlabeled_weight_ = weight
    runs = em.run_starts(encoding, prior, statistics, unlabeled, starts, len(starts), max_iter, tol)
    best = fit_to_best_run(model, encoding, runs, max_iter, tol)
    return EM(model, best.objective, best.converged, np.array([run.objective[-1] for run in runs]))


def fit_to_best_run(
    nb: NaiveBayesClassifier, encoding: Encoding, runs: Sequence[em.Run], max_iter: int, tol: float
) -> em.Run:
    """Fit `nb` in place to the expected counts of the run with the best objective, and return this run.

    Warns
    -----
    UserWarning
        If the run has not converged.
    """
    best = max(runs, key=lambda run: float(run.objective[-1]))
    if not best.converged:
        warn(f"EM has not converged after max_iter={max_iter} iterations. Raise max_iter, or raise tol={tol}.")
    nb._commit(nb, Counted(encoding, best.statistics))
    return best


def clone_for_em(nb: NaiveBayesClassifier, who: str) -> NaiveBayesClassifier:
    """Return an unfitted clone of a classifier, with numbers="gaussian" in place of "auto", which chooses by labels.

    Raises
    ------
    NotImplementedError
        If the parameters of the classifier are not functions of counts, so that EM does not apply.
    """
    require_classifier(nb, who)
    model: NaiveBayesClassifier = clone(nb)
    if getattr(model, "numbers", None) == "auto":
        model.set_params(numbers="gaussian")  # "auto" chooses by labels
    if model.no_posterior is not None:
        raise NotImplementedError(f"{who} needs a classifier with an exact posterior. {model.no_posterior}")
    if model.no_em is not None:
        raise NotImplementedError(f"{who}: {model.no_em}")
    return model


def count_in_first_class(
    nb: NaiveBayesClassifier, classes: Levels, columns: tuple[Columns, ...], table: Table, weight: np.ndarray
) -> Counted:
    """Return counts of unlabelled rows in the first class: priors derived from all rows ignore the class."""
    batch = Batch(classes, table, np.zeros(table.n_rows, np.int32), weight)
    return nb._encode(batch, columns).count_levels()


def use_pooled_priors(nb: NaiveBayesClassifier) -> None:
    """Replace priors with the variance within classes by those with the variance over all rows, in place.

    The classes change from one iteration of EM to the next, and the variance within them would change the prior.
    """
    for name in ("prior", *(f"{family.kind}_prior" for family in OF_NUMBERS)):
        value: object = getattr(nb, name, None)
        if hasattr(value, "of_unknown_classes"):
            nb.set_params(**{name: value.of_unknown_classes()})
        elif isinstance(value, str) and value == "within":
            nb.set_params(**{name: "pooled"})
