"""Whether draws of a Markov chain agree with exact moments."""

from __future__ import annotations

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
    """All means and sds within four Monte Carlo standard errors, R-hat below 1.01, no divergences.

    Of K comparisons some exceed four by chance with probability K / 16,000 or less: for more than 160 the bound is
    that of a family-wise 1%.
    """
    centred = {site: _values(data, site) - posterior.mean() for site, posterior in exact.items()}
    squares = {site: values**2 - exact[site].std() ** 2 for site, values in centred.items()}
    every = _scores([*centred.values(), *squares.values()])
    assert np.abs(every).max() < max(4.0, stats.norm.isf(0.005 / every.size))


def assert_uniform(data: Any, exact: Exact) -> None:
    """The same of F(θ), which is uniform: for thousands of parameters, most of them skewed.

    The bound is then so far out that the error of the mean of a skewed square, in units of its own estimate, is not
    normal there: of rare words, whose θ is nearly exponential, it fell below -5 in one run of three and never rose
    above 3.2. F(θ) has short tails, and a mean or sd of θ that is off shows in it. A family-wise .1%, as other
    processors make other chains of the same seed.
    """
    centred = [posterior.cdf(_values(data, site)) - 0.5 for site, posterior in exact.items()]
    every = _scores([*centred, *(values**2 - 1 / 12 for values in centred)])
    assert np.abs(every).max() < stats.norm.isf(0.0005 / every.size)
    # They are no smaller either than standard normal variates are.
    assert 0.9 < np.sqrt(np.mean(every**2)) < 1.1


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
