"""Table of the weights of terms, with intervals and the cost of leaving a term out."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from bayesnb._util.arguments import require_probability
from bayesnb.fitted.state import Classifier
from bayesnb.prediction.weights import TEMPERATURES, read_weight_draws, require_weights


def weight_table(nb: Classifier, prob: float = 0.9, draws: object = None) -> pd.DataFrame:
    """Return the weights of terms with intervals, and the loss of log score if a term is left out.

    Parameters
    ----------
    nb : fitted WeightedNB
        Classifier whose weights are shown.
    prob : float, default 0.9
        Posterior probability of the intervals, in (0, 1).
    draws : ArviZ data or dict, optional
        Draws of the weights by `run_nuts(nb, X=X, y=y)`, whose quantiles are the intervals. Default: a normal
        approximation of the posterior.

    Returns
    -------
    DataFrame
        One row per term, in the order of `nb.term_names_`; if `nb.shrinkage_`, τ, is 0, all terms share one weight: a
        single row for the temperature, and one for the temperature of dependences if there are any.

        term
            name of the term; "temperature" in the row of all terms.
        weight
            at the optimum; 1 is naive Bayes, 0 leaves the term out. For counts of words, the weight is that of a row of
            typical length: `nb.weight_` times (t + 1)^-`nb.length_exponent_` at the mean of log(t + 1).
        lower, upper
            equal-tailed interval, averaged over τ by its evidence.
        sd
            posterior standard deviation, averaged over τ likewise.
        cost
            fall, in nats, of the penalised log score of the rows that weights were fitted to, if the term is left out
            and biases, temperature and the other weights are optimised again. By Laplace's approximation at τ =
            `nb.shrinkage_` the cost is ½ weight²/Var(weight), which is accurate up to a few nats, and too low for
            larger costs. The cost of the temperature is that of leaving all terms out.

        `attrs` has "temperature", "shrinkage" and "prob".

    Raises
    ------
    NotFittedError
        If `nb` is not fitted.
    ValueError
        If `nb` is not a `WeightedNB` or has no weights yet, `prob` is not in (0, 1), or the draws are of other weights.

    Notes
    -----
    The posterior is that of the weights, not of the parameters θ. Its log-likelihood is Σ_i log softmax(s(x_i))[y_i],
    with the scores s of each half of the rows by a fit to the other half. It is a generalised (Gibbs) posterior,
    because three splits are averaged. For each τ it is approximated by a normal distribution of the class biases b, the
    temperature T and the deviations d, with w = T + τ d; the covariance is the inverse of minus the Hessian of the
    penalised log score, and the exponent of the length is fixed. If the terms predict the labels nearly without error,
    the data bound the weights from below only, and normal intervals are too wide on one side: use `draws` then.

    References
    ----------
    Bissiri, Holmes & Walker, *A general framework for updating belief distributions*, J. R. Stat. Soc. B 78 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import WeightedNB, weight_table
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> first, second = (np.where(rng.random(2000) < 0.8, y, 1 - y) for _ in range(2))
    >>> nb = WeightedNB().fit(np.column_stack([first, first, second]), y)  # the first witness is heard twice
    >>> weight_table(nb)[["term", "weight", "sd"]].round(2)
      term  weight    sd
    0    0    0.50  0.47
    1    1    0.50  0.47
    2    2    0.99  0.05
    """
    weights = require_weights(nb, "weight_table")
    require_probability("prob", prob)
    if (path := weights.path) is None:
        raise ValueError(
            "weight_table: the weights are from a file of an older version of bayesnb, without standard deviations. "
            "Fit them again by nb.weigh(X, y)."
        )
    shrinkage = np.array([weights.shrinkage, weights.dependence_shrinkage])[: path.shrinkage.shape[1]]
    if shrinkage.any() or len(weights.names) == 1:
        names, means, sds = weights.names, path.weight, path.sd
    else:
        names, means, sds = TEMPERATURES[: len(shrinkage)], path.temperature, path.temperature_sd
    chosen = int(np.argmax((path.shrinkage == shrinkage).all(axis=1)))
    weight, cost = means[chosen], 0.5 * (means[chosen] / sds[chosen]) ** 2
    tails = np.array([(1 - prob) / 2, (1 + prob) / 2])
    if draws is None:
        probability = path.probability()
        lower, upper = _mixture_quantiles(tails, probability, means, sds)
        sd = np.sqrt(probability @ (sds**2 + (means - probability @ means) ** 2))
    else:
        if (drawn := read_weight_draws(weights, draws)) is None:
            raise ValueError("draws must be draws of the weights, as run_nuts(nb, X=X, y=y) returns.")
        first_of_group = np.unique(weights.dependence, return_index=True)[1]
        values = drawn.weight if names is weights.names else drawn.weight[:, first_of_group]
        lower, upper = np.quantile(values, tails, axis=0)
        sd = values.std(axis=0, ddof=1)
    table = pd.DataFrame({"term": names, "weight": weight, "lower": lower, "upper": upper, "sd": sd, "cost": cost})
    table.attrs = {"temperature": weights.temperature, "shrinkage": weights.shrinkage, "prob": float(prob)}
    return table


def _mixture_quantiles(prob: np.ndarray, weight: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Compute (Q, T) quantiles of T mixtures of K normal distributions, `weight` (K,), `mean` and `sd` (K, T).

    Bisection starts from the quantiles of the components, between which those of the mixture lie.
    """
    quantiles = mean[:, None] + sd[:, None] * ndtri(prob)[:, None]
    low, high = quantiles.min(axis=0), quantiles.max(axis=0)
    for _ in range(100):
        middle = (low + high) / 2
        below = np.einsum("k,kqt->qt", weight, ndtr((middle - mean[:, None]) / sd[:, None])) < prob[:, None]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(middle)
