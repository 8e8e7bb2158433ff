"""Command line: `python -m bayesnb`; see `python -m bayesnb compare --help`."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from bayesnb._util.interrupt import exit_on_interrupt
from bayesnb._util.kinds import KINDS
from bayesnb._util.short_names import shorten
from bayesnb._util.warnings import OWN_WARNINGS
from bayesnb.cli.csv_cells import InputError, require_readable, title
from bayesnb.cli.document import SUFFIXES, Format, render
from bayesnb.cli.output_folder import BUILT_IN, file_names, filled, require_free
from bayesnb.cli.terminal import fill, printable
from bayesnb.version import __version__

if TYPE_CHECKING:
    from bayesnb.cli.labelled_data import Dataset

_COMPARE = """Fit naive Bayes and compare maximum likelihood with the Bayesian estimates, with weights of features,
and with logistic regression: scores on held-out rows, the log evidence, and the most uncertain parameters with
intervals. Without --csv, the command analyses scikit-learn's breast cancer data and the watermelon table."""

_RULES = """How columns are guessed: columns of numbers follow --numbers, but integers are categorical if they have at
most 10 distinct values and at least five rows per value on average. All other columns are categorical. Strings without
repetition and consecutive integers are left out as identifiers unless a flag names the column, and so are columns with
a single value. Cells that pandas reads as missing (empty, NA, nan, null, None and similar) are missing. The names are
row 1. A file that does not fit into memory is read twice, in pieces: a stratified random sample of at most about
100,000 rows is kept and held out, and all other rows are counted; weights are fitted to a sample of the counted rows,
under the same limit."""

_LONGEST_MESSAGE = 1000


class OutputError(Exception):
    """Standard output cannot be written; the argument is the OSError."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    The code is 0, or 2 after bad input, 1 if standard output cannot be written, 130 if interrupted (with one line on
    stderr each), and 141, silently, if the reader of standard output has gone.
    """
    try:
        arguments = sys.argv[1:] if argv is None else argv
        args = _parser().parse_args(arguments or ["--help"])
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
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


def _say(text: str = "") -> None:
    """Print text and flush, so that a full output is noticed at once; raise OutputError if it cannot be written."""
    try:
        print(text, flush=True)
    except OSError as error:
        raise OutputError(error) from None


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
            with _recorded_warnings() as messages:
                outcome = comparison.run(dataset, settings)
            outcomes.append(replace(outcome, notes=[*outcome.notes, *messages]))
            sections.append(report.overview(outcomes[-1], settings))
            if printed == "text":
                _say(f"{render(sections[-1], 'text', depth=2)}\n")
        if folder is not None:
            with _recorded_warnings() as messages:
                output.write_files(outcomes, settings, typed, args.format or "html", folder)
            for message in messages:
                _say(fill(f"note: {message}", rest="      "))
            written = sorted(file.name for file in folder.iterdir())
    for name in written:
        _say(f"wrote {printable(str(args.out / name))}")
    guide = report.guide()
    _say(render(guide, "text", depth=2) if printed == "text" else render(report.enclose([*sections, guide]), printed))


