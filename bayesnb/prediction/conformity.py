"""Conformity scores: probability of each row's label given all other rows, when one more row is among the data.

    s_i = P(y_i | x_i, D ∪ (x, y) without row i),    i = 1 … N + 1

Full conformal sets compare the score of the new row, s_(N+1) = P(y | x, D), with all others (Vovk, Gammerman & Shafer
2005). Where classes share no parameters, a row of class y changes the posteriors of class y and of the class
probabilities, and nothing else: M candidate rows are one model of M classes, each of them class y with one more row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb import counting, scoring
from bayesnb._util.precision import float64
from bayesnb.counting import Counted
from bayesnb.encoding import Encoding, Rows, Table, blocks
from bayesnb.encoding.row_blocks import pad_rows
from bayesnb.families import Known, posterior_for_removal
from bayesnb.fitted import Classifier, Fitted
from bayesnb.model import Estimate, JointLikelihood, NaiveBayes, Statistics, plus
from bayesnb.selection.leave_one_out import CountedRows, leave_one_out, leave_one_out_of_average, log_likelihoods

_TIE = 1e-9  # relative to the log odds; leave-one-out is exact to 1e-10
_LARGE = 1e300  # stands for infinite log odds, so that differences are no NaN
_MOST_ROWS = 64
_MOST_CELLS = 2**21
_PIECE = 64


class ClassRows(NamedTuple):
    """Counted rows of one class.

    Parameters
    ----------
    label : int
        Index of the class.
    rows : tuple of Rows
        Encoded rows.
    weight : (n,) array
        Replication counts.
    likelihood : (n, C) array
        log p(row | class) by the posterior without the row.
    """

    label: int
    rows: tuple[Rows, ...]
    weight: np.ndarray
    likelihood: np.ndarray


class Scores(Protocol):
    """Conformity scores of the counted rows, which change with one more row."""

    @property
    def size(self) -> int:
        """Number of candidate rows to take at a time."""
        ...

    def ranks(self, candidates: Table, against: np.ndarray) -> np.ndarray:
        """Count (2, M, C) the rows whose score is at most, and less than, that of candidate m with label y.

        Parameters
        ----------
        candidates : Table
            M candidate rows.
        against : (M, C) array
            Log odds against label y of candidate m, given the counted rows.
        """
        ...


def conformity_scores(
    nb: Classifier, fitted: Fitted, counted: CountedRows, estimate: Estimate, by_class: bool
) -> Scores:
    """Return the scores of the counted rows; with `by_class` candidates are compared with rows of their class only."""
    if fitted.average is not None:
        return AverageScores(nb, counted, estimate, by_class)
    encoding, prior = fitted.encoding, fitted.empirical_prior
    model = encoding, scoring.pad(encoding, prior), scoring.pad_statistics(encoding, fitted.statistics)
    if scoring.update_for_removal(prior, fitted.statistics).classes_share_parameters:
        return SharedClassScores(
            *model, _group_by_class(encoding, counted, np.empty((len(counted.label), 0))), estimate, by_class
        )
    likelihood = leave_one_out(fitted, _with_unit_weights(counted), estimate, "derived", log_likelihoods)
    return IndependentClassScores(*model, _group_by_class(encoding, counted, likelihood), estimate, by_class)


def log_odds_against(joint: np.ndarray) -> np.ndarray:
    """Compute (M, C) log [(1 - P(class))/P(class)] from (M, C) log p(class, row); +inf where P does not exist."""
    classes = np.arange(joint.shape[1])
    with np.errstate(invalid="ignore"):
        others = [np.logaddexp.reduce(joint[:, classes != c], axis=1, initial=-np.inf) for c in classes]
        against = np.stack(others, axis=1) - joint
    return np.where(np.isnan(against), np.inf, against)


@dataclass(frozen=True, eq=False)
class IndependentClassScores:
    """Conformity scores if classes share no parameters: one model holds class y with each of M candidates."""

    encoding: Encoding
    prior: NaiveBayes
    statistics: Statistics
    groups: Sequence[ClassRows]
    estimate: Estimate
    by_class: bool

    @property
    def size(self) -> int:
        """Number of candidate rows whose posteriors fit into memory together."""
        levels = sum(int(columns.sizes().sum()) for columns in self.encoding.blocks)
        return max(1, min(_MOST_ROWS, _MOST_CELLS // max(1, levels)))

    @float64
    def ranks(self, candidates: Table, against: np.ndarray) -> np.ndarray:
        """Count (2, M, C) the rows whose score is at most, and less than, that of each candidate."""
        added, width = (
            _count_singly(self.encoding, candidates, self.size),
            self.encoding.n_terms if self.prior.weights else 1,
        )
        size, counts = len(added.class_count), np.zeros((2, *against.shape))
        classes = replace(self.prior, blocks=()), self.statistics.class_count
        for y, bounds in enumerate(_bounds(against, size)):
            readings: dict[Any, JointLikelihood] = {}
            for group in _compared_groups(self.groups, y, self.by_class):
                is_own, arrays = group.label == y, (group.weight, group.likelihood)
                for _, x, (weight, likelihood) in blocks(group.rows, len(group.weight), *arrays, cells=size * width):
                    kind = is_own, jax.tree.structure(x)  # Rows with missing cells have another structure.
                    if kind not in readings:
                        model = self.prior, self.statistics, added.blocks
                        readings[kind] = _with_each(*model, y, x, self.estimate, is_own)
                    changed = _log_likelihood(readings[kind], x)
                    ranks = _rank(*classes, likelihood, changed, group.label, y, weight, bounds, self.estimate, is_own)
                    counts[:, :, y] += np.asarray(ranks)[:, : len(against)]
        return counts


@dataclass(frozen=True, eq=False)
class SharedClassScores:
    """Conformity scores if classes share parameters, or a prior that is derived from the data: by definition."""

    encoding: Encoding
    prior: NaiveBayes
    statistics: Statistics
    groups: Sequence[ClassRows]
    estimate: Estimate
    by_class: bool
    size: int = 4

    @float64
    def ranks(self, candidates: Table, against: np.ndarray) -> np.ndarray:
        """Count (2, M, C) the rows whose score is at most, and less than, that of each candidate."""
        added, counts = _count_singly(self.encoding, candidates, self.size), np.zeros((2, *against.shape))
        model = self.prior, self.statistics, added.blocks
        for y, bounds in enumerate(_bounds(against, len(added.class_count))):
            for group in _compared_groups(self.groups, y, self.by_class):
                for _, x, (weight,) in blocks(group.rows, len(group.weight), group.weight):
                    ranks = _rank_shared(*model, x, group.label, y, weight, bounds, self.estimate)
                    counts[:, :, y] += np.asarray(ranks)[:, : len(against)]
        return counts


@dataclass(frozen=True, eq=False)
class AverageScores:
    """Conformity scores of an average of models: by definition, each candidate is counted, then each row left out."""

    nb: Classifier
    counted: CountedRows
    estimate: Estimate
    by_class: bool
    size: int = 1

    def ranks(self, candidates: Table, against: np.ndarray) -> np.ndarray:
        """Count (2, 1, C) the rows whose score is at most, and less than, that of one candidate."""
        fitted, label = self.nb.fitted_, self.counted.label
        rows, counts = fitted.encoding.rows(candidates, lambda columns, unknown: None), np.zeros((2, *against.shape))
        for y, (bound, low, high) in enumerate(_bounds(against, 1)):
            added = counting.count_rows(fitted.encoding, rows, np.full(1, y, np.int32), np.ones(1))
            odds = self._log_odds_given(fitted.statistics.merge(added))[np.arange(len(label)), label]
            weight = self.counted.weight * (label == y) if self.by_class else self.counted.weight
            with np.errstate(over="ignore"):
                excess = np.exp(np.minimum(odds, _LARGE) - bound)
            counts[:, 0, y] = weight @ (excess >= low), weight @ (excess > high)
        return counts

    def _log_odds_given(self, statistics: Statistics) -> np.ndarray:
        """Compute (N, C) log odds of the counted rows against each class, given `statistics` without the row."""
        fitted = self.nb.with_counts(Counted(self.nb.fitted_.encoding, statistics)).fitted_
        joint = leave_one_out_of_average(fitted, _with_unit_weights(self.counted), self.estimate, "derived")
        return log_odds_against(joint)


def _with_unit_weights(counted: CountedRows) -> CountedRows:
    """Return the rows with weight 1: of a row that stands for several, one is left out while the others stay."""
    return counted._replace(weight=np.ones_like(counted.weight))


def _group_by_class(encoding: Encoding, counted: CountedRows, likelihood: np.ndarray) -> list[ClassRows]:
    """Return the counted rows class by class."""
    groups = []
    for c in np.flatnonzero(np.bincount(counted.label)):
        taken = counted.take(mask := counted.label == c, encoding)
        groups.append(ClassRows(int(c), taken.rows, taken.weight, likelihood[mask]))
    return groups


def _compared_groups(groups: Sequence[ClassRows], y: int, by_class: bool) -> list[ClassRows]:
    """Return the rows that candidates of class y are compared with."""
    return [group for group in groups if group.label == y or not by_class]


def _count_singly(encoding: Encoding, candidates: Table, most: int) -> Statistics:
    """Count each candidate as a class of its own, padded to 1, 4, 16 or 64 rows for the kernels."""
    n = candidates.n_rows
    rows = encoding.rows(candidates, lambda columns, unknown: None)
    single = scoring.pad_statistics(encoding, counting.single_rows(encoding, rows, n))
    size = min(most, 4 ** int(np.ceil(np.log2(n) / 2)))
    class_count, parts = jax.tree.map(lambda v: pad_rows(v, size), (single.class_count, single.blocks))
    return Statistics(class_count, parts, single.log_base)


def _bounds(against: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Yield for each label (3, size): log odds o, and the quotients of odds from which others are equal, and larger.

    The two quotients differ from 1 by a tolerance, as scores that are equal are computed in different ways.
    """
    tie = _TIE * np.maximum(1.0, np.abs(against))
    none, sure = np.isposinf(against), np.isneginf(against)
    with np.errstate(over="ignore"):
        low = np.select([none, sure], [0.5, 0.0], np.exp(-tie))
        high = np.select([none, sure], [np.inf, 1.0], np.exp(tie))
    for bound in np.stack([np.clip(against, -_LARGE, _LARGE), low, high]).transpose(2, 0, 1):
        yield np.pad(bound, ((0, 0), (0, size - bound.shape[1])))


