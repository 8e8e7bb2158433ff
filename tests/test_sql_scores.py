"""`sql.score`: SQLite, DuckDB and PostgreSQL give what `predict_proba` gives, for rows of all kinds."""

import sqlite3
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bayesnb as bnb
from bayesnb import sql
from tests import databases
from tests.raises import refused

GREATEST = np.finfo(float).max
LEVELS = ['say "ah"', "select", "grün:", "b"]
NUMBERS = ["x", "z"]
PARENTS = {"grün:": ["select", "b"], "b": ["select"], 'say "ah"': ["grün:"]}


def cars(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of columns of all types with a tenth of the cells missing, and labels with quotes."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, n)
    chosen = np.where(rng.random(n) < 0.7, np.array(list("abc"))[label], rng.choice(list("abcd"), n))
    X = pd.DataFrame(
        {
            'say "ah"': rng.choice(np.array(["dark", "o'live", 'say "ah"', "nan", ""], object), n),
            "select": np.where(rng.random(n) < 0.6, label, rng.integers(0, 4, n)).astype(object),
            "grün:": chosen.astype(object),
            "b": (rng.random(n) < 0.3 + 0.1 * label).astype(object),
            "x": rng.normal(label, 1.0),
            "z": rng.exponential(1.0 + label),
        }
    )
    for name in X:
        X.loc[rng.random(n) < 0.1, name] = np.nan if name in NUMBERS else None
    return X, np.array(["no", "n'o", 'yes "x"'])[label]


def new_cars() -> pd.DataFrame:
    """400 rows, with levels that no car had and numbers far away."""
    X, _ = cars(400, seed=1)
    X.loc[::17, "grün:"] = "unknown 'level'"
    X.loc[::19, "select"] = 7
    X.loc[5:8, "x"] = [1e200, -1e5, 1e100, -3e9]
    return X


def store(database: object, X: pd.DataFrame) -> None:
    """Store rows with a key, their number, as the table `cars`."""
    databases.store(database, X.reset_index(names="key"), types={"select": "BIGINT", "b": "BOOLEAN"})


def score_rows(database: object, nb: object, **options: object) -> list[tuple]:
    """The rows of the query in the order of the key, without the key."""
    rows = sorted(database.execute(sql.score(nb, "cars", keep=["key"], **options)).fetchall(), key=lambda row: row[0])
    assert [row[0] for row in rows] == list(range(len(rows)))
    return [row[1:] for row in rows]


def to_array(rows: list[tuple]) -> np.ndarray:
    """The numbers of rows, NaN for NULL."""
    return np.array([[np.nan if value is None else value for value in row] for row in rows], float)


MODELS = {
    "categorical": (bnb.CategoricalNB(), LEVELS),
    "reserved level": (bnb.CategoricalNB(handle_unknown="level", alpha=0.5), LEVELS),
    "zeros": (bnb.CategoricalNB(estimate="mle"), LEVELS),
    "Student": (bnb.GaussianNB(), NUMBERS),
    "normal": (bnb.GaussianNB(estimate="mle"), NUMBERS),
    "binned": (bnb.BinnedNB(), NUMBERS),
    "presence": (bnb.BernoulliNB(binarize=0.7), NUMBERS),
    "Poisson": (bnb.MixedNB(poisson=["count"], estimate="mean"), ["count"]),
    "durations": (bnb.ExponentialNB(estimate="mean"), ["z"]),
    "mixed": (bnb.MixedNB(), LEVELS + NUMBERS),
    "KDB": (bnb.KDB(), LEVELS + NUMBERS),
    "TAN": (bnb.TAN(), LEVELS + NUMBERS),
    "network": (bnb.NetworkNB(parents=PARENTS), LEVELS),
    "weights": (bnb.WeightedNB(), LEVELS + NUMBERS),
    "weighted mixed": (bnb.WeightedNB(bnb.MixedNB()), LEVELS + NUMBERS),
    "weighted numbers": (bnb.WeightedNB(bnb.GaussianNB()), NUMBERS),
    "weighted network": (bnb.WeightedNB(bnb.NetworkNB(parents=PARENTS)), LEVELS),
    "averaged features": (bnb.FeatureAveragedNB(), LEVELS),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("nb", "columns"), MODELS.values(), ids=MODELS)
def test_a_database_scores_as_predict_proba_does(database, nb, columns):
    X, y = cars(600)
    X, rows = (frame.assign(count=np.floor(frame["z"]))[columns] for frame in (X, new_cars()))
    nb.fit(X, y)
    store(database, rows)
    np.testing.assert_allclose(to_array(score_rows(database, nb)), nb.predict_proba(rows), rtol=0, atol=1e-9)
    joint = np.clip(nb.predict_joint_log_proba(rows), -GREATEST, GREATEST)
    np.testing.assert_allclose(to_array(score_rows(database, nb, output="joint")), joint, rtol=1e-12, atol=1e-9)
    assert [label for (label,) in score_rows(database, nb, output="label")] == list(nb.predict(rows))


def test_ten_million_rows_a_class(database):
    """log(1 + t) is 5.6e-10 wrong in each term if 1 + t is rounded."""
    X, y = cars(300)
    store(database, X)
    for nb in (bnb.MixedNB(numbers="gaussian"), bnb.KDB()):
        nb.fit(X, y, np.full(300, 1e5))
        np.testing.assert_allclose(to_array(score_rows(database, nb)), nb.predict_proba(X), rtol=0, atol=1e-9)


def test_a_point_mass_is_certain_and_impossible_rows_are_undefined(database):
    X = pd.DataFrame({"x": [1.0, 1.0, 2.0, 3.0], "z": [0.0, 0.0, 5.0, 6.0]})
    nb = bnb.GaussianNB(estimate="mle").fit(X, ["a", "a", "b", "b"])
    rows = pd.DataFrame({"x": [1.0, 1.0, 2.5, np.nan], "z": [0.0, 4.0, 5.0, np.nan]})
    store(database, rows)
    np.testing.assert_array_equal(to_array(score_rows(database, nb))[:2], [[1, 0], [0, 1]])
    one_point = bnb.GaussianNB(estimate="mle").fit([[1.0], [1.0], [2.0], [2.0]], ["a", "a", "b", "b"])
    databases.store(database, pd.DataFrame({"key": [0, 1], "x": [2.0, 3.0]}))
    for output, expected in [("proba", [(0.0, 1.0), (None, None)]), ("label", [("b",), ("a",)])]:
        query = sql.score(one_point, "cars", columns=["x"], keep=["key"], output=output)
        assert [row[1:] for row in sorted(database.execute(query).fetchall())] == expected


def test_infinite_numbers_have_no_probabilities(database):
    if isinstance(database, sqlite3.Connection):
        database.execute(
            "CREATE TABLE cars AS SELECT 0 AS key, 9e999 AS x UNION ALL SELECT 1, 'low' UNION ALL SELECT 2, 1"
        )
    else:
        databases.store(database, pd.DataFrame({"key": [0, 1, 2], "x": [np.inf, -np.inf, 1.0]}))
    nb = bnb.GaussianNB().fit([[1.0], [2.0], [3.0]], ["a", "b", "b"])
    rows = sorted(database.execute(sql.score(nb, "cars", ["x"], ["key"])).fetchall())
    assert rows[0][1:] == rows[1][1:] == (None, None)
    np.testing.assert_allclose(rows[2][1:], nb.predict_proba([[1.0]])[0], atol=1e-12)


@pytest.mark.parametrize(("n_columns", "n_classes"), [(100, 2), (3, 60)])
def test_many_columns_and_many_classes(database, n_columns, n_classes):
    """SQLite joins at most 64 tables."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"c{j}": rng.choice(list("abcd"), 400) for j in range(n_columns)})
    nb = bnb.CategoricalNB().fit(X, np.arange(400) % n_classes)
    store(database, X[:50])
    np.testing.assert_allclose(to_array(score_rows(database, nb)), nb.predict_proba(X[:50]), rtol=0, atol=1e-9)


def test_sqlite_reads_numbers_in_a_column_of_texts():
    nb = bnb.GaussianNB().fit(pd.DataFrame({"x": [-1.0, -2.0, 3.0]}), ["a", "b", "b"])
    with databases.connect("SQLite", "") as database:
        database.execute("CREATE TABLE cars (key INTEGER, x TEXT)")
        database.executemany("INSERT INTO cars VALUES (?, ?)", [(0, "-1.5"), (1, "2.5"), (2, "low")])
        rows = score_rows(database, nb)
    np.testing.assert_allclose(to_array(rows[:2]), nb.predict_proba(pd.DataFrame({"x": [-1.5, 2.5]})), atol=1e-12)
    assert rows[2] == (None, None)


def test_a_query_may_be_the_table_and_columns_may_have_other_names(database):
    nb = bnb.GaussianNB().fit(pd.DataFrame({"x": [1.0, 2.0, 4.0]}), [1, 2, 2])
    databases.store(database, pd.DataFrame({"key": [0, 1], "length": [1.5, 3.0]}))
    query = sql.score(nb, "(SELECT * FROM cars WHERE key > 0)", columns={"x": "length"}, keep=["key", "length"])
    ((key, length, *proba),) = database.execute(query).fetchall()
    assert (key, length) == (1, 3.0)
    np.testing.assert_allclose(proba, nb.predict_proba(pd.DataFrame({"x": [3.0]}))[0], atol=1e-12)
    ((label,),) = database.execute(sql.score(nb, "cars", ["key"], output="label")).fetchall()[:1]
    assert label in (1, 2)
    assert database.execute(sql.score(nb, "(SELECT * FROM cars WHERE key > 9)", ["key"])).fetchall() == []


def test_levels_that_are_numbers_match_reals_and_decimals(database):
    nb = bnb.CategoricalNB().fit(pd.DataFrame({"a": [1, 2, 30, 0.5]}), ["x", "y", "x", "z"])
    rows = pd.DataFrame({"a": [1, 30, 0.5, 2.5]})
    with pytest.warns(UserWarning, match="2.5"):
        expected = nb.predict_proba(rows)
    for types in ({"a": "DOUBLE PRECISION"}, {"a": "NUMERIC(12, 2)"}):
        databases.store(database, rows.reset_index(names="key"), types=types)
        np.testing.assert_allclose(to_array(score_rows(database, nb)), expected, atol=1e-12)


MAKES = ["a", "a", "a", "b", "b", "b"]
SMALL = pd.DataFrame({"x": [1.0, 2.0, 4.0, 3.0, 5.0, 9.0], "z": [0.5, 0.1, 0.2, 3.0, 1.0, 2.0]})
FAR = [1e100, 1e139, 1e141, 1e147, -1e150, 3e152, 1e154, 1e160, 1e300, -1e308]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimate", ["predictive", "mean", "map", "mle"])
def test_far_numbers_score_as_in_predict_proba(database, estimate):
    """Squares of numbers beyond 1.3e154 overflow: no class has a density there."""
    nb = bnb.GaussianNB(estimate=estimate).fit(SMALL, MAKES)
    rows = pd.DataFrame([(x, z) for x in FAR for z in (1.0, np.nan, 2e140, -4e153)], columns=["x", "z"])
    store(database, rows)
    np.testing.assert_allclose(to_array(score_rows(database, nb)), nb.predict_proba(rows), atol=1e-9)
    joint = np.clip(nb.predict_joint_log_proba(rows), -GREATEST, GREATEST)
    np.testing.assert_allclose(to_array(score_rows(database, nb, output="joint")), joint, rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [bnb.PoissonNB, bnb.ExponentialNB])
def test_far_counts_and_durations_score_as_in_predict_proba(database, make):
    nb = make(estimate="mean").fit(SMALL * 10, MAKES)
    rows = pd.DataFrame({"x": [0.0, 1e150, 1e297, 1e299, 1e305, 0.0], "z": [1.0, 0.0, 1e299, 5.0, np.nan, 1e304]})
    store(database, rows)
    np.testing.assert_allclose(to_array(score_rows(database, nb)), nb.predict_proba(rows), atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@given(st.lists(st.tuples(*2 * [st.floats(allow_nan=False, allow_infinity=False)]), min_size=1, max_size=20))
@example([(1e152, 1.0)])
@pytest.mark.parametrize("estimate", ["predictive", "mean", "mle"])
def test_any_numbers_score_as_in_predict_proba(estimate, numbers):
    nb = bnb.GaussianNB(estimate=estimate).fit(SMALL, MAKES)
    rows = pd.DataFrame(numbers, columns=["x", "z"])
    with databases.connect("SQLite", "") as database:
        store(database, rows)
        np.testing.assert_allclose(to_array(score_rows(database, nb)), nb.predict_proba(rows), atol=1e-9)


@pytest.mark.parametrize(
    ("nb", "bad"),
    [
        (bnb.PoissonNB(estimate="mean"), -1.0),
        (bnb.ExponentialNB(estimate="mean"), -1e-3),
        (bnb.BernoulliNB(binarize=None), 0.7),
        (bnb.BernoulliNB(binarize=0.5), np.inf),
        (bnb.BinnedNB(), -np.inf),
        (bnb.CategoricalNB(), np.inf),
        (bnb.CategoricalNB(handle_unknown="level"), -np.inf),
        (bnb.KDB(gaussian=None), np.inf),
    ],
    ids=str,
)
def test_rows_that_predict_proba_refuses_are_null(database, nb, bad):
    rows = pd.DataFrame({"x": [0.0, 1.0, np.nan, bad]})
    nb.fit(pd.DataFrame({"x": [0.0, 1.0, 0.0, 1.0, 1.0, 1.0]}), MAKES)
    store(database, rows)
    found = to_array(score_rows(database, nb))
    np.testing.assert_allclose(found[:3], nb.predict_proba(rows[:3]), atol=1e-12)
    assert np.isnan(found[3]).all()
    for ask in (lambda: nb.predict_proba(rows), lambda: nb.fit(rows, MAKES[1:5])):
        refused(r"column 'x'|Negative", ask)


def test_an_infinite_number_outside_of_the_network_is_null(database):
    """As in `fit` and `predict_proba`, which refuse it in every column."""
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], 80)
    X = pd.DataFrame({"x": rng.normal(size=80) + 3 * (y == "a"), "z": rng.normal(size=80), "k": rng.integers(0, 3, 80)})
    nb = bnb.KDB(k=0, max_features=1).fit(X, y)
    assert nb.order_ == ("x",)
    rows = X[:8].astype({"k": float})
    store(database, rows)
    np.testing.assert_allclose(to_array(score_rows(database, nb)), nb.predict_proba(X[:8]), atol=1e-9)
    rows.loc[1, "z"], rows.loc[2, "k"] = -np.inf, np.inf
    for column in ("z", "k"):
        refused("infinity", nb.predict_proba, rows[["x", "z", "k"]].assign(**{c: X[c] for c in {"z", "k"} - {column}}))
    store(database, rows)
    assert np.flatnonzero(np.isnan(to_array(score_rows(database, nb))[:, 0])).tolist() == [1, 2]


def test_a_class_of_probability_zero(database):
    store(database, SMALL)
    for share in ([1.0, 0.0], [0.0, 1.0]):
        nb = bnb.GaussianNB(class_prior=share).fit(SMALL, MAKES)
        np.testing.assert_array_equal(to_array(score_rows(database, nb)), nb.predict_proba(SMALL))
        assert [label for (label,) in score_rows(database, nb, output="label")] == list(nb.predict(SMALL))


def test_labels_that_are_no_numbers_are_texts(database):
    labels = [date(2020, 1, 1)] * 3 + [date(2021, 2, 3)] * 3
    nb = bnb.GaussianNB().fit(SMALL, np.array(labels, object))
    store(database, SMALL)
    found = [label for (label,) in score_rows(database, nb, output="label")]
    assert found == [str(label) for label in nb.predict(SMALL)]


def test_numbers_match_all_texts_that_databases_cast_them_to(database):
    """SQLite writes 15 digits, PostgreSQL 1e+15, and DuckDB and PostgreSQL a sign before a zero."""
    values = [0.0, 0.1 + 0.2, 1e15, 1234567890123456.0, 1e-7, -1e22]
    nb = bnb.CategoricalNB().fit(pd.DataFrame({"a": values}), list("abcdef"))
    rows = pd.DataFrame({"a": [-0.0, *values]})
    databases.store(database, rows.reset_index(names="key"))
    np.testing.assert_allclose(to_array(score_rows(database, nb)), nb.predict_proba(rows), atol=1e-12)


@pytest.mark.parametrize("name", ["scores", "bayesnb_t0", "bayesnb_cells", "bayesnb_x_a0", "BAYESNB_Numbered"])
def test_a_table_of_any_name(database, name):
    X, y = cars(60)
    nb = bnb.NetworkNB(parents=PARENTS).fit(X[LEVELS], y)
    store(database, X)
    database.execute(f"DROP TABLE IF EXISTS {name}")
    database.execute(f"ALTER TABLE cars RENAME TO {name}")
    for table in (name, f"(SELECT * FROM {name} WHERE key >= 0)"):
        rows = sorted(database.execute(sql.score(nb, table, keep=["key"])).fetchall())
        np.testing.assert_allclose(to_array([row[1:] for row in rows]), nb.predict_proba(X[LEVELS]), atol=1e-9)


def fit(values: list, **options: object) -> bnb.CategoricalNB:
    return bnb.CategoricalNB(**options).fit(pd.DataFrame({"a": pd.Series(values, dtype=object)}), ["x", "y"])


@pytest.mark.parametrize(
    ("make", "options", "error", "words"),
    [
        (lambda: fit(["1", 1]), {}, ValueError, "same text"),
        (lambda: fit(["p", "q"], handle_unknown="error"), {}, NotImplementedError, "handle_unknown"),
        (lambda: fit(["p\0", "q"]), {}, ValueError, "NUL"),
        (lambda: fit([("p", 1), "q"]), {}, NotImplementedError, "tuple"),
        (lambda: fit(["p", "q"]), {"columns": ["a", "b"]}, ValueError, "1 features"),
        (lambda: fit(["p", "q"]), {"columns": "a"}, ValueError, "1 features"),
        (lambda: fit(["p", "q"]), {"columns": 5}, ValueError, "1 features"),
        (lambda: fit(["p", "q"]), {"keep": "id"}, TypeError, "keep='id' must be a list"),
        (lambda: fit(["p", "q"]), {"columns": {"b": "c"}}, ValueError, "'b', which is no feature"),
        (lambda: fit(["p", "q"]), {"columns": {"a": "ü" * 32}}, ValueError, "63 bytes"),
        (lambda: fit(["p", "q"]), {"columns": {"a": ""}}, ValueError, "empty"),
        (lambda: fit(["p", "q"]), {"keep": ["x"]}, ValueError, "two columns 'x'"),
        (lambda: fit(["p", "q"]), {"output": "log"}, ValueError, "output='log'"),
        (lambda: fit(["p", "q"]), {"estimate": "median"}, ValueError, "median"),
        (lambda: bnb.CategoricalNB().fit([["p"], ["q"]], [0, 1]), {}, ValueError, "without names"),
        (lambda: bnb.CategoricalNB(), {}, Exception, "not fitted"),
        (lambda: bnb.PoissonNB().fit([[1], [2]], [0, 1]), {"columns": ["n"]}, NotImplementedError, "estimate='mean'"),
        (lambda: bnb.MultinomialNB().fit([[1], [2]], [0, 1]), {"columns": ["n"]}, NotImplementedError, "several"),
        (lambda: bnb.AODE().fit([["p", "q"], ["r", "s"]], [0, 1]), {}, NotImplementedError, "average"),
    ],
)
def test_what_sql_cannot_write_is_refused_with_the_reason(make, options, error, words):
    refused(words, sql.score, make(), "cars", **options, error=error)


@pytest.mark.filterwarnings("ignore")
def test_dates_need_a_column_of_their_numbers():
    X = pd.DataFrame({"when": [datetime(2020, 1, d) for d in range(1, 12)]})
    nb = bnb.MixedNB(numbers="gaussian").fit(X, [0, 1] * 5 + [0])
    refused("'when' holds dates", sql.score, nb, "cars")
    assert 'r."days"' in sql.score(nb, "cars", columns={"when": "days"})


def test_a_model_of_too_many_numbers_is_refused():
    X = pd.DataFrame({"a": np.arange(3000)})
    refused("300,000 numbers", sql.score, bnb.CategoricalNB().fit(X, np.arange(3000) % 100), "cars")
    wide = pd.DataFrame(np.zeros((4, 2000))).rename(columns="n{}".format)
    refused("columns; the limit is 1,500", sql.score, bnb.GaussianNB(prior="pooled").fit(wide, [0, 0, 1, 1]), "cars")
