"""Contributions of the features of a row to the log odds of one class against another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb import scoring
from bayesnb._util.arguments import require_iterable, shown
from bayesnb._util.level_pair_counts import require_memory
from bayesnb._util.precision import float64
from bayesnb.capabilities import require_capability
from bayesnb.encoding import Columns, Conditional, Rows, Table
from bayesnb.families.protocol import Cumulants, LogOddsCumulants
from bayesnb.families.special import log_rising
from bayesnb.families.weighted_likelihoods import power_of_length
from bayesnb.fitted import Classifier, Fitted, require_posterior
from bayesnb.model import Estimate, NaiveBayes
from bayesnb.uncertainty import CLASS
from bayesnb.uncertainty.row_draws import padded_posterior
from bayesnb.uncertainty.score_moments import class_cumulants

if TYPE_CHECKING:
    import pandas as pd


def explain(
    nb: Classifier, X: object, of: Any = None, against: object = None, *, names: Sequence[str] | None = None
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
    names : (F,) texts, optional
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
        If there is no posterior, as for `AODE`; if a row of a network has missing cells with observed descendants.
    ValueError
        If `of` or `against` is no class, or both are the same; if the number of `names` is not that of the columns.

    Notes
    -----
    Given the class, features are independent, so that log odds are a sum. With the terms ℓ_cf(x) = log p(x_f | c, D) of
    `terms(nb, X)`, their weights w and the biases b of classes,

        log P(c | x)/P(k | x) = log π_c/π_k + b_c - b_k + Σ_f w_f [ℓ_cf(x) - ℓ_kf(x)].

    The contributions to a row, that of the class prior among them, add up to the log odds of `nb.predict_proba`. Words
    share probabilities, and under the predictive a word that occurs again counts for more: word l with count x_l in a
    row of t words has the term log Γ(α_l + x_l)/Γ(α_l) minus the fraction x_l/t of log Γ(α_0 + t)/Γ(α_0).

    As the parameters of features are independent given the data, squares of `sd` add up to the square of the sd of
    `log_odds_moments(nb, X, against)`. Words have negative covariances: the root of the sum of squares is then an upper
    bound, and `log_odds_moments` is exact. The mean of `log_odds_moments` differs from the sum of the contributions, as
    the predictive averages over the parameters before the logarithm is taken. With few rows the difference is large,
    most of all for numbers, as an unknown variance gives the predictive heavy tails.

    A contribution is the evidence of a cell *if naive Bayes holds*: redundant features are each counted in full
    (`WeightedNB` counts them for less). A contribution does not say how the prediction would change with the cell. The
    sd is the uncertainty about the parameters, with weights taken for known. Missing cells of a network with observed
    descendants are summed out, and the logarithm of a sum has no contributions; `terms` divides the logarithm equally.

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
    import pandas as pd

    fitted = require_posterior(nb, "explain")
    posterior, encoding = padded_posterior(fitted), fitted.encoding
    column_names = _column_names(fitted, names)
    table = fitted.table(X)
    n = table.n_rows
    require_memory(
        n * (encoding.n_terms + 1) * len(encoding.classes),
        f"Contributions of {encoding.n_terms:,} columns to {n:,} rows",
        "Take some of the rows at a time.",
    )
    c, k = _contrasts(fitted, X, of, against)
    rows = encoding.rows(table, lambda columns, unknown: None)  # Predictions have warned of unknown values.
    _require_no_sums(rows)
    model, reading = fitted.read()
    odds = _difference(scoring.terms_of_rows(encoding, model, rows, n, reading), c, k)
    log_class = np.broadcast_to(scoring.log_class(model, reading), (n, len(encoding.classes)))
    all_lines = [_class_lines(posterior, _difference(log_class, c, k), c, k)]
    first = 0
    for b, (columns, block_rows) in enumerate(zip(encoding.blocks, rows, strict=True)):
        block = _Block(
            columns, block_rows, posterior.blocks[b], [column_names[j] for j in columns.index], posterior.n_classes
        )
        if (weights := posterior.weights) is not None:
            block = block._replace(power=weights.blocks[b], exponent=weights.exponents[b])
        if columns.one_simplex:
            all_lines.append(_word_lines(block, model.blocks[b], reading, c, k))
        else:
            all_lines.append(_column_lines(block, odds[:, first : first + len(columns.index)], table, c, k))
        first += len(columns.term_names)
    lines = _merge(_Lines(*(np.concatenate(field) for field in zip(*all_lines, strict=True))))
    of_features = np.arange(len(lines.row)) >= n
    order = np.lexsort((-abs(lines.contribution), of_features, lines.row))
    row, feature, value, contribution, variance = (field[order] for field in lines)
    labels = encoding.classes.array()
    return pd.DataFrame(
        {
            "row": row_labels(X, row),
            "feature": feature,
            "value": pd.Series(value, dtype=object),
            "of": labels[c[row]],
            "against": labels[k[row]],
            "contribution": contribution,
            # Rounding may leave a variance that is 0 below it.
            "sd": np.sqrt(np.maximum(variance, 0.0)),
        }
    )


def row_labels(X: object, row: np.ndarray) -> np.ndarray:
    """Return the labels of rows in the index of X; their numbers if X has none."""
    import pandas as pd

    index = getattr(X, "index", None)  # The attribute `index` of a list is a method.
    return np.asarray(index.to_numpy()[row]) if isinstance(index, pd.Index) else row


class _Lines(NamedTuple):
    """Columns of the table of contributions, (E,) each."""

    row: np.ndarray
    feature: np.ndarray
    value: np.ndarray
    contribution: np.ndarray
    variance: np.ndarray


def _merge(lines: _Lines) -> _Lines:
    """Add up lines of the same row and column: a column may be in several blocks."""
    names = {name: i for i, name in enumerate(dict.fromkeys(lines.feature))}
    key = lines.row * len(names) + np.array([names[name] for name in lines.feature])
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    if len(first) == len(lines.row):
        return lines
    sums = (np.bincount(group, field) for field in (lines.contribution, lines.variance))
    merged = _Lines(lines.row[first], lines.feature[first], lines.value[first], *sums)
    order = np.argsort(first)
    return _Lines(*(field[order] for field in merged))


class _Block(NamedTuple):
    """Block of columns with its encoded rows.

    Parameters
    ----------
    columns : Columns
        Encoding of the block.
    rows : Rows
        Rows of X, encoded.
    posterior : family
        Posterior of the block, padded for kernels.
    names : list of str
        Names of the columns.
    n_classes : int
        Number of classes, C.
    power : () or (T,) array
        Weights of the terms; those of rows of t draws are multiplied by (t + 1)^-`exponent`, too.
    exponent : float or None
        Exponent of the length.
    """

    columns: Columns
    rows: Rows
    posterior: Any
    names: list[str]
    n_classes: int
    power: Any = 1.0
    exponent: Any = None


def _difference(values: np.ndarray, c: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return (N, …) values (N, C, …) of the classes c (N,) minus those of the classes k (N,)."""
    row = np.arange(len(c))
    with np.errstate(invalid="ignore"):  # A cell that is impossible in both classes gives NaN.
        return np.asarray(values[row, c] - values[row, k])


