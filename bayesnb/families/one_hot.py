"""Categorical rows: one level for each of several groups, counted and scored for several groups at once, in packs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import jax
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families._namespace import FEW, csr_product, gather, is_host, repeat, scan, segment_sum, xp
from bayesnb.families._pytree import Array, pytree, static
from bayesnb.families.count_functions import add_at_flat, level_offset, weighted
from bayesnb.families.count_rows import CountRows, OneDrawEach, as_rows
from bayesnb.families.multinomial import LevelCounts
from bayesnb.families.statistics import Additive

_UNROLL = 64
_BITS = 12
"""Most bits of the code of a pack: a table of 4,096 positions for each class fits the cache."""
_LARGEST = 2**18
_SMALLEST = 2**8


@pytree
class OneHot(OneDrawEach):
    """Categorical rows: one level per group; Bernoulli features are groups of (absent, present).

    Groups with few levels are packed: p of them become one group with all combinations of their levels, so that one
    scatter or gather serves p groups.

    Parameters
    ----------
    code : (N, G) int array
        Index of the level within its group; -1 where the cell is missing.
    start, size : (G,) int arrays
        Flat index of the first level of each group, and its number of levels.
    width : int
        Bound on `size`, or on `size` + 1 if a cell may be missing.
    """

    sums_table_entries: ClassVar[bool] = True
    """Whether a score is a sum of table entries, which SciPy computes for many classes as a product with the table."""

    code: Array
    start: Array
    size: Array
    width: int = static()

    def repeat(self, n: int, axis: int = 0) -> OneHot:
        """Rows with each one n times, as `numpy.repeat` does; `axis` is 0."""
        return replace(self, code=np.repeat(self.code, n, axis=axis))

    def layout(self, table: Array) -> jax.Array:
        """Return log probabilities (C, L) summed into packs' tables (P, 2^(bits · p), C), or (L + 1, C) unpacked.

        Missing cells point to a zero.
        """
        table = xp.concatenate([xp.asarray(table).T, xp.zeros((1, table.shape[0]))])
        p = packing(self.width, table.shape[1], self.code.shape[1], self.code.size)
        if p == 1:
            return table
        grouped = gather(table, self._levels_of_codes(p, table.shape[0] - 1))
        packs = grouped[:, 0]
        for i in range(1, p):
            packs = (grouped[:, i, :, None] + packs[:, None]).reshape(packs.shape[0], -1, packs.shape[-1])
        return packs

    def dot(self, table: Array) -> jax.Array:
        """(N, C) sums of the table entries of each row's levels, given the tables that `layout` returns."""
        table = xp.asarray(table)
        if table.ndim == 3:
            start = (xp.arange(table.shape[0]) * table.shape[1]).astype(xp.int32)
            p = (table.shape[1].bit_length() - 1) // _n_bits(self.width)
            index, table = self.packed(p) + start, table.reshape(-1, table.shape[-1])
        else:
            index = self._flat_level(table.shape[0] - 1)

        if is_host(index, table):
            if index.size * table.shape[1] <= FEW:
                return gather(table, index).sum(axis=1)
            level = np.minimum(index, len(table) - 1).ravel()  # as `gather` reads padding
            rows = np.ones(level.size), level, np.arange(len(index) + 1) * index.shape[1]
            return csr_product(rows, (len(index), len(table)), table)

        def add(total: jax.Array, column: jax.Array) -> tuple[jax.Array, None]:
            return total + gather(table, column), None

        zero = xp.zeros((index.shape[0], table.shape[1]), table.dtype)
        return scan(add, zero, index.T, unroll=max(1, min(_UNROLL, index.shape[1])))[0]

    def dot_terms(self, table: Array) -> Float[jax.Array, "N C G"]:
        """(N, C, G) table entry of the row's level in each group, given a table (C, L); 0 for missing cells."""
        table = xp.concatenate([xp.asarray(table).T, xp.zeros((1, table.shape[0]))])
        return gather(table, self._flat_level(table.shape[0] - 1)).swapaxes(1, 2)

    def weigh(self, table: Array, weight: jax.Array) -> jax.Array:
        """Table (C, L) of log probabilities multiplied by the weight (G,) of each level's group."""
        return weighted(repeat(weight, self.size, table.shape[1]), table)

    def weighted_counts(self, count: Array, label: Int[Array, "N"], weight: Float[Array, "N"]) -> jax.Array:
        """`count` (C, L) with the rows added, given class indices (N,) and weights (N,)."""
        return _add_rows(count, self._flat_level(count.size), label, weight)

    def log_base(self) -> jax.Array:
        """(N,) zeros: log multinomial coefficients of categorical rows."""
        return xp.zeros(self.code.shape[0])

    def packed(self, p: int) -> Int[jax.Array, "N P"]:
        """(N, P) joint codes of p groups, Σ_i code_i · 2^(bits · i); all bits of a missing cell are set.

        p codes of a byte each are read as one word, in which neighbours are moved next to each other, then pairs, …
        """
        n, groups = self.code.shape
        code = xp.pad(xp.asarray(self.code).astype(xp.int8), ((0, 0), (0, -groups % p)), constant_values=-1)
        word: jax.Array = code.astype(xp.uint8)
        if p > 1:
            word = code.reshape(n, -1, p).view(f"uint{8 * p}")[..., 0]
        kind, bits, room = word.dtype.type, _n_bits(self.width), 8
        word = word & kind(_mask_of_lowest_bits(bits, room, 8 * p))
        while room < 8 * p:
            lower = _mask_of_lowest_bits(bits, 2 * room, 8 * p)
            word = (word & kind(lower)) | (word >> kind(room - bits) & kind(lower << bits))
            bits, room = 2 * bits, 2 * room
        return word.astype(xp.int32)

    def _flat_level(self, missing: int) -> Int[jax.Array, "N G"]:
        """(N, G) index of each cell's level on the axis of all levels; `missing` for missing cells."""
        start = xp.asarray(self.start)
        return xp.where(self.code < 0, missing, xp.asarray(self.code, start.dtype) + start)

    def _levels_of_codes(self, p: int, missing: int) -> Int[jax.Array, "P p W"]:
        """(P, p, 2^bits) index on the axis of all levels of each code of each group; `missing` where none exists."""
        fill = (0, -self.code.shape[1] % p)
        start, size = (xp.pad(xp.asarray(v), fill) for v in (self.start, self.size))
        code = xp.arange(1 << _n_bits(self.width), dtype=start.dtype)
        return xp.where(code < size[:, None], start[:, None] + code, missing).reshape(-1, p, len(code))


