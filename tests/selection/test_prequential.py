"""Prequential curves against refits of prefixes, sums of predictions and Bayes factors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesnb as bnb
from bayesnb import BernoulliNB, CategoricalNB, FeatureAveragedNB, GaussianNB, MultinomialNB
from tests.refusals import refused
from tests.strategies import KINDS, problems, thorough, with_prior_of

pytestmark = pytest.mark.slow("compiles kernels of its own")


@pytest.fixture(scope="module")
def two():
    """Two models of 120 rows, which are not in the order of their classes: 20 binary features, two follow the label."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = rng.integers(0, 2, (120, 20))
    X[:, :2] = np.where(rng.random((120, 2)) < rng.uniform(0.05, 0.95, 2), y[:, None], X[:, :2])
    frame = pd.DataFrame(X, columns=[f"feature {j}" for j in range(20)])
    return BernoulliNB().fit(frame, y), FeatureAveragedNB(BernoulliNB()).fit(frame, y), frame, y


@pytest.mark.parametrize("kind", thorough(KINDS))
@settings(max_examples=5)
@given(data=st.data())
def test_it_is_the_evidence_of_each_prefix_and_grows_by_the_next_row(kind, data):
    problem = data.draw(problems(kind, max_rows=6))
    whole = problem.fit()
    fixed = with_prior_of(problem.nb, whole)
    curve = bnb.prequential(whole, problem.X, problem.y, problem.weight)
    np.testing.assert_array_equal(curve.sizes, np.arange(len(problem) + 1))
    assert curve.log_evidence[0] == 0.0
    scale = max(1.0, np.abs(curve.log_evidence).max())
    sequence = None
    for n in range(1, len(problem) + 1):
        prefix = problem.take(range(n)).fit(fixed)
        assert abs(curve.log_evidence[n] - prefix.log_evidence_) <= 1e-9 * scale
        one = problem.take([n - 1])
        sequence = one.fit(fixed) if sequence is None else sequence.partial_fit(one.X, one.y, None, one.weight)
        assert abs(curve.log_evidence[n] - sequence.log_evidence_) <= 1e-9 * scale
    assert abs(curve.log_evidence[-1] - whole.log_evidence_) <= 1e-9 * scale


def test_it_is_the_sum_of_the_predictions_of_each_row_by_those_before(two):
    X, y = two[2][:30], two[3][:30]
    curve = bnb.prequential(FeatureAveragedNB(BernoulliNB()).fit(X, y), X, y)
    total, before = [0.0], None
    for n in range(len(y)):
        row, label = X.iloc[n : n + 1], y[n : n + 1]
        if before is None:  # no rows: each value and each label has probability 1/2
            total.append(-np.log(2) * (1 + X.shape[1]))
            before = FeatureAveragedNB(BernoulliNB()).partial_fit(row, label, classes=[0, 1])
            continue
        total.append(total[-1] + before.predict_joint_log_proba(row)[0, label[0]])
        before.partial_fit(row, label)
    np.testing.assert_allclose(curve.log_evidence, total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_differences_of_two_end_at_the_log_bayes_factor(weighted):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 300)
    X = rng.poisson(3, (300, 4)) + y[:, None]
    weight = rng.integers(0, 4, 300).astype(float) if weighted else np.ones(300)
    pairs = [
        (CategoricalNB(alpha=0.3), FeatureAveragedNB()),
        (GaussianNB(prior="pooled"), GaussianNB(prior="within")),
        (MultinomialNB(), MultinomialNB(alpha=7.0)),
    ]
    for one, other in pairs:
        one.fit(X, y, weight)
        other.fit(X, y, weight)
        first, second = bnb.prequential(one, X, y, weight), bnb.prequential(other, X, y, weight)
        end = first.log_evidence[-1] - second.log_evidence[-1]
        assert abs(end - bnb.bayes_factor(one, other).log) <= 1e-9 * max(1.0, abs(one.log_evidence_))


def test_the_order_of_the_rows_changes_the_way_and_not_the_end(two):
    nb, _, X, y = two
    order = np.argsort(y, kind="stable")
    given_, by_class = bnb.prequential(nb, X, y), bnb.prequential(nb, X.iloc[order], y[order])
    assert given_.log_evidence[-1] == pytest.approx(by_class.log_evidence[-1], rel=1e-12)
    assert np.abs(given_.log_evidence - by_class.log_evidence).max() > 1


@pytest.mark.parametrize("points", [1, 7, 50, 120, 1000])
def test_sizes_go_from_no_row_to_all_of_them(two, points):
    nb, _, X, y = two
    curve = bnb.prequential(nb, X, y, points=points)
    assert curve.sizes[0] == 0
    assert curve.sizes[-1] == len(y)
    steps = np.diff(curve.sizes)
    assert len(steps) == min(points, len(y))
    assert steps.max() - steps.min() <= 1


def test_it_keeps_the_estimator_as_it_was(two):
    _, _, X, y = two
    nb = BernoulliNB().fit(X, y)
    curve = bnb.prequential(nb, X, y)
    nb.partial_fit(X, y)
    assert curve.estimator.log_evidence_ == pytest.approx(curve.log_evidence[-1], rel=1e-12)
    assert f"{curve.log_evidence[-1]:.3f}" in repr(curve)


def test_other_rows_are_refused(two):
    nb, _, X, y = two
    refused(r"prequential: .*negative", bnb.prequential, nb, X, 1 - y)
    refused(r"must be all rows .* 119 of 120 rows", bnb.prequential, nb, X.iloc[1:], y[1:])
    with pytest.raises(ValueError, match=r"must be all rows .* or cells are missing"):
        bnb.prequential(nb, X.astype(float).replace({X.columns[3]: {1.0: np.nan}}), y)
    refused("points=0", bnb.prequential, nb, X, y, points=0)
