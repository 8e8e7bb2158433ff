"""Probabilities of some variables of a network given others, exactly, by variable elimination."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

_MOST = 2**24

# Names of variables, and a table of probabilities with an axis for each.
Factor = tuple[tuple[Hashable, ...], np.ndarray]


def conditional(factors: Sequence[Factor], asked: Sequence[Hashable], given: dict[Hashable, int]) -> np.ndarray:
    """P(asked | given), an axis for each that is asked; the factors are p(variable | parents), the variable last.

    Raises
    ------
    ValueError
        If some table on the way is too large, saying how large; if what is given has probability 0.
    """
    import opt_einsum

    needed = _ancestors(factors, {*asked, *given})
    relevant = _combined([_sliced(factor, given) for factor in factors if factor[0][-1] in needed])
    number = {name: i for i, name in enumerate(dict.fromkeys(n for names, _ in relevant for n in names))}
    operands = [part for names, table in relevant for part in (table, [number[n] for n in names])]
    order, path = opt_einsum.contract_path(*operands, [number[n] for n in asked], optimize="auto")
    if path.largest_intermediate > _MOST:
        levels = {n: size for names, table in relevant for n, size in zip(names, table.shape, strict=True)}
        summed = [n for n in levels if n not in asked]
        raise ValueError(
            f"query: summing over {len(summed)} variables leads to a table of {path.largest_intermediate:.3g} numbers, "
            f"and the limit is {_MOST:,}; all of them with the {len(asked)} that are asked have "
            f"{math.prod(levels.values()):.3g} combinations. Ask for fewer variables, or give more of them."
        )
    names, joint = _eliminated(relevant, order, asked)
    joint = joint.transpose([names.index(n) for n in asked])
    return joint / joint.sum()


def _eliminated(factors: list[Factor], order: Sequence[tuple[int, ...]], asked: Sequence[Hashable]) -> Factor:
    """The product of all factors, summed over what is not asked, step by step; each up to a constant.

    Raises
    ------
    ValueError
        If it is zero.
    """
    todo = list(factors)
    for step in order:
        taken = [todo.pop(i) for i in sorted(step, reverse=True)]
        needed = {n for names, _ in todo for n in names} | set(asked)
        every = list(dict.fromkeys(n for names, _ in taken for n in names))
        kept = tuple(n for n in every if n in needed)
        operands = [part for names, table in taken for part in (table, [every.index(n) for n in names])]
        table = np.einsum(*operands, [every.index(n) for n in kept])
        if not table.max(initial=0.0) > 0:
            raise ValueError("query: what is given has probability 0.")
        todo.append((kept, table / table.max()))
    return todo[0]


def _ancestors(factors: Sequence[Factor], names: set[Hashable]) -> set[Hashable]:
    """The variables and all that they depend on: what else there is sums to one."""
    parents = {variables[-1]: variables[:-1] for variables, _ in factors}
    found: set[Hashable] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += parents[name]
    return found


def _combined(factors: Sequence[Factor]) -> list[Factor]:
    """Products of the factors of the same variables, up to a constant: of many given values they would underflow."""
    logs: dict[tuple[Hashable, ...], np.ndarray] = {}
    with np.errstate(divide="ignore"):
        for names, table in factors:
            logs[names] = logs.get(names, np.zeros(())) + np.log(table)
    tops = {names: table.max(initial=-np.inf) for names, table in logs.items()}
    if np.isneginf(list(tops.values())).any():
        raise ValueError("query: what is given has probability 0.")
    return [(names, np.exp(table - tops[names])) for names, table in logs.items()]


def _sliced(factor: Factor, given: dict[Hashable, int]) -> Factor:
    names, table = factor
    free = tuple(n for n in names if n not in given)
    return free, table[tuple(given.get(n, slice(None)) for n in names)]
