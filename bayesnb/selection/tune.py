"""Choice of the prior's strength by leave-one-out or by evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Literal

import jax
import numpy as np
import pandas as pd

from bayesnb._util.arguments import bad_argument, require_choice, require_interval
from bayesnb._util.precision import float64
from bayesnb._util.terminal import card, progress, table
from bayesnb._util.warnings import warn
from bayesnb.families.arrays import kernel
from bayesnb.fitted import scoring
from bayesnb.fitted.state import (
    Classifier,
    Fitted,
    PriorOf,
    choose_prior,
    counted_rows,
    leave_one_out,
    require_average,
    require_evidence,
    require_posterior,
)
from bayesnb.model import NaiveBayes, Statistics

NAMES = ("alpha", "class_alpha", "kappa", "a")
_CONCENTRATIONS = {"alpha", "class_alpha"}  # hyperparameters of the classifier itself
_BOUNDS = (1e-4, 1e4)
_STEP = 1e-6  # of a difference of logarithms; rounding of an objective of 1e6 nats moves the optimum by less
_TUNED_MEANING = (
    "Chosen on these rows: scores of the tuned classifier on the same rows are too good, so score other rows. If a "
    "value is at an end of the interval, the optimum may lie outside: widen `bounds`."
)


@dataclass(frozen=True, eq=False)
class Tuned:
    """Strength of the prior with the largest leave-one-out score or evidence.

    Attributes
    ----------
    estimator : classifier
        Fitted copy of the classifier that was passed, with `values`; its `tuned_` names them, until it is fitted anew.
    values : dict {name: number}
        Hyperparameters that were chosen.
    path : DataFrame
        One row for each evaluation, in order: the hyperparameters and "objective", in nats.
    boundary : tuple of names
        Hyperparameters whose optimum is at an end of the interval that was searched.
    by : {"loo", "evidence"}
        Objective that was maximised.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, tune_alpha
    >>> X, y = [["red"], ["red"], ["red"], ["green"]] * 5, ["ripe", "ripe", "raw", "raw"] * 5
    >>> tuned = tune_alpha(CategoricalNB().fit(X, y), X, y, by="evidence")
    >>> round(tuned.alpha, 2), tuned.values == {"alpha": tuned.alpha}, tuned.boundary
    (0.39, True, ())
    >>> tuned.path.sort_values("objective").tail(2).round(3)  # near the optimum
        alpha  objective
    15  0.392    -25.223
    14  0.392    -25.223
    """

    estimator: Any
    values: dict[str, float]
    path: pd.DataFrame
    boundary: tuple[str, ...]
    by: str

    @property
    def alpha(self) -> float:
        """Tuned concentration of levels.

        Raises
        ------
        KeyError
            If `alpha` was not tuned.
        """
        return self.values["alpha"]

    @property
    def objective(self) -> float:
        """Largest objective: Σ log p(y_i | x_i, D₋ᵢ), or log p(X, y)."""
        return float(self.path["objective"].max())

    def __repr__(self) -> str:
        values = ", ".join(f"{name} = {value:.4g}" for name, value in self.values.items())
        end = f"; at the end of the interval: {', '.join(self.boundary)}" if self.boundary else ""
        return f"Tuned({values} by {self.by}: {self.objective:.3f} after {len(self.path)} evaluations{end})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: tuned hyperparameters and the objective."""
        reached = "Σ log p(label | row, the others)" if self.by == "loo" else "log p(X, y)"
        rows = [(name, value, "end of the interval" * (name in self.boundary)) for name, value in self.values.items()]
        about = f"by {self.by}, {len(self.path)} evaluations"
        return card("Tuned", about, table([*rows, (f"{reached}, nats", self.objective, "")]), notes=[_TUNED_MEANING])


