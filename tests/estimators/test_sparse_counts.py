"""PoissonNB counts a sparse matrix as the array that it stands for; words that occur once are multinomial."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from scipy.stats import dirichlet_multinomial

import bayesnb as bnb
from bayesnb import MultinomialNB
from tests.estimators.cases import CASES
from tests.raises import refused

RNG = np.random.default_rng(0)
X, Y = RNG.poisson(0.5, (120, 7)), RNG.integers(0, 3, 120)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix])
def test_all_sparse_formats_are_the_array(form):
    dense, sparse = bnb.PoissonNB().fit(X, Y), bnb.PoissonNB().fit(form(X), Y)
    np.testing.assert_array_equal(sparse.predict_proba(form(X)), dense.predict_proba(X))
    assert sparse.log_evidence_ == dense.log_evidence_
    np.testing.assert_array_equal(bnb.loo(sparse, form(X), Y).pointwise, bnb.loo(dense, X, Y).pointwise)
    np.testing.assert_array_equal(bnb.predict_interval(sparse, form(X)), bnb.predict_interval(dense, X))


def test_batches_drift_and_weights():
    S = sp.csr_array(X)
    nb = bnb.PoissonNB().fit(S, Y).partial_fit(S[:20], Y[:20]).forget(S[:20], Y[:20])
    np.testing.assert_allclose(nb.predict_proba(S), bnb.PoissonNB().fit(X, Y).predict_proba(X), rtol=1e-12)
    assert bnb.check_drift(nb, S).equals(bnb.check_drift(bnb.PoissonNB().fit(X, Y), X))
    weighted = [bnb.WeightedNB(bnb.PoissonNB()).fit(x, Y).predict_proba(x) for x in (S, X)]
    np.testing.assert_allclose(*weighted, rtol=1e-9)


def test_memory_grows_with_the_stored_entries():
    """A few pieces of rows are dense at a time, at most as many as kernels have not read yet."""
    n, width = 5_000, 3000
    wide = sp.random_array((n, width), density=0.003, rng=RNG, format="csr")
    nb = bnb.PoissonNB(estimate="mean")
    nb.fit(wide[:600], np.arange(600) % 2).predict(wide[:100])  # Compilation takes memory, too.
    tracemalloc.start()
    nb.fit(wide, np.arange(n) % 2).predict(wide[:100])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * width * 8 / 2


@pytest.mark.parametrize(("cell", "says"), [(-1.0, "Negative values"), (np.nan, "NaN"), (np.inf, "infinity")])
def test_bad_entries(cell, says):
    bad = sp.csr_array(X.astype(float))
    bad.data[3] = cell
    refused(says, bnb.PoissonNB().fit, bad, Y)
    refused(says, bnb.PoissonNB().fit(X, Y).predict, bad)


def test_other_numbers_need_an_array():
    refused("GaussianNB needs dense data", bnb.GaussianNB().fit, sp.csr_array(X), Y, error=TypeError)


def test_rows_of_ones_are_dirichlet_multinomial():
    dense, y = CASES["BernoulliNB"].X, CASES["BernoulliNB"].y  # classes of equal size
    X = sp.csr_array(dense)
    nb = MultinomialNB(alpha=0.5).fit(X, y)
    alpha = np.array([dense[y == c].sum(axis=0) + 0.5 for c in nb.classes_])
    log_joint = np.array([[dirichlet_multinomial.logpmf(row, a, row.sum()) for a in alpha] for row in dense])
    expected = log_joint - logsumexp(log_joint, axis=1, keepdims=True)
    np.testing.assert_allclose(nb.predict_log_proba(X), expected, rtol=1e-12)
