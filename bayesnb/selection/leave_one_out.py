"""Scores of rows by the posterior of all other rows, exactly and without refits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from bayesnb import counting, scoring
from bayesnb._util.arguments import bad_argument, require_choice
from bayesnb._util.arrays import scatter_rows
from bayesnb._util.precision import float64, map_in_threads
from bayesnb.counting import Counted
from bayesnb.encoding import Rows, check_weights
from bayesnb.families import LevelCounts
from bayesnb.families.arrays import Array, kernel, xp
from bayesnb.fitted import Classifier, Fitted, current_state, is_mixture, require_fitted
from bayesnb.model import Estimate, JointLikelihood, NaiveBayes

PriorOf = Literal["derived", "fixed"]


class CountedRows(NamedTuple):
    """Rows that were counted.

    Parameters
    ----------
    rows : tuple of Rows
        Encoded rows, one object for each block.
    label : (N,) int array
        Index of the class of each row.
    weight : (N,) array
        Replication counts.
    """

    rows: tuple[Rows, ...]
    label: np.ndarray
    weight: np.ndarray

    def take(self, mask: np.ndarray) -> CountedRows:
        """Return the rows for which `mask` (N,) is true."""
        if mask.all():
            return self
        return CountedRows(tuple(r.take(mask) for r in self.rows), self.label[mask], self.weight[mask])


# Name of fitted weights among the choices that a classifier has made on its rows.
WEIGHTS = "weights of terms"
# Fewest rows outside the largest class for which weights are fitted (Peduzzi et al. 1996).
FEWEST_EVENTS = 10
_MANY_ROWS = 5_000


def require_leave_one_out(nb: Classifier, who: str) -> Fitted:
    """Return the state of a classifier; raise NotImplementedError unless leaving rows out of it is exact."""
    require_fitted(nb, who)
    if is_mixture(nb) or (nb.no_posterior is not None and nb.fitted_.member_names is None):
        raise NotImplementedError(f"{who}: {nb.no_posterior}")
    return current_state(nb)


def require_average(estimate: Estimate) -> Estimate:
    """Return the estimate; raise ValueError unless it is "predictive" or "mean", which leave-one-out takes."""
    if not isinstance(estimate, str) or estimate not in ("predictive", "mean"):
        raise bad_argument("estimate", estimate, "'predictive' or 'mean': leave-one-out averages over the posterior")
    return estimate


def _group_rows(label: np.ndarray, weight: np.ndarray) -> Iterator[tuple[np.ndarray, int, float]]:
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
        raise ValueError(f"{who}: X, y and sample_weight must be rows that nb was fitted on. {error}") from None
    return CountedRows(rows, label, weight)


def choose_prior(fitted: Fitted, prior: PriorOf) -> NaiveBayes:
    """Return the prior for leave-one-out, which may be derived from the data.

    With "derived" such a prior is a function of the statistics, and derived anew without each row; with "fixed" it is
    the one derived from all rows. Raises ValueError for another value.
    """
    require_choice("prior", prior, ("derived", "fixed"))
    return fitted.prior if prior == "fixed" else fitted.empirical_prior


# Function of a joint likelihood and rows: `JointLikelihood.log_joint` (n, C), `.log_likelihood` or `.terms`.
Score = Callable[[JointLikelihood, tuple[Any, ...]], jax.Array]


def leave_one_out(
    fitted: Fitted,
    counted: CountedRows,
    estimate: Estimate,
    prior: PriorOf,
    score: Score = JointLikelihood.log_joint,
) -> np.ndarray:
    """Compute (N, C, …) `score` of each row and class by the reading `estimate` of the posterior of the other rows.

    Factors that all classes share are left out. Where terms are weighted, weights and class biases are included.
    `prior` is "derived" or "fixed", see `choose_prior`. For `JointLikelihood.terms`, an average of models has
    log p(class, row) (N, C, M) by each member; both are for `Fitted.weigh_terms`.
    """
    (_, label, weight), each = counted, score is JointLikelihood.terms
    of_model = JointLikelihood.log_joint if fitted.member_names is not None else score

    def score_model(model: Fitted, rows: tuple[Rows, ...], which: np.ndarray) -> np.ndarray:
        return _leave_one_out(model, CountedRows(rows, label[which], weight[which]), estimate, prior, of_model)

    scores = fitted.score_models(counted.rows, len(label), score_model, less=weight, each=each)
    return scores if each else fitted.combine(scores, lambda: log_class_without(fitted, counted))


def _leave_one_out(
    fitted: Fitted, counted: CountedRows, estimate: Estimate, prior: PriorOf, score: Score
) -> np.ndarray:
    """Compute (N, C, …) `score` of each row of a single model, see `leave_one_out`."""
    encoding, n_classes = fitted.encoding, len(fitted.encoding.classes)
    posterior = scoring.update_for_removal(choose_prior(fitted, prior), fitted.statistics)
    is_shared = posterior.classes_share_parameters  # All classes change without the row.
    every = [] if is_shared else [scoring.read(encoding, posterior, estimate)]
    changed = np.eye(n_classes) if is_shared else np.ones((1, n_classes))
    left_out = _group_rows(counted.label if is_shared else np.zeros_like(counted.label), counted.weight)
    groups = [(mask, -w * changed[c], w) for mask, c, w in left_out]
    is_terms = score is JointLikelihood.terms
    bias = 0.0 if fitted.weights is None else fitted.weights.class_bias

    def score_group(group: tuple[np.ndarray, np.ndarray, float]) -> tuple[np.ndarray, np.ndarray]:
        mask, multiplicity, weight = group
        rows = counted.take(mask)
        log_class = _log_class_without(posterior.class_prior, n_classes, weight) + bias
        readings = [scoring.read(encoding, posterior, estimate, multiplicity), *every]
        prepared: list[JointLikelihood] = []

        def score_block(x: tuple[Any, ...], label: np.ndarray) -> jax.Array:
            if not prepared:  # Terms are those of tables as they are.
                prepared.extend(readings if is_terms else [scoring.prepare(r, x) for r in readings])
            return _score_without(prepared, log_class, x, label, score)

        # Without the row, its numbers have parameters of their own in each class.
        cells = n_classes * (encoding.n_terms if is_terms else sum(r.width() for r in rows.rows))
        return mask, scoring.map_rows(rows.rows, len(rows.label), score_block, rows.label, cells=cells)

    # One group keeps one core busy; to start threads takes as long as scores of some thousand rows.
    return scatter_rows(list((map_in_threads if len(counted.label) > _MANY_ROWS else map)(score_group, groups)))


@kernel(static_argnames="score")
def _score_without(
    readings: list[JointLikelihood], log_class: jax.Array, x: tuple[Any, ...], label: jax.Array, score: Score
) -> Array:
    """Compute (n, C, …) `score` of a block of rows by the first of `readings`, with log π in the label's row (C, C).

    A second reading is that of the classes to which the row does not belong.
    """
    first, *others = (score(replace(reading, log_class=log_class[label]), x) for reading in readings)
    own = xp.expand_dims(label[:, None] == xp.arange(len(log_class)), tuple(range(2, first.ndim)))
    return xp.where(own, first, others[0]) if others else first


def log_class_without(fitted: Fitted, counted: CountedRows) -> np.ndarray:
    """Compute (N, C) log posterior mean class probabilities without each row."""
    count = fitted.statistics.class_count
    posterior = float64(fitted.prior.class_prior.update_keeping_prior)(LevelCounts(count[None]))
    log_class = np.empty((len(counted.label), len(count)))
    for weight in np.unique(counted.weight):
        rows = counted.weight == weight
        log_class[rows] = _log_class_without(posterior, len(count), weight)[counted.label[rows]]
    return log_class


@float64
def _log_class_without(class_posterior: Any, n_classes: int, weight: float) -> np.ndarray:
    """Compute (C, C) log mean class probabilities; row c is that without `weight` rows of class c."""
    each = (LevelCounts(row[None]) for row in -weight * np.eye(n_classes))
    return np.concatenate([class_posterior.update(counts).mean().log_theta for counts in each])
