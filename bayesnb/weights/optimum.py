"""Weights of terms: penalised multinomial logistic regression on cross-fitted terms of rows.

    s_c(x) = b_c + log π_c + Σ_t w_t ℓ_ct(x),    P(c | x) = softmax(s),    w_t = T_g + τ_g d_t  (t in group g)

with b, d ~ N(0, 1) and T_g ~ N(μ_g, 1). For given τ the objective is concave and has one optimum. τ is the smallest of
a grid against which Laplace's evidence is not strong: within a Bayes factor of 10 of the best. The term of a row that
is t draws from one simplex is ℓ ((t + 1)/(t₀ + 1))^-β, t₀ that of a typical row, with β at the optimum under τ = 0; β
is half normal of scale ½, as rows whose labels are told nearly without error do not bound it.

Each row is scored S times, by S fits to random halves of the rows without it, each time with 1/S of its weight.

BFGS finds the optimum of dense terms, from Hessians that are computed rarely, and one step of Newton's method ends it;
L-BFGS finds that of sparse terms. In the evidence of sparse terms the
deviations d are taken for independent of each other and of biases and temperatures: minus the Hessian consists of a
block for biases and temperatures, and of a diagonal. By Fischer's inequality the determinant of that matrix is not
below the exact one, so that τ is chosen too small rather than too large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import minimize, minimize_scalar

from bayesnb.weights.halves import class_of_units
from bayesnb.weights.terms import CrossTerms

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
# Gains of a step in nats: above the first the Hessian has changed much, below the others no further step is taken.
_LARGE_GAIN, _SMALL_GAIN, _SMALL_GAIN_OF_LARGE_REFIT = 30.0, 1e-9, 1e-2
# Pairs of points over which a log score is averaged, and rise of the bound for which a distribution becomes narrower.
_POINTS, _SMALL_RISE = 16, 1.0
_ERROR_OF_MODEL = 1.5
"""Error of the evidence by the quadratic model, in nats, that is allowed for."""
_CELLS_AT_ONCE = 2**18
# The curvature of the objective is at least 1, so that the optimum is not farther away than the gradient is large.
_LBFGS = {"maxiter": 10_000, "maxfun": 20_000, "maxcor": 20, "ftol": 0.0, "gtol": 1e-6}

Point = tuple[np.ndarray, np.ndarray]
"""Biases (C,) and weights (T,)."""
Losses = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Function of R parameters (R, P) to R losses and their gradients (R, P)."""


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
    n_experts : int
        Number of the last groups that are an expert each, whose weight is its temperature: τ = 0.
    """

    index: Int[np.ndarray, "T"]
    mean: Float[np.ndarray, "G"]
    of_draws: Bool[np.ndarray, "T"]
    n_experts: int = 0

    @classmethod
    def from_dependence(cls, dependence: Bool[np.ndarray, "T"], of_draws: Bool[np.ndarray, "T"]) -> Groups:
        """Group terms into margins, T ~ N(1, 1), and, if there are any, dependences on parents, T ~ N(½, 1)."""
        mean = np.array([1.0, 0.5]) if dependence.any() else np.ones(1)
        return cls(dependence.astype(int), mean, of_draws)

    @property
    def grid(self) -> tuple[tuple[float, ...], ...]:
        """Values of τ to compare, a tuple of G numbers each, from those that shrink most."""
        grid: tuple[tuple[float, ...], ...] = GRID if self.n_groups == 1 else GRID_OF_TWO
        return tuple((*tau, *[0.0] * self.n_experts) for tau in grid)

    @property
    def n_groups(self) -> int:
        """Number of groups without those of experts."""
        return len(self.mean) - self.n_experts

    def with_experts(self, n: int) -> Groups:
        """Return the groups with n more, one for each expert, T ~ N(½, 1); no term depends on the length of rows."""
        index = np.append(self.index, len(self.mean) + np.arange(n))
        return Groups(index, np.append(self.mean, np.full(n, 0.5)), np.zeros(len(index), bool), n)

    def collapse(self) -> Groups:
        """Return the groups of terms that are summed within each group: G groups of one term each."""
        n = len(self.mean)
        return Groups(np.arange(n), self.mean, np.bincount(self.index, self.of_draws, n) > 0)


@dataclass(frozen=True, eq=False)
class WeightPrior:
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

    def design(self, of_bias: Float[np.ndarray, "D C"]) -> Float[np.ndarray, "Q P"]:
        """Return the (D + T, P) matrix that maps the parameters (b, T, d) to `of_bias` @ b and to the weights.

        Columns are 0 for b where classes have no bias, and for d_t where τ_g = 0: these parameters are 0 at the
        optimum, and a factor of 1 in the evidence.
        """
        n_classes, term = self.n_classes, np.arange(len(self.groups.index))
        design = np.zeros((len(of_bias) + len(term), self.temperatures.stop + len(term)))
        design[: len(of_bias), :n_classes] = self.biased * of_bias
        design[len(of_bias) + term, n_classes + self.groups.index] = 1.0
        design[len(of_bias) + term, self.temperatures.stop + term] = self.tau
        return design

    def point(self, theta: Float[np.ndarray, "P"]) -> Point:
        """Return the biases b (C,) and the weights w = T + τ d (T,) of parameters θ = (b, T, d)."""
        bias, temperature, deviation = np.split(theta, [self.temperatures.start, self.temperatures.stop])
        return self.biased * bias, temperature[self.groups.index] + self.tau * deviation

    def apply_chain_rule(self, gradient: Float[np.ndarray, "Q"]) -> Float[np.ndarray, "P"]:
        """Return the gradient by the parameters (b, T, d), from the gradient by biases and weights."""
        bias, weight = np.split(gradient, [self.n_classes])
        return np.concatenate([self.biased * bias, np.bincount(self.groups.index, weight), self.tau * weight])

    def penalize(self, log_score: Callable[[np.ndarray], tuple[np.ndarray, ...]], of_bias: np.ndarray) -> Losses:
        """Return the function of R parameters θ (R, P) to the R losses ½‖θ - mean‖² - log score, and their gradients.

        `log_score` is a function of points (D + T, R), `of_bias` @ b and w, to R log scores and their gradients.
        """
        design, mean = self.design(of_bias), self.mean

        def losses(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            (value, slope, *_), excess = log_score(design @ theta.T), theta - mean
            return (excess**2).sum(axis=1) / 2 - value, excess - slope.T @ design

        return losses

    def parameters(
        self, bias: np.ndarray, weight: np.ndarray, temperature: np.ndarray | None = None
    ) -> Float[np.ndarray, "P"]:
        """Return the parameters (b, T, d) of biases and weights; d = 0 where τ = 0.

        T (G,) is by default the mean weight of each group.
        """
        index, tau = self.groups.index, self.tau
        common = np.bincount(index, weight) / np.bincount(index) if temperature is None else temperature
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
    covariance : (C + T, C + T) or (C + G, C + G) array
        Posterior covariance of b and w; of sparse terms that of b and T, since deviations are taken for independent.
    """

    shrinkage: Float[np.ndarray, "G"]
    bias: Float[np.ndarray, "C"]
    temperature: Float[np.ndarray, "G"]
    weight: Float[np.ndarray, "T"]
    sd: Float[np.ndarray, "T"]
    temperature_sd: Float[np.ndarray, "G"]
    log_score: float
    log_evidence: float
    covariance: Float[np.ndarray, "Q Q"]


