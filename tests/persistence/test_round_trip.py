"""Saving and loading returns the same model, bit by bit."""

import hashlib
import json

import jax
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from safetensors import safe_open
from safetensors.numpy import save_file

import bayesnb as bnb
from bayesnb import persistence
from tests.persistence.models import FIXTURES, LEVELS, MODELS, fitted
from tests.raises import refused
from tests.strategies import thorough, variants

#: A file of a classifier that was removed.
POLYA = FIXTURES / "model-1-Polya.safetensors"


def same_bits(a, b) -> None:
    one, other = jax.tree.leaves(a), jax.tree.leaves(b)
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
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


@pytest.mark.parametrize("concentration", [2, np.float32(2.0), [2.0, 1.0], ([2.0, 1.0], [3, 1])])
def test_a_prior_whose_fields_are_numbers_or_lists(concentration, tmp_path):
    nb = bnb.PoissonNB(prior=bnb.GammaPoisson(concentration, 1.0)).fit([[0, 3], [2, 1]], ["a", "b"])
    bnb.save(nb, tmp_path / "model")
    loaded = bnb.load(tmp_path / "model")
    assert repr(loaded) == repr(nb)
    same_bits(loaded.posterior_, nb.posterior_)


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("name", ["categorical", "Gaussian", "mixed", "network", "AODE", "TAN", "trees"])
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


@variants(
    "labels",
    [
        ["a", "é\ud800b"[:2]],
        [3, -(10**30)],
        [1.0, 2.0],
        [True, False],
        pd.to_datetime(["2020-01-02 03:04:05.123456789", "1800-01-01"], format="ISO8601"),
        pd.to_datetime(["2020-01-02", "2021-06-01"]).tz_localize("Europe/Berlin"),
        pd.to_datetime(["2020-01-02", "2021-06-01"]).tz_localize("UTC"),
        pd.to_datetime(["2020-01-02", "2021-06-01"]).tz_localize("-03:30"),
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


@variants("labels", [[(1, 2), (3,)], [b"a", b"b"], [frozenset("a"), frozenset("b")]])
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
    with pytest.raises(TypeError, match="save takes a classifier of bayesnb"):
        bnb.save(GaussianNB().fit([[0.0], [1.0]], [0, 1]), tmp_path / "model")
    nb = bnb.CategoricalNB(missing_values={"?"}).fit([["a"], ["b"]], [0, 1])
    refused(r"CategoricalNB\.missing_values is \{'\?'\}, a set", bnb.save, nb, tmp_path / "model", error=TypeError)
    assert not list(tmp_path.iterdir())


def test_it_can_be_looked_into_without_this_library(tmp_path):

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


@pytest.mark.slow("other variants compile kernels of their own", but="model-1-categorical")
@pytest.mark.parametrize("path", sorted({*FIXTURES.glob("model-*.safetensors")} - {POLYA}), ids=lambda path: path.stem)
def test_a_file_of_any_version_stays_readable(path):
    """`model-<version>-<name>`: the rows are those of `MODELS`, and what was said of them was written beside."""
    X = MODELS[path.stem.split("-", 2)[2].replace("_", " ")][1]
    expected = json.loads(path.with_suffix(".json").read_text())
    loaded = bnb.load(path)
    proba = np.array(expected["predict_proba"], float)
    np.testing.assert_allclose(loaded.predict_proba(X), proba, rtol=1e-12)
    if "classes" in expected:
        assert loaded.classes_.tolist() == expected["classes"]
    if "log_evidence" in expected:
        assert loaded.log_evidence_ == pytest.approx(expected["log_evidence"], rel=1e-12)


def test_a_file_of_a_classifier_that_was_removed_says_what_to_do():
    """`POLYA` was written when there was a `PolyaNB`."""
    assert not hasattr(bnb, "PolyaNB")
    message = (
        r"Polya\.safetensors: the file holds a PolyaNB, a classifier that was removed\. "
        r"Development versions of bayesnb 0\.1\.0 .* read the file\. Fit WeightedNB\(MultinomialNB\(\)\) instead"
    )
    refused(message, bnb.load, POLYA, error=bnb.CorruptModelError)


def test_a_classifier_of_the_users_own_may_have_the_name_of_one_that_was_removed(tmp_path):
    class PolyaNB(bnb.MultinomialNB):
        """A classifier of the user's own."""

    nb = PolyaNB().fit(LEVELS, LEVELS[:, 0])
    bnb.save(nb, tmp_path / "model")
    assert_array_equal(bnb.load(tmp_path / "model", [PolyaNB]).predict(LEVELS), nb.predict(LEVELS))


def rewritten(path, change):
    """A file with a right checksum, of which the tree of the model was changed."""
    with safe_open(path, "np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        model = json.loads(file.metadata()["bayesnb"])["model"]
    change(model)
    version = persistence.current_version()
    digest = hashlib.sha256(f"bayesnb {version}\n{json.dumps(model)}".encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode() + np.ascontiguousarray(array).tobytes())
    content = {"version": version, "sha256": digest.hexdigest(), "model": model}
    save_file(arrays, path, {"bayesnb": json.dumps(content)})


def test_a_field_that_was_added_with_a_default_is_not_asked_of_older_files(tmp_path):
    X, y = np.arange(6.0).reshape(-1, 1), [0, 1] * 3
    nb = bnb.GaussianNB(prior=bnb.families.EmpiricalNormal("within")).fit(X, y)
    bnb.save(nb, tmp_path / "model")
    rewritten(tmp_path / "model", lambda model: model["parameters"]["prior"].pop("kappa"))
    same_bits(bnb.load(tmp_path / "model").posterior_, nb.posterior_)
    rewritten(tmp_path / "model", lambda model: model["parameters"]["prior"].pop("variance"))
    with pytest.raises(bnb.CorruptModelError, match="EmpiricalNormal in the file has the wrong fields"):
        bnb.load(tmp_path / "model")


def test_what_was_renamed_is_read_by_its_former_name(tmp_path, monkeypatch):
    nb = bnb.GaussianNB().fit(np.arange(6.0).reshape(-1, 1), [0, 1] * 3)
    bnb.save(nb, tmp_path / "model")

    def former(model):
        model["parameters"]["variance_prior"] = model["parameters"].pop("prior")

    def migrate(model):
        own = {"prior" if k == "variance_prior" else k: v for k, v in model["parameters"].items()}
        return model | {"parameters": own}

    rewritten(tmp_path / "model", former)
    with pytest.raises(bnb.CorruptModelError):
        bnb.load(tmp_path / "model")
    now = persistence.current_version()
    monkeypatch.setattr(persistence, "MIGRATIONS", (*persistence.MIGRATIONS, migrate))
    same_bits(bnb.load(tmp_path / "model").posterior_, nb.posterior_)
    bnb.save(nb, tmp_path / "newer")
    monkeypatch.undo()
    with pytest.raises(bnb.CorruptModelError, match=f"the file has version {now + 1}; .* reads versions 1 to {now}"):
        bnb.load(tmp_path / "newer")
