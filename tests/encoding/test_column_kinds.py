"""A column is of numbers or of levels by its values: the same rows give the same model in every container."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesnb as bnb
from tests.raises import refused

N = 40
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N)
NUMBERS = np.round(RNG.normal(Y, 1.0), 3) + 0.0001
START = datetime.datetime(2024, 3, 1, 12)

COLUMNS = {
    "number": NUMBERS.tolist(),
    "whole": RNG.integers(0, 9, N).tolist(),
    "whole float": RNG.integers(0, 9, N).astype(float).tolist(),
    "decimal": [Decimal(str(v)) for v in NUMBERS],
    "Boolean": (NUMBERS > 0.5).tolist(),
    "text": np.where(NUMBERS > 0.5, "high", "low").tolist(),
    "date": [START + datetime.timedelta(hours=float(v)) for v in np.round(NUMBERS * 50)],
    "duration": [datetime.timedelta(seconds=float(v)) for v in np.round(NUMBERS * 50)],
    "two values": (NUMBERS > 0.5).astype(int).tolist(),
    "large": [2.0**60 * (1 + i) for i in RNG.integers(0, 30, N)],
}
LEVELS = {"Boolean", "text", "two values"}
WHOLE = {"whole", "whole float"}


def as_objects(columns):
    array = np.empty((N, len(columns)), object)
    for j, cells in enumerate(columns.values()):
        array[:, j] = cells
    return array


def in_arrow(columns):
    return pa.table({name: pa.array(cells) for name, cells in columns.items()})


CONTAINERS = {
    "pandas": pd.DataFrame,
    "pandas objects": lambda columns: pd.DataFrame(columns).astype(object),
    "pandas on Arrow": lambda columns: in_arrow(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "array": as_objects,
    "list": lambda columns: [list(row) for row in zip(*columns.values(), strict=True)],
    "Arrow": in_arrow,
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
}
containers = pytest.mark.parametrize("container", CONTAINERS)
missing = pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])


def columns_of(names, missing):
    gaps = {name: [None if missing and (i + j) % 9 == 0 else v for i, v in enumerate(COLUMNS[name])]
            for j, name in enumerate(names)}  # fmt: skip
    return gaps


def canonical(columns):
    """The same rows as float64 and text, written out by pandas alone."""
    frame = pd.DataFrame(index=range(N))
    for name, cells in columns.items():
        present = pd.Series(cells, dtype=object)
        if name == "date":
            frame[name] = (pd.to_datetime(present) - pd.Timestamp(0)) / pd.Timedelta(days=1)
        elif name == "duration":
            frame[name] = pd.to_timedelta(present).dt.total_seconds()
        elif name in LEVELS:
            frame[name] = present.map(str, na_action="ignore").astype(object).where(present.notna(), None)
        else:
            frame[name] = present.map(float, na_action="ignore").astype(float)
    return frame


@containers
@missing
@pytest.mark.filterwarnings("ignore:.*count as numbers, in days")
def test_mixed_columns_are_those_of_the_canonical_table(container, missing):
    columns = columns_of(COLUMNS, missing)
    frame = canonical(columns)
    levels = [name for name in frame if name in LEVELS]
    expected = bnb.MixedNB(categorical=levels, gaussian=[c for c in frame if c not in levels]).fit(frame, Y)
    X = CONTAINERS[container](columns)
    found = bnb.MixedNB(numbers="gaussian").fit(X, Y)
    assert list(found.kinds_.values()) == list(expected.kinds_.values())
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(frame), rtol=1e-9)
    assert found.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-9)


@containers
@missing
@pytest.mark.filterwarnings("ignore:.*count as numbers, in days")
def test_whole_numbers_are_levels_of_a_structure(container, missing):
    columns = columns_of(COLUMNS, missing)
    frame = canonical(columns)
    real = [name for name in frame if name not in LEVELS | WHOLE]
    expected = bnb.SPODE("text", gaussian=real).fit(frame, Y)
    names = list(frame)
    X = CONTAINERS[container](columns)
    found = bnb.SPODE(names.index("text")).fit(X, Y)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(frame), rtol=1e-9)


@pytest.mark.slow("fits weights in each container")
@pytest.mark.filterwarnings("ignore:.*count as numbers, in days")
def test_weights_are_the_same_in_every_container():
    columns = columns_of(COLUMNS, True)
    X = {name: make(columns) for name, make in CONTAINERS.items()}
    first, *others = [bnb.WeightedNB().fit(rows, Y).predict_proba(rows) for rows in X.values()]
    for proba in others:
        np.testing.assert_allclose(proba, first, rtol=1e-6)


@given(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True), st.booleans())
@pytest.mark.filterwarnings("ignore:.*count as numbers, in days")
def test_law_any_columns_in_any_container(names, missing):
    columns = columns_of(names, missing)
    first, *others = [bnb.MixedNB(numbers="gaussian").fit(make(columns), Y) for make in CONTAINERS.values()]
    for nb in others:
        assert list(nb.kinds_.values()) == list(first.kinds_.values())
        assert nb.log_evidence_ == pytest.approx(first.log_evidence_, rel=1e-9)


def test_forty_separable_rows_of_two_values_are_not_certain():
    """A normal density of a column that is 0 in one class and 1 in the other gave P = 4.8e-8."""
    x = np.repeat([0.0, 1.0], 20)
    proba = bnb.MixedNB().fit(x[:, None], x).predict_proba([[1.0]])
    np.testing.assert_allclose(proba[0], [1 / 22, 21 / 22], rtol=1e-12)  # Laplace's rule of succession


def test_two_values_in_fewer_than_ten_cells_are_numbers():
    x = np.repeat([0.0, 1.0, np.nan], [4, 5, 6])[:, None]
    assert bnb.MixedNB(numbers="gaussian").fit(x, np.arange(15) % 2).kinds_ == {"0": "gaussian"}


def test_accuracy_survives_whole_numbers_beyond_float64():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    x = np.round(rng.normal(2.0 * y, 1.0, 400) * 2.0**60)[:, None]
    other = rng.integers(0, 2, (400, 2)).astype(float)
    nb = bnb.TAN().fit(np.hstack([x, other])[::2], y[::2])
    assert nb.score(np.hstack([x, other])[1::2], y[1::2]) > 0.75


def test_declared_levels_and_categories_stay_levels():
    frame = pd.DataFrame({"a": np.arange(N) % 4 + 0.5, "b": pd.Categorical(np.arange(N) % 3), "c": NUMBERS})
    nb = bnb.MixedNB(numbers="gaussian", categories={"a": [0.5, 1.5, 2.5, 3.5]}).fit(frame, Y)
    assert nb.kinds_ == {"a": "categorical", "b": "categorical", "c": "gaussian"}
    assert bnb.TAN(categories={"a": [0.5, 1.5, 2.5, 3.5]}).fit(frame, Y).categories_[0].tolist() == [0.5, 1.5, 2.5, 3.5]
    named = bnb.MixedNB(numbers="gaussian", alpha={"a": {0.5: 2.0, 4.5: 1.0}}).fit(frame, Y)
    assert named.kinds_ == nb.kinds_


def test_booleans_of_a_list_are_no_numbers():
    rows = [[bool(v > 0.5), float(v)] for v in NUMBERS]
    assert bnb.MixedNB(numbers="gaussian").fit(rows, Y).kinds_ == {"0": "categorical", "1": "gaussian"}
    mixed = [[v, float(u)] for v, u in zip([True, 1, 0, False, 2] * 8, NUMBERS, strict=True)]
    assert bnb.MixedNB(numbers="gaussian").fit(mixed, Y).kinds_ == {"0": "categorical", "1": "gaussian"}


@pytest.mark.parametrize("dtype", [None, object, "float64"])
def test_large_integers_are_numbers_in_every_container(dtype):
    x = [2**60 + (i if dtype != "float64" else 300 * i) for i in range(N)]
    assert bnb.MixedNB(numbers="gaussian").fit(pd.DataFrame({"id": pd.Series(x, dtype=dtype)}), Y).kinds_ == {
        "id": "gaussian"
    }


def test_levels_of_decimals_are_numbers_in_files(tmp_path):
    cells = [[Decimal("0.1")], [Decimal("2")], [Decimal("0.1")]]
    nb = bnb.CategoricalNB().fit(cells, ["a", "b", "a"])
    assert nb.categories_[0].tolist() == [0.1, 2]
    bnb.save(nb, tmp_path / "nb.bnb")
    np.testing.assert_array_equal(
        bnb.load(tmp_path / "nb.bnb").predict_proba([[0.1], [2.0]]), nb.predict_proba(cells[:2])
    )


# -- dates and durations -------------------------------------------------------------------------

WHEN = pd.DataFrame({"when": pd.to_datetime(COLUMNS["date"]), "late": pd.to_timedelta(COLUMNS["duration"])})


def test_dates_warn_once_of_hours_and_weekdays():
    with pytest.warns(UserWarning, match=r"'when'.*days since 1970.*weekdays") as warned:
        bnb.WeightedNB(bnb.MixedNB()).fit(WHEN, Y)
    assert sum("days since 1970" in str(w.message) for w in warned) == 1
    with pytest.warns(UserWarning, match="days since 1970"):
        bnb.MixedNB().partial_fit(WHEN[:20], Y[:20], [0, 1])


@pytest.mark.filterwarnings("ignore:.*count as numbers, in days")
def test_time_zones_are_instants():
    there = pd.DataFrame({"when": WHEN["when"].dt.tz_localize("UTC").dt.tz_convert("Asia/Shanghai")})
    expected = bnb.MixedNB().fit(WHEN[["when"]], Y).predict_proba(WHEN[["when"]])
    np.testing.assert_allclose(bnb.MixedNB().fit(there, Y).predict_proba(there), expected, rtol=1e-12)
    objects = there.astype(object)
    np.testing.assert_array_equal(
        bnb.MixedNB().fit(objects, Y).predict_proba(objects), bnb.MixedNB().fit(there, Y).predict_proba(there)
    )


@pytest.mark.filterwarnings("ignore:.*count as numbers, in days")
@pytest.mark.parametrize("nb", [bnb.MixedNB(), bnb.KDB(), bnb.WeightedNB(bnb.GaussianNB())], ids=repr)
def test_numbers_are_no_dates_and_dates_no_numbers(nb, tmp_path):
    nb.fit(WHEN, Y)
    assert nb.time_units_ == {"when": "days", "late": "seconds"}
    bnb.save(nb, tmp_path / "nb.bnb")
    loaded = bnb.load(tmp_path / "nb.bnb")
    np.testing.assert_array_equal(loaded.predict_proba(WHEN), nb.predict_proba(WHEN))
    for fitted in (nb, loaded):
        refused(r"'when'.*are no dates or durations.*fitted to dates", fitted.predict, WHEN.assign(when=1.0))
    numbers = bnb.MixedNB().fit(WHEN.assign(when=NUMBERS, late=NUMBERS), Y)
    refused(r"'when'.*are dates.*fitted to no dates", numbers.predict, WHEN)


@pytest.mark.filterwarnings("ignore:.*count as numbers, in days")
def test_a_batch_of_numbers_after_dates_is_refused_and_changes_nothing():
    nb = bnb.GaussianNB().partial_fit(WHEN[:20], Y[:20], [0, 1])
    before = nb.class_count_
    refused("fitted to dates", nb.partial_fit, WHEN[20:].assign(when=3.0), Y[20:])
    np.testing.assert_array_equal(nb.class_count_, before)
    np.testing.assert_allclose(
        nb.partial_fit(WHEN[20:], Y[20:]).predict_proba(WHEN), bnb.GaussianNB().fit(WHEN, Y).predict_proba(WHEN)
    )


@pytest.mark.filterwarnings("ignore:.*count as numbers, in days")
@pytest.mark.parametrize("container", CONTAINERS)
def test_missing_dates_are_marginalised_in_every_container(container):
    """A row without a date has no kind of its own: it is no row of numbers."""
    columns = columns_of(["date", "duration", "number"], True)
    X = CONTAINERS[container](columns)
    nb = bnb.MixedNB(numbers="gaussian").fit(X, Y)
    gone = {name: [None] * N for name in ("date", "duration")} | {"number": columns["number"]}
    expected = bnb.MixedNB(numbers="gaussian").fit(canonical(columns), Y)
    frame = canonical(columns).assign(date=np.nan, duration=np.nan)
    np.testing.assert_allclose(nb.predict_proba(CONTAINERS[container](gone)), expected.predict_proba(frame), rtol=1e-9)
    if container == "pandas":
        some = np.arange(N) == 3
        bnb.WeightedNB(bnb.MixedNB()).fit(X.assign(date=X["date"].astype(object).where(some, None)), Y)


def test_rows_without_labels_have_the_units_of_the_others():
    with pytest.warns(UserWarning, match="days since 1970"):
        em = bnb.fit_em(bnb.MixedNB(), WHEN[:20], Y[:20], X_unlabeled=WHEN[20:])
    assert em.estimator.time_units_ == {"when": "days", "late": "seconds"}
    refused("fitted to dates", bnb.fit_em, bnb.MixedNB(), WHEN[:20], Y[:20], X_unlabeled=WHEN[20:].assign(when=1.0))


def test_dates_after_rows_without_any_are_told():
    nb = bnb.MixedNB().partial_fit(WHEN.assign(when=None), Y, [0, 1])
    with pytest.warns(UserWarning, match=r"'when' counts as categorical"):
        nb.partial_fit(WHEN.astype(object), Y)


def test_durations_of_months_are_refused_with_their_column():
    with pytest.raises(ValueError, match=r"column '0'.*durations cannot be converted to seconds"):
        bnb.GaussianNB().fit(np.arange(N).astype("m8[M]")[:, None], Y)


# -- batches, halves and files -------------------------------------------------------------------


def test_levels_of_the_first_rows_that_become_numbers_are_told():
    x = np.concatenate([np.zeros(10), NUMBERS])[:, None]
    y = np.arange(len(x)) % 2
    nb = bnb.MixedNB().partial_fit(x[:10], y[:10], [0, 1])
    with pytest.warns(UserWarning, match=r"'0' counts as categorical.*name it in `gaussian`"):
        nb.partial_fit(x[10:], y[10:])


def test_halves_have_the_kinds_of_all_rows():
    """A column of three numbers of which one is rare has two values in most halves."""
    x = np.where(np.arange(N) == 7, 5.0, np.arange(N) % 2)
    X = np.column_stack([x, NUMBERS])
    nb = bnb.MixedNB(numbers="gaussian").fit(X, Y)
    assert nb.refit(X[8:], Y[8:]).kinds_ == nb.kinds_ == {"0": "gaussian", "1": "gaussian"}


def test_rows_without_weight_decide_nothing():
    X = np.column_stack([np.arange(N) % 2 + 4.0 * (np.arange(N) == 7), NUMBERS])
    weighted = bnb.MixedNB(numbers="gaussian").fit(X, Y, np.arange(N) != 7)
    assert weighted.kinds_ == bnb.MixedNB(numbers="gaussian").fit(X[np.arange(N) != 7], Y[np.arange(N) != 7]).kinds_


def test_parquet_decimals_are_numbers(tmp_path):
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(in_arrow({"amount": COLUMNS["decimal"], "y": Y.tolist()}), path)
    nb = bnb.fit_stream(bnb.MixedNB(numbers="gaussian"), bnb.streaming.read_table(path, "y"), progress=False)
    expected = bnb.MixedNB(numbers="gaussian").fit(NUMBERS[:, None], Y)
    assert nb.kinds_ == {"amount": "gaussian"}
    np.testing.assert_allclose(
        nb.predict_proba(pd.DataFrame({"amount": NUMBERS})), expected.predict_proba(NUMBERS[:, None]), rtol=1e-9
    )


def test_an_object_array_of_a_column_transformer():
    from sklearn.compose import ColumnTransformer

    frame = pd.DataFrame({"a": NUMBERS, "b": COLUMNS["text"]})
    X = ColumnTransformer([("keep", "passthrough", ["b", "a"])]).fit_transform(frame)
    assert X.dtype == object
    assert bnb.MixedNB(numbers="gaussian").fit(X, Y).kinds_ == {"0": "categorical", "1": "gaussian"}
