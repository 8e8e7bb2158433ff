"""The No-U-Turn sampler for priors that are not conjugate, and as a check of conjugate ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import jax
import numpy as np

from bayesnb._util.arguments import Seed, bad_argument, read_seed, require_flag, require_integer, shown
from bayesnb._util.precision import float64
from bayesnb._util.warnings import warn
from bayesnb.encoding import check_weights
from bayesnb.encoding.levels import Levels, to_python
from bayesnb.fitted import counting
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.uncertainty import require_proper, site_names
from bayesnb.uncertainty.arviz import ArvizData, LikelihoodOf, assemble, assemble_weights, require_rows_and_labels
from bayesnb.uncertainty.draws import feature_masks, parameter_shapes, require_drawable, require_room
from bayesnb.uncertainty.given_draws import NEW_GROUP, read_groups
from bayesnb.weights.cross_fitting import Kind, TooFewRowsError, cross_fit
from bayesnb.weights.terms import MOST_TERMS, Weighed, require_weights

Chains = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
"""Draws by site, and fields of transitions, (chains, draws, …)."""
_KINDS = ("symmetric", "pooled")
_MOST_ENTRIES = 2**12  # of base measures: NUTS takes some five minutes for 4,000 words
_MOST_NUMBERS = 2**24  # of parameters in all draws, unless features= names columns
_EXAMPLE = "such as numpyro.distributions.LogNormal(-1.0, 1.5)"
_WORST_R_HAT = 1.01
_LEAST_ESS = 100  # per chain
_LESS_WIDE = "Use a narrower hyperprior, if there is one, or a longer warmup."
_CERTAIN = "Only the prior may bound the weights from above. Raise warmup, and compare the intervals of weight_table."


def run_nuts(
    nb: Classifier,
    hyperprior: object = None,
    draws: int = 1000,
    warmup: int = 500,
    chains: int = 4,
    seed: Seed = 0,
    progress: bool = True,
    features: Iterable[object] | None = None,
    *,
    X: object = None,
    y: object = None,
    sample_weight: object = None,
    groups: object = None,
    likelihood: LikelihoodOf = "label",
) -> ArvizData:
    """Draw parameters, and hyperparameters where the prior has them, by the No-U-Turn sampler.

    For a `WeightedNB` the draws are of the weights of its terms, given cross-fitted terms: see the notes.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier. Only its statistics are used, so the cost does not grow with the number of rows.
    hyperprior : None, "symmetric", "pooled", NumPyro distribution, or {"symmetric" | "pooled": distribution}
        None: the prior of `nb`. The posterior then has a closed form, and NUTS is only a check: `posterior_draws` is
        exact and a thousand times faster. Otherwise the prior has unknown hyperparameters:

        "symmetric"
            θ ~ Dirichlet(α, …, α), one α for each block of levels.
        "pooled"
            θ_class ~ Dirichlet(α L m), L levels: the classes share the base measure m, uniform on its simplex, so that
            rare levels borrow strength from the other classes. m = 1/L is the symmetric prior. NUTS samples m, so that
            the time grows with L: half a minute for 300 levels, five minutes for 4,000. "symmetric" takes a second.

        A distribution is the hyperprior of α; the default is log α ~ Normal(-1, 1.5).

        Under either kind the concentration of the class probabilities has the same hyperprior as α. For Gaussian
        features the classes share a location and a rate: loc ~ Normal(m, b/(aκ)) and log rate ~ Normal(log b, 1), with
        m, κ, a and b of the prior of `nb`. Columns of other kinds, such as Poisson and binned columns, have no
        hyperprior: their posterior is the exact one, which does not depend on the draw.
    draws, warmup, chains : int
        Number of draws per chain, number of warm-up steps per chain, and number of chains.
    seed : int, JAX key, RandomState or Generator
        Seed of the sampler.
    progress : bool
        Whether to show a progress bar, with the time that is left, if the run takes longer than a second.
    features : names or indices of columns of X, optional
        Columns whose parameters θ are drawn; for multinomial features, the words. Hyperparameters that belong to a
        column or level are kept for these columns only, and `[]` keeps the others alone. Default: all columns. With a
        hyperprior, θ of more than 2²⁴ numbers in all draws (134 MB) is drawn for no column by default, and a warning
        and the attribute "features" of `posterior` say so; all hyperparameters are kept.
    X, y, sample_weight : array-likes, optional
        With `groups`, and for a `WeightedNB`: rows that `nb` was fitted to, with the labels and weights with which they
        were counted. Otherwise X and y are rows whose log-likelihoods are added to the result.
    groups : (N,) array-like, optional
        Group of each row, such as a site or an author: partial pooling, see the notes. For a `WeightedNB`, the groups
        with which the weights were fitted; halves of the rows keep them together.
    likelihood : {"label", "row"}
        With X and y: whether the groups about rows describe labels given rows, or rows and labels; see `to_arviz`.

    Returns
    -------
    arviz.InferenceData under ArviZ 0.23, xarray.DataTree under ArviZ 1.x
        Groups `posterior`, with the variables of `to_arviz` and the hyperparameters, and `sample_stats`. θ is drawn
        exactly given the hyperparameters, also if `features` are some words of a multinomial, whose rest is summed out.
        With X and y, without `groups`, also the groups `prior`, `log_prior`, `log_likelihood`, `posterior_predictive`,
        `prior_predictive` and `observed_data` of `to_arviz`, in which hyperparameters have their hyperprior. The
        density of base measures is constant, and is not in `log_prior`.
        For a `WeightedNB` `posterior` has "temperature" (…), "class_bias" (…, class) and "weight" (…, term), with the
        weights of `weight_table`.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper, and there is no hyperprior.
    NotImplementedError
        If the classifier has no exact posterior; without a hyperprior and groups, if it averages over binnings,
        contexts, trees or sets of features; with `groups`, if it has columns that cannot be pooled, see the notes.
    ValueError
        If `hyperprior` is none of the above, or improper. If X and y are missing for a `WeightedNB` or with `groups`;
        if the counts show that the rows were not counted. If X and y are given with `features` and without `groups`. If
        base measures, of "pooled" or of groups, have more than 4,096 entries.

    Warns
    -----
    UserWarning
        If transitions diverge, R-hat is above 1.01, or an effective sample size is below 100 per chain; if θ is not
        drawn, because it would be too large. The message says what to do.

    Notes
    -----
    `predict_proba(X, draws=)` averages the closed-form predictive over the hyperparameters alone; `predict_interval`
    and other functions draw θ given the hyperparameters and the row. The classifier that uses the draws must have the
    prior and the statistics of `nb`, which `attrs` of `posterior` record. For "symmetric" draws these functions do not
    need the parameters, so `features=[]` suffices.

    With `groups` each group g has its own parameters, whose distribution is common to all groups: class probabilities
    π_g ~ Dirichlet(t' m'); for levels θ_gcj ~ Dirichlet(t_j m_cj); for numbers σ²_gcj ~ InverseGamma(a_j, a_j v_cj) and
    μ_gcj ~ Normal(l_cj, σ²_gcj/κ_j); for Poisson and exponential rates λ_gcj ~ Gamma(a q_j, a q_j/r_cj), so that rates
    of groups have mean r_cj ("rate_mean") and coefficient of variation 1/√(a q_j). The concentrations t', t, a and κ
    have the hyperprior, by default LogNormal(1, 2), under which groups may be very different or nearly equal. The
    ratios q_j ("a_ratio") have LogNormal(0, 1): columns together tell whether groups differ at all. For negative
    binomial counts λ_gcj has the beta prime distribution of `BetaNegativeBinomial` with the same a q_j and mean, given
    the dispersion. A dispersion that is not known ("common_dispersion") is the same in all groups; its logarithm is
    normal, with the mean and the variance that it has under the prior of `nb`. The mean
    probabilities m' and m_cj are uniform on their simplexes. l is normal around the location in the prior of `nb`, with
    variance b/(aκ), and log v is normal with mean log b/a and variance 1, where b, a and κ are those of the prior of
    `nb`. r_cj has the prior of the rate in `nb`. Binned columns, tables given contexts, and averages over trees or sets
    of features have no such distribution: their cuts, parents, trees or sets are not known.

    The parameters are integrated out, so that the cost depends on the number of groups and not on that of rows. Draws
    of parameters have the dimension "group", whose last entry "(new)" is a group that has no rows.
    `predict_proba(X, draws=, groups=)` takes the draws: rows of a known group are predicted by the posterior of its
    parameters, rows of other groups by the common distribution. For partial pooling see Gelman & Hill, *Data Analysis
    Using Regression and Multilevel/Hierarchical Models* (2007), ch. 12.

    For a `WeightedNB` the draws are of the posterior of the weights given cross-fitted terms of the rows,
    p(b, T, d) Π_i P(y_i | x_i; b, w), under the priors of `WeightedNB` for the class biases b, the temperature T and
    the deviations d, with weights w = T + τ d; τ and the exponent of the length are fixed at the fitted values. That is
    a generalised posterior (a Gibbs posterior) of the weights, not of θ, which `posterior_draws(nb.estimator_)` draws.
    `weight_table(nb, draws=)` and `nb.predict_proba(X, draws=)` take the draws. The cost of a step is proportional to
    the number of terms, N × C × T: `max_rows` bounds it.

    If you import ArviZ 1 before NumPyro, write `from numpyro import distributions as dist`. ArviZ 1 imports NumPyro
    lazily, and `import numpyro.distributions as dist` then creates that module twice: NUTS fails, in bayesnb and
    elsewhere, with "module 'numpyro.distributions' has no attribute 'distribution'".

    References
    ----------
    Hoffman & Gelman, *The No-U-Turn sampler*, JMLR 15 (2014). Vehtari et al., *Rank-normalization, folding, and
    localization: an improved R-hat*, Bayesian Analysis 16 (2021), for the bounds.

    Examples
    --------
    A few draws show the shapes; results need as many draws as by default:

    >>> import warnings
    >>> from bayesnb import CategoricalNB, run_nuts
    >>> nb = CategoricalNB(alpha=1).fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # few draws
    ...     data = run_nuts(nb, draws=50, warmup=50, chains=1, progress=False)
    >>> data["posterior"]["theta"].shape
    (1, 50, 2, 2)
    """
    seed = read_run(draws, warmup, chains, seed, progress)
    sample = partial(_sample, draws=draws, warmup=warmup, chains=chains, seed=seed, show_progress=progress)
    if hasattr(nb, "weigh"):
        of_parameters = {"hyperprior": hyperprior, "features": features}
        return _run_for_weights(cast(Weighed, nb), (X, y, sample_weight, groups), of_parameters, sample)
    fitted = require_posterior(nb, "run_nuts")
    statistics, names = fitted.statistics, None
    if groups is not None:
        target = read_target(fitted, hyperprior, grouped=True)
        names, statistics = count_groups(fitted, X, y, sample_weight, groups)
    elif sample_weight is not None or (X is not None and features is not None):
        name = "features" if sample_weight is None else "sample_weight"
        raise ValueError(
            f"run_nuts: {name}= cannot be used together with X and y, unless groups= is given. Log-likelihoods are of "
            f"rows of weight 1, and need the parameters of all columns. Leave out {name}."
        )
    else:
        require_rows_and_labels(X, y, likelihood)
        target = read_target(fitted, hyperprior)
    _require_few_entries(target)
    is_evaluated = X is not None and groups is None
    masks = feature_masks(fitted.encoding, features)
    too_large = ""
    if features is None and target.kind != "none" and not is_evaluated:
        too_large = _reason_against_parameters(fitted, draws * chains, 1 if names is None else len(names))
    elif target.kind != "none":
        require_room(fitted.prior, masks, draws * chains * (1 if names is None else len(names)))
    samples, transitions = sample(target.program(statistics), target.start(statistics))
    flat = {site: values.reshape(-1, *values.shape[2:]) for site, values in samples.items()}
    drawn, shared = target.finish(flat, statistics, [keep & (not too_large) for keep in masks], seed)
    if too_large:
        warn(f"run_nuts: {too_large}")
    of_groups = None if names is None else (names, statistics)
    of_rows = None
    if is_evaluated:
        prior = target.draw_prior(draws * chains, statistics, masks, seed)
        of_rows = (X, y, likelihood, seed), prior, target.log_prior(drawn, shared, statistics)
    return assemble(nb, fitted, drawn, shared, transitions, masks, target.kind, of_groups, too_large, of_rows)


def _require_few_entries(target: Any) -> None:
    """Raise ValueError if the base measures of a target have more entries than NUTS samples in minutes."""
    every = [] if target.kind == "none" else [h for part in target.hyperparameters() for h in part.values()]
    size = sum(math.prod(h.shape) for h in every if h.of_weights is not None)
    if size > _MOST_ENTRIES:
        other = "Use 'symmetric', which does not depend on their number, or fit" if target.kind == "pooled" else "Fit"
        raise ValueError(
            f"run_nuts: hyperprior='pooled' has too many levels or words. Base measures have {size:,} entries, and "
            f"NUTS samples at most {_MOST_ENTRIES:,} within minutes. {other} to fewer words or columns, such as by "
            "min_df= of bayesnb.text.BagOfWords."
        )


def _reason_against_parameters(fitted: Fitted, n_draws: int, n_groups: int) -> str:
    """Return why all parameters are not drawn unless `features` asks for them, or "" if their draws are few enough."""
    families = fitted.prior.blocks
    size = n_groups * sum(math.prod(shape) for family in families for shape in parameter_shapes(family).values())
    if n_draws * size <= _MOST_NUMBERS:
        return ""
    return (
        f"the parameters of the features were not drawn, because {n_draws:,} draws of {size:,} parameters are more "
        f"than {_MOST_NUMBERS:,} numbers. Predictions with draws= do not need them. Pass columns or words to draw as "
        "features=, or [] to draw none without this warning."
    )


def read_target(fitted: Fitted, hyperprior: object, grouped: bool = False) -> Any:
    """Return the NUTS target, `Fixed` or `Hierarchy`, for a hyperprior, of groups of rows if `grouped`.

    Raise ValueError unless `hyperprior` is as `run_nuts` documents, and NotImplementedError if a block has no draws, or
    no parameters of groups.
    """
    from bayesnb.sampling.programs import Fixed, Hierarchy

    prior = fitted.prior.for_groups() if grouped else fitted.prior
    sites, families = site_names(fitted.encoding, prior), [prior.class_prior, *prior.blocks]
    if hyperprior is None and not grouped:
        require_proper(fitted.encoding, fitted.posterior)
        _require_density(fitted, fitted.prior)
        return Fixed(fitted.prior, sites)
    require_drawable(fitted.posterior)
    if grouped:
        for columns, family in zip(fitted.encoding.blocks, prior.blocks, strict=True):
            if reason := family.groups_refusal():
                names = shown([to_python(name) for name in columns.names])
                raise NotImplementedError(f"run_nuts: groups= cannot pool the parameters of columns {names}: {reason}")
        kind, alpha = _read_hyperprior("pooled" if hyperprior is None else hyperprior, (1.0, 2.0))
        if kind != "pooled":
            raise ValueError(f"hyperprior={shown(hyperprior)} cannot be used with groups=. Pass 'pooled' as the kind.")
        kind = "grouped"
    else:
        kind, alpha = _read_hyperprior(hyperprior, (-1.0, 1.5))
    _require_density(fitted, prior.unit())
    if not any(f.hyperprior(kind) for f in families):
        raise ValueError(
            f"hyperprior={hyperprior!r} applies to no hyperparameter of this classifier: only categorical, Bernoulli, "
            "multinomial and Gaussian features and learned class probabilities have some. Use posterior_draws, which "
            "draws from the exact posterior."
        )
    for family in families:
        name = type(family).__name__
        shared = [p for p, h in family.hyperprior(kind).items() if h.shape and hasattr(family, p)]
        if not grouped and any(np.ptp(getattr(family, p), axis=0).any() for p in shared):
            raise ValueError(
                f"hyperprior: the {name} prior has another {' or '.join(shared)} in each class. Choose a prior that is "
                "the same in all classes."
            )
    return Hierarchy(prior, kind, alpha, sites)


def count_groups(
    fitted: Fitted, X: object, y: object, sample_weight: object, groups: object
) -> tuple[list[str], Statistics]:
    """Count the sufficient statistics of each group of rows.

    Parameters
    ----------
    fitted : Fitted
        State of the classifier that was fitted to the same rows.
    X, y, sample_weight
        Rows, labels and weights that were counted.
    groups : (N,) array-like
        Group of each row.

    Returns
    -------
    names : list of str
        Names of the G groups, and `NEW_GROUP`.
    statistics : Statistics
        Arrays with a leading axis of G + 1 groups; the last group has no rows.

    Raises
    ------
    ValueError
        If `groups` does not have a name for each row, if names are equal as text, or if the rows are not those that
        were counted, as far as counts show it.
    """
    if X is None or y is None:
        raise ValueError("run_nuts: groups= needs rows. Pass X and y, the rows and labels of the fit, as well.")
    rows, n = fitted.encode(X)
    label = fitted.label_index(y, n)
    weight = check_weights(sample_weight, n)
    names, group = read_groups(groups, n, "run_nuts")
    if len(set(names)) < len(names) or NEW_GROUP in names:
        problem = f"two groups have the same name after str(), or one has the reserved name {NEW_GROUP!r}"
        raise ValueError(f"groups: {problem}. Rename groups; the names are {shown(names)}.")
    n_classes, n_groups = len(fitted.encoding.classes), len(names) + 1
    # Pairs of a group and a class are counted as classes.
    pairs = replace(fitted.encoding, classes=Levels(tuple(range(n_groups * n_classes))))
    counted = counting.count_rows(pairs, rows, group * n_classes + label, weight)
    class_count, blocks = jax.tree.map(
        lambda v: v.reshape(n_groups, n_classes, *v.shape[1:]), (counted.class_count, counted.blocks)
    )
    statistics = Statistics(class_count, blocks, np.zeros(n_groups))

    def counts(s: Statistics) -> list[np.ndarray]:
        """Counts of classes, and of each block."""
        return [s.class_count, *(block.count for block in s.blocks)]

    pairs_of_counts = zip(counts(statistics), counts(fitted.statistics), strict=True)
    if not all(np.allclose(v.sum(axis=0), expected) for v, expected in pairs_of_counts):
        raise ValueError(
            "run_nuts: counts of X and y do not add up to those of the classifier. Pass the rows of the fit."
        )
    return [*names, NEW_GROUP], statistics


def _read_hyperprior(hyperprior: object, default: tuple[float, float]) -> tuple[Any, Any]:
    """Return kind and distribution of α; raise ValueError unless `hyperprior` is as `run_nuts` documents.

    By default log α is normal, with mean and sd in `default`.
    """
    from numpyro import distributions as dist

    given = hyperprior if isinstance(hyperprior, dict) else {"symmetric": hyperprior}
    given = {hyperprior: dist.LogNormal(*default)} if isinstance(hyperprior, str) else given
    kind, alpha = next(iter(given.items())) if len(given) == 1 else (None, None)
    if kind not in _KINDS or not isinstance(alpha, dist.Distribution):
        kinds = "None, 'symmetric', 'pooled', a NumPyro distribution for alpha, or a dict {'pooled': distribution}"
        raise bad_argument("hyperprior", hyperprior, kinds)
    _require_positive(alpha)
    return kind, alpha


@float64
def _require_density(fitted: Fitted, prior: NaiveBayes) -> None:
    """Raise ValueError unless the prior of every family is proper, as a NumPyro program samples from the prior."""
    arguments = "class_alpha", *fitted.prior_arguments
    families = prior.class_prior, *prior.blocks
    if improper := [a for a, f in zip(arguments, families, strict=True) if not np.all(f.proper())]:
        zero = f"{' and '.join(improper)} has a zero. Pass positive numbers."
        raise ValueError(f"The prior is improper, and a NumPyro program samples from the prior: {zero}")


@float64
def _require_positive(alpha: Any) -> None:
    """Raise ValueError unless the hyperprior of α is a proper continuous distribution of one positive number."""
    from numpyro import distributions as dist

    # A masked distribution has no density, but the support of the distribution below it.
    if isinstance(alpha, dist.ImproperUniform | dist.MaskedDistribution):
        raise ValueError(
            f"hyperprior={alpha!r} is improper, and the posterior would be improper as well, because the evidence does "
            f"not vanish as alpha grows. Choose a proper distribution, {_EXAMPLE}."
        )
    if alpha.batch_shape or alpha.event_shape:
        raise bad_argument("hyperprior", alpha, f"the distribution of one number, alpha, {_EXAMPLE}")
    # In float64, as `Hierarchy.start` samples: the sampler is then compiled once.
    drawn = np.asarray(alpha.sample(jax.random.key(0), (1000,)))
    if alpha.is_discrete or (drawn <= 0).any() or alpha.support(np.asarray(-1e-9)):
        raise bad_argument("hyperprior", alpha, f"a continuous distribution of positive numbers, {_EXAMPLE}")


def _run_for_weights(
    nb: Weighed, rows: tuple[object, ...], others: Mapping[str, object], sample: Callable[..., Chains]
) -> ArvizData:
    """Draws of the term weights of a `WeightedNB`, as ArviZ data, by NUTS given cross-fitted terms of rows.

    `rows` are X, y, sample_weight and groups. Raise ValueError if an argument in `others` is not None, or the rows do
    not fit the classifier.
    """
    from bayesnb.sampling.programs import WeightsGiven

    weights = require_weights(nb, "run_nuts")
    nb.fitted_.require_no_experts("run_nuts", "whose weights it does not draw. Use weight_table, or weights_.draw.")
    for name, value in others.items():
        if value is not None:
            of = f"applies to parameters, but run_nuts draws the weights of a {type(nb).__name__}"
            function = "posterior_draws" if name == "features" else "run_nuts"
            raise ValueError(f"{name}= {of}. Use {function}(nb.estimator_, {name}=...).")
    if rows[0] is None or rows[1] is None:
        raise ValueError(
            "run_nuts draws weights given rows. Pass the rows that the weights were fitted to, run_nuts(nb, X=X, y=y), "
            "or draw the parameters by posterior_draws(nb.estimator_)."
        )
    fitted = nb.estimator_.fitted_
    counted, weighed = list(fitted.encoding.classes.values), list(weights.classes.values)
    if counted != weighed:
        problem = f"the classifier has the classes {counted[:8]}, but its weights were fitted to {weighed[:8]}"
        raise ValueError(f"run_nuts: {problem}. Fit the weights again by nb.weigh(X, y).")
    kind: Kind = "feature" if weights.biased else "temperature"
    try:
        seed = read_seed(nb.seed, nb.random_state)
        (crossed,) = cross_fit(cast(Any, nb.model_).fit_parts(*rows), kind, nb.max_rows, seed)
    except TooFewRowsError as reason:
        raise ValueError(f"run_nuts: {reason}") from None
    shrinkage = (weights.shrinkage, weights.dependence_shrinkage)[: len(crossed.columns.groups.mean)]
    terms, groups = crossed.terms_under(weights.exponent, shrinkage)
    if terms.is_sparse:
        too_many = f"{type(nb).__name__} has {len(weights.names):,} weights, and at most {MOST_TERMS} can be drawn"
        raise ValueError(f"run_nuts: {too_many}. Use weight_table, which approximates their intervals.")
    target = WeightsGiven(terms, groups, np.array(shrinkage), weights.biased)
    samples, transitions = sample(target.program(), *target.start(), if_diverging=_CERTAIN)
    return assemble_weights(nb, fitted, target.finish(samples, weights.dependence), weights.names, transitions)


def _sample(
    program: Any,
    start: Any,
    inverse_mass_matrix: np.ndarray | None = None,
    *,
    warmup: int,
    if_diverging: str = _LESS_WIDE,
    **run: Any,
) -> Chains:
    """Run NUTS and warn of bad diagnostics; return draws by site and fields of transitions, (chains, draws, …).

    `start` has the values of the sites at which chains start, and `run` the arguments of `run_chains`. An inverse mass
    matrix that is given is adapted as a matrix; else its diagonal is.
    """
    from bayesnb.sampling.programs import Options, run_chains

    # Before the scales are known, long trajectories take most of the time and adapt little.
    options = Options(warmup, max_tree_depth=(6, 10))
    if inverse_mass_matrix is not None:
        # The density of weights has a steep side if the terms tell nearly all labels.
        options = Options(warmup, target_accept_prob=0.95, dense_mass=True)
    samples, transitions = run_chains(program, start, inverse_mass_matrix, options, **run)
    _diagnose(samples, transitions["diverging"], if_diverging)
    return samples, transitions


def _diagnose(samples: dict[str, np.ndarray], diverging: np.ndarray, if_diverging: str = _LESS_WIDE) -> None:
    """Warn if transitions diverged, and as `diagnose` does."""
    if diverging.any():
        part = f"{diverging.sum()} of {diverging.size} transitions diverged"
        warn(f"NUTS: {part}: the draws may miss part of the posterior. {if_diverging}")
    diagnose(samples, "NUTS")


def read_run(draws: object, warmup: object, chains: object, seed: object, progress: object) -> int:
    """Return the seed as an integer; raise ValueError unless the arguments that all samplers have are right."""
    for name, value in (("draws", draws), ("warmup", warmup), ("chains", chains)):
        require_integer(name, value)
    require_flag("progress", progress)
    return read_seed(seed)


def diagnose(samples: Mapping[str, np.ndarray], sampler: str, advice: str = "") -> None:
    """Warn if an R-hat exceeds 1.01, or an effective sample size is below 100 per chain.

    `samples` are draws by site, (chains, draws, …). The message begins with the name of the `sampler`, and ends with
    `advice`; default: more draws.
    """
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    chains, draws = next(iter(samples.values())).shape[:2]
    # Sites "_weight" are base measures before they are normalised, whose total has no meaning.
    moving = {site: v for site, v in samples.items() if np.ptp(v, axis=(0, 1)).any() and not site.endswith("_weight")}
    if draws < 4 or not moving:
        return
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy warns if all numbers of a site are constant.
        r_hat = {site: float(np.nanmax(split_gelman_rubin(values))) for site, values in moving.items()}
        size = {site: float(np.nanmin(effective_sample_size(values))) for site, values in moving.items()}
    for message in (_r_hat_message(r_hat, advice), _sample_size_message(size, chains, advice)):
        if message:
            warn(f"{sampler}: {message}")


def _r_hat_message(r_hat: Mapping[str, float], advice: str = "") -> str:
    """Warning text if the largest R-hat of the sites exceeds 1.01, else ""."""
    site = max(r_hat, key=lambda site: np.nan_to_num(r_hat[site], nan=np.inf))
    if r_hat[site] <= _WORST_R_HAT:
        return ""
    value = f"is {r_hat[site]:.3f}" if np.isfinite(r_hat[site]) else "cannot be estimated"
    return f"R-hat of {site!r} {value}: the chains disagree. {advice or 'Raise warmup and draws.'}"


def _sample_size_message(size: Mapping[str, float], chains: int, advice: str = "") -> str:
    """Warning text if the smallest effective sample size of the sites is below 100 per chain, else "".

    The estimate is a number of draws over a sum of autocorrelations, which noise can make negative where draws are few
    or chains disagree: the effective sample size then cannot be estimated.
    """
    site, least = min(size, key=lambda site: np.nan_to_num(size[site], nan=-np.inf)), _LEAST_ESS * chains
    if size[site] >= least:
        return ""
    if not size[site] >= 1:
        problem, more = "cannot be estimated: the draws are too few", "Raise warmup and draws."
    else:
        problem, more = f"is {size[site]:.0f}, below {least}: intervals are unreliable", "Raise draws."
    return f"the effective sample size of {site!r} {problem}. {advice or more}"
