"""Weights of terms: penalised multinomial logistic regression on the terms of rows, by fits that do not know the rows.

    s_c(x) = b_c + log π_c + Σ_t w_t ℓ_ct(x),    P(c | x) = softmax(s),    w_t = T_g + τ_g d_t  (t in group g)

with b, d ~ N(0, 1) and T_g ~ N(μ_g, 1). For given τ the objective is concave and has one optimum. τ is the smallest of
a grid against which Laplace's evidence is not strong: within a Bayes factor of 10 of the best. The term of a row that
is t draws from one simplex is ℓ ((t + 1)/(t₀ + 1))^-β, t₀ that of a typical row, with β at the optimum under τ = 0; β
is half normal of scale ½, as rows whose labels are told nearly without error do not bound it.

Each row is scored S times, by S fits to random halves of the other rows, with S-th parts of its weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int, Num
from scipy.special import log_softmax

GRID = ((0.0,), (0.03,), (0.1,), (0.3,), (1.0,))
GRID_OF_TWO = (
    (0.0, 0.0), (0.03, 0.0), (0.03, 0.03), (0.1, 0.0), (0.1, 0.03), (0.1, 0.1),
    (0.3, 0.0), (0.3, 0.1), (0.3, 0.3), (1.0, 0.1), (1.0, 0.3), (1.0, 1.0),
)  # fmt: skip
"""τ of one group of terms, and of two, margins and dependences, from those that shrink most."""
_STRONG = np.log(10.0)  # Jeffreys; the best τ alone is chosen by a nat or two where few rows are hard to tell
_PRECISION_OF_EXPONENT = 4.0
_LARGEST_EXPONENT = 2.0
_SPLITS_TOGETHER, _FOLDS = 3, 4

Point = tuple[np.ndarray, np.ndarray]
"""Biases (C,) and weights (T,)."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Which terms share a temperature.

    Parameters
    ----------
    of_terms : (T,) int array
        Group of each term.
    mean : (G,) array
        Prior means μ of the temperatures.
    of_draws : (T,) bool array
        Terms of rows that are several draws from one simplex.
    """

    of_terms: Int[np.ndarray, "T"]
    mean: Float[np.ndarray, "G"]
    of_draws: Bool[np.ndarray, "T"]

    @classmethod
    def of(cls, dependence: Bool[np.ndarray, "T"], of_draws: Bool[np.ndarray, "T"]) -> Groups:
        """Return the groups of terms of which some are dependences: T ~ N(1, 1) of margins, and N(½, 1) of those."""
        mean = np.array([1.0, 0.5]) if dependence.any() else np.ones(1)
        return cls(dependence.astype(int), mean, of_draws)

    @property
    def grid(self) -> tuple[tuple[float, ...], ...]:
        """Values of τ to compare, from those that shrink most."""
        return GRID if len(self.mean) == 1 else GRID_OF_TWO

    def sum_terms(self, values: Float[np.ndarray, "*N T"]) -> Float[np.ndarray, "*N G"]:
        """Return the sum of the terms of each group."""
        return np.stack([values[..., self.of_terms == g].sum(axis=-1) for g in range(len(self.mean))], axis=-1)

    def summed(self) -> Groups:
        """Return the groups of `sum_terms`, a term each."""
        n = len(self.mean)
        draws = np.array([self.of_draws[self.of_terms == g].any() for g in range(n)])
        return Groups(np.arange(n), self.mean, draws)


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior of biases and weights under one τ.

    Parameters
    ----------
    groups : Groups
    shrinkage : (G,) array
        τ.
    into : (C + T, P) sparse array
        (b, w) as a linear function of the P free parameters, of (b, T, d): no b without biases, d_t where τ_g > 0.
    mean : (P,) array
        Prior means of the free parameters, whose prior variances are 1.
    temperatures : slice
        Where T is among the free parameters.
    """

    groups: Groups
    shrinkage: Float[np.ndarray, "G"]
    into: sp.csr_array
    mean: Float[np.ndarray, "P"]
    temperatures: slice

    @classmethod
    def of(cls, groups: Groups, shrinkage: np.ndarray, n_classes: int, *, biased: bool) -> Prior:
        """Return the prior of C biases and T weights."""
        n_terms, n_groups, tau = len(groups.of_terms), len(groups.mean), shrinkage[groups.of_terms]
        bias = sp.eye_array(n_classes, n_classes * biased)
        common = sp.csr_array((np.ones(n_terms), (np.arange(n_terms), groups.of_terms)), (n_terms, n_groups))
        deviations = sp.diags_array(tau).tocsc()[:, tau > 0]
        mean = np.zeros(n_classes * biased + n_groups + deviations.shape[1])
        temperatures = slice(n_classes * biased, n_classes * biased + n_groups)
        mean[temperatures] = groups.mean
        into = sp.block_diag([bias, sp.hstack([common, deviations])], format="csr")
        return cls(groups, shrinkage, sp.csr_array(into), mean, temperatures)

    def point(self, theta: Float[np.ndarray, "P"]) -> Point:
        """Return the biases and weights of free parameters."""
        at = self.into @ theta
        return at[: len(at) - len(self.groups.of_terms)], at[len(at) - len(self.groups.of_terms) :]

    def parameters(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "P"]:
        """Return the free parameters whose biases and weights are these, or, where τ = 0, nearest to these."""
        of_terms, tau = self.groups.of_terms, self.shrinkage[self.groups.of_terms]
        common = np.bincount(of_terms, weight) / np.bincount(of_terms)
        free = tau > 0
        return np.concatenate([bias[: self.temperatures.start], common, (weight - common[of_terms])[free] / tau[free]])


