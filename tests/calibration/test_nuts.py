"""Simulation-based calibration of NUTS on the hierarchical programs, through one compiled sampler.

The hyperpriors are the default ones: log α ~ Normal(-1, 1.5) needs no narrowing, if variates are drawn in logarithms
and ties, of probabilities that underflow, are broken at random.
"""

from functools import partial

import jax
import numpy as np
import pytest
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density

from bayesnb.model import Statistics
from bayesnb.sampling.programs import Hierarchy
from tests.calibration.bands import LEVEL, Ranks, rank, smallest_p_value
from tests.calibration.hierarchies import WORLDS, OffByOne, Values, World, condensed, draw_parameters

pytestmark = pytest.mark.calibration

SETS, FEWER, ROWS = 1_000, 300, 30  # fewer data sets where a mistake is to be found
WARMUP, DRAWS = 200, 400


def sample(hierarchy: Hierarchy, data: Statistics) -> Values:
    """A chain a data set, (N, S, …), all of them at once."""

    def chain(key: jax.Array, data: Statistics) -> Values:
        kernel = NUTS(partial(hierarchy.collapsed, data))
        mcmc = MCMC(kernel, num_warmup=WARMUP, num_samples=DRAWS, progress_bar=False)
        mcmc.run(key)
        return mcmc.get_samples()

    keys = jax.random.split(jax.random.key(0), len(data.log_base))
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(chain))(keys, data))


def thin(samples: Values) -> Values:
    """Every k-th draw, so that no quantity in any data set has an effective sample size below the number kept."""
    least = min(effective_sample_size(np.moveaxis(values, 0, -1)[None]).min() for values in samples.values())
    return {site: values[:, :: int(np.ceil(DRAWS / least))] for site, values in samples.items()}


def simulate(world: World, sets: int, kind: type[Hierarchy] = Hierarchy) -> tuple[Ranks, int]:
    """Ranks of hyperparameters, parameters, log-likelihood, and joint density of hyperparameters and data."""
    rng, hierarchy = np.random.default_rng(11), world.hierarchy(kind)
    hyper = world.hyperparameters(rng, sets)
    parameters = world.parameters(rng, hyper)
    statistics = world.statistics(rng, parameters, ROWS)
    with jax.enable_x64(True):
        data = condensed(hierarchy, statistics)
        samples = thin(sample(hierarchy, data))
        density = jax.vmap(lambda data, hyper: log_density(hierarchy.collapsed, (data,), {}, hyper)[0])
        densities = [jax.jit(density)(data, hyper), jax.jit(jax.vmap(density, (None, 1), 1))(data, samples)]

    n_draws = samples["class_alpha"].shape[1]
    flat = {site: values.reshape(-1, *values.shape[2:]) for site, values in samples.items()}
    each = jax.tree.map(lambda v: np.repeat(v, n_draws, axis=0), statistics)
    drawn = draw_parameters(hierarchy, flat, each, seed=12)
    likelihoods = [world.log_likelihood(parameters, statistics), world.log_likelihood(drawn, each)]

    truth = hyper | parameters | {"log_likelihood": likelihoods[0], "log_density": np.asarray(densities[0])}
    found = flat | drawn | {"log_likelihood": likelihoods[1], "log_density": np.ravel(densities[1])}
    by_draw = {name: np.moveaxis(found[name].reshape(sets, n_draws, *v.shape[1:]), 1, 0) for name, v in truth.items()}
    return {name: rank(rng, truth[name], by_draw[name]) for name in truth}, n_draws


@pytest.mark.parametrize("world", WORLDS)
def test_ranks_are_uniform(world):
    assert smallest_p_value(*simulate(WORLDS[world], SETS)) > LEVEL


def test_a_concentration_off_by_one_is_found():
    assert smallest_p_value(*simulate(WORLDS["symmetric"], FEWER, OffByOne)) < LEVEL
