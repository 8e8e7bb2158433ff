"""`sql.counts` and SQL of scores on columns of all types give what `fit` and `predict_proba` give on the same rows."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import bayesnb as bnb
from bayesnb import sql
from tests import databases

TEXTS = r"'a'; 'A'; 'b'; 'B '; 'b '; ''; ' a'; 'NULL'; 'o''b'; 'x\y'; 'true'; '1'; '1.0'; NULL"
LETTERS = "'é'; 'e\u0301'; 'E'; 'e'; 'É'; 'ß'; 'ss'; 'ſ'; 's'; NULL"
LONG = f"'{'x' * 5_000}'; '{'x' * 5_000}y'; '{'é' * 3_000}'; NULL"
HUGE = "9007199254740993; 9007199254740992; 9007199254740994; 1; NULL"
REALS = "-0.0; 0.0; 0.1; 1e-7; 1e15; 1e22; 1.5e300; -2.5; 1e-300; 123456.789; NULL"
LONG_REALS = "1.828105889826401e16; 9.5606742221243e16; -106018763364332.92; 3776141983971945; 6.105548732189725e234"
SHORT = "1; 2.5; -3.25; 100; 0; NULL"
NOCASE = {"SQLite": "TEXT COLLATE NOCASE", "DuckDB": "VARCHAR COLLATE NOCASE"}
ICU = {"PostgreSQL": "VARCHAR COLLATE nocase"}
# Name: (SQL type in all databases or by database, cells, type for sql.counts or None, function of the cells for fit)
KINDS: dict[str, tuple[str | dict[str, str], str, type | None, Any]] = {
    "text": ("VARCHAR", TEXTS, str, None),
    "letters": ("VARCHAR", LETTERS, str, None),
    "long texts": ("VARCHAR", LONG, str, None),
    "nocase": (NOCASE, TEXTS, str, None),
    "nocase letters": (NOCASE, LETTERS, str, None),
    "nocase in ICU": (ICU, TEXTS, str, None),
    "nocase letters in ICU": (ICU, LETTERS, str, None),
    "citext": ({"PostgreSQL": "CITEXT"}, TEXTS, str, None),
    "no accents": ({"DuckDB": "VARCHAR COLLATE NOACCENT"}, LETTERS, str, None),
    "trailing blanks": ({"SQLite": "TEXT COLLATE RTRIM"}, TEXTS, str, None),
    "fixed length": ({"PostgreSQL": "CHAR(6)"}, "'a'; 'A'; 'b'; ''; 'abcdef'; NULL", None, None),
    "enumeration": ({"DuckDB": "ENUM ('sad', 'Sad')"}, "'sad'; 'Sad'; NULL", str, None),
    "bigint": ("BIGINT", "1; 2; -1; 0; 100000000000000000; NULL", int, None),
    "bigint beyond 2^53": ("BIGINT", HUGE, int, None),
    "integers as text": ("INTEGER", "1; 2; 10; NULL", str, str),
    "integers in text": ("VARCHAR", "'1'; '2'; '30'; NULL", int, int),
    "whole reals": ("DOUBLE PRECISION", "1; -0.0; 10; 1000000; 1e15; 2e15; 4503599627370497; NULL", int, int),
    "reals": ("DOUBLE PRECISION", REALS, None, None),
    "long reals": ("DOUBLE PRECISION", LONG_REALS, None, None),
    "NaN": ({"DuckDB": "DOUBLE", "PostgreSQL": "DOUBLE PRECISION"}, "1; 2; 'nan'; NULL", int, None),
    "-NaN": ({"DuckDB": "DOUBLE"}, "1; 2; '-nan'; NULL", int, None),
    "single precision": ("REAL", "0.1; 0.5; -1.5; 2; 1e10; 41427623936; NULL", None, None),
    "decimals": ("NUMERIC(12, 2)", SHORT, None, None),
    "large decimals": ("NUMERIC(38, 2)", f"{SHORT}; 1000000000000000; 2e15", None, None),
    "fine decimals": ("NUMERIC(38, 20)", "0.1; 0.0000001; 1; 0.33333333333333333333; NULL", None, None),
    "free decimals": ({"PostgreSQL": "NUMERIC"}, "0.1; 0.10; 1.00; 1e15; 1e22; 1e-7; 'NaN'", None, None),
    "huge integers": ({"DuckDB": "HUGEINT"}, "1; 170141183460469231731687303715884105727; NULL", None, None),
    "Booleans": ("BOOLEAN", "TRUE; FALSE; NULL", bool, bool),
    "Booleans as numbers": ("INTEGER", "1; 0; NULL", bool, bool),
    "Booleans as reals": ("DOUBLE PRECISION", "1; 0; NULL", bool, bool),
    "no type": ({"SQLite": ""}, "1; 1.5; 'a'; 'A'; '1.5x'; 1e15; NULL", None, None),
}
COLLATIONS = ["nocase", "nocase in ICU", "citext", "trailing blanks"]
"""Kinds of columns in which texts are equal that differ in code points."""


def make(database: Any, request: Any, column: str, kind: str, rows: list[str], others: str) -> pd.DataFrame:
    """Table `cars` with a key, a column of a kind, and others; its rows as the database returns them."""
    types, name = KINDS[kind][0], request.node.callspec.params["database"]
    try:
        if "nocase" in kind and name == "PostgreSQL":
            options = "provider = icu, locale = 'und-u-ks-level2', deterministic = false"
            database.execute(f"CREATE COLLATION nocase ({options})")
        elif kind == "citext":
            database.execute("CREATE EXTENSION IF NOT EXISTS citext")
    except Exception as error:
        pytest.skip(f"this server has no {kind}: {error}")
    kind_in_sql = types if isinstance(types, str) else types[name]
    database.execute(f"CREATE TABLE cars (key BIGINT, {column} {kind_in_sql}, {others})")
    for key, row in enumerate(rows):
        database.execute(f"INSERT INTO cars VALUES ({key}, {row})")
    result = database.execute("SELECT * FROM cars ORDER BY key")
    return pd.DataFrame(result.fetchall(), columns=[column[0] for column in result.description], dtype=object)


def make_cells(database: Any, request: Any, kind: str) -> pd.DataFrame:
    """Rows of cells of a kind, each several times; the cells are those that `fit` takes."""
    read = KINDS[kind][3]
    rows = [
        f"{cell}, '{make}'"
        for i, cell in enumerate(KINDS[kind][1].split("; "))
        for make in ["ash"] * (1 + i % 3) + ["oak"] * (1 + 7 * i % 4)
    ]
    frame = make(database, request, "cell", kind, rows, "make VARCHAR")
    return frame if read is None else frame.assign(cell=[None if cell is None else read(cell) for cell in frame.cell])


def score(database: Any, nb: Any) -> np.ndarray:
    rows = sorted(database.execute(sql.score(nb, "cars", keep=["key"])).fetchall())
    assert [row[0] for row in rows] == list(range(len(rows)))
    return np.array([[np.nan if value is None else float(value) for value in row[1:]] for row in rows])


def cases(kinds: Any) -> Any:
    """Parametrisation of a test by each database with each of these kinds that the database has."""
    pairs = [(name, kind) for kind in kinds for name in databases.NAMES]
    offered = [pair for pair in pairs if isinstance(KINDS[pair[1]][0], str) or pair[0] in KINDS[pair[1]][0]]
    return pytest.mark.parametrize(("database", "kind"), offered, indirect=["database"])


@pytest.mark.filterwarnings("ignore")
@cases(KINDS)
def test_cells_of_every_kind_score_as_in_predict_proba_and_count_as_in_fit(database, kind, request):
    frame, counted = make_cells(database, request, kind), KINDS[kind][2]
    X, y = frame[["cell"]], frame["make"]
    some = 2 * len(frame) // 3
    models = [
        bnb.CategoricalNB().fit(X, y),
        bnb.CategoricalNB().fit(X[:some], y[:some]),
        bnb.CategoricalNB(handle_unknown="level").fit(X[:some], y[:some]),
    ]
    if counted:
        rows = database.execute(sql.counts("cars", "make", {"cell": counted})).fetchall()
        models.append(bnb.from_counts(bnb.CategoricalNB(), rows))
        assert list(models[-1].categories_[0]) == list(models[0].categories_[0])
        np.testing.assert_array_equal(models[-1].category_count_[0], models[0].category_count_[0])
    for nb in models:
        np.testing.assert_allclose(score(database, nb), nb.predict_proba(X), atol=1e-12)


@cases([*COLLATIONS, "fixed length", "Booleans", "bigint"])
def test_labels_of_every_kind_count_as_in_fit(database, kind, request):
    labels = [cell for cell in KINDS[kind][1].split("; ") if cell != "NULL"]
    rows = [f"{labels[i % len(labels)]}, {i * i % 7}.5, '{'uvw'[i % 3]}'" for i in range(3 * len(labels) + 1)]
    frame = make(database, request, "label", kind, rows, "x DOUBLE PRECISION, colour VARCHAR")
    counts = database.execute(sql.counts("cars", "label", {"x": float, "colour": str})).fetchall()
    found = bnb.from_counts(bnb.MixedNB(numbers="gaussian"), counts)
    expected = bnb.MixedNB(numbers="gaussian").fit(frame[["x", "colour"]].astype({"x": float}), list(frame["label"]))
    assert list(found.classes_) == list(expected.classes_)
    np.testing.assert_array_equal(found.class_count_, expected.class_count_)
    np.testing.assert_allclose(found.log_evidence_, expected.log_evidence_, rtol=1e-12)


@cases(["nocase", "nocase in ICU"])
def test_marks_of_missing_cells_are_compared_by_code_points(database, kind, request):
    frame = make_cells(database, request, kind)
    nb = bnb.CategoricalNB(missing_values=["A", "b "]).fit(frame[["cell"]], frame["make"])
    np.testing.assert_allclose(score(database, nb), nb.predict_proba(frame[["cell"]]), atol=1e-12)


@cases(["reals", "large decimals"])
def test_marks_that_are_numbers_match_reals_and_decimals(database, kind, request):
    frame = make_cells(database, request, kind)
    nb = bnb.CategoricalNB(missing_values=[1e15, -2.5, 100]).fit(frame[["cell"]], frame["make"])
    np.testing.assert_allclose(score(database, nb), nb.predict_proba(frame[["cell"]]), atol=1e-12)


RELATIVE = 1e-12
N = 200_000
COLUMNS = {'say "ah"': str, "it's": int, "Firm?": bool, "50%": float, "price": float, "grade": int}
LEVELS = [name for name, kind in COLUMNS.items() if kind is not float]


def melons(n: int = 40) -> tuple[pd.DataFrame, pd.Series]:
    """Rows of columns of all types, with missing cells; a column of integers with NaN is one of real numbers."""
    rng = np.random.default_rng(0)
    y = pd.Series(rng.choice(["yes", "n'o"], n))
    X = pd.DataFrame(
        {
            'say "ah"': rng.choice(np.array(["dark", "o'live", 'say "ah"', "nan", "", None], object), n),
            "it's": rng.integers(-3, 3, n),
            "Firm?": rng.random(n) < 0.4,
            "50%": rng.normal(1e3, 2.0, n),
            "price": rng.integers(100, 999, n) / 100,
            "grade": rng.integers(1, 4, n).astype(float),
        }
    )
    X.loc[rng.random(n) < 0.2, ["50%", "price"]] = np.nan
    X.loc[rng.random(n) < 0.2, "grade"] = np.nan
    return X, y


def test_every_type_counts_as_fit_does(database):
    """Texts come before numbers, as in the example of the documentation, and the query reads a view."""
    X, y = melons()
    unlabelled = X[:3].assign(ripe=None)
    databases.store(database, pd.concat([X.assign(ripe=y), unlabelled]), decimals=["price"])
    database.execute("CREATE VIEW ripe AS SELECT * FROM cars")
    rows = database.execute(sql.counts("ripe", "ripe", COLUMNS)).fetchall()
    X = X.astype(dict.fromkeys(["it's", "Firm?", "grade"], object))
    for nb, columns in [
        (bnb.MixedNB(numbers="gaussian", categorical=LEVELS), list(COLUMNS)),
        (bnb.CategoricalNB(), LEVELS),
        (bnb.GaussianNB(), ["50%", "price"]),
    ]:
        expected = clone(nb).fit(X[columns], y)
        found = bnb.from_counts(nb, [row for row in rows if row[1] is None or row[1] in columns])
        assert list(found.feature_names_in_) == columns
        np.testing.assert_array_equal(found.class_count_, y.value_counts()[found.classes_])
        np.testing.assert_allclose(found.log_evidence_, expected.log_evidence_, rtol=RELATIVE)


def test_a_constant_number_has_variance_zero(database):
    """The plain sum of 1,000 cells 0.1 is 99.9999999999986."""
    databases.store(database, pd.DataFrame({"x": [0.1] * 1_000, "make": ["a", "b"] * 500}))
    rows = database.execute(sql.counts("cars", "make", {"x": float})).fetchall()
    assert sorted(row[4:] for row in rows if row[1]) == [(500, 0.1, 0.0)] * 2


@pytest.mark.slow("200,000 rows in three databases", but="PostgreSQL")
@pytest.mark.parametrize("weight", [None, "times"])
def test_two_hundred_thousand_rows(database, weight):
    """A row follows from its number by integers and binary fractions, which SQL and NumPy compute exactly."""
    numbers = f"generate_series(1, {N}) AS t(i)"
    if "sqlite3" in type(database).__module__:
        ones = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {N})"
        numbers = f"({ones} SELECT i FROM n) AS t"
    database.execute(
        f"""CREATE TABLE cars AS SELECT
        CASE WHEN i * 31 % 7 < 3 THEN 'a' ELSE 'b' END AS make,
        CASE i * 17 % 5 WHEN 0 THEN NULL WHEN 1 THEN 'red' ELSE 'blue' END AS colour,
        i * 13 % 11 AS doors,
        CAST(i * 7919 % 10007 AS DOUBLE PRECISION) / 64 AS length,
        1e8 + CAST(i * 6133 % 9973 AS DOUBLE PRECISION) / 1024 AS far,
        i % 4 AS times FROM {numbers}"""
    )
    columns = {"colour": str, "doors": int, "length": float, "far": float}
    rows = database.execute(sql.counts("cars", "make", columns, weight=weight)).fetchall()
    i = np.arange(1, N + 1)
    X = pd.DataFrame(
        {
            "colour": np.array([None, "red", "blue", "blue", "blue"], object)[i * 17 % 5],
            "doors": i * 13 % 11,
            "length": i * 7919 % 10007 / 64,
            "far": 1e8 + i * 6133 % 9973 / 1024,
        }
    )
    y, times = np.where(i * 31 % 7 < 3, "a", "b"), None if weight is None else i % 4
    nb = bnb.MixedNB(numbers="gaussian", categorical=["colour", "doors"])
    found, expected = bnb.from_counts(clone(nb), rows), nb.fit(X, y, times)
    print(f"log evidence over that of fit: 1 {found.log_evidence_ / expected.log_evidence_ - 1:+.1e}")
    np.testing.assert_array_equal(found.class_count_, expected.class_count_)
    np.testing.assert_allclose(found.log_evidence_, expected.log_evidence_, rtol=RELATIVE)