@jax.jit(static_argnames=("estimate", "is_own"))
def _with_each(
    prior: NaiveBayes,
    statistics: Statistics,
    added: tuple[Any, ...],
    y: jax.Array,
    x: tuple[Any, ...],
    estimate: Estimate,
    is_own: bool,
) -> JointLikelihood:
    """Return the likelihood of M classes, each class y with one of M rows, prepared for rows like x.

    `is_own` says whether the rows x are among the data of class y, and are left out.
    """
    n = jax.tree.leaves(added)[0].shape[0]

    def repeat_class(tree: Any) -> Any:
        # Fields with an axis of classes are (C, K); fields that all classes have in common, such as `group`, are not.
        return jax.tree.map(lambda v: jnp.broadcast_to(jnp.asarray(v)[y], (n, v.shape[1])) if v.ndim == 2 else v, tree)

    parts = zip(repeat_class(prior.blocks), repeat_class(statistics.blocks), added, strict=True)
    families = tuple(posterior_for_removal(family, counted.merge(row)) for family, counted, row in parts)
    weights = None if prior.weights is None else replace(prior.weights, class_bias=jnp.zeros(n))
    model = replace(prior, class_prior=Known(jnp.zeros((1, n))), blocks=families, weights=weights)
    return model.read(estimate, jnp.full(n, -1.0) if is_own else None).prepare(x)


