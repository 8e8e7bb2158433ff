"""The posterior as ArviZ data: draws, log likelihoods and predictions under the user's names.

The only file that knows ArviZ, and both its lines: 0.23 (Python 3.11) and 1.x.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import require_integer, require_seed
from bayesnb._util.extras import require
from bayesnb.encoding import Encoding
from bayesnb.fitted import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes
from bayesnb.uncertainty import ImproperPosteriorError, draw_parameters, require_proper, site_names
from bayesnb.uncertainty.draws import draw_posterior, feature_masks, origin
from bayesnb.uncertainty.row_draws import score_labelled
from bayesnb.version import __version__

if TYPE_CHECKING:
    import xarray as xr

_SAMPLE = ("chain", "draw")
_ROW = "observation"
_CLASS = "class"
_NUTS = "the No-U-Turn sampler of NumPyro"
_GENERALISED = "a generalised (Gibbs) posterior: of weights given leave-one-out scores, not of the parameters"
_DESCRIPTIONS = {"row": "log p(x, y | parameters)", "label": "log p(y | x, parameters)"}


def to_arviz(nb: Classifier, X: Any = None, y: Any = None, draws: int = 1000, chains: int = 4, seed: int = 0) -> Any:
    """Exact posterior draws as an ArviZ object, for its summaries, plots, model comparison and NetCDF files.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    X : array-like, sparse matrix or DataFrame of shape (N, F), optional
        Rows whose likelihoods to add. For `arviz.loo` they are the rows that `nb` was fitted on, each of weight 1.
    y : array-like of shape (N,), optional
        Their labels.
    draws : int
        Draws a chain.
    chains : int
        Number of chains; S = chains · draws. The draws are independent, so that chains are a convention only:
        R-hat is 1 and the effective sample size S, up to noise.
    seed : int
        The same seed gives the same draws; those of the posterior are those of
        `posterior_draws(nb, chains * draws, seed)`.

    Returns
    -------
    arviz.InferenceData under ArviZ 0.23, xarray.DataTree under ArviZ 1.x
        Groups of variables with dimensions (chain, draw, …):

        posterior
            "class_prob" (…, class), and the parameters of each block of features under the names of
            `posterior_draws`, (…, class, level) or (…, class, feature).
        prior
            the same from the prior; absent if the prior is improper.
        log_likelihood
            with X and y, in nats, (…, observation): "row" is log p(x_i, y_i | θ), multinomial
            coefficients and -log x! included; "label" is log p(y_i | x_i, θ).
        posterior_predictive
            with X and y; "label" (…, observation), drawn from P(· | x_i, θ).
        observed_data
            with X and y; "label" (observation,).

        The coordinates of `class` are the labels, of `feature` the names of the columns (the words of a
        multinomial), of `level` "feature=value", with "present" and "absent" for Bernoulli features. Where two
        blocks of a MixedNB would share a dimension, the kind of column stands behind: "feature_poisson". Labels
        that are not all strings, all numbers or all Booleans become strings.

    Raises
    ------
    ImportError
        Without ArviZ: it is an extra, `pip install 'bayesnb[arviz]'`.
    ImproperPosteriorError
        If a zero concentration met a zero count.
    ValueError
        If only one of X and y is given, a label is not known to `nb`, `draws` or `chains` is not positive, or a
        row has probability 0 under a draw in all classes, to the precision of float64.

    Notes
    -----
    Both likelihoods lead to exact quantities. With θ_s from the posterior given all rows D,

        p(x_i, y_i | D₋ᵢ) = 1 / E[1 / p(x_i, y_i | θ)]  and  p(y_i | x_i, D₋ᵢ) = 1 / E[1 / p(y_i | x_i, θ)],

    so that `arviz.loo(data, var_name="row")` estimates the leave-one-out score of the generative model and
    `arviz.loo(data, var_name="label")` that of the classifier (Vehtari, Gelman & Gabry, *Stat. Comput.* 27, 2017).
    The spread of the draws says what the data leave unknown about the parameters *if naive Bayes holds*; it does
    not say how often the labels are right.

    Beyond the result, memory for a few blocks of rows and draws is needed.

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> from bayesnb.inference_data import to_arviz
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> data = to_arviz(nb, draws=50)
    >>> data["posterior"]["theta"].sel({"class": "out", "level": "0=sun"}).shape
    (4, 50)
    """
    require("to_arviz", "arviz", "arviz")
    fitted = require_posterior(nb, "to_arviz")
    require_integer("draws", draws)
    if fitted.prior.weights is not None and X is not None:
        raise NotImplementedError(
            "to_arviz: under weighted terms rows have no likelihood to add. Leave X and y out for draws of the "
            "parameters; loo(nb, X, y).to_elpd() compares by labels."
        )
    require_integer("chains", chains)
    require_seed(seed)
    if (X is None) != (y is None):
        given, lacking = ("y", "X") if X is None else ("X", "y")
        raise ValueError(
            f"{given} was given without {lacking}: likelihoods need rows and labels; pass both or neither."
        )
    sample = (int(chains), int(draws))
    n_draws = sample[0] * sample[1]
    require_integer("draws * chains", n_draws)
    prior_seed, predictive_seed = (int(s) for s in np.random.SeedSequence(seed).generate_state(2))
    encoding, prior, posterior = fitted.encoding, fitted.prior, fitted.posterior
    drawn = draw_posterior(fitted, n_draws, seed)
    everything = feature_masks(encoding, None)
    groups = {"posterior": _parameters(encoding, posterior, drawn, sample, everything)}
    if _is_proper(encoding, prior):
        before = draw_parameters(encoding, prior, n_draws, prior_seed)
        groups["prior"] = _parameters(encoding, prior, before, sample, everything)
    if X is not None:
        groups |= _rows(fitted, X, y, drawn, sample, predictive_seed)
    sampling = "independent draws: R-hat is 1 and the effective sample size the number of draws, up to noise"
    return _wrapped(nb, groups, sampling, origin(fitted))


def assemble(
    nb: Classifier,
    fitted: Fitted,
    drawn: Mapping[str, np.ndarray],
    shared: Sequence[Mapping[str, np.ndarray]],
    transitions: Mapping[str, np.ndarray],
    masks: Sequence[np.ndarray],
    hyperprior: str,
) -> Any:
    """Draws by a Markov chain as `to_arviz` has exact ones.

    Parameters
    ----------
    drawn : parameters, (S, …) each, as `posterior_draws` names them
    shared : for the classes and for each block, hyperparameters: (S,), or (S, K) as long as its last axis
    transitions : what the sampler says of each transition, (chains, draws) each, S = chains · draws
    masks : for each block which positions of the last axis are there, as `kept` gives them
    hyperprior : "none", "symmetric" or "pooled"
    """

    sample = next(iter(transitions.values())).shape
    parameters = _parameters(fitted.encoding, fitted.prior, drawn, sample, masks)
    axes = [(_CLASS, np.ones(len(fitted.encoding.classes), bool))]
    axes += [(dim, keep) for (dim, _), keep in zip(_axes(fitted.encoding), masks, strict=True)]
    hyper: dict[str, Any] = {}
    for (dim, keep), own in zip(axes, shared, strict=True):
        for site, values in own.items():
            if values.ndim == 1:
                hyper[site] = (_SAMPLE, values.reshape(sample))
            elif keep.any():
                hyper[site] = ((*_SAMPLE, dim), values[:, keep].reshape(*sample, -1))
    groups = {"posterior": parameters.assign(hyper), "sample_stats": _transitions(transitions)}
    return _wrapped(nb, groups, _NUTS, origin(fitted, hyperprior))


def assemble_weights(
    nb: Classifier,
    fitted: Fitted,
    drawn: Mapping[str, np.ndarray],
    terms: Sequence[str],
    transitions: Mapping[str, np.ndarray],
) -> Any:
    """Draws of weights of terms (chains, draws, …): a number, one a class, or one a term."""
    import xarray as xr

    dims: dict[str, tuple[str, ...]] = dict.fromkeys(("temperature", "dependence_temperature"), _SAMPLE)
    dims |= {"class_bias": (*_SAMPLE, _CLASS), "weight": (*_SAMPLE, "term")}
    coordinates = {_CLASS: _class_names(fitted.encoding), "term": list(terms)}
    coordinates |= _sample_coordinates(next(iter(transitions.values())).shape)
    posterior = xr.Dataset({site: (dims[site], values) for site, values in drawn.items()}, coordinates)
    groups = {"posterior": posterior, "sample_stats": _transitions(transitions)}
    return _wrapped(nb, groups, _NUTS, {"posterior": _GENERALISED})


def _transitions(said: Mapping[str, np.ndarray]) -> xr.Dataset:
    import xarray as xr

    sample = next(iter(said.values())).shape
    return xr.Dataset({name: (_SAMPLE, values) for name, values in said.items()}, _sample_coordinates(sample))


def elpd_data(pointwise: np.ndarray, se: float) -> Any:
    """Exact leave-one-out scores (N,) as what `arviz.compare` ranks."""
    require("to_elpd", "arviz", "arviz")
    import xarray as xr

    arviz: Any = _arviz()
    each = xr.DataArray(pointwise, dims=_ROW, name="loo_i")
    common = {"se": se, "n_samples": 1, "n_data_points": len(pointwise), "warning": False, "scale": "log"}
    if "InferenceData" in vars(arviz):
        fields = {"elpd_loo": pointwise.sum(), "se": se, "p_loo": np.nan, **common, "loo_i": each, "good_k": np.nan}
        return arviz.ELPDData(data=list(fields.values()), index=list(fields))
    return arviz.ELPDDataLOO(elpd=float(pointwise.sum()), p=np.nan, good_k=np.nan, elpd_i=each, **common)


def _wrapped(nb: Classifier, groups: Mapping[str, xr.Dataset], sampling: str, about: Mapping[str, str]) -> Any:
    attributes = {
        "inference_library": "bayesnb",
        "inference_library_version": __version__,
        "estimator": " ".join(repr(nb).split()),
        "sampling": sampling,
        **about,
    }
    return _group_reader()({name: group.assign_attrs(attributes) for name, group in groups.items()})


def _group_reader() -> Any:
    """What makes the installed ArviZ's object of named groups."""
    import xarray as xr

    arviz = _arviz()
    if "InferenceData" in vars(arviz):  # 1.x warns where the attribute is asked for
        return lambda groups: arviz.InferenceData(**groups)
    return xr.DataTree.from_dict


