"""Families are pure functions: JAX can map and differentiate them in the caller's precision."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesnb import Dirichlet, GammaPoisson, NaiveBayes, NormalInverseGamma
from bayesnb.families import Durations, GammaExponential, Known, LevelCounts, Moments, Totals
from bayesnb.families.rows import Dense
from bayesnb.model import Statistics
from tests.families.oracles import gradient

RNG = np.random.default_rng(0)
COUNTS = RNG.integers(0, 5, (7, 5)).astype(float)
CELLS = RNG.normal(size=(7, 2))
EVENTS = RNG.integers(0, 9, (7, 2)).astype(float)
LABEL = np.array([0, 1, 0, 1, 1, 0, 1])
WEIGHT = np.ones(7)
ZERO = np.zeros((2, 2))


def positive(*shape):
    return RNG.gamma(2.0, size=shape) + 0.2


DIRICHLET = Dirichlet(positive(2, 5), np.array([0, 0, 0, 1, 1]), 2)
CASES = {
    "dirichlet": (DIRICHLET, LevelCounts(np.zeros((2, 5))), COUNTS, ("concentration",)),
    "normal": (
        NormalInverseGamma(RNG.normal(size=(2, 2)), positive(2, 2), positive(2, 2) + 2, positive(2, 2)),
        Moments(ZERO, ZERO, ZERO),
        CELLS,
        ("loc", "kappa", "concentration", "rate"),
    ),
    "poisson": (GammaPoisson(positive(2, 2), positive(2, 2)), Totals(ZERO, ZERO), EVENTS, ("concentration", "rate")),
}
each_family = pytest.mark.parametrize("name", CASES)


def with_statistics(name):
    family, empty, x, fields = CASES[name]
    return family, empty.observe(x, LABEL, WEIGHT), x, fields


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@each_family
@pytest.mark.parametrize("what", ["log_evidence", "log_predictive"])
def test_gradients_are_those_of_finite_differences(name, what):
    family, statistics, x, fields = with_statistics(name)

    @jax.jit
    @jax.value_and_grad
    def f(values):
        prior = replace(family, **values)
        if what == "log_evidence":
            return jnp.sum(prior.log_evidence(statistics))
        return jnp.sum(prior.update(statistics).log_predictive(x))

    at = {field: np.asarray(getattr(family, field)) for field in fields}
    for field in fields:
        expected = gradient(lambda value, field=field: f(at | {field: value})[0], at[field])
        np.testing.assert_allclose(f(at)[1][field], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow("compiles kernels of its own")
@each_family
def test_gradients_are_finite_beside_missing_cells_and_zero_counts(name):
    family, statistics, x, fields = with_statistics(name)
    x = np.zeros_like(x) if name == "dirichlet" else np.where(np.arange(2) == 0, np.nan, x)

    def f(fields):
        prior = replace(family, **fields)
        return jnp.sum(prior.log_predictive(x)) + jnp.sum(prior.log_evidence(statistics))

    grads = jax.jit(jax.grad(f))({field: getattr(family, field) for field in fields})
    assert all(np.isfinite(g).all() for g in grads.values())


# -- the whole model -------------------------------------------------------------------------------

ROWS = (Dense(COUNTS, DIRICHLET.group, 2), CELLS, EVENTS)


def model(known=False):
    class_prior = Known(np.log([[0.4, 0.6]])) if known else Dirichlet(np.array([[1.0, 2.0]]), np.zeros(2, int), 1)
    prior = NaiveBayes(class_prior, tuple(family for family, *_ in CASES.values()))
    empty = Statistics(np.zeros(2), tuple(statistics for _, statistics, *_ in CASES.values()), np.zeros(()))
    return prior, observe(prior, empty, LABEL, WEIGHT)


@jax.jit
def observe(prior, statistics, label, weight):
    return statistics.observe(ROWS, label, weight, prior.log_base(ROWS))


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("known", [False, True])
def test_log_joint_is_the_sum_over_class_prior_and_blocks(known):
    prior, statistics = model(known)
    posterior = prior.update(statistics)

    @partial(jax.jit, static_argnums=(1, 2))
    def both(posterior, estimate, read):
        parts = [getattr(b, read)().log_prob(rows) for b, rows in zip(posterior.blocks, ROWS, strict=True)]
        return parts, posterior.log_joint(ROWS, estimate)

    for estimate, read in (("predictive", "predictive"), ("mean", "mean"), ("map", "mode")):
        parts, joint = both(posterior, estimate, read)
        n = np.array([3.0, 4.0])
        alpha = np.array([1.0, 2.0])
        theta = (n + alpha - 1) / 8 if estimate == "map" else (n + alpha) / 10
        expected = sum(map(np.asarray, parts)) + np.log([0.4, 0.6] if known else theta)
        np.testing.assert_allclose(joint, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="mle"):
        posterior.log_joint(ROWS, "mle")


def test_no_class_is_taken_for_another():
    """`jit` caches by tree structure, which must tell classes with equal field names apart."""
    for mine, other in [
        (Totals(ZERO, ZERO), Durations(ZERO, ZERO)),
        (GammaPoisson(ZERO, ZERO), GammaExponential(ZERO, ZERO)),
        (Dirichlet(ZERO, np.array([0, 1]), 2), Dirichlet(ZERO, np.array([0, 1]), 3)),
    ]:
        assert jax.tree.structure(mine) == jax.tree.structure(jax.tree.map(np.cos, mine))
        assert jax.tree.structure(mine) != jax.tree.structure(other)
        for (key,), leaf in jax.tree_util.tree_flatten_with_path(mine)[0]:
            assert getattr(mine, key.name) is leaf
