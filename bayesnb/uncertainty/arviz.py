"""Posterior as ArviZ data: draws, log likelihoods and predictions under the user's names.

No other file uses ArviZ. Versions 0.23 (Python 3.11) and 1.x are supported.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import jax
import numpy as np

from bayesnb._util.arguments import Seed, read_seed, require_choice, require_integer
from bayesnb._util.arrays import require_draws
from bayesnb.encoding import Encoding, Table, ignore_unknown
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import Statistics
from bayesnb.uncertainty import ImproperPosteriorError, draw_parameters, require_proper, site_names
from bayesnb.uncertainty.draws import (
    CLASS_PROB,
    distinct_names,
    draw_by_rows,
    draw_posterior,
    feature_masks,
    log_prior_density,
    origin,
)
from bayesnb.uncertainty.given_draws import STATISTIC, score_labelled
from bayesnb.uncertainty.replicates import CellBlock, read_cell_blocks, reason_against_replicates, replicate_rows
from bayesnb.uncertainty.row_variates import TrainingData
from bayesnb.version import __version__

if TYPE_CHECKING:
    import xarray

_SAMPLE = ("chain", "draw")
ROW = "observation"
CLASS = "class"
WORD = "word"
_GROUP = "group"
_NUTS = "the No-U-Turn sampler of NumPyro"
_GENERALISED = "a generalised (Gibbs) posterior: of weights given cross-fitted terms, not of the parameters"
_MOST_REPLICATED = 2**24
LikelihoodOf = Literal["label", "row"]


class ArvizData(Protocol):
    """Groups of variables by name: `arviz.InferenceData` under ArviZ 0.23, `xarray.DataTree` under 1.x."""

    def __getitem__(self, group: str, /) -> xarray.Dataset | xarray.DataTree | xarray.DataArray: ...

    def to_netcdf(self, filepath: str, /) -> object:
        """Write a NetCDF file."""


WithHyperparameters = tuple[Mapping[str, np.ndarray], Sequence[Mapping[str, np.ndarray]]]
"""Arrays by site: of the parameters, and for the classes and for each block those of hyperparameters."""


def to_arviz(
    nb: Classifier,
    X: object = None,
    y: object = None,
    draws: int = 1000,
    chains: int = 4,
    seed: Seed = 0,
    likelihood: LikelihoodOf = "label",
    *,
    rows: TrainingData | None = None,
    groups: object = None,
) -> ArvizData:
    """Convert exact posterior draws to an ArviZ object, for summaries, plots, model comparison and NetCDF files.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with a proper posterior.
    X : array-like, sparse matrix or DataFrame of shape (N, F), optional
        Rows whose likelihoods are added. `arviz.loo` needs the rows that `nb` was fitted on, each of weight 1.
    y : array-like of shape (N,), optional
        Labels of the rows.
    draws : int
        Number of draws per chain.
    chains : int
        Number of chains; S = chains · draws. The draws are independent, so that the division into chains is arbitrary:
        up to noise, R-hat is 1 and the effective sample size is S.
    seed : int, JAX key, RandomState or Generator
        Seed of the draws. The posterior draws equal `posterior_draws(nb, chains * draws, seed)`.
    likelihood : {"label", "row"}
        What the groups about rows describe: "label", the labels given the rows, p(y_i | x_i, θ), as of a classifier;
        "row", rows and labels, p(x_i, y_i | θ), as of a generative model. The likelihood of the posterior is that of
        the rows: choose "row" to check features, and for the sensitivity to the likelihood (`psense_summary`).
    rows : tuple (X, y) or (X, y, sample_weight), optional
        Rows that `nb` has counted, all of them: the parameters are drawn so that they vary together as the rows do, see
        `posterior_draws`. Joint distributions of parameters are then those of dependent columns.
    groups : array-like, optional
        Group of each training row, such as a patient, whose rows vary together.

    Returns
    -------
    arviz.InferenceData under ArviZ 0.23, xarray.DataTree under ArviZ 1.x
        Groups of variables with dimensions (chain, draw, …):

        posterior
            "class_prob" (…, class), and the parameters of each block of features under the names of
            `posterior_draws`, (…, class, level) or (…, class, feature).
        prior
            draws of the same variables from the prior; absent if the prior is improper.
        log_prior
            log prior density of the draws in "posterior", as `compute_log_prior` of PyMC has it: of the class
            probabilities, (…), of each simplex of levels, (…, class, theta_simplex), and of each number, (…, class,
            feature). Absent if the prior is improper, or if a family has no NumPyro program.
        log_likelihood
            with X and y, in nats, (…, observation): "label" is log p(y_i | x_i, θ); under likelihood="row" "row" is
            log p(x_i, y_i | θ), multinomial coefficients and -log x! included.
        posterior_predictive
            with X and y; "label" (…, observation), drawn from P(· | x_i, θ). Under likelihood="row" also each feature
            under the name of its column, drawn given the observed class of the row, x_i ~ p(x | y_i, θ): a check of
            p(x | class), for `arviz.plot_ppc` (0.23) and `arviz.plot_ppc_dist` (1.x). With parents, the features of a
            row are drawn together; features that a `KDB` leaves out are not drawn. Words of a multinomial are one
            variable, "count" (…, observation, word), and a row keeps its number of words.
        prior_predictive
            with X and y, if there is a group "prior", the same variables drawn from the prior: a label from the class
            probabilities, and features given that label.
        observed_data
            with X and y; "label" (observation,), under likelihood="row" also the features.

        Labels and levels are integers in these three groups: positions in the coordinate `class`, and in the coordinate
        "colour_level" for a column "colour". A Bernoulli feature is 0 or 1, a binned number has the position of its
        cell. A missing cell is missing in each replicate: -1 for levels, NaN for numbers. A variable whose name is
        taken has "_feature" appended, "/" becomes "_", and the attribute "column" has the name of the column. At most
        2²⁴ values are replicated; if there are more, only the first draws of each chain are. If one draw of each chain
        has more values, or rows cannot be drawn (averages over trees, densities of numbers beside their cells in a
        structure, counts of words that are not whole), the group has labels only, and its attribute "features" gives
        the reason.

        The coordinates of `class` are the labels, of `feature` the names of the columns (the words of a multinomial),
        of `level` "feature=value", with "present" and "absent" for Bernoulli features. If two blocks of a MixedNB would
        share a dimension, the kind of column is appended: "feature_poisson". Labels that are not all strings, all
        numbers or all Booleans become strings.

    Raises
    ------
    ImproperPosteriorError
        If a level with concentration 0 has no count.
    ValueError
        If only one of X and y is given, a label is not known to `nb`, `draws` or `chains` is not positive, `likelihood`
        is none of the above, or a row has probability 0 under a draw in all classes, to the precision of float64.

    Notes
    -----
    Both likelihoods lead to exact quantities. With θ_s from the posterior given all rows D,

        p(x_i, y_i | D₋ᵢ) = 1 / E[1 / p(x_i, y_i | θ)]  and  p(y_i | x_i, D₋ᵢ) = 1 / E[1 / p(y_i | x_i, θ)],

    so that `arviz.loo` estimates the leave-one-out score of the classifier, and under likelihood="row" that of the
    generative model (Vehtari, Gelman & Gabry, *Stat. Comput.* 27, 2017).
    The spread of the draws is the uncertainty about the parameters *if naive Bayes holds*; it is not the error rate of
    the predicted labels.

    Beyond the result, memory for a few blocks of rows and draws is needed.

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> from bayesnb.uncertainty.arviz import to_arviz
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> data = to_arviz(nb, draws=50)
    >>> data["posterior"]["theta"].sel({"class": "out", "level": "0=sun"}).shape
    (4, 50)
    """
    fitted = require_posterior(nb, "to_arviz")
    require_integer("draws", draws)
    if fitted.prior.weights is not None and X is not None:
        raise NotImplementedError(
            "to_arviz: a WeightedNB defines no likelihood of rows. Leave out X and y to get draws of parameters. To "
            "compare models by p(label | row), use loo(nb, X, y).to_elpd(), with weights fitted to other rows."
        )
    require_integer("chains", chains)
    seed = read_seed(seed)
    require_rows_and_labels(X, y, likelihood)
    sample = (int(chains), int(draws))
    n_draws = sample[0] * sample[1]
    require_integer("draws * chains", n_draws)
    prior_seed, predictive_seed = (int(s) for s in np.random.SeedSequence(seed).generate_state(2))
    by_rows, prior = rows is not None or groups is not None, dict[str, np.ndarray]()
    drawn = draw_by_rows(fitted, n_draws, seed, rows, groups) if by_rows else draw_posterior(fitted, n_draws, seed)
    datasets = {"posterior": _parameter_dataset(fitted, drawn, sample)}
    with suppress(ImproperPosteriorError):
        require_proper(fitted.encoding, fitted.prior)
        prior = draw_parameters(fitted.encoding, fitted.prior, n_draws, prior_seed)
        density = log_prior_density(lambda _: fitted.prior, site_names(fitted.encoding, fitted.prior), drawn)
        datasets |= _prior_groups(fitted, (prior, ()), (density, ()), sample)
    if X is not None:
        datasets |= _row_groups(fitted, X, y, likelihood, drawn, prior, sample, predictive_seed)
    sampling = "independent draws: R-hat is 1 and the effective sample size the number of draws, up to noise"
    return _arviz_data(nb, datasets, sampling, drawn.attrs)


def require_rows_and_labels(X: object, y: object, likelihood: object) -> None:
    """Raise ValueError if only one of X and y is given, or `likelihood` is neither "label" nor "row"."""
    require_choice("likelihood", likelihood, ("label", "row"))
    if (X is None) != (y is None):
        given, lacking = ("y", "X") if X is None else ("X", "y")
        raise ValueError(f"{given} was given without {lacking}; likelihoods need both. Pass both or neither.")


def assemble(
    nb: Classifier,
    fitted: Fitted,
    drawn: Mapping[str, np.ndarray],
    shared: Sequence[Mapping[str, np.ndarray]],
    transitions: Mapping[str, np.ndarray],
    masks: Sequence[np.ndarray],
    hyperprior: str,
    of_groups: tuple[Sequence[str], Statistics] | None = None,
    undrawn: str = "",
    of_rows: tuple[tuple[object, object, LikelihoodOf, int], WithHyperparameters, WithHyperparameters] | None = None,
) -> ArvizData:
    """Convert draws of parameters and hyperparameters by a Markov chain to an ArviZ object.

    Parameters
    ----------
    nb : fitted classifier
        Classifier, for the attributes.
    fitted : Fitted
        State of the classifier.
    drawn : dict of (S, …) arrays
        Draws of the parameters, by the names of `posterior_draws`; those of blocks may be missing.
    shared : sequence of dict
        For the classes and for each block, draws of hyperparameters: (S,), or (S, K) with one for each position of the
        last axis of the parameters.
    transitions : dict of (chains, draws) arrays
        Statistics of the sampler for each transition, S = chains · draws.
    masks : sequence of (K,) arrays of bool
        For each block, which positions of the last axis are kept.
    hyperprior : {"none", "symmetric", "pooled", "grouped"}
        Kind of the hyperprior.
    of_groups : (names, statistics), optional
        Names of the G groups of rows that the parameters are of, (S · G, …), and their statistics, to be stored.
    undrawn : str
        Reason why parameters of blocks are missing, stored as the attribute "features" of `posterior`; "": they are
        not.
    of_rows : (rows, prior, log_prior), optional
        Rows (X, y, likelihood, seed) whose likelihoods are added, draws from the prior, and log prior densities.
    """
    sample = next(iter(transitions.values())).shape
    names = None if of_groups is None else of_groups[0]
    posterior = _parameter_dataset(fitted, drawn, sample, masks, names, shared)
    if undrawn:
        used = {dim for values in posterior.data_vars.values() for dim in values.dims}
        posterior = posterior.drop_vars(posterior.coords.keys() - used).assign_attrs(features=undrawn)
    groups = {"posterior": posterior, "sample_stats": _transition_dataset(transitions)}
    if of_rows is not None:
        (X, y, likelihood, seed), prior, density = of_rows
        groups |= _prior_groups(fitted, prior, density, sample)
        groups |= _row_groups(fitted, X, y, likelihood, drawn, prior[0], sample, seed)
    if of_groups is not None:
        # `read_group_draws` reads the arrays of statistics, whose first axis are groups.
        statistics = {}
        for i, leaf in enumerate(map(np.asarray, jax.tree.leaves(of_groups[1]))):
            dims = _GROUP, *(f"{STATISTIC}{i}_dim_{d}" for d in range(1, leaf.ndim))
            statistics[f"{STATISTIC}{i}"] = dims, leaf
        groups["constant_data"] = _dataset(statistics, None, {_GROUP: list(of_groups[0])})
    return _arviz_data(nb, groups, _NUTS, origin(fitted, hyperprior))


def assemble_latent(
    mixture: object,
    fitted: Fitted,
    drawn: Mapping[str, np.ndarray],
    log_row: np.ndarray | None,
    membership: np.ndarray,
    relabelled: float,
) -> ArvizData:
    """Convert draws of a latent class model to an ArviZ object.

    Parameters
    ----------
    mixture, fitted
        Mixture, and state of its classifier.
    drawn : dict of (chains, draws, K, …) arrays
        Draws of the parameters by site.
    log_row : (chains, draws, N) array or None
        log p(row | θ), or log p(row, class | θ) of rows whose class is known.
    membership : (N, K) array
        P(class | row, X).
    relabelled : float
        Proportion of draws whose classes were permuted.
    """
    sample = next(iter(drawn.values())).shape[:2]
    flat = {site: values.reshape(-1, *values.shape[2:]) for site, values in drawn.items()}
    groups = {"posterior": _parameter_dataset(fitted, flat, sample)}
    if log_row is not None:
        description = {"description": "log p(x | parameters), or log p(x, y | parameters) of rows of known class"}
        likelihood = {"row": ((*_SAMPLE, ROW), log_row, description)}
        groups["log_likelihood"] = _dataset(likelihood, sample, {ROW: np.arange(log_row.shape[-1])})
    names = {"row": np.arange(len(membership)), CLASS: class_names(fitted.encoding)}
    groups["constant_data"] = _dataset({"membership": (("row", CLASS), membership)}, None, names)
    about = {"relabelled": f"{relabelled:g}"}
    return _arviz_data(mixture, groups, "Gibbs sampling of classes and parameters", about)


def assemble_named(
    model: object,
    sampling: str,
    groups: Mapping[str, Mapping[str, np.ndarray]],
    dims: Mapping[str, str],
    coordinates: Mapping[str, Sequence[Hashable]],
    about: Mapping[str, str],
) -> ArvizData:
    """Convert draws to an ArviZ object: (chains, draws, n) values by group and variable.

    `sampling` names the sampler of the draws of `model`, `dims` the last dimension of each variable, `coordinates` the
    positions on each last dimension, and `about` are further attributes.
    """
    datasets = {}
    for group, variables in groups.items():
        arrays = {name: ((*_SAMPLE, dims[name]), values) for name, values in variables.items()}
        datasets[group] = _dataset(arrays, next(iter(variables.values())).shape[:2], coordinates)
    return _arviz_data(model, datasets, sampling, about)


def assemble_weights(
    nb: Classifier,
    fitted: Fitted,
    drawn: Mapping[str, np.ndarray],
    terms: Sequence[str],
    transitions: Mapping[str, np.ndarray],
) -> ArvizData:
    """Convert NUTS draws of weights of terms, arrays (chains, draws, …) by site, to an ArviZ object."""
    dims: dict[str, tuple[str, ...]] = dict.fromkeys(("temperature", "dependence_temperature"), _SAMPLE)
    dims |= {"class_bias": (*_SAMPLE, CLASS), "weight": (*_SAMPLE, "term")}
    variables = {site: (dims[site], values) for site, values in drawn.items()}
    coordinates = {CLASS: class_names(fitted.encoding), "term": list(terms)}
    posterior = _dataset(variables, next(iter(transitions.values())).shape, coordinates)
    groups = {"posterior": posterior, "sample_stats": _transition_dataset(transitions)}
    return _arviz_data(nb, groups, _NUTS, {"posterior": _GENERALISED})


def _transition_dataset(fields: Mapping[str, np.ndarray]) -> xarray.Dataset:
    """Return sampler statistics (chains, draws) by name as a Dataset with dimensions chain and draw."""
    sample = next(iter(fields.values())).shape
    return _dataset({name: (_SAMPLE, values) for name, values in fields.items()}, sample, {})


def _dataset(
    variables: Mapping[str, object], sample: Sequence[int] | None, coordinates: Mapping[str, object], about: Any = None
) -> xarray.Dataset:
    """Return an xarray Dataset; with `sample`, the lengths of the dimensions chain and draw, these are numbered."""
    import xarray as xr

    numbers = {} if sample is None else {name: np.arange(n) for name, n in zip(_SAMPLE, sample, strict=True)}
    return xr.Dataset(variables, {**numbers, **coordinates}, about)


def elpd_data(pointwise: np.ndarray, se: float) -> object:
    """Convert exact leave-one-out scores (N,) and the standard error of their sum to an input of `arviz.compare`."""
    import xarray as xr

    arviz = _import_arviz()
    scores = xr.DataArray(pointwise, dims=ROW, name="loo_i")
    common = {"se": se, "n_samples": 1, "n_data_points": len(pointwise), "warning": False, "scale": "log"}
    if "InferenceData" in vars(arviz):
        fields = {"elpd_loo": pointwise.sum(), "se": se, "p_loo": np.nan, **common, "loo_i": scores, "good_k": np.nan}
        return arviz.ELPDData(data=list(fields.values()), index=list(fields))
    return arviz.ELPDDataLOO(elpd=float(pointwise.sum()), p=np.nan, good_k=np.nan, elpd_i=scores, **common)


def _arviz_data(nb: object, groups: Mapping[str, xarray.Dataset], sampling: str, about: Mapping[str, str]) -> ArvizData:
    """Return InferenceData or a DataTree of the groups, by ArviZ's version, with attributes about the draws."""
    import xarray as xr

    attributes = {"inference_library": "bayesnb", "inference_library_version": __version__}
    attributes |= {"estimator": " ".join(repr(nb).split()), "sampling": sampling, **about}
    labelled = {name: group.assign_attrs(attributes) for name, group in groups.items()}
    arviz = _import_arviz()
    # In 1.x `hasattr` would warn.
    data: ArvizData
    data = arviz.InferenceData(**labelled) if "InferenceData" in vars(arviz) else xr.DataTree.from_dict(labelled)
    return data


