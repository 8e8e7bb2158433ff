"""Conclusions of the report, from constructed comparisons at the edge of each rule."""

import math
import re

import pandas as pd
import pytest

from bayesnb.cli.comparison import Base, Findings, Step, conclude

ROWS = 400
EVEN = {"a": 0.5, "b": 0.5}


def row(brier, difference=(0.0, 0.0), log=None, accuracy=0.8, confidence=0.8, impossible=0, undefined=0):
    """One row of a comparison; differences from maximum likelihood are (mean, standard error)."""
    log = difference if log is None else log
    return {
        "brier": brier,
        "accuracy": accuracy,
        "confidence": confidence,
        "impossible_rows": impossible,
        "undefined_rows": undefined,
        "brier_difference": difference[0],
        "brier_difference_se": difference[1],
        "log_loss_difference": log[0],
        "log_loss_difference_se": log[1],
    }


def found(table, rows=ROWS, fits=1, shares=EVEN, kinds=("gaussian", "gaussian"), gains=None, **more):
    frame = pd.DataFrame(list(table.values()), index=pd.Index(list(table), name="estimate"))
    named = {f"x{i}": kind for i, kind in enumerate(kinds)}
    label, share = max(shares.items(), key=lambda own: own[1])
    base = Base(label, share, 1 - sum(p**2 for p in shares.values()), gains or {})
    return conclude(Findings(frame, rows, fits, base, "bayesnb.GaussianNB()", named, **more))


GAIN = (-0.095, 0.010)
WIN = {
    "mle": row(0.30, confidence=0.95),
    "predictive": row(0.295, (-0.005, 0.004), confidence=0.94),
    "weighted": row(0.20, (-0.10, 0.02)),
}
TIE = {"mle": row(0.30), "predictive": row(0.295, (-0.005, 0.004)), "weighted": row(0.31, (0.01, 0.02))}
LOSS = {"mle": row(0.30), "predictive": row(0.35, (0.05, 0.01)), "weighted": row(0.34, (0.04, 0.03))}


def test_a_clear_win():
    c = found(WIN, weighting=GAIN)
    assert c.verdict == (
        "Weighted wins: its Brier score is 0.2000, that of maximum likelihood 0.3000. The difference is -0.100 ± "
        "0.020, 5.0 standard errors; that is more than noise. Weights change the Brier score of predictive by -0.095 ± "
        "0.010, which is more than noise."
    )
    assert c.details[0] == "Predictive is within noise of maximum likelihood (-0.0050 ± 0.0040)."
    assert c.steps == (
        Step("Weights won: predict with weights.", "bayesnb.WeightedNB(bayesnb.GaussianNB()).fit(X, y)"),
    )
    saved = found(WIN, weighting=GAIN, saved_by_fit=True)
    assert [step.code for step in saved.steps] == ["bayesnb.WeightedNB().fit(X, y)"]
    assert "y is the column y and X is the table without y," in c.about
    about = found(WIN, target="diagnosis", left_out=("number",)).about
    assert "y is the column diagnosis and X is the table without diagnosis, number," in about


def test_a_tie_is_a_conclusion_and_asks_for_nothing():
    c = found(TIE)
    assert c.verdict == (
        "No estimate beats maximum likelihood by more than noise: predictive has the lowest Brier score, 0.2950, "
        "and maximum likelihood has 0.3000; they differ by -0.0050 ± 0.0040."
    )
    assert c.steps == ()
    lower = found(TIE | {"predictive": row(0.305, (0.005, 0.004))})
    assert lower.verdict.startswith(
        "No estimate beats maximum likelihood by more than noise: maximum likelihood has the lowest Brier score, "
    )
    assert "predictive differs from it by +0.0050 ± 0.0040" in lower.verdict
    worse = found(TIE | {"mean": row(0.35, (0.05, 0.001))})  # a difference beyond noise, though none that is better
    assert worse.verdict.startswith("No estimate beats maximum likelihood by more than noise: predictive has")


@pytest.mark.parametrize(("times", "wins"), [(1.99, False), (2.01, True), (-2.01, False)])
def test_noise_is_two_standard_errors(times, wins):
    c = found({"mle": row(0.3), "predictive": row(0.3 - 0.01 * times, (-0.01 * times, 0.01))})
    assert c.verdict.startswith("Predictive wins") == wins
    assert c.verdict.startswith("Maximum likelihood wins") == (times < -2)


