"""The normal–inverse-gamma against SciPy, quadrature and numerical optima."""

from fractions import Fraction
from functools import cache

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, linalg, optimize, stats
from scipy.special import multigammaln

from bayesnb.families import Moments, NormalInverseGamma
from tests.families.oracles import DRAWS, assert_moments, jitted

FIELDS = dict(
    loc=np.array([[0.3, -2.0], [10.0, 0.0]]),
    kappa=np.array([[0.5, 2.0], [7.0, 0.1]]),
    concentration=np.array([[5.5, 6.0], [9.0, 5.2]]),
    rate=np.array([[1.5, 0.2], [30.0, 2.0]]),
)
X = np.array([[0.5, -1.0], [np.nan, 3.0], [12.0, np.nan], [np.nan, np.nan]])
PRIOR = NormalInverseGamma(**FIELDS)
log_evidence, log_predictive, update, count = map(jitted, ("log_evidence", "log_predictive", "update", "observe"))
log_prob = jitted("log_prob")


def field(prior, c, j):
    return (float(np.asarray(getattr(prior, name))[c, j]) for name in FIELDS)


def density(mu, sigma2, m, kappa, a, b) -> float:
    return stats.norm.pdf(mu, m, np.sqrt(sigma2 / kappa)) * stats.invgamma.pdf(sigma2, a, scale=b)


def integral(f, m) -> float:
    """∫∫ f(μ, σ²) dμ dσ² by the trapezoidal rule, exact to many digits for what decays smoothly at both ends."""
    mu = m + np.sinh(np.linspace(-6, 6, 801))
    log_sigma2 = np.linspace(-8, 12, 801)
    values = f(mu[:, None], np.exp(log_sigma2)) * np.exp(log_sigma2)
    return np.trapezoid(np.trapezoid(values, log_sigma2, axis=1) * np.cosh(np.linspace(-6, 6, 801)), dx=12 / 800)


few = st.integers(1, 64)


@cache
def draws():
    return jax.jit(lambda key: PRIOR.sample(key, DRAWS))(jax.random.key(0))


@st.composite
def priors(draw):
    return NormalInverseGamma(
        draw(arrays(float, (2, 2), elements=st.floats(-50, 50))),
        *(draw(arrays(float, (2, 2), elements=st.floats(0.05, 40))) for _ in range(3)),
    )


cells = arrays(float, (6, 2), elements=st.one_of(st.integers(-99, 99).map(lambda i: i / 7), st.just(np.nan)))


def observe(x, label, weight=None) -> Moments:
    zeros = np.zeros((2, 2))
    return count(Moments(zeros, zeros, zeros), x, np.asarray(label), np.ones(len(x)) if weight is None else weight)


def moments(groups: list[np.ndarray]) -> Moments:
    """Moments of each group of rows (n, F), stacked on the first axis; zeros of no row."""
    mean = [x.sum(axis=0) / max(1, len(x)) for x in groups]
    m2 = [((x - m) ** 2).sum(axis=0) for x, m in zip(groups, mean, strict=True)]
    return Moments(np.array([[float(len(x))] * x.shape[1] for x in groups]), np.array(mean), np.array(m2))


# -- counting and updating ---------------------------------------------------------------------------


