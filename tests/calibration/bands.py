"""Simulation-based calibration: ranks of the truth among draws, and simultaneous bands for their ECDF.

References
----------
Talts et al., *Validating Bayesian inference algorithms with simulation-based calibration* (2018). Säilynoja, Bürkner &
Vehtari, *Graphical test for discrete uniformity and its applications in goodness-of-fit evaluation and multiple sample
comparison*, Statistics and Computing 32 (2022).
"""

from collections.abc import Mapping

import numpy as np
from scipy import stats

# Ranks of each quantity: N data sets, then the shape of the quantity.
Ranks = Mapping[str, np.ndarray]

LEVEL = 0.01


def rank(rng: np.random.Generator, truth: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """How many draws, on the first axis, are below the truth; ties, such as probabilities of 0, in random order."""
    return (draws < truth).sum(axis=0) + rng.integers(0, (draws == truth).sum(axis=0), endpoint=True)


def p_value(ranks: np.ndarray, n_draws: int) -> float:
    """Probability that N independent uniform ranks leave the band that touches these, exactly.

    The band contains at each of the `n_draws` points the counts whose two tails, of the binomial distribution, exceed
    the same bound. Increments of the counts are Poisson variates given that they sum to N, so that the probability
    to stay inside is a product of convolutions, each cut to the band.
    """
    n, size = len(ranks), n_draws + 1
    below = np.cumsum(np.bincount(ranks, minlength=size))[:-1]
    counts, share = np.arange(n + 1), np.arange(1, size)[:, None] / size
    tails = np.minimum(stats.binom.cdf(counts, n, share), stats.binom.sf(counts - 1, n, share))
    # The lower tail at one point equals the upper tail at its mirror image, but for rounding.
    inside = tails > tails[np.arange(n_draws), below].min() * (1 + 1e-9)
    step = np.trim_zeros(stats.poisson.pmf(counts, n / size), "b")
    paths = np.eye(1, n + 1)[0]
    for allowed in inside:
        paths = np.convolve(paths, step)[: n + 1] * allowed
    stay = np.convolve(paths, step)[n] / stats.poisson.pmf(n, n)
    return float(max(1.0 - stay, 0.0))


def smallest_p_value(ranks: Ranks, n_draws: int) -> float:
    """Smallest adjusted p-value; above `LEVEL`, each ECDF lies inside its simultaneous band."""
    every = {name: np.apply_along_axis(p_value, 0, values, n_draws) for name, values in ranks.items()}
    n_sets = len(next(iter(ranks.values())))
    return adjusted(every, f"{n_sets} data sets, {n_draws} draws")


def adjusted(p_values: Mapping[str, np.ndarray], of_what: str) -> float:
    """The smallest p-value of all quantities, times their number (Bonferroni); prints it with its name."""
    every = {f"{name}{list(i)}": float(p[i]) for name, p in p_values.items() for i in np.ndindex(np.shape(p))}
    worst = min(every, key=every.__getitem__)
    smallest = min(1.0, len(every) * every[worst])
    print(f"{of_what}, {len(every)} quantities: smallest adjusted p {smallest:.3g} ({worst})")
    return smallest
