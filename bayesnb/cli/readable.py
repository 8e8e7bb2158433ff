"""Tables as people read them: the digits that matter, and names that say what a number is of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from bayesnb.cli.findings import decimals
from bayesnb.cli.tables import NUMBERS
from bayesnb.cli.text import tell_apart, width
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
    """One row an estimate, without the columns that say nothing: no such rows, no evidence."""
    frame = comparison.reset_index()
    idle = {name for name in ("impossible_rows", "undefined_rows") if not frame[name].any()}
    idle |= {"log_evidence"} if frame["log_evidence"].isna().all() else set()
    return columns(frame, {name: shown for name, shown in _SCORES.items() if name not in idle})


def differences(comparison: pd.DataFrame) -> Table:
    """Paired differences from the first estimate, and their standard errors; rows as in `scores`."""
    table = [["brier difference", "clipped difference"], ["-", "-"]]
    for row in comparison[1:].to_dict("records"):
        pairs = [(row[f"{score}_difference"], row[f"{score}_difference_se"]) for score in DIFFERENCES]
        table.append([f"{mean:+.{decimals(se)}f} ± {_number(se, decimals(se))}" for mean, se in pairs])
    return table


def parameters(table: pd.DataFrame, kinds: Mapping[str, str], prob: float, room: int | None = None) -> Table:
    """Rows of a parameter table, each with the decimals that its standard deviation asks for.

    `kinds` are those of the columns. Names of features, levels and classes take at most about `room` columns of text
    together, None: all that they need.
    """
    shown = [["parameter", "cells", "MLE", "mean", "sd", f"{100 * prob:g}% interval"]]
    short = [] if room is None else _short(table, room)
    for row in table.to_dict("records"):
        digits = decimals(row["sd"])
        mle, mean, sd, lower, upper = (_number(row[name], digits) for name in ("mle", "mean", "sd", "lower", "upper"))
        shown.append([_name(row, kinds, short), f"{row['count']:,.6g}", mle, mean, sd, f"[{lower}, {upper}]"])
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


def amount(value: float) -> str:
    """Four decimals, and never 0 where there is something."""
    return "<0.0001" if 0 < value < 0.00005 else _formatted("{:.4f}", value)


def p_value(floor: float) -> Callable[[float], str]:
    """A writer of p-values of which no smaller one than `floor` can be told."""
    return lambda p: f"≤{floor:.3f}" if p <= floor * (1 + 1e-9) else _formatted("{:.3f}", p)


def _formatted(form: str, value: float) -> str:
    return "-" if math.isnan(value) else form.format(value) if math.isfinite(value) else str(value)


def _name(row: dict[Any, Any], kinds: Mapping[str, str], short: list[dict[str, str]]) -> str:
    """How the text calls a parameter."""
    feature, level, label = row["feature"], row["level"], row["class"]
    kind = kinds.get(feature)
    if short:
        feature, level, label = (of[str(part)] for of, part in zip(short, (feature, level, label), strict=True))
    if row["feature"] == CLASS:
        return f"P({label})"
    if kind == "binned":
        return f"P({feature} in {level} | {label})"
    if kind in NUMBERS:
        return f"{NUMBERS[kind].words.parameters.get(row['level'], level)}({feature} | {label})"
    return f"P({feature} | {label})" if kind == "multinomial" else f"P({feature}={level} | {label})"


def _short(table: pd.DataFrame, room: int) -> list[dict[str, str]]:
    """Of features, levels and classes: texts that share the room; what short ones leave is for the long ones."""
    texts = [[*dict.fromkeys(map(str, table[name]))] for name in _NAMED]
    widest = [max(map(width, column), default=0) for column in texts]
    found: list[dict[str, str]] = [{}] * len(texts)
    for left, i in zip(range(len(texts), 0, -1), sorted(range(len(texts)), key=lambda i: widest[i]), strict=True):
        limit = min(widest[i], max(8, room // left))
        found[i] = tell_apart(texts[i], limit)
        room -= limit
    return found


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:,.{digits}f}"


_NAMED = ("feature", "level", "class")
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
