"""Commands `fit`, `score` and `drift`: flags and files are checked before packages are imported."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bayesnb._util.interrupt import exit_on_interrupt
from bayesnb._util.warnings import UnknownLevelWarning
from bayesnb.cli.csv_cells import InputError, require_readable
from bayesnb.cli.table_files import TableFile, blamed_on, require_new
from bayesnb.cli.terminal import enumerate_names, fill, printable, recorded_warnings, say

_FEW = 8


def fit(args: argparse.Namespace) -> int:
    """Run the command `fit`: fit a classifier to a file, save the classifier, and describe the fit."""
    flags = [(name, flag) for flag in ("categorical", "numeric", "drop") for name in getattr(args, flag)]
    require_one_flag(flags, args.target)
    require_new("--model", args.model, args.overwrite, args.csv, args.parquet)
    table = _open_table(args)
    table.require([args.target, *(name for name, _ in flags)])
    names = [name for name in table.columns if name not in (args.target, *args.drop)]
    types = dict.fromkeys(args.numeric, "double") | dict.fromkeys([*args.categorical, args.target], "string")
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
    _require_table_name(args.out)
    require_new("--out", args.out, args.overwrite, args.csv, args.parquet, args.model, args.loss)
    table = _open_table(args)
    table.require(args.keep)
    for path in (args.model, args.loss):
        if path is not None:
            require_readable(path)
    with _imports():
        from bayesnb.cli.losses import read_losses
        from bayesnb.cli.scoring_files import Scoring, load_model, write_tables
    nb = load_model(args.model)
    with _notes():
        losses = None if args.loss is None else read_losses(args.loss, nb.classes_)
        scoring = Scoring(nb, args.keep, losses, args.interval)
        write_tables(scoring.tables(table), "--out", args.out)
    if ignored := [name for name in table.columns if name not in (*nb.feature_names_in_, *args.keep)]:
        say(fill(f"ignored columns: {enumerate_names(ignored, _FEW)}", rest="  "))
    count = scoring.counts
    say(
        f"{count['rows']:,} rows; {count['missing']:,} missing cells; {count['unknown']:,} cells with levels that the "
        f"model does not know\nwrote {printable(str(args.out))}"
    )
    return 0


def drift(args: argparse.Namespace) -> int:
    """Run the command `drift`: print tests of each column, and return 3 if one of them finds drift, else 0."""
    if args.out is not None:
        _require_table_name(args.out)
        require_new("--out", args.out, args.overwrite, args.csv, args.parquet, args.model, args.reference)
    table = _open_table(args)
    table.require([] if args.target is None else [args.target])
    reference = None if args.reference is None else _open_table(args, args.reference)
    require_readable(args.model)
    with _imports():
        from bayesnb.cli.drift_table import format_drift, measure_drift
        from bayesnb.cli.scoring_files import load_model, write_tables
    nb = load_model(args.model)
    with _notes():
        tests = measure_drift(nb, table, args.target, reference)
        if args.out is not None:
            write_tables([tests.reset_index()], "--out", args.out)
    say(format_drift(tests, args.level))
    return 3 if (tests["q"] < args.level).any() else 0


def _require_table_name(path: Path) -> None:
    """Raise InputError unless a file to write is named .csv or .parquet."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"--out {path}: the name must end in .csv or .parquet.")


def _open_table(args: argparse.Namespace, path: Path | None = None) -> TableFile:
    """Open the file of --csv or --parquet, or another file in the same format."""
    require_distinct_marks(args)
    if args.csv is not None:
        return TableFile.from_csv(path or args.csv, args.missing, args.not_missing)
    if args.missing or args.not_missing:
        raise InputError("--missing and --not-missing need --csv: a Parquet file itself marks missing cells.")
    return TableFile.from_parquet(path or args.parquet)


@contextmanager
def _imports() -> Iterator[None]:
    """Let Ctrl-C end the process during imports inside the block, and enable the compilation cache after them."""
    with exit_on_interrupt():
        yield
        from bayesnb._util.compilation_cache import enable_cache
    with suppress(OSError):  # without a folder for it there is no cache
        enable_cache()


@contextmanager
def _notes() -> Iterator[None]:
    """Print the warnings of the block as notes; cells with unknown levels are counted elsewhere."""
    with recorded_warnings(UnknownLevelWarning) as messages:
        yield
    for message in messages:
        say(fill(f"note: {message}", rest="      "))


def require_one_flag(flags: list[tuple[str, str]], target: str) -> dict[str, str]:
    """Return {column: flag}; raise InputError if two flags name a column, of which --target is one."""
    named = dict(flags)
    for column, flag in flags:
        if named[column] != flag or column == target:
            other = "target" if column == target else named[column]
            raise InputError(f"Column {column!r} is named by two flags, --{other} and --{flag}. Use one of them.")
    return named


def require_distinct_marks(args: argparse.Namespace) -> None:
    """Raise InputError if a mark is given to --missing and to --not-missing."""
    if both := {*args.missing} & {*args.not_missing}:
        raise InputError(f"{min(both)!r} is given to --missing and to --not-missing. Use one of them.")
