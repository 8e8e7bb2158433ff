"""Tables as people read them: the digits that matter, and names that say what a number is of."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from bayesnb.cli.tables import NUMBERS, Dataset
from bayesnb.evaluation.compare import DIFFERENCES
from bayesnb.uncertainty import CLASS

if TYPE_CHECKING:
    import pandas as pd

# Rows of cells, the header first.
Table = list[list[str]]
# Of each column to show: its heading, and how its cells are written.
Columns = dict[str, tuple[str, Callable[[Any], str]]]


def columns(frame: pd.DataFrame, shown: Columns) -> Table:
    """Some columns of a frame."""
    cells = [[write(cell) for cell in frame[name]] for name, (_, write) in shown.items()]
    return [[title for title, _ in shown.values()], *map(list, zip(*cells, strict=True))]


def scores(comparison: pd.DataFrame) -> Table:
    """One row an estimate."""
    return columns(comparison.reset_index(), _SCORES)


def differences(comparison: pd.DataFrame) -> Table:
    """Paired differences from the first estimate, and their standard errors; rows as in `scores`."""
    table = [["brier difference", "clipped difference"], ["-", "-"]]
    for row in comparison[1:].to_dict("records"):
        pairs = [(row[f"{score}_difference"], row[f"{score}_difference_se"]) for score in DIFFERENCES]
        table.append([f"{mean:+.{_digits(se)}f} ± {_number(se, _digits(se))}" for mean, se in pairs])
    return table


def parameters(table: pd.DataFrame, data: Dataset, prob: float) -> Table:
    """Rows of a parameter table, each with the decimals that its standard deviation asks for."""
    shown = [["parameter", "cells", "MLE", "mean", "sd", f"{100 * prob:g}% interval"]]
    for row in table.to_dict("records"):
        digits = _digits(row["sd"])
        mle, mean, sd, lower, upper = (_number(row[name], digits) for name in ("mle", "mean", "sd", "lower", "upper"))
        shown.append([_name(row, data), f"{row['count']:,.6g}", mle, mean, sd, f"[{lower}, {upper}]"])
    return shown


def beside(*tables: Table) -> Table:
    """Tables of as many rows as one."""
    return [[*chain(*rows)] for rows in zip(*tables, strict=True)]


def number(form: str) -> Callable[[float], str]:
    """A writer of numbers: "-" where there is none."""
    return partial(_formatted, form)


def probability(value: float) -> str:
    """Three decimals, never 0 or 1: what rounds to these is told apart from them."""
    if value < 0.0005:
        return "<0.001"
    return ">0.999" if value > 0.9995 else _formatted("{:.3f}", value)


def _formatted(form: str, value: float) -> str:
    return "-" if math.isnan(value) else form.format(value) if math.isfinite(value) else str(value)


def _name(row: dict[Any, Any], data: Dataset) -> str:
    """How the text calls a parameter."""
    feature, level, label = row["feature"], row["level"], row["class"]
    if feature == CLASS:
        return f"P({label})"
    kind = data.kinds[feature]
    if kind == "binned":
        return f"P({feature} in {level} | {label})"
    if kind in NUMBERS:
        return f"{NUMBERS[kind].words.parameters.get(level, level)}({feature} | {label})"
    return f"P({feature} | {label})" if kind == "multinomial" else f"P({feature}={level} | {label})"


def _digits(sd: float) -> int:
    """Decimals that show two digits of the standard deviation."""
    if not (math.isfinite(sd) and sd > 0):
        return 4
    return min(12, max(0, 1 - math.floor(math.log10(sd))))


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:,.{digits}f}"


_SCORES: Columns = {
    "estimate": ("estimate", str),
    "brier": ("brier", number("{:.4f}")),
    "log_loss": ("log loss", number("{:.4f}")),
    "log_loss_clipped": ("clipped", number("{:.4f}")),
    "accuracy": ("accuracy", number("{:.4f}")),
    "ece": ("ece", number("{:.4f}")),
    "impossible_rows": ("impossible", number("{:,d}")),
    "undefined_rows": ("undefined", number("{:,d}")),
    "log_evidence": ("log evidence", number("{:,.1f}")),
}
