"""Ratio of the posterior sds of log odds with and without the dependence of the training rows' columns."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesnb._util.arguments import Seed
from bayesnb.fitted.state import Classifier, require_posterior
from bayesnb.uncertainty.class_probabilities import choose_sampler
from bayesnb.uncertainty.row_variates import TrainingData


def dependence_ratio(
    nb: Classifier,
    X: object,
    *,
    rows: TrainingData,
    groups: object = None,
    draws: int = 1000,
    seed: Seed = 0,
) -> Float[np.ndarray, "N"]:
    """Compute by how many times the dependence of columns spreads the log odds of each row.

    The ratio answers whether it matters for the uncertainty that naive Bayes is wrong. It is about 1 where columns are
    independent given the class. Its median over rows is one number for a table: at 1.5, intervals that take columns for
    independent are a third too narrow.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with an exact posterior.
    X : array, sparse matrix or DataFrame of shape (N, F)
        Rows to predict, such as the training rows.
    rows : tuple (X, y) or (X, y, sample_weight)
        Rows that `nb` has counted, all of them.
    groups : array-like, optional
        Group of each training row, such as a patient, whose rows vary together.
    draws : int
        Number of draws of the parameters; the relative standard error of a row's ratio is about 1/√draws.
    seed : int, JAX key, RandomState or Generator
        The same seed gives the same draws.

    Returns
    -------
    (N,) array
        sd of the log odds of the most probable class over the second one: with draws of the parameters that vary
        together as the training rows do, divided by that with independent ones, see `posterior_draws`. NaN where the
        log odds are certain.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If `nb` has no posterior, such as an `AODE`.
    ValueError
        If `rows` are not the rows that `nb` has counted, or `groups` does not fit them.

    See Also
    --------
    check_independence : Which pairs of columns depend on each other.
    predict_interval : Intervals that take the rows into account.

    Examples
    --------
    A column that is there four times: its errors add up, where naive Bayes lets them cancel.

    >>> import numpy as np
    >>> from bayesnb import CategoricalNB, dependence_ratio
    >>> rng = np.random.default_rng(0)
    >>> y, column = rng.integers(0, 2, (2, 300))
    >>> X = np.repeat(column[:, None], 4, axis=1) ^ (rng.random((300, 4)) < 0.1)
    >>> nb = CategoricalNB().fit(X, y)
    >>> bool(np.median(dependence_ratio(nb, X, rows=(X, y))) > 1.5)
    True
    """
    fitted = require_posterior(nb, "dependence_ratio")

    def log_odds_sd(log_proba: np.ndarray, predictive: np.ndarray) -> np.ndarray:
        """(n,) sd over the draws of the log odds of the most probable class over the second one."""
        second, first = np.argsort(predictive, axis=1)[:, -2:].T
        row = np.arange(len(predictive))
        odds: np.ndarray = log_proba[:, row, first] - log_proba[:, row, second]
        return odds.std(axis=0)

    alone, together = (
        choose_sampler(fitted, "data", "draws", draws, seed, *training).map(fitted, X, log_odds_sd)
        for training in ((None, None), (rows, groups))
    )
    return np.asarray(together / np.where(alone > 0, alone, np.nan))


__all__ = ["dependence_ratio"]
