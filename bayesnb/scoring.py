"""Rows to scores: a reading of the posterior, applied block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb.encoding import Encoding, LevelColumns, Rows, blocks
from bayesnb.families import Dirichlet, LevelCounts
from bayesnb.model import Estimate, NaiveBayes, Reading, Statistics, log_normalize, undefined
from bayesnb.precision import float64


@float64
def score_rows(
    encoding: Encoding,
    model: NaiveBayes,
    rows: tuple[Rows, ...],
    n: int,
    estimate: Estimate,
    output: Callable[[jax.Array], jax.Array],
) -> np.ndarray:
    """Apply `output`, one of the functions below, to the (N, C) joint log probabilities of n rows."""
    padded = pad(encoding, model)
    rows = rows if estimate == "predictive" else tuple(r.plain() for r in rows)

    def scored() -> Iterator[tuple[slice, jax.Array]]:
        reading = None
        for piece, x, _ in blocks(rows, n):
            reading = reading or _prepare(padded, x, estimate)
            yield piece, _score(reading, x, output)

    scores = np.empty(0)
    # The next block is made while this one is scored, and no more of them wait in memory.
    for (piece, block), _ in pairwise(chain(scored(), [(slice(0), jnp.empty(0))])):
        if piece.start == 0:
            scores = np.empty((n, *block.shape[1:]), block.dtype)
        scores[piece] = np.asarray(block)[: piece.stop - piece.start]
    return scores


@float64
def plug_in(family: Any) -> Any:
    """The likelihood of a family at its posterior mean."""
    return _mean(family)


def joint(scores: jax.Array) -> jax.Array:
    """(N, C) log p(class, row)."""
    return scores


log_proba = log_normalize


def decision(scores: jax.Array) -> jax.Array:
    """(N,) index of the most probable class; -1 where the row is undefined."""
    return jnp.where(undefined(scores), -1, jnp.argmax(scores, axis=1)).astype(jnp.int32)


@float64
def log_evidence(encoding: Encoding, prior: NaiveBayes, statistics: Statistics) -> float:
    """log p(X, y) with all parameters integrated out."""
    return _log_evidence(pad(encoding, prior), pad_statistics(encoding, statistics))


def pad_statistics(encoding: Encoding, statistics: Statistics) -> Statistics:
    """Counts of levels padded as `pad` does their priors."""

    def padded(columns: Any, block: Any) -> Any:
        if not isinstance(columns, LevelColumns):
            return block
        return LevelCounts(np.pad(block.count, ((0, 0), (0, columns.capacity - block.count.shape[1]))))

    return replace(statistics, blocks=tuple(map(padded, encoding.blocks, statistics.blocks)))


def pad(encoding: Encoding, model: NaiveBayes) -> NaiveBayes:
    """Levels padded to the capacity of the kernels, in a group that no row refers to."""

    def padded(columns: Any, family: Any) -> Any:
        if not isinstance(columns, LevelColumns):
            return family
        extra = columns.capacity - family.concentration.shape[1]
        concentration = np.pad(family.concentration, ((0, 0), (0, extra)), constant_values=1.0)
        group = np.pad(family.group, (0, extra), constant_values=family.num_groups)
        return Dirichlet(concentration, group, family.num_groups + 1)

    return replace(model, blocks=tuple(map(padded, encoding.blocks, model.blocks)))


@jax.jit(static_argnames="estimate")
def _prepare(model: NaiveBayes, x: tuple[Any, ...], estimate: Estimate) -> Reading:
    return model.read(estimate).prepare(x)


@jax.jit(static_argnames="output")
def _score(reading: Reading, x: tuple[Any, ...], output: Callable[[jax.Array], jax.Array]) -> jax.Array:
    return output(reading.log_joint(x))


@jax.jit
def _log_evidence(prior: NaiveBayes, statistics: Statistics) -> jax.Array:
    return prior.log_evidence(statistics)


@jax.jit
def _mean(family: Any) -> Any:
    return family.mean()
