"""A user's script under strict type checkers: no call returns Any, and wrong arguments are errors."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import numpy as np
import pandas as pd

import bayesnb as bnb
from bayesnb import kernels

X = pd.DataFrame({"a": [0.1, 0.5, 2.0, 2.5], "b": ["x", "y", "x", "y"]})
y = np.array(["n", "n", "p", "p"])
nb = bnb.GaussianNB(prior="pooled").fit(X[["a"]], y)
reveal_type(nb)
reveal_type(nb.predict(X))
reveal_type(nb.predict_proba(X, estimate="mean"))
reveal_type(nb.predict_log_proba(X))
reveal_type(nb.predict_joint_log_proba(X))
reveal_type(nb.score(X, y))
reveal_type(nb.get_params())
reveal_type(nb.posterior_)
reveal_type(nb.partial_fit(X, y))
reveal_type(bnb.WeightedNB().fit(X, y).predict_proba(X))
reveal_type(bnb.fit_stream(bnb.MixedNB(), [(X, y)]))
reveal_type(bnb.predict_interval(nb, X))
reveal_type(bnb.parameter_table(nb))
reveal_type(bnb.loo(nb, X, y).elpd)
reveal_type(bnb.to_arviz(nb)["posterior"])
reveal_type(bnb.run_nuts(nb))
reveal_type(bnb.numpyro_model(nb).encode(X, y))
reveal_type(bnb.load("model"))
prior = bnb.NaiveBayes.categorical(2, [2, 3])
counted = kernels.count(bnb.Statistics.empty(prior), np.zeros((2, 2)), np.zeros(2, int))
reveal_type(counted)
reveal_type(kernels.update(prior, counted))
reveal_type(kernels.log_joint(prior, np.zeros((2, 2)), "mean"))
reveal_type(kernels.log_evidence(prior, counted))
bnb.GaussianNB(var_smoothing=1)  # wrong
nb.predict_proba(X, estimate="wrong")
kernels.log_joint(prior, np.zeros((2, 2)), "wrong")
bnb.loo(nb, X, y, estimate="wrong")
nb.misspelt
"""
WRONG = [n for n, line in enumerate(SCRIPT.splitlines(), 1) if re.search("wrong|misspelt", line)]


def check(script: Path, *command: str) -> tuple[list[str], list[int]]:
    """Return the revealed types, and the lines with errors."""
    done = subprocess.run([sys.executable, "-m", *command, script], cwd=ROOT, capture_output=True, text=True)
    types = re.findall(r"(?:Revealed type is|Type of .* is) \"(.*)\"", done.stdout)
    assert types, done.stdout + done.stderr
    return types, [int(n) for n in re.findall(rf"{re.escape(script.name)}:(\d+)(?::\d+)?(?: -|:) error", done.stdout)]


@pytest.mark.slow("type checkers read the whole package")
@pytest.mark.parametrize(("module", "command"), [("mypy", ["mypy", "--strict"]), ("basedpyright", ["basedpyright"])])
def test_types_of_a_script(module, command, tmp_path):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    types, lines = check(script, *command)
    assert len(types) == SCRIPT.count("reveal_type(")
    ndarray = r"(numpy\.)?ndarray\[tuple\[Any, \.\.\.\], (numpy\.)?dtype\[Any\]\]"  # numpy.ndarray, written in full
    values = "dict[str, Any]"  # of hyperparameters, which may be anything
    open_types = [kind for kind in (re.sub(ndarray, "ndarray", kind) for kind in types) if kind != values]
    assert [kind for kind in open_types if re.search(r"\bAny\b|Unknown", kind)] == []
    assert lines == WRONG