@dataclass(frozen=True, eq=False)
class CrossTerms(ABC):
    """Terms of N rows, each by S fits that do not know the row: A = S·N scored rows, those of the first split first.

    Parameters
    ----------
    log_class : (A, C) array
        log P(class) in nats.
    log_length : (A,) array
        log((t + 1)/(t₀ + 1)) of a row that is t draws from one simplex, t₀ a typical one; else 0.
    label : (A,) int array
        Index of the class.
    weight : (A,) array
        Replication counts, divided by S.
    row : (A,) int array
        Which row it is.
    fit : (A,) int array
        Which of the 2S fits has scored it.
    """

    log_class: Float[np.ndarray, "A C"]
    log_length: Float[np.ndarray, "A"]
    label: Int[np.ndarray, "A"]
    weight: Num[np.ndarray, "A"]
    row: Int[np.ndarray, "A"]
    fit: Int[np.ndarray, "A"]

    @abstractmethod
    def take(self, index: np.ndarray | slice) -> Self:
        """Return some of the scored rows."""

    @abstractmethod
    def scores(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "A C"]:
        """Compute s_c(x) at (b, w)."""

    @abstractmethod
    def with_exponent(self, exponent: float, of_draws: np.ndarray) -> Self:
        """Multiply terms of draws by ((t + 1)/(t₀ + 1))^-β."""

    @abstractmethod
    def sum_groups(self, groups: Groups) -> CrossTerms:
        """Return the sums of the terms of each group, in its place."""

    @abstractmethod
    def find_parameters(self, prior: Prior, start: Point | None = None) -> Float[np.ndarray, "P"]:
        """Find the free parameters at the penalised optimum, from (b, w) on; default: from the prior mean on."""

    @abstractmethod
    def optimum_at(self, prior: Prior, theta: Float[np.ndarray, "P"]) -> Optimum:
        """Return the optimum at these free parameters, with standard deviations and evidence."""

    def maximize(self, prior: Prior, start: Point | None = None) -> Optimum:
        """Find the penalised optimum, from (b, w) on; default: from the prior mean on."""
        return self.optimum_at(prior, self.find_parameters(prior, start))

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""
        return int(self.row.max()) + 1

    def log_losses(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "N"]:
        """Compute the mean of -log P(label | row) over the S fits at (b, w)."""
        return -self._log_proba_of_label(bias, weight).reshape(-1, self.n_rows).mean(axis=0)

    def log_score(self, bias: np.ndarray, weight: np.ndarray) -> float:
        """Compute Σ_i v_i log P(y_i | x_i) at (b, w)."""
        return float(self.weight @ self._log_proba_of_label(bias, weight))

    def held_out_log_losses(self, prior: Prior, start: Point) -> Float[np.ndarray, "N"]:
        """Compute the mean log loss of each row over the S fits, under weights that do not know its label.

        A row is not only among those that weights are fitted to: half of the fits that score other rows know its label.
        Weights for it are fitted to what the other fits, those that score it, say of other rows. Rows which the same
        fits score are held out a quarter at a time; of six splits three are taken together. Halves are stratified, so
        that a half's share of a class knows of the row, too: log P(its class) is lowered as if the row were not there.

        Parameters
        ----------
        prior : Prior
        start : (b, w)
            The optimum of all rows.
        """
        fit, losses = self.fit.reshape(-1, self.n_rows), np.zeros(self.n_rows)
        of_class, of_row = np.bincount(self.label, self.weight), np.bincount(self.row, self.weight)
        shift = np.log1p(-of_row / (of_class[self.label[: self.n_rows]] + 1))
        together = np.array_split(np.arange(len(fit)), -(-len(fit) // _SPLITS_TOGETHER))
        for splits in together:
            patterns, pattern_of = np.unique(fit[splits], axis=1, return_inverse=True)
            for k, pattern in enumerate(patterns.T):
                rows = np.flatnonzero(pattern_of == k)
                rows = rows[np.argsort(self.label[rows], kind="stable")]
                for held_out in (rows[i::_FOLDS] for i in range(min(_FOLDS, len(rows)))):
                    others = np.isin(self.fit, pattern) & ~np.isin(self.row, held_out)
                    terms = self.take(np.flatnonzero(others))
                    terms = replace(terms, weight=terms.weight * (self.weight.sum() / terms.weight.sum()))
                    point = prior.point(terms.find_parameters(prior, start))
                    scored = self.take((splits[:, None] * self.n_rows + held_out).ravel())
                    scored.log_class[np.arange(len(scored.label)), scored.label] += shift[scored.row]  # of a copy
                    losses[held_out] -= scored._log_proba_of_label(*point).reshape(len(splits), -1).mean(axis=0)
        return losses / len(together)

    def _log_proba_of_label(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "A"]:
        log_proba = log_softmax(self.scores(bias, weight), axis=-1)
        return np.take_along_axis(log_proba, self.label[:, None], axis=-1)[:, 0]


@dataclass(frozen=True, eq=False)
class Optimum:
    """The penalised optimum under one τ.

    Parameters
    ----------
    shrinkage : (G,) array
        τ.
    bias, temperature, weight : (C,), (G,) and (T,) arrays
        b, T and w.
    sd, temperature_sd : (T,) and (G,) arrays
        Posterior standard deviations of the weights and temperatures, by Laplace's approximation.
    log_evidence : float
        Laplace's approximation, up to a constant that all τ share.
    """

    shrinkage: Float[np.ndarray, "G"]
    bias: Float[np.ndarray, "C"]
    temperature: Float[np.ndarray, "G"]
    weight: Float[np.ndarray, "T"]
    sd: Float[np.ndarray, "T"]
    temperature_sd: Float[np.ndarray, "G"]
    log_evidence: float


def fit_weights(
    terms: CrossTerms, groups: Groups, grid: Sequence[Sequence[float]], *, biased: bool
) -> tuple[list[Optimum], int, float]:
    """Find the optimum under each τ of a grid.

    Parameters
    ----------
    terms : CrossTerms
    groups : Groups
    grid : sequence of (G,) τ
        From those that shrink most to those that shrink least.
    biased : bool
        Whether classes have a bias.

    Returns
    -------
    optima : list of Optimum
        One for each τ.
    chosen : int
        Index of the first τ within a Bayes factor of 10 of the best.
    exponent : float
        β; 0 if no terms are of draws.
    """
    exponent = _exponent(terms, groups, biased=biased) if groups.of_draws.any() else 0.0
    scaled, found = terms.with_exponent(exponent, groups.of_draws), list[Optimum]()
    for tau in grid:
        prior = Prior.of(groups, np.asarray(tau, float), terms.log_class.shape[-1], biased=biased)
        found.append(scaled.maximize(prior, (found[-1].bias, found[-1].weight) if found else None))
    best = max(one.log_evidence for one in found)
    return found, next(k for k, one in enumerate(found) if one.log_evidence >= best - _STRONG), exponent


def _exponent(terms: CrossTerms, groups: Groups, *, biased: bool) -> float:
    """Find β at the optimum under common temperatures."""
    from scipy.optimize import minimize_scalar

    prior = Prior.of(groups, np.zeros(len(groups.mean)), terms.log_class.shape[-1], biased=biased)
    start: Point | None = None

    def loss(exponent: float) -> float:
        nonlocal start
        scaled = terms.with_exponent(exponent, groups.of_draws)
        found = scaled.maximize(prior, start)
        start = found.bias, found.weight
        away = found.temperature - groups.mean
        penalty = (found.bias @ found.bias + away @ away + _PRECISION_OF_EXPONENT * exponent**2) / 2
        return penalty - scaled.log_score(found.bias, found.weight)

    return float(minimize_scalar(loss, bounds=(0.0, _LARGEST_EXPONENT), method="bounded", options={"xatol": 1e-8}).x)
