"""Sets of labels that contain the true label as often as stated, although the model is wrong.

Members of three parties vote on four matters, four times on each. A member with a fixed opinion on a matter votes the
same way each time. Naive Bayes counts this as four independent votes, so it is overconfident: the smallest set of
parties whose probabilities sum to 90% misses the true party more often than once in ten. `conformal` scores each new
row with each label, and counts the training rows whose leave-one-out score is no better. The resulting sets contain the
true label with the stated probability under any model; a better model makes the sets smaller.

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
  If naive Bayes states P > .99, it should be wrong in fewer than one row of a hundred. It is wrong far more often, so
  its own sets, which rely on these probabilities, miss too many labels.
  Weighted terms give calibrated probabilities. Their sets contain the true label more often than required: labels are
  added until the sum exceeds 90%, and with three labels it often exceeds 90% by far.
  Conformal sets contain the true label in nine rows of ten under either model, and about as many sets have one label.
  The sets depend only on the order of the scores, which is similar in the two models.
  The guarantee is an average over rows. It holds for each party only with `by_class`, and it does not hold separately
  for sets with one label, which are right less often than sets with several. If the model predicts more than nine
  rows in ten correctly, the sets of the rows that are hardest to classify are empty; under a higher coverage they have
  labels. The guarantee needs exchangeable rows: it does not hold if the next Congress votes differently.
"""


def members(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Simulate votes (n, 16) and parties: members mostly share their party's opinion, and mostly vote by it."""
    party = rng.integers(0, len(PARTIES), n)
    line = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]])[party]
    stance = np.where(rng.random((n, MATTERS)) < LOYALTY, line, 1 - line)
    votes = np.repeat(stance, VOTES, axis=1)
    return np.where(rng.random(votes.shape) < STEADY, votes, 1 - votes), PARTIES[party]


def own_sets(proba: np.ndarray) -> np.ndarray:
    """Return the smallest sets of labels whose probabilities sum to the coverage, (N, C)."""
    order = np.argsort(-proba, axis=1)
    falling = np.take_along_axis(proba, order, axis=1)
    enough = np.cumsum(falling, axis=1) - falling < COVERAGE
    members = np.empty(proba.shape, bool)
    np.put_along_axis(members, order, enough, axis=1)
    return members


def judged(name: str, nb, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> list[dict]:
    """Return coverage and sizes of the sets of one fit, from its probabilities and conformal."""
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
    """Format means over the repeats."""
    frame = pd.DataFrame(found).groupby(["model", "sets"], sort=False).mean()
    return frame.map(lambda share: "-" if np.isnan(share) else f"{share:.1%}").to_string()


def simulated(out: Path) -> None:
    """Compare both models on simulated members, and draw one of the repeats."""
    found = []
    for repeat in range(REPEATS):
        rng = np.random.default_rng(repeat)
        data = (*members(ROWS, rng), *members(TEST, rng))
        for name, nb in MODELS.items():
            found += judged(name, nb, *data)
    print(f"three parties, simulated: {ROWS} training rows, {TEST} test rows, {REPEATS} repeats\n{table(found)}\n")
    X, y, X_test, _ = data
    sets = bnb.conformal(MODELS["naive Bayes"].fit(X, y), X, y).predict_set(X_test, COVERAGE)
    print(f"{sets}\n{sets.to_frame().head(8).round(3).to_string()}\n")
    sizes = pd.Series(sets.size).value_counts(normalize=True).sort_index()
    ax = sizes.plot.bar(xlabel="labels in the set", ylabel="share of rows", rot=0)
    ax.figure.savefig(out / "honest_sets.png", dpi=150, bbox_inches="tight")


def congress(path: Path) -> None:
    """Compare both models on random halves of the votes."""
    data, found = read_arff(path), []
    X, y = data.iloc[:, :-1], data.iloc[:, -1].to_numpy(str)
    for repeat in range(REPEATS):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=repeat)
        for name, nb in MODELS.items():
            found += judged(name, nb, X_train, y_train, X_test, y_test)
    print(f"votes of Congress: training and test halves, {REPEATS} repeats\n{table(found)}")


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
