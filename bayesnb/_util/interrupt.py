"""Handlers of Ctrl-C for the command line: some packages lose a KeyboardInterrupt, at import or in a callback."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from types import FrameType

_CALLBACK = "_xla_gc_callback"
"""Function of JAX that Python calls during garbage collection, where it drops exceptions."""
_SECONDS = 0.02


def exit_process(*_: object) -> None:
    """Handle SIGINT: write one line to stderr and end the process with status 130, without cleaning up."""
    os.write(2, b"bayesnb: interrupted.\n")
    os._exit(130)


def raise_interrupt(_: int, frame: FrameType | None) -> None:
    """Handle SIGINT: raise KeyboardInterrupt, or send the signal again later where Python would drop the exception."""
    while frame is not None:
        if frame.f_code.co_name == _CALLBACK:
            Timer(_SECONDS, os.kill, (os.getpid(), signal.SIGINT)).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


@contextmanager
def keep_interrupts() -> Iterator[None]:
    """Handle Ctrl-C inside the block by `raise_interrupt`, unless the process handles or ignores it in another way."""
    with _handling(raise_interrupt):
        yield


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the process at once inside the block, instead of raising KeyboardInterrupt.

    A process that handles or ignores Ctrl-C in another way, such as one in the background of a shell, keeps that way.
    """
    with _handling(exit_process):
        yield


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle SIGINT by `handler` inside the block, in the main thread, if KeyboardInterrupt would be raised there."""
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or before not in (signal.default_int_handler, raise_interrupt):
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
