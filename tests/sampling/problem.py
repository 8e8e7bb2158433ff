"""A fitted problem and its NumPyro programs, shared by the tests of this folder."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax
import numpy as np
import pandas as pd
from numpyro.infer.util import log_density

from bayesnb import (
    BernoulliNB,
    CategoricalNB,
    ExponentialNB,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    NaiveBayes,
    PoissonNB,
    numpyro_model,
    posterior_draws,
)
from bayesnb._util.precision import float64
from bayesnb.model import Statistics
from bayesnb.sampling import programs
from bayesnb.uncertainty import site_names
from bayesnb.uncertainty.draws import draw_parameters
from tests.strategies import CLASSES, Problem

TOLERANCE = 1e-9
POINTS = 50

Draws = dict[str, np.ndarray]
Program = Callable[[], None]


def values_by_column(nb: Any, drawn: Any) -> dict[str, Any]:
    """Draws (…, C, K) of `posterior_draws` as values of the sites of `numpyro_source`, which has one a column."""
    values = {"class_prob": drawn["class_prob"]}
    for columns, names in zip(nb.encoding_.blocks, site_names(nb.encoding_, nb.prior_), strict=True):
        for site in names.values():
            if columns.one_simplex:
                values[site] = drawn[site]
                continue
            for name, start, size in zip(columns.names, columns.start(), columns.sizes(), strict=True):
                own = drawn[site][..., start : start + size]
                of_levels = columns.axis()[1] is not None
                if columns.network is not None:
                    own = own.reshape(*own.shape[:-1], *columns.shape(columns.nodes[list(columns.names).index(name)]))
                values[f"{site}_{name}"] = own if of_levels else own[..., 0]
    return values


class Fitted:
    """A fitted problem, its rows, and its programs."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.nb = problem, problem.fit()
        self.sites = site_names(self.nb.encoding_, self.nb.prior_)
        self.log_evidence = self.nb.log_evidence_

    def row_form(self) -> Program:
        """The text's program of all rows; a row of weight w occurs w times."""
        rows = self.problem.take(np.repeat(np.arange(len(self.problem)), self.problem.weight.astype(int)))
        return partial(numpyro_model(self.nb), rows.X, rows.y)

    def statistics_form(self, prior: NaiveBayes | None = None, statistics: Statistics | None = None) -> Program:
        statistics = statistics or self.nb.statistics_
        return partial(programs.naive_bayes_of_statistics, prior or self.nb.prior_, statistics, sites=self.sites)

    def posterior(self) -> Program:
        return lambda: programs.sample_all_parameters(self.nb.posterior_, self.sites)

    def draws(self, seed: int = 0, n: int = POINTS) -> Draws:
        """θ of the posterior, and as many of a distribution that lies between it and the prior."""
        near, nb = posterior_draws(self.nb, n // 2, seed), self.nb
        far = draw_parameters(nb.encoding_, nb.prior_.update(nb.statistics_.scale(0.1)), n - n // 2, seed + 1)
        return {site: np.concatenate([values, far[site]]) for site, values in near.items()}

    @float64
    def densities(self, drawn: Draws, *forms: Program) -> list[np.ndarray]:
        """(S,) log density of each program at S draws."""

        def at_one(theta: dict[str, Any]) -> list[jax.Array]:
            values = programs.to_site_values(self.nb.prior_, theta, self.sites)
            values |= values_by_column(self.nb, theta)
            return [log_density(form, (), {}, values)[0] for form in forms]

        return jax.jit(jax.vmap(at_one))(drawn)

    def discrepancies(self, drawn: Draws, *forms: Program) -> list[np.ndarray]:
        """(S,) |log p(D, θ) - log p(θ | D) - log p(D)| of each form, in units of the tolerance."""
        posterior, *joints = self.densities(drawn, self.posterior(), *forms)
        return [abs(j - posterior - self.log_evidence) / (TOLERANCE * max(1.0, abs(self.log_evidence))) for j in joints]

    def theta(self, drawn: Draws, s: int) -> list[Any]:
        """Parameters of each block as `test_bayes_identity` has them."""
        last = "dispersion"  # is given the rate
        ordered = [sorted(own, key=lambda name: (name == last, name)) for own in self.sites]
        parts = [tuple(drawn[own[name]][s] for name in names) for own, names in zip(self.sites, ordered, strict=True)]
        return [part if len(part) > 1 else part[0] for part in parts]


def one_more(family: Any) -> Any:
    return replace(family, concentration=family.concentration + 1.0)


ESTIMATORS = {
    "categorical": CategoricalNB(alpha=0.7),
    "bernoulli": BernoulliNB(alpha=0.5),
    "multinomial": MultinomialNB(alpha=0.3),
    "gaussian": GaussianNB(class_alpha=2.0),
    "poisson": PoissonNB(class_prior=[0.2, 0.5, 0.3]),
    "exponential": ExponentialNB(class_alpha=0.5),
    "mixed": MixedNB(bernoulli="heads", poisson="visits", multinomial=["word", "other"], numbers="gaussian", alpha=0.8),
}


@cache
def ordinary(kind: str) -> tuple[Fitted, Draws]:
    """Twelve rows in which every mistake would matter, and parameters for them."""
    rng = np.random.default_rng(3)
    label, weight = np.arange(12) % 3, 1.0 + np.arange(12) % 2
    count, real = rng.poisson(2.0 + label[:, None], (12, 5)).astype(float), rng.normal(label[:, None], 2.0, (12, 2))
    word = np.array(["red", "", "green"], dtype=object)[count.astype(int) % 3]
    word[5, 0], real[7, 0] = None, np.nan
    mixed = {
        "colour": word[:, 0],
        "size": real[:, 0],
        "sort": word[:, 1],
        "heads": (count[:, 2] > 2).astype(float),
        "visits": count[:, 3],
        "weight": real[:, 1],
        "word": count[:, 4],
        "other": count[:, 0],
    }
    X = {
        "categorical": word[:, :3],
        "bernoulli": (count[:, :3] > 2).astype(float),
        "multinomial": count[:, :3],
        "gaussian": real,
        "poisson": count[:, :3],
        "exponential": count[:, :3] / 8.0 + 0.125,
        "mixed": pd.DataFrame(mixed),
    }
    fitted = Fitted(Problem(kind, ESTIMATORS[kind], X[kind], np.array(CLASSES)[label], weight))
    return fitted, fitted.draws()
