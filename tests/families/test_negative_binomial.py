"""The beta–negative binomial against SciPy, quadrature and sums over counts."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.special import betaln, expit, gammaln, log_expit, logsumexp

import bayesnb as bnb
from bayesnb import kernels
from bayesnb.families import BetaNegativeBinomial, EmpiricalCounts, GammaPoisson, Tails, Totals, with_dispersion
from bayesnb.families.negative_binomial import DISPERSIONS
from bayesnb.uncertainty.variates import HostVariates
from tests.raises import refused

A, B = np.array([[0.7, 3.0], [12.0, 1.0]]), np.array([[0.1, 2.0], [5.0, 1.0]])
PRIOR = BetaNegativeBinomial(A, B)
RNG = np.random.default_rng(4)
X = np.where(RNG.random((30, 2)) < 0.1, np.nan, RNG.negative_binomial(1.2, 0.3, (30, 2)).astype(float))
LABEL = np.arange(30) % 2
cells = arrays(float, (6, 2), elements=st.one_of(st.integers(0, 40).map(float), st.just(np.nan)))
labels = arrays(int, 6, elements=st.integers(0, 1))


def count(x, label, weight=None) -> Tails:
    return Tails.no_rows((2, 2)).observe(x, label, np.ones(len(x)) if weight is None else weight)


def prior_of_dispersions() -> np.ndarray:
    """Log probabilities of the grid when 1/√r is half-Cauchy: log r has the density √r/(1 + r), up to a factor."""
    log_prior = np.log(np.sqrt(DISPERSIONS) / (1 + DISPERSIONS))
    return log_prior - logsumexp(log_prior)


# -- tail counts -----------------------------------------------------------------------------------


@given(x=cells, label=labels, more=cells, other=labels)
def test_tail_counts_of_batches_are_those_of_all_rows_to_the_bit(x, label, more, other):
    first, second = count(x, label), count(more, other)
    together = count(np.concatenate([x, more]), np.concatenate([label, other]))
    size = together.tail.shape[-1]
    for merged in (first.merge(second), second.merge(first)):
        for one, expected in zip(jax.tree.leaves(merged), jax.tree.leaves(together), strict=True):
            np.testing.assert_array_equal(one, expected)
    for one, expected in zip(
        jax.tree.leaves(together.remove(second)), jax.tree.leaves(first.with_room(size)), strict=True
    ):
        np.testing.assert_array_equal(one, expected)
    for c, f in np.ndindex(2, 2):
        values = x[label == c, f]
        expected = [(values > k).sum() for k in range(first.tail.shape[-1])]
        np.testing.assert_array_equal(first.tail[c, f], expected)
        assert first.total[c, f] == np.nansum(values) == first.tail[c, f].sum()


def test_tails_give_the_gamma_functions_of_every_dispersion():
    tails, r = count(X, LABEL, np.arange(30.0)), np.array([1e-3, 0.5, 1.5, 1e4])
    for c, f in np.ndindex(2, 2):
        rows = (c == LABEL) & ~np.isnan(X[:, f])
        expected = np.arange(30.0)[rows] @ (gammaln(X[rows, f, None] + r) - gammaln(r))
        np.testing.assert_allclose(tails.log_rising(r)[c, f], expected, rtol=1e-12)


def test_weightings_and_traced_rows():
    weight = RNG.integers(0, 3, (4, 30)).astype(float)
    several = count(X, LABEL, weight)
    for s in range(4):
        np.testing.assert_array_equal(several.tail[s], count(X, LABEL, weight[s]).tail)
    observe = jax.jit(lambda tails, x: tails.observe(x, LABEL, np.ones(30)).tail)
    empty, expected = Tails.no_rows((2, 2)), count(X, LABEL).with_room(64).tail
    np.testing.assert_array_equal(observe(empty.with_room(64), X), expected)
    # Where a count has no room, the tails of its column are not numbers, as a traced function cannot raise an error.
    short = np.asarray(observe(empty.with_room(2), np.array([[3.0, 1.0]] * 30)))
    assert np.isnan(short[:, 0]).all()
    np.testing.assert_array_equal(short[:, 1], [[15.0, 0.0]] * 2)


# -- evidence, predictive, limits ------------------------------------------------------------------


def log_evidence_given(x, a, b, r) -> float:
    """The product of SciPy's probabilities, integrated over p ~ Beta(1 + b r, a): sums over log odds are exact."""
    z = np.linspace(-60.0, 60.0, 6001)
    p, q = expit(z), expit(-z)
    log_prob = (
        (gammaln(x + r) - gammaln(r) - gammaln(x + 1)).sum() + len(x) * r * log_expit(z) + x.sum() * log_expit(-z)
    )
    middle = slice(2300, 3301, 250)
    np.testing.assert_allclose(
        log_prob[middle], [stats.nbinom.logpmf(x, r, each).sum() for each in p[middle]], rtol=1e-9
    )
    log_prior = b * r * np.log(p) + (a - 1) * np.log(q) - betaln(1 + b * r, a)
    return logsumexp(log_prob + log_prior + np.log(p) + np.log(q)) + np.log(z[1] - z[0])


