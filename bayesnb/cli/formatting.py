"""Tables for readers: the digits that matter, and parameters under names such as P(sky=sun | yes)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from bayesnb.cli.conclusion import decimals
from bayesnb.cli.labelled_data import NUMBERS
from bayesnb.evaluation.compare import DIFFERENCES
from bayesnb.uncertainty import CLASS

if TYPE_CHECKING:
    import pandas as pd


def format_columns(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Strings for some columns of a frame, under the headings of `COLUMNS`."""
    import pandas as pd

    columns = {name: COLUMNS[name] for name in names}
    return pd.DataFrame({heading: [write(cell) for cell in frame[name]] for name, (heading, write) in columns.items()})


def format_scores(comparison: pd.DataFrame) -> pd.DataFrame:
    """Scores as strings, one row an estimate, without counts that are all zero and without an absent log evidence."""
    frame = comparison.reset_index()
    idle = {name for name in ("impossible_rows", "undefined_rows") if not frame[name].any()}
    idle |= {"log_evidence"} if frame["log_evidence"].isna().all() else set()
    return format_columns(frame, [name for name in _SCORES if name not in idle])


def format_differences(comparison: pd.DataFrame) -> pd.DataFrame:
    """Paired differences from the first estimate and their standard errors as strings, one row an estimate."""
    import pandas as pd

    columns = {}
    for score, heading in zip(DIFFERENCES, ("brier difference", "clipped difference"), strict=True):
        pairs = comparison[[f"{score}_difference", f"{score}_difference_se"]].to_numpy()[1:]
        columns[heading] = ["-", *(f"{mean:+.{decimals(se)}f} ± {_number(se, decimals(se))}" for mean, se in pairs)]
    return pd.DataFrame(columns)


def format_parameters(table: pd.DataFrame, kinds: Mapping[str, str], prob: float) -> pd.DataFrame:
    """Rows of a parameter table as strings, each with the decimals that its standard deviation asks for.

    Parameters
    ----------
    table : DataFrame
        Rows of `bayesnb.uncertainty.parameter_table`.
    kinds : dict
        Kind of each feature.
    prob : float
        Probability of the intervals.
    """
    import pandas as pd

    rows = []
    for row in table.to_dict("records"):
        digits = decimals(row["sd"])
        mle, mean, sd, lower, upper = (_number(row[name], digits) for name in ("mle", "mean", "sd", "lower", "upper"))
        rows.append([_parameter_name(row, kinds), f"{row['count']:,.6g}", mle, mean, sd, f"[{lower}, {upper}]"])
    return pd.DataFrame(rows, columns=["parameter", "cells", "MLE", "mean", "sd", f"{100 * prob:g}% interval"])


def number(form: str) -> Callable[[float], str]:
    """Formatter of numbers that writes "-" for NaN."""
    return partial(_formatted, form)


def probability(value: float) -> str:
    """Three decimals, but never 0 or 1: values that would be rounded to 0 or 1 become bounds."""
    if value < 0.0005:
        return "<0.001"
    return ">0.999" if value > 0.9995 else _formatted("{:.3f}", value)


def amount(value: float) -> str:
    """Four decimals, but never 0 for a positive value."""
    return "<0.0001" if 0 < value < 0.00005 else _formatted("{:.4f}", value)


def p_value(smallest: float) -> Callable[[float], str]:
    """Formatter of p-values that cannot be below `smallest`, which becomes a bound."""
    return lambda p: f"≤{smallest:.3f}" if p <= smallest * (1 + 1e-9) else _formatted("{:.3f}", p)


def _formatted(form: str, value: float) -> str:
    return "-" if math.isnan(value) else form.format(value) if math.isfinite(value) else str(value)


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:,.{digits}f}"


def _parameter_name(row: Mapping[Any, Any], kinds: Mapping[str, str]) -> str:
    feature, level, label = row["feature"], row["level"], row["class"]
    kind = kinds.get(feature)
    if feature == CLASS:
        return f"P({label})"
    if kind == "binned":
        return f"P({feature} in {level} | {label})"
    if kind in NUMBERS:
        return f"{NUMBERS[kind].words.parameters.get(level, level)}({feature} | {label})"
    return f"P({feature} | {label})" if kind == "multinomial" else f"P({feature}={level} | {label})"


_SCORES = ["estimate", "brier", "log_loss", "log_loss_clipped", "accuracy", "ece"]
_SCORES += ["impossible_rows", "undefined_rows", "log_evidence"]

COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "estimate": ("estimate", str),
    "brier": ("brier", number("{:.4f}")),
    "log_loss": ("log loss", number("{:.4f}")),
    "log_loss_clipped": ("clipped", number("{:.4f}")),
    "accuracy": ("accuracy", number("{:.4f}")),
    "ece": ("ece", number("{:.4f}")),
    "impossible_rows": ("impossible", number("{:,d}")),
    "undefined_rows": ("undefined", number("{:,d}")),
    "log_evidence": ("log evidence", number("{:,.1f}")),
    "row": ("row (from 0)", str),
    "truth": ("true class", str),
    "prediction": ("prediction", str),
    "probability": ("P(prediction)", probability),
    "lower": ("lower", probability),
    "upper": ("upper", probability),
    "label_changes": ("label changes", lambda changes: "yes" if changes else "no"),
    "total": ("entropy", amount),
    "aleatoric": ("aleatoric", amount),
    "epistemic": ("epistemic", amount),
    "p_top": ("p_top", probability),
    "term": ("feature", str),
    "weight": ("weight", number("{:.3f}")),
    "feature_1": ("feature", str),
    "feature_2": ("and feature", str),
    "rows": ("rows", number("{:,d}")),
    "log_bayes_factor": ("log Bayes factor", number("{:,.1f}")),
    "mutual_information": ("mutual information", number("{:.3f}")),
}
"""Heading and formatter of each column that a report shows."""
