"""Time and memory of routes to a fit, and to scores, of more rows than memory: `python -m benchmarks.routes ROWS`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

_CHUNK = 500_000
_MIXED = "import bayesnb as bnb; nb = bnb.MixedNB(numbers='gaussian')\n"
_COLUMNS = "{f'x{j}': float for j in range(6)} | {f'k{j}': str for j in range(6)}"
ROUTES = {
    "stream of CSV": _MIXED + "bnb.fit_stream(nb, bnb.streaming.read_table('rows.csv', 'y'))",
    "stream of Parquet": _MIXED + "bnb.fit_stream(nb, bnb.streaming.read_table('rows.parquet', 'y'))",
    "SQL counts, DuckDB": f"""{_MIXED}
import duckdb
database = duckdb.connect()
database.execute("set threads to 2; set memory_limit to '1GB'")
query = bnb.sql.counts("'rows.parquet'", "y", {_COLUMNS})
bnb.from_counts(nb, database.execute(query).df())""",
    "dask": f"""{_MIXED}
import dask.dataframe as dd
rows = dd.read_parquet("rows.parquet", split_row_groups=True)
bnb.distributed.fit(nb, rows.drop(columns="y"), rows["y"])""",
    "a day more, a day less": f"""{_MIXED}
days = bnb.streaming.read_table("rows.parquet", "y", batch_rows={_CHUNK // 10})
first, last = next(days), next(days)
nb.partial_fit(*first, classes=["a", "b", "c"])
nb.partial_fit(*last).forget(*first)""",
}
COMMANDS = {
    "fit": ["fit", "--csv", "rows.csv", "--target", "y", "--model", "model"],
    "score": ["score", "--csv", "rows.csv", "--model", "model", "--out", "scores.csv"],
}
SCORES = {
    "scores in DuckDB": """
import bayesnb as bnb, duckdb
database = duckdb.connect()
database.execute("set threads to 2; set memory_limit to '1GB'")
query = bnb.sql.score(bnb.load("model"), "'rows.parquet'")
database.execute(f"COPY ({query}) TO 'scores.parquet'")""",
    "scores by predict_proba": """
import bayesnb as bnb
nb = bnb.load("model")
for X, _ in bnb.streaming.read_table("rows.parquet", "y"):
    nb.predict_proba(X)""",
}
"""Class probabilities by the classifier of the command `fit`."""


def write_rows(n: int, folder: Path) -> None:
    """Write n rows of 6 columns of numbers, 6 of levels, and labels y to rows.csv and rows.parquet."""
    rng, writers = np.random.default_rng(0), None
    for start in range(0, n, _CHUNK):
        size = min(_CHUNK, n - start)
        y = rng.choice(3, size, p=[0.6, 0.3, 0.1])
        columns = {f"x{j}": rng.normal(y, 1.5, size).round(3) for j in range(6)}
        for j in range(6):
            names = np.array([f"level {i}" for i in range(4 * (j + 1))])
            columns[f"k{j}"] = names[(rng.integers(0, len(names), size) + (rng.random(size) < 0.3) * y) % len(names)]
        table = pa.table(columns | {"y": np.array(list("abc"))[y]})
        if writers is None:
            paths = (str(folder / f"rows.{suffix}") for suffix in ("csv", "parquet"))
            writers = [
                make(path, table.schema)
                for make, path in zip((csv.CSVWriter, parquet.ParquetWriter), paths, strict=True)
            ]
        for writer in writers:
            writer.write_table(table)
    for writer in writers or ():
        writer.close()


def measure(arguments: list[str], folder: Path) -> tuple[float, float, float]:
    """Run Python with arguments in a folder; return seconds, processor seconds, and the peak memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{arguments[:3]} failed.")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print a line for each route and each command of the command line."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        write_rows(int(sys.argv[1]), folder)
        runs = {route: ["-c", code] for route, code in ROUTES.items()}
        runs |= {f"command {command}": ["-m", "bayesnb", *flags] for command, flags in COMMANDS.items()}
        runs |= {label: ["-c", code] for label, code in SCORES.items()}
        for label, arguments in runs.items():
            seconds, busy, megabytes = measure(arguments, folder)
            print(f"{label:24} {seconds:7.1f} s, of processors {busy:7.1f} s {megabytes:7.0f} MB", flush=True)


if __name__ == "__main__":
    main()
