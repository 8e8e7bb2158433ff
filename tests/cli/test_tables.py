"""The commands `fit`, `score` and `drift` on files: the numbers of the functions on the rows; bad files and flags."""

import gzip
import re
import shlex
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import bayesnb as bnb
from bayesnb._util import table_files
from bayesnb.cli import labelled_data, large_files, reading, tables
from tests.cli.test_compare import refused_run, run


def read_exactly(path, **options):
    """Table of a CSV file with its numbers to the last bit, which pandas 2 rounds by default."""
    return pd.read_csv(path, float_precision="round_trip", **options)


def customers(n=400, seed=3):
    """A table of levels, numbers, whole numbers, Booleans, missing cells, an identifier and row numbers."""
    rng = np.random.default_rng(seed)
    left = rng.random(n) < 0.4
    data = pd.DataFrame(
        {
            "number": np.arange(n),
            "id": [f"c{i}" for i in rng.permutation(n)],
            "income, EUR": np.round(np.exp(rng.normal(10 + left, 1)), 2),
            "visits": rng.poisson(3 + 2 * left),
            "région": rng.choice(["nord", "süd", 'the "east"'], n),
            "member": rng.random(n) < 0.3 + 0.4 * left,
            "label": np.where(left, "left, at last", "stayed"),
        }
    )
    data.loc[::9, "income, EUR"] = np.nan
    data.loc[::11, "région"] = None
    return data


FEATURES = ["income, EUR", "visits", "région", "member"]


@pytest.fixture
def pieces(monkeypatch):
    """Read few rows at a time, and keep a sample of 150 rows."""
    monkeypatch.setattr(table_files, "_CSV_PIECE", 1000)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 40)
    monkeypatch.setattr(labelled_data, "_MOST_ROWS", 150)


@pytest.fixture
def path(tmp_path):
    customers().to_csv(tmp_path / "customers.csv", index=False)
    return tmp_path / "customers.csv"


@pytest.fixture
def model(tmp_path):
    bnb.save(bnb.MixedNB(numbers="gaussian").fit(customers()[FEATURES], customers()["label"]), tmp_path / "nb.model")
    return tmp_path / "nb.model"


def assert_same(found, expected, X):
    """Two classifiers have the same classes, counts and predictions."""
    assert found.classes_.tolist() == expected.classes_.tolist()
    np.testing.assert_array_equal(found.class_count_, expected.class_count_)
    assert found.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-10)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-9)


# -- fit -----------------------------------------------------------------------------------------


def test_a_file_that_fits_into_the_sample_is_fitted_as_its_rows(capsys, path, tmp_path):
    data = customers()
    code, out, err = run(
        capsys, "fit", "--csv", path, "--target", "label", "--model", tmp_path / "m", "--estimator", "mixed"
    )
    assert (code, err) == (0, "")
    found = bnb.load(tmp_path / "m")
    assert found.feature_names_in_.tolist() == FEATURES
    assert_same(found, bnb.MixedNB().fit(data[FEATURES], data["label"]), data[FEATURES])
    assert "400 rows, 2 classes (left, at last: " in out
    assert "left out: number (consecutive integers" in out
    assert "left out: id (every value is different" in out
    missing = int(data[FEATURES].isna().sum().sum())
    assert f"missing cells: {missing} of 1,600;" in out


@pytest.mark.usefixtures("pieces")
def test_all_rows_of_a_longer_file_are_counted_once(capsys, path, tmp_path):
    """Given the densities and cells that the sample chose, the posterior is that of all rows."""
    data = customers()
    assert (
        run(capsys, "fit", "--csv", path, "--target", "label", "--model", tmp_path / "m", "--estimator", "mixed")[0]
        == 0
    )
    found = bnb.load(tmp_path / "m")
    kinds = {kind: [n for n, k in found.kinds_.items() if k == kind] or None for kind in set(found.kinds_.values())}
    expected = bnb.MixedNB(**kinds, edges=found.edges_ or None).fit(data[FEATURES], data["label"])
    assert_same(found, expected, data[FEATURES])


