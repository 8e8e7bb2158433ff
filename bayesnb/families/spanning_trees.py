"""Sums over all spanning trees of a graph, and draws of trees, in logarithms, so that weights may span any range.

A vertex k is taken out of the graph by giving each two of its neighbours the weight w_ik w_jk / Σ_m w_km more; that
takes the factor Σ_m w_km out of the sum over trees Π w (star and mesh, the elimination of the graph's Laplacian). There
is not a subtraction, so that nothing cancels, and each step can be undone at random, which draws a tree.

References
----------
Meilă & Jaakkola, *Tractable Bayesian learning of tree belief networks*, Stat. Comput. 16 (2006). Colbourn, Day & Nel,
*Unranking and ranking spanning trees of a graph*, J. Algorithms 10 (1989), for the way back.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families._namespace import scan, segment_max, set_at, sigmoid, xp
from bayesnb.families._pytree import Array

NEVER = -1e300
_AT_ONCE = 8


def pair_index(n: int) -> Int[np.ndarray, "n n"]:
    """(n, n) index of each pair of vertices in the order (0, 1), (0, 2), …, (n - 2, n - 1); 0 on the diagonal."""
    index = np.zeros((n, n), np.int32)
    index[np.triu_indices(n, 1)] = np.arange(n * (n - 1) // 2)
    return index + index.T


def log_sum(log_weight: Float[Array, "n n *B"]) -> Float[jax.Array, "*B"]:
    """Log Σ over all spanning trees of the product of edge weights, given symmetric log weights (n, n, *batch)."""

    def without(state: tuple[Any, Any], k: Any) -> tuple[tuple[Any, Any], None]:
        """Eliminate vertex k from the weights, and add the log of its factor Σ_m w_km to the total."""
        w, factor, _ = eliminate(state[0], k)
        return (w, state[1] + factor), None

    w, total = xp.asarray(log_weight), xp.zeros(xp.shape(log_weight)[2:])
    # Of the vertices that are left some are taken out at once, as each size is compiled anew.
    for size in range(len(w), 1, -_AT_ONCE):
        vertices = xp.arange(size - 1, max(0, size - 1 - _AT_ONCE), -1)
        (w, total), _ = scan(without, (w[:size, :size], total), vertices)
    return total


def edge_probability(log_weight: Float[Array, "n n"]) -> Float[jax.Array, "n n"]:
    """(n, n) probability of each edge in a random spanning tree with probability ∝ Π w, given symmetric log weights.

    These are the derivatives of `log_sum` by the log weights.
    """
    n = len(xp.asarray(log_weight))

    def put_back(probability: jax.Array, step: tuple[Any, ...]) -> tuple[jax.Array, None]:
        """Insert vertex k into the graph of the vertices below k: an edge there may stand for the way through k."""
        k, w, _, factor, row = step
        # Rounded as in `eliminate`, so that small probabilities keep their digits.
        excess = row[:, None] + (row - factor) - w
        through, direct = probability * sigmoid(excess), probability * sigmoid(-excess)
        more = xp.sum(through, axis=1)
        of_vertex = xp.maximum(more + xp.exp(row - factor) * (1.0 - 0.5 * xp.sum(more)), 0.0)  # rounding may be below 0
        is_k = xp.arange(n) == k
        return xp.where(is_k, of_vertex[:, None], xp.where(is_k[:, None], of_vertex, direct)), None

    return scan(put_back, xp.zeros((n, n)), _eliminations(log_weight))[0]


def eliminate(w: jax.Array, k: int | jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Eliminate vertex k: log weights (n, n, …) of vertices below k, log Σ_m w_km, log w_km (`NEVER` from k on)."""
    below = (xp.arange(len(w)) < k).reshape(-1, *[1] * (w.ndim - 2))
    row = xp.where(below, w[k], NEVER)
    top = xp.max(row, axis=0)
    factor = top + xp.log(xp.sum(xp.exp(row - top), axis=0))
    mesh = row[:, None] + (row - factor)[None]
    return xp.maximum(w, mesh) + xp.log1p(xp.exp(-xp.abs(w - mesh))), factor, row


def _eliminations(log_weight: Float[Array, "n n"]) -> tuple[jax.Array, ...]:
    """Vertices k = 1 … n - 1, the log weights before each is eliminated, and what `eliminate` returns."""

    def take_out(w: jax.Array, k: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        """Eliminate vertex k; return the remaining weights, and what is needed to put k back."""
        after, factor, row = eliminate(w, k)
        return after, (k, w, after, factor, row)

    w = xp.asarray(log_weight)
    return scan(take_out, w, xp.arange(1, len(w)), reverse=True)[1]


def draw(log_weight: Float[Array, "n n"], log_uniform: Array, gumbel: Array) -> Int[jax.Array, "n"]:
    """(n,) parent of each vertex in a random spanning tree with probability ∝ Π w; the root, vertex n - 1, has itself.

    Parameters
    ----------
    log_weight : (n, n) array
        Logarithms of the weights of the edges.
    log_uniform, gumbel : (n, n) arrays
        Logarithms of uniform variates, and standard Gumbel variates: one row for each step, one column for each vertex.
    """
    n = len(xp.asarray(log_weight))
    vertex = xp.arange(n)

    def put_back(parent: jax.Array, step: tuple[Any, ...]) -> tuple[jax.Array, None]:
        """Insert vertex k into the random tree of the vertices below k, given by `parent` (n,)."""
        k, _, after, factor, row, log_u, noise = step
        # With the share of k in its weight an edge stands for the way through k, and is not an edge of its own.
        through = (parent != vertex) & (log_u < row + row[parent] - factor - after[vertex, parent])
        parent = xp.where(through, vertex, parent)
        above = _ancestors(parent)
        tree = xp.argmax(above & (parent == vertex), axis=1)
        score = xp.where(vertex < k, row + noise, -xp.inf)
        chosen = (score == segment_max(score, tree, n)[tree]) & (vertex < k)
        # Each tree hangs from k by the vertex that is chosen in it: what leads there from its root is turned round.
        turned = xp.any(above & chosen[:, None], axis=0) & (parent != vertex)
        parent = set_at(parent, xp.where(turned, parent, n), vertex)
        return xp.where(chosen, k, parent), None

    return scan(put_back, vertex, (*_eliminations(log_weight), log_uniform[1:], gumbel[1:]))[0]


def _ancestors(parent: jax.Array) -> jax.Array:
    """(n, n) of bool: whether the second vertex is the first or one of its ancestors."""
    n = len(parent)
    reach = xp.eye(n) + (parent[:, None] == xp.arange(n))
    for _ in range(math.ceil(math.log2(max(n, 2)))):
        reach = xp.minimum(reach @ reach, 1.0)
    return reach > 0
