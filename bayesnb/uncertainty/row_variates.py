"""Draws of parameters that vary together as the training rows do.

Each row i has one variate e_i ~ Exp(1), which all columns share; a row of weight w has Gamma(w), and the rows of a
group share one. The gamma variate of a level is Gamma(α) + Σ e_i over its rows. Its distribution is Gamma(α + n)
exactly, so that each probability keeps its Dirichlet posterior; but columns that repeat each other have equal draws,
not independent ones. It is Rubin's Bayesian bootstrap (*The Bayesian bootstrap*, Ann. Stat. 9 (1981)) with the prior as
further rows.

The parameters of numbers are functions of normal variates u = Σ_i z_i q_i/√Σ q_i², with z_i = Φ⁻¹(F(e_i)) of the same
e_i, F the distribution function of the exponential, and q_i what the row adds to the mean, or to the logarithm of the
variance or rate. Where the rows' Σ q_i² exceeds what the model states, as it does if tails are heavy, counts are
overdispersed or rows come in groups, the parameter is spread by the root of the ratio, which ten more rows draw to 1.
docs/derivations/rows.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import jax
import numpy as np
from jaxtyping import Float, Int
from scipy.special import betaincinv, gammainc, gammainccinv, gammaincinv, logit, ndtr, ndtri

from bayesnb._util.arguments import shown
from bayesnb._util.precision import float64
from bayesnb.encoding import Rows, check_weights
from bayesnb.encoding.encoded_rows import LevelRows, pad_rows, padded_size
from bayesnb.encoding.units import check_groups
from bayesnb.families import LevelCounts
from bayesnb.families.arrays import Array, sum_rows, sum_weightings
from bayesnb.families.numbers import observed
from bayesnb.families.protocol import Increments, Prior, Variates
from bayesnb.fitted import counting
from bayesnb.fitted.state import Fitted
from bayesnb.model import Statistics
from bayesnb.uncertainty.variates import HostVariates, ShapeRecorder

_UNITS_AT_ONCE, DRAWS_AT_ONCE = 2**12, 2**5  # of which one key draws the variates
_UNITS_OF_MODEL = 10.0


TrainingData = tuple[object, ...]
"""Rows of a fit: (X, y), or (X, y, sample_weight)."""


# == Training rows, and their variates ==============================================================


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Encoded rows of a fit in the order of their units.

    Parameters
    ----------
    rows : tuple of Rows
        Rows of each block, as they are counted.
    label, weight, unit : (N,) arrays
        Index of the class, positive replication count, and index of the unit, of each row; units ascend.
    grouped : bool
        Whether units are groups of rows; otherwise each row is a unit.
    """

    rows: tuple[Rows, ...]
    label: Int[np.ndarray, "N"]
    weight: Float[np.ndarray, "N"]
    unit: Int[np.ndarray, "N"]
    grouped: bool

    @classmethod
    def read(cls, fitted: Fitted, X: object, y: object, sample_weight: object, groups: object, who: str) -> Self:
        """Encode the rows of a fit.

        Raises
        ------
        ValueError
            If the rows are not those that the classifier has counted, or weights or groups do not fit the rows.
        """
        table = fitted.table(X)
        if y is None:
            raise ValueError(f"{who}: y is missing. Rows need their labels. Pass y of the rows that `fit` has counted.")
        label, weight = fitted.label_index(y, table.n_rows), check_weights(sample_weight, table.n_rows)
        unit = np.arange(table.n_rows) if groups is None else check_groups(groups, table.n_rows)
        order = np.argsort(unit, kind="stable")
        order = order[weight[order] > 0]
        rows = tuple(r.counting_rows() for r in fitted.rows(table))
        if len(order) < table.n_rows or (np.diff(order) < 0).any():
            rows, label, weight, unit = tuple(r.take(order) for r in rows), label[order], weight[order], unit[order]
        training = cls(rows, label, weight, np.unique(unit, return_inverse=True)[1], groups is not None)
        _require_rows_of_fit(fitted, training, who)
        return training

    @cached_property
    def shape(self) -> Float[np.ndarray, "U"]:
        """(U,) shape of the gamma variate of each unit: the weight of a row, or 1 for a group of rows."""
        return np.ones(1 + self.unit.max(initial=-1)) if self.grouped else self.weight


