"""TreeAveragedNB against an enumeration of all trees, refits and laws."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.uncertainty.class_probabilities import RowSampler
from tests.analysis.test_conformal import assert_p_values, ranks
from tests.estimators.cases import state
from tests.estimators.networks import CLASSES, DECLARED, HOLES, LEVELS, SIZES, X, Y, log_proba
from tests.families.trees import AllTrees, arcs_of, is_forest
from tests.raises import refused

WEIGHT = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 40)
either = pytest.mark.parametrize("rows", [X, HOLES], ids=["complete", "missing"])


def codes(rows):
    """Positions of the values among u, v, w; -1 where a cell is missing."""
    return np.array([[-1 if value is None else LEVELS.index(value) for value in row] for row in rows])


def log_joint(rows, labels, weight, new, classes=CLASSES[:2], alpha=1.0):
    """(N, C) log p(class, new row), by all trees."""
    label = np.array([classes.index(c) for c in labels], int)
    of_class = np.bincount(label, weight, len(classes)) + 1.0
    brute = AllTrees(SIZES, len(classes), alpha)
    return np.log(of_class / of_class.sum()) + brute.log_joint(codes(rows), label, weight, codes(new))


@cache
def fitted(missing=False):
    return bnb.TreeAveragedNB(categories=DECLARED).fit(HOLES if missing else X, Y, WEIGHT)


# -- all trees ---------------------------------------------------------------------------------------


@pytest.mark.slow("other variants compile kernels of their own", but="complete")
@either
def test_predictions_and_leave_one_out_equal_enumeration(rows):
    nb = fitted(rows is HOLES)
    new = np.vstack([X[:4], HOLES[:8], np.full((1, 4), None)])
    expected = log_joint(rows, Y, WEIGHT, new)
    np.testing.assert_allclose(nb.predict_joint_log_proba(new), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(nb.predict_log_proba(new), log_proba(expected), rtol=0, atol=1e-10)
    found, each = bnb.loo(nb, rows, Y, WEIGHT), np.arange(40)
    without = [log_joint(rows[each != i], Y[each != i], WEIGHT[each != i], rows[i : i + 1])[0] for i in each]
    np.testing.assert_allclose(found.log_proba, log_proba(np.array(without)), rtol=0, atol=1e-10)
    own = np.array(without)[each, np.searchsorted(CLASSES[:2], Y)]
    np.testing.assert_allclose(found.row_pointwise, own, rtol=0, atol=1e-10)
    refit = clone(nb).fit(rows[1:], Y[1:], WEIGHT[1:])
    np.testing.assert_allclose(found.log_proba[:1], refit.predict_log_proba(rows[:1]), rtol=0, atol=1e-10)


def test_evidence_and_arcs_equal_enumeration():
    label = np.searchsorted(CLASSES[:2], Y)
    n, brute = np.bincount(label, WEIGHT), AllTrees(SIZES, 2)
    of_classes = gammaln(n + 1).sum() + gammaln(2) - gammaln(n.sum() + 2)
    expected = of_classes + brute.log_score(codes(X), label, WEIGHT)
    assert fitted().log_evidence_ == pytest.approx(expected, abs=1e-10)
    for rows in (X, HOLES):
        found = fitted(rows is HOLES).arc_probability_
        arcs = brute.arc_probability(codes(rows), label, WEIGHT)
        np.testing.assert_allclose(found.to_numpy()[np.triu_indices(4, 1)], arcs, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(found, found.T)
        assert not np.diag(found).any()


@either
def test_a_row_of_nothing_has_the_class_prior(rows):
    nb = fitted(rows is HOLES)
    of_class = np.array([WEIGHT[c == Y].sum() + 1 for c in CLASSES[:2]])
    found = nb.predict_proba(np.full((40, 4), None))
    np.testing.assert_allclose(found, [of_class / of_class.sum()] * 40, rtol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_a_class_without_rows_and_a_column_without_cells():
    rows = X.copy()
    rows[:, 1] = None
    nb = bnb.TreeAveragedNB(categories=DECLARED).partial_fit(rows, Y, CLASSES)
    expected = log_joint(rows, Y, np.ones(40), X[:6], CLASSES)
    np.testing.assert_allclose(nb.predict_joint_log_proba(X[:6]), expected, rtol=0, atol=1e-10)
    unknown = bnb.TreeAveragedNB().fit(rows, Y)
    assert unknown.categories_[1].size == 0
    refused(r"missing on the arcs to \['1'\]", getattr, unknown, "log_evidence_", error=NotImplementedError)
    assert (unknown.arc_probability_["1"].drop("1") > 0).all()  # nothing is known of it
    np.testing.assert_allclose(unknown.predict_proba(rows[:6]).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(
        unknown.predict_joint_log_proba(rows[:6]), log_joint(rows, Y, np.ones(40), rows[:6]), rtol=0, atol=1e-10
    )


# -- batches -----------------------------------------------------------------------------------------


def test_tenths_of_rows_that_are_forgotten_leave_the_others():
    tenth = np.full(40, 0.1)
    nb = bnb.TreeAveragedNB().fit(X, Y, tenth)
    for _ in range(9):
        nb.partial_fit(X, Y, sample_weight=tenth)
    for _ in range(9):
        nb.forget(X, Y, tenth)
    nb.forget(X[3:], Y[3:], tenth[3:])
    rest = bnb.TreeAveragedNB(categories=DECLARED).partial_fit(X[:3], Y[:3], CLASSES[:2], tenth[:3])
    np.testing.assert_allclose(nb.predict_proba(X), rest.predict_proba(X), rtol=0, atol=1e-11)
    np.testing.assert_allclose(nb.statistics_.blocks[0].count, rest.statistics_.blocks[0].count, rtol=0, atol=1e-11)


# -- numbers -----------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_numbers_are_cut_into_levels():
    size = np.random.default_rng(3).normal(size=40) + 3.0 * (X[:, 1] == "u")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(size=size)
    nb = bnb.TreeAveragedNB().fit(frame, Y)
    assert list(nb.arc_probability_.columns) == [*"abcd", "size"]
    cut = frame.assign(size=np.searchsorted(nb.edges_["size"], size, side="right").astype(str))
    levels = [nb.categories_[j].tolist() for j in range(4)] + [[str(i) for i in range(len(nb.edges_["size"]) + 1)]]
    other = bnb.TreeAveragedNB(categories=levels).fit(cut, Y)
    np.testing.assert_allclose(nb.predict_proba(frame), other.predict_proba(cut), rtol=0, atol=1e-10)


# -- weights, sets, draws ----------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_weights_of_its_terms_are_those_of_its_columns_and_of_all_arcs():
    nb = bnb.WeightedNB(bnb.TreeAveragedNB(), "feature").fit(X, Y)
    assert list(nb.term_names_) == ["0", "1", "2", "3", "(arcs)"]
    scores = bnb.terms(nb.estimator_, X)
    joint = nb.weights_.class_bias + scores.log_class_prior + np.einsum("nct,t->nc", scores.values, nb.weight_)
    np.testing.assert_allclose(nb.predict_log_proba(X), log_proba(joint), rtol=0, atol=1e-10)
    left_out, each = bnb.loo_terms(nb.estimator_, X, Y), np.arange(40)
    for i in range(3):
        refit = bnb.TreeAveragedNB(categories=DECLARED).fit(X[each != i], Y[each != i])
        np.testing.assert_allclose(left_out.values[i], bnb.terms(refit, X[i : i + 1]).values[0], rtol=0, atol=1e-10)


@pytest.mark.slow("compiles kernels of its own")
@either
def test_conformal_p_values_are_those_of_refits(rows):
    nb, new = fitted(rows is HOLES), rows[11:12]
    nb = clone(nb).partial_fit(rows[:11], Y[:11], CLASSES)

    def joint_of(label, weight, i):
        some = weight > 0
        labels = np.append(Y[:11], label)
        return log_joint(rows[:12][some], labels[some], weight[some], rows[i : i + 1], CLASSES)[0]

    counts = (rows[:11], Y[:11], np.ones(11))
    assert_p_values(ranks(joint_of, Y[:11], np.ones(11)), nb, counts, new)


@pytest.mark.slow("compiles kernels of its own")
def test_drawn_trees_are_those_of_the_arcs():
    nb = fitted()
    found = nb.draw_trees(4000, seed=3)
    assert found.shape == (4000, 4)
    np.testing.assert_array_equal(found, nb.draw_trees(4000, seed=3))
    assert (found != nb.draw_trees(4000, seed=4)).any()
    arcs = [arcs_of(parent) for parent in found]
    assert all(is_forest(own, 4) for own in arcs)
    expected = nb.arc_probability_.to_numpy()
    for u, v in itertools.combinations(range(4), 2):
        share, p = np.mean([(u, v) in own for own in arcs]), expected[u, v]
        assert abs(share - p) <= 4.5 * np.sqrt(p * (1 - p) / 4000) + 1e-9


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("given", ["row", "data"])
def test_law_9_the_average_given_the_row_is_the_prediction(given):
    """Given the data it is near it."""
    nb, rows = fitted(), np.vstack([X[:6], HOLES[:6]])
    sampler = RowSampler("draws", given, 4000, 0)
    drawn = sampler.map(nb.fitted_, rows, lambda log_p, _: np.exp(log_p).transpose(1, 0, 2))
    expected = nb.predict_proba(rows)
    error = 4.5 * drawn.std(axis=1) / np.sqrt(4000)
    np.testing.assert_array_less(abs(drawn.mean(axis=1) - expected), error + (0.05 if given == "data" else 1e-9))


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("by", ["evidence", "loo"])
def test_its_strength_is_tuned_to_the_best_of_refits(by):
    def objective(log_alpha):
        nb = bnb.TreeAveragedNB(np.exp(log_alpha)).fit(X, Y)
        return -(nb.log_evidence_ if by == "evidence" else bnb.loo(nb, X, Y).elpd)

    found = bnb.tune_alpha(bnb.TreeAveragedNB().fit(X, Y), X, Y, by=by)
    best = minimize_scalar(objective, bounds=np.log([0.01, 100]), method="bounded", options={"xatol": 1e-6})
    assert found.objective == pytest.approx(-best.fun, rel=1e-7)
    assert found.alpha == pytest.approx(np.exp(best.x), rel=2e-3)


# -- many columns ------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_a_column_that_stands_there_thirty_times_is_heard_once():
    """Copies are alike: each arc is as probable as in a tree drawn uniformly."""
    rng, labels = np.random.default_rng(0), np.arange(3000) % 2
    one = np.where(rng.random(3000) < 0.4, labels, rng.integers(0, 3, 3000))[:, None]
    nb, naive = bnb.TreeAveragedNB().fit(one.repeat(30, 1), labels), bnb.CategoricalNB(alpha=1 / 3).fit(one, labels)
    levels = np.arange(3)[:, None]
    np.testing.assert_allclose(nb.predict_proba(levels.repeat(30, 1)), naive.predict_proba(levels), rtol=0, atol=0.01)
    np.testing.assert_allclose(nb.arc_probability_, (1 - np.eye(30)) * 2 / 30, rtol=0, atol=1e-9)


# -- refusals ----------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_what_an_average_of_trees_has_not_is_refused_and_nothing_is_changed():
    nb, holes = clone(fitted()).fit(X, Y), fitted(missing=True)
    before, error = state(nb), NotImplementedError
    refused("arc_probability_", getattr, nb, "parents_", error=error)
    refused("average of networks", nb.query, "0", error=error)
    refused("no tables", bnb.parameter_table, nb, error=error)
    refused("no closed form", bnb.explain, nb, X[:2], error=error)
    refused("share parameters", bnb.log_odds_moments, nb, X[:2], error=error)
    refused("no tables", bnb.compare_estimates, nb, X, Y, X, Y, error=error)
    refused("cannot be simulated", bnb.prior_predictive, nb, 10, error=error)
    refused("NUTS does not sample discrete", bnb.run_nuts, nb, draws=10, error=error)
    for estimate in ("mle", "map", "mean"):
        refused("no tables", nb.predict_proba, X, estimate=estimate, error=error)
    refused(r"cells are missing on the arcs to \['0'", getattr, holes, "log_evidence_", error=error)
    refused("missing on the arcs", bnb.prequential, holes, HOLES, Y, error=error)
    refused("draws", nb.draw_trees, 0)
    refused("seed", nb.draw_trees, seed=-1)
    assert state(nb) == before
    blank = bnb.TreeAveragedNB()
    refused("tables", bnb.fit_em, blank, X[:20], Y[:20], X[20:], error=error)
    assert not hasattr(blank, "classes_")


@pytest.mark.parametrize(
    ("alpha", "match"),
    [(0, "alpha contains 0"), ([1.0] * 4, "must be one number"), ("a", "alpha='a'"), (-1, "alpha is -1")],
)
def test_priors_that_are_none(alpha, match):
    nb = bnb.TreeAveragedNB().fit(X, Y)
    before = state(nb)
    refused(match, nb.set_params(alpha=alpha).fit, HOLES, Y)
    assert state(nb.set_params(alpha=1.0)) == before


def test_where_cells_were_missing_no_parameters_are_drawn():
    nb = fitted(True)
    for draw in (bnb.posterior_draws, lambda nb: bnb.predict_interval(nb, X[:2])):
        refused("tables of pairs and of their features do not agree", draw, nb, error=NotImplementedError)
    assert np.isfinite(fitted(True).predict_log_proba(HOLES)).all()


def test_a_complete_prior_is_one_over_the_same_pairs():
    nb = fitted()
    again = clone(nb).set_params(prior=nb.prior_).fit(X, Y, WEIGHT)
    np.testing.assert_array_equal(again.predict_log_proba(X), nb.predict_log_proba(X))
    family = nb.prior_.blocks[0]
    turned = replace(family, levels=family.levels[::-1])
    without = replace(family, concentration=0.0 * family.concentration)
    for own, says in (
        (turned, "another structure"),
        (without, "contains 0"),
        (nb.posterior_.blocks[0], "is not 0, so prior.blocks\\[0\\] is a posterior"),
    ):
        prior = replace(nb.prior_, blocks=(own,))
        refused(says, clone(nb).set_params(prior=prior).fit, X, Y)
