"""Independent draws of the parameters from the exact posterior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import jax
import numpy as np

from bayesnb._util.arguments import require_integer, require_seed
from bayesnb._util.precision import float64
from bayesnb.capabilities import require_capability
from bayesnb.encoding import Encoding
from bayesnb.families.protocol import Restrictable
from bayesnb.families.variates import Variates
from bayesnb.fitted import Classifier, Fitted, require_posterior
from bayesnb.model import NaiveBayes
from bayesnb.uncertainty.numpy_variates import ShapeRecorder, ask, run
from bayesnb.uncertainty.proper import require_proper

_MOST_CELLS = 2**18
CLASS_PROB = "class_prob"


class ParameterDraws(dict[str, np.ndarray]):
    """Draws by site; `attrs` says of what posterior, as those of an xarray dataset do.

    `dict(draws)` are the same draws of an unknown origin.
    """

    def __init__(self, values: Mapping[str, np.ndarray], attrs: Mapping[str, str]) -> None:
        super().__init__(values)
        self._attrs, self._drawn = dict(attrs), tuple(values.items())
        if attrs:
            for drawn in values.values():
                drawn.flags.writeable = False  # or they would still claim to be that posterior's

    @property
    def attrs(self) -> dict[str, str]:
        """Empty where a site was assigned to since: what was put there is nobody's posterior."""
        return self._attrs if all(self.get(site, values) is values for site, values in self._drawn) else {}


# A pytree as any dict is; what is made of the draws is of no known origin.
jax.tree_util.register_pytree_with_keys(
    ParameterDraws,
    lambda draws: ([(jax.tree_util.DictKey(site), draws[site]) for site in sorted(draws)], tuple(sorted(draws))),
    lambda sites, values: ParameterDraws(dict(zip(sites, values, strict=True)), {}),
)


def origin(fitted: Fitted, hyperprior: str = "none") -> dict[str, str]:
    """Of which posterior draws are: its hyperprior, and a fingerprint of prior and statistics."""
    digest = blake2b(digest_size=16)
    for leaf in jax.tree.leaves((fitted.prior, fitted.statistics)):
        digest.update(np.asarray(leaf, np.float64).tobytes())
    return {"hyperprior": hyperprior, "posterior_of": digest.hexdigest()}


def posterior_draws(
    nb: Classifier, draws: int = 1000, seed: int = 0, features: Iterable[Any] | None = None
) -> dict[str, np.ndarray]:
    """Independent draws of all parameters from the exact posterior.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    draws : int
        Number of draws, S.
    seed : int
        The same seed gives the same draws.
    features : iterable of column names or indices, optional
        Draw the parameters of these features only; of a multinomial the probabilities of these words.

    Returns
    -------
    dict of arrays, float64
        "class_prob" (S, C), and the parameters of each block of features, (S, C, K): "theta" for levels and
        words, "mu" and "sigma2" for Gaussian, "rate" for Poisson features, a name that two blocks of a MixedNB
        share with the kind behind it, such as "theta_categorical". Axis K is that of the statistics: levels of
        a feature in the order of `categories_`, (absent, present) for Bernoulli features, else features.

    Raises
    ------
    ImproperPosteriorError
        If a zero concentration met a zero count.
    ValueError
        If `draws` is not positive, `seed` is negative, or `features` names a column that there is not.

    Notes
    -----
    Probabilities are normalised gamma variates, computed in log space. Beyond the result the draws need
    memory for a few of them only.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, posterior_draws
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> posterior_draws(nb, draws=100)["theta"].shape
    (100, 2, 2)
    """
    require_integer("draws", draws)
    require_seed(seed)
    return draws_of(require_posterior(nb, "posterior_draws"), int(draws), seed, features)


def draws_of(fitted: Fitted, draws: int, seed: int, features: Iterable[Any] | None = None) -> ParameterDraws:
    """As `posterior_draws`."""
    require_proper(fitted.encoding, fitted.posterior)
    return ParameterDraws(draw_parameters(fitted.encoding, fitted.posterior, draws, seed, features), origin(fitted))