def test_evidence_is_the_average_over_the_dispersions_by_quadrature():
    found = np.asarray(PRIOR.log_evidence(count(X, LABEL)))
    for c, f in np.ndindex(2, 2):
        x = X[(c == LABEL) & ~np.isnan(X[:, f]), f]
        each = [log_evidence_given(x, A[c, f], B[c, f], r) for r in DISPERSIONS]
        expected = logsumexp(prior_of_dispersions() + each) + gammaln(x + 1).sum()
        assert found[c, f] == pytest.approx(expected, rel=1e-9)
        posterior = np.asarray(PRIOR.update(count(X, LABEL)).log_prob())[c, f]
        np.testing.assert_allclose(
            posterior, prior_of_dispersions() + each - logsumexp(prior_of_dispersions() + each), rtol=1e-7, atol=1e-8
        )


def test_predictive_is_the_sum_of_those_given_each_dispersion():
    posterior, x = PRIOR.update(count(X, LABEL)), np.array([[0.0, 3.0], [40.0, np.nan]])
    found, share = np.asarray(posterior.log_predictive(x)), np.exp(posterior.log_prob())
    a, b = np.asarray(posterior.concentration), np.asarray(posterior.rate)
    for n, c in np.ndindex(2, 2):
        expected = 0.0
        for f in np.flatnonzero(~np.isnan(x[n])):
            r, k = DISPERSIONS, x[n, f]
            log_prob = betaln(1 + b[c, f] * r + r, a[c, f] + k) - betaln(1 + b[c, f] * r, a[c, f])
            log_prob += gammaln(k + r) - gammaln(r) - gammaln(k + 1)
            expected += np.log(share[c, f] @ np.exp(log_prob))
        assert found[n, c] == pytest.approx(expected, rel=1e-10)


def test_known_dispersions_are_the_beta_negative_binomial_of_scipy():
    family = with_dispersion(PRIOR, np.array([1.0, 7.0])).update(count(X, LABEL))
    x = np.array([[0.0, 3.0], [40.0, 11.0]])
    a, b, r = np.asarray(family.concentration), np.asarray(family.rate), np.array([1, 7])
    expected = [[stats.betanbinom.logpmf(row, r, 1 + b[c] * r, a[c]).sum() for c in (0, 1)] for row in x]
    np.testing.assert_allclose(family.log_predictive(x), expected, rtol=1e-10)


@given(x=cells, label=labels)
def test_large_dispersions_are_the_poisson_limit(x, label):
    r = 1e8
    tails = count(x, label)
    found = with_dispersion(PRIOR, np.full(2, r)).log_evidence(tails)
    poisson = GammaPoisson(A, B)
    expected = np.asarray(poisson.log_evidence(Totals(tails.count, tails.total)))
    np.testing.assert_allclose(found, expected, atol=2 * (13 + tails.total.max()) ** 2 / r, rtol=1e-9)
    predictive = with_dispersion(PRIOR, np.full(2, r)).update(tails).log_predictive(x)
    np.testing.assert_allclose(
        predictive, poisson.update(Totals(tails.count, tails.total)).log_predictive(x), atol=1e-4, rtol=1e-7
    )