@dataclass(frozen=True, eq=False)
class Expansion:
    """Quadratic model of the log score of dense terms around a point, and the posterior under a normal prior.

    Parameters
    ----------
    of_bias : (D, C) array
        Contrasts of biases.
    point : (D + T,) array
        Contrasts of the biases, and weights.
    log_score, slope, curvature : float, (D + T,) and (D + T, D + T) arrays
        Σ_i v_i log P(y_i | x_i), its gradient, and minus its Hessian at the point.
    """

    of_bias: Float[np.ndarray, "D C"]
    point: Float[np.ndarray, "Q"]
    log_score: float
    slope: Float[np.ndarray, "Q"]
    curvature: Float[np.ndarray, "Q Q"]

    @classmethod
    def around(cls, terms: CrossTerms, bias: np.ndarray, weight: np.ndarray) -> Self:
        """Expand the log score of dense terms around biases (C,) and weights (T,)."""
        contrasts = terms.contrasts
        point = np.concatenate([contrasts.of_bias @ bias, weight])
        log_score, slope, proba = contrasts.log_score(point[:, None])
        return cls(contrasts.of_bias, point, float(log_score[0]), slope[:, 0], contrasts.curvature(proba[..., 0]))

    def posterior(self, prior: WeightPrior) -> tuple[Float[np.ndarray, "P"], Float[np.ndarray, "P P"]]:
        """Compute mean and covariance of the parameters (b, T, d) under this model of the log score and a prior."""
        design = prior.design(self.of_bias)
        covariance = np.linalg.inv(design.T @ self.curvature @ design + np.eye(design.shape[1]))
        theta = covariance @ (prior.mean + (self.slope + self.curvature @ self.point) @ design)
        return theta, np.asarray(covariance)

    def find_optimum(self, prior: WeightPrior) -> Optimum:
        """Return the optimum of this model of the log score under a prior, with Laplace's sds and evidence."""
        (theta, covariance), design = self.posterior(prior), prior.design(self.of_bias)
        (bias, weight), deviation, n_classes = prior.point(theta), theta - prior.mean, prior.n_classes
        step = design @ theta - self.point
        log_score = float(self.log_score + self.slope @ step - step @ self.curvature @ step / 2)
        into = prior.design(np.eye(n_classes))
        of_point = into @ covariance @ into.T
        sd = np.sqrt(np.diagonal(of_point)[n_classes:])
        temperature_sd = np.sqrt(np.diagonal(covariance)[prior.temperatures])
        log_evidence = log_score - float(deviation @ deviation - np.linalg.slogdet(covariance)[1]) / 2
        temperature = theta[prior.temperatures]
        return Optimum(
            prior.shrinkage, bias, temperature, weight, sd, temperature_sd, log_score, log_evidence, of_point
        )


