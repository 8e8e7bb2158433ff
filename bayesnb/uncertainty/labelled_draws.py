"""Labelled rows under draws of the parameters: their log-likelihoods, and labels drawn anew."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding, blocks
from bayesnb.model import JointLikelihood, NaiveBayes, kernel_log_base, log_normalize
from bayesnb.uncertainty.given_draws import read_as_classes
from bayesnb.uncertainty.importance import joint_of_draws

_MOST_CELLS = 2**17


def score_labelled(
    encoding: Encoding,
    posterior: NaiveBayes,
    rows: tuple[Any, ...],
    label: np.ndarray,
    drawn: dict[str, np.ndarray],
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(S, N) each: log p(row, label | θ), log p(label | row, θ), and the index of a label drawn given row and θ."""
    rng = np.random.default_rng(seed)
    n_draws, n_classes = drawn["class_prob"].shape
    row, own = np.empty((n_draws, len(label))), np.empty((n_draws, len(label)))
    predicted = np.empty((n_draws, len(label)), np.min_scalar_type(n_classes))
    n_parameters = sum(values[0].size for values in drawn.values())
    for piece, x, (labels,) in blocks(rows, len(label), label, cells=n_classes):
        n = piece.stop - piece.start
        log_base = np.zeros(len(labels))
        for r in rows:
            log_base[:n] += r.log_base(piece.start, piece.stop)
        chunk = max(1, min(n_draws, _MOST_CELLS // (n_classes * len(labels) + n_parameters)))
        for first in range(0, n_draws, chunk):
            # The last chunk overlaps the one before: one shape, one compilation.
            part = slice(min(first, n_draws - chunk), min(first + chunk, n_draws))
            draws = read_as_classes(encoding, posterior, drawn, part)
            uniform = rng.random((chunk, len(labels)))
            found = _score_chunk(posterior, draws, x, labels, log_base, uniform)
            for out, values in zip((row, own, predicted), found, strict=True):
                out[part, piece] = values[:, :n]
        _require_defined(own[:, piece], piece.start)
    return row, own, predicted


def _require_defined(own: np.ndarray, start: int) -> None:
    undefined = np.isnan(own).any(axis=0)
    if undefined.any():
        raise ValueError(
            f"X: row {start + int(np.argmax(undefined))} has no class probabilities under some draws: in every class a "
            "parameter is 0 to the precision of float64, as concentrations near 0 make them. Leave the row out, or "
            "choose a larger alpha."
        )


@float64
def _score_chunk(*arguments: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return _score_kernel(*arguments)


@jax.jit
def _score_kernel(
    posterior: NaiveBayes,
    draws: JointLikelihood,
    x: tuple[Any, ...],
    label: jax.Array,
    log_base: jax.Array,
    uniform: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """For S draws and N rows, each (S, N)."""
    joint = joint_of_draws(draws, x)
    log_base = log_base + kernel_log_base(posterior.blocks, x)
    log_prob = log_normalize(joint)
    index = label[None, :, None]
    row, own = (jnp.take_along_axis(scores, index, axis=2)[:, :, 0] for scores in (joint, log_prob))
    below = jnp.cumsum(jnp.exp(log_prob), axis=2)
    predicted = jnp.sum(below[:, :, :-1] <= uniform[:, :, None] * below[:, :, -1:], axis=2)
    return row + log_base, own, predicted
