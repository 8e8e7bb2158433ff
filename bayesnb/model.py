"""Naive Bayes as a generative model: a class prior and blocks of features, independent given the class."""

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
from bayesnb.families._pytree import pytree
from bayesnb.families._types import Array
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
    blocks : tuple
        One entry a block of features.
    log_base : scalar
        Σ of the rows' log base measures (multinomial coefficients, -log x!), each times its weight.

    Examples
    --------
    What was counted of two batches is the sum of what was counted of each.

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
        """The statistics of both sets of rows."""
        blocks = tuple(mine.merge(theirs) for mine, theirs in zip(self.blocks, other.blocks, strict=True))
        return type(self)(self.class_count + other.class_count, blocks, self.log_base + other.log_base)

    def remove(self, other: Self) -> Self:
        """The inverse of `merge`: `a.merge(b).remove(b)` is a."""
        blocks = tuple(mine.remove(theirs) for mine, theirs in zip(self.blocks, other.blocks, strict=True))
        return type(self)(self.class_count - other.class_count, blocks, self.log_base - other.log_base)

    def scale(self, factor: float) -> Self:
        """The same rows, each weighing `factor` times as much."""
        blocks = tuple(block.scale(factor) for block in self.blocks)
        return type(self)(self.class_count * factor, blocks, self.log_base * factor)

    def observe(
        self, x: tuple[Any, ...], label: Int[Array, "N"], weight: Float[Array, "N"], log_base: Any = 0.0
    ) -> Self:
        """Add a block of rows.

        `label` (N,) class indices, `weight` (N,) replication counts, `log_base` (N,) as
        `NaiveBayes.log_base` has it.
        """
        blocks = tuple(block.observe(rows, label, weight) for block, rows in zip(self.blocks, x, strict=True))
        class_count = jnp.asarray(self.class_count).at[label].add(weight)
        return type(self)(class_count, blocks, self.log_base + jnp.sum(weight * log_base))

    def observe_responsibilities(self, x: tuple[Any, ...], weight: jax.Array, log_base: Any = 0.0) -> Self:
        """As `observe`, for rows that belong to each class with a `weight` (N, C) of its own."""
        one_class = jax.tree.map(lambda field: jnp.zeros_like(field[:1]), (self.class_count, self.blocks))
        nothing = type(self)(one_class[0], one_class[1], jnp.zeros(()))
        label = jnp.zeros(weight.shape[0], jnp.int32)
        each = jax.lax.map(lambda own: nothing.observe(x, label, own, log_base), weight.T)
        class_count, blocks = jax.tree.map(lambda field: field[:, 0], (each.class_count, each.blocks))
        return self.merge(type(self)(class_count, blocks, jnp.sum(each.log_base)))


def kernel_log_base(parts: tuple[Any, ...], x: tuple[Any, ...]) -> Any:
    """(N,) log base measures of a block of rows, by families or statistics; but of rows whose hosts know theirs."""
    return sum(
        part.log_base(rows) for part, rows in zip(parts, x, strict=True) if not getattr(rows, "known_base", False)
    )


