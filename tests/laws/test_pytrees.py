"""Posteriors, statistics and likelihoods are pytrees of float arrays; layout is part of their structure."""

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.sparse import csr_array

import bayesnb as bnb
from bayesnb import NaiveBayes, Statistics, kernels
from bayesnb.encoding.encoded_rows import row_pieces
from bayesnb.families.arrays import jit_of_any_layout

RNG = np.random.default_rng(3)
N = 40
LABEL = np.arange(N) % 3
NUMBERS = RNG.normal(LABEL[:, None], 1.0, (N, 3)).round(2)
LEVELS = RNG.integers(0, 3, (N, 4))
MIXED = pd.DataFrame({"a": NUMBERS[:, 0], "b": LEVELS[:, 0].astype(str), "c": NUMBERS[:, 1]})

ESTIMATORS: dict[str, tuple[Any, Any]] = {
    "gaussian": (bnb.GaussianNB(), NUMBERS),
    "poisson": (bnb.PoissonNB(), LEVELS),
    "negative binomial": (bnb.NegativeBinomialNB(), LEVELS),
    "exponential": (bnb.ExponentialNB(), np.abs(NUMBERS) + 0.1),
    "categorical": (bnb.CategoricalNB(), LEVELS),
    "known classes": (bnb.CategoricalNB(class_prior=[0.2, 0.3, 0.5]), LEVELS),
    "bernoulli": (bnb.BernoulliNB(), LEVELS > 0),
    "sparse bernoulli": (bnb.BernoulliNB(), csr_array(LEVELS > 1)),
    "multinomial": (bnb.MultinomialNB(), LEVELS),
    "sparse multinomial": (bnb.MultinomialNB(), csr_array(LEVELS)),
    "mixed": (bnb.MixedNB(), MIXED),
    "binned": (bnb.BinnedNB(), NUMBERS),
    "tan": (bnb.TAN(), LEVELS),
    "kdb": (bnb.KDB(), MIXED),
    "trees": (bnb.TreeAveragedNB(), LEVELS),
    "averaged levels": (bnb.FeatureAveragedNB(), LEVELS),
    "averaged mixed": (bnb.FeatureAveragedNB(), MIXED),
    "weighted": (bnb.WeightedNB(), MIXED),
    "weighted words": (bnb.WeightedNB(bnb.MultinomialNB()), LEVELS),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
costly = pytest.mark.slow("functions of their own to compile", but="categorical")


@cache
def fitted(name: str) -> Any:
    estimator, X = ESTIMATORS[name]
    return estimator.fit(X, LABEL).fitted_


def encoded(name: str, n: int = 5) -> Any:
    state, X = fitted(name), ESTIMATORS[name][1]
    rows = state.encoding.rows(state.table(X[:n]))
    return next(row_pieces(rows, n))[1]


@every_estimator
def test_every_leaf_is_an_array_of_floats(name):
    state = fitted(name)
    readings = [state.posterior.read("predictive")]
    if name != "trees":
        readings += [state.posterior.read("mean"), state.posterior.read("map")]
    for tree in (state.prior, state.posterior, state.statistics, *readings):
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            assert isinstance(leaf, np.ndarray), jax.tree_util.keystr(path)
            assert leaf.dtype == np.float64, jax.tree_util.keystr(path)


@every_estimator
def test_a_mapped_posterior_is_the_posterior(name):
    """By the identity to the bit; in single precision up to its rounding."""
    posterior, x = fitted(name).posterior, encoded(name)
    expected = posterior.log_joint(x)
    np.testing.assert_array_equal(jax.tree.map(lambda a: a, posterior).log_joint(x), expected)
    single = jax.tree.map(lambda a: a.astype(np.float32), posterior)
    assert jax.tree.structure(single) == jax.tree.structure(posterior)
    np.testing.assert_allclose(single.log_joint(x), expected, rtol=1e-4, atol=1e-4)


@costly
@every_estimator
def test_gradients_by_the_model_are_finite_differences(name):
    """In a random direction in the space of all leaves, each of which changes in proportion to its size."""
    posterior, x, rng = fitted(name).posterior, encoded(name), np.random.default_rng(0)
    direction = jax.tree.map(lambda a: np.abs(a) * rng.normal(size=a.shape), posterior)

    def moved(step: Any) -> Any:
        return jnp.sum(jax.tree.map(lambda a, d: a + step * d, posterior, direction).log_joint(x))

    with jax.enable_x64(True):
        slope = jax.jit(lambda model: jax.grad(lambda m: jnp.sum(m.log_joint(x)))(model))(posterior)
        assert jax.tree.structure(slope) == jax.tree.structure(posterior)
        total = sum(jax.tree.leaves(jax.tree.map(lambda s, d: float(np.sum(np.asarray(s) * d)), slope, direction)))
        h, along = 1e-4, jax.jit(moved)
        differences = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)
    np.testing.assert_allclose(total, float(differences), rtol=1e-6, atol=1e-7)


