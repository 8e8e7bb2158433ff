"""Identification of the parameters of diagnostic tests by a table: rank of its margins, information, and fit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import expit, xlogy

from bayesnb.sampling.hui_walter import HuiWalter, Sums
from bayesnb.sampling.tempering import Posterior

_WEAK = 1.0 / 3.0
"""Ratio of the posterior sd to the prior sd in a direction that is weakly identified."""
_MOST_CELLS = 2**12
_POINTS = 5
_ZERO = 1e-9
_DRAWS = 200
_REPLICATES = 1000
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Margins:
    """Tables of all results of the tests that were done together, in each population.

    Parameters
    ----------
    model : HuiWalter
    tables : list of Sums
        Probabilities of the cells of each table; of a random part of them if there are more than 2¹².
    counts : list of arrays
        Frequencies of these cells.
    n_frequencies : int
        Number of free frequencies of all tables.
    """

    model: HuiWalter
    tables: list[Sums]
    counts: list[np.ndarray]
    n_frequencies: int

    @classmethod
    def from_cells(cls, model: HuiWalter, code: np.ndarray, result: np.ndarray, count: np.ndarray) -> Margins:
        """Find the tables of cells: populations (K,), results (K, T) of 1, 0 or NaN, and frequencies (K,)."""
        rng = np.random.default_rng(0)
        tables, counts, n_frequencies = [], [], 0
        keys = np.column_stack([code, ~np.isnan(result)])
        for key in np.unique(keys, axis=0):
            own = (keys == key).all(axis=1)
            done = np.flatnonzero(key[1:])
            n_frequencies += 2 ** len(done) - 1
            is_whole = 2 ** len(done) <= _MOST_CELLS
            if is_whole:
                results = np.array(list(product((0.0, 1.0), repeat=len(done))))
            else:
                results = rng.integers(0, 2, (_MOST_CELLS // 4, len(done))).astype(float)
            cells, frequency = np.full((len(results), result.shape[1]), np.nan), np.zeros(len(results))
            cells[:, done] = results
            if is_whole:
                power = 1 << np.arange(len(done))[::-1]
                np.add.at(frequency, (result[own][:, done] @ power).astype(int), count[own])
            tables.append(model.cells(np.full(len(cells), key[0]), cells))
            counts.append(frequency)
        return cls(model, tables, counts, n_frequencies)

    @property
    def is_whole(self) -> bool:
        """Whether the tables have all cells."""
        return sum(len(count) - 1 for count in self.counts) == self.n_frequencies

    def rank(self) -> tuple[int, np.ndarray]:
        """Return the generic rank of the margins, and whether each quantity is a function of them, locally.

        The rank is the largest of the ranks of the derivatives at several random parameters. A quantity is determined
        if it does not change along any direction in which no margin changes.
        """
        best, determined = -1, np.zeros(0, bool)
        for logits in np.random.default_rng(0).normal(size=(_POINTS, 1, self.model.n_parameters)):
            slope = np.concatenate([table.jacobian(logits)[0] for table in self.tables])
            _, size, directions = np.linalg.svd(np.linalg.qr(slope, mode="r"))
            rank = int((size > _ZERO * size[0]).sum())
            if rank > best:
                change = self.model.quantities.jacobian(logits)[0]
                free = np.abs(change @ directions[rank:].T).max(axis=1, initial=0.0)
                best, determined = rank, free < 1e-6 * np.abs(change).max(axis=1)
        return best, determined

    def fit(self, logits: np.ndarray, seed: int) -> float:
        """Posterior predictive p of G² for draws (S, n): P(G² of a replicated table is at least that of the table).

        Both are deviations of a table from the probabilities of the same draw (Gelman, Meng & Stern 1996).
        """
        rng = np.random.default_rng(seed)
        logits = logits[:: -(-len(logits) // _REPLICATES)]
        observed, replicated = np.zeros(len(logits)), np.zeros(len(logits))
        for table, count in zip(self.tables, self.counts, strict=True):
            prob = np.exp(table.log_sums(logits))
            prob /= prob.sum(axis=1, keepdims=True)
            drawn = rng.multinomial(int(count.sum()), prob)
            observed += _deviance(count, prob)
            replicated += _deviance(drawn, prob)
        return float((replicated >= observed).mean())


def _deviance(count: np.ndarray, prob: np.ndarray) -> np.ndarray:
    """(S,) likelihood-ratio statistic G² of frequencies (K,) or (S, K) against probabilities (S, K)."""
    expected = prob * count.sum(axis=-1, keepdims=True)
    return np.asarray(2.0 * xlogy(count, np.where(count > 0, count / np.maximum(expected, 1e-300), 1.0)).sum(axis=-1))


def measure_information(posterior: Posterior, margins: Margins, logits: np.ndarray) -> tuple[np.ndarray, float]:
    """Return whether each quantity is weakly identified, and posterior over prior sd in the weakest direction.

    At each of some draws (S, n) the information of the data is Fisher's, in units in which parameters have the prior sd
    1: the sum over cells, empty ones included, of the expected frequency times the squared derivative of the log
    probability. If not all cells are known, the observed frequencies take the place of the expected ones. A direction
    whose information is σ² has the posterior sd (1 + σ²)^(-1/2). A quantity is weakly identified if most of its
    variance is that of directions in which this ratio is above a third.
    """
    logits = logits[:: -(-len(logits) // _DRAWS)]
    theta = expit(logits)
    a, b = posterior.concentration.T
    scale = np.sqrt(a * b / (a + b + 1.0)) / (a + b) / np.maximum(theta * (1.0 - theta), _LEAST)
    whole = zip(margins.tables, margins.counts, strict=True)
    fisher = np.zeros((*theta.shape, theta.shape[1]))
    for cells, count in whole if margins.is_whole else [(posterior.cells, posterior.count)]:
        log = cells.log_sums(logits)
        frequency = count.sum() * np.exp(log) if margins.is_whole else count
        slope = cells.jacobian(logits) * scale[:, None] * (np.sqrt(frequency) * np.exp(-log))[..., None]
        fisher += np.swapaxes(slope, 1, 2) @ slope
    information, directions = np.linalg.eigh(fisher)
    variance = 1.0 / (1.0 + np.maximum(information, 0.0))
    change = (posterior.model.quantities.jacobian(logits) * scale[:, None]) @ directions
    parts = change**2 * variance[:, None]
    weak = variance[:, None] > _WEAK**2
    is_weak = (parts * weak).sum(axis=(0, 2)) > 0.5 * parts.sum(axis=(0, 2))
    return is_weak, float(np.median(np.sqrt(variance.max(axis=1))))
