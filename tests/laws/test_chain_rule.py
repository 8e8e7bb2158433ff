"""Law 3: the predictive density of a row is the ratio of the evidences with and without it."""

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
