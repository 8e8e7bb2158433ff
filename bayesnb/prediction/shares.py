"""The posterior of class shares π given unlabelled rows: p(π | U) ∝ Dir(π | α) Π_i Σ_c π_c p(x_i | c).

Rows come as `likelihood` (R, C), p(x_i | c) up to a factor a row, and `count` (R,), how often each of them is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from jaxtyping import Float, Int

from bayesnb._util.progress import progress

_TOLERANCE = 1e-9  # by which the largest derivative may exceed their mean, relative to it
_MOST_STEPS = 10_000
_NODES = 1001
_NEGLIGIBLE = 40.0  # nats below the highest density
_BURN_IN = 10  # draws
_MOST_SWEEPS = 50  # for one draw
_FEW = 4


@dataclass(frozen=True, eq=False)
class Shares:
    """Moments, ends of intervals, all (C,), and draws (S, C) of the posterior; `effective_draws` (C,) of them count."""

    mean: np.ndarray
    sd: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    draws: np.ndarray
    effective_draws: np.ndarray


def maximize(
    likelihood: Float[np.ndarray, "R C"], count: Int[np.ndarray, "R"], exponent: Float[np.ndarray, "C"]
) -> tuple[Float[np.ndarray, "C"], float]:
    """The π that maximises f(π) = Σ_c a_c log π_c + Σ_i n_i log Σ_c π_c p(x_i | c), by EM, and the gap to the maximum.

    A step of EM is π_c ← π_c ∂f/∂π_c / (Σa + Σn). As f is concave it is nowhere higher by more than the gap,
    max_c ∂f/∂π_c - (Σa + Σn), in nats. After two steps comes one of SQUAREM (Varadhan & Roland, *Scand. J. Stat.* 35,
    2008), an extrapolation, if it climbs: classes that are hard to tell apart would take EM thousands of steps.
    """
    total = exponent.sum() + count.sum()
    some = exponent > 0

    def value(shares: np.ndarray) -> float:
        return float(exponent[some] @ np.log(shares[some]) + count @ np.log(likelihood @ shares))

    def step(shares: np.ndarray) -> tuple[np.ndarray, float]:
        slope = (count / (likelihood @ shares)) @ likelihood
        slope[some] += exponent[some] / shares[some]
        return shares * slope / total, max(0.0, float(slope.max() - total))

    shares, steps = np.full(likelihood.shape[1], 1.0 / likelihood.shape[1]), 0
    one, gap = step(shares)
    while gap > _TOLERANCE * total and steps < _MOST_STEPS:
        two, _ = step(one)
        first, second = one - shares, two - 2.0 * one + shares
        stretch = max(1.0, float(np.linalg.norm(first)) / max(float(np.linalg.norm(second)), 1e-300))
        far = np.maximum(shares + 2.0 * stretch * first + stretch**2 * second, 0.01 * two)
        far /= far.sum()
        shares = far if value(far) >= value(two) else two
        (one, gap), steps = step(shares), steps + 2
    return one, gap


def posterior(
    log_likelihood: Float[np.ndarray, "N C"],
    alpha: Float[np.ndarray, "C"],
    tails: Float[np.ndarray, "2"],
    draws: int,
    rng: np.random.Generator,
) -> Shares:
    """By quadrature for two classes, by Gibbs sampling for more; `tails` are what lies below an interval's ends."""
    method = by_quadrature if len(alpha) == 2 else by_gibbs
    return method(*distinct(log_likelihood), alpha, tails, draws, rng)


def distinct(log_likelihood: Float[np.ndarray, "N C"]) -> tuple[Float[np.ndarray, "R C"], Int[np.ndarray, "R"]]:
    """The likelihoods of rows that differ, and how many rows have each."""
    return np.unique(np.exp(log_likelihood), axis=0, return_counts=True)


