"""Latent classes of binary items: Gibbs sampling, and StepMix with a bootstrap where it is installed."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import bayesnb as bnb
from benchmarks.timing import Row

_CLASSES, _ITEMS, _BOOTSTRAPS = 3, 12, 200
_MEASURED = 2


def latent(n: int) -> Iterator[Row]:
    """Time 4 x 1,000 draws of n rows, of ten times the counts, and 200 bootstraps of StepMix on n / 10 rows."""
    X = _items(n)
    mixture = _mixture(X)
    _draw(mixture, X, None)
    seconds = _seconds(lambda: _draw(mixture, X, None))
    yield Row(f"latent classes {n:,} x {_ITEMS}: 4 x 1,000 draws, against 20 s", seconds, 20.0, 1.0)
    patterns, count = np.unique(X, axis=0, return_counts=True)
    few = _seconds(lambda: _draw(mixture, patterns, count))
    many = _seconds(lambda: _draw(mixture, patterns, 10 * count))
    yield Row("  ten times the rows of each pattern", many, few, 1.2)
    if find_spec("stepmix") is None:
        print("  stepmix is not installed: no row for it")
        return
    few_rows = X[: n // 10]
    ours = _seconds(lambda: _draw(_mixture(few_rows), few_rows, None))
    yield Row(f"  {n // 10:,} rows: EM and draws, StepMix and 200 bootstraps", ours, _stepmix(few_rows), math.inf)


def _items(n: int) -> np.ndarray:
    """(n, 12) binary items of rows of three classes."""
    rng = np.random.default_rng(0)
    z = rng.choice(_CLASSES, n, p=[0.5, 0.3, 0.2])
    return (rng.random((n, _ITEMS)) < rng.beta(1.0, 1.0, (_CLASSES, _ITEMS))[z]).astype(float)


def _mixture(X: np.ndarray) -> Any:
    return bnb.NaiveBayesMixture(_CLASSES, estimator=bnb.BernoulliNB(), n_init=1).fit(X)


def _draw(mixture: Any, X: np.ndarray, count: np.ndarray | None) -> Any:
    return bnb.sample_latent(mixture, X, draws=1000, chains=4, sample_weight=count, progress=False)


def _stepmix(X: np.ndarray) -> float:
    """Seconds of one start of EM and of 200 bootstraps, of which two are run."""
    from stepmix.stepmix import StepMix

    options = {"n_components": _CLASSES, "measurement": "binary", "n_init": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's deprecations
        model = StepMix(**options, verbose=0, progress_bar=0)
        fit = _seconds(lambda: model.fit(X))
        some = _seconds(lambda: model.bootstrap(X, n_repetitions=_MEASURED, progress_bar=False))
    return fit + some * _BOOTSTRAPS / _MEASURED


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
