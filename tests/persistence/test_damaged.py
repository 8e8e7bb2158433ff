"""Saving is atomic; loading a damaged or hostile file raises our error, executes nothing and takes bounded memory."""

import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save as to_bytes

import bayesnb as bnb
from bayesnb._util import atomic_files
from bayesnb._util.atomic_files import require_writable, write_atomically
from benchmarks.forged_files import parts, signed
from tests.faults.test_killed import full_disk
from tests.persistence.models import LABELS, LEVELS, fitted
from tests.raises import refused

NAMES = ("mixed", "network", "AODE", "averaged", "mixture", "frame")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in NAMES:
        bnb.save(fitted(name)[0], folder / name)
    return [(name, (folder / name).read_bytes()) for name in NAMES]


def attempt(content: bytes, path) -> bool:
    """Whether the file loads; if it does not, the error must be ours."""
    path.write_bytes(content)
    try:
        bnb.load(path)
    except bnb.CorruptModelError:
        return False
    return True


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    data, n = bytearray(content), len(content)
    at, other = sorted(int(i) for i in rng.integers(n, size=2))
    match rng.integers(7):
        case 0:
            data[at] ^= 1 << int(rng.integers(8))
        case 1:
            data = data[:at]
        case 2:
            data[at : at + 8] = rng.bytes(8)
        case 3:
            del data[at:other]
        case 4:
            data[at:at] = rng.bytes(int(rng.integers(1, 64)))
        case 5:
            data[at:other] = data[at:other][::-1]
        case _:
            data[:8] = int(rng.integers(2**62)).to_bytes(8, "little")
    return bytes(data)


def says_the_same(one: bytes, other: bytes) -> bool:
    """JSON has two spellings of "é", \\u00e9 and \\u00E9: that is no other content."""
    (tree, arrays), (other_tree, other_arrays) = parts(one), parts(other)
    same = all(arrays[name].tobytes() == other_arrays[name].tobytes() for name in arrays)
    return tree == other_tree and arrays.keys() == other_arrays.keys() and same


def many(files, n, make, tmp_path, seed):
    """How many files load that say something else than the whole one."""
    rng, loaded = np.random.default_rng(seed), 0
    for i in range(n):
        _, content = files[i % len(files)]
        changed = make(content, rng)
        tracemalloc.start()
        fine = attempt(changed, tmp_path / "model")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20 * len(changed) + 2_000_000
        loaded += fine and not says_the_same(changed, content)
    return loaded


@pytest.mark.slow("thousands of damaged files")
def test_any_change_of_bytes_is_noticed(files, tmp_path):
    assert many(files, 1_000, mutated, tmp_path, 0) == 0


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("executed",))


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("model.json", b"0" * 10**7)
    return buffer.getvalue()


def huge_shape() -> bytes:
    header = json.dumps({"0": {"dtype": "F64", "shape": [2**40, 2**20], "data_offsets": [0, 8]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(8)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        bytes(8),
        b"\xff" * 100,
        "模型".encode("gbk") * 20,
        pickle.dumps(Bomb()),
        zipped(),
        huge_shape(),
        to_bytes({"0": np.zeros(3)}),
        to_bytes({"0": np.zeros(3)}, {"bayesnb": ""}),
        to_bytes({"0": np.zeros(3)}, {"bayesnb": "[]"}),
        to_bytes({"0": np.zeros(3)}, {"bayesnb": '{"version": 2, "model": {}, "sha256": ""}'}),
    ],
)
def test_other_files(content, tmp_path):
    assert not attempt(content, tmp_path / "model")


@pytest.mark.slow("compiles kernels of its own")
def test_what_is_wrong_is_said(files, tmp_path):
    path = tmp_path / "model"
    tree, arrays = parts(files[0][1])
    cases = [
        (files[0][1][:-1], "only a part"),
        (to_bytes({"0": np.zeros(3)}), "no model of bayesnb"),
        (signed({"type": "subprocess.Popen"}, {}), "type 'subprocess.Popen', which is not a type"),
        (signed(tree, arrays | {"0": np.zeros(1)}), "should be float64 of shape"),
        (signed([[]], {}), "holds no classifier"),
    ]
    path.write_bytes(files[0][1])
    content = bytearray(files[0][1])
    content[-3] ^= 1
    for changed, message in [*cases, (bytes(content), "its content and its checksum differ")]:
        path.write_bytes(changed)
        with pytest.raises(bnb.CorruptModelError, match=message):
            bnb.load(path)


def test_deep_nesting(tmp_path):
    tree: list = []
    for _ in range(900):
        tree = [tree]
    assert not attempt(signed(tree, {}), tmp_path / "model")
    assert not attempt(to_bytes({}, {"bayesnb": "[" * 100_000 + "]" * 100_000}), tmp_path / "model")


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        bnb.load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        bnb.load(tmp_path)


# The module alone: the package takes two seconds to import.
WRITER = f"""
import runpy, sys
write_atomically = runpy.run_path({atomic_files.__file__!r})["write_atomically"]
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
