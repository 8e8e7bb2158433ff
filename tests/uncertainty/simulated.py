"""Naive Bayes from a fixed proper prior: parameters, rows and log-likelihoods, in NumPy.

Parameters are a dictionary of arrays (S, C, K) as `posterior_draws` names them, so that what is written here
evaluates the truth (S = 1) and posterior draws alike.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln, logsumexp

import bayesnb as bnb

Parameters = dict[str, np.ndarray]

LEVELS = (3, 2, 4)  # of the categorical features
WORDS, LENGTH = 5, 6  # a document has six of five words
SIZES = {"categorical": LEVELS, "bernoulli": (2, 2, 2), "multinomial": (WORDS,)}
NORMAL = bnb.NormalInverseGamma(1.0, 0.5, 2.5, 3.0)
POISSON = bnb.GammaPoisson(2.0, 0.7)
COUNTS = bnb.BetaNegativeBinomial(4.0, 6.0)


@dataclass(frozen=True)
class Simulated:
    """One kind of features.

    Parameters
    ----------
    make : () -> estimator whose prior is the one that `parameters` draws from
    parameters : (rng, C) -> Parameters with S = 1, those of the features
    rows : (rng, parameters, label (N,)) -> X
    log_likelihood : (parameters, X) -> (S, N, C), up to what no class changes; NaN is a missing cell
    fixed : rows that were chosen before anything was drawn
    class_alpha : concentrations of the classes
    """

    make: Callable[..., Any]
    parameters: Callable[[np.random.Generator, int], Parameters]
    rows: Callable[[np.random.Generator, Parameters, np.ndarray], Any]
    log_likelihood: Callable[[Parameters, Any], np.ndarray]
    fixed: Any
    class_alpha: Any = 1.0

    def truth(self, rng: np.random.Generator, n_classes: int = 2) -> Parameters:
        """Class probabilities and parameters from the prior."""
        class_prob = rng.dirichlet(self.class_alpha * np.ones(n_classes), 1)
        return {"class_prob": class_prob, **self.parameters(rng, n_classes)}

    def draw(self, rng: np.random.Generator, truth: Parameters, n: int) -> tuple[Any, np.ndarray]:
        """n rows and their labels."""
        label = rng.choice(truth["class_prob"].shape[1], n, p=truth["class_prob"][0])
        return self.rows(rng, truth, label), label

    def fit(self, X: Any, y: np.ndarray, n_classes: int = 2, **options: Any) -> Any:
        return self.make(**options).partial_fit(X, y, classes=range(n_classes))

    def log_proba(self, parameters: Parameters, X: Any) -> np.ndarray:
        """(S, N, C) log P(class | row, θ)."""
        with np.errstate(divide="ignore"):
            joint = self.log_likelihood(parameters, X) + np.log(parameters["class_prob"])[:, None]
        return joint - logsumexp(joint, axis=-1, keepdims=True)

    def log_row(self, parameters: Parameters, X: Any) -> np.ndarray:
        """(S, N) log p(row | θ), up to what no parameter changes."""
        return logsumexp(self.log_likelihood(parameters, X) + np.log(parameters["class_prob"])[:, None], axis=-1)


def _cells(terms: np.ndarray) -> np.ndarray:
    """Sum over features; a missing cell contributes nothing."""
    return np.nansum(terms, axis=-1)


def _normal(mu: np.ndarray, sigma2: np.ndarray, X: Any) -> np.ndarray:
    x, mu, sigma2 = np.asarray(X, float)[:, None], mu[:, None], sigma2[:, None]
    return _cells(-0.5 * np.log(sigma2) - 0.5 * (x - mu) ** 2 / sigma2)


def _poisson(rate: np.ndarray, X: Any) -> np.ndarray:
    x, rate = np.asarray(X, float)[:, None], rate[:, None]
    return _cells(x * np.log(rate) - rate)


def _levels(theta: np.ndarray, X: Any, sizes: tuple[int, ...]) -> np.ndarray:
    """Codes within features of the given numbers of levels."""
    x = np.asarray(X, float)
    total = np.zeros((len(theta), len(x), theta.shape[1]))
    for column, start in zip(x.T, np.cumsum([0, *sizes]), strict=False):
        seen = ~np.isnan(column)
        total[:, seen] += np.log(theta[:, :, start + column[seen].astype(int)]).swapaxes(1, 2)
    return total


def _words(theta: np.ndarray, X: Any) -> np.ndarray:
    return np.einsum("nl,scl->snc", np.asarray(X, float), np.log(theta))


def _draw_levels(rng: np.random.Generator, theta: np.ndarray, label: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    bounds = np.cumsum([0, *sizes])
    u = rng.random((len(sizes), len(label), 1))
    return np.stack(
        [
            (u[j] > np.cumsum(theta[0][label, start:stop], axis=1)[:, :-1]).sum(axis=1)
            for j, (start, stop) in enumerate(pairwise(bounds))
        ],
        axis=1,
    ).astype(float)


def _simplexes(rng: np.random.Generator, alpha: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    groups = np.split(alpha, np.cumsum(sizes)[:-1], axis=1)
    return np.concatenate([[rng.dirichlet(of_class) for of_class in group] for group in groups], axis=1)[None]


def _gaussians(rng: np.random.Generator, prior: bnb.NormalInverseGamma, shape: tuple[int, int]) -> Parameters:
    sigma2 = prior.rate / rng.gamma(prior.concentration, size=shape)
    return {"mu": rng.normal(prior.loc, np.sqrt(sigma2 / prior.kappa))[None], "sigma2": sigma2[None]}


def _rates(rng: np.random.Generator, prior: bnb.GammaPoisson, shape: tuple[int, int]) -> np.ndarray:
    return (rng.gamma(prior.concentration, size=shape) / prior.rate)[None]


def _draw_normal(rng: np.random.Generator, p: Parameters, label: np.ndarray) -> np.ndarray:
    return rng.normal(p["mu"][0][label], np.sqrt(p["sigma2"][0][label]))


def _frame(columns: list[np.ndarray]) -> pd.DataFrame:
    colour, length, ripe, seeds = (np.asarray(c, float).ravel() for c in columns)
    return pd.DataFrame({"colour": colour, "length": length, "ripe": ripe, "seeds": seeds})


def _mixed_rows(rng: np.random.Generator, p: Parameters, label: np.ndarray) -> pd.DataFrame:
    colour = _draw_levels(rng, p["theta_categorical"], label, (3,))
    ripe = _draw_levels(rng, p["theta_bernoulli"], label, (2,))
    return _frame([colour, _draw_normal(rng, p, label), ripe, rng.poisson(p["rate"][0][label])])


def _mixed_log_likelihood(p: Parameters, X: pd.DataFrame) -> np.ndarray:
    return (
        _levels(p["theta_categorical"], X[["colour"]], (3,))
        + _normal(p["mu"], p["sigma2"], X[["length"]])
        + _levels(p["theta_bernoulli"], X[["ripe"]], (2,))
        + _poisson(p["rate"], X[["seeds"]])
    )


def draw_counts_prior(rng: np.random.Generator, prior: bnb.BetaNegativeBinomial, shape: tuple[int, int]) -> Parameters:
    """Dispersions of which 1/√r is half-Cauchy, on the grid of the model, and rates r G(a)/G(1 + b r)."""
    grid = 2.0 ** np.arange(-4.0, 10.5, 0.5)
    a, b = (np.broadcast_to(v, shape) for v in (prior.concentration, prior.rate))
    r = rng.choice(grid, shape, p=np.sqrt(grid) / (1 + grid) / np.sum(np.sqrt(grid) / (1 + grid)))
    return {"rate": (r * rng.gamma(a) / rng.gamma(1.0 + b * r))[None], "dispersion": r[None]}


def _draw_counts(rng: np.random.Generator, rate: np.ndarray, r: np.ndarray) -> np.ndarray:
    return rng.poisson(rate * rng.gamma(r) / r).astype(float)


def _negative_binomial(rate: np.ndarray, r: np.ndarray, X: np.ndarray) -> np.ndarray:
    rate, r, X = rate[:, None], r[:, None], X[:, None]
    cells = gammaln(X + r) - gammaln(r) + X * np.log(rate / (r + rate)) - r * np.log1p(rate / r)
    return np.nansum(cells, axis=-1)


def simulated(alpha: Any, normal: Any, poisson: Any, counts: Any, options: Any) -> dict[str, Simulated]:
    """Kinds of features under given priors.

    Parameters
    ----------
    alpha : (name of a family or a column, C) -> (C, L) concentrations of its levels
    normal, poisson, counts : number of features -> prior of numbers
    options : family -> hyperparameters of the estimator, those of numbers aside
    """

    def of_levels(family: str, make: Any, fixed: Any, **levels: Any) -> Simulated:
        sizes = SIZES[family]
        return Simulated(
            partial(make, **levels, **options(family)),
            lambda rng, n: {"theta": _simplexes(rng, alpha(family, n), sizes)},
            lambda rng, p, label: _draw_levels(rng, p["theta"], label, sizes),
            lambda p, X: _levels(p["theta"], X, sizes),
            np.array(fixed),
        )

    def mixed_parameters(rng: np.random.Generator, n: int) -> Parameters:
        return {
            "theta_categorical": _simplexes(rng, alpha("colour", n), (3,)),
            **_gaussians(rng, normal(1), (n, 1)),
            "theta_bernoulli": _simplexes(rng, alpha("ripe", n), (2,)),
            "rate": _rates(rng, poisson(1), (n, 1)),
        }

    kinds = {"categorical": ["colour"], "bernoulli": ["ripe"], "poisson": ["seeds"], "numbers": "gaussian"}
    of_numbers = {"gaussian_prior": normal(1), "poisson_prior": poisson(1)}
    by_row = ((0, 1.0, 0, 1), (2, 3.0, 1, 4), (1, -2.0, 1, 0))
    whole = [[1.0, 1, 1], [3, 3, 3], [0, 2, 7]]
    categories = [list(range(size)) for size in LEVELS]
    words = of_levels("multinomial", bnb.MultinomialNB, [[1, 1, 1, 1, 2], [6, 0, 0, 0, 0], [0, 0, 0, 2, 1]])
    return {
        "categorical": of_levels(
            "categorical", bnb.CategoricalNB, [[0.0, 0, 0], [1, 1, 1], [2, 0, 3]], categories=categories
        ),
        "bernoulli": of_levels("bernoulli", bnb.BernoulliNB, [[0.0, 0, 0], [1, 1, 1], [0, 0, 1]]),
        "multinomial": replace(
            words,
            rows=lambda rng, p, label: np.array([rng.multinomial(LENGTH, p["theta"][0, k]) for k in label]),
            log_likelihood=lambda p, X: _words(p["theta"], X),
        ),
        "gaussian": Simulated(
            partial(bnb.GaussianNB, prior=normal(3), **options("gaussian")),
            lambda rng, n: _gaussians(rng, normal(3), (n, 3)),
            _draw_normal,
            lambda p, X: _normal(p["mu"], p["sigma2"], X),
            np.array([[1.0, 1.0, 1.0], [3.0, -1.0, 2.0], [-2.0, -2.0, 5.0]]),
        ),
        "poisson": Simulated(
            partial(bnb.PoissonNB, prior=poisson(3), **options("poisson")),
            lambda rng, n: {"rate": _rates(rng, poisson(3), (n, 3))},
            lambda rng, p, label: rng.poisson(p["rate"][0][label]).astype(float),
            lambda p, X: _poisson(p["rate"], X),
            np.array(whole),
        ),
        "negative binomial": Simulated(
            partial(bnb.NegativeBinomialNB, prior=counts(3), **options("negative binomial")),
            lambda rng, n: draw_counts_prior(rng, counts(3), (n, 3)),
            lambda rng, p, label: _draw_counts(rng, p["rate"][0][label], p["dispersion"][0][label]),
            lambda p, X: _negative_binomial(p["rate"], p["dispersion"], X),
            np.array(whole),
        ),
        "mixed": Simulated(
            partial(bnb.MixedNB, categories={"colour": [0, 1, 2]}, **kinds, **of_numbers, **options("mixed")),
            mixed_parameters,
            _mixed_rows,
            _mixed_log_likelihood,
            pd.concat([_frame([[value] for value in row]) for row in by_row]),
        ),
    }


SIMULATED = simulated(
    lambda name, n: np.ones((n, {"colour": 3, "ripe": 2}.get(name) or sum(SIZES[name]))),
    *(lambda _, prior=prior: prior for prior in (NORMAL, POISSON, COUNTS)),
    lambda family: {},
)
"""All concentrations are 1, and all numbers have one prior."""
