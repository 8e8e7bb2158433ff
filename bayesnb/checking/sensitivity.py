"""Sensitivity of class probabilities to the strength of the prior."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from bayesnb._util.arguments import require_integer, require_interval
from bayesnb.families.arrays import kernel, map_leading_axis, xp
from bayesnb.fitted.scoring import map_rows, pad, pad_statistics
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import Estimate, NaiveBayes, Statistics, log_normalize, undefined


def prior_sensitivity(
    nb: Classifier, X: object, alpha: tuple[float, float] = (0.1, 10), *, steps: int = 21
) -> pd.DataFrame:
    """Range of P(class | row), and changes of labels, as the prior becomes weaker or stronger.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose prior is varied.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows to predict.
    alpha : (float, float)
        Interval of the strength. The strength of a Dirichlet with a scalar `alpha` is `alpha`; that of any other prior
        is a factor on its prior sample size, 1 for the prior of `nb`: on the concentrations of a Dirichlet, on κ, a and
        b of a normal-inverse-gamma, on a and b of a gamma. All blocks of a MixedNB change together.
    steps : int
        Number of strengths, evenly spaced in log; the strength of `nb` is added if it is in the interval.

    Returns
    -------
    DataFrame
        One row for each row of X.

        prediction
            label under the prior of `nb`
        probability
            P(prediction | row) under the prior of `nb`, by the estimate of `nb`; "predictive" in place of "mle",
            which has no prior.
        lower, upper
            least and greatest P(prediction | row) over the interval; NaN if undefined for some strength.
        label_changes
            whether another class is the most probable one for some strength.
        d_logit_d_log_alpha
            derivative of logit P(prediction | row) with respect to the log of the strength, at the prior of `nb`;
            NaN where the logit is not finite.

    Raises
    ------
    ValueError
        If `alpha` is not 0 < lower < upper or `steps` is less than two.

    Notes
    -----
    The prior of the classes is not changed. Rows are not counted again: a prior of another strength is updated with the
    same statistics. The table shows how far predictions depend on the strength of the prior, not which strength is
    right.

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
    low, high = require_interval("alpha", alpha, "(0.1, 10)")
    require_integer("steps", steps, least=2)
    unit, strength = _strength(nb, fitted)
    grid = np.repeat(np.geomspace(low, high, steps)[:, None], len(strength), axis=1)
    # A grid of constant length has one compilation: the first strength stands twice if that of `nb` is outside.
    inside = ((low <= strength) & (strength <= high)).all()
    grid = np.vstack([grid, strength if inside else grid[0]])
    rows, n_rows = fitted.encode(X)
    estimate: Estimate = "predictive" if fitted.estimate == "mle" else fitted.estimate
    rows = rows if estimate == "predictive" else tuple(r.linear_rows() for r in rows)
    unit, statistics = pad(fitted.encoding, unit), pad_statistics(fitted.encoding, fitted.statistics)
    # The strength is a JAX array, as JAX differentiates by it.
    at = jnp.asarray(strength)
    values = map_rows(rows, n_rows, lambda x: _vary_strength(unit, statistics, x, at, grid, estimate))
    names = ["prediction", "probability", "lower", "upper", "label_changes", "d_logit_d_log_alpha"]
    frame = pd.DataFrame(values, columns=names)
    # The label of a row without class probabilities is that of `predict`.
    choice = frame["prediction"].where(frame["prediction"] >= 0, np.argmax(fitted.class_log_prior)).astype(int)
    labels = fitted.encoding.classes.array()[choice]
    return frame.assign(prediction=labels, label_changes=frame["label_changes"].astype(bool))


def _strength(nb: Classifier, fitted: Fitted) -> tuple[NaiveBayes, np.ndarray]:
    """Return the prior for alpha=1, and the strength (B,) of each block: `alpha` if it is one number, else 1."""
    prior = fitted.prior
    alpha: Any = getattr(nb, "alpha", None)
    scalar = isinstance(alpha, Real) or getattr(alpha, "shape", None) == ()
    if not scalar or isinstance(getattr(nb, "prior", None), NaiveBayes):
        return prior, np.ones(len(prior.blocks))
    # Concentrations are a scalar `alpha`, or proportional to it, and so `alpha` is the strength.
    unit = nb.with_priors({"alpha": 1.0}).fitted_
    levels = ["alpha" in block.tunable for block in prior.blocks]
    return unit.prior, np.where(levels, float(alpha), 1.0)


@kernel(static_argnames="estimate")
def _vary_strength(
    unit: NaiveBayes, statistics: Statistics, x: Any, strength: jax.Array, grid: jax.Array, estimate: Estimate
) -> jax.Array:
    """Compute (N, 6): most probable class, its probability at `strength`, and the range over the strengths in `grid`.

    Strengths have one entry for each block. Then follow whether the label changes, and the slope of the logit by the
    log of the strength. The class is -1 where the probabilities are undefined.
    """

    def joint(strength: jax.Array) -> jax.Array:
        blocks = tuple(block.scale(by) for block, by in zip(unit.blocks, strength, strict=True))
        return replace(unit, blocks=blocks).update(statistics).read(estimate).prepare(x).log_joint(x)

    scores, slopes = jax.jvp(lambda shift: joint(strength * xp.exp(shift)), (xp.zeros(()),), (xp.ones(()),))
    choice = xp.argmax(scores, axis=1)

    def of_choice(values: jax.Array) -> jax.Array:
        return xp.take_along_axis(values, choice[:, None], axis=1)[:, 0]

    def explore(strength: jax.Array) -> tuple[jax.Array, jax.Array]:
        other_scores = joint(strength)
        changed = ~undefined(other_scores) & (xp.argmax(other_scores, axis=1) != choice)
        return of_choice(xp.exp(log_normalize(other_scores))), changed

    probability = of_choice(xp.exp(log_normalize(scores)))
    explored, changes = map_leading_axis(explore, grid)
    lower, upper, changed = explored.min(axis=0), explored.max(axis=0), changes.any(axis=0)
    others = xp.where(xp.arange(scores.shape[1]) == choice[:, None], -xp.inf, scores)
    weight = jax.nn.softmax(others, axis=1)
    mean_slope = xp.sum(xp.where(weight > 0, weight * slopes, 0.0), axis=1)
    finite = xp.isfinite(of_choice(scores)) & xp.any(xp.isfinite(others), axis=1)
    slope = xp.where(finite, of_choice(slopes) - mean_slope, xp.nan)
    index = xp.where(undefined(scores), -1, choice)
    return xp.stack([index, probability, lower, upper, changed & ~undefined(scores), slope], axis=1)
