"""ONNX files of classifiers give, in ONNX Runtime, the labels and probabilities of the classifiers."""

import importlib

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesnb as bnb
from tests.raises import refused

skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed, which converts classifiers to ONNX")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed, which runs ONNX files")
onnx_export = importlib.import_module("examples.onnx_export")
onnx_export.register()

TOLERANCE = {"f4": 1e-7, "f8": 1e-12}


def run(nb, example, feed, **options):
    """Outputs of the model of a classifier for the inputs in `feed`, by name."""
    model = skl2onnx.to_onnx(nb, example, **options)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def check(nb, X, tolerance=1e-7):
    """Compare labels and probabilities of rows in one tensor."""
    label, probability = run(nb, X[:1], {"X": X}, options={"zipmap": False})
    np.testing.assert_array_equal(label, nb.predict(X))
    np.testing.assert_allclose(probability, nb.predict_proba(X), rtol=0, atol=tolerance)
    assert probability.dtype == (np.float64 if X.dtype == np.float64 else np.float32)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.mark.parametrize("precision", ["f4", "f8"])
@pytest.mark.parametrize("estimate", ["mean", "predictive"])
@pytest.mark.parametrize("family", ["normal", "levels", "presence", "declared presence"])
def test_probabilities_of_numbers_levels_and_presence_with_missing_cells(iris, family, estimate, precision):
    X, y = iris[0].astype(precision), iris[1]
    if family == "normal":
        nb = bnb.GaussianNB(estimate=estimate)
    elif family == "levels":
        X, nb = np.round(2 * X) / 2, bnb.CategoricalNB(estimate=estimate, alpha=0.5)
    elif family == "presence":
        nb = bnb.BernoulliNB(estimate=estimate, binarize=2.0, class_prior=[0.2, 0.3, 0.5])
    else:
        X, nb = np.where(np.isnan(X), X, X > 2), bnb.BernoulliNB(estimate=estimate, binarize=None)
        X = X.astype(precision)
    check(nb.fit(X, y), X, TOLERANCE[precision])


@pytest.mark.parametrize("precision", ["f4", "f8", "i8"])
@pytest.mark.parametrize("estimate", ["mean", "predictive"])
@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e4])
def test_probabilities_of_counts(alpha, estimate, precision):
    # Words have the same probabilities in all classes, so that no class is certain.
    rng = np.random.default_rng(1)
    X = rng.poisson(np.geomspace(0.05, 20.0, 12), (60, 12)).astype(precision)
    nb = bnb.MultinomialNB(alpha=alpha, estimate=estimate).fit(X, rng.integers(0, 3, 60))
    assert nb.predict_proba(X).max(axis=1).min() < 0.5
    check(nb, X, 1e-10 if precision == "f8" else 1e-7)


def test_predictive_of_long_rows_and_fractional_counts_after_millions_of_words():
    rng = np.random.default_rng(2)
    theta = np.full(8, 1 / 8)
    X = rng.multinomial(1_000_000, theta, 40).astype(float)
    nb = bnb.MultinomialNB().fit(X, rng.integers(0, 2, 40))
    rows = np.vstack([rng.multinomial(50_000, theta, 20), rng.gamma(0.3, size=(20, 8)), np.zeros((1, 8))])
    assert np.ptp(nb.predict_proba(rows)[:, 0]) > 0.1
    check(nb, rows, 1e-8)


def test_far_cells_have_the_tails_of_student_t():
    X = np.array([[0.0], [1.0], [5.0], [9.0], [12.0]])
    check(bnb.GaussianNB().fit(X, [0, 0, 1, 1, 1]), np.array([[1e200], [-1e300], [1e17], [3.0]]), 1e-12)


def test_text_levels_and_unknown_ones(iris):
    rng = np.random.default_rng(3)
    X = rng.choice(np.array(["red", "green", "blue"], object), (150, 3))
    nb = bnb.CategoricalNB().fit(X, iris[1])
    X[0, 1] = "violet"
    with pytest.warns(UserWarning, match="violet"):
        check(nb, X)


def test_a_table_of_text_and_number_columns_has_an_input_for_each(iris):
    rng = np.random.default_rng(4)
    colour, size = rng.choice(["red", "green"], 150), np.round(iris[0][:, 0])
    table = pd.DataFrame({"colour": pd.Series(colour, dtype=object), "size": size})
    nb = bnb.CategoricalNB().fit(table, iris[1])
    feed = {"colour": colour.astype(object)[:, None], "size": size[:, None]}
    label, probability = run(nb, table[:1], feed, options={"zipmap": False})
    np.testing.assert_array_equal(label, nb.predict(table))
    np.testing.assert_allclose(probability, nb.predict_proba(table), rtol=0, atol=1e-7)


def test_a_pipeline_gives_dicts_by_default():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), bnb.GaussianNB()).fit(X, y)
    label, probability = run(pipeline, X[:1], {"X": X})
    np.testing.assert_array_equal(label, pipeline.predict(X))
    np.testing.assert_allclose([[p[c] for c in (0, 1, 2)] for p in probability], pipeline.predict_proba(X), atol=1e-7)


def test_a_pipeline_of_texts():
    texts = ["the cat sat", "a dog ran fast", "cat cat cat dog", "dog dog run"]
    pipeline = make_pipeline(CountVectorizer(lowercase=False), bnb.MultinomialNB()).fit(texts, ["cat", "dog"] * 2)
    types = [("text", skl2onnx.common.data_types.StringTensorType([None, 1]))]
    feed = {"text": np.array(texts, object)[:, None]}
    label, probability = run(pipeline, None, feed, initial_types=types, options={"zipmap": False})
    np.testing.assert_array_equal(label, pipeline.predict(texts))
    np.testing.assert_allclose(probability, pipeline.predict_proba(texts), rtol=0, atol=1e-7)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("nb", "message"),
    [
        (bnb.MultinomialNB(alpha=0.0), "Some probabilities are 0"),
        (bnb.MultinomialNB(estimate="mle"), "estimate='mean' or 'predictive'"),
        (bnb.CategoricalNB(handle_unknown="level"), "handle_unknown='ignore'"),
    ],
)
def test_models_that_have_no_graph_are_refused(nb, message):
    X = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    refused(message, skl2onnx.to_onnx, nb.fit(X, [0, 1, 1]), X[:1])


def test_levels_of_another_type_than_the_input_are_refused():
    nb = bnb.CategoricalNB().fit(np.array([["1"], ["2"]], object), [0, 1])
    refused("differ in type", skl2onnx.to_onnx, nb, np.array([[1.0]]))
