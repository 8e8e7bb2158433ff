"""Cells of numbers: a brute-force count, laws of merging and forgetting, samples of many rows, and bad counts."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesnb as bnb
from bayesnb.encoding import Levels, to_table
from bayesnb.fitted import counting
from bayesnb.fitted.number_cells import NumberCells
from tests.persistence.models import FIXTURES
from tests.raises import refused

VALUES = st.sampled_from(
    [-np.finfo(float).max, -3.0, 0.0, 5e-324, 1e-300, 0.1, 0.2, float(np.nextafter(0.2, 1)), 7.0, 1e308, np.nan]
)
CLASSES = Levels(("a", "b"))


@st.composite
def rows(draw, most=60):
    n = draw(st.integers(1, most))
    X = draw(st.lists(st.tuples(VALUES, VALUES), min_size=n, max_size=n))
    label = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    weight = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n, max_size=n))
    return np.array(X), np.array(label), np.array(weight)


def count(X, label=None, weight=None, known=None):
    label = np.zeros(len(X), np.int32) if label is None else label
    weight = np.ones(len(X)) if weight is None else weight
    return NumberCells.from_rows(to_table(X, "test"), range(X.shape[1]), CLASSES, label, weight, known)


def assert_same(a, b):
    assert (a.classes.values, a.every) == (b.classes.values, b.every)
    np.testing.assert_array_equal(a.edges, b.edges)
    np.testing.assert_allclose(a.count, b.count, rtol=1e-12, atol=1e-12)


# -- counts --------------------------------------------------------------------------------------------


@given(data=rows())
def test_each_number_is_counted_between_its_edges(data):
    X, label, weight = data
    found = count(X, label, weight)
    for f, edges in enumerate(found.edges):
        assert (np.diff(edges[edges < np.inf]) > 0).all()
        ends = np.concatenate([[-np.inf], edges, [np.inf]])
        for c in range(2):
            w, x = weight[label == c], X[label == c, f]
            expected = [w[(x > low) & (x <= high)].sum() for low, high in itertools.pairwise(ends)]
            np.testing.assert_allclose(found.count[c, f], [*expected, w[np.isnan(x)].sum()])


@pytest.mark.parametrize("value", [0.0, 5.0, -0.1, 1e-300, 1e300])
def test_a_frequent_value_is_alone_in_its_cell(value):
    """Also if its neighbours are the next numbers of float64; and a constant column has cells below and above."""
    rng = np.random.default_rng(0)
    below, above = np.nextafter(value, -np.inf) - 1e-307 * (value == 0), np.nextafter(value, np.inf)
    X = rng.permutation(np.concatenate([np.full(200, value), rng.normal(size=700), np.full(50, above)]))[:, None]
    for found, n in ((count(X), 200), (count(np.full((9, 1), value)), 9)):
        cell = np.searchsorted(found.edges[0], value)
        assert found.count[0, 0, cell] == n
        for other in (below, above):
            assert count(np.array([[value], [other]]), known=found).count[0, 0, cell] == 1


def test_names_tell_which_ends_are_in_a_cell():
    found = count(np.repeat([0.0, 1.0, 2.0, 3.5], [10, 4, 3, 3])[:, None])
    assert found.describe(0)[1] == ["(-inf, 0)", "0", "(0, 1]", "(1, 2]", "(2, 3.5]", "(3.5, inf)"]
    expected = ["(-inf, 0)", "[0, 3.5]", "(3.5, 7.5]", "(7.5, 11]", "(11, inf)"]
    assert count(np.arange(12.0)[:, None]).describe(0)[1] == expected
    assert count(np.full((5, 1), np.nan)).describe(0)[1] == ["(-inf, inf)"]


# -- laws ----------------------------------------------------------------------------------------------


@given(data=rows(), share=st.floats(0, 1))
def test_batches_merge_to_the_whole_and_are_removed_again(data, share):
    X, label, weight = (np.concatenate([array, array]) for array in data)
    cut = 1 + int(share * (len(X) - 2))
    known = count(X[:cut])
    whole, parts = count(X, label, weight, known), (slice(cut), slice(cut, None))
    first, second = (count(X[part], label[part], weight[part], known) for part in parts)
    assert_same(first.merge(second), whole)
    assert_same(second.merge(first), whole)
    assert_same(whole.remove(second), replace(first, edges=whole.edges))
    assert_same(whole.scale(0.5), count(X, label, weight / 2, known))
    assert_same(whole.pooled(), replace(whole, classes=Levels((None,)), count=whole.count.sum(axis=0, keepdims=True)))


def test_of_counts_in_other_cells_those_of_more_rows_stay():
    """The first column has other cells in both, the second has the same."""
    first, second = (count(np.repeat(np.arange(n)[:, None], 2, axis=1)) for n in (40.0, 41.0))
    second = replace(second, edges=np.stack([second.edges[0], first.edges[1]]))
    for merged in (first.merge(second), second.merge(first)):
        assert_same(merged, replace(merged, edges=np.stack([second.edges[0], first.edges[1]])))
        assert merged.count.sum(axis=(0, 2)).tolist() == [41, 81]
    assert first.remove(second).count[:, 0].sum() == 0
    assert first.merge(None) is first.remove(None) is None
    states = [bnb.GaussianNB().fit(np.arange(n)[:, None], [0, 1] * (n // 2)).fitted_.counted for n in (40, 60)]
    assert counting.merge(*states).cells is None  # of other numbers of cells


def test_cells_that_show_little_are_known():
    """Most numbers lie beyond the first ones, were removed, or weigh next to nothing."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    known = count(X)
    assert known.resolve().tolist() == [True, True]
    moved = count(X + np.array([9.0, 0.0]), known=known)
    assert known.merge(moved).resolve().tolist() == [False, True]
    assert known.remove(known).resolve().tolist() == [False, False]
    assert known.scale(1e-9).resolve().tolist() == [False, False]
    assert count(np.full((200, 2), 7.0)).resolve().tolist() == [True, True]


