"""Count, mean and centred sum of squares: the sufficient statistics of Gaussian features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import jax
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families._namespace import cond, xp
from bayesnb.families._pytree import Array, pytree
from bayesnb.families.number_rows import sum_by_class
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
        """Statistics without the rows of `other`: the inverse of `merge`; zeros where no weight is left."""
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
        """Moments without one row's `cells` (F,) of `weight` (C, 1) per class; rounding errors are set to 0.

        So a feature that is constant in the other rows has M2 = 0.
        """
        count = self.count - weight
        some = count > ROUNDING * self.count
        share = xp.where(some, weight, 0.0) / xp.where(some, count, 1.0)
        delta = cells - self.mean
        m2 = self.m2 - delta * delta * (share * self.count)
        sd = (self.m2 / (self.count + (self.count == 0))) ** 0.5
        varies = some & (m2 > ROUNDING * (self.m2 + abs(self.mean) * sd * self.count))
        return type(self)(count * some, self.mean * some - delta * share, xp.where(varies, m2, 0.0))

    def scale(self, factor: float) -> Self:
        """Moments of the same rows with all weights multiplied by `factor`: n and M2 scale, the mean stays."""
        return type(self)(self.count * factor, self.mean, self.m2 * factor)

    def possible(self) -> Any:
        """(C, F) of bool: n and M2 are non-negative, and M2 is at most 1e-100 (residue of decay) where n is 0."""
        return (self.count >= 0) & (self.m2 >= 0) & ((self.count > 0) | (self.m2 < 1e-100))

    def rounding(self) -> Moments:
        """Tolerated rounding error below zero of n and M2 after `remove`; None for the mean.

        It is 1e-10 of M2, and more where the mean is large against the standard deviation: rounding leaves eps · x̄ of
        a mean, and so eps · x̄/sd of M2. Where rows were forgotten before, rounding may have left more, which shows when
        the cells that remain are equal.
        """
        sd = (self.m2 / (self.count + (self.count == 0))) ** 0.5
        from_mean = 64 * 2.2e-16 * abs(self.mean) * sd * self.count
        from_equal = (1e-9 * self.mean) ** 2 * self.count
        return Moments(self.count * 1e-9, None, self.m2 * 1e-10 + from_mean + from_equal)

    def scales(self) -> np.ndarray:
        """(C, F) root mean square of the cells, as NumPy array; 0 without a cell."""
        size = np.hypot(self.mean, np.sqrt(self.m2 / np.where(self.count > 0, self.count, 1.0)))
        return np.asarray(np.where(self.count > 0, size, 0.0))

    def values(self) -> Any:
        """(N, F) cells of rows that were each counted as their own class: the means."""
        return self.mean

    @classmethod
    def from_moments(cls, count: Any, mean: Any, m2: Any) -> Self:
        """Build statistics (C, F) from count, mean and centred sum of squares."""
        return cls(count, mean, m2)

    def units(self) -> dict[str, Unit]:
        """Display units: for μ the feature's mean and sd over all rows, for σ² the variance; 1 where that is 0."""
        mean = (self.count * self.mean).sum(axis=0) / np.maximum(self.count.sum(axis=0), np.finfo(float).tiny)
        sd = self.spread()
        sd = np.where(sd > 0, sd, 1.0)
        return {
            "mu": Unit("(μ - feature's mean) / feature's sd", mean, sd),
            "sigma2": Unit("σ² / feature's variance", 0.0 * mean, sd**2),
        }

    def spread(self) -> np.ndarray:
        """(F,) standard deviation of each feature over all rows, classes pooled, with divisor n."""
        together = pooled(self)
        deviation: np.ndarray = np.sqrt(together.m2[0] / np.maximum(together.count[0], np.finfo(float).tiny))
        return deviation

    @staticmethod
    def log_base(x: Any) -> jax.Array:
        """(N,) zeros: the normal density has no factor that is left out."""
        return xp.zeros(x.shape[0])

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "N"]) -> Moments:
        """Moments merged with those of rows x (N, F), given class indices and weights (N,); NaN is a missing cell.

        Deviations are taken from the means so far, and again from the means of the block where their squares cancel.
        """

        def centred(centre: Array) -> tuple[Moments, jax.Array]:
            """Moments of the block computed about `centre` (C, F), and the sums of squares (C, F) about `centre`."""
            count, total, square = sum_by_class(x, label, weight, centre)
            shift = total / xp.where(count > 0, count, 1.0)
            return Moments(count, xp.where(count > 0, centre + shift, 0.0), square - shift * shift * count), square

        def again(block: Moments) -> Moments:
            """Moments of the block, computed again about its own means, with M2 = 0 where the cells are equal."""
            block, square = centred(block.mean)
            # Where all deviations are the rounding error of the mean, the cells are equal.
            return replace(block, m2=xp.where(block.m2 > 1e-9 * square, block.m2, 0.0))

        block, square = centred(xp.asarray(self.mean))
        cancelled = xp.any(~(block.m2 >= 1e-4 * square))  # also where squares overflow
        return self.merge(cond(cancelled, again, lambda same: same, block))
