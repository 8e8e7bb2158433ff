"""Naive Bayes from fixed proper priors whose numbers all differ, so that a mistaken or misplaced one shows."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import bayesnb as bnb
from tests.uncertainty.simulated import LEVELS, SIMULATED, WORDS, Parameters, Simulated, draw_counts_prior

CLASSES = range(2)
CLASS_ALPHA = np.array([0.8, 1.9])
SIZES = {"categorical": LEVELS, "bernoulli": (2, 2, 2), "multinomial": (WORDS,)}
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


def _simplexes(rng: np.random.Generator, alpha: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    groups = np.split(alpha, np.cumsum(sizes)[:-1], axis=1)
    return np.concatenate([[rng.dirichlet(of_class) for of_class in group] for group in groups], axis=1)[None]


def _gaussians(rng: np.random.Generator, prior: bnb.NormalInverseGamma) -> Parameters:
    sigma2 = prior.rate / rng.gamma(prior.concentration)
    return {"mu": rng.normal(prior.loc, np.sqrt(sigma2 / prior.kappa))[None], "sigma2": sigma2[None]}


def _rates(rng: np.random.Generator, prior: bnb.GammaPoisson) -> Parameters:
    return {"rate": (rng.gamma(prior.concentration) / prior.rate)[None]}


def _mixed(rng: np.random.Generator, n_classes: int) -> Parameters:
    return {
        "theta_categorical": _simplexes(rng, np.tile(COLOUR, (n_classes, 1)), (3,)),
        **_gaussians(rng, _normal(1)),
        "theta_bernoulli": _simplexes(rng, np.tile(RIPE, (n_classes, 1)), (2,)),
        **_rates(rng, _poisson(1)),
    }


def _levels(family: str, make: Any, **options: Any) -> Simulated:
    return replace(
        SIMULATED[family],
        make=partial(make, alpha=ALPHA[family], class_alpha=CLASS_ALPHA, **options),
        parameters=lambda rng, _: {"theta": _simplexes(rng, ALPHA[family], SIZES[family])},
    )


FIXED = {
    "categorical": _levels("categorical", bnb.CategoricalNB, categories=[range(size) for size in LEVELS]),
    "bernoulli": _levels("bernoulli", bnb.BernoulliNB),
    "multinomial": _levels("multinomial", bnb.MultinomialNB),
    "gaussian": replace(
        SIMULATED["gaussian"],
        make=partial(bnb.GaussianNB, prior=_normal(3), class_alpha=CLASS_ALPHA),
        parameters=lambda rng, _: _gaussians(rng, _normal(3)),
    ),
    "poisson": replace(
        SIMULATED["poisson"],
        make=partial(bnb.PoissonNB, prior=_poisson(3), class_alpha=CLASS_ALPHA),
        parameters=lambda rng, _: _rates(rng, _poisson(3)),
    ),
    "negative binomial": replace(
        SIMULATED["negative binomial"],
        make=partial(bnb.NegativeBinomialNB, prior=_counts(3), class_alpha=CLASS_ALPHA),
        parameters=lambda rng, _: draw_counts_prior(rng, _counts(3).concentration, _counts(3).rate),
    ),
    "mixed": replace(
        SIMULATED["mixed"],
        make=partial(
            bnb.MixedNB,
            categorical=["colour"],
            bernoulli=["ripe"],
            poisson=["seeds"],
            categories={"colour": [0, 1, 2]},
            numbers="gaussian",
            alpha=[COLOUR, 1.0, RIPE, 1.0],
            class_alpha=CLASS_ALPHA,
            gaussian_prior=_normal(1),
            poisson_prior=_poisson(1),
        ),
        parameters=_mixed,
    ),
}


def draw_truth(case: Simulated, rng: np.random.Generator) -> Parameters:
    return {"class_prob": rng.dirichlet(CLASS_ALPHA)[None], **case.parameters(rng, len(CLASSES))}


def log_likelihood(case: Simulated, parameters: Parameters, X: Any, y: np.ndarray) -> np.ndarray:
    """(S,) log p(X, y | θ), up to what no parameter changes."""
    joint = case.log_likelihood(parameters, X) + np.log(parameters["class_prob"])[:, None]
    return joint[:, np.arange(len(y)), y].sum(axis=1)
