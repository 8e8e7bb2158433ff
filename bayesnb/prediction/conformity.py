"""Conformity scores: probability of each row's label given all other rows, when one more row is among the data.

    s_i = P(y_i | x_i, D ∪ (x, y) without row i),    i = 1 … N + 1

Full conformal sets compare the score of the new row, s_(N+1) = P(y | x, D), with all others (Vovk, Gammerman & Shafer
2005). Where classes share no parameters, a row of class y changes the posteriors of class y and of the class
probabilities, and nothing else: M candidate rows are one model of M classes, each of them class y with one more row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import _num_samples

from bayesnb._util.precision import float64, map_in_threads
from bayesnb._util.terminal import progress
from bayesnb.encoding import Encoding, Rows, Table, blocks, ignore_unknown
from bayesnb.encoding.encoded_rows import pad_rows
from bayesnb.families import Known
from bayesnb.families.arrays import is_host, kernel, logsumexp, map_leading_axis, xp
from bayesnb.fitted import counting, scoring
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import Classifier, CountedRows, Fitted, leave_one_out
from bayesnb.model import Estimate, JointLikelihood, Statistics, plus

_TIE = 1e-9  # relative to the log odds; leave-one-out is exact to 1e-10
_LARGE = 1e300  # stands for infinite log odds, so that differences are not NaN
_FEW_RANKINGS = 2000  # that NumPy computes, in a millisecond or a few each: of a candidate, or of a model of many
_MOST_ROWS, _MOST_CELLS = 64, 2**21


# Function of M candidate rows X to (2, M, C): numbers of counted rows whose label is at most as probable as label c of
# row m, and less probable.
Ranking = Callable[[object], np.ndarray]
# Class of some counted rows, the encoded rows, their replication counts (n,), and their log p(row | class) (n, C) by
# the posterior without the row; (n, 0) if classes share parameters.
Group = tuple[int, tuple[Rows, ...], np.ndarray, np.ndarray]


def log_odds_against(joint: np.ndarray) -> np.ndarray:
    """Compute (M, C) log [(1 - P(class))/P(class)] from (M, C) log p(class, row); +inf where P does not exist."""
    classes = np.arange(joint.shape[1])
    with np.errstate(invalid="ignore"):
        others = [np.logaddexp.reduce(joint[:, classes != c], axis=1, initial=-np.inf) for c in classes]
        against = np.stack(others, axis=1) - joint
    return np.where(np.isnan(against), np.inf, against)


def full_ranking(fitted: Fitted, counted: CountedRows, estimate: Estimate, by_class: bool) -> Ranking:
    """Return the full conformal ranking: each candidate with each label is added to the data, and each row left out.

    With `by_class` candidates are compared with rows of their class only.
    """
    # Where classes share parameters, or a prior derived from the data, each score is computed by its definition.
    is_shared = scoring.update_for_removal(fitted.empirical_prior, fitted.statistics).classes_share_parameters
    likelihood, groups = np.empty((len(counted.label), 0)), []
    if not is_shared:
        single = _with_unit_weights(counted)
        likelihood = leave_one_out(fitted, single, estimate, "derived", JointLikelihood.log_likelihood)
    for c in np.flatnonzero(np.bincount(counted.label)):
        taken = counted.take(mask := counted.label == c)
        groups.append((int(c), taken.rows, taken.weight, likelihood[mask]))
    return partial(_rank_fully, fitted, groups, is_shared, estimate, by_class)


def _rank_fully(
    fitted: Fitted, groups: list[Group], is_shared: bool, estimate: Estimate, by_class: bool, X: object
) -> np.ndarray:
    """Compute the `full_ranking` of the rows of X, of which blocks are taken in parallel.

    Unless classes share parameters, one model holds class y with each of the candidates of a block.
    """
    encoding, prior = fitted.encoding, fitted.empirical_prior
    levels = sum(int(columns.sizes().sum()) for columns in encoding.blocks)
    size = 4 if is_shared else max(1, min(_MOST_ROWS, _MOST_CELLS // max(1, levels)))
    n, n_classes = _num_samples(X), len(encoding.classes)
    # The kernel is worth its compilation where there are many rankings.
    many = n_classes * (1 if by_class else len(groups)) * (n if is_shared else -(-n // size)) > _FEW_RANKINGS
    cells = 0 if is_shared else size * (encoding.n_terms if prior.weights else 1)

    @float64
    def rank(candidates: Table, against: np.ndarray) -> np.ndarray:
        """Compute the ranks (2, m, C) of m ≤ `size` candidates, whose log odds against each label are `against`."""
        model = scoring.pad(encoding, prior), scoring.pad_statistics(encoding, fitted.statistics)
        added, counts = _count_singly(encoding, candidates, size), np.zeros((2, *against.shape))
        if many:
            model, added = jax.tree.map(jnp.asarray, (model, added))
        for y, bounds in enumerate(_bounds(against, len(added.class_count))):
            for label, rows, *arrays in (group for group in groups if not by_class or group[0] == y):
                for _, x, (weight, likelihood) in blocks(rows, len(arrays[0]), *arrays, cells=cells):
                    compared = *model, added.blocks, x, likelihood, label, y, weight, bounds
                    if is_shared:
                        ranks = _rank_shared(compared, estimate)
                    else:
                        ranks = _rank_independent(compared, estimate, is_own=label == y)
                    counts[:, :, y] += np.asarray(ranks)[:, : len(against)]
        return counts

    return _rank_in_threads(fitted, X, estimate, size, rank)


def average_ranking(nb: Classifier, counted: CountedRows, estimate: Estimate, by_class: bool, X: object) -> np.ndarray:
    """Compute the `Ranking` of X for an average of models: each candidate is counted, then each row left out.

    With `by_class` candidates are compared with rows of their class only.
    """
    (encoding, statistics), label = nb.fitted_.counted, counted.label
    single = _with_unit_weights(counted)

    def rank(candidates: Table, against: np.ndarray) -> np.ndarray:
        """Compute the ranks (2, 1, C) of one candidate, whose log odds against each label are `against` (1, C)."""
        rows, counts = encoding.rows(candidates, ignore_unknown), np.zeros((2, *against.shape))
        for y, (bound, low, high) in enumerate(_bounds(against, 1)):
            added = counting.count_rows(encoding, rows, np.full(1, y, np.int32), np.ones(1))
            fitted = nb.with_counts(Counted(encoding, statistics.merge(added))).fitted_
            joint = leave_one_out(fitted, single, estimate, "derived")
            odds = log_odds_against(joint)[np.arange(len(label)), label]
            weight = counted.weight * (label == y) if by_class else counted.weight
            with np.errstate(over="ignore"):
                excess = np.exp(np.minimum(odds, _LARGE) - bound)
            counts[:, 0, y] = weight @ (excess >= low), weight @ (excess > high)
        return counts

    return _rank_in_threads(nb.fitted_, X, estimate, 1, rank)


def _rank_in_threads(
    fitted: Fitted, X: object, estimate: Estimate, size: int, rank: Callable[[Table, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Apply `rank(rows, their log odds against)` to `size` rows of X at a time, in threads; return (2, M, C) ranks."""
    table = fitted.table(X)
    against = log_odds_against(fitted.score(fitted.rows(table), table.n_rows, scoring.joint, estimate))
    ranks, row = np.empty((2, *against.shape)), np.arange(len(against))

    def rank_from(start: int) -> int:
        part = slice(start, start + size)
        ranks[:, part] = rank(table.take((row >= start) & (row < start + size)), against[part])
        return len(row[part])

    with progress("conformal", len(row), unit="row") as step:
        for n_ranked in map_in_threads(rank_from, range(0, len(row), size)):
            step(n_ranked)
    return ranks


