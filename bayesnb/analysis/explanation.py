"""Explanations: contributions of features to log odds, words of a class, and the value of a missing cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats
from scipy.special import digamma, entr, log_softmax, ndtr, ndtri, polygamma, softmax

from bayesnb._util.arguments import (
    Seed,
    find_class,
    read_seed,
    require_integer,
    require_iterable,
    require_probability,
    shown,
)
from bayesnb._util.arrays import require_draws, require_memory
from bayesnb._util.precision import float64
from bayesnb._util.terminal import progress
from bayesnb.encoding import Columns, Conditional, Rows, Table, ignore_unknown
from bayesnb.encoding.levels import MISSING
from bayesnb.encoding.table import is_labelled, match_columns
from bayesnb.families import Family, Known, offers
from bayesnb.families.arrays import kernel
from bayesnb.families.averaged import power_of_length
from bayesnb.families.rows import weighted
from bayesnb.families.special import log_rising
from bayesnb.fitted import scoring
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes, TermWeights
from bayesnb.uncertainty import CLASS, require_proper
from bayesnb.uncertainty.class_probabilities import padded_posterior
from bayesnb.uncertainty.draws import CLASS_PROB, draw_posterior
from bayesnb.uncertainty.variates import HostVariates, draw_variates

# == Contributions of the features of a row to the log odds of one class against another ===========


def explain(
    nb: Classifier, X: object, of: object = None, against: object = None, *, names: Sequence[str] | None = None
) -> pd.DataFrame:
    """Decompose the log odds of one class against another into contributions of the features, with their sd.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose predictions are explained.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows.
    of, against : labels, optional
        The two classes, for all rows. Default: the most probable class other than the given one. If neither is given:
        the predicted class against the runner-up.
    names : (F,) texts, or dict or Series by column, optional
        Names of the columns of X, such as the words of a sparse matrix, `bag.get_feature_names_out()`.

    Returns
    -------
    DataFrame
        One line for each row and feature: the classes first, then the features by the size of their contribution.

        row
            label of the row in the index of X; its number, from 0, where X has none
        feature : str
            column, or a word of the row where counts share a simplex (`MultinomialNB`); "(class)" for the class prior
        value
            the cell; None where the cell counts as missing. For a column with parents also the values of the parents,
            as in `parameter_table`; for a word its count.
        of, against
            labels of the two classes
        contribution : float
            log p(x_f | of, D) - log p(x_f | against, D), in nats, under `nb.estimate`, times the weight of the term
            where terms are weighted. Above 0 the cell is evidence for `of`; a missing cell contributes 0.
        sd : float
            Posterior standard deviation of log p(x_f | of, θ) - log p(x_f | against, θ), times that weight.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If there is no posterior, such as for an `AODE`; if a row of a network has missing cells with observed
        descendants.
    ValueError
        If `of` or `against` is not a class, or both are the same; if the number of `names` is not that of the columns.

    Notes
    -----
    Given the class, features are independent, so that log odds are a sum. With the terms ℓ_cf(x) = log p(x_f | c, D) of
    `terms(nb, X)`, their weights w and the biases b of classes,

        log P(c | x)/P(k | x) = log π_c/π_k + b_c - b_k + Σ_f w_f [ℓ_cf(x) - ℓ_kf(x)].

    The contributions to a row, that of the class prior among them, add up to the log odds of `nb.predict_proba`. All
    words of a row have one Dirichlet-multinomial term under the predictive, in which each further occurrence of a word
    counts for more. The term is divided among the words: word l with count x_l in a row of t words has log Γ(α_l +
    x_l)/Γ(α_l) minus the fraction x_l/t of log Γ(α_0 + t)/Γ(α_0).

    As the parameters of features are independent given the data, squares of `sd` add up to the square of the sd of
    `log_odds_moments(nb, X, against)`. Words have negative covariances: the root of the sum of squares is then an upper
    bound, and `log_odds_moments` is exact. The mean of `log_odds_moments` differs from the sum of the contributions, as
    the predictive averages over the parameters before the logarithm is taken. With few rows the difference is large,
    most of all for numbers, as an unknown variance gives the predictive heavy tails.

    An expert of a `WeightedNB` is one contribution, without value, and given: its sd is 0.

    A contribution is the evidence of a cell *if naive Bayes holds*: redundant features are each counted in full
    (`WeightedNB` gives them smaller weights). A contribution does not say how the prediction would change with the
    cell. The sd is the uncertainty about the parameters, as if weights were known. Missing cells of a network with
    observed descendants are summed out. The logarithm of a sum has no contributions of single columns, so `explain`
    raises an error; `terms` divides the logarithm equally.

    References
    ----------
    Good, *Probability and the Weighing of Evidence* (1950), for weights of evidence; Možina et al., *Nomograms for
    visualization of naive Bayesian classifier*, PKDD 2004.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, explain
    >>> X, y = [["sun", "dry"], ["sun", "wet"], ["rain", "wet"], ["rain", "wet"]], ["out", "out", "in", "in"]
    >>> nb = CategoricalNB().fit(X, y)
    >>> explain(nb, [["sun", "wet"]]).round(2)
       row  feature value   of against  contribution    sd
    0    0  (class)  None  out      in          0.00  0.89
    1    0        0   sun  out      in          1.10  1.21
    2    0        1   wet  out      in         -0.41  0.69
    >>> nb.predict_proba([["sun", "wet"]]).round(3)  # in, out: log odds of .69, the sum of the three
    array([[0.333, 0.667]])
    """
    fitted = require_posterior(nb, "explain")
    posterior, encoding = padded_posterior(fitted), fitted.encoding
    names_of_columns = np.array(column_names(fitted, names), object)
    table = fitted.table(X)
    n, n_classes = table.n_rows, posterior.n_classes
    what = f"Contributions of {encoding.n_terms:,} columns to {n:,} rows"
    require_memory(n * (encoding.n_terms + 1) * n_classes, what, "Pass fewer rows at a time.")
    c, k = _contrasts(fitted, X, of, against)
    rows = encoding.rows(table, ignore_unknown)  # Predictions have warned of unknown values.
    for summed in (block_rows.summed for block_rows in rows if np.any(block_rows.summed)):
        raise NotImplementedError(
            f"explain: row {int(np.argmax(summed))} has a missing cell in a column with a parent or a child (the first "
            f"of {int(np.sum(summed))} such rows). The sum over its values is not divided among columns. Use "
            "`terms(nb, X)`, which divides the sum, without standard deviations."
        )
    model, reading = fitted.read()
    log_class = np.broadcast_to(scoring.log_class(model, reading), (n, n_classes))
    odds = _difference(scoring.terms(encoding, scoring.read(encoding, model, reading), rows, n), c, k)
    odds_by_block = np.split(odds, np.cumsum([len(columns.term_names) for columns in encoding.blocks])[:-1], axis=1)
    # Given the class, features are independent, and so are the parameters of features: odds and variances add up.
    class_prior: Any = posterior.class_prior
    class_variance = np.zeros(n_classes) if class_prior.fixed else polygamma(1, class_prior.concentration[0])
    class_odds, variances = _difference(log_class, c, k), class_variance[c] + class_variance[k]
    weights = posterior.weights
    powers = [(1.0, None)] * len(rows) if weights is None else [*zip(weights.blocks, weights.exponents, strict=True)]
    lines: list[Any] = [(np.arange(n), np.full(n, CLASS, object), np.full(n, None), class_odds, variances)]
    features = dict.fromkeys(j for columns in encoding.blocks if not columns.one_simplex for j in columns.index)
    position = {j: i for i, j in enumerate(features)}
    cells, (contribution, variance) = np.full((n, len(position)), None), np.zeros((2, n, len(position)))
    for b in reversed(range(len(rows))):  # A column may be in several blocks; its cells are those of the first.
        columns, (power, exponent) = encoding.blocks[b], powers[b]
        block_rows: Any = rows[b]
        if columns.one_simplex:
            log_theta = None
            if reading != "predictive":
                log_theta = scoring.read(encoding, replace(model, weights=None), reading).likelihoods[b].log_theta
            words, family = names_of_columns[list(columns.index)], fitted.posterior.blocks[b]
            weight = power_of_length(block_rows.length(), power, exponent)
            lines.append(_word_lines(block_rows, words, family, log_theta, weight, c, k))
            continue
        if not len(columns.index):  # experts, which are given
            lines += [
                (np.arange(n), np.full(n, name, object), np.full(n, None), of_expert, np.zeros(n))
                for name, of_expert in zip(columns.term_names, odds_by_block[b].T, strict=True)
            ]
            continue
        kernel, index = partial(_log_odds_variance, posterior.blocks[b]), [position[j] for j in columns.index]
        block_variance = scoring.map_rows((block_rows,), n, kernel, c, k, cells=n_classes * len(index))
        contribution[:, index] += odds_by_block[b]
        variance[:, index] += block_variance * np.square(power)
        cells[:, index] = _cell_values(columns, block_rows, names_of_columns, table)
    row, cell_names = np.repeat(np.arange(n), len(position)), np.tile(names_of_columns[list(position)], n)
    lines.insert(1, (row, cell_names, cells.ravel(), contribution.ravel(), variance.ravel()))
    row, feature, value, odds, variances = map(np.concatenate, zip(*lines, strict=True))
    order = np.lexsort((-abs(odds), np.arange(len(row)) >= n, row))  # The first n lines are of the classes.
    row, labels = row[order], encoding.classes.array()
    frame = pd.DataFrame({"row": row_labels(X, row), "feature": feature[order]})
    frame["value"] = pd.Series(value[order], dtype=object)
    frame["of"], frame["against"] = labels[c[row]], labels[k[row]]
    # Rounding may leave a variance that is 0 below it.
    return frame.assign(contribution=odds[order], sd=np.sqrt(np.maximum(variances[order], 0.0)))


def row_labels(X: object, row: np.ndarray) -> np.ndarray:
    """Return the labels of rows in the index of X; their numbers if X has none."""
    index = getattr(X, "index", None)  # The attribute `index` of a list is a method.
    return np.asarray(index.to_numpy()[row]) if isinstance(index, pd.Index) else row


def _difference(values: np.ndarray, c: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return (N, …): `values` (N, C, …) of the classes c (N,) minus those of the classes k (N,)."""
    row = np.arange(len(c))
    with np.errstate(invalid="ignore"):  # A cell that is impossible in both classes gives NaN.
        return np.asarray(values[row, c] - values[row, k])


