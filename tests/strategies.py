"""Hypothesis strategies for small classification problems of every kind, and helpers to compare models.

The number of features and of classes is fixed, so that the kernels compile once. Classes and levels that no
row has, missing cells and integer weights occur everywhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import gammaln
from sklearn.base import clone

from bayesnb import (
    BernoulliNB,
    BinnedNB,
    CategoricalNB,
    ExponentialNB,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    NegativeBinomialNB,
    PoissonNB,
)
from bayesnb.fitted.counting import Counted

CLASSES = ("ash", "elm", "oak")
ESTIMATES = ("mle", "map", "mean", "predictive")

# Of cells of three columns, so that all parts of the rows have the same.
EDGES = ([-5.0, 0.0, 0.25, 2.5],) * 3

# Values of four levels a column, of several types; 1, 1.0 and True are one level. None is a missing cell.
LEVELS = (("a", "b", "", "é", None), (0, 7, -3, 0.5, None), ("a", 1, 1.0, True, 0.5, 10**8, None))

binary = st.sampled_from([0.0, 1.0, np.nan])
counts = st.integers(0, 6).map(float)
quarters = st.integers(-40, 40).map(lambda i: i / 4)
reals = st.one_of(st.integers(-40, 40).map(lambda i: i / 4), st.floats(-1000, 1000, width=32), st.just(np.nan))
rates = st.one_of(st.integers(0, 30).map(float), st.just(np.nan))
durations = st.one_of(st.integers(0, 100).map(lambda i: i / 8), st.just(np.nan))


@dataclass(frozen=True)
class Problem:
    """Labelled rows, and an estimator that was not fitted."""

    kind: str
    nb: Any
    X: Any
    y: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def take(self, index: Any) -> Problem:
        """Some of the rows, in some order."""
        index = np.asarray(index, dtype=int)
        return replace(self, X=take(self.X, index), y=self.y[index], weight=self.weight[index])

    def fit(self, nb: Any = None, *, weight: Any = None) -> Any:
        """A fitted estimator that knows all three classes; without rows there is nothing to fit."""
        weight = self.weight if weight is None else weight
        return clone(self.nb if nb is None else nb).partial_fit(self.X, self.y, CLASSES, weight)

    def chunks(self, cuts: list[int]) -> Iterator[Problem]:
        """Consecutive parts; `cuts` are where they begin."""
        bounds = sorted({0, len(self), *(cut for cut in cuts if cut < len(self))})
        for start, stop in itertools.pairwise(bounds):
            yield self.take(range(start, stop))


def take(X: Any, index: np.ndarray) -> Any:
    return X.iloc[index].reset_index(drop=True) if hasattr(X, "iloc") else X[index]


def categorical_cells(n: int) -> st.SearchStrategy[np.ndarray]:
    columns = [arrays(object, n, elements=st.sampled_from(pool)) for pool in LEVELS]
    return st.tuples(*columns).map(lambda c: np.stack(c, axis=1))


def _cells(elements: st.SearchStrategy) -> Callable[[int], st.SearchStrategy]:
    return lambda n: arrays(float, (n, 3), elements=elements)


def _sparse(cells: Callable[[int], st.SearchStrategy]) -> Callable[[int], st.SearchStrategy]:
    return lambda n: cells(n).map(lambda x: sp.csr_array(np.nan_to_num(x)))


def mixed_frame(n: int) -> st.SearchStrategy[pd.DataFrame]:
    """Two categorical, two Gaussian, a Bernoulli and a Poisson column, and a multinomial of two."""
    column = {
        "colour": (object, st.sampled_from(["red", "", None])),
        "size": (float, reals),
        "sort": (object, st.sampled_from(["a", 1, 1.0, True, None])),
        "heads": (float, binary),
        "visits": (float, counts),
        "weight": (float, reals),
        "word": (float, counts),
        "other": (float, counts),
    }
    drawn = st.tuples(*(arrays(dtype, n, elements=elements) for dtype, elements in column.values()))
    return drawn.map(lambda values: pd.DataFrame(dict(zip(column, values, strict=True))))


_MAKE: dict[str, tuple[Callable[[], Any], Callable[[int], st.SearchStrategy]]] = {
    "categorical": (lambda: CategoricalNB(alpha=0.7), categorical_cells),
    "bernoulli": (lambda: BernoulliNB(alpha=0.5), _cells(binary)),
    "sparse bernoulli": (lambda: BernoulliNB(alpha=1.5), _sparse(_cells(binary))),
    "multinomial": (lambda: MultinomialNB(alpha=0.3), _cells(counts)),
    "sparse multinomial": (lambda: MultinomialNB(alpha=2.0), _sparse(_cells(counts))),
    "gaussian": (lambda: GaussianNB(class_alpha=2.0), _cells(reals)),
    "binned": (lambda: BinnedNB(edges=EDGES), _cells(reals)),
    "poisson": (lambda: PoissonNB(class_prior=[0.2, 0.5, 0.3]), _cells(rates)),
    "overdispersed": (lambda: NegativeBinomialNB(), _cells(rates)),
    "dispersed": (lambda: NegativeBinomialNB(dispersion=1.5), _cells(rates)),
    "exponential": (lambda: ExponentialNB(class_alpha=0.5), _cells(durations)),
    "mixed": (
        # Kinds are named, as the values of a few rows would decide otherwise than those of all rows.
        lambda: MixedNB(
            categorical=["colour", "sort"],
            gaussian=["size", "weight"],
            bernoulli="heads",
            poisson="visits",
            multinomial=["word", "other"],
            numbers="gaussian",
            alpha=0.8,
        ),
        mixed_frame,
    ),
}


@st.composite
def problems(draw: Any, kind: str, min_rows: int = 1, max_rows: int = 8, max_weight: int = 3) -> Problem:
    make, cells = _MAKE[kind]
    n = draw(st.integers(min_rows, max_rows))
    label = draw(arrays(int, n, elements=st.integers(0, len(CLASSES) - 1)))
    weight = draw(arrays(int, n, elements=st.integers(1, max_weight)))
    return Problem(kind, make(), draw(cells(n)), np.array(CLASSES)[label], weight.astype(float))


KINDS = tuple(_MAKE)


def thorough(values: Iterable[Any], quick: Container[Any] = ("categorical", "gaussian", "sparse multinomial")) -> list:
    """Parameters of a test: variants not in `quick` are slow, as each compiles kernels of its own."""
    return [v if v in quick else pytest.param(v, marks=pytest.mark.slow) for v in values]


def variants(names: Any, values: Iterable[Any], ids: Any = None) -> Any:
    """Parametrize a test. All values but the first are slow, because each compiles its own kernels."""
    first, *others = values
    slow = [pytest.param(*(v if isinstance(names, tuple) else (v,)), marks=pytest.mark.slow) for v in others]
    return pytest.mark.parametrize(names, [first, *slow], ids=ids)


def with_prior_of(nb: Any, known: Any) -> Any:
    """A clone of `nb` whose prior, and whose levels, are those of the fitted `known`."""
    fixed = clone(nb)
    if hasattr(nb, "categories"):
        named = [
            pair for b in known.encoding_.blocks if hasattr(b, "levels") for pair in zip(b.names, b.levels, strict=True)
        ]
        fixed.set_params(categories={name: list(levels.values) for name, levels in named if len(levels)})
    return fixed.set_params(prior=known.prior_)


def counted(nb: Any) -> Counted:
    return Counted(nb.encoding_, nb.statistics_)


def log_base(kind: str, X: Any) -> np.ndarray:
    """(N,) multinomial coefficients and -log x!, from the definition."""
    if kind == "mixed":
        return log_base("poisson", X[["visits"]].to_numpy()) + log_base("multinomial", X[["word", "other"]].to_numpy())
    if kind.endswith("multinomial"):
        x = X.toarray() if sp.issparse(X) else X
        return gammaln(x.sum(axis=1) + 1) - gammaln(x + 1).sum(axis=1)
    if kind in ("poisson", "overdispersed", "dispersed"):
        return -np.nansum(gammaln(X + 1), axis=1)
    return np.zeros(X.shape[0])


def close(actual: Any, expected: Any, tolerance: float, scale: float = 1.0) -> bool:
    """|actual - expected| <= tolerance · max(1, scale)."""
    return math.isclose(actual, expected, rel_tol=0, abs_tol=tolerance * max(1.0, scale))


def assert_leaves(actual: Any, expected: Any, rtol: float = 0.0) -> None:
    """The arrays of two pytrees are equal, or this close."""
    for mine, theirs in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol)