def _with_unit_weights(counted: CountedRows) -> CountedRows:
    """Return the rows with weight 1 each, so that leave-one-out removes only one of several equal rows."""
    return counted._replace(weight=np.ones_like(counted.weight))


def _count_singly(encoding: Encoding, candidates: Table, most: int) -> Statistics:
    """Return statistics in which each candidate is the one row of a class, padded to a power of 4 or `most` classes."""
    n = candidates.n_rows
    rows = encoding.rows(candidates, ignore_unknown)
    single = scoring.pad_statistics(encoding, counting.single_rows(encoding, rows, n))
    size = min(most, 4 ** int(np.ceil(np.log2(n) / 2)))
    class_count, parts = jax.tree.map(lambda v: pad_rows(v, size), (single.class_count, single.blocks))
    return Statistics(class_count, parts, single.log_base)


def _bounds(against: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Yield for each label (3, size): log odds against the label, and the least and the largest odds ratio of a tie.

    The two quotients are e^∓t, t = 1e-9 · max(1, |log odds|), as scores that are equal are computed in different ways.
    """
    tie = _TIE * np.maximum(1.0, np.abs(against))
    none, sure = np.isposinf(against), np.isneginf(against)
    with np.errstate(over="ignore"):
        low = np.select([none, sure], [0.5, 0.0], np.exp(-tie))
        high = np.select([none, sure], [np.inf, 1.0], np.exp(tie))
    for bound in np.stack([np.clip(against, -_LARGE, _LARGE), low, high]).transpose(2, 0, 1):
        yield np.pad(bound, ((0, 0), (0, size - bound.shape[1])))


@kernel(static_argnames=("estimate", "is_own"))
def _rank_independent(compared: tuple[Any, ...], estimate: Estimate, is_own: bool) -> jax.Array:
    """Compute the (2, M) ranks of M candidates with label y, where they inform the parameters of class y only.

    `is_own` says whether the counted rows are of class y, and are left out. `compared` are the padded prior; the padded
    statistics of all counted rows; the statistics of each block in which each candidate is a class; a block of n
    counted rows; their log p(row | class) (n, C) without the row; their class; y; their replication counts (n,); and
    the log odds against the candidates (3, M), see `_bounds`.
    """
    prior, statistics, added, x, likelihood, label, y, weight, bounds = compared
    n = bounds.shape[1]

    def repeat_class(tree: Any) -> Any:
        # Fields with an axis of classes are (C, K); fields that all classes have in common, such as `group`, are not.
        return jax.tree.map(lambda v: xp.broadcast_to(xp.asarray(v)[y], (n, v.shape[1])) if v.ndim == 2 else v, tree)

    # A model of M classes, each of them class y with one more row.
    parts = zip(repeat_class(prior.blocks), repeat_class(statistics.blocks), added, strict=True)
    families = tuple(family.update_keeping_prior(counted.merge(row)) for family, counted, row in parts)
    weights = None if prior.weights is None else replace(prior.weights, class_bias=xp.zeros(n))
    model = replace(prior, class_prior=Known(xp.zeros((1, n))), blocks=families, weights=weights)
    reading = model.read(estimate, xp.full(n, -1.0) if is_own else None).prepare(x)
    # Without the barrier XLA would fuse the likelihood with the sums, and compute it along the wrong axis.
    changed = reading.log_likelihood(x)
    if not is_host(changed):
        changed = jax.lax.optimization_barrier(changed)  # type: ignore[no-untyped-call]

    of_y, of_label = (xp.arange(likelihood.shape[1]) == c for c in (y, label))
    posterior = replace(prior, blocks=()).update_for_removal(Statistics(statistics.class_count, (), 0.0))
    log_class = posterior.read(estimate, of_y * 1.0 - of_label).log_class
    joint, changed = plus(likelihood, log_class), plus(changed, log_class[y])
    rest = logsumexp(joint, axis=1, where=~(of_y | of_label), keepdims=True)
    if is_own:
        excess = xp.exp(_finite(rest - changed) - bounds[0])
    else:
        label_joint = joint[:, label, None]
        excess = xp.exp(_finite(changed - label_joint) - bounds[0]) + xp.exp(_finite(rest - label_joint) - bounds[0])
    return _count_exceeding(excess, weight, bounds)


@kernel(static_argnames="estimate")
def _rank_shared(compared: tuple[Any, ...], estimate: Estimate) -> jax.Array:
    """Compute the (2, M) ranks of M candidates with label y, where each candidate changes parameters of all classes.

    `compared` are those of `_rank_independent`.
    """
    prior, statistics, added, x, _, label, y, weight, all_bounds = compared
    of_y, of_label = (xp.arange(len(statistics.class_count)) == c for c in (y, label))

    def rank_candidate(candidate: tuple[tuple[Any, ...], jax.Array]) -> jax.Array:
        """Compute the (2,) ranks of one candidate from its statistics and bounds (3,)."""
        counts, bounds = candidate
        placed = jax.tree.map(lambda v: of_y[:, None] * v, counts)
        parts = tuple(s.merge(new) for s, new in zip(statistics.blocks, placed, strict=True))
        posterior = prior.update_for_removal(Statistics(statistics.class_count + of_y, parts, 0.0))
        joint = posterior.read(estimate, -1.0 * of_label).prepare(x).log_joint(x)
        against = logsumexp(joint, axis=1, where=~of_label) - joint[:, label]
        return _count_exceeding(xp.exp(_finite(against)[:, None] - bounds[0]), weight, bounds[:, None])[:, 0]

    return map_leading_axis(rank_candidate, (added, all_bounds.T)).T


def _count_exceeding(excess: jax.Array, weight: jax.Array, bounds: jax.Array) -> jax.Array:
    """Return (2, M) weights of rows whose odds ratio reaches the lower bound, and of rows beyond the upper bound.

    `excess` (n, M) is the quotient of the odds of row and candidate.
    """
    _, low, high = bounds
    return xp.stack([weight @ (excess >= low), weight @ (excess > high)])


def _finite(log_odds: jax.Array) -> jax.Array:
    """Replace log odds that are NaN or above 1e300 by 1e300."""
    return xp.asarray(xp.where(log_odds <= _LARGE, log_odds, _LARGE))
