"""The command line on files larger than memory gives the results of reading the file whole."""

import tracemalloc
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

from bayesnb.cli import comparison, labelled_data, tables
from bayesnb.cli.labelled_data import Settings, draw_rows, fit_folds
from tests.cli.test_compare import load, refused_run, weather


@pytest.fixture
def small_memory(monkeypatch):
    """Pretend that no file fits into memory, read pieces of seven rows, and keep 30 rows."""
    monkeypatch.setattr(tables, "available_memory", lambda: 0)
    monkeypatch.setattr(labelled_data, "_MOST_ROWS", 30)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 7)


def both(monkeypatch, *args, **kwargs):
    """Load the same file whole and in pieces, of which 115 rows are kept."""
    whole = load(*args, **kwargs)
    monkeypatch.setattr(labelled_data, "_MOST_ROWS", 115)
    monkeypatch.setattr(tables, "available_memory", lambda: 0)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 7)
    pieces = load(*args, **kwargs)
    assert len(whole.rows.y) == whole.n_rows
    assert len(pieces.rows.y) == 115 < pieces.n_rows
    return whole, pieces


def holes(n=120):
    data = weather(n).assign(number=np.arange(n), code=np.where(np.arange(n) % 3, "01", "2"), empty="")
    data["heat"] = data["heat"].astype(object)
    data.loc[::12, "heat"] = "NA"
    data.loc[3::10, "code"] = "None"
    data.loc[::7, "sky"] = "?"
    return data.assign(name=[f"name {i % 40}" for i in range(n)], size=np.arange(n) % 11)


OTHER = {"sep": ";", "decimal": ",", "encoding": "utf-8-sig", "lineterminator": "\r\n"}


@pytest.mark.parametrize(
    ("options", "form"),
    [
        ({}, {}),
        ({}, OTHER),
        ({"values": ["NA", "None", "nan"]}, {}),
        ({"missing": ["?", "NA"]}, OTHER),
        ({"missing": ["?", "NA"], "kinds": {"id": "categorical", "size": "poisson", "windy": "bernoulli"}}, {}),
        ({"missing": ["NA"], "drop": ["sky", "id", "name", "code"], "default": "gaussian"}, OTHER),
    ],
)
def test_columns_are_those_of_the_whole_file(monkeypatch, tmp_path, options, form):
    path = tmp_path / "holes.csv"
    holes().to_csv(path, index=False, **form)
    whole, pieces = both(monkeypatch, path, **options)
    for what in (
        "name",
        "kinds",
        "levels",
        "class_count",
        "left_out",
        "notes",
        "guessed",
        "n_rows",
        "missing",
        "target",
    ):
        assert getattr(pieces, what) == getattr(whole, what), what
    X = pd.concat([X.assign(label=y) for X, y in pieces.rows.batches()]).sort_index()
    pd.testing.assert_frame_equal(X, whole.rows.X.assign(label=whole.rows.y))


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize(
    "options", [{}, {"kinds": {"windy": "poisson", "size": "multinomial"}}, {"drop": ["sky", "windy", "name", "code"]}]
)
def test_fits_are_those_of_the_whole_file(monkeypatch, tmp_path, options):
    path = tmp_path / "holes.csv"
    holes().to_csv(path, index=False)
    whole, pieces = both(monkeypatch, path, missing=["?", "NA"], **options)
    X, y = whole.rows.X, whole.rows.y
    settings = Settings()
    nb = comparison.classifier(whole, settings)
    fits = fit_folds(comparison.classifier(pieces, settings), pieces, Settings(test_size=0.4))
    (fold,) = fits.folds
    pd.testing.assert_frame_equal(fold.X, X.iloc[fold.rows])
    assert fold.y.tolist() == y[fold.rows].tolist()
    assert Counter(fold.y.tolist()) == {c: round(0.4 * n) for c, n in Counter(pieces.rows.y.tolist()).items()}
    assert (
        fits.description
        == f"{len(fold.y)} rows of a random sample held out, stratified; fitted to the other {120 - len(fold.y)}"
    )
    others = np.setdiff1d(np.arange(len(y)), fold.rows)
    for found, expected in ((fits.nb, clone(nb).fit(X, y)), (fold.nb, clone(nb).fit(X.iloc[others], y[others]))):
        assert found.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-10)
        np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-9)


DEEP = {
    "ragged": (b"1,2.5,x,0\n", [], "row 502: 4 cells, but the first line has 3"),
    "label missing": (b"1,2.5,\n", [], "row 502, column 'y': the label is missing (1 of 1001 rows)"),
    "not a number": (b"1,many,x\n", ["--gaussian", "b"], "row 502, column 'b': 'many' is not a finite number"),
    "infinite": (b"1,-inf,x\n", ["--gaussian", "b"], "row 502, column 'b': '-inf' is not a finite number"),
    "negative": (b"1,-2.5,x\n", ["--poisson", "b"], "row 502, column 'b': -2.5 is negative, which poisson"),
    "no count": (b"1,,x\n", ["--multinomial", "b"], "row 502, column 'b': the cell is missing"),
    "not UTF-8": (b"1,2.5,\xff\n", [], "row 502, column 'y': the text is not UTF-8"),
    "open quote": (b'1,2.5,"x\n', [], "line 502: the quote that opens here is not closed"),
}


