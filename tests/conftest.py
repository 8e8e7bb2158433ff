"""Settings that all tests share, and the tiers of tests: quick ones, slow ones, simulations."""

import gc
import importlib
import os
import re
import zlib
from functools import partial
from pathlib import Path

import jax
import pytest
from hypothesis import HealthCheck, Phase, settings
from jaxtyping import install_import_hook

from benchmarks import shapes
from tests import databases

# The same examples on every run; HYPOTHESIS_PROFILE=explore looks for new ones.
_COMMON = {
    "deadline": None,
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink],
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("quick", max_examples=8, derandomize=True, **_COMMON)
settings.register_profile("slow", max_examples=15, derandomize=True, **_COMMON)
settings.register_profile("explore", max_examples=300, **_COMMON)
gc.disable()  # while tests are collected


@pytest.fixture
def x64():
    """JAX in double precision for one test, without touching the configuration of the process."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def postgresql():
    """Address of a PostgreSQL server, which starts when the first test asks for it and stops after the last test."""
    with databases.run_postgresql() as address:
        yield address


@pytest.fixture(params=databases.NAMES)
def database(request):
    """Open connection to an empty database of each kind."""
    address = request.getfixturevalue("postgresql") if request.param == "PostgreSQL" else ""
    with databases.connect(request.param, address) as connection:
        yield connection


@pytest.fixture
def ask(database):
    """Function (frame, query) that returns the rows of a query about a DataFrame, which is the table `cars`."""
    return partial(databases.ask, database)


@pytest.fixture(autouse=True, scope="module")
def _few_kernels():
    """Compiled kernels stay in memory, and thousands of them exhaust what a process may map: 65,530 pieces on Linux."""
    yield
    maps = Path("/proc/self/maps")
    if not maps.exists() or maps.read_bytes().count(b"\n") > 20_000:
        jax.clear_caches()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Objects made by collection stay: exclude these from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_addoption(parser):
    parser.addoption(
        "--part", default="1/1", help="run the k-th of n parts of the tests, as k/n; a file is in one part"
    )
    parser.addoption("--compiled", action="store_true", help="let JAX compile the kernels for few numbers, too")
    parser.addoption("--shapes", action="store_true", help="check the shapes that functions are annotated with")


def _runs_slow_tests(config):
    return "not slow" not in config.option.markexpr


def pytest_configure(config):
    tier = "slow" if _runs_slow_tests(config) else "quick"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", tier))
    if config.option.shapes:
        install_import_hook(shapes.MODULES, "benchmarks.shapes.checked")  # before the tests import the package
    if config.option.compiled:
        importlib.import_module("bayesnb.families.arrays").FEW = -1


def pytest_ignore_collect(collection_path, config):
    """Do not import a file of slow tests, or of simulations, for the quick tier."""
    named = {Path(arg.partition("::")[0]).resolve() for arg in config.args}
    if collection_path.suffix != ".py" or _runs_slow_tests(config) or collection_path in named:
        return None
    marked = re.search(
        r"^pytestmark = pytest\.mark\.(slow|calibration)", collection_path.read_text("utf-8"), re.MULTILINE
    )
    return True if marked else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector, obj):
    """Do not make the variants of a slow test for the quick tier."""
    marks = getattr(obj, "pytestmark", [])
    if not _runs_slow_tests(collector.config) and any(m.name == "slow" and "but" not in m.kwargs for m in marks):
        return []
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    seen = set()
    for item in items:
        name = item.nodeid.partition("[")[0]
        item.own_markers = [m for m in item.own_markers if not _is_excepted(item, m, name not in seen)]
        seen.add(name)
    part, parts = map(int, config.option.part.split("/"))
    items[:] = [i for i in items if zlib.crc32(i.nodeid.partition("::")[0].encode()) % parts == part % parts]


def _is_excepted(item, mark, is_first):
    """Whether `slow(reason, but=names)` leaves this variant to the quick tier."""
    if mark.name != "slow" or "but" not in mark.kwargs:
        return False
    names = {mark.kwargs["but"]} if isinstance(mark.kwargs["but"], str) else set(mark.kwargs["but"])
    variant = item.callspec.id
    words = {variant, *(word for part in variant.split("-") for word in (part, part.partition("(")[0]))}
    return bool(names & words) or (is_first and "first" in names)
