"""Sufficient statistics of labelled rows, and their algebra: merge, remove, check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import compress
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import numpy as np

from bayesnb import kernels
from bayesnb._util.arguments import GREATEST, shown
from bayesnb._util.precision import float64
from bayesnb._util.terminal import rows_progress
from bayesnb.encoding import Columns, Encoding, Levels, Rows, levels_by_position, number_columns, row_pieces
from bayesnb.families import LevelCounts
from bayesnb.families.arrays import add_at
from bayesnb.fitted.number_cells import NumberCells
from bayesnb.model import Statistics
from bayesnb.networks import count_level_pairs, lay_out_pairs

_CELLS_A_ROW = 2**10  # Limits pieces of `single_rows` to about a thousand rows, each of which is a class.


class Counted(NamedTuple):
    """Statistics of rows with the encoding that names their classes and columns.

    `cells` are counts of a sample of the rows for tests of drift; None if there are no numbers, or rows were not seen.
    """

    encoding: Encoding
    statistics: Statistics
    cells: NumberCells | None = None


@float64
def expected_counts(encoding: Encoding, rows: tuple[Rows, ...], weight: np.ndarray) -> Statistics:
    """Expected statistics of encoded rows that belong to each class with `weight` (N, C), such as responsibilities."""
    total = _count(len(encoding.classes), rows, kernels.add_responsibilities, weight)
    require_finite(rows, total)
    return finish(encoding, total)


@float64
def count_rows(encoding: Encoding, rows: tuple[Rows, ...], label: np.ndarray, weight: np.ndarray) -> Statistics:
    """Sufficient statistics of encoded rows with `label` (N,), indices of classes, and `weight` (N,).

    If a network has each column given each other column, all pairs of levels are counted at once. Raises ValueError if
    the squares of a feature's values leave the range of float64.
    """
    n_classes, on_host = len(encoding.classes), list[tuple[Any, float] | None]()
    block_rows: Any
    for columns, block_rows in zip(encoding.blocks, rows, strict=True):
        if len(columns.sizes()) > len(columns.base.index):  # more nodes than features
            pairs = count_level_pairs(columns.base, block_rows.base, label, weight, n_classes)
            on_host.append((LevelCounts(lay_out_pairs(columns.network, pairs)), 0.0))
        else:
            on_host.append(block_rows.count_on_host(label, weight, n_classes))
    by_kernels = tuple(r for r, counted in zip(rows, on_host, strict=True) if counted is None)
    if by_kernels:
        total = _count(n_classes, by_kernels, kernels.add_rows, label, weight)
    else:
        total = Statistics(add_at(np.zeros(n_classes), label, weight), (), 0.0)
    others = iter(total.blocks)
    blocks = tuple(next(others) if counted is None else counted[0] for counted in on_host)
    log_base = float(total.log_base) + sum(counted[1] for counted in on_host if counted is not None)
    total = replace(total, blocks=blocks, log_base=log_base)
    require_finite(rows, total)
    finished = finish(encoding, total)
    _require_squares(encoding, rows, finished)
    return finished


def _count(n_classes: int, rows: tuple[Rows, ...], kernel: Callable[..., Any], *arrays: np.ndarray) -> Statistics:
    """Sums of the kernels over all rows, piece by piece, with a progress bar; `arrays` have an entry per row."""
    total, last = empty(rows, n_classes), None
    with rows_progress("counting", len(arrays[0])) as step:
        for piece, x, block_arrays, log_base in counting_pieces(rows, *arrays):
            total, current = kernel(total, x, *block_arrays, log_base)
            # The next piece is prepared while the kernel reads this one, and no further piece waits in memory.
            jax.block_until_ready(last)  # type: ignore[no-untyped-call]
            last = current
            step(piece.stop - piece.start)
    return total


def empty(rows: tuple[Rows, ...], n_classes: int) -> Statistics:
    """Zero statistics, in the kernels' shapes, to which pieces of `rows` can be added."""
    return Statistics(np.zeros(n_classes), tuple(r.empty(n_classes) for r in rows), np.zeros(()))


