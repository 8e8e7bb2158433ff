"""Scores of predicted class probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import pandas as pd

from bayesnb._util.arguments import require_choice, require_integer, shown
from bayesnb.encoding import Levels
from bayesnb.encoding.table import require_present

_CLIP = 1e-15
_BINS = 15
_ROUNDING = 1e-6


def scores(log_proba: Any, y: object, classes: object, predicted: Any = None) -> dict[str, float]:
    r"""Compute Brier score, log losses, accuracy and calibration error of predicted class probabilities.

    Parameters
    ----------
    log_proba : (N, C) array or DataFrame
        Log probabilities of the classes; NaN in rows where they are undefined. The columns of a DataFrame are matched
        by name if their names are the classes.
    y : (N,) array-like
        True labels. A label that is not in `classes` has probability zero.
    classes : (C,) array-like
        Label of each column.
    predicted : (N,) array-like, optional
        Predicted labels. Default: the most probable class, and no prediction (an error) in undefined rows.

    Returns
    -------
    dict
        With p_i the probabilities of row i, 1/C each where they are undefined, and t_i its true class:

        brier
            mean of Σ_c (p_ic - [c = t_i])², from 0 to 2.
        log_loss
            mean of -log p_i(t_i), in nats; inf if a row is impossible, else NaN if one is undefined.
        log_loss_clipped
            log loss with probabilities of at least 1e-15.
        accuracy
            share of rows whose predicted label is the true one.
        confidence
            mean of max_c p_ic, the accuracy that the probabilities state.
        ece
            expected calibration error, Σ_b n_b/N · \|accuracy - confidence\| over the 15 bins of
            `reliability`.
        impossible_rows
            number of rows whose true class has probability zero.
        undefined_rows
            number of rows without probabilities.

    Raises
    ------
    ValueError
        If the shapes do not agree or no row is given; if a label is missing; if a value of `log_proba` is above 0, for
        example because probabilities were passed.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb.evaluation import scores
    >>> found = scores(np.log([[0.9, 0.1], [0.6, 0.4]]), ["no", "yes"], ["no", "yes"])
    >>> {name: round(found[name], 3) for name in ("brier", "log_loss", "accuracy", "confidence", "ece")}
    {'brier': 0.37, 'log_loss': 0.511, 'accuracy': 0.5, 'confidence': 0.75, 'ece': 0.35}
    """
    return summarize(score_rows(log_proba, y, classes, predicted))


def reliability(
    log_proba: Any,
    y: object,
    classes: object,
    bins: int = _BINS,
    *,
    predicted: Any = None,
    strategy: Literal["uniform", "quantile"] = "uniform",
) -> pd.DataFrame:
    """Compare stated and observed accuracy in bins of the top probability, the table behind a reliability diagram.

    Parameters
    ----------
    log_proba : (N, C) array or DataFrame
        Log probabilities of the classes; an undefined row, NaN, states 1/C. The columns of a DataFrame are matched by
        name if their names are the classes.
    y : (N,) array-like
        True labels. A label that is not in `classes` has probability zero.
    classes : (C,) array-like
        Label of each column.
    bins : int, default 15
        Number of bins.
    predicted : (N,) array-like, optional
        Predicted labels. Default: the most probable class, and no prediction (an error) in undefined rows.
    strategy : {"uniform", "quantile"}, default "uniform"
        How the bins are chosen, as in `sklearn.calibration.calibration_curve`. "uniform": bins of equal width,
        (0, 1/bins], (1/bins, 2/bins], … "quantile": bins with equal numbers of rows, between quantiles of the top
        probabilities; the better choice where most rows have a top probability near 1. Rows with the same top
        probability are in the same bin, so there can be fewer bins than `bins`.

    Returns
    -------
    DataFrame
        One row for each bin that is not empty: lower and upper end, count of rows, confidence (mean top
        probability) and accuracy (share of the rows that are right). Weighted by count, the gaps between
        confidence and accuracy add up to `ece` of `scores` (at 15 bins of equal width). The accuracy of a bin of n
        rows has a standard error of up to 1/(2√n).

    Raises
    ------
    ValueError
        If `bins` is not a positive integer; if `strategy` is neither "uniform" nor "quantile"; for the reasons of
        `scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb.evaluation import reliability
    >>> log_proba = np.log([[0.9, 0.1], [0.8, 0.2], [0.85, 0.15], [0.4, 0.6]])
    >>> reliability(log_proba, ["no", "no", "yes", "yes"], ["no", "yes"], bins=2)
       lower  upper  count  confidence  accuracy
    0    0.5    1.0      4      0.7875      0.75
    >>> reliability(log_proba, ["no", "no", "yes", "yes"], ["no", "yes"], bins=2, strategy="quantile")
       lower  upper  count  confidence  accuracy
    0  0.600  0.825      2       0.700       1.0
    1  0.825  0.900      2       0.875       0.5
    """
    require_integer("bins", bins)
    require_choice("strategy", strategy, ("uniform", "quantile"))
    rows = score_rows(log_proba, y, classes, predicted)
    levels = np.linspace(0, 1, int(bins) + 1)
    edges = levels if strategy == "uniform" else np.percentile(rows.top, 100 * levels)
    count, top, correct = _binned(rows, edges)
    filled = count > 0
    frame = {"lower": edges[:-1], "upper": edges[1:], "count": count}
    with np.errstate(invalid="ignore"):
        frame |= {"confidence": top / count, "accuracy": correct / count}
    return pd.DataFrame({name: values[filled] for name, values in frame.items()})


@dataclass(frozen=True, eq=False)
class RowScores:
    """Scores of the predictions of each of N rows.

    Parameters
    ----------
    brier : (N,) array
    log_true : (N,) array
        Log probability of the true class; -inf where it is impossible, -log C where it is undefined.
    top : (N,) array
        The largest probability of the row.
    correct, undefined : (N,) arrays of bool
    """

    brier: np.ndarray
    log_true: np.ndarray
    top: np.ndarray
    correct: np.ndarray
    undefined: np.ndarray

    @property
    def log_loss_clipped(self) -> np.ndarray:
        """(N,) log loss of each row in nats, with probabilities of at least 1e-15."""
        return -np.maximum(self.log_true, np.log(_CLIP))


def score_rows(log_proba: Any, y: Any, classes: Any, predicted: Any = None) -> RowScores:
    """Score each row by its true label: Brier score, log probability of the label, top probability, and whether right.

    Arguments and errors are those of `scores`.
    """
    levels = Levels(tuple(classes))
    names, positions = list(getattr(log_proba, "columns", ())), list(range(len(levels)))
    log_proba = np.asarray(log_proba, dtype=np.float64)
    named = levels.index(names)
    if names != positions and sorted(named) == positions:  # Names 0, 1, … are those of columns without names.
        log_proba = log_proba[:, np.argsort(named)]
    shape = (len(y), len(levels))
    if log_proba.shape != shape or not len(y):
        wanted = f"{len(y)} labels, of which there must be one, and {len(levels)} classes need {shape}"
        raise ValueError(f"log_proba has shape {log_proba.shape}; {wanted}.")
    if (above := log_proba > _ROUNDING).any():
        i, c = (int(at[0]) for at in np.nonzero(above))
        raise ValueError(
            f"log_proba of row {i} and class {shown(levels.values[c])} is {log_proba[i, c]:.4g}; logarithms of "
            "probabilities are at most 0. Pass what predict_log_proba returns, or np.log of probabilities."
        )
    true = levels.index(y)
    require_present(y, np.flatnonzero(true < 0))
    undefined = np.isnan(log_proba).any(axis=1)
    log_proba = np.where(undefined[:, None], -np.log(len(levels)), log_proba)
    proba = np.exp(log_proba)
    known = true >= 0
    chosen = np.where(undefined, -1, np.argmax(proba, axis=1)) if predicted is None else levels.index(predicted)
    hit = true[:, None] == np.arange(len(levels))
    return RowScores(
        brier=np.sum((proba - hit) ** 2, axis=1) + ~known,
        log_true=np.where(known, log_proba[np.arange(len(true)), np.maximum(true, 0)], -np.inf),
        top=proba.max(axis=1),
        correct=(chosen == true) & known,
        undefined=undefined,
    )


def summarize(rows: RowScores) -> dict[str, float]:
    """Return the dict of `scores`: means over the rows, calibration error, numbers of impossible and undefined rows.

    The log loss is in nats: inf if a row is impossible, else NaN if one is undefined.
    """
    impossible = np.isneginf(rows.log_true)
    strict = -np.mean(rows.log_true) if impossible.any() or not rows.undefined.any() else np.nan
    _, top, correct = _binned(rows, np.linspace(0, 1, _BINS + 1))
    return {
        "brier": float(np.mean(rows.brier)),
        "log_loss": float(strict),
        "log_loss_clipped": float(np.mean(rows.log_loss_clipped)),
        "accuracy": float(np.mean(rows.correct)),
        "confidence": float(np.mean(rows.top)),
        "ece": float(np.abs(correct - top).sum() / len(rows.top)),
        "impossible_rows": int(impossible.sum()),
        "undefined_rows": int(rows.undefined.sum()),
    }


def pool(parts: Sequence[RowScores]) -> RowScores:
    """Concatenate the scores of several sets of rows into one object."""
    return RowScores(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(RowScores)))


def average(parts: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each score over several sets of rows; an infinite strict log loss outweighs NaN."""
    mean = {name: float(np.mean([part[name] for part in parts])) for name in parts[0]}
    if any(part["log_loss"] == np.inf for part in parts):
        mean["log_loss"] = np.inf
    return mean


def _binned(rows: RowScores, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bin rows by top probability; return (B,) numbers of rows, sums of top probabilities and numbers of correct rows.

    `edges` are the B + 1 ends of the bins in ascending order. A bin contains its upper end, and the first bin both.
    """
    at = np.searchsorted(edges[1:-1], rows.top)
    count, top, correct = (np.bincount(at, weights=w, minlength=len(edges) - 1) for w in (None, rows.top, rows.correct))
    return count, top, correct