@given(
    x=cells,
    label=arrays(int, 6, elements=st.integers(0, 1)),
    weight=arrays(float, 6, elements=st.sampled_from([0, 1, 2.5])),
)
def test_moments_are_weighted_count_mean_and_centred_sum_of_squares(x, label, weight):
    moments = observe(x, label, weight)
    for c, j in np.ndindex(2, 2):
        use = (label == c) & ~np.isnan(x[:, j]) & (weight > 0)
        w, v = weight[use], x[use, j]
        assert moments.count[c, j] == w.sum()
        if use.any():
            mean = w @ v / w.sum()
            np.testing.assert_allclose(moments.mean[c, j], mean, rtol=1e-13, atol=1e-13)
            np.testing.assert_allclose(moments.m2[c, j], w @ (v - mean) ** 2, rtol=1e-12, atol=1e-24)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, -1e3, 1e6]), st.sampled_from([0.0, 1e-2, 1.0]), few), min_size=1),
    st.integers(0, 2**32 - 1),
)
def test_blocks_far_from_each_other_lose_no_digits(blocks, seed):
    """Each block has its own mean, standard deviation and number of rows."""
    rng, counted, rows = np.random.default_rng(seed), Moments(*np.zeros((3, 1, 1))), []
    for mean, sd, n in blocks:
        x = rng.normal(mean, sd, (64, 1))
        counted = count(counted, x, np.zeros(64, np.int32), np.where(np.arange(64) < n, 1.0, 0.0))
        rows += map(Fraction, x[:n, 0].tolist())
    mean = sum(rows) / len(rows)
    m2 = float(sum((x - mean) ** 2 for x in rows))
    scale = max(map(abs, rows))
    np.testing.assert_allclose(counted.mean[0, 0], float(mean), rtol=0, atol=1e-14 * float(scale))
    np.testing.assert_allclose(counted.m2[0, 0], m2, rtol=1e-10, atol=len(rows) * (1e-14 * float(scale)) ** 2)


def test_without_a_row_are_left_the_moments_of_the_others():
    """Zeros where the row was the only one."""
    x, label = np.array([[0.5, -1.0], [2.0, 3.0], [-4.0, 3.5], [1.0, 3.0]]), np.array([0, 1, 1, 1])
    whole = moments([x[label == c] for c in (0, 1)])
    for i, own in enumerate(label):
        expected = moments([x[(label == c) & (np.arange(4) != i)] for c in (0, 1)])
        found = whole.without(x[i], np.eye(2)[own][:, None])
        for name in ("count", "mean", "m2"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-13, atol=1e-13)


@given(prior=priors(), x=cells)
def test_update_is_the_textbooks(prior, x):
    label = [0, 1, 0, 1, 0, 1]
    posterior = update(prior, observe(x, label))
    for c, j in np.ndindex(2, 2):
        m, kappa, a, b = field(prior, c, j)
        v = x[c::2, j]
        v = v[~np.isnan(v)]
        n = len(v)
        centre = v.mean() if n else 0.0
        expected = (
            (kappa * m + n * centre) / (kappa + n),
            kappa + n,
            a + n / 2,
            b + ((v - centre) ** 2).sum() / 2 + kappa * n * (centre - m) ** 2 / (2 * (kappa + n)),
        )
        np.testing.assert_allclose(list(field(posterior, c, j)), expected, rtol=1e-12, atol=1e-12)


# -- partition and evidence ------------------------------------------------------------------------


def test_log_partition_normalises_the_density():
    """The factor (2π)^-a, which is -½ log 2π a cell, apart."""
    m, kappa, a, b = 0.3, 0.5, 3.5, 1.5

    def kernel(mu, sigma2):
        return sigma2 ** (-a - 1.5) * np.exp(-(b + kappa * (mu - m) ** 2 / 2) / sigma2)

    total = integral(kernel, m)
    actual = float(NormalInverseGamma(*np.array([m, kappa, a, b])[:, None, None]).log_partition()[0, 0])
    np.testing.assert_allclose(actual, np.log(total / np.sqrt(2 * np.pi)) - a * np.log(2 * np.pi), rtol=1e-9)


@given(prior=priors(), x=cells)
def test_log_evidence_is_scipys_multivariate_t(prior, x):
    evidence = np.asarray(log_evidence(prior, observe(x, np.zeros(6, int))))[0]
    for j in range(2):
        m, kappa, a, b = field(prior, 0, j)
        v = x[~np.isnan(x[:, j]), j]
        if len(v):
            shape = b / a * (np.eye(len(v)) + 1 / kappa)
            expected = stats.multivariate_t.logpdf(v, np.full(len(v), m), shape, df=2 * a)
            np.testing.assert_allclose(evidence[j], expected, rtol=1e-9, atol=1e-9)
        else:
            assert evidence[j] == 0


