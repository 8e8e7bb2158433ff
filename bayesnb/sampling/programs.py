"""NumPyro programs of posteriors, hyperpriors and weights, and chains compiled once for data of one shape.

NumPyro's `MCMC` compiles the density with its data inside, and anew for each run. Here the data are arguments of two
compiled functions: `_start`, which makes the states of the chains, and `_advance`, which moves them.

A hyperprior is a NumPyro program that samples hyperparameters and returns a prior, a `NaiveBayes`. The evidence of that
prior, in which θ is integrated out, is the likelihood of the hyperparameters, and updating the prior gives the
posterior of θ given the draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist  # Not `import numpyro.distributions as dist`: see `run_nuts`.
from numpyro.infer import Predictive, hmc
from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn

from bayesnb._util.arguments import shown
from bayesnb._util.arrays import require_draws
from bayesnb._util.precision import float64
from bayesnb._util.terminal import progress
from bayesnb.families import LevelCounts, offers
from bayesnb.families.arrays import Array, Static, Tree
from bayesnb.families.protocol import Hyperparameter, HyperpriorKind
from bayesnb.families.rows import Multinomial
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.uncertainty import given_draws
from bayesnb.uncertainty.draws import CLASS_PROB, draw_sites, evaluate, log_prior_density
from bayesnb.uncertainty.given_draws import Sites, hyperparameter_sites
from bayesnb.weights.optimum import Expansion, Groups, WeightPrior, find_parameters
from bayesnb.weights.terms import CLASS_BIAS, TEMPERATURES, WEIGHT, CrossTerms

# == Chains of the No-U-Turn sampler, compiled once for all data of the same shapes ================

_AT_ONCE, _SECONDS = 100, 0.5
"""Most transitions of one call of `_advance`, a step of the progress bar, and the time that a call should take."""

_FIELDS = {"diverging": "diverging", "acceptance_rate": "accept_prob", "n_steps": "num_steps", "energy": "energy"}
_FIELDS |= {"lp": "potential_energy"}
"""NumPyro's fields of a transition that are kept, by the names of ArviZ."""


@dataclass(frozen=True)
class NumpyroProgram:
    """NumPyro program with floating-point data as its argument; programs of data of the same shapes are equal.

    Parameters
    ----------
    model : callable
        Hashable function of the data's pytrees that samples at NumPyro sites.
    structure : PyTreeDef
        Structure of the data.
    constants : Static
        For each leaf its value if it is a text or of integers; None for an argument.
    """

    model: Callable[..., None]
    structure: jax.tree_util.PyTreeDef
    constants: Static

    @classmethod
    def from_data(cls, model: Callable[..., None], *data: object) -> tuple[NumpyroProgram, list[np.ndarray]]:
        """Return the program `model(*data)`, and the floating-point arrays that are its argument."""
        leaves, structure = jax.tree.flatten(data)
        is_number = [np.asarray(leaf).dtype.kind == "f" for leaf in leaves]
        constants = Static(tuple(None if number else leaf for leaf, number in zip(leaves, is_number, strict=True)))
        return cls(model, structure, constants), list(map(np.asarray, compress(leaves, is_number)))

    def __call__(self, arrays: list[Array]) -> None:
        """Run the program with the given floating-point arrays."""
        given = iter(arrays)
        leaves = [next(given) if constant is None else constant for constant in self.constants.values]
        self.model(*jax.tree.unflatten(self.structure, leaves))


class Options(NamedTuple):
    """Options of NumPyro's sampler: see `numpyro.infer.NUTS`."""

    num_warmup: int
    max_tree_depth: int | tuple[int, int] = 10
    target_accept_prob: float = 0.8
    dense_mass: bool = False


Shapes = tuple[tuple[str, tuple[int, ...]], ...]
"""Sites and shapes of their unconstrained values. The state of a chain is one vector, of all of them in this order:
with an array for each site NumPyro's transitions take a third longer to compile, and to run.
"""


