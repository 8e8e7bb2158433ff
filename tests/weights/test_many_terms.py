"""Weights of thousands of terms: differences from reference values, L-BFGS, and a diagonal for the evidence."""

import numpy as np
import pytest
import scipy.sparse as sp

import bayesnb as bnb
from bayesnb.weights import cross_fitting, optimum
from bayesnb.weights.optimum import Expansion, Groups, WeightPrior, held_out_log_losses, maximize
from bayesnb.weights.terms import CrossTerms, TermBlock
from tests.raises import refused

N, T, C, FITS = 24, 9, 3, 4
GROUPS = Groups.from_dependence(np.arange(T) > 6, np.arange(T) == 4)


@pytest.fixture(scope="module")
def both():
    """Dense and sparse terms of the same rows: binary columns, a column of numbers (0) and one of draws (4)."""
    rng = np.random.default_rng(0)
    table, numbers = rng.normal(size=(FITS, C, T, 2)), rng.normal(size=(2 * N, C, T))
    code, fit = (rng.random((2 * N, T)) < 0.2).astype(int), np.repeat(np.arange(FITS), N // 2)
    values = np.take_along_axis(table[fit], code[:, None, :, None], axis=-1)[..., 0]
    values[:, :, [0, 4]] = numbers[:, :, [0, 4]]
    values[::3, 0, 4] = 0.0  # the reference of draws, in one of the classes only
    parts = [(k, part) for k in range(FITS) for part in np.array_split(np.flatnonzero(fit == k), 2)]
    log_class = rng.normal(size=(FITS, C))
    blocks = [TermBlock(part, k, log_class[k], values[part]) for k, part in parts]
    fields = dict(
        log_length=np.tile(rng.normal(size=N), 2),
        label=np.tile(rng.integers(0, C, N), 2),
        weight=np.tile(rng.integers(1, 3, N), 2) / 2,
        row=np.tile(np.arange(N), 2),
        fit=fit,
    )
    return tuple(CrossTerms.from_blocks(blocks, GROUPS.of_draws, C, is_sparse=k, **fields) for k in (False, True))


def test_sparse_terms_are_the_dense_ones(both):
    (dense, sparse), rng = both, np.random.default_rng(1)
    bias, weight = rng.normal(size=C), rng.normal(size=T)
    assert sparse.difference[0].nnz < dense.values[:, 0].size / 2
    for exponent in (0.0, 0.7):
        one, other = (terms.with_exponent(exponent, GROUPS.of_draws) for terms in both)
        np.testing.assert_allclose(other.scores(bias, weight), one.scores(bias, weight), rtol=1e-12)
        sums = (terms.sum_groups(GROUPS.index).values for terms in (other, one))
        np.testing.assert_allclose(*sums, rtol=1e-10)
        some = np.array([5, 2, 30])
        np.testing.assert_allclose(other.take(some).scores(bias, weight), one.scores(bias, weight)[some], rtol=1e-12)


@pytest.mark.parametrize("tau", [(0.0, 0.0), (0.3, 0.0), (1.0, 0.3)])
def test_lbfgs_finds_the_optimum_of_newtons_method(both, tau):
    """And an evidence that is not above the exact one, by Fischer's inequality; that is exact where τ = 0."""
    prior = WeightPrior(GROUPS, np.array(tau), C, biased=True)
    exact, found = (maximize(terms, prior) for terms in both)
    for name in ("bias", "weight", "temperature"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), atol=1e-6)
    assert found.log_evidence <= exact.log_evidence + 1e-6
    if not any(tau):
        assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-6)
        np.testing.assert_allclose(found.sd, exact.sd, rtol=1e-6)
    start = exact.bias, exact.weight
    one, other = (held_out_log_losses(terms, prior, start, np.arange(terms.n_rows)) for terms in both)
    np.testing.assert_allclose(other, one, atol=1e-5)


@pytest.mark.parametrize("exponent", [0.0, 0.7])
def test_the_diagonal_is_that_of_the_hessian(both, exponent):
    """The curvature of each weight, by the dense Hessian."""
    dense, sparse = (terms.with_exponent(exponent, GROUPS.of_draws) for terms in both)
    rng = np.random.default_rng(2)
    bias, weight = rng.normal(size=C), rng.normal(size=T)
    expected = np.diagonal(Expansion.around(dense, bias, weight).curvature)[C - 1 :]
    np.testing.assert_allclose(sparse.curvature_by_term(bias, weight), expected, rtol=1e-10)


def words(n_words: int, n_rows: int = 60) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of words, 10 of which tell the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows)
    rate = np.full((2, n_words), 0.05)
    rate[1, :10] = 0.4
    return sp.csr_matrix((rng.random((n_rows, n_words)) < rate[y]).astype(float)), y


def test_words_have_a_weight_each(monkeypatch):
    """L-BFGS on a sparse matrix finds the optimum of Newton's method on the dense matrix."""
    monkeypatch.setattr(optimum, "GRID", ((0.3,),))
    X, y = words(40)
    dense = bnb.WeightedNB(bnb.BernoulliNB()).fit(X.toarray(), y)
    monkeypatch.setattr(cross_fitting, "MOST_TERMS", 39)
    nb = bnb.WeightedNB(bnb.BernoulliNB()).fit(X, y)
    np.testing.assert_allclose(nb.weight_, dense.weight_, atol=1e-5)
    assert nb.expected_log_loss_ == pytest.approx(dense.expected_log_loss_, abs=1e-4)


@pytest.mark.slow("fits thousands of weights to see a refusal")
def test_draws_of_so_many_weights_are_refused(monkeypatch):
    X, y = words(501)
    monkeypatch.setattr(optimum, "GRID", ((0.3,),))
    nb = bnb.WeightedNB(bnb.BernoulliNB()).fit(X, y)
    refused(r"WeightedNB has 501 weights, and at most 500 can be drawn\. Use weight_table", bnb.run_nuts, nb, X=X, y=y)
    assert len(bnb.weight_table(nb)) == 501
