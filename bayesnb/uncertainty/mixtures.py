"""Quantiles of mixtures of distributions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def mixture_quantiles(
    weight: np.ndarray, ends: np.ndarray, cdf: Callable[[np.ndarray, np.ndarray], np.ndarray], q: np.ndarray
) -> np.ndarray:
    """(M,) quantiles of mixtures of K components; each lies between the same quantiles of the components.

    Parameters
    ----------
    weight : (K, M) array
        Weights of the components.
    ends : (K, M) array
        Quantiles q of the components.
    cdf : function of values (m,) and of their positions (m,) among the M mixtures
        Cumulative probabilities (K, m) of the values under each component.
    q : (M,) array
        Probabilities.
    """
    from scipy.optimize.elementwise import find_root

    def excess(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return np.asarray(np.sum(weight[:, at] * (cdf(x, at) - q[at]), axis=0))

    low, high = ends.min(axis=0), ends.max(axis=0)
    every = np.arange(len(q))
    above = excess(high, every) <= 0  # Rounding has lost all but the weight of one component.
    between = np.flatnonzero((low < high) & ~above & (excess(low, every) < 0))
    quantile: np.ndarray = np.where(above, high, low)
    if between.size:
        quantile[between] = find_root(excess, (low[between], high[between]), args=(between,)).x
    return quantile
