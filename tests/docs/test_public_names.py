"""Public names of the package and its modules, and imports from other packages."""

import ast
import importlib
import json
import os
import pickle
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pytest

import bayesnb
from bayesnb.fitted.state import Fitted
from tests.docs.test_reference import RESULTS

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]

# contracts of the project, as far as they are there; a name that leaves this list is a broken promise.
FIXED = """
    Dirichlet NormalInverseGamma GammaPoisson NaiveBayes CategoricalNB BernoulliNB MultinomialNB GaussianNB PoissonNB
    ExponentialNB GammaExponential MixedNB TAN SPODE AODE NetworkNB FeatureAveragedNB NaiveBayesMixture
    posterior_draws parameter_table
    predict_interval decompose_uncertainty log_odds_moments compare_estimates learning_curve loo tune_alpha bayes_factor
    decide check_independence prior_sensitivity run_nuts to_arviz fit_em fit_stream distributed save load
    CorruptModelError ImproperPosteriorError plots text datasets decision prior_predictive prequential
    from_counts sql WeightedNB terms loo_terms weight_table conformal estimate_prevalence explain value_of_information
    NegativeBinomialNB BetaNegativeBinomial
    enable_cache top_words check_table SuspiciousColumnWarning prior_from_interval check_drift
    contrast parameter_sensitivity UnknownLevelWarning UndefinedProbabilityWarning NoWeightsWarning CopiedRowsWarning
    NotOfferedError TooManyNumbersError ForkedError dependence_ratio
""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", FIXED)
def test_public_names_are_found_by_looking(name):
    assert name in dir(bayesnb)
    assert name in bayesnb.__all__


def test_what_loads_late_is_there():
    assert set(bayesnb.__all__) <= set(dir(bayesnb))
    assert bayesnb.text.BagOfWords
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        bayesnb.nonsense  # noqa: B018


def test_a_misspelt_name_meets_a_suggestion():
    code = "import bayesnb; bayesnb.GausianNB"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert said.endswith("module 'bayesnb' has no attribute 'GausianNB'. Did you mean: 'GaussianNB'?\n")


def stub():
    """Module and names of each import of the stub, and its `__all__`."""
    tree = ast.parse(Path(bayesnb.__file__).with_suffix(".pyi").read_text(encoding="ascii"))
    found = [
        (node.module, [name.name for name in node.names]) for node in tree.body if isinstance(node, ast.ImportFrom)
    ]
    return found, next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))


def test_type_checkers_read_the_names_that_python_finds():
    imports, names = stub()
    assert sorted(names) == sorted(bayesnb.__all__)
    modules = {module.name for module in iter_modules(bayesnb.__path__)}
    for module, imported_names in imports:
        for name in imported_names:
            if module is None:
                assert getattr(bayesnb, name) is importlib.import_module(f"bayesnb.{name}")
            else:
                assert name not in modules, "the module would hide the name once it is imported"
                assert getattr(bayesnb, name) is getattr(importlib.import_module(f"bayesnb.{module}"), name)


def in_a_new_process(code, *args, **environment):
    """Print of a program, whose working folder is the one above the package."""
    found = subprocess.run(
        [sys.executable, "-c", code, *args],
        check=True,
        capture_output=True,
        cwd=Path(bayesnb.__file__).parents[1],
        env={**os.environ, **environment},
    )
    return found.stdout


LOADED = """
import contextlib, io, json, sys
before = set(sys.modules)
import bayesnb
assert bayesnb.__version__ and "GaussianNB" in dir(bayesnb)
arguments, code = json.loads(sys.argv[1]), 0
if arguments:
    from bayesnb.__main__ import main
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = ended.code
loaded = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(json.dumps([code, sorted(loaded)]))
"""
EARLY = {
    "import": ([], 0),
    "help": (["--help"], 0),
    "help of a command": (["compare", "--help"], 0),
    "help of fit": (["fit", "--help"], 0),
    "help of drift": (["drift", "--help"], 0),
    "no column of that name": (["fit", "--csv", "README.md", "--target", "y", "--model", "{tmp}/m"], 2),
    "scores that would be replaced": (["score", "--csv", "a", "--model", "m", "--out", "{tmp}/report.csv"], 2),
    "misspelt command": (["comapre"], 2),
    "misspelt path": (["compare", "--csv", "nosuch.csv", "--target", "y"], 2),
    "no target": (["compare", "--csv", "README.md"], 2),
    "column named twice": (["compare", "--csv", "README.md", "--target", "y", "--drop", "y"], 2),
    "file that would be replaced": (["compare", "--out", "{tmp}"], 2),
}


@pytest.mark.parametrize("name", EARLY)
def test_what_needs_no_data_imports_no_package(name, tmp_path):
    for earlier in ("report.html", "report.csv"):
        (tmp_path / earlier).write_text("an earlier one")
    arguments, code = EARLY[name]
    arguments = [argument.format(tmp=tmp_path) for argument in arguments]
    assert json.loads(in_a_new_process(LOADED, json.dumps(arguments))) == [code, ["bayesnb", "lazy_loader"]]


FITTED = """
import json, sys
sys.modules["pyarrow"] = None  # pandas 3 itself imports an installed pyarrow; here neither pandas nor bayesnb can
import numpy as np
import pandas as pd
import bayesnb as bnb

