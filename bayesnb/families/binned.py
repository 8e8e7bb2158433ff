"""Piecewise constant densities with unknown cuts: averages over all binnings of a feature's cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from bayesnb.families import binnings
from bayesnb.families._namespace import is_host, log_segment_sum, namespace, segment_sum
from bayesnb.families._pytree import Array, map_leading_axis, pytree, static
from bayesnb.families.averaged_structures import AveragedTables
from bayesnb.families.binned_cells import Cells, moments_of_odds, predictive_with_row, weights_with_row
from bayesnb.families.multinomial import LevelCounts, Multinomial
from bayesnb.families.protocol import Cumulants, Distribution, PenalizedLikelihood, Program, Words
from bayesnb.families.variates import Variates, draw_log_uniform

_AT_A_TIME = 2**18  # bins of several features, so that they fit the cache
_FEATURES, _NARROWEST = 4, 16


@pytree
class Binned(AveragedTables):
    """Numbers that are known up to one of G cells: densities that are constant between unknown cuts.

    Cuts are between cells, each independently there, and shared by the classes; given the cuts the probabilities of the
    bins are Dirichlet in each class, a bin's α the sum of its cells', and within a bin cells have the shares of their
    α. So α is, up to a factor, the base measure: with equal α a density is constant on the scale of the cells' ranks.

    Parameters
    ----------
    concentration : (C, L) array
        Prior concentration α of each cell.
    count : (C, L) array
        Rows in each cell; 0 for a prior.
    log_odds : (L,) array
        Log prior odds of a cut before each cell; without effect for the first cell of a feature.
    group : (L,) int array
        Feature of each cell, contiguous.
    num_groups, width : int
        Number of features, and the largest number of cells of a feature.

    References
    ----------
    Endres & Földiák, *Bayesian bin distribution inference and mutual information*, IEEE Trans. Inf. Theory 51 (2005).
    Lustgarten et al., *Application of an efficient Bayesian discretization method to biomedical data*, BMC
    Bioinformatics 12 (2011).
    """

    kind: ClassVar[str] = "binned"
    words: ClassVar[Words] = Words("columns of numbers, with densities of any shape")
    location: ClassVar[str] = ""
    classes_share_parameters: ClassVar[bool] = True
    tunable: ClassVar[dict[str, str]] = {"a": "strength"}
    read_on_host: ClassVar[bool] = True
    reasons: ClassVar[dict[type, str]] = {
        PenalizedLikelihood: (
            "Binnings of more or less bins are averaged, and no density compares them: EM needs columns of one density "
            'each; give it MixedNB(numbers="gaussian").'
        ),
        Program: (
            "Which cuts there are is discrete, and NUTS does not sample it; posterior_draws are exact without "
            'it. NUTS takes columns of one density each, MixedNB(numbers="gaussian").'
        ),
    }

    concentration: Array
    count: Array
    log_odds: Array
    group: Array
    num_groups: int = static()
    width: int = static()

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Prior with another α₀, the same in each class and feature."""
        if "a" not in values:
            return self
        return self.with_fields(self.concentration * (values["a"] / self.strength), self.count)

    @property
    def strength(self) -> Any:
        """(C, L) α₀ of the feature of each cell."""
        return self._sum(self.concentration)

    def restrict(self, keep: np.ndarray) -> Self:
        """Distribution of some features, by all of their cells.

        Raises
        ------
        ValueError
            If some cells of a feature are left out.
        """
        group, keep = np.asarray(self.group), np.asarray(keep)
        chosen, index = np.unique(group[keep], return_inverse=True)
        of_chosen = np.isin(group, chosen)
        if (of_chosen & ~keep).any():
            raise ValueError("Cells of a feature have a posterior together: ask for all of them.")
        alpha, count, odds = (np.asarray(v)[..., of_chosen] for v in (self.concentration, self.count, self.log_odds))
        return type(self)(alpha, count, odds, index, len(chosen), self.width)

    def proper(self) -> Bool[jax.Array, "*C L"]:
        """(C, L) whether α is positive in all cells of the feature."""
        proper: jax.Array = self._sum((self.concentration <= 0).astype(float)) == 0
        return proper

    def log_evidence(self, statistics: LevelCounts) -> Float[jax.Array, "1 F"]:
        """(1, F) log p(cells), averaged over all binnings."""
        log_evidence = self.update(statistics)._log_partition() - self._log_partition()
        proper = self._padded(self.proper().all(axis=0), True).all(axis=-1)
        return jnp.where(proper, log_evidence, -jnp.inf)[None]

    def _log_partition(self) -> Float[jax.Array, "F"]:
        """(F,) log p(cells counted so far)."""
        log_partition: jax.Array = self._map(Cells.log_partition)
        return log_partition

    def cut_probability(self) -> Float[jax.Array, "L"]:
        """(L,) probability of a cut before each cell; 1 before the first of a feature."""
        probability: jax.Array = self._flat(self._map_to_cells(_cut_probability))
        return probability

    def best_cuts(self) -> Bool[jax.Array, "L"]:
        """(L,) whether the most probable binning has a cut before each cell."""
        cuts: jax.Array = self._flat(self._map_to_cells(_best_cuts))
        return cuts

    def mean(self, multiplicity: Array | None = None) -> Multinomial:
        """Means E θ_g = Σ over the bins b with g of P(b) (α_b + n_b)/(α₀ + N) · α_g/α_b.

        With a `multiplicity` (C,) of each row the cuts change with its cell too: the weights of the bins with the cell
        change by Γ ratios, and those of the cells before and behind them stay.
        """
        if multiplicity is not None:
            return Multinomial(self._flat(self._map_to_cells(predictive_with_row, multiplicity)))
        means = self._map_to_cells(Cells.mean)
        xp = namespace(means)
        with np.errstate(divide="ignore"):
            return Multinomial(xp.where(self.proper(), self._flat(xp.log(means)), xp.nan))

    def mode(self) -> Multinomial:
        """Most probable cuts, and given these the mode of the bins' probabilities in the softmax basis, their mean.

        Densities over more and fewer bins do not compare; on the simplex there is no mode where α + n < 1 in a bin.
        """
        bins = jnp.cumsum(self.best_cuts()) - 1
        counted, alpha = self.posterior_concentration(), jnp.asarray(self.concentration)
        log_theta = jnp.log(self._sum(counted, bins) / self._sum(counted)) + jnp.log(alpha / self._sum(alpha, bins))
        return Multinomial(jnp.where(self.proper(), log_theta, jnp.nan))

    def variance(self) -> dict[str, jax.Array]:
        """Variances Σ P(b) E θ_g² - (E θ_g)²; given its bin θ_g is a Beta variate times a constant."""

        def mean_square(cells: Cells) -> jax.Array:
            alpha, count = cells.over_bins()
            counted, total = alpha + count, cells.total()
            square = counted * (counted + 1.0) / (total * (total + 1.0)) / alpha**2
            return cells.expected(square) * cells.share() ** 2

        square, mean = self._flat(self._map(mean_square)), self.mean().theta
        return {"theta": jnp.maximum(square - mean**2, 0.0)}

    def marginals(self) -> dict[str, Distribution]:
        """Beta distributions with the exact means and variances of the mixtures over the bins with a cell."""
        mean, variance = self.mean().theta, self.variance()["theta"]
        some = (variance > 0) & (variance < mean * (1.0 - mean))
        size = jnp.where(some, mean * (1.0 - mean) / jnp.where(some, variance, 1.0) - 1.0, jnp.inf)
        size = jnp.where(some, size, 1e300)
        return {"theta": ("beta", {"a": mean * size, "b": (1.0 - mean) * size})}

    def draw(self, variates: Variates, n: int) -> Multinomial:
        """n draws: cuts first, then Gamma(α_g + n_g) variates, which add up to those of the bins."""
        log_gamma = variates.log_gamma(self.posterior_concentration(), n)
        uniform = draw_log_uniform(variates, jnp.asarray(self.log_odds), n)
        hazard = self._map(lambda cells: binnings.log_hazard(cells.bins()).T)  # by end

        def draw_table(draw: tuple[jax.Array, jax.Array]) -> jax.Array:
            cuts = self._flat(jax.vmap(_draw_cuts)(hazard, self._padded(draw[1])))
            return self._log_theta(draw[0], jnp.cumsum(cuts) - 1)

        return Multinomial(jax.lax.map(draw_table, (log_gamma, uniform)))

    def draw_log_likelihood(self, variates: Variates, n: int, x: object, counted_in: Array | None = None) -> jax.Array:
        """(n, N, C) draws of Σ log θ of a row's cells, the row counted in class `counted_in`, (n, N, C).

        Only the bins that its cells are in matter then, θ_b ~ Beta(α_b + n_b + 1, rest).
        """
        rows, n_classes = self.rows(x), len(jnp.asarray(self.concentration))
        if counted_in is None:
            return rows.dot_each(self.draw(variates, n).log_theta)
        shape = (self.num_groups, self.width)
        log_gamma = variates.log_gamma(self.posterior_concentration(), n)
        extra = variates.log_gamma(jnp.ones(shape), n)
        uniform = draw_log_uniform(variates, jnp.zeros((2, *shape)), n)
        sums, share = self._map(_sums_with_row)
        each = jnp.eye(n_classes, dtype=bool)

        def of_feature(
            sums: Any, share: jax.Array, gamma: jax.Array, extra: jax.Array, variate: jax.Array
        ) -> jax.Array:
            """(C, C, G) log θ of each cell, in each class (second axis), if the row is counted in the first one."""

            def of_own(sums: binnings.BinSums, counts: jax.Array) -> jax.Array:
                first, last = sums.draw(variate)

                inside, outside = binnings.log_sums_inside_and_outside(gamma, first, last)
                inside = jnp.where(counts[:, None], jnp.logaddexp(inside, extra), inside)
                return inside - jnp.logaddexp(inside, outside) + share[:, first, last]

            log_cell = jnp.diagonal(share, axis1=1, axis2=2)
            log_theta: jax.Array = jax.vmap(of_own)(sums, each) - log_cell
            return log_theta

        def draw_rows(draw: tuple[jax.Array, ...]) -> jax.Array:
            gamma, extra, variate, counted_in = draw
            gamma = jnp.moveaxis(self._padded(gamma, binnings.NEVER), -2, 0)
            tables = jax.vmap(of_feature)(sums, share, gamma, extra, jnp.moveaxis(variate, 0, 1))
            flat = self._flat(tables).reshape(n_classes**2, -1)
            scores = rows.dot(rows.layout(flat)).reshape(-1, n_classes, n_classes)
            return jnp.sum(jnp.where(counted_in[:, :, None], scores, 0.0), axis=1)

        return map_leading_axis(draw_rows, (log_gamma, extra, uniform, counted_in))

    def log_odds_of_terms(self, x: object, of: Any, against: Any) -> Cumulants:
        """(N, T) cumulants of differences of log Beta variates, averaged over the bins that the cells may be in."""
        x, n_classes = self.rows(x), len(jnp.asarray(self.concentration))
        pairs = jnp.arange(n_classes**2)
        moments = self._flat(self._map(partial(moments_of_odds, one=pairs // n_classes, other=pairs % n_classes)))
        pairwise = x.dot_terms(moments.reshape(3 * n_classes**2, -1))  # (N, 3 · pairs, T)
        pairwise = pairwise.reshape(pairwise.shape[0], 3, n_classes**2, -1)
        at = (jnp.asarray(of) * n_classes + jnp.asarray(against))[:, None, None, None]
        first, second, third = jnp.moveaxis(jnp.take_along_axis(pairwise, at, axis=2)[:, :, 0], 1, 0)
        return Cumulants(first, second - first**2, third - 3.0 * first * second + 2.0 * first**3)

    # -- features side by side -------------------------------------------------------------------

    def _at(self) -> tuple[jax.Array, jax.Array]:
        """(F, G) position of each feature's cells, and whether the feature has so many."""
        xp = namespace(self.group)
        counted = {} if xp is np else {"length": self.num_groups}
        size = xp.bincount(self.group, minlength=self.num_groups, **counted)
        cell = xp.arange(self.width)
        return (xp.cumsum(size) - size)[:, None] + xp.minimum(cell, size[:, None] - 1), cell < size[:, None]

    def _padded(self, values: Any, fill: Any = 0.0) -> Any:
        """(…, F, G) values of cells (…, L), one row for each feature."""
        at, filled = self._at()
        xp = namespace(values, at)
        return xp.where(filled, xp.asarray(values)[..., at], fill)

    def _flat(self, values: Any) -> Any:
        """(…, L) values of cells (F, …, G)."""
        xp = namespace(values, self.group)
        start = xp.searchsorted(self.group, xp.arange(self.num_groups))
        return xp.moveaxis(values, 0, -2)[..., self.group, xp.arange(len(self.group)) - start[self.group]]

    def _map(self, of: Callable[..., Any], *shared: Any) -> Any:
        """(F, …) function of the cells of each feature, some features at a time; `shared` are its further arguments."""
        cells = jax.tree.map(jnp.asarray, self._cells())
        size = max(1, _AT_A_TIME // max(1, cells.alpha.shape[1] * self.width**2))

        def alone(cells: Cells) -> Any:
            return of(cells, *shared)

        return jax.vmap(alone)(cells) if size >= self.num_groups else jax.lax.map(alone, cells, batch_size=size)

    def _map_to_cells(self, of: Callable[..., Any], *shared: Any) -> Any:
        """(F, …, G) function with a value for each cell; of NumPy arrays in kernels that most models share."""
        cells = self._cells()
        return _map_on_host(of, cells, *shared) if is_host(*cells, *shared) else self._map(of, *shared)

    def _cells(self) -> Cells:
        """Cells of all features, with a leading axis."""
        alpha, count = (namespace(v).moveaxis(self._padded(v), -2, 0) for v in (self.concentration, self.count))
        return Cells(alpha, count, self._padded(self.log_odds, binnings.NEVER))

    def _sum(self, values: Any, index: Any = None) -> Any:
        """(C, L) sums of values of cells (C, L) over those with the same index, by default over each feature."""
        index = self.group if index is None else index
        return segment_sum(values, index, len(index))[:, index]

    def _log_theta(self, log_gamma: jax.Array, bins: jax.Array) -> jax.Array:
        """(C, L) log θ of cells whose bins have numbers (L,), from log gamma variates of the cells."""
        alpha = jnp.asarray(self.concentration)
        of_bin, of_feature = (log_segment_sum(log_gamma, i, len(bins))[..., i] for i in (bins, jnp.asarray(self.group)))
        return of_bin - of_feature + jnp.log(alpha / self._sum(alpha, bins))


@pytree
class IndependentCuts:
    """Prior of `Binned` densities: all cells alike a priori, and a cut between any two with the same probability.

    Parameters
    ----------
    concentration : float
        α₀, the number of rows of each class that the prior is worth; it is spread evenly over the cells.
    cuts : float
        Approximate number of cuts that are expected: each of the G - 1 has the odds cuts/(G - 1).

    Examples
    --------
    >>> from bayesnb import BinnedNB
    >>> from bayesnb.families import IndependentCuts
    >>> X, y = [[0.1], [0.5], [0.7], [2.5]], ["a", "a", "a", "b"]
    >>> for cuts in (0.1, 1.0, 2.0):  # few cuts: densities that are alike
    ...     nb = BinnedNB(prior=IndependentCuts(cuts=cuts), edges=[[0, 1, 2, 3]]).fit(X, y)
    ...     print(cuts, nb.predict_proba([[2.5]]).round(2))
    0.1 [[0.66 0.34]]
    1.0 [[0.58 0.42]]
    2.0 [[0.53 0.47]]
    """

    least: ClassVar[dict[str, float]] = {"concentration": 0.0, "cuts": 0.0}

    concentration: Any = 4.0
    cuts: Any = 1.0

    def prior(self, n_classes: int, sizes: np.ndarray) -> Binned:
        """Prior of features with these numbers of cells, (F,)."""
        sizes = np.asarray(sizes)
        group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        log_cuts = np.log(self.cuts) if self.cuts > 0 else binnings.NEVER
        odds = log_cuts - np.log(np.maximum(sizes - 1.0, 1.0))
        alpha = np.broadcast_to((self.concentration / np.maximum(sizes, 1))[group], (n_classes, len(group)))
        width = int(sizes.max(initial=1))
        return Binned(alpha, np.zeros(alpha.shape), odds[group], group, len(sizes), width)


def _map_on_host(of: Callable[..., Any], cells: Cells, *shared: np.ndarray) -> np.ndarray:
    """Apply a function to a few features at a time, padded to few widths, so that most models share a kernel."""
    n_features, n_classes, width = cells.alpha.shape
    wide = max(_NARROWEST, 1 << (width - 1).bit_length())
    size = min(_FEATURES, max(1, _AT_A_TIME // (n_classes * wide**2)))
    more = -n_features % size
    fill = (0.0, 0.0, binnings.NEVER)
    padded = (
        np.pad(v, [(0, more), *[(0, 0)] * (v.ndim - 2), (0, wide - width)], constant_values=f)
        for v, f in zip(cells, fill, strict=True)
    )
    parts = zip(*(np.split(v, (n_features + more) // size) for v in padded), strict=True)
    results = [np.asarray(_map_compiled(Cells(*part), *shared, of=of)) for part in parts]
    return np.concatenate(results)[:n_features, ..., :width]


@jax.jit(static_argnames="of")
def _map_compiled(cells: Cells, *shared: jax.Array, of: Callable[..., Any]) -> Any:
    return jax.vmap(lambda alone: of(alone, *shared))(cells)


def _cut_probability(cells: Cells) -> jax.Array:
    return jnp.sum(jnp.exp(cells.bins().log_prob), axis=1)


def _best_cuts(cells: Cells) -> jax.Array:
    return binnings.best_cuts(cells.bins().weight)


def _draw_cuts(hazard_by_end: jax.Array, log_uniform: jax.Array) -> jax.Array:
    return binnings.draw_cuts(hazard_by_end.T, log_uniform)


def _sums_with_row(cells: Cells) -> tuple[binnings.BinSums, jax.Array]:
    """Sums by which the bins of a further row of each class are drawn, and -log α of bins (C, G, G)."""
    return binnings.BinSums.from_weights(weights_with_row(cells)), -jnp.log(cells.over_bins()[0])
