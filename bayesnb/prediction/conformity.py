"""Conformity scores: what all other rows say of each row's label, when one more row is among the data.

    s_i = P(y_i | x_i, D ∪ (x, y) without row i),    i = 1 … N + 1

Full conformal sets compare the score of the new row, s_(N+1) = P(y | x, D), with all others (Vovk, Gammerman & Shafer
2005). Where classes share no parameters, a row of class y changes what is known of class y and of the class
probabilities, and nothing else: M candidate rows are one model of M classes, each class y with one row more.
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
from bayesnb.selection.left_out import CountedRows, Quantity, joint_of_average, left_out, likelihood_of_own

_TIE = 1e-9  # relative to the log odds; leave-one-out is exact to 1e-10
_LARGE = 1e300  # stands for infinite log odds, so that differences are no NaN
_MOST_ROWS = 64
_MOST_CELLS = 2**21
_PIECE = 64


class OfClass(NamedTuple):
    """Those of one class; `likelihood` (n, C) is log p(row | class) by the posterior without the row."""

    label: int
    rows: tuple[Rows, ...]
    weight: np.ndarray
    likelihood: np.ndarray


class Scores(Protocol):
    """How the scores of the counted rows change with one more row."""

    @property
    def size(self) -> int:
        """How many candidate rows to take at a time."""
        ...

    def ranks(self, candidates: Table, against: np.ndarray) -> np.ndarray:
        """(2, M, C) number of counted rows whose score is at most, and is less than, that of candidate m with label y.

        `against` (M, C) are the log odds against label y of row m, given the counted rows.
        """
        ...


def scores(nb: Classifier, fitted: Fitted, counted: CountedRows, estimate: Estimate, by_class: bool) -> Scores:
    """The scores of the counted rows; with `by_class` those of other classes than the candidate's are left aside."""
    if fitted.average is not None:
        return OfAverage(nb, counted, estimate, by_class)
    encoding, prior = fitted.encoding, fitted.empirical_prior
    model = encoding, scoring.pad(encoding, prior), scoring.pad_statistics(encoding, fitted.statistics)
    if scoring.update_for_removal(prior, fitted.statistics).classes_share_parameters:
        return Shared(*model, _by_class(encoding, counted, np.empty((len(counted.label), 0))), estimate, by_class)
    likelihood = left_out(fitted, _singly(counted), estimate, "derived", _LIKELIHOODS)
    return Apart(*model, _by_class(encoding, counted, likelihood), estimate, by_class)


def log_odds_against(joint: np.ndarray) -> np.ndarray:
    """(M, C) log [(1 - P(class))/P(class)] from (M, C) log p(class, row); +inf where P does not exist."""
    classes = np.arange(joint.shape[1])
    with np.errstate(invalid="ignore"):
        others = [np.logaddexp.reduce(joint[:, classes != c], axis=1, initial=-np.inf) for c in classes]
        against = np.stack(others, axis=1) - joint
    return np.where(np.isnan(against), np.inf, against)


