"""Normal–inverse-gamma: Gaussian features with unknown mean and variance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Bool, Float

from bayesnb.families._pytree import pytree, static
from bayesnb.families.cells import observed, sum_cells
from bayesnb.families.empirical import EmpiricalPrior
from bayesnb.families.leave_one_out import CellByCell, SumOfCells
from bayesnb.families.moments import Moments
from bayesnb.families.protocol import Conjugate, Cumulants, Distribution, Hyperparameter, Site, Words
from bayesnb.families.special import log_rising, polygammas
from bayesnb.families.variates import Variates

_LOG_2PI = 1.8378770664093453


@pytree
class Normal(SumOfCells):
    """Means and variances plugged in: `mu`, `sigma2` (C, F). A variance of zero is a point mass."""

    mu: Any
    sigma2: Any

    def parameters(self) -> dict[str, jax.Array]:
        return {"mu": self.mu, "sigma2": self.sigma2}

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log Normal(x; μ, σ²); on a point mass +inf, off it -inf, and -inf outweighs."""
        seen, x = observed(x)
        mu, sigma2 = jnp.asarray(self.mu), jnp.asarray(self.sigma2)
        point = sigma2 == 0
        sd = jnp.sqrt(jnp.where(point, 1.0, sigma2))
        precision_root = jnp.where(point, 0.0, 1.0 / sd)
        constant = jnp.where(point, 0.0, -jnp.log(sd) - 0.5 * _LOG_2PI)

        def regular(mu: jax.Array, root: jax.Array, constant: jax.Array) -> jax.Array:
            z = (x - mu) * root
            return sum_cells(seen, constant - 0.5 * z * z)

        def degenerate(mu: jax.Array, point: jax.Array) -> jax.Array:
            point = point & seen
            off = jnp.any(point & (x != mu), axis=-1)
            return jnp.where(off, -jnp.inf, jnp.where(jnp.any(point, axis=-1), jnp.inf, 0.0))

        score = jax.vmap(regular, out_axes=1)(mu, precision_root, constant)

        def with_points() -> jax.Array:
            extra = jax.vmap(degenerate, out_axes=1)(mu, point)
            return jnp.where((extra == 0) | jnp.isnan(score), score, extra)

        return jax.lax.cond(jnp.any(point), with_points, lambda: score)

    def distribution(self) -> Distribution:
        return "Normal", {"loc": self.mu, "scale": jnp.sqrt(self.sigma2)}

    def simulate(self, rng: Any) -> np.ndarray:
        """A number for each of the parameters, by a NumPy generator."""
        return rng.normal(self.mu, np.sqrt(self.sigma2))

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log density of one class, where no variance is zero."""
        return -0.5 * (_LOG_2PI + jnp.log(self.sigma2) + (x - self.mu) ** 2 / self.sigma2)

    def log_likelihood(self, statistics: Moments) -> Float[jax.Array, "*C F"]:
        """(C, F) -½ [n log 2πσ² + (M2 + n (x̄ - μ)²)/σ²]."""
        n, square = statistics.count, statistics.m2 + statistics.count * (statistics.mean - self.mu) ** 2
        return jnp.where(n > 0, -0.5 * (n * (_LOG_2PI + jnp.log(self.sigma2)) + square / self.sigma2), 0.0)


@pytree
class EmpiricalNormal(EmpiricalPrior):
    """Of Gaussian features: loc = mean over all rows, κ, a and b = a·v, so that the expected precision a/b is 1/v.

    Parameters
    ----------
    variance : {"within", "pooled"}
        What v is, in population form: the variance within classes, Σ_c M2_c/n, or that over all rows. Where it is 0,
        or no more than (10⁻¹² · mean)², v = 1; without an observed cell loc = 0 and v = 1.
    kappa, concentration : float
        κ, the number of rows that loc is worth, and a, half of the number that v is worth.
    """

    least: ClassVar[dict[str, float]] = {"kappa": 0.0, "concentration": 0.0}
    tunable: ClassVar[dict[str, str]] = {"kappa": "kappa", "a": "concentration"}
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"variance": ("within", "pooled")}

    variance: str = static()
    kappa: Any = 0.1
    concentration: Any = 1.0

    def of_unknown_classes(self) -> EmpiricalNormal:
        """With the variance over all rows."""
        return EmpiricalNormal("pooled", self.kappa, self.concentration)

    def __call__(self, statistics: Moments, together: Moments) -> NormalInverseGamma:
        xp = together.mean.__array_namespace__()
        m2 = statistics.m2.sum(axis=0) if self.variance == "within" else together.m2
        variance = m2 / (together.count + (together.count == 0))
        variance = xp.where(variance <= (1e-12 * together.mean) ** 2, 1.0, variance)
        each = xp.ones_like(statistics.count)
        fields = together.mean, self.kappa, self.concentration, self.concentration * variance
        return NormalInverseGamma(*(field * each for field in fields))


@pytree
class NormalInverseGamma(CellByCell, Conjugate):
    """μ | σ² ~ Normal(loc, σ²/κ), σ² ~ InverseGamma(concentration a, rate b); each field (C, F).

    References
    ----------
    Bernardo & Smith, *Bayesian Theory* (1994), appendix A; Murphy, *Machine Learning* (2012), §4.6.3.
    """

    kind: ClassVar[str] = "gaussian"
    words: ClassVar[Words] = Words(parameters={"mu": "mean", "sigma2": "variance"})
    location: ClassVar[str] = "mu"
    statistics: ClassVar[type] = Moments
    likelihood: ClassVar[type] = Normal
    empirical: ClassVar[dict[str, EmpiricalPrior]] = {name: EmpiricalNormal(name) for name in ("within", "pooled")}
    tunable: ClassVar[dict[str, str]] = {"kappa": "kappa", "a": "concentration"}
    correlates: ClassVar[bool] = True
    # a = -3/2 is the improper prior under which MAP is the MLE.
    least: ClassVar[dict[str, float]] = {"loc": -math.inf, "kappa": 0.0, "concentration": -1.5, "rate": 0.0}

    loc: Any
    kappa: Any
    concentration: Any
    rate: Any

    def update(self, statistics: Moments) -> Self:
        """κ' = κ + n, m' = (κm + n x̄)/κ', a' = a + n/2, b' = b + M2/2 + κ n (x̄ - m)²/(2κ')."""
        n, mean = statistics.count, statistics.mean
        kappa = self.kappa + n
        share = n / (kappa + (kappa == 0))
        prior_share = 1.0 - share
        delta = mean - self.loc
        return type(self)(
            prior_share * self.loc + share * mean,
            kappa,
            self.concentration + n / 2,
            self.rate + statistics.m2 / 2 + self.kappa * share * (delta * delta) / 2,
        )

    def scale(self, factor: Any) -> Self:
        """κ, a and b times the factor."""
        return type(self)(self.loc, self.kappa * factor, self.concentration * factor, self.rate * factor)

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """κ; a, and b with it, b/a kept; loc and b of a feature, which classes share."""
        one = 0.0 * self.loc + 1.0
        a = values.get("a", self.concentration)
        rate = self.rate / self.concentration * a if "a" in values else self.rate
        fields = values.get("loc", self.loc), values.get("kappa", self.kappa), a, values.get("rate", rate)
        return type(self)(*(field * one for field in fields))

    def hyperprior(self, pooled: bool) -> dict[str, Hyperparameter]:
        """loc ~ Normal around the prior's with the scale of its μ, b/(aκ); log b ~ Normal(log b, 1); κ, a are fixed."""
        loc, kappa, a, b = (np.asarray(v)[0] for v in (self.loc, self.kappa, self.concentration, self.rate))
        scale = np.sqrt(b / (a * kappa))
        return {
            "loc": Hyperparameter("mu", loc.shape, ("Normal", {"loc": loc, "scale": scale})),
            "rate": Hyperparameter("sigma2", loc.shape, ("LogNormal", {"loc": np.log(b), "scale": 1.0})),
        }

    def improper(self) -> Self:
        """κ = 0, a = 1, b = 0."""
        zero = self.loc * 0.0
        return type(self)(zero, zero, zero + 1.0, zero)

    def log_partition(self) -> Float[jax.Array, "*C F"]:
        """(C, F) log Γ(a) - a log b - ½ log κ - a log 2π; the last term is -½ log 2π of every cell."""
        proper = self.proper()
        kappa, a, b = (jnp.where(proper, v, 1.0) for v in (self.kappa, self.concentration, self.rate))
        value = gammaln(a) - a * jnp.log(b) - 0.5 * jnp.log(kappa) - a * _LOG_2PI
        return jnp.where(proper, value, jnp.inf)

    def proper(self) -> Bool[jax.Array, "*C F"]:
        """(C, F) whether κ, a and b are positive."""
        kappa, a, b = (jnp.asarray(v) for v in (self.kappa, self.concentration, self.rate))
        return (kappa > 0) & (a > 0) & (b > 0)

    def pseudo_count(self) -> dict[str, Any]:
        """κ for μ; for σ² the sum of squares that it is a share of, b."""
        return {"mu": self.kappa, "sigma2": self.rate}

    def mean(self) -> Normal:
        """E μ = m; E σ² = b/(a - 1), NaN where a <= 1; both NaN where κ = 0."""
        a = jnp.asarray(self.concentration)
        variance = self.rate / jnp.where(a > 1, a - 1.0, jnp.nan)
        known = jnp.asarray(self.kappa) > 0
        return Normal(jnp.where(known, self.loc, jnp.nan), jnp.where(known, variance, jnp.nan))

    def mode(self) -> Normal:
        """Joint mode in (μ, σ²): m and b/(a + 3/2)."""
        a = jnp.asarray(self.concentration) + 1.5
        known = (jnp.asarray(self.kappa) > 0) & (a > 0)
        return Normal(
            jnp.where(known, self.loc, jnp.nan),
            jnp.where(known, self.rate / jnp.where(known, a, 1.0), jnp.nan),
        )

    def log_penalty(self, parameters: Normal) -> Float[jax.Array, "*C F"]:
        """(C, F) -(a + 3/2) log σ² - [b + κ (μ - m)²/2]/σ²."""
        spread = self.rate + 0.5 * self.kappa * (parameters.mu - self.loc) ** 2
        return -(self.concentration + 1.5) * jnp.log(parameters.sigma2) - spread / parameters.sigma2

    def predictive(self) -> StudentT:
        return StudentT.of(self)

    def variance(self) -> dict[str, jax.Array]:
        """Var μ = b/((a - 1)κ) for a > 1, Var σ² = b²/((a - 1)²(a - 2)) for a > 2, else inf."""
        a, b = jnp.asarray(self.concentration), jnp.asarray(self.rate)
        mu = b / jnp.where(a > 1, (a - 1.0) * self.kappa, 0.0)
        sigma2 = (b / jnp.where(a > 2, a - 1.0, 1.0)) ** 2 / jnp.where(a > 2, a - 2.0, 1.0)
        return {
            "mu": jnp.where((a > 1) & (jnp.asarray(self.kappa) > 0), mu, jnp.inf),
            "sigma2": jnp.where(a > 2, sigma2, jnp.inf),
        }

    def marginals(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """μ ~ t with 2a degrees of freedom, σ² ~ InverseGamma."""
        scale = (self.rate / (self.concentration * self.kappa)) ** 0.5
        return {
            "mu": ("t", {"df": 2 * self.concentration, "loc": self.loc, "scale": scale}),
            "sigma2": ("invgamma", {"a": self.concentration, "scale": self.rate}),
        }

    def program(self) -> list[Site]:
        """σ² ~ InverseGamma(a, b), μ | σ² ~ Normal(loc, σ²/κ)."""
        a, b, loc, kappa = (jnp.asarray(v) for v in (self.concentration, self.rate, self.loc, self.kappa))
        n = a.shape[1]
        return [
            Site("sigma2", "", n, lambda _: ("InverseGamma", {"concentration": a, "rate": b})),
            Site("mu", "", n, lambda given: ("Normal", {"loc": loc, "scale": jnp.sqrt(given["sigma2"] / kappa)})),
        ]

    def draw(self, variates: Variates, n: int) -> Normal:
        sigma2 = self.rate * jnp.exp(-variates.log_gamma(self.concentration, n))
        return Normal(self.loc + jnp.sqrt(sigma2 / self.kappa) * variates.normal(self.loc, n), sigma2)

    log_base = staticmethod(Moments.log_base)

    def log_likelihood_cumulants(self, x: Any, multiplicity: float = 0.0) -> Cumulants:
        """Of Σ_f log Normal(x; μ, σ²) over (μ, σ²); r = (x - m)²/b.

        Mean -½ log 2π + ½[ψ(a) - log b] - ½[a r + 1/κ], variance ¼ψ₁(a) + a r²/4 - r/2 + a r/κ + 1/(2κ²), third
        ⅛ψ₂(a) - a r³/4 + 3r²/8 - 3a r²/(2κ) + 3r/(2κ) - 3a r/κ² - 1/κ³.
        """

        def one_class(prior: NormalInverseGamma) -> Cumulants:
            distance, kappa, a, b = prior._with_cell(x, multiplicity)
            ratio, (psi, psi1, psi2) = distance**2 / b, polygammas(a)
            mean = 0.5 * (psi - jnp.log(b) - _LOG_2PI - a * ratio - 1.0 / kappa)
            # a r²/4 - r/2 is large where r is; a r (r - 2/a)/4 keeps it from cancelling.
            variance = 0.25 * psi1 + 0.25 * a * ratio * (ratio - 2.0 / a) + a * ratio / kappa + 0.5 / kappa**2
            third = 0.125 * psi2 - 0.25 * a * ratio**2 * (ratio - 1.5 / a)
            third = third - 1.5 * a * ratio * (ratio - 1.0 / a) / kappa - 3.0 * a * ratio / kappa**2 - 1.0 / kappa**3
            return Cumulants(*(sum_cells(seen, cumulant) for cumulant in (mean, variance, third)))

        seen, x = observed(x)
        return jax.vmap(one_class, out_axes=1)(jax.tree.map(jnp.asarray, self))

    def draw_log_likelihood(self, variates: Variates, n: int, x: Any, multiplicity: float = 0.0) -> jax.Array:
        """½ log(g/(2πb)) - ½(√(g/b) (x - m) - z/√κ)² with g ~ Gamma(a), z standard normal."""
        log_gamma, normal = variates.log_gamma(self.concentration + multiplicity / 2, n), variates.normal(self.loc, n)
        seen, x = observed(x)

        def one_class(prior: NormalInverseGamma, log_gamma: jax.Array, normal: jax.Array) -> jax.Array:
            distance, kappa, _, b = prior._with_cell(x, multiplicity)
            log_precision = log_gamma - jnp.log(b)
            z = jnp.exp(0.5 * log_precision) * distance - normal / jnp.sqrt(kappa)
            return sum_cells(seen, 0.5 * (log_precision - _LOG_2PI - z * z))

        fields = jax.tree.map(jnp.asarray, self)
        return jax.lax.map(lambda draw: jax.vmap(one_class, out_axes=1)(fields, *draw), (log_gamma, normal))

    def log_bayes_factor_of_levels(self, by_level: Moments, by_class: Moments) -> np.ndarray:
        """-(a + (n - 1)/2) log[1 - n/(κ + n) · B/(2b')] - (L - 1)/2 · log(1 + n/κ), B the squares between L levels.

        Of the n - 1 contrasts of the rows, which do not tell where a class lies: one variance a class, and a mean of
        each level with κ n_l/n of the prior's rows.
        """
        kappa, a, b = (np.asarray(field)[:, None] for field in (self.kappa, self.concentration, self.rate))
        n, seen = by_class.count, np.maximum((by_level.count > 0).sum(axis=2), 1)
        between = np.maximum(by_class.m2 - by_level.m2.sum(axis=2), 0.0)
        # Below one but for rounding, as the prior rates are positive.
        explained = np.minimum(n / (kappa + n) * between / (2.0 * b + by_class.m2), 1.0 - 1e-16)
        return -(a + _contrasts(by_class) / 2) * np.log1p(-explained) - (seen - 1) / 2 * np.log1p(n / kappa)

    def require_pairs(self, names: Sequence[str]) -> None:
        """An inverse Wishart has one ν for all its coordinates."""
        a = np.asarray(self.concentration)
        other = (a != a[:, :1]).any(axis=0)
        if other.any():
            raise NotImplementedError(
                f"The priors of the Gaussian features {names[0]!r} and {names[int(np.argmax(other))]!r} differ in "
                "concentration; no inverse Wishart has both as its marginals, so their dependence has no closed-form "
                "Bayes factor here. Give them the same, or compare others with features=."
            )

    def log_bayes_factor_of_pairs(
        self, other: NormalInverseGamma, x: Moments, y: Moments, cross: np.ndarray
    ) -> np.ndarray:
        """An inverse Wishart against the inverse gammas that are its marginals, of the n - 1 contrasts of the rows.

        With a', b' their posteriors and ρ the correlation in the posterior scale matrix it is
        log Γ(a' + ½)/Γ(a') - log Γ(a + ½)/Γ(a) + ½ log(b₁b₂/b₁'b₂') - (a' + ½) log(1 - ρ²).
        """
        a, b_x = (np.asarray(field)[:, :, None] for field in (self.concentration, self.rate))
        b_y = np.asarray(other.rate)[:, None]
        after, after_x, after_y = a + _contrasts(x) / 2, b_x + x.m2 / 2, b_y + y.m2 / 2
        share = cross / (2.0 * np.sqrt(after_x) * np.sqrt(after_y))
        # Below one but for rounding, as the prior rates are positive.
        square = np.minimum(share**2, 1.0 - 1e-16)
        terms = np.asarray(log_rising(after, 0.5)) - np.asarray(log_rising(a, 0.5))
        return terms - (after + 0.5) * np.log1p(-square) - 0.5 * (np.log(after_x / b_x) + np.log(after_y / b_y))

    def with_cell(self, x: jax.Array, multiplicity: Any) -> Self:
        """The posterior after each cell of x (N, F) was seen `multiplicity` more times.

        Leaving out an outlier takes b' for the difference of two large numbers, b'/b off by 1e-16: what is left of it
        is not below that.
        """
        found = self.update(Moments(multiplicity, x, 0.0))
        return replace(found, rate=jnp.maximum(found.rate, 4e-16 * self.rate))

    def log_evidence_of_cell(self, x: jax.Array, weight: Any) -> jax.Array:
        """log p of each cell of x (N, F) counted `weight` times, of one class."""
        kappa, a, b = self.kappa, self.concentration, self.rate
        spread = 0.5 * kappa * weight / (kappa + weight) * (x - self.loc) ** 2 / b
        value = log_rising(a, weight / 2) - (a + weight / 2) * jnp.log1p(spread) - 0.5 * jnp.log1p(weight / kappa)
        return value - weight / 2 * (_LOG_2PI + jnp.log(b))

    def _with_cell(self, x: jax.Array, multiplicity: float) -> tuple[Any, Any, Any, Any]:
        """x - m, κ, a and b after each cell of x (N, F) was seen `multiplicity` more times."""
        distance, kappa = x - self.loc, self.kappa + multiplicity
        share = self.kappa / kappa
        return (
            distance * share,
            kappa,
            self.concentration + multiplicity / 2,
            self.rate + multiplicity / 2 * share * distance**2,
        )


def _contrasts(moments: Moments) -> np.ndarray:
    """How many directions the rows have that do not tell where they lie: n - 1."""
    return np.maximum(moments.count - 1.0, 0.0)


@pytree
class StudentT(SumOfCells):
    """Means and variances integrated out: log density constant - exponent · log(1 + ((x - loc)/width)²)."""

    loc: Any
    width: Any
    exponent: Any
    constant: Any

    @classmethod
    def of(cls, posterior: NormalInverseGamma) -> StudentT:
        """Student-t with 2a degrees of freedom and scale² = b(κ + 1)/(aκ)."""
        a, b, kappa = (
            jnp.where(v > 0, v, jnp.nan)
            for v in map(jnp.asarray, (posterior.concentration, posterior.rate, posterior.kappa))
        )
        width = jnp.sqrt(b * (2.0 * (kappa + 1.0) / kappa))
        constant = (log_rising(a, jnp.full((), 0.5)) - 0.5 * jnp.log(jnp.pi)) - jnp.log(width)
        return cls(jnp.asarray(posterior.loc), width, a + 0.5, constant)

    def log_prob(self, x: Any) -> jax.Array:
        if self.loc.ndim == 3:  # each row has its own parameters: to look at all of them first would take as long again
            return super().log_prob(x)
        seen, x = observed(x)
        farthest = jnp.max(abs(x), initial=0.0) + jnp.max(abs(self.loc), initial=0.0)

        def score(log1p_square: Callable[[jax.Array], jax.Array]) -> jax.Array:
            return jax.vmap(lambda one: sum_cells(seen, one.cells(x, log1p_square)), out_axes=1)(self)

        return jax.lax.cond(
            farthest < 1e150 * jnp.min(self.width, initial=1.0),
            lambda: score(lambda z: jnp.log1p(z * z)),
            lambda: score(_log1p_square),
        )

    def cells(
        self, x: jax.Array, log1p_square: Callable[[jax.Array], jax.Array] | None = None
    ) -> Float[jax.Array, "N F"]:
        """(N, F) log density of one class."""
        return self.constant - self.exponent * (log1p_square or _log1p_square)((x - self.loc) / self.width)


def _log1p_square(z: jax.Array) -> jax.Array:
    """log(1 + z²) where z² may overflow."""
    far = abs(z) > 1e100
    near = jnp.where(far, 0.0, z)
    return jnp.where(far, 2.0, 1.0) * jnp.log1p(jnp.where(far, abs(z), near * near))
