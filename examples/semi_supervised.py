"""Texts without labels: when they help, and when they harm.

EM gives each unlabelled text a probability for every topic, learns from these probabilities, and repeats (`fit_em`;
Nigam, McCallum, Thrun & Mitchell, 2000). `weight` is the weight of an unlabelled text.

    python examples/semi_supervised.py FOLDER [--out DIR] [--repeats N]

FOLDER has four topics of 20 Newsgroups, split by date, as in certain_and_wrong.py. Some of the earlier texts keep their
label, the other earlier texts are unlabelled, and later texts are the test set.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from certain_and_wrong import read_counts

import bayesnb as bnb

LABELS = (20, 50, 100, 500)  # of each topic
WEIGHTS = {"labels alone": 0.0, "weight 0.1": 0.1, "weight 1": 1.0}
SCORES = ("accuracy", "log loss")

MORAL = """
With 20 labels per topic the unlabelled texts raise the accuracy from .77 to .89, about as much as five times as many
labels. With 100 labels they add .03, and if almost all texts have labels, nothing. The log loss behaves differently.
Naive Bayes assumes that words are independent given the topic, and learning from its own predictions makes it more
confident: at weight 1 the loss falls with 20 labels, is the same with 50, and rises with 100. At weight 0.1 it falls or
stays the same, at nearly the same accuracy. All log losses are several nats, where guessing costs 1.39: the order of
the topics is useful, but their probabilities are not.

These results depend on the prior. At alpha = 1 the prior counts of the 36 thousand words outweigh the words of 20
texts. The labels alone already prefer a topic whose texts happen to be long, and EM assigns nearly all other texts to
it. The likelihood never decreases during EM, but the accuracy can. Look at the results on labelled texts first:
unlabelled texts help a classifier that is mostly right, and reinforce one that is mostly wrong.
"""


def draw(y: np.ndarray, labels: int, rng: np.random.Generator) -> np.ndarray:
    """Choose a number of texts of each topic, or all there are; a mask (N,)."""
    chosen = [rng.permutation(np.flatnonzero(y == topic))[:labels] for topic in np.unique(y)]
    return np.isin(np.arange(len(y)), np.concatenate(chosen))


def judged(nb: bnb.MultinomialNB, X: object, y: np.ndarray) -> dict[str, float]:
    truth = np.searchsorted(nb.classes_, y)
    log_proba = nb.predict_log_proba(X)
    loss = -log_proba[np.arange(len(y)), truth]
    return {"accuracy": float(np.mean(log_proba.argmax(axis=1) == truth)), "log loss": float(loss.mean())}


def measured(X, y, X_test, y_test, repeats: int, alpha: float | None) -> Iterator[dict[str, object]]:
    """Yield scores for each draw of labels and each method; `alpha` None maximises the evidence of labelled texts."""
    for labels in LABELS:
        for repeat in range(repeats):
            known = draw(y, labels, np.random.default_rng(repeat))
            nb = bnb.MultinomialNB(alpha=alpha or 1.0).fit(X[known], y[known])
            if alpha is None:
                nb = bnb.tune_alpha(nb, X[known], y[known], by="evidence").estimator
            for name, weight in WEIGHTS.items():
                em = bnb.fit_em(nb, X[known], y[known], X[~known], weight=weight)
                scores = judged(em.estimator, X_test, y_test)
                yield {"labels": labels, "repeat": repeat, "learned from": name, "alpha": nb.alpha, **scores}


def report(scores: pd.DataFrame) -> None:
    alone = scores[scores["learned from"] == "labels alone"].set_index(["labels", "repeat"])
    print(
        f"{'labels':>7} {'alpha':>6}  {'':<13} {'accuracy':>8} {'difference':>16}   {'log loss':>8} {'difference':>16}"
    )
    for (labels, name), rows in scores.groupby(["labels", "learned from"], sort=False):
        rows, text = rows.set_index(["labels", "repeat"]), ""
        for score in SCORES:
            gain = rows[score] - alone.loc[rows.index, score]
            difference = f"{gain.mean():+.3f} ± {gain.std() / np.sqrt(len(gain)):.3f}"
            text += f" {rows[score].mean():>8.3f} {difference if name != 'labels alone' else '':>16}  "
        print(f"{labels:>7} {rows['alpha'].mean():>6.3f}  {name:<13}{text.rstrip()}")
    print(flush=True)


def draw_figure(scores: pd.DataFrame, path: Path) -> None:
    fig, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for ax, score in zip(panels, SCORES, strict=True):
        for i, (name, rows) in enumerate(scores.groupby("learned from", sort=False)):
            by_labels = rows.groupby("labels")[score]
            mean, low, high = by_labels.mean(), by_labels.min(), by_labels.max()
            at = mean.index * 1.04 ** (i - 1)
            ax.errorbar(at, mean, [mean - low, high - mean], marker="o", capsize=3, label=name)
        ax.set(xscale="log", xlabel="labels of each topic", ylabel=score)
        ax.set_xticks(LABELS, list(map(str, LABELS)))
        ax.minorticks_off()
    panels[1].set(ylim=(0, None))
    panels[0].legend(frameon=False)
    fig.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="four topics as counts of words")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figure")
    parser.add_argument("--repeats", type=int, default=10, help="draws of the texts that keep their labels")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    n_words = len((options.folder / "4cat_vocab.txt").read_text(encoding="utf-8").splitlines())
    X, y = read_counts(options.folder / "4cat_train.counts.tsv", n_words)
    X_test, y_test = read_counts(options.folder / "4cat_test.counts.tsv", n_words)
    sizes = ", ".join(f"{topic} {n}" for topic, n in zip(*np.unique(y, return_counts=True), strict=True))
    print(f"""{len(y):,} training texts ({sizes}), {len(y_test):,} test texts.
labels: texts of each topic that keep their label ({LABELS[-1]}, or all there are); the others are unlabelled. Means
over {options.repeats} draws of the labelled texts, and the difference from labels alone on the same draw ± one standard
error over draws. Log loss in nats; parameters integrated out.
""")
    tuned = pd.DataFrame(measured(X, y, X_test, y_test, options.repeats, None))
    print("alpha of greatest evidence for the labelled texts alone:")
    report(tuned)
    print("alpha = 1 (Laplace):")
    report(pd.DataFrame(measured(X, y, X_test, y_test, options.repeats, 1.0)))
    draw_figure(tuned, options.out / "semi_supervised.png")
    print(f"{MORAL.strip()}\n\nFigure in {options.out}/")


if __name__ == "__main__":
    main()
