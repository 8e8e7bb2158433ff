"""The Pólya distribution of documents: the concentrations of each class at the maximum of their posterior."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from bayesnb._util.precision import float64
from bayesnb.families._pytree import pytree
from bayesnb.families.special import log_rising, polygammas

_LONGEST_STEP = 5.0
_ROUNDING = 1e-13


@pytree
class Documents:
    """All that the likelihood of C concentration vectors over V words needs to know of documents.

    Parameters
    ----------
    once : (C, V) array
        Weight of the documents of each class in which a word occurs once.
    index, count, weight : (P,) arrays
        Weight of the documents in which it occurs `count` times, for the distinct (class, word, count) with another
        count; `index` is class · V + word.
    length_class, length, length_weight : (T,) arrays
        Weight of the documents of each class and length.
    """

    once: Any
    index: Any
    count: Any
    weight: Any
    length_class: Any
    length: Any
    length_weight: Any


@pytree
class Prior:
    """a/A ~ Dirichlet(α), and independently A ~ Exponential of mean `scale`, for each class; A = Σ a.

    Parameters
    ----------
    alpha : (C, V) array
    scale : scalar
    """

    alpha: Any
    scale: Any


class Maximum(NamedTuple):
    """Concentrations (C, V); objective and steepest slope (C,) there; number of steps."""

    concentration: Any
    objective: Any
    slope: Any
    n_iter: Any


def collect(matrix: sp.csr_array, label: np.ndarray, weight: np.ndarray, n_classes: int) -> Documents:
    """Documents from counts of words (N, V), without stored zeros, with the class and weight of each."""
    n_words = matrix.shape[1]
    entries = np.diff(matrix.indptr)
    index = np.repeat(label.astype(np.int64), entries) * n_words + matrix.indices
    of_entry = np.repeat(weight, entries)
    single = matrix.data == 1
    once = np.bincount(index[single], of_entry[single], minlength=n_classes * n_words)
    pairs = _histogram(index[~single], matrix.data[~single], of_entry[~single])
    lengths = _histogram(label, np.asarray(matrix.sum(axis=1)).ravel(), weight)
    return Documents(once.reshape(n_classes, n_words), *pairs, *lengths)


def log_posterior(a: jax.Array, documents: Documents, prior: Prior) -> jax.Array:
    """(C,) log p(documents | a) + log p(log A, a/A), without what a does not change."""
    pairs, lengths = _ratios(a, documents)
    total = jnp.sum(a, axis=1)
    occurred = jnp.sum(documents.once * jnp.log(a), axis=1) + jnp.sum(
        _by_word(a, documents, log_rising(*pairs)), axis=1
    )
    drawn = _by_class(a, documents, log_rising(*lengths))
    direction = jnp.sum(prior.alpha * jnp.log(a / total[:, None]), axis=1)
    return occurred - drawn + direction + jnp.log(total) - total / prior.scale


@float64
def maximize(documents: Documents, prior: Prior, max_iter: int, tol: float) -> Maximum:
    """The concentrations of greatest posterior density in the coordinates (log A, a/A).

    Ends when max(|∂f/∂log a_l|, |∂f/∂log A|) of the objective f is at most `tol` for every class, in units of
    documents or of the documents of the class if they are more than one; or after `max_iter` steps.
    """
    return _maximize(_start(documents, prior), documents, prior, max_iter, tol)


def step(a: jax.Array, documents: Documents, prior: Prior) -> tuple[jax.Array, jax.Array]:
    """(C, V) concentrations with a higher objective, and the (C,) steepest slope before.

    The better of two: the fixed point of a lower bound (Minka 2000, eq. 55, with the prior's terms), which for whole
    counts cannot lose, and Newton's step in log a, which ends quadratically. Its Hessian is diagonal but for one
    product.
    """
    pairs, lengths = _ratios(a, documents)
    total = jnp.sum(a, axis=1, keepdims=True)
    (rise, bend), (fall, unbend) = _differences(*pairs), _differences(*lengths)
    rise = documents.once / a + _by_word(a, documents, rise)
    bend = -documents.once / a**2 + _by_word(a, documents, bend)
    fall, unbend = (_by_class(a, documents, v)[:, None] for v in (fall, unbend))
    excess = jnp.sum(prior.alpha, axis=1, keepdims=True) - 1.0

    gain = a * (rise + prior.alpha / a - fall - excess / total - 1.0 / prior.scale)
    up = a * rise + prior.alpha + jnp.maximum(-excess, 0.0) * a / total
    bound = up / (fall + jnp.maximum(excess, 0.0) / total + 1.0 / prior.scale)

    diagonal = a**2 * bend - prior.alpha + jnp.minimum(gain, 0.0)
    shared = excess / total**2 - unbend
    direct, mixed = -gain / diagonal, a / diagonal
    sizes = jnp.sum(a * direct, axis=1, keepdims=True), jnp.sum(a * mixed, axis=1, keepdims=True)
    move = direct - mixed * shared * sizes[0] / (1.0 + shared * sizes[1])
    newton = a * jnp.exp(jnp.clip(move, -_LONGEST_STEP, _LONGEST_STEP))

    before, by_bound, by_newton = (log_posterior(v, documents, prior) for v in (a, bound, newton))
    slack = _ROUNDING * jnp.abs(before)
    best = jnp.where((by_bound >= before - slack)[:, None], bound, a)
    best = jnp.where((by_newton >= jnp.maximum(by_bound, before) - slack)[:, None], newton, best)
    slope = jnp.maximum(jnp.max(jnp.abs(gain), axis=1), jnp.abs(jnp.sum(gain, axis=1)))
    return best, slope


@jax.jit
def _maximize(start: jax.Array, documents: Documents, prior: Prior, max_iter: Any, tol: Any) -> Maximum:
    many = jnp.maximum(1.0, _by_class(start, documents, jnp.ones_like(documents.length)))

    def unfinished(state: tuple[Any, Any, Any]) -> jax.Array:
        _, slope, n = state
        return jnp.any(slope > tol) & (n < max_iter)

    def advance(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        a, _, n = state
        better, slope = step(a, documents, prior)
        slope = slope / many
        return jnp.where((slope > tol)[:, None], better, a), slope, n + 1

    a, slope, n = jax.lax.while_loop(unfinished, advance, (start, jnp.full(start.shape[0], jnp.inf), 0))
    return Maximum(a, log_posterior(a, documents, prior), slope, n)


def _start(documents: Documents, prior: Prior) -> np.ndarray:
    """In the direction of the smoothed counts; of the size of a document, or what is expected a priori if less."""
    alpha, (n_classes, n_words) = np.asarray(prior.alpha), documents.once.shape
    often = np.bincount(documents.index, documents.weight * documents.count, minlength=n_classes * n_words)
    count = documents.once + often.reshape(n_classes, n_words) + alpha
    total, many = (
        np.bincount(documents.length_class, w, minlength=n_classes)
        for w in (documents.length_weight * documents.length, documents.length_weight)
    )
    mean = np.divide(total, many, out=np.full(n_classes, np.inf), where=many > 0)
    size = np.clip(mean, min(1.0, prior.scale), prior.scale)
    return size[:, None] * count / count.sum(axis=1, keepdims=True)


def _ratios(a: jax.Array, documents: Documents) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Concentration and count of the pairs, and total concentration and length of the documents."""
    total = jnp.sum(a, axis=1)
    pairs = a.reshape(-1)[documents.index], jnp.asarray(documents.count)
    return pairs, (total[documents.length_class], jnp.asarray(documents.length))


def _differences(a: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first two derivatives of log Γ(a + x) - log Γ(a)."""
    (psi, psi1, _), (psi_x, psi1_x, _) = polygammas(a), polygammas(a + x)
    return psi_x - psi, psi1_x - psi1


def _by_word(a: jax.Array, documents: Documents, values: jax.Array) -> jax.Array:
    """(C, V) weighted sums over the pairs."""
    return jnp.zeros(a.size).at[documents.index].add(documents.weight * values).reshape(a.shape)


def _by_class(a: jax.Array, documents: Documents, values: jax.Array) -> jax.Array:
    """(C,) weighted sums over the lengths."""
    return jnp.zeros(a.shape[0]).at[documents.length_class].add(documents.length_weight * values)


def _histogram(index: np.ndarray, value: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """The distinct (index, value) and the weight of each; padded with weight zero, so that few sizes are compiled."""
    order = np.lexsort((value, index))
    index, value, weight = index[order], value[order].astype(np.float64), weight[order]
    first = np.append(True, (np.diff(index) != 0) | (np.diff(value) != 0))[: len(index)]
    weight = np.bincount(np.cumsum(first) - 1, weight)
    extra = (1 << max(6, int(first.sum() - 1).bit_length())) - int(first.sum())
    pairs = np.pad(index[first], (0, extra)), np.pad(value[first], (0, extra))
    return *pairs, np.pad(weight, (0, extra))
