"""Labels of several annotators without the true classes: the model of Dawid and Skene.

    python examples/annotators.py [--out DIR]

The data are a table of items and annotators with many missing cells. If annotators err independently given the class,
the model is naive Bayes with a latent class: `NaiveBayesMixture` estimates the classes and the confusion table of each
annotator together. The answers are simulated from a different process: some items are hard for everybody. In a second
simulation some annotators copy from another one.
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
{ITEMS} items of three classes; each of seven annotators has seen {SEEN:.0%} of them. accuracy: share of items whose
most probable class is right. stated: mean probability of the most probable class; for the vote, its share of the
answers. "copied": {COPIERS} more annotators, who repeat the answer of the weakest annotator nine times in ten.
"""

CONCLUSION = "How to read this: docs/cases/annotators.md"


@dataclass(frozen=True, eq=False)
class Answers:
    """`X` (N, A): answer of each annotator for each item, None if missing. `y` (N,): true classes."""

    X: pd.DataFrame
    y: np.ndarray


def confusion(skill: float) -> np.ndarray:
    """Return P(answer | class), (3, 3), where neighbouring classes are confused more often than distant ones."""
    distance = abs(np.subtract.outer(np.arange(3), np.arange(3)))
    wrong = np.where(distance == 1, 3.0, np.where(distance == 2, 1.0, 0.0))
    return skill * np.eye(3) + (1.0 - skill) * wrong / wrong.sum(axis=1, keepdims=True)


def annotators() -> dict[str, np.ndarray]:
    """Return confusion tables: five annotators of different skill, one who rates too high, and one who guesses."""
    high = 0.25 * np.eye(3) + 0.75 * np.eye(3)[[1, 2, 2]]
    return {name: confusion(skill) for name, skill in SKILL.items()} | {"high": high, "guess": np.tile(SHARES, (3, 1))}


