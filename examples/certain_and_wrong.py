"""Predictions that are certain and wrong, which the intervals of a wrong model do not reveal.

Among the rows that naive Bayes predicts with P > .999, far more than one in a thousand are wrong, and their intervals
exclude ½. The intervals are narrow because the data determine the parameters well. The model is wrong, because it
assumes independent features given the class. `check_independence` finds the dependent pairs, and a tree with one arc to
each vote is a better model.

    python examples/certain_and_wrong.py FILE [--newsgroups FOLDER] [--out DIR]

FILE is vote.arff (Congressional Voting Records, 1984; UCI Machine Learning Repository), with "?" for a missing vote:
the votes of 435 members of Congress. P(party | votes, all other rows) is computed for each row by forgetting the row
and counting it again. FOLDER has four topics of 20 Newsgroups as word counts: 4cat_train.counts.tsv and
4cat_test.counts.tsv with a line `topic<TAB>word[:count] ...` for each text (words by number from 0; count 1 is left
out), and 4cat_vocab.txt with one word per line.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import bayesnb as bnb
from bayesnb.evaluation import reliability

WORDS = 200  # compared pair by pair

PARTIES = """
Votes on related bills depend on each other, also within a party. Naive Bayes counts each vote as new evidence for the
party.
"""
TOPICS = """
Words occur in blocks: a line of the header (nntp posting host), the line above a quotation (article, writes), the
signature of one author (chastity, intellect, n3jxp). Naive Bayes counts each word of a block as new evidence for the
topic. The check tests which words occur in the same texts. It does not test repetitions of a word within a text, which
naive Bayes also assumes to be independent. Long texts contain more words of all kinds, and this alone makes words
dependent. The check does not show which texts are predicted wrongly for this reason.
"""


@dataclass(frozen=True, eq=False)
class Case:
    """Predictions of fits without the predicted rows, with classes in the order of `classes`; and pairs of features."""

    name: str
    classes: np.ndarray
    truth: np.ndarray
    log_proba: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    pairs: pd.DataFrame
    moral: str


def votes(path: Path) -> Case:
    """Predict each row from all others."""
    table = read_arff(path)
    X, y = table.iloc[:, :-1], table.iloc[:, -1].to_numpy(str)
    nb = bnb.CategoricalNB(categories=[["n", "y"]] * X.shape[1]).fit(X, y)
    log_proba, lower, upper = np.empty((len(y), 2)), np.empty((len(y), 2)), np.empty((len(y), 2))
    for i in range(len(y)):
        row, label = X.iloc[[i]], y[[i]]
        nb.forget(row, label)
        log_proba[i] = nb.predict_log_proba(row)[0]
        lower[i], upper[i] = (end[0] for end in bnb.predict_interval(nb, row))
        nb.partial_fit(row, label)
    return Case("votes", nb.classes_, y, log_proba, lower, upper, bnb.check_independence(nb, X, y), PARTIES)


def newsgroups(folder: Path) -> Case:
    """Predict test texts; check pairs of the words whose frequency differs most between topics."""
    words = np.array((folder / "4cat_vocab.txt").read_text(encoding="utf-8").splitlines())
    X, y = read_counts(folder / "4cat_train.counts.tsv", len(words))
    X_test, y_test = read_counts(folder / "4cat_test.counts.tsv", len(words))
    nb = bnb.MultinomialNB().fit(X, y)
    share = np.array([(X[y == topic] > 0).mean(axis=0) for topic in nb.classes_])
    telling = np.argsort(-np.ptp(share, axis=0), kind="stable")[:WORDS]
    pairs = bnb.check_independence(nb, X, y, features=telling)
    for name in ("feature_1", "feature_2"):
        pairs[name] = words[pairs[name].astype(int)]
    log_proba, (lower, upper) = nb.predict_log_proba(X_test), bnb.predict_interval(nb, X_test)
    return Case("newsgroups", nb.classes_, y_test, log_proba, lower, upper, pairs, TOPICS)


def with_a_tree(path: Path) -> None:
    """Compare naive Bayes with TAN on the votes in ten-fold cross-validation; each fold learns its own tree."""
    table = read_arff(path)
    X, y = table.iloc[:, :-1], table.iloc[:, -1].to_numpy(str)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    print("votes, ten-fold cross-validation:")
    for name, nb in (
        ("naive Bayes", bnb.CategoricalNB(categories=[["n", "y"]] * X.shape[1])),
        ("TAN", bnb.TAN(categories=[["n", "y"]] * X.shape[1])),
    ):
        proba = cross_val_predict(nb, X, y, cv=folds, method="predict_proba")
        truth = np.searchsorted(np.unique(y), y)
        wrong, certain = proba.argmax(axis=1) != truth, proba.max(axis=1) > 0.999
        loss = -np.log(proba[np.arange(len(y)), truth]).mean()
        print(
            f"{name:>12}: accuracy {1 - wrong.mean():.3f}, log loss {loss:.3f}, P > .999 in {certain.sum()} rows, of "
            f"which {(wrong & certain).sum()} are wrong"
        )


def report(case: Case, out: Path) -> None:
    """Print how many rows are certain and wrong, and which features depend on each other; save the figures."""
    rows, top = np.arange(len(case.truth)), case.log_proba.argmax(axis=1)
    wrong = case.classes[top] != case.truth
    certain = case.log_proba.max(axis=1) > np.log(0.999)
    excludes_half = (case.lower[rows, top] > 0.5) | (case.upper[rows, top] < 0.5)
    errors = wrong[certain]
    dependent = (case.pairs["log_bayes_factor"] > 0).sum()
    print(f"""{case.name}: {len(rows):,} rows, accuracy on rows outside the fit {1 - wrong.mean():.3f}
