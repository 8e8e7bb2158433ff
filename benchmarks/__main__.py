"""Time bayesnb and scikit-learn in alternating runs of whole public calls, with validation, in one process."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import sklearn
import sklearn.naive_bayes as sk
from sklearn.datasets import load_iris

import bayesnb as bnb
from benchmarks import data
from benchmarks.choices import choices
from benchmarks.cluster import cluster
from benchmarks.cold import first_calls
from benchmarks.default import defaults
from benchmarks.densities import densities
from benchmarks.latent import latent
from benchmarks.sampling import sampling
from benchmarks.sets import sets
from benchmarks.simulation import simulation
from benchmarks.streams import streams
from benchmarks.structures import structures
from benchmarks.timing import Row, in_turn, printed, processes

FIRST = """
import time, sklearn.datasets, benchmarks.data
from {package} import {estimator}
X, y = {table}
start = time.perf_counter()
{estimator}().fit(X, y).predict(X)
print(time.perf_counter() - start)
"""

COMPARE = """
import subprocess, sys, time
start = time.perf_counter()
subprocess.run([sys.executable, "-m", "bayesnb", "compare"], check=True, capture_output=True)
print(time.perf_counter() - start)
"""

MEMORY = """
import bayesnb, benchmarks.data

def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024

X, y = benchmarks.data.{kind}({n})
small = X[:1000].copy()
bayesnb.{estimator}().fit(small, y[:1000]).predict(small)
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = status("VmRSS")
bayesnb.{estimator}().fit(X, y).predict(X)
print(status("VmHWM") - before)
"""


def dense(n: int) -> Iterator[Row]:
    """Time dense input against scikit-learn's classifiers of the same name, and against reading the input once."""
    X, y = data.categorical(n)
    ours, theirs = bnb.CategoricalNB(), sk.CategoricalNB()
    yield in_turn(f"categorical {n:,} x 30: fit", lambda: ours.fit(X, y), lambda: theirs.fit(X, y), 0.06)
    yield in_turn("  predict", lambda: ours.predict(X), lambda: theirs.predict(X), 0.12)
    yield in_turn("  fit, against one np.sum of the input", lambda: ours.fit(X, y), lambda: np.sum(X), 4.0)
    small = X.astype(np.int8)
    frame = pd.DataFrame(small).astype("category")
    for name, rows in (("int8", small), ("pandas categories", frame)):
        fit = partial(bnb.CategoricalNB().fit, rows, y)
        yield in_turn(f"  of {name}: fit, against one np.sum of int8", fit, lambda: np.sum(small), 10.0)
        yield in_turn(f"  of {name}: fit, against int64", fit, lambda: ours.fit(X, y), 1.0)

    X, y = data.gaussian(n)
    normal, peer = bnb.GaussianNB(), sk.GaussianNB()
    yield in_turn(f"Gaussian {n:,} x 30: fit", lambda: normal.fit(X, y), lambda: peer.fit(X, y), 0.18)
    yield in_turn("  predict, mean", lambda: normal.predict(X, estimate="mean"), lambda: peer.predict(X), 0.2)
    yield in_turn("  predict, Student-t", lambda: normal.predict(X), lambda: peer.predict(X), 0.4)
    yield in_turn("  fit, against one np.sum of the input", lambda: normal.fit(X, y), lambda: np.sum(X), 4.5)

    counts = np.random.default_rng(0).negative_binomial(1.5, 0.3, X.shape).astype(float)
    mixed, poisson = bnb.NegativeBinomialNB(), bnb.PoissonNB()
    name = f"negative binomial counts {n:,} x 30, against PoissonNB"
    yield in_turn(f"{name}: fit", lambda: mixed.fit(counts, y), lambda: poisson.fit(counts, y), 3.0)
    yield in_turn("  predict", lambda: mixed.predict(counts), lambda: poisson.predict(counts), np.inf)


