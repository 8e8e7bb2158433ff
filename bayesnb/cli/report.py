"""What came out, as text for a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb.cli.job import Outcome
from bayesnb.cli.tables import KINDS, Dataset
from bayesnb.cli.text import WIDTH, enumerate_names, fill, grid
from bayesnb.uncertainty import CLASS

if TYPE_CHECKING:
    import pandas as pd

_SCORES = {
    "brier": ("brier", "{:.4f}"),
    "log_loss": ("log loss", "{:.4f}"),
    "log_loss_clipped": ("clipped", "{:.4f}"),
    "accuracy": ("accuracy", "{:.4f}"),
    "ece": ("ece", "{:.4f}"),
    "impossible_rows": ("impossible", "{:,d}"),
    "undefined_rows": ("undefined", "{:,d}"),
    "log_evidence": ("log evidence", "{:,.1f}"),
}

GUIDE = (
    "Scores are means over rows that the fit did not see. brier leads: 0 is best, equal probabilities of C "
    "classes give 1 - 1/C. log loss (nats) is inf where a true class got probability zero: an impossible row; "
    "clipped takes such probabilities for 1e-15. Undefined rows have no probabilities: brier, clipped and ece "
    "count 1/C for each class. ece: gap between stated confidence and observed accuracy.",
    "Log evidence: log probability of all rows, parameters integrated out. It compares priors on the same rows; "
    "Gaussian and Poisson priors take their scale from these rows, so it is evidence given that prior.",
    "sd and interval say what the rows leave unknown about a parameter if naive Bayes holds. They shrink as rows "
    "come, also where the model is wrong, and are not the probability that a prediction is right: accuracy and "
    "ece on held-out rows speak of that.",
)


def describe(outcome: Outcome, prob: float) -> str:
    """All that is printed for one data set."""
    data = outcome.data
    parts = [
        _title(data, type(outcome.nb).__name__),
        _columns(data),
        fill(f"Scores ({outcome.held_out}); log evidence of all {len(data.y):,} rows{_priors(outcome)}:"),
        _comparison(outcome.comparison),
        "",
    ]
    if outcome.uncertain is not None:
        parts += [
            fill(f"The most uncertain parameters, fitted to all {len(data.y):,} rows ({_unit(data)}):"),
            _parameters(outcome.uncertain, data, prob),
            "",
        ]
    parts += [fill(f"note: {note}", rest="      ") for note in outcome.notes]
    return "\n".join(parts).rstrip() + "\n"


def guide() -> str:
    """What the numbers do and do not mean."""
    return "\n".join(["How to read this", *(fill(text, "  ") for text in GUIDE)])


def _priors(outcome: Outcome) -> str:
    """What the rows of further priors are."""
    names = [name for name in outcome.comparison.index if name.startswith("alpha=")]
    return f"; {', '.join(names)}: the predictive under that prior" if names else ""


def _title(data: Dataset, classifier: str) -> str:
    labels, counts = np.unique(data.y, return_counts=True)
    classes = [f"{labels[i]} {counts[i]:,}" for i in np.argsort(-counts, kind="stable")]
    features = f"{len(data.kinds)} feature{'s' * (len(data.kinds) != 1)}"
    text = (
        f"{data.name}: {classifier} on {len(data.y):,} rows, {features}, {len(labels)} classes "
        f"({enumerate_names(classes, 6)}); {data.about}"
    )
    return f"{'─' * WIDTH}\n{fill(text, rest='  ')}\n"


def _columns(data: Dataset) -> str:
    how = "as guessed; --categorical, --gaussian, … and --drop override" if data.guessed else ""
    lines = [f"Columns{', ' * bool(how)}{how}:"]
    for kind in KINDS:
        names = [_with_levels(name, data) for name, k in data.kinds.items() if k == kind]
        if names:
            lines.append(fill(enumerate_names(names, 40), f"  {kind:<12} ", " " * 15))
    lines += [fill(f"{name}: {why}", "  left out     ", " " * 15) for name, why in data.left_out.items()]
    return "\n".join(lines) + "\n"


def _with_levels(name: str, data: Dataset) -> str:
    return f"{name} ({data.X[name].nunique()})" if data.kinds[name] == "categorical" else name


def _comparison(comparison: pd.DataFrame) -> str:
    rows = [
        [name, *(_score(row[column], form) for column, (_, form) in _SCORES.items())]
        for name, row in zip(comparison.index, comparison.to_dict("records"), strict=True)
    ]
    return grid(["estimate", *(title for title, _ in _SCORES.values())], rows)


def _score(value: float, form: str) -> str:
    return "-" if math.isnan(value) else form.format(value) if math.isfinite(value) else str(value)


def _unit(data: Dataset) -> str:
    """By what they were ranked."""
    kinds = set(data.kinds.values())
    units = ["by the sd of a probability"] if kinds - {"gaussian", "poisson"} else []
    units += ["by the sd of a mean in units of the feature's sd"] * ("gaussian" in kinds)
    units += ["by the sd of a rate in units of the root of the feature's mean"] * ("poisson" in kinds)
    return ", ".join(units) + "; variances not ranked" * ("gaussian" in kinds)


def _parameters(table: pd.DataFrame, data: Dataset, prob: float) -> str:
    rows = []
    for row in table.to_dict("records"):
        digits = _digits(row["sd"])
        mle, mean, sd, lower, upper = (_number(row[name], digits) for name in ("mle", "mean", "sd", "lower", "upper"))
        rows.append([_name(row, data), f"{row['count']:,.6g}", mle, mean, sd, f"[{lower}, {upper}]"])
    return grid(["parameter", "cells", "MLE", "mean", "sd", f"{100 * prob:g}% interval"], rows)


def _name(row: dict[Any, Any], data: Dataset) -> str:
    """How the text calls a parameter."""
    feature, level, label = row["feature"], row["level"], row["class"]
    if feature == CLASS:
        return f"P({label})"
    kind = data.kinds[feature]
    if kind in ("gaussian", "poisson"):
        return f"{'mean' if kind == 'gaussian' else 'rate'}({feature} | {label})"
    return f"P({feature} | {label})" if kind == "multinomial" else f"P({feature}={level} | {label})"


def _digits(sd: float) -> int:
    """Decimals that show two digits of the standard deviation."""
    if not (math.isfinite(sd) and sd > 0):
        return 4
    return min(12, max(0, 1 - math.floor(math.log10(sd))))


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:,.{digits}f}"
