"""A progress bar on a terminal, or in a notebook, for what takes longer than a second."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import current_thread, main_thread

from bayesnb._util.arguments import shown

_MANY_ROWS = 4096

_silent = ContextVar("silent", default=0)


def _nothing(steps: float = 1) -> None:
    return None


@contextmanager
def progress(title: str | None, total: float | None, unit: str = "it") -> Iterator[Callable[..., object]]:
    """Yield a function to call after each step, or with the number of steps since the last call.

    Parameters
    ----------
    title : str or None
        Stands before the bar; None: no bar, nor one of what is done inside.
    total : number or None
        Steps to come, if that is known.
    unit : str
        What a step is; "B" for bytes.

    Notes
    -----
    Written to stderr after the first second, if that is a terminal or a notebook's, and taken away at the end; in
    notebooks not where TQDM_DISABLE is set. Work that is done side by side has one bar, by the thread that waits for
    it.
    """
    if title is not None and not isinstance(title, str):
        raise ValueError(f"progress={shown(title)} must be the title of a progress bar, or None for no bar.")
    if title is None:
        # By numbers, as contexts of generators need not end in the order in which they began.
        _silent.set(_silent.get() + 1)
        try:
            yield _nothing
        finally:
            _silent.set(_silent.get() - 1)
        return
    if _silent.get() or current_thread() is not main_thread():
        yield _nothing
        return
    from tqdm import tqdm

    hidden = None if not _in_notebook() or "TQDM_DISABLE" in os.environ else False  # None: where there is no terminal
    scaled = unit == "B"
    spaced = unit if scaled or unit == "it" else f" {unit}"
    with tqdm(total=total, desc=title, unit=spaced, unit_scale=scaled, delay=1, leave=False, disable=hidden) as bar:
        yield bar.update


def _in_notebook() -> bool:
    """Whether stderr is that of a kernel, which shows a bar, and is no terminal."""
    return type(sys.stderr).__module__.startswith("ipykernel")


@contextmanager
def rows_progress(title: str, n: int) -> Iterator[Callable[..., object]]:
    """`progress` over n rows, if they are more than a block or so: a call on few rows costs nothing."""
    if n <= _MANY_ROWS:
        yield _nothing
        return
    with progress(title, n, "rows") as step:
        yield step
