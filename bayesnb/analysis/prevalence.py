"""Shares of the classes among new rows without labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped
from scipy.interpolate import CubicSpline
from scipy.special import expit, log_expit, ndtr, softmax
from sklearn.base import is_classifier

from bayesnb._util.arguments import Seed, read_seed, require_choice, require_probability, to_numbers
from bayesnb._util.arrays import compute_dask, require_draws
from bayesnb._util.html import card, table
from bayesnb._util.terminal import progress
from bayesnb._util.warnings import warn
from bayesnb.encoding import Rows
from bayesnb.encoding.table import match_classes
from bayesnb.fitted.state import Adaptable, Fitted, require_fitted
from bayesnb.model import log_normalize
from bayesnb.uncertainty.class_probabilities import evaluate_rows, map_blocks
from bayesnb.uncertainty.draws import draw_posterior, draw_with_rows, read_training_rows
from bayesnb.uncertainty.given_draws import Parameters, read_parameters
from bayesnb.uncertainty.row_variates import TrainingData, TrainingRows

# == Posterior of class shares π given unlabelled rows: p(π | U) ∝ Dir(π | α) Π_i Σ_c π_c p(x_i | c)

_TOLERANCE = 1e-9  # gap to the maximum, in nats, over Σa + Σn
_MOST_STEPS = 10_000
_NODES, _FINE_NODES = 201, 1001
_FAR, _LEAST = 40.0, 1000.0  # nats below the highest density: of the ends, and the least one, for the spline
_BURN_IN, _MOST_SWEEPS = 10, 50  # draws, and sweeps for one draw
_MOST_ROWS = 2_000  # of two classes; more are replaced by a grid of log odds
_FARTHEST = 36.0
_FEW = 4  # multiplicity up to which labels are drawn row by row, which is faster


class Shares(NamedTuple):
    """Posterior of class shares: moments, intervals and draws.

    Parameters
    ----------
    mean, sd, lower, upper : (C,) arrays
        Moments, and ends of equal-tailed intervals.
    draws : (S, C) array
        Draws of the shares.
    effective_draws : (C,) array
        Number of independent draws with the Monte Carlo error of the means.
    """

    mean: np.ndarray
    sd: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    draws: np.ndarray
    effective_draws: np.ndarray


@dataclass(frozen=True, eq=False)
class ShareModel:
    """Posterior density of class shares π given unlabelled rows.

    Parameters
    ----------
    likelihood : (R, C) array
        p(x_i | c) of the R distinct rows, up to a factor per row.
    count : (R,) array
        Multiplicity of each distinct row.
    alpha : (C,) array
        Concentration of the Dirichlet prior.
    """

    likelihood: Float[np.ndarray, "R C"]
    count: Shaped[np.ndarray, "R"]
    alpha: Float[np.ndarray, "C"]

    @classmethod
    def from_rows(cls, log_likelihood: Float[np.ndarray, "N C"], alpha: Float[np.ndarray, "C"]) -> ShareModel:
        """Return the model of N rows from their log p(x_i | c), up to a number per row.

        Equal rows are kept as one with their number. More than 2,000 rows of two classes are divided among 2,000
        equidistant log odds, which moves the posterior by less than .001 sd for 20,000 rows, in proportion to √N. A row
        that is impossible in every class (NaN) says nothing of the shares.
        """
        log_likelihood = np.where(np.isnan(log_likelihood), 0.0, log_likelihood)
        if log_likelihood.shape[1] == 2 and len(log_likelihood) > _MOST_ROWS:
            nodes, count = _on_grid(log_likelihood[:, 1] - log_likelihood[:, 0])
            return cls(expit(np.stack([-nodes, nodes], axis=1)), count, alpha)
        return cls(*np.unique(np.exp(log_likelihood), axis=0, return_counts=True), alpha)

    def maximize(self, exponent: Float[np.ndarray, "C"]) -> tuple[Float[np.ndarray, "C"], float]:
        """Find the shares π of greatest density by EM, and the largest possible gap to the maximum, in nats.

        The density is f(π) = Σ_c a_c log π_c + Σ_i n_i log Σ_c π_c p(x_i | c), with a = `exponent`. A step of EM is
        π_c ← π_c ∂f/∂π_c / (Σa + Σn). As f is concave, the maximum is at most max_c ∂f/∂π_c - (Σa + Σn) above f(π). Two
        steps are followed by an extrapolation by SQUAREM (Varadhan & Roland, *Scand. J. Stat.* 35, 2008) if f rises:
        classes that are hard to tell from each other would take EM thousands of steps.
        """
        total = exponent.sum() + self.count.sum()
        is_positive = exponent > 0

        def value(shares: np.ndarray) -> float:
            log_prior = exponent[is_positive] @ np.log(shares[is_positive])
            return float(log_prior + self.count @ np.log(self.likelihood @ shares))

        def step(shares: np.ndarray) -> tuple[np.ndarray, float]:
            slope = (self.count / (self.likelihood @ shares)) @ self.likelihood
            slope[is_positive] += exponent[is_positive] / shares[is_positive]
            return shares * slope / total, max(0.0, float(slope.max() - total))

        shares, steps = np.full(len(exponent), 1.0 / len(exponent)), 0
        after_one, gap = step(shares)
        while gap > _TOLERANCE * total and steps < _MOST_STEPS:
            after_two, _ = step(after_one)
            first, second = after_one - shares, after_two - 2.0 * after_one + shares
            stretch = max(1.0, float(np.linalg.norm(first)) / max(float(np.linalg.norm(second)), 1e-300))
            extrapolated = np.maximum(shares + 2.0 * stretch * first + stretch**2 * second, 0.01 * after_two)
            extrapolated /= extrapolated.sum()
            shares = extrapolated if value(extrapolated) >= value(after_two) else after_two
            (after_one, gap), steps = step(shares), steps + 2
        return after_one, gap

    def summarize(self, tails: Float[np.ndarray, "2"], draws: int, rng: np.random.Generator) -> Shares:
        """Compute moments, intervals and draws, by quadrature for two classes, by Gibbs sampling for other numbers.

        Parameters
        ----------
        tails : (2,) array
            Posterior probabilities below the two ends of an interval.
        draws : int
            Number of draws.
        rng : Generator
            Source of random numbers.
        """
        return (self._integrate if len(self.alpha) == 2 else self._sample)(tails, draws, rng)

    def _integrate(self, tails: Float[np.ndarray, "2"], draws: int, rng: np.random.Generator) -> Shares:
        """Compute the posterior of two shares by quadrature, with independent draws.

        Moments have about ten digits, quantiles an error of a thousandth of the sd. Over the log odds u of the second
        class the density is exp f(u), with f as in `maximize` and exponents α; f has one maximum û. The nodes are
        u = û + sinh(v)/√-f''(û) with v equally spaced. For these the trapezoidal rule is accurate whether the posterior
        is narrow or has the tails of Beta(α) alone; quantiles are those of a spline of the log density. As f is concave
        in π, shares with log π_c < log π̂_c - k/α_c - 1 lie k nats below the maximum.
        """
        peak, _ = self.maximize(self.alpha)
        total = self.alpha.sum() + self.count.sum()
        curvature = total * peak.prod() - self.count @ self._responsibilities(peak).prod(axis=1)
        centre, scale = np.log(peak[1] / peak[0]), 1.0 / np.sqrt(curvature)
        first, second = np.log(peak) - _FAR / self.alpha - 1.0
        v = np.linspace(np.arcsinh((second - centre) / scale), np.arcsinh((-first - centre) / scale), _NODES)
        log_odds = centre + scale * np.sinh(v)
        share = expit(np.stack([-log_odds, log_odds]))
        log_density = self.alpha @ log_expit(np.stack([-log_odds, log_odds])) + np.log(np.cosh(v))
        rows = max(1, 2**20 // _NODES)
        with np.errstate(divide="ignore"):
            for start in range(0, len(self.count), rows):
                block = slice(start, start + rows)
                log_density += self.count[block] @ np.log(self.likelihood[block] @ share)
        density = np.exp(log_density - log_density.max())
        density /= density.sum()
        mean = share @ density
        sd = np.sqrt((share - mean[:, None]) ** 2 @ density)
        fine = np.linspace(v[0], v[-1], _FINE_NODES)
        log_density = CubicSpline(v, log_density.clip(log_density.max() - _LEAST))(fine)
        density, log_odds = np.exp(log_density - log_density.max()), centre + scale * np.sinh(fine)
        below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
        low, high = np.interp(tails, below / below[-1], log_odds)
        drawn = np.interp(rng.random(draws), below / below[-1], log_odds)
        lower, upper = expit(np.array([[-high, low], [-low, high]]))
        return Shares(mean, sd, lower, upper, expit(np.stack([-drawn, drawn], axis=1)), np.full(2, float(draws)))

    def _sample(self, tails: Float[np.ndarray, "2"], draws: int, rng: np.random.Generator) -> Shares:
        """Compute the posterior of the shares by Gibbs sampling, and its quantiles `tails`, such as (.025, .975).

        Given π, the labels of equal rows are multinomial counts; given n_c rows in each class, π has Dir(α + n). With λ
        the largest eigenvalue of the fraction of information that missing labels hold, which is the derivative of an EM
        step at its fixed point, correlations fall by the factor λ per sweep (Liu, *JASA* 89, 1994), and one draw is
        kept of (1 + λ)/(1 - λ) sweeps, at most of 50. Rows of low multiplicity have their labels drawn one by one,
        which is ten times as fast.
        """
        likelihood, count, alpha = self.likelihood, self.count, self.alpha
        shares, _ = self.maximize(alpha)
        responsibility = self._responsibilities(shares)
        within = (responsibility * count[:, None]).T @ responsibility
        missing = (np.diag(count @ responsibility) - within) / shares / (alpha.sum() + count.sum())
        slowest = min(0.99, np.linalg.eigvals(missing).real.max())
        sweeps = min(_MOST_SWEEPS, ceil((1.0 + slowest) / (1.0 - slowest)))
        is_frequent = count > _FEW
        frequent = ShareModel(likelihood[is_frequent], count[is_frequent], alpha)
        rare = np.ascontiguousarray(np.repeat(likelihood[~is_frequent], count[~is_frequent], axis=0).T)
        kept = np.empty((draws, len(alpha)))
        with progress("Gibbs sampling", _BURN_IN + draws, "draws") as tick:
            for s in range(_BURN_IN + draws):
                for _ in range(sweeps):
                    labels = rng.multinomial(frequent.count, frequent._responsibilities(shares)).sum(axis=0)
                    shares = rng.dirichlet(alpha + labels + _draw_labels(rare, shares, rng))
                kept[max(0, s - _BURN_IN)] = shares
                tick()
        lower, upper = np.quantile(kept, tails, axis=0)
        return Shares(kept.mean(axis=0), kept.std(axis=0), lower, upper, kept, effective_size(kept))

    def _responsibilities(self, shares: Float[np.ndarray, "C"]) -> Float[np.ndarray, "R C"]:
        """Return (R, C) P(class | row) for given class shares."""
        joint = self.likelihood * shares
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def average(posteriors: Sequence[Shares], tails: Float[np.ndarray, "2"]) -> Shares:
    """Return the mixture of posteriors of the shares, each given another draw of the parameters, with pooled draws.

    The Monte Carlo error of the mean is estimated from the spread of the posteriors' means. A single posterior is
    returned unchanged.
    """
    if len(posteriors) == 1:
        return posteriors[0]
    draws = np.concatenate([shares.draws for shares in posteriors])
    mean = np.mean([shares.mean for shares in posteriors], axis=0)
    variance = np.mean([shares.sd**2 + (shares.mean - mean) ** 2 for shares in posteriors], axis=0)
    error = np.var([shares.draws.mean(axis=0) for shares in posteriors], axis=0, ddof=1) / len(posteriors)
    effective = np.minimum(variance / np.where(error > 0, error, 1.0), len(draws))
    lower, upper = np.quantile(draws, tails, axis=0)
    return Shares(mean, np.sqrt(variance), lower, upper, draws, np.where(error > 0, effective, len(draws)))


def _on_grid(log_odds: Float[np.ndarray, "N"]) -> tuple[Float[np.ndarray, "R"], Float[np.ndarray, "R"]]:
    """Return nodes of a grid, and positive weights of the nodes, N in all, that divide each value between neighbours.

    The two weights of a value keep its mean. Beyond ± `_FARTHEST` values differ by less than rounding.
    """
    log_odds = log_odds.clip(-_FARTHEST, _FARTHEST)
    grid = np.linspace(log_odds.min(), log_odds.max() + 1e-6, _MOST_ROWS)
    position = (log_odds - grid[0]) / (grid[1] - grid[0])
    below = position.astype(int).clip(0, len(grid) - 2)
    weight = np.bincount(below, 1.0 - (position - below), len(grid))
    weight += np.bincount(below + 1, position - below, len(grid))
    return grid[weight > 0], weight[weight > 0]


def effective_size(chain: Float[np.ndarray, "S K"]) -> Float[np.ndarray, "K"]:
    """Compute the effective sample size of a reversible chain of S draws of K numbers, at most S.

    The size is S/(2 Σ_k Γ_k - 1), with Γ_k the sum of the autocorrelations of lags 2k and 2k + 1, up to the first that
    is not positive (Geyer, *Practical Markov chain Monte Carlo*, Stat. Sci. 7, 1992); S if the chain is constant.
    """
    n = len(chain)
    spectrum = abs(np.fft.rfft(chain - chain.mean(axis=0), 2 * n, axis=0)) ** 2
    covariance = np.fft.irfft(spectrum, 2 * n, axis=0)[:n]
    pairs = covariance[: n - n % 2].reshape(n // 2, 2, chain.shape[1]).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    moves = np.ptp(chain, axis=0) > 1e-12
    time = 2.0 * np.sum(pairs, axis=0, where=positive) / np.where(moves, covariance[0], 1.0) - 1.0
    return np.asarray(n / np.where(moves, np.maximum(time, 1.0), 1.0))


def _draw_labels(
    likelihood: Float[np.ndarray, "C R"], shares: Float[np.ndarray, "C"], rng: np.random.Generator
) -> Int[np.ndarray, "C"]:
    """Draw a label for each of R rows, with probability ∝ share · likelihood, and return the (C,) counts of labels."""
    cumulative, n_rows = np.cumsum(shares[:, None] * likelihood, axis=0), likelihood.shape[1]
    beyond = np.count_nonzero(rng.random(n_rows) * cumulative[-1] >= cumulative[:-1], axis=1)
    return -np.diff([n_rows, *beyond, 0])


# == Prevalence: posterior of the classes' shares among unlabelled rows, where these differ from the training rows'

_LEAST_SIZE = 50  # effective draws; fewer leave one or two beyond each end of a 90% interval
_NEGLIGIBLE = 0.01  # nats: less than .15 posterior standard deviations
_PARAMETER_DRAWS = 100
_MOST_CELLS = 2**24
_COLUMNS = ("training", "mode", "mean", "sd", "lower", "upper", "p_value")
_MEANING = (
    "Shares of the classes among these rows, if p(row | class) is the same as in training and scores are calibrated. "
    "If naive Bayes is overconfident, intervals are too narrow. Pass `mean` as `class_prior` of `predict_proba`."
)


@dataclass(frozen=True, eq=False)
class Prevalence:
    """Posterior of the classes' shares among rows without labels; arrays (C,) are in the order of `classes`.

    Attributes
    ----------
    classes : (C,) array
        Labels of the classes.
    training : (C,) array
        Shares among the labelled rows that the classifier was fitted to: the posterior mean.
    mode : (C,) array
        Shares of greatest posterior density given the scores; with α = 1, of greatest likelihood. NaN if some α < 1,
        because the density may then be unbounded as a share goes to 0. If the rows do not distinguish some classes, the
        mode is not unique.
    mean, sd : (C,) arrays
        Posterior moments. `nb.predict_proba(X, class_prior=mean)` is exact for further rows of the same population.
    lower, upper : (C,) arrays
        Ends of equal-tailed intervals. Intervals never contain 0; for a class that may be absent use `upper`.
    p_value : (C,) array
        Two-sided p-value of the hypothesis that these rows come from the population of the labelled rows, by the mean
        of P(class | row) and its difference from `training`. It counts the sampling error of `training`, which
        intervals leave out, see the notes of `estimate_prevalence`.
    prob : float
        Posterior probability of each interval.
    draws : (S, C) array
        Draws from the posterior; each sums to 1.
    effective_draws : (C,) array
        Number of independent draws with the Monte Carlo error of `draws`. All numbers but `mode` are computed from the
        draws; for two classes given the scores they are computed by quadrature instead.
    n_rows : int
        Number of unlabelled rows.
    given : str
        "scores" or "data": the argument `given` of `estimate_prevalence`.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> nb = bnb.CategoricalNB().fit([["red"]] * 40 + [["green"]] * 40, ["ripe"] * 30 + ["raw"] * 50)
    >>> prevalence = bnb.estimate_prevalence(nb, [["red"]] * 90 + [["green"]] * 10)
    >>> prevalence.training.round(2), prevalence.mean.round(2), prevalence.sd.round(2)
    (array([0.62, 0.38]), array([0.1, 0.9]), array([0.05, 0.05]))
    >>> prevalence.draws.shape
    (1000, 2)
    >>> prevalence.to_frame()[["training", "mean"]].round(2)
           training  mean
    class
    raw        0.62   0.1
    ripe       0.38   0.9
    """

    classes: np.ndarray
    training: np.ndarray
    mode: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    p_value: np.ndarray
    prob: float
    draws: np.ndarray
    effective_draws: np.ndarray
    n_rows: int
    given: str

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row for each class: training, mode, mean, sd, lower, upper, p_value."""
        index = pd.Index(self.classes, name="class")
        return pd.DataFrame({name: getattr(self, name) for name in _COLUMNS}, index)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the table of `to_frame`."""
        shares = zip(self.classes.tolist(), *(getattr(self, name).tolist() for name in _COLUMNS), strict=True)
        about = f"{self.n_rows} rows, {100 * self.prob:.6g}% intervals given the {self.given}"
        return card("Prevalence", about, table(shares, ("class", *_COLUMNS)), notes=[_MEANING])

    def __repr__(self) -> str:
        return (
            f"Prevalence in {self.n_rows} rows, {100 * self.prob:.6g}% intervals given the {self.given}, if "
            f"p(row | class) is as in training and scores are calibrated\n{self.to_frame().round(4)}"
        )


def estimate_prevalence(
    nb: Adaptable,
    X_unlabeled: object,
    alpha: object = 1.0,
    prob: float = 0.9,
    draws: int = 1000,
    seed: Seed = 0,
    given: Literal["data", "scores"] = "data",
    *,
    rows: TrainingData | None = None,
    groups: object = None,
) -> Prevalence:
    """Estimate the shares of the classes among unlabelled rows, which may differ from those among the training rows.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose scores are calibrated, see the notes.
    X_unlabeled : array-like, sparse matrix or DataFrame of shape (N, F)
        Independent rows from one population.
    alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the shares, above 0. An array is in the order of `nb.classes_`. 1 is
        uniform; `k * np.exp(nb.class_log_prior_)` weighs as much as k labelled rows of the training shares.
    prob : float, default 0.9
        Posterior probability of each interval, in (0, 1).
    draws : int, default 1000
        Number of draws from the posterior.
    seed : int, JAX key, RandomState or Generator, default 0
        Seed of the draws.
    given : {"data", "scores"}, default "data"
        "data": the parameters of p(row | class) are uncertain, and the result is averaged over draws from their
        posterior. "scores": p(row | class) is assumed to be known. This is faster, and works for classifiers without a
        posterior, but intervals are too narrow after few labelled rows, see the notes.
    rows : tuple (X, y) or (X, y, sample_weight), optional
        Rows that `nb` has counted, all of them: under given="data" parameters are drawn so that they vary together as
        the rows do, see `posterior_draws`.
    groups : array-like, optional
        Group of each training row, such as a patient, whose rows vary together.

    Returns
    -------
    Prevalence
        Posterior means, intervals and draws of the shares.

    Raises
    ------
    ImproperPosteriorError
        If `given="data"` and the posterior of the parameters is improper.
    NotImplementedError
        If `given="data"` and the parameters have no exact posterior, as those of `AODE`.
    ValueError
        If an argument cannot be used; if a row has no class probabilities, such as one that is impossible in every
        class under the MLE.

    Warns
    -----
    UserWarning
        If the rows hardly distinguish some classes, so that fewer than 50 draws are effective or EM did not find the
        mode.

    Notes
    -----
    With class shares π the rows U have the posterior

        p(π | U) ∝ Dir(π | α) Π_i Σ_c π_c p(x_i | c),

    where p(x_i | c), up to a factor per row, is the classifier's P(c | x_i) divided by its class prior. The mode is
    found by EM (Saerens, Latinne & Decaestecker 2002). For two classes all other numbers are computed by quadrature.
    For more classes they are computed from draws by Gibbs sampling, which are up to 50 sweeps apart, so that they are
    nearly independent.

    *It assumes* that p(row | class) is the same as in training (*label shift*): only the shares have changed.

    *It assumes that the scores are calibrated.* If features depend on each other, naive Bayes counts evidence twice and
    its scores are overconfident: intervals are then too narrow, and shares are biased towards those of the predicted
    labels. Use a `WeightedNB` then; `bayesnb.evaluation.reliability` shows whether the scores are calibrated.

    *It accounts for few labelled rows* by the default, `given="data"`. With `given="scores"`, 90%
    intervals of two classes with two Gaussian features covered .44, .65, .83, .90 after 5, 20, 100, 1000 labelled rows
    per class, in simulations from naive Bayes; `given="data"` covered .88, .86, .87 after the first three. With six
    Bernoulli features, `given="data"` covered .91 and `given="scores"` .70. The posterior is averaged over 100 draws of
    θ | D, and of the weights of a `WeightedNB`; information of the unlabelled rows about θ is not used. With 500
    labelled rows whose columns copy each other, 90% intervals of a `WeightedNB` covered .93 of the shares of 300, 3,000
    and 20,000 new rows.

    *To notice a change, use `p_value`*, not whether an interval contains the training share: that share is an
    estimate from n labelled rows itself, and with many unlabelled rows its error is the larger one. For a
    `WeightedNB` fitted to 1,000 rows of a census, 99% intervals given the scores excluded the training share in 5%,
    42% and 64% of stationary batches of 500, 5,000 and 20,000 rows; the p-value was below .01 in 1%, 3% and 3%, and
    less often than its level for naive Bayes that holds. It takes the mean of P(class | row) to be normal around
    the training share p, with the variance (1/N + 1/n) V. V is the variance of P(class | row) that calibrated
    scores have, p (1 - p) less the mean of P (1 - P), or the variance among these rows, if it is larger. The
    labelled rows have the mean p: the biases of a `WeightedNB` are fitted to their cross-fitted scores. New rows
    have a slightly different mean, probably because these are scores of models of half of the rows: the excess of
    false alarms. Where less than some five rows of a class are expected, p-values are too small.

    References
    ----------
    Saerens, Latinne & Decaestecker, *Adjusting the outputs of a classifier to new a priori probabilities: a simple
    procedure*, Neural Computation 14 (2002). Derivation: docs/derivations/unlabelled_rows.md, "Prevalence".

    Examples
    --------
    >>> import numpy as np
    >>> import bayesnb as bnb
    >>> nb = bnb.CategoricalNB().fit([["red"]] * 4 + [["green"]] * 4, ["ripe"] * 3 + ["raw"] * 5)
    >>> prevalence = bnb.estimate_prevalence(nb, [["red"]] * 60 + [["green"]] * 40)
    >>> prevalence
    Prevalence in 100 rows, 90% intervals given the data, if p(row | class) is as in training and scores are calibrated
           training    mode   mean      sd   lower   upper  p_value
    class
    raw         0.6  0.3889  0.408  0.2293  0.0256  0.8183   0.5464
    ripe        0.4  0.6111  0.592  0.2293  0.1817  0.9744   0.5464
    >>> nb.predict_proba([["red"]]).round(2), nb.predict_proba([["red"]], class_prior=prevalence.mean).round(2)
    (array([[0.35, 0.65]]), array([[0.2, 0.8]]))
    >>> bnb.estimate_prevalence(nb, [["red"]] * 60 + [["green"]] * 40, given="scores").sd.round(4)  # as if known
    array([0.0939, 0.0939])
    """
    require_fitted(nb, "estimate_prevalence")
    if not is_classifier(nb):
        raise TypeError(f"estimate_prevalence takes a classifier, and nb is a {type(nb).__name__}. Pass nb.estimator_.")
    require_probability("prob", prob)
    require_draws(draws, 6 * len(nb.classes_), "the shares of the classes")
    seed = read_seed(seed)
    require_choice("given", given, ("data", "scores"))
    if given == "data" and nb.no_posterior is not None:
        raise NotImplementedError(
            f"estimate_prevalence: given='data' averages over the posterior. {nb.no_posterior} Pass given='scores': "
            "intervals are then too narrow if there are few labelled rows."
        )
    n_classes = len(nb.classes_)
    concentration = to_numbers("alpha", match_classes("alpha", alpha, nb.fitted_.encoding.classes))
    if concentration.shape not in ((), (n_classes,)):
        raise ValueError(f"alpha has shape {concentration.shape}; it must be a number or have shape {(n_classes,)}.")
    if not (np.isfinite(concentration) & (concentration > 0)).all():
        raise ValueError(f"alpha={alpha} must be finite and above 0: the prior of the shares is Dirichlet(alpha).")
    concentration = np.broadcast_to(concentration, n_classes)
    by_rows = rows is not None or groups is not None
    if by_rows and given == "scores":
        raise ValueError("rows and groups are for given='data'; given='scores' takes the parameters for known.")
    training = read_training_rows(nb.fitted_, rows, groups) if by_rows else None
    log_likelihood = compute_dask(nb.predict_log_proba(X_unlabeled, class_prior=np.full(n_classes, 1.0 / n_classes)))
    undefined = np.isnan(log_likelihood).any(axis=1)
    if undefined.any():
        raise ValueError(
            f"X_unlabeled: {undefined.sum()} of {len(undefined)} rows have no class probabilities under this estimate "
            f"(first: row {int(np.argmax(undefined))}). Leave them out, or use a classifier with estimate='predictive'."
        )
    mode, gap = np.full(n_classes, np.nan), 0.0
    if (concentration >= 1).all():
        mode, gap = ShareModel.from_rows(log_likelihood, concentration).maximize(concentration - 1.0)
    tails = np.array([(1.0 - prob) / 2.0, (1.0 + prob) / 2.0])
    rng = np.random.default_rng(seed)
    posteriors, drawn, n_parameters = [], iter([log_likelihood]), 1
    if given == "data":
        n_parameters = min(draws, _PARAMETER_DRAWS)
        drawn = _draw_log_likelihoods(nb.fitted_, X_unlabeled, len(log_likelihood), n_parameters, rng, training)
    with progress("draws of the parameters", n_parameters) as tick:
        for values, batch in zip(drawn, np.array_split(np.arange(draws), n_parameters), strict=True):
            posteriors.append(ShareModel.from_rows(values, concentration).summarize(tails, len(batch), rng))
            tick()
    posterior = average(posteriors, tails)
    reason, effective = "The rows hardly tell some classes apart", posterior.effective_draws.min()
    if gap > _NEGLIGIBLE:
        warn(f"{reason}: `mode` is inexact, because EM stopped up to {gap:.2g} nats below the maximum.")
    if effective < min(_LEAST_SIZE, draws / 2):
        warn(f"{reason}: {draws} draws are worth {effective:.0f} independent draws. Take more, or use other features.")
    log_class, n_labelled = nb.class_log_prior_, nb.fitted_.statistics.class_count.sum()
    known: dict[str, Any] = {"prob": prob, "n_rows": len(log_likelihood), "given": given, "mode": mode}
    known["p_value"] = _p_value(log_likelihood, log_class, n_labelled)
    return Prevalence(classes=nb.classes_, training=np.exp(log_class), **known, **posterior._asdict())


def _p_value(log_likelihood: np.ndarray, log_class: np.ndarray, n_labelled: float) -> np.ndarray:
    """Return (C,) p-values by the mean of P(class | row) over rows, see the notes of `estimate_prevalence`.

    `log_likelihood` (N, C) is log p(row | class), up to a number per row.
    """
    share = np.exp(log_class)
    with np.errstate(invalid="ignore"):
        proba = softmax(log_likelihood + log_class, axis=1)
    calibrated = share * (1.0 - share) - np.mean(proba * (1.0 - proba), axis=0)
    error = np.sqrt(np.maximum(calibrated, proba.var(axis=0)) * (1.0 / len(proba) + 1.0 / n_labelled))
    return np.asarray(2.0 * ndtr(-abs(proba.mean(axis=0) - share) / np.maximum(error, np.finfo(float).eps)))


def _draw_log_likelihoods(
    fitted: Fitted, X: object, n_rows: int, n: int, rng: np.random.Generator, training: TrainingRows | None
) -> Iterator[np.ndarray]:
    """Yield (N, C) log p(row | class, θ), up to a number per row, for n draws θ, which vary as `training` rows do."""
    draw = draw_posterior if training is None else partial(draw_with_rows, training=training)
    n_classes = len(fitted.encoding.classes)
    cells = n_rows * n_classes + sum(np.size(leaf) for leaf in jax.tree.leaves(fitted.posterior))
    size = max(1, min(n, _MOST_CELLS // cells))
    for start in range(0, n, size):
        seed = int(rng.integers(2**32))
        draws = read_parameters(fitted, draw(fitted, draws=min(size, n - start), seed=seed))
        drawn = draws.known_classes(np.full(n_classes, 1.0 / n_classes)).with_weights(fitted, seed, of_likelihood=True)
        yield from evaluate_rows(fitted, X, partial(_score, fitted, drawn)).swapaxes(0, 1)


def _score(fitted: Fitted, drawn: Parameters, rows: tuple[Rows, ...], n: int) -> np.ndarray:
    """Return (n, S, C) log P(class | row, θ) of encoded rows for S draws θ."""

    def score_block(x: tuple[object, ...], _: int) -> np.ndarray:
        joints: Any = np.concatenate([np.asarray(joint) for joint in drawn.joints(fitted, x)])
        return np.asarray(log_normalize(joints)).swapaxes(0, 1)

    return map_blocks(rows, n, score_block, 4 * len(drawn) * len(fitted.encoding.classes))
