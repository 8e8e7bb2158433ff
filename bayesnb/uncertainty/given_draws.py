"""Draws of parameters or hyperparameters that users pass: reading them, and scores of rows under them.

Draws may be exact ones, those of NUTS, or of another program. From draws of the posterior of the same model only the
hyperparameters are read: given these θ is integrated out in closed form. From draws of other origin θ itself is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import numpy as np

from bayesnb._util.arguments import (
    bad_argument,
    shown,
    to_numbers,
)
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding, Rows, check_labels, row_pieces
from bayesnb.encoding.encoded_rows import pad_rows
from bayesnb.encoding.levels import to_python
from bayesnb.families import Known, LevelCounts
from bayesnb.families.arrays import Array, is_host, kernel, xp
from bayesnb.families.protocol import Hyperparameter, HyperpriorKind, Likelihood
from bayesnb.fitted.scoring import pad
from bayesnb.fitted.state import Fitted
from bayesnb.model import JointLikelihood, NaiveBayes, Statistics, TermWeights, kernel_log_base, log_normalize, plus
from bayesnb.uncertainty.draws import (
    CLASS_PROB,
    ROWS,
    origin,
    parameter_shapes,
    site_names,
    stack_as_classes,
)

Draws = Mapping[str, np.ndarray]
Sites = Sequence[Mapping[str, str]]
"""For each block of columns the site of each parameter, or hyperparameter, by its name in the family."""

CLASS_SITES = {"alpha": "class_alpha", "total": "class_total", "theta_mean": "class_prob_mean"}
"""Site of each hyperparameter of the classes, by its name in the family."""
NEW_GROUP = "(new)"
"""Name of a group of rows that was not counted."""
STATISTIC = "statistic_"
"""Beginning of the names of the arrays of statistics of groups in ArviZ data."""
CLASS_ALPHA = CLASS_SITES["alpha"]
_MOST_DRAWN_CELLS = 2**21
_LABELLED_CELLS = 2**17


# -- reading draws -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Parameters:
    """S draws of the parameters θ.

    Parameters
    ----------
    values : draws by site, (S, …) each, as `posterior_draws` returns them
    weights : TermWeights, optional
        As many draws of the weights of terms. Default: the weights are those of the model.
    """

    values: Draws
    weights: TermWeights | None = None

    def __len__(self) -> int:
        return len(self.values[CLASS_PROB])

    def known_classes(self, prob: np.ndarray) -> Self:
        """Return a copy with the class probabilities (C,) in place of the drawn ones."""
        drawn = np.broadcast_to(prob, self.values[CLASS_PROB].shape)
        return replace(self, values={**self.values, CLASS_PROB: drawn})

    def with_weights(self, fitted: Fitted, seed: int, *, of_likelihood: bool = False) -> Self:
        """Return a copy in which each draw of θ has a draw of the weights of terms, see `Fitted.draw_weights`."""
        return replace(self, weights=fitted.draw_weights(len(self), seed, of_likelihood=of_likelihood))

    def with_mean_divisors(self, fitted: Fitted) -> Self:
        """Return a copy with means over the draws for tables that other tables are divided by (role "root").

        So averages over draws tend to the quotient of predictives. The mean of 1 / θ may be infinite.
        """
        sites = zip(fitted.encoding.blocks, site_names(fitted.encoding, fitted.prior), strict=True)
        divisors = [site for columns, names in sites if columns.role == "root" for site in names.values()]
        means = {site: np.broadcast_to(self.values[site].mean(axis=0), self.values[site].shape) for site in divisors}
        return replace(self, values={**self.values, **means})

    def joints(self, fitted: Fitted, x: tuple[object, ...]) -> Iterator[jax.Array]:
        """Yield (s, n, C) log p(class, row | θ) of a piece of n rows, for s of the draws at a time."""
        size = max(1, _MOST_DRAWN_CELLS // (1 + sum(np.size(values[0]) for values in self.values.values())))
        for start in range(0, len(self), size):
            part, model = slice(start, min(start + size, len(self))), fitted.prior
            model = model if self.weights is None else replace(model, weights=self.weights.take(part))
            yield joint_of_draws(stacked_likelihood(fitted.encoding, model, self.values, part), x)


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

    def with_weights(self, fitted: Fitted, seed: int) -> Self:
        """Return the hyperparameters unchanged: given the row, terms are not weighted."""
        return self

    def known_classes(self, prob: np.ndarray) -> Self:
        """Return a copy with the class probabilities (C,) in place of the learned ones."""
        with np.errstate(divide="ignore"):
            return replace(self, prior=replace(self.prior, class_prior=Known(np.log(prob)[None])))

    def joints(self, fitted: Fitted, x: tuple[object, ...]) -> Iterator[jax.Array]:
        """Yield (s, n, C) log p(class, row | D, φ) of a piece of n rows, for s of the draws at a time."""
        return (joint_given(model, x) for model in self.models(fitted.encoding))

    def models(self, encoding: Encoding) -> Iterator[NaiveBayes]:
        """Yield the posteriors under the draws, s at a time as one model: see `posteriors_given`."""
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
    if hyperprior in (None, "grouped", ROWS) or not _is_origin(draws, fitted, hyperprior):
        return read_parameters(fitted, draws)
    if hyperprior == "none":
        return Hyperparameters(fitted.prior, fitted.statistics, None, {})
    values = _read_values(fitted.encoding, fitted.prior, draws, hyperprior)
    return Hyperparameters(fitted.prior, fitted.statistics, hyperprior, values)


def has_origin(draws: object, hyperprior: str) -> bool:
    """Return whether `draws` are draws of parameters with this attribute `hyperprior`."""
    is_number = draws is None or isinstance(draws, int | float | np.number)
    return not is_number and _attributes(draws).get("hyperprior") == hyperprior


def _attributes(draws: object) -> Mapping[str, Any]:
    """Return the attributes of draws; {} for those of another program."""
    return getattr(draws if isinstance(draws, dict) else _posterior_group(draws), "attrs", {})


def _is_origin(draws: object, fitted: Fitted, hyperprior: str) -> bool:
    """Whether the draws are of the posterior of `fitted` under this kind of hyperprior."""
    return all(_attributes(draws).get(name) == value for name, value in origin(fitted, hyperprior).items())


def _read_values(encoding: Encoding, prior: NaiveBayes, draws: object, kind: HyperpriorKind) -> dict[str, np.ndarray]:
    """Return draws of the hyperparameters by site."""
    parts = sampled_hyperparameters(prior, kind, site_names(encoding, prior))
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
    prior = fitted.prior.for_groups()
    values = _read_values(fitted.encoding, prior, draws, "grouped")
    known = [str(name) for name in draws["constant_data"]["group"].to_numpy()]
    leaves, structure = jax.tree.flatten(fitted.statistics)
    stored = [draws["constant_data"][f"{STATISTIC}{i}"].to_numpy() for i in range(len(leaves))]
    names, group = read_groups(groups, n_rows, "predict_proba")
    for g, name in enumerate(names):
        position = known.index(name if name in known else NEW_GROUP)
        statistics = jax.tree.unflatten(structure, [leaf[position] for leaf in stored])
        yield group == g, Hyperparameters(prior, statistics, "grouped", values)


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
        If a site is missing, or does not have one value for each class and level of `fitted`; if the draws have groups.
    """
    if _attributes(draws).get("hyperprior") == "grouped":
        raise ValueError(
            "draws: these draws are of groups of rows. Only predict_proba, predict_log_proba and predict take them: "
            "pass groups= there."
        )
    encoding, prior = fitted.encoding, fitted.prior
    shapes: dict[str, tuple[int, ...]] = {CLASS_PROB: (len(encoding.classes),)}
    for family, sites in zip(prior.blocks, site_names(encoding, prior), strict=True):
        block = parameter_shapes(family)
        shapes |= {site: block[name] for name, site in sites.items()}
    return Parameters(require_sites(read_sites(draws), shapes))


