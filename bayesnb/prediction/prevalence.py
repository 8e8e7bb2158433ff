"""Prevalence: posterior of the classes' shares among unlabelled rows, where these differ from the training rows'."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import numpy as np
import pandas as pd
from scipy.special import ndtr, softmax
from sklearn.base import is_classifier

from bayesnb._util.arguments import require_choice, require_integer, require_probability, require_seed, to_numbers
from bayesnb._util.arrays import compute_dask
from bayesnb._util.terminal import card, progress, table
from bayesnb._util.warnings import warn
from bayesnb.encoding import Rows
from bayesnb.encoding.table import match_classes
from bayesnb.fitted.state import Classifier, Fitted, require_fitted
from bayesnb.model import log_normalize
from bayesnb.prediction.share_posterior import ShareModel, average
from bayesnb.uncertainty.draws import draw_posterior
from bayesnb.uncertainty.given_draws import Parameters, read_parameters
from bayesnb.uncertainty.row_draws import map_blocks, map_rows

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
    nb: Classifier,
    X_unlabeled: object,
    alpha: object = 1.0,
    prob: float = 0.9,
    draws: int = 1000,
    seed: int = 0,
    given: Literal["data", "scores"] = "data",
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
    seed : int, default 0
        Seed of the draws.
    given : {"data", "scores"}, default "data"
        "data": the parameters of p(row | class) are uncertain, and the result is averaged over draws from their
        posterior. "scores": p(row | class) is assumed to be known. This is faster, and works for classifiers without a
        posterior, but intervals are too narrow after few labelled rows, see the notes.

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
    θ | D; information of the unlabelled rows about θ is not used.

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
    require_integer("draws", draws)
    require_seed(seed)
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
        drawn = _draw_log_likelihoods(nb.fitted_, X_unlabeled, len(log_likelihood), n_parameters, rng)
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
    fitted: Fitted, X: object, n_rows: int, n: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield (N, C) log p(row | class, θ), up to a number per row, for n draws θ from the posterior."""
    n_classes = len(fitted.encoding.classes)
    cells = n_rows * n_classes + sum(np.size(leaf) for leaf in jax.tree.leaves(fitted.posterior))
    size = max(1, min(n, _MOST_CELLS // cells))
    for start in range(0, n, size):
        draws = draw_posterior(fitted, min(size, n - start), int(rng.integers(2**32)))
        drawn = read_parameters(fitted, draws).known_classes(np.full(n_classes, 1.0 / n_classes))
        yield from map_rows(fitted, X, partial(_score, fitted, drawn)).swapaxes(0, 1)


def _score(fitted: Fitted, drawn: Parameters, rows: tuple[Rows, ...], n: int) -> np.ndarray:
    """Return (n, S, C) log P(class | row, θ) of encoded rows for S draws θ."""

    def score_block(x: tuple[object, ...], _: int) -> np.ndarray:
        joints: Any = np.concatenate([np.asarray(joint) for joint in drawn.joints(fitted, x)])
        return np.asarray(log_normalize(joints)).swapaxes(0, 1)

    return map_blocks(rows, n, score_block, 4 * len(drawn) * len(fitted.encoding.classes))
