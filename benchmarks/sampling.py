"""Timings of NUTS: growth with rows, comparison with a plain program, and one alpha for a million parameters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import numpyro
from numpyro import distributions as dist
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS

import bayesnb as bnb
from benchmarks import data
from benchmarks.timing import Row

_COLUMNS, _LEVELS, _CLASSES, _DRAWS, _CHAINS = 10, 5, 3, 500, 2


def sampling(n: int) -> Iterator[Row]:
    """Time whole calls, including compilation."""
    few, many = _fitted(1_000), _fitted(n)
    bnb.run_nuts(few, draws=2, warmup=2, chains=_CHAINS, progress=False)
    short = _seconds(lambda: _ours(few))[0]
    long = _seconds(lambda: _ours(many))[0]
    yield Row(f"NUTS on statistics, {n:,} rows against 1,000", long, short, 1.3)

    rows = 20_000
    X, y = data.categorical(rows, _COLUMNS, _LEVELS, _CLASSES)
    seconds, idata = _seconds(lambda: _ours(_fitted(rows)))
    plain_seconds, plain = _seconds(lambda: _plain(X, y))
    theta = idata["posterior"]["theta"].to_numpy()
    ours, theirs = seconds / _smallest(theta), plain_seconds / _smallest(plain)
    yield Row(f"  an effective draw, {rows:,} rows, against plates", ours, theirs, 0.15)

    words, label = data.text(n // 10)
    text = bnb.MultinomialNB(alpha=0.5).fit(words, label)
    seconds, _ = _seconds(lambda: bnb.run_nuts(text, "symmetric", draws=1000, chains=4, features=[], progress=False))
    parameters = text.statistics_.blocks[0].count.size
    yield Row(f"  alpha of {parameters:,} parameters, 4 x 1,000, against 12 s", seconds, 12.0, 1.0)


def _fitted(n: int) -> Any:
    return bnb.CategoricalNB().fit(*data.categorical(n, _COLUMNS, _LEVELS, _CLASSES))


def _ours(nb: Any) -> Any:
    return bnb.run_nuts(nb, draws=_DRAWS, warmup=_DRAWS, chains=_CHAINS, progress=False)


def _plain(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Draw θ, (chains, draws, …), from a NumPyro program with plates of rows, in JAX's default precision."""

    def program() -> None:
        class_prob = numpyro.sample("class_prob", dist.Dirichlet(np.ones(_CLASSES)))
        with numpyro.plate("classes", _CLASSES, dim=-2), numpyro.plate("columns", _COLUMNS, dim=-1):
            theta = numpyro.sample("theta", dist.Dirichlet(np.ones(_LEVELS)))
        with numpyro.plate("rows", len(y), dim=-2):
            label = numpyro.sample("label", dist.Categorical(class_prob), obs=y[:, None])
            with numpyro.plate("cells", _COLUMNS, dim=-1):
                numpyro.sample("x", dist.Categorical(theta[label[:, 0]]), obs=X)

    mcmc = MCMC(
        NUTS(program),
        num_warmup=_DRAWS,
        num_samples=_DRAWS,
        num_chains=_CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0))
    return np.asarray(mcmc.get_samples(group_by_chain=True)["theta"])


def _smallest(draws: np.ndarray) -> float:
    return float(np.min(effective_sample_size(draws)))


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result
