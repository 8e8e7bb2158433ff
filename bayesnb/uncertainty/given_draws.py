"""Draws of parameters or hyperparameters that users pass: exact ones, those of NUTS, or of another program.

From draws of the posterior of the same model only the hyperparameters are read: given these θ is integrated out in
closed form. From draws of other origin θ itself is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import numpy as np

from bayesnb._util.arguments import bad_argument, shown, to_numbers
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding, check_labels
from bayesnb.encoding.levels import to_python
from bayesnb.families import Known, LevelCounts
from bayesnb.families.arrays import is_host, kernel, vmap, xp
from bayesnb.families.protocol import Hyperparameter, HyperpriorKind
from bayesnb.fitted.scoring import pad
from bayesnb.fitted.state import Fitted
from bayesnb.model import JointLikelihood, NaiveBayes, Statistics, plus
from bayesnb.uncertainty.draws import CLASS_PROB, origin, parameter_shapes, site_names, stack_as_classes

Draws = Mapping[str, np.ndarray]
# For each block the site of each parameter, or hyperparameter, by its name in the family.
Sites = Sequence[Mapping[str, str]]

CLASS_SITES = {"alpha": "class_alpha", "total": "class_total", "theta_mean": "class_prob_mean"}
"""Site of each hyperparameter of the classes, by its name in the family."""
NEW_GROUP = "(new)"
"""Name of a group of rows that was not counted."""
STATISTIC = "statistic_"
"""Beginning of the names of the arrays of statistics of groups in ArviZ data."""
CLASS_ALPHA = CLASS_SITES["alpha"]
_MOST_DRAWN_CELLS = 2**21


# -- reading draws -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Parameters:
    """S draws of the parameters θ.

    Parameters
    ----------
    values : draws by site, (S, …) each, as `posterior_draws` returns them
    """

    values: Draws

    def __len__(self) -> int:
        return len(self.values[CLASS_PROB])

    def known_classes(self, prob: np.ndarray) -> Self:
        """Return a copy with the class probabilities (C,) in place of the drawn ones."""
        drawn = np.broadcast_to(prob, self.values[CLASS_PROB].shape)
        return replace(self, values={**self.values, CLASS_PROB: drawn})

    def joints(self, fitted: Fitted, x: tuple[object, ...]) -> Iterator[jax.Array]:
        """Yield (s, n, C) log p(class, row | θ) of a block of n rows, for s of the draws at a time."""
        size = max(1, _MOST_DRAWN_CELLS // (1 + sum(np.size(values[0]) for values in self.values.values())))
        for start in range(0, len(self), size):
            part = slice(start, min(start + size, len(self)))
            yield joint_of_draws(stacked_likelihood(fitted.encoding, fitted.prior, self.values, part), x)


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """S draws of the hyperparameters φ: p(θ | D) is the average of the exact posteriors p(θ | D, φ_s).

    Parameters
    ----------
    prior, statistics
        Those of the fitted model.
    kind : {"symmetric", "pooled"}, or None
        None: the prior has no unknown hyperparameters, and p(θ | D) is its only posterior.
    values : hyperparameters by site, (S, …) each
    """

    prior: NaiveBayes
    statistics: Statistics
    kind: HyperpriorKind | None
    values: Draws

    def __len__(self) -> int:
        return 1 if self.kind is None else len(next(iter(self.values.values())))

    def known_classes(self, prob: np.ndarray) -> Self:
        """Return a copy with the class probabilities (C,) in place of the learned ones."""
        with np.errstate(divide="ignore"):
            return replace(self, prior=replace(self.prior, class_prior=Known(np.log(prob)[None])))

    def joints(self, fitted: Fitted, x: tuple[object, ...]) -> Iterator[jax.Array]:
        """Yield (s, n, C) log p(class, row | D, φ) of a block of n rows, for s of the draws at a time."""
        return (joint_given(model, x) for model in self.models(fitted.encoding))

    def models(self, encoding: Encoding) -> Iterator[NaiveBayes]:
        """Yield the posteriors under the draws, s at a time as one model of s · C classes with class prior (s, C)."""
        if self.kind is None:
            yield pad(encoding, jax.tree.map(np.asarray, self.prior.update(self.statistics)))
            return
        names = hyperparameter_sites(self.prior, self.kind, site_names(encoding, self.prior))
        size = max(1, _MOST_DRAWN_CELLS // (1 + sum(np.size(leaf) for leaf in jax.tree.leaves(self.statistics))))
        for start in range(0, len(self), size):
            part = {site: values[start : start + size] for site, values in self.values.items()}
            yield pad(encoding, posteriors_given(self.prior.unit(), self.statistics, names, part))


def read_draws(fitted: Fitted, draws: object) -> Parameters | Hyperparameters:
    """Read draws as `Hyperparameters` if they are of the posterior of `fitted`, else as `Parameters`.

    Draws of θ from p(θ | D, φ_s) say of a row what the exact posterior under φ_s says, with noise. So only their φ_s
    are read.

    Raises
    ------
    ValueError
        If `draws` is not what `posterior_draws`, `to_arviz`, `run_nuts` or another program returns for this model, or
        if the draws have groups.
    """
    hyperprior = _attributes(draws).get("hyperprior")
    if hyperprior is None or not _is_origin(draws, fitted, hyperprior):
        return read_parameters(fitted, draws)
    if hyperprior == "none":
        return Hyperparameters(fitted.prior, fitted.statistics, None, {})
    if hyperprior == "grouped":
        raise ValueError("draws: these draws come from run_nuts with groups=; pass groups= to predict_proba, too.")
    return Hyperparameters(fitted.prior, fitted.statistics, hyperprior, _read_values(fitted, draws, hyperprior))


def _attributes(draws: Any) -> Mapping[str, Any]:
    """Return the attributes of draws; {} for those of another program."""
    return getattr(draws if isinstance(draws, dict) else _posterior_group(draws), "attrs", {})


def _is_origin(draws: Any, fitted: Fitted, hyperprior: str) -> bool:
    """Whether the draws are of the posterior of `fitted` under this kind of hyperprior."""
    return all(_attributes(draws).get(name) == value for name, value in origin(fitted, hyperprior).items())


def _read_values(fitted: Fitted, draws: object, kind: HyperpriorKind) -> dict[str, np.ndarray]:
    """Return draws of the hyperparameters by site."""
    parts = sampled_hyperparameters(fitted.prior, kind, site_names(fitted.encoding, fitted.prior))
    # The classes have one simplex: its axis of one row is left out.
    shapes = {site: hyperparameter.shape[-1:] for site, hyperparameter in parts[0].items()}
    shapes |= {site: hyperparameter.shape for part in parts[1:] for site, hyperparameter in part.items()}
    return require_sites(read_sites(draws), shapes)


def read_group_draws(
    fitted: Fitted, draws: Any, groups: object, n_rows: int
) -> Iterator[tuple[np.ndarray, Parameters | Hyperparameters]]:
    """Yield a mask (N,) of the rows of a group and the draws for it, for each of the groups of rows.

    Without `groups` all rows are one group. A group that was not counted has the rows of the group "(new)", of which
    there are none.

    Raises
    ------
    ValueError
        If the draws are not of this classifier with groups, or `groups` does not name the group of each row.
    """
    if groups is None:
        yield np.ones(n_rows, bool), read_draws(fitted, draws)
        return
    if not _is_origin(draws, fitted, "grouped"):
        raise ValueError("with groups=, draws= must be the result of run_nuts(nb, X=X, y=y, groups=groups).")
    values = _read_values(fitted, draws, "grouped")
    known = [str(name) for name in draws["constant_data"]["group"].to_numpy()]
    leaves, structure = jax.tree.flatten(fitted.statistics)
    stored = [draws["constant_data"][f"{STATISTIC}{i}"].to_numpy() for i in range(len(leaves))]
    names, group = read_groups(groups, n_rows, "predict_proba")
    for g, name in enumerate(names):
        position = known.index(name if name in known else NEW_GROUP)
        statistics = jax.tree.unflatten(structure, [leaf[position] for leaf in stored])
        yield group == g, Hyperparameters(fitted.prior, statistics, "grouped", values)


def read_groups(groups: object, n_rows: int, who: str) -> tuple[list[str], np.ndarray]:
    """Return the names of the groups of rows as text, and (N,) the index of each row's; raise ValueError for others."""
    try:
        levels, index = check_labels(groups, n_rows, who, "groups")
    except ValueError as reason:
        raise ValueError(f"groups must name the group of each row, by strings or integers: {reason}") from None
    return [str(to_python(value)) for value in levels.values], index