def draw_parameters(
    encoding: Encoding, model: NaiveBayes, draws: int, seed: int, features: Iterable[Any] | None = None
) -> dict[str, np.ndarray]:
    """As `posterior_draws`, from any proper distribution over the parameters."""
    rngs = _generators(model, seed)
    found = {CLASS_PROB: _draw(model.class_prior, draws, rngs[0])["theta"][:, 0]}
    blocks = zip(model.blocks, site_names(encoding, model), kept(encoding, features), rngs[1:], strict=True)
    for family, names, keep, rng in blocks:
        if keep.any():
            drawn = _draw(_restricted(family, keep), draws, rng)
            found |= {names[parameter]: values[..., : keep.sum()] for parameter, values in drawn.items()}
    return found


def draw_stacked(
    models: NaiveBayes, sites: Sequence[Mapping[str, str]], masks: Sequence[np.ndarray], seed: int | Sequence[int]
) -> dict[str, np.ndarray]:
    """One draw from each of S distributions over the parameters; the arrays of `models` have a leading axis.

    They are drawn as one model with S times as many classes.
    """
    rngs, n_draws = _generators(models, seed), jax.tree.leaves(models)[0].shape[0]
    found = {CLASS_PROB: _draw(as_classes(models.class_prior), 1, rngs[0])["theta"][0]}
    for family, names, keep, rng in zip(models.blocks, sites, masks, rngs[1:], strict=True):
        if keep.any():
            drawn = _draw(_restricted(as_classes(family), keep), 1, rng)
            parts = {names[parameter]: values[..., : keep.sum()] for parameter, values in drawn.items()}
            found |= {site: values.reshape(n_draws, -1, keep.sum()) for site, values in parts.items()}
    return found


def as_classes(families: Any) -> Any:
    """S families, the arrays with a leading axis, as one over S times as many classes."""
    # Fields of the parameters are (S, C, K); what the classes share, such as `group`, is (S, …).
    return jax.tree.map(lambda v: v.reshape(-1, v.shape[-1]) if v.ndim == 3 else v[0], families)


def kept(encoding: Encoding, features: Iterable[Any] | None) -> list[np.ndarray]:
    """For each block which positions of the last axis belong to some columns of X; None: all."""
    columns = [np.asarray(block.index)[block.axis()[0]] for block in encoding.blocks]
    if features is None:
        return [np.ones(len(of), bool) for of in columns]
    chosen = list(encoding.positions(features))
    return [np.isin(of, chosen) for of in columns]


def _generators(model: NaiveBayes, seed: int | Sequence[int]) -> list[np.random.Generator]:
    """For the classes and each block."""
    return [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(1 + len(model.blocks))]


def site_names(encoding: Encoding, model: NaiveBayes) -> list[dict[str, str]]:
    """For each block the names of its parameters: with the kind of column behind where two blocks share one."""
    own = [list(drawn_like(family)[1]) for family in model.blocks]
    every = [name for names in own for name in names]
    return [
        {name: name if every.count(name) == 1 else f"{name}_{columns.kind}" for name in names}
        for columns, names in zip(encoding.blocks, own, strict=True)
    ]


def drawn_like(family: Any) -> tuple[type, dict[str, tuple[int, ...]]]:
    """The type of a draw of the family, and the shape (C, K) of each of its parameters."""

    def one(family: Any) -> Any:
        drawn = family.draw(ShapeRecorder(), 1)
        return drawn, drawn.parameters()

    drawn, parameters = jax.eval_shape(one, family)
    return type(drawn), {name: values.shape[1:] for name, values in parameters.items()}


def _restricted(family: Any, keep: np.ndarray) -> Any:
    return family if keep.all() else require_capability(family, Restrictable).restrict(keep)


def _draw(family: Any, draws: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """(S, C, K) draws of each parameter, some at a time, written to where they are to stay."""
    chunk = int(min(draws, max(1, _MOST_CELLS // np.size(jax.tree.leaves(family)[0]))))
    out: dict[str, np.ndarray] = {}
    for start in range(0, draws, chunk):
        part = _sample(family, rng, chunk)
        for name, values in part.items():
            if name not in out:
                out[name] = np.empty((draws, *values.shape[1:]))
            out[name][start : start + chunk] = values[: draws - start]
    return out


@float64
def _sample(family: Any, rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    return run(_parameters, ask(_parameters, family), n, rng, family)


def _parameters(variates: Variates, n: int, family: Any) -> dict[str, jax.Array]:
    return family.draw(variates, n).parameters()