@given(x=arrays(float, (5, 2), elements=st.floats(0, 30)), label=arrays(int, 5, elements=st.integers(0, 1)))
def test_chain_rule_for_numbers_that_are_not_whole(x, label):
    posterior = PRIOR.update(count(x[:4], label[:4]))
    more = np.asarray(posterior.log_evidence(count(x[4:], label[4:])))[label[4]].sum()
    assert float(posterior.predictive().log_prob(x[4:])[0, label[4]]) == pytest.approx(more, rel=1e-10, abs=1e-10)


# -- moments, draws, readings ----------------------------------------------------------------------


def test_moments_of_rates_and_dispersions():
    posterior = PRIOR.update(count(X, LABEL))
    share, a, b = np.exp(posterior.log_prob()), np.asarray(posterior.concentration), np.asarray(posterior.rate)
    grid = replace(
        posterior, dispersion=np.broadcast_to(DISPERSIONS[8:], (2, 2, 21)), log_weight=posterior.log_weight[..., 8:]
    )
    share = np.exp(grid.log_prob())
    for c, f in np.ndindex(2, 2):
        each = stats.betaprime(a[c, f], 1 + b[c, f] * DISPERSIONS[8:], scale=DISPERSIONS[8:])
        mean = share[c, f] @ each.mean()
        assert float(grid.mean().rate[c, f]) == pytest.approx(mean, rel=1e-9)
        square = share[c, f] @ (each.var() + each.mean() ** 2)
        assert float(grid.variance()["rate"][c, f]) == pytest.approx(square - mean**2, rel=1e-8)
        r = share[c, f] @ DISPERSIONS[8:]
        assert float(grid.mean().dispersion[c, f]) == pytest.approx(r, rel=1e-10)
        assert float(grid.variance()["dispersion"][c, f]) == pytest.approx(share[c, f] @ (DISPERSIONS[8:] - r) ** 2)
    few = PRIOR.update(count(X[:4], LABEL[:4]))
    assert np.isinf(few.variance()["rate"]).all()


def test_draws_have_the_moments_and_the_joint_distribution():
    posterior = PRIOR.update(count(X, LABEL))
    drawn = posterior.draw(HostVariates(np.random.default_rng(0)), 40_000)
    rate, r = np.asarray(drawn.rate), np.asarray(drawn.dispersion)
    share, a, b = np.exp(posterior.log_prob()), np.asarray(posterior.concentration), np.asarray(posterior.rate)
    for c, f in np.ndindex(2, 2):
        frequency = (r[:, c, f, None] == DISPERSIONS.astype(r.dtype)).mean(axis=0)
        np.testing.assert_allclose(frequency, share[c, f], atol=4 * np.sqrt(0.25 / 40_000))
        # Given its dispersion a rate is beta prime, so that its probability integral is uniform.
        uniform = stats.betaprime.cdf(rate[:, c, f] / r[:, c, f], a[c, f], 1 + b[c, f] * r[:, c, f])
        assert stats.kstest(uniform, "uniform").pvalue > 1e-3
        assert abs(np.corrcoef(uniform, r[:, c, f])[0, 1]) < 0.02


