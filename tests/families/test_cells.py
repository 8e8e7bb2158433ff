"""Rows of numbers, cut into pieces, against NumPy on all rows at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesnb.families import Complete
from bayesnb.families.number_rows import map_in_pieces, numbers


def of_rows(rows):
    values = numbers(rows)
    return jnp.stack([jnp.sum(values, axis=1), jnp.sum(values * values, axis=1)], axis=1)


@pytest.mark.parametrize("shape", [(820, 10), (3, 10), (1, 20_000), (0, 10), (5, 0)])
def test_pieces_are_the_whole(shape):
    x = np.random.default_rng(0).normal(size=shape)
    expected = np.stack([x.sum(axis=1), (x * x).sum(axis=1)], axis=1)
    for found in jax.jit(lambda x: [map_in_pieces(of_rows, rows, 2) for rows in (x, Complete(x))])(x):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