@jax.jit
def _log_likelihood(reading: JointLikelihood, x: tuple[Any, ...]) -> jax.Array:
    # This is a kernel of its own: XLA would fuse it with the sums of `_rank`, and compute it along the wrong axis.
    return reading.log_likelihood(x)


@jax.jit(static_argnames=("estimate", "is_own"))
def _rank(
    class_prior: NaiveBayes,
    class_count: jax.Array,
    likelihood: jax.Array,
    changed: jax.Array,
    label: jax.Array,
    y: jax.Array,
    weight: jax.Array,
    bounds: jax.Array,
    estimate: Estimate,
    is_own: bool,
) -> jax.Array:
    """Compute (2, M) ranks among n rows of class `label`; `changed` (n, M) is log p(row | class y with candidate m)."""
    indicator = jnp.eye(likelihood.shape[1])
    posterior = class_prior.update_for_removal(Statistics(class_count, (), 0.0))
    log_class = posterior.read(estimate, indicator[y] - indicator[label]).log_class
    joint, changed = plus(likelihood, log_class), plus(changed, log_class[y])
    others = (indicator[label] == 0) & (indicator[y] == 0)
    rest = jax.nn.logsumexp(joint, axis=1, where=others, keepdims=True)
    bound = bounds[0]
    if is_own:
        excess = jnp.exp(_finite(rest - changed) - bound)
    else:
        label_joint = joint[:, label, None]
        excess = jnp.exp(_finite(changed - label_joint) - bound) + jnp.exp(_finite(rest - label_joint) - bound)
    return _count_exceeding(excess, weight, bounds)


