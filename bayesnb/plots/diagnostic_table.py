"""Results of `diagnostic_tests` as rows of figures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from bayesnb._util.arguments import bad_argument, require_choice, require_iterable, shown
from bayesnb.plots.parameter_units import ParametersInUnits


def is_diagnostic(result: object) -> bool:
    """Whether `result` is a `DiagnosticTests`; its module is above the figures, which cannot import it."""
    return hasattr(result, "populations") and hasattr(result, "tests")


def read_prob(result: Any, prob: float | None) -> float:
    """Probability of the intervals in a `DiagnosticTests`, else `prob`, or 0.9 if that is None."""
    if not is_diagnostic(result):
        return 0.9 if prob is None else prob
    if prob not in (None, result.prob):
        raise bad_argument("prob", prob, f"that of this result, {result.prob}. Use diagnostic_tests(prob=)")
    return float(result.prob)


def select_quantities(
    found: Any, prob: float, quantity: str | None = None, features: Iterable[object] | None = None
) -> ParametersInUnits:
    """Intervals, of probability `prob`, of one quantity, or all, of the tests and populations named by `features`.

    The quantities are the features of the result, and tests and populations its classes.
    """
    names, table = list(dict.fromkeys([*found.populations, *found.tests])), found.table
    quantities = table["quantity"].unique().tolist()
    features = [features] if isinstance(features, str) else names if features is None else features
    require_iterable("features", features, "a list of tests or populations")
    features = list(features)
    if unknown := [name for name in features if name not in names]:
        raise ValueError(f"features={shown(unknown[0])} is no test or population. Use some of {shown(names)}.")
    if quantity is not None:
        require_choice("parameter", quantity, tuple(quantities))
    table = table[table["name"].isin(features) & table["quantity"].isin(quantities if quantity is None else [quantity])]
    if table.empty:
        raise ValueError(f"features={shown(features)} have no {quantity}; tests have sensitivities and specificities.")
    table = table.rename(columns={"quantity": "feature", "name": "class"})
    table = table.assign(level="", mle=np.nan, absent=False, code=[names.index(name) for name in table["class"]])
    by_prior = int((table["identified"] == "by prior only").sum())
    about = f"Identified by the prior only: {by_prior} of {len(table)}" if by_prior else ""
    axes = "probability", "quantity | test or population"
    return ParametersInUnits(table, *axes, about, False, False, quantities, names)


def tabulate_accuracy(found: Any, features: Iterable[object] | None) -> tuple[pd.DataFrame, list[str]]:
    """P(positive | class) of each test, a row for each class as in tables of levels, and names of the classes.

    The healthy are class 0, the diseased class 1, whose name has the least and the greatest prevalence.
    """
    sensitivity, specificity = (
        select_quantities(found, found.prob, quantity, features).table for quantity in ("sensitivity", "specificity")
    )
    columns, tests = ["mean", "lower", "upper"], sensitivity["class"].tolist()
    positive = 1.0 - specificity[["mean", "upper", "lower"]].to_numpy(), sensitivity[columns].to_numpy()
    table = pd.DataFrame(np.concatenate(positive), columns=columns)
    table["row"], table["class"] = [*range(len(tests))] * 2, np.repeat([0, 1], len(tests))
    table["feature"], table["level"] = tests * 2, pd.Series([found.levels[test][1] for test in tests] * 2, dtype=object)
    prevalence = found.table.query("quantity == 'prevalence'")["mean"]
    ends = dict.fromkeys(f"{p:.1%}" for p in (prevalence.min(), prevalence.max()))
    return table, ["healthy", f"diseased: prevalence {' to '.join(ends)}"]
