"""Weights of terms: penalised multinomial logistic regression on cross-fitted terms of rows.

    s_c(x) = b_c + log π_c + Σ_t w_t ℓ_ct(x),    P(c | x) = softmax(s),    w_t = T_g + τ_g d_t  (t in group g)

with b, d ~ N(0, 1) and T_g ~ N(μ_g, 1). For given τ the objective is concave and has one optimum. τ is the smallest of
a grid against which Laplace's evidence is not strong: within a Bayes factor of 10 of the best. The term of a row that
is t draws from one simplex is ℓ ((t + 1)/(t₀ + 1))^-β, t₀ that of a typical row, with β at the optimum under τ = 0; β
is half normal of scale ½, as rows whose labels are told nearly without error do not bound it.

Each row is scored S times, by S fits to random halves of the rows without it, each time with 1/S of its weight.

Newton's method finds the optimum of dense terms, L-BFGS that of sparse ones. In the evidence of sparse terms the
deviations d are taken for independent of each other and of biases and temperatures: minus the Hessian consists of a
block for biases and temperatures, and of a diagonal. By Fischer's inequality the determinant of that matrix is not
below the exact one, so that τ is chosen too small rather than too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import block_diag
from scipy.optimize import minimize, minimize_scalar

from bayesnb.prediction.cross_terms import CrossTerms

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
_STEPS = 100
# Gain of a step, in nats, below which no further step is taken: that one would gain about the square of this gain.
_SMALLEST_GAIN = 1e-8
_SMALLEST_STEP = 1e-10
# The curvature of the objective is at least 1, so that the optimum is not farther away than the gradient is large.
_LBFGS = {"maxiter": 10_000, "maxfun": 20_000, "maxcor": 20, "ftol": 0.0, "gtol": 1e-6}

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
        """Group terms into margins, T ~ N(1, 1), and, if there are any, dependences on parents, T ~ N(½, 1)."""
        mean = np.array([1.0, 0.5]) if dependence.any() else np.ones(1)
        return cls(dependence.astype(int), mean, of_draws)

    @property
    def grid(self) -> tuple[tuple[float, ...], ...]:
        """Values of τ to compare, a tuple of G numbers each, from those that shrink most."""
        return GRID if len(self.mean) == 1 else GRID_OF_TWO

    def collapse(self) -> Groups:
        """Return the groups of terms that are summed within each group: G groups of one term each."""
        n = len(self.mean)
        return Groups(np.arange(n), self.mean, np.bincount(self.index, self.of_draws, n) > 0)


@dataclass(frozen=True, eq=False)
class Prior:
    """Normal prior of C biases and T weights under one τ.

    Parameters
    ----------
    groups : Groups
        Groups of the T terms.
    shrinkage : (G,) array
        τ of each group.
    n_classes : int
        Number of classes, C.
    biased : bool
        Whether classes have a bias; otherwise b = 0.
    """

    groups: Groups
    shrinkage: Float[np.ndarray, "G"]
    n_classes: int
    biased: bool

    @property
    def tau(self) -> Float[np.ndarray, "T"]:
        """(T,) τ of the group of each term."""
        return np.asarray(self.shrinkage[self.groups.index])

    @property
    def mean(self) -> Float[np.ndarray, "P"]:
        """(P,) prior means of the parameters (b, T, d), whose prior variances are 1."""
        return np.concatenate([np.zeros(self.n_classes), self.groups.mean, np.zeros(len(self.groups.index))])

    @property
    def temperatures(self) -> slice:
        """Positions of T among the parameters."""
        return slice(self.n_classes, self.n_classes + len(self.groups.mean))

    @cached_property
    def design(self) -> Float[np.ndarray, "Q P"]:
        """(C + T, P) matrix that maps the parameters (b, T, d) to biases and weights, as `point` does.

        Columns are 0 for b where classes have no bias, and for d_t where τ_g = 0: these parameters are 0 at the
        optimum, and a factor of 1 in the evidence.
        """
        weight = np.hstack([np.eye(len(self.groups.mean))[self.groups.index], np.diag(self.tau)])
        return np.asarray(block_diag(self.biased * np.eye(self.n_classes), weight))

    def point(self, theta: Float[np.ndarray, "P"]) -> Point:
        """Return the biases b (C,) and the weights w = T + τ d (T,) of parameters θ = (b, T, d)."""
        bias, temperature, deviation = np.split(theta, [self.temperatures.start, self.temperatures.stop])
        return self.biased * bias, temperature[self.groups.index] + self.tau * deviation

    def apply_chain_rule(self, gradient: Float[np.ndarray, "Q"]) -> Float[np.ndarray, "P"]:
        """Return the gradient by the parameters (b, T, d), from the gradient by biases and weights."""
        bias, weight = np.split(gradient, [self.n_classes])
        return np.concatenate([self.biased * bias, np.bincount(self.groups.index, weight), self.tau * weight])

    def parameters(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "P"]:
        """Return the parameters (b, T, d) of biases and weights: T is the mean weight of a group; d = 0 where τ = 0."""
        index, tau = self.groups.index, self.tau
        common = np.bincount(index, weight) / np.bincount(index)
        deviation = np.where(tau > 0, weight - common[index], 0.0) / np.where(tau > 0, tau, 1.0)
        return np.concatenate([bias, common, deviation])


@dataclass(frozen=True, eq=False)
class Optimum:
    """Penalised optimum of biases and weights under one τ, with Laplace's approximation around the optimum.

    Parameters
    ----------
    shrinkage : (G,) array
        τ.
    bias, temperature, weight : (C,), (G,) and (T,) arrays
        b, T and w.
    sd, temperature_sd : (T,) and (G,) arrays
        Posterior standard deviations of the weights and temperatures, by Laplace's approximation.
    log_score : float
        Σ_i v_i log P(y_i | x_i).
    log_evidence : float
        Laplace's approximation, up to a constant that all τ share.
    """

    shrinkage: Float[np.ndarray, "G"]
    bias: Float[np.ndarray, "C"]
    temperature: Float[np.ndarray, "G"]
    weight: Float[np.ndarray, "T"]
    sd: Float[np.ndarray, "T"]
    temperature_sd: Float[np.ndarray, "G"]
    log_score: float
    log_evidence: float


def penalized_loss(terms: CrossTerms, prior: Prior, theta: np.ndarray) -> tuple[float, Float[np.ndarray, "P"]]:
    """Compute ½‖θ - prior mean‖² - log score, minus the log posterior up to a constant, and its gradient by θ."""
    deviation, (value, gradient) = theta - prior.mean, terms.log_score(*prior.point(theta))
    return float(deviation @ deviation / 2 - value), deviation - prior.apply_chain_rule(gradient)


def posterior_precision(terms: CrossTerms, prior: Prior, theta: np.ndarray) -> Float[np.ndarray, "P P"]:
    """Compute the Hessian of `penalized_loss` by the parameters θ = (b, T, d), for dense terms."""
    curvature = terms.curvature(*prior.point(theta))
    return np.asarray(prior.design.T @ curvature @ prior.design + np.eye(len(theta)))


def find_parameters(terms: CrossTerms, prior: Prior, start: Point | None = None) -> Float[np.ndarray, "P"]:
    """Find θ = (biases b, temperatures T, deviations d), (P,), that minimises `penalized_loss`.

    The search begins at `start` = (biases, weights), converted to θ, or else at the prior mean. Dense terms take
    Newton's method with halved steps, sparse terms L-BFGS.
    """
    loss, theta = partial(penalized_loss, terms, prior), prior.mean if start is None else prior.parameters(*start)
    if terms.is_sparse:
        return np.asarray(minimize(loss, theta, jac=True, method="L-BFGS-B", options=_LBFGS).x)
    value, gradient = loss(theta)
    for _ in range(_STEPS):
        step, size = -np.linalg.solve(posterior_precision(terms, prior, theta), gradient), 1.0
        gain, after = -gradient @ step, loss(theta + step)
        while after[0] > value + 1e-13 * abs(value) and size > _SMALLEST_STEP:
            size /= 2
            after = loss(theta + size * step)
        theta, (value, gradient) = theta + size * step, after
        if gain < _SMALLEST_GAIN or size <= _SMALLEST_STEP:
            break
    return theta


def maximize(terms: CrossTerms, prior: Prior, start: Point | None = None) -> Optimum:
    """Return the penalised optimum, searched from `start` = (biases, weights), with Laplace's sds and evidence."""
    theta = find_parameters(terms, prior, start)
    (bias, weight), deviation, n_classes = prior.point(theta), theta - prior.mean, prior.n_classes
    temperature, tau, index = theta[prior.temperatures], prior.tau, prior.groups.index
    if terms.is_sparse:
        # The block of biases and temperatures needs the probabilities at the optimum: the scores of the deviations are
        # moved into log P(class).
        common = terms.sum_groups(index)
        rest = terms.scores(bias, weight) - bias - common.values @ temperature
        common = replace(common, log_class=rest)
        block = Prior(prior.groups.collapse(), np.zeros(len(temperature)), n_classes, prior.biased)
        precision = posterior_precision(common, block, block.parameters(bias, temperature))
        by_term = 1 + tau**2 * terms.curvature_by_term(bias, weight)
        temperature_variance = np.diagonal(np.linalg.inv(precision))[prior.temperatures]
        variance = temperature_variance[index] + tau**2 / by_term
        log_determinant = np.linalg.slogdet(precision)[1] + np.log(by_term).sum()
    else:
        precision = posterior_precision(terms, prior, theta)
        covariance, of_weights = np.linalg.inv(precision), prior.design[n_classes:]
        temperature_variance = np.diagonal(covariance)[prior.temperatures]
        variance = ((of_weights @ covariance) * of_weights).sum(axis=1)
        log_determinant = np.linalg.slogdet(precision)[1]
    log_score = terms.log_score(bias, weight)[0]
    return Optimum(
        shrinkage=prior.shrinkage,
        bias=bias,
        temperature=temperature,
        weight=weight,
        sd=np.sqrt(variance),
        temperature_sd=np.sqrt(temperature_variance),
        log_score=log_score,
        log_evidence=log_score - float(deviation @ deviation + log_determinant) / 2,
    )


