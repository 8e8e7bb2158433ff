"""Held-out log loss, Brier score, error rate and seconds of each method on each table.

`make quality` writes docs/_generated/quality.csv, quality.svg, and tables in docs/quality.md, docs/structures.md and
README.md. To print a part of the results:

    python -m benchmarks.quality --tables vote,car --methods naive,logistic

To measure in parts, name a folder in which all parts keep the losses of their rows, and write the pages at the end:

    python -m benchmarks.quality --keep ../losses --tables letter
    python -m benchmarks.quality --keep ../losses --methods naive --out docs

The last command runs naive Bayes, if that is not kept, and shows what is kept of other methods.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import Distribution, version
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import pandas as pd

import bayesnb as bnb
from bayesnb.evaluation import score_rows
from benchmarks import quality_page
from benchmarks.methods import METHODS, OF_SMALL, OF_STRUCTURES, Left, Method
from benchmarks.tables import FAMILIAR, SMALL, SOURCES, Fold, Table, absent


@dataclass(frozen=True)
class Row:
    """Scores of a method on a table, over the rows of all folds; NaN, with a reason, if the method was not run.

    A row that was predicted several times counts once, with the mean of its scores. `log_loss` is in nats per row, and
    inf if a label had probability 0; `se` is its standard error, as if rows were independent. `clipped_log_loss` is the
    log loss with probabilities clipped at 1e-15. `brier` is from 0 to 2, `error` is the share of wrong labels, and
    `seconds` is the median over folds of the time to fit and predict. `clearly_above` names the methods whose log loss
    on this table is lower by more than two standard errors of the difference. `run` tells when and with what versions
    the method was run.
    """

    table: str
    rows: int
    method: str
    log_loss: float = np.nan
    se: float = np.nan
    clipped_log_loss: float = np.nan
    brier: float = np.nan
    error: float = np.nan
    seconds: float = np.nan
    clearly_above: str = ""
    run: str = ""
    left_out: str = ""

    def __str__(self) -> str:
        return (
            f"  {self.method:<12} {self.log_loss:>9.4f} ± {self.se:<7.4f} {self.clipped_log_loss:>9.4f}"
            f" {self.brier:>7.4f} {self.error:>7.4f} {self.seconds:>9.3f}"
        )


HEADER = f"  {'method':<12} {'log loss':>9}   {'s.e.':<7} {'clipped':>9} {'Brier':>7} {'error':>7} {'seconds':>9}"
FINGERPRINT = ("jax", "numpy", "scikit-learn", "lightgbm")
"""Packages whose versions are recorded."""
TOO_SLOW = {"letter": ("slower", "experts")} | dict.fromkeys(
    ("cancer", "digits", "adult", "mushroom"), ("TAN+w", "AODE+w", "trees+w")
)
"""Methods that are not run on a table."""


class Scores(NamedTuple):
    """Mean scores of each tested row over the folds that test the row, (4, N); seconds of folds; date and versions.

    The scores are log loss, clipped log loss, Brier score and error.
    """

    scores: np.ndarray
    seconds: np.ndarray
    run: np.ndarray

    def row(self, table: str, n_rows: int, method: str) -> Row:
        log_loss, clipped, brier, error = self.scores.mean(axis=1)
        with np.errstate(invalid="ignore"):  # a standard error of infinite losses
            se = float(self.scores[0].std(ddof=1) / np.sqrt(self.scores.shape[1]))
        seconds, run = float(np.median(self.seconds)), str(self.run)
        return Row(table, n_rows, method, log_loss, se, clipped, brier, error, seconds, run=run)

    def is_clearly_above(self, other: Scores) -> bool:
        """Return whether the log loss is higher by more than two standard errors of the difference over rows."""
        with np.errstate(invalid="ignore"):
            difference = self.scores[0] - other.scores[0]
            mean, se = difference.mean(), difference.std(ddof=1) / np.sqrt(len(difference))
        return bool(mean == np.inf or mean > 2 * se)


def judge(table: Table, method: Method) -> Scores:
    """Score one method on all folds of a table."""
    classes = np.unique(table.y)
    log_proba, labels, seconds, tested = [], [], [], []
    for fold in table.folds():
        prediction = method(table, fold)
        log_proba.append(prediction.log_proba[:, np.argsort(prediction.classes)])
        labels.append(fold.y_test)
        seconds.append(prediction.seconds)
        tested.append(fold.test)
    rows = score_rows(np.concatenate(log_proba), np.concatenate(labels), classes)
    columns = np.stack([-rows.log_true, rows.log_loss_clipped, rows.brier, ~rows.correct], axis=1)
    means = pd.DataFrame(columns).groupby(np.concatenate(tested)).mean()
    return Scores(means.to_numpy().T, np.array(seconds), np.array(run()))


def judge_once(table: Table, method: Method, path: Path | None) -> Scores:
    """Return the scores in a file, or else score the method and write the file."""
    if path is None:
        return judge(table, method)
    if not path.exists():
        scores = judge(table, method)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, **scores._asdict())
    with np.load(path, allow_pickle=False) as arrays:
        return Scores(**arrays)


def measure(tables: Sequence[str], methods: Sequence[str], folder: Path | None = None) -> Iterator[Row]:
    """Yield the scores of methods on tables, and print them; of methods without a name here, those in the folder."""
    for name in tables:
        if absent(name):
            print(f"{name}: {SOURCES[name].file} is not in the data folder (set BAYESNB_DATA)", flush=True)
            continue
        table = SOURCES[name].read()
        print(f"{name}: {len(table.y):,} rows, {table.kind}\n{HEADER}", flush=True)
        scores: dict[str, Scores] = {}
        rows = []
        for key, method in methods_of(name).items():
            path = folder and folder / f"{name.replace('/', '-')}~{key}.npz"
            if key not in methods and not (path and path.exists()):
                rows.append(Row(name, len(table.y), key, left_out=quality_page.NOT_YET))
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # levels that a fold has not seen, features that are constant in it
                    scores[key] = judge_once(table, method, path)
            except Left as reason:
                rows.append(Row(name, len(table.y), key, left_out=str(reason)))
            except (NotImplementedError, RuntimeError, ValueError) as error:
                refusal = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                rows.append(Row(name, len(table.y), key, left_out=refusal))
            else:
                rows.append(scores[key].row(name, len(table.y), key))
            print(f"  {key}: not run: {rows[-1].left_out}" if rows[-1].left_out else rows[-1], flush=True)
        for row in rows:
            if row.method in scores:
                lower = [key for key in scores if scores[row.method].is_clearly_above(scores[key])]
                row = replace(row, clearly_above=" ".join(lower))
            yield row


def methods_of(table: str) -> dict[str, Method]:
    """Return the methods that are run on a table: fewer on small samples, structures on familiar tables only."""
    if table in SMALL:
        return {key: METHODS[key] for key in OF_SMALL}
    methods = METHODS | OF_STRUCTURES if table in FAMILIAR else METHODS
    return methods | dict.fromkeys(TOO_SLOW.get(table, ()), _leave_out)


def _leave_out(table: Table, fold: Fold) -> NoReturn:
    raise Left("nine fits take an hour or more")


def run() -> str:
    """Return the date, the machine and the versions."""
    versions = [
        f"bayesnb {bnb.__version__}",
        *(f"{name} {version(name)}" for name in FINGERPRINT if _is_installed(name)),
    ]
    return (
        f"{datetime.now(UTC):%d %B %Y}, {os.cpu_count()} cores ({_processor()}), Python {platform.python_version()}, "
        f"{', '.join(versions)}"
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
    """Read names divided by commas."""

    def read(text: str) -> list[str]:
        for name in (names := text.split(",")):
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return read


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__.partition("\n")[0])
    tables, methods = list(SOURCES), [*METHODS, *OF_STRUCTURES]
    parser.add_argument("--tables", type=_named(tables), default=tables, help=", ".join(tables))
    parser.add_argument("--methods", type=_named(methods), default=methods, help=f"to run: {', '.join(methods)}")
    parser.add_argument("--keep", type=Path, help="folder of losses by row; what is in it is not run again")
    parser.add_argument("--out", type=Path, help="folder of quality.md and structures.md; default: write no pages")
    options = parser.parse_args()
    print(run(), flush=True)
    start = time.perf_counter()
    rows = pd.DataFrame([asdict(row) for row in measure(options.tables, options.methods, options.keep)])
    print(f"{time.perf_counter() - start:.0f} seconds")
    if options.out is not None and len(rows):
        quality_page.write(rows, options.out)
        print(f"written: quality.csv, quality.svg and pages in {options.out}")


if __name__ == "__main__":
    main()
