"""Weights of terms: penalised multinomial logistic regression on leave-one-out terms, shrunk to a common temperature.

    s_c(x) = b_c + log π_c + Σ_t w_t ℓ_ct(x),    P(c | x) = softmax(s),    w_t = T + τ d_t

with b, d ~ N(0, 1), T ~ N(1, 1). For given τ the objective is concave, and Newton's method finds the one optimum; τ
is the smallest against which Laplace's evidence is not strong: within a Bayes factor of 10 of the best. The term of
rows that are t draws from one simplex is ℓ ((t + 1)/t₀)^-β, t₀ that of a typical row, with β at the optimum under
τ = 0; β is half normal of scale ½, as where labels are told nearly without error the rows do not bound it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb._util.precision import float64
from bayesnb._util.progress import progress
from bayesnb.families._pytree import pytree

SHRINKAGE = (0.0, 0.03, 0.1, 0.3, 1.0)
_STRONG = np.log(10.0)  # Jeffreys; the best τ alone is chosen by a nat or two where few rows are hard to tell
PRECISION_OF_EXPONENT = 4.0
_STEPS = 100
_DECREMENT = 1e-8  # of the log score, by a step; the next one, which is not taken, would be of the order of its square
_SMALLEST_STEP = 1e-10
_LARGEST_EXPONENT = 2.0
_IN_CACHE = 2**17


@pytree
class LeaveOneOutTerms:
    """Of a block of rows.

    Parameters
    ----------
    log_class : (n, C) array
        log P(class) without the row.
    terms : (n, C, T) array
    log_length : (n, T) array
        log((t + 1)/(t₀ + 1)) of a row that is t draws from one simplex, t₀ a typical one; 0 for other terms.
    label, weight : (n,) arrays
        Index of the class, and replication count: 0 is padding.
    """

    log_class: Any
    terms: Any
    log_length: Any
    label: Any
    weight: Any


Source = Callable[[], Iterable[LeaveOneOutTerms]]
"""Blocks, of as many rows each, a multiple of 512; as often as they are asked for."""


class Optimum(NamedTuple):
    """Where the objective is greatest.

    `bias` b (C,), `temperature` T, `weight` w (T,), `shrinkage` τ and `exponent` β are those of the module. `precision`
    (P, P) is minus the Hessian of the penalised log score over what is free of (b, T, d), see `Free`. `log_score` is
    Σ_i w_i log P(y_i | x_i), and `log_evidence` Laplace's approximation, up to a constant that all τ share.
    """

    bias: np.ndarray
    temperature: float
    weight: np.ndarray
    shrinkage: float
    exponent: float
    precision: np.ndarray
    log_score: float
    log_evidence: float


@dataclass(frozen=True, eq=False)
class Free:
    """The parameters that there are, of (b, T, d): none of b without a bias of classes, none of d under τ = 0.

    Parameters
    ----------
    n_classes : int
    into : (C + T, P) array
        (b, w) as a linear function of them.
    mean : (P,) array
        Of their normal prior; its variances are 1.
    """

    n_classes: int
    into: np.ndarray
    mean: np.ndarray

    @classmethod
    def of(cls, n_classes: int, n_terms: int, tau: float, *, biased: bool) -> Free:
        each = np.eye(n_classes + n_terms)
        bias, deviations = each[:, : n_classes * biased], tau * each[:, n_classes:] if tau else each[:, :0]
        common = np.repeat([0.0, 1.0], [n_classes, n_terms])[:, None]
        sizes = [bias.shape[1], 1, deviations.shape[1]]
        return cls(
            n_classes,
            np.concatenate([bias, common, deviations], axis=1),
            np.repeat([0.0, 1.0, 0.0], sizes),
        )

    def of_weights(self, at: np.ndarray) -> np.ndarray:
        """(P,) parameters for which (b, w) are nearest to those given."""
        return np.linalg.lstsq(self.into, at, rcond=None)[0]


@float64
def fit_weights(
    source: Source, n_classes: int, n_terms: int, *, of_draws: bool, shrinkage: Iterable[float], biased: bool
) -> Optimum:
    """The optimum under the smallest τ that there is no strong evidence against.

    Parameters
    ----------
    source : function
        Gone through some four times for each τ; what is a list stays in memory.
    n_classes, n_terms : int
    of_draws : bool
        Whether some terms are those of draws from one simplex, so that β is fitted.
    shrinkage : τ, one or several
    biased : bool
        Whether classes have a bias.
    """
    if isinstance(kept := source(), list):
        source = partial(list, jax.tree.map(jnp.asarray, kept))
    plain = np.repeat([0.0, 1.0], [n_classes, n_terms])
    exponent = _exponent(source, plain, Free.of(n_classes, n_terms, 0.0, biased=biased)) if of_draws else 0.0
    found: list[Optimum] = []
    at = slopes_at(source, plain, n_classes, exponent)
    with progress("weights", len(taus := sorted(shrinkage))) as tick:
        for tau in taus:
            free = Free.of(n_classes, n_terms, tau, biased=biased)
            there = _maximize(source, at, free, exponent)
            at = there.slopes
            found.append(
                Optimum(
                    bias=at.at[:n_classes],
                    temperature=float(there.theta[n_classes * biased]),
                    weight=at.at[n_classes:],
                    shrinkage=tau,
                    exponent=exponent,
                    precision=there.precision,
                    log_score=at.value,
                    log_evidence=there.objective - 0.5 * float(np.linalg.slogdet(there.precision)[1]),
                )
            )
            tick()
    best = max(one.log_evidence for one in found)
    return next(one for one in found if one.log_evidence >= best - _STRONG)


@float64
def log_score(source: Source, at: np.ndarray, n_classes: int) -> float:
    """Σ_i w_i log P(y_i | x_i) at (b, w), where β is 0."""
    return slopes_at(source, at, n_classes, 0.0).value


def _exponent(source: Source, at: np.ndarray, free: Free) -> float:
    """β at the optimum under a common temperature."""
    from scipy.optimize import minimize_scalar

    def loss(exponent: float) -> float:
        nonlocal at
        there = _maximize(source, slopes_at(source, at, free.n_classes, exponent), free, exponent)
        at = there.slopes.at  # not far from that of the next exponent
        return 0.5 * PRECISION_OF_EXPONENT * exponent**2 - there.objective

    return float(minimize_scalar(loss, bounds=(0.0, _LARGEST_EXPONENT), method="bounded", options={"xatol": 1e-8}).x)


class Slopes(NamedTuple):
    """The log score at (b, w), `at` (C + T,), its gradient, and minus its Hessian."""

    at: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: np.ndarray


class _Point(NamedTuple):
    """The penalised log score at `theta`, its gradient and minus its Hessian, and the slopes of the log score."""

    theta: np.ndarray
    objective: float
    gradient: np.ndarray
    precision: np.ndarray
    slopes: Slopes


def _maximize(source: Source, start: Slopes, free: Free, exponent: float) -> _Point:
    """Newton's method from (b, w), with steps that are halved until the objective rises."""

    def penalized(theta: np.ndarray, slopes: Slopes) -> _Point:
        away = theta - free.mean
        return _Point(
            theta,
            slopes.value - 0.5 * float(away @ away),
            free.into.T @ slopes.gradient - away,
            free.into.T @ slopes.hessian @ free.into + np.eye(len(theta)),
            slopes,
        )

    def evaluate(theta: np.ndarray) -> _Point:
        return penalized(theta, slopes_at(source, free.into @ theta, free.n_classes, exponent))

    # Each τ can say what those before it could: its first point is their last one.
    here = penalized(free.of_weights(start.at), start)
    for _ in range(_STEPS):
        step = np.linalg.solve(here.precision, here.gradient)
        size, there = 1.0, evaluate(here.theta + step)
        while there.objective < here.objective - 1e-13 * abs(here.objective) and size > _SMALLEST_STEP:
            size /= 2
            there = evaluate(here.theta + size * step)
        if size <= _SMALLEST_STEP:
            break
        decrement, here = float(here.gradient @ step), there
        if decrement < _DECREMENT:
            break
    return here


