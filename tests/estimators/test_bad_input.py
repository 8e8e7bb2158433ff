"""Classifiers refuse bad input, name the argument and the value, and stay unchanged; edge cases are accepted."""

import copy
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import bayesnb as bnb
from tests.estimators.cases import CASES, N, each, some, state
from tests.strategies import thorough

COUNTING = ("fit", "partial_fit", "forget")
PREDICTING = ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba")
ROW, COLUMN = 17, 2  # where the offending cell is put
DTYPES = (float, np.int64, np.int8, object)
SPARSE = (sp.csr_matrix, sp.csc_array, sp.coo_matrix)
NUMBERS = ("MultinomialNB", "PoissonNB", "BernoulliNB", "GaussianNB")


def message_of(call, error=ValueError):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error) as caught:
            call()
    return str(caught.value)


def assert_says(message, *words):
    for word in words:
        assert re.search(word, message, re.IGNORECASE), f"{word!r} is not in: {message}"


def assert_refused(nb, method, *args, says=(), error=ValueError, good=None, **keywords):
    """The call raises, its message matches each of `says`, and the estimator is what it was."""
    before, predictions = state(nb), None if good is None else nb.predict_log_proba(good)
    assert_says(message_of(lambda: getattr(nb, method)(*args, **keywords), error), *says)
    assert state(nb) == before
    if good is not None:
        np.testing.assert_array_equal(nb.predict_log_proba(good), predictions)


def spoiled(X, value, form=float):
    """X with a bad cell, as an array of a dtype or as a sparse matrix."""
    X = X.astype(form if form in DTYPES else float)
    X[ROW, COLUMN] = value
    return X if form in DTYPES else form(X)


def plain(case, **options):
    """Options under which MixedNB does not choose between densities, which takes long and has tests of its own."""
    return options | ({"numbers": "gaussian"} if case.make is bnb.MixedNB else {})


def all_methods(case, X, *, says):
    """X is refused by everything that takes rows; a new estimator stays unfitted."""
    nb, y = case.fit(), case.y[: X.shape[0]]
    for method in PREDICTING:
        assert_refused(nb, method, X, says=says)
    for method in (*COUNTING, "score"):
        assert_refused(nb, method, X, y, says=says)
    np.testing.assert_array_equal(nb.predict_log_proba(case.X), case.fit().predict_log_proba(case.X))
    fresh = case.make()
    assert_refused(fresh, "fit", X, y, says=says)
    assert_refused(fresh, "partial_fit", X, y, classes=np.unique(case.y), says=says)
    assert not hasattr(fresh, "classes_")
    assert not hasattr(fresh, "n_features_in_")


def counting_refuses(nb, X, y, says, good, **keywords):
    """`fit`, `partial_fit` and `forget` raise, and the estimator is what it was."""
    predictions = None if good is None else nb.predict_log_proba(good)
    for method in COUNTING:
        assert_refused(nb, method, X, y, says=says, **keywords)
    if good is not None:
        np.testing.assert_array_equal(nb.predict_log_proba(good), predictions)


def table(names, rows):
    """A row of arguments for each id."""
    return pytest.mark.parametrize(names, rows.values(), ids=rows)


# -- cells and shapes --------------------------------------------------------------------------------

PLACE = (f"row {ROW}", "column '2'")


@each
@table(
    ("spoil", "says"),
    {
        "infinity": (lambda X: spoiled(X, np.inf), ("input X", "inf", *PLACE, "remove")),
        "minus infinity": (lambda X: spoiled(X, -np.inf), ("input X", "inf", *PLACE, "remove")),
        "complex": (lambda X: X.astype(complex), ("complex",)),
        "1D": (lambda X: X[:, 0], ("expected 2D array, got 1D array", "reshape")),
        "3D": (lambda X: X[None], ("dim 3",)),
        "no columns": (lambda X: X[:, :0], ("0 feature", "minimum of 1")),
    },
)
def test_what_no_classifier_reads(case, spoil, says):
    all_methods(case, spoil(case.X), says=says)


@each
def test_no_rows(case):
    """They cannot be fitted or predicted; counting or forgetting them changes nothing."""
    nb, X, y = case.fit(), case.X[:0], case.y[:0]
    for method, arguments in (*((method, (X,)) for method in PREDICTING), ("fit", (X, y)), ("score", (X, y))):
        assert_refused(nb, method, *arguments, says=("0 sample", "minimum of 1"))
    predictions = nb.predict_log_proba(case.X)
    for method in ("partial_fit", "forget"):
        if hasattr(nb, method):
            getattr(nb, method)(X, y)
            np.testing.assert_array_equal(nb.predict_log_proba(case.X), predictions)


