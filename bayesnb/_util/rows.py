"""Selection of rows from any table that users pass, and results of rows put in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing


def take_rows(X: Any, index: np.ndarray | slice) -> Any:
    """Return the rows `index` (positions, mask or slice) of an array, list, sparse matrix (as CSR) or DataFrame."""
    return X.tocsr()[index] if sp.issparse(X) else _safe_indexing(X, index)


def scatter_rows(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return (N, …) float64 values of all rows, from pairs of a mask (N,) and the values of the rows in the mask."""
    values = np.empty((len(parts[0][0]), *parts[0][1].shape[1:]))
    for mask, part in parts:
        values[mask] = part
    return values
