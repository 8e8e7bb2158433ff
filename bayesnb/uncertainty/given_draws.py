"""What draws of the parameters say of rows, whoever drew them: exact sampling, NUTS, or another program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb.arguments import to_numbers
from bayesnb.encoding import Encoding, blocks
from bayesnb.families import Likelihood
from bayesnb.families.dirichlet import Multinomial
from bayesnb.model import NaiveBayes, Reading, log_normalize
from bayesnb.precision import float64
from bayesnb.uncertainty.draws import CLASS_PROB, drawn_like, site_names

Draws = Mapping[str, np.ndarray]

_CELLS = 2**21


def read_draws(nb: Any, draws: Any) -> dict[str, np.ndarray]:
    """Draws of the parameters of `nb`, (S, …) each, as `posterior_draws` has them.

    Parameters
    ----------
    draws : what `posterior_draws`, `to_arviz` or `run_nuts` returns
        Of ArviZ objects the posterior, with chains one after the other.

    Raises
    ------
    ValueError
        If a parameter is missing, or has not one value a class and level of `nb`.
    """
    if not isinstance(draws, dict):
        try:
            posterior = draws["posterior"]
        except (TypeError, KeyError, AttributeError, IndexError):
            raise ValueError(
                f"draws must be what posterior_draws, to_arviz or run_nuts returns, and is a {type(draws).__name__}."
            ) from None
        draws = {site: posterior[site].to_numpy() for site in posterior.data_vars}
        draws = {site: values.reshape(-1, *values.shape[2:]) for site, values in draws.items() if values.ndim >= 2}
    found = {}
    for site, shape in _shapes(nb.encoding_, nb.prior_).items():
        if site not in draws:
            raise ValueError(f"draws have no {site!r}; there are {list(draws)}. Are they of another model?")
        values = to_numbers(f"draws[{site!r}]", draws[site])
        if values.shape[1:] != shape or not len(values):
            raise ValueError(
                f"draws[{site!r}] has shape {values.shape}, where (draws, {', '.join(map(str, shape))}) is needed: "
                "one value a class and level of the fitted model. Are they of another model?"
            )
        found[site] = values
    return found


@dataclass(frozen=True, eq=False)
class DrawnSampler:
    """Draws of log P(class | row, θ) from given draws of θ | data; a `Sampler` as any other.

    For θ | data, row they are drawn again with weights p(row | θ), systematically.
    """

    drawn: Draws
    given: str

    @float64
    def map(self, nb: Any, X: Any, output: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Apply `output` to draws (S, n, C) and to log P(class | row) (n, C), block by block of rows."""
        found = []
        for joint in _joints(nb, X, self.drawn):
            log_proba, weight = np.asarray(log_normalize(joint)), np.asarray(jax.nn.logsumexp(joint, axis=2))
            average = np.asarray(log_normalize(jax.nn.logsumexp(joint, axis=0)))
            if self.given == "row":
                log_proba = np.take_along_axis(log_proba, _resampled(weight)[..., None], axis=0)
            found.append(output(log_proba, average))
        return np.concatenate(found)


@float64
def score_draws(nb: Any, X: Any, drawn: Draws, output: Callable[[jax.Array], jax.Array]) -> np.ndarray:
    """Apply `output` to log of the average (N, C) of p(class, row | θ), without what no class changes."""
    log_draws = np.log(len(drawn[CLASS_PROB]))
    return np.concatenate([output(jax.nn.logsumexp(j, axis=0) - log_draws) for j in _joints(nb, X, drawn)])


def likelihoods(
    encoding: Encoding, model: NaiveBayes, drawn: Draws, part: slice
) -> tuple[np.ndarray, tuple[Likelihood, ...]]:
    """Log class probabilities (S, C), and the likelihood of each block with a "class" for each of the S · C."""
    found = []
    for family, sites in zip(model.blocks, site_names(encoding, model), strict=True):
        values = {own: drawn[site][part] for own, site in sites.items()}
        flat = {own: v.reshape(-1, v.shape[-1]) for own, v in values.items()}
        kind, _ = drawn_like(family)
        found.append(Multinomial(_log(flat["theta"])) if kind is Multinomial else kind(**flat))
    return _log(drawn[CLASS_PROB][part]), tuple(found)


@jax.jit
def joint_of_draws(log_class: jax.Array, likelihoods: tuple[Any, ...], x: tuple[Any, ...]) -> jax.Array:
    """(S, N, C) log p(class, row | θ). Draws are scored as so many more classes."""
    joint = Reading(jnp.ravel(log_class), likelihoods).prepare(x).log_joint(x)
    return jnp.reshape(joint, (-1, *log_class.shape)).swapaxes(0, 1)


def _joints(nb: Any, X: Any, drawn: Draws) -> Iterator[jax.Array]:
    """(S, n, C) of each block of rows."""
    n_draws, n_classes = drawn[CLASS_PROB].shape
    rows, n = nb._encode(X)
    model = nb.prior_
    for piece, x, _ in blocks(tuple(r.plain() for r in rows), n, cells=n_draws * n_classes / 4):
        size = max(1, _CELLS // (1 + sum(np.size(values[0]) for values in drawn.values())))
        parts = []
        for start in range(0, n_draws, size):
            part = slice(start, min(start + size, n_draws))
            parts.append(joint_of_draws(*likelihoods(nb.encoding_, model, drawn, part), x))
        yield jnp.concatenate(parts)[:, : piece.stop - piece.start]


def _resampled(log_weight: np.ndarray) -> np.ndarray:
    """(S, N) indices of S draws, with probabilities in proportion to the weights of each row."""
    n_draws = len(log_weight)
    weight = np.exp(log_weight - log_weight.max(axis=0))
    below = np.cumsum(weight, axis=0) / weight.sum(axis=0)
    at = (np.arange(n_draws) + 0.5) / n_draws
    return np.stack([np.searchsorted(column, at) for column in below.T], axis=1).clip(0, n_draws - 1)


def _shapes(encoding: Encoding, model: NaiveBayes) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {CLASS_PROB: (len(encoding.classes),)}
    for family, sites in zip(model.blocks, site_names(encoding, model), strict=True):
        _, own = drawn_like(family)
        shapes |= {site: own[name] for name, site in sites.items()}
    return shapes


def _log(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)
