"""Averages of a dependent and a shared model: rows left out against refits, and draws of known parameters."""

import jax
import numpy as np
import pytest

from bayesnb.families import Dirichlet, Moments, NormalInverseGamma, OneHot
from bayesnb.families.averaged import AveragedCells, AveragedLevels, averaged
from bayesnb.families.protocol import KeyVariates

C, N, F = 3, 7, 2
LABEL = np.array([0, 1, 2, 0, 1, 2, 1])
NUMBERS = np.random.default_rng(0).normal(LABEL[:, None] * [1.5, 0.0], 1.0, (N, F))
NUMBERS[4, 1] = np.nan


def of_numbers() -> AveragedCells:
    shape = np.ones((C, F))
    found = averaged(NormalInverseGamma(0.3 * shape, 0.5 * shape, 1.5 * shape, 2.0 * shape), np.array([-0.4, 0.7]))
    assert isinstance(found, AveragedCells)
    return found


def counted(use: np.ndarray) -> Moments:
    """Moments of the rows where `use` (N,) is true."""
    cells = [[NUMBERS[use & (c == LABEL) & ~np.isnan(NUMBERS[:, j]), j] for j in range(F)] for c in range(C)]
    return Moments(*(np.array([[of(x) for x in row] for row in cells]) for of in (np.size, np.mean, of_squares)))


def of_squares(x: np.ndarray) -> float:
    return x.var() * x.size


@jax.jit
def terms(prior: AveragedCells, moments: Moments, multiplicity: np.ndarray | None) -> jax.Array:
    """(N, C, F) log predictive densities of all cells, each row added `multiplicity` (C,) times to the data first."""
    return prior.update(moments).predictive(multiplicity).terms(NUMBERS)


def test_numbers_left_out_are_those_of_a_refit():
    """The odds that a feature depends on the class are those given the other rows, too."""
    prior, all_rows = of_numbers(), np.ones(N, bool)
    for i, own in enumerate(LABEL):
        found = terms(prior, counted(all_rows), -np.eye(C)[own])
        expected = terms(prior, counted(np.arange(N) != i), None)
        np.testing.assert_allclose(np.asarray(found)[i], np.asarray(expected)[i], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("given_row", [False, True])
def test_draws_of_known_parameters_are_sums_over_the_features_that_depend_on_the_class(given_row):
    """Given 10^12 rows of each class, of which the first and the last of three features depend on it."""
    rng, sizes = np.random.default_rng(1), np.array([2, 3, 2])
    group, first = np.repeat(np.arange(3, dtype=np.int32), sizes), np.cumsum(sizes) - sizes
    theta = np.concatenate([rng.dirichlet(np.full(size, 3.0), C) for size in sizes], axis=1)
    models = (Dirichlet(1e12 * p, group, 3) for p in (theta, theta.mean(axis=0, keepdims=True)))
    posterior = AveragedLevels(*models, np.array([1e6, -1e6, 1e6]))
    code = np.array([[0, 1, 1], [1, 2, 0], [0, 0, 1], [-1, 1, 1], [-1, 0, -1]], np.int8)
    rows = OneHot(code, first.astype(np.int32), sizes.astype(np.int32), 4)
    expected = sum(np.where(code[:, [f]] < 0, 0.0, np.log(theta)[:, first[f] + code[:, f]].T) for f in (0, 2))
    own = np.arange(len(code))[:, None] % C == np.arange(C)
    counted_in = np.broadcast_to(own, (2, len(code), C)) if given_row else None
    drawn = draw(posterior, jax.random.key(0), rows, counted_in)
    np.testing.assert_allclose(drawn, np.broadcast_to(expected, drawn.shape), rtol=0, atol=1e-4)


@jax.jit
def draw(posterior: AveragedLevels, key: jax.Array, rows: OneHot, counted_in: np.ndarray | None) -> jax.Array:
    return posterior.draw_log_likelihood(KeyVariates(key), 2, rows, counted_in)
