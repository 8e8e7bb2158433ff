"""Classifiers with tables="context" against the recursion over contexts, and refits."""

import itertools
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy import stats
from scipy.optimize import minimize_scalar
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.encoding import Conditional
from bayesnb.fitted import counting
from bayesnb.uncertainty.class_probabilities import RowSampler
from benchmarks.forged_files import parts, signed
from tests.analysis.test_conformal import assert_p_values, ranks
from tests.estimators.cases import state
from tests.estimators.contexts import Contexts
from tests.estimators.networks import CLASSES, DECLARED, HOLES, SIZES, X, Y, log_proba, problems, table
from tests.families.prunings import AllPrunings
from tests.raises import refused
from tests.strategies import counted
from tests.tables import margins_and_dependences

PARENTS = {1: (0,), 3: (1, 0)}
WEIGHT = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 40)
BRUTE = Contexts([tuple(own) for own in DECLARED], PARENTS, [1.0] * 4, [1.0, 1.0], CLASSES[:2])
MAKE = {
    "network": partial(bnb.NetworkNB, PARENTS, tables="context"),
    "tan": partial(bnb.TAN, tables="context"),
    "tan by evidence": partial(bnb.TAN, "evidence", tables="context"),
    "spode": partial(bnb.SPODE, 2, tables="context"),
    "aode": partial(bnb.AODE, tables="context"),
    "kdb": partial(bnb.KDB, 2, 3),
}
every = pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
POSTERIOR = {name: make for name, make in MAKE.items() if name != "aode"}
with_posterior = pytest.mark.parametrize("make", POSTERIOR.values(), ids=POSTERIOR)


@cache
def fitted():
    return MAKE["network"](categories=DECLARED).fit(HOLES, Y, WEIGHT)


def brute_of(nb):
    """The network of a fitted classifier; of columns that it leaves out nothing is said."""
    names, found = [str(j) for j in range(4)], {}
    for name, own in nb.parents_.items():
        found[int(name)] = tuple(map(names.index, () if own is None else (own,) if isinstance(own, str) else own))
    return Contexts(BRUTE.levels, found, BRUTE.alpha, BRUTE.class_alpha, BRUTE.classes)


# -- the recursion -----------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@settings(max_examples=10)
@given(problems(missing=True))
def test_random_networks_equal_the_recursion(problem):
    brute = Contexts.like(problem.brute)
    nb = bnb.NetworkNB(brute.parents, tables="context", **problem.options)
    nb.partial_fit(problem.X, problem.y, CLASSES, problem.weight)
    counts = brute.tables(problem.X, problem.y, problem.weight)
    assert nb.log_evidence_ == pytest.approx(brute.evidence(counts), abs=1e-10)
    rows = np.vstack([problem.X, problem.brute.complete_rows()[:9], np.full((1, 4), None)])
    expected = brute.log_joints(counts, rows)
    np.testing.assert_allclose(nb.predict_joint_log_proba(rows), expected, rtol=0, atol=1e-10)
    found, each = bnb.loo(nb, problem.X, problem.y, problem.weight), np.arange(len(problem.y))
    rest = [(problem.X[each != i], problem.y[each != i], problem.weight[each != i]) for i in each]
    without = np.array([brute.log_joints(brute.tables(*rest[i]), problem.X[i : i + 1])[0] for i in each])
    np.testing.assert_allclose(found.log_proba, log_proba(without), rtol=0, atol=1e-10)
    at = [CLASSES.index(label) for label in problem.y]
    np.testing.assert_allclose(found.row_pointwise, without[each, at], rtol=0, atol=1e-10)


