"""Sums over spanning trees and draws of them, against all trees one by one and determinants of whole numbers."""

import math
from collections import Counter

import jax
import numpy as np
import pytest
from scipy import stats

from bayesnb.families import structures
from tests.families.trees import arcs_of, is_forest, trees
from tests.strategies import variants

log_sum = jax.jit(structures.log_sum)
draw = jax.jit(jax.vmap(structures.draw, (None, 0, 0)))
edge_probability = jax.jit(structures.edge_probability)
gradient = jax.jit(jax.grad(lambda weight, index: structures.log_sum(weight[index])))


def symmetric(weight: np.ndarray, n: int) -> np.ndarray:
    """Symmetric matrix of the weights of (0, 1), (0, 2), …, (n - 2, n - 1); the diagonal is not read."""
    matrix = np.full((n, n), 1e3)
    matrix[np.triu_indices(n, 1)] = matrix.T[np.triu_indices(n, 1)] = weight
    return matrix


def enumerated(matrix: np.ndarray) -> np.ndarray:
    """Log weights of all trees."""
    return np.array([sum(matrix[arc] for arc in tree) for tree in trees(len(matrix))])


def log_minor(exponent: np.ndarray) -> float:
    """log det of the reduced Laplacian of weights 2^exponent, by elimination in whole numbers of thousands of bits."""
    n, least = len(exponent), int(exponent.min())
    guard, digits = 200, int(exponent.max()) - least + 400
    m = [[-(1 << int(e) - least + guard) for e in row] for row in exponent]
    for i in range(n):
        m[i][i] = -sum(m[i][:i] + m[i][i + 1 :])
    total = 0.0
    for k in range(n - 1):
        total += math.log(m[k][k]) + (least - guard) * math.log(2)
        for i in range(k + 1, n - 1):
            share = (m[i][k] << digits) // m[k][k]
            for j in range(i, n - 1):
                m[i][j] = m[j][i] = m[i][j] - (share * m[k][j] >> digits)
    return total


def drawn(matrix: np.ndarray, n_draws: int, seed: int) -> np.ndarray:
    """(S, n) parents."""
    rng, n = np.random.default_rng(seed), len(matrix)
    log_uniform, gumbel = np.log(rng.random((n_draws, n, n))), rng.gumbel(size=(n_draws, n, n))
    return np.asarray(draw(matrix, log_uniform, gumbel))


