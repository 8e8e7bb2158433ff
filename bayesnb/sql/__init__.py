"""SQL that counts and scores rows in the database, for SQLite, DuckDB and PostgreSQL alike."""

from bayesnb.sql.counting import counts
from bayesnb.sql.scoring import score

__all__ = ["counts", "score"]
