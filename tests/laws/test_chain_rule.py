"""Laws 3 and 4: predictive densities of added rows are ratios of evidences, and rows are left out as in refits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import CLASSES, KINDS, Problem, log_base, problems, thorough, with_prior_of

every_kind = pytest.mark.parametrize("kind", thorough(KINDS))


def log_predictive(nb, row: Problem) -> float:
    """log p(y, x | data) of a single row, with what no class changes."""
    joint = nb.predict_joint_log_proba(row.X, estimate="predictive")[0, CLASSES.index(row.y[0])]
    return joint + log_base(row.kind, row.X)[0]


@every_kind
@given(data=st.data())
def test_rows_in_sequence_each_as_often_as_its_weight_says(kind, data):
    problem = data.draw(problems(kind, max_rows=4))
    whole = problem.fit()
    fixed = with_prior_of(problem.nb, whole)
    total = 0.0
    nb = None
    for i in np.repeat(np.arange(len(problem)), problem.weight.astype(int)):
        row = problem.take([i])
        if nb is None:  # nothing is known yet: forgetting the only row leaves the prior
            nb = row.fit(fixed, weight=[1.0]).forget(row.X, row.y)
            assert abs(nb.log_evidence_) <= 1e-12
        total += log_predictive(nb, row)
        nb.partial_fit(row.X, row.y)
    assert abs(total - whole.log_evidence_) <= 1e-9 * max(1.0, abs(whole.log_evidence_))
    assert abs(nb.log_evidence_ - whole.log_evidence_) <= 1e-9 * max(1.0, abs(whole.log_evidence_))


@every_kind
@given(data=st.data())
def test_downdating_by_each_row_equals_a_refit_without_it(kind, data):
    problem = data.draw(problems(kind, min_rows=2, max_rows=6))
    fixed = with_prior_of(problem.nb, problem.fit())
    whole = problem.fit(fixed)
    for i in range(len(problem)):
        row, others = problem.take([i]), problem.take(np.delete(np.arange(len(problem)), i))
        refit = others.fit(fixed)
        downdated = problem.fit(fixed).forget(row.X, row.y, row.weight)
        actual, expected = (nb.predict_joint_log_proba(row.X)[0] for nb in (downdated, refit))
        assert (abs(actual - expected) <= 1e-10 * np.maximum(1.0, abs(expected))).all()
        assert_only_own_class_differs(whole, downdated, CLASSES.index(row.y[0]))


def assert_only_own_class_differs(whole, downdated, own):
    """The other classes keep the very statistics of the whole: what makes one pass over the rows enough."""
    others = np.arange(len(CLASSES)) != own
    for before, after in zip(whole.statistics_.blocks, downdated.statistics_.blocks, strict=True):
        for name in before.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(before, name)[others], getattr(after, name)[others])
