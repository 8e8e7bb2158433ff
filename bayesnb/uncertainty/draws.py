"""Independent draws of the parameters from the exact posterior, which has to be proper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb._util.arguments import Seed, bad_argument, read_seed, require_integer
from bayesnb._util.arrays import require_draws
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding
from bayesnb.families import offers
from bayesnb.families.arrays import Array, Tree, kernel
from bayesnb.families.protocol import Expression, Prior
from bayesnb.fitted.scoring import plug_in
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes
from bayesnb.uncertainty.row_variates import DRAWS_AT_ONCE, TrainingData, TrainingRows, sum_rows_of_draws
from bayesnb.uncertainty.variates import HostVariates, ShapeRecorder

CLASS = "(class)"
CLASS_PROB = "class_prob"
ROWS = "rows"
"""Attribute `hyperprior` of draws that vary together as training rows do."""
_MOST_CELLS = 2**18
_MOST_DRAWS_AT_ONCE, _MOST_CELLS_OF_ROWS = 2**8, 2**22


# -- propriety -----------------------------------------------------------------------------------


class ImproperPosteriorError(ValueError):
    """Raised if a posterior cannot be normalised, so that it has no draws and no intervals.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> nb = bnb.CategoricalNB(alpha=0).fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> bnb.posterior_draws(nb)
    Traceback (most recent call last):
        ...
    bayesnb.uncertainty.draws.ImproperPosteriorError: The posterior of class 'in', feature '0', 'sun' is improper ...
    """


def require_proper(encoding: Encoding, model: NaiveBayes) -> None:
    """Raise an error unless the distribution `model` over the parameters is proper and its families can be drawn from.

    Raises
    ------
    ImproperPosteriorError
        If a zero concentration met a zero count; the message names the first class and feature where that is so.
    NotImplementedError
        If a family has a reason why its parameters are not drawn.
    """
    require_drawable(model)
    families = model.class_prior, *model.blocks
    improper = [~np.asarray(float64(family.proper)()) for family in families]
    total = sum(int(cells.sum()) for cells in improper)
    if not total:
        return
    b = next(b for b, cells in enumerate(improper) if cells.any())
    # In an improper group of levels the posterior mean tells which levels have the zero concentration.
    culprit = improper[b] & ~(next(iter(plug_in(families[b]).parameters().values())) > 0)
    c, k = (int(i[0]) for i in np.nonzero(culprit if culprit.any() else improper[b]))
    if b == 0:
        label, feature, level = encoding.classes.values[k], CLASS, encoding.classes.values[k]
    else:
        columns = encoding.blocks[b - 1]
        feature_index, levels = columns.axis()
        label, feature = encoding.classes.values[c], columns.names[int(feature_index[k])]
        level = next(iter(model.blocks[b - 1].variance())) if levels is None else levels[k]
    raise ImproperPosteriorError(
        f"The posterior of class {label!r}, feature {feature!r}, {level!r} is improper (the first of {total} such "
        "parameters) and has no draws and no interval. A concentration of its prior is zero, and the data are too few "
        "to make up for it. Choose a proper prior, with positive numbers in place of the zero."
    )


def require_drawable(model: NaiveBayes) -> None:
    """Raise NotImplementedError if a family of the distribution has a reason why its parameters are not drawn."""
    for family in model.blocks:
        if (reason := family.draws_refusal()) is not None:
            raise NotImplementedError(f"posterior draws: {reason}")


# -- draws of parameters -------------------------------------------------------------------------


class ParameterDraws(dict[str, np.ndarray]):
    """Draws by site, with `attrs` that identify their posterior, as an xarray dataset has them.

    `dict(draws)` has the same draws without `attrs`.
    """

    def __init__(self, values: Mapping[str, np.ndarray], attrs: Mapping[str, str]) -> None:
        super().__init__(values)
        self._attrs, self._drawn = dict(attrs), tuple(values.items())
        if attrs:
            for drawn in values.values():
                drawn.flags.writeable = False  # Changed values would still claim to come from this posterior.

    @property
    def attrs(self) -> dict[str, str]:
        """Identification of the posterior; empty once a site was assigned to, as its new values come from elsewhere."""
        return self._attrs if all(self.get(site, values) is values for site, values in self._drawn) else {}


# A pytree, as every dict is; the values that a function of the draws returns have no `attrs`.
jax.tree_util.register_pytree_with_keys(
    ParameterDraws,
    lambda draws: ([(jax.tree_util.DictKey(site), draws[site]) for site in sorted(draws)], tuple(sorted(draws))),
    lambda sites, values: ParameterDraws(dict(zip(sites, values, strict=True)), {}),
)


def origin(fitted: Fitted, hyperprior: str = "none") -> dict[str, str]:
    """Return attributes of draws that identify their posterior: the hyperprior, and a hash of prior and statistics."""
    digest = blake2b(digest_size=16)
    for leaf in jax.tree.leaves((fitted.prior, fitted.statistics)):
        digest.update(np.asarray(leaf, np.float64).tobytes())
    return {"hyperprior": hyperprior, "posterior_of": digest.hexdigest()}


def posterior_draws(
    nb: Classifier,
    draws: int = 1000,
    seed: Seed = 0,
    features: Iterable[object] | None = None,
    *,
    X: object = None,
    y: object = None,
    sample_weight: object = None,
    groups: object = None,
) -> dict[str, np.ndarray]:
    """Independent draws of all parameters from the exact posterior, or draws that vary together as the rows do.

    Under naive Bayes, parameters of different columns are independent given the rows. In data whose columns depend on
    each other they are not: columns that repeat each other have the same errors. With the training rows, X and y, each
    row has one variate that all columns share. Each probability of a level keeps its exact posterior, and the draws of
    columns vary together as the rows do, so that intervals made of the draws hold where naive Bayes does not.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose parameters are drawn.
    draws : int
        Number of draws, S.
    seed : int, JAX key, RandomState or Generator
        The same seed gives the same draws.
    features : iterable of column names or indices, optional
        Draw the parameters of these features only; for multinomial features, the probabilities of these words.
    X, y, sample_weight : array-likes, optional
        Rows that `nb` has counted, all of them, with their labels and weights. Default: parameters of different columns
        are independent.
    groups : array-like of shape (N,), optional
        Group of each row, such as a patient, a document or a day: rows of a group vary together. Default: rows are
        independent.

    Returns
    -------
    dict of arrays, float64
        "class_prob" (S, C), and the parameters of each block of features, (S, C, K): "theta" for levels and words, "mu"
        and "sigma2" for Gaussian, "rate" for Poisson features. If two blocks of a MixedNB have a parameter of the same
        name, the kind is appended, such as "theta_categorical", and a number from the second block of a kind on, such
        as "theta_categorical_2" for margins of a structure. Axis K is that of the statistics: levels of a feature
        in the order of `categories_`, (absent, present) for Bernoulli features, otherwise features.

    Raises
    ------
    ImproperPosteriorError
        If a level with concentration 0 has no count.
    ValueError
        If `draws` is not positive, `seed` is negative, or `features` names a column that X does not have; if the draws
        would take more than 4.3 GB; if X and y are not the rows that `nb` has counted, or `groups` does not fit them.

    Notes
    -----
    Probabilities are normalised gamma variates, computed in log space. Besides the result, only memory for a few draws
    is needed.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, posterior_draws
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> posterior_draws(nb, draws=100)["theta"].shape
    (100, 2, 2)

    Two columns that are copies: with the rows their draws are nearly the same, without they are independent.

    >>> X, y = [["sun", "dry"], ["rain", "wet"]] * 50, ["out", "out", "in", "in"] * 25
    >>> nb = CategoricalNB().fit(X, y)
    >>> for rows in ({}, {"X": X, "y": y}):
    ...     theta = posterior_draws(nb, **rows)["theta"][:, 0]
    ...     print(np.corrcoef(theta[:, 0], theta[:, 3])[0, 1].round(1))  # rain, and wet
    -0.0
    1.0
    """
    require_integer("draws", draws)
    seed = read_seed(seed)
    fitted = require_posterior(nb, "posterior_draws")
    if X is None:
        for name, given in (("y", y), ("sample_weight", sample_weight), ("groups", groups)):
            if given is not None:
                raise ValueError(f"posterior_draws: {name} is given, but X is not. Pass the rows of `fit` as X and y.")
        return draw_posterior(fitted, int(draws), seed, features)
    training = TrainingRows.read(fitted, X, y, sample_weight, groups, "posterior_draws")
    return draw_with_rows(fitted, training, int(draws), seed, features)


def draw_posterior(fitted: Fitted, draws: int, seed: int, features: Iterable[object] | None = None) -> ParameterDraws:
    """Draw the parameters of a fitted classifier from its posterior; return {site: (S, C, K)}, S = `draws`.

    The site "class_prob" is (S, C). `features`, names or indices of columns, limits the draws to these; None: all.
    """
    require_proper(fitted.encoding, fitted.posterior)
    return ParameterDraws(draw_parameters(fitted.encoding, fitted.posterior, draws, seed, features), origin(fitted))


def draw_parameters(
    encoding: Encoding, model: NaiveBayes, draws: int, seed: int, features: Iterable[object] | None = None
) -> dict[str, np.ndarray]:
    """Draw the parameters from any proper distribution over them, a prior or a posterior.

    The result is {site: (S, C, K)} for the parameters of each block, and "class_prob" (S, C), S = `draws`. `features`,
    names or indices of columns, limits the draws to these; None: all.
    """
    masks = feature_masks(encoding, features)
    require_room(model, masks, draws)
    return draw_sites(model, site_names(encoding, model), masks, draws, seed)


def stack_as_classes(family: Tree, distributions: Tree, leading: tuple[int, ...]) -> Tree:
    """Return M distributions as one with M · C classes, those of one after the other.

    Parameters
    ----------
    family
        One of the distributions, with arrays (C, K), and with fields that classes share, such as `group`.
    distributions
        Distributions of this type, whose arrays (…, C, K) broadcast to the leading axes.
    leading : tuple of int
        Leading axes, whose product is M.
    """

    def stack(own: Array, values: Array) -> Array:
        """Array of all classes; a field that classes share is that of `family`."""
        if np.ndim(own) < 2:
            return own
        n_classes, *sizes = np.shape(own)
        return np.broadcast_to(values, (*leading, n_classes, *sizes)).reshape(math.prod(leading) * n_classes, *sizes)

    return jax.tree.map(stack, family, distributions)


def feature_masks(encoding: Encoding, features: Iterable[object] | None) -> list[np.ndarray]:
    """Return for each block a mask (K,) of the positions on the last axis that belong to `features`; None: all do."""
    columns = [np.asarray(block.index)[block.axis()[0]] for block in encoding.blocks]
    if features is None:
        return [np.ones(len(index), bool) for index in columns]
    chosen = list(encoding.positions(features))
    return [np.isin(index, chosen) for index in columns]


def site_names(encoding: Encoding, model: NaiveBayes) -> list[dict[str, str]]:
    """Return for each block {parameter: site}, see `distinct_names`."""
    return distinct_names(encoding, [parameter_shapes(family) for family in model.blocks])


def distinct_names(encoding: Encoding, names: Sequence[Iterable[str]]) -> list[dict[str, str]]:
    """Return for each block {name: distinct name}: a name that several blocks have is followed by the kind of column.

    From the second block of a kind on, as of structures with margins, a number follows too: "theta_categorical_2".
    """
    every, kinds = [name for block in names for name in block], [columns.kind for columns in encoding.blocks]
    numbers = [kinds[: b + 1].count(kind) for b, kind in enumerate(kinds)]
    endings = [f"_{kind}" if n == 1 else f"_{kind}_{n}" for kind, n in zip(kinds, numbers, strict=True)]
    return [
        {name: name if every.count(name) == 1 else name + ending for name in block}
        for block, ending in zip(names, endings, strict=True)
    ]


@float64
def parameter_shapes(family: Prior) -> dict[str, tuple[int, ...]]:
    """Return the shape (C, K) of each parameter of a family, by name, without drawing."""
    parameters = jax.eval_shape(_draw_zeros, family)
    return {name: values.shape[1:] for name, values in parameters.items()}


@kernel
def _draw_zeros(family: Prior) -> dict[str, jax.Array]:
    """Return one draw of each parameter, from variates that are zeros."""
    return family.draw(ShapeRecorder(), 1).parameters()


def require_room(model: NaiveBayes, masks: Sequence[np.ndarray], draws: int) -> None:
    """Raise ValueError if draws of the parameters of each block at the positions of a mask (K,) are too many."""
    sizes = [np.size(jax.tree.leaves(model.class_prior)[0])]
    for family, mask in zip(model.blocks, masks, strict=True):
        sizes += [math.prod(shape) // len(mask) * int(mask.sum()) for shape in parameter_shapes(family).values()]
    advice = "Set fewer draws, or name some columns in features= of posterior_draws or run_nuts."
    require_draws(draws, sum(sizes), f"{sum(sizes):,} parameters", advice)


def draw_sites(
    model: NaiveBayes,
    sites: Sequence[Mapping[str, str]],
    masks: Sequence[np.ndarray],
    draws: int,
    seed: int | Sequence[int],
) -> dict[str, np.ndarray]:
    """Draw from a distribution over the parameters, or from each of M, whose class prior is (M, C).

    Then a block has M · C classes, or C if its distribution is the same in all. Returns {site: (S, C, K')} of the
    positions where the `masks` (K,) of the blocks are true, S = `draws` · M; `sites` are {parameter: site} of each
    block.
    """
    seeds = np.random.SeedSequence(seed).spawn(1 + len(model.blocks))
    class_rng, *rngs = (np.random.default_rng(s) for s in seeds)
    class_prob = _draw(model.class_prior, draws, class_rng)["theta"]
    drawn: dict[str, np.ndarray] = {CLASS_PROB: class_prob.reshape(-1, class_prob.shape[-1])}
    for family, names, mask, rng in zip(model.blocks, sites, masks, rngs, strict=True):
        if mask.any():
            restricted = offers(family, "restrict") and not mask.all()
            kept = slice(mask.sum()) if restricted or mask.all() else mask
            n = drawn[CLASS_PROB].size // len(jax.tree.leaves(family)[0])
            for parameter, values in _draw(family.restrict(mask) if restricted else family, n, rng).items():
                chosen = values[..., kept]
                drawn[names[parameter]] = chosen.reshape(len(drawn[CLASS_PROB]), -1, chosen.shape[-1])
    return drawn


@float64
def _draw(family: Prior, draws: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw each parameter of a family; return {name: (draws, C, K)}, made some draws at a time."""
    chunk = int(min(draws, max(1, _MOST_CELLS // max(map(np.size, jax.tree.leaves(family))))))
    variates, drawn = HostVariates(rng), dict[str, np.ndarray]()
    for start in range(0, draws, chunk):
        # The last chunk is as long as the others: what a family compiles for its draws is compiled once.
        with np.errstate(all="ignore"):
            values_of_chunk = family.draw(variates, chunk).parameters()
        for name, values in values_of_chunk.items():
            if name not in drawn:
                drawn[name] = np.empty((draws, *values.shape[1:]))
            drawn[name][start : start + chunk] = values[: draws - start]
    return drawn


# -- draws that vary together as training rows do ------------------------------------------------


def draw_by_rows(fitted: Fitted, draws: object, seed: int, rows: TrainingData | None, groups: object) -> ParameterDraws:
    """Draw the parameters so that they vary together as the rows of a fit do, see `posterior_draws`.

    Raises
    ------
    ValueError
        If `rows` is not a tuple (X, y) or (X, y, sample_weight) of the rows of the fit, or if `draws` is not a number.
    """
    n_draws = require_integer("draws", draws)
    return draw_with_rows(fitted, read_training_rows(fitted, rows, groups), n_draws, seed)


def read_training_rows(fitted: Fitted, rows: TrainingData | None, groups: object) -> TrainingRows:
    """Read the arguments `rows` and `groups` of analyses.

    Raises
    ------
    ValueError
        If `rows` is not a tuple (X, y) or (X, y, sample_weight) of the rows of the fit.
    """
    if rows is None:
        raise ValueError("groups is given, but rows is not. Pass the rows of fit as rows=(X, y).")
    if not isinstance(rows, tuple) or len(rows) not in (2, 3):
        raise bad_argument("rows", rows, "a tuple (X, y) or (X, y, sample_weight) of the rows of fit")
    X, y, *weight = rows
    return TrainingRows.read(fitted, X, y, weight[0] if weight else None, groups, "rows")


def draw_with_rows(
    fitted: Fitted, training: TrainingRows, draws: int, seed: int, features: Iterable[object] | None = None
) -> ParameterDraws:
    """Draw the parameters so that they vary together as the training rows do; return {site: (S, C, K)}, S = `draws`.

    `features`, names or indices of columns, limits the draws to these; None: all.
    """
    encoding, posterior = fitted.encoding, fitted.posterior
    require_proper(encoding, posterior)
    masks = [np.ones(1, bool), *feature_masks(encoding, features)]
    require_room(posterior, masks[1:], draws)
    names = [{"theta": CLASS_PROB}, *site_names(encoding, posterior)]
    families = (posterior.class_prior, *posterior.blocks)
    drawn_blocks = [b for b, mask in enumerate(masks) if mask.any()]
    rngs = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(len(families))]
    widest = max(np.size(leaf) for leaf in jax.tree.leaves(families))
    size = DRAWS_AT_ONCE * max(1, min(_MOST_DRAWS_AT_ONCE, _MOST_CELLS_OF_ROWS // widest) // DRAWS_AT_ONCE)
    drawn = dict[str, np.ndarray]()
    for start in range(0, draws, size):
        part = slice(start, min(start + size, draws))
        for b, variates in sum_rows_of_draws(fitted, training, seed, part, rngs, drawn_blocks).items():
            with np.errstate(all="ignore"):
                values_of_part = float64(families[b].draw)(variates, part.stop - part.start).parameters()
            for parameter, values in values_of_part.items():
                chosen = np.asarray(values)[:, 0] if b == 0 else np.asarray(values)[..., masks[b]]
                if (site := names[b][parameter]) not in drawn:
                    drawn[site] = np.empty((draws, *chosen.shape[1:]))
                drawn[site][part] = chosen
    return ParameterDraws(drawn, origin(fitted, ROWS))


# -- densities of draws ---------------------------------------------------------------------------


def evaluate(expression: Expression, sampled: Mapping[str, Array] | None = None) -> Any:
    """NumPyro distribution that an expression of a family stands for, given values of parameters sampled before.

    A name that a field of the family and a parameter have in common, as the rate of Gamma(a, b), is that of the field.
    """
    from numpyro import distributions as dist

    names = {**(sampled or {}), **expression.arguments}
    return eval(f"dist.{expression.text}", {"dist": dist, "jnp": jnp}, names)


@float64
def log_prior_density(
    prior_of: Callable[[slice], NaiveBayes], sites: Sequence[Mapping[str, str]], drawn: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Log prior density of draws of the parameters, by site; empty if a family has no NumPyro program.

    Numbers have a density each, (S, C, F), and each simplex of at least two levels has one, (S, C, G); the class
    probabilities have one, (S,), unless they are known.

    Parameters
    ----------
    prior_of : function of a slice of the draws
        Prior, in which a block has C classes, or as many for each of these draws, as `posteriors_given` returns.
    sites : sequence of dict
        For each block the site of each parameter.
    drawn : dict of (S, C, K) arrays
        Draws of the parameters by site.
    """

    def of_part(part: slice) -> dict[str, np.ndarray]:
        """Densities of some of the draws."""
        prior, densities = prior_of(part), dict[str, np.ndarray]()
        if not all(offers(family, "program") for family in prior.blocks):
            return {}
        classes = [] if prior.class_prior.fixed else [(prior.class_prior, {"theta": CLASS_PROB})]
        for family, names in (*classes, *zip(prior.blocks, sites, strict=True)):
            given = {name: drawn[site][part] for name, site in names.items()}
            n_classes = len(jax.tree.leaves(family)[0])
            values = family.to_sites({name: v.reshape(-1, n_classes, v.shape[-1]) for name, v in given.items()})
            place = family.to_sites({name: np.arange(v.shape[-1]) for name, v in given.items()})
            for name, v in given.items():
                every = {s.parameter + s.suffix: s.distribution for s in family.program() if s.parameter == name}
                if every:
                    density = [evaluate(each, values).log_prob(values[key]) for key, each in every.items()]
                    order = np.argsort(np.concatenate([place[key].reshape(len(place[key]), -1)[:, 0] for key in every]))
                    shape = v.shape[:1] if v.ndim == 2 else (*v.shape[:2], -1)
                    densities[names[name]] = np.concatenate(density, axis=-1)[..., order].reshape(shape)
        return densities

    step = max(1, _MOST_CELLS // sum(values[0].size for values in drawn.values()))
    parts = [of_part(slice(start, start + step)) for start in range(0, len(drawn[CLASS_PROB]), step)]
    return {site: np.concatenate([part[site] for part in parts]) for site in parts[0]}