def _arviz() -> Any:
    """ArviZ, of whose two lines the names differ."""
    with warnings.catch_warnings():
        # 0.23 announces the line 1.x at its import.
        warnings.filterwarnings("ignore", "\\s*ArviZ is undergoing", FutureWarning)
        import arviz
    return arviz


def _is_proper(encoding: Encoding, model: NaiveBayes) -> bool:
    try:
        require_proper(encoding, model)
    except ImproperPosteriorError:
        return False
    return True


# -- names ---------------------------------------------------------------------------------------


def _axes(encoding: Encoding) -> list[tuple[str, Sequence[str]]]:
    """Dimension and coordinates of the parameters of each block."""
    found: list[tuple[str, Sequence[str]]] = []
    for columns in encoding.blocks:
        within, levels = columns.axis()
        features = [str(columns.names[j]) for j in within]
        found.append(("feature", features) if levels is None else ("level", _level_names(features, levels)))
    dims = [dim for dim, _ in found]
    return [
        (dim if dims.count(dim) == 1 else f"{dim}_{columns.kind}", names)
        for columns, (dim, names) in zip(encoding.blocks, found, strict=True)
    ]


def _level_names(features: Sequence[str], levels: Sequence[Hashable]) -> list[str]:
    pairs = list(zip(features, levels, strict=True))
    names = [f"{feature}={level}" for feature, level in pairs]
    return names if len(set(names)) == len(names) else [f"{feature!r}={level!r}" for feature, level in pairs]


