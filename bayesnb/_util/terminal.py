"""Progress bars, names cut to a width, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate, takewhile
from threading import Timer, current_thread, main_thread
from types import FrameType
from typing import Any

# == Names cut to a number of columns of text, so that different names stay different ==============


def count_columns(text: str) -> int:
    """Number of columns that a text takes on a terminal; a Chinese character takes two."""
    return sum(map(_width, text))


def shorten(text: str, width: int) -> str:
    """Return a text, cut to `width` columns by "…" in its middle, as names often differ at the end."""
    if count_columns(text) <= width:
        return text
    tail = _first_columns(text[::-1], width // 3)[::-1]
    return f"{_first_columns(text, width - 1 - count_columns(tail)).rstrip()}…{tail.lstrip()}"


def shorten_apart(names: Iterable[str], width: int) -> dict[str, str]:
    """Return {name: short form of at most `width` columns}; forms that would look alike start where names differ."""
    short = {name: shorten(name, width) for name in names}
    for text, occurrences in Counter(short.values()).items():
        if occurrences > 1:
            alike = [name for name in short if short[name] == text]
            common = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*alike, strict=False)))
            start = alike[0].rfind(" ", 0, common) + 1 or common
            short |= {name: "…" + shorten(name[start:], width - 1) for name in alike}
    return short


def _first_columns(text: str, width: int) -> str:
    """Longest beginning of a text that takes at most `width` columns."""
    return text[: sum(columns <= width for columns in accumulate(map(_width, text)))]


def _width(character: str) -> int:
    """Number of columns of a character: 2 if it is East Asian and wide, 0 if it is combining, else 1."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# == Handlers of SIGINT (Ctrl-C) and SIGTERM: some packages lose a KeyboardInterrupt, at import or in a callback

_CALLBACK = "_xla_gc_callback"
"""Function of JAX that Python calls during garbage collection, where it drops exceptions."""
_SECONDS = 0.02


def exit_process(*_: object) -> None:
    """Handle SIGINT: write one line to stderr and end the process with status 130, without cleaning up."""
    os.write(2, b"bayesnb: interrupted.\n")
    os._exit(130)


def raise_interrupt(number: int, frame: FrameType | None) -> None:
    """Handle a signal: raise KeyboardInterrupt for SIGINT, SystemExit for SIGTERM, so that temporary files are removed.

    Where Python would drop the exception, the signal is sent again later.
    """
    while frame is not None:
        if frame.f_code.co_name == _CALLBACK:
            Timer(_SECONDS, os.kill, (os.getpid(), number)).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


@contextmanager
def keep_interrupts() -> Iterator[None]:
    """Handle SIGINT and SIGTERM inside the block by `raise_interrupt`, unless the process has handlers of its own."""
    with _handling(raise_interrupt, signal.SIGINT), _handling(raise_interrupt, signal.SIGTERM):
        yield


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the process at once inside the block, instead of raising KeyboardInterrupt.

    A process that handles or ignores Ctrl-C in another way, such as one in the background of a shell, keeps that way.
    """
    with _handling(exit_process, signal.SIGINT):
        yield


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None], number: signal.Signals) -> Iterator[None]:
    """Handle a signal by `handler` inside the block, in the main thread, in place of Python's or the system's way."""
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.getsignal(number)
    if current_thread() is not main_thread() or before not in (usual, raise_interrupt):
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


# == Progress bars on a terminal or in a notebook, for work that takes longer than a second ========

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
    The bar is written to stderr after the first second, also before the first step ends, if stderr is a terminal or a
    notebook's, and removed at the end. In notebooks TQDM_DISABLE switches it off. Only the main thread has a bar, also
    for work in several threads.
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

    # For None, tqdm hides the bar unless stderr is a terminal, which that of a notebook's kernel is not.
    in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    hidden = None if not in_notebook or "TQDM_DISABLE" in os.environ else False
    scaled = unit == "B"
    spaced = unit if scaled or unit == "it" else f" {unit}"
    with tqdm(total=total, desc=title, unit=spaced, unit_scale=scaled, delay=1, leave=False, disable=hidden) as bar:
        timer = Timer(1.0, _show, [bar])
        timer.daemon = True
        if not bar.disable:
            timer.start()
        try:
            yield bar.update
        finally:
            timer.cancel()


def _show(bar: Any) -> None:
    """Show a bar that waits for its first step to end."""
    bar.delay = 0  # Otherwise tqdm, which has not shown the bar itself, would not remove it.
    bar.refresh()


@contextmanager
def rows_progress(title: str, n: int) -> Iterator[Callable[..., object]]:
    """Context that yields the function that advances a progress bar over n rows; up to 4,096 rows have no bar."""
    if n <= _MANY_ROWS:
        yield _ignore_steps
        return
    with progress(title, n, "rows") as step:
        yield step
