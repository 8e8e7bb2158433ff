"""Averages over context trees against an enumeration of all prunings; moments of draws, and limits."""

import itertools
from dataclasses import dataclass

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bayesnb.families import ContextsOfRows, ContextTree, LevelCounts, OneHot
from bayesnb.families.protocol import KeyVariates
from tests.estimators.contexts import log_evidence_of_table
from tests.families.oracles import assert_moments, jitted
from tests.families.prunings import AllPrunings
from tests.raises import refused

DRAWS = 20_000
# Of each feature how many values its parents have, and then itself.
SHAPES = ((2, 2, 2, 3), (3, 2), (4,), (1, 2), (2, 3, 2), (2, 1), (1, 3, 1, 2))
START = np.cumsum([0, *map(np.prod, SHAPES)])
C, L = 3, int(START[-1])
ALPHA = np.random.default_rng(1).uniform(0.3, 3.0, (C, len(SHAPES)))


@dataclass(frozen=True)
class Case:
    count: np.ndarray
    log_odds: float = 0.0

    @property
    def prior(self) -> ContextTree:
        return ContextTree.from_shapes(SHAPES, ALPHA, self.log_odds)

    @property
    def posterior(self) -> ContextTree:
        return self.prior.update(LevelCounts(self.count))

    def brute(self, c: int, f: int) -> AllPrunings:
        own = self.count[c, START[f] : START[f + 1]].reshape(SHAPES[f])
        return AllPrunings(own, ALPHA[c, f] / SHAPES[f][-1], self.log_odds)

    def table(self, method: str, *lead: int) -> np.ndarray:
        """(*lead, C, L) of all classes and features."""
        flat = [[getattr(self.brute(c, f), method)() for f in range(len(SHAPES))] for c in range(C)]
        rows = [np.concatenate([np.reshape(v, (*lead, -1)) for v in own], axis=-1) for own in flat]
        return np.stack(rows, axis=-2)


def counts() -> np.ndarray:
    """Contexts that differ and such that do not, several of them without rows, and a class without any."""
    rng = np.random.default_rng(0)
    found = rng.poisson(rng.gamma(0.5, 4.0, (C, L))).astype(float)
    found[0, :12] = np.tile([3.0, 1.0, 6.0], 4)
    found[1, 12:24] += 20.0 * np.tile([1, 0, 0, 0, 0, 1], 2)
    found[2] = 0.0
    return found


KINDS = {"even": Case(counts()), "short": Case(counts(), 1.3), "long": Case(counts(), -0.8)}
each = pytest.mark.parametrize("own", KINDS.values(), ids=KINDS)
EVEN = KINDS["even"]

log_evidence, mean, mode = map(jitted, ("log_evidence", "mean", "mode"))
variance, last_probability, predictive = map(jitted, ("variance", "last_probability", "predictive"))
proper = jitted("proper")
cumulants = jax.jit(ContextTree.log_likelihood_cumulants, static_argnums=2)
draw = jax.jit(lambda family, key: family.sample(key, DRAWS).theta)
draw_rows = jax.jit(
    lambda family, key, x, multiplicity: family.draw_with_multiplicity(KeyVariates(key), 5_000, x, multiplicity),
    static_argnums=3,
)


def cells() -> OneHot:
    """Rows that have each level of each feature, given each of its contexts, and missing cells."""
    sizes = np.diff(START).astype(np.int32)
    code = np.arange(int(sizes.max()))[:, None] % (sizes + 1) - (np.arange(len(sizes)) % 2 == 1)
    return OneHot(np.where(code < sizes, code, -1).astype(np.int8), START[:-1].astype(np.int32), sizes, 25)


def near(drawn: np.ndarray, expected: np.ndarray) -> None:
    """Means of independent draws (S, …) within 5 standard errors."""
    error = 5 * drawn.std(axis=0) / np.sqrt(len(drawn)) + 1e-12
    np.testing.assert_array_less(abs(drawn.mean(axis=0) - expected), error)


def of_contexts(theta: np.ndarray, f: int) -> np.ndarray:
    """(C, contexts, levels) of a feature."""
    return np.asarray(theta)[:, START[f] : START[f + 1]].reshape(C, -1, SHAPES[f][-1])


