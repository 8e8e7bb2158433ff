"""Law 11: kernels give under `jit`, `vmap` and `grad` what they give without, and what the estimators give."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesnb as bnb
from bayesnb import NaiveBayes, Statistics, kernels
from bayesnb.families import EmpiricalNormal, EmpiricalRate, GammaExponential, LevelCounts, NormalInverseGamma
from bayesnb.model import TermWeights

N_CLASSES, N_TRAIN, N_TEST = 3, 24, 5
SIZES = (2, 3, 4)
ESTIMATES = ("predictive", "mean", "map")
seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Model:
    """A prior by a strength of its parameters and of the classes, random rows, and the estimator of the same model."""

    prior: Callable[[Any, Any], NaiveBayes]
    rows: Callable[[np.random.Generator, int], np.ndarray]
    estimator: Callable[[float, float], Any]


def with_missing_cells(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(rows.shape) < 0.1, np.nan, rows)


def codes(rng: np.random.Generator, n: int) -> np.ndarray:
    return with_missing_cells(rng.integers(0, SIZES, (n, len(SIZES))), rng)


def numbers(rng: np.random.Generator, n: int) -> np.ndarray:
    return with_missing_cells(rng.normal(rng.normal(0, 3, 3), 2.0, (n, 3)).round(2), rng)


MODELS = {
    "categorical": Model(
        lambda alpha, class_alpha: NaiveBayes.categorical(N_CLASSES, SIZES, alpha, class_alpha),
        codes,
        lambda alpha, class_alpha: bnb.CategoricalNB(
            alpha=alpha, class_alpha=class_alpha, categories=[list(map(float, range(n))) for n in SIZES]
        ),
    ),
    "bernoulli": Model(
        lambda alpha, class_alpha: NaiveBayes.bernoulli(N_CLASSES, 4, alpha, class_alpha),
        lambda rng, n: with_missing_cells(rng.integers(0, 2, (n, 4)), rng),
        lambda alpha, class_alpha: bnb.BernoulliNB(alpha=alpha, class_alpha=class_alpha),
    ),
    "multinomial": Model(
        lambda alpha, class_alpha: NaiveBayes.multinomial(N_CLASSES, 5, alpha, class_alpha),
        lambda rng, n: rng.poisson(1.5, (n, 5)),
        lambda alpha, class_alpha: bnb.MultinomialNB(alpha=alpha, class_alpha=class_alpha),
    ),
    "gaussian": Model(
        lambda kappa, class_alpha: NaiveBayes.gaussian(N_CLASSES, 3, EmpiricalNormal("within", kappa), class_alpha),
        numbers,
        lambda kappa, class_alpha: bnb.GaussianNB(prior=EmpiricalNormal("within", kappa), class_alpha=class_alpha),
    ),
    "poisson": Model(
        lambda a, class_alpha: NaiveBayes.poisson(N_CLASSES, 3, EmpiricalRate(a), class_alpha),
        lambda rng, n: with_missing_cells(rng.poisson(3.0, (n, 3)), rng),
        lambda a, class_alpha: bnb.PoissonNB(prior=EmpiricalRate(a), class_alpha=class_alpha),
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)
costly = pytest.mark.slow("functions of their own to compile", but="categorical")


@dataclass(frozen=True)
class Table:
    x: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    new: np.ndarray
    strength: float
    class_alpha: float


def table(name: str, seed: int) -> Table:
    """Random rows in which every class and, for Gaussian means, every column occurs."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.arange(N_TRAIN) % N_CLASSES)
    rows = MODELS[name].rows(rng, N_TRAIN + N_TEST)
    return Table(
        rows[:N_TRAIN], label, rng.choice([0.5, 1.0, 2.0], N_TRAIN), rows[N_TRAIN:], *rng.uniform(1.1, 3.0, 2).tolist()
    )


def analyse(name: str, x: Any, label: Any, weight: Any, new: Any, strength: Any, class_alpha: Any) -> dict[str, Any]:
    """Scores of new rows by three estimates and by maximum likelihood, and the evidence, all by kernels."""
    prior = MODELS[name].prior(strength, class_alpha)
    statistics = kernels.count(Statistics.empty(prior), x, label, weight)
    posterior = kernels.update(prior, statistics)
    scores = {estimate: kernels.log_joint(posterior, new, estimate) for estimate in ESTIMATES}
    unlimited = kernels.update(prior.derive(statistics).improper(), statistics)
    return scores | {
        "mle": kernels.log_joint(unlimited, new, "mean"),
        "evidence": kernels.log_evidence(prior, statistics),
    }