# Classifiers of numbers; a cell; the tables with it, where a zero of a sparse matrix is a zero; what is said of it.
CELLS = (
    (("MultinomialNB",), np.nan, [float], ("input X", "nan", "impute|drop")),
    (("MultinomialNB",), None, [object], ("input X", "nan", "impute|drop")),
    (("MultinomialNB", "BernoulliNB"), np.nan, SPARSE, ("input X", "nan")),
    (("MultinomialNB", "BernoulliNB"), np.inf, SPARSE, ("input X", "inf")),
    (("MultinomialNB", "PoissonNB"), -3, DTYPES, ("negative", "-3", "at least 0")),
    (("MultinomialNB",), -3, [sp.csr_matrix, sp.csc_matrix], ("negative", "-3", "at least 0")),
    (NUMBERS, "tall", [object], ("input X", "'tall'", "encode")),
    (NUMBERS, 1j, [object], ("input X", "complex")),
    (NUMBERS, np.complex128(2j), [object], ("input X", "complex")),
)


@pytest.mark.slow("other variants compile kernels of their own", but="MultinomialNB")
@pytest.mark.parametrize(
    ("case", "value", "form", "says"),
    [
        pytest.param(CASES[name], value, form, says, id=f"{value}-{form.__name__}-{name}")
        for names, value, forms, says in CELLS
        for form in forms
        for name in names
    ],
)
def test_cells_that_are_no_such_numbers(case, value, form, says):
    all_methods(case, spoiled(case.X, value, form), says=(*says, *PLACE))


@some("BernoulliNB")
def test_cells_that_are_not_binary(case):
    nb = case.make(binarize=None).fit(case.X, case.y)
    for X in (spoiled(case.X, 2), spoiled(case.X, 0.5), spoiled(case.X, 2, sp.csr_matrix)):
        counting_refuses(nb, X, case.y, ("input X", r"\b(2|0\.5)", *PLACE, "binarize"), None)


@some("CategoricalNB", "MixedNB", quick=["CategoricalNB"])
def test_a_level_must_be_hashable(case):
    X = case.X.astype(object)
    X[ROW, COLUMN] = ["a list"]
    options = {"categorical": [0, 1, 2, 3]} if case.make is bnb.MixedNB else {}
    nb = case.make(**options).fit(case.X, case.y)
    counting_refuses(nb, X, case.y, ("input X", "a list", *PLACE, "hashable"), case.X, error=TypeError)


# -- labels ------------------------------------------------------------------------------------------


def with_sixth(y, value):
    y[5] = value
    return y


@each
@table(
    ("labels", "says"),
    {
        "none": (lambda y: None, ("requires y", "None")),
        "short": (lambda y: y[:-1], ("60", "59")),
        "long": (lambda y: np.append(y, y[:1]), ("60", "61")),
        "two columns": (lambda y: np.column_stack([y, y]), ("y should be a 1d array", r"\(60, 2\)")),
        "infinite": (lambda y: with_sixth(np.ones(N), np.inf), ("input y", "inf", "row 5")),
        "complex": (lambda y: np.ones(N) * 1j, ("complex",)),
        "continuous": (lambda y: np.linspace(0, 1, N), ("unknown label type: continuous",)),
    },
)
def test_what_cannot_be_labels(case, labels, says):
    counting_refuses(case.fit(), case.X, labels(case.y), says, case.X)


@each
@pytest.mark.parametrize("mark", [None, np.nan, pd.NA])
def test_missing_labels(case, mark):
    y = with_sixth(case.y.astype(object), mark)
    for labels in (y, pd.Series(y), y.tolist()):
        counting_refuses(case.fit(), case.X, labels, ("input y", "row 5", "drop|label it"), case.X)


@each
def test_the_first_partial_fit_needs_classes(case):
    assert_refused(case.make(), "partial_fit", case.X, case.y, says=("classes", "first call"))


@each
def test_labels_that_were_not_declared(case):
    says = ("'mid'", "row [0-9]+", "high.*low", r"partial_fit\(X, y, classes=")
    row = int(np.argmax(case.y == "mid"))
    nb = case.make(**plain(case))
    message = message_of(lambda: nb.partial_fit(case.X, case.y, classes=["high", "low"]))
    assert_says(message, *says, f"row {row}\\b")
    assert not hasattr(nb, "classes_")
    pair = case.y != "mid"
    nb.partial_fit(case.X[pair], case.y[pair], classes=["high", "low"])
    assert_refused(nb, "partial_fit", case.X, case.y, says=(*says, f"row {row}\\b"))
    nb.partial_fit(case.X, case.y, classes=["mid"])
    assert nb.classes_.tolist() == ["high", "low", "mid"]


@each
def test_forgetting_a_label_that_the_model_does_not_know(case):
    y = with_sixth(case.y.astype(object), "huge")
    assert_refused(case.fit(), "forget", case.X, y, says=("'huge'", "row 5", "high.*low.*mid"), good=case.X)


@each
@pytest.mark.parametrize("classes", [np.linspace(0, 1, 4), ["a", None], [["a", "b"]]])
def test_classes_that_cannot_be_labels(case, classes):
    assert_refused(case.make(), "partial_fit", case.X, case.y, classes=classes, says=("classes",))


