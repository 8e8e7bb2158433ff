"""Classifiers whose terms are weighted, by random halves of the rows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import require_integer, require_seed, shown
from bayesnb._util.warnings import warn
from bayesnb.counting import Counted
from bayesnb.encoding import Encoding, Levels, check_weights
from bayesnb.estimators import drafts
from bayesnb.estimators.base import NaiveBayesClassifier, require_same_prior
from bayesnb.estimators.discrete import MultinomialNB
from bayesnb.estimators.display import require_unnested
from bayesnb.estimators.kdb import KDB
from bayesnb.estimators.predictions import FittedClassifier
from bayesnb.fitted import Output
from bayesnb.model import Estimate
from bayesnb.prediction.cross_fitting import TooFewRowsError, choose_simplest, cross_fit, weigh_cross_fit
from bayesnb.prediction.terms import term_names
from bayesnb.prediction.weight_draws import read_weight_draws
from bayesnb.prediction.weights import Weights
from bayesnb.selection.leave_one_out import WEIGHTS

_KINDS = ("auto", "feature", "temperature")
Fit = Callable[[NaiveBayesClassifier], NaiveBayesClassifier]


class WeightedNB(FittedClassifier):
    r"""Class probabilities one can believe: the terms of a classifier, weighted by how they predict other rows.

    Features depend on each other, so that naive Bayes counts the same evidence more than once and is far too sure. Here

        P(c | x) ∝ exp(b_c + log π_c + Σ_t w_t log p(x_t | c, D)),

    with weights w and biases b under which fits to random halves of the rows predict the labels of the other halves
    best. The classifier itself is then fitted to all rows.

    Parameters
    ----------
    estimator : classifier of bayesnb, optional
        A classifier that has `terms`. Default: `KDB(gaussian="dtype", max_features=None)` for tables of any kind, which
        is `MixedNB()` where no column gets parents, and `MultinomialNB()` for sparse matrices. Each column is a term. A
        column with parents is two, its margin log p(x_j | c) and its dependence on them, log p(q_j | c, parents) -
        log p(q_j | c), q_j the level, or the cell of a number. Counts that share a simplex (`MultinomialNB`) are one
        term, with a weight that falls with the length of the row as (t + 1)^-β. An average of models (`AODE`) has a
        term for each member, or under "temperature" one, the average.
    weights : {"auto", "feature", "temperature"} or Weights
        "feature": a weight for each term, shrunk to a common temperature by as much as the data say, and a bias for
        each class. "temperature": one weight for all terms, and no biases. "auto": "feature" for two terms or more,
        else "temperature". Or `weights_` of another `WeightedNB`, fitted to other rows, which `fit` keeps.
    max_rows : int, default 100,000
        Most rows whose labels are predicted; of more a sample, stratified by class. Halves are of all rows even so.
    seed : int, default 0
        Of the halves, and of that sample.

    Attributes
    ----------
    weight_ : (T,) array
        May be negative: a term whose evidence others have already counted too often.
    term_names_ : tuple of str
    class_bias_ : (C,) array
        In nats; 0 under a temperature.
    temperature_ : float
        What the weights of margins, and of all terms of classifiers without structure, are shrunk to.
    shrinkage_ : float
        τ, how far these weights may be from the temperature: of 0, .03, .1, .3 and 1 the smallest within a Bayes factor
        of 10 of the best; 0 is temperature scaling.
    dependence_temperature_, dependence_shrinkage_ : float
        Temperature and τ of the weights of dependences; 0 where no term is one.
    length_exponent_ : float
        β; 0 where no term is of rows of several draws.
    expected_log_loss_ : float
        Mean loss of a label in nats to expect on new rows: that of each row by fits to halves without it, and weights
        that are fitted to what these fits say of other rows. Fits to half of the rows predict less well than a fit to
        all, so that it is rather too high. `loo_log_loss_` is its former name, deprecated.
    weights_ : Weights
        The fitted weights, with the standard deviations that `weight_table` shows.
    estimator_, unweighted : the estimator, fitted, without the weights
    classes_, class_count_, class_log_prior_, prior_, posterior_, statistics_
        As of the estimator: weights do not change what is known of the parameters.

    Notes
    -----
    Three random splits into halves (of 500 rows or fewer six), stratified by class, are fitted in both directions,
    structure and densities anew in each, with the levels of all rows; a row of weight 2 is in one half. With b ~ N(0,
    1), T ~ N(1, 1), of dependences T ~ N(½, 1), and w_t ~ N(T, τ²) the log score of the rows of the other halves, each
    with an equal part of its weight in each split, has one penalised optimum, which Newton's method finds, or beyond
    500 terms L-BFGS on sparse differences from the most frequent values. Given one half the labels of the other are
    independent, so that this is a likelihood, and its evidence chooses τ. How many parents a `KDB` has is chosen by
    `expected_log_loss_`: the fewest within .001 nats, or one standard error, of the least. Leave-one-out scores in its
    place promise too much: the label of each row is in the tables of all others (on noise, 100 rows and 40 columns,
    they gave weights with a true loss of .77, halves .70).

    The weighted model is no joint distribution of row and label, so that there is no evidence, and no `given="row"`:
    intervals and decisions are `given="data"` by default, and say how the posterior of the parameters moves the
    weighted scores.

    Weights and biases are fitted with the class probabilities of the rows; where the estimator has a `class_prior`, it
    takes the place of these in predictions, and biases do not undo it. Draws and moments of the parameters take the
    tables of a column given its parents and given the class alone for independent, which they are not where both have
    a weight: such intervals are rather too wide.

    `partial_fit`, `forget` and `decay` count, and keep the weights; so do `fit_stream` and `distributed.fit`, after
    which there are none yet: `weigh` fits them, to rows that fit into memory. Where there are too few rows (fewer than
    ten outside the largest class) `fit` warns, and the weights are 1.

    References
    ----------
    Hand & Yu, *Idiot's Bayes: not so stupid after all?*, Int. Stat. Rev. 69 (2001), for why; Guo et al., *On
    calibration of modern neural networks*, ICML 2017, for temperatures. Peduzzi et al., *A simulation study of the
    number of events per variable in logistic regression analysis*, J. Clin. Epidemiol. 49 (1996), for the ten.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import CategoricalNB, WeightedNB
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> x = np.where(rng.random(500) < 0.8, y, 1 - y)
    >>> X = np.column_stack([x, x, x])  # one witness, heard three times
    >>> [float(nb.fit(X, y).predict_proba([[1, 1, 1]])[0, 1].round(2)) for nb in (CategoricalNB(), WeightedNB())]
    [0.99, 0.84]
    """

    weights_: Weights | None
    model_: NaiveBayesClassifier  # the estimator, fitted, with margins of columns that have parents

    def __init__(self, estimator: Any = None, weights: Any = "auto", *, max_rows: int = 100_000, seed: int = 0) -> None:
        self.estimator = estimator
        require_unnested(self)
        self.weights = weights
        self.max_rows = max_rows
        self.seed = seed

    @property
    def estimate(self) -> Any:  # type: ignore[override]
        """How the posterior is read: as the estimator reads it."""
        return self._inner.estimate

    # -- fitting ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit weights to halves of the rows of X, and count all of them.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
        y : array-like of shape (N,)
            Labels of any hashable type.
        sample_weight : array-like of shape (N,), optional
            Replication counts: a row of weight 2 is that row twice, in one half. Rows of weight zero leave their class
            and nothing else.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a hyperparameter cannot be used; the estimator is left as it was.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> nb = WeightedNB(GaussianNB()).fit(*load_iris(return_X_y=True))
        >>> nb.class_count_, nb.weights_.n_rows
        (array([50., 50., 50.]), 150)
        """
        self._require_arguments()
        base = self._counter(X)
        draft = self._fit_candidates(
            base, X, y, sample_weight, lambda candidate: drafts.fit(candidate, X, y, sample_weight)
        )
        drafts.take_over(self, draft)
        self.unweighted._warn_of_counts()
        return self

    def refit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Return a copy that is fitted to other rows, weights included, with the levels that this classifier knows.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> WeightedNB(GaussianNB()).fit(X[::2], y[::2]).refit(X, y).class_count_
        array([50., 50., 50.])
        """
        known, weight = self.model_, check_weights(sample_weight, len(y))

        def fit(candidate: NaiveBayesClassifier) -> NaiveBayesClassifier:
            return drafts.parts(candidate, known, X, y, sample_weight)(weight)

        return self._fit_candidates(self._counter(X), X, y, sample_weight, fit)

    def _fit_candidates(self, base: NaiveBayesClassifier, X: Any, y: Any, sample_weight: Any, fit: Fit) -> Self:
        """Return a fitted copy, with the simplest good candidate for the base and its weights.

        Candidates become more complex, and the search ends with the second in a row that is no better than those
        before. Weights that are given stay.
        """
        if not self._finds:
            return self._around(fit(base), self.weights)
        models: list[NaiveBayesClassifier] = []
        found: list[Weights] = []
        losses: list[np.ndarray] = []
        row_weight = np.empty(0)
        for candidate in base._candidates():
            models.append(fit(candidate))
            if (weighed := self._fit_weights(models[-1], X, y, sample_weight)) is None:
                return self._around(drafts.with_counts_of(base, models[-1]), None)
            weights, of_rows, row_weight = weighed
            found.append(weights)
            losses.append(of_rows)
            if len(found) > 2 and min(w.log_loss for w in found[-2:]) >= min(w.log_loss for w in found[:-2]):
                break
        chosen = choose_simplest(losses, row_weight)
        return self._around(drafts.with_counts_of(base, models[chosen]), found[chosen])

    def _counts(self) -> bool:
        return callable(self._inner.partial_fit)  # or it says why not

    @available_if(_counts)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count further rows, and keep the weights; before the first `weigh` there are none.

        Parameters
        ----------
        X, y, sample_weight
            Rows, as for `fit`.
        classes : array-like, optional
            All labels that may come; required at the first call. Later calls may declare more.

        Raises
        ------
        ValueError
            If the data cannot be used; if `classes` is missing at the first call; if a label was not declared.
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
        return self._change(lambda model: model.partial_fit(X, y, classes, sample_weight), X)

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were counted, the inverse of `partial_fit`, and keep the weights.

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
        return self._change(lambda model: model.forget(X, y, sample_weight))

    def decay(self, factor: float) -> Self:
        """Let every counted row weigh `factor` times as much, 0 < factor <= 1, and keep the weights of terms.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> WeightedNB(GaussianNB()).fit(*load_iris(return_X_y=True)).decay(0.5).class_count_
        array([25., 25., 25.])
        """
        check_is_fitted(self)
        return self._change(lambda model: model.decay(factor))

    def _change(self, change: Callable[[NaiveBayesClassifier], object], X: Any = None) -> Self:
        """Change what was counted, and keep the weights."""
        before = vars(self).get("fitted_")
        model = self._counter(X) if before is None else copy.copy(self.model_)
        change(model)
        return drafts.take_over(self, self._around(model, vars(self).get("weights_")), before)

    def with_counts(self, counted: Counted) -> Self:
        """Return a copy that has other counts, such as those of one more row, under the same weights.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> nb = WeightedNB(GaussianNB()).fit(*load_iris(return_X_y=True))
        >>> twice = nb.fitted_.counted._replace(statistics=nb.statistics_.merge(nb.statistics_))
        >>> nb.with_counts(twice).class_count_
        array([100., 100., 100.])
        """
        return self._around(self.model_.with_counts(counted), self.weights_)

    def weigh(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the weights, to rows such as those that were counted.

        Parameters
        ----------
        X, y, sample_weight
            Rows of the population that was counted by `fit`, `partial_fit`, `fit_stream` or `distributed.fit`: all of
            those, or as many as fit into memory. Halves of them are fitted.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a label is none of `classes_`, or a term is infinite.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> nb = WeightedNB(GaussianNB()).partial_fit(X, y, classes=[0, 1, 2])
        >>> nb.weight_  # none yet
        array([1., 1., 1., 1.])
        >>> nb.weigh(X, y).weight_.round(2)
        array([-0.59, -1.01,  1.05,  0.75])
        """
        check_is_fitted(self)
        self._require_arguments()
        before, fitted = self.model_, self.fitted_
        fitted.label_index(y, fitted.table(X).n_rows)
        weighed = self._fit_weights(before, X, y, sample_weight) if self._finds else (self.weights,)
        draft = self._around(before, None if weighed is None else weighed[0])
        return drafts.take_over(self, draft, fitted)

    def _fit_weights(
        self, model: NaiveBayesClassifier, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Weights, np.ndarray, np.ndarray] | None:
        """Return weights of a model, and (N,) expected losses and weights of rows; None if the rows are too few."""
        options = self.weights, int(self.max_rows), self.seed
        try:
            classes, crossed = cross_fit(model, X, y, sample_weight, *options)
        except TooFewRowsError as reason:
            warn(f"{type(model).__name__} is not weighted: {reason} Its predictions are those of the plain model.")
            return None
        return *weigh_cross_fit(crossed, classes), crossed.row_weight

    # -- what was found --------------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """The estimator, fitted, without the weights."""
        self._require_fitted("estimator_")
        return self.unweighted

    @property
    def unweighted(self) -> NaiveBayesClassifier:
        """The estimator, with what was counted, fitted or not."""
        if not self.__sklearn_is_fitted__():
            return drafts.blank(self._base())
        return drafts.without_margins(self.model_)

    @property
    def weight_(self) -> np.ndarray:
        """(T,) weight of each term."""
        found = self._found("weight_")
        return np.ones(len(self.term_names_)) if found is None else found.weight

    @property
    def term_names_(self) -> tuple[str, ...]:
        """(T,) what each term is about."""
        self._require_fitted("term_names_")
        return term_names(self.fitted_) if self.weights_ is None else self.weights_.names

    @property
    def class_bias_(self) -> np.ndarray:
        """(C,) what is added to the log probability of each class, in nats."""
        found = self._found("class_bias_")
        classes = self.fitted_.encoding.classes
        return np.zeros(len(classes)) if found is None else found.align_bias(classes, found.class_bias)

    @property
    def temperature_(self) -> float:
        """The common mean of the weights."""
        found = self._found("temperature_")
        return 1.0 if found is None else found.temperature

    @property
    def shrinkage_(self) -> float:
        """How far the weights may be from the temperature."""
        found = self._found("shrinkage_")
        return 0.0 if found is None else found.shrinkage

    @property
    def dependence_temperature_(self) -> float:
        """The common mean of the weights of dependences; 0 without such terms."""
        found = self._found("dependence_temperature_")
        return 0.0 if found is None else found.dependence_temperature

    @property
    def dependence_shrinkage_(self) -> float:
        """How far the weights of dependences may be from their temperature."""
        found = self._found("dependence_shrinkage_")
        return 0.0 if found is None else found.dependence_shrinkage

    @property
    def length_exponent_(self) -> float:
        """How fast the weight of a row of several draws falls with their number."""
        found = self._found("length_exponent_")
        return 0.0 if found is None else found.exponent

    @property
    def expected_log_loss_(self) -> float:
        """Mean loss of a label of a new row, in nats; NaN without weights."""
        found = self._found("expected_log_loss_")
        return np.nan if found is None else found.log_loss

    @property
    def loo_log_loss_(self) -> float:
        """Deprecated name of `expected_log_loss_`."""
        warnings.warn("loo_log_loss_ is called expected_log_loss_ now.", FutureWarning, stacklevel=2)
        return self.expected_log_loss_

    def _found(self, name: str) -> Weights | None:
        self._require_fitted(name)
        return self.weights_

    _no_evidence = (
        "its terms are weighted, which leaves no joint distribution of rows and labels, and so no evidence; that "
        "of the model without weights is estimator_.log_evidence_."
    )

    @property
    def no_posterior(self) -> str | None:
        """Why there are no draws, intervals, evidence or leave-one-out scores, where there are none."""
        return self._inner.no_posterior

    no_counts = "weights are fitted to halves of the rows; make one of its base."
    no_em = (
        "weights are fitted to labels, and unlabelled rows have none: give EM the estimator itself, and weigh one that "
        "is fitted to the labelled rows."
    )

    # -- shared machinery ------------------------------------------------------------------------

    def _require_arguments(self) -> None:
        if not isinstance(self.weights, Weights) and not (isinstance(self.weights, str) and self.weights in _KINDS):
            raise ValueError(
                f"weights={shown(self.weights)} is unknown; use one of {_KINDS}, or `weights_` of a fitted WeightedNB."
            )
        require_integer("max_rows", self.max_rows)
        require_seed(self.seed)

    def _base(self, X: Any = None) -> NaiveBayesClassifier:
        """Return the estimator; by default one for X: rows, or their encoding."""
        require_unnested(self)
        base = self.estimator
        if base is None:
            return MultinomialNB() if _holds_counts(X) else KDB(gaussian="dtype", max_features=None)
        if not isinstance(base, NaiveBayesClassifier):
            kind = "a class" if isinstance(base, type) else f"a {type(base).__module__}.{type(base).__name__}"
            wanted = "a classifier of bayesnb, such as MixedNB()"
            raise ValueError(f"estimator={shown(base)} must be {wanted}; it is {kind}.")
        return base

    @property
    def _inner(self) -> NaiveBayesClassifier:
        """The classifier whose terms are weighted, fitted if this one is."""
        return self.model_ if self.__sklearn_is_fitted__() else self._base()

    def _counter(self, X: Any) -> NaiveBayesClassifier:
        """Return an unfitted copy of the estimator that counts margins, too."""
        return drafts.with_margins(drafts.blank(self._base(X)))

    def _around(self, model: NaiveBayesClassifier, weights: Weights | None) -> Self:
        """Return a copy with the counts of a fitted model, and with weights of its terms."""
        draft = drafts.blank(self)
        draft.model_, draft.weights_ = model, weights
        drafts.copy_features(draft, model)
        fitted = model.fitted_
        prior = fitted.empirical_prior
        draft.fitted_ = replace(
            fitted,
            name=type(self).__name__,
            empirical_prior=prior if weights is None else replace(prior, weights=weights.to_term_weights(fitted)),
            chosen=(*fitted.chosen, WEIGHTS) if weights is not None and self._finds else fitted.chosen,
            no_evidence_as_such=self._no_evidence,
            table=drafts.without_state(draft)._table,
        )
        return draft

    def _with_counter(self, model: NaiveBayesClassifier) -> Self:
        return self._around(model, None)

    def _count_on(self, X: Any, y: Any, sample_weight: Any, classes: Levels) -> None:
        self._change(lambda model: drafts.count_on(model, X, y, sample_weight, classes), X)

    @property
    def _finds(self) -> bool:
        """Whether weights are found, or given."""
        return not isinstance(self.weights, Weights)

    def _stored(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name.endswith("_")}
        if state.pop("fitted_", None) is not None:
            state = {**drafts.stored(state.pop("model_")), **state}
        return state

    def _restore(self, stored: dict[str, Any]) -> None:
        own = {name: stored[name] for name in ("weights_", "rows_counted_", "first_rows_") if name in stored}
        model = self._counter(stored["encoding_"])
        drafts.restore(model, {name: value for name, value in stored.items() if name not in own})
        drafts.take_over(self, self._around(model, own.pop("weights_", None)))
        for name, value in own.items():
            setattr(self, name, value)

    def _check(self) -> None:
        self._require_arguments()
        self.model_._check()
        model = drafts.with_counts_of(self._counter(self.encoding_), self.model_)
        require_same_prior(model.fitted_.prior, self.model_.fitted_.prior)
        if self.weights_ is not None:
            self.weights_.check()

    def _score_draws(
        self, draws: Any, X: Any, output: Output, estimate: Estimate | None, class_prior: Any
    ) -> np.ndarray:
        drawn = None if self.weights_ is None else read_weight_draws(self.weights_, draws)
        if drawn is None:
            return super()._score_draws(draws, X, output, estimate, class_prior)
        return drawn.score(self.fitted_, X, output, estimate, class_prior)

    def __sklearn_tags__(self) -> Any:
        tags = self._inner.__sklearn_tags__()
        if self.estimator is None:  # a matrix of counts is taken too
            tags.input_tags.sparse = True
        return tags


def _holds_counts(X: Any) -> bool:
    """Return whether X, rows or their encoding, is a matrix of counts; None is not."""
    if isinstance(X, Encoding):
        return X.blocks[0].one_simplex
    return bool(getattr(X, "is_sparse", sp.issparse(X)))
