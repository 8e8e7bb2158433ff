"""scikit-learn's tests of naive Bayes, run on bayesnb's classifiers: `python -m benchmarks.sklearn_suite`.

Only names and defaults are mapped: `priors`, `class_prior_` and `n_categories_` have other names in bayesnb, class
probabilities are relative frequencies, posterior means are plugged in, and the Gaussian prior is the improper one that
gives maximum likelihood. The results are in docs/howto/from_sklearn.md.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import sklearn
import sklearn.naive_bayes

import bayesnb as bnb

PLUG_IN: dict[str, Any] = {"class_alpha": 0, "estimate": "mean"}
IMPROPER = bnb.NormalInverseGamma(loc=0.0, kappa=0.0, concentration=1.0, rate=0.0)
LEFT_OUT = "not array_api and not ComplementNB and not test_cnb"


class MultinomialNB(bnb.MultinomialNB):
    def __init__(self, *, alpha: Any = 1.0, class_prior: Any = None) -> None:
        super().__init__(alpha=alpha, class_prior=class_prior, **PLUG_IN)


class BernoulliNB(bnb.BernoulliNB):
    def __init__(self, *, alpha: Any = 1.0, binarize: Any = 0.0, class_prior: Any = None) -> None:
        super().__init__(alpha=alpha, binarize=binarize, class_prior=class_prior, **PLUG_IN)


class CategoricalNB(bnb.CategoricalNB):
    def __init__(self, *, alpha: Any = 1.0, class_prior: Any = None) -> None:
        super().__init__(alpha=alpha, class_prior=class_prior, **PLUG_IN)

    @property
    def n_categories_(self) -> np.ndarray:
        return np.array([len(levels) for levels in self.categories_])


class GaussianNB(bnb.GaussianNB):
    def __init__(self, *, priors: Any = None) -> None:
        self.priors = priors
        super().__init__(prior=IMPROPER, class_prior=priors, **PLUG_IN)

    @property
    def class_prior_(self) -> np.ndarray:
        return np.exp(self.class_log_prior_)


class Outcomes:
    """Results of the tests: the number that passed, and the first line of the error of each other test."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message if crash is not None else str(report.longrepr)
            self.failed[report.nodeid.partition("::")[2]] = message.splitlines()[0]
        elif report.when == "call" and report.passed:
            self.passed += 1


def run() -> Outcomes:
    """Run the tests with bayesnb's classifiers under scikit-learn's names."""
    outcomes = Outcomes()
    with pytest.MonkeyPatch.context() as patch:
        for cls in (MultinomialNB, BernoulliNB, CategoricalNB, GaussianNB):
            patch.setattr(sklearn.naive_bayes, cls.__name__, cls)
        patch.setenv("SKLEARN_RUN_FLOAT32_TESTS", "1")
        quiet = ["-q", "--no-header", "--no-summary", "--tb=line", "-p", "no:cacheprovider"]
        pytest.main(
            ["-c", os.devnull, *quiet, "-k", LEFT_OUT, "--pyargs", "sklearn.tests.test_naive_bayes"], [outcomes]
        )
    return outcomes


if __name__ == "__main__":
    outcomes = run()
    print(f"\nscikit-learn {sklearn.__version__}: {outcomes.passed} pass, {len(outcomes.failed)} do not")
    for name, message in outcomes.failed.items():
        print(f"  {name}: {message}"[:200])
