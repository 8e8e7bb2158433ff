"""Tables of contexts, against each pruning of each tree of contexts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, polygamma

from bayesnb.families import ContextTree, Dirichlet, LevelCounts, OneHot
from bayesnb.families.variates import KeyVariates
from tests.families.oracles import jitted

log_evidence = jitted("log_evidence")
with_row = jitted("predictive_with_row")
mean, mode, variance = jitted("mean"), jitted("mode"), jitted("variance")
DRAWS = 4_000

Context = tuple[int, ...]


def prunings(values: tuple[int, ...], stop: float, context: Context = ()) -> list[tuple[float, tuple[Context, ...]]]:
    """Log prior probability and last contexts of each pruning below a context."""
    if len(context) == len(values):
        return [(0.0, (context,))]
    below = [prunings(values, stop, (*context, v)) for v in range(values[len(context)])]
    found = [(np.log(stop), (context,))]
    for parts in itertools.product(*below):
        prior = np.log1p(-stop) + sum(log_prior for log_prior, _ in parts)
        found.append((prior, tuple(itertools.chain(*(last for _, last in parts)))))
    return found


@dataclass(frozen=True)
class Problem:
    """Features with so many values of their parents, and levels; `alpha` of all levels of each, in each class."""

    shapes: tuple[tuple[int, ...], ...]
    alpha: np.ndarray
    stop: float
    count: np.ndarray

    @property
    def prior(self) -> ContextTree:
        return ContextTree.of_tables(self.shapes, self.alpha, float(np.log(self.stop) - np.log1p(-self.stop)))

    @property
    def posterior(self) -> ContextTree:
        return jax.jit(ContextTree.update)(self.prior, LevelCounts(self.count))

    def tables(self, flat: Any) -> list[np.ndarray]:
        """(C, *values, levels) of each feature."""
        flat = np.asarray(flat)
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        return [part.reshape(-1, *shape) for part, shape in zip(np.split(flat, ends, 1), self.shapes, strict=True)]

    def each(self) -> Iterator[tuple[int, int, tuple[int, ...], Trees]]:
        """Class, feature, shape and all prunings of its table."""
        for f, table in enumerate(self.tables(self.count)):
            for c in range(len(table)):
                yield c, f, self.shapes[f], Trees(self.shapes[f], self.alpha[c, f], self.stop, table[c])


@dataclass(frozen=True)
class Trees:
    """All prunings of one table, (*values, levels)."""

    shape: tuple[int, ...]
    alpha: float
    stop: float
    count: np.ndarray

    def rows(self, context: Context) -> np.ndarray:
        """(levels,) rows in a context."""
        return self.count[context].reshape(-1, self.shape[-1]).sum(axis=0)

    @cached_property
    def scores(self) -> tuple[np.ndarray, list[tuple[Context, ...]]]:
        """Log joint probability of each pruning and the rows, and its last contexts."""
        found, a = [], self.alpha / self.shape[-1]
        every = prunings(self.shape[:-1], self.stop)
        for log_prior, last in every:
            rows = [self.rows(context) for context in last]
            evidence = sum((gammaln(a + n) - gammaln(a)).sum() for n in rows)
            evidence += sum(gammaln(self.alpha) - gammaln(self.alpha + n.sum()) for n in rows)
            found.append(log_prior + evidence)
        return np.array(found), [last for _, last in every]

    def log_evidence(self) -> float:
        return float(logsumexp(self.scores[0]))

    def betas(self, cell: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Posterior probabilities of the prunings, and α and α₀ of the level of a cell in its last context there."""
        score, every = self.scores
        given, level = cell[:-1], cell[-1]
        own = [next(self.rows(s) for s in last if given[: len(s)] == s) for last in every]
        a = np.array([self.alpha / self.shape[-1] + n[level] for n in own])
        return np.exp(score - logsumexp(score)), a, np.array([self.alpha + n.sum() for n in own])

    def with_row(self, cell: tuple[int, ...], more: float) -> Trees:
        count = self.count.copy()
        count[cell] += more
        return Trees(self.shape, self.alpha, self.stop, count)


