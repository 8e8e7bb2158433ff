"""One table for each kind of column, and cached classifiers of these tables that no test may change.

All have four columns and three classes, the same 60 rows of them fitted and the same 16 asked about: each kernel is
compiled once.
"""

from functools import cache
from typing import Any

import numpy as np

import bayesnb as bnb
from bayesnb.weights.terms import Terms
from tests import strategies

N = 60
CLASSES = ["ash", "elm", "oak"]
RNG = np.random.default_rng(11)
CODE = RNG.permutation(np.arange(N) % 3)
LABEL = np.array(CLASSES)[CODE]
_NOISY = np.where(RNG.random((N, 3)) < 0.6, CODE[:, None], RNG.integers(0, 3, (N, 3)))
LEVELS = np.column_stack([_NOISY, _NOISY[:, 0]]).astype(float)  # the first witness is heard twice
NUMBERS = RNG.normal(size=(N, 4)) + 1.5 * (LABEL == "elm")[:, None]
COUNTS = RNG.poisson(1 + 2 * np.eye(3)[CODE][:, [0, 1, 2, 0]] * RNG.exponential(1, (N, 1))).astype(float)
ASKED = slice(16)


def holed(X: np.ndarray, share: float = 0.3) -> np.ndarray:
    """A copy in which this share of the cells is missing."""
    X = X.astype(float)
    X[np.random.default_rng(3).random(X.shape) < share] = np.nan
    return X


def margins_and_dependences(nb: Any, rows: Any, margins: Any, roots: Any | None = None) -> Any:
    """Terms of a `WeightedNB` around a structure of levels, by classifiers that know no parents.

    Margins are the terms of one, and dependences what the structure's own terms have beyond those of the other, the
    structure without its arcs.
    """
    plain, alone, own = (bnb.terms(one, rows) for one in (margins, roots or margins, nb.estimator_))
    values, root, given = (dict(zip(t.names, np.moveaxis(t.values, 2, 0), strict=True)) for t in (plain, alone, own))
    found = [values[n] if n in values else given[n.split(" | ")[0]] - root[n.split(" | ")[0]] for n in nb.term_names_]
    return Terms(np.stack(found, axis=2), own.log_class_prior, nb.term_names_, nb.classes_)


@cache
def of_levels(**options: Any) -> Any:
    return bnb.CategoricalNB(**options).fit(LEVELS, LABEL)


@cache
def of_numbers() -> Any:
    return bnb.GaussianNB().fit(NUMBERS, LABEL)


@cache
def in_shares() -> Any:
    """Classifier fitted by EM, which has no posterior of its parameters."""
    return bnb.fit_em(bnb.MultinomialNB(), COUNTS[ASKED], np.where(np.arange(16) < 9, CODE[ASKED], -1)).estimator


@cache
def weighted(weights: str = "auto") -> Any:
    return bnb.WeightedNB(bnb.CategoricalNB(), weights).fit(LEVELS, LABEL)


@cache
def weighted_numbers() -> Any:
    return bnb.WeightedNB(bnb.GaussianNB()).fit(NUMBERS, LABEL)


def declared(problem: strategies.Problem) -> strategies.Problem:
    """Levels of categorical columns are told, one of which no row has: else each number of them compiles its own."""
    if problem.kind == "categorical":
        levels = [[v for v in dict.fromkeys(pool) if v is not None] for pool in strategies.LEVELS]
        problem.nb.set_params(categories=[[*own, "no row has it"] for own in levels])
    return problem
