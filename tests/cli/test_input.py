"""Input files of the command line: missing cells, compressed files, unusual names and quotes."""

import gzip
import io
import os
import re
from contextlib import suppress
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pytest

from bayesnb.__main__ import main
from bayesnb.cli import comparison, labelled_data, tables
from bayesnb.streaming import MISSING, read_table
from tests.cli.test_compare import load, refused_run, run, weather
from tests.raises import refused

OTHERS = ["na", "NAN", "Null", "none", "-", "?", "inf", "0", "x"]
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_missing_is_what_pandas_takes_for_missing():
    marks = [*sorted(MISSING), *OTHERS]
    column = pd.read_csv(io.StringIO("x,y\n" + "".join(f"{mark},1\n" for mark in marks)))["x"]
    assert [mark in MISSING for mark in marks] == column.isna().tolist()


@pytest.fixture
def marked(tmp_path):
    """A file where every mark stands among numbers and among levels, and how pandas reads it."""
    path = tmp_path / "marked.csv"
    data = weather(200).drop(columns="id").astype({"heat": object})
    for i, mark in enumerate(sorted(MISSING)):
        data.loc[i, "heat"] = mark
        data.loc[i + 50, "sky"] = mark
    data.to_csv(path, index=False)
    return path, pd.read_csv(path)


@pytest.mark.parametrize("memory", ["whole", "pieces"])
def test_missing_marks_of_pandas_are_missing(monkeypatch, marked, memory):
    path, expected = marked
    if memory == "pieces":
        monkeypatch.setattr(tables, "available_memory", lambda: 0)
        monkeypatch.setattr(tables, "_BATCH_ROWS", 7)
        monkeypatch.setattr(labelled_data, "_MOST_ROWS", 20)
    data = load(path)
    assert data.kinds == {"sky": "categorical", "windy": "categorical", "heat": "numbers"}
    assert sorted(data.levels["sky"]) == ["cloud", "rain", "sun"]
    rows = pd.concat([X for X, _ in data.rows.batches()]).sort_index()
    assert (len(data.rows.y) == len(rows)) == (memory == "whole")
    np.testing.assert_array_equal(rows["heat"], expected["heat"])
    assert rows["sky"].isna().tolist() == expected["sky"].isna().tolist()


def test_a_table_for_fit_stream_has_the_same_missing_cells(marked):
    path, expected = marked
    X = pd.concat([X for X, _ in read_table(path, "play")], ignore_index=True)
    np.testing.assert_array_equal(X["heat"], expected["heat"])
    assert X["sky"].isna().tolist() == expected["sky"].isna().tolist()
    (other,) = (X for X, _ in read_table(path, "play", columns=["sky"], missing=["rain"]))
    raw = pd.read_csv(path, keep_default_na=False, na_values=["rain"])
    assert other["sky"].isna().tolist() == raw["sky"].isna().tolist()


def typed(monkeypatch, *flags):
    """The loaded data set of the command line, before it is fitted."""
    found = []

    def keep(data, settings):
        found.append(data)
        raise tables.InputError("enough")

    with monkeypatch.context() as patched:
        patched.setattr(comparison, "run", keep)
        assert main(["compare", *map(str, flags)]) == 2
    return found[0]


def test_a_mark_that_is_a_value(capsys, monkeypatch, tmp_path):
    path = tmp_path / "countries.csv"
    path.write_text("country,state,y\n" + "NA,None,x\nDE,nan,z\n,full,x\n" * 10)
    plain = load(path, "y")
    assert plain.levels["country"] == ["DE"]
    kept = load(path, "y", values=["NA", "None"])
    assert (kept.levels["country"], kept.levels["state"]) == (["DE", "NA"], ["None", "full"])
    flags = ["--csv", path, "--target", "y", "--not-missing", " NA "]
    assert typed(monkeypatch, *flags).levels["country"] == ["DE", "NA"]
    capsys.readouterr()
    refused_run(capsys, "'NA' is given to --missing and to --not-missing", "compare", *flags, "--missing", "NA")


