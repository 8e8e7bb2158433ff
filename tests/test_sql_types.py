"""`sql.counts` on columns of all types: SQLite, DuckDB and PostgreSQL give the evidence of `fit` on the same rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import bayesnb as bnb
from bayesnb import sql
from tests import databases

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
