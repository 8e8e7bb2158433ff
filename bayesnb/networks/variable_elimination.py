"""Exact conditional probabilities in a network, by variable elimination."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

_MOST = 2**24
"""Greatest number of cells of a table."""
_IMPOSSIBLE = "query: the values in `given` have probability 0 under the model. Change them, or fit with alpha > 0."

Factor = tuple[tuple[Hashable, ...], np.ndarray]
"""Names of variables, and a table of probabilities with an axis for each variable."""


def conditional(factors: Sequence[Factor], asked: Sequence[Hashable], given: dict[Hashable, int]) -> np.ndarray:
    """Conditional distribution P(asked | given) in a network: an array with an axis of levels for each asked variable.

    Parameters
    ----------
    factors : sequence of Factor
        p(variable | parents) of each variable, the variable last.
    asked : sequence
        Names of the variables of the axes of the result.
    given : dict
        Level of each variable that is conditioned on.

    Raises
    ------
    ValueError
        If an intermediate table is too large, or the given levels have probability 0.
    """
    import opt_einsum

    needed = _ancestors(factors, {*asked, *given})
    relevant = _multiply_same_variables([_condition(factor, given) for factor in factors if factor[0][-1] in needed])
    number = {name: i for i, name in enumerate(dict.fromkeys(n for names, _ in relevant for n in names))}
    operands = [operand for names, table in relevant for operand in (table, [number[n] for n in names])]
    order, path = opt_einsum.contract_path(*operands, [number[n] for n in asked], optimize="auto")
    if path.largest_intermediate > _MOST:
        raise ValueError(
            f"query: summing over {len(number) - len(asked)} variables takes a table of "
            f"{path.largest_intermediate:.3g} numbers; the limit is {_MOST:,}. Query fewer, or put more into `given`."
        )
    names, joint = _eliminate(relevant, order, asked)
    joint = joint.transpose([names.index(n) for n in asked])
    return np.asarray(joint / joint.sum())


def _eliminate(factors: list[Factor], order: Sequence[tuple[int, ...]], asked: Sequence[Hashable]) -> Factor:
    """Multiply all factors in the given contraction order, summing over variables not in `asked`; up to a constant.

    Raises
    ------
    ValueError
        If the product is zero.
    """
    remaining = list(factors)
    for step in order:
        multiplied = [remaining.pop(i) for i in sorted(step, reverse=True)]
        needed = {n for names, _ in remaining for n in names} | set(asked)
        variables = list(dict.fromkeys(n for names, _ in multiplied for n in names))
        kept = tuple(n for n in variables if n in needed)
        operands = [operand for names, table in multiplied for operand in (table, [variables.index(n) for n in names])]
        table = np.einsum(*operands, [variables.index(n) for n in kept])
        if not table.max(initial=0.0) > 0:
            raise ValueError(_IMPOSSIBLE)
        remaining.append((kept, table / table.max()))
    return remaining[0]


def _ancestors(factors: Sequence[Factor], names: set[Hashable]) -> set[Hashable]:
    """Names of the given variables and of all their ancestors in the network."""
    parents = {variables[-1]: variables[:-1] for variables, _ in factors}
    ancestors: set[Hashable] = set()
    remaining = list(names)
    while remaining:
        name = remaining.pop()
        if name not in ancestors:
            ancestors.add(name)
            remaining += parents[name]
    return ancestors


def _multiply_same_variables(factors: Sequence[Factor]) -> list[Factor]:
    """Multiply factors of the same variables; each product is scaled to maximum 1, to avoid underflow."""
    logs: dict[tuple[Hashable, ...], np.ndarray] = {}
    with np.errstate(divide="ignore"):
        for names, table in factors:
            logs[names] = logs.get(names, np.zeros(())) + np.log(table)
    tops = {names: table.max(initial=-np.inf) for names, table in logs.items()}
    if np.isneginf(list(tops.values())).any():
        raise ValueError(_IMPOSSIBLE)
    return [(names, np.exp(table - tops[names])) for names, table in logs.items()]


def _condition(factor: Factor, given: dict[Hashable, int]) -> Factor:
    """Condition a factor on the levels in `given`; return a factor of its other variables."""
    names, table = factor
    free = tuple(n for n in names if n not in given)
    return free, table[tuple(given.get(n, slice(None)) for n in names)]
