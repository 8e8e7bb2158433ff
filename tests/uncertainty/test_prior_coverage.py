"""Coverage of row intervals under the default Gaussian prior, whose variance comes from the data."""

import numpy as np
import pytest
from scipy.special import expit

import bayesnb as bnb

pytestmark = pytest.mark.slow("simulates many data sets or draws")


@pytest.mark.parametrize("separation", [0, 2, 4, 6])
def test_intervals_of_rows_cover_however_far_apart_the_classes_lie(separation):
    """1,500 sets of two classes of ten rows, each with a row of its own: a simulation, so a slow test."""
    rng, inside, sets = np.random.default_rng(separation), 0, 1500
    label = np.repeat([0, 1], 10)
    for _ in range(sets):
        x, row = rng.normal(label * separation), rng.normal(rng.integers(2) * separation)
        nb = bnb.GaussianNB(class_prior=[0.5, 0.5]).fit(x[:, None], label)
        lower, upper = bnb.predict_interval(nb, [[row]], 0.9)
        # log P(0 | row)/P(1 | row) = [(row - d)² - row²]/2 with means 0 and d, and variance 1
        inside += bool(lower[0, 0] <= expit(separation * (separation / 2 - row)) <= upper[0, 0])
    assert 0.87 <= inside / sets <= 0.93
