"""Naive Bayes as a generative model: a class prior, and blocks of features that are independent given the class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, TypeVar

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb.families import (
    Dirichlet,
    Family,
    GammaPoisson,
    Known,
    LevelCounts,
    Likelihood,
    NormalInverseGamma,
    offers,
    pooled,
)
from bayesnb.families.arrays import (
    Array,
    cond,
    map_leading_axis,
    map_leaves,
    pytree,
    segment_sum,
    sum_weightings,
    xp,
)
from bayesnb.families.averaged import Raised, Tempered
from bayesnb.families.numbers import IndependentCells
from bayesnb.families.protocol import no_rows
from bayesnb.families.rows import GroupedCounts, Multinomial, linear

Estimate = Literal["mle", "map", "mean", "predictive"]
PLUGGED_IN: tuple[Estimate, ...] = ("mle", "map", "mean")
"""Estimates that are values of the parameters, which tables and figures show."""
ESTIMATES: tuple[Estimate, ...] = (*PLUGGED_IN, "predictive")
Model = TypeVar("Model", bound="NaiveBayes")


@pytree
class Statistics:
    """Sufficient statistics of labelled rows: class counts, and the statistics of each block of features.

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
    log_base: float | Array

    @classmethod
    def empty(cls, prior: NaiveBayes) -> Self:
        """Statistics of no rows, for `kernels.count`.

        Parameters
        ----------
        prior : NaiveBayes
            Prior, such as `NaiveBayes.categorical(2, [3, 3])`, which has the numbers of classes and columns.

        Raises
        ------
        ValueError
            If a prior that is derived from data has no field of shape (C, F), which then is not known.
        """
        return cls(np.zeros(prior.n_classes), tuple(map(_no_rows, prior.blocks)), np.zeros(()))

    def merge(self, other: Self) -> Self:
        """Statistics of the rows of `self` and `other` together."""
        blocks = tuple(block.merge(more) for block, more in zip(self.blocks, other.blocks, strict=True))
        return type(self)(self.class_count + other.class_count, blocks, self.log_base + other.log_base)

    def remove(self, other: Self) -> Self:
        """Statistics without the rows of `other`: `a.merge(b).remove(b)` is a, up to rounding."""
        blocks = tuple(block.remove(removed) for block, removed in zip(self.blocks, other.blocks, strict=True))
        return type(self)(self.class_count - other.class_count, blocks, self.log_base - other.log_base)

    def scale(self, factor: float) -> Self:
        """Statistics of the same rows with all weights multiplied by `factor`."""
        blocks = tuple(block.scale(factor) for block in self.blocks)
        return type(self)(self.class_count * factor, blocks, self.log_base * factor)

    def observe(
        self, x: tuple[object, ...], label: Int[Array, "N"], weight: Float[Array, "*S N"], log_base: float | Array = 0.0
    ) -> Self:
        """Statistics with a block of encoded, labelled rows added.

        Parameters
        ----------
        x : tuple
            Encoded rows of each block of features.
        label : (N,) int array
            Index of the class of each row.
        weight : (N,) or (S, N) array
            Replication count of each row; under each of S weightings, which become the first axis of the statistics.
        log_base : (N,) array, or 0
            Log base measure of each row.
        """
        blocks = tuple(block.observe(rows, label, weight) for block, rows in zip(self.blocks, x, strict=True))
        n_classes, total = self.class_count.shape[-1], self.log_base
        if xp.ndim(log_base):
            total = total + xp.sum(linear(weight, xp.asarray(log_base)), axis=-1)
        if xp.ndim(weight) == 1:
            return type(self)(self.class_count + segment_sum(weight, label, n_classes), blocks, total)
        sizes = sum_weightings(xp.ones((weight.shape[-1], 1)), label, weight, n_classes)[..., 0]
        return type(self)(self.class_count + sizes, blocks, total)

    def observe_responsibilities(self, x: tuple[object, ...], weight: jax.Array, log_base: float | Array = 0.0) -> Self:
        """Statistics with a piece of rows `x` added to every class, weighted by `weight` (N, C); `log_base` is (N,)."""
        one_class = jax.tree.map(lambda field: xp.zeros_like(field[:1]), (self.class_count, self.blocks))
        empty = type(self)(one_class[0], one_class[1], xp.zeros(()))
        label = xp.zeros(weight.shape[0], xp.int32)
        by_class = map_leading_axis(lambda class_weight: empty.observe(x, label, class_weight, log_base), weight.T)
        class_count, blocks = jax.tree.map(lambda field: field[:, 0], (by_class.class_count, by_class.blocks))
        return self.merge(type(self)(class_count, blocks, xp.sum(by_class.log_base)))


