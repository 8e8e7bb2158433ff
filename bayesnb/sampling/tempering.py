"""Sequential Monte Carlo of Hui and Walter's model: from the prior to the posterior by tempering the likelihood.

Chains are independent systems of particles. Each step raises the exponent of the likelihood, resamples the particles by
their weights, and moves each particle by Markov transitions that leave the tempered posterior unchanged. Resampled
particles keep their order, so that those with common ancestors are neighbours: autocorrelation along a chain, and thus
its effective sample size, measures how many independent particles there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit, log_expit, polygamma

from bayesnb.sampling.hui_walter import HuiWalter, Sums

_LEAST_PARTICLES = 200
_KEPT = 0.5
"""Effective proportion of the particles of each chain after the exponent is raised."""
_MEMORY = 0.6
"""Correlation of the logits before and after the transitions at one exponent."""
_SHORT = 0.3
"""Step of `Drift`, in standard deviations of all particles, below which `Slide` joins in."""
_DETERMINED = 10.0
"""Information of the data on a combination of frequencies, per information of the prior, above which it is held."""
_NEW = 0.7
"""Proportion of noise in the held combinations that `Slide` proposes."""
_GAP = 1e-6
_ITERATIONS = 8
_BLOCK = 2**18


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior of the logits of the n parameters, given frequencies of K cells.

    Parameters
    ----------
    model : HuiWalter
    cells : Sums
        Probabilities of the cells, given the population and the tests that were done.
    count, total : (K,) arrays
        Frequency of each cell, and of all rows of its population with the same tests done.
    concentration : (n, 2) array
        Beta concentrations of each parameter.
    """

    model: HuiWalter
    cells: Sums
    count: np.ndarray
    total: np.ndarray
    concentration: np.ndarray

    def log_density(self, logits: np.ndarray) -> np.ndarray:
        """(S,) log density of logits (S, n) under independent Beta parameters, up to a constant."""
        return np.asarray(log_expit(logits) @ self.concentration[:, 0] + log_expit(-logits) @ self.concentration[:, 1])

    def log_prior(self, logits: np.ndarray) -> np.ndarray:
        """(S,) log density of the prior of logits (S, n), up to a constant; -inf if the classes are misnamed."""
        return np.where(self.model.is_named_right(logits), self.log_density(logits), -np.inf)

    def draw_prior(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw logits (n, parameters) from the prior."""
        drawn = np.empty((0, len(self.concentration)))
        while len(drawn) < n:
            # Gamma variates of small shape may underflow; their logarithms do not.
            shape = np.broadcast_to(self.concentration, (n, *self.concentration.shape))
            log_gamma = np.log(rng.gamma(shape + 1.0)) + np.log(rng.random(shape.shape)) / shape
            logits = log_gamma[..., 0] - log_gamma[..., 1]
            drawn = np.concatenate([drawn, logits[self.model.is_named_right(logits)]])
        return drawn[:n]

    def log_likelihood(self, logits: np.ndarray) -> np.ndarray:
        """(S,) log-likelihood of logits (S, n)."""
        return np.asarray(self.cells.log_sums(logits) @ self.count)


def draw_posterior(
    posterior: Posterior, chains: int, draws: int, transitions: int, seed: int, tick: Callable[[], object]
) -> np.ndarray:
    """Draw logits (chains, draws, n), by a number of transitions at the posterior, and at most as many on the way."""
    rng = np.random.default_rng(seed)
    size = max(draws, _LEAST_PARTICLES)
    z = posterior.draw_prior(chains * size, rng)
    exponent, step = 0.0, {Drift: 1.0, Slide: 0.5}
    while exponent < 1.0:
        log_likelihood = posterior.log_likelihood(z).reshape(chains, size)
        raised = _raise_exponent(log_likelihood, exponent)
        z, exponent = z[_resample((raised - exponent) * log_likelihood, rng)], raised
        moves: list[Drift | Slide] = [Drift.from_particles(posterior, z, exponent)]
        if step[Drift] < _SHORT:
            moves = [*moves * 3, Slide.from_particles(posterior, z, exponent)]
        for _ in _repeat(z, transitions, exponent == 1.0):
            for transition in moves:
                kind, accepted = type(transition), np.empty(len(z), bool)
                for block in np.array_split(np.arange(len(z)), -(-len(z) * posterior.cells.absent.size // _BLOCK)):
                    z[block], accepted[block] = transition.move(z[block], step[kind], rng)
                step[kind] = min(step[kind] * np.exp(accepted.mean() - transition.accepted), 2.0)
            tick()
    kept = np.linspace(0, size - 1, draws).round().astype(int)
    return z.reshape(chains, size, -1)[:, kept]


def _repeat(z: np.ndarray, most: int, is_last: bool) -> Iterator[int]:
    """Numbers of transitions of logits (S, n), which change in place, until particles forget where they began.

    The greatest correlation of a logit with its value at the beginning is then below `_MEMORY`, or there are `most`
    transitions, as at the last exponent.
    """
    begin = z - z.mean(axis=0)
    for i in range(most):
        yield i
        now = z - z.mean(axis=0)
        memory = (begin * now).sum(axis=0) / np.sqrt((begin**2).sum(axis=0) * (now**2).sum(axis=0))
        if memory.max() < _MEMORY and not is_last:
            return


def _raise_exponent(log_likelihood: np.ndarray, exponent: float) -> float:
    """Largest exponent, at most 1, that keeps `_KEPT` of the particles (chains, n) of each chain."""
    centred = log_likelihood - log_likelihood.max(axis=1, keepdims=True)

    def keeps(raised: float) -> bool:
        weight = np.exp((raised - exponent) * centred)
        kept = weight.sum(axis=1) ** 2 / (weight**2).sum(axis=1)
        return bool(kept.min() >= _KEPT * centred.shape[1])

    low, high = exponent, 1.0
    if keeps(high):
        return high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _resample(log_weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Positions of particles that are drawn by log weights (chains, n), systematically in each chain, in order."""
    chains, n = log_weight.shape
    share = np.cumsum(np.exp(log_weight - log_weight.max(axis=1, keepdims=True)), axis=1)
    points = (rng.random((chains, 1)) + np.arange(n)) / n * share[:, -1:]
    every = enumerate(zip(share, points, strict=True))
    return np.concatenate([n * c + np.searchsorted(own, at).clip(0, n - 1) for c, (own, at) in every])


@dataclass(frozen=True, eq=False)
class Drift:
    """Langevin transition (MALA), with the covariance of all particles.

    Parameters
    ----------
    posterior : Posterior
    exponent : float
        Exponent of the likelihood.
    scale : (n, n) array
        Cholesky factor of the covariance of the logits.
    """

    posterior: Posterior
    exponent: float
    scale: np.ndarray
    accepted = 0.57
    """Proportion of accepted transitions for which the step is adapted."""

    @classmethod
    def from_particles(cls, posterior: Posterior, z: np.ndarray, exponent: float) -> Drift:
        """Transition for particles (S, n) at an exponent."""
        return cls(posterior, exponent, np.linalg.cholesky(np.cov(z.T) + 1e-9 * np.eye(z.shape[1])))

    def move(self, z: np.ndarray, step: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return new logits (S, n), and (S,) whether each transition was accepted."""
        noise = rng.standard_normal(z.shape)
        log, gradient = self._density(z)
        proposed = z + (0.5 * step**2 * gradient + step * noise) @ self.scale.T
        proposed_log, proposed_gradient = self._density(proposed)
        back = noise + 0.5 * step * (gradient + proposed_gradient)
        ratio = proposed_log - log + 0.5 * ((noise**2).sum(axis=1) - (back**2).sum(axis=1))
        accepted = np.log(rng.random(len(z))) < ratio
        return np.where(accepted[:, None], proposed, z), accepted

    def _density(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log density (S,) of logits, and its gradient (S, n) in units of the covariance."""
        posterior, concentration = self.posterior, self.posterior.concentration
        log, share = posterior.cells.divide(z)
        gradient = self.exponent * posterior.cells.differentiate(z, share * posterior.count[:, None])
        gradient += concentration[:, 0] - concentration.sum(axis=1) * expit(z)
        return self.exponent * (log @ posterior.count) + posterior.log_prior(z), gradient @ self.scale


@dataclass(frozen=True, eq=False)
class Slide:
    """Transition along a ridge: parameters move at random where the frequencies of cells do not determine them.

    If the data do not identify the parameters, the posterior is a thin curved sheet around the parameters that predict
    the same frequencies. In coordinates y, logits in units of the prior sd, let h(y) be the combinations of the
    probabilities of cells that the data determine. A particle takes a random step in the tangent space of {h = h(y)},
    and Newton's method moves the result at right angles to it, to a point with a new value of h, drawn around the mean
    of all particles. The transition is accepted by Metropolis and Hastings' rule for the density of y on level sets of
    h (Zappa, Holmes-Cerfon & Goodman 2018), provided that the same steps lead back.

    Parameters
    ----------
    posterior : Posterior
    exponent : float
        Exponent of the likelihood.
    scale : (n,) array
        Prior sd of the logits.
    combination : (R, K) array
        Combinations h of the probabilities of cells.
    centre, spread : (R,) and (R, R) arrays
        Mean of h, and Cholesky factor of its covariance, over all particles.
    """

    posterior: Posterior
    exponent: float
    scale: np.ndarray
    combination: np.ndarray
    centre: np.ndarray
    spread: np.ndarray
    accepted = 0.35
    """Proportion of accepted transitions for which the step is adapted."""

    @classmethod
    def from_particles(cls, posterior: Posterior, z: np.ndarray, exponent: float) -> Slide:
        """Transition for particles (S, n) at an exponent."""
        scale = np.sqrt(polygamma(1, posterior.concentration).sum(axis=1))
        prob = np.exp(posterior.cells.log_sums(z))
        weight = np.sqrt(exponent * posterior.total / prob.mean(axis=0))
        slope = weight[:, None] * posterior.cells.jacobian(z[:: -(-len(z) // 400)]) * scale
        information = np.linalg.eigvalsh(np.swapaxes(slope, 1, 2) @ slope)
        n_held = max(1, int(np.median((information > _DETERMINED).sum(axis=1))))
        _, vectors = np.linalg.eigh(np.tensordot(slope, slope, axes=((0, 2), (0, 2))))
        combination = vectors[:, -n_held:].T * weight
        h = prob @ combination.T
        spread = np.linalg.cholesky(np.cov(h.T).reshape(n_held, n_held))
        return cls(posterior, exponent, scale, combination, h.mean(axis=0), spread)

    def move(self, z: np.ndarray, step: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return new logits (S, n), and (S,) whether each transition was accepted."""
        y = z / self.scale
        h, slope, log = self._evaluate(y)
        normal, tangent, log_size = self._split(slope)
        along = step * rng.standard_normal((len(z), tangent.shape[2], 1))
        noise = rng.standard_normal(h.shape) @ self.spread.T
        target = self.centre + np.sqrt(1.0 - _NEW**2) * (h - self.centre) + _NEW * noise
        proposed, solved = self._solve(y + (tangent @ along)[..., 0], normal, target)
        _, slope, proposed_log = self._evaluate(proposed)
        normal, tangent, proposed_log_size = self._split(slope)
        back = np.swapaxes(tangent, 1, 2) @ (y - proposed)[..., None]
        returned, solved_back = self._solve(proposed + (tangent @ back)[..., 0], normal, h)
        reversible = solved & solved_back & (np.abs(returned - y).max(axis=1) < 1e-4)
        ratio = proposed_log - log + log_size - proposed_log_size + self._log_normal(h) - self._log_normal(target)
        ratio += ((along**2).sum(axis=(1, 2)) - (back**2).sum(axis=(1, 2))) / (2.0 * step**2)
        accepted = reversible & (np.log(rng.random(len(z))) < ratio)
        return np.where(accepted[:, None], proposed * self.scale, z), accepted

    def _evaluate(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Combinations h (S, R), their derivatives (S, R, n), and the log density (S,) at y (S, n)."""
        posterior, z = self.posterior, y * self.scale
        log, share = posterior.cells.divide(z)
        prob = np.exp(log)
        product = share * prob[..., None]
        slope = [posterior.cells.differentiate(z, product * own[:, None]) for own in self.combination]
        density = self.exponent * (log @ posterior.count) + posterior.log_prior(z)
        return prob @ self.combination.T, np.stack(slope, axis=1) * self.scale, density

    def _split(self, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Orthonormal bases of the normal (S, n, R) and tangent spaces (S, n, n - R), and the log volume of `slope`."""
        q, r = np.linalg.qr(np.swapaxes(slope, 1, 2), mode="complete")
        with np.errstate(divide="ignore"):
            log_volume = np.log(np.abs(np.diagonal(r, axis1=1, axis2=2))).sum(axis=1)
        return q[..., : slope.shape[1]], q[..., slope.shape[1] :], log_volume

    def _solve(self, y: np.ndarray, normal: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return points of y + normal space with h = target, by Newton's method, and (S,) whether each was found."""
        y, left = y.copy(), np.arange(len(y))
        for _ in range(_ITERATIONS):
            h, slope, _ = self._evaluate(y[left])
            gap = h - target[left]
            far = np.abs(gap).max(axis=1) > _GAP
            left, gap, slope = left[far], gap[far], slope[far] @ normal[left[far]]
            if not len(left):
                break
            slope[np.abs(np.linalg.det(slope)) < 1e-200] = np.eye(len(self.combination))
            shift = (normal[left] @ np.linalg.solve(slope, gap[..., None]))[..., 0]
            y[left] -= shift / np.maximum(1.0, 0.5 * np.abs(shift).max(axis=1, keepdims=True))
        return y, ~np.isin(np.arange(len(y)), left)

    def _log_normal(self, h: np.ndarray) -> np.ndarray:
        """(S,) log density of h under the normal distribution of all particles, up to a constant."""
        return np.asarray(-0.5 * (solve_triangular(self.spread, (h - self.centre).T, lower=True) ** 2).sum(axis=0))
