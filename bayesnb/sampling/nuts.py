"""Markov chain Monte Carlo where conjugacy ends, and as a referee where it holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import numpy as np

from bayesnb._util.arguments import require_flag, require_integer, require_seed, shown
from bayesnb._util.extras import require
from bayesnb._util.precision import float64
from bayesnb._util.warnings import warn
from bayesnb.families import hyperprior_of, supports
from bayesnb.families.protocol import Condensable, Hyperparameter
from bayesnb.fitted import Classifier, Fitted, require_posterior
from bayesnb.inference_data import assemble, assemble_weights
from bayesnb.prediction.cross_fitting import Kind, TooFewRowsError, cross_fit
from bayesnb.prediction.dense_terms import MOST_TERMS, DenseTerms
from bayesnb.prediction.weights import Weighed, require_weights
from bayesnb.uncertainty import require_proper, site_names
from bayesnb.uncertainty.draws import feature_masks

if TYPE_CHECKING:
    from numpyro import distributions as dist

    from bayesnb.sampling.hierarchy import Hierarchy
    from bayesnb.sampling.programs import Fixed

_KINDS = ("symmetric", "pooled")
# ArviZ's names of what NumPyro tells of a transition.
_FIELDS = {
    "diverging": "diverging",
    "acceptance_rate": "accept_prob",
    "n_steps": "num_steps",
    "energy": "energy",
    "lp": "potential_energy",
}
_WORST_R_HAT = 1.01
_LEAST_ESS = 100  # a chain
_LESS_WIDE = "Take a hyperprior that is less wide, or a longer warmup."
_CERTAIN = (
    "The leave-one-out scores may tell the labels so well that they hardly bound the weights: from above, where a term "
    "is certain, only their prior does."
)


def run_nuts(
    nb: Classifier,
    hyperprior: Any = None,
    draws: int = 1000,
    warmup: int = 500,
    chains: int = 4,
    seed: int = 0,
    progress: bool = True,
    features: Iterable[Any] | None = None,
    *,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draws of the parameters by the No-U-Turn sampler; of its hyperparameters too, where the prior has them.

    Of a `WeightedNB` draws of the weights of its terms, given leave-one-out scores: see the notes.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Its statistics are all that is used of the data: the cost does not grow with the rows.
    hyperprior : None, "symmetric", "pooled", NumPyro distribution, or {"symmetric" | "pooled": distribution}
        None: the prior of `nb` as it is. This has a closed form, and NUTS is its referee: `posterior_draws` is exact
        and a thousand times faster. Else the prior has unknown hyperparameters:

        "symmetric"
            θ ~ Dirichlet(α, …, α), one α for each block of levels.
        "pooled"
            θ_class ~ Dirichlet(α L m), L levels: the classes share the base measure m, uniform on its simplex, so that
            rare levels borrow strength from the other classes. m = 1/L is the symmetric prior.

        A distribution is that of α; the default is log α ~ Normal(-1, 1.5).

        Under each of them the concentration of the classes has the prior of α too, and Gaussian features a location
        and a rate that the classes share: loc ~ Normal(m, b/(aκ)) and log rate ~ Normal(log b, 1) around the prior
        of `nb`. Features whose family has no hyperprior, such as Poisson ones, keep
        their prior.
    draws, warmup, chains : int
        Draws a chain after as many as `warmup` to adapt.
    seed : int
    progress : bool
        Show a progress bar; there is none where chains run in parallel, on several devices.
    features : names or indices of columns of X, optional
        Keep the parameters of these only; default: all. `[]` keeps the hyperparameters alone.
    X, y, sample_weight : of a `WeightedNB` only
        The rows that it was weighed on, with the labels and weights that they were counted with.

    Returns
    -------
    arviz.InferenceData under ArviZ 0.23, xarray.DataTree under ArviZ 1.x
        As `to_arviz`, with the hyperparameters in `posterior`, and `sample_stats`. Given the hyperparameters θ is
        drawn exactly. Of a `WeightedNB` `posterior` has "temperature" (…), "class_bias" (…, class) and "weight"
        (…, term), as `weight_table` has it.

    Raises
    ------
    ImportError
        Without NumPyro and ArviZ: they are an extra, `pip install 'bayesnb[mcmc]'`.
    ImproperPosteriorError
        If the posterior is improper.
    ValueError
        If `hyperprior` is none of the above, or improper. If X and y are not given of a `WeightedNB`, are given of
        another classifier, or are not what was counted, as far as counts tell.

    Warns
    -----
    UserWarning
        On divergent transitions, R-hat above 1.01, or an effective sample size below 100 a chain, with what to do.

    Notes
    -----
    `predict_proba(X, draws=)` averages the closed-form predictive over the hyperparameters alone; `predict_interval`
    and others draw θ given them and the row. That is so while prior and statistics of `nb` are those of the draws:
    `attrs` of `posterior` say which. Of "symmetric" draws it needs none of the parameters, `features=[]`.

    Of a `WeightedNB` this is the posterior of its weights given the leave-one-out scores of the rows that `fit` took,
    p(b, T, d) Π_i P(y_i | x_i; b, w), under the priors of `WeightedNB`; τ and the exponent of the length are held where
    they are. It is a generalised posterior (a Gibbs posterior), and says nothing of θ, of which
    `run_nuts(nb.estimator_)` has draws. `weight_table(nb, draws=)` and `nb.predict_proba(X, draws=)` take it. A step
    costs as much as the N × C × T terms are many: `max_rows` bounds it.

    After `import arviz`, of version 1, write `from numpyro import distributions as dist`. ArviZ leaves a NumPyro behind
    that loads when first used, and `import numpyro.distributions as dist` then makes that module twice: NUTS fails with
    "module 'numpyro.distributions' has no attribute 'distribution'", here and everywhere.

    References
    ----------
    Hoffman & Gelman, *The No-U-Turn sampler*, JMLR 15 (2014). Vehtari et al., *Rank-normalization, folding, and
    localization: an improved R-hat*, Bayesian Analysis 16 (2021), for the bounds.

    Examples
    --------
    A few draws, to show the shapes; results take more, as the defaults are.

    >>> import warnings
    >>> from bayesnb import CategoricalNB, run_nuts
    >>> nb = CategoricalNB(alpha=1).fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # few draws
    ...     found = run_nuts(nb, draws=50, warmup=50, chains=1, progress=False)
    >>> found["posterior"]["theta"].shape
    (1, 50, 2, 2)
    """
    require("run_nuts", "mcmc", "numpyro", "arviz")
    from numpyro.infer import init_to_median

    for name, value in (("draws", draws), ("warmup", warmup), ("chains", chains)):
        require_integer(name, value)
    require_seed(seed)
    require_flag("progress", progress)
    run = _Run(draws, warmup, chains, seed, progress)
    if hasattr(nb, "weigh"):
        return _of_weights(
            cast(Weighed, nb), X, y, sample_weight, {"hyperprior": hyperprior, "features": features}, run
        )
    if not (X is None and y is None and sample_weight is None):
        raise ValueError(
            f"run_nuts: {type(nb).__name__} has its statistics; X, y and sample_weight are for the weights of a "
            "WeightedNB."
        )
    fitted = require_posterior(nb, "run_nuts")
    target = _target(fitted, hyperprior)
    masks = feature_masks(fitted.encoding, features)
    # Near where the prior is: features may be measured in thousands. Long trajectories before the scales are known take
    # most of the time and teach little.
    options = {"init_strategy": init_to_median(), "max_tree_depth": (6, 10)}
    samples, transitions = _sample(target.program(fitted.statistics), options, run, _LESS_WIDE)
    flat = {site: values.reshape(-1, *values.shape[2:]) for site, values in samples.items()}
    drawn, shared = target.finish(flat, fitted.statistics, masks, seed)
    return assemble(nb, fitted, drawn, shared, transitions, masks, target.hyperprior)


