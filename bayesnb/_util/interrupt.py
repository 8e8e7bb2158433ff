"""Ctrl-C while `python -m bayesnb` imports: Python imports the package before `bayesnb.__main__` can catch anything."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import PurePath
from typing import Any


def is_command_line() -> bool:
    """Whether this process was started as `python -m bayesnb` or as the script `bayesnb`."""
    program = sys.argv[0] if sys.argv else ""
    if program == "-m":  # Python is still looking for the module
        program = sys.orig_argv[-len(sys.argv)].removeprefix("-m")
    return PurePath(program).stem == "bayesnb"


def leave(*_: Any) -> None:
    """End the process with one line on stderr, as a handler of SIGINT."""
    os.write(2, b"bayesnb: interrupted.\n")
    os._exit(130)


def restore() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, once everything is imported."""
    if signal.getsignal(signal.SIGINT) is leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# A process that ignores Ctrl-C from its beginning, as one in the background of a shell, keeps ignoring it.
if is_command_line() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, leave)