def problem(shapes: tuple[tuple[int, ...], ...], seed: int, stop: float = 0.5, rows: float = 1.5) -> Problem:
    rng = np.random.default_rng(seed)
    alpha = rng.choice([0.3, 1.0, 4.0], (2, len(shapes)))
    count = rng.poisson(rows, (2, sum(int(np.prod(shape)) for shape in shapes))) * rng.choice([0.5, 1.0, 2.0])
    return Problem(shapes, alpha, stop, count)


KINDS = {
    "ragged": problem(((3, 2), (2,), (2, 2, 2, 2), (2, 3, 3)), 0),
    "seldom the last": problem(((3, 2), (2,), (2, 2, 2, 2), (2, 3, 3)), 1, stop=0.05),
    "few rows": problem(((3, 2), (2,), (2, 2, 2, 2), (2, 3, 3)), 2, rows=0.1),
    "no parents": problem(((3,), (2,)), 3),
}
each = pytest.mark.parametrize("own", KINDS.values(), ids=KINDS)
RAGGED = KINDS["ragged"]


def of_cells(own: Problem, value: Any) -> np.ndarray:
    """(C, L) something of each cell, from `value(trees, cell)`."""
    found = [np.empty_like(table, dtype=float) for table in own.tables(own.count)]
    for c, f, shape, trees in own.each():
        for cell in np.ndindex(shape):
            found[f][(c, *cell)] = value(trees, cell)
    return np.concatenate([table.reshape(len(table), -1) for table in found], axis=1)


def average(trees: Trees, cell: tuple[int, ...], of: Any) -> float:
    weight, a, total = trees.betas(cell)
    return float(weight @ of(a, total))


# -- all prunings ------------------------------------------------------------------------------------


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@each
def test_evidence_mean_and_variance_equal_enumeration(own):
    found = np.asarray(log_evidence(own.prior, LevelCounts(own.count)))
    expected = [trees.log_evidence() for *_, trees in own.each()]
    assert found.sum() == pytest.approx(sum(expected), abs=1e-10)
    theta = of_cells(own, lambda trees, cell: average(trees, cell, lambda a, t: a / t))
    np.testing.assert_allclose(mean(own.posterior).theta, theta, rtol=1e-11)
    np.testing.assert_allclose(
        jax.jit(lambda posterior: posterior.predictive().theta)(own.posterior), theta, rtol=1e-11
    )
    square = of_cells(own, lambda trees, cell: average(trees, cell, lambda a, t: a * (a + 1) / (t * (t + 1))))
    np.testing.assert_allclose(variance(own.posterior)["theta"], square - theta**2, rtol=1e-9, atol=1e-13)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("more", [(-1.0, 0.0), (2.0, -0.5)], ids=str)
def test_a_row_that_stands_more_or_less_often_equals_enumeration(more):
    own = Problem(RAGGED.shapes, RAGGED.alpha, RAGGED.stop, RAGGED.count + 1.0)
    found = own.tables(with_row(own.posterior, np.array(more)).theta)
    for c, f, shape, trees in own.each():
        for cell in np.ndindex(shape):
            expected = average(trees.with_row(cell, more[c]), cell, lambda a, t: a / t)
            assert found[f][(c, *cell)] == pytest.approx(expected, rel=1e-10)


def test_the_last_contexts_are_as_probable_as_the_prunings_that_have_them():
    found = np.asarray(jax.jit(ContextTree.last_probability)(RAGGED.posterior))
    np.testing.assert_allclose(found.sum(axis=0), 1.0, rtol=1e-12)
    tables = [RAGGED.tables(own) for own in found]
    for c, f, shape, trees in RAGGED.each():
        score, every = trees.scores
        probability = np.exp(score - logsumexp(score))
        for cell in np.ndindex(shape):
            for d in range(len(shape)):
                expected = sum(p for p, last in zip(probability, every, strict=True) if cell[:d] in last)
                assert tables[d][f][(c, *cell)] == pytest.approx(expected, abs=1e-12)


