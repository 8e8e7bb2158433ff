"""Damaged and hostile files: always our error; no crash, no hang, no execution, no memory beyond the file's size."""

from __future__ import annotations

import copy
import io
import json
import pickle
import tracemalloc
import warnings
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

import bayesnb as bnb
from bayesnb import persistence
from tests.persistence.models import fitted

NAMES = ("mixed", "network", "AODE", "averaged", "mixture", "Polya", "frame")
HOSTILE = [
    None,
    True,
    -1,
    0,
    7,
    10**18,
    10**400,
    1e308,
    "",
    "é" * 50,
    "__class__",
    "NetworkNB",
    [],
    [[]],
    [0] * 100,
    {},
    {"type": "range", "value": [0, 10**18, 1]},
    {"type": "range", "value": [0, 10, 0]},
    {"type": "float", "value": "nan"},
    {"type": "tuple", "values": []},
    {"type": "tuple", "values": [{"type": "tuple", "values": []}]},
    {"type": "dict", "keys": [[]], "values": [1]},
    {"type": "class", "value": "NaiveBayes"},
    {"type": "class", "value": "os"},
    {"type": "array", "kind": "U", "shape": [10**9], "values": ["a"]},
    {"type": "array", "kind": "O", "shape": [], "values": [1, 2]},
    {"type": "tensor", "name": "0"},
    {"type": "tensor", "name": "none"},
    {"type": "datetime64", "value": 10**30, "unit": "ns", "step": 1},
    {"type": "datetime64", "value": 1, "unit": "no", "step": -1},
    {"type": "Timestamp", "value": 10**30, "unit": "ns", "zone": "../../etc/passwd"},
    {"type": "Positions", "n": 10**18},
    {"type": "Levels", "values": 5},
    {"type": "Levels", "values": {"type": "tuple", "values": [1, 1]}},
    {"type": "Known", "log_prob": None},
    {"type": "GaussianNB", "parameters": {}, "fitted": {}},
    {"type": "GaussianNB", "parameters": {"nobody": 1}, "fitted": {}},
    {"type": "GaussianNB", "parameters": {}, "fitted": {"predict": 1}},
    {"type": "__init__", "value": 1},
    {"type": "decode", "value": 1},
    {"type": ["a"], "value": 1},
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in NAMES:
        bnb.save(fitted(name)[0], folder / name)
    return [(name, (folder / name).read_bytes()) for name in NAMES]


def attempt(content: bytes, path) -> bool:
    """Whether it loads; if not, with our error."""
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


def resigned(tree, arrays) -> bytes:
    """A file with the right checksum, whatever is in it."""
    content = {"version": 1, "sha256": persistence._digest(json.dumps(tree), arrays), "model": tree}
    return to_bytes(arrays, {"bayesnb": json.dumps(content)})


def parts(content: bytes):
    size = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["bayesnb"])["model"], from_bytes(content)


def places(tree, found=None):
    """Every (container, key) of a tree."""
    found = [] if found is None else found
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found.append((tree, key))
        places(value, found)
    return found


def forged(content: bytes, rng: np.random.Generator) -> bytes:
    tree, arrays = parts(content)
    for _ in range(int(rng.integers(1, 3))):
        if rng.random() < 0.75 or not arrays:
            container, key = places(tree)[int(rng.integers(len(places(tree))))]
            match rng.integers(4):
                case 0 if isinstance(container, dict):
                    del container[key]
                case 1 if isinstance(container, dict):
                    container["more"] = container[key]
                case _:
                    container[key] = copy.deepcopy(HOSTILE[int(rng.integers(len(HOSTILE)))])
        else:
            name = sorted(arrays)[int(rng.integers(len(arrays)))]
            array = arrays[name]
            choices = [
                array.astype(np.float32),
                array.astype(bool),
                array.ravel(),
                array.reshape(1, *array.shape),
                np.full_like(array, -1),
                array[..., :0] if array.ndim else array,
                np.full(array.shape, np.nan),
                np.zeros((3, 0, 2)),
            ]
            arrays[name] = np.ascontiguousarray(choices[int(rng.integers(len(choices)))])
    return resigned(tree, arrays)


def harmless(path, X) -> None:
    """What passes all checks is a classifier that answers, or refuses as any other does."""
    nb = bnb.load(path)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with suppress(ValueError, TypeError, NotImplementedError, AttributeError, IndexError):
            assert nb.predict_proba(X).shape[0] == len(X)


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


def test_any_change_of_bytes_is_noticed(files, tmp_path):
    assert many(files, 1_000, mutated, tmp_path, 0) == 0


@pytest.mark.slow
def test_any_change_of_bytes_is_noticed_twenty_thousand_times(files, tmp_path):
    assert many(files, 20_000, mutated, tmp_path, 1) == 0


def test_forged_files_do_no_harm(files, tmp_path):
    many(files, 500, forged, tmp_path, 2)


@pytest.mark.slow
def test_forged_files_do_no_harm_ten_thousand_times(files, tmp_path):
    many(files, 10_000, forged, tmp_path, 3)


def test_forged_files_that_load_answer(files, tmp_path):
    rng, rows = np.random.default_rng(4), {name: fitted(name)[1] for name in NAMES}
    for i in range(100):
        name, content = files[i % len(files)]
        if attempt(forged(content, rng), tmp_path / "model"):
            harmless(tmp_path / "model", rows[name])


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


def test_what_is_wrong_is_said(files, tmp_path):
    path = tmp_path / "model"
    tree, arrays = parts(files[0][1])
    cases = [
        (files[0][1][:-1], "only a part"),
        (to_bytes({"0": np.zeros(3)}), "no model of bayesnb"),
        (resigned({"type": "subprocess.Popen"}, {}), "type 'subprocess.Popen' that no model has"),
        (resigned(tree, arrays | {"0": np.zeros(1)}), "should be float64 of shape"),
        (resigned([[]], {}), "holds no classifier"),
    ]
    path.write_bytes(files[0][1])
    content = bytearray(files[0][1])
    content[-3] ^= 1
    for changed, message in [*cases, (bytes(content), "does not have the checksum")]:
        path.write_bytes(changed)
        with pytest.raises(bnb.CorruptModelError, match=message):
            bnb.load(path)


def test_deep_nesting(tmp_path):
    tree: list = []
    for _ in range(900):
        tree = [tree]
    assert not attempt(resigned(tree, {}), tmp_path / "model")
    assert not attempt(to_bytes({}, {"bayesnb": "[" * 100_000 + "]" * 100_000}), tmp_path / "model")


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        bnb.load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        bnb.load(tmp_path)
