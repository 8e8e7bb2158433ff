"""10⁸ rows through `fit_stream`: every one is counted, and memory stays where it was after the first million."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow("large arrays, many files or long histories")

ROWS = 10**8

# Row i has codes of period P, so that batches are slices of one array, and counts are known for any number of rows.
SOAK = """
import json, sys, time
import numpy as np
import psutil
import bayesnb as bnb

kind, rows, size = sys.argv[1], int(sys.argv[2]), 2**16
period = 3 * 5 * 7 * 11
i = np.arange(size + period)
y = (i % 3).astype(np.int8)
if kind == "CategoricalNB":
    X = np.stack([i % 5, i // 3 % 7, i % 11], axis=1).astype(np.int8)
else:
    X = np.stack([i % 5, i % 11 - (kind == "GaussianNB") * 5], axis=1).astype(np.int8)

resident = []

def batches():
    for start in range(0, rows, size):
        resident.append((start, psutil.Process().memory_info().rss / 1e6))
        piece = slice(start % period, start % period + min(size, rows - start))
        yield X[piece], y[piece]

began = time.perf_counter()
nb = bnb.fit_stream(getattr(bnb, kind)(), batches(), progress=False)
seconds = time.perf_counter() - began

whole, rest = divmod(rows, period)
times = whole + (np.arange(period) < rest)  # how often each row of a period occurs
X, y = X[:period].astype(int), y[:period]
own = y == np.arange(3)[:, None]
expected = {"class_count": own @ times}
statistics = nb.statistics_.blocks[0]
found = {"class_count": nb.class_count_}
if kind == "CategoricalNB":
    for j in range(3):
        found[f"level {j}"] = nb.category_count_[j]
        expected[f"level {j}"] = np.stack([own @ (times * (X[:, j] == v)) for v in range(X[:, j].max() + 1)], axis=1)
elif kind == "PoissonNB":
    found["total"], expected["total"] = statistics.total, (own * times) @ X
else:
    n = (own @ times)[:, None]
    total, square = (own * times) @ X, (own * times) @ X**2
    exact = [[float((int(s) * int(m) - int(t) ** 2) / int(m)) for s, t, m in zip(*row)]
             for row in zip(square, total, np.broadcast_to(n, total.shape))]
    found["mean"], expected["mean"] = statistics.mean, total / n
    found["m2"], expected["m2"] = statistics.m2, np.array(exact)
json.dump(
    {
        "resident": resident,
        "seconds": seconds,
        "error": {k: float(np.abs(found[k] - expected[k]).max()) for k in expected},
        "scale": {k: float(np.abs(expected[k]).max()) for k in expected},
    },
    sys.stdout,
)
"""


@pytest.mark.parametrize("kind", ["CategoricalNB", "PoissonNB", "GaussianNB"])
def test_memory_is_flat_and_totals_are_exact(kind):
    command = [sys.executable, "-c", SOAK, kind, str(ROWS)]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    after = [megabytes for start, megabytes in report["resident"] if start >= 1_000_000]
    assert max(abs(m - after[0]) for m in after) <= 20
    error, scale = report["error"], report["scale"]
    for name in error:
        # Counts and sums of integers to the last one; of means and squares, what 1,526 merges may round.
        assert error[name] <= (1e-12 * scale[name] if name in ("mean", "m2") else 0), name
