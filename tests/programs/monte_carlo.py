"""Whether draws of a Markov chain agree with exact moments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from scipy import stats

import bayesnb as bnb

Exact = dict[str, tuple[np.ndarray, np.ndarray]]


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

    Of K comparisons some exceed four by chance with probability K / 16,000 or less: for more than 160, as many words
    have, the bound is that of a family-wise 1%; 4.6 for 2,000.
    """
    scores = []
    for site, (mean, sd) in exact.items():
        values = data["posterior"][site].to_numpy()
        assert values.shape[2:] == mean.shape
        assert (split_gelman_rubin(values) < 1.01).all()
        centred = values - mean
        scores += [errors(centred), errors(centred**2 - sd**2)]
    every = np.concatenate([score.ravel() for score in scores])
    assert np.isfinite(every).all()
    assert np.abs(every).max() < max(4.0, stats.norm.isf(0.005 / every.size))
    # They are no smaller either than standard normal variates are.
    if every.size > 100:
        assert 0.75 < np.sqrt(np.mean(every**2)) < 1.25
    assert not data["sample_stats"]["diverging"].to_numpy().any()
