"""Selection of rows from any table that users pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing


def take_rows(X: Any, index: np.ndarray | slice) -> Any:
    """Return some rows of an array, list, sparse matrix or DataFrame."""
    return X.tocsr()[index] if sp.issparse(X) else _safe_indexing(X, index)
