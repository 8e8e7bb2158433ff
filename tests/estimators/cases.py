"""The seven classifiers, each with a small table of the kind it is for."""

import copy
import inspect
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import bayesnb as bnb
from bayesnb.families import EmpiricalAveraged

N = 60


@dataclass(frozen=True, eq=False)
class Case:
    make: Callable[..., Any]
    X: Any
    y: np.ndarray

    def fit(self, **options: Any) -> Any:
        return self.make(**options).fit(self.X, self.y) if options else copy.copy(self._fitted)

    @cached_property
    def _fitted(self) -> Any:
        """The estimator with default options, fitted once in each process."""
        return self.make().fit(self.X, self.y)


def _labels() -> np.ndarray:
    return np.array(["high", "low", "mid"])[np.random.default_rng(0).permutation(np.arange(N) % 3)]


def _tables() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    shift = (_labels() == "low")[:, None] + 2.0 * (_labels() == "mid")[:, None]
    counts = rng.poisson(np.hstack([1 + shift, 1 + shift, 3 - shift, 2 + 0 * shift]))
    return {
        "CategoricalNB": np.minimum(counts, 4),
        "BernoulliNB": (counts > 1).astype(int),
        "MultinomialNB": counts,
        "GaussianNB": rng.normal(shift, 1, (N, 4)),
        "PoissonNB": counts,
        "NegativeBinomialNB": counts,
        "ExponentialNB": rng.exponential(1 + shift, (N, 4)),
        "MixedNB": rng.normal(shift, 1, (N, 4)),
    }


NAMES = (
    *("CategoricalNB", "BernoulliNB", "MultinomialNB", "GaussianNB", "PoissonNB", "NegativeBinomialNB"),
    *("ExponentialNB", "MixedNB"),
)
CASES = {name: Case(getattr(bnb, name), table, _labels()) for name, table in _tables().items()}


def some(*names: str, quick: Container[str] = NAMES) -> Any:
    """A test of some of the classifiers. The others compile kernels of their own, and so are slow."""
    marks = {name: () if name in quick else pytest.mark.slow for name in names}
    return pytest.mark.parametrize("case", [pytest.param(CASES[name], id=name, marks=marks[name]) for name in names])


each = some(*NAMES, quick=["CategoricalNB"])


def mixed_frame() -> pd.DataFrame:
    """Columns of five dtypes, 60 rows, in the order of `CASES[...].y`."""
    real, counts = CASES["GaussianNB"].X, CASES["PoissonNB"].X
    return pd.DataFrame(
        {
            "length": real[:, 0],
            "age": counts[:, 0],
            "colour": np.array(["red", "green", "blue"])[counts[:, 1] % 3],
            "ripe": counts[:, 2] > 1,
            "size": pd.Categorical(np.array(["S", "M"])[counts[:, 3] % 2], ["S", "M", "XL"]),
        }
    )


def state(nb: Any) -> dict[str, Any]:
    """Attributes of an estimator, as bytes and texts that can be compared."""
    return {name: _plain(value) for name, value in vars(nb).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tolist() if value.dtype == object else value.tobytes())
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return [type(value).__name__, *(_plain(getattr(value, name)) for name in value.__dataclass_fields__)]
    if inspect.isroutine(value):  # of a copy of the estimator
        return value.__qualname__
    if isinstance(value, partial | EmpiricalAveraged):
        return type(value).__name__
    return value


def leaves(tree: Any) -> list[Any]:
    """The arrays of a pytree."""
    return jax.tree.leaves(tree)