def test_evidence_of_one_cell_counted_three_times_is_scipys_multivariate_t():
    prior, x = NormalInverseGamma(**{k: v[1] for k, v in FIELDS.items()}), np.array([[0.5, 3.0], [12.0, -1.0]])
    found = jitted("log_evidence_of_cell")(prior, x, 3.0)
    for n, j in np.ndindex(x.shape):
        m, kappa, a, b = (v[1, j] for v in FIELDS.values())
        t = stats.multivariate_t([m] * 3, b / a * (np.eye(3) + 1.0 / kappa), 2 * a)
        np.testing.assert_allclose(found[n, j], t.logpdf([x[n, j]] * 3), rtol=1e-11)


@pytest.mark.parametrize("improper", [{"kappa": 0.0}, {"rate": 0.0}, {"concentration": -0.5}])
def test_an_improper_prior_has_no_evidence(improper):
    prior = NormalInverseGamma(**{k: np.full((2, 2), improper.get(k, 1.0)) for k in FIELDS})
    counted = Moments(np.full((2, 2), 2.0), np.ones((2, 2)), np.ones((2, 2)))
    assert (np.asarray(log_evidence(prior, counted)) == -np.inf).all()


def test_bayes_factor_of_a_mean_for_each_level_is_that_of_scipys_multivariate_t_of_contrasts():
    level = np.array([0, 0, 0, 1, 1, 2])
    x = np.random.default_rng(1).normal(0.7 * level[:, None], 1.0, (6, 2))
    by_level, by_class = moments([x[level == k] for k in range(3)]), moments([x])
    prior = NormalInverseGamma(**{k: v[:1] for k, v in FIELDS.items()})
    of_levels = jax.tree.map(lambda v: v[None, None], by_level)
    found = prior.log_bayes_factor_of_levels(of_levels, jax.tree.map(lambda v: v[None], by_class))
    helmert, same = linalg.helmert(6), level[:, None] == level
    for j in range(2):
        _, kappa, a, b = field(prior, 0, j)
        means = same * 6 / (kappa * same.sum(axis=1))  # the mean of a level has κ n_l/n of the prior's rows
        several, one = (
            stats.multivariate_t.logpdf(helmert @ x[:, j], shape=b / a * helmert @ cov @ helmert.T, df=2 * a)
            for cov in (np.eye(6) + means, np.eye(6))
        )
        np.testing.assert_allclose(found[0, 0, j], several - one, rtol=1e-11)


def test_bayes_factor_of_correlation_is_that_of_inverse_wishart_and_inverse_gammas_of_contrasts():
    """Evidence of n - 1 contrasts of two features with Σ ~ IW(2a + 1, diag(2b)), whose variances are IG(a, b)."""
    x, y = np.random.default_rng(2).multivariate_normal([1.0, -3.0], [[1.0, 1.2], [1.2, 2.0]], 7).T
    a, b = 1.7, np.array([0.8, 2.5])
    one, other = (NormalInverseGamma(*np.array([[[0.0]], [[1.0]], [[a]], [[rate]]])) for rate in b)
    cross = ((x - x.mean()) * (y - y.mean())).sum()
    found = one.log_bayes_factor_of_pairs(other, moments([x[:, None]]), moments([y[:, None]]), np.array([[[cross]]]))
    contrasts, nu, scale = linalg.helmert(7) @ np.stack([x, y], axis=1), 2 * a + 1, np.diag(2 * b)
    after = scale + contrasts.T @ contrasts
    together = multigammaln((nu + 6) / 2, 2) - multigammaln(nu / 2, 2) - 6 * np.log(np.pi)
    together += nu / 2 * np.linalg.slogdet(scale)[1] - (nu + 6) / 2 * np.linalg.slogdet(after)[1]
    apart = sum(stats.multivariate_t.logpdf(contrasts[:, j], shape=b[j] / a * np.eye(6), df=2 * a) for j in range(2))
    np.testing.assert_allclose(found, [[[together - apart]]], rtol=1e-11)


