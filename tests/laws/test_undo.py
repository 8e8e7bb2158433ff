"""Law 13: `forget` after `partial_fit` gives the model of before, also if the batch brought levels and classes."""

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesnb as bnb
from tests.persistence.models import FIXTURES

CLASSES = ("ash", "elm", "oak")
NEW_CLASS = "yew"
RNG = np.random.default_rng(0)
LABEL = np.array([CLASSES[i] for i in RNG.integers(0, 3, 60)])
KNOWN = ("u", "v", "w")
NEW = ("new", "newer", "u ")
FILE = "model.bnb"

level = st.sampled_from((*KNOWN, *NEW, None))
present = st.sampled_from([0.0, 1.0, np.nan])
number = st.sampled_from([-1.25, 0.1, 0.7, 2.6, np.nan])
count = st.integers(0, 5).map(float)


def levels(n: int) -> np.ndarray:
    cells = np.where(
        RNG.random((60, n)) < 0.6, np.array(["v", "u", "w"])[np.searchsorted(CLASSES, LABEL)][:, None], "u"
    )
    return np.where(RNG.random((60, n)) < 0.1, None, cells.astype(object))


@dataclass(frozen=True)
class Kind:
    """An estimator, the rows of its fit, and cells of further rows, one strategy a column."""

    make: Callable[[], Any]
    X: Any
    cells: tuple[st.SearchStrategy, ...]

    def rows(self, max_rows: int = 4) -> st.SearchStrategy[tuple[Any, np.ndarray, np.ndarray]]:
        row = st.tuples(st.tuples(*self.cells), st.sampled_from(CLASSES), st.sampled_from([0.1, 0.7, 1.0, 3.0]))
        return st.lists(row, min_size=1, max_size=max_rows).map(self.arrays)

    def arrays(self, rows: list[Any]) -> tuple[Any, np.ndarray, np.ndarray]:
        cells, label, weight = zip(*rows, strict=True)
        table = pd.DataFrame(
            {name: np.array(c, object) for name, c in zip("abcd", zip(*cells, strict=True), strict=False)}
        )
        if isinstance(self.X, np.ndarray):
            table = table.to_numpy(self.X.dtype)
        else:
            table = table.astype({name: self.X[name].dtype for name in table})
        return table, np.array(label), np.array(weight)


ONLY_LEVELS = levels(3), (level,) * 3
NUMBERS = RNG.normal(size=(60, 3)) + np.searchsorted(CLASSES, LABEL)[:, None]
MIXED = pd.DataFrame({"a": levels(1)[:, 0], "b": levels(1)[:, 0], "c": NUMBERS[:, 0], "d": np.nan})
OF_MIXED = MIXED, (level, level, number, number)
PEAKS = RNG.choice([-1.0, 1.0], 60) * np.where(LABEL == "ash", 3.0, 0.5) + 0.1 * RNG.normal(size=60)
SKEWED = MIXED[["a", "b"]].assign(c=PEAKS)  # two peaks, so that a binned density is chosen
COUNTS = RNG.poisson(2.0, (60, 3)).astype(float)
NETWORK = {1: [0], 2: [0, 1]}