@float64
def run_chains(
    program: tuple[NumpyroProgram, list[np.ndarray]],
    start: Mapping[str, float | Array],
    inverse_mass_matrix: np.ndarray | None,
    options: Options,
    draws: int,
    chains: int,
    seed: int,
    show_progress: bool,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return draws by site and fields of the transitions, (chains, draws, …), after the warm-up.

    Parameters
    ----------
    program
        Result of `NumpyroProgram.from_data`.
    start : dict
        Values of the sites at which all chains start.
    inverse_mass_matrix : (D, D) array or None
        Inverse mass matrix of the unconstrained values of the sites, in the order of `start`; default: found in the
        warm-up.
    options : Options
    draws, chains, seed : int
        As in `run_nuts`.
    show_progress : bool
        Whether to show a progress bar.

    Raises
    ------
    ValueError
        If the density is not finite where the chains start: they would never move.
    """
    model, arrays = program
    size = sum(map(np.size, start.values()))
    advice = "Set fewer draws, or name some columns in features=."
    require_draws(draws, 2 * size + 12, f"{size:,} numbers", advice, chains=chains)
    keys, warmup = jax.random.split(jax.random.key(seed), chains), options.num_warmup
    free = jax.eval_shape(lambda: unconstrain_fn(model, (arrays,), {}, dict(start)))
    settings = {"program": model, "options": options, "shapes": tuple((site, free[site].shape) for site in start)}
    state = _start(arrays, keys, dict(start), inverse_mass_matrix, **settings)
    if not np.isfinite(state.potential_energy).all():
        raise ValueError(
            f"run_nuts: the density is not finite at the starting point {shown(start)}. Choose a hyperprior without "
            "extreme values, such as numpyro.distributions.LogNormal(-1.0, 1.5)."
        )
    # The first call makes no transition, but compiles: the time that is left is that of the transitions.
    parts, done, size = [], 0, 0
    with progress("NUTS" if show_progress else None, warmup + draws) as step:
        while done < warmup + draws:
            n, started = min(size, (warmup if done < warmup else warmup + draws) - done), perf_counter()
            state, recorded = _advance(arrays, state, n, **settings)
            recorded = jax.tree.map(np.asarray, recorded)  # Waits for the transitions.
            if done >= warmup:
                # A copy, as a view would keep the room of all `_AT_ONCE` transitions.
                parts.append(jax.tree.map(lambda v, n=n: v[:n].copy(), recorded))
            done += n
            step(n)
            size = min(_AT_ONCE, max(1, int(n * _SECONDS / (perf_counter() - started))))
    samples, transitions = jax.tree.map(lambda *v: np.concatenate(v).swapaxes(0, 1), *parts)
    return samples, {name: transitions[name] for name in _FIELDS} | {"lp": -transitions["lp"]}


def _by_site(position: Array, shapes: Shapes) -> dict[str, jax.Array]:
    """Split vectors (…, D) into the unconstrained values of each site."""
    ends = np.cumsum([math.prod(shape) for _, shape in shapes])
    parts = jnp.split(position, ends[:-1], axis=-1)
    leading = jnp.shape(position)[:-1]
    return {site: part.reshape(leading + shape) for part, (site, shape) in zip(parts, shapes, strict=True)}


def _sampler(arrays: list[Array], program: NumpyroProgram, options: Options, shapes: Shapes) -> tuple[Any, Any]:
    """Functions of NumPyro's sampler: (position, key, inverse mass matrix) to a state, and a state to the next one."""

    def potential(arrays: list[Array]) -> Callable[[jax.Array], jax.Array]:
        return lambda position: potential_energy(program, (arrays,), {}, _by_site(position, shapes))

    init_kernel, sample_kernel = hmc.hmc(potential_fn_gen=potential, algo="NUTS")
    begin = partial(init_kernel, model_args=(arrays,), **options._asdict())
    return begin, partial(sample_kernel, model_args=(arrays,), model_kwargs={})


@jax.jit(static_argnames=("program", "options", "shapes"))
def _start(
    arrays: list[Array],
    keys: jax.Array,
    start: Mapping[str, float | Array],
    inverse_mass_matrix: Array | None,
    *,
    program: NumpyroProgram,
    options: Options,
    shapes: Shapes,
) -> hmc.HMCState:
    """States of the chains, one for each key, at the given values of the sites."""
    free = unconstrain_fn(program, (arrays,), {}, start)
    z = jnp.concatenate([jnp.ravel(free[site]) for site, _ in shapes])
    begin, _ = _sampler(arrays, program, options, shapes)
    return jax.vmap(lambda key: begin(z, rng_key=key, inverse_mass_matrix=inverse_mass_matrix))(keys)


@jax.jit(static_argnames=("program", "options", "shapes"))
def _advance(
    arrays: list[Array], state: hmc.HMCState, n: int, *, program: NumpyroProgram, options: Options, shapes: Shapes
) -> tuple[hmc.HMCState, tuple[dict[str, jax.Array], dict[str, jax.Array]]]:
    """States after n transitions, and the sites and `_FIELDS` of each transition, (`_AT_ONCE`, chains, …)."""
    begin, following = _sampler(arrays, program, options, shapes)
    # NumPyro's transitions use what the function that begins a chain leaves behind.
    jax.vmap(lambda state: begin(state.z, rng_key=state.rng_key))(state)

    def record(state: hmc.HMCState) -> tuple[jax.Array, dict[str, jax.Array]]:
        return state.z, {name: getattr(state, field) for name, field in _FIELDS.items()}

    def transition(i: jax.Array, carried: tuple[hmc.HMCState, Tree]) -> tuple[hmc.HMCState, Tree]:
        state, recorded = carried
        state = jax.vmap(following)(state)
        return state, jax.tree.map(lambda all_, new: all_.at[i].set(new), recorded, record(state))

    empty = jax.tree.map(lambda v: jnp.zeros((_AT_ONCE, *v.shape), v.dtype), record(state))
    state, (z, fields) = jax.lax.fori_loop(0, n, transition, (state, empty))
    free = _by_site(z, shapes)
    samples = constrain_fn(program, (arrays,), {}, free, return_deterministic=True, batch_ndims=2)
    return state, (samples, fields)


# == Naive Bayes as a NumPyro program of sufficient statistics, made from the same prior objects as the closed form


def naive_bayes_of_statistics(model: NaiveBayes, statistics: Statistics, sites: Sites) -> None:
    """NumPyro program: sample π and θ from the prior, and add log p(X, y | π, θ) by sufficient statistics.

    The joint density is that of `numpyro_model`; the cost does not grow with the number of rows.
    """
    log_class, likelihoods = sample_all_parameters(model, sites)
    counted = LevelCounts(statistics.class_count[None]), *statistics.blocks
    every = zip((Multinomial(log_class[None]), *likelihoods), counted, strict=True)
    numpyro.factor("rows", sum((jnp.sum(p.log_likelihood(s)) for p, s in every), jnp.asarray(statistics.log_base)))


@dataclass(frozen=True, eq=False)
class Fixed:
    """NUTS target: posterior of the parameters under a prior without unknown hyperparameters.

    Parameters
    ----------
    prior : NaiveBayes
        Prior of the parameters.
    sites : sequence of dict
        For each block the site of each parameter.
    """

    prior: NaiveBayes
    sites: Sites
    kind = "none"

    def program(self, statistics: Statistics) -> tuple[NumpyroProgram, list[np.ndarray]]:
        """NumPyro program whose density is the posterior of the parameters, up to a constant, and its data."""
        return NumpyroProgram.from_data(naive_bayes_of_statistics, self.prior, statistics, self.sites)

    @float64
    def start(self, statistics: Statistics) -> dict[str, float | Array]:
        """Values of the sites at the mode of the posterior; raise NotImplementedError if a block has no program."""
        for family in self.prior.blocks:
            family.program()  # raises the reason if there is none
        mode = self.prior.update(statistics).penalized_mle()
        values: dict[str, float | Array] = {CLASS_PROB: np.exp(mode.log_class)}
        for likelihood, names in zip(mode.likelihoods, self.sites, strict=True):
            values |= {names[name]: value for name, value in likelihood.parameters().items()}
        return to_site_values(self.prior, values, self.sites)

    def finish(
        self, samples: Mapping[str, np.ndarray], statistics: Statistics, masks: Sequence[np.ndarray], seed: int
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
        """Return draws of the parameters by the names of `posterior_draws`; hyperparameters have no draws.

        Parameters
        ----------
        samples : dict of (S, …) arrays
            Draws of each site.
        statistics : Statistics
            Statistics of the rows; not needed.
        masks : sequence of (K,) arrays of bool
            For each block, which positions of the last axis to keep.
        seed : int
            Seed; not needed.

        Returns
        -------
        parameters : dict of (S, …) arrays
        hyperparameters : list of dict
            Empty for the classes and for each block.
        """
        parameters = {CLASS_PROB: samples[CLASS_PROB]} if CLASS_PROB in samples else {}
        for block_sites, keep in zip(self.sites, masks, strict=True):
            parameters |= {site: samples[site][..., keep] for site in block_sites.values() if keep.any()}
        classes: Any = self.prior.class_prior
        if classes.fixed:
            n_draws = len(next(iter(samples.values())))
            parameters[CLASS_PROB] = np.repeat(np.exp(np.asarray(classes.log_prob)), n_draws, axis=0)
        return parameters, [{} for _ in range(1 + len(self.sites))]

    def draw_prior(
        self, n: int, statistics: Statistics, masks: Sequence[np.ndarray], seed: int
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
        """Return n draws of parameters and hyperparameters from the prior, in the form of `finish`."""
        return draw_sites(self.prior, self.sites, masks, n, seed), [{} for _ in range(1 + len(self.sites))]

    def log_prior(
        self, drawn: Mapping[str, np.ndarray], shared: Sequence[Mapping[str, np.ndarray]], statistics: Statistics
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
        """Return the log prior density of draws of parameters and hyperparameters, in the form of `finish`."""
        return log_prior_density(lambda part: self.prior, self.sites, drawn), [{} for _ in shared]


def sample_all_parameters(model: NaiveBayes, sites: Sites) -> tuple[jax.Array, list[Any]]:
    """Sample π and θ at NumPyro sites; return log π (C,), and the plug-in likelihood of each block."""
    classes: Any = model.class_prior
    if classes.fixed:
        log_class = jnp.asarray(classes.log_prob)[0]
    else:
        log_class = jnp.log(numpyro.sample(CLASS_PROB, dist.Dirichlet(jnp.asarray(classes.concentration)[0])))
    return log_class, [sample_parameters(family, names) for family, names in zip(model.blocks, sites, strict=True)]


def sample_parameters(family: Any, sites: Mapping[str, str]) -> Any:
    """Sample the parameters of one block, (C, K) each, at the given NumPyro sites; return the plug-in likelihood."""
    n_classes = jax.tree.leaves(family)[0].shape[0]
    values: dict[str, Array] = {}
    for site in family.program():
        name = f"{sites[site.parameter]}{site.suffix}"
        with numpyro.plate("classes", n_classes, dim=-2), numpyro.plate(f"{name}_plate", site.size):
            values[site.parameter + site.suffix] = numpyro.sample(name, evaluate(site.distribution, values))
    parameters = family.from_sites(values)
    for parameter in parameters.keys() - values.keys():
        numpyro.deterministic(sites[parameter], parameters[parameter])
    return family.likelihood.from_parameters(**parameters)


def to_site_values(model: NaiveBayes, drawn: Mapping[str, float | Array], sites: Sites) -> dict[str, float | Array]:
    """Convert draws by `posterior_draws`, with or without a leading axis, to values of the programs' NumPyro sites."""
    site_values = dict(drawn)
    for family, names in zip(model.blocks, sites, strict=True):
        values = family.to_sites({parameter: site_values.pop(site) for parameter, site in names.items()})
        for site in family.program():
            site_values[f"{names[site.parameter]}{site.suffix}"] = values[site.parameter + site.suffix]
    if model.class_prior.fixed:
        del site_values[CLASS_PROB]
    return site_values


# == Priors with unknown hyperparameters: θ is integrated out, and the hyperparameters are sampled =

_MOST_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """NUTS target: posterior of the unknown hyperparameters of a prior, with the parameters θ integrated out.

    Parameters
    ----------
    prior : NaiveBayes
        Prior of all parameters without a hyperprior: κ and a of Gaussian features, Poisson blocks, a fixed class prior.
        The scales of hyperpriors are derived from it, too.
    kind : {"symmetric", "pooled", "grouped"}
        Dirichlet(α, …, α), or Dirichlet(α L m) with a base measure m that the classes share: α is the mean
        concentration of a level, and m = 1/L is the symmetric prior. Under "grouped" each class has a base measure
        that groups of rows share; statistics then have a leading axis of groups.
    alpha : distribution
        Hyperprior of α, one for each Dirichlet block, and of the concentration of the classes.
    sites : sequence of dict
        For each block the site of each parameter.
    """

    prior: NaiveBayes
    kind: HyperpriorKind
    alpha: dist.Distribution
    sites: Sites

    def sample_prior(self, into: NaiveBayes | None = None) -> NaiveBayes:
        """Sample hyperparameters at NumPyro sites; return `into` (default: `prior.unit()`) with these values."""
        every = [pair for part in self.hyperparameters() for pair in part.items()]
        values = {site: _sample_hyperparameter(site, hyperparameter, self.alpha) for site, hyperparameter in every}
        names = hyperparameter_sites(self.prior, self.kind, self.sites)
        return given_draws.prior_given(self.prior.unit() if into is None else into, names, values)

    def hyperparameters(self) -> list[dict[str, Hyperparameter]]:
        """Hyperparameters of the classes and of each block, by site."""
        return given_draws.sampled_hyperparameters(self.prior, self.kind, self.sites)

    def program(self, statistics: Statistics) -> tuple[NumpyroProgram, list[np.ndarray]]:
        """NumPyro program with the posterior density of the hyperparameters, up to a constant, and its data.

        θ is integrated out.
        """
        condensed = self.condense(statistics)
        return NumpyroProgram.from_data(_collapsed, self.prior, self.alpha, condensed, self.kind, self.sites)

    @float64
    def start(self, statistics: Statistics) -> dict[str, float | Array]:
        """Values of the sites in the middle of their priors: the median of α, the means of others."""
        alpha = np.median(self.alpha.sample(jax.random.key(0), (1000,)))
        values: dict[str, float | Array] = {}
        for part in self.hyperparameters():
            for site, parameter in part.items():
                mean = alpha if parameter.distribution is None else evaluate(parameter.distribution).mean
                values[_sampled_site(site, parameter)] = np.broadcast_to(mean, parameter.shape)
        return values

    def condense(self, statistics: Statistics) -> Statistics:
        """Statistics that `collapsed` needs: histograms of the counts under "symmetric", else unchanged."""
        return self.prior.unit().condense(statistics) if self.kind == "symmetric" else statistics

    def collapsed(self, condensed: Statistics) -> None:
        """NumPyro program: sample hyperparameters, and add the log evidence of the condensed statistics."""
        prior = self.sample_prior(self.prior.unit().condensed() if self.kind == "symmetric" else None)
        log_evidence = _log_evidence_of_groups if self.kind == "grouped" else _log_evidence
        numpyro.factor("rows", log_evidence(prior, condensed))

    def finish(
        self, samples: Mapping[str, np.ndarray], statistics: Statistics, masks: Sequence[np.ndarray], seed: int
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
        """Draw the parameters exactly from their conjugate posterior given each draw of the hyperparameters.

        They are drawn batch by batch, and for G groups they are (S · G, …).

        Parameters
        ----------
        samples : dict of (S, …) arrays
            Draws of the hyperparameters.
        statistics : Statistics
            Statistics of the rows.
        masks : sequence of (K,) arrays of bool
            For each block, which positions of the last axis to keep; blocks without one are left out.
        seed : int
            Seed of the draws of the parameters.

        Returns
        -------
        parameters : dict of (S, …) arrays
        hyperparameters : list of dict
            Draws of the hyperparameters of the classes, and of each block.
        """
        prior, names = self.prior.unit(), hyperparameter_sites(self.prior, self.kind, self.sites)
        every = zip(prior.blocks, statistics.blocks, masks, self.sites, names, strict=True)
        drawn_from = [(*self._restrict(*block[:3]), *block[3:]) for block in every if block[2].any()]
        families, blocks, masks, sites, names = map(list, zip(*drawn_from, strict=True)) if drawn_from else ([],) * 5
        prior, counted = replace(prior, blocks=tuple(families)), replace(statistics, blocks=tuple(blocks))
        n_draws, n_groups = len(next(iter(samples.values()))), math.prod(np.shape(statistics.class_count)[:-1])
        size = max(1, _MOST_CELLS // sum(np.size(leaf) for leaf in jax.tree.leaves(counted)))
        drawn: dict[str, np.ndarray] = {}
        for start in range(0, n_draws, size):
            part = {site: values[start : start + size] for site, values in samples.items()}
            models = given_draws.posteriors_given(prior, counted, names, part)
            for site, values in draw_sites(models, sites, masks, 1, (seed, start)).items():
                if site not in drawn:
                    drawn[site] = np.empty((n_draws * n_groups, *values.shape[1:]))
                drawn[site][start * n_groups :][: len(values)] = values
        return drawn, [{site: samples[site] for site in part} for part in self.hyperparameters()]

    def draw_prior(
        self, n: int, statistics: Statistics, masks: Sequence[np.ndarray], seed: int
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
        """Return n draws of parameters and hyperparameters from the prior, in the form of `finish`."""
        samples = float64(Predictive(self.sample_prior, num_samples=n))(jax.random.key(seed))
        return self.finish(samples, statistics.scale(0.0), masks, seed)

    @float64
    def log_prior(
        self, drawn: Mapping[str, np.ndarray], shared: Sequence[Mapping[str, np.ndarray]], statistics: Statistics
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
        """Return the log prior density of draws of parameters and hyperparameters, in the form of `finish`.

        Base measures, whose prior is uniform on a simplex, are left out: their density is constant.
        """
        values = {site: v for part in shared for site, v in part.items()}
        names, no_rows = hyperparameter_sites(self.prior, self.kind, self.sites), statistics.scale(0.0)

        def prior_of(part: slice) -> NaiveBayes:
            some = {site: v[part] for site, v in values.items()}
            return given_draws.posteriors_given(self.prior.unit(), no_rows, names, some)

        densities = [
            {
                site: (self.alpha if h.distribution is None else evaluate(h.distribution)).log_prob(values[site])
                for site, h in part.items()
                if h.of_weights is None
            }
            for part in self.hyperparameters()
        ]
        return log_prior_density(prior_of, self.sites, drawn), densities

    def _restrict(self, family: Any, statistics: Any, keep: np.ndarray) -> tuple[Any, Any, np.ndarray]:
        """Family and statistics of one block, without levels of which no draw is needed, and which positions to keep.

        Under "pooled" and "grouped" hyperparameters have a value for each level, and nothing is left out.
        """
        if self.kind != "symmetric" or keep.all() or not offers(family, "restrict_with_counts"):
            return family, statistics, keep
        family, statistics = family.restrict_with_counts(statistics, keep)
        return family, statistics, np.arange(statistics.count.shape[-1]) < keep.sum()


def _collapsed(prior: NaiveBayes, alpha: Array, condensed: Statistics, kind: HyperpriorKind, sites: Sites) -> None:
    """NumPyro program `Hierarchy.collapsed`."""
    Hierarchy(prior, kind, alpha, sites).collapsed(condensed)


@jax.jit
def _log_evidence(prior: NaiveBayes, statistics: Statistics) -> jax.Array:
    """Scalar log marginal likelihood of the statistics, compiled once for all runs of a NumPyro program."""
    return prior.log_evidence(statistics)


@jax.jit
def _log_evidence_of_groups(prior: NaiveBayes, statistics: Statistics) -> jax.Array:
    """Scalar log marginal likelihood of the statistics of groups, whose arrays have a leading axis."""
    return jax.vmap(prior.log_evidence)(statistics).sum()


def _sample_hyperparameter(site: str, hyperparameter: Hyperparameter, alpha: dist.Distribution) -> jax.Array:
    """Sample a hyperparameter at NumPyro site `site` and return its value; without its own distribution, from `alpha`.

    Normalised weights are sampled at "<site>_weight", and `site` is deterministic. The total T of the L weights of a
    simplex, which says nothing of the normalised weights, has the density of its distribution times T^(10 L).
    """
    shape, to_weights = hyperparameter.shape, hyperparameter.of_weights
    prior = alpha if hyperparameter.distribution is None else evaluate(hyperparameter.distribution)
    value = numpyro.sample(_sampled_site(site, hyperparameter), prior.expand(shape).to_event(len(shape)))
    if to_weights is None:
        return value
    normalized = to_weights(value)
    # The logs of weights vary together as T does: where it varies less, NUTS needs about half the steps.
    numpyro.factor(f"{site}_weight_total", 10.0 * jnp.sum(jnp.log(value / normalized)))
    return numpyro.deterministic(site, normalized)


def _sampled_site(site: str, hyperparameter: Hyperparameter) -> str:
    """NumPyro site at which a hyperparameter named `site` is sampled: its own, or that of its weights."""
    return site if hyperparameter.of_weights is None else f"{site}_weight"


# == Weights of terms as a NumPyro program, given cross-fitted terms of rows =======================

_DEVIATION = "deviation"


@dataclass(frozen=True, eq=False)
class WeightsGiven:
    """NUTS target: generalised posterior of the weights of terms, given cross-fitted terms of rows.

    b ~ N(0, 1), T_g ~ N(μ_g, 1), d ~ N(0, 1), w_t = T_g + τ_g d_t for t in group g, and the
    likelihood is Π_i P(y_i | x_i; b, w)^v_i.

    Parameters
    ----------
    terms : CrossTerms
        Dense terms of rows of typical length, or under τ = 0 the sum of those of each group.
    groups : Groups
        Groups of these terms.
    shrinkage : (G,) array
        τ.
    biased : bool
        Whether classes have a bias.
    """

    terms: CrossTerms
    groups: Groups
    shrinkage: np.ndarray
    biased: bool

    def program(self) -> tuple[NumpyroProgram, list[np.ndarray]]:
        """NumPyro program `weights_of_terms` of these terms, and its data."""
        terms, groups = self.terms, self.groups
        # Labels as numbers: integers are compiled into a program.
        rows = terms.values, terms.log_class, terms.label.astype(float), terms.weight
        layout = groups.index, self._free, np.asarray(self.biased)
        return NumpyroProgram.from_data(weights_of_terms, rows, (groups.mean, self._scale), layout)

    @property
    def _scale(self) -> np.ndarray:
        """(T,) τ of each term."""
        return np.asarray(self.shrinkage, float)[self.groups.index]

    @property
    def _free(self) -> np.ndarray:
        """(T,) of bool: whether the weight of a term may differ from the temperature of its group (τ > 0)."""
        return self._scale > 0

    def start(self) -> tuple[dict[str, float | Array], np.ndarray]:
        """Values of the sites at the optimum, and Laplace's covariance there as an inverse mass matrix."""
        prior = WeightPrior(self.groups, self.shrinkage, self.terms.log_class.shape[-1], self.biased)
        theta = find_parameters(self.terms, prior)
        start: dict[str, float | Array] = {CLASS_BIAS: prior.point(theta)[0]} if self.biased else {}
        start |= dict(zip(TEMPERATURES, theta[prior.temperatures], strict=False))
        if self._free.any():
            start[_DEVIATION] = theta[prior.temperatures.stop :][self._free]
        is_sampled = prior.design(np.eye(prior.n_classes)).any(axis=0)
        _, covariance = Expansion.around(self.terms, *prior.point(theta)).posterior(prior)
        return start, covariance[np.ix_(is_sampled, is_sampled)]

    def finish(self, samples: Mapping[str, np.ndarray], dependence: np.ndarray) -> dict[str, np.ndarray]:
        """Draws of the temperatures, biases and all weights, also of weights that equal their temperature.

        Parameters
        ----------
        samples : dict of (chains, draws, …) arrays
            Draws of each site.
        dependence : (T,) array of bool
            Whether a term is a dependence.
        """
        temperatures = {name: np.asarray(samples[name]) for name in TEMPERATURES if name in samples}
        stacked = np.stack(list(temperatures.values()), axis=-1)
        bias = samples[CLASS_BIAS] if self.biased else np.zeros((*stacked.shape[:-1], self.terms.log_class.shape[-1]))
        weight = samples.get(WEIGHT, stacked[..., dependence.astype(int)])
        return temperatures | {CLASS_BIAS: np.asarray(bias), WEIGHT: np.asarray(weight)}


def weights_of_terms(rows: tuple[Array, ...], prior: tuple[Array, Array], layout: tuple[np.ndarray, ...]) -> None:
    """NumPyro program: sample temperatures, class biases and deviations, and add the weighted label log-likelihood.

    Sites are "temperature", and where the model has them "class_bias", "dependence_temperature", "deviation" and
    "weight".

    Parameters
    ----------
    rows : tuple of (N, C, T), (N, C) or (C,), (N,) and (N,) arrays
        Terms, log class probabilities, and class index and weight of each row.
    prior : tuple of (G,) and (T,) arrays
        Prior mean of the temperature of each group, and τ of each term.
    layout : tuple of (T,), (T,) and () arrays
        Group of each term, whether its weight may differ from the temperature of the group, and whether classes have a
        bias.
    """
    (values, log_class, label, row_weight), (mean, scale), (index, free, biased) = rows, prior, layout
    _, n_classes, n_terms = values.shape
    bias = numpyro.sample(CLASS_BIAS, _normal(n_classes)) if biased else 0.0
    names = zip(TEMPERATURES, mean, strict=False)
    temperature = jnp.stack([numpyro.sample(name, dist.Normal(m, 1.0)) for name, m in names])
    weight = temperature[index]
    if free.any():
        deviation = numpyro.sample(_DEVIATION, _normal(int(free.sum())))
        weight = numpyro.deterministic(WEIGHT, weight + jnp.zeros(n_terms).at[free].set(scale[free] * deviation))
    joint = bias + log_class + values @ weight
    is_label = label[:, None] == jnp.arange(n_classes)
    log_proba = jnp.sum(jnp.where(is_label, joint, 0.0), axis=-1) - jax.nn.logsumexp(joint, axis=-1)
    numpyro.factor("labels", log_proba @ row_weight)


def _normal(n: int) -> dist.Distribution:
    """NumPyro distribution of n independent standard normal variates as one event."""
    return dist.Normal().expand([n]).to_event(1)
