"""Words, or levels, that are evidence for a class, with the uncertainty of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import digamma, ndtri, polygamma

from bayesnb._util.arguments import find_class, require_integer, require_probability, require_seed
from bayesnb._util.precision import float64
from bayesnb.families import offers
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.prediction.explanation import column_names, require_two_classes
from bayesnb.uncertainty.draws import CLASS_PROB, draw_posterior, draw_variates

_KINDS = ("multinomial", "bernoulli", "categorical")
_FEWEST_CANDIDATES = 200
_MOST_VARIATES = 2**22  # variates that are held at a time


class _Words(NamedTuple):
    """Words, or levels, with their counts and the posterior Beta(a, b) of their probability in each class.

    Parameters
    ----------
    name : (V,) texts
    counts : (C, V) weight of the cells that were counted
    a, b : (C, V) arguments of each Beta distribution
    """

    name: np.ndarray
    counts: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def take(self, index: np.ndarray) -> _Words:
        """Return the words at the positions `index`."""
        return _Words(*(values[..., index] for values in self))


def top_words(
    nb: Classifier,
    class_: object,
    n: int = 10,
    prob: float = 0.9,
    *,
    names: Sequence[str] | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Words that are the strongest evidence for a class against all other classes, with posterior intervals.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose columns are words (`MultinomialNB`, `BernoulliNB`) or levels (`CategoricalNB`).
    class_ : label
        Class that the words indicate.
    n : int, default 10
        Number of words; all words if there are fewer.
    prob : float, default 0.9
        Posterior probability of the interval from `lower` to `upper`, in (0, 1).
    names : (F,) texts, or dict or Series by column, optional
        Names of the columns of X, such as the words of a sparse matrix, `bag.get_feature_names_out()`.
    draws : int, default 2000
        Number of posterior draws of each candidate's log odds ratio. Intervals are quantiles of them.
    seed : int, default 0
        The same seed gives the same draws.

    Returns
    -------
    DataFrame
        One row for each word, the greatest `lower` first.

        word : str
            name of the column; "column = level" for columns of levels
        log_odds : float
            posterior mean of log P(word | class, θ)/P(word | other classes, θ), in nats
        lower, upper : float
            quantiles (1 ∓ prob)/2 of the log odds ratio
        count, count_elsewhere : float
            weight of the word in the rows of the class, and in all other rows: occurrences for `MultinomialNB`,
            rows that have the word or level otherwise

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If a column has neither words nor levels, such as a Gaussian column; if columns have parents; if classes share
        parameters (`FeatureAveragedNB`); if there is no posterior.
    ValueError
        If `class_` is not a class or the only one; if `n` or `draws` is not positive, `prob` is not in (0, 1), `seed`
        is negative, or the number of `names` is not that of the columns.

    See Also
    --------
    explain : contributions of the words of a row
    parameter_table : intervals of the probabilities themselves

    Notes
    -----
    With θ_kw the probability of word w in class k and π_k that of the class, the log odds ratio of word w for class c
    is

        λ_cw = log θ_cw - log Σ_(k≠c) π_k θ_kw / Σ_(k≠c) π_k.

    An occurrence of w in a row adds λ_cw to the log odds of c against "not c": it is the weight of evidence of the word
    (Good 1950). For `BernoulliNB` the word's presence is the evidence; its absence is other evidence.

    The posterior mean of log θ_cw is ψ(a_cw) - ψ(a_c), with the posterior concentration a_cw of the word and the total
    a_c. With two classes log_odds = ψ(a_cw) - ψ(a_c) - ψ(a_kw) + ψ(a_k) is exact; with more, the mean of the second
    logarithm is that of the draws, as is its part in the interval. Draws are those of the exact posterior,
    θ_kw ~ Beta(a_kw, a_k - a_kw), and π.

    **Rank.** Words are ranked by `lower`. A word that occurs twice in the class and nowhere else has a large but
    uncertain ratio; ranked by the mean, such words fill the list. With alpha far below 1 the posterior probability of a
    word without a count in a class is nearly 0: words that occur only in `class_` then come first, frequent words
    before rare ones. Draws are taken for candidates only: the 10 `n` words, at least 200, with the greatest lower ends
    under a normal distribution with the mean and variance of λ_cw. These are exact for two classes; for more, P(word |
    other classes, θ) is approximated by a Beta variate with the same mean and variance.

    **Selection.** The words shown are the best of many, and the intervals do not take this into account. In 60
    documents of two classes and 500 words that are independent of the class, between 2.7% and 7.8% of all 90% intervals
    exclude 0, but of the ten intervals shown 99% or more do so if all words are equally frequent, and two thirds if
    word r has a frequency proportional to 1/r (means of 100 data sets, for `MultinomialNB` and `BernoulliNB`). An
    interval above 0 is not a test of a word; `loo` shows whether the words predict the class.

    The posterior is that of naive Bayes: words of a phrase are each counted in full. Weights of terms (`WeightedNB`)
    are not used.

    References
    ----------
    Good, *Probability and the Weighing of Evidence* (1950); Monroe, Colaresi & Quinn, *Fightin' words*, Political
    Analysis 16 (2008), for ranking words by log odds and their uncertainty.

    Examples
    --------
    >>> from bayesnb import MultinomialNB, top_words
    >>> X = [[3, 0, 1], [4, 1, 1], [0, 5, 1], [1, 6, 2]]
    >>> nb = MultinomialNB().fit(X, ["spam", "spam", "ham", "ham"])
    >>> table = top_words(nb, "spam", n=2, names=["win", "home", "the"])
    >>> table[["word", "log_odds", "count", "count_elsewhere"]].round(2)
      word  log_odds  count  count_elsewhere
    0  win      1.93    7.0              1.0
    1  the      0.00    2.0              3.0
    """
    require_integer("n", n)
    require_probability("prob", prob)
    require_integer("draws", draws)
    require_seed(seed)
    fitted = require_posterior(nb, "top_words")
    c = find_class("class_", class_, fitted.encoding.classes.values)
    require_two_classes(fitted, "top_words")
    if np.delete(np.exp(fitted.class_log_prior), c).sum() == 0:
        label = fitted.encoding.classes.values[c]
        raise ValueError(
            f"top_words: class_prior gives every class except {label!r} the probability 0. Choose another."
        )
    words = _words(fitted, column_names(fitted, names))
    class_prob = draw_posterior(fitted, int(draws), seed, ())[CLASS_PROB]
    mean, sd = _moments(words, c, np.exp(fitted.class_log_prior))
    tail = (1 - prob) / 2
    candidates = np.argsort(-(mean + ndtri(tail) * sd), kind="stable")[: max(10 * int(n), _FEWEST_CANDIDATES)]
    words, mean = words.take(candidates), mean[candidates]
    drawn_mean, lower, upper = _summarize_draws(words, c, class_prob, (tail, 1 - tail), np.random.default_rng(seed))
    if len(fitted.encoding.classes) > 2:
        mean = drawn_mean
    table = pd.DataFrame({"word": words.name, "log_odds": mean, "lower": lower, "upper": upper})
    table = table.assign(count=words.counts[c], count_elsewhere=np.delete(words.counts, c, axis=0).sum(axis=0))
    return table.iloc[np.lexsort((candidates, -mean, -lower))[: int(n)]].reset_index(drop=True)