def arrays(t: Table) -> tuple[Any, ...]:
    return t.x, t.label, t.weight, t.new, t.strength, t.class_alpha


def assert_same(result: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    """Values agree to tolerance · max(1, |value|), and infinite and undefined ones are the same."""
    for key in expected:
        np.testing.assert_allclose(result[key], expected[key], rtol=tolerance, atol=tolerance, err_msg=key)


@every_model
@given(seed=seeds)
def test_kernels_give_what_estimators_give(name, seed):
    t = table(name, seed)
    nb = MODELS[name].estimator(t.strength, t.class_alpha).fit(t.x, t.label, t.weight)
    expected = {e: nb.predict_joint_log_proba(t.new, estimate=e) for e in (*ESTIMATES, "mle")}
    with jax.enable_x64(True):
        result = analyse(name, *arrays(t))
    assert_same(result, expected | {"evidence": nb.log_evidence_}, 1e-12)


@cache
def compiled(name: str, over: str = "") -> Callable[..., Any]:
    """`analyse` under `jit`, mapped over two data sets, strengths or weights."""
    axes = {
        "": None,
        "data": (0, 0, 0, 0, None, None),
        "strength": (*(None,) * 4, 0, 0),
        "weight": (None, None, 0, *(None,) * 3),
    }
    function = partial(analyse, name)
    return jax.jit(jax.vmap(function, axes[over]) if over else function)


@costly
@every_model
@given(seed=seeds)
def test_compiled_kernels_give_what_numpy_gives(name, seed):
    t = table(name, seed)
    with jax.enable_x64(True):
        with jax.disable_jit():
            expected = analyse(name, *arrays(t))
        assert_same(compiled(name)(*arrays(t)), expected, 1e-12)


@pytest.mark.slow("one small compilation for each operation")
@every_model
def test_compiled_kernels_give_what_jax_gives_without_compilation(name):
    t = table(name, 0)
    with jax.enable_x64(True):
        with jax.disable_jit():
            expected = analyse(name, *map(jnp.asarray, arrays(t)))
        assert_same(compiled(name)(*arrays(t)), expected, 1e-12)


@costly
@every_model
@given(seed=seeds)
def test_single_precision(name, seed):
    t = table(name, seed)
    with jax.enable_x64(True):
        expected = analyse(name, *arrays(t))
    result = compiled(name)(*arrays(t))
    assert all(value.dtype == jnp.float32 for value in result.values())
    assert_same(result, expected, 1e-5)


@costly
@every_model
@given(seed=seeds)
def test_vmap_over_data_sets_strengths_and_weights(name, seed):
    t, other = table(name, seed), table(name, seed + 1)
    x, label, weight, new, *_ = arrays(t)
    strengths = np.array([0.7, 1.3])
    weights = np.random.default_rng(seed).poisson(1.0, (2, N_TRAIN)) + 0.5
    pairs = [np.stack(pair) for pair in zip(arrays(t)[:4], arrays(other)[:4], strict=True)]
    calls = {
        "data": ((*pairs, 1.2, 0.8), [(*arrays(one)[:4], 1.2, 0.8) for one in (t, other)]),
        "strength": ((x, label, weight, new, strengths, strengths), [(x, label, weight, new, s, s) for s in strengths]),
        "weight": ((x, label, weights, new, 1.2, 0.8), [(x, label, w, new, 1.2, 0.8) for w in weights]),
    }
    with jax.enable_x64(True):
        for over, (mapped, each) in calls.items():
            together = compiled(name, over)(*mapped)
            for i, alone in enumerate(each):
                assert_same({key: value[i] for key, value in together.items()}, analyse(name, *alone), 1e-12)


def differentiated(name: str, t: Table, strength: Any, class_alpha: Any, weight: Any, shift: Any) -> Any:
    """Scalar that depends on the evidence and on the scores of rows."""
    new = t.new + shift if name == "gaussian" else t.new
    result = analyse(name, t.x, t.label, weight, new, strength, class_alpha)
    return result["evidence"] + jnp.sum(result["predictive"][:, 0]) - jnp.sum(result["mean"][:, 1])


@costly
@every_model
def test_gradients_are_finite_differences(name):
    """By the strength of the prior, by the concentration of the classes, by the weights, and by numbers."""
    t, rng = table(name, 0), np.random.default_rng(0)
    total = partial(differentiated, name, t)
    with jax.enable_x64(True):
        at = [np.asarray(t.strength), np.asarray(t.class_alpha), t.weight, np.zeros(np.shape(t.new)[1])]
        slopes = jax.jit(jax.grad(total, argnums=(0, 1, 2, 3)))(*at)
        value, step = jax.jit(total), 1e-3
        for i, (point, slope) in enumerate(zip(at, slopes, strict=True)):
            direction = rng.normal(size=np.shape(point))

            def along(h, i=i, direction=direction):
                return float(value(*(v + h * direction if j == i else v for j, v in enumerate(at))))

            # Richardson's extrapolation, whose error is of the fourth order in the step.
            halves, wholes = ((along(h) - along(-h)) / (2 * h) for h in (step / 2, step))
            expected = (4 * halves - wholes) / 3
            assert abs(float(np.sum(slope * direction)) - expected) <= 1e-6 * max(1.0, abs(expected))


@costly
@every_model
def test_a_prior_is_an_argument_like_others(name):
    """Also its groups of levels, which are integers, may be traced."""
    t = table(name, 0)

    def fit(prior: NaiveBayes, empty: Statistics, x: Any, label: Any) -> Any:
        posterior = kernels.update(prior, kernels.count(empty, x, label))
        return posterior, kernels.log_joint(posterior, x)

    with jax.enable_x64(True):
        priors = [MODELS[name].prior(strength, 1.0) for strength in (0.5, 1.5)]
        empty = Statistics.empty(priors[0])
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *priors)
        _, scores = jax.jit(jax.vmap(fit, (0, None, None, None)))(stacked, empty, t.x, t.label)
        for prior, score in zip(priors, scores, strict=True):
            posterior, expected = fit(prior, empty, t.x, t.label)
            np.testing.assert_allclose(score, expected, rtol=1e-12, atol=1e-12)
            assert jax.tree.structure(jax.jit(fit)(prior, empty, t.x, t.label)[0]) == jax.tree.structure(posterior)


