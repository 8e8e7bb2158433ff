"""Value of information: by how much the answer to a missing cell is expected to lower the entropy of the class."""

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
from bayesnb.prediction.reasons import row_labels
from bayesnb.uncertainty import require_proper

if TYPE_CHECKING:
    import pandas as pd

_QUANTILES = np.linspace(-5.0, 5.0, 101)
"""Of a standard normal variate: where the predictive distribution of each class has nodes."""
_ROOM = 2**21  # numbers of the largest arrays


def value_of_information(nb: Classifier, X: Any, *, features: Iterable[Any] | None = None) -> pd.DataFrame:
    """Which missing cell to ask for: the expected fall of the entropy of the class, for each of them.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    X : (N, F) rows
    features : iterable of column names or indices, optional
        Those that can be asked for; default: all.

    Returns
    -------
    DataFrame
        One line a row and missing cell, the most valuable of a row first; empty if no cell is missing. Cells whose
        value is no level count as missing, as in predictions.

        row
            label of the row in the index of X; its number, from 0, where X has none
        feature
            str
        value : float
            H(class | row) - Σ_v P(v | row) H(class | row, v), in nats.
        share : float
            Of H(class | row), what `value` is; NaN where that is 0.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If there is no posterior, as of `AODE`, whose average is over other models where another cell is missing; or if
        a family of numbers does not say what its predictive distribution is.
    ValueError
        If there is no such feature.

    Notes
    -----
    All by the predictive, whatever `nb.estimate` is: the answer v has P(v | row) = Σ_c P(c | row) p(v | c, row), and
    the value is the mutual information of class and answer given the row, which is not negative. Each cell is asked by
    itself: of two that say the same each has its full value, and the second is worth little once the first is known.
    It counts nats, not costs: see `decide` for these.

    Levels are summed over, in structures with other missing cells summed out. Numbers are put at 101 quantiles of the
    predictive distribution of each class, each with the mass that every class has nearer to it than to the others:
    within about 1e-4 of a nat of the integral, and the sum itself where counts are small.

    Where terms are weighted the answer is still distributed as the features are, by the plain p(v | c, row), while
    P(c | row) and P(c | row, v) are those of the weighted scores. These do not fit together as parts of one joint
    distribution do, and the entropy of `predict_proba` may be expected to rise: a value below 0.

    It is what the model expects, *if naive Bayes holds* and cells are missing at random.

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
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = [(np.zeros(0, int), np.zeros(0, object), np.zeros(0))]
    with progress("value of information", None, "cells") as step:
        for b, (columns, own) in enumerate(zip(encoding.blocks, rows, strict=True)):
            for k, which, answers in _answers(fitted, b, own, wanted):
                value = entropy[which] - _expected_entropy(log_proba[which], answers)
                found.append((which, np.full(len(which), columns.names[k], object), value))
                step(len(which))
    row, feature, value = map(np.concatenate, zip(*found, strict=True))
    order = np.lexsort((-value, row))
    row, feature, value = row[order], feature[order], value[order]
    share = value / np.where(entropy > 0, entropy, np.nan)[row]
    return pd.DataFrame({"row": row_labels(X, row), "feature": feature, "value": value, "share": share})


class _Answers(NamedTuple):
    """What a cell may be, for n rows or, if it is the same for all, for one.

    Parameters
    ----------
    share : (n, V, C) array
        P(v | class, row).
    gain : (n, V, C) array
        What the answer adds to the score of each class.
    """

    share: Float[np.ndarray, "n V C"]
    gain: Float[np.ndarray, "n V C"]


def _expected_entropy(log_proba: np.ndarray, answers: _Answers) -> np.ndarray:
    """(n,) Σ_v P(v | row) H(class | row, v)."""
    from scipy.special import entr, softmax

    proba, found = np.exp(log_proba), []
    size = max(1, _ROOM // max(1, answers.gain[0].size))
    for start in range(0, len(proba), size):
        part = slice(start, start + size)
        share, gain = (v if len(v) == 1 else v[part] for v in answers)
        own = proba[part, None]
        weight = np.sum(np.where(own == 0, 0.0, own * share), axis=2)
        with np.errstate(invalid="ignore"):  # an answer that is impossible in every class
            after = entr(softmax(log_proba[part, None] + gain, axis=2)).sum(axis=2)
        found.append(np.sum(np.where(weight == 0, 0.0, weight * after), axis=1))
    return np.concatenate(found)


def _answers(fitted: Fitted, b: int, rows: Any, wanted: set[int]) -> Iterator[tuple[int, np.ndarray, _Answers]]:
    """Of the columns of a block: which, rows in which the cell is missing, and what it may be there."""
    columns, model, missing = fitted.encoding.blocks[b], fitted.posterior, rows.missing
    if missing is False:
        return
    asked = [k for k in np.flatnonzero(missing.any(axis=0)).tolist() if columns.index[k] in wanted]
    if columns.network is not None:
        for k in asked:
            yield from _of_node(fitted.encoding, model, b, rows, k, np.flatnonzero(missing[:, k]))
        return
    family, weight = model.blocks[b], 1.0 if model.weights is None else model.weights.blocks[b]
    weight = np.broadcast_to(weight, len(columns.index))
    each = (_of_numbers if columns.axis()[1] is None else _of_levels)(columns, family, asked)
    for k, (share, log_prob) in zip(asked, each, strict=True):
        answers = _Answers(share[None], _weighted(weight[k], log_prob)[None])
        yield k, np.flatnonzero(missing[:, k]), answers


def _of_levels(columns: Columns, family: Any, asked: list[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(V, C) P(v | class) and its logarithm of the levels v of each column."""
    log_theta, sizes = scoring.plug_in(family).log_theta, columns.sizes()
    end = np.cumsum(sizes)
    for k in asked:
        own = log_theta[:, end[k] - sizes[k] : end[k]].T
        # Where no level is known every answer counts as missing: one answer, that tells nothing.
        own = own if len(own) else np.zeros((1, len(log_theta)))
        yield np.exp(own), own