# -- weights -----------------------------------------------------------------------------------------


@each
@table(
    ("weight", "says"),
    {
        "-1": (with_sixth(np.ones(N), -1), ("sample_weight", r"-1\.0", "row 5")),
        "nan": (with_sixth(np.ones(N), np.nan), ("sample_weight", "nan", "row 5")),
        "inf": (with_sixth(np.ones(N), np.inf), ("sample_weight", "inf", "row 5")),
        "all zero": (np.zeros(N), ("sample_weight", "zero", "at least one")),
        "zero": (0, ("sample_weight", "zero", "at least one")),
        "short": (np.ones(N - 1), ("sample_weight", "59", "60")),
        "two columns": (np.ones((N, 2)), ("sample_weight", "one weight for each row", r"\(60, 2\)")),
    },
)
def test_what_cannot_be_weights(case, weight, says):
    counting_refuses(case.fit(), case.X, case.y, says, case.X, sample_weight=weight)


# -- hyperparameters ---------------------------------------------------------------------------------


def assert_option_refused(case, options, *says, X=None):
    """Refused by `fit` and the first `partial_fit`, and by `fit` of a fitted estimator, which stays as it was."""
    X = case.X if X is None else X
    fresh = case.make(**options)
    assert_refused(fresh, "fit", X, case.y, says=says)
    assert_refused(fresh, "partial_fit", X, case.y, classes=np.unique(case.y), says=says)
    assert not hasattr(fresh, "classes_")
    fitted = case.fit(**plain(case)).set_params(**options)
    assert_refused(fitted, "fit", X, case.y, says=says)


LEVELS = {"CategoricalNB": [5, 5, 5, 5], "BernoulliNB": [2, 2, 2, 2], "MultinomialNB": [1, 1, 1, 1]}
discrete = some(*LEVELS, quick=["CategoricalNB"])


@discrete
@pytest.mark.parametrize("alpha", [-1, -1e-300, np.nan, np.inf])
def test_alpha_must_be_a_concentration(case, alpha):
    assert_option_refused(case, {"alpha": alpha}, r"\balpha\b", re.escape(str(alpha)), "finite", "at least 0")


@discrete
def test_a_bad_entry_of_alpha_is_named_as_it_was_given(case):
    assert_option_refused(case, {"alpha": [1, 1, -2, 1]}, r"\balpha\[2\]", "-2")
    sizes = LEVELS[case.make.__name__]
    flat = np.ones((3, sum(sizes)))
    flat[1, 2] = -2
    assert_option_refused(case, {"alpha": flat}, r"\balpha\[1, 2\]", "-2")
    if max(sizes) > 1:
        ragged = [np.ones(n) for n in sizes]
        ragged[2][1] = -2
        assert_option_refused(case, {"alpha": ragged}, r"\balpha\[2\]\[1\]", "-2")


@discrete
@table(
    "alpha",
    {
        "3": np.ones(3),
        "7": np.ones(7),
        "3x7": np.ones((3, 7)),
        "2x4": np.ones((2, 4)),
        "1x1x1": np.ones((1, 1, 1)),
        "list": [[1, 2], [3]],
        "long": [np.ones(9)] * 4,
        "Dirichlet": bnb.Dirichlet(np.ones((1, 7)), np.zeros(7, int), 1),
    },
)
def test_alpha_of_the_wrong_shape_is_told_the_right_one(case, alpha):
    total = sum(LEVELS[case.make.__name__])
    assert_option_refused(case, {"alpha": alpha}, r"\balpha\b", r"\(4,\)", rf"\(3, {total}\)")


def test_alpha_as_a_distribution_must_be_grouped_as_the_levels_are():
    X, y = np.array([[0, 0], [1, 1], [0, 2], [1, 0]]), list("abab")  # two levels and three
    for group in ([0, 0, 0, 1, 1], [0, 0, 0, 0, 0]):
        alpha = bnb.Dirichlet(np.ones((1, 5)), np.array(group), max(group) + 1)
        assert_refused(bnb.CategoricalNB(alpha=alpha), "fit", X, y, says=(r"\balpha\b", "group|level"))


CLASS_PRIORS = {
    "short": ([0.5, 0.5], (r"\(2,\)", r"\(3,\)")),
    "negative": ([0.5, 0.6, -0.1], (r"class_prior\[2\]", "-0.1", "non-negative")),
    "sum": ([0.5, 0.5, 0.5], ("1.5", "sum.* 1")),
    "nan": ([np.nan, 0.5, 0.5], (r"class_prior\[0\]", "nan")),
}
ESTIMATE = ("median", ("'median'", "mle.*map.*mean.*predictive"))


def class_dirichlet(concentration):
    return bnb.Dirichlet(concentration, np.zeros(concentration.shape[1], int), 1)


