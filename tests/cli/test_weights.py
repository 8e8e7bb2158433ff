"""`--weights` of the command line against weighted classifiers fitted by hand."""

import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.base import clone

import bayesnb as bnb
from bayesnb import GaussianNB, WeightedNB
from bayesnb.cli import labelled_data, tables
from bayesnb.cli.labelled_data import Settings, fit_folds, split
from tests.cli.test_compare import cells, load, run, section, weather

TITLE = "Weights of the features"


@pytest.fixture
def witnesses(tmp_path):
    """A file of numbers: one is heard three times, another one once."""
    data = weather(300)[["heat", "play"]]
    wind = np.random.default_rng(1).normal(1.5 * (data["play"] == "yes"), 1.0).round(3)
    data = data.assign(again=data["heat"], once_more=data["heat"], wind=wind)
    path = tmp_path / "weather.csv"
    data.to_csv(path, index=False)
    return path, data.drop(columns="play"), data["play"].to_numpy()


def weighted(X, y, kind="feature"):
    return WeightedNB(GaussianNB(), kind).fit(X, y)


@pytest.mark.slow("compiles kernels of its own")
def test_plain_and_weighted_stand_side_by_side(capsys, witnesses, tmp_path):
    path, X, y = witnesses
    flags = ["--csv", path, "--target", "play", "--weights", "feature", "--test-size", 0.3, "--out", tmp_path]
    code, out, err = run(capsys, "compare", *flags)
    assert (code, err) == (0, "")
    ((train, test),), _ = split(y, Settings(test_size=0.3))
    proba = weighted(X.iloc[train], y[train]).predict_proba(X.iloc[test])
    scores = pd.read_csv(tmp_path / "weather-comparison.csv", index_col="estimate")
    assert scores.index.tolist() == ["mle", "map", "mean", "predictive", "weighted", "logistic regression"]
    assert scores.loc["weighted", "log_loss"] == pytest.approx(metrics.log_loss(y[test], proba))
    assert scores.loc["weighted", "log_loss"] < scores.loc["predictive", "log_loss"]
    assert np.isnan(scores.loc["weighted", "log_evidence"])

    whole = weighted(X, y)
    assert whole.shrinkage_ > 0
    found = pd.read_csv(tmp_path / "weather-weights.csv")
    assert dict(found[["term", "weight"]].to_numpy()) == pytest.approx(dict(zip(X.columns, whole.weight_, strict=True)))
    assert (np.diff(found["weight"]) <= 0).all()
    said = re.sub(r"\s+", " ", out)
    assert f"around {whole.temperature_:.3g}, from {whole.weight_.min():.3g} (" in said
    assert f" to {whole.weight_.max():.3g} (wind)" in said
    losses = f"{whole.weights_.plain_log_loss:.3g} without weights and {whole.expected_log_loss_:.3g} with"
    assert f"expected log loss on new rows is {losses} weights, from fits to halves of the 300 rows" in said
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    header, *rows = cells(section(page, TITLE))
    assert header == ["feature", "weight"]
    assert [float(row[1]) for row in rows] == pytest.approx(found["weight"], abs=5e-4)
    assert "are meant to correct that" in section(page, "Stated confidence and observed accuracy")


