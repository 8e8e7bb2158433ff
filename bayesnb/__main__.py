"""Command line: `python -m bayesnb`; see `python -m bayesnb compare --help`."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import warnings
from _thread import interrupt_main
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from threading import Timer
from typing import Any, NoReturn

from bayesnb._util import interrupt
from bayesnb.cli import comparison, output, report
from bayesnb.cli.column_types import Marks
from bayesnb.cli.command import Command
from bayesnb.cli.csv_cells import InputError, title
from bayesnb.cli.document import SUFFIXES, Format, render
from bayesnb.cli.fitting import Settings
from bayesnb.cli.labelled_data import NUMBERS, Dataset, built_in_datasets, load_csv
from bayesnb.cli.terminal import fill, printable, squeeze
from bayesnb.estimators.defaults import ALPHA, CLASS_ALPHA
from bayesnb.estimators.mixed import KINDS
from bayesnb.version import __version__

_COMPARE = """Fit naive Bayes and show maximum likelihood beside the Bayesian estimates, plain and with weights of
features: scores on held-out rows, the log evidence, and the most uncertain parameters with their intervals. Without
--csv it runs on scikit-learn's breast cancer data and on the watermelon table."""

_RULES = """How columns are guessed: numbers are as --numbers says, but integers of at most 10 distinct values with
five rows a value or more are categorical; everything else is categorical. A column of strings without repetition, or
of consecutive integers, is left out as an identifier unless a flag names it, and so is a column of a single value,
which tells nothing. Cells that pandas takes for missing (empty, NA, nan, null, None and the like) are missing. Row 1
is that of the names. A file that does not fit into memory is read twice, in pieces: about 100,000 rows at most, drawn
at random from each class in proportion, are kept and held out, and all others are counted as they come; weights are
found on as many of these."""

_LEVELS = {
    "categorical": "columns of levels",
    "bernoulli": "columns where a number above 0 is present, else absent",
    "multinomial": "columns that are together one vector of counts, such as words",
}
_LONGEST_MESSAGE = 1000


class OutputError(Exception):
    """Standard output cannot be written."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    The code is 0, or 2 after bad input, 1 if standard output cannot be written, 130 if interrupted (with one line on
    stderr each), and 141, silently, if the reader of standard output has gone.
    """
    try:
        interrupt.restore_default()
        with _interrupts_repeated():
            return _run(argv)
    except InputError as error:
        return _complain(f"error: {error}", 2)
    except OutputError as error:
        _discard_output()
        return _complain(f"error: standard output: {error}.", 1)
    except BrokenPipeError:
        _discard_output()
        return 141
    except KeyboardInterrupt:
        return _complain("interrupted.", 130)


@contextmanager
def _interrupts_repeated() -> Iterator[None]:
    """Send a Ctrl-C once more if it hits a callback that cannot raise, such as one of the garbage collector."""
    before = sys.unraisablehook

    def hook(ignored: sys.UnraisableHookArgs) -> None:
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            before(ignored)
            return
        again = Timer(0.05, interrupt_main)
        again.daemon = True
        again.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    try:
        args = parser.parse_args(argv)
    except SystemExit:  # The user asked for help or for the version.
        if sys.stdout is not None:  # It is None if it was closed from the beginning.
            with _output_errors():
                sys.stdout.flush()
        raise
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    if args.command is None:
        _say(parser.format_help())
    else:
        _compare(args, Command.from_arguments(sys.argv[1:] if argv is None else argv))
    return 0


def _say(text: str = "") -> None:
    """Print and flush, so that an output that is full is noticed before anything else is computed."""
    with _output_errors():
        print(text, flush=True)


@contextmanager
def _output_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.strerror or error) from None


def _complain(message: str, code: int) -> int:
    if sys.stderr is not None:
        print(f"bayesnb: {squeeze(printable(message), _LONGEST_MESSAGE)}", file=sys.stderr)
    return code


