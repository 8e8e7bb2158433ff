"""How sure of P(class | row): intervals, the split of entropy, moments of log odds."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np

from bayesnb._util.arguments import (
    require_choice,
    require_integer,
    require_probability,
    require_seed,
    shown,
)
from bayesnb.families.protocol import Cumulants
from bayesnb.fitted import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes
from bayesnb.uncertainty.by_blocks import PerBlock, over_blocks, proper_posterior
from bayesnb.uncertainty.draws import draws_of
from bayesnb.uncertainty.given_draws import DrawnSampler, sampler_of
from bayesnb.uncertainty.probability_draws import Sampler
from bayesnb.uncertainty.score_cumulants import given_data, given_row, row_cumulants
from bayesnb.uncertainty.two_classes import interval, quadrature

if TYPE_CHECKING:
    import pandas as pd

Given = Literal["row", "data"]
Method = Literal["moments", "draws"]

_WHAT = "P(class | row, θ)"
_GIVEN = ("row", "data")


def predict_interval(
    nb: Classifier,
    X: Any,
    prob: float = 0.9,
    method: Method = "moments",
    given: Given | None = None,
    draws: Any = 1000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Equal-tailed posterior interval of P(class | row, θ) for each row and class.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    X : (N, F) rows
    prob : float, default 0.9
        Posterior probability of the interval.
    method : {"moments", "draws"}
        "moments" takes the scores log p(class, row | θ) for cubics of normal variates with their exact mean,
        variance and skewness: of two classes the quantiles are found to rounding, an accurate approximation; of more
        by Monte Carlo, with `draws` of the scores. "draws" samples θ itself, without approximation: slower by far.
        Where classes share parameters, as those of `FeatureAveragedNB` do, there are draws only; and where missing
        cells on arcs of a network are summed out, those rows take draws of θ.
    given : {"row", "data"}, optional
        "row": θ | data, row, for rows that come from the population that the data come from; the average over
        it is `predict_proba`. "data": θ | data, for rows fixed in advance; its average is not `predict_proba`. Default:
        "row"; but "data" for a classifier whose terms are weighted, as weighted terms are no distribution of rows.
    draws : int, or what `posterior_draws`, `to_arviz` or `run_nuts` returns
        Number of draws, where there are any; or draws to use in place of the exact posterior, whatever the method:
        given the data these draws of θ themselves. Given the row, of this very model, the draws of its
        hyperparameters, with θ drawn anew, exactly, given them and the row; of all others those of θ, drawn again in
        proportion to p(row | θ).
    seed : int

    Returns
    -------
    lower, upper : (N, C) arrays

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If there is no posterior, as of `AODE`; if `given="row"` and terms are weighted.
    ValueError
        If an argument is none of the above.

    Warns
    -----
    UserWarning
        If what is said of rows rests on few of the given draws, with the least effective sample size.

    Notes
    -----
    With s_c = log π_c + log p(row | c, θ), independent between classes but for π, and
    θ | D, row = Σ_k P(k | row, D) p(θ | D, (row, k)), the logit s_1 - s_0 of two classes is a mixture of two
    distributions whose moments are known exactly, see `docs/derivations.md`.

    The interval says what the data leave unknown about the parameters *if naive Bayes holds*. It is not the
    probability of being right, and it shrinks as rows come whether or not the model is right. Of a structure it is
    given the structure: with a tree that was learned from the same rows 90% intervals cover .85–.86, with the true one
    .90.

    `predict_proba` is the mean over the parameters, and the interval has quantiles. Where little is known of them most
    draws are next to 0 or 1, and the mean, which is neither, may lie outside an interval of 90%.

    Examples
    --------
    With ten times the rows, all alike, the interval is narrower, whether or not naive Bayes holds.

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

    def of_two(weight: np.ndarray, scores: Cumulants, _: np.ndarray) -> np.ndarray:
        return interval(weight, scores, tails)

    def of_draws(log_proba: np.ndarray, _: np.ndarray) -> np.ndarray:
        return np.quantile(np.exp(log_proba), tails, axis=0).swapaxes(0, 1)

    fitted = require_posterior(nb, _WHAT)
    found = _distribution(fitted, X, given, method, draws, seed, of_two, of_draws)
    return found[:, 0], found[:, 1]


def decompose_uncertainty(
    nb: Classifier,
    X: Any,
    given: Given | None = None,
    method: Method = "moments",
    draws: Any = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Split the entropy of the class of each row: what the class leaves open, and what the parameters do.

    Parameters
    ----------
    nb, X, given, method, draws, seed
        As for `predict_interval`.

    Returns
    -------
    DataFrame
        One row a row of X, in nats but for `p_top`.

        total
            entropy of the average of P(· | row, θ); under `given="row"` that average is `predict_proba`, up
            to the approximation or the Monte Carlo error of the method.
        aleatoric
            average entropy of P(· | row, θ), what would remain were the parameters known.
        epistemic
            total - aleatoric, the mutual information of class and parameters; never negative, since
            all three are taken from the same draws or nodes.
        p_top
            posterior probability, under the model, that the class which `predict` returns is the most
            probable one given θ. Not the probability that the label is right.

    Raises
    ------
    ImproperPosteriorError, NotImplementedError, ValueError
        As for `predict_interval`.

    References
    ----------
    Depeweg et al., *Decomposition of uncertainty in Bayesian deep learning* (2018), for the split.

    Examples
    --------
    Both rows are undecided: the first since 80 rows like it are, the second since there is none like it.

    >>> from bayesnb import CategoricalNB, decompose_uncertainty
    >>> X, y = [["red"]] * 80 + [["green"], ["blue"]], ["ripe", "raw"] * 41
    >>> nb = CategoricalNB(categories=[["red", "green", "blue", "grey"]]).fit(X, y)
    >>> decompose_uncertainty(nb, [["red"], ["grey"]]).round(2)
       total  aleatoric  epistemic  p_top
    0   0.69       0.69       0.01    0.5
    1   0.69       0.50       0.19    0.5
    """
    import pandas as pd

    fitted = require_posterior(nb, _WHAT)
    found = _distribution(fitted, X, given, method, draws, seed, quadrature, _entropies)
    columns = ["total", "aleatoric", "epistemic", "p_top"]
    index = getattr(X, "index", None)  # of a list it is a method
    return pd.DataFrame(found, columns=columns, index=index if isinstance(index, pd.Index) else None)