def _import_arviz() -> Any:
    """Import ArviZ without its warning of changes, and return the module."""
    with warnings.catch_warnings():
        # When imported, 0.23 warns of the changes in 1.x.
        warnings.filterwarnings("ignore", "\\s*ArviZ is undergoing", FutureWarning)
        import arviz
    return arviz


# -- names ---------------------------------------------------------------------------------------


def _last_axes(encoding: Encoding) -> list[tuple[str, Sequence[str]]]:
    """Return for each block the name of the last dimension of its parameters, and the coordinates on it."""
    axes: list[tuple[str, Sequence[str]]] = []
    for columns in encoding.blocks:
        within, levels = columns.axis()
        features = [str(columns.names[j]) for j in within]
        axes.append(("feature", features) if levels is None else ("level", distinct_texts(features, levels)))
    dims = distinct_names(encoding, [[dim] for dim, _ in axes])
    return [(distinct[dim], names) for distinct, (dim, names) in zip(dims, axes, strict=True)]


def distinct_texts(*values: Sequence[Hashable]) -> list[str]:
    """Return strings of distinct values, or "feature=value" of pairs, quoted by repr if two would be equal."""
    names = ["=".join(map(str, value)) for value in zip(*values, strict=True)]
    quoted = ("=".join(map(repr, value)) for value in zip(*values, strict=True))
    return names if len(set(names)) == len(names) else list(quoted)