def _discard_output() -> None:
    """Redirect stdout, since flushing it would fail once more when Python closes it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _compare(args: argparse.Namespace, typed: Command) -> None:
    mixed = args.estimator == "mixed"
    settings = Settings(
        args.test_size, args.seed, args.alpha, args.class_alpha, args.prob, mixed, args.weights, args.numbers
    )
    names = output.file_names([title(args.csv)] if args.csv else [data.name for data in built_in_datasets()])
    if args.out is not None:
        output.require_free(args.out, names, args.overwrite)
    printed: Format = "text" if args.out is not None or args.format is None else args.format
    outcomes, sections = [], []
    for dataset in _datasets(args):
        with _recorded_warnings() as messages:
            outcome = comparison.run(dataset, settings)
        outcomes.append(replace(outcome, notes=[*outcome.notes, *messages]))
        sections.append(report.overview(outcomes[-1], settings))
        if printed == "text":
            _say(f"{render(sections[-1], 'text', depth=2)}\n")
    if args.out is not None:
        with _recorded_warnings() as messages, output.filled(args.out, names) as folder:
            output.write_files(outcomes, settings, typed, args.format or "html", folder)
            written = sorted(file.name for file in folder.iterdir())
        for message in messages:
            _say(fill(f"note: {message}", rest="      "))
        for name in written:
            _say(f"wrote {printable(str(args.out / name))}")
        _say()
    guide = report.guide()
    _say(render(guide, "text", depth=2) if printed == "text" else render(report.enclose([*sections, guide]), printed))


@contextmanager
def _recorded_warnings() -> Iterator[list[str]]:
    """Yield a list that has the messages of all user warnings at the end."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield messages
    messages += dict.fromkeys(str(w.message) for w in caught if w.category is UserWarning)


def _datasets(args: argparse.Namespace) -> list[Dataset]:
    named = [(column, kind) for kind in KINDS for column in _split(getattr(args, kind))]
    if args.csv is None:
        marks = args.missing or args.missing_in or args.not_missing
        if args.target is not None or named or args.drop or marks or args.estimator != "auto":
            raise InputError("--target, --estimator, --missing and the columns' flags describe a file: --csv FILE.")
        return built_in_datasets()
    if args.target is None:
        raise InputError("--csv needs --target COLUMN, the column with the classes.")
    kinds, target, drop = dict(named), args.target.strip(), _split(args.drop)
    if target in drop:
        raise InputError(f"--drop leaves out the target {target!r}. Drop other columns, or name another target.")
    for column, kind in named:
        if kinds[column] != kind or column == target or column in drop:
            raise InputError(f"Column {column!r} is named by two flags; choose one.")
    default = args.estimator if args.estimator in KINDS else None
    return [load_csv(args.csv, target, _marks(args), kinds, default, drop)]


def _marks(args: argparse.Namespace) -> Marks:
    everywhere, values = (frozenset(map(str.strip, given)) for given in (args.missing, args.not_missing))
    if both := everywhere & values:
        raise InputError(f"{min(both)!r} is given to --missing and to --not-missing; choose one.")
    within: dict[str, frozenset[str]] = {}
    for mark, columns in args.missing_in:
        for column in _split([columns]):
            within[column] = within.get(column, frozenset()) | {mark.strip()}
    return Marks(everywhere, within, values)


def _split(groups: Sequence[str]) -> list[str]:
    """Names in groups that are lines of CSV: commas separate names, and quotes enclose names with commas."""
    names: list[str] = []
    for group in groups:
        try:
            names += chain.from_iterable(csv.reader([group], skipinitialspace=True, strict=True))
        except csv.Error as error:
            raise InputError(f"{group!r} names no columns: {error}.") from None
    return [name.strip() for name in names if name.strip()]


