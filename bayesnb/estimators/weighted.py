"""Classifier with weights of the terms of another, found by cross-fitting."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import Seed, bad_argument, read_seed, require_integer
from bayesnb._util.warnings import NoWeightsWarning, warn
from bayesnb.encoding import Encoding
from bayesnb.encoding.experts import ExpertColumns
from bayesnb.estimators import classifier_state
from bayesnb.estimators.base import NaiveBayesClassifier, require_same_prior, wrapped_estimator
from bayesnb.estimators.classifier_state import Batch, LabelledRows, Parts
from bayesnb.estimators.plain import MultinomialNB
from bayesnb.estimators.predictions import FittedClassifier, require_unnested
from bayesnb.estimators.structures import KDB
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import WEIGHTS, NotOfferedError, current_state
from bayesnb.kernels import Output
from bayesnb.model import Estimate
from bayesnb.weights.cross_fitting import CrossFit, TooFewRowsError, choose_weights, cross_fit
from bayesnb.weights.experts import ExpertWeights, Gain, cross_fit_experts, pool_experts, read_experts
from bayesnb.weights.terms import Weights, read_weight_draws

# == Fitted attributes of weighted naive Bayes =====================================================


class WeightAttributes(FittedClassifier):
    """Base class of `WeightedNB`: the weights as attributes, and the classifier whose terms have these weights."""

    weights_: Weights | None
    model_: NaiveBayesClassifier
    """Fitted estimator, with the margins of columns that have parents."""

    no_evidence = (
        "WeightedNB has no evidence, because weighted terms are not a joint distribution of rows and labels. For the "
        "evidence of the model without weights, use estimator_.log_evidence_."
    )

    @property
    def log_evidence_(self) -> NoReturn:
        """Raise NotOfferedError, with the reason `no_evidence`."""
        raise NotOfferedError(f"log_evidence_: {self.no_evidence}")

    def _base(self, X: object = None) -> NaiveBayesClassifier:
        """Return the unfitted estimator; by default one that suits X, which is a table of rows or an encoding."""
        raise NotImplementedError

    @property
    def _inner(self) -> NaiveBayesClassifier:
        """Classifier whose terms are weighted, fitted if the `WeightedNB` is."""
        return self.model_ if classifier_state.is_fitted(self) else self._base()

    @property
    def estimate(self) -> Any:  # type: ignore[override]  # Completion by jedi cannot read a Literal, `Estimate`.
        """Estimate of the parameters that predictions use: the hyperparameter `estimate` of the estimator."""
        return self._inner.estimate

    @property
    def no_posterior(self) -> str | None:
        """Reason why the estimator has no exact posterior, or None."""
        return self._inner.no_posterior

    @property
    def estimator_(self) -> NaiveBayesClassifier:
        """Fitted estimator, without the weights."""
        return classifier_state.without_margins(self.model_)

    @property
    def unweighted(self) -> NaiveBayesClassifier:
        """Estimator without the weights, fitted or not."""
        return self.estimator_ if classifier_state.is_fitted(self) else classifier_state.copy_unfitted(self._base())

    @property
    def weight_(self) -> np.ndarray:
        """Weight of the log likelihood of each term, (T,); ones if no weights are fitted."""
        return np.ones(len(self.term_names_)) if self.weights_ is None else self.weights_.weight

    @property
    def term_names_(self) -> tuple[str, ...]:
        """Name of each term, a tuple of T str."""
        return self.fitted_.term_names if self.weights_ is None else self.weights_.names

    @property
    def class_bias_(self) -> np.ndarray:
        """Bias that is added to the log probability of each class, (C,), in nats; zeros without weights."""
        weights, classes = self.weights_, self.fitted_.encoding.classes
        return np.zeros(len(classes)) if weights is None else weights.align_bias(classes, weights.class_bias)

    @property
    def temperature_(self) -> float:
        """Common mean to which weights of margins, or of all terms without structure, are shrunk; 1 if unweighted."""
        return 1.0 if self.weights_ is None else self.weights_.temperature

    @property
    def shrinkage_(self) -> float:
        """Prior standard deviation τ of the weights around `temperature_`; 0 if all weights are equal."""
        return 0.0 if self.weights_ is None else self.weights_.shrinkage

    @property
    def dependence_temperature_(self) -> float:
        """Common mean of the weights of dependences on parents; 0 without such terms, and if no weights are fitted."""
        return 0.0 if self.weights_ is None else self.weights_.dependence_temperature

    @property
    def dependence_shrinkage_(self) -> float:
        """Prior standard deviation of the weights of dependences around their temperature; 0 without dependences."""
        return 0.0 if self.weights_ is None else self.weights_.dependence_shrinkage

    @property
    def length_exponent_(self) -> float:
        """Exponent β by which the weight of a row of t words falls, as (t + 1)^-β; 0 without count rows."""
        return 0.0 if self.weights_ is None else self.weights_.exponent

    @property
    def expected_log_loss_(self) -> float:
        """Expected log loss of the label of a new row, in nats; NaN without weights.

        It is pessimistic if a class has few rows, and leaves out the rows of classes with a single row.
        """
        return np.nan if self.weights_ is None else self.weights_.log_loss

    @property
    def gain_(self) -> Gain:
        """Fall of the expected log loss by experts, with its interval: whether naive Bayes is enough.

        Raises
        ------
        NotOfferedError
            If there are no experts.
        """
        if not isinstance(self.weights_, ExpertWeights):
            raise NotOfferedError("gain_: there are no experts. Fit WeightedNB(experts='auto').")
        return self.weights_.gain

    @property
    def loo_log_loss_(self) -> float:
        """Deprecated name of `expected_log_loss_`."""
        warnings.warn("loo_log_loss_ has been renamed; use expected_log_loss_.", FutureWarning, stacklevel=2)
        return self.expected_log_loss_


# == Weighted naive Bayes: weights of the terms of a classifier, fitted on random halves of the rows

_KINDS = ("auto", "feature", "temperature")
_EXPERTS_REFIT = "which learn from all rows at once. Call fit with all rows."


@dataclass(eq=False, repr=False)
class WeightedNB(WeightAttributes):
    r"""Weighted naive Bayes: calibrated class probabilities by weights of the terms of a classifier.

    Naive Bayes counts evidence more than once if features depend on each other, and is then overconfident. The weighted
    classifier has

    .. math::

        P(c \mid x) \propto \exp\Big( b_c + \log\pi_c + \sum_{t=1}^T w_t \log p(x_t \mid c, D) \Big),

    with one weight w_t per term and one bias b_c per class; naive Bayes has w = 1 and b = 0. The weights and biases are
    those with which fits to random halves of the rows predict the labels of the other halves best. The estimator is
    then fitted to all rows. See docs/derivations/weights.md, "Weights from halves".

    Parameters
    ----------
    estimator : classifier of bayesnb, optional
        Classifier whose terms are weighted. Default: `KDB(gaussian="dtype", max_features=None)` for tables of any kind,
        which is `MixedNB()` if no column gets parents, and `MultinomialNB()` for sparse matrices. Each column has one
        term. A column with parents has two: its margin log p(x_j | c), and its dependence on the parents, log p(q_j |
        c, parents) - log p(q_j | c), with q_j the level, or the cell of a number. Counts that share a simplex
        (`MultinomialNB`) are one term, whose weight decreases with the total t of the row as (t + 1)^-β. An average of
        models (`AODE`) has one term per member, or with "temperature" one term, the average.
    weights : {"auto", "feature", "temperature"} or Weights, default "auto"
        "feature": one weight per term, shrunk to a common temperature to the extent that the data support, and one bias
        per class. "temperature": one weight for all terms, and no biases. "auto": "feature" for two terms or more, else
        "temperature". `weights_` of another `WeightedNB`, fitted to other rows, are kept by `fit`.
    max_rows : int, default 10,000
        Largest number of rows whose labels are predicted. If there are more, a sample is predicted, stratified by
        class. The halves contain all rows.
    seed : int, JAX key, RandomState or Generator, default 0
        Seed of the random halves, and of the sample.
    random_state : int, JAX key, RandomState, Generator or None, default None
        Seed in place of `seed`, under scikit-learn's name: `BaggingClassifier` gives each of its members another one. A
        generator of NumPy gives each fit another seed. None: `seed`, so that fits are reproducible. Also the
        `random_state` of the default estimator.
    experts : "auto", or list of classifiers or of (name, classifier) pairs, default ()
        Classifiers of scikit-learn's kind, with `predict_proba`, each of which is one more term log q(c | x) - log
        P(c). "auto": gradient boosting, a random forest and logistic regression, for tables of any kind, with missing
        cells. Fits take ten times as long or more: an expert is fitted to each of six to twelve halves, and to all
        rows. An expert is fitted to the positions of the classes in `classes_`. It reads a DataFrame of float columns,
        NaN where missing, and of categorical columns, whose categories are the levels of all rows; or a sparse matrix
        of words. It gets the weights of the rows if its `fit` takes them, and `seed` if it has a `random_state` of
        None.
    n_jobs : int, default None
        Number of fits of experts at a time, as in scikit-learn; None: 1.

    Attributes
    ----------
    weight_ : (T,) array
        Weight w_t of each term. A weight may be negative if other terms count the evidence of its term too often.
    term_names_ : tuple of str
        Name of each term.
    class_bias_ : (C,) array
        Bias b_c that is added to the log probability of each class, in nats; 0 with a temperature.
    temperature_ : float
        Common mean of the weights of margins, or of all terms of classifiers without structure.
    shrinkage_ : float
        Standard deviation τ of these weights around the temperature: the smallest of 0, .03, .1, .3 and 1 whose Bayes
        factor against the best is at least 1/10. 0 is temperature scaling.
    dependence_temperature_, dependence_shrinkage_ : float
        Temperature and τ of the weights of dependences; 0 without such terms.
    length_exponent_ : float
        Exponent β; 0 without rows of counts.
    expected_log_loss_ : float
        Expected log loss of the label of a new row, in nats: the mean over rows of the loss by fits to halves without
        the row, under weights that are corrected for the row. Fits to half of the rows predict less well than a fit to
        all rows, so that the expected loss is pessimistic if a class has few rows: in simulations by .04 with 2 classes
        of 15 rows, .01 with 2 of 150, .5 with 20 of 8 and .2 with 20 of 24. Rows of classes with a single row are not
        in it. `loo_log_loss_` is its former name, deprecated.
    weights_ : Weights or None
        Fitted weights, with the standard deviations that `weight_table` shows.
    experts_ : dict {name: classifier}
        Experts that are fitted to all rows; only with experts.
    gain_ : Gain
        Fall of the expected log loss by experts, in nats a row: `gain`, its 90% interval over rows `lower` to `upper`,
        and `share`, the part ω of the scores with experts in the predictions. If `lower` is above 0, naive Bayes is not
        enough here. Only with experts.
    estimator_ : classifier
        Fitted estimator, without the weights.
    unweighted : classifier
        Fitted estimator without the weights; before `fit`, the unfitted estimator.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters of the estimator. They do not depend on the weights.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.

    See Also
    --------
    weight_table : Weights with intervals.
    KDB : Default estimator.
    conformal : Sets of labels with guaranteed coverage.
    compare_estimates : Scores on held-out rows.

    Notes
    -----
    Three random splits into halves, stratified by class (up to six splits of fewer than 1,000 rows), are fitted both
    ways. Arcs are learned anew in each half, with the levels and cells of all rows, and with the densities that the fit
    to all rows has chosen by halves of its own. A row of weight 2 is in one half, and so are copies of a row and the
    rows of a group, see `fit`: copies of a row and weights of rows give the same weights, up to the chance of halves if
    distinct rows are in another order. Standard deviations of weights treat the rows of a group as independent. Columns
    of more than 1,000 levels get no arcs. Given one half, the labels of the other are independent, so that the log
    score of the other half is a log likelihood of the weights. Each row has an equal part of its weight in each split.
    With the priors b ~ N(0, 1), T ~ N(1, 1), for dependences T ~ N(½, 1), and w_t ~ N(T, τ²), the penalised score has
    one maximum. BFGS finds it, with few Hessians; beyond 500 terms it is L-BFGS on sparse differences from the most
    frequent values. The evidence of this likelihood chooses τ. The number of parents of a `KDB` is chosen by
    `expected_log_loss_`: the fewest parents within .001 nats, or one standard error, of the least loss. Leave-one-out
    scores would be optimistic, as the label of each row is in the tables of all others: on noise, 100 rows and 40
    columns, they gave weights with a true loss of .77, halves .70.

    The weighted model is not a joint distribution of row and label, so that it has no evidence, and no `given="row"`:
    intervals and decisions are `given="data"` by default. They show the effect of the posterior of the parameters on
    the weighted scores, and that of the posterior of the weights, see `Weights.draw`.

    With experts the score is that of a logarithmic opinion pool. Experts are fitted to the same halves, and their
    probabilities, at least .0001, count for the rows of the other half. The weight of an expert is v ~ N(½, 1). Weights
    without and with experts are both fitted, and averaged by the share ω, the posterior probability of the latter by
    held-out losses, under prior odds of 1 to 10: see docs/derivations/weights.md, "Experts". The chosen weights of
    single experts say little where these agree with each other; the gain says what they add together. Intervals,
    decisions and draws take experts as given, so that 90% intervals are too narrow: they covered .44 and .73 on tables
    of 300 rows, without experts .86 and .82. Experts take no part beside an average of models, such as `AODE`, or
    beside more than 500 terms. `partial_fit`, `forget`, `save`, SQL and `run_nuts` are refused; joblib stores a
    classifier with experts.

    Weights and biases are fitted with the class probabilities of the rows. A `class_prior` of the estimator replaces
    these probabilities in predictions, and biases do not undo it. Draws and moments of the parameters treat the tables
    of a column given its parents and given the class alone as independent, although they are not if both have a weight:
    such intervals are somewhat too wide.

    `partial_fit`, `forget` and `decay` change the counts and keep the weights. `fit_stream` and `distributed.fit` do
    not fit weights: `weigh` fits them afterwards, to rows that fit into memory. With fewer than ten rows outside the
    largest class, where copies, the rows of a group, and a row of any weight count at most once, `fit` warns, and the
    weights are 1.

    References
    ----------
    Hand & Yu, *Idiot's Bayes: not so stupid after all?*, Int. Stat. Rev. 69 (2001), on why naive Bayes works. Guo et
    al., *On calibration of modern neural networks*, ICML 2017, on temperatures. Genest & Zidek, *Combining probability
    distributions*, Statistical Science 1 (1986), on opinion pools. Peduzzi et al., *A simulation study of the number of
    events per variable in logistic regression analysis*, J. Clin. Epidemiol. 49 (1996), on the ten rows.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import CategoricalNB, WeightedNB
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> x = np.where(rng.random(500) < 0.8, y, 1 - y)
    >>> X = np.column_stack([x, x, x])  # three copies of one feature
    >>> [float(nb.fit(X, y).predict_proba([[1, 1, 1]])[0, 1].round(2)) for nb in (CategoricalNB(), WeightedNB())]
    [0.99, 0.84]
    """

    estimator: object = None
    weights: Any = "auto"
    _: KW_ONLY
    max_rows: int = 10_000
    seed: Seed = 0
    random_state: object = None
    experts: object = ()
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        require_unnested(self)

    # -- fitting ---------------------------------------------------------------------------------

    def fit(self, X: object, y: object, sample_weight: object = None, groups: object = None) -> Self:
        """Fit the weights of terms on random halves of the rows, and the estimator to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        y : array-like of shape (N,)
            Labels of any hashable type.
        sample_weight : array-like of shape (N,), optional
            Replication counts; default: 1. A row of weight 2 counts as two rows, which are in the same random half. A
            row of weight zero adds its label to `classes_`, and nothing else.
        groups : array-like of shape (N,), optional
            Group of each row, such as a patient or a day. Rows of a group are in the same random half, so that weights
            and `expected_log_loss_` hold for rows of new groups; counts do not depend on groups. Default: rows that are
            equal in every cell, one of them in a column of mostly distinct numbers, are a group, as copies of one row,
            and each other row is alone.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data, the groups or a hyperparameter cannot be used; the estimator is left as it was.

        Warns
        -----
        SuspiciousColumnWarning
            If columns are probably not what they are treated as, such as identifiers, numbers written as text, numbers
            that mark missing cells, and copies; see `check_table`. If labels or levels of two types mean the same, such
            as "yes" and True. There is one warning for all.
        CopiedRowsWarning
            If `groups` are not given, and 1% of the rows of a class or more are copies of other rows.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> nb = WeightedNB(GaussianNB()).fit(*load_iris(return_X_y=True))
        >>> nb.class_count_, nb.weights_.n_rows
        (array([50., 50., 50.]), 150)
        """
        self._require_arguments()

        base = self._unfitted_model(X)
        simplest = self._simplest(base)
        every = classifier_state.read_batch(simplest, X, y, sample_weight, groups=groups)
        encoded = simplest._fit(every)
        classifier_state.replace_state(self, self._weigh(base, simplest, encoded, every))
        model = self.unweighted
        model._warn_of_columns()
        model.encoding_.warn_of_suspicious_columns(encoded.table, encoded.label)
        return self

    def refit(self, X: object, y: object, sample_weight: object = None, groups: object = None) -> Self:
        """Return a copy that is fitted to other rows, with new weights and the levels of this classifier.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        y : array-like of shape (N,)
            Labels of the rows.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1.
        groups : array-like of shape (N,), optional
            Group of each row; see `fit`.

        Returns
        -------
        WeightedNB
            Fitted copy; this classifier is not changed.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> WeightedNB(GaussianNB()).fit(X[::2], y[::2]).refit(X, y).class_count_
        array([50., 50., 50.])
        """
        base = self._unfitted_model(X)
        every = classifier_state.read_known_columns(self.model_, X, y, sample_weight, groups)
        return self._weigh(base, *self._simplest(base)._refit(self.model_, every), every)

    def _simplest(self, base: NaiveBayesClassifier) -> NaiveBayesClassifier:
        """Return an unfitted copy of `base`, as its simplest candidate unless the weights are given."""
        return classifier_state.copy_unfitted(base) if isinstance(self.weights, Weights) else base._simplest()

    def _weigh(
        self, base: NaiveBayesClassifier, simplest: NaiveBayesClassifier, encoded: LabelledRows, every: Batch
    ) -> Self:
        """Return a weighted copy of the candidate for `base` that `choose_weights` chooses.

        The first candidate, `simplest`, is fitted to `encoded` already, the rows of positive weight of `every`. Given
        weights are kept, without a search. With too few rows for weights the copy of the first candidate has none.
        """
        model, weights, experts = simplest, self.weights, None
        if not isinstance(weights, Weights):
            parts, weights = Parts.from_rows(base, simplest, every, encoded), None
            if crossed := self._cross_fit(parts):
                k, weights, losses = choose_weights(crossed)
                model = parts.fit_candidate(k) if k else simplest
                weights, experts = self._add_experts(parts, crossed[k], weights, losses)
        counted = model.fitted_.counted._replace(cells=simplest.fitted_.cells)
        return self._with_model(classifier_state.fit_to_counts(base, model, counted), weights, experts)

    def _add_experts(
        self, parts: Parts, crossed: CrossFit, weights: Weights, losses: np.ndarray
    ) -> tuple[Weights, ExpertColumns | None]:
        """Return weights of the terms and of experts, and the experts; unchanged weights and None without experts."""
        seed = read_seed(self.seed, self.random_state)
        if not (experts := read_experts(self.experts, seed)):
            return weights, None
        columns, joint = cross_fit_experts(experts, parts, crossed, weights.exponent, self.n_jobs)
        return pool_experts(joint, weights, losses, seed), columns

    def _may_count(self) -> bool:
        """Return True: `partial_fit` exists; raise AttributeError if the estimator has none, or for experts."""
        if self._has_experts:
            raise NotOfferedError(f"partial_fit: there are experts, {_EXPERTS_REFIT}")
        return callable(self._inner.partial_fit)  # Reading the attribute raises AttributeError, with the reason.

    @available_if(_may_count)
    def partial_fit(self, X: object, y: object, classes: object = None, sample_weight: object = None) -> Self:
        """Count further rows, and keep the weights that `fit` or `weigh` has fitted.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        y : array-like of shape (N,)
            Labels of any hashable type.
        classes : array-like, optional
            All labels that may occur. Required at the first call; later calls may add labels. Classes stay
            without rows.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data cannot be used, if `classes` is missing at the first call, or if a label was not declared.
        RuntimeError
            If another thread has changed the estimator since the call began; these rows were not counted.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> nb = WeightedNB(GaussianNB()).fit(X[::2], y[::2])
        >>> nb.partial_fit(X[1::2], y[1::2]).class_count_, nb.weights_.n_rows
        (array([50., 50., 50.]), 75)
        """
        self._require_arguments()
        return self._change_counts(lambda model: model.partial_fit(X, y, classes, sample_weight), X)

    def forget(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Remove rows that were counted, the inverse of `partial_fit`; the weights remain.

        Levels that only `partial_fit` has brought leave with their last row. Levels in the rows of `fit`, `fit_stream`
        or `distributed.fit`, levels that `categories` or `alpha` name, and all classes stay.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        y : array-like of shape (N,)
            Labels of the rows.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a count would become negative, or a value was never counted; nothing is changed.
        RuntimeError
            If another thread has changed the estimator since the call began; nothing is changed.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> WeightedNB(GaussianNB()).fit(X, y).forget(X[:10], y[:10]).class_count_
        array([40., 50., 50.])
        """
        check_is_fitted(self)
        return self._change_counts(lambda model: model.forget(X, y, sample_weight))

    def decay(self, factor: float) -> Self:
        """Multiply the weight of every counted row by a factor; the weights of terms remain.

        Parameters
        ----------
        factor : float
            Factor in (0, 1].

        Returns
        -------
        self

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> WeightedNB(GaussianNB()).fit(*load_iris(return_X_y=True)).decay(0.5).class_count_
        array([25., 25., 25.])
        """
        check_is_fitted(self)
        return self._change_counts(lambda model: model.decay(factor))

    def _change_counts(self, change: Callable[[NaiveBayesClassifier], object], X: object = None) -> Self:
        """Apply `change`, which changes counts in place, to a copy of the model; take its state, keep weights."""
        before = vars(self).get("fitted_")
        if before is not None:
            before.require_no_experts(type(self).__name__, _EXPERTS_REFIT)
        model = self._unfitted_model(X) if before is None else copy.copy(self.model_)
        change(model)
        return classifier_state.replace_state(self, self._with_model(model, vars(self).get("weights_")), before)

    def with_counts(self, counted: Counted) -> Self:
        """Return a copy with other counts, such as those of one more row, under the same weights.

        Parameters
        ----------
        counted : Counted
            Encoding and statistics of the same columns.

        Returns
        -------
        WeightedNB
            Fitted copy; this classifier is not changed.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> nb = WeightedNB(GaussianNB()).fit(*load_iris(return_X_y=True))
        >>> twice = nb.fitted_.counted._replace(statistics=nb.statistics_.merge(nb.statistics_))
        >>> nb.with_counts(twice).class_count_
        array([100., 100., 100.])
        """
        self.fitted_.require_no_experts("with_counts", _EXPERTS_REFIT)
        return self._with_model(self.model_.with_counts(counted), self.weights_)

    def weigh(self, X: object, y: object, sample_weight: object = None, groups: object = None) -> Self:
        """Fit the weights of terms on random halves of these rows; the counts remain.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of the population that `fit`, `partial_fit`, `fit_stream` or `distributed.fit` has counted: all of the
            counted rows, or as many as fit into memory.
        y : array-like of shape (N,)
            Labels.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1.
        groups : array-like of shape (N,), optional
            Group of each row, such as a patient or a day, which random halves keep together; see `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a label is not in `classes_`, if the groups cannot be used, or if a term is infinite.

        Warns
        -----
        CopiedRowsWarning
            If `groups` are not given, and 1% of the rows of a class or more are copies of other rows.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> nb = WeightedNB(GaussianNB()).partial_fit(X, y, classes=[0, 1, 2])
        >>> nb.weight_  # not fitted yet
        array([1., 1., 1., 1.])
        >>> nb.weigh(X, y).weight_.round(2)
        array([-0.59, -1.01,  1.05,  0.75])
        """
        check_is_fitted(self)
        self._require_arguments()
        model, before = self.model_, self.fitted_
        before.label_index(y, before.table(X).n_rows)
        weights, experts = self.weights, None
        if not isinstance(weights, Weights):
            parts = model.fit_parts(X, y, sample_weight, groups)
            crossed, weights = self._cross_fit(parts), None
            if crossed:
                _, weights, losses = choose_weights(crossed[:1])
                weights, experts = self._add_experts(parts, crossed[0], weights, losses)
        return classifier_state.replace_state(self, self._with_model(model, weights, experts), before)

    def _cross_fit(self, parts: Parts) -> list[CrossFit] | None:
        """Return cross-fitted terms of each candidate; None, with a warning, if rows are too few for weights."""
        try:
            return cross_fit(parts, self.weights, int(self.max_rows), read_seed(self.seed, self.random_state))
        except TooFewRowsError as reason:
            unweighted = f"{type(parts.nb).__name__} is not weighted"
            warn(f"{unweighted}. {reason} The predictions are those without weights.", NoWeightsWarning)
            return None

    no_counts = (
        "Weights are fitted to rows, but a table contains counts only. Pass the classifier that WeightedNB wraps."
    )
    no_em = (
        "Weights are fitted to labels, which unlabelled rows do not have. Pass the classifier that WeightedNB wraps, "
        "or fit WeightedNB to the labelled rows only."
    )

    # -- shared machinery ------------------------------------------------------------------------

    @property
    def _has_experts(self) -> bool:
        """Whether experts are given, or what cannot be used as such."""
        return self.experts not in ((), [])

    def _require_arguments(self) -> None:
        """Raise ValueError if `weights`, `max_rows` or `seed` cannot be used."""
        if isinstance(self.weights, Weights) and self._has_experts:
            raise ValueError("experts: weights are given, and those of experts must be fitted. Pass weights='auto'.")
        if not isinstance(self.weights, Weights) and not (isinstance(self.weights, str) and self.weights in _KINDS):
            raise bad_argument("weights", self.weights, f"one of {_KINDS}, or `weights_` of a fitted WeightedNB")
        require_integer("max_rows", self.max_rows)
        read_experts(self.experts, read_seed(self.seed, self.random_state))

    def _base(self, X: object = None) -> NaiveBayesClassifier:
        """Return `estimator`; by default `MultinomialNB` if X, rows or an encoding, has word counts, else `KDB`."""
        counts = X.blocks[0].one_simplex if isinstance(X, Encoding) else getattr(X, "is_sparse", sp.issparse(X))
        tables = KDB(gaussian="dtype", max_features=None, random_state=self.random_state)
        return wrapped_estimator(self, MultinomialNB() if counts else tables)

    def _unfitted_model(self, X: object) -> NaiveBayesClassifier:
        """Return an unfitted copy of the estimator for rows like X, which counts margins of columns with parents too.

        Margins are terms of their own, log p(x_j | class), and so are counted beside the tables given the parents.
        """
        model = classifier_state.copy_unfitted(self._base(X))
        model._counts_margins = True
        return model

    def _with_model(
        self, model: NaiveBayesClassifier, weights: Weights | None, experts: ExpertColumns | None = None
    ) -> Self:
        """Return a copy with the counts of a fitted model, and weights of its terms and experts, if there are any."""
        updated, fitted = classifier_state.copy_unfitted(self), model.fitted_
        updated.model_, updated.weights_ = model, weights
        if experts is not None:
            fitted = fitted.with_block(experts)
            vars(updated)["experts_"] = experts.experts
        classifier_state.copy_features(updated, model)
        prior, chosen = fitted.empirical_prior, fitted.chosen
        if weights is not None:
            prior = replace(prior, weights=weights.to_term_weights(fitted))
            chosen = chosen if isinstance(self.weights, Weights) else (*chosen, WEIGHTS)
        updated.fitted_ = replace(
            fitted,
            owner=classifier_state.copy_owner(updated, model),
            empirical_prior=prior,
            chosen=chosen,
            weight_posterior=weights,
        )
        return updated

    def _with_counts_of(self, model: NaiveBayesClassifier) -> Self:
        """Return a copy without weights that has the counts of `model`, a fitted result of `_unfitted_model`."""
        return self._with_model(model, None)

    def _restore(self, stored: dict[str, Any]) -> None:
        """Set the state from the attributes of a file, weights included; `stored` loses those that are read."""
        attributes = {name: stored.pop(name) for name in ("weights_", "rows_counted_", "first_rows_") if name in stored}
        model = self._unfitted_model(stored["encoding_"])
        classifier_state.restore(model, stored)
        restored = self._with_model(model, attributes.get("weights_"))
        self.__dict__.update(restored.__dict__ | attributes)

    def _check(self) -> None:
        """Raise ValueError if model, weights and hyperparameters contradict each other."""
        self._require_arguments()
        self.model_._check()
        base, fitted = self._unfitted_model(self.encoding_), self.model_.fitted_
        model = classifier_state.fit_to_counts(base, self.model_, fitted.counted)
        require_same_prior(model.fitted_.prior, fitted.prior)
        if self.weights_ is not None:
            self.weights_.check()

    def _score_draws(
        self, draws: object, X: object, output: Output, estimate: Estimate | None, class_prior: object, groups: object
    ) -> np.ndarray:
        """Apply `output` to log averages (N, C) over draws: P(class | row) by weights, p(class, row) by parameters."""
        if self.weights_ is None or (weight_draws := read_weight_draws(self.weights_, draws)) is None:
            return super()._score_draws(draws, X, output, estimate, class_prior, groups)
        return weight_draws.score(current_state(self), X, output, estimate, class_prior)

    def __sklearn_tags__(self) -> Tags:
        tags = self._inner.__sklearn_tags__()
        if self.estimator is None:  # The default estimator of a sparse matrix is MultinomialNB.
            tags.input_tags.sparse = True
        return tags