def _class_lines(posterior: NaiveBayes, odds: np.ndarray, c: np.ndarray, k: np.ndarray) -> _Lines:
    """Return one line for each row, with the log odds of the classes before any feature."""
    n, variance = len(c), _class_variance(replace(posterior, blocks=(), weights=None))
    return _Lines(np.arange(n), np.full(n, CLASS, object), np.full(n, None), odds, variance[c] + variance[k])


def _column_lines(block: _Block, odds: np.ndarray, table: Table, c: np.ndarray, k: np.ndarray) -> _Lines:
    """Return one line for each row and column, from the contributions `odds` (N, K)."""
    n, width = odds.shape

    def answer(x: tuple[Any, ...], *classes: np.ndarray) -> jax.Array:
        values: jax.Array = _log_odds_variance(block.posterior, *x, *classes)
        return values

    variance = scoring.map_rows((block.rows,), n, answer, c, k, cells=block.n_classes * width)
    variance = variance * np.square(block.power)
    names = np.tile(np.array(block.names, object), n)
    return _Lines(
        np.repeat(np.arange(n), width), names, _cell_values(block, table).ravel(), odds.ravel(), variance.ravel()
    )


def _word_lines(block: _Block, family: Any, reading: Estimate, c: np.ndarray, k: np.ndarray) -> _Lines:
    """Return one line for each word of each row; `family` is the posterior, and `reading` the estimate in use."""
    rows: Any = block.rows
    entries, length, level = rows.matrix.tocoo(), rows.length(), _level_cumulants(block.posterior)
    row, word = entries.coords
    count = entries.data.astype(np.float64)
    if reading == "predictive":
        alpha = np.asarray(family.concentration)
        total = alpha.sum(axis=1)

        def log_prob(label: np.ndarray) -> np.ndarray:
            normalizer = _log_rising(total[label], length)[row]
            return np.asarray(_log_rising(alpha[label[row], word], count) - count / length[row] * normalizer)
    else:
        log_theta = np.asarray(_plugged_in(family, reading).log_theta)

        def log_prob(label: np.ndarray) -> np.ndarray:
            return np.asarray(count * log_theta[label[row], word])

    power = power_of_length(length, block.power, block.exponent)[row]
    with np.errstate(invalid="ignore"):  # A word that is impossible in both classes gives NaN.
        odds = np.where(power == 0, 0.0, power * (log_prob(c) - log_prob(k)))
    variance = level.variance[c[row], word] + level.variance[k[row], word]
    value = np.array([int(x) if x == int(x) else x for x in count.tolist()], object)
    return _Lines(row, np.array(block.names, object)[word], value, odds, (power * count) ** 2 * variance)


