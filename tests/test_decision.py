"""Decisions against the definition of risk, Chow's rule, and simulated truth."""

from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_breast_cancer

import bayesnb as bnb
from bayesnb.decision import bayes_theorem, zero_one
from bayesnb.uncertainty.class_probabilities import RowSampler
from tests.raises import refused
from tests.tables import ASKED, CLASSES, NUMBERS, N, of_numbers

X2, Y2 = load_breast_cancer(return_X_y=True)
X2 = X2[:, :4]
ROWS = NUMBERS[ASKED]


@cache
def of_two():
    return bnb.GaussianNB().fit(X2[::10], np.array(["malignant", "benign"])[Y2[::10]])


losses = arrays(float, (4, 3), elements=st.integers(-5, 20).map(float), unique=True)


@settings(max_examples=10)
@given(loss=losses)
def test_the_action_of_least_posterior_expected_loss(loss):
    found = bnb.decide(of_numbers(), ROWS, loss, draws=50)
    p = of_numbers().predict_proba(ROWS)
    for i, row in enumerate(p):
        risks = [sum(row[c] * loss[a, c] for c in range(3)) for a in range(4)]
        assert found.risk[i] == pytest.approx(min(risks), abs=1e-12)
        assert risks[found.action[i]] == pytest.approx(min(risks), abs=1e-12)
    assert found.expected_risk == pytest.approx(found.risk.mean())


@pytest.mark.slow("compiles kernels of its own")
def test_under_zero_one_loss_it_is_the_prediction():
    for nb, X in ((of_two(), X2), (of_numbers(), NUMBERS)):
        found = bnb.decide(nb, X, zero_one(nb.classes_))
        np.testing.assert_array_equal(found.action, nb.predict(X))
        np.testing.assert_allclose(found.risk, 1 - nb.predict_proba(X).max(axis=1), atol=1e-12)
        # Of three classes both come from the same draws; of two, p_top is exact and the other has 1,000 draws.
        error = 0.0 if nb is of_numbers() else 4.5 * np.sqrt(0.25 / 1000)
        np.testing.assert_allclose(found.p_optimal, bnb.decompose_uncertainty(nb, X).p_top, rtol=0, atol=error)


@pytest.mark.slow("compiles kernels of its own")
@settings(max_examples=5)
@given(cost=st.floats(0.01, 0.9))
def test_chow_rejects_where_no_class_is_probable_enough(cost):
    p = of_numbers().predict_proba(NUMBERS).max(axis=1)
    found = bnb.decide(of_numbers(), NUMBERS, zero_one(of_numbers().classes_), reject_cost=cost, draws=20)
    np.testing.assert_array_equal(found.action == "reject", p < 1 - cost)
    np.testing.assert_allclose(found.risk, np.minimum(1 - p, cost), atol=1e-12)


@pytest.mark.slow("a second view of what quick tests see")
def test_what_would_be_best_if_the_parameters_were_known():
    """P(optimal) and regret by their definitions, from draws of the class probabilities."""
    loss = np.array([[0.0, 2.0, 7.0], [1.0, 0.0, 3.0], [2.0, 1.0, 0.0], [0.8, 0.8, 0.8]])
    found = bnb.decide(of_numbers(), NUMBERS, loss, given="data", draws=400, seed=3)

    def every(log_proba, _):
        return np.moveaxis(log_proba, 0, -1)

    log_proba = RowSampler("moments", "data", 400, 3).map(of_numbers().fitted_, NUMBERS, every)
    for i in range(0, N, 4):
        risks = [[sum(np.exp(p) * loss[a]) for a in range(4)] for p in log_proba[i].T]
        best = np.array([min(r) for r in risks])
        own = np.array([r[found.action[i]] for r in risks])
        assert found.p_optimal[i] == pytest.approx(np.mean(own <= best + 1e-9), abs=1e-12)
        assert found.regret[i] == pytest.approx(np.mean(own - best), abs=1e-10)


@pytest.mark.slow("a second view of what quick tests see")
def test_of_a_frame_the_names_count_and_not_the_order():
    as_read = pd.DataFrame([[0, 10, 2], [1, 0, 2]], ["malignant", "benign"], ["treat", "send home", "watch"])
    as_read = as_read.rename_axis(index="truth", columns="action")
    found = bnb.decide(of_two(), X2, as_read, draws=20)
    plain = bnb.decide(of_two(), X2, [[1, 0], [0, 10], [2, 2]], draws=20)
    names = np.array(["treat", "send home", "watch"])
    np.testing.assert_array_equal(found.action, names[plain.action])
    np.testing.assert_array_equal(found.risk, plain.risk)
    assert "loss[action, truth]" in repr(found)
    assert found.loss.loc["send home", "malignant"] == 10
    truth = np.array(["malignant", "benign"])[Y2]
    expected = np.mean([found.loss.loc[a, t] for a, t in zip(found.action, truth, strict=True)])
    assert found.observed_risk(truth) == pytest.approx(expected)
    refused("y has the label 'unclear'", found.observed_risk, ["unclear"] * len(X2))


