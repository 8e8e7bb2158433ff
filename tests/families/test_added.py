"""Moments and draws of log-likelihoods of rows that may themselves be among the data.

Against posteriors that counted the row, derivatives of log normalisers written out here, and Monte Carlo.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln

from bayesnb.families import Dirichlet, GammaPoisson, LevelCounts, Moments, NormalInverseGamma, Totals
from bayesnb.families.numbers import Complete
from bayesnb.families.protocol import Replayer
from bayesnb.families.rows import Dense
from bayesnb.uncertainty.variates import HostVariates, ShapeRecorder, draw_variates
from tests.families.test_rows import alphas, dirichlet, make
from tests.strategies import thorough, variants

DRAWS, CHUNK = 200_000, 20_000
N_CLASSES = 3


@dataclass(frozen=True, eq=False)
class Case:
    """A posterior, rows as a kernel sees them (those from `n` on are padding), and the same as an array."""

    posterior: Any
    x: Any
    dense: np.ndarray

    def first(self, values: Any) -> np.ndarray:
        return np.asarray(values)[..., : len(self.dense), :]

    def statistics(self, i: int) -> Any:
        """Statistics of row i, counted once in every class."""
        row = np.broadcast_to(self.dense[i], (N_CLASSES, self.dense.shape[1]))
        if isinstance(self.posterior, Dirichlet):
            return LevelCounts(row)
        seen, row = (~np.isnan(row)).astype(float), np.nan_to_num(row)
        if isinstance(self.posterior, GammaPoisson):
            return Totals(seen, row)
        return Moments(seen, row, np.zeros(row.shape))


def real_rows(kind: str) -> Case:
    """Five features, with missing cells, a row of nothing else, and a row that is far away."""
    rng = np.random.default_rng(3)
    shape = (N_CLASSES, 5)
    if kind.startswith("gaussian"):
        posterior = NormalInverseGamma(*(rng.gamma(4.0, size=shape) / s for s in (2.0, 3.0, 1.0, 2.0)))
        x = rng.normal(1.0, 2.0, (10, 5))
    else:
        posterior = GammaPoisson(rng.gamma(3.0, size=shape) + 0.2, rng.gamma(2.0, size=shape) + 0.3)
        x = rng.poisson(2.0, (10, 5)).astype(float)
    x[6] = 40.0
    if kind.endswith("complete"):
        return Case(posterior, Complete(x), x)
    x[rng.random(x.shape) < 0.2] = np.nan
    x[7] = np.nan
    return Case(posterior, x, x)


def level_rows(kind: str, start: int, stop: int, pad: int) -> Case:
    rows = make(kind.removeprefix("as an array, "))
    dense = rows.dense[start:stop]
    x = (
        Dense(dense, rows.group, rows.num_groups)
        if kind.startswith("as an array")
        else rows.rows.piece(start, stop, pad)
    )
    return Case(dirichlet(rows, alphas(rows)), x, dense)


REAL_KINDS = ("gaussian", "gaussian, complete", "poisson", "poisson, complete")


def case(kind: str, start: int = 0, stop: int = 50, pad: int = 64) -> Case:
    return real_rows(kind) if kind in REAL_KINDS else level_rows(kind, start, stop, pad)


@jax.jit
def cumulants(posterior: Any, x: Any, multiplicity: float) -> list[jax.Array]:
    return jax.tree.leaves(posterior.log_likelihood_cumulants(x, multiplicity))


@variants(
    "kind",
    [
        "categorical, packed",
        "categorical, too wide to pack",
        "bernoulli",
        "presence",
        "words",
        "as an array, words",
        *REAL_KINDS,
    ],
)
def test_an_added_row_is_a_row_that_was_counted(kind):
    """Row by row, the cumulants are those under the posterior that counted it in every class."""
    rows = case(kind)
    for multiplicity in (1.0, 2.5):
        found = [rows.first(part) for part in cumulants(rows.posterior, rows.x, multiplicity)]
        for i in range(0, len(rows.dense), 1 if len(rows.dense) <= 10 else 7):
            posterior = rows.posterior.update(rows.statistics(i).scale(multiplicity))
            for actual, expected in zip(found, cumulants(posterior, rows.x, 0.0), strict=True):
                np.testing.assert_allclose(actual[i], rows.first(expected)[i], rtol=1e-10, atol=1e-10)


def log_mean_power(rows: Case, w: Any) -> Any:
    """(N, C) log E p(row | θ)^w over the posterior, by conjugacy: a difference of log normalisers."""
    f, x = rows.posterior, rows.dense[:, None]
    if isinstance(f, Dirichlet):
        sums = (np.asarray(f.group)[:, None] == np.arange(f.num_groups)).astype(float)

        def log_beta(a: Any) -> Any:
            return jnp.sum(gammaln(a), axis=-1) - jnp.sum(gammaln(a @ sums), axis=-1)

        base = gammaln(x @ sums + 1).sum(axis=-1) - gammaln(x + 1).sum(axis=-1)
        return log_beta(f.concentration + w * x) - log_beta(f.concentration) + w * base
    seen, x = ~np.isnan(x), np.nan_to_num(x)
    a, b = f.concentration, f.rate
    if isinstance(f, GammaPoisson):
        shape, rate = a + w * x, b + w
        value = gammaln(shape) - gammaln(a) - shape * jnp.log(rate) + a * jnp.log(b) - w * gammaln(x + 1)
    else:
        shape, kappa = a + w / 2, f.kappa + w
        rate = b + f.kappa * w * (x - f.loc) ** 2 / (2 * kappa)
        value = gammaln(shape) - gammaln(a) - shape * jnp.log(rate) + a * jnp.log(b)
        value = value + 0.5 * jnp.log(f.kappa / kappa) - w / 2 * jnp.log(2 * jnp.pi)
    return jnp.sum(jnp.where(seen, value, 0.0), axis=-1)


@pytest.mark.slow("other variants compile kernels of their own", but=["first", "gaussian-1.0", "exponential-1.0"])
@pytest.mark.parametrize("multiplicity", [0.0, 1.0])
@pytest.mark.parametrize(
    "kind", ["categorical, packed", "bernoulli", "presence", "words", "words, fractional", *REAL_KINDS]
)
def test_cumulants_are_derivatives(kind, multiplicity):
    """The first three of log E p^w at w = 0; at w = 1 where the row was added."""
    rows = case(kind)
    derivative = partial(log_mean_power, rows)
    for actual in cumulants(rows.posterior, rows.x, multiplicity):
        derivative = jax.jacfwd(derivative)
        np.testing.assert_allclose(rows.first(actual), jax.jit(derivative)(multiplicity), rtol=1e-9, atol=1e-10)


def few_rows(kind: str) -> Case:
    """Rows 4 to 7, of which the last is empty; without most of the padding of sparse entries."""
    rows = case(kind, 4, 8, 4)
    if getattr(rows.x, "pairs", None) is None:
        return rows
    stored = int(rows.x.indptr[-1]) + 2
    short = {name: getattr(rows.x, name)[:stored] for name in ("count", "level", "row")}
    return replace(rows, x=replace(rows.x, **short))


def draws_of(rows: Case, multiplicity: float, n: int = DRAWS) -> np.ndarray:
    """(S, N, C) draws of log p(row | class, θ), with variates from NumPy."""
    rng = np.random.default_rng(0)

    @jax.jit
    def ask(posterior: Any, x: Any) -> Any:
        asked = ShapeRecorder()
        posterior.draw_with_multiplicity(asked, 1, x, multiplicity)
        return asked.gammas, asked.normals

    @jax.jit
    def draw(posterior: Any, x: Any, variates: Any) -> Any:
        return posterior.draw_with_multiplicity(Replayer(variates), CHUNK, x, multiplicity)

    wanted = ask(rows.posterior, rows.x)
    variates = HostVariates(rng)
    drawn = (draw_variates(wanted, CHUNK, variates) for _ in range(0, n, CHUNK))
    parts = [rows.first(draw(rows.posterior, rows.x, some)) for some in drawn]
    base = rows.first(np.asarray(rows.posterior.log_base(rows.x))[:, None])
    return np.concatenate(parts) + base


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("multiplicity", [0.0, 1.0])
@pytest.mark.parametrize(
    "kind",
    thorough(
        [
            "categorical, packed",
            "bernoulli",
            "presence",
            "words",
            "as an array, words, fractional",
            "gaussian",
            "poisson",
        ],
        ("words", "gaussian"),
    ),
)
def test_draws_have_the_exact_moments(kind, multiplicity):
    """Mean and variance of 200,000 draws within four standard errors."""
    rows = few_rows(kind)
    draws = draws_of(rows, multiplicity)
    mean, variance, _ = (rows.first(part) for part in cumulants(rows.posterior, rows.x, multiplicity))
    centred = draws - mean
    second, fourth = (centred**2).mean(axis=0), (centred**4).mean(axis=0)
    assert (abs(centred.mean(axis=0)) <= 4 * np.sqrt(variance / DRAWS) + 1e-12).all()
    assert (abs(second - variance) <= 4 * np.sqrt((fourth - second**2) / DRAWS) + 1e-12).all()


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("kind", ["words", "as an array, words", "categorical, packed"])
@pytest.mark.parametrize("multiplicity", [0.0, 1.0])
def test_draws_under_small_concentrations_are_log_probabilities(kind, multiplicity):
    """Gamma(0.001) variates underflow; their logarithms do not."""
    rows = few_rows(kind)
    alpha = np.full(np.shape(rows.posterior.concentration), 1e-3)
    small = replace(rows, posterior=replace(rows.posterior, concentration=alpha))
    draws = draws_of(small, multiplicity, CHUNK) - rows.first(np.asarray(rows.posterior.log_base(rows.x))[:, None])
    assert np.isfinite(draws).all()
    assert (draws <= 1e-9).all()
