"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings


def warn(message: str) -> None:
    """Issue a UserWarning that points at the line of the first caller outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "bayesnb":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)
