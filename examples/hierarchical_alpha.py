"""An unknown alpha: learning about the rare words of one class from the other class.

Laplace smoothing assumes alpha = 1. Here alpha is a parameter with a prior, sampled by NUTS with the word probabilities
integrated out. "symmetric" has one alpha for all words. In "pooled" the classes also share a base measure m: the prior
expects a word that is rare in one class to be as frequent there as in the other classes.

    python examples/hierarchical_alpha.py FILE [--newsgroups FOLDER] [--out DIR]

FILE is the SMS Spam Collection (Almeida & Hidalgo 2011), a line `label<TAB>text` for each message: 200 training
messages, and the rest for testing. FOLDER has 4cat_train.counts.tsv and 4cat_vocab.txt as in certain_and_wrong.py;
there averaging over alpha by NUTS adds nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from spam_filter import read

import bayesnb as bnb

TRAIN = 200
SAMPLER = {"draws": 500, "warmup": 500, "chains": 2}


def messages(path: Path, out: Path) -> None:
    """Print held-out scores under three priors, for the frequent words and for all; draw the effect on rare words."""
    texts, y = read(path)
    known, unknown, y, y_test = train_test_split(texts, y, train_size=TRAIN, stratify=y, random_state=0)
    print(f"{TRAIN} training messages, {len(y_test):,} test messages\n")
    print(f"{'words':>6}  {'prior':<10} {'log loss':>8} {'accuracy':>9}   alpha")
    for size in (500, None):
        counter = CountVectorizer(max_features=size).fit(known)
        X, X_test = counter.transform(known), counter.transform(unknown)
        nb = bnb.MultinomialNB().fit(X, y)
        found = {"alpha = 1": None} | {kind: bnb.run_nuts(nb, kind, **SAMPLER) for kind in ("symmetric", "pooled")}
        for name, draws in found.items():
            proba = nb.predict_proba(X_test, draws=draws)
            accuracy = np.mean(nb.classes_[proba.argmax(axis=1)] == y_test)
            print(f"{X.shape[1]:>6}  {name:<10} {log_loss(y_test, proba):>8.4f} {accuracy:>9.4f}   {summary(draws)}")
        if size:
            figure(nb, found, out)
    print("""
Pooling helps if most words are frequent enough to estimate m. With every word of 200 messages, most of which occur
once, the classes differ in a few words only, and one alpha must fit these words and all others. The posterior of alpha
then favours large values, which weaken the words that distinguish the classes. Both posteriors are correct under their
assumptions; held-out rows decide which assumption is better.
""")


def summary(draws: Any) -> str:
    if draws is None:
        return ""
    alpha = draws["posterior"]["alpha"].to_numpy()
    return f"{alpha.mean():.3f} ± {alpha.std():.3f}"


def figure(nb: Any, found: dict[str, Any], out: Path) -> None:
    """Draw P(word | spam) for words never seen in spam, against their frequency in the other class."""
    spam = list(nb.classes_).index("spam")
    counts = nb.feature_count_
    unseen = np.flatnonzero(counts[spam] == 0)
    elsewhere, n_words = counts[1 - spam, unseen], counts.shape[1]
    fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for (name, draws), marker, colour in zip(found.items(), "_ox", ("0.4", "#0072B2", "#D55E00"), strict=True):
        # The mean of θ given the hyperparameters, α L m / (n + α L), averaged over their posterior.
        posterior = {} if draws is None else draws["posterior"]
        alpha = posterior["alpha"].to_numpy().reshape(-1, 1) if draws is not None else np.ones((1, 1))
        base = np.full((1, len(unseen)), 1 / n_words)
        if "base_measure" in posterior:
            base = posterior["base_measure"].to_numpy()[..., unseen].reshape(-1, len(unseen))
        mean = (alpha * n_words * base / (counts[spam].sum() + alpha * n_words)).mean(axis=0)
        ax.plot(elsewhere, 1000 * mean, marker, color=colour, label=name, ms=7, alpha=0.7)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    ax.set_xlabel("times seen in messages that are not spam")
    ax.set_ylabel("posterior mean of P(word | spam), per 1,000 words")
    ax.set_title(f"{len(unseen)} words never seen in spam ({TRAIN} messages)", loc="left")
    ax.legend(frameon=False)
    out.mkdir(parents=True, exist_ok=True)
    fig.savefig(out / "hierarchical_alpha-rare_words.png", dpi=150)
    print(f"        (figure: {out / 'hierarchical_alpha-rare_words.png'})")


def newsgroups(folder: Path) -> None:
    """Sample one alpha for 35,788 words and four topics."""
    n_words = len((folder / "4cat_vocab.txt").read_text(encoding="utf-8").splitlines())
    data, indices, indptr, labels = [], [], [0], []
    for line in (folder / "4cat_train.counts.tsv").read_text(encoding="utf-8").splitlines():
        label, _, words = line.partition("\t")
        pairs = [word.partition(":") for word in words.split()]
        indices += [int(word) for word, _, _ in pairs]
        data += [int(count or 1) for _, _, count in pairs]
        indptr.append(len(data))
        labels.append(label)
    X = sp.csr_matrix((data, indices, indptr), shape=(len(labels), n_words))
    nb = bnb.MultinomialNB().fit(X, labels)
    alpha = bnb.run_nuts(nb, "symmetric", features=[], **SAMPLER)["posterior"]["alpha"].to_numpy()
    print(f"20 Newsgroups, {n_words:,} words, {len(labels):,} texts: alpha = {alpha.mean():.4f} ± {alpha.std():.4f}")
    print(f"The standard deviation is {alpha.std() / alpha.mean():.1%} of the mean: averaging over alpha adds nothing.")
    print("If the rows determine alpha this well, maximise the evidence; use NUTS for what stays uncertain.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="label<TAB>text a line")
    parser.add_argument("--newsgroups", type=Path, help="folder with 4cat_train.counts.tsv and 4cat_vocab.txt")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figures")
    options = parser.parse_args()
    messages(options.file, options.out)
    if options.newsgroups:
        newsgroups(options.newsgroups)


if __name__ == "__main__":
    main()