def _target(fitted: Fitted, hyperprior: Any) -> Fixed | Hierarchy:
    from numpyro import distributions as dist

    from bayesnb.sampling.hierarchy import Hierarchy
    from bayesnb.sampling.programs import Fixed

    sites = site_names(fitted.encoding, fitted.prior)
    families = [fitted.prior.class_prior, *fitted.prior.blocks]
    if hyperprior is None:
        require_proper(fitted.encoding, fitted.posterior)
        _require_density(families)
        return Fixed(fitted.prior, sites)
    given = hyperprior if isinstance(hyperprior, dict) else {"symmetric": hyperprior}
    given = {hyperprior: dist.LogNormal(-1.0, 1.5)} if isinstance(hyperprior, str) else given
    kind: Any
    kind, alpha = next(iter(given.items())) if len(given) == 1 else (None, None)
    if kind not in _KINDS or not isinstance(alpha, dist.Distribution):
        raise ValueError(
            f"hyperprior={shown(hyperprior)} must be None, 'symmetric', 'pooled', a NumPyro distribution for alpha, "
            "or such a distribution by its kind, as in {'pooled': numpyro.distributions.Gamma(1.0, 1.0)}."
        )
    _require_positive(alpha)
    _require_density([f.unit() if supports(f, Condensable) else f for f in families])
    if not any(hyperprior_of(f, kind == "pooled") for f in families):
        raise ValueError(
            f"hyperprior={hyperprior!r} is about hyperparameters that nothing here has: the classes are fixed, "
            "and no family of the features has a hyperprior, as levels and Gaussian features have."
        )
    for family in families:
        _require_common(family, hyperprior_of(family, kind == "pooled"))
    return Hierarchy(fitted.prior, kind, alpha, sites)


