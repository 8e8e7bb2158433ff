"""Labels and weights of rows, checked."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from bayesnb._util.arguments import GREATEST, shown, to_numbers
from bayesnb.encoding.levels import Levels, factorize, nullable
from bayesnb.encoding.table import from_sequence

_FIRST_ROWS = 2**12
"""In which every label may be found, so that the others need not be looked at."""


def check_labels(y: Any, n_rows: int | None, owner: str, name: str = "y") -> tuple[Levels, np.ndarray]:
    """Classes and the index of each row's class, for labels of any hashable type.

    `n_rows` None takes any number of labels; `name` is that of the argument.

    Raises
    ------
    ValueError
        If y is missing, of the wrong length, continuous, or has missing values.
    """
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    y = nullable(y) if hasattr(y, "to_list") else y
    y = y if hasattr(y, "shape") else _from_labels(y)
    if not y.shape or (len(y.shape) > 1 and y.shape[1] != 1):
        raise ValueError(f"{name} should be a 1d array, got an array of shape {tuple(y.shape)} instead.")
    y = column_or_1d(y, warn=True)
    if n_rows is not None and len(y) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {len(y)} labels."
        )
    if y.dtype.kind in "fc":
        _check_float_labels(y, name)
    codes, values = factorize(y, f"Input {name}")
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise ValueError(f"Input {name} contains NaN: the label of row {row} is missing; drop the row or label it.")
    if y.dtype.kind == "O" and any(isinstance(v, float) and not v.is_integer() for v in values):
        check_classification_targets(np.array([v for v in values if isinstance(v, float)]))
    classes = Levels.of(values)
    position = classes.index(values)
    some = np.bincount(codes[:_FIRST_ROWS], minlength=len(values))
    counts = some if some.all() else np.bincount(codes, minlength=len(values))
    seen = Levels.of(v for v, n in zip(values, counts, strict=True) if n)
    if len(seen) < len(classes):
        position, classes = np.maximum(seen.index(values), 0), seen
    return classes, _moved(codes, position)


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Replication counts (N,) in float64; ones for None.

    Raises
    ------
    ValueError
        Naming the first weight that is negative, not finite, or positive and subnormal; if all are zero, or their sum
        is more than `GREATEST`; on a wrong shape.
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
        to_numbers("sample_weight", sample_weight)  # which names the argument
        raise
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar; got shape {weight.shape}.")
    if len(weight) != n_rows:
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}: one weight a row.")
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        kind = (
            "Negative values in data passed to `sample_weight`"
            if weight[row] < 0
            else "Input sample_weight contains NaN or infinity"
        )
        raise ValueError(f"{kind}: {weight[row]} at row {row}; weights are replication counts.")
    subnormal = (weight > 0) & (weight < np.finfo(np.float64).tiny)
    if subnormal.any():
        row = int(np.argmax(subnormal))
        raise ValueError(
            f"sample_weight: {weight[row]} at row {row} is positive but below {np.finfo(np.float64).tiny:.2g}, so that "
            "its inverse overflows; rescale the weights, or set it to zero."
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if total > GREATEST:
        row = int(np.argmax(weight))
        raise ValueError(
            f"sample_weight: the weights sum to {total}, the greatest is {weight[row]} at row {row}. They may sum to "
            f"{GREATEST:g} at most; rescale them."
        )
    if not weight.any():
        raise ValueError("sample_weight is zero for every row; at least one row must count.")
    return weight


def _check_float_labels(y: np.ndarray, name: str) -> None:
    if y.dtype.kind == "c":
        raise ValueError(f"Input {name}: Complex data not supported.")
    bad = ~np.isfinite(y)
    if bad.any():
        row = int(np.argmax(bad))
        kind = "NaN" if np.isnan(y[row]) else "infinity or a value too large for dtype('float64')"
        raise ValueError(f"Input {name} contains {kind}. The label of row {row} is {y[row]}; drop the row or label it.")
    check_classification_targets(y)


def _from_labels(y: Any) -> np.ndarray:
    """A list of labels as an array; tuples are labels too."""
    if not isinstance(y, list | tuple) or not any(isinstance(label, tuple) for label in y):
        return from_sequence(y, "y")
    array = np.empty(len(y), dtype=object)
    for i, label in enumerate(y):
        array[i] = label
    return array


def require_present(y: Any, at: np.ndarray) -> None:
    """Refuse missing labels, of which there are none but at these positions."""
    import pandas as pd

    labels = list(y) if len(at) else []
    for i in at.tolist():
        if pd.api.types.is_scalar(labels[i]) and pd.isna(labels[i]):
            raise ValueError(f"y: the label of row {i} is missing; drop the row or label it.")


def index_of_labels(classes: Levels, found: Levels, label: np.ndarray) -> np.ndarray:
    """Labels, given as indices of `found`, as indices of `classes`."""
    position = classes.index(found.values)
    if (position < 0).any():
        unknown = found.values[int(np.argmax(position < 0))]
        row = int(np.argmax(position[label] < 0))
        raise ValueError(
            f"The label {shown(unknown)} of row {row} is not among the known classes {shown(list(classes.values))}; "
            "partial_fit(classes=...) declares further ones."
        )
    return _moved(label, position)


def _moved(index: np.ndarray, position: np.ndarray) -> np.ndarray:
    """`position[index]`, in which most often nothing moves."""
    if np.array_equal(position, np.arange(len(position))):
        return index.astype(np.int32, copy=False)
    return position.astype(np.int32)[index]
