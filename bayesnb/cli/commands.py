"""Commands `compare`, `fit`, `score` and `drift`: flags and files are checked before packages are imported.

JAX and pandas, whose import takes seconds, are imported inside the functions.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields, replace

from bayesnb._util.atomic_files import require_writable
from bayesnb._util.kinds import KINDS
from bayesnb._util.terminal import exit_on_interrupt
from bayesnb._util.warnings import UnknownLevelWarning
from bayesnb.cli.csv_cells import require_readable, title
from bayesnb.cli.document import Format, render
from bayesnb.cli.output_folder import BUILT_IN, file_names, filled, require_free
from bayesnb.cli.parser import column_names
from bayesnb.cli.table_files import blamed_on, open_table
from bayesnb.cli.terminal import InputError, enumerate_names, fill, printable, recorded_warnings, say

_FEW = 8
_INPUTS = ("csv", "parquet", "model", "loss", "reference")
_SUFFIXES = (".csv", ".parquet")


def compare(args: argparse.Namespace) -> int:
    """Run the command `compare`: analyse each data set, write the files of --out, and print the report."""
    of_file = ("target", "missing", "missing_in", "not_missing", *KINDS, "drop")
    if args.csv is None and (args.estimator != "auto" or any(getattr(args, flag) for flag in of_file)):
        raise InputError("--target, --estimator, --missing and flags that name columns need a file; add --csv FILE.")
    if args.csv is not None and args.target is None:
        raise InputError("--csv needs --target COLUMN, the column of class labels.")
    kinds = {column: flag for column, flag in _flag_of_column(args, *KINDS, "drop").items() if flag in KINDS}
    within = defaultdict(set)
    for mark, columns in args.missing_in:
        for column in column_names(columns):
            within[column].add(mark.strip())
    require_readable(args.csv, args.loss)
    names = file_names([title(args.csv)] if args.csv else BUILT_IN)
    if args.out is not None:
        require_free(args.out, names, args.overwrite)
    with _imports():
        from bayesnb.cli import comparison, output, report
        from bayesnb.cli.column_types import Marks
        from bayesnb.cli.fitting import Settings
        from bayesnb.cli.labelled_data import built_in_datasets, load_csv
    settings = Settings(**{field.name: getattr(args, field.name) for field in fields(Settings)})
    printed: Format = "text" if args.out is not None or args.format is None else args.format
    outcomes, sections, written = [], [], []
    with filled(args.out, names) if args.out else nullcontext() as folder:
        if args.csv is None:
            data_sets = built_in_datasets()
        else:
            marks = Marks(frozenset(args.missing), within, frozenset(args.not_missing))
            default = args.estimator if args.estimator in KINDS else None
            data_sets = [load_csv(args.csv, args.target, marks, kinds, default, args.drop)]
        for data in data_sets:
            with recorded_warnings() as messages:
                outcome = comparison.run(data, settings)
            outcomes.append(replace(outcome, notes=[*outcome.notes, *messages]))
            sections.append(report.overview(outcomes[-1]))
            if printed == "text":
                say(f"{render(sections[-1], 'text', depth=2)}\n")
        if folder is not None:
            with _notes():
                output.write_files(outcomes, args.typed, args.format or "html", folder)
            written = sorted(file.name for file in folder.iterdir())
    for name in written:
        say(f"wrote {printable(str(args.out / name))}")
    say(render(report.guide(), "text", 2) if printed == "text" else render(report.enclose(sections), printed))
    return 0


def fit(args: argparse.Namespace) -> int:
    """Run the command `fit`: fit a classifier to a file, save the classifier, and describe the fit."""
    flags = _flag_of_column(args, "categorical", "numeric", "drop")
    _require_new(args, "model")
    table = open_table(args, flags)
    names = [name for name in table.columns if name not in (args.target, *args.drop)]
    types = {name: "double" if flag == "numeric" else "string" for name, flag in flags.items() if flag != "drop"}
    with _imports():
        from bayesnb.cli.streamed_fit import fit_file
        from bayesnb.persistence import save
    with _notes():
        nb, lines = fit_file(table, names, args.target, types, args.estimator)
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
    _require_new(args, "out")
    table = open_table(args, args.keep)
    require_readable(args.model, args.loss)
    with _imports():
        from bayesnb.cli.labelled_data import read_losses
        from bayesnb.cli.scoring_files import Scoring, load_model, write_tables
    nb = load_model(args.model)
    with _notes():
        losses = None if args.loss is None else read_losses(args.loss, nb.classes_)
        scoring = Scoring(nb, args.keep, losses, args.interval)
        write_tables(scoring.tables(table), args.out)
    if ignored := [name for name in table.columns if name not in (*nb.feature_names_in_, *args.keep)]:
        say(fill(f"ignored columns: {enumerate_names(ignored, _FEW)}", rest="  "))
    count = scoring.counts
    unknown = f"{count['unknown']:,} cells with levels that the model does not know"
    say(f"{count['rows']:,} rows; {count['missing']:,} missing cells; {unknown}\nwrote {printable(str(args.out))}")
    return 0


def drift(args: argparse.Namespace) -> int:
    """Run the command `drift`: print tests of each column, and return 3 if one of them finds drift, else 0."""
    _require_new(args, "out")
    table = open_table(args, [] if args.target is None else [args.target])
    reference = None if args.reference is None else open_table(args, (), args.reference)
    require_readable(args.model)
    with _imports():
        from bayesnb.cli.drift_table import format_drift, measure_drift
        from bayesnb.cli.scoring_files import load_model, write_tables
    nb = load_model(args.model)
    with _notes():
        tests = measure_drift(nb, table, args.target, reference)
        if args.out is not None:
            write_tables([tests.reset_index()], args.out)
    say(format_drift(tests, args.level))
    return 3 if (tests["q"] < args.level).any() else 0


def _flag_of_column(args: argparse.Namespace, *flags: str) -> dict[str, str]:
    """Return {column: flag} of --target and `flags`; raise InputError if two of them name a column."""
    named = {} if args.target is None else {args.target: "target"}
    for flag in flags:
        for column in getattr(args, flag):
            if named.setdefault(column, flag) != flag:
                both = f"--{named[column]} and --{flag}"
                raise InputError(f"Column {column!r} is named by two flags, {both}. Use one of them.")
    return named


def _require_new(args: argparse.Namespace, name: str) -> None:
    """Raise InputError unless the file of --model or --out can be written, and replaces no file against the flags."""
    path = getattr(args, name)
    if path is None:
        return
    if name == "out" and path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"--out {path}: the name must end in .csv or .parquet.")
    for read in filter(None, (getattr(args, other, None) for other in _INPUTS if other != name)):
        if path.exists() and read.exists() and path.samefile(read):
            raise InputError(f"--{name} {path} is a file that the command reads. Choose another file.")
    if os.path.lexists(path) and not args.overwrite:
        raise InputError(f"--{name} {path} already exists. Choose another file, or replace it with --overwrite.")
    with blamed_on(f"--{name}"):
        require_writable(path)


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