@float64
def _require_density(families: list[Any]) -> None:
    """Exact sampling can do with a proper posterior; a program starts from the prior."""
    if not all(np.all(f.proper()) for f in families):
        raise ValueError(
            "The prior is improper, and run_nuts needs one that has a density. Choose a proper one, such as alpha=0.5 "
            "and class_alpha=0.5; posterior_draws needs a proper posterior only."
        )


def _require_common(family: Any, hyperprior: Mapping[str, Hyperparameter]) -> None:
    fields = [name for name, said in hyperprior.items() if said.shape and hasattr(family, name)]
    if any(np.ptp(getattr(family, name), axis=0).any() for name in fields):
        raise ValueError(
            f"hyperprior: classes are to share a {' and a '.join(fields)} of each feature, but those of the "
            f"{type(family).__name__} prior differ between classes. Choose a prior where they do not, or "
            "hyperprior=None."
        )


def _require_positive(alpha: dist.Distribution) -> None:
    """A concentration is positive; and its evidence tends to a constant as it grows, so that its prior must not."""
    from numpyro import distributions as dist

    # A mask takes the density away and leaves the support.
    if isinstance(alpha, dist.ImproperUniform | dist.MaskedDistribution):
        raise ValueError(
            f"hyperprior={alpha!r} is improper, and so would be the posterior: as alpha grows the evidence tends to a "
            "positive constant. Choose a proper one, such as numpyro.distributions.LogNormal(-1.0, 1.5)."
        )
    if alpha.batch_shape or alpha.event_shape:
        raise ValueError(f"hyperprior={alpha!r} must be the distribution of one number, alpha.")
    drawn = np.asarray(alpha.sample(jax.random.key(0), (1000,)))
    if alpha.is_discrete or (drawn <= 0).any() or alpha.support(np.asarray(-1e-9)):
        raise ValueError(
            f"hyperprior={alpha!r} must be a continuous distribution of positive numbers: alpha is a concentration."
        )


class _Run(NamedTuple):
    """How long, and from where."""

    draws: int
    warmup: int
    chains: int
    seed: int
    progress: bool


def _of_weights(nb: Weighed, X: Any, y: Any, sample_weight: Any, others: Mapping[str, Any], run: _Run) -> Any:
    """Draw the weights of a `WeightedNB` given terms of rows by fits to halves of the others."""
    from bayesnb.sampling.weight_program import WeightsGiven

    weights = require_weights(nb, "run_nuts")
    for name, value in others.items():
        if value is not None:
            raise ValueError(
                f"{name}: of a {type(nb).__name__} its weights are drawn, and {name}= is about the parameters. Those "
                f"are drawn by run_nuts(nb.estimator_, {name}=...)."
            )
    if X is None or y is None:
        raise ValueError(
            f"run_nuts: the weights of a {type(nb).__name__} are drawn given the terms of rows; pass the rows that "
            "it was weighed on, run_nuts(nb, X=X, y=y). The parameters are drawn by run_nuts(nb.estimator_)."
        )
    fitted = nb.estimator_.fitted_
    now, then = list(fitted.encoding.classes.values), list(weights.classes.values)
    if now != then:
        raise ValueError(
            f"run_nuts: there are classes {now[:8]}, and the weights were fitted to {then[:8]}. nb.weigh(X, y) fits "
            "them anew."
        )
    kind: Kind = "feature" if weights.biased else "temperature"
    try:
        _, crossed = cross_fit(nb.model_, X, y, sample_weight, kind, nb.max_rows, nb.seed)
    except TooFewRowsError as reason:
        raise ValueError(f"run_nuts: {reason}") from None
    shrinkage = (weights.shrinkage, weights.dependence_shrinkage)[: len(crossed.groups.mean)]
    terms, groups = crossed.terms_under(weights.exponent, shrinkage)
    if not isinstance(terms, DenseTerms):
        raise ValueError(
            f"run_nuts: {type(nb).__name__} has {len(weights.names):,} weights, and draws are of at most {MOST_TERMS}. "
            "weight_table has intervals of all, by Laplace's approximation."
        )
    target = WeightsGiven(terms, groups, np.array(shrinkage), weights.biased)
    samples, transitions = _sample(target.program, target.options(), run, _CERTAIN)
    return assemble_weights(nb, fitted, target.finish(samples, weights.dependence), weights.names, transitions)


