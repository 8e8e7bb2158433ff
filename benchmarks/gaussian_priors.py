"""Effects of the variance of the default Gaussian prior: "within" the classes, or "pooled" over all rows.

Run with `python -m benchmarks.gaussian_priors`. `BAYESNB_DATA` names the folder of pima.csv and adult-train.csv (UCI
Machine Learning Repository); absent files are skipped. The results are in docs/priors.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold

import bayesnb as bnb

PRIORS = ("pooled", "within")
SEPARATIONS = (0, 2, 4, 6)
FEW, REPEATS = 5, 40


def tables() -> Iterator[tuple[str, Any, np.ndarray]]:
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield name, *getattr(datasets, f"load_{name}")(return_X_y=True)
    melon = bnb.datasets.load_watermelon()
    yield "watermelon", melon.data, np.asarray(melon.target)
    folder = Path(os.environ.get("BAYESNB_DATA", "../shared/data"))
    if (folder / "pima.csv").exists():
        pima = pd.read_csv(folder / "pima.csv", header=None)
        yield "pima", pima.iloc[:, :-1].to_numpy(float), pima.iloc[:, -1].to_numpy()
    if (folder / "adult-train.csv").exists():
        adult = pd.read_csv(folder / "adult-train.csv", header=None, skipinitialspace=True, na_values="?")
        yield "adult", adult.iloc[:, :-1].rename(columns=str), adult.iloc[:, -1].to_numpy()


def log_loss(nb: Any, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    """Return the mean of -log P(label | row) over the rows outside the fit."""
    rows = X.iloc if hasattr(X, "iloc") else X
    nb.fit(rows[train], y[train])
    log_proba = nb.predict_log_proba(rows[test])
    return float(-log_proba[np.arange(len(test)), np.searchsorted(nb.classes_, y[test])].mean())


def compare(X: Any, y: np.ndarray) -> dict[str, float]:
    """Return held-out log loss of three stratified folds and after five rows per class, and the log evidence."""
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(np.zeros(len(y)), y))
    rng, few = np.random.default_rng(0), []
    for _ in range(REPEATS):
        train = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:FEW] for c in np.unique(y)])
        few.append((train, np.setdiff1d(np.arange(len(y)), train)))
    found: dict[str, float] = {}
    for prior in PRIORS:
        nb = bnb.MixedNB(numbers="gaussian", gaussian_prior=prior)
        found[f"folds, {prior}"] = float(np.mean([log_loss(nb, X, y, *split) for split in folds]))
        found[f"five rows, {prior}"] = float(np.mean([log_loss(nb, X, y, *split) for split in few]))
        found[f"evidence, {prior}"] = nb.fit(X, y).log_evidence_
    return found


def coverage(make: Callable[[], Any], separation: float, sets: int = 1500, rows: int = 10, seed: int = 0) -> float:
    """Share of the sets in which a 90% interval of P(class | row, θ) has the true value.

    One feature, two classes of variance 1 and equal probability, whose means lie `separation` apart; the row is of
    either. θ is fixed: this is coverage in repeated sampling.
    """
    rng, inside = np.random.default_rng(seed), 0
    label = np.repeat([0, 1], rows)
    for _ in range(sets):
        x = rng.normal(label * separation)
        row = rng.normal(rng.integers(2) * separation)
        true = expit(separation * (separation / 2 - row))
        lower, upper = bnb.predict_interval(make().fit(x[:, None], label), [[row]], 0.9)
        inside += bool(lower[0, 0] <= true <= upper[0, 0])
    return inside / sets


def main() -> None:
    table = pd.DataFrame({name: compare(X, y) for name, X, y in tables()}).T
    print(table.round(3).to_string(), flush=True)
    for prior in PRIORS:
        found = {s: coverage(lambda p=prior: bnb.GaussianNB(prior=p, class_prior=[0.5, 0.5]), s) for s in SEPARATIONS}
        print(prior, {s: round(share, 3) for s, share in found.items()}, flush=True)


if __name__ == "__main__":
    main()
