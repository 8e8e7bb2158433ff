"""Labelled vectors over classes, columns or levels: mappings and pandas Series, whose entries are matched by label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bayesnb._util.arguments import no_column_error, shown, to_numbers
from bayesnb.encoding.levels import Levels, to_python

_MOST_SHOWN = 12


def read_labelled(argument: str, given: Any) -> dict[Hashable, Any] | None:
    """Return a mapping or a pandas Series as a dict from label to entry; None for values that have no labels.

    Raises
    ------
    ValueError
        If a label occurs twice, or the value of `argument` is a DataFrame.
    """
    if isinstance(given, Mapping):
        return {to_python(label): entry for label, entry in given.items()}
    if hasattr(given, "columns") or hasattr(given, "column_names"):
        raise ValueError(f"{argument} is a DataFrame, whose labels are not read. Pass a dict, a Series or to_numpy().")
    if not hasattr(given, "iloc"):
        return None
    labels = given.index.tolist()
    if twice := [label for label, times in Counter(labels).items() if times > 1]:
        raise ValueError(f"{argument} is a Series whose index names {shown(twice[0])} more than once.")
    return dict(zip(labels, given.tolist(), strict=True))


def is_labelled(given: Any) -> bool:
    """Return whether a value is matched by label: a mapping, a pandas Series, or a list that has one of these."""
    if isinstance(given, list | tuple):
        return any(_names_entries(entry) for entry in given if not isinstance(entry, int | float))
    return _names_entries(given)


def match_classes(argument: str, given: Any, classes: Levels) -> Any:
    """Return the entries of a labelled vector in the order of the classes; other values are returned unchanged.

    Raises
    ------
    ValueError
        If the vector does not name exactly the classes.
    """
    if (labelled := read_labelled(argument, given)) is None:
        return given
    numbers = [_to_number(f"{argument}[{shown(label)}]", entry) for label, entry in labelled.items()]
    entries = dict(zip(classes.index(labelled).tolist(), numbers, strict=True))
    if entries.keys() != set(range(len(classes))):
        known = _list(classes.values)
        if _has_default_index(given):
            raise _two_readings(argument, given, f"the classes are {known}", "classes")
        named = f"It names {_list(labelled)}; the classes are {known}"
        raise ValueError(f"{argument} must name exactly the classes. {named}.")
    return [entries[c] for c in range(len(classes))]


def match_columns(argument: str, given: Any, names: Sequence[str]) -> dict[int, Any]:
    """Return the entries of a labelled vector by position of the column.

    Parameters
    ----------
    argument : str
        Name of the argument, for messages.
    given : object
        Value of the argument: a mapping or a Series from names or positions of columns, or a list with an entry for
        each column, one of which is labelled by level.
    names : sequence of str
        Names of all columns of X.

    Raises
    ------
    ValueError
        If there is no such column, a column is named twice, or the labels of a Series are those of its default index.
    """
    if isinstance(given, list | tuple):
        return dict(enumerate(_require_length(argument, given, len(names))))
    labelled = read_labelled(argument, given) or {}
    position = {name: j for j, name in enumerate(names)}
    if _has_default_index(given) and any(position.get(str(j)) != j for j in range(len(labelled))):
        raise _two_readings(argument, given, f"the columns of X are {_list(names)}", "columns")
    entries: dict[int, Any] = {}
    for label, entry in labelled.items():
        j = find_column(argument, count_from_start(label, len(names)), names, position)
        if j in entries:
            raise ValueError(f"{argument} names column {shown(names[j])} twice, by name and by position. Name it once.")
        entries[j] = entry
    return entries


def select_columns(
    argument: str, given: Any, names: Sequence[str], index: Sequence[int], n_columns: int
) -> dict[int, Any]:
    """Return the entries of a labelled vector for some columns of X, by position among these.

    Parameters
    ----------
    argument, given
        Name and value of the argument, as in `match_columns`, by which labels of other columns were checked.
    names, index : sequence of str, sequence of int
        Names of these columns, and their positions in X.
    n_columns : int
        Number of all columns of X.
    """
    if isinstance(given, list | tuple):
        return {i: _require_length(argument, given, n_columns)[j] for i, j in enumerate(index)}
    labelled = read_labelled(argument, given) or {}
    by_name, by_position = ({key: i for i, key in enumerate(keys)} for keys in (names, index))
    from_start = {label: count_from_start(label, n_columns) for label in labelled}
    places = {label: _find_place(argument, key, by_name, by_position.get) for label, key in from_start.items()}
    return {place: labelled[label] for label, place in places.items() if place is not None}


def match_all_columns(argument: str, given: Any, names: Sequence[str], index: Sequence[int], n_columns: int) -> Any:
    """Return the entries of a labelled vector in the order of some columns of X; other values are returned unchanged.

    The arguments are those of `select_columns`.

    Raises
    ------
    ValueError
        If the vector does not name exactly these columns.
    """
    if (labelled := read_labelled(argument, given)) is None:
        return given
    if _has_default_index(given) and list(map(str, index)) != list(names):
        raise _two_readings(argument, given, f"the columns are {_list(names)}", "columns")
    entries = select_columns(argument, given, names, index, n_columns)
    if not len(entries) == len(labelled) == len(names):
        raise ValueError(f"{argument} must name exactly the columns {_list(names)}. It names {_list(labelled)}.")
    return [entries[i] for i in range(len(names))]


def find_column(argument: str, column: object, names: Sequence[str], position: Mapping[str, int]) -> int:
    """Return the position of a column that the argument gives by name or position.

    Parameters
    ----------
    argument : str
        Name of the argument, for messages.
    column : object
        Name of a column, or its position from 0 on.
    names : sequence of str
        Names of all columns.
    position : dict {name: int}
        Positions of the names.

    Raises
    ------
    ValueError
        If there is no such column, or an integer is the position of one column and the name of another.
    """
    place = _find_place(argument, column, position, lambda j: j if 0 <= j < len(names) else None)
    if place is None:
        raise no_column_error(argument, column, names)
    return place


def count_from_start(column: object, n_columns: int) -> object:
    """Return the position of a column that a negative integer gives from the end; other values are unchanged."""
    is_negative = isinstance(column, int | np.integer) and -n_columns <= column < 0
    return int(column) + n_columns if is_negative else column  # type: ignore[call-overload]


def _find_place(
    argument: str, column: object, by_name: Mapping[Any, int], place_of: Callable[[int], int | None]
) -> int | None:
    """Return the place of the column with this name or position, None for none; an integer may be a name, too."""
    if isinstance(column, str):
        return by_name.get(column)
    if not isinstance(column, int | np.integer) or isinstance(column, bool):
        return None
    at, name = place_of(int(column)), str(column)
    named = by_name.get(name, at)
    if at is not None and named != at:
        raise ValueError(
            f"{argument}: {column} is the name of one column of X, and the position of another one. Pass a name, such "
            f"as {name!r}."
        )
    return named


def match_levels(argument: str, given: Any, levels: Sequence[Hashable], column: str) -> list[float]:
    """Return an entry for each level of a column, 1 for those that a labelled vector does not name.

    Raises
    ------
    ValueError
        If the column has no such level, or an entry is not one number.
    """
    labelled = read_labelled(argument, given) or {}
    index = Levels(tuple(levels)).index(labelled)
    if (index < 0).any():
        if _has_default_index(given):
            raise _two_readings(argument, given, f"the levels of column {shown(column)} are {_list(levels)}", "levels")
        label = list(labelled)[int(np.argmax(index < 0))]
        raise ValueError(
            f"{argument} names {shown(label)}, which is not a level of column {shown(column)}. The levels are "
            f"{_list(levels)}. Correct the label, or declare it in `categories`."
        )
    entries = [1.0] * len(levels)
    for i, (label, entry) in zip(index.tolist(), labelled.items(), strict=True):
        entries[i] = _to_number(f"{argument}[{shown(label)}]", entry)
    return entries


def named_levels(given: Any) -> list[Hashable]:
    """Return the labels of a vector over levels that declare a level; none for a value without labels.

    Missing values are no levels. The labels 0, 1, … of a default index need not be meant as levels, and declare none.
    """
    if isinstance(given, list | tuple) or not is_labelled(given) or _has_default_index(given):
        return []
    labels: Iterable[Hashable] = given if isinstance(given, Mapping) else given.index.tolist()
    return [v for v in labels if not (v is None or type(v).__name__ in ("NAType", "NaTType") or v != v)]


def _require_length(argument: str, given: Sequence[Any], n_columns: int) -> Sequence[Any]:
    """Return a list over columns; raise ValueError unless it has `n_columns` entries."""
    if len(given) != n_columns:
        raise ValueError(
            f"{argument} is a list of {len(given)} entries, and X has {n_columns} columns. Or pass a dict."
        )
    return given


def _names_entries(given: Any) -> bool:
    """Return whether a value is a mapping or a pandas Series."""
    return isinstance(given, Mapping) or (hasattr(given, "iloc") and not hasattr(given, "columns"))


def _has_default_index(given: Any) -> bool:
    """Return whether a value is a pandas Series with the labels 0, 1, …, which pandas gives where nobody did."""
    return hasattr(given, "iloc") and given.index.tolist() == list(range(len(given))) and len(given) > 0


def _to_number(name: str, entry: object) -> float:
    """Return an entry of a labelled vector as a float; raise ValueError unless it is one number."""
    value = to_numbers(name, entry)
    if value.shape != ():
        raise ValueError(f"{name}={shown(entry)} must be one number.")
    return float(value)


def _two_readings(argument: str, given: Any, known: str, what: str) -> ValueError:
    """Return the ValueError for a Series with a default index whose labels are not the classes, columns or levels."""
    return ValueError(
        f"{argument} is a Series with the default index 0 to {len(given) - 1}, and {known}. Read by label, the index "
        f"does not name the {what}. Read by position, the order is not known. Pass a dict, or to_numpy() of the Series."
    )


def _list(labels: Iterable[object]) -> str:
    """Return the first labels as text, in brackets."""
    labels = list(labels)
    return shown(labels[:_MOST_SHOWN]) + (f" and {len(labels) - _MOST_SHOWN} more" if len(labels) > _MOST_SHOWN else "")
