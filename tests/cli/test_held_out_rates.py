"""The first section of the report: rates of the classes, recall and precision, beside scikit-learn's."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import precision_score, recall_score, roc_auc_score

from bayesnb.cli.comparison import HeldOut


def held_out(n: int, rate: float, signal: float, seed: int, classes: tuple[str, ...] = ("well", "ill")) -> HeldOut:
    """Rows whose log odds are normal with a mean that the label moves by `signal`, and calibrated probabilities."""
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < rate).astype(int)
    x = rng.normal(signal * label, 1.0)
    odds = rate / (1 - rate) * np.exp(signal * x - signal**2 / 2)
    p = odds / (1 + odds)
    return HeldOut(classes, label, np.column_stack([1 - p, p]))


def test_recall_and_precision_are_those_of_scikit_learn():
    rows = held_out(2000, 0.06, 2.0, seed=0)
    (text, table) = rows.section("weighted").blocks
    p, is_ill = rows.proba[:, 1], rows.label == 1
    for threshold, flagged, recall, precision in table.rows:
        choice = p >= float(threshold)
        assert int(flagged.replace(",", "")) == choice.sum()
        assert float(recall) == pytest.approx(recall_score(is_ill, choice), abs=6e-4)
        assert float(precision) == pytest.approx(precision_score(is_ill, choice), abs=6e-4)
    assert f"{1 - is_ill.mean():.1%} of 2,000" in text.text
    assert f"in {roc_auc_score(is_ill, p):.0%} of the pairs" in text.text


def test_on_noise_nothing_is_found_and_on_a_signal_more_than_chance():
    noise = [held_out(400, 0.1, 1e-9, seed) for seed in range(200)]
    rng = np.random.default_rng(0)
    shuffled = [HeldOut(rows.classes, rng.permutation(rows.label), held_out(400, 0.1, 1.0, 9).proba) for rows in noise]
    claims = sum("finds more" in rows.section("weighted").blocks[0].text for rows in shuffled)
    assert claims <= 0.05 * 200
    found = sum("finds more" in held_out(400, 0.1, 1.0, seed).section("mle").blocks[0].text for seed in range(50))
    assert found >= 45


def test_calibrated_probabilities_are_within_noise_and_doubled_ones_are_not():
    texts = [held_out(2000, 0.06, 2.0, seed).section("x").blocks[0].text for seed in range(50)]
    assert sum("within noise" in text for text in texts) >= 44
    rows = held_out(2000, 0.06, 2.0, seed=1)
    p = np.minimum(1.0, 2.0 * rows.proba[:, 1])
    text = HeldOut(rows.classes, rows.label, np.column_stack([1 - p, p])).section("x").blocks[0].text
    assert "more than noise" in text


def test_several_classes_have_a_row_each():
    rng = np.random.default_rng(0)
    label, proba = rng.integers(0, 3, 300), rng.dirichlet(np.ones(4), 300) * [1, 1, 0.1, 0]
    section = HeldOut(["a", "b", "c", "rare"], label, proba / proba.sum(axis=1, keepdims=True)).section("map")
    text, table = section.blocks
    choice = proba.argmax(axis=1)
    for name, n, _, predicted, found, _ in table.rows:
        c = "abc".find(name)
        assert (int(n), int(predicted)) == ((label == c).sum() if c >= 0 else 0, (choice == c).sum() if c >= 0 else 0)
        if c >= 0:
            assert float(found) == pytest.approx(recall_score(label == c, choice == c), abs=6e-4)
    assert f"{np.mean(choice == label):.1%}" in text.text


def test_costs_are_those_of_brute_force():
    rows = held_out(2000, 0.06, 2.0, seed=0)
    losses = pd.DataFrame([[0.0, 15.0], [1.0, 0.0]], index=["wait", "treat"], columns=["well", "ill"])
    costly = HeldOut(rows.classes, rows.label, rows.proba, losses)
    _, table, costs = costly.section("weighted").blocks
    treat = rows.proba[:, 1] >= 1 / 16
    paid = np.where(treat, losses.loc["treat"].to_numpy()[rows.label], losses.loc["wait"].to_numpy()[rows.label])
    waiting, treating = losses.to_numpy()[:, rows.label].mean(axis=1)
    assert f"costs {paid.mean():.4g} a row" in costs.text
    assert f"costs {min(waiting, treating):.4g}." in costs.text
    (line,) = [row for row in table.rows if "least loss" in row[0]]
    assert line[0].startswith("0.0625")
    assert int(line[1].replace(",", "")) == treat.sum()
    swapped = HeldOut(rows.classes, rows.label, rows.proba, losses[::-1])
    assert [row for row in swapped.section("x").blocks[1].rows if "least loss" in row[0]] == [line]
