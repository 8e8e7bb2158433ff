"""Encoding of cells and labels: any hashable value, in any container, is a level."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from bayesnb import (
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    NetworkNB,
    NormalInverseGamma,
    parameter_table,
)
from bayesnb.encoding import LevelColumns, Levels, to_table
from bayesnb.encoding.encoded_rows import power_of_four
from bayesnb.encoding.levels import factorize
from tests.raises import refused
from tests.strategies import take

Y = np.array([0, 1, 0, 1])

numbers = st.one_of(
    st.booleans(), st.integers(-5, 5), st.integers(-(2**70), 2**70), st.floats(-5, 5).map(lambda x: round(x, 1))
)
values = st.one_of(numbers, st.text("ab", max_size=2), st.binary(max_size=1), st.tuples(st.integers(0, 2)))


def column(cells) -> np.ndarray:
    """An (N, 1) object array; tuples stay what they are."""
    out = np.empty((len(cells), 1), object)
    out[:, 0] = cells
    return out


def typed(levels) -> list:
    return [(type(v).__name__, v) for v in levels]


def levels_of(X, **parameters) -> list[list]:
    return [c.tolist() for c in CategoricalNB(**parameters).fit(X, np.arange(len(X)) % 2).categories_]


def counts_of(X, j: int = 0) -> list[float]:
    return CategoricalNB().fit(X, np.arange(len(X)) % 2).category_count_[j].sum(axis=0).tolist()


# -- levels ----------------------------------------------------------------------------------------------


def test_levels_are_ordered_by_the_name_of_their_type_and_then_by_value():
    mixed = ["b", 2, True, -1.5, "a", b"z", 10, False, 0.5, (2, 1), (1, 9)]
    expected = [False, True, b"z", -1.5, 0.5, 2, 10, "a", "b", (1, 9), (2, 1)]
    assert typed(Levels.from_values(mixed).values) == typed(expected)


def test_levels_that_cannot_be_compared_have_an_order_too():
    mixed = [frozenset({2}), frozenset({1}), (1, "a"), ("a", 1), 1j]
    first, second = Levels.from_values(mixed), Levels.from_values(mixed[::-1])
    assert first.values == second.values
    assert set(first.values) == set(mixed)


@given(a=st.lists(values, max_size=6), b=st.lists(values, max_size=6), c=st.lists(values, max_size=6))
def test_union_is_associative_commutative_and_idempotent_with_an_identity(a, b, c):
    a, b, c = map(Levels.from_values, (a, b, c))
    assert typed(a.union(b).values) == typed(b.union(a).values)
    assert typed(a.union(b).union(c).values) == typed(a.union(b.union(c)).values)
    assert typed(a.union(a).values) == typed(a.values)
    assert typed(a.union(Levels(())).values) == typed(Levels(()).union(a).values) == typed(a.values)


@given(v=st.lists(values, max_size=8))
def test_levels_are_distinct_and_know_their_positions(v):
    levels = Levels.from_values(v)
    assert len(levels) == len(set(v))
    assert set(levels.values) == set(v)
    assert levels.index(levels.values).tolist() == list(range(len(levels)))
    assert all(levels.values[i] == x for i, x in zip(levels.index(v), v, strict=True))
    assert levels.index(["no such level", 99, None]).max(initial=-1) < 0 or len(levels) == 0
    assert levels.array().tolist() == list(levels.values)


@given(v=st.lists(values, min_size=1, max_size=8), data=st.data())
def test_the_order_of_the_rows_does_not_decide_how_a_level_is_called(v, data):
    """1, 1.0 and True are one level, whichever comes first."""
    shuffled = data.draw(st.permutations(v))
    y = np.arange(len(v)) % 2
    mine, theirs = (CategoricalNB().fit(column(cells), y).encoding_.blocks[0].levels[0] for cells in (v, shuffled))
    assert typed(mine.values) == typed(theirs.values)


def test_one_nan_may_be_a_level_and_two_are_one_level_twice():
    """NaN is not equal to itself, so that a dictionary holds several."""
    Levels((float("nan"), 1.5, "a")).check()
    for twice in ((float("nan"), np.float64("nan")), (1.5, float("nan"), float("nan")), (1, "a", True)):
        refused("twice", Levels(twice).check)


# -- factorize -----------------------------------------------------------------------------------------


@given(v=st.lists(st.one_of(values, st.just(None), st.just(np.nan)), min_size=1, max_size=12))
def test_factorize_can_be_undone(v):
    codes, distinct = factorize(column(v)[:, 0], "here")
    for code, cell in zip(codes, v, strict=True):
        missing = cell is None or cell != cell
        assert (code == -1) if missing else (distinct[code] == cell)


@pytest.mark.parametrize(
    ("cells", "error", "words"),
    [
        ([[1], [2]], TypeError, r"'somewhere'.*row 0.*\[1\].*hashable"),
        ([{}, "a"], TypeError, "row 0"),
        (["a", {1, 2}], TypeError, "row 1"),
        ([1.0, np.inf], ValueError, "somewhere.*infinity.*row 1"),
        ([1, -np.inf], ValueError, "row 1"),
        ([1j, 2.0], ValueError, "complex"),
    ],
)
def test_what_cannot_be_a_level_is_refused_with_its_place(cells, error, words):
    refused(words, factorize, column(cells)[:, 0], "'somewhere'", error=error)


# -- cells in every container ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "levels"),
    [
        (np.array([3, 1, 3, 2], np.int8), [1, 2, 3]),
        (np.array([3, 1, 3, 10**8]), [1, 3, 10**8]),
        (np.array([True, False, True, True]), [False, True]),
        (np.array([True, True, True, True]), [True]),
        (np.array([0.7, 0.2, 0.7, np.nan]), [0.2, 0.7]),
        (np.array([0.5, 2, 0.5, -0.0], np.float16), [0.0, 0.5, 2.0]),
        (np.array(["b", "", "abc", "b"]), ["", "abc", "b"]),
        (np.array([b"b", b"", b"abc", b"b"]), [b"", b"abc", b"b"]),
        (["b", None, "a", np.nan], ["a", "b"]),
        ([1, "1", 1.5, None], [1.5, 1, "1"]),
        (["nan", "None", "b", "b"], ["None", "b", "nan"]),
        ([2**70, 1, 2**70, 1], [1, 2**70]),
        ([dt.date(2020, 1, 2), None, dt.date(2020, 1, 1), pd.NA], [dt.date(2020, 1, 1), dt.date(2020, 1, 2)]),
        ([(1, 2), (1,), None, (1, 2)], [(1,), (1, 2)]),
        ([np.int64(3), 3, np.float32(3), np.bool_(False)], [False, 3.0]),
    ],
)
def test_cells_of_any_type_are_levels(cells, levels):
    X = cells[:, None] if isinstance(cells, np.ndarray) else column(cells)
    assert typed(levels_of(X)[0]) == typed(levels)
    seen = [v for v in (X[:, 0].tolist()) if v is not None and v is not pd.NA and v == v]
    assert counts_of(X) == [sum(v == level for v in seen) for level in levels]


@pytest.mark.parametrize(
    ("series", "levels"),
    [
        (pd.Series(["u", None, "v", "u"]), ["u", "v"]),
        (pd.Series(["u", None, "v", "u"], dtype="string"), ["u", "v"]),
        (pd.Series(["u", pd.NA, "v", None], dtype=object), ["u", "v"]),
        (pd.Series([2, 1, None, 2], dtype="Int64"), [1, 2]),
        (pd.Series([2**53 + 1, 2**53, None, 1], dtype="Int64"), [1, 2**53, 2**53 + 1]),
        (pd.Series([2, 1, 1, 2], dtype="UInt8"), [1, 2]),
        (pd.Series([2.5, None, 1.5, 2.5], dtype="Float64"), [1.5, 2.5]),
        (pd.Series([True, None, False, True], dtype="boolean"), [False, True]),
        (pd.Series([True, False, False, True]), [False, True]),
        (pd.Series([2, 1, 3, 2], dtype="int16"), [1, 2, 3]),
        (pd.Series(pd.to_datetime(["2020-01-02", "2020-01-01", None, "2020-01-02"])), None),
        (pd.Series(pd.to_datetime(["2020-01-02", "2020-01-01", None, "2020-01-02"])).astype("datetime64[ns]"), None),
        (pd.Series(pd.to_datetime(["2020-01-02", "2020-01-01", None, "2020-01-02"], utc=True)), None),
        (pd.Series(pd.to_timedelta([2, 1, None, 2], unit="h")), None),
    ],
)
def test_pandas_columns_are_what_they_show(series, levels):
    frame = pd.DataFrame({"a": series, "b": ["x", "y", "y", "x"]})
    levels = sorted(series.dropna().unique().tolist()) if levels is None else levels
    nb = CategoricalNB().fit(frame, Y)
    assert nb.categories_[0].tolist() == levels
    expected = [int((series == level).sum()) for level in levels]
    assert nb.category_count_[0].sum(axis=0).tolist() == expected
    same = CategoricalNB().fit(frame.astype({"a": object}), Y)
    assert same.categories_[0].tolist() == levels
    np.testing.assert_array_equal(same.predict_proba(frame), nb.predict_proba(frame))


@pytest.mark.parametrize("key", ["int8", "uint8", "uint32", "uint64"])
@pytest.mark.parametrize("text", ["string", "large_string"])
def test_columns_of_arrows_dictionaries_are_what_they_show(text, key):
    """Missing are cells without a code, and cells whose code is that of a null among the dictionary's values."""
    pa = pytest.importorskip("pyarrow")
    values, cells = pa.array(["v", None, "u"], getattr(pa, text)()), pa.array([2, None, 1, 0, 2], getattr(pa, key)())
    series = pd.Series(pd.arrays.ArrowExtensionArray(pa.DictionaryArray.from_arrays(cells, values)))
    codes, distinct = factorize(series, "here")
    assert [None if code == -1 else distinct[code] for code in codes] == ["u", None, None, "v", "u"]