@pytest.mark.slow("compiles kernels of its own")
@settings(max_examples=10)
@given(problems(missing=True, parents={}))
def test_aode_is_the_average_of_spodes_by_the_recursion(problem):
    nb = bnb.AODE(tables="context", **problem.options).partial_fit(problem.X, problem.y, CLASSES, problem.weight)

    def log_joint(X, y, weight, row):
        brute, scores = problem.brute, []
        votes = [p for p, value in enumerate(row) if value is not None and weight[X[:, p] == value].sum() >= 1]
        for parents in [{j: (p,) for j in range(4) if j != p} for p in votes] or [{}]:
            member = Contexts(brute.levels, parents, brute.alpha, brute.class_alpha, brute.classes)
            scores.append(member.log_joints(member.tables(X, y, weight), [row])[0])
        return np.logaddexp.reduce(scores) - np.log(len(scores))

    rows = np.vstack([problem.X, problem.brute.complete_rows()[:6], np.full((1, 4), None)])
    whole = problem.X, problem.y, problem.weight
    expected = [log_joint(*whole, row) for row in rows]
    np.testing.assert_allclose(nb.predict_joint_log_proba(rows), expected, rtol=0, atol=1e-10)
    found, each = bnb.loo(nb, *whole), np.arange(len(problem.y))
    without = [log_joint(*(part[each != i] for part in whole), problem.X[i]) for i in each]
    np.testing.assert_allclose(found.log_proba, log_proba(np.array(without)), rtol=0, atol=1e-10)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@with_posterior
def test_every_structure_is_scored_by_the_recursion(make):
    nb = make(categories=DECLARED).fit(HOLES, Y, WEIGHT)
    brute = brute_of(nb)
    left_out = [j for j in range(4) if str(j) not in nb.parents_]
    rows, new = (np.where(np.isin(np.arange(4), left_out), None, own) for own in (HOLES, np.vstack([X[:6], HOLES[:6]])))
    counts = brute.tables(rows, Y, WEIGHT)
    np.testing.assert_allclose(nb.predict_joint_log_proba(new), brute.log_joints(counts, new), rtol=0, atol=1e-10)
    assert nb.log_evidence_ == pytest.approx(brute.evidence(counts), abs=1e-10)


@pytest.mark.filterwarnings("ignore:2 cells of 2 columns with levels:UserWarning")
def test_values_that_never_occurred_are_missing_or_refused():
    strange = X.copy()
    strange[0, 0], strange[1, 3] = "z", "z"
    nb = fitted()
    np.testing.assert_allclose(
        nb.predict_proba(strange), nb.predict_proba(np.where(strange == "z", None, strange)), rtol=1e-12
    )
    refused("'z'", MAKE["network"](categories=DECLARED, handle_unknown="error").fit(X, Y).predict, strange)


