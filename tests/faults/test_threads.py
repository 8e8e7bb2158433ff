"""Threads, processes and reused buffers do not change results."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import bayesnb as bnb
from tests.estimators.cases import CASES
from tests.raises import refused

THREADS = 8
LABELS = np.array(["ash", "elm", "oak"])
TABLE = CASES["CategoricalNB"].X, CASES["CategoricalNB"].y


def levels(n: int, width: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 3 + seed % 4, (n, width))


def numbers(n: int, width: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, width)).round(3)


def labels(n: int, seed: int) -> np.ndarray:
    return LABELS[np.random.default_rng(100 + seed).integers(0, 3, n)]


def frame(n: int, width: int, seed: int) -> pd.DataFrame:
    left, right = levels(n, width, seed), numbers(n, width, seed)
    return pd.DataFrame(
        {f"a{j}": left[:, j].astype(str) for j in range(width)} | {f"b{j}": right[:, j] for j in range(width)}
    )


# One a thread, each of another shape, so that every thread compiles kernels of its own while the others do.
TASKS: list[tuple[Callable[[], Any], Any]] = [
    (bnb.CategoricalNB, levels(300, 3, 0)),
    (bnb.CategoricalNB, levels(1_100, 5, 1)),
    (bnb.GaussianNB, numbers(500, 4, 2)),
    (bnb.GaussianNB, numbers(70, 2, 3).astype(np.float32)),
    (bnb.MultinomialNB, sp.csr_array(levels(200, 6, 4))),
    (bnb.PoissonNB, levels(90, 3, 5)),
    (bnb.MixedNB, frame(120, 2, 6)),
    (lambda: bnb.NetworkNB({1: 0, 2: [0, 1]}), levels(400, 3, 7)),
]


def fitted(i: int) -> Any:
    make, X = TASKS[i]
    return make().fit(X, labels(X.shape[0], i))


def together(function: Callable[[int], Any], n: int = THREADS) -> list[Any]:
    """Results of n threads that start at once."""
    barrier = threading.Barrier(n)

    def one(i: int) -> Any:
        barrier.wait(timeout=60)
        return function(i)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(one, range(n)))


def assert_equal(found: Any, expected: Any) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.slow("many fits at a time")
@pytest.mark.parametrize("i", [0, 2, pytest.param(6, marks=pytest.mark.slow)])
def test_threads_that_share_an_estimator(i):
    nb, fresh, X = fitted(i), fitted(i), TASKS[i][1]
    expected = nb.predict_proba(X), nb.predict_log_proba(X), nb.predict(X), nb.log_evidence_
    jax.clear_caches()  # what is computed once is computed in several threads at once

    def ask(_: int) -> Any:
        return fresh.predict_proba(X), fresh.predict_log_proba(X), fresh.predict(X), fresh.log_evidence_

    for found in together(ask):
        assert_equal(found, expected)


def test_the_configuration_of_every_thread_is_its_own():
    X, y = TABLE

    def use(i: int) -> tuple[Any, ...]:
        with jax.enable_x64(i % 2 == 0):
            before = jax.config.jax_enable_x64
            nb = bnb.CategoricalNB().fit(X, y)
            proba = nb.predict_proba(X)
            batches = seen_from_a_stream(X, y)
            bnb.fit_stream(bnb.CategoricalNB(), batches, progress=False)
            return before, jax.config.jax_enable_x64, proba, jax.numpy.ones(1).dtype

    def seen_from_a_stream(X, y):
        outside = jax.config.jax_enable_x64
        for start in range(0, 60, 20):
            yield X[start : start + 20], y[start : start + 20]
            assert jax.config.jax_enable_x64 == outside

    expected = bnb.CategoricalNB().fit(X, y).predict_proba(X)
    process = jax.config.jax_enable_x64
    for i, (before, after, proba, dtype) in enumerate(together(use)):
        assert before == after == (i % 2 == 0)
        assert dtype == (np.float64 if i % 2 == 0 else np.float32)
        assert proba.dtype == np.float64
        np.testing.assert_array_equal(proba, expected)
    assert jax.config.jax_enable_x64 == process


# -- buffers -------------------------------------------------------------------------------------

N, SIZE = 200, 50
WORDS = np.random.default_rng(9).integers(0, 4, (N, 6)) * (np.random.default_rng(8).random((N, 6)) < 0.5)
WORDS[:, 0] = 1 + WORDS[:, 0]


def dense(kind: str) -> np.ndarray:
    if kind == "objects":
        return np.array(["u", "v", "w", None, 7], object)[levels(N, 3, 2)]
    return {"levels": levels(N, 3, 1), "reals": numbers(N, 3, 1), "counts": WORDS.astype(float)}[kind]


def refilled(X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, spoilt: Any):
    """Yield the same three arrays for every batch, overwritten before and after."""
    rows, label, weights = np.empty((SIZE, X.shape[1]), X.dtype), np.empty(SIZE, y.dtype), np.empty(SIZE)
    for start in range(0, N, SIZE):
        piece = slice(start, start + SIZE)
        rows[:], label[:] = X[piece], y[piece]
        if weight is not None:
            weights[:] = weight[piece]
        yield (rows, label) if weight is None else (rows, label, weights)
        rows[:], label[:], weights[:] = spoilt, y[0], 1e9


@pytest.mark.slow("other variants compile kernels of their own", but="CategoricalNB")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("make", "kind", "spoilt"),
    [
        (bnb.CategoricalNB, "levels", 99),
        (bnb.CategoricalNB, "objects", "spoilt"),
        (bnb.GaussianNB, "reals", np.nan),
        (bnb.PoissonNB, "counts", 1e6),
        (bnb.BernoulliNB, "counts", 1.0),
        (bnb.MultinomialNB, "counts", 1e6),
    ],
)
def test_buffers_that_are_used_again(make, kind, spoilt, weighted, tmp_path):
    X, y = dense(kind), labels(N, 3)
    weight = np.random.default_rng(7).integers(1, 4, N).astype(float) if weighted else None
    parts = (
        (X[s : s + SIZE], y[s : s + SIZE], *([] if weight is None else [weight[s : s + SIZE]]))
        for s in range(0, N, SIZE)
    )
    expected = bnb.fit_stream(make(), parts, progress=False)
    nb = bnb.fit_stream(make(), refilled(X, y, weight, spoilt), progress=False, checkpoint=tmp_path / "c", every=SIZE)
    assert nb.encoding_.classes.values == expected.encoding_.classes.values
    assert_equal(jax.tree.leaves(nb.statistics_), jax.tree.leaves(expected.statistics_))
    assert nb.class_count_.sum() == (N if weight is None else weight.sum())


class Slow:
    """Rows that are handed over only when another thread has done its part."""

    def __init__(self, X: np.ndarray) -> None:
        self.X, self.asked, self.go = X, threading.Event(), threading.Event()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self.asked.set()
        assert self.go.wait(60)
        return np.asarray(self.X, dtype)


@pytest.mark.parametrize("method", ["partial_fit", "forget", "first"])
def test_a_call_that_would_undo_another_thread_s_is_refused(method):
    """Two threads that read the same counts and each write their own sum: the rows of one were lost."""
    X, y = TABLE
    nb = bnb.CategoricalNB() if method == "first" else bnb.CategoricalNB().fit(X, y)
    slow = Slow(X)
    with ThreadPoolExecutor(1) as pool:
        if method == "forget":
            late = pool.submit(nb.forget, slow, y)
        else:
            late = pool.submit(nb.partial_fit, slow, y, np.unique(y))
        assert slow.asked.wait(60)
        nb.partial_fit(X, y, np.unique(y))
        total = nb.class_count_.sum()
        slow.go.set()
        refused(r"another thread.*changed nothing.*lock", late.result, error=RuntimeError)
    assert nb.class_count_.sum() == total == (60 if method == "first" else 120)
    assert nb.partial_fit(X, y).class_count_.sum() == total + 60


def test_decay_is_refused_too(monkeypatch):
    X, y = TABLE
    nb = bnb.CategoricalNB().fit(X, y)
    scale = type(nb.statistics_).scale

    def meanwhile(statistics, factor):
        nb.partial_fit(X, y)  # as another thread would, after decay has read the statistics
        return scale(statistics, factor)

    with monkeypatch.context() as patched:
        patched.setattr(type(nb.statistics_), "scale", meanwhile)
        refused("another thread", nb.decay, 0.5, error=RuntimeError)
    assert nb.class_count_.sum() == 120
    assert nb.decay(0.5).class_count_.sum() == 60