def read_sites(draws: object) -> Draws:
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

    Where another site has the name too, the parameter of the prior follows: "rate_of_sigma2" beside Poisson rates.
    """
    renamed = [
        {name: (parameters[h.parameter], parameters[h.parameter].replace(h.parameter, name)) for name, h in own.items()}
        for own, parameters in zip((family.hyperprior(kind) for family in prior.blocks), sites, strict=True)
    ]
    taken = [name for block in sites for pair in block.items() for name in pair]
    taken += [name for block in renamed for _, name in block.values()]
    return [
        {name: f"{new}_of_{site}" if taken.count(new) > 1 else new for name, (site, new) in block.items()}
        for block in renamed
    ]


def prior_given(prior: NaiveBayes, names: Sites, values: Mapping[str, Array]) -> NaiveBayes:
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
    """Return the posteriors under S draws of the hyperparameters, as one model.

    A block that has hyperparameters has S · C classes, those of one draw after the other. A block without has C: its
    posterior is the same under all draws, also what its classes share, such as cuts. The class prior is (S, C). NumPy
    computes them, so that nothing is compiled for models of many parameters.

    Parameters
    ----------
    prior : NaiveBayes
        A prior made by `NaiveBayes.unit`.
    statistics : Statistics
        Statistics of the rows. If they are of G groups of rows, their arrays have a leading axis, all blocks have
        hyperparameters, and there are S · G posteriors in place of S.
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

    blocks = []
    for family, family_given, own, counted in zip(prior.blocks, given.blocks, names, statistics.blocks, strict=True):
        posterior = (family_given if own else family).update(counted)
        blocks.append(stack_as_classes(family, posterior, leading) if own else posterior)
    counted = LevelCounts(statistics.class_count[..., None, :])
    classes = stack_as_classes(prior.class_prior, given.class_prior.update(counted), leading)
    return replace(prior, class_prior=classes, blocks=tuple(blocks))


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
    """(S, N, C) log p(class, row | draw), by log class probabilities (S, C) and the likelihoods of the blocks.

    A likelihood has S · C classes, or C if it is the same for all draws.
    """
    joint, n_classes = xp.zeros(()), draws.log_class.shape[-1]
    for likelihood, rows in zip(draws.likelihoods, x, strict=True):
        on_host = getattr(rows, "sums_table_entries", False) and is_host(likelihood, rows)
        score = (_log_prob if on_host else _log_prob_of_many)(likelihood, rows)
        joint = plus(joint, xp.reshape(score, (len(score), -1, n_classes)))
    return plus(joint, draws.log_class).swapaxes(0, 1)


