"""Reference model of a classifier's counts: a list of rows, and the probabilities that follow from the list."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

Row = tuple[Any, ...]


@dataclass
class Ledger:
    """Every row that is counted now, (row, label, weight), the classes ever seen, and the levels of the model.

    `levels` has one set a column, None for a column of numbers. Levels in `fixed` stay without rows.
    """

    levels: list[set[Any] | None]
    classes: set[Any] = field(default_factory=set)
    rows: list[tuple[Row, Any, float]] = field(default_factory=list)
    fixed: list[set[Any]] = field(default_factory=list)

    def add(self, rows: list[tuple[Row, Any, float]], classes: Any) -> None:
        self.classes |= set(classes)
        self.rows += [r for r in rows if r[2] > 0]
        for row, _, weight in rows:
            for value, known in zip(row, self.levels, strict=True):
                if weight > 0 and known is not None and not missing(value):
                    known.add(value)

    def fix(self) -> None:
        self.fixed = [set(known or ()) for known in self.levels]

    def forget(self, some: list[int], share: float) -> None:
        """Forget a share of the weight of some rows, and the levels that only batches had and no row has any more."""
        forgotten = [self.rows[i][0] for i in some]
        left = [(row, y, w * (1 - share) if i in some else w) for i, (row, y, w) in enumerate(self.rows)]
        self.rows = [r for r in left if r[2] > 0]
        for j, known in enumerate(self.levels):
            if known is not None:
                known -= {row[j] for row in forgotten} - {row[j] for row, _, _ in self.rows} - self.fixed[j]

    def join(self, other: Ledger) -> None:
        self.add(other.rows, other.classes)
        for mine, theirs, fixed in zip(self.levels, other.levels, self.fixed, strict=True):
            if mine is not None and theirs is not None:
                mine |= theirs
                fixed |= theirs

    def scale(self, factor: float) -> None:
        self.rows = [(row, label, weight * factor) for row, label, weight in self.rows]

    def class_weight(self, label: Any) -> float:
        return sum(w for _, y, w in self.rows if y == label)

    def weight_of(self, label: Any, cells: dict[int, Any]) -> float:
        """Weight of the rows of a class in which these columns have these values."""
        return sum(w for row, y, w in self.rows if y == label and all(row[j] == v for j, v in cells.items()))

    def cells(self, label: Any, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Observed values of a column of numbers in a class, and their weights."""
        pairs = [(row[j], w) for row, y, w in self.rows if y == label and not missing(row[j])]
        values, weight = np.array(pairs, dtype=float).reshape(-1, 2).T
        return values, weight

    def moments(self, label: Any, j: int) -> tuple[float, float, float]:
        """Count, mean and centred sum of squares, in two passes."""
        values, weight = self.cells(label, j)
        n = math.fsum(weight)
        mean = math.fsum(weight * values) / n if n else 0.0
        spread = math.fsum(weight * (values - mean) ** 2) if len(set(values)) > 1 else 0.0  # of equal cells none
        return n, mean, spread

    # -- posterior predictive probabilities of one cell ------------------------------------------

    def log_level(self, label: Any, j: int, row: Row, alpha: float, parents: tuple[int, ...] = ()) -> float:
        given = {k: row[k] for k in parents}
        n = self.weight_of(label, given | {j: row[j]})
        total = sum(self.weight_of(label, given | {j: v}) for v in self.levels[j] or ())
        return math.log((n + alpha) / (total + alpha * len(self.levels[j] or ())))

    def log_presence(self, label: Any, j: int, row: Row, alpha: float) -> float:
        values, weight = self.cells(label, j)
        same = math.fsum(weight[values == row[j]])
        return math.log((same + alpha) / (math.fsum(weight) + 2 * alpha))

    def log_number(self, label: Any, j: int, row: Row, prior: tuple[float, float, float, float]) -> float:
        """Student's t."""
        loc, kappa, a, b = prior
        n, mean, m2 = self.moments(label, j)
        kappa_n = kappa + n
        loc_n = (kappa * loc + n * mean) / kappa_n
        a_n, b_n = a + n / 2, b + m2 / 2 + kappa * n * (mean - loc) ** 2 / (2 * kappa_n)
        scale = math.sqrt(b_n * (kappa_n + 1) / (a_n * kappa_n))
        return float(stats.t.logpdf(row[j], 2 * a_n, loc_n, scale))

    def log_count(self, label: Any, j: int, row: Row, prior: tuple[float, float]) -> float:
        """Negative binomial."""
        values, weight = self.cells(label, j)
        a, b = prior[0] + math.fsum(weight * values), prior[1] + math.fsum(weight)
        return float(stats.nbinom.logpmf(row[j], a, b / (b + 1)))


def missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def probabilities(joint: dict[Any, float]) -> dict[Any, float]:
    top = max(joint.values())
    prob = {c: math.exp(v - top) for c, v in joint.items()}
    return {c: p / sum(prob.values()) for c, p in prob.items()}


__all__ = ["Ledger", "missing", "probabilities"]
