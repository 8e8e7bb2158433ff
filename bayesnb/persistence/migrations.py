"""What became of the names in older files: each version's tree as the next one writes it.

A field that was added with a default needs nothing, as older files are read without it; but of statistics all fields
are arrays. A field that was renamed, removed or given another meaning, and a type that was, need a function here, and
with it the version goes up by one. Files of all versions are kept in `tests/fixtures`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FAMILIES = {"Moments": "NormalInverseGamma", "Totals": "GammaPoisson"}


def _changed(tree: Any, kind: str, change: Callable[[dict[str, Any]], None]) -> Any:
    """Return a copy of a tree in which each dictionary of a type is changed."""
    if isinstance(tree, list):
        return [_changed(value, kind, change) for value in tree]
    if not isinstance(tree, dict):
        return tree
    found = {name: _changed(value, kind, change) for name, value in tree.items()}
    if found.get("type") == kind:
        change(found)
    return found


def _columns_know_their_family(tree: Any) -> Any:
    """Replace statistics of columns of numbers, and whether these may be negative, by their family."""

    def change(columns: dict[str, Any]) -> None:
        columns.pop("nonnegative", None)
        columns["family"] = {"type": "class", "value": _FAMILIES[columns.pop("statistics")["value"]]}

    return _changed(tree, "RealColumns", change)


def _weights_have_no_precision(tree: Any) -> Any:
    """Remove the precision of weights of terms, which was that of one τ."""
    return _changed(tree, "Weights", lambda weights: weights.pop("precision", None))


#: The tree of a file of version v to that of version v + 1, in order from v = 1.
MIGRATIONS: tuple[Callable[[Any], Any], ...] = (_columns_know_their_family, _weights_have_no_precision)


def version() -> int:
    """The version that files are written in."""
    return 1 + len(MIGRATIONS)


def migrated(tree: Any, written: int) -> Any:
    """The tree of a file of an older version, as today's files have it."""
    for migrate in MIGRATIONS[written - 1 :]:
        tree = migrate(tree)
    return tree
