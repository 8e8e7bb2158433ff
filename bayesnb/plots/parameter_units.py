"""Parameters of one kind, in a unit that all features share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesnb._util.arguments import require_choice, require_iterable
from bayesnb.families import offers
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.plots.labels import labels
from bayesnb.uncertainty.tables import locate_parameters

_NUMBERS = ["mle", "map", "mean", "lower", "upper"]


@dataclass(frozen=True, eq=False)
class ParametersInUnits:
    """Parameters of one kind in a common unit.

    Attributes
    ----------
    table : DataFrame
        Rows of `parameter_table` with mle, map, mean, lower and upper in the unit, value = (parameter - origin) / size.
        Further columns: `origin` and `size`; `block` and `position`, where the parameter is in the arrays of the model;
        `code`, the index of the class; `absent`, whether the row is about the level "absent" of a Bernoulli feature.
    axis, row_axis : str
        What the numbers are, with their unit, and what the names of rows are: labels of axes.
    left_out : str
        Numbers of parameters of the other kinds, in words.
    are_levels : bool
        Whether the parameters are probabilities of levels of separate features.
    are_words : bool
        Whether the parameters are probabilities of words, which share one simplex.
    features, classes : sequence
        All names of columns, and all classes.
    """

    table: pd.DataFrame
    axis: str
    row_axis: str
    left_out: str
    are_levels: bool
    are_words: bool
    features: Sequence[Hashable]
    classes: Sequence[Hashable]

    def names(self, rows: pd.DataFrame) -> list[str]:
        """Labels of rows, such as "colour = green | ripe", or "size | ripe" for parameters without levels."""
        # All names are shortened together, so that a position behind a name is that of the column.
        feature, label = labels(self.features, 22), labels(self.classes, 12)
        if not self.are_levels:
            return [f"{feature[f]} | {label[c]}" for f, c in zip(rows["feature"], rows["class"], strict=True)]
        of_feature = self.table[self.table["feature"].isin(rows["feature"])].groupby("feature", sort=False)
        level = {f: labels(own["level"], 14) for f, own in of_feature}
        cells = zip(rows["feature"], rows["level"], rows["class"], strict=True)
        return [f"{feature[f]} = {level[f][v]} | {label[c]}" for f, v, c in cells]


def select_parameters(
    nb: Classifier, prob: float, parameter: str | None = None, features: Iterable[object] | None = None
) -> ParametersInUnits:
    """Posterior intervals of all parameters of one kind, by default the most frequent one, in a common unit.

    Means are counted from the feature's mean over all rows in standard deviations over all rows (population form);
    variances and rates are divided by the feature's variance or mean over all rows, so that features in different units
    can stand side by side. A feature whose variance or mean over all rows is zero has the unit 1.

    Raises
    ------
    ValueError
        If there is no such parameter or no such column.
    """
    fitted = require_posterior(nb, "parameter_table")
    if features is not None:
        features = [features] if isinstance(features, str) else features
        require_iterable("features", features, "a list of columns, by name or by index")
    table = _convert_to_units(fitted, locate_parameters(fitted, prob, features))
    numbers = {str(kind): int(n) for kind, n in table["kind"].value_counts(sort=False).items()}
    if parameter is None:
        parameter = max(numbers, key=lambda kind: numbers[kind] * (kind != "sigma2"))
    require_choice("parameter", parameter, tuple(numbers))
    others = ", ".join(f"{n} {kind}" for kind, n in numbers.items() if kind != parameter)
    table = table[table["kind"] == parameter].reset_index(drop=True)
    are_words = bool(table["is_word"].all())
    are_levels = bool(table["is_level"].any()) and not are_words
    unit = "P(word | class)" if are_words else "P(level | class)" if are_levels else ", ".join(sorted({*table["unit"]}))
    row_axis = "feature = level | class" if are_levels else "feature | class"
    left_out, names = f"Not in this figure: {others}" * bool(others), fitted.encoding.feature_names
    return ParametersInUnits(
        table, unit, row_axis, left_out, are_levels, are_words, names, fitted.encoding.classes.values
    )


def _convert_to_units(fitted: Fitted, table: pd.DataFrame) -> pd.DataFrame:
    """Rows of parameters of features in their units, with the columns of `ParametersInUnits.table`.

    Further columns are kind, unit, is_level and is_word.
    """
    table = table[table["block"] >= 0]
    block, blocks = table["block"].to_numpy(), fitted.encoding.blocks
    is_word = np.array([columns.one_simplex for columns in blocks])[block]
    is_level = np.array([columns.axis()[1] is not None for columns in blocks])[block] | is_word
    is_binary = np.array([columns.kind == "bernoulli" for columns in blocks])[block]
    table = table.assign(is_level=is_level, is_word=is_word, absent=is_binary & (table["level"] == "absent"))
    table = table.assign(unit=table["kind"], origin=0.0, size=1.0)
    for b, counts in enumerate(fitted.statistics.blocks):
        for name, unit in (counts.units() if offers(counts, "units") else {}).items():
            own = (block == b) & (table["kind"] == name)
            table.loc[own, ["origin", "size"]] = np.column_stack([unit.origin, unit.size])[table["position"][own]]
            table.loc[own, "unit"] = unit.label
    table[_NUMBERS] = table[_NUMBERS].sub(table["origin"], axis=0).div(table["size"], axis=0)
    return table
