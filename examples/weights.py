"""Calibrated probabilities by weighting the evidence of each feature.

Naive Bayes assumes that features are independent, and counts repeated information several times: it is right far less
often than it states. `WeightedNB` fits random halves of the rows, and gives each feature the weight with which these
fits predict the labels of the other halves best. Then it fits all rows. One fitted classifier gives both predictions:
with weights, and, by its `estimator_`, without.

    python examples/weights.py [FILE] [--newsgroups FOLDER] [--out DIR]

Breast cancer comes with scikit-learn: thirty measurements, scored in ten-fold cross-validation. FILE is vote.arff and
FOLDER has four topics of 20 Newsgroups, both as in certain_and_wrong.py; the votes are scored in ten folds too, the
texts on later texts.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from certain_and_wrong import read_arff, read_counts
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold

import bayesnb as bnb
from bayesnb.evaluation import reliability, scores

FOLDS, SHOWN = 10, 3
SCORES = ["log_loss", "brier", "accuracy", "confidence", "ece"]

CANCER = """
Radius, perimeter and area are nearly the same measurement, taken in three ways: many of the thirty features repeat
others. Weights well below 1 correct this. Some weights are negative: such a feature corrects the others.
"""
VOTES = """
The vote on the physicians' fees almost decides the party, and keeps its full weight. Votes on which a party was
divided, such as immigration, carry little information, but no other vote repeats it, so their weight is above 1. Votes
on Central America and on arms repeat one another: their weights are small, and some negative.
"""
TOPICS = """
The words of a text share one simplex, so they have one common weight, which decreases with the length of the text:
words occur in bursts, and naive Bayes is far too confident about long texts. Two numbers are fitted, and they change
the predicted topic of hardly any text; they change the confidence.
"""


@dataclass(frozen=True, eq=False)
class Case:
    """Weighted classifier fitted to all training rows, and predictions of rows by fits without them."""

    name: str
    nb: bnb.WeightedNB
    truth: np.ndarray
    plain: np.ndarray
    weighted: np.ndarray
    moral: str


def folds(name: str, nb: bnb.WeightedNB, X: pd.DataFrame, y: np.ndarray, moral: str) -> Case:
    """Predict each row by a fit to the other folds, including its weights."""
    plain, weighted = np.empty((2, len(y), len(np.unique(y))))
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        nb.fit(X.iloc[train], y[train])
        plain[test] = nb.estimator_.predict_log_proba(X.iloc[test])
        weighted[test] = nb.predict_log_proba(X.iloc[test])
    return Case(name, nb.fit(X, y), y, plain, weighted, moral)


def cancer() -> Case:
    data = load_breast_cancer(as_frame=True)
    y = data.target_names[data.target]
    return folds("cancer", bnb.WeightedNB(bnb.GaussianNB()), data.data, y, CANCER)


def votes(path: Path) -> Case:
    table = read_arff(path)
    X, y = table.iloc[:, :-1], table.iloc[:, -1].to_numpy(str)
    nb = bnb.WeightedNB(bnb.CategoricalNB(categories=[["n", "y"]] * X.shape[1]))
    return folds("votes", nb, X, y, VOTES)


def newsgroups(folder: Path) -> Case:
    """Score texts, with the alpha that maximises the evidence (see choose_prior.py)."""
    n_words = len((folder / "4cat_vocab.txt").read_text(encoding="utf-8").splitlines())
    X, y = read_counts(folder / "4cat_train.counts.tsv", n_words)
    X_test, y_test = read_counts(folder / "4cat_test.counts.tsv", n_words)
    nb = bnb.WeightedNB(bnb.MultinomialNB(alpha=0.12)).fit(X, y)
    plain, weighted = nb.estimator_.predict_log_proba(X_test), nb.predict_log_proba(X_test)
    return Case("newsgroups", nb, y_test, plain, weighted, TOPICS)


def report(case: Case, out: Path) -> None:
    """Print scores and weights, and draw reliability before and after weighting."""
    both = {"plain": case.plain, "weighted": case.weighted}
    classes = case.nb.classes_
    table = pd.DataFrame({name: scores(log_proba, case.truth, classes) for name, log_proba in both.items()}).T
    print(f"{case.name}: {len(case.truth):,} rows, each predicted by a fit without it")
    print(table[SCORES].astype(float).round(4).to_string())
    for name, log_proba in both.items():
        certain = log_proba.max(axis=1) > np.log(0.99)
        wrong = classes[log_proba.argmax(axis=1)] != case.truth
        print(f"{name:>9}: P > .99 in {certain.sum():,} rows, of which {(certain & wrong).sum()} are wrong")
    print(f"{weights(case.nb)}\n{case.moral.strip()}\n", flush=True)
    tables = {name: reliability(log_proba, case.truth, classes) for name, log_proba in both.items()}
    ax = bnb.plots.reliability(tables)
    ax.figure.savefig(out / f"weights-{case.name}.png", dpi=150, bbox_inches="tight")
    bnb.plots.detach(ax)


def weights(nb: Any) -> str:
    """Format the largest and the smallest weights, or for counts how the weight falls with the length."""
    if nb.length_exponent_ > 0:
        return f"weight of a text of t words: {nb.weight_[0]:.3g} (t + 1)^-{nb.length_exponent_:.3g}"
    named = pd.Series(nb.weight_, nb.term_names_).sort_values(ascending=False)
    ends = [", ".join(f"{name} {w:+.2f}" for name, w in end.items()) for end in (named[:SHOWN], named[-SHOWN:])]
    return "\n  ".join([f"weights around {nb.temperature_:.2f} (naive Bayes: 1); the largest and the smallest:", *ends])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help="vote.arff")
    parser.add_argument("--newsgroups", type=Path, metavar="FOLDER", help="four topics as counts of words")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    report(cancer(), options.out)
    for name, load, path in (("votes", votes, options.file), ("newsgroups", newsgroups, options.newsgroups)):
        if path is None:
            print(f"{name}: not run, because no path was given\n")
        else:
            report(load(path), options.out)
    print(f"""Weights change predictions, but not the posterior of the parameters and the evidence: both are those of
the plain model. Reliability before and after: {options.out}/weights-*.png""")


if __name__ == "__main__":
    main()
