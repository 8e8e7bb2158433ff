"""Priors given their hyperparameters, and the exact posteriors given draws of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import jax
import numpy as np

from bayesnb.families import Known, hyperprior_of
from bayesnb.fitted import Fitted
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.scoring import pad
from bayesnb.uncertainty.draws import as_classes, site_names
from bayesnb.uncertainty.importance import joint_given

Kind = Literal["symmetric", "pooled"]
# For each block the site of each parameter by its own name.
Sites = Sequence[Mapping[str, str]]

CLASS_ALPHA = "class_alpha"
_MOST_CELLS = 2**21


def hyperparameter_sites(prior: NaiveBayes, kind: Kind, sites: Sites) -> list[dict[str, str]]:
    """For each block the site of each of its hyperparameters, with the ending of those of its parameters.

    A name that a parameter has already says whose prior it belongs to: "rate_of_sigma2" beside Poisson rates.
    """
    taken = {name for own in sites for pair in own.items() for name in pair}

    def named(family: Any, own: Mapping[str, str]) -> dict[str, str]:
        hyperprior = hyperprior_of(family, kind == "pooled")
        of = {name: own[said.parameter].replace(said.parameter, name) for name, said in hyperprior.items()}
        return {n: f"{of[n]}_of_{own[said.parameter]}" if of[n] in taken else of[n] for n, said in hyperprior.items()}

    return [named(family, own) for family, own in zip(prior.blocks, sites, strict=True)]


def prior_given(prior: NaiveBayes, names: Sequence[Mapping[str, str]], values: Mapping[str, Any]) -> NaiveBayes:
    """The prior with these hyperparameters in place of its own; a fixed prior stays as it is.

    Parameters
    ----------
    prior : NaiveBayes
        A `unit` one.
    names : for each block the sites of its hyperparameters, as `hyperparameter_sites` gives them
    values : hyperparameters by site
    """
    parts = zip(prior.blocks, names, strict=True)
    blocks = tuple(f.with_hyperparameters({h: values[site] for h, site in own.items()}) for f, own in parts)
    classes = prior.class_prior.with_hyperparameters({"alpha": values[CLASS_ALPHA]} if CLASS_ALPHA in values else {})
    return replace(prior, class_prior=classes, blocks=blocks)


def shapes(prior: NaiveBayes, kind: Kind, names: Sequence[Mapping[str, str]]) -> dict[str, tuple[int, ...]]:
    """What `prior_given` needs, and the shape of each."""
    found: dict[str, tuple[int, ...]] = {} if prior.class_prior.fixed else {CLASS_ALPHA: ()}
    for family, own in zip(prior.blocks, names, strict=True):
        hyperprior = hyperprior_of(family, kind == "pooled")
        found |= {site: hyperprior[name].shape for name, site in own.items()}
    return found


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """The posteriors p(θ | D, φ_s) given S draws of the hyperparameters φ | D, of which p(θ | D) is the average.

    Parameters
    ----------
    prior, statistics
        Of the fitted model.
    kind : {"symmetric", "pooled"} or None
        None: the prior has no unknown hyperparameters, and its posterior is the only one.
    values : hyperparameters by site, (S, …) each
    """

    prior: NaiveBayes
    statistics: Statistics
    kind: Kind | None
    values: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return 1 if self.kind is None else len(next(iter(self.values.values())))

    def known_classes(self, prob: np.ndarray) -> Self:
        """With the class probabilities (C,) in place of the learned ones."""
        with np.errstate(divide="ignore"):
            return replace(self, prior=replace(self.prior, class_prior=Known(np.log(prob)[None])))

    def joints(self, fitted: Fitted, x: tuple[Any, ...]) -> Iterator[jax.Array]:
        """(s, n, C) log p(class, row | D, φ), some draws at a time."""
        return (joint_given(model, x) for model in self.models(fitted.encoding))

    def models(self, encoding: Any) -> Iterator[NaiveBayes]:
        """The posteriors, some at a time as one model with so many times as many classes; class priors are (S, C)."""
        if self.kind is None:
            yield pad(encoding, jax.tree.map(np.asarray, self.prior.update(self.statistics)))
            return
        sites = hyperparameter_sites(self.prior, self.kind, site_names(encoding, self.prior))
        names = tuple(tuple(own.items()) for own in sites)
        size = max(1, _MOST_CELLS // (1 + sum(np.size(leaf) for leaf in jax.tree.leaves(self.statistics))))
        for start in range(0, len(self), size):
            part = {site: values[start : start + size] for site, values in self.values.items()}
            models = _posteriors(self.prior.unit(), self.statistics, part, names)
            yield pad(encoding, jax.tree.map(np.asarray, models))


@partial(jax.jit, static_argnames="names")
def _posteriors(
    prior: NaiveBayes,
    statistics: Statistics,
    values: Mapping[str, Any],
    names: tuple[tuple[tuple[str, str], ...], ...],
) -> NaiveBayes:
    sites = list(map(dict, names))
    return as_classes(jax.vmap(lambda one: prior_given(prior, sites, one).update(statistics))(values))