def _class_names(encoding: Encoding) -> np.ndarray:
    labels = encoding.classes.array()
    if labels.dtype.kind in "biufU":
        return labels
    names = [str(label) for label in encoding.classes.values]
    return np.array(names if len(set(names)) == len(names) else [repr(label) for label in encoding.classes.values])


# -- draws ---------------------------------------------------------------------------------------


def _parameters(
    encoding: Encoding,
    model: NaiveBayes,
    drawn: Mapping[str, np.ndarray],
    sample: tuple[int, int],
    masks: Sequence[np.ndarray],
) -> xr.Dataset:
    import xarray as xr

    coordinates: dict[str, Any] = {_CLASS: _class_names(encoding)}
    last: dict[str, tuple[str, ...]] = {}
    for (dim, names), sites, keep in zip(_axes(encoding), site_names(encoding, model), masks, strict=True):
        if keep.any():
            coordinates[dim] = [name for name, wanted in zip(names, keep, strict=True) if wanted]
        last |= {site: (dim,) for site in sites.values()}
    variables = {
        site: ((*_SAMPLE, _CLASS, *last.get(site, ())), values.reshape(*sample, *values.shape[1:]))
        for site, values in drawn.items()
    }
    return xr.Dataset(variables, {**_sample_coordinates(sample), **coordinates})


def _sample_coordinates(sample: tuple[int, int]) -> dict[str, np.ndarray]:
    return {name: np.arange(n) for name, n in zip(_SAMPLE, sample, strict=True)}


# -- rows ----------------------------------------------------------------------------------------


def _rows(
    fitted: Fitted,
    X: Any,
    y: Any,
    drawn: dict[str, np.ndarray],
    sample: tuple[int, int],
    seed: int,
) -> dict[str, xr.Dataset]:
    """The groups that speak of rows."""
    import xarray as xr

    encoded, n = fitted.encode(X)
    label = fitted.label_index(y, n)
    rows = tuple(r.linear_rows() for r in encoded)
    row, own, predicted = score_labelled(fitted.encoding, fitted.posterior, rows, label, drawn, seed)
    names = _class_names(fitted.encoding)
    observation = {_ROW: np.arange(len(label))}
    coordinates = {**_sample_coordinates(sample), **observation}

    def spread(values: np.ndarray) -> np.ndarray:
        return values.reshape(*sample, -1)

    likelihoods = {
        name: ((*_SAMPLE, _ROW), spread(values), {"description": _DESCRIPTIONS[name]})
        for name, values in (("row", row), ("label", own))
    }
    return {
        "log_likelihood": xr.Dataset(likelihoods, coordinates),
        "posterior_predictive": xr.Dataset({"label": ((*_SAMPLE, _ROW), names[spread(predicted)])}, coordinates),
        "observed_data": xr.Dataset({"label": ((_ROW,), names[label])}, observation),
    }