@pytest.mark.parametrize("memory", ["whole", "pieces"])
@pytest.mark.parametrize(("line", "flags", "message"), DEEP.values(), ids=DEEP)
def test_a_bad_line_deep_in_the_file(capsys, monkeypatch, tmp_path, line, flags, message, memory):
    good = b"".join(b"%d,%d.5,%s\n" % (i % 4, i % 50, b"xz"[i % 2 : i % 2 + 1]) for i in range(500))
    path = tmp_path / "deep.csv"
    path.write_bytes(b"a,b,y\n" + good + line + good)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 64)
    if memory == "pieces":
        monkeypatch.setattr(tables, "available_memory", lambda: 0)
    refused_run(capsys, message, "compare", "--csv", path, "--target", "y", *flags)


def test_more_levels_than_are_remembered(capsys, small_memory, monkeypatch, tmp_path):
    monkeypatch.setattr(labelled_data, "_MOST_LEVELS", 12)
    path = tmp_path / "wide.csv"
    n = 90
    columns = {
        "sky": np.resize(["sun", "rain"], n),
        "word": [f"w{i % 30}" for i in range(n)],
        "id": [f"id {i}" for i in range(n)],
        "half": ["none" if i % 5 == 0 else f"{i / 7:.3f}" for i in range(n)],
        "heat": np.linspace(0, 1, n),
        "number": np.arange(n),
        "play": np.resize(["no", "yes", "no"], n),
    }
    pd.DataFrame(columns).to_csv(path, index=False)
    data = load(path)
    assert data.kinds == {"sky": "categorical", "heat": "numbers"}
    assert "more than 12 levels" in data.left_out["word"]
    assert "more than 12 levels" in data.left_out["half"]
    assert data.notes["numbers except 'none'; if 'none' marks a missing cell, add --missing 'none'"] == ["half"]
    assert "row numbers" in data.left_out["number"]
    assert load(path, missing=["none"]).kinds["half"] == "numbers"
    assert "more than 12 levels" in load(path, default="categorical").left_out["heat"]
    for flags, message in ((["--target", "play", "--categorical", "word"], "column 'word': more than 12 levels"),):
        refused_run(capsys, message, "compare", "--csv", path, *flags)


@pytest.mark.parametrize("change", ["p,x\n", "p,new\n", "p,\n", "new,x\n", None])
def test_a_file_that_changes_between_the_passes(small_memory, tmp_path, change):
    path = tmp_path / "moving.csv"
    text = "a,y\n" + "p,x\nq,z\n" * 20
    path.write_text(text)
    data = load(path, "y")
    path.write_text(text + change if change else text[: -len("p,x\nq,z\n")])
    with pytest.raises(tables.InputError, match="changed while it was read"):
        fit_folds(comparison.classifier(data, Settings()), data, Settings())


def test_every_sample_is_as_probable_as_any_other():
    y = np.array(["a", "b", "a", "a", "b", "a", "a"])
    found = Counter()
    for seed in range(1000):
        found[tuple(draw_rows(y, 0.4, seed).tolist())] += 1
    rows = {c: np.flatnonzero(y == c).tolist() for c in "ab"}
    samples = {tuple(sorted((*a, b))) for a in combinations(rows["a"], 2) for b in rows["b"]}
    assert set(found) == samples
    assert stats.chisquare(list(found.values())).pvalue > 1e-4


def test_memory_decides(monkeypatch, tmp_path):
    path = tmp_path / "weather.csv"
    weather().to_csv(path, index=False)
    size = path.stat().st_size
    monkeypatch.setattr(labelled_data, "_MOST_ROWS", 30)
    assert not tables.open_csv(path).is_larger_than_memory()
    for available, larger in ((9 * size, True), (200 * size, False)):
        monkeypatch.setattr(tables, "available_memory", lambda available=available: available)
        assert tables.open_csv(path).is_larger_than_memory() is larger
        assert ("read in pieces" in load(path).about) is larger


@pytest.mark.slow("large arrays, many files or long histories")
def test_peak_memory_does_not_grow_with_the_file(monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "available_memory", lambda: 0)
    monkeypatch.setattr(labelled_data, "_MOST_ROWS", 300)
    monkeypatch.setattr(labelled_data, "_MOST_LEVELS", 500)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 16_000)
    peaks = []
    for n in (320_000, 320_000, 1_280_000):  # of tens of pieces of 1 MB
        path = tmp_path / f"{len(peaks)}.csv"
        weather(n).to_csv(path, index=False)
        tracemalloc.start()
        data = load(path)
        fit_folds(comparison.classifier(data, Settings()), data, Settings())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.1 * peaks[1] + 200_000
