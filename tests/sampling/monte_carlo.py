"""Agreement of Markov chain draws with exact moments."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from scipy import stats

import bayesnb as bnb

Exact = dict[str, Any]  # SciPy's distribution of each site


def quiet(nb: Any, *arguments: Any, **options: Any) -> Any:
    """Every warning is an error: no divergences, R-hat below 1.01, enough effective draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return bnb.run_nuts(nb, *arguments, progress=False, **options)


def errors(values: np.ndarray) -> np.ndarray:
    """Means over chains and draws in their Monte Carlo standard errors, from the effective sample sizes."""
    return values.mean(axis=(0, 1)) / (values.std(axis=(0, 1)) / np.sqrt(effective_sample_size(values)))


def assert_exact(data: Any, exact: Exact) -> None:
    """Assert means and sds within four Monte Carlo standard errors, R-hat below 1.01 and no divergences.

    Of K comparisons some exceed four by chance with probability K / 16,000 or less: for more than 160 the bound is
    that of a family-wise 1%.
    """
    centred = {site: _values(data, site) - posterior.mean() for site, posterior in exact.items()}
    squares = {site: values**2 - exact[site].std() ** 2 for site, values in centred.items()}
    every = _scores([*centred.values(), *squares.values()])
    assert np.abs(every).max() < max(4.0, stats.norm.isf(0.005 / every.size))


def _values(data: Any, site: str) -> np.ndarray:
    """(chains, draws, ...) without divergences, R-hat below 1.01."""
    assert not data["sample_stats"]["diverging"].to_numpy().any()
    values = data["posterior"][site].to_numpy()
    assert (split_gelman_rubin(values) < 1.01).all()
    return values


def _scores(values: Iterable[np.ndarray]) -> np.ndarray:
    every = np.concatenate([errors(v).ravel() for v in values])
    assert np.isfinite(every).all()
    return every
