import pytest


@pytest.fixture(autouse=True)
def _double_precision(x64):
    """Families have the precision of their arguments and of JAX's configuration: test them in double."""