def read_parameters(fitted: Fitted, draws: object) -> Parameters:
    """Read the parameters θ of draws, whatever posterior or program the draws come from.

    Parameters
    ----------
    fitted : Fitted
        State of a fitted classifier.
    draws : return value of `posterior_draws`, `to_arviz` or `run_nuts`, or dict {site: array}
        Draws of the parameters.

    Raises
    ------
    ValueError
        If a site is missing, or does not have one value for each class and level of `fitted`.
    """
    encoding, prior = fitted.encoding, fitted.prior
    shapes: dict[str, tuple[int, ...]] = {CLASS_PROB: (len(encoding.classes),)}
    for family, sites in zip(prior.blocks, site_names(encoding, prior), strict=True):
        block = parameter_shapes(family)
        shapes |= {site: block[name] for name, site in sites.items()}
    return Parameters(require_sites(read_sites(draws), shapes))


def read_sites(draws: Any) -> Draws:
    """Return the values of each site, (S, …), of a dict or of an ArviZ object, whose chains are concatenated."""
    if isinstance(draws, dict):
        return draws
    posterior = _posterior_group(draws)
    values = {site: posterior[site].to_numpy() for site in posterior.data_vars}
    return {site: v.reshape(-1, *v.shape[2:]) for site, v in values.items() if v.ndim >= 2}


