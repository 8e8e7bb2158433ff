"""The average over all trees and arc sets, against an enumeration."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

from bayesnb.families import LevelCounts, OneHot, TreeAveraged
from bayesnb.families.protocol import KeyVariates
from tests.families.oracles import jitted
from tests.families.trees import AllTrees, arcs_of, real_arcs
from tests.raises import refused

DRAWS = 5_000
log_evidence = jitted("log_evidence")
log_prob = jax.jit(lambda family, x: family.predictive().log_prob(x))
terms = jax.jit(lambda family, x, more=None: family.predictive(more).terms(x))


@dataclass(frozen=True)
class Problem:
    brute: AllTrees
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.X, self.y, self.weight

    @property
    def prior(self) -> TreeAveraged:
        return TreeAveraged.from_sizes(self.brute.sizes, self.brute.n_classes, self.brute.total)

    @property
    def posterior(self) -> TreeAveraged:
        return self.prior.update(self.counts())

    def counts(self) -> LevelCounts:
        groups = [*((f,) for f in range(len(self.brute.sizes))), *self.brute.pairs]
        tables = [self.brute.table(*self.rows, group).reshape(self.brute.n_classes, -1) for group in groups]
        return LevelCounts(np.concatenate(tables, axis=1))

    def and_rows(self, row: np.ndarray, more: Any) -> Problem:
        """Return a copy that counts the row more often in each class."""
        classes = np.arange(self.brute.n_classes)
        X = np.vstack([self.X, np.repeat(row[None], len(classes), axis=0)])
        return replace(self, X=X, y=np.append(self.y, classes), weight=np.append(self.weight, more))


def problem(
    sizes: tuple[int, ...] = (2, 3, 1, 3), n_classes: int = 2, seed: int = 0, missing: float = 0.0, total: float = 1.0
) -> Problem:
    """Thirty rows, of which a level depends on the one before and on the class."""
    rng = np.random.default_rng(seed)
    y, X = rng.integers(0, n_classes, 30), np.full((30, len(sizes)), -1)
    for f, size in enumerate(sizes):
        if size:
            own = rng.integers(0, size, 30)
            X[:, f] = np.where(rng.random(30) < 0.6, (X[:, max(f - 1, 0)] + y + f) % size, own)
    X[rng.random(X.shape) < missing] = -1
    return Problem(AllTrees(sizes, n_classes, total), X, y, rng.choice([0.5, 1.0, 3.0], 30))


def encoded(X: np.ndarray, sizes: tuple[int, ...]) -> OneHot:
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    joint = [np.where((X[:, u] < 0) | (X[:, v] < 0), -1, X[:, u] * sizes[v] + X[:, v]) for u, v in pairs]
    size = np.array([*sizes, *(sizes[u] * sizes[v] for u, v in pairs)])
    code = np.stack([*X.T, *joint], axis=1)
    return OneHot(code.astype(np.int32), (np.cumsum(size) - size).astype(np.int32), size.astype(np.int32), 17)


def predicted(own: Problem, X: np.ndarray, more: Any = None) -> np.ndarray:
    """(N, C) log p(row | class, data, rows more of it)."""
    posterior, x = own.posterior, encoded(X, own.brute.sizes)
    return np.asarray(log_prob(posterior, x) if more is None else np.asarray(terms(posterior, x, more)).sum(axis=2))


def arc_probability(own: Problem) -> np.ndarray:
    return np.asarray(jax.jit(TreeAveraged.arc_probability)(own.posterior))


KINDS = {
    "three classes": problem((2, 3, 1, 3), 3),
    "missing cells": problem((2, 3, 1, 3), 3, missing=0.2),
    "five features": problem((2, 3, 2, 1, 3)),
    "a feature without levels": problem((2, 0, 3, 2)),
    "much of a prior": problem((2, 3, 1, 3), total=50.0),
    "little of a prior": problem((2, 3, 1, 3), total=1e-3),
    "two features": problem((2, 3)),
    "one feature": problem((3,)),
}
each = pytest.mark.parametrize("own", KINDS.values(), ids=KINDS)
some = pytest.mark.parametrize("own", [KINDS["three classes"], KINDS["missing cells"]], ids=["complete", "missing"])


# -- all trees ---------------------------------------------------------------------------------------


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@each
def test_evidence_predictive_and_arcs_equal_enumeration(own):
    expected = own.brute.log_score(*own.rows)
    found = np.asarray(log_evidence(own.prior, own.counts()))
    assert found.shape == (1, 1)
    assert found.item() == pytest.approx(expected, abs=1e-10)
    np.testing.assert_allclose(arc_probability(own), own.brute.arc_probability(*own.rows), rtol=0, atol=1e-12)
    rows = np.vstack([own.X[:5], np.full_like(own.X[:1], -1)])
    np.testing.assert_allclose(predicted(own, rows), own.brute.log_joint(*own.rows, rows), rtol=0, atol=1e-10)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@each
def test_a_row_more_or_less_is_a_refit(own):
    """Rows count with their weights: one of weight w leaves by a multiplicity of -w in its class."""
    n_classes, rows = own.brute.n_classes, own.X[:6]
    for more in (0.5 * np.eye(n_classes)[0], np.linspace(0.25, 2.0, n_classes)):
        found = predicted(own, rows, more)
        for i, row in enumerate(rows[:3]):
            other = own.and_rows(row, more)
            expected = own.brute.log_joint(*other.rows, row[None])
            np.testing.assert_allclose(found[i : i + 1], expected, rtol=0, atol=1e-10)
    for i in range(4):
        keep = np.arange(30) != i
        more = -own.weight[i] * np.eye(n_classes)[own.y[i]]
        expected = own.brute.log_joint(own.X[keep], own.y[keep], own.weight[keep], rows[i : i + 1])
        np.testing.assert_allclose(predicted(own, rows, more)[i : i + 1], expected, rtol=0, atol=1e-10)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@each
def test_terms_are_those_of_naive_bayes_and_one_for_the_arcs(own):
    sizes, rows = own.brute.sizes, own.X[:6]
    found = np.asarray(terms(own.posterior, encoded(rows, sizes), np.zeros(own.brute.n_classes)))
    assert found.shape == (6, own.brute.n_classes, len(sizes) + 1)
    for f, size in enumerate(sizes):
        n = own.brute.table(*own.rows, (f,))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_theta = np.log((n + own.brute.total / max(size, 1)) / (n.sum(axis=1, keepdims=True) + own.brute.total))
        expected = [log_theta[:, v] if v >= 0 else np.zeros(len(n)) for v in rows[:, f]]
        np.testing.assert_allclose(found[:, :, f], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(predicted(own, rows), found.sum(axis=2), rtol=0, atol=1e-12)


# -- symmetry ----------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@some
def test_a_prior_worth_a_multiple_of_rows(own):
    other = replace(own, brute=replace(own.brute, total=2.5))
    scaled = own.prior.with_hyperparameters({"alpha": 2.5}).update(own.counts())
    x = encoded(own.X, own.brute.sizes)
    np.testing.assert_allclose(terms(scaled, x, None), terms(other.posterior, x, None), rtol=0, atol=1e-12)
    twice = replace(other, brute=replace(own.brute, total=2.0), weight=2 * own.weight)
    np.testing.assert_allclose(
        terms(own.posterior.scale(2.0), x, None), terms(twice.posterior, x, None), rtol=0, atol=1e-12
    )


# -- limits ------------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_without_concentration_there_is_no_posterior():
    own = problem(total=0.0)
    assert not np.asarray(own.prior.proper()).any()
    assert np.asarray(log_evidence(own.prior, own.counts())).item() == -np.inf


def test_what_no_single_tree_has_is_refused():
    own = KINDS["two features"]
    lacking = {
        "mean": "no tables",
        "mode": "no tables",
        "program": "The tree is discrete",
        "log_odds_of_terms": "no closed form",
        "simulate": "of one tree",
    }
    for method, reason in lacking.items():
        refused(reason, getattr(own.posterior, method), error=NotImplementedError)


# -- draws -------------------------------------------------------------------------------------------


def with_missing_cells(X: np.ndarray) -> np.ndarray:
    """The first cell of the first row, the second of the second, and so on."""
    return np.where(np.arange(X.shape[1]) == np.arange(len(X))[:, None], -1, X)


def close(drawn: np.ndarray, expected: np.ndarray) -> None:
    """Means of independent draws (S, …) within 4.5 standard errors."""
    error = 4.5 * drawn.std(axis=0) / np.sqrt(len(drawn)) + 1e-12
    np.testing.assert_array_less(abs(drawn.mean(axis=0) - expected), error)


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("kind", ["three classes", "missing cells", "two features", "one feature"])
def test_drawn_arcs_are_as_probable_as_the_structures_they_belong_to(kind):
    own, n = KINDS[kind], len(KINDS[kind].brute.sizes)
    draw = jax.jit(lambda family, key: family.draw_trees(KeyVariates(key), DRAWS))
    found = Counter(map(arcs_of, np.asarray(draw(own.posterior, jax.random.key(0)))))
    expected = Counter()
    for real, share in zip(real_arcs(n), own.brute.posterior(*own.rows), strict=True):
        expected[frozenset(pair for pair, r in zip(own.brute.pairs, real, strict=True) if r)] += DRAWS * share
    assert set(found) <= set(expected)
    often = [arcs for arcs, n in expected.items() if n > 5]
    observed = [*(found[arcs] for arcs in often), sum(found[arcs] for arcs in set(found) - set(often))]
    wanted = [*(expected[arcs] for arcs in often), sum(expected[arcs] for arcs in set(expected) - set(often))]
    keep = np.array(wanted) > 0
    assert keep.sum() == 1 or stats.chisquare(np.array(observed)[keep], np.array(wanted)[keep]).pvalue > 1e-3


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("kind", ["three classes", "one feature"])
def test_draws_of_parameters_average_to_the_predictive_and_each_is_a_distribution(kind):
    own = KINDS[kind]
    draw = jax.jit(lambda family, key, x: family.draw_log_likelihood(KeyVariates(key), DRAWS, x))
    rows = np.vstack([own.brute.complete_rows(), with_missing_cells(own.X[:5])])
    drawn = np.exp(np.asarray(draw(own.posterior, jax.random.key(1), encoded(rows, own.brute.sizes))))
    close(drawn, np.exp(predicted(own, rows)))
    np.testing.assert_allclose(drawn[:, :-5].sum(axis=1), 1.0, rtol=1e-9)


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("kind", ["three classes", "one feature"])
def test_draws_given_the_row_average_to_the_predictive_with_it(kind):
    own = KINDS[kind]
    rows = np.vstack([own.X[:3], with_missing_cells(own.X[:5])])
    x, n_classes = encoded(rows, own.brute.sizes), own.brute.n_classes
    draw = jax.jit(lambda family, key, x, own: family.draw_log_likelihood(KeyVariates(key), DRAWS, x, own))
    for label in range(n_classes + 1):  # the last one: the row is in none
        of_class = np.zeros((DRAWS, 8, n_classes), bool)
        of_class[..., label : label + 1] = True
        drawn = np.exp(np.asarray(draw(own.posterior, jax.random.key(label), x, of_class)))
        close(drawn, np.exp(predicted(own, rows, None if label == n_classes else np.eye(n_classes)[label])))