P > .999: {len(errors):,} rows, of which {errors.sum()} are wrong: {errors.mean():.1%}; the model states at most 0.1%
wrong rows whose 90% interval of P(predicted class) excludes 1/2: {(wrong & excludes_half).sum()} of {wrong.sum()}
pairs that depend on each other given the class (log Bayes factor > 0): {dependent:,} of {len(case.pairs):,}
{case.pairs.head(8).round(4).to_string(index=False)}
{case.moral}""")
    for name, ax in (
        ("reliability", bnb.plots.reliability(reliability(case.log_proba, case.truth, case.classes))),
        ("pairs", bnb.plots.independence(case.pairs)),
    ):
        ax.figure.savefig(out / f"certain_and_wrong-{case.name}-{name}.png", dpi=150, bbox_inches="tight")


def read_arff(path: Path) -> pd.DataFrame:
    """Read columns of strings, None for a missing vote; the last column is the class."""
    names, rows = [], []
    for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()):
        if line.lower().startswith("@attribute"):
            names.append(line.split(None, 1)[1].split("{")[0].strip().strip("'"))
        elif line and line[0] not in "%@":
            rows.append([None if cell.strip() == "?" else cell.strip().strip("'") for cell in line.split(",")])
    return pd.DataFrame(rows, columns=names, dtype=object)


def read_counts(path: Path, n_words: int) -> tuple[sp.csr_array, np.ndarray]:
    """Read word counts, one row per text, and the topics."""
    lines = [line.partition("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    texts = [[f"{cell}:1".split(":")[:2] for cell in text.split()] for _, _, text in lines]
    word, count = np.array([cell for text in texts for cell in text], dtype=int).T
    start = np.cumsum([0, *map(len, texts)])
    return sp.csr_array((count, word, start), shape=(len(texts), n_words)), np.array([topic for topic, _, _ in lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="vote.arff")
    parser.add_argument("--newsgroups", type=Path, metavar="FOLDER", help="four topics as counts of words")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    report(votes(options.file), options.out)
    if options.newsgroups is not None:
        report(newsgroups(options.newsgroups), options.out)
    print(f"""The intervals show how well the data determine the parameters if naive Bayes holds. They do not show
whether naive Bayes holds. Figures in {options.out}/
""")
    with_a_tree(options.file)


if __name__ == "__main__":
    main()
