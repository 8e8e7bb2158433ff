"""With α = 1, the class prior at its MLE and the mean plugged in, the classifiers are scikit-learn's."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import naive_bayes as sk
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import OrdinalEncoder

import bayesnb as bnb
from tests.data import arff, newsgroups
from tests.strategies import variants

PLUG_IN = {"class_alpha": 0, "estimate": "mean"}
# The improper limit, under which posterior means are maximum likelihood estimates.
LIMIT = bnb.NormalInverseGamma(loc=0.0, kappa=0.0, concentration=1.0, rate=0.0)


@cache
def digits():
    X, y = load_digits(return_X_y=True)
    return X, y


@cache
def real(name):
    """Real-valued features, none constant within a class."""
    if name == "digits":  # constant pixels have no density; see the test of zero variance
        X, y = digits()
        return X[:, np.all([X[y == c].var(axis=0) > 0 for c in np.unique(y)], axis=0)], y
    return {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}[name](return_X_y=True)


@cache
def car_codes():
    data = arff("car")
    return OrdinalEncoder(dtype=np.int64).fit_transform(data.X), data.y


def assert_same_joint(ours, theirs, rows, X, tolerance):
    joint = theirs.predict_joint_log_proba(X)
    np.testing.assert_allclose(ours.predict_joint_log_proba(rows), joint, rtol=1e-13, atol=tolerance)


def assert_same_predictions(ours, theirs, X, tolerance, form=np.asarray):
    """Compare predictions for the same rows; ours may take another container."""
    rows = form(X) if isinstance(X, np.ndarray) else X
    np.testing.assert_allclose(ours.predict_log_proba(rows), theirs.predict_log_proba(X), rtol=0, atol=tolerance)
    np.testing.assert_allclose(ours.predict_proba(rows), theirs.predict_proba(X), rtol=0, atol=tolerance)
    assert_same_joint(ours, theirs, rows, X, tolerance)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(X))


def assert_same_attributes(ours, theirs, names):
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.n_features_in_ == theirs.n_features_in_
    for name in names:
        mine, reference = getattr(ours, name), getattr(theirs, name)
        for a, b in zip(mine, reference, strict=True):  # features for the categorical, classes for the rest
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=name)


COUNTS = ["class_count_", "feature_count_", "class_log_prior_", "feature_log_prob_"]
CATEGORIES = ["class_count_", "category_count_", "class_log_prior_", "feature_log_prob_"]


# -- plain fits --------------------------------------------------------------------------------------


@pytest.mark.slow("folds of real tables")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (bnb.MultinomialNB(**PLUG_IN), sk.MultinomialNB()),
        (bnb.MultinomialNB(alpha=0.01, **PLUG_IN), sk.MultinomialNB(alpha=0.01)),
        (bnb.BernoulliNB(**PLUG_IN), sk.BernoulliNB()),
        (bnb.BernoulliNB(binarize=7.5, **PLUG_IN), sk.BernoulliNB(binarize=7.5)),
    ],
    ids=["multinomial", "multinomial-alpha", "bernoulli", "bernoulli-binarize"],
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.coo_array])
def test_digits(ours, theirs, form):
    X, y = digits()
    ours.fit(form(X), y)
    theirs.fit(X, y)
    assert_same_attributes(ours, theirs, COUNTS)
    assert_same_predictions(ours, theirs, X, 1e-10)
    assert_same_predictions(ours, theirs, X, 1e-10, form)


# Integers are the same levels as the floats that equal them, and words as good as codes.
CATEGORICAL = {
    "car, words": (car_codes, lambda X: arff("car").X, {}, {}),
    "car": (car_codes, np.asarray, {}, {}),
    "digits": (digits, np.asarray, {"categories": [range(17)] * 64}, {"min_categories": 17}),
    "digits, integers": (digits, lambda X: X.astype(np.int8), {"categories": [range(17)] * 64}, {"min_categories": 17}),
}


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.parametrize(("data", "form", "options", "reference"), CATEGORICAL.values(), ids=CATEGORICAL)
def test_categorical(data, form, options, reference):
    X, y = data()
    theirs = sk.CategoricalNB(**reference).fit(X, y)
    ours = bnb.CategoricalNB(**options, **PLUG_IN).fit(form(X), y)
    assert_same_attributes(ours, theirs, CATEGORIES)
    assert_same_predictions(ours, theirs, X, 1e-10, form)


@pytest.mark.slow("other variants compile kernels of their own", but="MultinomialNB")
@pytest.mark.parametrize("name", ["MultinomialNB", "BernoulliNB"])
def test_four_newsgroups(name):
    ours, theirs = getattr(bnb, name)(**PLUG_IN), getattr(sk, name)()
    ours.fit(*newsgroups("train"))
    theirs.fit(*newsgroups("train"))
    assert_same_attributes(ours, theirs, COUNTS)
    assert_same_joint(ours, theirs, newsgroups("test")[0], newsgroups("test")[0], 1e-10)


@variants("name", ["iris", "wine", "breast_cancer", "digits"])
def test_gaussian_at_the_mle(name):
    X, y = real(name)
    theirs = sk.GaussianNB(var_smoothing=0).fit(X, y)
    assert_same_predictions(bnb.GaussianNB(class_alpha=0, estimate="mle").fit(X, y), theirs, X, 1e-8)


@variants("name", ["iris", "wine", "breast_cancer", "digits"])
def test_gaussian_attributes_under_the_limit_prior(name):
    """`theta_` and `var_` are posterior means, so the improper limit prior makes them scikit-learn's."""
    X, y = real(name)
    theirs = sk.GaussianNB(var_smoothing=0).fit(X, y)
    ours = bnb.GaussianNB(prior=LIMIT, **PLUG_IN).fit(X, y)
    assert_same_attributes(ours, theirs, ["class_count_", "theta_", "var_"])
    np.testing.assert_allclose(np.exp(ours.class_log_prior_), theirs.class_prior_, rtol=1e-12)
    assert_same_predictions(ours, theirs, X, 1e-8)


