"""Dirichlet: the class prior, categorical, Bernoulli and multinomial features, and every structure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Bool, Float

from bayesnb.families._pytree import pytree, static
from bayesnb.families.condensed import Histogram, Symmetric
from bayesnb.families.conjugate import Conjugate
from bayesnb.families.count_matrix import as_rows
from bayesnb.families.dirichlet_draws import draw_log_likelihood
from bayesnb.families.multinomial import LevelCounts, Multinomial, Ratio
from bayesnb.families.protocol import Cells, Cumulants, Distribution, Hyperparameter, Site
from bayesnb.families.special import log_rising, polygammas
from bayesnb.families.terms import Term, linear, plugged_in, rising, with_counts
from bayesnb.families.variates import Variates


@pytree
class Dirichlet(Conjugate):
    """Independent Dirichlet distributions over contiguous groups of levels, for each class.

    The class prior is one group of C levels; a multinomial one group of V words; a Bernoulli model has F
    groups of two; a categorical one F groups of any size.

    Parameters
    ----------
    concentration : (C, L) array
        α, of a prior, or α' = α + n, of a posterior.
    group : (L,) int array
        Group of each level, contiguous, 0 … num_groups - 1; all zero for one group.
    num_groups : int

    Notes
    -----
    Pure JAX: results have the precision of the arguments *and* of JAX's configuration. For float64 call
    inside `jax.enable_x64(True)`, as bayesnb's estimators do.

    References
    ----------
    Bernardo & Smith, *Bayesian Theory* (1994), appendix A; Murphy, *Machine Learning* (2012), ch. 3.

    Examples
    --------
    Six throws of a die with four faces, and a prior worth one of each: the posterior, and its mean.

    >>> import jax.numpy as jnp
    >>> from bayesnb import Dirichlet
    >>> from bayesnb.families import LevelCounts
    >>> prior = Dirichlet(jnp.ones((1, 4)), jnp.zeros(4, int), num_groups=1)
    >>> posterior = prior.update(LevelCounts(jnp.array([[3, 1, 0, 2]])))
    >>> posterior.concentration
    Array([[4., 2., 1., 3.]], dtype=float32)
    >>> jnp.exp(posterior.mean().log_theta).round(3)
    Array([[0.4, 0.2, 0.1, 0.3]], dtype=float32)
    """

    statistics: ClassVar[type] = LevelCounts
    likelihood: ClassVar[type] = Multinomial
    nonnegative: ClassVar[bool] = True
    least: ClassVar[dict[str, float]] = {"concentration": 0.0}
    tunable: ClassVar[dict[str, str]] = {"alpha": "concentration"}

    concentration: Any
    group: Any
    num_groups: int = static()

    def update(self, statistics: LevelCounts) -> Self:
        """α' = α + n."""
        return type(self)(self.concentration + statistics.count, self.group, self.num_groups)

    def update_apart(self, statistics: LevelCounts) -> PriorAndCounts:
        """As `update`, α and n kept apart: taking rows out of it again loses nothing of α."""
        alpha, count = jnp.asarray(self.concentration), jnp.asarray(statistics.count)
        return PriorAndCounts(alpha + count, self.group, self.num_groups, alpha, count)

    def scale(self, factor: Any) -> Self:
        """factor · α."""
        return type(self)(self.concentration * factor, self.group, self.num_groups)

    def unit(self) -> Self:
        """α = 1."""
        return replace(self, concentration=jnp.ones(jnp.shape(self.concentration)))

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """α of L levels a group that share a base measure m: α L m; else α times the concentrations."""
        scaled = self.scale(values.get("alpha", 1.0))
        if "base_measure" not in values:
            return scaled
        group = jnp.asarray(self.group)
        size = jnp.bincount(group, length=self.num_groups)[group]
        return replace(scaled, concentration=scaled.concentration * (size * values["base_measure"]))

    def hyperprior(self, pooled: bool) -> dict[str, Hyperparameter]:
        """α; and where classes share it m, uniform on the simplex of each group: normalised exponential variates."""
        found = {"alpha": Hyperparameter("theta")}
        if pooled:
            shape, weight = np.shape(self.concentration)[1:], ("Exponential", {"rate": 1.0})
            found["base_measure"] = Hyperparameter("theta", shape, weight, self._normalized)
        return found

    def condensed(self) -> Symmetric:
        """α as a factor of the concentrations."""
        return Symmetric(np.ones(()))

    def condense(self, statistics: LevelCounts) -> Histogram:
        """How often each number occurs among the counts of levels with the same concentration."""
        return Histogram.of(statistics.count, np.asarray(self.group), self.num_groups, np.asarray(self.concentration))

    def n_free(self) -> int:
        """L - 1 of a simplex of L levels."""
        n_classes, n_levels = np.shape(self.concentration)
        return n_classes * (n_levels - np.unique(self.group).size)

    def pad(self, extra: int) -> Self:
        """With so many more levels, in a group of their own that no row refers to."""
        alpha = np.pad(self.concentration, ((0, 0), (0, extra)), constant_values=1.0)
        group = np.pad(self.group, (0, extra), constant_values=self.num_groups)
        return type(self)(alpha, group, self.num_groups + 1)

    def restrict(self, keep: np.ndarray) -> Self:
        """Of some levels; the others of their groups become one more level, of what is then one group."""
        alpha, group = np.asarray(self.concentration), np.asarray(self.group)
        chosen, index = np.unique(group[keep], return_inverse=True)
        others = ~keep & np.isin(group, chosen)
        if not others.any():
            return type(self)(alpha[:, keep], index, len(chosen))
        rest = alpha[:, others].sum(axis=1, keepdims=True)
        return type(self)(np.append(alpha[:, keep], rest, axis=1), np.zeros(keep.sum() + 1, np.int32), 1)

    def improper(self) -> Self:
        """α = 0."""
        return self.scale(0.0)

    def total(self) -> Float[jax.Array, "*C G"]:
        """(C, G) α₀ = Σ α over each group."""
        return self._sum(self.concentration)

    def log_partition(self) -> Float[jax.Array, "*C G"]:
        """(C, G) log B(α) = Σ log Γ(α_l) - log Γ(α₀); 0 for a group without levels."""
        proper = self._sum(jnp.asarray(self.concentration) <= 0) == 0
        alpha = jnp.where(proper[:, self.group], self.concentration, 1.0)
        total = self._sum(alpha)
        empty = total == 0
        value = self._sum(gammaln(alpha)) - jnp.where(empty, 0.0, gammaln(jnp.where(empty, 1.0, total)))
        return jnp.where(proper, value, jnp.inf)

    def log_evidence(self, statistics: LevelCounts) -> Float[jax.Array, "*C G"]:
        """(C, G) Σ log Γ(α + n)/Γ(α) - log Γ(α₀ + t)/Γ(α₀): ratios, since log partitions of large α cancel."""
        alpha, n = jnp.asarray(self.concentration), jnp.asarray(statistics.count)
        value = self._sum(log_rising(alpha, n)) - log_rising(self.total(), self._sum(n))
        return jnp.where(self._sum(alpha <= 0) == 0, value, -jnp.inf)

    def proper(self) -> Bool[jax.Array, "*C L"]:
        """(C, L) whether all concentrations of the group are positive."""
        return (self._sum(jnp.asarray(self.concentration) <= 0) == 0)[:, self.group]

    def pseudo_count(self) -> dict[str, Any]:
        """α₀."""
        return {"theta": self.total()[:, self.group]}

    def mean(self) -> Multinomial:
        """E θ_l = α_l / α₀."""
        return Multinomial(jnp.log(self._mean()))

    def mode(self) -> Multinomial:
        """Mode on the simplex, (α_l - 1) / (α₀ - L); NaN where some α < 1 or all are 1."""
        alpha = jnp.asarray(self.concentration)
        excess = self._sum(alpha - 1.0)
        exists = (self._sum(alpha < 1.0) == 0) & (excess > 0)
        return Multinomial(jnp.log((alpha - 1.0) / jnp.where(exists, excess, jnp.nan)[:, self.group]))

    def penalized_mle(self) -> Multinomial:
        """The mean: the mode in the softmax basis, which exists for every α > 0."""
        return self.mean()

    def log_penalty(self, parameters: Multinomial) -> Float[jax.Array, "*C L"]:
        """(C, L) α log θ: the log density in the softmax basis."""
        return linear(self.concentration, parameters.log_theta)

    def predictive(self) -> Ratio:
        """log B(α + x) - log B(α)."""
        return self._ratio(rising)

    def predictive_with_row(self, multiplicity: Any) -> Ratio:
        """log B(α + (w + 1) x) - log B(α + w x), w the multiplicity."""
        return self._ratio(rising, multiplicity)

    def mean_with_row(self, multiplicity: Any) -> Ratio:
        """Σ x log[(α + w x)/(α₀ + w t)], w the multiplicity."""
        return self._ratio(plugged_in, multiplicity)

    def variance(self) -> dict[str, jax.Array]:
        """Var θ_l = m (1 - m) / (α₀ + 1)."""
        mean = self._mean()
        return {"theta": mean * (1.0 - mean) / (self.total()[:, self.group] + 1.0)}

    def marginals(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """θ_l ~ Beta(α_l, α₀ - α_l)."""
        rest = self.total()[:, self.group] - self.concentration
        return {"theta": ("beta", {"a": self.concentration, "b": rest})}

    def draw(self, variates: Variates, n: int) -> Multinomial:
        """Normalised gamma variates, in log space: small concentrations do not underflow."""
        alpha = jnp.asarray(self.concentration)
        log_gamma = variates.log_gamma(alpha, n)
        return Multinomial(jax.vmap(lambda draw: draw - self.log_total(draw))(log_gamma))

    def program(self) -> list[Site]:
        """θ of each group ~ Dirichlet(α), groups with as many levels together; a group of one level has θ = 1."""
        alpha = jnp.asarray(self.concentration)

        def of(levels: np.ndarray) -> Callable[[Mapping[str, Any]], Distribution]:
            return lambda _: ("Dirichlet", {"concentration": alpha[:, levels]})

        return [Site("theta", f"_of_{n}", len(levels), of(levels)) for n, levels in self._by_size()]

    def at_sites(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {f"theta_of_{n}": parameters["theta"][..., at] for n, at in self._by_size()}

    def from_sites(self, values: Mapping[str, Any]) -> dict[str, Any]:
        theta = jnp.ones(jnp.shape(self.concentration))
        for n, at in self._by_size():
            theta = theta.at[:, at].set(values[f"theta_of_{n}"])
        return {"theta": theta}

    def cells(self, likelihood: Multinomial, cells: LevelCounts | None, total: Any) -> Iterator[Cells]:
        """Multinomial counts of each group."""
        for n, at in self._by_size():
            value = None if cells is None else jnp.asarray(cells.count)[..., at]
            group = np.asarray(self.group)[at[:, 0]]
            draws: Any = np.broadcast_to(total, (*np.shape(total)[:-1], self.num_groups))[..., group]
            draws = draws if value is None else jnp.sum(value, axis=-1)
            # Counts need not be integers: these have the density that the closed form gives them.
            yield Cells(f"_of_{n}", ("Multinomial", {"total_count": draws, "probs": likelihood.theta[..., at]}), value)

    def _by_size(self) -> list[tuple[int, np.ndarray]]:
        """Sizes of groups of two levels or more, and the levels (G, size) of those groups."""
        sizes = np.bincount(np.asarray(self.group), minlength=self.num_groups)
        start = np.cumsum(sizes) - sizes
        return [(int(n), start[sizes == n][:, None] + np.arange(n)) for n in np.unique(sizes[sizes > 1])]

    def simulate(self, likelihood: Multinomial, rng: Any, total: int = 1) -> np.ndarray:
        """(S, L) counts of a row for each of S level probabilities: of one group `total` draws, of several one each."""
        log_theta = np.asarray(likelihood.log_theta)
        if self.num_groups == 1 and log_theta.shape[-1]:
            return rng.multinomial(total, np.exp(log_theta))
        noisy = log_theta + rng.gumbel(size=log_theta.shape)
        first = np.diff(np.asarray(self.group), prepend=-1) != 0  # groups without levels have none
        best = np.maximum.reduceat(noisy, np.flatnonzero(first), axis=-1) if first.any() else noisy
        return (noisy == best[..., np.cumsum(first) - 1]).astype(np.int64)

    def log_total(self, log_gamma: jax.Array) -> Float[jax.Array, "*C L"]:
        """(C, L) logarithm of the sum over each level's group of gamma variates, whose logarithms are given."""
        top = jax.ops.segment_max(log_gamma.T, self.group, self.num_groups, indices_are_sorted=True).T
        return (top + jnp.log(self._sum(jnp.exp(log_gamma - top[:, self.group]))))[:, self.group]

    def log_likelihood_cumulants(self, x: Any, multiplicity: float = 0.0) -> Cumulants:
        """With α = α' + multiplicity · x the k-th is Σ xᵏ ψₖ₋₁(α) - Σ tᵏ ψₖ₋₁(α₀), and of the mean the base measure."""

        x, term = self._rows(x), _cumulants(multiplicity)
        tables = x.contrast_layout(term, self.concentration, self.total(), self.group)
        mean, variance, third = jnp.split(x.contrast(term, tables), 3, axis=1)
        return Cumulants(mean + x.log_base()[:, None], variance, third)

    def cumulants_of_terms(self, x: Any) -> Cumulants:
        """(N, C, G) the same of each group, without the base measure."""
        x = self._rows(x)
        found = x.contrast_terms(_cumulants(0.0), self.concentration, self.total(), self.group)
        return Cumulants(*jnp.split(found, 3, axis=1))

    def cumulants_of_levels(self) -> Cumulants:
        """(C, L) of log θ_l: ψₖ₋₁(α_l) - ψₖ₋₁(α₀); levels of one group have the covariance -ψ₁(α₀)."""
        pairs = zip(polygammas(self.concentration), polygammas(self.total()), strict=True)
        return Cumulants(*(level - total[:, self.group] for level, total in pairs))

    def draw_log_likelihood(self, variates: Variates, n: int, x: Any, multiplicity: float = 0.0) -> jax.Array:
        return draw_log_likelihood(self, variates, n, self._rows(x), multiplicity)

    def log_base(self, x: Any) -> jax.Array:
        return self._rows(x).log_base()

    def log_predictive(self, x: Any) -> jax.Array:
        return super().log_predictive(self._rows(x))

    def with_level(self, multiplicity: Any) -> tuple[jax.Array, jax.Array]:
        """(C, L) α of each level, and α₀ of its group, after the level was seen `multiplicity` more times."""
        alpha, count = self._apart()
        total, of_all = self._sum(alpha)[:, self.group], self._sum(count)[:, self.group]
        return with_counts(alpha, count, multiplicity), with_counts(total, of_all, multiplicity)

    def _apart(self) -> tuple[jax.Array, jax.Array]:
        """What rows cannot be taken out of, and what they can."""
        alpha = jnp.asarray(self.concentration)
        return jnp.zeros_like(alpha), alpha

    def _ratio(self, term: Callable[[Any], Term], multiplicity: Any = None) -> Ratio:
        parts = (jnp.asarray(self.concentration),) if multiplicity is None else self._apart()
        level, total = jnp.concatenate(parts), jnp.concatenate([self._sum(part) for part in parts])
        return Ratio(level, total, jnp.asarray(self.group), multiplicity, term)

    def _rows(self, x: Any) -> Any:
        return as_rows(x, self.group, self.num_groups)

    def _mean(self) -> jax.Array:
        return self.concentration / self.total()[:, self.group]

    def _normalized(self, weight: jax.Array) -> jax.Array:
        return weight / jax.ops.segment_sum(weight, self.group, self.num_groups)[self.group]

    def _sum(self, values: Any) -> jax.Array:
        if self.num_groups == 1:
            return jnp.sum(jnp.asarray(values), axis=-1, keepdims=True)
        values = jnp.asarray(values)
        values = values.astype(jnp.asarray(self.concentration).dtype) if values.dtype == bool else values
        return jax.ops.segment_sum(values.T, self.group, self.num_groups, indices_are_sorted=True).T


def _cumulants(multiplicity: float) -> Term:
    """Σ xᵏ ψₖ₋₁(α + multiplicity · x), k = 1, 2, 3, side by side."""

    def all_three(x: Any, a: jax.Array) -> jax.Array:
        return jnp.concatenate(
            [linear(x**k, psi) for k, psi in enumerate(polygammas(a + multiplicity * x), 1)], axis=-1
        )

    once = partial(all_three, 1.0)
    return Term(all_three, once, lambda a, total, group: once(a) - once(total)[group])


@pytree
class PriorAndCounts(Dirichlet):
    """A posterior that knows its prior α and the counts n, (C, L) each: α' = α + n rounds, and α' - x would lose α."""

    prior: Any = None
    count: Any = None

    def update(self, statistics: LevelCounts) -> Dirichlet:  # type: ignore[override]
        """α + (n + further counts)."""
        return Dirichlet(with_counts(self.prior, self.count, statistics.count), self.group, self.num_groups)

    def pad(self, extra: int) -> PriorAndCounts:
        prior = Dirichlet(self.prior, self.group, self.num_groups).pad(extra)
        count = np.pad(self.count, ((0, 0), (0, extra)))
        return PriorAndCounts(prior.concentration + count, prior.group, prior.num_groups, prior.concentration, count)

    def _apart(self) -> tuple[jax.Array, jax.Array]:
        return jnp.asarray(self.prior), jnp.asarray(self.count)
