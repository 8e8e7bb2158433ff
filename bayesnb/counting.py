"""Labelled rows to sufficient statistics, and the algebra of what was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb._util.arguments import GREATEST, shown
from bayesnb._util.precision import float64
from bayesnb._util.progress import rows_progress
from bayesnb.encoding import Columns, Encoding, Levels, Rows, Table, blocks
from bayesnb.families import LevelCounts
from bayesnb.model import Statistics, kernel_log_base
from bayesnb.networks.learning import count_level_pairs, lay_out_pairs

_CELLS_A_ROW = 2**10  # so that a block of rows is as many classes


class Counted(NamedTuple):
    """Statistics and the encoding that names their axes; what merges."""

    encoding: Encoding
    statistics: Statistics


def _observe(
    statistics: Statistics, x: tuple[Any, ...], label: np.ndarray, weight: np.ndarray, log_base: np.ndarray
) -> tuple[Statistics, Any]:
    """Add a block of rows, and return signs that it was read; each block of columns by itself."""
    parts = [_observe_alone(s, rows, label, weight) for s, rows in zip(statistics.blocks, x, strict=True)]
    blocks, bases, signs = zip(*parts, strict=True) if parts else ((), (), ())
    class_count, total, sign = _observe_labels(
        statistics.class_count, statistics.log_base, label, weight, log_base, bases
    )
    return Statistics(class_count, blocks, total), (*signs, sign)


@jax.jit(donate_argnums=0)
def _observe_alone(block: Any, rows: Any, label: jax.Array, weight: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
    log_base = jnp.sum(weight * kernel_log_base((block,), (rows,)))
    return block.observe(rows, label, weight), log_base, jnp.sum(weight)


@jax.jit(donate_argnums=(0, 1))
def _observe_labels(
    class_count: jax.Array, total: jax.Array, label: jax.Array, weight: jax.Array, log_base: jax.Array, bases: Any
) -> tuple[jax.Array, jax.Array, jax.Array]:
    total = total + jnp.sum(weight * log_base) + sum(bases)
    return class_count.at[label].add(weight), total, jnp.sum(weight)


@jax.jit(donate_argnums=0)
def _observe_responsibilities(
    statistics: Statistics, x: tuple[Any, ...], weight: jax.Array, log_base: jax.Array
) -> tuple[Statistics, jax.Array]:
    """The same, of rows that belong to each class with a `weight` (N, C)."""
    log_base = log_base + kernel_log_base(statistics.blocks, x)
    return statistics.observe_responsibilities(x, weight, log_base), jnp.sum(weight)


def count(encoding: Encoding, table: Table, label: np.ndarray, weight: np.ndarray) -> Statistics:
    """Statistics of labelled rows under an encoding that knows their levels.

    Parameters
    ----------
    label : (N,) int array
        Index of the class of each row.
    weight : (N,) array
        Replication count of each row.
    """
    return count_rows(encoding, encoding.rows(table), label, weight)


@float64
def expected_counts(encoding: Encoding, rows: tuple[Rows, ...], weight: np.ndarray) -> Statistics:
    """As `count_rows`, for rows that belong to each class with a weight; `weight` is (N, C)."""
    return _count(encoding, rows, _observe_responsibilities, weight)


@float64
def count_rows(encoding: Encoding, rows: tuple[Rows, ...], label: np.ndarray, weight: np.ndarray) -> Statistics:
    """Count labelled rows that are encoded already; arguments as for `count`.

    Where each column of a network stands given each other one, all pairs of levels are counted at once.

    Raises
    ------
    ValueError
        If the squares of a feature's values leave the range of float64.
    """
    network = encoding.blocks[0].network
    if network is None or len(network.nodes) <= len(network.base.index):
        return _count(encoding, rows, _observe, label, weight, cells=len(encoding.classes))
    cells: Any = rows[0]
    pairs = count_level_pairs(network.base, cells.base, label, weight, len(encoding.classes))
    others = replace(encoding, blocks=encoding.blocks[1:])
    rest = _count(others, rows[1:], _observe, label, weight, cells=len(encoding.classes))
    return replace(rest, blocks=(LevelCounts(lay_out_pairs(network, pairs)), *rest.blocks))


def _count(
    encoding: Encoding, rows: tuple[Rows, ...], kernel: Callable[..., Any], *arrays: np.ndarray, cells: float = 0.0
) -> Statistics:
    """Fold a kernel over blocks of rows."""
    total, last = empty(rows, len(encoding.classes)), None
    with rows_progress("counting", len(arrays[0])) as step:
        for piece, x, parts, log_base in row_blocks(rows, *arrays, cells=cells):
            total, read = kernel(total, x, *parts, log_base)
            # The next block is made while this one is read, and no more of them wait in memory.
            jax.block_until_ready(last)
            last = read
            step(piece.stop - piece.start)
    require_finite(rows, total)
    return finish(encoding, total)


def empty(rows: tuple[Rows, ...], n_classes: int) -> Statistics:
    """Statistics of no rows, for the kernels to add to."""
    return Statistics(np.zeros(n_classes), tuple(r.empty(n_classes) for r in rows), np.zeros(()))


def row_blocks(
    rows: tuple[Rows, ...], *arrays: np.ndarray, cells: float = 0.0
) -> Iterator[tuple[slice, tuple[Any, ...], list[np.ndarray], np.ndarray]]:
    """Blocks of rows for the kernels, arrays with an entry a row, and log base measures that the host knows best."""
    for piece, x, parts in blocks(tuple(r.counted() for r in rows), len(arrays[0]), *arrays, cells=cells):
        log_base = np.zeros(len(parts[0]))
        for r in rows:
            log_base[: piece.stop - piece.start] += r.log_base(piece.start, piece.stop)
        yield piece, x, parts, log_base


def require_finite(rows: tuple[Rows, ...], total: Statistics) -> None:
    """Raise ValueError naming an infinite cell, if rows have left statistics that are not finite and there is one."""
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(total)):
        for r in rows:
            r.require_finite()


def finish(encoding: Encoding, total: Statistics) -> Statistics:
    """Statistics as the kernels left them, in their final shape, in NumPy arrays.

    Raises
    ------
    ValueError
        If the squares of a feature's values leave the range of float64.
    """
    total = jax.tree.map(np.array, total)
    finished = [c.finish(s, total.class_count) for c, s in zip(encoding.blocks, total.blocks, strict=True)]
    finished_total = replace(total, blocks=tuple(finished))
    _check_range(encoding, finished_total)
    return finished_total


@float64
def single_rows(encoding: Encoding, rows: tuple[Rows, ...], n: int) -> Statistics:
    """Statistics of n rows, each counted as a class of its own; without their base measure."""
    rows, parts = tuple(r.counted() for r in rows), []
    for piece, x, (weight,) in blocks(rows, n, np.ones(n), cells=_CELLS_A_ROW):
        size = len(weight)
        empty = Statistics(np.zeros(size), tuple(r.empty(size) for r in rows), np.zeros(()))
        counted, _ = _observe(empty, x, np.arange(size, dtype=np.int32), weight, np.zeros(size))
        counted = jax.tree.map(np.asarray, counted)
        finished = tuple(c.finish(s, counted.class_count) for c, s in zip(encoding.blocks, counted.blocks, strict=True))
        parts.append(jax.tree.map(itemgetter(slice(piece.stop - piece.start)), (counted.class_count, finished)))
    class_count, finished = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    found = Statistics(class_count, finished, np.zeros(()))
    require_finite(rows, found)
    return found


def prune(counted: Counted) -> Counted:
    """Drop undeclared levels that no row of positive weight has."""
    encoding, statistics = counted
    parts = [columns.prune(block) for columns, block in zip(encoding.blocks, statistics.blocks, strict=True)]
    columns, blocks_ = zip(*parts, strict=True)
    return Counted(replace(encoding, blocks=columns), replace(statistics, blocks=blocks_))


def merge(a: Counted, b: Counted) -> Counted:
    """What was counted in both; associative and commutative."""
    joint = a.encoding.union(b.encoding)
    total = _embed(a, joint).merge(_embed(b, joint))
    _check_range(joint, total)
    return Counted(joint, total)


def declare(counted: Counted, classes: Levels) -> Counted:
    """The same rows, with further classes that have none."""
    joint = replace(counted.encoding, classes=counted.encoding.classes.union(classes))
    return Counted(joint, _embed(counted, joint))


def remove(a: Counted, b: Counted) -> Counted:
    """The inverse of `merge`: what was counted in `a` without the rows of `b`, which knows no more levels.

    Raises
    ------
    ValueError
        If a count would become negative, naming it.
    """
    joint = a.encoding.union(b.encoding)
    before, other = _embed(a, joint), _embed(b, joint)
    after = before.remove(other)
    class_count = _settle(before.class_count, after.class_count, before.class_count * 1e-9, "class_count", joint, None)
    settled = []
    for columns, was, now in zip(joint.blocks, before.blocks, after.blocks, strict=True):
        rounding = was.rounding()
        settled_fields = {
            name: _settle(getattr(was, name), getattr(now, name), getattr(rounding, name), name, joint, columns)
            for name in (field.name for field in fields(was))
            if getattr(rounding, name) is not None
        }
        now = replace(now, **settled_fields)
        # Where no cell is left, a mean is of rounding errors only.
        settled.append(jax.tree.map(lambda field, n=now.count: np.where(n == 0, 0.0, field), now))
    return Counted(joint, replace(after, class_count=class_count, blocks=tuple(settled)))


def _settle(
    before: np.ndarray, after: np.ndarray, rounding: np.ndarray, name: str, encoding: Encoding, columns: Any
) -> np.ndarray:
    """Take what rounding left beside zero for zero; refuse what is truly negative."""
    if (after < -rounding).any():
        where = tuple(int(i[0]) for i in np.nonzero(after < -rounding))
        label = shown(encoding.classes.values[where[0]])
        place = f"class {label}" if columns is None else f"class {label}, {_axis_name(columns, where[1])}"
        raise ValueError(
            f"forget would leave a negative {name} in {place}: {before[where]:g} counted, "
            f"{before[where] - after[where]:g} to remove. Rows can be forgotten only if they were counted, with the "
            "same labels and weights; nothing was changed."
        )
    residue = (after < 0) | ((np.abs(after) <= 1e-13 * np.abs(before)) & (after != np.round(after)))
    return np.where(residue, 0.0, after)


def _embed(counted: Counted, joint: Encoding) -> Statistics:
    """The same statistics on the axes of a larger encoding."""
    mine, statistics = counted.encoding, counted.statistics
    if mine is joint:
        return statistics
    for columns in joint.blocks:
        columns.require_memory(len(joint.classes))
    classes = joint.classes.index(mine.classes.values)
    n_classes = len(joint.classes)

    def spread(values: np.ndarray, columns: Any, target: Any) -> np.ndarray:
        at, width = columns.levels_in(target), target.sizes().sum()
        if values.shape == (n_classes, width) and _is_identity(classes) and _is_identity(at):
            return values
        out = np.zeros((n_classes, width))
        out[np.ix_(classes, at)] = values
        return out

    blocks_ = tuple(
        jax.tree.map(lambda v, c=c, t=t: spread(v, c, t), s)
        for c, t, s in zip(mine.blocks, joint.blocks, statistics.blocks, strict=True)
    )
    class_count = np.zeros(n_classes)
    class_count[classes] = statistics.class_count
    return Statistics(class_count, blocks_, statistics.log_base)


def check(counted: Counted) -> None:
    """Raise ValueError unless rows of nonnegative weight could have left such statistics under such an encoding."""
    encoding, statistics = counted
    encoding.check()
    n_classes, weight = len(encoding.classes), statistics.class_count
    require_numbers("class_count", weight, (n_classes,), GREATEST)
    require_numbers("log_base", statistics.log_base, ())
    if (weight < 0).any():
        raise ValueError(f"class_count is negative: {weight.min()}.")
    pairs: Iterator[tuple[Columns, Any]] = zip(encoding.blocks, statistics.blocks, strict=True)
    for columns, block in pairs:
        kind: Any = columns.family.statistics
        if type(block) is not kind:
            raise ValueError(f"{columns.kind} columns have {type(block).__name__} for statistics.")
        for name in (field.name for field in fields(block)):
            most = GREATEST if name == "count" else np.inf
            require_numbers(name, getattr(block, name), (n_classes, sum(columns.sizes().tolist())), most)
        if not block.possible().all():
            c, j = (int(i[0]) for i in np.nonzero(~block.possible()))
            raise ValueError(f"no rows leave such {type(block).__name__} in class {c}, {_axis_name(columns, j)}.")
        most = (weight * (1 + 1e-6) + 1e-6)[:, None]  # weights that are not whole are rounded, above all by `forget`
        if (columns.cells(block) > most).any() or (block.count[weight == 0] > 1e-6).any():
            raise ValueError(f"class_count contradicts the cells of {columns.kind} columns: there are more of these.")


def require_numbers(name: str, array: Any, shape: tuple[int, ...], most: float = np.inf) -> None:
    """Raise ValueError unless these are finite numbers of float64, at most `most`, whose sum is finite too."""
    found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray | np.generic) else type(array).__name__
    if found != f"{np.dtype(np.float64)} {shape}":
        raise ValueError(f"{name} should be float64 of shape {shape}, and is {found}.")
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(np.sum(array)):
            raise ValueError(f"{name} is not finite, or its sum is not.")
    if np.max(array, initial=0.0) > most:
        raise ValueError(f"{name} is {np.max(array)}; it must be at most {most:g}.")


def _is_identity(index: np.ndarray) -> bool:
    return np.array_equal(index, np.arange(len(index)))


def _check_range(encoding: Encoding, statistics: Statistics) -> None:
    """Raise ValueError if statistics are not finite, a count is more than `GREATEST`, or squares have underflown."""
    if (statistics.class_count > GREATEST).any():
        c = int(np.argmax(statistics.class_count > GREATEST))
        raise ValueError(
            f"sample_weight: rows of class {shown(encoding.classes.values[c])} weigh {statistics.class_count[c]} in "
            f"all. They may weigh {GREATEST:g} at most; rescale the weights."
        )
    for columns, block in zip(encoding.blocks, statistics.blocks, strict=True):
        for name in (field.name for field in fields(block)):
            values = getattr(block, name)
            bad = ~np.isfinite(values) | ((name == "count") & (values > GREATEST))
            if bad.any():
                c, j = (int(i[0]) for i in np.nonzero(bad))
                raise ValueError(
                    f"Input X, {_axis_name(columns, j)}, class {shown(encoding.classes.values[c])}: the values are too "
                    f"large, their squares or sums overflow float64, or their counts exceed {GREATEST:g}; rescale the "
                    "feature."
                )
        if hasattr(block, "m2"):
            lost = (block.m2 == 0) & (block.count > 1) & (np.abs(block.mean) < 1e-150) & (block.mean != 0)
            if lost.any():
                c, j = (int(i[0]) for i in np.nonzero(lost))
                raise ValueError(
                    f"Input X, {_axis_name(columns, j)}, class {shown(encoding.classes.values[c])}: the values are so "
                    "small that their squares underflow float64; rescale the feature."
                )


def _axis_name(columns: Columns, j: int) -> str:
    """Name of position j on the last axis of a block's statistics."""
    feature, levels = columns.axis()
    name = f"column {shown(columns.names[int(feature[j])])}"
    return name if levels is None else f"{name}, level {shown(levels[j])}"


__all__ = [
    "Counted",
    "check",
    "count",
    "count_rows",
    "declare",
    "empty",
    "expected_counts",
    "finish",
    "merge",
    "prune",
    "remove",
    "require_finite",
    "require_numbers",
    "row_blocks",
    "single_rows",
]