@pytest.mark.parametrize(("n", "sd"), [(5, 1.0), (5, 50.0), (4, 50.0), (3, 1.0), (2, 1.0), (1, 1.0)])
def test_the_sum_is_that_over_all_trees(n, sd):
    matrix = symmetric(np.random.default_rng(n).normal(scale=sd, size=n * (n - 1) // 2), n)
    assert log_sum(matrix) == pytest.approx(np.logaddexp.reduce(enumerated(matrix)), rel=1e-13, abs=1e-13)


def test_of_equal_weights_it_is_the_number_of_trees():
    for n in (1, 2, 5, 18):
        assert log_sum(np.zeros((n, n))) == pytest.approx(max(n - 2, 0) * np.log(n), rel=1e-14, abs=1e-14)


def test_of_many_graphs_at_once_it_is_a_determinant_of_each():
    n, weight = 12, np.random.default_rng(0).normal(size=(2, 3, 66))
    matrix = np.moveaxis([[symmetric(own, n) for own in some] for some in weight], (2, 3), (0, 1))
    laplacian = -np.exp(np.where(np.eye(n, dtype=bool)[..., None, None], -np.inf, matrix))
    laplacian[np.diag_indices(n)] = -laplacian.sum(axis=0)
    expected = np.linalg.slogdet(np.moveaxis(laplacian[1:, 1:], (0, 1), (2, 3)))[1]
    np.testing.assert_allclose(log_sum(matrix), expected, rtol=1e-13)


@pytest.mark.slow("large arrays, many files or long histories")
def test_of_sixty_vertices_with_weights_of_any_size_it_is_the_determinant_in_whole_numbers():
    n, rng = 60, np.random.default_rng(0)
    exponent = symmetric(rng.integers(-2885, 2886, n * (n - 1) // 2), n).astype(int)
    matrix = exponent * np.log(2)
    found = float(log_sum(matrix))
    assert found == pytest.approx(log_minor(exponent), rel=1e-12)
    order = rng.permutation(n)
    assert log_sum(matrix[order][:, order]) == pytest.approx(found, rel=1e-12)
    probability = structures.edge_probability(matrix)
    assert probability.sum() == pytest.approx(2 * (n - 1), abs=2e-9)
    np.testing.assert_allclose(edge_probability(matrix), probability, rtol=0, atol=1e-12)
    assert probability.min() >= 0
    assert probability.max() <= 1 + 1e-12


@variants("sd", [1.0, 50.0])
def test_its_gradient_is_the_probability_of_an_edge(sd):
    n, weight = 5, np.random.default_rng(1).normal(scale=sd, size=10)
    log_weight = enumerated(symmetric(weight, n))
    share = np.exp(log_weight - np.logaddexp.reduce(log_weight))
    among = [[arc in tree for tree in trees(n)] for arc in zip(*np.triu_indices(n, 1), strict=True)]
    matrix = symmetric(weight, n)
    for found in (structures.edge_probability(matrix), edge_probability(matrix)):
        np.testing.assert_allclose(found[np.triu_indices(n, 1)], np.array(among) @ share, rtol=1e-10, atol=1e-14)
    found = gradient(weight, structures.pair_index(n))
    np.testing.assert_allclose(found, np.array(among) @ share, rtol=1e-10, atol=1e-14)


@variants(("n", "sd"), [(5, 1.0), (5, 0.0), (5, 4.0), (3, 1.0), (2, 1.0)])
def test_trees_are_drawn_as_often_as_they_weigh(n, sd):
    """Trees of which fewer than five are expected count together."""
    draws, matrix = 50_000, symmetric(np.random.default_rng(2).normal(scale=sd, size=n * (n - 1) // 2), n)
    log_weight = enumerated(matrix)
    expected = draws * np.exp(log_weight - np.logaddexp.reduce(log_weight))
    parents, times = np.unique(drawn(matrix, draws, seed=0), axis=0, return_counts=True)
    found = Counter()
    for parent, n_drawn in zip(parents, times.tolist(), strict=True):
        found[arcs_of(parent)] += n_drawn
    assert set(found) <= set(trees(n))
    observed, rare = np.array([found[tree] for tree in trees(n)]), expected < 5
    pooled = [np.append(count[~rare], count[rare].sum()) for count in (observed, expected)]
    assert n == 2 or stats.chisquare(*(p[pooled[1] > 0] for p in pooled)).pvalue > 1e-3


@pytest.mark.parametrize("scale", [0.0, 1.0, 2000.0])
def test_what_is_drawn_is_a_tree_with_the_last_vertex_as_its_root(scale):
    n = 12
    matrix = symmetric(np.random.default_rng(3).uniform(-scale, scale, 66), n)
    for parent in drawn(matrix, 500, seed=1):
        arcs = arcs_of(parent)
        assert len(arcs) == n - 1
        assert is_forest(arcs, n)
        assert parent[-1] == n - 1


def test_the_heaviest_tree_is_drawn_if_all_others_weigh_next_to_nothing():
    """Each arc weighs e^100 times the next one: the tree of greatest weight, by Kruskal's algorithm."""
    n, rank, heaviest = 12, np.random.default_rng(4).permutation(66), frozenset()
    for arc in np.transpose(np.triu_indices(n, 1))[np.argsort(rank)].tolist():
        more = heaviest | {tuple(arc)}
        heaviest = more if is_forest(more, n) else heaviest
    assert set(map(arcs_of, drawn(symmetric(-100.0 * rank, n), 500, seed=2))) == {heaviest}
