"""Rows of X through a kernel, some at a time, so that memory does not grow with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayesnb.encoding import blocks
from bayesnb.model import NaiveBayes
from bayesnb.precision import float64
from bayesnb.scoring import pad
from bayesnb.uncertainty.proper import require_proper


@float64
def over_blocks(
    nb: Any, X: Any, cells: float, answer: Callable[[NaiveBayes, tuple[Any, ...], slice], np.ndarray]
) -> np.ndarray:
    """(N, …) from `answer(posterior, rows of a block, which of them are real)`; a row takes `cells` numbers.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    """
    require_proper(nb.encoding_, nb.posterior_)
    rows, n = nb._encode(X)
    model = pad(nb.encoding_, nb.posterior_)
    found = [answer(model, x, slice(piece.stop - piece.start)) for piece, x, _ in blocks(rows, n, cells=cells)]
    return np.concatenate(found)
