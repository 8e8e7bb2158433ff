"""Checks of the labels and weights of rows."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from bayesnb._util.arguments import GREATEST, ZERO_WEIGHTS, shown, to_numbers
from bayesnb.encoding.column_kinds import is_missing
from bayesnb.encoding.levels import MISSING, Levels, factorize, to_array
from bayesnb.encoding.table import from_sequence

UNLABELED = -1
_AS_TEXT = {str(UNLABELED): f"the integer {UNLABELED}", "nan": "NaN"}
"""How NumPy writes the marks of a row without a label in an array of strings, and their names in messages."""
_FIRST_ROWS = 2**12
"""Number of rows that are searched for all labels first, as the others are seldom needed."""


def check_labels(y: Any, n_rows: int | None, owner: str, name: str = "y") -> tuple[Levels, np.ndarray]:
    """Return the classes that occur, and the (N,) index of each row's class, for labels of any hashable type.

    Parameters
    ----------
    y : (N,) array-like
    n_rows : int or None
        Expected number of labels; None for any number.
    owner : str
        Name of the estimator, for messages.
    name : str
        Name of the argument, for messages.

    Raises
    ------
    ValueError
        If y is missing, of the wrong length, continuous, or has missing values.
    """
    classes, index = _read_labels(y, n_rows, owner, name)
    if (missing := index == MISSING).any():
        row = int(np.argmax(missing))
        raise ValueError(f"Input {name} contains NaN: the label of row {row} is missing. Drop the row or label it.")
    return classes, index


def check_partial_labels(y: Any, n_rows: int, owner: str) -> tuple[Levels, np.ndarray]:
    """Return the classes that occur, and the (N,) index of each row's class, -1 for a row without a label.

    Such a row has the label -1, None, NaN, NaT or pd.NA.

    Parameters
    ----------
    y : (N,) array-like
    n_rows : int
        Expected number of labels.
    owner : str
        Name of the estimator or function, for messages.

    Raises
    ------
    ValueError
        If y is missing, of the wrong length, or continuous; if there are labels "-1" or "nan", strings, beside others.
    """
    labels, index = _read_labels(y, n_rows, owner, "y")
    for text, mark in _AS_TEXT.items():
        if text in labels.values and len(labels) > 1:
            first = int(np.argmax(index == labels.values.index(text)))
            raise ValueError(
                f"y: row {first} has the string {text!r} as its label, but {mark} marks a row without a label. Pass y "
                f"with dtype=object, as NumPy writes {mark} as {text!r} among strings. If this is a class, rename it."
            )
    classes = Levels(tuple(v for v in labels.values if v != UNLABELED))
    position = np.append(classes.index(labels.values).clip(min=MISSING), MISSING)
    return classes, position.astype(np.int32)[index]


def _read_labels(y: Any, n_rows: int | None, owner: str, name: str) -> tuple[Levels, np.ndarray]:
    """Return the classes that occur, and the (N,) index of each row's class, `MISSING` where the label is missing.

    The arguments and the errors are those of `check_labels`, which raises ValueError for missing labels too.
    """
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    y = to_array(y) if hasattr(y, "to_list") else y
    y = y if hasattr(y, "shape") else _labels_to_array(y)
    if not y.shape or (len(y.shape) > 1 and y.shape[1] != 1):
        raise ValueError(f"{name} should be a 1d array, got an array of shape {tuple(y.shape)} instead.")
    y = column_or_1d(y, warn=True)
    if n_rows is not None and len(y) != n_rows:
        raise ValueError(f"Found inconsistent numbers of samples: X has {n_rows} rows, y has {len(y)} labels.")
    if y.dtype.kind in "fc":
        _check_float_labels(y, name)
    codes, values = factorize(y, f"Input {name}")
    if y.dtype.kind == "O" and any(isinstance(v, float) and not v.is_integer() for v in values):
        check_classification_targets(np.array([v for v in values if isinstance(v, float)]))
    classes = Levels.from_values(values)
    position = classes.index(values)
    counts = _count_codes(codes[:_FIRST_ROWS], len(values))
    counts = counts if counts.all() else _count_codes(codes, len(values))
    seen = Levels.from_values(v for v, n in zip(values, counts, strict=True) if n)
    if len(seen) < len(classes):
        position, classes = np.maximum(seen.index(values), 0), seen
    return classes, _map_codes(codes, position)


def check_weights(sample_weight: object, n_rows: int) -> np.ndarray:
    """Return replication counts (N,) in float64: ones for None, and a single number N times.

    Raises
    ------
    ValueError
        If a weight is negative, not finite, or positive and subnormal, naming the first one; if all are zero, or their
        sum is more than `GREATEST`; if the shape is not (N,).
    """
    if sample_weight is None:
        return np.ones(n_rows)
    if isinstance(sample_weight, Number):
        sample_weight = np.full(n_rows, to_numbers("sample_weight", sample_weight))
    try:
        weight = check_array(
            sample_weight, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name="sample_weight"
        )
    except (TypeError, ValueError, OverflowError):
        to_numbers("sample_weight", sample_weight)  # Its message names the argument.
        raise
    if weight.shape != (n_rows,):
        expected = f"one number, or an array of shape {(n_rows,)} with one weight for each row"
        raise ValueError(f"sample_weight has shape {weight.shape}; pass {expected}.")
    tiny = np.finfo(np.float64).tiny
    for bad, problem in (
        (weight < 0, "Negative values in data passed to `sample_weight`"),
        (~np.isfinite(weight), "Input sample_weight contains NaN or infinity"),
        ((weight > 0) & (weight < tiny), f"sample_weight has a positive number below {tiny:.2g}; pass 0 instead"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(f"{problem}: {weight[row]} at row {row}; a weight must be finite and at least 0.")
    with np.errstate(over="ignore"):
        total = weight.sum()
    if total > GREATEST:
        row = int(np.argmax(weight))
        raise ValueError(
            f"sample_weight: the weights sum to {total}, with {weight[row]} at row {row}. Rescale them to a sum of at "
            f"most {GREATEST:g}."
        )
    if not weight.any():
        raise ValueError(ZERO_WEIGHTS)
    return np.asarray(weight)


def _check_float_labels(y: np.ndarray, name: str) -> None:
    """Raise ValueError if numeric labels are complex, infinite, or continuous; NaN is not checked."""
    if y.dtype.kind == "c":
        raise ValueError(f"Input {name}: Complex data not supported. Convert the labels to strings.")
    if (infinite := np.isinf(y)).any():
        row = int(np.argmax(infinite))
        raise ValueError(
            f"Input {name} contains infinity: the label of row {row} is {y[row]}. Drop the row or label it."
        )
    if (present := ~np.isnan(y)).any():
        check_classification_targets(y[present])


def _labels_to_array(y: object) -> np.ndarray:
    """Return a list of labels as a 1-D array, in which a tuple is one label."""
    if not isinstance(y, list | tuple) or not any(isinstance(label, tuple) for label in y):
        return from_sequence(y, "y")
    array = np.empty(len(y), dtype=object)
    for i, label in enumerate(y):
        array[i] = label
    return array


def require_present(y: Any, positions: np.ndarray) -> None:
    """Raise ValueError if a label of y at one of the `positions` is missing; other labels are not checked."""
    labels = list(y) if len(positions) else []
    for i in positions.tolist():
        if is_missing(labels[i]):
            raise ValueError(f"y: the label of row {i} is missing; drop the row or label it.")


def index_of_labels(classes: Levels, labels: Levels, label: np.ndarray) -> np.ndarray:
    """(N,) index of each row's class, from the index of its label among `labels`.

    Raises
    ------
    ValueError
        If a label is not a class.
    """
    position = classes.index(labels.values)
    if (position < 0).any():
        unknown = labels.values[int(np.argmax(position < 0))]
        row = int(np.argmax(position[label] < 0))
        raise ValueError(
            f"The label {shown(unknown)} of row {row} is not among the known classes {shown(list(classes.values))}. "
            "Remove the row, or add the class by partial_fit(X, y, classes=[...]) with all classes, old and new."
        )
    return _map_codes(label, position)


def _count_codes(codes: np.ndarray, n: int) -> np.ndarray:
    """Return the number (n,) of each of the codes 0 … n - 1; `MISSING` is not counted."""
    return np.bincount(codes + 1, minlength=n + 1)[1:]


def _map_codes(codes: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Return `position[codes]` as int32, `MISSING` where the code is `MISSING`.

    There is no look-up in the usual case that positions are the codes.
    """
    if np.array_equal(position, np.arange(len(position))):
        return np.asarray(codes.astype(np.int32, copy=False))
    return np.asarray(np.append(position, MISSING).astype(np.int32)[codes])
