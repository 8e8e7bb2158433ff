"""Compact encodings of rows against the dense matrix of counts, by brute force in NumPy.

The rows come from the encoders, as in the estimators: packed and not, padded, with missing cells.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma, gammaln, polygamma

from bayesnb.encoding import BinaryColumns, CountColumns, LevelColumns, Levels, to_table
from bayesnb.families import Complete, Dirichlet, LevelCounts
from bayesnb.families.numbers import map_in_pieces, numbers, sum_by_class
from bayesnb.families.rows import Multinomial
from tests.strategies import thorough

N_CLASSES = 3


@dataclass(frozen=True, eq=False)
class Case:
    """Rows as a kernel receives them (padded), and as dense counts (N, L) over groups."""

    rows: Any
    x: Any
    dense: np.ndarray
    group: np.ndarray

    @property
    def padded(self) -> int:
        return 64

    @property
    def num_groups(self) -> int:
        return int(self.group.max()) + 1

    def totals(self) -> np.ndarray:
        return np.stack([self.dense[:, self.group == g].sum(axis=1) for g in range(self.num_groups)], axis=1)


def case(columns: Any, X: Any, dense: np.ndarray, group: np.ndarray) -> Case:
    rows = columns.rows(to_table(X, "test"))
    return Case(rows, rows.piece(0, len(dense), 64), dense, group)


def categorical(sizes: list[int], rng: np.random.Generator, n: int = 50) -> Case:
    """Cells drawn from all levels; a tenth is missing."""
    F = len(sizes)
    code = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    missing = rng.random((n, F)) < 0.1
    X = np.where(missing, None, code.astype(object))
    names = tuple(map(str, range(F)))
    levels = tuple(Levels.from_values(range(size)) for size in sizes)
    columns = LevelColumns(tuple(range(F)), names, F, levels, (True,) * F)
    start = np.cumsum([0, *sizes[:-1]])
    dense = np.zeros((n, sum(sizes)))
    i, j = np.nonzero(~missing)
    dense[i, start[j] + code[i, j]] = 1
    return case(columns, X, dense, np.repeat(np.arange(F), sizes))


def bernoulli(F: int, rng: np.random.Generator, n: int = 50) -> Case:
    present = rng.random((n, F)) < 0.4
    missing = rng.random((n, F)) < 0.1
    X = np.where(missing, np.nan, present)
    dense = np.stack([~present & ~missing, present & ~missing], axis=2).reshape(n, -1).astype(float)
    return case(BinaryColumns(tuple(range(F)), ("f",) * F, F), X, dense, np.repeat(np.arange(F), 2))


def presence(F: int, rng: np.random.Generator, n: int = 50) -> Case:
    present = rng.random((n, F)) < 0.2
    present[3] = False
    dense = np.stack([~present, present], axis=2).reshape(n, -1).astype(float)
    X = sp.csr_array(present.astype(np.int8))
    return case(BinaryColumns(tuple(range(F)), ("f",) * F, F), X, dense, np.repeat(np.arange(F), 2))


def words(V: int, rng: np.random.Generator, n: int = 50, sparse: bool = True, fractional: bool = False) -> Case:
    dense = rng.poisson(0.5, (n, V)).astype(float) * (rng.integers(1, 4, (n, V)))
    dense[7] = 0
    dense *= 0.25 if fractional else 1.0
    X = sp.csr_array(dense if fractional else dense.astype(np.uint8)) if sparse else dense
    return case(CountColumns(tuple(range(V)), ("w",) * V, V), X, dense, np.zeros(V, int))


def make(kind: str) -> Case:
    rng = np.random.default_rng(0)
    return {
        "categorical, packed": lambda: categorical([2, 3, 2, 4, 1, 3, 2], rng),
        "categorical, one column": lambda: categorical([3], rng),
        "categorical, too wide to pack": lambda: categorical([40, 2, 35], rng),
        "categorical, many columns": lambda: categorical([3, 5] * 70, rng),
        "bernoulli": lambda: bernoulli(4, rng),
        "bernoulli, many columns": lambda: bernoulli(131, rng),
        "presence": lambda: presence(9, rng),
        "words": lambda: words(12, rng),
        "words, dense": lambda: words(12, rng, sparse=False),
        "words, fractional": lambda: words(12, rng, fractional=True),
    }[kind]()


KINDS = (
    "categorical, packed",
    "categorical, one column",
    "categorical, too wide to pack",
    "categorical, many columns",
    "bernoulli",
    "bernoulli, many columns",
    "presence",
    "words",
    "words, dense",
    "words, fractional",
)
CASES: dict[str, Case] = {}
every_kind = pytest.mark.parametrize("kind", thorough(KINDS, list(KINDS)[:1]))


@pytest.fixture
def rows(kind) -> Case:
    return CASES.setdefault(kind, make(kind))


def alphas(rows: Case, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).gamma(1.5, size=(N_CLASSES, rows.dense.shape[1])) + 0.05


def dirichlet(rows: Case, alpha: np.ndarray) -> Dirichlet:
    return Dirichlet(alpha, rows.group.astype(np.int32), rows.num_groups)


def first(rows: Case, scores: Any) -> np.ndarray:
    """Scores of the rows that are there; those of the padding are of no account."""
    return np.asarray(scores)[: len(rows.dense)]


def dot(counts: np.ndarray, table: np.ndarray) -> np.ndarray:
    """(N, C) Σ x · table, 0 · (-inf) = 0."""
    with np.errstate(invalid="ignore"):
        terms = np.where(counts[:, None] == 0, 0.0, counts[:, None] * table)
    return terms.sum(axis=2)


@every_kind
def test_tally_is_weights_times_rows(rows):
    rng = np.random.default_rng(2)
    label = rng.integers(0, N_CLASSES, rows.padded)
    weight = np.where(np.arange(rows.padded) < len(rows.dense), rng.gamma(1.0, size=rows.padded), 0.0)
    n, empty = len(rows.dense), rows.rows.empty(N_CLASSES)
    counted = jax.jit(type(empty).observe)(empty, rows.x, label, weight)
    sizes = np.bincount(rows.group)
    weighted_counts = jax.tree.map(np.asarray, counted).level_counts(sizes).count
    expected = np.stack([(weight[:n] * (label[:n] == c)) @ rows.dense for c in range(N_CLASSES)])
    weighted_counts = np.asarray(weighted_counts)
    if weighted_counts.shape[1] * 2 == expected.shape[1]:  # of sparse presences only these are counted
        expected = expected[:, 1::2]
    np.testing.assert_allclose(weighted_counts[:, : expected.shape[1]], expected, rtol=1e-12)
    assert not weighted_counts[:, expected.shape[1] :].any()


@every_kind
def test_plug_in_score_is_rows_times_log_probabilities(rows):
    log_theta = np.log(alphas(rows))
    scores = plug_in(log_theta, rows.x)
    np.testing.assert_allclose(first(rows, scores), dot(rows.dense, log_theta), rtol=1e-12, atol=1e-12)


@every_kind
@given(seed=st.integers(0, 2**32 - 1))
def test_impossible_levels_are_impossible_where_they_occur_and_only_there(rows, seed):
    """-inf is a real answer; p = 1 makes the other level of a pair impossible. Never NaN."""
    rng = np.random.default_rng(seed)
    log_theta = np.log(alphas(rows))
    levels = rng.choice(log_theta.shape[1], size=min(5, log_theta.shape[1]), replace=False)
    log_theta[rng.integers(0, N_CLASSES, len(levels)), levels] = -np.inf
    scores = first(rows, plug_in(log_theta, rows.x))
    np.testing.assert_allclose(scores, dot(rows.dense, log_theta), rtol=1e-12, atol=1e-12)


plug_in = jax.jit(lambda t, x: Multinomial(t).log_prob(x))


@pytest.mark.slow("other variants compile kernels of their own", but="bernoulli")
@pytest.mark.parametrize("kind", ["bernoulli", "bernoulli, many columns", "presence"])
def test_a_sure_feature_that_is_absent_makes_the_row_impossible(kind, rows):
    """p = 1 in one class, p = 0 in another: log 0 and log 1 on both sides of the pair."""
    log_theta = np.log(alphas(rows))
    log_theta[0, :2] = [-np.inf, 0.0]
    log_theta[1, :2] = [0.0, -np.inf]
    log_theta[2, 2:4] = [-np.inf, 0.0]
    log_theta[2, :2] = [-np.inf, 0.0]
    np.testing.assert_allclose(first(rows, plug_in(log_theta, rows.x)), dot(rows.dense, log_theta), rtol=1e-12)


@every_kind
def test_levels_whose_probability_does_not_exist_spoil_the_rows_that_need_them(rows):
    """NaN, as the MLE of a class without rows; a multinomial row without words needs none."""
    log_theta = np.log(alphas(rows))
    log_theta[1] = np.nan
    scores = first(rows, plug_in(log_theta, rows.x))
    needs = rows.dense.sum(axis=1) > 0
    assert np.isnan(scores[needs, 1]).all()
    others = scores[:, [0, 2]]
    np.testing.assert_allclose(others, dot(rows.dense, log_theta[[0, 2]]), rtol=1e-12, atol=1e-12)


@every_kind
def test_predictive_score_is_a_ratio_of_beta_functions(rows):
    alpha = alphas(rows)
    totals = np.stack([alpha[:, rows.group == g].sum(axis=1) for g in range(rows.num_groups)], axis=1)
    x, t = rows.dense[:, None], rows.totals()[:, None]
    expected = (gammaln(alpha + x) - gammaln(alpha)).sum(axis=2) - (gammaln(totals + t) - gammaln(totals)).sum(axis=2)
    prior = dirichlet(rows, alpha)
    scores = jax.jit(lambda p, x: p.predictive().log_prob(x))(prior, rows.x)
    np.testing.assert_allclose(first(rows, scores), expected, rtol=1e-11, atol=1e-11)
    prepared = jax.jit(lambda p, x: p.predictive().prepare(x).log_prob(x))(prior, rows.x)
    np.testing.assert_allclose(first(rows, prepared), expected, rtol=1e-11, atol=1e-11)


@every_kind
def test_predictive_under_an_improper_prior_is_impossible_where_a_level_without_count_occurs(rows):
    alpha = alphas(rows)
    alpha[1, 0] = alpha[2, -1] = 0.0
    prior = dirichlet(rows, alpha)
    scores = first(rows, jax.jit(lambda p, x: p.predictive().log_prob(x))(prior, rows.x))
    alone = np.bincount(rows.group) == 1  # a group of one level has no other: it does not exist
    for c, level in ((1, 0), (2, rows.dense.shape[1] - 1)):
        if not alone[rows.group[level]]:
            np.testing.assert_array_equal(scores[:, c] == -np.inf, rows.dense[:, level] > 0)
    assert np.isfinite(scores[:, 0]).all()


@every_kind
def test_log_likelihood_cumulants_are_sums_of_polygammas(rows):
    alpha = alphas(rows)
    totals = np.stack([alpha[:, rows.group == g].sum(axis=1) for g in range(rows.num_groups)], axis=1)
    x, t = rows.dense, rows.totals()
    prior = dirichlet(rows, alpha)
    cumulants = jax.jit(lambda p, x: p.log_likelihood_cumulants(x))(prior, rows.x)
    base = gammaln(t + 1).sum(axis=1) - gammaln(x + 1).sum(axis=1)
    expected = dot(x, digamma(alpha)) - dot(t, digamma(totals)) + base[:, None]
    np.testing.assert_allclose(first(rows, cumulants.mean), expected, rtol=1e-10, atol=1e-10)
    expected = dot(x**2, polygamma(1, alpha)) - dot(t**2, polygamma(1, totals))
    np.testing.assert_allclose(first(rows, cumulants.variance), expected, rtol=1e-9, atol=1e-10)
    expected = dot(x**3, polygamma(2, alpha)) - dot(t**3, polygamma(2, totals))
    np.testing.assert_allclose(first(rows, cumulants.third), expected, rtol=1e-9, atol=1e-10)


@every_kind
def test_log_predictive_includes_the_multinomial_coefficient(rows):
    prior = dirichlet(rows, alphas(rows))
    full = jax.jit(lambda p, x: p.log_predictive(x) - p.predictive().log_prob(x))(prior, rows.x)
    expected = gammaln(rows.totals() + 1).sum(axis=1) - gammaln(rows.dense + 1).sum(axis=1)
    np.testing.assert_allclose(
        first(rows, full), np.broadcast_to(expected[:, None], full[: len(expected)].shape), atol=1e-10
    )


@every_kind
def test_rows_are_cut_anywhere(rows):
    """Blocks of a few rows each, as of the whole."""
    log_theta = np.log(alphas(rows))
    whole = dot(rows.dense, log_theta)
    for start, stop in ((0, 16), (16, 29), (40, 50), (49, 50)):
        block = rows.rows.piece(start, stop, 16)
        np.testing.assert_allclose(plug_in(log_theta, block)[: stop - start], whole[start:stop], rtol=1e-12, atol=1e-12)
        plain = rows.rows.linear_rows().piece(start, stop, 16)
        np.testing.assert_allclose(plug_in(log_theta, plain)[: stop - start], whole[start:stop], rtol=1e-12, atol=1e-12)


def test_counts_have_one_simplex():
    rows = make("words")
    prior = Dirichlet(alphas(rows), np.repeat([0, 1], 6), 2)
    with pytest.raises(ValueError, match="one simplex"):
        prior.predictive().log_prob(rows.x)


def test_rows_that_are_arrays_are_counts_over_the_groups():
    rows = make("categorical, packed")
    alpha = alphas(rows)
    prior = dirichlet(rows, alpha)

    @jax.jit
    def scores(x):
        return prior.log_predictive(x), prior.predictive().log_prob(x)

    for dense, encoded in zip(scores(rows.dense), scores(rows.x), strict=True):
        np.testing.assert_allclose(dense, first(rows, encoded), rtol=1e-11, atol=1e-11)
    counted = jax.jit(LevelCounts.observe)(
        LevelCounts(np.zeros(alpha.shape)), rows.dense, np.zeros(50, int), np.ones(50)
    )
    np.testing.assert_allclose(counted.count[0], rows.dense.sum(axis=0))


def sums_of_rows(rows):
    values = numbers(rows)
    return jnp.stack([jnp.sum(values, axis=1), jnp.sum(values * values, axis=1)], axis=1)


@pytest.mark.parametrize("shape", [(820, 10), (3, 10), (1, 20_000), (0, 10), (5, 0)])
def test_pieces_are_the_whole(shape):
    x = np.random.default_rng(0).normal(size=shape)
    expected = np.stack([x.sum(axis=1), (x * x).sum(axis=1)], axis=1)
    for found in jax.jit(lambda x: [map_in_pieces(sums_of_rows, rows, 2) for rows in (x, Complete(x))])(x):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("dtype", [float, np.float32, np.uint8])
@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_by_class_are_those_over_the_rows_in_both_namespaces(missing, dtype, order):
    rng = np.random.default_rng(0)
    x, label, weight = rng.integers(0, 9, (50, 3)).astype(dtype, order=order), rng.integers(0, 4, 50), rng.random(50)
    weight[::7] = 0.0
    label[label == 2] = 1  # a class without rows
    if np.issubdtype(dtype, np.floating):
        x[rng.random(x.shape) < missing] = np.nan
    centre = rng.normal(size=(4, 3))
    deviation = x - centre[label]
    expected = [
        [np.nansum(weight[label == c, None] * terms[label == c], axis=0) for c in range(4)]
        for terms in (np.where(np.isnan(x), 0.0, 1.0), deviation, deviation**2)
    ]
    for found in (sum_by_class(x, label, weight, centre), jax.jit(sum_by_class)(x, label, weight, centre)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_rows_that_pad_a_block_do_not_count_however_far_they_are_from_the_centre():
    x, label = np.array([[1e200], [1e200], [0.0]]), np.zeros(3, int)
    with np.errstate(over="raise", invalid="raise"):
        count, total, square = sum_by_class(x, label, np.array([1.0, 1.0, 0.0]), np.array([[1e200]]))
    assert (count, total, square) == (2.0, 0.0, 0.0)
