"""Uncertainty of P(class | row, θ): intervals, the split of entropy, moments of log odds."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pandas as pd

from bayesnb._util.arguments import find_class, require_choice, require_integer, require_probability, require_seed
from bayesnb.encoding import Rows
from bayesnb.families.arrays import kernel
from bayesnb.families.protocol import Cumulants
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes
from bayesnb.uncertainty.draws import draw_posterior
from bayesnb.uncertainty.row_draws import (
    DrawsFunction,
    Given,
    Method,
    RowFunction,
    RowSampler,
    map_blocks,
    map_rows,
    padded_posterior,
    sampler_of_draws,
)
from bayesnb.uncertainty.score_moments import probability_interval, row_cumulants, score_cumulants, split_entropy

_WHAT = "P(class | row, θ)"


def predict_interval(
    nb: Classifier,
    X: object,
    prob: float = 0.9,
    method: Method = "moments",
    given: Given | None = None,
    draws: object = 1000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Equal-tailed posterior interval of P(class | row, θ) for each row and class.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose predictions are described.
    X : array, sparse matrix or DataFrame of shape (N, F)
        Rows to predict.
    prob : float, default 0.9
        Posterior probability of the interval.
    method : {"moments", "draws"}
        "moments" approximates the scores log p(class, row | θ) by cubics of normal variates with their exact mean,
        variance and skewness, an accurate approximation. The quantiles for two classes are computed to 1e-10, those for
        more by Monte Carlo, with `draws` of the scores. "draws" samples θ itself, without approximation, and is far
        slower. "draws" is always used if classes share parameters (`FeatureAveragedNB`), and for rows in which missing
        cells on arcs of a network are summed out.
    given : {"row", "data"}, optional
        Condition of the posterior. "row": θ | data, row, for rows from the population of the data; the average of
        P(class | row, θ) is `predict_proba`. "data": θ | data, for rows fixed in advance; the average is not
        `predict_proba`. Default: "row"; but "data" for a classifier whose terms are weighted, because weighted terms do
        not define a distribution of rows.
    draws : int, or return value of `posterior_draws`, `to_arviz`, `run_nuts` or `sample_latent`
        Number of draws, if the method draws; or draws that replace the exact posterior, for every method. With
        `given="data"` these are the draws of θ. With `given="row"`, draws of the posterior of the same model provide
        the hyperparameters, and θ is drawn exactly given the hyperparameters and the row; other draws of θ are
        resampled in proportion to p(row | θ).
    seed : int
        The same seed gives the same draws.

    Returns
    -------
    lower, upper : (N, C) arrays
        Ends of the interval of P(class | row, θ), classes in the order of `nb.classes_`.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If `nb` has no posterior, such as an `AODE`; if `given="row"` and terms are weighted.
    ValueError
        If an argument is not one of the above.

    Warns
    -----
    UserWarning
        If the intervals of some rows depend on few of the given draws. The message gives the smallest effective sample
        size.

    Notes
    -----
    The scores s_c = log π_c + log p(row | c, θ) are independent between classes except for π, and θ given the data and
    the row has the density Σ_k P(k | row, D) p(θ | D, (row, k)). So the logit s_1 - s_0 of two classes is a mixture of
    two distributions whose moments are known exactly, see
    docs/derivations/prediction_and_uncertainty.md, "Uncertainty of class probabilities".

    The interval describes the uncertainty about the parameters *if naive Bayes holds*. It is not the probability that a
    prediction is right, and it becomes narrower with more rows whether or not the model is right. For a structure the
    interval is conditional on the structure: with a tree that was learned from the same rows 90% intervals cover
    .85–.86, with the true tree .90.

    `predict_proba` is the mean over the parameters, and the ends of the interval are quantiles. If the data determine
    the parameters poorly, most draws are close to 0 or 1, and their mean may lie outside a 90% interval.

    Examples
    --------
    With each row ten times the interval is narrower, whether or not naive Bayes holds.

    >>> from bayesnb import CategoricalNB, predict_interval
    >>> X, y = [["red"], ["red"], ["green"], ["red"]], ["ripe", "ripe", "raw", "raw"]
    >>> for n in (1, 10):
    ...     nb = CategoricalNB().fit(X * n, y * n)
    ...     lower, upper = predict_interval(nb, [["red"]])
    ...     print(nb.predict_proba([["red"]])[0, 1].round(2), lower[0, 1].round(2), upper[0, 1].round(2))
    0.6 0.22 0.92
    0.66 0.51 0.79
    """
    require_probability("prob", prob)
    tails = np.array([(1 - prob) / 2, (1 + prob) / 2])

    def by_moments(weight: np.ndarray, scores: Cumulants, _: np.ndarray) -> np.ndarray:
        return probability_interval(weight, scores, tails)

    def by_draws(log_proba: np.ndarray, _: np.ndarray) -> np.ndarray:
        return np.stack(np.quantile(np.exp(log_proba), tails, axis=0), axis=1)

    fitted = require_posterior(nb, _WHAT, draws)
    ends = _summarize(fitted, X, choose_sampler(fitted, given, method, draws, seed), by_moments, by_draws)
    return ends[:, 0], ends[:, 1]


