"""Prequential curves against refits of prefixes, sums of predictions and Bayes factors."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesnb as bnb
from bayesnb import BernoulliNB, CategoricalNB, FeatureAveragedNB
from tests.raises import refused
from tests.strategies import KINDS, problems, thorough, with_prior_of

own_kernels = pytest.mark.slow("compiles kernels of its own")


@pytest.fixture(scope="module")
def two():
    """Two models of 120 rows, which are not in the order of their classes: 20 binary features, two follow the label."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = rng.integers(0, 2, (120, 20))
    X[:, :2] = np.where(rng.random((120, 2)) < rng.uniform(0.05, 0.95, 2), y[:, None], X[:, :2])
    frame = pd.DataFrame(X, columns=[f"feature {j}" for j in range(20)])
    return BernoulliNB().fit(frame, y), FeatureAveragedNB(BernoulliNB()).fit(frame, y), frame, y


@own_kernels
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


@own_kernels
@pytest.mark.parametrize("points", [1, 7, 50, 120, 1000])
def test_sizes_go_from_no_row_to_all_of_them(two, points):
    nb, _, X, y = two
    curve = bnb.prequential(nb, X, y, points=points)
    assert curve.sizes[0] == 0
    assert curve.sizes[-1] == len(y)
    steps = np.diff(curve.sizes)
    assert len(steps) == min(points, len(y))
    assert steps.max() - steps.min() <= 1


@own_kernels
def test_it_keeps_the_estimator_as_it_was(two):
    _, _, X, y = two
    nb = BernoulliNB().fit(X, y)
    curve = bnb.prequential(nb, X, y)
    nb.partial_fit(X, y)
    assert curve.estimator.log_evidence_ == pytest.approx(curve.log_evidence[-1], rel=1e-12)
    assert f"{curve.log_evidence[-1]:.3f}" in repr(curve)


@own_kernels
def test_other_rows_are_refused(two):
    nb, _, X, y = two
    refused(r"prequential: .*negative", bnb.prequential, nb, X, 1 - y)
    refused(r"must be all rows .* 119 of 120 rows", bnb.prequential, nb, X.iloc[1:], y[1:])
    with pytest.raises(ValueError, match=r"must be all rows .* Cells that the classifier has counted are missing"):
        bnb.prequential(nb, X.astype(float).replace({X.columns[3]: {1.0: np.nan}}), y)
    refused("points=0", bnb.prequential, nb, X, y, points=0)


def test_each_row_adds_its_predictive_and_other_rows_are_refused():
    """Reference: Dirichlet-multinomials of the labels and of the levels of each class, by hand."""
    levels, labels = np.array([0, 1, 1, 0, 1, 1]), np.array([0, 1, 1, 0, 0, 1])
    nb = CategoricalNB(alpha=1.5, class_alpha=1.0).fit(levels[:, None], labels)
    curve, log_prob, seen = bnb.prequential(nb, levels[:, None], labels), [0.0], np.zeros((2, 2))
    for level, label in zip(levels, labels, strict=True):
        of_class, of_level = seen.sum(axis=1) + 1.0, seen[label] + 1.5
        log_prob.append(np.log(of_class[label] / of_class.sum() * of_level[level] / of_level.sum()))
        seen[label, level] += 1
    np.testing.assert_allclose(curve.log_evidence, np.cumsum(log_prob), rtol=1e-12)
    refused(r"must be all rows .* 5 of 6 rows", bnb.prequential, nb, levels[:5, None], labels[:5])
