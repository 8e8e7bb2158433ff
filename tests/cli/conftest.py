"""A file for the tests of the command line."""

import pytest


@pytest.fixture
def table(tmp_path):
    """Path of the small table of `weather`."""
    from tests.cli.test_compare import weather

    path = tmp_path / "weather.csv"
    weather().to_csv(path, index=False)
    return path
