"""Seconds and peak memory of p-values of full conformal sets."""

from __future__ import annotations

import time
from collections.abc import Iterator

import bayesnb as bnb
from benchmarks import data
from benchmarks.timing import Row, printed

MEMORY = """
import bayesnb, benchmarks.data

def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024

X, y = benchmarks.data.categorical({n} + 1_000)
nb = bayesnb.CategoricalNB().fit(X[:{n}], y[:{n}])
predictor = bayesnb.conformal(nb, X[:{n}], y[:{n}])
predictor.p_values(X[{n}:][:128])
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = status("VmRSS")
predictor.p_values(X[{n}:])
print(status("VmHWM") - before)
"""


def sets(n: int) -> Iterator[Row]:
    """Time p-values of 1,000 rows with four labels against n rows."""
    X, y = data.categorical(n + 1_000)
    predictor = bnb.conformal(bnb.CategoricalNB().fit(X[:n], y[:n]), X[:n], y[:n])
    predictor.p_values(X[n : n + 128])
    start = time.perf_counter()
    predictor.p_values(X[n:])
    seconds = time.perf_counter() - start
    yield Row(f"p-values of 1,000 rows against {n:,} x 30, against 10 s", seconds, 10.0, 1.0)
    peak = printed(MEMORY.format(n=n), repeats=1)  # needs Linux
    yield Row("  peak memory beyond what was held, against 150 MB", peak, 150.0, 1.0, unit="MB")
