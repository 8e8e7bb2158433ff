"""Reference Bayesian networks with a class node, by NumPy loops; small random problems."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

CLASSES = ("ash", "elm", "oak")
LEVELS = ("u", "v", "w")
SIZES = (2, 3, 2, 3)
DECLARED = [list(LEVELS[:size]) for size in SIZES]

Parents = dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class Brute:
    """Counts in dictionaries: class, then values of the parents and of the feature. None is a missing cell.

    `alpha` has one entry a feature, `class_alpha` one a class.
    """

    levels: list[tuple[Any, ...]]
    parents: Parents
    alpha: list[float]
    class_alpha: list[float]
    classes: tuple[Any, ...]

    def node(self, j: int) -> tuple[int, ...]:
        return (*self.parents.get(j, ()), j)

    def observed(self, row: Any, j: int) -> bool:
        return all(row[k] is not None for k in self.node(j))

    def count(self, X: Any, y: Any, weight: Any) -> dict[Any, float]:
        """Weight of the rows of each class, `(c,)`, and of each combination of values, `(c, j, values of the node)`."""
        found: dict[Any, float] = {}
        for row, label, w in zip(X, y, weight, strict=True):
            keys = [(label,)]
            for j in range(len(self.levels)):
                if self.observed(row, j):
                    keys.append((label, j, tuple(row[k] for k in self.node(j))))
            for key in keys:
                found[key] = found.get(key, 0.0) + w
        return found

    def prob_class(self, counts: dict[Any, float], c: Any) -> float:
        total = sum(counts.get((k,), 0.0) + a for k, a in zip(self.classes, self.class_alpha, strict=True))
        return (counts.get((c,), 0.0) + self.class_alpha[self.classes.index(c)]) / total

    def prob_cell(self, counts: dict[Any, float], c: Any, j: int, values: tuple[Any, ...]) -> float:
        """p(x_j | parents, c), the parameters integrated out."""
        *given, _ = values
        of_level = [counts.get((c, j, (*given, v)), 0.0) + self.alpha[j] for v in self.levels[j]]
        return (counts.get((c, j, values), 0.0) + self.alpha[j]) / sum(of_level)

    def log_joint(self, counts: dict[Any, float], row: Any) -> np.ndarray:
        """(C,) log p(c, observed cells of the row): the sum over whatever the missing ones may be."""
        whole = list(
            itertools.product(*(own if v is None and own else [v] for v, own in zip(row, self.levels, strict=True)))
        )
        found = []
        for c in self.classes:
            each = [math.prod(self.prob_of(counts, c, j, full) for j in range(len(full))) for full in whole]
            found.append(math.log(self.prob_class(counts, c)) + math.log(math.fsum(each)))
        return np.array(found)

    def prob_of(self, counts: dict[Any, float], c: Any, j: int, row: Any) -> float:
        """p(x_j | parents, c) in a row without missing cells, but of columns of which there never was any."""
        if row[j] is None:
            return 1.0
        if any(row[p] is None for p in self.parents.get(j, ())):
            return 1.0 / len(self.levels[j])
        return self.prob_cell(counts, c, j, tuple(row[k] for k in self.node(j)))

    def log_joints(self, counts: dict[Any, float], X: Any) -> np.ndarray:
        return np.array([self.log_joint(counts, row) for row in X])

    def sequential_evidence(self, X: Any, y: Any, weight: Any) -> float:
        """Sum of log predictives of each row, repeated by its weight, from the rows before."""
        counts: dict[Any, float] = {}
        total = 0.0
        for row, label, w in zip(X, y, weight, strict=True):
            for _ in range(int(w)):
                total += self.log_joint(counts, row)[self.classes.index(label)]
                for key, n in self.count([row], [label], [1.0]).items():
                    counts[key] = counts.get(key, 0.0) + n
        return total

    def evidence(self, counts: dict[Any, float]) -> float:
        """Σ log B(α + n) - log B(α) over the simplexes, in loops."""
        total = log_beta_ratio(self.class_alpha, [counts.get((c,), 0.0) for c in self.classes])
        for c in self.classes:
            for j, own in enumerate(self.levels):
                for given in itertools.product(*(self.levels[p] for p in self.parents.get(j, ()))):
                    n = [counts.get((c, j, (*given, v)), 0.0) for v in own]
                    total += log_beta_ratio([self.alpha[j]] * len(own), n)
        return total

    def table(self, counts: dict[Any, float]) -> np.ndarray:
        """(C, L_0, …, L_F-1) joint probabilities of the class and all features."""
        found = np.empty((len(self.classes), *map(len, self.levels)))
        for at in np.ndindex(*found.shape):
            c, row = self.classes[at[0]], [v[i] for v, i in zip(self.levels, at[1:], strict=True)]
            found[at] = self.prob_class(counts, c)
            for j in range(len(self.levels)):
                found[at] *= self.prob_cell(counts, c, j, tuple(row[k] for k in self.node(j)))
        return found

    def complete_rows(self) -> np.ndarray:
        """Every combination of levels."""
        return np.array(list(itertools.product(*self.levels)), dtype=object)


def log_beta_ratio(alpha: list[float], n: list[float]) -> float:
    """log B(α + n) - log B(α)."""
    total = math.lgamma(sum(alpha)) - math.lgamma(sum(alpha) + sum(n))
    return total + sum(math.lgamma(a + k) - math.lgamma(a) for a, k in zip(alpha, n, strict=True))


def log_proba(joint: np.ndarray) -> np.ndarray:
    shifted = joint - joint.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Problem:
    """Labelled rows, and a network for them."""

    brute: Brute
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    options: dict[str, Any]
    """What the classifier needs to know of the network, its parents aside."""

    def counts(self, keep: Any = slice(None)) -> dict[Any, float]:
        return self.brute.count(self.X[keep], self.y[keep], self.weight[keep])


@st.composite
def problems(draw: Any, missing: bool = False, parents: Parents | None = None, n_features: int = 4) -> Problem:
    """Four features of two or three declared levels, up to three parents each, three classes.

    One row, or five to eight, which are as many to the kernels.
    """
    sizes = draw(st.permutations([2, 3, 3, 2][:n_features]))
    if parents is None:
        order = draw(st.permutations(range(n_features)))
        parents = {
            j: tuple(draw(st.permutations(sorted(draw(st.sets(st.sampled_from(order[:i]), max_size=3))))))
            for i, j in enumerate(order)
            if i
        }
    levels = [LEVELS[:size] for size in sizes]
    n = draw(st.sampled_from([1, *range(5, 9)]))
    pools = [(*own, None) if missing else own for own in levels]
    X = np.stack([draw(arrays(object, n, elements=st.sampled_from(pool))) for pool in pools], axis=1)
    y = np.array(CLASSES)[draw(arrays(int, n, elements=st.integers(0, 2)))]
    weight = draw(arrays(int, n, elements=st.integers(1, 3))).astype(float)
    alpha: Any = draw(st.sampled_from([0.3, 1.0, [2.0, 0.5, 1.0, 0.1][:n_features]]))
    class_alpha: Any = draw(st.sampled_from([1.0, [0.5, 2.0, 1.0]]))
    each = [alpha] * n_features if isinstance(alpha, float) else alpha
    of_class = [class_alpha] * 3 if isinstance(class_alpha, float) else class_alpha
    brute = Brute(levels, {j: p for j, p in parents.items() if p}, each, of_class, CLASSES)
    options = {"alpha": alpha, "class_alpha": class_alpha, "categories": [list(v) for v in levels]}
    return Problem(brute, X, y, weight, options)


def table(
    n: int, seed: int, sizes: tuple[int, ...] = (2, 3, 2, 3), n_classes: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of strings that depend on the class and on the column before, with every level in every class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    columns: list[np.ndarray] = []
    for j, size in enumerate(sizes):
        before = columns[-1] if columns else np.zeros(n, int)
        own = np.where(rng.random(n) < 0.55, (before + y + j) % size, rng.integers(0, size, n))
        columns.append(own)
    X = np.array(LEVELS, dtype=object)[np.stack(columns, axis=1)]
    order = rng.permutation(n)
    return X[order], np.array(CLASSES)[y[order]]


def brute_of(nb: Any, alpha: float = 1.0) -> Brute:
    """The network of a fitted classifier of categorical columns, with one concentration of levels, 1 of classes.

    Where arcs were chosen by evidence that of a column is divided by its parent's number of values.
    """
    names = list(nb.parents_)
    listed = {j: (p,) if isinstance(p, str) else p or () for j, p in enumerate(nb.parents_.values())}
    parents = {j: tuple(map(names.index, p)) for j, p in listed.items()}
    levels = [tuple(own.tolist()) for own in nb.categories_]
    classes = tuple(nb.classes_.tolist())
    each = [alpha] * len(levels)
    if nb.get_params().get("score") == "evidence":
        each = [alpha / math.prod(len(levels[p]) for p in parents[j]) for j in range(len(levels))]
    return Brute(levels, parents, each, [1.0] * len(classes), classes)


X, Y = table(40, 0)
HOLES = np.where(np.random.default_rng(2).random(X.shape) < 0.15, None, X)