def kernel_log_base(parts: tuple[Any, ...], x: tuple[object, ...]) -> jax.Array:
    """(N,) sum over blocks of the rows' log base measures, except rows whose base the host computes (`known_base`).

    `parts` has for each block a family or statistics, which define the base measure.
    """
    return sum(
        part.log_base(rows) for part, rows in zip(parts, x, strict=True) if not getattr(rows, "known_base", False)
    )


@pytree
class TermWeights:
    """Weights of the terms of a row's log-likelihood, s_c(x) = b_c + log π_c + Σ_t w_t log p(x_t | c), or S draws.

    Parameters
    ----------
    class_bias : (C,) array
        Bias b of each class; (S, C) of draws.
    blocks : tuple of arrays
        Weights w of the terms of each block, (T,), or one weight for all of its terms, (); (S, T) or (S,) of draws.
    exponents : tuple
        For each block the exponent by which w falls with the number of draws of a row, see `Tempered`; None for a
        constant weight.
    """

    class_bias: Array
    blocks: tuple[Array, ...]
    exponents: tuple[Array | float | None, ...]

    @classmethod
    def split(
        cls,
        class_bias: Array,
        weight: np.ndarray,
        sizes: Sequence[int],
        exponents: Sequence[Array | float | None] | None = None,
    ) -> Self:
        """Build from biases (…, C) and weights (…, R) of all terms, one block after the other, with `sizes` terms each.

        A block whose weights are equal gets one weight, (…). `exponents` has an entry for each block, see `apply`;
        default: None for all.
        """
        blocks = np.split(weight, np.cumsum(sizes)[:-1], axis=-1)
        merged = tuple(w[..., 0] if w.shape[-1] and (w == w[..., :1]).all() else w for w in blocks)
        return cls(class_bias, merged, (None,) * len(merged) if exponents is None else tuple(exponents))

    def term_weights(self, sizes: Sequence[int]) -> np.ndarray:
        """(R,) weights of all terms, one block after the other, for rows of one draw: the inverse of `split`."""
        return np.concatenate([np.broadcast_to(weight, n) for weight, n in zip(self.blocks, sizes, strict=True)])

    def apply(self, b: int, likelihood: Likelihood) -> Raised | Tempered:
        """Likelihood of block b with every term raised to the power of its weight.

        One weight w for the block raises the whole likelihood of a row of t draws to w · (t + 1)^-exponent, or to w if
        the exponent is None. S draws of the weights are those of a likelihood over S · C classes, one draw after the
        other.
        """
        weight, exponent = self.blocks[b], self.exponents[b]
        if self.is_drawn:
            weight = xp.repeat(xp.asarray(weight), xp.shape(self.class_bias)[1], axis=0)
        return Raised(likelihood, weight) if self.by_term(b) else Tempered(likelihood, weight, exponent)

    @property
    def is_drawn(self) -> bool:
        """Whether the weights are S draws."""
        return xp.ndim(self.class_bias) == 2

    def by_term(self, b: int) -> bool:
        """Whether each term of block b has a weight; otherwise all of them have the same."""
        return xp.ndim(self.blocks[b]) > self.is_drawn

    def take(self, part: slice) -> Self:
        """Return the draws in `part`."""
        return replace(self, class_bias=self.class_bias[part], blocks=tuple(w[part] for w in self.blocks))


