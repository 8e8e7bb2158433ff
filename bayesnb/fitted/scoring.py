"""Scores of rows: pieces of rows to joint log probabilities, and to what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesnb import kernels
from bayesnb._util.precision import float64
from bayesnb._util.terminal import rows_progress
from bayesnb.encoding import Encoding, Rows, row_pieces
from bayesnb.families.arrays import Array, are_few, cond, logsumexp, xp
from bayesnb.kernels import Output
from bayesnb.model import Estimate, JointLikelihood, NaiveBayes, Statistics, log_normalize, undefined


@float64
def read(
    encoding: Encoding,
    model: NaiveBayes,
    estimate: Estimate | Literal["penalized_mle"],
    multiplicity: np.ndarray | None = None,
) -> JointLikelihood:
    """Joint likelihood under a reading of the posterior, for `score`; tables are padded with unused levels.

    With `multiplicity` (C,) that many copies of each row are added to the data of each class, see `NaiveBayes.read`.
    """
    return pad(encoding, model).read(estimate, multiplicity)


def score(reading: JointLikelihood, rows: tuple[Rows, ...], n: int, output: Output) -> np.ndarray:
    """Apply `output` to the joint log probabilities (N, C) of n rows; `linear_rows` if parameters are plugged in."""
    cells = np.shape(reading.log_class)[-1]
    return map_rows(rows, n, partial(kernels.score, output=output), reading=reading, cells=cells)


def prepare(reading: JointLikelihood, x: tuple[object, ...]) -> JointLikelihood:
    """Equal likelihood whose tables are rearranged by NumPy for rows encoded like `x`; in float64 if called there.

    They are put on JAX's device, once for all pieces of rows, if the kernel that scores a piece is compiled.
    """
    with np.errstate(all="ignore"):
        prepared = reading.prepare(x)
    return prepared if are_few(prepared, x) else jax.device_put(prepared)


def average_over_weights(
    rows: tuple[Rows, ...],
    n: int,
    terms: Callable[..., Array],
    *arrays: np.ndarray,
    log_class: np.ndarray,
    bias: np.ndarray,
    weight: np.ndarray,
    output: Output,
) -> np.ndarray:
    """Apply `output` to log P(class | row), (n, C), where P is averaged over S draws of weights of the terms.

    `terms(x, *pieces)` returns the terms (n, C, T) of a piece of rows, and `pieces` are cut from `arrays`; `bias`
    (S, C) and `weight` (S, T) are the draws. T is 1 where all terms have one weight.
    """

    def averaged(*piece: Any) -> jax.Array:
        return kernels.average_over_weights(terms(*piece), log_class, bias, weight, output)

    return map_rows(rows, n, averaged, *arrays, cells=len(log_class) * (weight.shape[1] + len(weight)))


def terms(encoding: Encoding, reading: JointLikelihood, rows: tuple[Rows, ...], n: int) -> Float[np.ndarray, "n C T"]:
    """(n, C, T) terms of log p(row | class) of n encoded rows, times weights if the reading has any."""
    terms_of_blocks = []
    for columns, likelihood, block_rows in zip(encoding.blocks, reading.likelihoods, rows, strict=True):
        kernel = partial(kernels.terms, replace(reading, likelihoods=(likelihood,)))
        cells = np.shape(reading.log_class)[-1] * len(columns.term_names)
        terms_of_blocks.append(map_rows((block_rows,), n, kernel, cells=cells))
    return terms_of_blocks[0] if len(terms_of_blocks) == 1 else np.concatenate(terms_of_blocks, axis=-1)


@float64
def log_class(model: NaiveBayes, estimate: Estimate) -> Float[np.ndarray, "C"]:
    """(C,) log class probabilities under a reading of the posterior, plus the class bias of term weights."""
    return np.asarray(replace(model, blocks=()).read(estimate).log_class)


@float64
def map_rows(
    rows: tuple[Rows, ...],
    n: int,
    kernel: Callable[..., Array],
    *arrays: np.ndarray,
    cells: float = 0.0,
    reading: JointLikelihood | None = None,
) -> Shaped[np.ndarray, "n ..."]:
    """Concatenated results (n, …) of `kernel(x, *pieces)` over pieces of rows, `pieces` being cut from `arrays`.

    `cells` is the number of result cells of a row, which limits the size of the pieces. A `reading` is prepared for
    rows like those of the first piece, and passed to the kernel before x.
    """
    pieces = row_pieces(rows, n, *arrays, cells=cells)
    first = next(pieces, None)
    if first is None:
        return np.empty(0)
    if reading is not None:
        kernel = partial(kernel, prepare(reading, first[1]))
    if first[0].stop == n:
        return np.asarray(kernel(first[1], *first[2]))[:n].copy()

    def piece_results() -> Iterator[tuple[slice, jax.Array | np.ndarray]]:
        """Yield the slice and the result of each piece."""
        for piece, x, block_arrays in chain([first], pieces):
            yield piece, kernel(x, *block_arrays)

    results = np.empty(0)
    with rows_progress("scoring", n) as step:
        # The next piece is prepared while the kernel scores this one, and no further piece waits in memory.
        for (piece, scores), _ in pairwise(chain(piece_results(), [(slice(0), np.empty(0))])):
            if piece.start == 0:
                results = np.empty((n, *scores.shape[1:]), scores.dtype)
            results[piece] = np.asarray(scores)[: piece.stop - piece.start]
            step(piece.stop - piece.start)
    return results


@float64
def update_for_removal(model: NaiveBayes, statistics: Statistics) -> NaiveBayes:
    """Posterior that keeps prior and counts separate, to leave rows out exactly, in float64 NumPy arrays."""
    return model.update_for_removal(statistics)


@float64
def plug_in(family: Any) -> Any:
    """Likelihood of one family at its posterior mean, in float64."""
    return family.mean()


@float64
def apply(output: Output, scores: np.ndarray) -> np.ndarray:
    """Apply `output`, evaluated by NumPy, to given joint log probabilities (N, C)."""
    return np.asarray(output(scores))


def joint(scores: Float[jax.Array, "N C"]) -> Float[jax.Array, "N C"]:
    """`Output` that returns the joint log probabilities log p(class, row), (N, C), unchanged."""
    return scores


log_proba = log_normalize


def row(scores: Float[jax.Array, "N C"]) -> Float[jax.Array, "N"]:
    """`Output` log p(row), (N,): the class is summed out."""
    return logsumexp(scores, axis=1)


def most_probable(scores: Float[jax.Array, "N C"]) -> Int[jax.Array, "N"]:
    """`Output` (N,) index of the most probable class, the first of equals; -1 where all probabilities are undefined."""
    top = xp.max(scores, axis=1, keepdims=True)
    index = xp.arange(scores.shape[1], dtype=xp.int32)

    def first_of_top() -> jax.Array:
        """Index of the first class with the largest score, for finite scores."""
        # Unlike argmax this vectorizes: a seventh of the time with a hundred classes.
        return xp.min(xp.where(scores == top, index, len(index)), axis=1)

    def general() -> jax.Array:
        """Index of the largest score, -1 for undefined rows."""
        return xp.where(undefined(scores), -1, xp.argmax(scores, axis=1)).astype(xp.int32)

    return cond(xp.all(xp.isfinite(top)), first_of_top, general)


@float64
def log_base(rows: tuple[Rows, ...], n: int) -> Float[np.ndarray, "N"]:
    """(N,) log base measure of each row: multinomial coefficients and -log x!, the same in all classes."""
    statistics = tuple(r.empty(1) for r in rows)
    known = np.zeros(n) + sum(r.log_base(0, n) for r in rows)
    return map_rows(
        tuple(r.counting_rows() for r in rows), n, lambda x, block: kernels.log_base(statistics, x, block), known
    )


def log_evidence(encoding: Encoding, prior: NaiveBayes, statistics: Statistics) -> float:
    """Log marginal likelihood log p(X, y) of the counted rows under the prior."""
    return float(kernels.log_evidence(pad(encoding, prior), pad_statistics(encoding, statistics)))


def pad_statistics(encoding: Encoding, statistics: Statistics) -> Statistics:
    """Statistics with unused levels appended up to the kernels' capacity, so that kernels are shared."""
    return replace(statistics, blocks=_pad_blocks(encoding, statistics.blocks))


def pad(encoding: Encoding, model: NaiveBayes) -> NaiveBayes:
    """Model with unused levels appended up to the kernels' capacity, in a group to which no row refers."""
    return replace(model, blocks=_pad_blocks(encoding, model.blocks))


def _pad_blocks(encoding: Encoding, blocks_: tuple[Any, ...]) -> tuple[Any, ...]:
    """Families or statistics of the blocks, each with unused levels appended up to the capacity of its columns."""
    extra = [columns.capacity - int(columns.sizes().sum()) for columns in encoding.blocks]
    return tuple(block.pad(n) if n else block for block, n in zip(blocks_, extra, strict=True))