@each
@table(
    ("option", "value", "says"),
    {
        "class_alpha": ("class_alpha", -1, ("-1", "at least 0")),
        "class_alpha-entry": ("class_alpha", [1, 2, -1], (r"class_alpha\[2\]", "-1", "at least 0")),
        "class_alpha-nan": ("class_alpha", np.nan, ("nan", "finite")),
        "class_alpha-short": ("class_alpha", [1, 2], (r"\(2,\)", r"\(3,\)", "scalar")),
        "class_alpha-matrix": ("class_alpha", np.ones((3, 3)), (r"\(3, 3\)", r"\(3,\)")),
        **{f"class_prior-{name}": ("class_prior", *row) for name, row in CLASS_PRIORS.items()},
        "class_prior-Dirichlet-short": ("class_prior", class_dirichlet(np.ones((1, 2))), (r"\(3,\)",)),
        "class_prior-Dirichlet-negative": ("class_prior", class_dirichlet(-np.ones((1, 3))), ("-1", "at least 0")),
        "estimate": ("estimate", *ESTIMATE),
    },
)
def test_options_of_every_classifier(case, option, value, says):
    assert_option_refused(case, {option: value}, option, *says)


@each
@table(
    ("option", "value", "says"),
    {name: ("class_prior", *row) for name, row in CLASS_PRIORS.items()} | {"estimate": ("estimate", *ESTIMATE)},
)
def test_options_of_a_prediction(case, option, value, says):
    nb = case.fit()
    for method in PREDICTING:
        assert_refused(nb, method, case.X, says=(option, *says), **{option: value})


@each
@pytest.mark.parametrize("kind", ["name", "number", "family"])
def test_prior_of_another_kind(case, kind):
    """An unusable prior must not be ignored silently."""
    if case.make in (bnb.GaussianNB, bnb.PoissonNB):
        family = bnb.Dirichlet(np.ones((1, 4)), np.zeros(4, int), 1)
    else:
        family = bnb.NormalInverseGamma(0.0, 1.0, 1.0, np.ones(3))
    prior = {"name": "flat", "number": 3, "family": family}[kind]
    assert_option_refused(case, {"prior": prior}, r"\bprior\b")


@each
def test_prior_of_a_model_with_other_axes(case):
    two = case.y != "mid"
    smaller = case.make(**plain(case)).fit(case.X[two], case.y[two])
    assert_option_refused(case, {"prior": smaller.prior_}, r"\bprior\b", "2", "3")
    fewer = case.make(**plain(case)).fit(case.X[:, :3], case.y)
    assert_option_refused(case, {"prior": fewer.prior_}, r"\bprior\b")


def test_prior_of_a_model_whose_levels_are_grouped_otherwise():
    """Two and three levels are not three and two, though there are five of them."""
    y = np.array(["a", "b"] * 3)
    first, second = np.array([[0, 0], [1, 1], [0, 2]] * 2), np.array([[0, 0], [1, 1], [2, 0]] * 2)
    prior = bnb.CategoricalNB().fit(first, y).prior_
    assert_refused(bnb.CategoricalNB(prior=prior), "fit", second, y, says=(r"\bprior\b",))


@table(
    ("fields", "says"),
    {
        "kappa": ({"kappa": -1.0}, ("kappa", "-1", "at least 0")),
        "rate": ({"rate": -1.0}, ("rate", "-1", "at least 0")),
        "kappa-nan": ({"kappa": np.nan}, ("kappa", "nan")),
        "loc-nan": ({"loc": np.nan}, ("loc", "nan")),
        "a-nan": ({"concentration": np.nan}, ("concentration", "nan")),
        "a-inf": ({"concentration": np.inf}, ("concentration", "inf")),
        "shape": ({"rate": np.ones(3)}, ("rate", r"\(3,\)", r"\(4,\)", r"\(3, 4\)")),
        "matrix": ({"loc": np.ones((2, 4))}, ("loc", r"\(2, 4\)", r"\(4,\)", r"\(3, 4\)")),
    },
)
def test_normal_inverse_gamma_prior(fields, says):
    prior = bnb.NormalInverseGamma(**({"loc": 0.0, "kappa": 1.0, "concentration": 2.0, "rate": 1.0} | fields))
    assert_option_refused(CASES["GaussianNB"], {"prior": prior}, r"\bprior\b", *says)
    options = {"gaussian_prior": prior, "numbers": "gaussian"}
    assert_option_refused(CASES["MixedNB"], options, r"\bgaussian_prior\b", *says)


@table(
    ("fields", "says"),
    {
        "negative": ({"concentration": -1.0}, ("concentration", "-1", "at least 0")),
        "nan": ({"rate": np.nan}, ("rate", "nan")),
        "shape": ({"rate": np.ones(3)}, ("rate", r"\(3,\)", r"\(4,\)", r"\(3, 4\)")),
    },
)
def test_gamma_poisson_prior(fields, says):
    prior = bnb.GammaPoisson(**({"concentration": 1.0, "rate": 1.0} | fields))
    assert_option_refused(CASES["PoissonNB"], {"prior": prior}, r"\bprior\b", *says)
    options = {"poisson_prior": prior, "poisson": [0, 1, 2, 3]}
    assert_option_refused(CASES["MixedNB"], options, r"\bpoisson_prior\b", *says, X=CASES["PoissonNB"].X)


