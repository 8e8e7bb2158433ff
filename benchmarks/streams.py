"""Timings of streams of batches, from files and memory, against scikit-learn's `partial_fit` on the same batches."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn.naive_bayes as sk

import bayesnb as bnb
from bayesnb.streaming import read_table
from benchmarks import data
from benchmarks.timing import Row, in_turn

LEVELS, CLASSES = 8, 4


def streams(n: int) -> Iterator[Row]:
    """Time n rows of 20 columns; both times include reading, except for rows `in memory`."""
    kinds: dict[str, tuple[Any, Callable[[], Any], np.ndarray, np.ndarray]] = {
        "categorical": (
            bnb.CategoricalNB(),
            lambda: sk.CategoricalNB(min_categories=LEVELS),
            *data.categorical(n, 20, LEVELS, CLASSES),
        ),
        "Gaussian": (bnb.GaussianNB(), sk.GaussianNB, *data.gaussian(n, 20, CLASSES)),
    }
    with tempfile.TemporaryDirectory() as folder:
        for kind, (nb, peer, X, y) in kinds.items():
            frame = pd.DataFrame(X.round(4), columns=[f"x{j}" for j in range(X.shape[1])]).assign(label=y)
            parquet, csv = Path(folder, f"{kind}.parquet"), Path(folder, f"{kind}.csv")
            frame.to_parquet(parquet)
            frame.to_csv(csv, index=False)
            batches = list(read_table(parquet, "label"))
            sources: dict[str, Callable[[], Iterable[Any]]] = {
                "in memory": partial(list, batches),
                "Parquet": partial(read_table, parquet, "label"),
                "CSV": partial(read_table, csv, "label"),
            }
            for name, source in sources.items():
                row = in_turn(
                    f"fit_stream, {kind} {n:,} x 20, {name}",
                    partial(_fit, nb, source),
                    partial(_partial_fit, peer, source),
                    0.45 if (kind, name) == ("categorical", "CSV") else 0.5,
                    repeats=5,
                )
                yield row
                print(f"  {n / row.ours:,.0f} rows a second; scikit-learn {n / row.theirs:,.0f}")
            whole = partial(_fit, nb, sources["CSV"])
            yield in_turn("  CSV: fit_stream, against reading alone", whole, partial(_drain, csv), np.inf, repeats=3)


def _fit(nb: Any, source: Callable[[], Iterable[Any]]) -> None:
    bnb.fit_stream(nb, source(), progress=False)


def _partial_fit(make: Callable[[], Any], source: Callable[[], Iterable[Any]]) -> None:
    nb = make()
    for X, y in source():
        nb.partial_fit(X, y, classes=range(CLASSES))


def _drain(path: Path) -> None:
    for _ in read_table(path, "label"):
        pass
