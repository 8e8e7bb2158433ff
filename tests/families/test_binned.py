"""Averages over all binnings, against enumeration of each of them."""

import itertools
from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp, polygamma

from bayesnb.families import Binned, IndependentCuts, LevelCounts, OneHot, binned
from bayesnb.families.protocol import KeyVariates
from bayesnb.uncertainty.variates import HostVariates

C, SIZES = 3, np.array([5, 1, 10])
START = np.cumsum(SIZES) - SIZES
FEATURES = [slice(s, s + n) for s, n in zip(START, SIZES, strict=True)]
DRAWS = 20_000
SIMULATES = pytest.mark.slow("simulates many data sets or draws")


@pytest.fixture(scope="module")
def model():
    """A prior, counts, and so a posterior: shares of cells differ, and so do those of classes."""
    rng = np.random.default_rng(0)
    prior = IndependentCuts(2.5, 1.7).prior(C, SIZES)
    prior = replace(prior, concentration=prior.concentration * rng.uniform(0.5, 2.0, SIZES.sum()))
    count = rng.poisson(3.0, (C, SIZES.sum())).astype(float)
    count[:, START[2] : START[2] + 4] += 20.0 * (np.arange(C) == 1)[:, None]
    return prior, count


def enumerated(prior: Binned, count: np.ndarray, feature: int):
    """Log weights (B,), cuts (B, G), and α and n (B, C, G) of the bin of each cell, of all 2^(G - 1) binnings."""
    own = FEATURES[feature]
    alpha, n, odds = prior.concentration[:, own], count[:, own], np.asarray(prior.log_odds)[own]
    total, log_weights, cuts, alphas, counts = alpha.sum(axis=1), [], [], [], []
    for cut in itertools.product([False, True], repeat=alpha.shape[1] - 1):
        bins = np.cumsum([0, *cut])
        of_bins = [np.stack([np.bincount(bins, row) for row in cells]) for cells in (alpha, n)]
        a, m = of_bins
        log_weight = sum(-np.log1p(np.exp(-o if c else o)) for c, o in zip(cut, odds[1:], strict=True))
        log_weight += (gammaln(a + m) - gammaln(a)).sum() + (gammaln(total) - gammaln(total + n.sum(axis=1))).sum()
        log_weight += (n * np.log(alpha / a[:, bins])).sum()
        log_weights.append(log_weight)
        cuts.append([True, *cut])
        alphas.append(a[:, bins])
        counts.append(m[:, bins])
    return np.array(log_weights), np.array(cuts), np.array(alphas), np.array(counts)


def averages(prior: Binned, count: np.ndarray, feature: int):
    """Evidence, probabilities of cuts, means and variances of the probabilities of cells."""
    log_weight, cuts, alpha, n = enumerated(prior, count, feature)
    evidence = np.logaddexp.reduce(log_weight)
    weight = np.exp(log_weight - evidence)
    own = prior.concentration[:, FEATURES[feature]]
    total = (own.sum(axis=1) + count[:, FEATURES[feature]].sum(axis=1))[:, None]
    first = (alpha + n) / total
    second = first * (alpha + n + 1) / (total + 1)
    mean = np.einsum("b,bcg->cg", weight, first * own / alpha)
    square = np.einsum("b,bcg->cg", weight, second * (own / alpha) ** 2)
    return evidence, weight @ cuts, mean, square - mean**2


@jax.jit
def summaries(prior, count):
    posterior = prior.update(LevelCounts(count))
    mean, variance = posterior.predictive().theta, posterior.variance()["theta"]
    return prior.log_evidence(LevelCounts(count)), mean, variance, posterior.cut_probability(), posterior.best_cuts()


def test_evidence_predictive_cuts_and_variance_equal_enumeration(model, x64):
    prior, count = model
    (evidence,), mean, variance, cut_probability, best_cuts = map(np.asarray, summaries(prior, count))
    for f, own in enumerate(FEATURES):
        expected = averages(prior, count, f)
        assert evidence[f] == pytest.approx(expected[0], rel=1e-12)
        np.testing.assert_allclose(cut_probability[own], expected[1], rtol=0, atol=1e-12)
        np.testing.assert_allclose(mean[:, own], expected[2], rtol=1e-11)
        # a difference of squares
        np.testing.assert_allclose(variance[:, own], expected[3], rtol=1e-10, atol=1e-12 * (expected[2] ** 2).max())
        log_weight, cuts, *_ = enumerated(prior, count, f)
        np.testing.assert_array_equal(best_cuts[own], cuts[log_weight.argmax()])


