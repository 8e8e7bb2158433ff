"""Weights of terms: penalised multinomial logistic regression on leave-one-out terms, shrunk to a common temperature.

    s_c(x) = b_c + log π_c + Σ_t w_t ℓ_ct(x),    P(c | x) = softmax(s),    w_t = T + τ d_t

with b, d ~ N(0, 1), T ~ N(1, 10²). For given τ the objective is concave, and Newton's method finds the one optimum; τ
is the smallest against which Laplace's evidence is not strong: within a Bayes factor of 10 of the best. The term of
rows that are t draws from one simplex is ℓ (t + 1)^-β, with β at the optimum under τ = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb._util.precision import float64
from bayesnb.families._pytree import pytree

SHRINKAGE = (0.0, 0.03, 0.1, 0.3, 1.0)
_STRONG = np.log(10.0)  # Jeffreys; the best τ alone is chosen by a nat or two where few rows are hard to tell
_PRECISION_OF_T = 0.01
_STEPS = 100
_DECREMENT = 1e-11
_SMALLEST_STEP = 1e-10
_LARGEST_EXPONENT = 2.0


@pytree
class Scores:
    """Leave-one-out terms of a block of rows.

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


#: Blocks of scores, as often as they are asked for.
Source = Callable[[], Iterable[Scores]]


class Optimum(NamedTuple):
    """Where the objective is greatest.

    `bias` (C,), `temperature` and `deviation` d (T,) are the parameters, `weight` (T,) is T + τ d; `precision` (P, P)
    is minus the Hessian of the penalised log score there, over (b, T, d). `log_score` is Σ_i w_i log P(y_i | x_i), and
    `log_evidence` Laplace's approximation, up to a constant that all τ share.
    """

    bias: np.ndarray
    temperature: float
    deviation: np.ndarray
    weight: np.ndarray
    shrinkage: float
    exponent: float
    precision: np.ndarray
    log_score: float
    log_evidence: float


def fit_weights(source: Source, n_classes: int, n_terms: int, *, of_draws: bool, shrinkage: Iterable[float]) -> Optimum:
    """The optimum under the smallest τ that there is no strong evidence against.

    Parameters
    ----------
    source : function
        Blocks of scores; they are gone through some ten times for each τ.
    n_classes, n_terms : int
    of_draws : bool
        Whether some terms are those of draws from one simplex, so that β is fitted.
    shrinkage : τ, one or several
    """
    start = np.concatenate([np.zeros(n_classes), np.ones(n_terms)])
    exponent = _exponent(source, start, n_classes) if of_draws else 0.0
    found: list[Optimum] = []
    for tau in sorted(shrinkage):
        found.append(_maximize(source, start, n_classes, tau, exponent))
        start = np.concatenate([found[-1].bias, found[-1].weight])
    best = max(one.log_evidence for one in found)
    return next(one for one in found if one.log_evidence >= best - _STRONG)


def _exponent(source: Source, start: np.ndarray, n_classes: int) -> float:
    """β at the optimum under a common temperature."""
    from scipy.optimize import minimize_scalar

    def loss(exponent: float) -> float:
        found = _maximize(source, start, n_classes, 0.0, exponent)
        penalty = found.bias @ found.bias + _PRECISION_OF_T * (found.temperature - 1.0) ** 2
        return 0.5 * float(penalty) - found.log_score

    return float(minimize_scalar(loss, bounds=(0.0, _LARGEST_EXPONENT), method="bounded", options={"xatol": 1e-8}).x)


