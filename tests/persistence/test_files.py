"""Saving is atomic: after an interruption the file is the complete old one or the complete new one."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import bayesnb as bnb
from bayesnb._util import atomic_files as files
from bayesnb._util.atomic_files import require_writable, write_atomically
from tests.faults.test_killed import full_disk
from tests.persistence.models import LABELS, LEVELS
from tests.raises import refused

# The module alone: the package takes two seconds to import.
WRITER = f"""
import runpy, sys
write_atomically = runpy.run_path({files.__file__!r})["write_atomically"]
print("ready", flush=True)
while True:
    for letter in (b"a", b"b"):
        write_atomically(sys.argv[1], letter * 300_000)
"""


@pytest.mark.slow("starts processes that import JAX")
def test_a_killed_writer_leaves_a_whole_file(tmp_path):
    path, rng = tmp_path / "file", np.random.default_rng(0)
    write_atomically(path, b"a" * 300_000)
    for _ in range(50):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert path.read_bytes() in (b"a" * 300_000, b"b" * 300_000)


def test_a_full_disk(tmp_path):
    path = tmp_path / "model"
    bnb.save(bnb.CategoricalNB().fit(LEVELS, LABELS), path)
    before = path.read_bytes()
    large = bnb.CategoricalNB().fit(np.arange(2000).reshape(-1, 2), np.arange(1000))
    with full_disk(1000):
        said = r"model was not written, and an existing file is unchanged: File too large"
        refused(said, bnb.save, large, path, error=OSError)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_no_folder(tmp_path):
    nb = bnb.CategoricalNB().fit(LEVELS, LABELS)
    refused("was not written", bnb.save, nb, tmp_path / "nowhere" / "model", error=FileNotFoundError)
    (tmp_path / "file").write_bytes(b"")
    refused("was not written", bnb.save, nb, tmp_path / "file" / "model", error=NotADirectoryError)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="was not written"):
            bnb.save(bnb.CategoricalNB().fit(LEVELS, LABELS), tmp_path / "model")
    finally:
        tmp_path.chmod(0o700)


def test_permissions_are_those_of_any_new_file_and_of_the_old_one(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    write_atomically(tmp_path / "new", b"1")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "new").chmod(0o600)
    write_atomically(tmp_path / "new", b"2")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("path", [".", "/", ""])
def test_a_path_without_a_file_name(path):
    refused("a folder, a pipe or a device", write_atomically, path, b"", error=OSError)


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_only_regular_files_are_replaced(kind, tmp_path):
    path, target = tmp_path / "model", tmp_path / "target"
    if kind == "link":
        target.write_bytes(b"old")
    {"pipe": os.mkfifo, "folder": os.mkdir}.get(kind, lambda p: os.symlink(target, p))(path)
    before = path.lstat()
    for write in (lambda p: bnb.save(bnb.CategoricalNB().fit(LEVELS, LABELS), p), require_writable):
        refused("symbolic link" if "link" in kind else "a folder, a pipe or a device", write, path, error=OSError)
    assert path.lstat() == before
    assert kind != "link" or target.read_bytes() == b"old"
    assert set(os.listdir(tmp_path)) <= {"model", "target"}


def test_a_name_that_is_too_long(tmp_path):
    """The name of the temporary file is too long: the old file stays, and the error says so."""
    with pytest.raises(OSError, match=r"was not written, and an existing file is unchanged: File name too long"):
        write_atomically(tmp_path / ("x" * 245), b"new")
    assert not os.listdir(tmp_path)