def _of_numbers(columns: Columns, family: Any, asked: list[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(V, C) P(v | class) and log p(v | class) of nodes v, quantiles of the predictive distributions of each column.

    A node stands for all numbers that are nearer to it than to others.
    """
    from scipy import stats
    from scipy.special import ndtr

    for k in asked:
        own, parts = family.restrict(np.arange(len(columns.index)) == k), []
        for share, component in mixture_components(own):
            name, arguments = require_capability(component, PredictiveDistribution).predictive_distribution()
            parts.append((share, getattr(stats, name)(**arguments)))
        nodes = np.sort(np.concatenate([part.ppf(ndtr(_QUANTILES)).ravel() for _, part in parts]))
        nodes = nodes[np.isfinite(nodes)]
        edges = 0.5 * nodes[1:] + 0.5 * nodes[:-1]
        # Of a count on an edge one half is on either side.
        sides = edges, np.nextafter(edges, -np.inf)
        below = sum(0.5 * share * part.cdf(side) for share, part in parts for side in sides)
        yield np.diff(below, axis=1, prepend=0.0, append=1.0).T, _predictive(own, nodes[:, None])[..., 0]


@float64
@jax.jit
def _weighted(weight: Any, log_prob: Any) -> Any:
    return weighted(weight, log_prob)


@float64
@jax.jit
def _predictive(family: Any, x: Any) -> Any:
    return family.predictive().terms(x)


def _of_node(
    encoding: Encoding, model: NaiveBayes, b: int, rows: Any, k: int, asked: np.ndarray
) -> Iterator[tuple[int, np.ndarray, _Answers]]:
    """The same of a column of a network, some rows at a time: P(v | class, row) is the share of rows with v in it."""
    from scipy.special import log_softmax

    columns, n_classes = encoding.blocks[b], model.n_classes
    child = columns.network.nodes[k][0]
    n_levels = int(columns.base.sizes()[child])
    if not n_levels:
        nothing = np.zeros((1, 1, n_classes))
        yield k, asked, _Answers(np.exp(nothing), nothing)
        return
    alone = replace(encoding, blocks=(columns,))
    plain, powered = _alone(model, b)

    def score(of: NaiveBayes, which: np.ndarray, level: Any) -> np.ndarray:
        cells = rows.replace_cells(which, child, level)
        return scoring.score_rows(alone, of, (cells,), len(which), "predictive", scoring.joint)

    size = max(1, _ROOM // max(1, n_levels * max(n_classes, len(columns.index))))
    for start in range(0, len(asked), size):
        which = asked[start : start + size]
        every, level = np.repeat(which, n_levels), np.tile(np.arange(n_levels), len(which))
        shape = len(which), n_levels, n_classes
        log_share = log_softmax(score(plain, every, level).reshape(shape), axis=1)
        gain = log_share
        if powered is not None:
            without = score(powered, which, MISSING)[:, None]
            gain = score(powered, every, level).reshape(shape) - without
        yield k, which, _Answers(np.exp(log_share), gain)


def _alone(model: NaiveBayes, b: int) -> tuple[NaiveBayes, NaiveBayes | None]:
    """Block b by itself, all classes alike: without weights, and with them if there are any."""
    same = np.zeros((1, model.n_classes))
    plain = NaiveBayes(Known(same), (model.blocks[b],))
    if (weights := model.weights) is None:
        return plain, None
    return plain, replace(plain, weights=TermWeights(same[0], (weights.blocks[b],), (weights.exponents[b],)))
