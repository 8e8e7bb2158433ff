"""Rows of numbers, cut into pieces, against NumPy on all rows at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesnb.families import Complete
from bayesnb.families.numbers import map_in_pieces, numbers, sum_by_class


def of_rows(rows):
    values = numbers(rows)
    return jnp.stack([jnp.sum(values, axis=1), jnp.sum(values * values, axis=1)], axis=1)


@pytest.mark.parametrize("shape", [(820, 10), (3, 10), (1, 20_000), (0, 10), (5, 0)])
def test_pieces_are_the_whole(shape):
    x = np.random.default_rng(0).normal(size=shape)
    expected = np.stack([x.sum(axis=1), (x * x).sum(axis=1)], axis=1)
    for found in jax.jit(lambda x: [map_in_pieces(of_rows, rows, 2) for rows in (x, Complete(x))])(x):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("dtype", [float, np.float32, np.uint8])
@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_by_class_are_those_over_the_rows_in_both_namespaces(missing, dtype, order):
    rng = np.random.default_rng(0)
    x, label, weight = rng.integers(0, 9, (50, 3)).astype(dtype, order=order), rng.integers(0, 4, 50), rng.random(50)
    weight[::7] = 0.0
    label[label == 2] = 1  # a class without rows
    if np.issubdtype(dtype, np.floating):
        x[rng.random(x.shape) < missing] = np.nan
    centre = rng.normal(size=(4, 3))
    deviation = x - centre[label]
    expected = [
        [np.nansum(weight[label == c, None] * terms[label == c], axis=0) for c in range(4)]
        for terms in (np.where(np.isnan(x), 0.0, 1.0), deviation, deviation**2)
    ]
    for found in (sum_by_class(x, label, weight, centre), jax.jit(sum_by_class)(x, label, weight, centre)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_rows_that_pad_a_block_do_not_count_however_far_they_are_from_the_centre():
    x, label = np.array([[1e200], [1e200], [0.0]]), np.zeros(3, int)
    with np.errstate(over="raise", invalid="raise"):
        count, total, square = sum_by_class(x, label, np.array([1.0, 1.0, 0.0]), np.array([[1e200]]))
    assert (count, total, square) == (2.0, 0.0, 0.0)
