"""Weights of terms: penalised multinomial logistic regression on cross-fitted terms of rows.

    s_c(x) = b_c + log π_c + Σ_t w_t ℓ_ct(x),    P(c | x) = softmax(s),    w_t = T_g + τ_g d_t  (t in group g)

with b, d ~ N(0, 1) and T_g ~ N(μ_g, 1). For given τ the objective is concave and has one optimum. τ is the smallest of
a grid against which Laplace's evidence is not strong: within a Bayes factor of 10 of the best. The term of a row that
is t draws from one simplex is ℓ ((t + 1)/(t₀ + 1))^-β, t₀ that of a typical row, with β at the optimum under τ = 0; β
is half normal of scale ½, as rows whose labels are told nearly without error do not bound it.

Each row is scored S times, by S fits to random halves of the rows without it, each time with 1/S of its weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

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
# Jeffreys' bound of strong evidence. Where few rows are hard to tell, a nat or two decide which τ is the best one.
_STRONG = np.log(10.0)
_PRECISION_OF_EXPONENT = 4.0
_LARGEST_EXPONENT = 2.0
_SPLITS_TOGETHER, _FOLDS = 3, 4

Point = tuple[np.ndarray, np.ndarray]
"""Biases (C,) and weights (T,)."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Partition of T terms into G groups, each with a temperature.

    Parameters
    ----------
    index : (T,) int array
        Group of each term.
    mean : (G,) array
        Prior means μ of the temperatures.
    of_draws : (T,) bool array
        Whether a term is of rows that are several draws from one simplex.
    """

    index: Int[np.ndarray, "T"]
    mean: Float[np.ndarray, "G"]
    of_draws: Bool[np.ndarray, "T"]

    @classmethod
    def from_dependence(cls, dependence: Bool[np.ndarray, "T"], of_draws: Bool[np.ndarray, "T"]) -> Groups:
        """Return one group of margins, and one of dependences if there are any: T ~ N(1, 1), and T ~ N(½, 1)."""
        mean = np.array([1.0, 0.5]) if dependence.any() else np.ones(1)
        return cls(dependence.astype(int), mean, of_draws)

    @property
    def grid(self) -> tuple[tuple[float, ...], ...]:
        """Values of τ to compare, from those that shrink most."""
        return GRID if len(self.mean) == 1 else GRID_OF_TWO

    def sum_terms(self, values: Float[np.ndarray, "*N T"]) -> Float[np.ndarray, "*N G"]:
        """Return the sum of the terms of each group."""
        return np.stack([values[..., self.index == g].sum(axis=-1) for g in range(len(self.mean))], axis=-1)

    def collapse(self) -> Groups:
        """Return G groups of one term each: the groups of what `sum_terms` returns."""
        n = len(self.mean)
        draws = np.array([self.of_draws[self.index == g].any() for g in range(n)])
        return Groups(np.arange(n), self.mean, draws)


@dataclass(frozen=True, eq=False)
class Prior:
    """Normal prior of C biases and T weights under one τ.

    Parameters
    ----------
    groups : Groups
        Groups of the T terms.
    shrinkage : (G,) array
        τ of each group.
    design : (C + T, P) sparse array
        Linear map from the P free parameters to (b, w). The free parameters are (b, T, d), without b where classes have
        no bias, and with d_t only where τ_g > 0.
    mean : (P,) array
        Prior means of the free parameters, whose prior variances are 1.
    temperatures : slice
        Positions of T among the free parameters.
    """

    groups: Groups
    shrinkage: Float[np.ndarray, "G"]
    design: sp.csr_array
    mean: Float[np.ndarray, "P"]
    temperatures: slice

    @classmethod
    def from_groups(cls, groups: Groups, shrinkage: np.ndarray, n_classes: int, *, biased: bool) -> Prior:
        """Return the prior under τ = `shrinkage` (G,); without biases b = 0."""
        n_terms, n_groups, tau = len(groups.index), len(groups.mean), shrinkage[groups.index]
        bias = sp.eye_array(n_classes, n_classes * biased)
        common = sp.csr_array((np.ones(n_terms), (np.arange(n_terms), groups.index)), (n_terms, n_groups))
        deviations = sp.diags_array(tau).tocsc()[:, tau > 0]
        mean = np.zeros(n_classes * biased + n_groups + deviations.shape[1])
        temperatures = slice(n_classes * biased, n_classes * biased + n_groups)
        mean[temperatures] = groups.mean
        design = sp.block_diag([bias, sp.hstack([common, deviations])], format="csr")
        return cls(groups, shrinkage, sp.csr_array(design), mean, temperatures)

    def point(self, theta: Float[np.ndarray, "P"]) -> Point:
        """Return the biases (C,) and weights (T,) of free parameters."""
        values = self.design @ theta
        n_classes = len(values) - len(self.groups.index)
        return values[:n_classes], values[n_classes:]

    def parameters(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "P"]:
        """Return the free parameters of given biases and weights; where τ = 0, of the mean weight of the group."""
        index, tau = self.groups.index, self.shrinkage[self.groups.index]
        common = np.bincount(index, weight) / np.bincount(index)
        free = tau > 0
        return np.concatenate([bias[: self.temperatures.start], common, (weight - common[index])[free] / tau[free]])


class TermBlock(NamedTuple):
    """Terms of n scored rows by one fit.

    Parameters
    ----------
    position : (n,) int array
        Positions of the rows among all A scored rows.
    fit : int
        Number of the fit, from 0 on.
    log_class : (C,) array
        log P(class) in nats, by this fit.
    values : (n, C, T) array
        log p(x_t | class) in nats, by this fit.
    """

    position: Int[np.ndarray, "n"]
    fit: int
    log_class: Float[np.ndarray, "C"]
    values: Float[np.ndarray, "n C T"]


@dataclass(frozen=True, eq=False)
class CrossTerms(ABC):
    """Terms of N rows, each scored by S fits that do not know the row; abstract: how the terms are stored.

    There are A = S·N scored rows, those of the first split first.

    Parameters
    ----------
    log_class : (A, C) array
        log P(class) in nats.
    log_length : (A,) array
        log((t + 1)/(t₀ + 1)) of a row that is t draws from one simplex, t₀ the length of a typical row; else 0.
    label : (A,) int array
        Index of the class of each row.
    weight : (A,) array
        Replication counts, divided by S.
    row : (A,) int array
        Position of each row among the N rows.
    fit : (A,) int array
        Number of the fit, of 2S, that has scored each row.
    """

    log_class: Float[np.ndarray, "A C"]
    log_length: Float[np.ndarray, "A"]
    label: Int[np.ndarray, "A"]
    weight: Num[np.ndarray, "A"]
    row: Int[np.ndarray, "A"]
    fit: Int[np.ndarray, "A"]

    @staticmethod
    @abstractmethod
    def cells_per_row(n_terms: int, n_deviating: int) -> int:
        """Return how many numbers are stored for each row and class.

        Parameters
        ----------
        n_terms : int
            Number of terms of a row, T.
        n_deviating : int
            Number of cells of a row that differ from what most rows have.
        """

    @classmethod
    @abstractmethod
    def from_blocks(cls, blocks: Iterable[TermBlock], groups: Groups, n_classes: int, **row_fields: np.ndarray) -> Self:
        """Read the terms of all scored rows.

        Parameters
        ----------
        blocks : iterable of TermBlock
            Blocks of scored rows, each row in one block.
        groups : Groups
            Groups of the terms.
        n_classes : int
            Number of classes, C.
        row_fields : (A,) arrays
            The fields `log_length`, `label`, `weight`, `row` and `fit`.
        """

    @abstractmethod
    def take(self, index: np.ndarray | slice) -> Self:
        """Return some of the scored rows."""

    @abstractmethod
    def scores(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "A C"]:
        """Compute s_c(x) at (b, w)."""

    @abstractmethod
    def with_exponent(self, exponent: float, of_draws: np.ndarray) -> Self:
        """Return a copy whose terms of draws are multiplied by ((t + 1)/(t₀ + 1))^-β; `of_draws` (T,) says which."""

    @abstractmethod
    def sum_groups(self, groups: Groups) -> CrossTerms:
        """Return a copy with G terms, each the sum of the terms of a group."""

    @abstractmethod
    def find_parameters(self, prior: Prior, start: Point | None = None) -> Float[np.ndarray, "P"]:
        """Find the free parameters at the penalised optimum, from `start` = (b, w) on; default: the prior mean."""

    @abstractmethod
    def optimum_at(self, prior: Prior, theta: Float[np.ndarray, "P"]) -> Optimum:
        """Return the optimum at free parameters that maximise the score, with standard deviations and evidence."""

    def maximize(self, prior: Prior, start: Point | None = None) -> Optimum:
        """Find the penalised optimum, from `start` = (b, w) on; default: the prior mean."""
        return self.optimum_at(prior, self.find_parameters(prior, start))

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""
        return int(self.row.max()) + 1

    def log_losses(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "N"]:
        """Compute the mean of -log P(label | row) over the S fits at (b, w)."""
        return np.asarray(np.mean(-self._log_proba_of_label(bias, weight).reshape(-1, self.n_rows), axis=0))

    def log_score(self, bias: np.ndarray, weight: np.ndarray) -> float:
        """Compute Σ_i v_i log P(y_i | x_i) at (b, w)."""
        return float(self.weight @ self._log_proba_of_label(bias, weight))

    def held_out_log_losses(self, prior: Prior, start: Point) -> Float[np.ndarray, "N"]:
        """Compute the mean log loss of each row over the S fits, under weights that do not know its label.

        Not only are weights fitted to the row: half of the fits that score other rows know its label, too. So weights
        for the row are fitted to the scores of other rows by those fits alone that score the row. Rows which the same
        fits score are held out a quarter at a time; of six splits three are taken together. Halves are stratified, so
        that the proportion of a class in a half tells of the row: log P(its class) is lowered as if the row were not
        in the data.

        Parameters
        ----------
        prior : Prior
            Prior of biases and weights.
        start : (b, w)
            Optimum of all rows, where the search begins.
        """
        fit, losses = self.fit.reshape(-1, self.n_rows), np.zeros(self.n_rows)
        class_weight, row_weight = np.bincount(self.label, self.weight), np.bincount(self.row, self.weight)
        shift = np.log1p(-row_weight / (class_weight[self.label[: self.n_rows]] + 1))
        batches = np.array_split(np.arange(len(fit)), -(-len(fit) // _SPLITS_TOGETHER))
        for splits in batches:
            patterns, pattern_index = np.unique(fit[splits], axis=1, return_inverse=True)
            for k, pattern in enumerate(patterns.T):
                rows = np.flatnonzero(pattern_index == k)
                rows = rows[np.argsort(self.label[rows], kind="stable")]
                for held_out in (rows[i::_FOLDS] for i in range(min(_FOLDS, len(rows)))):
                    others = self.take(np.flatnonzero(np.isin(self.fit, pattern) & ~np.isin(self.row, held_out)))
                    if len(others.weight):  # There may be none if rows are two or three, of high weights.
                        others = replace(others, weight=others.weight * (self.weight.sum() / others.weight.sum()))
                    point = prior.point(others.find_parameters(prior, start))
                    scored = self.take((splits[:, None] * self.n_rows + held_out).ravel())
                    log_class = scored.log_class.copy()
                    log_class[np.arange(len(log_class)), scored.label] += shift[scored.row]
                    log_proba = replace(scored, log_class=log_class)._log_proba_of_label(*point)
                    losses[held_out] -= log_proba.reshape(len(splits), -1).mean(axis=0)
        return losses / len(batches)

    def _log_proba_of_label(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "A"]:
        """Compute log P(label | row) of each scored row at (b, w)."""
        log_proba = np.asarray(log_softmax(self.scores(bias, weight), axis=-1))
        return np.take_along_axis(log_proba, self.label[:, None], axis=-1)[:, 0]


@dataclass(frozen=True, eq=False)
class Optimum:
    """Penalised optimum under one τ.

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


