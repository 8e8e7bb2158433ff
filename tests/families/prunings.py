"""Averages over all prunings of a context tree, by loops over an enumeration."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import gammaln, polygamma

Context = tuple[int, ...]


@cache
def prunings(sizes: tuple[int, ...], before: Context = ()) -> list[list[Context]]:
    """The last contexts of each pruning, as values of the first few parents, which have so many each."""
    if not sizes:
        return [[before]]
    below = [prunings(sizes[1:], (*before, v)) for v in range(sizes[0])]
    return [[before], *(list(itertools.chain(*parts)) for parts in itertools.product(*below))]


@dataclass(frozen=True)
class AllPrunings:
    """One feature in one class: counts (*parents, levels), the concentration of each level, prior log odds to stop."""

    count: np.ndarray
    alpha: float
    log_odds: float = 0.0

    @property
    def each(self) -> list[list[Context]]:
        return prunings(self.count.shape[:-1])

    def of_context(self, context: Context) -> np.ndarray:
        return self.count[context].reshape(-1, self.count.shape[-1]).sum(axis=0)

    def log_weight(self) -> np.ndarray:
        """(B,) log p(pruning, data)."""
        depth, found = self.count.ndim - 1, []
        for pruning in self.each:
            inner = {context[:k] for context in pruning for k in range(len(context))}
            stops = sum(len(context) < depth for context in pruning)
            prior = -stops * np.log1p(np.exp(-self.log_odds)) - len(inner) * np.log1p(np.exp(self.log_odds))
            found.append(prior + sum(map(self.log_dirichlet, pruning)))
        return np.array(found)

    def log_dirichlet(self, context: Context) -> float:
        n = self.of_context(context)
        total = self.alpha * len(n)
        own = gammaln(self.alpha + n) - gammaln(self.alpha)
        return float(own.sum() + gammaln(total) - gammaln(total + n.sum()))

    def log_evidence(self) -> float:
        return float(np.logaddexp.reduce(self.log_weight()))

    def weight(self) -> np.ndarray:
        """(B,) P(pruning | data)."""
        log_weight = self.log_weight()
        return np.exp(log_weight - np.logaddexp.reduce(log_weight))

    def posteriors(self) -> tuple[np.ndarray, np.ndarray]:
        """(B, *parents, levels) α + n of each cell in its last context, and of all levels there."""
        own, total = (np.empty((len(self.each), *self.count.shape)) for _ in range(2))
        for b, pruning in enumerate(self.each):
            for context in pruning:
                posterior = self.alpha + self.of_context(context)
                own[(b, *context)], total[(b, *context)] = posterior, posterior.sum()
        return own, total

    def average(self, values: np.ndarray) -> np.ndarray:
        return np.tensordot(self.weight(), values, 1)

    def mean(self) -> np.ndarray:
        own, total = self.posteriors()
        return self.average(own / total)

    def variance(self) -> np.ndarray:
        own, total = self.posteriors()
        mean = own / total
        return self.average(mean * (1 - mean) / (total + 1) + (mean - self.average(mean)) ** 2)

    def cumulants(self) -> list[np.ndarray]:
        """Mean, variance and third central moment of the logarithm of each probability."""
        own, total = self.posteriors()
        first, second, third = (polygamma(k, own) - polygamma(k, total) for k in range(3))
        mean = self.average(first)
        away = first - mean
        return [mean, self.average(second + away**2), self.average(third + 3 * second * away + away**3)]

    def mode(self) -> np.ndarray:
        """The mean in the most probable pruning."""
        own, total = self.posteriors()
        return (own / total)[self.log_weight().argmax()]

    def last(self) -> np.ndarray:
        """(D, *parents, levels) probability that the last context of a cell has 0, 1, … parents."""
        found = np.zeros((self.count.ndim, *self.count.shape))
        for weight, pruning in zip(self.weight(), self.each, strict=True):
            for context in pruning:
                found[(len(context), *context)] += weight
        return found

    def products(self) -> np.ndarray:
        """(K, K) E[θ_i θ_j] of all cells."""
        found, k = 0.0, self.count.size
        own, total = (v.reshape(len(self.each), k) for v in self.posteriors())
        for weight, pruning, a, t in zip(self.weight(), self.each, own, total, strict=True):
            context = np.empty(self.count.shape, int)
            for number, place in enumerate(pruning):
                context[place] = number
            level = np.broadcast_to(np.arange(self.count.shape[-1]), self.count.shape)
            together, same = (np.equal.outer(v.ravel(), v.ravel()) for v in (context, level))
            within = (np.outer(a, a) + (together & same) * a) / (np.outer(t, t) + together * t)
            found = found + weight * within
        return found

    def and_cell(self, cell: Context, more: float) -> AllPrunings:
        """Return a copy with more rows counted in one cell."""
        count = self.count.copy()
        count[cell] += more
        return AllPrunings(count, self.alpha, self.log_odds)