KINDS = {
    "categorical": Kind(lambda: bnb.CategoricalNB(alpha=0.7), *ONLY_LEVELS),
    "reserved level": Kind(
        lambda: bnb.CategoricalNB(handle_unknown="level", categories={0: ["u", "v"], 1: "auto", 2: "auto"}),
        *ONLY_LEVELS,
    ),
    "named alpha": Kind(
        lambda: bnb.CategoricalNB(alpha={"0": {"new": 2.0, "u": 0.5}, "1": 2.0}, missing_values="u "), *ONLY_LEVELS
    ),
    "integers": Kind(
        lambda: bnb.CategoricalNB(), RNG.integers(0, 3, (60, 3)), (st.sampled_from([0, 1, 2, 7, -30]),) * 3
    ),
    "bernoulli": Kind(lambda: bnb.BernoulliNB(), (NUMBERS > 0).astype(float), (present,) * 3),
    "multinomial": Kind(lambda: bnb.MultinomialNB(), COUNTS, (count,) * 3),
    "gaussian": Kind(lambda: bnb.GaussianNB(), NUMBERS, (number,) * 3),
    "poisson": Kind(lambda: bnb.PoissonNB(), COUNTS, (count,) * 3),
    "negative binomial": Kind(lambda: bnb.NegativeBinomialNB(), COUNTS, (count,) * 3),
    "exponential": Kind(lambda: bnb.ExponentialNB(), abs(NUMBERS), (count,) * 3),
    "binned": Kind(lambda: bnb.BinnedNB(cells=4), NUMBERS * [[1.0, np.nan, 1.0]], (number,) * 3),
    "given edges": Kind(lambda: bnb.BinnedNB(edges=[[0.0, 1.0]] * 3), NUMBERS * [[1.0, np.nan, 1.0]], (number,) * 3),
    "mixed": Kind(lambda: bnb.MixedNB(binned="d", gaussian="c"), *OF_MIXED),
    "mixed auto": Kind(lambda: bnb.MixedNB(), *OF_MIXED),
    "TAN": Kind(lambda: bnb.TAN(), *ONLY_LEVELS),
    "TAN by evidence": Kind(lambda: bnb.TAN("evidence"), *ONLY_LEVELS),
    "TAN of numbers": Kind(lambda: bnb.TAN(numbers="binned"), *OF_MIXED),
    "TAN of binned numbers": Kind(lambda: bnb.TAN(numbers="binned"), SKEWED, (level, level, number)),
    "SPODE": Kind(lambda: bnb.SPODE(0), *ONLY_LEVELS),
    "AODE": Kind(lambda: bnb.AODE(), *ONLY_LEVELS),
    "AODE of numbers": Kind(lambda: bnb.AODE(numbers="binned"), *OF_MIXED),
    "KDB": Kind(lambda: bnb.KDB(2), *ONLY_LEVELS),
    "network": Kind(lambda: bnb.NetworkNB(NETWORK), *ONLY_LEVELS),
    "network of contexts": Kind(lambda: bnb.NetworkNB(NETWORK, tables="context", handle_unknown="level"), *ONLY_LEVELS),
    "averaged features": Kind(lambda: bnb.FeatureAveragedNB(bnb.MixedNB(numbers="gaussian")), *OF_MIXED),
    "averaged trees": Kind(lambda: bnb.TreeAveragedNB(), *ONLY_LEVELS),
    "weighted": Kind(lambda: bnb.WeightedNB(bnb.CategoricalNB()), *ONLY_LEVELS),
    "weighted TAN": Kind(lambda: bnb.WeightedNB(bnb.TAN()), *ONLY_LEVELS),
    "weighted KDB": Kind(lambda: bnb.WeightedNB(), *OF_MIXED),
}


