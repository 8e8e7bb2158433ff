"""Parameters of one kind, in a unit that all features share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bayesnb._util.arguments import require_iterable, shown
from bayesnb.families import supports
from bayesnb.families.protocol import FeatureUnits
from bayesnb.fitted import Classifier, Fitted, require_posterior
from bayesnb.uncertainty.draws import parameter_shapes
from bayesnb.uncertainty.tables import tabulate

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS = ["mle", "mean", "lower", "upper"]


@dataclass(frozen=True, eq=False)
class ParametersInUnits:
    """Parameters of one kind in a common unit.

    Attributes
    ----------
    table : DataFrame
        Rows of `parameter_table` with mle, mean, lower and upper in the unit, and a column `absent`: whether the row
        is about the level "absent" of a Bernoulli feature.
    axis : str
        What the numbers are, with their unit: the label of an axis.
    left_out : str
        Numbers of parameters of the other kinds, in words.
    are_levels : bool
        Whether the parameters are probabilities of levels of separate features.
    are_words : bool
        Whether the parameters are probabilities of words, which share one simplex.
    """

    table: pd.DataFrame
    axis: str
    left_out: str
    are_levels: bool
    are_words: bool


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
    return ParametersInUnits(table, unit, f"Not in this figure: {others}" * bool(others), are_levels, are_words)


def _describe_kinds(fitted: Fitted, table: pd.DataFrame) -> pd.DataFrame:
    """Rows of `parameter_table` in the units of their parameters, with kind, unit, is_level, is_word and absent."""
    import pandas as pd

    parts = []
    blocks = zip(fitted.encoding.blocks, fitted.posterior.blocks, fitted.statistics.blocks, strict=True)
    for block, family, counts in blocks:
        rows = table[table["feature"].isin(block.names)]
        if rows.empty:
            continue
        has_levels = block.axis()[1] is not None or block.one_simplex
        kind = next(iter(parameter_shapes(family))) if has_levels else rows["level"].astype(str)
        absent = rows["level"] == "absent" if block.kind == "bernoulli" else False
        rows = rows.assign(kind=kind, is_level=has_levels, is_word=has_levels and block.one_simplex, absent=absent)
        rows["unit"] = rows["kind"]
        position = rows["feature"].map({name: j for j, name in enumerate(block.names)})
        for name, unit in (counts.units() if supports(counts, FeatureUnits) else {}).items():
            own = rows["kind"] == name
            j = position[own].to_numpy()
            rows.loc[own, _NUMBERS] = rows.loc[own, _NUMBERS].sub(unit.origin[j], axis=0).div(unit.size[j], axis=0)
            rows.loc[own, "unit"] = unit.label
        parts.append(rows)
    return pd.concat(parts).sort_index()


def _feature_list(features: Iterable[object]) -> list[object]:
    """Names or indices of columns as a list; TypeError if `features` is a number or another single object."""
    features = [features] if isinstance(features, str) else features
    require_iterable("features", features, "a list of columns, by name or by index")
    return list(features)