def class_names(encoding: Encoding) -> np.ndarray:
    """Return (C,) labels as coordinates: numbers, Booleans and strings as they are, others as distinct strings."""
    labels = encoding.classes.array()
    if labels.dtype.kind in "biufU":
        return labels
    return np.array(distinct_texts(encoding.classes.values))


# -- draws ---------------------------------------------------------------------------------------


def _parameter_dataset(
    fitted: Fitted,
    drawn: Mapping[str, np.ndarray],
    sample: tuple[int, ...],
    masks: Sequence[np.ndarray] | None = None,
    groups: Sequence[str] | None = None,
    shared: Sequence[Mapping[str, np.ndarray]] = (),
) -> xarray.Dataset:
    """Return draws of parameters, arrays (S, C, …) by site, as a Dataset (chain, draw, class, level or feature).

    `sample` is (chains, draws) with product S; `masks` mark the positions of each block's last axis that were drawn.
    With names of G `groups` arrays are (S · G, C, …), and "group" stands before "class". `shared` has draws of
    hyperparameters for the classes and for each block, with all positions. In place of positions, the last axis may
    have the simplexes of a block, such as that of concentrations and of log densities.
    """
    encoding = fitted.encoding
    axes: list[tuple[str, Sequence[str] | np.ndarray]] = [(CLASS, class_names(encoding)), *_last_axes(encoding)]
    own_sites = [{"theta": CLASS_PROB}, *site_names(encoding, fitted.prior)]
    kept = [np.full(len(axes[0][1]), True), *(feature_masks(encoding, None) if masks is None else masks)]
    of_groups = {} if groups is None else {_GROUP: list(groups)}
    coordinates: dict[str, Sequence[str] | np.ndarray] = {**of_groups}
    variables: dict[str, object] = {}
    for b, ((dim, names), own, keep) in enumerate(zip(axes, own_sites, kept, strict=True)):
        if keep.any():
            coordinates[dim] = np.asarray(names)[keep]
        parameters = {site: drawn[site] for site in own.values() if site in drawn}
        for site, values in (parameters | dict(shared[b] if shared else {})).items():
            last = [] if values.ndim == 1 else [dim]
            if last and values.shape[-1] != (keep.sum() if site in parameters else len(keep)):
                last = [f"{site}_simplex"]
                coordinates[last[0]] = _simplex_names(fitted, b - 1, values.shape[-1]) if b else [CLASS]
            elif last and site not in parameters:
                values = values[..., keep]
            dims = [*(of_groups if site in parameters else ()), *([CLASS] if b and values.ndim > 2 else ()), *last]
            if values.size:
                lengths = [len(coordinates[name]) for name in dims]
                variables[site] = (*_SAMPLE, *dims), values.reshape(*sample, *lengths)
    return _dataset(variables, sample, coordinates)