def test_a_column_without_a_number_gets_edges_from_later_rows():
    X = np.column_stack([np.arange(40.0), np.full(40, np.nan)])
    first = count(X)
    second = count(X[:, ::-1], known=first)
    both = first.merge(second)
    assert both.count[0, 1, -1] == 40
    assert both.count[0, 1, :-1].sum() == 40
    assert len(both.describe(1)[1]) > 5
    many = replace(first, every=100)
    for i in range(20):
        assert count(X[[i]], known=many).count.sum() in (0, 2)


def test_one_of_several_of_many_rows_is_counted_wherever_they_are_cut():
    """Every hour has its part, though the number of rows between two that are counted divides 24."""
    rng = np.random.default_rng(0)
    hour = np.arange(24 * 5000) % 24
    X, y = rng.normal(size=(len(hour), 2)), np.array(["day", "night"])[hour // 12]
    nb = bnb.GaussianNB().fit(X, hour)
    assert nb.fitted_.cells.every == 8
    np.testing.assert_allclose(nb.fitted_.cells.count[:, 0].sum(axis=1), 625, rtol=0.15)
    nb = bnb.GaussianNB().fit(X, y)
    before = nb.fitted_.cells
    nb.partial_fit(X[:3000] + 1, y[:3000])
    assert 300 <= nb.fitted_.cells.count[:, 0].sum() - before.count[:, 0].sum() <= 450
    assert nb.forget(X[:3000] + 1, y[:3000]).fitted_.cells is None, "the sample of other portions would be another"
    assert 30 <= sum(count(X[[i]], known=before).count[0, 0].sum() for i in range(400)) <= 75


# -- estimators ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"gain": np.where(rng.random(600) < 0.1, rng.lognormal(size=600), 0.0)})
    X["age"], X["colour"] = rng.gamma(8, 5, 600), rng.choice(np.array(["red", "green"], object), 600)
    X.loc[::50, "age"] = np.nan
    return X, np.where(rng.random(600) < 1 / (1 + np.exp(X["gain"])), "poor", "rich")


def oracle(X, y, known):
    """Counts of the columns of numbers in known cells, by pandas."""
    found = np.zeros((len(np.unique(y)), len(known.edges), known.edges.shape[1] + 2))
    for c, label in enumerate(np.unique(y)):
        for f, edges in enumerate(known.edges):
            x = X.loc[y == label].iloc[:, f].to_numpy(float)
            found[c, f] = np.bincount(
                np.where(np.isnan(x), len(edges) + 1, np.searchsorted(edges, x)), minlength=len(edges) + 2
            )
    return found


MODELS = {
    "GaussianNB": (lambda: bnb.GaussianNB(), ["gain", "age"]),
    "PoissonNB": (lambda: bnb.PoissonNB(), ["gain"]),
    "NegativeBinomialNB": (lambda: bnb.NegativeBinomialNB(), ["gain"]),
    "BinnedNB": (lambda: bnb.BinnedNB(), ["gain", "age"]),
    "MixedNB": (lambda: bnb.MixedNB(), ["gain", "age", "colour"]),
    "FeatureAveragedNB": (lambda: bnb.FeatureAveragedNB(bnb.MixedNB()), ["gain", "age", "colour"]),
    "AODE": (lambda: bnb.AODE(), ["gain", "age", "colour"]),
    "WeightedNB": (lambda: bnb.WeightedNB(), ["gain", "age", "colour"]),
    "KDB": (lambda: bnb.KDB(2, numbers="binned"), ["gain", "age", "colour"]),
}


@pytest.mark.slow("compiles kernels of every estimator", but="GaussianNB")
@pytest.mark.parametrize("name", MODELS)
def test_all_that_changes_counts_changes_those_of_cells(name, table, tmp_path):
    (make, columns), (X, y) = MODELS[name], table
    X = X[columns]
    nb = make().fit(X, y)
    cells = nb.fitted_.cells
    n_numbers = len(columns) - ("colour" in columns)
    np.testing.assert_array_equal(cells.count, oracle(X.iloc[:, :n_numbers], y, cells))
    bnb.save(nb, tmp_path / "model")
    assert_same(bnb.load(tmp_path / "model").fitted_.cells, cells)
    if hasattr(nb, "partial_fit"):
        nb.partial_fit(X[:50], y[:50])
        np.testing.assert_array_equal(
            nb.fitted_.cells.count, cells.count + oracle(X.iloc[:50, :n_numbers], y[:50], cells)
        )
        nb.forget(X[:50], y[:50])
        assert_same(nb.fitted_.cells, cells)
        nb.decay(0.5)
        assert_same(nb.fitted_.cells, cells.scale(0.5))
    if hasattr(nb, "with_priors"):
        assert nb.with_priors({}).fitted_.cells is nb.fitted_.cells


def test_streams_count_all_rows_in_the_cells_of_the_first_batch(table):
    X, y = table[0][["gain", "age"]], table[1]
    nb = bnb.fit_stream(bnb.GaussianNB(), ((X[i : i + 100], y[i : i + 100]) for i in range(0, 600, 100)))
    first = bnb.GaussianNB().fit(X[:100], y[:100]).fitted_.cells
    np.testing.assert_array_equal(nb.fitted_.cells.edges, first.edges)
    np.testing.assert_array_equal(nb.fitted_.cells.count, oracle(X, y, first))
    declared = counting.declare(nb.fitted_.counted, Levels(("poor", "rich", "new")))
    assert declared.cells is nb.fitted_.cells


def test_blocks_of_dask_are_counted_in_the_cells_of_the_first(table):
    da = pytest.importorskip("dask.array")
    X, y = table[0][["gain", "age"]].to_numpy(), table[1]
    nb = bnb.distributed.fit(bnb.GaussianNB(), da.from_array(X, chunks=(150, 2)), da.from_array(y, chunks=150))
    first = bnb.GaussianNB().fit(X[:150], y[:150]).fitted_.cells
    np.testing.assert_array_equal(nb.fitted_.cells.edges, first.edges)
    np.testing.assert_array_equal(nb.fitted_.cells.count, oracle(table[0][["gain", "age"]], y, first))


def test_numbers_that_only_some_families_can_count_are_counted():
    """Squares of these numbers overflow or underflow, which does not matter for cells."""
    X = np.array([[1e300], [-1e300], [1e-300], [0.0]] * 5)
    assert bnb.BinnedNB(edges={0: [0.0]}).fit(X, [0, 1] * 10).fitted_.cells.count.sum() == 20


def test_older_files_have_no_cells():
    for name in ("model-1-Gaussian", "model-2-mixed"):
        nb = bnb.load(FIXTURES / f"{name}.safetensors")
        assert nb.fitted_.cells is None
    nb = bnb.load(FIXTURES / "model-1-Gaussian.safetensors")
    X = np.random.default_rng(0).normal(size=(40, nb.n_features_in_))
    assert nb.partial_fit(X, np.resize(nb.classes_, 40)).fitted_.cells is None


BAD = {
    "negative": (lambda cells: replace(cells, count=cells.count - 1), "counts in cells of numbers must be at least 0"),
    "shape": (lambda cells: replace(cells, count=cells.count[..., 1:]), "of shape"),
    "columns": (lambda cells: replace(cells, edges=cells.edges[:1]), "of each of 2 columns"),
    "counts of columns": (lambda cells: replace(cells, count=cells.count[:, :1]), "of shape"),
    "edges": (lambda cells: replace(cells, edges=cells.edges[:, ::-1].copy()), "must increase"),
    "NaN": (lambda cells: replace(cells, edges=np.full_like(cells.edges, np.nan)), "must increase"),
    "every": (lambda cells: replace(cells, every=0), "one of 0 rows"),
}


@pytest.mark.parametrize(("change", "text"), BAD.values(), ids=BAD)
def test_cells_that_rows_cannot_have_are_refused(change, text, table, tmp_path):
    nb = bnb.GaussianNB().fit(table[0][["gain", "age"]], table[1])
    nb.fitted_ = replace(nb.fitted_, cells=change(nb.fitted_.cells))
    refused(text, bnb.save, nb, tmp_path / "model")
