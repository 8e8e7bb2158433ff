"""Handler of Ctrl-C while `python -m bayesnb` imports the package, before `bayesnb.__main__` can catch anything."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import PurePath


def is_command_line() -> bool:
    """Return whether this process was started as `python -m bayesnb` or as the script `bayesnb`."""
    program = sys.argv[0] if sys.argv else ""
    if program == "-m":  # Python has not found the module yet.
        program = sys.orig_argv[-len(sys.argv)].removeprefix("-m")
    return PurePath(program).stem == "bayesnb"


def exit_process(*_: object) -> None:
    """Handle SIGINT: write one line to stderr and end the process with status 130, without cleaning up."""
    os.write(2, b"bayesnb: interrupted.\n")
    os._exit(130)


def restore_default() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, if `exit_process` handles it."""
    if signal.getsignal(signal.SIGINT) is exit_process:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# A process that ignored Ctrl-C from its start, such as one in the background of a shell, keeps ignoring it.
if is_command_line() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, exit_process)
