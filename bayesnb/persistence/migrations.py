"""Convert the trees of older files to the current version, one version at a time.

A field that was added with a default needs no function, as the default stands for the field in older files. In
statistics every field is an array, so that no field has a default. A field or a type that was renamed, removed or
given another meaning needs a function in `MIGRATIONS`, which increases the version by one. `tests/fixtures` has files
of all versions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FAMILIES = {"Moments": "NormalInverseGamma", "Totals": "GammaPoisson"}


def _change_type(tree: Any, kind: str, change: Callable[[dict[str, Any]], None]) -> Any:
    """Return a copy of a tree in which `change` was applied, in place, to each dictionary whose "type" is `kind`."""
    if isinstance(tree, list):
        return [_change_type(value, kind, change) for value in tree]
    if not isinstance(tree, dict):
        return tree
    changed = {name: _change_type(value, kind, change) for name, value in tree.items()}
    if changed.get("type") == kind:
        change(changed)
    return changed


def _replace_statistics_by_family(tree: Any) -> Any:
    """Convert version 1 to 2: columns of numbers name their family, in place of the type of statistics and the sign."""

    def change(columns: dict[str, Any]) -> None:
        columns.pop("nonnegative", None)
        columns["family"] = {"type": "class", "value": _FAMILIES[columns.pop("statistics")["value"]]}

    return _change_type(tree, "RealColumns", change)


def _remove_precision(tree: Any) -> Any:
    """Convert version 2 to 3: weights of terms no longer have a precision, which was that of one τ."""
    return _change_type(tree, "Weights", lambda weights: weights.pop("precision", None))


#: Functions that convert the tree of a file of version v to version v + 1, in order from v = 1.
MIGRATIONS: tuple[Callable[[Any], Any], ...] = (_replace_statistics_by_family, _remove_precision)


def current_version() -> int:
    """Return the version that `save` writes."""
    return 1 + len(MIGRATIONS)


def migrate(tree: Any, written: int) -> Any:
    """Return the tree of a file of version `written`, converted to the current version."""
    for migration in MIGRATIONS[written - 1 :]:
        tree = migration(tree)
    return tree
