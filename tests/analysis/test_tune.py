"""The tuned strength of a prior against SciPy's optimisers over refits."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.base import clone
from sklearn.datasets import load_iris

import bayesnb as bnb
from bayesnb.families import EmpiricalNormal
from tests.raises import refused
from tests.strategies import variants
from tests.tables import COUNTS, LABEL, LEVELS, N

WEIGHT = 1.0 + np.arange(N) % 2


def objective(nb, X, y, by, weight=None):
    return nb.log_evidence_ if by == "evidence" else bnb.loo(nb, X, y, weight).elpd


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("by", ["loo", "evidence"])
@pytest.mark.parametrize(
    ("nb", "X"),
    [
        (bnb.CategoricalNB(class_alpha=2.0), LEVELS),
        pytest.param(bnb.MultinomialNB(), COUNTS, marks=pytest.mark.slow),
        pytest.param(bnb.BernoulliNB(), COUNTS > 1, marks=pytest.mark.slow),
    ],
)
def test_alpha_is_the_optimum_over_refits(nb, X, by):
    found = bnb.tune_alpha(nb.fit(X, LABEL, WEIGHT), X, LABEL, by=by, sample_weight=WEIGHT)

    def loss(log_alpha):
        refit = clone(nb).set_params(alpha=np.exp(log_alpha)).fit(X, LABEL, WEIGHT)
        return -objective(refit, X, LABEL, by, WEIGHT)

    best = minimize_scalar(loss, bounds=np.log([0.01, 100]), method="bounded", options={"xatol": 1e-6})
    assert found.objective == pytest.approx(-best.fun, rel=1e-7)
    assert found.alpha == pytest.approx(np.exp(best.x), rel=2e-3)
    assert found.boundary == ()
    assert found.estimator.alpha == found.alpha
    assert objective(found.estimator, X, LABEL, by, WEIGHT) == pytest.approx(found.objective, rel=1e-10)
    assert nb.alpha == 1.0
    assert found.path["objective"].max() == found.objective


@pytest.mark.parametrize("by", ["loo", "evidence"])
def test_gaussian_strength_is_the_optimum_over_refits(by):
    X, y = load_iris(return_X_y=True)
    nb = bnb.GaussianNB().fit(X, y)
    found = bnb.tune_alpha(nb, X, y, by=by)

    def loss(log_values):
        prior = EmpiricalNormal("within", *np.exp(log_values))
        return -objective(bnb.GaussianNB(prior=prior).fit(X, y), X, y, by)

    best = minimize(loss, np.log(list(found.values.values())), method="Nelder-Mead", options={"maxfev": 80})
    assert found.objective == pytest.approx(-best.fun, abs=1e-4)
    assert objective(found.estimator, X, y, by) == pytest.approx(found.objective, rel=1e-9)


def test_an_optimum_at_the_end_of_the_interval_is_reported():
    """Levels that say nothing of the class: the larger α, the better."""
    X, y = np.tile([["u"], ["v"]], (50, 1)), np.repeat([0, 1], 50)
    nb = bnb.CategoricalNB().fit(X, y)
    with pytest.warns(UserWarning, match=r"the optimum by evidence is at an end of bounds=.*alpha = 50"):
        found = bnb.tune_alpha(nb, X, y, by="evidence", bounds=(1e-3, 50.0))
    assert found.boundary == ("alpha",)
    assert found.alpha == pytest.approx(50.0)
    assert "at the end of the interval: alpha" in repr(found)


@variants(
    ("nb", "options", "error", "message"),
    [
        (bnb.MultinomialNB(), {"by": "accuracy"}, ValueError, "by='accuracy'"),
        (bnb.MultinomialNB(), {"tune": ["kappa"]}, ValueError, r"must be one or more of \['alpha', 'class_alpha'\]"),
        (bnb.MultinomialNB(), {"bounds": (0, 1)}, ValueError, r"bounds=\(0, 1\) must be two numbers"),
        (bnb.MultinomialNB(alpha=np.full(4, 0.5)), {}, ValueError, "(?s)alpha=.* must be one positive number"),
        (bnb.PoissonNB(), {"tune": "kappa"}, ValueError, r"must be one or more of \['class_alpha', 'a'\]"),
        (bnb.PoissonNB(prior=bnb.GammaPoisson(0.0, 0.0)), {}, ValueError, "is not finite for any strength of a\\."),
        (bnb.FeatureAveragedNB(bnb.BernoulliNB(binarize=1.0)), {}, NotImplementedError, "Tune that estimator first"),
    ],
)
def test_what_is_refused(nb, options, error, message):
    refused(message, bnb.tune_alpha, nb.fit(COUNTS, LABEL), COUNTS, LABEL, error=error, **options)


def test_rows_that_were_not_counted_are_refused():
    nb = bnb.MultinomialNB().fit(COUNTS, LABEL)
    refused("tune_alpha: X, y and sample_weight must be rows", bnb.tune_alpha, nb, COUNTS + 50, LABEL)


def test_without_an_observed_level_there_is_nothing_to_condense():
    X = np.full((N, 4), np.nan)
    nb = bnb.CategoricalNB(categories=[[0, 1], *[[0, 1, 2]] * 3]).fit(X, LABEL)
    assert bnb.tune_alpha(nb, X, LABEL, by="evidence").objective == pytest.approx(nb.log_evidence_)


def test_a_given_prior_of_the_classes_is_not_tuned():
    nb = bnb.CategoricalNB(class_prior=bnb.Dirichlet(np.ones((1, 3)), np.zeros(3, int), 1)).fit(LEVELS, LABEL)
    said = r"tune='class_alpha' must be one or more of \['alpha'\]"
    refused(said, bnb.tune_alpha, nb, LEVELS, LABEL, by="evidence", tune="class_alpha")
