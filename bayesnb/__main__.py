"""`python -m bayesnb`: see `python -m bayesnb compare --help`."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from bayesnb.cli import job, report, text
from bayesnb.cli.holdout import Settings
from bayesnb.cli.tables import KINDS, Dataset, InputError, load_csv
from bayesnb.version import __version__

_COMPARE = """Fit naive Bayes and show maximum likelihood beside the Bayesian estimates: scores on held-out
rows, the log evidence, and the most uncertain parameters with their intervals. Without --csv it runs on
scikit-learn's breast cancer data and on the watermelon table."""

_RULES = """How columns are guessed: numbers are Gaussian, but integers of at most 10 distinct values with five
rows a value or more are categorical; everything else is categorical. A column of strings without repetition,
or of consecutive integers, is left out as an identifier unless a flag names it. A file that does not fit into
memory is read twice, in pieces: about 100,000 rows at most, drawn at random from each class in proportion,
are kept and held out, and all others are counted as they come."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, or 2 after bad input (one line on stderr)."""
    parser = _parser()
    args = parser.parse_args(argv)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    if args.command is None:
        parser.print_help()
        return 0
    try:
        _compare(args)
        sys.stdout.flush()
    except InputError as error:
        print(f"bayesnb: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever reads has read enough; Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _compare(args: argparse.Namespace) -> None:
    settings = Settings(args.test_size, args.seed, args.alpha, args.class_alpha, args.prob, args.estimator == "mixed")
    data = _datasets(args)
    if args.out is not None:
        job.check_folder(args.out)
    outcomes = []
    for dataset in data:
        outcomes.append(job.run(dataset, settings))
        print(report.describe(outcomes[-1], settings.prob))
    if args.out is not None:
        from bayesnb.cli import files  # matplotlib and ArviZ take their time

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            for path in files.write(outcomes, settings, args.out):
                print(f"wrote {path}")
        for message in dict.fromkeys(str(w.message) for w in caught if w.category is UserWarning):
            print(text.fill(f"note: {message}", rest="      "))
        print()
    print(report.guide())


def _datasets(args: argparse.Namespace) -> list[Dataset]:
    named = [(column, kind) for kind in KINDS for column in _split(getattr(args, kind))]
    if args.csv is None:
        if args.target is not None or named or args.drop or args.missing or args.estimator != "auto":
            raise InputError("--target, --estimator, --missing and the columns' flags describe a file: --csv FILE.")
        return job.embedded()
    if args.target is None:
        raise InputError("--csv needs --target COLUMN, the column with the classes.")
    kinds = dict(named)
    for column, kind in named:
        if kinds[column] != kind or column == args.target or column in _split(args.drop):
            raise InputError(f"Column {column!r} is named by two flags; choose one.")
    default = args.estimator if args.estimator in KINDS else None
    return [load_csv(args.csv, args.target, args.missing, kinds, default, _split(args.drop))]


def _split(groups: Sequence[str]) -> list[str]:
    return [name.strip() for group in groups for name in group.split(",") if name.strip()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bayesnb", description="Naive Bayes as Bayesian statistics.")
    parser.add_argument("--version", action="version", version=f"bayesnb {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    compare = commands.add_parser(
        "compare", help="maximum likelihood beside the Bayesian estimates", description=_COMPARE, epilog=_RULES
    )
    file = compare.add_argument_group("the file")
    file.add_argument("--csv", type=Path, metavar="FILE", help="table whose first line names the columns")
    file.add_argument("--target", metavar="COLUMN", help="column with the classes")
    file.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="MARK",
        help="mark of a missing cell, such as '?' (an empty cell is one already); repeatable",
    )
    columns = compare.add_argument_group("the columns (COLS: names with commas between; repeatable)")
    columns.add_argument(
        "--estimator",
        choices=["auto", *KINDS, "mixed"],
        default="auto",
        help="kind of all columns that no flag below names; auto and mixed: guess",
    )
    for kind, what in _KINDS.items():
        columns.add_argument(f"--{kind}", action="append", default=[], metavar="COLS", help=what)
    columns.add_argument("--drop", action="append", default=[], metavar="COLS", help="columns to leave out")
    model = compare.add_argument_group("the model and its test")
    model.add_argument(
        "--alpha", type=_number(0, None), default=1.0, help="Dirichlet concentration of the levels (default 1)"
    )
    model.add_argument(
        "--class-alpha", type=_number(0, None), default=1.0, help="Dirichlet concentration of the classes (default 1)"
    )
    model.add_argument(
        "--prob", type=_number(0, 1), default=0.9, help="posterior probability of the intervals (default 0.9)"
    )
    model.add_argument(
        "--test-size",
        type=_number(0, 1),
        metavar="SHARE",
        help="share of the rows to hold out (default 0.3; fewer than 200 rows are cross-validated instead)",
    )
    model.add_argument("--seed", type=int, default=0, help="of the choice of held-out rows (default 0)")
    compare.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write tables, figures, the posterior (NetCDF) and report.html into this folder",
    )
    return parser


_KINDS = {
    "categorical": "columns of levels",
    "gaussian": "columns of numbers",
    "bernoulli": "columns where a number above 0 is present, else absent",
    "poisson": "columns of counts, each with a rate of its own",
    "multinomial": "columns that are together one vector of counts, such as words",
}


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


if __name__ == "__main__":
    sys.exit(main())