@pytree
class NaiveBayes:
    r"""Prior or posterior distribution of the parameters (π, θ) of a naive Bayes model.

    The class and the blocks of features of a row have the joint distribution

    .. math::

        p(c, x \mid \pi, \theta) = \pi_c \prod_b p(x_b \mid \theta_{cb}).

    An object of this class is a distribution of π and of the θ of each block. `update` turns a prior into the
    posterior, which is of the same type; see docs/derivations/conjugate.md, "Naive Bayes".

    Parameters
    ----------
    class_prior : Dirichlet or Known
        Distribution of π. Its concentration or log probability has the shape (1, C): one group of C classes.
    blocks : tuple of families
        Distribution of the parameters θ of each block of features. In an *empirical* prior a block is a function from
        the statistics to a family, and `derive` replaces the function by the family.
    weights : TermWeights, optional
        Weights of the terms of the score of a row. Updates and evidence ignore the weights; a weighted score is not a
        log joint probability.

    See Also
    --------
    Dirichlet : Distribution of the class and level probabilities.
    NormalInverseGamma : Distribution of means and variances.
    Statistics : Sufficient statistics of rows.
    CategoricalNB : Classifier, whose `prior_` and `posterior_` are of this class.

    Notes
    -----
    The rows `x` that methods take are a tuple with one entry for each block: an (N, F) array with NaN for missing cells
    for Gaussian and Poisson blocks, and an (N, L) array of counts, or encoded rows, for Dirichlet blocks.

    `categorical`, `bernoulli`, `multinomial`, `gaussian` and `poisson` make priors of one block from sizes. A prior of
    several blocks is `NaiveBayes(a.class_prior, (*a.blocks, *b.blocks))`.

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

    @classmethod
    def categorical(
        cls, n_classes: int, n_levels: int | Sequence[int], alpha: Any = 1.0, class_alpha: object = 1.0
    ) -> Self:
        """Prior of categorical columns from sizes, without an estimator, for `bayesnb.kernels`.

        Parameters
        ----------
        n_classes : int
            Number of classes C.
        n_levels : int or sequence of F ints
            Number of levels of each column; an int: of a single column.
        alpha : float, (F,) array, (C, L) array, or sequence of F arrays, default=1.0
            Dirichlet concentrations: of all levels, of the levels of each column, or of each of the L levels of all
            columns, one column after the other. May be traced.
        class_alpha : float or (C,) array, default=1.0
            Dirichlet concentrations of the classes. May be traced.

        Returns
        -------
        NaiveBayes
            Prior of one block. Its rows are codes (N, F), 0 … number of levels - 1, or counts of the levels (N, L).

        Raises
        ------
        ValueError
            If a size is not positive, or concentrations have another shape. Their values are not checked.

        Examples
        --------
        >>> from bayesnb import NaiveBayes
        >>> NaiveBayes.categorical(2, [2, 3], alpha=[1.0, 0.5]).blocks[0].concentration
        array([[1. , 1. , 0.5, 0.5, 0.5],
               [1. , 1. , 0.5, 0.5, 0.5]])
        """
        sizes = [n_levels] if isinstance(n_levels, int | np.integer) else list(n_levels)
        group = np.repeat(np.arange(len(sizes), dtype=np.int32), _require_sizes("n_levels", sizes))
        if isinstance(alpha, list | tuple) and len(alpha) == len(sizes):
            each = [xp.broadcast_to(xp.asarray(a), (n_classes, n)) for a, n in zip(alpha, sizes, strict=True)]
            alpha = xp.concatenate(each, axis=1)
        elif xp.shape(alpha) == (len(sizes),):
            alpha = xp.asarray(alpha)[group]
        shape = (n_classes, len(group))
        levels = Dirichlet(_expand("alpha", alpha, shape), group, len(sizes))
        return cls(_class_prior(n_classes, class_alpha), (levels,))

    @classmethod
    def bernoulli(cls, n_classes: int, n_features: int, alpha: object = 1.0, class_alpha: object = 1.0) -> Self:
        """Prior of columns that are absent (0) or present (1), from sizes; see `categorical`.

        Parameters
        ----------
        n_classes, n_features : int
            Numbers of classes C and of columns F.
        alpha : float, (F,) array, (C, 2 F) array, or sequence of F arrays, default=1.0
            Dirichlet concentrations of absent and present.
        class_alpha : float or (C,) array, default=1.0
            Dirichlet concentrations of the classes.

        Returns
        -------
        NaiveBayes
            Prior of one block, whose rows are codes 0 and 1, (N, F).
        """
        return cls.categorical(n_classes, [2] * _require_sizes("n_features", n_features), alpha, class_alpha)

    @classmethod
    def multinomial(cls, n_classes: int, n_features: int, alpha: object = 1.0, class_alpha: object = 1.0) -> Self:
        """Prior of counts that share a total, such as of words, from sizes; see `categorical`.

        Parameters
        ----------
        n_classes, n_features : int
            Numbers of classes C and of words L.
        alpha : float, (L,) array or (C, L) array, default=1.0
            Dirichlet concentrations of the words.
        class_alpha : float or (C,) array, default=1.0
            Dirichlet concentrations of the classes.

        Returns
        -------
        NaiveBayes
            Prior of one block, whose rows are counts (N, L).
        """
        return cls.categorical(n_classes, _require_sizes("n_features", n_features), alpha, class_alpha)

    @classmethod
    def gaussian(cls, n_classes: int, n_features: int, prior: object = "within", class_alpha: object = 1.0) -> Self:
        """Prior of columns of numbers with normal distributions, from sizes; see `categorical`.

        Parameters
        ----------
        n_classes, n_features : int
            Numbers of classes C and of columns F.
        prior : {"within", "pooled"}, EmpiricalNormal or NormalInverseGamma, default="within"
            Prior of means and variances, as of `GaussianNB`. The names, and `EmpiricalNormal`, are derived from the
            data by `kernels.update`, `kernels.log_evidence` and `derive`. Fields of a `NormalInverseGamma` may have
            any shape that broadcasts to (C, F).
        class_alpha : float or (C,) array, default=1.0
            Dirichlet concentrations of the classes.

        Returns
        -------
        NaiveBayes
            Prior of one block, whose rows are numbers (N, F), NaN where missing.
        """
        return cls._of_numbers(NormalInverseGamma, n_classes, n_features, prior, class_alpha)

    @classmethod
    def poisson(cls, n_classes: int, n_features: int, prior: object = "pooled", class_alpha: object = 1.0) -> Self:
        """Prior of columns of counts with Poisson distributions, from sizes; see `categorical`.

        Parameters
        ----------
        n_classes, n_features : int
            Numbers of classes C and of columns F.
        prior : {"pooled"}, EmpiricalRate or GammaPoisson, default="pooled"
            Prior of the rates, as of `PoissonNB`. "pooled", and `EmpiricalRate`, are derived from the data by
            `kernels.update`, `kernels.log_evidence` and `derive`.
        class_alpha : float or (C,) array, default=1.0
            Dirichlet concentrations of the classes.

        Returns
        -------
        NaiveBayes
            Prior of one block, whose rows are counts (N, F), NaN where missing.
        """
        return cls._of_numbers(GammaPoisson, n_classes, n_features, prior, class_alpha)

    @classmethod
    def _of_numbers(
        cls, family: type[IndependentCells], n_classes: int, n_features: int, prior: Any, class_alpha: object
    ) -> Self:
        """Prior of one block of numbers, whose fields have the shape (C, F)."""
        _require_sizes("n_features", n_features)
        prior = family.empirical.get(prior, prior) if isinstance(prior, str) else prior
        if getattr(prior, "statistics", None) is not family.statistics:
            names = " or ".join(map(repr, sorted(family.empirical)))
            raise ValueError(f"prior={prior!r} must be {names}, a {family.__name__}, or a prior derived from data.")
        shape = (n_classes, n_features)
        return cls(_class_prior(n_classes, class_alpha), (map_leaves(lambda v: _expand("prior", v, shape), prior),))

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return int(jax.tree.leaves(self.class_prior)[0].shape[-1])

    @property
    def classes_share_parameters(self) -> bool:
        """Whether a row of one class informs parameters of other classes in some block; π is not meant."""
        return any(block.classes_share_parameters for block in self.blocks)

    def update(self, statistics: Statistics) -> Self:
        """Posterior given the statistics of labelled rows, an object of the same type."""
        return update_families(self, statistics, lambda family, counted: family.update(counted))

    def update_for_removal(self, statistics: Statistics) -> Self:
        """Posterior that keeps prior and counts separate, so that `read(…, multiplicity)` can leave rows out exactly.

        A small prior is not lost beside large counts, and rows are also left out of priors derived from the data.
        """
        return update_families(self, statistics, lambda family, counted: family.update_keeping_prior(counted))

    def derive(self, statistics: Statistics) -> Self:
        """Prior with empirical blocks (functions of the statistics) replaced by the families that they return."""
        blocks = zip(self.blocks, statistics.blocks, strict=True)
        return replace(self, blocks=tuple(f(s, pooled(s)) if callable(f) else f for f, s in blocks))

    def for_groups(self) -> Self:
        """Prior whose parameters may differ between groups of rows."""
        return replace(self, blocks=tuple(family.for_groups() for family in self.blocks))

    def unit(self) -> Self:
        """Prior with all Dirichlet concentrations 1, whose hyperparameters a hierarchical model then replaces."""
        return replace(self, class_prior=self.class_prior.unit(), blocks=tuple(family.unit() for family in self.blocks))

    def condensed(self) -> Self:
        """Small prior for `log_evidence` of condensed statistics, valid while only the prior's strength changes."""
        return type(self)(self.class_prior, tuple(family.condensed() for family in self.blocks))

    def condense(self, statistics: Statistics) -> Statistics:
        """Statistics reduced to what `log_evidence` of `condensed()` takes."""
        pairs = zip(self.blocks, statistics.blocks, strict=True)
        return replace(statistics, blocks=tuple(family.condense(counted) for family, counted in pairs))

    def improper(self) -> Self:
        """Improper prior whose posterior mean is the maximum likelihood estimate."""
        blocks = tuple(family.improper() for family in self.blocks)
        return replace(self, class_prior=self.class_prior.improper(), blocks=blocks)

    def penalized_mle(self) -> JointLikelihood:
        """Joint likelihood at the parameters that maximise `log_penalty`: the penalised MLE of a posterior's rows."""
        return JointLikelihood(
            self.class_prior.penalized_mle().log_theta[0],
            tuple(read_block(block, "penalized_mle") for block in self.blocks),
        )

    def log_penalty(self, reading: JointLikelihood) -> tuple[jax.Array, ...]:
        """Log penalties (up to a constant) at plugged-in parameters: of π (C,), and of each block's parameters (C, K).

        See `families.protocol.Prior.log_penalty`.
        """
        blocks = zip(self.blocks, reading.likelihoods, strict=True)
        class_penalty = self.class_prior.log_penalty(Multinomial(reading.log_class[None]))[0]
        return class_penalty, *(family.log_penalty(parameters) for family, parameters in blocks)

    def log_evidence(self, statistics: Statistics) -> jax.Array:
        """Scalar log marginal likelihood log p(X, y) of the counted rows under this prior, base measures included."""
        evidences = [self.class_prior.log_evidence(LevelCounts(statistics.class_count[None]))]
        evidences += [f.log_evidence(s) for f, s in zip(self.blocks, statistics.blocks, strict=True)]
        return sum((xp.sum(evidence) for evidence in evidences), xp.asarray(statistics.log_base))

    def read(self, estimate: Estimate | Literal["penalized_mle"], multiplicity: Array | None = None) -> JointLikelihood:
        """Joint likelihood of classes and rows under one reading of the posterior.

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
        return self.weighted(xp.asarray(log_class), [read_block(block, estimate) for block in self.blocks])

    def weighted(self, log_class: Array, likelihoods: Sequence[Likelihood]) -> JointLikelihood:
        """Joint likelihood of `log_class`, log π (…, C), and the blocks' likelihoods, with the term weights applied.

        Class biases of the weights are added to log π. Without weights both stay as they are.
        """
        if (weights := self.weights) is None:
            return JointLikelihood(log_class, tuple(likelihoods))
        weighted_likelihoods = tuple(weights.apply(b, likelihood) for b, likelihood in enumerate(likelihoods))
        return JointLikelihood(log_class + weights.class_bias, weighted_likelihoods)

    def sample(self, key: jax.Array, n: int) -> JointLikelihood:
        """Joint likelihood with n independent draws of all parameters, on a leading axis of its arrays.

        Weights of terms are not applied.
        """
        keys = jax.random.split(key, len(self.blocks) + 1)
        log_class = self.class_prior.sample(keys[0], n).log_theta[:, 0]
        return JointLikelihood(log_class, tuple(f.sample(k, n) for f, k in zip(self.blocks, keys[1:], strict=True)))

    def log_joint(self, x: tuple[object, ...], estimate: Estimate = "predictive") -> Float[jax.Array, "N C"]:
        """(N, C) log p(class, row) under a reading of the posterior, without base measures.

        Where the model has weights the result is the weighted score, which is not a log joint probability.
        """
        return self.read(estimate).log_joint(x)

    def log_base(self, x: tuple[object, ...]) -> Float[jax.Array, "N"]:
        """(N,) log base measure of each row: multinomial coefficients and -log x!, the same in all classes."""
        return sum((f.log_base(rows) for f, rows in zip(self.blocks, x, strict=True)), xp.zeros(()))

    def log_predictive(self, x: tuple[object, ...]) -> Float[jax.Array, "N C"]:
        """(N, C) log posterior predictive p(class, row | D), base measures included."""
        return self.log_joint(x) + self.log_base(x)[..., None]


@pytree
class JointLikelihood:
    """Likelihood p(class, row): log class probabilities, and a likelihood p(x_b | class) for each block b.

    Parameters
    ----------
    log_class : (C,) array
        Log class probabilities log π.
    likelihoods : tuple of likelihoods
        Likelihood of each block under one reading of its posterior.

    See Also
    --------
    NaiveBayes.read : Likelihood under a reading of a posterior.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import CategoricalNB
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> likelihood = nb.posterior_.read("mean")
    >>> np.exp(likelihood.log_class)
    array([0.4, 0.6])
    >>> np.exp(likelihood.log_joint((np.array([[0.0, 1.0]]),))).round(2)  # a row of sun
    array([[0.13, 0.45]])
    """

    log_class: Any
    likelihoods: tuple[Any, ...]

    def prepare(self, x: tuple[object, ...]) -> JointLikelihood:
        """Return an equal likelihood with tables rearranged for rows encoded like `x`, to score many such blocks."""
        return replace(self, likelihoods=tuple(p.prepare(rows) for p, rows in zip(self.likelihoods, x, strict=True)))

    def log_joint(self, x: tuple[object, ...]) -> Float[jax.Array, "N C"]:
        """(N, C) log p(class, row), without base measures; -inf of a block or class outweighs +inf."""
        score = xp.zeros(())
        for likelihood, rows in zip(self.likelihoods, x, strict=True):
            score = plus(score, likelihood.log_prob(rows))
        return plus(score, self.log_class)

    def log_prob(self, statistics: Statistics) -> jax.Array:
        """Scalar log p(X, y | parameters) of all counted rows at plugged-in parameters, base measures included."""
        log_probs = [linear(statistics.class_count, self.log_class)]
        log_probs += [p.log_likelihood(s) for p, s in zip(self.likelihoods, statistics.blocks, strict=True)]
        return sum((xp.sum(log_prob) for log_prob in log_probs), xp.asarray(statistics.log_base))

    def terms(self, x: tuple[object, ...]) -> Float[jax.Array, "N C T"]:
        """(N, C, T) terms of log p(row | class), one block after the other."""
        blocks = zip(self.likelihoods, x, strict=True)
        return xp.concatenate([likelihood.terms(rows) for likelihood, rows in blocks], axis=-1)

    def block_log_likelihoods(self, x: tuple[object, ...]) -> Float[jax.Array, "N C B"]:
        """(N, C, B) log p(x_b | class) of each block b, without base measures."""
        return xp.stack([p.log_prob(rows) for p, rows in zip(self.likelihoods, x, strict=True)], axis=-1)

    def log_likelihood(self, x: tuple[object, ...]) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class), without base measures; -inf of a block outweighs +inf."""
        return replace(self, log_class=xp.zeros(())).log_joint(x)


