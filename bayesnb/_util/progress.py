"""Progress bars on a terminal or in a notebook, for work that takes longer than a second."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import current_thread, main_thread


_MANY_ROWS = 4096

_silent = ContextVar("silent", default=0)


def _ignore_steps(steps: float = 1) -> None:
    """Do nothing: there is no progress bar."""


@contextmanager
def progress(title: str | None, total: float | None, unit: str = "it") -> Iterator[Callable[..., object]]:
    """Context with a progress bar, which yields the function that advances the bar by 1 or by a number of steps.

    Parameters
    ----------
    title : str or None
        Text before the bar. None: no bar, and no bars of the work inside either.
    total : number or None
        Total number of steps, if it is known.
    unit : str
        Unit of a step; "B" for bytes.

    Notes
    -----
    The bar is written to stderr after the first second, if stderr is a terminal or a notebook's, and removed at the
    end. In notebooks TQDM_DISABLE switches it off. Only the main thread has a bar, also for work in several threads.
    """
    if title is not None and not isinstance(title, str):
        raise ValueError(f"progress={title!r} must be the title of a progress bar, or None for no bar.")
    if title is None:
        # A count, as contexts of generators need not end in the reverse order of their beginning.
        _silent.set(_silent.get() + 1)
        try:
            yield _ignore_steps
        finally:
            _silent.set(_silent.get() - 1)
        return
    if _silent.get() or current_thread() is not main_thread():
        yield _ignore_steps
        return
    from tqdm import tqdm

    # For None, tqdm hides the bar unless stderr is a terminal.
    hidden = None if not _in_notebook() or "TQDM_DISABLE" in os.environ else False
    scaled = unit == "B"
    spaced = unit if scaled or unit == "it" else f" {unit}"
    with tqdm(total=total, desc=title, unit=spaced, unit_scale=scaled, delay=1, leave=False, disable=hidden) as bar:
        yield bar.update


def _in_notebook() -> bool:
    """Return whether stderr is that of a notebook's kernel, which is not a terminal and shows bars."""
    return type(sys.stderr).__module__.startswith("ipykernel")


@contextmanager
def rows_progress(title: str, n: int) -> Iterator[Callable[..., object]]:
    """Context that yields the function that advances a progress bar over n rows; up to 4,096 rows have no bar."""
    if n <= _MANY_ROWS:
        yield _ignore_steps
        return
    with progress(title, n, "rows") as step:
        yield step
