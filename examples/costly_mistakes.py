"""Decisions with unequal costs of errors.

A missed malignant tumour costs as much as ten false alarms, and there may be a third action, a second look. `decide`
takes the action with the lowest posterior expected loss. The script compares the expected loss with the observed loss
on test rows.

    python examples/costly_mistakes.py [--out DIR]

Breast cancer comes with scikit-learn: half of the rows are training rows, and half are test rows. The measurements are
used as numbers, and as eight levels with alpha chosen by leave-one-out (choose_prior.py explains why that is less
confident).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import bayesnb as bnb

MISSED, FALSE_ALARM, SECOND_LOOK, LEVELS = 10.0, 1.0, 0.2, 8

THEOREM = """Bayes' theorem for one observation: half of all people are men; 5% of men and .25% of women are
colour-blind. A colour-blind person is a man with probability {man}.
"""
CONCLUSION = """
How to read this
  "expected" is the mean posterior expected loss; "observed" is the actual cost of the actions (one missed row in 285 is
  .035). If naive Bayes held, the two would agree within chance. For numbers they differ greatly: measurements of one
  tumour repeat one another, naive Bayes counts each as new evidence, and almost all probabilities are near 0 or 1.
  Moving the threshold from 1/2 to {line:.3f} then changes few actions, and a second look is not taken for errors about
  which the model is certain.
  The losses are right, but the probabilities are wrong. With levels and the alpha of leave-one-out the probabilities
  are less extreme, so the losses change the actions: few tumours are missed, at the price of more alarms or many second
  looks, and the expected cost is close to the observed cost. Probabilities calibrated on held-out rows may be better
  still.
  P(optimal) is the posterior probability that the action is the best one for the true parameters, and regret is the
  loss that knowing these parameters would save. Both describe the uncertainty about the parameters after {rows}
  training rows, if naive Bayes holds. A P(optimal) of .99 does not mean that the action turns out well 99 times in 100,
  nor that it is the best action if the model is wrong: see the mean of P(optimal) over the mistakes.
"""


def losses(second_look: bool) -> pd.DataFrame:
    """Return the loss of each action (rows) under each truth (columns)."""
    table = {"benign": {"benign": 0.0, "malignant": MISSED}, "malignant": {"benign": FALSE_ALARM, "malignant": 0.0}}
    if second_look:
        table["second look"] = {"benign": SECOND_LOOK, "malignant": SECOND_LOOK}
    return pd.DataFrame.from_dict(table, orient="index").rename_axis(index="action", columns="truth")


def outcome(decisions: bnb.decision.Decisions, y: np.ndarray) -> dict[str, Any]:
    """Return the actions taken and their cost at the losses above."""
    missed = (decisions.action == "benign") & (y == "malignant")
    false_alarm = (decisions.action == "malignant") & (y == "benign")
    wrong = missed | false_alarm
    return {
        "missed": missed.sum(),
        "alarms": false_alarm.sum(),
        "looks": (decisions.action == "second look").sum(),
        "expected": decisions.expected_risk,
        "observed": decisions.observed_risk(y),
        "P(optimal)": decisions.p_optimal.mean(),
        "of mistakes": decisions.p_optimal[wrong].mean() if wrong.any() else np.nan,
        "regret": decisions.regret.mean(),
    }


def figure(tables: dict[str, tuple[Any, Any]], y: np.ndarray, path: Path) -> None:
    """Draw the classes on the scale of P(malignant), with the thresholds of the loss."""
    fig, panels = plt.subplots(1, len(tables), figsize=(11, 4.3), layout="constrained", sharey=True)
    lines = {
        "second look above": SECOND_LOOK / MISSED,
        "malignant, with no second look, above": FALSE_ALARM / (MISSED + FALSE_ALARM),
        "malignant above": 1 - SECOND_LOOK / FALSE_ALARM,
    }
    for ax, (kind, (nb, X)) in zip(panels, tables.items(), strict=True):
        log_proba = nb.predict_log_proba(X)
        log_odds = (log_proba @ np.where(nb.classes_ == "malignant", 1, -1)) / np.log(10)
        edges = np.linspace(-8, 8, 33)
        for truth, colour in (("benign", "#0072B2"), ("malignant", "#D55E00")):
            shown = np.clip(log_odds[y == truth], -8, 8)
            ax.hist(shown, edges, color=colour, alpha=0.6, label=truth)
        for (name, p), style in zip(lines.items(), (":", "-", "--"), strict=True):
            ax.axvline(np.log10(p / (1 - p)), color="black", lw=1, ls=style, label=f"{name} {p:.3f}")
        ax.set_xlabel("log10 odds of malignant (ends: and beyond)")
        ax.set_title(kind, loc="left")
        ax.set_yscale("symlog", linthresh=1)
    panels[0].set_ylabel("rows, log scale from 1 on")
    fig.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    fig.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figures")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    half = {"man": 0.5, "woman": 0.5}
    print(THEOREM.format(man=bnb.decision.bayes_theorem(half, {"man": 0.05, "woman": 0.0025})["man"]))

    cancer = load_breast_cancer()
    y = cancer.target_names[cancer.target]
    X, X_test, y, y_test = train_test_split(cancer.data, y, test_size=0.5, stratify=y, random_state=0)
    cuts = np.quantile(X, np.arange(1, LEVELS) / LEVELS, axis=0)
    level, level_test = ((part[:, None] > cuts).sum(axis=1) for part in (X, X_test))
    flat = bnb.CategoricalNB(categories=[list(range(LEVELS))] * X.shape[1]).fit(level, y)
    models = {
        "numbers": (bnb.GaussianNB().fit(X, y), X_test),
        "levels, alpha by LOO": (bnb.tune_alpha(flat, level, y).estimator, level_test),
    }
    print(f"{len(y_test)} rows, {(y_test == 'malignant').sum()} malignant. Loss\n{losses(second_look=True)}\n")
    for kind, (nb, rows) in models.items():
        found = {
            "zero-one": bnb.decide(nb, rows, bnb.decision.zero_one(nb.classes_)),
            "the loss": bnb.decide(nb, rows, losses(second_look=False)),
            "and second look": bnb.decide(nb, rows, losses(second_look=True)),
        }
        table = pd.DataFrame({name: outcome(decisions, y_test) for name, decisions in found.items()}).T
        counts = ["missed", "alarms", "looks"]
        print(f"{kind}\n{table.astype(dict.fromkeys(counts, int)).round(4).to_string(na_rep='')}\n")
    print("(expected, observed and regret are in units of the loss that names the line; zero-one loss counts errors)")
    print(CONCLUSION.format(rows=len(y), line=FALSE_ALARM / (MISSED + FALSE_ALARM)))
    figure(models, y_test, out / "costly_mistakes-odds.png")
    print(f"Figure in {out}/")


if __name__ == "__main__":
    main()