# -- the estimates -----------------------------------------------------------------------------------


def test_mean_is_scipys():
    mean = PRIOR.mean()
    np.testing.assert_array_equal(mean.mu, FIELDS["loc"])
    np.testing.assert_allclose(
        mean.sigma2, stats.invgamma.mean(FIELDS["concentration"], scale=FIELDS["rate"]), rtol=1e-13
    )


def test_mode_is_where_the_joint_density_of_mean_and_variance_is_greatest():
    mode = PRIOR.mode()
    for c, j in np.ndindex(2, 2):
        m, kappa, a, b = field(PRIOR, c, j)
        scale = b / a

        def loss(z, m=m, kappa=kappa, a=a, b=b, scale=scale):
            return -np.log(density(m + z[0], scale * np.exp(z[1]), m, kappa, a, b))

        best = optimize.minimize(loss, [0.1, 0.1], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13}).x
        np.testing.assert_allclose(mode.mu[c, j], m + best[0], atol=1e-5)
        np.testing.assert_allclose(mode.sigma2[c, j], scale * np.exp(best[1]), rtol=1e-5)


def test_a_density_that_is_greatest_nowhere_has_no_mode():
    """With κ = 0 it is the same for all μ, and with a = -3/2 it grows with σ²."""
    prior = NormalInverseGamma(*(np.array([v]) for v in ([0.3] * 3, [0.0, 2.0, 2.0], [1.0, -1.5, 1.0], [1.0] * 3)))
    mode = prior.mode()
    np.testing.assert_array_equal(np.isnan(mode.mu), [[True, True, False]])
    np.testing.assert_array_equal(np.isnan(mode.sigma2), [[True, True, False]])


@given(prior=priors(), x=cells)
def test_predictive_is_scipys_t(prior, x):
    actual = np.asarray(log_predictive(prior, x))
    m, kappa, a, b = (np.asarray(getattr(prior, name)) for name in FIELDS)
    scale = np.sqrt(b * (kappa + 1) / (a * kappa))
    expected = np.nansum(stats.t.logpdf(x[:, None], 2 * a, m, scale), axis=2)
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("far", [1e100, -1e160, 1e300])
def test_predictive_far_away_is_a_power_of_the_distance_and_finite(far):
    log_prob = np.asarray(PRIOR.log_predictive(np.array([[far, np.nan], [far * 2, np.nan]])))
    slope = (log_prob[1] - log_prob[0]) / np.log(2)
    np.testing.assert_allclose(slope, -(2 * FIELDS["concentration"][:, 0] + 1), rtol=1e-10)


def test_plug_in_likelihood_is_scipys_normal():
    for likelihood in (PRIOR.mean(), PRIOR.mode()):
        mu, sd = np.asarray(likelihood.mu), np.sqrt(np.asarray(likelihood.sigma2))
        expected = np.nansum(stats.norm.logpdf(X[:, None], mu, sd), axis=2)
        np.testing.assert_allclose(log_prob(likelihood, X), expected, rtol=1e-12)


def test_moments_that_do_not_exist_are_nan_estimates_and_infinite_variances():
    prior = NormalInverseGamma(*(np.array([v]) for v in ([[0.0] * 4, [1.0] * 4, [1.0, 1.5, 2.0, 3.0], [2.0] * 4])))
    np.testing.assert_allclose(prior.mean().sigma2[0], [np.nan, 4.0, 2.0, 1.0])
    np.testing.assert_allclose(prior.variance()["sigma2"][0], [np.inf, np.inf, np.inf, 1.0])
    np.testing.assert_allclose(prior.variance()["mu"][0], [np.inf, 4.0, 2.0, 1.0])


