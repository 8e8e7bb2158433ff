"""One-line assertion that a call raises an error with a given message."""

from collections.abc import Callable
from typing import Any

import pytest


def refused(
    match: str, call: Callable[..., Any], /, *args: Any, error: type[Exception] | tuple = ValueError, **keywords: Any
) -> None:
    """`call(*args, **keywords)` raises `error`, and its message matches."""
    with pytest.raises(error, match=match):
        call(*args, **keywords)
