"""Row intervals and moments in limiting cases: certain, impossible, distant or improper."""

import numpy as np
import pytest
from scipy.special import xlogy
from scipy.stats import norm

import bayesnb as bnb
from bayesnb.uncertainty import (
    ImproperPosteriorError,
    decompose_uncertainty,
    log_odds_moments,
    posterior_draws,
    predict_interval,
)
from tests.raises import refused
from tests.strategies import thorough, variants
from tests.uncertainty.test_rows import DRAWS, each_given, each_method, problem


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@each_given
@each_method
@pytest.mark.parametrize("class_prior", [[0.3, 0.7], [0.5, 0.5], [1.0, 0.0]])
@pytest.mark.filterwarnings("error")
def test_what_is_certain_has_no_width(class_prior, method, given):
    """A known class prior and a row without a cell: P(c | row, θ) is that prior. The most probable class of
    [½, ½] is the first, as `predict` says."""
    nb = bnb.CategoricalNB(class_prior=class_prior).fit([["a"], ["b"], ["a"]], [0, 0, 1])
    row = np.array([[None]], dtype=object)
    ends = predict_interval(nb, row, method=method, given=given)
    np.testing.assert_allclose(ends, [[class_prior]] * 2, rtol=1e-12)
    found = decompose_uncertainty(nb, row, method=method, given=given).iloc[0]
    entropy = -xlogy(class_prior, class_prior).sum()
    np.testing.assert_allclose(found, [entropy, entropy, 0.0, 1.0], rtol=0, atol=1e-12)


@pytest.mark.slow("other variants compile kernels of their own")
@each_given
@each_method
@pytest.mark.parametrize("n_classes", thorough([2, 3], [3]))
@pytest.mark.filterwarnings("error")
def test_a_class_of_probability_zero_takes_no_part(n_classes, method, given):
    """The result is that of the other classes alone, even if the row is likely under the class."""
    y = [0, 0, 0, 1, 1, 1]
    X = np.array([["a"], ["b"], ["a"], ["b"], ["b"], ["a"]])
    if n_classes == 2:
        expected = np.ones((2, 2, 1))
        nb = bnb.CategoricalNB(class_prior=[1.0, 0.0]).fit(X, y)
    else:
        both = bnb.CategoricalNB(class_prior=[0.4, 0.6]).fit(X, y)
        expected = np.array(predict_interval(both, X[:2], method=method, given=given, draws=DRAWS))
        nb = bnb.CategoricalNB(class_prior=[0.4, 0.6, 0.0]).partial_fit(X, y, classes=[0, 1, 2])
    ends = np.array(predict_interval(nb, X[:2], method=method, given=given, draws=DRAWS))
    assert not ends[..., -1].any()
    np.testing.assert_allclose(ends[..., :-1], expected, atol=0.03)
    found = decompose_uncertainty(nb, X[:2], method=method, given=given)
    assert np.isfinite(found.to_numpy()).all()
    assert (found["epistemic"] >= -1e-12).all()
    mean, sd = log_odds_moments(nb, X[:2], given=given)
    assert (mean[:, -1] == -np.inf).all()
    assert np.isfinite(mean[:, :-1]).all()
    assert np.isfinite(sd[:, :-1]).all()


@pytest.mark.slow("compiles kernels of its own")
@each_given
@each_method
@pytest.mark.filterwarnings("error")
def test_known_class_probabilities_do_not_learn_from_the_row(given, method):
    nb = bnb.BernoulliNB(class_prior=[0.2, 0.8]).fit([[0], [1], [1], [0], [1]], [0, 0, 1, 1, 1])
    row = np.array([[1.0]])
    theta = posterior_draws(nb, DRAWS)["theta"][:, :, 1]
    joint = theta * [0.2, 0.8]
    p = joint[:, 1] / joint.sum(axis=1)
    weight = joint.sum(axis=1) if given == "row" else np.ones(DRAWS)
    for end, q in zip(predict_interval(nb, row, method=method, given=given, draws=4000), (0.05, 0.95), strict=True):
        assert np.average(p < end[0, 1], weights=weight) == pytest.approx(q, abs=0.02)