def update_families(model: Model, statistics: Statistics, update: Callable[[Any, Any], Any]) -> Model:
    """Model with `update(family, its statistics)` in place of the class prior and of the family of each block."""
    counts = LevelCounts(statistics.class_count[None]), *statistics.blocks
    pairs = zip((model.class_prior, *model.blocks), counts, strict=True)
    classes, *blocks = (update(family, counted) for family, counted in pairs)
    return replace(model, class_prior=classes, blocks=tuple(blocks))


def _no_rows(family: Any) -> object:
    """Sufficient statistics of no rows, by the shape (C, K) of a family or of a prior that is derived from data."""
    shape = np.shape(jax.tree.leaves(family)[0])
    if len(shape) != 2:
        raise ValueError(
            f"prior: the number of columns of {type(family).__name__} is not known. Use NaiveBayes.gaussian or poisson."
        )
    if not offers(family, "rows"):
        return no_rows(family.statistics, shape)
    sizes = np.bincount(family.group, minlength=family.num_groups)
    return GroupedCounts(np.zeros(shape), tuple(sizes.tolist()))


def _class_prior(n_classes: int, alpha: object) -> Dirichlet:
    """Dirichlet prior of the class probabilities with concentrations `alpha`, a scalar or (C,)."""
    _require_sizes("n_classes", n_classes)
    return Dirichlet(_expand("class_alpha", alpha, (1, n_classes)), np.zeros(n_classes, np.int32), 1)


