"""Latent class models against scikit-learn's Gaussian mixture, sums by hand and simulated classes."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import norm, poisson
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

import bayesnb as bnb
from bayesnb import NaiveBayesMixture
from tests.estimators.cases import CASES
from tests.raises import refused
from tests.strategies import thorough, variants

FLAT = bnb.NormalInverseGamma(0.0, 0.0, -1.5, 0.0)  # under which the mode is the maximum likelihood estimate


def three_gaussians(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    label = rng.choice(3, n, p=[0.2, 0.3, 0.5])
    return rng.normal(np.array([[0.0, 0], [4, 1], [1, 5]])[label], np.array([[1, 0.5], [0.7, 1], [1, 1]])[label]), label


def latent_classes(n: int = 1000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eight items of three levels, of three classes; and p(level | class, item)."""
    rng = np.random.default_rng(1)
    theta = rng.dirichlet([0.5, 0.5, 0.5], (3, 8))
    label = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    X = (rng.random((n, 8, 1)) > theta[label].cumsum(axis=2)).sum(axis=2).clip(max=2)
    return X, label, theta


def matched(found: np.ndarray, truth: np.ndarray, k: int) -> tuple[float, list[int]]:
    """Agreement under the best naming of the components; and which class each is."""
    names = [list(p) for p in itertools.permutations(range(k))]
    agreement = [np.mean(np.array(p)[found] == truth) for p in names]
    return max(agreement), names[int(np.argmax(agreement))]


# -- other people's numbers ---------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_maximum_likelihood_is_that_of_scikit_learn():
    X, _ = three_gaussians()
    theirs = GaussianMixture(3, covariance_type="diag", reg_covar=0, tol=1e-12, max_iter=5000, random_state=0).fit(X)
    nb = bnb.GaussianNB(prior=FLAT, class_alpha=0, estimate="map")
    ours = NaiveBayesMixture(3, estimator=nb, tol=1e-12, max_iter=5000).fit(X)
    order, other = np.argsort(ours.weights_), np.argsort(theirs.weights_)
    np.testing.assert_allclose(ours.weights_[order], theirs.weights_[other], rtol=1e-5)
    posterior = ours.estimator_.posterior_.blocks[0]
    np.testing.assert_allclose(posterior.loc[order], theirs.means_[other], rtol=1e-4, atol=1e-5)
    variance = posterior.rate / (posterior.concentration + 1.5)
    np.testing.assert_allclose(variance[order], theirs.covariances_[other], rtol=1e-4)
    np.testing.assert_allclose(ours.lower_bound_, theirs.lower_bound_, rtol=1e-10)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-4)
    np.testing.assert_allclose(ours.score(X), theirs.score(X), rtol=1e-10)
    assert ours.n_parameters_ == theirs._n_parameters()
    np.testing.assert_allclose([ours.bic(X), ours.aic(X)], [theirs.bic(X), theirs.aic(X)], rtol=1e-10)
    np.testing.assert_allclose(ours.predict_proba(X)[:, order], theirs.predict_proba(X)[:, other], atol=1e-5)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize(
    "kind", thorough(["bernoulli", "poisson", "gaussian", "multinomial"], ["poisson", "multinomial"])
)
def test_scores_are_sums_by_hand(kind):
    rng = np.random.default_rng(2)
    X = rng.poisson(2.0, (40, 3)).astype(float)
    X = (X > 1) * 1.0 if kind == "bernoulli" else X
    estimator = {
        "bernoulli": bnb.BernoulliNB(alpha=0.5),
        "poisson": bnb.PoissonNB(),
        "gaussian": bnb.GaussianNB(),
        "multinomial": bnb.MultinomialNB(alpha=0.5),
    }[kind]
    mixture = NaiveBayesMixture(2, estimator=estimator, n_init=2, tol=1e-4).fit(X)
    posterior = mixture.estimator_.posterior_.blocks[0]
    if kind == "bernoulli":
        p = posterior.concentration[:, 1::2] / (posterior.concentration[:, 1::2] + posterior.concentration[:, ::2])
        cells = np.log(np.where(X[:, None], p, 1 - p)).sum(axis=2)
    elif kind == "poisson":
        cells = poisson.logpmf(X[:, None], posterior.concentration / posterior.rate).sum(axis=2)
    elif kind == "gaussian":
        sd = np.sqrt(posterior.rate / (posterior.concentration + 1.5))
        cells = norm.logpdf(X[:, None], posterior.loc, sd).sum(axis=2)
    else:
        theta = posterior.concentration / posterior.concentration.sum(axis=1, keepdims=True)
        cells = X @ np.log(theta).T + (gammaln(X.sum(axis=1) + 1) - gammaln(X + 1).sum(axis=1))[:, None]
    joint = np.log(mixture.weights_) + cells
    log_prob = logsumexp(joint, axis=1)
    np.testing.assert_allclose(mixture.score_samples(X), log_prob, rtol=1e-11)
    np.testing.assert_allclose(mixture.predict_proba(X), np.exp(joint - log_prob[:, None]), atol=1e-12)
    np.testing.assert_array_equal(mixture.predict(X), joint.argmax(axis=1))
    free = 1 + 2 * {"bernoulli": 3, "poisson": 3, "gaussian": 6, "multinomial": 2}[kind]
    assert mixture.n_parameters_ == free
    np.testing.assert_allclose(mixture.bic(X), -2 * log_prob.sum() + free * np.log(40), rtol=1e-12)
    np.testing.assert_allclose(mixture.aic(X), -2 * log_prob.sum() + 2 * free, rtol=1e-12)


