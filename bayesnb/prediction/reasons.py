"""Reasons: what each feature of a row adds to the log odds of one class against another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb import scoring
from bayesnb._util.arguments import require_iterable, shown
from bayesnb._util.pair_counts import require_memory
from bayesnb._util.precision import float64
from bayesnb._util.warnings import warn
from bayesnb.encoding import Columns, Conditional, Rows, Table
from bayesnb.families.powers import of_length
from bayesnb.families.protocol import Cumulants
from bayesnb.fitted import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes, TermWeights
from bayesnb.uncertainty.by_blocks import proper_posterior
from bayesnb.uncertainty.proper import CLASS
from bayesnb.uncertainty.score_cumulants import class_cumulants

if TYPE_CHECKING:
    import pandas as pd


def explain(
    nb: Classifier, X: Any, of: Any = None, against: Any = None, *, names: Sequence[str] | None = None
) -> pd.DataFrame:
    """What each feature of a row adds to the log odds of one class against another, and how sure that is.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    X : (N, F) rows
    of, against : labels, optional
        The two classes, for all rows. Default: the most probable class but the other one; so without both of them the
        class that is predicted, against the runner-up.
    names : (F,) texts, optional
        What to call the columns of X, such as the words of a sparse matrix, `bag.get_feature_names_out()`.

    Returns
    -------
    DataFrame
        One line a row and feature: the classes first, then the features by the size of their contribution.

        row
            label of the row in the index of X; its number, from 0, where X has none
        feature : str
            A column; of counts that share a simplex (`MultinomialNB`) a word that the row has; "(class)" for what is
            said before any feature, by how often the classes are.
        value
            the cell; None where it counts as missing. Of a column with parents also what these are, as in
            `parameter_table`; of a word how often it occurs.
        of, against
            labels
        contribution : float
            E[log p(x_f | of, θ) - log p(x_f | against, θ) | data], in nats, times the weight of the term where terms
            are weighted; above 0 it speaks for `of`. 0 of a missing cell.
        sd : float
            Posterior standard deviation of that, over the parameters.

    Warns
    -----
    UserWarning
        If contributions to a row add up to log odds for the other class than `predict_proba` has, see Notes.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If there is no posterior, as of `AODE`; if a row of a network has missing cells with observed descendants.
    ValueError
        If `of` or `against` is no class, or both are the same; if `names` are not as many as columns.

    Notes
    -----
    Given the class features are independent, so that log odds are a sum: with ψ the digamma function, and weights w,

        E[log P(c | x, θ)/P(k | x, θ)] = ψ(α_c) - ψ(α_k) + b_c - b_k + Σ_f w_f E[log p(x_f | c, θ)/p(x_f | k, θ)].

    Contributions of a row add up to the mean that `log_odds_moments(nb, X, against)` has, and as the parameters of
    features are independent given the data, so do squares of `sd` to the square of its sd. Words share probabilities:
    each has the sd of its own contribution, they have negative covariances, and the root of the sum of squares is a
    bound from above; `log_odds_moments` is exact.

    `predict_proba` averages over the parameters, and these are averages of logarithms: with many rows the two log odds
    are near each other, and with few they are not, Gaussian ones least of all, as what is not known of a variance makes
    a density of heavy tails. Where they are for different classes a warning says so; what adds up to `predict_proba`
    itself, without an sd, is `terms(nb, X)`.

    A contribution says what the model makes of a cell, *if naive Bayes holds*: features that say the same are each
    counted in full (`WeightedNB` counts them for less), and none of it is what would happen were the cell another one.
    Its sd says what the data leave open about the parameters, weights taken for known. Missing cells of a network with
    observed descendants are summed out, and a logarithm of a sum has no parts; `terms` shares it out.

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
    0    0  (class)  None  out      in           0.0  0.89
    1    0        0   sun  out      in           1.5  1.21
    2    0        1   wet  out      in          -0.5  0.69
    """
    import pandas as pd

    fitted = require_posterior(nb, "explain")
    model, encoding = proper_posterior(fitted), fitted.encoding
    called = _names(fitted, names)
    table = fitted.table(X)
    require_memory(
        table.n_rows * (encoding.n_terms + 1) * len(encoding.classes),
        f"Contributions of {encoding.n_terms:,} columns to {table.n_rows:,} rows",
        "Take some of the rows at a time.",
    )
    c, k, odds = _contrasts(fitted, X, of, against)
    rows = encoding.rows(table, lambda columns, unknown: None)
    _require_no_sums(rows)
    parts = [_of_classes(model, c, k)]
    for b, (columns, own) in enumerate(zip(encoding.blocks, rows, strict=True)):
        of_block = _of_words if columns.one_simplex else _of_columns
        block = _Block(columns, own, model.blocks[b], table, [called[j] for j in columns.index], model.n_classes)
        parts.append(of_block(block, _weights_of(model.weights, b), c, k))
    lines = _Lines(*(np.concatenate(field) for field in zip(*parts, strict=True)))
    _warn_of_other_signs(np.bincount(lines.row, lines.contribution), odds, fitted.estimate, X)
    of_features = np.arange(len(lines.row)) >= table.n_rows
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


def row_labels(X: Any, row: np.ndarray) -> np.ndarray:
    """Labels of rows in the index of X, where it has one; else their numbers."""
    import pandas as pd

    index = getattr(X, "index", None)  # of a list it is a method
    return index.to_numpy()[row] if isinstance(index, pd.Index) else row


class _Lines(NamedTuple):
    """Lines of the table, (E,) each."""

    row: np.ndarray
    feature: np.ndarray
    value: np.ndarray
    contribution: np.ndarray
    variance: np.ndarray


class _Block(NamedTuple):
    """A block of columns: its rows, its posterior laid out for the kernels, and what its columns are called."""

    columns: Columns
    rows: Rows
    family: Any
    table: Table
    names: list[str]
    n_classes: int


class _Powers(NamedTuple):
    """Of the terms of a block: w, (T,) or (), and β where w is times (t + 1)^-β."""

    power: Any
    exponent: Any


def _weights_of(weights: TermWeights | None, b: int) -> _Powers:
    return _Powers(1.0, None) if weights is None else _Powers(weights.blocks[b], weights.exponents[b])


def _of_classes(model: NaiveBayes, c: np.ndarray, k: np.ndarray) -> _Lines:
    """What is said of each row before any feature."""
    found = _class_cumulants(replace(model, blocks=(), weights=None))
    bias = 0.0 if model.weights is None else np.asarray(model.weights.class_bias)
    mean = found.mean + bias
    nothing, every = np.full(len(c), None), np.arange(len(c))
    with np.errstate(invalid="ignore"):  # of two impossible classes
        odds = mean[c] - mean[k]
    return _Lines(every, np.full(len(c), CLASS, object), nothing, odds, found.variance[c] + found.variance[k])


def _of_columns(block: _Block, weights: _Powers, c: np.ndarray, k: np.ndarray) -> _Lines:
    """A line for each column and row."""
    n, width = len(c), len(block.names)

    def answer(x: tuple[Any, ...], *classes: np.ndarray) -> jax.Array:
        return _log_odds(block.family, *x, *classes)

    found = scoring.map_rows((block.rows,), n, answer, c, k, cells=block.n_classes * width)
    mean, variance = found[:, 0] * weights.power, found[:, 1] * np.square(weights.power)
    names = np.array(block.names, object)
    return _Lines(
        np.repeat(np.arange(n), width), np.tile(names, n), _values(block).ravel(), mean.ravel(), variance.ravel()
    )


def _of_words(block: _Block, weights: _Powers, c: np.ndarray, k: np.ndarray) -> _Lines:
    """A line for each word of each row: w x_l log θ_cl/θ_kl."""
    rows: Any = block.rows
    entries, level = rows.matrix.tocoo(), _level_cumulants(block.family)
    row, word = entries.coords
    count = entries.data.astype(np.float64)
    factor = count * of_length(rows.length(), *weights)[row]
    mean = level.mean[c[row], word] - level.mean[k[row], word]
    variance = level.variance[c[row], word] + level.variance[k[row], word]
    value = np.array([int(x) if x == int(x) else x for x in count.tolist()], object)
    return _Lines(row, np.array(block.names, object)[word], value, factor * mean, factor**2 * variance)


@float64
@jax.jit
def _class_cumulants(model: NaiveBayes) -> Cumulants:
    return class_cumulants(model.class_prior, jnp.zeros(model.n_classes))


@float64
@jax.jit
def _level_cumulants(family: Any) -> Cumulants:
    return family.cumulants_of_levels()


@jax.jit
def _log_odds(family: Any, x: Any, c: jax.Array, k: jax.Array) -> jax.Array:
    """(n, 2, T) mean and variance of log p(x_t | c, θ) - log p(x_t | k, θ)."""
    found = family.log_odds_of_terms(x, c, k)
    return jnp.stack([found.mean, found.variance], axis=1)


def _warn_of_other_signs(total: np.ndarray, odds: np.ndarray, estimate: str, X: Any) -> None:
    """Of rows whose mean log odds (N,) and the log odds (N,) of the prediction are for different classes."""
    if (apart := total * odds < 0).any():
        first = row_labels(X, np.flatnonzero(apart))[0]
        warn(
            f"explain: the contributions to {int(apart.sum())} of {len(apart)} rows (first: row {first}) add up to log "
            f"odds for the other class than predict_proba has by the estimate {estimate!r}: they are means of log odds "
            "over the posterior. terms(nb, X) has parts that add up to predict_proba."
        )


def _contrasts(fitted: Fitted, X: Any, of: Any, against: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(N,) indices of the two classes that each row is about, and the log odds of the prediction."""
    labels = fitted.encoding.classes.values
    if len(labels) < 2:
        raise ValueError(f"explain is about one class against another, and {fitted.name} knows {labels[0]!r} only.")
    first, second = (_index_of(name, label, labels) for name, label in (("of", of), ("against", against)))
    if first is not None and first == second:
        raise ValueError(f"of={shown(of)} and against={shown(against)} are one class; give two of {list(labels)[:12]}.")
    scores = fitted.log_proba(X)
    scores = np.where(np.isnan(scores), fitted.class_log_prior, scores)  # as `predict` has it
    order = np.argsort(-scores, axis=1, kind="stable")

    def likeliest(but: Any) -> np.ndarray:
        return np.where(order[:, 0] == but, order[:, 1], order[:, 0])

    c = np.full(len(order), first) if first is not None else likeliest(-1 if second is None else second)
    k = np.full(len(order), second) if second is not None else likeliest(c)
    each = np.arange(len(order))
    with np.errstate(invalid="ignore"):  # of two impossible classes
        return c, k, scores[each, c] - scores[each, k]


