"""SQL for columns of many types, against `predict_proba` and `fit` on the rows that the database returns."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

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