OF_LEVELS = {
    "unknown": ({"handle_unknown": "drop"}, ("handle_unknown", "'drop'", "ignore.*error.*level")),
    "name": ({"categories": "all"}, ("categories", "'all'", "'auto'")),
    "length": ({"categories": [[0, 1]]}, ("categories", r"\b1\b", r"\b4\b")),
    "feature": ({"categories": {"weight": [0, 1]}}, ("categories", "'weight'", "there is no column")),
    "empty": ({"categories": [[], [0], [0], [0]]}, ("categories", "no level", "'0'")),
}
CATEGORICAL = {"categorical": [0, 1, 2, 3]}


@table(
    ("name", "options", "says"),
    {
        "within": ("GaussianNB", {"prior": "flat"}, (r"\bprior\b", "'flat'", "'within', 'pooled'")),
        "pooled": ("PoissonNB", {"prior": "within"}, (r"\bprior\b", "'within'", "'pooled'")),
        "mixed": ("MixedNB", {"gaussian_prior": "flat"}, (r"\bgaussian_prior\b", "'flat'", "'pooled'")),
        "column": ("MixedNB", {"categorical": ["age"]}, ("categorical", "'age'", "there is no column")),
        "position": ("MixedNB", {"poisson": [7]}, ("poisson", r"\b7\b", "there is no column")),
        "two kinds": ("MixedNB", {"gaussian": [1], "bernoulli": [1, 2]}, ("'1'", "gaussian.*bernoulli")),
        "twice": ("MixedNB", {"categorical": [0, 0]}, ("categorical", "'0'", "twice")),
        "marks": ("CategoricalNB", {"missing_values": [["?"]]}, ("missing_values", r"\['\?'\]", "cell")),
        "number": ("CategoricalNB", {"categories": 3}, ("categories=3", "auto", "dict")),
        "numbers": ("CategoricalNB", {"categories": [3, 4, 5, 6]}, ("categories", "feature '0'", "list")),
        "texts": ("CategoricalNB", {"categories": ["ab", "cd"] * 2}, ("categories", "feature '0'", "'ab'")),
        **{name: ("CategoricalNB", *row) for name, row in OF_LEVELS.items()},
        **{f"{name}-mixed": ("MixedNB", CATEGORICAL | row[0], row[1]) for name, row in OF_LEVELS.items()},
    },
)
def test_options_of_one_classifier(name, options, says):
    assert_option_refused(CASES[name], options, *says)


@each
@pytest.mark.parametrize("factor", [0, -1, 1.5, np.nan, np.inf])
def test_decay_factor(case, factor):
    says = ("factor", re.escape(str(factor)), r"\(0, 1\]")
    assert_refused(case.fit(), "decay", factor, says=says, good=case.X)


# -- forgetting what was never counted ---------------------------------------------------------------


@each
def test_forgetting_more_rows_than_were_counted(case):
    nb = case.fit()
    says = ("forget", "negative", "class 'high'", "nothing was changed|left as")
    assert_refused(nb, "forget", case.X, case.y, sample_weight=2, says=says, good=case.X)
    assert_refused(nb, "forget", case.X, case.y, sample_weight=1 + 1e-6, says=says, good=case.X)


@some("CategoricalNB", "BernoulliNB", "MultinomialNB", "PoissonNB", quick=["CategoricalNB"])
def test_forgetting_cells_that_were_never_counted(case):
    """In class "high" the third feature never takes its largest value."""
    X = case.X.copy()
    X[case.y == "high", COLUMN] = 0
    top = X[:, COLUMN].max()
    nb = case.make().fit(X, case.y)
    rows = X[case.y == "high"][1:]
    rows[0, COLUMN] = top
    says = ("negative", "class 'high'", "column '2'")
    assert_refused(nb, "forget", rows, ["high"] * len(rows), says=says, good=X)


@some("GaussianNB")
def test_forgetting_an_outlier_that_was_never_counted(case):
    rows = case.X[case.y == "high"][1:]
    rows[0, COLUMN] = 50.0
    says = ("negative", "class 'high'", "column '2'")
    assert_refused(case.fit(), "forget", rows, ["high"] * len(rows), says=says, good=case.X)


@some("CategoricalNB")
def test_forgetting_a_level_that_was_never_seen(case):
    for unknown in ("ignore", "error", "level"):
        nb = case.make(handle_unknown=unknown).fit(case.X, case.y)
        says = ("'?never'?", f"row {ROW}", "column '2'")
        assert_refused(nb, "forget", spoiled(case.X, "never", object), case.y, says=says, good=case.X)


# -- the ends of float64 -----------------------------------------------------------------------------