def _word_lines(
    rows: Any, names: np.ndarray, family: Any, log_theta: Any, weight: np.ndarray, c: np.ndarray, k: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return row, name, count, contribution to the log odds, and variance, (E,) each, for the E words in the rows.

    Parameters
    ----------
    rows : rows of counts
        Rows of X.
    names : (L,) array
        Words.
    family : Dirichlet
        Posterior.
    log_theta : (C, L) array, optional
        Logarithms of the words' probabilities; default: parameters are integrated out.
    weight : (N,) array
        Weight of each row.
    c, k : (N,) int arrays
        The two classes of each row.
    """
    entries, length = rows.matrix.tocoo(), rows.length()
    row, word = entries.coords
    count = entries.data.astype(np.float64)
    alpha, total = family.concentration, family.concentration.sum(axis=1)

    def log_prob(label: np.ndarray) -> np.ndarray:
        """Return (E,) log probability of each word's count in the class `label` (N,) of the word's row."""
        if log_theta is not None:
            return np.asarray(count * log_theta[label[row], word])
        normalizer = np.asarray(log_rising(total[label], length))[row]
        return np.asarray(log_rising(alpha[label[row], word], count) - count / length[row] * normalizer)

    def variance(label: np.ndarray) -> np.ndarray:
        return np.asarray(polygamma(1, alpha[label[row], word]) - polygamma(1, total[label])[row])

    weight = weight[row]
    with np.errstate(invalid="ignore"):  # A word that is impossible in both classes gives NaN.
        odds = np.where(weight == 0, 0.0, weight * (log_prob(c) - log_prob(k)))
    value = np.array([int(x) if x == int(x) else x for x in count.tolist()], object)
    return row, names[word], value, odds, (weight * count) ** 2 * (variance(c) + variance(k))


@kernel
def _log_odds_variance(family: Any, x: tuple[object, ...], c: jax.Array, k: jax.Array) -> jax.Array:
    """Compute (n, T) posterior variances of log p(x_t | c, θ) - log p(x_t | k, θ), c and k (n,) classes of the rows."""
    return family.log_odds_of_terms(*x, c, k).variance


def _contrasts(fitted: Fitted, X: object, of: object, against: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices (N,) of the classes `of` and `against` of each row; None: the most probable other class."""
    labels = list(fitted.encoding.classes.values)
    require_two_classes(fitted, "explain")
    first = None if of is None else find_class("of", of, labels)
    second = None if against is None else find_class("against", against, labels)
    if first is not None and first == second:
        raise ValueError(f"of={shown(of)} and against={shown(against)} are the same class. Pass two classes.")
    scores = fitted.log_proba(X)
    scores = np.where(np.isnan(scores), fitted.class_log_prior, scores)  # `predict` treats undefined rows so, too.
    order = np.argsort(-scores, axis=1, kind="stable")

    def most_probable_except(excluded: int | np.ndarray) -> np.ndarray:
        return np.where(order[:, 0] == excluded, order[:, 1], order[:, 0])

    c = np.full(len(order), first) if first is not None else most_probable_except(-1 if second is None else second)
    k = np.full(len(order), second) if second is not None else most_probable_except(c)
    return c, k


def require_two_classes(fitted: Fitted, who: str) -> None:
    """Raise ValueError if a classifier has one class only; `who` is named as the caller."""
    labels = fitted.encoding.classes.values
    if len(labels) < 2:
        raise ValueError(f"{who} compares classes, but {fitted.name} has only the class {labels[0]!r}.")


def column_names(fitted: Fitted, names: Sequence[str] | None) -> list[str]:
    """Return the names of the columns of X: those given by the user, or those of the classifier."""
    if names is None:
        return fitted.encoding.feature_names
    if is_labelled(names):
        known = fitted.encoding.feature_names
        entries = match_columns("names", names, known)
        return [str(entries.get(j, name)) for j, name in enumerate(known)]
    require_iterable("names", names, "a list with one text for each column of X")
    if len(texts := [str(name) for name in names]) != fitted.encoding.n_features:
        raise ValueError(f"names has {len(texts)} entries, but X has {fitted.encoding.n_features} columns.")
    return texts


def _cell_values(columns: Columns, rows: Rows, names: np.ndarray, table: Table) -> np.ndarray:
    """Return the (N, K) cells of a block, with the cells of their parents; None where a cell counts as missing."""
    cells = table.objects(columns.index)
    if (network := columns.network) is not None:
        position = {child: g for g, (child, *_) in enumerate(network.nodes)}
        originals = cells.copy()
        for g, (_, *parents) in enumerate(network.nodes):
            for i in range(len(cells)) if parents else ():
                given = tuple((names[columns.index[position[p]]], originals[i, position[p]]) for p in parents)
                cells[i, g] = Conditional(originals[i, g], given)
    cells[np.broadcast_to(rows.missing, cells.shape)] = None
    return cells


# == Words, or levels, that are evidence for a class, with the uncertainty of their probabilities ==

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
    seed: Seed = 0,
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
    seed : int, JAX key, RandomState or Generator, default 0
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
    seed = read_seed(seed)
    fitted = require_posterior(nb, "top_words")
    require_draws(draws, 6 * len(fitted.encoding.classes), "a word")
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


def _log_beta_moments(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
        (log_a, log_b), _ = draw_variates(([part.a, part.b], []), n_draws, HostVariates(rng))
        log_theta = log_a - np.logaddexp(log_a, log_b)
        odds = log_theta[:, c] - np.logaddexp.reduce(log_weight + log_theta[:, others], axis=1)
        expected = _log_beta_moments(part.a[c], part.b[c])[0] - (log_theta[:, c] - odds).mean(axis=0)
        summaries.append(np.vstack([expected, np.quantile(odds, tails, axis=0)]))
    return np.concatenate(summaries, axis=1)


# == Value of information: expected decrease of the entropy of the class if a missing cell becomes known

# Nodes of the predictive distribution of each class, as quantiles of a standard normal variate.
_NODES = np.linspace(-5.0, 5.0, 101)
_MOST_CELLS = 2**21  # numbers in the largest arrays


def value_of_information(nb: Classifier, X: object, *, features: Iterable[str | int] | None = None) -> pd.DataFrame:
    """Compute the expected decrease of the entropy of the class if a missing cell becomes known, for each such cell.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose predictions are to become more certain.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows with missing cells.
    features : iterable of column names or indices, optional
        Columns whose missing cells can be observed; default: all.

    Returns
    -------
    DataFrame
        One line for each row and missing cell, the cells of a row sorted by `value`, largest first; empty if no cell is
        missing. Cells whose value is not a level count as missing, as in predictions.

        row
            label of the row in the index of X; its number, from 0, where X has none
        feature : str
            name of the column
        value : float
            H(class | row) - Σ_v P(v | row) H(class | row, v), in nats.
        share : float
            `value` / H(class | row); NaN where the entropy is 0.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If there is no posterior, such as for an `AODE`, which averages over other models if another cell is missing; or
        if a family of numbers has no method for its predictive distribution.
    ValueError
        If `features` names a column that X does not have.

    Notes
    -----
    All probabilities are predictive, whatever `nb.estimate` is: the answer v has P(v | row) = Σ_c P(c | row)
    p(v | c, row), and the value is the mutual information of class and answer given the row, which is not negative.
    Each cell is valued by itself: each of two redundant cells has its full value, although the second is worth little
    once the first is known. The unit is nats, not costs: see `decide` for costs.

    Levels are summed over, in structures with other missing cells summed out. Numbers are represented by 101 quantiles
    of the predictive distribution of each class, and each quantile by the mass of the numbers that are nearest to it.
    The result is within about 1e-4 nats of the integral, and exact for small counts.

    If terms are weighted, the answer is distributed by the unweighted p(v | c, row), while P(c | row) and P(c | row, v)
    are those of the weighted scores. These are not conditionals of one joint distribution, so the expected entropy may
    increase: the value is then below 0.

    The value is right *if naive Bayes holds* and cells are missing at random.

    References
    ----------
    Lindley, *On a measure of the information provided by an experiment*, Ann. Math. Statist. 27 (1956).

    Examples
    --------
    >>> from bayesnb import CategoricalNB, value_of_information
    >>> X, y = [["sun", "dry"], ["sun", "wet"], ["rain", "wet"], ["rain", "dry"]], ["out", "out", "in", "in"]
    >>> nb = CategoricalNB().fit(X, y)
    >>> value_of_information(nb, [[None, None]]).round(2)
       row feature  value  share
    0    0       0   0.13   0.19
    1    0       1   0.00   0.00
    """
    fitted = require_posterior(nb, "value_of_information")
    fitted.require_no_experts("value_of_information", "which read all cells at once.")
    encoding = fitted.encoding
    if any(encoding.repeats):
        raise NotImplementedError(
            f"value_of_information: columns of this {fitted.name} have two terms, a margin and a dependence, "
            "so that a cell has no distribution in closed form. Use a classifier without structure, or without weights."
        )
    require_proper(encoding, fitted.posterior)
    wanted = set(range(encoding.n_features)) if features is None else encoding.positions(features)
    log_proba = fitted.score(*fitted.encode(X), scoring.log_proba, "predictive")
    rows = encoding.rows(fitted.table(X), ignore_unknown)
    entropy = entr(np.exp(log_proba)).sum(axis=1)
    lines = [(np.zeros(0, int), np.zeros(0, object), np.zeros(0))]
    with progress("value of information", None, "cells") as step:
        for b, (columns, block_rows) in enumerate(zip(encoding.blocks, rows, strict=True)):
            if not isinstance(missing := block_rows.missing, np.ndarray):
                continue
            asked = [k for k in np.flatnonzero(missing.any(axis=0)).tolist() if columns.index[k] in wanted]
            compute_answers = _table_answers if columns.network is None else _node_answers
            for k, index, proba, gain in compute_answers(fitted, b, block_rows, asked):
                value = entropy[index] - _expected_entropy(log_proba[index], proba, gain)
                lines.append((index, np.full(len(index), columns.names[k], object), value))
                step(len(index))
    row, feature, value = map(np.concatenate, zip(*lines, strict=True))
    order = np.lexsort((-value, row))
    row, feature, value = row[order], feature[order], value[order]
    share = value / np.where(entropy > 0, entropy, np.nan)[row]
    return pd.DataFrame({"row": row_labels(X, row), "feature": feature, "value": value, "share": share})


# Columns k of a block, n rows in which the cell is missing, P(v | class, row) of the V values v of the cell, and the
# increase of the score of each class by v; the last two of a single row if they are the same for all rows.
Answers = Iterator[tuple[int, np.ndarray, Float[np.ndarray, "n V C"], Float[np.ndarray, "n V C"]]]


def _expected_entropy(log_proba: np.ndarray, answer_proba: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Compute (n,) Σ_v P(v | row) H(class | row, v), the expected entropy of the class in nats.

    `log_proba` (n, C) is log P(class | row), `answer_proba` (n, V, C) is P(v | class, row), and `gain` (n, V, C) the
    increase of the score of each class by v. The last two have one row if they are the same for all rows.
    """
    expected, size = [], max(1, _MOST_CELLS // max(1, gain[0].size))
    for start in range(0, len(log_proba), size):
        part = slice(start, start + size) if len(gain) > 1 else slice(None)
        log_class = log_proba[start : start + size, None]
        class_proba = np.exp(log_class)
        weight = np.sum(np.where(class_proba == 0, 0.0, class_proba * answer_proba[part]), axis=2)
        with np.errstate(invalid="ignore"):  # An answer that is impossible in every class gives NaN, and has weight 0.
            after = entr(softmax(log_class + gain[part], axis=2)).sum(axis=2)
        expected.append(np.sum(np.where(weight == 0, 0.0, weight * after), axis=1))
    return np.concatenate(expected)


def _table_answers(fitted: Fitted, b: int, rows: Any, asked: list[int]) -> Answers:
    """Yield for each `asked` column of block b, without parents, the rows that lack it and one answer for all."""
    columns, model = fitted.encoding.blocks[b], fitted.posterior
    weight = np.broadcast_to(1.0 if model.weights is None else model.weights.blocks[b], len(columns.index))
    if columns.auxiliary and asked:
        raise NotImplementedError(
            f"value_of_information: column {shown(columns.names[asked[0]])} is a count, whose distribution differs "
            "between rows by their exposure. Name other columns in features=."
        )
    distribution = _number_distribution if columns.axis()[1] is None else _level_distribution
    for k in asked:
        proba, log_prob = distribution(columns, model.blocks[b], k)
        yield k, np.flatnonzero(rows.missing[:, k]), proba[None], _raise(weight[k], log_prob)[None]


def _level_distribution(columns: Columns, family: Family, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (V, C) P(v | class) and log P(v | class) of the levels v of column k.

    A column without known levels has one answer, of probability 1.
    """
    sizes = columns.sizes()
    start = int(sizes[:k].sum())
    log_prob = scoring.plug_in(family).log_theta[:, start : start + sizes[k]].T
    # Where no level is known, every answer counts as missing: there is one answer, without information.
    log_prob = log_prob if len(log_prob) else np.zeros((1, log_prob.shape[1]))
    return np.exp(log_prob), log_prob


def _number_distribution(columns: Columns, family: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (V, C) P(v | class) and log p(v | class) of V nodes v for column k.

    The nodes are quantiles of the predictive distributions, and each stands for the numbers that are nearest to it.
    """
    column, components = family.restrict(np.arange(len(columns.index)) == k), []
    for weight, component in column.components():
        name, arguments = component.predictive_distribution()
        components.append((weight, getattr(stats, name)(**arguments)))
    nodes = np.sort(np.concatenate([component.ppf(ndtr(_NODES)).ravel() for _, component in components]))
    nodes = nodes[np.isfinite(nodes)]
    edges = 0.5 * nodes[1:] + 0.5 * nodes[:-1]
    # The mass of a count on an edge is divided equally between the two sides.
    sides = edges, np.nextafter(edges, -np.inf)
    below = sum(0.5 * weight * component.cdf(side) for weight, component in components for side in sides)
    return np.diff(below, axis=1, prepend=0.0, append=1.0).T, _log_predictive(column, nodes[:, None])[..., 0]


_raise = float64(kernel(weighted))


@float64
@kernel
def _log_predictive(family: Family, x: np.ndarray) -> jax.Array:
    """Compute (V, C, K) log predictive densities of V rows x (V, K) of K numbers."""
    return family.predictive().terms(x)


def _node_answers(fitted: Fitted, b: int, rows: Any, asked: list[int]) -> Answers:
    """Yield `Answers` for the columns `asked` of block b, which is a network, some rows at a time.

    P(v | class, row) is proportional to the joint probability of the row in which the cell is v.
    """
    columns, model = fitted.encoding.blocks[b], fitted.posterior
    encoding, n_classes, weights = replace(fitted.encoding, blocks=(columns,)), model.n_classes, model.weights
    plain = raised = NaiveBayes(Known(np.zeros((1, n_classes))), (model.blocks[b],))
    if weights is not None:
        block_weights = TermWeights(np.zeros(n_classes), (weights.blocks[b],), (weights.exponents[b],))
        raised = replace(plain, weights=block_weights)

    def score(scored_model: NaiveBayes, index: np.ndarray, child: int, level: np.ndarray | int) -> np.ndarray:
        cells = rows.replace_cells(index, child, level)
        return scoring.score(scoring.read(encoding, scored_model, "predictive"), (cells,), len(index), scoring.joint)

    for k in asked:
        child, missing = columns.network.nodes[k][0], np.flatnonzero(rows.missing[:, k])
        n_levels = int(columns.base.sizes()[child])
        if not n_levels:
            yield k, missing, np.ones((1, 1, n_classes)), np.zeros((1, 1, n_classes))
            continue
        size = max(1, _MOST_CELLS // (n_levels * max(n_classes, len(columns.index))))
        for start in range(0, len(missing), size):
            index = missing[start : start + size]
            cells = np.repeat(index, n_levels), child, np.tile(np.arange(n_levels), len(index))
            shape = len(index), n_levels, n_classes
            log_proba = log_softmax(score(plain, *cells).reshape(shape), axis=1)
            gain = log_proba
            if weights is not None:
                gain = score(raised, *cells).reshape(shape) - score(raised, index, child, MISSING)[:, None]
            yield k, index, np.exp(log_proba), gain