def test_statistics_are_added_like_any_tree():
    """As `psum` does, or a sum over an axis that `vmap` has made."""
    prior, label = NaiveBayes.categorical(2, (2, 3)), np.array([0, 1, 1])
    x = np.array([[0, 2], [1, 2], [1, 0]])
    once = kernels.count(Statistics.empty(prior), jnp.asarray(x), jnp.asarray(label))
    twice = jax.tree.map(jnp.add, once, once)
    np.testing.assert_array_equal(kernels.count(twice, x, label).blocks[0].count, 3 * once.blocks[0].count)
    slope = jax.grad(lambda s: kernels.log_evidence(prior, s))(once)
    assert np.isfinite(slope.blocks[0].count).all()


@pytest.mark.parametrize("name", ["categorical", "gaussian"])
def test_counting_in_two_parts_and_merging(name):
    t = table(name, 3)
    empty = Statistics.empty(MODELS[name].prior(1.0, 1.0))
    with jax.enable_x64(True):
        whole = kernels.count(empty, t.x, t.label, t.weight)
        parts = [kernels.count(empty, t.x[p], t.label[p], t.weight[p]) for p in (slice(9), slice(9, None))]
        onto = kernels.count(parts[0], t.x[9:], t.label[9:], t.weight[9:])
    for other in (parts[0].merge(parts[1]), onto):
        for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


compiled_scores = jax.jit(kernels.log_joint)


@pytest.mark.parametrize("strange", [-1.0, 4.0, 0.5, np.nan, np.inf])
def test_a_code_that_is_no_level_is_a_missing_cell(strange):
    prior = NaiveBayes.categorical(2, (2, 3))
    x, label = np.array([[0.0, strange], [1.0, 2.0]]), np.array([0, 1])
    statistics = kernels.count(Statistics.empty(prior), x, label)
    np.testing.assert_array_equal(statistics.blocks[0].count, [[1, 0, 0, 0, 0], [0, 1, 0, 0, 1]])
    posterior = kernels.update(prior, statistics)
    with jax.enable_x64(True):
        scores = compiled_scores(posterior, x[:1])
    np.testing.assert_allclose(np.exp(scores), [[0.5 * 2 / 3, 0.5 / 3]], rtol=1e-6)


