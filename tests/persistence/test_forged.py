"""Forged files with a valid checksum and contradictory content are refused."""

import copy
import os
import socket
import struct
import tracemalloc
from dataclasses import fields
from itertools import cycle, islice

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import bayesnb as bnb
from bayesnb.estimators import classifier_state
from bayesnb.persistence import collect_types
from benchmarks.forged_files import MODULUS, TENSORS, WRAPPERS, complaints, forged, of_type, parts, signed
from tests.persistence.models import FIXTURES, LABELS, LEVELS, MODELS, fitted
from tests.raises import refused


def load(content: bytes, path) -> object:
    """The model, or None; within the memory that a file of its size may take."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        return bnb.load(path)
    except bnb.CorruptModelError:
        return None
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20 * len(content) + 50_000_000


def saved(names, path) -> dict[str, bytes]:
    found = {}
    for name in names:
        bnb.save(fitted(name)[0], path)
        found[name] = path.read_bytes()
    return found


def judge(files, n, seed, path) -> int:
    """How many of n forged files are loaded; each of those is consistent."""
    rng, loaded = np.random.default_rng(seed), 0
    for i, (name, content) in enumerate(islice(cycle(files.items()), n)):
        nb = load(forged(content, rng), path)
        if nb is None:
            continue
        loaded += 1
        assert complaints(nb) == [], f"file {i}, {name}"
        bnb.save(nb, path)
        once = path.read_bytes()
        bnb.save(bnb.load(path), path)
        assert path.read_bytes() == once
    return loaded


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict[str, bytes]:
    """Files of this version, of models that an earlier one has fitted."""
    path, found = tmp_path_factory.mktemp("whole") / "model", {}
    for name in ("categorical", "reserved level", "Bernoulli", "multinomial", "Gaussian", "Poisson", "network"):
        bnb.save(bnb.load(FIXTURES / f"model-1-{name.replace(' ', '_')}.safetensors"), path)
        found[name] = path.read_bytes()
    return found | {f"{name} with cells": content for name, content in saved(["Gaussian"], path).items()}


@pytest.mark.filterwarnings("ignore")
def test_forged_files(whole, tmp_path):
    names = ("categorical", "Gaussian", "Gaussian with cells")
    assert judge({name: whole[name] for name in names}, 120, 0, tmp_path / "model") > 0


@pytest.mark.slow("thousands of damaged files")
@pytest.mark.filterwarnings("ignore")
def test_forged_files_of_all_classifiers(tmp_path):
    """Fits every kind, and loads and judges 2,000 files: a minute."""
    files = saved(MODELS, tmp_path / "model")
    for content in files.values():
        assert complaints(load(content, tmp_path / "model")) == []
    assert 0 < judge(files, 2_000, 1, tmp_path / "model") < 1_000


# -- each thing that was loaded once -------------------------------------------------------------------------------


def of(tree, *keys):
    for key in keys:
        tree = tree[key]
    return tree


#: Time-zone data, version 1, of one offset: UTC.
TZIF = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + bytes(6) + b"UTC\0"


def packed(*values):
    return {"type": "tuple", "values": list(values)}


def first(value):
    """An edit of the first of an array, or of a list."""
    return lambda own: value_at(own, 0, value)


def value_at(own, at, value):
    (own.flat if isinstance(own, np.ndarray) else own)[at] = value
    return own


def minus(own):
    return value_at(own, 1, -2.0)


def ones(own):
    return np.full_like(own, 1.0)


COLUMNS = ("fitted", "encoding_", "blocks", "values", 0)
FIRST_LEVELS = (*COLUMNS, "levels", "values", 0, "values", "values")
STATISTICS = ("fitted", "statistics_", "blocks", "values", 0)
ROWS, FEATURES = ("fitted", "statistics_", "class_count"), ("fitted", "n_features_in_")
# Where in the tree, and what becomes of the value or of the array that stands there.
CONTRADICTIONS = {
    "categorical: negative count": ("categorical", (*STATISTICS, "count"), minus),
    "Bernoulli: negative count": ("Bernoulli", (*STATISTICS, "count"), minus),
    "network: negative count": ("network", (*STATISTICS, "count"), minus),
    "Gaussian: negative count": ("Gaussian", (*STATISTICS, "count"), minus),
    "Gaussian: negative m2": ("Gaussian", (*STATISTICS, "m2"), minus),
    "Poisson: negative total": ("Poisson", (*STATISTICS, "total"), minus),
    "categorical: too few rows": ("categorical", ROWS, ones),
    "Bernoulli: too few rows": ("Bernoulli", ROWS, ones),
    "Gaussian: too few rows": ("Gaussian", ROWS, ones),
    "network: too few rows": ("network", ROWS, ones),
    "Poisson: negative rows": ("Poisson", ROWS, first(-3.0)),
    "categorical: fewer features": ("categorical", FEATURES, lambda n: 2),
    "Gaussian: fewer features": ("Gaussian", FEATURES, lambda n: 2),
    "multinomial: fewer features": ("multinomial", FEATURES, lambda n: 2),
    "multinomial: words of another shape": ("multinomial", (*STATISTICS, "count"), lambda own: own[:, :2].copy()),
    "multinomial: negative count": ("multinomial", (*STATISTICS, "count"), minus),
    "a level twice": ("reserved level", FIRST_LEVELS, lambda own: [own[1], *own[1:]]),
    "a level that cannot be hashed": ("reserved level", FIRST_LEVELS, first([1])),
    "unknown policy": ("reserved level", ("parameters", "handle_unknown"), lambda own: "whatever"),
    "one column thrice": ("Gaussian", (*COLUMNS, "index"), lambda own: packed(0, 0, 0)),
    "no number": ("Bernoulli", ("parameters", "binarize"), lambda own: "x"),
    "no threshold": ("Bernoulli", (*COLUMNS, "threshold"), lambda own: "x"),
    "a cycle": ("network", (*COLUMNS, "nodes", "values"), lambda own: [own[0], packed(1, 2), packed(2, 1), *own[3:]]),
}


@pytest.mark.parametrize(("name", "keys", "edit"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_contradictions(name, keys, edit, whole, tmp_path):
    tree, arrays = parts(whole[name])
    place = of(tree, *keys[:-1])
    before = place[keys[-1]]
    if isinstance(before, dict) and before["type"] == "tensor":
        arrays[before["name"]] = edit(arrays[before["name"]].copy())
    else:
        place[keys[-1]] = edit(before)
    (tmp_path / "model").write_bytes(signed(tree, arrays))
    with pytest.raises(bnb.CorruptModelError):
        bnb.load(tmp_path / "model")


ROOM = {
    "array in a tuple": {"type": "tuple", "values": {"type": "array", "kind": "O", "shape": [10**6, 0], "values": []}},
    "tensor in a tuple": {"type": "tuple", "values": {"type": "tensor", "name": "empty"}},
    "tensor the other way": {"type": "array", "kind": "O", "shape": [0, 10**6], "values": []},
    "ranges": [{"type": "range", "value": [0, 1000, 1]}] * 20,
    "range as keys": {"type": "dict", "keys": {"type": "range", "value": [0, 10**6, 1]}, "values": []},
    "one wide string": {"type": "array", "kind": "U", "shape": [300], "values": ["a" * 3000] + ["b"] * 299},
}


@pytest.mark.parametrize("kind", ROOM)
def test_room_is_bounded_by_the_size_of_the_file(kind, whole, tmp_path):
    tree, arrays = parts(whole["categorical"])
    tree["parameters"]["missing_values"] = ROOM[kind]
    small = {"empty": TENSORS["empty"][: 10**6]} if "tensor in" in kind else {}
    assert load(signed(tree, arrays | small), tmp_path / "model") is None


def test_nothing_but_brackets(tmp_path):
    content = signed([[]] * 2**19, {})
    assert load(content, tmp_path / "model") is None


def test_what_save_writes_load_reads(tmp_path):
    """Saving refuses a model that was modified by hand."""
    path = tmp_path / "model"
    nb = bnb.CategoricalNB().fit(LEVELS, LABELS)
    nb.statistics_.blocks[0].count[0, 0] += 1000
    message = "CategoricalNB was changed after fit: class_count contradicts the counts of .* column '0' has 10"
    refused(message, bnb.save, nb, path)
    nb = bnb.CategoricalNB().fit(LEVELS, LABELS).set_params(alpha=-1)
    refused("was changed after fit: alpha is -1", bnb.save, nb, path)
    assert not path.exists()


@pytest.mark.slow("thousands of damaged files")
def test_models_that_were_forgotten_and_faded_for_long(tmp_path):
    """Rounding of many weights that are not whole is no contradiction. Five kinds are fitted and counted again."""
    rng = np.random.default_rng(0)
    X, y, weight = LEVELS, LABELS, rng.uniform(0, 1e6, 40)
    for make in (bnb.CategoricalNB, bnb.GaussianNB, bnb.PoissonNB, bnb.BernoulliNB, bnb.MultinomialNB):
        nb = make().fit(X, y, weight)
        for _ in range(20):
            nb.partial_fit(X, y, sample_weight=weight / 3).forget(X, y, weight / 3).decay(0.9)
        nb.forget(X[5:], y[5:], weight[5:] * 0.9**20 * (1 - 1e-12))
        for _ in range(5):
            nb.decay(1e-80)
        bnb.save(nb, tmp_path / "model")
        bnb.load(tmp_path / "model")


# -- files that choose how long they take --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*WRAPPERS, "CategoricalNB", "GaussianNB"])
def test_classifiers_in_classifiers(kind, whole, tmp_path):
    tree, arrays = parts(whole["categorical"])
    name = {"CategoricalNB": "alpha", "GaussianNB": "prior"}.get(kind, "estimator")
    inner = copy.deepcopy(tree)
    for _ in range(14):
        inner = of_type(kind, parameters={name: inner}, fitted={})
    tree["parameters"]["alpha"] = inner
    (tmp_path / "model").write_bytes(signed(tree, arrays))
    refused("cannot wrap another|more than 8 classifiers", bnb.load, tmp_path / "model", error=bnb.CorruptModelError)


# Numbers modulo 2^61 - 1: bits 9 apart, of which each may be the lowest, times powers of 2^61, which is 1.
ROTATED = [sum(2 ** (9 * (i - r) % 61) for i in range(6)) * 2.0 ** (9 * r) for r in range(6)]
COLLIDING = {
    "integers": [i * MODULUS for i in range(100)],
    "floats": [x * 2.0 ** (61 * k) for x in ROTATED for k in range(-8, 9)],
    "tuples": [of_type("tuple", values=[i * MODULUS, 1]) for i in range(100)],
    "nested tuples": [of_type("tuple", values=[of_type("tuple", values=[i * MODULUS])]) for i in range(100)],
}


@pytest.mark.parametrize("kind", COLLIDING)
@pytest.mark.parametrize("place", ["classes", "categories", "missing_values", "keys"])
def test_values_of_one_hash(kind, place, whole, tmp_path):
    tree, arrays = parts(whole["categorical"])
    values = COLLIDING[kind]
    if place == "classes":
        tree["fitted"]["encoding_"]["classes"]["values"]["values"] = values
    else:
        filled = of_type("dict", keys=values, values=values) if place == "keys" else [values]
        tree["parameters"]["missing_values" if place == "missing_values" else "categories"] = filled
    (tmp_path / "model").write_bytes(signed(tree, arrays))
    refused(
        "values have the same hash. At most 64 values may", bnb.load, tmp_path / "model", error=bnb.CorruptModelError
    )


def test_keys_of_a_dictionary_are_names_or_positions_or_few(whole, tmp_path):
    """Keys with different hashes can still collide in the slots of a dictionary."""
    tree, arrays = parts(whole["categorical"])
    numbers = [i << 20 for i in range(5_000)]
    keys = {"few": numbers[:4_000], "many": numbers, "positions": list(range(9_000)), "names": ["x"] * 9_000}
    for kind, own in keys.items():
        tree["fitted"]["more_"] = of_type("dict", keys=own, values=own)
        assert (load(signed(tree, arrays), tmp_path / "model") is None) == (kind == "many")


def test_what_no_file_can_have_is_not_saved(tmp_path):
    levels = [i * MODULUS for i in range(100)]
    nb = bnb.CategoricalNB().fit(np.array(levels, object)[:, None], np.arange(100) % 2)
    refused("100 of 100 values have the same hash", bnb.save, nb, tmp_path / "model")
    times = pd.to_datetime(["2020-01-02", "2021-06-01"]).tz_localize("dateutil/Europe/Berlin")
    nb = bnb.CategoricalNB().fit([["a"], ["b"]], pd.Series(times, dtype=object))
    refused("has the time zone .*tzfile", bnb.save, nb, tmp_path / "model", error=TypeError)
    assert not list(tmp_path.iterdir())


def test_a_time_zone_opens_no_path_that_the_file_names(whole, tmp_path):
    """Not even one of time-zone data, which pandas reads."""
    path, data = tmp_path / "model", tmp_path / "data"
    data.write_bytes(TZIF)
    own = f"dateutil/{data}"
    assert str(pd.Timestamp(0, tz=own).tz) == f"tzfile('{data}')"
    tree, arrays = parts(whole["categorical"])
    classes = tree["fitted"]["encoding_"]["classes"]["values"]
    for zone in (own, "dateutil//etc/passwd", "/etc/passwd", "../passwd", "Europe/../passwd", "Europe", "Nowhere", 1):
        classes["values"] = [of_type("Timestamp", value=i, unit="ns", zone=zone) for i in range(3)]
        path.write_bytes(signed(tree, arrays))
        refused("time zone|Reading the file raised|No time zone", bnb.load, path, error=bnb.CorruptModelError)
    for zone in (None, "UTC", "UTC-03:30", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "tzlocal()"):
        classes["values"] = [of_type("Timestamp", value=i, unit="ns", zone=zone) for i in range(3)]
        path.write_bytes(signed(tree, arrays))
        assert bnb.load(path).classes_.tolist() == [pd.Timestamp(i, tz=zone) for i in range(3)]


def test_only_these_types_of_data_compute_when_they_are_made():
    """They derive fields from others; a type that does more must not be one that a file can name.

    Pytrees with static fields only convert arrays of JAX, which no file has.
    """
    data = [cls for cls in collect_types().values() if not issubclass(cls, BaseEstimator)]
    data = [cls for cls in data if not any(field.metadata.get("static") for field in fields(cls))]
    deriving = "Weights WeightPath NodeColumns ContextColumns PairColumns BetaNegativeBinomial KnownDispersion"
    assert {cls.__name__ for cls in data if hasattr(cls, "__post_init__")} == set(deriving.split())


# -- what is no file -----------------------------------------------------------------------------------------------


def test_pipes_sockets_and_devices(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "pipe", "/dev/zero", "/dev/null"):
            refused("not a regular file", bnb.load, path, error=bnb.CorruptModelError)
        refused("socket", bnb.load, tmp_path / "socket", error=OSError)
    # Reading the beginning of a process's memory fails; other systems have no such file.
    refused("(Input/output error|No such file).*/proc/self/mem", bnb.load, "/proc/self/mem", error=OSError)


@pytest.mark.parametrize("beginning", ["nothing", "a model", "a long header"])
def test_a_sparse_file_of_ten_gigabytes(beginning, whole, tmp_path):
    path = tmp_path / "model"
    header = {"nothing": b"", "a model": whole["categorical"], "a long header": (9 * 10**9).to_bytes(8, "little")}
    path.write_bytes(header[beginning])
    os.truncate(path, 10**10)
    tracemalloc.start()
    try:
        refused("only a part", bnb.load, path, error=bnb.CorruptModelError)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "value"),
    [("rows_counted_", -3), ("rows_counted_", 10.5), ("first_rows_", 5), ("tuned_", "alpha"), ("tuned_", (1,))],
)
def test_what_fit_leaves_beside_the_counts_is_checked_too(name, value):
    nb = bnb.CategoricalNB().fit([["a"], ["b"]], [0, 1])
    setattr(nb, name, value)
    refused(f"{name} is ", classifier_state.check, nb)
