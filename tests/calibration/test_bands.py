"""Simultaneous bands and p-values of ranks, against enumeration and simulated frequencies."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from tests.calibration.bands import p_value, rank


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize(("n_sets", "n_draws"), [(4, 3), (5, 2), (3, 5), (6, 1)])
def test_p_value_is_the_share_of_outcomes_that_are_no_less_extreme(n_sets, n_draws):
    """Extreme is the smallest binomial tail, over all points, of the number of ranks up to there."""
    outcomes = list(product(range(n_draws + 1), repeat=n_sets))

    def extremity(ranks):
        tails = []
        for k in range(n_draws):
            below = sum(r <= k for r in ranks)
            of_one = stats.binom(n_sets, (k + 1) / (n_draws + 1))
            tails.append(min(of_one.pmf(np.arange(below + 1)).sum(), of_one.pmf(np.arange(below, n_sets + 1)).sum()))
        return min(tails)

    extremities = {tuple(sorted(ranks)): extremity(ranks) for ranks in outcomes}
    every = np.array([extremities[tuple(sorted(ranks))] for ranks in outcomes])
    for ranks, own in extremities.items():
        assert p_value(np.array(ranks), n_draws) == pytest.approx(np.mean(every <= own * (1 + 1e-9)), rel=1e-9)


@pytest.mark.slow("simulates many data sets or draws")
def test_uniform_ranks_leave_the_band_as_often_as_they_may():
    """At 10% in 2,000 simulations of 200 ranks, within four standard errors; less where ranks are discrete."""
    rng = np.random.default_rng(0)
    p = np.array([p_value(rng.integers(0, 20, 200), 19) for _ in range(2_000)])
    assert 0.06 < np.mean(p <= 0.1) < 0.1 + 4 * np.sqrt(0.1 * 0.9 / 2_000)


@pytest.mark.parametrize("power", [0.7, 1.4])
def test_ranks_that_are_shifted_or_too_central_are_found(power):
    rng = np.random.default_rng(1)
    u = rng.random(2_000)
    for skewed in (u**power, 0.5 + np.sign(u - 0.5) * 0.5 * abs(2 * u - 1) ** power):
        assert p_value((skewed * 100).astype(int), 99) < 1e-4


def test_ties_are_broken_at_random():
    """The rank of a constant among equal draws is uniform."""
    rng = np.random.default_rng(2)
    ranks = rank(rng, np.zeros(2_000), np.zeros((9, 2_000)))
    assert stats.chisquare(np.bincount(ranks, minlength=10)).pvalue > 1e-3
    assert (rank(rng, np.ones(5), np.zeros((9, 5))) == 9).all()
