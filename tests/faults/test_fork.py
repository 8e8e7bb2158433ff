"""A process forked after JAX was used is told what to do; it used to wait forever."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from tests.estimators.cases import CASES

SETUP = """
import multiprocessing, os, sys, warnings
import numpy as np
import bayesnb as bnb

warnings.simplefilter("ignore", RuntimeWarning)  # of JAX, at the fork
X, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2

def work(_=None):
    try:
        return bnb.GaussianNB().fit(X, y).predict(X).tolist()
    except RuntimeError as error:
        return f"refused: {error}"

def in_a_fork():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply_async(work).get(60)
"""


def run(body: str) -> str:
    """What a script prints; one that hangs is killed."""
    done = subprocess.run(
        [sys.executable, "-c", SETUP + body], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@forks
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")
def test_a_process_forked_after_use_is_told_what_to_do():
    case = CASES["GaussianNB"]
    nb = case.fit()
    said, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            nb.predict_log_proba(case.X)
        except RuntimeError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    waits = select.select([said], [], [], 30)[0]
    if not waits:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(said) as messages:
        message = messages.read()
    assert waits, "the child hangs"
    for word in ("forked", "spawn", "forkserver", "loky"):
        assert word in message
    nb.predict_log_proba(case.X)


@pytest.mark.slow("starts processes that import JAX")
@forks
def test_a_process_forked_before_use_works():
    """Slow: a script, which imports JAX anew."""
    found = run("print(in_a_fork()); print(work()); print(in_a_fork()); print(work())").splitlines()
    assert found[0] == found[1] == found[3]
    assert found[0].startswith("[")
    assert found[2].startswith("refused: ")


@pytest.mark.slow("starts processes that import JAX")
def test_spawned_workers_work_after_use():
    """Slow: a spawned process imports JAX anew."""
    body = """
from concurrent.futures import ProcessPoolExecutor
from joblib import Parallel, delayed
nb = bnb.GaussianNB().fit(X, y)
with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as pool:
    print(pool.submit(nb.predict, X).result().tolist() == nb.predict(X).tolist())
print(Parallel(2)(delayed(nb.predict)(X) for _ in range(2))[0].tolist() == nb.predict(X).tolist())
"""
    # A script given by -c has no file that workers would run again.
    assert run(body).split() == ["True", "True"]