def test_rows_with_a_label_that_is_no_class_are_not_counted():
    prior = NaiveBayes.gaussian(2, 1)
    x = np.array([[1.0], [3.0], [9.0], [9.0]])
    statistics = kernels.count(Statistics.empty(prior), x, np.array([0, 0, -1, 2]))
    np.testing.assert_array_equal(statistics.class_count, [2, 0])
    np.testing.assert_array_equal(statistics.blocks[0].mean, [[2], [0]])


def test_levels_may_be_given_as_counts_and_as_codes():
    prior = NaiveBayes.categorical(2, (2, 3))
    codes, label = np.array([[0, 2], [1, 0]]), np.array([1, 0])
    counts = np.hstack([np.eye(2)[codes[:, 0]], np.eye(3)[codes[:, 1]]])
    empty = Statistics.empty(prior)
    a, b = (kernels.count(empty, x, label) for x in (codes, counts))
    np.testing.assert_array_equal(a.blocks[0].count, b.blocks[0].count)
    with jax.enable_x64(True):
        posterior = kernels.update(prior, a)
        np.testing.assert_allclose(
            kernels.log_joint(posterior, codes), kernels.log_joint(posterior, counts), rtol=1e-12
        )


def test_blocks_of_two_kinds():
    levels, numbers = NaiveBayes.categorical(2, (3,)), NaiveBayes.gaussian(2, 2)
    prior = replace(levels, blocks=(*levels.blocks, *numbers.blocks))
    rng = np.random.default_rng(0)
    x, label = (rng.integers(0, 3, (9, 1)), rng.normal(size=(9, 2))), rng.integers(0, 2, 9)
    with jax.enable_x64(True):
        posterior = kernels.update(prior, kernels.count(Statistics.empty(prior), x, label))
        joint = kernels.log_joint(posterior, x)
    nb = bnb.MixedNB(categorical=[0], gaussian=[1, 2], gaussian_prior="within").fit(np.hstack(x), label)
    np.testing.assert_allclose(joint, nb.predict_joint_log_proba(np.hstack(x)), rtol=1e-12)


@pytest.mark.parametrize("module", [np, jnp], ids=["numpy", "jax"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, bool, np.float32])
def test_codes_of_every_type(dtype, module):
    """255 in 100 columns of three levels: its position among all levels would be that of another column."""
    prior, rng = NaiveBayes.categorical(2, [3] * 100), np.random.default_rng(0)
    codes = rng.integers(0, 2 if dtype is bool else 3, (6, 100))
    codes[0, 0] = {np.uint8: 255, np.uint32: 2**32 - 1, bool: 1}.get(dtype, -1)
    label = np.arange(6) % 2
    expected = kernels.count(Statistics.empty(prior), codes.astype(np.int64), label).blocks[0].count
    x = module.asarray(codes.astype(dtype))
    statistics = kernels.count(Statistics.empty(prior), x, module.asarray(label))
    np.testing.assert_array_equal(statistics.blocks[0].count, expected)
    posterior = kernels.update(prior, statistics)
    np.testing.assert_allclose(
        kernels.log_joint(posterior, x), kernels.log_joint(posterior, codes.astype(np.int64)), rtol=1e-5
    )


@pytest.mark.parametrize("module", [np, jnp], ids=["numpy", "jax"])
@pytest.mark.parametrize(("dtype", "n_classes"), [(np.int8, 128), (np.uint8, 300), (np.uint32, 300), (np.int64, 300)])
def test_labels_of_every_type(dtype, n_classes, module):
    for prior in (NaiveBayes.categorical(n_classes, [2]), NaiveBayes.gaussian(n_classes, 1)):
        x, label = module.asarray([[0], [1]]), module.asarray(np.array([0, 1], dtype))
        class_count = kernels.count(Statistics.empty(prior), x, label).class_count
        np.testing.assert_array_equal(np.flatnonzero(class_count), [0, 1])


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.uint64])
def test_large_codes_and_labels_are_none_of_the_small_ones(dtype):
    large = np.array([2**32 - 1 if dtype is np.uint32 else 2**32 + 1], dtype)
    for module in (np, jnp):
        with jax.enable_x64(True):
            prior, x = NaiveBayes.categorical(2, (2, 3)), module.asarray(np.repeat(large, 2)[None])
            unknown_level = kernels.count(Statistics.empty(prior), x, np.array([0]))
            unknown_class = kernels.count(Statistics.empty(prior), 0 * x, module.asarray(large))
        assert not np.any(unknown_level.blocks[0].count)
        assert not np.any(unknown_class.class_count)


