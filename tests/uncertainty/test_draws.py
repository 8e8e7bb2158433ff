"""Posterior draws against the distributions of SciPy, with the posterior worked out from counts by hand."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bayesnb as bnb
from bayesnb.uncertainty import ImproperPosteriorError, draw_parameters, posterior_draws
from tests.raises import refused
from tests.strategies import variants
from tests.uncertainty.simulated import LEVELS, NORMAL, SIMULATED, WORDS

DRAWS = 10_000
N = 40


def fitted(kind: str, seed: int = 0, n_classes: int = 3) -> tuple[Any, Any, np.ndarray]:
    rng = np.random.default_rng(seed)
    simulated = SIMULATED[kind]
    X, y = simulated.draw(rng, simulated.truth(rng, n_classes), N)
    return simulated.fit(X, y, n_classes), X, y


def assert_distributed(draws: np.ndarray, distribution: Any) -> None:
    """Kolmogorov-Smirnov at 1e-4."""
    assert stats.kstest(draws, distribution.cdf).pvalue > 1e-4


def level_counts(X: np.ndarray, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Counts of all levels, and the number of levels of the feature of each."""
    counts = [np.bincount(column.astype(int), minlength=size) for column, size in zip(X.T, sizes, strict=True)]
    return np.concatenate(counts), np.repeat(sizes, sizes)


def beta(count: Any, total: Any, n_levels: Any) -> Any:
    """Marginal of a Dirichlet(1, …, 1) that was updated."""
    return stats.beta(1 + count, n_levels - 1 + total - count)


def student(x: np.ndarray) -> tuple[float, float, float, float]:
    """m', κ', a', b' of NORMAL after the cells x."""
    n, mean = len(x), x.mean() if len(x) else 0.0
    kappa = NORMAL.kappa + n
    loc = (NORMAL.kappa * NORMAL.loc + n * mean) / kappa
    rate = NORMAL.rate + ((x - mean) ** 2).sum() / 2 + NORMAL.kappa * n * (mean - NORMAL.loc) ** 2 / (2 * kappa)
    return loc, kappa, NORMAL.concentration + n / 2, rate


def assert_normal_inverse_gamma(mu: np.ndarray, sigma2: np.ndarray, x: np.ndarray) -> None:
    loc, kappa, a, b = student(x)
    assert_distributed(mu, stats.t(2 * a, loc, np.sqrt(b / (a * kappa))))
    assert_distributed(sigma2, stats.invgamma(a, scale=b))
    z = (mu - loc) * np.sqrt(kappa / sigma2)
    assert_distributed(z, stats.norm)
    assert abs(np.corrcoef(z, sigma2.argsort().argsort())[0, 1]) < 4 / np.sqrt(len(mu))


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", SIMULATED)
def test_class_probabilities_are_beta(kind):
    nb, _, y = fitted(kind)
    prob = posterior_draws(nb, DRAWS)["class_prob"]
    assert prob.shape == (DRAWS, 3)
    np.testing.assert_allclose(prob.sum(axis=1), 1.0, rtol=1e-14)
    for c in range(3):
        assert_distributed(prob[:, c], beta((y == c).sum(), N, 3))


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", ["categorical", "bernoulli"])
def test_levels_are_beta_within_their_feature(kind):
    sizes = LEVELS if kind == "categorical" else (2, 2, 2)
    nb, X, y = fitted(kind)
    theta = posterior_draws(nb, DRAWS)["theta"]
    assert theta.shape == (DRAWS, 3, sum(sizes))
    for part in np.split(theta, np.cumsum(sizes)[:-1], axis=2):
        np.testing.assert_allclose(part.sum(axis=2), 1.0, rtol=1e-14)
    for c in range(3):
        for k, (count, n_levels) in enumerate(zip(*level_counts(X[y == c], sizes), strict=True)):
            assert_distributed(theta[:, c, k], beta(count, (y == c).sum(), n_levels))


@variants("features", [None, [3, 1], ["0"], "2"])
def test_words_are_beta_whichever_are_asked_for(features):
    """A few words have the marginals and the covariances that they have among all."""
    nb, X, y = fitted("multinomial")
    chosen = list(range(WORDS)) if features is None else sorted(int(name) for name in features)
    theta = posterior_draws(nb, DRAWS, features=features)["theta"]
    assert theta.shape == (DRAWS, 3, len(chosen))
    for c in range(3):
        total = X[y == c].sum(axis=0)
        for k, word in enumerate(chosen):
            assert_distributed(theta[:, c, k], beta(total[word], total.sum(), WORDS))
        both = theta[:, c].sum(axis=1)
        if len(chosen) < WORDS:
            assert_distributed(both, stats.beta(*((1 + total[w]).sum() for w in (chosen, np.delete(range(5), chosen)))))
        else:
            np.testing.assert_allclose(both, 1.0, rtol=1e-14)


def test_classes_and_features_are_independent():
    nb, _, _ = fitted("bernoulli")
    present = posterior_draws(nb, DRAWS)["theta"][:, :, 1::2].reshape(DRAWS, -1)
    correlation = np.corrcoef(present.T)[np.triu_indices(9, 1)]
    assert (abs(correlation) < 4 / np.sqrt(DRAWS)).all()