def _simplex_names(fitted: Fitted, block: int, n: int) -> list[str]:
    """Return the names of the n simplexes of a block, such as "colour", or "colour | shape=round" of a structure.

    These are all simplexes, or those of at least two levels.
    """
    columns, group = fitted.encoding.blocks[block], np.asarray(fitted.prior.blocks[block].group)
    first, size = np.unique(group, return_index=True, return_counts=True)[1:]
    within, levels = columns.axis()
    if levels is None:
        return [columns.kind]
    names = []
    for i in first if len(first) == n else first[size > 1]:
        parents = ", ".join(f"{parent}={value}" for parent, value in getattr(levels[i], "given", ()))
        names.append(f"{columns.names[within[i]]}" + f" | {parents}" * bool(parents))
    return names


def _prior_groups(
    fitted: Fitted, prior: WithHyperparameters, density: WithHyperparameters, sample: tuple[int, ...]
) -> dict[str, xarray.Dataset]:
    """Return the groups of draws from the prior, and of log prior densities of the posterior's draws, if any."""
    groups = {"prior": _parameter_dataset(fitted, prior[0], sample, shared=prior[1])}
    if density[0]:
        groups["log_prior"] = _parameter_dataset(fitted, density[0], sample, shared=density[1])
    return groups


# -- rows ----------------------------------------------------------------------------------------


