"""Rows under draws of the parameters: scores, class probabilities and labels, for some rows at a time.

Draws given the data are weighted by p(row | draw) to become draws given the row too. Few of them may have nearly all of
the weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Literal

import jax
import numpy as np

from bayesnb._util.arrays import scatter_rows
from bayesnb._util.precision import float64
from bayesnb._util.warnings import warn
from bayesnb.encoding import Rows, blocks, ignore_unknown
from bayesnb.encoding.encoded_rows import pad_rows
from bayesnb.families import Family
from bayesnb.families.arrays import kernel, logsumexp, xp
from bayesnb.families.protocol import Variates
from bayesnb.fitted import scoring
from bayesnb.fitted.scoring import pad
from bayesnb.fitted.state import Fitted
from bayesnb.model import JointLikelihood, NaiveBayes, kernel_log_base, log_normalize
from bayesnb.uncertainty.draws import CLASS_PROB, HostVariates, ask, require_proper, run
from bayesnb.uncertainty.given_draws import (
    Hyperparameters,
    Parameters,
    joint_given,
    joint_of_draws,
    read_draws,
    read_parameters,
    read_sites,
    stacked_likelihood,
)
from bayesnb.uncertainty.score_moments import row_cumulants, skewed, skewness

Given = Literal["row", "data"]
Method = Literal["moments", "draws"]

_MOST_CELLS = 2**22
_LABELLED_CELLS = 2**17
_LEAST_SIZE = 100  # Five draws lie beyond each end of a 90% interval.


# -- rows, some at a time ------------------------------------------------------------------------

RowFunction = Callable[[tuple[Rows, ...], int], np.ndarray]
"""Function of encoded rows and of their number n; returns an array (n, …)."""


@float64
def map_rows(fitted: Fitted, X: object, function: RowFunction, summed: RowFunction | None = None) -> np.ndarray:
    """Return function(encoded rows of X, N), an (N, …) array, by one call for all rows.

    Rows where missing cells on arcs are summed out go to `summed`, in a call of their own.

    `summed` defaults to `function`.
    """
    table = fitted.table(X)
    rows = fitted.rows(table)
    sums = reduce(np.logical_or, (r.summed for r in rows), np.zeros(table.n_rows, bool))
    if summed is None or not sums.any():
        return function(rows, table.n_rows)
    parts = []
    for mask, chosen in ((~sums, function), (sums, summed)):
        if mask.any():
            # Values that are not levels were reported with the whole table.
            part = fitted.encoding.rows(table.take(mask), ignore_unknown)
            parts.append((mask, chosen(part, int(mask.sum()))))
    return scatter_rows(parts)


def map_blocks(
    rows: tuple[Rows, ...], n: int, function: Callable[[tuple[object, ...], int], np.ndarray], cells: float
) -> np.ndarray:
    """Compute (n, …) `function` of each block of rows and of its number of rows without padding.

    `cells` is the count of numbers in memory that a row needs.
    """
    return scoring.map_rows(rows, n, lambda x, real: function(x, int(real.sum())), np.ones(n), cells=cells)


def padded_posterior(fitted: Fitted) -> NaiveBayes:
    """Return the posterior with levels padded for the kernels; raise ImproperPosteriorError if it is improper."""
    require_proper(fitted.encoding, fitted.posterior)
    return pad(fitted.encoding, fitted.posterior)


# -- weights p(row | draw), and scores averaged with them ---------------------------------------


_log_row = kernel(partial(logsumexp, axis=2))


def row_weights(joint: jax.Array) -> np.ndarray:
    """(S, N) weights p(row | draw) of draws, relative to the largest, from log p(class, row | draw) (S, N, C)."""
    log_weight = np.asarray(_log_row(joint))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.exp(log_weight - log_weight.max(axis=0)))


def effective_size(weight: np.ndarray) -> np.ndarray:
    """(N,) effective sample size (Σw)²/Σw² of S draws with weights (S, N) (Kish 1965)."""
    return np.asarray(weight.sum(axis=0) ** 2 / (weight**2).sum(axis=0))


def resample(weight: np.ndarray) -> np.ndarray:
    """(S, N) indices of S draws, drawn systematically with probabilities in proportion to their weights (S, N)."""
    n_draws = len(weight)
    below = np.cumsum(weight, axis=0) / weight.sum(axis=0)
    at = (np.arange(n_draws) + 0.5) / n_draws
    return np.stack([np.searchsorted(column, at) for column in below.T], axis=1).clip(0, n_draws - 1)


def warn_of_collapse(size: np.ndarray, n_draws: int) -> None:
    """Warn if rows have an effective sample size (N,) below 100, or below half of the draws if these are fewer."""
    low = size < min(_LEAST_SIZE, n_draws / 2)
    if low.any():
        row = int(np.nanargmin(size))
        warn(
            f"The results of {int(low.sum())} of {len(size)} rows are mostly Monte Carlo error: few of {n_draws} draws "
            f"have a large p(row | draw) (least effective sample size: {size[row]:.1f}, row {row}). Pass the object "
            "itself that posterior_draws, to_arviz or run_nuts returned for this classifier, whose parameters are then "
            "integrated out; or leave draws= out. More draws help only if the model has few parameters."
        )


@kernel(static_argnames="output")
def average_joint(joint: jax.Array, output: Callable[[jax.Array], jax.Array] = log_normalize) -> jax.Array:
    """Apply `output`, by default log P(class | row), to log of p(class, row | draw) (S, N, C) averaged over draws."""
    return output(logsumexp(joint, axis=0) - xp.log(joint.shape[0]))


@float64
def score_draws(
    fitted: Fitted,
    X: object,
    groups: Callable[[int], Iterable[tuple[np.ndarray, Parameters | Hyperparameters]]],
    output: Callable[[jax.Array], jax.Array],
) -> np.ndarray:
    """Apply `output` to log of p(class, row | draw) averaged over draws (N, C), for all rows of X; warn of few draws.

    `groups` takes N and yields masks (N,) of the rows of each group, and the draws for these rows.
    """
    table = fitted.table(X)
    encoded = fitted.rows(table)  # Values that are not levels are reported with the whole table.
    parts, sizes, n_draws = [], list[np.ndarray](), 1
    for mask, drawn in groups(table.n_rows):
        n_draws = len(drawn)
        rows = encoded if mask.all() else fitted.encoding.rows(table.take(mask), ignore_unknown)
        score_block = partial(_score_block, fitted, drawn, output, sizes)
        cells = n_draws * len(fitted.encoding.classes) / 4
        parts.append((mask, map_blocks(rows, int(mask.sum()), score_block, cells)))
    warn_of_collapse(np.concatenate(sizes), n_draws)
    return scatter_rows(parts).astype(parts[0][1].dtype)


def _score_block(
    fitted: Fitted, drawn: Any, output: Callable[[jax.Array], jax.Array], sizes: list[np.ndarray], x: Any, n: int
) -> np.ndarray:
    """Apply `output` to log averages (n, C) of a block of rows; append their effective sample sizes to `sizes`."""
    joint = xp.concatenate(list(drawn.joints(fitted, x)))
    sizes.append(effective_size(row_weights(joint))[:n])
    return np.asarray(average_joint(joint, output))[:n]


# -- draws of class probabilities ----------------------------------------------------------------

DrawsFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Function of draws (S, n, C) of log P(class | row, θ) and of log P(class | row) (n, C); returns an array (n, …)."""


