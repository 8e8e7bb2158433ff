"""Timing of `bayesnb.distributed.fit` with two workers against one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bayesnb as bnb
from benchmarks import data
from benchmarks.timing import Row, in_turn

_BLOCKS = 24
_FILES = 4  # each is read several times: only the reading is to cost, not the disk
_TARGET = 1 / 1.6

# XLA would take a pool of as many threads as there are CPUs in either worker, and one worker would compute on all.
_ONE_THREAD = {"NPROC": "1", "OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}


def cluster(n: int) -> Iterator[Row]:
    """Time blocks of compressed CSV, unpacked and parsed by single-threaded workers; n is a million."""
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, env=_ONE_THREAD, **options) as two,
        LocalCluster(n_workers=1, env=_ONE_THREAD, **options) as one,
        Client(two, set_as_default=False) as both,
        Client(one, set_as_default=False) as single,
    ):
        rows = max(n // 12, 1)
        paths = _written(Path(folder), rows)

        def on(client: Client) -> Callable[[], Any]:
            def run() -> Any:
                with client.as_current():
                    return bnb.distributed.fit(bnb.GaussianNB(), _blocks(paths))

            return run

        name = f"dask fit, {_BLOCKS} blocks of CSV.gz, {rows:,} x 20: 2 workers, against 1"
        yield in_turn(name, on(both), on(single), _TARGET, repeats=3)


def _written(folder: Path, rows: int) -> list[Path]:
    import pandas as pd

    paths = []
    for i in range(_FILES):
        X, y = data.gaussian(rows, columns=20)
        paths.append(folder / f"{i}.csv.gz")
        pd.DataFrame(np.column_stack([X, y])).to_csv(
            paths[-1], index=False, float_format="%.6f", compression={"method": "gzip", "compresslevel": 1}
        )
    return paths


def _read(path: Path) -> tuple[Any, Any]:
    import pandas as pd

    table = pd.read_csv(path)
    return table.iloc[:, :-1], table.iloc[:, -1].astype(int)


def _blocks(paths: list[Path]) -> list[Any]:
    from dask.delayed import delayed

    read = delayed(_read, pure=False)
    return [read(paths[i % len(paths)]) for i in range(_BLOCKS)]