@pytest.mark.parametrize("module", [np, jnp], ids=["numpy", "jax"])
@pytest.mark.parametrize("cell", [-1.0, np.inf, np.nan])
@pytest.mark.parametrize("name", MODELS)
def test_cells_of_rows_that_are_not_counted_do_not_matter(name, cell, module):
    t, prior = table(name, 0), MODELS[name].prior(1.5, 1.0)
    x, weight, label = t.x.astype(float).copy(), t.weight.copy(), t.label.copy()
    weight[:3], label[3:5] = 0.0, -1
    x[:5] = cell
    expected = kernels.count(Statistics.empty(prior), x[5:], label[5:], weight[5:])
    result = kernels.count(Statistics.empty(prior), *map(module.asarray, (x, label, weight)))
    for a, b in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


# -- derivatives by weights and counts of zero -----------------------------------------------------


def one_sided(value: Callable[[float], Any], step: float = 1e-3) -> float:
    """Derivative at 0 from values at 0 and above, with an error of the fourth order in the step."""
    values = [float(value(k * step)) for k in range(5)]
    return float(np.dot([-25, 48, -36, 16, -3], values) / (12 * step))


def exponential(a: Any, class_alpha: Any) -> NaiveBayes:
    return replace(
        NaiveBayes.poisson(N_CLASSES, 3, class_alpha=class_alpha),
        blocks=(GammaExponential(*np.full((2, N_CLASSES, 3), a)),),
    )


WITH_EXPONENTIAL = MODELS | {"exponential": replace(MODELS["gaussian"], prior=exponential)}


def score(name: str, x: Any, label: Any, new: Any, weight: Any) -> Any:
    prior = WITH_EXPONENTIAL[name].prior(1.3, 0.9)
    statistics = kernels.count(Statistics.empty(prior), x, label, weight)
    posterior = kernels.update(prior, statistics)
    scores = [jnp.sum(kernels.log_joint(posterior, new, estimate)[:, 0]) for estimate in ("predictive", "mean")]
    return kernels.log_evidence(prior, statistics) + scores[0] - 0.5 * scores[1]


@costly
@pytest.mark.parametrize("name", WITH_EXPONENTIAL)
def test_a_weight_of_zero_has_its_derivative(name):
    """Beside cells that are missing, and whatever stands in cells of rows that are not counted."""
    t, none = table("gaussian" if name == "exponential" else name, 3), [0, 5, 11, 12]
    x, new = (abs(v.astype(float)) if name == "exponential" else v.astype(float) for v in (t.x, t.new))
    weight, label = t.weight.copy(), t.label.copy()
    weight[none], label[0] = 0.0, -1
    with jax.enable_x64(True):
        value = jax.jit(partial(score, name, new=new, label=label))
        slope = np.asarray(jax.grad(lambda w: value(x, weight=w))(weight))
        for i in none:
            expected = one_sided(lambda h, i=i: value(x, weight=weight + h * (np.arange(len(weight)) == i)))
            assert slope[i] == pytest.approx(expected, rel=1e-6, abs=1e-7)
            assert i == 0 or abs(expected) > 1e-3
        for cell in (np.inf, -np.inf, np.nan):
            strange, plain = x.copy(), x.copy()
            strange[none], plain[none] = cell, 0.0 if name == "multinomial" else np.nan
            slopes = [np.asarray(jax.grad(lambda w, x=rows: value(x, weight=w))(weight)) for rows in (strange, plain)]
            np.testing.assert_allclose(*slopes, rtol=1e-9)
            assert np.isfinite(slopes[0]).all()