@jax.jit(static_argnames="estimate")
def _rank_shared(
    prior: NaiveBayes,
    statistics: Statistics,
    added: tuple[Any, ...],
    x: tuple[Any, ...],
    label: jax.Array,
    y: jax.Array,
    weight: jax.Array,
    bounds: jax.Array,
    estimate: Estimate,
) -> jax.Array:
    """Compute (2, M) ranks among rows of class `label`, with the parameters of all classes anew for each candidate."""
    indicator = jnp.eye(jnp.shape(statistics.class_count)[0])

    def rank_candidate(candidate: tuple[tuple[Any, ...], jax.Array]) -> jax.Array:
        counts, bounds = candidate
        placed = jax.tree.map(lambda v: indicator[y][:, None] * v, counts)
        parts = tuple(s.merge(new) for s, new in zip(statistics.blocks, placed, strict=True))
        posterior = prior.update_for_removal(Statistics(statistics.class_count + indicator[y], parts, 0.0))
        joint = posterior.read(estimate, -indicator[label]).prepare(x).log_joint(x)
        against = jax.nn.logsumexp(joint, axis=1, where=indicator[label] == 0) - joint[:, label]
        return _count_exceeding(jnp.exp(_finite(against)[:, None] - bounds[0]), weight, bounds[:, None])[:, 0]

    ranks: jax.Array = jax.lax.map(rank_candidate, (added, bounds.T))
    return ranks.T


def _count_exceeding(excess: jax.Array, weight: jax.Array, bounds: jax.Array) -> jax.Array:
    """Sum (2, M) the weights of rows whose odds are as large as those of the candidate, and larger.

    `excess` (n, M) is the quotient of the odds of row and candidate.
    """
    _, low, high = bounds

    def total(which: jax.Array) -> jax.Array:
        # Pieces of the rows are summed by several cores.
        counted = jnp.where(which, weight[:, None], 0.0)
        return jnp.sum(counted.reshape(-1, min(_PIECE, len(weight)), which.shape[1]).sum(axis=1), axis=0)

    return jnp.stack([total(excess >= low), total(excess > high)])


def _finite(log_odds: jax.Array) -> jax.Array:
    """Replace log odds that are infinite or undefined by a large number."""
    return jnp.asarray(jnp.where(log_odds <= _LARGE, log_odds, _LARGE))