def test_instants_are_the_same_level_at_every_resolution():
    days = ["2020-01-02", "2020-01-01", "2020-01-02", "2020-01-01"]
    fits = [
        CategoricalNB().fit(np.array(days, f"datetime64[{unit}]")[:, None], Y) for unit in ("D", "s", "ms", "us", "ns")
    ]
    fits.append(CategoricalNB().fit(pd.DataFrame({"0": pd.to_datetime(days)}).astype("datetime64[ns]"), Y))
    fits.append(CategoricalNB().fit(column([pd.Timestamp(day) for day in days]), Y))
    for nb in fits[1:]:
        assert nb.categories_[0].tolist() == fits[0].categories_[0].tolist()
        rows = pd.DataFrame({"0": pd.to_datetime(days)}) if nb is fits[5] else np.array(days, "datetime64[s]")[:, None]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert nb.predict(rows).tolist() == Y.tolist()


def test_pandas_categories_are_declared_whether_or_not_they_occur():
    frame = pd.DataFrame({"a": pd.Categorical(["b", "a", None, "b"], categories=["z", "b", "a"]), "b": [1, 2, 3, 4]})
    nb = CategoricalNB().fit(frame, Y)
    assert nb.categories_[0].tolist() == ["a", "b", "z"]
    assert nb.category_count_[0].sum(axis=0).tolist() == [1, 2, 0]
    more = frame.assign(a=pd.Categorical(["new", "a", "z", "b"]), b=[1, 2, 3, 5])
    with pytest.warns(UserWarning, match=r"'new'.*row 0"):
        nb.partial_fit(more, Y)
    assert nb.categories_[0].tolist() == ["a", "b", "z"]  # declared: does not grow
    assert nb.categories_[1].tolist() == [1, 2, 3, 4, 5]  # not declared: grows
    assert nb.category_count_[0].sum(axis=0).tolist() == [2, 3, 1]


