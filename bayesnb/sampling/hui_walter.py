"""Hui and Walter's latent class model of diagnostic tests, and draws of its posterior by tempering.

The probability of each cell of the table, and each sensitivity and specificity, is a sum of products of parameters θ
and of 1 - θ, with arcs between tests in logits. `Sums` computes all of them, and their derivatives.

Sequential Monte Carlo goes from the prior to the posterior by raising the exponent of the likelihood. Chains are
independent systems of particles. Each step resamples the particles by their weights, and moves each by Markov
transitions that leave the tempered posterior unchanged. Resampled particles keep their order, so that those with common
ancestors are neighbours: autocorrelation along a chain, and thus its effective sample size, measures how many
independent particles there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit, log_expit, polygamma, xlogy

# == Hui and Walter's latent class model of diagnostic tests, with arcs between tests, in logits of its parameters

Products = Sequence[Iterable[tuple[int, int]]]
"""Products of a sum, each with its factors: the position i of a parameter, and 1 for θ_i or 0 for 1 - θ_i."""


@dataclass(frozen=True, eq=False)
class Sums:
    """K sums, each of at most R products of parameters θ_i in (0, 1) and of 1 - θ_i.

    Parameters
    ----------
    positive, both : (K, R, n) arrays
        Exponent of θ_i, and sum of the exponents of θ_i and of 1 - θ_i, in each product.
    absent : (K, R) array of bool
        Whether the sum has fewer products.
    """

    positive: np.ndarray
    both: np.ndarray
    absent: np.ndarray

    @classmethod
    def from_products(cls, sums: Sequence[Products], n: int) -> Sums:
        """Lay out sums of products of n parameters."""
        most = max(map(len, sums))
        positive, both = np.zeros((2, len(sums), most, n))
        absent = np.ones((len(sums), most), bool)
        for k, products in enumerate(sums):
            for r, factors in enumerate(products):
                absent[k, r] = False
                for i, value in factors:
                    positive[k, r, i], both[k, r, i] = value, 1.0
        return cls(positive, both, absent)

    def add(self, others: Sums) -> Sums:
        """Sums with further products, after their own."""
        pairs = (self.positive, others.positive), (self.both, others.both), (self.absent, others.absent)
        return Sums(*(np.concatenate(pair, axis=1) for pair in pairs))

    def log_products(self, logits: np.ndarray) -> np.ndarray:
        """(S, K, R) logarithm of each product for logits (S, n); -inf where it is absent."""
        positive, both = self._flat
        log = log_expit(-logits) @ both + logits @ positive
        return np.where(self.absent, -np.inf, log.reshape(len(logits), *self.absent.shape))

    def log_sums(self, logits: np.ndarray) -> np.ndarray:
        """(S, K) logarithm of each sum for logits (S, n)."""
        return self.divide(logits)[0]

    def divide(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (S, K) the logarithm of each sum, and (S, K, R) the proportion of each product in its sum."""
        log = self.log_products(logits)
        greatest = log.max(axis=2, keepdims=True)
        share = np.exp(log - greatest)
        total = share.sum(axis=2, keepdims=True)
        return (greatest + np.log(total))[..., 0], share / total

    def differentiate(self, logits: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """(S, n) derivatives, with respect to logits (S, n), of the logarithms of products, weighted by (S, K, R)."""
        positive, both = self._flat
        flat = weight.reshape(len(weight), -1)
        return np.asarray(flat @ positive.T - (flat @ both.T) * expit(logits))

    def jacobian(self, logits: np.ndarray) -> np.ndarray:
        """(S, K, n) derivatives of the sums with respect to logits (S, n)."""
        product = np.exp(self.log_products(logits))
        positive, both = (np.einsum("skr,krn->skn", product, e) for e in (self.positive, self.both))
        return np.asarray(positive - both * expit(logits)[:, None])

    @cached_property
    def _flat(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, K · R) `positive`, and `both`."""
        n = self.positive.shape[2]
        return self.positive.reshape(-1, n).T.copy(), self.both.reshape(-1, n).T.copy()


@dataclass(frozen=True, eq=False)
class HuiWalter:
    """Parameters of P populations and T tests: prevalences, and P(positive | class, results of the parents).

    Parameters
    ----------
    n_populations : int
        P.
    parents : tuple of tuples of int
        Parents of each test, among the tests.
    """

    n_populations: int
    parents: tuple[tuple[int, ...], ...]

    @cached_property
    def _first(self) -> np.ndarray:
        """(T + 1,) position of the first parameter of each test, and the number of all parameters."""
        return self.n_populations + np.cumsum([0, *(2 << len(parents) for parents in self.parents)])

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return int(self._first[-1])

    def position(self, test: int, disease: int, results: Sequence[int]) -> int:
        """Position of P(test positive | class, results of its parents)."""
        code = int("".join(map(str, (disease, *results))), 2)
        return int(self._first[test]) + code

    def positions(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """Test, class and results of the parents of each parameter after the prevalences, in order."""
        contexts = [(t, x) for t, own in enumerate(self.parents) for x in product((0, 1), repeat=1 + len(own))]
        return [(t, x[0], x[1:]) for t, x in contexts]

    def concentrations(self, prevalence: np.ndarray, sensitivity: np.ndarray, specificity: np.ndarray) -> np.ndarray:
        """(n, 2) Beta concentrations of all parameters, from those of prevalences, sensitivities and specificities.

        A test with parents has its concentrations times the prior probability of the results of its parents.
        """
        pairs = specificity[:, ::-1], sensitivity
        rows = list(prevalence)
        for test, disease, results in self.positions():
            of_class = pairs[disease]
            mean = of_class / of_class.sum(axis=1, keepdims=True)
            share = np.prod([mean[u, 1 - x] for u, x in zip(self.parents[test], results, strict=True)])
            rows.append(of_class[test] * share)
        return np.array(rows)

    def _ancestors(self, tests: Iterable[int]) -> set[int]:
        """Tests and all their ancestors."""
        reached, rest = set[int](), list(tests)
        while rest:
            test = rest.pop()
            if test not in reached:
                reached.add(test)
                rest += self.parents[test]
        return reached

    def _products(self, done: dict[int, int], disease: int) -> list[list[tuple[int, int]]]:
        """Products whose sum is P(results | class), for the results of the tests that were done.

        There is one product for all results of the tests that were not done but are ancestors of others.
        """
        summed = sorted(self._ancestors(done) - set(done))
        products = []
        for results in product((0, 1), repeat=len(summed)):
            whole = done | dict(zip(summed, results, strict=True))
            given = {t: [whole[u] for u in self.parents[t]] for t in whole}
            products.append([(self.position(t, disease, given[t]), x) for t, x in whole.items()])
        return products

    def cells(self, code: np.ndarray, result: np.ndarray) -> Sums:
        """Probabilities of cells: results (K, T) are 1, 0 or NaN, and `code` (K,) their populations.

        The products of the healthy are before those of the diseased, and there are equally many.
        """
        of_class: tuple[list[Products], list[Products]] = [], []
        for population, own in zip(code.tolist(), result, strict=True):
            done = {t: int(x) for t, x in enumerate(own) if not np.isnan(x)}
            for disease, sums in enumerate(of_class):
                sums.append([[(population, disease), *factors] for factors in self._products(done, disease)])
        healthy, diseased = (Sums.from_products(sums, self.n_parameters) for sums in of_class)
        return healthy.add(diseased)

    @cached_property
    def quantities(self) -> Sums:
        """Prevalences (P), sensitivities (T) and specificities (T)."""
        prevalence = [[[(p, 1)]] for p in range(self.n_populations)]
        accuracy = [self._products({t: d}, d) for d in (1, 0) for t in range(len(self.parents))]
        return Sums.from_products([*prevalence, *accuracy], self.n_parameters)

    def is_named_right(self, logits: np.ndarray) -> np.ndarray:
        """(S,) whether tests are positive more often, on average, with the disease than without."""
        accuracy = np.exp(self.quantities.log_sums(logits)[:, self.n_populations :])
        return np.asarray(accuracy.sum(axis=1) > len(self.parents))

    def exchange_classes(self, logits: np.ndarray) -> np.ndarray:
        """Logits (…, n) of the same model with the two classes exchanged."""
        order = [self.position(t, 1 - d, results) for t, d, results in self.positions()]
        return np.concatenate([-logits[..., : self.n_populations], logits[..., order]], axis=-1)


# == Sequential Monte Carlo of Hui and Walter's model: from the prior to the posterior by tempering the likelihood

_LEAST_PARTICLES = 200
_KEPT = 0.5
"""Effective proportion of the particles of each chain after the exponent is raised."""
_MEMORY = 0.6
"""Correlation of the logits before and after the transitions at one exponent."""
_SHORT = 0.3
"""Step of `Langevin`, in standard deviations of all particles, below which `Slide` joins in."""
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
    exponent, step = 0.0, {Langevin: 1.0, Slide: 0.5}
    while exponent < 1.0:
        log_likelihood = posterior.log_likelihood(z).reshape(chains, size)
        raised = _raise_exponent(log_likelihood, exponent)
        z, exponent = z[_resample((raised - exponent) * log_likelihood, rng)], raised
        moves: list[Langevin | Slide] = [Langevin.from_particles(posterior, z, exponent)]
        if step[Langevin] < _SHORT:
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
class Langevin:
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
    def from_particles(cls, posterior: Posterior, z: np.ndarray, exponent: float) -> Langevin:
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


# == Identification of the parameters of diagnostic tests by a table: rank of its margins, information, and fit

_WEAK = 1.0 / 3.0
"""Ratio of the posterior sd to the prior sd in a direction that is weakly identified."""
_MOST_CELLS = 2**12
_POINTS = 5
_ZERO = 1e-9
_DRAWS = 200
_REPLICATES = 1000
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Margins:
    """Tables of all results of the tests that were done together, in each population.

    Parameters
    ----------
    model : HuiWalter
    tables : list of Sums
        Probabilities of the cells of each table; of a random part of them if there are more than 2¹².
    counts : list of arrays
        Frequencies of these cells.
    n_frequencies : int
        Number of free frequencies of all tables.
    """

    model: HuiWalter
    tables: list[Sums]
    counts: list[np.ndarray]
    n_frequencies: int

    @classmethod
    def from_cells(cls, model: HuiWalter, code: np.ndarray, result: np.ndarray, count: np.ndarray) -> Margins:
        """Find the tables of cells: populations (K,), results (K, T) of 1, 0 or NaN, and frequencies (K,)."""
        rng = np.random.default_rng(0)
        tables, counts, n_frequencies = [], [], 0
        keys = np.column_stack([code, ~np.isnan(result)])
        for key in np.unique(keys, axis=0):
            own = (keys == key).all(axis=1)
            done = np.flatnonzero(key[1:])
            n_frequencies += 2 ** len(done) - 1
            is_whole = 2 ** len(done) <= _MOST_CELLS
            if is_whole:
                results = np.array(list(product((0.0, 1.0), repeat=len(done))))
            else:
                results = rng.integers(0, 2, (_MOST_CELLS // 4, len(done))).astype(float)
            cells, frequency = np.full((len(results), result.shape[1]), np.nan), np.zeros(len(results))
            cells[:, done] = results
            if is_whole:
                power = 1 << np.arange(len(done))[::-1]
                np.add.at(frequency, (result[own][:, done] @ power).astype(int), count[own])
            tables.append(model.cells(np.full(len(cells), key[0]), cells))
            counts.append(frequency)
        return cls(model, tables, counts, n_frequencies)

    @property
    def is_whole(self) -> bool:
        """Whether the tables have all cells."""
        return sum(len(count) - 1 for count in self.counts) == self.n_frequencies

    def rank(self) -> tuple[int, np.ndarray]:
        """Return the generic rank of the margins, and whether each quantity is a function of them, locally.

        The rank is the largest of the ranks of the derivatives at several random parameters. A quantity is determined
        if it does not change along any direction in which no margin changes.
        """
        best, determined = -1, np.zeros(0, bool)
        for logits in np.random.default_rng(0).normal(size=(_POINTS, 1, self.model.n_parameters)):
            slope = np.concatenate([table.jacobian(logits)[0] for table in self.tables])
            _, size, directions = np.linalg.svd(np.linalg.qr(slope, mode="r"))
            rank = int((size > _ZERO * size[0]).sum())
            if rank > best:
                change = self.model.quantities.jacobian(logits)[0]
                free = np.abs(change @ directions[rank:].T).max(axis=1, initial=0.0)
                best, determined = rank, free < 1e-6 * np.abs(change).max(axis=1)
        return best, determined

    def fit(self, logits: np.ndarray, seed: int) -> float:
        """Posterior predictive p of G² for draws (S, n): P(G² of a replicated table is at least that of the table).

        Both are deviations of a table from the probabilities of the same draw (Gelman, Meng & Stern 1996).
        """
        rng = np.random.default_rng(seed)
        logits = logits[:: -(-len(logits) // _REPLICATES)]
        observed, replicated = np.zeros(len(logits)), np.zeros(len(logits))
        for table, count in zip(self.tables, self.counts, strict=True):
            prob = np.exp(table.log_sums(logits))
            prob /= prob.sum(axis=1, keepdims=True)
            drawn = rng.multinomial(int(count.sum()), prob)
            observed += _deviance(count, prob)
            replicated += _deviance(drawn, prob)
        return float((replicated >= observed).mean())


def _deviance(count: np.ndarray, prob: np.ndarray) -> np.ndarray:
    """(S,) likelihood-ratio statistic G² of frequencies (K,) or (S, K) against probabilities (S, K)."""
    expected = prob * count.sum(axis=-1, keepdims=True)
    return np.asarray(2.0 * xlogy(count, np.where(count > 0, count / np.maximum(expected, 1e-300), 1.0)).sum(axis=-1))


def measure_information(posterior: Posterior, margins: Margins, logits: np.ndarray) -> tuple[np.ndarray, float]:
    """Return whether each quantity is weakly identified, and posterior over prior sd in the weakest direction.

    At each of some draws (S, n) the information of the data is Fisher's, in units in which parameters have the prior sd
    1: the sum over cells, empty ones included, of the expected frequency times the squared derivative of the log
    probability. If not all cells are known, the observed frequencies take the place of the expected ones. A direction
    whose information is σ² has the posterior sd (1 + σ²)^(-1/2). A quantity is weakly identified if most of its
    variance is that of directions in which this ratio is above a third.
    """
    logits = logits[:: -(-len(logits) // _DRAWS)]
    theta = expit(logits)
    a, b = posterior.concentration.T
    scale = np.sqrt(a * b / (a + b + 1.0)) / (a + b) / np.maximum(theta * (1.0 - theta), _LEAST)
    whole = zip(margins.tables, margins.counts, strict=True)
    fisher = np.zeros((*theta.shape, theta.shape[1]))
    for cells, count in whole if margins.is_whole else [(posterior.cells, posterior.count)]:
        log = cells.log_sums(logits)
        frequency = count.sum() * np.exp(log) if margins.is_whole else count
        slope = cells.jacobian(logits) * scale[:, None] * (np.sqrt(frequency) * np.exp(-log))[..., None]
        fisher += np.swapaxes(slope, 1, 2) @ slope
    information, directions = np.linalg.eigh(fisher)
    variance = 1.0 / (1.0 + np.maximum(information, 0.0))
    change = (posterior.model.quantities.jacobian(logits) * scale[:, None]) @ directions
    parts = change**2 * variance[:, None]
    weak = variance[:, None] > _WEAK**2
    is_weak = (parts * weak).sum(axis=(0, 2)) > 0.5 * parts.sum(axis=(0, 2))
    return is_weak, float(np.median(np.sqrt(variance.max(axis=1))))
