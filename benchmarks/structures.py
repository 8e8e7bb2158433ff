"""Timings of structures against bayesnb's CategoricalNB."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import bayesnb as bnb
from benchmarks import data
from benchmarks.tables import FOLDER, arff
from benchmarks.timing import Row, in_turn


def structures(n: int) -> Iterator[Row]:
    """Time structures on simulated levels, and on mushroom if BAYESNB_DATA names a folder with its file."""
    yield from _beside_naive(f"{n:,} x 40 of five levels", *data.categorical(n, columns=40, levels=5, classes=3))
    if (mushroom := FOLDER / "mushroom.arff").exists():
        table, y = arff(mushroom)
        X = table.to_numpy(object)
        yield from _beside_naive(f"mushroom, {X.shape[0]:,} x {X.shape[1]}", X, y)
    yield from _contexts(n)
    yield from _trees(n // 10)


def _contexts(n: int) -> Iterator[Row]:
    """Time four parents per column, of four levels each: tables of 2,500 cells."""
    X, y = data.categorical(n, columns=40, levels=4, classes=2)
    naive, network = bnb.CategoricalNB(), bnb.KDB(k=4, max_features=None)
    name = f"KDB of four parents, {n:,} x 40 of four levels: fit, against CategoricalNB"
    yield in_turn(name, lambda: network.fit(X, y), lambda: naive.fit(X, y), 6.0)
    yield in_turn("  predict", lambda: network.predict(X), lambda: naive.predict(X), 8.0)


def _trees(n: int) -> Iterator[Row]:
    X, y = data.categorical(n, columns=30, levels=4, classes=2)
    trees = bnb.TreeAveragedNB().fit(X, y)
    start = time.perf_counter()
    trees.predict(X)
    seconds = time.perf_counter() - start
    yield Row(f"all trees, {n:,} x 30, 2 classes: predict, compiling, against 20 s", seconds, 20.0, 1.0)


def _beside_naive(name: str, X: np.ndarray, y: np.ndarray) -> Iterator[Row]:
    naive, tree, average = bnb.CategoricalNB(), bnb.TAN(), bnb.AODE()
    n_features = X.shape[1]
    yield in_turn(f"TAN, {name}: fit, against CategoricalNB", lambda: tree.fit(X, y), lambda: naive.fit(X, y), np.inf)
    yield in_turn("  predict", lambda: tree.predict(X), lambda: naive.predict(X), np.inf)
    yield in_turn(f"AODE, {name}: fit", lambda: average.fit(X, y), lambda: naive.fit(X, y), np.inf)
    yield in_turn(
        "  predict, against as often as features", lambda: average.predict(X), lambda: naive.predict(X), n_features
    )