def test_a_mark_of_some_columns_only(capsys, monkeypatch, tmp_path):
    path = tmp_path / "patients.csv"
    path.write_text("births,glucose,bmi,y\n" + "0,0,0,x\n2,99.5,0.0,y\n0,NA,31.5,x\n" * 10)
    flags = ["--csv", path, "--target", "y"]
    data = typed(monkeypatch, *flags, "--missing-in", 0, "glucose,bmi", "--missing-in", "0.0", "bmi")
    assert data.rows.X.isna().sum().to_dict() == {"births": 0, "glucose": 20, "bmi": 20}
    assert data.levels["births"] == [0, 2]
    assert set(data.notes) == {"all cells that are not missing are equal"}
    for mark in (0, "0.0", "-0", "0e0"):  # a number, however it is spelt
        data = typed(monkeypatch, *flags, "--missing-in", mark, "bmi,births")
        assert data.missing == {"births": 20, "glucose": 10, "bmi": 20}
    data = typed(monkeypatch, *flags, "--missing", "0.00")
    assert data.missing == {"births": 20, "glucose": 20, "bmi": 20}
    capsys.readouterr()
    said = "patients.csv has no column 'glukose'. Its columns are births, glucose, bmi, y."
    refused_run(capsys, said, "compare", *flags, "--missing-in", 0, "glukose")


def test_a_label_that_is_missing_or_is_called_none(capsys, monkeypatch, tmp_path):
    path = tmp_path / "severity.csv"
    path.write_text("a,y\n" + "p,None\nq,mild\np,mild\n" * 10)
    said = "row 2, column 'y': the label is missing (10 of 30 rows). Remove these rows, or add --not-missing 'None'"
    refused_run(capsys, said, "compare", "--csv", path, "--target", "y")
    kept = typed(monkeypatch, "--csv", path, "--target", "y", "--not-missing", "None")
    assert kept.class_count == {"None": 10, "mild": 20}


def test_packed_files(monkeypatch, tmp_path):
    plain, packed = tmp_path / "weather.csv", tmp_path / "weather.csv.gz"
    weather(200).to_csv(plain, index=False)
    content = plain.read_bytes()
    packed.write_bytes(gzip.compress(content[:1000]) + gzip.compress(content[1000:]))
    expected, found = load(plain), load(packed)
    assert found.name == expected.name == "weather"
    pd.testing.assert_frame_equal(found.rows.X, expected.rows.X)
    # What counts is the size of what is in it.
    monkeypatch.setattr(labelled_data, "_MOST_ROWS", 150)
    limit = len(content) * tables._BYTES_A_BYTE
    for available, larger in ((limit - 1, True), (limit, False)):
        monkeypatch.setattr(tables, "available_memory", lambda available=available: available)
        assert ("read in pieces" in load(packed).about) is larger
    monkeypatch.setattr(tables, "available_memory", lambda: 0)
    pieces = load(packed)
    X = pd.concat([X for X, _ in pieces.rows.batches()]).sort_index()
    pd.testing.assert_frame_equal(X, expected.rows.X)
    tables_read = [pd.concat([X for X, _ in read_table(path, "play")]) for path in (plain, packed)]
    pd.testing.assert_frame_equal(*tables_read)


def test_rows_are_counted_as_a_spreadsheet_does(capsys, tmp_path):
    """That of the names is the first, and one with line breaks is one."""
    path = tmp_path / "rows.csv"
    path.write_text('a,y\n"1\n2\n3",x\n2,z\n3,\n')
    _, _, err = run(capsys, "compare", "--csv", path, "--target", "y")
    assert "rows.csv, row 4, column 'y': the label is missing" in err
    path.write_text('a,y\n"1\n2\n3",x\n2,z\n3\n')
    _, _, err = run(capsys, "compare", "--csv", path, "--target", "y")
    assert "rows.csv, row 4: 1 cells" in err