def said(tables: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw answers (N,) from the row of each item's class; `tables` is (3, 3), or (N, 3, 3) with one per item."""
    rows = tables[y] if tables.ndim == 2 else tables[np.arange(len(y)), y]
    return (rng.random((len(y), 1)) > rows.cumsum(axis=1)[:, :-1]).sum(axis=1)


def simulate(seed: int = 0, copiers: int = 0, hard: float = 0.25, n: int = ITEMS) -> Answers:
    """Simulate answers. For the share `hard` of items, half of every answer is a guess around the middle class."""
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
    """Return the share of the answers for each class, (N, 3); equal shares without answers."""
    count = np.stack([X.eq(name).sum(axis=1) for name in CLASSES], axis=1).astype(float)
    total = count.sum(axis=1, keepdims=True)
    return np.where(total > 0, count / np.maximum(total, 1.0), 1.0 / len(CLASSES))


def dawid_skene(X: pd.DataFrame, seed: int = 0) -> bnb.NaiveBayesMixture:
    """Fit three latent classes with one confusion table per annotator."""
    levels = [CLASSES.tolist()] * X.shape[1]
    estimator = bnb.CategoricalNB(alpha=0.5, categories=levels)
    return bnb.NaiveBayesMixture(len(CLASSES), estimator=estimator, n_init=5, seed=seed).fit(X)


def names_of_classes(mixture: bnb.NaiveBayesMixture, X: pd.DataFrame) -> np.ndarray:
    """Return the latent class (3,) for each class name: the one-to-one match that agrees most with the vote."""
    agreement = vote(X).T @ mixture.predict_proba(X)
    return linear_sum_assignment(-agreement)[1]


def consensus(mixture: bnb.NaiveBayesMixture, X: pd.DataFrame) -> np.ndarray:
    """Return P(class | answers), (N, 3), in the order of CLASSES."""
    return mixture.predict_proba(X)[:, names_of_classes(mixture, X)]


def with_gold(answers: Answers, gold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return P(class | answers), (N, 3), from the items `gold` of known class alone, and by EM with all items."""
    labels = np.full(len(answers.y), -1, dtype=object)
    labels[gold] = answers.y[gold]
    nb = bnb.CategoricalNB(alpha=0.5, categories=[CLASSES.tolist()] * answers.X.shape[1])
    both = bnb.fit_em(nb, answers.X, labels, max_iter=300).estimator, nb.fit(answers.X.iloc[gold], answers.y[gold])
    em, alone = (own.predict_proba(answers.X)[:, [list(own.classes_).index(name) for name in CLASSES]] for own in both)
    return alone, em


def tables(mixture: bnb.NaiveBayesMixture, X: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return P(answer | class), (3, 3), of each annotator, both axes in the order of CLASSES."""
    nb, order, found = mixture.estimator_, names_of_classes(mixture, X), {}
    for name, levels, log in zip(nb.feature_names_in_, nb.categories_, nb.feature_log_prob_, strict=True):
        found[name] = np.exp(log[order][:, [list(levels).index(level) for level in CLASSES]])
    return found


def counted(answers: Answers) -> dict[str, np.ndarray]:
    """Return the confusion table of each annotator, counted with the true classes."""
    found = {}
    for name, own in answers.X.items():
        seen = own.notna().to_numpy()
        of_class = [own[seen & (answers.y == c)] for c in CLASSES]
        found[str(name)] = np.array([[(answer == a).mean() for a in CLASSES] for answer in of_class])
    return found


def skills(mixture: bnb.NaiveBayesMixture, answers: Answers) -> pd.DataFrame:
    """Return how often each annotator is right, by EM and counted, and the largest error of a table cell."""
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
    """Return how often each annotator is right: mean and interval from the draws `data`, and counted.

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
    """Return the accuracy of the most probable class, its mean stated probability, and the log loss."""
    truth = (y[:, None] == CLASSES).argmax(axis=1)
    return {
        "accuracy": (proba.argmax(axis=1) == truth).mean(),
        "stated": proba.max(axis=1).mean(),
        "log loss": -np.log(np.clip(proba[np.arange(len(y)), truth], 1e-15, None)).mean(),
    }


def agreement(X: pd.DataFrame) -> pd.DataFrame:
    """Return how often two annotators agree, (A, A), as a share of the items that both have seen."""
    both = {a: {b: X[a].notna() & X[b].notna() for b in X} for a in X}
    return pd.DataFrame({a: {b: (X[a] == X[b])[both[a][b]].mean() for b in X} for a in X})


def without_copies(X: pd.DataFrame, line: float = 0.8) -> pd.DataFrame:
    """Leave out annotators who agree with an earlier one on more than the share `line` of items."""
    agree, kept = agreement(X), list[str]()
    for name in X:
        if not (agree.loc[name, kept] > line).any():
            kept.append(name)
    return X[kept]


def dependence(X: pd.DataFrame, label: np.ndarray, top: int = 4) -> pd.DataFrame:
    """Return the pairs of annotators that depend on each other most within the inferred classes."""
    found = bnb.check_independence(bnb.CategoricalNB().fit(X, label), X, label, top=top, draws=20)
    return found[["feature_1", "feature_2", "rows", "log_bayes_factor", "mutual_information"]]


def ways(answers: Answers, gold: np.ndarray) -> dict[str, np.ndarray]:
    """Return probabilities (N, 3) by vote, by EM, from items of known class, and by EM without copies."""
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
    """Score each method on the items whose class was not given."""
    rest = np.setdiff1d(np.arange(len(answers.y)), gold)
    found = ways(answers, gold).items()
    return pd.DataFrame.from_dict({name: outcome(p[rest], answers.y[rest]) for name, p in found}, orient="index")


def repeated(repeats: int = 10) -> pd.DataFrame:
    """Return mean scores over data sets without hard items, with hard items, and with copies."""
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
    """Draw how often each annotator is right by EM against the count, for each simulation."""
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
        panel.set_title(f"{world} (orange: Eve and her copies)", loc="left", fontsize=10)
        panel.set_xlabel("share of right answers, counted")
        panel.grid(alpha=0.3)
    np.atleast_1d(panels)[0].set_ylabel("share of right answers, by EM")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figure")
    out = parser.parse_args().out
    print(INTRODUCTION)
    print("Means of 10 data sets; scores on items whose class was not given")
    print(repeated().round(3).to_string(), "\n")
    worlds = {"hard items": simulate(0), "copied": simulate(0, copiers=COPIERS)}
    print("copied, annotators without the copies:", ", ".join(without_copies(worlds["copied"].X)))
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
