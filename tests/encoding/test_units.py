"""Groups of rows, and copies of a row: which rows are found, and what users are told."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import datasets
from sklearn.model_selection import GridSearchCV

import bayesnb as bnb
from bayesnb.encoding.table import to_table
from bayesnb.encoding.units import check_groups, find_copies
from tests import data
from tests.raises import refused

CLEAN = ["iris", "wine", "breast_cancer", "digits", "diabetes"]


def units(X) -> np.ndarray:
    return find_copies(to_table(X, "a test"))


def mixed(n: int, seed: int = 0) -> pd.DataFrame:
    """A number of three decimals, a whole number, a text, and a number half of whose cells are missing."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(size=n).round(3), "n": rng.integers(0, 9, n), "t": rng.choice(list("abc"), n)})
    return X.assign(hole=np.where(rng.random(n) < 0.5, np.nan, rng.normal(size=n)))


# -- copies ----------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(25, 60), st.integers(0, 40))
def test_copies_are_found_whatever_the_order_of_rows_and_columns(seed, n, n_copies):
    """Reference: which of the distinct rows each row is."""
    rng = np.random.default_rng(seed)
    origin = rng.permutation(np.concatenate([np.arange(n), rng.integers(0, n, n_copies)]))
    X = mixed(n, seed)[list(rng.permutation(["x", "n", "t", "hole"]))].iloc[origin]
    np.testing.assert_array_equal(units(X), pd.factorize(origin)[0])


@pytest.mark.parametrize("k", [2, 20])
def test_each_row_may_be_there_many_times(k):
    X = np.random.default_rng(0).normal(size=(100, 3))
    np.testing.assert_array_equal(units(np.tile(X, (k, 1))), np.tile(np.arange(100), k))
    np.testing.assert_array_equal(units(np.repeat(X, k, axis=0)), np.repeat(np.arange(100), k))


def test_samples_of_large_tables_do_not_decide():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    X[-3:] = X[:3]
    assert units(X)[-3:].tolist() == [0, 1, 2]


def test_every_container_has_the_same_copies():
    X = mixed(60).iloc[np.arange(90) % 60]
    expected = (np.arange(90) % 60).tolist()
    tables = [X, X.to_numpy(object), X.to_numpy(object).tolist(), pl.from_pandas(X.reset_index(drop=True))]
    tables += [X.astype({"t": "category", "n": "Int64"}), X.assign(x=pd.to_datetime(X["x"] * 1e9))]
    assert all(units(each).tolist() == expected for each in tables)


def test_rows_that_differ_in_one_cell_or_lack_the_number_are_no_copies():
    X = mixed(50)
    X.loc[1:, "t"] = "d"  # of the first row alone all others differ
    rows = X.iloc[np.append(np.arange(50), [0, 7])].reset_index(drop=True)
    rows.loc[50, "t"] = "e"
    assert units(rows)[50:].tolist() == [50, 7]
    rows.loc[[7, 51], "x"] = np.nan
    assert units(rows)[50:].tolist() == [50, 51]


def test_large_integers_are_compared_exactly():
    identity = 2**60 + 1000 * np.arange(50)
    x = np.random.default_rng(0).normal(size=50).round(1)
    X = pd.DataFrame({"id": [*identity, identity[0] + 1, identity[1]], "x": [*x, *x[:2]]})
    assert units(X)[50:].tolist() == [50, 1]


