"""Fitting a stream equals fitting all rows, for any batches and after any interruption."""

import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import bayesnb as bnb
from bayesnb._util import table_files
from bayesnb.streaming import read_table
from tests.raises import refused
from tests.strategies import CLASSES, KINDS, assert_leaves, problems, thorough, variants

RNG = np.random.default_rng(0)
N = 500
LEVELS = RNG.integers(0, 5, (N, 4))
LEVELS[:450] %= 3  # two levels come late
LABELS = np.sort(RNG.integers(0, 4, N))  # and so do classes
FRAME = pd.DataFrame(
    {
        "a": np.where(LEVELS[:, 0] == 0, None, np.array(list("klmno"))[LEVELS[:, 0]]),
        "b": LEVELS[:, 1],
        "c": RNG.normal(size=N),
        "w": RNG.integers(1, 4, N),
        "y": np.array(list("pqrs"))[LABELS],
    }
)


def batches(X, y, size, weight=None):
    for start in range(0, len(y), size):
        piece = slice(start, start + size)
        yield tuple(part[piece] for part in (X, y, weight) if part is not None)


def same(a, b) -> None:
    assert a.encoding_.classes.values == b.encoding_.classes.values
    for mine, theirs in zip(a.encoding_.blocks, b.encoding_.blocks, strict=True):
        a_levels, b_levels = ([own.values for own in getattr(c, "levels", ())] for c in (mine, theirs))
        assert a_levels == b_levels
    assert_leaves(a.statistics_, b.statistics_, rtol=1e-9)


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", thorough(KINDS))
@settings(max_examples=5)
@given(data=st.data(), size=st.integers(1, 9))
def test_it_is_fit_on_all_rows(kind, data, size):
    problem = data.draw(problems(kind))
    starts = range(0, len(problem), size)
    parts = [problem.take(np.arange(s, min(s + size, len(problem)))) for s in starts]
    stream = ((part.X, part.y, part.weight) for part in parts if part.weight.any())
    nb = bnb.fit_stream(clone(problem.nb), stream, classes=CLASSES, progress=False)
    same(nb, problem.fit())


class Cut(Exception):
    pass


def cut_off(parts, after):
    for i, part in enumerate(parts):
        if i == after:
            raise Cut
        yield part


@variants("every", [1, 60, 10_000])
def test_it_resumes_where_it_was(every, tmp_path):
    path, expected = tmp_path / "checkpoint", bnb.CategoricalNB().fit(LEVELS, LABELS)
    options = {"checkpoint": path, "every": every, "progress": False}
    for size, after in ((37, 4), (11, 20), (50, 0), (23, 18)):
        with pytest.raises(Cut):
            bnb.fit_stream(bnb.CategoricalNB(), cut_off(batches(LEVELS, LABELS, size), after), **options)
    for _ in range(2):  # the second finds all rows counted
        nb = bnb.fit_stream(bnb.CategoricalNB(), batches(LEVELS, LABELS, 29), **options)
        same(nb, expected)
        assert not hasattr(nb, "rows_counted_")
    assert bnb.load(path).rows_counted_ == N


@variants("format", ["csv", "parquet"])
def test_files(format, tmp_path):
    path = tmp_path / f"table.{format}"
    FRAME.to_csv(path, index=False) if format == "csv" else FRAME.to_parquet(path)
    nb = bnb.MixedNB(categorical=["b"], numbers="gaussian")
    stream = read_table(path, "y", weight="w", batch_rows=64)
    expected = bnb.MixedNB(categorical=["b"], numbers="gaussian").fit(FRAME[["a", "b", "c"]], FRAME["y"], FRAME["w"])
    same(bnb.fit_stream(nb, stream, progress=False), expected)
    assert nb.feature_names_in_.tolist() == ["a", "b", "c"]
    some = bnb.fit_stream(nb, read_table(path, "y", columns=["a", "b", "c"], batch_rows=64), progress=False)
    same(some, clone(nb).fit(FRAME[["a", "b", "c"]], FRAME["y"]))