def _words(fitted: Fitted, names: Sequence[str]) -> _Words:
    """Return the words or levels of all columns; raise NotImplementedError if a column has other parameters."""
    blocks = []
    in_blocks = zip(fitted.encoding.blocks, fitted.posterior.blocks, fitted.statistics.blocks, strict=True)
    for columns, family, statistics in in_blocks:
        feature, levels = columns.axis()
        names_of_cells = [names[columns.index[j]] for j in feature]
        if columns.kind not in _KINDS:
            raise NotImplementedError(
                f"top_words: column {names_of_cells[0]!r} is {columns.kind}, and has neither words nor levels. Use "
                "plots.forest(nb) to compare the classes in such columns."
            )
        if columns.network is not None or family.classes_share_parameters or not offers(family, "marginals"):
            raise NotImplementedError(
                f"top_words: in a {fitted.name} probabilities of levels depend on parents, or are shared by classes. "
                "Use explain(nb, X) for the contributions of the cells of one row."
            )
        kept, name = np.ones(len(feature), bool), names_of_cells
        if columns.kind == "bernoulli":
            kept = np.array([level == "present" for level in levels or ()])
        elif levels is not None:
            name = [f"{j} = {v}" for j, v in zip(names_of_cells, levels, strict=True)]
        (_, arguments), *_ = float64(family.marginals)().values()
        shape = np.shape(arguments["a"])
        tables = (np.broadcast_to(np.asarray(v), shape) for v in (statistics.count, arguments["a"], arguments["b"]))
        blocks.append(_Words(np.array(name, object), *tables).take(np.flatnonzero(kept)))
    return _Words(*(np.concatenate(values, axis=-1) for values in zip(*blocks, strict=True)))