def held_out_log_losses(terms: CrossTerms, prior: Prior, start: Point) -> Float[np.ndarray, "N"]:
    """Compute the mean log loss of each row over the S fits, under weights that do not know its label.

    Not only are weights fitted to the row: half of the fits that score other rows know its label, too. So weights for
    the row are fitted to the scores of other rows by those fits alone that score the row. Rows which the same fits
    score are held out a quarter at a time; of six splits three are taken together. Halves are stratified, so that the
    proportion of a class in a half tells of the row: log P(its class) is lowered as if the row were not in the data.

    Parameters
    ----------
    terms : CrossTerms
        Terms of rows.
    prior : Prior
        Prior of biases and weights.
    start : (b, w)
        Optimum of all rows, where the search begins.
    """
    fit, losses = terms.fit.reshape(-1, terms.n_rows), np.zeros(terms.n_rows)
    class_weight, row_weight = np.bincount(terms.label, terms.weight), np.bincount(terms.row, terms.weight)
    shift = np.log1p(-row_weight[terms.row] / (class_weight[terms.label] + 1))
    is_label = terms.label[:, None] == np.arange(terms.log_class.shape[1])
    lowered = replace(terms, log_class=terms.log_class + is_label * shift[:, None])
    batches = np.array_split(np.arange(len(fit)), -(-len(fit) // _SPLITS_TOGETHER))
    for splits in batches:
        patterns, pattern_index = np.unique(fit[splits], axis=1, return_inverse=True)
        for k, pattern in enumerate(patterns.T):
            rows = np.flatnonzero(pattern_index == k)
            rows = rows[np.argsort(terms.label[rows], kind="stable")]
            for held_out in (rows[i::_FOLDS] for i in range(min(_FOLDS, len(rows)))):
                others = terms.take(np.flatnonzero(np.isin(terms.fit, pattern) & ~np.isin(terms.row, held_out)))
                if len(others.weight):  # There may be none if rows are two or three, of high weights.
                    others = replace(others, weight=others.weight * (terms.weight.sum() / others.weight.sum()))
                point = prior.point(find_parameters(others, prior, start))
                scored = lowered.take((splits[:, None] * terms.n_rows + held_out).ravel())
                losses[held_out] -= scored.log_proba_of_label(*point).reshape(len(splits), -1).mean(axis=0)
    return losses / len(batches)


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
        prior = Prior(groups, np.asarray(tau, float), terms.log_class.shape[-1], biased)
        optima.append(maximize(scaled, prior, (optima[-1].bias, optima[-1].weight) if optima else None))
    best = max(optimum.log_evidence for optimum in optima)
    chosen = next(k for k, optimum in enumerate(optima) if optimum.log_evidence >= best - _STRONG)
    return optima, chosen, exponent


def _find_exponent(terms: CrossTerms, groups: Groups, *, biased: bool) -> float:
    """Find the exponent β in [0, 2] at the penalised optimum where terms of a group share one weight (τ = 0)."""
    prior = Prior(groups, np.zeros(len(groups.mean)), terms.log_class.shape[-1], biased)
    start: Point | None = None

    def loss(exponent: float) -> float:
        """Return the penalised loss at an exponent, minimised over biases and weights; store them as the next start."""
        nonlocal start
        optimum = maximize(terms.with_exponent(exponent, groups.of_draws), prior, start)
        start = optimum.bias, optimum.weight
        excess = optimum.temperature - groups.mean
        penalty = (optimum.bias @ optimum.bias + excess @ excess + _PRECISION_OF_EXPONENT * exponent**2) / 2
        return float(penalty - optimum.log_score)

    return float(minimize_scalar(loss, bounds=(0.0, _LARGEST_EXPONENT), method="bounded", options={"xatol": 1e-8}).x)