def _require_sizes(name: str, size: Any) -> Any:
    """Return `size`, an integer or several, if they are integers of at least 1, else raise ValueError."""
    if not all(isinstance(n, int | np.integer) and n >= 1 for n in np.atleast_1d(size).tolist()):
        raise ValueError(f"{name}={size!r} must consist of integers of at least 1.")
    return size


def _expand(name: str, values: Any, shape: tuple[int, int]) -> jax.Array:
    """Array (C, L) of values of a shape that broadcasts to it; ValueError with both shapes if it does not."""
    try:
        return xp.broadcast_to(xp.asarray(values, float), shape) + 0.0
    except ValueError:
        raise ValueError(f"{name} has the shape {xp.shape(values)}, which does not fit {shape}.") from None


def read_block(block: Family, estimate: str, multiplicity: Array | None = None) -> Likelihood:
    """Likelihood of one block under a reading of its posterior: plugged in or integrated out.

    `estimate` is "predictive", "mean", "map" or "penalized_mle". With `multiplicity` (C,), for the first two, each
    scored row is first added to the data of each class that many times.
    """
    if estimate == "predictive":
        return block.predictive(multiplicity)
    if estimate == "mean":
        return block.mean(multiplicity)
    if multiplicity is not None:
        raise ValueError(
            f"estimate={estimate!r} cannot be computed when rows are added or left out, as in loo and conformal; use "
            "'mean' or 'predictive'."
        )
    if estimate == "penalized_mle":
        return block.penalized_mle()
    if estimate == "map":
        return block.mode()
    raise ValueError(f"estimate={estimate!r} is unknown; use 'mean', 'map' or 'predictive'.")