def _posterior_group(draws: Any) -> Any:
    """Return the group "posterior" of an ArviZ object; raise ValueError if `draws` has none."""
    try:
        return draws["posterior"]
    except (TypeError, KeyError, AttributeError, IndexError):
        raise bad_argument("draws", draws, "what posterior_draws, to_arviz or run_nuts returns") from None


def require_sites(draws: Draws, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Return the draws of the sites of `shapes`; raise ValueError if a site is missing or has another shape."""
    sites = {}
    for site, shape in shapes.items():
        if site not in draws:
            raise ValueError(
                f"draws have no parameter named {site!r}, only {shown(list(draws))}. Pass draws of this classifier's "
                "posterior, with all features; run_nuts draws those that its features= names."
            )
        values = to_numbers(f"draws[{site!r}]", draws[site])
        if values.shape[1:] != shape or not len(values):
            expected = ", ".join(map(str, ("draws", *shape)))
            raise ValueError(
                f"draws[{site!r}] has shape {values.shape}; it must have shape ({expected}). Pass draws of this "
                "classifier's posterior, with all features."
            )
        sites[site] = values
    return sites


# -- hyperparameters -----------------------------------------------------------------------------


def sampled_hyperparameters(prior: NaiveBayes, kind: HyperpriorKind, sites: Sites) -> list[dict[str, Hyperparameter]]:
    """Return the hyperparameters of the classes and of each block, by site; `sites` are those of the parameters."""
    # Classes share no base measure with one another, but groups of rows share one of the classes.
    of_classes: HyperpriorKind = "grouped" if kind == "grouped" else "symmetric"
    names: Sites = [CLASS_SITES, *hyperparameter_sites(prior, kind, sites)]
    parts = [prior.class_prior.hyperprior(of_classes), *(family.hyperprior(kind) for family in prior.blocks)]
    return [{own[name]: found for name, found in part.items()} for own, part in zip(names, parts, strict=True)]


def hyperparameter_sites(prior: NaiveBayes, kind: HyperpriorKind, sites: Sites) -> list[dict[str, str]]:
    """Return for each block {hyperparameter: site}, with the endings of the sites of the block's parameters.

    Where the name is that of a parameter too, the parameter of the prior follows: "rate_of_sigma2" beside Poisson
    rates.
    """
    taken = {name for block in sites for pair in block.items() for name in pair}
    named = []
    for family, parameters in zip(prior.blocks, sites, strict=True):
        names = {}
        for name, hyperprior in family.hyperprior(kind).items():
            site = parameters[hyperprior.parameter]
            renamed = site.replace(hyperprior.parameter, name)
            names[name] = f"{renamed}_of_{site}" if renamed in taken else renamed
        named.append(names)
    return named


def prior_given(prior: NaiveBayes, names: Sites, values: Mapping[str, Any]) -> NaiveBayes:
    """Return the prior with hyperparameters read from `values` by site; a fixed prior stays as it is.

    Parameters
    ----------
    prior : NaiveBayes
        A prior made by `NaiveBayes.unit`.
    names : list of dict {hyperparameter: site}
        Sites of the hyperparameters of each block, which `hyperparameter_sites` returns.
    values : dict {site: array}
        Values of the hyperparameters.
    """
    given = ({name: values[site] for name, site in sites.items()} for sites in names)
    blocks = tuple(family.with_hyperparameters(own) for family, own in zip(prior.blocks, given, strict=True))
    of_classes = {name: values[site] for name, site in CLASS_SITES.items() if site in values}
    return replace(prior, class_prior=prior.class_prior.with_hyperparameters(of_classes), blocks=blocks)


@float64
def posteriors_given(prior: NaiveBayes, statistics: Statistics, names: Sites, values: Draws) -> NaiveBayes:
    """Return the posteriors under S draws of the hyperparameters, as one model with S times as many classes.

    NumPy computes them, so that nothing is compiled for models of many parameters.

    Parameters
    ----------
    prior : NaiveBayes
        A prior made by `NaiveBayes.unit`.
    statistics : Statistics
        Statistics of the rows. If they are of G groups of rows, their arrays have a leading axis, and the model has
        S · G times as many classes.
    names : list of dict {hyperparameter: site}
        Sites of the hyperparameters of each block, which `hyperparameter_sites` returns.
    values : dict {site: array}
        Draws of the hyperparameters, (S, …).
    """
    groups = np.shape(statistics.class_count)[:-1]
    leading = len(next(iter(values.values()))), *groups
    # With axes of length 1 for groups, classes and columns, arrays of draws broadcast against those of the family.
    aligned = {}
    for site, v in values.items():
        aligned[site] = np.reshape(v, (len(v), *(1,) * (len(leading) + 2 - np.ndim(v)), *np.shape(v)[1:]))
    given = prior_given(prior, names, aligned)

    def posterior(family: Any, family_given: Any, hyperparameters: object, counted: Any) -> Any:
        """Posteriors of one family, with one leading axis of draws and groups."""
        if hyperparameters:
            found = family_given.update(counted)
            shapes = jax.tree.map(np.shape, family)
        else:
            found = vmap(family.update)(counted) if groups else family.update(counted)
            shapes = jax.tree.map(lambda v: np.shape(v)[len(groups) :], found)
        return jax.tree.map(lambda v, shape: np.broadcast_to(v, (*leading, *shape)).reshape(-1, *shape), found, shapes)

    of_classes = CLASS_SITES.values() & values.keys()
    counted = LevelCounts(statistics.class_count[..., None, :])
    classes = posterior(prior.class_prior, given.class_prior, of_classes, counted)
    blocks = tuple(map(posterior, prior.blocks, given.blocks, names, statistics.blocks))
    return stack_as_classes(replace(prior, class_prior=classes, blocks=blocks))


# -- scores of rows ------------------------------------------------------------------------------


@float64
def stacked_likelihood(encoding: Encoding, model: NaiveBayes, drawn: Draws, part: slice) -> JointLikelihood:
    """Return the likelihood under the draws in `part`: log class probabilities (S, C), blocks over S · C classes."""
    likelihoods = []
    for family, sites in zip(model.blocks, site_names(encoding, model), strict=True):
        values = {name: drawn[site][part] for name, site in sites.items()}
        stacked = {name: v.reshape(-1, v.shape[-1]) for name, v in values.items()}
        likelihoods.append(family.likelihood.from_parameters(**stacked))
    with np.errstate(divide="ignore"):
        return model.weighted(np.log(drawn[CLASS_PROB][part]), likelihoods)


def joint_of_draws(draws: JointLikelihood, x: tuple[object, ...]) -> jax.Array:
    """(S, N, C) log p(class, row | draw), by log class probabilities (S, C) and likelihoods over S · C classes."""
    joint = xp.zeros(())
    for likelihood, rows in zip(draws.likelihoods, x, strict=True):
        on_host = getattr(rows, "sums_table_entries", False) and is_host(likelihood, rows)
        score = _log_prob if on_host else _log_prob_of_many
        joint = plus(joint, score(likelihood, rows))
    joint = plus(joint, xp.ravel(draws.log_class))
    return xp.reshape(joint, (-1, *draws.log_class.shape)).swapaxes(0, 1)


def _log_prob(likelihood: Any, rows: object) -> jax.Array:
    """(N, S · C) log p(rows of one block | class, draw), by a likelihood over S · C classes."""
    return likelihood.prepare(rows).log_prob(rows)


_log_prob_of_many = kernel(_log_prob)


@kernel
def joint_given(model: NaiveBayes, x: tuple[object, ...]) -> jax.Array:
    """(S, N, C) log p(class, row | D, φ_s), parameters integrated out, of S posteriors as one over S · C classes."""
    predictives = [family.predictive() for family in model.blocks]
    return joint_of_draws(model.weighted(xp.asarray(model.class_prior.mean().log_theta), predictives), x)
