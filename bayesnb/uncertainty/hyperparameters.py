"""Priors given their hyperparameters, and the exact posteriors given draws of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb.families import Dirichlet, Known, NormalInverseGamma
from bayesnb.fitted import Fitted
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.scoring import pad
from bayesnb.uncertainty.draws import as_classes, site_names
from bayesnb.uncertainty.importance import joint_given

Kind = Literal["symmetric", "pooled"]
# For each block the site of each parameter by its own name.
Sites = Sequence[Mapping[str, str]]

CLASS_ALPHA = "class_alpha"
_CELLS = 2**21
# Of the prior of each parameter.
_NAMES = {"theta": ("alpha", "base_measure"), "mu": ("loc",), "sigma2": ("rate",)}


def hyperparameter_sites(sites: Sites) -> list[list[str]]:
    """For each block the sites of its hyperparameters, with the ending of those of its parameters.

    A name that a parameter has already says whose prior it belongs to: "rate_of_sigma2" beside Poisson rates.
    """
    taken = {site for own in sites for site in own.values()}
    named = [
        [(site.replace(name, h), site) for name, site in own.items() for h in _NAMES.get(name, ())] for own in sites
    ]
    return [[f"{hyper}_of_{site}" if hyper in taken else hyper for hyper, site in block] for block in named]


def prior_given(prior: NaiveBayes, kind: Kind, names: Sequence[Sequence[str]], values: Mapping[str, Any]) -> NaiveBayes:
    """The prior with these hyperparameters in place of its own.

    Parameters
    ----------
    prior : NaiveBayes
        What has no hyperparameters, Poisson blocks and a known class prior, stays as it is.
    kind : {"symmetric", "pooled"}
        Dirichlet(α, …, α), or Dirichlet(α L m) in each class, L levels a group.
    names : for each block the sites of its hyperparameters, as `hyperparameter_sites` gives them
    values : hyperparameters by site
        α, the base measure m (L,), location and rate (F,) of Gaussian features.
    """

    def block(family: Any, sites: Sequence[str]) -> Any:
        if isinstance(family, Dirichlet):
            alpha = values[sites[0]]
            return _symmetric(family, alpha) if kind == "symmetric" else _pooled(family, alpha, values[sites[1]])
        return _shared(family, *(values[s] for s in sites)) if isinstance(family, NormalInverseGamma) else family

    class_prior = prior.class_prior
    if isinstance(class_prior, Dirichlet):
        class_prior = _symmetric(class_prior, values[CLASS_ALPHA])
    return NaiveBayes(class_prior, tuple(map(block, prior.blocks, names)))


def shapes(prior: NaiveBayes, kind: Kind, names: Sequence[Sequence[str]]) -> dict[str, tuple[int, ...]]:
    """What `prior_given` needs, and the shape of each."""
    found: dict[str, tuple[int, ...]] = {CLASS_ALPHA: ()} if isinstance(prior.class_prior, Dirichlet) else {}
    for family, sites in zip(prior.blocks, names, strict=True):
        if isinstance(family, Dirichlet):
            found[sites[0]] = ()
        if isinstance(family, NormalInverseGamma) or (isinstance(family, Dirichlet) and kind == "pooled"):
            wide = sites if isinstance(family, NormalInverseGamma) else sites[1:]
            found |= {site: np.shape(family.concentration)[1:] for site in wide}
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
        names = tuple(map(tuple, hyperparameter_sites(site_names(encoding, self.prior))))
        size = max(1, _CELLS // (1 + sum(np.size(leaf) for leaf in jax.tree.leaves(self.statistics))))
        for start in range(0, len(self), size):
            part = {site: values[start : start + size] for site, values in self.values.items()}
            models = _posteriors(self.prior, self.statistics, part, self.kind, names)
            yield pad(encoding, jax.tree.map(np.asarray, models))


@partial(jax.jit, static_argnames=("kind", "names"))
def _posteriors(
    prior: NaiveBayes, statistics: Statistics, values: Mapping[str, Any], kind: Kind, names: tuple[tuple[str, ...], ...]
) -> NaiveBayes:
    return as_classes(jax.vmap(lambda one: prior_given(prior, kind, names, one).update(statistics))(values))


def _symmetric(family: Dirichlet, alpha: Any) -> Dirichlet:
    return replace(family, concentration=alpha * jnp.ones_like(jnp.asarray(family.concentration)))


def _pooled(family: Dirichlet, alpha: Any, base_measure: Any) -> Dirichlet:
    group = jnp.asarray(family.group)
    size = jnp.bincount(group, length=family.num_groups)[group]
    return replace(family, concentration=jnp.broadcast_to(alpha * size * base_measure, np.shape(family.concentration)))


def _shared(family: NormalInverseGamma, loc: Any, rate: Any) -> NormalInverseGamma:
    shape = np.shape(family.loc)
    return replace(family, loc=jnp.broadcast_to(loc, shape), rate=jnp.broadcast_to(rate, shape))
