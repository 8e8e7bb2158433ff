"""Naive Bayes from fixed proper priors whose numbers all differ, so that a mistaken or misplaced one shows."""

from dataclasses import replace
from typing import Any

import numpy as np

import bayesnb as bnb
from tests.uncertainty.simulated import LEVELS, WORDS, Parameters, Simulated, simulated

CLASSES = range(2)
CLASS_ALPHA = np.array([0.8, 1.9])
# (C, L); those of a mixed table by column, the same in both classes.
ALPHA = {
    "categorical": np.linspace(0.4, 2.6, 2 * sum(LEVELS)).reshape(2, -1),
    "bernoulli": np.linspace(2.2, 0.5, 12).reshape(2, -1),
    "multinomial": np.linspace(0.3, 2.1, 2 * WORDS).reshape(2, -1),
}
COLOUR, RIPE = np.array([0.5, 1.2, 2.3]), np.array([1.6, 0.7])


def _normal(n_features: int) -> bnb.NormalInverseGamma:
    ends = {"loc": (-1.0, 1.5), "kappa": (1.7, 0.4), "concentration": (1.2, 3.1), "rate": (0.6, 2.8)}
    return bnb.NormalInverseGamma(**{name: np.linspace(*e, 2 * n_features).reshape(2, -1) for name, e in ends.items()})


def _poisson(n_features: int) -> bnb.GammaPoisson:
    ends = {"concentration": (0.6, 2.9), "rate": (1.8, 0.5)}
    return bnb.GammaPoisson(**{name: np.linspace(*e, 2 * n_features).reshape(2, -1) for name, e in ends.items()})


def _counts(n_features: int) -> bnb.BetaNegativeBinomial:
    ends = {"concentration": (1.6, 2.9), "rate": (3.8, 2.5)}
    fields = {name: np.linspace(*e, 2 * n_features).reshape(2, -1) for name, e in ends.items()}
    return bnb.BetaNegativeBinomial(**fields)


def _options(family: str) -> dict[str, Any]:
    alpha = {"alpha": [COLOUR, 1.0, RIPE, 1.0] if family == "mixed" else ALPHA[family]} if family in OF_LEVELS else {}
    return {**alpha, "class_alpha": CLASS_ALPHA}


def _alpha(name: str, n_classes: int) -> np.ndarray:
    columns = {"colour": COLOUR, "ripe": RIPE}
    return np.tile(columns[name], (n_classes, 1)) if name in columns else ALPHA[name]


OF_LEVELS = (*ALPHA, "mixed")
FIXED = {
    family: replace(case, class_alpha=CLASS_ALPHA)
    for family, case in simulated(_alpha, _normal, _poisson, _counts, _options).items()
}


def log_likelihood(case: Simulated, parameters: Parameters, X: Any, y: np.ndarray) -> np.ndarray:
    """(S,) log p(X, y | θ), up to what no parameter changes."""
    joint = case.log_likelihood(parameters, X) + np.log(parameters["class_prob"])[:, None]
    return joint[:, np.arange(len(y)), y].sum(axis=1)
