"""Networks whose tables are averages over contexts, from the recursion and the chain rule alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from tests.estimators.networks import Brute, Parents


def log_evidence_of_table(table: np.ndarray, alpha: float) -> float:
    """P(s) = ½ B(n_s) + ½ Π_v P(s v) of counts (*parents, levels), `alpha` for all levels together."""
    if not table.shape[-1]:
        return 0.0
    n = table.reshape(-1, table.shape[-1]).sum(axis=0)
    own = alpha / len(n)
    stop = (gammaln(own + n) - gammaln(own)).sum() + gammaln(alpha) - gammaln(alpha + n.sum())
    if table.ndim == 1:
        return float(stop)
    return float(np.logaddexp(stop, sum(log_evidence_of_table(below, alpha) for below in table)) - np.log(2))


@dataclass(frozen=True)
class Contexts:
    """Counts in arrays, of each class and column; the last value of a parent is that it is missing.

    `alpha` has one entry a column, of all its levels together, and `class_alpha` one a class.
    """

    levels: list[tuple[Any, ...]]
    parents: Parents
    alpha: list[float]
    class_alpha: list[float]
    classes: tuple[Any, ...]

    @classmethod
    def like(cls, brute: Brute) -> Contexts:
        return cls(brute.levels, brute.parents, brute.alpha, brute.class_alpha, brute.classes)

    def cell(self, row: Any, j: int) -> tuple[int, ...]:
        """Index of an observed cell: its parents' values, then its own."""
        parents = self.parents.get(j, ())
        given = (len(self.levels[p]) if row[p] is None else self.levels[p].index(row[p]) for p in parents)
        return (*given, self.levels[j].index(row[j]))

    def tables(self, X: Any, y: Any, weight: Any) -> dict[Any, np.ndarray]:
        """`c`: weight of its rows; `(c, j)`: counts (*parents, levels)."""
        found: dict[Any, np.ndarray] = {}
        for c in self.classes:
            found[c] = np.zeros(())
            for j, own in enumerate(self.levels):
                found[c, j] = np.zeros((*(len(self.levels[p]) + 1 for p in self.parents.get(j, ())), len(own)))
        for row, c, w in zip(X, y, weight, strict=True):
            found[c] += w
            for j in range(len(self.levels)):
                if row[j] is not None:
                    found[c, j][self.cell(row, j)] += w
        return found

    def log_class(self, tables: dict[Any, np.ndarray]) -> np.ndarray:
        n = np.array([tables[c] for c in self.classes]) + self.class_alpha
        return np.log(n / n.sum())

    def log_cell(self, tables: dict[Any, np.ndarray], c: Any, row: Any, j: int) -> float:
        """log p(x_j | its parents, c, data): the evidence with the cell less that without it."""
        if row[j] is None:
            return 0.0
        more = tables[c, j].copy()
        more[self.cell(row, j)] += 1.0
        return log_evidence_of_table(more, self.alpha[j]) - log_evidence_of_table(tables[c, j], self.alpha[j])

    def log_joints(self, tables: dict[Any, np.ndarray], X: Any) -> np.ndarray:
        """(N, C) log p(class, row)."""
        each = range(len(self.levels))
        cells = [[sum(self.log_cell(tables, c, row, j) for j in each) for c in self.classes] for row in X]
        return self.log_class(tables) + np.array(cells)

    def evidence(self, tables: dict[Any, np.ndarray]) -> float:
        """log p(labels, rows)."""
        n, a = np.array([tables[c] for c in self.classes]), np.array(self.class_alpha)
        total = float((gammaln(a + n) - gammaln(a)).sum() + gammaln(a.sum()) - gammaln((a + n).sum()))
        return total + sum(
            log_evidence_of_table(t, self.alpha[key[1]]) for key, t in tables.items() if isinstance(key, tuple)
        )