@contextmanager
def _recorded_warnings() -> Iterator[list[str]]:
    """Record user warnings inside the block; at its end the yielded list has their texts, each once."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield messages
    messages += dict.fromkeys(str(w.message) for w in caught if w.category in OWN_WARNINGS)


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
    named = dict(flags)
    for column, flag in flags:
        if named[column] != flag or column == args.target:
            other = "target" if column == args.target else named[column]
            raise InputError(f"Column {column!r} is named by two flags, --{other} and --{flag}. Use one of them.")
    if both := {*args.missing} & {*args.not_missing}:
        raise InputError(f"{min(both)!r} is given to --missing and to --not-missing. Use one of them.")
    within: dict[str, frozenset[str]] = {}
    for mark, columns in args.missing_in:
        for column in _column_names(columns):
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


class _Parser(argparse.ArgumentParser):
    """Parser that refuses arguments in one line, without the usage of all others."""

    def error(self, message: str) -> NoReturn:
        """Raise InputError with the message and a hint at --help."""
        raise InputError(f"{message}. {self.prog} --help lists all flags.")

    def _print_message(self, message: str, file: object = None) -> None:
        """Print a text of argparse, such as the help, to standard output."""
        _say(message.rstrip())


def _parser() -> argparse.ArgumentParser:
    """Make the parser of the command line, with all flags of the command `compare`."""
    parser = _Parser(prog="python -m bayesnb", description="Naive Bayes as Bayesian statistics.")
    parser.add_argument("--version", action="version", version=f"bayesnb {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    compare = commands.add_parser(
        "compare", help="compare maximum likelihood with the Bayesian estimates", description=_COMPARE, epilog=_RULES
    )
    mark: dict[str, Any] = {"action": "append", "default": [], "type": str.strip, "metavar": "MARK"}
    columns: dict[str, Any] = {"action": "extend", "default": [], "type": _column_names, "metavar": "COLS"}

    add = compare.add_argument_group("the file").add_argument
    add("--csv", type=_path, metavar="FILE", help="table whose first line names the columns; may be gzipped")
    add("--target", type=str.strip, metavar="COLUMN", help="column of class labels")
    usual = "empty cells, NA, nan, null and similar"
    add("--missing", **mark, help=f"mark of a missing cell, such as '?', in addition to {usual}; repeatable")
    only = "mark of a missing cell in these columns only, such as 0 for a blood pressure; repeatable"
    add("--missing-in", **{**mark, "metavar": ("MARK", "COLS")}, nargs=2, help=only)
    add("--not-missing", **mark, help="mark that is a value in this file, such as NA for Namibia; repeatable")

    syntax = "COLS: names separated by commas; quote names that contain commas: '\"width, cm\",height'; repeatable"
    add = compare.add_argument_group(f"the columns ({syntax})").add_argument
    default_kind = "kind of all columns that no flag below names; auto and mixed guess it"
    add("--estimator", choices=["auto", *KINDS, "mixed"], default="auto", help=default_kind)
    for kind, description in KINDS.items():
        add(f"--{kind}", **columns, help=description)
    add("--drop", **columns, help="columns to leave out")

    add = compare.add_argument_group("the model and its evaluation").add_argument
    for name, subject in (("--alpha", "levels"), ("--class-alpha", "classes")):
        concentration = f"Dirichlet concentration of the {subject} (default 1)"
        add(name, type=_concentration, default=argparse.SUPPRESS, help=concentration)
    add(
        "--numbers",
        choices=["gaussian", "binned", "auto"],
        default="gaussian",
        help="density of columns of numbers that no flag names: normal, of any shape, or for each column the better of "
        "the two by leave-one-out, chosen in each fold, which takes a minute or more (default gaussian)",
    )
    add(
        "--weights",
        choices=["auto", "feature", "temperature", "none"],
        default="auto",
        help="weights for dependent features, fitted to halves of the rows: one for each feature, one temperature for "
        "all, or none (default auto: one for each of at most 256 features, else a temperature; none for more than 100 "
        "classes)",
    )
    add("--prob", type=_fraction, default=0.9, help="posterior probability of the intervals (default 0.9)")
    share = "share of the rows to hold out (default 0.3, but fewer than 1,000 rows are cross-validated)"
    add("--test-size", type=_fraction, metavar="SHARE", help=share)
    add("--seed", type=_seed, default=0, help="random seed of the held-out rows (default 0)")

    add = compare.add_argument_group("the report").add_argument
    folder = "folder for the report with all analyses, its tables and figures, and the posterior (NetCDF)"
    add("--out", type=_path, metavar="DIR", help=folder)
    add("--overwrite", action="store_true", help="replace files of an earlier run in this folder")
    formats = "format of the report in --out: report.html (default), report.md or report.txt; without --out, format of "
    formats += "the printed report (default text)"
    add("--format", choices=list(SUFFIXES), help=formats)
    return parser


def _column_names(text: str) -> list[str]:
    """Parse column names from a line of CSV, in which quotes enclose names with commas; raise InputError for others."""
    try:
        (names,) = csv.reader([text or " "], skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise InputError(
            f"{text!r} is not a list of column names: {error}. Separate names by commas, and quote a name that "
            "contains a comma."
        ) from None
    return [name.strip() for name in names if name.strip()]


def _concentration(text: str) -> float:
    """Parse a finite number of at least 0; raise ArgumentTypeError for other numbers."""
    if not 0 <= float(text) < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} must be a finite number of at least 0")
    return float(text)


def _fraction(text: str) -> float:
    """Parse a number between 0 and 1, both excluded; raise ArgumentTypeError for other numbers."""
    if not 0 < float(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} must be between 0 and 1")
    return float(text)


_concentration.__name__ = _fraction.__name__ = "number"  # Messages of argparse name the type by the function.


def _seed(text: str) -> int:
    """Parse an integer of at least 0; raise ArgumentTypeError for other texts."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} must be an integer of at least 0")
    return int(text)


def _path(text: str) -> Path:
    """Convert text to a path; raise ArgumentTypeError if it is blank."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the path is empty; pass a file or a folder")
    return Path(text)


if __name__ == "__main__":
    sys.exit(main())
