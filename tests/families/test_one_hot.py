"""Counts and scores of packs of one-hot groups, against loops over cells."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesnb.families import OneHot, PackedCounts, empty_counts
from bayesnb.families.rows import packing

N = 64
packed = jax.jit(OneHot.packed, static_argnums=1)
observe = jax.jit(lambda counts, *rows: counts.observe(*rows))
score = jax.jit(lambda x, table: x.dot(x.layout(table)))


def rows(rng: np.random.Generator, groups: int, bits: int, complete: bool) -> OneHot:
    """Codes of groups of which the widest fills its bits, but for the slot of a missing cell."""
    width = 1 << bits
    sizes = rng.integers(1, width + complete, groups).astype(np.int32)
    sizes[0] = max(1, width - (not complete))
    code = rng.integers(0, sizes, (N, groups)).astype(np.int8)
    if not complete:
        code[rng.random(code.shape) < 0.2] = -1
    return OneHot(code, (np.cumsum(sizes) - sizes).astype(np.int32), sizes, width)


@given(
    seed=st.integers(0, 2**32 - 1),
    groups_bits_p=st.sampled_from([(1, 1, 1), (9, 1, 4), (7, 3, 2), (7, 6, 4), (5, 4, 1), (9, 5, 4)]),
    complete=st.booleans(),
)
def test_a_pack_holds_the_codes_of_its_groups(seed, groups_bits_p, complete):
    groups, bits, p = groups_bits_p
    x = rows(np.random.default_rng(seed), groups, bits, complete)
    found = np.asarray(packed(x, p))
    assert found.shape == (N, -(-groups // p))
    codes = (found[:, :, None] >> (bits * np.arange(p)) & (1 << bits) - 1).reshape(N, -1)
    np.testing.assert_array_equal(codes[:, :groups], np.where(x.code < 0, (1 << bits) - 1, x.code))


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("bits", range(1, 7))
def test_packs_count_what_groups_count(bits, complete):
    rng = np.random.default_rng(bits)
    x = rows(rng, 7, bits, complete)
    label, weight = rng.integers(0, 3, N), rng.integers(0, 4, N).astype(float)
    counts = empty_counts(3, 10**6, x.size, x.width, int(x.size.sum()))
    assert isinstance(counts, PackedCounts) == (packing(x.width, 3, 7, 7 * 10**6) > 1)
    found = jax.tree.map(np.asarray, observe(counts, x, label, weight)).level_counts(x.size)
    expected = np.zeros((3, int(x.size.sum())))
    for i, g in zip(*np.nonzero(x.code >= 0), strict=True):
        expected[label[i], x.start[g] + x.code[i, g]] += weight[i]
    np.testing.assert_array_equal(found.count, expected)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("bits", range(1, 7))
def test_packs_score_what_groups_score(bits, complete):
    rng = np.random.default_rng(bits)
    x = rows(rng, 7, bits, complete)
    table = rng.normal(size=(3, int(x.size.sum())))
    table[0, 0] = -np.inf
    padded = np.concatenate([table, np.zeros((3, 1))], axis=1)
    at = np.where(x.code < 0, table.shape[1], x.code + x.start)
    np.testing.assert_allclose(score(x, table), padded[:, at].sum(axis=2).T, rtol=1e-12, atol=1e-12)


def test_few_rows_and_many_classes_make_small_packs():
    """No more room than cells, or than the cache has."""
    assert packing(8, 4, 30, 10**7) == 4
    assert packing(8, 4, 30, 10**4) == 2
    assert packing(8, 4, 30, 30) == 1
    assert packing(8, 100, 30, 10**7) == 2
    assert packing(8, 10**5, 30, 10**7) == 1
    assert packing(128, 2, 30, 10**7) == 1
    assert packing(8, 2, 1, 10**7) == 1


@pytest.mark.parametrize("complete", [True, False])
def test_many_classes_are_scored_by_numpy_as_cell_by_cell(complete):
    """Tables of thousands of draws: past 65,536 numbers the sums are products of sparse rows."""
    rng = np.random.default_rng(5)
    x = rows(rng, 5, 4, complete)
    table = rng.normal(size=(3_000, int(x.size.sum())))
    table[7, x.start[2]] = -np.inf
    found = x.dot(x.layout(table))
    assert isinstance(found, np.ndarray)
    cells = [[(s + c) if c >= 0 else -1 for s, c in zip(x.start, row, strict=True)] for row in x.code]
    expected = [sum(table[:, i] for i in row if i >= 0) for row in cells]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