def _row_groups(
    fitted: Fitted,
    X: object,
    y: object,
    likelihood: LikelihoodOf,
    drawn: Mapping[str, np.ndarray],
    prior: Mapping[str, np.ndarray],
    sample: tuple[int, int],
    seed: int,
) -> dict[str, xarray.Dataset]:
    """Return the groups of labelled rows, by name: likelihoods, replicates from posterior and prior, observed cells."""
    table = fitted.table(X)
    what, advice = f"likelihoods of {table.n_rows:,} rows", "Set fewer draws, or pass fewer rows."
    require_draws(sample[1], 3 * table.n_rows, what, advice, chains=sample[0])
    encoded = fitted.rows(table)
    label = fitted.label_index(y, table.n_rows)
    scored = score_labelled(fitted, tuple(r.linear_rows() for r in encoded), label, drawn, seed)
    row, label_given_row, predicted = (values.reshape(*sample, -1) for values in scored)
    dims, observation = (*_SAMPLE, ROW), {ROW: np.arange(len(label))}
    log_likelihood = {
        "label": (dims, label_given_row, {"description": "log p(y | x, parameters)"}),
        "row": (dims, row, {"description": "log p(x, y | parameters)"}),
    }
    names: dict[str, object] = {**observation, CLASS: class_names(fitted.encoding)}
    observed: dict[str, object] = {"label": ((ROW,), label.astype(np.int32))}
    draws_of: dict[str, Any] = {"posterior_predictive": (drawn, predicted, label)}
    rng = np.random.default_rng([seed, 1])
    if prior:
        below = np.cumsum(prior[CLASS_PROB], axis=1)[:, :-1]
        uniform = np.random.default_rng([seed, 2]).random((len(below), len(label)))
        simulated = sum((uniform >= p[:, None] for p in below.T), np.zeros(uniform.shape, int))
        draws_of["prior_predictive"] = prior, simulated, simulated
    blocks, kept = _replicable(fitted, table, sample) if likelihood == "row" else ("", 0)
    groups = {"log_likelihood": _dataset({likelihood: log_likelihood[likelihood]}, sample, observation)}
    for group, (draws, labels, classes) in draws_of.items():
        predictions: dict[str, object] = {"label": (dims, labels.reshape(*sample, -1).astype(np.int32))}
        if isinstance(blocks, str):
            groups[group] = _dataset(predictions, sample, names, {"features": blocks} if blocks else None)
            continue
        first = {k: v.reshape(*sample, *v.shape[1:])[:, :kept].reshape(-1, *v.shape[1:]) for k, v in draws.items()}
        classes = np.broadcast_to(classes, (sample[0] * sample[1], len(label))).reshape(*sample, -1)[:, :kept]
        parts = [values for _, values in replicate_rows(fitted, first, classes.reshape(-1, len(label)), blocks, rng)]
        tables = map(np.concatenate, zip(*parts, strict=True))
        cells = [values.reshape(sample[0], kept, *values.shape[1:]) for values in tables]
        replicates, levels = _cell_variables(blocks, cells, dims)
        groups[group] = _dataset(predictions, sample, names | levels).isel(draw=slice(kept)).assign(replicates)
    if not isinstance(blocks, str):
        cells_of_rows, levels = _cell_variables(blocks, [block.values for block in blocks], (ROW,))
        observed, names = observed | cells_of_rows, names | levels
    return groups | {"observed_data": _dataset(observed, None, names)}


