"""Scores of rows by the posterior of all other rows, exactly and without refits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb import counting, scoring
from bayesnb._util.arguments import require_choice, shown
from bayesnb._util.precision import float64
from bayesnb._util.progress import rows_progress
from bayesnb._util.threads import map_in_threads
from bayesnb.counting import Counted
from bayesnb.encoding import Encoding, Rows, Table, check_weights
from bayesnb.families import LevelCounts, posterior_for_removal
from bayesnb.fitted import Average, Classifier, Fitted, current_state, require_fitted
from bayesnb.model import Estimate, JointLikelihood, NaiveBayes, log_normalize, plus

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
        """Return the rows for which `mask` (N,) is true."""
        table = self.table.take(mask)
        # Values that are no level were reported with all rows.
        rows = encoding.rows(table, lambda columns, unknown: None)
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
    """Return the estimate; raise ValueError unless it is an average over the posterior of the other rows."""
    if not isinstance(estimate, str) or estimate not in ("predictive", "mean"):
        raise ValueError(
            f"estimate={shown(estimate)} is no average over the posterior of the other rows; leave-one-out takes "
            "'predictive' or 'mean'."
        )
    return estimate


def label_weight_pairs(label: np.ndarray, weight: np.ndarray) -> Iterator[tuple[int, float]]:
    """Yield the distinct pairs of class and weight: rows of a pair have the same posterior without the row."""
    for c in np.flatnonzero(np.bincount(label)):
        for w in np.unique(weight[label == c]):
            yield int(c), float(w)


def counted_rows(fitted: Fitted, X: object, y: object, sample_weight: object, who: str) -> CountedRows:
    """Read the rows of X; raise ValueError if removing them would leave a negative count."""
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
    """Return the prior of the other rows, a function of their statistics ("derived") or that of all rows ("fixed")."""
    require_choice("prior", prior, ("derived", "fixed"))
    return fitted.prior if prior == "fixed" else fitted.empirical_prior


class Quantity(NamedTuple):
    """A quantity of rows that are left out, computed by the posterior of the other rows.

    Parameters
    ----------
    prepare : function of a likelihood and of a block of rows
        Lays the likelihood out for such blocks.
    of_own : function for models in which a row informs the parameters of its own class only
        Takes the prepared likelihoods with every row and without a row, log P(class) (n, C) without the row, the
        indicators (n, C) of the row's class, and a block of rows.
    shared : function for models in which classes share parameters
        Takes the arguments of `scoring.score_rows`, for rows of one class and weight, whose `multiplicity` leaves them
        out of all classes.
    """

    prepare: Callable[[JointLikelihood, tuple[Any, ...]], JointLikelihood]
    of_own: Callable[[JointLikelihood, JointLikelihood, jax.Array, jax.Array, tuple[Any, ...]], jax.Array]
    shared: Callable[..., np.ndarray]


def leave_one_out(
    fitted: Fitted, counted: CountedRows, estimate: Estimate, prior: PriorOf, quantity: Quantity
) -> np.ndarray:
    """Compute (N, …) a quantity of each row by the posterior of the other rows.

    `SCORES` are (N, 2, C) log p(class, row | the other rows), and log P(class | row, the other rows); `TERMS` the
    (N, C, T) terms of log p(row | class, the other rows).
    """
    encoding, n_classes = fitted.encoding, len(fitted.encoding.classes)
    posterior = scoring.update_for_removal(choose_prior(fitted, prior), fitted.statistics)
    if not posterior.classes_share_parameters:
        model, weights = scoring.pad(encoding, posterior), np.unique(counted.weight)
        if len(weights) == 1:
            return _own_class_without(model, encoding, counted, float(weights[0]), estimate, quantity)
        parts = []
        for w in weights:
            group = counted.take(mask := counted.weight == w, encoding)
            parts.append((mask, _own_class_without(model, encoding, group, float(w), estimate, quantity)))
        return _scatter(parts)

    def score_group(group: tuple[int, float]) -> tuple[np.ndarray, np.ndarray]:
        c, w = group
        rows = counted.take(mask := (counted.label == c) & (counted.weight == w), encoding)
        without = -w * np.eye(n_classes)[c]
        return mask, quantity.shared(encoding, posterior, rows.rows, len(rows.label), estimate, multiplicity=without)

    # Classes share parameters, so that all classes change without the row. One group keeps one core busy.
    parts = []
    with rows_progress("leave-one-out", len(counted.label)) as step:
        for part in map_in_threads(score_group, list(label_weight_pairs(counted.label, counted.weight))):
            parts.append(part)
            step(int(part[0].sum()))
    return _scatter(parts)


def leave_one_out_of_members(
    average: Average, counted: CountedRows, estimate: Estimate, prior: PriorOf, *, each: bool
) -> np.ndarray:
    """Compute log p(class, row | the other rows) of an average, (N, C), or of `each` of its members, (N, C, M)."""
    table, rows, label, weight = counted

    def joint(member: Fitted, rows: tuple[Rows, ...], which: np.ndarray) -> np.ndarray:
        of_member = CountedRows(table.take(which), rows, label[which], weight[which])
        return leave_one_out(member, of_member, estimate, prior, SCORES)[:, 0]

    combine = average.each if each else average.mean
    return combine(table, rows, joint, less=weight)


def leave_one_out_of_average(fitted: Fitted, counted: CountedRows, estimate: Estimate, prior: PriorOf) -> np.ndarray:
    """Compute (N, C) scores of an average of models, its terms weighted, each row by the posteriors of the others."""
    average, weights = fitted.average, fitted.weights
    assert average is not None
    each = weights is not None and weights.has_members
    joint = leave_one_out_of_members(average, counted, estimate, prior, each=each)
    return joint if weights is None else weights.average_scores(joint, log_class_without(fitted, counted))


def log_class_without(fitted: Fitted, counted: CountedRows) -> np.ndarray:
    """Compute (N, C) log P(class | the other rows)."""
    (_, _, label, weight), count = counted, fitted.statistics.class_count
    posterior: Any = float64(posterior_for_removal)(fitted.prior.class_prior, LevelCounts(count[None]))
    log_class = np.empty((len(label), len(count)))
    for c, w in label_weight_pairs(label, weight):
        without = float64(posterior.update)(LevelCounts(-w * np.eye(len(count))[c][None]))
        log_class[(label == c) & (weight == w)] = scoring.plug_in(without).log_theta[0]
    return log_class


def _scatter(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return (N, …) values from parts, each with the mask (N,) of its rows."""
    values = np.empty((len(parts[0][0]), *parts[0][1].shape[1:]))
    for mask, part in parts:
        values[mask] = part
    return values