@pytree
class TermWeights:
    """How much each term of a row's log-likelihood counts: s_c(x) = b_c + log π_c + Σ_t w_t log p(x_t | c).

    Parameters
    ----------
    class_bias : (C,) array
        b.
    blocks : tuple
        For each block w of its terms, (T,), or of all of them, ().
    exponents : tuple
        For each block how fast w falls with the number of draws of a row, see `Tempered`; None: it does not.
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
        alike = tuple(own[0] if len(own) and (own == own[0]).all() else own for own in blocks)
        return cls(class_bias, alike, (None,) * len(alike) if exponents is None else tuple(exponents))

    def of_terms(self, sizes: Sequence[int]) -> np.ndarray:
        """Return (R,) weights of all terms, of rows of one draw: the inverse of `split`."""
        return np.concatenate([np.broadcast_to(own, n) for own, n in zip(self.blocks, sizes, strict=True)])

    def apply(self, b: int, likelihood: Likelihood) -> Prepared:
        """The likelihood of block b, its terms to their powers."""
        weight, exponent = self.blocks[b], self.exponents[b]
        if jnp.ndim(weight):
            return Raised(likelihood, weight)
        return Tempered(likelihood, weight, exponent)

    @property
    def of_members(self) -> bool:
        """Whether they are of the members of an average, one by one."""
        return jnp.ndim(self.blocks[0]) > 0

    def of_average(self, joint: Any, log_class: Any) -> Any:
        """(N, C) scores of an average of models, or of its members, from log p(class, row): (N, C), or (N, C, M)."""
        if self.of_members:
            return log_class + self.class_bias + (joint - log_class[..., None]) @ self.blocks[0]
        return log_class + self.class_bias + self.blocks[0] * (joint - log_class)


@pytree
class NaiveBayes:
    """p(c, x | π, θ) = π_c Π_b p(x_b | θ_cb): a prior, and after `update` a posterior, over (π, θ).

    Parameters
    ----------
    class_prior : Dirichlet or Known
        Over π, with one row: concentration or log probability of shape (1, C).
    blocks : tuple of families
        Over θ, one family a block of features. An *empirical* prior has functions of the statistics to a family in
        their places, and `derive` makes the prior of it.
    weights : TermWeights, optional
        Of the terms of a row, where rows are scored; updates and evidence do not know them. Given, what scores a row
        is no joint distribution any more.

    Notes
    -----
    Rows `x` are a tuple with one entry a block: an (N, F) array with NaN where a cell is missing for
    Gaussian and Poisson blocks; an (N, L) array of counts, or encoded rows, for Dirichlet blocks.

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
        """C."""
        return jax.tree.leaves(self.class_prior)[0].shape[-1]

    @property
    def classes_share_parameters(self) -> bool:
        """Whether a row of one class tells of the parameters of the others, the class probabilities aside."""
        return any(block.classes_share_parameters for block in self.blocks)

    def update(self, statistics: Statistics) -> Self:
        """The posterior: an object of the same type."""
        blocks = tuple(f.update(s) for f, s in zip(self.blocks, statistics.blocks, strict=True))
        classes = self.class_prior.update(LevelCounts(statistics.class_count[None]))
        return replace(self, class_prior=classes, blocks=blocks)

    def update_apart(self, statistics: Statistics) -> Self:
        """Posterior from which `read(…, multiplicity)` leaves rows out.

        A small prior is not lost beside large counts, and rows are left out of priors derived from the data, too.
        """
        blocks = tuple(posterior_for_removal(f, s) for f, s in zip(self.blocks, statistics.blocks, strict=True))
        classes = posterior_for_removal(self.class_prior, LevelCounts(statistics.class_count[None]))
        return replace(self, class_prior=classes, blocks=blocks)

    def derive(self, statistics: Statistics) -> Self:
        """The prior, where blocks are functions of the statistics."""
        blocks = zip(self.blocks, statistics.blocks, strict=True)
        return replace(self, blocks=tuple(f(s, pooled(s)) if callable(f) else f for f, s in blocks))

    def unit(self) -> Self:
        """Return the prior with concentrations 1, into which drawn hyperparameters are put."""
        return replace(self, class_prior=_unit(self.class_prior), blocks=tuple(map(_unit, self.blocks)))

    def condensed(self) -> Self:
        """As much of the prior as `log_evidence` needs while nothing but its strength changes."""
        blocks = tuple(f.condensed() if supports(f, Condensable) else f for f in self.blocks)
        return type(self)(self.class_prior, blocks)

    def condense(self, statistics: Statistics) -> Statistics:
        """As much of the statistics as `condensed()` needs."""
        pairs = zip(self.blocks, statistics.blocks, strict=True)
        blocks = tuple(f.condense(s) if supports(f, Condensable) else s for f, s in pairs)
        return replace(statistics, blocks=blocks)

    def improper(self) -> Self:
        """The improper prior under which the posterior mean is the maximum likelihood estimate."""
        blocks = tuple(require_capability(f, Parametric).improper() for f in self.blocks)
        return replace(self, class_prior=self.class_prior.improper(), blocks=blocks)

    def penalized_mle(self) -> JointLikelihood:
        """The parameters that maximise `log_penalty`: of a posterior, the penalised likelihood of its rows."""
        return JointLikelihood(
            self.class_prior.penalized_mle().log_theta[0],
            tuple(require_capability(f, PenalizedLikelihood).penalized_mle() for f in self.blocks),
        )

    def log_penalty(self, reading: JointLikelihood) -> tuple[jax.Array, ...]:
        """Of the class probabilities (C,) and of each block's parameters (C, K): see `PenalizedLikelihood`."""
        parts = zip(self.blocks, reading.likelihoods, strict=True)
        of_classes = self.class_prior.log_penalty(Multinomial(reading.log_class[None]))[0]
        return of_classes, *(family.log_penalty(parameters) for family, parameters in parts)

    def log_evidence(self, statistics: Statistics) -> jax.Array:
        """log p(X, y) with all parameters integrated out; `self` is the prior."""
        parts = [self.class_prior.log_evidence(LevelCounts(statistics.class_count[None]))]
        parts += [f.log_evidence(s) for f, s in zip(self.blocks, statistics.blocks, strict=True)]
        return sum((jnp.sum(part) for part in parts), jnp.asarray(statistics.log_base))

    def read(self, estimate: Estimate | Literal["penalized_mle"], multiplicity: Any = None) -> JointLikelihood:
        """The likelihood under a reading of the posterior: parameters at its "mean", mode ("map") or `penalized_mle`
        plugged in, or integrated out, "predictive".

        The fourth reading, "mle", is the "mean" of `improper()` updated with the same statistics. With `multiplicity`
        (C,) each row is read by the posterior with itself so many more times among the data of each class, and "map"
        and "penalized_mle" are not offered: -1 in its own class is the leave-one-out predictive.
        """
        if multiplicity is not None:
            log_class = self.class_prior.update(LevelCounts(multiplicity[None])).mean().log_theta[0]
            return self.weighted(log_class, [_read_with_row(block, estimate, multiplicity) for block in self.blocks])
        if estimate == "penalized_mle":
            return self.penalized_mle()
        log_class = (self.class_prior.mode() if estimate == "map" else self.class_prior.mean()).log_theta[0]
        return self.weighted(jnp.asarray(log_class), [_read(block, estimate) for block in self.blocks])

    def weighted(self, log_class: Any, likelihoods: Sequence[Likelihood]) -> JointLikelihood:
        """What scores rows by log class probabilities (…, C) and the likelihoods of the blocks, with the weights."""
        if (weights := self.weights) is None:
            return JointLikelihood(log_class, tuple(likelihoods))
        parts = tuple(weights.apply(b, likelihood) for b, likelihood in enumerate(likelihoods))
        return JointLikelihood(log_class + weights.class_bias, parts)

    def sample(self, key: jax.Array, n: int) -> JointLikelihood:
        """n independent draws of all parameters: a reading whose arrays have a leading axis."""
        keys = jax.random.split(key, len(self.blocks) + 1)
        log_class = self.class_prior.sample(keys[0], n).log_theta[:, 0]
        return JointLikelihood(log_class, tuple(f.sample(k, n) for f, k in zip(self.blocks, keys[1:], strict=True)))

    def log_joint(self, x: tuple[Any, ...], estimate: Estimate = "predictive") -> Float[jax.Array, "N C"]:
        """(N, C) log p(class, row), without what no class changes."""
        return self.read(estimate).log_joint(x)

    def log_base(self, x: tuple[Any, ...]) -> Float[jax.Array, "N"]:
        """(N,) what no class changes: multinomial coefficients, -log x!."""
        return sum((f.log_base(rows) for f, rows in zip(self.blocks, x, strict=True)), jnp.zeros(()))

    def log_predictive(self, x: tuple[Any, ...]) -> Float[jax.Array, "N C"]:
        """(N, C) log p(class, row | D), everything included."""
        return self.log_joint(x) + self.log_base(x)[..., None]


