"""A model that has counted no rows is its prior, if everything is declared."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.base import clone

import bayesnb as bnb
from tests.raises import refused
from tests.strategies import assert_leaves

CLASSES = ["no", "yes"]
LEVELS = [["u", "v"], ["u", "v", "w"]]
ALPHA = np.array([[1.0, 2.0, 0.5, 1.0, 3.0], [2.0, 1.0, 1.0, 1.0, 1.5]])
NORMAL = bnb.NormalInverseGamma(np.array([[0.0, 1.0], [2.0, -1.0]]), 0.5, 2.0, 1.5)
NORMAL_OF_ONE = bnb.NormalInverseGamma(0.0, 0.5, 2.0, 1.5)
ROWS = np.array([["u", "w"], ["v", "u"], ["v", "w"]], object)
NUMBERS = np.array([[0.5, 1.0], [2.0, 0.0], [1.0, 3.0]])
FRAME = pd.DataFrame({"a": ROWS[:, 0], "b": NUMBERS[:, 0], "c": NUMBERS[:, 1]})


@dataclass(frozen=True)
class Declared:
    make: Callable[[], Any]
    X: Any


KINDS = {
    "categorical": Declared(lambda: bnb.CategoricalNB(alpha=ALPHA, categories=LEVELS, class_alpha=[1.0, 3.0]), ROWS),
    "named levels": Declared(lambda: bnb.CategoricalNB(alpha={0: {"u": 2.0, "v": 1.0}, 1: {"u": 1.0, "w": 0.5}}), ROWS),
    "integers": Declared(lambda: bnb.CategoricalNB(categories=[range(4)] * 2), NUMBERS.round().astype(int)),
    "gaussian": Declared(lambda: bnb.GaussianNB(prior=NORMAL), NUMBERS),
    "poisson": Declared(lambda: bnb.PoissonNB(prior=bnb.GammaPoisson(2.0, 1.0)), NUMBERS.round()),
    "counts": Declared(lambda: bnb.NegativeBinomialNB(prior=bnb.BetaNegativeBinomial(2.0, 1.0)), NUMBERS.round()),
    "bernoulli": Declared(lambda: bnb.BernoulliNB(), NUMBERS),
    "words": Declared(lambda: bnb.MultinomialNB(alpha=[0.5, 2.0]), sp.csr_array(NUMBERS.round())),
    "binned": Declared(lambda: bnb.BinnedNB(edges=[[0.0, 1.0]] * 2), NUMBERS),
    "mixed": Declared(
        lambda: bnb.MixedNB(
            categorical="a",
            gaussian="b",
            poisson="c",
            categories={"a": ["u", "v"]},
            gaussian_prior=NORMAL_OF_ONE,
            poisson_prior=bnb.GammaPoisson(2.0, 1.0),
        ),
        FRAME,
    ),
    "network": Declared(lambda: bnb.NetworkNB({1: 0}, categories=LEVELS), ROWS),
    "averaged": Declared(lambda: bnb.FeatureAveragedNB(bnb.CategoricalNB(categories=LEVELS)), ROWS),
    "trees": Declared(lambda: bnb.TreeAveragedNB(categories=LEVELS), ROWS),
    "AODE": Declared(lambda: bnb.AODE(categories=LEVELS), ROWS),
    "weighted": Declared(lambda: bnb.WeightedNB(bnb.CategoricalNB(categories=LEVELS)), ROWS),
}


def prior_of(kind: Declared) -> Any:
    return kind.make().partial_fit(kind.X[:0], [], CLASSES)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_posterior_is_the_prior_and_rows_may_follow(kind, tmp_path):
    nb = prior_of(kind)
    assert not nb.class_count_.any()
    if nb.fitted_.no_posterior is None:
        assert_leaves(nb.posterior_, nb.prior_, rtol=1e-14)
        if not isinstance(nb, bnb.WeightedNB):
            assert nb.log_evidence_ == 0.0
    bnb.save(nb, tmp_path / "model")
    loaded = bnb.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(kind.X), nb.predict_proba(kind.X))
    y = ["no", "yes", "yes"]
    later = loaded.partial_fit(kind.X, y)
    at_once = kind.make().partial_fit(kind.X, y, CLASSES)
    np.testing.assert_allclose(later.predict_proba(kind.X), at_once.predict_proba(kind.X), rtol=1e-12)


def test_probabilities_intervals_and_draws_of_the_prior():
    nb = prior_of(KINDS["categorical"])
    theta = [np.split(row, [2]) for row in ALPHA]
    means = [[alpha / alpha.sum() for alpha in of_class] for of_class in theta]
    joint = np.array([c * m[0][0] * m[1][2] for c, m in zip([0.25, 0.75], means, strict=True)])
    np.testing.assert_allclose(nb.predict_proba(ROWS[:1])[0], joint / joint.sum(), rtol=1e-12)
    table = bnb.parameter_table(nb, prob=0.9)
    row = table[(table["class"] == "yes") & (table["level"] == "w")].iloc[0]
    assert row["mean"] == pytest.approx(1.5 / 3.5)
    np.testing.assert_allclose(row[["lower", "upper"]].astype(float), stats.beta(1.5, 2.0).ppf([0.05, 0.95]), rtol=1e-6)
    rng = np.random.default_rng(0)
    joint = rng.dirichlet([1, 3], 100_000).T
    joint *= [
        np.prod([rng.dirichlet(a, 100_000)[:, i] for a, i in zip(of_class, (0, 2), strict=True)], axis=0)
        for of_class in theta
    ]
    simulated = joint[1] / joint.sum(axis=0)
    drawn = nb.predict_proba(ROWS[:1], draws=bnb.posterior_draws(nb, 20_000, seed=0))
    np.testing.assert_allclose(drawn, nb.predict_proba(ROWS[:1]), atol=0.01)
    lower, upper = (ends[0, 1] for ends in bnb.predict_interval(nb, ROWS[:1], prob=0.9, given="data"))
    np.testing.assert_allclose([lower, upper], np.quantile(simulated, [0.05, 0.95]), atol=0.02)


def test_predictions_of_a_normal_prior_are_those_of_student():
    nb = prior_of(KINDS["gaussian"])
    log_t = stats.t(4.0, NORMAL.loc, np.sqrt(1.5 * 1.5 / (2.0 * 0.5))).logpdf(NUMBERS[:, None])
    np.testing.assert_allclose(nb.predict_joint_log_proba(NUMBERS), log_t.sum(axis=2) + np.log(0.5), rtol=1e-12)


UNDECLARED = {
    "levels": (bnb.CategoricalNB(categories={0: ["u"]}), ROWS, "the levels of column '1'"),
    "prior": (bnb.GaussianNB(), NUMBERS, r"the prior of gaussian columns \(prior\)"),
    "edges": (bnb.BinnedNB(), NUMBERS, "the cells of numbers"),
    "densities": (bnb.MixedNB(gaussian_prior=NORMAL_OF_ONE), NUMBERS, "the densities of numbers"),
    "cells": (bnb.NetworkNB({1: 0}, numbers="binned"), NUMBERS + 0.5, "the cells and densities of numbers"),
    "member": (bnb.WeightedNB(bnb.CategoricalNB()), ROWS, "the levels of column '0' and others"),
}


@pytest.mark.parametrize(("nb", "X", "says"), UNDECLARED.values(), ids=UNDECLARED)
def test_what_is_not_declared_is_named(nb, X, says):
    nb = clone(nb)
    refused(f"X has no rows.*{says}.* Declare", nb.partial_fit, X[:0], [], CLASSES)
    assert not hasattr(nb, "classes_")
    refused(r"0 sample.* For the prior alone, call partial_fit", nb.fit, X[:0], [])


def test_a_batch_without_rows_only_adds_classes():
    nb = bnb.CategoricalNB().fit(ROWS, ["no", "yes", "yes"])
    before = nb.predict_proba(ROWS)
    nb.partial_fit(ROWS[:0], []).forget(ROWS[:0], [], sample_weight=[])
    np.testing.assert_array_equal(nb.predict_proba(ROWS), before)
    nb.partial_fit(ROWS[:0], [], classes=["maybe"])
    assert nb.classes_.tolist() == ["maybe", "no", "yes"]
    assert nb.class_log_prior_[0] == pytest.approx(np.log(1 / 6))
