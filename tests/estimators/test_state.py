"""The state of a fitted classifier is immutable and does not change when hyperparameters are set later."""

import copy
import dataclasses
import operator
import pickle

import numpy as np
import pytest

import bayesnb as bnb
from bayesnb.fitted import scoring
from tests.raises import refused

X = [["sun", "dry"], ["sun", "wet"], ["rain", "wet"], ["rain", "wet"]] * 5
Y = ["out", "out", "in", "in"] * 5
MAKE = {
    "plain": lambda: bnb.CategoricalNB(alpha=0.5),
    "structure": lambda: bnb.NetworkNB({1: 0}, alpha=0.5),
    "average": lambda: bnb.AODE(alpha=0.5),
    "weighted": lambda: bnb.WeightedNB(bnb.CategoricalNB(alpha=0.5)),
}


@pytest.fixture(params=MAKE)
def nb(request):
    return MAKE[request.param]().fit(X, Y)


def set_alpha(nb, alpha):
    inner = nb.estimator if hasattr(nb, "estimator") else nb
    inner.set_params(alpha=alpha)
    return nb


@pytest.mark.parametrize(
    ("unfitted", "name"),
    [(bnb.TAN(), "classes_"), (bnb.WeightedNB(), "estimator_"), (bnb.NaiveBayesMixture(2), "n_parameters_")],
    ids=str,
)
def test_an_attribute_that_needs_fit_is_named(unfitted, name):
    message = f"'{type(unfitted).__name__}' object has no attribute '{name}' before fit."
    for nb in (unfitted, copy.deepcopy(unfitted), pickle.loads(pickle.dumps(unfitted))):
        assert not hasattr(nb, name)
        refused(message, getattr, nb, name, error=AttributeError)
    refused("AODE", operator.attrgetter("prior_"), bnb.AODE(), error=NotImplementedError)


def test_a_state_cannot_be_changed(nb):
    with pytest.raises(dataclasses.FrozenInstanceError):
        nb.fitted_.statistics = None
    with pytest.raises(AttributeError, match="statistics_"):
        nb.statistics_ = None


def test_counting_further_rows_makes_another_state(nb):
    before = nb.fitted_
    counts, proba = before.statistics.class_count.copy(), nb.predict_proba(X)
    nb.partial_fit(X[:2], Y[:2])
    assert nb.fitted_ is not before
    np.testing.assert_array_equal(before.statistics.class_count, counts)
    nb.forget(X[:2], Y[:2])
    np.testing.assert_allclose(nb.predict_proba(X), proba, rtol=1e-12)


def test_a_hyperparameter_set_after_fit_waits_for_the_next_one(nb):
    before = nb.predict_proba(X)
    set_alpha(nb, 5.0)
    np.testing.assert_array_equal(nb.predict_proba(X), before)
    assert not np.allclose(nb.fit(X, Y).predict_proba(X), before)


@pytest.mark.parametrize("name", ["plain", "structure", "average"])
def test_the_reading_of_the_posterior_is_no_matter_of_fitting(name):
    nb = MAKE[name]().fit(X, Y)
    expected = nb.predict_proba(X, estimate="mean")
    nb.set_params(estimate="mean")
    np.testing.assert_array_equal(nb.predict_proba(X), expected)
    assert bnb.loo(nb, X, Y).elpd == bnb.loo(nb, X, Y, estimate="mean").elpd


def test_a_pickle_has_what_was_counted_and_computes_the_rest(nb):
    proba = nb.predict_proba(X)
    again = pickle.loads(pickle.dumps(nb))
    assert "posterior" not in vars(again.fitted_)
    np.testing.assert_array_equal(again.predict_proba(X), proba)


def test_a_weighted_classifier_has_the_state_of_its_estimator():
    nb = MAKE["weighted"]().fit(X, Y)
    plain = MAKE["plain"]().fit(X, Y)
    np.testing.assert_array_equal(nb.estimator_.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(nb.posterior_.blocks[0].concentration, plain.posterior_.blocks[0].concentration)


def test_a_reading_is_computed_once(monkeypatch):
    nb = MAKE["plain"]().fit(X, Y)
    nb.predict_proba(X)
    monkeypatch.setattr(scoring, "read", None)
    nb.predict(X)
    with pytest.raises(TypeError):
        nb.predict(X, estimate="map")


def test_such_a_classifier_is_not_saved(nb, tmp_path):
    """The file would have other predictions."""
    set_alpha(nb, 5.0)
    refused("a hyperparameter was set after fit", bnb.save, nb, tmp_path / "model.bnb")
    assert not list(tmp_path.iterdir())
    bnb.save(set_alpha(nb, 0.5), tmp_path / "model.bnb")
