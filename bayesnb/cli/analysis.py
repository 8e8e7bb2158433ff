"""The posterior analysis of a data set, for the page and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from bayesnb import plots
from bayesnb.checking import check_independence
from bayesnb.cli.job import Outcome, Settings, split
from bayesnb.evaluation import reliability
from bayesnb.uncertainty import ImproperPosteriorError, decompose_uncertainty, predict_interval

if TYPE_CHECKING:
    import pandas as pd

_PAIRS = 200  # of so many as are shown, if there are more than
_MOST_PAIRS = 2000


@dataclass(frozen=True, eq=False)
class Analysis:
    """Tables and figures by name: "reliability", "parameters", "rows", "pairs"."""

    tables: dict[str, pd.DataFrame]
    figures: dict[str, Any]
    notes: Sequence[str]


def analyse(outcome: Outcome, settings: Settings) -> Analysis:
    """What the page shows beside the comparison."""
    nb, data = outcome.nb, outcome.data
    tables: dict[str, Any] = {}
    figures: dict[str, Any] = {}
    notes: list[str] = []
    try:
        rows, log_proba, truth = _held_out(outcome, settings)
        confidence = reliability(log_proba, truth, nb.classes_)
        tables["rows"] = rows
        figures["reliability"] = plots.detach(plots.reliability(confidence))
    except ImproperPosteriorError as error:
        notes.append(f"No uncertainty of rows. {error}")
    if outcome.parameters is not None:
        tables["parameters"] = _moved(outcome.parameters)
        figures["parameters"] = plots.detach(plots.shrinkage(nb, prob=settings.prob))
        figures["rows"] = plots.detach(plots.prediction_intervals(nb, data.X, data.y, prob=settings.prob))
    n = len(data.kinds)
    if n < 2:
        return Analysis(tables, figures, notes)
    try:
        pairs = check_independence(nb, data.X, data.y, top=_PAIRS if n * (n - 1) / 2 > _MOST_PAIRS else None)
        tables["pairs"] = pairs
        if len(pairs):
            figures["pairs"] = plots.detach(plots.independence(pairs))
    except (NotImplementedError, ImproperPosteriorError) as error:
        notes.append(f"No check of independence. {error}")
    return Analysis(tables, figures, notes)


def _held_out(outcome: Outcome, settings: Settings) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """The held-out rows, the most uncertain first; their log probabilities and labels."""
    import pandas as pd

    data, parts, scores, truths = outcome.data, [], [], []
    for train, test in split(data.y, settings)[0]:
        nb = clone(outcome.nb).fit(data.X.iloc[train], data.y[train])
        X, y = data.X.iloc[test], data.y[test]
        log_proba = nb.predict_log_proba(X)
        lower, upper = predict_interval(nb, X, prob=settings.prob)
        top = log_proba.argmax(axis=1)
        at = np.arange(len(test)), top
        parts.append(
            pd.DataFrame(
                {
                    "row": test,
                    "truth": y,
                    "prediction": nb.classes_[top],
                    "probability": np.exp(log_proba[at]),
                    "lower": lower[at],
                    "upper": upper[at],
                }
            ).join(decompose_uncertainty(nb, X).reset_index(drop=True))
        )
        scores.append(_on_classes(nb, log_proba, outcome.nb.classes_))
        truths.append(y)
    rows = pd.concat(parts).sort_values("epistemic", ascending=False, kind="stable").reset_index(drop=True)
    return rows, np.concatenate(scores), np.concatenate(truths)


def _on_classes(nb: Any, log_proba: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Columns for all classes: a fold may lack one."""
    out = np.full((len(log_proba), len(classes)), -np.inf)
    out[:, [list(classes).index(c) for c in nb.classes_]] = log_proba
    return out


def _moved(parameters: pd.DataFrame) -> pd.DataFrame:
    """Parameters whose posterior mean lies farthest from the maximum likelihood estimate, in posterior sds."""
    table = parameters.drop(columns=["map"]).assign(moved=(parameters["mean"] - parameters["mle"]) / parameters["sd"])
    table = table[np.isfinite(table["moved"])]
    return table.reindex(table["moved"].abs().sort_values(ascending=False, kind="stable").index)
