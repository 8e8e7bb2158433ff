"""Classifiers whose features have Dirichlet priors: categorical, Bernoulli and multinomial."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from bayesnb import scoring
from bayesnb._util.arguments import require_choice, require_number, shown
from bayesnb.encoding import (
    BinaryColumns,
    Columns,
    CountColumns,
    LevelColumns,
    Levels,
    Table,
    declared_categories,
)
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.defaults import ALPHA, CLASS_ALPHA
from bayesnb.model import Estimate

HANDLE_UNKNOWN = ("ignore", "error", "level")


@dataclass(eq=False, repr=False)
class CategoricalNB(NaiveBayesClassifier):
    """Naive Bayes for categorical features: θ_cj ~ Dirichlet(α) over the levels of feature j.

    Parameters
    ----------
    alpha : scalar, (F,) array, list of F arrays, (C, L) array or Dirichlet, default 1
        Dirichlet concentration of the levels: one number for all, one per feature, one per level, or one per class and
        level of the concatenated levels. The posterior mean under alpha is Laplace smoothing with λ = alpha. Levels are
        sorted, see `categories_`.
    class_alpha : scalar or (C,) array, default 1
        Dirichlet concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or a Dirichlet prior of them, in place of `class_alpha`.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Reading of the posterior in predictions. "predictive" integrates the parameters out; "mean", "map" and "mle"
        plug in the posterior mean, the posterior mode and the maximum likelihood estimate. Here "predictive" and "mean"
        are the same.
    categories : "auto", list of F lists, or dict {feature: list}, default "auto"
        Levels of each categorical column. "auto": the levels that occur, to which `partial_fit` adds new ones; of a
        pandas categorical its own categories. Declared levels belong to the model whether or not they occur, and do not
        grow.
    handle_unknown : {"ignore", "error", "level"}, default "ignore"
        Treatment of a value that is not among the levels. "ignore": as a missing cell, with a warning. "error": as an
        error. "level": as one reserved level, which all such values share.
    missing_values : value or list of values, optional
        Marks of a missing cell such as "?", besides None, NaN and pd.NA. Missing cells are marginalised: this assumes
        that they are missing at random.
    prior : NaiveBayes, optional
        Complete prior, such as `prior_` of another classifier, in place of `alpha`, `class_alpha` and `class_prior`.

    Attributes
    ----------
    categories_ : list of arrays
        Levels of each feature.
    category_count_ : list of (C, L_j) arrays
        Weight of the rows with each level of each feature.
    feature_log_prob_ : list of (C, L_j) arrays
        Log posterior mean of the probability of each level.
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
        log p(X, y), with the parameters integrated out.
    n_parameters_ : int
        Number of free parameters.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> nb.predict([["rain"]])
    array(['in'], dtype='<U3')
    """

    _: KW_ONLY
    alpha: object = ALPHA
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"
    categories: object = "auto"
    handle_unknown: str = "ignore"
    missing_values: object = None
    prior: object = None

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        index = range(len(table.names))
        return (level_columns(table, index, self.categories, self.handle_unknown, self.missing_values),)

    @property
    def categories_(self) -> list[np.ndarray]:
        """Levels of each feature, in the order of the level axes."""
        columns: Any = self.encoding_.blocks[0]
        return [Levels(tuple(columns.level_names(j))).array() for j in range(len(columns.index))]

    @property
    def category_count_(self) -> list[np.ndarray]:
        """(C, L_j) weight of the rows with each level, one array per feature."""
        return self._split_by_feature(self.statistics_.blocks[0].count)

    @property
    def feature_log_prob_(self) -> list[np.ndarray]:
        """(C, L_j) log posterior mean of P(level | class), one array per feature."""
        return self._split_by_feature(scoring.plug_in(self.posterior_.blocks[0]).log_theta)

    def _split_by_feature(self, flat: np.ndarray) -> list[np.ndarray]:
        columns: Any = self.encoding_.blocks[0]
        return np.split(flat, columns.start()[1:], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.classifier_tags.poor_score = True
        return tags


@dataclass(eq=False, repr=False)
class BernoulliNB(NaiveBayesClassifier):
    """Naive Bayes for features that are absent or present: θ_cj ~ Beta(α, α).

    Parameters
    ----------
    alpha : scalar, (F,) array, list of F pairs, (C, 2F) array or Dirichlet, default 1
        Beta concentrations of each feature; a pair is (absent, present).
    class_alpha : scalar or (C,) array, default 1
        Dirichlet concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or a Dirichlet prior of them, in place of `class_alpha`.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Reading of the posterior in predictions. "predictive" integrates the parameters out; "mean", "map" and "mle"
        plug in the posterior mean, the posterior mode and the maximum likelihood estimate. Here "predictive" and "mean"
        are the same.
    binarize : float or None, default 0
        A feature is present where its cell exceeds this threshold. None: cells are 0 or 1 already. NaN in a dense array
        is a missing cell, whatever the threshold.
    prior : NaiveBayes, optional
        Complete prior, such as `prior_` of another classifier, in place of `alpha`, `class_alpha` and `class_prior`.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Weight of the rows in which each feature is present.
    feature_log_prob_ : (C, F) array
        Log posterior mean of P(present | class).
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
        log p(X, y), with the parameters integrated out.

    Examples
    --------
    >>> from bayesnb import BernoulliNB
    >>> nb = BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["spam", "spam", "ham"])
    >>> nb.predict_proba([[1, 0]]).round(2)
    array([[0.16, 0.84]])
    >>> nb.predict_proba([[1, float("nan")]]).round(2)  # the second cell is missing
    array([[0.23, 0.77]])
    """

    _: KW_ONLY
    alpha: object = ALPHA
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"
    binarize: float | None = 0.0
    prior: object = None

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        n = len(table.names)
        return (binary_columns(table, range(n), self.binarize),)

    @property
    def feature_count_(self) -> np.ndarray:
        """(C, F) weight of the rows in which the feature is present."""
        return np.asarray(self.statistics_.blocks[0].count[:, 1::2])

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """(C, F) log posterior mean of P(present | class)."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).log_theta[:, 1::2])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.classifier_tags.poor_score = True
        return tags


