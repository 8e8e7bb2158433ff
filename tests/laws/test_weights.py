"""Sample weights are replication counts: a row of weight w counts as w rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from bayesnb.fitted.counting import count_rows, expected_counts
from tests.strategies import KINDS, assert_leaves, log_base, problems, thorough

every_kind = pytest.mark.parametrize("kind", thorough(KINDS))


def assert_same_posterior(a, b, evidence=1e-9):
    assert_leaves(a.posterior_, b.posterior_, rtol=1e-11)
    assert abs(a.log_evidence_ - b.log_evidence_) <= evidence * max(1.0, abs(b.log_evidence_))


@every_kind
@given(data=st.data())
def test_integer_weights_are_repeated_rows(kind, data):
    problem = data.draw(problems(kind))
    repeated = problem.take(np.repeat(np.arange(len(problem)), problem.weight.astype(int)))
    assert_same_posterior(problem.fit(), repeated.fit(weight=np.ones(len(repeated))))


@every_kind
@given(data=st.data())
def test_doubling_all_weights_is_duplicating_all_rows(kind, data):
    problem = data.draw(problems(kind))
    doubled = problem.fit(weight=2 * problem.weight)
    twice = problem.fit().partial_fit(problem.X, problem.y, sample_weight=problem.weight)
    assert_same_posterior(doubled, twice)
    np.testing.assert_array_equal(doubled.class_count_, twice.class_count_)


@every_kind
@given(data=st.data(), factor=st.sampled_from([0.5, 0.1, 1 / 3, 1]))
def test_decay_is_every_row_weighing_less(kind, data, factor):
    problem = data.draw(problems(kind))
    decayed, lighter = problem.fit().decay(factor), problem.fit(weight=factor * problem.weight)
    assert_same_posterior(decayed, lighter)
    np.testing.assert_allclose(decayed.statistics_.log_base, lighter.statistics_.log_base, rtol=1e-12, atol=1e-13)


@every_kind
@given(data=st.data())
def test_log_base_is_part_of_the_likelihood_that_is_weighted(kind, data):
    problem = data.draw(problems(kind))
    terms = problem.weight * log_base(kind, problem.X)
    assert abs(problem.fit().statistics_.log_base - terms.sum()) <= 1e-12 * max(1.0, 10 * abs(terms).sum())


@every_kind
@given(data=st.data())
def test_rows_of_weight_zero_leave_their_class_and_nothing_else(kind, data):
    problem = data.draw(problems(kind, min_rows=2))
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(problem), max_size=len(problem))))
    keep[0] = True
    nb = clone(problem.nb).set_params(class_prior=None)
    whole = clone(nb).fit(problem.X, problem.y, problem.weight * keep)
    kept = problem.take(np.flatnonzero(keep))
    alone = clone(nb).partial_fit(kept.X, kept.y, np.unique(problem.y), kept.weight)
    assert list(whole.classes_) == sorted(set(problem.y))
    assert [b.levels for b in map(_levels, whole.encoding_.blocks)] == [
        b.levels for b in map(_levels, alone.encoding_.blocks)
    ]
    assert_leaves(whole.statistics_, alone.statistics_, rtol=1e-12)


class _levels:
    def __init__(self, block):
        self.levels = [v.values for v in getattr(block, "levels", ())]


# -- soft class weights ----------------------------------------------------------------------------


def soft(nb, problem, weight):
    return expected_counts(nb.encoding_, nb.encoding_.rows(nb.fitted_.table(problem.X)), weight)


@every_kind
@given(data=st.data(), seed=st.integers(0, 99))
def test_soft_weights_are_each_row_once_a_class_with_its_weight_there(kind, data, seed):
    problem = data.draw(problems(kind, min_rows=2, max_rows=4))
    nb = problem.fit()
    weight = np.random.default_rng(seed).dirichlet(np.ones(3), len(problem))
    table = nb.fitted_.table(problem.take(np.tile(np.arange(len(problem)), 3)).X)
    label = np.repeat(np.arange(3), len(problem))
    expected = count_rows(nb.encoding_, nb.encoding_.rows(table), label, weight.T.ravel())
    assert_leaves(soft(nb, problem, weight), expected, rtol=1e-12)
