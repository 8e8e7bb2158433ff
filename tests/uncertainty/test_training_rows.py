"""Analyses with the training rows, those of averages of models too, and input that cannot be used."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesnb as bnb
from bayesnb import posterior_draws, predict_interval, to_arviz
from bayesnb.decision import zero_one
from tests.raises import refused

RNG = np.random.default_rng(63)
N = 60
y = RNG.choice(["no", "yes"], N)
X = pd.DataFrame({"a": RNG.choice(["p", "q", "r"], N), "b": RNG.choice(["p", "q"], N)})
NB = bnb.CategoricalNB().fit(X, y)
VISITS: dict[str, Any] = {
    "rows": (X.loc[np.repeat(np.arange(N), 4)], np.repeat(y, 4)),
    "groups": np.repeat(np.arange(N), 4),
}
OF_VISITS = bnb.CategoricalNB().fit(*VISITS["rows"])


def copied(rng: np.random.Generator, n: int, copies: int) -> tuple[np.ndarray, np.ndarray]:
    """Three columns of two levels, each copied, with a tenth of the cells flipped."""
    label = rng.integers(0, 2, n)
    z = rng.random((n, 3)) < np.where(label[:, None], [0.7, 0.6, 0.55], [0.3, 0.4, 0.5])
    cells = np.repeat(z, copies, axis=1)
    return (cells ^ (rng.random(cells.shape) < 0.1)).astype(int), label


# -- where draws go ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "estimator", [bnb.CategoricalNB(), bnb.WeightedNB(), bnb.TAN()], ids=lambda e: type(e).__name__
)
def test_rows_are_the_draws_that_posterior_draws_returns(estimator):
    nb = estimator.fit(X, y)
    drawn = posterior_draws(nb, 300, seed=4, X=X, y=y)
    for analysis in (predict_interval, bnb.decompose_uncertainty):
        by_draws = analysis(nb, X, draws=drawn, seed=4)
        by_rows = analysis(nb, X, draws=300, seed=4, rows=(X, y))
        assert np.array_equal(np.asarray(by_draws), np.asarray(by_rows))


def test_such_draws_are_used_whatever_the_condition_is_by_default():
    """Draws of the same posterior without rows serve for their hyperparameters only, so that others give the same."""
    visits, labels = VISITS["rows"]
    drawn = posterior_draws(OF_VISITS, 400, X=visits, y=labels, groups=VISITS["groups"])
    lower, upper = predict_interval(OF_VISITS, X, draws=drawn)
    alone = predict_interval(OF_VISITS, X, draws=posterior_draws(OF_VISITS, 400))
    assert (upper - lower).mean() > 1.5 * (alone[1] - alone[0]).mean()
    mean, sd = bnb.log_odds_moments(OF_VISITS, X, draws=drawn)
    assert mean.shape == sd.shape == (N, 2)
    table = bnb.parameter_table(OF_VISITS, draws=drawn)
    assert table["sd"].to_numpy() == pytest.approx(
        np.concatenate([drawn["class_prob"].std(0, ddof=1), *drawn["theta"].std(0, ddof=1)])
    )


def test_arviz_has_the_rows_dependence():
    X_copied = X.assign(again=X["a"])
    with pytest.warns(bnb.SuspiciousColumnWarning):
        nb = bnb.CategoricalNB().fit(X_copied, y)
    data = to_arviz(nb, draws=200, chains=2, rows=(X_copied, y))
    theta = data["posterior"]["theta"].sel({"class": "no"}).to_numpy().reshape(400, -1)
    assert np.corrcoef(theta[:, 0], theta[:, 5])[0, 1] > 0.8
    assert data["posterior"].attrs["hyperprior"] == "rows"
    first, second = predict_interval(nb, X_copied, draws=data), predict_interval(nb, X_copied, rows=(X_copied, y))
    assert np.asarray(first) == pytest.approx(np.asarray(second), abs=0.1)


def test_tables_and_figures_take_rows():
    plain, visits = bnb.parameter_table(OF_VISITS), bnb.parameter_table(OF_VISITS, **VISITS)
    assert (visits["sd"] > 1.5 * plain["sd"]).all()
    ax = bnb.plots.prediction_intervals(OF_VISITS, X, y, **VISITS)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    lower, upper = predict_interval(OF_VISITS, X, **VISITS)
    assert band.min() == pytest.approx(lower[:, 1].min(), rel=1e-6)
    assert band.max() == pytest.approx(upper[:, 1].max(), rel=1e-6)
    bnb.plots.detach(ax)


def test_prevalence_and_decisions_take_rows():
    numbers = np.repeat(RNG.normal(size=(N, 1)) + 2.0 * (y == "yes")[:, None], 4, axis=0)
    nb, visits = bnb.GaussianNB().fit(numbers, VISITS["rows"][1]), {**VISITS, "rows": (numbers, VISITS["rows"][1])}
    new = RNG.normal(size=(400, 1)) + 2.0 * (np.arange(400) < 100)[:, None]
    assert (bnb.estimate_prevalence(nb, new, **visits).sd > 1.2 * bnb.estimate_prevalence(nb, new).sd).all()
    decisions = bnb.decide(OF_VISITS, X, zero_one(NB.classes_), **VISITS)
    assert decisions.regret.mean() > 1.2 * bnb.decide(OF_VISITS, X, zero_one(NB.classes_)).regret.mean()
    refused("rows and groups are for given='data'", bnb.estimate_prevalence, NB, X, given="scores", rows=(X, y))


# -- input that cannot be used -------------------------------------------------------------------------

BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "one array": ({"rows": (X,)}, ValueError, r"must be a tuple \(X, y\) or \(X, y, sample_weight\)"),
    "groups alone": ({"groups": y}, ValueError, "groups is given, but rows is not"),
    "fewer rows": ({"rows": (X[:40], y[:40])}, ValueError, "a total of 40; the classifier has .* a total of 60"),
    "other labels": ({"rows": (X, np.roll(y, 1))}, ValueError, "are not the rows that the classifier has counted"),
    "other cells": ({"rows": (X.iloc[::-1], y)}, ValueError, "column '[ab]', level"),
    "other weights": ({"rows": (X, y, np.full(N, 2.0))}, ValueError, "a total of 120; the classifier has"),
    "other columns": ({"rows": (X[["a"]], y)}, ValueError, "feature"),
    "no labels": ({"rows": (X, None)}, ValueError, "y is missing"),
    "labels of other rows": ({"rows": (X, y[:5])}, ValueError, "X has 60 rows, y has 5 labels"),
    "unknown label": ({"rows": (X, ["maybe", *y[1:]])}, ValueError, "maybe"),
    "groups of other rows": ({"rows": (X, y), "groups": [1, 2]}, ValueError, r"groups has shape \(2,\)"),
    "one group": ({"rows": (X, y), "groups": [1] * N}, ValueError, "all 60 rows are in one group"),
    "missing group": ({"rows": (X, y), "groups": [None, *y[1:]]}, ValueError, "the group of row 0 is missing"),
    "given the row": ({"rows": (X, y), "given": "row"}, NotImplementedError, "given='row' is not available"),
    "draws and rows": ({"rows": (X, y), "draws": posterior_draws(NB, 10)}, ValueError, "draws"),
}


@pytest.mark.parametrize("name", BAD)
def test_rows_that_cannot_be_used_are_refused(name):
    arguments, error, message = BAD[name]
    refused(message, predict_interval, NB, X, **arguments, error=error)


def test_posterior_draws_without_rows_take_no_labels():
    refused("y is given, but X is not", posterior_draws, NB, y=y)
    refused("groups is given, but X is not", posterior_draws, NB, groups=y)


def test_classes_without_rows_and_constant_columns_have_their_prior():
    """A class without rows is drawn from the prior; a constant column adds nothing to the variance's draws."""
    numbers = pd.DataFrame({"u": RNG.normal(size=N), "v": np.where(y == "yes", 3.0, RNG.normal(size=N))})
    nb = bnb.GaussianNB().partial_fit(numbers, y, classes=["maybe", "no", "yes"])
    with_rows, without = posterior_draws(nb, 4000, X=numbers, y=y), posterior_draws(nb, 4000)
    for name in ("mu", "sigma2"):
        for quantile in (0.1, 0.5, 0.9):
            a, b = (np.quantile(draws[name][:, [0, 2], 1], quantile, axis=0) for draws in (with_rows, without))
            assert a == pytest.approx(b, rel=0.3, abs=0.15)


