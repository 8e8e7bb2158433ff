"""Use of an installed wheel, away from the checkout: files of the package, data, a fit and its accuracy."""

import importlib.metadata
import pathlib
import sys

from sklearn.datasets import load_iris

import bayesnb as bnb

home = pathlib.Path(bnb.__file__).resolve().parent
assert home.is_relative_to(pathlib.Path(sys.prefix).resolve()), f"not the installed wheel: {home}"
assert (home / "py.typed").is_file(), "py.typed is missing from the wheel"
bnb.datasets.load_watermelon()
score = bnb.GaussianNB().fit(*load_iris(return_X_y=True)).score(*load_iris(return_X_y=True))
assert score > 0.9, score
print(f"bayesnb {importlib.metadata.version('bayesnb')}: iris accuracy {score:.3f}")