@pytest.mark.usefixtures("pieces")
def test_weights_of_a_sample_and_counts_of_all_rows(capsys, path, tmp_path):
    flags = ["--csv", path, "--target", "label", "--model", tmp_path / "m", "--drop", "number,id"]
    code, out, _ = run(capsys, "fit", *flags)
    assert code == 0
    found, data = bnb.load(tmp_path / "m"), customers()
    assert isinstance(found, bnb.WeightedNB)
    assert found.weights_.n_rows <= 150 < found.class_count_.sum() == len(data)
    np.testing.assert_array_equal(found.class_count_, data["label"].value_counts().sort_index())
    assert "a random sample of 150 rows chose weights" in out


def test_the_sample_has_all_rows_with_equal_probability():
    """The number of times that a row is in 400 samples of 20 of 50 rows is binomial (5 standard deviations)."""
    times = np.zeros(50)
    rows = pa.record_batch({"x": np.arange(50)})
    rng = reading.Reservoir(20)._rng
    for _ in range(400):
        reservoir = reading.Reservoir(20)
        reservoir._rng = rng
        for start in range(0, 50, 7):
            reservoir.add(rows.slice(start, 7))
        sample, number = reservoir.sample()
        assert number.tolist() == sorted(number) == sample.column("x").to_pylist()
        assert len(number) == 20
        times[number] += 1
    assert abs(times - 160).max() < 5 * np.sqrt(400 * 0.4 * 0.6)


