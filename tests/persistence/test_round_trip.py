"""What is loaded is what was saved, to the bit."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import bayesnb as bnb
from tests.persistence.models import LEVELS, MODELS, fitted
from tests.strategies import KINDS, problems, thorough

FIXTURES = Path(__file__).parents[1] / "fixtures"


def same_bits(a, b) -> None:
    one, other = jax.tree.leaves(a), jax.tree.leaves(b)
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("name", thorough(MODELS, list(MODELS)[::3]))
def test_it_predicts_the_same(name, tmp_path):
    nb, X = fitted(name)
    path = tmp_path / "model.safetensors"
    bnb.save(nb, path)
    loaded = bnb.load(path)
    assert type(loaded) is type(nb)
    assert repr(loaded) == repr(nb)
    assert_array_equal(loaded.predict_proba(X), nb.predict_proba(X))
    assert_array_equal(loaded.predict(X), nb.predict(X))
    if hasattr(nb, "statistics_"):
        same_bits(loaded.statistics_, nb.statistics_)
        assert loaded.classes_.dtype == nb.classes_.dtype
    again = tmp_path / "again.safetensors"
    bnb.save(loaded, again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", ["categorical", "Gaussian", "mixed", "network", "AODE", "TAN"])
def test_it_goes_on_as_if_nothing_had_happened(name, tmp_path):
    nb, X = fitted(name)
    y = nb.predict(X)
    bnb.save(nb, tmp_path / "model")
    loaded = bnb.load(tmp_path / "model").partial_fit(X, y)
    nb.partial_fit(X, y)
    same_bits(loaded.statistics_, nb.statistics_)
    loaded.forget(X, y)
    nb.forget(X, y)
    same_bits(loaded.statistics_, nb.statistics_)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5)
@given(data=st.data())
def test_any_small_problem(kind, data, tmp_path_factory):
    problem = data.draw(problems(kind))
    nb, path = problem.fit(), tmp_path_factory.mktemp("any") / "model"
    bnb.save(nb, path)
    loaded = bnb.load(path)
    same_bits(loaded.statistics_, nb.statistics_)
    same_bits(loaded.prior_, nb.prior_)
    assert loaded.encoding_.classes.values == nb.encoding_.classes.values
    for mine, theirs in zip(loaded.encoding_.blocks, nb.encoding_.blocks, strict=True):
        assert list(mine.index) == list(theirs.index)
        assert list(mine.names) == list(theirs.names)
        levels = [getattr(columns, "levels", ()) for columns in (mine, theirs)]
        for a, b in zip(*levels, strict=True):
            assert a.values == b.values
            assert list(map(type, a.values)) == list(map(type, b.values))


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "é\ud800b"[:2]],
        [3, -(10**30)],
        [1.0, 2.0],
        [True, False],
        pd.to_datetime(["2020-01-02 03:04:05.123456789", "1800-01-01"], format="ISO8601"),
        pd.to_datetime(["2020-01-02", "2021-06-01"]).tz_localize("Europe/Berlin"),
        np.array(["2020-01-02", "2021-06-01"], "datetime64[s]"),
    ],
)
def test_labels_and_levels_of_these_types(labels, tmp_path):
    y = pd.Series(list(labels) * 5, dtype=object) if isinstance(labels, list) else pd.Series(np.tile(labels, 5))
    X = pd.DataFrame({"a": y, "b": range(10)})
    nb = bnb.CategoricalNB().fit(X, y)
    bnb.save(nb, tmp_path / "model")
    loaded = bnb.load(tmp_path / "model")
    assert loaded.encoding_.classes.values == nb.encoding_.classes.values
    assert loaded.predict(X).tolist() == nb.predict(X).tolist()


@pytest.mark.parametrize("labels", [[(1, 2), (3,)], [b"a", b"b"], [frozenset("a"), frozenset("b")]])
def test_others_are_refused_and_the_old_file_stays(labels, tmp_path):
    path = tmp_path / "model"
    bnb.save(bnb.CategoricalNB().fit(LEVELS, LEVELS[:, 0]), path)
    before = path.read_bytes()
    y = np.empty(40, object)
    y[:] = labels * 20
    with pytest.raises(TypeError, match=r"CategoricalNB\.encoding_\.classes has the label"):
        bnb.save(bnb.CategoricalNB().fit(LEVELS, y), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_what_cannot_be_saved(tmp_path):
    from sklearn.exceptions import NotFittedError
    from sklearn.naive_bayes import GaussianNB

    with pytest.raises(NotFittedError):
        bnb.save(bnb.GaussianNB(), tmp_path / "model")
    with pytest.raises(TypeError, match="save takes a fitted classifier of bayesnb"):
        bnb.save(GaussianNB().fit([[0.0], [1.0]], [0, 1]), tmp_path / "model")
    nb = bnb.CategoricalNB(missing_values={"?"}).fit([["a"], ["b"]], [0, 1])
    with pytest.raises(TypeError, match=r"CategoricalNB\.missing_values is \{'\?'\}, a set"):
        bnb.save(nb, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_it_can_be_looked_into_without_this_library(tmp_path):
    from safetensors import safe_open

    nb, _ = fitted("Gaussian")
    bnb.save(nb, tmp_path / "model")
    with safe_open(tmp_path / "model", "numpy") as file:
        metadata = file.metadata()
        tree = json.loads(metadata["bayesnb"])["model"]
        assert tree["type"] == "GaussianNB"
        classes = tree["fitted"]["encoding_"]["classes"]["values"]["values"]
        assert classes == ["ash", "elm", "oak"]
        count = tree["fitted"]["statistics_"]["class_count"]["name"]
        assert_array_equal(file.get_tensor(count), nb.class_count_)


@pytest.mark.parametrize("name", ["mixed", "network"])
def test_a_file_of_the_first_version_stays_readable(name):
    """Written by version 0.1.0 of the library; the probabilities were written beside it."""
    X = MODELS[name][1]
    expected = json.loads((FIXTURES / f"model-1-{name}.json").read_text())
    loaded = bnb.load(FIXTURES / f"model-1-{name}.safetensors")
    np.testing.assert_allclose(loaded.predict_proba(X), expected["predict_proba"], rtol=1e-12)
    assert loaded.classes_.tolist() == expected["classes"]
    assert loaded.log_evidence_ == pytest.approx(expected["log_evidence"], rel=1e-12)
