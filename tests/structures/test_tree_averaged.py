"""TreeAveragedNB against all trees one by one, refits and laws; what an average of trees cannot have, it says."""

from __future__ import annotations

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
from bayesnb import counting
from bayesnb.uncertainty.row_draws import PosteriorSampler
from tests.estimators.cases import state
from tests.families.trees import AllTrees, arcs_of, is_forest
from tests.persistence.forger import parts, signed
from tests.prediction.test_conformal import assert_p_values, ranks
from tests.refusals import refused
from tests.strategies import counted
from tests.structures.networks import CLASSES, LEVELS, log_proba, table
from tests.test_counting import Compilations

SIZES = (2, 3, 2, 3)
DECLARED = [list(LEVELS[:size]) for size in SIZES]
X, Y = table(40, 0)
WEIGHT = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 40)
HOLES = np.where(np.random.default_rng(2).random(X.shape) < 0.15, None, X)
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


@pytest.mark.slow("compiles kernels of its own")
def test_the_evidence_is_a_product_of_predictions():
    nb = bnb.TreeAveragedNB(categories=DECLARED, alpha=2.0).partial_fit(X[:1], Y[:1], CLASSES[:2])
    assert nb.log_evidence_ == pytest.approx(np.log(1 / 2) - sum(map(np.log, SIZES)), abs=1e-10)
    total = nb.log_evidence_
    for i in range(1, 12):
        total += nb.predict_joint_log_proba(X[i : i + 1])[0, CLASSES.index(Y[i])]
        nb.partial_fit(X[i : i + 1], Y[i : i + 1])
    assert nb.log_evidence_ == pytest.approx(total, abs=1e-10)


@pytest.mark.slow("compiles kernels of its own")
def test_names_of_columns_and_terms():
    nb = bnb.TreeAveragedNB().fit(pd.DataFrame(X, columns=list("abcd")), Y)
    found = nb.arc_probability_
    assert list(found.index) == list(found.columns) == list("abcd")
    scores = bnb.terms(nb, pd.DataFrame(X, columns=list("abcd")))
    assert list(scores.names) == [*"abcd", "(arcs)"]
    joint = nb.predict_joint_log_proba(pd.DataFrame(X, columns=list("abcd")))
    np.testing.assert_allclose(scores.values.sum(axis=2) + scores.log_class_prior, joint, rtol=0, atol=1e-11)