@some("GaussianNB", "MixedNB", quick=["GaussianNB"])
@pytest.mark.parametrize("value", [1e300, -1e160, 1.7e308])
def test_values_whose_squares_overflow_cannot_be_counted(case, value):
    nb = case.fit()
    says = ("input X", "column '2'", f"class '{case.y[ROW]}'", "too large", "rescale")
    for method in ("fit", "partial_fit"):
        assert_refused(nb, method, spoiled(case.X, value), case.y, says=says, good=case.X)


@some("GaussianNB")
def test_values_whose_squares_underflow_cannot_be_counted(case):
    """Otherwise the variance would be zero, and each value a point mass."""
    X = case.X.copy()
    X[:, COLUMN] *= 1e-200
    says = ("input X", "column '2'", "too small", "rescale")
    assert_refused(case.fit(), "fit", X, case.y, says=says, good=case.X)
    assert_refused(case.make(), "partial_fit", X, case.y, classes=np.unique(case.y), says=says)


@some("GaussianNB", "MixedNB", quick=["GaussianNB"])
@pytest.mark.parametrize("value", [1e300, -1e300, 1.7e308, 1e-300, 5e-324])
def test_predictive_is_finite_to_the_ends_of_float64(case, value):
    """The tails of Student's t fall so slowly that no number is impossible."""
    joint = case.fit().predict_joint_log_proba(spoiled(case.X, value))
    assert np.isfinite(joint).all()
    a = case.fit().posterior_.blocks[0].concentration[:, COLUMN]
    if abs(value) > 1e200:  # log density ≈ -(2a + 1) log|x|: ten times farther costs (2a + 1) log 10
        nearer = case.fit().predict_joint_log_proba(spoiled(case.X, value / 10))
        np.testing.assert_allclose((nearer - joint)[ROW], (2 * a + 1) * math.log(10), rtol=1e-9)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@some("GaussianNB")
@pytest.mark.parametrize("estimate", ["mle", "map", "mean"])
def test_plug_in_of_a_value_beyond_all_classes_is_undefined_and_not_nan_in_silence(case, estimate):
    nb = case.fit()
    X = spoiled(case.X, 1e300)
    assert np.isneginf(nb.predict_joint_log_proba(X, estimate=estimate)[ROW]).all()
    with pytest.warns(UserWarning, match=f"1 of 60 rows.*row {ROW}"):
        proba = nb.predict_proba(X, estimate=estimate)
    assert np.isnan(proba[ROW]).all()
    assert np.isfinite(np.delete(proba, ROW, axis=0)).all()


# -- what must not be refused ------------------------------------------------------------------------


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@each
@pytest.mark.parametrize("estimate", thorough(["mle", "map", "mean", "predictive"], ["mle", "predictive"]))
def test_one_class_only_has_probability_one(case, estimate):
    nb = case.make(estimate=estimate).fit(case.X, np.full(N, "only"))
    assert nb.classes_.tolist() == ["only"]
    if case.make in (bnb.CategoricalNB, bnb.BernoulliNB, bnb.MultinomialNB, bnb.PoissonNB) and estimate == "map":
        nb.set_params(**({"alpha": 2.0} if "alpha" in nb.get_params() else {}))
    np.testing.assert_array_equal(nb.predict_proba(case.X), np.ones((N, 1)))
    np.testing.assert_array_equal(nb.predict_log_proba(case.X), np.zeros((N, 1)))
    assert set(nb.predict(case.X)) == {"only"}
    assert np.isfinite(nb.log_evidence_)


@each
@pytest.mark.parametrize("value", [0, 1, 3])
def test_constant_features(case, value):
    X = case.X.copy()
    X[:, COLUMN] = value
    nb = case.make().fit(X, case.y)
    for estimate in ("mean", "predictive"):
        assert np.isfinite(nb.predict_log_proba(X, estimate=estimate)).all()
    assert np.isfinite(nb.log_evidence_)
    constant = np.full_like(case.X, value)  # the classes are equally frequent, and nothing tells them apart
    proba = case.make().fit(constant, case.y).predict_proba(constant)
    np.testing.assert_allclose(proba, 1 / 3, rtol=1e-9)


@each
def test_a_declared_class_without_rows(case):
    rows = case.y != "mid"
    X, y = case.X[rows], case.y[rows]
    nb = case.make(**plain(case)).partial_fit(X, y, classes=["high", "low", "mid"])
    assert nb.class_count_[2] == 0
    proba = nb.predict_proba(X)
    assert np.isfinite(proba).all()
    assert (proba[:, 2] > 0).all()
    assert np.isfinite(nb.log_evidence_)
    # At the MLE it has no share, and what is undefined in it does not matter to the others.
    others = case.fit(**plain(case)).predict_proba(X, estimate="mle")[:, :2]
    mle = nb.predict_proba(X, estimate="mle")
    np.testing.assert_array_equal(mle[:, 2], 0)
    np.testing.assert_allclose(mle[:, :2], others / others.sum(axis=1, keepdims=True), rtol=1e-12)