@pytree
class PackedCounts(Additive):
    """Joint counts of packs of p groups: `count` (C, P, 2^(bits · p)), by the joint codes of `OneHot.packed`.

    Many blocks of rows are counted with one entry for a pack, not one for a group; `level_counts` sums them up.
    """

    count: Array
    p: int = static()

    def observe(self, x: OneHot, label: Int[Array, "N"], weight: Float[Array, "N"]) -> PackedCounts:
        """Joint counts with a block of rows added, given class indices (N,) and weights (N,)."""
        n_classes, packs, room = self.count.shape
        position = x.packed(self.p) + (xp.arange(packs) * room).astype(xp.int32)
        count = _add_rows(xp.asarray(self.count).reshape(n_classes, -1), position, label, weight)
        return PackedCounts(count.reshape(self.count.shape), self.p)

    @staticmethod
    def log_base(x: OneHot) -> jax.Array:
        """(N,) zeros: log multinomial coefficients of categorical rows."""
        return x.log_base()

    def level_counts(self, sizes: np.ndarray) -> LevelCounts:
        """Counts (C, L) of single levels, summed from the joint counts, for groups with these `sizes`."""
        n_classes, packs, room = self.count.shape
        width = round(room ** (1 / self.p))
        count = self.count.reshape(n_classes, packs, *[width] * self.p)
        axes = range(2, 2 + self.p)
        each = [count.sum(axis=tuple(a for a in axes if a != i)) for i in reversed(axes)]
        codes = np.stack(each, axis=2).reshape(n_classes, packs * self.p, width)[:, : len(sizes)]
        return LevelCounts(codes[:, np.arange(width) < np.asarray(sizes)[:, None]])