def tune_alpha(
    nb: Classifier,
    X: object,
    y: object,
    by: Literal["loo", "evidence"] = "loo",
    tune: Sequence[str] | None = None,
    sample_weight: object = None,
    bounds: tuple[float, float] = _BOUNDS,
    prior: PriorOf = "derived",
) -> Tuned:
    """Choose the hyperparameters of the prior's strength with the largest leave-one-out score or evidence.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        A classifier fitted on X, y; `by="evidence"` uses its statistics only.
    X, y, sample_weight : array-likes
        Rows that `nb` was fitted to, with their labels and weights.
    by : {"loo", "evidence"}
        Objective. "loo": Σ w log p(y_i | x_i, D₋ᵢ) under `nb.estimate`, the prediction of each label from the other
        rows; "evidence": log p(X, y), the prediction of rows *and* labels, one after the other.
    tune : list of {"alpha", "class_alpha", "kappa", "a"}, optional
        Hyperparameters to tune. "alpha" is the concentration of levels, "class_alpha" that of classes; "kappa" is the
        prior sample size of μ, in rows; "a" is the concentration of gamma priors, of precisions 1/σ² and of rates, with
        a constant a/b. Each is one number for all blocks. Default: all hyperparameters of `nb` but "class_alpha".
    bounds : (lower, upper)
        Interval for each hyperparameter.
    prior : {"derived", "fixed"}
        Whether location and scale of a Gaussian prior are derived from the other rows, or from all rows, see `loo`.

    Returns
    -------
    Tuned
        Tuned classifier, and the values that were tried.

    Raises
    ------
    ValueError
        If `tune` names a hyperparameter that `nb` does not have, or `alpha` is not one number; if the rows were not
        counted.

    Warns
    -----
    UserWarning
        If an optimum is at an end of the interval.

    Notes
    -----
    The two objectives answer different questions, and their optima may differ much: `examples/choose_prior.py` prints
    both for four of the 20 Newsgroups.

    SciPy's L-BFGS-B maximizes over the logarithms, with gradients by differences, and starts at the best of six
    strengths. The result is itself learned from the rows: `loo` and `bayes_factor` of the tuned estimator are
    conditional on it, and their notes say so; `permutation_null` shows such a choice for permuted labels.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, tune_alpha
    >>> X, y = [["red"], ["red"], ["red"], ["green"]] * 5, ["ripe", "ripe", "raw", "raw"] * 5
    >>> tuned = tune_alpha(CategoricalNB().fit(X, y), X, y, by="evidence")
    >>> tuned
    Tuned(alpha = 0.3918 by evidence: -25.223 after 16 evaluations)
    >>> tuned.estimator.alpha == tuned.alpha
    True
    """
    from scipy.optimize import minimize

    require_choice("by", by, ("loo", "evidence"))
    require_choice("prior", prior, ("derived", "fixed"))
    fitted = (require_posterior if by == "loo" else require_evidence)(nb, "tune_alpha")
    limits = require_interval("bounds", bounds, str(_BOUNDS))
    low, high = np.log(limits)
    names = _tuned_names(nb, fitted, tune)
    # Concentrations may be proportional to α: those at α = 1 are multiplied by each value.
    source = choose_prior(fitted, prior) if by == "loo" else fitted.prior
    unit = float64(_prior_with)(source, {n: 1.0 / getattr(nb, n) for n in names if n in _CONCENTRATIONS})
    score: Callable[[dict[str, Any]], Any]
    if by == "loo":
        require_average(fitted.estimate)
        counted = counted_rows(fitted, X, y, sample_weight, "tune_alpha")
        counted = counted.take(counted.weight > 0)
        score = partial(_loo_score, unit=unit, fitted=fitted, counted=counted)
    else:
        statistics = fitted.statistics
        if "alpha" in names:
            unit, statistics = unit.condensed(), unit.condense(statistics)
        score = partial(float64(_log_evidence), prior=unit, statistics=statistics)
    path: list[np.ndarray] = []
    current = [float(getattr(nb, n)) if n in _CONCENTRATIONS else _median_value(fitted.prior, n) for n in names]
    starts = [np.log(np.clip(current, *limits)), *(np.full(len(names), v) for v in np.linspace(low, high, 7)[1:-1])]
    with progress("tune_alpha", None, "evaluations") as tick:

        def loss(log_values: np.ndarray) -> float:
            """Return minus the objective at log hyperparameters; append the evaluation to `path`."""
            value = float(score(dict(zip(names, np.exp(log_values), strict=True))))
            path.append(np.append(np.exp(log_values), value))
            tick()
            return -value

        losses = [loss(start) for start in starts]
        if not np.isfinite(losses).any():
            raise ValueError(
                f"tune_alpha: the score by {by} is not finite for any strength of {', '.join(names)}. Give "
                f"{type(nb).__name__} a proper prior, such as one whose concentration and rate are positive."
            )
        best, options = starts[int(np.nanargmin(losses))], {"eps": _STEP}
        optimum = minimize(loss, best, method="L-BFGS-B", bounds=[(low, high)] * len(names), options=options)
    chosen = dict(zip(names, np.exp(optimum.x).tolist(), strict=True))
    at_end = np.minimum(optimum.x - low, high - optimum.x) < 0.01
    boundary = tuple(name for name, end in zip(names, at_end, strict=True) if end)
    if boundary:
        reached = ", ".join(f"{name} = {chosen[name]:.3g}" for name in boundary)
        warn(
            f"tune_alpha: the optimum by {by} is at an end of bounds={bounds}: {reached}. Widen `bounds`. If the "
            "optimum is still at an end, the data do not determine it; choose a value yourself."
        )
    estimator = _refit(nb, fitted, chosen, choose_prior(fitted, prior))
    return Tuned(estimator, chosen, pd.DataFrame(path, columns=[*names, "objective"]), boundary, by)


