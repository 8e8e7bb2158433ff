"""Choosing alpha by leave-one-out, which predicts labels, or by evidence, which predicts rows.

`tune_alpha` maximises one of two criteria. by="loo": Σ log P(label | row, all other rows). by="evidence": log p(rows
and labels), which is the sum of the log predictive probabilities of all rows in sequence, word by word. If the model
and the prior were right, both criteria would choose a similar alpha. Naive Bayes is not right here, and the two differ.

    python examples/choose_prior.py [FOLDER] [--out DIR]

Breast cancer comes with scikit-learn: each measurement is cut into eight levels at the quantiles of the training half,
and the other half is the test set. FOLDER has four topics of 20 Newsgroups, split by date, as in certain_and_wrong.py;
later texts are the test set.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from certain_and_wrong import read_counts
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import bayesnb as bnb

LEVELS, WORST = 8, 10
CRITERIA = ("loo", "evidence")
READINGS = {"predictive": "integrated out", "mean": "at their mean"}

CANCER = """
The thirty measurements repeat one another: radius, perimeter and area are nearly the same. Naive Bayes counts each as
new evidence and is overconfident. LOO penalizes overconfident predictions of the labels, so it chooses a prior so
strong that each level carries hardly any evidence; thirty weak pieces of evidence then add up to about the right
probability. The evidence describes the measurements themselves, for which this prior is far too strong. Accuracy hardly
changes: all probabilities move towards one half in the same way, and hardly one crosses it.
"""
TOPICS = """
Words depend on each other too, and LOO again chooses the stronger prior. Here a few long texts dominate the LOO sum:
for some of them the true label loses by hundreds of nats. LOO chooses alpha for these texts, and gains hardly more than
the standard error. The strong prior costs accuracy, because it weakens rare words. The log losses on the test set also
depend on a few texts: with parameters integrated out the alpha of the evidence is better, with parameters at their mean
the alpha of LOO is, and neither by much more than the standard error. LOO also predicts a text from replies to the same
question and from texts with the same signature, while the test set has later texts. Rows ordered by time are not
exchangeable, so the LOO accuracy is well above the test accuracy.
"""
MORAL = """
Neither alpha is "the right one". Use LOO if you need P(label | row), rows are exchangeable, and the sum is not
dominated by a few rows. Use the evidence if the model should describe the rows (draws, Bayes factors, generative uses),
or if time is short: it needs only the counts. Both values of alpha are estimated from the training rows, so the LOO
score of the tuned model is slightly optimistic; compare models on other rows.
"""


@dataclass(frozen=True, eq=False)
class Case:
    """Training rows with the fitted classifier, and test rows."""

    name: str
    nb: Any
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    moral: str


def cancer() -> Case:
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    cuts = np.quantile(X, np.arange(1, LEVELS) / LEVELS, axis=0)
    X, X_test = ((part[:, None] > cuts).sum(axis=1) for part in (X, X_test))
    nb = bnb.CategoricalNB(categories=[list(range(LEVELS))] * X.shape[1]).fit(X, y)
    return Case("cancer", nb, X, y, X_test, y_test, CANCER)


def newsgroups(folder: Path) -> Case:
    n_words = len((folder / "4cat_vocab.txt").read_text(encoding="utf-8").splitlines())
    X, y = read_counts(folder / "4cat_train.counts.tsv", n_words)
    X_test, y_test = read_counts(folder / "4cat_test.counts.tsv", n_words)
    return Case("newsgroups", bnb.MultinomialNB().fit(X, y), X, y, X_test, y_test, TOPICS)


def test_losses(nb: Any, case: Case, estimate: str) -> np.ndarray:
    """Return -log P(truth | row), (N,)."""
    truth = np.searchsorted(nb.classes_, case.y_test)
    return -nb.predict_log_proba(case.X_test, estimate=estimate)[np.arange(len(truth)), truth]


def report(case: Case, out: Path) -> None:
    print(f"{case.name}: {len(case.y):,} training rows, {len(case.y_test):,} test rows")
    print(f"{'tuned by':>10} {'alpha':>9}   {'LOO sum':>9} {'accuracy':>9}   {'test accuracy':>13} {'stated':>7}")
    tuned = {by: bnb.tune_alpha(case.nb, case.X, case.y, by=by) for by in CRITERIA}
    left_out = {by: bnb.loo(tuned[by].estimator, case.X, case.y) for by in CRITERIA}
    for by in CRITERIA:
        nb = tuned[by].estimator
        stated = nb.predict_proba(case.X_test).max(axis=1).mean()
        print(
            f"{by:>10} {tuned[by].alpha:>9.3f}   {left_out[by].elpd:>9.1f} {left_out[by].accuracy:>9.3f}   "
            f"{nb.score(case.X_test, case.y_test):>13.3f} {stated:>7.3f}"
        )
    gain = left_out["loo"].pointwise - left_out["evidence"].pointwise
    print(f"LOO sum, difference: {gain.sum():+.1f} ± {gain.std() * np.sqrt(len(gain)):.1f}")
    for estimate, name in READINGS.items():
        by_loo, by_evidence = (test_losses(tuned[by].estimator, case, estimate) for by in CRITERIA)
        more = by_loo - by_evidence
        print(
            f"test log loss, parameters {name}: loo {by_loo.mean():.3f}, evidence {by_evidence.mean():.3f}, "
            f"difference {more.mean():+.3f} ± {more.std() / np.sqrt(len(more)):.3f}"
        )
    worst = np.sort(left_out["loo"].pointwise)[:WORST]
    print(f"{WORST} of {len(case.y):,} rows make up {worst.sum() / left_out['loo'].elpd:.0%} of the LOO sum")
    print(case.moral, flush=True)

    fig, panels = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for ax, by in zip(panels, CRITERIA, strict=True):
        tuned[by].path.sort_values("alpha").plot(x="alpha", y="objective", logx=True, marker="o", title=by, ax=ax)
    fig.savefig(out / f"choose_prior-{case.name}.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="four topics as counts of words")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print("""LOO: on the training rows, each left out. stated: mean probability of the predicted class, to compare with
the accuracy. ±: one standard error, for independent rows. Parameters integrated out and at their mean give the same
result for levels, not for counts.
""")
    report(cancer(), options.out)
    if options.folder is None:
        print("newsgroups: not run, because no FOLDER was given\n")
    else:
        report(newsgroups(options.folder), options.out)
    print(f"{MORAL.strip()}\n\nFigures in {options.out}/")


if __name__ == "__main__":
    main()
