"""Command line: `python -m bayesnb`; see `python -m bayesnb --help`."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence

from bayesnb._util.terminal import keep_interrupts, shorten
from bayesnb.cli import commands
from bayesnb.cli.commands import make_parser
from bayesnb.cli.document import InputError, OutputError, printable

_LONGEST_MESSAGE = 1000


@keep_interrupts()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    The code is 0, 3 if `drift` finds drift, 2 after bad input, 1 if standard output cannot be written, 130 if
    interrupted (the last three with one line on stderr), and 141, silently, if the reader of standard output has gone.
    """
    typed = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        args = make_parser().parse_args(typed, Namespace(typed=typed))
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
        if both := {*args.missing} & {*args.not_missing}:
            raise InputError(f"{min(both)!r} is given to --missing and to --not-missing. Use one of them.")
        return int(getattr(commands, args.command)(args))
    except InputError as error:
        message, code = f"error: {error}", 2
    except OutputError as error:
        # Flushing stdout would fail once more when Python closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        (reason,) = error.args
        if isinstance(reason, BrokenPipeError):
            return 141
        message, code = f"error: cannot write to standard output: {reason.strerror}.", 1
    except KeyboardInterrupt:
        message, code = "interrupted.", 130
    if sys.stderr is not None:
        print(f"bayesnb: {shorten(printable(message), _LONGEST_MESSAGE)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