@pytest.mark.slow("compiles kernels of its own")
def test_a_class_without_rows_and_columns_without_cells():
    rows = HOLES.copy()
    rows[:, 1] = None
    nb = MAKE["network"](categories=DECLARED).partial_fit(rows, Y, CLASSES)
    brute = Contexts(BRUTE.levels, PARENTS, BRUTE.alpha, [1.0] * 3, CLASSES)
    expected = brute.log_joints(brute.tables(rows, Y, np.ones(40)), X[:6])
    np.testing.assert_allclose(nb.predict_joint_log_proba(X[:6]), expected, rtol=0, atol=1e-10)
    unknown = MAKE["network"]().fit(rows, Y)
    assert unknown.categories_[1].size == 0
    brute = replace(BRUTE, levels=[BRUTE.levels[0], (), *BRUTE.levels[2:]])
    expected = brute.log_joints(brute.tables(rows, Y, np.ones(40)), rows[:6])
    np.testing.assert_allclose(unknown.predict_joint_log_proba(rows[:6]), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(unknown.partial_fit(X, Y).predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)


# -- batches -----------------------------------------------------------------------------------------


def test_tables_of_contexts_and_full_ones_do_not_merge():
    full, context = (bnb.NetworkNB(PARENTS, tables=tables).fit(X, Y) for tables in ("full", "context"))
    refused(r".+", counting.merge, counted(full), counted(context))


# -- the posterior -----------------------------------------------------------------------------------


def of_column(c, j):
    counts = BRUTE.tables(HOLES, Y, WEIGHT)[c, j]
    return AllPrunings(counts, 1.0 / counts.shape[-1])


def place(value):
    """Position of a level, and of the values of parents."""
    level, given = (value.level, [v for _, v in value.given]) if isinstance(value, Conditional) else (value, [])
    return level, given


@pytest.mark.slow("compiles kernels of its own")
def test_parameters_are_mixtures_over_all_prunings():
    found = bnb.parameter_table(fitted(), prob=0.8)
    assert not found[["mean", "sd", "lower", "upper", "count"]].isna().any(axis=None)
    shares = found[found["feature"] != "(class)"]
    assert len(shares) == 2 * sum(of_column("ash", j).count.size for j in range(4))
    for _, line in shares.iterrows():
        j, (level, given_values) = int(line["feature"]), place(line["level"])
        own = [*(DECLARED[p] for p in PARENTS.get(j, ())), DECLARED[j]]
        at = [
            values.index(v) if v in values else len(values)
            for v, values in zip([*given_values, level], own, strict=True)
        ]
        brute, cell = of_column(line["class"], j), tuple(at)
        np.testing.assert_allclose([line["mean"], line["sd"]], [brute.mean()[cell], brute.variance()[cell] ** 0.5])
        a, total = (v[(slice(None), *cell)] for v in brute.posteriors())
        below = [brute.weight() @ stats.beta.cdf(line[name], a, total - a) for name in ("lower", "upper")]
        np.testing.assert_allclose(below, [0.1, 0.9], rtol=0, atol=1e-6)


def test_tables_of_contexts_say_which_prunings_are_probable():
    found = bnb.context_table(fitted())
    for _, line in found.iterrows():
        j, own = int(line["feature"]), dict(pair.split("=") for pair in line["context"].split(", ") if pair)
        values = [(p, own[str(p)]) for p in PARENTS[j][: line["parents"]]]
        context = tuple(DECLARED[p].index(v) if v in DECLARED[p] else len(DECLARED[p]) for p, v in values)
        brute = of_column(line["class"], j)
        assert line["rows"] == pytest.approx(brute.of_context(context).sum())
        last, reached = 0.0, 0.0
        for weight, pruning in zip(brute.weight(), brute.each, strict=True):
            last += weight * (context in pruning)
            reached += weight * any(other[: len(context)] == context for other in pruning)
        np.testing.assert_allclose([line["last"], line["reached"]], [last, reached], rtol=0, atol=1e-10)
    refused("no tables of contexts", bnb.context_table, bnb.CategoricalNB().fit(X, Y))
    refused("no column 'z'", bnb.context_table, fitted(), ["z"])


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("method", ["moments", "draws"])
def test_law_9_the_average_given_the_row_is_the_prediction(method):
    rows = np.vstack([X[:6], HOLES[:6]])
    sampler = RowSampler(method, "row", 4000, 0)
    drawn = sampler.map(fitted().fitted_, rows, lambda log_p, _: np.exp(log_p).transpose(1, 0, 2))
    error = 4.5 * drawn.std(axis=1) / np.sqrt(4000)
    slack = 0.01 if method == "moments" else 1e-9
    np.testing.assert_array_less(abs(drawn.mean(axis=1) - fitted().predict_proba(rows)), error + slack)


@pytest.mark.slow("compiles kernels of its own")
def test_log_odds_and_their_parts_are_sums_of_cumulants():
    nb, rows = fitted(), np.vstack([X[:5], HOLES[:5]])
    found = bnb.explain(nb, rows, CLASSES[0], CLASSES[1])
    mean, sd = bnb.log_odds_moments(nb, rows, CLASSES[1])
    counts = BRUTE.tables(HOLES, Y, WEIGHT)
    stated, expected = np.zeros(len(rows)), np.zeros((len(rows), 2))
    for c, sign in zip(CLASSES[:2], (1, -1), strict=True):
        for (i, row), j in itertools.product(enumerate(rows), range(4)):
            if row[j] is not None:
                stated[i] += sign * BRUTE.log_cell(counts, c, row, j)
                kappa = [k[BRUTE.cell(row, j)] for k in of_column(c, j).cumulants()]
                expected[i] += sign * kappa[0], kappa[1]
    columns, of_class = found[found["feature"] != "(class)"].groupby("row"), found[found["feature"] == "(class)"]
    np.testing.assert_allclose(columns["contribution"].sum(), stated, rtol=0, atol=1e-10)
    np.testing.assert_allclose(columns["sd"].agg(lambda sd: (sd**2).sum()), expected[:, 1], rtol=1e-9)
    np.testing.assert_allclose(np.diff(mean[:, 0] - expected[:, 0]), 0.0, rtol=0, atol=1e-10)
    np.testing.assert_allclose(sd[:, 0] ** 2 - expected[:, 1], of_class["sd"] ** 2, rtol=1e-9)


@pytest.mark.slow("compiles kernels of its own")
def test_variables_given_others_are_those_of_the_table_of_complete_rows():
    nb = fitted()
    rows = np.array(list(itertools.product(*DECLARED)), object)
    joint = np.exp(BRUTE.log_joints(BRUTE.tables(HOLES, Y, WEIGHT), rows)).reshape(*SIZES, 2)
    np.testing.assert_allclose(nb.predict_joint_log_proba(rows), np.log(joint.reshape(-1, 2)), rtol=0, atol=1e-10)
    given = {str(j): "v" for j in range(4)}
    np.testing.assert_allclose(nb.query("(class)", given), nb.predict_proba([list("vvvv")])[0], rtol=1e-12)
    joint = joint / joint.sum()
    np.testing.assert_allclose(nb.query(["3", "(class)"]).to_numpy(), joint.sum(axis=(0, 1, 2)).ravel(), rtol=1e-10)
    found = nb.query("1", {"3": "w", "(class)": "elm"})
    expected = joint[:, :, :, 2, 1].sum(axis=(0, 2))
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-10)