def find_parameters(
    terms: CrossTerms, prior: WeightPrior, start: Point | Expansion | None = None
) -> Float[np.ndarray, "P"]:
    """Find θ = (biases b, temperatures T, deviations d), (P,), that minimises ½‖θ - prior mean‖² - log score.

    The search begins at `start` = (biases, weights), converted to θ, or at the optimum of an expansion around another
    point, or else at the prior mean. Sparse terms take L-BFGS. Dense terms take BFGS, with the Hessian of the expansion
    or else a new one, and with new ones after steps that gain much.
    """
    mean = prior.mean
    theta = mean if start is None or isinstance(start, Expansion) else prior.parameters(*start)
    if terms.is_sparse:

        def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
            excess, (value, slope) = theta - mean, terms.log_score(*prior.point(theta))
            return float(excess @ excess / 2 - value), excess - prior.apply_chain_rule(slope)

        return np.asarray(minimize(loss, theta, jac=True, method="L-BFGS-B", options=_LBFGS).x)

    def invert(theta: np.ndarray) -> np.ndarray:
        return Expansion.around(terms, *prior.point(theta)).posterior(prior)[1]

    theta, inverse = start.posterior(prior) if isinstance(start, Expansion) else (theta, invert(theta))
    losses = prior.penalize(terms.contrasts.log_score, terms.contrasts.of_bias)
    return _minimize(losses, theta[None], inverse[None], _SMALL_GAIN, invert)[0]


def _minimize(
    losses: Losses, theta: np.ndarray, inverse: np.ndarray, small_gain: float, invert: Any = None
) -> Float[np.ndarray, "R P"]:
    """Minimise R functions of P parameters at once by BFGS, until steps gain less than `small_gain`.

    BFGS starts at `theta` (R, P) with inverse Hessians (R, P, P), which are overwritten. `invert`, for R = 1, computes
    the inverse Hessian at new parameters after steps of large gain. The last step is taken without a look at the loss.
    """
    (value, gradient), size = losses(theta), np.ones(len(theta))
    for _ in range(_STEPS):
        step = -size[:, None] * (inverse @ gradient[..., None])[..., 0]
        gain = -(step * gradient).sum(axis=1) / size
        if gain.max() < small_gain:
            return np.asarray(theta + step)
        after, gradient_after = losses(theta + step)
        is_better = after <= value + small_gain / 10 + 1e-12 * np.abs(value)
        size = np.where(is_better, 1.0, size / 4)
        step, bend = step * is_better[:, None], (gradient_after - gradient) * is_better[:, None]
        theta, value, gradient = theta + step, np.where(is_better, after, value), gradient + bend
        if invert and is_better and gain > _LARGE_GAIN:
            inverse = invert(theta[0])[None]
            continue
        # Without a step, or without curvature beyond rounding, the inverse stays as it is.
        product, curved = (inverse @ bend[..., None])[..., 0], (step * bend).sum(axis=1)
        is_curved = curved > 1e-10 * (bend * bend).sum(axis=1)
        scaled = step * (is_curved / np.where(is_curved, curved, 1.0))[:, None]
        mixed = scaled[:, :, None] * product[:, None]
        factor = curved + (bend * product).sum(axis=1)
        inverse += (factor[:, None] * scaled)[:, :, None] * scaled[:, None] - mixed - mixed.swapaxes(1, 2)
    return theta


