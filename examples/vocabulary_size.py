"""The size of the vocabulary: Bernoulli, multinomial, and multinomial with a temperature.

The Bernoulli model uses which words of the vocabulary a text contains and which it lacks. The multinomial uses how
often each word occurs. With few words Bernoulli is better, with many words the multinomial (McCallum & Nigam 1998):
Bernoulli counts each absent word as evidence, and of thousands of words nearly all are absent. The third model is the
multinomial with a temperature, which `WeightedNB` fits: it multiplies the log odds of a text by a weight that decreases
with the length of the text.

    python examples/vocabulary_size.py FOLDER [--out DIR]

FOLDER has four topics of 20 Newsgroups, split by date, as in certain_and_wrong.py. Words are chosen on the training
texts only: by the mutual information of their presence and the topic, or by frequency.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp
from certain_and_wrong import read_counts

import bayesnb as bnb
from bayesnb.evaluation import scores

SIZES = (5, 10, 20, 30, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)
MODELS = {
    "Bernoulli": bnb.BernoulliNB(),
    "multinomial": bnb.MultinomialNB(),
    "weighted": bnb.WeightedNB(bnb.MultinomialNB()),
}
MORAL = """
By mutual information: with 30 words or fewer Bernoulli beats the multinomial, in accuracy and in log loss (with 20
words .659 and .890 against .644 and 1.024), because absent words are informative. From 50 words on the multinomial is
more accurate, and with all 35,788 words its accuracy is .935, against .794 of Bernoulli. By frequency, where the first
words are "the", "of", "to", the accuracies cross between 5 and 10 words.

Accuracy and log loss have their optimum at different sizes. The model counts each additional word as new evidence: the
log loss of the multinomial is best with ten words (.993, at an accuracy of .501), and 1.890 with all, where its
accuracy is .935. The temperature changes the accuracy by .012 at most, and gives the lowest log loss of the three
models at every size of the vocabulary. With a temperature the log loss is best with all words (.220), where the
accuracy is .932. The standard error of an accuracy is .006 near .93 and .013 near one half. Consider both scores:
without a temperature, the probabilities are not usable at the vocabulary with the highest accuracy.
"""


def mutual_information(X: sp.csr_array, y: np.ndarray) -> np.ndarray:
    """Return the mutual information of each word's presence and the topic, (V,), in nats, vectorised."""
    topics, label = np.unique(y, return_inverse=True)
    present = np.stack([(X[label == c] > 0).sum(axis=0) for c in range(len(topics))]) / len(y)
    share = np.bincount(label)[:, None] / len(y)
    joint = np.stack([present, share - present])
    expected = joint.sum(axis=1, keepdims=True) * share
    ratio = np.divide(joint, expected, out=np.ones_like(joint), where=joint > 0)
    return (joint * np.log(ratio)).sum(axis=(0, 1))


def measure(X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray, order: np.ndarray) -> pd.DataFrame:
    """Return scores on the test texts, one row per size."""
    rows = {}
    for size in (*(n for n in SIZES if n < len(order)), len(order)):
        words = np.sort(order[:size])
        for name, nb in MODELS.items():
            nb.fit(X[:, words], y)
            found = scores(nb.predict_log_proba(X_test[:, words]), y_test, nb.classes_)
            rows[size, name] = {"accuracy": found["accuracy"], "log_loss": found["log_loss"]}
    table = pd.DataFrame(rows).T.unstack()
    return table.reindex(columns=pd.MultiIndex.from_product([["accuracy", "log_loss"], MODELS])).rename_axis("words")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="four topics as counts of words")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    words = np.array((options.folder / "4cat_vocab.txt").read_text(encoding="utf-8").splitlines())
    X, y = read_counts(options.folder / "4cat_train.counts.tsv", len(words))
    X_test, y_test = read_counts(options.folder / "4cat_test.counts.tsv", len(words))

    criteria = {"mutual information": mutual_information(X, y), "frequency": np.asarray(X.sum(axis=0)).ravel()}
    fig, panels = plt.subplots(2, 2, figsize=(10, 7), sharex=True, sharey="row", layout="constrained")
    for (criterion, value), column in zip(criteria.items(), panels.T, strict=True):
        order = np.argsort(-value, kind="stable")
        table = measure(X, y, X_test, y_test, order)
        print(f"\nWords chosen by {criterion}, first {', '.join(words[order[:8]])}; {len(y_test):,} test texts")
        print(table.round(3).to_string(), flush=True)
        for score, ax in zip(("accuracy", "log_loss"), column, strict=True):
            for name, mark in zip(MODELS, "osD", strict=True):
                ax.semilogx(table.index, table[score, name], marker=mark, markersize=4, label=name)
            ax.grid(alpha=0.3)
        column[0].set_title(f"words chosen by {criterion}")
        column[1].set_xlabel("words in the vocabulary")
    panels[0, 0].set_ylabel("accuracy, test")
    panels[1, 0].set_ylabel("log loss, test (nats)")
    panels[0, 0].legend()
    fig.savefig(options.out / "vocabulary_size.png", dpi=150)
    print(f"{MORAL}\nFigure in {options.out}/")


if __name__ == "__main__":
    main()
