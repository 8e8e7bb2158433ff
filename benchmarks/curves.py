"""Growth of the time of fit and predict_proba in rows, features, levels and classes: the figure of docs/scaling.md.

python -m benchmarks.curves takes about five minutes on two cores; it writes scaling.csv and scaling.svg.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

import bayesnb as bnb

Data = tuple[Any, np.ndarray]


class Curve(NamedTuple):
    """Curve with one varied quantity and the other quantities fixed."""

    estimator: str
    varied: str
    held: str
    sizes: tuple[int, ...]
    make: Callable[[int], Data]


def labels(rows: int, classes: int) -> np.ndarray:
    """Draw labels in which every class occurs."""
    return np.arange(rows) % classes


def codes(rows: int, features: int, levels: int, classes: int) -> Data:
    dtype = np.min_scalar_type(-levels)
    return np.random.default_rng(0).integers(0, levels, (rows, features), dtype=dtype), labels(rows, classes)


def reals(rows: int, features: int, classes: int) -> Data:
    return np.random.default_rng(0).normal(size=(rows, features)), labels(rows, classes)


def words(rows: int, features: int, classes: int, a_row: int = 50) -> Data:
    """Draw sparse counts with the same number of words in each row, for any vocabulary."""
    column = np.random.default_rng(0).integers(0, features, rows * a_row)
    X = sp.csr_array((np.ones(rows * a_row), column, np.arange(0, rows * a_row + 1, a_row)), (rows, features))
    X.sum_duplicates()
    return X, labels(rows, classes)


def powers(first: int, last: int) -> tuple[int, ...]:
    """Return sizes from 10**first to 10**last, two per decade."""
    return tuple(round(10 ** (i / 2)) for i in range(2 * first, 2 * last + 1))


CURVES = (
    Curve("CategoricalNB", "rows", "20 features, 8 levels, 4 classes", powers(3, 7), lambda n: codes(n, 20, 8, 4)),
    Curve("GaussianNB", "rows", "20 features, 4 classes", powers(3, 6), lambda n: reals(n, 20, 4)),
    Curve("MultinomialNB", "rows", "50 words a row of 10,000, 4 classes", powers(3, 6), lambda n: words(n, 10**4, 4)),
    Curve(
        "CategoricalNB", "features", "1,000 rows, 8 levels, 4 classes", powers(1, 5), lambda f: codes(10**3, f, 8, 4)
    ),
    Curve("GaussianNB", "features", "1,000 rows, 4 classes", powers(1, 5), lambda f: reals(10**3, f, 4)),
    Curve(
        "MultinomialNB", "features", "10,000 rows of 50 words, 4 classes", powers(2, 6), lambda f: words(10**4, f, 4)
    ),
    Curve(
        "CategoricalNB",
        "levels",
        "300,000 rows, 4 features, 4 classes",
        powers(1, 5),
        lambda k: codes(300_000, 4, k, 4),
    ),
    Curve(
        "CategoricalNB",
        "classes",
        "100,000 rows, 20 features, 8 levels",
        powers(1, 3),
        lambda c: codes(10**5, 20, 8, c),
    ),
    Curve("GaussianNB", "classes", "100,000 rows, 20 features", powers(1, 3), lambda c: reals(10**5, 20, c)),
)


def seconds(call: Callable[[], Any], at_least: float = 0.3) -> float:
    """Return the shortest time of a call, after one call to compile, repeated for `at_least` seconds."""
    call()
    best, begin = np.inf, time.perf_counter()
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start)
        if now - begin > at_least:
            return best


def measure(curve: Curve) -> Iterator[dict[str, Any]]:
    for size in curve.sizes:
        X, y = curve.make(size)
        nb = getattr(bnb, curve.estimator)()
        fit = seconds(partial(nb.fit, X, y))
        scored = X[: min(len(y), 1_000_000)]
        predict = seconds(partial(nb.predict_proba, scored)) * len(y) / scored.shape[0]
        yield {
            "estimator": curve.estimator,
            "varied": curve.varied,
            "size": size,
            "held": curve.held,
            "fit": fit,
            "predict_proba": predict,
            "statistics_bytes": sum(leaf.nbytes for leaf in _leaves(nb.statistics_)),
        }


def slopes(table: pd.DataFrame) -> pd.DataFrame:
    """Return exponents of growth, d log seconds / d log size, over the last decade and a half of each curve."""
    rows = []
    for (estimator, varied, held), part in table.groupby(["estimator", "varied", "held"], sort=False):
        last = part.tail(4)
        row = {"estimator": estimator, "varied": varied, "held": held}
        for name in ("fit", "predict_proba"):
            row[f"{name}_slope"] = np.polyfit(np.log(last["size"]), np.log(last[name]), 1)[0]
        rows.append(row)
    return pd.DataFrame(rows)


def figure(table: pd.DataFrame, path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "bayesnb"
    import matplotlib.pyplot as plt

    varied = list(dict.fromkeys(table["varied"]))
    fig, axes = plt.subplots(2, len(varied), figsize=(3.4 * len(varied), 6.0), sharey="row", layout="constrained")
    for column, what in enumerate(varied):
        for row, call in enumerate(("fit", "predict_proba")):
            ax = axes[row, column]
            for estimator, part in table[table["varied"] == what].groupby("estimator", sort=False):
                ax.plot(part["size"], part[call], marker="o", ms=3, label=estimator)
            low, high = ax.get_xlim()
            middle = table[(table["varied"] == what)].groupby("estimator").tail(1)[call].max()
            top = table.loc[table["varied"] == what, "size"].max()
            ax.plot([top / 1e3, top], [middle / 1e3, middle], color="0.7", lw=1, ls="--", label="linear")
            ax.set(xscale="log", yscale="log", xlabel=what, xlim=(max(low, 1), high))
            ax.grid(alpha=0.3)
            if column == 0:
                ax.set_ylabel(f"{call}, seconds")
            if row == 0:
                ax.legend(fontsize="x-small", frameon=False)
    fig.savefig(path, metadata={"Date": None})


def _leaves(statistics: Any) -> list[np.ndarray]:
    import jax

    return jax.tree.leaves(statistics)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curves", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/_generated"), help="their folder")
    out = parser.parse_args().out
    rows = []
    for curve in CURVES:
        for row in measure(curve):
            rows.append(row)
            print(
                "{estimator:<14} {size:>9,} {varied:<9} fit {fit:9.5f} s   predict {predict_proba:9.5f} s".format(**row)
            )
    table = pd.DataFrame(rows)
    table.to_csv(out / "scaling.csv", index=False, float_format="%.6g")
    figure(table, out / "scaling.svg")
    print(slopes(table).to_string(index=False, float_format="{:.2f}".format))


if __name__ == "__main__":
    main()
