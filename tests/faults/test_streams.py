"""Streams of irregular or invalid batches are counted exactly, or refused without a change."""

from typing import Any

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from pyarrow import csv

import bayesnb as bnb
from bayesnb._util import table_files
from bayesnb.streaming import read_arrays, read_table
from tests.raises import refused
from tests.strategies import variants

X = np.array([[0, 1], [1, 2], [2, 0], [0, 0]])
Y = np.array([0, 1, 0, 1])
FRAME = pd.DataFrame(X, columns=["a", "b"])


def fit(nb: Any, batches: Any, **options: Any) -> Any:
    return bnb.fit_stream(nb, iter(batches), progress=False, **options)


def counts(nb: Any) -> list[Any]:
    """Everything counted, by name."""
    return [
        {(c, v): n for c, own in zip(nb.classes_, count, strict=True) for v, n in zip(levels, own, strict=True)}
        for levels, count in zip(nb.categories_, nb.category_count_, strict=True)
    ]


TWICE = counts(bnb.CategoricalNB().fit(np.concatenate([X, X]), np.concatenate([Y, Y])))


@variants(
    "batches",
    [
        [(X, Y), (X[:0], Y[:0]), (X, Y)],
        [(X[:0], Y[:0]), (X, Y), (X, Y), (FRAME.iloc[:0], [])],
        [(X, Y), (X.astype(float), Y)],
        [(X.astype(object), Y), (X.astype(np.int8), Y.astype(float))],
        [(X, Y), (X.tolist(), Y.tolist())],
        [[X, Y], (X, Y.astype(bool))],
        [(FRAME, pd.Series(Y)), (FRAME, pd.Categorical(Y))],
        [(FRAME, pd.Series(Y, index=[7, 7, 1, 0])), (FRAME.set_index(pd.Index([3, 3, 3, 3])), Y)],
        [(X, Y, None), (X, Y, 1)],
    ],
)
def test_the_same_rows_in_another_guise(batches):
    assert counts(fit(bnb.CategoricalNB(), batches)) == TWICE


def test_sparse_and_dense_batches():
    parts = [(sp.csr_array(X), Y), (X, Y), (sp.coo_matrix(X), Y), (sp.csc_array(X.astype(float)), Y)]
    for make, cells in ((bnb.MultinomialNB, X), (bnb.BernoulliNB, X > 0)):
        expected = 4.0 * (np.arange(2)[:, None] == Y) @ cells
        np.testing.assert_array_equal(fit(make(), parts).feature_count_, expected)


def test_labels_of_several_types_are_one_set_of_classes():
    nb = fit(bnb.CategoricalNB(), [(X, Y), (X, Y.astype(str)), (X, Y == 1)])
    assert dict(zip(nb.classes_, nb.class_count_, strict=True)) == {0: 4, 1: 4, "0": 2, "1": 2}


def generator(error: Exception) -> Any:
    yield X, Y
    raise error


@variants(
    ("batches", "error", "message"),
    [
        ([], ValueError, "batches has no rows"),
        ([X], ValueError, r"batch 0 is a ndarray; it must be \(X, y\)"),
        ([(X, Y), (X[:, :1], Y)], ValueError, "1 features"),
        ([(X, Y), (X, Y[:0])], ValueError, "batch 1 has 4 rows in X and 0 labels in y"),
        ([(X, None)], ValueError, "batch 0: y is a NoneType"),
        ([(5, Y)], ValueError, "batch 0: X is a int"),
        ([(X, Y), (X, X)], ValueError, r"y should be a 1d array, got an array of shape \(4, 2\)"),
        ([(X, Y), (X, [0, np.nan, 1, 0])], ValueError, "the label of row 1 is missing"),
        ([(X, Y), (X, Y, [1, 1, -1, 1])], ValueError, "sample_weight.*row 2"),
        ([(X, Y), (X, Y, [1, 1])], ValueError, "sample_weight has shape"),
        ([(FRAME, Y), (FRAME[["b", "a"]], Y)], ValueError, "same order"),
        ([(X, Y), (np.ma.masked_equal(X, 2), Y)], TypeError, "masked"),
        ({"X": X}, ValueError, "batch 0 is a str"),
        ((X, Y), ValueError, "batch 0 is a ndarray"),
        (generator(KeyError("mine")), KeyError, "mine"),
    ],
)
def test_what_is_refused(batches, error, message, tmp_path):
    nb = bnb.CategoricalNB().fit(X[:2], Y[:2])
    before, path = dict(vars(nb)), tmp_path / "checkpoint"
    refused(message, fit, nb, batches, checkpoint=path, every=1, error=error)
    assert vars(nb) == before
    if path.exists():  # of the batches before
        assert bnb.load(path).rows_counted_ == len(X)


