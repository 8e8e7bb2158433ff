"""Counts of species in regions: complete, partial and no pooling, and coverage of the rates of regions.

python -m benchmarks.regions    # 2 × 10 simulated tables of 80 sites, 12 species and 10 regions; five minutes
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

import bayesnb as bnb

SITES, SPECIES, REGIONS, CLASSES = 80, 12, 10, 2
NEW_SITES, NEW_REGIONS = 100, 20
"""New sites of each region, and new regions, each with as many."""
SPREADS, SEEDS = (0.5, 0.0), 10
"""Standard deviations of the log rates of regions, and number of tables for each."""
PROB = 0.9

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Counts, classes and regions of sites."""


def simulate(rng: np.random.Generator, sd: float) -> tuple[np.ndarray, Callable[[np.ndarray], Rows]]:
    """Return the rates (region, class, species), and a function that draws sites of given regions.

    Log rates of species are normal with sd 1, differ between classes with sd .35, and between regions with sd `sd`.
    """
    log_rate = rng.normal(0.0, 1.0, SPECIES) + rng.normal(0.0, 0.35, (CLASSES, SPECIES))
    rate = np.exp(log_rate + sd * rng.standard_normal((REGIONS + NEW_REGIONS, CLASSES, SPECIES)))

    def draw(region: np.ndarray) -> Rows:
        label = rng.integers(0, CLASSES, len(region))
        return rng.poisson(rate[region, label]).astype(float), label, region

    return rate, draw


def compare(sd: float, seed: int) -> dict[str, float]:
    """Return log losses on new sites, coverage of the rates of regions, and seconds of `run_nuts`, for one table."""
    rate, draw = simulate(np.random.default_rng(seed), sd)
    X, y, region = draw(np.arange(SITES) % REGIONS)
    Z, label, where = draw(np.repeat(np.arange(REGIONS), NEW_SITES))
    Z_new, label_new, where_new = draw(np.repeat(np.arange(REGIONS, REGIONS + NEW_REGIONS), NEW_SITES))
    nb = bnb.PoissonNB().fit(X, y)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        data = bnb.run_nuts(nb, X=X, y=y, groups=region, seed=seed, progress=False)
    seconds = time.perf_counter() - start
    alone = np.zeros((len(Z), CLASSES))
    for r in range(REGIONS):
        of_region = bnb.PoissonNB().partial_fit(X[region == r], y[region == r], range(CLASSES))
        alone[where == r] = of_region.predict_proba(Z[where == r])

    def log_loss(prob: np.ndarray, label: np.ndarray) -> float:
        return float(-np.log(prob[np.arange(len(label)), label]).mean())

    drawn = data["posterior"]["rate"].sel(group=[str(r) for r in range(REGIONS)])
    lower, upper = np.quantile(drawn.to_numpy(), [(1 - PROB) / 2, (1 + PROB) / 2], axis=(0, 1))
    return {
        "complete": log_loss(nb.predict_proba(Z), label),
        "partial": log_loss(nb.predict_proba(Z, draws=data, groups=where), label),
        "none": log_loss(alone, label),
        "complete, new": log_loss(nb.predict_proba(Z_new), label_new),
        "partial, new": log_loss(nb.predict_proba(Z_new, draws=data, groups=where_new), label_new),
        "coverage": ((lower < rate[:REGIONS]) & (rate[:REGIONS] < upper)).mean(),
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regions", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    for sd in SPREADS:
        found = pd.DataFrame([compare(sd, seed) for seed in range(options.seeds)])
        first = found["seconds"].iloc[0]
        print(
            f"sd of log rates {sd}, {len(found)} tables; first call {first:.1f} s, least {found['seconds'].min():.1f} s"
        )
        print(pd.DataFrame({"mean": found.mean(), "se": found.sem()}).drop("seconds").round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
