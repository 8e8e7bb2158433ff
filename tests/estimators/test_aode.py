"""AODE against a brute-force average of its members, and refusal of what an average does not have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.encoding.encoded_rows import NodeRows
from bayesnb.fitted import counting
from tests.estimators.networks import CLASSES, Brute, log_proba, problems, table
from tests.raises import refused
from tests.strategies import variants


def spode(brute, p, class_alpha):
    parents = {j: (p,) for j in range(len(brute.levels)) if j != p} if p is not None else {}
    return Brute(brute.levels, parents, brute.alpha, class_alpha, brute.classes)


def averaged(problem, keep, row, min_count, class_alpha=None):
    """(C,) log of the mean of p(c, row) over the members that may vote; naive Bayes where none may."""
    brute, found = problem.brute, []
    for p in range(len(brute.levels)):
        rows = zip(problem.X[keep], problem.weight[keep], strict=True)
        n = sum(w for other, w in rows if other[p] == row[p])
        if row[p] is not None and n >= min_count:
            own = [float(len(brute.levels[p]))] * 3 if class_alpha == "levels" else brute.class_alpha
            member = spode(brute, p, own)
            found.append(np.exp(member.log_joint(member.count(*rows_of(problem, keep)), row)))
    if not found:
        naive = spode(brute, None, [1.0] * 3 if class_alpha == "levels" else brute.class_alpha)
        found.append(np.exp(naive.log_joint(naive.count(*rows_of(problem, keep)), row)))
    return np.log(np.mean(found, axis=0))


def rows_of(problem, keep):
    return problem.X[keep], problem.y[keep], problem.weight[keep]


def fitted(problem, keep=slice(None), **options):
    return bnb.AODE(**problem.options | options).partial_fit(
        problem.X[keep], problem.y[keep], CLASSES, problem.weight[keep]
    )


anything = problems(missing=True, parents={})


@pytest.mark.slow("a second view of what quick tests see")
@settings(max_examples=10)
@given(anything, st.sampled_from([0, 1, 3, 30]), st.booleans())
def test_members_that_may_vote_are_averaged(problem, min_count, levels):
    option = {"class_alpha": "levels"} if levels else {}
    nb = fitted(problem, min_count=min_count, **option)
    rows = np.vstack([problem.X, problem.brute.complete_rows()[:9], np.full((1, 4), None)])
    everything = slice(None)
    expected = [averaged(problem, everything, row, min_count, option.get("class_alpha")) for row in rows]
    np.testing.assert_allclose(nb.predict_joint_log_proba(rows), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(nb.predict_proba(rows), np.exp(log_proba(np.array(expected))), rtol=0, atol=1e-10)
    # Leave-one-out: the members vote by the counts without the row.
    each = np.arange(len(problem.y))
    found = bnb.loo(nb, problem.X, problem.y, problem.weight)
    without = [averaged(problem, each != i, problem.X[i], min_count, option.get("class_alpha")) for i in each]
    np.testing.assert_allclose(found.log_proba, log_proba(np.array(without)), rtol=0, atol=1e-10)
    assert np.isnan(found.row_pointwise).all()
    if len(each) > 1:
        refit = fitted(problem, each != 0, min_count=min_count, **option)
        np.testing.assert_allclose(found.log_proba[:1], refit.predict_log_proba(problem.X[:1]), rtol=0, atol=1e-10)


@settings(max_examples=8)
@given(anything.filter(lambda p: len(p.y) > 1), st.booleans())
def test_pairs_are_counted_as_nodes_are(problem, fractional):
    weight = problem.weight * (0.3 if fractional else 1)
    nb = bnb.AODE(**problem.options).partial_fit(problem.X, problem.y, CLASSES, weight)
    columns, label = nb.encoding_.blocks[0], np.array([CLASSES.index(v) for v in problem.y], np.int32)
    rows = nb.fitted_.encode(problem.X)[0]
    assert isinstance(rows[0], NodeRows)
    other = counting.count_rows(nb.encoding_, rows, label, weight)
    mine = nb.statistics_.blocks[0].count
    np.testing.assert_allclose(mine, other.blocks[0].count, rtol=1e-14 if fractional else 0, atol=1e-14 * fractional)
    np.testing.assert_array_equal(nb.class_count_, other.class_count)
    assert len(columns.nodes) == 16
    for p, member in enumerate(nb.members_):
        alone = bnb.SPODE(p, **problem.options).partial_fit(problem.X, problem.y, CLASSES, weight)
        np.testing.assert_allclose(
            member.statistics_.blocks[0].count, alone.statistics_.blocks[0].count, rtol=1e-14, atol=1e-14
        )
        assert member.parents_ == alone.parents_


@pytest.mark.slow("compiles kernels of its own")
def test_weights_that_make_up_a_whole_count_as_one():
    """Ten rows of weight 0.1, one after the other, are one row, though they sum to 0.9999999999999999."""
    X, y = table(40, 0)
    X[:10], y[:10] = ["z", "u", "u", "u"], "ash"
    nb = bnb.AODE().fit(X[10:], y[10:])
    whole = bnb.AODE().fit(X[9:], y[9:])
    for _ in range(10):
        nb.partial_fit(X[:1], y[:1], sample_weight=[0.1])
    np.testing.assert_allclose(nb.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-10)


def test_levels_make_wekas_probability_of_class_and_parent():
    """P(c, x_p) = (n + 1)/(N + C v_p), times Π P(x_j | c, x_p) = (n + 1)/(n + v_j)."""
    X, y = table(50, 1)
    nb = bnb.AODE(class_alpha="levels").fit(X, y)
    row = X[7]
    expected = []
    for c in nb.classes_:
        total = 0.0
        for p in range(4):
            own = (y == c) & (X[:, p] == row[p])
            v = [len(set(X[:, j])) for j in range(4)]
            value = (own.sum() + 1) / (50 + 2 * v[p])
            for j in set(range(4)) - {p}:
                value *= ((own & (X[:, j] == row[j])).sum() + 1) / (own.sum() + v[j])
            total += value
        expected.append(total / 4)
    np.testing.assert_allclose(nb.predict_joint_log_proba(X)[7], np.log(expected), rtol=0, atol=1e-12)
    np.testing.assert_allclose(nb.class_log_prior_, np.log((nb.class_count_ + 1) / 52))


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("estimate", ["mean", "map", "mle"])
def test_other_estimates_are_those_of_the_members(estimate):
    X, y = table(300, 2)
    nb = bnb.AODE(alpha=1.5).fit(X, y)
    joints = [np.exp(m.predict_joint_log_proba(X, estimate=estimate)) for m in nb.members_]
    np.testing.assert_allclose(np.exp(nb.predict_joint_log_proba(X, estimate=estimate)), np.mean(joints, axis=0))
    np.testing.assert_array_equal(
        clone(nb).set_params(estimate=estimate).fit(X, y).predict(X), nb.predict(X, estimate=estimate)
    )


def test_an_estimate_that_is_set_after_fit_holds_at_once():
    X, y = table(40, 2)
    nb, mle = bnb.AODE().fit(X, y), bnb.AODE(estimate="mle").fit(X, y)
    np.testing.assert_array_equal(nb.set_params(estimate="mle").predict_proba(X), mle.predict_proba(X))


def test_known_class_probabilities():
    X, y = table(60, 3)
    known, nb = bnb.AODE(class_prior=[0.1, 0.9]).fit(X, y), bnb.AODE().fit(X, y)
    np.testing.assert_allclose(known.predict_proba(X), nb.predict_proba(X, class_prior=[0.1, 0.9]), rtol=1e-12)
    np.testing.assert_allclose(known.class_log_prior_, np.log([0.1, 0.9]))
    assert known.n_parameters_ == nb.n_parameters_ - 1


def test_parameters_are_counted_once():
    X, y = table(60, 3)
    v = [2, 3, 2, 3]
    pairs = sum(v[p] * (v[j] - 1) for p in range(4) for j in range(4) if j != p)
    assert bnb.AODE().fit(X, y).n_parameters_ == 1 + 2 * (sum(v) - 4 + pairs)


def test_a_reserved_level_does_not_vote_where_it_was_not_counted():
    X, y = table(60, 5)
    strange = X.copy()
    strange[:, 2] = "new"
    level = bnb.AODE(handle_unknown="level", min_count=1).fit(X, y)
    with pytest.warns(UserWarning, match="reserved level"):
        joint = level.predict_joint_log_proba(strange)
    with pytest.warns(UserWarning, match="reserved level"):
        joints = [np.exp(level.members_[p].predict_joint_log_proba(strange)) for p in (0, 1, 3)]
    np.testing.assert_allclose(np.exp(joint), np.mean(joints, axis=0), rtol=1e-10)


def test_declared_levels_that_do_not_occur_vote_with_min_count_0_only():
    X, y = table(60, 5)
    declared = [["u", "v", "w", "never"]] * 4
    row = np.array([["never", "u", "u", "u"]] * 60, dtype=object)
    for min_count, members in ((0, range(4)), (1, (1, 2, 3))):
        nb = bnb.AODE(min_count, categories=declared).fit(X, y)
        joints = [np.exp(nb.members_[p].predict_joint_log_proba(row)) for p in members]
        np.testing.assert_allclose(np.exp(nb.predict_joint_log_proba(row)), np.mean(joints, axis=0), rtol=1e-12)


# -- what there is, and what there is not -------------------------------------------------------------

X, Y = table(60, 6)
REFUSED = {
    "prior_": lambda nb: nb.prior_,
    "posterior_": lambda nb: nb.posterior_,
    "query": lambda nb: nb.query("0"),
    "predict_proba(draws=)": lambda nb: nb.predict_proba(X, draws=bnb.posterior_draws(nb.members_[0], 5)),
}


@variants("call", REFUSED.values(), ids=REFUSED)
def test_the_average_has_no_posterior(call):
    refused(r"AODE averages.*members_", call, bnb.AODE().fit(X, Y), error=NotImplementedError)


def test_decisions_have_an_action_and_a_risk():
    nb = bnb.AODE().fit(X, Y)
    found = bnb.decide(nb, X, [[0, 5], [1, 0]], reject_cost=0.4)
    proba = nb.predict_proba(X)
    risk = np.column_stack([5 * proba[:, 1], proba[:, 0], np.full(60, 0.4)])
    np.testing.assert_allclose(found.risk, risk.min(axis=1))
    np.testing.assert_array_equal(found.action, np.array(["ash", "elm", "reject"])[risk.argmin(axis=1)])
    assert np.isnan(found.p_optimal).all()
    assert np.isnan(found.regret).all()
    assert "Decisions of 60 rows" in repr(found)
