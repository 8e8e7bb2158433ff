"""Classifiers for numbers: Gaussian, Poisson and exponential features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from bayesnb import scoring
from bayesnb.encoding import Columns, RealColumns, Table
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.defaults import CLASS_ALPHA
from bayesnb.families import GammaExponential, GammaPoisson, NormalInverseGamma
from bayesnb.model import Estimate


@dataclass(eq=False, repr=False)
class NumbersNB(NaiveBayesClassifier):
    """Naive Bayes for numbers of one conjugate family, the class attribute `family` of a subclass."""

    _: KW_ONLY
    prior: object = "pooled"
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"

    family: ClassVar[Any]

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return one block of all columns of a table, with the conjugate family of the classifier."""
        n = len(table.names)
        return (RealColumns(range(n), table.names, n, self.family),)

    @property
    def _tags(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of scikit-learn's tags that hold; "positive_only" and "poor_score" for non-negative families."""
        return ("allow_nan", *(("positive_only", "poor_score") if self.family.nonnegative else ()))


@dataclass(eq=False, repr=False)
class GaussianNB(NumbersNB):
    """Naive Bayes for Gaussian features with unknown means and variances.

    Parameters
    ----------
    prior : {"within", "pooled"}, NormalInverseGamma, EmpiricalNormal or NaiveBayes, default "within"
        Prior of the mean and variance of each feature, or a complete prior of the classifier. "within" is empirical
        Bayes: loc is the mean of the feature over all rows, worth a tenth of a row (κ = 0.1), and b its variance within
        the classes, worth two rows (a = 1). "pooled" takes the variance over all rows for b, which is too large where
        classes lie far apart: variances are biased, 90% intervals of rows cover .03 of the time at six standard
        deviations, and the evidence is lower (iris: by 80 nats). With few rows its log loss may still be lower, since
        inflated variances undo some of the overconfidence of naive Bayes (docs/priors.md).
        `bayesnb.families.EmpiricalNormal` has other κ and a. A NormalInverseGamma is used as given; its fields are
        scalars, (F,) or (C, F).
    class_alpha : scalar or (C,) array, default 1
        Dirichlet concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or a Dirichlet prior of them, in place of `class_alpha`.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Reading of the posterior in predictions. "predictive" integrates the parameters out; "mean", "map" and "mle"
        plug in the posterior mean, the posterior mode and the maximum likelihood estimate. Here "predictive" is
        Student's t.

    Attributes
    ----------
    theta_ : (C, F) array
        Posterior means of the means.
    var_ : (C, F) array
        Posterior means of the variances.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Weight of the rows of each class.
    class_log_prior_ : (C,) array
        Log posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        log p(X, y), with the parameters integrated out, given the prior, also where that is derived from the data.

    Notes
    -----
    NaN is a missing cell and contributes nothing, on the assumption that cells are missing at random.

    Examples
    --------
    >>> from bayesnb import GaussianNB
    >>> nb = GaussianNB().fit([[1.0], [1.2], [3.0], [3.1]], ["low", "low", "high", "high"])
    >>> nb.predict([[2.9]])
    array(['high'], dtype='<U4')
    """

    _: KW_ONLY
    prior: object = "within"

    family = NormalInverseGamma

    @property
    def theta_(self) -> np.ndarray:
        """(C, F) posterior means of the Gaussian means."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).mu)

    @property
    def var_(self) -> np.ndarray:
        """(C, F) posterior means of the Gaussian variances."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).sigma2)


class PoissonNB(NumbersNB):
    """Naive Bayes for counts: x_j ~ Poisson(λ_cj), λ_cj ~ Gamma(a, b).

    Parameters
    ----------
    prior : "pooled", GammaPoisson or NaiveBayes, default "pooled"
        Prior of the rate of each feature, or a complete prior of the classifier. "pooled" is empirical Bayes: Gamma(1,
        1/mean), with the mean of the feature over all rows.
    class_alpha : scalar or (C,) array, default 1
        Dirichlet concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or a Dirichlet prior of them, in place of `class_alpha`.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Reading of the posterior in predictions. "predictive" integrates the parameters out; "mean", "map" and "mle"
        plug in the posterior mean, the posterior mode and the maximum likelihood estimate. Here "predictive" is the
        negative binomial.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Sum of the counts of each feature in each class.
    rate_ : (C, F) array
        Posterior means of the rates.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Weight of the rows of each class.
    class_log_prior_ : (C,) array
        Log posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        log p(X, y), with the parameters integrated out, given the prior, also where that is derived from the data.

    Notes
    -----
    NaN is a missing cell. Non-negative numbers that are not whole are accepted, as in `MultinomialNB`; the evidence is
    then that of a pseudo-likelihood.

    Examples
    --------
    >>> from bayesnb import PoissonNB
    >>> nb = PoissonNB().fit([[0], [1], [5], [7]], ["quiet", "quiet", "busy", "busy"])
    >>> nb.classes_, nb.rate_.round(2)
    (array(['busy', 'quiet'], dtype='<U5'), array([[5.63],
           [0.87]]))
    >>> nb.predict_proba([[3]]).round(2)
    array([[0.68, 0.32]])
    """

    family = GammaPoisson

    @property
    def feature_count_(self) -> np.ndarray:
        """(C, F) sum of the counts of each feature in each class."""
        return np.asarray(self.statistics_.blocks[0].total)

    @property
    def rate_(self) -> np.ndarray:
        """(C, F) posterior means of the rates."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).rate)


class ExponentialNB(NumbersNB):
    """Naive Bayes for durations: x_j ~ Exponential(λ_cj), λ_cj ~ Gamma(a, b).

    Parameters
    ----------
    prior : "pooled", GammaExponential, EmpiricalDuration or NaiveBayes, default "pooled"
        Prior of the rate of each feature, or a complete prior of the classifier. "pooled" is empirical Bayes: Gamma(1,
        mean), with the mean of the feature over all rows, worth one row.
    class_alpha : scalar or (C,) array, default 1
        Dirichlet concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or a Dirichlet prior of them, in place of `class_alpha`.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Reading of the posterior in predictions. "predictive" integrates the parameters out; "mean", "map" and "mle"
        plug in the posterior mean, the posterior mode and the maximum likelihood estimate. Here "predictive" is the
        Lomax distribution.

    Attributes
    ----------
    rate_ : (C, F) array
        Posterior means of the rates, in units of one over the unit of X.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Weight of the rows of each class.
    class_log_prior_ : (C,) array
        Log posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        log p(X, y), with the parameters integrated out, given the prior, also where that is derived from the data.

    Notes
    -----
    NaN is a missing cell; a censored duration can be given as a missing cell only.

    References
    ----------
    Bernardo & Smith, *Bayesian Theory* (1994), appendix A.

    Examples
    --------
    >>> from bayesnb import ExponentialNB
    >>> nb = ExponentialNB().fit([[0.1], [0.3], [4.0], [2.0]], ["fast", "fast", "slow", "slow"])
    >>> nb.predict([[0.2], [5.0]])
    array(['fast', 'slow'], dtype='<U4')
    """

    family = GammaExponential

    @property
    def rate_(self) -> np.ndarray:
        """(C, F) posterior means of the rates, one over the unit of X."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).rate)


OF_KIND: dict[str, type[NumbersNB]] = {cls.family.kind: cls for cls in (GaussianNB, PoissonNB, ExponentialNB)}
"""Classifiers by the kind of numbers in their columns."""
