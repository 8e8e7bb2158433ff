"""Loading a damaged or hostile file raises our error, executes nothing and takes bounded memory."""

import io
import json
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save as to_bytes

import bayesnb as bnb
from benchmarks.forged_files import parts, signed
from tests.persistence.models import fitted

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
