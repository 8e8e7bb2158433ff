"""Forged model files with a valid checksum, and an independent check of loaded models in plain NumPy."""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from bayesnb.persistence import current_version

# -- forging -------------------------------------------------------------------------------------------------------


def of_type(kind: Any, /, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


FIRST, EMPTY = of_type("tensor", name="0"), of_type("tensor", name="empty")
WIDE = of_type("array", kind="O", shape=[10**7, 0], values=[])
HOSTILE = [
    *(None, True, -1, 0, 1, 7, 2**31, 10**7, 10**18, 10**400, 0.5, -3.25, 1e308),
    *("", "x", "é" * 50, "auto", "levels", "__class__", "NetworkNB"),
    *([], [[]], [0] * 100, [0, 0], [[0.5, 0.5]] * 3, {}),
    *(of_type("range", value=own) for own in ([0, 10**18, 1], [0, 10**7, 1], [0, 3, 1], [0, 10, 0])),
    *(of_type("float", value=own) for own in ("nan", "inf", "-inf")),
    *(of_type("tuple", values=own) for own in ([], [0, 0], [of_type("tuple", values=[])], FIRST, WIDE, [WIDE] * 20)),
    of_type("tuple", values=[of_type("tuple", values=EMPTY)] * 50),
    of_type("array", kind="O", shape=[0, 10**7], values=[]),
    of_type("array", kind="U", shape=[10**9], values=["a"]),
    of_type("array", kind="O", shape=[], values=[1, 2]),
    of_type("array", kind="U", shape=[300], values=["a" * 3000] + ["b"] * 299),
    of_type("dict", keys=[[]], values=[1]),
    of_type("dict", keys=of_type("range", value=[0, 1000, 1]), values=of_type("range", value=[0, 1000])),
    *(of_type("series", labels=own, values=[1.0, 2.0]) for own in ([0, 1], ["x", "y"], [0], [[], []], FIRST)),
    of_type("series", labels=["x", "y"], values=[WIDE, of_type("dict", keys=["z"], values=[1])]),
    *(of_type("frame", labels=["x", 0], columns=["y"] * 2, values=own) for own in (5, FIRST, WIDE, EMPTY, [1.0] * 4)),
    of_type("frame", labels=[0] * 3000, columns=[[]] * 3000, values=2.0),
    *(of_type("class", value=own) for own in ("NaiveBayes", "Totals", "Dirichlet", "os")),
    *(FIRST, EMPTY, of_type("tensor", name="none"), of_type("scalar", value=FIRST)),
    of_type("datetime64", value=10**30, unit="ns", step=1),
    of_type("datetime64", value=1, unit="no", step=-1),
    of_type("Timestamp", value=10**30, unit="ns", zone="../../etc/passwd"),
    *(of_type("Positions", n=own) for own in (10**18, 3)),
    of_type("Levels", values=5),
    *(of_type("Levels", values=of_type("tuple", values=own)) for own in ([1, 1], [1, True, 1.0], [[1], [2]])),
    *(of_type("Known", log_prob=own) for own in (None, FIRST)),
    of_type("Dirichlet", concentration=FIRST, group=of_type("tensor", name="huge"), num_groups=10**9),
    of_type("NaiveBayes", class_prior=of_type("Known", log_prob=FIRST), blocks=of_type("tuple", values=[])),
    *(of_type("GaussianNB", parameters=own, fitted={}) for own in ({}, {"nobody": 1})),
    of_type("GaussianNB", parameters={}, fitted={"predict": 1}),
    *(of_type("__init__", value=1), of_type(["a"], value=1)),
]
TENSORS = {"empty": np.zeros((2 * 10**7, 0)), "huge": np.array([0, 10**12])}
CLASSES = ["CategoricalNB", "BernoulliNB", "MultinomialNB", "GaussianNB", "PoissonNB", "MixedNB", "TAN", "SPODE"]
CLASSES += ["AODE", "NetworkNB", "FeatureAveragedNB", "NaiveBayesMixture", "KDB", "TreeAveragedNB"]
DATA = ["LevelColumns", "NodeColumns", "RealColumns", "CountColumns", "BinaryColumns", "Moments", "Totals"]
DATA += ["LevelCounts", "Encoding", "Statistics", "Levels", "Positions", "Dirichlet", "tuple", "range"]
DATA += ["ContextColumns", "ContextTree", "NumberCells"]


def parts(content: bytes) -> tuple[Any, dict[str, np.ndarray]]:
    """The tree and the arrays of a file."""
    size = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["bayesnb"])["model"], from_bytes(content)


