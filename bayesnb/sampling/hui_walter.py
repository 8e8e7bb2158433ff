"""Hui and Walter's latent class model of diagnostic tests, and draws of its posterior by tempering.

The probability of each cell of the table, and each sensitivity and specificity, is a sum of products of parameters θ
and of 1 - θ, with arcs between tests in logits. `Sums` computes all of them, and their derivatives.

Sequential Monte Carlo goes from the prior to the posterior by raising the exponent of the likelihood. Chains are
independent systems of particles. Each step resamples the particles by their weights, and moves each by Hamiltonian
Monte Carlo with the particles' covariance as inverse mass matrix. Trajectories have as many steps as follow a ridge of
parameters that predict the same frequencies. Resampled particles keep their order, so that those with common ancestors
are neighbours: autocorrelation along a chain, and thus its effective sample size, measures how many independent
particles there are.

BlackJAX 1.7.1's adaptive tempered SMC with the same transitions finds the same intervals (.719 to .981 where that is
exact, on a ridge of 200,000 rows). JAX compiles it for 10 seconds for each shape of table, where all of a fit to an
identified table takes 1 to 4 seconds here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.special import expit, log_expit, xlogy

# == Hui and Walter's latent class model of diagnostic tests, with arcs between tests, in logits of its parameters

Products = Sequence[Iterable[tuple[int, int]]]
"""Products of a sum, each with its factors: the position i of a parameter, and 1 for θ_i or 0 for 1 - θ_i."""


@dataclass(frozen=True, eq=False)
class Sums:
    """K sums, each of at most R products of parameters θ_i in (0, 1) and of 1 - θ_i.

    Parameters
    ----------
    positive, both : (n, K, R) arrays
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
        positive, both = np.zeros((2, n, len(sums), most))
        absent = np.ones((len(sums), most), bool)
        for k, products in enumerate(sums):
            for r, factors in enumerate(products):
                absent[k, r] = False
                for i, value in factors:
                    positive[i, k, r], both[i, k, r] = value, 1.0
        return cls(positive, both, absent)

    def log_products(self, logits: np.ndarray) -> np.ndarray:
        """(S, K, R) logarithm of each product for logits (S, n); -inf where it is absent."""
        log = np.tensordot(log_expit(-logits), self.both, 1) + np.tensordot(logits, self.positive, 1)
        return np.where(self.absent, -np.inf, log)

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
        positive, both = (np.tensordot(weight, e, ((1, 2), (1, 2))) for e in (self.positive, self.both))
        return np.asarray(positive - both * expit(logits))

    def jacobian(self, logits: np.ndarray) -> np.ndarray:
        """(S, K, n) derivatives of the sums with respect to logits (S, n)."""
        product = np.exp(self.log_products(logits))
        positive, both = (np.einsum("skr,nkr->skn", product, e) for e in (self.positive, self.both))
        return np.asarray(positive - both * expit(logits)[:, None])


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

        Products of the healthy and of the diseased alternate.
        """
        sums = []
        for population, own in zip(code.tolist(), result, strict=True):
            done = {t: int(x) for t, x in enumerate(own) if not np.isnan(x)}
            pairs = zip(self._products(done, 0), self._products(done, 1), strict=True)
            sums.append([[(population, d), *factors] for pair in pairs for d, factors in enumerate(pair)])
        return Sums.from_products(sums, self.n_parameters)

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
_ACCEPTED = 0.8
"""Proportion of accepted transitions for which the step is adapted."""
_LENGTH = 1.5
"""Length of a trajectory of Hamiltonian Monte Carlo, in standard deviations of all particles."""
_MOST_STEPS = 50
"""Greatest number of steps of a trajectory."""
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

    def tempered_density(self, logits: np.ndarray, exponent: float) -> tuple[np.ndarray, np.ndarray]:
        """Return (S,) the log density of logits (S, n) given the likelihood to the power `exponent`, and its gradient.

        The log density is up to a constant, and -inf if the classes are misnamed. The gradient (S, n) ignores names.
        """
        log, share = self.cells.divide(logits)
        density = exponent * (log @ self.count) + self.log_density(logits)
        gradient = exponent * self.cells.differentiate(logits, share * self.count[:, None])
        gradient += self.concentration[:, 0] - self.concentration.sum(axis=1) * expit(logits)
        return np.where(self.model.is_named_right(logits), density, -np.inf), gradient


def draw_posterior(
    posterior: Posterior, chains: int, draws: int, transitions: int, seed: int, tick: Callable[[], object]
) -> np.ndarray:
    """Draw logits (chains, draws, n), by a number of transitions at the posterior, and at most as many on the way."""
    rng = np.random.default_rng(seed)
    size = max(draws, _LEAST_PARTICLES)
    z = posterior.draw_prior(chains * size, rng)
    exponent, step = 0.0, 1.0
    while exponent < 1.0:
        log_likelihood = posterior.log_likelihood(z).reshape(chains, size)
        raised = _raise_exponent(log_likelihood, exponent)
        z, exponent = z[_resample((raised - exponent) * log_likelihood, rng)], raised
        scale = np.linalg.cholesky(np.cov(z.T) + 1e-9 * np.eye(z.shape[1]))
        for _ in _repeat(z, transitions, exponent == 1.0):
            accepted = np.empty(len(z), bool)
            for block in np.array_split(np.arange(len(z)), -(-len(z) * posterior.cells.absent.size // _BLOCK)):
                z[block], accepted[block] = _move(posterior, exponent, scale, z[block], step, rng)
            step = min(step * np.exp(accepted.mean() - _ACCEPTED), 2.0)
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


def _move(
    posterior: Posterior, exponent: float, scale: np.ndarray, z: np.ndarray, step: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Move logits (S, n) by Hamiltonian Monte Carlo; return new logits, and (S,) whether each move was accepted.

    `scale` is the Cholesky factor of the covariance of all particles, which is the inverse mass matrix.
    """
    momentum = rng.standard_normal(z.shape)
    before, gradient = posterior.tempered_density(z, exponent)
    log_ratio = 0.5 * (momentum**2).sum(axis=1) - before
    proposed = z
    for _ in range(min(int(np.ceil(_LENGTH / step)), _MOST_STEPS)):
        momentum = momentum + 0.5 * step * gradient @ scale
        proposed = proposed + step * momentum @ scale.T
        after, gradient = posterior.tempered_density(proposed, exponent)
        momentum = momentum + 0.5 * step * gradient @ scale
    log_ratio += after - 0.5 * (momentum**2).sum(axis=1)
    accepted = np.log(rng.random(len(z))) < log_ratio
    return np.where(accepted[:, None], proposed, z), accepted


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
