"""A class prior that is known does not learn."""

import jax
import numpy as np
import pytest

from bayesnb.families import Known, LevelCounts

P = np.array([0.2, 0.5, 0.3])
KNOWN = Known(np.log(P)[None])
COUNTS = LevelCounts(np.array([[3.0, 0.0, 2.5]]))


def test_nothing_changes_it():
    for reading in (KNOWN.update(COUNTS), KNOWN.improper(), KNOWN.improper().update(COUNTS)):
        for estimate in (reading.mean(), reading.mode(), reading.penalized_mle()):
            np.testing.assert_allclose(estimate.theta[0], P, rtol=1e-14)
    np.testing.assert_array_equal(KNOWN.variance()["theta"], 0.0)


def test_draws_are_all_the_same():
    np.testing.assert_allclose(KNOWN.sample(jax.random.key(0), 7).theta, np.broadcast_to(P, (7, 1, 3)), rtol=1e-14)


def test_chain_rule():
    total = 0.0
    counts = LevelCounts(np.zeros((1, 3)))
    for label in (0, 2, 2, 1, 0):
        more = counts.merge(LevelCounts(np.eye(3)[[label]]))
        gain = float(np.sum(KNOWN.log_evidence(more) - KNOWN.log_evidence(counts)))
        assert gain == pytest.approx(np.log(P[label]), abs=1e-14)
        total += gain
        counts = more
    assert float(KNOWN.log_evidence(counts)[0]) == pytest.approx(total, abs=1e-14)


def test_a_class_of_probability_zero_costs_nothing_until_it_occurs():
    with np.errstate(divide="ignore"):
        known = Known(np.log([[0.0, 1.0]]))
    assert float(known.log_evidence(LevelCounts(np.array([[0.0, 5.0]])))[0]) == 0
    assert float(known.log_evidence(LevelCounts(np.array([[1.0, 5.0]])))[0]) == -np.inf
