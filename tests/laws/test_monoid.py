"""Law 1: statistics are a commutative monoid, so any chunking and any order gives the posterior of the whole."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone

from bayesnb import CategoricalNB, GaussianNB
from bayesnb.encoding import Levels
from bayesnb.fitted.counting import Counted, merge, remove
from tests.strategies import CLASSES, KINDS, Problem, assert_leaves, counted, log_base, problems, quarters, thorough

EPS = np.finfo(float).eps
every_kind = pytest.mark.parametrize("kind", thorough(KINDS))


def moments_bound(merged: Any) -> np.ndarray:
    """Largest rounding error of M2."""
    sd = np.sqrt(merged.m2 / np.maximum(merged.count, 1))
    ratio = np.divide(abs(merged.mean), sd, out=np.zeros_like(sd), where=sd > 0)
    return 1e-12 * merged.m2 * np.maximum(1.0, 1e6 * EPS * ratio)


def assert_same(a: Counted, b: Counted, merged: Counted, log_base_scale: float) -> None:
    """Names and counts to the bit; the rest as the law says, relative to the merged statistics."""
    assert names(a) == names(b)
    np.testing.assert_array_equal(a.statistics.class_count, b.statistics.class_count)
    for mine, theirs, whole in zip(a.statistics.blocks, b.statistics.blocks, merged.statistics.blocks, strict=True):
        np.testing.assert_array_equal(mine.count, theirs.count)
        if hasattr(mine, "total"):
            np.testing.assert_array_equal(mine.total, theirs.total)
        if hasattr(mine, "m2"):
            bound = moments_bound(whole)
            sd = np.sqrt(whole.m2 / np.maximum(whole.count, 1))
            assert (abs(mine.m2 - theirs.m2) <= bound).all()
            assert (abs(mine.mean - theirs.mean) <= 1e-12 * (sd + abs(whole.mean))).all()
    assert abs(a.statistics.log_base - b.statistics.log_base) <= 1e-12 * log_base_scale


def names(c: Counted) -> list:
    """Every class and level with its type, in the order of the axes."""
    levels = [c.encoding.classes, *(v for b in c.encoding.blocks for v in getattr(b, "levels", ()))]
    return [[(type(v).__name__, v) for v in one.values] for one in levels]


def keeps_types(part: Counted, whole: Counted) -> bool:
    """Whether no level of a part has another type in the whole, such as True where the part has 1."""
    return all(set(some) <= set(every) for some, every in zip(names(part), names(whole), strict=True))


def scale(problem: Problem) -> float:
    """Σ of the magnitudes that make up `log_base`."""
    if problem.kind == "mixed":
        visits, words = problem.X[["visits"]].to_numpy(), problem.X[["word", "other"]].to_numpy()
        terms = abs(log_base("poisson", visits)) + abs(log_base("multinomial", words))
    else:
        terms = abs(log_base(problem.kind, problem.X))
    return float(problem.weight @ terms)


def empty_like(c: Counted) -> Counted:
    """Statistics of no rows, under an encoding that knows no class and no level."""
    blocks = tuple(
        replace(b, levels=tuple(Levels(()) for _ in b.levels)) if hasattr(b, "levels") else b for b in c.encoding.blocks
    )
    encoding = replace(c.encoding, classes=Levels(()), blocks=blocks)
    widths = [0 if hasattr(b, "levels") else s.count.shape[1] for b, s in zip(blocks, c.statistics.blocks, strict=True)]
    statistics = replace(
        c.statistics,
        class_count=np.zeros(0),
        blocks=tuple(
            jax.tree.map(lambda v, w=w: np.zeros((0, w, *v.shape[2:])), s)
            for w, s in zip(widths, c.statistics.blocks, strict=True)
        ),
        log_base=np.zeros(()),
    )
    return Counted(encoding, statistics)


def alone(problem: Problem) -> Counted:
    """Counted by an estimator that knows these rows only, and so no other class and level."""
    nb = clone(problem.nb).set_params(class_prior=None)
    return counted(nb.fit(problem.X, problem.y, problem.weight))


@every_kind
@given(data=st.data())
def test_merge_is_associative_and_commutative_across_levels_and_classes(kind, data):
    problem = data.draw(problems(kind, min_rows=3))
    i, j = sorted(data.draw(st.tuples(*[st.integers(1, len(problem) - 1)] * 2).filter(lambda t: t[0] != t[1])))
    a, b, c = (alone(p) for p in problem.chunks([i, j]))
    whole = merge(merge(a, b), c)
    assert_same(whole, merge(a, merge(b, c)), whole, scale(problem))
    assert_same(merge(a, b), merge(b, a), merge(a, b), scale(problem))


@every_kind
@given(data=st.data())
def test_empty_statistics_are_the_identity_of_merge_and_remove(kind, data):
    problem = data.draw(problems(kind))
    a = alone(problem)
    for empty in (empty_like(a), remove(a, a)):
        assert_same(merge(a, empty), a, a, 0.0)
        assert_same(merge(empty, a), a, a, 0.0)
        assert_same(remove(a, empty), a, a, 0.0)


@every_kind
@given(data=st.data())
def test_remove_is_the_inverse_of_merge(kind, data):
    problem = data.draw(problems(kind, min_rows=2))
    i = data.draw(st.integers(1, len(problem) - 1))
    a, b = (counted(p.fit()) for p in problem.chunks([i]))
    whole = merge(a, b)
    assume(keeps_types(a, whole))
    assert_same(remove(whole, b), a, whole, scale(problem))


@every_kind
@given(data=st.data())
def test_any_order_and_chunking_of_partial_fit_gives_the_posterior_of_the_whole(kind, data):
    problem = data.draw(problems(kind, min_rows=2))
    whole = problem.fit()
    shuffled = problem.take(data.draw(st.permutations(range(len(problem)))))
    nb = clone(problem.nb)
    for part in shuffled.chunks(data.draw(st.lists(st.integers(1, len(problem) - 1)))):
        nb.partial_fit(part.X, part.y, CLASSES, part.weight)
    assert_same(counted(nb), counted(whole), counted(whole), scale(problem))
    assert_leaves(nb.posterior_, whole.posterior_, rtol=1e-10)
    assert abs(nb.log_evidence_ - whole.log_evidence_) <= 1e-9 * max(1.0, abs(whole.log_evidence_))


@every_kind
@given(data=st.data())
def test_everything_can_be_forgotten_row_by_row_in_any_order(kind, data):
    problem = data.draw(problems(kind, max_rows=5))
    nb = problem.fit()
    for i in data.draw(st.permutations(range(len(problem)))):
        row = problem.take([i])
        nb.forget(row.X, row.y, row.weight)
    assert not any(leaf.any() for block in nb.statistics_.blocks for leaf in jax.tree.leaves(block))
    assert not nb.statistics_.class_count.any()
    assert abs(nb.statistics_.log_base) <= 1e-12 * max(1.0, scale(problem))


@given(
    values=st.permutations(["b", 0.5, 7, True, "a", 10**8, (1, 2), -3]), cuts=st.lists(st.integers(1, 7), max_size=4)
)
def test_levels_of_any_type_may_arrive_in_any_order(values, cuts):
    column = np.empty((8, 1), object)
    column[:, 0] = values
    y = np.arange(8) % 2
    problem = Problem("categorical", CategoricalNB(), column, y, np.ones(8))
    nb = clone(problem.nb)
    for part in problem.chunks(cuts):
        nb.partial_fit(part.X, part.y, [0, 1])
    assert list(nb.categories_[0]) == [True, 0.5, -3, 7, 10**8, "a", "b", (1, 2)]
    at = [values.index(v) for v in nb.categories_[0]]
    np.testing.assert_array_equal(nb.category_count_[0], [[y[i] == c for i in at] for c in (0, 1)])


# -- moments -------------------------------------------------------------------------------------


@given(
    x=st.lists(quarters, min_size=2, max_size=16),
    cuts=st.lists(st.integers(1, 15)),
    offset=st.sampled_from([0.0, 1e3, 1e6, 1e9]),
)
def test_chunked_variance_is_as_exact_as_float64_means_allow(x, cuts, offset):
    """M2 of integers in exact arithmetic; rounding the mean to float64 alone costs 2 eps · mean/sd."""
    y = np.zeros(len(x), int)
    values = np.array(x) + offset
    problem = Problem("gaussian", GaussianNB(), values[:, None], y, np.ones(len(x)))
    nb = GaussianNB()
    for part in problem.chunks(cuts):
        nb.partial_fit(part.X, part.y, [0])
    n, total, square = len(x), sum(round(4 * v) for v in x), sum(round(4 * v) ** 2 for v in x)
    exact = (square * n - total**2) / (16 * n)
    ratio = abs(offset + total / 4 / n) / np.sqrt(exact / n) if exact else 0.0
    assert abs(nb.statistics_.blocks[0].m2[0, 0] - exact) <= exact * max(1e-12, 8 * EPS * ratio)


@given(
    value=st.sampled_from([0.1, 1 / 3, 1e10 + 0.1, -7e-5, 0.0]),
    weight=st.lists(st.sampled_from([1.0, 2.0, 0.1, 0.7]), min_size=2, max_size=9),
    cuts=st.lists(st.integers(1, 8)),
    gone=st.integers(1, 8),
)
def test_a_constant_feature_has_variance_exactly_zero_however_it_is_chunked_and_forgotten(value, weight, cuts, gone):
    n = len(weight)
    problem = Problem("gaussian", GaussianNB(), np.full((n, 1), value), np.zeros(n, int), np.array(weight))
    nb = GaussianNB()
    for part in problem.chunks(cuts):
        nb.partial_fit(part.X, part.y, [0], part.weight)
    assert nb.statistics_.blocks[0].m2[0, 0] == 0
    part = problem.take(range(min(gone, n - 1)))
    nb.forget(part.X, part.y, part.weight)
    assert nb.statistics_.blocks[0].m2[0, 0] == 0


@pytest.mark.parametrize("offset", [0.0, 1e4, 1.7e9, 1e12])
@pytest.mark.parametrize("left", range(8))
def test_forgetting_all_rows_but_one_leaves_a_point_far_from_zero_too(offset, left):
    """Epoch seconds are such numbers: rounding of the mean must not look like a row that was never counted."""
    x = offset + np.array([[0.1], [1000.1], [2000.7], [3000.3], [4000.4], [5000.9], [6000.1], [7000.3]])
    y = np.zeros(8, int)
    others = np.arange(8) != left
    nb = GaussianNB().fit(x, y)
    merged = nb.statistics_.blocks[0].m2[0, 0]
    nb.forget(x[others], y[others])
    after = nb.statistics_.blocks[0]
    sd = np.sqrt(merged / 8)
    assert after.count[0, 0] == 1
    assert abs(after.mean[0, 0] - x[left, 0]) <= 1e-12 * sd + 64 * EPS * offset
    assert 0 <= after.m2[0, 0] <= merged * max(1e-12, 64 * EPS * offset / sd)


def test_a_row_that_was_never_counted_is_refused_where_a_moment_would_become_negative():
    x = np.array([[1.0], [1.5], [2.0], [50.0]])
    nb = GaussianNB().fit(x, [0, 0, 0, 1])
    before = jax.tree.leaves(nb.statistics_)
    with pytest.raises(ValueError, match="negative sum of squares"):
        nb.forget([[50.0]], [0])
    for was, now in zip(before, jax.tree.leaves(nb.statistics_), strict=True):
        np.testing.assert_array_equal(was, now)
