"""Parameters of one kind, in a unit that all features share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesnb._util.arguments import require_iterable, shown
from bayesnb.families import offers
from bayesnb.fitted import Classifier, Fitted, require_posterior
from bayesnb.plots.labels import labels
from bayesnb.uncertainty.draws import parameter_shapes
from bayesnb.uncertainty.tables import tabulate

if TYPE_CHECKING:
    import pandas as pd

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
    table = tabulate(fitted, prob, None if features is None else _feature_list(features))
    n_class_rows = len(fitted.encoding.classes) if features is None else 0
    table = _describe_kinds(fitted, table.iloc[n_class_rows:])
    numbers = {str(kind): int(n) for kind, n in table["kind"].value_counts(sort=False).items()}
    if parameter is None:
        parameter = max(numbers, key=lambda kind: numbers[kind] * (kind != "sigma2"))
    if not isinstance(parameter, str) or parameter not in numbers:
        raise ValueError(
            f"parameter={shown(parameter)} is unknown. The parameters of these features are {list(numbers)}."
        )
    others = ", ".join(f"{n} {kind}" for kind, n in numbers.items() if kind != parameter)
    table = table[table["kind"] == parameter].reset_index(drop=True)
    are_words = bool(table["is_word"].all())
    are_levels = bool(table["is_level"].any()) and not are_words
    unit = "P(word | class)" if are_words else "P(level | class)" if are_levels else ", ".join(sorted({*table["unit"]}))
    left_out, encoding = f"Not in this figure: {others}" * bool(others), fitted.encoding
    row_axis = "feature = level | class" if are_levels else "feature | class"
    names = encoding.feature_names, encoding.classes.values
    return ParametersInUnits(table, unit, row_axis, left_out, are_levels, are_words, *names)


def _describe_kinds(fitted: Fitted, table: pd.DataFrame) -> pd.DataFrame:
    """Rows of `parameter_table` in the units of their parameters, with the columns of `ParametersInUnits.table`.

    Further columns are kind, unit, is_level and is_word.
    """
    import pandas as pd

    parts = []
    code = {label: c for c, label in enumerate(fitted.encoding.classes.values)}
    table = table.assign(code=[code[label] for label in table["class"]])
    blocks = zip(fitted.encoding.blocks, fitted.posterior.blocks, fitted.statistics.blocks, strict=True)
    for b, (block, family, counts) in enumerate(blocks):
        within, levels = block.axis()
        parameters, has_levels = list(parameter_shapes(family)), levels is not None or block.one_simplex
        # A number in a structure is in several blocks: its bins and its density have different levels.
        names = [[parameter] * len(within) for parameter in parameters] if levels is None else [levels]
        place = {
            (block.names[j], v): k for of in names for k, (j, v) in enumerate(zip(within.tolist(), of, strict=False))
        }
        position = np.array([place.get(key, -1) for key in zip(table["feature"], table["level"], strict=True)], int)
        rows, position, table = table[position >= 0], position[position >= 0], table[position < 0]
        kind = parameters[0] if has_levels else rows["level"].astype(str)
        absent = rows["level"] == "absent" if block.kind == "bernoulli" else False
        rows = rows.assign(kind=kind, is_level=has_levels, is_word=has_levels and block.one_simplex, absent=absent)
        rows = rows.assign(unit=rows["kind"], block=b, position=position, origin=0.0, size=1.0)
        for name, unit in (counts.units() if offers(counts, "units") else {}).items():
            own = rows["kind"] == name
            rows.loc[own, ["origin", "size"]] = np.column_stack([unit.origin, unit.size])[position[own]]
            rows.loc[own, "unit"] = unit.label
        rows[_NUMBERS] = rows[_NUMBERS].sub(rows["origin"], axis=0).div(rows["size"], axis=0)
        parts.append(rows)
    return pd.concat(parts).sort_index()


def _feature_list(features: Iterable[object]) -> list[object]:
    """Names or indices of columns as a list; TypeError if `features` is a number or another single object."""
    features = [features] if isinstance(features, str) else features
    require_iterable("features", features, "a list of columns, by name or by index")
    return list(features)
