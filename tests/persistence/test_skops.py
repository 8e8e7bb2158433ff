"""Fitted classifiers are written and read by skops, the format of scikit-learn's world without pickle."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesnb as bnb
from tests.laws.test_pytrees import ESTIMATORS, LABEL, NUMBERS

skops = pytest.importorskip("skops.io", reason="skops is not installed")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fitted_classifier_is_read_as_it_was_written(name):
    estimator, X = ESTIMATORS[name]
    nb = estimator.fit(X, LABEL)
    data = skops.dumps(nb)
    types = skops.get_untrusted_types(data=data)
    assert all(kind.startswith("bayesnb.") or kind == "builtins.range" for kind in types)
    np.testing.assert_array_equal(skops.loads(data, trusted=types).predict_proba(X), nb.predict_proba(X))


def test_pipelines_and_unfitted_classifiers():
    pipeline = make_pipeline(StandardScaler(), bnb.GaussianNB()).fit(NUMBERS, LABEL)
    data = skops.dumps(pipeline)
    again = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    np.testing.assert_array_equal(again.predict_proba(NUMBERS), pipeline.predict_proba(NUMBERS))
    again.fit(NUMBERS, LABEL)
    data = skops.dumps(bnb.CategoricalNB(alpha=0.5))
    assert skops.get_untrusted_types(data=data) == ["bayesnb.estimators.plain.CategoricalNB"]
    assert skops.loads(data, trusted=skops.get_untrusted_types(data=data)).alpha == 0.5


@pytest.mark.parametrize("estimator", [bnb.AODE(), bnb.SPODE(), bnb.NetworkNB({})])
def test_structures(estimator):
    X = ESTIMATORS["categorical"][1]
    nb = estimator.fit(X, LABEL)
    data = skops.dumps(nb)
    again = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    np.testing.assert_array_equal(again.predict_proba(X), nb.predict_proba(X))
    np.testing.assert_array_equal(
        again.partial_fit(X, LABEL).predict_proba(X), nb.partial_fit(X, LABEL).predict_proba(X)
    )


def test_a_fit_in_a_pipeline_keeps_nothing_of_the_pipeline():
    alone = bnb.GaussianNB().fit(NUMBERS, LABEL)
    ((_, inside),) = make_pipeline(bnb.GaussianNB()).fit(NUMBERS, LABEL).steps
    assert vars(inside).keys() == vars(alone).keys()
    assert vars(inside.fitted_.owner).keys() == vars(alone.fitted_.owner).keys()