def test_evidence_of_rows_after_others_is_that_of_all_less_that_of_those(model, x64):
    prior, count = model
    some = np.floor(count / 2)
    found = np.asarray(evidence_after(prior, some, count - some))[0]
    for f in range(len(FEATURES)):
        expected = averages(prior, count, f)[0] - averages(prior, some, f)[0]
        assert found[f] == pytest.approx(expected, rel=1e-11, abs=1e-11)


evidence_after = jax.jit(lambda prior, some, more: prior.update(LevelCounts(some)).log_evidence(LevelCounts(more)))
with_row = jax.jit(lambda prior, count, more: prior.update(LevelCounts(count)).predictive(more).theta)


@pytest.mark.parametrize("more", [-1.0, 2.0])
def test_a_row_more_or_less_is_a_refit(model, more):
    prior, count = model
    found = np.asarray(with_row(prior, count, more * np.eye(C)[1]))
    for f, own in enumerate(FEATURES):
        for g in range(SIZES[f]):
            if count[1, own][g] + more >= 0:
                other = count.copy()
                other[1, START[f] + g] += more
                np.testing.assert_allclose(found[:, own][:, g], averages(prior, other, f)[2][:, g], rtol=1e-11)


@pytest.mark.parametrize("factor", [1.0, 0.37, 100.0])
@pytest.mark.parametrize("equal", [True, False])
def test_numpy_finds_evidence_and_means_by_enumeration(model, equal, factor):
    """Whole counts in cells of equal α are looked up; features have different numbers of cells."""
    prior, count = IndependentCuts(2.5, 1.7).prior(C, SIZES) if equal else model[0], factor * model[1]
    (evidence,) = np.asarray(prior.log_evidence(LevelCounts(count)))
    mean = np.asarray(prior.update(LevelCounts(count)).mean().theta)
    for f, own in enumerate(FEATURES):
        expected = averages(prior, count, f)
        assert evidence[f] == pytest.approx(expected[0], rel=1e-12)
        np.testing.assert_allclose(mean[:, own], expected[2], rtol=1e-11)