@pytest.mark.slow("compiles kernels of its own")
@each_given
@each_method
def test_a_single_class_is_certain(method, given):
    nb = bnb.GaussianNB().fit([[1.0], [2.0], [4.0]], ["only"] * 3)
    X = np.array([[0.0], [np.nan]])
    np.testing.assert_array_equal(predict_interval(nb, X, method=method, given=given), np.ones((2, 2, 1)))
    found = decompose_uncertainty(nb, X, method=method, given=given)
    np.testing.assert_array_equal(found, [[0.0, 0.0, 0.0, 1.0]] * 2)
    np.testing.assert_array_equal(log_odds_moments(nb, X, given=given), np.zeros((2, 2, 1)))


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.filterwarnings("error")
def test_a_row_far_from_everything():
    """Log odds of a million with an sd of as many, and all on one side: that takes the third moment.

    Class 0 has a tiny variance, class 1 a large one: P(1 | row, θ) is 1 whatever θ. Were the log odds normal, it
    would not be for 4% of them.
    """
    X = np.array([[0.0], [1e-3], [5.0], [5.001]])
    nb = bnb.GaussianNB(prior=bnb.NormalInverseGamma(0.0, 1.0, 2.0, 1e-6)).fit(X, [0, 0, 1, 1])
    row = np.array([[2.5]])
    mean, sd = log_odds_moments(nb, row)
    assert mean[0, 1] > 1e5
    assert norm.cdf(mean[0, 1] / sd[0, 1]) < 0.97
    for method in ("moments", "draws"):
        found = decompose_uncertainty(nb, row, given="data", method=method)
        assert found["p_top"][0] == pytest.approx(1.0, abs=1e-6)
        assert predict_interval(nb, row, given="data", method=method)[0][0, 1] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow("compiles kernels of its own")
@each_given
def test_small_concentrations(given):
    """A class without rows and alpha = 0.001: gamma variates underflow, the answer does not."""
    nb = bnb.MultinomialNB(alpha=1e-3).partial_fit(np.array([[3, 0, 1], [0, 2, 2]]), [0, 0], classes=[0, 1])
    X = np.array([[1, 1, 0], [0, 0, 0], [2, 0, 1]])
    lower, upper = predict_interval(nb, X, method="draws", given=given)
    assert (lower <= upper).all()
    assert np.isfinite(decompose_uncertainty(nb, X, method="draws", given=given)).all(axis=None)


@pytest.mark.slow("a second view of what quick tests see")
def test_against_is_a_label():
    nb = bnb.GaussianNB().fit([[0.0], [1.0], [2.0], [3.0], [7.0], [9.0]], ["b", "b", "c", "c", "a", "a"])
    rows = [[1.5], [8.0]]
    first, last = log_odds_moments(nb, rows), log_odds_moments(nb, rows, against="c")
    np.testing.assert_allclose(first[0][:, 2], -last[0][:, 0], rtol=1e-12)
    np.testing.assert_allclose(first[1][:, 2], last[1][:, 0], rtol=1e-12)
    np.testing.assert_array_equal(first[0], log_odds_moments(nb, rows, against="a")[0])
    refused("against='z' is not a class", log_odds_moments, nb, rows, against="z")


@variants("function", [predict_interval, decompose_uncertainty, log_odds_moments])
def test_improper_posteriors(function):
    nb = bnb.CategoricalNB(alpha=0).fit([["a"], ["b"], ["a"]], ["x", "x", "y"])
    refused(r"class 'y', feature '0', 'b'", function, nb, [["a"]], error=ImproperPosteriorError)


@variants(
    ("function", "options", "message"),
    [
        (predict_interval, {"prob": 0.0}, "prob=0.0 must be"),
        (predict_interval, {"prob": 1}, "prob=1 must be"),
        (predict_interval, {"prob": np.nan}, "prob=nan must be"),
        (predict_interval, {"method": "exact"}, "method='exact' is unknown; use 'moments' or 'draws'"),
        (predict_interval, {"given": "X"}, "given='X' is unknown; use 'row' or 'data'"),
        (predict_interval, {"draws": 0}, "draws=0 must be a positive integer"),
        (decompose_uncertainty, {"method": None}, "method=None is unknown"),
        (decompose_uncertainty, {"given": "rows"}, "given='rows' is unknown"),
        (decompose_uncertainty, {"draws": 1.5}, "draws=1.5 must be a positive integer"),
        (log_odds_moments, {"given": True}, "given=True is unknown"),
    ],
)
def test_arguments_are_checked(function, options, message):
    nb, X = problem("gaussian", 2)
    refused(message, function, nb, X, **options)
