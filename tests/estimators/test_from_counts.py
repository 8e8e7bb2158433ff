"""Classifiers from counts of a database, against fits to the rows."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import bayesnb as bnb
from bayesnb import sql
from tests.raises import refused

COLUMNS = {"colour": str, "doors": int, "turbo": bool, "length": float, 'it\'s "wide"': float}
LEVELS = [name for name, kind in COLUMNS.items() if kind is not float]
NUMBERS = [name for name, kind in COLUMNS.items() if kind is float]
MIXED = {name: COLUMNS[name] for name in ("colour", "doors", NUMBERS[1])}


def cars(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    make = rng.choice(["ash", "o'ak"], n, p=[0.6, 0.4])
    shift = np.where(make == "ash", 0.0, 2.0)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(np.array(["red", "3", "green"], object), n),
            "doors": rng.integers(2, 5, n),
            "turbo": rng.random(n) < 0.3,
            "length": 1e6 + shift + rng.normal(size=n),
            'it\'s "wide"': rng.normal(size=n) * 3.0 - shift,
            "times": rng.integers(0, 4, n),
            "make": make,
        }
    )
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    frame.loc[rng.random(n) < 0.1, "length"] = np.nan
    return frame


def assert_alike(ours: Any, theirs: Any, X: Any) -> None:
    assert list(ours.classes_) == list(theirs.classes_)
    assert list(ours.feature_names_in_) == list(theirs.feature_names_in_)
    np.testing.assert_array_equal(ours.class_count_, theirs.class_count_)
    for own, other in zip(ours.encoding_.blocks, theirs.encoding_.blocks, strict=True):
        assert list(own.names) == list(other.names)
        assert own.axis()[1] == other.axis()[1]
    for own, other in zip(ours.statistics_.blocks, theirs.statistics_.blocks, strict=True):
        for name in vars(own):
            np.testing.assert_allclose(getattr(own, name), getattr(other, name), rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-8)
    np.testing.assert_allclose(ours.log_evidence_, theirs.log_evidence_, rtol=1e-9)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
def test_a_mixed_table_is_that_of_its_rows(ask):
    frame = cars()
    found = bnb.from_counts(bnb.MixedNB(numbers="gaussian"), ask(frame, sql.counts("cars", "make", MIXED)))
    X = frame[list(MIXED)]
    assert_alike(found, bnb.MixedNB(numbers="gaussian", categorical=["colour", "doors"]).fit(X, frame["make"]), X)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("weight", [None, "times"])
def test_levels_by_themselves(ask, weight):
    frame = cars()
    query = sql.counts("cars", "make", {name: COLUMNS[name] for name in LEVELS}, weight=weight)
    found = bnb.from_counts(bnb.CategoricalNB(), ask(frame, query))
    times = None if weight is None else frame[weight]
    assert_alike(found, bnb.CategoricalNB().fit(frame[LEVELS], frame["make"], times), frame[LEVELS])


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("weight", [None, "times"])
@pytest.mark.parametrize("make", [bnb.GaussianNB, bnb.ExponentialNB], ids=["Gaussian", "exponential"])
def test_numbers_by_themselves(ask, weight, make):
    frame = cars()
    frame[NUMBERS] = frame[NUMBERS].abs()
    query = sql.counts("cars", "make", dict.fromkeys(NUMBERS, float), weight=weight)
    times = None if weight is None else frame[weight]
    assert_alike(
        bnb.from_counts(make(), ask(frame, query)), make().fit(frame[NUMBERS], frame["make"], times), frame[NUMBERS]
    )


def test_present_and_absent(ask):
    frame = cars()
    found = bnb.from_counts(bnb.BernoulliNB(), ask(frame, sql.counts("cars", "make", {"turbo": bool})))
    np.testing.assert_array_equal(found.statistics_.blocks[0].count, pd.crosstab(frame["make"], frame["turbo"]))
    np.testing.assert_array_equal(found.feature_count_[:, 0], frame.groupby("make")["turbo"].sum())


def test_a_query_takes_the_place_of_a_table(ask):
    frame = cars()
    some = ask(frame, sql.counts("(SELECT * FROM cars WHERE doors > 2)", "make", ["colour"]))
    kept = pd.crosstab(frame["make"], frame["colour"][frame["doors"] > 2])
    found = bnb.from_counts(bnb.CategoricalNB(), some)
    assert list(found.categories_[0]) == list(kept.columns)
    np.testing.assert_array_equal(found.category_count_[0], kept)
    np.testing.assert_array_equal(found.class_count_, frame["make"][frame["doors"] > 2].value_counts().sort_index())


def words() -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    rng = np.random.default_rng(1)
    X, y = pd.DataFrame(rng.poisson(1.0, (60, 5)), columns=list("abcde")), rng.choice(["no", "yes"], 60)
    long = X.assign(label=y).melt("label", var_name="word", value_name="n")
    counts = long.groupby(["label", "word"])["n"].sum().reset_index()
    rows = [(label, None, None, None, n, None, None) for label, n in pd.Series(y).value_counts().items()]
    rows += [(label, word, None, None, n, None, None) for label, word, n in counts.itertuples(index=False)]
    return X, pd.DataFrame(rows, columns=["class", "feature", "type", "level", "count", "mean", "m2"]), list(y)


def test_words():
    X, table, y = words()
    whole = bnb.MultinomialNB().fit(X, y)
    found = bnb.from_counts(bnb.MultinomialNB(), table, log_base=float(whole.statistics_.log_base))
    assert_alike(found, whole, X)
    refused("Pass this sum as log_base", bnb.from_counts, bnb.MultinomialNB(), table)


GOOD = [
    ("a", None, None, None, 3, None, None),
    ("b", None, None, None, 2, None, None),
    ("a", "x", "int", "1", 2, None, None),
    ("a", "x", "int", "2", 1, None, None),
    ("b", "x", "int", "1", 2, None, None),
]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (GOOD[2:], "no row has an empty feature"),
        (GOOD[1:], "class 'a' has a row for feature 'x', but no row with an empty feature"),
        (
            [*GOOD, ("b", "x", "int", "two", 1, None, None)],
            "level 'two' of feature 'x' does not fit the type of its row, int",
        ),
        ([*GOOD, ("b", "x", "int", "2", -1, None, None)], "count of class 'b', feature 'x', level '2' is -1"),
        (
            [*GOOD, ("b", "x", "int", "2", 9, None, None)],
            "column 'x' has 11 observed cells in class 'b', which has 2 rows",
        ),
        ([*GOOD, ("b", "x", "int")], "row 5 is .* must have 7 entries"),
        (pd.DataFrame(GOOD), "one column 'class', but has none"),
        ([*GOOD, ("b", None, None, "2", 1, None, None)], "a row of class 'b' has the level '2', but no feature"),
        ([*GOOD, ("b", "x", "evil", "2", 1, None, None)], "of feature 'x' does not fit the type of its row, evil"),
        (
            [*GOOD, ("b", "x", "float", "2", 1, None, None)],
            "level '2' of feature 'x' does not fit the type of its row, float",
        ),
        (
            [*GOOD, ("b", "x", "int", None, 1, None, None)],
            "level None of feature 'x' does not fit the type of its row, int",
        ),
        ([*GOOD, ("b", "x", None, None, 1, None, None)], "class 'b' and feature 'x' has no level"),
        (
            [*GOOD, ("b", "x", None, [], 1, None, None)],
            r"level \[\] of feature 'x' does not fit .* needs a hashable level",
        ),
        ([*GOOD, ([], "x", "int", "2", 1, None, None)], "a class is not hashable"),
        ([*GOOD, ("b", "x", "int", "4.61168601842739e+18", 1, None, None)], "cast it to BIGINT"),
        ([*GOOD[:2], ("a", "x", "float", None, 3, 1.0, 2.0)], "feature 'x' has no levels"),
    ],
)
def test_bad_tables_are_refused_and_leave_the_classifier(rows, message):
    nb = bnb.CategoricalNB().fit([["u"], ["v"]], [0, 1])
    before = nb.class_count_.copy()
    refused(message, bnb.from_counts, nb, rows)
    np.testing.assert_array_equal(nb.class_count_, before)
    assert list(nb.classes_) == [0, 1]


@pytest.mark.parametrize("nb", [bnb.MultinomialNB(), bnb.GaussianNB()], ids=["words", "numbers"])
def test_levels_are_no_words_and_no_numbers(nb):
    refused("class 'a' and feature 'x' has a level", bnb.from_counts, nb, GOOD, log_base=0.0)


def test_integers_of_any_form_are_read_exactly():
    """Levels as databases and DataFrames hand them out; Python's integers are the oracle."""
    levels = [(2**62 + 1, 2**62 + 1), (str(2**62), 2**62), ("3.0", 3), (4.0, 4), (" 5 ", 5), (-7, -7), (np.int64(8), 8)]
    rows = [("a", None, None, None, 20, None, None), ("b", None, None, None, 20, None, None)]
    rows += [(label, "x", "int", level, 1, None, None) for level, _ in levels for label in "ab"]
    nb = bnb.from_counts(bnb.CategoricalNB(), rows)
    assert list(nb.categories_[0]) == sorted(meant for _, meant in levels)