# -- checkpoints -----------------------------------------------------------------------------------


def test_classes_may_be_declared_when_all_rows_were_counted_before(tmp_path):
    path = tmp_path / "checkpoint"
    fit(bnb.CategoricalNB(), [(X, Y)], checkpoint=path)
    nb = fit(bnb.CategoricalNB(), [(X, Y)], checkpoint=path, classes=[7])
    whole = fit(bnb.CategoricalNB(), [(X, Y)], classes=[7])
    assert nb.classes_.tolist() == whole.classes_.tolist() == [0, 1, 7]
    for mine, theirs in zip(jax.tree.leaves(nb.statistics_), jax.tree.leaves(whole.statistics_), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@variants("weights", [[0, 1, 2], [1, 0, 2], [1, 2, 0], [0, 0, 1]])
def test_batches_of_no_weight_leave_their_classes(weights, tmp_path):
    path, batches = tmp_path / "checkpoint", [(X + i, Y + i, np.full(4, w)) for i, w in enumerate(weights)]
    expected = bnb.CategoricalNB().fit(*map(np.concatenate, zip(*batches, strict=True)))
    for rows in (batches, [(X[i : i + 1], y[i : i + 1], w[i : i + 1]) for X, y, w in batches for i in range(4)]):
        nb = fit(bnb.CategoricalNB(), rows, checkpoint=path, every=1)
        assert nb.classes_.tolist() == bnb.load(path).classes_.tolist() == expected.classes_.tolist()
        assert counts(nb) == counts(expected)
    assert bnb.load(path).rows_counted_ == 12


@variants("other", [0.5 + 1e-12, 0.7])
def test_a_checkpoint_of_other_hyperparameters_is_refused(other, tmp_path):
    """Differences in the last digits, or inside a long array, count although the message does not show them."""
    path, rows = tmp_path / "checkpoint", np.zeros((4, 2000), int)
    alpha = np.full(2000, 0.5)
    fit(bnb.MultinomialNB(alpha=alpha), [(rows, Y)], checkpoint=path)
    fit(bnb.MultinomialNB(alpha=alpha.copy()), [(rows, Y)], checkpoint=path)
    changed = alpha.copy()
    changed[1000] = other
    refused("and nb is MultinomialNB", fit, bnb.MultinomialNB(alpha=changed), [(rows, Y)], checkpoint=path)


@variants(
    "batch",
    [
        (X.tolist(), Y.tolist()),
        (FRAME, pd.Series(Y)),
        (FRAME, pd.Categorical(Y), 1.0),
        (sp.csr_array(X), Y, np.ones(4)),
        (sp.coo_matrix(X), Y, pd.Series(np.ones(4), index=[3, 2, 1, 0])),
    ],
)
def test_a_batch_may_be_cut_where_a_checkpoint_ends(batch, tmp_path):
    path = tmp_path / "checkpoint"
    make = bnb.MultinomialNB
    frame = isinstance(batch[0], pd.DataFrame)
    fit(make(), [((FRAME if frame else X)[:2], Y[:2])], checkpoint=path)
    nb = fit(make(), [batch], checkpoint=path)
    np.testing.assert_array_equal(nb.feature_count_, (np.arange(2)[:, None] == Y) @ X)


# -- files -----------------------------------------------------------------------------------------

LARGE = 2**53  # above, floats have no odd numbers


def written(folder: Any, *tables: dict[str, list[Any]], format: str = "parquet") -> Any:
    for i, columns in enumerate(tables):
        write = pq.write_table if format == "parquet" else csv.write_csv
        write(pa.table(columns), folder / f"{i}.{format}")
    return folder


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("batch_rows", [2, 1, 6])
def test_integers_beside_missing_cells_stay_integers(format, batch_rows, tmp_path):
    column = [LARGE, LARGE + 1, None, LARGE + 3, LARGE + 1, None]
    path = written(tmp_path, {"a": column, "b": [1, 0, 1, 1, 0, 0], "y": [0, 1] * 3}, format=format)
    stream = read_table(path, "y", batch_rows=batch_rows, format=format)
    nb = fit(bnb.NetworkNB({}, gaussian=None), stream)
    assert [levels.tolist() for levels in nb.categories_] == [[LARGE, LARGE + 1, LARGE + 3], [0, 1]]
    np.testing.assert_array_equal(nb.statistics_.blocks[0].count, [[1, 1, 0, 1, 2], [0, 1, 1, 2, 1]])
    gaussian = fit(bnb.GaussianNB(), read_table(path, "y", columns=["a", "b"], batch_rows=batch_rows, format=format))
    np.testing.assert_array_equal(gaussian.statistics_.blocks[0].count, [[2, 3], [2, 3]])


def test_damaged_files(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,y\n\xff\xfe,p\nb,q\n")
    refused("column 'a': the text is not UTF-8", list, read_table(path, "y"))
    for content in (b"", b"a,a,y\n1,2,p\n", b"a,b,y\n1,2,p\n1,2\n"):
        path.write_bytes(content)
        refused(r"table\.csv", list, read_table(path, "y"))
    whole = tmp_path / "table.parquet"
    pd.DataFrame({"a": range(1000), "y": range(1000)}).to_parquet(whole)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:2000])
    refused(r"cut\.parquet", list, read_table(tmp_path / "cut.parquet", "y"))


