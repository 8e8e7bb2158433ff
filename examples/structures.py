"""Arcs between features: their benefit and their cost.

TAN gives each feature one other feature as a parent, besides the class. AODE lets each feature in turn be the parent of
all others, and averages. Both use the Dirichlet tables of naive Bayes, with more cells.

    python examples/structures.py [FOLDER] [--out DIR]

Breast cancer comes with scikit-learn: a Pipeline cuts its thirty measurements into levels with scikit-learn's
discretiser, because arcs connect levels. FOLDER has car.arff, vote.arff and breast.cancer.arff (UCI Machine Learning
Repository), with "?" for a missing cell. All scores are from ten-fold cross-validation; each fold learns its own
structure and tables.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from certain_and_wrong import read_arff
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

import bayesnb as bnb

FOLDS = 10
FILES = ("car", "vote", "breast.cancer")
MODELS = {
    "naive Bayes": bnb.CategoricalNB,
    "TAN": bnb.TAN,
    "TAN, by evidence": lambda **options: bnb.TAN("evidence", **options),
    "AODE": bnb.AODE,
}

MORAL = """
An arc helps if features depend on each other given the class, and if there are enough rows for its larger table. Votes
on bills of one Congress depend on each other: naive Bayes counts each as new evidence, and some of its certain
predictions are wrong. The classes of cars follow a rule over pairs of features. The breast cancer table of 286 rows is
too small for a tree over all features. Sample mutual information is never zero, so a tree by mutual information has all
F - 1 arcs, and scores no better than naive Bayes; a tree by evidence has only the arcs that the data support. The same
rows choose the arcs and fill the tables. `loo`, the evidence and the intervals of a TAN are therefore conditional on
the tree: 90% intervals cover .85-.86 under a learned tree, and .90 under the true tree. Cross-validation is valid,
because it learns the tree again in each fold, so this script uses it.
"""


def scores(classifier: Any, X: Any, y: np.ndarray) -> dict[str, float]:
    """Return accuracy, mean log loss, and the errors among the rows with P > .999."""
    log_proba, top = np.empty(len(y)), np.empty((len(y), 2))
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        fitted = clone(classifier).fit(X.iloc[train], y[train])
        proba = fitted.predict_proba(X.iloc[test])
        truth = np.searchsorted(fitted.classes_, y[test])
        log_proba[test] = np.log(proba[np.arange(len(test)), truth])
        top[test] = np.stack([proba.max(axis=1), proba.argmax(axis=1) == truth], axis=1)
    certain = top[:, 0] > 0.999
    return {
        "accuracy": top[:, 1].mean(),
        "log loss": -log_proba.mean(),
        "P > .999": int(certain.sum()),
        "of them wrong": int((certain & (top[:, 1] == 0)).sum()),
    }


def compare(name: str, X: pd.DataFrame, y: np.ndarray, classifiers: dict[str, Any]) -> None:
    print(f"{name}: {len(y):,} rows, {X.shape[1]} features")
    found = pd.DataFrame({model: scores(classifier, X, y) for model, classifier in classifiers.items()}).T
    print(found.round(3).astype({"P > .999": int, "of them wrong": int}).to_string(), flush=True)


def nominal(path: Path, out: Path) -> None:
    """Score tables of levels, print the evidence of each structure, and draw one tree."""
    table = read_arff(path)
    X, y = table.iloc[:, :-1], table.iloc[:, -1].to_numpy(str)
    levels = [sorted(column.dropna().unique()) for _, column in X.items()]
    compare(path.stem, X, y, {name: make(categories=levels) for name, make in MODELS.items()})
    complete = X.notna().all(axis=1).to_numpy()
    fitted = {name: make(categories=levels).fit(X[complete], y[complete]) for name, make in MODELS.items()}
    naive = fitted.pop("naive Bayes").log_evidence_
    print(f"log Bayes factor against naive Bayes, {complete.sum():,} rows without a missing cell:", end=" ")
    trees = {name: nb for name, nb in fitted.items() if name != "AODE"}
    print(", ".join(f"{name} {nb.log_evidence_ - naive:+.1f}" for name, nb in trees.items()))
    for name, nb in trees.items():
        arcs = sum(parent is not None for parent in nb.parents_.values())
        print(f"  {name}: {arcs} arcs, {nb.n_parameters_:,} parameters")
    ax = bnb.plots.structure(trees["TAN, by evidence"])
    ax.figure.savefig(out / f"structures-{path.stem}.png", dpi=150)
    bnb.plots.detach(ax)


def cars(path: Path) -> None:
    """Query a network about any of its variables."""
    table = read_arff(path)
    nb = bnb.TAN("evidence").fit(table.iloc[:, :-1], table.iloc[:, -1].to_numpy(str))
    print("P(safety | class = unacc, maint = low), the other variables summed out:")
    print(nb.query("safety", {"(class)": "unacc", "maint": "low"}).round(3).to_string())
    print("P(class | safety = high):")
    print(nb.query("(class)", {"safety": "high"}).round(3).to_string(), "\n")


def cancer() -> None:
    """Score measurements that are cut into five levels within each fold."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    cut = KBinsDiscretizer(5, encode="ordinal", strategy="kmeans")
    classifiers: dict[str, Any] = {"Gaussian naive Bayes": bnb.GaussianNB()}
    classifiers |= {name: make_pipeline(cut, make(categories=[range(5)] * 30)) for name, make in MODELS.items()}
    compare("breast cancer measurements", X, y.to_numpy(), classifiers)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="folder of car.arff, vote.arff, breast.cancer.arff")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cancer()
    if options.folder is None:
        print("car, vote and breast.cancer: not run, because no FOLDER was given")
        return
    for name in FILES:
        nominal(options.folder / f"{name}.arff", options.out)
        print()
    cars(options.folder / "car.arff")
    print(f"{MORAL.strip()}\n\nFigures in {options.out}/")


if __name__ == "__main__":
    main()
