"""What is true, and who is to be believed? Labels of several annotators, without the truth: Dawid and Skene's model.

    python examples/annotators.py [--out DIR]

A table of items and annotators, most cells missing. That annotators err independently, given the class, is naive Bayes
with a class that nobody has seen: `NaiveBayesMixture` finds classes and the confusion table of each annotator together.
Answers are simulated, by a process that is not that model: some items are hard for everybody. In a second world some
annotators copy from one of them.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

import bayesnb as bnb

CLASSES = np.array(["none", "mild", "severe"], dtype=object)
SHARES = np.array([0.5, 0.3, 0.2])
ITEMS, SEEN, GOLD, COPIERS, COPIED = 600, 0.6, 40, 3, 0.9
SKILL = {"Ann": 0.9, "Ben": 0.85, "Cem": 0.7, "Dia": 0.7, "Eve": 0.6}  # besides: one who reads high, one who guesses

INTRODUCTION = f"""\
{ITEMS} items of three classes; seven annotators, each of whom has seen {SEEN:.0%} of them. accuracy: of the most
probable class. stated: mean of the probability that it is given. Vote: the share of the answers is what it states.
"copied": {COPIERS} more annotators, who have what the weakest one said nine times in ten.
"""

CONCLUSION = """
How to read this
  The vote counts each annotator as one. EM finds out who agrees with what the others come to, weighs answers by it, and
  reads an annotator who is always one class too high for what that tells: it is right more often. Where the model
  holds it states little more than it keeps; where some items are hard for everybody it is too sure, as the model takes
  every answer for independent of the others.
  Copies break it. Several who agree for no reason but that they copy look like the best annotators there are: EM takes
  what they say for the classes, is worse than the vote, and surer than before. More items do not mend that. Known
  classes of a few items alone are better; beside hundreds of items without, EM hardly hears them. And dependence within
  the classes that were found accuses the honest, as it is the copies by whom the classes are defined.
  What shows copies needs no model: a table of how often two annotators agree. With one of them left the copies are
  gone, and so is the harm. Good annotators agree often, too, and a line at 80% leaves one of them out now and then:
  look at items of known class, whether two share their errors.
"""


@dataclass(frozen=True, eq=False)
class Answers:
    """`X` (N, A): what each annotator said of each item, None where nothing. `y` (N,): the truth."""

    X: pd.DataFrame
    y: np.ndarray


def confusion(skill: float) -> np.ndarray:
    """(3, 3) P(answer | class) of an annotator who errs to the classes beside more often than beyond."""
    distance = abs(np.subtract.outer(np.arange(3), np.arange(3)))
    wrong = np.where(distance == 1, 3.0, np.where(distance == 2, 1.0, 0.0))
    return skill * np.eye(3) + (1.0 - skill) * wrong / wrong.sum(axis=1, keepdims=True)


def annotators() -> dict[str, np.ndarray]:
    """Five who are more or less good, one who mostly reads one class too high, one who guesses."""
    high = 0.25 * np.eye(3) + 0.75 * np.eye(3)[[1, 2, 2]]
    return {name: confusion(skill) for name, skill in SKILL.items()} | {"high": high, "guess": np.tile(SHARES, (3, 1))}


def said(tables: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(N,) one answer an item, drawn from the row of its class; tables (3, 3) or one an item, (N, 3, 3)."""
    rows = tables[y] if tables.ndim == 2 else tables[np.arange(len(y)), y]
    return (rng.random((len(y), 1)) > rows.cumsum(axis=1)[:, :-1]).sum(axis=1)


