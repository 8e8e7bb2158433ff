"""Command line: `python -m bayesnb`; see `python -m bayesnb --help`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from bayesnb._util.interrupt import exit_on_interrupt, keep_interrupts
from bayesnb._util.kinds import KINDS
from bayesnb._util.short_names import shorten
from bayesnb.cli import commands
from bayesnb.cli.commands import require_distinct_marks, require_one_flag
from bayesnb.cli.csv_cells import InputError, require_readable, title
from bayesnb.cli.document import Format, render
from bayesnb.cli.output_folder import BUILT_IN, file_names, filled, require_free
from bayesnb.cli.parser import column_names, make_parser
from bayesnb.cli.terminal import OutputError, fill, printable, recorded_warnings, say

if TYPE_CHECKING:
    from bayesnb.cli.labelled_data import Dataset

_LONGEST_MESSAGE = 1000


@keep_interrupts()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    The code is 0, 3 if `drift` finds drift, 2 after bad input, 1 if standard output cannot be written, 130 if
    interrupted (the last three with one line on stderr), and 141, silently, if the reader of standard output has gone.
    """
    try:
        arguments = sys.argv[1:] if argv is None else argv
        args = make_parser().parse_args(arguments or ["--help"])
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
        run = {"fit": commands.fit, "score": commands.score, "drift": commands.drift}.get(args.command)
        if run is not None:
            return run(args)
        _compare(args, arguments)
    except InputError as error:
        return _report_error(f"error: {error}", 2)
    except OutputError as error:
        # Flushing stdout would fail once more when Python closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        (reason,) = error.args
        if isinstance(reason, BrokenPipeError):
            return 141
        return _report_error(f"error: cannot write to standard output: {reason.strerror}.", 1)
    except KeyboardInterrupt:
        return _report_error("interrupted.", 130)
    return 0


def _report_error(message: str, code: int) -> int:
    """Print a message to standard error, shortened to one line, and return the exit code `code`."""
    if sys.stderr is not None:
        print(f"bayesnb: {shorten(printable(message), _LONGEST_MESSAGE)}", file=sys.stderr)
    return code


def _compare(args: argparse.Namespace, typed: Sequence[str]) -> None:
    """Run the command `compare`: analyse each data set, write the files of --out, and print the report.

    JAX and pandas, whose import takes seconds, are imported after the checks of flags, of the file and of the folder.
    """
    kinds, within = _named_columns(args)
    if args.csv is not None:
        require_readable(args.csv)
    if args.loss is not None:
        require_readable(args.loss)
    names = file_names([title(args.csv)] if args.csv else BUILT_IN)
    if args.out is not None:
        require_free(args.out, names, args.overwrite)
    with exit_on_interrupt():
        from bayesnb._util.compilation_cache import enable_cache
        from bayesnb.cli import comparison, output, report
        from bayesnb.cli.fitting import Settings
    with suppress(OSError):  # without a folder for it there is no cache
        enable_cache()
    options = {field.name: getattr(args, field.name) for field in fields(Settings) if hasattr(args, field.name)}
    settings = Settings(**options, mixed=args.estimator == "mixed")
    printed: Format = "text" if args.out is not None or args.format is None else args.format
    outcomes, sections, written = [], [], []
    with filled(args.out, names) if args.out else nullcontext() as folder:
        for dataset in _datasets(args, kinds, within):
            with recorded_warnings() as messages:
                outcome = comparison.run(dataset, settings)
            outcomes.append(replace(outcome, notes=[*outcome.notes, *messages]))
            sections.append(report.overview(outcomes[-1], settings))
            if printed == "text":
                say(f"{render(sections[-1], 'text', depth=2)}\n")
        if folder is not None:
            with recorded_warnings() as messages:
                output.write_files(outcomes, settings, typed, args.format or "html", folder)
            for message in messages:
                say(fill(f"note: {message}", rest="      "))
            written = sorted(file.name for file in folder.iterdir())
    for name in written:
        say(f"wrote {printable(str(args.out / name))}")
    guide = report.guide()
    say(render(guide, "text", depth=2) if printed == "text" else render(report.enclose([*sections, guide]), printed))


def _named_columns(args: argparse.Namespace) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """Return {column: kind} and {column: marks of its missing cells}; raise InputError if flags conflict."""
    flags = [(column, flag) for flag in (*KINDS, "drop") for column in getattr(args, flag)]
    if args.csv is None:
        marks = args.missing or args.missing_in or args.not_missing
        if args.target is not None or flags or marks or args.estimator != "auto":
            raise InputError(
                "--target, --estimator, --missing and flags that name columns need a file; add --csv FILE."
            )
        return {}, {}
    if args.target is None:
        raise InputError("--csv needs --target COLUMN, the column of class labels.")
    named = require_one_flag(flags, args.target)
    require_distinct_marks(args)
    within: dict[str, frozenset[str]] = {}
    for mark, columns in args.missing_in:
        for column in column_names(columns):
            within[column] = within.get(column, frozenset()) | {mark.strip()}
    return {column: flag for column, flag in named.items() if flag != "drop"}, within


def _datasets(
    args: argparse.Namespace, kinds: Mapping[str, str], within: Mapping[str, frozenset[str]]
) -> list[Dataset]:
    """Load the data sets that the arguments name, a file or the built-in ones."""
    from bayesnb.cli.column_types import Marks
    from bayesnb.cli.labelled_data import built_in_datasets, load_csv

    if args.csv is None:
        return built_in_datasets()
    marks = Marks(frozenset(args.missing), within, frozenset(args.not_missing))
    default = args.estimator if args.estimator in KINDS else None
    return [load_csv(args.csv, args.target, marks, kinds, default, args.drop)]


if __name__ == "__main__":
    sys.exit(main())
