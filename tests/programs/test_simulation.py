"""Programs without data simulate labels and cells with the exact predictive distributions."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from numpyro.infer import Predictive
from scipy import stats

from bayesnb import Dirichlet, GammaPoisson, MixedNB, MultinomialNB, NormalInverseGamma, posterior_draws
from bayesnb._util.precision import float64
from bayesnb.sampling import programs
from bayesnb.uncertainty import site_names

pytestmark = pytest.mark.slow("NumPyro compiles for seconds")

DRAWS = 20_000
LENGTHS = np.array([[9], [2]])  # of the documents of the two rows
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
def simulated(which: str) -> tuple[Any, dict[str, np.ndarray]]:
    """The model, and two rows from each of 20,000 draws of the parameters."""
    nb = mixed()
    model, totals = getattr(nb, which), [1, 1, 1, 1, LENGTHS]
    program = partial(
        programs.naive_bayes, model, sites=site_names(nb.encoding_, model), n_rows=len(LENGTHS), totals=totals
    )
    return model, float64(jax.jit(Predictive(program, num_samples=DRAWS, parallel=True)))(jax.random.key(1))


def cells(model: Any, rows: dict[str, np.ndarray]) -> list[tuple[str, np.ndarray, list[list[Any]], np.ndarray]]:
    """For each cell its name, its values (S, N), its predictive (N, C), and the variance over θ of its mean (N, C)."""
    found = []
    for b, family in enumerate(model.blocks):
        if isinstance(family, Dirichlet):
            sizes = np.bincount(family.group)
            for size in np.unique(sizes):
                for i, j in enumerate(np.flatnonzero(sizes == size)):
                    alpha = family.concentration[:, np.asarray(family.group) == j]
                    for k in range(size):
                        beta = [stats.beta(a[k], a.sum() - a[k]) for a in alpha]
                        total = LENGTHS[:, 0] if b == 4 else np.ones(len(LENGTHS), int)
                        exact = [[stats.betabinom(t, *p.args) for p in beta] for t in total]
                        spread = [[t**2 * p.var() for p in beta] for t in total]
                        found.append((f"{b}, {j}, {k}", rows[f"x_{b}_of_{size}"][:, :, i, k], exact, np.array(spread)))
        elif isinstance(family, NormalInverseGamma):
            loc, kappa, a, rate = (v[:, 0] for v in (family.loc, family.kappa, family.concentration, family.rate))
            exact = [stats.t(2 * a[c], loc[c], np.sqrt(rate[c] * (kappa[c] + 1) / (a[c] * kappa[c]))) for c in range(3)]
            found.append((f"{b}", rows[f"x_{b}"][:, :, 0], [exact, exact], np.array([rate / ((a - 1) * kappa)] * 2)))
        else:
            a, rate = family.concentration[:, 0], family.rate[:, 0]
            exact = [stats.nbinom(a[c], rate[c] / (1 + rate[c])) for c in range(3)]
            found.append((f"{b}", rows[f"x_{b}"][:, :, 0], [exact, exact], np.array([a / rate**2] * 2)))
    return found


def assert_mean(values: np.ndarray, expected: float, errors: float = 5.0) -> None:
    """Within five Monte Carlo standard errors: one in 1.7 million by chance, of some 600 comparisons here."""
    assert abs(values.mean() - expected) <= errors * values.std() / np.sqrt(len(values)) + 1e-12


@pytest.mark.parametrize("which", ["prior_", "posterior_"])
def test_labels_and_cells_have_the_exact_predictive_distribution(which):
    model, rows = simulated(which)
    alpha, label = np.asarray(model.class_prior.concentration)[0], rows["label"]
    share = alpha / alpha.sum()
    for c in range(3):
        for i in range(2):
            assert_mean(label[:, i] == c, share[c])
        # Both rows have the same class probabilities.
        assert_mean((label == c).all(axis=1), share[c] * (alpha[c] + 1) / (alpha.sum() + 1))
    every = cells(model, rows)
    assert len(every) == 3 + 2 + 3 + 1 + 2 + 1 + 3
    for _, values, exact, _ in every:
        for i in range(2):
            for c in range(3):
                own, predictive = values[label[:, i] == c, i], exact[i][c]
                assert_mean(own, predictive.mean())
                assert_mean((own - predictive.mean()) ** 2, predictive.var())


@pytest.mark.parametrize("which", ["prior_", "posterior_"])
def test_rows_share_the_parameters_of_their_class(which):
    """Cov(x₁, x₂) is the variance of the mean over θ in rows of one class, and zero in rows of two."""
    model, rows = simulated(which)
    first, second = rows["label"].T
    for _, values, exact, spread in cells(model, rows):
        for c in range(3):
            for d in range(3):
                both = (first == c) & (second == d)
                product = (values[both, 0] - exact[0][c].mean()) * (values[both, 1] - exact[1][d].mean())
                assert_mean(product, np.sqrt(spread[0][c] * spread[1][c]) if c == d else 0.0)


def test_rows_of_given_labels_and_parameters():
    """Parameters from `posterior_draws`; where the label is given too, only cells are simulated."""
    X, y = np.array([[3, 1, 0], [0, 1, 4], [1, 1, 1]]), np.array(["a", "b", "b"])
    nb = MultinomialNB().fit(X, y)
    sites, drawn = site_names(nb.encoding_, nb.prior_), posterior_draws(nb, 4_000)
    label = np.array([0, 1, 1])
    program = partial(programs.naive_bayes, nb.prior_, label=label, sites=sites, n_rows=3, totals=[5])
    predictive = Predictive(program, posterior_samples=programs.to_site_values(nb.prior_, drawn, sites))
    rows = float64(predictive)(jax.random.key(3))
    np.testing.assert_array_equal(rows["label"], [label] * 4_000)
    for i, c in enumerate(label):
        for k in range(3):
            assert_mean(rows["x_0_of_3"][:, i, 0, k] - 5 * drawn["theta"][:, c, k], 0.0)
