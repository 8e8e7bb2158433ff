"""Normal cells: means and variances plugged in, or integrated out to Student's t."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesnb.families._namespace import namespace
from bayesnb.families._pytree import pytree
from bayesnb.families.independent_cells import Cellwise, reduce_cells
from bayesnb.families.moments import Moments
from bayesnb.families.number_rows import map_each_row, observed, sum_cells
from bayesnb.families.protocol import Distribution
from bayesnb.families.special import log_rising

LOG_2PI = 1.8378770664093453


@pytree
class Normal(Cellwise):
    """Means and variances plugged in: `mu`, `sigma2` (C, F). A variance of zero is a point mass."""

    mu: Any
    sigma2: Any

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log Normal(x; μ, σ²); on a point mass +inf, off it -inf, and -inf outweighs."""
        mu, sigma2 = jnp.asarray(self.mu), jnp.asarray(self.sigma2)
        if mu.ndim == 3:  # each row has its own parameters
            return self._with_points(x)
        point = sigma2 == 0
        root = 1.0 / jnp.sqrt(jnp.where(point, 1.0, sigma2))
        constant = jnp.log(root) - 0.5 * LOG_2PI

        def regular(row: jax.Array) -> jax.Array:
            seen, row = observed(row)
            z = (row - mu) * root
            return sum_cells(seen, constant - 0.5 * z * z)

        scores: jax.Array = jax.lax.cond(
            jnp.any(point), self._with_points, partial(map_each_row, regular), jnp.asarray(x)
        )
        return scores

    def _with_points(self, x: Any) -> Float[jax.Array, "N C"]:
        cells = self.terms(x)
        outweighed = jnp.any(jnp.isneginf(cells), axis=-1) & ~jnp.any(jnp.isnan(cells), axis=-1)
        return jnp.where(outweighed, -jnp.inf, jnp.sum(cells, axis=-1))

    def distribution(self) -> Distribution:
        """Distribution of a number."""
        return "Normal", {"loc": self.mu, "scale": jnp.sqrt(self.sigma2)}

    def simulate(self, rng: Any) -> np.ndarray:
        """One number for each of the parameters, drawn by a NumPy generator."""
        cells: np.ndarray = rng.normal(self.mu, np.sqrt(self.sigma2))
        return cells

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log density for one class; on a point mass +inf, off it -inf."""
        point, square = jnp.asarray(self.sigma2) == 0, (x - self.mu) ** 2
        sigma2 = jnp.where(point, 1.0, self.sigma2)
        density = -0.5 * (LOG_2PI + jnp.log(sigma2) + square / sigma2)
        return jnp.where(point, jnp.where(square > 0, -jnp.inf, jnp.inf), density)

    def log_likelihood(self, statistics: Moments) -> Float[jax.Array, "*C F"]:
        """(C, F) -½ [n log 2πσ² + (M2 + n (x̄ - μ)²)/σ²]."""
        n, square = statistics.count, statistics.m2 + statistics.count * (statistics.mean - self.mu) ** 2
        return jnp.where(n > 0, -0.5 * (n * (LOG_2PI + jnp.log(self.sigma2)) + square / self.sigma2), 0.0)


@pytree
class StudentT(Cellwise):
    """Means and variances integrated out: log density constant - exponent · log(1 + ((x - loc)/width)²)."""

    loc: Any
    width: Any
    exponent: Any
    constant: Any

    @classmethod
    def from_posterior(cls, posterior: Any) -> StudentT:
        """Student's t distribution of one more cell, with 2a degrees of freedom and scale² = b(κ + 1)/(aκ)."""
        fields = posterior.concentration, posterior.rate, posterior.kappa
        xp = namespace(*fields, posterior.loc)
        a, b, kappa = (xp.where(v > 0, v, xp.nan) for v in map(xp.asarray, fields))
        width = xp.sqrt(b * (2.0 * (kappa + 1.0) / kappa))
        constant = (log_rising(a, xp.full((), 0.5)) - 0.5 * np.log(np.pi)) - xp.log(width)
        return cls(xp.asarray(posterior.loc), width, a + 0.5, constant)

    def log_prob(self, x: Any) -> jax.Array:
        """(N, C) Σ_f log density."""
        if self.loc.ndim == 3:  # each row has its own parameters: to look at all of them first would take as long again
            return reduce_cells(self, sum_cells, x)
        seen, x = observed(x)
        farthest = jnp.max(abs(x), initial=0.0) + jnp.max(abs(self.loc), initial=0.0)

        def score(log1p_square: Callable[[jax.Array], jax.Array]) -> jax.Array:
            return jax.vmap(lambda of_class: sum_cells(seen, of_class.cells(x, log1p_square)), out_axes=1)(self)

        scores: jax.Array = jax.lax.cond(
            farthest < 1e150 * jnp.min(self.width, initial=1.0),
            lambda: score(lambda z: jnp.log1p(z * z)),
            lambda: score(_log1p_square),
        )
        return scores

    def cells(
        self, x: jax.Array, log1p_square: Callable[[jax.Array], jax.Array] | None = None
    ) -> Float[jax.Array, "N F"]:
        """(N, F) log density for one class."""
        growth = (log1p_square or _log1p_square)((x - self.loc) / self.width)
        log_density: jax.Array = self.constant - self.exponent * growth
        return log_density


def _log1p_square(z: jax.Array) -> jax.Array:
    """log(1 + z²) where z² may overflow."""
    far = abs(z) > 1e100
    near = jnp.where(far, 0.0, z)
    return jnp.where(far, 2.0, 1.0) * jnp.log1p(jnp.where(far, abs(z), near * near))
