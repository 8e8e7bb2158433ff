"""Propriety: whether a posterior can be normalised, and so has draws and intervals."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding
from bayesnb.model import NaiveBayes

CLASS = "(class)"


class ImproperPosteriorError(ValueError):
    """A posterior that cannot be normalised, and so has no draws and no intervals."""


def require_proper(encoding: Encoding, model: NaiveBayes) -> None:
    """Refuse a posterior without draws and intervals.

    Raises
    ------
    ImproperPosteriorError
        Naming the first class and feature to blame, if a zero concentration met a zero count.
    """
    found = _impropriety(model)
    total = sum(int(improper.sum()) for improper, _ in found)
    if not total:
        return
    b, (improper, without_mean) = next((b, f) for b, f in enumerate(found) if f[0].any())
    # In an improper group of levels the mean says which of them is to blame.
    culprit = improper & without_mean
    c, k = (int(i[0]) for i in np.nonzero(culprit if culprit.any() else improper))
    if b == 0:
        label, feature, level = encoding.classes.values[k], CLASS, encoding.classes.values[k]
    else:
        columns = encoding.blocks[b - 1]
        within, levels = columns.axis()
        label, feature = encoding.classes.values[c], columns.names[int(within[k])]
        level = next(iter(model.blocks[b - 1].variance())) if levels is None else levels[k]
    raise ImproperPosteriorError(
        f"The posterior of class {label!r}, feature {feature!r}, {level!r} is improper (the first of {total} such "
        "parameters): its prior has a zero concentration and no data make up for it, so it has no draws and no "
        "interval. Choose a proper prior, such as alpha=0.5 and class_alpha=0.5."
    )


@float64
def _impropriety(model: NaiveBayes) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of the class probabilities and each block, (C, K) each: what is improper, and what has no positive mean."""
    return _examine(model)


@jax.jit
def _examine(model: NaiveBayes) -> Any:
    families = (model.class_prior, *model.blocks)
    return [(~f.proper(), ~(next(iter(f.mean().parameters().values())) > 0)) for f in families]