@pytest.mark.slow("compiles kernels of its own")
def test_zero_variance_is_a_point_mass_and_not_scikit_learns():
    """Some pixels are zero in all images of a class: there scikit-learn divides zero by zero. Here a class
    is impossible (-inf) for a row off one of its point masses, else certain (+inf); a row is defined if one
    class alone is certain. Dropping the constant pixels is the remedy, or a proper prior."""
    X, y = digits()
    with np.errstate(all="ignore"):
        assert np.isnan(sk.GaussianNB(var_smoothing=0).fit(X, y).predict_joint_log_proba(X)).all()
    constant = np.array([X[y == c].var(axis=0) == 0 for c in range(10)])
    value = np.array([X[y == c].mean(axis=0) for c in range(10)])
    on_all = np.all(~constant | (X[:, None] == value), axis=2)
    assert constant.any(axis=1).all()
    ours = bnb.GaussianNB(class_alpha=0).fit(X, y)
    np.testing.assert_array_equal(ours.predict_joint_log_proba(X, estimate="mle"), np.where(on_all, np.inf, -np.inf))
    defined = on_all.sum(axis=1) == 1
    with pytest.warns(UserWarning, match=f"{(~defined).sum()} of {len(X)} rows"):
        proba = ours.predict_proba(X, estimate="mle")
    np.testing.assert_array_equal(proba[defined], on_all[defined].astype(float))
    assert np.isnan(proba[~defined]).all()
    assert np.isfinite(ours.predict_log_proba(X, estimate="predictive")).all()


# -- weights and chunks ------------------------------------------------------------------------------

CASES = {
    "multinomial": (bnb.MultinomialNB(**PLUG_IN), sk.MultinomialNB(), digits, 1e-10, COUNTS),
    "bernoulli": (bnb.BernoulliNB(binarize=4, **PLUG_IN), sk.BernoulliNB(binarize=4), digits, 1e-10, COUNTS),
    "categorical": (
        bnb.CategoricalNB(categories=[range(17)] * 64, **PLUG_IN),
        sk.CategoricalNB(min_categories=17),
        digits,
        1e-10,
        CATEGORIES,
    ),
    "gaussian": (
        bnb.GaussianNB(prior=LIMIT, **PLUG_IN),
        sk.GaussianNB(var_smoothing=0),
        lambda: real("digits"),
        1e-8,
        ["class_count_", "theta_", "var_"],
    ),
}


@pytest.mark.slow("other variants compile kernels of their own", but="integer-categorical")
@pytest.mark.parametrize(("ours", "theirs", "data", "tolerance", "attributes"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("kind", ["integer", "fractional"])
def test_sample_weight(ours, theirs, data, tolerance, attributes, kind):
    X, y = data()
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 5, len(y)) if kind == "integer" else rng.uniform(0.01, 3, len(y))
    ours.fit(X, y, sample_weight=weight)
    theirs.fit(X, y, sample_weight=weight)
    assert_same_attributes(ours, theirs, attributes)
    assert_same_joint(ours, theirs, X, X, tolerance)
