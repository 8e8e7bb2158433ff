"""The test of the house: a new conjugate family is one new file, and every analysis works on it."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpyro.infer import Predictive
from numpyro.infer.util import log_density
from scipy import stats
from sklearn.base import clone

import bayesnb as bnb
from bayesnb import programs
from bayesnb.checking import prior_predictive
from bayesnb.counting import single_rows
from bayesnb.encoding import RealColumns
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.families import Family, SufficientStatistics
from bayesnb.plots.scaled import scaled
from bayesnb.precision import float64
from bayesnb.uncertainty import site_names
from tests.laws.exponential import ExponentialGamma, WaitingTimes
from tests.programs.monte_carlo import assert_exact, quiet

CLASSES = ["calm", "rush"]


class ExponentialNB(NaiveBayesClassifier):
    """All that an estimator of the new family has to say."""

    def __init__(self, *, prior=None, class_alpha=1.0, class_prior=None, estimate="predictive"):
        self.prior = prior
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.estimate = estimate

    def _columns(self, table: Any) -> tuple:
        n = len(table.names)
        return (RealColumns(tuple(range(n)), table.names, n, WaitingTimes, nonnegative=True),)

    def _block_prior(self, columns: Any, statistics: Any) -> ExponentialGamma:
        shape = statistics.count.shape
        return ExponentialGamma(np.full(shape, 2.0), np.full(shape, 3.0))


times = st.one_of(st.integers(0, 100).map(lambda i: i / 8), st.just(np.nan))


@st.composite
def waits(draw, min_rows=2):
    n = draw(st.integers(min_rows, 8))
    label = draw(arrays(int, n, elements=st.integers(0, 1)))
    return draw(arrays(float, (n, 3), elements=times)), np.array(CLASSES)[label]


def fit(X, y, **parameters):
    return ExponentialNB(**parameters).partial_fit(X, y, CLASSES)


def by_hand(nb, x, c: int) -> float:
    """log p(class, row | data): Lomax is SciPy's, a Gamma mixture of exponentials."""
    a, b = nb.posterior_.blocks[0].concentration[c], nb.posterior_.blocks[0].rate[c]
    alpha = 1.0 + nb.class_count_
    return np.log(alpha[c] / alpha.sum()) + np.nansum(stats.lomax.logpdf(x, a, scale=b))


@given(data=waits())
def test_fit_counts_and_predict_scores(data):
    X, y = data
    nb = fit(X, y)
    for c, label in enumerate(CLASSES):
        np.testing.assert_array_equal(
            nb.posterior_.blocks[0].concentration[c], 2 + (~np.isnan(X[y == label])).sum(axis=0)
        )
        np.testing.assert_allclose(nb.posterior_.blocks[0].rate[c], 3 + np.nansum(X[y == label], axis=0), rtol=1e-14)
    expected = np.array([[by_hand(nb, x, c) for c in (0, 1)] for x in X])
    np.testing.assert_allclose(nb.predict_joint_log_proba(X), expected, rtol=1e-12)
    assert list(nb.predict(X)) == [CLASSES[c] for c in expected.argmax(axis=1)]
    np.testing.assert_allclose(nb.predict_proba(X).sum(axis=1), 1.0, rtol=1e-14)


@given(data=waits(), i=st.integers(1, 7))
def test_partial_fit_and_forget_are_inverse_and_any_chunking_is_the_whole(data, i):
    X, y = data
    i = min(i, len(X) - 1)
    whole, first = fit(X, y), fit(X[:i], y[:i])
    chunked = clone(whole).partial_fit(X[:i], y[:i], CLASSES).partial_fit(X[i:], y[i:])
    forgot = fit(X, y).forget(X[i:], y[i:])
    for a, b in ((chunked, whole), (forgot, first)):
        for mine, theirs in zip(jax.tree.leaves(a.statistics_), jax.tree.leaves(b.statistics_), strict=True):
            np.testing.assert_array_equal(mine, theirs)  # eighths add exactly


def test_em_climbs():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 200)
    X = rng.exponential(np.array([[1.0, 1, 1], [8, 4, 2]])[label])
    y = np.array(CLASSES, dtype=object)[label]
    y[20:] = -1
    em = bnb.fit_em(ExponentialNB(), X, y)
    assert (np.diff(em.objective) >= 0).all()
    assert np.mean(em.estimator.predict(X) == np.array(CLASSES)[label]) > 0.85
    mixture = bnb.NaiveBayesMixture(2, estimator=ExponentialNB(), n_init=2).fit(X)
    assert np.isfinite(mixture.bic(X))


