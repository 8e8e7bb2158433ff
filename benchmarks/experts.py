"""What experts of `WeightedNB` add, and whether the stated losses and gains are honest.

python -m benchmarks.experts --only gain    # or "loss", "samples"; some thousand fits of five seconds in all
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn import datasets
from sklearn.model_selection import StratifiedShuffleSplit

import bayesnb as bnb
from benchmarks.stated_losses import NEW_ROWS, levels, naive_bayes, noise
from benchmarks.tables import SOURCES, absent

Rows = tuple[pd.DataFrame, np.ndarray]
Simulate = Callable[[np.random.Generator, int], Rows]


def numbers(rng: np.random.Generator, n: int, *, columns: int = 8, distance: float = 0.6) -> Rows:
    """Draw normal columns, independent given one of two classes, with means at random, of sd `distance`."""
    y, mean = rng.integers(0, 2, n), distance * rng.standard_normal((2, columns))
    return pd.DataFrame(mean[y] + rng.standard_normal((n, columns))), y


def rule(rng: np.random.Generator, n: int) -> Rows:
    """Draw six normal columns: the sign of one tells which of two others decides the class of 95% of the rows."""
    x = rng.standard_normal((n, 6))
    y = (np.where(x[:, 0] > 0, x[:, 1], x[:, 2]) > 0) ^ (rng.random(n) < 0.05)
    return pd.DataFrame(x), y.astype(int)


def lines(rng: np.random.Generator, n: int) -> Rows:
    """Draw boards of nine cells of two levels; 95% of the rows tell whether a line of three cells is full."""
    x = rng.integers(0, 2, (n, 3, 3))
    diagonals = x[:, range(3), range(3)], x[:, range(3), range(2, -1, -1)]
    full = x.all(axis=1).any(axis=1) | x.all(axis=2).any(axis=1) | diagonals[0].all(axis=1) | diagonals[1].all(axis=1)
    cells = pd.DataFrame(x.reshape(n, 9)).astype(str).astype(pd.CategoricalDtype(["0", "1"]))
    return cells, (full ^ (rng.random(n) < 0.05)).astype(int)


def classes(rng: np.random.Generator, n: int) -> Rows:
    """Draw twenty classes, with ten informative columns of four levels."""
    return levels(rng, n, rng.dirichlet(np.ones(4), (10, 20)))[:2]


def cancer(rng: np.random.Generator, n: int) -> Rows:
    """Return the rows of the breast cancer table in random order."""
    X, y = datasets.load_breast_cancer(return_X_y=True, as_frame=True)
    order = rng.permutation(len(y))
    return X.iloc[order].reset_index(drop=True), y.to_numpy()[order]


def of_levels(simulate: Callable[..., Any]) -> Simulate:
    return lambda rng, n: simulate(rng, n)[:2]


LOSSES: dict[str, tuple[Simulate, int, int]] = {
    "noise, 100 rows of 40 levels": (of_levels(noise), 100, 20),
    "noise, 60 rows of 60 numbers": (partial(numbers, columns=60, distance=0.0), 60, 20),
    "20 classes of 8 rows": (classes, 160, 6),
    "cancer, 60 rows": (cancer, 60, 20),
    "naive Bayes true, levels, 300 rows": (of_levels(naive_bayes), 300, 10),
    "naive Bayes true, numbers, 300 rows": (numbers, 300, 10),
}
"""Tables, the number of rows to learn from, and the number of data sets."""
GAINS: dict[str, tuple[Simulate, int, int]] = {
    f"{name}, {n:,} rows": (simulate, n, sets)
    for name, simulate, sizes in (
        ("naive Bayes true, levels", of_levels(naive_bayes), ((300, 100), (3_000, 20))),
        ("naive Bayes true, numbers", numbers, ((300, 100), (3_000, 20))),
        ("a rule of three numbers", rule, ((300, 100),)),
        ("eight lines of three levels", lines, ((1_000, 100),)),
    )
    for n, sets in sizes
}
SAMPLES, DRAWS = {name: (60, 150) for name in ("vote", "pima", "credit-g", "tic-tac-toe", "vehicle")}, 8
"""Numbers of rows of public tables to learn from, and of samples."""


def compare(train: Rows, test: Rows) -> dict[str, float]:
    """Return stated and true losses and seconds of the default without and with experts, and the gain."""
    found = {}
    for kind, experts in (("default", ()), ("experts", "auto")):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            nb = bnb.WeightedNB(experts=experts).fit(*train)
            log_proba = nb.predict_log_proba(test[0])
        known = np.isin(test[1], nb.classes_)
        true = -log_proba[known, np.searchsorted(nb.classes_, test[1][known])].mean()
        found |= {kind: true, f"{kind}_stated": nb.expected_log_loss_, f"{kind}_s": time.perf_counter() - start}
    return found | {"gain": nb.gain_.gain, "lower": nb.gain_.lower, "share": nb.gain_.share}


def judge(simulate: Simulate, n: int, seed: int) -> dict[str, float]:
    X, y = simulate(np.random.default_rng([seed, n]), n + NEW_ROWS)
    return compare((X.iloc[:n], y[:n]), (X.iloc[n:], y[n:]))


def judge_sample(name: str, n: int, seed: int) -> dict[str, float]:
    table = SOURCES[name].read()
    split = StratifiedShuffleSplit(1, train_size=n, test_size=min(2_000, len(table.y) - n), random_state=seed)
    ((train, test),) = split.split(table.y, table.y)
    X = table.X.mask(table.X == "?")
    return compare(*((X.iloc[rows].reset_index(drop=True), table.y[rows]) for rows in (train, test)))


def measure(only: str | None, n_jobs: int) -> Iterator[dict[str, Any]]:
    """Yield one dict per table: means over data sets, and in how many of them the gain's lower end is above 0."""
    tasks = [("loss", name, judge, task) for name, task in LOSSES.items()]
    tasks += [("gain", name, judge, task) for name, task in GAINS.items()]
    for name, sizes in SAMPLES.items():
        if not absent(name):
            tasks += [("samples", f"{name}, {n} rows", judge_sample, (name, n, DRAWS)) for n in sizes]
    for kind, name, function, (source, n, sets) in tasks:
        if only in (None, kind):
            found = pd.DataFrame(Parallel(n_jobs=n_jobs)(delayed(function)(source, n, s) for s in range(sets)))
            difference, row = found["experts"] - found["default"], found.mean().to_dict()
            clear = int((found["lower"] > 0).sum())
            yield {"kind": kind, "table": name, "sets": sets, **row, "se": difference.sem(), "lower_above_0": clear}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.experts", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="folder of experts.csv; default: none")
    parser.add_argument("--only", choices=("loss", "gain", "samples"))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for row in measure(options.only, options.jobs):
        rows.append(row)
        print({key: round(v, 4) if isinstance(v, float) else v for key, v in row.items()}, flush=True)
    if options.out is not None:
        pd.DataFrame(rows).to_csv(options.out / "experts.csv", index=False, float_format="%.4f")


if __name__ == "__main__":
    main()