PRIOR = NaiveBayes.categorical(2, [2, 3])
ROWS, CLASSES = np.array([[0, 2], [1, 2], [1, 0]]), np.array([0, 1, 1])


def test_twice_a_categorical_posterior_has_the_same_predictive():
    """The predictive of one draw is a ratio of concentrations: [.10, .048] here, as of the posterior itself."""
    prior = NaiveBayes.categorical(2, [2, 3], class_alpha=1.0)
    posterior = kernels.update(prior, kernels.count(Statistics.empty(prior), ROWS, CLASSES))
    twice = jax.jit(kernels.log_joint)(jax.tree.map(lambda a: 2 * a, posterior), ROWS)
    alpha = np.array([[2.0, 1, 1, 1, 2], [1, 3, 2, 1, 2]])
    theta = np.concatenate([part / part.sum(axis=1, keepdims=True) for part in (alpha[:, :2], alpha[:, 2:])], axis=1)
    expected = [2 / 5, 3 / 5] * theta[:, ROWS[:, 0]].T * theta[:, 2 + ROWS[:, 1]].T
    np.testing.assert_allclose(np.exp(twice), expected, rtol=1e-6)


def test_twice_a_multinomial_posterior_has_the_predictive_of_twice_the_concentrations():
    prior, x = NaiveBayes.multinomial(2, 3), np.array([[3, 1, 0], [0, 2, 5]])
    posterior = kernels.update(prior, kernels.count(Statistics.empty(prior), x, np.array([0, 1])))
    joint = jax.tree.map(lambda a: 2 * a, posterior).log_predictive((x,))
    alpha = [[8.0, 4, 2], [2, 6, 12]]
    expected = [[np.log(0.5) + stats.dirichlet_multinomial(a, row.sum()).logpmf(row) for a in alpha] for row in x]
    np.testing.assert_allclose(joint, expected, rtol=1e-12)


def test_twice_a_normal_posterior_has_the_predictive_of_twice_its_parameters():
    prior = NaiveBayes.gaussian(2, 1)
    x = np.array([[0.3], [1.1], [2.0], [2.5]])
    posterior = kernels.update(prior, kernels.count(Statistics.empty(prior), x, np.array([0, 0, 1, 1])))
    block = posterior.blocks[0]
    loc, kappa, a, b = (2 * np.asarray(v)[:, 0] for v in (block.loc, block.kappa, block.concentration, block.rate))
    t = stats.t(2 * a, loc, np.sqrt(b * (kappa + 1) / (a * kappa)))
    np.testing.assert_allclose(
        jax.tree.map(lambda a: 2 * a, posterior).log_predictive((x,)), np.log(0.5) + t.logpdf(x), rtol=1e-10
    )


def test_models_of_one_layout_share_a_compilation():
    traces = []

    @jax.jit
    def total(model: Any) -> Any:
        traces.append(model)
        return model.blocks[0].total()

    for alpha in (1.0, 2.0):
        total(NaiveBayes.categorical(2, [2, 3], alpha))
    total(jax.tree.map(jnp.asarray, NaiveBayes.categorical(2, [2, 3])))  # arrays of JAX are read in its precision
    assert len(traces) <= 2
    result = total(NaiveBayes.categorical(2, [3, 2]))  # as many levels
    np.testing.assert_array_equal(result, [[3.0, 2.0]] * 2)


def test_moving_averages_in_a_scan_and_one_step_of_an_optimiser():
    """Exponential moving averages of posteriors; the step of gradient ascent by which the evidence increases."""
    batches = np.array([[[0, 2], [1, 2]], [[1, 0], [0, 0]], [[1, 1], [1, 2]]])

    def step(average: Any, batch: Any) -> Any:
        statistics = kernels.count(Statistics.empty(PRIOR), batch, jnp.array([0, 1]))
        posterior = kernels.update(PRIOR, statistics)
        return jax.tree.map(lambda a, b: 0.5 * a + 0.5 * b, average, posterior), None

    start = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), PRIOR)
    average, _ = jax.lax.scan(step, start, batches)
    expected = np.ones((2, 5))
    for batch in batches:
        counts = np.array([[*(np.arange(2) == u), *(np.arange(3) == v)] for u, v in batch])
        expected = 0.5 * expected + 0.5 * (1.0 + counts)
    np.testing.assert_allclose(average.blocks[0].concentration, expected, rtol=1e-6)

    optax = pytest.importorskip("optax", reason="optax is not installed")
    counted = kernels.count(Statistics.empty(PRIOR), ROWS, CLASSES)

    def loss(log_prior: Any) -> Any:
        return -kernels.log_evidence(jax.tree.map(jnp.exp, log_prior), counted)

    optimiser, log_prior = optax.adam(0.1), jax.tree.map(jnp.log, start)
    state, before = optimiser.init(log_prior), loss(log_prior)
    for _ in range(3):
        updates, state = optimiser.update(jax.grad(loss)(log_prior), state)
        log_prior = optax.apply_updates(log_prior, updates)
    assert loss(log_prior) < before