@pytest.mark.slow("compiles kernels of its own")
def test_text_is_counted_by_the_dictionaries_of_a_file(tmp_path):
    """Each group of rows has its own dictionary, and a batch may span several groups."""
    rng = np.random.default_rng(0)
    words = np.array(["ash", "elm", "oak", None], object)
    X = pd.DataFrame({name: np.sort(words[rng.integers(0, 4, N)].astype(str)) for name in "ab"}).replace({"None": None})
    y = rng.choice(["no", "yes"], N)
    X.assign(y=y).to_parquet(tmp_path / "text.parquet", row_group_size=N // 7)
    for nb in (bnb.CategoricalNB(), bnb.MixedNB(), bnb.NetworkNB({"b": "a"})):
        expected = clone(nb).fit(X, y)
        for dictionaries in (True, False):
            parts = list(read_table(tmp_path / "text.parquet", "y", batch_rows=N // 3, dictionaries=dictionaries))
            assert all(hasattr(part.dtypes["a"], "pyarrow_dtype") == dictionaries for part, _ in parts)
            same(bnb.fit_stream(clone(nb), parts, progress=False), expected)
            found = np.concatenate([expected.predict_proba(part) for part, _ in parts])
            np.testing.assert_array_equal(found, expected.predict_proba(X))


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_features_without_labels_in_types_of_choice(format, tmp_path):
    """Texts of codes, decimal commas, and batches for predictions."""
    path = tmp_path / f"rows.{format}"
    if format == "csv":
        path.write_text("code;x;y\n" + "7;1,5;u\n8;2;v\n" * 5)
    else:
        pd.DataFrame({"code": [7, 8] * 5, "x": [1.5, 2.0] * 5, "y": ["u", "v"] * 5}).to_parquet(path)
    options = {"types": {"code": "string"}, "delimiter": ";", "decimal": ",", "batch_rows": 4}
    parts = list(read_table(path, None, columns=["x", "code"], **options))
    assert [len(X) for (X,) in parts] == [4, 4, 2]
    X = pd.concat([X for (X,) in parts])
    assert list(X) == ["x", "code"]
    assert X["code"].tolist() == ["7", "8"] * 5
    assert X["x"].tolist() == [1.5, 2.0] * 5


def test_a_slow_consumer_does_not_fill_the_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(table_files, "_CSV_PIECE", 2**14)
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n" + "1234,text,u\n" * 400_000)
    before = pa.total_allocated_bytes()
    batches = read_table(path, "y", batch_rows=1000)
    next(batches)
    time.sleep(0.3)  # Reading ahead would take less.
    assert pa.total_allocated_bytes() - before < path.stat().st_size / 3
    assert 1000 + sum(len(y) for _, y in batches) == 400_000


def test_checkpoints_and_classifiers_that_cannot_be_used(tmp_path):
    def fit(nb, size=N, **options):
        return bnb.fit_stream(nb, batches(LEVELS[:size], LABELS[:size], 60), progress=False, **options)

    fitted = bnb.CategoricalNB().fit(LEVELS, LABELS)
    refused("every=0", fit, fitted, every=0)
    for nb in (bnb.TAN(), bnb.NaiveBayesMixture()):
        refused("fit_stream needs partial_fit", fit, nb, error=TypeError)
    path = tmp_path / "checkpoint"
    fit(bnb.CategoricalNB(), checkpoint=path)
    said = r"holds CategoricalNB\(\), and nb is CategoricalNB\(alpha=2\)"
    refused(said, fit, bnb.CategoricalNB(alpha=2), checkpoint=path)
    refused("has counted 500 rows, but batches ended after 300", fit, bnb.CategoricalNB(), 300, checkpoint=path)
    bnb.save(fitted, path)
    refused("a model that fit_stream did not write", fit, bnb.CategoricalNB(), checkpoint=path)


def test_a_checkpoint_of_other_rows_is_refused(tmp_path):
    path = tmp_path / "checkpoint"

    def fit(X, y, weight=None, size=60):
        return bnb.fit_stream(bnb.CategoricalNB(), batches(X, y, size, weight), checkpoint=path, progress=False)

    done = fit(LEVELS, LABELS)
    before = path.read_bytes()
    other = LEVELS.copy()
    other[3, 2] += 1
    cases = [
        ((LEVELS[:, :3], LABELS), "X has 3 features, but CategoricalNB is expecting 4"),
        ((LEVELS, LABELS + 7), "has the label 7"),
        ((LEVELS, np.where(np.arange(N) < 450, LABELS, 9)), "batch 7 has the label 9"),
        ((other, LABELS), "row 3 of batches differs in cells, label or weight"),
        ((LEVELS, LABELS[::-1]), "row 0 of batches differs in cells, label or weight"),
        ((LEVELS, LABELS, np.full(N, 2.0)), "row 0 of batches differs in cells, label or weight"),
    ]
    for rows, message in cases:
        refused(f"has counted other rows.*{message}", fit, *rows)
        assert path.read_bytes() == before
    for X, size in ((LEVELS.astype(np.float32), 1), (LEVELS.tolist(), 333), (LEVELS.astype(object), 7)):
        same(fit(X, LABELS, size=size), done)


def test_a_checkpoint_of_bags_of_words(tmp_path):
    path = tmp_path / "checkpoint"
    X, other = sp.csr_array(LEVELS), LEVELS.copy()
    other[1] = other[1][::-1] + 1
    done = bnb.fit_stream(bnb.MultinomialNB(), batches(X, LABELS, 60), checkpoint=path, progress=False)
    for again in (X, LEVELS):
        same(bnb.fit_stream(bnb.MultinomialNB(), batches(again, LABELS, 7), checkpoint=path, progress=False), done)
    with pytest.raises(ValueError, match="row 1 of batches differs in cells, label or weight"):
        bnb.fit_stream(bnb.MultinomialNB(), [(sp.csr_array(other), LABELS)], checkpoint=path, progress=False)


def test_a_checkpoint_without_digests_goes_on(tmp_path):
    """Earlier versions wrote such checkpoints."""
    path, whole = tmp_path / "checkpoint", bnb.CategoricalNB().fit(LEVELS, LABELS)
    parts = cut_off(batches(LEVELS, LABELS, 50), 4)
    with pytest.raises(Cut):
        bnb.fit_stream(bnb.CategoricalNB(), parts, checkpoint=path, every=50, progress=False)
    old = bnb.load(path)
    assert len(old.first_rows_) == 200
    del old.first_rows_
    bnb.save(old, path)
    same(bnb.fit_stream(bnb.CategoricalNB(), batches(LEVELS, LABELS, 60), checkpoint=path, progress=False), whole)


def test_levels_and_labels_that_print_alike_are_told():
    X, y = LEVELS[:20] % 2, LABELS[:20] * 0 + np.arange(20) % 2
    parts = [(X, y), (X.astype(str), y.astype(str)), (X, y), (X.astype(str), y.astype(str))]
    with pytest.warns(bnb.SuspiciousColumnWarning, match="print alike") as told:
        nb = bnb.fit_stream(bnb.CategoricalNB(), parts, progress=False)
    assert nb.classes_.tolist() == [0, 1, "0", "1"]
    (message,) = [str(w.message) for w in told]  # The labels and all columns once, as they are known afterwards.
    assert "labels, '0', '1', '2', '3': Values of two types" in message
    assert "0 (int) and '0' (str), 1 (int) and '1' (str)." in message
