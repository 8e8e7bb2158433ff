"""Time `WeightedNB()` beside gradient boosting, logistic regression and LightGBM on whole tables.

python -m benchmarks.default
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.methods import Left, boosting, default, lightgbm, logistic
from benchmarks.tables import FOLDER, SOURCES, Table, absent, adult
from benchmarks.timing import Row, in_turn

TABLES: dict[str, Callable[[], Table]] = {
    **{name: SOURCES[name].read for name in ("iris", "wine", "vote", "pima", "car", "cancer", "digits")},
    "adult, 6,000 rows": lambda: adult(6_000),
    "adult, 25,000 rows": lambda: adult(25_000),
}
ASKED = {"iris": 2, "wine": 2, "vote": 2.5, "pima": 2, "car": 0.8, "cancer": 2, "digits": 4}
ASKED |= {"adult, 6,000 rows": 2.5, "adult, 25,000 rows": 2}
PEERS = {"boosting": boosting, "logistic regression": logistic, "LightGBM": lightgbm}
PREDICTED = 10_000

FIRST = """
import sys, time, warnings
warnings.simplefilter("ignore")
from benchmarks.default import TABLES
from benchmarks.methods import {method}
table = TABLES[{name!r}]()
start = time.perf_counter()
{method}(table).fit(table.X, table.y)
print(time.perf_counter() - start)
"""


def defaults() -> Iterator[Row]:
    """Time later fits and predictions in one process, and the first fit in a new process."""
    for name, read in TABLES.items():
        source = name.partition(",")[0]
        if absent(source):
            print(f"left out: {name}, whose file is not in {FOLDER}")
            continue
        table = read()
        X, y, some = table.X, table.y, table.X.iloc[:PREDICTED]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = default(table)
            for peer, make in PEERS.items():
                try:
                    theirs = make(table)
                except Left:
                    continue
                target = ASKED[name] if peer == "boosting" else np.inf
                fits = partial(ours.fit, X, y), partial(theirs.fit, X, y)
                yield in_turn(f"WeightedNB(), {name}: fit, against {peer}", *fits, target, 5)
                calls = partial(ours.predict_proba, some), partial(theirs.predict_proba, some)
                yield in_turn(f"  predict_proba of {len(some):,} rows", *calls, np.inf, 5)
        first, boosted = (float(_printed(FIRST.format(method=m, name=name))) for m in ("default", "boosting"))
        yield Row("  first fit in a process, against boosting", first, boosted, np.inf)


def _printed(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()[
        -1
    ]


if __name__ == "__main__":
    for row in defaults():
        print(row, flush=True)
