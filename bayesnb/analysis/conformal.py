"""Conformal sets of labels: conformity scores of all rows with one more row among the data, exact or by halves.

    s_i = P(y_i | x_i, D ∪ (x, y) without row i),    i = 1 … N + 1

Full conformal sets compare the score of the new row, s_(N+1) = P(y | x, D), with all others (Vovk, Gammerman & Shafer
2005). Where classes share no parameters, a row of class y changes the posteriors of class y and of the class
probabilities, and nothing else: M candidate rows are one model of M classes, each of them class y with one more row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self, cast

import jax
import numpy as np
import pandas as pd
from sklearn.utils.validation import _num_samples

from bayesnb._util.arguments import Seed, read_seed, require_choice, require_flag, require_probability
from bayesnb._util.arrays import take_rows, to_pandas
from bayesnb._util.html import card, table
from bayesnb._util.precision import float64, map_in_threads
from bayesnb._util.terminal import progress
from bayesnb.encoding import Encoding, Rows, Table, check_labels, ignore_unknown, row_pieces
from bayesnb.encoding.encoded_rows import pad_rows
from bayesnb.encoding.units import check_groups, describe_copies, find_copies
from bayesnb.families import Known
from bayesnb.families.arrays import Array, is_host, kernel, logsumexp, map_leading_axis, xp
from bayesnb.fitted import counting, scoring
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import (
    WEIGHTS,
    Adaptable,
    CountedRows,
    Fitted,
    counted_rows,
    leave_one_out,
    require_average,
    require_leave_one_out,
)
from bayesnb.model import Estimate, JointLikelihood, Statistics, plus
from bayesnb.weights.halves import random_places

# == Conformity scores: probability of each row's label given all other rows, when one more row is among the data

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
            model, added = jax.device_put((model, added))
        for y, bounds in enumerate(_bounds(against, len(added.class_count))):
            for label, rows, *arrays in (group for group in groups if not by_class or group[0] == y):
                for _, x, (weight, likelihood) in row_pieces(rows, len(arrays[0]), *arrays, cells=cells):
                    compared = *model, added.blocks, x, likelihood, label, y, weight, bounds
                    if is_shared:
                        ranks = _rank_shared(compared, estimate)
                    else:
                        ranks = _rank_independent(compared, estimate, is_own=label == y)
                    counts[:, :, y] += np.asarray(ranks)[:, : len(against)]
        return counts

    return _rank_in_threads(fitted, X, estimate, size, rank)


def average_ranking(nb: Adaptable, counted: CountedRows, estimate: Estimate, by_class: bool, X: object) -> np.ndarray:
    """Compute the `Ranking` of X for an average of models: each candidate is counted, then each row left out.

    With `by_class` candidates are compared with rows of their class only.
    """
    (encoding, statistics, _), label = nb.fitted_.counted, counted.label
    single = _with_unit_weights(counted)

    def rank(candidates: Table, against: np.ndarray) -> np.ndarray:
        """Compute the ranks (2, 1, C) of one candidate, whose log odds against each label are `against` (1, C)."""
        rows, counts = encoding.rows(candidates, ignore_unknown), np.zeros((2, *against.shape))
        for y, bounds in enumerate(_bounds(against, 1)):
            added = counting.count_rows(encoding, rows, np.full(1, y, np.int32), np.ones(1))
            fitted = nb.with_counts(Counted(encoding, statistics.merge(added))).fitted_
            joint = leave_one_out(fitted, single, estimate, "derived")
            odds = log_odds_against(joint)[np.arange(len(label)), label]
            weight = counted.weight * (label == y) if by_class else counted.weight
            counts[:, :, y] = _count_exceeding(odds[:, None], weight, bounds)
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
    """Yield for each label (2, size): the least and the largest log odds that tie with those against the label, a.

    These are a ∓ 1e-9 · max(1, |a|), as scores that are equal are computed in different ways. Infinite log odds tie
    with equal ones only.
    """
    clipped = np.clip(against, -_LARGE, _LARGE)
    tie = np.where(np.isfinite(against), _TIE * np.maximum(1.0, np.abs(clipped)), 0.0)
    low, high = np.fmin(against, clipped - tie), np.fmax(against, clipped + tie)
    for bounds in np.stack([low, high]).transpose(2, 0, 1):
        yield np.pad(bounds, ((0, 0), (0, size - bounds.shape[1])))


@kernel(static_argnames=("estimate", "is_own"))
def _rank_independent(compared: tuple[Any, ...], estimate: Estimate, is_own: bool) -> jax.Array:
    """Compute the (2, M) ranks of M candidates with label y, where they inform the parameters of class y only.

    `is_own` says whether the counted rows are of class y, and are left out. `compared` are the padded prior; the padded
    statistics of all counted rows; the statistics of each block in which each candidate is a class; a block of n
    counted rows; their log p(row | class) (n, C) without the row; their class; y; their replication counts (n,); and
    the log odds that tie with those against the candidates (2, M), see `_bounds`.
    """
    prior, statistics, added, x, likelihood, label, y, weight, bounds = compared
    n = bounds.shape[1]

    def repeat_class(tree: object) -> Any:
        # Fields with an axis of classes are (C, K, …); fields that classes have in common, such as `group`, are (K,).
        return jax.tree.map(lambda v: xp.broadcast_to(xp.asarray(v)[y], (n, *v.shape[1:])) if v.ndim >= 2 else v, tree)

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
    odds = rest - changed if is_own else xp.logaddexp(changed, rest) - joint[:, label, None]
    return _count_exceeding(odds, weight, bounds)


@kernel(static_argnames="estimate")
def _rank_shared(compared: tuple[Any, ...], estimate: Estimate) -> jax.Array:
    """Compute the (2, M) ranks of M candidates with label y, where each candidate changes parameters of all classes.

    `compared` are those of `_rank_independent`.
    """
    prior, statistics, added, x, _, label, y, weight, all_bounds = compared
    of_y, of_label = (xp.arange(len(statistics.class_count)) == c for c in (y, label))

    def rank_candidate(candidate: tuple[tuple[object, ...], jax.Array]) -> jax.Array:
        """Compute the (2,) ranks of one candidate from its statistics and bounds (2,)."""
        counts, bounds = candidate
        placed = jax.tree.map(lambda v: xp.expand_dims(of_y, tuple(range(1, v.ndim + 1))) * v, counts)
        parts = tuple(s.merge(new) for s, new in zip(statistics.blocks, placed, strict=True))
        posterior = prior.update_for_removal(Statistics(statistics.class_count + of_y, parts, 0.0))
        joint = posterior.read(estimate, -1.0 * of_label).prepare(x).log_joint(x)
        odds = logsumexp(joint, axis=1, where=~of_label) - joint[:, label]
        return _count_exceeding(odds[:, None], weight, bounds[:, None])[:, 0]

    return map_leading_axis(rank_candidate, (added, all_bounds.T)).T


def _count_exceeding(odds: Array, weight: Array, bounds: Array) -> jax.Array:
    """Return (2, M) weights of rows whose log odds (n, M) reach the lower bound, and of rows beyond the upper bound.

    Log odds that are NaN or infinite count as 1e300.
    """
    odds, (low, high) = xp.where(odds <= _LARGE, odds, _LARGE), bounds
    return xp.stack([weight @ (odds >= low), weight @ (odds > high)])


# == Cross-conformal ranks: candidates are compared with the rows of each fold by a fit without that fold

N_FOLDS = 10
GUARANTEE = (
    "Cross-conformal: weights and structure are fitted again without each of ten folds. A set for coverage 1 - ε "
    "misses the label with a probability of at most 2ε, and of about ε in simulations (Vovk 2015)."
)
# Fit without the rows of a fold; positions (C,) of the classifier's classes among those of the fit, -1 for none; log
# odds against the label of each row of the fold, in descending order; class and replication count of each row.
Fold = tuple[Fitted, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def cross_ranking(
    nb: Adaptable,
    X: object,
    y: object,
    counted: CountedRows,
    estimate: Estimate,
    seed: int,
    by_class: bool,
    unit: np.ndarray,
) -> Ranking:
    """Fit a weighted classifier without each of ten folds of the rows X, stratified by class; return its ranking.

    `counted` are the same rows, with the index of the class, and the replication count, of each row, and `unit` (N,) is
    the unit of each row, which folds and halves keep whole. With `by_class` a candidate is compared with rows of its
    own class only.
    """
    label, weight, weighted = counted.label, counted.weight, cast(Any, nb)
    fold_of, folds = random_folds(label, seed, unit), []
    with progress("conformal", n_folds := int(fold_of.max()) + 1) as tick:
        for k in range(n_folds):
            rows = np.flatnonzero((fold_of == k) & (weight > 0))
            # The fit to all rows has given the same warnings.
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                fitted = weighted.refit(X, y, weight * (fold_of != k), unit).fitted_
                position = fitted.encoding.classes.index(nb.classes_.tolist())
                against = _log_odds(fitted, position, take_rows(X, rows), estimate)
            against = against[np.arange(len(rows)), label[rows]]
            order = np.argsort(-against, kind="stable")
            folds.append((fitted, position, against[order], label[rows[order]], weight[rows[order]]))
            tick()
    return partial(_rank, folds, estimate, by_class)


def _rank(folds: list[Fold], estimate: Estimate, by_class: bool, X: object) -> np.ndarray:
    """Compute the `Ranking` of the rows of X among the rows of all folds, by the fits without each fold."""
    ranks = np.zeros(())
    for fitted, position, against, label, weight in folds:
        candidates = _log_odds(fitted, position, X, estimate)
        class_ranks = []
        for c, (low, high) in enumerate(_bounds(candidates, len(candidates))):
            total = np.concatenate([[0.0], np.cumsum(np.where(label == c, weight, 0.0) if by_class else weight)])
            at_most, less = np.searchsorted(-against, -low, side="right"), np.searchsorted(-against, -high)
            class_ranks.append((total[at_most], total[less]))
        ranks = ranks + np.moveaxis(np.array(class_ranks), 0, -1)
    return ranks


def random_folds(label: np.ndarray, seed: int, unit: np.ndarray | None = None) -> np.ndarray:
    """Draw for each of N rows the index (N,) of one of ten folds, stratified by class.

    Folds keep units whole, `unit` (N,) from 0 on; default: each row is a unit.
    """
    return random_places(label, 1, seed, unit)[0] % N_FOLDS


def _log_odds(fitted: Fitted, position: np.ndarray, X: object, estimate: Estimate) -> np.ndarray:
    """Return (M, C) log odds against each class by the fit without a fold; +inf for classes unknown to the fit."""
    joint = fitted.score(*fitted.encode(X), scoring.joint, estimate)
    return log_odds_against(np.where(position < 0, -np.inf, joint[:, position]))


# == Conformal prediction: sets of labels with guaranteed coverage, by exact leave-one-out or by folds

Ties = Literal["conservative", "random"]

_ROUNDING = 1e-12
_MEANING = (
    "If rows are exchangeable, sets contain the true label with at least the given probability, whether or not the "
    "model is right. This holds on average over data and rows, not for each row, nor given that a set has one label."
)


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Conformal sets of labels, one for each row.

    Attributes
    ----------
    members : (M, C) array of bool
        Whether a label is in the set of each row, that is, has a p-value above 1 - `coverage`.
    p_values : (M, C) array
        p-value of each label.
    classes : (C,) array
        Labels.
    coverage : float
        Least probability with which a set contains the true label, on average over data and rows.
    notes : tuple of str
        Reasons why `coverage` is approximate, as far as they are known.

    Examples
    --------
    >>> from bayesnb import GaussianNB, conformal
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> train, test = slice(0, None, 2), slice(1, None, 2)
    >>> sets = conformal(GaussianNB().fit(X[train], y[train]), X[train], y[train]).predict_set(X[test], coverage=0.95)
    >>> sets
    PredictionSets(75 rows, coverage 0.95: 0 with no label, 74 with one, 1 with several)
    >>> float(sets.covered(y[test]).mean().round(3)), sets.at(0.99).n_several
    (0.96, 75)
    >>> sets.to_frame().loc[[40]].round(2)
       labels  size  credibility  confidence
    40   (1,)     1         0.54        0.99
    """

    members: np.ndarray
    p_values: np.ndarray
    classes: np.ndarray
    coverage: float
    notes: tuple[str, ...] = ()

    @property
    def labels(self) -> list[np.ndarray]:
        """Labels in the set of each row, a list of M arrays."""
        return [self.classes[row] for row in self.members]

    @property
    def size(self) -> np.ndarray:
        """(M,) number of labels in each set."""
        return np.asarray(self.members.sum(axis=1))

    @property
    def n_empty(self) -> int:
        """Number of rows with an empty set: no label has a p-value above 1 - `coverage`."""
        return int((self.size == 0).sum())

    @property
    def n_single(self) -> int:
        """Number of rows with one label in the set."""
        return int((self.size == 1).sum())

    @property
    def n_several(self) -> int:
        """Number of rows with several labels in the set."""
        return int((self.size > 1).sum())

    @property
    def credibility(self) -> np.ndarray:
        """(M,) largest p-value: the set is empty where `coverage` is below 1 - `credibility`."""
        return np.asarray(self.p_values.max(axis=1))

    @property
    def confidence(self) -> np.ndarray:
        """(M,) 1 - the second largest p-value: up to this `coverage` there is at most one label in the set."""
        least = np.zeros((len(self.p_values), 1))
        return 1.0 - np.sort(np.concatenate([least, self.p_values], axis=1), axis=1)[:, -2]

    def at(self, coverage: float) -> Self:
        """Return a copy with the sets of the same rows for another coverage.

        Parameters
        ----------
        coverage : float
            Least probability with which a set contains the true label, in (0, 1).

        Returns
        -------
        PredictionSets
            Sets of the same rows.

        Raises
        ------
        ValueError
            If `coverage` is not between 0 and 1.
        """
        require_probability("coverage", coverage)
        members = self.p_values > 1.0 - coverage + _ROUNDING
        return replace(self, members=members, coverage=float(coverage))

    def covered(self, y: object) -> np.ndarray:
        """Return (M,) whether the set of each row contains the label `y` of the row; False for unknown labels.

        Parameters
        ----------
        y : array-like of shape (M,)
            True labels of the rows.

        Returns
        -------
        (M,) array of bool
            Whether each set contains the label.

        Raises
        ------
        ValueError
            If the number of labels is not that of the rows.
        """
        labels, label = check_labels(y, len(self.members), "covered")
        position = {value: c for c, value in enumerate(self.classes.tolist())}
        index = np.array([position.get(value, -1) for value in labels.values])[label]
        return np.where(index < 0, False, self.members[np.arange(len(index)), index])

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one line for each row: labels, size, credibility, confidence."""
        labels = [tuple(row_labels.tolist()) for row_labels in self.labels]
        columns = {"size": self.size, "credibility": self.credibility, "confidence": self.confidence}
        return pd.DataFrame({"labels": pd.Series(labels, dtype=object), **columns})

    def __repr__(self) -> str:
        sizes = f"{self.n_empty} with no label, {self.n_single} with one, {self.n_several} with several"
        head = f"PredictionSets({len(self.members)} rows, coverage {self.coverage:g}: {sizes})"
        return "\n".join((head, *self.notes))

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the numbers of sets by size, and the number of sets that hold each label."""
        labels = [(name, int(self.members[:, c].sum())) for c, name in enumerate(self.classes.tolist())]
        sizes = [("no label", self.n_empty), ("one", self.n_single), ("several", self.n_several)]
        about = f"{len(self.members)} rows, coverage {self.coverage:g}"
        tables = table(sizes, ("sets with", "rows")), table(labels, ("label", "in sets"))
        return card("PredictionSets", about, *tables, notes=(_MEANING, *self.notes))


