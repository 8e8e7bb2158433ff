"""Timings of binned densities, averaged over all binnings, against counts of levels."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import bayesnb as bnb
from benchmarks import data
from benchmarks.timing import Row, in_turn


def densities(n: int) -> Iterator[Row]:
    """Time numbers in 64 bins against CategoricalNB on the same bins; then a posterior of many columns."""
    X, y = data.gaussian(n)
    ours = bnb.BinnedNB().fit(X, y)
    codes = np.stack([np.searchsorted(e, x) for e, x in zip(ours.edges_.values(), X.T, strict=True)], axis=1)
    plain = bnb.CategoricalNB().fit(codes, y)
    name = f"binned {n:,} x {X.shape[1]}: fit, against CategoricalNB of the cells"
    yield in_turn(name, lambda: ours.fit(X, y), lambda: plain.fit(codes, y), 3.0)
    yield in_turn("  predict", lambda: ours.predict(X), lambda: plain.predict(codes), 1.2)
    del X, codes

    columns = max(100, n // 100)
    rng = np.random.default_rng(0)
    wide, label = rng.normal(size=(1_000, columns)), np.arange(1_000) % 2
    many = bnb.BinnedNB().fit(wide, label)
    start = time.perf_counter()
    many.predict(wide[:10])
    seconds = time.perf_counter() - start
    yield Row(f"  posterior of {columns:,} columns x 64 cells x 2 classes, compiling, against 10 s", seconds, 10.0, 1.0)
