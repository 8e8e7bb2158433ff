"""A process forked after JAX was used is told what to do; it used to wait forever."""

import os
import select
import signal

import pytest

from tests.estimators.cases import CASES

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
