"""Sets of labels that are honest where the model is wrong.

Members of three parties vote on four matters, four times on each. Who has made up his mind on a matter votes alike each
time, and naive Bayes takes that for four witnesses: it is sure, and too often wrong. The smallest set of parties whose
probabilities sum to 90% misses the true one more often than once in ten. `conformal` holds each row and label against
the rows that were counted, each of these judged by all others, and asks how many fit no better. That covers whatever
the model; a better model makes sets smaller.

    python examples/honest_sets.py [FILE] [--out DIR]

The members are simulated. FILE is vote.arff as in certain_and_wrong.py: the votes of 435 members of Congress.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from certain_and_wrong import read_arff
from sklearn.model_selection import train_test_split

import bayesnb as bnb

PARTIES = np.array(["left", "centre", "right"])
MATTERS, VOTES, LOYALTY, STEADY = 4, 4, 0.75, 0.95
ROWS, TEST, REPEATS, COVERAGE = 300, 300, 20, 0.9
MODELS = {"naive Bayes": bnb.CategoricalNB(), "weighted terms": bnb.WeightedNB(bnb.CategoricalNB())}

CONCLUSION = """
How to read this
  Where naive Bayes says P > .99 it should be wrong in less than one row of a hundred. It is wrong far more often, and
  so its own sets, which take these probabilities at their word, miss too many labels.
  Weighted terms give probabilities that can be believed. Their sets cover, but by more than was asked: labels are
  added until the sum has passed 90%, which with three labels is often far beyond.
  Conformal sets cover nine rows in ten under either model, and leave about as many rows with one label. They need the
  order of the scores only, in which both models are much alike.
  What is promised is an average: over rows, not for each party, unless `by_class` asks for that, and not for the sets
  with one label, which are right less often than those with several. Sets without a label come where a model needs no
  second label to cover nine in ten: they are of the rows that are hardest to tell, and more coverage can be had. And
  it holds for rows of the same kind: if the next Congress votes otherwise, nothing is promised.
"""


def members(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(n, 16) votes, and parties: a stance on each matter, mostly the party's line, and votes that follow it."""
    party = rng.integers(0, len(PARTIES), n)
    line = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]])[party]
    stance = np.where(rng.random((n, MATTERS)) < LOYALTY, line, 1 - line)
    votes = np.repeat(stance, VOTES, axis=1)
    return np.where(rng.random(votes.shape) < STEADY, votes, 1 - votes), PARTIES[party]


def own_sets(proba: np.ndarray) -> np.ndarray:
    """(N, C) the smallest sets of labels whose probabilities sum to the coverage."""
    order = np.argsort(-proba, axis=1)
    falling = np.take_along_axis(proba, order, axis=1)
    enough = np.cumsum(falling, axis=1) - falling < COVERAGE
    members = np.empty(proba.shape, bool)
    np.put_along_axis(members, order, enough, axis=1)
    return members


def judged(name: str, nb, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> list[dict]:
    """Coverage and sizes of the sets of one fit, its own and conformal ones."""
    nb.fit(X, y)
    proba, truth = nb.predict_proba(X_test), np.searchsorted(nb.classes_, y_test)
    sure = proba.max(axis=1) > 0.99
    right = (proba.argmax(axis=1) == truth)[sure]
    sets = {
        "its own": own_sets(proba),
        "conformal": bnb.conformal(nb, X, y).predict_set(X_test, COVERAGE).members,
        "by class": bnb.conformal(nb, X, y, by_class=True).predict_set(X_test, COVERAGE).members,
    }
    of_row, found = np.arange(len(truth)), []
    for kind, inside in sets.items():
        covered, size = inside[of_row, truth], inside.sum(axis=1)
        found.append(
            {
                "model": name,
                "sets": kind,
                "P > .99": sure.mean(),
                "of these right": right.mean() if sure.any() else np.nan,
                "cover": covered.mean(),
                "least class": min(covered[truth == c].mean() for c in np.unique(truth)),
                "no label": (size == 0).mean(),
                "one": (size == 1).mean(),
                "several": (size > 1).mean(),
            }
        )
    return found


def table(found: list[dict]) -> str:
    """Means over the repeats."""
    frame = pd.DataFrame(found).groupby(["model", "sets"], sort=False).mean()
    return frame.map(lambda share: "-" if np.isnan(share) else f"{share:.1%}").to_string()


def simulated(out: Path) -> None:
    """Both models on simulated members, and a figure of one of the repeats."""
    found = []
    for repeat in range(REPEATS):
        rng = np.random.default_rng(repeat)
        data = (*members(ROWS, rng), *members(TEST, rng))
        for name, nb in MODELS.items():
            found += judged(name, nb, *data)
    print(f"three parties, simulated: {ROWS} members to learn from, {TEST} others, {REPEATS} times\n{table(found)}\n")
    X, y, X_test, _ = data
    sets = bnb.conformal(MODELS["naive Bayes"].fit(X, y), X, y).predict_set(X_test, COVERAGE)
    print(f"{sets}\n{sets.to_frame().head(8).round(3).to_string()}\n")
    sizes = pd.Series(sets.size).value_counts(normalize=True).sort_index()
    ax = sizes.plot.bar(xlabel="labels in the set", ylabel="share of rows", rot=0)
    ax.figure.savefig(out / "honest_sets.png", dpi=150, bbox_inches="tight")


def congress(path: Path) -> None:
    """Both models on halves of the votes."""
    data, found = read_arff(path), []
    X, y = data.iloc[:, :-1], data.iloc[:, -1].to_numpy(str)
    for repeat in range(REPEATS):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=repeat)
        for name, nb in MODELS.items():
            found += judged(name, nb, X_train, y_train, X_test, y_test)
    print(f"votes of Congress: halves to learn from and to judge by, {REPEATS} times\n{table(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help="vote.arff")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figure")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    simulated(options.out)
    if options.file is not None:
        congress(options.file)
    print(CONCLUSION)


if __name__ == "__main__":
    main()
