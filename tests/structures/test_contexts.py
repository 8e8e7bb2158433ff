"""Context-tree tables in classifiers, and k-dependence: against refits, a recursion of the test's own, and laws."""

from __future__ import annotations

from functools import cache, partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from sklearn.base import clone
from sklearn.metrics import mutual_info_score

import bayesnb as bnb
from bayesnb import counting
from bayesnb.estimators import kdb
from bayesnb.networks import learning
from tests.estimators.cases import state
from tests.refusals import refused
from tests.strategies import counted
from tests.structures.networks import CLASSES, LEVELS, log_proba, table

SIZES = (2, 3, 2, 3)
DECLARED = [list(LEVELS[:size]) for size in SIZES]
PARENTS = {1: [0], 3: [1, 0]}
X, Y = table(40, 0)
WEIGHT = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 40)
HOLES = np.where(np.random.default_rng(2).random(X.shape) < 0.15, None, X)
either = pytest.mark.parametrize("rows", [X, HOLES], ids=["complete", "missing"])
CONTEXT = {
    "NetworkNB": partial(bnb.NetworkNB, PARENTS, tables="context", categories=DECLARED),
    "TAN": partial(bnb.TAN, tables="context", categories=DECLARED),
    "SPODE": partial(bnb.SPODE, tables="context", categories=DECLARED),
    "KDB": partial(bnb.KDB, 2, None, categories=DECLARED),
}
all_kinds = pytest.mark.parametrize("make", CONTEXT.values(), ids=CONTEXT)


@cache
def fitted(missing=False):
    return CONTEXT["NetworkNB"]().fit(HOLES if missing else X, Y, WEIGHT)


def log_evidence(rows, weight, child, parents, alpha=1.0):
    """Of one class: P(s) = ½ B + ½ Π_v P(s v), a missing parent being a value."""
    seen = [i for i, row in enumerate(rows) if row[child] is not None]
    n = np.array([sum(weight[i] for i in seen if rows[i][child] == level) for level in DECLARED[child]])
    a = alpha / len(n)
    stop = (gammaln(a + n) - gammaln(a)).sum() + gammaln(alpha) - gammaln(alpha + n.sum())
    if not parents:
        return stop
    first, *rest = parents
    go = 0.0
    for value in (*DECLARED[first], None):
        own = [i for i in seen if rows[i][first] == value]
        go += log_evidence([rows[i] for i in own], [weight[i] for i in own], child, rest, alpha)
    return np.logaddexp(stop, go) - np.log(2)


def log_score(rows, labels, weight, parents=PARENTS):
    """log p(labels, rows)."""
    n = np.array([sum(w for w, own in zip(weight, labels, strict=True) if own == c) for c in CLASSES[:2]])
    total = gammaln(n + 1).sum() + gammaln(2) - gammaln(n.sum() + 2)
    for c in CLASSES[:2]:
        own = [i for i, label in enumerate(labels) if label == c]
        for child in range(len(SIZES)):
            of_child = [rows[i] for i in own], [weight[i] for i in own], child, parents.get(child, [])
            total += log_evidence(*of_child)
    return total


def log_joint(rows, labels, weight, new):
    """(N, C) log p(class, new row | rows), by the chain rule."""
    base = log_score(rows, labels, weight)
    more = [[log_score([*rows, x], [*labels, c], [*weight, 1.0]) for c in CLASSES[:2]] for x in new]
    return np.array(more) - base


# -- the average over contexts -----------------------------------------------------------------------


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@either
def test_predictions_evidence_and_leave_one_out_equal_the_recursion(rows):
    nb, new = fitted(rows is HOLES), [*X[:3], *HOLES[:6], np.full(4, None)]
    assert nb.log_evidence_ == pytest.approx(log_score(rows, Y, WEIGHT), abs=1e-10)
    expected = log_joint(rows, Y, WEIGHT, new)
    np.testing.assert_allclose(nb.predict_joint_log_proba(np.array(new)), expected, rtol=0, atol=1e-10)
    found, each = bnb.loo(nb, rows, Y, WEIGHT), np.arange(40)
    some = each[::7]
    without = [log_joint(rows[each != i], Y[each != i], WEIGHT[each != i], rows[i : i + 1])[0] for i in some]
    np.testing.assert_allclose(found.log_proba[some], log_proba(np.array(without)), rtol=0, atol=1e-10)