class _Parser(argparse.ArgumentParser):
    """Parser that refuses arguments in one line, without the usage of all others."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}. {self.prog} --help lists the flags.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m bayesnb", description="Naive Bayes as Bayesian statistics.")
    parser.add_argument("--version", action="version", version=f"bayesnb {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    compare = commands.add_parser(
        "compare", help="maximum likelihood beside the Bayesian estimates", description=_COMPARE, epilog=_RULES
    )
    repeatable: dict[str, Any] = {"action": "append", "default": []}
    mark: dict[str, Any] = {**repeatable, "metavar": "MARK"}
    columns: dict[str, Any] = {**repeatable, "metavar": "COLS"}

    add = compare.add_argument_group("the file").add_argument
    add("--csv", type=_path, metavar="FILE", help="table whose first line names the columns; may be gzipped")
    add("--target", metavar="COLUMN", help="column with the classes")
    usual = "empty cells, NA, nan, null and the like"
    add("--missing", **mark, help=f"mark of a missing cell, such as '?', besides {usual}; repeatable")
    only = "mark of a missing cell in these columns only, such as the 0 of a blood pressure; repeatable"
    add("--missing-in", **repeatable, nargs=2, metavar=("MARK", "COLS"), help=only)
    add("--not-missing", **mark, help="one of those that is a value after all, such as NA for Namibia; repeatable")

    syntax = "COLS: names with commas between, quoted if they have some: '\"width, cm\",height'; repeatable"
    add = compare.add_argument_group(f"the columns ({syntax})").add_argument
    kinds = ["auto", *KINDS, "mixed"]
    default_kind = "kind of all columns that no flag below names; auto and mixed: guess"
    add("--estimator", choices=kinds, default="auto", help=default_kind)
    for kind in KINDS:
        add(f"--{kind}", **columns, help=_LEVELS.get(kind) or NUMBERS[kind].words.columns)
    add("--drop", **columns, help="columns to leave out")

    add = compare.add_argument_group("the model and its test").add_argument
    for name, value, subject in (("--alpha", ALPHA, "levels"), ("--class-alpha", CLASS_ALPHA, "classes")):
        concentration = f"Dirichlet concentration of the {subject} (default {value:g})"
        add(name, type=_number(0, None), default=value, help=concentration)
    add(
        "--numbers",
        choices=["gaussian", "binned", "auto"],
        default="gaussian",
        help="densities of the columns of numbers that no flag names: normal, of any shape, or of each column the one "
        "that tells more of the class, by leave-one-out, chosen and compiled anew in each fold, which takes a minute "
        "or more (default gaussian)",
    )
    add(
        "--weights",
        choices=["auto", "feature", "temperature", "none"],
        default="auto",
        help="weights of features, fitted to halves of the rows, as features depend on each other: one a feature, a "
        "temperature for all, or none (default auto: one a feature, a temperature for more than 256 features, none for "
        "more than 100 classes)",
    )
    add("--prob", type=_number(0, 1), default=0.9, help="posterior probability of the intervals (default 0.9)")
    share = "share of the rows to hold out (default 0.3; fewer than 1,000 rows are cross-validated instead)"
    add("--test-size", type=_number(0, 1), metavar="SHARE", help=share)
    add("--seed", type=_seed, default=0, help="seed of the choice of held-out rows (default 0)")

    add = compare.add_argument_group("the report").add_argument
    folder = "write tables, figures, the posterior (NetCDF) and a report with all analyses into this folder"
    add("--out", type=_path, metavar="DIR", help=folder)
    add("--overwrite", action="store_true", help="replace the files of an earlier run in that folder")
    formats = "format of the report: report.html (default), report.md or report.txt in the folder of --out; without "
    formats += "--out, format of what is printed (default text)"
    add("--format", choices=list(SUFFIXES), help=formats)
    return parser


def _number(low: float, high: float | None) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = float(text)
        if high is None and not low <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} must be a number of at least {low}")
        if high is not None and not low < value < high:
            raise argparse.ArgumentTypeError(f"{text} must lie between {low} and {high}")
        return value

    parse.__name__ = "number"
    return parse


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} must be an integer of at least 0")
    return int(text)


def _path(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty")
    return Path(text)


if __name__ == "__main__":
    sys.exit(main())
