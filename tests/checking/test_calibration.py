"""Posterior probabilities of dependence against simulated frequencies; p-values against laws and classical tests."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bayesnb import CategoricalNB, GaussianNB, MixedNB, NormalInverseGamma
from bayesnb.checking import check_independence

KAPPA, A = 0.4, 1.7


def check_calibrated(log_factor, dependent):
    """Posterior probabilities of dependence under even odds match frequencies, in ten bins of equal size."""
    proba = 1 / (1 + np.exp(-np.asarray(log_factor)))
    order = np.argsort(proba, kind="stable")
    chi2, bins = 0.0, np.array_split(order, 10)
    for b in bins:
        variance = np.sum(proba[b] * (1 - proba[b]))
        # A bin of near certainty has no normal approximation: then its misses are few.
        if variance < 3:
            misses = np.abs(dependent[b] - np.round(proba[b])).sum()
            assert stats.poisson.sf(misses - 1, np.minimum(proba[b], 1 - proba[b]).sum()) > 1e-4
        else:
            chi2 += np.sum(dependent[b] - proba[b]) ** 2 / variance
    assert stats.chi2.sf(chi2, len(bins)) > 1e-3
    # It has to say something for this to mean something.
    assert proba[dependent].mean() > proba[~dependent].mean() + 0.2


def pairs_of(nb, X, y, n_pairs):
    """Bayes factors of the columns (0, 1), (2, 3), …"""
    table = check_independence(nb, X, y, draws=1).set_index(["feature_1", "feature_2"])
    return [table.loc[(str(2 * k), str(2 * k + 1)), "log_bayes_factor"] for k in range(n_pairs)]


def simulate(draw_pair, make, sets=24, n_pairs=60, n=50):
    rng = np.random.default_rng(11)
    y = np.arange(n) % 2
    log_factor, truth = [], []
    for _ in range(sets):
        dependent = rng.random(n_pairs) < 0.5
        columns = [np.stack([draw_pair(rng, d, n) for d in dependent]) for _ in (0, 1)]  # of each class
        X = np.where((y == 0)[None, None], *columns).reshape(2 * n_pairs, n).T
        log_factor += pairs_of(make(X, y), X, y, n_pairs)
        truth += dependent.tolist()
    check_calibrated(log_factor, np.array(truth))


def test_calibrated_for_tables():
    alpha = 0.7

    def draw_pair(rng, dependent, n):
        if dependent:
            cell = rng.choice(6, n, p=rng.dirichlet(np.full(6, alpha**2)))
            return np.stack([cell // 3, cell % 3])
        return np.stack([rng.choice(k, n, p=rng.dirichlet(np.full(k, alpha))) for k in (2, 3)])

    levels = [[0, 1], [0, 1, 2]] * 60
    simulate(draw_pair, lambda X, y: CategoricalNB(alpha=alpha, categories=levels).fit(X.astype(int), y))


def test_calibrated_for_gaussian_pairs():
    def draw_pair(rng, dependent, n):
        if dependent:
            # 2b = 2 on the diagonal, ν = 2a + 1.
            sigma = stats.invwishart(2 * A + 1, np.diag([2.0, 2.0])).rvs(random_state=rng)
        else:
            sigma = np.diag(1.0 / rng.gamma(A, 1.0, 2))
        mu = rng.multivariate_normal([0.5, 0.5], sigma / KAPPA)
        return rng.multivariate_normal(mu, sigma, n).T

    prior = NormalInverseGamma(0.5, KAPPA, A, 1.0)
    simulate(draw_pair, lambda X, y: GaussianNB(prior=prior).fit(X, y))


def test_calibrated_for_levels_and_numbers():
    def draw_pair(rng, dependent, n):
        level = rng.integers(0, 2, n)
        sigma2 = 1.0 / rng.gamma(A, 1.0, 2)
        mu = 0.5 + np.sqrt(sigma2 / KAPPA) * rng.normal(size=2)
        mine = level if dependent else np.zeros(n, int)
        return np.stack([level, rng.normal(mu[mine], np.sqrt(sigma2[mine]))])

    prior = NormalInverseGamma(0.5, KAPPA, A, 1.0)

    def make(X, y):
        return MixedNB(categorical=list(range(0, 120, 2)), gaussian_prior=prior).fit(X, y)

    simulate(draw_pair, make, sets=12)


def test_p_values_of_gaussian_pairs_are_uniform():
    X = np.random.default_rng(5).normal(size=(30, 400))
    y = np.arange(30) % 3
    table = check_independence(GaussianNB().fit(X, y), X, y, draws=2000).set_index(["feature_1", "feature_2"])
    p = [table.loc[(str(2 * k), str(2 * k + 1)), "p_value"] for k in range(200)]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_p_values_of_tables_are_roughly_uniform():
    X = np.random.default_rng(6).integers(0, 3, (600, 40))
    y = np.arange(600) % 2
    table = check_independence(CategoricalNB().fit(X, y), X, y)
    # 780 pairs of 40 columns; four degrees of freedom a class, so nearly continuous.
    for level in (0.05, 0.25, 0.5, 0.75):
        share = (table["p_value"] <= level).mean()
        assert share == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 780) + 0.02)


def alone(X, nb):
    """One class with all rows, beside one with two rows that say nothing."""
    y = np.array([0] * len(X) + [1, 1])
    X = pd.concat([pd.DataFrame(X), pd.DataFrame(X)[:2]], ignore_index=True)
    return check_independence(nb.fit(X, y), X, y, draws=20_000)["p_value"].item()


def test_p_values_are_those_of_classical_tests():
    x = np.random.default_rng(3).normal(size=(15, 2))
    x[:, 1] += 0.4 * x[:, 0]
    expected = stats.pearsonr(*x.T).pvalue
    assert alone(x, GaussianNB()) == pytest.approx(expected, abs=4 * np.sqrt(expected / 20_000) + 1e-4)
    level = np.arange(15) % 3
    frame = pd.DataFrame({"a": np.array(list("uvw"))[level], "x": x[:, 0] + 0.5 * level})
    expected = stats.f_oneway(*(frame["x"][level == k] for k in range(3))).pvalue
    assert alone(frame, MixedNB()) == pytest.approx(expected, abs=4 * np.sqrt(expected / 20_000) + 1e-4)