def test_polars_columns_are_what_they_show():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "word": ["u", None, "v", "u"],
            "number": [2**53 + 1, 2**53, None, 1],
            "flag": [True, None, False, True],
            "real": [1.5, float("nan"), None, 2.5],
            "day": [dt.date(2020, 1, 2), dt.date(2020, 1, 1), None, dt.date(2020, 1, 1)],
            "kind": pl.Series(["x", "y", None, "x"], dtype=pl.Enum(["y", "x", "z"])),
            "sort": pl.Series(["x", "y", None, "x"], dtype=pl.Categorical),
        }
    )
    nb = CategoricalNB().fit(frame, pl.Series([0, 1, 0, 1]))
    assert list(nb.feature_names_in_) == frame.columns
    assert [c.tolist() for c in nb.categories_] == [
        ["u", "v"],
        [1, 2**53, 2**53 + 1],
        [False, True],
        [1.5, 2.5],
        [dt.date(2020, 1, 1), dt.date(2020, 1, 2)],
        ["x", "y", "z"],
        ["x", "y"],
    ]
    weighted = CategoricalNB().fit(frame, Y, sample_weight=[1, 0, 1, 1])
    assert weighted.categories_[0].tolist() == ["u", "v"]
    assert weighted.categories_[6].tolist() == ["x"]
    as_pandas = pd.DataFrame({name: pd.Series(frame[name].to_list(), dtype=object) for name in frame.columns})
    mine, theirs = (nb.encoding_.rows(nb.fitted_.table(X))[0].piece(0, 4, 4).code for X in (frame, as_pandas))
    np.testing.assert_array_equal(mine, theirs)


