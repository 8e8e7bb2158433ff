"""All that a file can name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bayesnb import encoding, estimators, families
from bayesnb._util.arguments import shown
from bayesnb.encoding.table import Positions
from bayesnb.estimators.display import Displayed
from bayesnb.model import NaiveBayes, Statistics, TermWeights
from bayesnb.prediction import Weights
from bayesnb.prediction.weights import WeightPath

FORMAT = "bayesnb"
TAG = "type"
_DATA = (
    encoding.Encoding,
    encoding.Levels,
    encoding.LevelColumns,
    encoding.MarginColumns,
    encoding.RootColumns,
    encoding.NodeColumns,
    encoding.ContextColumns,
    encoding.PairColumns,
    encoding.RealColumns,
    encoding.CellColumns,
    encoding.CountColumns,
    encoding.BinaryColumns,
    Positions,
    Statistics,
    NaiveBayes,
    TermWeights,
    WeightPath,
    Weights,
    families.AveragedCells,
    families.AveragedLevels,
    families.Binned,
    families.ContextTree,
    families.IndependentCuts,
    families.Dirichlet,
    families.Known,
    families.LevelCounts,
    families.TreeAveraged,
)


def types_of(family: Any) -> tuple[type, ...]:
    """What a model over such numbers consists of."""
    return family, family.statistics, *map(type, family.empirical.values())


@dataclass(frozen=True)
class Vocabulary:
    """Data and estimators that a file can name, by name."""

    types: Mapping[str, type]
    estimators: Mapping[str, type]


_OF_NUMBERS = (cls for family in families.OF_NUMBERS for cls in types_of(family))
_TYPES = {cls.__name__: cls for cls in (*_DATA, *_OF_NUMBERS)}
_ESTIMATORS: dict[str, type] = {name: getattr(estimators, name) for name in estimators.__all__}

#: For each classifier that bayesnb no longer has: the versions that read its files, and what to use instead.
REMOVED = {
    "PolyaNB": (
        "Development versions of bayesnb 0.1.0 from before the removal read the file. Fit "
        "WeightedNB(MultinomialNB()) instead: its class probabilities predict better."
    )
}


def vocabulary(own: Iterable[Any] = ()) -> Vocabulary:
    """That of bayesnb, and of classes of the user's own, with their families.

    Raises
    ------
    TypeError
        If one of them is no class of a classifier of bayesnb, or is called as another.
    """
    if isinstance(own, type):
        raise TypeError(f"estimators={own.__name__}: give a list of classes, [{own.__name__}].")
    types, known = dict(_TYPES), dict(_ESTIMATORS)
    for cls in own:
        if not (isinstance(cls, type) and issubclass(cls, Displayed)):
            raise TypeError(f"estimators: {shown(cls)} is no class of classifiers of bayesnb.")
        family = getattr(cls, "family", None)
        for found, it in ((known, cls), *((types, it) for it in (types_of(family) if family is not None else ()))):
            if found.setdefault(it.__name__, it) is not it:
                raise TypeError(f"estimators: {it.__module__}.{it.__name__} is called as another class; rename it.")
    return Vocabulary(types, known)


def own_classes(nb: object) -> list[type]:
    """Classes of a classifier, and of the one that it wraps, that are not bayesnb's own."""
    parts = (nb, getattr(nb, "estimator", None))
    return [type(part) for part in parts if part is not None and type(part) not in _ESTIMATORS.values()]


_LABELS = ("str", "int", "float", "bool", "Timestamp", "NoneType")


# "UTC", "UTC+01:00", "Europe/Berlin" and the like; pandas takes others for paths of files.
_MOST_ODD_KEYS = 2**12
_FEW_COLUMNS = 2**16
_ZONE = re.compile(r"tzlocal\(\)|UTC[+-]\d\d:\d\d|[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*){0,2}")


def is_fitted_name(cls: type, name: str) -> bool:
    """Whether an attribute is something that `fit` stores."""
    is_state = name in ("encoding_", "statistics_")  # properties of a classifier
    return name.endswith("_") and not name.startswith("_") and hasattr(cls, name) == is_state


def strange_label(levels: encoding.Levels) -> tuple[Any] | None:
    """The first level of a type that a file cannot have."""
    return next(((value,) for value in levels.values if type(value).__name__ not in _LABELS), None)


def require_keys(keys: Collection[Any]) -> None:
    """Raise ValueError unless keys of a dictionary are names or positions of columns, or few.

    Python's hashes of numbers can be foreseen, so that many numbers can be chosen that make a dictionary slow.
    """
    odd = sum(not (type(k) is str or (type(k) is int and abs(k) < _FEW_COLUMNS)) for k in keys)
    if odd > _MOST_ODD_KEYS:
        raise ValueError(
            f"{odd:,} keys of a dictionary are no names or positions of columns; at most {_MOST_ODD_KEYS:,} may be."
        )


def is_zone(zone: object) -> bool:
    """Whether a time zone is one that a file can have: None, a fixed offset from UTC, the local one, or a name."""
    return zone is None or (isinstance(zone, str) and _ZONE.fullmatch(zone) is not None)