def _moments(words: _Words, c: int, class_prob: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute (V,) means and sd of λ_cw, with P(word | other classes, θ) as a Beta of the same mean and variance.

    Exact for two classes. `class_prob` (C,) is plugged in.
    """
    weight = np.delete(class_prob, c)
    weight = weight[:, None] / weight.sum()
    a, b = (np.delete(values, c, axis=0) for values in (words.a, words.b))
    total = a + b
    mean = (weight * a / total).sum(axis=0)
    variance = (weight**2 * a * b / (total**2 * (total + 1))).sum(axis=0)
    varies = variance > 0  # The probability of the only level of a column is 1.
    size = np.where(varies, mean * (1 - mean) / np.where(varies, variance, 1.0) - 1, 1.0)
    other_mean, other_variance = np.where(varies, _log_beta_moments(mean * size, (1 - mean) * size), 0.0)
    own_mean, own_variance = _log_beta_moments(words.a[c], words.b[c])
    # Rounding may leave a variance that is 0 below it.
    return own_mean - other_mean, np.sqrt(np.maximum(own_variance + other_variance, 0.0))


def _log_beta_moments(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the logarithm of a Beta(a, b) variate."""
    return digamma(a) - digamma(a + b), polygamma(1, a) - polygamma(1, a + b)


def _summarize_draws(
    words: _Words, c: int, class_prob: np.ndarray, tails: tuple[float, float], rng: np.random.Generator
) -> np.ndarray:
    """Compute (3, V) means and two quantiles of λ_cw over draws, given draws (S, C) of the class probabilities."""
    n_draws, n_classes = class_prob.shape
    others = np.delete(np.arange(n_classes), c)
    with np.errstate(divide="ignore"):
        log_weight = np.log(class_prob[:, others])
    log_weight = (log_weight - np.logaddexp.reduce(log_weight, axis=1, keepdims=True))[..., None]
    step = max(1, _MOST_VARIATES // (n_draws * n_classes))
    summaries = []
    for start in range(0, len(words.name), step):
        part = words.take(np.arange(start, min(start + step, len(words.name))))
        (log_a, log_b), _ = draw_variates(([part.a, part.b], []), n_draws, rng)
        log_theta = log_a - np.logaddexp(log_a, log_b)
        odds = log_theta[:, c] - np.logaddexp.reduce(log_weight + log_theta[:, others], axis=1)
        expected = _log_beta_moments(part.a[c], part.b[c])[0] - (log_theta[:, c] - odds).mean(axis=0)
        summaries.append(np.vstack([expected, np.quantile(odds, tails, axis=0)]))
    return np.concatenate(summaries, axis=1)