@pytree
class JointLikelihood:
    """Class log probabilities (C,) and one likelihood a block: all that scoring a row needs."""

    log_class: Any
    likelihoods: tuple[Any, ...]

    def prepare(self, x: tuple[Any, ...]) -> JointLikelihood:
        """Lay the tables out for rows of the kind of `x`, once for many blocks of rows."""
        return JointLikelihood(
            self.log_class, tuple(p.prepare(rows) for p, rows in zip(self.likelihoods, x, strict=True))
        )

    def log_joint(self, x: tuple[Any, ...]) -> Float[jax.Array, "N C"]:
        """(N, C) log p(class, row). An impossible block outweighs a point mass; class probability 0 both."""
        return plus(self.log_likelihood(x), self.log_class)

    def log_prob(self, statistics: Statistics) -> jax.Array:
        """log p(X, y) of all rows that were counted, the parameters plugged in."""
        parts = [linear(statistics.class_count, self.log_class)]
        parts += [p.log_likelihood(s) for p, s in zip(self.likelihoods, statistics.blocks, strict=True)]
        return sum((jnp.sum(part) for part in parts), jnp.asarray(statistics.log_base))

    def terms(self, x: tuple[Any, ...]) -> Float[jax.Array, "N C T"]:
        """(N, C, T) the terms of log p(row | class), one block after the other; of a reading as `read` gives it."""
        parts = zip(self.likelihoods, x, strict=True)
        return jnp.concatenate([likelihood.terms(rows) for likelihood, rows in parts], axis=-1)

    def by_block(self, x: tuple[Any, ...]) -> Float[jax.Array, "N C B"]:
        """(N, C, B) log p(row | class) of each block."""
        return jnp.stack([p.log_prob(rows) for p, rows in zip(self.likelihoods, x, strict=True)], axis=-1)

    def log_likelihood(self, x: tuple[Any, ...]) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class)."""
        score = jnp.zeros(())
        for likelihood, rows in zip(self.likelihoods, x, strict=True):
            score = plus(score, likelihood.log_prob(rows))
        return score


def _read(block: Family, estimate: Estimate) -> Likelihood:
    if estimate == "predictive":
        return block.predictive()
    if estimate == "map":
        return require_capability(block, Parametric).mode()
    if estimate == "mean":
        return require_capability(block, MeanReading).mean()
    raise ValueError(f"estimate={estimate!r} is not a reading; use 'mean', 'map' or 'predictive'.")


def _read_with_row(block: Family, estimate: str, multiplicity: jax.Array) -> Likelihood:
    if estimate == "predictive":
        return block.predictive(multiplicity)
    if estimate == "mean":
        return require_capability(block, MeanReading).mean(multiplicity)
    raise ValueError(f"estimate={estimate!r} has no reading with a row added; use 'mean' or 'predictive'.")


def _unit(family: Any) -> Any:
    return family.unit() if supports(family, Condensable) else family


def plus(a: jax.Array, b: jax.Array) -> jax.Array:
    """a + b in log space, where zero times infinity is zero."""
    return jnp.where(jnp.isneginf(a) | jnp.isneginf(b), -jnp.inf, a + b)


def undefined(joint: Float[jax.Array, "*N C"]) -> Bool[jax.Array, "*N"]:
    """(N,) rows whose class probabilities do not exist: a score is NaN, all are -inf, or two are +inf."""
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

    return jax.lax.cond(jnp.all(jnp.isfinite(joint)), lambda: finite(joint), general)
