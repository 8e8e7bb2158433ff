"""What draws say of rows, whoever drew them: exact sampling, NUTS, or another program.

Of draws of this model's posterior its conjugacy is kept: given the hyperparameters θ is integrated out in closed form,
and these alone are averaged over. Draws of θ from elsewhere count by p(row | θ), of which there may be few that matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb._util.arguments import shown, to_numbers
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding
from bayesnb.families import Likelihood
from bayesnb.fitted import Fitted
from bayesnb.model import JointLikelihood, NaiveBayes, log_normalize
from bayesnb.uncertainty.by_blocks import PerBlock, over_blocks
from bayesnb.uncertainty.draws import CLASS_PROB, drawn_like, origin, site_names
from bayesnb.uncertainty.hyperparameters import Hyperparameters, hyperparameter_sites, shapes
from bayesnb.uncertainty.importance import (
    effective_size,
    joint_of_draws,
    log_proba,
    log_row,
    of_average,
    resampled,
    warn_of_collapse,
)
from bayesnb.uncertainty.probability_draws import Sampler

Draws = Mapping[str, np.ndarray]

_MOST_CELLS = 2**21


@dataclass(frozen=True, eq=False)
class Parameters:
    """Draws of θ, (S, …) each, as `posterior_draws` has them."""

    values: Draws

    def __len__(self) -> int:
        return len(self.values[CLASS_PROB])

    def known_classes(self, prob: np.ndarray) -> Self:
        """With the class probabilities (C,) in place of the drawn ones."""
        drawn = np.broadcast_to(prob, self.values[CLASS_PROB].shape)
        return replace(self, values={**self.values, CLASS_PROB: drawn})

    def joints(self, fitted: Fitted, x: tuple[Any, ...]) -> Iterator[jax.Array]:
        """(s, n, C) log p(class, row | θ), some draws at a time."""
        size = max(1, _MOST_CELLS // (1 + sum(np.size(values[0]) for values in self.values.values())))
        for start in range(0, len(self), size):
            part = slice(start, min(start + size, len(self)))
            yield joint_of_draws(read_as_classes(fitted.encoding, fitted.prior, self.values, part), x)


def read_draws(fitted: Fitted, draws: Any) -> Parameters | Hyperparameters:
    """The hyperparameters of draws of the posterior of `fitted`, and the parameters of all others.

    Parameters
    ----------
    draws : what `posterior_draws`, `to_arviz` or `run_nuts` returns
        Of ArviZ objects the posterior, with chains one after the other.

    Raises
    ------
    ValueError
        If what is needed is missing, or has not one value a class and level of `fitted`.
    """
    said = getattr(draws if isinstance(draws, dict) else _posterior(draws), "attrs", {})
    hyperprior = said.get("hyperprior")
    if hyperprior is None or any(said.get(name) != value for name, value in origin(fitted, hyperprior).items()):
        return read_parameters(fitted, draws)
    if hyperprior == "none":
        return Hyperparameters(fitted.prior, fitted.statistics, None, {})
    names = hyperparameter_sites(fitted.prior, hyperprior, site_names(fitted.encoding, fitted.prior))
    values = checked(sites_of(draws), shapes(fitted.prior, hyperprior, names))
    return Hyperparameters(fitted.prior, fitted.statistics, hyperprior, values)


def read_parameters(fitted: Fitted, draws: Any) -> Parameters:
    """The parameters of draws, wherever they come from; raises as `read_draws`."""
    return Parameters(checked(sites_of(draws), _shapes(fitted.encoding, fitted.prior)))


def sampler_of(fitted: Fitted, draws: Any, given: str, seed: int) -> Sampler | DrawnSampler:
    """Draws of log P(class | row, θ) from those of θ; given the row from those of the hyperparameters, if known."""
    found = read_draws(fitted, draws) if given == "row" else read_parameters(fitted, draws)
    if isinstance(found, Parameters):
        return DrawnSampler(found, given)
    if found.kind is None:
        return Sampler("draws", given, len(next(iter(sites_of(draws).values()))), seed)
    return Sampler("draws", given, 1, seed, found)


@dataclass(frozen=True, eq=False)
class DrawnSampler:
    """Draws of log P(class | row, θ) from given draws of θ | data; a `Sampler` as any other.

    For θ | data, row they are drawn again with weights p(row | θ), systematically.
    """

    drawn: Parameters
    given: str

    def map(self, fitted: Fitted, X: Any, output: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Apply `output` to draws (S, n, C) and to log P(class | row) (n, C), block by block of rows."""

        def of_joint(joint: jax.Array, log_weight: np.ndarray, real: slice) -> np.ndarray:
            drawn = np.asarray(log_proba(joint))
            if self.given == "row":
                drawn = np.take_along_axis(drawn, resampled(log_weight)[..., None], axis=0)
            return output(drawn[:, real], np.asarray(of_average(joint, log_normalize))[real])

        return _over_draws(fitted, X, self.drawn, of_joint, weighted=self.given == "row")


