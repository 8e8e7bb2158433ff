"""Priors from intervals: quantiles by SciPy, laws of the families, and intervals that no distribution has."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

import bayesnb as bnb
from tests.raises import refused

OF_FAMILY = {
    "beta": lambda a, b: stats.beta(a, b),
    "normal": lambda mean, sd: stats.norm(mean, sd),
    "gamma": lambda concentration, rate: stats.gamma(concentration, scale=1 / rate),
}
probs = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
unit = st.floats(1e-6, 1 - 1e-6)


def require_interval(prior, lower, upper, prob, family):
    """SciPy's quantiles are the ends, and its tails the asked ones."""
    distribution, tail = OF_FAMILY[family](*prior), (1 - prob) / 2
    np.testing.assert_allclose(distribution.ppf([tail, 1 - tail]), [lower, upper], rtol=1e-6)
    np.testing.assert_allclose([distribution.cdf(lower), distribution.sf(upper)], tail, rtol=1e-6)
    np.testing.assert_allclose([prior.mean, prior.sd], [distribution.mean(), distribution.std()], rtol=1e-12)


@given(ends=st.tuples(unit, unit), prob=probs)
def test_beta_quantiles_are_the_ends_and_complements_exchange_the_levels(ends, prob):
    lower, upper = sorted(ends)
    assume(upper - lower > 1e-5)
    a, b = prior = bnb.prior_from_interval(lower, upper, prob)
    require_interval(prior, lower, upper, prob, "beta")
    assume(1 - upper > 0.01)  # else the complement of an end has lost its digits
    np.testing.assert_allclose([*bnb.prior_from_interval(1 - upper, 1 - lower, prob)], [b, a], rtol=1e-6)


@given(lower=st.floats(1e-4, 1e4), ratio=st.floats(1.0001, 1e4), unit=st.floats(1e-9, 1e9), prob=probs)
def test_gamma_quantiles_are_the_ends_and_the_rate_has_their_unit(lower, ratio, unit, prob):
    concentration, rate = prior = bnb.prior_from_interval(lower, lower * ratio, prob, "gamma")
    require_interval(prior, lower, lower * ratio, prob, "gamma")
    scaled = bnb.prior_from_interval(lower * unit, lower * ratio * unit, prob, "gamma")
    np.testing.assert_allclose([*scaled], [concentration, rate / unit], rtol=1e-6)


@given(lower=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6), prob=probs)
def test_normal_quantiles_are_the_ends(lower, width, prob):
    upper = lower + width
    mean, sd = bnb.prior_from_interval(lower, upper, prob, family="normal")
    assert mean == pytest.approx((lower + upper) / 2, rel=1e-12, abs=1e-9)
    ends = stats.norm.ppf([(1 - prob) / 2, (1 + prob) / 2], mean, sd)
    np.testing.assert_allclose(ends, [lower, upper], rtol=0, atol=1e-6 * width)


@given(a=st.floats(0.05, 1e6), b=st.floats(0.05, 1e6), prob=probs, family=st.sampled_from(["beta", "gamma"]))
def test_the_parameters_behind_an_interval_are_found_again(a, b, prob, family):
    lower, upper = OF_FAMILY[family](a, b).ppf([(1 - prob) / 2, (1 + prob) / 2])
    assume(lower > 1e-300 and (family == "gamma" or upper < 1 - 1e-6))
    np.testing.assert_allclose([*bnb.prior_from_interval(lower, upper, prob, family)], [a, b], rtol=1e-5)


EXTREMES = [
    (1e-300, 1 - 1e-16, 0.95, "beta"),
    (1e-12, 1e-9, 0.95, "beta"),
    (0.5, 0.50001, 0.95, "beta"),
    (1 - 1e-9, 1 - 1e-12, 0.9, "beta"),
    (0.2, 0.8, 1e-3, "beta"),
    (0.2, 0.8, 1 - 1e-12, "beta"),
    (1e-300, 1.0, 0.95, "gamma"),
    (1.0, 1.00001, 0.95, "gamma"),
    (1e-3, 1e70, 0.95, "gamma"),
    (1.0, 2.0, 1e-3, "gamma"),
    (1.0, 3.0, 1 - 1e-12, "gamma"),
    (-1e70, 1e70, 1e-3, "normal"),
]


@pytest.mark.parametrize(("lower", "upper", "prob", "family"), EXTREMES)
def test_extreme_intervals_are_as_accurate(lower, upper, prob, family):
    prior = bnb.prior_from_interval(lower, upper, prob, family)
    require_interval(prior, lower, upper, prob, family)


def test_what_it_refuses():
    ask = bnb.prior_from_interval
    refused("lower=0.9 must be below upper=0.7", ask, 0.9, 0.7)
    refused("lower=0.5 must be below upper=0.5", ask, 0.5, 0.5)
    refused("upper=92 must be above 0 and below 1, for a beta", ask, 75, 92)
    refused("lower=0 must be above 0 and below 1, for a beta", ask, 0, 0.5)
    refused("lower=-1 must be above 0, for a gamma", ask, -1, 2, 0.9, "gamma")
    refused("upper=nan must be a number", ask, 0.1, float("nan"))
    refused("prob=95 must be a number between 0 and 1", ask, 0.1, 0.2, 95)
    refused("family='cauchy' is unknown; use 'beta' or 'normal' or 'gamma'", ask, 0.1, 0.2, 0.9, "cauchy")
    refused("No beta distribution .* to an accuracy of 1e-06: the interval is too narrow", ask, 0.5, 0.5 + 1e-9)
    refused("No gamma distribution", ask, 1.0, 1.0 + 1e-9, 0.9, "gamma")
    refused("No gamma distribution", ask, 1.0, 1000.0, 1e-3, "gamma")
    refused("No gamma distribution", ask, 1.0, 2.0, 1e-17, "gamma")
    refused("No normal distribution", ask, 1.0, 2.0, 1e-17, "normal")
    refused("No normal distribution", ask, 1e16, 1e16 + 2, 0.9, "normal")


def test_parameters_of_a_class_without_rows_have_the_interval():
    """Its posterior is the prior, whose quantiles are in the parameter table."""
    mean, sd = bnb.prior_from_interval(165, 180, family="normal")
    yes, no = bnb.prior_from_interval(0.75, 0.92)
    nb = bnb.MixedNB(
        alpha={"smoker": {"yes": yes, "no": no}},
        poisson=["visits"],
        poisson_prior=bnb.GammaPoisson(*bnb.prior_from_interval(2, 10, family="gamma")),
        gaussian=["height"],
        gaussian_prior=bnb.NormalInverseGamma(mean, 50 / sd**2, 1e6, 50e6),  # the variance is known to be 50
    )
    X = pd.DataFrame({"smoker": ["yes", "no"], "visits": [3, 4], "height": [170.0, 171.0]})
    table = bnb.parameter_table(nb.fit(X, ["a", "b"], sample_weight=[0, 1]), prob=0.95)
    found = table[(table["class"] == "a") & table["level"].isin(["yes", "rate", "mu"])].set_index("feature")
    for feature, ends in {"smoker": (0.75, 0.92), "visits": (2, 10), "height": (165, 180)}.items():
        np.testing.assert_allclose(found.loc[feature, ["lower", "upper"]].astype(float), ends, rtol=1e-6)
