"""Displays of an estimator compute nothing and omit the attributes that a model does not have."""

import pytest
from sklearn.pipeline import make_pipeline

import bayesnb as bnb
from bayesnb import kernels
from bayesnb.fitted import scoring
from bayesnb.model import NaiveBayes
from tests.estimators.cases import CASES
from tests.raises import refused

X, Y = CASES["CategoricalNB"].X, CASES["CategoricalNB"].y


def with_a_missing_cell():
    cells = X.astype(object)
    cells[1, 0] = None
    return cells


FITTED = {
    "CategoricalNB": lambda: bnb.CategoricalNB().fit(X, Y),
    "GaussianNB": lambda: bnb.GaussianNB().fit(X, Y),
    "MixedNB": lambda: bnb.MixedNB(numbers="gaussian").fit(X, Y),
    "FeatureAveragedNB": lambda: bnb.FeatureAveragedNB().fit(X, Y),
    "TAN": lambda: bnb.TAN().fit(X, Y),
    "SPODE": lambda: bnb.SPODE().fit(X, Y),
    "AODE": lambda: bnb.AODE().fit(X, Y),
    "missing on arcs": lambda: bnb.NetworkNB({1: 0}).fit(with_a_missing_cell(), Y),
    "EM": lambda: bnb.fit_em(bnb.CategoricalNB(), X, Y, X_unlabeled=X).estimator,
    "NaiveBayesMixture": lambda: bnb.NaiveBayesMixture(2, estimator=bnb.CategoricalNB(), n_init=1).fit(X),
}
ABSENT = {"AODE": ("prior_", "posterior_", "parents_", "log_evidence_"), "EM": ("log_evidence_",)}


@pytest.fixture(scope="module")
def fitted():
    """Cached fitted estimator of this name."""
    found = {}

    def get(name):
        if name not in found:
            found[name] = FITTED[name]()
        return found[name]

    return get


every = pytest.mark.parametrize("name", FITTED)


@pytest.mark.slow("other variants compile kernels of their own", but="CategoricalNB")
@every
def test_the_html_of_a_pipeline_shows_it(fitted, name):
    nb = fitted(name)
    text = make_pipeline("passthrough", nb)._repr_html_()
    assert type(nb).__name__ in text
    assert "n_features_in_" in nb._repr_html_() or "Fitted attributes" not in text  # scikit-learn 1.6 shows none


@pytest.mark.slow("other variants compile kernels of their own", but=["AODE", "EM-log_evidence_"])
@pytest.mark.parametrize(("name", "attribute"), [(name, a) for name, absent in ABSENT.items() for a in absent])
def test_an_attribute_that_a_model_does_not_have_says_why(fitted, name, attribute):
    nb = fitted(name)
    assert not hasattr(nb, attribute)
    assert getattr(nb, attribute, None) is None
    for kind in (AttributeError, NotImplementedError):
        refused(rf"^{attribute}: .*(posterior|exact)", getattr, nb, attribute, error=kind)


def test_a_function_that_refuses_a_model_has_no_attribute_missing(fitted):
    with pytest.raises(NotImplementedError, match=r"^posterior_draws: ") as caught:
        bnb.posterior_draws(fitted("AODE"))
    assert not isinstance(caught.value, AttributeError)


@pytest.mark.slow("other variants compile kernels of their own", but=["CategoricalNB", "EM"])
@every
def test_what_is_shown_computes_nothing(fitted, name, monkeypatch):
    """The posterior and evidence of four million parameters took four seconds at every display in a notebook."""
    nb = fitted(name)
    calls = []
    monkeypatch.setattr(kernels, "update", lambda *_: calls.append("update"))
    for kernel in ("log_evidence", "plug_in"):
        monkeypatch.setattr(scoring, kernel, lambda *_, kernel=kernel: calls.append(kernel))
    monkeypatch.setattr(NaiveBayes, "derive", lambda *_: calls.append("prior"))
    shown = [repr(nb), nb._repr_html_(), make_pipeline(nb)._repr_html_(), *nb._repr_mimebundle_().values()]
    assert all(type(nb).__name__ in text for text in shown)
    dir(nb)
    assert not calls


OF_A_POSTERIOR = {
    "log_evidence_": lambda nb: nb.log_evidence_,
    "posterior_draws": bnb.posterior_draws,
    "parameter_table": bnb.parameter_table,
    "predict_interval": lambda nb: bnb.predict_interval(nb, X),
    "decompose_uncertainty": lambda nb: bnb.decompose_uncertainty(nb, X),
    "log_odds_moments": lambda nb: bnb.log_odds_moments(nb, X),
    "loo": lambda nb: bnb.loo(nb, X, Y),
    "run_nuts": lambda nb: bnb.run_nuts(nb, progress=False),
    "to_arviz": bnb.to_arviz,
    "tune_alpha by loo": lambda nb: bnb.tune_alpha(nb, X, Y),
    "tune_alpha by evidence": lambda nb: bnb.tune_alpha(nb, X, Y, by="evidence"),
    "bayes_factor": lambda nb: bnb.bayes_factor(nb, bnb.CategoricalNB().fit(X, Y)),
    "bayes_factor of another": lambda nb: bnb.bayes_factor(bnb.CategoricalNB().fit(X, Y), nb),
    "prior_sensitivity": lambda nb: bnb.prior_sensitivity(nb, X),
    "parameter_sensitivity": bnb.parameter_sensitivity,
    "contrast": lambda nb: bnb.contrast(nb, 0),
    "prior_predictive": bnb.prior_predictive,
    "posterior_predictive_check": lambda nb: bnb.posterior_predictive_check(nb, X, Y),
    "prequential": lambda nb: bnb.prequential(nb, X, Y),
}
WHY_NOT = {"AODE": r"AODE averages.*members_", "EM": "counted by EM"}


@pytest.mark.slow("other variants compile kernels of their own", but=["AODE", "EM"])
@pytest.mark.parametrize("analysis", OF_A_POSTERIOR)
@pytest.mark.parametrize("name", WHY_NOT)
def test_what_needs_a_posterior_is_refused_with_the_reason(fitted, name, analysis):
    if (name, analysis) == ("AODE", "loo"):  # which has leave-one-out of labels
        return
    refused(WHY_NOT[name], OF_A_POSTERIOR[analysis], fitted(name), error=NotImplementedError)
