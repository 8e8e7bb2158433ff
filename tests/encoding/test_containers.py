"""Tables of any library give the model of the same rows in pandas; dask collections are never computed unasked."""

import datetime
import subprocess
import sys
from decimal import Decimal

import dask.array as da
import dask.dataframe as dd
import duckdb
import narwhals as nw
import narwhals.stable.v1 as nw_v1
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bayesnb as bnb
from tests.raises import refused

N = 40
RNG = np.random.default_rng(0)
Y = np.array(["no", "yes"])[RNG.integers(0, 2, N)]
GAP = np.arange(N) % 7 == 3
COLUMNS = {
    "real": [None if gap else float(v) for gap, v in zip(GAP, RNG.normal(size=N), strict=True)],
    "whole": [None if gap else 2**53 + int(v) for gap, v in zip(GAP, RNG.integers(0, 9, N), strict=True)],
    "text": [None if gap else str(v) for gap, v in zip(GAP, RNG.choice(list("uvw"), N), strict=True)],
    "flag": [None if gap else bool(v) for gap, v in zip(GAP, RNG.integers(0, 2, N), strict=True)],
    "day": [datetime.date(2024, 1, 1) + datetime.timedelta(int(v)) for v in RNG.integers(0, 9, N)],
    "price": [Decimal(int(v)) / 4 for v in RNG.integers(0, 99, N)],
}
FRAME = pl.DataFrame(COLUMNS)
IN_PANDAS = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in COLUMNS.items()})


