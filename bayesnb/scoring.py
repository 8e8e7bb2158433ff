"""Rows to scores: a reading of the posterior, applied block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesnb._util.precision import float64
from bayesnb._util.progress import rows_progress
from bayesnb.encoding import Encoding, Rows, blocks
from bayesnb.model import Estimate, JointLikelihood, NaiveBayes, Statistics, kernel_log_base, log_normalize, undefined

Parts = Callable[[JointLikelihood, tuple[Any, ...]], jax.Array]
"""Of a block of rows (N, C, T): `JointLikelihood.terms`, or `JointLikelihood.by_block`."""


@float64
def score_rows(
    encoding: Encoding,
    model: NaiveBayes,
    rows: tuple[Rows, ...],
    n: int,
    estimate: Estimate | Literal["penalized_mle"],
    output: Callable[[jax.Array], jax.Array],
    multiplicity: np.ndarray | None = None,
) -> np.ndarray:
    """Apply `output`, one of the functions below, to the (N, C) joint log probabilities of n rows.

    `multiplicity` (C,) is how many more times each row is taken to stand in each class, see `NaiveBayes.read`.
    """
    rows = tuple(r.plain() for r in rows) if multiplicity is None and estimate != "predictive" else rows
    # Where a row is among the data or left out, its numbers have parameters of their own in each class.
    width = 1.0 if multiplicity is None else sum(r.width() for r in rows)
    return score_by(read(encoding, model, estimate, multiplicity), rows, n, output, width)


@float64
def read(
    encoding: Encoding,
    model: NaiveBayes,
    estimate: Estimate | Literal["penalized_mle"],
    multiplicity: np.ndarray | None = None,
) -> JointLikelihood:
    """Return what scores rows, for `score_by`; arguments as for `score_rows`."""
    return _read(pad(encoding, model), multiplicity, estimate)


@float64
def score_by(
    reading: JointLikelihood,
    rows: tuple[Rows, ...],
    n: int,
    output: Callable[[jax.Array], jax.Array],
    width: float = 1.0,
) -> np.ndarray:
    """Apply `output` to the joint log probabilities of n rows by a reading of the posterior.

    Parameters
    ----------
    reading : JointLikelihood
        What `read` returns.
    rows : encoded rows
        `plain()` ones, unless parameters are integrated out.
    n : int
    output : function of joint scores (n, C)
    width : float
        Numbers that a row takes in each class.
    """
    prepared: list[JointLikelihood] = []

    def answer(x: tuple[Any, ...]) -> jax.Array:
        if not prepared:
            likelihoods = tuple(_lay_out(p, own) for p, own in zip(reading.likelihoods, x, strict=True))
            prepared.append(JointLikelihood(reading.log_class, likelihoods))
        return _score(prepared[0], x, output)

    return _map_rows(rows, n, answer, cells=np.shape(reading.log_class)[-1] * width)


@float64
def terms_of_rows(
    encoding: Encoding,
    model: NaiveBayes,
    rows: tuple[Rows, ...],
    n: int,
    estimate: Estimate,
    multiplicity: np.ndarray | None = None,
    parts: Parts = JointLikelihood.terms,
) -> Float[np.ndarray, "n C T"]:
    """(n, C, T) the terms of log p(row | class), or other `parts` of it; arguments as for `score_rows`."""
    reading = _read(pad(encoding, model), multiplicity, estimate)
    found = []
    for columns, likelihood, own in zip(encoding.blocks, reading.likelihoods, rows, strict=True):
        alone = JointLikelihood(reading.log_class, (likelihood,))
        cells = model.n_classes * len(columns.term_names) if parts is JointLikelihood.terms else 0.0
        found.append(map_rows((own,), n, partial(_parts, alone, parts=parts), cells=cells))
    return found[0] if len(found) == 1 else np.concatenate(found, axis=-1)


@float64
def average_over_weights(
    encoding: Encoding,
    model: NaiveBayes,
    rows: tuple[Rows, ...],
    n: int,
    estimate: Estimate,
    bias: np.ndarray,
    weight: np.ndarray,
    output: Callable[[jax.Array], jax.Array],
) -> np.ndarray:
    """Apply `output` to log of the average (n, C) of P(class | row) over S draws of weights of the terms of n rows.

    Draws are of biases (S, C) and weights: (S, T), or (S, 1) where all terms have the same.
    """
    reading = _read(pad(encoding, model), None, estimate)
    parts = JointLikelihood.terms if weight.shape[1] > 1 else _all_terms
    cells = model.n_classes * (encoding.n_terms * (weight.shape[1] > 1) + len(weight))
    return map_rows(rows, n, lambda x: _over_weights(reading, x, bias, weight, parts, output), cells=cells)


@float64
def average_of_terms(
    terms: np.ndarray,
    log_class: np.ndarray,
    bias: np.ndarray,
    weight: np.ndarray,
    output: Callable[[jax.Array], jax.Array],
) -> np.ndarray:
    """The same of terms (n, C, T) and log P(class) (C,) that are there already."""
    cells = terms.shape[1] * len(weight)
    return map_rows((), len(terms), lambda _, x: _of_terms(x, log_class, bias, weight, output), terms, cells=cells)


@float64
def log_class(model: NaiveBayes, estimate: Estimate) -> Float[np.ndarray, "C"]:
    """(C,) log P(class | D) under a reading, with the bias of the weights, if there are any."""
    return np.asarray(replace(model, blocks=()).read(estimate).log_class)


@float64
def map_rows(
    rows: tuple[Rows, ...], n: int, answer: Callable[..., jax.Array], *arrays: np.ndarray, cells: float = 0.0
) -> Shaped[np.ndarray, "n ..."]:
    """Compute (n, …) by `answer(x, *arrays)` for each block of rows, with its part of arrays with an entry a row."""
    return _map_rows(rows, n, answer, *arrays, cells=cells)


def _map_rows(
    rows: tuple[Rows, ...], n: int, answer: Callable[..., jax.Array], *arrays: np.ndarray, cells: float
) -> Shaped[np.ndarray, "n ..."]:
    def answered() -> Iterator[tuple[slice, jax.Array]]:
        for piece, x, parts in blocks(rows, n, *arrays, cells=cells):
            yield piece, answer(x, *parts)

    found = np.empty(0)
    with rows_progress("scoring", n) as step:
        # The next block is made while this one is scored, and no more of them wait in memory.
        for (piece, block), _ in pairwise(chain(answered(), [(slice(0), jnp.empty(0))])):
            if piece.start == 0:
                found = np.empty((n, *block.shape[1:]), block.dtype)
            found[piece] = np.asarray(block)[: piece.stop - piece.start]
            step(piece.stop - piece.start)
    return found


@float64
def update(model: NaiveBayes, statistics: Statistics) -> NaiveBayes:
    """The posterior, in NumPy arrays."""
    return model.update(statistics)


@float64
def update_apart(model: NaiveBayes, statistics: Statistics) -> NaiveBayes:
    """The posterior that rows can be left out of, in NumPy arrays."""
    return model.update_apart(statistics)


@float64
def plug_in(family: Any) -> Any:
    """The likelihood of a family at its posterior mean."""
    return _mean(family)


@float64
def read_scores(scores: np.ndarray, output: Callable[[jax.Array], jax.Array]) -> np.ndarray:
    """Apply `output`, one of the functions below, to (N, C) joint log probabilities that are there already."""
    return map_rows((), len(scores), lambda _, part: _apply(part, output), scores)


@float64
def log_add(total: np.ndarray, scores: np.ndarray, which: np.ndarray) -> np.ndarray:
    """log(exp(total) + exp(scores)) in the rows `which`, and `total` in the others."""
    return map_rows((), len(total), lambda _, *parts: _log_add(*parts), total, scores, which)


def joint(scores: Float[jax.Array, "N C"]) -> Float[jax.Array, "N C"]:
    """(N, C) log p(class, row)."""
    return scores


log_proba = log_normalize


def row(scores: Float[jax.Array, "N C"]) -> Float[jax.Array, "N"]:
    """(N,) log p(row), the class summed out."""
    return jax.nn.logsumexp(scores, axis=1)


def decision(scores: Float[jax.Array, "N C"]) -> Int[jax.Array, "N"]:
    """(N,) index of the most probable class; -1 where the row is undefined."""
    top = jnp.max(scores, axis=1, keepdims=True)
    index = jnp.arange(scores.shape[1], dtype=jnp.int32)

    def first_of_top() -> jax.Array:  # an argmax that vectorizes: a seventh of the time with a hundred classes
        return jnp.min(jnp.where(scores == top, index, len(index)), axis=1)

    def general() -> jax.Array:
        return jnp.where(undefined(scores), -1, jnp.argmax(scores, axis=1)).astype(jnp.int32)

    return jax.lax.cond(jnp.all(jnp.isfinite(top)), first_of_top, general)


@float64
def log_base(rows: tuple[Rows, ...], n: int) -> Float[np.ndarray, "N"]:
    """(N,) what no class changes: multinomial coefficients, -log x!."""
    statistics = tuple(r.empty(1) for r in rows)
    known = np.zeros(n) + sum(r.log_base(0, n) for r in rows)
    return map_rows(tuple(r.counted() for r in rows), n, lambda x, part: _log_base(statistics, x, part), known)


@float64
def log_evidence(encoding: Encoding, prior: NaiveBayes, statistics: Statistics) -> float:
    """log p(X, y) with all parameters integrated out."""
    return _log_evidence(pad(encoding, prior), pad_statistics(encoding, statistics))


def pad_statistics(encoding: Encoding, statistics: Statistics) -> Statistics:
    """Counts of levels padded as `pad` does their priors."""
    return replace(statistics, blocks=_padded(encoding, statistics.blocks))


def pad(encoding: Encoding, model: NaiveBayes) -> NaiveBayes:
    """Levels padded to the capacity of the kernels, in a group that no row refers to."""
    return replace(model, blocks=_padded(encoding, model.blocks))


def _padded(encoding: Encoding, blocks_: tuple[Any, ...]) -> tuple[Any, ...]:
    extra = [columns.capacity - int(columns.sizes().sum()) for columns in encoding.blocks]
    return tuple(block.pad(n) if n else block for block, n in zip(blocks_, extra, strict=True))


def _read(model: NaiveBayes, multiplicity: Any, estimate: Estimate | Literal["penalized_mle"]) -> JointLikelihood:
    """Read the posterior block by block: together they have shapes that few other models have."""
    alone = [replace(model, blocks=(block,), weights=None) for block in model.blocks]
    parts = [_read_alone(one, multiplicity, estimate) for one in alone or [replace(model, weights=None)]]
    return model.weighted(np.asarray(parts[0].log_class), [part.likelihoods[0] for part in parts if part.likelihoods])


def _read_alone(model: NaiveBayes, multiplicity: Any, estimate: Estimate | Literal["penalized_mle"]) -> JointLikelihood:
    if any(block.read_on_host for block in model.blocks):
        return model.read(estimate, multiplicity)
    return _read_compiled(model, multiplicity, estimate)


@jax.jit(static_argnames="estimate")
def _read_compiled(
    model: NaiveBayes, multiplicity: Any, estimate: Estimate | Literal["penalized_mle"]
) -> JointLikelihood:
    return model.read(estimate, multiplicity)


@jax.jit
def _lay_out(likelihood: Any, rows: Any) -> Any:
    return likelihood.prepare(rows)


@jax.jit(static_argnames="parts")
def _parts(reading: JointLikelihood, x: tuple[Any, ...], parts: Parts) -> jax.Array:
    return parts(reading, x)


def _all_terms(reading: JointLikelihood, x: tuple[Any, ...]) -> jax.Array:
    """(N, C, 1) their sum."""
    return reading.log_likelihood(x)[..., None]


@jax.jit(static_argnames=("parts", "output"))
def _over_weights(
    reading: JointLikelihood,
    x: tuple[Any, ...],
    bias: jax.Array,
    weight: jax.Array,
    parts: Parts,
    output: Callable[[jax.Array], jax.Array],
) -> jax.Array:
    return _of_terms(parts(reading, x), reading.log_class, bias, weight, output)


@jax.jit(static_argnames="output")
def _of_terms(
    terms: jax.Array, log_class: jax.Array, bias: jax.Array, weight: jax.Array, output: Callable[[jax.Array], jax.Array]
) -> jax.Array:
    impossible = jnp.any(jnp.isneginf(terms), axis=-1)
    # (N, S, C); what is impossible stays so, whatever its weight.
    scores = jnp.einsum("nct,st->nsc", jnp.where(jnp.isneginf(terms), 0.0, terms), weight)
    scores = jnp.where(impossible[:, None], -jnp.inf, scores) + (log_class + bias)
    return output(jax.nn.logsumexp(log_normalize(scores), axis=1) - jnp.log(len(weight)))


@jax.jit(static_argnames="output")
def _score(reading: JointLikelihood, x: tuple[Any, ...], output: Callable[[jax.Array], jax.Array]) -> jax.Array:
    return output(reading.log_joint(x))


@jax.jit(static_argnames="output")
def _apply(scores: jax.Array, output: Callable[[jax.Array], jax.Array]) -> jax.Array:
    return output(scores)


@jax.jit
def _log_add(total: jax.Array, scores: jax.Array, which: jax.Array) -> jax.Array:
    return jnp.where(which[:, None], jnp.logaddexp(total, scores), total)


@jax.jit
def _log_base(statistics: tuple[Any, ...], x: tuple[Any, ...], known: jax.Array) -> jax.Array:
    return known + kernel_log_base(statistics, x)


@jax.jit
def _log_evidence(prior: NaiveBayes, statistics: Statistics) -> jax.Array:
    return prior.log_evidence(statistics)


@jax.jit
def _mean(family: Any) -> Any:
    return family.mean()
