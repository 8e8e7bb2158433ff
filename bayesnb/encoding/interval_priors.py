"""Priors of one parameter, from an interval that contains it with a stated probability."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import betainc, betaincc, expit, gammainc, gammainccinv

from bayesnb._util.arguments import require_choice, require_number, require_probability

_SUPPORT = {"beta": (0.0, 1.0), "normal": (-np.inf, np.inf), "gamma": (0.0, np.inf)}
_PARAMETERS = {"beta": ("a", "b"), "normal": ("mean", "sd"), "gamma": ("concentration", "rate")}
_LOG_CONCENTRATIONS = np.log(1e-3), np.log(1e12)
"""Interval that is searched for the logarithm of a + b of a beta, and of the concentration of a gamma."""
_ACCURACY = 1e-6


@dataclass(frozen=True)
class IntervalPrior:
    """Beta, normal or gamma distribution with a given equal-tailed interval; iteration gives its two parameters.

    Attributes
    ----------
    family : {"beta", "normal", "gamma"}
        Family of the distribution.
    parameters : (float, float)
        (a, b) of a beta, (mean, sd) of a normal, (concentration, rate) of a gamma distribution.
    lower, upper : float
        Ends of the interval.
    prob : float
        Probability of the interval.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> prior = bnb.prior_from_interval(2, 10, family="gamma")
    >>> concentration, rate = prior
    >>> round(concentration / rate, 3) == round(prior.mean, 3)
    True
    """

    family: str
    parameters: tuple[float, float]
    lower: float
    upper: float
    prob: float

    @property
    def distribution(self) -> Any:
        """Distribution of `scipy.stats`, with quantiles, density and draws."""
        first, second = self.parameters
        scale = {"scale": 1.0 / second} if self.family == "gamma" else {}
        arguments = (first,) if scale else self.parameters
        return {"beta": stats.beta, "normal": stats.norm, "gamma": stats.gamma}[self.family](*arguments, **scale)

    @property
    def mean(self) -> float:
        """Mean of the distribution."""
        return float(self.distribution.mean())

    @property
    def sd(self) -> float:
        """Standard deviation of the distribution."""
        return float(self.distribution.std())

    def __iter__(self) -> Iterator[float]:
        return iter(self.parameters)

    def __repr__(self) -> str:
        named = zip(_PARAMETERS[self.family], self.parameters, strict=True)
        parameters = ", ".join(f"{name}={value:.4g}" for name, value in named)
        moments = "" if self.family == "normal" else f"mean {self.mean:.4g}, sd {self.sd:.4g}, "
        interval = f"{100 * self.prob:.6g}% between {self.lower:.6g} and {self.upper:.6g}"
        return f"{self.family.capitalize()}({parameters}): {moments}{interval}"


def prior_from_interval(lower: float, upper: float, prob: float = 0.95, family: str = "beta") -> IntervalPrior:
    """Find the beta, normal or gamma distribution with a given equal-tailed interval.

    Parameters
    ----------
    lower, upper : float
        Ends of the interval: the parameter is below `lower`, and above `upper`, with probability (1 - prob)/2 each.
    prob : float, default 0.95
        Probability of the interval, in (0, 1).
    family : {"beta", "normal", "gamma"}
        Family of the distribution: "beta" for a probability, "normal" for a mean, "gamma" for a rate or another
        positive number.

    Returns
    -------
    IntervalPrior
        Fitted distribution: `parameters`, which iteration also gives, `mean`, `sd`, and the `distribution` of
        `scipy.stats`.

    Raises
    ------
    ValueError
        If `lower` is not below `upper`, an end is outside the support of the family, `prob` is not in (0, 1), or no
        distribution of the family has the interval to an accuracy of 1e-6 of each tail, because it is too narrow or too
        wide.

    Notes
    -----
    - *Beta*: a and b are the concentrations of the two levels of a column, as in
      `CategoricalNB(alpha={"smoker": {"yes": a, "no": b}})`. They count as a + b rows. `diagnostic_tests` takes the
      result as the prior of a prevalence, sensitivity or specificity.
    - *Normal*: if v is the variance of a feature within a class, its mean has this distribution given the variance v
      under `NormalInverseGamma(loc=mean, kappa=v / sd**2, ...)`; κ is the number of rows that the prior counts as.
    - *Gamma*: `GammaPoisson(concentration, rate)` is the prior of the rate of counts (events per row), and
      `GammaExponential(concentration, rate)` that of durations (events per unit of time).

    The two ends determine the distribution. For a beta, `scipy.optimize.brentq` finds a + b by the lower tail, and for
    each a + b the mean by the upper tail.

    Examples
    --------
    A sensitivity that lies between .75 and .92 with probability .95.

    >>> import bayesnb as bnb
    >>> prior = bnb.prior_from_interval(0.75, 0.92)
    >>> prior
    Beta(a=57.19, b=10.52): mean 0.8446, sd 0.0437, 95% between 0.75 and 0.92
    >>> a, b = prior
    >>> bnb.prior_from_interval(165, 180, family="normal")
    Normal(mean=172.5, sd=3.827): 95% between 165 and 180
    """
    require_choice("family", family, tuple(_SUPPORT))
    require_probability("prob", prob)
    low, high = (
        require_number(name, end, "a number", np.isfinite) for name, end in (("lower", lower), ("upper", upper))
    )
    if not low < high:
        raise ValueError(f"lower={low:g} must be below upper={high:g}.")
    least, greatest = _SUPPORT[family]
    if not least < low < high < greatest:
        name, end = ("lower", low) if low <= least else ("upper", high)
        above = "" if greatest == np.inf else f" and below {greatest:g}"
        raise ValueError(f"{name}={end:g} must be above {least:g}{above}, for a {family} distribution.")
    tail = (1.0 - float(prob)) / 2
    parameters = {"beta": _fit_beta, "normal": _fit_normal, "gamma": _fit_gamma}[family](low, high, tail)
    found = IntervalPrior(family, parameters, low, high, float(prob))
    tails = found.distribution.cdf(low), found.distribution.sf(high)
    if not np.allclose(tails, tail, rtol=_ACCURACY, atol=0.0):
        raise ValueError(
            f"No {family} distribution has probability {prob:g} between lower={low!r} and upper={high!r} to an "
            f"accuracy of {_ACCURACY:g}: the interval is too narrow, or too wide for this prob."
        )
    return found


def _fit_normal(lower: float, upper: float, tail: float) -> tuple[float, float]:
    """Return mean and standard deviation, which is NaN if the probability of the interval is 0 up to rounding."""
    width = upper - lower
    return lower + 0.5 * width, width / (2.0 * float(stats.norm.isf(tail)) or np.nan)


def _fit_gamma(lower: float, upper: float, tail: float) -> tuple[float, float]:
    """Return concentration and rate; given the concentration, the upper end determines the rate."""

    def end(log_concentration: float) -> float:
        """Upper end of the interval for the rate 1."""
        return float(gammainccinv(np.exp(log_concentration), tail))

    log = _find_concentration(lambda log: float(gammainc(np.exp(log), end(log) * (lower / upper))) - tail)
    return float(np.exp(log)), end(log) / upper


def _fit_beta(lower: float, upper: float, tail: float) -> tuple[float, float]:
    """Return a and b; given a + b, the upper end determines the mean."""

    def shapes(log_total: float) -> tuple[float, float]:
        total = float(np.exp(log_total))
        logit = brentq(lambda x: betaincc(total * expit(x), total * expit(-x), upper) - tail, -700.0, 700.0, xtol=1e-15)
        return total * float(expit(logit)), total * float(expit(-logit))

    return shapes(_find_concentration(lambda log: float(betainc(*shapes(log), lower)) - tail))


def _find_concentration(surplus: Callable[[float], float]) -> float:
    """Return the log concentration where a decreasing function is 0, or the end of the search that is nearest to it."""
    low, high = map(float, _LOG_CONCENTRATIONS)
    if not surplus(low) > 0:
        return low
    return float(brentq(surplus, low, high, xtol=1e-14)) if surplus(high) < 0 else high