def _maximize(source: Source, start: np.ndarray, n_classes: int, tau: float, exponent: float) -> Optimum:
    """Newton's method from (b, w), with steps that are halved until the objective rises."""
    n_terms = len(start) - n_classes
    # (b, w) as a linear map of (b, T, d); under τ = 0 the deviations are their prior's.
    into = np.zeros((n_classes + n_terms, n_classes + 1 + n_terms))
    into[:n_classes, :n_classes] = np.eye(n_classes)
    into[n_classes:, n_classes] = 1.0
    into[n_classes:, n_classes + 1 :] = tau * np.eye(n_terms)
    prior = np.concatenate([np.ones(n_classes), [_PRECISION_OF_T], np.ones(n_terms)])
    center = np.zeros(len(prior))
    center[n_classes] = 1.0

    temperature = start[n_classes:].mean() if n_terms else 1.0
    deviation = (start[n_classes:] - temperature) / tau if tau else np.zeros(n_terms)
    at = np.concatenate([start[:n_classes], [temperature], deviation])

    def evaluate(at: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float]:
        value, gradient, hessian = _derivatives(source, into @ at, n_classes, exponent)
        away = at - center
        objective = value - 0.5 * float(prior @ away**2)
        return objective, into.T @ gradient - prior * away, into.T @ hessian @ into + np.diag(prior), value

    objective, gradient, precision, value = evaluate(at)
    for _ in range(_STEPS):
        step = np.linalg.solve(precision, gradient)
        size, decrement = 1.0, float(gradient @ step)
        while True:
            there = evaluate(at + size * step)
            if there[0] >= objective - 1e-13 * abs(objective) or size < _SMALLEST_STEP:
                break
            size /= 2
        if size >= _SMALLEST_STEP:
            at = at + size * step
            objective, gradient, precision, value = there
        if decrement < _DECREMENT or size < _SMALLEST_STEP:
            break
    bias, temperature, deviation = at[:n_classes], float(at[n_classes]), at[n_classes + 1 :]
    return Optimum(
        bias,
        temperature,
        deviation,
        temperature + tau * deviation,
        tau,
        exponent,
        precision,
        value,
        objective - 0.5 * float(np.linalg.slogdet(precision)[1]),
    )


def log_score(source: Source, at: np.ndarray, n_classes: int) -> float:
    """Σ_i w_i log P(y_i | x_i) at (b, w), where β is 0."""
    return _derivatives(source, at, n_classes, 0.0)[0]


def _derivatives(
    source: Source, at: np.ndarray, n_classes: int, exponent: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Σ_i w_i log P(y_i | x_i), its gradient over (b, w), and minus its Hessian."""
    total: Any = None
    for block in source():
        found = _of_block(block, at[:n_classes], at[n_classes:], exponent)
        total = found if total is None else tuple(a + b for a, b in zip(total, found, strict=True))
    return float(total[0]), total[1], total[2]


@float64
def _of_block(*arguments: Any) -> tuple[np.ndarray, ...]:
    return _derivatives_of_block(*arguments)


@jax.jit
def _derivatives_of_block(
    block: Scores, bias: jax.Array, weight: jax.Array, exponent: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    terms = _tempered(block, exponent)
    log_proba = jax.nn.log_softmax(bias + block.log_class + jnp.einsum("nct,t->nc", terms, weight))
    proba, rows = jnp.exp(log_proba), jnp.asarray(block.weight)
    own = jnp.asarray(block.label)[:, None] == jnp.arange(proba.shape[1])
    value = jnp.sum(rows * jnp.sum(jnp.where(own, log_proba, 0.0), axis=1))
    rest = rows[:, None] * (own - proba)
    gradient = jnp.concatenate([jnp.sum(rest, axis=0), jnp.einsum("nc,nct->t", rest, terms)])
    # Covariances under P(c | x) of the indicators of the classes and of the terms.
    share = rows[:, None] * proba
    centered = terms - jnp.einsum("nc,nct->nt", proba, terms)[:, None]
    root = (jnp.sqrt(share)[..., None] * centered).reshape(-1, terms.shape[2])
    classes = jnp.diag(jnp.sum(share, axis=0)) - share.T @ proba
    mixed = jnp.einsum("nc,nct->ct", share, centered)
    return value, gradient, jnp.block([[classes, mixed], [mixed.T, root.T @ root]])


def _tempered(block: Scores, exponent: Any) -> jax.Array:
    """Terms times (t + 1)^-β, relative to a typical t."""
    return block.terms * jnp.exp(-exponent * block.log_length)[:, None]
