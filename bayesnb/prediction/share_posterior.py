"""Posterior of class shares π given unlabelled rows: p(π | U) ∝ Dir(π | α) Π_i Σ_c π_c p(x_i | c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.interpolate import CubicSpline
from scipy.special import expit, log_expit

from bayesnb._util.terminal import progress

_TOLERANCE = 1e-9  # gap to the maximum, in nats, over Σa + Σn
_MOST_STEPS = 10_000
_NODES, _FINE_NODES = 201, 1001
_FAR, _LEAST = 40.0, 1000.0  # nats below the highest density: of the ends, and the least one, for the spline
_BURN_IN, _MOST_SWEEPS = 10, 50  # draws, and sweeps for one draw
_MOST_ROWS = 2_000  # of two classes; more are replaced by a grid of log odds
_FARTHEST = 36.0
_FEW = 4  # multiplicity up to which labels are drawn row by row, which is faster


class Shares(NamedTuple):
    """Posterior of class shares: moments, intervals and draws.

    Parameters
    ----------
    mean, sd, lower, upper : (C,) arrays
        Moments, and ends of equal-tailed intervals.
    draws : (S, C) array
        Draws of the shares.
    effective_draws : (C,) array
        Number of independent draws with the Monte Carlo error of the means.
    """

    mean: np.ndarray
    sd: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    draws: np.ndarray
    effective_draws: np.ndarray


@dataclass(frozen=True, eq=False)
class ShareModel:
    """Posterior density of class shares π given unlabelled rows.

    Parameters
    ----------
    likelihood : (R, C) array
        p(x_i | c) of the R distinct rows, up to a factor per row.
    count : (R,) array
        Multiplicity of each distinct row.
    alpha : (C,) array
        Concentration of the Dirichlet prior.
    """

    likelihood: Float[np.ndarray, "R C"]
    count: Shaped[np.ndarray, "R"]
    alpha: Float[np.ndarray, "C"]

    @classmethod
    def from_rows(cls, log_likelihood: Float[np.ndarray, "N C"], alpha: Float[np.ndarray, "C"]) -> ShareModel:
        """Return the model of N rows from their log p(x_i | c), up to a number per row.

        Equal rows are kept as one with their number. More than 2,000 rows of two classes are divided among 2,000
        equidistant log odds, which moves the posterior by less than .001 sd for 20,000 rows, in proportion to √N. A row
        that is impossible in every class (NaN) says nothing of the shares.
        """
        log_likelihood = np.where(np.isnan(log_likelihood), 0.0, log_likelihood)
        if log_likelihood.shape[1] == 2 and len(log_likelihood) > _MOST_ROWS:
            nodes, count = _on_grid(log_likelihood[:, 1] - log_likelihood[:, 0])
            return cls(expit(np.stack([-nodes, nodes], axis=1)), count, alpha)
        return cls(*np.unique(np.exp(log_likelihood), axis=0, return_counts=True), alpha)

    def maximize(self, exponent: Float[np.ndarray, "C"]) -> tuple[Float[np.ndarray, "C"], float]:
        """Find the shares π of greatest density by EM, and the largest possible gap to the maximum, in nats.

        The density is f(π) = Σ_c a_c log π_c + Σ_i n_i log Σ_c π_c p(x_i | c), with a = `exponent`. A step of EM is
        π_c ← π_c ∂f/∂π_c / (Σa + Σn). As f is concave, the maximum is at most max_c ∂f/∂π_c - (Σa + Σn) above f(π). Two
        steps are followed by an extrapolation by SQUAREM (Varadhan & Roland, *Scand. J. Stat.* 35, 2008) if f rises:
        classes that are hard to tell from each other would take EM thousands of steps.
        """
        total = exponent.sum() + self.count.sum()
        is_positive = exponent > 0

        def value(shares: np.ndarray) -> float:
            log_prior = exponent[is_positive] @ np.log(shares[is_positive])
            return float(log_prior + self.count @ np.log(self.likelihood @ shares))

        def step(shares: np.ndarray) -> tuple[np.ndarray, float]:
            slope = (self.count / (self.likelihood @ shares)) @ self.likelihood
            slope[is_positive] += exponent[is_positive] / shares[is_positive]
            return shares * slope / total, max(0.0, float(slope.max() - total))

        shares, steps = np.full(len(exponent), 1.0 / len(exponent)), 0
        after_one, gap = step(shares)
        while gap > _TOLERANCE * total and steps < _MOST_STEPS:
            after_two, _ = step(after_one)
            first, second = after_one - shares, after_two - 2.0 * after_one + shares
            stretch = max(1.0, float(np.linalg.norm(first)) / max(float(np.linalg.norm(second)), 1e-300))
            extrapolated = np.maximum(shares + 2.0 * stretch * first + stretch**2 * second, 0.01 * after_two)
            extrapolated /= extrapolated.sum()
            shares = extrapolated if value(extrapolated) >= value(after_two) else after_two
            (after_one, gap), steps = step(shares), steps + 2
        return after_one, gap

    def summarize(self, tails: Float[np.ndarray, "2"], draws: int, rng: np.random.Generator) -> Shares:
        """Compute moments, intervals and draws, by quadrature for two classes, by Gibbs sampling for other numbers.

        Parameters
        ----------
        tails : (2,) array
            Posterior probabilities below the two ends of an interval.
        draws : int
            Number of draws.
        rng : Generator
            Source of random numbers.
        """
        return (self._integrate if len(self.alpha) == 2 else self._sample)(tails, draws, rng)

    def _integrate(self, tails: Float[np.ndarray, "2"], draws: int, rng: np.random.Generator) -> Shares:
        """Compute the posterior of two shares by quadrature, with independent draws.

        Moments have about ten digits, quantiles an error of a thousandth of the sd. Over the log odds u of the second
        class the density is exp f(u), with f as in `maximize` and exponents α; f has one maximum û. The nodes are
        u = û + sinh(v)/√-f''(û) with v equally spaced. For these the trapezoidal rule is accurate whether the posterior
        is narrow or has the tails of Beta(α) alone; quantiles are those of a spline of the log density. As f is concave
        in π, shares with log π_c < log π̂_c - k/α_c - 1 lie k nats below the maximum.
        """
        peak, _ = self.maximize(self.alpha)
        total = self.alpha.sum() + self.count.sum()
        curvature = total * peak.prod() - self.count @ self._responsibilities(peak).prod(axis=1)
        centre, scale = np.log(peak[1] / peak[0]), 1.0 / np.sqrt(curvature)
        first, second = np.log(peak) - _FAR / self.alpha - 1.0
        v = np.linspace(np.arcsinh((second - centre) / scale), np.arcsinh((-first - centre) / scale), _NODES)
        log_odds = centre + scale * np.sinh(v)
        share = expit(np.stack([-log_odds, log_odds]))
        log_density = self.alpha @ log_expit(np.stack([-log_odds, log_odds])) + np.log(np.cosh(v))
        rows = max(1, 2**20 // _NODES)
        with np.errstate(divide="ignore"):
            for start in range(0, len(self.count), rows):
                block = slice(start, start + rows)
                log_density += self.count[block] @ np.log(self.likelihood[block] @ share)
        density = np.exp(log_density - log_density.max())
        density /= density.sum()
        mean = share @ density
        sd = np.sqrt((share - mean[:, None]) ** 2 @ density)
        fine = np.linspace(v[0], v[-1], _FINE_NODES)
        log_density = CubicSpline(v, log_density.clip(log_density.max() - _LEAST))(fine)
        density, log_odds = np.exp(log_density - log_density.max()), centre + scale * np.sinh(fine)
        below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
        low, high = np.interp(tails, below / below[-1], log_odds)
        drawn = np.interp(rng.random(draws), below / below[-1], log_odds)
        lower, upper = expit(np.array([[-high, low], [-low, high]]))
        return Shares(mean, sd, lower, upper, expit(np.stack([-drawn, drawn], axis=1)), np.full(2, float(draws)))

    def _sample(self, tails: Float[np.ndarray, "2"], draws: int, rng: np.random.Generator) -> Shares:
        """Compute the posterior of the shares by Gibbs sampling, and its quantiles `tails`, such as (.025, .975).

        Given π, the labels of equal rows are multinomial counts; given n_c rows in each class, π has Dir(α + n). With λ
        the largest eigenvalue of the fraction of information that missing labels hold, which is the derivative of an EM
        step at its fixed point, correlations fall by the factor λ per sweep (Liu, *JASA* 89, 1994), and one draw is
        kept of (1 + λ)/(1 - λ) sweeps, at most of 50. Rows of low multiplicity have their labels drawn one by one,
        which is ten times as fast.
        """
        likelihood, count, alpha = self.likelihood, self.count, self.alpha
        shares, _ = self.maximize(alpha)
        responsibility = self._responsibilities(shares)
        within = (responsibility * count[:, None]).T @ responsibility
        missing = (np.diag(count @ responsibility) - within) / shares / (alpha.sum() + count.sum())
        slowest = min(0.99, np.linalg.eigvals(missing).real.max())
        sweeps = min(_MOST_SWEEPS, ceil((1.0 + slowest) / (1.0 - slowest)))
        is_frequent = count > _FEW
        frequent = ShareModel(likelihood[is_frequent], count[is_frequent], alpha)
        rare = np.ascontiguousarray(np.repeat(likelihood[~is_frequent], count[~is_frequent], axis=0).T)
        kept = np.empty((draws, len(alpha)))
        with progress("Gibbs sampling", _BURN_IN + draws, "draws") as tick:
            for s in range(_BURN_IN + draws):
                for _ in range(sweeps):
                    labels = rng.multinomial(frequent.count, frequent._responsibilities(shares)).sum(axis=0)
                    shares = rng.dirichlet(alpha + labels + _draw_labels(rare, shares, rng))
                kept[max(0, s - _BURN_IN)] = shares
                tick()
        lower, upper = np.quantile(kept, tails, axis=0)
        return Shares(kept.mean(axis=0), kept.std(axis=0), lower, upper, kept, effective_size(kept))

    def _responsibilities(self, shares: Float[np.ndarray, "C"]) -> Float[np.ndarray, "R C"]:
        """Return (R, C) P(class | row) for given class shares."""
        joint = self.likelihood * shares
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def average(posteriors: Sequence[Shares], tails: Float[np.ndarray, "2"]) -> Shares:
    """Return the mixture of posteriors of the shares, each given another draw of the parameters, with pooled draws.

    The Monte Carlo error of the mean is estimated from the spread of the posteriors' means. A single posterior is
    returned unchanged.
    """
    if len(posteriors) == 1:
        return posteriors[0]
    draws = np.concatenate([shares.draws for shares in posteriors])
    mean = np.mean([shares.mean for shares in posteriors], axis=0)
    variance = np.mean([shares.sd**2 + (shares.mean - mean) ** 2 for shares in posteriors], axis=0)
    error = np.var([shares.draws.mean(axis=0) for shares in posteriors], axis=0, ddof=1) / len(posteriors)
    effective = np.minimum(variance / np.where(error > 0, error, 1.0), len(draws))
    lower, upper = np.quantile(draws, tails, axis=0)
    return Shares(mean, np.sqrt(variance), lower, upper, draws, np.where(error > 0, effective, len(draws)))


def _on_grid(log_odds: Float[np.ndarray, "N"]) -> tuple[Float[np.ndarray, "R"], Float[np.ndarray, "R"]]:
    """Return nodes of a grid, and positive weights of the nodes, N in all, that divide each value between neighbours.

    The two weights of a value keep its mean. Beyond ± `_FARTHEST` values differ by less than rounding.
    """
    log_odds = log_odds.clip(-_FARTHEST, _FARTHEST)
    grid = np.linspace(log_odds.min(), log_odds.max() + 1e-6, _MOST_ROWS)
    position = (log_odds - grid[0]) / (grid[1] - grid[0])
    below = position.astype(int).clip(0, len(grid) - 2)
    weight = np.bincount(below, 1.0 - (position - below), len(grid))
    weight += np.bincount(below + 1, position - below, len(grid))
    return grid[weight > 0], weight[weight > 0]


def effective_size(chain: Float[np.ndarray, "S K"]) -> Float[np.ndarray, "K"]:
    """Compute the effective sample size of a reversible chain of S draws of K numbers, at most S.

    The size is S/(2 Σ_k Γ_k - 1), with Γ_k the sum of the autocorrelations of lags 2k and 2k + 1, up to the first that
    is not positive (Geyer, *Practical Markov chain Monte Carlo*, Stat. Sci. 7, 1992); S if the chain is constant.
    """
    n = len(chain)
    spectrum = abs(np.fft.rfft(chain - chain.mean(axis=0), 2 * n, axis=0)) ** 2
    covariance = np.fft.irfft(spectrum, 2 * n, axis=0)[:n]
    pairs = covariance[: n - n % 2].reshape(n // 2, 2, chain.shape[1]).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    moves = np.ptp(chain, axis=0) > 1e-12
    time = 2.0 * np.sum(pairs, axis=0, where=positive) / np.where(moves, covariance[0], 1.0) - 1.0
    return np.asarray(n / np.where(moves, np.maximum(time, 1.0), 1.0))


def _draw_labels(
    likelihood: Float[np.ndarray, "C R"], shares: Float[np.ndarray, "C"], rng: np.random.Generator
) -> Int[np.ndarray, "C"]:
    """Draw a label for each of R rows, with probability ∝ share · likelihood, and return the (C,) counts of labels."""
    cumulative, n_rows = np.cumsum(shares[:, None] * likelihood, axis=0), likelihood.shape[1]
    beyond = np.count_nonzero(rng.random(n_rows) * cumulative[-1] >= cumulative[:-1], axis=1)
    return -np.diff([n_rows, *beyond, 0])
