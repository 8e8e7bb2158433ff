"""False alarms and power of `check_drift` on columns of numbers, beside the tests of SciPy.

python -m benchmarks.drift         # false alarms of stationary batches
python -m benchmarks.drift --power # power beside Fisher's, Pearson's, Mann and Whitney's and Kolmogorov and Smirnov's
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import bayesnb as bnb

COLUMNS, BATCHES, LEVEL = 20, 400, 0.05
SIZES = ((60, 30), (60, 1_000), (1_000, 30), (5_000, 200), (5_000, 1_000))
"""Numbers of training rows and of rows of a batch."""
BATCH_SIZES, TRAINING_ROWS = (200, 1_000, 5_000), 5_000

Draw = Callable[[np.random.Generator, Any], np.ndarray]
"""Function of a generator and a shape that draws numbers."""


def normal(mean: float = 0.0, sd: float = 1.0) -> Draw:
    """Draw normal numbers."""
    return lambda rng, size: rng.normal(mean, sd, size)


def replaced(draw: Draw, share: float, other: Draw) -> Draw:
    """Draw from `draw`, of which a random share is drawn from `other`."""
    return lambda rng, size: np.where(rng.random(size) < share, other(rng, size), draw(rng, size))


def constant(value: float) -> Draw:
    """Draw equal numbers."""
    return lambda rng, size: np.full(size, value)


def lognormal(rng: np.random.Generator, size: Any) -> np.ndarray:
    """Draw log-normal numbers with σ = 1."""
    return rng.lognormal(0.0, 1.0, size)


def poisson(mean: float) -> Draw:
    """Draw Poisson counts."""
    return lambda rng, size: rng.poisson(mean, size).astype(float)


def ages(rng: np.random.Generator, size: Any) -> np.ndarray:
    """Draw whole numbers with a long tail, of mean 40."""
    return np.floor(rng.gamma(8.0, 5.0, size))


def two_peaks(rng: np.random.Generator, size: Any) -> np.ndarray:
    """Draw from two normal distributions, with mean 0 and variance 1 together."""
    return rng.choice([-0.9, 0.9], size) + rng.normal(0.0, np.sqrt(1 - 0.81), size)


def changed(draw: Draw, change: Callable[[np.ndarray], np.ndarray]) -> Draw:
    """Draw numbers that a function has changed."""
    return lambda rng, size: change(draw(rng, size))


STATIONARY: dict[str, Draw] = {
    "normal": normal(),
    "uniform": lambda rng, size: rng.random(size),
    "exponential": lambda rng, size: rng.exponential(size=size),
    "log-normal, σ = 1": lognormal,
    "Cauchy": lambda rng, size: rng.standard_cauchy(size),
    "97% zeros": replaced(constant(0.0), 0.03, lognormal),
    "92% zeros": replaced(constant(0.0), 0.08, lognormal),
    "half zeros": replaced(constant(0.0), 0.5, normal()),
    "1% indicator": replaced(constant(0.0), 0.01, constant(1.0)),
    "1% at both ends": lambda rng, size: rng.choice([-1.0, 0.0, 1.0], size, p=[0.01, 0.98, 0.01]),
    "Poisson, mean 3": poisson(3.0),
    "overdispersed, mean .1": lambda rng, size: rng.poisson(rng.exponential(0.1, size)).astype(float),
    "whole numbers": ages,
    "five values": lambda rng, size: rng.choice([0.0, 1, 2, 5, 10], size, p=[0.6, 0.25, 0.1, 0.03, 0.02]),
}
"""Distributions of numbers that stay as they are."""

sensor, gain = normal(20.0, 2.0), replaced(constant(0.0), 0.1, lognormal)
CHANGED: dict[str, tuple[Draw, Draw]] = {
    "mean + .2 sd": (normal(), normal(0.2)),
    "sd 1 → 1.25": (normal(), normal(0.0, 1.25)),
    "sd 1 → .6": (normal(), normal(0.0, 0.6)),
    "two peaks": (normal(), two_peaks),
    "10% moved by 2 sd": (normal(), replaced(normal(), 0.1, normal(2.0))),
    "log-normal × 1.2": (lognormal, changed(lognormal, lambda x: 1.2 * x)),
    "stuck sensor": (sensor, constant(20.3)),
    "10% stuck": (sensor, replaced(sensor, 0.1, constant(20.3))),
    "rounded": (sensor, changed(sensor, np.round)),
    "cut at the 95% quantile": (normal(), changed(normal(), lambda x: np.minimum(x, 1.645))),
    "1% outliers × 10": (normal(), replaced(normal(), 0.01, normal(0.0, 10.0))),
    "1% sentinels": (normal(), replaced(normal(), 0.01, constant(-999.0))),
    "constant 7 → 8": (constant(7.0), constant(8.0)),
    "10% positive → none": (gain, constant(0.0)),
    "10% positive → 5%": (gain, replaced(constant(0.0), 0.05, lognormal)),
    "1% indicator → 3%": (replaced(constant(0.0), 0.01, constant(1.0)), replaced(constant(0.0), 0.03, constant(1.0))),
    "zeros in the middle, 30 → 40%": (replaced(normal(), 0.3, constant(0.0)), replaced(normal(), 0.4, constant(0.0))),
    "Poisson, mean 3 → 3.3": (poisson(3.0), poisson(3.3)),
    "Poisson, mean .1 → .15": (poisson(0.1), poisson(0.15)),
    "whole numbers + 1": (ages, changed(ages, lambda x: x + 1)),
}
"""Distributions of numbers before and after a change."""


def p_values(before: np.ndarray, after: np.ndarray, *, cells: bool = True) -> pd.Series:
    """Return p of `check_drift` for each column; without `cells` by a model that has only moments."""
    nb = bnb.GaussianNB().fit(before, np.arange(len(before)) % 2)
    if not cells:
        nb = nb.with_counts(nb.fitted_.counted._replace(cells=None))
    return bnb.check_drift(nb, after)["p"].iloc[:-1]


def false_alarms(
    name: str, n_rows: int, batch_rows: int, n_batches: int = BATCHES, *, cells: bool = True
) -> dict[str, Any]:
    """Return shares of significant columns, and of batches with some q ≤ .05, of stationary batches of 20 columns."""
    rng, p = np.random.default_rng([n_batches, n_rows, batch_rows]), list[np.ndarray]()
    for n in np.diff([*range(0, n_batches, 20), n_batches]):
        before, after = (STATIONARY[name](rng, (rows, n * COLUMNS)) for rows in (n_rows, batch_rows))
        p.extend(p_values(before, after, cells=cells).fillna(1.0).to_numpy().reshape(-1, COLUMNS))
    share = {f"p ≤ {level:g}": np.mean(np.array(p) <= level) for level in (0.05, 0.001)}
    alarms = stats.false_discovery_control(p, axis=1).min(axis=1) <= LEVEL
    return {"numbers": name, "rows": n_rows, "batch": batch_rows, **share, "some q ≤ .05": alarms.mean()}


def scipy_p_values(before: np.ndarray, after: np.ndarray) -> dict[str, float]:
    """Return p-values of SciPy's tests of one column.

    Fisher's test is that of the most frequent value, if 5% of the rows have it; Pearson's that of the deciles, or of
    the values if there are at most ten.
    """
    mode = stats.mode(before).mode
    table = [[np.sum(x == mode), np.sum(x != mode)] for x in (before, after)]
    distinct = np.unique(before)
    cuts = distinct if len(distinct) <= 10 else np.unique(np.quantile(before, np.arange(1, 10) / 10))
    cells = [np.bincount(np.searchsorted(cuts, x), minlength=len(cuts) + 1) for x in (before, after)]
    counts = np.array(cells)[:, np.sum(cells, axis=0) > 0]
    return {
        "Fisher": stats.fisher_exact(table).pvalue if table[0][0] >= 0.05 * len(before) else 1.0,
        "χ²": stats.chi2_contingency(counts, correction=False).pvalue if counts.shape[1] > 1 else 1.0,
        "Mann–Whitney": stats.mannwhitneyu(before, after, method="asymptotic").pvalue,
        "Kolmogorov–Smirnov": stats.ks_2samp(before, after, method="asymp").pvalue,
    }


def power(name: str, batch_rows: int, n_batches: int = BATCHES, n_rows: int = TRAINING_ROWS) -> dict[str, Any]:
    """Return the share of batches of one changed column with p ≤ .05, by `check_drift` and by SciPy's tests."""
    rng = np.random.default_rng([n_batches, batch_rows])
    before, after = (draw(rng, (n, n_batches)) for draw, n in zip(CHANGED[name], (n_rows, batch_rows), strict=True))
    p = pd.DataFrame([scipy_p_values(*columns) for columns in zip(before.T, after.T, strict=True)])
    p.insert(0, "check_drift", p_values(before, after).fillna(1.0).to_numpy())
    return {"change": name, "batch": batch_rows, **(p <= LEVEL).mean()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift", description=__doc__.partition("\n")[0])
    parser.add_argument("--power", action="store_true", help="print the power, not false alarms")
    parser.add_argument("--moments", action="store_true", help="of models that have only moments of numbers")
    parser.add_argument("--batches", type=int, default=BATCHES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for name in CHANGED if options.power else STATIONARY:
        for size in BATCH_SIZES if options.power else SIZES:
            if options.power:
                rows.append(power(name, size, options.batches))
            else:
                rows.append(false_alarms(name, *size, options.batches, cells=not options.moments))
            print(pd.DataFrame(rows[-1:]).round(4).to_string(header=len(rows) == 1, index=False), flush=True)


if __name__ == "__main__":
    main()