@pytest.mark.slow("functions of their own to compile")
@pytest.mark.parametrize("seen", [1, 2], ids=["one row", "equal rows"])
def test_a_weight_of_zero_in_a_class_without_variance(seen):
    """All cells with weight are equal, so that M2 is 0; also if they are in an earlier block of rows."""
    prior = NaiveBayes.gaussian(2, 1, NormalInverseGamma(0.3, 0.1, 1.0, 2.0))
    x, label = np.array([[1.5]] * seen + [[4.0], [-2.0], [0.5]]), np.array([0] * (seen + 2) + [1])
    weight = np.array([1.0] * seen + [0.0, 0.0, 1.0])

    def at_once(w: Any) -> Any:
        return kernels.log_evidence(prior, kernels.count(Statistics.empty(prior), x, label, w))

    def in_two(w: Any) -> Any:
        first = kernels.count(Statistics.empty(prior), x[:seen], label[:seen], w[:seen])
        return kernels.log_evidence(prior, kernels.count(first, x[seen:], label[seen:], w[seen:]))

    with jax.enable_x64(True):
        for value in map(jax.jit, (at_once, in_two)):
            slope = jax.grad(value)(weight)
            for i in (seen, seen + 1):
                expected = one_sided(lambda h, i=i, f=value: f(weight + h * (np.arange(len(weight)) == i)))
                assert float(slope[i]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow("functions of their own to compile")
def test_a_class_without_weight_has_no_mean_and_no_derivative_of_moments():
    prior = NaiveBayes.gaussian(2, 1, NormalInverseGamma(0.3, 0.1, 1.0, 2.0), class_alpha=2.0)
    x, label = np.array([[1.5], [4.0]]), np.array([0, 1])
    value = jax.jit(lambda w: kernels.log_evidence(prior, kernels.count(Statistics.empty(prior), x, label, w)))
    of_classes = jax.jit(lambda n: jnp.sum(prior.class_prior.log_evidence(LevelCounts(n[None]))))
    slope, expected = (jax.grad(f)(np.array([1.0, 0.0]))[1] for f in (value, of_classes))
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


ROWS = np.random.default_rng(5).integers(0, 4, (30, 3))
FAMILIES = {
    "Dirichlet": lambda: bnb.NetworkNB({0: [1, 2]}),
    "ContextTree": lambda: bnb.NetworkNB({0: [1, 2]}, tables="context"),
    "TreeAveraged": lambda: bnb.TreeAveragedNB(),
    "AveragedLevels": lambda: bnb.FeatureAveragedNB(bnb.CategoricalNB()),
    "Binned": lambda: bnb.BinnedNB(cells=6),
}


@pytest.mark.slow("functions of their own to compile")
@pytest.mark.parametrize("name", FAMILIES)
def test_a_count_of_zero_has_its_derivative(name):
    label = np.random.default_rng(6).integers(0, 3, 30)
    nb = FAMILIES[name]().fit(ROWS + 0.1 * np.arange(30)[:, None] if name == "Binned" else ROWS, label)
    prior, statistics = nb.prior_, nb.statistics_
    count = np.asarray(statistics.blocks[0].count)

    @jax.jit
    def value(count: Any) -> Any:
        return kernels.log_evidence(prior, replace(statistics, blocks=(LevelCounts(count),)))

    with jax.enable_x64(True):
        slope = np.asarray(jax.grad(value)(count))
        zeros = np.argwhere(count == 0)[::7][:4]
        assert len(zeros)
        for c, level in zeros:
            unit = np.zeros_like(count)
            unit[c, level] = 1.0
            expected = one_sided(lambda h, unit=unit: value(count + h * unit))
            assert slope[c, level] == pytest.approx(expected, rel=1e-5, abs=1e-8)


def test_a_weight_of_a_term_that_is_zero_has_its_derivative():
    prior = NaiveBayes.categorical(2, (2, 3))
    x = np.array([[0, 2], [1, 1], [1, 0]])
    posterior = kernels.update(prior, kernels.count(Statistics.empty(prior), x, np.array([0, 1, 1])))

    def value(weight: Any) -> Any:
        weights = TermWeights(jnp.zeros(2), (weight,), (None,))
        return jnp.sum(kernels.log_joint(replace(posterior, weights=weights), jnp.asarray(x))[:, 0])

    weight = np.array([0.0, 1.0])
    with jax.enable_x64(True):
        slope = jax.grad(value)(jnp.asarray(weight))
        assert float(slope[0]) == pytest.approx(one_sided(lambda h: value(weight + h * np.array([1.0, 0.0]))), rel=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_no_rows(name):
    empty = Statistics.empty(MODELS[name].prior(1.5, 1.0))
    result = kernels.count(empty, table(name, 0).x[:0], np.zeros(0, int))
    for a, b in zip(jax.tree.leaves(result), jax.tree.leaves(empty), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", MODELS)
def test_arrays_of_numpy_give_float64_and_arrays_of_jax_its_precision(name):
    t, prior = table(name, 0), MODELS[name].prior(1.5, 1.0)
    for module, dtype in ((np, np.float64), (jnp, np.float32)):
        statistics = kernels.count(Statistics.empty(prior), *map(module.asarray, (t.x, t.label, t.weight)))
        scores = kernels.log_joint(kernels.update(prior, statistics), module.asarray(t.new))
        for leaf in (*jax.tree.leaves(statistics), scores, kernels.log_evidence(prior, statistics)):
            assert leaf.dtype == dtype
            assert isinstance(leaf, jax.Array) == (module is jnp)


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_single_precision_beside_double(name):
    t, prior = table(name, 0), MODELS[name].prior(1.5, 1.0)
    with jax.enable_x64(True):
        single = kernels.count(Statistics.empty(prior), jnp.asarray(t.x), t.label, jnp.asarray(t.weight, jnp.float32))
        double = kernels.count(Statistics.empty(prior), t.x, t.label, t.weight)
        for a, b in zip(jax.tree.leaves(single), jax.tree.leaves(double), strict=True):
            assert a.dtype == np.float64
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("estimate", ["mean", "map"])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_finite_scores_are_finite_beside_impossible_and_undefined_ones(name, estimate):
    """A class has no rows, and levels do not occur: their probabilities are 0 or do not exist."""
    rng = np.random.default_rng(0)
    prior = NaiveBayes.gaussian(3, 2) if name == "gaussian" else MODELS[name].prior(1.0, 1.0)
    x, label = jnp.asarray(MODELS[name].rows(rng, 6)), jnp.asarray([0, 0, 0, 1, 1, 1])
    x = jnp.nan_to_num(x[:, :2] if name == "gaussian" else x, nan=1.0)

    def score(weight: Any) -> Any:
        statistics = kernels.count(Statistics.empty(prior), x, label, weight)
        return kernels.log_joint(kernels.update(prior, statistics), x[:1], estimate)[0, 0]

    value, slope = jax.value_and_grad(score)(jnp.ones(6))
    assert np.isfinite(slope).all() or not np.isfinite(value)


def test_columns_of_one_level_have_codes():
    prior = NaiveBayes.categorical(2, (1, 1))
    statistics = kernels.count(Statistics.empty(prior), np.array([[0, -1], [0, 0]]), np.array([0, 1]))
    np.testing.assert_array_equal(statistics.blocks[0].count, [[1, 0], [1, 1]])


def test_rows_as_lists():
    prior = NaiveBayes.gaussian(2, 1)
    statistics = kernels.count(Statistics.empty(prior), [[1.0], [2.0]], [0, 1])
    np.testing.assert_array_equal(statistics.blocks[0].mean, [[1], [2]])


PRIOR = NaiveBayes.categorical(2, (2, 3))
EMPTY = Statistics.empty(PRIOR)
CODES, LABEL = np.zeros((4, 2), int), np.zeros(4, int)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernels.count(EMPTY, CODES[:, :1], LABEL), r"x\[0\].*\(4, 1\).*\(4, 2\) codes or \(4, 5\) counts"),
        (lambda: kernels.count(EMPTY, CODES[0], LABEL), r"x\[0\].*\(2,\)"),
        (lambda: kernels.count(EMPTY, CODES, LABEL[:3]), r"x\[0\].*\(4, 2\).*\(3, 2\)"),
        (lambda: kernels.count(EMPTY, CODES, LABEL, np.ones(3)), r"label and weight.*\(4,\) and \(3,\)"),
        (lambda: kernels.count(EMPTY, CODES, LABEL[:, None]), r"label and weight.*\(4, 1\)"),
        (lambda: kernels.count(EMPTY, CODES, LABEL + 0.5), r"label must be of integers.*float"),
        (lambda: kernels.count(EMPTY, (CODES, CODES), LABEL), "x has 2 blocks.*the model has 1"),
        (lambda: kernels.log_joint(PRIOR, np.zeros((4, 7))), r"x\[0\].*\(4, 7\).*\(4, 2\) codes or \(4, 5\) counts"),
        (lambda: kernels.log_joint(PRIOR, CODES, "median"), "median.*unknown"),
        (lambda: kernels.update(PRIOR, Statistics.empty(NaiveBayes.categorical(2, (2, 4)))), r"\(2, 5\).*\(2, 6\)"),
        (lambda: kernels.log_evidence(PRIOR, Statistics.empty(NaiveBayes.categorical(3, (2, 3)))), "classes.*2.*3"),
        (lambda: kernels.update(NaiveBayes.categorical(1, (2, 3)), EMPTY), "classes.*1.*2"),
        (lambda: kernels.log_joint(NaiveBayes.gaussian(2, 2), CODES), "block 0 is to be derived"),
        (lambda: NaiveBayes.gaussian(2, 3, EmpiricalRate()), "pooled.*within.*NormalInverseGamma"),
        (lambda: NaiveBayes.bernoulli(2, 0), "n_features.*at least 1"),
        (lambda: NaiveBayes.categorical(2, (2, 3), alpha=np.ones(4)), r"alpha.*\(4,\).*\(2, 5\)"),
        (lambda: NaiveBayes.categorical(2, (2, 3), class_alpha=np.ones(3)), r"class_alpha.*\(3,\).*\(1, 2\)"),
        (lambda: NaiveBayes.categorical(2, (2, 0)), "n_levels.*at least 1"),
        (lambda: NaiveBayes.categorical(0, 2), "n_classes.*at least 1"),
        (lambda: NaiveBayes.multinomial(2, 2.5), "n_features.*at least 1"),
        (lambda: NaiveBayes.gaussian(2, 3, "median"), "median.*pooled.*within"),
        (lambda: NaiveBayes.gaussian(2, 3, EmpiricalNormal("within", np.ones(4))), r"prior.*\(4,\).*\(2, 3\)"),
        (lambda: Statistics.empty(NaiveBayes(PRIOR.class_prior, (EmpiricalRate(),))), "number of columns"),
    ],
)
@pytest.mark.parametrize("traced", [False, True], ids=["direct", "traced"])
def test_what_does_not_fit_is_refused(call, message, traced):
    with pytest.raises((ValueError, TypeError), match=message):
        jax.eval_shape(lambda: call()) if traced else call()