def counting_pieces(
    rows: tuple[Rows, ...], *arrays: np.ndarray
) -> Iterator[tuple[slice, tuple[Any, ...], list[np.ndarray], np.ndarray]]:
    """Yield (slice, encoded blocks, pieces of `arrays`, log base measures (n,) by the host) for pieces of rows."""
    for piece, x, block_arrays in row_pieces(tuple(r.counting_rows() for r in rows), len(arrays[0]), *arrays):
        log_base = np.zeros(len(block_arrays[0]))
        for r in rows:
            log_base[: piece.stop - piece.start] += r.log_base(piece.start, piece.stop)
        yield piece, x, block_arrays, log_base


def require_finite(rows: tuple[Rows, ...], total: Statistics) -> None:
    """Raise ValueError naming an infinite cell, if the statistics are not finite and the rows have such a cell."""
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(total)):
        for r in rows:
            r.require_finite()


def finish(encoding: Encoding, total: Statistics) -> Statistics:
    """Convert the kernels' statistics to their final shapes as NumPy arrays, without padding.

    Raises
    ------
    ValueError
        If the squares of a feature's values leave the range of float64.
    """
    total = jax.tree.map(lambda leaf: leaf if isinstance(leaf, np.ndarray) else np.array(leaf), total)
    finished = (c.finish(s, total.class_count) for c, s in zip(encoding.blocks, total.blocks, strict=True))
    total = replace(total, blocks=tuple(finished))
    _check_range(encoding, total)
    return total


@float64
def single_rows(encoding: Encoding, rows: tuple[Rows, ...], n: int) -> Statistics:
    """Statistics of n rows in which row i is counted as class i, without log base measures: (n, …)."""
    rows, pieces = tuple(r.counting_rows() for r in rows), []
    for piece, x, (weight,) in row_pieces(rows, n, np.ones(n), cells=_CELLS_A_ROW):
        size = len(weight)
        counted, _ = kernels.add_rows(empty(rows, size), x, np.arange(size, dtype=np.int32), weight, np.zeros(size))
        counted = jax.tree.map(np.asarray, counted)
        finished = tuple(c.finish(s, counted.class_count) for c, s in zip(encoding.blocks, counted.blocks, strict=True))
        pieces.append(jax.tree.map(itemgetter(slice(piece.stop - piece.start)), (counted.class_count, finished)))
    class_count, finished = jax.tree.map(lambda *leaves: np.concatenate(leaves), *pieces)
    statistics = Statistics(class_count, finished, np.zeros(()))
    require_finite(rows, statistics)
    return statistics


def prune(counted: Counted) -> Counted:
    """Copy without undeclared levels that no row of positive weight has."""
    encoding, statistics, cells = counted
    pairs = zip(encoding.blocks, statistics.blocks, strict=True)
    columns, blocks_ = zip(*(columns.prune(block) for columns, block in pairs), strict=True)
    return Counted(replace(encoding, blocks=columns), replace(statistics, blocks=blocks_), cells)


def merge(a: Counted, b: Counted) -> Counted:
    """Statistics of the rows of a and b together, under the union of their encodings.

    Cells of numbers are kept if both have the same edges, or if no row was counted in a.
    """
    joint = a.encoding.union(b.encoding)
    total = _to_axes_of(a, joint).merge(_to_axes_of(b, joint))
    _check_range(joint, total)
    has_none = a.cells is None and not a.statistics.class_count.any()
    return Counted(joint, total, b.cells if has_none else a.cells and a.cells.merge(b.cells))


def keep_levels(counted: Counted, alpha: object) -> Counted:
    """Statistics with the levels that a labelled `alpha` names, also where no row was counted; see `Encoding`."""
    joint = counted.encoding.keep_levels(alpha)
    return counted if joint is counted.encoding else Counted(joint, _to_axes_of(counted, joint), counted.cells)


def declare(counted: Counted, classes: Levels) -> Counted:
    """Statistics with further classes, of which no row was counted, and in which all levels stay without rows."""
    joint = replace(counted.encoding.fix_levels(True), classes=counted.encoding.classes.union(classes))
    return Counted(joint, _to_axes_of(counted, joint), counted.cells)