def test_it_offers_what_the_protocol_says_a_family_offers():
    family = ExponentialGamma(np.ones((2, 3)), np.ones((2, 3)))
    promised = {name for name in vars(Family) if not name.startswith("_")} - {"register"}
    assert promised <= set(dir(family))
    assert {name for name in vars(SufficientStatistics) if not name.startswith("_")} <= set(dir(WaitingTimes))


@given(data=waits())
def test_chain_rule_and_evidence(data):
    X, y = data
    nb = None
    total = 0.0
    for x, label in zip(X, y, strict=True):
        if nb is None:
            nb = fit(x[None], [label]).forget(x[None], [label])
            assert nb.log_evidence_ == 0
        total += by_hand(nb, x, CLASSES.index(label))
        assert (
            abs(nb.predict_joint_log_proba(x[None])[0, CLASSES.index(label)] - by_hand(nb, x, CLASSES.index(label)))
            < 1e-11
        )
        nb.partial_fit(x[None], [label])
    assert abs(total - fit(X, y).log_evidence_) <= 1e-9 * max(1.0, abs(total))


def test_leave_one_out_and_averaging_over_features():
    X = np.array([[1.0, 2.0], [3.0, np.nan], [0.5, 9.0], [0.25, 4.0], [7.0, 0.5]])
    y = ["calm", "calm", "rush", "calm", "rush"]
    every = np.arange(len(X))
    for nb in (fit(X, y), bnb.FeatureAveragedNB(ExponentialNB()).partial_fit(X, y, CLASSES)):
        found = bnb.loo(nb, X, y)
        for i in every:
            others = clone(nb).partial_fit(X[every != i], np.array(y)[every != i], CLASSES)
            np.testing.assert_allclose(found.log_proba[i], others.predict_log_proba(X[[i]])[0], rtol=1e-10)
            expected = nb.log_evidence_ - others.log_evidence_
            np.testing.assert_allclose(found.row_pointwise[i], expected, rtol=1e-10)


@pytest.mark.parametrize("estimate", ["mle", "map", "mean", "predictive"])
def test_all_four_estimates_are_read_from_it(estimate):
    X, y = np.array([[1.0, 2.0], [3.0, 4.0], [0.5, 9.0]]), ["calm", "calm", "rush"]
    nb = ExponentialNB(estimate=estimate).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(nb.predict_proba(X)).all()
    rate = {"mle": 2 / 4, "map": (2 + 2 - 1) / (3 + 4), "mean": (2 + 2) / (3 + 4)}.get(estimate)
    if rate is not None:
        other = nb.predict_joint_log_proba([[1.0, np.nan], [2.0, np.nan]])[:, 0]
        assert abs(other[0] - other[1] - rate) < 1e-14


def test_weights_a_known_class_prior_decay_and_the_number_of_parameters_work_too():
    X, y = np.array([[1.0], [2.0]]), ["calm", "rush"]
    nb = ExponentialNB(class_prior=[0.25, 0.75]).fit(X, y, sample_weight=[2, 1]).decay(0.5)
    np.testing.assert_array_equal(nb.statistics_.blocks[0].total, [[1.0], [1.0]])
    np.testing.assert_allclose(nb.predict_proba([[np.nan]]), [[0.25, 0.75]])
    assert nb.n_parameters_ == 2
    with pytest.raises(ValueError, match="negative"):
        nb.forget([[50.0]], ["calm"])


def test_the_posterior_analysis_works_on_it():
    rng = np.random.default_rng(0)
    y = np.repeat(["calm", "rush"], 20)
    X = rng.exponential(np.where(y == "calm", 3.0, 1.0)[:, None], (40, 2))
    X[3, 1] = np.nan
    nb = fit(X, y)
    table = bnb.parameter_table(nb).query("feature == '0' and level == 'rate'")
    a, b = 2 + 20, 3 + X[y == "calm", 0].sum()
    np.testing.assert_allclose(table[["lower", "upper"]].iloc[0], stats.gamma.ppf([0.05, 0.95], a, scale=1 / b))
    drawn = bnb.posterior_draws(nb, draws=4000)["rate"]
    assert stats.kstest(drawn[:, 0, 0], stats.gamma(a, scale=1 / b).cdf).pvalue > 1e-4
    for informed in ("row", "data"):
        moments = bnb.predict_interval(nb, X[:5], given=informed)
        draws = bnb.predict_interval(nb, X[:5], given=informed, method="draws", draws=4000)
        np.testing.assert_allclose(moments, draws, atol=0.05)
        mean, sd = bnb.log_odds_moments(nb, X[:5], given=informed)
        assert np.isfinite(mean).all()
        assert (sd[:, 1] > 0).all()
    assert (bnb.decompose_uncertainty(nb, X)["epistemic"] >= -1e-12).all()
    sensitivity = bnb.prior_sensitivity(nb, X[:5], steps=3)
    assert (sensitivity["lower"] <= sensitivity["upper"]).all()
    assert scaled(nb, 0.9).parameter == "rate"  # what figures show


