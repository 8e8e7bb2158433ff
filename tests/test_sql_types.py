"""`sql.counts` on columns of all types: SQLite, DuckDB and PostgreSQL give the evidence of `fit` on the same rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.base import clone

import bayesnb as bnb
from bayesnb import sql
from tests import databases

RELATIVE = 1e-12
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
