"""Programs without data simulate labels and cells with the exact predictive distributions."""

from functools import cache, partial
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from numpyro.infer import Predictive
from scipy import stats

from bayesnb import Dirichlet, GammaPoisson, MixedNB, MultinomialNB, NormalInverseGamma, numpyro_model, posterior_draws
from bayesnb._util.precision import float64
from tests.sampling.problem import values_by_column

pytestmark = pytest.mark.slow("NumPyro compiles for seconds")

DRAWS = 20_000
LENGTH = 5  # of simulated documents: the mean length of the nine, rounded
NORMAL = NormalInverseGamma(1.0, 0.5, 6.0, 3.0)
POISSON = GammaPoisson(2.0, 0.7)


def mixed() -> Any:
    """Features of every kind, three classes with concentrations 2."""
    rng = np.random.default_rng(4)
    y = np.arange(9) % 3
    X = pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue"])[rng.integers(0, 3, 9)],
            "sort": np.array(["a", "b"])[rng.integers(0, 2, 9)],
            "shape": np.array(["o", "x", "+"])[rng.integers(0, 3, 9)],
            "size": rng.normal(y, 1.0),
            "ripe": rng.integers(0, 2, 9),
            "spots": rng.poisson(1.0 + y),
            "u": rng.poisson(1.0, 9),
            "v": rng.poisson(2.0 + y),
            "w": rng.poisson(1.0, 9),
        }
    )
    X.loc[2, "size"], X.loc[4, "colour"] = np.nan, None
    nb = MixedNB(
        numbers="gaussian",
        categorical=["colour", "sort", "shape"],
        bernoulli=["ripe"],
        poisson=["spots"],
        multinomial=["u", "v", "w"],
        alpha=1.5,
        class_alpha=2.0,
        gaussian_prior=NORMAL,
        poisson_prior=POISSON,
    )
    return nb.fit(X, y)


@cache
def simulated(which: str) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """The classifier, its prior or posterior, and two rows from each of 20,000 draws of the parameters of that."""
    nb = mixed()
    drawn = None
    if which == "posterior_":
        drawn = values_by_column(nb, posterior_draws(nb, DRAWS))
    predictive = Predictive(partial(numpyro_model(nb), n_rows=2), drawn, num_samples=DRAWS, parallel=True)
    return nb, getattr(nb, which), float64(jax.jit(predictive))(jax.random.key(1))


def cells(nb: Any, model: Any, rows: dict[str, np.ndarray]) -> list[tuple[str, np.ndarray, list[Any], np.ndarray]]:
    """For each cell its name, its values (S, N), its predictive a class, and the variance (C,) over θ of its mean."""
    found = []
    for columns, family in zip(nb.encoding_.blocks, model.blocks, strict=True):
        for j, name in enumerate(columns.names):
            if isinstance(family, Dirichlet):
                count = columns.one_simplex
                alpha = family.concentration[:, columns.groups() == (0 if count else j)]
                total = LENGTH if count else 1
                of_simplex = rows["count"] if count else rows[name][..., None] == np.arange(alpha.shape[1])
                for k in [j] if count else range(alpha.shape[1]):
                    beta = [stats.beta(a[k], a.sum() - a[k]) for a in alpha]
                    exact = [stats.betabinom(total, *p.args) for p in beta]
                    spread = [total**2 * p.var() for p in beta]
                    found.append((f"{name}, {k}", of_simplex[..., k].astype(float), exact, np.array(spread)))
            elif isinstance(family, NormalInverseGamma):
                loc, kappa, a, rate = (v[:, j] for v in (family.loc, family.kappa, family.concentration, family.rate))
                scale = np.sqrt(rate * (kappa + 1) / (a * kappa))
                exact = [stats.t(2 * a[c], loc[c], scale[c]) for c in range(3)]
                found.append((name, rows[name], exact, rate / ((a - 1) * kappa)))
            else:
                a, rate = family.concentration[:, j], family.rate[:, j]
                exact = [stats.nbinom(a[c], rate[c] / (1 + rate[c])) for c in range(3)]
                found.append((name, rows[name], exact, a / rate**2))
    return found


def assert_mean(values: np.ndarray, expected: float, errors: float = 5.0) -> None:
    """Within five Monte Carlo standard errors: one in 1.7 million by chance, of some 600 comparisons here."""
    assert abs(values.mean() - expected) <= errors * values.std() / np.sqrt(len(values)) + 1e-12


@pytest.mark.parametrize("which", ["prior_", "posterior_"])
def test_labels_and_cells_have_the_exact_predictive_distribution(which):
    nb, model, rows = simulated(which)
    alpha, label = np.asarray(model.class_prior.concentration)[0], rows["label"]
    share = alpha / alpha.sum()
    for c in range(3):
        for i in range(2):
            assert_mean(label[:, i] == c, share[c])
        # Both rows have the same class probabilities.
        assert_mean((label == c).all(axis=1), share[c] * (alpha[c] + 1) / (alpha.sum() + 1))
    every = cells(nb, model, rows)
    assert len(every) == 3 + 2 + 3 + 1 + 2 + 1 + 3
    for _, values, exact, _ in every:
        for i in range(2):
            for c in range(3):
                own = values[label[:, i] == c, i]
                assert_mean(own, exact[c].mean())
                assert_mean((own - exact[c].mean()) ** 2, exact[c].var())


@pytest.mark.parametrize("which", ["prior_", "posterior_"])
def test_rows_share_the_parameters_of_their_class(which):
    """Cov(x₁, x₂) is the variance of the mean over θ in rows of one class, and zero in rows of two."""
    nb, model, rows = simulated(which)
    first, second = rows["label"].T
    for _, values, exact, spread in cells(nb, model, rows):
        for c in range(3):
            for d in range(3):
                both = (first == c) & (second == d)
                product = (values[both, 0] - exact[c].mean()) * (values[both, 1] - exact[d].mean())
                assert_mean(product, spread[c] if c == d else 0.0)


def test_rows_of_given_labels_and_parameters():
    """Parameters from `posterior_draws`; where the label is given too, only cells are simulated."""
    X, y = np.array([[3, 1, 0], [0, 1, 5], [1, 1, 3]]), np.array(["a", "b", "b"])
    nb = MultinomialNB().fit(X, y)
    drawn = posterior_draws(nb, 4_000)
    program = partial(numpyro_model(nb), y=["a", "b", "b"])
    rows = float64(Predictive(program, posterior_samples=values_by_column(nb, drawn)))(jax.random.key(3))
    np.testing.assert_array_equal(rows["label"], [[0, 1, 1]] * 4_000)
    for i, c in enumerate([0, 1, 1]):
        for k in range(3):
            assert_mean(rows["count"][:, i, k] - 5 * drawn["theta"][:, c, k], 0.0)  # the mean length is 5