def test_partitions_add_up_and_merge(ask):
    """Tables of two partitions, one after the other: levels add up, moments merge by Chan's rule."""
    frame = cars()
    parts = [pd.DataFrame(ask(part, sql.counts("cars", "make", MIXED))) for part in (frame[:30], frame[30:])]
    for part in parts:
        part.columns = ["class", "feature", "type", "level", "count", "mean", "m2"]
    found = bnb.from_counts(bnb.MixedNB(numbers="gaussian"), pd.concat(parts))
    X = frame[list(MIXED)]
    assert_alike(found, bnb.MixedNB(numbers="gaussian", categorical=["colour", "doors"]).fit(X, frame["make"]), X)


@pytest.mark.parametrize(
    "misspelt",
    [
        {"target": "mke"},
        {"columns": ["color"]},
        {"columns": {"dors": int}},
        {"columns": {"lenght": float}},
        {"weight": "tmes"},
    ],
    ids=["target", "text", "integer", "number", "weight"],
)
def test_a_misspelt_column_is_an_error_of_the_database(ask, misspelt):
    """SQLite takes a quoted name alone that is no column for a text."""
    query = sql.counts("cars", **{"target": "make", "columns": ["colour"], **misspelt})
    with pytest.raises(Exception, match="column") as raised:
        ask(cars(), query)
    assert type(raised.value).__module__.partition(".")[0] in ("sqlite3", "duckdb", "_duckdb", "psycopg")


