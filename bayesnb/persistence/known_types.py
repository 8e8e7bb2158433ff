"""Types, labels, keys and time zones that a file can have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

from bayesnb import encoding, estimators, families
from bayesnb._util.arguments import shown
from bayesnb.encoding.table import Positions
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


def family_types(family: Any) -> tuple[type, ...]:
    """Return a family of numbers and the types of its statistics and empirical priors."""
    return family, family.statistics, *map(type, family.empirical.values())


@dataclass(frozen=True)
class KnownTypes:
    """Types of data, and classes of estimators, that a file can name."""

    types: Mapping[str, type]
    estimators: Mapping[str, type]


_NUMBER_TYPES = (cls for family in families.OF_NUMBERS for cls in family_types(family))
_TYPES = {cls.__name__: cls for cls in (*_DATA, *_NUMBER_TYPES)}
_ESTIMATORS: dict[str, type] = {name: getattr(estimators, name) for name in estimators.__all__}

#: Classifiers that were removed from bayesnb: versions that read their files, and the classifier to use instead.
REMOVED = {
    "PolyaNB": (
        "Development versions of bayesnb 0.1.0 from before the removal read the file. Fit "
        "WeightedNB(MultinomialNB()) instead: its class probabilities predict better."
    )
}


def collect_types(user_estimators: Iterable[Any] = ()) -> KnownTypes:
    """Collect the types of bayesnb, and classes of the user's own estimators with the types of their families.

    Raises
    ------
    TypeError
        If `user_estimators` has an item that is no subclass of a classifier of bayesnb, or two classes have one name.
    """
    if isinstance(user_estimators, type):
        name = user_estimators.__name__
        raise TypeError(f"estimators={name}: give a list of classes, [{name}].")
    types, estimators_by_name = dict(_TYPES), dict(_ESTIMATORS)
    for cls in user_estimators:
        if not (isinstance(cls, type) and hasattr(cls, "no_posterior")):
            raise TypeError(f"estimators: {shown(cls)} is no class of classifiers of bayesnb.")
        family = getattr(cls, "family", None)
        _add_class(cls, estimators_by_name)
        for part in () if family is None else family_types(family):
            _add_class(part, types)
    return KnownTypes(types, estimators_by_name)


def _add_class(cls: type, classes: dict[str, type]) -> None:
    if classes.setdefault(cls.__name__, cls) is not cls:
        raise TypeError(f"estimators: {cls.__module__}.{cls.__name__} has the name of another class; rename it.")


def user_classes(nb: object) -> list[type]:
    """Return the classes of a classifier and of the estimator that it wraps, without those of bayesnb."""
    classes = [type(nb), type(getattr(nb, "estimator", None))]
    return [cls for cls in classes if cls is not NoneType and cls not in _ESTIMATORS.values()]


_LABELS = ("str", "int", "float", "bool", "Timestamp", "NoneType")
_MOST_ODD_KEYS = 2**12
_FEW_COLUMNS = 2**16

# "UTC", "UTC+01:00", "Europe/Berlin" and the like; pandas takes other strings for paths of files.
_ZONE = re.compile(r"tzlocal\(\)|UTC[+-]\d\d:\d\d|[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*){0,2}")


def is_fitted_name(cls: type, name: str) -> bool:
    """Return whether `fit` stores an attribute of this name."""
    is_state = name in ("encoding_", "statistics_")  # Classes have properties of these names, and of no other ones.
    return name.endswith("_") and not name.startswith("_") and hasattr(cls, name) == is_state


def find_unsupported_label(levels: encoding.Levels) -> tuple[Any] | None:
    """Return (level,), the first level of a type that a file cannot have; None if there is none."""
    return next(((value,) for value in levels.values if type(value).__name__ not in _LABELS), None)


def require_keys(keys: Collection[Any]) -> None:
    """Raise ValueError if a dictionary has many keys that are neither names nor positions of columns.

    Hashes of numbers are predictable in Python: a file could choose many numbers that make a dictionary slow.
    """
    odd = sum(not (type(k) is str or (type(k) is int and abs(k) < _FEW_COLUMNS)) for k in keys)
    if odd > _MOST_ODD_KEYS:
        raise ValueError(
            f"{odd:,} keys of a dictionary are no names or positions of columns; at most {_MOST_ODD_KEYS:,} may be."
        )


def is_storable_zone(zone: object) -> bool:
    """Return whether a file can have a time zone: None, a fixed offset from UTC, the local zone, or a name."""
    return zone is None or (isinstance(zone, str) and _ZONE.fullmatch(zone) is not None)