def test_alpha_by_feature_by_level_and_by_class():
    by_feature = NaiveBayes.categorical(2, (2, 3), alpha=[1.0, 2.0]).blocks[0].concentration
    by_level = NaiveBayes.categorical(2, (2, 3), alpha=[np.ones(2), 2 * np.ones(3)]).blocks[0].concentration
    flat = NaiveBayes.categorical(2, (2, 3), alpha=np.tile([1.0, 1, 2, 2, 2], (2, 1))).blocks[0].concentration
    for alpha in (by_feature, by_level, flat):
        np.testing.assert_array_equal(alpha, [[1, 1, 2, 2, 2]] * 2)


DRAW = np.random.default_rng(21)
LABELS_OF_60 = DRAW.integers(0, 2, 60)


@pytest.mark.parametrize(
    ("prior", "x"),
    [
        (NaiveBayes.categorical(2, [3, 2]), DRAW.integers(-1, 3, (60, 2)).clip(-1, [2, 1])),
        (NaiveBayes.multinomial(2, 4), DRAW.poisson(1.0, (60, 4)) * 1.0),
        (
            NaiveBayes.gaussian(2, 3),
            np.where(DRAW.random((60, 3)) < 0.1, np.nan, 1e6 + DRAW.normal(size=(60, 3))),
        ),
        (NaiveBayes.poisson(2, 3), DRAW.poisson(2.0, (60, 3)) * 1.0),
    ],
    ids=["levels", "words", "numbers", "counts"],
)
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["host", "jit"])
def test_many_weightings_are_counted_at_once(prior, x, transform):
    label, weight = LABELS_OF_60, DRAW.exponential(size=(3, 60))
    empty = Statistics.empty(prior)
    with jax.enable_x64(True):
        together = transform(kernels.count)(empty, x, label, weight)
        twice = transform(kernels.count)(together, x[40:], label[40:], weight[:, 40:])
        for s, one in enumerate(weight):
            alone = kernels.count(empty, x, label, one)
            more = kernels.count(alone, x[40:], label[40:], one[40:])
            for every, expected in ((together, alone), (twice, more)):
                for a, b in zip(jax.tree.leaves(every), jax.tree.leaves(expected), strict=True):
                    assert (a[s] if np.ndim(a) > np.ndim(b) else a) == pytest.approx(np.asarray(b), rel=1e-9, abs=1e-9)
        mapped = jax.vmap(lambda w: kernels.count(empty, x, label, w))(weight[:, None])
        assert mapped.class_count[:, 0] == pytest.approx(np.asarray(together.class_count), rel=1e-9)


def test_weights_of_another_shape_are_refused():
    prior = NaiveBayes.categorical(2, [3])
    with pytest.raises(ValueError, match=r"\(3,\) and \(2, 4\); they must be \(N,\), and \(N,\) or \(S, N\)"):
        kernels.count(Statistics.empty(prior), np.zeros((3, 1), int), np.zeros(3, int), np.ones((2, 4)))