@pytree
class GroupedCounts(Additive):
    """Counts (C, L) with the number of levels of each group, so that rows may be codes (N, G), see `rows_of_levels`.

    For programs without an estimator; `Statistics.empty` makes these counts.
    """

    layout: ClassVar[tuple[str, ...]] = ("sizes",)

    count: Array
    sizes: tuple[int, ...] = static()

    @property
    def num_groups(self) -> int:
        """Number of groups G."""
        return len(self.sizes)

    def rows(self, x: object) -> CountRows:
        """Rows of codes or counts as `CountRows`."""
        return rows_of_levels(x, np.repeat(np.arange(len(self.sizes), dtype=np.int32), self.sizes), len(self.sizes))

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "N"]) -> Self:
        """Counts with rows added, given class indices (N,) and weights (N,)."""
        return replace(self, count=self.rows(x).weighted_counts(self.count, label, weight))

    def log_base(self, x: object) -> jax.Array:
        """(N,) log multinomial coefficient of each row, 0 for codes."""
        return self.rows(x).log_base()


def rows_of_levels(x: Any, group: Array, num_groups: int) -> CountRows:
    """Convert x to `CountRows`: an (N, G) array has the codes of the levels within G groups, an (N, L) array counts.

    A code that is not one of 0 … size of the group - 1 is a missing cell. `group` (L,) has the group of each level. If
    L = 1 the array has counts.
    """
    if isinstance(x, CountRows) or xp.shape(x)[-1] != num_groups or len(group) == 1:
        return as_rows(x, group, num_groups)
    size = segment_sum(xp.ones(len(group)), group, num_groups).astype(xp.int32)
    codes, start = xp.asarray(x), (xp.cumsum(size) - size).astype(xp.int32)
    known = (codes >= 0) & (codes < size)
    level = xp.where(known, codes, 0).astype(xp.int32)
    # Packs of groups would pay for many rows only.
    return OneHot(xp.where(known & (level == codes), level, -1), start, size, width=1 << _BITS)


def empty_counts(
    n_classes: int, n_rows: int, sizes: np.ndarray, width: int, capacity: int
) -> LevelCounts | PackedCounts:
    """Zero counts for `n_rows` rows with given group sizes: joint counts of packs, or of `capacity` single levels.

    They are `PackedCounts` if `packing` puts several groups into a pack for this many cells, else `LevelCounts`.
    `width` bounds the codes of a group.
    """
    p = packing(width, n_classes, len(sizes), n_rows * len(sizes))
    if p == 1:
        return LevelCounts(np.zeros((n_classes, capacity)))
    return PackedCounts(np.zeros((n_classes, -(-len(sizes) // p), 1 << p * _n_bits(width))), p)


def packing(width: int, n_classes: int, groups: int, cells: int) -> int:
    """Number p of groups in a pack, 4, 2 or 1: the most for which tables fit the cache and are not larger than rows.

    A pack has at most 12 bits, enough for p codes below `width`. Tables of all packs and classes have at most min(2^18,
    max(`cells`, 2^8)) entries, `cells` the number of cells of the rows. p is less than twice the number of groups.
    """
    most, bits = min(_LARGEST, max(cells, _SMALLEST)), _n_bits(width)

    def fits(p: int) -> bool:
        """Whether packs of p groups have at most `_BITS` bits and tables of at most `most` entries."""
        return p < 2 * groups and p * bits <= _BITS and n_classes * -(-groups // p) << p * bits <= most

    return next((p for p in (4, 2) if fits(p)), 1)


def _n_bits(width: int) -> int:
    """Number of bits for codes below `width`, at least 1."""
    return max(1, (width - 1).bit_length())


def _mask_of_lowest_bits(bits: int, room: int, length: int) -> int:
    """Integer of `length` bits in which the lowest `bits` bits of every field of `room` bits are set."""
    return sum(((1 << bits) - 1) << at for at in range(0, length, room))


def _add_rows(count: Array, level: jax.Array, label: Array, weight: Array) -> jax.Array:
    """`count` with each row's weight added at its class and levels (N, G); levels past the end are missing cells."""
    index = level_offset(count, label)[:, None] + level
    return add_at_flat(count, index.reshape(-1), xp.broadcast_to(weight[:, None], index.shape).reshape(-1))