@pytest.mark.slow("other variants compile kernels of their own", but="first")
def test_columns_with_the_names_of_the_query(ask):
    names = ["mean", "own", "label", "class", "count", "level", "m2"]
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(20, 7)), columns=names).assign(feature=list("ab") * 10)
    found = bnb.from_counts(bnb.GaussianNB(), ask(frame, sql.counts("cars", "feature", dict.fromkeys(names, float))))
    of_class = frame.groupby("feature")[names]
    assert list(found.feature_names_in_) == names
    np.testing.assert_array_equal(found.class_count_, [10, 10])
    np.testing.assert_allclose(found.statistics_.blocks[0].mean, of_class.mean(), rtol=1e-12)
    np.testing.assert_allclose(found.statistics_.blocks[0].m2, 10 * of_class.var(ddof=0), rtol=1e-12)


def test_nan_in_a_column_of_numbers_is_missing(ask):
    frame = pd.DataFrame({"x": [1.0, np.nan, 3.0, 4.5], "k": [1.0, 2.0, np.nan, 2.0], "make": list("aabb")})
    rows = ask(frame, sql.counts("cars", "make", {"x": float, "k": int}))
    levels, moments = bnb.from_counts(bnb.MixedNB(numbers="gaussian"), rows).statistics_.blocks
    np.testing.assert_array_equal(levels.count, [[1, 1], [0, 1]])
    np.testing.assert_array_equal(moments.count, [[1], [2]])
    np.testing.assert_array_equal(moments.mean, [[1], [3.75]])
    np.testing.assert_array_equal(moments.m2, [[0], [1.125]])


def test_integers_as_real_and_near_two_to_the_62(ask):
    """Integers in a REAL column as levels; integers whose squares leave int64 as numbers."""
    big = 2**62 + np.array([0, 1, 512, 7 * 2**30, 2**50, 2**51])
    frame = pd.DataFrame({"k": [1.0, 2.0, 2.0, 1.0, 3.0, 3.0], "big": big, "make": list("aaabbb")})
    found = bnb.from_counts(
        bnb.MixedNB(numbers="gaussian"), ask(frame, sql.counts("cars", "make", {"k": int, "big": float}))
    )
    levels, moments = found.statistics_.blocks
    np.testing.assert_array_equal(levels.count, [[1, 2, 0], [1, 0, 2]])
    # Exactly, in Python's integers, of the floats next to the numbers.
    cells = [int(x) for x in big.astype(float)]
    for c, own in enumerate((cells[:3], cells[3:])):
        np.testing.assert_allclose(moments.mean[c], sum(own) / 3, rtol=1e-9)
        np.testing.assert_allclose(moments.m2[c], sum((3 * x - sum(own)) ** 2 for x in own) / 9, rtol=1e-9, atol=1e-9)
    levels = ask(frame, sql.counts("cars", "make", {"big": int}))
    assert list(bnb.from_counts(bnb.CategoricalNB(), levels).categories_[0]) == big.tolist()


def test_reals_beyond_exact_integers_are_refused(ask):
    frame = pd.DataFrame({"k": [2.0**62, 1.0], "make": ["a", "b"]})
    with pytest.raises(
        ValueError, match=r"of feature 'k' does not fit the type of its row, int\. .* cast it to BIGINT"
    ):
        bnb.from_counts(bnb.CategoricalNB(), ask(frame, sql.counts("cars", "make", {"k": int})))