def predictions(nb: Any, X: Any) -> list[np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return [nb.predict_proba(X), nb.predict_joint_log_proba(X)]


def names(nb: Any) -> list[Any]:
    encoding = nb.fitted_.encoding
    bases = [columns.base for columns in encoding.blocks]
    edges = [[None if e is None else e.tolist() for e in getattr(base, "edges", ())] for base in bases]
    return [encoding.classes.values, [[known.values for known in getattr(base, "levels", ())] for base in bases], edges]


def saved(nb: Any, folder: Any) -> Any:
    bnb.save(nb, folder / FILE)
    return bnb.load(folder / FILE)


@pytest.mark.slow("structures and weights compile kernels of their own", but=("categorical", "binned", "network"))
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_forget_after_partial_fit_gives_the_model_of_before(kind, data, tmp_path_factory):
    case, folder = KINDS[kind], tmp_path_factory.getbasetemp()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        nb = case.make().fit(case.X, LABEL)
        for X, y, weight in data.draw(st.lists(case.rows(), max_size=2), label="earlier batches"):
            nb.partial_fit(X, y, sample_weight=weight)
        if data.draw(st.booleans(), label="decay"):
            nb.decay(0.3)
        X, y, weight = data.draw(case.rows(), label="batch")
        is_new = data.draw(st.booleans(), label="new class")
        before, later = copy.deepcopy(nb), nb
        if is_new:
            before.partial_fit(X[:0], y[:0], classes=[NEW_CLASS])
            y = y.astype(object)
            y[0] = NEW_CLASS
        later.partial_fit(X, y, classes=[NEW_CLASS] if is_new else None, sample_weight=weight)
        if data.draw(st.booleans(), label="save and load"):
            later = saved(later, folder)
        later.forget(X, y, sample_weight=weight)
    assert names(later) == names(before)
    for rows in (case.X, X):
        for found, expected in zip(predictions(later, rows), predictions(before, rows), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    before, later = (saved(model, folder) for model in (before, later))
    assert names(later) == names(before)


def junk_levels() -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(1)
    y = np.where(rng.random(2_000) < 0.2, "yes", "no")
    country = np.where(rng.random(2_000) < np.where(y == "yes", 0.5, 0.3), "fr", rng.choice(["de", "it"], 2_000))
    junk = np.array([f"junk{i}" for i in range(500)], object)[:, None]
    return country[:, None], y, junk, rng.choice(["no", "yes"], 500, p=[0.2, 0.8])


@pytest.mark.parametrize("file", [False, True], ids=["in memory", "through a file"])
def test_five_hundred_levels_that_leave(file, tmp_path):
    X, y, junk, label = junk_levels()
    nb = bnb.CategoricalNB().fit(X, y)
    before = nb.predict_proba([["fr"]])
    nb.partial_fit(junk, label)
    assert abs(nb.predict_proba([["fr"]]) - before).max() > 0.01
    nb = saved(nb, tmp_path) if file else nb
    nb.forget(junk, label)
    np.testing.assert_allclose(nb.predict_proba([["fr"]]), before, rtol=1e-12)
    assert nb.categories_[0].tolist() == ["de", "fr", "it"]
    with pytest.raises(ValueError, match=r"'junk0' at row 0. Rows with these levels were never counted"):
        nb.forget(junk, label)


X, Y = np.array([["a"], ["b"], ["a"], ["c"]], object), np.array(["x", "y", "y", "x"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: bnb.CategoricalNB().fit(X, Y),
        lambda: bnb.fit_stream(bnb.CategoricalNB(), [(X[:2], Y[:2]), (X[2:], Y[2:])], progress=False),
        lambda: bnb.CategoricalNB(categories=[["a", "b", "c"]]).partial_fit(X, Y, classes=["x", "y"]),
        lambda: bnb.CategoricalNB(alpha={0: dict.fromkeys("abc", 1.0)}).partial_fit(X, Y, classes=["x", "y"]),
        lambda: bnb.fit_em(bnb.CategoricalNB(), X, Y).estimator,
    ],
    ids=["fit", "stream", "categories", "alpha", "EM"],
)
def test_levels_that_stay_without_rows(make, tmp_path):
    nb = saved(make(), tmp_path).forget(X, Y)
    assert nb.categories_[0].tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(nb.predict_proba(X), 0.5)
    if nb.fitted_.encoding.blocks[0].declared != (True,):
        nb = saved(nb.partial_fit([["d"]], ["x"]), tmp_path).forget([["d"]], ["x"])
    assert nb.categories_[0].tolist() == ["a", "b", "c"]


def test_batches_may_be_forgotten_in_any_order(tmp_path):
    nb = bnb.CategoricalNB()
    for i in range(4):
        nb = saved(nb.partial_fit(X[i : i + 1], Y[i : i + 1], classes=["x", "y"]), tmp_path)
    assert nb.forget(X[:1], Y[:1]).categories_[0].tolist() == ["a", "b", "c"]  # another row has "a"
    assert nb.forget(X[1:2], Y[1:2]).categories_[0].tolist() == ["a", "c"]
    assert nb.decay(1e-9).categories_[0].tolist() == ["a", "c"]
    assert nb.forget(X[2:3], Y[2:3], sample_weight=1e-9).categories_[0].tolist() == ["c"]
    expected = bnb.CategoricalNB().partial_fit(X[3:], Y[3:], classes=["x", "y"], sample_weight=1e-9)
    np.testing.assert_allclose(nb.predict_proba([["c"]]), expected.predict_proba([["c"]]), rtol=1e-12)


def test_a_level_beside_missing_parents_is_in_no_table():
    """Its row is not forgotten by forgetting another one with the level; the parents' tables cannot tell."""
    known = np.array([["u", "v"], ["w", "v"], ["u", "z"]] * 4, object)
    nb = bnb.NetworkNB({1: 0}).fit(known, list("xyxyxyxyxyxy"))
    hole, whole, label = np.array([[None, "new"]], object), np.array([["u", "new"]], object), ["x"]
    nb.partial_fit(hole, label)
    before = nb.predict_proba(known)
    nb.partial_fit(whole, label).forget(whole, label)
    np.testing.assert_allclose(nb.predict_proba(known), before, rtol=1e-12)
    nb = bnb.NetworkNB({1: 0}).fit(known, list("xyxyxyxyxyxy"))
    before = nb.predict_proba(known)
    np.testing.assert_allclose(nb.partial_fit(hole, label).forget(hole, label).predict_proba(known), before, rtol=1e-12)


def test_edges_of_rows_leave_with_the_last_number():
    numbers = np.array([[1.0], [2.0], [3.0], [4.0]])
    nb = bnb.BinnedNB(cells=2).fit(numbers * np.nan, Y)
    nb.partial_fit(numbers, Y).forget(numbers[1:], Y[1:])
    assert nb.edges_["0"].tolist() == [2.5]
    nb.forget(numbers[:1], Y[:1]).partial_fit(numbers + 10, Y)
    assert nb.edges_["0"].tolist() == [12.5]
    given = bnb.BinnedNB(edges=[[2.0]]).fit(numbers, Y).forget(numbers, Y)
    assert given.edges_["0"].tolist() == [2.0]


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("model-*-*categorical*.safetensors")), ids=lambda path: path.stem)
def test_all_levels_of_older_files_stay(path):
    nb = bnb.load(path)
    before = names(nb)
    row = np.array([["new"] * nb.n_features_in_], object)
    assert names(nb.partial_fit(row, nb.classes_[:1]).forget(row, nb.classes_[:1])) == before