def _tuned_names(nb: Classifier, fitted: Fitted, tune: Sequence[str] | None) -> tuple[str, ...]:
    """Return the hyperparameters to tune, by default all but `class_alpha`; raise ValueError if `nb` lacks one."""
    prior = fitted.prior
    if any(f.classes_share_parameters and not f.tunable for f in prior.blocks) or nb.unweighted is not nb:
        raise NotImplementedError(
            f"tune_alpha: {type(nb).__name__} takes its prior from its estimator. Tune that estimator first, or "
            "compare models by `loo` and `log_evidence_`."
        )
    tunable = {name for family in prior.blocks for name in family.tunable}
    if prior.class_prior.tunable and getattr(nb, "class_prior", None) is None:
        tunable.add("class_alpha")
    offered = [*(name for name in NAMES if name in tunable), *sorted(tunable - set(NAMES))]
    chosen = [name for name in offered if name != "class_alpha"] if tune is None else tune
    names = [chosen] if isinstance(chosen, str) else list(chosen)
    if not names or len(set(names)) < len(names) or not set(names) <= set(offered):
        expected = f"one or more of {offered}, the hyperparameters of {type(nb).__name__}, each once"
        raise bad_argument("tune", tune, expected)
    if isinstance(getattr(nb, "prior", None), NaiveBayes):
        raise ValueError("tune_alpha: the estimator has a complete prior=, which leaves nothing to tune. Set `alpha`.")
    for name in _CONCENTRATIONS & set(names):
        value = getattr(nb, name)
        if not isinstance(value, Real) or value <= 0:
            raise bad_argument(name, value, "one positive number, because the search starts there")
    return tuple(names)


def _median_value(prior: NaiveBayes, name: str) -> float:
    """Return the median over the features of a hyperparameter, in the first block whose family has it."""
    family = next(f for f in prior.blocks if name in f.tunable)
    return float(np.median(getattr(family, family.tunable[name])))


def _prior_with(prior: NaiveBayes, values: dict[str, Any]) -> NaiveBayes:
    """Return the prior with hyperparameters set to `values`; concentrations are multiplied by their values."""
    of_classes = {"alpha": values["class_alpha"]} if "class_alpha" in values else {}
    blocks = tuple(family.with_hyperparameters(values) for family in prior.blocks)
    return replace(prior, class_prior=prior.class_prior.with_hyperparameters(of_classes), blocks=blocks)


@kernel
def _log_evidence(values: dict[str, Any], prior: NaiveBayes, statistics: Statistics) -> jax.Array:
    """Compute log p(X, y) at hyperparameters."""
    return _prior_with(prior, values).log_evidence(statistics)


def _loo_score(values: dict[str, Any], unit: NaiveBayes, fitted: Fitted, counted: Any) -> float:
    """Compute Σ w log p(y | x, the other rows) at hyperparameters."""
    state = replace(fitted, empirical_prior=float64(_prior_with)(unit, values))
    joint = leave_one_out(state, counted, fitted.estimate, "derived")
    log_proba = scoring.apply(scoring.log_proba, joint)
    return float(counted.weight @ log_proba[np.arange(len(joint)), counted.label])


def _refit(nb: Classifier, fitted: Fitted, values: dict[str, float], source: NaiveBayes) -> Any:
    """Return a copy of `nb` with the same counts under the tuned prior; tuned names are added to its `chosen`."""
    arguments: dict[str, Any] = {name: values[name] for name in _CONCENTRATIONS & set(values)}
    others = {name: value for name, value in values.items() if name not in _CONCENTRATIONS}
    for argument, family in zip(fitted.prior_arguments, float64(_prior_with)(source, others).blocks, strict=True):
        if others.keys() & family.tunable.keys():
            arguments[argument] = family
    # Choices that the copy knows as hyperparameters were made on these rows, too, and stay named.
    known = nb.with_priors(arguments).fitted_.chosen
    named = [choice for choice in nb.fitted_.chosen if choice not in known]
    return nb.with_priors(arguments, (*named, *values))