def _replicable(fitted: Fitted, table: Table, sample: tuple[int, int]) -> tuple[list[CellBlock] | str, int]:
    """Return the observed cells and for how many draws a chain they are replicated, or why they are not, and 0."""
    if reason := reason_against_replicates(fitted):
        return reason, 0
    kept = min(sample[1], _MOST_REPLICATED // max(1, sample[0] * table.n_rows * fitted.encoding.n_features))
    if not kept:
        return f"one draw per chain of all rows would have more than {_MOST_REPLICATED:,} values; pass fewer rows.", 0
    alone = replace(fitted.encoding, blocks=tuple(block.base for block in fitted.encoding.blocks))
    try:
        return read_cell_blocks(fitted.encoding, alone.rows(table, ignore_unknown)), kept
    except NotImplementedError as error:
        return str(error), 0


def _cell_variables(
    blocks: Sequence[CellBlock], values: Sequence[np.ndarray], dims: tuple[str, ...]
) -> tuple[dict[str, object], dict[str, list[str]]]:
    """Return variables of features for a Dataset, and the names of their levels by coordinate.

    `values` are arrays (..., F), one for each block, with the dimensions `dims` and the features of the block.
    """
    taken = {"label", "count", WORD, ROW, CLASS, *_SAMPLE}
    variables: dict[str, object] = {}
    coordinates: dict[str, list[str]] = {}
    for block, cells in zip(blocks, values, strict=True):
        if block.total is not None:
            variables["count"] = ((*dims, WORD), cells)
            coordinates[WORD] = list(map(str, block.names))
            continue
        for f, name in enumerate(map(str, block.names)):
            variable = _free_name(name.replace("/", "_"), taken)
            attributes = {"column": name}
            if block.levels is not None:
                coordinate = _free_name(f"{variable}_level", taken)
                coordinates[coordinate] = distinct_texts(block.levels[f])
                attributes["levels"] = f"positions in the coordinate {coordinate!r}; -1 is missing"
            variables[variable] = (dims, cells[..., f], attributes)
    return variables, coordinates


def _free_name(name: str, taken: set[str]) -> str:
    """Return the name with "_feature" appended as often as is needed to be new, and add it to those that are taken."""
    while name in taken:
        name += "_feature"
    taken.add(name)
    return name
