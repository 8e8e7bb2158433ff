"""Flags and commands `compare`, `fit`, `score` and `drift`: all are checked before packages are imported.

JAX and pandas, whose import takes seconds, are imported inside the functions.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from bayesnb._util.atomic_files import require_writable
from bayesnb._util.kinds import KINDS
from bayesnb._util.terminal import exit_on_interrupt
from bayesnb._util.warnings import UnknownLevelWarning
from bayesnb.cli.document import (
    BUILT_IN,
    SUFFIXES,
    Format,
    InputError,
    enumerate_names,
    file_names,
    fill,
    filled,
    printable,
    recorded_warnings,
    render,
    require_free,
    say,
)
from bayesnb.cli.tables import TableFile, blamed_on, open_table, require_readable, title
from bayesnb.version import __version__

if TYPE_CHECKING:
    from bayesnb.cli.reading import Marks

# == Parser of the command line, with the flags of all commands ====================================

_COMPARE = """Fit naive Bayes and compare maximum likelihood with the Bayesian estimates, with weights of features,
and with logistic regression: scores on held-out rows, the log evidence, and the most uncertain parameters with
intervals. Without --csv, the command analyses scikit-learn's breast cancer data and the watermelon table."""

_RULES = """How columns are read, by all commands: a column whose cells are all numbers is one of numbers, but of levels
if ten cells or more have at most two distinct values, or if a number begins with 0, as in 0100. Dates such as
2024-01-31 are numbers of days. All other columns are of levels; --numbers is for columns of numbers that no flag names.
Strings without repetition and consecutive integers are left out as identifiers unless a flag names the column. Cells
that pandas reads as missing (empty, NA, nan, null, None and similar) are missing. The names are row 1. A file that does
not fit into memory is read several times, in pieces, as `fit` reads it: a random sample of at most about 100,000 rows
chooses weights, and all rows are counted, except for the share of the sample (--test-size) that is held out."""

_FIT = """Fit a classifier to a CSV or Parquet file of any size, and save it. The file is read twice, in batches. A
random sample of at most 100,000 rows chooses weights, structure and densities; all rows are counted. All cells of a CSV
file determine the types of its columns, as in `compare`; the model file holds them, and the marks of missing cells.
Texts that are all different, and integers that count the rows, are left out as identifiers unless a flag names the
column."""

_SCORE = """Write P(class) for the rows of a CSV or Parquet file of any size. Columns are matched by name, and read as
the file that the model was fitted to. Missing cells, and levels that the model does not know, are left out of the
probabilities of their row. The kept columns and the labels are written as they are."""

_DRIFT = """Test each column of a CSV or Parquet file of any size against the rows that the model has counted. The exit
code is 3 if a q-value (a p-value corrected for the number of columns) is below --level, and 0 if none is."""

_LOSSES = "CSV file of losses: a line for each action, its name in the first cell, and a column for each class; "

_NUMBERS = """density of columns of numbers that no flag names: normal, of any shape, or for each column the better of
the two by leave-one-out, chosen in each fold, which takes a minute or more (default gaussian)"""

_WEIGHTS = """weights for dependent features, fitted to halves of the rows: one for each feature, one temperature for
all, or none (default auto: one for each of at most 256 features, else a temperature; none for more than 100 classes)"""

_FORMATS = """format of the report in --out: report.html (default), report.md, report.json or report.txt; without --out,
format of the printed report (default text)"""

_REFERENCE = """file of held-out rows in the same format; adds tests of the predictions and of all columns jointly, and
uses random samples of at most 100,000 rows of both files"""

_EXCEL_SAFE = """put an apostrophe before the texts of a CSV file that spreadsheets would compute, such as =1+1, which
changes these texts for programs"""

_INTERVAL = "adds the ends of the posterior intervals of the class probabilities; slow: some 3,000 rows a second"


class _Parser(argparse.ArgumentParser):
    """Parser that refuses arguments in one line, without the usage of all others."""

    def error(self, message: str) -> NoReturn:
        """Raise InputError with the message and a hint at --help."""
        raise InputError(f"{message}. {self.prog} --help lists all flags.")

    def _print_message(self, message: str, file: object = None) -> None:
        """Print a text of argparse, such as the help, to standard output."""
        say(message.rstrip())


