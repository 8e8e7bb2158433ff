"""Settings that all tests share."""

import gc
import os
from pathlib import Path

import jax
import pytest
from hypothesis import HealthCheck, Phase, settings
from jaxtyping import install_import_hook

from tests import shapes, tiers

install_import_hook(shapes.MODULES, "tests.shapes.checked")  # before the tests import the package

# The same examples on every run; HYPOTHESIS_PROFILE=explore looks for new ones.
_COMMON = {
    "deadline": None,
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink],
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("fixed", max_examples=15, derandomize=True, **_COMMON)
settings.register_profile("explore", max_examples=300, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
gc.disable()  # while tests are collected


@pytest.fixture
def x64():
    """JAX in double precision for one test, without touching the configuration of the process."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="module")
def _few_kernels():
    """Compiled kernels stay in memory, and thousands of them exhaust what a process may map: 65,530 pieces on Linux."""
    yield
    maps = Path("/proc/self/maps")
    if not maps.exists() or maps.read_bytes().count(b"\n") > 20_000:
        jax.clear_caches()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """What collecting leaves is there to stay: the collector of garbage need not walk through it again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    tiers.mark(items)
    everything = [Path(arg).resolve() for arg in config.args] == [Path(__file__).parent]
    if everything and (names := tiers.without_tests(items)):
        raise pytest.UsageError(f"tests/slow.toml names what is no test: {sorted(names)}")
