"""Parameters of one kind, in a unit that all features share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import require_iterable, shown
from bayesnb.encoding import Encoding
from bayesnb.families import supports
from bayesnb.families.protocol import FeatureUnits, Unit
from bayesnb.fitted import Classifier, require_posterior
from bayesnb.uncertainty.draws import drawn_like
from bayesnb.uncertainty.parameters import tabulate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Scaled:
    """Rows of `parameter_table` of one kind of parameter, scaled.

    `axis` says what it is, with its unit; `others` counts the parameters of other kinds by name. `levels` and `words`:
    whether they are probabilities of levels, or of words, which share a simplex; `absent` (rows,): of levels "absent".
    """

    table: pd.DataFrame
    parameter: str
    axis: str
    others: dict[str, int]
    levels: bool
    words: bool
    absent: np.ndarray


def scaled(nb: Classifier, prob: float, parameter: str | None = None, features: Iterable[Any] | None = None) -> Scaled:
    """The parameters called `parameter`, by default those that are most, of all or some features.

    Means are counted from the feature's mean over all rows in standard deviations over all rows (population form),
    variances and rates are divided by those over all rows, so that features in different units can stand side by
    side. A feature whose variance or mean over all rows is zero has the unit 1.
    """
    fitted = require_posterior(nb, "parameter_table")
    table = tabulate(fitted, prob).iloc[len(fitted.encoding.classes) :]
    blocks = zip(fitted.encoding.blocks, fitted.posterior.blocks, fitted.statistics.blocks, strict=True)
    columns: dict[str, tuple[Any, str | None, int, Mapping[str, Unit]]] = {}
    for block, family, counts in blocks:
        of_levels = None if block.axis()[1] is None and not block.one_simplex else next(iter(drawn_like(family)[1]))
        units = counts.units() if supports(counts, FeatureUnits) else {}
        columns |= {name: (block, of_levels, j, units) for j, name in enumerate(block.names)}
    feature = table["feature"].to_numpy()
    if features is not None:
        feature = feature[keep := np.isin(feature.astype(str), chosen(fitted.encoding, features))]
        table = table[keep]
    level = table["level"].to_numpy()
    names = np.array([columns[f][1] or str(own) for f, own in zip(feature, level, strict=True)])
    there = list(dict.fromkeys(names.tolist()))
    if parameter is None:
        parameter = max(there, key=lambda name: (names == name).sum() * (name != "sigma2"))
    if not isinstance(parameter, str) or parameter not in there:
        raise ValueError(f"parameter={shown(parameter)}: the parameters of these features are {there}.")
    rows = names == parameter
    table, feature = table[rows].reset_index(drop=True), feature[rows]
    own_units = [(j, units.get(parameter)) for _, _, j, units in map(columns.__getitem__, feature)]
    shift, size = np.array([(0.0, 1.0) if unit is None else (unit.origin[j], unit.size[j]) for j, unit in own_units]).T
    for column in ("mle", "map", "mean", "lower", "upper"):
        table[column] = (table[column].to_numpy() - shift) / size
    table["sd"] /= size
    others = {name: int((names == name).sum()) for name in there if name != parameter}
    levels = any(columns[f][1] == parameter for f in feature)
    words = levels and all(columns[f][0].one_simplex for f in feature)
    named = {unit.label for _, unit in own_units if unit is not None}
    axis = "P(word | class)" if words else "P(level | class)" if levels else ", ".join(sorted(named)) or parameter
    mirrored = [columns[f][0].mirrored for f in feature]
    absent = [own is not None and own == found for own, found in zip(mirrored, table["level"], strict=True)]
    return Scaled(table, parameter, axis, others, levels, words, np.array(absent, bool))


def chosen(encoding: Encoding, features: Iterable[Any]) -> list[str]:
    """Names of columns given by name or by index.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    in_order = encoding.feature_names
    names = set(in_order)
    found: list[str] = []
    features = [features] if isinstance(features, str) else features
    require_iterable("features", features, "a list of columns, by name or by index")
    for feature in features:
        whole = isinstance(feature, int | np.integer) and 0 <= feature < len(in_order)
        name: Any = in_order[feature] if whole else feature
        if not isinstance(name, Hashable) or name not in names:
            some = in_order[:8]
            raise ValueError(
                f"features: there is no column {shown(feature)}; X has {some}{' …' * (len(names) > 8)}, by name or by "
                "index."
            )
        found.append(str(name))
    if not found:
        raise ValueError("features names no column; pass one or more, by name or by index.")
    return found
