"""Count, mean and centred sum of squares: the sufficient statistics of Gaussian features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families._pytree import Array, pytree
from bayesnb.families.number_rows import observed, only, sum_by_class
from bayesnb.families.protocol import Unit
from bayesnb.families.statistics import ROUNDING, pooled


@pytree
class Moments:
    """Count, mean and centred sum of squares M2 of each feature in each class, (C, F) each.

    References
    ----------
    Chan, Golub & LeVeque, *Algorithms for computing the sample variance*, Am. Stat. 37 (1983).
    """

    count: Array
    mean: Any
    m2: Any

    def merge(self, other: Self) -> Self:
        """Statistics of both sets of rows: n = n₁ + n₂, δ = x̄₂ - x̄₁, x̄ = x̄₁ + δ n₂/n, M2 = M2₁ + M2₂ + δ² n₁n₂/n."""
        n = self.count + other.count
        share = other.count / (n + (n == 0))
        delta = other.mean - self.mean
        spread = delta * delta * self.count * share
        return type(self)(n, self.mean + delta * share, self.m2 + other.m2 + spread)

    def remove(self, other: Self) -> Self:
        """Inverse of `merge`; zeros where no weight is left."""
        n = self.count - other.count
        some = n != 0
        mean = (self.mean - (other.mean - self.mean) * other.count / (n + ~some)) * some
        # A mean that rounding could have left of zero is zero: a constant feature stays constant.
        sd = (self.m2 / (self.count + (self.count == 0))) ** 0.5
        mean = mean * (abs(mean * n) > 16 * 2.2e-16 * (abs(self.mean) + sd) * self.count) + 0.0
        delta = other.mean - mean
        spread = delta * delta * n * other.count / (self.count + (self.count == 0))
        return type(self)(n, mean, (self.m2 - other.m2 - spread) * some)

    def without(self, cells: Any, weight: Any) -> Moments:
        """Remove one row's `cells` (F,) of a `weight` (C, 1); what rounding leaves of nothing is 0.

        So a feature that is constant in the other rows has M2 = 0.
        """
        count = self.count - weight
        some = count > ROUNDING * self.count
        share = jnp.where(some, weight, 0.0) / jnp.where(some, count, 1.0)
        delta = cells - self.mean
        m2 = self.m2 - delta * delta * (share * self.count)
        sd = (self.m2 / (self.count + (self.count == 0))) ** 0.5
        varies = some & (m2 > ROUNDING * (self.m2 + abs(self.mean) * sd * self.count))
        return type(self)(count * some, self.mean * some - delta * share, jnp.where(varies, m2, 0.0))

    def scale(self, factor: float) -> Self:
        """Statistics of the same rows, each weighing `factor` times as much."""
        return type(self)(self.count * factor, self.mean, self.m2 * factor)

    def possible(self) -> Any:
        """(C, F) whether n and M2 are not negative, and M2 is 0 where n is; fading may leave up to 1e-100."""
        return (self.count >= 0) & (self.m2 >= 0) & ((self.count > 0) | (self.m2 < 1e-100))

    def rounding(self) -> Moments:
        """Bound on how far below zero rounding may leave n and M2 of `remove`.

        It is 1e-10 of M2, and more where the mean is large against the standard deviation: rounding leaves eps · x̄ of
        a mean, and so eps · x̄/sd of M2. Where rows were forgotten before, rounding may have left more, which shows when
        the cells that remain are equal.
        """
        sd = (self.m2 / (self.count + (self.count == 0))) ** 0.5
        from_mean = 64 * 2.2e-16 * abs(self.mean) * sd * self.count
        from_equal = (1e-9 * self.mean) ** 2 * self.count
        return Moments(self.count * 1e-9, None, self.m2 * 1e-10 + from_mean + from_equal)

    def values(self) -> Any:
        """Cells, of statistics of single rows: the means."""
        return self.mean

    @classmethod
    def from_moments(cls, count: Any, mean: Any, m2: Any) -> Self:
        """Statistics with these moments."""
        return cls(count, mean, m2)

    def units(self) -> dict[str, Unit]:
        """Units of μ, the mean and sd over all rows, and of σ², the variance over all rows; 1 where that is 0."""
        mean = (self.count * self.mean).sum(axis=0) / np.maximum(self.count.sum(axis=0), np.finfo(float).tiny)
        sd = self.spread()
        sd = np.where(sd > 0, sd, 1.0)
        return {
            "mu": Unit("(μ - feature's mean) / feature's sd", mean, sd),
            "sigma2": Unit("σ² / feature's variance", 0.0 * mean, sd**2),
        }

    def spread(self) -> np.ndarray:
        """(F,) standard deviation over all rows, in population form."""
        together = pooled(self)
        deviation: np.ndarray = np.sqrt(together.m2[0] / np.maximum(together.count[0], np.finfo(float).tiny))
        return deviation

    @staticmethod
    def log_base(x: Any) -> jax.Array:
        """(N,) zeros: -½ log 2π belongs to the density."""
        return jnp.zeros(x.shape[0])

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "N"]) -> Moments:
        """Add a block of rows x (N, F) with class indices and weights; NaN is a missing cell.

        Deviations are taken from the means so far, and again from the means of the block where their squares cancel.
        """

        def centred(centre: Array) -> tuple[Moments, jax.Array]:
            """Moments of the block, and the sums of squares about `centre`."""

            def of_row(row: jax.Array, c: jax.Array, weight: jax.Array) -> tuple[jax.Array, ...]:
                seen, row = observed(row)
                deviation = only(seen, row - centre[c])
                weighted = weight * deviation
                return weight * seen, weighted, weighted * deviation

            count, total, square = sum_by_class(self.count.shape[0], label, of_row, (x, label, weight))
            shift = total / jnp.where(count > 0, count, 1.0)
            return Moments(count, jnp.where(count > 0, centre + shift, 0.0), square - shift * shift * count), square

        def again(block: Moments) -> Moments:
            block, square = centred(block.mean)
            # Where all deviations are the rounding error of the mean, the cells are equal.
            return replace(block, m2=jnp.where(block.m2 > 1e-9 * square, block.m2, 0.0))

        block, square = centred(jnp.asarray(self.mean))
        cancelled = jnp.any(~(block.m2 >= 1e-4 * square))  # also where squares overflow
        return self.merge(jax.lax.cond(cancelled, again, lambda same: same, block))