def _log_prob(likelihood: Likelihood, rows: object) -> jax.Array:
    """(N, C) log p(rows of one block | class), by a likelihood over C classes."""
    return likelihood.prepare(rows).log_prob(rows)


_log_prob_of_many = kernel(_log_prob)


@kernel
def joint_given(model: NaiveBayes, x: tuple[object, ...]) -> jax.Array:
    """(S, N, C) log p(class, row | D, φ_s), parameters integrated out, of S posteriors: see `posteriors_given`."""
    predictives = [family.predictive() for family in model.blocks]
    return joint_of_draws(model.weighted(xp.asarray(model.class_prior.mean().log_theta), predictives), x)


# -- labelled rows -------------------------------------------------------------------------------


def score_labelled(
    fitted: Fitted, rows: tuple[Rows, ...], label: np.ndarray, drawn: Draws, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log p(row, label | θ), log p(label | row, θ), and drawn label indices, (S, N) each, for S draws of θ.

    The first includes base measures, such as -log x!. A label is drawn from P(class | row, θ) for each draw and row.
    Raises ValueError if a row has no class probabilities under some draw.
    """
    rng = np.random.default_rng(seed)
    n_draws, n_classes = drawn[CLASS_PROB].shape
    shape = n_draws, len(label)
    results = np.empty(shape), np.empty(shape), np.empty(shape, np.min_scalar_type(n_classes))
    n_parameters = sum(values[0].size for values in drawn.values())
    for piece, x, (labels,) in row_pieces(rows, len(label), label, cells=n_classes):
        n = piece.stop - piece.start
        log_base = pad_rows(np.zeros(n) + sum(r.log_base(piece.start, piece.stop) for r in rows), len(labels))
        chunk = max(1, min(n_draws, _LABELLED_CELLS // (n_classes * len(labels) + n_parameters)))
        for first in range(0, n_draws, chunk):
            # The last chunk overlaps the chunk before, so that all have one shape and one compilation.
            part = slice(min(first, n_draws - chunk), min(first + chunk, n_draws))
            draws = stacked_likelihood(fitted.encoding, fitted.posterior, drawn, part)
            uniform = rng.random((chunk, len(labels)))
            scores = _score_labelled(fitted.posterior, draws, x, labels, log_base, uniform)
            for result, values in zip(results, scores, strict=True):
                result[part, piece] = values[:, :n]
        undefined = np.isnan(results[1][:, piece]).any(axis=0)
        if undefined.any():
            raise ValueError(
                f"X: row {piece.start + int(np.argmax(undefined))} has no class probabilities under some draws, as a "
                "parameter of every class is 0 to float64. Leave the row out, or choose a larger alpha."
            )
    return results


@float64
@kernel
def _score_labelled(
    posterior: NaiveBayes, draws: JointLikelihood, x: Any, label: jax.Array, log_base: jax.Array, uniform: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Compute the results (S, n) of `score_labelled` for one piece of rows; `uniform` (S, n) picks the drawn labels."""
    joint = joint_of_draws(draws, x)
    log_prob = log_normalize(joint)
    index = label[None, :, None]
    row, of_label = (xp.take_along_axis(scores, index, axis=2)[:, :, 0] for scores in (joint, log_prob))
    below = xp.cumsum(xp.exp(log_prob), axis=2)
    predicted = xp.sum(below[:, :, :-1] <= uniform[:, :, None] * below[:, :, -1:], axis=2)
    return row + log_base + kernel_log_base(posterior.blocks, x), of_label, predicted