@dataclass(eq=False, repr=False)
class MultinomialNB(NaiveBayesClassifier):
    """Naive Bayes for counts over one simplex, such as a bag of words: θ_c ~ Dirichlet(α).

    Parameters
    ----------
    alpha : scalar, (F,) array, (C, F) array or Dirichlet, default 1
        Dirichlet concentration of each word.
    class_alpha : scalar or (C,) array, default 1
        Dirichlet concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or a Dirichlet prior of them, in place of `class_alpha`.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Reading of the posterior in predictions. "predictive" integrates the parameters out; "mean", "map" and "mle"
        plug in the posterior mean, the posterior mode and the maximum likelihood estimate. Here "predictive" is the
        Dirichlet-multinomial: parameters are integrated out per row, so that a word that occurred once in a row is more
        probable the second time.
    prior : NaiveBayes, optional
        Complete prior, such as `prior_` of another classifier, in place of `alpha`, `class_alpha` and `class_prior`.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Count of each word in each class.
    feature_log_prob_ : (C, F) array
        Log posterior mean of the probability of each word.
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
        log p(X, y), with the parameters integrated out.

    Notes
    -----
    Fractional counts (tf-idf) are accepted, as in scikit-learn; the evidence is then that of a pseudo-likelihood, with
    gamma functions for factorials.

    Examples
    --------
    >>> from bayesnb import MultinomialNB
    >>> nb = MultinomialNB(alpha=1.0).fit([[2, 1, 0], [1, 0, 3]], ["sport", "science"])
    >>> nb.predict_proba([[1, 0, 1]]).round(2)
    array([[0.67, 0.33]])
    >>> nb.predict_proba([[1, 0, 1]], estimate="mean").round(2)  # scikit-learn's
    array([[0.66, 0.34]])
    """

    _: KW_ONLY
    alpha: object = ALPHA
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"
    prior: object = None

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        n = len(table.names)
        return (CountColumns(range(n), table.names, n),)

    @property
    def feature_count_(self) -> np.ndarray:
        """(C, F) count of each word in each class."""
        return np.asarray(self.statistics_.blocks[0].count)

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """(C, F) log posterior mean of the probability of each word."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).log_theta)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True
        return tags


def binary_columns(table: Table, index: Sequence[int], binarize: Any) -> BinaryColumns:
    """Make Bernoulli columns of a table, with the threshold `binarize`."""
    if binarize is not None:
        require_number("binarize", binarize, "a finite number, or None where cells are 0 or 1", lambda _: True)
    names = table.names if len(index) == len(table.names) else tuple(table.names[j] for j in index)
    return BinaryColumns(index, names, len(table.names), binarize)


def level_columns(
    table: Table, index: Sequence[int], categories: object, handle_unknown: str, missing_values: object
) -> LevelColumns:
    """Make categorical columns of a table, with the levels that are declared for them."""
    require_choice("handle_unknown", handle_unknown, HANDLE_UNKNOWN)
    marks = () if missing_values is None else _as_tuple(missing_values)
    marks = tuple(
        mark for mark in marks if type(mark).__name__ != "NAType"
    )  # pd.NA is missing anyway, and equals nothing.
    for mark in marks:
        if not isinstance(mark, Hashable):
            raise ValueError(
                f"missing_values: {shown(mark)} cannot be the value of a cell; use a value or a list of values."
            )
    marked, declared = Levels.from_values(marks), []
    if isinstance(categories, Mapping):
        features = {*table.names, *range(len(table.names))}
        unknown = [key for key in categories if key not in features]
        if unknown:
            raise ValueError(
                f"categories names a feature {shown(unknown[0])} that X does not have: {list(table.names)}."
            )
    for position, j in enumerate(index):
        levels = _read_declared_levels(categories, position, j, table, len(index))
        declared.append(declared_categories(table.column(j)) if levels is None and not table.is_sparse else levels)
    levels = tuple(Levels.from_values(v for v in (d if d is not None else ()) if v not in marked) for d in declared)
    for j, d, known in zip(index, declared, levels, strict=True):
        if d is not None and not len(known):
            raise ValueError(f"categories: no level is declared for feature {shown(table.names[j])}.")
    flags = tuple(d is not None for d in declared)
    names = tuple(table.names[j] for j in index)
    return LevelColumns(index, names, len(table.names), levels, flags, handle_unknown, marks)  # type: ignore[arg-type]


def _read_declared_levels(categories: object, position: int, j: int, table: Table, n: int) -> Any:
    if isinstance(categories, str):
        if categories != "auto":
            raise ValueError(f"categories={shown(categories)} is unknown; use 'auto' or the levels of each feature.")
        return None
    if isinstance(categories, Mapping):
        levels = categories.get(table.names[j], categories.get(j))
    else:
        if not isinstance(categories, Sequence | np.ndarray):
            raise ValueError(
                f"categories={shown(categories)} must be 'auto', a list with the levels of each feature, or a dict "
                "{feature: levels}."
            )
        if len(categories) != n:
            raise ValueError(f"categories has {len(categories)} entries, but there are {n} categorical features.")
        levels = categories[position]
    if levels is None or (isinstance(levels, str) and levels == "auto"):
        return None
    if isinstance(levels, str | bytes) or not isinstance(levels, Iterable):
        raise ValueError(
            f"categories: the levels of feature {shown(table.names[j])} are {shown(levels)}; give a list of them."
        )
    return levels


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else (values,)
