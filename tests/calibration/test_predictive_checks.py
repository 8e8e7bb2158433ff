"""Rates at which posterior predictive checks flag tables whose model is true, and tables whose model is wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesnb as bnb

pytestmark = pytest.mark.calibration
Sample = tuple[Any, Any, np.ndarray]


def draw_labels(rng, n_rows, n_classes):
    """Labels in which every class occurs."""
    y = np.zeros(n_rows, int)
    while len(np.unique(y)) < n_classes:
        y = rng.integers(0, n_classes, n_rows)
    return y


def bernoulli(rng, n_rows, n_columns, n_classes=2) -> Sample:
    y = draw_labels(rng, n_rows, n_classes)
    theta = rng.beta(0.3, 0.3, (n_classes, n_columns))
    return bnb.BernoulliNB(alpha=0.3), (rng.random((n_rows, n_columns)) < theta[y]).astype(int), y


def levels(rng, n_rows, n_columns, n_classes=2, missing=0.3) -> Sample:
    y = draw_labels(rng, n_rows, n_classes)
    theta = rng.dirichlet(np.ones(3), (n_classes, n_columns))
    X = (rng.random((n_rows, n_columns, 1)) > theta[y].cumsum(axis=2)[:, :, :2]).sum(axis=2)
    cells = pd.DataFrame(np.array(["low", "mid", "high"], dtype=object)[X])
    nb = bnb.CategoricalNB(alpha=1.0, categories=[["low", "mid", "high"]] * n_columns)
    return nb, cells.mask(rng.random(X.shape) < missing, None), y


def poisson(rng, n_rows, n_columns, n_classes=2, shape=np.inf) -> Sample:
    """Counts of a Poisson distribution, or of a negative binomial one of finite `shape`."""
    y = draw_labels(rng, n_rows, n_classes)
    mean = rng.gamma(1.0, 2.0, (n_classes, n_columns))[y]
    if np.isfinite(shape):
        mean = mean * rng.gamma(shape, 1 / shape, mean.shape)
    prior = bnb.GammaPoisson(*(np.full((n_classes, n_columns), value) for value in (1.0, 0.5)))
    return bnb.PoissonNB(prior=prior), rng.poisson(mean), y


def gaussian(rng, n_rows, n_columns, n_classes=2) -> Sample:
    y = draw_labels(rng, n_rows, n_classes)
    sigma2 = 1 / rng.gamma(2.0, 1 / 2.0, (n_classes, n_columns))
    mu = rng.normal(0.0, np.sqrt(sigma2 / 0.1))
    prior = bnb.NormalInverseGamma(*(np.full((n_classes, n_columns), value) for value in (0.0, 0.1, 2.0, 2.0)))
    return bnb.GaussianNB(prior=prior), rng.normal(mu[y], np.sqrt(sigma2[y])), y


def noise(rng, n_rows, n_columns, n_classes=2) -> Sample:
    """Normal numbers without classes, under the default prior."""
    return bnb.GaussianNB(), rng.normal(size=(n_rows, n_columns)), draw_labels(rng, n_rows, n_classes)


def dispersion(table, labels):
    """Variance of each column over its mean, in each class."""
    groups = table.groupby(labels)
    return (groups.var() / groups.mean().clip(lower=1e-9)).to_numpy().ravel()


def p_values(make: Callable[..., Sample], shape: tuple[int, ...], n_tables: int, statistic: Any, copy: bool = False):
    """Overall p of checks of simulated tables; with `copy` the last column is a copy of the most variable one."""
    result = []
    for seed in range(n_tables):
        nb, X, y = make(np.random.default_rng([seed, 7]), *shape)
        if copy:
            frame = pd.DataFrame(X)
            spread = frame.apply(lambda cells: pd.factorize(cells)[0]).groupby(y).var().sum()
            frame[frame.columns[-1]] = frame[spread.iloc[:-1].idxmax()]
            X = frame if isinstance(X, pd.DataFrame) else frame.to_numpy()
        result.append(bnb.posterior_predictive_check(nb.fit(X, y), X, y, statistic, draws=200, seed=seed).p)
    return np.array(result)


TRUE = {
    "bernoulli-30x20": (bernoulli, (30, 20)),
    "bernoulli-60x50": (bernoulli, (60, 50)),
    "levels-30x6": (levels, (30, 6)),
    "poisson-30x4": (poisson, (30, 4)),
    "gaussian-30x50": (gaussian, (30, 50)),
    "bernoulli-80x10-in-20-classes": (bernoulli, (80, 10, 20)),
    "levels-80x6-in-20-classes": (levels, (80, 6, 20)),
    "gaussian-80x6-in-20-classes": (gaussian, (80, 6, 20)),
    "noise-60x40": (noise, (60, 40)),
}


@pytest.mark.parametrize("statistic", ["association", "frequency", "extremes"])
@pytest.mark.parametrize("name", TRUE)
def test_true_models_are_flagged_at_most_at_the_level(name, statistic):
    p = p_values(*TRUE[name], n_tables=200, statistic=statistic)
    for level in (0.05, 0.1):
        assert (p <= level).mean() <= level + 2 * np.sqrt(level * (1 - level) / len(p)), level


@pytest.mark.parametrize("name", list(TRUE)[:5])
def test_a_copied_column_is_flagged(name):
    assert (p_values(*TRUE[name], n_tables=100, statistic="association", copy=True) < 0.05).sum() >= 95


@pytest.mark.parametrize("statistic", ["frequency", dispersion])
def test_overdispersed_counts_are_flagged(statistic):
    p = p_values(poisson, (60, 4, 2, 1.0), n_tables=100, statistic=statistic)
    assert (p < 0.05).sum() >= 95
