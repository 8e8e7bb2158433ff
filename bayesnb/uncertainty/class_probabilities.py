"""Uncertainty of the class probabilities of rows: by moments of scores, or by draws of parameters, own or given.

Draws given the data are weighted by p(row | draw) to become draws given the row too; few of them may have nearly all
of the weight.

Moments and draws are both here since each is better somewhere: for two classes the moments of 10,000 rows of 30
columns take .4 s, and 2,000 draws of each row 15 s, for rows of 50 words 300 s. Sums over missing cells of a network,
and classes that share parameters, have no moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Literal

import jax
import numpy as np
import pandas as pd

from bayesnb._util.arguments import (
    Seed,
    find_class,
    read_seed,
    require_choice,
    require_integer,
    require_probability,
)
from bayesnb._util.arrays import MOST_NUMBERS, require_memory, scatter_rows
from bayesnb._util.precision import float64
from bayesnb._util.warnings import warn
from bayesnb.encoding import Rows, ignore_unknown
from bayesnb.encoding.encoded_rows import CELLS
from bayesnb.families.arrays import Array, kernel, logsumexp, map_leading_axis, xp
from bayesnb.families.protocol import Cumulants, Family, Replayer, Variates
from bayesnb.fitted import scoring
from bayesnb.fitted.scoring import pad
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes, TermWeights, log_normalize
from bayesnb.uncertainty.draws import (
    ROWS,
    draw_by_rows,
    draw_posterior,
    require_proper,
)
from bayesnb.uncertainty.given_draws import (
    Hyperparameters,
    Parameters,
    has_origin,
    joint_given,
    read_draws,
    read_parameters,
    read_sites,
)
from bayesnb.uncertainty.row_variates import TrainingData
from bayesnb.uncertainty.score_moments import (
    probability_interval,
    row_cumulants,
    score_cumulants,
    skewed,
    skewness,
    split_entropy,
    weighted_cumulants,
)
from bayesnb.uncertainty.variates import HostVariates, ShapeRecorder, ask, draw_variates, run

# == Rows under draws of the parameters: scores, class probabilities and labels, for some rows at a time

Given = Literal["row", "data"]
Method = Literal["moments", "draws"]

_MOST_CELLS = 2**22
_LEAST_SIZE = 100  # Five draws lie beyond each end of a 90% interval.


# -- rows, some at a time ------------------------------------------------------------------------

RowFunction = Callable[[tuple[Rows, ...], int], np.ndarray]
"""Function of encoded rows and of their number n; returns an array (n, …)."""


@float64
def evaluate_rows(fitted: Fitted, X: object, function: RowFunction, summed: RowFunction | None = None) -> np.ndarray:
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
    """Compute (n, …) `function` of each piece of rows and of its number of rows without padding.

    `cells` is the count of numbers in memory that a row needs.
    """
    return scoring.map_rows(rows, n, lambda x, real: function(x, int(real.sum())), np.ones(n), cells=cells)


def padded_posterior(fitted: Fitted) -> NaiveBayes:
    """Return the posterior with levels padded for the kernels; raise ImproperPosteriorError if it is improper."""
    require_proper(fitted.encoding, fitted.posterior)
    return pad(fitted.encoding, fitted.posterior)


# -- weights p(row | draw), and scores averaged with them ---------------------------------------


_log_row = kernel(partial(logsumexp, axis=2))


def row_weights(joint: Array) -> np.ndarray:
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
        drawn = drawn.with_mean_divisors(fitted) if isinstance(drawn, Parameters) else drawn
        rows = encoded if mask.all() else fitted.encoding.rows(table.take(mask), ignore_unknown)
        score_block = partial(_score_block, fitted, drawn, output, sizes)
        cells = n_draws * len(fitted.encoding.classes) / 4
        parts.append((mask, map_blocks(rows, int(mask.sum()), score_block, cells)))
    warn_of_collapse(np.concatenate(sizes), n_draws)
    return scatter_rows(parts).astype(parts[0][1].dtype)


def _score_block(
    fitted: Fitted, drawn: Any, output: Callable[[jax.Array], jax.Array], sizes: list[np.ndarray], x: Any, n: int
) -> np.ndarray:
    """Apply `output` to log averages (n, C) of a piece of rows; append their effective sample sizes to `sizes`."""
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
    weights : TermWeights, optional
        As many draws of the weights of terms. Default: the weights are those of the model.
    """

    method: Method
    given: Given
    draws: int
    seed: int
    drawn: Parameters | Hyperparameters | None = None
    weights: TermWeights | None = None

    def map(
        self, fitted: Fitted, X: object, output: DrawsFunction, closed_form: RowFunction | None = None
    ) -> np.ndarray:
        """Apply `output` to draws (S, n, C) and to log P(class | row) (n, C), piece by piece of rows.

        `closed_form` takes the place of draws by moments.
        """

        def by_draws(rows: tuple[Rows, ...], n: int) -> np.ndarray:
            """Return `output` (n, …) of draws by θ; weighted terms have these in common for all rows."""
            sampler = self
            if self.drawn is None and fitted.weights is not None:
                drawn = Parameters(dict(draw_posterior(fitted, self.draws, self.seed)), self.weights)
                sampler = replace(self, draws=1, drawn=drawn)
            return sampler._map_rows(fitted, output, "draws", rows, n)

        if self.method == "draws":
            return evaluate_rows(fitted, X, by_draws)
        return evaluate_rows(fitted, X, closed_form or partial(self._map_rows, fitted, output, "moments"), by_draws)

    def _map_rows(
        self, fitted: Fitted, output: DrawsFunction, method: Method, rows: tuple[Rows, ...], n: int
    ) -> np.ndarray:
        """Return `output` (n, …) of the draws for n rows, block by block; warn if few draws have weight."""
        n_draws = self.draws * (1 if self.drawn is None else len(self.drawn))
        n_terms = 0 if self.weights is None else fitted.encoding.n_terms
        cells: float = max(n_draws, n_terms) * len(fitted.encoding.classes)
        require_memory(8 * cells, f"{n_draws:,} draws for a row", "Set fewer draws.", MOST_NUMBERS)
        if cells <= CELLS:  # Pieces of more rows are faster.
            cells /= 4 if isinstance(self.drawn, Parameters) or self.weights is not None else 16
        posterior, sizes = padded_posterior(fitted) if self.drawn is None else None, list[np.ndarray]()

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

    def _draw(
        self, fitted: Fitted, posterior: Any, method: Method, x: tuple[object, ...], n_draws: int
    ) -> tuple[Array, np.ndarray]:
        """Return log p(class, row | D or draw) (M, n, C) and draws (S, n, C) of log P(class | row, θ) of some rows.

        The average of p(class, row | D or draw) over M is p(class, row) of the model.
        """
        if isinstance(self.drawn, Parameters):
            joint = xp.concatenate(list(self.drawn.joints(fitted, x)))
            log_proba = np.asarray(_log_proba(joint))
            # Weighted scores are no log probabilities: the average over weights is that of P(class | row, draw).
            return joint if self.drawn.weights is None else log_proba, log_proba
        # Every block has the same variates: the draws for a row do not depend on its place in X.
        rng = np.random.default_rng(self.seed)
        if self.weights is not None:
            log_class = (
                _draw_log_class(posterior.class_prior, (self.draws, 1), rng)[0] + self.weights.class_bias[:, None]
            )
            z = rng.standard_normal(log_class.shape)
            log_proba = np.asarray(_draw_weighted(posterior.blocks, x, self.weights, log_class, z))
            return log_proba, log_proba
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

    def _from_moments(self, model: NaiveBayes, x: tuple[object, ...], in_class: Any, rng: np.random.Generator) -> Array:
        """Draw (draws, 1, n, C) log p(row | class, θ) from skewed distributions with the cumulants of one posterior."""
        row, z = row_cumulants(model, x), partial(rng.standard_normal, (self.draws, 1, 1, model.n_classes))
        without_row = _draw_skewed(row.without_row, z())
        return without_row if in_class is None else xp.where(in_class, _draw_skewed(row.with_row, z()), without_row)

    def _from_draws(self, model: NaiveBayes, x: tuple[object, ...], in_class: Any, rng: np.random.Generator) -> Array:
        """Draw (draws, M, n, C) log p(row | class, θ) exactly, by draws of θ from M posteriors.

        A block whose posterior is the same in all has M times as many draws of this one.
        """
        n_models, n_classes = np.shape(jax.tree.leaves(model.class_prior)[0])
        total = np.zeros(())
        for family, rows in zip(model.blocks, x, strict=True):
            n, counted = self.draws, None
            if in_class is not None:
                n_posteriors = len(jax.tree.leaves(family)[0]) // n_classes
                counted = np.asarray(in_class).reshape(-1, n_posteriors, *in_class.shape[2:])
                n = len(counted)
            on_host = in_class is not None and family.draws_on_host
            if on_host:  # Codes of many rows are compiled, and would draw JAX into the draws.
                family, rows = jax.tree.map(np.asarray, (family, rows))
            asked = None if on_host else ask(_draw_likelihood, family, rows, None if counted is None else counted[:1])
            like = jax.tree.leaves(family)[:1] if asked is None else [a for part in asked for a in part]
            chunk = min(n, max(1, _MOST_CELLS // (1 + sum(map(np.size, like)))))
            drawn = []
            for start in range(0, n, chunk):
                # The last chunk is as long as the others: one compilation.
                part = counted
                if counted is not None:
                    part = np.resize(counted[start : start + chunk], (chunk, *counted.shape[1:]))
                if asked is None:
                    drawn.append(np.asarray(_draw_likelihood(HostVariates(rng), chunk, family, rows, part)))
                else:
                    drawn.append(np.asarray(run(_draw_likelihood, asked, chunk, rng, family, rows, part)))
            draws = np.concatenate(drawn)[:n]
            total = total + draws.reshape(self.draws, n_models, *draws.shape[2:])
        return np.asarray(total)


@dataclass(frozen=True)
class AverageSampler:
    """Draws of log P(class | row, θ) of an average of models, whose parameters vary together as training rows do.

    Members share the variates of the rows, so that the draws of all members are one draw of the average.

    Parameters
    ----------
    draws, seed : int
        Number of draws, and seed.
    rows, groups
        Training rows, and the group of each.
    """

    draws: int
    seed: int
    rows: TrainingData | None
    groups: object

    def map(
        self, fitted: Fitted, X: object, output: DrawsFunction, closed_form: RowFunction | None = None
    ) -> np.ndarray:
        """Apply `output` to draws (S, n, C) and to log P(class | row) (n, C), some rows at a time."""
        drawn = dict[int, Parameters]()

        def score(member: Fitted, rows: tuple[Rows, ...], which: np.ndarray) -> np.ndarray:
            """Return (n, C, S) log p(class, row | θ) by one member, whose parameters are drawn at its first use."""
            if id(member) not in drawn:
                values = draw_by_rows(member, self.draws, self.seed, self.rows, self.groups)
                drawn[id(member)] = read_parameters(member, values)
            parameters = drawn[id(member)]

            def score_block(x: tuple[object, ...], n: int) -> np.ndarray:
                joints = [np.asarray(joint) for joint in parameters.joints(member, x)]
                return np.moveaxis(np.concatenate(joints)[:, :n], 0, -1)

            return map_blocks(rows, int(which.sum()), score_block, self.draws * len(member.encoding.classes) / 4)

        def summarize(rows: tuple[Rows, ...], n: int) -> np.ndarray:
            step, parts = max(1, _MOST_CELLS // (self.draws * len(fitted.encoding.classes))), []
            for start in range(0, n, step):
                index = np.arange(start, min(start + step, n))
                part = tuple(r.take(index) for r in rows)
                joint = np.moveaxis(fitted.score_models(part, len(index), score)[..., 0], -1, 0)
                parts.append(output(np.asarray(_log_proba(joint)), fitted.score(part, len(index), scoring.log_proba)))
            return np.concatenate(parts)

        return evaluate_rows(fitted, X, summarize)


def sampler_of_draws(fitted: Fitted, draws: object, given: Given, seed: int) -> RowSampler:
    """Return a sampler of log P(class | row, θ) that uses the draws that a user passed.

    Given the row, draws of the same posterior serve for their hyperparameters, and θ is drawn anew; otherwise, or of
    another origin, they are draws of θ.
    """
    drawn = read_draws(fitted, draws) if given == "row" else read_parameters(fitted, draws)
    if isinstance(drawn, Hyperparameters) and drawn.kind is None:
        return RowSampler("draws", given, len(next(iter(read_sites(draws).values()))), seed)
    return RowSampler("draws", given, 1, seed, drawn.with_weights(fitted, seed))


def _draw_skewed(scores: Cumulants, z: Any) -> Array:
    """Map standard normal variates to skewed ones with the given cumulants."""
    return scores.mean + xp.sqrt(scores.variance) * skewed(z, skewness(scores.variance, scores.third))


@kernel
def _draw_weighted(
    blocks: tuple[Family, ...], x: tuple[object, ...], weights: TermWeights, log_class: np.ndarray, z: np.ndarray
) -> jax.Array:
    """Draw (S, n, C) log P(class | row, θ) from weighted scores with three exact moments under draws of the weights.

    `log_class` and `z` (S, 1, C) are draws of the class's part of the score, and standard normal variates.
    """
    return log_normalize(_draw_skewed(weighted_cumulants(blocks, x, weights), z) + log_class)


def _draw_likelihood(variates: Variates, n: int, family: Family, rows: object, in_class: Any) -> jax.Array:
    """Draw (n, P, N, C) log p(row | class, θ) of one block, from P posteriors that are side by side as its classes.

    θ is given the row, too, in the class where `in_class` (n, P, N, C) is true; None: θ is given the data, and P is 1.
    Rows share variates under one posterior, so that each posterior has variates of its own.
    """
    if in_class is None or in_class.shape[1] == 1:
        return family.draw_log_likelihood(variates, n, rows, None if in_class is None else in_class[:, 0])[:, None]
    leaves, structure = jax.tree.flatten(family)
    fields = [v.reshape(in_class.shape[1], in_class.shape[3], *v.shape[1:]) for v in leaves if v.ndim >= 2]

    def draw(variates: Variates, n: int, fields: list[Array], in_class: Array) -> jax.Array:
        """Draw (n, N, C) from one posterior, given its fields (C, K, …)."""
        given = iter(fields)
        posterior = jax.tree.unflatten(structure, [next(given) if v.ndim >= 2 else v for v in leaves])
        return posterior.draw_log_likelihood(variates, n, rows, in_class)

    def ask_one(of_posterior: tuple[list[Array], Array]) -> tuple[list[jax.Array], list[jax.Array]]:
        """Parameters of the variates of one posterior, as `ask` returns them."""
        recorder = ShapeRecorder()
        draw(recorder, 1, *of_posterior)
        return recorder.gammas, recorder.normals

    in_class = in_class.swapaxes(0, 1)
    asked = map_leading_axis(ask_one, (fields, in_class[:, :1]))
    drawn = jax.tree.map(lambda v: v.swapaxes(0, 1), draw_variates(asked, n, variates))
    each = map_leading_axis(lambda given: draw(Replayer(given[0]), n, *given[1:]), (drawn, fields, in_class))
    return each.swapaxes(0, 1)


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


# == Uncertainty of P(class | row, θ): intervals, the split of entropy, moments of log odds ========

_WHAT = "P(class | row, θ)"
_NOT_GIVEN_ROW = (
    "given='row' is not available for draws that vary as the training rows do. Weighted by p(row | draw), or with the "
    "row added, such draws were tried, and cover less. Pass given='data', which is the default here."
)


def predict_interval(
    nb: Classifier,
    X: object,
    prob: float = 0.9,
    method: Method = "moments",
    given: Given | None = None,
    draws: object = 1000,
    seed: Seed = 0,
    *,
    rows: TrainingData | None = None,
    groups: object = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Equal-tailed posterior interval of P(class | row, θ) for each row and class.

    By default intervals hold if naive Bayes does: columns that repeat each other make them too narrow. With the
    training `rows` they also hold where columns depend on each other.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose predictions are described.
    X : array, sparse matrix or DataFrame of shape (N, F)
        Rows to predict.
    prob : float, default 0.9
        Posterior probability of the interval.
    method : {"moments", "draws"}
        "moments" approximates the scores log p(class, row | θ) by cubics of normal variates with their exact mean,
        variance and skewness, an accurate approximation. The quantiles for two classes are computed to 1e-10, those for
        more by Monte Carlo, with `draws` of the scores. "draws" samples θ itself, without approximation, and is far
        slower. "draws" is always used if classes share parameters (`FeatureAveragedNB`), and for rows in which missing
        cells on arcs of a network are summed out.
    given : {"row", "data"}, optional
        Condition of the posterior. "row": θ | data, row, for rows from the population of the data; the average of
        P(class | row, θ) is `predict_proba`. "data": θ | data, for rows fixed in advance; the average is not
        `predict_proba`. Default: "row"; but "data" for a classifier whose terms are weighted, because weighted terms do
        not define a distribution of rows.
    draws : int, or return value of `posterior_draws`, `to_arviz`, `run_nuts` or `sample_latent`
        Number of draws, if the method draws; or draws that replace the exact posterior, for every method. With
        `given="data"` these are the draws of θ. With `given="row"`, draws of the posterior of the same model provide
        the hyperparameters, and θ is drawn exactly given the hyperparameters and the row; other draws of θ are
        resampled in proportion to p(row | θ).
    seed : int, JAX key, RandomState or Generator
        The same seed gives the same draws.
    rows : tuple (X, y) or (X, y, sample_weight), optional
        Rows that `nb` has counted, all of them: the parameters are drawn so that they vary together as the rows do, see
        `posterior_draws`. The condition of the posterior is then "data".
    groups : array-like, optional
        Group of each training row, such as a patient, whose rows vary together.

    Returns
    -------
    lower, upper : (N, C) arrays
        Ends of the interval of P(class | row, θ), classes in the order of `nb.classes_`.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If `nb` has no posterior, such as an `AODE`; if `given="row"` and terms are weighted.
    ValueError
        If an argument is not one of the above.

    Warns
    -----
    UserWarning
        If the intervals of some rows depend on few of the given draws. The message gives the smallest effective sample
        size.

    Notes
    -----
    The scores s_c = log π_c + log p(row | c, θ) are independent between classes except for π, and θ given the data and
    the row has the density Σ_k P(k | row, D) p(θ | D, (row, k)). So the logit s_1 - s_0 of two classes is a mixture of
    two distributions whose moments are known exactly, see
    docs/derivations/prediction_and_uncertainty.md, "Uncertainty of class probabilities".

    The interval describes the uncertainty about the parameters *if naive Bayes holds*. It is not the probability that a
    prediction is right, and it becomes narrower with more rows whether or not the model is right. For a structure the
    interval is conditional on the structure: with a tree that was learned from the same rows 90% intervals cover
    .85–.86, with the true tree .90. The weights of a `WeightedNB` are uncertain, too, and are drawn with the scores or
    the parameters.

    `predict_proba` is the mean over the parameters, and the ends of the interval are quantiles. If the data determine
    the parameters poorly, most draws are close to 0 or 1, and their mean may lie outside a 90% interval.

    Examples
    --------
    With each row ten times the interval is narrower, whether or not naive Bayes holds.

    >>> from bayesnb import CategoricalNB, predict_interval
    >>> X, y = [["red"], ["red"], ["green"], ["red"]], ["ripe", "ripe", "raw", "raw"]
    >>> for n in (1, 10):
    ...     nb = CategoricalNB().fit(X * n, y * n)
    ...     lower, upper = predict_interval(nb, [["red"]])
    ...     print(nb.predict_proba([["red"]])[0, 1].round(2), lower[0, 1].round(2), upper[0, 1].round(2))
    0.6 0.22 0.92
    0.66 0.51 0.79
    """
    require_probability("prob", prob)
    tails = np.array([(1 - prob) / 2, (1 + prob) / 2])

    def by_moments(weight: np.ndarray, scores: Cumulants, _: np.ndarray) -> np.ndarray:
        return probability_interval(weight, scores, tails)

    def by_draws(log_proba: np.ndarray, _: np.ndarray) -> np.ndarray:
        return np.stack(np.quantile(np.exp(log_proba), tails, axis=0), axis=1)

    fitted = require_posterior(nb, _WHAT, draws, rows)
    sampler = choose_sampler(fitted, given, method, draws, seed, rows, groups)
    ends = _summarize(fitted, X, sampler, by_moments, by_draws)
    return ends[:, 0], ends[:, 1]


def decompose_uncertainty(
    nb: Classifier,
    X: object,
    given: Given | None = None,
    method: Method = "moments",
    draws: object = 1000,
    seed: Seed = 0,
    *,
    rows: TrainingData | None = None,
    groups: object = None,
) -> pd.DataFrame:
    """Decompose the entropy of the class of each row into an aleatoric and an epistemic part.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose predictions are described.
    X : array, sparse matrix or DataFrame of shape (N, F)
        Rows to predict.
    given : {"row", "data"}, optional
        Condition of the posterior. "row": θ | data, row, for rows from the population of the data. "data": θ | data,
        for rows fixed in advance. Default: "row", or "data" if terms are weighted.
    method : {"moments", "draws"}
        "moments" approximates the scores log p(class, row | θ) by their exact mean, variance and skewness. "draws"
        samples θ itself, without approximation, and is far slower.
    draws : int, or return value of `posterior_draws`, `to_arviz` or `run_nuts`
        Number of draws, or draws that replace the exact posterior.
    seed : int, JAX key, RandomState or Generator
        The same seed gives the same draws.
    rows : tuple (X, y) or (X, y, sample_weight), optional
        Rows that `nb` has counted, all of them: the parameters are drawn so that they vary together as the rows do, see
        `posterior_draws`. The condition of the posterior is then "data".
    groups : array-like, optional
        Group of each training row, such as a patient, whose rows vary together.

    Returns
    -------
    DataFrame
        One row for each row of X, in nats but for `p_top`.

        total
            entropy of the average of P(· | row, θ); under `given="row"` that average is `predict_proba`, up
            to the approximation or the Monte Carlo error of the method.
        aleatoric
            average entropy of P(· | row, θ), which would remain if the parameters were known.
        epistemic
            total - aleatoric, the mutual information of class and parameters; never negative, since
            both terms are computed from the same draws or nodes.
        p_top
            posterior probability, under the model, that the class which `predict` returns is the most
            probable one given θ. Not the probability that the label is right.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If `nb` has no posterior, such as an `AODE`; if `given="row"` and terms are weighted.
    ValueError
        If an argument is not one of the above.

    References
    ----------
    Depeweg et al., *Decomposition of uncertainty in Bayesian deep learning* (2018), for the split.

    Examples
    --------
    Both rows are undecided: the first since 80 equal rows are, the second since no row of the data is like it.

    >>> from bayesnb import CategoricalNB, decompose_uncertainty
    >>> X, y = [["red"]] * 80 + [["green"], ["blue"]], ["ripe", "raw"] * 41
    >>> nb = CategoricalNB(categories=[["red", "green", "blue", "grey"]]).fit(X, y)
    >>> decompose_uncertainty(nb, [["red"], ["grey"]]).round(2)
       total  aleatoric  epistemic  p_top
    0   0.69       0.69       0.01    0.5
    1   0.69       0.50       0.19    0.5
    """
    fitted = require_posterior(nb, _WHAT, draws, rows)
    sampler = choose_sampler(fitted, given, method, draws, seed, rows, groups)
    values = _summarize(fitted, X, sampler, split_entropy, _split_drawn_entropy)
    index = getattr(X, "index", None)  # A list has a method of this name.
    columns = ["total", "aleatoric", "epistemic", "p_top"]
    return pd.DataFrame(values, columns=columns, index=index if isinstance(index, pd.Index) else None)


def log_odds_moments(
    nb: Classifier, X: object, against: object = None, given: Given = "data", draws: object = None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the exact posterior mean and sd of log P(c | row, θ) - log P(against | row, θ).

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose predictions are described.
    X : array, sparse matrix or DataFrame of shape (N, F)
        Rows to predict.
    against : label, optional
        Class of the denominator; default: the first of `nb.classes_`.
    given : {"data", "row"}
        Condition of the posterior. "data": θ | data, for rows fixed in advance. "row": θ | data, row, for rows from the
        population of the data.
    draws : return value of `posterior_draws`, `to_arviz` or `run_nuts`, optional
        Draws that replace the exact posterior.

    Returns
    -------
    mean, sd : (N, C) arrays
        Column c is class `nb.classes_[c]`; zeros in the column of `against`.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If no `draws` are passed, and classes share parameters (`FeatureAveragedNB`), or rows of a network have missing
        cells on arcs.
    ValueError
        If `against` is not a class of `nb`.

    Notes
    -----
    Nothing is sampled: the log likelihoods of the features add up, and their moments are closed forms of polygamma
    functions (docs/derivations/prediction_and_uncertainty.md, "Moments of log likelihoods"). The weights of a
    `WeightedNB` are taken as known, unless `draws` are passed.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, log_odds_moments
    >>> nb = CategoricalNB().fit([["red"]] * 4 + [["green"]] * 4, ["ripe"] * 3 + ["raw"] * 5)
    >>> mean, sd = log_odds_moments(nb, [["red"]])  # of ripe against raw
    >>> nb.classes_, mean.round(2), sd.round(2)
    (array(['raw', 'ripe'], dtype='<U4'), array([[0.  , 0.75]]), array([[0.  , 1.01]]))
    """
    fitted = require_posterior(nb, "log_odds_moments")
    given = resolve_given(fitted, given, draws)
    a = 0 if against is None else find_class("against", against, list(fitted.encoding.classes.values))
    if draws is not None:

        def by_draws(log_proba: np.ndarray, _: np.ndarray) -> np.ndarray:
            odds = log_proba - log_proba[..., a, None]
            return np.stack([odds.mean(axis=0), odds.std(axis=0)], axis=1)

        moments = sampler_of_draws(fitted, draws, given, 0).map(fitted, X, by_draws)
        return moments[:, 0], moments[:, 1]
    if fitted.prior.classes_share_parameters:
        raise NotImplementedError(
            f"log_odds_moments: the classes of {fitted.name} share parameters, so that the scores of classes are "
            "dependent, but the moments need independent scores; pass draws=posterior_draws(nb)."
        )

    def refuse(rows: tuple[Rows, ...], n: int) -> np.ndarray:
        raise NotImplementedError(
            f"log_odds_moments: {n} rows have a missing cell in a column with a parent or a child, and sums over its "
            "levels have no moments in closed form; pass draws=posterior_draws(nb)."
        )

    by_moments = _moments_row_function(fitted, given, lambda weight, scores, _: _log_odds(weight, scores, a))
    moments = evaluate_rows(fitted, X, by_moments, refuse)
    return moments[:, 0], moments[:, 1]


def choose_sampler(
    fitted: Fitted,
    given: Given | None,
    method: Method,
    draws: object,
    seed: Seed,
    rows: TrainingData | None = None,
    groups: object = None,
) -> RowSampler | AverageSampler:
    """Return the sampler of log P(class | row, θ) that these arguments of `predict_interval` ask for.

    Where classes share parameters the method is "draws", as their scores have no independent moments.
    """
    require_options(given, method)
    seed = read_seed(seed)
    if rows is not None or groups is not None:
        if fitted.member_names is not None:
            return _choose_average_sampler(fitted, given, draws, seed, rows, groups)
        draws = draw_by_rows(fitted, draws, seed, rows, groups)
    given = resolve_given(fitted, given, draws)
    if not isinstance(draws, int | float | np.number):
        return sampler_of_draws(fitted, draws, given, seed)
    n_draws = require_integer("draws", draws)
    method = "draws" if fitted.prior.classes_share_parameters else method
    return RowSampler(method, given, n_draws, seed, weights=fitted.draw_weights(n_draws, seed))


def _choose_average_sampler(
    fitted: Fitted, given: Given | None, draws: object, seed: int, rows: TrainingData | None, groups: object
) -> AverageSampler:
    """Return the sampler of an average of models; raise an error for given="row", and for weighted members."""
    if given == "row":
        raise NotImplementedError(_NOT_GIVEN_ROW)
    if fitted.weights is not None:
        raise NotImplementedError(
            f"Draws of a {fitted.name} around an average of models are not offered. Pass the average without weights, "
            "or a WeightedNB of another estimator, such as KDB()."
        )
    return AverageSampler(require_integer("draws", draws), seed, rows, groups)


def require_options(given: Given | None, method: Method) -> None:
    """Raise ValueError unless `given` and `method` are options of `predict_interval`."""
    if given is not None:
        require_choice("given", given, ("row", "data"))
    require_choice("method", method, ("moments", "draws"))


def resolve_given(fitted: Fitted, given: Given | None, draws: object = None) -> Given:
    """Return what the parameters are conditional on: "row" by default, and "data" where terms are weighted.

    It is "data", too, for `draws` that vary together as training rows do.

    Raises
    ------
    NotImplementedError
        If the terms are weighted, or draws vary as rows do, and `given` is "row".
    ValueError
        If `given` is neither "row" nor "data".
    """
    require_options(given, "moments")
    weighted, by_rows = fitted.prior.weights is not None, has_origin(draws, ROWS)
    if given == "row" and by_rows:
        raise NotImplementedError(_NOT_GIVEN_ROW)
    if given == "row" and weighted:
        raise NotImplementedError(
            f"given='row' is not available for a {fitted.name}: weighted terms define no probability of a row, so that "
            "a new row cannot update the parameters. Pass given='data', which is the default here."
        )
    return given or ("data" if weighted or by_rows else "row")


# A function of the weights and cumulants that `score_cumulants` returns, and of log P(class | row) (n, C).
ScoresFunction = Callable[[np.ndarray, Cumulants, np.ndarray], np.ndarray]


def _summarize(
    fitted: Fitted, X: object, sampler: RowSampler | AverageSampler, by_moments: ScoresFunction, by_draws: DrawsFunction
) -> np.ndarray:
    """Compute (N, …) summaries of P(class | row, θ): by moments if the sampler asks and C is 2, else by draws.

    Where weights are drawn, too, all are by draws. Rows in which missing cells are summed out have no moments, and are
    summarized by draws.
    """
    if (
        len(fitted.encoding.classes) != 2
        or isinstance(sampler, AverageSampler)
        or sampler.method == "draws"
        or sampler.weights is not None
    ):
        return sampler.map(fitted, X, by_draws)
    return sampler.map(fitted, X, by_draws, _moments_row_function(fitted, sampler.given, by_moments))


def _moments_row_function(fitted: Fitted, given: Given, output: ScoresFunction) -> RowFunction:
    """Return the function of encoded rows that applies `output` to the moments of their scores."""
    model, n_classes = padded_posterior(fitted), len(fitted.encoding.classes)
    what, advice = f"Moments of a row in {n_classes:,} classes", "Use predict_interval, which draws."
    require_memory(12 * n_classes**2, what, advice, MOST_NUMBERS)

    def summarize_block(x: tuple[object, ...], n: int) -> np.ndarray:
        return output(*jax.tree.map(lambda values: np.asarray(values)[:n], _scores(model, x, given)))

    return lambda rows, n: map_blocks(rows, n, summarize_block, 4 * n_classes**2)


@kernel(static_argnames="given")
def _scores(model: NaiveBayes, x: tuple[object, ...], given: Given) -> tuple[jax.Array, Cumulants, jax.Array]:
    """Return mixture weights (n, K), score cumulants (n, K, C) and log P(class | row) (n, C) of a piece of rows."""
    row = row_cumulants(model, x)
    return *score_cumulants(model, row, given), row.log_proba


def _log_odds(weight: np.ndarray, scores: Cumulants, against: int) -> np.ndarray:
    """(N, 2, C) mean and sd of the log odds of each class against one, under the mixture of these cumulants.

    The moments are E m_k, and E(v_k + m_k²) - (E m_k)², for the components' means m and variances v.

    Impossible classes have an infinite mean, and an sd of 0.
    """
    mean, variance = scores.mean, scores.variance
    with np.errstate(invalid="ignore"):
        odds = mean - mean[..., against, None]
    odds[..., against] = 0.0
    infinite = np.isinf(odds).any(axis=1)
    limit = odds.sum(axis=1, where=np.isinf(odds))
    odds = np.where(np.isinf(odds), 0.0, odds)
    other = np.arange(mean.shape[-1]) != against
    within = np.where(other, variance + variance[..., against, None], 0.0)
    average = np.sum(weight[..., None] * odds, axis=1)
    between = np.sum(weight[..., None] * (odds - average[:, None]) ** 2, axis=1)
    sd = np.sqrt(np.sum(weight[..., None] * within, axis=1) + between)
    return np.stack([np.where(infinite, limit, average), np.where(infinite, 0.0, sd)], axis=1)


def _split_drawn_entropy(log_proba: np.ndarray, predictive: np.ndarray) -> np.ndarray:
    """(N, 4) total, aleatoric and epistemic entropy in nats, and p_top, from draws (S, N, C) of log P(class | row, θ).

    p_top is the fraction of draws in which the class of largest log P(class | row), `predictive` (N, C), is on top.
    """
    p = np.exp(log_proba)
    average = p.mean(axis=0)
    total = 0.0 - np.sum(average * np.log(np.where(average > 0, average, 1.0)), axis=1)
    aleatoric = 0.0 - np.mean(np.sum(p * np.where(p > 0, log_proba, 0.0), axis=2), axis=0)
    p_top = np.mean(log_proba.argmax(axis=2) == predictive.argmax(axis=1), axis=0)
    return np.stack([total, aleatoric, total - aleatoric, p_top], axis=1)
