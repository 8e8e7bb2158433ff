"""Classifiers follow scikit-learn's conventions: checks, cloning, pipelines, metadata routing, column names."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayesnb as bnb
from tests.estimators.cases import CASES, each, state
from tests.raises import refused

SMALL = "random halves of so few rows: in another order, copies fall into others"
LATER = "partial_fit is there once fit has found the structure"
LEARNED = {"check_n_features_in_after_fitting": LATER}
HALVES = {f"check_sample_weight_equivalence_on_{kind}_data": SMALL for kind in ("dense", "sparse")}
DENSE = {"check_sample_weight_equivalence_on_dense_data": SMALL}
CHECKED = [
    *((nb, {}) for nb in (bnb.CategoricalNB(), bnb.BernoulliNB(), bnb.MultinomialNB(), bnb.GaussianNB())),
    *((nb, {}) for nb in (bnb.BinnedNB(), bnb.FeatureAveragedNB(), bnb.NaiveBayesMixture(n_init=1), bnb.AODE())),
    *((bnb.TreeAveragedNB(), {}), (bnb.MixedNB(), DENSE), (bnb.TAN(), LEARNED), (bnb.KDB(), LEARNED | DENSE)),
    *((bnb.WeightedNB(), LEARNED | HALVES), (bnb.WeightedNB(bnb.MultinomialNB()), HALVES)),
]


@pytest.mark.slow("scikit-learn's checks fit some sixty times")
@parametrize_with_checks(
    [nb for nb, _ in CHECKED],
    expected_failed_checks=lambda nb: next(fails for other, fails in CHECKED if repr(other) == repr(nb)),
)
def test_check_estimator(estimator, check):
    """Infinity is skipped where missing cells are allowed: test_bad_input has that.

    One classifier for each class that adds code of its own: other families of numbers differ in mathematics alone.
    """
    check(estimator)


# -- conventions -------------------------------------------------------------------------------------


@pytest.mark.slow("other variants compile kernels of their own", but="CategoricalNB")
@pytest.mark.parametrize(
    "nb",
    [
        bnb.GaussianNB(prior=bnb.NormalInverseGamma(np.zeros(4), np.ones(4), 2.0, np.ones(4))),
        bnb.PoissonNB(prior=bnb.GammaPoisson(2.0, 1.0)),
        bnb.NegativeBinomialNB(prior=bnb.BetaNegativeBinomial(2.0, 1.0), dispersion=[1.0, 2.0, 3.0, 4.0]),
        bnb.MultinomialNB(alpha=bnb.Dirichlet(np.full((1, 4), 0.5), np.zeros(4, int), 1)),
        bnb.CategoricalNB(alpha=np.array([1.0, 2.0, 0.5, 1.0]), class_prior=[0.2, 0.3, 0.5]),
    ],
    ids=lambda nb: type(nb).__name__,
)
def test_clone_with_distributions_and_arrays(nb):
    X, y = CASES[type(nb).__name__].X, CASES[type(nb).__name__].y
    expected = nb.fit(X, y).predict_log_proba(X)
    np.testing.assert_array_equal(clone(nb).fit(X, y).predict_log_proba(X), expected)


@each
def test_unfitted_use(case):
    for call in (
        *(lambda nb, X, y: nb.predict(X), lambda nb, X, y: nb.predict_proba(X)),
        *(lambda nb, X, y: nb.predict_log_proba(X), lambda nb, X, y: nb.predict_joint_log_proba(X)),
        *(lambda nb, X, y: nb.score(X, y), lambda nb, X, y: nb.forget(X, y), lambda nb, X, y: nb.decay(0.5)),
        *(lambda nb, X, y: nb.posterior_, lambda nb, X, y: nb.log_evidence_),
    ):
        refused(case.make.__name__, call, case.make(), case.X, case.y, error=(NotFittedError, AttributeError))


# -- meta-estimators ---------------------------------------------------------------------------------


@each
def test_pipeline_passes_weights_and_keywords(case):
    weight = np.random.default_rng(0).integers(1, 4, len(case.y))
    nb = case.fit()
    pipeline = Pipeline([("keep", "passthrough"), ("nb", case.make())])
    pipeline.fit(case.X, case.y, nb__sample_weight=weight)
    expected = nb.fit(case.X, case.y, sample_weight=weight).predict_proba(case.X, estimate="mle")
    np.testing.assert_array_equal(pipeline.predict_proba(case.X, estimate="mle"), expected)
    np.testing.assert_array_equal(pipeline.classes_, nb.classes_)


@each
@pytest.mark.filterwarnings("ignore:.*rows have no class probabilities:UserWarning")
def test_grid_search(case):
    grid = [{"estimate": ["mle", "map", "mean", "predictive"]}, {"class_alpha": [0.5, 1.0]}]
    if "alpha" in case.make().get_params():
        grid.append({"alpha": [1.5, 5.0]})
    search = GridSearchCV(case.make(), grid, scoring="accuracy", error_score="raise", cv=2)
    search.fit(case.X, case.y)
    assert 0.4 < search.best_score_ <= 1
    assert search.best_estimator_.predict(case.X).shape == case.y.shape


# -- metadata routing --------------------------------------------------------------------------------


@each
def test_routing_of_sample_weight(case):
    weight = np.random.default_rng(0).integers(1, 5, len(case.y))
    expected = case.make().fit(case.X, case.y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        nb = case.make().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline("passthrough", nb).fit(case.X, case.y, sample_weight=weight)
        np.testing.assert_array_equal(pipeline.predict_proba(case.X), expected.predict_proba(case.X))
        assert pipeline.score(case.X, case.y, sample_weight=weight) == expected.score(case.X, case.y, weight)
        scores = cross_validate(nb, case.X, case.y, params={"sample_weight": weight}, cv=3, error_score="raise")
        search = GridSearchCV(nb, {"class_alpha": [1.0]}, cv=3, error_score="raise")
        search.fit(case.X, case.y, sample_weight=weight)
        np.testing.assert_array_equal(scores["test_score"].mean(), search.best_score_)
        np.testing.assert_array_equal(search.predict_proba(case.X), expected.predict_proba(case.X))


@each
def test_routing_to_the_other_methods(case):
    weight = np.ones(len(case.y))
    with sklearn.config_context(enable_metadata_routing=True):
        nb = case.make().set_partial_fit_request(sample_weight=True, classes=True)
        nb.set_predict_request(estimate=True, class_prior=True).set_predict_proba_request(estimate=True)
        nb.set_fit_request(sample_weight=False)
        pipeline = make_pipeline("passthrough", nb).fit(case.X, case.y)
        expected = case.fit()
        np.testing.assert_array_equal(
            pipeline.predict_proba(case.X, estimate="mean"), expected.predict_proba(case.X, estimate="mean")
        )
        np.testing.assert_array_equal(
            pipeline.predict(case.X, class_prior=[0.8, 0.1, 0.1]), expected.predict(case.X, class_prior=[0.8, 0.1, 0.1])
        )
        refused("sample_weight", pipeline.fit, case.X, case.y, sample_weight=weight, error=TypeError)


# -- DataFrames --------------------------------------------------------------------------------------


def frames(case):
    pandas = pd.DataFrame(case.X, columns=list("abcd"))
    return {"pandas": pandas, "polars": pl.DataFrame({name: pandas[name].to_numpy() for name in pandas})}


@each
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_data_frames_are_as_good_as_arrays(case, container):
    frame = frames(case)[container]
    nb = case.make().fit(frame, case.y)
    assert nb.feature_names_in_.tolist() == list("abcd")
    assert nb.n_features_in_ == 4
    expected = case.fit()
    np.testing.assert_array_equal(nb.predict_log_proba(frame), expected.predict_log_proba(case.X))
    for other in frames(case).values():
        np.testing.assert_array_equal(nb.predict(other), expected.predict(case.X))
    nb.partial_fit(frame, case.y)
    assert nb.feature_names_in_.tolist() == list("abcd")
    nb.forget(frame, case.y)
    np.testing.assert_allclose(nb.predict_log_proba(frame), expected.predict_log_proba(case.X), rtol=1e-10)


@each
@pytest.mark.parametrize("method", ["predict", "partial_fit", "forget"])
@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("names", "message"),
    [(["a", "b", "c", "e"], r"(?s)feature names should match.*\be\b.*\bd\b"), (["b", "a", "c", "d"], "same order")],
    ids=["other", "order"],
)
def test_wrong_names(case, method, container, names, message):
    nb = case.make().fit(frames(case)[container], case.y)
    frame = frames(case)[container]
    frame = (
        frame.set_axis(names, axis=1) if container == "pandas" else frame.rename(dict(zip("abcd", names, strict=True)))
    )
    before = state(nb)
    refused(message, getattr(nb, method), frame, *([] if method == "predict" else [case.y]))
    assert state(nb) == before


@each
def test_names_on_one_side_only_bring_scikit_learns_warning(case):
    frame = frames(case)["pandas"]
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        case.make().fit(frame, case.y).predict(case.X)
    with pytest.warns(UserWarning, match="X has feature names, but"):
        case.fit().predict(frame)


@pytest.mark.slow("other variants compile kernels of their own", but="CategoricalNB")
@pytest.mark.parametrize("name", ["CategoricalNB", "GaussianNB", "MixedNB"])
def test_sparse_input_is_refused_with_the_remedy(name):
    case = CASES[name]
    refused(r"(?s)Sparse.*toarray", case.make().fit, sp.csr_matrix(case.X), case.y, error=TypeError)
    refused(r"(?s)Sparse.*toarray", case.fit().predict, sp.csr_matrix(case.X), error=TypeError)