@pytest.mark.slow("fits many averages of models")
def test_averages_of_models_have_intervals_with_rows():
    rng = np.random.default_rng(1)
    truth, inside = bnb.AODE().fit(*copied(rng, 20_000, 2)), []
    for _ in range(8):
        (rows, label), (new, _) = copied(rng, 200, 2), copied(rng, 60, 2)
        nb, p = bnb.AODE().fit(rows, label), truth.predict_proba(new)[:, 1]
        lower, upper = predict_interval(nb, new, rows=(rows, label), draws=500)
        inside.append(np.mean((lower[:, 1] <= p) & (p <= upper[:, 1])))
    assert 0.8 < np.mean(inside) < 0.99


def test_an_average_of_models_needs_the_rows():
    nb = bnb.AODE().fit(X, y)
    with pytest.raises(NotImplementedError):
        predict_interval(nb, X)
    mixture = bnb.NaiveBayesMixture(2, estimator=bnb.CategoricalNB()).fit(X)
    with pytest.raises(NotImplementedError, match="NaiveBayesMixture has point estimates"):
        predict_interval(mixture, X, rows=(X, y))
    with pytest.raises(NotImplementedError, match="given='row' is not available"):
        predict_interval(nb, X, rows=(X, y), given="row")
    with pytest.raises(ValueError, match="groups is given, but rows is not"):
        bnb.decide(nb, X[:5], zero_one(nb.classes_), groups=y)
    lower, upper = predict_interval(nb, X[:5], rows=(X, y), draws=200)
    p = nb.predict_proba(X[:5])
    assert ((lower < p) & (p < upper)).all()
    assert bnb.decide(nb, X[:5], zero_one(nb.classes_), rows=(X, y), draws=50).p_optimal.shape == (5,)


def test_dependence_ratio_is_one_for_independent_columns_and_the_root_of_copies_of_one_column():
    rng = np.random.default_rng(2)
    label = rng.integers(0, 2, 400)
    alone = rng.normal(size=(400, 4))
    same = np.repeat(alone[:, :1], 4, axis=1) + 1e-3 * alone
    for numbers, expected in ((alone, 1.0), (same, 2.0)):
        nb = bnb.GaussianNB().fit(numbers, label)
        ratio = bnb.dependence_ratio(nb, numbers[:60], rows=(numbers, label))
        assert np.median(ratio) == pytest.approx(expected, rel=0.15)