def test_a_kind_of_columns_a_code_and_integer_labels(capsys, tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("zip,x,y\n" + "01100,1,1\n1100,2,0\n01100,3,1\n" * 10)
    flags = ["--csv", path, "--target", "y", "--model", tmp_path / "m"]
    assert run(capsys, "fit", *flags, "--estimator", "categorical", "--categorical", "zip")[0] == 0
    found = bnb.load(tmp_path / "m")
    assert found.classes_.tolist() == [0, 1]
    assert [levels.tolist() for levels in found.categories_] == [["01100", "1100"], [1, 2, 3]]
    refused_run(capsys, "already exists. Choose another file, or replace it with --overwrite", "fit", *flags)
    before = path.read_text()
    onto_itself = ["--csv", path, "--target", "y", "--model", path, "--overwrite"]
    refused_run(capsys, "is a file that the command reads", "fit", *onto_itself)
    onto_rows = ["--csv", path, "--model", tmp_path / "m", "--out", path, "--overwrite"]
    refused_run(capsys, "is a file that the command reads", "score", *onto_rows)
    assert path.read_text() == before
    assert run(capsys, "fit", *flags, "--estimator", "gaussian", "--overwrite")[0] == 0
    assert isinstance(bnb.load(tmp_path / "m"), bnb.GaussianNB)


def test_semicolons_decimal_commas_blanks_marks_and_gzip(capsys, tmp_path):
    data = customers().drop(columns=["number", "id"])
    path = tmp_path / "customers.csv.gz"
    text = data.to_csv(index=False, sep=";", decimal=",", na_rep=" ?").replace(";nord", "; nord ")
    path.write_bytes(gzip.compress(text.encode()))
    flags = ["--csv", path, "--target", "label", "--model", tmp_path / "m", "--estimator", "mixed", "--missing", "?"]
    assert run(capsys, "fit", *flags)[0] == 0
    assert_same(bnb.load(tmp_path / "m"), bnb.MixedNB().fit(data[FEATURES], data["label"]), data[FEATURES])


def test_a_parquet_file_with_dictionaries_and_decimals(capsys, tmp_path):
    data = customers()
    table = pa.table(
        {
            "income, EUR": [None if np.isnan(x) else Decimal(f"{x:.2f}") for x in data["income, EUR"]],
            "visits": pa.array(data["visits"], pa.int16()),
            "région": pa.array(data["région"], pa.string(), from_pandas=True).dictionary_encode(),
            "member": data["member"],
            "label": pa.array(data["label"]).dictionary_encode(),
        }
    )
    folder = tmp_path / "parts"
    folder.mkdir()
    parquet.write_table(table[:170], folder / "0.parquet")
    parquet.write_table(table[170:], folder / "1.parquet")
    model, out = tmp_path / "m", tmp_path / "scores.parquet"
    flags = ["--parquet", folder, "--target", "label", "--model", model, "--estimator", "mixed"]
    assert run(capsys, "fit", *flags)[0] == 0
    assert_same(bnb.load(model), bnb.MixedNB().fit(data[FEATURES], data["label"]), data[FEATURES])
    assert run(capsys, "score", "--parquet", folder, "--model", model, "--out", out, "--keep", "région")[0] == 0
    scores = pd.read_parquet(out)
    assert scores["région"].astype(object).fillna("").tolist() == data["région"].fillna("").tolist()
    np.testing.assert_allclose(scores["P(stayed)"], bnb.load(model).predict_proba(data[FEATURES])[:, 1], rtol=1e-12)


HEADER = "a,b,y\n"
ROWS = "1,p,x\n2,q,z\n" * 20
BAD = {
    "text in a column of numbers": (["--numeric", "b"], "row 2, column 'b': 'p' is not a finite number"),
    "not numbers": (["--estimator", "gaussian"], "column 'b'"),
    "mark twice": (["--missing", "-", "--not-missing", "-"], "given to --missing and to --not-missing"),
    "no folder": (["--model", "nowhere/m"], "nowhere/m cannot be written"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_fitted_is_refused_in_one_line(capsys, monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(table_files, "_CSV_PIECE", 64)
    flags, message = BAD[name]
    (tmp_path / "table.csv").write_text(HEADER + ROWS)
    refused_run(capsys, message, "fit", "--csv", "table.csv", "--target", "y", "--model", "m", *flags)
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_other_paths_are_refused(capsys, tmp_path, path):
    target = ["--target", "label", "--model", tmp_path / "m"]
    refused_run(capsys, "No such file", "fit", "--csv", tmp_path / "none.csv", *target)
    refused_run(capsys, "No such file", "fit", "--parquet", tmp_path / "none", *target)
    refused_run(capsys, "directory", "fit", "--csv", tmp_path, *target)
    refused_run(capsys, "arquet", "fit", "--parquet", path, *target)
    (tmp_path / "folder").mkdir()
    refused_run(capsys, "the folder has no files", "fit", "--parquet", tmp_path / "folder", *target)
    refused_run(capsys, "one of the arguments --csv --parquet is required", "fit", *target)
    parquet.write_table(pa.table({"label": ["p", "q"] * 9, "at": pa.array([1, 2] * 9, pa.time32("s"))}), tmp_path / "t")
    times = ["fit", "--parquet", tmp_path / "t", "--target", "label", "--model", tmp_path / "m"]
    refused_run(capsys, "column 'at': a cell of type time32[ms] is not a number or a text", *times)
    assert run(capsys, *times, "--categorical", "at")[0] == 0


def test_all_cells_of_a_column_decide_and_a_flag_overrides_them(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(table_files, "_CSV_PIECE", 64)
    path = tmp_path / "table.csv"
    path.write_text(f"{HEADER}{ROWS * 9}1.5,many,x\n".replace("p", "1").replace("q", "0"))
    flags = ["--csv", path, "--target", "y", "--model", tmp_path / "m", "--estimator", "mixed"]
    assert run(capsys, "fit", *flags)[0] == 0
    kinds = bnb.load(tmp_path / "m").kinds_
    assert kinds["a"] in ("gaussian", "binned")
    assert kinds["b"] == "categorical"
    refused_run(
        capsys, "row 362, column 'b': 'many' is not a finite number", "fit", *flags, "--numeric", "b", "--overwrite"
    )
    assert run(capsys, "fit", *flags, "--categorical", "a", "--overwrite")[0] == 0
    assert bnb.load(tmp_path / "m").kinds_["a"] == "categorical"


# -- score ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("pieces")
def test_scores_are_those_of_the_rows(capsys, path, model, tmp_path):
    """Columns in another order, further ones, a column that is kept and used, and levels that are new."""
    nb, data = bnb.load(model), customers(seed=8)
    data.loc[[3, 5, 7], "région"] = ["ouest", "ouest", "'west'"]
    data["id"] = [f"00{i}" for i in range(len(data))]
    data[data.columns[::-1]].to_csv(path, index=False)
    out = tmp_path / "scores.csv"
    flags = ["--csv", path, "--model", model, "--out", out, "--keep", "id,visits"]
    code, said, err = run(capsys, "score", *flags)
    assert (code, err) == (0, "")
    assert "ignored columns: label, number\n" in said
    assert re.search(rf"400 rows; {data[FEATURES].isna().sum().sum()} missing cells; 3 cells with levels", said)
    scores = read_exactly(out, dtype={"id": str})
    assert list(scores) == ["id", "visits", "prediction", "P(left, at last)", "P(stayed)"]
    assert scores["id"].tolist() == data["id"].tolist()
    assert scores["visits"].tolist() == data["visits"].tolist()
    np.testing.assert_allclose(scores.iloc[:, 3:], nb.predict_proba(data[FEATURES]), rtol=1e-14)
    assert scores["prediction"].tolist() == nb.predict(data[FEATURES]).tolist()
    refused_run(capsys, "already exists", "score", *flags)
    assert run(capsys, "score", *flags, "--overwrite")[0] == 0


def test_decisions_and_intervals(capsys, path, model, tmp_path):
    nb, X = bnb.load(model), customers()[FEATURES]
    loss = pd.DataFrame({"stayed": [0, 1.5], "left, at last": [9, 0]}, index=["wait", "call"])
    loss.to_csv(tmp_path / "loss.csv")
    out = tmp_path / "scores.csv"
    flags = ["--csv", path, "--model", model, "--out", out]
    assert run(capsys, "score", *flags, "--loss", tmp_path / "loss.csv", "--interval", "0.8")[0] == 0
    scores, expected = read_exactly(out), bnb.decide(nb, X, loss)
    assert scores["decision"].tolist() == expected.action.tolist()
    np.testing.assert_allclose(scores["expected loss"], expected.risk, rtol=1e-12)
    for end, values in zip(("lower", "upper"), bnb.predict_interval(nb, X, 0.8), strict=True):
        np.testing.assert_allclose(scores[[f"P({c}) {end}" for c in nb.classes_]], values, rtol=1e-12)
    (tmp_path / "loss.csv").write_text("action,stayed,gone\nwait,0,9\ncall,1,0\n")
    message = "--loss loss.csv: loss has the columns ['stayed', 'gone'], but the classes are"
    refused_run(capsys, message.split(": ")[1], "score", *flags, "--overwrite", "--loss", tmp_path / "loss.csv")


@pytest.mark.parametrize("excel_safe", [False, True])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_data_files_are_verbatim_unless_they_are_asked_to_be_safe_in_excel(capsys, tmp_path, suffix, excel_safe):
    """Labels + and -, identifiers as phone numbers and user names: accuracy and joins on the written file are right."""
    data = pd.DataFrame({"@id": ["=1+1", "+49170", "-3", "@u", " b "] * 8, "x": np.arange(40.0), "y": ["+", "-"] * 20})
    data.to_csv(tmp_path / "table.csv", index=False)
    nb = bnb.GaussianNB().fit(data[["x"]], data["y"])
    bnb.save(nb, tmp_path / "m")
    out = tmp_path / f"out.{suffix}"
    flags = ["--csv", tmp_path / "table.csv", "--model", tmp_path / "m", "--keep", "@id", "--out", out]
    code, said, _ = run(capsys, "score", *flags, *["--excel-safe"] * excel_safe)
    is_quoted = excel_safe and suffix == "csv"
    assert (code, "begin with an apostrophe (--excel-safe)" in said) == (0, is_quoted)
    scores = pd.read_csv(out, dtype={0: str}) if suffix == "csv" else pd.read_parquet(out)
    quote = "'" if is_quoted else ""
    assert list(scores)[:2] == [f"{quote}@id", "prediction"]
    assert scores.iloc[:5, 0].tolist() == [f"{quote}=1+1", "+49170", "-3", f"{quote}@u", " b "]
    assert scores["prediction"].tolist() == [f"{quote}{label}" for label in nb.predict(data[["x"]])]


def test_scores_are_new_rows_of_the_same_table(capsys, tmp_path):
    """Scores join with the rows by an identifier, and cells that are kept are those of the rows to `drift --target`."""
    rng = np.random.default_rng(0)
    y = rng.choice(["+", "-"], 300)
    data = pd.DataFrame({"id": [f"+4917{i:04}" for i in range(300)], "x": rng.normal(2.0 * (y == "+")), "y": y})
    data.to_csv(tmp_path / "table.csv", index=False)
    flags = ["--csv", tmp_path / "table.csv", "--model", tmp_path / "m"]
    assert run(capsys, "fit", *flags, "--target", "y", "--drop", "id", "--estimator", "gaussian")[0] == 0
    assert run(capsys, "score", *flags, "--out", tmp_path / "scores.csv", "--keep", "id,x,y")[0] == 0
    scores = read_exactly(tmp_path / "scores.csv", dtype={"id": str})
    joined = data.merge(scores, on=["id", "x", "y"])
    assert len(joined) == 300
    assert (joined["prediction"] == joined["y"]).mean() == bnb.load(tmp_path / "m").score(data[["x"]], data["y"]) > 0.7
    flags[1] = tmp_path / "scores.csv"
    assert run(capsys, "drift", *flags, "--target", "y", "--level", ".99")[0] == 0


def test_what_is_no_model_is_refused(capsys, path, model, tmp_path):
    flags = ["score", "--csv", path, "--out", tmp_path / "out.csv", "--model"]
    broken = tmp_path / "broken"
    broken.write_bytes(model.read_bytes()[:-3])
    refused_run(capsys, "No such file", *flags, tmp_path / "none")
    refused_run(capsys, "only a part of a model", *flags, broken)
    refused_run(capsys, "customers.csv", *flags, path)
    bnb.save(bnb.GaussianNB().fit(np.eye(4), [0, 1, 0, 1]), broken)
    refused_run(capsys, "holds a GaussianNB without names of columns", *flags, broken)
    mixture = bnb.NaiveBayesMixture(2, estimator=bnb.MixedNB()).fit(customers()[FEATURES])
    bnb.save(mixture, broken)
    refused_run(capsys, "holds a NaiveBayesMixture without classes", *flags, broken)
    bnb.text.BagOfWords().fit(["aa bb", "aa bb", "cc"]).save(broken)
    refused_run(capsys, "broken: the file is not a safetensors file", *flags, broken)
    assert not (tmp_path / "out.csv").exists()


def test_columns_of_another_file_are_refused(capsys, path, model, tmp_path):
    flags = ["score", "--csv", path, "--model", model, "--out"]
    customers().rename(columns={"visits": "trips"}).drop(columns="member").to_csv(path, index=False)
    refused_run(capsys, "has no column 'visits', 'member'. Its columns are", *flags, tmp_path / "out.csv")
    customers().astype({"visits": object}).assign(visits=["few", *["2"] * 399]).to_csv(path, index=False)
    refused_run(capsys, "row 2, column 'visits': 'few' is not a finite number", *flags, tmp_path / "out.csv")
    refused_run(capsys, "must end in .csv or .parquet", *flags, tmp_path / "out.txt")
    refused_run(capsys, "has no column 'none'", *flags, tmp_path / "out.csv", "--keep", "none")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError("no")])
@pytest.mark.parametrize("before", [None, "old"])
def test_what_is_not_finished_leaves_no_file(capsys, monkeypatch, path, model, tmp_path, error, before):
    out, score, calls = tmp_path / "out.csv", large_files.Scoring.score, []
    if before:
        out.write_text(before)

    def fail_later(self, X):
        calls.append(X)
        if len(calls) == 3:
            raise error
        return score(self, X)

    monkeypatch.setattr(large_files.Scoring, "score", fail_later)
    code, said, err = run(capsys, "score", "--csv", path, "--model", model, "--out", out, "--overwrite")
    assert (code, said, err.count("\n")) == (130 if error is KeyboardInterrupt else 2, "", 1)
    assert {file.name for file in tmp_path.iterdir()} == {path.name, model.name, *([out.name] if before else [])}
    assert before is None or out.read_text() == before


def test_dates_booleans_whole_levels_and_an_empty_column_in_a_later_file(capsys, tmp_path):
    """The first cells of the later file are missing, so that they alone would give other types."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 300)
    data = pd.DataFrame(
        {
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, 300) + 50 * y, "D"),
            "flag": rng.choice(["true", "false"], 300),
            "code": rng.integers(0, 2, 300),
            "number": rng.normal(y),
            "empty": np.nan,
            "y": np.array(["a", "b"])[y],
        }
    )
    data.to_csv(tmp_path / "old.csv", index=False)
    flags = ["--model", tmp_path / "m", "--csv"]
    assert run(capsys, "fit", *flags, tmp_path / "old.csv", "--target", "y", "--estimator", "mixed")[0] == 0
    data.loc[:9, ["flag", "code", "number"]] = None  # Whole numbers become fractions.
    data.assign(empty="x").to_csv(tmp_path / "new.csv", index=False)
    code, said, _ = run(capsys, "score", *flags, tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert (code, "ignored columns: empty, y\n" in said) == (0, True)
    X = data.drop(columns=["empty", "y"]).assign(flag=data["flag"].map({"true": True, "false": False}))
    expected = bnb.load(tmp_path / "m").predict_proba(X)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv").iloc[:, 1:], expected, rtol=1e-12)


ESTIMATORS = [bnb.WeightedNB(), bnb.TAN(), bnb.AODE(), bnb.BernoulliNB(), bnb.FeatureAveragedNB(bnb.CategoricalNB())]


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("nb", ESTIMATORS, ids=lambda nb: type(nb).__name__)
def test_files_of_other_classifiers_are_scored(capsys, path, tmp_path, nb):
    data = customers()
    X = data[["visits", "member"]] if isinstance(nb, bnb.BernoulliNB) else data[["visits", "région", "member"]]
    bnb.save(nb.fit(X, data["label"]), tmp_path / "m")
    assert run(capsys, "score", "--csv", path, "--model", tmp_path / "m", "--out", tmp_path / "out.csv")[0] == 0
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv").iloc[:, 1:], nb.predict_proba(X), rtol=1e-12)


# -- drift ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("target", [[], ["--target", "label"]], ids=["without labels", "with labels"])
def test_drift_of_a_file_is_that_of_its_rows(capsys, path, model, tmp_path, target):
    """Batches merged; exit code 3 if a q-value is below the level."""
    nb, data = bnb.load(model), customers(seed=9)
    for factor, code in ((1, 0), (3, 3)):
        data["income, EUR"] *= factor
        data.to_csv(path, index=False)
        expected = bnb.check_drift(nb, data[FEATURES], data["label"] if target else None)
        flags = ["--csv", path, "--model", model, "--out", tmp_path / f"tests{factor}.csv", *target]
        found, said, err = run(capsys, "drift", *flags)
        assert (found, err) == (code, "")
        tests = pd.read_csv(tmp_path / f"tests{factor}.csv", index_col="column")
        assert tests.index.tolist() == expected.index.tolist()
        columns = ["statistic", "effect", "p", "q"]
        np.testing.assert_allclose(tests[columns], expected[columns], rtol=1e-7, atol=1e-12)
        drifted = expected.index[expected["q"] < 0.01].tolist()
        assert ("q < 0.01: " + ", ".join(drifted) if drifted else "No q-value is below 0.01.") in said
        assert run(capsys, "drift", *flags[:4], "--level", "1e-300")[0] == 0


@pytest.mark.slow("compiles kernels of its own")
def test_drift_from_a_reference_file(capsys, path, model, tmp_path):
    reference = customers(seed=4)
    reference.to_csv(tmp_path / "reference.csv", index=False)
    expected = bnb.check_drift(bnb.load(model), customers()[FEATURES], reference=reference[FEATURES])
    flags = ["--csv", path, "--model", model]
    flags += ["--reference", tmp_path / "reference.csv", "--out", tmp_path / "out.parquet"]
    assert run(capsys, "drift", *flags)[0] == (3 if (expected["q"] < 0.01).any() else 0)
    found = pd.read_parquet(tmp_path / "out.parquet").set_index("column")
    assert found.index.tolist() == expected.index.tolist()
    np.testing.assert_allclose(found["p"], expected["p"], rtol=1e-6)


@pytest.mark.parametrize("kind", [bool, float])
def test_labels_of_a_parquet_file_are_those_that_fit_has_read(capsys, model, tmp_path, kind):
    data = customers().assign(label=lambda rows: (rows["label"] == "stayed").astype(kind))
    data[[*FEATURES, "label"]].to_parquet(tmp_path / "rows.parquet")
    flags = ["--parquet", tmp_path / "rows.parquet", "--target", "label", "--model", tmp_path / "m"]
    assert run(capsys, "fit", *flags, "--estimator", "mixed")[0] == 0
    assert run(capsys, "drift", *flags)[0] == 0
    bnb.save(bnb.MixedNB().fit(data[FEATURES], data["label"]), tmp_path / "m")
    assert run(capsys, "drift", *flags)[0] == 0
    data.astype({"label": str}).to_csv(tmp_path / "rows.csv", index=False)
    assert run(capsys, "drift", "--csv", tmp_path / "rows.csv", *flags[2:])[0] == 0


def test_what_drift_refuses(capsys, path, model, tmp_path):
    flags = ["drift", "--csv", path, "--model", model]
    refused_run(capsys, "has no column 'none'", *flags, "--target", "none")
    refused_run(capsys, "No such file", *flags, "--reference", tmp_path / "none.csv")
    refused_run(capsys, "must end in .csv or .parquet", *flags, "--out", tmp_path / "out.txt")
    refused_run(capsys, "must be between 0 and 1", *flags, "--level", "2")
    data = customers()
    data.loc[7, "label"] = None
    data.to_csv(path, index=False)
    refused_run(capsys, "customers.csv, rows 2 to 401: ", *flags, "--target", "label")


def test_the_commands_of_the_page(capsys, monkeypatch, tmp_path):
    page = Path(__file__).parents[2] / "docs" / "howto" / "more_rows_than_memory.md"
    commands = re.findall(r"^\$ python -m bayesnb (.+)$", page.read_text(encoding="utf-8"), re.M)
    assert [command.partition(" ")[0] for command in commands] == ["fit", "score", "drift"]
    monkeypatch.chdir(tmp_path)
    customers().rename(columns={"label": "left"}).to_csv("customers.csv", index=False)
    customers(seed=5).drop(columns="label").to_csv("new.csv", index=False)
    codes = [run(capsys, *shlex.split(command))[0] for command in commands]
    assert codes in ([0, 0, 0], [0, 0, 3])
    assert list(pd.read_csv("scores.csv")) == ["id", "prediction", "P(left, at last)", "P(stayed)"]
