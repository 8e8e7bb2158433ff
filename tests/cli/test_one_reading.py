"""One reading of a table: `fit`, `score`, `drift` and `compare` see the same values in CSV, gzip and Parquet."""

import gzip
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from threading import Thread

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import bayesnb as bnb
from bayesnb.cli import labelled_data, tables
from bayesnb.cli.large_files import find_reading, known_levels, load_model
from bayesnb.cli.reading import Marks, Reading, read_frames
from tests.cli.test_compare import load, refused_run, run
from tests.cli.test_tables import customers

N = 24
LABELS = ["no", "yes", "yes"] * (N // 3)
OTHERS = [round(0.1 * i * i, 2) for i in range(N)]


def dates(*days):
    return [None if day is None else datetime(2024, 1, day) for day in days]


def dictionary(values):
    return pa.array(values).dictionary_encode().cast(pa.dictionary(pa.uint8(), pa.array(values).type))


# Name: texts of a column in CSV, the same column in Parquet, flags, and the values, None where a cell is missing.
LEVELS, MISS = ["DE", "NA", "FR"], ["--missing", "-9"]
CASES = {
    "texts": (["red", "green", "blue"], ["red", "green", "blue"], [], ["red", "green", "blue"]),
    "blanks": ([" red", "green ", "red"], [" red", "green ", "red"], [], ["red", "green", "red"]),
    "quotes": (['"a ""b"""', '"c, d"', '"e\nf"'], ['a "b"', "c, d", "e\nf"], [], ['a "b"', "c, d", "e\nf"]),
    "inches": (['5" pipe', '6"', "7"], ['5" pipe', '6"', "7"], [], ['5" pipe', '6"', "7"]),
    "empty texts": (["", "b", "c"], ["", "b", "c"], [], [None, "b", "c"]),
    "quoted empty texts": (['""', "b", "c"], ["", "b", "c"], [], [None, "b", "c"]),
    "blank texts": (["  ", "b", "c"], ["  ", "b", "c"], [], [None, "b", "c"]),
    "null beside empty": (["", "b", ""], [None, "b", ""], [], [None, "b", None]),
    "usual marks": (["NA", "nan", "x"], ["NA", "nan", "x"], [], [None, None, "x"]),
    "country codes": (LEVELS, LEVELS, ["--not-missing", "NA"], LEVELS),
    "question marks": (["?", "b", "c"], ["?", "b", "c"], ["--missing", "?"], [None, "b", "c"]),
    "a level '?'": (["?", "b", "c"], ["?", "b", "c"], [], ["?", "b", "c"]),
    "mark of a number": (["-9", "2", "3.5"], [-9, 2, 3.5], MISS, [None, 2, 3.5]),
    "mark of a whole number": (["-9", "2", "3"], [-9, 2, 3], MISS, [None, 2, 3]),
    "mark in other spellings": (["-9.0", "-9", "3"], [-9.0, -9.0, 3.0], MISS, [None, None, 3]),
    "mark among texts": (["-9", "b", "c"], ["-9", "b", "c"], MISS, [None, "b", "c"]),
    "mark in one column": (["0", "2", "3.5"], [0, 2, 3.5], ["--missing-in", "0", "x"], [None, 2, 3.5]),
    "mark in another column": (["0", "2", "3.5"], [0, 2, 3.5], ["--missing-in", "0", "y"], [0, 2, 3.5]),
    "whole numbers": (["1", "2", "3"], pa.array([1, 2, 3], pa.int8()), [], [1, 2, 3]),
    "unsigned numbers": (["1", "2", "3"], pa.array([1, 2, 3], pa.uint16()), [], [1, 2, 3]),
    "signs": (["+1", "-2", "3"], [1, -2, 3], [], [1, -2, 3]),
    "whole numbers beside null": (["1", "", "3"], [1, None, 3], [], [1, None, 3]),
    "fractions": (["1.5", "-2", ".25"], [1.5, -2, 0.25], [], [1.5, -2, 0.25]),
    "exponents": (["1e3", "2E-1", "3"], [1e3, 0.2, 3], [], [1e3, 0.2, 3]),
    "float32": (["1.5", "2.5", "3"], pa.array([1.5, 2.5, 3], pa.float32()), [], [1.5, 2.5, 3]),
    "NaN": (["1.5", "nan", "3"], [1.5, float("nan"), 3], [], [1.5, None, 3]),
    "decimals": (["1.50", "2.25", "3"], [Decimal("1.50"), Decimal("2.25"), Decimal("3.00")], [], [1.5, 2.25, 3]),
    "large decimals": (
        ["1", "1e40", "3"],
        pa.array([Decimal(1), Decimal(10) ** 40, Decimal(3)], pa.decimal256(45, 0)),
        [],
        [1, 1e40, 3],
    ),
    "beyond 2^53": ([str(2**53 + 1), "2", "3"], [2**53 + 1, 2, 3], [], [2**53 + 1, 2, 3]),
    "beyond 2^63": (
        [str(2**63 + 2**20), "2", "3"],
        pa.array([2**63 + 2**20, 2, 3], pa.uint64()),
        [],
        [float(2**63 + 2**20), 2, 3],
    ),
    "two numbers": (["0", "1", "1"], [0, 1, 1], [], [0, 1, 1]),
    "leading zeros": (["0100", "100", "100"], ["0100", "100", "100"], [], ["0100", "100", "100"]),
    "leading zeros as numbers": (["007", "8", "10"], ["007", "8", "10"], ["--numeric", "x"], [7, 8, 10]),
    "numbers as levels": (["1", "2", "3"], [1, 2, 3], ["--categorical", "x"], ["1", "2", "3"]),
    "thousands": (['"1,037"', '"2,111"', '"9"'], ["1,037", "2,111", "9"], [], ["1,037", "2,111", "9"]),
    "Booleans": (["true", "False", "TRUE"], [True, False, True], [], [True, False, True]),
    "Booleans beside null": (["true", "", "false"], [True, None, False], [], [True, None, False]),
    "words of Booleans": (["true", "false", "maybe"], ["true", "false", "maybe"], [], ["true", "false", "maybe"]),
    "dates": (["2024-01-01", "2024-01-02", ""], dates(1, 2, None), [], dates(1, 2, None)),
    "times": (
        ["2024-01-01 06:00", "2024-01-02", "2024-01-03"],
        [datetime(2024, 1, 1, 6), *dates(2, 3)],
        [],
        [datetime(2024, 1, 1, 6), *dates(2, 3)],
    ),
    "times in a zone": (
        ["2024-01-01T01:00:00+01:00"] * 2 + ["2024-01-02T00:00:00Z"],
        [d.replace(tzinfo=UTC) for d in dates(1, 1, 2)],
        [],
        [d.replace(tzinfo=UTC) for d in dates(1, 1, 2)],
    ),
    "no dates": (
        ["2024-02-30", "2024-01-02", "2024-01-02"],
        ["2024-02-30", "2024-01-02", "2024-01-02"],
        [],
        ["2024-02-30", "2024-01-02", "2024-01-02"],
    ),
    "a dictionary": (["a", "b", "c"], dictionary(["a", "b", "c"]), [], ["a", "b", "c"]),
    "a dictionary of numbers": (["1", "2", "3"], dictionary([1, 2, 3]), ["--categorical", "x"], ["1", "2", "3"]),
    "large texts": (["a", "b", "c"], pa.array(["a", "b", "c"], pa.large_string()), [], ["a", "b", "c"]),
}
FORMATS = ("csv", "csv.gz", "parquet")


def write(folder, cells, column, *, separator=",", line_end="\n", encoding="utf-8", before="", decimal="."):
    """Write the rows to a CSV file, the same file packed, and a Parquet file; return the paths by format."""
    others = [str(z).replace(".", decimal) for z in OTHERS]
    rows = zip(cells * (N // 3), others, LABELS, strict=True)
    lines = [separator.join(["x", "z", "y"]), *(separator.join(row) for row in rows)]
    content = (before + line_end.join(lines) + line_end).encode(encoding)
    column = column if isinstance(column, pa.Array) else pa.array(column)
    columns = {"x": pa.concat_arrays([column] * (N // 3)), "z": pa.array(OTHERS), "y": pa.array(LABELS)}
    paths = {kind: folder / f"table.{kind}" for kind in FORMATS}
    paths["csv"].write_bytes(content)
    paths["csv.gz"].write_bytes(gzip.compress(content))
    parquet.write_table(pa.table(columns), paths["parquet"])
    return paths


def opened(path):
    return tables.open_csv(path) if path.suffix != ".parquet" else tables._open_parquet(path)


def flag(path):
    return ["--parquet" if path.suffix == ".parquet" else "--csv", path]


def values_of(column):
    """Values of a column as Python objects, None where a cell is missing."""
    return [
        None if pd.isna(v) else v.to_pydatetime() if isinstance(v, pd.Timestamp) else v for v in column.astype(object)
    ]


def marks_of(flags):
    marks = {"--missing": [], "--not-missing": [], "--missing-in": []}
    for name, *rest in zip(flags, flags[1:], [*flags[2:], None], strict=False):
        if name in marks:
            marks[name].append(rest)
    within = {column: frozenset([mark]) for mark, column in marks["--missing-in"]}
    return Marks(frozenset(m for m, _ in marks["--missing"]), within, frozenset(m for m, _ in marks["--not-missing"]))


def check_all(capsys, folder, paths, flags, expected, fitted_on):
    """All commands, on all formats, see the expected values of the column x."""
    expected = expected * (N // 3)
    present = [v for v in expected if v is not None]
    are_two = isinstance(present[0], int | float) and len({*present}) < 3 and len(present) >= 10
    is_level = isinstance(present[0], str | bool) or are_two
    marks, chosen = marks_of(flags), {"--categorical": {"x": "categorical"}, "--numeric": {"x": "gaussian"}}
    kinds = chosen.get(flags[0], {}) if flags else {}
    for path in paths.values():
        data = labelled_data.load(opened(path), "y", Reading(marks), kinds, None, [], whole=True)
        data = labelled_data.count_levels(data, kinds)
        assert values_of(data.rows.X["x"]) == expected, path
        assert (data.kinds["x"] == "categorical") == is_level
        assert data.missing.get("x", 0) == expected.count(None)
    models = {}
    for kind in fitted_on:
        model = models[kind] = folder / f"model of {kind}"
        command = ["fit", *flag(paths[kind]), "--target", "y", "--model", model, "--estimator", "mixed", *flags]
        code, said, err = run(capsys, *command)
        assert (code, err) == (0, "")
        assert f"missing cells: {expected.count(None)} of {2 * N};" in said
        nb = load_model(model)
        assert (nb.kinds_["x"] == "categorical") == is_level
        if is_level:
            assert sorted(known_levels(nb)["x"]) == sorted({*present})
    for model in models.values():
        nb = load_model(model)
        truth = pd.DataFrame({"x": pd.Series(expected, dtype=object), "z": OTHERS})
        proba = nb.predict_proba(truth)
        for path in paths.values():
            table = opened(path)
            (X,) = read_frames(table, find_reading(nb, table, Marks()), ["x", "z"])
            assert values_of(X["x"]) == expected, (model, path)
            np.testing.assert_allclose(nb.predict_proba(X), proba, rtol=1e-12)
            tests = bnb.check_drift(nb, X)
            assert not (tests["p"] < 0.5).any()
    return models


@pytest.mark.parametrize("name", CASES)
def test_a_column_has_the_same_values_everywhere(capsys, tmp_path, name):
    cells, column, flags, expected = CASES[name]
    kind = FORMATS[list(CASES).index(name) % 3]
    check_all(capsys, tmp_path, write(tmp_path, cells, column), flags, expected, [kind])


FORMS = {
    "byte order mark": {"encoding": "utf-8-sig"},
    "carriage returns": {"line_end": "\r"},
    "both line ends": {"line_end": "\r\n"},
    "semicolons": {"separator": ";", "decimal": ","},
    "semicolons and points": {"separator": ";"},
    "tabs": {"separator": "\t", "decimal": ","},
    "sep= line": {"before": "sep=;\n", "separator": ";"},
    "sep= of a rare separator": {"before": "sep=|\r\n", "separator": "|", "line_end": "\r\n"},
    "blank lines": {"line_end": "\n\n"},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_form_of_a_file_does_not_change_its_values(capsys, tmp_path, form):
    cells = ["1,5" if form.get("decimal") else "1.5", '"-2"', ""]
    check_all(capsys, tmp_path, write(tmp_path, cells, [1.5, -2, None], **form), [], [1.5, -2, None], ["csv"])


@pytest.mark.parametrize("content", [b"", b"\0" * 999], ids=["whole", "padded with NUL bytes"])
def test_packed_files_in_members_and_with_padding(capsys, tmp_path, content):
    """As programs write files in blocks; a name without .gz does not matter."""
    paths = write(tmp_path, ["a", "b", ""], ["a", "b", None])
    packed = paths["csv"].read_bytes()
    for path in (paths["csv.gz"], tmp_path / "packed.csv"):
        path.write_bytes(gzip.compress(packed[:50]) + gzip.compress(packed[50:]) + content)
    paths["named csv"] = tmp_path / "packed.csv"
    check_all(capsys, tmp_path, paths, [], ["a", "b", None], ["csv.gz"])


@pytest.mark.slow("fits each format of each file")
@pytest.mark.parametrize(("cells", "column", "flags", "expected"), CASES.values(), ids=CASES)
def test_a_model_of_one_format_reads_the_others(capsys, tmp_path, cells, column, flags, expected):
    """Exit codes of `drift`, and P by `score`, for each format under the model of each."""
    paths = write(tmp_path, cells, column)
    models = check_all(capsys, tmp_path, paths, flags, expected, FORMATS)
    scores = []
    for model in models.values():
        for path in paths.values():
            assert run(capsys, "drift", *flag(path), "--model", model, "--target", "y")[0] == 0
            out = tmp_path / "out.parquet"
            assert run(capsys, "score", *flag(path), "--model", model, "--out", out, "--overwrite")[0] == 0
            scores.append(pd.read_parquet(out))
    for table in scores:
        pd.testing.assert_frame_equal(table, scores[0])


# -- the model holds how its table was read --------------------------------------------------------


@pytest.fixture
def countries(tmp_path):
    """A table in which NA is a country, whose customers nearly always stay; the columns x and number say little."""
    rng = np.random.default_rng(0)
    country = rng.choice(["NA", "DE", "FR"], 600)
    stays = rng.random(600) < np.where(country == "NA", 0.98, 0.5)
    number = np.where(rng.random(600) < 0.3, -9, rng.integers(1, 90, 600))
    data = pd.DataFrame({"country": country, "number": number, "y": np.where(stays, "stays", "leaves")})
    data.to_csv(tmp_path / "countries.csv", index=False)
    data.to_parquet(tmp_path / "countries.parquet")
    return data


@pytest.mark.parametrize("other", ["csv", "parquet"])
def test_commands_that_fit_prints_read_as_fit_did(capsys, monkeypatch, countries, tmp_path, other):
    monkeypatch.chdir(tmp_path)
    marks = ["--not-missing", "NA", "--missing", "-9"]
    base = ["--csv", "countries.csv", "--model", "m"]
    code, said, _ = run(capsys, "fit", *base, "--target", "y", "--estimator", "mixed", *marks)
    assert code == 0
    score, drift = re.findall(r"python -m bayesnb (.+)\n", said + "\n")
    file = f"--{other} countries.{other}"
    for command in (score, drift):
        assert run(capsys, *command.replace("--csv FILE", file).replace("SCORES", "scores").split())[0] == 0
    scores = pd.read_csv("scores.csv")
    missing = countries["number"].where(countries["number"] != -9)
    truth = bnb.MixedNB().fit(countries[["country"]].assign(number=missing), countries["y"])
    expected = truth.predict_proba(countries[["country"]].assign(number=missing))
    np.testing.assert_allclose(scores[["P(leaves)", "P(stays)"]], expected, rtol=1e-9)
    assert scores["P(stays)"][countries["country"] == "NA"].min() > 0.9
    same = ["score", *file.split(), "--model", "m", "--out", "scores.csv", "--overwrite"]
    assert run(capsys, *same, *marks)[0] == 0  # as they are in the model
    for flags in (
        ["--missing", "-9"],
        ["--not-missing", "NA", "--missing", "?"],
        [*marks, "--missing-in", "0", "number"],
    ):
        err = refused_run(capsys, "fitted to a table with other marks of missing cells", *same, *flags)
        assert "--missing -9" in err


def test_compare_reads_by_a_model(capsys, countries, tmp_path):
    """The columns, types and marks of the model, and no other columns."""
    marks = ["--not-missing", "NA", "--missing", "-9"]
    file, model = ["--csv", tmp_path / "countries.csv", "--target", "y"], ["--model", tmp_path / "m"]
    assert run(capsys, "fit", *file, *model, "--categorical", "number", "--estimator", "mixed", *marks)[0] == 0
    countries.assign(other=1.5).to_csv(tmp_path / "countries.csv", index=False)
    code, said, err = run(capsys, "compare", *file, *model, "--weights", "none")
    assert (code, err) == (0, "")
    present = countries["number"][countries["number"] != -9]
    levels = f"{present.nunique()} levels, {600 - len(present)} missing"
    assert f"categorical: country (3 levels), number ({levels})" in " ".join(said.split())
    assert "left out: other, " in said
    refused_run(
        capsys, "fitted to a table with other marks of missing cells", "compare", *file, *model, "--missing", "?"
    )


def test_the_reading_survives_counting_and_files(capsys, countries, tmp_path):
    flags = ["--csv", tmp_path / "countries.csv", "--target", "y", "--model", tmp_path / "m", "--not-missing", "NA"]
    for estimator in ("mixed", "weighted"):
        assert run(capsys, "fit", *flags, "--estimator", estimator, "--overwrite")[0] == 0
        nb = bnb.load(tmp_path / "m")
        assert nb.reading_["types"] == {"country": "level", "number": "number", "y": "level"}
        assert nb.reading_["not_missing"] == ["NA"]
        nb.partial_fit(countries[["country", "number"]], countries["y"])
        bnb.save(nb, tmp_path / "again")
        assert bnb.load(tmp_path / "again").reading_ == nb.reading_
    for damaged in (
        {},
        {**nb.reading_, "types": {"country": "word"}},
        {**nb.reading_, "missing": [3]},
        {**nb.reading_, "types": {}},
    ):
        nb.reading_ = damaged
        bnb.save(nb, tmp_path / "again")
        refused_run(capsys, "reading_", "score", *flags[:2], "--model", tmp_path / "again", "--out", tmp_path / "o.csv")


def test_a_model_fitted_in_python_takes_texts_of_parquet_as_they_stand(tmp_path):
    """Without a stored reading: marks of CSV files, and none in Parquet files, where null marks a missing cell."""
    data = pd.DataFrame({"x": ["NA", " a", ""] * 8, "y": [0, 1, 1] * 8})
    nb = bnb.CategoricalNB().fit(data[["x"]], data["y"])
    paths = write(tmp_path, ["NA", " a", ""], ["NA", " a", ""])
    for kind, expected in (("csv", [None, "a", None]), ("parquet", ["NA", " a", ""])):
        nb.feature_names_in_ = np.array(["x"], dtype=object)
        table = opened(paths[kind])
        (X,) = read_frames(table, find_reading(nb, table, Marks()), ["x"])
        assert values_of(X["x"])[:3] == expected


def test_a_remark_of_fit_is_repeated_by_drift(capsys, tmp_path):
    """A change of a column of currency texts, each a level of its own, cannot be seen by tests of levels."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {"price": [f"${p:,.0f}" for p in rng.integers(500, 1500, 900)], "y": rng.choice(["a", "b"], 900)}
    )
    data.to_csv(tmp_path / "t.csv", index=False)
    flags = ["--csv", tmp_path / "t.csv", "--model", tmp_path / "m"]
    notes = [
        run(capsys, "fit", *flags, "--target", "y", "--estimator", "categorical")[1],
        run(capsys, "drift", *flags)[1],
    ]
    for said in notes:
        assert "note: price: The cells are numbers written as text" in " ".join(said.split())


def test_numbers_written_as_text_are_no_identifiers(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f'"{1037 + 11 * i:,}",{"ab"[i % 2]},{i * i / 7}' for i in range(60)]
    path.write_text("\n".join(["amount,y,z", *rows]))
    assert "numbers written as text" in load(path, "y").left_out["amount"]


def test_codes_with_leading_zeros_are_noted_once(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("zip,area,y\n" + "0100,01,a\n100,1,b\n100,1,b\n" * 9)
    for command in (["fit", "--model", tmp_path / "m"], ["compare"]):
        code, said, _ = run(capsys, *command, "--csv", path, "--target", "y")
        assert code == 0
        assert " ".join(said.split()).count("zip, area: some numbers begin with 0, as codes do") == 1


# -- malformed files -------------------------------------------------------------------------------


def test_a_stray_quote_that_swallows_rows_is_noted(capsys, tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"a{i % 3},{i * i / 7},{'pq'[i % 2]}" for i in range(90)]
    rows[20], rows[60] = '"a1,3,p', 'a1",3,p'
    path.write_text("\n".join(["x,z,y", *rows]))
    code, said, _ = run(capsys, "fit", "--csv", path, "--target", "y", "--model", tmp_path / "m")
    assert code == 0
    assert "t.csv, row 22: the cell of column 'x' has 41 lines" in " ".join(said.split())
    path.write_text("\n".join(["x,z,y", *("a,1,p",) * 9, '"a\nb\nc\nd\ne",2,q', *("b,3,q",) * 9]))
    code, said, _ = run(capsys, "fit", "--csv", path, "--target", "y", "--model", tmp_path / "m", "--overwrite")
    assert (code, "lines" in said) == (0, False)


def test_pipes_are_read(capsys, tmp_path):
    """A pipe, gzipped or not, is read once, and the commands may read its rows twice."""
    data, pipe = customers(), tmp_path / "pipe"
    text = data.to_csv(index=False).encode()
    (tmp_path / "t.csv").write_bytes(text)
    os.mkfifo(pipe)
    score = ["score", "--model", tmp_path / "m", "--out", tmp_path / "o.csv", "--overwrite"]
    fit = ["fit", "--target", "label", "--estimator", "mixed", "--model", tmp_path / "m", "--overwrite"]

    def run_on(source, command, content):
        if source is pipe:
            Thread(target=pipe.write_bytes, args=[content], daemon=True).start()
        code, out, err = run(capsys, *command, "--csv", source)
        assert (code, err) == (0, "")
        return re.sub(r"[\d.]+ seconds", "", out)

    commands = (fit, text), (score, gzip.compress(text)), (["drift", "--model", tmp_path / "m"], gzip.compress(text))
    found, expected = (
        [*(run_on(source, *command) for command in commands), (tmp_path / "o.csv").read_text()]
        for source in (pipe, tmp_path / "t.csv")
    )
    assert found == expected
    refused_run(capsys, "a pipe or a device cannot be read as Parquet", *score, "--parquet", pipe)


def test_copies_of_rows_are_noted(capsys, tmp_path):
    data = customers(150)
    pd.concat([data, data]).to_csv(tmp_path / "t.csv", index=False)
    said = f"{len(data):,} of {2 * len(data):,} rows are equal to an earlier row in every cell: random halves"
    flags = ["--csv", tmp_path / "t.csv", "--target", "label"]
    for command in (["fit", "--model", tmp_path / "m"], ["compare", "--weights", "none"]):
        code, out, err = run(capsys, *command, *flags)
        assert code == 0
        assert said in out + err


def spoil(content, rng):
    """Content of a file with a few random mistakes: bytes changed, cut out, put in, or rows cut short or repeated."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at, size = rng.integers(len(data)), rng.integers(1, 30)
        match rng.integers(5):
            case 0:
                data[at : at + size] = rng.integers(0, 256, size, np.uint8).tobytes()
            case 1:
                del data[at : at + size]
            case 2:
                data[at:at] = rng.choice([b'"', b",", b"\n", b"\r", b"\0", b"\xff", b'"\n"', b",,\n"])
            case 3:
                data = data[: max(1, at)]
            case _:
                data += data[-size:]
    return bytes(data)


@pytest.mark.parametrize("kind", FORMATS)
def test_malformed_files_end_in_one_line(capsys, tmp_path, kind):
    rng = np.random.default_rng(0)
    paths = write(tmp_path, ["a", '"b\nc"', ""], ["a", "b", None])
    flags, whole = flag(paths[kind]), paths[kind].read_bytes()
    assert run(capsys, "fit", *flags, "--target", "y", "--model", tmp_path / "m", "--estimator", "mixed")[0] == 0
    codes = []
    for _ in range(24):
        paths[kind].write_bytes(spoil(whole, rng))
        for command in (
            ["fit", "--target", "y", "--estimator", "categorical"],
            ["score", "--out", tmp_path / "o.csv"],
            ["drift"],
        ):
            model = tmp_path / ("other" if command[0] == "fit" else "m")
            options = ["--overwrite"] if command[0] != "drift" else []
            code, _, err = run(capsys, *command, *flags, "--model", model, *options)
            codes.append(code)
            assert code in (0, 2, 3)
            assert err.count("\n") == (code == 2), err
            assert "Traceback" not in err
    assert 2 in codes


@pytest.mark.slow("starts processes that import JAX")
def test_no_thread_outlives_an_error(tmp_path):
    """The process ended by a signal in half of the runs when a thread still read a file whose last row is ragged."""
    path = tmp_path / "t.csv"
    for last in ("1,p\n", "1,p,x,9\n"):
        path.write_text("a,b,y\n" + "1,p,x\n2,q,z\n" * 200 + last)
        command = [sys.executable, "-m", "bayesnb", "fit", "--csv", path, "--target", "y", "--model", tmp_path / "m"]
        for _ in range(5):
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr


# -- the guard of inputs ---------------------------------------------------------------------------


def test_no_command_replaces_a_file_that_it_reads(capsys, tmp_path):
    data = customers()
    parts = tmp_path / "parts"
    parts.mkdir()
    data.to_parquet(parts / "1.parquet")
    data.to_csv(tmp_path / "weather-comparison.csv", index=False)
    (tmp_path / "link.parquet").symlink_to(parts / "1.parquet")
    (tmp_path / "hard.parquet").hardlink_to(parts / "1.parquet")
    flags = ["--parquet", parts, "--model", tmp_path / "m"]
    assert run(capsys, "fit", *flags, "--target", "label", "--estimator", "mixed")[0] == 0
    loss = tmp_path / "t-comparison.csv"
    loss.write_text('action,stayed,"left, at last"\nwait,0,9\ncall,1,0\n')
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    for out in (parts / "1.parquet", tmp_path / "link.parquet", tmp_path / "hard.parquet"):
        refused_run(capsys, "is a file that the command reads", "score", *flags, "--out", out, "--overwrite")
    refused_run(capsys, "is in the folder that the command reads", "score", *flags, "--out", parts / "2.parquet")
    for command in (
        ["drift", *flags, "--reference", parts],
        ["score", "--parquet", tmp_path / "link.parquet", *flags[2:]],
    ):
        refused_run(capsys, "is a file that the command reads", *command, "--out", parts / "1.parquet", "--overwrite")
    data.to_csv(tmp_path / "t.csv", index=False)
    compare = ["--csv", tmp_path / "t.csv", "--target", "label", "--loss", loss, "--out", tmp_path, "--overwrite"]
    refused_run(capsys, "t-comparison.csv is a file that the command reads", "compare", *compare)
    assert {path: path.read_bytes() for path in before} == before


def test_names_that_are_too_long(capsys, tmp_path):
    customers().to_csv(tmp_path / "t.csv", index=False)
    flags, long = ["--csv", tmp_path / "t.csv", "--model", tmp_path / "m"], tmp_path / ("o" * 300 + ".csv")
    assert run(capsys, "fit", *flags, "--target", "label", "--estimator", "mixed")[0] == 0
    for command in (
        ["score", *flags, "--out", long],
        ["drift", *flags, "--out", long],
        ["fit", *flags[:2], "--target", "label", "--model", long],
    ):
        refused_run(capsys, "cannot be written: File name too long", *command)


ODD_PARQUET = {
    "labels that are lists": ({"x": [1.0, 2.0] * 9, "y": [["p"], ["q"]] * 9}, "column 'y': a cell of type list"),
    "lists": ({"x": [["p"], ["q"]] * 9, "y": ["p", "q"] * 9}, "column 'x': a cell of type list"),
    "bytes": (
        {"x": pa.array([b"ab", b"cd"] * 9, pa.binary(2)), "y": ["p", "q"] * 9},
        "'x': a cell of type fixed_size_binary",
    ),
}


@pytest.mark.parametrize(("columns", "message"), ODD_PARQUET.values(), ids=ODD_PARQUET)
def test_columns_of_parquet_that_are_neither_numbers_nor_texts(capsys, tmp_path, columns, message):
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    flags = ["--parquet", tmp_path / "t.parquet", "--target", "y", "--model", tmp_path / "m"]
    refused_run(capsys, message, "fit", *flags)


@pytest.mark.parametrize("column", ["x", "z"])
def test_a_damaged_page_of_parquet_names_file_and_column(capsys, tmp_path, column):
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=4000), "z": [f"t{i}" for i in range(4000)], "y": ["p", "q"] * 2000})
    path = tmp_path / "t.parquet"
    parquet.write_table(table, path, use_dictionary=False)
    chunk = parquet.ParquetFile(path).metadata.row_group(0).column("xz".index(column))
    content = bytearray(path.read_bytes())
    content[chunk.data_page_offset : chunk.data_page_offset + 9] = bytes(9)  # the header of a page
    path.write_bytes(content)
    refused_run(
        capsys, f"t.parquet', column '{column}': ", "fit", "--parquet", path, "--target", "y", "--model", tmp_path / "m"
    )
