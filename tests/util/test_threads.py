"""Results have the same bits on one core and on several."""

import os
import subprocess
import sys

import numpy as np
import pytest

import bayesnb as bnb
from bayesnb._util.precision import map_in_threads
from bayesnb.encoding import encoded_rows

# A process of its own: the number of threads is fixed when JAX starts.
PROGRAM = """
import hashlib, os, sys
cores = int(sys.argv[1])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
import jax, numpy as np, scipy.sparse as sp
import bayesnb as bnb

rng, n = np.random.default_rng(0), 40_000
y, weight = rng.integers(0, 3, n), rng.gamma(2.0, size=n)
levels = rng.integers(0, 6, (n, 12))
reals = rng.normal(y[:, None], 2.0, (n, 12))
holes = np.where(rng.random(reals.shape) < 0.1, np.nan, reals)
words = sp.csr_array(rng.poisson(0.1, (n, 300)))
CASES = [
    (bnb.CategoricalNB(), levels), (bnb.BernoulliNB(), words), (bnb.MultinomialNB(), words), (bnb.GaussianNB(), reals),
    (bnb.GaussianNB(), holes), (bnb.PoissonNB(), levels), (bnb.NegativeBinomialNB(), levels), (bnb.BinnedNB(), reals),
]
for nb, X in CASES:
    nb.fit(X, y, weight)
    found = [*jax.tree.leaves(nb.statistics_)]
    found += [nb.predict_log_proba(X, estimate=estimate) for estimate in ("predictive", "mean")]
    print(*(hashlib.sha256(np.ascontiguousarray(each).tobytes()).hexdigest()[:16] for each in found))
"""


def bits(cores: int) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(cores)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow("starts processes that import JAX")
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are chosen by Linux' sched_setaffinity")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one core")
def test_one_core_and_two_give_the_same_bits():
    assert bits(1) == bits(2)


@pytest.mark.parametrize("cells", [2**9, 2**12])
def test_counts_do_not_depend_on_the_size_of_blocks(monkeypatch, cells):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (3000, 7)), rng.integers(0, 3, 3000)
    whole = bnb.CategoricalNB().fit(X, y)
    monkeypatch.setattr(encoded_rows, "CELLS", cells)
    again = bnb.CategoricalNB().fit(X, y)
    np.testing.assert_array_equal(again.statistics_.blocks[0].count, whole.statistics_.blocks[0].count)


def test_results_come_in_order_and_the_first_failure_is_raised():
    assert list(map_in_threads(lambda i: i * i, range(20))) == [i * i for i in range(20)]

    def fails(i: int) -> int:
        if i in (3, 7):
            raise KeyError(i)
        return i

    with pytest.raises(KeyError, match="3"):
        list(map_in_threads(fails, range(20)))