# -- strength of the prior ---------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("by", ["loo", "evidence"])
@pytest.mark.parametrize("kind", ["network", "tan by evidence"])
def test_its_strength_is_the_best_of_refits(kind, by):
    nb = MAKE[kind](categories=DECLARED).fit(HOLES, Y, WEIGHT)
    found = bnb.tune_alpha(nb, HOLES, Y, by=by, sample_weight=WEIGHT)
    blank = bnb.NetworkNB(nb.parents_, tables="context", categories=DECLARED)

    def loss(log_alpha):
        refit = blank.set_params(alpha=np.exp(log_alpha)).fit(HOLES, Y, WEIGHT)
        return -(refit.log_evidence_ if by == "evidence" else bnb.loo(refit, HOLES, Y, WEIGHT).elpd)

    best = minimize_scalar(loss, bounds=np.log([1.0, 1000]), method="bounded", options={"xatol": 1e-6})
    assert found.objective == pytest.approx(-best.fun, rel=1e-7)
    assert found.alpha == pytest.approx(np.exp(best.x), rel=2e-3)
    assert found.estimator.parents_ == nb.parents_


# -- weights and sets --------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@every
@pytest.mark.parametrize("weights", ["feature", "temperature"])
def test_weights_of_terms(make, weights):
    nb = bnb.WeightedNB(make(categories=DECLARED), weights).fit(HOLES, Y, WEIGHT)
    base = nb.estimator_
    left_out = bnb.loo_terms(base, HOLES, Y, WEIGHT)
    loo = bnb.loo(base, HOLES, Y, WEIGHT)
    if not isinstance(base, bnb.AODE):
        np.testing.assert_allclose(log_proba(left_out.joint()), loo.log_proba, rtol=0, atol=1e-10)
        # Tables given the class alone have the same α for all levels together; margins are naive Bayes.
        roots = bnb.CategoricalNB(alpha=[1 / len(own) for own in DECLARED], categories=DECLARED)
        margins = bnb.CategoricalNB(categories=DECLARED)
        scores = margins_and_dependences(nb, HOLES, *(one.fit(HOLES, Y, WEIGHT) for one in (margins, roots)))
        joint = nb.class_bias_ + scores.log_class_prior + np.einsum("nct,t->nc", scores.values, nb.weight_)
        np.testing.assert_allclose(nb.predict_log_proba(HOLES), log_proba(joint), rtol=0, atol=1e-9)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("rows", [X, HOLES], ids=["complete", "missing"])