@pytest.mark.slow("compiles kernels of its own")
def test_where_none_can_be_found_it_is_said(capsys, tmp_path):
    path = tmp_path / "sparse.csv"
    path.write_text("a,y\n" + "p,x\nq,z\n" * 10)
    code, out, _ = run(capsys, "compare", "--csv", path, "--target", "y", "--alpha", "0", "--out", tmp_path)
    assert code == 0
    assert "note: No weights. weights: for row" in re.sub(r"\s+", " ", out)
    assert "weighted" not in pd.read_csv(tmp_path / "sparse-comparison.csv")["estimate"].tolist()
    path.write_text("a,y\n" + "p,x\nq,z\n" * 9)
    code, out, err = run(capsys, "compare", "--csv", path, "--target", "y")
    assert (code, err) == (0, "")
    assert out.count("note: ") == 1
    assert "note: No weights. Weights need at least 10 rows outside the largest class." in out
    assert "Weights of the features" not in out
    path.write_text("a,y\n" + "p,x\nq,z\n" * 10 + "q,x\n")
    _, out, _ = run(capsys, "compare", "--csv", path, "--target", "y")
    assert out.count("note: ") == 1
    assert "note: weighted: 5 of 6 fits have too few rows for weights, and predict without them." in out
    assert "Weights (1 in naive Bayes)" in out


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("most", [40, 120])
def test_a_file_larger_than_memory(capsys, monkeypatch, tmp_path, most):
    """Weights come from the sample that is in memory, never from rows held out; all other rows are counted."""
    monkeypatch.setattr(tables, "available_memory", lambda: 0)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 7)
    monkeypatch.setattr(labelled_data, "_MOST_ROWS", most)
    data = weather(203)[["heat", "play"]]
    data.to_csv(tmp_path / "weather.csv", index=False)
    X, y = data[["heat"]], data["play"].to_numpy()
    loaded = load(tmp_path / "weather.csv")
    nb, kept = WeightedNB(GaussianNB(), "temperature"), loaded.rows.X.index
    fits, plain = fit_folds(nb, loaded, Settings()), fit_folds(GaussianNB(), loaded, Settings()).folds[0]
    (fold,) = fits.folds
    assert len(kept) == most
    assert fold.rows.tolist() == plain.rows.tolist()
    assert set(fold.rows) < set(kept)
    assert Counter(fold.y) == {c: round(0.3 * n) for c, n in Counter(y[kept]).items()}
    for found, rows in ((fits.nb, kept), (fold.nb, np.setdiff1d(kept, fold.rows))):
        others = np.setdiff1d(np.arange(203), kept)
        by_hand = clone(nb).fit(X.iloc[rows], y[rows])
        assert found.temperature_ == pytest.approx(by_hand.temperature_, rel=1e-6)
        by_hand.partial_fit(X.iloc[others], y[others])
        np.testing.assert_allclose(found.predict_proba(X), by_hand.predict_proba(X), rtol=1e-9)
        assert found.class_count_.sum() == len(rows) + len(others)
    code, out, _ = run(capsys, "compare", "--csv", tmp_path / "weather.csv", "--target", "play")
    assert code == 0
    assert re.search(r"^weighted ", out, re.MULTILINE)
    assert "note: No logistic regression. The rows do not fit into memory." in out
    assert f"halves of the {most} rows" in re.sub(r"\s+", " ", out)


@pytest.mark.parametrize("memory", ["whole", "pieces"])
def test_compare_assesses_what_fit_saves(capsys, monkeypatch, tmp_path, memory):
    """Whole numbers 1 … 5 are numbers, and two distinct numbers levels; the row weighted is `WeightedNB()`."""
    if memory == "pieces":
        monkeypatch.setattr(tables, "available_memory", lambda: 0)
        monkeypatch.setattr(labelled_data, "_MOST_ROWS", 150)
    rng = np.random.default_rng(2)
    data, left = weather(240), rng.integers(0, 2, 240)
    right = np.where(rng.random(240) < 0.9, left ^ (data["play"] == "yes"), left)  # tells something beside left only
    data = data.assign(stars=rng.integers(1, 6, 240), left=np.array(["p", "q"])[left], right=right == 1)
    data.to_csv(tmp_path / "weather.csv", index=False)
    flags = ["--csv", tmp_path / "weather.csv", "--target", "play", "--drop", "id"]
    code, said, err = run(capsys, "fit", *flags, "--model", tmp_path / "m")
    assert (code, err) == (0, "")
    saved, features = bnb.load(tmp_path / "m"), ["sky", "windy", "heat", "stars", "left", "right"]
    assert repr(saved) == repr(WeightedNB())
    assert {"levels: sky, windy, left, right", "numbers: heat, stars"} <= {*said.splitlines()}
    code, said, err = run(capsys, "compare", *flags, "--out", tmp_path, "--test-size", 0.3)
    assert (code, err) == (0, "")
    levels = ["sky (3 levels)", "windy (2 levels)", "left (2 levels)", "right (2 levels)"]
    assert {f"- categorical: {', '.join(levels)}", "- gaussian: heat, stars"} <= {*said.splitlines()}

    found = pd.read_csv(tmp_path / "weather-weights.csv").set_index("term")["weight"]
    expected = bnb.weight_table(saved).set_index("term")["weight"]
    assert found.to_dict() == pytest.approx(expected.to_dict())
    assert saved.dependence_temperature_ > 0  # Some features have parents.
    assert "<code>bayesnb.WeightedNB().fit(X, y)</code>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    if memory == "whole":
        X, y = data[features], data["play"].to_numpy()
        ((train, test),), _ = split(y, Settings(test_size=0.3))
        proba = WeightedNB().fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
        scores = pd.read_csv(tmp_path / "weather-comparison.csv", index_col="estimate")
        assert scores.loc["weighted", "log_loss"] == pytest.approx(metrics.log_loss(y[test], proba))
