"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings


class UnknownLevelWarning(UserWarning):
    """Warning of cells whose values are not levels of the model."""


class UndefinedProbabilityWarning(UserWarning):
    """Warning of rows without class probabilities."""


class NoWeightsWarning(UserWarning):
    """Warning of too few rows to fit weights of terms."""


OWN_WARNINGS = (UserWarning, UnknownLevelWarning, UndefinedProbabilityWarning, NoWeightsWarning)
"""Categories of the warnings that this package issues; libraries derive others from UserWarning."""


def warn(message: str, category: type[UserWarning] = UserWarning) -> None:
    """Issue a warning that points at the line of the first caller outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "bayesnb":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