def column_names(text: str) -> list[str]:
    """Parse column names from a line of CSV, in which quotes enclose names with commas; raise InputError for others."""
    try:
        (names,) = csv.reader([text or " "], skipinitialspace=True, strict=True)
    except csv.Error as error:
        advice = "Separate names by commas, and quote a name that contains a comma."
        raise InputError(f"{text!r} is not a list of column names: {error}. {advice}") from None
    return [name.strip() for name in names if name.strip()]


def _path(text: str) -> Path:
    """Convert text to a path; raise ArgumentTypeError if it is blank."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the path is empty; pass a file or a folder")
    return Path(text)


def _number(convert: Callable[[str], float], holds: Callable[[float], bool], expected: str) -> Callable[[str], float]:
    """Return a parser of numbers that raises ArgumentTypeError for texts that are not the `expected` number."""

    def parse(text: str) -> float:
        with suppress(ValueError):
            if holds(number := convert(text)):
                return number
        raise argparse.ArgumentTypeError(f"{text} must be {expected}")

    return parse


_CONCENTRATION = _number(float, lambda x: 0 <= x < inf, "a finite number of at least 0")
_FRACTION = _number(float, lambda x: 0 < x < 1, "between 0 and 1")
_SEED = _number(int, lambda x: x >= 0, "an integer of at least 0")
Flag = dict[str, Any]
"""Arguments of `add_argument` that several flags share."""
_MARK: Flag = {"action": "append", "default": [], "type": str.strip, "metavar": "MARK"}
_COLUMNS: Flag = {"action": "extend", "default": [], "type": column_names, "metavar": "COLS"}
_FILE: Flag = {"type": _path, "metavar": "FILE"}
_TARGET: Flag = {"type": str.strip, "metavar": "COLUMN"}


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    parser = _Parser(prog="python -m bayesnb", description="Naive Bayes as Bayesian statistics.")
    parser.add_argument("--version", action="version", version=f"bayesnb {__version__}")
    add_command = parser.add_subparsers(dest="command", metavar="COMMAND", required=True).add_parser
    title = "compare maximum likelihood with the Bayesian estimates"
    _add_compare_flags(add_command("compare", help=title, description=_COMPARE, epilog=_RULES))
    fit = add_command("fit", help="fit a classifier to a file of any size, and save it", description=_FIT)
    add = _add_file_flags(fit)
    add("--target", **_TARGET, required=True, help="column of class labels")
    names = "the classifier: WeightedNB (default), MixedNB, or that of one kind of columns, such as GaussianNB"
    add("--estimator", choices=["weighted", "mixed", *KINDS], default="weighted", help=names)
    add("--categorical", **_COLUMNS, help="columns of levels, such as codes that look like numbers")
    add("--numeric", **_COLUMNS, help="columns of numbers, whatever the first cells look like")
    add("--drop", **_COLUMNS, help="columns to leave out")

    score = add_command("score", help="write class probabilities of the rows of a file", description=_SCORE)
    add = _add_file_flags(score)
    add("--out", **_FILE, required=True, help="file to write: .csv or .parquet")
    add("--keep", **_COLUMNS, help="columns to copy into --out, such as an identifier")
    add("--loss", **_FILE, help=f"{_LOSSES}adds the decision with the least expected loss")
    add("--interval", type=_FRACTION, metavar="PROB", help=_INTERVAL)
    add("--excel-safe", action="store_true", help=_EXCEL_SAFE)

    drift = add_command("drift", help="test whether new rows differ from counted ones", description=_DRIFT)
    add = _add_file_flags(drift)
    add("--target", **_TARGET, help="column of class labels, if they are known")
    add("--reference", **_FILE, help=_REFERENCE)
    add("--level", type=_FRACTION, default=0.01, help="drift is a q-value below this (default 0.01)")
    add("--out", **_FILE, help="file to write the table to: .csv or .parquet")
    add("--excel-safe", action="store_true", help=_EXCEL_SAFE)
    return parser


def _add_compare_flags(compare: argparse.ArgumentParser) -> None:
    """Add the flags of the command `compare`."""
    add = compare.add_argument_group("the file").add_argument
    _add_file(add, compare.add_mutually_exclusive_group().add_argument)
    add = compare.add_argument_group("the file").add_argument
    add("--target", **_TARGET, help="column of class labels")
    add("--model", **_FILE, help="model of `fit`, by which the file is read: its columns, their types, missing cells")

    syntax = "COLS: names separated by commas; quote names that contain commas: '\"width, cm\",height'; repeatable"
    add = compare.add_argument_group(f"the columns ({syntax})").add_argument
    default_kind = "kind of all columns that no flag below names; auto and mixed guess it"
    add("--estimator", choices=["auto", *KINDS, "mixed"], default="auto", help=default_kind)
    for kind, description in KINDS.items():
        add(f"--{kind}", **_COLUMNS, help=description)
    add("--drop", **_COLUMNS, help="columns to leave out")

    add = compare.add_argument_group("the model and its evaluation").add_argument
    for name, subject in (("--alpha", "levels"), ("--class-alpha", "classes")):
        add(name, type=_CONCENTRATION, default=1.0, help=f"Dirichlet concentration of the {subject} (default 1)")
    add("--numbers", choices=["gaussian", "binned", "auto"], default="gaussian", help=_NUMBERS)
    add("--weights", choices=["auto", "feature", "temperature", "none"], default="auto", help=_WEIGHTS)
    add("--prob", type=_FRACTION, default=0.9, help="posterior probability of the intervals (default 0.9)")
    add("--loss", **_FILE, help=f"{_LOSSES}adds the cost of decisions")
    share = "share of the rows to hold out (default 0.3, but fewer than 1,000 rows are cross-validated)"
    add("--test-size", type=_FRACTION, metavar="SHARE", help=share)
    add("--seed", type=_SEED, default=0, help="random seed of the held-out rows (default 0)")

    add = compare.add_argument_group("the report").add_argument
    folder = "folder for the report with all analyses, its tables and figures, and the posterior (NetCDF)"
    add("--out", type=_path, metavar="DIR", help=folder)
    add("--overwrite", action="store_true", help="replace files of an earlier run in this folder")
    add("--format", choices=list(SUFFIXES), help=_FORMATS)


def _add_file_flags(command: argparse.ArgumentParser) -> Callable[..., object]:
    """Add the flags of a file, of the model and of overwriting to a command; return its method `add_argument`."""
    add = command.add_argument
    _add_file(add, command.add_mutually_exclusive_group(required=True).add_argument)
    add("--model", **_FILE, required=True, help="file of the fitted classifier")
    add("--overwrite", action="store_true", help="replace an existing file")
    return add


def _add_file(add: Callable[..., object], add_exclusive: Callable[..., object]) -> None:
    """Add the flags of a file, of which only one may be given, and of its missing cells."""
    add_exclusive("--csv", **_FILE, help="CSV file, names in the first line; may be gzipped")
    add_exclusive("--parquet", **_FILE, help="Parquet file, or a folder of them")
    usual = "empty cells, NA, nan, null and similar"
    marks = f"mark of a missing cell, such as '?', in addition to {usual}; repeatable"
    only = "mark of a missing cell in these columns only, such as 0 for a blood pressure; repeatable"
    add("--missing", **_MARK, help=marks)
    add("--missing-in", **_MARK | {"metavar": ("MARK", "COLS")}, nargs=2, help=only)
    value = "mark that is a value in this file, such as NA for Namibia; repeatable"
    add("--not-missing", **_MARK, help=value)


# == Commands `compare`, `fit`, `score` and `drift`: flags and files are checked before packages are imported

_FEW = 8
_MARKS = ("missing", "missing_in", "not_missing")
_SUFFIXES = (".csv", ".parquet")


def compare(args: argparse.Namespace) -> int:
    """Run the command `compare`: analyse each data set, write the files of --out, and print the report."""
    path, of_file = args.csv or args.parquet, ("target", "model", *_MARKS, *KINDS, "drop")
    if path is None and (args.estimator != "auto" or any(getattr(args, flag) for flag in of_file)):
        raise InputError("--target, --estimator, --missing and flags that name columns need a file; add --csv FILE.")
    if path is not None and args.target is None:
        raise InputError(f"{'--parquet' if args.csv is None else '--csv'} needs --target COLUMN, the column of labels.")
    kinds = {column: flag for column, flag in _flag_of_column(args, *KINDS, "drop").items() if flag in KINDS}
    table = None if path is None else open_table(args, [args.target, *kinds, *args.drop, *_marked_columns(args)])
    require_readable(args.loss, args.model)
    names = file_names(BUILT_IN if path is None else [title(path)])
    if args.out is not None:
        with blamed_on(f"--out {args.out} cannot be written", OSError):
            for name in names:
                _require_unread("out", args.out / name, [args.loss, args.model], [] if table is None else [table])
            require_free(args.out, names, args.overwrite)
    with _imports():
        from bayesnb.cli import comparison, report
        from bayesnb.cli.labelled_data import Settings, built_in_datasets, count_levels, load
        from bayesnb.cli.large_files import find_reading, known_levels, load_model
        from bayesnb.cli.reading import Reading
    settings = Settings(**{field.name: getattr(args, field.name) for field in fields(Settings)})
    printed: Format = "text" if args.out is not None or args.format is None else args.format
    outcomes, sections, written = [], [], []
    with filled(args.out, names) if args.out else nullcontext() as folder:
        if table is None:
            data_sets = built_in_datasets()
        else:
            default = args.estimator if args.estimator in KINDS else None
            reading, drop = Reading(_marks(args)), args.drop
            if args.model is not None:
                nb = load_model(args.model)
                reading = find_reading(nb, table, _marks(args))
                kinds = dict.fromkeys(known_levels(nb), "categorical") | kinds
                drop = [name for name in table.columns if name not in (*nb.feature_names_in_, args.target)]
            data = load(table, args.target, reading, kinds, default, drop, whole=True)
            data_sets = [count_levels(data, kinds)]
        for data in data_sets:
            with recorded_warnings(UnknownLevelWarning) as messages:
                outcome = comparison.run(data, settings)
            outcomes.append(replace(outcome, notes=[*outcome.notes, *messages]))
            sections.append(report.overview(outcomes[-1]))
            if printed == "text":
                say(f"{render(sections[-1], 'text', depth=2)}\n")
        if folder is not None:
            with _notes():
                report.write_files(outcomes, args.typed, args.format or "html", folder)
            written = sorted(file.name for file in folder.iterdir())
    for name in written:
        say(f"wrote {printable(str(args.out / name))}")
    say(render(report.guide(), "text", 2) if printed == "text" else render(report.enclose(sections), printed))
    return 0


def fit(args: argparse.Namespace) -> int:
    """Run the command `fit`: fit a classifier to a file, save the classifier, and describe the fit."""
    flags = _flag_of_column(args, "categorical", "numeric", "drop")
    table = open_table(args, [*flags, *_marked_columns(args)])
    _require_new(args, "model", table)
    with _imports():
        from bayesnb.cli.labelled_data import UNDECIDED
        from bayesnb.cli.large_files import fit_file
        from bayesnb.cli.reading import Reading
        from bayesnb.persistence import save
    kinds = dict.fromkeys(args.categorical, "categorical") | dict.fromkeys(args.numeric, UNDECIDED)
    with _notes():
        nb, lines = fit_file(table, args.target, Reading(_marks(args)), kinds, args.drop, args.estimator)
        with blamed_on("--model"):
            save(nb, args.model)
    for line in lines:
        say(fill(line, rest="  "))
    commands = f"--{table.format} FILE --model {args.model}"
    say(f"wrote {printable(str(args.model))}\n\nNext, with a file of new rows:")
    say(printable(f"  python -m bayesnb score {commands} --out SCORES.csv"))
    say(printable(f"  python -m bayesnb drift {commands}"))
    return 0


def score(args: argparse.Namespace) -> int:
    """Run the command `score`: write class probabilities and decisions for the rows of a file to another file."""
    table = open_table(args, args.keep)
    _require_new(args, "out", table)
    require_readable(args.model, args.loss)
    with _imports():
        from bayesnb.cli.labelled_data import read_losses
        from bayesnb.cli.large_files import Scoring, find_reading, load_model, write_tables
    nb = load_model(args.model)
    with _notes():
        losses = None if args.loss is None else read_losses(args.loss, nb.classes_)
        scoring = Scoring(nb, args.keep, losses, args.interval)
        tables = scoring.tables(table, find_reading(nb, table, _marks(args)))
        write_tables(tables, args.out, excel_safe=args.excel_safe)
    if ignored := [name for name in table.columns if name not in (*nb.feature_names_in_, *args.keep)]:
        say(fill(f"ignored columns: {enumerate_names(ignored, _FEW)}", rest="  "))
    count = scoring.counts
    unknown = f"{count['unknown']:,} cells with levels that the model does not know"
    say(f"{count['rows']:,} rows; {count['missing']:,} missing cells; {unknown}\nwrote {printable(str(args.out))}")
    _say_excel_safe(args)
    return 0


def drift(args: argparse.Namespace) -> int:
    """Run the command `drift`: print tests of each column, and return 3 if one of them finds drift, else 0."""
    table = open_table(args, [] if args.target is None else [args.target])
    reference = None if args.reference is None else open_table(args, (), args.reference)
    _require_new(args, "out", table, *([] if reference is None else [reference]))
    require_readable(args.model)
    with _imports():
        from bayesnb.cli.large_files import describe_remarks, format_drift, load_model, measure_drift, write_tables
    nb = load_model(args.model)
    with _notes():
        tests = measure_drift(nb, table, args.target, reference, _marks(args))
        if args.out is not None:
            write_tables([tests.reset_index()], args.out, excel_safe=args.excel_safe)
    for remark in describe_remarks(nb):
        say(fill(f"note: {remark}", rest="      "))
    say(format_drift(tests, args.level))
    _say_excel_safe(args)
    return 3 if (tests["q"] < args.level).any() else 0


def _marked_columns(args: argparse.Namespace) -> list[str]:
    """Return the columns that --missing-in names."""
    return [column for _, columns in args.missing_in for column in column_names(columns)]


def _marks(args: argparse.Namespace) -> Marks:
    """Return the marks of missing cells that the flags name."""
    from bayesnb.cli.reading import Marks

    within = defaultdict(set)
    for mark, columns in args.missing_in:
        for column in column_names(columns):
            within[column].add(mark.strip())
    by_column = {name: frozenset(marks) for name, marks in within.items()}
    return Marks(frozenset(args.missing), by_column, frozenset(args.not_missing))


def _say_excel_safe(args: argparse.Namespace) -> None:
    """Say that texts of the file of --out were changed, if they were to be."""
    if args.excel_safe and args.out is not None and args.out.suffix.lower() == ".csv":
        say("Texts that a spreadsheet would compute begin with an apostrophe (--excel-safe).")


def _flag_of_column(args: argparse.Namespace, *flags: str) -> dict[str, str]:
    """Return {column: flag} of --target and `flags`; raise InputError if two of them name a column."""
    named = {} if args.target is None else {args.target: "target"}
    for flag in flags:
        for column in getattr(args, flag):
            if named.setdefault(column, flag) != flag:
                both = f"--{named[column]} and --{flag}"
                raise InputError(f"Column {column!r} is named by two flags, {both}. Use one of them.")
    return named


def _require_new(args: argparse.Namespace, name: str, *tables: TableFile) -> None:
    """Raise InputError unless the file of --model or --out can be written, and is none of the files that are read."""
    path = getattr(args, name)
    if path is None:
        return
    if name == "out" and path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"--out {path}: the name must end in .csv or .parquet.")
    with blamed_on(f"--{name} {path} cannot be written", OSError):
        models = [args.model] if name == "out" else []
        _require_unread(name, path, [*models, getattr(args, "loss", None)], tables)
        if os.path.lexists(path) and not args.overwrite:
            raise InputError(f"--{name} {path} already exists. Choose another file, or replace it with --overwrite.")
    with blamed_on(f"--{name}"):
        require_writable(path)


def _require_unread(name: str, path: Path, files: Sequence[Path | None], tables: Sequence[TableFile]) -> None:
    """Raise InputError if a file that a flag names is one of those that the command reads, or in a folder of these."""
    for read in [*filter(None, files), *(file for table in tables for file in table.files)]:
        if path.exists() and read.exists() and path.samefile(read):
            raise InputError(f"--{name} {path} is a file that the command reads. Choose another file.")
    for folder in (table.path for table in tables if table.path.is_dir()):
        if path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"--{name} {path} is in the folder that the command reads. Choose another folder.")


@contextmanager
def _imports() -> Iterator[None]:
    """Let Ctrl-C end the process during imports inside the block, and enable the compilation cache after them."""
    with exit_on_interrupt():
        yield
        from bayesnb._util.precision import enable_cache
    with suppress(OSError):  # without a folder for it there is no cache
        enable_cache()


@contextmanager
def _notes() -> Iterator[None]:
    """Print the warnings of the block as notes; cells with unknown levels are counted elsewhere."""
    with recorded_warnings(UnknownLevelWarning) as messages:
        yield
    for message in messages:
        say(fill(f"note: {message}", rest="      "))
