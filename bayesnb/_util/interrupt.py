"""Handler of Ctrl-C while the command line imports packages, some of which lose a KeyboardInterrupt."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


def exit_process(*_: object) -> None:
    """Handle SIGINT: write one line to stderr and end the process with status 130, without cleaning up."""
    os.write(2, b"bayesnb: interrupted.\n")
    os._exit(130)


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the process at once inside the block, instead of raising KeyboardInterrupt.

    A process that handles or ignores Ctrl-C in another way, such as one in the background of a shell, keeps that way.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, exit_process)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
