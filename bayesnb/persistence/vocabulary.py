"""All that a file can name."""

from __future__ import annotations

from typing import Any

from bayesnb import encoding, estimators, families
from bayesnb.encoding.table import Positions
from bayesnb.model import NaiveBayes, Statistics

FORMAT = "bayesnb"
TAG = "type"
_DATA = (
    encoding.Encoding,
    encoding.Levels,
    encoding.LevelColumns,
    encoding.NodeColumns,
    encoding.RealColumns,
    encoding.CountColumns,
    encoding.BinaryColumns,
    Positions,
    Statistics,
    NaiveBayes,
    families.AveragedCells,
    families.AveragedLevels,
    families.Dirichlet,
    families.Known,
    families.LevelCounts,
)


def types_of(family: Any) -> tuple[type, ...]:
    """What a model over such numbers consists of."""
    return family, family.statistics, *map(type, family.empirical.values())


_OF_NUMBERS = (cls for family in families.OF_NUMBERS for cls in types_of(family))
TYPES: dict[str, type] = {cls.__name__: cls for cls in (*_DATA, *_OF_NUMBERS)}
ESTIMATORS: dict[str, type] = {name: getattr(estimators, name) for name in estimators.__all__}
_LABELS = ("str", "int", "float", "bool", "Timestamp", "NoneType")


class CorruptModelError(ValueError):
    """A file that is no whole model of bayesnb."""


def is_fitted_name(cls: type, name: str) -> bool:
    """Whether an attribute is something that `fit` stores."""
    return name.endswith("_") and not name.startswith("_") and not hasattr(cls, name)


def strange_label(levels: encoding.Levels) -> tuple[Any] | None:
    """The first level of a type that a file cannot have."""
    return next(((value,) for value in levels.values if type(value).__name__ not in _LABELS), None)
