"""Stated and true log loss over simulated families of data: docs/_generated/stated_losses.csv and .svg.

python -m benchmarks.stated_losses --out docs/_generated
python -m benchmarks.stated_losses --classes  # the table of docs/uncertainty.md, by rows a class
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayesnb as bnb

SIZES, SETS, NEW_ROWS = (30, 100, 300, 1_000, 3_000), 40, 3_000
Sample = tuple[pd.DataFrame, np.ndarray, np.ndarray]
"""Rows, labels, and the log loss of each row under the true class probabilities."""


CLASSES = {(2, 15): 12, (2, 150): 6, (5, 8): 8, (5, 24): 6, (20, 8): 4, (20, 24): 3}
"""Number of data sets, by number of classes and rows a class."""


def levels(rng: np.random.Generator, n: int, theta: np.ndarray, copies: int = 1) -> Sample:
    """Draw rows of C equally frequent classes, with level probabilities θ (F, C, K)."""
    y = rng.integers(0, theta.shape[1], n)
    columns = [(rng.random(n)[:, None] > np.cumsum(each, axis=1)[y]).sum(axis=1) for each in theta]
    log_joint = sum(np.log(each[:, x]).T for each, x in zip(theta, columns, strict=True))
    loss = np.logaddexp.reduce(log_joint, axis=1) - log_joint[np.arange(n), y]
    codes = pd.DataFrame(np.column_stack([*columns] * copies)).astype(str)
    return codes.astype(pd.CategoricalDtype([str(k) for k in range(theta.shape[-1])])), y, loss


def noise(rng: np.random.Generator, n: int) -> Sample:
    """Draw forty columns of eight levels, independent of the class."""
    return levels(rng, n, np.full((40, 2, 8), 1 / 8))


def few_of_many(rng: np.random.Generator, n: int) -> Sample:
    """Draw forty columns, of which five are informative."""
    theta = np.full((40, 2, 8), 1 / 8)
    theta[:5] = rng.dirichlet(np.ones(8), (5, 2))
    return levels(rng, n, theta)


def naive_bayes(rng: np.random.Generator, n: int) -> Sample:
    """Draw ten informative columns, independent given the class."""
    return levels(rng, n, rng.dirichlet(np.ones(4), (10, 2)))


def copied(rng: np.random.Generator, n: int) -> Sample:
    """Draw four informative columns, each copied five times."""
    return levels(rng, n, rng.dirichlet(np.ones(4), (4, 2)), copies=5)


FAMILIES: dict[str, Callable[[np.random.Generator, int], Sample]] = {
    "noise": noise,
    "5 of 40 informative": few_of_many,
    "naive Bayes true": naive_bayes,
    "copied columns": copied,
}


def stated_by_loo(nb: Any, X: pd.DataFrame, y: np.ndarray) -> float:
    return -bnb.loo(nb, X, y).elpd / len(y)


def stated_by_halves(nb: Any, X: pd.DataFrame, y: np.ndarray) -> float:
    return float(nb.expected_log_loss_) if nb.weights_ is not None else np.nan


STATEMENTS: dict[str, tuple[Callable[[], Any], Callable[..., float]]] = {
    "loo of CategoricalNB()": (lambda: bnb.CategoricalNB(), stated_by_loo),
    'loo of TAN("evidence")': (lambda: bnb.TAN("evidence"), stated_by_loo),
    "loo of AODE()": (lambda: bnb.AODE(), stated_by_loo),
    "expected_log_loss_ of WeightedNB(CategoricalNB())": (
        lambda: bnb.WeightedNB(bnb.CategoricalNB()),
        stated_by_halves,
    ),
    "expected_log_loss_ of WeightedNB()": (lambda: bnb.WeightedNB(), stated_by_halves),
}
"""Classifiers, and functions that state their loss on new rows."""


def measure(
    family: str, statement: str, n_rows: int, n_sets: int = SETS, new_rows: int = NEW_ROWS
) -> Iterator[dict[str, Any]]:
    """Return stated and true loss of a classifier on several data sets, without those that have no statement."""
    make, state = STATEMENTS[statement]
    for seed in range(n_sets):
        X, y, loss = FAMILIES[family](np.random.default_rng([seed, n_rows]), n_rows + new_rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # too few rows to weigh
            nb = make().fit(X[:n_rows], y[:n_rows])
        stated = state(nb, X[:n_rows], y[:n_rows])
        log_proba = nb.predict_log_proba(X[n_rows:])
        true = -float(log_proba[np.arange(new_rows), np.searchsorted(nb.classes_, y[n_rows:])].mean())
        # Some samples are easier than others: the true probabilities tell how much of the difference that is.
        chance = loss[:n_rows].mean() - loss[n_rows:].mean()
        about = dict(family=family, statement=statement, rows=n_rows, seed=seed)
        if np.isfinite(stated):
            yield about | dict(stated=stated, true=true, chance=chance)


def measure_by_classes(n_classes: int, rows_a_class: int, n_sets: int, new_rows: int = NEW_ROWS) -> dict[str, Any]:
    """Return mean stated and true loss of `WeightedNB` over data sets of ten columns of four levels."""
    losses = []
    for seed in range(n_sets):
        rng = np.random.default_rng([seed, n_classes, rows_a_class])
        theta, n_rows = rng.dirichlet(np.ones(4), (10, n_classes)), n_classes * rows_a_class
        X, y, loss = levels(rng, n_rows + new_rows, theta)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # too few rows to weigh
            nb = bnb.WeightedNB().fit(X[:n_rows], y[:n_rows])
        log_proba = nb.predict_log_proba(X[n_rows:])
        known = np.isin(y[n_rows:], nb.classes_)
        true = -log_proba[known, np.searchsorted(nb.classes_, y[n_rows:][known])].mean()
        losses.append((nb.expected_log_loss_, true, loss[:n_rows].mean() - loss[n_rows:].mean()))
    stated, true, chance = np.array([found for found in losses if np.isfinite(found[0])]).T
    difference = stated - true - chance
    about = dict(classes=n_classes, rows_a_class=rows_a_class, sets=len(true), stated=stated.mean(), true=true.mean())
    return about | dict(difference=difference.mean(), se=np.std(difference, ddof=1) / np.sqrt(len(true)))


def summarize(sets: pd.DataFrame) -> pd.DataFrame:
    """Return mean stated and true loss, and the mean difference with its standard error over data sets.

    The same difference of the true class probabilities, `chance`, is subtracted.
    """
    sets = sets.assign(difference=sets["stated"] - sets["true"] - sets["chance"])
    groups = sets.groupby(["family", "statement", "rows"], sort=False)
    means = groups[["stated", "true", "difference"]].mean()
    return means.assign(se=groups["difference"].sem(), sets=groups.size()).reset_index()


def figure(summary: pd.DataFrame, path: Path) -> None:
    """Draw stated minus true loss against the number of rows, one panel per statement."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "bayesnb"
    import matplotlib.pyplot as plt

    statements = list(summary["statement"].unique())
    fig, axes = plt.subplots(
        1, len(statements), figsize=(3.2 * len(statements), 3.4), sharey=True, layout="constrained"
    )
    colours = dict(zip(summary["family"].unique(), ("#888888", "#D55E00", "#0072B2", "#009E73"), strict=False))
    for ax, statement in zip(np.atleast_1d(axes), statements, strict=True):
        for family, part in summary[summary["statement"] == statement].groupby("family", sort=False):
            ax.errorbar(
                part["rows"], part["difference"], 2 * part["se"], color=colours[family], marker="o", ms=4, label=family
            )
        ax.axhline(0, color="black", lw=0.8)
        ax.set(xscale="log", xlabel="rows", title=statement.replace(" of ", "\nof "))
        ax.title.set_fontsize("small")
        ax.spines[["top", "right"]].set_visible(False)
    np.atleast_1d(axes)[0].set_ylabel("stated minus true log loss, nats")
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stated_losses", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="folder of stated_losses.csv and stated_losses.svg; default: none")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--classes", action="store_true", help="print losses by number of classes and rows a class")
    options = parser.parse_args()
    if options.classes:
        for (n_classes, rows_a_class), n_sets in CLASSES.items():
            print(pd.DataFrame([measure_by_classes(n_classes, rows_a_class, n_sets)]).round(3).to_string(), flush=True)
        return
    sets: list[dict[str, Any]] = []
    for statement in STATEMENTS:
        for family in FAMILIES:
            for n_rows in options.sizes:
                found = list(measure(family, statement, n_rows, SETS if n_rows < 1_000 else SETS // 5))
                sets += found
                if found:
                    print(summarize(pd.DataFrame(found)).round(3).to_string(header=False, index=False), flush=True)
    summary = summarize(pd.DataFrame(sets))
    if options.out is not None:
        summary.to_csv(options.out / "stated_losses.csv", index=False, float_format="%.4f")
        figure(summary, options.out / "stated_losses.svg")


if __name__ == "__main__":
    main()
