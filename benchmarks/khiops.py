"""Khiops in a separate Python: `pip install khiops` there, and set BAYESNB_KHIOPS to the path of its interpreter.

Khiops (Boullé 2007) averages naive Bayes over sets of features, after optimal binning and grouping.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

PROGRAM = """
import sys, time
import pandas as pd
from khiops.sklearn import KhiopsClassifier

def read(name):
    names = pd.read_csv(name, nrows=0).columns
    return pd.read_csv(name, dtype={c: str for c in names if c[0] != "n"}, keep_default_na=False)

train, test = read("train.csv"), read("test.csv")
label = train.pop("y")
start = time.perf_counter()
khiops = KhiopsClassifier(n_trees=0).fit(train, label)
proba = khiops.predict_proba(test)
seconds = time.perf_counter() - start
pd.DataFrame(proba, columns=khiops.classes_).to_csv("proba.csv", index=False)
print(seconds)
"""
PYTHON = os.environ.get("BAYESNB_KHIOPS", "")
VERSION = "import khiops; print(khiops.__version__)"


@cache
def absence() -> str:
    """Return why Khiops cannot run, or an empty string if it can."""
    if not PYTHON:
        return "BAYESNB_KHIOPS names no Python that has Khiops"
    if not Path(PYTHON).exists():
        return "the Python that BAYESNB_KHIOPS names does not exist"
    try:
        version()
    except RuntimeError:
        return "the Python that BAYESNB_KHIOPS names has no Khiops"
    return ""


@cache
def version() -> str:
    """Return the version of the installed Khiops."""
    return _run(VERSION).split()[-1]


def predict(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, float]:
    """Return log probabilities of the rows of `X_test`, classes, and seconds of fit and predict."""
    kinds = ["c" if isinstance(dtype, pd.CategoricalDtype) else "n" for dtype in X.dtypes]
    names = [f"{kind}{j}" for j, kind in enumerate(kinds)]
    with tempfile.TemporaryDirectory() as folder:
        X.set_axis(names, axis=1).assign(y=y).to_csv(Path(folder, "train.csv"), index=False)
        X_test.set_axis(names, axis=1).to_csv(Path(folder, "test.csv"), index=False)
        seconds = float(_run(PROGRAM, folder).split()[-1])
        proba = pd.read_csv(Path(folder, "proba.csv"))
    with np.errstate(divide="ignore"):
        return np.log(proba.to_numpy()), proba.columns.to_numpy(str), seconds


def _run(program: str, folder: str | None = None) -> str:
    interpreter = Path(PYTHON).absolute()  # not resolved: a link would lead out of its environment
    environment = {**os.environ, "PATH": f"{interpreter.parent}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [interpreter, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"Khiops failed: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout
