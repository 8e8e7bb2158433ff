"""Naive Bayes as a generative model: a class prior, and blocks of features that are independent given the class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb.capabilities import require_capability
from bayesnb.families import Dirichlet, Family, Known, LevelCounts, Likelihood, pooled, posterior_for_removal, supports
from bayesnb.families._pytree import Array, pytree
from bayesnb.families.count_functions import linear
from bayesnb.families.multinomial import Multinomial
from bayesnb.families.protocol import Condensable, MeanReading, Parametric, PenalizedLikelihood, Prepared
from bayesnb.families.weighted_likelihoods import Raised, Tempered

Estimate = Literal["mle", "map", "mean", "predictive"]


@pytree
class Statistics:
    """Sufficient statistics of labelled rows; a commutative monoid under `merge`.

    Parameters
    ----------
    class_count : (C,) array
        Total weight of the rows of each class.
    blocks : tuple of statistics
        Sufficient statistics of each block of features.
    log_base : scalar
        Weighted sum of the rows' log base measures: multinomial coefficients, -log x!.

    Examples
    --------
    Statistics of all rows are the merged statistics of two batches.

    >>> from bayesnb import CategoricalNB
    >>> first = CategoricalNB(categories=[["rain", "sun"]]).fit([["sun"], ["rain"]], ["out", "in"])
    >>> second = CategoricalNB(categories=[["rain", "sun"]]).fit([["sun"], ["sun"]], ["out", "in"])
    >>> first.statistics_.merge(second.statistics_).blocks[0].count
    array([[1., 1.],
           [0., 2.]])
    """

    class_count: Any
    blocks: tuple[Any, ...]
    log_base: Any

    def merge(self, other: Self) -> Self:
        """Return the statistics of both sets of rows."""
        blocks = tuple(block.merge(more) for block, more in zip(self.blocks, other.blocks, strict=True))
        return type(self)(self.class_count + other.class_count, blocks, self.log_base + other.log_base)

    def remove(self, other: Self) -> Self:
        """Return the statistics without other rows: `a.merge(b).remove(b)` is a."""
        blocks = tuple(block.remove(removed) for block, removed in zip(self.blocks, other.blocks, strict=True))
        return type(self)(self.class_count - other.class_count, blocks, self.log_base - other.log_base)

    def scale(self, factor: float) -> Self:
        """Return the statistics of these rows with `factor` times their weights."""
        blocks = tuple(block.scale(factor) for block in self.blocks)
        return type(self)(self.class_count * factor, blocks, self.log_base * factor)

    def observe(
        self, x: tuple[Any, ...], label: Int[Array, "N"], weight: Float[Array, "N"], log_base: Any = 0.0
    ) -> Self:
        """Add a block of rows.

        Parameters
        ----------
        x : tuple
            Encoded rows of each block of features.
        label : (N,) int array
            Index of the class of each row.
        weight : (N,) array
            Replication count of each row.
        log_base : (N,) array
            Log base measure of each row.
        """
        blocks = tuple(block.observe(rows, label, weight) for block, rows in zip(self.blocks, x, strict=True))
        class_count = jnp.asarray(self.class_count).at[label].add(weight)
        return type(self)(class_count, blocks, self.log_base + jnp.sum(weight * log_base))

    def observe_responsibilities(self, x: tuple[Any, ...], weight: jax.Array, log_base: Any = 0.0) -> Self:
        """Add a block of rows `x` to all classes, with a `weight` (N, C) for each class; `log_base` is (N,)."""
        one_class = jax.tree.map(lambda field: jnp.zeros_like(field[:1]), (self.class_count, self.blocks))
        empty = type(self)(one_class[0], one_class[1], jnp.zeros(()))
        label = jnp.zeros(weight.shape[0], jnp.int32)
        by_class = jax.lax.map(lambda class_weight: empty.observe(x, label, class_weight, log_base), weight.T)
        class_count, blocks = jax.tree.map(lambda field: field[:, 0], (by_class.class_count, by_class.blocks))
        return self.merge(type(self)(class_count, blocks, jnp.sum(by_class.log_base)))


def kernel_log_base(parts: tuple[Any, ...], x: tuple[Any, ...]) -> Any:
    """(N,) log base measures of a block of rows, by families or statistics, unless the host computes them."""
    return sum(
        part.log_base(rows) for part, rows in zip(parts, x, strict=True) if not getattr(rows, "known_base", False)
    )


@pytree
class TermWeights:
    """Weights of the terms of a row's log-likelihood: s_c(x) = b_c + log π_c + Σ_t w_t log p(x_t | c).

    Parameters
    ----------
    class_bias : (C,) array
        Bias b of each class.
    blocks : tuple of arrays
        Weights w of the terms of each block, (T,), or one weight for all of its terms, ().
    exponents : tuple
        For each block the exponent by which w falls with the number of draws of a row, see `Tempered`; None for a
        constant weight.
    """

    class_bias: Any
    blocks: tuple[Any, ...]
    exponents: tuple[Any, ...]

    @classmethod
    def split(
        cls, class_bias: Any, weight: np.ndarray, sizes: Sequence[int], exponents: Sequence[Any] | None = None
    ) -> Self:
        """Return weights (R,) of terms, one block after the other, with `sizes` terms each."""
        blocks = np.split(weight, np.cumsum(sizes)[:-1])
        merged = tuple(w[0] if len(w) and (w == w[0]).all() else w for w in blocks)
        return cls(class_bias, merged, (None,) * len(merged) if exponents is None else tuple(exponents))

    def term_weights(self, sizes: Sequence[int]) -> np.ndarray:
        """Return (R,) weights of all terms, for rows of one draw: the inverse of `split`."""
        return np.concatenate([np.broadcast_to(weight, n) for weight, n in zip(self.blocks, sizes, strict=True)])

    def apply(self, b: int, likelihood: Likelihood) -> Prepared:
        """Return the likelihood of block b with its terms raised to their weights."""
        weight, exponent = self.blocks[b], self.exponents[b]
        if jnp.ndim(weight):
            return Raised(likelihood, weight)
        return Tempered(likelihood, weight, exponent)

    @property
    def has_members(self) -> bool:
        """Whether the terms are the members of an average of models."""
        return bool(jnp.ndim(self.blocks[0]) > 0)

    def average_scores(self, joint: Any, log_class: Any) -> Any:
        """(N, C) scores of an average of models, from log p(class, row): (N, C), or (N, C, M) of the members."""
        if self.has_members:
            return log_class + self.class_bias + (joint - log_class[..., None]) @ self.blocks[0]
        return log_class + self.class_bias + self.blocks[0] * (joint - log_class)


@pytree
class NaiveBayes:
    """p(c, x | π, θ) = π_c Π_b p(x_b | θ_cb): a prior, and after `update` a posterior, over (π, θ).

    Parameters
    ----------
    class_prior : Dirichlet or Known
        Distribution of π, with one row: concentration or log probability of shape (1, C).
    blocks : tuple of families
        Distribution of the parameters θ of each block of features. An *empirical* prior has functions of the statistics
        to a family instead, from which `derive` makes the prior.
    weights : TermWeights, optional
        Weights of the terms of a row's score. Updates and evidence ignore the weights; a weighted score is no log
        joint probability.

    Notes
    -----
    Rows `x` are a tuple with one entry for each block: an (N, F) array with NaN for missing cells for Gaussian and
    Poisson blocks; an (N, L) array of counts, or encoded rows, for Dirichlet blocks.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, NaiveBayes
    >>> nb = CategoricalNB(alpha=1, class_alpha=1).fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> nb.posterior_.class_prior.concentration  # in, out
    array([[2., 3.]])
    >>> nb.posterior_.blocks[0].concentration  # rain, sun
    array([[2., 1.],
           [1., 3.]])
    >>> isinstance(nb.posterior_, NaiveBayes) and type(nb.prior_) is type(nb.posterior_)
    True
    """

    class_prior: Dirichlet | Known
    blocks: tuple[Any, ...]
    weights: TermWeights | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(jax.tree.leaves(self.class_prior)[0].shape[-1])

    @property
    def classes_share_parameters(self) -> bool:
        """Whether a row of one class informs the parameters of other classes, besides the class probabilities."""
        return any(block.classes_share_parameters for block in self.blocks)

    def update(self, statistics: Statistics) -> Self:
        """Return the posterior, an object of the same type."""
        blocks = tuple(f.update(s) for f, s in zip(self.blocks, statistics.blocks, strict=True))
        classes = self.class_prior.update(LevelCounts(statistics.class_count[None]))
        return replace(self, class_prior=classes, blocks=blocks)

    def update_for_removal(self, statistics: Statistics) -> Self:
        """Return the posterior in a form from which `read(…, multiplicity)` leaves rows out.

        A small prior is not lost beside large counts, and rows are also left out of priors derived from the data.
        """
        blocks = tuple(posterior_for_removal(f, s) for f, s in zip(self.blocks, statistics.blocks, strict=True))
        classes = posterior_for_removal(self.class_prior, LevelCounts(statistics.class_count[None]))
        return replace(self, class_prior=classes, blocks=blocks)

    def derive(self, statistics: Statistics) -> Self:
        """Return the prior, with families for blocks that are functions of the statistics."""
        blocks = zip(self.blocks, statistics.blocks, strict=True)
        return replace(self, blocks=tuple(f(s, pooled(s)) if callable(f) else f for f, s in blocks))

    def unit(self) -> Self:
        """Return the prior with concentrations 1, into which drawn hyperparameters are put."""
        return replace(self, class_prior=_unit(self.class_prior), blocks=tuple(map(_unit, self.blocks)))

    def condensed(self) -> Self:
        """Return the part of the prior that `log_evidence` needs if only the strength of the prior changes."""
        blocks = tuple(f.condensed() if supports(f, Condensable) else f for f in self.blocks)
        return type(self)(self.class_prior, blocks)

    def condense(self, statistics: Statistics) -> Statistics:
        """Return the part of the statistics that `condensed()` needs."""
        pairs = zip(self.blocks, statistics.blocks, strict=True)
        blocks = tuple(f.condense(s) if supports(f, Condensable) else s for f, s in pairs)
        return replace(statistics, blocks=blocks)

    def improper(self) -> Self:
        """Return the improper prior under which the posterior mean is the maximum likelihood estimate."""
        blocks = tuple(require_capability(f, Parametric).improper() for f in self.blocks)
        return replace(self, class_prior=self.class_prior.improper(), blocks=blocks)

    def penalized_mle(self) -> JointLikelihood:
        """Return the parameters that maximise `log_penalty`, for a posterior the penalised likelihood of its rows."""
        return JointLikelihood(
            self.class_prior.penalized_mle().log_theta[0],
            tuple(read_block(block, "penalized_mle") for block in self.blocks),
        )

    def log_penalty(self, reading: JointLikelihood) -> tuple[jax.Array, ...]:
        """Log penalties of the class probabilities (C,) and of each block's parameters (C, K).

        See `PenalizedLikelihood`.
        """
        blocks = zip(self.blocks, reading.likelihoods, strict=True)
        class_penalty = self.class_prior.log_penalty(Multinomial(reading.log_class[None]))[0]
        return class_penalty, *(family.log_penalty(parameters) for family, parameters in blocks)

    def log_evidence(self, statistics: Statistics) -> jax.Array:
        """Log evidence log p(X, y), with all parameters integrated out; `self` is the prior."""
        evidences = [self.class_prior.log_evidence(LevelCounts(statistics.class_count[None]))]
        evidences += [f.log_evidence(s) for f, s in zip(self.blocks, statistics.blocks, strict=True)]
        return sum((jnp.sum(evidence) for evidence in evidences), jnp.asarray(statistics.log_base))

    def read(self, estimate: Estimate | Literal["penalized_mle"], multiplicity: Any = None) -> JointLikelihood:
        """Return the likelihood of rows under a reading of the posterior.

        Parameters
        ----------
        estimate : {"mean", "map", "predictive", "penalized_mle"}
            Parameters at the posterior mean, mode or penalised maximum likelihood, or integrated out ("predictive").
            The reading "mle" is the "mean" of `improper()` updated with the same statistics.
        multiplicity : (C,) array, optional
            Number of copies of each scored row that are added to the data of each class; -1 in the row's class gives
            the leave-one-out predictive. Only for "mean" and "predictive".
        """
        if multiplicity is not None:
            log_class = self.class_prior.update(LevelCounts(multiplicity[None])).mean().log_theta[0]
            return self.weighted(log_class, [read_block(block, estimate, multiplicity) for block in self.blocks])
        if estimate == "penalized_mle":
            return self.penalized_mle()
        log_class = (self.class_prior.mode() if estimate == "map" else self.class_prior.mean()).log_theta[0]
        return self.weighted(jnp.asarray(log_class), [read_block(block, estimate) for block in self.blocks])

    def weighted(self, log_class: Any, likelihoods: Sequence[Likelihood]) -> JointLikelihood:
        """Return the weighted joint likelihood of log class probabilities (…, C) and the blocks' likelihoods."""
        if (weights := self.weights) is None:
            return JointLikelihood(log_class, tuple(likelihoods))
        weighted_likelihoods = tuple(weights.apply(b, likelihood) for b, likelihood in enumerate(likelihoods))
        return JointLikelihood(log_class + weights.class_bias, weighted_likelihoods)

    def sample(self, key: jax.Array, n: int) -> JointLikelihood:
        """Return n independent draws of all parameters, as a likelihood whose arrays have a leading axis."""
        keys = jax.random.split(key, len(self.blocks) + 1)
        log_class = self.class_prior.sample(keys[0], n).log_theta[:, 0]
        return JointLikelihood(log_class, tuple(f.sample(k, n) for f, k in zip(self.blocks, keys[1:], strict=True)))

    def log_joint(self, x: tuple[Any, ...], estimate: Estimate = "predictive") -> Float[jax.Array, "N C"]:
        """(N, C) log p(class, row), without base measures, which are the same in all classes."""
        return self.read(estimate).log_joint(x)

    def log_base(self, x: tuple[Any, ...]) -> Float[jax.Array, "N"]:
        """(N,) log base measures of rows, which are the same in all classes: multinomial coefficients, -log x!."""
        return sum((f.log_base(rows) for f, rows in zip(self.blocks, x, strict=True)), jnp.zeros(()))

    def log_predictive(self, x: tuple[Any, ...]) -> Float[jax.Array, "N C"]:
        """(N, C) log p(class, row | D), with base measures."""
        return self.log_joint(x) + self.log_base(x)[..., None]


@pytree
class JointLikelihood:
    """Joint likelihood of classes and rows: log class probabilities (C,), and a likelihood for each block."""

    log_class: Any
    likelihoods: tuple[Any, ...]

    def prepare(self, x: tuple[Any, ...]) -> JointLikelihood:
        """Return likelihoods with tables prepared for rows of the kind of `x`, for scoring many blocks of rows."""
        return JointLikelihood(
            self.log_class, tuple(p.prepare(rows) for p, rows in zip(self.likelihoods, x, strict=True))
        )

    def log_joint(self, x: tuple[Any, ...]) -> Float[jax.Array, "N C"]:
        """(N, C) log p(class, row); probability 0 of a block or a class outweighs an infinite density."""
        return plus(self.log_likelihood(x), self.log_class)

    def log_prob(self, statistics: Statistics) -> jax.Array:
        """Log probability log p(X, y | parameters) of all rows that were counted."""
        log_probs = [linear(statistics.class_count, self.log_class)]
        log_probs += [p.log_likelihood(s) for p, s in zip(self.likelihoods, statistics.blocks, strict=True)]
        return sum((jnp.sum(log_prob) for log_prob in log_probs), jnp.asarray(statistics.log_base))

    def terms(self, x: tuple[Any, ...]) -> Float[jax.Array, "N C T"]:
        """(N, C, T) terms of log p(row | class), one block after the other, without preparation by `prepare`."""
        blocks = zip(self.likelihoods, x, strict=True)
        return jnp.concatenate([likelihood.terms(rows) for likelihood, rows in blocks], axis=-1)

    def block_log_likelihoods(self, x: tuple[Any, ...]) -> Float[jax.Array, "N C B"]:
        """(N, C, B) log p(row | class) of each block."""
        return jnp.stack([p.log_prob(rows) for p, rows in zip(self.likelihoods, x, strict=True)], axis=-1)

    def log_likelihood(self, x: tuple[Any, ...]) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class)."""
        score = jnp.zeros(())
        for likelihood, rows in zip(self.likelihoods, x, strict=True):
            score = plus(score, likelihood.log_prob(rows))
        return score


def read_block(block: Family, estimate: str, multiplicity: Any = None) -> Likelihood:
    """Return the likelihood of one block under a reading of its posterior; arguments as in `NaiveBayes.read`."""
    likelihood: Likelihood
    if estimate == "predictive":
        likelihood = block.predictive(multiplicity)
    elif estimate == "mean":
        likelihood = require_capability(block, MeanReading).mean(multiplicity)
    elif multiplicity is not None:
        raise ValueError(f"estimate={estimate!r} has no reading with a row added; use 'mean' or 'predictive'.")
    elif estimate == "penalized_mle":
        likelihood = require_capability(block, PenalizedLikelihood).penalized_mle()
    elif estimate == "map":
        likelihood = require_capability(block, Parametric).mode()
    else:
        raise ValueError(f"estimate={estimate!r} is not a reading; use 'mean', 'map' or 'predictive'.")
    return likelihood


def _unit(family: Any) -> Any:
    return family.unit() if supports(family, Condensable) else family


def plus(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return a + b in log space, in which zero times infinity is zero."""
    return jnp.where(jnp.isneginf(a) | jnp.isneginf(b), -jnp.inf, a + b)