@pytest.mark.parametrize("multiplicity", [0.0, 1.0])
def test_cumulants_of_terms_by_quadrature(multiplicity):
    posterior = PRIOR.update(count(X, LABEL))
    x = np.array([[0.0, 3.0], [25.0, np.nan]])
    found = posterior.cumulants_of_terms(x, multiplicity)
    for n, c, f in ((0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 0)):
        k = x[n, f]
        a, b = (float(np.asarray(v)[c, f]) for v in (posterior.concentration, posterior.rate))
        r = DISPERSIONS
        log_share = np.asarray(posterior.log_prob())[c, f]
        if multiplicity:
            log_share = log_share + gammaln(k + r) - gammaln(r) + betaln(1 + b * r + r, a + k) - betaln(1 + b * r, a)
            log_share -= logsumexp(log_share)
        a, b = a + multiplicity * k, b + multiplicity
        nodes = (np.arange(5_000) + 0.5) / 5_000
        p = stats.beta.ppf(nodes[:, None], 1 + b * r, a)
        value = gammaln(k + r) - gammaln(r) + r * np.log(p) + k * np.log1p(-p)
        weight = np.exp(log_share) / len(nodes)
        mean = (weight * value).sum()
        moments = [mean, *((weight * (value - mean) ** power).sum() for power in (2, 3))]
        for one, expected in zip((found.mean, found.variance, found.third), moments, strict=True):
            assert float(one[n, c, f]) == pytest.approx(expected, rel=5e-3, abs=1e-6)
    assert float(found.mean[1, 0, 1]) == 0.0


def test_modes_and_maximum_likelihood():
    posterior = PRIOR.update(count(X, LABEL))
    best, mode = np.argmax(posterior.log_weight, axis=-1), posterior.mode()
    mle = PRIOR.improper().update(count(X, LABEL)).mean()
    for c, f in np.ndindex(2, 2):
        r, rate = DISPERSIONS[best[c, f]], float(mode.rate[c, f])
        density = stats.betaprime(posterior.concentration[c, f], 1 + posterior.rate[c, f] * r, scale=r).logpdf
        assert density(rate) > max(density(rate * 0.99), density(rate * 1.01))
        assert float(mode.dispersion[c, f]) == r
        x = X[(c == LABEL) & ~np.isnan(X[:, f]), f]
        assert float(mle.rate[c, f]) == pytest.approx(x.mean(), rel=1e-12)
        score = [stats.nbinom.logpmf(x, r, r / (r + x.mean())).sum() for r in DISPERSIONS]
        assert float(mle.dispersion[c, f]) == DISPERSIONS[np.argmax(score)]


@pytest.mark.parametrize("family", [PRIOR, with_dispersion(PRIOR, np.array([0.5, 4.0]))], ids=["averaged", "known"])
def test_penalized_mle_maximises_the_likelihood_and_the_penalty(family):
    """Over all rates and possible dispersions; the penalty is the log prior density of log odds and dispersion."""
    tails = count(X, LABEL)
    peak = family.update(tails).penalized_mle()
    best = np.asarray(peak.log_likelihood(tails) + family.log_penalty(peak))
    grid = np.broadcast_to(family.dispersions, (2, 2, np.shape(family.dispersions)[-1]))
    for c, f, k in np.ndindex(grid.shape):
        r, a, b = grid[c, f, k], A[c, f], B[c, f]
        rate = np.append(peak.rate[c, f] * np.array([0.9, 0.99, 1.0, 1.01, 1.1]), np.geomspace(0.01, 50, 60))
        x = X[(c == LABEL) & ~np.isnan(X[:, f]), f]
        score = stats.nbinom.logpmf(x, r, r / (r + rate[:, None])).sum(axis=1) + gammaln(x + 1).sum()
        score += stats.betaprime.logpdf(rate, a, 1 + b * r, scale=r) + np.log(rate)  # the density of the log odds
        score += np.asarray(family.log_prob())[c, f, k]
        assert (score <= best[c, f] + 1e-9).all()
        assert r != peak.dispersion[c, f] or score[2] == pytest.approx(best[c, f], rel=1e-10)


# -- empirical Bayes -------------------------------------------------------------------------------


def test_common_weights_find_the_dispersion_of_all_columns():
    """40 columns of r = 0.5: the weights of the prior gather there, and those of Poisson counts at large r."""
    label = np.arange(60) % 2
    for r, low, high in ((0.5, 0.3, 0.8), (np.inf, 20.0, np.inf)):
        rate = RNG.gamma(2.0, 2.0, (2, 40))
        x = RNG.poisson(rate[label] * (1.0 if np.isinf(r) else RNG.gamma(r, 1 / r, (60, 40)))).astype(float)
        tails = Tails.no_rows((2, 40)).observe(x, label, np.ones(60))
        prior = EmpiricalCounts()(tails, tails)
        share = np.exp(prior.log_prob())[0, 0]
        middle = np.exp(share @ np.log(DISPERSIONS))
        assert low < middle < high
        np.testing.assert_allclose(prior.log_weight, prior.log_weight[:1, :1] + np.zeros((2, 40, 1)), rtol=1e-12)