table = pd.DataFrame({"legs": [4, 2, 0, 4, 2, 6, 8, 4, 2, 0] * 4, "cm": np.arange(40) % 13 + 1})
texts = pd.DataFrame({"size": list("smlls") * 8, "legs": table["legs"]})
y, fitted = np.array(["tame", "wild", "wild", "tame"] * 10), []
for name in sorted(bnb.__all__):
    classifier = getattr(bnb, name)
    if isinstance(classifier, type) and hasattr(classifier, "fit"):
        for X in (table, table.to_numpy(), texts):
            if X is not texts or name in ("CategoricalNB", "MixedNB", "TAN", "WeightedNB"):
                nb = classifier({}) if name == "NetworkNB" else classifier()
                nb.fit(X, y).predict_proba(X)
        fitted.append(name)
print(json.dumps([fitted, sorted(name for name in sys.argv[1:] if sys.modules.get(name))]))
"""


def test_default_fits_import_no_heavy_package():
    """None of the packages that pyproject.toml keeps out of the core, for tables of pandas and arrays of NumPy."""
    (heavy,) = (c["forbidden_modules"] for c in CONTRACTS if c["name"] == "Heavy packages stay out of the core")
    assert {"arviz", "h5py", "matplotlib", "networkx", "numpyro", "pyarrow"} <= set(heavy)
    fitted, loaded = json.loads(in_a_new_process(FITTED, *heavy, PYTHONWARNINGS="ignore"))
    assert loaded == []
    assert {"GaussianNB", "NaiveBayesMixture", "TreeAveragedNB", "WeightedNB"} <= set(fitted)


@pytest.mark.slow("starts processes that import JAX")
@pytest.mark.parametrize("eager", ["", "1"])
def test_every_module_is_found_without_an_import_of_its_own(eager):
    code = """
import functools, pkgutil, sys, bayesnb
for module in pkgutil.iter_modules(bayesnb.__path__):
    assert getattr(bayesnb, module.name) is sys.modules[f"bayesnb.{module.name}"]
for name in sys.argv[1:]:
    functools.reduce(getattr, name.split("."), bayesnb)
"""
    in_a_new_process(code, *RESULTS, EAGER_IMPORT=eager)


@pytest.mark.slow("starts a process that imports JAX")
def test_a_pickle_is_read_where_nothing_is_imported(tmp_path):
    nb = bayesnb.GaussianNB().fit(X, Y)
    (tmp_path / "nb.pickle").write_bytes(pickle.dumps(nb))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).predict_proba([[1, 1]]).tolist())"
    printed = in_a_new_process(code, str(tmp_path / "nb.pickle"))
    np.testing.assert_array_equal(json.loads(printed), nb.predict_proba([[1, 1]]))


@pytest.mark.parametrize("name", ["datasets", "decision", "evaluation", "plots", "sql", "streaming", "text"])
def test_a_module_says_what_it_offers(name):
    module = importlib.import_module(f"bayesnb.{name}")
    assert len(set(module.__all__)) == len(module.__all__) > 0
    assert all(hasattr(module, own) for own in module.__all__)


X = np.array([[0, 1], [1, 0], [0, 0], [1, 1], [2, 1], [0, 1]] * 4)
Y = np.array(list("ababab") * 4)
REFUSED = {
    "AODE": {"prior_", "posterior_", "parents_", "log_evidence_"},
    "TreeAveragedNB": {"parents_", "query"},
    "WeightedNB": {"log_evidence_"},
    "GaussianNB": set(),
    "KDB": set(),
    "FeatureAveragedNB": set(),
}


@pytest.mark.slow("other variants compile kernels of their own", but=["CategoricalNB", "WeightedNB"])
@pytest.mark.parametrize("name", sorted(set(REFUSED) | {"CategoricalNB", "MixedNB", "TAN", "NetworkNB"}))
def test_completion_in_a_notebook_computes_nothing(name, monkeypatch):
    """jedi, which IPython asks, reads the annotations of properties: one of them that it cannot read hides all."""
    jedi = pytest.importorskip("jedi")
    nb = getattr(bayesnb, name)().fit(X, Y)

    def computed(self):
        raise AssertionError("computed")

    for attribute in ("prior", "posterior", "log_evidence", "class_log_prior"):
        monkeypatch.setattr(Fitted, attribute, property(computed))
    offered = {found.name for found in jedi.Interpreter("nb.", [{"nb": nb}]).complete(1, 3)}
    assert {"predict_proba", "classes_"} <= offered
    assert not REFUSED.get(name, set()) & offered


@cache
def imported():
    """Every module that the package imports, and where."""
    root, found = Path(bayesnb.__file__).parent, []
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found += [(alias.name, path.relative_to(root)) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.append((node.module, path.relative_to(root)))
    return found


def test_nothing_is_taken_from_the_inside_of_arviz():
    found = {name: where for name, where in imported() if name.partition(".")[0].startswith("arviz")}
    assert set(found) == {"arviz"}, found
