"""The words that made a message spam, with the evidence of each and its uncertainty.

The log odds of naive Bayes are a sum over words, so explanations are exact and need no further fit. The script explains
three messages: spam that was caught, a wanted message that was lost, and a doubtful message. It also shows the
explanation of the same model with weighted terms, which is better calibrated.

    python examples/why_spam.py FILE [--out DIR]

FILE is the SMS Spam Collection (Almeida & Hidalgo 2011), a line `label<TAB>text` for each message; 70% of them are
training messages.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from spam_uncertainty import read

import bayesnb as bnb
from bayesnb.evaluation import scores
from bayesnb.text import BagOfWords

WORDS = 8  # shown a message
SURE = 1.64  # sd on either side: 90%
MORAL = """
The contributions are exact for the model: they add up to its log odds. Whether they are justified is another question,
as the lost message shows: "customer", "service" and "contact" count as three pieces of evidence, but are one phrase. An
interval does not reveal this. Its width depends on how often a word was seen: "mail", 17 times in wanted messages and
never in spam, may count twice as much, or hardly at all.

With weights the order of the words of a message by contribution is the same, but all contributions are smaller, and in
long messages much smaller. The log odds of the first message fall from 63 to 18, those of the lost message from 4.8 to
0.6, and its P(spam) from .99 to .64, so that a person may check the message. Over all test messages the log loss falls
from .100 to .065, although a few more predictions are wrong (accuracy .980, before .983).
"""


def choose(p: np.ndarray, y: np.ndarray) -> dict[str, int]:
    """Choose the surest spam, the surest wanted message that is called spam, and the most doubtful message."""
    return {
        "caught": int(np.argmax(np.where(y == "spam", p, -1))),
        "lost": int(np.argmax(np.where(y == "ham", p, -1))),
        "doubtful": int(np.argmin(abs(p - 0.5))),
    }


def reasons(plain, weighted, X, words: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the contributions of all features of the messages in X under both models."""
    found = [bnb.explain(nb, X, of="spam", names=words) for nb in (plain, weighted)]
    both = found[0].merge(found[1], on=["row", "feature"], suffixes=("", "_weighted"))
    return both.rename(columns={"contribution": "plain", "contribution_weighted": "weighted"}), found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="label<TAB>text a line")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figure")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    texts, y = read(options.file)
    texts, texts_test, y, y_test = train_test_split(texts, y, test_size=0.3, stratify=y, random_state=0)
    bag = BagOfWords()
    X, X_test = bag.fit_transform(texts), bag.transform(texts_test)
    plain = bnb.MultinomialNB().fit(X, y)
    weighted = bnb.WeightedNB(bnb.MultinomialNB()).fit(X, y)
    print(f"{len(y):,} training messages, {len(y_test):,} test messages")
    for name, nb in (("plain", plain), ("weighted", weighted)):
        found = scores(nb.predict_log_proba(X_test), y_test, nb.classes_)
        print(f"  {name:<9} accuracy {found['accuracy']:.4f}, log loss {found['log_loss']:.4f}")

    spam = list(weighted.classes_).index("spam")
    p = [nb.predict_proba(X_test)[:, spam] for nb in (plain, weighted)]
    chosen = choose(p[1], y_test)
    both, frame = reasons(plain, weighted, X_test[list(chosen.values())], bag.get_feature_names_out())
    for row, (name, i) in enumerate(chosen.items()):
        lines = both[both["row"] == row]
        sides = [
            f"{lines[adds].sum():.1f} ± {np.linalg.norm(lines[sd]):.1f}"
            for adds, sd in (("plain", "sd"), ("weighted", "sd_weighted"))
        ]
        known = (abs(lines["plain"]) > SURE * lines["sd"])[1:]
        print(f"\n{name}: {y_test[i]}, {' '.join(texts_test[i].split())[:150]!r}")
        print(f"  P(spam) {p[0][i]:.4f} plain, {p[1][i]:.4f} weighted; log odds {sides[0]} and {sides[1]}")
        print(f"  of {len(known)} words {known.sum()} have a 90% interval without 0")
        print(lines[["feature", "value", "plain", "sd", "weighted"]].head(WORDS + 1).round(2).to_string(index=False))

    fig, panels = plt.subplots(1, 2, figsize=(13, 5.2), layout="constrained")
    for row, ax in enumerate(panels):
        bnb.plots.explain(frame, row=row, ax=ax)
    fig.savefig(options.out / "why_spam.png", dpi=150)
    print(f"{MORAL}\nFigure in {options.out}/")


if __name__ == "__main__":
    main()
