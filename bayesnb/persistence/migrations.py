"""What became of the names in older files: each version's tree as the next one writes it.

A field that was added with a default needs nothing, as older files are read without it; but of statistics all fields
are arrays. A field that was renamed, removed or given another meaning, and a type that was, need a function here, and
with it the version goes up by one. Files of all versions are kept in `tests/fixtures`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FAMILIES = {"Moments": "NormalInverseGamma", "Totals": "GammaPoisson"}


def _columns_know_their_family(tree: Any) -> Any:
    """Columns of numbers named their statistics, and whether these may be negative."""
    if isinstance(tree, list):
        return [_columns_know_their_family(value) for value in tree]
    if not isinstance(tree, dict):
        return tree
    found = {name: _columns_know_their_family(value) for name, value in tree.items()}
    if found.get("type") == "RealColumns":
        found.pop("nonnegative", None)
        found["family"] = {"type": "class", "value": _FAMILIES[found.pop("statistics")["value"]]}
    return found


def _weights_have_no_precision(tree: Any) -> Any:
    """Weights of terms had the precision of one τ, and their loss was by leave-one-out."""
    if isinstance(tree, list):
        return [_weights_have_no_precision(value) for value in tree]
    if not isinstance(tree, dict):
        return tree
    found = {name: _weights_have_no_precision(value) for name, value in tree.items()}
    if found.get("type") == "Weights":
        found.pop("precision", None)
    return found


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
