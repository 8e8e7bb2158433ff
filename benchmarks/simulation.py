"""Simulation studies on `bayesnb.kernels` beside a loop over scikit-learn: `python -m benchmarks.simulation`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from bayesnb import kernels
from benchmarks.timing import Row, printed
from examples.simulation_study import N_TRAINING, DataSet, count, prior, scikit_learn_losses, simulate, study

_DATA_SETS, _LOOP = 10_000, 200

FIRST = """
import time, jax
jax.config.update("jax_enable_compilation_cache", False)
from examples.simulation_study import study
keys = jax.random.split(jax.random.key(0), 10_000).block_until_ready()
start = time.perf_counter()
study(keys).block_until_ready()
print(time.perf_counter() - start)
"""


@jax.jit
@jax.vmap
def fit_and_score(data: DataSet) -> jax.Array:
    """(n, 50, 3) log joint probabilities of the test rows of n given data sets."""
    return kernels.log_joint(kernels.update(prior(), count(data)), data.x[N_TRAINING:])


def simulation() -> Iterator[Row]:
    """Time 10,000 data sets of 12 + 50 rows against limits, and against a loop over 200 of them, extrapolated."""
    keys = jax.random.split(jax.random.key(0), _DATA_SETS)
    data = jax.block_until_ready(jax.jit(jax.vmap(simulate))(keys))
    few = jax.tree.map(lambda field: np.asarray(field)[:_LOOP], data)
    loop = _least_seconds(lambda: scikit_learn_losses(few)) * _DATA_SETS / _LOOP
    whole = _least_seconds(lambda: study(keys).block_until_ready())
    alone = _least_seconds(lambda: fit_and_score(data).block_until_ready())
    name = f"{_DATA_SETS:,} data sets, simulated, 3 estimates"
    yield Row(f"{name}: first call, against 6 s", printed(FIRST), 6.0, 1.0)
    yield Row("  later calls, against 1 s", whole, 1.0, 1.0)
    yield Row("  later calls, against a loop over scikit-learn", whole, loop, 1 / 20)
    yield Row("  count, update and log_joint, against the loop", alone, loop, 1 / 100)


def _least_seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """Least seconds of repeated calls, after a first call."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    for row in simulation():
        print(row, flush=True)