# -- estimators, kernels ---------------------------------------------------------------------------


def test_kernels_count_and_update_as_the_estimator():
    nb = bnb.NegativeBinomialNB(prior=bnb.BetaNegativeBinomial(1.0, 0.5)).fit(X, LABEL)
    statistics = kernels.count(bnb.Statistics.empty(nb.prior_), X, LABEL)
    posterior = kernels.update(nb.prior_, statistics)
    np.testing.assert_allclose(kernels.log_joint(posterior, X), nb.predict_joint_log_proba(X), rtol=1e-12, atol=1e-12)
    traced = jax.jit(lambda p, x: kernels.log_joint(p, x))(nb.posterior_, X.astype(np.float32))
    np.testing.assert_allclose(traced, nb.predict_joint_log_proba(X), rtol=1e-4)


def test_many_rows_are_scored_by_a_table_and_large_counts_without():
    nb = bnb.NegativeBinomialNB().fit(X, LABEL)
    many = np.tile(np.nan_to_num(X), (2000, 1))
    np.testing.assert_allclose(nb.predict_log_proba(many)[:30], nb.predict_log_proba(many[:30]), rtol=1e-9, atol=1e-12)
    many[-1] = 5000.0
    np.testing.assert_allclose(nb.predict_log_proba(many)[-1], nb.predict_log_proba(many[-1:])[0], rtol=1e-9)


def test_priors_keep_what_they_say_of_dispersions():
    """Of one prior for all columns; by column, where columns could differ in number, it is refused."""
    grid = np.array([0.5, 1.0, 2.0])
    given = bnb.BetaNegativeBinomial(1.0, 0.5, grid, np.log([0.2, 0.5, 0.3]))
    prior = bnb.NegativeBinomialNB(prior=given).fit(X, LABEL).prior_.blocks[0]
    np.testing.assert_allclose(prior.dispersion, np.broadcast_to(grid, (2, 2, 3)))
    np.testing.assert_allclose(np.exp(prior.log_prob()), np.broadcast_to([0.2, 0.5, 0.3], (2, 2, 3)))
    refused("dispersion must be left out of priors by column", bnb.NegativeBinomialNB(prior={0: given}).fit, X, LABEL)
    negative = bnb.BetaNegativeBinomial(1.0, 0.5, np.array([-1.0]), np.zeros(1))
    refused(r"prior.dispersion\[0\] is -1.0; it must be", bnb.NegativeBinomialNB(prior=negative).fit, X, LABEL)
    again = bnb.NegativeBinomialNB(prior=bnb.NegativeBinomialNB(dispersion=2.0).fit(X, LABEL).prior_).fit(X, LABEL)
    np.testing.assert_allclose(again.dispersion_, 2.0)


def test_exposure_is_refused_with_the_reason():
    says = "no exposure: with the same dispersion in all rows .* no closed form.*PoissonNB"
    refused(says, bnb.NegativeBinomialNB(exposure=1).fit, X, LABEL, error=NotImplementedError)


@pytest.mark.parametrize(
    ("options", "X", "says"),
    [
        ({"dispersion": 0.0}, [[1], [2]], "dispersion=0.0 must be 'evidence', or positive numbers"),
        ({"dispersion": "mean"}, [[1], [2]], "dispersion='mean' must be 'evidence'"),
        ({"dispersion": [1.0, 2.0]}, [[1], [2]], "dispersion has shape"),
        ({"dispersion": {"b": 1.0}}, [[1], [2]], "dispersion"),
        (
            {},
            [[1e12], [2]],
            "Counts up to 1,099,511,627,776 in 1 columns and 2 classes would take .* Divide large counts",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(options, X, says):
    refused(says, bnb.NegativeBinomialNB(**options).fit, X, [0, 1])