def test_the_mode_is_the_mean_given_the_most_probable_pruning():
    def of_best(trees: Trees, cell: tuple[int, ...]) -> float:
        score = trees.scores[0]
        _, a, total = trees.betas(cell)
        return a[np.argmax(score)] / total[np.argmax(score)]

    np.testing.assert_allclose(mode(RAGGED.posterior).theta, of_cells(RAGGED, of_best), rtol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_cumulants_are_those_of_the_mixture_over_all_prunings():
    own = RAGGED
    levels = np.array([0, 1, 1, 0]), np.array([5, 0, 13, 17])
    start = np.cumsum([0, *(int(np.prod(shape)) for shape in own.shapes)])[:-1].astype(np.int32)
    sizes = np.array([int(np.prod(shape)) for shape in own.shapes], np.int32)
    x = OneHot(np.stack(levels).astype(np.int32), start, sizes, 32)
    for more in (0.0, 1.0):
        found = own.posterior.log_likelihood_cumulants(x, more)
        for i, codes in enumerate(levels):
            expected = np.zeros((2, 3))
            for c, f, shape, trees in own.each():
                cell = tuple(int(k) for k in np.unravel_index(codes[f], shape))
                weight, a, total = trees.with_row(cell, more).betas(cell)
                k = [polygamma(n, a) - polygamma(n, total) for n in range(3)]
                m = weight @ k[0]
                away = k[0] - m
                expected[c] += [m, weight @ (k[1] + away**2), weight @ (k[2] + 3 * k[1] * away + away**3)]
            got = np.stack([np.asarray(part)[i] for part in (found.mean, found.variance, found.third)], axis=1)
            np.testing.assert_allclose(got, expected, rtol=1e-9)
    terms = own.posterior.cumulants_of_terms(x)
    whole = own.posterior.log_likelihood_cumulants(x)
    np.testing.assert_allclose(np.asarray(terms.mean).sum(axis=2), whole.mean, rtol=1e-12)


# -- draws -------------------------------------------------------------------------------------------


@pytest.mark.slow("simulates many data sets or draws")
def test_draws_have_the_exact_moments_and_are_distributions():
    own = RAGGED
    drawn = np.asarray(jax.jit(lambda family: family.draw(KeyVariates(jax.random.key(0)), DRAWS).theta)(own.posterior))
    for table in (t for d in drawn[:3] for t in own.tables(d)):
        np.testing.assert_allclose(table.sum(axis=-1), 1.0, rtol=1e-12)
    exact, sd = np.asarray(mean(own.posterior).theta), np.sqrt(np.asarray(variance(own.posterior)["theta"]))
    np.testing.assert_array_less(abs(drawn.mean(axis=0) - exact), 5 * sd / np.sqrt(DRAWS) + 1e-12)
    np.testing.assert_allclose(drawn.std(axis=0), sd, rtol=0.12, atol=1e-3)


@pytest.mark.slow("simulates many data sets or draws")
def test_draws_of_a_counted_rows_likelihood_average_to_its_predictive():
    own = RAGGED
    codes = np.array([[0, 1, 13, 17], [5, 0, 2, 3]], np.int32)
    sizes = np.array([int(np.prod(shape)) for shape in own.shapes], np.int32)
    x = OneHot(codes, (np.cumsum(sizes) - sizes).astype(np.int32), sizes, 32)
    for more in (0.0, 1.0):
        draw = jax.jit(
            lambda family, more=more: family.draw_log_likelihood(KeyVariates(jax.random.key(1)), DRAWS, x, more)
        )
        drawn = np.asarray(draw(own.posterior))
        exact = np.asarray(own.posterior.predictive_with_row(np.full(2, more)).log_prob(x))
        error = np.exp(drawn).std(axis=0) / np.sqrt(DRAWS)
        np.testing.assert_array_less(abs(np.exp(drawn).mean(axis=0) - np.exp(exact)), 5 * error)


# -- laws --------------------------------------------------------------------------------------------


def test_rows_in_sequence_multiply_to_the_evidence():
    rng = np.random.default_rng(5)
    own, total = RAGGED, 0.0
    tree, cells = own.prior, rng.integers(0, own.count.shape[1], 40)
    for cell, c in zip(cells, rng.integers(0, 2, 40), strict=True):
        total += float(mean(tree).log_theta[c, cell])
        one = np.zeros_like(own.count)
        one[c, cell] = 1.0
        tree = tree.update(LevelCounts(one))
    found = log_evidence(own.prior, LevelCounts(np.asarray(tree.count)))
    assert float(np.sum(found)) == pytest.approx(total, rel=1e-11)


@pytest.mark.slow("compiles kernels of its own")
@each
def test_padding_changes_nothing(own):
    padded = own.prior.pad(7).update(LevelCounts(np.pad(own.count, ((0, 0), (0, 7)))))
    n = own.count.shape[1]
    np.testing.assert_allclose(mean(padded).theta[:, :n], mean(own.posterior).theta, rtol=1e-13)
    before = own.prior.pad(7)
    found = np.sum(log_evidence(before, LevelCounts(np.pad(own.count, ((0, 0), (0, 7))))))
    assert float(found) == pytest.approx(float(np.sum(log_evidence(own.prior, LevelCounts(own.count)))), rel=1e-12)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("most", [0, 1, 2])
def test_a_tree_of_fewer_parents_is_the_tree_of_their_counts(most):
    own = RAGGED
    shapes = tuple((*shape[: min(most, len(shape) - 1)], shape[-1]) for shape in own.shapes)
    tables = [
        t.reshape(2, *shape[:-1], -1, shape[-1]).sum(axis=-2).reshape(2, -1)
        for t, shape in zip(own.tables(own.count), shapes, strict=True)
    ]
    fewer = Problem(shapes, own.alpha, own.stop, np.concatenate(tables, axis=1))
    limited = own.posterior.limit(most)
    found, expected = own.tables(mean(limited).theta), fewer.tables(mean(fewer.posterior).theta)
    for one, other, shape in zip(found, expected, shapes, strict=True):
        whole = one.reshape(2, *shape[:-1], -1, shape[-1])
        np.testing.assert_allclose(whole, np.broadcast_to(np.expand_dims(other, -2), whole.shape), rtol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_a_parent_that_says_nothing_costs_next_to_nothing_and_one_that_says_all_is_used():
    half = np.full((1, 4), 500.0)
    tree = ContextTree.of_tables([(2, 2)], np.ones((1, 1)))
    alone = Dirichlet(np.full((1, 2), 0.5), np.zeros(2, np.int32), 1)
    lost = np.sum(alone.log_evidence(LevelCounts(np.full((1, 2), 1000.0)))) - np.sum(
        log_evidence(tree, LevelCounts(half))
    )
    assert 0 < float(lost) < np.log(2)
    told = tree.update(LevelCounts(np.array([[500.0, 0.0, 0.0, 500.0]])))
    np.testing.assert_allclose(mean(told).theta, [[1, 0, 0, 1]], atol=1e-2)


@pytest.mark.slow("compiles kernels of its own")
def test_very_many_rows_leave_frequencies():
    count = np.array([[3e9, 1e9, 2e9, 6e9, 0.0, 0.0]])
    found = np.asarray(mean(ContextTree.of_tables([(3, 2)], np.ones((1, 1))).update(LevelCounts(count))).theta)
    np.testing.assert_allclose(found[0, :4], [0.75, 0.25, 0.25, 0.75], rtol=1e-8)
    np.testing.assert_allclose(found[0, 4:].sum(), 1.0, rtol=1e-12)


def test_a_feature_or_a_parent_without_levels_has_no_cells():
    tree = ContextTree.of_tables([(3, 0), (0, 2), (2, 2)], np.ones((1, 3)))
    assert tree.count.shape == (1, 4)
    np.testing.assert_allclose(mean(tree).theta, 0.5)
