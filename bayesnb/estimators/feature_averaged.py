"""Naive Bayes averaged over the sets of features that depend on the class."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import bad_argument, require_number, to_numbers
from bayesnb._util.precision import float64
from bayesnb.encoding import Columns, Encoding, Table
from bayesnb.encoding.table import is_labelled, match_columns
from bayesnb.estimators.base import NaiveBayesClassifier, wrapped_estimator
from bayesnb.estimators.defaults import INCLUSION
from bayesnb.estimators.discrete import CategoricalNB
from bayesnb.estimators.display import require_unnested
from bayesnb.families import EmpiricalAveraged, averaged
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import require_estimate
from bayesnb.model import Estimate, NaiveBayes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(eq=False, repr=False)
class FeatureAveragedNB(NaiveBayesClassifier):
    r"""Naive Bayes averaged over all 2^F sets of features that depend on the class.

    A feature outside the set has the same distribution in every class. A priori each feature is in the set with
    probability ρ, independently. Given the data D the indicators of the features remain independent, so that the exact
    average is a product:

    .. math::

        p(c, x \mid D) = p(c \mid D) \prod_{f=1}^F
        \big[ \rho'_f\, p(x_f \mid c, D) + (1 - \rho'_f)\, p(x_f \mid D) \big],

    with ρ'_f the posterior probability that feature f depends on the class; see
    docs/derivations/evidence_and_leave_one_out.md, "Averaging over features".

    Parameters
    ----------
    estimator : classifier of bayesnb, optional
        Classifier whose columns, options and priors are used, both for each class and for all classes together.
        Default: `CategoricalNB()`. The features may be categorical, Bernoulli, Gaussian, Poisson or mixed, but not
        multinomial.
    inclusion : scalar, (F,) array, or dict or Series by feature, default 0.5
        Prior probability ρ that a feature depends on the class: one number for all features, or one per feature. A dict
        or Series names features; those that it does not name keep 0.5.
    expected_features : float, optional
        Prior expectation of the number of features that depend on the class. Replaces `inclusion`: each feature is
        included with probability expected_features / F.
    estimate : {"predictive", "mean"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out; "mean" plugs in
        their posterior mean.

    Attributes
    ----------
    inclusion_probability_ : (F,) array
        Posterior probability ρ'_f that each feature depends on the class, in the order of the columns of X.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters; the blocks are `bayesnb.families.Averaged`.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        Log evidence log p(X, y): the parameters are integrated out.

    See Also
    --------
    CategoricalNB : All features depend on the class.
    TreeAveragedNB : Average over dependences between features.
    check_independence : Tests of dependence between features.
    WeightedNB : Weights of features, fitted to held-out labels.

    Notes
    -----
    Inclusion also depends on the prior of the parameters: for Gaussian features on κ, see `inclusion_by_kappa`. Of two
    copies of a feature each is included, and both are counted.

    References
    ----------
    Dash & Cooper, *Exact model averaging with naive Bayesian classifiers*, ICML 2002. Wei, Visweswaran & Cooper, *The
    application of naive Bayes model averaging to predict Alzheimer's disease from genome-wide data*, JAMIA 18 (2011).

    Examples
    --------
    >>> from bayesnb import FeatureAveragedNB
    >>> X = [["sun", "a"], ["sun", "b"], ["rain", "a"], ["rain", "b"]] * 3
    >>> nb = FeatureAveragedNB().fit(X, ["out", "out", "in", "in"] * 3)
    >>> nb.inclusion_probability_.round(2)
    array([1.  , 0.38])
    """

    estimator: Any = None
    _: KW_ONLY
    inclusion: object = INCLUSION
    expected_features: float | None = None
    estimate: Estimate = "predictive"

    _estimates = ("predictive", "mean")

    def __post_init__(self) -> None:
        require_unnested(self)

    @property
    def inclusion_probability_(self) -> np.ndarray:
        """Posterior probability that each feature depends on the class, (F,), in the order of the columns of X."""
        return np.asarray(expit(self.encoding_.sort_columns(block.log_odds for block in self.posterior_.blocks)))

    def inclusion_by_kappa(self, kappa: tuple[float, ...] = (0.01, 0.1, 1.0)) -> pd.DataFrame:
        """Compute the inclusion probabilities of Gaussian features for several strengths κ of their prior.

        A vague prior of the means (small κ) lowers the evidence of dependence, by a factor that does not vanish with
        more rows.

        Parameters
        ----------
        kappa : tuple of float
            Prior strengths of the means, in rows.

        Returns
        -------
        DataFrame
            Inclusion probabilities: one row per feature, one column per κ.

        Examples
        --------
        >>> from bayesnb import FeatureAveragedNB, GaussianNB
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> FeatureAveragedNB(GaussianNB()).fit(X[::10], y[::10]).inclusion_by_kappa().round(3)
        kappa     0.01   0.10   1.00
        feature
        0        0.978  0.996  0.992
        1        0.710  0.954  0.983
        2        1.000  1.000  1.000
        3        1.000  1.000  1.000
        """
        import pandas as pd

        check_is_fitted(self)
        blocks = zip(self.encoding_.blocks, self.prior_.blocks, self.statistics_.blocks, strict=True)
        gaussian = [block for block in blocks if "kappa" in block[1].dependent.tunable]
        if not gaussian:
            raise ValueError(
                "inclusion_by_kappa needs Gaussian features, and this classifier has none. Use "
                "FeatureAveragedNB(GaussianNB()), or `inclusion_`."
            )
        inclusion, (columns, prior, statistics) = {}, gaussian[-1]
        for value in kappa:
            vague = averaged(prior.dependent.with_hyperparameters({"kappa": value}), prior.log_odds)
            inclusion[value] = expit(float64(vague.update)(statistics).log_odds)
        return pd.DataFrame(inclusion, index=pd.Index(columns.names, name="feature")).rename_axis(columns="kappa")

    def __sklearn_tags__(self) -> Any:
        return self._base().__sklearn_tags__()

    def _made_choices(self, encoding: Encoding) -> tuple[str, ...]:
        """Return the names of hyperparameters that were tuned on the counted rows, here or on `estimator`."""
        return (*super()._made_choices(encoding), *getattr(self._base(), "tuned_", ()))

    def _base(self) -> NaiveBayesClassifier:
        """Return the hyperparameter `estimator`, by default `CategoricalNB()`; ValueError if it is unusable."""
        return wrapped_estimator(self, CategoricalNB())

    @property
    def _concentrations(self) -> object:
        """Hyperparameter `alpha` of the estimator."""
        return self._base()._concentrations

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return the estimator's blocks of columns; NotImplementedError for arcs, word counts and shared parameters."""
        columns = self._base()._columns(table)
        for block in columns:
            if block.network is not None or block.one_simplex or block.family.classes_share_parameters:
                kind = "columns with arcs" if block.network is not None else f"{block.kind} columns"
                raise NotImplementedError(
                    "FeatureAveragedNB needs features that are independent given the class, with separate parameters "
                    f"in each class; the estimator has {kind}. Use CategoricalNB, BernoulliNB (words as presence), "
                    "PoissonNB (words as counts) or GaussianNB as `estimator`."
                )
        return columns

    def _empirical_prior(self, counted: Counted) -> NaiveBayes:
        """Return the estimator's prior, each family as a mixture of parameters that depend on the class or do not."""
        require_estimate(self.estimate, self._estimates)
        base = self._base()._empirical_prior(counted)
        log_odds = self._prior_log_odds(counted.encoding)
        blocks = [
            (EmpiricalAveraged if callable(family) else averaged)(family, log_odds[list(columns.index)])
            for columns, family in zip(counted.encoding.blocks, base.blocks, strict=True)
        ]
        return NaiveBayes(base.class_prior, tuple(blocks))

    def _prior_log_odds(self, encoding: Encoding) -> np.ndarray:
        """Return (F,) prior log odds that a feature depends on the class; ValueError for invalid probabilities."""
        n_features = encoding.n_features
        if (expected := self.expected_features) is not None:
            wanted = f"strictly between 0 and {n_features}, the number of features"
            require_number("expected_features", expected, wanted, lambda number: 0 < number < n_features)
            return np.full(n_features, logit(expected / n_features))
        given: Any = self.inclusion
        if is_labelled(given):
            entries = match_columns("inclusion", given, encoding.feature_names)
            given = [entries.get(j, INCLUSION) for j in range(n_features)]
        inclusion = to_numbers("inclusion", given)
        if inclusion.shape not in ((), (n_features,)) or not ((inclusion > 0) & (inclusion < 1)).all():
            wanted = f"a probability strictly between 0 and 1, or one for each of the {n_features} features"
            raise bad_argument("inclusion", self.inclusion, wanted)
        return np.broadcast_to(logit(inclusion), n_features)