def maximize(terms: CrossTerms, prior: WeightPrior, start: Point | None = None) -> Optimum:
    """Return the penalised optimum, searched as `find_parameters` does, with Laplace's sds and evidence."""
    theta = find_parameters(terms, prior, start)
    (bias, weight), deviation = prior.point(theta), theta - prior.mean
    if not terms.is_sparse:
        return Expansion.around(terms, bias, weight).find_optimum(prior)
    temperature, tau, index = theta[prior.temperatures], prior.tau, prior.groups.index
    # The block of biases and temperatures needs the probabilities at the optimum: the scores of the deviations are
    # moved into log P(class).
    common = terms.sum_groups(index)
    rest = terms.scores(bias, weight) - bias - common.values @ temperature
    block = WeightPrior(prior.groups.collapse(), np.zeros(len(temperature)), prior.n_classes, prior.biased)
    model = Expansion.around(replace(common, log_class=rest), bias, temperature)
    covariance = model.posterior(block)[1]
    by_term = 1 + tau**2 * terms.curvature_by_term(bias, weight)
    variance = np.diagonal(covariance)[prior.temperatures]
    sd, temperature_sd = np.sqrt(variance[index] + tau**2 / by_term), np.sqrt(variance)
    log_determinant = np.log(by_term).sum() - np.linalg.slogdet(covariance)[1]
    log_evidence = model.log_score - float(deviation @ deviation + log_determinant) / 2
    into = block.design(np.eye(block.n_classes))
    of_block = into @ covariance @ into.T
    sds = sd, temperature_sd
    return Optimum(prior.shrinkage, bias, temperature, weight, *sds, model.log_score, log_evidence, of_block)


def approximate_posterior(
    terms: CrossTerms, prior: WeightPrior, point: Point, temperature: Float[np.ndarray, "G"]
) -> tuple[Float[np.ndarray, "Q Q"], float]:
    """Compute the covariance of a normal distribution around the optimum that is near the posterior, and its evidence.

    Where terms predict the labels nearly without error, the curvature at the optimum is nearly 0, although the log
    score falls steeply not far away: Laplace's normal distribution is too wide, and its evidence too large. So its
    covariance is halved as long as a lower bound of the evidence rises by a nat: that by the expected log score, an
    average over a few points less the error that it has for the quadratic model at the optimum.

    Of sparse terms the approximation is Laplace's.

    Parameters
    ----------
    terms : CrossTerms
        Terms of rows.
    prior : WeightPrior
        Prior of biases and weights.
    point : (b, w)
        Optimum under this prior.
    temperature : (G,) array
        T at the optimum.

    Returns
    -------
    covariance : (C + T, C + T) or (C + G, C + G) array
        Covariance of b and w; of sparse terms of b and T, from which the deviations are independent.
    log_evidence : float
        Up to a constant that all τ share.

    References
    ----------
    Opper & Archambeau, *The variational Gaussian approximation revisited*, Neural Computation 21 (2009), for the bound.
    """
    if terms.is_sparse:
        optimum = maximize(terms, prior, point)
        return optimum.covariance, optimum.log_evidence
    model = Expansion.around(terms, *point)
    design, into = prior.design(model.of_bias), prior.design(np.eye(prior.n_classes))
    used = np.flatnonzero(design.any(axis=0))  # The other parameters are 0, and have their prior distribution.
    design, into, covariance = design[:, used], into[:, used], model.posterior(prior)[1][used[:, None], used]
    precision = np.eye(len(used)) + design.T @ model.curvature @ design
    excess = (prior.parameters(*point, temperature) - prior.mean)[used]
    normal, bound = np.random.default_rng(0).standard_normal((len(used), _POINTS)), -np.inf
    while True:
        step = design @ np.linalg.cholesky(covariance) @ np.hstack([normal, -normal])
        log_score = terms.contrasts.log_score(model.point[:, None] + step)[0].mean()
        error = log_score - model.log_score + (step * (model.curvature @ step)).sum() / (2 * step.shape[1])
        divergence = np.trace(precision @ covariance) - len(used) - np.linalg.slogdet(covariance)[1]
        before, bound = bound, float(model.log_score + error - (excess @ excess + divergence) / 2)
        if bound < before + _SMALL_RISE:
            return into @ (2 * covariance) @ into.T, before
        covariance = covariance / 2