def test_its_prior_predictive_is_that_of_a_simulation():
    nb = ExponentialNB(class_prior=[0.5, 0.5]).fit(*some_waits())
    found = prior_predictive(nb, draws=4000)
    prior, rng = nb.prior_.blocks[0], np.random.default_rng(5)
    rate = rng.gamma(prior.concentration, 1 / np.asarray(prior.rate), (4000, 2, 2))
    x = stats.expon(scale=1 / rate[:, 0]).rvs(random_state=rng)  # classes are alike before any data
    density = stats.expon.pdf(x[:, None], scale=1 / rate).prod(axis=2)
    expected = density[:, 0] / density.sum(axis=1)
    assert abs(found.mean() - expected.mean()) < 4 * np.hypot(found.std(), expected.std()) / np.sqrt(4000)


@given(data=waits())
@settings(max_examples=5)
def test_law_2_holds_for_its_numpyro_program(data):
    """For rows and for their statistics; and SciPy says the same of the likelihood."""
    X, y = data[0] + 0.125, data[1]  # NumPyro's exponential distribution is one of positive numbers
    nb = fit(X, y)
    sites, drawn = site_names(nb.encoding_, nb.prior_), bnb.posterior_draws(nb, 20)
    rows, n = nb.fitted_.encode(X)
    label = np.array([CLASSES.index(c) for c in y])
    forms = (
        partial(programs.naive_bayes, nb.prior_, single_rows(nb.encoding_, rows, n), label, sites=sites),
        partial(programs.from_statistics, nb.prior_, nb.statistics_, sites=sites),
        partial(programs.parameters, nb.prior_, sites),
        partial(programs.parameters, nb.posterior_, sites),
    )
    with jax.enable_x64(True):
        of_one = jax.vmap(lambda theta: [log_density(form, (), {}, theta)[0] for form in forms])
        row, counted, prior, posterior = map(np.asarray, jax.jit(of_one)(drawn))
    scale = max(1.0, abs(nb.log_evidence_))
    np.testing.assert_allclose(row - posterior, nb.log_evidence_, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(counted, row, rtol=0, atol=1e-9 * scale)
    by_scipy = np.log(drawn["class_prob"][:, label]).sum(axis=1)
    by_scipy += np.nansum(stats.expon.logpdf(X, scale=1 / drawn["rate"][:, label]), axis=(1, 2))
    np.testing.assert_allclose(row - prior, by_scipy, rtol=1e-9, atol=1e-9)


def some_waits() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = np.repeat(CLASSES, 20)
    X = rng.exponential(np.where(y == "calm", 3.0, 1.0)[:, None], (40, 2))
    X[3, 1] = np.nan
    return X, y


def test_nuts_agrees_with_its_exact_posterior():
    nb = fit(*some_waits())
    posterior = nb.posterior_.blocks[0]
    gamma = stats.gamma(posterior.concentration, scale=1 / posterior.rate)
    assert_exact(quiet(nb), {"rate": gamma, "class_prob": stats.beta([21, 21], 21)})


def test_its_program_simulates():
    nb = fit(*some_waits())
    program = partial(programs.naive_bayes, nb.posterior_, sites=site_names(nb.encoding_, nb.prior_), n_rows=1)
    rows = float64(Predictive(program, num_samples=4000, parallel=True))(jax.random.key(0))
    for c in range(2):
        a, b = nb.posterior_.blocks[0].concentration[c], nb.posterior_.blocks[0].rate[c]
        own = rows["x_0"][rows["label"][:, 0] == c][:, 0]
        for j in range(2):
            assert stats.kstest(own[:, j], stats.lomax(a[j], scale=b[j]).cdf).pvalue > 1e-4


def test_what_it_has_no_hyperprior_for_stays_as_it_is():
    """The concentration of the classes is unknown, the prior of the rates is that of the estimator."""
    nb = fit(*some_waits())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = bnb.run_nuts(nb, "pooled", draws=300, warmup=100, chains=1, progress=False)["posterior"]
    assert set(posterior.data_vars) == {"class_alpha", "class_prob", "rate"}
    a, b = nb.posterior_.blocks[0].concentration, nb.posterior_.blocks[0].rate
    for c, j in np.ndindex(a.shape):
        assert stats.kstest(posterior["rate"][0, :, c, j], stats.gamma(a[c, j], scale=1 / b[c, j]).cdf).pvalue > 1e-4