@pytest.mark.slow("a second view of what quick tests see")
@all_kinds
def test_leave_one_out_terms_are_those_of_refits(make):
    whole = make().fit(HOLES, Y, WEIGHT)
    found, each = bnb.loo_terms(whole, HOLES, Y, WEIGHT), np.arange(40)
    refit = bnb.NetworkNB(whole.parents_, tables="context", categories=DECLARED)
    for i in (0, 3):
        refit.fit(HOLES[each != i], Y[each != i], WEIGHT[each != i])
        np.testing.assert_allclose(found.joint()[i], refit.predict_joint_log_proba(HOLES[i : i + 1])[0], atol=1e-10)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@either
def test_any_chunking_and_what_is_forgotten_again_leave_the_same(rows):
    whole = bnb.NetworkNB(PARENTS, tables="context").fit(rows, Y, WEIGHT)
    parts = bnb.NetworkNB(PARENTS, tables="context")
    for a, b in pairwise([0, 5, 9, 40]):  # levels come late
        parts.partial_fit(rows[a:b], Y[a:b], CLASSES[:2], WEIGHT[a:b])
    one, other = (counting.merge(counted(nb), counted(nb)) for nb in (whole, parts))
    np.testing.assert_allclose(parts.predict_log_proba(HOLES), whole.predict_log_proba(HOLES), rtol=1e-12, atol=1e-12)
    assert parts.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-12)
    assert one.statistics.class_count.tolist() == other.statistics.class_count.tolist()
    parts.partial_fit(X[:7], Y[:7]).forget(X[:7], Y[:7])
    np.testing.assert_allclose(parts.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-12, atol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_without_parents_it_is_naive_bayes_whose_levels_share_alpha():
    nb = bnb.NetworkNB({}, tables="context", categories=DECLARED).fit(HOLES, Y, WEIGHT)
    naive = bnb.CategoricalNB(alpha=[1 / n for n in SIZES], categories=DECLARED).fit(HOLES, Y, WEIGHT)
    np.testing.assert_allclose(nb.predict_log_proba(HOLES), naive.predict_log_proba(HOLES), rtol=1e-12)
    assert nb.log_evidence_ == pytest.approx(naive.log_evidence_, rel=1e-12)
    assert nb.n_parameters_ == naive.n_parameters_


@pytest.mark.slow("compiles kernels of its own")
def test_members_of_aode_are_spodes():
    nb = bnb.AODE(tables="context", categories=DECLARED).fit(HOLES, Y, WEIGHT)
    for member in nb.members_:
        alone = bnb.SPODE(member.parent, tables="context", categories=DECLARED).fit(HOLES, Y, WEIGHT)
        np.testing.assert_allclose(
            alone.statistics_.blocks[0].count, member.statistics_.blocks[0].count, rtol=1e-12, atol=1e-12
        )
    np.testing.assert_allclose(np.exp(nb.predict_log_proba(HOLES)).sum(axis=1), 1.0)


def test_the_table_of_contexts_adds_up():
    table = bnb.context_table(fitted(True))
    assert set(table["feature"]) == {"1", "3"}
    for (label, feature), own in table.groupby(["class", "feature"]):
        at_root = own[own["parents"] == 0]
        assert at_root["reached"].tolist() == [pytest.approx(1.0)]
        c, j = np.flatnonzero(fitted(True).classes_ == label)[0], int(feature)
        seen = np.array([v is not None for v in HOLES[:, j]])
        rows = WEIGHT[(fitted(True).classes_[c] == Y) & seen].sum()
        for _, depth in own.groupby("parents"):
            assert depth["rows"].sum() == pytest.approx(rows)
        assert (own["rows"] * own["last"]).sum() == pytest.approx(rows)
    assert len(bnb.context_table(fitted(), ["3"])) < len(bnb.context_table(fitted()))
    refused("no tables of contexts", bnb.context_table, bnb.CategoricalNB().fit(X, Y))
    refused("no column 'z'", bnb.context_table, fitted(), ["z"])


@pytest.mark.slow("compiles kernels of its own")
def test_what_else_is_asked_of_it(tmp_path):
    nb = fitted()
    table = bnb.parameter_table(nb)
    assert np.isfinite(table[["mean", "sd", "lower", "upper"]].to_numpy()).all()
    assert ((table["lower"] <= table["mean"]) & (table["mean"] <= table["upper"])).mean() > 0.9
    told = bnb.explain(nb, X[:3]).groupby("row")["contribution"].sum()
    assert np.isfinite(told).all()
    lower, upper = bnb.predict_interval(nb, HOLES[:5])
    assert ((lower <= upper) & (lower >= 0) & (upper <= 1)).all()
    assert (bnb.value_of_information(nb, HOLES[:8])["value"] >= -1e-12).all()
    assert len(bnb.check_independence(nb, X, Y)) == 6
    given = {str(j): v for j, v in enumerate(X[0])}
    np.testing.assert_allclose(nb.query("(class)", given), nb.predict_proba(X[:1])[0], rtol=1e-10)
    bnb.save(nb, tmp_path / "nb.safetensors")
    same = bnb.load(tmp_path / "nb.safetensors")
    np.testing.assert_array_equal(same.predict_log_proba(HOLES), nb.predict_log_proba(HOLES))


@pytest.mark.slow("compiles kernels of its own")
def test_conformal_p_values_are_those_of_refits():
    rows, labels = HOLES[:12], Y[:12]
    nb = CONTEXT["NetworkNB"]().fit(rows, labels)
    found = bnb.conformal(nb, rows, labels).p_values(X[20:22])
    for i, x in enumerate(X[20:22]):
        for c, label in enumerate(nb.classes_):
            more, own = np.vstack([rows, x]), np.append(labels, label)
            again = clone(nb).fit(more, own)
            scores = bnb.loo(again, more, own).pointwise
            expected = np.mean(scores <= scores[-1] + 1e-9 * abs(scores[-1]))
            assert found[i, c] == pytest.approx(expected)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.filterwarnings("ignore")
def test_bad_hyperparameters_are_refused_and_change_nothing():
    for make in (bnb.NetworkNB, bnb.TAN, bnb.SPODE, bnb.AODE):
        refused("tables='half' is unknown", make(tables="half").fit, X, Y)
    nb = clone(fitted()).fit(X, Y)
    before = state(nb)
    for alpha, says in ((0.0, "has zeros"), (-1.0, "at least 0"), ([[1.0]], "of all levels of a column together")):
        nb.set_params(alpha=alpha)
        refused(says, nb.fit, X, Y)
        nb.set_params(alpha=1.0)
        assert state(nb) == before
    refused("full tables", bnb.fit_em, clone(nb), X[:20], Y[:20], X[20:], error=NotImplementedError)
    refused("tables='full'", bnb.run_nuts, nb, draws=5, chains=1, progress=False, error=NotImplementedError)


# -- k-dependence ------------------------------------------------------------------------------------


def gain(x, y, n_values):
    """N I(x; y) of the rows that have x, less half its degrees of freedom."""
    own = [i for i, v in enumerate(x) if v is not None]
    return len(own) * mutual_info_score([x[i] for i in own], [y[i] for i in own]) - (n_values - 1) / 2


def by_the_book(rows, labels, k):
    """Sahami's algorithm, in loops."""
    columns, found = rows.T, {}
    order = sorted(range(len(columns)), key=lambda j: -gain(columns[j], labels, SIZES[j]))
    for rank, j in enumerate(order):

        def dependence(p, j=j):
            total = 0.0
            for c in CLASSES[:2]:
                both = [i for i in np.flatnonzero(labels == c) if rows[i, j] is not None and rows[i, p] is not None]
                total += len(both) * mutual_info_score(rows[both, j].tolist(), rows[both, p].tolist())
            return total - 2 * (SIZES[j] - 1) * (SIZES[p] - 1) / 2

        found[str(j)] = tuple(str(p) for p in sorted(order[:rank], key=lambda p: -dependence(p))[:k])
    return found


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("k", [1, 2, 4])
@either
def test_arcs_are_those_of_the_book(k, rows):
    expected = by_the_book(rows, Y, k)
    nb = bnb.KDB(k, None, categories=DECLARED).fit(rows, Y)
    assert list(nb.order_) == list(expected)
    one = {name: own if len(own) > 1 else own[0] if own else None for name, own in expected.items()}
    assert nb.parents_ == one
    for pairs in (bnb.AODE(), bnb.AODE(tables="context"), bnb.TreeAveragedNB()):
        assert bnb.KDB.parents_from(pairs.set_params(categories=DECLARED).fit(rows, Y), k) == expected


def test_mutual_information_with_the_class_is_that_of_the_textbook():
    nb = bnb.AODE(categories=DECLARED).fit(HOLES, Y)
    columns, counts = nb.pair_counts()
    found = learning.class_information(counts, columns.base.sizes())
    for j, column in enumerate(HOLES.T):
        own = [i for i, v in enumerate(column) if v is not None]
        assert found[j] == pytest.approx(mutual_info_score(column[own].tolist(), Y[own].tolist()), abs=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_how_many_parents_and_columns_is_what_refits_without_each_row_prefer(monkeypatch):
    monkeypatch.setattr(kdb, "_MOST_PARENTS", 2)
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, (24, 3)).astype(object)
    label = (rows[:, 0] ^ rows[:, 1] ^ (rng.random(24) < 0.1)).astype(int)
    most = bnb.KDB(2, None).fit(rows, label)
    losses = {}
    for k in range(3):
        for n in range(1, 4):
            names = most.order_[:n]
            parents = {name: [p for p in np.atleast_1d(most.parents_[name] or [])][:k] for name in names}
            nb = bnb.NetworkNB(
                {names.index(a): [names.index(b) for b in own] for a, own in parents.items()},
                tables="context",
                categories=[[0, 1]] * n,
            )
            own, each = rows[:, [int(name) for name in names]], np.arange(24)
            refits = [nb.fit(own[each != i], label[each != i]).predict_log_proba(own[i : i + 1])[0] for i in each]
            losses[k, n] = -np.array(refits)[each, label].sum()
    chosen = bnb.KDB().fit(rows, label)
    best = min(losses, key=losses.get)
    assert losses[chosen.k_, len(chosen.order_)] == pytest.approx(losses[best], abs=1e-9)
    assert bnb.loo(chosen, rows, label).elpd == pytest.approx(-losses[best], abs=1e-9)


@pytest.mark.slow("a second view of what quick tests see")
def test_dependence_that_naive_bayes_cannot_see_is_found():
    rows = np.random.default_rng(0).integers(0, 2, (200, 4))
    label = rows[:, 0] ^ rows[:, 2]
    nb = bnb.KDB().fit(rows, label)
    assert nb.score(rows, label) == 1.0
    assert set(nb.order_) >= {"0", "2"}
    assert bnb.WeightedNB(bnb.KDB()).fit(rows, label).score(rows, label) == 1.0


@pytest.mark.slow("compiles kernels of its own")
def test_under_weights_the_number_of_parents_is_chosen_by_the_expected_loss():
    nb = bnb.WeightedNB(bnb.KDB(categories=DECLARED)).fit(X, Y)
    each = [bnb.WeightedNB(bnb.KDB(k, None, categories=DECLARED)).fit(X, Y) for k in range(4)]
    losses, k = [own.expected_log_loss_ for own in each], nb.estimator_.k_
    assert k <= np.argmin(losses)  # the fewest parents that are not clearly worse
    assert nb.expected_log_loss_ == pytest.approx(losses[k], rel=1e-9)
    np.testing.assert_allclose(nb.predict_proba(X), each[k].predict_proba(X), rtol=1e-7, atol=1e-9)


@pytest.mark.slow("compiles kernels of its own")
def test_columns_that_are_left_out_are_known_and_say_nothing():
    frame = pd.DataFrame(X, columns=list("abcd"))
    nb = bnb.KDB(1, 2).fit(frame, Y)
    left_out = sorted(set("abcd") - set(nb.order_))
    assert len(left_out) == 2
    assert set(nb.parents_) == set(nb.order_)
    changed = frame.assign(**{name: None for name in left_out})
    np.testing.assert_array_equal(nb.predict_log_proba(changed), nb.predict_log_proba(frame))
    assert set(bnb.explain(nb, frame[:2])["feature"]) == {"(class)", *nb.order_}
    assert len(bnb.check_independence(nb, frame, Y)) == 6
    refused("no categorical variable", nb.query, left_out[0])
    refused("the columns differ", bnb.bayes_factor, nb, bnb.NetworkNB({}, tables="context").fit(frame, Y))
    assert bnb.KDB(1, 9).fit(frame, Y).order_ == bnb.KDB(1, None).fit(frame, Y).order_


@pytest.mark.slow("compiles kernels of its own")
def test_numbers_are_cut_and_gaussian_columns_stay_beside():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "r": rng.normal(size=40) + 3 * (CLASSES[0] == Y)})
    nb = bnb.KDB().fit(frame, Y)
    assert "r" in nb.order_
    assert list(nb.edges_) == ["r"]
    beside = bnb.KDB(numbers="gaussian").fit(frame, Y)
    assert set(beside.order_) <= {"a", "b"}
    assert beside.parents_["r"] is None
    assert beside.score(frame, Y) > 0.8


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.filterwarnings("ignore")
def test_bad_input_to_it():
    for bad in (-1, 2.5, "many", True, None):
        refused("k=", bnb.KDB(bad).fit, X, Y)
    for bad in (0, 1.5, "all", False):
        refused("max_features=", bnb.KDB(max_features=bad).fit, X, Y)
    assert not hasattr(bnb.KDB(), "partial_fit")
    nb = bnb.KDB(categories=DECLARED).fit(X[:30], Y[:30])
    before = nb.parents_
    assert nb.partial_fit(X[30:], Y[30:]).parents_ == before
    refused("takes a fitted AODE or TreeAveragedNB", bnb.KDB.parents_from, bnb.TAN().fit(X, Y), error=TypeError)
    refused("k=-1", bnb.KDB.parents_from, bnb.AODE().fit(X, Y), -1)
    constant = np.full((40, 2), "u", object)
    assert np.isfinite(bnb.KDB().fit(constant, Y).predict_log_proba(constant)).all()
    assert bnb.KDB().fit(X[:, :1], Y).parents_ == {"0": None}
    nothing = np.full((40, 2), None)
    assert np.isfinite(bnb.KDB().fit(nothing, Y).predict_log_proba(nothing)).all()
    alone = np.append(Y[:-1], "alone")
    assert np.isfinite(bnb.KDB().fit(X, alone).predict_log_proba(X)).all()


@pytest.mark.slow("compiles kernels of its own")
def test_a_row_of_weight_two_is_that_row_twice():
    twice = np.append(np.arange(40), [3, 8, 20])
    weight = np.bincount(twice, minlength=40).astype(float)
    one, other = bnb.KDB(categories=DECLARED).fit(X[twice], Y[twice]), bnb.KDB(categories=DECLARED).fit(X, Y, weight)
    assert one.parents_ == other.parents_
    np.testing.assert_allclose(one.predict_log_proba(X), other.predict_log_proba(X), rtol=1e-12)
