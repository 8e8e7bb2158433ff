"""Scores of rows by the posterior of all other rows, exactly and without refits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from bayesnb import counting, scoring
from bayesnb._util.arguments import require_choice, shown
from bayesnb._util.precision import float64
from bayesnb._util.rows import scatter_rows
from bayesnb._util.threads import map_in_threads
from bayesnb.counting import Counted
from bayesnb.encoding import Encoding, Rows, Table, check_weights, ignore_unknown
from bayesnb.families import Known, LevelCounts, posterior_for_removal
from bayesnb.fitted import Average, Classifier, Fitted, current_state, require_fitted
from bayesnb.model import Estimate, NaiveBayes

PriorOf = Literal["derived", "fixed"]


class CountedRows(NamedTuple):
    """Rows that were counted.

    Parameters
    ----------
    table : Table
        Columns as the user gave them.
    rows : tuple of Rows
        Encoded rows, one object for each block.
    label : (N,) int array
        Index of the class of each row.
    weight : (N,) array
        Replication counts.
    """

    table: Table
    rows: tuple[Rows, ...]
    label: np.ndarray
    weight: np.ndarray

    def take(self, mask: np.ndarray, encoding: Encoding) -> CountedRows:
        """Return the rows for which `mask` (N,) is true, encoded anew by `encoding` unless these are all rows."""
        if mask.all():
            return self
        table = self.table.take(mask)
        # Values that are no level were reported with all rows.
        rows = encoding.rows(table, ignore_unknown)
        return CountedRows(table, rows, self.label[mask], self.weight[mask])


WEIGHTS = "weights of terms"
"""Name of fitted weights among the choices that a classifier has made on its rows."""
FEWEST_EVENTS = 10
"""Fewest rows outside the largest class for which weights are fitted (Peduzzi et al. 1996)."""


def require_leave_one_out(nb: Classifier, who: str) -> Fitted:
    """Return the state of a classifier; raise NotImplementedError unless leaving rows out of it is exact."""
    require_fitted(nb, who)
    fitted: Fitted | None = getattr(nb, "fitted_", None)  # `NaiveBayesMixture` has no such state.
    if fitted is None or (nb.no_posterior is not None and fitted.average is None):
        raise NotImplementedError(f"{who}: {nb.no_posterior}")
    return current_state(nb)


def require_average(estimate: Estimate) -> Estimate:
    """Return the estimate; raise ValueError unless it is "predictive" or "mean", which leave-one-out takes."""
    if not isinstance(estimate, str) or estimate not in ("predictive", "mean"):
        raise ValueError(
            f"estimate={shown(estimate)} is no average over the posterior of the other rows; leave-one-out takes "
            "'predictive' or 'mean'."
        )
    return estimate


def group_rows(label: np.ndarray, weight: np.ndarray) -> Iterator[tuple[np.ndarray, int, float]]:
    """Yield a mask (N,), the class and the weight of rows of one class and weight: each leaves the same posterior."""
    for c in np.flatnonzero(np.bincount(label)):
        for w in np.unique(weight[label == c]):
            yield (label == c) & (weight == w), int(c), float(w)


def counted_rows(fitted: Fitted, X: object, y: object, sample_weight: object, who: str) -> CountedRows:
    """Encode the rows of X with labels and weights; raise ValueError if removing them would leave a negative count."""
    table = fitted.table(X)
    label = fitted.label_index(y, table.n_rows)
    weight = check_weights(sample_weight, table.n_rows)
    rows = fitted.encoding.rows(table)
    given = Counted(fitted.encoding, counting.count_rows(fitted.encoding, rows, label, weight))
    try:
        counting.remove(fitted.counted, given)
    except ValueError as error:
        raise ValueError(
            f"{who}: X, y and sample_weight must be rows that the classifier was fitted on, and these are not. "
            + str(error).replace("forget would leave", "Without them there would be")
        ) from None
    return CountedRows(table, rows, label, weight)


def choose_prior(fitted: Fitted, prior: PriorOf) -> NaiveBayes:
    """Return the prior for leave-one-out, which may be derived from the data.

    With "derived" such a prior is a function of the statistics, and derived anew without each row; with "fixed" it is
    the one derived from all rows. Raises ValueError for another value.
    """
    require_choice("prior", prior, ("derived", "fixed"))
    return fitted.prior if prior == "fixed" else fitted.empirical_prior


def leave_one_out(
    fitted: Fitted, counted: CountedRows, estimate: Estimate, prior: PriorOf, score: Callable[..., np.ndarray]
) -> np.ndarray:
    """Compute (N, C, …) log scores of each row and class by the posterior of the other rows.

    `score` is `log_likelihoods`, for (N, C) log p(row | class), or `scoring.terms_of_rows`, for its (N, C, T) terms.
    `prior` is "derived" or "fixed", see `choose_prior`.
    """
    encoding, n_classes = fitted.encoding, len(fitted.encoding.classes)
    posterior = scoring.update_for_removal(choose_prior(fitted, prior), fitted.statistics)

    def score_group(group: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        mask, multiplicity = group
        rows = counted.take(mask, encoding)
        return mask, score(encoding, posterior, rows.rows, len(rows.label), estimate, multiplicity=multiplicity)

    if posterior.classes_share_parameters:  # All classes change without the row.
        groups = [(mask, -w * np.eye(n_classes)[c]) for mask, c, w in group_rows(counted.label, counted.weight)]
        return scatter_rows(list(map_in_threads(score_group, groups)))  # One group keeps one core busy.
    weights = np.unique(counted.weight)
    without = scatter_rows([score_group((counted.weight == w, np.full(n_classes, -w))) for w in weights])
    every = score(encoding, posterior, counted.rows, len(counted.label), estimate)
    own = counted.label[:, None] == np.arange(n_classes)
    return np.where(own.reshape(own.shape + (1,) * (every.ndim - 2)), without, every)


def log_likelihoods(
    encoding: Encoding,
    model: NaiveBayes,
    rows: tuple[Rows, ...],
    n: int,
    estimate: Estimate,
    multiplicity: np.ndarray | None = None,
) -> np.ndarray:
    """Compute (n, C) log p(row | class) under the reading `estimate` of the posterior `model`, without class biases.

    With `multiplicity` (C,) each row is first added to the data of each class that many times.
    """
    nothing = np.zeros(model.n_classes)
    weights = None if model.weights is None else replace(model.weights, class_bias=nothing)
    known = replace(model, class_prior=Known(nothing[None]), weights=weights)
    return scoring.score_rows(encoding, known, rows, n, estimate, scoring.joint, multiplicity)


def leave_one_out_joint(fitted: Fitted, counted: CountedRows, estimate: Estimate, prior: PriorOf) -> np.ndarray:
    """Compute (N, C) log p(class, row) under the reading `estimate` of the posterior of the other rows.

    Where terms are weighted, weights and class biases are included. Factors that all classes share are left out.
    """
    likelihood = leave_one_out(fitted, counted, estimate, prior, log_likelihoods)
    log_class = add_class_bias(fitted, log_class_without(fitted, counted))
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(likelihood) | np.isneginf(log_class), -np.inf, likelihood + log_class)


def add_class_bias(fitted: Fitted, log_class: np.ndarray) -> np.ndarray:
    """Add the class biases of the weights, if there are weights, to log class probabilities (…, C)."""
    return log_class if fitted.weights is None else log_class + fitted.weights.class_bias


def leave_one_out_of_members(
    average: Average, counted: CountedRows, estimate: Estimate, prior: PriorOf, *, each: bool
) -> np.ndarray:
    """Compute leave-one-out log p(class, row) of an average, (N, C), or of `each` of its M members, (N, C, M).

    Each posterior of the other rows is read by `estimate`; `prior` is "derived" or "fixed", see `choose_prior`.
    """
    table, rows, label, weight = counted

    def joint(member: Fitted, rows: tuple[Rows, ...], which: np.ndarray) -> np.ndarray:
        of_member = CountedRows(table.take(which), rows, label[which], weight[which])
        return leave_one_out_joint(member, of_member, estimate, prior)

    combine = average.each if each else average.mean
    return combine(table, rows, joint, less=weight)


def leave_one_out_of_average(fitted: Fitted, counted: CountedRows, estimate: Estimate, prior: PriorOf) -> np.ndarray:
    """Compute (N, C) leave-one-out log p(class, row) of an average of models, with its weights of terms if any.

    Each posterior of the other rows is read by `estimate`; `prior` is "derived" or "fixed", see `choose_prior`.
    """
    average, weights = fitted.average, fitted.weights
    assert average is not None
    each = weights is not None and weights.has_members
    joint = leave_one_out_of_members(average, counted, estimate, prior, each=each)
    return joint if weights is None else weights.average_scores(joint, log_class_without(fitted, counted))


def log_class_without(fitted: Fitted, counted: CountedRows) -> np.ndarray:
    """Compute (N, C) log posterior mean class probabilities without each row."""
    (_, _, label, weight), count = counted, fitted.statistics.class_count
    posterior: Any = float64(posterior_for_removal)(fitted.prior.class_prior, LevelCounts(count[None]))
    log_class = np.empty((len(label), len(count)))
    for mask, c, w in group_rows(label, weight):
        without = float64(posterior.update)(LevelCounts(-w * np.eye(len(count))[c][None]))
        log_class[mask] = scoring.plug_in(without).log_theta[0]
    return log_class
