"""Draws of log P(class | row, θ) for blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb.families import Known
from bayesnb.families.protocol import Cumulants
from bayesnb.families.variates import Variates
from bayesnb.model import NaiveBayes
from bayesnb.uncertainty.blocks import PerBlock, over_blocks
from bayesnb.uncertainty.row_cumulants import predictive, row_cumulants
from bayesnb.uncertainty.skew import skewed, skewness
from bayesnb.uncertainty.variates import Kernel, ask, run

_CELLS = 2**22


@dataclass(frozen=True)
class Sampler:
    """Draws of log P(class | row, θ), θ from the posterior or, `given="row"`, from that with the row added.

    For θ | D, row the class k of the row is drawn from P(k | row, D); then the parameters of class k know the
    row, and those of the others do not. `method` says whether the row's log-likelihoods are cubics of normal
    variates with three exact moments, or come from draws of θ; so they do where missing cells are summed out.
    """

    method: str
    given: str
    draws: int
    seed: int

    def map(self, nb: Any, X: Any, output: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Apply `output` to draws (S, n, C) and to log P(class | row) (n, C), block by block of rows."""
        return over_blocks(nb, X, self.of(nb, output), replace(self, method="draws").of(nb, output))

    def of(self, nb: Any, output: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> PerBlock:
        """The same of one block."""
        n_classes = len(nb.classes_)

        def answer(model: NaiveBayes, x: tuple[Any, ...], real: slice) -> np.ndarray:
            # Every block has the same variates: the answer for a row does not depend on its place.
            rng = np.random.default_rng(self.seed)
            row = row_cumulants(model, x) if self.method == "moments" else None
            log_predictive = predictive(model, x) if row is None else row.log_proba
            log_class, own_log_class = _log_class(model.class_prior, self.draws, n_classes, rng)
            parts = [self._log_likelihood(model, x, row and row.other, _other, rng)]
            if self.given == "row":
                parts.append(self._log_likelihood(model, x, row and row.own, _own, rng))
            order = (rng.permutation(self.draws) + rng.random(self.draws)) / self.draws
            log_proba = _combine(log_predictive, log_class, own_log_class, order, *parts)
            return output(np.asarray(log_proba)[:, real], np.asarray(log_predictive)[real])

        return PerBlock(answer, self.draws * n_classes / 16)

    def _log_likelihood(
        self, model: NaiveBayes, x: tuple[Any, ...], score: Cumulants | None, kernel: Kernel, rng: np.random.Generator
    ) -> Any:
        """(S, n, C) draws of log p(row | class, θ), by its cumulants or by the kernel."""
        if score is not None:
            z = rng.standard_normal((self.draws, 1, score.mean.shape[1]))
            return score.mean + jnp.sqrt(score.variance) * skewed(z, skewness(score.variance, score.third))
        total: Any = 0.0
        for family, rows in zip(model.blocks, x, strict=True):
            asked = ask(kernel, family, rows)
            chunk = min(self.draws, max(1, _CELLS // (1 + sum(a.size for part in asked for a in part))))
            drawn = [np.asarray(run(kernel, asked, chunk, rng, family, rows)) for _ in range(0, self.draws, chunk)]
            total = total + np.concatenate(drawn)[: self.draws]
        return total


def _other(variates: Variates, n: int, family: Any, rows: Any) -> jax.Array:
    return family.draw_log_likelihood(variates, n, rows)


def _own(variates: Variates, n: int, family: Any, rows: Any) -> jax.Array:
    return family.draw_log_likelihood(variates, n, rows, 1.0)


def _log_class(class_prior: Any, n: int, n_classes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draws (S, C) of log π up to a constant, and of log(π_k) where the class is that of one more row."""
    if isinstance(class_prior, Known):
        log_prob = np.broadcast_to(np.asarray(class_prior.log_prob)[0], (n, n_classes))
        return log_prob, log_prob
    gamma = rng.standard_gamma(np.asarray(class_prior.concentration)[0], (n, n_classes))
    with np.errstate(divide="ignore"):
        return np.log(gamma), np.log(gamma + rng.standard_exponential((n, 1)))


@jax.jit
def _combine(
    log_proba: jax.Array,
    log_class: jax.Array,
    own_log_class: jax.Array,
    order: jax.Array,
    likelihood: jax.Array,
    own_likelihood: jax.Array | None = None,
) -> jax.Array:
    """(S, n, C) log P(class | row, θ)."""
    score = likelihood + log_class[:, None]
    if own_likelihood is not None:
        # The class of the row: the first whose cumulative probability exceeds a stratified uniform.
        cumulative = jnp.cumsum(jnp.exp(log_proba), axis=1)
        k = jnp.sum(order[:, None, None] >= cumulative[:, :-1], axis=-1)
        own = k[..., None] == jnp.arange(log_proba.shape[1])
        score = jnp.where(own, own_likelihood + own_log_class[:, None], score)
    return jax.nn.log_softmax(score, axis=-1)