@float64
def _sample(
    program: Callable[[], None], options: Mapping[str, Any], run: _Run, if_diverging: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values of each site (chains, draws, …), and what the transitions say of themselves (chains, draws)."""
    from numpyro.infer import MCMC, NUTS

    parallel = jax.local_device_count() >= run.chains > 1
    mcmc = MCMC(
        NUTS(program, **options),
        num_warmup=run.warmup,
        num_samples=run.draws,
        num_chains=run.chains,
        chain_method="parallel" if parallel else "vectorized",
        # Parallel chains report from threads of their own, where float64 is not set: NumPyro's bar would fail.
        progress_bar=run.progress and not parallel,
    )
    mcmc.run(jax.random.key(run.seed), extra_fields=tuple(_FIELDS.values()))
    fields = mcmc.get_extra_fields(group_by_chain=True)
    transitions = {name: fields[field] for name, field in _FIELDS.items()}
    transitions["lp"] = -transitions["lp"]
    samples = mcmc.get_samples(group_by_chain=True)
    _diagnose(samples, transitions["diverging"], if_diverging)
    return samples, transitions


def _diagnose(samples: dict[str, np.ndarray], diverging: np.ndarray, if_diverging: str = _LESS_WIDE) -> None:
    """Warn of what makes the draws unfit, and say what to do."""
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    chains, draws = diverging.shape
    divergences = int(diverging.sum())
    if divergences:
        warn(
            f"NUTS: {divergences} of {diverging.size} transitions diverged: the draws may miss part of the posterior. "
            + if_diverging
        )
    # Weights are base measures before they are normalised: their total means nothing.
    moving = {site: v for site, v in samples.items() if np.ptp(v, axis=(0, 1)).any() and not site.endswith("_weight")}
    if draws < 4 or not moving:
        return
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of a site without one number that moves
        r_hat = {site: float(np.nanmax(split_gelman_rubin(values))) for site, values in moving.items()}
        size = {site: float(np.nanmin(effective_sample_size(values))) for site, values in moving.items()}
    for said in (_of_r_hat(r_hat), _of_size(size, chains)):
        if said:
            warn(f"NUTS: {said}")


def _of_r_hat(r_hat: Mapping[str, float]) -> str:
    """What the largest of these potential scale reductions asks for; nothing where all chains have met."""
    site = max(r_hat, key=lambda site: np.nan_to_num(r_hat[site], nan=np.inf))
    if r_hat[site] <= _WORST_R_HAT:
        return ""
    value = f"is {r_hat[site]:.3f}" if np.isfinite(r_hat[site]) else "cannot be estimated"
    return f"R-hat of {site!r} {value}: the chains have not met. Raise warmup and draws."


def _of_size(size: Mapping[str, float], chains: int) -> str:
    """What the least of these effective sample sizes asks for; nothing where all are large enough.

    An estimate is a number of draws over a sum of autocorrelations, which noise can make negative where draws are few
    or chains have not met: it is then no size at all.
    """
    site = min(size, key=lambda site: np.nan_to_num(size[site], nan=-np.inf))
    if size[site] >= _LEAST_ESS * chains:
        return ""
    if not size[site] >= 1:
        return (
            f"the effective sample size of {site!r} cannot be estimated: the draws are too few, or depend too much on "
            "each other. Raise warmup and draws."
        )
    return (
        f"the effective sample size of {site!r} is {size[site]:.0f}, below {_LEAST_ESS * chains}; "
        "the ends of its intervals are not to be trusted. Raise draws."
    )
