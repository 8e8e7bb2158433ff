"""The average over all spanning trees, by loops over an enumeration."""

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import gammaln

Tree = frozenset[tuple[int, int]]


@cache
def trees(n: int) -> list[Tree]:
    """The n^(n - 2) trees of n vertices, by their Prüfer codes; arcs (u, v) with u < v."""
    return [_decoded(code, n) for code in itertools.product(range(n), repeat=n - 2)] if n > 1 else [frozenset()]


def _decoded(code: tuple[int, ...], n: int) -> Tree:
    degree, arcs = np.bincount(np.array(code, int), minlength=n) + 1, []
    for v in code:
        leaf = int(np.argmax(degree == 1))
        arcs.append((min(leaf, v), max(leaf, v)))
        degree[[leaf, v]] -= 1
    return frozenset([*arcs, tuple(np.flatnonzero(degree == 1).tolist())])


def arcs_of(parent: np.ndarray) -> Tree:
    """Arcs of a tree; a vertex that is its own parent, or whose parent is -1, has none."""
    pairs = ((int(p), v) for v, p in enumerate(parent) if p not in (-1, v))
    return frozenset((min(pair), max(pair)) for pair in pairs)


def is_forest(arcs: Tree, n: int) -> bool:
    """Whether the arcs have no cycle."""
    part = np.arange(n)
    for u, v in arcs:
        if part[u] == part[v]:
            return False
        part[part == part[v]] = part[u]
    return True


@cache
def real_arcs(n: int) -> np.ndarray:
    """(n^(n - 2) 2^(n - 1), P) which arcs are real: every tree, with every set of its arcs void."""
    at = {arc: p for p, arc in enumerate(itertools.combinations(range(n), 2))}
    found = np.zeros((len(trees(n)), 2 ** (n - 1), len(at)), bool)
    for t, tree in enumerate(trees(n)):
        found[t][:, [at[arc] for arc in tree]] = list(itertools.product([False, True], repeat=n - 1))
    return found.reshape(len(found) * 2 ** (n - 1), len(at))


@dataclass(frozen=True)
class AllTrees:
    """Features whose levels are numbers from 0 on, -1 where a cell is missing; labels are numbers, too.

    A table counts the rows that have all its features, and its levels share S rows of the prior.
    """

    sizes: tuple[int, ...]
    n_classes: int
    total: float = 1.0

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(itertools.combinations(range(len(self.sizes)), 2))

    def table(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray, features: tuple[int, ...]) -> np.ndarray:
        """(C, sizes of the features) weights of rows."""
        found = np.zeros((self.n_classes, *(self.sizes[f] for f in features)))
        observed = (X[:, features] >= 0).all(axis=1)
        np.add.at(found, (y[observed], *X[observed][:, features].T), weight[observed])
        return found

    def log_dirichlet(self, table: np.ndarray) -> float:
        """Σ log p(table) of its classes."""
        n = table.reshape(self.n_classes, -1)
        a = self.total / max(n.shape[1], 1)
        rows = gammaln(self.total) - gammaln(self.total + n.sum(axis=1))
        return float((gammaln(a + n) - gammaln(a)).sum() + rows.sum())

    def log_bayes(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """(P,) log of Π E_uv / (E_u E_v)."""
        found = []
        for pair in self.pairs:
            joint = self.table(X, y, weight, pair)
            each = (joint, joint.sum(axis=2), joint.sum(axis=1))
            both, first, second = map(self.log_dirichlet, each)
            found.append(both - first - second)
        return np.array(found)

    def log_score(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
        """log p(D): the mean over all structures."""
        alone = sum(self.log_dirichlet(self.table(X, y, weight, (f,))) for f in range(len(self.sizes)))
        real = real_arcs(len(self.sizes))
        return alone + np.logaddexp.reduce(real @ self.log_bayes(X, y, weight)) - np.log(len(real))

    def posterior(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """(S,) probability of each of `real_arcs`."""
        log_weight = real_arcs(len(self.sizes)) @ self.log_bayes(X, y, weight)
        return np.exp(log_weight - np.logaddexp.reduce(log_weight))

    def arc_probability(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return self.posterior(X, y, weight) @ real_arcs(len(self.sizes))

    def log_joint(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(N, C) log p(row, class, D) - log p(D), where the probability of the class is left out."""
        before = self.log_score(X, y, weight)
        each = range(self.n_classes)
        return np.array([[self.log_score(*_and(X, y, weight, row, c)) - before for c in each] for row in rows])

    def complete_rows(self) -> np.ndarray:
        """Every combination of levels."""
        return np.array(list(itertools.product(*map(range, self.sizes))), int).reshape(-1, len(self.sizes))


def _and(X: np.ndarray, y: np.ndarray, weight: np.ndarray, row: np.ndarray, label: int) -> tuple[np.ndarray, ...]:
    return np.vstack([X, row]), np.append(y, label), np.append(weight, 1.0)