@pytest.mark.parametrize(
    "columns",
    [
        lambda rng, n: rng.integers(0, 3, (n, 4)),
        lambda rng, n: np.repeat(rng.integers(0, 4, (n, 1)), 3, axis=1),
        lambda rng, n: rng.normal(size=(n, 1)).round(3),
        lambda rng, n: np.column_stack([rng.normal(size=n).round(3), rng.integers(0, 2, n)]),
        lambda rng, n: rng.normal(size=(n, 2)).round(1),
        lambda rng, n: rng.normal(size=(n, 10)),
        lambda rng, n: sp.csr_array(np.tile(rng.poisson(1.0, (n // 2, 4)), (2, 1))),
    ],
    ids=["levels", "equal levels", "rounded", "rounded and sex", "coarse", "noise", "words"],
)
@pytest.mark.parametrize("n", [60, 1000])
def test_equal_rows_that_chance_explains_are_no_copies(columns, n):
    X = columns(np.random.default_rng(0), n)
    np.testing.assert_array_equal(units(X), np.arange(n))


@pytest.mark.parametrize("name", CLEAN)
def test_clean_public_tables_have_no_copies(name):
    X, _ = getattr(datasets, f"load_{name}")(return_X_y=True)
    assert len(set(units(X))) == len(X)


def test_tables_of_levels_and_of_few_numbers_have_no_copies():
    """Adult has 4,000 rows that occur more than once, but for the number of people that a row stands for."""
    X = pd.read_csv(data.path_of("adult-train.csv"), header=None, skipinitialspace=True).drop(columns=14)
    assert len(set(units(X.drop(columns=2)))) == len(X)
    assert len(set(units(X))) == (~X.duplicated()).sum() == len(X) - 25


# -- groups ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "groups",
    [
        ["b", "a", "b", "c"],
        [2, 1, 2, 3],
        np.array([0.5, 0.25, 0.5, 8.0]),
        pd.Series(["b", "a", "b", "c"], index=[3, 2, 1, 0], dtype="category"),
        pl.Series(["b", "a", "b", "c"]),
        np.array(["2021-02-01", "2021-01-01", "2021-02-01", "2022-01-01"], "M8[D]"),
        [("ann", 1), ("bob", 1), ("ann", 1), ("ann", 2)],
        ["b", 1, "b", True],
    ],
    ids=lambda groups: type(groups).__name__,
)
def test_groups_of_any_type_are_numbered_as_they_occur(groups):
    assert check_groups(groups, 4).tolist()[:3] == [0, 1, 0]


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([1, 2, 1], r"groups has shape \(3,\), but X has 4 rows\. Pass an array of shape \(4,\)"),
        ([[1, 2]] * 4, r"groups has shape \(4, 2\), but X has 4 rows"),
        ("abcd", r"groups has shape \(\), but X has 4 rows"),
        ([1, 2, None, 3], "groups: the group of row 2 is missing. Give every row a group"),
        (np.array([1.0, np.nan, 1.0, 2.0]), "groups: the group of row 1 is missing"),
        (pd.Series([1, 2, 2, pd.NA], dtype="Int64"), "groups: the group of row 3 is missing"),
        (["ann"] * 4, "groups: all 4 rows are in one group, 'ann', but a group counts as one row, and two groups"),
    ],
)
def test_unusable_groups_are_refused(groups, said):
    X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
    for nb in (bnb.MixedNB(), bnb.WeightedNB(), bnb.KDB()):
        refused(said, nb.fit, X, y, groups=groups)
        assert not hasattr(nb, "classes_")


def test_classifiers_that_draw_no_halves_take_no_groups():
    for nb in (bnb.CategoricalNB(), bnb.GaussianNB(), bnb.BinnedNB(), bnb.AODE(), bnb.TreeAveragedNB()):
        refused("groups", nb.fit, [[1.0], [2.0]], [0, 1], groups=[0, 1], error=TypeError)


# -- the warning -----------------------------------------------------------------------------------


def oversampled(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which a fifth are of the second class, each of them four times."""
    y = (np.arange(n) % 5 == 0).astype(int)
    rows = np.concatenate([np.arange(n), *[np.flatnonzero(y)] * 3])
    return np.random.default_rng(0).normal(size=(n, 3))[rows], y[rows]


def warned(call) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, bnb.CopiedRowsWarning)]


@pytest.mark.parametrize(
    "nb",
    [
        bnb.MixedNB(),
        bnb.WeightedNB(bnb.GaussianNB()),
        bnb.KDB(gaussian="dtype"),
        pytest.param(bnb.WeightedNB(), marks=pytest.mark.slow("fits structures to halves")),
        pytest.param(bnb.WeightedNB(bnb.TAN(numbers="binned")), marks=pytest.mark.slow("fits structures to halves")),
    ],
    ids=repr,
)
def test_one_fit_warns_once_of_copies(nb):
    X, y = oversampled()
    (said,) = warned(lambda: nb.fit(X, y))
    assert said.startswith("X has copied rows: 54 of 144 rows are equal to an earlier row in every cell.")
    assert "pass the row once, with sample_weight" in said
    assert not warned(lambda: nb.fit(X, y, groups=np.arange(len(y)) // 2))
    assert not warned(lambda: nb.fit(X[:90], y[:90]))


def test_fits_without_halves_do_not_look_for_copies():
    X, y = oversampled()
    for nb in (bnb.GaussianNB(), bnb.MixedNB(numbers="gaussian"), bnb.KDB(k=1, max_features=None, numbers="gaussian")):
        assert not warned(lambda nb=nb: nb.fit(X, y))


def test_few_copies_are_not_worth_a_warning():
    """One percent of the rows of a class are."""
    X, y = np.random.default_rng(0).normal(size=(600, 2)), np.arange(600) % 2
    for n, n_warnings in ((2, 0), (6, 1)):
        rows = np.append(np.arange(600), 2 * np.arange(n))
        assert len(warned(lambda rows=rows: bnb.MixedNB().fit(X[rows], y[rows]))) == n_warnings


def test_fits_inside_another_call_do_not_warn_of_copies():
    X, y = oversampled()
    nb = bnb.MixedNB()
    with warnings.catch_warnings(action="ignore"):
        nb.fit(X, y)
    assert not warned(lambda: bnb.compare_estimates(nb, X, y, repeats=2))


def test_a_grid_search_warns_of_copies_once():
    X, y = oversampled()
    assert len(warned(lambda: GridSearchCV(bnb.MixedNB(), {"alpha": [0.5, 1.0]}, cv=3).fit(X, y))) == 1


@pytest.mark.parametrize("category", [bnb.CopiedRowsWarning, bnb.SuspiciousColumnWarning])
def test_the_warning_of_copies_is_filtered_by_its_category(category):
    X, y = oversampled()
    with warnings.catch_warnings(action="error"):
        warnings.filterwarnings("ignore", category=category)
        bnb.MixedNB().fit(X, y)