@pytest.mark.parametrize("se", [math.nan, math.inf])
def test_without_a_standard_error_nothing_is_claimed(se):
    c = found({"mle": row(0.3, (0.0, se)), "predictive": row(0.1, (-0.2, se))}, rows=1)
    assert c.verdict.startswith("No estimate beats maximum likelihood by more than noise")
    assert "too few rows for a standard error" in c.verdict


def test_cross_validation_understates_and_it_is_said():
    """Differences of two to three standard errors are not significant across folds."""
    table = {"mle": row(0.3), "predictive": row(0.275, (-0.025, 0.01))}
    assert found(table).verdict.startswith("Predictive wins")
    crossed = found(table, fits=5)
    assert crossed.verdict.startswith("No estimate beats maximum likelihood by more than noise: predictive has")
    assert any("too small: here noise is up to 3 of them, not 2." in text for text in crossed.details)
    assert found(WIN, fits=5).verdict == found(WIN).verdict
    assert any("17 rows a standard error is itself a rough estimate" in text for text in found(TIE, rows=17).details)


@pytest.mark.parametrize(("moved", "asked"), [((1, 17), False), ((2, 17), True), ((8, 400), False), ((9, 400), True)])
def test_a_prior_that_decides(moved, asked):
    steps = found(TIE, moved=moved).steps
    assert [step.code for step in steps] == [
        "bayesnb.tune_alpha(bayesnb.GaussianNB().fit(X, y), X, y).estimator"
    ] * asked
    assert all(f"{moved[0]} of {moved[1]} held-out rows" in step.why for step in steps)


def test_logistic_regression_is_a_baseline_and_wins_nothing():
    table = WIN | {"logistic regression": row(0.15, (-0.15, 0.02))}
    c = found(table, over_logistic={"mle": (0.15, 0.02), "predictive": (0.145, 0.02), "weighted": (0.05, 0.01)})
    assert c.verdict.startswith("Weighted wins")
    assert c.verdict.endswith(
        "Logistic regression has a Brier score of 0.1500, and weighted is worse than it by more than noise (+0.050 ± "
        "0.010)."
    )
    assert "Logistic" not in found(WIN).verdict


def test_dependence_that_weights_do_not_mend():
    assert not found(WIN, weighting=GAIN, dependent=(5, 10)).steps[1:]  # they do
    assert found(TIE, dependent=(0, 10), density_open=True).steps == ()
    sure = WIN | {"weighted": row(0.2, (-0.1, 0.02), confidence=0.95)}
    (_, step) = found(sure, weighting=GAIN, dependent=(5, 10)).steps
    assert "5 of 10 pairs" in step.why
    assert "weights are still overconfident" in step.why
    assert step.code == "bayesnb.WeightedNB().fit(X, y)"
    assert len(found(sure, weighting=GAIN, dependent=(5, 10), saved_by_fit=True).steps) == 1  # It has parents already.
    structure, density = found(TIE, dependent=(200, 19900), density_open=True).steps
    assert "at least 200 of 19,900 pairs" in structure.why
    assert density.code == "--numbers auto"
    few = {name: TIE[name] for name in ("mle", "predictive")}
    assert found(few, dependent=(1, 3)).steps[0].code == 'bayesnb.TAN("evidence", numbers="binned").fit(X, y)'
    levels = found(few, dependent=(1, 3), kinds=["categorical", "categorical"])
    assert levels.steps[0].code == 'bayesnb.TAN("evidence").fit(X, y)'
    assert found(TIE, dependent=(5, 10), kinds=["multinomial"] * 5).steps == ()


@pytest.mark.parametrize("table", [WIN, TIE, LOSS])
def test_nothing_says_that_a_label_is_probably_right(table):
    c = found(table, moved=(40, 400), dependent=(5, 10), density_open=True)
    said = " ".join([c.verdict, *c.confidence, *c.details, *(step.why for step in c.steps)])
    assert not re.search(r"probability that|proves|significan|nan|inf\b", said)
