"""Terms of a row's log-likelihood, against classifiers with fewer cells and refits."""

from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp

import bayesnb as bnb
from bayesnb.weights.terms import Terms
from tests.raises import refused
from tests.strategies import thorough
from tests.tables import ASKED, COUNTS, LABEL, LEVELS, NUMBERS, N, holed, in_shares, of_levels

NETWORK = {1: 0, 2: (0, 1)}
CELLS = {
    "categorical": (bnb.CategoricalNB(), holed(LEVELS)),
    "bernoulli": (bnb.BernoulliNB(), holed(LEVELS)),
    "gaussian": (bnb.GaussianNB(), holed(NUMBERS)),
    "gaussian, pooled": (bnb.GaussianNB(prior="pooled", estimate="mean"), NUMBERS),
    "gaussian, fixed": (bnb.GaussianNB(prior=bnb.NormalInverseGamma(0.0, 0.5, 2.0, 1.0)), NUMBERS),
    "poisson": (bnb.PoissonNB(), holed(COUNTS)),
    "negative binomial": (bnb.NegativeBinomialNB(), holed(COUNTS)),
    "exponential": (bnb.ExponentialNB(), abs(NUMBERS)),
    "mixed": (
        bnb.MixedNB(gaussian=[0, 1], poisson=[2], categorical=[3]),
        np.column_stack([NUMBERS[:, :2], COUNTS[:, :2]]),
    ),
    "averaged": (bnb.FeatureAveragedNB(), holed(LEVELS)),
    "averaged numbers": (bnb.FeatureAveragedNB(bnb.GaussianNB()), holed(NUMBERS)),
    "tree": (bnb.TAN(gaussian=None), LEVELS),
    "one parent": (bnb.SPODE(0, gaussian=None), LEVELS),
    "network": (bnb.NetworkNB(NETWORK, gaussian=None), LEVELS),
}


def without(nb, X, i):
    """The classifier after the row is forgotten: classes and levels stay, and derived priors are derived anew."""
    return copy(nb).forget(X[[i]], LABEL[[i]])


def by_cells(nb, row: np.ndarray) -> np.ndarray:
    """(C, F) log p(cells, the next one | class) - log p(cells | class), parents first: what each cell adds."""
    parents = getattr(nb, "parents_", {})
    names = list(nb.encoding_.blank("").names)
    order = []
    while len(order) < len(names):
        for j, name in enumerate(names):
            above = parents.get(name) or ()
            above = (above,) if isinstance(above, str) else above
            if j not in order and all(names.index(p) in order for p in above):
                order.append(j)
    seen, before = np.full((1, len(row)), np.nan), None
    found = np.empty((len(nb.classes_), len(row)))
    for j in [None, *order]:
        if j is not None:
            seen[0, j] = row[j]
        joint = nb.predict_joint_log_proba(seen)[0]
        if j is not None:
            found[:, j] = joint - before
        before = joint
    return found


def in_order(nb, terms: Terms) -> np.ndarray:
    """The terms in the order of the columns of X: they come one block after the other."""
    return terms.values[:, :, [terms.names.index(name) for name in nb.encoding_.blank("").names]]


@pytest.mark.slow("other variants compile kernels of their own", but=["categorical", "averaged"])
@pytest.mark.parametrize("kind", thorough(CELLS, ("categorical", "gaussian", "averaged", "network")))
def test_leave_one_out_terms_are_those_of_refits(kind):
    nb, X = CELLS[kind]
    nb.fit(X, LABEL)
    found = bnb.loo_terms(nb, X, LABEL)
    for i in range(0, N, 12):
        refit = without(nb, X, i)
        np.testing.assert_allclose(in_order(nb, found)[i], by_cells(refit, X[i]), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found.log_class_prior[i], refit.class_log_prior_, rtol=1e-12)
        np.testing.assert_allclose(bnb.terms(refit, X[[i]]).values[0], found.values[i], rtol=1e-10, atol=1e-10)


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", thorough(CELLS, ("categorical", "gaussian", "averaged", "network")))
def test_they_add_up(kind):
    nb, X = CELLS[kind]
    nb.fit(X, LABEL)
    np.testing.assert_allclose(bnb.terms(nb, X[ASKED]).joint(), nb.predict_joint_log_proba(X[ASKED]), rtol=1e-12)
    left_out = bnb.loo_terms(nb, X, LABEL).joint()
    expected = left_out - np.logaddexp.reduce(left_out, axis=1, keepdims=True)
    np.testing.assert_allclose(bnb.loo(nb, X, LABEL).log_proba, expected, rtol=1e-10, atol=1e-12)


