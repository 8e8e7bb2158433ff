"""Naive Bayes from a fixed proper prior: parameters, rows and log-likelihoods, in NumPy.

Parameters are a dictionary of arrays (S, C, K) as `posterior_draws` names them, so that what is written here
evaluates the truth (S = 1) and posterior draws alike.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln, logsumexp

import bayesnb as bnb

Parameters = dict[str, np.ndarray]

LEVELS = (3, 2, 4)  # of the categorical features
WORDS, LENGTH = 5, 6  # a document has six of five words
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
    """

    make: Callable[..., Any]
    parameters: Callable[[np.random.Generator, int], Parameters]
    rows: Callable[[np.random.Generator, Parameters, np.ndarray], Any]
    log_likelihood: Callable[[Parameters, Any], np.ndarray]
    fixed: Any

    def truth(self, rng: np.random.Generator, n_classes: int = 2) -> Parameters:
        """Class probabilities and parameters from the prior: all concentrations 1."""
        return {"class_prob": rng.dirichlet(np.ones(n_classes), 1), **self.parameters(rng, n_classes)}

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


def _simplexes(rng: np.random.Generator, n_classes: int, sizes: tuple[int, ...]) -> np.ndarray:
    return np.concatenate([rng.dirichlet(np.ones(size), n_classes) for size in sizes], axis=1)[None]


def _gaussians(rng: np.random.Generator, n_classes: int, n_features: int) -> Parameters:
    sigma2 = NORMAL.rate / rng.gamma(NORMAL.concentration, size=(1, n_classes, n_features))
    return {"mu": NORMAL.loc + np.sqrt(sigma2 / NORMAL.kappa) * rng.normal(size=sigma2.shape), "sigma2": sigma2}


def _rates(rng: np.random.Generator, n_classes: int, n_features: int) -> np.ndarray:
    return rng.gamma(POISSON.concentration, size=(1, n_classes, n_features)) / POISSON.rate


def _draw_normal(rng: np.random.Generator, p: Parameters, label: np.ndarray) -> np.ndarray:
    return rng.normal(p["mu"][0][label], np.sqrt(p["sigma2"][0][label]))


def _frame(columns: list[np.ndarray]) -> pd.DataFrame:
    colour, length, ripe, seeds = (np.asarray(c, float).ravel() for c in columns)
    return pd.DataFrame({"colour": colour, "length": length, "ripe": ripe, "seeds": seeds})


def _mixed_parameters(rng: np.random.Generator, n_classes: int) -> Parameters:
    return {
        "theta_categorical": _simplexes(rng, n_classes, (3,)),
        **_gaussians(rng, n_classes, 1),
        "theta_bernoulli": _simplexes(rng, n_classes, (2,)),
        "rate": _rates(rng, n_classes, 1),
    }


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


def _make_mixed(**options: Any) -> Any:
    return bnb.MixedNB(
        categorical=["colour"],
        bernoulli=["ripe"],
        poisson=["seeds"],
        categories={"colour": [0, 1, 2]},
        numbers="gaussian",
        gaussian_prior=NORMAL,
        poisson_prior=POISSON,
        **options,
    )


def draw_counts_prior(rng: np.random.Generator, a: np.ndarray, b: np.ndarray) -> Parameters:
    """Dispersions of which 1/√r is half-Cauchy, on the grid of the model, and rates r G(a)/G(1 + b r)."""
    grid = 2.0 ** np.arange(-4.0, 10.5, 0.5)
    r = rng.choice(grid, a.shape, p=np.sqrt(grid) / (1 + grid) / np.sum(np.sqrt(grid) / (1 + grid)))
    return {"rate": (r * rng.gamma(a) / rng.gamma(1.0 + b * r))[None], "dispersion": r[None]}


def _draw_counts(rng: np.random.Generator, rate: np.ndarray, r: np.ndarray) -> np.ndarray:
    return rng.poisson(rate * rng.gamma(r) / r).astype(float)


def _negative_binomial(rate: np.ndarray, r: np.ndarray, X: np.ndarray) -> np.ndarray:
    rate, r, X = rate[:, None], r[:, None], X[:, None]
    cells = gammaln(X + r) - gammaln(r) + X * np.log(rate / (r + rate)) - r * np.log1p(rate / r)
    return np.nansum(cells, axis=-1)


SIMULATED = {
    "categorical": Simulated(
        lambda **options: bnb.CategoricalNB(categories=[list(range(size)) for size in LEVELS], **options),
        lambda rng, n: {"theta": _simplexes(rng, n, LEVELS)},
        lambda rng, p, label: _draw_levels(rng, p["theta"], label, LEVELS),
        lambda p, X: _levels(p["theta"], X, LEVELS),
        np.array([[0.0, 0, 0], [1, 1, 1], [2, 0, 3]]),
    ),
    "bernoulli": Simulated(
        bnb.BernoulliNB,
        lambda rng, n: {"theta": _simplexes(rng, n, (2, 2, 2))},
        lambda rng, p, label: _draw_levels(rng, p["theta"], label, (2, 2, 2)),
        lambda p, X: _levels(p["theta"], X, (2, 2, 2)),
        np.array([[0.0, 0, 0], [1, 1, 1], [0, 0, 1]]),
    ),
    "multinomial": Simulated(
        bnb.MultinomialNB,
        lambda rng, n: {"theta": _simplexes(rng, n, (WORDS,))},
        lambda rng, p, label: np.array([rng.multinomial(LENGTH, p["theta"][0, k]) for k in label]),
        lambda p, X: _words(p["theta"], X),
        np.array([[1, 1, 1, 1, 2], [6, 0, 0, 0, 0], [0, 0, 0, 2, 1]]),
    ),
    "gaussian": Simulated(
        lambda **options: bnb.GaussianNB(prior=NORMAL, **options),
        lambda rng, n: _gaussians(rng, n, 3),
        _draw_normal,
        lambda p, X: _normal(p["mu"], p["sigma2"], X),
        np.array([[1.0, 1.0, 1.0], [3.0, -1.0, 2.0], [-2.0, -2.0, 5.0]]),
    ),
    "poisson": Simulated(
        lambda **options: bnb.PoissonNB(prior=POISSON, **options),
        lambda rng, n: {"rate": _rates(rng, n, 3)},
        lambda rng, p, label: rng.poisson(p["rate"][0][label]).astype(float),
        lambda p, X: _poisson(p["rate"], X),
        np.array([[1.0, 1, 1], [3, 3, 3], [0, 2, 7]]),
    ),
    "negative binomial": Simulated(
        lambda **options: bnb.NegativeBinomialNB(prior=COUNTS, **options),
        lambda rng, n: draw_counts_prior(rng, np.full((n, 3), 4.0), np.full((n, 3), 6.0)),
        lambda rng, p, label: _draw_counts(rng, p["rate"][0][label], p["dispersion"][0][label]),
        lambda p, X: _negative_binomial(p["rate"], p["dispersion"], X),
        np.array([[1.0, 1, 1], [3, 3, 3], [0, 2, 7]]),
    ),
    "mixed": Simulated(
        _make_mixed,
        _mixed_parameters,
        _mixed_rows,
        _mixed_log_likelihood,
        pd.concat([_frame([[c], [x], [b], [k]]) for c, x, b, k in ((0, 1.0, 0, 1), (2, 3.0, 1, 4), (1, -2.0, 1, 0))]),
    ),
}
