"""Law 4: forgetting a row gives the same posterior as a fit without the row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import CLASSES, KINDS, problems, thorough, with_prior_of

every_kind = pytest.mark.parametrize("kind", thorough(KINDS))


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
