"""Propriety: whether a posterior can be normalised, and so has draws and intervals."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding
from bayesnb.families import supports
from bayesnb.families.protocol import ConditionalDraws
from bayesnb.model import NaiveBayes

CLASS = "(class)"


class ImproperPosteriorError(ValueError):
    """A posterior that cannot be normalised, and so has no draws and no intervals.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> nb = bnb.CategoricalNB(alpha=0).fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> bnb.posterior_draws(nb)
    Traceback (most recent call last):
        ...
    bayesnb.uncertainty.proper.ImproperPosteriorError: The posterior of class 'in', feature '0', 'sun' is improper ...
    """


def require_proper(encoding: Encoding, model: NaiveBayes) -> None:
    """Refuse a posterior without draws and intervals.

    Raises
    ------
    ImproperPosteriorError
        Naming the first class and feature to blame, if a zero concentration met a zero count.
    NotImplementedError
        If a family says why its parameters are not drawn.
    """
    for family in model.blocks:
        if supports(family, ConditionalDraws) and (reason := family.draws_refusal()) is not None:
            raise NotImplementedError(f"posterior draws: {reason}")
    found = _improper(model)
    total = sum(int(improper.sum()) for improper in found)
    if not total:
        return
    b, improper = next((b, own) for b, own in enumerate(found) if own.any())
    # In an improper group of levels the mean says which of them is to blame.
    culprit = improper & ~_has_mean((model.class_prior, *model.blocks)[b])
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
@jax.jit
def _improper(model: NaiveBayes) -> Any:
    """(C, K) of the class probabilities and of each block."""
    return [~family.proper() for family in (model.class_prior, *model.blocks)]


@float64
@jax.jit
def _has_mean(family: Any) -> Any:
    """(C, K) whether the mean is positive."""
    return next(iter(family.mean().parameters().values())) > 0
