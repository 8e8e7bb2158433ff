"""A stream that was killed, or stopped by a full disk, resumes from a complete checkpoint."""

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import numpy as np
import pytest

import bayesnb as bnb
from tests.estimators.cases import CASES

KILLS, BATCHES, SIZE = 25, 1_500, 50

# One process imports everything; those that are killed are its children, which begin where it is. JAX was not used
# before they are there. It waits until a child has written a checkpoint, and kills it a random time later.
KILLER = f"""
import os, shutil, signal, sys, time
import numpy as np
import safetensors.numpy
import bayesnb as bnb
from tests.faults.test_killed import stream

kind, path, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(seed)

def written():
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns

for number in range({KILLS}):
    before = written()
    child = os.fork()
    if child == 0:
        bnb.fit_stream(getattr(bnb, kind)(), stream(kind), checkpoint=path, every={SIZE}, progress=False)
        os._exit(0)
    while written() == before and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.001)
    time.sleep(rng.uniform(0, 0.05))
    os.kill(child, {signal.SIGKILL:d})
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        sys.exit(f"child {{number}} ended before it was killed, with {{status}}")
    shutil.copyfile(path, f"{{path}}.{{number}}")
"""


def rows(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the stream: a level and a class that occur late, or numbers."""
    rng, n = np.random.default_rng(0), BATCHES * SIZE
    y = rng.integers(0, 3, n)
    y[: n // 100] = 0
    if kind == "GaussianNB":
        return rng.normal(y[:, None], 1.0, (n, 2)), y
    X = rng.integers(0, 4, (n, 3))
    X[: n // 50] %= 3
    return X, y


def stream(kind: str, size: int = SIZE) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    X, y = rows(kind)
    for start in range(0, len(y), size):
        yield X[start : start + size], y[start : start + size]


@pytest.mark.slow("starts processes that import JAX")
@pytest.mark.parametrize("kind", ["CategoricalNB", "GaussianNB"])
def test_it_may_be_killed_at_any_moment(kind, tmp_path):
    """Fifty kills, in two streams; a checkpoint is written after each batch, which takes most of the time."""
    path = tmp_path / "checkpoint"
    subprocess.run([sys.executable, "-W", "ignore", "-c", KILLER, kind, str(path), "1"], check=True, cwd=os.getcwd())
    X, y = rows(kind)
    found = [bnb.load(f"{path}.{number}") for number in range(KILLS)]
    counted = [nb.rows_counted_ for nb in found]
    assert counted == sorted(set(counted))  # every run went on from where the last was
    assert 0 < counted[0] < counted[-1] < len(y)
    for nb, n in zip(found, counted, strict=True):
        assert n % SIZE == 0
        assert_counts_rows(nb, X[:n], y[:n])
    killed = bnb.fit_stream(getattr(bnb, kind)(), stream(kind), checkpoint=path, every=10**9, progress=False)
    whole = bnb.fit_stream(getattr(bnb, kind)(), stream(kind), progress=False)
    assert killed.encoding_.classes.values == whole.encoding_.classes.values
    for mine, theirs in zip(jax.tree.leaves(killed.statistics_), jax.tree.leaves(whole.statistics_), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert bnb.load(path).rows_counted_ == len(y)


def assert_counts_rows(nb: bnb.CategoricalNB | bnb.GaussianNB, X: np.ndarray, y: np.ndarray) -> None:
    """Counts by NumPy, of exactly these rows."""
    classes = np.unique(y)
    assert nb.classes_.tolist() == classes.tolist()
    np.testing.assert_array_equal(nb.class_count_, [(y == c).sum() for c in classes])
    if isinstance(nb, bnb.GaussianNB):
        # Means of numbers of size 1 are right to so many digits, also one that is near zero.
        mean = [X[y == c].mean(axis=0) for c in classes]
        np.testing.assert_allclose(nb.statistics_.blocks[0].mean, mean, rtol=1e-11, atol=1e-14)
        return
    for j, (levels, count) in enumerate(zip(nb.categories_, nb.category_count_, strict=True)):
        assert levels.tolist() == np.unique(X[:, j]).tolist()
        np.testing.assert_array_equal(count, [[((y == c) & (X[:, j] == v)).sum() for v in levels] for c in classes])


# -- the disk --------------------------------------------------------------------------------------


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file may become larger than that."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Nobody may write there, and root, who always may, is nobody for the while."""
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can look into; pytest's own are only for their user."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


LEVELS = np.arange(600).reshape(-1, 2)  # every row brings new ones, so that the file grows
LABELS = np.arange(300) % 3


def growing() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start in range(0, 300, 20):
        yield LEVELS[start : start + 20], LABELS[start : start + 20]


def assert_untouched(nb: bnb.CategoricalNB, before: dict) -> None:
    assert vars(nb) == before
    np.testing.assert_array_equal(nb.class_count_, [2, 1])


def assert_resumes(path: Path) -> None:
    """The checkpoint is whole, of a part of the rows, and the stream can be finished."""
    nb = bnb.load(path)
    n = nb.rows_counted_
    assert 0 < n < 300
    np.testing.assert_array_equal(nb.class_count_, np.bincount(LABELS[:n], minlength=3))
    done = bnb.fit_stream(bnb.CategoricalNB(), growing(), checkpoint=path, progress=False)
    for j, (levels, count) in enumerate(zip(done.categories_, done.category_count_, strict=True)):
        assert levels.tolist() == LEVELS[:, j].tolist()
        np.testing.assert_array_equal(count, np.arange(3)[:, None] == LABELS)


def test_a_disk_that_becomes_full(tmp_path):
    path = tmp_path / "checkpoint"
    nb = bnb.CategoricalNB().fit([[0], [1], [0]], ["a", "a", "b"])
    before = dict(vars(nb))
    bnb.fit_stream(bnb.CategoricalNB(), growing(), progress=False)  # no kernel is left to be cached on a full disk
    with (
        full_disk(8_000),
        pytest.raises(OSError, match="checkpoint was not written, and an existing file is unchanged: File too"),
    ):
        bnb.fit_stream(nb, growing(), checkpoint=path, every=20, progress=False)
    assert_untouched(nb, before)
    assert os.listdir(tmp_path) == ["checkpoint"]
    assert_resumes(path)


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_first_row(folder):
    asked = []

    def batches():
        asked.append(True)
        yield LEVELS, LABELS

    with pytest.raises(FileNotFoundError, match=r"nowhere.* cannot be written: No such file or directory"):
        bnb.fit_stream(bnb.CategoricalNB(), batches(), checkpoint=folder / "nowhere" / "c", progress=False)
    with unwritable(folder), pytest.raises(PermissionError, match="cannot be written: Permission denied"):
        bnb.fit_stream(bnb.CategoricalNB(), batches(), checkpoint=folder / "c", progress=False)
    assert not asked
    assert os.listdir(folder) == []


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