def scale(counted: Counted, factor: float) -> Counted:
    """Statistics of the same rows with all weights multiplied by `factor`."""
    encoding, statistics, cells = counted
    return Counted(encoding, statistics.scale(factor), cells and cells.scale(factor))


def remove(a: Counted, b: Counted) -> Counted:
    """Statistics of the rows of `a` without those of `b`: the inverse of `merge`.

    Levels of `b` of which no row is left go, unless they stay without rows. Other levels and all classes remain.

    Raises
    ------
    ValueError
        If a count would become negative; the message names it.
    """
    joint = a.encoding.union(b.encoding.fix_levels(False))
    before = _to_axes_of(a, joint)
    after = before.remove(_to_axes_of(b, joint))
    class_count = _settle(before.class_count, after.class_count, before.class_count * 1e-9, "class_count", joint, None)
    blocks_ = []
    for columns, was, now in zip(joint.blocks, before.blocks, after.blocks, strict=True):
        was = was.aligned(now)[0] if hasattr(was, "aligned") else was
        rounding = was.rounding()
        settled_fields = {
            name: _settle(getattr(was, name), getattr(now, name), getattr(rounding, name), name, joint, columns)
            for name in (field.name for field in fields(was))
            if getattr(rounding, name) is not None
        }
        now = replace(now, **settled_fields)
        # Without a cell the mean is 0; the difference has only rounding errors.
        blocks_.append(
            jax.tree.map(lambda v, n=now.count: np.where(n.reshape(*n.shape, *v.shape[2:] and (1,)) == 0, 0, v), now)
        )
    cells = a.cells and a.cells.remove(b.cells)
    left = Counted(joint, replace(after, class_count=class_count, blocks=tuple(blocks_)), cells)
    return _forget_levels(left, b.encoding)


def keep_uncounted(counted: Counted) -> Counted:
    """Copy in which levels that no table counts stay without rows.

    A table given parents counts no row in which a parent is missing. So it cannot show how many rows have a level that
    occurs in no other rows, and a batch with this level, once counted and removed again, must leave the level.
    """
    weights, (encoding, statistics, cells) = _level_weights(counted), counted
    levels = levels_by_position(encoding.blocks)
    named = {j: list(compress(levels[j].values, weight == 0)) for j, weight in weights.items() if j in levels}
    blocks_ = tuple(columns.keep_levels(named) for columns in encoding.blocks)
    return Counted(replace(encoding, blocks=blocks_), statistics, cells)


def _level_weights(counted: Counted) -> dict[int, np.ndarray]:
    """Return {position in the table: weight (L,) of the cells with each level}, of columns whose levels may leave."""
    weights: dict[int, np.ndarray] = {}
    for columns, block in zip(counted.encoding.blocks, counted.statistics.blocks, strict=True):
        for j, weight in columns.level_weights(block).items():  # Blocks with the same column have the same levels.
            weights[j] = weights.get(j, 0.0) + weight
    return weights


def _forget_levels(left: Counted, removed: Encoding) -> Counted:
    """Copy without the levels of removed rows that no row has any more, unless these levels stay without rows."""
    (encoding, statistics, cells), weights = left, _level_weights(left)
    columns, blocks_ = [], []
    for joint, rows, block in zip(encoding.blocks, removed.blocks, statistics.blocks, strict=True):
        columns.append(joint.forget(rows, weights))
        positions = columns[-1].positions_in(joint)
        blocks_.append(jax.tree.map(lambda field, i=positions: field[:, i], block))
    encoding, statistics = replace(encoding, blocks=tuple(columns)), replace(statistics, blocks=tuple(blocks_))
    return Counted(encoding, statistics, cells)


def _settle(
    before: np.ndarray, after: np.ndarray, rounding: np.ndarray, name: str, encoding: Encoding, columns: Columns | None
) -> np.ndarray:
    """Copy of `after` with rounding errors set to zero; raise ValueError if a value is below -`rounding`.

    Rounding errors are other values below 0, and values of at most 1e-13 of `before` that are not whole.
    The error names the field `name`, and the class and the column where the value is.
    """
    if (negative := after < -rounding).any():
        where, place = locate(negative, encoding, columns)
        raise ValueError(
            f"Removing these rows would leave a negative {'sum of squares' if name == 'm2' else name} in {place}: the "
            f"model has {before[where]:g}, and these rows would take away {before[where] - after[where]:g}. Forget "
            "only rows that were counted, with the same labels and weights. Nothing was changed."
        )
    residue = (after < 0) | ((np.abs(after) <= 1e-13 * np.abs(before)) & (after != np.round(after)))
    return np.where(residue, 0.0, after)