def score_draws(
    fitted: Fitted, X: Any, drawn: Parameters | Hyperparameters, output: Callable[[jax.Array], jax.Array]
) -> np.ndarray:
    """Apply `output` to log of the average (N, C) of p(class, row | draw), without what no class changes."""
    return _over_draws(
        fitted, X, drawn, lambda joint, _, real: np.asarray(of_average(joint, output))[real], weighted=True
    )


def _over_draws(
    fitted: Fitted,
    X: Any,
    drawn: Parameters | Hyperparameters,
    output: Callable[[jax.Array, np.ndarray, slice], np.ndarray],
    *,
    weighted: bool,
) -> np.ndarray:
    """(N, …) from log p(class, row | draw) (S, n, C), its weights (S, n) and which rows are real, block by block.

    Where the weights matter it warns of rows that rest on few draws.
    """
    sizes = []

    def answer(x: tuple[Any, ...], real: slice) -> np.ndarray:
        joint = jnp.concatenate(list(drawn.joints(fitted, x)))
        log_weight = np.asarray(log_row(joint))
        sizes.append(effective_size(log_weight)[real])
        return output(joint, log_weight, real)

    found = over_blocks(fitted, X, PerBlock(answer, len(drawn) * len(fitted.encoding.classes) / 4))
    if weighted:
        warn_of_collapse(np.concatenate(sizes), len(drawn))
    return found


@float64
def read_as_classes(encoding: Encoding, model: NaiveBayes, drawn: Draws, part: slice) -> JointLikelihood:
    """Log class probabilities (S, C), and the likelihood of each block with a "class" for each of the S · C."""
    found: list[Likelihood] = []
    for family, sites in zip(model.blocks, site_names(encoding, model), strict=True):
        values = {own: drawn[site][part] for own, site in sites.items()}
        flat = {own: v.reshape(-1, v.shape[-1]) for own, v in values.items()}
        found.append(family.likelihood.from_parameters(**flat))
    return model.weighted(_log(drawn[CLASS_PROB][part]), found)


def sites_of(draws: Any) -> dict[str, np.ndarray]:
    """The values of each site, (S, …), chains one after the other."""
    if isinstance(draws, dict):
        return draws
    posterior = _posterior(draws)
    values = {site: posterior[site].to_numpy() for site in posterior.data_vars}
    return {site: v.reshape(-1, *v.shape[2:]) for site, v in values.items() if v.ndim >= 2}


def _posterior(draws: Any) -> Any:
    try:
        return draws["posterior"]
    except (TypeError, KeyError, AttributeError, IndexError):
        raise ValueError(
            f"draws must be what posterior_draws, to_arviz or run_nuts returns, and is a {type(draws).__name__}."
        ) from None


def checked(draws: Draws, needed: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The sites that are needed, each of which has draws of that shape; raises as `read_draws`."""
    found = {}
    for site, shape in needed.items():
        if site not in draws:
            raise ValueError(f"draws have no {site!r}; there are {shown(list(draws))}. Are they of another model?")
        values = to_numbers(f"draws[{site!r}]", draws[site])
        if values.shape[1:] != shape or not len(values):
            expected = ", ".join(map(str, ("draws", *shape)))
            raise ValueError(
                f"draws[{site!r}] has shape {values.shape}, where ({expected}) is needed: "
                "one value for each that the fitted model has. Are they of another model, or of some features only?"
            )
        found[site] = values
    return found


def _shapes(encoding: Encoding, model: NaiveBayes) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {CLASS_PROB: (len(encoding.classes),)}
    for family, sites in zip(model.blocks, site_names(encoding, model), strict=True):
        _, own = drawn_like(family)
        shapes |= {site: own[name] for name, site in sites.items()}
    return shapes


def _log(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)
