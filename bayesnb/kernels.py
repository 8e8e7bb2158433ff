"""Compiled kernels: count rows, update a prior, score rows, compute the evidence.

`count`, `update`, `log_joint` and `log_evidence` are pure functions of pytrees, for programs of your own: they work
under `jax.jit`, `jax.vmap` and `jax.grad`, in the precision that JAX is configured for. If all arguments are NumPy
arrays, results are NumPy arrays in float64, as those of the estimators, which call the same functions; few numbers are
then evaluated by NumPy, without compilation (see `families.arrays.kernel`). `update` is always compiled.

Priors, posteriors, statistics and likelihoods are pytrees whose leaves are arrays of floats, to be mapped, averaged,
differentiated, optimised and exported (`jax.export`). Groups of levels belong to the structure of the tree.

The other kernels of this module are for pieces of encoded rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np
from jaxtyping import Float, Int

from bayesnb._util.precision import float64
from bayesnb.encoding.encoded_rows import padded_size
from bayesnb.families import offers
from bayesnb.families.arrays import Array, is_host, kernel, logsumexp, xp
from bayesnb.model import (
    Estimate,
    JointLikelihood,
    NaiveBayes,
    Statistics,
    kernel_log_base,
    log_normalize,
    update_families,
)

P = ParamSpec("P")
R = TypeVar("R")

_PIECE = 2**18  # Copies of a piece stay in the cache; those of whole large models would take much memory.

Output = Callable[[Any], Any]
"""Function of joint log probabilities (N, C), such as `scoring.log_proba`."""


def _numpy_in_float64(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a kernel to compute in float64 if all arguments are NumPy's, also inside of a traced function."""
    in_float64 = float64(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not is_host(args, kwargs):
            return function(*args, **kwargs)
        with jax.ensure_compile_time_eval():
            return in_float64(*args, **kwargs)

    return call


def _public_kernel(**options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator of a kernel that keeps its types; `options` are those of `jax.jit`."""
    return lambda function: _numpy_in_float64(kernel(function, **options))


def _with_room(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate `count` to give tail counts in NumPy arrays room for the rows, as a compiled function cannot."""

    @wraps(function)
    def call(statistics: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        rows = x if isinstance(x, tuple) else (x,)
        if is_host(statistics, x) and len(rows) == len(statistics.blocks):
            pairs = zip(statistics.blocks, rows, strict=True)
            blocks = (b.with_room(b.room_for(r)) if hasattr(b, "with_room") else b for b, r in pairs)
            statistics = replace(statistics, blocks=tuple(blocks))
        return function(statistics, x, *args, **kwargs)

    return call  # type: ignore[return-value]


@_with_room
@_public_kernel()
def count(
    statistics: Statistics, x: object, label: Int[Array, "N"], weight: Float[Array, "*S N"] | None = None
) -> Statistics:
    """Statistics with labelled rows added: counts of levels, and moments of numbers by Chan's rule.

    Many weightings of the same rows, as those of a bootstrap, are counted at once by products of matrices.

    Parameters
    ----------
    statistics : Statistics
        Statistics of other rows, such as `Statistics.empty(prior)`.
    x : (N, F) array, or tuple of such arrays, one for each block
        Rows: codes of levels (N, F) or counts of levels (N, L) for Dirichlet blocks, numbers (N, F) for others. A code
        that is not one of 0 … L_f - 1 is a missing cell, as is a number that is NaN; counts of levels must be numbers.
    label : (N,) int array
        Index of the class of each row. A row with another label than 0 … C - 1 is not counted, whatever its cells are.
    weight : (N,) array, optional
        Replication count of each row; default: 1. A row of weight 0 is not counted, whatever its cells are; derivatives
        by its weight are those of adding the row, with infinite cells missing. The mean of a normal column is not
        defined where a class has no weight, and the derivatives of its moments are 0 there. A negative weight cannot be
        detected under `jit`. Of S weightings of the rows, (S, N), all statistics are returned, with S as first axis;
        cells of a row must be finite then if any of its weights is not 0.

    Returns
    -------
    Statistics

    Raises
    ------
    ValueError
        If shapes do not fit together, when the function is traced.
    TypeError
        If labels are not integers.

    See Also
    --------
    bayesnb.NaiveBayes.categorical : Prior from sizes, for a program without estimator.
    update : Posterior given the statistics.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import NaiveBayes, Statistics, kernels
    >>> prior = NaiveBayes.categorical(n_classes=2, n_levels=[2, 3])
    >>> rows, label = np.array([[0, 2], [1, 2], [1, 0]]), np.array([0, 1, 1])
    >>> kernels.count(Statistics.empty(prior), rows, label).blocks[0].count
    array([[1., 0., 0., 0., 1.],
           [0., 2., 1., 0., 1.]])

    Two draws of Rubin's Bayesian bootstrap (*The Bayesian bootstrap*, Ann. Stat. 9 (1981)): rows weighted by
    exponential variates.

    >>> weight = np.random.default_rng(0).exponential(size=(2, 3))
    >>> kernels.count(Statistics.empty(prior), rows, label, weight).class_count.round(2)
    array([[0.68, 1.04],
           [0.  , 2.18]])
    """
    label, class_count = xp.asarray(label), xp.asarray(statistics.class_count)
    weight = xp.ones(xp.shape(label)) if weight is None else xp.asarray(weight)
    if label.ndim != 1 or weight.ndim not in (1, 2) or weight.shape[-1:] != label.shape:
        shapes = f"label and weight have the shapes {label.shape} and {weight.shape}"
        raise ValueError(f"{shapes}; they must be (N,), and (N,) or (S, N) for S weightings.")
    if label.dtype.kind not in "iu":
        raise TypeError(f"label must be of integers, the indices of the classes; it is of {label.dtype}.")
    index = label.astype(xp.int32)
    is_class = (index == label) & (index >= 0) & (index < len(class_count))
    index, weight = xp.where(is_class, index, 0), xp.where(is_class, weight, 0.0)
    weight = weight.astype(jax.dtypes.canonicalize_dtype(class_count.dtype))
    is_counted = weight != 0 if weight.ndim == 1 else xp.any(weight != 0, axis=0)
    rows = _read_rows(x, statistics.blocks, is_counted)
    return statistics.observe(rows, index, weight, kernel_log_base(statistics.blocks, rows))


@_numpy_in_float64
def update(prior: NaiveBayes, statistics: Statistics) -> NaiveBayes:
    r"""Posterior, of the type of the prior, given sufficient statistics; compiled.

    For levels :math:`\alpha' = \alpha + n`; for Gaussian columns :math:`\kappa' = \kappa + n`,
    :math:`m' = (\kappa m + n\bar x)/\kappa'`, :math:`a' = a + n/2` and
    :math:`b' = b + M_2/2 + \kappa n(\bar x - m)^2/(2\kappa')`; for Poisson columns :math:`a' = a + \sum x` and
    :math:`b' = b + n` (Bernardo & Smith, *Bayesian Theory*, appendix A; docs/derivations/conjugate.md).

    Parameters
    ----------
    prior : NaiveBayes
        Prior; blocks that are derived from data, as `NaiveBayes.gaussian` has by default, are derived from
        `statistics` first.
    statistics : Statistics
        Sufficient statistics of labelled rows.

    Returns
    -------
    NaiveBayes
        Posterior. In NumPy arrays if both arguments are: then arrays are padded to few sizes, by priors of
        concentration 1 without counts, so that models of many sizes share one compiled function.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import NaiveBayes, Statistics, kernels
    >>> prior = NaiveBayes.categorical(n_classes=2, n_levels=[2, 3])
    >>> rows, label = np.array([[0, 2], [1, 2], [1, 0]]), np.array([0, 1, 1])
    >>> kernels.update(prior, kernels.count(Statistics.empty(prior), rows, label)).blocks[0].concentration
    array([[2., 1., 1., 1., 2.],
           [1., 3., 2., 1., 2.]])
    """
    _require_same_shapes(prior, statistics)
    return update_families(prior.derive(statistics), statistics, _update_family)


def _update_family(family: Any, statistics: Any) -> Any:
    """Posterior of one family. NumPy arrays of one shape are updated entry by entry, as padded vectors, in pieces."""
    (bare_family, layout), (bare_statistics, _) = _split_layout(family), _split_layout(statistics)
    bare = bare_family, bare_statistics
    shapes = {np.shape(leaf) for leaf in jax.tree.leaves(bare)}
    if len(shapes) > 1 or not is_host(bare):
        return replace(conjugate_update(*bare), **layout)
    (shape,) = shapes
    size, vectors = math.prod(shape), jax.tree.map(np.ravel, bare)
    piece = min(padded_size(size), _PIECE)
    pieces = [conjugate_update(*_cut(vectors, start, piece)) for start in range(0, max(1, size), piece)]
    posterior = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:size].reshape(shape), *pieces)
    return replace(posterior, **layout)


def _split_layout(tree: Any) -> tuple[Any, dict[str, Any]]:
    """Copy of a family or statistics without static fields and those that updates do not read, and these by name."""
    names = {f.name for f in fields(tree) if f.metadata.get("static")} | {*getattr(tree, "unread", ())}
    return replace(tree, **dict.fromkeys(names)), {name: getattr(tree, name) for name in names}


def _cut(vectors: tuple[Any, Any], start: int, n: int) -> tuple[Any, Any]:
    """Entries start … start + n - 1 of the vectors of a family and statistics; entries past the end are 1 and 0."""

    def cut(vector: np.ndarray, fill: float) -> np.ndarray:
        part = vector[start : start + n]
        return part if len(part) == n else np.append(part, np.full(n - len(part), fill))

    family, statistics = vectors
    return jax.tree.map(lambda v: cut(v, 1.0), family), jax.tree.map(lambda v: cut(v, 0.0), statistics)


@jax.jit
def conjugate_update(family: Any, statistics: Any) -> Any:
    """Compiled conjugate update of one family."""
    return family.update(statistics)


@_public_kernel(static_argnames="estimate")
def log_joint(model: NaiveBayes, x: object, estimate: Estimate = "predictive") -> Float[Array, "N C"]:
    """(N, C) log p(class, row) under a reading of the posterior, without base measures that all classes share.

    Parameters
    ----------
    model : NaiveBayes
        Posterior, or a prior.
    x : (N, F) array, or tuple of such arrays, one for each block
        Rows, as for `count`. A missing cell contributes nothing.
    estimate : {"predictive", "mean", "map"}, default="predictive"
        Parameters integrated out, or plugged in at the posterior mean or mode. For maximum likelihood read the "mean"
        of `update(prior.derive(statistics).improper(), statistics)`.

    Returns
    -------
    (N, C) array
        NaN where an estimate does not exist.

    Raises
    ------
    ValueError
        If the shape of x does not fit the model, when the function is traced; if the estimate is unknown; if the model
        is a prior that is still to be derived from data.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import NaiveBayes, Statistics, kernels
    >>> prior = NaiveBayes.categorical(n_classes=2, n_levels=[2, 3])
    >>> rows, label = np.array([[0, 2], [1, 2], [1, 0]]), np.array([0, 1, 1])
    >>> posterior = kernels.update(prior, kernels.count(Statistics.empty(prior), rows, label))
    >>> np.exp(kernels.log_joint(posterior, rows[:1])).round(3)  # 2/5 · 2/3 · 2/4, and 3/5 · 1/4 · 2/5
    array([[0.133, 0.06 ]])
    """
    return model.log_joint(_read_rows(x, model.blocks), estimate)


@_public_kernel()
def log_evidence(prior: NaiveBayes, statistics: Statistics) -> Array:
    """Scalar log marginal likelihood log p(X, y) of the counted rows under the prior, base measures included.

    Parameters
    ----------
    prior : NaiveBayes
        Prior; blocks that are derived from data are derived from `statistics` first.
    statistics : Statistics
        Sufficient statistics of labelled rows.

    Returns
    -------
    scalar array
        -inf if a concentration is 0.

    Examples
    --------
    The gradient by the concentration of all levels.

    >>> import jax, numpy as np
    >>> from bayesnb import NaiveBayes, Statistics, kernels
    >>> statistics = kernels.count(
    ...     Statistics.empty(NaiveBayes.categorical(2, [3])), np.array([[0], [0], [1]]), np.array([0, 0, 1])
    ... )
    >>> slope = jax.grad(lambda alpha: kernels.log_evidence(NaiveBayes.categorical(2, [3], alpha), statistics))
    >>> float(slope(1.0).round(3))  # two equal rows speak for a smaller one
    -0.25
    """
    _require_same_shapes(prior, statistics)
    return prior.derive(statistics).log_evidence(statistics)


def _read_rows(x: object, blocks: tuple[Any, ...], counted: Any = None) -> tuple[Any, ...]:
    """Rows of each block of families or statistics; cells of rows that are not `counted` (N,) are finite or missing.

    Raises ValueError if an array has another shape than the blocks take.
    """
    arrays = x if isinstance(x, tuple) else (x,)
    if len(arrays) != len(blocks):
        raise ValueError(f"x has {len(arrays)} blocks of columns; the model has {len(blocks)}. Pass a tuple of arrays.")
    rows, n_rows = [], None if counted is None else counted.shape[0]
    for b, (array, block) in enumerate(zip(arrays, blocks, strict=True)):
        if callable(block):
            raise ValueError(f"model: block {b} is to be derived from data. Pass a posterior, or `derive` it.")
        n_levels = jax.tree.leaves(block)[0].shape[-1]
        widths = {"numbers": n_levels}
        if offers(block, "rows"):
            widths = {"codes": block.num_groups, "counts": n_levels}
        array = xp.asarray(array) if isinstance(array, list) else array
        if (shape := getattr(array, "shape", None)) is not None:
            n_rows = shape[0] if shape and n_rows is None else n_rows
            if len(shape) != 2 or shape[0] != n_rows or shape[1] not in widths.values():
                wanted = " or ".join(f"({'N' if n_rows is None else n_rows}, {n}) {kind}" for kind, n in widths.items())
                raise ValueError(f"x[{b}] has the shape {shape}; rows of this block must be {wanted}.")
            if counted is not None and array.dtype.kind == "f":
                # Such a cell times a weight of 0 would be NaN. Codes that are not finite are missing anyway.
                instead = 0.0 if shape[1] == widths.get("counts") else xp.nan
                array = xp.where(counted[:, None] | xp.isfinite(array), array, instead)
        rows.append(block.rows(array) if offers(block, "rows") else array)
    return tuple(rows)


def _require_same_shapes(prior: NaiveBayes, statistics: Statistics) -> None:
    """Raise ValueError unless prior and statistics have the same classes, and blocks of the same shapes."""
    pairs = zip((prior.class_prior, *prior.blocks), (statistics.class_count, *statistics.blocks), strict=True)
    for b, (family, counted) in enumerate(pairs, -1):
        shapes = [np.shape(jax.tree.leaves(tree)[0]) for tree in (family, counted)]
        if shapes[0][-1:] != shapes[1][-1:] or (b >= 0 and shapes[0] != shapes[1]):
            what = "classes" if b < 0 else f"block {b}"
            raise ValueError(f"prior and statistics do not fit: {what} of the shapes {shapes[0]} and {shapes[1]}.")


# -- blocks of encoded rows ----------------------------------------------------------------------


@kernel(donate_argnums=0)
def add_rows(
    statistics: Statistics, x: tuple[object, ...], label: jax.Array, weight: jax.Array, log_base: jax.Array
) -> tuple[Statistics, jax.Array]:
    """Statistics with a block of encoded rows and their base measures (N,) added, and Σ weight.

    `statistics` is donated. The sum is ready when the rows have been read.
    """
    log_base = log_base + kernel_log_base(statistics.blocks, x)
    return statistics.observe(x, label, weight, log_base), xp.sum(weight)


@kernel(donate_argnums=0)
def add_responsibilities(
    statistics: Statistics, x: tuple[object, ...], weight: jax.Array, log_base: jax.Array
) -> tuple[Statistics, jax.Array]:
    """Statistics with rows added to every class by `weight` (N, C), and Σ weight; `statistics` is donated."""
    log_base = log_base + kernel_log_base(statistics.blocks, x)
    return statistics.observe_responsibilities(x, weight, log_base), xp.sum(weight)


@kernel(static_argnames="output")
def score(reading: JointLikelihood, x: tuple[object, ...], output: Output) -> jax.Array:
    """`output` of the joint log probabilities (N, C) of one piece of rows."""
    return output(reading.log_joint(x))


@kernel
def terms(reading: JointLikelihood, x: tuple[object, ...]) -> jax.Array:
    """(N, C, T) terms of one piece of rows."""
    return reading.terms(x)


@kernel
def sum_of_terms(reading: JointLikelihood, x: tuple[object, ...]) -> jax.Array:
    """(N, C, 1) log p(row | class) of one piece of rows, the sum of all terms, as a single term."""
    return reading.log_likelihood(x)[..., None]


@kernel(static_argnames="output")
def average_over_weights(
    terms: jax.Array, log_class: jax.Array, bias: jax.Array, weight: jax.Array, output: Output
) -> jax.Array:
    """`output` of log P(class | row), (N, C), averaged over S draws of weights of the terms (N, C, T)."""
    impossible = xp.any(xp.isneginf(terms), axis=-1)
    # (N, S, C); an impossible row stays impossible, also at weight 0.
    scores = xp.einsum("nct,st->nsc", xp.where(xp.isneginf(terms), 0.0, terms), weight)
    scores = xp.where(impossible[:, None], -xp.inf, scores) + (log_class + bias)
    return output(logsumexp(log_normalize(scores), axis=1) - xp.log(len(weight)))


@kernel
def log_add(total: jax.Array, scores: jax.Array, which: jax.Array) -> jax.Array:
    """(N, …) `total`, replaced by log(exp(total) + exp(scores)) in the rows where the mask `which` (N,) is true."""
    return xp.where(which.reshape(-1, *(1,) * (total.ndim - 1)), xp.logaddexp(total, scores), total)


@kernel
def log_base(statistics: tuple[Any, ...], x: tuple[object, ...], known: jax.Array) -> jax.Array:
    """(N,) log base measures of one piece of rows: `known` (N,) from the host plus those of the kernels."""
    return xp.asarray(known + kernel_log_base(statistics, x))


__all__ = ["count", "log_evidence", "log_joint", "update"]
