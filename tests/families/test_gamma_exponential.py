"""Durations with unknown rates, against SciPy and by integration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import bayesnb as bnb
from bayesnb.families import Durations, EmpiricalDuration, GammaExponential
from bayesnb.families.protocol import pooled
from tests.families.oracles import jitted

A, B = np.array([[0.7, 3.0], [2.0, 12.0]]), np.array([[0.4, 2.0], [5.0, 1.5]])
X = np.array([[0.0, 1.5], [2.25, np.nan], [40.0, 0.125]])
positive = st.floats(0.1, 50.0)
log_evidence, log_predictive = map(jitted, ("log_evidence", "log_predictive"))
cumulants = jitted("log_likelihood_cumulants")


def test_predictive_is_lomax_and_the_evidence_of_one_duration():
    found = np.asarray(log_predictive(GammaExponential(A, B), X))
    for n, c in np.ndindex(3, 2):
        seen = ~np.isnan(X[n])
        lomax = stats.lomax.logpdf(X[n], A[c], scale=B[c])[seen].sum()
        assert found[n, c] == pytest.approx(lomax, rel=1e-13)
        counted = Durations(np.tile(seen * 1.0, (2, 1)), np.tile(np.nan_to_num(X[n]), (2, 1)))
        evidence = np.asarray(log_evidence(GammaExponential(A, B), counted))[c]
        assert evidence.sum() == pytest.approx(lomax, rel=1e-12)


@given(a=positive, b=positive, x=st.lists(st.floats(0.0, 100.0), min_size=1, max_size=4))
def test_evidence_is_the_likelihood_averaged_over_the_prior(a, b, x):
    counted = Durations(np.full((2, 2), float(len(x))), np.full((2, 2), sum(x)))
    found = np.asarray(log_evidence(GammaExponential(np.full((2, 2), a), np.full((2, 2), b)), counted))[0, 0]
    rate = (a + len(x)) / (b + sum(x))

    def joint(log_rate: float) -> float:
        values = np.exp(log_rate)
        likelihood = stats.expon.logpdf(x, scale=1 / values).sum()
        return np.exp(likelihood + stats.gamma.logpdf(values, a, scale=1 / b) + log_rate - found)

    assert integrate.quad(joint, np.log(rate) - 60, np.log(rate) + 5, points=[np.log(rate)], limit=200)[0] == (
        pytest.approx(1.0, rel=1e-6)
    )


@pytest.mark.parametrize("multiplicity", [0.0, 1.0])
def test_cumulants_of_the_log_likelihood_are_those_by_integration(multiplicity, x64):
    for a, b, x in ((0.7, 0.4, 2.25), (12.0, 1.5, 0.0), (3.0, 2.0, 40.0)):
        found = cumulants(GammaExponential(np.array([[a]]), np.array([[b]])), np.array([[x]]), multiplicity)
        rate = stats.gamma(a + multiplicity, scale=1 / (b + multiplicity * x))

        def expected(f, rate=rate):
            # By quantiles: the density has a pole at 0 where a < 1.
            return integrate.quad(lambda q: f(rate.ppf(q)), 0, 1, limit=500)[0]

        def log_density(value, x=x):
            return np.log(value) - value * x

        mean = expected(log_density)
        moments = mean, *(expected(lambda v, k=k, mean=mean: (log_density(v) - mean) ** k) for k in (2, 3))
        for one, other in zip((found.mean, found.variance, found.third), moments, strict=True):
            assert float(one[0, 0]) == pytest.approx(other, rel=1e-5, abs=1e-7)


def test_the_derived_prior_is_worth_a_durations_of_the_mean():
    statistics = Durations(np.array([[3.0, 0.0], [1.0, 0.0]]), np.array([[6.0, 0.0], [2.0, 0.0]]))
    prior = EmpiricalDuration(2.0)(statistics, pooled(statistics))
    np.testing.assert_array_equal(prior.concentration, np.full((2, 2), 2.0))
    np.testing.assert_array_equal(prior.rate, [[4.0, 2.0], [4.0, 2.0]])  # of a feature that was never seen, 1


def test_a_mean_that_underflows_is_taken_for_zero():
    """Three durations of which one is the least double: their mean rounds to 0, and a rate of 0 has no density."""
    statistics = Durations(np.array([[3.0]]), np.array([[5e-324]]))
    prior = EmpiricalDuration(2.0)(statistics, statistics)
    assert (prior.concentration.item(), prior.rate.item()) == (2.0, 2.0)


def test_the_maximum_likelihood_estimate_is_one_over_the_mean(x64):
    counted = Durations(np.array([[4.0]]), np.array([[10.0]]))
    assert float(GammaExponential(A[:1, :1], B[:1, :1]).improper().update(counted).mean().rate[0, 0]) == 0.4


def test_durations_of_zero_make_the_maximum_likelihood_a_point_mass():
    nb = bnb.ExponentialNB(estimate="mle").fit([[0.0, 1.0], [0.0, 2.0], [1.0, 1.0], [2.0, 3.0]], list("aabb"))
    np.testing.assert_array_equal(nb.predict_proba([[0.0, 9.0], [1.5, 0.1]]), [[1, 0], [0, 1]])


def test_evidence_of_one_cell_counted_three_times_is_scipys_in_sequence():
    x = np.array([[0.0, 1.5], [2.25, 40.0]])
    found = jitted("log_evidence_of_cell")(GammaExponential(A[0], B[0]), x, 3.0)
    each = [stats.lomax.logpdf(x, A[0] + i, scale=B[0] + i * x) for i in range(3)]
    np.testing.assert_allclose(found, sum(each), rtol=1e-11)


def test_a_duration_far_beyond_all_others_has_a_density():
    found = log_predictive(GammaExponential(A, np.full((2, 2), 1e-300)), np.where([[1, 0]] * 3, 1e300, np.nan))
    expected = np.log(A[0, 0]) + 300 * np.log(10) - (A[0, 0] + 1) * 600 * np.log(10)
    assert float(found[0, 0]) == pytest.approx(expected, rel=1e-14)