def recorded(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(w.message) for w in caught]


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize(
    ("nb", "X", "impossible"),
    [
        (bnb.CategoricalNB(), [["x", "p"], ["x", "p"], ["y", "q"]], [["x", "q"], ["y", "p"]]),
        (bnb.BernoulliNB(), [[1, 0], [1, 0], [0, 1]], [[1, 1], [0, 0]]),
        (bnb.MultinomialNB(), [[3, 0], [2, 0], [0, 2]], [[1, 1], [2, 1]]),
        (bnb.PoissonNB(), [[3, 0], [2, 0], [0, 2]], [[1, 1], [2, 1]]),
        (bnb.GaussianNB(), [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]], [[1.0, 4.0], [2.0, 2.0]]),
    ],
    ids=lambda v: type(v).__name__ if hasattr(v, "fit") else "",
)
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba", "predict"])
def test_rows_that_are_impossible_under_the_mle(nb, X, impossible, method):
    """NaN probabilities, the most probable class a priori, and exactly one warning with their number."""
    nb.fit(X, ["often", "often", "seldom"])
    rows = [X[0], *impossible, X[2]]
    result, messages = recorded(lambda: getattr(nb, method)(rows, estimate="mle"))
    assert len(messages) == 1
    assert_says(messages[0], "2 of 4 rows", "row 1", "NaN", "predictive")
    if method == "predict":
        assert result.tolist() == ["often", "often", "often", "seldom"]
    else:
        assert np.isnan(result[1:3]).all()
        expected = np.array([[1.0, 0.0], [0.0, 1.0]])
        if method == "predict_log_proba":
            expected = np.log(expected, where=expected > 0, out=np.full((2, 2), -np.inf))
        np.testing.assert_array_equal(result[[0, 3]], expected)
    assert recorded(lambda: getattr(nb, method)(rows, estimate="mean"))[1] == []


def test_the_class_of_an_undefined_row_is_the_most_probable_of_the_given_prior():
    nb = bnb.CategoricalNB(estimate="mle").fit([["x", "p"], ["x", "p"], ["y", "q"]], ["often", "often", "seldom"])
    with pytest.warns(UserWarning, match="1 of 1 rows"):
        assert nb.predict([["x", "q"]], class_prior=[0.1, 0.9]).tolist() == ["seldom"]


@each
def test_warnings_point_to_the_line_of_the_user(case):
    """A warning that blames a line of the library cannot be found, nor silenced by module."""
    X = np.array([[1, 0], [1, 0], [0, 1]])
    nb = case.make().fit(X.astype(case.X.dtype), ["often", "often", "seldom"])
    row = np.array([[1, 1]], case.X.dtype)
    for method in ("predict", "predict_proba", "predict_log_proba"):
        with pytest.warns(UserWarning, match="1 of 1 rows") as caught:
            getattr(nb, method)(row, estimate="mle")
        assert [w.filename for w in caught] == [__file__]
    with pytest.warns(UserWarning, match="1 of 1 rows") as caught:
        nb.score(row, ["often"], estimate="mle")
    assert [w.filename for w in caught] == [__file__]


@pytest.mark.slow("other variants compile kernels of their own", but="CategoricalNB")
@pytest.mark.parametrize(
    "nb",
    [
        bnb.CategoricalNB(alpha=0),
        bnb.BernoulliNB(alpha=0),
        bnb.MultinomialNB(alpha=0),
        bnb.MultinomialNB(alpha=[0, 1, 1, 1]),
        bnb.BernoulliNB(alpha=[[0, 1], [1, 1], [1, 1], [1, 1]]),
        bnb.GaussianNB(prior=bnb.NormalInverseGamma(0.0, 0.0, 1.0, 0.0)),
        bnb.GaussianNB(prior=bnb.NormalInverseGamma(0.0, 1.0, 1.0, 0.0)),
        bnb.GaussianNB(prior=bnb.NormalInverseGamma(0.0, 1.0, -1.5, 1.0)),
        bnb.PoissonNB(prior=bnb.GammaPoisson(0.0, 0.0)),
        bnb.PoissonNB(prior=bnb.GammaPoisson(1.0, 0.0)),
        *(CASES[name].make(class_alpha=0) for name in CASES),
        *(CASES[name].make(class_alpha=[0, 1, 1]) for name in CASES),
    ],
    ids=lambda nb: repr(nb)[:60],
)
def test_evidence_under_an_improper_prior_is_minus_infinity(nb):
    case = CASES[type(nb).__name__]
    assert nb.fit(case.X, case.y).log_evidence_ == -math.inf
    X = case.X.copy()
    X[:, 0] = 0  # counts of zero, where Γ(α + n) is infinite as well
    assert nb.fit(X, case.y).log_evidence_ == -math.inf