@pytest.mark.slow("compiles kernels of its own")
def test_draws_are_independent_also_between_chunks():
    """5,000 levels are drawn some hundred draws at a time."""
    nb = bnb.MultinomialNB().fit(np.ones((2, 5000)), [0, 1])
    theta = posterior_draws(nb, 700)["theta"]
    assert len(np.unique(theta[:, 0, 0])) == 700
    lagged = [np.corrcoef(theta[lag:, 1, 7], theta[:-lag, 1, 7])[0, 1] for lag in (1, 104, 209)]
    assert (abs(np.array(lagged)) < 4 / np.sqrt(490)).all()


def test_of_the_prior():
    nb, _, _ = fitted("gaussian")
    drawn = draw_parameters(nb.encoding_, nb.prior_, DRAWS, 3)
    assert_normal_inverse_gamma(drawn["mu"][:, 0, 0], drawn["sigma2"][:, 0, 0], np.empty(0))
    assert_distributed(drawn["class_prob"][:, 0], stats.beta(1, 2))


@pytest.mark.slow("other variants compile kernels of their own", but="CategoricalNB")
@pytest.mark.parametrize("make", [bnb.MultinomialNB, bnb.CategoricalNB])
def test_small_concentrations_do_not_underflow(make):
    """At shape 0.01 a quarter of all gamma variates is below 1e-60, and one in a thousand below any float."""
    X = np.arange(4)[:, None] if make is bnb.CategoricalNB else np.eye(4)
    nb = make(alpha=0.01, class_alpha=0.01).partial_fit(X, [0] * 4, classes=[0, 1])
    drawn = posterior_draws(nb, DRAWS)
    np.testing.assert_allclose(drawn["theta"].sum(axis=2), 1.0, rtol=1e-12)
    for k in range(4):
        assert_distributed_below_half(drawn["theta"][:, 1, k], stats.beta(0.01, 0.03))
        assert_distributed(drawn["theta"][:, 0, k], stats.beta(1.01, 3.03))
    assert_distributed(drawn["class_prob"][:, 1], stats.beta(0.01, 4.01))


def assert_distributed_below_half(draws: np.ndarray, distribution: Any) -> None:
    """Near 1 floats are too few for a tenth of the values to differ from 1; near 0 there are enough."""
    low, share = draws[draws < 0.5], distribution.cdf(0.5)
    assert stats.binomtest(len(low), len(draws), share).pvalue > 1e-4
    assert stats.kstest(low, lambda x: distribution.cdf(x) / share).pvalue > 1e-4


def make_prior_only(alpha: float) -> Any:
    return bnb.MultinomialNB(alpha=alpha).partial_fit(np.ones((1, 3)), [0], classes=[0, 1])


def test_known_class_probabilities_are_known():
    nb = bnb.GaussianNB(class_prior=[0.25, 0.75]).fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    np.testing.assert_allclose(posterior_draws(nb, 3)["class_prob"], [[0.25, 0.75]] * 3)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("kind", ["mixed", "multinomial"])
def test_the_seed_is_all_that_is_random(kind):
    nb, _, _ = fitted(kind)
    first, other = (posterior_draws(nb, 50, seed=seed) for seed in (1, 2))
    np.random.seed(0)  # noqa: NPY002 (the legacy state is what must not matter)
    again = posterior_draws(nb, 50, seed=1)
    for name, values in first.items():
        np.testing.assert_array_equal(values, again[name])
        assert (values != other[name]).all()


_MEMORY = """
import numpy as np, scipy.sparse as sp
import bayesnb as bnb

def kilobytes(field):
    status = open("/proc/self/status").read()
    return int(status.split(field + ":")[1].split()[0])

nb = bnb.MultinomialNB().fit(sp.csr_array(np.ones((2, 100_000))), [0, 1])
bnb.posterior_draws(nb, draws=5)
open("/proc/self/clear_refs", "w").write("5")
before = kilobytes("VmHWM")
theta = bnb.posterior_draws(nb, draws=100)["theta"]
print((kilobytes("VmHWM") - before) * 1024 / theta.nbytes)
"""


@pytest.mark.slow("large arrays, many files or long histories")
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux to measure peak memory")
def test_memory_is_that_of_the_result():
    """200,000 parameters, 100 draws: peak memory at most 1.3 times the 160 MB of the result."""
    result = subprocess.run([sys.executable, "-c", _MEMORY], capture_output=True, text=True, check=True)
    assert float(result.stdout) < 1.3


@variants("draws", [0, -3, 2.5, "10", None])
def test_draws_are_a_positive_number(draws):
    refused(r"draws=.* must be a positive integer", posterior_draws, make_prior_only(1.0), draws=draws)


@variants("feature", ["colour", 3, -1, 0.5])
def test_features_are_columns(feature):
    with pytest.raises(ValueError, match=r"features: there is no column .*the columns of X are \['0', '1', '2'\]"):
        posterior_draws(make_prior_only(1.0), features=[feature])


def test_improper_posteriors_have_no_draws():
    nb = bnb.CategoricalNB(alpha=0).fit([["a"], ["b"], ["a"]], ["x", "x", "y"])
    refused(r"class 'y', feature '0', 'b'", posterior_draws, nb, error=ImproperPosteriorError)
    nb = bnb.MultinomialNB(alpha=0).fit([[1, 0], [1, 1]], [0, 1])
    refused(r"class 0, feature '1'", posterior_draws, nb, features=[0], error=ImproperPosteriorError)
