"""Classifiers whose terms are weighted, by random halves of the rows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesnb import counting, scoring
from bayesnb._util.arguments import require_integer, require_seed, shown
from bayesnb._util.warnings import warn
from bayesnb.counting import Counted
from bayesnb.encoding import Columns, Encoding, Levels, Rows, Table, check_weights
from bayesnb.estimators import drafts
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.discrete import MultinomialNB
from bayesnb.estimators.display import require_unnested
from bayesnb.estimators.kdb import KDB
from bayesnb.fitted import Fitted, Members, Request
from bayesnb.model import NaiveBayes, Statistics, TermWeights
from bayesnb.prediction.halves import TooFewRowsError, choose_simplest, cross_fit, weigh_cross_fit
from bayesnb.prediction.weight_draws import read_weight_draws
from bayesnb.prediction.weights import Weights, term_names
from bayesnb.selection.left_out import WEIGHTS

_KINDS = ("auto", "feature", "temperature")
NB = TypeVar("NB", bound=NaiveBayesClassifier)
_COUNTED = ("encoding_", "statistics_", "n_features_in_", "feature_names_in_", "tuned_")


class WeightedNB(NaiveBayesClassifier):
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

    def __init__(self, estimator: Any = None, weights: Any = "auto", *, max_rows: int = 100_000, seed: int = 0) -> None:
        self.estimator = estimator
        require_unnested(self)
        self.weights = weights
        self.max_rows = max_rows
        self.seed = seed

    @property
    def estimate(self) -> Any:  # type: ignore[override]
        """How the posterior is read: as the estimator reads it."""
        return self._base().estimate

    # -- fitting ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        self._require_arguments()
        self._fit(X, y, sample_weight, None)
        self.unweighted._warn_of_counts()
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, like: Self | None) -> Self:
        """Fit; with the levels of another fitted classifier, if one is given."""
        base = drafts.blank(self._base(X))
        candidates = base._candidates() if self._finds else [base]
        found = self._choose_candidate(candidates, X, y, sample_weight, like) if self._finds else None
        if found is None:  # weights are given, or the rows are too few
            model, weights = self._count(candidates[0], X, y, sample_weight, like), self.weights
            draft = self._around(model)
            draft.weights_ = None if self._finds else weights
        else:
            draft = self._around(found[0])
            draft.weights_ = found[1]
        return drafts.commit(self, draft, drafts.counted_by(draft))

    def _choose_candidate(
        self, candidates: Sequence[NaiveBayesClassifier], X: Any, y: Any, sample_weight: Any, like: Self | None
    ) -> tuple[Self, Weights] | None:
        """Return the simplest good candidate, counted, and its weights; None, with a warning, if rows are too few.

        Candidates become more complex, and the search ends with the second in a row that is no better than those
        before.
        """
        found: list[tuple[Self, Weights]] = []
        losses: list[np.ndarray] = []
        for candidate in candidates:
            model = self._count(candidate, X, y, sample_weight, like)
            if (one := self._fit_weights(model, X, y, sample_weight)) is None:
                return None
            weights, of_rows, row_weight = one
            found.append((model, weights))
            losses.append(of_rows)
            if len(found) > 2 and min(w.log_loss for _, w in found[-2:]) >= min(w.log_loss for _, w in found[:-2]):
                break
        return found[choose_simplest(losses, row_weight)]

    def _count(self, candidate: NaiveBayesClassifier, X: Any, y: Any, sample_weight: Any, like: Self | None) -> Self:
        """Return a copy around an unfitted estimator that has counted rows, and has no weights."""
        draft = drafts.blank(self)
        draft.estimator, draft.weights = candidate, "auto"
        if like is not None:
            return drafts.parts(draft, like, X, y, sample_weight)(check_weights(sample_weight, len(y)))
        counted = drafts.count_batch(draft, X, y, sample_weight, Levels(()), grow=True)
        return drafts.commit(copy.copy(draft), draft, counted)

    def _parts(self, X: Any, y: Any, sample_weight: Any) -> Callable[[np.ndarray], Self]:
        """Return a function that counts some of the rows, by weights (N,) of them, with the levels of all."""
        settled = drafts.blank(self)
        settled.estimator, settled.weights = self.unweighted._settled(), "auto"
        return drafts.parts(settled, self, X, y, sample_weight)

    def _refit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Return a copy that is fitted to other rows, weights included, with the levels that this one knows."""
        return drafts.blank(self)._fit(X, y, sample_weight, self)

    fit.__doc__ = f"{NaiveBayesClassifier.fit.__doc__}".replace(
        "Count the rows of X.", "Fit weights to halves of the rows of X, and count all of them."
    )

    def _counts(self) -> bool:
        return callable(self._base().partial_fit)  # or it says why not

    @available_if(_counts)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count further rows; the weights stay as they are. As `NaiveBayesClassifier.partial_fit`.

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
        return super().partial_fit(X, y, classes, sample_weight)

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
        draft, base = copy.copy(self), self.estimator_
        table = base._table(X)
        base.fitted_.label_index(y, table.n_rows)
        found = self._fit_weights(self, X, y, sample_weight) if self._finds else (self.weights,)
        draft.weights_ = None if found is None else found[0]
        return drafts.commit(self, draft, drafts.counted_by(draft), on_top=True)

    def _fit_weights(
        self, model: Self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Weights, np.ndarray, np.ndarray] | None:
        """Return weights of a model, and (N,) expected losses and weights of rows; None if the rows are too few."""
        options = self.weights, int(self.max_rows), self.seed
        try:
            classes, crossed = cross_fit(model, X, y, sample_weight, *options)
        except TooFewRowsError as reason:
            name = type(model.unweighted).__name__
            warn(f"{name} is not weighted: {reason} Its predictions are those of the plain model.")
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
        return self._base()

    @property
    def weight_(self) -> np.ndarray:
        """(T,) weight of each term."""
        found = self._found("weight_")
        return np.ones(len(self.term_names_)) if found is None else found.weight

    @property
    def term_names_(self) -> tuple[str, ...]:
        """(T,) what each term is about."""
        self._require_fitted("term_names_")
        found = vars(self).get("weights_")
        return term_names(self.encoding_, self._members) if found is None else found.names

    @property
    def class_bias_(self) -> np.ndarray:
        """(C,) what is added to the log probability of each class, in nats."""
        self._require_fitted("class_bias_")
        found = self._term_weights(self.encoding_)
        return np.zeros(len(self.encoding_.classes)) if found is None else np.asarray(found.class_bias)

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
        return vars(self).get("weights_")

    @property
    def no_evidence(self) -> str | None:
        return (
            "its terms are weighted, which leaves no joint distribution of rows and labels, and so no evidence; that "
            "of the model without weights is estimator_.log_evidence_."
        )

    no_counts = "weights are fitted to halves of the rows; make one of its base."
    no_em = (
        "weights are fitted to labels, and unlabelled rows have none: give EM the estimator itself, and weigh one that "
        "is fitted to the labelled rows."
    )

    # -- as the estimator does it ----------------------------------------------------------------

    def _require_arguments(self) -> None:
        if not isinstance(self.weights, Weights) and not (isinstance(self.weights, str) and self.weights in _KINDS):
            raise ValueError(
                f"weights={shown(self.weights)} is unknown; use one of {_KINDS}, or `weights_` of a fitted WeightedNB."
            )
        require_integer("max_rows", self.max_rows)
        require_seed(self.seed)

    def _base(self, X: Any = None) -> Any:
        """Return the estimator, with what was counted; by default one for X: rows, or their encoding."""
        require_unnested(self)
        base = self.estimator
        if base is None:
            counts = _holds_counts(self.encoding_ if drafts.is_fitted(self) else X)
            base = MultinomialNB() if counts else KDB(gaussian="dtype", max_features=None)
        if not isinstance(base, NaiveBayesClassifier):
            kind = "a class" if isinstance(base, type) else f"a {type(base).__module__}.{type(base).__name__}"
            wanted = "a classifier of bayesnb, such as MixedNB()"
            raise ValueError(f"estimator={shown(base)} must be {wanted}; it is {kind}.")
        if not drafts.is_fitted(self):
            return drafts.blank(base)
        base = _with_counts(drafts.blank(base), self)
        base.encoding_, base.statistics_ = _without_margins(drafts.counted_by(self))
        return base

    def _around(self, base: NaiveBayesClassifier) -> Self:
        """A copy of this with what a fitted estimator has."""
        return _with_counts(drafts.blank(self), base)

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        return self._base(table)._columns(table)

    def _structured(
        self, encoding: Encoding, table: Table, rows: tuple[Rows, ...], label: np.ndarray, weight: np.ndarray
    ) -> tuple[Encoding, tuple[Rows, ...]]:
        base = self._base(table)
        if not drafts.is_fitted(self):
            encoding, rows = base._structured(encoding, table, rows, label, weight)
        return base._with_margins(encoding, rows, table)

    def _count_rows(
        self, encoding: Encoding, rows: tuple[Rows, ...], label: np.ndarray, weight: np.ndarray
    ) -> Statistics:
        return self._base(encoding)._count_rows(encoding, rows, label, weight)

    def _empirical_prior(self, counted: Counted) -> NaiveBayes:
        prior = self._base(counted.encoding)._empirical_prior(counted)
        weights = self._term_weights(counted.encoding)
        return prior if weights is None else replace(prior, weights=weights)

    def _term_weights(self, encoding: Encoding) -> TermWeights | None:
        found = vars(self).get("weights_")
        return None if found is None else found.of(encoding, self._members)

    def _prior_argument(self, columns: Columns) -> str:
        return self._base()._prior_argument(columns)

    def _prior_alone(self, columns: Columns, family: Any) -> Any:
        return self._base()._prior_alone(columns, family)

    @property
    def _members(self) -> Members | None:  # type: ignore[override]
        return self._base()._members

    @property
    def no_posterior(self) -> str | None:
        return self._base().no_posterior

    @property
    def _chosen(self) -> tuple[str, ...]:
        mine = (WEIGHTS,) if vars(self).get("weights_") is not None and self._finds else ()
        return (*self._base()._chosen, *mine)

    @property
    def _finds(self) -> bool:
        """Whether weights are found, or given."""
        return not isinstance(self.weights, Weights)

    def _check(self) -> None:
        self._base()._check()
        self._require_arguments()
        counting.check(drafts.counted_by(self))
        if (found := vars(self).get("weights_")) is not None:
            found.check()
            self._term_weights(self.encoding_)

    def _read(self, fitted: Fitted, rows: tuple[Rows, ...], n: int, request: Request) -> np.ndarray:
        return self._base()._read(fitted, rows, n, request)

    def _score(self, fitted: Fitted, X: Any, request: Request) -> np.ndarray:
        found = vars(self).get("weights_")
        drawn = None if found is None or request.draws is None else read_weight_draws(found, request.draws)
        if fitted.members is None:
            return super()._score(fitted, X, request) if drawn is None else drawn.score(fitted, X, request)
        base, weights, known = self._base(), fitted.prior.weights, (request.estimate, request.class_prior)
        if weights is None or (request.draws is not None and drawn is None):
            return base._score(base.fitted_, X, request)
        if weights.of_members:
            joint = fitted.members.scores(base.fitted_, X, *known)
        else:
            joint = base._score(base.fitted_, X, Request(scoring.joint, *known))
        log_class = scoring.log_class(*base.fitted_.read(*known))
        if drawn is None:
            return scoring.read_scores(weights.of_average(joint, log_class), request.output)
        terms = joint.reshape(*joint.shape[:2], -1) - log_class[:, None]
        return drawn.score_terms(fitted, terms, log_class, request.output)

    def __sklearn_tags__(self) -> Any:
        tags = self._base().__sklearn_tags__()
        if self.estimator is None:  # a matrix of counts is taken too
            tags.input_tags.sparse = True
        return tags


def _holds_counts(X: Any) -> bool:
    """Return whether X, rows or their encoding, is a matrix of counts; None is not."""
    if isinstance(X, Encoding):
        return X.blocks[0].one_simplex
    return bool(getattr(X, "is_sparse", sp.issparse(X)))


def _without_margins(counted: Counted) -> Counted:
    """Return what was counted without the margins of levels that stand beside tables given parents."""
    encoding, statistics = counted
    keep = [columns.beside is None or bool(getattr(columns, "cuts", ())) for columns in encoding.blocks]
    if all(keep):
        return counted
    blocks = tuple(compress(encoding.blocks, keep)), tuple(compress(statistics.blocks, keep))
    return Counted(replace(encoding, blocks=blocks[0]), replace(statistics, blocks=blocks[1]))


def _with_counts(nb: NB, other: NaiveBayesClassifier) -> NB:
    """`nb`, with what another has counted."""
    for name in _COUNTED:
        if name in vars(other):
            setattr(nb, name, vars(other)[name])
    return nb