WHOLE = {
    "multinomial": (bnb.MultinomialNB(), COUNTS),
    "multinomial, plugged in": (bnb.MultinomialNB(estimate="mean"), COUNTS),
    "sparse": (bnb.MultinomialNB(), sp.csr_array(COUNTS)),
}


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize(("nb", "X"), WHOLE.values(), ids=WHOLE)
def test_what_is_no_sum_over_columns_is_one_term(nb, X):
    nb.fit(X, LABEL)
    found = bnb.loo_terms(nb, X, LABEL)
    assert found.values.shape == (N, 3, 1)
    for i in (0, 7):
        refit = without(nb, X, i)
        alone = refit.predict_joint_log_proba(X[[i]])[0] - refit.class_log_prior_
        np.testing.assert_allclose(found.values[i, :, 0], alone, rtol=1e-10)


@pytest.mark.slow("compiles kernels of its own")
def test_terms_of_an_average_are_its_members():
    nb = bnb.AODE(gaussian=None).fit(LEVELS, LABEL)
    found = bnb.loo_terms(nb, LEVELS, LABEL)
    assert found.names == ("0", "1", "2", "3")
    for i in (0, 7):
        refit = without(nb, LEVELS, i)
        alone = [m.predict_joint_log_proba(LEVELS[[i]])[0] for m in refit.members_]
        expected = np.stack(alone, axis=1) - refit.class_log_prior_[:, None]
        np.testing.assert_allclose(found.values[i], expected, rtol=1e-10)


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.parametrize("nb", [bnb.SPODE(0, gaussian=None), bnb.NetworkNB(NETWORK, gaussian=None)])
def test_what_is_summed_out_is_shared_by_its_columns(nb):
    """The sum over a missing parent is no sum of terms; its logarithm is, all the same."""
    X = LEVELS.copy()
    X[::3, 0] = np.nan
    nb.fit(X, LABEL)
    found = bnb.terms(nb, X)
    np.testing.assert_allclose(found.joint(), nb.predict_joint_log_proba(X), rtol=1e-12)
    children = [found.names.index(name) for name, above in nb.parents_.items() if above and "0" in above]
    np.testing.assert_allclose(found.values[0][:, children[:1]], found.values[0][:, children[1:2]])


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("weight", [2.0, np.resize([1.0, 0.5], N)], ids=["one", "several"])
def test_a_weighted_row_is_left_out_whole(weight):
    weight = np.broadcast_to(weight, N)
    nb = bnb.CategoricalNB().fit(LEVELS, LABEL, weight)
    found = bnb.loo_terms(nb, LEVELS, LABEL, weight)
    refit = copy(nb).forget(LEVELS[[3]], LABEL[[3]], weight[[3]])
    np.testing.assert_allclose(bnb.terms(refit, LEVELS[[3]]).values[0], found.values[3], rtol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("estimate", ["mle", "map", "mean", "predictive"])
def test_every_reading_has_terms(estimate):
    nb = bnb.GaussianNB().fit(NUMBERS, LABEL)
    joint = nb.predict_joint_log_proba(NUMBERS, estimate=estimate)
    np.testing.assert_allclose(bnb.terms(nb, NUMBERS, estimate=estimate).joint(), joint, rtol=1e-12)


def test_names_and_arrays():
    found = bnb.terms(of_levels(), LEVELS[:2])
    assert found.names == ("0", "1", "2", "3")
    assert found.classes.tolist() == ["ash", "elm", "oak"]
    assert np.asarray(found).shape == (2, 3, 4)
    assert repr(found) == "Terms(2 rows, 3 classes, 4 terms: 0, 1, 2, 3)"


def test_refusals():
    said = "loo_terms: X, y and sample_weight must be rows that nb was fitted"
    refused(said, bnb.loo_terms, of_levels(), LEVELS, LABEL[::-1])
    message = "estimate='mle' must be 'predictive' or 'mean': leave-one-out averages"
    refused(message, bnb.loo_terms, of_levels(), LEVELS, LABEL, estimate="mle")
    refused("loo_terms: .*counted by EM", bnb.loo_terms, in_shares(), COUNTS, LABEL, error=NotImplementedError)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("analysis", [bnb.loo_terms, bnb.conformal, bnb.loo])
def test_a_point_estimate_leaves_no_row_out(analysis):
    nb = bnb.NaiveBayesMixture(estimator=bnb.MultinomialNB(), n_init=1).fit(COUNTS)
    refused("NaiveBayesMixture has point estimates", analysis, nb, COUNTS, LABEL, error=NotImplementedError)