class Capsule:
    """An object of an unknown library that has the Arrow PyCapsule interface, and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def in_duckdb(frame):
    connection = duckdb.connect()
    connection.register("arrow", frame.to_arrow())
    return connection.sql("SELECT * FROM arrow")


CONTAINERS = {
    "polars": lambda frame: frame,
    "LazyFrame": lambda frame: frame.lazy(),
    "Arrow table": lambda frame: frame.to_arrow(),
    "Arrow batch": lambda frame: frame.to_arrow().combine_chunks().to_batches()[0],
    "Arrow reader": lambda frame: frame.to_arrow().to_reader(),
    "DuckDB": in_duckdb,
    "capsule": lambda frame: Capsule(frame),
    "narwhals of pandas": lambda frame: nw.from_native(frame.to_pandas(types_mapper=pd.ArrowDtype)),
    "narwhals of polars": nw.from_native,
    "narwhals of a LazyFrame": lambda frame: nw.from_native(frame.lazy()),
    "narwhals of Arrow": lambda frame: nw.from_native(frame.to_arrow()),
    "narwhals of DuckDB": lambda frame: nw.from_native(in_duckdb(frame)),
    "narwhals, stable": lambda frame: nw_v1.from_native(frame),
}
containers = pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)


@containers
@pytest.mark.filterwarnings("ignore:.*count as numbers, in days")
def test_columns_of_any_library_are_what_they_show(make):
    expected = bnb.MixedNB(numbers="gaussian").fit(IN_PANDAS, Y)
    nb = bnb.MixedNB(numbers="gaussian").fit(make(FRAME), Y)
    assert nb.feature_names_in_.tolist() == FRAME.columns
    assert nb.kinds_ == expected.kinds_
    np.testing.assert_array_equal(nb.predict_proba(make(FRAME)), expected.predict_proba(IN_PANDAS))


@containers
def test_levels_of_any_library_are_those_of_the_same_objects(make):
    expected = bnb.CategoricalNB().fit(IN_PANDAS, Y)
    nb = bnb.CategoricalNB().fit(make(FRAME), Y)
    for levels, known in zip(nb.categories_, expected.categories_, strict=True):
        assert levels.tolist() == known.tolist()
        assert list(map(type, levels.tolist())) == list(map(type, known.tolist()))
    np.testing.assert_array_equal(nb.predict_log_proba(make(FRAME)), expected.predict_log_proba(IN_PANDAS))


@containers
def test_names_of_columns_are_checked_in_any_container(make):
    nb = bnb.CategoricalNB().fit(IN_PANDAS, Y)
    refused("feature names", nb.predict, make(FRAME.select(FRAME.columns[::-1])))
    refused("feature names", nb.predict, make(FRAME.rename({"day": "date"})))


COLUMNS_OF_ROWS = {
    "polars": pl.Series,
    "Arrow": pa.array,
    "Arrow in chunks": lambda cells: pa.chunked_array([cells[:9], cells[9:]]),
    "narwhals": lambda cells: nw.from_native(pl.Series(cells), series_only=True),
}


@pytest.mark.parametrize("make", COLUMNS_OF_ROWS.values(), ids=COLUMNS_OF_ROWS)
def test_labels_weights_and_groups_are_columns_of_any_library(make):
    weight = 1 + np.arange(N) % 3
    expected = bnb.WeightedNB(bnb.GaussianNB()).fit(IN_PANDAS[["real"]], Y, weight, groups=np.arange(N) // 2)
    found = bnb.WeightedNB(bnb.GaussianNB()).fit(FRAME[["real"]], make(Y), make(weight), groups=make(np.arange(N) // 2))
    rows = FRAME[["real"]]
    np.testing.assert_array_equal(found.predict_proba(rows), expected.predict_proba(rows))


@pytest.mark.parametrize("kind", ["polars", "LazyFrame", "DuckDB"])
def test_levels_of_an_enum_are_declared(kind):
    """An Enum of polars and an ENUM of DuckDB list their levels, in their order, whether or not they occur."""
    frame = pl.DataFrame({"kind": pl.Series(["x", "y", None, "x"], dtype=pl.Enum(["y", "x", "z"]))})
    relation = duckdb.connect().sql(
        "SELECT k::ENUM('y', 'x', 'z') AS kind FROM (VALUES ('x'), ('y'), (NULL), ('x')) t(k)"
    )
    X = {"polars": frame, "LazyFrame": frame.lazy(), "DuckDB": relation}[kind]
    nb = bnb.CategoricalNB().fit(X, [0, 1, 0, 1])
    assert nb.categories_[0].tolist() == ["x", "y", "z"]
    assert nb.category_count_[0].sum(axis=0).tolist() == [2, 1, 0]


def test_sums_of_duckdb_are_numbers():
    """The sum of integers is of 128 bits, for which pandas has no type."""
    query = "SELECT CASE WHEN i % 5 > 0 THEN sum(i) END AS total FROM range(40) t(i) GROUP BY i ORDER BY i"
    nb = bnb.GaussianNB().fit(duckdb.connect().sql(query), np.arange(40) % 2)
    values = np.where(np.arange(40) % 5 > 0, np.arange(40.0), np.nan)
    np.testing.assert_array_equal(nb.theta_, bnb.GaussianNB().fit(values[:, None], np.arange(40) % 2).theta_)


def test_objects_of_polars_are_what_they_show():
    cells = [Decimal("1.5"), 2, None, 3.25] * 5
    frame = pl.DataFrame({"any": pl.Series(cells, dtype=pl.Object), "text": ["u", "v"] * 10})
    as_pandas = pd.DataFrame({"any": pd.Series(cells, dtype=object), "text": ["u", "v"] * 10})
    found, expected = (bnb.MixedNB(numbers="gaussian").fit(X, [0, 1] * 10) for X in (frame, as_pandas))
    assert found.kinds_ == expected.kinds_ == {"any": "gaussian", "text": "categorical"}
    np.testing.assert_array_equal(found.predict_proba(frame), expected.predict_proba(as_pandas))


def test_the_index_in_a_table_of_pandas_is_no_column():
    """Arrow keeps the index of a DataFrame as a column, which its metadata name."""
    frame = pd.DataFrame({"a": [1, None, 3, 4]}, dtype="Int64").set_index(pd.Index([7, 8, 5, 6]))
    nb = bnb.GaussianNB().fit(pa.Table.from_pandas(frame), [0, 1, 0, 1])
    assert nb.feature_names_in_.tolist() == ["a"]
    np.testing.assert_array_equal(nb.theta_, bnb.GaussianNB().fit(frame, [0, 1, 0, 1]).theta_)


def test_duplicate_names_are_refused():
    table = pa.table([[1.0, 2.0], [3.0, 4.0]], names=["a", "a"])
    refused("'a'", bnb.GaussianNB().fit, table, [0, 1])


@pytest.mark.parametrize(
    "call",
    [
        lambda rows: bnb.CategoricalNB().fit(rows, Y),
        lambda rows: bnb.compare_estimates(bnb.CategoricalNB(), rows, Y, repeats=3),
        lambda rows: bnb.learning_curve(bnb.CategoricalNB(), rows, Y, sizes=[2, 4], repeats=2),
        lambda rows: bnb.conformal(bnb.CategoricalNB().fit(FRAME[["text"]], Y), rows, Y),
        lambda rows: bnb.fit_stream(bnb.CategoricalNB(), [(rows, Y)]),
    ],
    ids=["fit", "compare_estimates", "learning_curve", "conformal", "fit_stream"],
)
def test_a_lazy_frame_is_collected_once(call):
    collected = []

    def count(frame):
        collected.append(len(frame))
        return frame

    call(FRAME[["text"]].lazy().map_batches(count, schema={"text": pl.String}))
    assert collected == [N]


REAL = RNG.normal(size=(N, 2))


@pytest.mark.parametrize(
    ("argument", "call"),
    {
        "frame": ("X", lambda: bnb.GaussianNB().fit(dd.from_pandas(pd.DataFrame(REAL), npartitions=2), Y)),
        "array": ("X", lambda: bnb.GaussianNB().fit(da.from_array(REAL), Y)),
        "narwhals": ("X", lambda: bnb.GaussianNB().fit(nw.from_native(dd.from_pandas(pd.DataFrame(REAL))), Y)),
        "partial_fit": ("X", lambda: bnb.GaussianNB().partial_fit(da.from_array(REAL), Y, classes=["no", "yes"])),
        "weighted": ("X", lambda: bnb.WeightedNB().fit(da.from_array(REAL), Y)),
        "labels": ("y", lambda: bnb.GaussianNB().fit(REAL, da.from_array(np.arange(N) % 2))),
        "weights": ("sample_weight", lambda: bnb.GaussianNB().fit(REAL, Y, da.from_array(np.ones(N)))),
        "check_table": ("X", lambda: bnb.check_table(da.from_array(REAL))),
        "evaluation": ("X", lambda: bnb.compare_estimates(bnb.GaussianNB(), da.from_array(REAL), Y, repeats=2)),
    }.values(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_dask_collections_are_refused_where_they_would_be_computed(argument, call):
    refused(f"^{argument} is a dask collection.*distributed.fit.*{argument}.compute", call, error=TypeError)


@pytest.mark.slow("starts Python")
def test_rows_of_arrays_need_no_library_of_tables():
    code = (
        "import sys, bayesnb; assert not {'narwhals', 'pandas', 'pyarrow'} & {*sys.modules}; "
        "bayesnb.GaussianNB().fit([[1.0], [2.0], [4.0]], [0, 1, 0]).predict([[1.0]]); "
        "assert not {'polars', 'duckdb', 'dask'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
