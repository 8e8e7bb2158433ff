"""Seconds of first calls, which include compilation: `python -m benchmarks.cold`.

A new process makes 27 calls on the wine table (178 x 13, three classes), each twice, and then the same calls on the
breast cancer table (569 x 30, two classes). It runs once without a cache on disk, and once with the cache that an
earlier process has filled.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax.monitoring

from benchmarks.timing import Row

COMPILED = "backend_compile_duration"


@dataclass
class Compilations:
    """Return the number of compilations of this process so far, and their seconds."""

    count: int = 0
    seconds: float = 0.0

    def note(self, event: str, seconds: float, **_: Any) -> None:
        if event.endswith(COMPILED):
            self.count, self.seconds = self.count + 1, self.seconds + seconds


def calls(X: Any, y: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Return name and call of each analysis of a table of numbers, some on the columns cut at their medians."""
    import bayesnb as bnb

    levels = X.apply(lambda column: (column > column.median()).map({True: "high", False: "low"}))
    nb = bnb.GaussianNB().fit(X, y)
    yield "GaussianNB().fit", lambda: bnb.GaussianNB().fit(X, y)
    yield "  predict_proba", lambda: nb.predict_proba(X)
    yield "  predict_interval", lambda: bnb.predict_interval(nb, X[:50])
    yield "  parameter_table", lambda: bnb.parameter_table(nb)
    yield "  loo", lambda: bnb.loo(nb, X, y)
    yield "  compare_estimates", lambda: bnb.compare_estimates(nb, X[::2], y[::2], X[1::2], y[1::2])
    yield "  conformal", lambda: bnb.conformal(nb, X, y).predict_set(X[:20])
    yield "  explain", lambda: bnb.explain(nb, X[:3])
    yield "  posterior_draws", lambda: bnb.posterior_draws(nb, draws=200)
    yield "  to_arviz", lambda: bnb.to_arviz(nb, X, y, draws=100)
    yield "MixedNB().fit", lambda: bnb.MixedNB().fit(X, y)
    weighted = bnb.WeightedNB(bnb.MixedNB())
    yield "WeightedNB(MixedNB()).fit", lambda: weighted.fit(X, y)
    yield "  predict_proba", lambda: weighted.predict_proba(X)
    categorical = bnb.CategoricalNB().fit(levels, y)
    yield "CategoricalNB().fit", lambda: bnb.CategoricalNB().fit(levels, y)
    yield "  predict_proba", lambda: categorical.predict_proba(levels)
    yield "  tune_alpha", lambda: bnb.tune_alpha(categorical, levels, y)
    yield "  check_independence", lambda: bnb.check_independence(categorical, levels, y)
    yield "WeightedNB(CategoricalNB()).fit", lambda: bnb.WeightedNB(bnb.CategoricalNB()).fit(levels, y)
    yield 'TAN("evidence").fit', lambda: bnb.TAN("evidence").fit(levels, y)
    for nb_of_arcs in (bnb.KDB(), bnb.AODE(), bnb.TreeAveragedNB()):
        yield f"{type(nb_of_arcs).__name__}().fit", lambda nb=nb_of_arcs: nb.fit(levels, y)
        yield "  predict_proba", lambda nb=nb_of_arcs: nb.predict_proba(levels)
    yield "WeightedNB(KDB()).fit", lambda: bnb.WeightedNB(bnb.KDB()).fit(levels, y)
    nuts = {"draws": 200, "warmup": 200, "chains": 2, "progress": False}
    yield "run_nuts", lambda: bnb.run_nuts(categorical, **nuts)


def measure() -> list[dict[str, Any]]:
    """Return seconds of first and second calls, and compilations of first calls, for each analysis and table."""
    from sklearn.datasets import load_breast_cancer, load_wine

    warnings.simplefilter("ignore")
    done = Compilations()
    jax.monitoring.register_event_duration_secs_listener(done.note)
    rows = []
    for table, load in (("wine", load_wine), ("cancer", load_breast_cancer)):
        analyses = calls(*load(return_X_y=True, as_frame=True))
        while True:
            # What the generator fits for later calls counts for the call that it is for.
            before, start = done.count, time.perf_counter()
            name, call = next(analyses, (None, None))
            if call is None:
                break
            call()
            first, compiled = time.perf_counter() - start, done.count - before
            start = time.perf_counter()
            call()
            row = {"table": table, "name": name, "first": first, "second": time.perf_counter() - start}
            rows.append(row | {"compilations": compiled})
    return rows


def run(cache: str | None = None) -> list[dict[str, Any]]:
    """Return the result of `measure` in a new process, with JAX's cache in the folder `cache`, or without one."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    if cache is not None:
        environment |= {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    command = [sys.executable, "-m", "benchmarks.cold", "--json"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    rows: list[dict[str, Any]] = json.loads(output)
    return rows


def run_with_cache() -> list[dict[str, Any]]:
    """Return the result of `measure` in a new process, with a cache that an earlier process has filled."""
    with tempfile.TemporaryDirectory() as cache:
        run(cache)
        return run(cache)


def first_calls() -> Iterator[Row]:
    """Compare sums of first calls with the targets of this project."""
    plain, cached = run(), run_with_cache()

    def total(rows: list[dict[str, Any]], table: str, key: str = "first") -> float:
        return sum(row[key] for row in rows if row["table"] == table)

    yield Row("27 first calls on wine, against 18 s", total(plain, "wine"), 18.0, 1.0)
    yield Row("  with the cache on disk, against 8 s", total(cached, "wine"), 8.0, 1.0)
    yield Row("  on breast cancer, same process, against 6 s", total(plain, "cancer"), 6.0, 1.0)
    yield Row("  second calls on wine, against the first", total(plain, "wine", "second"), total(plain, "wine"), 1.0)
    nuts = next(row for row in plain if row["name"] == "run_nuts")
    yield Row("  run_nuts, 2 x 200 draws, against 8 s", nuts["first"], 8.0, 1.0)
    yield Row("  the same again, against 2 s", nuts["second"], 2.0, 1.0)


def main() -> None:
    """Print seconds of first and second calls, medians of several processes, and their sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="measure this process, and print rows as JSON")
    parser.add_argument("--runs", type=int, default=3, help="processes without a cache (default: %(default)s)")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(measure()))
        return
    plain = [run() for _ in range(options.runs)]
    cached = run_with_cache()
    print(f"{'':<34}{'first':>8}{'second':>9}{'compiled':>10}{'first, cache on disk':>22}")
    sums: dict[str, list[float]] = {}
    for row, from_cache, *others in zip(plain[0], cached, *plain[1:], strict=True):
        first, second = (statistics.median(r[key] for r in (row, *others)) for key in ("first", "second"))
        values = [first, second, row["compilations"], from_cache["first"]]
        sums[row["table"]] = [a + b for a, b in zip(sums.get(row["table"], [0.0] * 4), values, strict=True)]
        _print(f"{row['table']}: {row['name']}", values)
    for table, values in sums.items():
        _print(f"sum of {table}", values)


def _print(name: str, values: list[float]) -> None:
    first, second, compilations, cached = values
    print(f"{name:<40}{first:>7.2f} s{second:>7.3f} s{compilations:>8.0f}{cached:>16.2f} s")


if __name__ == "__main__":
    main()