@pytest.mark.parametrize("by_class", [False, True])
def test_conformal_p_values_are_those_of_refits(rows, by_class):
    labels = np.array(CLASSES)[np.arange(11) % 3]
    nb = MAKE["network"](categories=DECLARED).fit(rows[:11], labels)
    brute = Contexts(BRUTE.levels, PARENTS, BRUTE.alpha, [1.0] * 3, CLASSES)

    def joint_of(label, weight, i):
        return brute.log_joints(brute.tables(rows[:12], np.append(labels, label), weight), rows[i : i + 1])[0]

    counts = rows[:11], labels, np.ones(11)
    assert_p_values(ranks(joint_of, labels, np.ones(11), by_class), nb, counts, rows[11:12], by_class)


@pytest.mark.slow("compiles kernels of its own")
def test_fractional_weights_leave_no_missing_parent_where_none_is(tmp_path):
    """The count of missing cells is a difference of sums, which may not round to a positive number."""
    rows, labels = table(300, 0)
    weight = np.random.default_rng(0).choice([0.1, 0.3, 0.7], 300)
    nb = MAKE["aode"]().fit(rows, labels, weight)
    for member in nb.members_:
        parent = int(member.parent)
        alone = bnb.SPODE(parent, tables="context").fit(rows, labels, weight).statistics_.blocks[0].count
        np.testing.assert_array_equal(member.statistics_.blocks[0].count == 0, alone == 0)
        np.testing.assert_allclose(member.statistics_.blocks[0].count, alone, rtol=1e-12)
    bnb.save(nb, tmp_path / "model")
    np.testing.assert_array_equal(bnb.load(tmp_path / "model").predict_proba(rows), nb.predict_proba(rows))


# -- columns of numbers ------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_numbers_that_are_cut_are_levels():
    size = np.random.default_rng(3).normal(size=40) + 3.0 * (X[:, 1] == "u")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(size=size)
    # Where numbers take part: log p(x | c) + log p(cell | c, parents) - log p(cell | c).
    nb = bnb.NetworkNB({"size": ["b", "a"]}, tables="context", numbers="binned").fit(frame, Y)
    cut = frame.assign(size=np.searchsorted(nb.edges_["size"], size, side="left").astype(str))
    cells = [str(i) for i in range(len(nb.edges_["size"]) + 1)]
    levels = [nb.categories_[j].tolist() for j in range(4)] + [cells]
    other = bnb.NetworkNB({"size": ["b", "a"]}, tables="context", categories=levels).fit(cut, Y)
    alone = bnb.CategoricalNB(alpha=1 / len(cells), categories=[cells]).fit(cut[["size"]], Y)
    margin = bnb.MixedNB().fit(frame[["size"]], Y)
    expected = [one.predict_joint_log_proba(rows) for one, rows in ((other, cut), (margin, frame[["size"]]))]
    expected = sum(expected) - alone.predict_joint_log_proba(cut[["size"]])
    np.testing.assert_allclose(nb.predict_joint_log_proba(frame), expected, rtol=0, atol=1e-10)