def _own_class_without(
    model: NaiveBayes, encoding: Encoding, counted: CountedRows, weight: float, estimate: Estimate, quantity: Quantity
) -> np.ndarray:
    """Compute `leave_one_out` for rows of one weight, each of which informs the parameters of its own class only."""
    readings: list[Any] = []

    def answer(x: tuple[Any, ...], label: np.ndarray) -> jax.Array:
        if not readings:
            readings.append(_readings(model, x, weight, estimate, quantity.prepare))
        values: jax.Array = _answer(*readings[0], x, label, quantity.of_own)
        return values

    cells = model.n_classes * encoding.n_terms if quantity is TERMS else 0.0
    return scoring.map_rows(counted.rows, len(counted.label), answer, counted.label, cells=cells)


@jax.jit(static_argnames=("estimate", "prepare"))
def _readings(
    model: NaiveBayes, x: tuple[Any, ...], weight: Any, estimate: Estimate, prepare: Callable[..., JointLikelihood]
) -> tuple[JointLikelihood, JointLikelihood, jax.Array]:
    """Return likelihoods with every row and without a row, prepared for x, and (C, C) log P(class) without a row."""
    without = model.read(estimate, jnp.full(model.n_classes, -weight))
    each = -weight * jnp.eye(model.n_classes)
    log_class = jax.vmap(lambda multiplicity: model.read(estimate, multiplicity).log_class)(each)
    return prepare(model.read(estimate), x), prepare(without, x), log_class


@jax.jit(static_argnames="of_own")
def _answer(
    every: JointLikelihood,
    without: JointLikelihood,
    log_class: jax.Array,
    x: tuple[Any, ...],
    label: jax.Array,
    of_own: Callable[..., jax.Array],
) -> jax.Array:
    """Compute a quantity of a block of rows, each left out of its own class."""
    own = label[:, None] == jnp.arange(log_class.shape[1])
    return of_own(every, without, log_class[label], own, x)


def _with_log_proba(joint: jax.Array) -> jax.Array:
    """Return (n, 2, C) log p(class, row) and log P(class | row)."""
    return jnp.stack([joint, log_normalize(joint)], axis=1)


def likelihood_of_own(
    every: JointLikelihood, without: JointLikelihood, log_class: jax.Array, own: jax.Array, x: tuple[Any, ...]
) -> jax.Array:
    """Compute (n, C) log p(row | class, the other rows); the arguments are those of `Quantity.of_own`."""
    return jnp.where(own, without.log_likelihood(x), every.log_likelihood(x))


def _scores_of_own(
    every: JointLikelihood, without: JointLikelihood, log_class: jax.Array, own: jax.Array, x: tuple[Any, ...]
) -> jax.Array:
    return _with_log_proba(plus(likelihood_of_own(every, without, log_class, own, x), log_class))


def _terms_of_own(
    every: JointLikelihood, without: JointLikelihood, log_class: jax.Array, own: jax.Array, x: tuple[Any, ...]
) -> jax.Array:
    return jnp.where(own[..., None], without.terms(x), every.terms(x))


SCORES = Quantity(JointLikelihood.prepare, _scores_of_own, partial(scoring.score_rows, output=_with_log_proba))
TERMS = Quantity(lambda reading, x: reading, _terms_of_own, scoring.terms_of_rows)
