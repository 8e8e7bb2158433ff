"""Draws of log P(class | row, θ) for blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb.families.variates import Variates
from bayesnb.fitted import Fitted
from bayesnb.model import NaiveBayes, log_normalize
from bayesnb.uncertainty.by_blocks import PerBlock, over_blocks, proper_posterior
from bayesnb.uncertainty.hyperparameters import Hyperparameters
from bayesnb.uncertainty.importance import (
    effective_size,
    joint_given,
    log_row,
    of_average,
    resampled,
    warn_of_collapse,
)
from bayesnb.uncertainty.numpy_variates import ask, run
from bayesnb.uncertainty.score_cumulants import row_cumulants
from bayesnb.uncertainty.skew import skewed, skewness

_MOST_CELLS = 2**22


@dataclass(frozen=True)
class Sampler:
    """Draws of log P(class | row, θ), θ from the posterior or, `given="row"`, from that with the row added.

    For θ | D, row the class k of the row is drawn from P(k | row, D); then the parameters of class k know the
    row, and those of the others do not. `method` says whether the row's log-likelihoods are cubics of normal
    variates with three exact moments, or come from draws of θ; so they do where missing cells are summed out.

    Under draws φ_s of the hyperparameters the posterior is the average of S, from each of which comes one draw, by
    "draws" (`draws` is 1); with the row added each counts by p(row | D, φ_s), and they are drawn again so.
    """

    method: str
    given: str
    draws: int
    seed: int
    hyperparameters: Hyperparameters | None = None

    def map(self, fitted: Fitted, X: Any, output: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Apply `output` to draws (S, n, C) and to log P(class | row) (n, C), block by block of rows."""
        sizes: list[np.ndarray] = []
        summed = None if self.method == "draws" else replace(self, method="draws").of(fitted, output)
        found = over_blocks(fitted, X, self.of(fitted, output, sizes), summed)
        if sizes:
            warn_of_collapse(np.concatenate(sizes), self._n_draws)
        return found

    def of(
        self,
        fitted: Fitted,
        output: Callable[[np.ndarray, np.ndarray], np.ndarray],
        sizes: list[np.ndarray] | None = None,
    ) -> PerBlock:
        """The same of one block; effective sample sizes of its rows, where draws are weighted, go to `sizes`."""
        models, n_draws = self._models(fitted), self._n_draws

        def answer(x: tuple[Any, ...], real: slice) -> np.ndarray:
            # Every block has the same variates: the answer for a row does not depend on its place.
            rng = np.random.default_rng(self.seed)
            order = (rng.permutation(n_draws) + rng.random(n_draws)) / n_draws
            parts, first = [], 0
            for model in models():
                parts.append(self._draw(model, x, order[first:], rng))
                first += len(parts[-1][1])
            joint, drawn = (np.concatenate(part) for part in zip(*parts, strict=True))
            if len(joint) > 1:
                log_weight = np.asarray(log_row(joint))
                if sizes is not None:
                    sizes.append(effective_size(log_weight)[real])
                drawn = np.take_along_axis(drawn, resampled(log_weight)[..., None], axis=0)
            return output(drawn[:, real], np.asarray(of_average(joint, log_normalize))[real])

        return PerBlock(answer, n_draws * len(fitted.encoding.classes) / 16)

    @property
    def _n_draws(self) -> int:
        return self.draws * (1 if self.hyperparameters is None else len(self.hyperparameters))

    def _models(self, fitted: Fitted) -> Callable[[], Iterable[NaiveBayes]]:
        """The posteriors, some at a time as one over so many times as many classes."""
        given = self.hyperparameters
        if given is not None:
            return lambda: given.models(fitted.encoding)
        posterior = proper_posterior(fitted)
        return lambda: [posterior]

    def _draw(
        self, model: NaiveBayes, x: tuple[Any, ...], order: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of M posteriors (M, n, C) log p(class, row | D, φ), and (draws · M, n, C) log P(class | row, θ)."""
        joint = joint_given(model, x)
        shape = self.draws, len(joint)
        log_class, own_log_class = _log_class(model.class_prior, shape, rng)
        order = order[: self.draws * len(joint)].reshape(shape)
        own = _class_of_row(joint, order) if self.given == "row" else None
        if model.weights is not None:
            log_class = log_class + model.weights.class_bias
        likelihood = (self._from_moments if self.method == "moments" else self._from_draws)(model, x, own, rng)
        log_proba = np.asarray(_combine(likelihood, log_class, own_log_class, own))
        return np.asarray(joint), log_proba.reshape(-1, *joint.shape[1:])

    def _from_moments(
        self, model: NaiveBayes, x: tuple[Any, ...], own: jax.Array | None, rng: np.random.Generator
    ) -> jax.Array:
        """(draws, 1, n, C) draws of log p(row | class, θ) by its cumulants, of one posterior."""
        row = row_cumulants(model, x)

        def drawn(score: Any) -> jax.Array:
            z = rng.standard_normal((self.draws, 1, 1, score.mean.shape[1]))
            return score.mean + jnp.sqrt(score.variance) * skewed(z, skewness(score.variance, score.third))

        other = drawn(row.other)
        return other if own is None else jnp.where(own, drawn(row.own), other)

    def _from_draws(
        self, model: NaiveBayes, x: tuple[Any, ...], own: jax.Array | None, rng: np.random.Generator
    ) -> np.ndarray:
        """(draws, M, n, C) draws of log p(row | class, θ), of M posteriors, by those of θ."""
        total: Any = 0.0
        of_class = None if own is None else np.asarray(own).swapaxes(1, 2)  # (draws, n, M, C)
        n_models = 1 if of_class is None else of_class.shape[2]
        flat = None if of_class is None else of_class.reshape(*of_class.shape[:2], -1)
        for family, rows in zip(model.blocks, x, strict=True):
            asked = ask(_likelihood, family, rows, None if flat is None else flat[:1])
            chunk = min(self.draws, max(1, _MOST_CELLS // (1 + sum(a.size for part in asked for a in part))))
            drawn = []
            for start in range(0, self.draws, chunk):
                # The last chunk is as long as the others: one compilation.
                part = None if flat is None else np.resize(flat[start : start + chunk], (chunk, *flat.shape[1:]))
                drawn.append(np.asarray(run(_likelihood, asked, chunk, rng, family, rows, part)))
            total = total + np.concatenate(drawn)[: self.draws]
        return total.reshape(*total.shape[:2], n_models, -1).swapaxes(1, 2)


def _likelihood(variates: Variates, n: int, family: Any, rows: Any, own: Any) -> jax.Array:
    return family.draw_log_likelihood(variates, n, rows, own)


def _log_class(class_prior: Any, shape: tuple[int, int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draws (draws, M, C) of log π up to a constant, and of log(π_k) where the class is that of one more row."""
    if class_prior.fixed:
        log_prob = np.asarray(class_prior.log_prob)
        log_prob = np.broadcast_to(log_prob, (*shape, log_prob.shape[-1]))
        return log_prob, log_prob
    alpha = np.asarray(class_prior.concentration)
    gamma = rng.standard_gamma(alpha, (*shape, alpha.shape[-1]))
    with np.errstate(divide="ignore"):
        return np.log(gamma), np.log(gamma + rng.standard_exponential((*shape, 1)))


@jax.jit
def _class_of_row(joint: jax.Array, order: jax.Array) -> jax.Array:
    """(draws, M, n, C) whether the row is of this class: the first whose cumulative probability exceeds `order`."""
    cumulative = jnp.cumsum(jnp.exp(log_normalize(joint)), axis=-1)
    k = jnp.sum(order[..., None, None] >= cumulative[..., :-1], axis=-1)
    return k[..., None] == jnp.arange(joint.shape[-1])


@jax.jit
def _combine(likelihood: jax.Array, log_class: jax.Array, own_log_class: jax.Array, own: jax.Array | None) -> jax.Array:
    """(draws, M, n, C) log P(class | row, θ)."""
    log_class, own_log_class = log_class[:, :, None], own_log_class[:, :, None]
    return jax.nn.log_softmax(likelihood + (log_class if own is None else jnp.where(own, own_log_class, log_class)))