def decompose_uncertainty(
    nb: Classifier,
    X: object,
    given: Given | None = None,
    method: Method = "moments",
    draws: object = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Decompose the entropy of the class of each row into an aleatoric and an epistemic part.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose predictions are described.
    X : array, sparse matrix or DataFrame of shape (N, F)
        Rows to predict.
    given : {"row", "data"}, optional
        Condition of the posterior. "row": θ | data, row, for rows from the population of the data. "data": θ | data,
        for rows fixed in advance. Default: "row", or "data" if terms are weighted.
    method : {"moments", "draws"}
        "moments" approximates the scores log p(class, row | θ) by their exact mean, variance and skewness. "draws"
        samples θ itself, without approximation, and is far slower.
    draws : int, or return value of `posterior_draws`, `to_arviz` or `run_nuts`
        Number of draws, or draws that replace the exact posterior.
    seed : int
        The same seed gives the same draws.

    Returns
    -------
    DataFrame
        One row for each row of X, in nats but for `p_top`.

        total
            entropy of the average of P(· | row, θ); under `given="row"` that average is `predict_proba`, up
            to the approximation or the Monte Carlo error of the method.
        aleatoric
            average entropy of P(· | row, θ), which would remain if the parameters were known.
        epistemic
            total - aleatoric, the mutual information of class and parameters; never negative, since
            both terms are computed from the same draws or nodes.
        p_top
            posterior probability, under the model, that the class which `predict` returns is the most
            probable one given θ. Not the probability that the label is right.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If `nb` has no posterior, such as an `AODE`; if `given="row"` and terms are weighted.
    ValueError
        If an argument is not one of the above.

    References
    ----------
    Depeweg et al., *Decomposition of uncertainty in Bayesian deep learning* (2018), for the split.

    Examples
    --------
    Both rows are undecided: the first since 80 equal rows are, the second since no row of the data is like it.

    >>> from bayesnb import CategoricalNB, decompose_uncertainty
    >>> X, y = [["red"]] * 80 + [["green"], ["blue"]], ["ripe", "raw"] * 41
    >>> nb = CategoricalNB(categories=[["red", "green", "blue", "grey"]]).fit(X, y)
    >>> decompose_uncertainty(nb, [["red"], ["grey"]]).round(2)
       total  aleatoric  epistemic  p_top
    0   0.69       0.69       0.01    0.5
    1   0.69       0.50       0.19    0.5
    """
    fitted = require_posterior(nb, _WHAT, draws)
    sampler = choose_sampler(fitted, given, method, draws, seed)
    values = _summarize(fitted, X, sampler, split_entropy, _split_drawn_entropy)
    index = getattr(X, "index", None)  # A list has a method of this name.
    columns = ["total", "aleatoric", "epistemic", "p_top"]
    return pd.DataFrame(values, columns=columns, index=index if isinstance(index, pd.Index) else None)


def log_odds_moments(
    nb: Classifier, X: object, against: object = None, given: Given = "data", draws: object = None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the exact posterior mean and sd of log P(c | row, θ) - log P(against | row, θ).

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose predictions are described.
    X : array, sparse matrix or DataFrame of shape (N, F)
        Rows to predict.
    against : label, optional
        Class of the denominator; default: the first of `nb.classes_`.
    given : {"data", "row"}
        Condition of the posterior. "data": θ | data, for rows fixed in advance. "row": θ | data, row, for rows from the
        population of the data.
    draws : return value of `posterior_draws`, `to_arviz` or `run_nuts`, optional
        Draws that replace the exact posterior.

    Returns
    -------
    mean, sd : (N, C) arrays
        Column c is class `nb.classes_[c]`; zeros in the column of `against`.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If no `draws` are passed, and classes share parameters (`FeatureAveragedNB`), or rows of a network have missing
        cells on arcs.
    ValueError
        If `against` is not a class of `nb`.

    Notes
    -----
    Nothing is sampled: the log likelihoods of the features add up, and their moments are closed forms of polygamma
    functions (docs/derivations/prediction_and_uncertainty.md, "Moments of log likelihoods").

    Examples
    --------
    >>> from bayesnb import CategoricalNB, log_odds_moments
    >>> nb = CategoricalNB().fit([["red"]] * 4 + [["green"]] * 4, ["ripe"] * 3 + ["raw"] * 5)
    >>> mean, sd = log_odds_moments(nb, [["red"]])  # of ripe against raw
    >>> nb.classes_, mean.round(2), sd.round(2)
    (array(['raw', 'ripe'], dtype='<U4'), array([[0.  , 0.75]]), array([[0.  , 1.01]]))
    """
    fitted = require_posterior(nb, "log_odds_moments")
    given = resolve_given(fitted, given)
    a = 0 if against is None else find_class("against", against, list(fitted.encoding.classes.values))
    if draws is not None:

        def by_draws(log_proba: np.ndarray, _: np.ndarray) -> np.ndarray:
            odds = log_proba - log_proba[..., a, None]
            return np.stack([odds.mean(axis=0), odds.std(axis=0)], axis=1)

        moments = sampler_of_draws(fitted, draws, given, 0).map(fitted, X, by_draws)
        return moments[:, 0], moments[:, 1]
    if fitted.prior.classes_share_parameters:
        raise NotImplementedError(
            f"log_odds_moments: the classes of {fitted.name} share parameters, so that the scores of classes are "
            "dependent, but the moments need independent scores; pass draws=posterior_draws(nb)."
        )

    def refuse(rows: tuple[Rows, ...], n: int) -> np.ndarray:
        raise NotImplementedError(
            f"log_odds_moments: {n} rows have a missing cell in a column with a parent or a child, and sums over its "
            "levels have no moments in closed form; pass draws=posterior_draws(nb)."
        )

    by_moments = _moments_row_function(fitted, given, lambda weight, scores, _: _log_odds(weight, scores, a))
    moments = map_rows(fitted, X, by_moments, refuse)
    return moments[:, 0], moments[:, 1]


def choose_sampler(fitted: Fitted, given: Given | None, method: Method, draws: object, seed: int) -> RowSampler:
    """Return the sampler of log P(class | row, θ) that these arguments of `predict_interval` ask for.

    Where classes share parameters the method is "draws", as their scores have no independent moments.
    """
    require_options(given, method)
    given = resolve_given(fitted, given)
    if not isinstance(draws, int | float | np.number):
        return sampler_of_draws(fitted, draws, given, seed)
    require_integer("draws", draws)
    require_seed(seed)
    shared = fitted.prior.classes_share_parameters
    sums = any(columns.network is not None for columns in fitted.encoding.blocks)
    if fitted.prior.weights is not None and (method == "draws" or sums or shared):
        return sampler_of_draws(fitted, dict(draw_posterior(fitted, int(draws), seed)), given, seed)
    return RowSampler("draws" if shared else method, given, int(draws), seed)


def require_options(given: Given | None, method: Method) -> None:
    """Raise ValueError unless `given` and `method` are options of `predict_interval`."""
    if given is not None:
        require_choice("given", given, ("row", "data"))
    require_choice("method", method, ("moments", "draws"))


def resolve_given(fitted: Fitted, given: Given | None) -> Given:
    """Return what the parameters are conditional on: "row" by default, and "data" where terms are weighted.

    Raises
    ------
    NotImplementedError
        If the terms are weighted and `given` is "row".
    ValueError
        If `given` is neither "row" nor "data".
    """
    require_options(given, "moments")
    weighted = fitted.prior.weights is not None
    if given == "row" and weighted:
        raise NotImplementedError(
            "given='row' is not available for a WeightedNB: weighted terms define no probability of a row, so that a "
            "new row cannot update the parameters. Pass given='data', the default for a WeightedNB."
        )
    return given or ("data" if weighted else "row")


# A function of the weights and cumulants that `score_cumulants` returns, and of log P(class | row) (n, C).
ScoresFunction = Callable[[np.ndarray, Cumulants, np.ndarray], np.ndarray]


def _summarize(
    fitted: Fitted, X: object, sampler: RowSampler, by_moments: ScoresFunction, by_draws: DrawsFunction
) -> np.ndarray:
    """Compute (N, …) summaries of P(class | row, θ): by moments if the sampler asks and C is 2, else by draws.

    Rows in which missing cells are summed out have no moments, and are summarized by draws.
    """
    if len(fitted.encoding.classes) != 2 or sampler.method == "draws":
        return sampler.map(fitted, X, by_draws)
    return sampler.map(fitted, X, by_draws, _moments_row_function(fitted, sampler.given, by_moments))


def _moments_row_function(fitted: Fitted, given: Given, output: ScoresFunction) -> RowFunction:
    """Return the function of encoded rows that applies `output` to the moments of their scores."""
    model = padded_posterior(fitted)

    def summarize_block(x: tuple[object, ...], n: int) -> np.ndarray:
        return output(*jax.tree.map(lambda values: np.asarray(values)[:n], _scores(model, x, given)))

    return lambda rows, n: map_blocks(rows, n, summarize_block, 4 * len(fitted.encoding.classes) ** 2)


@kernel(static_argnames="given")
def _scores(model: NaiveBayes, x: tuple[object, ...], given: Given) -> tuple[jax.Array, Cumulants, jax.Array]:
    """Return mixture weights (n, K), score cumulants (n, K, C) and log P(class | row) (n, C) of a block of rows."""
    row = row_cumulants(model, x)
    return *score_cumulants(model, row, given), row.log_proba


def _log_odds(weight: np.ndarray, scores: Cumulants, against: int) -> np.ndarray:
    """(N, 2, C) mean and sd of the log odds of each class against one, under the mixture of these cumulants.

    The moments are E m_k, and E(v_k + m_k²) - (E m_k)², for the components' means m and variances v.

    Impossible classes have an infinite mean, and an sd of 0.
    """
    mean, variance = scores.mean, scores.variance
    with np.errstate(invalid="ignore"):
        odds = mean - mean[..., against, None]
    odds[..., against] = 0.0
    infinite = np.isinf(odds).any(axis=1)
    limit = odds.sum(axis=1, where=np.isinf(odds))
    odds = np.where(np.isinf(odds), 0.0, odds)
    other = np.arange(mean.shape[-1]) != against
    within = np.where(other, variance + variance[..., against, None], 0.0)
    average = np.sum(weight[..., None] * odds, axis=1)
    between = np.sum(weight[..., None] * (odds - average[:, None]) ** 2, axis=1)
    sd = np.sqrt(np.sum(weight[..., None] * within, axis=1) + between)
    return np.stack([np.where(infinite, limit, average), np.where(infinite, 0.0, sd)], axis=1)


def _split_drawn_entropy(log_proba: np.ndarray, predictive: np.ndarray) -> np.ndarray:
    """(N, 4) total, aleatoric and epistemic entropy in nats, and p_top, from draws (S, N, C) of log P(class | row, θ).

    p_top is the fraction of draws in which the class of largest log P(class | row), `predictive` (N, C), is on top.
    """
    p = np.exp(log_proba)
    average = p.mean(axis=0)
    total = 0.0 - np.sum(average * np.log(np.where(average > 0, average, 1.0)), axis=1)
    aleatoric = 0.0 - np.mean(np.sum(p * np.where(p > 0, log_proba, 0.0), axis=2), axis=0)
    p_top = np.mean(log_proba.argmax(axis=2) == predictive.argmax(axis=1), axis=0)
    return np.stack([total, aleatoric, total - aleatoric, p_top], axis=1)
