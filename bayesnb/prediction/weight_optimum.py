"""Weights of terms: penalised multinomial logistic regression on the terms of rows, by fits that do not know the rows.

    s_c(x) = b_c + log π_c + Σ_t w_t ℓ_ct(x),    P(c | x) = softmax(s),    w_t = T_g + τ_g d_t  (t in group g)

with b, d ~ N(0, 1) and T_g ~ N(μ_g, 1). For given τ the objective is concave, and Newton's method finds the one
optimum. τ is the smallest of a grid against which Laplace's evidence is not strong: within a Bayes factor of 10 of the
best. The term of a row that is t draws from one simplex is ℓ ((t + 1)/t₀)^-β, t₀ that of a typical row, with β at the
optimum under τ = 0; β is half normal of scale ½, as rows whose labels are told nearly without error do not bound it.

Each row is scored S times, by S fits to random halves of the other rows, with S-th parts of its weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Num
from scipy.special import log_softmax, logsumexp

GRID = ((0.0,), (0.03,), (0.1,), (0.3,), (1.0,))
GRID_OF_TWO = (
    (0.0, 0.0), (0.03, 0.0), (0.03, 0.03), (0.1, 0.0), (0.1, 0.03), (0.1, 0.1),
    (0.3, 0.0), (0.3, 0.1), (0.3, 0.3), (1.0, 0.1), (1.0, 0.3), (1.0, 1.0),
)  # fmt: skip
"""τ of one group of terms, and of two, margins and dependences, from those that shrink most."""
_STRONG = np.log(10.0)  # Jeffreys; the best τ alone is chosen by a nat or two where few rows are hard to tell
_PRECISION_OF_EXPONENT = 4.0
_LARGEST_EXPONENT = 2.0
_STEPS = 100
_DECREMENT = 1e-8  # of the log score, by a step; the next one, which is not taken, would be of the order of its square
_SMALLEST_STEP = 1e-10
_CELLS_IN_CACHE = 2**17


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
class CrossTerms:
    """Terms of N rows, each by S fits that do not know the row.

    Parameters
    ----------
    values : (S, N, C, T) array
        log p(x_t | class) in nats.
    log_class : (S, N, C) array
        log P(class).
    log_length : (N,) array
        log((t + 1)/(t₀ + 1)) of a row that is t draws from one simplex, t₀ a typical one; else 0.
    label : (N,) int array
        Index of the class.
    weight : (N,) array
        Replication counts.
    """

    values: Float[np.ndarray, "S N C T"]
    log_class: Float[np.ndarray, "S N C"]
    log_length: Float[np.ndarray, "N"]
    label: Int[np.ndarray, "N"]
    weight: Num[np.ndarray, "N"]

    def with_exponent(self, exponent: float, of_draws: np.ndarray) -> CrossTerms:
        """Multiply terms of draws by ((t + 1)/t₀)^-β."""
        if not exponent:
            return self
        power = np.where(of_draws, np.exp(-exponent * self.log_length)[:, None], 1.0)
        return replace(self, values=self.values * power[:, None])

    def averaged(self) -> CrossTerms:
        """Replace terms, each of a model, by the logarithm of their models' mean probability."""
        n_terms = self.values.shape[-1]
        return replace(self, values=logsumexp(self.values, axis=-1, keepdims=True) - np.log(n_terms))

    def take(self, rows: np.ndarray) -> CrossTerms:
        """Return the terms of some of the rows."""
        each = self.log_length[rows], self.label[rows], self.weight[rows]
        return CrossTerms(self.values[:, rows], self.log_class[:, rows], *each)

    def blocks(self) -> Iterator[CrossTerms]:
        """Yield blocks of rows whose terms fit into a processor's cache."""
        n_splits, n_rows, n_classes, n_terms = self.values.shape
        size = max(1, _CELLS_IN_CACHE // max(1, n_splits * n_classes * n_terms))
        for start in range(0, n_rows, size):
            yield self.take(slice(start, start + size))  # type: ignore[arg-type]


class Slopes(NamedTuple):
    """The log score Σ_i v_i log P(y_i | x_i) at (b, w), its gradient (C + T,) and minus its Hessian (C + T, C + T)."""

    value: float
    gradient: np.ndarray
    hessian: np.ndarray


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
    into : (C + T, P) array
        (b, w) as a linear function of the P free parameters, of (b, T, d): no b without biases, d_t where τ_g > 0.
    covariance : (P, P) array
        Of the free parameters: the inverse of minus the Hessian of the penalised log score.
    """

    shrinkage: Float[np.ndarray, "G"]
    bias: Float[np.ndarray, "C"]
    temperature: Float[np.ndarray, "G"]
    weight: Float[np.ndarray, "T"]
    sd: Float[np.ndarray, "T"]
    temperature_sd: Float[np.ndarray, "G"]
    log_evidence: float
    into: Float[np.ndarray, "C_T P"]
    covariance: Float[np.ndarray, "P P"]


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
        start = (found[-1].bias, found[-1].weight) if found else None
        found.append(maximize(scaled, groups, np.asarray(tau, float), biased=biased, start=start))
    best = max(one.log_evidence for one in found)
    return found, next(k for k, one in enumerate(found) if one.log_evidence >= best - _STRONG), exponent


def maximize(
    terms: CrossTerms,
    groups: Groups,
    tau: np.ndarray,
    *,
    biased: bool,
    start: tuple[np.ndarray, np.ndarray] | None = None,
) -> Optimum:
    """Find the optimum under one τ by Newton's method, with steps that are halved until the objective rises.

    Parameters
    ----------
    terms, groups, biased
        As for `fit_weights`.
    tau : (G,) array
    start : (b, w), optional
        Where to begin; default: b = 0 and w = μ.
    """
    n_classes, of_terms = terms.values.shape[2], groups.of_terms
    n_groups = len(groups.mean)
    each = np.eye(n_classes + len(of_terms))
    common = np.concatenate([np.zeros((n_classes, n_groups)), np.eye(n_groups)[of_terms]])
    deviations = each[:, n_classes:] * tau[of_terms]
    into = np.hstack([each[:, : n_classes * biased], common, deviations[:, tau[of_terms] > 0]])
    prior_mean = np.zeros(into.shape[1])
    temperatures = slice(n_classes * biased, n_classes * biased + n_groups)
    prior_mean[temperatures] = groups.mean

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the penalised log score, its gradient and minus its Hessian."""
        at, away = into @ theta, theta - prior_mean
        value, gradient, hessian = slopes(terms, at[:n_classes], at[n_classes:])
        return float(value - away @ away / 2), into.T @ gradient - away, into.T @ hessian @ into + np.eye(len(theta))

    theta = prior_mean if start is None else np.linalg.lstsq(into, np.concatenate(start), rcond=None)[0]
    objective, gradient, precision = evaluate(theta)
    for _ in range(_STEPS):
        step, size = np.linalg.solve(precision, gradient), 1.0
        after = evaluate(theta + step)
        while after[0] < objective - 1e-13 * abs(objective) and size > _SMALLEST_STEP:
            size /= 2
            after = evaluate(theta + size * step)
        if size <= _SMALLEST_STEP:
            break
        decrement, theta = float(gradient @ step), theta + size * step
        objective, gradient, precision = after
        if decrement < _DECREMENT:
            break
    at, covariance = into @ theta, np.linalg.inv(precision)
    return Optimum(
        shrinkage=tau,
        bias=at[:n_classes],
        temperature=theta[temperatures],
        weight=at[n_classes:],
        sd=np.sqrt(np.einsum("tp,pq,tq->t", into[n_classes:], covariance, into[n_classes:])),
        temperature_sd=np.sqrt(np.diagonal(covariance)[temperatures]),
        log_evidence=float(objective - np.linalg.slogdet(precision)[1] / 2),
        into=into,
        covariance=covariance,
    )


def _exponent(terms: CrossTerms, groups: Groups, *, biased: bool) -> float:
    """Find β at the optimum under common temperatures."""
    from scipy.optimize import minimize_scalar

    start: tuple[np.ndarray, np.ndarray] | None = None

    def loss(exponent: float) -> float:
        nonlocal start
        scaled, tau = terms.with_exponent(exponent, groups.of_draws), np.zeros(len(groups.mean))
        found = maximize(scaled, groups, tau, biased=biased, start=start)
        start = found.bias, found.weight
        away = found.temperature - groups.mean
        penalty = (found.bias @ found.bias + away @ away + _PRECISION_OF_EXPONENT * exponent**2) / 2
        return penalty - _log_score(scaled, found.bias, found.weight)

    return float(minimize_scalar(loss, bounds=(0.0, _LARGEST_EXPONENT), method="bounded", options={"xatol": 1e-8}).x)


def slopes(terms: CrossTerms, bias: np.ndarray, weight: np.ndarray) -> Slopes:
    """Compute the log score at (b, w), and its first and second derivatives."""
    n_classes, n_terms = terms.values.shape[2:]
    value, gradient = 0.0, np.zeros(n_classes + n_terms)
    hessian = np.zeros((n_classes + n_terms, n_classes + n_terms))
    for block in terms.blocks():
        values = block.values.reshape(-1, n_classes, n_terms)
        label, row_weight = _repeated(block)
        log_proba = log_softmax(_scores(block, bias, weight), axis=-1).reshape(-1, n_classes)
        own, proba = label[:, None] == np.arange(n_classes), np.exp(log_proba)
        value += float(row_weight @ log_proba[own])
        rest, mass = row_weight[:, None] * (own - proba), row_weight[:, None] * proba
        gradient += np.concatenate([rest.sum(axis=0), rest.ravel() @ values.reshape(-1, n_terms)])
        # Covariances under P(c | x) of the indicators of the classes and of the terms.
        centered = values - np.einsum("nc,nct->nt", proba, values)[:, None]
        root = (np.sqrt(mass)[..., None] * centered).reshape(-1, n_terms)
        mixed = np.einsum("nc,nct->ct", mass, centered)
        hessian[:n_classes, :n_classes] += np.diag(mass.sum(axis=0)) - mass.T @ proba
        hessian[:n_classes, n_classes:] += mixed
        hessian[n_classes:, :n_classes] += mixed.T
        hessian[n_classes:, n_classes:] += root.T @ root
    return Slopes(value, gradient, hessian)


def log_losses(terms: CrossTerms, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "N"]:
    """Compute (N,) -log P(label | row) at (b, w), averaged over the fits."""
    return _of_label(log_softmax(_scores(terms, bias, weight), axis=-1), terms.label)


def corrected_log_losses(terms: CrossTerms, optimum: Optimum) -> Float[np.ndarray, "N"]:
    r"""Compute (N,) the log loss of each row under weights that do not know its label, by one Newton step.

    With A the (S·C, P) design of a row, G = A H⁻¹ Aᵀ and W = v (diag p - p pᵀ) of its scores, v the row's weight over
    S, the scores without the row are s - G (I - W G)⁻¹ v (e_y - p).

    Parameters
    ----------
    terms : CrossTerms
        As they were fitted, lengths included.
    optimum : Optimum
    """
    n_splits, _, n_classes, _ = terms.values.shape
    size, found = n_splits * n_classes, []
    for block in terms.blocks():
        values, n_rows = np.moveaxis(block.values, 0, 1), len(block.label)
        classes = np.broadcast_to(np.eye(n_classes), (n_rows, n_splits, n_classes, n_classes))
        design = (np.concatenate([classes, values], axis=-1) @ optimum.into).reshape(n_rows, size, -1)
        spread = design @ optimum.covariance @ design.swapaxes(1, 2)
        scores = np.moveaxis(_scores(block, optimum.bias, optimum.weight), 0, 1)
        proba = np.exp(log_softmax(scores, axis=-1))
        weight = (block.weight / n_splits)[:, None, None]
        curvature = np.zeros((n_rows, n_splits, n_classes, n_splits, n_classes))
        for s in range(n_splits):
            p = proba[:, s]
            curvature[:, s, :, s] = weight * (p[:, :, None] * np.eye(n_classes) - p[:, :, None] * p[:, None])
        own = block.label[:, None, None] == np.arange(n_classes)
        rest = (weight * (own - proba)).reshape(n_rows, size, 1)
        without = np.eye(size) - curvature.reshape(n_rows, size, size) @ spread
        shift = (spread @ np.linalg.solve(without, rest)).reshape(scores.shape)
        log_proba = np.moveaxis(log_softmax(scores - shift, axis=-1), 1, 0)
        found.append(_of_label(log_proba, block.label))
    return np.concatenate(found)


def _log_score(terms: CrossTerms, bias: np.ndarray, weight: np.ndarray) -> float:
    return -float(terms.weight @ log_losses(terms, bias, weight))


def _scores(terms: CrossTerms, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "S N C"]:
    return bias + terms.log_class + terms.values @ weight


def _of_label(log_proba: np.ndarray, label: np.ndarray) -> Float[np.ndarray, "N"]:
    """Return (N,) minus the mean over the fits of (S, N, C) log probabilities of the labels."""
    return -np.take_along_axis(log_proba, label[None, :, None], axis=-1)[..., 0].mean(axis=0)


def _repeated(terms: CrossTerms) -> tuple[np.ndarray, np.ndarray]:
    """Return the (S·N,) label and weight of each row in each fit."""
    n_splits = len(terms.values)
    return np.tile(terms.label, n_splits), np.tile(terms.weight / n_splits, n_splits)
