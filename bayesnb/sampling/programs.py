"""Naive Bayes as NumPyro programs, made from the same prior objects as the closed form.

A row is a class of its own, whose statistics are itself: the programs read rows as `Statistics` of N "classes", so
that a family says once how its parameters are distributed, and once how a cell is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist  # not `import numpyro.distributions as dist`: see `run_nuts`

from bayesnb.capabilities import require_capability
from bayesnb.families import LevelCounts
from bayesnb.families.multinomial import Multinomial
from bayesnb.families.protocol import CellSite, Distribution, Program
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.uncertainty.draws import CLASS_PROB

# For each block the site of each parameter by its own name.
Sites = Sequence[Mapping[str, str]]


def naive_bayes(
    model: NaiveBayes,
    rows: Statistics | None = None,
    label: Any = None,
    weight: Any = None,
    *,
    sites: Sites,
    n_rows: int | None = None,
    totals: Sequence[Any] | None = None,
) -> None:
    """The generative program: π and θ from the prior, for each row a class, and cells given the class.

    Parameters
    ----------
    model : NaiveBayes
        The prior; or a posterior, to simulate what may come.
    rows : Statistics of N classes, optional
        Each row counted as a class of its own, as `counting.single_rows` does. Without them rows are simulated.
    label : (N,) int array, optional
        Class of each row. Without labels, but with rows, the class is summed out; without both it is simulated.
    weight : (N,) array, optional
        Replication counts: the likelihood of a row to the power of its weight.
    sites : for each block the site of each parameter, as `site_names` gives them
    n_rows : int
        How many rows to simulate.
    totals : for each block (N, G) or scalar, optional
        Of simulated rows, how many draws from each simplex: the lengths of documents. Default: one.

    Notes
    -----
    Sites are "class_prob", "label", the parameters, and "x_0", "x_1", … for the cells of each block. Simplexes of L
    levels are the sites "theta_of_L" and "x_0_of_L"; "theta" itself is deterministic.
    """
    n = n_rows if rows is None else len(rows.class_count)
    blocks = [None] * len(model.blocks) if rows is None else rows.blocks
    log_class, likelihoods = parameters(model, sites)
    parts = list(zip(model.blocks, likelihoods, blocks, totals or [1] * len(blocks), strict=True))
    with numpyro.plate("rows", n), numpyro.handlers.scale(scale=1.0 if weight is None else jnp.asarray(weight)):
        if rows is not None and label is None:
            numpyro.factor("rows_of_some_class", jax.nn.logsumexp(log_class + _log_likelihood(parts), axis=-1))
            return
        label = numpyro.sample("label", dist.Categorical(logits=log_class), obs=label)
        for b, (family, likelihood, cells, total) in enumerate(parts):
            own = jax.tree.map(lambda p: p[label], likelihood)
            for site in family.cells(own, cells, total):
                numpyro.sample(f"x_{b}{site.suffix}", distribution_of_cells(site), obs=site.value)


def from_statistics(model: NaiveBayes, statistics: Statistics, *, sites: Sites) -> None:
    """The same joint density of parameters and labelled rows, at a cost that does not grow with the rows."""
    log_class, likelihoods = parameters(model, sites)
    likelihoods = [Multinomial(log_class[None]), *likelihoods]
    counted = [LevelCounts(statistics.class_count[None]), *statistics.blocks]
    terms = [jnp.sum(p.log_likelihood(data)) for p, data in zip(likelihoods, counted, strict=True)]
    numpyro.factor("rows", sum(terms, jnp.asarray(statistics.log_base)))


@dataclass(frozen=True, eq=False)
class Fixed:
    """A prior without unknown hyperparameters, as what NUTS samples from."""

    prior: NaiveBayes
    sites: Sites
    hyperprior = "none"

    def program(self, statistics: Statistics) -> Callable[[], None]:
        """The posterior of the parameters."""
        return partial(from_statistics, self.prior, statistics, sites=self.sites)

    def finish(
        self, samples: Mapping[str, np.ndarray], statistics: Statistics, masks: Sequence[np.ndarray], seed: int
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
        """The parameters of S draws by the names of `posterior_draws`; no hyperparameters, of classes and blocks."""
        found: dict[str, Any] = {CLASS_PROB: samples[CLASS_PROB]} if CLASS_PROB in samples else {}
        for own, keep in zip(self.sites, masks, strict=True):
            found |= {site: samples[site][..., keep] for site in own.values() if keep.any()}
        classes: Any = self.prior.class_prior
        if classes.fixed:
            n_draws = len(next(iter(samples.values())))
            found[CLASS_PROB] = np.repeat(np.exp(np.asarray(classes.log_prob)), n_draws, axis=0)
        return found, [{} for _ in range(1 + len(self.sites))]


def parameters(model: NaiveBayes, sites: Sites) -> tuple[jax.Array, list[Any]]:
    """Sample the log class probabilities (C,), and for each block the likelihood with its parameters plugged in."""
    classes: Any = model.class_prior
    if classes.fixed:
        log_class = jnp.asarray(classes.log_prob)[0]
    else:
        log_class = jnp.log(numpyro.sample(CLASS_PROB, dist.Dirichlet(jnp.asarray(classes.concentration)[0])))
    return log_class, [sample_parameters(f, own) for f, own in zip(model.blocks, sites, strict=True)]


def _log_likelihood(parts: list[tuple[Any, ...]]) -> jax.Array:
    """(N, C) log p(row | class) of observed rows."""
    total = jnp.zeros(())
    for family, likelihood, cells, draws in parts:
        of_class = jax.tree.map(lambda p: p[None], likelihood), jax.tree.map(lambda v: v[:, None], cells)
        for site in family.cells(*of_class, draws):
            total = total + distribution_of_cells(site).log_prob(site.value)
    return total


def sample_parameters(family: Any, sites: Mapping[str, str]) -> Any:
    """Sample the parameters of a block, (C, K) each, at the given sites; returns its plug-in likelihood."""
    require_capability(family, Program)
    n_classes = jax.tree.leaves(family)[0].shape[0]
    values: dict[str, Any] = {}
    for site in family.program():
        name = f"{sites[site.parameter]}{site.suffix}"
        with numpyro.plate("classes", n_classes, dim=-2), numpyro.plate(f"{name}_plate", site.size):
            values[site.parameter + site.suffix] = numpyro.sample(name, _distribution(site.distribution(values)))
    found = family.from_sites(values)
    for parameter in found.keys() - values.keys():
        numpyro.deterministic(sites[parameter], found[parameter])
    return family.likelihood.from_parameters(**found)


def distribution_of_cells(site: CellSite) -> dist.Distribution:
    """Of the cells of rows, event (K,)."""
    return _distribution(site.distribution).mask(site.seen).to_event(1)


def _distribution(named: Distribution) -> dist.Distribution:
    name, arguments = named
    # Cells that are no possible values have the density that the closed form gives them.
    return getattr(dist, name)(**arguments, validate_args=False)


def at(model: NaiveBayes, drawn: Mapping[str, Any], sites: Sites) -> dict[str, Any]:
    """Draws of `posterior_draws`, or one without the leading axis, at the sites of the programs."""
    found = dict(drawn)
    for family, own in zip(model.blocks, sites, strict=True):
        values = family.to_sites({parameter: found.pop(site) for parameter, site in own.items()})
        parts = [(own[site.parameter], site) for site in family.program()]
        found |= {f"{name}{site.suffix}": values[site.parameter + site.suffix] for name, site in parts}
    if model.class_prior.fixed:
        del found[CLASS_PROB]
    return found