def plus(a: jax.Array, b: jax.Array) -> jax.Array:
    """Compute a + b elementwise, where -inf + inf is -inf: probability zero times infinite density is zero."""
    return xp.where(xp.isneginf(a) | xp.isneginf(b), -xp.inf, a + b)


def undefined(joint: Float[jax.Array, "*N C"]) -> Bool[jax.Array, "*N"]:
    """(N,) of bool: class probabilities do not exist, as a score is NaN, all are -inf, or two are +inf."""
    impossible = xp.all(xp.isneginf(joint), axis=-1)
    return xp.any(xp.isnan(joint), axis=-1) | impossible | (xp.sum(xp.isposinf(joint), axis=-1) > 1)


def log_normalize(joint: Float[jax.Array, "*N C"]) -> Float[jax.Array, "*N C"]:
    """(N, C) log P(class | row) from log p(class, row); NaN where `undefined`, a single +inf has probability 1."""

    def finite(joint: jax.Array) -> jax.Array:
        """Log softmax over the classes, for finite scores."""
        shifted = joint - xp.max(joint, axis=-1, keepdims=True)
        return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))

    def general() -> jax.Array:
        """Log probabilities with infinite and undefined scores treated as documented."""
        certain = xp.any(xp.isposinf(joint), axis=-1, keepdims=True)
        log_prob = xp.where(certain, xp.where(xp.isposinf(joint), 0.0, -xp.inf), finite(joint))
        return xp.where(undefined(joint)[..., None], xp.nan, log_prob)

    return cond(xp.all(xp.isfinite(joint)), lambda: finite(joint), general)
