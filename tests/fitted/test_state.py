"""Analyses use the fitted state of a classifier only, and compute prior and posterior once."""

import re
from pathlib import Path

import numpy as np
import pytest

import bayesnb as bnb
from bayesnb.analysis.dependence import check_independence
from bayesnb.analysis.predictive import prior_predictive, prior_sensitivity
from bayesnb.model import NaiveBayes
from tests.strategies import variants

HOME = Path(bnb.__file__).parent
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 2)), np.arange(20) % 2
ANALYSES = {
    "parameter_table": bnb.parameter_table,
    "parameter_table of a feature": lambda nb: bnb.parameter_table(nb, features=[0]),
    "predict_interval": lambda nb: bnb.predict_interval(nb, X),
    "predict_interval by draws": lambda nb: bnb.predict_interval(nb, X, method="draws", draws=20),
    "decompose_uncertainty": lambda nb: bnb.decompose_uncertainty(nb, X),
    "log_odds_moments": lambda nb: bnb.log_odds_moments(nb, X),
    "decide": lambda nb: bnb.decide(nb, X, [[0, 1], [1, 0]]),
    "to_arviz": lambda nb: bnb.to_arviz(nb, X, Y, draws=5, chains=2),
    "tune_alpha": lambda nb: bnb.tune_alpha(nb, X, Y, tune=["kappa"]),
    "tune_alpha by evidence": lambda nb: bnb.tune_alpha(nb, X, Y, by="evidence", tune=["kappa"]),
    "loo": lambda nb: bnb.loo(nb, X, Y, prior="fixed"),
    "posterior_draws": lambda nb: bnb.posterior_draws(nb, 5),
    "prequential": lambda nb: bnb.prequential(nb, X, Y, points=2),
    "check_independence": lambda nb: check_independence(nb, X, Y, draws=2),
    "posterior_predictive_check": lambda nb: bnb.posterior_predictive_check(nb, X, Y, draws=3),
    "prior_predictive": lambda nb: prior_predictive(nb, draws=5),
    "prior_sensitivity": lambda nb: prior_sensitivity(nb, X, steps=2),
    "parameter_sensitivity": lambda nb: bnb.parameter_sensitivity(nb, steps=2),
    "contrast": lambda nb: bnb.contrast(nb, 0),
    "predict_proba": lambda nb: nb.predict_proba(X),
    "log_evidence_": lambda nb: nb.log_evidence_,
}


@pytest.fixture(scope="module")
def normal():
    return bnb.GaussianNB().fit(X, Y)


@variants("name", ANALYSES)
def test_prior_and_posterior_are_computed_once(normal, name, monkeypatch):
    """Once prior and posterior are there, no analysis derives the prior or updates it again."""
    assert normal.posterior_ is normal.posterior_
    assert normal.prior_ is normal.prior_
    calls = {"derive": 0, "update": 0}
    for method in calls:
        own = getattr(NaiveBayes, method)

        def counted(self, *args, own=own, method=method):
            concrete = isinstance(args[0].class_count, np.ndarray)  # and no kernel that is traced
            computes = method == "update" or any(map(callable, self.blocks))  # a prior that is derived stays as it is
            calls[method] += concrete and computes
            return own(self, *args)

        monkeypatch.setattr(NaiveBayes, method, counted)
    ANALYSES[name](normal)
    assert calls == {"derive": 0, "update": 0}


def lines(pattern):
    """The package's lines with a pattern, outside the estimators."""
    files = [path for path in HOME.rglob("*.py") if path.parent.name != "estimators"]
    return [
        f"{path.relative_to(HOME)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(pattern, line)
    ]


def test_no_private_member_of_a_classifier_is_used_outside_the_estimators():
    estimators = "\n".join(path.read_text(encoding="utf-8") for path in (HOME / "estimators").glob("*.py"))
    private = set(re.findall(r"def (_[a-z]\w+)\(\s*self", estimators))
    assert {"_empirical_prior", "_structured"} <= private
    assert not lines(rf"\b(?!self\b|cls\b)\w+\.({'|'.join(sorted(private))})\b")


def test_a_classifier_has_a_type():
    assert not lines(r"\bnb\d?: Any\b")


def test_a_later_fit_changes_nothing_of_it():
    levels, other = (
        np.array([["a", "u"], ["b", "v"], ["a", "v"]], object),
        np.array([["c", "x"], ["d", "x"], ["c", "y"]], object),
    )
    for nb in (bnb.AODE(), bnb.CategoricalNB()):
        fitted = nb.fit(levels, [0, 1, 1]).fitted_
        before = fitted.log_proba(levels)
        nb.fit(other, ["x", "y", "y"])
        np.testing.assert_array_equal(fitted.log_proba(levels), before)


@variants(
    "make",
    [
        lambda: bnb.AODE().fit([["a", "u"], ["b", "v"]], [0, 1]),
        lambda: bnb.fit_em(bnb.GaussianNB(), X, np.where(np.arange(20) < 10, Y, -1)).estimator,
        lambda: bnb.TAN().fit(np.array([["a", "u"], ["b", None], ["b", "v"], ["a", "u"]], object), [0, 1, 0, 1]),
    ],
)
def test_what_has_no_evidence_has_none_here_either(make):
    fitted = make().fitted_
    with pytest.raises(NotImplementedError, match="log_evidence_: "):
        _ = fitted.log_evidence
