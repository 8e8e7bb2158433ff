"""Families are pure: they may be jitted, mapped and differentiated, in the precision of the caller."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesnb import Dirichlet, GammaPoisson, NaiveBayes, NormalInverseGamma
from bayesnb.families import Durations, GammaExponential, Known, LevelCounts, Moments, Totals
from bayesnb.families.count_rows import Dense
from bayesnb.model import Statistics
from tests.families.oracles import gradient
from tests.strategies import assert_leaves

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


def everything(family, statistics, x):
    """All that a family says, as one pytree."""
    posterior = family.update(statistics)
    return (
        posterior,
        family.improper().update(statistics).mean(),
        posterior.mean(),
        posterior.mode(),
        posterior.variance(),
        posterior.predictive().log_prob(x),
        posterior.mean().log_prob(x),
        posterior.log_predictive(x),
        posterior.log_likelihood_cumulants(x),
        family.log_evidence(statistics),
    )


everything_jitted = jax.jit(everything)


@pytest.mark.slow("a second view of what quick tests see")
@each_family
def test_jit_changes_nothing(name):
    family, statistics, x, _ = with_statistics(name)
    jitted = everything_jitted(family, statistics, x)
    posterior = family.update(statistics)
    assert_leaves(jitted[0], posterior, 1e-12)
    assert_leaves(jitted[2], posterior.mean(), 1e-12)


@pytest.mark.slow("compiles kernels of its own")
@each_family
def test_vmap_over_priors_is_a_loop_over_priors(name):
    family, statistics, x, fields = with_statistics(name)
    scales = np.array([0.5, 1.0, 3.0])

    def scaled(scale):
        return replace(family, **{f: getattr(family, f) * scale for f in fields})

    mapped = jax.jit(jax.vmap(lambda scale: everything(scaled(scale), statistics, x)[1:]))(scales)
    for i, scale in enumerate(scales):
        alone = everything_jitted(scaled(scale), statistics, x)[1:]
        assert_leaves(jax.tree.map(lambda leaf, i=i: leaf[i], mapped), alone, 1e-11)


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


@pytest.mark.slow("compiles kernels of its own")
@each_family
def test_results_have_the_precision_of_the_caller(name):
    with jax.enable_x64(False):
        arguments = jax.tree.map(
            lambda v: np.asarray(v, np.float32) if np.asarray(v).dtype == float else v, with_statistics(name)[:3]
        )
        narrow = everything_jitted(*arguments)
        assert {leaf.dtype for leaf in jax.tree.leaves(narrow) if jnp.issubdtype(leaf.dtype, jnp.floating)} == {
            np.dtype("float32")
        }
    assert_leaves(narrow[-1], everything_jitted(*with_statistics(name)[:3])[-1], 1e-4)


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


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("estimate", ["predictive", "mean", "map"])
def test_an_array_of_counts_is_read_over_the_groups_of_its_dirichlet(estimate):
    """As the docstring of `NaiveBayes` offers: rows need not be encoded."""
    prior, statistics = model()
    posterior = prior.update(statistics)
    plain = (COUNTS, CELLS, EVENTS)

    @jax.jit
    def both(x):
        return posterior.log_joint(x, estimate), posterior.log_predictive(x)

    assert_leaves(both(plain), both(ROWS), 1e-12)


@pytest.mark.slow("simulates many data sets or draws")
def test_draws_of_the_model_average_to_the_predictive():
    """p(row, class | D) is the mean of p(row, class | θ) over the posterior."""
    prior, statistics = model()
    posterior = prior.update(statistics)

    @jax.jit
    def joints(posterior, key):
        draws = jax.vmap(lambda draw: draw.log_joint(ROWS))(posterior.sample(key, 20_000))
        return jnp.exp(draws), jnp.exp(posterior.log_joint(ROWS))

    joint, predictive = map(np.asarray, joints(posterior, jax.random.key(0)))
    error = joint.std(axis=0) / np.sqrt(len(joint))
    assert (abs(joint.mean(axis=0) - predictive) <= 5 * error).all()


@pytest.mark.slow("compiles kernels of its own")
def test_evidence_of_the_model_can_be_differentiated_jitted_and_mapped():
    prior, statistics = model()

    def evidence(scale):
        first, *rest = prior.blocks
        first = replace(first, concentration=first.concentration * scale)
        return replace(prior, blocks=(first, *rest)).log_evidence(statistics)

    at = jax.jit(evidence)
    slope = (at(1 + 1e-5) - at(1 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.jit(jax.grad(evidence))(1.0), slope, rtol=1e-7)
    mapped = jax.jit(jax.vmap(evidence))(jnp.array([0.5, 2.0]))
    np.testing.assert_allclose(mapped, [at(0.5), at(2.0)], rtol=1e-12)


def test_no_class_is_taken_for_another():
    """By the structures under which `jit` keeps what it has compiled; fields have the same names."""
    for mine, other in [
        (Totals(ZERO, ZERO), Durations(ZERO, ZERO)),
        (GammaPoisson(ZERO, ZERO), GammaExponential(ZERO, ZERO)),
        (Dirichlet(ZERO, np.array([0, 1]), 2), Dirichlet(ZERO, np.array([0, 1]), 3)),
    ]:
        assert jax.tree.structure(mine) == jax.tree.structure(jax.tree.map(np.cos, mine))
        assert jax.tree.structure(mine) != jax.tree.structure(other)
        for (key,), leaf in jax.tree_util.tree_flatten_with_path(mine)[0]:
            assert getattr(mine, key.name) is leaf