def undefined(joint: Float[jax.Array, "*N C"]) -> Bool[jax.Array, "*N"]:
    """(N,) whether class probabilities of a row do not exist: a score is NaN, all are -inf, or two are +inf."""
    impossible = jnp.all(jnp.isneginf(joint), axis=-1)
    return jnp.any(jnp.isnan(joint), axis=-1) | impossible | (jnp.sum(jnp.isposinf(joint), axis=-1) > 1)


def log_normalize(joint: Float[jax.Array, "*N C"]) -> Float[jax.Array, "*N C"]:
    """(N, C) log P(class | row); NaN where `undefined`."""

    def finite(joint: jax.Array) -> jax.Array:
        shifted = joint - jnp.max(joint, axis=-1, keepdims=True)
        return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=-1, keepdims=True))

    def general() -> jax.Array:
        certain = jnp.any(jnp.isposinf(joint), axis=-1, keepdims=True)
        log_prob = jnp.where(certain, jnp.where(jnp.isposinf(joint), 0.0, -jnp.inf), finite(joint))
        return jnp.where(undefined(joint)[..., None], jnp.nan, log_prob)

    log_prob: jax.Array = jax.lax.cond(jnp.all(jnp.isfinite(joint)), lambda: finite(joint), general)
    return log_prob
