"""Classifiers for numbers: Gaussian, Poisson and exponential features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from bayesnb.encoding import Columns, RealColumns, Table
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.defaults import CLASS_ALPHA
from bayesnb.families import GammaExponential, GammaPoisson, NormalInverseGamma
from bayesnb.fitted import scoring
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
        return (RealColumns(*table.columns_at(range(len(table.names))), self.family),)

    @property
    def _tags(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of scikit-learn's tags that hold; "positive_only" and "poor_score" for non-negative families."""
        return ("allow_nan", *(("positive_only", "poor_score") if self.family.nonnegative else ()))


@dataclass(eq=False, repr=False)
class GaussianNB(NumbersNB):
    r"""Naive Bayes for features that are normally distributed given the class, with unknown means and variances.

    Given the class, the features are independent and normal:

    .. math::

        & p(c, x \mid \pi, \mu, \sigma^2) = \pi_c \prod_{j=1}^F N(x_j \mid \mu_{cj}, \sigma^2_{cj}), \\
        & \sigma^2_{cj} \sim \mathrm{InverseGamma}(a, b), \quad
        \mu_{cj} \mid \sigma^2_{cj} \sim N(m, \sigma^2_{cj}/\kappa),

    with π ~ Dirichlet(`class_alpha`). The posterior of each (μ_cj, σ²_cj) is normal-inverse-gamma again; see
    docs/derivations/conjugate.md, "Normal observations".

    Parameters
    ----------
    prior : {"within", "pooled"}, NormalInverseGamma, EmpiricalNormal or NaiveBayes, default "within"
        Prior of the mean and variance of each feature, or a complete prior of the classifier. "within": empirical
        Bayes, with m the mean of the feature over all rows, which counts as a tenth of a row (κ = 0.1), and b its
        variance within the classes, which counts as two rows (a = 1). "pooled": the same, with b the variance over all
        rows; see the notes. `bayesnb.families.EmpiricalNormal` takes other κ and a. A NormalInverseGamma is used as
        given; its fields are scalars, (F,) or (C, F).
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate. Here "predictive" is Student's t distribution.

    Attributes
    ----------
    theta_ : (C, F) array
        Posterior mean of each mean μ_cj.
    var_ : (C, F) array
        Posterior mean of each variance σ²_cj.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        Log evidence log p(X, y): the parameters are integrated out. Under a prior that is derived from the data, the
        evidence is conditional on that prior.

    See Also
    --------
    BinnedNB : Densities of any shape.
    MixedNB : Normal or binned densities, chosen for each column, and categorical columns.
    NormalInverseGamma : Prior of means and variances.
    parameter_table : Posterior intervals of means and variances.

    Notes
    -----
    NaN is a missing cell and contributes nothing, on the assumption that cells are missing at random.

    The variance over all rows, `prior="pooled"`, is too large if the classes lie far apart. In simulations with class
    means six standard deviations apart, 90% intervals of class probabilities covered the truth in .03 of the data sets;
    on iris the log evidence is 80 nats lower. With few rows, the log loss under "pooled" may still be lower than under
    "within", because inflated variances undo some of the overconfidence of naive Bayes (docs/priors.md).

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
        """Posterior mean of each mean μ, (C, F), in the units of the features."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).mu)

    @property
    def var_(self) -> np.ndarray:
        """Posterior mean of each variance σ², (C, F), in squared units of the features."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).sigma2)


class PoissonNB(NumbersNB):
    r"""Naive Bayes for counts that are Poisson distributed given the class, with a gamma prior of the rates.

    Given the class, the features are independent counts:

    .. math::

        & p(c, x \mid \pi, \lambda) = \pi_c \prod_{j=1}^F \frac{\lambda_{cj}^{x_j} e^{-\lambda_{cj}}}{x_j!}, \\
        & \pi \sim \mathrm{Dirichlet}(\mathtt{class\_alpha}), \quad \lambda_{cj} \sim \mathrm{Gamma}(a, b),

    where λ_cj is the expected count of feature j in a row of class c, and b is a rate. The posterior of λ_cj is Gamma(a
    + Σx, b + n), with Σx the sum of the counts and n the weight of the rows; see
    docs/derivations/conjugate.md, "Poisson counts".

    Parameters
    ----------
    prior : "pooled", GammaPoisson or NaiveBayes, default "pooled"
        Prior of the rate of each feature, or a complete prior of the classifier. "pooled": empirical Bayes, with a = 1
        and b = 1/mean, for the mean of the feature over all rows. A GammaPoisson is used as given; its fields are
        scalars, (F,) or (C, F).
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate. Here "predictive" is the negative binomial distribution.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Sum of the counts of each feature in each class.
    rate_ : (C, F) array
        Posterior mean of each rate λ_cj, in counts per row.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        Log evidence log p(X, y): the parameters are integrated out. Under a prior that is derived from the data, the
        evidence is conditional on that prior.

    See Also
    --------
    MultinomialNB : Counts that share a total, such as words of a document.
    ExponentialNB : Durations.
    GammaPoisson : Prior of the rates.
    posterior_predictive_check : Test of whether the counts are Poisson distributed.

    Notes
    -----
    NaN is a missing cell, which contributes nothing. Non-negative numbers that are not whole are accepted; the evidence
    is then that of a pseudo-likelihood.

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
        """Sum of the counts of each feature in each class, (C, F)."""
        return np.asarray(self.statistics_.blocks[0].total)

    @property
    def rate_(self) -> np.ndarray:
        """Posterior mean of each rate λ, (C, F), in counts per row."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).rate)


class ExponentialNB(NumbersNB):
    r"""Naive Bayes for durations that are exponentially distributed given the class, with a gamma prior of the rates.

    Given the class, the features are independent durations x_j ≥ 0:

    .. math::

        & p(c, x \mid \pi, \lambda) = \pi_c \prod_{j=1}^F \lambda_{cj} e^{-\lambda_{cj} x_j}, \\
        & \pi \sim \mathrm{Dirichlet}(\mathtt{class\_alpha}), \quad \lambda_{cj} \sim \mathrm{Gamma}(a, b),

    where b is a rate. The posterior of λ_cj is Gamma(a + n, b + Σx), with n the weight of the rows and Σx the sum of
    the durations.

    Parameters
    ----------
    prior : "pooled", GammaExponential, EmpiricalDuration or NaiveBayes, default "pooled"
        Prior of the rate of each feature, or a complete prior of the classifier. "pooled": empirical Bayes, with a = 1
        and b the mean of the feature over all rows, which counts as one row. `bayesnb.families.EmpiricalDuration` takes
        other strengths. A GammaExponential is used as given; its fields are scalars, (F,) or (C, F).
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate. Here "predictive" is the Lomax distribution.

    Attributes
    ----------
    rate_ : (C, F) array
        Posterior mean of each rate λ_cj, in units of one over the unit of X.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        Log evidence log p(X, y): the parameters are integrated out. Under a prior that is derived from the data, the
        evidence is conditional on that prior.

    See Also
    --------
    GaussianNB : Numbers that may be negative.
    PoissonNB : Counts.
    BinnedNB : Densities of any shape.
    GammaExponential : Prior of the rates.

    Notes
    -----
    NaN is a missing cell, which contributes nothing. A censored duration can only be given as a missing cell.

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
        """Posterior mean of each rate λ, (C, F), in units of one over the unit of X."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).rate)


OF_KIND: dict[str, type[NumbersNB]] = {cls.family.kind: cls for cls in (GaussianNB, PoissonNB, ExponentialNB)}
"""Classifiers by the kind of numbers in their columns."""
