"""Hui and Walter's latent class model of diagnostic tests, with arcs between tests, in logits of its parameters.

The probability of each cell of the table, and each sensitivity and specificity, is a sum of products of parameters θ
and of 1 - θ. `Sums` computes all of them, and their derivatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.special import expit, log_expit

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