@each
def test_evidence_of_known_classes_that_cannot_be(case):
    assert case.fit(class_prior=[0.5, 0.5, 0.0]).log_evidence_ == -math.inf
    two = case.y != "mid"
    nb = case.make(class_prior=[0.5, 0.5, 0.0]).partial_fit(case.X[two], case.y[two], classes=np.unique(case.y))
    assert np.isfinite(nb.log_evidence_)
    np.testing.assert_array_equal(nb.predict_proba(case.X)[:, 2], 0)


# -- the error leaves no trace in what was passed ----------------------------------------------------


@each
def test_input_is_not_written_to(case):
    X, y, weight = case.X.copy(), case.y.copy(), np.arange(N) % 3
    options = copy.deepcopy(case.make().get_params())
    nb = case.make().fit(X, y, sample_weight=weight)
    nb.partial_fit(X, y, sample_weight=weight).forget(X, y, sample_weight=weight)
    nb.predict_proba(X)
    np.testing.assert_array_equal(X, case.X)
    np.testing.assert_array_equal(y, case.y)
    np.testing.assert_array_equal(weight, np.arange(N) % 3)
    assert nb.get_params() == options


@pytest.mark.slow("other variants compile kernels of their own", but="CategoricalNB")
@pytest.mark.parametrize("make", [bnb.GaussianNB, bnb.CategoricalNB, bnb.MultinomialNB])
def test_ragged_rows(make):
    says = ("X is ragged", "row 2 has 1", "row 0 has 2")
    assert_refused(make(), "fit", [[1, 2], [3, 4], [5]], [0, 1, 1], says=says)


def test_a_masked_cell_is_not_silently_a_number():
    X = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, False], [True, False]])
    assert_refused(bnb.GaussianNB(), "fit", X, [0, 1], says=("masked", r"\(1, 0\)", "filled"), error=TypeError)
    bnb.GaussianNB().fit(np.ma.masked_array(X.data), [0, 1])


@pytest.mark.parametrize("binarize", [math.nan, math.inf, "a", [1]])
@pytest.mark.parametrize("make", [bnb.BernoulliNB, lambda **options: bnb.MixedNB(bernoulli=[0, 1], **options)])
def test_a_threshold_that_is_no_number(make, binarize):
    says = ("binarize", re.escape(repr(binarize)), "finite")
    assert_refused(make(binarize=binarize), "fit", [[1, 0], [0, 1]], [0, 1], says=says)


@pytest.mark.parametrize(
    "nb", [bnb.GaussianNB(), bnb.PoissonNB(), bnb.MultinomialNB()], ids=lambda nb: type(nb).__name__
)
@pytest.mark.parametrize("X", [pd.DataFrame({"sky": ["sun", "rain"]}), np.array([["sun"], ["rain"]], object)])
def test_numbers_given_text_name_the_estimator_that_takes_it(nb, X):
    assert_refused(nb, "fit", X, ["a", "b"], says=("could not convert 'sun' at row 0", "MixedNB"))
    assert bnb.MixedNB().fit(pd.DataFrame(X).rename(columns=str), ["a", "b"]).classes_.tolist() == ["a", "b"]


@each
def test_empty_data_frames(case):
    no_rows, no_columns = pd.DataFrame(case.X[:0], columns=list("abcd")), pd.DataFrame(index=range(N))
    assert_refused(case.make(), "fit", no_rows, case.y[:0], says=("0 sample", "minimum of 1"))
    assert_refused(case.make(), "fit", no_columns, case.y, says=("0 feature",))


def test_prior_of_a_model_of_another_family():
    gaussian, poisson = (CASES[name].fit() for name in ("GaussianNB", "PoissonNB"))
    assert_option_refused(CASES["PoissonNB"], {"prior": gaussian.prior_}, r"\bprior\b")
    assert_option_refused(CASES["GaussianNB"], {"prior": poisson.prior_}, r"\bprior\b")


# -- texts among numbers ---------------------------------------------------------------------------


def ages() -> pd.DataFrame:
    """A column of numbers that one "?" makes categorical, and one of categories that are numbers but for one."""
    age = pd.Series(np.arange(40), dtype=object)
    age[7] = "?"
    return pd.DataFrame({"age": age, "doors": ["2", "3", "4", "5more"] * 10})


@pytest.mark.parametrize("nb", [bnb.MixedNB(), bnb.KDB(gaussian="dtype"), bnb.WeightedNB(bnb.MixedNB())])
def test_a_text_among_numbers_is_reported_once(nb):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nb.fit(ages(), np.arange(40) % 2)
    (text,) = (str(w.message) for w in caught if "among numbers" in str(w.message))
    assert text.startswith("Column 'age' has the text '?'")


@pytest.mark.parametrize(
    ("nb", "X"),
    [
        (bnb.MixedNB(categorical=["age"]), ages()),
        (bnb.MixedNB(missing_values="?"), ages()),
        (bnb.MixedNB(), ages().astype("category")),
        (bnb.CategoricalNB(), ages()),
    ],
)
def test_declared_categories_are_not_reported(nb, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nb.fit(X, np.arange(40) % 2)