def simulate(seed: int = 0, copiers: int = 0, hard: float = 0.25, n: int = ITEMS) -> Answers:
    """Answers of all annotators. Of hard items, whose share is `hard`, every answer is half a guess at the middle."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=SHARES)
    is_hard = (rng.random(n) < hard)[:, None, None]
    blurred = np.tile([0.25, 0.5, 0.25], (3, 1))
    columns = {
        name: said(np.where(is_hard, 0.5 * table + 0.5 * blurred, table), y, rng)
        for name, table in annotators().items()
    }
    for i in range(copiers):
        copied = rng.random(n) < COPIED
        columns[f"copy {i + 1}"] = np.where(copied, columns["Eve"], said(confusion(SKILL["Eve"]), y, rng))
    X = pd.DataFrame({name: CLASSES[answer] for name, answer in columns.items()})
    return Answers(X.where(rng.random(X.shape) < SEEN, None), CLASSES[y])


def vote(X: pd.DataFrame) -> np.ndarray:
    """(N, 3) share of the answers that name each class; where there is none, equal shares."""
    count = np.stack([X.eq(name).sum(axis=1) for name in CLASSES], axis=1).astype(float)
    total = count.sum(axis=1, keepdims=True)
    return np.where(total > 0, count / np.maximum(total, 1.0), 1.0 / len(CLASSES))


def dawid_skene(X: pd.DataFrame, seed: int = 0) -> bnb.NaiveBayesMixture:
    """Three latent classes with a confusion table an annotator."""
    levels = [CLASSES.tolist()] * X.shape[1]
    estimator = bnb.CategoricalNB(alpha=0.5, categories=levels)
    return bnb.NaiveBayesMixture(len(CLASSES), estimator=estimator, n_init=5, seed=seed).fit(X)


def names_of_classes(mixture: bnb.NaiveBayesMixture, X: pd.DataFrame) -> np.ndarray:
    """(3,) which latent class to call by each name: those that agree most with the vote, one to one."""
    agreement = vote(X).T @ mixture.predict_proba(X)
    return linear_sum_assignment(-agreement)[1]


def consensus(mixture: bnb.NaiveBayesMixture, X: pd.DataFrame) -> np.ndarray:
    """(N, 3) P(class | answers) in the order of CLASSES."""
    return mixture.predict_proba(X)[:, names_of_classes(mixture, X)]


def with_gold(answers: Answers, gold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N, 3) P(class | answers) from the items `gold`, whose class is told: from them alone, and by EM with all."""
    labels = np.full(len(answers.y), -1, dtype=object)
    labels[gold] = answers.y[gold]
    nb = bnb.CategoricalNB(alpha=0.5, categories=[CLASSES.tolist()] * answers.X.shape[1])
    both = bnb.fit_em(nb, answers.X, labels, max_iter=300).estimator, nb.fit(answers.X.iloc[gold], answers.y[gold])
    em, alone = (own.predict_proba(answers.X)[:, [list(own.classes_).index(name) for name in CLASSES]] for own in both)
    return alone, em


def tables(mixture: bnb.NaiveBayesMixture, X: pd.DataFrame) -> dict[str, np.ndarray]:
    """(3, 3) P(answer | class) of each annotator, both in the order of CLASSES."""
    nb, order, found = mixture.estimator_, names_of_classes(mixture, X), {}
    for name, levels, log in zip(nb.feature_names_in_, nb.categories_, nb.feature_log_prob_, strict=True):
        found[name] = np.exp(log[order][:, [list(levels).index(level) for level in CLASSES]])
    return found


def counted(answers: Answers) -> dict[str, np.ndarray]:
    """The same tables, counted with the truth."""
    found = {}
    for name, own in answers.X.items():
        seen = own.notna().to_numpy()
        of_class = [own[seen & (answers.y == c)] for c in CLASSES]
        found[str(name)] = np.array([[(answer == a).mean() for a in CLASSES] for answer in of_class])
    return found


def skills(mixture: bnb.NaiveBayesMixture, answers: Answers) -> pd.DataFrame:
    """For each annotator: how often the answer is the class, as EM has it and as counted, and the largest error."""
    found, true = tables(mixture, answers.X), counted(answers)
    share = mixture.weights_[names_of_classes(mixture, answers.X)]
    return pd.DataFrame(
        {
            "right, by EM": {name: share @ np.diag(table) for name, table in found.items()},
            "right, counted": {name: (answers.X[name] == answers.y)[answers.X[name].notna()].mean() for name in found},
            "largest error of a cell": {name: abs(found[name] - true[name]).max() for name in found},
        }
    )


def skill_intervals(mixture: bnb.NaiveBayesMixture, data: Any, answers: Answers, prob: float = 0.9) -> pd.DataFrame:
    """For each annotator: how often the answer is the class, with its interval by the draws `data`, and as counted.

    "cells covered" is the share of the cells of the counted confusion table that lie in their intervals.
    """
    nb, order = mixture.estimator_, names_of_classes(mixture, answers.X)
    share = data["posterior"]["class_prob"].values[..., order]
    theta, tails, rows, start = data["posterior"]["theta"].values, [0.5 - prob / 2, 0.5 + prob / 2], {}, 0
    for (name, true), levels in zip(counted(answers).items(), nb.categories_, strict=True):
        table = theta[:, :, order][..., [start + list(levels).index(level) for level in CLASSES]]
        start += len(levels)
        right = (share * np.diagonal(table, axis1=-2, axis2=-1)).sum(axis=-1)
        lower, upper = np.quantile(table, tails, axis=(0, 1))
        ends = dict(zip(("lower", "upper"), np.quantile(right, tails), strict=True))
        seen = answers.X[name].notna()
        rows[name] = {"right": right.mean(), **ends, "counted": (answers.X[name] == answers.y)[seen].mean()}
        rows[name]["cells covered"] = ((lower <= true) & (true <= upper)).mean()
    return pd.DataFrame.from_dict(rows, orient="index")