# -- classes that are known ---------------------------------------------------------------------------


@pytest.mark.slow("simulates many data sets or draws")
def test_simulated_latent_classes_are_found():
    X, label, theta = latent_classes()
    mixture = NaiveBayesMixture(3, estimator=bnb.CategoricalNB(alpha=0.1), n_init=4).fit(X)
    assert mixture.converged_
    agreement, names = matched(mixture.predict(X), label, 3)
    # What the true parameters would give.
    best = (np.log([0.5, 0.3, 0.2]) + np.log(theta[:, np.arange(8), X]).sum(axis=2).T).argmax(axis=1)
    assert agreement >= np.mean(best == label) - 0.02
    found = np.stack([np.exp(p) for p in mixture.estimator_.feature_log_prob_], axis=1)
    np.testing.assert_allclose(found[np.argsort(names)], theta, atol=0.08)
    np.testing.assert_allclose(mixture.weights_[np.argsort(names)], [0.5, 0.3, 0.2], atol=0.06)
    bic = [NaiveBayesMixture(k, estimator=bnb.CategoricalNB(alpha=0.1), n_init=2).fit(X).bic(X) for k in (2, 3, 4)]
    assert np.argmin(bic) == 1


@pytest.mark.slow("compiles kernels of its own")
def test_rows_with_missing_cells_are_marginalised():
    X, label, _ = latent_classes(600)
    holes = X.astype(object)
    holes[np.random.default_rng(3).random(X.shape) < 0.2] = None
    mixture = NaiveBayesMixture(3, estimator=bnb.CategoricalNB(alpha=0.1), n_init=5).fit(holes)
    assert matched(mixture.predict(holes), label, 3)[0] > 0.85
    nothing = np.full((1, 8), None)
    np.testing.assert_allclose(mixture.predict_proba(nothing), mixture.weights_[None], rtol=1e-12)
    np.testing.assert_allclose(mixture.score_samples(nothing), 0.0, atol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_weights_are_replication():
    X, _, _ = latent_classes(60)
    estimator = bnb.CategoricalNB(categories=[[0, 1, 2]] * 8)
    patterns = pd.DataFrame(np.repeat(X, 3, axis=0)).value_counts(sort=False)
    table, frequency = np.array(patterns.index.tolist()), patterns.to_numpy()
    mixture = NaiveBayesMixture(2, estimator=estimator, n_init=1).fit(table, sample_weight=frequency)
    every = np.repeat(table, frequency, axis=0)
    np.testing.assert_allclose(mixture.score(table, sample_weight=frequency), mixture.score(every), rtol=1e-12)
    np.testing.assert_allclose(mixture.bic(table, sample_weight=frequency), mixture.bic(every), rtol=1e-12)
    np.testing.assert_allclose(mixture.estimator_.class_count_.sum(), 180, rtol=1e-12)


# -- conventions --------------------------------------------------------------------------------------


def test_the_bound_never_falls_and_the_best_start_is_kept():
    X = CASES["CategoricalNB"].X
    found = [NaiveBayesMixture(3, estimator=bnb.CategoricalNB(), n_init=n, seed=5).fit(X) for n in (1, 3)]
    for mixture in found:
        assert (np.diff(mixture.lower_bounds_) >= -1e-12 * abs(mixture.lower_bound_)).all()
        assert mixture.n_iter_ == len(mixture.lower_bounds_)
        assert mixture.lower_bound_ == mixture.lower_bounds_[-1]
    assert found[1].lower_bound_ >= found[0].lower_bound_
    again = clone(found[1]).fit(X)
    np.testing.assert_array_equal(again.predict_proba(X), found[1].predict_proba(X))


@pytest.mark.slow("compiles kernels of its own")
def test_components_have_no_posterior():
    X, _ = three_gaussians(60)
    mixture = NaiveBayesMixture(2, n_init=1).fit(X)
    assert mixture.estimator_.classes_.tolist() == [0, 1]
    refused("counted by EM", bnb.posterior_draws, mixture.estimator_, error=NotImplementedError)
    refused("counted by EM", getattr, mixture.estimator_, "log_evidence_", error=NotImplementedError)


@pytest.mark.slow("compiles kernels of its own")
def test_a_row_that_no_component_can_have():
    X = np.array([[2, 1, 0], [1, 2, 0], [3, 0, 0], [0, 3, 0]])
    mixture = NaiveBayesMixture(2, estimator=bnb.MultinomialNB(alpha=0), n_init=2).fit(X)
    row = np.array([[0, 0, 1]])
    assert mixture.score_samples(row) == -np.inf
    assert np.isnan(mixture.predict_proba(row)).all()
    with pytest.warns(UserWarning, match=r"1 of 1 rows have probability 0 in every component \(first: row 0\)"):
        assert mixture.predict(row) == mixture.weights_.argmax()


@variants(
    ("options", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components=0 must be"),
        ({"n_components": 9}, ValueError, r"n_components=9, but X has 8 row\(s\)"),
        ({"n_init": 0}, ValueError, "n_init=0 must be"),
        ({"max_iter": 0}, ValueError, "max_iter=0 must be"),
        ({"tol": -1}, ValueError, "tol=-1 must be"),
        ({"seed": None}, ValueError, "seed=None must be"),
        ({"estimator": GaussianMixture()}, ValueError, "must be a classifier of bayesnb"),
        (
            {"estimator": bnb.FeatureAveragedNB(bnb.GaussianNB())},
            NotImplementedError,
            "two models with different numbers",
        ),
        (
            {"estimator": bnb.AODE()},
            NotImplementedError,
            "needs a classifier with an exact posterior",
        ),
        ({"estimator": bnb.GaussianNB(class_prior=[0.2, 0.3, 0.5])}, ValueError, "Number of priors must match"),
    ],
)
def test_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    mixture = NaiveBayesMixture(2)
    refused(message, mixture.set_params(**options).fit, np.arange(16.0).reshape(8, 2), error=error)
    assert set(vars(mixture)) == set(mixture.get_params(deep=False))
    with pytest.raises(NotFittedError):
        mixture.predict(np.zeros((1, 2)))


@pytest.mark.slow("compiles kernels of its own")
def test_too_few_iterations_are_reported():
    X, _, _ = latent_classes(100)
    with pytest.warns(UserWarning, match="not converged after max_iter=2"):
        mixture = NaiveBayesMixture(3, estimator=bnb.CategoricalNB(), n_init=1, max_iter=2, tol=0).fit(X)
    assert not mixture.converged_
    assert mixture.n_iter_ == 2
