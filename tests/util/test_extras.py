"""Functions that need an optional package say so in one line; the others work without it."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import bayesnb as bnb
from tests.docs.test_public_names import imported
from tests.raises import refused

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = Path(bnb.__file__).parent
# Imported by another name than they are installed by, or installed with another.
BROUGHT = {"xarray": "arviz", "distributed": "dask", "sklearn": "scikit-learn"}
X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.arange(20) % 2


def names(requirements):
    """Package names of requirements, with those of this package's own extras."""
    for requirement in requirements:
        name, extras = re.fullmatch(r"([\w.-]+)(?:\[(.*?)\])?.*", requirement).groups()
        if name == PROJECT["name"]:
            for extra in extras.split(","):
                yield from names(PROJECT["optional-dependencies"][extra])
        else:
            yield name


CALLS = {
    "dask": [("dask", lambda nb: bnb.distributed.fit(nb, X, Y))],
}


@pytest.mark.slow("compiles kernels of its own", but="first")
@pytest.mark.parametrize("package", CALLS)
def test_what_needs_a_package_says_how_to_install_it(package, monkeypatch):
    nb = bnb.GaussianNB().fit(X, Y)
    monkeypatch.setitem(sys.modules, package, None)
    for extra, call in CALLS[package]:
        refused(rf"needs {package}, .*pip install 'bayesnb\[{extra}\]'$", call, nb, error=ImportError)


@pytest.mark.slow("starts processes that import JAX")
def test_the_main_job_does_without_them():
    code = f"""
import sys
for name in {sorted(CALLS)}:
    sys.modules[name] = None
import numpy as np
import bayesnb as bnb
from bayesnb import *
X, y = np.arange(12.0).reshape(6, 2) % 5, list("abbaba")
nb = bnb.GaussianNB().fit(X, y)
print(nb.predict_proba(X).shape, len(bnb.parameter_table(nb)))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[0] == "(6, 2) 10"


def test_extras_install_what_messages_say():
    extras = PROJECT["optional-dependencies"]
    found = [call for path in PACKAGE.rglob("*.py") for call in requirements_of(path.read_text(encoding="utf-8"))]
    assert {package for _, packages in found for package in packages} >= set(CALLS)
    for which, packages in found:
        installed = {name for extra in which.split(",") for name in names(extras[extra])}
        assert set(packages) <= installed, (which, packages)


def requirements_of(source):
    """Extras and packages that a module passes to `require`."""
    if "bayesnb._util.warnings" not in source:
        return
    tree = ast.parse(source)
    if "bayesnb._util.warnings" not in {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require":
            _, extra, *packages = (argument.value for argument in node.args)
            yield extra, packages


def test_what_is_imported_is_installed_by_something():
    extras = PROJECT["optional-dependencies"]
    assert set(names(extras["all"])) == {n for e in extras if e not in ("all", "dev", "docs") for n in names(extras[e])}
    assert set(names(extras["all"])) <= set(names(extras["dev"]))
    known = {*names(PROJECT["dependencies"]), *names(extras["all"]), "bayesnb"}
    for module, path in imported():
        name = module.partition(".")[0]
        assert name in sys.stdlib_module_names or BROUGHT.get(name, name) in known, (path, name)
