"""Files with the right checksum that contradict themselves are no models; what is loaded answers, and saves again."""

from __future__ import annotations

import os
import socket
import tracemalloc
from itertools import cycle, islice

import numpy as np
import pytest

import bayesnb as bnb
from bayesnb.estimators import drafts
from tests.persistence.forger import TENSORS, complaints, forged, parts, signed
from tests.persistence.models import LABELS, LEVELS, MODELS, fitted


def load(content: bytes, path) -> object:
    """The model, or None; within the memory that a file of its size may take."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        return bnb.load(path)
    except bnb.CorruptModelError:
        return None
    finally:
        penalized_mle = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert penalized_mle < 20 * len(content) + 50_000_000


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
    names = ("categorical", "reserved level", "Bernoulli", "Gaussian", "Poisson", "network", "Polya")
    return saved(names, tmp_path_factory.mktemp("whole") / "model")


@pytest.mark.filterwarnings("ignore")
def test_forged_files(whole, tmp_path):
    assert judge({"categorical": whole["categorical"], "Gaussian": whole["Gaussian"]}, 80, 0, tmp_path / "model") > 0


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


def statistics(tree, field, block=0):
    return of(tree, "fitted", "statistics_", "blocks", "values", block, field, "name")


def columns(tree):
    return of(tree, "fitted", "encoding_", "blocks", "values", 0)


def minus(name, field):
    def change(tree, arrays):
        arrays[statistics(tree, field)].flat[1] = -2.0

    return name, change


def too_few_rows(tree, arrays):
    arrays[of(tree, "fitted", "statistics_", "class_count", "name")][:] = 1.0


def negative_rows(tree, arrays):
    arrays[of(tree, "fitted", "statistics_", "class_count", "name")][0] = -3.0


def fewer_features(tree, arrays):
    tree["fitted"]["n_features_in_"] = 2


def twice(tree, arrays):
    levels = of(columns(tree), "levels", "values", 0, "values", "values")
    levels[0] = levels[1]


def unhashable(tree, arrays):
    of(columns(tree), "levels", "values", 0, "values", "values")[0] = [1]


def one_column_thrice(tree, arrays):
    columns(tree)["index"] = {"type": "tuple", "values": [0, 0, 0]}


def no_number(tree, arrays):
    tree["parameters"]["binarize"] = "x"


def no_threshold(tree, arrays):
    columns(tree)["threshold"] = "x"


def unknown_policy(tree, arrays):
    tree["parameters"]["handle_unknown"] = "whatever"


def words_of_another_shape(tree, arrays):
    name = of(tree, "fitted", "concentration_", "name")
    arrays[name] = arrays[name][:, :2].copy()


def negative_concentration(tree, arrays):
    arrays[of(tree, "fitted", "concentration_", "name")][0, 0] = -1.0


def probabilities_of_nothing(tree, arrays):
    arrays[of(tree, "fitted", "class_log_prior_", "name")][:] = -1.0


def a_cycle(tree, arrays):
    for node, parent in ((1, 2), (2, 1)):
        columns(tree)["nodes"]["values"][node] = {"type": "tuple", "values": [node, parent]}


CONTRADICTIONS = [
    minus("categorical", "count"),
    minus("Bernoulli", "count"),
    minus("network", "count"),
    minus("Gaussian", "count"),
    minus("Gaussian", "m2"),
    minus("Poisson", "total"),
    ("categorical", too_few_rows),
    ("Bernoulli", too_few_rows),
    ("Gaussian", too_few_rows),
    ("network", too_few_rows),
    ("Poisson", negative_rows),
    ("categorical", fewer_features),
    ("Gaussian", fewer_features),
    ("Polya", fewer_features),
    ("reserved level", twice),
    ("reserved level", unhashable),
    ("reserved level", unknown_policy),
    ("Gaussian", one_column_thrice),
    ("Bernoulli", no_number),
    ("Bernoulli", no_threshold),
    ("Polya", words_of_another_shape),
    ("Polya", negative_concentration),
    ("Polya", probabilities_of_nothing),
    ("network", a_cycle),
]


@pytest.mark.parametrize(("name", "change"), CONTRADICTIONS, ids=[f"{n}: {c.__name__}" for n, c in CONTRADICTIONS])
def test_contradictions(name, change, whole, tmp_path):
    tree, arrays = parts(whole[name])
    arrays = {key: array.copy() for key, array in arrays.items()}
    change(tree, arrays)
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
    """So that it does not write what was changed by hand."""
    path = tmp_path / "model"
    nb = bnb.CategoricalNB().fit(LEVELS, LABELS)
    nb.statistics_.blocks[0].count[0, 0] += 1000
    with pytest.raises(ValueError, match=r"CategoricalNB is not as fit left it: class_count contradicts the cells"):
        bnb.save(nb, path)
    nb = bnb.CategoricalNB().fit(LEVELS, LABELS).set_params(alpha=-1)
    with pytest.raises(ValueError, match="not as fit left it: alpha is -1"):
        bnb.save(nb, path)
    assert not path.exists()


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


# -- what is no file -----------------------------------------------------------------------------------------------


def test_pipes_sockets_and_devices(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "pipe", "/dev/zero", "/dev/null"):
            with pytest.raises(bnb.CorruptModelError, match="no regular file"):
                bnb.load(path)
        with pytest.raises(OSError, match="socket"):
            bnb.load(tmp_path / "socket")


@pytest.mark.parametrize("beginning", ["nothing", "a model", "a long header"])
def test_a_sparse_file_of_ten_gigabytes(beginning, whole, tmp_path):
    path = tmp_path / "model"
    header = {"nothing": b"", "a model": whole["categorical"], "a long header": (9 * 10**9).to_bytes(8, "little")}
    path.write_bytes(header[beginning])
    os.truncate(path, 10**10)
    tracemalloc.start()
    try:
        with pytest.raises(bnb.CorruptModelError, match="only a part"):
            bnb.load(path)
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
    with pytest.raises(ValueError, match=f"{name}|tuned_ or first_rows_"):
        drafts.check(nb)