def test_fits_side_by_side_are_each_alone():
    """Features are independent: K posteriors are one with K times the features, many enough to be cut into parts."""
    rng, n_fits, sizes = np.random.default_rng(0), 40, np.array([64, 37, 50])
    counts = rng.poisson(rng.gamma(0.3, 3.0, (n_fits, C, sizes.sum()))).astype(float)
    joint = IndependentCuts().prior(C, np.tile(sizes, n_fits)).update(LevelCounts(np.concatenate(counts, axis=1)))
    found = np.split(np.asarray(joint.mean().log_theta), n_fits, axis=1)
    for k in range(0, n_fits, 13):
        alone = IndependentCuts().prior(C, sizes).update(LevelCounts(counts[k]))
        np.testing.assert_allclose(found[k], alone.mean().log_theta, rtol=0, atol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_bayes_identity_for_any_cuts_and_heights(model, x64):
    """log p(D | cuts, θ) + log p(cuts, θ) - log p(cuts, θ | D) = log p(D)."""
    prior, count = model
    rng = np.random.default_rng(1)
    for f, own in enumerate(FEATURES):
        log_weight, cuts, alpha, n = enumerated(prior, count, f)
        log_prior = enumerated(prior, np.zeros_like(count), f)[0]
        evidence = averages(prior, count, f)[0]
        for b in rng.integers(0, len(cuts), 5):
            identity = log_prior[b] - (log_weight[b] - evidence)
            for c in range(C):
                first = cuts[b]
                a, m = alpha[b, c, first], n[b, c, first]
                theta = rng.dirichlet(np.ones(len(a)))
                cells = theta[np.cumsum(first) - 1] * prior.concentration[c, own] / alpha[b, c]
                identity += (count[c, own] * np.log(cells)).sum()
                identity += stats.dirichlet.logpdf(theta, a) - stats.dirichlet.logpdf(theta, a + m)
            assert np.asarray(prior.log_evidence(LevelCounts(count)))[0, f] == pytest.approx(identity, abs=1e-9)


@SIMULATES
def test_draws_have_the_exact_moments_and_the_probabilities_of_cuts(model, x64):
    prior, count = model
    posterior = prior.update(LevelCounts(count))
    theta = np.asarray(posterior.sample(jax.random.key(0), DRAWS).theta)
    mean, variance = np.asarray(posterior.mean().theta), np.asarray(posterior.variance()["theta"])
    np.testing.assert_array_less(abs(theta.mean(axis=0) - mean), 4.5 * np.sqrt(variance / DRAWS) + 1e-12)
    np.testing.assert_allclose(theta.var(axis=0), variance, rtol=0.12, atol=1e-9)
    height = theta / np.asarray(prior.concentration)
    for own in FEATURES:
        cut = ~np.isclose(np.diff(height[..., own]), 0.0, atol=1e-12).all(axis=1)
        expected = np.asarray(posterior.cut_probability())[own][1:]
        se = np.sqrt(expected * (1 - expected) / DRAWS)
        np.testing.assert_array_less(abs(cut.mean(axis=0) - expected), 4.5 * se + 1e-9)


def rows() -> OneHot:
    code = np.array([[g % 5, 0, g % 10] for g in range(12)], np.int8)
    return OneHot(code, START.astype(np.int32), SIZES.astype(np.int32), 11)


@pytest.mark.parametrize("variates", [HostVariates(np.random.default_rng(3)), pytest.param(None, marks=SIMULATES)])
def test_draws_of_rows_average_to_their_predictives(model, x64, variates):
    """By NumPy, which draws only the cells of rows, and by JAX."""
    prior, count = model
    posterior, x, n = prior.update(LevelCounts(count)), rows(), DRAWS if variates is None else 3000
    for own in range(C):
        of_class = np.zeros((n, 12, C), bool)
        of_class[..., own] = True
        source = KeyVariates(jax.random.key(own)) if variates is None else variates
        drawn = np.exp(np.asarray(posterior.draw_log_likelihood(source, n, x, of_class)))
        expected = np.exp(np.asarray(posterior.predictive(np.eye(C)[own]).log_prob(x)))
        np.testing.assert_array_less(abs(drawn.mean(axis=0) - expected), 4.5 * drawn.std(axis=0) / np.sqrt(n))


@SIMULATES
def test_draws_of_rows_given_the_data_average_to_products_of_means(model, x64):
    prior, count = model
    posterior, x = prior.update(LevelCounts(count)), rows()
    drawn = np.exp(np.asarray(posterior.draw_log_likelihood(KeyVariates(jax.random.key(9)), DRAWS, x)))
    expected = np.asarray(posterior.mean().log_prob(x))  # of independent features
    np.testing.assert_allclose(drawn.mean(axis=0), np.exp(expected), rtol=0.05)


def test_of_very_many_rows_draws_given_a_row_are_the_frequencies(x64):
    sizes, code = np.array([3, 2]), np.array([[0, 1], [2, 0], [-1, 1]], np.int8)
    first = np.cumsum(sizes) - sizes
    theta = np.array([[0.5, 0.2, 0.3, 0.1, 0.9], [0.1, 0.6, 0.3, 0.7, 0.3]])
    posterior = IndependentCuts().prior(2, sizes).update(LevelCounts(1e12 * theta))
    rows = OneHot(code, first.astype(np.int32), sizes.astype(np.int32), 4)
    expected = sum(np.where(code[:, [f]] < 0, 0.0, np.log(theta)[:, first[f] + code[:, f]].T) for f in (0, 1))
    own = np.broadcast_to(np.eye(2, dtype=bool)[[0, 1, 1]], (2, 3, 2))
    drawn = draw_log_likelihood(posterior, jax.random.key(0), rows, own)
    np.testing.assert_allclose(drawn, np.broadcast_to(expected, (2, 3, 2)), rtol=0, atol=1e-4)


draw_log_likelihood = jax.jit(lambda family, key, x, own: family.draw_log_likelihood(KeyVariates(key), 2, x, own))


def test_log_sums_inside_and_outside_of_intervals_are_scipys(x64):
    """Classes whose values are of unlike size, and so of unlike maxima."""
    first, last = np.array([[0, 2], [1, 4], [5, 5], [2, 5], [3, 3], [0, 4]]).T
    for n in (6, 4):
        values = np.random.default_rng(0).normal(np.array([[0.0], [300.0], [-900.0]]), 2.0, (3, 6))
        found = binned.log_sums_inside_and_outside(values, first[:n], last[:n])
        for k in range(n):
            inside = (first[k] <= np.arange(6)) & (np.arange(6) <= last[k])
            for actual, cells in zip(found, (inside, ~inside), strict=True):
                expected = logsumexp(values[:, cells], axis=1)
                np.testing.assert_allclose(np.asarray(actual)[:, k], expected, rtol=1e-12, atol=1e-12)


def test_log_sums_of_bins_are_scipys():
    rng = np.random.default_rng(3)
    values, cuts = rng.normal(scale=900.0, size=(2, 3, 12)), rng.random((5, 1, 3, 12)) < 0.4
    values[0, 1, 4:7], cuts[..., 0] = -np.inf, True
    found = binned.log_sums_of_bins(values, cuts)
    assert found.shape == (5, 2, 3, 12)
    for n, c, f in np.ndindex(5, 2, 3):
        bins = np.split(values[c, f], np.flatnonzero(cuts[n, 0, f])[1:])
        expected = np.concatenate([np.full(len(cells), logsumexp(cells)) for cells in bins])
        np.testing.assert_allclose(found[n, c, f], expected, rtol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_cumulants_of_log_odds_equal_enumeration(model, x64):
    prior, count = model
    x, of, against = rows(), np.arange(12) % C, (np.arange(12) + 1) % C
    found = prior.update(LevelCounts(count)).log_odds_of_terms(x, of, against)
    for f, own in enumerate(FEATURES):
        log_weight, _, alpha, n = enumerated(prior, count, f)
        weight = np.exp(log_weight - np.logaddexp.reduce(log_weight))[:, None, None]
        share = prior.concentration[:, own]
        total = (share.sum(axis=1) + count[:, own].sum(axis=1))[:, None]
        kappa = [polygamma(k, alpha + n) - polygamma(k, total) for k in range(3)]
        kappa[0] = kappa[0] + np.log(share / alpha)
        for i, g in enumerate(np.asarray(x.code)[:, f]):
            m, v, t = (k[:, of[i], g] + sign * k[:, against[i], g] for k, sign in zip(kappa, (-1, 1, -1), strict=True))
            w = weight[:, 0, 0]
            first, second = w @ m, w @ (v + m**2)
            third = w @ (t + 3 * m * v + m**3)
            expected = first, second - first**2, third - 3 * first * second + 2 * first**3
            np.testing.assert_allclose(
                [k[i, f] for k in (found.mean, found.variance, found.third)], expected, rtol=1e-8, atol=1e-10
            )


@pytest.mark.slow("compiles kernels of its own")
def test_the_mode_has_the_most_probable_cuts_and_given_these_the_mean(model, x64):
    prior, count = model
    mode = np.asarray(prior.update(LevelCounts(count)).mode().theta)
    for f, own in enumerate(FEATURES):
        log_weight, cuts, alpha, n = enumerated(prior, count, f)
        b = log_weight.argmax()
        counted = alpha[b] + n[b]
        at_all = counted[:, cuts[b]].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(mode[:, own], counted / at_all * prior.concentration[:, own] / alpha[b], rtol=1e-12)


def test_marginals_are_beta_distributions_with_the_exact_means_and_variances(model, x64):
    prior, count = model
    arguments = jax.jit(lambda prior, count: prior.update(LevelCounts(count)).marginals()["theta"][1])(prior, count)
    some = np.repeat(SIZES, SIZES) > 1
    beta = stats.beta(*(np.asarray(arguments[name])[:, some] for name in "ab"))
    _, mean, variance, *_ = summaries(prior, count)
    np.testing.assert_allclose(beta.mean(), mean[:, some], rtol=1e-10)
    np.testing.assert_allclose(beta.var(), variance[:, some], rtol=1e-8)


@pytest.mark.slow("compiles kernels of its own")
def test_without_concentration_there_is_no_posterior(x64):
    prior = IndependentCuts(0.0).prior(2, np.array([4]))
    assert not np.asarray(prior.proper()).any()
    assert np.asarray(prior.log_evidence(LevelCounts(np.ones((2, 4))))) == -np.inf
    assert np.isnan(np.asarray(prior.update(LevelCounts(np.ones((2, 4)))).mean().log_theta)).all()


def test_draws_are_probabilities_of_the_cells_of_each_column(model, x64):
    prior, count = model
    sample = jax.jit(lambda prior, count, key: prior.update(LevelCounts(count)).sample(key, 3).theta)
    theta = np.asarray(sample(prior, count, jax.random.key(0)))
    for own in FEATURES:
        np.testing.assert_allclose(theta[..., own].sum(axis=2), 1.0, rtol=1e-12)
