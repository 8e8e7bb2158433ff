"""Time of each part of fits and predictions, measured separately: `python -m benchmarks.profile`."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from numpyro.infer import MCMC

import bayesnb as bnb
from bayesnb._util.precision import float64
from bayesnb.encoding import check_labels, row_pieces
from bayesnb.fitted import counting, scoring
from bayesnb.streaming import read_arrays
from benchmarks import data

Part = tuple[str, Callable[[], Any]]


def fit_parts(nb: Any, X: Any, y: np.ndarray) -> Iterator[Part]:
    """Time the parts of a fit; the host makes a block while the kernels count the previous one."""
    nb.fit(X, y)
    table = nb.fitted_.table(X)
    encoding, rows = nb.encoding_, nb.encoding_.rows(table)
    label, weight = np.asarray(check_labels(y, len(y), "")[1]), np.ones(len(y))
    yield "fit", lambda: nb.fit(X, y)
    yield "  labels", lambda: check_labels(y, len(y), "")
    yield "  X: checked, levels found", lambda: encoding.learn(table)
    yield "  pieces and counting", lambda: counting.count_rows(encoding, rows, label, weight)
    pieces = lambda: counting.counting_pieces(rows, label, weight)  # noqa: E731
    yield "    of which pieces, on the host", lambda: deque(pieces(), 0)


def predict_parts(nb: Any, X: Any, estimate: Any) -> Iterator[Part]:
    """Time the parts of a prediction; the host makes a block while the kernels score the previous one."""
    table, model = nb.fitted_.table(X), nb.fitted_.posterior
    rows = tuple(r if estimate == "predictive" else r.linear_rows() for r in nb.encoding_.rows(table))
    n = table.n_rows
    with jax.enable_x64(True):
        _, x, _ = next(row_pieces(rows, n))
    yield f"predict, {estimate}", lambda: nb.predict(X, estimate=estimate)
    yield "  X: checked, coded", lambda: nb.encoding_.rows(table)
    yield "  tables of log probabilities", lambda: float64(scoring.read(nb.encoding_, model, estimate).prepare)(x)
    yield (
        "  all rows, with the tables",
        lambda: scoring.score(scoring.read(nb.encoding_, model, estimate), rows, n, scoring.most_probable),
    )
    yield "    of which pieces, on the host", lambda: deque(row_pieces(rows, n), 0)


def nuts(words: Any) -> None:
    """Time one call, because a second call compiles nothing."""
    sampling = [0.0]
    run = MCMC.run

    def timed(self: Any, *args: Any, **kwargs: Any) -> None:
        start = time.perf_counter()
        run(self, *args, **kwargs)
        jax.block_until_ready(self.get_samples())
        sampling[0] = time.perf_counter() - start

    MCMC.run = timed
    seconds: list[float] = []
    for _ in range(2):
        start = time.perf_counter()
        bnb.run_nuts(words, "symmetric", draws=1000, chains=4, features=[], progress=False)
        seconds.append(time.perf_counter() - start)
        _say("run_nuts over alpha" if len(seconds) == 1 else "  once more", 1e3 * seconds[-1])
        _say("  of which NumPyro", 1e3 * sampling[0])
    MCMC.run = run


def main() -> None:
    X, y = data.categorical(1_000_000)
    _print("categorical, 1,000,000 x 30 int64", fit_parts(bnb.CategoricalNB(), X, y))
    _print("", predict_parts(bnb.CategoricalNB().fit(X, y), X, "predictive"))
    _print("the same, int8", fit_parts(bnb.CategoricalNB(), X.astype(np.int8), y))
    X, y = data.gaussian(1_000_000)
    _print("Gaussian, 1,000,000 x 30", fit_parts(bnb.GaussianNB(), X, y))
    for estimate in ("mean", "predictive"):
        _print("", predict_parts(bnb.GaussianNB().fit(X, y), X, estimate))
    batches = list(read_arrays(X, y))
    _print("  as a stream", [("fit_stream", lambda: bnb.fit_stream(bnb.GaussianNB(), batches, progress=False))])
    X, y = data.text(100_000)
    for make in (bnb.MultinomialNB, bnb.BernoulliNB):
        _print(f"{make.__name__}, {X.nnz:,} entries", fit_parts(make(), X, y))
        _print("", predict_parts(make().fit(X, y), X, "mean"))
    nuts(bnb.MultinomialNB(alpha=0.5).fit(X, y))


def _print(title: str, parts: Any) -> None:
    if title:
        print(title)
    for name, call in parts:
        call()
        seconds = []
        for _ in range(9):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
        _say(name, 1e3 * statistics.median(seconds))


def _say(name: str, milliseconds: float) -> None:
    print(f"  {name:<40} {milliseconds:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
