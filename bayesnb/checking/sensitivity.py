"""Does the prior decide: the same counts read under weaker and stronger priors."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb._util.arguments import require_integer, shown
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding, Rows, blocks
from bayesnb.fitted import Classifier, Fitted, require_posterior
from bayesnb.model import Estimate, NaiveBayes, Statistics, log_normalize, undefined
from bayesnb.scoring import pad, pad_statistics

if TYPE_CHECKING:
    import pandas as pd


def prior_sensitivity(
    nb: Classifier, X: Any, alpha: tuple[float, float] = (0.1, 10), *, steps: int = 21
) -> pd.DataFrame:
    """How P(class | row) and labels move as the prior becomes weaker or stronger.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    X : array-like, sparse matrix or DataFrame of shape (N, F)
    alpha : (float, float)
        Interval of the strength. Of a Dirichlet with a scalar `alpha` the strength is `alpha`; of any other prior
        it is a factor on the rows that it counts for, 1 at the prior of `nb`: on the concentrations of a Dirichlet,
        on κ, a and b of a normal-inverse-gamma, on a and b of a gamma. All blocks of a MixedNB move together.
    steps : int
        Strengths to look at, evenly spaced in log; that of `nb` is looked at too if it is in the interval.

    Returns
    -------
    DataFrame
        One row a row of X.

        prediction
            the label under the prior of `nb`
        probability
            P(prediction | row) under the prior of `nb`, by its own estimate; "predictive" in place of "mle",
            which has no prior.
        lower, upper
            least and greatest P(prediction | row) over the interval; NaN if undefined for some strength.
        label_changes
            whether another class is the most probable one for some strength.
        d_logit_d_log_alpha
            derivative of logit P(prediction | row) by the log of the strength at the prior of `nb`;
            NaN where the logit is not finite.

    Raises
    ------
    ValueError
        If `alpha` is not 0 < lower < upper or `steps` is less than two.

    Notes
    -----
    The prior of the classes stays. Rows are never counted again: a prior of another strength is updated with the same
    statistics. This says what the choice of the prior's strength leaves open, not that some strength is right.

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> from bayesnb.checking import prior_sensitivity
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> prior_sensitivity(nb, [["sun"]])[["prediction", "probability", "lower", "upper"]].round(2)
      prediction  probability  lower  upper
    0        out         0.77   0.63   0.94
    """
    fitted = require_posterior(nb, "prior_sensitivity")
    low, high = _interval(alpha)
    require_integer("steps", steps, least=2)
    unit, own = _strength(nb, fitted)
    grid = np.repeat(np.geomspace(low, high, steps)[:, None], len(own), axis=1)
    # Else the first again, so that there are always as many.
    inside = ((low <= own) & (own <= high)).all()
    grid = np.vstack([grid, own if inside else grid[0]])
    rows, n_rows = fitted.encode(X)
    estimate: Estimate = "predictive" if fitted.estimate == "mle" else fitted.estimate
    rows = rows if estimate == "predictive" else tuple(r.plain() for r in rows)
    found = _score(fitted.encoding, unit, fitted.statistics, rows, n_rows, own, grid, estimate)
    return _frame(fitted, found)


def _interval(alpha: Any) -> tuple[float, float]:
    try:
        low, high = (float(a) for a in alpha)
    except (TypeError, ValueError, OverflowError):
        low, high = np.nan, np.nan
    if not 0 < low < high < np.inf:
        raise ValueError(f"alpha={shown(alpha)} must be two numbers, 0 < lower < upper, such as (0.1, 10).")
    return low, high


def _strength(nb: Classifier, fitted: Fitted) -> tuple[NaiveBayes, np.ndarray]:
    """The prior of strength 1, and for each block the strength that makes it that of `nb.prior_`."""
    prior = fitted.prior
    alpha: Any = getattr(nb, "alpha", None)
    scalar = isinstance(alpha, Real) or getattr(alpha, "shape", None) == ()
    if not scalar or isinstance(getattr(nb, "prior", None), NaiveBayes):
        return prior, np.ones(len(prior.blocks))
    # A scalar `alpha` is what concentrations are, or are a share of, and so is the strength.
    unit: Any = copy(nb)
    unit.alpha = 1.0
    levels = ["alpha" in block.tunable for block in prior.blocks]
    return unit.fitted_.prior, np.where(levels, float(alpha), 1.0)


@float64
def _score(
    encoding: Encoding,
    unit: NaiveBayes,
    statistics: Statistics,
    rows: tuple[Rows, ...],
    n: int,
    own: np.ndarray,
    grid: np.ndarray,
    estimate: Estimate,
) -> dict[str, np.ndarray]:
    """What the kernel says, of all rows."""
    unit, statistics = pad(encoding, unit), pad_statistics(encoding, statistics)
    parts = []
    for piece, x, _ in blocks(rows, n):
        scored = _explore(unit, statistics, x, own, grid, estimate)
        parts.append({name: np.asarray(values)[: piece.stop - piece.start] for name, values in scored.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


# Least and greatest probability, and whether the label changes.
_Range = tuple[jax.Array, jax.Array, jax.Array]


@jax.jit(static_argnames="estimate")
def _explore(
    unit: NaiveBayes, statistics: Statistics, x: tuple[Any, ...], own: jax.Array, grid: jax.Array, estimate: Estimate
) -> dict[str, jax.Array]:
    """Of each row: the class and its probability at `own`, the range over `grid`, both a strength for each block."""

    def joint(strength: jax.Array) -> jax.Array:
        return _scaled(unit, strength).update(statistics).read(estimate).prepare(x).log_joint(x)

    here, slope = jax.jvp(lambda shift: joint(own * jnp.exp(shift)), (jnp.zeros(()),), (jnp.ones(()),))
    choice = jnp.argmax(here, axis=1)

    def of_choice(values: jax.Array) -> jax.Array:
        return jnp.take_along_axis(values, choice[:, None], axis=1)[:, 0]

    def step(carry: _Range, strength: jax.Array) -> tuple[_Range, None]:
        lower, upper, changes = carry
        there = joint(strength)
        probability = of_choice(jnp.exp(log_normalize(there)))
        other = ~undefined(there) & (jnp.argmax(there, axis=1) != choice)
        return (jnp.minimum(lower, probability), jnp.maximum(upper, probability), changes | other), None

    probability = of_choice(jnp.exp(log_normalize(here)))
    # Filled from an array with rows, so that all have one type.
    start = (jnp.full_like(probability, jnp.inf), jnp.full_like(probability, -jnp.inf), jnp.zeros_like(choice, bool))
    (lower, upper, changes), _ = jax.lax.scan(step, start, grid)
    chosen = jnp.arange(here.shape[1]) == choice[:, None]
    others = jnp.where(chosen, -jnp.inf, here)
    weight = jax.nn.softmax(others, axis=1)
    mean_slope = jnp.sum(jnp.where(weight > 0, weight * slope, 0.0), axis=1)
    finite = jnp.isfinite(of_choice(here)) & jnp.any(jnp.isfinite(others), axis=1)
    return {
        "choice": jnp.where(undefined(here), -1, choice),
        "probability": probability,
        "lower": lower,
        "upper": upper,
        "label_changes": changes & ~undefined(here),
        "d_logit_d_log_alpha": jnp.where(finite, of_choice(slope) - mean_slope, jnp.nan),
    }


def _scaled(unit: NaiveBayes, strength: jax.Array) -> NaiveBayes:
    """Each block counts for as many times the rows as its entry of `strength` says."""
    return replace(unit, blocks=tuple(block.scale(by) for block, by in zip(unit.blocks, strength, strict=True)))


def _frame(fitted: Fitted, found: dict[str, np.ndarray]) -> pd.DataFrame:
    import pandas as pd

    choice = found.pop("choice")
    # As `predict` has it.
    choice = np.where(choice < 0, int(np.argmax(fitted.class_log_prior)), choice)
    # A pytree comes back in alphabetical order.
    names = ("probability", "lower", "upper", "label_changes", "d_logit_d_log_alpha")
    return pd.DataFrame(
        {"prediction": fitted.encoding.classes.array()[choice], **{name: found[name] for name in names}}
    )
