"""Value of information: expected decrease of the entropy of the class if a missing cell becomes known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from bayesnb import scoring
from bayesnb._util.precision import float64
from bayesnb._util.progress import progress
from bayesnb.capabilities import require_capability
from bayesnb.encoding import Columns, Encoding
from bayesnb.encoding.levels import MISSING
from bayesnb.families import Known, mixture_components
from bayesnb.families.count_functions import weighted
from bayesnb.families.protocol import PredictiveDistribution
from bayesnb.fitted import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes, TermWeights
from bayesnb.prediction.explanation import row_labels
from bayesnb.uncertainty import require_proper

if TYPE_CHECKING:
    import pandas as pd

_NODES = np.linspace(-5.0, 5.0, 101)
"""Nodes of the predictive distribution of each class, as quantiles of a standard normal variate."""
_MOST_CELLS = 2**21  # numbers in the largest arrays


def value_of_information(nb: Classifier, X: object, *, features: Iterable[Any] | None = None) -> pd.DataFrame:
    """Compute the expected decrease of the entropy of the class if a missing cell becomes known, for each such cell.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose prediction is to become surer.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows with missing cells.
    features : iterable of column names or indices, optional
        Columns whose missing cells can be asked for; default: all.

    Returns
    -------
    DataFrame
        One line for each row and missing cell, the most valuable of a row first; empty if no cell is missing. Cells
        whose value is no level count as missing, as in predictions.

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
        If there is no posterior, as for `AODE`, which averages over other models where another cell is missing; or if
        a family of numbers has no method for its predictive distribution.
    ValueError
        If there is no such feature.

    Notes
    -----
    All probabilities are predictive, whatever `nb.estimate` is: the answer v has P(v | row) = Σ_c P(c | row)
    p(v | c, row), and the value is the mutual information of class and answer given the row, which is not negative.
    Each cell is valued by itself: two redundant cells have their full value each, and the second is worth little once
    the first is known. The unit is nats, not costs: see `decide` for costs.

    Levels are summed over, in structures with other missing cells summed out. Numbers are represented by 101 quantiles
    of the predictive distribution of each class, and each quantile by the mass of the numbers that are nearest to it.
    The result is within about 1e-4 nats of the integral, and exact for small counts.

    Where terms are weighted the answer is still distributed as the features are, by the plain p(v | c, row), while
    P(c | row) and P(c | row, v) are those of the weighted scores. They are not conditionals of one joint distribution,
    so that the entropy of `predict_proba` may be expected to rise: the value is then below 0.

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
    import pandas as pd
    from scipy.special import entr

    fitted = require_posterior(nb, "value_of_information")
    encoding = fitted.encoding
    if any(encoding.repeats):
        raise NotImplementedError(
            f"value_of_information: a column of this {fitted.name} has a margin and a dependence on its parents, and "
            "what its cell may be has no closed form. A structure without weights whose columns are all categorical, "
            "or a classifier without structure, has one."
        )
    require_proper(encoding, fitted.posterior)
    wanted = encoding.positions(range(encoding.n_features) if features is None else features)
    log_proba = fitted.score(X, scoring.log_proba, "predictive")
    rows = encoding.rows(fitted.table(X), lambda columns, unknown: None)
    entropy = entr(np.exp(log_proba)).sum(axis=1)
    lines: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = [(np.zeros(0, int), np.zeros(0, object), np.zeros(0))]
    with progress("value of information", None, "cells") as step:
        for b, (columns, block_rows) in enumerate(zip(encoding.blocks, rows, strict=True)):
            for k, index, answers in _missing_cells(fitted, b, block_rows, wanted):
                value = entropy[index] - _expected_entropy(log_proba[index], answers)
                lines.append((index, np.full(len(index), columns.names[k], object), value))
                step(len(index))
    row, feature, value = map(np.concatenate, zip(*lines, strict=True))
    order = np.lexsort((-value, row))
    row, feature, value = row[order], feature[order], value[order]
    share = value / np.where(entropy > 0, entropy, np.nan)[row]
    return pd.DataFrame({"row": row_labels(X, row), "feature": feature, "value": value, "share": share})


class _Answers(NamedTuple):
    """Distribution of the V possible values of a cell, for n rows; n = 1 if all rows have the same.

    Parameters
    ----------
    proba : (n, V, C) array
        P(v | class, row).
    gain : (n, V, C) array
        Increase of the score of each class by the value v.
    """

    proba: Float[np.ndarray, "n V C"]
    gain: Float[np.ndarray, "n V C"]


