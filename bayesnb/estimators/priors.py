"""Hyperparameters to prior distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesnb.families import Dirichlet, GammaPoisson, Known, Moments, NormalInverseGamma, Totals


def class_distribution(class_prior: Any, class_alpha: Any, n_classes: int) -> Dirichlet | Known:
    """Prior of the class probabilities: known where `class_prior` gives them, else Dirichlet.

    Raises
    ------
    ValueError
        If `class_prior` is negative, does not sum to one or has another length; if `class_alpha` is bad.
    """
    group = np.zeros(n_classes, np.int32)
    if isinstance(class_prior, Dirichlet):
        return Dirichlet(_concentration(class_prior.concentration, (1, n_classes), "class_prior"), group, 1)
    if class_prior is None:
        return Dirichlet(_concentration(class_alpha, (1, n_classes), "class_alpha"), group, 1)
    prob = np.asarray(class_prior, dtype=np.float64)
    if prob.shape != (n_classes,):
        raise ValueError(
            f"class_prior: Number of priors must match number of classes; got shape {prob.shape}, expected "
            f"{(n_classes,)}."
        )
    if not (prob >= 0).all():
        i = int(np.argmax(~(prob >= 0)))
        raise ValueError(f"class_prior: Priors must be non-negative; class_prior[{i}] is {prob[i]}.")
    if not np.isclose(prob.sum(), 1.0, rtol=0, atol=1e-8):
        raise ValueError(f"class_prior: The sum of the priors should be 1; it is {float(prob.sum())!r}.")
    with np.errstate(divide="ignore"):
        return Known(np.log(prob)[None])


def dirichlet(alpha: Any, columns: Any, n_classes: int) -> Dirichlet:
    """Dirichlet over the levels of a block.

    Parameters
    ----------
    alpha : Dirichlet, scalar, (F,) array, list of arrays (one a feature), or (C, L) array

    Raises
    ------
    ValueError
        If `alpha` is negative, not finite or of another shape; the message says which is right.
    """
    sizes, group = columns.sizes(), columns.groups()
    shape = (n_classes, int(sizes.sum()))
    if isinstance(alpha, Dirichlet):
        alpha = np.broadcast_to(np.asarray(alpha.concentration, dtype=np.float64), shape)
    elif isinstance(alpha, list | tuple) and any(np.ndim(a) > 0 for a in alpha):
        parts = [np.asarray(alpha[j], dtype=np.float64) for j in columns.index] if _covers(alpha, columns) else []
        if len(parts) != len(sizes) or any(p.shape not in ((), (n,)) for p, n in zip(parts, sizes, strict=True)):
            raise ValueError(_shapes(f"is a list of arrays of lengths {[np.size(a) for a in alpha]}", columns, shape))
        alpha = np.concatenate([np.broadcast_to(p, n) for p, n in zip(parts, sizes, strict=True)])
        alpha = np.broadcast_to(alpha, shape)
    else:
        alpha = np.asarray(alpha, dtype=np.float64)
        if alpha.ndim == 1 and _covers(alpha, columns):
            alpha = np.broadcast_to(np.repeat(alpha[list(columns.index)], sizes), shape)
        if alpha.ndim and alpha.shape != shape:
            raise ValueError(_shapes(f"has shape {alpha.shape}", columns, shape))
    return Dirichlet(_concentration(alpha, shape, "alpha"), group, int(group[-1]) + 1)


def normal_inverse_gamma(prior: Any, moments: Moments) -> NormalInverseGamma:
    """Prior of Gaussian features; "pooled" and "within" are derived from the data (empirical Bayes).

    Both take loc = mean of the feature over all rows, κ = 0.1, a = 1; b is the variance over all rows
    ("pooled") or the variance within classes ("within"), or 1 where that is zero.
    """
    shape = moments.count.shape
    if isinstance(prior, NormalInverseGamma):
        fields = {name: _field(prior, name, shape) for name in ("loc", "kappa", "concentration", "rate")}
        _at_least(fields["kappa"], 0.0, "prior.kappa")
        _at_least(fields["rate"], 0.0, "prior.rate")
        return NormalInverseGamma(**fields)
    if not isinstance(prior, str) or prior not in ("pooled", "within"):
        raise ValueError(f"prior={prior!r} is unknown; use 'pooled', 'within' or a bayesnb.NormalInverseGamma.")
    count = moments.count.sum(axis=0)
    n = np.maximum(count, np.finfo(float).tiny)
    # Weights n_c/n first: a mean of huge numbers must not overflow.
    mean = np.sum(moments.mean * (moments.count / n), axis=0)
    within = moments.m2.sum(axis=0)
    between = np.sum((moments.mean - mean) ** 2 * moments.count, axis=0)
    variance = (within + (between if prior == "pooled" else 0.0)) / n
    flat = (variance == 0) | (variance <= (1e-12 * mean) ** 2)
    variance = np.where(flat, 1.0, variance)
    loc = np.where(count > 0, mean, 0.0)
    full = [np.broadcast_to(v, shape).astype(np.float64) for v in (loc, 0.1, 1.0, variance)]
    return NormalInverseGamma(*full)


def gamma_poisson(prior: Any, totals: Totals) -> GammaPoisson:
    """Prior of Poisson rates; "pooled" is Gamma(1, 1/mean) with the mean over all rows (empirical Bayes)."""
    shape = totals.count.shape
    if isinstance(prior, GammaPoisson):
        fields = {name: _field(prior, name, shape) for name in ("concentration", "rate")}
        for name, values in fields.items():
            _at_least(values, 0.0, f"prior.{name}")
        return GammaPoisson(**fields)
    if not isinstance(prior, str) or prior != "pooled":
        raise ValueError(f"prior={prior!r} is unknown; use 'pooled' or a bayesnb.GammaPoisson.")
    count, total = totals.count.sum(axis=0), totals.total.sum(axis=0)
    rate = np.where(total > 0, count / np.where(total > 0, total, 1.0), 1.0)
    return GammaPoisson(np.ones(shape), np.broadcast_to(rate, shape).astype(np.float64))


def _covers(alpha: Any, columns: Any) -> bool:
    """Whether `alpha` has one entry for each feature of the whole table."""
    return len(alpha) == columns.n_features


def _concentration(alpha: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    alpha = np.asarray(alpha, dtype=np.float64)
    try:
        full = np.broadcast_to(alpha, shape)
    except ValueError:
        raise ValueError(f"{name} has shape {alpha.shape}; expected a scalar or shape {shape[1:]}.") from None
    _at_least(alpha, 0.0, name)
    return full


def _field(prior: Any, name: str, shape: tuple[int, int]) -> np.ndarray:
    values = np.asarray(getattr(prior, name), dtype=np.float64)
    try:
        return np.broadcast_to(values, shape).astype(np.float64)
    except ValueError:
        raise ValueError(
            f"prior.{name} has shape {values.shape}; expected a scalar, (F,) = {shape[1:]} or (C, F) = {shape}."
        ) from None


def _at_least(values: np.ndarray, bound: float, name: str) -> None:
    bad = ~(np.isfinite(values) & (values >= bound))
    if bad.any():
        where = tuple(int(i[0]) for i in np.nonzero(bad)) if values.ndim else ()
        place = f"{name}[{', '.join(map(str, where))}]" if where else name
        raise ValueError(f"{place} is {values[where]}; it must be finite and at least {bound:g}.")


def _shapes(got: str, columns: Any, shape: tuple[int, int]) -> str:
    sizes = columns.sizes().tolist()
    lengths = sizes if len(sizes) <= 8 else f"{sizes[:8]}, …"
    return (
        f"alpha {got}; expected a scalar, an array of shape (F,) = {(columns.n_features,)} with one entry a feature, "
        f"a list of F arrays of lengths {lengths}, or an array of shape (C, L) = {shape}."
    )


def matching(prior: Any, statistics: Any) -> Any:
    """A complete prior, such as another model's `prior_`, if its axes are those of the statistics."""
    classes = prior.class_prior
    over_classes = classes.log_prob if isinstance(classes, Known) else classes.concentration
    shapes = [np.shape(over_classes)[1], *(np.shape(block.concentration) for block in prior.blocks)]
    expected = [len(statistics.class_count), *(s.count.shape for s in statistics.blocks)]
    if shapes != expected:
        raise ValueError(
            f"prior has axes {shapes} (classes, then each block), but the data have {expected}. Declare "
            "`categories` so that the levels do not depend on the rows."
        )
    return prior