def test_a_last_cell_with_line_breaks_is_no_open_quote(tmp_path):
    path = tmp_path / "notes.csv"
    rows = ['x,"no"', 'z,"a\nb"'] * 9
    for end in ("", "\n", "\r\n\n"):
        path.write_text("\n".join(["y,note", *rows]) + end)
        assert load(path, "y").levels["note"] == ["a\nb", "no"]
    path.write_text("\n".join(["y,note", *rows, 'x,"open', *rows[::2]]).replace('"no"', "no"))
    refused(r"notes\.csv, line 29: the quote that opens here is not closed", load, path, "y", error=tables.InputError)


DAMAGED = {
    "cut": (lambda b: b[:-20], "ended before the end-of-stream marker"),
    "changed": (lambda b: b[:40] + bytes(99) + b[139:], "damaged.csv.gz cannot be read: "),
    "not a table": (
        lambda b: gzip.compress(b"a,y\n1,x\n2,\xff\n"),
        "row 3, column 'y': the text is not UTF-8",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_packed_files(capsys, tmp_path, name):
    spoil, message = DAMAGED[name]
    path = tmp_path / "damaged.csv.gz"
    path.write_bytes(spoil(gzip.compress(weather(200).to_csv(index=False).encode())))
    refused_run(capsys, message, "compare", "--csv", path, "--target", "y" if name == "not a table" else "play")


def test_names_with_commas(capsys, monkeypatch, tmp_path):
    path = tmp_path / "commas.csv"
    weather(200).rename(columns={"heat": "heat, °C", "sky": 'the "sky"'}).to_csv(path, index=False)
    flags = ["--csv", path, "--target", "play"]
    data = typed(monkeypatch, *flags, "--categorical", 'windy,"heat, °C"', "--drop", '"the ""sky""",id')
    assert data.kinds == {"windy": "categorical", "heat, °C": "categorical"}
    capsys.readouterr()
    base = ["compare", *flags]
    err = refused_run(capsys, "no column 'heat'", *base, "--drop", "heat, °C")
    assert """Quote a name that contains a comma: --drop '"width, cm",height'""" in err
    refused_run(capsys, "is not a list of column names", *base, "--drop", '"heat, °C"x')


def test_a_file_without_a_line_of_names(tmp_path):
    path = tmp_path / "bare.csv"
    np.savetxt(path, np.c_[np.linspace(3, 4, 60), np.arange(60) % 2], "%.2f", ",")
    (note,) = (note for note, columns in load(path, "0.00").notes.items() if columns == ["the first line"])
    assert "row of data" in note
    path.write_text("0,1\n" + "3.5,x\n2.5,z\n" * 9)  # as pandas writes a table without names
    assert load(path, "1").notes == {}


@pytest.mark.slow("a second view of what quick tests see")
def test_control_characters_are_not_obeyed(capsys, tmp_path):
    names = {"sky": "\x1b[2Jsky", "windy": "win\u202edy", "play": "\x1b]0;owned\x07play", "heat": "heat\x85\x9b31m"}
    data = weather(60).drop(columns="id").rename(columns=names)
    data[names["sky"]] = data[names["sky"]].replace({"sun": "sun\x1b[31m", "rain": "line\nbreak"})
    data[names["play"]] = data[names["play"]].replace({"no": "no\x01\x7f"})
    path = tmp_path / "weather\x1b[1m.csv"
    data.to_csv(path, index=False)
    code, out, err = run(capsys, "compare", "--csv", path, "--target", names["play"])
    assert (code, err) == (0, "")
    assert not CONTROL.search(out)
    for shown in (r"\x1b[2Jsky=sun\x1b[31m", r"no\x01\x7f", r"win\u202edy", r"weather\x1b[1m"):
        assert shown in out
    for flags in (["--target", "nope"], ["--target", names["sky"], "--drop", "no\x1bpe"], ["--target", names["heat"]]):
        code, out, err = run(capsys, "compare", "--csv", path, *flags)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert not CONTROL.search(err)


def test_zeros_that_may_be_missing_cells_are_told(tmp_path):
    """A note appears only if no other value is near zero: not for counts, nor for small amounts."""
    rng = np.random.default_rng(0)
    n = 200
    often = rng.random(n) < 0.1
    columns = {
        "glucose": np.where(often, 0, rng.normal(120, 20, n).round()),
        "bmi": np.where(often, 0, rng.normal(30, 3, n).round(1)),
        "visits": rng.poisson(8, n),
        "rain": np.where(often, 0, rng.exponential(4, n).round(1)),
        "height": rng.normal(170, 9, n).round(),
        "balance": np.where(often, 0, rng.normal(0, 900, n).round(2)),
        "y": rng.choice(["a", "b"], n),
    }
    path = tmp_path / "clinic.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    data = load(path, "y")
    assert zeros(data) == ["glucose", "bmi"]
    assert zeros(load(path, "y", kinds={"glucose": "gaussian"})) == ["bmi"]
    assert load(path, "y", within={"glucose": ["0"], "bmi": ["0"]}).notes == {}


def zeros(data):
    """Columns whose zeros may be missing cells, by the note."""
    return [name for note, columns in data.notes.items() if "some cells are 0" in note for name in columns]


def test_columns_of_one_value_stay_and_are_noted(tmp_path):
    path = tmp_path / "constant.csv"
    path.write_text("unit,zero,gap,x,y\n" + "kg,0,a,1.5,p\nkg,0,,2.25,q\n" * 9)
    data = load(path, "y")
    assert [*data.kinds] == ["unit", "zero", "gap", "x"]
    assert data.notes == {"all cells that are not missing are equal": ["unit", "zero", "gap"]}


def test_marks_that_are_numbers_leave_codes_and_values_alone(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("zip,x,y\n" + "00,0,p\n0,0.0,q\n01,1.5,p\n1_0,10.0,q\n" * 9)
    data = load(path, "y", missing=["0", "10"], kinds={"x": "gaussian"})
    assert data.levels["zip"] == ["00", "01", "1_0"]
    assert data.missing == {"zip": 9, "x": 27}
    kept = load(path, "y", missing=["0"], values=["0.0"], kinds={"x": "gaussian"})
    assert kept.missing == {"zip": 9, "x": 9}
    path.write_text("x;label\n" + "-9,9;0\n1,5;1\n" * 9)
    assert load(path, "label", missing=["-9,9"]).missing == {"x": 9}
    refused("--not-missing '0'", load, path, "label", missing=["0.0"], error=tables.InputError)
    assert load(path, "label", missing=["0.0"], values=["0"]).class_count == {0: 9, 1: 9}


def test_a_device_or_a_pipe_without_text_is_not_read_to_its_end(tmp_path):
    if not Path("/dev/zero").exists():
        pytest.skip("needs /dev/zero, which this system does not have")
    with pytest.raises(tables.InputError, match=r"/dev/zero is a device\. Use a file or a pipe"):
        tables.open_csv(Path("/dev/zero"))
    os.mkfifo(tmp_path / "pipe")

    def pour():
        with suppress(BrokenPipeError), (tmp_path / "pipe").open("wb") as pipe:
            for _ in range(1000):
                pipe.write(bytes(2**20))

    writer = Thread(target=pour)
    writer.start()
    refused("pipe: the text has a NUL character", tables.open_csv, tmp_path / "pipe", error=tables.InputError)
    writer.join(timeout=60)


def test_where_no_column_is_left_it_is_said_why(tmp_path):
    path = tmp_path / "nothing.csv"
    path.write_text("a,b,y\n" + "".join(f"{i},id {i},{'pq'[i % 2]}\n" for i in range(9)))
    with pytest.raises(tables.InputError, match=r"no column is left .*Left out: a \(consecutive integers.*, b \(every"):
        load(path, "y")
