"""Value of information: expected decrease of the entropy of the class if a missing cell becomes known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats
from scipy.special import entr, log_softmax, ndtr, softmax

from bayesnb._util.precision import float64
from bayesnb._util.terminal import progress
from bayesnb.encoding import Columns, ignore_unknown
from bayesnb.encoding.levels import MISSING
from bayesnb.families import Family, Known
from bayesnb.families.arrays import kernel
from bayesnb.families.rows import weighted
from bayesnb.fitted import scoring
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes, TermWeights
from bayesnb.prediction.explanation import row_labels
from bayesnb.uncertainty import require_proper

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
    distribution = _number_distribution if columns.axis()[1] is None else _level_distribution
    for k in asked:
        proba, log_prob = distribution(columns, model.blocks[b], k)
        yield k, np.flatnonzero(rows.missing[:, k]), proba[None], _raise(weight[k], log_prob)[None]


def _level_distribution(columns: Columns, family: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
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

    def score(scored_model: NaiveBayes, index: np.ndarray, child: int, level: Any) -> np.ndarray:
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