def slopes_at(source: Source, at: np.ndarray, n_classes: int, exponent: float) -> Slopes:
    """Σ_i w_i log P(y_i | x_i) and its slopes over (b, w)."""
    total: Any = 0.0, 0.0, 0.0
    for block in source():
        found = _of_block(block, at[:n_classes], at[n_classes:], exponent)
        total = tuple(a + np.asarray(b) for a, b in zip(total, found, strict=True))
    return Slopes(at, float(total[0]), total[1], total[2])


@jax.jit
def _of_block(
    block: LeaveOneOutTerms, bias: jax.Array, weight: jax.Array, exponent: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The same of a block, some rows at a time, so that they stay in the cache."""
    n, n_classes, n_terms = block.terms.shape
    most = max(1, _IN_CACHE // max(1, n_classes * n_terms))
    size = min(1024, n & -n, 2 ** (most.bit_length() - 1))

    def of_piece(piece: LeaveOneOutTerms) -> tuple[jax.Array, jax.Array, jax.Array]:
        return _of_rows(piece, bias, weight, exponent)

    pieces = jax.tree.map(lambda v: jnp.reshape(v, (n // size, size, *v.shape[1:])), block)
    shapes = jax.eval_shape(of_piece, jax.tree.map(lambda v: v[0], pieces))
    zeros = jax.tree.map(lambda v: jnp.zeros(v.shape, v.dtype), shapes)
    return jax.lax.scan(lambda total, piece: (jax.tree.map(jnp.add, total, of_piece(piece)), None), zeros, pieces)[0]


def _of_rows(
    rows: LeaveOneOutTerms, bias: jax.Array, weight: jax.Array, exponent: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    terms = rows.terms * jnp.exp(-exponent * rows.log_length)[:, None]
    log_proba = jax.nn.log_softmax(bias + rows.log_class + jnp.einsum("nct,t->nc", terms, weight))
    proba = jnp.exp(log_proba)
    own = rows.label[:, None] == jnp.arange(proba.shape[1])
    rest, share = rows.weight[:, None] * (own - proba), rows.weight[:, None] * proba
    value = jnp.sum(jnp.where(own, rows.weight[:, None] * log_proba, 0.0))
    gradient = jnp.concatenate([jnp.sum(rest, axis=0), jnp.einsum("nc,nct->t", rest, terms)])
    # Covariances under P(c | x) of the indicators of the classes and of the terms.
    centered = terms - jnp.einsum("nc,nct->nt", proba, terms)[:, None]
    root = (jnp.sqrt(share)[..., None] * centered).reshape(-1, terms.shape[2])
    classes = jnp.diag(jnp.sum(share, axis=0)) - share.T @ proba
    mixed = jnp.einsum("nc,nct->ct", share, centered)
    return value, gradient, jnp.block([[classes, mixed], [mixed.T, root.T @ root]])
