"""Held-out log loss, Brier score, error rate and seconds of each method on each table.

`make quality` writes docs/_generated/quality.csv, quality.svg and the tables of docs/quality.md. To run a part:

    python -m benchmarks.quality --tables vote,car --methods naive,logistic
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import Distribution, version
from pathlib import Path

import numpy as np
import pandas as pd

import bayesnb as bnb
from bayesnb.evaluation import score_rows, summarize
from benchmarks import khiops, quality_page
from benchmarks.methods import METHODS, OF_SAMPLES, Left, Method
from benchmarks.tables import SOURCES, Table, absent


@dataclass(frozen=True)
class Row:
    """Scores of a method on a table, over the rows of all folds; NaN, with a reason, if the method was not run.

    `log_loss` is in nats per row, and inf if a label had probability 0. `clipped` is the log loss with probabilities
    clipped at 1e-15, and `se` its standard error, as if rows were independent: a row that was predicted several times
    counts once, with its mean loss. `brier` is from 0 to 2, `error` is the share of wrong labels, and `seconds` is the
    median over folds of the time to fit and predict.
    """

    table: str
    rows: int
    method: str
    log_loss: float = np.nan
    clipped: float = np.nan
    se: float = np.nan
    brier: float = np.nan
    error: float = np.nan
    seconds: float = np.nan
    left_out: str = ""

    def __str__(self) -> str:
        return (
            f"  {self.method:<12} {self.log_loss:>12.4f} {self.clipped:>9.4f} ± {self.se:<7.4f}"
            f" {self.brier:>7.4f} {self.error:>7.4f} {self.seconds:>9.3f}"
        )


HEADER = f"  {'method':<12} {'log loss':>12} {'clipped':>9}   {'s.e.':<7} {'Brier':>7} {'error':>7} {'seconds':>9}"


def judge(name: str, table: Table, key: str, method: Method) -> Row:
    """One method on all folds of a table."""
    classes = np.unique(table.y)
    log_proba, labels, seconds, tested = [], [], [], []
    try:
        for fold in table.folds():
            found = method(table, fold)
            log_proba.append(found.log_proba[:, np.argsort(found.classes)])
            labels.append(fold.y_test)
            seconds.append(found.seconds)
            tested.append(fold.test)
    except Left as reason:
        return Row(name, len(table.y), key, left_out=str(reason))
    except (NotImplementedError, RuntimeError, ValueError) as error:  # what it refuses is told, and the others go on
        return Row(name, len(table.y), key, left_out=f"{type(error).__name__} on {name}: {str(error).splitlines()[0]}")
    rows = score_rows(np.concatenate(log_proba), np.concatenate(labels), classes)
    of_row = pd.Series(rows.log_loss_clipped).groupby(np.concatenate(tested)).mean()
    scores = summarize(rows)
    return Row(
        name,
        len(table.y),
        key,
        log_loss=scores["log_loss"],
        clipped=scores["log_loss_clipped"],
        se=float(of_row.std(ddof=1) / np.sqrt(len(of_row))),
        brier=scores["brier"],
        error=1 - scores["accuracy"],
        seconds=float(np.median(seconds)),
    )


def measure(tables: Sequence[str], methods: Sequence[str]) -> Iterator[Row]:
    """Every method on every table, printed as it goes."""
    for name in tables:
        if absent(name):
            print(f"{name}: {SOURCES[name].file} is not in the data folder (set BAYESNB_DATA)", flush=True)
            continue
        table = SOURCES[name].read()
        print(f"{name}: {len(table.y):,} rows, {table.kind}\n{HEADER}", flush=True)
        reasons: dict[str, list[str]] = {}
        for key in methods if table.sample is None else [key for key in methods if key in OF_SAMPLES]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # levels that a fold has not seen, features that are constant in it
                row = judge(name, table, key, METHODS[key])
            if row.left_out:
                reasons.setdefault(row.left_out, []).append(key)
            else:
                print(row, flush=True)
            yield row
        for reason, left_out in reasons.items():
            print(f"  not run: {', '.join(left_out)}: {reason}", flush=True)


def machine() -> str:
    """The date, the machine and the versions, in a sentence."""
    names = ("jax", "numpy", "scikit-learn", "interpret-core", "lightgbm")
    versions = [f"bayesnb {bnb.__version__}", *(f"{name} {version(name)}" for name in names if _is_installed(name))]
    if not khiops.absence():
        versions.append(f"Khiops {khiops.version()}")
    return (
        f"{datetime.now(UTC):%d %B %Y}, {os.cpu_count()} cores ({_processor()}), Python {platform.python_version()}, "
        f"{', '.join(versions)}."
    )


def _is_installed(distribution: str) -> bool:
    return bool(list(Distribution.discover(name=distribution)))


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _named(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Reads names divided by commas."""

    def read(text: str) -> list[str]:
        for name in (names := text.split(",")):
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return read


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__.partition("\n")[0])
    tables, methods = list(SOURCES), list(METHODS)
    parser.add_argument("--tables", type=_named(tables), default=tables, help=", ".join(tables))
    parser.add_argument("--methods", type=_named(methods), default=methods, help=", ".join(methods))
    parser.add_argument("--out", type=Path, help="folder of quality.csv, quality.md and quality.svg; default: none")
    options = parser.parse_args()
    if options.out is not None and quality_page.REFERENCE not in options.methods:
        parser.error(f"--out shows ratios to {quality_page.REFERENCE!r}: name it in --methods too")
    about, start = machine(), time.perf_counter()
    print(about, flush=True)
    rows = pd.DataFrame([asdict(row) for row in measure(options.tables, options.methods)])
    print(f"{time.perf_counter() - start:.0f} seconds")
    if options.out is not None and len(rows):
        quality_page.write(rows, about, options.out)
        print(f"written: quality.csv, quality.md and quality.svg in {options.out}")


if __name__ == "__main__":
    main()