def by_quadrature(
    likelihood: Float[np.ndarray, "R 2"],
    count: Int[np.ndarray, "R"],
    alpha: Float[np.ndarray, "2"],
    tails: Float[np.ndarray, "2"],
    draws: int,
    rng: np.random.Generator,
) -> Shares:
    """Of two classes: moments to ten digits or so, quantiles to a thousandth of the sd, draws that are independent.

    Over the log odds u of the second class the density is exp f(u), f as in `maximize` with the exponents α; it has one
    maximum, û. The nodes are u = û + sinh(v)/√-f''(û), v equally spaced, for which the trapezoidal rule is accurate
    whether the posterior is narrow or has the tails of Beta(α) alone. As f is concave in π, k nats below the maximum
    lies all that has log π_c < log π̂_c - k/α_c - 1.
    """
    from scipy.special import expit, log_expit

    peak, _ = maximize(likelihood, count, alpha)
    member = _responsibilities(likelihood, peak)
    curvature = (alpha.sum() + count.sum()) * peak.prod() - count @ member.prod(axis=1)
    centre, scale = np.log(peak[1] / peak[0]), 1.0 / np.sqrt(curvature)
    first, second = np.log(peak) - _NEGLIGIBLE / alpha - 1.0
    v = np.linspace(np.arcsinh((second - centre) / scale), np.arcsinh((-first - centre) / scale), _NODES)
    log_odds = centre + scale * np.sinh(v)
    share = expit(np.stack([-log_odds, log_odds]))
    log_density = alpha @ log_expit(np.stack([-log_odds, log_odds])) + np.log(np.cosh(v))
    rows = max(1, 2**20 // _NODES)
    with np.errstate(divide="ignore"):
        for start in range(0, len(count), rows):
            block = slice(start, start + rows)
            log_density += count[block] @ np.log(likelihood[block] @ share)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    low, high = np.interp(tails, below / below[-1], log_odds)
    drawn = np.interp(rng.random(draws), below / below[-1], log_odds)
    mean = share @ density
    return Shares(
        mean,
        np.sqrt((share - mean[:, None]) ** 2 @ density),
        expit(np.array([-high, low])),
        expit(np.array([-low, high])),
        expit(np.stack([-drawn, drawn], axis=1)),
        np.full(2, float(draws)),
    )


def by_gibbs(
    likelihood: Float[np.ndarray, "R C"],
    count: Int[np.ndarray, "R"],
    alpha: Float[np.ndarray, "C"],
    tails: Float[np.ndarray, "2"],
    draws: int,
    rng: np.random.Generator,
) -> Shares:
    """Given π the labels of equal rows are multinomial counts; given n_c rows in each class π has Dir(α + n).

    With λ the largest eigenvalue of `_missing_information`, correlations fall by λ a sweep (Liu, *JASA* 89, 1994), and
    one draw is kept of (1 + λ)/(1 - λ) sweeps, at most of 50. Rows that are there a few times only have their labels
    drawn one by one, which is ten times as fast.
    """
    shares, _ = maximize(likelihood, count, alpha)
    slowest = min(0.99, np.linalg.eigvals(_missing_information(likelihood, count, alpha, shares)).real.max())
    sweeps = min(_MOST_SWEEPS, ceil((1.0 + slowest) / (1.0 - slowest)))
    often = count > _FEW
    many, times = likelihood[often], count[often]
    few = np.ascontiguousarray(np.repeat(likelihood[~often], count[~often], axis=0).T)
    kept = np.empty((draws, len(alpha)))
    with progress("Gibbs sampling", _BURN_IN + draws, "draws") as tick:
        for s in range(_BURN_IN + draws):
            for _ in range(sweeps):
                labels = rng.multinomial(times, _responsibilities(many, shares)).sum(axis=0)
                shares = rng.dirichlet(alpha + labels + _draw_labels(few, shares, rng))
            kept[max(0, s - _BURN_IN)] = shares
            tick()
    low, high = np.quantile(kept, tails, axis=0)
    return Shares(kept.mean(axis=0), kept.std(axis=0), low, high, kept, effective_size(kept))


def pooled(parts: Sequence[Shares], tails: Float[np.ndarray, "2"]) -> Shares:
    """The average of distributions that were drawn independently: the error of its mean is that of theirs."""
    if len(parts) == 1:
        return parts[0]
    draws, mean = np.concatenate([part.draws for part in parts]), np.mean([part.mean for part in parts], axis=0)
    variance = np.mean([part.sd**2 + (part.mean - mean) ** 2 for part in parts], axis=0)
    low, high = np.quantile(draws, tails, axis=0)
    error = np.var([part.draws.mean(axis=0) for part in parts], axis=0, ddof=1) / len(parts)
    effective = np.minimum(variance / np.where(error > 0, error, 1.0), len(draws))
    return Shares(mean, np.sqrt(variance), low, high, draws, np.where(error > 0, effective, len(draws)))


def effective_size(chain: Float[np.ndarray, "S K"]) -> Float[np.ndarray, "K"]:
    """How many independent draws have the Monte Carlo error of a reversible chain's mean, at most S.

    S/(2 Σ_k Γ_k - 1), Γ_k the sum of the autocorrelations of lags 2k and 2k + 1, up to the first that is not positive
    (Geyer, *Practical Markov chain Monte Carlo*, Stat. Sci. 7, 1992). Of a chain that does not move it is S.
    """
    n = len(chain)
    spectrum = abs(np.fft.rfft(chain - chain.mean(axis=0), 2 * n, axis=0)) ** 2
    covariance = np.fft.irfft(spectrum, 2 * n, axis=0)[:n]
    pairs = covariance[: n - n % 2].reshape(n // 2, 2, chain.shape[1]).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    moves = np.ptp(chain, axis=0) > 1e-12
    time = 2.0 * np.sum(pairs, axis=0, where=positive) / np.where(moves, covariance[0], 1.0) - 1.0
    return n / np.where(moves, np.maximum(time, 1.0), 1.0)


def _draw_labels(
    likelihood: Float[np.ndarray, "C R"], shares: Float[np.ndarray, "C"], rng: np.random.Generator
) -> Int[np.ndarray, "C"]:
    """How many of the rows have each class, their labels drawn by the inverse of the distribution function."""
    below = rng.random(likelihood.shape[1]) * (shares @ likelihood)
    cumulative, beyond = np.zeros_like(below), [len(below)]
    for share, own in zip(shares[:-1], likelihood[:-1], strict=True):
        cumulative += share * own
        beyond.append(int(np.count_nonzero(below >= cumulative)))
    return -np.diff([*beyond, 0])


def _responsibilities(likelihood: Float[np.ndarray, "R C"], shares: Float[np.ndarray, "C"]) -> Float[np.ndarray, "R C"]:
    """P(class | row) where classes have these shares."""
    joint = likelihood * shares
    return joint / joint.sum(axis=1, keepdims=True)


def _missing_information(
    likelihood: Float[np.ndarray, "R C"],
    count: Int[np.ndarray, "R"],
    alpha: Float[np.ndarray, "C"],
    shares: Float[np.ndarray, "C"],
) -> Float[np.ndarray, "C C"]:
    """The derivative of an EM step at its fixed point: the share of information that the labels would have."""
    member = _responsibilities(likelihood, shares)
    within = (member * count[:, None]).T @ member
    return (np.diag(count @ member) - within) / shares / (alpha.sum() + count.sum())