def test_a_csv_file_of_another_form(monkeypatch, tmp_path):
    """Other names, another delimiter, and cells with line breaks wherever the file is cut into pieces."""
    monkeypatch.setattr(table_files, "_CSV_PIECE", 64)
    path = tmp_path / "table.csv"
    path.write_text(";;\n" + 'one;"two\nlines";p\n' * 50 + "\n1;2;q\n")
    batches = read_table(path, "y", names=["a", "b", "y"], delimiter=";", batch_rows=7, types={"a": "string"})
    X, y = map(pd.concat, zip(*batches, strict=True))
    assert X.to_numpy().tolist() == [["one", "two\nlines"]] * 50 + [["1", "2"]]
    assert y.tolist() == ["p"] * 50 + ["q"]


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"1,2\n", "row 7: 2 cells, but the first line has 3"),
        (
            b"1,x,p\n",
            "row 7, column 'b': 'x' is no int64, the type of the column. Give the type of the column in types=",
        ),
        (b"1,2,\xff\n", "row 7, column 'y': the text is not UTF-8"),
    ],
)
@pytest.mark.parametrize("names", [None, ["a", "b", "y"]])
def test_where_a_csv_file_is_bad(monkeypatch, tmp_path, line, message, names):
    for name in ("_CSV_BLOCK", "_CSV_PIECE"):
        monkeypatch.setattr(table_files, name, 16)
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b,y\n" + b"1,2,p\n" * 5 + line + b"3,4,q\n")
    refused(rf"table\.csv', {message}", list, read_table(path, "y", names=names))


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize(
    "arrays",
    [
        (X, np.concatenate([Y, Y])),
        (np.concatenate([X, X]), Y),
        (X, Y, np.ones(8)),
        (X, Y, np.ones(2)),
        (sp.csr_array(X), Y[:2]),
    ],
)
def test_arrays_of_different_lengths_are_refused(arrays):
    refused("inconsistent numbers of samples", fit, bnb.MultinomialNB(), read_arrays(*arrays, batch_rows=4))


def test_arrays_keep_what_they_are():
    """Names of columns, sparseness, types of a list's cells, masks."""
    nb = fit(bnb.CategoricalNB(), read_arrays(FRAME, pd.Series(Y, index=[9, 8, 7, 6]), batch_rows=2))
    assert nb.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(nb.class_count_, [2, 2])
    sparse = fit(bnb.MultinomialNB(), read_arrays(sp.csr_array(X), Y, batch_rows=3))
    np.testing.assert_array_equal(sparse.feature_count_, (np.arange(2)[:, None] == Y) @ X)
    mixed = fit(bnb.CategoricalNB(), read_arrays([["u", 1], ["v", 2], ["u", 1]], ["p", "q", "p"], batch_rows=2))
    assert [levels.tolist() for levels in mixed.categories_] == [["u", "v"], [1, 2]]
    refused("masked", fit, bnb.CategoricalNB(), read_arrays(np.ma.masked_equal(X, 2), Y), error=TypeError)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_every_file_has_the_columns(format, tmp_path):
    small, large = {"a": [1, 2], "y": [0, 1]}, {"a": [1, 2], "b": [3, 4], "y": [0, 1]}
    for name, tables, message in (
        ("less", (large, small), r"1\.\w+' has no column 'b'"),
        ("more", (small, large), r"1\.\w+' has a column 'b'"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        with pytest.raises(ValueError, match=message):
            fit(bnb.CategoricalNB(), read_table(written(folder, *tables, format=format), "y", format=format))
    chosen = fit(bnb.CategoricalNB(), read_table(folder, "y", columns=["a"], format=format))
    assert chosen.category_count_[0].tolist() == [[2, 0], [0, 2]]


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize(
    "options", [{"columns": ["a", "a"]}, {"columns": ["a", "y"]}, {"weight": "y"}, {"columns": ["a"], "weight": "a"}]
)
def test_a_column_is_asked_for_twice(options, tmp_path):
    refused("is asked for twice", list, read_table(written(tmp_path, {"a": [1, 2], "y": [0, 1]}), "y", **options))