# -- files and refusals ------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@every
def test_what_an_average_over_prunings_has_not_is_refused_and_nothing_is_changed(make):
    nb, error = make(categories=DECLARED).fit(X, Y), NotImplementedError
    before = state(nb)
    refused("full tables|members_", bnb.run_nuts, nb, draws=5, chains=1, progress=False, error=error)
    refused("full tables|average has none", bnb.fit_em, clone(nb), X[:20], Y[:20], X[20:], error=error)
    refused(
        "full tables|average has none", bnb.NaiveBayesMixture(2, estimator=clone(nb)).fit, X, error=(error, ValueError)
    )
    for alpha, says in (
        (0.0, "alpha contains 0"),
        ([1.0, 0.0, 1.0, 1.0], "alpha contains 0"),
        (-1.0, "alpha"),
        ("a", "alpha='a'"),
    ):
        refused(says, nb.set_params(alpha=alpha).fit, HOLES, Y)
    for alpha in (np.ones((2, 10)), [np.ones(2), np.ones(3), np.ones(2), np.ones(3)], np.ones(3)):
        refused("shape|array|numbers|alpha", nb.set_params(alpha=alpha).fit, HOLES, Y)
    assert state(nb.set_params(alpha=1.0)) == before


@pytest.mark.slow("compiles kernels of its own")
def test_bayes_factors_and_estimates_against_full_tables():
    context, full = (bnb.NetworkNB(PARENTS, tables=kind, categories=DECLARED).fit(X, Y) for kind in ("context", "full"))
    expected = context.log_evidence_ - full.log_evidence_
    assert bnb.bayes_factor(context, full).log == pytest.approx(expected, abs=1e-10)
    for nb in (context, full):
        nb.set_params(estimate="mle")
    np.testing.assert_allclose(context.predict_proba(X), full.predict_proba(X), rtol=1e-12)
    best = np.zeros((40, 2))
    for (i, row), (c, label), j in itertools.product(enumerate(X), enumerate(CLASSES[:2]), range(4)):
        counts = BRUTE.tables(X, Y, np.ones(40))[label, j]
        best[i, c] += np.log(AllPrunings(counts, 1.0 / counts.shape[-1]).mode()[BRUTE.cell(row, j)])
    np.testing.assert_allclose(context.set_params(estimate="map").predict_proba(X), np.exp(log_proba(best)), rtol=1e-9)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.filterwarnings("error")
def test_a_column_that_a_class_never_had_is_no_reason_for_a_warning():
    rows = np.where((np.arange(4) == 1) & (Y == "elm")[:, None], None, X)
    nb = MAKE["network"]().fit(rows, Y)
    cells = bnb.explain(nb, X[:1], "elm", "ash")
    assert np.isfinite(cells["contribution"]).all()


def test_files_with_a_prior_and_forged_ones(tmp_path):
    path = tmp_path / "model"
    nb = clone(fitted()).set_params(prior=fitted().prior_).fit(HOLES, Y)
    bnb.save(nb, path)
    np.testing.assert_array_equal(bnb.load(path).predict_proba(HOLES), nb.predict_proba(HOLES))
    bnb.save(fitted(), path)
    tree, arrays = parts(path.read_bytes())
    count = tree["fitted"]["statistics_"]["blocks"]["values"][0]["count"]["name"]
    path.write_bytes(signed(tree, arrays | {count: arrays[count] - 100.0}))
    refused(".", bnb.load, path, error=bnb.CorruptModelError)
    path.write_bytes(signed(tree, arrays | {count: arrays[count] + 100.0}))
    refused(".", bnb.load, path, error=bnb.CorruptModelError)
    path.write_bytes(signed(tree | {"parameters": tree["parameters"] | {"tables": "half"}}, arrays))
    refused("tables", bnb.load, path, error=bnb.CorruptModelError)
    path.write_bytes(signed(tree | {"parameters": tree["parameters"] | {"tables": "full"}}, arrays))
    refused(".", bnb.load, path, error=bnb.CorruptModelError)
