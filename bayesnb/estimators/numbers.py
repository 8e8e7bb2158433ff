"""Classifiers for numbers: Gaussian, Poisson and exponential features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bayesnb import scoring
from bayesnb.encoding import Columns, RealColumns, Table
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.defaults import CLASS_ALPHA
from bayesnb.families import GammaExponential, GammaPoisson, NormalInverseGamma
from bayesnb.model import Estimate


class NumbersNB(NaiveBayesClassifier):
    """Naive Bayes for numbers of one conjugate `family`, which says all that there is to say."""

    family: ClassVar[Any]

    def __init__(
        self,
        *,
        prior: Any = "pooled",
        class_alpha: Any = CLASS_ALPHA,
        class_prior: Any = None,
        estimate: Estimate = "predictive",
    ) -> None:
        self.prior = prior
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.estimate = estimate

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        n = len(table.names)
        return (RealColumns(range(n), table.names, n, self.family),)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = self.family.nonnegative
        tags.classifier_tags.poor_score = self.family.nonnegative
        return tags


class GaussianNB(NumbersNB):
    """Naive Bayes for Gaussian features with unknown means and variances.

    Parameters
    ----------
    prior : {"within", "pooled"}, NormalInverseGamma, EmpiricalNormal or NaiveBayes, default "within"
        Empirical Bayes: loc is a feature's mean over all rows, worth a tenth of a row (κ = 0.1), and b its variance
        "within" the classes, worth two (a = 1). "pooled" takes the variance over all rows for b, which is too large
        where classes lie apart: variances are biased, 90% intervals of rows cover .03 of the time at six standard
        deviations, and the evidence is lower (iris: by 80 nats). But what is too large undoes some of naive Bayes'
        certainty, so that with few rows the log loss may be lower (docs/priors.md). `EmpiricalNormal` of
        `bayesnb.families` has other κ and a, a distribution is used as given, its fields scalars, (F,) or (C, F).
    class_alpha : scalar or (C,) array
        Concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or their prior.
    estimate : {"predictive", "mean", "map", "mle"}
        "predictive" integrates the parameters out, to Student's t; the others are plugged in.

    Attributes
    ----------
    theta_, var_ : (C, F) arrays
        Posterior means of the means and of the variances.
    classes_, class_count_, class_log_prior_ : (C,) arrays
    prior_, posterior_ : NaiveBayes
    statistics_ : Statistics
    log_evidence_ : float
        Given the prior, also where that is derived from the data.

    Notes
    -----
    NaN is a missing cell and contributes nothing, which assumes it missing at random.

    Examples
    --------
    >>> from bayesnb import GaussianNB
    >>> nb = GaussianNB().fit([[1.0], [1.2], [3.0], [3.1]], ["low", "low", "high", "high"])
    >>> nb.predict([[2.9]])
    array(['high'], dtype='<U4')
    """

    family = NormalInverseGamma

    def __init__(
        self,
        *,
        prior: Any = "within",
        class_alpha: Any = CLASS_ALPHA,
        class_prior: Any = None,
        estimate: Estimate = "predictive",
    ) -> None:
        super().__init__(prior=prior, class_alpha=class_alpha, class_prior=class_prior, estimate=estimate)

    @property
    def theta_(self) -> np.ndarray:
        """(C, F) posterior means of the means."""
        self._require_fitted("theta_")
        return scoring.plug_in(self.posterior_.blocks[0]).mu

    @property
    def var_(self) -> np.ndarray:
        """(C, F) posterior means of the variances."""
        self._require_fitted("var_")
        return scoring.plug_in(self.posterior_.blocks[0]).sigma2


class PoissonNB(NumbersNB):
    """Naive Bayes for counts with a rate each: λ_cj ~ Gamma(a, b).

    Parameters
    ----------
    prior : "pooled", GammaPoisson or NaiveBayes, default "pooled"
        "pooled" is Gamma(1, 1/mean), with the feature's mean over all rows: empirical Bayes.
    class_alpha, class_prior, estimate
        As for `GaussianNB`; "predictive" is the negative binomial.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Sum of the counts of each feature in each class.
    rate_ : (C, F) array
        Posterior means of the rates.
    classes_, class_count_, class_log_prior_, prior_, posterior_, statistics_, log_evidence_
        As for `GaussianNB`.

    Notes
    -----
    NaN is a missing cell. Non-negative numbers that are not whole are accepted, as MultinomialNB does;
    the evidence is then that of a pseudo-likelihood.

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
        """(C, F) sum of the counts of each feature."""
        self._require_fitted("feature_count_")
        return self.statistics_.blocks[0].total

    @property
    def rate_(self) -> np.ndarray:
        """(C, F) posterior means of the rates."""
        self._require_fitted("rate_")
        return scoring.plug_in(self.posterior_.blocks[0]).rate


class ExponentialNB(NumbersNB):
    """Naive Bayes for durations with a rate each: λ_cj ~ Gamma(a, b), x ~ Exponential(λ_cj).

    Parameters
    ----------
    prior : "pooled", GammaExponential, EmpiricalDuration or NaiveBayes, default "pooled"
        "pooled" is Gamma(1, mean), with the feature's mean over all rows, worth one row: empirical Bayes.
    class_alpha, class_prior, estimate
        As for `GaussianNB`; "predictive" is the Lomax distribution.

    Attributes
    ----------
    rate_ : (C, F) array
        Posterior means of the rates, one over the unit of X.
    classes_, class_count_, class_log_prior_, prior_, posterior_, statistics_, log_evidence_
        As for `GaussianNB`.

    Notes
    -----
    NaN is a missing cell; of a duration that was cut short nothing but that is known here.

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
        self._require_fitted("rate_")
        return scoring.plug_in(self.posterior_.blocks[0]).rate


OF_KIND: dict[str, type[NumbersNB]] = {cls.family.kind: cls for cls in (GaussianNB, PoissonNB, ExponentialNB)}
"""The classifier for columns of one kind of numbers."""
