"""CSV files read in pieces have the rows that Arrow reads from the whole file, and those of Python's csv module."""

import csv
import io
import warnings

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv

from bayesnb._util.table_files import cut_batches, read_csv, unpacked
from tests.raises import refused

TEXTS = st.text(alphabet='a1 ,;"\n\r', max_size=6)
UNQUOTED = st.text(alphabet='a1 "', min_size=1, max_size=4).filter(lambda text: not text.startswith('"'))


def whole(content, delimiter):
    """Rows of the whole content by Arrow."""
    reading = arrow_csv.ReadOptions(block_size=len(content) + 1, use_threads=False)
    parsing = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    table = arrow_csv.read_csv(
        pa.py_buffer(content), reading, parsing, arrow_csv.ConvertOptions(column_types=types("xy"))
    )
    return table.to_pylist()


def types(names):
    return dict.fromkeys(names, pa.string())


def in_pieces(content, delimiter, size, n=2):
    tables = read_csv(io.BytesIO(content), "file", None, delimiter, size, column_types=types("xy"))
    return [row for batch in cut_batches(tables, n) for row in batch.to_pylist()]


@given(
    st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=9),
    st.sampled_from(",;"),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 40),
)
def test_pieces_of_quoted_cells_are_the_rows_of_a_writer(rows, delimiter, line_end, size):
    """Quotes, separators and line ends in cells; Arrow drops rows of empty cells only if they are not quoted."""
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows([("x", "y"), *rows])
    with warnings.catch_warnings(action="ignore"):
        found = in_pieces(file.getvalue().encode(), delimiter, size)
    assert [tuple(row.values()) for row in found] == rows


@given(
    st.lists(
        st.tuples(UNQUOTED, st.one_of(UNQUOTED, TEXTS.map(lambda t: '"' + t.replace('"', '""') + '"'))),
        min_size=1,
        max_size=9,
    ),
    st.integers(1, 40),
)
def test_quotes_inside_of_cells_mean_nothing(rows, size):
    """As in 5" pipe, beside quoted cells."""
    content = "\n".join(["x,y", *map(",".join, rows), ""]).encode()
    with warnings.catch_warnings(action="ignore"):
        assert in_pieces(content, ",", size) == whole(content, ",")


@pytest.mark.parametrize("size", [8, 2**20])
def test_where_a_file_is_wrong(size):
    start = b"x,y\n" + b'1,"a\nb"\n' * 3
    for content, message in (
        (start + b"1\n", r"file, row 5: 1 cells, but the first line has 2\. Correct the row\."),
        (start + b"1,2,3\n", "file, row 5: 3 cells, but the first line has 2"),
        (start + b'1,"open\n2,c\n', "file, line 8: the quote that opens here is not closed"),
        (start + b"1,\xff\n", "file, row 5, column 'y': the text is not UTF-8"),
        (start + b"1,a\0\n", "file, line 8: the text has a NUL character"),
    ):
        refused(message, in_pieces, content, ",", size)
    refused(
        "row 5, column 'x': 'k' is no int64, the type of the column",
        lambda: list(read_csv(io.BytesIO(start + b"k,a\n"), "file", None, ",", size, column_types={"x": pa.int64()})),
    )


def test_a_row_or_a_cell_without_end(monkeypatch):
    monkeypatch.setattr("bayesnb._util.table_files._LONGEST_ROW", 1000)
    refused("file, line 3: the quote that opens here is not closed", in_pieces, b'x,y\n1,2\n"' + b"a\n" * 900, ",", 64)
    refused("file, line 3: the row has more than 1,000 bytes", in_pieces, b"x,y\n1,2\n" + b"a" * 1800, ",", 64)


def test_a_packed_file_that_ends_too_early():
    import gzip

    content = gzip.compress(b"x,y\n" + b"1,2\n" * 999)
    with (
        pytest.raises(ValueError, match="file cannot be read: Compressed file ended before"),
        unpacked(io.BytesIO(content[:-20]), "file") as stream,
    ):
        list(read_csv(stream, "file", None, ","))