def optimize_weights(
    terms: CrossTerms, groups: Groups, grid: Sequence[Sequence[float]], *, biased: bool
) -> tuple[list[Optimum], int, float]:
    """Find the penalised optimum of biases and weights under each τ of a grid, and choose τ by the evidence.

    Parameters
    ----------
    terms : CrossTerms
        Terms of rows.
    groups : Groups
        Groups of the terms.
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
    exponent = _find_exponent(terms, groups, biased=biased) if groups.of_draws.any() else 0.0
    scaled, optima = terms.with_exponent(exponent, groups.of_draws), list[Optimum]()
    for tau in grid:
        prior = Prior.from_groups(groups, np.asarray(tau, float), terms.log_class.shape[-1], biased=biased)
        optima.append(scaled.maximize(prior, (optima[-1].bias, optima[-1].weight) if optima else None))
    best = max(optimum.log_evidence for optimum in optima)
    chosen = next(k for k, optimum in enumerate(optima) if optimum.log_evidence >= best - _STRONG)
    return optima, chosen, exponent


def _find_exponent(terms: CrossTerms, groups: Groups, *, biased: bool) -> float:
    """Find β at the penalised optimum under τ = 0."""
    from scipy.optimize import minimize_scalar

    prior = Prior.from_groups(groups, np.zeros(len(groups.mean)), terms.log_class.shape[-1], biased=biased)
    start: Point | None = None

    def loss(exponent: float) -> float:
        nonlocal start
        scaled = terms.with_exponent(exponent, groups.of_draws)
        optimum = scaled.maximize(prior, start)
        start = optimum.bias, optimum.weight
        excess = optimum.temperature - groups.mean
        penalty = (optimum.bias @ optimum.bias + excess @ excess + _PRECISION_OF_EXPONENT * exponent**2) / 2
        return float(penalty - scaled.log_score(optimum.bias, optimum.weight))

    return float(minimize_scalar(loss, bounds=(0.0, _LARGEST_EXPONENT), method="bounded", options={"xatol": 1e-8}).x)