def _index_of(name: str, label: Any, labels: Sequence[Hashable]) -> int | None:
    if label is None:
        return None
    if not (isinstance(label, Hashable) and label in dict.fromkeys(labels)):
        raise ValueError(f"{name}={shown(label)} is no class; nb.classes_ is {shown(list(labels))}.")
    return list(labels).index(label)


def _names(fitted: Fitted, names: Any) -> list[str]:
    """What to call the columns of X, in their order."""
    if names is None:
        return fitted.encoding.feature_names
    require_iterable("names", names, "a text for each column of X")
    found = [str(name) for name in names]
    if len(found) != fitted.encoding.n_features:
        raise ValueError(f"names has {len(found)} entries, and X has {fitted.encoding.n_features} columns.")
    return found


def _require_no_sums(rows: tuple[Rows, ...]) -> None:
    """Refuse rows of networks in which something is summed out: the logarithm of a sum has no parts."""
    for own in rows:
        if np.any(own.summed):
            raise NotImplementedError(
                f"explain: row {int(np.argmax(own.summed))} has a missing cell on an arc (the first of "
                f"{int(np.sum(own.summed))} such rows), and the sum over what it may be is no sum of contributions; "
                "`terms(nb, X)` shares it out between the columns, without sd."
            )


def _values(block: _Block) -> np.ndarray:
    """(N, K) the cells as they came, with those of their parents; None where one counts as missing."""
    columns = block.columns
    cells = block.table.objects(columns.index)
    if (network := columns.network) is not None:
        at = {child: g for g, (child, *_) in enumerate(network.nodes)}
        own = cells.copy()
        for g, (_, *parents) in enumerate(network.nodes):
            for i in range(len(cells)) if parents else ():
                given = tuple((block.names[at[p]], own[i, at[p]]) for p in parents)
                cells[i, g] = Conditional(own[i, g], given)
    cells[np.broadcast_to(block.rows.missing, cells.shape)] = None
    return cells
