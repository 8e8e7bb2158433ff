"""Posterior probabilities of dependence against simulated frequencies; p-values against laws and classical tests."""

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from bayesnb import CategoricalNB, GaussianNB, MixedNB, NormalInverseGamma
from bayesnb.analysis.dependence import check_independence

pytestmark = pytest.mark.slow("simulates many data sets or draws")

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


def simulate(draw_pair, make, sets=96, n_pairs=15, n=50):
    rng = np.random.default_rng(11)
    y = np.repeat([0, 1], n // 2)
    log_factor, truth = [], []
    for _ in range(sets):
        dependent = rng.random(n_pairs) < 0.5
        columns = [np.stack([draw_pair(rng, d, n // 2) for d in dependent]) for _ in (0, 1)]  # of each class
        X = np.concatenate(columns, axis=2).reshape(2 * n_pairs, n).T
        log_factor += pairs_of(make(X, y), X, y, n_pairs)
        truth += dependent.tolist()
    check_calibrated(log_factor, np.array(truth))


def test_calibrated_for_tables():
    alpha = 0.7
    total = np.sqrt(2 * alpha * 3 * alpha)

    def draw_pair(rng, dependent, n):
        if dependent:
            cell = rng.choice(6, n, p=rng.dirichlet(np.full(6, total / 6)))
            return np.stack([cell // 3, cell % 3])
        return np.stack([rng.choice(k, n, p=rng.dirichlet(np.full(k, total / k))) for k in (2, 3)])

    levels = [[0, 1], [0, 1, 2]] * 15
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
        group = level if dependent else np.zeros(n, int)
        sigma = 1.0 / np.sqrt(rng.gamma(A))
        # κ rows of the prior at 0.5, of which each group has its share.
        rows = KAPPA * np.bincount(group, minlength=2) / n
        mean = (0.5 + sigma / np.sqrt(np.maximum(rows, 1e-9)) * rng.normal(size=2))[group]
        return np.stack([level, rng.normal(mean, sigma)])

    prior = NormalInverseGamma(0.5, KAPPA, A, 1.0)

    def make(X, y):
        return MixedNB(numbers="gaussian", categorical=list(range(0, 30, 2)), gaussian_prior=prior).fit(X, y)

    simulate(draw_pair, make)


@pytest.mark.parametrize("rows", [10, 50])
@pytest.mark.parametrize("n_levels", [2, 5, 10])
@pytest.mark.parametrize("skewed", [False, True])
def test_p_values_of_tables_hold_what_they_say(n_levels, rows, skewed):
    """P(p ≤ u) ≤ u whatever the margins, and not far below where a table can have many values."""
    rng = np.random.default_rng(6)
    prob = 0.6 ** np.arange(n_levels) if skewed else np.ones(n_levels)
    y = np.arange(2 * rows) % 2
    X = rng.choice(n_levels, (2 * rows, 40), p=prob / prob.sum())
    p = check_independence(CategoricalNB().fit(X, y), X, y)["p_value"].to_numpy()
    # Given the margins the 780 p-values are independent by twos, also of pairs with one column in common.
    for level in (0.05, 0.25, 0.5, 0.75):
        error = 4 * np.sqrt(level * (1 - level) / len(p))
        assert (p <= level).mean() <= level + error
        if n_levels > 2 and rows == 50:
            assert (p <= level).mean() >= level - error - 0.02


def test_p_values_of_two_by_two_tables_are_exact():
    """Reference: the sum over all tables with the same margins, hypergeometric in each of two classes."""
    rng = np.random.default_rng(8)
    y = np.repeat([0, 1], [14, 9])
    x = rng.integers(0, 2, 23)
    X = np.stack([x, np.where(rng.random(23) < 0.75, x, 1 - x), rng.integers(0, 2, 23)], axis=1)
    found = check_independence(CategoricalNB().fit(X, y), X, y, draws=20_000).set_index(["feature_1", "feature_2"])

    def outcomes(u, v):
        """N I(u; v) of every table with these margins, of this one, and their probabilities."""
        n, k, m = len(u), u.sum(), v.sum()
        both = np.arange(max(0, k + m - n), min(k, m) + 1)
        tables = np.stack([both, k - both, m - both, n - k - m + both], axis=1)
        expected = np.outer([k, n - k], [m, n - m])[[0, 0, 1, 1], [0, 1, 0, 1]] / n
        nats = special.rel_entr(tables, expected).sum(axis=1)
        return nats, nats[both == np.sum(u & v)][0], stats.hypergeom(n, k, m).pmf(both)

    for i, j in ((0, 1), (0, 2), (1, 2)):
        (nats, seen, prob), (others, seen_too, prob_too) = (outcomes(X[y == c, i], X[y == c, j]) for c in (0, 1))
        extreme = np.add.outer(nats, others) >= seen + seen_too - 1e-9
        expected = np.outer(prob, prob_too)[extreme].sum()
        p = found.loc[(str(i), str(j)), "p_value"]
        assert p == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 20_000) + 1e-4)


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
    assert alone(frame, MixedNB(numbers="gaussian")) == pytest.approx(
        expected, abs=4 * np.sqrt(expected / 20_000) + 1e-4
    )
