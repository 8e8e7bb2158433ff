"""Uncertainty from ambiguous words, and from little data.

A classifier of text messages is unsure about some messages. Either their words are ambiguous (aleatoric: more data will
not help), or their words were seen too rarely (epistemic: more data will help). The entropy of the class splits into
these two parts. The script trains on 2% and on 70% of the messages: the epistemic part shrinks.

    python examples/spam_uncertainty.py FILE [--out DIR]

FILE is the SMS Spam Collection (Almeida & Hidalgo 2011), a line `label<TAB>text` for each message.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

import bayesnb as bnb

NAMES = ("SMSSpamCollection", "sms_spam.tsv")


def read(path: Path) -> tuple[list[str], np.ndarray]:
    """Read texts and labels of the file, or of the file with the usual name in this folder."""
    if path.is_dir():
        path = next((path / name for name in NAMES if (path / name).is_file()), path)
    if not path.is_file():
        raise SystemExit(f"{path} is not a file: pass the SMS Spam Collection, or a folder with {' or '.join(NAMES)}.")
    with path.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if len(row) == 2]
    return [text for _, text in rows], np.array([label for label, _ in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="label<TAB>text a line")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figures")
    options = parser.parse_args()

    texts, y = read(options.file)
    X = CountVectorizer().fit_transform(texts).astype(float)
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=0)
    few, _ = train_test_split(train, train_size=round(0.02 * len(y)), stratify=y[train], random_state=0)

    options.out.mkdir(parents=True, exist_ok=True)
    for name, known in (("2%", few), ("70%", train)):
        nb = bnb.MultinomialNB().fit(X[known], y[known])
        spam = list(nb.classes_).index("spam")
        p = nb.predict_proba(X[test])[:, spam]
        split = bnb.decompose_uncertainty(nb, X[test])
        unsure = np.flatnonzero((p > 0.01) & (p < 0.99))
        print(f"\nTrained on {len(known):,} messages ({name}): accuracy {nb.score(X[test], y[test]):.3f}")
        print(f"  unsure (P(spam) between .01 and .99): {len(unsure)} of {len(test):,} test messages")
        for whom, part in (("all", split), ("unsure", split.iloc[unsure])):
            mean = part[["total", "aleatoric", "epistemic"]].mean()
            print(
                f"  mean entropy, {whom}: {mean.total:.4f} nats = {mean.aleatoric:.4f} aleatoric + "
                f"{mean.epistemic:.4f} epistemic"
            )
        share = split["epistemic"] / split["total"]
        for kind, order in (("ambiguous words", share), ("rarely seen words", -share)):
            i = unsure[np.argsort(order.iloc[unsure].to_numpy(), kind="stable")[0]]
            text = " ".join(texts[test[i]].split())[:70]
            print(f"  {kind:<24} P(spam) {p[i]:.2f}, {share.iloc[i]:.0%} epistemic, {y[test[i]]}: {text!r}")
        rows_shown = unsure[:200]
        ax = bnb.plots.prediction_intervals(nb, X[test][rows_shown], y[test][rows_shown], label="spam")
        ax.figure.savefig(options.out / f"spam-{len(known)}.png", dpi=150)
    print(
        "\nBoth parts are computed within naive Bayes. Words of a message are not independent, so the model is\n"
        "overconfident, most of all after much data, when the epistemic entropy is small."
    )


if __name__ == "__main__":
    main()
