"""Tables for readers: the digits that matter, and parameters under names such as P(sky=sun | yes)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from bayesnb.cli.conclusion import decimals
from bayesnb.cli.labelled_data import NUMBERS
from bayesnb.evaluation import DIFFERENCES
from bayesnb.uncertainty import CLASS


def format_columns(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Format the columns `names` of a frame as strings, under headings for readers.

    Probabilities and weights have three decimals, scores and entropies four, log evidences and log Bayes factors one,
    counts none; other cells are written by `str`. NaN is "-".
    """
    columns = {name: [_FORMATS.get(name, str)(cell) for cell in frame[name]] for name in names}
    return pd.DataFrame(columns).rename(columns=lambda name: _HEADINGS.get(name, name.replace("_", " ")))


def format_scores(comparison: pd.DataFrame) -> pd.DataFrame:
    """Format scores as strings, one row an estimate; counts that are all zero and absent evidences are dropped."""
    frame = comparison.reset_index()
    idle = {name for name in ("impossible_rows", "undefined_rows") if not frame[name].any()}
    idle |= {"log_evidence"} if frame["log_evidence"].isna().all() else set()
    return format_columns(frame, [name for name in _SCORES if name not in idle])


def format_differences(comparison: pd.DataFrame) -> pd.DataFrame:
    """Format paired differences from the first estimate as strings "mean ± se", one row an estimate."""
    columns = {}
    for score, heading in zip(DIFFERENCES, ("brier difference", "clipped difference"), strict=True):
        _, *pairs = comparison[[f"{score}_difference", f"{score}_difference_se"]].to_numpy()
        texts = (f"{mean:+.{decimals(se)}f} ± {number(f',.{decimals(se)}f')(se)}" for mean, se in pairs)
        columns[heading] = ["-", *texts]
    return pd.DataFrame(columns)


def format_parameters(table: pd.DataFrame, kinds: Mapping[str, str], prob: float) -> pd.DataFrame:
    """Rows of a parameter table as strings, each with the decimals that show two digits of its standard deviation.

    Parameters
    ----------
    table : DataFrame
        Rows of `bayesnb.uncertainty.parameter_table`.
    kinds : dict
        Kind of each feature.
    prob : float
        Probability of the intervals.
    """
    rows = []
    for row in table.to_dict("records"):
        write = number(f",.{decimals(row['sd'])}f")
        mle, mean, sd, lower, upper = (write(row[name]) for name in ("mle", "mean", "sd", "lower", "upper"))
        rows.append([_parameter_name(row, kinds), f"{row['count']:,.6g}", mle, mean, sd, f"[{lower}, {upper}]"])
    return pd.DataFrame(rows, columns=["parameter", "cells", "MLE", "mean", "sd", f"{100 * prob:g}% interval"])


def number(form: str) -> Callable[[float], str]:
    """Return a function that formats a number by the format `form`, and NaN as "-"."""
    return lambda value: "-" if math.isnan(value) else format(value, form)


def probability(value: float) -> str:
    """Format a probability with three decimals; values that would round to 0 or 1 become "<0.001" or ">0.999"."""
    return "<0.001" if value < 0.0005 else ">0.999" if value > 0.9995 else number(".3f")(value)


def p_value(smallest: float) -> Callable[[float], str]:
    """Return a function that formats p-values with three decimals; those at `smallest` become a bound "≤…"."""
    return lambda p: f"≤{smallest:.3f}" if p <= smallest * (1 + 1e-9) else number(".3f")(p)


def _parameter_name(row: Mapping[Any, Any], kinds: Mapping[str, str]) -> str:
    """Name a parameter for readers, such as P(sky=sun | yes), from its row of the parameter table."""
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

_HEADINGS = {"log_loss_clipped": "clipped", "impossible_rows": "impossible", "undefined_rows": "undefined"}
_HEADINGS |= {"row": "row (from 0)", "truth": "true class", "probability": "P(prediction)", "total": "entropy"}
_HEADINGS |= {"term": "feature", "feature_1": "feature", "feature_2": "and feature", "p_top": "p_top"}
_HEADINGS |= {"log_bayes_factor": "log Bayes factor"}
_FORMATS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys((*_SCORES[1:6], "total", "aleatoric", "epistemic"), number(".4f")),
    **dict.fromkeys(("impossible_rows", "undefined_rows", "rows"), number(",d")),
    **dict.fromkeys(("log_evidence", "log_bayes_factor"), number(",.1f")),
    **dict.fromkeys(("weight", "mutual_information"), number(".3f")),
    **dict.fromkeys(("probability", "lower", "upper", "p_top"), probability),
    "label_changes": lambda changes: "yes" if changes else "no",
}