def outcome(proba: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy of the most probable class, what is stated for it, and the log loss."""
    truth = (y[:, None] == CLASSES).argmax(axis=1)
    return {
        "accuracy": (proba.argmax(axis=1) == truth).mean(),
        "stated": proba.max(axis=1).mean(),
        "log loss": -np.log(np.clip(proba[np.arange(len(y)), truth], 1e-15, None)).mean(),
    }


def agreement(X: pd.DataFrame) -> pd.DataFrame:
    """(A, A) share of the items that both have seen on which two annotators agree."""
    both = {a: {b: X[a].notna() & X[b].notna() for b in X} for a in X}
    return pd.DataFrame({a: {b: (X[a] == X[b])[both[a][b]].mean() for b in X} for a in X})


def without_copies(X: pd.DataFrame, line: float = 0.8) -> pd.DataFrame:
    """The annotators but those who agree with one before them on more than `line` of the items."""
    agree, kept = agreement(X), list[str]()
    for name in X:
        if not (agree.loc[name, kept] > line).any():
            kept.append(name)
    return X[kept]


def dependence(X: pd.DataFrame, label: np.ndarray, top: int = 4) -> pd.DataFrame:
    """The annotators who depend on each other most within the classes that were found."""
    found = bnb.check_independence(bnb.CategoricalNB().fit(X, label), X, label, top=top, draws=20)
    return found[["feature_1", "feature_2", "rows", "log_bayes_factor", "mutual_information"]]


def ways(answers: Answers, gold: np.ndarray) -> dict[str, np.ndarray]:
    """(N, 3) probabilities by vote, by EM, from items of known class, and by EM without copies."""
    alone, em = with_gold(answers, gold)
    kept = without_copies(answers.X)
    return {
        "vote": vote(answers.X),
        "EM": consensus(dawid_skene(answers.X), answers.X),
        f"{len(gold)} known alone": alone,
        f"{len(gold)} known and EM": em,
        "EM, copies left out": consensus(dawid_skene(kept), kept),
    }


def compare(answers: Answers, gold: np.ndarray) -> pd.DataFrame:
    """Scores of each way, on items whose class was not told."""
    rest = np.setdiff1d(np.arange(len(answers.y)), gold)
    found = ways(answers, gold).items()
    return pd.DataFrame.from_dict({name: outcome(p[rest], answers.y[rest]) for name, p in found}, orient="index")


def repeated(repeats: int = 10) -> pd.DataFrame:
    """Means over data sets: no hard items, hard items, and copies; gold items are drawn at random."""
    worlds = {"model holds": {"hard": 0.0}, "hard items": {}, "copied": {"copiers": COPIERS}}
    rows = {}
    for world, options in worlds.items():
        found = []
        for seed in range(repeats):
            answers = simulate(seed, **options)
            found.append(compare(answers, np.random.default_rng(seed).choice(ITEMS, GOLD, replace=False)))
        rows[world] = pd.concat(found).groupby(level=0, sort=False).mean()
    return pd.concat(rows, names=["world", "by"])


def draw(answers: dict[str, Answers]) -> Any:
    """A figure: for each world, how often an annotator is right as EM has it, against what is counted."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(answers), figsize=(4.6 * len(answers), 4.2), sharey=True, layout="constrained")
    for panel, (world, own) in zip(np.atleast_1d(panels), answers.items(), strict=True):
        table = skills(dawid_skene(own.X), own)
        panel.plot([0.2, 1.0], [0.2, 1.0], color="grey", linewidth=1)
        for i, (name, (by_em, truly, _)) in enumerate(table.iterrows()):
            one_of_them = "copy" in str(name) or str(name) == "Eve"
            panel.plot(truly, by_em, "o", color="C1" if one_of_them else "C0")
            if "copy" not in str(name):
                side = {"xytext": (7, -9)} if i % 2 else {"xytext": (-7, 4), "ha": "right"}
                panel.annotate(str(name), (truly, by_em), textcoords="offset points", fontsize=8, **side)
        panel.set_title(f"{world} (orange: Eve, and who copies her)", loc="left", fontsize=10)
        panel.set_xlabel("share of answers that are right, counted")
        panel.grid(alpha=0.3)
    np.atleast_1d(panels)[0].set_ylabel("the same, as EM has it")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figure")
    out = parser.parse_args().out
    print(INTRODUCTION)
    print("Means of 10 data sets; scored on items whose class was not told")
    print(repeated().round(3).to_string(), "\n")
    worlds = {"hard items": simulate(0), "copied": simulate(0, copiers=COPIERS)}
    for world, answers in worlds.items():
        mixture = dawid_skene(answers.X)
        print(f"{world}: the annotators of one data set\n{skills(mixture, answers).round(3).to_string()}")
        label = consensus(mixture, answers.X).argmax(axis=1)
        print("Dependence within the classes that were found")
        print(dependence(answers.X, label).round(3).to_string(index=False), "\n")
    X = worlds["copied"].X
    print("copied: how often two annotators agree\n" + agreement(X).round(2).to_string())
    print("kept:", ", ".join(without_copies(X)))
    print(CONCLUSION)
    if find_spec("matplotlib") is None:
        print("No figure: install matplotlib to draw one.")
        return
    import matplotlib

    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    draw(worlds).savefig(out / "annotators.png", dpi=150)
    print(f"Figure in {out}/")


if __name__ == "__main__":
    main()