@dataclass(frozen=True)
class RowSampler:
    """Draws of log P(class | row, θ) for the rows of a table.

    Under θ | D, row the class k of the row is drawn from P(k | row, D). Then the parameters of class k know the
    row, and those of the other classes do not.

    Parameters
    ----------
    method : {"moments", "draws"}
        Whether the row's log-likelihoods are cubics of normal variates with three exact moments, or come from draws of
        θ. Rows in which missing cells are summed out have no moments, and are always drawn.
    given : {"row", "data"}
        Whether the posterior knows the row.
    draws : int
        Number of draws; 1 if `drawn` is given.
    seed : int
        The same seed gives the same draws.
    drawn : Parameters or Hyperparameters, optional
        S draws of θ | D, or of hyperparameters φ_s, for each of which one θ is drawn. With the row added, they are
        drawn again, systematically, with weights p(row | θ) or p(row | D, φ_s).
    """

    method: Method
    given: Given
    draws: int
    seed: int
    drawn: Parameters | Hyperparameters | None = None

    def map(
        self, fitted: Fitted, X: object, output: DrawsFunction, closed_form: RowFunction | None = None
    ) -> np.ndarray:
        """Apply `output` to draws (S, n, C) and to log P(class | row) (n, C), block by block of rows.

        `closed_form` takes the place of draws by moments.
        """
        n_draws = self.draws * (1 if self.drawn is None else len(self.drawn))
        cells = n_draws * len(fitted.encoding.classes) / (4 if isinstance(self.drawn, Parameters) else 16)
        posterior = padded_posterior(fitted) if self.drawn is None else None

        def summarize(method: Method, rows: tuple[Rows, ...], n: int) -> np.ndarray:
            """Return `output` (n, …) of the draws for n rows, block by block; warn if few draws have weight."""
            sizes = []

            def summarize_block(x: tuple[object, ...], n: int) -> np.ndarray:
                """Draw for one block, resample the draws by p(row | draw) if weighted, and apply `output`."""
                joint, drawn = self._draw(fitted, posterior, method, x, n_draws)
                if self.drawn is not None and self.given == "row":
                    weight = row_weights(joint)
                    sizes.append(effective_size(weight)[:n])
                    drawn = np.take_along_axis(drawn, resample(weight)[..., None], axis=0)
                return output(drawn[:, :n], np.asarray(average_joint(joint))[:n])

            answers = map_blocks(rows, n, summarize_block, cells)
            if sizes:
                warn_of_collapse(np.concatenate(sizes), n_draws)
            return answers

        by_draws: RowFunction = partial(summarize, "draws")
        if self.method == "draws":
            return map_rows(fitted, X, by_draws)
        return map_rows(fitted, X, closed_form or partial(summarize, "moments"), by_draws)

    def _draw(
        self, fitted: Fitted, posterior: Any, method: Method, x: tuple[object, ...], n_draws: int
    ) -> tuple[Any, np.ndarray]:
        """Return log p(class, row | D or draw) (M, n, C) and draws (S, n, C) of log P(class | row, θ) of some rows.

        The average of p(class, row | D or draw) over M is p(class, row) of the model.
        """
        if isinstance(self.drawn, Parameters):
            joint = xp.concatenate(list(self.drawn.joints(fitted, x)))
            return joint, np.asarray(_log_proba(joint))
        # Every block has the same variates: the draws for a row do not depend on its place in X.
        rng = np.random.default_rng(self.seed)
        order = (rng.permutation(n_draws) + rng.random(n_draws)) / n_draws
        joints, draws = [], []
        for model in [posterior] if self.drawn is None else self.drawn.models(fitted.encoding):
            joint = joint_given(model, x)  # (M, n, C), of M posteriors
            log_class, log_class_with_row = _draw_log_class(model.class_prior, (self.draws, len(joint)), rng)
            in_class = None
            if self.given == "row":
                order_of_model, order = np.split(order, [self.draws * len(joint)])
                in_class = _draw_class_of_row(joint, order_of_model.reshape(self.draws, -1))
            if model.weights is not None:
                log_class = log_class + model.weights.class_bias
            likelihood = (self._from_moments if method == "moments" else self._from_draws)(model, x, in_class, rng)
            log_proba = np.asarray(_combine(likelihood, log_class, log_class_with_row, in_class))
            joints.append(np.asarray(joint))
            draws.append(log_proba.reshape(-1, *joint.shape[1:]))
        return np.concatenate(joints), np.concatenate(draws)

    def _from_moments(self, model: Any, x: tuple[object, ...], in_class: Any, rng: np.random.Generator) -> jax.Array:
        """Draw (draws, 1, n, C) log p(row | class, θ) from skewed distributions with the cumulants of one posterior."""
        row = row_cumulants(model, x)

        def draw(score: Any) -> Any:
            z = rng.standard_normal((self.draws, 1, 1, score.mean.shape[1]))
            return score.mean + xp.sqrt(score.variance) * skewed(z, skewness(score.variance, score.third))

        without_row = draw(row.without_row)
        return without_row if in_class is None else xp.where(in_class, draw(row.with_row), without_row)

    def _from_draws(self, model: Any, x: tuple[object, ...], in_class: Any, rng: np.random.Generator) -> np.ndarray:
        """Draw (draws, M, n, C) log p(row | class, θ) exactly, by draws of θ from M posteriors."""
        total: Any = 0.0
        n_models, stacked = 1, None
        if in_class is not None:
            by_row = np.asarray(in_class).swapaxes(1, 2)  # (draws, n, M, C)
            n_models, stacked = by_row.shape[2], by_row.reshape(*by_row.shape[:2], -1)
        for family, rows in zip(model.blocks, x, strict=True):
            on_host = stacked is not None and family.draws_on_host
            if on_host:  # Codes of many rows are compiled, and would draw JAX into the draws.
                family, rows = jax.tree.map(np.asarray, (family, rows))
            asked = None if on_host else ask(_draw_likelihood, family, rows, None if stacked is None else stacked[:1])
            like = jax.tree.leaves(family)[:1] if asked is None else [a for part in asked for a in part]
            chunk = min(self.draws, max(1, _MOST_CELLS // (1 + sum(map(np.size, like)))))
            drawn = []
            for start in range(0, self.draws, chunk):
                # The last chunk is as long as the others: one compilation.
                part = stacked
                if stacked is not None:
                    part = np.resize(stacked[start : start + chunk], (chunk, *stacked.shape[1:]))
                if asked is None:
                    drawn.append(np.asarray(_draw_likelihood(HostVariates(rng), chunk, family, rows, part)))
                else:
                    drawn.append(np.asarray(run(_draw_likelihood, asked, chunk, rng, family, rows, part)))
            total = total + np.concatenate(drawn)[: self.draws]
        return total.reshape(*total.shape[:2], n_models, -1).swapaxes(1, 2)


def sampler_of_draws(fitted: Fitted, draws: object, given: Given, seed: int) -> RowSampler:
    """Return a sampler of log P(class | row, θ) that uses the draws that a user passed.

    Given the row, draws of the same posterior serve for their hyperparameters, and θ is drawn anew; otherwise, or of
    another origin, they are draws of θ.
    """
    drawn = read_draws(fitted, draws) if given == "row" else read_parameters(fitted, draws)
    if isinstance(drawn, Hyperparameters) and drawn.kind is None:
        return RowSampler("draws", given, len(next(iter(read_sites(draws).values()))), seed)
    return RowSampler("draws", given, 1, seed, drawn)


def _draw_likelihood(variates: Variates, n: int, family: Family, rows: object, in_class: Any) -> jax.Array:
    """Draw (n, N, C) log p(row | class, θ) of one block; θ given the row too in the class where `in_class` is true."""
    return family.draw_log_likelihood(variates, n, rows, in_class)


def _draw_log_class(
    class_prior: Any, shape: tuple[int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw (draws, M, C) log π up to a constant, and log π_k for each class k if one more row has class k."""
    if class_prior.fixed:
        log_prob = np.asarray(class_prior.log_prob)
        log_prob = np.broadcast_to(log_prob, (*shape, log_prob.shape[-1]))
        return log_prob, log_prob
    alpha = np.asarray(class_prior.concentration)
    gamma = rng.standard_gamma(alpha, (*shape, alpha.shape[-1]))
    with np.errstate(divide="ignore"):
        return np.log(gamma), np.log(gamma + rng.standard_exponential((*shape, 1)))


_log_proba = kernel(log_normalize)


@kernel
def _draw_class_of_row(joint: jax.Array, order: jax.Array) -> jax.Array:
    """Return (draws, M, n, C) one-hot classes of rows: the first whose cumulative probability exceeds `order`."""
    cumulative = xp.cumsum(xp.exp(log_normalize(joint)), axis=-1)
    k = xp.sum(order[..., None, None] >= cumulative[..., :-1], axis=-1)
    return k[..., None] == xp.arange(joint.shape[-1])


@kernel
def _combine(
    likelihood: jax.Array, log_class: jax.Array, log_class_with_row: jax.Array, in_class: jax.Array | None
) -> jax.Array:
    """Compute (draws, M, n, C) log P(class | row, θ) from drawn log-likelihoods and log class probabilities."""
    log_class, log_class_with_row = log_class[:, :, None], log_class_with_row[:, :, None]
    log_class = log_class if in_class is None else xp.where(in_class, log_class_with_row, log_class)
    return log_normalize(likelihood + log_class)


# -- labelled rows -------------------------------------------------------------------------------


def score_labelled(
    fitted: Fitted, rows: tuple[Rows, ...], label: np.ndarray, drawn: dict[str, np.ndarray], seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log p(row, label | θ), log p(label | row, θ), and drawn label indices, (S, N) each, for S draws of θ.

    The first includes base measures, such as -log x!. A label is drawn from P(class | row, θ) for each draw and row.
    Raises ValueError if a row has no class probabilities under some draw.
    """
    rng = np.random.default_rng(seed)
    n_draws, n_classes = drawn[CLASS_PROB].shape
    shape = n_draws, len(label)
    results = np.empty(shape), np.empty(shape), np.empty(shape, np.min_scalar_type(n_classes))
    n_parameters = sum(values[0].size for values in drawn.values())
    for piece, x, (labels,) in blocks(rows, len(label), label, cells=n_classes):
        n = piece.stop - piece.start
        log_base = pad_rows(np.zeros(n) + sum(r.log_base(piece.start, piece.stop) for r in rows), len(labels))
        chunk = max(1, min(n_draws, _LABELLED_CELLS // (n_classes * len(labels) + n_parameters)))
        for first in range(0, n_draws, chunk):
            # The last chunk overlaps the chunk before, so that all have one shape and one compilation.
            part = slice(min(first, n_draws - chunk), min(first + chunk, n_draws))
            draws = stacked_likelihood(fitted.encoding, fitted.posterior, drawn, part)
            uniform = rng.random((chunk, len(labels)))
            scores = _score_labelled(fitted.posterior, draws, x, labels, log_base, uniform)
            for result, values in zip(results, scores, strict=True):
                result[part, piece] = values[:, :n]
        undefined = np.isnan(results[1][:, piece]).any(axis=0)
        if undefined.any():
            raise ValueError(
                f"X: row {piece.start + int(np.argmax(undefined))} has no class probabilities under some draws, as a "
                "parameter of every class is 0 to float64. Leave the row out, or choose a larger alpha."
            )
    return results


@float64
@kernel
def _score_labelled(
    posterior: NaiveBayes, draws: JointLikelihood, x: Any, label: jax.Array, log_base: jax.Array, uniform: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Compute the results (S, n) of `score_labelled` for one block of rows; `uniform` (S, n) picks the drawn labels."""
    joint = joint_of_draws(draws, x)
    log_prob = log_normalize(joint)
    index = label[None, :, None]
    row, of_label = (xp.take_along_axis(scores, index, axis=2)[:, :, 0] for scores in (joint, log_prob))
    below = xp.cumsum(xp.exp(log_prob), axis=2)
    predicted = xp.sum(below[:, :, :-1] <= uniform[:, :, None] * below[:, :, -1:], axis=2)
    return row + log_base + kernel_log_base(posterior.blocks, x), of_label, predicted
