"""Checks of arguments that many functions share: an error names the argument and its value."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


def require_integer(name: str, value: Any, least: int = 1) -> None:
    """Raise ValueError unless `value` is an integer (not a bool) of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        wanted = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name}={value!r} must be {wanted}.")


def require_probability(name: str, value: Any) -> None:
    """Raise ValueError unless 0 < `value` < 1."""
    if not isinstance(value, int | float | np.number) or not 0 < value < 1:
        raise ValueError(f"{name}={value!r} must be a number between 0 and 1, such as 0.9.")


def require_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Raise ValueError unless `value` is one of `allowed`."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is unknown; use {' or '.join(map(repr, allowed))}.")


def require_posterior(nb: Any, who: str) -> None:
    """Raise unless `nb` is fitted and its parameters have an exact posterior.

    Raises
    ------
    NotImplementedError
        With the reason that the classifier gives, `nb._no_posterior`.
    TypeError
        If it is no classifier of bayesnb.
    """
    if not hasattr(type(nb), "_no_posterior"):
        raise TypeError(f"{who} takes a fitted classifier of bayesnb, and got {type(nb).__module__}.{nb!r}.")
    check_is_fitted(nb)
    if nb._no_posterior is not None:
        raise NotImplementedError(f"{who}: {nb._no_posterior}")


def require_evidence(nb: Any, who: str) -> None:
    """As `require_posterior`, where log p(X, y) is needed in closed form too."""
    require_posterior(nb, who)
    if nb._no_evidence is not None:
        raise NotImplementedError(f"{who}: {nb._no_evidence}")
