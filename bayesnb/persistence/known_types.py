"""Types, labels, keys and time zones that a file can have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import is_dataclass
from typing import Any

from bayesnb import encoding, estimators, families
from bayesnb._util.arguments import shown
from bayesnb.encoding.table import Positions
from bayesnb.model import NaiveBayes, Statistics, TermWeights
from bayesnb.weights.terms import WeightPath, Weights

FORMAT = "bayesnb"
TAG = "type"
#: Classifiers that were removed from bayesnb: versions that read their files, and the classifier to use instead.
REMOVED = {
    "PolyaNB": "Development versions of bayesnb 0.1.0 from before the removal read the file. Fit "
    "WeightedNB(MultinomialNB()) instead: its class probabilities predict better."
}


_EXPORTED = (cls for module in (encoding, families) for cls in vars(module).values() if is_dataclass(cls))
_DATA = (Positions, Statistics, NaiveBayes, TermWeights, Weights, WeightPath, *_EXPORTED)
_ESTIMATORS = (getattr(estimators, name) for name in estimators.__all__)
#: Types that a file can name: classifiers, and data, whose constructors only store and derive fields.
_KNOWN: Mapping[str, Any] = {cls.__name__: cls for cls in (*_DATA, *_ESTIMATORS)}


def collect_types(user_estimators: Iterable[object] = ()) -> Mapping[str, type]:
    """Return {name: type} of what a file can name: types of bayesnb, the user's estimators and their families.

    Raises
    ------
    TypeError
        If `user_estimators` has an item that is not a subclass of a classifier of bayesnb; if two have the same name.
    """
    if isinstance(user_estimators, type):
        name = user_estimators.__name__
        raise TypeError(f"estimators={name} must be a list of classifier classes. Pass [{name}].")
    known = dict(_KNOWN)
    for estimator in user_estimators:
        if not (isinstance(estimator, type) and hasattr(estimator, "no_posterior")):
            raise TypeError(f"estimators: {shown(estimator)} is not a subclass of a classifier of bayesnb.")
        family = getattr(estimator, "family", None)
        parts = () if family is None else (family, family.statistics, *map(type, family.empirical.values()))
        for cls in (estimator, *parts):
            if known.setdefault(cls.__name__, cls) is not cls:
                name, other = cls.__name__, known[cls.__name__].__module__
                twin = f"{cls.__module__}.{name} has the name of {other}.{name}"
                raise TypeError(f"estimators: {twin}. Rename one of the two.")
    return known


def user_classes(nb: object) -> list[type]:
    """Return the user's own classes among those of a classifier and of the estimator that it wraps."""
    classes = (type(nb), type(getattr(nb, "estimator", None)))
    return [cls for cls in classes if hasattr(cls, "no_posterior") and cls not in _KNOWN.values()]


_LABELS = ("str", "int", "float", "bool", "Timestamp", "NoneType")
_MOST_ODD_KEYS = 2**12
_FEW_COLUMNS = 2**16

# "UTC", "UTC+01:00", "Europe/Berlin" and the like; pandas takes other strings for paths of files.
_ZONE = re.compile(r"tzlocal\(\)|UTC[+-]\d\d:\d\d|[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*){0,2}")


def require_labels(levels: encoding.Levels, where: str) -> None:
    """Raise TypeError naming the first level whose type is none that a file can have."""
    for value in levels.values:
        if type(value).__name__ not in _LABELS:
            label = f"{where} has the label {shown(value)}, a {type(value).__name__}"
            raise TypeError(f"{label}; a file can hold str, int, float, bool, datetime64 and None.")


def require_keys(keys: Collection[object]) -> None:
    """Raise ValueError if over 4,096 keys are neither strings nor integers between -65,536 and 65,536, ends excluded.

    Hashes of numbers are predictable in Python: a file could choose many numbers that make a dictionary slow.
    """
    odd = sum(not (type(k) is str or (type(k) is int and abs(k) < _FEW_COLUMNS)) for k in keys)
    if odd > _MOST_ODD_KEYS:
        keys = f"{odd:,} keys that are not names or positions of columns; at most {_MOST_ODD_KEYS:,} are allowed"
        raise ValueError(f"A dictionary of the classifier, such as `categories`, has {keys}. Use strings as keys.")


def require_zone(zone: object, where: str) -> None:
    """Raise TypeError unless a time zone is None, a fixed offset from UTC, the local zone, or a name."""
    if zone is not None and not (isinstance(zone, str) and _ZONE.fullmatch(zone)):
        raise TypeError(f"{where} has the time zone {shown(zone)}; use offsets from UTC or names: 'Europe/Berlin'.")
