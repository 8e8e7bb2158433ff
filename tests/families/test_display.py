"""Text of distributions and statistics: shapes and ranges of their arrays."""

import numpy as np
import pytest

from bayesnb.families import Moments

RANGE = np.array([[2.0, np.nan, 0.5], [1.0, 7.0, 3.0]])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (RANGE, "(2, 3) from 0.5 to 7"),
        (np.full((2, 3), 4.0), "(2, 3) of 4"),
        (np.full((2, 3), np.nan), "(2, 3)"),
        (np.zeros((0, 3)), "(0, 3)"),
        (np.array(0.25), "0.25"),
        (np.float64(3.0), "3"),
        (None, "None"),
    ],
)
def test_an_array_is_its_shape_and_range_and_a_number_itself(value, text):
    assert repr(Moments(RANGE, value, value)) == f"Moments(count=(2, 3) from 0.5 to 7, mean={text}, m2={text})"
