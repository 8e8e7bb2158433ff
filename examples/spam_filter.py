"""A spam filter from raw texts to a vocabulary, to decisions, and to the words behind a decision.

The vocabulary comes from the training messages, with a reserved word for unknown words. Three models are compared on
test messages. The multinomial, which has an exact posterior, then decides, and shows which words matter and how
precisely their log odds ratios are known. The last part shows why the reserved word needs counts.

    python examples/spam_filter.py FILE [--out DIR]

FILE is the SMS Spam Collection (Almeida & Hidalgo 2011), a line `label<TAB>text` for each message; 70% of them are
training messages.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import bayesnb as bnb
from bayesnb.evaluation import scores
from bayesnb.text import BagOfWords

NAMES = ("SMSSpamCollection", "sms_spam.tsv")
LOST_MAIL = 20  # what a wanted message called spam costs, where spam let through costs 1
WORDS = 8  # shown a message
PROB = 0.9
MORAL = """\
The multinomial is overconfident (it states .991 and is right for .983), which costs money: .041 observed, .015 expected
where lost mail costs 20. A temperature, `WeightedNB`, lowers the log loss from .100 to .065.
The interval of a word shows how well the data determine its log odds ratio, if naive Bayes holds. It does not show
whether words are separate pieces of evidence: "customer service" counts as two in a message that was lost.
A reserved word without counts multiplies the odds of spam by 2.65 for each unknown word, only because spam has fewer
words: 19 wanted messages are lost instead of 8. Train the word, as BagOfWords() does, or drop unknown words."""


def read(path: Path) -> tuple[list[str], np.ndarray]:
    """Read texts and labels of the file, or of the file with the usual name in this folder."""
    if path.is_dir():
        path = next((path / name for name in NAMES if (path / name).is_file()), path)
    if not path.is_file():
        raise SystemExit(f"{path} is not a file: pass the SMS Spam Collection, or a folder with {' or '.join(NAMES)}.")
    with path.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if len(row) == 2]
    return [text for _, text in rows], np.array([label for label, _ in rows])


def compare(X, y, X_test, y_test) -> None:
    """Compare three models on the same words."""
    table = bnb.compare_estimates(
        bnb.MultinomialNB(), X, y, X_test, y_test, baselines=[bnb.BernoulliNB(), bnb.WeightedNB(bnb.MultinomialNB())]
    )
    print(f"Four estimates of the multinomial, and two other models; {len(y_test):,} test messages")
    print(table[["accuracy", "brier", "log_loss", "confidence", "impossible_rows"]].round(4).to_string())


def decisions(nb, X_test, y_test: np.ndarray) -> None:
    """Print the decisions and costs under two losses."""
    zero_one = bnb.decision.zero_one(nb.classes_)
    for name, loss in (("an error costs 1", zero_one), (f"lost mail costs {LOST_MAIL}", zero_one * [LOST_MAIL, 1])):
        decided = bnb.decide(nb, X_test, loss)
        lost = ((decided.action == "spam") & (y_test == "ham")).sum()
        missed = ((decided.action == "ham") & (y_test == "spam")).sum()
        print(
            f"  {name:<18} {lost:>3} messages lost, {missed:>3} spam let through; "
            f"mean loss {decided.expected_risk:.4f} expected, {decided.observed_risk(y_test):.4f} observed"
        )


def reasons(nb, words: np.ndarray, row) -> pd.DataFrame:
    """Rank the words of a message by count · log θ_spam/θ_ham, from exact draws of θ."""
    column = np.sort(row.indices)
    theta = bnb.posterior_draws(nb, draws=4000, seed=0, features=column)["theta"]
    ham, spam = (list(nb.classes_).index(label) for label in ("ham", "spam"))
    weight = np.log(theta[:, spam] / theta[:, ham])
    lower, upper = np.quantile(weight, [(1 - PROB) / 2, (1 + PROB) / 2], axis=0)
    seen = nb.feature_count_[:, column].astype(int)
    count = row[:, column].toarray().ravel()
    table = pd.DataFrame(
        {"count": count, "weight": weight.mean(axis=0), "lower": lower, "upper": upper}
        | {"in spam": seen[spam], "in ham": seen[ham]},
        index=pd.Index(words[column], name="word"),
    )
    return table.iloc[np.argsort(-abs(table["count"] * table["weight"]), kind="stable")]


def show(nb, bag: BagOfWords, texts: list[str], y: np.ndarray, out: Path) -> None:
    """Show four messages: the surest spam, the surest error of each kind, and the most doubtful message."""
    X = bag.transform(texts)
    spam = list(nb.classes_).index("spam")
    p = nb.predict_proba(X)[:, spam]
    chosen = {
        "surely spam, and spam": np.argmax(np.where(y == "spam", p, -1)),
        "surely spam, and is not": np.argmax(np.where(y == "ham", p, -1)),
        "surely not, and is spam": np.argmin(np.where(y == "spam", p, 2)),
        "hardest to say": np.argmin(abs(p - 0.5)),
    }
    names = bag.get_feature_names_out()
    centre, spread = (values[:, spam] for values in bnb.log_odds_moments(nb, X[list(chosen.values())], against="ham"))
    fig, panels = plt.subplots(2, 2, figsize=(11, 6.5), sharex=True, layout="constrained")
    for (name, i), mean, sd, ax in zip(chosen.items(), centre, spread, panels.flat, strict=True):
        table = reasons(nb, names, X[[i]]).head(WORDS)
        words = ", ".join(f"{word} {w:+.1f}" for word, w in table["weight"].head(4).items())
        print(f"{name}: P(spam) = {p[i]:.4f}, log odds {mean:.1f} ± {sd:.1f}; {words}")
        weight = table["weight"].to_numpy()
        place, bars = np.arange(len(table))[::-1], [weight - table["lower"], table["upper"] - weight]
        ax.errorbar(weight, place, xerr=bars, fmt="o", markersize=4)
        ax.set_yticks(place, [f"{word} × {n}" if n > 1 else word for word, n in table["count"].items()])
        ax.axvline(0, color="grey", linewidth=0.8)
        ax.set_title(f"{name}: P(spam) = {p[i]:.3f}", fontsize=10)
    for ax in panels[1]:
        ax.set_xlabel(f"log θ(spam) / θ(ham), {PROB:.0%} interval")
    fig.savefig(out / "spam_filter.png", dpi=150)


def reserved_word(texts: list[str], y: np.ndarray, texts_test: list[str], y_test: np.ndarray) -> None:
    """Compare the filter with and without a reserved word, and with and without counts for it."""
    rows = {}
    for min_df in (1, 2):
        for unknown in ("<UNK>", None):
            bag = BagOfWords(min_df=min_df, unknown=unknown)
            nb = bnb.MultinomialNB().fit(bag.fit_transform(texts), y)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the untrained word, which is what is shown here
                X_test = bag.transform(texts_test)
            found = scores(nb.predict_log_proba(X_test), y_test, nb.classes_)
            predicted = nb.predict(X_test)
            log_theta = nb.feature_log_prob_[list(nb.classes_).index("spam")] - nb.feature_log_prob_[0]
            rows[min_df, unknown or "dropped"] = {
                "words": len(bag.vocabulary_),
                "in training": bag.unknown_count_,
                "odds a word": np.exp(log_theta[-1]) if unknown else 1.0,
                "accuracy": found["accuracy"],
                "log_loss": found["log_loss"],
                "brier": found["brier"],
                "lost": ((predicted == "spam") & (y_test == "ham")).sum(),
                "let through": ((predicted == "ham") & (y_test == "spam")).sum(),
            }
    table = pd.DataFrame(rows).T.rename_axis(["min_df", "unknown words"])
    whole = ["words", "in training", "lost", "let through"]
    print("Unknown words. in training: occurrences of the reserved word. odds a word: factor for spam")
    print(table.round(4).astype(dict.fromkeys(whole, int)).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="label<TAB>text a line")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figure")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    texts, y = read(options.file)
    texts, texts_test, y, y_test = train_test_split(texts, y, test_size=0.3, stratify=y, random_state=0)
    bag = BagOfWords()
    X = bag.fit_transform(texts)
    X_test = bag.transform(texts_test)
    share = X_test[:, [-1]].sum() / X_test.sum()
    print(
        f"{len(y):,} training messages, {(y == 'spam').mean():.0%} spam; {len(bag.vocabulary_):,} words. <UNK> stands "
        f"for {bag.unknown_count_:,} words that occur in one training message, and {share:.0%} of the test words."
    )
    compare(X, y, X_test, y_test)
    nb = bnb.MultinomialNB().fit(X, y)
    print("Decisions of the multinomial")
    decisions(nb, X_test, y_test)
    show(nb, bag, texts_test, y_test, options.out)
    reserved_word(texts, y, texts_test, y_test)
    print(MORAL)


if __name__ == "__main__":
    main()