def test_polars_numbers_are_numbers():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1.5, None, 2.0, 3.0], "b": [1, 2, 3, None]})
    nb = GaussianNB().fit(frame, Y)
    array = np.array([[1.5, 1], [np.nan, 2], [2, 3], [3, np.nan]])
    np.testing.assert_array_equal(nb.theta_, GaussianNB().fit(array, Y).theta_)
    kinds = MixedNB().fit(frame.with_columns(c=pl.Series(["u", "v", "u", "v"])), Y).kinds_
    assert kinds == {"a": "gaussian", "b": "gaussian", "c": "categorical"}


# -- missing cells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nothing", [None, np.nan, pd.NA, pd.NaT, float("nan"), np.float32("nan"), np.datetime64("NaT")]
)
def test_every_kind_of_nothing_is_a_missing_cell(nothing):
    nb = CategoricalNB().fit(column(["a", "b", nothing, "a"]), Y)
    assert nb.categories_[0].tolist() == ["a", "b"]
    assert nb.category_count_[0].tolist() == [[1, 0], [1, 1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(nb.predict_proba(column([nothing])), [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("cells", "marks", "levels"),
    [
        (["?", "a", "b", "?"], "?", ["a", "b"]),
        (["?", "a", "NA", "a"], ["?", "NA"], ["a"]),
        (["?", "a", "", "a"], ("", None), ["?", "a"]),
        ([-1, 5, 3, -1], -1, [3, 5]),
        ([-9, 5, 3, -1], {-1, -9}, [3, 5]),
        ([0.5, -99.0, 1.5, 0.5], -99, [0.5, 1.5]),
        ([0.5, np.nan, 1.5, 0.5], np.nan, [0.5, 1.5]),
        ([True, False, True, True], False, [True]),
    ],
)
def test_marks_of_missing_cells_are_missing_and_no_level(cells, marks, levels):
    array = np.array(cells)
    for X in (column(cells), array[:, None], pd.DataFrame({"a": cells}), pd.DataFrame({"a": pd.Categorical(cells)})):
        nb = CategoricalNB(missing_values=marks).fit(X, Y)
        assert nb.categories_[0].tolist() == levels
        present = [i for i, v in enumerate(cells) if v in levels]
        np.testing.assert_array_equal(nb.category_count_[0].sum(axis=1), [sum(Y[present] == c) for c in (0, 1)])
        gone = take(X, np.delete(np.arange(4), present))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_allclose(nb.predict_proba(gone), 0.5)


def test_a_mark_that_is_declared_as_a_category_is_still_missing():
    nb = CategoricalNB(categories=[["a", "?", "b"]], missing_values="?").fit(column(["a", "?", "b", "a"]), Y)
    assert nb.categories_[0].tolist() == ["a", "b"]
    assert nb.category_count_[0].sum() == 3


def test_a_mixed_table_has_missing_cells_of_both_kinds():
    frame = pd.DataFrame(
        {"s": ["u", "?", None, "v"], "x": [1.0, np.nan, 3.0, 4.0], "n": pd.array([1, None, 2, 3], dtype="Int64")}
    )
    nb = MixedNB(missing_values="?").fit(frame, Y)
    assert nb.kinds_ == {"s": "categorical", "x": "gaussian", "n": "gaussian"}
    assert nb.statistics_.blocks[0].count.sum() == 2
    assert nb.statistics_.blocks[1].count.sum(axis=0).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("cells", "complete"),
    [([[0, 1], [2, 0]], True), ([[0, 1], [3, 0]], False), ([["a", 1], ["b", 0]], False), ([[0, 1], [None, 0]], False)],
    ids=["all are levels", "a value is no level", "a value is of another type", "a cell is missing"],
)
def test_rows_are_complete_if_all_cells_are_levels(cells, complete):
    levels = (Levels.from_values(range(3)), Levels.from_values(range(2)))
    columns = LevelColumns((0, 1), ("0", "1"), 2, levels, (True, True))
    rows = columns.rows(to_table(np.array(cells), "test"), lambda *_: None)
    assert rows.complete == complete
    assert rows.missing.any() != complete


# -- labels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y", [["a", None, "b", "a"], [1.0, np.nan, 2.0, 1.0], pd.Series([1, None, 2, 1], dtype="Int64")]
)
def test_a_missing_label_is_refused_with_its_row(y):
    refused(r"y contains NaN.*row 1", CategoricalNB().fit, np.arange(4)[:, None], y)


# -- odd numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["levels", "range"])
def test_levels_between_the_least_and_the_greatest_that_do_not_occur_are_none(kind):
    cells = np.array([0, 3, 0, 7]) if kind == "range" else np.array([0, 3, 0, 10**6])
    nb = CategoricalNB().fit(cells[:, None], Y)
    assert nb.categories_[0].tolist() == sorted(set(cells.tolist()))
    with pytest.warns(UserWarning, match="2"):
        np.testing.assert_allclose(nb.predict_proba([[2]]), 0.5)


def test_stored_zeros_of_sparse_counts_are_no_entries():
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    X = sp.csr_array((np.array([0.0, 2.0, 1.0, 0.0, 3.0]), np.array([0, 1, 0, 1, 2]), np.array([0, 2, 5])))
    for nonnegative in (True, False):
        matrix = to_table(X, "test").matrix(nonnegative=nonnegative)
        np.testing.assert_array_equal(matrix.toarray(), dense)
        assert matrix.nnz == 3
    assert X.nnz == 5
    refused("-2.0.*row 0", to_table(-X, "test").matrix, nonnegative=True)


def test_sums_of_duplicates_do_not_wrap():
    data, row, column = np.full(5, 100, np.int8), [0, 0, 1, 2, 2], [0, 0, 1, 1, 1]
    by_rows = sp.csr_array((data, np.array(column), np.array([0, 2, 3, 5])), shape=(3, 2))
    by_columns = sp.csc_matrix((data, np.array([0, 0, 1, 2, 2]), np.array([0, 2, 5])), shape=(3, 2))
    for X in (sp.coo_array((data, (row, column)), shape=(3, 2)), by_rows, by_columns):
        nb = MultinomialNB().fit(X, ["a", "b", "a"])
        assert nb.feature_count_.tolist() == [[200, 200], [0, 100]]
        nb = BernoulliNB(binarize=150).fit(X, ["a", "b", "a"])
        assert nb.feature_count_.tolist() == [[1, 1], [0, 0]]


def test_sums_of_duplicates_are_not_rounded_to_float32():
    data, column = np.array([2.0**24, 1.0, 1.0], np.float32), np.array([0, 0, 1])
    by_rows = sp.csr_array((data, column, np.array([0, 2, 3])), shape=(2, 2))
    for X in (by_rows, sp.coo_array((data, ([0, 0, 1], column)), shape=(2, 2))):
        assert MultinomialNB().fit(X, ["a", "b"]).feature_count_.tolist() == [[2**24 + 1, 0], [0, 1]]


# -- blocks of rows ----------------------------------------------------------------------------------------


def test_sizes_of_blocks_are_the_nearest_of_16_64_256():
    sizes = [16 * 4**k for k in range(6)]
    for n in [*range(1, 300), *(size + more for size in sizes[3:5] for more in (-1, 0, 0.5, 1))]:
        assert power_of_four(n) == min(size for size in sizes if size >= n)
        assert power_of_four(n, down=True) == max((size for size in sizes if size <= n), default=16)


def test_an_integer_that_names_one_column_and_is_the_position_of_another_is_refused():
    frame = pd.DataFrame({2: ["u", "v", "u", "v"], 0: ["a", "a", "b", "b"], 1: ["s", "t", "t", "s"]})
    message = ": [02] is the name of one column of X, and the position of another"
    for nb in (
        CategoricalNB(alpha={2: 3.0}),
        CategoricalNB(categories={2: ["u", "v"]}),
        MixedNB(categorical=[2]),
        NetworkNB({2: 0}),
    ):
        refused(message, nb.fit, frame, Y)
    refused(message, parameter_table, CategoricalNB().fit(frame, Y), features=[2])
    prior = NormalInverseGamma(pd.Series({2: 1.0, 0: 2.0, 1: 3.0}), 1.0, 1.0, 1.0)
    refused(message, GaussianNB(prior=prior).fit, frame.map(len), Y)
    assert CategoricalNB(categories={"2": ["u", "v", "w"]}).fit(frame, Y).categories_[0].tolist() == ["u", "v", "w"]


def test_an_integer_that_is_no_position_may_be_a_name():
    years = pd.DataFrame({1990: ["u", "v", "u", "v"], 1991: ["a", "a", "b", "b"]})
    nb = CategoricalNB(alpha={1991: 3.0}, categories={1990: ["u", "v", "w"]}).fit(years, Y)
    np.testing.assert_array_equal(nb.prior_.blocks[0].concentration[0], [1.0, 1.0, 1.0, 3.0, 3.0])
    loc = GaussianNB(prior=NormalInverseGamma(pd.Series({1991: 1.0, 1990: 2.0}), 1.0, 1.0, 1.0))
    np.testing.assert_array_equal(loc.fit(years.map(ord), Y).prior_.blocks[0].loc[0], [2.0, 1.0])
