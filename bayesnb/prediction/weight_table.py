"""The weights of terms as a table: how sure they are, and what a term is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import require_probability
from bayesnb.fitted import Classifier
from bayesnb.prediction.weight_draws import read_weight_draws
from bayesnb.prediction.weights import Weights, require_weights

if TYPE_CHECKING:
    import pandas as pd


def weight_table(nb: Classifier, prob: float = 0.9, draws: Any = None) -> pd.DataFrame:
    """Weights of terms, with intervals, and what leaving a term out costs.

    Parameters
    ----------
    nb : fitted WeightedNB
    prob : float, default 0.9
        Posterior probability of the intervals, in (0, 1).
    draws : what `run_nuts(nb, X=X, y=y)` returns, optional
        Draws of the weights, whose quantiles are the intervals; without them the posterior is taken for normal.

    Returns
    -------
    DataFrame
        One row a term, in the order of `nb.term_names_`; under τ = 0, where all terms share one weight, a single row
        for the temperature.

        term
            what it is about; "temperature" in the row of all terms.
        weight
            at the optimum; 1 is naive Bayes, 0 leaves the term out. Of rows that are several draws from one
            simplex it is that of a row of typical length, `nb.weight_` times (t + 1)^-`nb.length_exponent_` at the mean
            of log(t + 1).
        lower, upper
            equal-tailed interval.
        sd
            posterior standard deviation.
        cost
            in nats, by how much the penalised leave-one-out log score of all rows that were weighted on falls where
            this term is left out and biases, temperature and the other weights are at their optimum again. By Laplace's
            approximation, without draws: ½ weight²/Var(weight), which is good up to a few nats and too low beyond. Of
            the temperature it is what leaving all terms out costs.

        `attrs` has "temperature", "shrinkage" and "prob".

    Raises
    ------
    NotFittedError
        If nothing was fitted.
    ValueError
        If `nb` is no `WeightedNB` or has no weights yet, `prob` is not in (0, 1), or the draws are of other weights.

    Notes
    -----
    The posterior is a generalised one (a Gibbs posterior): that of the weights given the leave-one-out scores, with
    Σ_i log softmax(s(x_i))[y_i] for a log-likelihood, and not that of the parameters θ. With H minus the Hessian of the
    penalised log score at the optimum, H⁻¹ is the covariance of (b, T, d), and w = T + τ d. τ and the exponent of the
    length are held where they are. Where the scores tell
    the labels nearly without error they bound the weights from below only, and normal intervals are too wide on that
    side: draws have the shape of the posterior.

    References
    ----------
    Bissiri, Holmes & Walker, *A general framework for updating belief distributions*, J. R. Stat. Soc. B 78 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import WeightedNB, weight_table
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> one, other = (np.where(rng.random(2000) < 0.8, y, 1 - y) for _ in range(2))
    >>> nb = WeightedNB().fit(np.column_stack([one, one, other]), y)  # the first witness is heard twice
    >>> weight_table(nb)[["term", "weight", "sd"]].round(2)
      term  weight    sd
    0    0    0.50  0.21
    1    1    0.50  0.21
    2    2    0.99  0.05
    """
    import pandas as pd
    from scipy.special import ndtri

    weights = require_weights(nb, "weight_table")
    require_probability("prob", prob)
    weight, sd = weights.weight * weights.typical, np.sqrt(_variance(weights))
    rows = slice(None) if weights.shrinkage else slice(1)
    names = weights.names if weights.shrinkage or len(weight) == 1 else ("temperature",)
    cost = 0.5 * (weight / sd) ** 2
    if draws is None:
        half = ndtri((1 + prob) / 2) * sd
        lower, upper = weight - half, weight + half
    else:
        drawn = read_weight_draws(weights, draws)
        if drawn is None:
            raise ValueError("draws must be those of weights, as run_nuts(nb, X=X, y=y) of this WeightedNB has them.")
        lower, upper = np.quantile(drawn.weight, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
        sd = drawn.weight.std(axis=0, ddof=1)
    columns = {"weight": weight, "lower": lower, "upper": upper, "sd": sd, "cost": cost}
    table = pd.DataFrame({"term": names, **{name: column[rows] for name, column in columns.items()}})
    table.attrs = {"temperature": weights.temperature, "shrinkage": weights.shrinkage, "prob": float(prob)}
    return table


def _variance(weights: Weights) -> np.ndarray:
    """(T,) variance of T + τ d by Laplace's approximation."""
    covariance, tau = np.linalg.inv(weights.precision), weights.shrinkage
    t = len(weights.classes) if weights.own else 0
    if not tau:
        return np.full(len(weights.weight), covariance[t, t])
    of_deviations = np.diagonal(covariance)[t + 1 :]
    return covariance[t, t] + 2 * tau * covariance[t, t + 1 :] + tau**2 * of_deviations