@dataclass(frozen=True, eq=False)
class Conformal:
    """Conformal predictor, the result of `bayesnb.conformal`.

    Attributes
    ----------
    classes : (C,) array
        Labels.
    n_rows : (C,) array
        Number of rows that a candidate of each class is compared with.
    by_class : bool
        Whether candidates are compared with rows of their own class only.
    ties : {"conservative", "random"}
        Treatment of rows with the score of the candidate.
    seed : int
        Seed of random ties.
    notes : tuple of str
        Guaranteed coverage, where it is not the nominal one, and reasons why coverage is approximate.

    Examples
    --------
    >>> from bayesnb import GaussianNB, conformal
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> predictor = conformal(GaussianNB().fit(X[1:], y[1:]), X[1:], y[1:])
    >>> predictor
    Conformal(149 rows, 3 classes, ties conservative)
    >>> predictor.p_values(X[:1]).round(3)
    array([[0.94 , 0.007, 0.007]])
    >>> predictor.predict_set(X[:1], coverage=0.99).labels
    [array([0])]
    """

    classes: np.ndarray
    n_rows: np.ndarray
    by_class: bool
    ties: Ties
    seed: int
    notes: tuple[str, ...]
    _ranking: Ranking

    def p_values(self, X: object) -> np.ndarray:
        """Compute (M, C) p-values: the fraction of conformity scores no larger than the new row's, itself included.

        With `by_class` the scores are those of the rows of the candidate's class. With ties="random" equal scores,
        itself included, count by one uniform fraction per row, which `seed` determines.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (M, F)
            Rows that are exchangeable with the counted rows. A value that is not a level is treated as by `predict`.

        Returns
        -------
        (M, C) array
            p-values. For every ε the p-value of the true label is at most ε with a probability of at most ε.
        """
        at_most, less = self._ranking(to_pandas(X, "X"))
        if self.ties == "conservative":
            return np.asarray((at_most + 1.0) / (self.n_rows + 1.0))
        fraction = np.random.default_rng(self.seed).random((len(at_most), 1))
        return np.asarray((less + fraction * (at_most - less + 1.0)) / (self.n_rows + 1.0))

    def predict_set(self, X: object, coverage: float = 0.9) -> PredictionSets:
        """Return for each row the set of labels whose p-value is above 1 - coverage.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (M, F)
            Rows.
        coverage : float, default 0.9
            Least probability with which a set contains the true label, in (0, 1). Sets contain all labels if candidates
            are compared with fewer than coverage/(1 - coverage) rows.

        Returns
        -------
        PredictionSets
            Sets of the rows, with the p-values.

        Raises
        ------
        ValueError
            If `coverage` is not between 0 and 1.
        """
        require_probability("coverage", coverage)
        p_values = self.p_values(X)
        return PredictionSets(p_values > 0, p_values, self.classes, 0.0, self.notes).at(coverage)

    def __repr__(self) -> str:
        against = ", by class" if self.by_class else ""
        n_rows = self.n_rows.sum() if self.by_class else self.n_rows[0]
        head = f"Conformal({n_rows:g} rows, {len(self.classes)} classes{against}, ties {self.ties})"
        return "\n".join((head, *self.notes))

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the number of counted rows that each label is compared with."""
        rows = zip(self.classes.tolist(), self.n_rows.tolist(), strict=True)
        compared = table(rows, ("label", "rows it is compared with"))
        return card("Conformal", f"ties {self.ties}", compared, notes=(_MEANING, *self.notes))


def conformal(
    nb: Adaptable,
    X: object,
    y: object,
    sample_weight: object = None,
    *,
    by_class: bool = False,
    ties: Ties = "conservative",
    seed: Seed = 0,
    estimate: Estimate | None = None,
    groups: object = None,
) -> Conformal:
    """Calibrate sets of labels that contain the true label with a given probability, whether or not the model is right.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with exact leave-one-out scores, see `loo`.
    X, y : array-likes
        Rows that `nb` has counted, all or some of them, and their labels. New rows must be exchangeable with these.
    sample_weight : (N,) array of whole numbers, optional
        Weights with which the rows were counted: a row of weight 2 is two rows.
    by_class : bool, default False
        Compare a candidate with the rows of its own class only: then rows of *each* class are covered with the given
        probability, and classes with few rows have larger sets (Mondrian conformal prediction).
    ties : {"conservative", "random"}
        How a counted row with the same score as the candidate contributes to the p-value. "conservative": like a row
        with a lower score; coverage is at least the nominal one, and above it if there are many ties, and the set of a
        row does not depend on other new rows. "random": by a fraction that is uniform on (0, 1); coverage is exact.
    seed : int, JAX key, RandomState or Generator, default 0
        Seed of these fractions, one for each row of X in turn, and of the folds of a weighted model. If new rows come
        in several calls, give each call another seed.
    estimate : {"predictive", "mean"}, optional
        Estimate of the parameters given the other rows: integrated out, or plugged in at the posterior mean. Default:
        `nb.estimate`.
    groups : (N,) array-like, optional
        Group of each row, such as a patient, which the folds of a weighted model and the halves in them keep together.
        Coverage is then about that of rows of new groups. Default: copies of a row are a group; see `WeightedNB.fit`.
        Only for a `WeightedNB` whose weights were fitted to these rows, as the sets of all others have no folds.

    Returns
    -------
    Conformal
        Predictor with the methods `p_values(X)`, (M, C), and `predict_set(X, coverage=0.9)`.

    Raises
    ------
    NotImplementedError
        If leaving rows out of the classifier is not exact, as after `fit_em`.
    ValueError
        If the counts show that the rows were not counted; if a weight is not whole; if `estimate` is "map" or "mle"; if
        `groups` cannot be used, or there are no folds.

    Notes
    -----
    A new row x is counted with each label y in turn. Every row of these N + 1 then has a score, the probability of its
    label given all *other* rows. The p-value is the fraction of scores that are no better than that of (x, y):

        p_y(x) = #{i <= N + 1: s_i <= s_(N+1)} / (N + 1),    s_i = P(y_i | x_i, D ∪ (x, y) without row i).

    If (x, y) is exchangeable with the N rows, each rank of its score is equally probable. So the set of all labels with
    p > ε misses the true label with a probability of at most ε. This probability is over the data and the new row; it
    does not hold for each row x, nor given that the set has one label. If features depend on each other, naive Bayes is
    overconfident; sets are then larger, and coverage still holds. If a model is wrong in a smaller fraction of rows
    than ε, the sets of the most uncertain rows are empty, and a higher coverage costs little. If rows depend on time,
    or come in groups, they are not exchangeable, and coverage is not guaranteed. Nor is it if rows are copies of
    others, such as those of an oversampled class: a copy is scored with its original among the other rows, and a new
    row is not. `notes` say so. Pass each row once, with its `sample_weight`, to `fit` and to this function.

    Scores are those of refits to N rows under the same encoding, computed from counts: M candidates take O(M N C F)
    operations without a refit, in constant memory. Where classes share parameters, as under a Gaussian prior that is
    derived from the data (the default) or in `FeatureAveragedNB`, and in `AODE`, the whole model changes with each
    candidate: C times the work, or more. A row whose label has probability 0 has the lowest score. Scores are equal if
    they differ by less than 1e-9, relative to the log odds.

    Coverage is approximate if choices on the rows are not made anew with each candidate. `notes` lists such choices: a
    tree, densities and cells of numbers, the alpha of an estimator that `tune_alpha` has returned (unless the estimator
    is fitted again). Choices on other rows keep the guarantee, such as the weights of `WeightedNB(weights=weights)`.

    Weights that were fitted to the rows are fitted anew, structure included, without each of ten folds:
    *cross-conformal* prediction. Rows of a fold are compared with candidates by the fit without that fold, and the
    counts of the folds are added up. The set misses the label with a probability of at most 2ε, and of about ε in
    simulations. Levels that were listed from the rows make the guarantee approximate for a new row with a new level;
    declare levels by `categories`.

    References
    ----------
    Vovk, Gammerman & Shafer, *Algorithmic Learning in a Random World* (2005), ch. 2, and 4.5 for `by_class`. Vovk,
    *Cross-conformal predictors*, Ann. Math. Artif. Intell. 74 (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import CategoricalNB, conformal
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> x = np.where(rng.random(500) < 0.7, y, 1 - y)
    >>> X = np.column_stack([x, x, x])  # one witness, heard three times, who is wrong in 30% of all cases
    >>> nb = CategoricalNB().fit(X, y)
    >>> nb.predict_proba([[1, 1, 1]]).round(2)
    array([[0.06, 0.94]])
    >>> conformal(nb, X, y).predict_set([[1, 1, 1]], coverage=0.9).labels
    [array([0, 1])]
    """
    fitted = require_leave_one_out(nb, "conformal")
    estimate = require_average(fitted.estimate if estimate is None else estimate)
    require_choice("ties", ties, ("conservative", "random"))
    require_flag("by_class", by_class)
    seed = read_seed(seed)
    X = to_pandas(X, "X")
    counted = counted_rows(fitted, X, y, sample_weight, "conformal")
    if (counted.weight % 1 != 0).any():
        i = int(np.argmax(counted.weight % 1 != 0))
        raise ValueError(f"sample_weight of row {i} is {counted.weight[i]}, not a count. Pass whole weights.")
    positive = counted.take(counted.weight > 0)
    chosen, classes = " and ".join(fitted.chosen), fitted.encoding.classes.array()
    notes = (f"Coverage is approximate, because the same rows were used to choose {chosen}.",) if chosen else ()
    if groups is not None and WEIGHTS not in fitted.chosen:
        raise ValueError(
            f"conformal: groups are kept together by folds, which a {fitted.name} without weights fitted to these rows "
            "does not have: each row is left out alone. Leave groups out, or pass a fitted WeightedNB."
        )
    unit = find_copies(fitted.table(X)) if groups is None else check_groups(groups, len(counted.label))
    if copies := describe_copies(unit, counted.label):
        notes = (*notes, f"Coverage is approximate, because {copies}, and a new row has no copies.")
    if WEIGHTS in fitted.chosen:
        ranking = cross_ranking(nb, X, y, counted, estimate, int(seed), by_class, unit)
        notes = (GUARANTEE,)
    elif fitted.member_names is not None:
        # A copy, as `nb` may be fitted to other rows later.
        ranking = partial(average_ranking, nb.with_counts(fitted.counted), positive, estimate, by_class)
    else:
        ranking = full_ranking(fitted, positive, estimate, by_class)
    n_rows = np.bincount(counted.label, counted.weight, len(classes))
    n_rows = n_rows if by_class else np.full(len(classes), n_rows.sum())
    return Conformal(classes, n_rows, by_class, ties, int(seed), notes, ranking)
