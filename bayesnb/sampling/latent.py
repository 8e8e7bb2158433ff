"""Posterior of latent class models by Gibbs sampling: classes are allocated, and parameters drawn given the classes.

Rows with the same cells are one pattern with a multiplicity, so that a sweep costs U · K · F for U patterns, whatever
the number of rows is. Scores and counts are kernels; multinomial and gamma variates are NumPy's, which draws them some
ten times faster than JAX on a CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import Seed, shown
from bayesnb._util.arrays import require_draws
from bayesnb._util.precision import float64
from bayesnb._util.terminal import progress as progress_bar
from bayesnb._util.warnings import warn
from bayesnb.encoding import Encoding, Levels, Rows, Table, check_partial_labels, check_weights, ignore_unknown
from bayesnb.families import LevelCounts, Likelihood
from bayesnb.families.arrays import kernel, logsumexp
from bayesnb.fitted import counting, scoring
from bayesnb.fitted.state import Fitted
from bayesnb.model import JointLikelihood, NaiveBayes, Statistics
from bayesnb.sampling.nuts import diagnose, read_run
from bayesnb.uncertainty import require_proper, site_names
from bayesnb.uncertainty.arviz import ArvizData, assemble_latent
from bayesnb.uncertainty.draws import CLASS_PROB, parameter_shapes, stack_as_classes
from bayesnb.uncertainty.given_draws import Sites
from bayesnb.uncertainty.variates import HostVariates

_ANOTHER = "Fit a mixture of another estimator, such as CategoricalNB()."
_MOST_SCORES = 2**25
UNKNOWN = -1
"""Label of a row whose class is not known."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """Distinct rows of a table.

    Parameters
    ----------
    rows : tuple of Rows
        Encoded patterns.
    count : (U,) int array
        Multiplicity of each pattern.
    label : (U,) int array
        Class of the rows of a pattern, or `UNKNOWN`.
    index : (N,) int array
        Pattern of each row of the table.
    """

    rows: tuple[Rows, ...]
    count: np.ndarray
    label: np.ndarray
    index: np.ndarray

    def classify(self, joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(pattern) and P(class | pattern) (U, …, K), given log p(class, pattern).

        For a pattern of known class these are log p(class, pattern), and 1 for the class.
        """
        other = (self.label[:, None] != np.arange(joint.shape[-1])) & (self.label[:, None] != UNKNOWN)
        joint = np.where(other.reshape(len(joint), *[1] * (joint.ndim - 2), -1), -np.inf, joint)
        log_row = np.asarray(logsumexp(joint, axis=-1))
        return log_row, np.exp(joint - log_row[..., None])

    def allocate(self, proba: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw the number of rows of each pattern in each class, by P(class | pattern) (U, chains, K)."""
        return rng.multinomial(self.count[:, None], proba / proba.sum(axis=-1, keepdims=True))

    @classmethod
    def from_table(cls, fitted: Fitted, table: Table, weight: np.ndarray, label: np.ndarray) -> Patterns:
        """Find the distinct rows, with known classes `label` (N,), of a table; `weight` (N,) are multiplicities."""
        fitted.rows(table)  # reports values that are not levels
        index = np.arange(table.n_rows) if table.is_sparse else _distinct_rows(table, label)
        first = np.zeros(table.n_rows, bool)
        first[np.unique(index, return_index=True)[1]] = True
        count = np.bincount(index, weight).astype(np.int64)
        rows = fitted.encoding.rows(table.take(first), ignore_unknown)
        return cls(rows, count, label[first], index)


def _distinct_rows(table: Table, label: np.ndarray) -> np.ndarray:
    """Return (N,) the number of the pattern of each row, in the order in which patterns occur first.

    Rows of one pattern have equal cells and labels.
    """
    import pandas as pd

    frame = pd.DataFrame({j: np.asarray(table.column(j)) for j in range(len(table.names))} | {"label": label})
    return frame.groupby(list(frame), sort=False, dropna=False).ngroup().to_numpy()


@dataclass(frozen=True, eq=False)
class Gibbs:
    """Gibbs sampler of the parameters and of the numbers of rows of each pattern in each class.

    The chains are one model with chains · K classes, whose patterns are allocated to the K classes of each chain.

    Parameters
    ----------
    encoding : Encoding
        K classes and the columns.
    prior : NaiveBayes
    sites : sequence of dict
        For each block the site of each parameter.
    patterns : Patterns
    mode : (U, K) array
        P(class | pattern) at the mode, where chains start, and by which the classes of each draw are named.
    free : int array
        Classes that can be permuted: the prior is the same for all classes, and no row is known to be of these.
    """

    encoding: Encoding
    prior: NaiveBayes
    sites: Sites
    patterns: Patterns
    mode: np.ndarray
    free: np.ndarray

    @float64
    def run(
        self, chains: int, warmup: int, draws: int, seed: int, tick: Callable[[], object]
    ) -> tuple[dict[str, np.ndarray], np.ndarray | None, np.ndarray, float]:
        """Run the chains, and return their draws after the warm-up.

        Returns
        -------
        parameters : dict of (chains, S, K, …) arrays
            Draws of the parameters by site.
        log_row : (chains, S, U) array or None
            log p(pattern | θ) of each draw, or log p(class, pattern | θ) if the class is known; None if too many.
        membership : (U, K) array
            Mean over the draws of P(class | pattern, θ).
        moved : float
            Proportion of the draws whose classes were permuted.
        """
        rng, (n_patterns, n_classes) = np.random.default_rng(seed), self.mode.shape
        size = sum(math.prod(shape) for family in self.prior.blocks for shape in parameter_shapes(family).values())
        require_draws(draws, 2 * (size + n_classes), f"{size:,} parameters", chains=chains)
        pieces = counting.counting_pieces(self.patterns.rows, self.patterns.count)
        batches = [(piece, x, len(count)) for piece, x, (count,), _ in pieces]
        prior = scoring.pad(self.encoding, stack_as_classes(self.prior, self.prior, (chains,)))
        statistics = self._count(batches, self.patterns.allocate(np.repeat(self.mode[:, None], chains, axis=1), rng))
        keeps_rows = chains * draws * n_patterns <= _MOST_SCORES
        log_rows = np.empty((chains, draws, n_patterns)) if keeps_rows else None
        kept, moved, membership = list[dict[str, np.ndarray]](), 0, np.zeros_like(self.mode)
        for sweep in range(warmup + draws):
            log_class, likelihoods = _draw(prior, scoring.pad_statistics(self.encoding, statistics), rng)
            scores = [np.asarray(_log_likelihood(likelihoods, x))[: len(self.mode[piece])] for piece, x, _ in batches]
            joint = np.concatenate(scores).reshape(n_patterns, chains, n_classes) + log_class
            log_row, proba = self.patterns.classify(joint)
            statistics = self._count(batches, self.patterns.allocate(proba, rng))
            if sweep >= warmup:
                orders = self._orders(proba)
                moved += int((orders != np.arange(n_classes)).any(axis=1).sum())
                named = orders + n_classes * np.arange(chains)[:, None]
                drawn = self._parameters(log_class, likelihoods)
                kept.append({site: values[named] for site, values in drawn.items()})
                membership += np.take_along_axis(proba, orders[None], axis=2).sum(axis=1)
                if log_rows is not None:
                    log_rows[:, sweep - warmup] = log_row.T
            tick()
        parameters = {site: np.stack([draw[site] for draw in kept], axis=1) for site in kept[0]}
        return parameters, log_rows, membership / (chains * draws), moved / (chains * draws)

    def _count(self, batches: list[tuple[slice, tuple[object, ...], int]], number: np.ndarray) -> Statistics:
        """Statistics of chains · K classes, given the number (U, chains, K) of rows of each pattern in each.

        Batches of patterns are encoded for the kernels, with their positions, and the number of rows with those that
        are appended.
        """
        number = number.reshape(len(number), -1)
        total = counting.empty(self.patterns.rows, number.shape[1])
        for piece, x, n_rows in batches:
            weight = np.zeros((n_rows, number.shape[1]))
            weight[: len(number[piece])] = number[piece]
            total = _add_counts(total, x, weight)
        return counting.finish(self.encoding, total)

    def _orders(self, proba: np.ndarray) -> np.ndarray:
        """(chains, K) class of a draw for each class of the mode, such that memberships (U, chains, K) overlap most."""
        _, chains, n_classes = proba.shape
        orders = np.tile(np.arange(n_classes), (chains, 1))
        weighted = self.mode[:, self.free] * self.patterns.count[:, None]
        overlaps = np.tensordot(proba[..., self.free], weighted, axes=(0, 0)).transpose(0, 2, 1)
        for order, overlap in zip(orders, overlaps, strict=True):
            order[self.free] = self.free[linear_sum_assignment(overlap, maximize=True)[1]]
        return orders

    def _parameters(self, log_class: np.ndarray, likelihoods: tuple[Any, ...]) -> dict[str, np.ndarray]:
        """Parameters (chains · K, …) of a draw by site, without padding."""
        drawn = {CLASS_PROB: np.exp(log_class).ravel()}
        for columns, likelihood, names in zip(self.encoding.blocks, likelihoods, self.sites, strict=True):
            size = int(columns.sizes().sum())
            drawn |= {names[name]: np.asarray(v)[:, :size] for name, v in likelihood.parameters().items()}
        return drawn


def _draw(prior: NaiveBayes, statistics: Statistics, rng: np.random.Generator) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Draw log π (chains, K) and θ from the posterior; return log π and the likelihoods with θ plugged in."""
    n_chains = len(jax.tree.leaves(prior.class_prior)[0])
    classes = prior.class_prior.update(LevelCounts(statistics.class_count.reshape(n_chains, -1)))
    blocks = [family.update(s) for family, s in zip(prior.blocks, statistics.blocks, strict=True)]
    drawn = [jax.tree.map(lambda v: v[0], family.draw(HostVariates(rng), 1)) for family in (classes, *blocks)]
    return np.asarray(drawn[0].log_theta), tuple(drawn[1:])


@kernel
def _log_likelihood(likelihoods: tuple[Likelihood, ...], x: tuple[object, ...]) -> jax.Array:
    """(n, chains · K) log p(row | class, θ) of encoded rows, without base measures."""
    return JointLikelihood(0.0, likelihoods).prepare(x).log_likelihood(x)


@kernel(donate_argnums=0)
def _add_counts(total: Statistics, x: tuple[object, ...], weight: jax.Array) -> Statistics:
    """Statistics with rows x added to every class by `weight` (n, chains · K); `total` is donated."""
    return total.observe_responsibilities(x, weight)


def sample_latent(
    mixture: Any,
    X: object,
    draws: int = 1000,
    chains: int = 4,
    seed: Seed = 0,
    *,
    warmup: int = 500,
    sample_weight: object = None,
    y: object = None,
    progress: bool = True,
) -> ArvizData:
    """Draw from the posterior of a latent class model, by Gibbs sampling.

    Parameters
    ----------
    mixture : fitted NaiveBayesMixture
        Number of classes K, columns, prior, and the mode at which chains start.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows that the mixture was fitted to.
    draws, warmup, chains : int
        Number of draws per chain, number of warm-up sweeps per chain, and number of chains.
    seed : int, JAX key, RandomState or Generator
        Seed of the chains.
    sample_weight : (N,) array-like of integers, optional
        Multiplicity of each row, such as the frequency of a pattern.
    y : (N,) array-like, optional
        Label of each row, or -1, None, NaN or pd.NA where it is not known: semi-supervised. Labels that are all among
        0 … K - 1 are the classes of `mixture` with these numbers. Other labels, of any type and at most K, are the
        classes 0, 1, … in sorted order, and name these in the result; "(class c)" is class c without a label.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    arviz.InferenceData under ArviZ 0.23, xarray.DataTree under ArviZ 1.x
        Groups of variables:

        posterior
            "class_prob" (chain, draw, class), and parameters under the names of `posterior_draws`; the classes are
            those of `mixture`, in order. `attrs` have "relabelled", the proportion of draws whose classes were
            permuted.
        log_likelihood
            "row" (chain, draw, observation), the contribution of each row to the log-likelihood: log p(x_i | θ), with
            the class summed out, or log p(x_i, y_i | θ) of a row whose class is given by `y`; only if N times the
            number of draws is at most 2²⁵. For `arviz.loo` and `arviz.compare`, which choose the number of classes; the
            models that are compared must have the same rows and the same known classes.
        constant_data
            "membership" (row, class), P(class | x_i, X) averaged over the draws.

    Raises
    ------
    ImproperPosteriorError
        If the prior is improper: a class may become empty.
    NotImplementedError
        If the columns are a network and cells are missing.
    ValueError
        If a multiplicity is not an integer, there are more than K labels, or X has other columns.

    Warns
    -----
    UserWarning
        If R-hat is above 1.01, or an effective sample size below 100 per chain; if there are more parameters than free
        frequencies of patterns: the posterior then depends on the prior, whatever the number of rows.

    See Also
    --------
    fit_em : Classifier from rows with and without labels, by EM; predictions without intervals.
    NaiveBayesMixture : Latent classes at the mode, where the chains start.

    Notes
    -----
    For M_u rows of pattern u the likelihood is Π_u [Σ_c π_c Π_j p(x_uj | θ_cj)]^M_u. Each sweep draws the numbers of
    rows in the classes, n_u ~ Multinomial(M_u, P(· | x_u, π, θ)), and then π and θ from their exact posterior given
    these counts. Missing cells are left out, on the assumption that they are missing at random.

    A column has the same probabilities in all rows of a class. Arcs of a network relax this constraint. With the
    estimator `NetworkNB(parents={"test": "population"})` a test has different probabilities in each population; with
    `NetworkNB(parents={"test": "other test"})` two tests depend on each other given the class.

    The likelihood is the same for all orders of the classes. So the classes of each draw are permuted such that their
    memberships overlap most with those of the mode. (Stephens, JRSS B 62, 2000, minimises a divergence instead.) If
    classes overlap so much that their names change from draw to draw, means of their parameters are not informative,
    and "relabelled" is large. Classes that have different priors, or rows of known class, are not permuted, because
    these identify the classes.

    References
    ----------
    Diebolt & Robert, *Estimation of finite mixture distributions through Bayesian sampling*, JRSS B 56 (1994).
    Lazarsfeld & Henry, *Latent structure analysis* (1968).

    Examples
    --------
    >>> import bayesnb as bnb
    >>> X = [["yes", "yes", "yes"]] * 30 + [["no", "no", "no"]] * 50 + [["yes", "no", "no"]] * 5
    >>> mixture = bnb.NaiveBayesMixture(2, estimator=bnb.CategoricalNB()).fit(X)
    >>> data = bnb.sample_latent(mixture, X, draws=200, progress=False)
    >>> data["posterior"]["theta"].shape
    (4, 200, 2, 6)
    """
    seed = read_run(draws, warmup, chains, seed, progress)
    if not hasattr(mixture, "n_components"):
        raise TypeError(f"sample_latent takes a NaiveBayesMixture; mixture is a {type(mixture).__name__}.")
    check_is_fitted(mixture)
    fitted: Fitted = mixture.estimator_.fitted_
    prior, encoding, n_classes = fitted.prior, fitted.encoding, len(fitted.encoding.classes)
    require_proper(encoding, prior)
    if any(family.classes_share_parameters for family in prior.blocks):
        raise NotImplementedError(f"sample_latent cannot draw parameters that classes share. {_ANOTHER}")
    table = fitted.table(X)
    weight = read_multiplicities(sample_weight, table.n_rows)
    names, label = _read_classes(y, table.n_rows, n_classes)
    counted = weight > 0
    patterns = Patterns.from_table(fitted, table.take(counted), weight[counted], label[counted])
    if any(np.any(rows.summed) for rows in patterns.rows):  # Missing cells of a network would have to be drawn, too.
        raise NotImplementedError(f"sample_latent cannot draw missing cells of columns with parents. {_ANOTHER}")
    n_patterns = len(patterns.count)
    reading, rows = scoring.read(encoding, fitted.posterior, "penalized_mle"), patterns.rows
    joint = scoring.score(reading, tuple(r.linear_rows() for r in rows), n_patterns, scoring.joint)
    free = np.setdiff1d(np.arange(n_classes if _is_exchangeable(prior) else 0), patterns.label)
    if _is_exchangeable(prior):
        # The classes of the mode have the names by which they agree most with the known classes.
        known = (patterns.label[:, None] == np.arange(n_classes)) * patterns.count[:, None]
        agreement = known.T @ np.exp(joint - logsumexp(joint, axis=1)[:, None])
        joint = joint[:, linear_sum_assignment(agreement, maximize=True)[1]]
    mode = patterns.classify(joint)[1]
    sampler = Gibbs(encoding, prior, site_names(encoding, prior), patterns, mode, free)
    with progress_bar("Gibbs" if progress else None, warmup + draws) as step:
        parameters, log_row, proba, moved = sampler.run(chains, warmup, draws, seed, lambda: step(1))
    diagnose(parameters, "Gibbs")
    if (patterns.label == UNKNOWN).all():
        _warn_of_parameters(mixture.n_parameters_, encoding)
    if log_row is not None and weight.sum() * draws * chains <= _MOST_SCORES:
        log_row = log_row + scoring.log_base(patterns.rows, n_patterns)
        log_row = log_row[..., np.repeat(patterns.index, weight[counted].astype(np.int64))]
    else:
        log_row = None
    membership = np.full((table.n_rows, n_classes), np.nan)
    membership[counted] = proba[patterns.index]
    named = replace(fitted, encoding=replace(encoding, classes=names))
    return assemble_latent(mixture, named, parameters, log_row, membership, moved)


def read_multiplicities(sample_weight: object, n_rows: int) -> np.ndarray:
    """Return (N,) multiplicities of rows; raise ValueError unless they are integers."""
    weight = check_weights(sample_weight, n_rows)
    fractional = weight != np.round(weight)
    if fractional.any():
        i = int(np.argmax(fractional))
        raise ValueError(f"sample_weight: {weight[i]:g} of row {i} is not an integer; pass frequencies of equal rows.")
    return weight


def _read_classes(y: object, n_rows: int, n_classes: int) -> tuple[Levels, np.ndarray]:
    """Return the names of the classes, and (N,) the class of each row or `UNKNOWN`; raise ValueError for more classes.

    Labels that are not numbers of classes name the first classes, in their order.
    """
    numbers = Levels(tuple(range(n_classes)))
    unlabelled = Levels(()), np.full(n_rows, UNKNOWN)
    labels, index = unlabelled if y is None else check_partial_labels(y, n_rows, "sample_latent")
    if (position := numbers.index(labels.values)).min(initial=0) >= 0:
        return numbers, np.append(position, UNKNOWN)[index]
    if len(labels) > n_classes:
        raise ValueError(
            f"y has more classes than the mixture. Its labels are {shown(list(labels.values))}, and the mixture has "
            f"{n_classes} components. Fit a mixture of more, or set labels that are not known to None."
        )
    others = (f"(class {c})" for c in range(len(labels), n_classes))
    return Levels((*labels.values, *others)), index


def _is_exchangeable(prior: NaiveBayes) -> bool:
    """Whether the prior is the same for all classes."""
    n_classes = np.shape(jax.tree.leaves(prior.class_prior)[0])[-1]
    shared = [leaf for leaf in jax.tree.leaves(prior.blocks) if np.ndim(leaf) >= 2 and len(leaf) == n_classes]
    equal = all((np.asarray(leaf) == np.asarray(leaf)[:1]).all() for leaf in shared)
    return equal and all(np.ptp(np.asarray(leaf)) == 0 for leaf in jax.tree.leaves(prior.class_prior)[:1])


def _warn_of_parameters(n_parameters: int, encoding: Encoding) -> None:
    """Warn if there are more free parameters than frequencies of patterns, for columns of levels without parents."""
    if any(columns.axis()[1] is None or columns.network is not None for columns in encoding.blocks):
        return
    n_frequencies = np.prod([float(size) for columns in encoding.blocks for size in columns.sizes()]) - 1
    if n_parameters > n_frequencies:
        warn(
            f"sample_latent: frequencies of the {n_frequencies + 1:g} possible rows of X do not identify "
            f"{n_parameters} parameters: the posterior depends on the prior, however many rows there are. Use "
            "informative priors, more columns or fewer classes."
        )