def _log_rising(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Compute log Γ(a + x)/Γ(a)."""
    return scoring.map_rows((), len(a), lambda _, *parts: _rising(*parts), a, x)


_rising = jax.jit(log_rising)


@float64
@jax.jit(static_argnames="reading")
def _plugged_in(family: Any, reading: Estimate) -> Any:
    return family.mode() if reading == "map" else family.mean()


@float64
@jax.jit
def _class_variance(model: NaiveBayes) -> jax.Array:
    variance: jax.Array = class_cumulants(model.class_prior, jnp.zeros(model.n_classes)).variance
    return variance


@float64
@jax.jit
def _level_cumulants(family: Any) -> Cumulants:
    cumulants: Cumulants = family.cumulants_of_levels()
    return cumulants


@jax.jit
def _log_odds_variance(family: Any, x: Any, c: jax.Array, k: jax.Array) -> jax.Array:
    """Compute the (n, T) variance of log p(x_t | c, θ) - log p(x_t | k, θ)."""
    variance: jax.Array = require_capability(family, LogOddsCumulants).log_odds_of_terms(x, c, k).variance
    return variance


def _contrasts(fitted: Fitted, X: object, of: Any, against: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices (N,) of the two classes that are compared in each row."""
    labels = fitted.encoding.classes.values
    if len(labels) < 2:
        raise ValueError(f"explain is about one class against another, and {fitted.name} knows {labels[0]!r} only.")
    first, second = (_class_index(name, label, labels) for name, label in (("of", of), ("against", against)))
    if first is not None and first == second:
        raise ValueError(f"of={shown(of)} and against={shown(against)} are one class; give two of {list(labels)[:12]}.")
    scores = fitted.log_proba(X)
    scores = np.where(np.isnan(scores), fitted.class_log_prior, scores)  # `predict` treats undefined rows so, too.
    order = np.argsort(-scores, axis=1, kind="stable")

    def most_probable_except(excluded: Any) -> np.ndarray:
        return np.where(order[:, 0] == excluded, order[:, 1], order[:, 0])

    c = np.full(len(order), first) if first is not None else most_probable_except(-1 if second is None else second)
    k = np.full(len(order), second) if second is not None else most_probable_except(c)
    return c, k


def _class_index(name: str, label: Any, labels: Sequence[Hashable]) -> int | None:
    """Return the index of a class; raise ValueError, which names the argument `name`, if there is no such class."""
    if label is None:
        return None
    if not (isinstance(label, Hashable) and label in dict.fromkeys(labels)):
        raise ValueError(f"{name}={shown(label)} is no class; nb.classes_ is {shown(list(labels))}.")
    return list(labels).index(label)


def _column_names(fitted: Fitted, names: Any) -> list[str]:
    """Return the names of the columns of X: those given by the user, or those of the classifier."""
    if names is None:
        return fitted.encoding.feature_names
    require_iterable("names", names, "a text for each column of X")
    texts = [str(name) for name in names]
    if len(texts) != fitted.encoding.n_features:
        raise ValueError(f"names has {len(texts)} entries, and X has {fitted.encoding.n_features} columns.")
    return texts


def _require_no_sums(rows: tuple[Rows, ...]) -> None:
    """Raise NotImplementedError if a missing cell of a network is summed out: the logarithm of a sum has no parts."""
    for block_rows in rows:
        if np.any(block_rows.summed):
            raise NotImplementedError(
                f"explain: row {int(np.argmax(block_rows.summed))} has a missing cell on an arc (the first of "
                f"{int(np.sum(block_rows.summed))} such rows), and the sum over what it may be is no sum of "
                "contributions; `terms(nb, X)` shares it out between the columns, without sd."
            )


def _cell_values(block: _Block, table: Table) -> np.ndarray:
    """Return the (N, K) cells of X, with the cells of their parents; None where a cell counts as missing."""
    columns = block.columns
    cells = table.objects(columns.index)
    if (network := columns.network) is not None:
        position = {child: g for g, (child, *_) in enumerate(network.nodes)}
        originals = cells.copy()
        for g, (_, *parents) in enumerate(network.nodes):
            for i in range(len(cells)) if parents else ():
                given = tuple((block.names[position[p]], originals[i, position[p]]) for p in parents)
                cells[i, g] = Conditional(originals[i, g], given)
    cells[np.broadcast_to(block.rows.missing, cells.shape)] = None
    return cells