def _expected_entropy(log_proba: np.ndarray, answers: _Answers) -> np.ndarray:
    """Compute (n,) Σ_v P(v | row) H(class | row, v)."""
    from scipy.special import entr, softmax

    proba, expected = np.exp(log_proba), []
    size = max(1, _MOST_CELLS // max(1, answers.gain[0].size))
    for start in range(0, len(proba), size):
        part = slice(start, start + size)
        answer_proba, gain = (v if len(v) == 1 else v[part] for v in answers)
        class_proba = proba[part, None]
        weight = np.sum(np.where(class_proba == 0, 0.0, class_proba * answer_proba), axis=2)
        with np.errstate(invalid="ignore"):  # An answer that is impossible in every class gives NaN, and has weight 0.
            after = entr(softmax(log_proba[part, None] + gain, axis=2)).sum(axis=2)
        expected.append(np.sum(np.where(weight == 0, 0.0, weight * after), axis=1))
    return np.concatenate(expected)


def _missing_cells(fitted: Fitted, b: int, rows: Any, wanted: set[int]) -> Iterator[tuple[int, np.ndarray, _Answers]]:
    """Yield columns of block b, the rows in which the cell of the column is missing, and the cell's distribution."""
    columns, model, missing = fitted.encoding.blocks[b], fitted.posterior, rows.missing
    if missing is False:
        return
    asked = [k for k in np.flatnonzero(missing.any(axis=0)).tolist() if columns.index[k] in wanted]
    if columns.network is not None:
        for k in asked:
            yield from _node_answers(fitted.encoding, model, b, rows, k, np.flatnonzero(missing[:, k]))
        return
    family, weight = model.blocks[b], 1.0 if model.weights is None else model.weights.blocks[b]
    weight = np.broadcast_to(weight, len(columns.index))
    distributions = _number_distributions if columns.axis()[1] is None else _level_distributions
    for k, (proba, log_prob) in zip(asked, distributions(columns, family, asked), strict=True):
        answers = _Answers(proba[None], _weight_log_prob(weight[k], log_prob)[None])
        yield k, np.flatnonzero(missing[:, k]), answers


def _level_distributions(columns: Columns, family: Any, asked: list[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (V, C) P(v | class) and log P(v | class) of the levels v of each column in `asked`."""
    log_theta, sizes = scoring.plug_in(family).log_theta, columns.sizes()
    end = np.cumsum(sizes)
    for k in asked:
        log_prob = log_theta[:, end[k] - sizes[k] : end[k]].T
        # Where no level is known, every answer counts as missing: there is one answer, without information.
        log_prob = log_prob if len(log_prob) else np.zeros((1, len(log_theta)))
        yield np.exp(log_prob), log_prob


def _number_distributions(columns: Columns, family: Any, asked: list[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (V, C) P(v | class) and log p(v | class) of V nodes v for each column in `asked`.

    The nodes are quantiles of the predictive distributions, and each stands for the numbers that are nearest to it.
    """
    from scipy import stats
    from scipy.special import ndtr

    for k in asked:
        column, components = family.restrict(np.arange(len(columns.index)) == k), []
        for weight, component in mixture_components(column):
            name, arguments = require_capability(component, PredictiveDistribution).predictive_distribution()
            components.append((weight, getattr(stats, name)(**arguments)))
        nodes = np.sort(np.concatenate([component.ppf(ndtr(_NODES)).ravel() for _, component in components]))
        nodes = nodes[np.isfinite(nodes)]
        edges = 0.5 * nodes[1:] + 0.5 * nodes[:-1]
        # The mass of a count on an edge is divided equally between the two sides.
        sides = edges, np.nextafter(edges, -np.inf)
        below = sum(0.5 * weight * component.cdf(side) for weight, component in components for side in sides)
        yield np.diff(below, axis=1, prepend=0.0, append=1.0).T, _log_predictive(column, nodes[:, None])[..., 0]


@float64
@jax.jit
def _weight_log_prob(weight: Any, log_prob: Any) -> Any:
    return weighted(weight, log_prob)


@float64
@jax.jit
def _log_predictive(family: Any, x: Any) -> Any:
    return family.predictive().terms(x)


def _node_answers(
    encoding: Encoding, model: NaiveBayes, b: int, rows: Any, k: int, asked: np.ndarray
) -> Iterator[tuple[int, np.ndarray, _Answers]]:
    """Yield the missing cells of column k of a network and their distributions, some rows at a time.

    P(v | class, row) is proportional to the joint probability of the row in which the cell is v.
    """
    from scipy.special import log_softmax

    columns, n_classes = encoding.blocks[b], model.n_classes
    child = columns.network.nodes[k][0]
    n_levels = int(columns.base.sizes()[child])
    if not n_levels:
        nothing = np.zeros((1, 1, n_classes))
        yield k, asked, _Answers(np.exp(nothing), nothing)
        return
    block_encoding = replace(encoding, blocks=(columns,))
    plain, weighted_model = _block_models(model, b)

    def score(scored_model: NaiveBayes, index: np.ndarray, level: Any) -> np.ndarray:
        cells = rows.replace_cells(index, child, level)
        return scoring.score_rows(block_encoding, scored_model, (cells,), len(index), "predictive", scoring.joint)

    size = max(1, _MOST_CELLS // max(1, n_levels * max(n_classes, len(columns.index))))
    for start in range(0, len(asked), size):
        index = asked[start : start + size]
        repeated, level = np.repeat(index, n_levels), np.tile(np.arange(n_levels), len(index))
        shape = len(index), n_levels, n_classes
        log_proba = log_softmax(score(plain, repeated, level).reshape(shape), axis=1)
        gain = log_proba
        if weighted_model is not None:
            without = score(weighted_model, index, MISSING)[:, None]
            gain = score(weighted_model, repeated, level).reshape(shape) - without
        yield k, index, _Answers(np.exp(log_proba), gain)


def _block_models(model: NaiveBayes, b: int) -> tuple[NaiveBayes, NaiveBayes | None]:
    """Return models of block b under equal class probabilities: without weights, and with weights if there are any."""
    log_class = np.zeros((1, model.n_classes))
    plain = NaiveBayes(Known(log_class), (model.blocks[b],))
    if (weights := model.weights) is None:
        return plain, None
    return plain, replace(plain, weights=TermWeights(log_class[0], (weights.blocks[b],), (weights.exponents[b],)))