@pytest.mark.slow("a second view of what quick tests see", but="short")
@each
def test_for_any_prior_odds_and_parents_of_one_value_it_is_the_enumeration(own):
    found = np.sort(log_evidence(own.prior, LevelCounts(own.count)))
    expected = [[own.brute(c, f).log_evidence() for f in range(len(SHAPES))] for c in range(C)]
    np.testing.assert_allclose(found[:, : len(SHAPES)], np.sort(expected), rtol=0, atol=1e-10)
    assert not found[:, len(SHAPES) :].any()
    for method, of in {"mean": mean, "mode": mode}.items():
        np.testing.assert_allclose(of(own.posterior).theta, own.table(method), rtol=1e-11)
    np.testing.assert_allclose(variance(own.posterior)["theta"], own.table("variance"), rtol=1e-9, atol=1e-15)
    last = np.asarray(last_probability(own.posterior))
    for f, shape in enumerate(SHAPES):
        for c in range(C):
            expected = own.brute(c, f).last().reshape(len(shape), -1)
            np.testing.assert_allclose(last[: len(shape), c, START[f] : START[f + 1]], expected, rtol=0, atol=1e-11)
        assert not last[len(shape) :, :, START[f] : START[f + 1]].any()
        np.testing.assert_allclose(of_contexts(mean(own.posterior).theta, f).sum(axis=2), 1.0, rtol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("more", [(-1.0, 0.0, 0.5), (2.0, -0.5, 0.0)], ids=str)
def test_a_row_that_stands_more_or_less_often_equals_enumeration(more):
    own = Case(EVEN.count + 1.0)
    found = np.asarray(predictive(own.posterior, np.array(more)).theta)
    for c, (f, shape) in itertools.product(range(C), enumerate(SHAPES)):
        expected = [own.brute(c, f).and_cell(cell, more[c]).mean()[cell] for cell in np.ndindex(shape)]
        np.testing.assert_allclose(found[c, START[f] : START[f + 1]], expected, rtol=1e-10)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("more", [0.0, 1.0])
def test_cumulants_are_those_of_the_mixture_over_all_prunings(more):
    x = cells()
    found = np.stack(jax.tree.leaves(cumulants(EVEN.posterior, x, more)))
    expected = np.zeros(found.shape)
    for c, (f, shape) in itertools.product(range(C), enumerate(SHAPES)):
        for i, code in enumerate(x.code[:, f]):
            if code >= 0:
                cell = tuple(int(k) for k in np.unravel_index(code, shape))
                expected[:, i, c] += [k[cell] for k in EVEN.brute(c, f).and_cell(cell, more).cumulants()]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    if not more:
        terms = EVEN.posterior.cumulants_of_terms(x)
        np.testing.assert_allclose(np.asarray(terms.mean).sum(axis=2), found[0], rtol=1e-12)


# -- draws -------------------------------------------------------------------------------------------


@pytest.mark.slow("simulates many data sets or draws")
def test_draws_have_the_exact_moments_of_two_cells_together():
    theta = np.asarray(draw(EVEN.posterior, jax.random.key(0)))
    for f, shape in enumerate(SHAPES):
        own = theta[..., START[f] : START[f + 1]]
        np.testing.assert_allclose(own.reshape(DRAWS, C, -1, shape[-1]).sum(axis=3), 1.0, rtol=1e-10)
        for c in range(C):
            near(own[:, c], EVEN.brute(c, f).mean().ravel())
            near(own[:, c, :, None] * own[:, c, None, :], EVEN.brute(c, f).products())


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("multiplicity", [0.0, 1.0])
def test_draws_of_rows_have_their_cumulants(multiplicity):
    x = cells()
    drawn = np.asarray(draw_rows(EVEN.posterior, jax.random.key(1), x, multiplicity))
    found = cumulants(EVEN.posterior, x, multiplicity)
    assert_moments(drawn, found.mean, found.variance, found.third)


# -- laws --------------------------------------------------------------------------------------------


@each
def test_the_evidence_of_rows_after_others_is_that_of_all_less_that_of_those(own):
    some = LevelCounts(np.floor(own.count / 2))
    rest = LevelCounts(own.count - some.count)
    whole, first = (log_evidence(own.prior, part) for part in (LevelCounts(own.count), some))
    np.testing.assert_allclose(log_evidence(own.prior.update(some), rest), whole - first, rtol=0, atol=1e-10)


# -- limits ------------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_of_very_many_rows_all_estimates_are_the_frequencies():
    many = LevelCounts(1e9 * (EVEN.count + 1.0))
    posterior = EVEN.prior.update(many)
    mle = np.asarray(EVEN.prior.improper().update(many).mean().theta)
    for found in (mean(posterior).theta, mode(posterior).theta, predictive(posterior, -np.ones(C)).theta):
        np.testing.assert_allclose(found, mle, rtol=1e-6)
    for f in range(len(SHAPES)):
        np.testing.assert_allclose(of_contexts(mean(posterior).theta, f).sum(axis=2), 1.0, rtol=1e-12)
    assert np.isfinite(log_evidence(EVEN.prior, many)).all()
    assert (np.asarray(variance(posterior)["theta"]) >= 0).all()
    for cumulant in jax.tree.leaves(cumulants(posterior, cells(), 0.0)):
        assert np.isfinite(cumulant).all()


@pytest.mark.parametrize(("odds", "parents"), [(-700.0, True), (700.0, False)], ids=["never", "always"])
def test_a_prior_that_never_stops_has_full_tables_and_one_that_always_does_no_parents(odds, parents):
    found = mean(Case(EVEN.count, odds).posterior).theta
    for f, shape in enumerate(SHAPES):
        n = of_contexts(EVEN.count, f)
        n = n if parents else np.broadcast_to(n.sum(axis=1, keepdims=True), n.shape)
        posterior = n + ALPHA[:, f, None, None] / shape[-1]
        np.testing.assert_allclose(of_contexts(found, f), posterior / posterior.sum(axis=2, keepdims=True), rtol=1e-12)


def test_without_concentration_there_is_no_posterior():
    assert not np.asarray(proper(ContextTree.from_shapes(SHAPES, np.zeros((C, len(SHAPES)))))).any()
    assert np.asarray(proper(EVEN.prior)).all()


def test_a_feature_or_a_parent_without_levels_has_no_cells():
    tree = ContextTree.from_shapes([(3, 0), (0, 2), (2, 2)], np.ones((1, 3)))
    assert tree.count.shape == (1, 4)
    assert np.asarray(proper(tree)).all()


# -- what else it says -------------------------------------------------------------------------------


@pytest.mark.slow("a second view of what quick tests see")
def test_its_components_are_the_contexts_of_each_number_of_parents():
    parts = EVEN.posterior.components()
    weights = np.array([w for w, _ in parts])
    np.testing.assert_allclose(weights, last_probability(EVEN.posterior), rtol=1e-12)
    first, second = [], []
    for _, part in parts:
        name, arguments = part.marginals()["theta"]
        beta = getattr(stats, name)(**{k: np.asarray(v) for k, v in arguments.items()})
        certain = np.asarray(arguments["b"]) == 0  # of one level
        first.append(np.where(certain, 1.0, beta.mean()))
        second.append(np.where(certain, 1.0, beta.var() + beta.mean() ** 2))
    found = (weights * first).sum(axis=0)
    np.testing.assert_allclose(found, EVEN.table("mean"), rtol=1e-10)
    spread = (weights * second).sum(axis=0) - found**2
    np.testing.assert_allclose(spread, EVEN.table("variance"), rtol=1e-7, atol=1e-14)


def test_what_many_prunings_have_not_is_refused():
    refused("For EM use full tables", EVEN.posterior.penalized_mle, error=NotImplementedError)
    refused("contexts is discrete, and NUTS does not sample", EVEN.posterior.program, error=NotImplementedError)
    assert np.isnan(EVEN.posterior.pseudo_count()["theta"]).all()


TWO = 2


@given(
    seed=st.integers(0, 2**32 - 1),
    parents=st.lists(st.integers(0, 3), min_size=1, max_size=3).map(lambda n: sorted(n, reverse=True)),
    fractions=st.booleans(),
)
def test_ratios_are_those_of_the_chain_rule_on_full_tables(seed, parents, fractions):
    """log p(q | c, contexts) is the gain in log evidence from one more row."""
    rng, n = np.random.default_rng(seed), 12
    deepest = max(parents)
    sizes, alpha = rng.integers(1, 4, len(parents)), rng.choice([0.5, 1.0, 3.0], len(parents))
    values = [rng.integers(1, 4, sum(p > d for p in parents)) for d in range(deepest)]
    level = rng.integers(-1, sizes, (n, len(parents)))
    given_ = [rng.integers(0, v, (n, len(v))) for v in values]
    label, weight = rng.integers(0, TWO, n), rng.choice([0.0, 0.5, 2.5] if fractions else [0.0, 1.0, 2.0], n)
    rows = rng.permutation(n)[:7]
    contexts = ContextsOfRows.from_rows(level, given_, sizes, values, alpha, label, weight, TWO, rows)
    found = contexts.log_dependences(np.arange(7), 3)
    assert len(found) == 3 * (deepest > 0)
    for k, ratios in enumerate(found, 1):
        assert ratios.shape == (7, TWO, len(values[0]))
        for j, (i, row), c in itertools.product(range(ratios.shape[2]), enumerate(rows), range(TWO)):
            expected = 0.0
            if level[row, j] >= 0:
                for depth, sign in ((min(k, parents[j]), 1), (0, -1)):
                    table = np.zeros((*(values[d][j] for d in range(depth)), sizes[j]))
                    cell = [(*(given_[d][r, j] for d in range(depth)), level[r, j]) for r in range(n)]
                    for r in np.flatnonzero((label == c) & (level[:, j] >= 0)):
                        table[cell[r]] += weight[r]
                    before = log_evidence_of_table(table, alpha[j])
                    table[cell[row]] += 1
                    expected += sign * (log_evidence_of_table(table, alpha[j]) - before)
            np.testing.assert_allclose(ratios[i, c, j], expected, rtol=1e-9, atol=1e-10)