@pytest.mark.parametrize("weights", [[1, -1, 3, 1], [1, None, 3, 1], [1, "two", 3, 1], [1, np.inf, 3, 1]], ids=str)
def test_weights_that_fit_refuses_are_refused(ask, weights, request):
    if "two" in weights and "SQLite" not in request.node.callspec.id:
        pytest.skip("this database refuses to compare a text with a number")
    frame = pd.DataFrame({"k": list("uvuv"), "w": weights, "make": list("aabb")})
    rows = ask(frame, sql.counts("cars", "make", ["k"], weight="w"))
    refused(r"count of class 'a', feature (None|nan), level (None|nan) is", bnb.from_counts, bnb.CategoricalNB(), rows)


def test_a_class_of_weight_zero_stays(ask):
    frame = pd.DataFrame({"k": list("uvuvu"), "w": [1, 2, 3, 1, 0], "make": list("aabbc")})
    found = bnb.from_counts(bnb.CategoricalNB(), ask(frame, sql.counts("cars", "make", ["k"], weight="w")))
    assert list(found.classes_) == ["a", "b", "c"]
    np.testing.assert_array_equal(found.class_count_, [3, 4, 0])
    np.testing.assert_array_equal(found.category_count_[0], [[1, 2], [3, 1], [0, 0]])


def test_a_level_beside_the_declared_ones_is_refused():
    refused("cannot count level 2 of feature 'x'", bnb.from_counts, bnb.CategoricalNB(categories=[[1, 3]]), GOOD)


@pytest.mark.parametrize("options", [{"missing_values": "?"}, {"categories": {"x": ["u", "v"]}}], ids=str)
def test_a_rare_level_that_is_not_counted_is_refused(options):
    rows = [("a", None, None, None, 5_000_000, None, None), ("b", None, None, None, 1, None, None)]
    rows += [("a", "x", "str", level, n, None, None) for level, n in [("u", 2_999_999), ("?", 1), ("v", 2_000_000)]]
    refused(r"cannot count level '\?' of feature 'x'", bnb.from_counts, bnb.CategoricalNB(**options), rows)


def test_levels_of_count_zero_are_categories():
    rows = [*GOOD, ("a", "x", "int", "7", 0, None, None)]
    assert 7 in bnb.from_counts(bnb.CategoricalNB(), rows).categories_[0]


def test_a_constant_number_has_variance_zero():
    rows = [(c, None, None, None, 3, None, None) for c in "ab"]
    rows += [(c, "x", "float", None, 3, 0.1, 0.0) for c in "ab"]
    assert not bnb.from_counts(bnb.GaussianNB(), rows).statistics_.blocks[0].m2.any()


@pytest.mark.slow("other variants compile kernels of their own", but=["TAN", "WeightedNB"])
@pytest.mark.parametrize(
    "nb", [bnb.TAN(), bnb.AODE(), bnb.BinnedNB(), bnb.MixedNB(), bnb.WeightedNB(bnb.CategoricalNB())], ids=str
)
def test_what_needs_more_of_the_rows_says_so(nb):
    refused(type(nb).__name__, bnb.from_counts, nb, GOOD, error=NotImplementedError)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "empty"),
        (["make"], "the target"),
        ({"w": int}, "the weight"),
        ({"x": complex}, "must be str, int, bool or float"),
    ],
)
def test_queries_that_make_no_sense_are_refused(columns, message):
    refused(message, sql.counts, "cars", "make", columns, weight="w")


@pytest.mark.parametrize("columns", ["colour", None, 5])
def test_one_name_is_no_list_of_names(columns):
    refused(r"columns=.* must be a list of names", sql.counts, "cars", "make", columns, error=TypeError)


def test_the_parameters_of_another_program_are_a_table_of_counts():
    """Means and standard deviations that naiveBayes(Species ~ ., iris) of R's e1071 prints, and the rows of iris."""
    printed = {
        "setosa": [(5.006, 0.3524897), (3.428, 0.3790644), (1.462, 0.1736640), (0.246, 0.1053856)],
        "versicolor": [(5.936, 0.5161711), (2.770, 0.3137983), (4.260, 0.4699110), (1.326, 0.1977527)],
        "virginica": [(6.588, 0.6358796), (2.974, 0.3224966), (5.552, 0.5518947), (2.026, 0.2746501)],
    }
    iris = load_iris(as_frame=True)
    rows = [(name, None, None, None, 50, None, None) for name in printed]
    for name, moments in printed.items():
        numbers = zip(iris.feature_names, moments, strict=True)
        rows += [(name, feature, "float", None, 50, mean, 49 * sd**2) for feature, (mean, sd) in numbers]
    ours = bnb.from_counts(bnb.GaussianNB(), rows)
    theirs = bnb.GaussianNB().fit(iris.data, iris.target_names[iris.target])
    np.testing.assert_allclose(ours.predict_log_proba(iris.data), theirs.predict_log_proba(iris.data), 1e-5, 1e-9)
    np.testing.assert_allclose(ours.log_evidence_, theirs.log_evidence_, rtol=1e-6)