def test_shard_map():
    mesh = jax.make_mesh((1,), ("rows",))
    spec = jax.sharding.PartitionSpec("rows")
    sharded = jax.shard_map(kernels.log_joint, mesh=mesh, in_specs=(jax.sharding.PartitionSpec(), spec), out_specs=spec)
    rows = jax.device_put(ROWS, jax.sharding.NamedSharding(mesh, spec))
    np.testing.assert_allclose(sharded(PRIOR, rows), kernels.log_joint(PRIOR, ROWS), rtol=1e-6)

    def count(x: Any, label: Any) -> Any:
        return jax.lax.psum(kernels.count(Statistics.empty(PRIOR), x, label), "rows")

    label = jax.device_put(CLASSES, jax.sharding.NamedSharding(mesh, spec))
    total = jax.shard_map(count, mesh=mesh, in_specs=(spec, spec), out_specs=jax.sharding.PartitionSpec())(rows, label)
    np.testing.assert_array_equal(total.blocks[0].count, [[1, 0, 0, 0, 1], [0, 2, 1, 0, 1]])


def test_kernels_are_compiled_once_for_models_with_as_many_levels():
    """Inside of kernels the groups of levels are arguments, so that other tables need no compilation."""
    traces = []

    @jit_of_any_layout
    def double(model: Any) -> Any:
        traces.append(model)
        return replace(model, concentration=2.0 * model.concentration / model.to_levels(model.total()))

    for sizes in ([2, 3], [3, 2]):
        prior = NaiveBayes.categorical(2, sizes).blocks[0]
        result = double(prior)
        assert jax.tree.structure(result) == jax.tree.structure(prior)
        np.testing.assert_allclose(result.concentration[0], np.repeat(2.0 / np.array(sizes), sizes), rtol=1e-6)
    assert len(traces) == 1


# -- jax.export ------------------------------------------------------------------------------------

EXPORTED = {
    "categorical": (NaiveBayes.categorical(2, [2, 3]), RNG.integers(0, 2, (9, 2)).astype(np.int32)),
    "bernoulli": (NaiveBayes.bernoulli(2, 3), RNG.integers(0, 2, (9, 3)).astype(np.int32)),
    "multinomial": (NaiveBayes.multinomial(2, 3), RNG.poisson(2.0, (9, 3)).astype(np.float32)),
    "gaussian": (NaiveBayes.gaussian(2, 3), RNG.normal(size=(9, 3)).astype(np.float32)),
    "poisson": (NaiveBayes.poisson(2, 3), RNG.poisson(2.0, (9, 3)).astype(np.float32)),
}


def shapes(tree: Any) -> Any:
    return jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), jnp.float32), tree)


def single(tree: Any) -> Any:
    return jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), tree)


@pytest.mark.slow("functions of their own to compile", but="categorical")
@pytest.mark.parametrize("name", EXPORTED)
def test_kernels_are_exported_with_models_and_any_number_of_rows(name):
    """Read from bytes, they count, update and score as kernels do."""
    pytest.importorskip("flatbuffers", reason="flatbuffers is not installed, which jax.export needs")
    prior, x = EXPORTED[name]
    (n,) = jax.export.symbolic_shape("n")
    rows = jax.ShapeDtypeStruct((n, x.shape[1]), x.dtype)
    label, empty = np.arange(9) % 2, Statistics.empty(prior)
    counted = kernels.count(empty, x, label)
    posterior = kernels.update(prior, counted)

    def exported(kernel: Any, *arguments: Any) -> Any:
        return jax.export.deserialize(jax.export.export(jax.jit(kernel))(*arguments).serialize()).call

    count = exported(kernels.count, shapes(empty), rows, jax.ShapeDtypeStruct((n,), jnp.int32))
    result = count(single(empty), x, jnp.asarray(label, jnp.int32))
    assert jax.tree.structure(result) == jax.tree.structure(counted)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), result, counted)

    update = exported(kernels.update, shapes(prior), shapes(empty))
    result = update(single(prior), single(counted))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), result, posterior)

    score = exported(kernels.log_joint, shapes(posterior), rows)
    for rows_ in (x[:2], x):
        np.testing.assert_allclose(
            score(single(posterior), rows_), kernels.log_joint(posterior, rows_), rtol=1e-5, atol=1e-5
        )
