"""Joint tests of the hierarchical programs (Geweke, *Getting it right*, JASA 99, 2004).

Hyperparameters, parameters and data are simulated twice: one given the other, and by a Markov chain that moves the
hyperparameters given the data by NUTS, draws the parameters given both, and simulates the data anew. The chains
are independent and start from the first kind of simulation: all their averages are unbiased, and their spread gives the
standard error of the mean, whatever the autocorrelation. They are short and many, so that it is close to normal.
"""

from collections.abc import Callable
from functools import partial

import jax
import numpy as np
import pytest
from numpyro.infer import NUTS
from numpyro.infer.util import unconstrain_fn
from scipy import stats

from bayesnb.model import Statistics
from bayesnb.sampling.programs import Hierarchy
from tests.calibration.bands import LEVEL, adjusted
from tests.calibration.hierarchies import WORLDS, OffByOne, Values, World, condensed, draw_parameters

pytestmark = pytest.mark.calibration

INDEPENDENT, CHAINS, STEPS, ROWS = 200_000, 4_000, 20, 8
LOGARITHMS = ("alpha", "class_alpha", "rate", "sigma2")


def functions(world: World, hyper: Values, parameters: Values, statistics: Statistics) -> Values:
    """Values of each world whose means and mean squares are compared; arcsinh bounds the tails."""
    (counted,) = statistics.blocks
    values = hyper | parameters | {f"data {name}": getattr(counted, name) for name in counted.__dataclass_fields__}
    values |= {name: np.log(values[name]) for name in LOGARITHMS if name in values}
    values["class_count"] = statistics.class_count
    values["log_likelihood"] = world.log_likelihood(parameters, statistics)
    return {name + power: np.arcsinh(v) ** k for name, v in values.items() for power, k in (("", 1), ("²", 2))}


def transition(hierarchy: Hierarchy) -> Callable[[jax.Array, Values, Statistics], Values]:
    """One NUTS trajectory in each world, of fixed step size."""

    def move(key: jax.Array, hyper: Values, data: Statistics) -> Values:
        program = partial(hierarchy.collapsed, data)
        kernel = NUTS(program, step_size=0.5, adapt_step_size=False, adapt_mass_matrix=False)
        sampled = {site: value for site, value in hyper.items() if site != "base_measure"}
        state = kernel.init(key, 0, unconstrain_fn(program, (), {}, sampled))
        return kernel.postprocess_fn((), {})(kernel.sample(state, (), {}).z)

    return jax.jit(jax.vmap(move))


def smallest_p_value(world: World, kind: type[Hierarchy] = Hierarchy) -> float:
    """Bonferroni-adjusted p-value of the largest difference between both simulations."""
    rng, hierarchy = np.random.default_rng(21), world.hierarchy(kind)

    def simulate(n: int) -> tuple[Values, Values, Statistics]:
        hyper = world.hyperparameters(rng, n)
        parameters = world.parameters(rng, hyper)
        return hyper, parameters, world.statistics(rng, parameters, ROWS)

    expected = functions(world, *simulate(INDEPENDENT))
    hyper, parameters, statistics = simulate(CHAINS)
    move, total = transition(hierarchy), dict.fromkeys(expected, 0.0)
    for t in range(STEPS):
        with jax.enable_x64(True):
            keys = jax.random.split(jax.random.key(t), CHAINS)
            hyper = jax.tree.map(np.asarray, move(keys, hyper, condensed(hierarchy, statistics)))
        parameters = draw_parameters(hierarchy, hyper, statistics, seed=t)
        statistics = world.statistics(rng, parameters, ROWS)
        found = functions(world, hyper, parameters, statistics)
        total = {name: total[name] + found[name] / STEPS for name in total}

    def p_value(name: str) -> np.ndarray:
        variance = total[name].var(axis=0) / CHAINS + expected[name].var(axis=0) / INDEPENDENT
        return 2 * stats.norm.sf(abs(total[name].mean(axis=0) - expected[name].mean(axis=0)) / np.sqrt(variance))

    return adjusted({name: p_value(name) for name in total}, f"{CHAINS} chains of {STEPS} steps")


@pytest.mark.parametrize("world", WORLDS)
def test_both_simulations_have_the_same_means(world):
    assert smallest_p_value(WORLDS[world]) > LEVEL


@pytest.mark.parametrize("world", WORLDS)
def test_a_concentration_off_by_one_is_found(world):
    assert smallest_p_value(WORLDS[world], OffByOne) < LEVEL