@dataclass(frozen=True, eq=False)
class Apart:
    """Of a model whose classes share no parameters."""

    encoding: Encoding
    prior: NaiveBayes
    statistics: Statistics
    groups: Sequence[OfClass]
    estimate: Estimate
    by_class: bool

    @property
    def size(self) -> int:
        """So many that what is known of each fits into memory."""
        levels = sum(int(columns.sizes().sum()) for columns in self.encoding.blocks)
        return max(1, min(_MOST_ROWS, _MOST_CELLS // max(1, levels)))

    @float64
    def ranks(self, candidates: Table, against: np.ndarray) -> np.ndarray:
        """As `Scores.ranks`."""
        added, width = _single(self.encoding, candidates, self.size), self.encoding.n_terms if self.prior.weights else 1
        size, found = len(added.class_count), np.zeros((2, *against.shape))
        classes = replace(self.prior, blocks=()), self.statistics.class_count
        for y, bounds in enumerate(_bounds(against, size)):
            readings: dict[Any, JointLikelihood] = {}
            for group in _against(self.groups, y, self.by_class):
                own, arrays = group.label == y, (group.weight, group.likelihood)
                for _, x, (weight, likelihood) in blocks(group.rows, len(group.weight), *arrays, cells=size * width):
                    kind = own, jax.tree.structure(x)  # rows with missing cells are of another kind
                    if kind not in readings:
                        model = self.prior, self.statistics, added.blocks
                        readings[kind] = _with_each(*model, y, x, self.estimate, own)
                    changed = _log_likelihood(readings[kind], x)
                    ranks = _rank(*classes, likelihood, changed, group.label, y, weight, bounds, self.estimate, own)
                    found[:, :, y] += np.asarray(ranks)[:, : len(against)]
        return found


@dataclass(frozen=True, eq=False)
class Shared:
    """Of a model whose classes share parameters, or a prior that is derived from the data: by definition."""

    encoding: Encoding
    prior: NaiveBayes
    statistics: Statistics
    groups: Sequence[OfClass]
    estimate: Estimate
    by_class: bool
    size: int = 4

    @float64
    def ranks(self, candidates: Table, against: np.ndarray) -> np.ndarray:
        """As `Scores.ranks`."""
        added, found = _single(self.encoding, candidates, self.size), np.zeros((2, *against.shape))
        model = self.prior, self.statistics, added.blocks
        for y, bounds in enumerate(_bounds(against, len(added.class_count))):
            for group in _against(self.groups, y, self.by_class):
                for _, x, (weight,) in blocks(group.rows, len(group.weight), group.weight):
                    ranks = _rank_shared(*model, x, group.label, y, weight, bounds, self.estimate)
                    found[:, :, y] += np.asarray(ranks)[:, : len(against)]
        return found


@dataclass(frozen=True, eq=False)
class OfAverage:
    """Of an average of models: by definition, each candidate counted, and then every row left out."""

    nb: Classifier
    counted: CountedRows
    estimate: Estimate
    by_class: bool
    size: int = 1

    def ranks(self, candidates: Table, against: np.ndarray) -> np.ndarray:
        """As `Scores.ranks`, of one candidate."""
        fitted, label = self.nb.fitted_, self.counted.label
        rows, found = fitted.encoding.rows(candidates, lambda columns, unknown: None), np.zeros((2, *against.shape))
        for y, (bound, low, high) in enumerate(_bounds(against, 1)):
            added = counting.count_rows(fitted.encoding, rows, np.full(1, y, np.int32), np.ones(1))
            odds = self._with(fitted.statistics.merge(added))[np.arange(len(label)), label]
            weight = self.counted.weight * (label == y) if self.by_class else self.counted.weight
            with np.errstate(over="ignore"):
                excess = np.exp(np.minimum(odds, _LARGE) - bound)
            found[:, 0, y] = weight @ (excess >= low), weight @ (excess > high)
        return found

    def _with(self, statistics: Statistics) -> np.ndarray:
        """(N, C) log odds against each class, given the other rows of these."""
        fitted = self.nb.with_counts(Counted(self.nb.fitted_.encoding, statistics)).fitted_
        joint = joint_of_average(fitted, _singly(self.counted), self.estimate, "derived")
        return log_odds_against(joint)


def _singly(counted: CountedRows) -> CountedRows:
    """Of a row that stands for several one, which is left out while the others stay."""
    return counted._replace(weight=np.ones_like(counted.weight))


def _by_class(encoding: Encoding, counted: CountedRows, likelihood: np.ndarray) -> list[OfClass]:
    groups = []
    for c in np.flatnonzero(np.bincount(counted.label)):
        own = counted.take(mask := counted.label == c, encoding)
        groups.append(OfClass(int(c), own.rows, own.weight, likelihood[mask]))
    return groups


def _against(groups: Sequence[OfClass], y: int, by_class: bool) -> list[OfClass]:
    """The rows that candidates of class y are held against."""
    return [group for group in groups if group.label == y or not by_class]


def _single(encoding: Encoding, candidates: Table, most: int) -> Statistics:
    """The statistics of each row as a class of its own, for the kernels: of 1, 4, 16 or 64 rows."""
    n = candidates.n_rows
    rows = encoding.rows(candidates, lambda columns, unknown: None)
    single = scoring.pad_statistics(encoding, counting.single_rows(encoding, rows, n))
    size = min(most, 4 ** int(np.ceil(np.log2(n) / 2)))
    class_count, parts = jax.tree.map(lambda v: pad_rows(v, size), (single.class_count, single.blocks))
    return Statistics(class_count, parts, single.log_base)


def _bounds(against: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """For each label (3, size): log odds o, and from which quotient of odds on others are as large, and larger.

    Scores that are equal are computed in different ways.
    """
    tie = _TIE * np.maximum(1.0, np.abs(against))
    none, sure = np.isposinf(against), np.isneginf(against)
    with np.errstate(over="ignore"):
        low = np.select([none, sure], [0.5, 0.0], np.exp(-tie))
        high = np.select([none, sure], [np.inf, 1.0], np.exp(tie))
    for bound in np.stack([np.clip(against, -_LARGE, _LARGE), low, high]).transpose(2, 0, 1):
        yield np.pad(bound, ((0, 0), (0, size - bound.shape[1])))


@jax.jit(static_argnames=("estimate", "own"))
def _with_each(
    prior: NaiveBayes,
    statistics: Statistics,
    added: tuple[Any, ...],
    y: jax.Array,
    x: tuple[Any, ...],
    estimate: Estimate,
    own: bool,
) -> JointLikelihood:
    """The likelihood of class y with each of M rows, as one of M classes, ready for rows like x.

    `own`: of rows that are among the data of the class, and are left out.
    """
    n = jax.tree.leaves(added)[0].shape[0]

    def each(tree: Any) -> Any:
        # Fields of parameters and statistics are (C, K), and what the classes share, such as `group`, is not.
        return jax.tree.map(lambda v: jnp.broadcast_to(jnp.asarray(v)[y], (n, v.shape[1])) if v.ndim == 2 else v, tree)

    parts = zip(each(prior.blocks), each(statistics.blocks), added, strict=True)
    families = tuple(posterior_for_removal(family, counted.merge(one)) for family, counted, one in parts)
    weights = None if prior.weights is None else replace(prior.weights, class_bias=jnp.zeros(n))
    model = replace(prior, class_prior=Known(jnp.zeros((1, n))), blocks=families, weights=weights)
    return model.read(estimate, jnp.full(n, -1.0) if own else None).prepare(x)


@jax.jit
def _log_likelihood(reading: JointLikelihood, x: tuple[Any, ...]) -> jax.Array:
    # A kernel of its own: fused with the sums below it would be computed along the wrong axis.
    return reading.log_likelihood(x)


@jax.jit(static_argnames=("estimate", "own"))
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
    own: bool,
) -> jax.Array:
    """(2, M) ranks among rows of class `label`; `changed` (n, M) is log p(row | class y with candidate m)."""
    each = jnp.eye(likelihood.shape[1])
    posterior = class_prior.update_for_removal(Statistics(class_count, (), 0.0))
    log_class = posterior.read(estimate, each[y] - each[label]).log_class
    joint, changed = plus(likelihood, log_class), plus(changed, log_class[y])
    others = (each[label] == 0) & (each[y] == 0)
    rest = jax.nn.logsumexp(joint, axis=1, where=others, keepdims=True)
    bound = bounds[0]
    if own:
        excess = jnp.exp(_finite(rest - changed) - bound)
    else:
        mine = joint[:, label, None]
        excess = jnp.exp(_finite(changed - mine) - bound) + jnp.exp(_finite(rest - mine) - bound)
    return _weigh(excess, weight, bounds)


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
    """(2, M) ranks among rows of class `label`, all classes anew for each candidate."""
    each = jnp.eye(jnp.shape(statistics.class_count)[0])

    def of_one(candidate: tuple[tuple[Any, ...], jax.Array]) -> jax.Array:
        one, bounds = candidate
        placed = jax.tree.map(lambda v: each[y][:, None] * v, one)
        parts = tuple(s.merge(new) for s, new in zip(statistics.blocks, placed, strict=True))
        posterior = prior.update_for_removal(Statistics(statistics.class_count + each[y], parts, 0.0))
        joint = posterior.read(estimate, -each[label]).prepare(x).log_joint(x)
        against = jax.nn.logsumexp(joint, axis=1, where=each[label] == 0) - joint[:, label]
        return _weigh(jnp.exp(_finite(against)[:, None] - bounds[0]), weight, bounds[:, None])[:, 0]

    return jax.lax.map(of_one, (added, bounds.T)).T


def _weigh(excess: jax.Array, weight: jax.Array, bounds: jax.Array) -> jax.Array:
    """(2, M) weight of the rows whose odds exceed those of the candidate: by a factor `excess` (n, M)."""
    _, low, high = bounds

    def total(which: jax.Array) -> jax.Array:
        # Along the rows in pieces, which cores share.
        counted = jnp.where(which, weight[:, None], 0.0)
        return counted.reshape(-1, min(_PIECE, len(weight)), which.shape[1]).sum(axis=1).sum(axis=0)

    return jnp.stack([total(excess >= low), total(excess > high)])


def _finite(log_odds: jax.Array) -> jax.Array:
    """Log odds; of what is undefined, as of what is impossible, the largest."""
    return jnp.where(log_odds <= _LARGE, log_odds, _LARGE)


def _never(*arguments: Any, **options: Any) -> np.ndarray:
    raise NotImplementedError("Classes that share parameters change with every row.")


_LIKELIHOODS = Quantity(JointLikelihood.prepare, likelihood_of_own, _never)