def _require_rows_of_fit(fitted: Fitted, training: TrainingRows, who: str) -> None:
    """Raise ValueError unless the rows have the sufficient statistics of a fitted classifier."""
    counted = counting.count_rows(fitted.encoding, training.rows, training.label, training.weight)
    fit, given = fitted.statistics.class_count, counted.class_count
    if not np.allclose(fit, given, rtol=1e-6):
        raise ValueError(
            f"{who}: X and y are not the rows that the classifier has counted. The classes have the weights "
            f"{shown(given.tolist())}, a total of {given.sum():g}; the classifier has {shown(fit.tolist())}, a total "
            f"of {fit.sum():g}. Pass the rows of `fit`, with their sample_weight."
        )
    for columns, a, b in zip(fitted.encoding.blocks, fitted.statistics.blocks, counted.blocks, strict=True):
        for of_fit, of_rows in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
            differs = ~np.isclose(of_fit, of_rows, rtol=1e-6, atol=1e-9 * np.abs(of_fit).max(initial=1e-300))
            if differs.any():
                where, place = counting.locate(differs, fitted.encoding, columns)
                raise ValueError(
                    f"{who}: X and y are not the rows that the classifier has counted. In {place}, the cells of these "
                    f"rows add up to {of_rows[where]:g}, and to {of_fit[where]:g} in the classifier. Pass the rows of "
                    "`fit`."
                )


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some units, their rows, and n draws of the variates of the units.

    Parameters
    ----------
    training : TrainingRows
    rows : slice
        Rows of the units.
    gamma, normal : (u, n) arrays
        Gamma variates e of the units, and z = Φ⁻¹(F(e)), which has no rows if no column is of numbers.
    """

    training: TrainingRows
    rows: slice
    gamma: Float[np.ndarray, "u n"]
    normal: Float[np.ndarray, "u n"]

    @cached_property
    def size(self) -> int:
        """Number of rows with padding, so that few sizes occur."""
        return padded_size(self.rows.stop - self.rows.start)

    @cached_property
    def label(self) -> Int[np.ndarray, "m"]:
        """(m,) index of the class of each row, 0 for padding."""
        return pad_rows(self.training.label[self.rows], self.size)

    @cached_property
    def unit(self) -> Int[np.ndarray, "m"]:
        """(m,) position of the unit of each row, without padding, among the units."""
        unit = self.training.unit[self.rows]
        return unit - unit[0]

    @cached_property
    def weight(self) -> Float[np.ndarray, "n m"]:
        """(n, m) weights of the rows: w e where rows of a group share e, else e itself; 0 for padding."""
        of_row = self.gamma[self.unit]
        if self.training.grouped:
            of_row *= self.training.weight[self.rows, None]
        return pad_rows(of_row, self.size).T

    def add(self, sums: NumberSums, single: object, increments: Increments) -> NumberSums:
        """Return the sums with what these rows add, given statistics (m, 1, F) of each row alone."""
        label, weight = self.training.label[self.rows], self.training.weight[self.rows, None]
        own, n_classes = np.empty((len(label), jax.tree.leaves(single)[0].shape[-1])), 1
        for c in np.unique(label):
            at = np.flatnonzero(label == c)
            added = np.asarray(increments(jax.tree.map(lambda v, at=at: v[at], single)))
            n_classes = added.shape[1]
            own[at] = added[:, c % n_classes]  # One class has the rows of all.
        label, unit = label % n_classes, self.unit
        if self.training.grouped:
            pair, index = np.unique(unit * n_classes + label, return_inverse=True)
            own, unit, label = np.asarray(sum_rows(own * weight, index, len(pair))), pair // n_classes, pair % n_classes
        else:
            own *= np.sqrt(weight)  # Σ q² is that of w rows.
        return NumberSums(
            sums.total + sum_weightings(own, label, self.normal[unit].T, n_classes),
            sums.square + np.asarray(sum_rows(own**2, label, n_classes)),
            sums.units + np.asarray(sum_rows((own != 0) * 1.0, label, n_classes)),
        )


def _pieces(training: TrainingRows, seed: int, draws: slice, *, with_normal: bool) -> Iterator[_Piece]:
    """Yield some units at a time, with variates of keys of their own; `draws` begins with a multiple of 32."""
    for start in range(0, len(training.shape), _UNITS_AT_ONCE):
        shape = training.shape[start : start + _UNITS_AT_ONCE]
        rows, blocks = slice(*np.searchsorted(training.unit, [start, start + len(shape)])), []
        is_exponential = (shape == 1).all()
        for first in range(draws.start, draws.stop, DRAWS_AT_ONCE):
            rng, size = np.random.Generator(np.random.Philox(seed, [0, start, first, 0])), (len(shape), DRAWS_AT_ONCE)
            blocks.append(
                rng.standard_exponential(size) if is_exponential else rng.standard_gamma(shape[:, None], size)
            )
        gamma = np.concatenate(blocks, axis=1)[:, : draws.stop - draws.start]
        normal = gamma[:0]
        if with_normal:
            below = -np.expm1(-gamma) if is_exponential else gammainc(shape[:, None], gamma)
            normal = ndtri(below.clip(1e-300, 1.0 - 1e-16))
        yield _Piece(training, rows, gamma, normal)


# == Variates of one block of columns, to which rows have added =====================================


class LevelVariates(Variates):
    """Variates of levels: log[Gamma(a - n) + Σ e_i] where rows have added n to a; others are independent.

    Parameters
    ----------
    rng : Generator
        Source of independent variates.
    counted, weighted : LevelCounts
        Counts (C, L) of the rows, and counts (n, C, L) of the rows weighted by n draws of their variates.
    """

    def __init__(self, rng: np.random.Generator, counted: LevelCounts, weighted: LevelCounts) -> None:
        self._independent, self._counted, self._weighted = HostVariates(rng), counted, weighted

    def log_gamma(self, a: Array, n: int, added: Increments | None = None) -> jax.Array:
        """(n, *shape of a) logarithms of gamma variates; Gamma(a) if each row has added 0 or 1 to each."""
        if added is None:
            return self._independent.log_gamma(a, n)
        prior = np.maximum(np.asarray(a) - added(self._counted), 0.0)
        return np.logaddexp(self._independent.log_gamma(prior, n), np.log(added(self._weighted)))

    def normal(self, like: Array, n: int, added: Increments | None = None) -> jax.Array:
        """(n, *shape of like) standard normal variates, which are independent."""
        return self._independent.normal(like, n)


class NumberSums(NamedTuple):
    """Sums over rows of what they add to one quantity of each column of numbers.

    Parameters
    ----------
    total : (n, C, F) array
        Σ z q.
    square : (C, F) array
        Σ q².
    units : (C, F) array
        Number of units of rows that have added something.
    """

    total: Float[np.ndarray, "n C F"]
    square: Float[np.ndarray, "C F"]
    units: Float[np.ndarray, "C F"]

    def standardize(self, independent: HostVariates) -> Float[np.ndarray, "n C F"]:
        """Return u = Σ z q/√Σ q², or independent normal variates where rows have added nothing."""
        has_rows = self.square > 0
        u = self.total / np.sqrt(np.where(has_rows, self.square, 1.0))
        return np.where(has_rows, u, independent.normal(u[0], len(u)))

    def spread(self, variance: float | Array) -> Float[np.ndarray, "C F"]:
        """Return the root of Σ q² over its variance by the model, as with ten more units for which both are equal.

        It is at least 1.
        """
        ratio = (self.units * self.square / variance + _UNITS_OF_MODEL) / (self.units + _UNITS_OF_MODEL)
        return np.sqrt(np.maximum(ratio, 1.0))


class NumberVariates(Variates):
    """Variates of columns of numbers, as functions of u = Σ z q/√Σ q²; what rows have not added to is independent.

    Parameters
    ----------
    rng : Generator
        Source of independent variates.
    sums : iterable of NumberSums
        Sums of what rows have added, in the order of the requests.
    """

    def __init__(self, rng: np.random.Generator, sums: Iterable[NumberSums]) -> None:
        self._independent, self._sums = HostVariates(rng), iter(sums)

    def log_gamma(self, a: Array, n: int, added: Increments | None = None) -> jax.Array:
        """(n, *shape of a) logarithms of gamma variates, log a + spread · (log of the quantile at Φ(u) - log a)."""
        if added is None:
            return self._independent.log_gamma(a, n)
        sums, a = next(self._sums), np.asarray(a)
        u = sums.standardize(self._independent)
        quantile = np.where(u < 0, gammaincinv(a, ndtr(np.minimum(u, 0))), gammainccinv(a, ndtr(-np.maximum(u, 0))))
        return np.log(a) + sums.spread(a) * (np.log(quantile) - np.log(a))

    def log_gamma_ratio(self, a: Array, b: Array, n: int, index: Any, added: Increments | None = None) -> jax.Array:
        """(n, *shape of a) logarithms of ratios of Gamma(a) to Gamma(b_k) variates: quantiles at Φ(u), spread as above.

        The variance of what rows add to a is a(1 + a/b) by the model.
        """
        sums, b = next(self._sums), np.take_along_axis(np.asarray(b)[None], index[..., None], axis=-1)[..., 0]
        u, below = sums.standardize(self._independent), np.broadcast_to(a, index.shape)
        low = logit(betaincinv(below, b, ndtr(np.minimum(u, 0.0))))
        high = -logit(betaincinv(b, below, ndtr(-np.maximum(u, 0.0))))
        middle, quantile = np.log(a) - np.log(b), np.where(u < 0, low, high)
        return middle + sums.spread(below * (1.0 + below / b)) * (quantile - middle)

    def normal(self, like: Array, n: int, added: Increments | None = None) -> jax.Array:
        """(n, *shape of like) normal variates spread · u, of variance 1 if the rows vary as the model states."""
        if added is None:
            return self._independent.normal(like, n)
        sums = next(self._sums)
        return sums.spread(1.0) * sums.standardize(self._independent)


# == Sums over rows ================================================================================


@float64
def sum_rows_of_draws(
    fitted: Fitted,
    training: TrainingRows,
    seed: int,
    draws: slice,
    rngs: Sequence[np.random.Generator],
    chosen: Sequence[int],
) -> dict[int, LevelVariates | NumberVariates]:
    """Sum over the rows what they add to some draws; return the variates of the `chosen` of (class prior, *blocks)."""
    encoding, statistics = fitted.encoding, fitted.statistics
    n_classes = len(encoding.classes)
    of_numbers = [b for b in chosen if b and hasattr(statistics.blocks[b - 1], "from_cells")]
    added = {b: _added_by_numbers(fitted.posterior.blocks[b - 1]) for b in of_numbers}
    levels = [b for b in chosen if b and b not in added]
    zeros = (np.zeros((n_classes, _n_levels(training.rows[b - 1]))) for b in levels)
    weighted = Statistics(np.zeros(n_classes), tuple(map(LevelCounts, zeros)), 0.0)
    sums = {b: [NumberSums(np.zeros((1, 1, 1)), *np.zeros((2, 1, 1)))] * len(requests) for b, requests in added.items()}
    for piece in _pieces(training, seed, draws, with_normal=bool(added)):
        x = {b: training.rows[b - 1].piece(piece.rows.start, piece.rows.stop, piece.size) for b in chosen if b}
        weighted = weighted.observe(tuple(jax.tree.map(np.asarray, x[b]) for b in levels), piece.label, piece.weight)
        for b, requests in added.items():
            single = _single_cells(statistics.blocks[b - 1], x[b], len(piece.unit))
            pairs = zip(sums[b], requests, strict=True)
            sums[b] = [piece.add(total, single, increments) for total, increments in pairs]
    variates: dict[int, Any] = {b: NumberVariates(rngs[b], of_block) for b, of_block in sums.items()}
    counts = LevelCounts(statistics.class_count[None]), LevelCounts(weighted.class_count[:, None])
    variates[0] = LevelVariates(rngs[0], *counts)
    for b, block in zip(levels, weighted.blocks, strict=True):
        finished = encoding.blocks[b - 1].finish(block, weighted.class_count)
        variates[b] = LevelVariates(rngs[b], statistics.blocks[b - 1], finished)
    return variates


def _added_by_numbers(family: Prior) -> list[Increments]:
    """Return what rows have added to each of the variates that a family of numbers asks for.

    Raises
    ------
    NotImplementedError
        If the family does not say.
    """
    recorder = ShapeRecorder()
    with np.errstate(all="ignore"):
        family.draw(recorder, 1)
    if not recorder.added:
        raise NotImplementedError(
            f"{type(family).__name__} does not say what rows have added to its variates. Give `added` to each variate "
            "in its method `draw`, or draw without the training rows."
        )
    return recorder.added


def _n_levels(rows: Any) -> int:
    """Return the number of levels that rows are counted in."""
    return int(np.sum(rows.sizes)) if isinstance(rows, LevelRows) else rows.matrix.shape[1]


def _single_cells(statistics: Any, x: object, n: int) -> object:
    """Return statistics (n, 1, F), of the type of `statistics`, of each of n rows of numbers alone."""
    seen, cells = jax.tree.map(lambda v: np.asarray(v)[:n, None], observed(x))
    return statistics.from_cells(cells, seen * 1.0)