def held_out_log_losses(
    terms: CrossTerms, prior: WeightPrior, start: Point, unit: Int[np.ndarray, "N"]
) -> Float[np.ndarray, "N"]:
    """Compute the mean log loss of each row over the S fits, under weights that do not know its label.

    Not only are weights fitted to the row: half of the fits that score other rows know its label, too. So weights for
    the row are fitted to the scores of other rows by those fits alone that score the row. Units which the same fits
    score are held out a quarter at a time; of six splits three are taken together. Halves are stratified, so that the
    proportion of a class in a half tells of the row: log P(its class) is lowered as if the rows of the class in the
    unit of the row were not in the data.

    Weights of dense terms are found to 1e-9 nats of the penalised log score, or .01 where terms are many.

    Parameters
    ----------
    terms : CrossTerms
        Terms of rows.
    prior : WeightPrior
        Prior of biases and weights.
    start : (b, w)
        Optimum of all rows, where the search begins.
    unit : (N,) int array
        Index of the unit of each row, from 0 on. Rows of a unit are scored by the same fits.
    """
    fit, n_rows = terms.fit.reshape(-1, terms.n_rows), terms.n_rows
    label, log_proba = terms.label[:n_rows], np.empty(fit.shape)
    first = np.unique(unit, return_index=True)[1]
    stratum = class_of_units(label, unit)
    for splits in np.array_split(np.arange(len(fit)), -(-len(fit) // _SPLITS_TOGETHER)):
        pattern = (1 << np.arange(len(splits))) @ (fit[splits[:, None], first] % 2)
        order, rank = np.lexsort([stratum, pattern]), np.empty(len(first), int)
        rank[order] = np.arange(len(first)) - np.searchsorted(pattern[order], pattern[order])
        refit = np.unique(_FOLDS * pattern + rank % _FOLDS, return_inverse=True)[1][unit]
        scored = splits[:, None] * n_rows + np.arange(n_rows)
        if not terms.is_sparse:
            log_proba[splits] = _refit(terms, prior, start, scored.ravel(), refit).reshape(scored.shape)
            continue
        for r in range(refit.max() + 1):
            rows = np.flatnonzero(refit == r)
            others = terms.take(np.flatnonzero(np.isin(terms.fit, fit[splits, rows[0]]) & (refit[terms.row] != r)))
            if len(others.weight):  # There may be none if rows are two or three, of high weights.
                others = replace(others, weight=others.weight * (terms.weight.sum() / others.weight.sum()))
            point = prior.point(find_parameters(others, prior, start))
            held_out = terms.take(scored[:, rows].ravel()).log_proba_of_label(*point)
            log_proba[splits[:, None], rows] = held_out.reshape(len(splits), -1)
    together = np.unique(unit * (label.max() + 1) + label, return_inverse=True)[1]
    total = (np.bincount(terms.label, terms.weight) + 1)[label]
    part = np.bincount(together[terms.row], terms.weight)[together] / total
    return np.asarray((np.log1p(-part * np.exp(log_proba)) - np.log1p(-part) - log_proba).mean(axis=0))


def _refit(
    terms: CrossTerms, prior: WeightPrior, start: Point, scored: Int[np.ndarray, "n"], refit: Int[np.ndarray, "N"]
) -> Float[np.ndarray, "n"]:
    """Compute log P(label | row) of scored rows with dense terms, from R refits at once to the other rows.

    `refit` is the refit that each row is held out from: one to the other rows, by the fits that score the row.
    """
    contrasts, n_refits = terms.contrasts, refit.max() + 1
    is_large = terms.are_many
    parts, total = [], np.zeros(n_refits)
    for k in np.unique(terms.fit[scored]):
        of_fit = np.flatnonzero(terms.fit[scored] == k)
        # A fit is in the refits that the rows which it scores are held out from.
        refits, own = np.unique(refit[terms.row[scored[of_fit]]], return_inverse=True)
        n_parts = 1 + len(own) * len(refits) * len(contrasts.base) // _CELLS_AT_ONCE
        for at, column in zip(np.array_split(of_fit, n_parts), np.array_split(own, n_parts), strict=True):
            weight = terms.weight[scored[at], None] * (column[:, None] != np.arange(len(refits)))
            total[refits] += weight.sum(axis=0)
            part = contrasts.take(scored[at], weight, np.float32 if is_large else np.float64)
            parts.append((refits, part, at, column))
    scale = terms.weight.sum() / np.maximum(total, 1e-300)

    def log_score(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, slopes = np.zeros(n_refits), np.zeros_like(points)
        for refits, part, *_ in parts:
            value, slope, _ = part.log_score(points[:, refits])
            values[refits] += value
            slopes[:, refits] += slope
        return scale * values, scale * slopes

    theta, inverse = prior.parameters(*start)[None], Expansion.around(terms, *start).posterior(prior)[1][None]
    theta, inverse = (np.repeat(array, n_refits, axis=0) for array in (theta, inverse))
    small_gain = _SMALL_GAIN_OF_LARGE_REFIT if is_large else _SMALL_GAIN
    theta = _minimize(prior.penalize(log_score, contrasts.of_bias), theta, inverse, small_gain)
    log_proba, points = np.empty(len(scored)), prior.design(contrasts.of_bias) @ theta.T
    for refits, part, at, column in parts:
        log_proba[at] = part.probabilities(points[:, refits])[1][np.arange(len(at)), column]
    return log_proba


def optimize_weights(
    terms: CrossTerms, groups: Groups, grid: Sequence[Sequence[float]], *, biased: bool, start: Any = None
) -> tuple[list[Optimum], int, float]:
    """Find the penalised optimum of biases and weights under each τ of a grid, and choose τ by the evidence.

    Where dense terms are many (2^17 values or more), the optimum under the largest τ is computed, and the others that
    may be the best or the chosen one; for those that are clearly worse `optima` has the optimum of a quadratic model of
    the log score around the nearest optimum that was computed.

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
    start : (biases, weights, index of τ), optional
        Optimum of similar terms, and its position in `grid`, where the search begins. Default: the prior mean and the
        middle of the grid.

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
    scaled, n_classes = terms.with_exponent(exponent, groups.of_draws), terms.log_class.shape[-1]
    priors = [WeightPrior(groups, np.asarray(tau, float), n_classes, biased) for tau in grid]
    if terms.is_sparse:
        optima = list[Optimum]()
        for prior in priors:
            optima.append(maximize(scaled, prior, (optima[-1].bias, optima[-1].weight) if optima else None))
    else:
        *point, first = start or (len(grid) // 2,)
        optima = _compare(scaled, priors, tuple(point) or None, first)
    evidence = np.array([optimum.log_evidence for optimum in optima])
    return optima, int(np.argmax(evidence >= evidence.max() - _STRONG)), exponent


def _compare(terms: CrossTerms, priors: Sequence[WeightPrior], start: Point | None, first: int) -> list[Optimum]:
    """Return optima of dense terms under each of K priors, the first one searched from `start`.

    Few terms: all optima are computed. Many terms: the last one, and those that a quadratic model around the nearest
    of the others takes for the best, or for possible choices.
    """
    models: dict[int, Expansion] = {}

    def nearest(k: int) -> int:
        return min(models, key=lambda other: abs(other - k))

    @cache
    def expect(k: int, center: int) -> Optimum:
        return models[center].find_optimum(priors[k])

    is_large, last = terms.are_many, len(priors) - 1
    missing = [first, last] if is_large else sorted(range(len(priors)), key=lambda k: abs(k - first))
    while missing:
        for k in missing:
            theta = find_parameters(terms, priors[k], models[nearest(k)] if models else start)
            models[k] = Expansion.around(terms, *priors[k].point(theta))
        optima = [expect(k, nearest(k)) for k in range(len(priors))]
        evidence = np.array([optimum.log_evidence for optimum in optima])
        possible = np.flatnonzero(evidence >= evidence.max() - _STRONG - _ERROR_OF_MODEL)
        missing = [k for k in (int(evidence.argmax()), *possible) if k not in models][:1]
    return optima


def _find_exponent(terms: CrossTerms, groups: Groups, *, biased: bool) -> float:
    """Find the exponent β in [0, 2] at the penalised optimum where terms of a group share one weight (τ = 0)."""
    prior = WeightPrior(groups, np.zeros(len(groups.mean)), terms.log_class.shape[-1], biased)
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