def log_odds_moments(
    nb: Classifier, X: Any, against: Any = None, given: Given = "data", draws: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Exact posterior mean and sd of log P(c | row, θ) - log P(against | row, θ).

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    X : (N, F) rows
    against : label, default the first of `nb.classes_`
    given : {"data", "row"}
        As for `predict_interval`.
    draws : what `posterior_draws`, `to_arviz` or `run_nuts` returns, optional
        Draws to use in place of the exact posterior.

    Returns
    -------
    mean, sd : (N, C) arrays
        Column c is class `nb.classes_[c]`; zeros where that is `against`.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If classes share parameters, as those of `FeatureAveragedNB` do, or rows of a network have missing cells on
        arcs, and there are no `draws`.
    ValueError
        If `against` is no class of `nb`.

    Notes
    -----
    No sampling: log-likelihoods of features add, and their moments are closed forms of polygamma functions
    (`docs/derivations.md`).

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
    labels = list(fitted.encoding.classes.values)
    if against is not None and not (isinstance(against, Hashable) and against in dict.fromkeys(labels)):
        raise ValueError(f"against={shown(against)} is no class; nb.classes_ is {shown(labels)}.")
    a = 0 if against is None else labels.index(against)
    if draws is None:
        if fitted.prior.classes_share_parameters:
            raise NotImplementedError(
                f"log_odds_moments: the classes of {fitted.name} share parameters, so that scores of classes are not "
                "independent; pass draws=posterior_draws(nb)."
            )
        closed = _from_scores(fitted, given, lambda weight, scores, _: _log_odds(weight, scores, a))
        found = over_blocks(fitted, X, closed, replace(closed, answer=_no_moments))
    else:
        found = sampler_of(fitted, draws, given, 0).map(fitted, X, lambda log_proba, _: _drawn_odds(log_proba, a))
    return found[:, 0], found[:, 1]


# Of weights, cumulants of the scores and log P(class | row); of draws of log P(class | row, θ) and log P(class | row).
OfScores = Callable[[np.ndarray, Cumulants, np.ndarray], np.ndarray]
OfDraws = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _distribution(
    fitted: Fitted,
    X: Any,
    given: Given | None,
    method: Method,
    draws: Any,
    seed: int,
    of_two: OfScores,
    of_draws: OfDraws,
) -> np.ndarray:
    """What one asks of the distribution of P(class | row, θ): of two classes from their moments, else from draws."""
    given = resolve_given(fitted, given)
    chosen = sampler(fitted, given, method, draws, seed)
    if isinstance(chosen, Sampler) and chosen.method == "moments" and len(fitted.encoding.classes) == 2:
        return over_blocks(
            fitted, X, _from_scores(fitted, given, of_two), replace(chosen, method="draws").of(fitted, of_draws)
        )
    return chosen.map(fitted, X, of_draws)


def sampler(fitted: Fitted, given: Given | None, method: Method, draws: Any, seed: int) -> Sampler | DrawnSampler:
    """What draws log P(class | row, θ); there are no moments where classes share parameters."""
    require_options(given, method)
    given = resolve_given(fitted, given)
    if not isinstance(draws, int | float | np.number):
        return sampler_of(fitted, draws, given, seed)
    require_integer("draws", draws)
    require_seed(seed)
    sums = any(columns.network is not None for columns in fitted.encoding.blocks)
    if fitted.prior.weights is not None and (method == "draws" or sums or fitted.prior.classes_share_parameters):
        return sampler_of(fitted, dict(draws_of(fitted, int(draws), seed)), given, seed)
    return Sampler("draws" if fitted.prior.classes_share_parameters else method, given, int(draws), seed)


def require_options(given: Given | None, method: Method) -> None:
    """Raise ValueError unless `given` and `method` are what `predict_interval` takes."""
    if given is not None:
        require_choice("given", given, _GIVEN)
    require_choice("method", method, ("moments", "draws"))


def resolve_given(fitted: Fitted, given: Given | None) -> Given:
    """Return what the parameters are conditional on: "row" by default, and "data" where terms are weighted.

    Raises
    ------
    NotImplementedError
        If the terms are weighted and the parameters are asked for given the row.
    ValueError
        If `given` is none of the two.
    """
    require_options(given, "moments")
    weighted = fitted.prior.weights is not None
    if given is None:
        return "data" if weighted else "row"
    if given == "row" and weighted:
        raise NotImplementedError(
            "given='row': weighted terms are no distribution of rows, so that a row does not tell of its parameters; "
            "pass given='data', the default for them, for what the posterior of the parameters leaves open."
        )
    return given


def _from_scores(fitted: Fitted, given: Given, output: OfScores) -> PerBlock:
    model = proper_posterior(fitted)

    def answer(x: tuple[Any, ...], real: slice) -> np.ndarray:
        scores = jax.tree.map(np.asarray, _scores(model, x, given))
        return output(*jax.tree.map(itemgetter(real), scores))

    return PerBlock(answer, 4 * len(fitted.encoding.classes) ** 2)


def _no_moments(x: tuple[Any, ...], real: slice) -> np.ndarray:
    raise NotImplementedError(
        f"log_odds_moments: {real.stop} rows or more have missing cells on arcs, and sums over them have no moments in "
        "closed form; pass draws=posterior_draws(nb)."
    )


@jax.jit(static_argnames="given")
def _scores(model: NaiveBayes, x: tuple[Any, ...], given: Given) -> tuple[jax.Array, Cumulants, jax.Array]:
    moments = row_cumulants(model, x)
    return *(given_row if given == "row" else given_data)(model, moments), moments.log_proba


def _log_odds(weight: np.ndarray, scores: Cumulants, against: int) -> np.ndarray:
    """Moments of a mixture: E m_k, and E(v_k + m_k²) - (E m_k)²; of impossible classes an infinite mean without sd."""
    mean, variance = scores.mean, scores.variance
    with np.errstate(invalid="ignore"):
        odds = mean - mean[..., against, None]
    odds[..., against] = 0.0
    infinite = np.isinf(odds).any(axis=1)
    limit = odds.sum(axis=1, where=np.isinf(odds))
    odds = np.where(np.isinf(odds), 0.0, odds)
    other = np.arange(mean.shape[-1]) != against
    spread = np.where(other, variance + variance[..., against, None], 0.0)
    average = np.sum(weight[..., None] * odds, axis=1)
    between = np.sum(weight[..., None] * (odds - average[:, None]) ** 2, axis=1)
    sd = np.sqrt(np.sum(weight[..., None] * spread, axis=1) + between)
    return np.stack([np.where(infinite, limit, average), np.where(infinite, 0.0, sd)], axis=1)


def _drawn_odds(log_proba: np.ndarray, against: int) -> np.ndarray:
    odds = log_proba - log_proba[..., against, None]
    return np.stack([odds.mean(axis=0), odds.std(axis=0)], axis=1)


def _entropies(log_proba: np.ndarray, predictive: np.ndarray) -> np.ndarray:
    """(N, 4) from draws (S, N, C) of log P(· | row, θ)."""
    p = np.exp(log_proba)
    average = p.mean(axis=0)
    total = 0.0 - np.sum(average * np.log(np.where(average > 0, average, 1.0)), axis=1)
    aleatoric = 0.0 - np.mean(np.sum(p * np.where(p > 0, log_proba, 0.0), axis=2), axis=0)
    p_top = np.mean(log_proba.argmax(axis=2) == predictive.argmax(axis=1), axis=0)
    return np.stack([total, aleatoric, total - aleatoric, p_top], axis=1)