def _to_axes_of(counted: Counted, joint: Encoding) -> Statistics:
    """Statistics on the axes of a larger encoding, with zeros for classes and levels that are new."""
    encoding, statistics, _ = counted
    if encoding is joint:
        return statistics
    for columns in joint.blocks:
        columns.require_memory(len(joint.classes))
    classes = joint.classes.index(encoding.classes.values)
    n_classes = len(joint.classes)

    def spread(values: np.ndarray, columns: Columns, target: Columns) -> np.ndarray:
        """Copy of one field (C, L) onto the axes of the larger encoding, with zeros elsewhere."""
        positions, width = columns.positions_in(target), target.sizes().sum()
        if values.shape[:2] == (n_classes, width) and all(
            np.array_equal(i, np.arange(len(i))) for i in (classes, positions)
        ):
            return values
        spread_values = np.zeros((n_classes, width, *values.shape[2:]))
        spread_values[np.ix_(classes, positions)] = values
        return spread_values

    blocks_ = tuple(
        jax.tree.map(lambda v, c=c, t=t: spread(v, c, t), s)
        for c, t, s in zip(encoding.blocks, joint.blocks, statistics.blocks, strict=True)
    )
    class_count = np.zeros(n_classes)
    class_count[classes] = statistics.class_count
    return Statistics(class_count, blocks_, statistics.log_base)


def check(counted: Counted) -> None:
    """Raise ValueError unless rows of non-negative weight can produce these statistics under this encoding."""
    encoding, statistics, cells = counted
    encoding.check()
    n_classes, weight = len(encoding.classes), statistics.class_count
    require_numbers("class_count", weight, (n_classes,))
    require_numbers("log_base", statistics.log_base, ())
    if (negative := weight < 0).any():
        where, place = locate(negative, encoding, None)
        raise ValueError(f"class_count of {place} is {weight[where]}; it must be at least 0.")
    pairs = list(zip(encoding.blocks, statistics.blocks, strict=True))
    for columns, block in pairs:
        if type(block) is not columns.statistics:
            kinds = f"{type(block).__name__}; they must be {columns.statistics.__name__}"
            raise ValueError(f"The statistics of {columns.kind} columns are {kinds}. Fit the classifier again.")
        for field in fields(block):
            values = getattr(block, field.name)
            require_numbers(field.name, values, (n_classes, sum(columns.sizes().tolist()), *np.shape(values)[2:]))
    if cells is not None:
        cells.check(len(number_columns(encoding.blocks)))
    _check_range(encoding, statistics)
    check_scales(counted)
    for columns, block in pairs:
        if not (possible := block.possible()).all():
            raise ValueError(
                f"The statistics ({type(block).__name__}) of {locate(~possible, encoding, columns)[1]} cannot be "
                "those of any rows: a count or a sum is negative, or a sum is positive where the count is 0. Fit again."
            )
        sizes = columns.sizes()
        node = np.repeat(np.arange(len(sizes)), sizes)
        observed = np.stack([np.bincount(node, row, len(sizes)) for row in block.count])
        # Sums of fractional weights are rounded, in particular by `forget`.
        most = weight * (1 + 1e-6) + 1e-6
        excess = observed - np.where((weight > 0) & columns.one_simplex, np.inf, most)[:, None]
        if (excess > 0).any():
            c, j = (int(i) for i in np.unravel_index(np.argmax(excess), excess.shape))
            name = columns.names[int(columns.axis()[0][np.argmax(node == j)])]
            raise ValueError(
                f"class_count contradicts the counts of {columns.kind} columns: column {shown(name)} has "
                f"{observed[c, j]:g} observed cells in class {shown(encoding.classes.values[c])}, which has "
                f"{weight[c]:g} rows."
            )