def test_mle_without_a_row_does_not_exist_and_of_equal_rows_is_a_point_mass():
    x = np.array([[3.0, np.nan], [3.0, np.nan], [np.nan, 1.0], *[[np.nan, np.nan]] * 3])
    mle = PRIOR.improper().update(observe(x, [0, 0, 1, 0, 0, 1])).mean()
    np.testing.assert_array_equal(mle.mu, [[3.0, np.nan], [np.nan, 1.0]])
    np.testing.assert_array_equal(mle.sigma2, [[0.0, np.nan], [np.nan, 0.0]])
    x = np.array([[3.0, np.nan], [3.5, np.nan], [np.nan, 1.0], [np.nan, np.nan]])
    found = np.asarray(log_prob(mle, x))
    np.testing.assert_array_equal(found[:, 0], [np.inf, -np.inf, np.nan, 0.0])
    np.testing.assert_array_equal(found[:, 1], [np.nan, np.nan, np.inf, 0.0])


# -- marginals, draws and moments ----------------------------------------------------------------------


def test_marginals_are_integrals_of_the_joint_density():
    m, kappa, a, b = 0.3, 0.5, 3.5, 1.5
    marginals = NormalInverseGamma(m, kappa, a, b).marginals()
    (t, of_mu), (invgamma, of_sigma2) = marginals["mu"], marginals["sigma2"]
    for mu in (-1.0, 0.3, 2.0):
        integral, _ = integrate.quad(lambda s, mu=mu: density(mu, s, m, kappa, a, b), 0, np.inf)
        np.testing.assert_allclose(getattr(stats, t).pdf(mu, **of_mu), integral, rtol=1e-7)
    for sigma2 in (0.2, 1.0, 3.0):
        integral, _ = integrate.quad(lambda u, s=sigma2: density(u, s, m, kappa, a, b), -50, 50, points=[m])
        np.testing.assert_allclose(getattr(stats, invgamma).pdf(sigma2, **of_sigma2), integral, rtol=1e-7)


@pytest.mark.slow("simulates many data sets or draws")
def test_draws_have_the_marginals_and_moments():
    theta = draws()
    variance = PRIOR.variance()
    assert_moments(theta.mu, PRIOR.mean().mu, variance["mu"])
    assert_moments(theta.sigma2, PRIOR.mean().sigma2, variance["sigma2"])
    for name in ("mu", "sigma2"):
        family, arguments = PRIOR.marginals()[name]
        for c, j in np.ndindex(2, 2):
            marginal = getattr(stats, family)(**{k: np.asarray(v)[c, j] for k, v in arguments.items()})
            assert stats.kstest(np.asarray(getattr(theta, name))[:5000, c, j], marginal.cdf).pvalue > 1e-3
    standard = (np.asarray(theta.mu) - FIELDS["loc"]) / np.sqrt(np.asarray(theta.sigma2) / FIELDS["kappa"])
    assert_moments(standard, 0.0, 1.0)


@pytest.mark.slow("compiles kernels of its own")
def test_cumulants_of_the_log_likelihood_do_not_cancel_where_much_data_has_been_seen():
    """Reference: exact arithmetic at n = 1e12, where the terms a r²/4 and r/2 nearly cancel."""
    from fractions import Fraction

    from scipy.special import polygamma

    n = 10**12
    m, kappa, a, b, x = Fraction(0), Fraction(n), Fraction(n, 2), Fraction(n), Fraction(3)
    d2 = (x - m) ** 2
    rest = a * d2**2 / (4 * b**2) - d2 / (2 * b) + a * d2 / (b * kappa) + 1 / (2 * kappa**2)
    expected = float(rest) + 0.25 * polygamma(1, float(a))
    prior = NormalInverseGamma(*(np.full((1, 1), float(v)) for v in (m, kappa, a, b)))
    cumulants = prior.log_likelihood_cumulants(np.array([[float(x)]]))
    np.testing.assert_allclose(cumulants.variance[0, 0], expected, rtol=1e-10)
    r = d2 / b
    rest = a * r**3 / 4 - 3 * r**2 / 8 + 3 * a * r**2 / (2 * kappa) - 3 * r / (2 * kappa)
    rest = float(rest + 3 * a * r / kappa**2 + 1 / kappa**3)
    np.testing.assert_allclose(cumulants.third[0, 0], polygamma(2, float(a)) / 8 - rest, rtol=1e-10)
