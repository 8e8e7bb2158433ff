"""Sensitivity to the prior against refits under other priors, and finite differences."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import logit
from sklearn.base import clone

import bayesnb as bnb
from bayesnb import CategoricalNB, GaussianNB, MultinomialNB
from bayesnb.analysis.predictive import prior_sensitivity
from tests.estimators.cases import CASES
from tests.raises import refused

COLUMNS = ["prediction", "probability", "lower", "upper", "label_changes", "d_logit_d_log_alpha"]
STEP = 1e-4


def check(nb, X, y, rows, refit, own, interval, steps, estimate=None):
    """Compare all columns with refits under each strength and by finite differences."""
    found = prior_sensitivity(nb, rows, interval, steps=steps)
    assert list(found.columns) == COLUMNS
    before = nb.predict_proba(rows, estimate=estimate)
    best, each = before.argmax(axis=1), np.arange(len(before))
    np.testing.assert_array_equal(found["prediction"], nb.classes_[best])
    np.testing.assert_allclose(found["probability"], before[each, best], rtol=1e-9)
    strengths = [*np.geomspace(*interval, steps), *([own] if interval[0] <= own <= interval[1] else [])]
    refits = np.stack([refit(s).predict_proba(rows, estimate=estimate) for s in strengths])
    np.testing.assert_allclose(found["lower"], refits[:, each, best].min(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found["upper"], refits[:, each, best].max(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(found["label_changes"], (refits.argmax(axis=2) != best).any(axis=0))
    up, down = (logit(refit(own * np.exp(h)).predict_proba(rows, estimate=estimate)[each, best]) for h in (STEP, -STEP))
    np.testing.assert_allclose(found["d_logit_d_log_alpha"], (up - down) / (2 * STEP), rtol=1e-5, atol=1e-6)
    return found


def test_alpha_of_a_categorical():
    case = CASES["CategoricalNB"]
    nb = case.fit(alpha=0.5)
    found = check(
        nb, case.X, case.y, case.X, lambda a: clone(nb).set_params(alpha=a).fit(case.X, case.y), 0.5, (0.2, 30), 5
    )
    assert 0 < found["label_changes"].sum() < len(found)


@pytest.mark.slow("compiles kernels of its own")
def test_alpha_outside_the_interval_of_sparse_counts():
    X, y = sp.csr_array(CASES["MultinomialNB"].X), CASES["MultinomialNB"].y
    nb = MultinomialNB(alpha=20).fit(X, y)
    found = check(nb, X, y, X, lambda a: clone(nb).set_params(alpha=a).fit(X, y), 20.0, (0.1, 10), 4)
    assert (found["upper"] != found["probability"]).any()


def test_mle_has_no_prior():
    case = CASES["CategoricalNB"]
    expected = prior_sensitivity(case.fit(), case.X, (0.2, 30), steps=5)
    pd.testing.assert_frame_equal(prior_sensitivity(case.fit(estimate="mle"), case.X, (0.2, 30), steps=5), expected)


@pytest.mark.slow("compiles kernels of its own")
def test_undefined_rows():
    # The mode exists from α = 1 on.
    nb = CategoricalNB(estimate="map", alpha=2.0).fit([["a"], ["b"], ["b"]], [0, 1, 1])
    found = prior_sensitivity(nb, [["a"], [None]], (0.5, 4), steps=3).iloc[0]
    assert found["prediction"] == 0
    assert 0 < found["probability"] < 1
    assert np.isnan(found["lower"])
    assert np.isfinite(found["d_logit_d_log_alpha"])


def test_rows_without_a_cell_do_not_move():
    case = CASES["CategoricalNB"]
    nb = case.fit(alpha=0.5)
    before = nb.statistics_.blocks[0].count.copy()
    found = prior_sensitivity(nb, np.full(case.X.shape, None), (0.2, 30), steps=5)
    np.testing.assert_allclose(found["lower"], found["upper"], rtol=1e-12)
    np.testing.assert_allclose(found["d_logit_d_log_alpha"], 0, atol=1e-12)
    np.testing.assert_array_equal(before, nb.statistics_.blocks[0].count)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 3.0}, "alpha=3.0"),
        ({"alpha": (0, 1)}, "alpha="),
        ({"alpha": (2, 1)}, "alpha="),
        ({"alpha": (0.1, np.inf)}, "alpha="),
        ({"alpha": ("a", "b")}, "alpha="),
        ({"steps": 1}, "steps=1"),
        ({"steps": 2.5}, "steps=2.5"),
    ],
)
def test_bad_arguments(options, message):
    nb = CategoricalNB().fit([["a"], ["b"]], [0, 1])
    refused(message, prior_sensitivity, nb, [["a"]], **options)


def test_bad_data():
    refused("features", prior_sensitivity, GaussianNB().fit([[0.0], [1.0]], [0, 1]), [[1.0, 2.0]])


# -- parameters ----------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
Y = RNG.choice(["ash", "elm", "oak"], 40)
NUMBERS = RNG.normal(size=(40, 2)) * [1.0, 20.0] + [0.0, 100.0]


def scaled(prior, s):
    return bnb.NormalInverseGamma(prior.loc, prior.kappa * s, prior.concentration * s, prior.rate * s)


REFITS = {
    "alpha": (CategoricalNB(alpha=0.5), CASES["CategoricalNB"].X, CASES["CategoricalNB"].y, lambda nb, s: {"alpha": s}),
    "alpha by level": (
        CategoricalNB(alpha={0: {"a": 2.0}}),
        CASES["CategoricalNB"].X,
        CASES["CategoricalNB"].y,
        lambda nb, s: {"alpha": replace(nb.prior_.blocks[0], concentration=s * nb.prior_.blocks[0].concentration)},
    ),
    "numbers": (GaussianNB(), NUMBERS, Y, lambda nb, s: {"prior": scaled(nb.prior_.blocks[0], s)}),
}


@pytest.mark.parametrize(("nb", "X", "y", "options"), REFITS.values(), ids=REFITS)
def test_parameters_are_those_of_refits(nb, X, y, options):
    nb = clone(nb).fit(X, y)
    found = bnb.parameter_sensitivity(nb, (0.2, 30), 0.8, steps=4)
    own = bnb.parameter_table(nb, 0.8).query("feature != '(class)'").reset_index(drop=True)
    shown = ["class", "feature", "level", "mean", "sd", "lower", "upper"]
    pd.testing.assert_frame_equal(found[shown], own[shown])
    tables = [own]
    for s in np.geomspace(0.2, 30, 4):
        refit = nb.with_priors(options(nb, s))
        tables.append(bnb.parameter_table(refit, 0.8).query("feature != '(class)'").reset_index(drop=True))
    mean, lower, upper = (np.stack([t[column] for t in tables]) for column in ("mean", "lower", "upper"))
    for column, expected in {
        "least_mean": mean.min(axis=0),
        "greatest_mean": mean.max(axis=0),
        "least_lower": lower.min(axis=0),
        "greatest_upper": upper.max(axis=0),
        "shift": (abs(mean - mean[0]) / own["sd"].to_numpy()).max(axis=0),
    }.items():
        np.testing.assert_allclose(found[column], expected, rtol=1e-8)


def test_rows_outweigh_the_prior():
    """The shift falls as 1/√n: the prior is worth some rows, and the posterior sd some 1/√n."""
    X, y = RNG.choice(["u", "v", "w"], (10_000, 2)), RNG.choice([0, 1], 10_000)
    shifts = [bnb.parameter_sensitivity(CategoricalNB().fit(X[:n], y[:n]))["shift"].max() for n in (100, 10_000)]
    assert shifts[1] < 0.3 < shifts[0]


def test_parameters_that_are_known_or_have_no_mean():
    one = bnb.parameter_sensitivity(CategoricalNB().fit([["a"], ["a"]], [0, 1]))
    assert one["shift"].tolist() == [0.0, 0.0]
    few = bnb.parameter_sensitivity(GaussianNB().fit([[0.0], [1.0]], [0, 1]), (0.1, 1)).query("level == 'sigma2'")
    assert few[["least_mean", "shift"]].isna().all(axis=None)
    some = bnb.parameter_sensitivity(GaussianNB().fit(NUMBERS, Y), features=["1"])
    assert set(some["feature"]) == {"1"}
    for options, message in (
        ({"alpha": (2, 1)}, "alpha="),
        ({"steps": 1}, "steps=1"),
        ({"prob": 1.0}, "prob=1.0"),
        ({"features": ["x"]}, "there is no column 'x'"),
    ):
        refused(message, bnb.parameter_sensitivity, GaussianNB().fit(NUMBERS, Y), **options)
    with pytest.raises(NotImplementedError, match="parameter_sensitivity: "):
        bnb.parameter_sensitivity(bnb.AODE().fit([["a", "b"], ["b", "a"]] * 5, [0, 1] * 5))