@either
def test_a_row_of_nothing_has_the_class_prior(rows):
    nb = fitted(rows is HOLES)
    of_class = np.array([WEIGHT[c == Y].sum() + 1 for c in CLASSES[:2]])
    found = nb.predict_proba(np.full((40, 4), None))
    np.testing.assert_allclose(found, [of_class / of_class.sum()] * 40, rtol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_one_column_is_naive_bayes():
    nb, naive = bnb.TreeAveragedNB().fit(X[:, :1], Y), bnb.CategoricalNB(alpha=0.5).fit(X[:, :1], Y)
    np.testing.assert_allclose(nb.predict_proba(X[:, :1]), naive.predict_proba(X[:, :1]), rtol=1e-12)
    assert nb.log_evidence_ == pytest.approx(naive.log_evidence_, rel=1e-12)
    assert nb.arc_probability_.to_numpy() == 0
    np.testing.assert_array_equal(nb.draw_trees(3), -np.ones((3, 1)))
    assert bnb.loo(nb, X[:, :1], Y).elpd == pytest.approx(bnb.loo(naive, X[:, :1], Y).elpd, rel=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_a_class_without_rows_and_a_column_without_cells():
    rows = X.copy()
    rows[:, 1] = None
    nb = bnb.TreeAveragedNB(categories=DECLARED).partial_fit(rows, Y, CLASSES)
    expected = log_joint(rows, Y, np.ones(40), X[:6], CLASSES)
    np.testing.assert_allclose(nb.predict_joint_log_proba(X[:6]), expected, rtol=0, atol=1e-10)
    unknown = bnb.TreeAveragedNB().fit(rows, Y)
    assert unknown.categories_[1].size == 0
    refused(
        r"missing on the arcs to \['1'\]",
        getattr,
        unknown,
        "log_evidence_",
        error=NotImplementedError,
    )
    assert (unknown.arc_probability_["1"].drop("1") > 0).all()  # nothing is known of it
    np.testing.assert_allclose(unknown.predict_proba(rows[:6]).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(
        unknown.predict_joint_log_proba(rows[:6]), log_joint(rows, Y, np.ones(40), rows[:6]), rtol=0, atol=1e-10
    )


# -- batches -----------------------------------------------------------------------------------------


def stream():
    """Three chunks; the second brings a level, the third a class and a level."""
    rows, labels = table(48, 4, n_classes=3)
    rows[:16][rows[:16] == "w"] = "v"
    labels[:32][labels[:32] == "oak"] = "elm"
    rows[5, 2], rows[40, 0] = None, "z"
    return [(rows[a:b], labels[a:b]) for a, b in itertools.pairwise((0, 16, 32, 48))]


def same(nb, other, rows):
    assert [v.tolist() for v in nb.categories_] == [v.tolist() for v in other.categories_]
    assert nb.classes_.tolist() == other.classes_.tolist()
    np.testing.assert_array_equal(nb.statistics_.blocks[0].count, other.statistics_.blocks[0].count)
    np.testing.assert_allclose(nb.predict_log_proba(rows), other.predict_log_proba(rows), rtol=0, atol=1e-11)


@pytest.mark.slow("compiles kernels of its own")
def test_chunks_streams_and_merging_make_the_whole_and_forgetting_undoes_them():
    chunks, make = stream(), bnb.TreeAveragedNB
    rows, labels = (np.concatenate(part) for part in zip(*chunks, strict=True))
    whole, nb = make().fit(rows, labels), make()
    for chunk in chunks:
        nb.partial_fit(*chunk, classes=np.unique(chunk[1]))
    same(nb, whole, rows)
    same(bnb.fit_stream(make(), chunks, progress=False), whole, rows)
    a, b, c = (counted(make().fit(*chunk)) for chunk in chunks)
    merged = make()
    merged.encoding_, merged.statistics_ = counting.merge(c, counting.merge(a, b))
    merged.n_features_in_ = 4
    same(merged, whole, rows)
    nb.forget(*chunks[2])
    declared = make(categories=[v.tolist() for v in whole.categories_])
    for chunk in chunks[:2]:
        declared.partial_fit(*chunk, classes=whole.classes_)
    same(nb, declared, rows)


def test_weights_are_rows_and_decay_is_weights():
    some = np.arange(20)
    np.testing.assert_allclose(
        bnb.TreeAveragedNB().fit(X[some], Y[some], np.full(20, 3.0)).predict_proba(X[some]),
        bnb.TreeAveragedNB().fit(X[some.repeat(3)], Y[some.repeat(3)]).predict_proba(X[some]),
        rtol=1e-12,
    )
    faded = bnb.TreeAveragedNB().fit(X, Y).decay(0.5).predict_proba(X)
    np.testing.assert_allclose(faded, bnb.TreeAveragedNB().fit(X, Y, np.full(40, 0.5)).predict_proba(X), rtol=1e-12)


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


@pytest.mark.slow("compiles kernels of its own")
def test_files_and_forged_ones(tmp_path):
    nb, path = fitted(missing=True), tmp_path / "model"
    nb = clone(nb).set_params(prior=nb.prior_).fit(HOLES, Y)
    bnb.save(nb, path)
    loaded = bnb.load(path)
    np.testing.assert_array_equal(loaded.predict_proba(HOLES), nb.predict_proba(HOLES))
    np.testing.assert_array_equal(loaded.arc_probability_, nb.arc_probability_)
    tree, arrays = parts(path.read_bytes())
    count = tree["fitted"]["statistics_"]["blocks"]["values"][0]["count"]["name"]
    more = arrays | {count: arrays[count] + 100.0 * (np.arange(47) == 46)}
    path.write_bytes(signed(tree, more))
    refused("contradicts the cells", bnb.load, path, error=bnb.CorruptModelError)
    nodes = tree["fitted"]["encoding_"]["blocks"]["values"][0]["nodes"]["values"]
    nodes[-1], nodes[-2] = nodes[-2], nodes[-1]
    path.write_bytes(signed(tree, arrays))
    refused("not that of all pairs", bnb.load, path, error=bnb.CorruptModelError)


@pytest.mark.slow("compiles kernels of its own")
def test_other_numbers_of_rows_compile_nothing():
    rows, labels = table(130, 7)
    nb = bnb.TreeAveragedNB().fit(rows, labels)

    def work(n):
        nb.partial_fit(rows[:n], labels[:n])
        nb.predict_proba(rows[:n])
        nb.forget(rows[:n], labels[:n])
        bnb.loo(nb, rows, labels)
        return nb.arc_probability_, nb.log_evidence_, nb.draw_trees(4), bnb.predict_interval(nb, rows, draws=4)

    for n in (17, 64, 20):
        work(n)
    with Compilations() as compiled:
        for n in (18, 33, 63):
            work(n)
    assert compiled.names == []


# -- numbers -----------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_gaussian_columns_are_a_factor():
    size = np.random.default_rng(3).normal(size=(40, 2)) + (Y == "ash")[:, None]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(size=size[:, 0], age=size[:, 1])
    nb = bnb.TreeAveragedNB(numbers="gaussian").fit(frame, Y)
    trees, normal = bnb.TreeAveragedNB().fit(X, Y), bnb.GaussianNB(prior="within").fit(size, Y)
    prior = np.log(trees.class_count_ + 1) - np.log(42)
    expected = trees.predict_joint_log_proba(X) + normal.predict_joint_log_proba(size) - prior
    np.testing.assert_allclose(nb.predict_joint_log_proba(frame), expected, rtol=0, atol=1e-10)
    assert list(nb.arc_probability_.columns) == list("abcd")
    np.testing.assert_allclose(nb.arc_probability_, trees.arc_probability_, rtol=0, atol=1e-12)


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


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.filterwarnings("ignore:TreeAveragedNB. no column is categorical:UserWarning")
def test_numbers_only_are_naive_bayes():
    size = np.random.default_rng(3).normal(size=(40, 2))
    nb, normal = bnb.TreeAveragedNB(numbers="gaussian").fit(size, Y), bnb.GaussianNB(prior="within").fit(size, Y)
    np.testing.assert_allclose(nb.predict_proba(size), normal.predict_proba(size), rtol=1e-12)
    assert nb.arc_probability_.shape == (0, 0)
    assert nb.draw_trees(5).shape == (5, 0)


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
    sampler = PosteriorSampler("draws", given, 4000, 0)
    drawn = sampler.map(nb.fitted_, rows, lambda log_p, _: np.exp(log_p).transpose(1, 0, 2))
    expected = nb.predict_proba(rows)
    error = 4.5 * drawn.std(axis=1) / np.sqrt(4000)
    np.testing.assert_array_less(abs(drawn.mean(axis=1) - expected), error + (0.05 if given == "data" else 1e-9))


@pytest.mark.slow("simulates many data sets or draws")
def test_intervals_and_entropies_are_those_of_draws():
    nb = fitted()
    lower, upper = bnb.predict_interval(nb, X[:6], prob=0.8, draws=2000, seed=1)
    sampler = PosteriorSampler("draws", "row", 2000, 1)
    drawn = sampler.map(nb.fitted_, X[:6], lambda log_p, _: np.exp(log_p).transpose(1, 0, 2))
    np.testing.assert_allclose([lower, upper], np.quantile(drawn, [0.1, 0.9], axis=1), rtol=0, atol=0.02)
    entropy = -(drawn * np.log(drawn)).sum(axis=2).mean(axis=1)
    found = bnb.decompose_uncertainty(nb, X[:6], draws=2000, seed=1)
    np.testing.assert_allclose(found["aleatoric"], entropy, rtol=0, atol=0.02)
    assert (found["epistemic"] > 0).all()


@pytest.mark.slow("simulates many data sets or draws")
def test_draws_of_some_features_are_columns_of_the_draws_of_all():
    everything, some = (bnb.posterior_draws(fitted(), 5, seed=1, features=f)["theta"] for f in (None, ["1"]))
    assert some.shape[-1] < everything.shape[-1]
    assert np.isin(some, everything).all()


def test_posterior_draws_have_trees_and_parameters():
    nb = fitted()
    drawn = bnb.posterior_draws(nb, 4000, seed=0)
    alone = drawn["theta"][..., : sum(SIZES)]
    n = AllTrees(SIZES, 2).table(codes(X), np.searchsorted(CLASSES[:2], Y), WEIGHT, (1,)) + 1 / 3
    mean, total = n / n.sum(axis=1, keepdims=True), n.sum(axis=1, keepdims=True)
    error = 5 * np.sqrt(mean * (1 - mean) / (total + 1) / 4000)
    np.testing.assert_array_less(abs(alone[..., 2:5].mean(axis=0) - mean), error)


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


@pytest.mark.slow("compiles kernels of its own")
def test_sensitivity_to_the_prior_is_that_of_refits():
    def log_odds(alpha):
        proba = bnb.TreeAveragedNB(alpha).fit(X, Y).predict_proba(X[:8]).max(axis=1)
        return np.log(proba / (1 - proba))

    found = bnb.prior_sensitivity(bnb.TreeAveragedNB().fit(X, Y), X[:8])
    slope = (log_odds(np.exp(1e-4)) - log_odds(np.exp(-1e-4))) / 2e-4
    np.testing.assert_allclose(found["d_logit_d_log_alpha"], slope, rtol=0, atol=1e-6)


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


@pytest.mark.slow("compiles kernels of its own")
def test_independent_columns_are_naive_bayes():
    rng, labels = np.random.default_rng(0), np.arange(3000) % 2
    rows = np.where(rng.random((3000, 30)) < 0.1, labels[:, None], rng.integers(0, 3, (3000, 30)))
    nb, naive = bnb.TreeAveragedNB().fit(rows, labels), bnb.CategoricalNB(alpha=1 / 3).fit(rows, labels)
    assert nb.arc_probability_.to_numpy().sum() < 1e-3
    np.testing.assert_allclose(nb.predict_proba(rows[:200]), naive.predict_proba(rows[:200]), rtol=0, atol=1e-3)


# -- refusals ----------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_what_an_average_of_trees_has_not_is_refused_and_nothing_is_changed():
    nb, holes = clone(fitted()).fit(X, Y), fitted(missing=True)
    before, error = state(nb), NotImplementedError
    refused("arc_probability_", getattr, nb, "parents_", error=error)
    refused("one network", nb.query, "0", error=error)
    refused("no tables", bnb.parameter_table, nb, error=error)
    refused("no closed form", bnb.explain, nb, X[:2], error=error)
    refused("share parameters", bnb.log_odds_moments, nb, X[:2], error=error)
    refused("no tables", bnb.compare_estimates, nb, X, Y, X, Y, error=error)
    refused("not simulated", bnb.prior_predictive, nb, 10, error=error)
    refused("NUTS does not sample it", bnb.run_nuts, nb, draws=10, error=error)
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
    ("alpha", "match"), [(0, "alpha is 0"), ([1.0] * 4, "takes? one number"), ("a", "alpha='a'"), (-1, "alpha is -1")]
)
def test_priors_that_are_none(alpha, match):
    nb = bnb.TreeAveragedNB().fit(X, Y)
    before = state(nb)
    refused(match, nb.set_params(alpha=alpha).fit, HOLES, Y)
    assert state(nb.set_params(alpha=1.0)) == before


@pytest.mark.slow("compiles kernels of its own")
def test_a_column_of_too_many_levels_is_refused():
    wide, labels = np.stack([np.arange(200_000), np.arange(200_000) % 150_000], axis=1), np.arange(200_000) % 2
    refused(
        "combinations of levels in 2 classes would take .* leave out columns", bnb.TreeAveragedNB().fit, wide, labels
    )


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
    for own, says in ((turned, "another structure"), (without, "zeros"), (nb.posterior_.blocks[0], "no posterior")):
        prior = replace(nb.prior_, blocks=(own,))
        refused(says, clone(nb).set_params(prior=prior).fit, X, Y)
