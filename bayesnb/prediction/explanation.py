"""Contributions of the features of a row to the log odds of one class against another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import pandas as pd
from scipy.special import polygamma

from bayesnb._util.arguments import find_class, require_iterable, shown
from bayesnb._util.arrays import require_memory
from bayesnb.encoding import Columns, Conditional, Rows, Table, ignore_unknown
from bayesnb.encoding.table import is_labelled, match_columns
from bayesnb.families.arrays import kernel
from bayesnb.families.averaged import power_of_length
from bayesnb.families.special import log_rising
from bayesnb.fitted import scoring
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.uncertainty import CLASS
from bayesnb.uncertainty.row_draws import padded_posterior


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
def _log_odds_variance(family: Any, x: tuple[Any, ...], c: jax.Array, k: jax.Array) -> jax.Array:
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