def signed(tree: Any, arrays: dict[str, np.ndarray]) -> bytes:
    """A file with the right checksum, as the format has it."""
    digest = hashlib.sha256(f"bayesnb {current_version()}\n{json.dumps(tree)}".encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    content = {"version": current_version(), "sha256": digest.hexdigest(), "model": tree}
    return to_bytes(arrays, {"bayesnb": json.dumps(content)})


def places(tree: Any, found: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """Every (container, key) of a tree."""
    found = [] if found is None else found
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found.append((tree, key))
        places(value, found)
    return found


def forged(content: bytes, rng: np.random.Generator) -> bytes:
    """A file in which one to three things were changed."""
    tree, arrays = parts(content)
    arrays = {name: array.copy() for name, array in arrays.items()}
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.6 or not arrays:
            _change_tree(tree, rng)
        else:
            _change_array(arrays, rng)
    text = json.dumps(tree)
    return signed(tree, arrays | {name: array for name, array in TENSORS.items() if f'"{name}"' in text})


def pick(options: Any, rng: np.random.Generator) -> Any:
    return options[int(rng.integers(len(options)))]


def _change_tree(tree: Any, rng: np.random.Generator) -> None:
    every = places(tree)
    container, key = pick(every, rng)
    value = container[key]
    match int(rng.integers(10)):
        case 0:
            container[key] = copy.deepcopy(pick(HOSTILE, rng))
        case 1 if isinstance(container, dict) and isinstance(key, str):
            container[f"more{key}"] = container.pop(key)
        case 2:  # what stands elsewhere
            other, place = pick(every, rng)
            container[key] = copy.deepcopy(other[place])
        case 3:  # two fields of one thing
            kin = list(container) if isinstance(container, dict) else list(range(len(container)))
            other = pick(kin, rng)
            container[key], container[other] = container[other], container[key]
        case 4 | 5:
            lists = [c[k] for c, k in every if isinstance(c[k], list) and c[k]]
            if lists:
                _change_list(pick(lists, rng), rng)
        case 6 | 7:
            numbers = [(c, k) for c, k in every if isinstance(c[k], int | float)]
            if numbers:
                c, k = pick(numbers, rng)
                c[k] = pick([c[k] + 1, c[k] - 1, -c[k], c[k] * 10**6, 0, 1, not c[k], float(c[k]), str(c[k])], rng)
        case 8:
            tagged = [c for c, k in every if k == "type"]
            pick(tagged, rng)["type"] = pick(CLASSES + DATA, rng)
        case _:
            if isinstance(value, str):
                container[key] = pick([value + "x", "ignore", "level", "error", "nan", "0", "1", None], rng)
            else:
                container[key] = [copy.deepcopy(value)]


def _change_list(values: list[Any], rng: np.random.Generator) -> None:
    at = int(rng.integers(len(values)))
    match int(rng.integers(6)):
        case 0:
            del values[at]
        case 1:
            values.append(copy.deepcopy(values[at]))
        case 2:
            values.reverse()
        case 3:
            values[at] = copy.deepcopy(values[0])
        case 4:
            values *= 20
        case _:
            values.insert(at, copy.deepcopy(pick(HOSTILE, rng)))


def _change_array(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    name = pick(sorted(arrays), rng)
    array = arrays[name]
    if rng.random() < 0.5 and array.size and array.dtype.kind == "f":
        array = np.atleast_1d(array).copy()
        at = tuple(int(rng.integers(n)) for n in array.shape)
        array[at] = pick(
            [-1.0, -1e-3, np.nan, np.inf, -np.inf, 1e308, 1e160, array[at] + 1, 100.0, 0.0, -array[at]], rng
        )
        arrays[name] = array.reshape(arrays[name].shape)
        return
    if rng.random() < 0.2:
        other = pick(sorted(arrays), rng)
        arrays[name], arrays[other] = arrays[other], arrays[name]
        return
    choices = [
        array.astype(np.float32),
        array.astype(np.int64) if np.isfinite(array).all() else array,
        array.astype(bool),
        array.ravel(),
        array.T,
        array.reshape(1, *array.shape),
        np.full_like(array, -1),
        np.full_like(array, 1e308) if array.dtype.kind == "f" else array,
        array * 3,
        array / 2,
        array[..., :0] if array.ndim else array,
        array[..., ::-1] if array.ndim else -1 * array,
        array[::-1] if array.ndim else array + 1,
        array[1:] if array.ndim else array,
        np.concatenate([array, array]) if array.ndim else array,
        np.full(array.shape, np.nan),
        np.zeros((3, 0, 2)),
        np.zeros((0, 10**7)),
        np.zeros((10**7, 0)),
    ]
    arrays[name] = np.ascontiguousarray(pick(choices, rng)).reshape(-1) if rng.random() < 0.05 else pick(choices, rng)
    arrays[name] = np.array(arrays[name], order="C")


# -- files that choose how long they take -----------------------------------------------------------------------------

MODULUS = 2**61 - 1
WRAPPERS = ["WeightedNB", "FeatureAveragedNB", "NaiveBayesMixture"]


# -- judging -------------------------------------------------------------------------------------------------------


def complaints(nb: Any) -> list[str]:
    """Internal contradictions of a loaded classifier, as a list of messages."""
    name = type(nb).__name__
    found: list[str] = []
    if name == "NaiveBayesMixture":
        found += complaints(nb.estimator_)
        if nb.weights_.shape != (len(nb.estimator_.classes_),) or not np.isclose(nb.weights_.sum(), 1):
            found.append("weights")
    encoding = (nb.estimator_ if name == "NaiveBayesMixture" else nb).encoding_
    classes, n = list(encoding.classes.values), nb.n_features_in_
    if not classes or len({*classes}) < len(classes):
        found.append("classes")
    own = [getattr(block, "base", block) for block in encoding.blocks]
    # Beside a network its columns may be once more, as densities or tables given the class alone.
    alone = [j for columns, block in zip(own, encoding.blocks, strict=True) if block is columns for j in columns.index]
    has_network = any(block is not columns for columns, block in zip(own, encoding.blocks, strict=True))
    if {j for columns in own for j in columns.index} != set(range(n)) or (
        not has_network and len(set(alone)) < len(alone)
    ):
        found.append("columns")
    if any(len(columns.names) != len(columns.index) or columns.n_features != n for columns in own):
        found.append("names")
    for columns in own:
        for levels in getattr(columns, "levels", ()):
            if len({*levels.values}) < len(levels.values):
                found.append("levels")
        for edges in (*getattr(columns, "edges", ()), *getattr(columns, "cuts", ())):
            if edges is not None and not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
                found.append("edges")
    if name != "NaiveBayesMixture":
        found += _complaints_of_statistics(nb, len(classes))
    return found or _complaints_of_answers(nb, own, n, len(classes))


def _complaints_of_statistics(nb: Any, n_classes: int) -> list[str]:
    weight, found = nb.statistics_.class_count, []
    if weight.shape != (n_classes,) or not (np.isfinite(weight) & (weight >= 0)).all():
        return ["class_count"]
    if len(nb.statistics_.blocks) != len(nb.encoding_.blocks) or not np.isfinite(nb.statistics_.log_base):
        return ["blocks"]
    if (cells := nb.fitted_.cells) is not None:
        shape = (len(cells.classes.values), len(cells.edges), cells.edges.shape[1] + 2)
        if cells.count.shape != shape or not (cells.count >= 0).all() or not (cells.edges[:, 1:] > -np.inf).all():
            found.append("cells of numbers")
    for columns, block in zip(nb.encoding_.blocks, nb.statistics_.blocks, strict=True):
        kind = type(columns).__name__
        sizes = _sizes(columns, kind)
        for field in vars(block):
            values = getattr(block, field)
            if field == "tail":  # has an axis of counts, too
                if (np.diff(values, prepend=block.count[..., None], axis=-1) > 1e-9).any():
                    found.append("tail")
                values = values.sum(axis=-1)
                if not np.allclose(values, block.total):
                    found.append("total")
            if values.shape != (n_classes, sum(sizes)) or values.dtype != np.float64 or not np.isfinite(values).all():
                return [f"{field} of {kind}"]
            if field != "mean" and (values < 0).any():
                found.append(f"negative {field}")
        if kind != "CountColumns":
            for first, last in pairwise(np.cumsum([0, *sizes])):
                if (block.count[:, first:last].sum(axis=1) > weight * (1 + 1e-5) + 1e-5).any():
                    found.append(f"cells of {kind}")
        if (block.count[weight == 0] > 1e-5).any():
            found.append("cells of a class without rows")
    return found


def _sizes(columns: Any, kind: str) -> list[int]:
    if kind in ("RealColumns", "CountColumns"):
        return [1] * len(columns.index)
    if kind == "BinaryColumns":
        return [2] * len(columns.index)
    if kind == "CellColumns":
        return [1 if edges is None else len(edges) + 1 for edges in columns.edges]
    base = getattr(columns, "base", columns)
    own = [len(levels.values) + (base.unknown == "level") for levels in base.levels]
    if kind in ("LevelColumns", "RootColumns", "MarginColumns"):
        return own
    given = [n + (kind == "ContextColumns") for n in own]  # a missing parent is a value
    return [int(own[child] * np.prod([given[p] for p in parents])) for child, *parents in columns.nodes]


def _complaints_of_answers(nb: Any, own: list[Any], n: int, n_classes: int) -> list[str]:
    row: list[Any] = [1.0] * n
    for columns in own:
        cuts = getattr(columns, "cuts", ()) or [None] * n
        for j, levels, cut in zip(columns.index, getattr(columns, "levels", ()), cuts, strict=False):
            if cut is None:
                row[j] = levels.values[0] if levels.values else None
    names = getattr(nb, "feature_names_in_", None)
    discrete = any(hasattr(columns, "levels") for columns in own)
    X = pd.DataFrame([row, row], columns=names, dtype=object if discrete else float)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        proba = nb.predict_proba(X if names is not None else X.to_numpy())
    if proba.shape != (2, n_classes) or not np.isclose(proba.sum(axis=1), 1)[~np.isnan(proba).any(axis=1)].all():
        return ["probabilities"]
    return []
