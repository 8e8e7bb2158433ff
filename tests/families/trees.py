"""All spanning trees, one by one."""

from __future__ import annotations

import itertools

import numpy as np

Tree = frozenset[tuple[int, int]]


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
    """Of a vertex that is its own parent, or whose parent is -1, no arc."""
    pairs = ((int(p), v) for v, p in enumerate(parent) if p not in (-1, v))
    return frozenset((min(pair), max(pair)) for pair in pairs)


def is_forest(arcs: Tree, n: int) -> bool:
    """Whether no two vertices are joined twice."""
    part = np.arange(n)
    for u, v in arcs:
        if part[u] == part[v]:
            return False
        part[part == part[v]] = part[u]
    return True