def sparse(n: int) -> Iterator[Row]:
    """Time bags of words in CSR: many words of similar frequency, and fewer words of very different frequency."""
    yield from _words(*data.text(n))
    yield from _words(*data.text(6 * n // 10, 40_000, 12, exponent=1.3, length=115.0))


def _words(X: Any, y: np.ndarray) -> Iterator[Row]:
    words, peer = bnb.MultinomialNB(), sk.MultinomialNB()
    name = f"multinomial {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} entries"
    yield in_turn(f"{name}: fit", lambda: words.fit(X, y), lambda: peer.fit(X, y), 0.5)
    yield in_turn(
        "  predict_log_proba, mean",
        lambda: words.predict_log_proba(X, estimate="mean"),
        lambda: peer.predict_log_proba(X),
        0.5,
    )
    yield in_turn(
        "  predict_log_proba, exact predictive",
        lambda: words.predict_log_proba(X),
        lambda: peer.predict_log_proba(X),
        1.0,
    )
    yield in_turn("  fit, against one np.sum of the entries", lambda: words.fit(X, y), lambda: np.sum(X.data), np.inf)
    present, other = bnb.BernoulliNB(), sk.BernoulliNB()
    yield in_turn("Bernoulli, the same: fit", lambda: present.fit(X, y), lambda: other.fit(X, y), 0.7)
    yield in_turn("  predict", lambda: present.predict(X), lambda: other.predict(X), 0.6)


def uncertainty() -> Iterator[Row]:
    """Time intervals against probabilities, both of bayesnb."""
    X, y = data.messages(5_574)
    words = bnb.MultinomialNB().fit(X, y)
    yield in_turn(
        f"{X.shape[0]:,} messages: predict_interval, against predict_proba",
        lambda: bnb.predict_interval(words, X),
        lambda: words.predict_proba(X),
        4.0,
        repeats=15,
    )


def whole(n: int) -> Iterator[Row]:
    """Time imports and first calls in new processes, and measure peak memory."""
    yield processes(
        "import, against import jax, sklearn.base", "from bayesnb import GaussianNB", "import jax, sklearn.base", 1.15
    )
    tables = {
        "GaussianNB": "sklearn.datasets.load_iris(return_X_y=True)",
        "CategoricalNB": f"benchmarks.data.categorical({n})",
    }
    for estimator, table in tables.items():
        first, peer = (
            printed(FIRST.format(package=package, estimator=estimator, table=table))
            for package in ("bayesnb", "sklearn.naive_bayes")
        )
        yield Row(f"first {estimator}().fit and predict, against scikit-learn's", first, peer, np.inf)
    X, y = load_iris(return_X_y=True)
    ours, theirs = bnb.GaussianNB(), sk.GaussianNB()
    yield in_turn(
        "iris: later fit and predict, against scikit-learn's",
        lambda: ours.fit(X, y).predict(X),
        lambda: theirs.fit(X, y).predict(X),
        np.inf,
    )
    yield Row("python -m bayesnb compare, against 8 s", printed(COMPARE), 8.0, 1.0)
    for kind, estimator in (("categorical", "CategoricalNB"), ("gaussian", "GaussianNB")):  # needs Linux
        peak = printed(MEMORY.format(kind=kind, estimator=estimator, n=n))
        yield Row(f"peak memory beyond {kind} input, against 150 MB", peak, 150.0, 1.0, unit="MB")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the rows; the targets are for 1")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/latest.json"))
    options = parser.parse_args()
    n = int(1_000_000 * options.scale)
    print(f"{'median of alternating runs':<46} {'bayesnb':>9} {'peer':>9}     {'ratio':>7}  target")
    rows = []
    large = first_calls(), defaults(), dense(n), sparse(n // 10), uncertainty(), streams(n), cluster(n)
    small = (
        defaults(),
        choices(n),
        densities(n),
        sets(n // 10),
        structures(n // 10),
        sampling(n),
        latent(n),
        simulation(),
        whole(n),
    )
    for part in large + small:
        for row in part:
            print(row, flush=True)
            rows.append({**asdict(row), "ratio": row.ratio, "target": row.target if row.target < np.inf else None})
    machine = {
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "scikit-learn": sklearn.__version__,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
    print(f"written to {options.json}")


if __name__ == "__main__":
    main()