def require_numbers(name: str, array: object, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless `array` is a float64 array of this shape, with finite values and a finite sum."""
    kind = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray | np.generic) else type(array).__name__
    if kind != f"{np.dtype(np.float64)} {shape}":
        raise ValueError(f"{name} should be float64 of shape {shape}; it is {kind}.")
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(np.sum(np.asarray(array))):
            raise ValueError(f"{name} must have finite values and a finite sum.")


def _check_range(encoding: Encoding, statistics: Statistics) -> None:
    """Raise ValueError if statistics are not finite, or a count exceeds `GREATEST`."""
    if (heavy := statistics.class_count > GREATEST).any():
        where, place = locate(heavy, encoding, None)
        total = statistics.class_count[where]
        raise ValueError(f"sample_weight: the weights of {place} sum to {total}; at most {GREATEST:g} is possible.")
    for columns, block in zip(encoding.blocks, statistics.blocks, strict=True):
        finite = [np.isfinite(v).all(axis=tuple(range(2, v.ndim))) for v in jax.tree.leaves(block)]
        too_large = ~np.logical_and.reduce([block.count <= GREATEST, *finite])
        if too_large.any():
            problem = f"too large: squares or sums overflow float64, or counts exceed {GREATEST:g}"
            raise _unusable_column(locate(too_large, encoding, columns)[1], f"the values are {problem}")


def check_scales(counted: Counted) -> None:
    """Raise ValueError if a column of numbers is so large or so small that formulas would leave float64.

    Formulas take squares of variances, which are fourth powers of the numbers. So the average size of the numbers in
    each class is at most `GREATEST`, and the largest average of a column is 0 or at least 1 / `GREATEST`. Other classes
    may have smaller numbers, but their squares must not underflow.
    """
    for columns, block in zip(counted.encoding.blocks, counted.statistics.blocks, strict=True):
        if not hasattr(block, "scales"):
            continue
        scales = block.scales()
        in_column = np.full_like(scales, scales.max(axis=0, initial=0.0))
        for wrong, problem in (
            (scales > GREATEST, f"large; it must be at most {GREATEST:g}"),
            ((scales > 0) & (in_column < 1 / GREATEST), f"small; it must be 0 or at least {1 / GREATEST:g}"),
            ((scales > 0) & (scales < GREATEST**-2) & (block.count > 1), "small; squares of the values underflow"),
        ):
            if wrong.any():
                where, place = locate(wrong, counted.encoding, columns)
                size = f"the average size of the values is {scales[where]:.3g}"
                raise _unusable_column(place, f"{size}, which is too {problem}")


def _require_squares(encoding: Encoding, rows: tuple[Rows, ...], statistics: Statistics) -> None:
    """Raise ValueError if cells other than 0 have left neither a mean nor a sum of squares in any class."""
    block_rows: Any
    for columns, block_rows, block in zip(encoding.blocks, rows, statistics.blocks, strict=True):
        zero = ~np.any(block.scales(), axis=0) if hasattr(block, "scales") else np.zeros(0, bool)
        for f in map(int, np.flatnonzero(zero)):
            cells = block_rows.feature(f)
            if (lost := np.nan_to_num(cells) != 0).any():
                problem = f"the values, such as {cells[lost][0]:.3g}, are too small; their squares underflow"
                raise _unusable_column(f"column {shown(columns.names[f])}", problem)


def _unusable_column(place: str, problem: str) -> ValueError:
    """Return the ValueError for numbers of X, at a place that `_locate` names, whose size is a problem."""
    return ValueError(f"Input X, {place}: {problem}. Rescale the feature.")


def locate(flag: np.ndarray, encoding: Encoding, columns: Columns | None) -> tuple[tuple[int, ...], str]:
    """Index of the first True in `flag`, (C,) or (C, L) at positions of `columns`, and the name of that place."""
    where = tuple(int(i[0]) for i in np.nonzero(flag))
    place = f"class {shown(encoding.classes.values[where[0]])}"
    if columns is not None:
        feature, levels = columns.axis()
        level = "" if levels is None else f", level {shown(levels[where[1]])}"
        place = f"column {shown(columns.names[int(feature[where[1]])])}{level}, {place}"
    return where, place