def test_a_dominated_action_is_named_and_never_taken():
    with pytest.warns(UserWarning, match="the action 2 is dominated, because 1 costs no more in any class"):
        found = bnb.decide(of_numbers(), ROWS, [[0, 5, 5], [1, 0, 1], [1, 3, 1], [5, 5, 0]], draws=50)
    assert 2 not in found.action


@pytest.mark.parametrize(
    ("loss", "options", "message"),
    [
        ([[0, np.inf, 1], [1, 0, 1], [1, 1, 0]], {}, r"loss\['ash', 'elm'\] is inf; every loss must be finite"),
        ([[0, 1], [1, 0], [2, 2]], {}, r"loss has shape \(3, 2\)"),
        ([["a", "b", "c"], ["d", "e", "f"]], {}, "loss must be a table of numbers"),
        (zero_one(["ash", "elm", "yew"]), {}, "but the classes are"),
        (zero_one(CLASSES), {"reject_cost": np.inf}, "reject_cost=inf must be a finite number"),
        (zero_one(CLASSES).rename(index={"ash": "elm"}), {}, "names an action twice"),
        (zero_one(CLASSES), {"given": "rows"}, "given='rows'"),
        (zero_one(CLASSES), {"draws": 0}, "draws=0"),
    ],
)
def test_losses_that_make_no_sense(loss, options, message):
    refused(message, bnb.decide, of_numbers(), ROWS, loss, **options)


def test_bayes_theorem():
    found = bayes_theorem({"man": 0.5, "woman": 0.5}, {"man": 0.05, "woman": 0.0025})
    assert found == {"man": Fraction(20, 21), "woman": Fraction(1, 21)}
    refused("impossible under every hypothesis", bayes_theorem, {"a": 1, "b": 1}, {"a": 0, "b": 0})
    refused("must have the same hypotheses", bayes_theorem, {"a": 1}, {"b": 1})
    refused("a likelihood in", bayes_theorem, {"a": 1}, {"a": 1.5})


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("method", ["moments", pytest.param("draws", marks=pytest.mark.calibration)])
def test_probability_of_being_optimal_is_calibrated(method):
    """Truth and rows from the prior; in each tenth of stated probability as many actions are the best ones."""
    rng = np.random.default_rng(6)
    alpha, n_sets, loss = 1.5, 3000, np.array([[0.0, 3.0], [1.0, 0.0], [0.6, 0.6]])
    stated, optimal = [], []
    for _ in range(n_sets):
        pi = rng.dirichlet([2.0, 2.0])
        theta = rng.dirichlet(np.full(3, alpha), (2, 4))
        label = rng.choice(2, 14, p=pi)
        X = np.array([[rng.choice(3, p=theta[c, f]) for f in range(4)] for c in label])
        nb = bnb.CategoricalNB(categories=[[0, 1, 2]] * 4, alpha=alpha, class_alpha=2.0)
        nb.partial_fit(X[:10], label[:10], classes=[0, 1])
        found = bnb.decide(nb, X[10:], loss, method=method, draws=400)
        joint = np.log(pi) + np.log(theta[:, np.arange(4), X[10:]]).sum(axis=2).T
        p = np.exp(joint - joint.max(axis=1, keepdims=True))
        risks = (p / p.sum(axis=1, keepdims=True)) @ loss.T
        stated.append(found.p_optimal)
        optimal.append(risks[np.arange(4), found.action] <= risks.min(axis=1) + 1e-12)
    stated, optimal = np.array(stated), np.array(optimal, float)
    tenth = np.minimum((stated * 10).astype(int), 9)
    for t in np.unique(tenth):
        here = tenth == t
        if here.sum() < 30:
            continue
        # Rows of one set share its parameters: sets are independent, rows are not.
        excess = np.where(here, optimal - stated, 0.0).sum(axis=1)
        z = excess.sum() / np.sqrt((excess**2).sum())
        print(
            f"{method} {t / 10:.1f}: stated {stated[here].mean():.3f}, optimal {optimal[here].mean():.3f}, z {z:+.2f}"
        )
        assert abs(z) < 3


def test_a_polars_table_of_losses_names_the_classes():
    pl = pytest.importorskip("polars")
    costs = {name: [float(3 * i), 1.0, 4.0 - i] for i, name in enumerate(reversed(CLASSES))}
    named = bnb.decide(of_numbers(), ROWS, pl.DataFrame(costs), draws=5)
    in_order = np.array([costs[name] for name in of_numbers().classes_.tolist()]).T
    np.testing.assert_allclose(named.risk, (of_numbers().predict_proba(ROWS) @ in_order.T).min(axis=1), rtol=1e-12)
